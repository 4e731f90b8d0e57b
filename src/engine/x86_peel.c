/*
 * x86_peel.c - slots of eight keys at once, with AVX-512
 *
 * Segments, windows and slots are below 2^32, as bly_eight_scale() wants. The
 * slots of eight keys cost as much as those of one. Cells are read one by one,
 * which takes fewer cycles than gather instructions, and the sums of 64 keys
 * are compared with their fingerprints at once.
 */
#include "engine/peel.h"

#include "engine/x86_eight.h"

#if BLY_X86

/* A layout in registers. */
typedef struct peel_layout {
    const unsigned char *data;
    __m512i nshards, nslots, segment, range, mask;
    bool light;
    bool few; /* one shard, or 2, 4 or 8: by the highest three bits of h */
    __m512i seeds, bases; /* indexed by these bits: the seed, the first slot */
} peel_layout;

/* data NULL: shards are not needed. */
BLY_EIGHT peel_layout peel_layout_of(const bly_peel *p,
                                     const unsigned char *data, bool fuse)
{
    peel_layout l = {
        .data = data,
        .nshards = bly_eight_all(p->nshards),
        .nslots = bly_eight_all(p->nslots),
        .segment = bly_eight_all(p->segment),
        .range = bly_eight_all(fuse ? p->windows * p->segment : p->segment),
        .mask = bly_eight_all(p->segment - 1),
        .few = p->nshards <= 8 && !(p->nshards & (p->nshards - 1)),
        .light = p->light,
    };
    /* A power of two of shards, eight at most, is chosen by the top three bits
     * of the hash. Seeds and first slots then fit a register each, indexed by
     * those bits, and a permutation does the work of a gather. */
    if (data && l.few) {
        uint64_t seeds[8], bases[8];
        for (unsigned i = 0; i < 8; i++) {
            const uint64_t shard = i * p->nshards / 8;
            seeds[i] = bly_load64(data + shard * 8);
            bases[i] = shard * p->nslots;
        }
        l.seeds = _mm512_loadu_si512(seeds);
        l.bases = _mm512_loadu_si512(bases);
    }
    return l;
}

/* bly_peel_slots(), slot i less i segments. */
BLY_EIGHT void peel_slots_eight(const peel_layout *l, __m512i g, __m512i base,
                                unsigned arity, bool fuse, __m512i *slot)
{
    const __m512i c = bly_eight_all(BLY_POWERS_C);
    if (fuse) {
        const __m512i first = bly_eight_scale(g, l->range);
        const __m512i x = _mm512_mullo_epi64(g, c);
        slot[0] = _mm512_add_epi64(base, first);
        BLY_UNROLL(4)
        /* first ^ (x >> 64 - 18 i & mask). The mask ends below the bit that
         * one segment is worth, so i segments can be added afterwards. */
        for (unsigned i = 1; i < arity; i++)
            slot[i] = _mm512_add_epi64(
                base,
                _mm512_ternarylogic_epi64(
                    first, _mm512_srli_epi64(x, 64 - 18 * i), l->mask, 0x78));
    } else {
        BLY_UNROLL(4)
        for (unsigned i = 0; i < arity; i++) {
            slot[i] = _mm512_add_epi64(base, bly_eight_scale(g, l->range));
            g = _mm512_mullo_epi64(g, c);
        }
    }
}

/* Eight keys. */
typedef struct peel_eight {
    __m512i g;
    __m512i slot[BLY_PEEL_MAX_ARITY]; /* slot i less i segments */
} peel_eight;

BLY_EIGHT peel_eight peel_find_eight(const peel_layout *l, __m512i hash,
                                     unsigned arity, bool fuse)
{
    __m512i seed, base;
    peel_eight keys;
    if (l->few) {
        const __m512i shard = _mm512_srli_epi64(hash, 61);
        seed = _mm512_permutexvar_epi64(shard, l->seeds);
        base = _mm512_permutexvar_epi64(shard, l->bases);
    } else {
        const __m512i shard = bly_eight_scale(hash, l->nshards);
        seed = _mm512_i64gather_epi64(shard, l->data, 8);
        base = _mm512_mul_epu32(shard, l->nslots);
    }
    /* bly_peel_word(), eight times. */
    const __m512i mixed = l->light
                              ? _mm512_mullo_epi64(hash, seed)
                              : bly_eight_mix(_mm512_xor_si512(hash, seed));
    const __m512i g = _mm512_andnot_si512(bly_eight_all(BLY_PEEL_LOW), mixed);
    keys.g = g;
    peel_slots_eight(l, g, base, arity, fuse, keys.slot);
    return keys;
}

BLY_EIGHT void peel_find_and_store(const bly_peel *p, const unsigned char *data,
                                   const uint64_t *h, bly_peel_eight *out,
                                   unsigned arity, bool fuse)
{
    const peel_layout l = peel_layout_of(p, data, fuse);
    const peel_eight keys =
        peel_find_eight(&l, _mm512_loadu_si512(h), arity, fuse);
    __m512i segments = _mm512_setzero_si512();
    _mm512_store_si512(out->g, keys.g);
    for (unsigned i = 0; i < arity; i++) {
        _mm512_store_si512(out->slot[i],
                           _mm512_add_epi64(keys.slot[i], segments));
        segments = _mm512_add_epi64(segments, l.segment);
    }
}

BLY_AVX512 void bly_peel_find_avx512(const bly_peel *p,
                                     const unsigned char *data,
                                     const uint64_t *h, bly_peel_eight *out)
{
    if (!p->fuse)
        peel_find_and_store(p, data, h, out, 3, false);
    else if (p->arity == 3)
        peel_find_and_store(p, data, h, out, 3, true);
    else
        peel_find_and_store(p, data, h, out, 4, true);
}

BLY_EIGHT void peel_fill(const bly_peel *p, const uint64_t *words,
                         bly_peel_block *out, unsigned arity, bool fuse)
{
    const peel_layout l = peel_layout_of(p, NULL, fuse);
    for (unsigned j = 0; j < BLY_PEEL_BLOCK; j += 8) {
        const __m512i g = _mm512_andnot_si512(bly_eight_all(BLY_PEEL_LOW),
                                              _mm512_loadu_si512(words + j));
        __m512i slot[BLY_PEEL_MAX_ARITY], segments = _mm512_setzero_si512();
        peel_slots_eight(&l, g, segments, arity, fuse, slot);
        for (unsigned i = 0; i < arity; i++) {
            _mm256_store_si256(
                (__m256i *)(void *)&out->at[i][j],
                _mm512_cvtepi64_epi32(_mm512_add_epi64(slot[i], segments)));
            segments = _mm512_add_epi64(segments, l.segment);
        }
    }
}

BLY_AVX512 void bly_peel_fill_avx512(const bly_peel *p, const uint64_t *words,
                                     bly_peel_block *out)
{
    if (!p->fuse)
        peel_fill(p, words, out, 3, false);
    else if (p->arity == 3)
        peel_fill(p, words, out, 3, true);
    else
        peel_fill(p, words, out, 4, true);
}

/* ----------------------------------------------------------- fingerprints */

/* A group of eight keys waits twice: until its slots, which were computed in
 * vectors, have gone through memory and can be read one by one, and then for
 * its cells, which have been fetched. PEEL_WAITING groups wait in all,
 * PEEL_UNFETCHED of them for their slots. A fetch whose address is still being
 * computed would take a place that others need. */
#define PEEL_WAITING 8
#define PEEL_UNFETCHED 2

/* Keys that wait, and the fingerprints and sums of 64 of them. Fingerprints of
 * the next 64 are entered before those of the present ones are compared, hence
 * two rows. */
typedef struct peel_waiting {
    _Alignas(BLY_LINE) uint64_t slot[PEEL_WAITING][BLY_PEEL_MAX_ARITY][8];
    _Alignas(BLY_LINE) unsigned char prints[2][256], sums[256];
} peel_waiting;

/* Cells: those of segment i begin at at[i], and have `width` bytes; or width is
 * 0, they are packed, `bits` each, and segment i begins with bit first[i] of
 * at[0]. */
typedef struct prints_row {
    const unsigned char *at[BLY_PEEL_MAX_ARITY];
    uint64_t first[BLY_PEEL_MAX_ARITY];
    unsigned bits;
} prints_row;

/* Where group `at` leaves its fingerprints, the high bits of g C; those of
 * packed cells as 32 bits. */
BLY_EIGHT void prints_enter(const peel_layout *l, __m512i h, size_t at,
                            const prints_row *row, unsigned width,
                            unsigned arity, bool fuse, peel_waiting *w)
{
    const peel_eight keys = peel_find_eight(l, h, arity, fuse);
    const unsigned bytes = width ? width : 4;
    /* Group `at` is one of eight in its row. */
    unsigned char *const to = w->prints[at / 8 % 2] + at % 8 * 8 * bytes;
    const __m512i print = _mm512_srli_epi64(
        _mm512_mullo_epi64(keys.g, bly_eight_all(BLY_PEEL_PRINT_C)),
        64 - (width ? 8 * width : row->bits));
    BLY_UNROLL(4)
    for (unsigned i = 0; i < arity; i++)
        _mm512_store_si512(
            w->slot[at % PEEL_WAITING][i],
            width
                ? keys.slot[i]
                : _mm512_add_epi64(_mm512_mullo_epi64(keys.slot[i],
                                                      bly_eight_all(row->bits)),
                                   bly_eight_all(row->first[i])));
    if (bytes == 1)
        _mm_storel_epi64((__m128i *)(void *)to, _mm512_cvtepi64_epi8(print));
    else if (bytes == 2)
        _mm_store_si128((__m128i *)(void *)to, _mm512_cvtepi64_epi16(print));
    else
        _mm256_store_si256((__m256i *)(void *)to, _mm512_cvtepi64_epi32(print));
}

/* Fetch the cells of a key into L2. For a packed cell the position of its first
 * bit is kept, not its number. */
BLY_EIGHT void prints_fetch(const prints_row *row, uint64_t (*slot)[8],
                            unsigned j, unsigned width, unsigned arity)
{
    BLY_UNROLL(4)
    for (unsigned i = 0; i < arity; i++)
        __builtin_prefetch(width ? row->at[i] + slot[i][j] * width
                                 : row->at[0] + (slot[i][j] >> 3),
                           0, 2);
}

/* Add up the cells of a key. volatile, so that each sum is stored by itself: to
 * combine them in a register would take two more instructions. */
BLY_EIGHT void prints_add_up(const prints_row *row, uint64_t (*slot)[8],
                             unsigned j, unsigned width, unsigned arity,
                             unsigned char *sums)
{
    uint64_t sum = 0;
    BLY_UNROLL(4)
    for (unsigned i = 0; i < arity; i++) {
        const void *const at = row->at[width ? i : 0] +
                               (width ? slot[i][j] * width : slot[i][j] >> 3);
        sum ^= width == 1   ? *(const uint8_t *)at
               : width == 2 ? *(const uint16_t *)at
               : width == 4 ? *(const uint32_t *)at
                            : bly_load64(at) >> (slot[i][j] & 7);
    }
    if (width == 1)
        ((volatile uint8_t *)sums)[j] = (uint8_t)sum;
    else if (width == 2)
        ((volatile uint16_t *)(void *)sums)[j] = (uint16_t)sum;
    else
        ((volatile uint32_t *)(void *)sums)[j] = (uint32_t)sum;
}

/* Which of 64 keys have sums that equal their fingerprints? Sums of packed
 * cells have bits of the next cells above theirs. */
BLY_EIGHT uint64_t prints_compare(const unsigned char *prints,
                                  const unsigned char *sums,
                                  const prints_row *row, unsigned width)
{
    const __m512i mask =
        _mm512_set1_epi32((int)(UINT32_MAX >> (32 - row->bits)));
    const unsigned bytes = width ? width : 4;
    uint64_t bits = 0;
    for (unsigned i = 0; i < bytes; i++) {
        const __m512i a = _mm512_load_si512(prints + BLY_LINE * i),
                      b = _mm512_load_si512(sums + BLY_LINE * i);
        if (width == 1)
            bits = _mm512_cmpeq_epi8_mask(a, b);
        else if (width == 2)
            bits |= (uint64_t)_mm512_cmpeq_epi16_mask(a, b) << 32 * i;
        else
            bits |= (uint64_t)_mm512_cmpeq_epi32_mask(
                        a, width ? b : _mm512_and_si512(b, mask))
                    << 16 * i;
    }
    return bits;
}

/* For a multiple of 64 keys or, if `few` is set, for fewer than 64; then the
 * last group is filled up with zeros, which are hashes as good as any. Cells
 * are fetched ahead if `far` is set. Both are literals, and not set at once. */
BLY_EIGHT void prints_has_eights(const bly_peel *p, const unsigned char *data,
                                 unsigned cell_bits, unsigned width,
                                 const uint64_t *h, size_t n, uint64_t *maybe,
                                 unsigned arity, bool fuse, bool few, bool far)
{
    const size_t ngroups = few ? (n + 7) / 8 : n / 8;
    const size_t ready = few ? ngroups : PEEL_WAITING;
    const peel_layout l = peel_layout_of(p, data, fuse);
    prints_row row = { .bits = cell_bits };
    peel_waiting w;
    /* The i segments missing from the slots are added here, once for all
     * keys. */
    for (unsigned i = 0; i < arity; i++) {
        row.at[i] = data + bly_peel_head(p->nshards) + i * p->segment * width;
        row.first[i] = i * p->segment * cell_bits;
    }
    /* Fill the ring. */
    for (size_t at = 0; at < ready; at++)
        prints_enter(
            &l, few ? bly_eight_of(h, at, n) : _mm512_loadu_si512(h + 8 * at),
            at, &row, width, arity, fuse, &w);
    for (size_t at = 0; far && at < PEEL_WAITING - PEEL_UNFETCHED && at < ready;
         at++)
        for (unsigned j = 0; j < 8; j++)
            prints_fetch(&row, w.slot[at], j, width, arity);
    for (size_t at = 0; at < ngroups; at++) {
        /* Towards the end `next` is a group that was answered before, or none,
         * and what it names is fetched in vain: harmless. */
        uint64_t(*const slot)[8] = w.slot[at % PEEL_WAITING],
                        (*const next)[8] =
                            w.slot[(at + PEEL_WAITING - PEEL_UNFETCHED) %
                                   PEEL_WAITING];
        unsigned char *const sums = w.sums + at % 8 * 8 * (width ? width : 4);
        BLY_UNROLL(8)
        for (unsigned j = 0; j < 8; j++) {
            /* In turns, so that fetches are spread evenly. */
            if (far)
                prints_fetch(&row, next, j, width, arity);
            prints_add_up(&row, slot, j, width, arity, sums);
        }
        if (!few && at % 8 == 7)
            maybe[at / 8] =
                prints_compare(w.prints[at / 8 % 2], w.sums, &row, width);
        /* Last, since the new group takes the place of this one. */
        if (!few && at + PEEL_WAITING < ngroups)
            prints_enter(&l, _mm512_loadu_si512(h + 8 * (at + PEEL_WAITING)),
                         at + PEEL_WAITING, &row, width, arity, fuse, &w);
    }
    if (few)
        *maybe = prints_compare(w.prints[0], w.sums, &row, width) &
                 UINT64_MAX >> (64 - n);
}

/* 64 keys are as many groups as wait. */
_Static_assert(PEEL_WAITING == 8, "the first 64 keys are entered together");

#define HAS_WIDTH(width, arity, fuse, few, far)                            \
    prints_has_eights(p, data, cell_bits, width, h, n, maybe, arity, fuse, \
                      few, far)
#define HAS(arity, fuse, few, far)                           \
    (cell_bits == 8    ? HAS_WIDTH(1, arity, fuse, few, far) \
     : cell_bits == 16 ? HAS_WIDTH(2, arity, fuse, few, far) \
     : cell_bits == 32 ? HAS_WIDTH(4, arity, fuse, few, far) \
                       : HAS_WIDTH(0, arity, fuse, few, far))

/* Three slots, the usual number. */
BLY_AVX512 static __attribute__((noinline)) void
prints_has_few(const bly_peel *p, const unsigned char *data, unsigned cell_bits,
               const uint64_t *h, size_t n, uint64_t *maybe)
{
    if (p->fuse)
        HAS(3, true, true, false);
    else
        HAS(3, false, true, false);
}

/* At least half of the cells are in L2: then a fetch is an instruction for
 * nothing. Without it, 30,000 to 300,000 keys take 0.63 of the time, 800,000
 * take 0.75. */
#define PRINTS_CACHED ((uint64_t)2 << 20)

BLY_AVX512 static __attribute__((noinline)) void
prints_has_near(const bly_peel *p, const unsigned char *data,
                unsigned cell_bits, const uint64_t *h, size_t n,
                uint64_t *maybe)
{
    if (p->fuse)
        HAS(3, true, false, false);
    else
        HAS(3, false, false, false);
}

/* Fewer keys are faster one by one. */
#define PRINTS_FEW 8

BLY_AVX512 size_t bly_peel_prints_avx512(const bly_peel *p,
                                         const unsigned char *data,
                                         unsigned cell_bits, const uint64_t *h,
                                         size_t nkeys, uint64_t *maybe)
{
    const size_t n = nkeys / 64 * 64, rest = nkeys - n;
    /* bly_eight_scale() multiplies by 32 bits. */
    if (p->nshards > UINT32_MAX)
        return 0;
    const bool near = p->nshards * p->nslots <= 8 * PRINTS_CACHED / cell_bits;
    if (n && near && p->arity == 3)
        prints_has_near(p, data, cell_bits, h, n, maybe);
    else if (n && !p->fuse)
        HAS(3, false, false, true);
    else if (n && p->arity == 3)
        HAS(3, true, false, true);
    else if (n)
        HAS(4, true, false, true);
    if (rest < PRINTS_FEW || p->arity != 3)
        return n;
    prints_has_few(p, data, cell_bits, h + n, rest, maybe + n / 64);
    return nkeys;
}
#undef HAS
#undef HAS_WIDTH

#endif
