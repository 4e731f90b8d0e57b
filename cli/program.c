/*
 * program.c - commands and verbs that another program has
 *
 * A program is looked for where BLOOMERY_LIBEXEC says, beside this one, as in a
 * build folder, and where make install puts it: ../libexec/bloomery.
 */
#define _GNU_SOURCE
#include "cli/program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/say.h"

static char **line;

/* What each needs, for those who build them. Debian's package of a program has
 * its name. */
static const struct {
    const char *name, *needs;
} programs[] = {
    { "net", "libsodium" },
    { "redis", "libhiredis" },
    { "parquet", "libsnappy" },
    { "traffic", "libpcap" },
    { "html", "libgumbo" },
    { "web", "libcurl, libmicrohttpd and libsodium" },
};

void program_began(char **argv)
{
    line = argv;
}

static void run_from(const char *folder, int n, const char *name)
{
    char path[4096 + 64];
    if (snprintf(path, sizeof path, "%.*s/bloomery-%s", n, folder, name) <
        (int)sizeof path)
        execv(path, line);
}

void program_try(const char *name)
{
    char own[4096];
    const char *const given = getenv("BLOOMERY_LIBEXEC");
    fflush(NULL);
    if (given) {
        run_from(given, (int)strlen(given), name);
        return;
    }
    const ssize_t n = readlink("/proc/self/exe", own, sizeof own - 32);
    if (n <= 0)
        return;
    own[n] = '\0';
    char *const end = strrchr(own, '/');
    run_from(own, (int)(end - own), name);
    strcpy(end, "/../libexec/bloomery");
    run_from(own, (int)strlen(own), name);
}

int program_run(const char *name)
{
    program_try(name);
    if (errno != ENOENT)
        return fail("bloomery-%s cannot be run: %s", name, strerror(errno));
    const char *needs = NULL;
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++)
        if (strcmp(programs[i].name, name) == 0)
            needs = programs[i].needs;
    return fail("this needs the program bloomery-%s, which is not here; "
                "install the package bloomery-%s, or build bloomery with %s",
                name, name, needs ? needs : "it");
}
