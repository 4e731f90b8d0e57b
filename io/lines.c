/*
 * lines.c - the files that documents are in, and the lines of a block
 *
 * What can be read only once, a pipe, is copied to a file first. Reading is in
 * lines_run.c.
 */
#define _GNU_SOURCE /* strdup */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/lines.h"
#include "io/files.h"

/* Several workers may fail at once; one of them is told. */
static pthread_mutex_t failing = PTHREAD_MUTEX_INITIALIZER;

bool lines_fail(struct lines *in, const char *format, ...)
{
    va_list ap;
    pthread_mutex_lock(&failing);
    va_start(ap, format);
    if (!in->error[0])
        vsnprintf(in->error, sizeof in->error, format, ap);
    va_end(ap);
    pthread_mutex_unlock(&failing);
    return false;
}

bool lines_init(struct lines *in, const struct lines_ops *ops,
                const char *const *names, size_t n)
{
    *in = (struct lines){ .ops = ops,
                          .nthreads = 1,
                          .max_line = LINES_MAX_DEFAULT };
    in->files = calloc(n + 1, sizeof *in->files);
    if (!in->files)
        return false;
    bool sized = true;
    for (size_t i = 0; i < n; i++) {
        struct stat st;
        struct lines_file *const f = &in->files[i];
        *f = (struct lines_file){ .name = names[i], .spool = -1 };
        f->path = strdup(names[i]);
        if (!f->path)
            return false;
        in->nfiles++;
        sized = sized && stat(names[i], &st) == 0 && S_ISREG(st.st_mode);
        in->bytes_all += sized ? (uint64_t)st.st_size : 0;
    }
    if (!sized)
        in->bytes_all = 0;
    return true;
}

void lines_free(struct lines *in)
{
    for (size_t i = 0; i < in->nfiles; i++) {
        free(in->files[i].path);
        if (in->files[i].spool >= 0)
            close(in->files[i].spool);
    }
    free(in->files);
    free(in->marks);
    *in = (struct lines){ 0 };
}

/* --------------------------------------------------------------- spooling */

static bool spool_bytes(struct lines *in, struct lines_file *f, int fd)
{
    char buf[65536];
    void *const source = in->ops->open(f->path);
    if (!source)
        return lines_fail(in, "%s: %s", f->name, strerror(errno));
    ptrdiff_t got;
    while ((got = in->ops->read(source, buf, sizeof buf)) > 0) {
        size_t at = 0;
        while (at < (size_t)got) {
            const ssize_t put = write(fd, buf + at, (size_t)got - at);
            if (put < 0 && errno != EINTR) {
                lines_fail(in, "%s: cannot be kept to be read again: %s",
                           f->name, strerror(errno));
                in->ops->close(source);
                return false;
            }
            at += put > 0 ? (size_t)put : 0;
        }
    }
    const bool broken = got < 0 && in->ops->broken(source);
    if (broken)
        lines_fail(in, "%s: %s", f->name, in->ops->error(source));
    else if (got < 0)
        snprintf(f->error, sizeof f->error, "%s", in->ops->error(source));
    in->ops->close(source);
    return !broken;
}

bool lines_spool(struct lines *in, const char *folder)
{
    for (size_t i = 0; i < in->nfiles; i++) {
        struct lines_file *const f = &in->files[i];
        struct stat st;
        if (strcmp(f->path, "-") != 0 && stat(f->path, &st) == 0 &&
            S_ISREG(st.st_mode))
            continue;
        char link[64];
        f->spool = scratch_file(folder);
        if (f->spool < 0)
            return lines_fail(in,
                              "%s: no file for what comes from a pipe can be "
                              "made there: %s; right: a folder that can be "
                              "written to, by --work or TMPDIR",
                              folder, strerror(errno));
        if (!spool_bytes(in, f, f->spool))
            return false;
        snprintf(link, sizeof link, "/proc/self/fd/%d", f->spool);
        free(f->path);
        f->path = strdup(link);
        if (!f->path)
            return lines_fail(in, "out of memory");
    }
    return true;
}

bool lines_has_failed(struct lines *in)
{
    pthread_mutex_lock(&failing);
    const bool failed = in->error[0];
    pthread_mutex_unlock(&failing);
    return failed;
}

bool lines_next(const struct lines *in, const struct lines_block *b, size_t *at,
                const char **line, size_t *len)
{
    if (in->whole && *at == 0 && b->len == 0) { /* an empty file */
        *at = 1;
        *line = b->at;
        *len = 0;
        return true;
    }
    if (*at >= b->len)
        return false;
    *line = b->at + *at;
    const char *const nl = in->whole ? NULL : memchr(*line, '\n', b->len - *at);
    *len = nl ? (size_t)(nl - *line) : b->len - *at;
    *at += *len + (nl != NULL);
    if (!in->whole && *len && (*line)[*len - 1] == '\r')
        --*len;
    return true;
}
