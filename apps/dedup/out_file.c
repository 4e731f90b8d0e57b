/*
 * out_file.c - a file that appears whole or not at all
 *
 * A temporary file beside the target, fsync, rename, fsync of the folder.
 */
#define _GNU_SOURCE /* mkostemp */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/dedup/out_file.h"

#define OUT_BYTES ((size_t)256 * 1024)

static bool out_fail(struct out_file *o, int error)
{
    if (!o->error)
        o->error = error ? error : EIO;
    return false;
}

/* As the umask would have it; mkostemp() makes it 0600. */
static mode_t usual_mode(void)
{
    const mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

bool out_open(struct out_file *o, const char *path)
{
    struct stat st;
    *o = (struct out_file){ .fd = -1 };
    o->buf = malloc(OUT_BYTES);
    o->path = strdup(path);
    if (!o->buf || !o->path)
        return out_fail(o, ENOMEM);
    if (strcmp(path, "-") == 0) {
        o->fd = STDOUT_FILENO;
        return true;
    }
    const bool there = stat(path, &st) == 0;
    if (there && !S_ISREG(st.st_mode)) {
        o->fd = open(path, O_WRONLY | O_CLOEXEC);
        return o->fd >= 0 || out_fail(o, errno);
    }
    const size_t n = strlen(path);
    o->temp = malloc(n + 16);
    if (!o->temp)
        return out_fail(o, ENOMEM);
    snprintf(o->temp, n + 16, "%s.tmp-XXXXXX", path);
    o->fd = mkostemp(o->temp, O_CLOEXEC);
    if (o->fd < 0) {
        out_fail(o, errno);
        free(o->temp);
        o->temp = NULL;
        return false;
    }
    if (fchmod(o->fd, there ? st.st_mode & 07777 : usual_mode()) != 0)
        return out_fail(o, errno);
    return true;
}

static void out_flush(struct out_file *o, const char *at, size_t n)
{
    while (n && !o->error) {
        const ssize_t put = write(o->fd, at, n);
        if (put < 0 && errno != EINTR) {
            out_fail(o, errno);
        } else if (put > 0) {
            at += put;
            n -= (size_t)put;
        }
    }
}

void out_put(struct out_file *o, const void *bytes, size_t n)
{
    if (o->error)
        return;
    if (n > OUT_BYTES - o->n) {
        out_flush(o, o->buf, o->n);
        o->n = 0;
    }
    if (n >= OUT_BYTES) {
        out_flush(o, bytes, n);
    } else {
        memcpy(o->buf + o->n, bytes, n);
        o->n += n;
    }
}

void out_print(struct out_file *o, const char *format, ...)
{
    char text[256];
    va_list ap;
    va_start(ap, format);
    const int n = vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    if (n > 0)
        out_put(o, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

static void sync_folder(const char *path)
{
    const char *const slash = strrchr(path, '/');
    char *const folder =
        slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    const int fd =
        folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    free(folder);
}

bool out_close(struct out_file *o, bool keep)
{
    if (o->fd >= 0) {
        if (keep)
            out_flush(o, o->buf, o->n);
        if (keep && !o->error && o->temp && fsync(o->fd) != 0)
            out_fail(o, errno);
        if (o->fd != STDOUT_FILENO && close(o->fd) != 0)
            out_fail(o, errno);
    }
    if (o->temp) {
        if (keep && !o->error && rename(o->temp, o->path) != 0)
            out_fail(o, errno);
        if (!keep || o->error)
            unlink(o->temp);
        else
            sync_folder(o->path);
    }
    free(o->temp);
    free(o->path);
    free(o->buf);
    o->temp = o->path = o->buf = NULL;
    o->fd = -1;
    return !o->error;
}
