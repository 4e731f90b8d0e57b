/*
 * x86_lines.c - keys in cache lines, with AVX2 and AVX-512
 *
 * A vector makes the mask of a whole line at once, each word by itself
 * (bly_lines_places): shift g right, subtract the number of the word's first
 * bit, and shift a one left by the difference. A count that is not in 0 to 63
 * belongs to another word of the lane, and such a shift gives 0.
 *
 * For k = 16 a word has two lanes, of 32 bits, and the shifts are by 32 bits.
 * AVX-512 holds the line in one register, AVX2 in two.
 */
#include "engine/lines.h"
#include "engine/x86_eight.h"

#if BLY_X86

/* ------------------------------------------------------------------ AVX2 */

#define AVX2 __attribute__((target("avx2,bmi2,popcnt")))
#define AVX2_INLINE AVX2 static inline __attribute__((always_inline))

/* The low 64 bits of a * c, for which AVX2 has no instruction. The product of
 * the high halves lies above them and is left out. */
AVX2_INLINE __m256i mul_avx2(__m256i a, uint64_t c)
{
    const __m256i low = _mm256_set1_epi64x((long long)c);
    const __m256i high = _mm256_set1_epi64x((long long)(c >> 32));
    const __m256i across =
        _mm256_add_epi64(_mm256_mul_epu32(_mm256_srli_epi64(a, 32), low),
                         _mm256_mul_epu32(a, high));
    return _mm256_add_epi64(_mm256_mul_epu32(a, low),
                            _mm256_slli_epi64(across, 32));
}

AVX2_INLINE __m256i rotate_avx2(__m256i a, int by)
{
    return _mm256_or_si256(_mm256_slli_epi64(a, by),
                           _mm256_srli_epi64(a, 64 - by));
}

/* bly_int_hash() of four keys. */
AVX2_INLINE __m256i int_hash_avx2(__m256i key, uint64_t flip)
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

AVX2_INLINE __m256i spread_avx2(__m256i h, uint64_t c)
{
    const __m256i g = mul_avx2(h, c);
    return _mm256_xor_si256(g, _mm256_srli_epi64(g, 32));
}

/* bly_lines_aim() for a group, in two halves. With n < 2^32 lines, h n / 2^64
 * is (high half of h * n + low half of h * n / 2^32) / 2^32; a line has 2^6
 * bytes. */
AVX2_INLINE void aim_avx2(const bly_lines *a, const bly_lines_keys *in,
                          size_t i, bly_lines_ring *r)
{
    const __m256i n = _mm256_set1_epi64x((long long)a->nlines);
    const __m256i base = _mm256_set1_epi64x((long long)(uintptr_t)a->words);
    for (size_t t = i; t < i + BLY_LINES_GROUP; t += 4) {
        const size_t slot = t % BLY_LINES_RING;
        __m256i h =
            _mm256_loadu_si256((const __m256i *)(const void *)(in->at + t));
        if (in->ints)
            h = int_hash_avx2(h, in->flip);
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

/* Half of the mask: words 0 to 3 or 4 to 7, from a g that is theirs. */
AVX2_INLINE __m256i mask_avx2(uint64_t g, unsigned k, unsigned half)
{
    const bly_lines_places *const place = bly_lines_places_of(k);
    const __m256i by =
        _mm256_load_si256((const __m256i *)(const void *)&place->by[4 * half]);
    const __m256i first = _mm256_load_si256(
        (const __m256i *)(const void *)&place->first[4 * half]);
    const __m256i x = _mm256_srlv_epi64(_mm256_set1_epi64x((long long)g), by);
    if (k == 16) {
        /* The lane of the lower half has its five bits at the bottom of x,
         * and that of the upper half the next five: move those up by 32 - 5.
         * AVX2 has no rotation and gives 0 for long shifts, so other bits
         * must go. */
        const __m256i both =
            _mm256_blend_epi32(x, _mm256_slli_epi64(x, 32 - 5), 0xaa);
        return _mm256_sllv_epi32(_mm256_set1_epi32(1),
                                 _mm256_and_si256(both, _mm256_set1_epi32(31)));
    }
    /* For k = 8 a word is a lane, first is 0, and nothing need be
     * subtracted. */
    const __m256i bit =
        _mm256_and_si256(x, _mm256_set1_epi64x(BLY_LINE_BITS / k - 1));
    return _mm256_sllv_epi64(_mm256_set1_epi64x(1),
                             k == 8 ? bit : _mm256_sub_epi64(bit, first));
}

AVX2_INLINE uint64_t probe_avx2(uint64_t *line, uint64_t g, uint64_t g2,
                                unsigned k, bool add)
{
    __m256i *const at = (__m256i *)(void *)line;
    const __m256i low = mask_avx2(g, k, 0);
    const __m256i high = mask_avx2(k == 16 ? g2 : g, k, 1);
    const __m256i a = _mm256_load_si256(at), b = _mm256_load_si256(at + 1);
    const __m256i missing = _mm256_or_si256(_mm256_andnot_si256(a, low),
                                            _mm256_andnot_si256(b, high));
    if (add) {
        _mm256_store_si256(at, _mm256_or_si256(a, low));
        _mm256_store_si256(at + 1, _mm256_or_si256(b, high));
    }
    return -(uint64_t)_mm256_testz_si256(missing, missing);
}

#define ROW(name) bly_lines_##name##_avx2
#define ROW_TARGET AVX2
#define ROW_LINES UINT32_MAX
#define ROW_BURSTS
#define row_aim aim_avx2
#define row_probe probe_avx2
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
    if (in->ints)
        h = bly_eight_int_hash(h, in->flip);
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

BLY_EIGHT __m512i mask_avx512(uint64_t g, uint64_t g2, unsigned k)
{
    const bly_lines_places *const place = bly_lines_places_of(k);
    const __m512i by = _mm512_load_si512(place->by);
    const __m512i first = _mm512_load_si512(place->first);
    __m512i x = _mm512_set1_epi64((long long)g);
    if (k == 16)
        x = _mm512_mask_set1_epi64(x, 0xf0, (long long)g2);
    x = _mm512_srlv_epi64(x, by);
    /* A rotation takes its count modulo the width, so the bits above need not
     * be cut off. With k below 8 they must be: there the shift has to give 0
     * for the other words of the lane. */
    if (k == 16) {
        const __m512i both =
            _mm512_mask_mov_epi32(x, 0xaaaa, _mm512_slli_epi64(x, 32 - 5));
        return _mm512_rolv_epi32(_mm512_set1_epi32(1), both);
    }
    if (k == 8)
        return _mm512_rolv_epi64(_mm512_set1_epi64(1), x);
    const __m512i bit =
        _mm512_and_si512(x, _mm512_set1_epi64(BLY_LINE_BITS / k - 1));
    return _mm512_sllv_epi64(_mm512_set1_epi64(1),
                             _mm512_sub_epi64(bit, first));
}

/* Returns the mask of the words that lack a bit, less one: where there are none
 * that is ones from bit 8 on. Comparing the mask with 0 would keep it in a mask
 * register, and testing it there takes the unit that the probe needs. */
BLY_EIGHT uint64_t probe_avx512(uint64_t *line, uint64_t g, uint64_t g2,
                                unsigned k, bool add)
{
    const __m512i mask = mask_avx512(g, g2, k);
    const __m512i old = _mm512_load_si512(line);
    uint64_t missing;
    /* With k = 8 each word has one bit of the mask: it is missing where mask
     * and old have none in common. Otherwise a word may have none or two. */
    if (k == 8) {
        missing = _mm512_testn_epi64_mask(mask, old);
    } else {
        const __m512i clear = _mm512_andnot_si512(old, mask);
        missing = _mm512_test_epi64_mask(clear, clear);
    }
    if (add)
        _mm512_store_si512(line, _mm512_or_si512(old, mask));
    return missing - 1;
}

#define ROW(name) bly_lines_##name##_avx512
#define ROW_TARGET BLY_AVX512
#define ROW_LINES UINT32_MAX
#define row_aim aim_avx512
#define row_probe probe_avx512
#include "engine/lines_walk.h"

#endif
