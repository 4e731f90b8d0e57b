/*
 * x86_eight.h - the arithmetic of bits.h for eight words at once, with AVX-512
 *
 * For files that are compiled for x86 only. Results are those of the functions
 * for one word.
 */
#ifndef BLY_X86_EIGHT_H
#define BLY_X86_EIGHT_H

#include "core/bits.h"
#include "core/hash.h"

#if BLY_X86
#include <immintrin.h>

#define BLY_AVX512 \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,bmi2,popcnt")))
#define BLY_EIGHT static inline BLY_AVX512 __attribute__((always_inline))

BLY_EIGHT __m512i bly_eight_all(uint64_t x)
{
    return _mm512_set1_epi64((long long)x);
}

/* The words of group `at` of n of them; zeros behind the last. */
BLY_EIGHT __m512i bly_eight_of(const uint64_t *words, size_t at, size_t n)
{
    const size_t left = n - 8 * at;
    return left >= 8 ? _mm512_loadu_si512(words + 8 * at)
                     : _mm512_maskz_loadu_epi64((__mmask8)((1u << left) - 1),
                                                words + 8 * at);
}

/* bly_scale() for n below 2^32, by the halves of h: a product of 64 bits is
 * (high n + low n / 2^32) / 2^32. */
BLY_EIGHT __m512i bly_eight_scale(__m512i h, __m512i n)
{
    const __m512i high = _mm512_mul_epu32(_mm512_srli_epi64(h, 32), n);
    const __m512i low = _mm512_srli_epi64(_mm512_mul_epu32(h, n), 32);
    return _mm512_srli_epi64(_mm512_add_epi64(high, low), 32);
}

/* bly_mix64() */
BLY_EIGHT __m512i bly_eight_mix(__m512i x)
{
    x = _mm512_xor_si512(x, _mm512_srli_epi64(x, 30));
    x = _mm512_mullo_epi64(x, bly_eight_all(UINT64_C(0xbf58476d1ce4e5b9)));
    x = _mm512_xor_si512(x, _mm512_srli_epi64(x, 27));
    x = _mm512_mullo_epi64(x, bly_eight_all(UINT64_C(0x94d049bb133111eb)));
    return _mm512_xor_si512(x, _mm512_srli_epi64(x, 31));
}

/* bly_int_hash(). Halves are swapped by a shuffle: there are fewer units that
 * shift. */
BLY_EIGHT __m512i bly_eight_int_hash(__m512i key, uint64_t flip)
{
    const __m512i c = bly_eight_all(BLY_INT_HASH_C);
    __m512i h =
        _mm512_xor_si512(_mm512_shuffle_epi32(key, 0xb1), bly_eight_all(flip));
    h = _mm512_ternarylogic_epi64(h, _mm512_rol_epi64(h, 49),
                                  _mm512_rol_epi64(h, 24), 0x96); /* xor */
    h = _mm512_mullo_epi64(h, c);
    h = _mm512_xor_si512(
        h, _mm512_add_epi64(_mm512_srli_epi64(h, 35), bly_eight_all(8)));
    h = _mm512_mullo_epi64(h, c);
    return _mm512_xor_si512(h, _mm512_srli_epi64(h, 28));
}

/* bly_int_folded(). The high half of the product comes from those of 32
 * bits. */
BLY_EIGHT __m512i bly_eight_int_folded(__m512i key, uint64_t word)
{
    const __m512i c = bly_eight_all(BLY_INT_HASH_C);
    const __m512i c_high = bly_eight_all(BLY_INT_HASH_C >> 32);
    const __m512i x = _mm512_xor_si512(key, bly_eight_all(word));
    const __m512i x_high = _mm512_shuffle_epi32(x, 0xb1);
    const __m512i mid =
        _mm512_add_epi64(_mm512_mul_epu32(x_high, c),
                         _mm512_srli_epi64(_mm512_mul_epu32(x, c), 32));
    const __m512i low =
        _mm512_add_epi64(_mm512_mul_epu32(x, c_high),
                         _mm512_and_si512(mid, bly_eight_all(UINT32_MAX)));
    const __m512i high =
        _mm512_add_epi64(_mm512_mul_epu32(x_high, c_high),
                         _mm512_add_epi64(_mm512_srli_epi64(mid, 32),
                                          _mm512_srli_epi64(low, 32)));
    return _mm512_mullo_epi64(_mm512_xor_si512(high, _mm512_mullo_epi64(x, c)),
                              bly_eight_all(BLY_INT_FOLD_C));
}
#endif

#endif
