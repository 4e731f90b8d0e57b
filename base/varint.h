/*
 * varint.h - numbers of 7 bits per byte, the low ones first
 *
 *     300 = 10 0101100b    ac 02: the upper bit of a byte says that more come
 */
#ifndef BLY_BASE_VARINT_H
#define BLY_BASE_VARINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VARINT_MOST 10 /* bytes */

/* Write n to `at`, which has VARINT_MOST bytes. How many it took. */
static inline size_t varint_write(unsigned char *at, uint64_t n)
{
    size_t len = 0;
    for (; n > 0x7f; n >>= 7)
        at[len++] = (unsigned char)(n | 0x80);
    at[len++] = (unsigned char)n;
    return len;
}

/* The number at *at, which moves behind it. False: there is none before end, or
 * none of 64 bits. */
static inline bool varint_get(const unsigned char **at,
                              const unsigned char *end, uint64_t *out)
{
    uint64_t x = 0;
    for (unsigned shift = 0; shift < 64 && *at < end; shift += 7) {
        const uint64_t bits = **at & 0x7f;
        const bool more = *(*at)++ & 0x80;
        if (bits << shift >> shift != bits)
            return false;
        x |= bits << shift;
        if (!more) {
            *out = x;
            return true;
        }
    }
    return false;
}

#endif
