/*
 * sync_chunks.c - where to cut a file, so that equal parts are cut alike
 */
#include "apps/sync/sync_chunks.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/random.h"
#include "io/files.h"

/* Numbers that look random, one for each byte (splitmix64): the same on both
 * sides for ever. Shifted by one bit per byte, a number is gone after 64. */
static uint64_t gear[256];

static void gear_make(void)
{
    uint64_t s = 0;
    for (unsigned i = 0; i < 256; i++)
        gear[i] = random_next(&s);
}

bool chunks_add(struct chunks *c, const struct chunk *more)
{
    if (c->n == CHUNKS_MOST) {
        errno = EFBIG;
        return false;
    }
    if (!GROW(&c->at, &c->room, c->n + 1))
        return false;
    c->at[c->n++] = *more;
    return true;
}

void chunks_free(struct chunks *c)
{
    free(c->at);
    *c = (struct chunks){ 0 };
}

/* The first cut in n bytes, of which all are there or there are `most`. */
static size_t cut_at(const unsigned char *bytes, size_t n, unsigned bits)
{
    const size_t least = (size_t)1 << (bits - 2), most = (size_t)8 << bits;
    const uint64_t mask = ~(UINT64_MAX >> bits); /* the oldest bytes' bits */
    uint64_t h = 0;
    if (n > most)
        n = most;
    if (n <= least)
        return n;
    /* 64 bytes before the first cut that may be: all that the hash sees. */
    for (size_t i = least - 64; i < n; i++) {
        h = (h << 1) + gear[bytes[i]];
        if (i >= least && !(h & mask))
            return i + 1;
    }
    return n;
}

/* Of the average length of chunks. */
static unsigned chunk_bits(uint64_t size)
{
    unsigned bits = 13;
    while (bits < 17 && size >> (bits + 16))
        bits++;
    return bits;
}

bool chunks_zero(const struct chunks *c, uint64_t size, const bly_hasher *by,
                 bool *zero)
{
    /* gear[0] has no cut in zeros: they go on to the longest chunk. */
    const size_t most = (size_t)8 << chunk_bits(size);
    unsigned char *const zeros = calloc(1, CHUNK_MOST);
    if (!zeros)
        return false;
    const uint64_t hash = bly_hash(by, zeros, most);
    for (size_t i = 0; i < c->n; i++)
        zero[i] = c->at[i].n == most && c->at[i].hash == hash;
    if (c->n) {
        const struct chunk *const last = &c->at[c->n - 1];
        zero[c->n - 1] = last->hash == bly_hash(by, zeros, last->n);
    }
    free(zeros);
    return true;
}

bool chunks_of(int fd, uint64_t size, const bly_hasher *by, struct chunks *out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const unsigned bits = chunk_bits(size);
    pthread_once(&once, gear_make);
    const size_t room = (size_t)16 << bits;
    unsigned char *const buf = malloc(room);
    size_t from = 0, to = 0; /* what was read and not cut yet */
    uint64_t at = 0;
    bool ok = buf, end = false;
    while (ok && (from < to || !end)) {
        if (!end && to - from < room / 2) {
            memmove(buf, buf + from, to - from);
            to -= from;
            from = 0;
            const int64_t got = read_all(fd, buf + to, room - to);
            ok = got >= 0;
            end = got < (int64_t)(room - to);
            to += got > 0 ? (size_t)got : 0;
            continue;
        }
        const size_t len = cut_at(buf + from, to - from, bits);
        const struct chunk c = { bly_hash(by, buf + from, len), at,
                                 (uint32_t)len };
        ok = chunks_add(out, &c);
        from += len;
        at += len;
    }
    free(buf);
    return ok;
}
