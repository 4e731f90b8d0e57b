/*
 * byte_order.h - numbers of 1 to 8 bytes in files and protocols
 *
 * Where nbytes is a literal, each is one or two instructions.
 */
#ifndef BLY_BASE_BYTE_ORDER_H
#define BLY_BASE_BYTE_ORDER_H

#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define BYTE_ORDER_LE(x) __builtin_bswap64(x)
#else
#define BYTE_ORDER_LE(x) (x)
#endif

static inline uint64_t get_le(const unsigned char *p, unsigned nbytes)
{
    uint64_t x = 0;
    memcpy(&x, p, nbytes);
    return BYTE_ORDER_LE(x);
}

static inline uint64_t get_be(const unsigned char *p, unsigned nbytes)
{
    return __builtin_bswap64(get_le(p, nbytes)) >> (64 - 8 * nbytes);
}

static inline void put_le(unsigned char *p, uint64_t x, unsigned nbytes)
{
    x = BYTE_ORDER_LE(x);
    memcpy(p, &x, nbytes);
}

static inline void put_be(unsigned char *p, uint64_t x, unsigned nbytes)
{
    for (unsigned i = nbytes; i--; x >>= 8)
        p[i] = (unsigned char)x;
}

#endif
