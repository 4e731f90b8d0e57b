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

/* A row on its way to a slot. */
typedef struct ribbon_row {
    uint64_t row, print;
    size_t at; /* the slot of its first 1 */
} ribbon_row;

static inline ribbon_row ribbon_row_of(uint64_t u, size_t start)
{
    return (ribbon_row){ bly_ribbon_row(u), bly_ribbon_print(u), start };
}

enum { RIBBON_MOVED, RIBBON_PLACED, RIBBON_VANISHED };

/* Leave x in its slot, or move it on. Nothing remains of one that follows from
 * those before. */
static inline __attribute__((always_inline)) int
ribbon_reduce(const ribbon_band *band, ribbon_row *x)
{
    const uint64_t other = band->rows[x->at];
    if (!other) {
        band->rows[x->at] = x->row;
        band->prints[x->at] = x->print;
        return RIBBON_PLACED;
    }
    x->row ^= other;
    x->print ^= band->prints[x->at];
    if (!x->row)
        return RIBBON_VANISHED;
    const size_t zeros = (size_t)__builtin_ctzll(x->row);
    x->row >>= zeros;
    x->at += zeros;
    return RIBBON_MOVED;
}

/* All keys or none. */
static bool ribbon_fill_all(const bly_ribbon_layer *l, const ribbon_band *band,
                            const uint64_t *u, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const bly_ribbon_key key = bly_ribbon_place(l, u[i]);
        ribbon_row x = ribbon_row_of(u[i], key.start);
        int done;
        while (!(done = ribbon_reduce(band, &x)))
            ;
        if (done == RIBBON_VANISHED && (x.print & l->needs[key.wide]))
            return false;
    }
    return true;
}

/* 32 keys that start within a step are a chance of 10^-26, or a choice of
 * someone's: they are bumped. */
#define RIBBON_STEP_KEYS 32

/* Buckets one after the other, and the key of them that is being inserted. */
typedef struct ribbon_stream {
    const bly_ribbon_layer *l;
    const ribbon_band *band;
    unsigned char *bounds;
    uint64_t *u;
    size_t nbumped; /* keys exchanged to the front of u */
    size_t from;    /* keys of the bucket: its first, */
    size_t end;     /* behind its last, */
    size_t stop;    /* and behind the stream's last */
    size_t now;     /* the key that is being inserted */
    uint64_t needs; /* its */
    size_t last;    /* behind the last key of its step */
    uint32_t step;
    size_t npivots; /* slots that keys of the step have taken */
    size_t pivots[RIBBON_STEP_KEYS];
} ribbon_stream;

/* Behind the last key. */
static const ribbon_row ribbon_none = { 0, 0, SIZE_MAX };

static ribbon_row ribbon_take_bucket(ribbon_stream *s);

/* The step of the present key, and so those left of it, find no room. A row is
 * in the slot of its first 1 and changes no other, so emptying the slots that
 * the step has taken undoes it. Bumped keys are exchanged with keys before
 * them, which have been taken care of. */
static ribbon_row ribbon_bump(ribbon_stream *s)
{
    const uint32_t per = BLY_RIBBON_BUCKET / BLY_RIBBON_STEP;
    while (s->npivots > 0) {
        const size_t at = s->pivots[--s->npivots];
        s->band->rows[at] = s->band->prints[at] = 0;
    }
    s->bounds[s->step / per] = (unsigned char)(s->step % per + 1);
    for (size_t i = s->from; i < s->last; i++) {
        const uint64_t key = s->u[i];
        s->u[i] = s->u[s->nbumped];
        s->u[s->nbumped++] = key;
    }
    return ribbon_take_bucket(s);
}

/* Begin with key s->now. */
static ribbon_row ribbon_take(ribbon_stream *s, bool first)
{
    const uint64_t u = s->u[s->now];
    const bly_ribbon_key key = bly_ribbon_place(s->l, u);
    const uint32_t step = key.start / BLY_RIBBON_STEP;
    if (first || step != s->step) {
        s->step = step;
        s->last = s->now + 1;
        s->npivots = 0;
    }
    s->needs = s->l->needs[key.wide];
    if (s->npivots == RIBBON_STEP_KEYS)
        return ribbon_bump(s);
    return ribbon_row_of(u, key.start);
}

/* The next bucket that has keys. */
static ribbon_row ribbon_take_bucket(ribbon_stream *s)
{
    s->from = s->end;
    if (s->from == s->stop)
        return ribbon_none;
    const uint32_t bucket =
        bly_ribbon_place(s->l, s->u[s->from]).start / BLY_RIBBON_BUCKET;
    while (++s->end < s->stop)
        if (bly_ribbon_place(s->l, s->u[s->end]).start / BLY_RIBBON_BUCKET !=
            bucket)
            break;
    s->now = s->end - 1;
    return ribbon_take(s, true);
}

/* What follows when x is done: the key to its left. */
static __attribute__((noinline)) ribbon_row ribbon_next(ribbon_stream *s,
                                                        ribbon_row x, int done)
{
    if (done == RIBBON_PLACED)
        s->pivots[s->npivots++] = x.at;
    else if (x.print & s->needs)
        return ribbon_bump(s);
    if (s->now == s->from)
        return ribbon_take_bucket(s);
    s->now--;
    return ribbon_take(s, false);
}

static inline __attribute__((always_inline)) void
ribbon_go(ribbon_stream *s, const ribbon_band *band, ribbon_row *x)
{
    const int done = ribbon_reduce(band, x);
    if (done)
        *x = ribbon_next(s, *x, done);
}

/* Fill one shard or two: a row waits for one load after the other, and in
 * between there is time for that of another shard. */
static void ribbon_fill(const bly_ribbon_layer *l, bly_ribbon_part *parts,
                        const ribbon_band *bands, unsigned nparts,
                        unsigned char *data)
{
    ribbon_stream s[2];
    ribbon_row x[2] = { ribbon_none, ribbon_none };
    for (unsigned i = 0; i < nparts; i++) {
        unsigned char *const bounds =
            data + l->bounds + parts[i].shard * l->nbounds;
        s[i] = (ribbon_stream){ .l = l,
                                .band = &bands[i],
                                .bounds = bounds,
                                .u = parts[i].u,
                                .stop = parts[i].n };
        memset(bounds, 0, l->nbounds);
        x[i] = ribbon_take_bucket(&s[i]);
    }
    ribbon_row a = x[0], b = x[1];
    while (a.row && b.row) {
        ribbon_go(&s[0], &bands[0], &a);
        ribbon_go(&s[1], &bands[1], &b);
    }
    while (a.row)
        ribbon_go(&s[0], &bands[0], &a);
    while (b.row)
        ribbon_go(&s[1], &bands[1], &b);
    for (unsigned i = 0; i < nparts; i++)
        parts[i].nbumped = s[i].nbumped;
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

BLY_BEST_ROW(bly_ribbon_variant, bly_ribbon_best, bly_ribbon_variants)

void bly_ribbon_solve(const bly_ribbon_layer *l, bly_ribbon_part *parts,
                      unsigned nparts, unsigned char *data)
{
    uint64_t *const words = (uint64_t *)(void *)data + l->words;
    ribbon_band bands[2] = { { NULL, NULL }, { NULL, NULL } };
    for (unsigned i = 0; i < nparts; i++) {
        uint64_t *const room = parts[i].room;
        bands[i] = (ribbon_band){ room, room + l->nslots };
        memset(room, 0, BLY_RIBBON_ROOM * l->nslots * sizeof *room);
    }
    if (l->nbounds)
        ribbon_fill(l, parts, bands, nparts, data);
    for (unsigned i = 0; i < nparts; i++) {
        if (!l->nbounds &&
            !ribbon_fill_all(l, &bands[i], parts[i].u, parts[i].n)) {
            parts[i].nbumped = parts[i].n;
            continue;
        }
        bly_ribbon_best()->substitute(l, bands[i].rows, bands[i].prints,
                                      words + parts[i].shard * l->stride);
    }
}
