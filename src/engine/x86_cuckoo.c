/*
 * x86_cuckoo.c - cuckoo filters with AVX-512, eight keys at once
 *
 * For tables of fewer than 2^32 buckets, each of which is one word of plain
 * slots. Eight keys are located at once and their buckets fetched. Meanwhile
 * the keys wait in a ring of vectors, which holds where their buckets begin,
 * and a word with their fingerprint in every slot.
 *
 * A query compares the buckets of eight keys at once, as cuckoo_table.h does
 * for one. Keys are added and removed one after the other, since they may share
 * buckets; choosing the bucket and the slot costs no branch.
 *
 * A bucket is loaded as a word of eight bytes that begins at any byte, so every
 * ninth word reaches into the next cache line, which must be fetched too.
 *
 * If both buckets of a new key are full, the eight fingerprints in them are
 * located at once. If one of their other buckets has room, as happens five
 * times out of six at a load of 0.95, the search of cuckoo_table.c would have
 * ended there as well.
 */
#include "engine/cuckoo_table.h"

#include "engine/x86_eight.h"

#if BLY_X86

/* Groups of eight keys: in the ring, and between fetching and use. */
#define CUCKOO_GROUPS 16
#define CUCKOO_GROUPS_FAR 8

typedef struct cuckoo_eight {
    uint64_t byte1[8], byte2[8]; /* of the buckets' first bits */
    uint64_t shift1[8], shift2[8];
    uint64_t full[8]; /* the fingerprint in every slot */
} cuckoo_eight;

/* What is the same for all keys, in every lane. */
typedef struct cuckoo_lanes {
    __m512i nb, half, nprints, width, nbits, ones, highs;
    bool light;
} cuckoo_lanes;

BLY_EIGHT cuckoo_lanes cuckoo_lanes_of(const bly_cuckoo_table *t)
{
    return (cuckoo_lanes){ bly_eight_all(t->nb),      bly_eight_all(t->nb / 2),
                           bly_eight_all(t->nprints), bly_eight_all(t->width),
                           bly_eight_all(t->nbits),   bly_eight_all(t->ones),
                           bly_eight_all(t->highs),   t->light };
}

/* bly_cuckoo_other() of eight fingerprints. */
BLY_EIGHT __m512i cuckoo_other_eight(const cuckoo_lanes *c, __m512i at,
                                     __m512i fp)
{
    const __m512i mixed =
        c->light ? _mm512_mullo_epi64(fp, bly_eight_all(BLY_CUCKOO_C))
                 : bly_eight_mix(fp);
    const __m512i half = bly_eight_scale(mixed, c->half);
    const __m512i sum =
        _mm512_add_epi64(bly_eight_all(1), _mm512_add_epi64(half, half));
    /* The sum is below nb and the width small, so a product of 32-bit halves is
     * the whole one. */
    const __m512i other = _mm512_sub_epi64(_mm512_mul_epu32(sum, c->width), at);
    /* A negative lane is less than one table below 0: add its bits. */
    return _mm512_mask_add_epi64(other, _mm512_movepi64_mask(other), other,
                                 c->nbits);
}

/* bly_cuckoo_locate() of eight hashes. */
BLY_EIGHT void cuckoo_locate_eight(const cuckoo_lanes *c, __m512i h,
                                   __m512i *at1, __m512i *at2, __m512i *fp)
{
    const __m512i g = _mm512_srli_epi64(
        _mm512_mullo_epi64(h, bly_eight_all(BLY_CUCKOO_C)), 32);
    *fp = _mm512_add_epi64(
        bly_eight_all(1),
        _mm512_srli_epi64(_mm512_mul_epu32(g, c->nprints), 32));
    *at1 = _mm512_mul_epu32(bly_eight_scale(h, c->nb), c->width);
    *at2 = cuckoo_other_eight(c, *at1, *fp);
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

/* ------------------------------------------------------------------ fetch */

/* Lines of second halves that are fetched for eight keys. There are 1.75 on
 * average, and more than these in one group of forty. */
#define CUCKOO_ENDS 4

/* Of sixteen words that begin in these bytes, some end in the next cache line:
 * fetch those lines. A line's number has 32 bits. */
BLY_EIGHT void cuckoo_fetch_ends(const unsigned char *data, __m512i byte1,
                                 __m512i byte2)
{
    const __mmask16 second = 0xaaaa; /* the upper half of each lane */
    _Alignas(64) uint32_t ends[16];
    /* Both sets of eight in one vector of sixteen halves: those of byte1 in the
     * even halves, those of byte2 in the odd ones. */
    const __m512i lines = _mm512_mask_mov_epi32(
        _mm512_srli_epi64(byte1, 6), second, _mm512_slli_epi64(byte2, 32 - 6));
    const __m512i in_line = _mm512_and_si512(
        _mm512_mask_mov_epi32(byte1, second, _mm512_slli_epi64(byte2, 32)),
        _mm512_set1_epi32(63));
    /* Eight bytes that start at byte 57 or later cross the end of their
     * line. */
    const __mmask16 split =
        _mm512_cmpgt_epi32_mask(in_line, _mm512_set1_epi32(64 - 8));
    /* The lines of split words come first and zeros fill up the rest. A few
     * useless prefetches, always of the same line, avoid a loop of unknown
     * length. */
    _mm512_store_si512(ends, _mm512_maskz_compress_epi32(split, lines));
    BLY_UNROLL(4)
    for (unsigned j = 0; j < CUCKOO_ENDS; j++)
        __builtin_prefetch(data + ((uint64_t)ends[j] + 1) * 64, 0, 2);
}

/* Locate eight keys, and fetch their buckets into L2. */
BLY_EIGHT void cuckoo_enter_eight(const cuckoo_lanes *c,
                                  const unsigned char *data, __m512i h,
                                  cuckoo_eight *out)
{
    const __m512i seven = bly_eight_all(7);
    __m512i at1, at2, fp;
    cuckoo_locate_eight(c, h, &at1, &at2, &fp);
    const __m512i byte1 = _mm512_srli_epi64(at1, 3);
    const __m512i byte2 = _mm512_srli_epi64(at2, 3);
    _mm512_store_si512(out->byte1, byte1);
    _mm512_store_si512(out->byte2, byte2);
    _mm512_store_si512(out->shift1, _mm512_and_si512(at1, seven));
    _mm512_store_si512(out->shift2, _mm512_and_si512(at2, seven));
    _mm512_store_si512(out->full, _mm512_mullo_epi64(fp, c->ones));
    BLY_UNROLL(8)
    for (unsigned j = 0; j < 8; j++) {
        __builtin_prefetch(data + out->byte1[j], 0, 2);
        __builtin_prefetch(data + out->byte2[j], 0, 2);
    }
    cuckoo_fetch_ends(data, byte1, byte2);
}

/* Load two words, and below eight; this is faster than a gather. */
BLY_EIGHT __m128i cuckoo_load_two(const unsigned char *data,
                                  const uint64_t *byte)
{
    const __m128i low =
        _mm_loadl_epi64((const __m128i *)(const void *)(data + byte[0]));
    return _mm_castpd_si128(_mm_loadh_pd(
        _mm_castsi128_pd(low), (const double *)(const void *)(data + byte[1])));
}

BLY_EIGHT __m512i cuckoo_load_eight(const unsigned char *data,
                                    const uint64_t *byte)
{
    const __m256i low = _mm256_inserti128_si256(
        _mm256_castsi128_si256(cuckoo_load_two(data, byte)),
        cuckoo_load_two(data, byte + 2), 1);
    const __m256i high = _mm256_inserti128_si256(
        _mm256_castsi128_si256(cuckoo_load_two(data, byte + 4)),
        cuckoo_load_two(data, byte + 6), 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

/* ----------------------------------------------------------------- asking */

/* bly_cuckoo_hits() in eight words, before `highs`. */
BLY_EIGHT __m512i cuckoo_hits_eight(const cuckoo_lanes *c,
                                    const unsigned char *data,
                                    const uint64_t *byte, const uint64_t *shift,
                                    __m512i full)
{
    const __m512i words = cuckoo_load_eight(data, byte);
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

/* Groups of eight keys that can be done here; the portable row does the rest.
 * A multiple of `by` of them. */
BLY_EIGHT size_t cuckoo_groups(const bly_cuckoo_table *t, size_t n, size_t by)
{
    return bly_cuckoo_single(t) && t->nb <= BLY_CUCKOO_EIGHT ? n / 8 / by * by
                                                             : 0;
}

/* For a multiple of 64 keys or, if `few` is set, for fewer than 64; then the
 * last group is filled up with zeros, which are hashes as good as any. */
BLY_EIGHT void cuckoo_has_groups(const bly_cuckoo_table *t, const uint64_t *h,
                                 size_t n, uint64_t *maybe, bool few)
{
    _Alignas(64) cuckoo_eight ring[CUCKOO_GROUPS];
    const cuckoo_lanes c = cuckoo_lanes_of(t);
    const size_t ngroups = few ? (n + 7) / 8 : n / 8;
    const size_t far = few ? ngroups : CUCKOO_GROUPS_FAR;
    uint64_t bits = 0;
    for (size_t i = 0; i < ngroups + far; i++) {
        if (i < ngroups)
            cuckoo_enter_eight(&c, t->data,
                               few ? bly_eight_of(h, i, n)
                                   : _mm512_loadu_si512(h + 8 * i),
                               &ring[i % CUCKOO_GROUPS]);
        /* Group i enters the ring while group i - far, whose lines have had
         * time to arrive, is asked for. The ring is longer than that distance,
         * so nothing is overwritten before its turn. */
        if (i < far)
            continue;
        const size_t at = i - far;
        bits |= cuckoo_ask_eight(&c, t->data, &ring[at % CUCKOO_GROUPS])
                << (at % 8 * 8);
        if (!few && at % 8 == 7) {
            maybe[at / 8] |= bits;
            bits = 0;
        }
    }
    if (few)
        *maybe |= bits & UINT64_MAX >> (64 - n);
}

BLY_AVX512 static __attribute__((noinline)) void
cuckoo_has_few(const bly_cuckoo_table *t, const uint64_t *h, size_t n,
               uint64_t *maybe)
{
    cuckoo_has_groups(t, h, n, maybe, true);
}

/* Fewer keys are faster one by one. */
#define CUCKOO_FEW 6

BLY_AVX512 void bly_cuckoo_has_avx512(const bly_cuckoo_table *t,
                                      const uint64_t *h, size_t n,
                                      uint64_t *maybe)
{
    const size_t whole = cuckoo_groups(t, n, 8) * 8, rest = n - whole;
    if (whole)
        cuckoo_has_groups(t, h, whole, maybe, false);
    if (rest >= CUCKOO_FEW && cuckoo_groups(t, 8, 1))
        cuckoo_has_few(t, h + whole, rest, maybe + whole / 64);
    else if (rest)
        bly_cuckoo_has_portable(t, h + whole, rest, maybe + whole / 64);
}

/* --------------------------------------------------------------- changing */

/* Without `andn` gcc takes a detour through mask registers. Every processor
 * with AVX-512 has it. */
#define CUCKOO_CHANGE                                           \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl," \
                          "bmi,bmi2,popcnt")))

/* What is to be done for eight keys. The bucket and the slot are chosen for all
 * of them before any is changed: otherwise each load would wait for the store
 * of the key before, whose address is known only late. The price: an earlier
 * key may have changed the slot since, so it is checked again before it is
 * written. */
typedef struct cuckoo_spots {
    uint64_t byte[8];  /* where the word of the bucket begins */
    uint64_t slot[8];  /* the bits of the slot in it; 0: there is none */
    uint64_t print[8]; /* the fingerprint, there */
} cuckoo_spots;

/* Find the first slot that holds what `full` has in every slot, in the first
 * bucket that has one. */
BLY_EIGHT void cuckoo_decide(const cuckoo_lanes *c, const bly_cuckoo_table *t,
                             const cuckoo_eight *keys, __m512i full,
                             cuckoo_spots *out)
{
    const __m512i in1 = _mm512_and_si512(
        cuckoo_hits_eight(c, t->data, keys->byte1, keys->shift1, full),
        c->highs);
    const __m512i in2 = _mm512_and_si512(
        cuckoo_hits_eight(c, t->data, keys->byte2, keys->shift2, full),
        c->highs);
    const __mmask8 first = _mm512_test_epi64_mask(in1, in1);
    const __m512i in = _mm512_mask_mov_epi64(in2, first, in1);
    const __m512i byte = _mm512_mask_mov_epi64(
        _mm512_load_si512(keys->byte2), first, _mm512_load_si512(keys->byte1));
    const __m512i shift =
        _mm512_mask_mov_epi64(_mm512_load_si512(keys->shift2), first,
                              _mm512_load_si512(keys->shift1));
    /* Only the lowest hit can be trusted (bly_cuckoo_hits). It is the highest
     * bit of its slot: with f - 1 bits below it, 2 high - (high >> (f - 1)) has
     * exactly the slot's bits set, and 0 stays 0. */
    const __m512i high =
        _mm512_and_si512(in, _mm512_sub_epi64(_mm512_setzero_si512(), in));
    const __m512i slot = _mm512_sub_epi64(
        _mm512_add_epi64(high, high),
        _mm512_srl_epi64(high, _mm_cvtsi32_si128((int)t->f - 1)));
    _mm512_store_si512(out->byte, byte);
    _mm512_store_si512(out->slot, _mm512_sllv_epi64(slot, shift));
    _mm512_store_si512(
        out->print,
        _mm512_sllv_epi64(_mm512_and_si512(slot, _mm512_load_si512(keys->full)),
                          shift));
}

BLY_EIGHT bly_cuckoo_key cuckoo_key_of(const bly_cuckoo_table *t,
                                       const cuckoo_eight *keys, unsigned j)
{
    return (bly_cuckoo_key){
        .at1 = keys->byte1[j] * 8 + keys->shift1[j],
        .at2 = keys->byte2[j] * 8 + keys->shift2[j],
        .fp = (uint32_t)(keys->full[j] & t->nprints),
    };
}

CUCKOO_CHANGE void bly_cuckoo_remove_avx512(const bly_cuckoo_table *table,
                                            const uint64_t *h, size_t n,
                                            bly_status *each)
{
    const bly_cuckoo_table t = *table;
    const size_t ngroups = cuckoo_groups(&t, n, 1);
    _Alignas(64) cuckoo_eight ring[CUCKOO_GROUPS];
    _Alignas(64) cuckoo_spots spots;
    const cuckoo_lanes c = cuckoo_lanes_of(&t);
    for (size_t i = 0; i < ngroups + CUCKOO_GROUPS_FAR; i++) {
        if (i < ngroups)
            cuckoo_enter_eight(&c, t.data, _mm512_loadu_si512(h + 8 * i),
                               &ring[i % CUCKOO_GROUPS]);
        if (i < CUCKOO_GROUPS_FAR)
            continue;
        const size_t at = i - CUCKOO_GROUPS_FAR;
        const cuckoo_eight *keys = &ring[at % CUCKOO_GROUPS];
        cuckoo_decide(&c, &t, keys, _mm512_load_si512(keys->full), &spots);
        for (unsigned j = 0; j < 8; j++) {
            unsigned char *const p = t.data + spots.byte[j];
            const uint64_t word = bly_load64(p), slot = spots.slot[j];
            bool taken = slot != 0;
            /* If there was no slot, slot and print are 0, and the word is
             * stored as it was, without a branch. If an earlier key of this
             * group took the copy that was found, look for another. */
            if ((word ^ spots.print[j]) & slot)
                taken = bly_cuckoo_take(&t, cuckoo_key_of(&t, keys, j), true);
            else
                bly_store64(p, word & ~slot);
            each[8 * at + j] = taken ? BLY_OK : BLY_EABSENT;
        }
    }
    bly_cuckoo_remove_portable(&t, h + ngroups * 8, n - ngroups * 8,
                               each + ngroups * 8);
}

/* The ways out of two full buckets: for each slot in turn, the fingerprint in
 * it and its other bucket. */
typedef struct cuckoo_ways {
    __m512i print, at;
} cuckoo_ways;

/* In which lanes they are: first the slots of the first bucket, then those of
 * the second, with up to four slots per bucket. */
typedef struct cuckoo_slots {
    __mmask8 used, second; /* of any bucket, of the second */
    __m512i shift;
} cuckoo_slots;

BLY_EIGHT cuckoo_slots cuckoo_slots_of(const bly_cuckoo_table *t)
{
    uint64_t shift[8];
    /* Two buckets of eight slots do not fit into eight lanes. `used` = 0 sends
     * such tables straight to the search. */
    if (t->b > 4)
        return (cuckoo_slots){ 0 };
    for (unsigned j = 0; j < 8; j++)
        shift[j] = j % t->b * t->f;
    return (cuckoo_slots){ .used = (__mmask8)((1u << 2 * t->b) - 1),
                           .second = (__mmask8)(0xffu << t->b),
                           .shift = _mm512_loadu_si512(shift) };
}

BLY_EIGHT cuckoo_ways cuckoo_ways_from(const bly_cuckoo_table *t,
                                       const cuckoo_lanes *c,
                                       const cuckoo_slots *slots,
                                       const cuckoo_eight *keys, unsigned j)
{
    const uint64_t at1 = keys->byte1[j] * 8 + keys->shift1[j];
    const uint64_t at2 = keys->byte2[j] * 8 + keys->shift2[j];
    const __m512i at = _mm512_mask_set1_epi64(bly_eight_all(at1), slots->second,
                                              (long long)at2);
    const __m512i word = _mm512_mask_set1_epi64(
        bly_eight_all(bly_cuckoo_load(t, at1)), slots->second,
        (long long)bly_cuckoo_load(t, at2));
    const __m512i print =
        _mm512_and_si512(_mm512_srlv_epi64(word, slots->shift), c->nprints);
    return (cuckoo_ways){ print, cuckoo_other_eight(c, at, print) };
}

/* Which of eight words have an empty slot. */
BLY_EIGHT unsigned cuckoo_have_room(const cuckoo_lanes *c,
                                    const unsigned char *data,
                                    const uint64_t *byte, const uint64_t *shift)
{
    return _mm512_test_epi64_mask(
        cuckoo_hits_eight(c, data, byte, shift, _mm512_setzero_si512()),
        c->highs);
}

/* For those of eight keys whose buckets are full: fetch the buckets to which
 * the ways lead. */
BLY_EIGHT void cuckoo_fetch_ways(const bly_cuckoo_table *t,
                                 const cuckoo_lanes *c,
                                 const cuckoo_slots *slots,
                                 const cuckoo_eight *keys,
                                 const cuckoo_spots *spots)
{
    /* The buckets themselves are in L1 by now, since cuckoo_decide() has read
     * them; where their contents could move is not. */
    const __m512i found = _mm512_load_si512(spots->slot);
    for (unsigned full = _mm512_testn_epi64_mask(found, found); full;
         full &= full - 1) {
        const cuckoo_ways ways =
            cuckoo_ways_from(t, c, slots, keys, (unsigned)__builtin_ctz(full));
        _Alignas(64) uint64_t byte[8];
        _mm512_store_si512(byte, _mm512_srli_epi64(ways.at, 3));
        for (unsigned j = 0; j < 8; j++)
            __builtin_prefetch(t->data + byte[j], 0, 3);
    }
}

/* Both buckets of key j are full. If a way of one step leads to room, take the
 * first such; else search on. */
BLY_EIGHT bool eight_make_room(const bly_cuckoo_table *t, const cuckoo_lanes *c,
                               const cuckoo_slots *slots,
                               const cuckoo_eight *keys, unsigned j)
{
    /* The ways are computed anew: keys added since cuckoo_fetch_ways() may have
     * moved what is in these buckets. */
    const bly_cuckoo_key key = cuckoo_key_of(t, keys, j);
    if (!slots->used)
        return bly_cuckoo_squeeze(t, key);
    const cuckoo_ways ways = cuckoo_ways_from(t, c, slots, keys, j);
    _Alignas(64) uint64_t byte[8], shift[8];
    _Alignas(64) uint64_t print[8];
    _mm512_store_si512(byte, _mm512_srli_epi64(ways.at, 3));
    _mm512_store_si512(shift, _mm512_and_si512(ways.at, bly_eight_all(7)));
    _mm512_store_si512(print, ways.print);
    const unsigned room =
        cuckoo_have_room(c, t->data, byte, shift) & slots->used;
    if (!room)
        return bly_cuckoo_squeeze(t, key);
    /* Lanes are in the order in which the search would put them into its queue,
     * so the result is the same to the bit as without AVX-512. */
    const unsigned first = (unsigned)__builtin_ctz(room);
    /* Write it to the new place first, then overwrite the old one: so the
     * fingerprint is never missing from both. */
    bly_cuckoo_exchange(t, byte[first] * 8 + shift[first], 0,
                        (uint32_t)print[first]);
    bly_cuckoo_store(t,
                     (first < t->b ? key.at1 : key.at2) + first % t->b * t->f,
                     t->f, key.fp);
    return true;
}

/* Groups between deciding and adding: the time for the ways out of full buckets
 * to arrive. */
#define CUCKOO_GROUPS_SOON 1

CUCKOO_CHANGE size_t bly_cuckoo_add_avx512(const bly_cuckoo_table *table,
                                           const uint64_t *h, size_t n)
{
    const bly_cuckoo_table t = *table;
    const size_t ngroups = cuckoo_groups(&t, n, 1);
    _Alignas(64) cuckoo_eight ring[CUCKOO_GROUPS];
    _Alignas(64) cuckoo_spots spots[CUCKOO_GROUPS_SOON + 1];
    const cuckoo_lanes c = cuckoo_lanes_of(&t);
    const cuckoo_slots slots = cuckoo_slots_of(&t);
    for (size_t i = 0; i < ngroups + CUCKOO_GROUPS_FAR; i++) {
        if (i < ngroups)
            cuckoo_enter_eight(&c, t.data, _mm512_loadu_si512(h + 8 * i),
                               &ring[i % CUCKOO_GROUPS]);
        /* Three places in the stream: group i is located, the group after `at`
         * is decided, and group `at` is added. */
        if (i + CUCKOO_GROUPS_SOON >= CUCKOO_GROUPS_FAR) {
            const size_t soon = i - CUCKOO_GROUPS_FAR + CUCKOO_GROUPS_SOON;
            if (soon < ngroups) {
                const cuckoo_eight *keys = &ring[soon % CUCKOO_GROUPS];
                cuckoo_spots *to = &spots[soon % (CUCKOO_GROUPS_SOON + 1)];
                cuckoo_decide(&c, &t, keys, _mm512_setzero_si512(), to);
                cuckoo_fetch_ways(&t, &c, &slots, keys, to);
            }
        }
        if (i < CUCKOO_GROUPS_FAR)
            continue;
        const size_t at = i - CUCKOO_GROUPS_FAR;
        const cuckoo_eight *keys = &ring[at % CUCKOO_GROUPS];
        const cuckoo_spots *from = &spots[at % (CUCKOO_GROUPS_SOON + 1)];
        for (unsigned j = 0; j < 8; j++) {
            unsigned char *const p = t.data + from->byte[j];
            const uint64_t word = bly_load64(p), slot = from->slot[j];
            /* Usually the slot is still empty. Otherwise another key has taken
             * it since, or there was none: then look at both buckets again, and
             * only after that move others. */
            if (slot && !(word & slot))
                bly_store64(p, word | from->print[j]);
            else if (!bly_cuckoo_exchange_either(
                         &t, cuckoo_key_of(&t, keys, j), 0,
                         (uint32_t)(keys->full[j] & t.nprints), true) &&
                     !eight_make_room(&t, &c, &slots, keys, j))
                return 8 * at + j;
        }
    }
    return ngroups * 8 +
           bly_cuckoo_add_portable(&t, h + ngroups * 8, n - ngroups * 8);
}

#endif
