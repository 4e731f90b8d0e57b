/*
 * holder.c - who holds the lock of a file?
 *
 * Linux lists all locks in /proc/locks, a line each, with the process that took
 * the lock and the file that it is on:
 *
 *     7: FLOCK  ADVISORY  WRITE 1234 08:01:393229 0 EOF
 *
 * The device there is that of the file system, and some give another one to
 * stat(); so where no line has both numbers, the inode alone decides. Elsewhere
 * there is no such list, and nobody is named.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#ifdef __linux__
#include <sys/sysmacros.h>
#endif

#include "format/filter_files.h"

#define HOLDER_NAME 32 /* bytes of a process's name; Linux keeps 15 */

/* What a process is called. Whoever runs it chose the name, so that nothing but
 * what can be printed is taken from it. */
static void holder_name(long pid, char name[HOLDER_NAME])
{
    char path[48];
    name[0] = '\0';
    snprintf(path, sizeof path, "/proc/%ld/comm", pid);
    FILE *const f = fopen(path, "r");
    if (!f)
        return;
    if (!fgets(name, HOLDER_NAME, f))
        name[0] = '\0';
    fclose(f);
    name[strcspn(name, "\n")] = '\0';
    for (char *c = name; *c; c++)
        if (*c < 0x20 || *c > 0x7e)
            *c = '?';
}

/* The process that holds a lock of the file st; 0: nobody knows. */
static long holder_of(const struct stat *st)
{
    long pid = 0;
#ifdef __linux__
    char line[256];
    FILE *const f = fopen("/proc/locks", "r");
    while (f && fgets(line, sizeof line, f)) {
        long number;
        unsigned dev_major, dev_minor;
        unsigned long long inode;
        /* A line with "->" is one that waits. */
        if (sscanf(line, "%*u: FLOCK %*s %*s %ld %x:%x:%llu", &number,
                   &dev_major, &dev_minor, &inode) != 4 ||
            inode != (unsigned long long)st->st_ino || number <= 0)
            continue;
        const bool same =
            dev_major == major(st->st_dev) && dev_minor == minor(st->st_dev);
        if (same || !pid)
            pid = number;
        if (same)
            break;
    }
    if (f)
        fclose(f);
#else
    (void)st;
#endif
    return pid;
}

size_t bly_lock_holder(const char *path, char *out, size_t nbytes)
{
    char name[HOLDER_NAME];
    struct stat st;
    if (!out || !nbytes)
        return 0;
    out[0] = '\0';
    const long pid = path && stat(path, &st) == 0 ? holder_of(&st) : 0;
    if (!pid)
        return 0;
    holder_name(pid, name);
    snprintf(out, nbytes, name[0] ? "process %ld (%s)" : "process %ld", pid,
             name);
    return strlen(out);
}
