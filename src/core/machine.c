/*
 * machine.c - how much memory this process may use
 *
 * All of the machine's memory, or less if the process is in a control group
 * with a limit, as in a container. /proc/self/cgroup names its group, one line
 * per hierarchy:
 *
 *     0::/a/b            of version 2, a limit in memory.max of /a/b and /a
 *     4:memory:/a/b      of version 1, in memory.limit_in_bytes
 *
 * below the usual places. The line may give the path on the host, while the
 * container sees its own group as the root. So the root is always looked at,
 * too. Any of these files may be missing.
 */
#define _GNU_SOURCE
#include <bloomery.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_ROOM 4096

/* Read a limit from a file. A missing file, or one that says "max", means no
 * limit. */
static uint64_t limit_in(const char *path)
{
    char text[32];
    FILE *const in = fopen(path, "re");
    uint64_t limit = UINT64_MAX;
    if (!in)
        return limit;
    if (fgets(text, sizeof text, in) && text[0] >= '0' && text[0] <= '9')
        limit = strtoull(text, NULL, 10);
    fclose(in);
    return limit;
}

/* The lowest limit of a group and of those it is in. */
static uint64_t group_limit(const char *root, const char *group,
                            const char *file)
{
    char path[PATH_ROOM + 64], at[PATH_ROOM];
    uint64_t least = UINT64_MAX;
    if (strlen(group) >= sizeof at)
        return least;
    strcpy(at, group);
    for (;;) {
        char *const slash = strrchr(at, '/');
        if (slash && !slash[1])
            *slash = '\0'; /* "/" is the root, which "" is too */
        snprintf(path, sizeof path, "%s%s/%s", root, at, file);
        const uint64_t limit = limit_in(path);
        least = limit < least ? limit : least;
        if (!*at)
            return least;
        *strrchr(at, '/') = '\0';
    }
}

uint64_t bly_memory_limit(void)
{
    const long npages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t least =
        npages > 0 && page > 0 ? (uint64_t)npages * (uint64_t)page : UINT64_MAX;
    FILE *const in = fopen("/proc/self/cgroup", "re");
    char line[PATH_ROOM + 64];
    while (in && fgets(line, sizeof line, in)) {
        line[strcspn(line, "\n")] = '\0';
        char *const names = strchr(line, ':');
        char *const group = names ? strchr(names + 1, ':') : NULL;
        if (!group || group[1] != '/')
            continue;
        *group = '\0';
        uint64_t limit = UINT64_MAX;
        if (!names[1])
            limit = group_limit("/sys/fs/cgroup", group + 1, "memory.max");
        else if (strcmp(names + 1, "memory") == 0)
            limit = group_limit("/sys/fs/cgroup/memory", group + 1,
                                "memory.limit_in_bytes");
        least = limit < least ? limit : least;
    }
    if (in)
        fclose(in);
    return least;
}
