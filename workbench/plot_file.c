/*
 * plot_file.c - a picture into a file
 *
 * The library replaces files (bly_draft_new()), so that a reader sees either
 * the old picture or the new one.
 */
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "io/files.h"
#include "workbench/plot_svg.h"

static char why[1024] = "out of memory"; /* unless something else is */

const char *plot_why(void)
{
    return why;
}

static bool save_fail(const char *path, int error)
{
    snprintf(why, sizeof why, "%s: %s", path, strerror(error));
    return false;
}

static bool put_stdio(void *ctx, const char *bytes, size_t n)
{
    return fwrite(bytes, 1, n, ctx) == n;
}

static bool save_to_stdout(plot_writer *write, const void *what)
{
    errno = 0;
    return (write(what, put_stdio, stdout) && fflush(stdout) == 0) ||
           save_fail("standard output", errno);
}

/* A bly_draft, and whether it took everything. */
struct drawing {
    bly_draft *draft;
    bool refused;
};

static bool put_draft(void *ctx, const char *bytes, size_t n)
{
    struct drawing *const d = ctx;
    d->refused = !bly_draft_put(d->draft, bytes, n);
    return !d->refused;
}

bool plot_to_file(plot_writer *write, const void *what, const char *path)
{
    struct drawing d = { 0 };
    if (!strcmp(path, "-"))
        return save_to_stdout(write, what);
    bool ok = bly_draft_new(path, wait_for_lock, NULL, &d.draft) == BLY_OK;
    if (ok && !write(what, put_draft, &d) && !d.refused) {
        const int error = errno;
        bly_draft_abandon(d.draft);
        return save_fail(path, error);
    }
    ok = ok && bly_draft_commit(d.draft) == BLY_OK;
    if (!ok)
        snprintf(why, sizeof why, "%s", bly_error());
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
