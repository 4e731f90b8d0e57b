/*
 * x86_line.h - one key in its cache line, with AVX2 and AVX-512
 *
 * A vector makes the mask of a whole line at once, each word by itself
 * (bly_lines_places): shift g right, subtract the number of the word's first
 * bit, and shift a one left by the difference. A count that is not in 0 to 63
 * belongs to another word of the lane, and such a shift gives 0.
 *
 * For k = 16 a word has two lanes, of 32 bits, and the shifts are by 32 bits.
 * AVX-512 holds the line in one register, AVX2 in two.
 *
 * Only for functions with these targets; on other processors this file is
 * empty.
 */
#ifndef BLY_X86_LINE_H
#define BLY_X86_LINE_H

#include "engine/lines.h"
#include "engine/x86_eight.h"

#if BLY_X86

#define BLY_AVX2 __attribute__((target("avx2,bmi2,popcnt")))
#define BLY_FOUR static inline BLY_AVX2 __attribute__((always_inline))

/* Half of the mask: words 0 to 3 or 4 to 7, from a g that is theirs. */
BLY_FOUR __m256i bly_line_mask_avx2(uint64_t g, unsigned k, unsigned half)
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

BLY_FOUR uint64_t bly_line_probe_avx2(uint64_t *line, uint64_t g, uint64_t g2,
                                      unsigned k, bool add)
{
    __m256i *const at = (__m256i *)(void *)line;
    const __m256i low = bly_line_mask_avx2(g, k, 0);
    const __m256i high = bly_line_mask_avx2(k == 16 ? g2 : g, k, 1);
    const __m256i a = _mm256_load_si256(at), b = _mm256_load_si256(at + 1);
    const __m256i missing = _mm256_or_si256(_mm256_andnot_si256(a, low),
                                            _mm256_andnot_si256(b, high));
    if (add) {
        _mm256_store_si256(at, _mm256_or_si256(a, low));
        _mm256_store_si256(at + 1, _mm256_or_si256(b, high));
    }
    return -(uint64_t)_mm256_testz_si256(missing, missing);
}

BLY_EIGHT __m512i bly_line_mask_avx512(uint64_t g, uint64_t g2, unsigned k)
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

/* Looks for the mask in a line. Returns the bitmap of the words that lack a
 * bit, minus one: if there are none, that is ones from bit 8 on. Comparing the
 * mask with 0 would keep it in a mask register, and testing it there takes the
 * unit that the probe needs. */
BLY_EIGHT uint64_t bly_line_look_avx512(uint64_t *line, __m512i mask,
                                        unsigned k, bool add)
{
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

BLY_EIGHT uint64_t bly_line_probe_avx512(uint64_t *line, uint64_t g,
                                         uint64_t g2, unsigned k, bool add)
{
    return bly_line_look_avx512(line, bly_line_mask_avx512(g, g2, k), k, add);
}

/* The probe where other threads may write to the line. It is read as a whole:
 * bits are only ever set, so whatever mixture of old and new words is seen, a
 * bit that is there was set. (In assembly, since for C that is a race.) Words
 * that lack a bit get it, each by one atomic instruction; most lack none once a
 * filter is half full. A key is new if a bit was missing when the line was
 * read. So if two threads add the same new key at once, both may find it new,
 * and at least one does. */
BLY_EIGHT uint64_t bly_line_share_avx512(uint64_t *line, uint64_t g,
                                         uint64_t g2, unsigned k, bool add)
{
    const __m512i mask = bly_line_mask_avx512(g, g2, k);
    __m512i old;
    __asm__ volatile("vmovdqa64 %1, %0"
                     : "=v"(old)
                     : "m"(*(const __m512i *)(const void *)line));
    const __m512i clear = _mm512_andnot_si512(old, mask);
    const uint64_t missing = _mm512_test_epi64_mask(clear, clear);
    if (add && missing) {
        _Alignas(64) uint64_t bits[BLY_LINE_WORDS];
        _mm512_store_si512(bits, mask);
        for (uint64_t left = missing; left; left &= left - 1) {
            const unsigned i = (unsigned)__builtin_ctzll(left);
            bly_word_set_shared(&line[i], bits[i]);
        }
    }
    return missing - 1;
}

/* The probe of one key with k = 8, from its hash. For AVX-512, g is computed in
 * the vector: of the scalar units only one multiplies and two shift, and the
 * hash of the key has kept them busy. */
BLY_FOUR uint64_t bly_line_single_avx2(uint64_t *line, uint64_t h, bool add)
{
    const uint64_t g = bly_lines_spread(h, BLY_LINES_C1);
    return bly_line_probe_avx2(line, g, 0, 8, add);
}

/* A constant in all words, by one load. Compilers make it in a scalar register
 * and broadcast it from there. That is right if a loop keeps it, but here it
 * takes a twentieth of a call. */
BLY_EIGHT __m512i bly_eight_loaded(const uint64_t *constant)
{
    __m512i all;
    __asm__("vpbroadcastq %1, %0" : "=v"(all) : "m"(*constant));
    return all;
}

BLY_EIGHT uint64_t bly_line_single_avx512(uint64_t *line, uint64_t h, bool add)
{
    static const uint64_t c1 = BLY_LINES_C1, one = 1;
    const __m512i p =
        _mm512_mullo_epi64(bly_eight_all(h), bly_eight_loaded(&c1));
    const __m512i g = _mm512_xor_si512(p, _mm512_srli_epi64(p, 32));
    const __m512i x =
        _mm512_srlv_epi64(g, _mm512_load_si512(bly_lines_places_of(8)->by));
    const __m512i mask = _mm512_rolv_epi64(bly_eight_loaded(&one), x);
    return bly_line_look_avx512(line, mask, 8, add);
}

/* Each with its target. */
#define BLY_LINE_TARGETS(X) X(avx512, BLY_AVX512) X(avx2, BLY_AVX2)
/* Of them, those that read a line at once among many writers, too. */
#define BLY_LINE_SHARED_TARGETS(X) X(avx512, BLY_AVX512)
#else
#define BLY_LINE_TARGETS(X)
#define BLY_LINE_SHARED_TARGETS(X)
#endif

#endif
