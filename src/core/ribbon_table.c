/*
 * ribbon_table.c - a shard: elimination, bounds, back substitution
 *
 * A shard has about as many keys as slots, so that some find no room. They are
 * bumped: left to the next layer. To be told who was, a key asks the bound of
 * its bucket, 256 slots long; those that start below it were.
 *
 * Buckets are taken from left to right, and the keys within a bucket from right
 * to left. Keys of the bucket before spill over into its first slots, so it is
 * there that room ends first, and few keys lie between a bound and the bucket's
 * beginning [1].
 *
 * [1] Dillinger, Huebschle-Schneider, Sanders and Walzer, Fast Succinct
 *     Retrieval and Approximate Membership using Ribbon, 2022
 */
#include "core/ribbon_table.h"

#include <stdatomic.h>
#include <string.h>

/* The inverse of bly_mix64(), with the inverses of its factors mod 2^64. */
static uint64_t unmix64(uint64_t x)
{
    x ^= x >> 31 ^ x >> 62;
    x *= UINT64_C(0x319642b2d24d8ec3);
    x ^= x >> 27 ^ x >> 54;
    x *= UINT64_C(0x96de1b173f119089);
    return x ^ x >> 30 ^ x >> 60;
}

uint64_t bly_ribbon_unhash(uint64_t u, uint64_t seed)
{
    return unmix64(u) ^ seed;
}

/* The system while it is made. */
typedef struct ribbon_band {
    uint64_t *rows, *prints;
} ribbon_band;

/* No slot: the key follows from others. */
#define RIBBON_NOWHERE SIZE_MAX

/* Find a slot for the row of u, and fill it. False where there is none. */
static inline bool ribbon_insert(const bly_ribbon_layer *l,
                                 const ribbon_band *band, uint64_t u,
                                 size_t *pivot)
{
    const bly_ribbon_key key = bly_ribbon_place(l, u);
    uint64_t row = bly_ribbon_row(u), print = bly_ribbon_print(u), other;
    size_t at = key.start;
    while ((other = band->rows[at])) {
        row ^= other;
        print ^= band->prints[at];
        if (!row) {
            *pivot = RIBBON_NOWHERE;
            return !(print & l->needs[key.wide]);
        }
        const size_t zeros = (size_t)__builtin_ctzll(row);
        row >>= zeros;
        at += zeros;
    }
    band->rows[at] = row;
    band->prints[at] = print;
    *pivot = at;
    return true;
}

/* Insert the keys from `from` to `to`, all or none. A row is kept in the slot
 * of its first 1 and no other changes, so emptying those undoes it. */
static bool ribbon_insert_all(const bly_ribbon_layer *l,
                              const ribbon_band *band, const uint64_t *from,
                              const uint64_t *to)
{
    size_t pivots[32];
    size_t n = 0;
    for (const uint64_t *u = to; u > from; u--) {
        /* 32 keys with one start, or two, are a chance of 10^-20 or a choice
         * of someone's: they are bumped. */
        if (n < sizeof pivots / sizeof pivots[0] &&
            ribbon_insert(l, band, u[-1], &pivots[n])) {
            n++;
            continue;
        }
        while (n > 0)
            if (pivots[--n] != RIBBON_NOWHERE)
                band->rows[pivots[n]] = band->prints[pivots[n]] = 0;
        return false;
    }
    return true;
}

/* The step in which u starts, counted from the first slot of the shard. */
static inline uint32_t ribbon_step(const bly_ribbon_layer *l, uint64_t u)
{
    return bly_ribbon_place(l, u).start / BLY_RIBBON_STEP;
}

/* Insert the keys of a bucket, step by step from the right; how many of them,
 * from the left, found no room. *bound is the first step that did. */
static size_t ribbon_fill_bucket(const bly_ribbon_layer *l,
                                 const ribbon_band *band, const uint64_t *u,
                                 size_t n, unsigned char *bound)
{
    const uint32_t per = BLY_RIBBON_BUCKET / BLY_RIBBON_STEP;
    *bound = 0;
    while (n > 0) {
        const uint32_t step = ribbon_step(l, u[n - 1]);
        size_t from = n - 1;
        while (from > 0 && ribbon_step(l, u[from - 1]) == step)
            from--;
        if (!ribbon_insert_all(l, band, u + from, u + n)) {
            *bound = (unsigned char)(step % per + 1);
            break;
        }
        n = from;
    }
    return n;
}

/* All keys by buckets. What is bumped is exchanged with keys before it, which
 * have been taken care of. */
static size_t ribbon_fill(const bly_ribbon_layer *l, const ribbon_band *band,
                          uint64_t *u, size_t n, unsigned char *bounds)
{
    size_t nbumped = 0;
    memset(bounds, 0, l->nbounds);
    for (size_t from = 0, to; from < n; from = to) {
        const uint32_t bucket =
            bly_ribbon_place(l, u[from]).start / BLY_RIBBON_BUCKET;
        for (to = from + 1; to < n; to++)
            if (bly_ribbon_place(l, u[to]).start / BLY_RIBBON_BUCKET != bucket)
                break;
        const size_t left =
            ribbon_fill_bucket(l, band, u + from, to - from, &bounds[bucket]);
        for (size_t i = 0; i < left; i++) {
            const uint64_t key = u[from + i];
            u[from + i] = u[nbumped];
            u[nbumped++] = key;
        }
    }
    return nbumped;
}

/* Slots from the last to the first; a free one is 0. planes[i] holds bit i of
 * the 64 slots behind the present one, the nearest lowest, and so after each
 * 64th slot a word of the block. */
static void substitute_portable(const bly_ribbon_layer *l, const uint64_t *rows,
                                const uint64_t *prints, uint64_t *words)
{
    const unsigned ngroups = (l->nplanes + 3) / 4;
    uint64_t planes[BLY_RIBBON_MAX_WIDTH] = { 0 };
    for (size_t block = l->nslots / 64; block-- > 0;) {
        for (size_t i = block * 64 + 64; i-- > block * 64;) {
            const uint64_t row = rows[i] >> 1, print = prints[i];
            for (unsigned g = 0; g < ngroups; g++) {
                uint64_t *const p = &planes[4 * g];
                const uint64_t bits =
                    bly_ribbon_parities(p[0] & row, p[1] & row, p[2] & row,
                                        p[3] & row) ^
                    print >> 4 * g;
                for (unsigned j = 0; j < 4; j++)
                    p[j] = p[j] << 1 | (bits >> j & 1);
            }
        }
        uint64_t *const to = words + bly_ribbon_block(l, block);
        const unsigned n = l->width + (block >= l->wide);
        for (unsigned i = 0; i < n; i++)
            to[i] = bly_le64(planes[i]);
    }
}

static inline uint64_t four_portable(const uint64_t *x, const uint64_t *y,
                                     uint64_t here, uint64_t there)
{
    uint64_t v[4];
    for (unsigned i = 0; i < 4; i++)
        v[i] = (bly_le64(x[i]) & here) ^ (bly_le64(y[i]) & there);
    return bly_ribbon_parities(v[0], v[1], v[2], v[3]);
}

static void ask_portable(const bly_ribbon_layer *l, const unsigned char *data,
                         const uint64_t *h, size_t n, bly_ribbon_keys *rest,
                         uint64_t *maybe, bool first, bool ahead)
{
    bly_ribbon_ask_with(l, data, h, n, rest, maybe, first, ahead,
                        four_portable);
}

/* Best first. The last row needs nothing, so the search always ends. */
const bly_ribbon_variant bly_ribbon_variants[] = {
#if BLY_X86
    { "avx2", BLY_CPU_AVX2, bly_ribbon_ask_avx2, bly_ribbon_substitute_avx2 },
#endif
    { "portable", 0, ask_portable, substitute_portable },
};

const bly_ribbon_variant *bly_ribbon_best(void)
{
    static _Atomic(const bly_ribbon_variant *) chosen;
    const bly_ribbon_variant *v =
        atomic_load_explicit(&chosen, memory_order_relaxed);
    if (!v) {
        /* Two threads may both choose; they choose the same row. */
        v = bly_ribbon_variants;
        while (v->needs & ~bly_cpu_features())
            v++;
        atomic_store_explicit(&chosen, v, memory_order_relaxed);
    }
    return v;
}

size_t bly_ribbon_solve(const bly_ribbon_layer *l, uint64_t shard,
                        uint64_t *room, uint64_t *u, size_t n,
                        unsigned char *data)
{
    uint64_t *const words =
        (uint64_t *)(void *)data + l->words + shard * l->stride;
    size_t nbumped = 0;
    const ribbon_band made = { room, room + l->nslots }, *const band = &made;
    memset(room, 0, BLY_RIBBON_ROOM * l->nslots * sizeof *room);
    if (l->nbounds) {
        nbumped =
            ribbon_fill(l, band, u, n, data + l->bounds + shard * l->nbounds);
    } else {
        size_t pivot;
        for (size_t i = 0; i < n && !nbumped; i++)
            if (!ribbon_insert(l, band, u[i], &pivot))
                nbumped = n;
        if (nbumped)
            return nbumped;
    }
    bly_ribbon_best()->substitute(l, band->rows, band->prints, words);
    return nbumped;
}
