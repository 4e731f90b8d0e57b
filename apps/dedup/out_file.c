/*
 * out_file.c - a file that appears whole or not at all, or standard output
 *
 * Files are the library's business (bly_draft_new()); standard output is where
 * it is and cannot be taken back.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/dedup/out_file.h"

#define OUT_BYTES ((size_t)256 * 1024)

static bool out_fail(struct out_file *o, const char *where, const char *why)
{
    snprintf(o->why, sizeof o->why, "%s%s", where, why);
    o->failed = true;
    return false;
}

bool out_open(struct out_file *o, const char *path, bly_wait *wait)
{
    const size_t len = strlen(path);
    *o = (struct out_file){ .standard = strcmp(path, "-") == 0 };
    o->packed = len > 3 && strcmp(path + len - 3, ".gz") == 0;
    if (strcmp(path, "-") != 0)
        return !bly_draft_new(path, wait, NULL, &o->draft) ||
               out_fail(o, "", bly_error());
    o->buf = malloc(OUT_BYTES);
    return o->buf || out_fail(o, "", "out of memory");
}

void out_give_up(struct out_file *o, const char *why)
{
    out_fail(o, "", why);
}

void (*out_clean)(void *bytes, size_t n);

static void stdout_flush(struct out_file *o, const char *at, size_t n)
{
    while (n && !o->failed) {
        const ssize_t put = write(STDOUT_FILENO, at, n);
        if (put < 0 && errno != EINTR) {
            out_fail(o, "standard output: ", strerror(errno));
        } else if (put > 0) {
            at += put;
            n -= (size_t)put;
        }
    }
}

static void out_commit(struct out_file *o)
{
    if (bly_draft_commit(o->draft))
        out_fail(o, "", bly_error());
    o->draft = NULL;
}

void out_put(struct out_file *o, const void *bytes, size_t n)
{
    if (o->failed)
        return;
    if (o->draft) {
        if (!bly_draft_put(o->draft, bytes, n))
            out_commit(o); /* which fails, and knows why */
        return;
    }
    /* Only bytes of our own can be cleaned. */
    for (; out_clean && n >= OUT_BYTES; n -= OUT_BYTES - 1) {
        out_put(o, bytes, OUT_BYTES - 1);
        bytes = (const char *)bytes + OUT_BYTES - 1;
    }
    if (n > OUT_BYTES - o->n) {
        stdout_flush(o, o->buf, o->n);
        o->n = 0;
    }
    if (n >= OUT_BYTES) {
        stdout_flush(o, bytes, n);
    } else {
        memcpy(o->buf + o->n, bytes, n);
        if (out_clean)
            out_clean(o->buf + o->n, n);
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

bool out_close(struct out_file *o, bool keep)
{
    if (o->draft && keep) {
        out_commit(o);
    } else if (o->draft) {
        bly_draft_abandon(o->draft);
    } else if (keep && o->buf) {
        stdout_flush(o, o->buf, o->n);
    }
    free(o->buf);
    o->draft = NULL;
    o->buf = NULL;
    return !o->failed;
}
