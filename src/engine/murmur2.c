/*
 * murmur2.c - see murmur2.h
 *
 * One body for all processors, in vectors that the compiler maps to whatever
 * the processor has. Each word of the key takes a product of 32 bits in each
 * lane: one instruction with AVX2, seven without.
 */
#include "engine/murmur2.h"

#include <string.h>

#include "core/bytes.h"

#if BLY_X86
#include <immintrin.h>
#endif

typedef uint32_t murmur2_vector __attribute__((vector_size(32)));

static inline __attribute__((always_inline)) void
murmur2_hash(const unsigned char *p, size_t len, const uint32_t seeds[8],
             murmur2_vector *out)
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
    *out = h ^ h >> 15;
}

/* Remainders, from quotients that are right or one too small, as in
 * bly_mod(). */
static inline __attribute__((always_inline)) void
murmur2_remainders(const murmur2_vector *h, const murmur2_vector *quotients,
                   const uint32_t divisors[8], uint32_t out[8])
{
    murmur2_vector n;
    memcpy(&n, divisors, sizeof n);
    const murmur2_vector r = *h - *quotients * n, less = r - n;
    const murmur2_vector wraps = (murmur2_vector)(less >= r);
    const murmur2_vector least = (less & ~wraps) | (r & wraps);
    memcpy(out, &least, sizeof least);
}

static void murmur2_portable(const void *bytes, size_t len,
                             const bly_murmur2_lanes *lanes, uint32_t out[8])
{
    murmur2_vector h, quotients;
    murmur2_hash(bytes, len, lanes->seeds, &h);
    for (int i = 0; i < 8; i++)
        quotients[i] = (uint32_t)((uint64_t)h[i] * lanes->inverses[i] >> 32);
    murmur2_remainders(&h, &quotients, lanes->divisors, out);
}

#if BLY_X86
__attribute__((target("avx2,bmi,bmi2"))) static void
murmur2_avx2(const void *bytes, size_t len, const bly_murmur2_lanes *lanes,
             uint32_t out[8])
{
    murmur2_vector h, quotients;
    murmur2_hash(bytes, len, lanes->seeds, &h);
    const __m256i by =
        _mm256_loadu_si256((const __m256i *)(const void *)lanes->inverses);
    const __m256i even = _mm256_mul_epu32((__m256i)h, by);
    const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64((__m256i)h, 32),
                                         _mm256_srli_epi64(by, 32));
    quotients = (murmur2_vector)_mm256_blend_epi32(_mm256_srli_epi64(even, 32),
                                                   odd, 0xaa);
    murmur2_remainders(&h, &quotients, lanes->divisors, out);
}
#endif

const bly_murmur2_row bly_murmur2_rows[] = {
#if BLY_X86
    { "avx2", BLY_CPU_AVX2, murmur2_avx2 },
#endif
    { "portable", 0, murmur2_portable },
};

BLY_CHOOSE(murmur2)
