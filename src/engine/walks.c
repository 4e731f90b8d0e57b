/*
 * walks.c - the cells of elements in a sequence without end, many at once
 *
 * A step is a division and a square root, and mixing a number; eight at once
 * with AVX-512. Where floating point cannot tell the next cell for certain,
 * or there is none, the lane is done again by the definition: both happen once
 * in some ten thousand steps.
 */
#include "engine/walks.h"
#include "engine/x86_eight.h"

uint64_t bly_coded_exact(uint64_t i, uint64_t guess, uint64_t r)
{
    if (guess <= i)
        guess = i + 1;
    while (!coded_passes(i, guess, r))
        guess++;
    while (guess > i + 1 && coded_passes(i, guess - 1, r))
        guess--;
    return guess;
}

static void walks_portable(uint64_t *s, uint64_t *at, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        s[i] += CODED_PHI;
        at[i] = coded_next(at[i], (bly_mix64(s[i]) >> 32) + 1);
    }
}

#if BLY_X86
BLY_AVX512 static void walks_avx512(uint64_t *s, uint64_t *at, size_t n)
{
    const __m512d half = _mm512_set1_pd(2.5), near = _mm512_set1_pd(0x1p-16);
    const __m512d far = _mm512_set1_pd(1 - 0x1p-16);
    const __m512d most = _mm512_set1_pd((double)BLY_CODED_MOST_SYMBOLS);
    for (size_t i = 0; i < n; i += 8) {
        const __mmask8 here =
            n - i < 8 ? (__mmask8)((1u << (n - i)) - 1) : (__mmask8)0xff;
        const __m512i state = _mm512_add_epi64(
            _mm512_maskz_loadu_epi64(here, s + i), bly_eight_all(CODED_PHI));
        const __m512i from = _mm512_maskz_loadu_epi64(here, at + i);
        const __m512i r = _mm512_add_epi64(
            _mm512_srli_epi64(bly_eight_mix(state), 32), bly_eight_all(1));
        const __m512d share = _mm512_sqrt_pd(
            _mm512_div_pd(_mm512_set1_pd(0x1p32), _mm512_cvtepu64_pd(r)));
        const __m512d j = _mm512_sub_pd(
            _mm512_mul_pd(_mm512_add_pd(_mm512_cvtepu64_pd(from), half), share),
            half);
        const __m512i whole = _mm512_cvttpd_epu64(j);
        const __m512d rest = _mm512_sub_pd(j, _mm512_cvtepu64_pd(whole));
        const __mmask8 sure = _mm512_cmp_pd_mask(j, most, _CMP_LT_OQ) &
                              _mm512_cmp_pd_mask(rest, near, _CMP_GT_OQ) &
                              _mm512_cmp_pd_mask(rest, far, _CMP_LT_OQ);
        _mm512_mask_storeu_epi64(s + i, here, state);
        unsigned left = (unsigned)here & ~(unsigned)sure;
        if (left) {
            uint64_t draws[8], were[8];
            _mm512_storeu_si512(draws, r);
            _mm512_storeu_si512(were, from);
            for (; left; left &= left - 1) {
                const unsigned k = (unsigned)__builtin_ctz(left);
                at[i + k] = coded_next(were[k], draws[k]);
            }
        }
        _mm512_mask_storeu_epi64(at + i, here & sure,
                                 _mm512_add_epi64(whole, bly_eight_all(1)));
    }
}
#endif

const bly_walks_row bly_walks_rows[] = {
#if BLY_X86
    { "avx512", BLY_CPU_AVX512, walks_avx512 },
#endif
    { "portable", 0, walks_portable },
};

BLY_CHOOSE(walks)
