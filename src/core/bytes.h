/*
 * bytes.h - numbers as bytes: little-endian and big-endian, at any address
 *
 * bly_le64() is nothing on most machines and a byte swap on the rest, and
 * bly_be64() is the other way round; either is its own inverse. A load or a
 * store is one instruction.
 */
#ifndef BLY_BYTES_H
#define BLY_BYTES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define BLY_SWAP_LE_(bits, x) __builtin_bswap##bits(x)
#define BLY_SWAP_BE_(bits, x) ((uint##bits##_t)(x))
#else
#define BLY_SWAP_LE_(bits, x) ((uint##bits##_t)(x))
#define BLY_SWAP_BE_(bits, x) __builtin_bswap##bits(x)
#endif
#define bly_le16(x) BLY_SWAP_LE_(16, x)
#define bly_le32(x) BLY_SWAP_LE_(32, x)
#define bly_le64(x) BLY_SWAP_LE_(64, x)
#define bly_be16(x) BLY_SWAP_BE_(16, x)
#define bly_be32(x) BLY_SWAP_BE_(32, x)
#define bly_be64(x) BLY_SWAP_BE_(64, x)

#define BLY_BYTES_(type, order, load, store)                                  \
    static inline __attribute__((always_inline)) type load(                   \
        const unsigned char *p)                                               \
    {                                                                         \
        type x;                                                               \
        memcpy(&x, p, sizeof x);                                              \
        return order(x);                                                      \
    }                                                                         \
    static inline __attribute__((always_inline)) void store(unsigned char *p, \
                                                            type x)           \
    {                                                                         \
        x = order(x);                                                         \
        memcpy(p, &x, sizeof x);                                              \
    }
BLY_BYTES_(uint16_t, bly_le16, bly_load16, bly_store16)
BLY_BYTES_(uint32_t, bly_le32, bly_load32, bly_store32)
BLY_BYTES_(uint64_t, bly_le64, bly_load64, bly_store64)
BLY_BYTES_(uint16_t, bly_be16, bly_load_be16, bly_store_be16)
BLY_BYTES_(uint32_t, bly_be32, bly_load_be32, bly_store_be32)
BLY_BYTES_(uint64_t, bly_be64, bly_load_be64, bly_store_be64)
#undef BLY_BYTES_

/* The last n bytes of len, one to three that begin at p, as a little-endian
 * word. */
static inline uint32_t bly_tail32(const unsigned char *p, size_t n, size_t len)
{
    uint32_t word = 0;
    if (len >= 4) /* four bytes of which these are the end */
        return bly_load32(p + n - 4) >> (32 - 8 * n);
    for (size_t i = 0; i < n; i++)
        word |= (uint32_t)p[i] << 8 * i;
    return word;
}

/* Are n bytes the same? Of the few that a key has, without a call. */
static inline bool bly_same_bytes(const void *a, const void *b, size_t n)
{
    const unsigned char *const p = a, *const q = b;
    if (n > 16)
        return memcmp(p, q, n) == 0;
    if (n >= 8)
        return ((bly_load64(p) ^ bly_load64(q)) |
                (bly_load64(p + n - 8) ^ bly_load64(q + n - 8))) == 0;
    if (n >= 4)
        return ((bly_load32(p) ^ bly_load32(q)) |
                (bly_load32(p + n - 4) ^ bly_load32(q + n - 4))) == 0;
    for (size_t i = 0; i < n; i++)
        if (p[i] != q[i])
            return false;
    return true;
}

/* The bits of an IEEE double, and back. */
static inline uint64_t bly_real_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline double bly_bits_real(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

#endif
