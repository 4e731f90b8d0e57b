/*
 * runs.h - small numbers in sorted runs, found by rank and select
 *
 * A table of slots of r bits, in blocks of 64. The contents of a slot belong to
 * a quotient q, and should lie in slot q, its home; if that is taken, they lie
 * behind it. All slots of one quotient form a run, and runs follow each other
 * in the order of their quotients, with gaps where nothing has been pushed.
 *
 *     block: | offset 8 | occupieds 64 | runends 64 | 64 slots of r bits |
 *
 *     occupieds  bit i: there is a run of quotient i
 *     runends    bit i: a run ends in slot i
 *     offset     slots from here on that hold runs of earlier blocks
 *
 * 2.125 bits per slot record the quotients: behind the offset, the run of the
 * d-th occupied quotient of a block ends at the d-th runend [1].
 *
 *     slots       0    1    2    3    4    5       quotient 1: a c c
 *     occupieds   0    1    1    0    0    1       quotient 2: b
 *     runends     0    0    0    1    1    1       quotient 5: a
 *     contents    .    a    c    c    b    a
 *
 * Empty slots are zero, as are their runends. The table does not wrap around:
 * blocks behind the last home take what is pushed out at the end. Opening a
 * slot fails if these are full, or if an offset would exceed 255.
 *
 * Queries are safe and terminate whatever the bytes are. Changes are only for
 * undamaged tables.
 *
 * [1] Pandey, Bender, Johnson and Patro, A General-Purpose Counting Filter:
 *     Making Every Bit Count, 2017
 */
#ifndef BLY_RUNS_H
#define BLY_RUNS_H

#include "core/bits.h"

#define BLY_RUNS_BLOCK 64
#define BLY_RUNS_OCCUPIEDS 1 /* where in a block they are */
#define BLY_RUNS_ENDS 9
#define BLY_RUNS_HEAD 17  /* bytes of a block before its slots */
#define BLY_RUNS_MAX_R 56 /* with 7 bits before it in its byte: one word */
#define BLY_RUNS_SHORT 57 /* bits that are in a word wherever they begin */
#define BLY_RUNS_MAX_OFFSET 255
#define BLY_RUNS_MAX_OPEN 68 /* slots opened at once */

typedef struct bly_runs {
    unsigned char *data;
    uint64_t nblocks, stride; /* blocks, and bytes per block */
    uint64_t mask;            /* the r bits of a slot */
    unsigned r;
    bool pdep; /* this processor selects by it: bly_select_by() */
} bly_runs;

/* Bytes of a block. */
static inline uint64_t bly_runs_stride(uint64_t r)
{
    return BLY_RUNS_HEAD + r * BLY_RUNS_BLOCK / 8;
}

/* Bytes of a table. A slot is loaded as 8 bytes from that of its first bit. */
static inline uint64_t bly_runs_nbytes(uint64_t nblocks, uint64_t r)
{
    return (nblocks * bly_runs_stride(r) + 7 + 7) / 8 * 8;
}

static inline bly_runs bly_runs_of(unsigned char *data, uint64_t nblocks,
                                   unsigned r)
{
    return (bly_runs){ .data = data,
                       .nblocks = nblocks,
                       .stride = bly_runs_stride(r),
                       .mask = (UINT64_C(1) << r) - 1,
                       .r = r };
}

/* Always inlined: code that counts ones must become part of its caller, which
 * may be a variant for a processor that has an instruction for it. */
#define BLY_RUNS_INLINE static inline __attribute__((always_inline))

BLY_RUNS_INLINE unsigned char *bly_runs_block(const bly_runs *t, uint64_t j)
{
    return t->data + j * t->stride;
}

BLY_RUNS_INLINE unsigned char *bly_runs_occupieds(const bly_runs *t, uint64_t j)
{
    return bly_runs_block(t, j) + BLY_RUNS_OCCUPIEDS;
}

BLY_RUNS_INLINE unsigned char *bly_runs_ends(const bly_runs *t, uint64_t j)
{
    return bly_runs_block(t, j) + BLY_RUNS_ENDS;
}

BLY_RUNS_INLINE uint64_t bly_runs_get(const bly_runs *t, uint64_t slot)
{
    const unsigned bit = (unsigned)(slot % BLY_RUNS_BLOCK) * t->r;
    const unsigned char *p =
        bly_runs_block(t, slot / BLY_RUNS_BLOCK) + BLY_RUNS_HEAD;
    return bly_load64(p + bit / 8) >> bit % 8 & t->mask;
}

BLY_RUNS_INLINE void bly_runs_set(const bly_runs *t, uint64_t slot,
                                  uint64_t value)
{
    const unsigned bit = (unsigned)(slot % BLY_RUNS_BLOCK) * t->r;
    unsigned char *p =
        bly_runs_block(t, slot / BLY_RUNS_BLOCK) + BLY_RUNS_HEAD + bit / 8;
    const uint64_t word = bly_load64(p);
    bly_store64(p, (word & ~(t->mask << bit % 8)) | value << bit % 8);
}

BLY_RUNS_INLINE void bly_runs_mark(unsigned char *word, uint64_t i, bool on)
{
    const uint64_t bit = UINT64_C(1) << i % 64, old = bly_load64(word);
    bly_store64(word, on ? old | bit : old & ~bit);
}

BLY_RUNS_INLINE void bly_runs_mark_occupied(const bly_runs *t, uint64_t q,
                                            bool on)
{
    bly_runs_mark(bly_runs_occupieds(t, q / BLY_RUNS_BLOCK), q, on);
}

BLY_RUNS_INLINE void bly_runs_mark_end(const bly_runs *t, uint64_t slot,
                                       bool on)
{
    bly_runs_mark(bly_runs_ends(t, slot / BLY_RUNS_BLOCK), slot, on);
}

/* The position of the highest one of x, counted from 1; 0 if there is none. */
BLY_RUNS_INLINE unsigned bly_runs_ones_to(uint64_t x)
{
    return 64 - (unsigned)__builtin_clzll(x | 1) - (unsigned)(x == 0);
}

#define BLY_RUNS_NOWHERE UINT64_MAX

/* The d-th runend, from 1, at or behind `from`, of a quotient of block j: at
 * most an offset behind the end of its block. In a damaged table it may not
 * exist. */
BLY_RUNS_INLINE uint64_t bly_runs_nth_end(const bly_runs *t, uint64_t j,
                                          uint64_t from, unsigned d)
{
    /* In an undamaged table it is never farther; in a damaged one the search
     * must not go through all of it for every key. */
    const uint64_t far = j + 2 + BLY_RUNS_MAX_OFFSET / BLY_RUNS_BLOCK;
    uint64_t i = from / BLY_RUNS_BLOCK, hide = UINT64_MAX << from % 64;
    for (; i < t->nblocks && i <= far; i++, hide = UINT64_MAX) {
        const uint64_t ends = bly_load64(bly_runs_ends(t, i)) & hide;
        const unsigned n = (unsigned)__builtin_popcountll(ends);
        if (d <= n)
            return i * BLY_RUNS_BLOCK + bly_select_by(ends, d - 1, t->pdep);
        d -= n;
    }
    return BLY_RUNS_NOWHERE;
}

/* The slot behind the last run of quotients up to x, or at most x if there is
 * none. So slot x is empty exactly if this is not above x. */
BLY_RUNS_INLINE uint64_t bly_runs_upto(const bly_runs *t, uint64_t x)
{
    const uint64_t j = x / BLY_RUNS_BLOCK;
    const uint64_t from = j * BLY_RUNS_BLOCK + *bly_runs_block(t, j);
    const uint64_t ours = bly_load64(bly_runs_occupieds(t, j)) & bly_through(x);
    if (!ours)
        return from;
    return bly_runs_nth_end(t, j, from, (unsigned)__builtin_popcountll(ours)) +
           1;
}

/* The first slot at or behind `from` to which nothing has been pushed: all runs
 * of quotients before it end before it. It is empty, or holds the first of its
 * own run. With `empty`, its own quotient must have no run either, so that the
 * slot is empty. If there is none, returns the slot behind the last.
 *
 * In each block the search begins behind the offset. If d runs should end
 * before a slot, but have not, the next candidate is the slot behind the d-th
 * runend. */
BLY_RUNS_INLINE uint64_t bly_runs_rest(const bly_runs *t, uint64_t from,
                                       bool empty)
{
    unsigned at = (unsigned)(from % BLY_RUNS_BLOCK);
    for (uint64_t j = from / BLY_RUNS_BLOCK; j < t->nblocks; j++, at = 0) {
        const unsigned char *const block = bly_runs_block(t, j);
        const unsigned offset = *block;
        if (offset >= BLY_RUNS_BLOCK)
            continue; /* runs of earlier blocks fill it */
        const uint64_t occupieds = bly_load64(block + BLY_RUNS_OCCUPIEDS);
        const uint64_t ends = bly_load64(block + BLY_RUNS_ENDS) & UINT64_MAX
                                                                      << offset;
        const unsigned n = (unsigned)__builtin_popcountll(ends);
        at = at > offset ? at : offset;
        unsigned ended =
            (unsigned)__builtin_popcountll(ends & ((UINT64_C(1) << at) - 1));
        while (at < BLY_RUNS_BLOCK) {
            const unsigned d = (unsigned)__builtin_popcountll(
                occupieds & bly_through(at) >> !empty);
            /* d quotients lie before `at`. If as many runs have ended, nothing
             * is pushed here. Else no slot up to the d-th runend qualifies and,
             * if that is not in this block, no slot of the block does. */
            if (d <= ended)
                return j * BLY_RUNS_BLOCK + at;
            if (d > n)
                break;
            at = bly_select_by(ends, d - 1, t->pdep) + 1;
            ended = d;
        }
    }
    return t->nblocks * BLY_RUNS_BLOCK;
}

/* The run of quotient q, if it has one. */
typedef struct bly_run {
    uint64_t start, end; /* first and last slot */
} bly_run;

BLY_RUNS_INLINE bool bly_runs_find(const bly_runs *t, uint64_t q, bly_run *run)
{
    const uint64_t j = q / BLY_RUNS_BLOCK;
    const uint64_t occupieds = bly_load64(bly_runs_occupieds(t, j));
    if (!(occupieds >> q % 64 & 1))
        return false;
    const uint64_t from = j * BLY_RUNS_BLOCK + *bly_runs_block(t, j);
    const unsigned d =
        (unsigned)__builtin_popcountll(occupieds & bly_through(q));
    run->end = bly_runs_nth_end(t, j, from, d);
    run->start = from > q ? from : q;
    if (run->end == BLY_RUNS_NOWHERE || run->end < run->start)
        return false;
    /* Behind the run before, if that ends behind `start`. */
    uint64_t i = run->end / BLY_RUNS_BLOCK;
    uint64_t ends =
        bly_load64(bly_runs_ends(t, i)) & bly_through(run->end) >> 1;
    while (!ends && i > run->start / BLY_RUNS_BLOCK)
        ends = bly_load64(bly_runs_ends(t, --i));
    if (ends) {
        const uint64_t last =
            i * BLY_RUNS_BLOCK + 63 - (unsigned)__builtin_clzll(ends);
        if (last >= run->start)
            run->start = last + 1;
    }
    return true;
}

/* Most runs lie in the block of their quotient or the next. They are found
 * without a branch, and so is the place where a missing one would begin. */
typedef struct bly_glance {
    unsigned char *slots; /* of the block in which it is */
    uint64_t first;       /* the number of its first slot */
    unsigned start, len;  /* the run in it */
    uint64_t there;       /* all ones: there is one; else 0 */
    uint64_t doubt;       /* not 0: ask bly_runs_find() */
} bly_glance;

/* The run of quotient q, whose home is in this block; another block must
 * follow. With `place`, a missing run gets the place where it would begin, and
 * a len of 0. Without, only .there is meaningful for a missing run. */
BLY_RUNS_INLINE bly_glance bly_runs_glance(const bly_runs *t,
                                           unsigned char *block, uint64_t q,
                                           bool place)
{
    const unsigned offset = *block, home = (unsigned)(q % BLY_RUNS_BLOCK);
    /* The occupied quotients up to q, which is the highest bit: d is its rank,
     * and the d-th runend from the offset on is the end of its run. */
    const uint64_t upto = bly_load64(block + BLY_RUNS_OCCUPIEDS) << (63 - home);
    const uint64_t here =
        bly_load64(block + BLY_RUNS_ENDS) & UINT64_MAX << offset % 64;
    const uint64_t next = bly_load64(block + t->stride + BLY_RUNS_ENDS);
    const uint64_t there = 0 - (upto >> 63);
    const unsigned d = (unsigned)__builtin_popcountll(upto);
    const unsigned nhere = (unsigned)__builtin_popcountll(here);
    /* All ones where the last run up to q ends behind this block. */
    const uint64_t far = 0 - (uint64_t)(d > nhere);
    /* The runends to look at, and the number of ours among them: by masks, as
     * a branch here could not be predicted. */
    const uint64_t ends = here ^ ((here ^ next) & far);
    const unsigned k = d - 1 - (nhere & (unsigned)far);
    const uint64_t end = bly_nth_one(ends, k, t->pdep);
    /* The run begins behind the one before it. A missing run would begin behind
     * this one. */
    uint64_t before = ends & (end - 1);
    if (place)
        before = (ends & (end - (end != 0))) | (end & ~there);
    const unsigned least = (offset > home ? offset : home) & ~(unsigned)far;
    const unsigned behind = bly_runs_ones_to(before);
    /* far is -1 as a number: the next block. */
    bly_glance g = { .slots = block + (t->stride & far) + BLY_RUNS_HEAD,
                     .first = (q / BLY_RUNS_BLOCK - far) * BLY_RUNS_BLOCK,
                     .start = behind > least ? behind : least,
                     .there = there };
    const unsigned stop = bly_runs_ones_to(end);
    g.len = stop - g.start;
    /* The first run that ends in the next block may begin in this one. A stop
     * at or before the start means that there is no such runend, or that the
     * table is damaged. */
    g.doubt = (far & (uint64_t)(k == 0)) | (uint64_t)(stop <= g.start);
    if (place) {
        const uint64_t none = (uint64_t)(end == 0) & (uint64_t)(d != 0);
        g.doubt = (g.doubt & there) | (none & ~there);
        g.len &= (unsigned)there;
    }
    /* If the offset is beyond the block, `here` was masked wrongly. */
    g.doubt |= offset / 64;
    return g;
}

/* Is slot q empty, and is there no run of this quotient? Then all runs of
 * quotients before end before. */
BLY_RUNS_INLINE bool bly_runs_home_empty(const bly_runs *t, uint64_t q)
{
    const unsigned char *const block = bly_runs_block(t, q / BLY_RUNS_BLOCK);
    const unsigned offset = *block, home = (unsigned)(q % BLY_RUNS_BLOCK);
    const uint64_t before = (UINT64_C(1) << home) - 1;
    const uint64_t occupieds =
        bly_load64(block + BLY_RUNS_OCCUPIEDS) & bly_through(home);
    const uint64_t ends =
        bly_load64(block + BLY_RUNS_ENDS) & UINT64_MAX << offset % 64;
    return offset <= home &&
           __builtin_popcountll(occupieds) ==
               __builtin_popcountll(ends & before) &&
           !(occupieds >> home);
}

/* --------------------------------------------------------------- changing */

/* Slots from .. empty-1 move to from+1 .. empty, runends with them; slot
 * `from` is then free, and its runend clear. */
void bly_runs_shift_up(const bly_runs *t, uint64_t from, uint64_t empty);

/* Slots at+1 .. end-1 move to at .. end-2, runends with them; slot end-1 is
 * then empty. */
void bly_runs_shift_down(const bly_runs *t, uint64_t at, uint64_t end);

/* n empty slots, in order, are about to be filled by moving up what lies before
 * them. The offset of a block behind quotient q rises by the number of these
 * slots that lie in it or behind it. Without `change`: can all offsets hold
 * that? With it: do it. */
BLY_RUNS_INLINE bool bly_runs_offsets(const bly_runs *t, uint64_t q,
                                      const uint64_t *empty, unsigned n,
                                      bool change)
{
    unsigned i = 0; /* empty slots before block j: they push nobody into it */
    for (uint64_t j = q / BLY_RUNS_BLOCK + 1;
         j * BLY_RUNS_BLOCK <= empty[n - 1]; j++) {
        unsigned char *const offset = bly_runs_block(t, j);
        while (empty[i] < j * BLY_RUNS_BLOCK)
            i++;
        if (change)
            *offset = (unsigned char)(*offset + (n - i));
        else if (*offset + (n - i) > BLY_RUNS_MAX_OFFSET)
            return false;
    }
    return true;
}

/* Make n free slots at `at`, in the run of quotient q; false, with nothing
 * changed, if there is no room. Their runends are clear. */
BLY_RUNS_INLINE bool bly_runs_open(const bly_runs *t, uint64_t q, uint64_t at,
                                   unsigned n)
{
    const uint64_t nslots = t->nblocks * BLY_RUNS_BLOCK;
    uint64_t empty[BLY_RUNS_MAX_OPEN], from = at;
    for (unsigned i = 0; i < n; i++) {
        empty[i] = from < nslots ? bly_runs_rest(t, from, true) : nslots;
        if (empty[i] >= nslots)
            return false;
        from = empty[i] + 1;
    }
    /* First check that all of it can be done, then do it. */
    if (!bly_runs_offsets(t, q, empty, n, false))
        return false;
    bly_runs_offsets(t, q, empty, n, true);
    for (unsigned i = 0; i < n; i++)
        bly_runs_shift_up(t, at, empty[i]);
    return true;
}

/* Insert a value at slot `at` in the run of quotient q, which begins with it
 * unless it was `there`; last: no slot of the run lies behind. False, with
 * nothing changed, if there is no room. */
BLY_RUNS_INLINE bool bly_runs_insert(const bly_runs *t, uint64_t q, uint64_t at,
                                     bool there, bool last, uint64_t value)
{
    if (at >= t->nblocks * BLY_RUNS_BLOCK)
        return false;
    const uint64_t empty = bly_runs_rest(t, at, true);
    const unsigned moved = (unsigned)(empty - at) * t->r;
    const unsigned a = (unsigned)(at % BLY_RUNS_BLOCK);
    const unsigned b = (unsigned)(empty % BLY_RUNS_BLOCK);
    unsigned char *const block = bly_runs_block(t, q / BLY_RUNS_BLOCK);
    if (empty / BLY_RUNS_BLOCK == q / BLY_RUNS_BLOCK &&
        (b - a + 1) * t->r <= BLY_RUNS_SHORT) {
        /* The usual case: everything that moves is in one word, and no offset
         * changes. */
        unsigned char *const p = block + BLY_RUNS_HEAD + a * t->r / 8;
        const unsigned bit = a * t->r % 8;
        const uint64_t word = bly_load64(p), old = word >> bit;
        const uint64_t stay = (UINT64_C(1) << moved) - 1;
        const uint64_t all = (UINT64_C(1) << (moved + t->r)) - 1;
        const uint64_t now = (old & stay) << t->r | value;
        bly_store64(p, (word & ~(all << bit)) | now << bit);
        const uint64_t ends = bly_load64(block + BLY_RUNS_ENDS);
        const uint64_t span = (UINT64_MAX << a) & bly_through(b);
        const uint64_t up = (ends & ~span) | ((ends & span) << 1 & span);
        const uint64_t end = (uint64_t)last << a;
        /* The new last slot of a run takes over from the one before it, which
         * is in this block, too: it lies in q's home or behind it. */
        bly_store64(block + BLY_RUNS_ENDS, (up & ~(end >> there)) | end);
    } else {
        if (empty >= t->nblocks * BLY_RUNS_BLOCK ||
            !bly_runs_offsets(t, q, &empty, 1, false))
            return false;
        bly_runs_offsets(t, q, &empty, 1, true);
        bly_runs_shift_up(t, at, empty);
        bly_runs_set(t, at, value);
        if (last && there)
            bly_runs_mark_end(t, at - 1, false);
        if (last)
            bly_runs_mark_end(t, at, true);
    }
    bly_runs_mark(block + BLY_RUNS_OCCUPIEDS, q, true);
    return true;
}

/* Take slot `at` out of the run of quotient q. */
BLY_RUNS_INLINE void bly_runs_close(const bly_runs *t, uint64_t q, uint64_t at,
                                    const bly_run *run)
{
    /* All that was pushed moves down, up to the first slot that was not. */
    const uint64_t end = bly_runs_rest(t, run->end + 1, false);
    bly_runs_shift_down(t, at, end);
    if (run->start == run->end)
        bly_runs_mark_occupied(t, q, false);
    else if (at == run->end)
        bly_runs_mark_end(t, at - 1, true);
    /* Blocks that begin behind q and before `end` were pushed into. */
    for (uint64_t j = q / BLY_RUNS_BLOCK + 1; j * BLY_RUNS_BLOCK < end; j++)
        --*bly_runs_block(t, j);
}

/* --------------------------------------------------------------- walking */

/* The first runend at or behind a slot, or BLY_RUNS_NOWHERE. */
uint64_t bly_runs_next_end(const bly_runs *t, uint64_t slot);

/* Are slots from .. to-1 empty: zero, with their runends clear? */
bool bly_runs_clear_between(const bly_runs *t, uint64_t from, uint64_t to);

#endif
