/*
 * walks.c - the cells of elements in an endless sequence, many at once
 *
 * A step takes a division, a square root and the mixing of a number; AVX-512
 * makes eight steps at once. If floating point cannot determine the next cell
 * for certain, or there is none, the lane is computed again by the definition.
 * Both happen once in some ten thousand steps. Finished walks are put aside and
 * others begun without a branch, since it is unpredictable which these are.
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

static bool walks_portable(bly_walks *w)
{
    bool any = false;
    for (size_t i = 0; i < WALKS_LANES; i++) {
        if (w->at[i] >= w->to) {
            if (w->next == w->n)
                continue;
            w->s[i] = w->first_s[w->next];
            w->at[i] = w->first_at ? w->first_at[w->next] : 0;
            w->id[i] = w->next++;
        }
        w->s[i] += CODED_PHI;
        w->at[i] = coded_next(w->at[i], (bly_mix64(w->s[i]) >> 32) + 1);
        any = true;
        if (w->over_s && w->at[i] >= w->to) {
            w->over_s[w->nover] = w->s[i];
            w->over_at[w->nover] = w->at[i];
            w->over_id[w->nover++] = w->id[i];
        }
    }
    return any;
}

#if BLY_X86
/* 1 / sqrt(x) for x from 2^-32 to 1. The processor guesses y with an error of
 * 2^-14; with e = 1 - x y^2, below 2^-12.9, the root is
 *
 *     y (1 - e)^(-1/2) = y (1 + 1/2 e + 3/8 e^2 + 5/16 e^3 + 35/128 e^4 ...)
 *
 * and four terms leave 2^-53, so that rounding is all there is: some 2^-51,
 * which moves a cell below 2^30 by 2^-21. A quarter of the time of a square
 * root and a division. */
BLY_EIGHT __m512d share_eight(__m512d x)
{
    const __m512d y = _mm512_rsqrt14_pd(x);
    const __m512d e =
        _mm512_fnmadd_pd(_mm512_mul_pd(x, y), y, _mm512_set1_pd(1));
    __m512d sum =
        _mm512_fmadd_pd(e, _mm512_set1_pd(0.3125), _mm512_set1_pd(0.375));
    sum = _mm512_fmadd_pd(sum, e, _mm512_set1_pd(0.5));
    return _mm512_fmadd_pd(sum, _mm512_mul_pd(e, y), y);
}

/* Store the lanes of a mask, one behind the other. Garbage is written behind
 * them, since a store of all eight lanes is faster than one of some. */
BLY_EIGHT void put_lanes(uint64_t *to, __mmask8 lanes, __m512i x)
{
    _mm512_storeu_si512(to, _mm512_maskz_compress_epi64(lanes, x));
}

BLY_AVX512 static bool walks_avx512(bly_walks *w)
{
    const __m512d half = _mm512_set1_pd(2.5), near = _mm512_set1_pd(0x1p-16);
    const __m512d far = _mm512_set1_pd(1 - 0x1p-16);
    const __m512d most = _mm512_set1_pd((double)BLY_CODED_MOST_SYMBOLS);
    const __m512i count = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i to = bly_eight_all(w->to);
    size_t next = w->next, nover = w->nover;
    unsigned any = 0;
    for (size_t i = 0; i < WALKS_LANES; i += 8) {
        __m512i state = _mm512_loadu_si512(w->s + i);
        __m512i from = _mm512_loadu_si512(w->at + i);
        __m512i id = _mm512_loadu_si512(w->id + i);
        __mmask8 going = _mm512_cmplt_epu64_mask(from, to);
        /* Take the first walks that wait, as many as there are free lanes. */
        const size_t left = w->n - next;
        const unsigned some = left < 8 ? (1u << left) - 1 : 0xff;
        const __mmask8 new = (__mmask8)_pdep_u32(some, (unsigned char)~going);
        state = _mm512_mask_expand_epi64(state, new,
                                         _mm512_loadu_si512(w->first_s + next));
        from = w->first_at
                   ? _mm512_mask_expand_epi64(
                         from, new, _mm512_loadu_si512(w->first_at + next))
                   : _mm512_mask_mov_epi64(from, new, _mm512_setzero_si512());
        id = _mm512_mask_expand_epi64(
            id, new, _mm512_add_epi64(bly_eight_all(next), count));
        next += (unsigned)__builtin_popcount(new);
        going |= new;
        any |= going;

        state = _mm512_add_epi64(state, bly_eight_all(CODED_PHI));
        const __m512i r = _mm512_add_epi64(
            _mm512_srli_epi64(bly_eight_mix(state), 32), bly_eight_all(1));
        const __m512d share = share_eight(
            _mm512_mul_pd(_mm512_cvtepu64_pd(r), _mm512_set1_pd(0x1p-32)));
        const __m512d j = _mm512_fmsub_pd(
            _mm512_add_pd(_mm512_cvtepu64_pd(from), half), share, half);
        const __m512i whole = _mm512_cvttpd_epu64(j);
        const __m512d rest = _mm512_sub_pd(j, _mm512_cvtepu64_pd(whole));
        const __mmask8 sure = _mm512_cmp_pd_mask(j, most, _CMP_LT_OQ) &
                              _mm512_cmp_pd_mask(rest, near, _CMP_GT_OQ) &
                              _mm512_cmp_pd_mask(rest, far, _CMP_LT_OQ);
        __m512i then = _mm512_add_epi64(whole, bly_eight_all(1));
        unsigned again = (unsigned)going & ~(unsigned)sure;
        if (again) {
            uint64_t draws[8], at[8];
            _mm512_storeu_si512(draws, r);
            _mm512_storeu_si512(at, from);
            for (; again; again &= again - 1) {
                const unsigned k = (unsigned)__builtin_ctz(again);
                at[k] = coded_next(at[k], draws[k]);
            }
            then = _mm512_mask_mov_epi64(_mm512_loadu_si512(at), sure, then);
        }
        then = _mm512_mask_mov_epi64(bly_eight_all(CODED_END), going, then);
        _mm512_storeu_si512(w->s + i, state);
        _mm512_storeu_si512(w->at + i, then);
        _mm512_storeu_si512(w->id + i, id);
        if (w->over_s) {
            const __mmask8 over = _mm512_mask_cmpge_epu64_mask(going, then, to);
            put_lanes(w->over_s + nover, over, state);
            put_lanes(w->over_at + nover, over, then);
            put_lanes(w->over_id + nover, over, id);
            nover += (unsigned)__builtin_popcount(over);
        }
    }
    w->next = next;
    w->nover = nover;
    return any;
}
#endif

const bly_walks_row bly_walks_rows[] = {
#if BLY_X86
    { "avx512", BLY_CPU_AVX512, walks_avx512 },
#endif
    { "portable", 0, walks_portable },
};

BLY_CHOOSE(walks)
