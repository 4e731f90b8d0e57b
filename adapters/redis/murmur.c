/*
 * murmur.c - see murmur.h
 */
#include "adapters/redis/murmur.h"

#include <string.h>

/* The n bytes at p as a little-endian number; n is 8 at most. */
static inline uint64_t number_at(const unsigned char *p, size_t n)
{
    uint64_t value = 0;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (n == 8 || n == 4) {
        memcpy(&value, p, n);
        return value;
    }
#endif
    while (n-- > 0)
        value = value << 8 | p[n];
    return value;
}

uint32_t murmur2(const void *key, size_t n, uint32_t seed)
{
    const uint32_t m = 0x5bd1e995;
    const unsigned char *p = key;
    uint32_t h = seed ^ (uint32_t)n;
    for (; n >= 4; p += 4, n -= 4) {
        uint32_t k = (uint32_t)number_at(p, 4) * m;
        k ^= k >> 24;
        h = h * m ^ k * m;
    }
    if (n)
        h = (h ^ (uint32_t)number_at(p, n)) * m;
    h = (h ^ h >> 13) * m;
    return h ^ h >> 15;
}

uint64_t murmur64a(const void *key, size_t n, uint64_t seed)
{
    const uint64_t m = UINT64_C(0xc6a4a7935bd1e995);
    const unsigned char *p = key;
    uint64_t h = seed ^ n * m;
    for (; n >= 8; p += 8, n -= 8) {
        uint64_t k = number_at(p, 8) * m;
        k ^= k >> 47;
        h = (h ^ k * m) * m;
    }
    if (n)
        h = (h ^ number_at(p, n)) * m;
    h = (h ^ h >> 47) * m;
    return h ^ h >> 47;
}
