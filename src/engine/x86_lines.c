/*
 * x86_lines.c - keys in cache lines, with AVX2 and AVX-512: where the keys of a
 * group go, four or eight at once; x86_line.h probes the line of one
 */
#include "engine/x86_line.h"

#if BLY_X86

/* ------------------------------------------------------------------ AVX2 */

/* The low 64 bits of a * c, for which AVX2 has no instruction. The product of
 * the high halves lies above them and is left out. */
BLY_FOUR __m256i mul_avx2(__m256i a, uint64_t c)
{
    const __m256i low = _mm256_set1_epi64x((long long)c);
    const __m256i high = _mm256_set1_epi64x((long long)(c >> 32));
    const __m256i across =
        _mm256_add_epi64(_mm256_mul_epu32(_mm256_srli_epi64(a, 32), low),
                         _mm256_mul_epu32(a, high));
    return _mm256_add_epi64(_mm256_mul_epu32(a, low),
                            _mm256_slli_epi64(across, 32));
}

BLY_FOUR __m256i rotate_avx2(__m256i a, int by)
{
    return _mm256_or_si256(_mm256_slli_epi64(a, by),
                           _mm256_srli_epi64(a, 64 - by));
}

/* bly_int_hash() of four keys. */
BLY_FOUR __m256i int_hash_avx2(__m256i key, uint64_t flip)
{
    /* 0xb1 swaps the halves of each word, a rotation by 32. */
    __m256i h = _mm256_xor_si256(_mm256_shuffle_epi32(key, 0xb1),
                                 _mm256_set1_epi64x((long long)flip));
    h = _mm256_xor_si256(
        h, _mm256_xor_si256(rotate_avx2(h, 49), rotate_avx2(h, 24)));
    h = mul_avx2(h, BLY_INT_HASH_C);
    h = _mm256_xor_si256(
        h, _mm256_add_epi64(_mm256_srli_epi64(h, 35), _mm256_set1_epi64x(8)));
    h = mul_avx2(h, BLY_INT_HASH_C);
    return _mm256_xor_si256(h, _mm256_srli_epi64(h, 28));
}

/* bly_int_folded() of four keys. */
BLY_FOUR __m256i int_folded_avx2(__m256i key, uint64_t word)
{
    const __m256i c = _mm256_set1_epi64x((long long)BLY_INT_HASH_C);
    const __m256i c_high =
        _mm256_set1_epi64x((long long)(BLY_INT_HASH_C >> 32));
    const __m256i half = _mm256_set1_epi64x(UINT32_MAX);
    const __m256i x =
        _mm256_xor_si256(key, _mm256_set1_epi64x((long long)word));
    const __m256i x_high = _mm256_srli_epi64(x, 32);
    const __m256i first = _mm256_mul_epu32(x, c);
    const __m256i mid = _mm256_add_epi64(_mm256_mul_epu32(x_high, c),
                                         _mm256_srli_epi64(first, 32));
    const __m256i across = _mm256_add_epi64(_mm256_mul_epu32(x, c_high),
                                            _mm256_and_si256(mid, half));
    const __m256i high =
        _mm256_add_epi64(_mm256_mul_epu32(x_high, c_high),
                         _mm256_add_epi64(_mm256_srli_epi64(mid, 32),
                                          _mm256_srli_epi64(across, 32)));
    /* The low half: the lowest word of `first`, and above it that of
     * `across`. */
    const __m256i low =
        _mm256_blend_epi32(first, _mm256_slli_epi64(across, 32), 0xaa);
    return mul_avx2(_mm256_xor_si256(high, low), BLY_INT_FOLD_C);
}

BLY_FOUR __m256i spread_avx2(__m256i h, uint64_t c)
{
    const __m256i g = mul_avx2(h, c);
    return _mm256_xor_si256(g, _mm256_srli_epi64(g, 32));
}

/* bly_lines_aim() for a group, in two halves. With n < 2^32 lines, h n / 2^64
 * is (high half of h * n + low half of h * n / 2^32) / 2^32; a line has 2^6
 * bytes. */
BLY_FOUR void aim_avx2(const bly_lines *a, const bly_lines_keys *in, size_t i,
                       bly_lines_ring *r)
{
    const __m256i n = _mm256_set1_epi64x((long long)a->nlines);
    const __m256i base = _mm256_set1_epi64x((long long)(uintptr_t)a->words);
    for (size_t t = i; t < i + BLY_LINES_GROUP; t += 4) {
        const size_t slot = t % BLY_LINES_RING;
        __m256i h =
            _mm256_loadu_si256((const __m256i *)(const void *)(in->at + t));
        if (in->of == BLY_LINES_INTS)
            h = int_hash_avx2(h, in->flip);
        else if (in->of == BLY_LINES_FOLDED)
            h = int_folded_avx2(h, in->flip);
        const __m256i low = _mm256_mul_epu32(h, n);
        const __m256i high = _mm256_mul_epu32(_mm256_srli_epi64(h, 32), n);
        const __m256i sum = _mm256_add_epi64(high, _mm256_srli_epi64(low, 32));
        /* Shifted 6 less and cut, a line's number becomes its offset in
         * bytes. */
        const __m256i bytes = _mm256_and_si256(_mm256_srli_epi64(sum, 32 - 6),
                                               _mm256_set1_epi64x(-64));
        _mm256_store_si256((__m256i *)(void *)&r->line[slot],
                           _mm256_add_epi64(base, bytes));
        _mm256_store_si256((__m256i *)(void *)&r->g[slot],
                           spread_avx2(h, BLY_LINES_C1));
        if (a->k == 16)
            _mm256_store_si256((__m256i *)(void *)&r->g2[slot],
                               spread_avx2(h, BLY_LINES_C2));
    }
}

#define ROW(name) bly_lines_##name##_avx2
#define ROW_TARGET BLY_AVX2
#define ROW_LINES UINT32_MAX
#define ROW_LARGE(name) bly_lines_##name##_portable
#define ROW_BURSTS
#define row_aim aim_avx2
#define row_probe bly_line_probe_avx2
#include "engine/lines_walk.h"

/* --------------------------------------------------------------- AVX-512 */

BLY_EIGHT __m512i spread_avx512(__m512i h, uint64_t c)
{
    const __m512i g = _mm512_mullo_epi64(h, _mm512_set1_epi64((long long)c));
    return _mm512_xor_si512(g, _mm512_srli_epi64(g, 32));
}

/* bly_lines_aim() for a group, as above in one piece. */
BLY_EIGHT void aim_avx512(const bly_lines *a, const bly_lines_keys *in,
                          size_t i, bly_lines_ring *r)
{
    const size_t slot = i % BLY_LINES_RING;
    __m512i h = _mm512_loadu_si512(in->at + i);
    if (in->of == BLY_LINES_INTS)
        h = bly_eight_int_hash(h, in->flip);
    else if (in->of == BLY_LINES_FOLDED)
        h = bly_eight_int_folded(h, in->flip);
    const __m512i n = _mm512_set1_epi64((long long)a->nlines);
    const __m512i low = _mm512_mul_epu32(h, n);
    /* The product reads low halves only: swapped in, the high ones need no
     * shift, for which there are fewer units. */
    const __m512i high = _mm512_mul_epu32(_mm512_shuffle_epi32(h, 0xb1), n);
    const __m512i sum = _mm512_add_epi64(high, _mm512_srli_epi64(low, 32));
    const __m512i bytes = _mm512_and_si512(_mm512_srli_epi64(sum, 32 - 6),
                                           _mm512_set1_epi64(-64));
    const __m512i base = _mm512_set1_epi64((long long)(uintptr_t)a->words);
    _mm512_store_si512(&r->line[slot], _mm512_add_epi64(base, bytes));
    _mm512_store_si512(&r->g[slot], spread_avx512(h, BLY_LINES_C1));
    if (a->k == 16)
        _mm512_store_si512(&r->g2[slot], spread_avx512(h, BLY_LINES_C2));
}

#define ROW(name) bly_lines_##name##_avx512
#define ROW_TARGET BLY_AVX512
#define ROW_LINES UINT32_MAX
#define ROW_LARGE(name) bly_lines_##name##_portable
#define row_aim aim_avx512
#define row_probe bly_line_probe_avx512
#include "engine/lines_walk.h"

#define ROW(name) bly_lines_##name##_shared_avx512
#define ROW_TARGET BLY_AVX512
#define ROW_LINES UINT32_MAX
#define ROW_LARGE(name) bly_lines_##name##_shared
#define row_aim aim_avx512
#define row_probe bly_line_share_avx512
#include "engine/lines_walk.h"

#endif
