/*
 * murmur2.c - see murmur2.h
 *
 * One body for all processors: its loops of eight are what a compiler makes
 * vectors of, and a product of 32 bits, of which there is one for each word of
 * the key, is one instruction with AVX2 and seven without.
 */
#include "engine/murmur2.h"

#include "core/bits.h"

static inline __attribute__((always_inline)) void
murmur2_lanes(const unsigned char *p, size_t len, const uint32_t seeds[8],
              uint32_t out[8])
{
    const uint32_t m = 0x5bd1e995;
    uint32_t h[8];
    size_t left = len;
    for (int i = 0; i < 8; i++)
        h[i] = seeds[i] ^ (uint32_t)len;
    for (; left >= 4; left -= 4, p += 4) {
        uint32_t word = bly_load32(p) * m;
        word = (word ^ word >> 24) * m;
        for (int i = 0; i < 8; i++)
            h[i] = h[i] * m ^ word;
    }
    if (left > 0) {
        const uint32_t tail = bly_tail32(p, left, len);
        for (int i = 0; i < 8; i++)
            h[i] = (h[i] ^ tail) * m;
    }
    for (int i = 0; i < 8; i++) {
        h[i] = (h[i] ^ h[i] >> 13) * m;
        out[i] = h[i] ^ h[i] >> 15;
    }
}

/* The quotient is right or one too small, as in bly_mod(). */
static inline __attribute__((always_inline)) void
murmur2_remainders(uint32_t h[8], uint32_t n, uint32_t inverse)
{
    for (int i = 0; i < 8; i++) {
        const uint32_t q = (uint32_t)((uint64_t)h[i] * inverse >> 32);
        const uint32_t r = h[i] - q * n, less = r - n;
        h[i] = less < r ? less : r;
    }
}

static void murmur2_portable(const void *bytes, size_t len,
                             const uint32_t seeds[8], uint32_t out[8])
{
    murmur2_lanes(bytes, len, seeds, out);
}

static void remainders_portable(uint32_t h[8], uint32_t n, uint32_t inverse)
{
    murmur2_remainders(h, n, inverse);
}

#if BLY_X86
__attribute__((target("avx2,bmi,bmi2"))) static void
murmur2_avx2(const void *bytes, size_t len, const uint32_t seeds[8],
             uint32_t out[8])
{
    murmur2_lanes(bytes, len, seeds, out);
}

__attribute__((target("avx2,bmi,bmi2"))) static void
remainders_avx2(uint32_t h[8], uint32_t n, uint32_t inverse)
{
    murmur2_remainders(h, n, inverse);
}
#endif

const bly_murmur2_row bly_murmur2_rows[] = {
#if BLY_X86
    { "avx2", BLY_CPU_AVX2, murmur2_avx2, remainders_avx2 },
#endif
    { "portable", 0, murmur2_portable, remainders_portable },
};

BLY_CHOOSE(murmur2)
