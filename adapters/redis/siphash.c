/*
 * siphash.c - see siphash.h. Aumasson and Bernstein, SipHash: a fast
 * short-input PRF, 2012; one round a word and three at the end.
 */
#include "adapters/redis/siphash.h"

static uint64_t rotate(uint64_t x, unsigned n)
{
    return x << n | x >> (64 - n);
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[0] = rotate(v[0], 32);
    v[2] += v[3];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[2] = rotate(v[2], 32);
}

static void sip_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
}

static uint64_t word_at(const unsigned char *p, size_t n)
{
    uint64_t value = 0;
    while (n-- > 0)
        value = value << 8 | p[n];
    return value;
}

uint64_t siphash13(const unsigned char *key, const void *item, size_t n)
{
    const uint64_t k0 = word_at(key, 8), k1 = word_at(key + 8, 8);
    uint64_t v[4] = { k0 ^ UINT64_C(0x736f6d6570736575),
                      k1 ^ UINT64_C(0x646f72616e646f6d),
                      k0 ^ UINT64_C(0x6c7967656e657261),
                      k1 ^ UINT64_C(0x7465646279746573) };
    const unsigned char *p = item;
    sip_word(v, n);
    size_t left = n;
    for (; left >= 8; p += 8, left -= 8)
        sip_word(v, word_at(p, 8));
    sip_word(v, word_at(p, left) | (uint64_t)((n + 8) & 0xff) << 56);
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
