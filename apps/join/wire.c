/*
 * wire.c - what goes through the pipe between the two ends of a remote join
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "apps/join/wire.h"
#include "base/byte_order.h"
#include "io/varint.h"

uint64_t wire_sum(uint64_t before, bly_bytes key, bly_bytes rest)
{
    static const bly_hasher by = { .id = BLY_HASH_XXH3 };
    /* An odd factor: each row is weighed by its place, and none vanishes. */
    const uint64_t both =
        bly_hash(&by, key.ptr, key.len) * UINT64_C(0x9e3779b97f4a7c15) +
        bly_hash(&by, rest.ptr, rest.len);
    return before * UINT64_C(0xbf58476d1ce4e5b9) + both;
}

static bool wire_fail(struct wire *w, const char *why)
{
    if (!w->why)
        w->why = why;
    return false;
}

static bool wire_fill(struct wire *w)
{
    ssize_t got;
    do
        got = read(w->fd, w->buf, sizeof w->buf);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        w->error = errno;
    w->at = 0;
    w->len = got > 0 ? (size_t)got : 0;
    return got > 0;
}

bool wire_bytes(struct wire *w, void *to, size_t n)
{
    char *out = to;
    while (n) {
        if (w->at == w->len && !wire_fill(w))
            return wire_fail(w, "it ends too early");
        const size_t fit = w->len - w->at;
        const size_t here = n < fit ? n : fit;
        memcpy(out, w->buf + w->at, here);
        w->at += here;
        w->done += here;
        out += here;
        n -= here;
    }
    return true;
}

bool wire_number(struct wire *w, uint64_t *out)
{
    unsigned char at[VARINT_MOST];
    const unsigned char *from = at;
    size_t n = 0;
    do
        if (!wire_bytes(w, &at[n], 1))
            return false;
    while (at[n++] & 0x80 && n < sizeof at);
    return varint_get(&from, at + n, out) ||
           wire_fail(w, "a number in it is none");
}

bool wire_word(struct wire *w, uint64_t *out)
{
    unsigned char at[8];
    if (!wire_bytes(w, at, sizeof at))
        return false;
    *out = get_le(at, 8);
    return true;
}

bool wire_text(struct wire *w, uint64_t n, uint64_t most, struct block *to)
{
    if (n > most)
        return wire_fail(w, "a row in it is longer than any may be");
    while (n) {
        if (w->at == w->len && !wire_fill(w))
            return wire_fail(w, "it ends too early");
        const size_t fit = w->len - w->at;
        const size_t here = n < fit ? (size_t)n : fit;
        if (!block_put(to, w->buf + w->at, here))
            return wire_fail(w, "out of memory");
        w->at += here;
        w->done += here;
        n -= here;
    }
    return true;
}

bool wire_ends(struct wire *w)
{
    return w->at == w->len && !wire_fill(w) && !w->error;
}
