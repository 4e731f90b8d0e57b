/*
 * plot_file.c - a picture into a file
 *
 * By way of a temporary file beside it and a rename, so that whoever looks
 * sees the old picture or the new one, and a full disk costs nothing. There
 * is no fsync: a picture that a power cut takes can be drawn again. What is
 * no regular file (a pipe, /dev/null) is written to as it is.
 */
#define _XOPEN_SOURCE 700 /* open, fdopen, realpath */

#include "cli/plot_svg.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool put_file(void *ctx, const char *bytes, size_t n)
{
    return fwrite(bytes, 1, n, ctx) == n;
}

/* Write to f and close it, standard output only flushed. */
static bool save_to(plot_writer *write, const void *what, FILE *f)
{
    const bool written = write(what, put_file, f);
    const int saved = errno;
    const bool ended = f == stdout ? fflush(f) == 0 : fclose(f) == 0;

    if (!written)
        errno = saved;
    return written && ended;
}

/* A new file beside target. *name is malloced, and its caller's. */
static FILE *open_beside(const char *target, char **name)
{
    const char *slash = strrchr(target, '/');
    const size_t folder = slash ? (size_t)(slash - target) + 1 : 0;
    int fd = -1;

    *name = malloc(folder + 48);
    if (!*name)
        return NULL;
    memcpy(*name, target, folder);
    for (unsigned i = 0; i < 1000 && fd < 0; i++) {
        snprintf(*name + folder, 48, ".plot-%ld-%u.tmp", (long)getpid(), i);
        fd = open(*name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    if (fd >= 0 && !f) {
        close(fd);
        unlink(*name);
    }
    return f;
}

bool plot_to_file(plot_writer *write, const void *what, const char *path)
{
    struct stat st;

    if (!strcmp(path, "-"))
        return save_to(write, what, stdout);
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        FILE *f = fopen(path, "w"); /* a pipe, /dev/null: nothing to rename */
        return f && save_to(write, what, f);
    }
    char *real = realpath(path, NULL); /* a link stays, its target changes */
    const char *target = real ? real : path;
    char *temporary = NULL;
    FILE *f = open_beside(target, &temporary);
    bool ok = f && save_to(write, what, f);
    if (ok)
        ok = rename(temporary, target) == 0;
    if (f && !ok) {
        const int saved = errno;
        unlink(temporary);
        errno = saved;
    }
    const int saved = errno;
    free(temporary);
    free(real);
    errno = saved;
    return ok;
}

static bool write_plot(const void *what, plot_put *put, void *ctx)
{
    return plot_write(what, put, ctx);
}

bool plot_save(const struct plot *p, const char *path)
{
    return plot_to_file(write_plot, p, path);
}
