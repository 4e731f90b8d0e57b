/*
 * tables.c - the tables of a folder, the newest first
 *
 * Tables are never changed: a file is there in whole or not at all, and whoever
 * has it mapped keeps what it was. So a reader needs no lock, but it has to see
 * all tables of one moment: who compacts puts a new one there and removes
 * others, and a list that was read meanwhile might lack both. Such a list is
 * read again. Who adds a table or compacts locks the folder.
 */
#define _GNU_SOURCE /* O_CLOEXEC, flock */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "apps/table/tables.h"
#include "base/grow.h"
#include "io/files.h"
#include "report/say.h"

/* Higher than any that a name of 8 digits has. */
#define NUMBER_END 100000000ull

static bool is_table_name(const char *name)
{
    const size_t n = strlen(name), end = sizeof TABLE_END - 1;
    return name[0] != '.' && n > end && strcmp(name + n - end, TABLE_END) == 0;
}

static bool tables_add(struct tables *t, const char *folder, const char *name)
{
    const size_t n = strlen(folder) + strlen(name) + 2;
    char *const path = GROW(&t->at, &t->room, t->n + 1) ? malloc(n) : NULL;
    if (!path)
        return refuse("out of memory");
    snprintf(path, n, "%s%s%s", folder, *folder ? "/" : "", name);
    t->at[t->n++] = (struct table_file){ .path = path };
    return true;
}

static int newest_first(const void *a, const void *b)
{
    const struct table_file *const x = a, *const y = b;
    return strcmp(y->path, x->path);
}

static bool list_tables(struct tables *t, const char *folder)
{
    DIR *const d = opendir(folder);
    const struct dirent *e;
    bool ok = d != NULL;
    if (!ok)
        return refuse_path(folder, errno);
    while (ok && (errno = 0, e = readdir(d)))
        ok = !is_table_name(e->d_name) || tables_add(t, folder, e->d_name);
    if (ok && errno)
        ok = refuse_path(folder, errno);
    closedir(d);
    if (t->n)
        qsort(t->at, t->n, sizeof *t->at, newest_first);
    return ok;
}

/* Where a table may be removed meanwhile: gone, set if it was, instead of a
 * message. */
static bool map_table(struct table_file *f, bool *gone)
{
    char why[TABLE_WHY];
    struct stat st;
    const int fd = open(f->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT && gone) {
        *gone = true;
        return false;
    }
    if (fd < 0 || fstat(fd, &st)) {
        const int error = errno;
        if (fd >= 0)
            close(fd);
        return refuse_path(f->path, error);
    }
    int error = 0;
    if (S_ISREG(st.st_mode) && st.st_size > 0 &&
        (uint64_t)st.st_size <= SIZE_MAX) {
        f->n = (size_t)st.st_size;
        f->map = mmap(NULL, f->n, PROT_READ, MAP_PRIVATE, fd, 0);
        error = f->map == MAP_FAILED ? errno : 0;
        if (error)
            f->map = NULL;
    }
    close(fd);
    if (error)
        return refuse_path(f->path, error);
    return table_open(&f->table, f->map ? f->map : "", f->map ? f->n : 0,
                      why) ||
           refuse("%s: %s", f->path, why);
}

/* Are the tables in a folder still those of t, and is it as it was? False, with
 * the reason printed, if that cannot be known. */
static bool look_again(const struct tables *t, const char *folder,
                       const struct stat *was, bool *same)
{
    struct stat is;
    struct tables now = { 0 };
    bool ok = list_tables(&now, folder);
    if (ok && stat(folder, &is))
        ok = refuse_path(folder, errno);
    *same = ok && now.n == t->n && is.st_mtim.tv_sec == was->st_mtim.tv_sec &&
            is.st_mtim.tv_nsec == was->st_mtim.tv_nsec;
    for (size_t i = 0; i < t->n && *same; i++)
        *same = strcmp(t->at[i].path, now.at[i].path) == 0;
    tables_close(&now);
    return ok;
}

bool tables_open(struct tables *t, const char *path)
{
    enum { TRIES = 1000 }; /* nobody compacts as often as that by chance */
    for (int i = 0; i < TRIES; i++) {
        struct stat st;
        bool gone = false, same = true;
        *t = (struct tables){ 0 };
        if (stat(path, &st))
            return refuse_path(path, errno);
        const bool folder = S_ISDIR(st.st_mode);
        cut_watch(path, NULL);
        bool ok = folder ? list_tables(t, path) : tables_add(t, "", path);
        for (size_t k = 0; k < t->n && ok; k++)
            ok = map_table(&t->at[k], folder ? &gone : NULL);
        ok = ok && (!folder || look_again(t, path, &st, &same));
        if (!gone && (!ok || same))
            return ok;
        tables_close(t);
    }
    return refuse("%s: its tables change faster than they can be opened", path);
}

void tables_close(struct tables *t)
{
    for (size_t i = 0; i < t->n; i++) {
        table_close(&t->at[i].table);
        if (t->at[i].map)
            munmap(t->at[i].map, t->at[i].n);
        free(t->at[i].path);
    }
    free(t->at);
    *t = (struct tables){ 0 };
}

/* Lock a folder against others who add tables. */
static bool lock_folder(int fd, const char *folder)
{
    const struct timespec pause = { .tv_nsec = 20 * 1000 * 1000 };
    for (uint64_t ms = 0; flock(fd, LOCK_EX | LOCK_NB); ms += 20) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return refuse_path(folder, errno);
        if (!wait_for_lock(NULL, folder, ms)) {
            char holder[64];
            bly_lock_holder(folder, holder, sizeof holder);
            return refuse("%s: another process is adding a table or "
                          "compacting%s%s; --wait "
                          "sets how many seconds to wait",
                          folder, holder[0] ? ", or holds its lock: " : "",
                          holder);
        }
        nanosleep(&pause, NULL);
    }
    return true;
}

char *tables_next(const char *folder, int *lock)
{
    struct tables all = { 0 };
    char *path = NULL;
    unsigned long long highest = 0;
    *lock = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*lock < 0) {
        fail_path(folder, errno);
        return NULL;
    }
    bool ok = lock_folder(*lock, folder) && list_tables(&all, folder);
    for (size_t i = 0; i < all.n; i++) {
        const char *const name = strrchr(all.at[i].path, '/') + 1;
        char *end;
        const unsigned long long n = strtoull(name, &end, 10);
        /* A name of another form may come behind all numbers. */
        if (end - name != 8 || strcmp(end, TABLE_END) != 0)
            ok = refuse("%s: its name is not a number of 8 digits, so it is "
                        "not known which table is newer; name the new one "
                        "yourself, with -o %s/NAME" TABLE_END,
                        all.at[i].path, folder);
        else if (n > highest)
            highest = n;
    }
    if (ok && highest + 1 >= NUMBER_END)
        ok = refuse("%s: no number is left for another table", folder);
    const size_t room = strlen(folder) + 32;
    if (ok && !(path = malloc(room)))
        fail("out of memory");
    if (path)
        snprintf(path, room, "%s%s%08llu" TABLE_END, folder,
                 folder[strlen(folder) - 1] == '/' ? "" : "/", highest + 1);
    for (size_t i = 0; i < all.n; i++)
        free(all.at[i].path);
    free(all.at);
    return path;
}
