/*
 * peel.h - equations solved by peeling: used by xor, fuse, bloomier
 *
 * Every key names three or four slots of an array, and requires the XOR of
 * their cells to be a value of its own: a fingerprint, and possibly more. To
 * find such cells, remove a key that has a slot to itself, and go on without it
 * until none is left. Then take the keys in the opposite order: each key's own
 * slot is free to satisfy its equation, and keys that come later do not break
 * it.
 *
 *     h      the hash of the key
 *     shard  = h scaled to the number of shards
 *     g      = h times the seed of the shard, which is odd, or in older files
 *              mix(h ^ seed); its lowest six bits cleared
 *     slots  = 3 or 4 of the shard's, from g
 *
 * Two geometries. In both a shard is a row of segments of equal length L and a
 * key has a slot in each of `arity` segments that follow each other.
 *
 *     xor     as many segments as slots a key has; L is any number
 *             slot i = i L + scale(g C^i, L)
 *     fuse    many segments, L a power of two; the first is chosen by g too
 *             slot 0 = scale(g, windows L),
 *             slot i = slot 0 + i L, its low bits changed by bits of g C
 *
 * Peeling fails if some keys leave each other no slot; then the shard takes the
 * next seed. It always fails if a hash occurs twice. So repeated hashes are
 * looked for only after a failure, which saves a sort in the usual case.
 *
 * Shards. Up to some millions of keys there is one; beyond, a power of two of
 * them, each with its seed and the same number of slots. They are built one
 * after another, or by several threads, in scratch memory for one shard each.
 * The result depends on the set of keys alone, not on their order or on the
 * threads.
 *
 * In memory and on disk: the seeds, 8 bytes each, up to the next cache line;
 * then the kind's cells, shard after shard.
 */
#ifndef BLY_PEEL_H
#define BLY_PEEL_H

#include "core/bits.h"
#include "core/memory.h"
#include "core/unroll.h"
#include "engine/rows.h"

#define BLY_PEEL_MAX_ARITY 4
/* The low bits of a word of peeling, BLY_PEEL_LOW, are a count, or the number
 * of the key's own slot. */

typedef struct bly_peel {
    uint64_t nshards;
    uint64_t windows; /* segments where a key may begin; xor: 1 */
    uint64_t segment; /* slots of a segment */
    uint64_t nslots;  /* of a shard: (windows + arity - 1) * segment */
    unsigned arity;
    bool fuse;  /* segment is a power of two */
    bool light; /* g is a product: bly_peel_word() */
} bly_peel;

/* A key at its slots, counted from the first of the filter. */
typedef struct bly_peel_key {
    uint64_t g;
    uint64_t slot[BLY_PEEL_MAX_ARITY];
} bly_peel_key;

/* --------------------------------------------------------------- planning */

/* The layout for n keys; nshards 0: choose. BLY_EINVAL, BLY_ERANGE. */
bly_status bly_peel_plan(const char *kind, uint64_t n, uint64_t nshards,
                         unsigned arity, bool fuse, bly_peel *out);

/* Could this be such a layout? It may contain any numbers; nslots is set if
 * so. */
bool bly_peel_sane(bly_peel *p);

/* Bytes of the seeds, and of the whole with cells of so many bits. */
static inline uint64_t bly_peel_head(uint64_t nshards)
{
    return (nshards * 8 + BLY_LINE - 1) & ~(uint64_t)(BLY_LINE - 1);
}

uint64_t bly_peel_nbytes(const bly_peel *p, unsigned cell_bits);

/* -------------------------------------------------------------- positions */

/* bly_peel_word() and bly_peel_print() are in bloomery/views.h, as is what a
 * slot is. Distinct hashes give distinct words, except for some 2^-58 of all
 * pairs, and another seed tells those apart. */

/* The slots of g in its shard, from base on. arity and fuse are literals
 * where that matters. */
static inline __attribute__((always_inline)) void
bly_peel_slots(const bly_peel *p, unsigned arity, bool fuse, uint64_t g,
               uint64_t base, uint64_t slot[])
{
    if (fuse) {
        const uint64_t first = bly_fuse_first_(g, p->windows * p->segment);
        slot[0] = base + first;
        BLY_UNROLL(4)
        for (unsigned i = 1; i < arity; i++)
            slot[i] = base + bly_fuse_slot_(first, g, i, p->segment);
    } else {
        BLY_UNROLL(4) /* else slots go through memory */
        for (unsigned i = 0; i < arity; i++)
            slot[i] = base + bly_xor_slot_(&g, i, p->segment);
    }
}

static inline uint64_t bly_peel_shard(const bly_peel *p, uint64_t h)
{
    return bly_scale(h, p->nshards);
}

/* A key of a filter whose seeds are at data. */
static inline __attribute__((always_inline)) void
bly_peel_find(const bly_peel *p, unsigned arity, bool fuse,
              const unsigned char *data, uint64_t h, bly_peel_key *out)
{
    const uint64_t shard = p->nshards > 1 ? bly_peel_shard(p, h) : 0;
    out->g = bly_peel_word(h, bly_load64(data + shard * 8), p->light);
    bly_peel_slots(p, arity, fuse, out->g, shard * p->nslots, out->slot);
}

/* --------------------------------------------------------------- building */

/* Slots of some words, counted from the first of their shard; word j has
 * at[0][j], at[1][j], ... */
#define BLY_PEEL_BLOCK 64
typedef struct bly_peel_block {
    _Alignas(BLY_LINE) uint32_t at[BLY_PEEL_MAX_ARITY][BLY_PEEL_BLOCK];
} bly_peel_block;

/* Keys that are asked for together: see below. */
typedef struct bly_peel_eight {
    _Alignas(BLY_LINE) uint64_t g[8];
    uint64_t slot[BLY_PEEL_MAX_ARITY][8];
} bly_peel_eight;

/* The portable row has no functions: its code is inlined where it is used,
 * once for each geometry. */
typedef struct bly_peel_row {
    BLY_ROW_HEAD;

    /* bly_peel_fill() of a full block. */
    void (*fill)(const bly_peel *p, const uint64_t *words, bly_peel_block *out);

    /* bly_peel_find() of eight hashes, for less than 2^32 shards. */
    void (*find)(const bly_peel *p, const unsigned char *data,
                 const uint64_t *h, bly_peel_eight *out);

    /* Query fingerprints in cells of up to 32 bits (kinds/prints.h). Returns
     * how many of the n keys were done: all, or a multiple of 64. The others
     * are left to the caller. */
    size_t (*prints)(const bly_peel *p, const unsigned char *data,
                     unsigned cell_bits, const uint64_t *h, size_t n,
                     uint64_t *maybe);
} bly_peel_row;
BLY_ROWS(peel);
#if BLY_X86
/* x86_peel.c */
void bly_peel_fill_avx512(const bly_peel *p, const uint64_t *words,
                          bly_peel_block *out);
void bly_peel_find_avx512(const bly_peel *p, const unsigned char *data,
                          const uint64_t *h, bly_peel_eight *out);
size_t bly_peel_prints_avx512(const bly_peel *p, const unsigned char *data,
                              unsigned cell_bits, const uint64_t *h,
                              size_t nkeys, uint64_t *maybe);
#endif

/* Words of the block that begins with word `from` of n. */
static inline size_t bly_peel_block_at(size_t from, size_t n)
{
    return from >= n                   ? 0
           : n - from < BLY_PEEL_BLOCK ? n - from
                                       : BLY_PEEL_BLOCK;
}

/* Slots of the words of a block. Their lowest six bits are not looked at. */
static inline __attribute__((always_inline)) void
bly_peel_fill(const bly_peel *p, unsigned arity, bool fuse,
              const bly_peel_row *row, const uint64_t *words, size_t n,
              bly_peel_block *out)
{
    if (row->fill && n == BLY_PEEL_BLOCK) {
        row->fill(p, words, out);
        return;
    }
    for (size_t j = 0; j < n; j++) {
        uint64_t slot[BLY_PEEL_MAX_ARITY];
        bly_peel_slots(p, arity, fuse, words[j] & ~BLY_PEEL_LOW, 0, slot);
        for (unsigned k = 0; k < arity; k++)
            out->at[k][j] = (uint32_t)slot[k];
    }
}

/* The keys of a shard in the order of peeling: word i is the key's g, and in
 * its lowest six bits the number of the slot that is its own. Assign cells from
 * the last key to the first; all cells start as zero. */
typedef struct bly_peeled {
    uint64_t shard;
    size_t n;
    const uint64_t *words;
    const uint64_t *values; /* of the keys, in the same order, or NULL */
} bly_peeled;

/* Sets the cells of a shard; ctx is the caller's. */
typedef void bly_peel_assign(void *ctx, const bly_peel *p,
                             const bly_peeled *keys);

/* The keys of the shards from first to first + nshards - 1, and of no others.
 * The seeds go to data. */
typedef struct bly_peel_task {
    const bly_peel *p;
    uint64_t first, nshards;
    uint64_t *h, *values; /* scratch; values may be NULL */
    size_t n;
    unsigned char *data;
    const bly_mem *mem;
    bly_peel_assign *assign; /* called by several threads at once, each for a
                                shard of its own */
    void *ctx;
} bly_peel_task;

/* Peel them and let assign() set the cells of each shard; *ndistinct keys were
 * different. BLY_EFULL after 100 seeds. */
bly_status bly_peel_build(const bly_peel_task *task, unsigned nthreads,
                          uint64_t *ndistinct);

/* Memory that this takes for a shard of n keys, for each thread. */
uint64_t bly_peel_scratch(const bly_peel *p, uint64_t n, bool valued);

/* ----------------------------------------------------------------- asking */

/* Keys are found in groups of eight, and wait in a ring while their lines come
 * into L2. A second stage, into L1 shortly before use, as in engine/lines.h,
 * gains nothing here: with three lines per key the processor itself runs as far
 * ahead. */
#define BLY_PEEL_FAR 6  /* groups */
#define BLY_PEEL_RING 8 /* a power of two above FAR */
/* An array that fits the smallest L2 in use gains nothing from it. */
#define BLY_PEEL_CACHED (256 << 10)
/* Eight keys gain only beyond any L2. */
#define BLY_PEEL_BEYOND (2 << 20)

/* Is key i there? ctx is the caller's. */
typedef bool bly_peel_test(const void *ctx, const bly_peel_key *key, size_t i);

/* A group of n keys, 8 at most. row NULL: one by one. */
static inline __attribute__((always_inline)) void
bly_peel_enter(const bly_peel *p, unsigned arity, bool fuse,
               const bly_peel_row *row, const unsigned char *data,
               const uint64_t *h, size_t n, bly_peel_eight *out)
{
    if (n == 8 && row && row->find) {
        row->find(p, data, h, out);
        return;
    }
    for (size_t j = 0; j < n; j++) {
        bly_peel_key key;
        bly_peel_find(p, arity, fuse, data, h[j], &key);
        out->g[j] = key.g;
        for (unsigned k = 0; k < arity; k++)
            out->slot[k][j] = key.slot[k];
    }
}

static inline __attribute__((always_inline)) void
bly_peel_fetch(const bly_peel_eight *keys, size_t n, unsigned arity,
               const unsigned char *cells, unsigned cell_bits)
{
    for (size_t j = 0; j < n; j++)
        for (unsigned k = 0; k < arity; k++)
            __builtin_prefetch(cells + keys->slot[k][j] * cell_bits / 8, 0, 2);
}

static inline __attribute__((always_inline)) uint64_t
bly_peel_answer(const bly_peel_eight *keys, size_t n, unsigned arity,
                bly_peel_test *test, const void *ctx, size_t first)
{
    uint64_t bits = 0;
    for (size_t j = 0; j < n; j++) {
        bly_peel_key key;
        key.g = keys->g[j];
        for (unsigned k = 0; k < arity; k++)
            key.slot[k] = keys->slot[k][j];
        bits |= (uint64_t)test(ctx, &key, first + j) << j;
    }
    return bits;
}

/* Query n hashes; the words of maybe get the answers of test(). Cells are at
 * data + bly_peel_head(), cell_bits each. arity, fuse, cell_bits and test are
 * literals where that matters: the loops are compiled for them. */
static inline __attribute__((always_inline)) void
bly_peel_ask(const bly_peel *p, unsigned arity, bool fuse,
             const unsigned char *data, unsigned cell_bits, const uint64_t *h,
             size_t n, bly_peel_test *test, const void *ctx, uint64_t *maybe)
{
    const unsigned char *const cells = data + bly_peel_head(p->nshards);
    const bly_peel geometry = *p; /* nobody else can change this one */
    const size_t ngroups = n / 8 + (n % 8 != 0);
    const uint64_t nbytes = p->nslots * p->nshards * cell_bits / 8;
    const bool ahead =
        nbytes > (n > 8 ? BLY_PEEL_CACHED : BLY_PEEL_BEYOND) && n > 1;
    const size_t far = ahead ? BLY_PEEL_FAR : 0;
    const bly_peel_row *const row =
        n >= 8 && p->nshards <= UINT32_MAX ? bly_peel_best() : NULL;
    bly_peel_eight ring[BLY_PEEL_RING];
    uint64_t bits = 0;
    for (size_t in = 0; in < ngroups + far; in++) {
        if (in < ngroups) {
            const size_t m = n - 8 * in < 8 ? n - 8 * in : 8;
            bly_peel_eight *const last = &ring[in % BLY_PEEL_RING];
            bly_peel_enter(&geometry, arity, fuse, row, data, h + 8 * in, m,
                           last);
            if (ahead)
                bly_peel_fetch(last, m, arity, cells, cell_bits);
        }
        if (in < far)
            continue;
        const size_t at = in - far;
        const size_t m = n - 8 * at < 8 ? n - 8 * at : 8;
        bits |= bly_peel_answer(&ring[at % BLY_PEEL_RING], m, arity, test, ctx,
                                8 * at)
                << at % 8 * 8;
        if (at % 8 == 7 || at + 1 == ngroups) {
            maybe[at / 8] = bits;
            bits = 0;
        }
    }
}

#endif
