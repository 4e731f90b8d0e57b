/*
 * bytes.h - bytes that are put together, and bytes that are taken apart
 *
 * Neither side needs a check at every step: a buffer that could not grow, and
 * a reading that went past its end, say so when all is done.
 */
#ifndef BLY_BASE_BYTES_H
#define BLY_BASE_BYTES_H

#include "base/byte_order.h"
#include "base/grow.h"
#include "base/varint.h"

/* A buffer; zero is empty. Once `failed`, it takes nothing more, since what
 * follows would come after a hole. */
struct bytes {
    unsigned char *at;
    size_t n, room;
    bool failed;
};

static inline bool bytes_put(struct bytes *b, const void *from, size_t n)
{
    if (b->failed || n > SIZE_MAX - b->n || !GROW(&b->at, &b->room, b->n + n)) {
        b->failed = true;
        return false;
    }
    if (n)
        memcpy(b->at + b->n, from, n);
    b->n += n;
    return true;
}

/* Little-endian, in 1 to 8 bytes. */
static inline bool bytes_number(struct bytes *b, uint64_t x, unsigned nbytes)
{
    unsigned char at[8];
    put_le(at, x, nbytes);
    return bytes_put(b, at, nbytes);
}

static inline bool bytes_varint(struct bytes *b, uint64_t x)
{
    unsigned char at[VARINT_MOST];
    return bytes_put(b, at, varint_write(at, x));
}

/* Bytes that anybody may have sent: what lies past the end is zero, and `bad`
 * is set. */
struct reading {
    const unsigned char *at, *end;
    bool bad;
};

static inline size_t read_left(const struct reading *r)
{
    return (size_t)(r->end - r->at);
}

/* NULL: there are not so many. */
static inline const unsigned char *read_bytes(struct reading *r, uint64_t n)
{
    const unsigned char *const at = r->at;
    if (n > read_left(r)) {
        r->bad = true;
        r->at = r->end;
        return NULL;
    }
    r->at += n;
    return at;
}

static inline uint64_t read_word(struct reading *r, unsigned nbytes)
{
    const unsigned char *const at = read_bytes(r, nbytes);
    return at ? get_le(at, nbytes) : 0;
}

/* A varint. */
static inline uint64_t read_number(struct reading *r)
{
    uint64_t n = 0;
    if (varint_get(&r->at, r->end, &n))
        return n;
    r->bad = true;
    r->at = r->end;
    return 0;
}

#endif
