/*
 * streams.c - many streams of records in one file without a name
 */
#define _GNU_SOURCE /* pread, pwrite */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/join/streams.h"
#include "base/grow.h"
#include "io/files.h"

static bool scratch_fail(struct scratch *s, int error)
{
    if (!s->error)
        s->error = error;
    return false;
}

static bool scratch_write(struct scratch *s, const char *at, size_t n)
{
    if (s->fd < 0 && (s->fd = scratch_file(s->folder)) < 0)
        return scratch_fail(s, errno ? errno : EIO);
    while (n) {
        const ssize_t put = pwrite(s->fd, at, n, (off_t)s->end);
        if (put < 0 && errno != EINTR)
            return scratch_fail(s, errno);
        at += put > 0 ? put : 0;
        n -= put > 0 ? (size_t)put : 0;
        s->end += put > 0 ? (uint64_t)put : 0;
    }
    return true;
}

/* The gathered bytes to the file. Where they follow the last ones of the same
 * stream they become one extent with them. */
static bool stream_send(struct scratch *s, struct stream *to)
{
    const uint64_t at = s->end;
    if (to->len == 0)
        return true;
    if (!GROW(&to->extents, &to->room, to->n + 1))
        return scratch_fail(s, ENOMEM);
    if (!scratch_write(s, to->buf, to->len))
        return false;
    struct extent *const last = to->n ? &to->extents[to->n - 1] : NULL;
    if (last && last->at + last->n == at)
        last->n += to->len;
    else
        to->extents[to->n++] = (struct extent){ at, to->len };
    to->len = 0;
    return true;
}

static bool stream_put(struct scratch *s, struct stream *to, const void *bytes,
                       size_t n)
{
    const char *from = bytes;
    if (!to->buf && !(to->buf = malloc(s->buffer)))
        return scratch_fail(s, ENOMEM);
    while (n) {
        const size_t fit = s->buffer - to->len;
        const size_t here = n < fit ? n : fit;
        memcpy(to->buf + to->len, from, here);
        to->len += here;
        from += here;
        n -= here;
        if (to->len == s->buffer && !stream_send(s, to))
            return false;
    }
    return true;
}

bool stream_add(struct scratch *s, struct stream *to,
                const struct stream_record *r, const void *key,
                const void *rest)
{
    to->nrecords++;
    return stream_put(s, to, r, sizeof *r) &&
           (!r->nkey || stream_put(s, to, key, r->nkey)) &&
           (!r->nrest || stream_put(s, to, rest, r->nrest));
}

bool stream_flush(struct scratch *s, struct stream *to)
{
    const bool ok = stream_send(s, to);
    free(to->buf);
    to->buf = NULL;
    return ok;
}

void stream_free(struct stream *s)
{
    free(s->extents);
    free(s->buf);
    *s = (struct stream){ 0 };
}

/* ----------------------------------------------------------------- reading */

bool reader_open(struct stream_reader *r, struct scratch *s,
                 const struct stream *of, size_t room)
{
    *r = (struct stream_reader){ .scratch = s, .of = of, .room = room };
    r->buf = malloc(room);
    return r->buf || scratch_fail(s, ENOMEM);
}

/* More bytes; false at the end. */
static bool reader_fill(struct stream_reader *r)
{
    while (r->extent < r->of->n && r->done == r->of->extents[r->extent].n) {
        r->extent++;
        r->done = 0;
    }
    if (r->extent == r->of->n)
        return false;
    const struct extent *const e = &r->of->extents[r->extent];
    const uint64_t left = e->n - r->done;
    const size_t want = left < r->room ? (size_t)left : r->room;
    ssize_t got;
    do
        got = pread(r->scratch->fd, r->buf, want, (off_t)(e->at + r->done));
    while (got < 0 && errno == EINTR);
    if (got <= 0)
        return scratch_fail(r->scratch, got ? errno : EIO);
    r->done += (uint64_t)got;
    r->at = 0;
    r->len = (size_t)got;
    return true;
}

bool reader_get(struct stream_reader *r, void *to, size_t n)
{
    char *out = to;
    while (n) {
        if (r->at == r->len && !reader_fill(r))
            return false;
        const size_t fit = r->len - r->at;
        const size_t here = n < fit ? n : fit;
        memcpy(out, r->buf + r->at, here);
        r->at += here;
        out += here;
        n -= here;
    }
    return true;
}

void reader_close(struct stream_reader *r)
{
    free(r->buf);
    r->buf = NULL;
}
