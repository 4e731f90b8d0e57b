/*
 * runs.h - small numbers in sorted runs, found by rank and select
 *
 * A table of slots of r bits, in blocks of 64. A slot belongs to a quotient q,
 * and should lie in slot q, its home; where that is taken, it lies behind. All
 * slots of one quotient are a run, and runs follow each other in order of
 * their quotients, with gaps where nobody has been pushed.
 *
 *     block: | offset 8 | occupieds 64 | runends 64 | 64 slots of r bits |
 *
 *     occupieds  bit i: there is a run of quotient i
 *     runends    bit i: a run ends in slot i
 *     offset     slots from here on that hold runs of earlier blocks
 *
 * 2.125 bits a slot tell the quotients: behind the offset, the run of the d-th
 * occupied quotient of a block ends at the d-th runend [1].
 *
 *     slots       0    1    2    3    4    5       quotient 1: a c c
 *     occupieds   0    1    1    0    0    1       quotient 2: b
 *     runends     0    0    0    1    1    1       quotient 5: a
 *     contents    .    a    c    c    b    a
 *
 * Empty slots are zero, as are their runends. The table does not wrap around:
 * blocks behind the last home take what is pushed out at the end. Opening a
 * slot fails where these are full, or where an offset would pass 255.
 *
 * Questions are safe and end whatever the bytes are. Changes are for tables
 * that are whole.
 *
 * [1] Pandey, Bender, Johnson and Patro, A General-Purpose Counting Filter:
 *     Making Every Bit Count, 2017
 */
#ifndef BLY_RUNS_H
#define BLY_RUNS_H

#include "core/bits.h"

#define BLY_RUNS_BLOCK 64
#define BLY_RUNS_HEAD 17  /* bytes of a block before its slots */
#define BLY_RUNS_MAX_R 56 /* with 7 bits before it in its byte: one word */
#define BLY_RUNS_MAX_OFFSET 255
#define BLY_RUNS_MAX_OPEN 68 /* slots opened at once */

typedef struct bly_runs {
    unsigned char *data;
    uint64_t nblocks, stride; /* of so many bytes */
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

/* Always inlined: what counts ones must become part of its caller, which may
 * be a variant for a processor that has an instruction for it. */
#define BLY_RUNS_INLINE static inline __attribute__((always_inline))

BLY_RUNS_INLINE unsigned char *bly_runs_block(const bly_runs *t, uint64_t j)
{
    return t->data + j * t->stride;
}

BLY_RUNS_INLINE unsigned char *bly_runs_occupieds(const bly_runs *t, uint64_t j)
{
    return bly_runs_block(t, j) + 1;
}

BLY_RUNS_INLINE unsigned char *bly_runs_ends(const bly_runs *t, uint64_t j)
{
    return bly_runs_block(t, j) + 9;
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

#define BLY_RUNS_NOWHERE UINT64_MAX

/* The d-th runend, from 1, at or behind `from`, of a quotient of block j: at
 * most an offset behind the end of its block. In a damaged table it may not
 * exist. */
BLY_RUNS_INLINE uint64_t bly_runs_nth_end(const bly_runs *t, uint64_t j,
                                          uint64_t from, unsigned d)
{
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

/* The slot behind the last run of quotients up to x; at most x where there is
 * none, so slot x is empty exactly if this is not above x. */
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

/* Occupied quotients from .. to-1. */
BLY_RUNS_INLINE uint64_t bly_runs_occupied(const bly_runs *t, uint64_t from,
                                           uint64_t to)
{
    uint64_t n = 0, hide = UINT64_MAX << from % 64;
    for (uint64_t j = from / BLY_RUNS_BLOCK;
         j < t->nblocks && j * BLY_RUNS_BLOCK < to; j++, hide = UINT64_MAX) {
        uint64_t ours = bly_load64(bly_runs_occupieds(t, j)) & hide;
        if (to - j * BLY_RUNS_BLOCK < 64)
            ours &= bly_through(to - 1);
        n += (unsigned)__builtin_popcountll(ours);
    }
    return n;
}

/* Where the runs stop that push each other. Of quotients before slot `from`,
 * some runs, `pending` of them, end there or behind; the first slot e > from
 * with none: it is empty, or holds the first of its own run. With `empty`, a
 * quotient `from` or e counts as before: the first e that is empty. Behind the
 * last slot where there is none.
 *
 * e lies behind a runend. If that is the d-th, and there are c runs to end
 * up to there, the c-th is the next to look at. */
BLY_RUNS_INLINE uint64_t bly_runs_rest(const bly_runs *t, uint64_t from,
                                       uint64_t pending, bool empty)
{
    uint64_t j = from / BLY_RUNS_BLOCK, hide = UINT64_MAX << from % 64;
    for (; j < t->nblocks; j++, hide = UINT64_MAX) {
        const uint64_t ends = bly_load64(bly_runs_ends(t, j)) & hide;
        uint64_t come = bly_load64(bly_runs_occupieds(t, j));
        if (empty) { /* one slot sooner */
            come >>= 1;
            if (j + 1 < t->nblocks)
                come |= bly_load64(bly_runs_occupieds(t, j + 1)) << 63;
        }
        come &= hide;
        const uint64_t n = (unsigned)__builtin_popcountll(ends);
        uint64_t d = pending;
        while (d <= n) {
            const unsigned p = bly_select_by(ends, (unsigned)d - 1, t->pdep);
            const uint64_t c =
                pending + (unsigned)__builtin_popcountll(come & bly_through(p));
            if (c == d)
                return j * BLY_RUNS_BLOCK + p + 1;
            d = c;
        }
        pending += (unsigned)__builtin_popcountll(come);
        pending -= n;
    }
    return t->nblocks * BLY_RUNS_BLOCK;
}

BLY_RUNS_INLINE uint64_t bly_runs_empty_from(const bly_runs *t, uint64_t slot)
{
    if (slot >= t->nblocks * BLY_RUNS_BLOCK)
        return slot;
    const uint64_t next = bly_runs_upto(t, slot);
    if (next <= slot)
        return slot;
    const uint64_t pending = bly_runs_occupied(t, slot + 1, next + 1);
    return pending ? bly_runs_rest(t, next, pending, true) : next;
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

/* --------------------------------------------------------------- changing */

/* Slots from .. empty-1 move to from+1 .. empty, runends with them; slot
 * `from` is then free, and its runend clear. */
void bly_runs_shift_up(const bly_runs *t, uint64_t from, uint64_t empty);

/* Slots at+1 .. end-1 move to at .. end-2, runends with them; slot end-1 is
 * then empty. */
void bly_runs_shift_down(const bly_runs *t, uint64_t at, uint64_t end);

/* Make n free slots at `at`, in the run of quotient q; false, and nothing has
 * changed, where there is no room. Their runends are clear. */
BLY_RUNS_INLINE bool bly_runs_open(const bly_runs *t, uint64_t q, uint64_t at,
                                   unsigned n)
{
    const uint64_t nslots = t->nblocks * BLY_RUNS_BLOCK;
    uint64_t empty[BLY_RUNS_MAX_OPEN], from = at;
    for (unsigned i = 0; i < n; i++) {
        empty[i] = bly_runs_empty_from(t, from);
        if (empty[i] >= nslots)
            return false;
        from = empty[i] + 1;
    }
    /* Everyone whose quotient is before a block, and who lies in it or was
     * pushed into it, moves on by as many slots as were filled behind. */
    const uint64_t first = q / BLY_RUNS_BLOCK + 1;
    for (int change = 0; change < 2; change++) {
        unsigned i = 0;
        for (uint64_t j = first; j * BLY_RUNS_BLOCK <= empty[n - 1]; j++) {
            unsigned char *offset = bly_runs_block(t, j);
            while (empty[i] < j * BLY_RUNS_BLOCK)
                i++;
            if (change)
                *offset = (unsigned char)(*offset + (n - i));
            else if (*offset + (n - i) > BLY_RUNS_MAX_OFFSET)
                return false;
        }
    }
    for (unsigned i = 0; i < n; i++)
        bly_runs_shift_up(t, at, empty[i]);
    return true;
}

/* Take slot `at` out of the run of quotient q. */
BLY_RUNS_INLINE void bly_runs_close(const bly_runs *t, uint64_t q, uint64_t at,
                                    const bly_run *run)
{
    /* All that lies behind moves down, up to an empty slot or one that holds
     * the first of its own run. */
    const uint64_t behind = run->end + 1;
    const uint64_t pending = bly_runs_occupied(t, q + 1, behind);
    const uint64_t end =
        pending ? bly_runs_rest(t, behind, pending, false) : behind;
    bly_runs_shift_down(t, at, end);
    if (run->start == run->end)
        bly_runs_mark_occupied(t, q, false);
    else if (at == run->end)
        bly_runs_mark_end(t, at - 1, true);
    for (uint64_t j = q / BLY_RUNS_BLOCK + 1; j * BLY_RUNS_BLOCK < end; j++)
        --*bly_runs_block(t, j);
}

/* --------------------------------------------------------------- walking */

/* The first runend at or behind a slot, or BLY_RUNS_NOWHERE. */
uint64_t bly_runs_next_end(const bly_runs *t, uint64_t slot);

/* Are slots from .. to-1 as empty ones are? */
bool bly_runs_clear_between(const bly_runs *t, uint64_t from, uint64_t to);

#endif
