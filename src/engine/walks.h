/*
 * walks.h - the cells of an element in an endless sequence
 *
 * For sketch/coded.h: an element walks from cell to cell, by numbers that its
 * hash gives. Many elements are walked side by side, with a row for each
 * processor.
 */
#ifndef BLY_WALKS_H
#define BLY_WALKS_H

#include <math.h>

#include <bloomery/reconcile.h>

#include "core/bits.h"
#include "engine/rows.h"

#define CODED_PHI UINT64_C(0x9e3779b97f4a7c15)
#define CODED_END UINT64_MAX

/* The cells of an element in an endless sequence become ever rarer: the next
 * one after i is past j with probability
 *
 *     ((i + 2.5) / (j + 2.5))^2
 *
 * so it is the least j above i with (2j + 5)^2 u >= (2i + 5)^2, where u =
 * r / 2^32 is uniform in (0, 1]. This definition uses integers only, so that
 * all machines agree. (The published constant is 1.5 [1]. It takes as many
 * symbols if the sets differ much, and more if they differ little: with five
 * elements 1.77 for each in 40,000 trials, against 1.73 with 2.5, before pairs
 * of cells are looked at; 2 and 3 are worse, too.)
 *
 * [1] Yang, Gilad and Alizadeh, Practical Rateless Set Reconciliation, 2024 */
static inline bool coded_passes(uint64_t i, uint64_t j, uint64_t r)
{
    const uint64_t a = (2 * j + 5) * (2 * j + 5), b = (2 * i + 5) * (2 * i + 5);
    const uint64_t high = bly_mulhi(a, r);
    return high > b >> 32 || (high == b >> 32 && a * r >= b << 32);
}

uint64_t bly_coded_exact(uint64_t i, uint64_t guess, uint64_t r);

/* A square root in floating point finds it, except for numbers so near to an
 * integer that rounding could have moved them across. 2^-16 is far more than
 * rounding moves a number below 2^31, on x87 too, and all larger ones are past
 * the end. */
static inline uint64_t coded_next(uint64_t i, uint64_t r)
{
    const double j = ((double)i + 2.5) * sqrt(0x1p32 / (double)r) - 2.5;
    if (!(j < (double)BLY_CODED_MOST_SYMBOLS))
        return CODED_END;
    const double whole = (double)(uint64_t)j, rest = j - whole;
    const uint64_t guess = (uint64_t)j + 1;
    return rest > 0x1p-16 && rest < 1 - 0x1p-16 ? guess
                                                : bly_coded_exact(i, guess, r);
}

/* Walks side by side, each in a lane; when one reaches cell `to` or passes it,
 * it is over, and the next that waits takes its lane. Nothing moves from lane
 * to lane, so no load has to wait for a store. */
#define WALKS_LANES 32
typedef struct bly_walks {
    /* For each lane: generator, cell (CODED_END: past the last possible one),
     * and number of the walk. */
    uint64_t s[WALKS_LANES], at[WALKS_LANES], id[WALKS_LANES];
    /* The walks that wait: n in all, numbered from 0; cell NULL: all at 0. Both
     * arrays have WALKS_ROOM entries more. */
    const uint64_t *first_s, *first_at;
    size_t next, n;
    uint64_t to;
    /* Where finished walks are put, n of them in the end, with room for
     * WALKS_ROOM more; NULL: nowhere. */
    uint64_t *over_s, *over_at, *over_id;
    size_t nover;
} bly_walks;
#define WALKS_ROOM 8 /* eight are stored at once */

static inline void walks_begin(bly_walks *w)
{
    for (unsigned i = 0; i < WALKS_LANES; i++)
        w->at[i] = CODED_END;
}

/* Let walks that wait take free lanes, and make a step in each lane: false if
 * all are over. Lanes whose at is `to` or more then are free. */
typedef struct bly_walks_row {
    BLY_ROW_HEAD;
    bool (*step)(bly_walks *w);
} bly_walks_row;
BLY_ROWS(walks);

#endif
