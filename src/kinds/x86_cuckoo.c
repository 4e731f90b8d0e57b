/*
 * x86_cuckoo.c - asking for eight keys at once, with AVX-512
 *
 * Of cuckoo filters whose buckets are one word of plain slots and fewer than
 * 2^32. The buckets of eight keys are gathered and compared as one is in
 * cuckoo_table.h.
 *
 * The keys wait in a ring of vectors: where their buckets begin, and what a
 * bucket full of their fingerprint would be.
 */
#include "kinds/cuckoo_table.h"

#include "core/x86_eight.h"

#if BLY_X86

/* Groups of eight keys: in the ring, and between fetching and asking. */
#define CUCKOO_GROUPS 16
#define CUCKOO_GROUPS_FAR 8
#define CUCKOO_GROUPS_NEAR 1

typedef struct cuckoo_eight {
    uint64_t byte1[8], byte2[8]; /* of the buckets' first bits */
    uint64_t shift1[8], shift2[8];
    uint64_t full[8]; /* the fingerprint in every slot */
} cuckoo_eight;

/* What is the same for all keys, in every lane. */
typedef struct cuckoo_lanes {
    __m512i nb, half, nprints, width, nbits, ones, highs;
} cuckoo_lanes;

/* bly_cuckoo_locate() of eight hashes. */
BLY_EIGHT void cuckoo_locate_eight(const cuckoo_lanes *c, __m512i h,
                                   __m512i *at1, __m512i *at2, __m512i *fp)
{
    const __m512i one = bly_eight_all(1);
    const __m512i g = _mm512_srli_epi64(
        _mm512_mullo_epi64(h, bly_eight_all(UINT64_C(0x9e3779b97f4a7c15))), 32);
    *fp = _mm512_add_epi64(
        one, _mm512_srli_epi64(_mm512_mul_epu32(g, c->nprints), 32));
    *at1 = _mm512_mul_epu32(bly_eight_scale(h, c->nb), c->width);
    const __m512i half = bly_eight_scale(bly_eight_mix(*fp), c->half);
    const __m512i sum = _mm512_add_epi64(one, _mm512_add_epi64(half, half));
    const __m512i other =
        _mm512_sub_epi64(_mm512_mul_epu32(sum, c->width), *at1);
    *at2 = _mm512_mask_add_epi64(other, _mm512_movepi64_mask(other), other,
                                 c->nbits);
}

BLY_EIGHT void cuckoo_enter_eight(const cuckoo_lanes *c, const uint64_t *h,
                                  cuckoo_eight *out)
{
    const __m512i seven = bly_eight_all(7);
    __m512i at1, at2, fp;
    cuckoo_locate_eight(c, _mm512_loadu_si512(h), &at1, &at2, &fp);
    _mm512_store_si512(out->byte1, _mm512_srli_epi64(at1, 3));
    _mm512_store_si512(out->byte2, _mm512_srli_epi64(at2, 3));
    _mm512_store_si512(out->shift1, _mm512_and_si512(at1, seven));
    _mm512_store_si512(out->shift2, _mm512_and_si512(at2, seven));
    _mm512_store_si512(out->full, _mm512_mullo_epi64(fp, c->ones));
}

BLY_EIGHT cuckoo_lanes cuckoo_lanes_of(const bly_cuckoo_table *t)
{
    return (cuckoo_lanes){ bly_eight_all(t->nb),      bly_eight_all(t->nb / 2),
                           bly_eight_all(t->nprints), bly_eight_all(t->width),
                           bly_eight_all(t->nbits),   bly_eight_all(t->ones),
                           bly_eight_all(t->highs) };
}

BLY_AVX512 void bly_cuckoo_locate_avx512(const bly_cuckoo_table *t,
                                         const uint64_t *h, uint64_t *at1,
                                         uint64_t *at2, uint64_t *fp)
{
    const cuckoo_lanes c = cuckoo_lanes_of(t);
    __m512i a, b, p;
    cuckoo_locate_eight(&c, _mm512_loadu_si512(h), &a, &b, &p);
    _mm512_storeu_si512(at1, a);
    _mm512_storeu_si512(at2, b);
    _mm512_storeu_si512(fp, p);
}

/* bly_cuckoo_hits() in eight words. */
BLY_EIGHT __m512i cuckoo_hits_eight(const cuckoo_lanes *c,
                                    const unsigned char *data,
                                    const uint64_t *byte, const uint64_t *shift,
                                    __m512i full)
{
    const __m512i words =
        _mm512_i64gather_epi64(_mm512_load_si512(byte), data, 1);
    const __m512i x = _mm512_xor_si512(
        _mm512_srlv_epi64(words, _mm512_load_si512(shift)), full);
    return _mm512_andnot_si512(x, _mm512_sub_epi64(x, c->ones));
}

BLY_EIGHT uint64_t cuckoo_ask_eight(const cuckoo_lanes *c,
                                    const unsigned char *data,
                                    const cuckoo_eight *keys)
{
    const __m512i full = _mm512_load_si512(keys->full);
    const __m512i in1 =
        cuckoo_hits_eight(c, data, keys->byte1, keys->shift1, full);
    const __m512i in2 =
        cuckoo_hits_eight(c, data, keys->byte2, keys->shift2, full);
    return _mm512_test_epi64_mask(_mm512_or_si512(in1, in2), c->highs);
}

BLY_AVX512 size_t bly_cuckoo_has_avx512(const bly_cuckoo_table *t,
                                        const uint64_t *h, size_t n,
                                        uint64_t *maybe)
{
    const size_t ngroups = n / 64 * 8;
    if (t->nb > BLY_CUCKOO_AVX512_BUCKETS)
        return 0;
    _Alignas(64) cuckoo_eight ring[CUCKOO_GROUPS];
    const cuckoo_lanes c = cuckoo_lanes_of(t);
    uint64_t bits = 0;
    for (size_t i = 0; i < ngroups + CUCKOO_GROUPS_FAR; i++) {
        if (i < ngroups) {
            cuckoo_eight *const last = &ring[i % CUCKOO_GROUPS];
            cuckoo_enter_eight(&c, h + 8 * i, last);
            for (unsigned j = 0; j < 8; j++) {
                __builtin_prefetch(t->data + last->byte1[j], 0, 2);
                __builtin_prefetch(t->data + last->byte2[j], 0, 2);
            }
        }
        if (i < CUCKOO_GROUPS_FAR)
            continue;
        const cuckoo_eight *near =
            &ring[(i - CUCKOO_GROUPS_FAR + CUCKOO_GROUPS_NEAR) % CUCKOO_GROUPS];
        for (unsigned j = 0; j < 8; j++) {
            __builtin_prefetch(t->data + near->byte1[j], 0, 3);
            __builtin_prefetch(t->data + near->byte2[j], 0, 3);
        }
        const size_t at = i - CUCKOO_GROUPS_FAR;
        bits |= cuckoo_ask_eight(&c, t->data, &ring[at % CUCKOO_GROUPS])
                << (at % 8 * 8);
        if (at % 8 == 7) {
            maybe[at / 8] |= bits;
            bits = 0;
        }
    }
    return ngroups * 8;
}

#else
typedef int bly_x86_cuckoo_is_empty; /* C has no empty file */
#endif
