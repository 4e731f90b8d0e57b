/*
 * x86_peel.c - slots of eight keys at once, with AVX-512
 *
 * Segments, windows and slots are below 2^32, as bly_eight_scale() wants. The
 * slots of eight keys cost what those of one do; the cells are gathered.
 */
#include "kinds/peel.h"

#include "core/x86_eight.h"

#if BLY_X86

/* One of the later slots of fuse. */
BLY_EIGHT __m512i peel_later(__m512i at, __m512i bits, __m512i mask)
{
    return _mm512_xor_si512(at, _mm512_and_si512(bits, mask));
}

BLY_EIGHT void peel_eight(const bly_peel *p, const unsigned char *data,
                          const uint64_t *h, bly_peel_eight *out,
                          unsigned arity, bool fuse)
{
    const __m512i hash = _mm512_loadu_si512(h);
    const __m512i c = bly_eight_all(BLY_POWERS_C),
                  segment = bly_eight_all(p->segment);
    __m512i seed = bly_eight_all(bly_load64(data)),
            base = _mm512_setzero_si512();
    if (p->nshards > 1) {
        const __m512i shard = bly_eight_scale(hash, bly_eight_all(p->nshards));
        seed = _mm512_i64gather_epi64(shard, data, 8);
        base = _mm512_mul_epu32(shard, bly_eight_all(p->nslots));
    }
    __m512i g =
        _mm512_andnot_si512(bly_eight_all(BLY_PEEL_LOW),
                            bly_eight_mix(_mm512_xor_si512(hash, seed)));
    _mm512_store_si512(out->g, g);
    if (fuse) {
        const __m512i mask = bly_eight_all(p->segment - 1);
        const __m512i first =
            bly_eight_scale(g, bly_eight_all(p->windows * p->segment));
        const __m512i x = _mm512_mullo_epi64(g, c);
        __m512i at = first;
        _mm512_store_si512(out->slot[0], _mm512_add_epi64(base, at));
        at = _mm512_add_epi64(at, segment);
        _mm512_store_si512(
            out->slot[1],
            _mm512_add_epi64(base,
                             peel_later(at, _mm512_srli_epi64(x, 46), mask)));
        at = _mm512_add_epi64(at, segment);
        _mm512_store_si512(
            out->slot[2],
            _mm512_add_epi64(base,
                             peel_later(at, _mm512_srli_epi64(x, 28), mask)));
        at = _mm512_add_epi64(at, segment);
        if (arity == 4)
            _mm512_store_si512(
                out->slot[3],
                _mm512_add_epi64(
                    base, peel_later(at, _mm512_srli_epi64(x, 10), mask)));
        return;
    }
    for (unsigned i = 0; i < arity; i++) {
        _mm512_store_si512(out->slot[i],
                           _mm512_add_epi64(base, bly_eight_scale(g, segment)));
        base = _mm512_add_epi64(base, segment);
        g = _mm512_mullo_epi64(g, c);
    }
}

BLY_AVX512 void bly_peel_find_avx512(const bly_peel *p,
                                     const unsigned char *data,
                                     const uint64_t *h, bly_peel_eight *out)
{
    if (!p->fuse)
        peel_eight(p, data, h, out, 3, false);
    else if (p->arity == 3)
        peel_eight(p, data, h, out, 3, true);
    else
        peel_eight(p, data, h, out, 4, true);
}

/* Cells of `width` bytes of eight keys: the last bytes of the 4 that end with
 * the cell, since what lies before the cells can be read, and what lies behind
 * them cannot. */
BLY_EIGHT __m256i cells_eight(const unsigned char *cells, const uint64_t *slot,
                              unsigned width)
{
    const __m512i at = _mm512_load_si512(slot);
    if (width == 1)
        return _mm512_i64gather_epi32(at, cells - 3, 1);
    if (width == 2)
        return _mm512_i64gather_epi32(at, cells - 2, 2);
    return _mm512_i64gather_epi32(at, cells, 4);
}

BLY_EIGHT uint64_t prints_eight(const bly_peel_eight *keys,
                                const unsigned char *cells, unsigned width,
                                unsigned arity)
{
    __m256i sum = cells_eight(cells, keys->slot[0], width);
    for (unsigned k = 1; k < arity; k++)
        sum = _mm256_xor_si256(sum, cells_eight(cells, keys->slot[k], width));
    const __m512i print =
        _mm512_mullo_epi64(_mm512_load_si512(keys->g),
                           bly_eight_all(UINT64_C(0x9e3779b97f4a7c15)));
    const __m256i top = _mm512_cvtepi64_epi32(_mm512_srli_epi64(print, 32));
    /* The top bytes alone: what is below them, a shift drops. */
    return _mm256_cmpeq_epi32_mask(
        _mm256_srli_epi32(_mm256_xor_si256(sum, top), (int)(32 - 8 * width)),
        _mm256_setzero_si256());
}

BLY_EIGHT void prints_has_eights(const bly_peel *p, const unsigned char *data,
                                 unsigned width, const uint64_t *h,
                                 size_t ngroups, uint64_t *maybe,
                                 unsigned arity, bool fuse)
{
    const unsigned char *const cells = data + bly_peel_head(p->nshards);
    const bly_peel geometry = *p;
    bly_peel_eight ring[BLY_PEEL_RING];
    uint64_t bits = 0;
    for (size_t in = 0; in < ngroups + BLY_PEEL_FAR; in++) {
        if (in < ngroups) {
            bly_peel_eight *const last = &ring[in % BLY_PEEL_RING];
            peel_eight(&geometry, data, h + 8 * in, last, arity, fuse);
            bly_peel_fetch(last, 8, arity, cells, 8 * width);
        }
        if (in < BLY_PEEL_FAR)
            continue;
        const size_t at = in - BLY_PEEL_FAR;
        bits |= prints_eight(&ring[at % BLY_PEEL_RING], cells, width, arity)
                << at % 8 * 8;
        if (at % 8 == 7) {
            maybe[at / 8] = bits;
            bits = 0;
        }
    }
}

BLY_AVX512 size_t bly_peel_prints_avx512(const bly_peel *p,
                                         const unsigned char *data,
                                         unsigned width, const uint64_t *h,
                                         size_t n, uint64_t *maybe)
{
    const size_t ngroups = n / 64 * 8;
    if (p->nshards > UINT32_MAX || !ngroups)
        return 0;
#define HAS(arity, fuse)                                                 \
    (width == 1                                                          \
         ? prints_has_eights(p, data, 1, h, ngroups, maybe, arity, fuse) \
     : width == 2                                                        \
         ? prints_has_eights(p, data, 2, h, ngroups, maybe, arity, fuse) \
         : prints_has_eights(p, data, 4, h, ngroups, maybe, arity, fuse))
    if (!p->fuse)
        HAS(3, false);
    else if (p->arity == 3)
        HAS(3, true);
    else
        HAS(4, true);
#undef HAS
    return 8 * ngroups;
}

#else
typedef int bly_x86_peel_is_empty; /* C has no empty file */
#endif
