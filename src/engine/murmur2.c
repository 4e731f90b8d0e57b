/*
 * murmur2.c - see murmur2.h
 *
 * One body for all processors, in vectors that the compiler makes of what there
 * is: a product of 32 bits in each lane, of which there is one for each word of
 * the key, is one instruction with AVX2 and seven without.
 */
#include "engine/murmur2.h"

#include <string.h>

#include "core/bytes.h"

typedef uint32_t murmur2_vector __attribute__((vector_size(32)));

static inline __attribute__((always_inline)) void
murmur2_lanes(const unsigned char *p, size_t len, const uint32_t seeds[8],
              uint32_t out[8])
{
    const uint32_t m = 0x5bd1e995;
    murmur2_vector h;
    size_t left = len;
    memcpy(&h, seeds, sizeof h);
    h ^= (uint32_t)len;
    for (; left >= 4; left -= 4, p += 4) {
        uint32_t word = bly_load32(p) * m;
        word = (word ^ word >> 24) * m;
        h = h * m ^ word;
    }
    if (left > 0)
        h = (h ^ bly_tail32(p, left, len)) * m;
    h = (h ^ h >> 13) * m;
    h ^= h >> 15;
    memcpy(out, &h, sizeof h);
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
