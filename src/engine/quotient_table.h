/*
 * quotient_table.h - a sorted list of fingerprints, each with a count
 *
 * A fingerprint F is a number below nslots * 2^r. The table has a run of slots
 * (engine/runs.h) for each quotient F / 2^r, and in it, in order, an entry for
 * each remainder x = F mod 2^r. One that was added c times is
 *
 *     c = 1, 2:  x, xx
 *     c >= 3:    xxd where d <= x, or dxx where d > x; more digits may follow
 *
 * where d is the lowest digit of c - 3. A digit has r - 1 bits, and above them
 * a bit that says whether another follows. 1 is subtracted from all digits but
 * the first, so that every number has only one form (with r = 1 the number of
 * digits is the count). Remainders of a run rise, so neither form can be
 * mistaken: x or xx is otherwise followed by something above x. With r = 3, x =
 * 5 and c = 10 the rest is 7 = 3 + 4 (0 + 1), the first digit 7, and the slots
 * are
 *
 *     1 11 | 5 5 | 0 00 |
 *
 * A count of up to 2 + 2^(r-1) takes three slots. Older tables (and those in
 * which counts arise only from keys that share a fingerprint) have xxx followed
 * by all digits, at least four slots: `three` is false.
 *
 * The owner of a table keeps three sums next to it, which the functions below
 * keep up to date.
 */
#ifndef BLY_QUOTIENT_TABLE_H
#define BLY_QUOTIENT_TABLE_H

#include <bloomery.h>

#include "core/unroll.h"
#include "engine/rows.h"
#include "engine/runs.h"

/* The highest count. Additions to it cannot wrap around. */
#define BLY_QUOTIENT_MAX_COUNT (UINT64_C(1) << 62)

/* The sums: slots in use, different fingerprints, additions held. */
enum {
    BLY_QUOTIENT_USED,
    BLY_QUOTIENT_DISTINCT,
    BLY_QUOTIENT_TOTAL,
    BLY_QUOTIENT_SUMS
};

typedef struct bly_quotient_table {
    bly_runs runs;
    uint64_t nslots; /* home slots */
    uint64_t range;  /* number of possible fingerprints: nslots * 2^r */
    /* How many slots fit into a word wherever they begin; the lowest bit of
     * each, and the highest. */
    unsigned fit;
    uint64_t ones, highs;
    uint64_t late;  /* highs but for those of the first three */
    bool three;     /* counts from three on begin in three slots */
    unsigned plain; /* runs of up to this many slots have no digits */
    uint64_t order; /* highs of slots which, if above the next, mean digits */
} bly_quotient_table;

/* Blocks of a table. Behind those of the home slots are a few more: the sum of
 * n arrivals hardly ever differs from its mean by more than 6 sqrt(n), and at a
 * load of 0.95 what happened 1000 slots ago no longer matters. */
static inline uint64_t bly_quotient_nblocks(uint64_t nslots)
{
    const unsigned spare = nslots <= 64 ? 1 : nslots <= 448 ? 2 : 3;
    return nslots / BLY_RUNS_BLOCK + spare;
}

/* Slots in use above which nothing is added: 0.95 of them, rounded down in
 * whole numbers, so that every machine agrees. */
static inline uint64_t bly_quotient_most(uint64_t nslots)
{
    return nslots - nslots / 20 - (nslots % 20 != 0);
}

/* Values that take a division and a loop to compute, packed in one number:
 * `fit` in its six highest bits, `three` below them, and `ones`. */
static inline uint64_t bly_quotient_marks(uint64_t r, bool three)
{
    const uint64_t fit = (64 - 7) / r;
    uint64_t marks = fit << 58 | (uint64_t)three << 57;
    for (uint64_t i = 0; i < fit; i++)
        marks |= UINT64_C(1) << i * r;
    return marks;
}

static inline __attribute__((always_inline)) bly_quotient_table
bly_quotient_table_with(unsigned char *data, uint64_t nslots, uint64_t r,
                        uint64_t marks)
{
    bly_quotient_table t = {
        .runs = bly_runs_of(data, bly_quotient_nblocks(nslots), (unsigned)r),
        .nslots = nslots,
        .range = nslots << r,
        .fit = (unsigned)(marks >> 58),
        .ones = marks & UINT64_MAX >> 7,
        .three = marks >> 57 & 1,
    };
    t.highs = t.ones << (r - 1);
    t.late = t.fit > 3 ? t.highs & UINT64_MAX << 3 * r : 0;
    t.plain = t.three ? 2 : 3;
    t.order = t.three ? t.highs : 0;
    return t;
}

/* A table of the form in which a count takes four slots. */
static inline bly_quotient_table
bly_quotient_table_of(unsigned char *data, uint64_t nslots, uint64_t r)
{
    return bly_quotient_table_with(data, nslots, r,
                                   bly_quotient_marks(r, false));
}

/* ---------------------------------------------------------------- batches */

/* The functions of a kind (kinds/kind.h), for hashes scaled to the range. by:
 * how often to add each; NULL is once. */
typedef struct bly_quotient_row {
    BLY_ROW_HEAD;
    void (*has)(const bly_quotient_table *t, const uint64_t *h, size_t n,
                uint64_t *maybe);
    void (*count)(const bly_quotient_table *t, const uint64_t *h, size_t n,
                  uint64_t *counts);
    bly_status (*add)(const bly_quotient_table *t, uint64_t *sums,
                      const uint64_t *h, const uint64_t *by, size_t n,
                      uint64_t *fresh, size_t *ndone);
    void (*remove)(const bly_quotient_table *t, uint64_t *sums,
                   const uint64_t *h, size_t n, bly_status *each);

    /* For one hash. These functions make the table struct themselves, from its
     * parts, and keep it in registers: to load from a struct that was just
     * written means to wait. */
    bool (*has_one)(unsigned char *data, uint64_t nslots, uint64_t r,
                    uint64_t marks, uint64_t h);
    bly_status (*add_one)(unsigned char *data, uint64_t nslots, uint64_t r,
                          uint64_t marks, uint64_t *sums, uint64_t h);
    bly_status (*remove_one)(unsigned char *data, uint64_t nslots, uint64_t r,
                             uint64_t marks, uint64_t *sums, uint64_t h);
} bly_quotient_row;
BLY_ROWS(quotient);

/* ------------------------------------------------------ from first to last */

/* Walks the entries in order of their fingerprints. In a damaged table it may
 * give nonsense, but in order, and no more entries than there are slots. */
typedef struct bly_quotient_walk {
    bly_runs runs;
    bool three;
    uint64_t block, occupieds; /* quotients still to come in this block */
    uint64_t q, at, end;       /* within a run while at <= end */
    bool inside;
    uint64_t F, count; /* what was found */
} bly_quotient_walk;

bly_quotient_walk bly_quotient_walk_of(const bly_quotient_table *t);
bool bly_quotient_walk_next(bly_quotient_walk *w);

/* Writes entries, in order of their fingerprints, to an empty table. */
typedef struct bly_quotient_writer {
    bly_quotient_table t;
    uint64_t *sums;
    uint64_t q, at; /* the last quotient, and the next free slot */
    uint64_t F;     /* the last fingerprint */
    bool any;
} bly_quotient_writer;

bly_quotient_writer bly_quotient_writer_of(const bly_quotient_table *t,
                                           uint64_t *sums);
bly_status bly_quotient_write(bly_quotient_writer *w, uint64_t F,
                              uint64_t count);
bly_status bly_quotient_write_end(bly_quotient_writer *w);

/* Check all runs: each has its end and is sorted, every count is in its only
 * form, the gaps between runs are empty, and offsets are right. Adds to sums
 * what it meets. */
bool bly_quotient_check(const bly_quotient_table *t, uint64_t *sums);

#endif
