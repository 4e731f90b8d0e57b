/*
 * varint.h - numbers of 7 bits per byte, the low ones first
 *
 * The highest bit of a byte says that another one follows: 300 is ac 02.
 */
#ifndef BLY_VARINT_H
#define BLY_VARINT_H

#include <stdbool.h>
#include <stdint.h>

#define BLY_VARINT_MOST 10 /* bytes of 64 bits */

/* Write x at `at`, and return the address behind it. */
static inline unsigned char *bly_varint_write(unsigned char *at, uint64_t x)
{
    for (; x > 0x7f; x >>= 7)
        *at++ = (unsigned char)(x | 0x80);
    *at++ = (unsigned char)x;
    return at;
}

/* The number at *at, which moves behind it. False, with *at anywhere before
 * end: there is no number, or it has more than 64 bits. */
static inline bool bly_varint_read(const unsigned char **at,
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
