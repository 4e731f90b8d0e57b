/*
 * exact.h - the shape of an exact filter, and the table of its groups
 */
#ifndef BLY_EXACT_H
#define BLY_EXACT_H

#include "core/groups.h"
#include "kinds/ribbon.h"

/* Params of the shape. */
enum {
    BLY_EXACT_OTHERS, /* s, as planned */
    BLY_EXACT_PASS,   /* q; 1: no first ribbon. With groups, the mean */
    BLY_EXACT_BITS    /* of all ribbons, as planned */
};

/* Words of the state; the last ones are 0 where there are no groups. */
enum {
    BLY_EXACT_KEYS,   /* members */
    BLY_EXACT_DENIED, /* others that the first ribbon let through, in the
                         second */
    BLY_EXACT_BOTH,   /* members that were also named as others */
    BLY_EXACT_SPANS,  /* number of spans, plus 256 times the span of the rest */
    BLY_EXACT_ROWS,   /* of that table */
    BLY_EXACT_GROUPS, /* known to the builder */
    BLY_EXACT_LEAST,  /* lower bound in bits for any code: the sum of
                         entropies */
    BLY_EXACT_STATES
};

#define BLY_EXACT_MAX_OTHERS 0x1p48
#define BLY_EXACT_MAX_BITS 0x1p56

/* The word of a span is the number of its first ribbon, counted from 1; while
 * the filter is planned, it is the number of bits per key there. 0: the span
 * has no first ribbon, and all its keys are in the second. This, if the span
 * has no members: */
#define BLY_EXACT_EMPTY UINT64_MAX
#define BLY_EXACT_FULL (UINT64_MAX - 1) /* or this, if it has nothing else */

/* log2 of the ways to choose r of r + s. */
double bly_exact_entropy(double r, double s);

/* Bits of both ribbons, for s others. */
double bly_exact_cost(uint64_t r, double s, double q);

/* kind.h */
bly_status bly_exact_group(const bly_want *w, uint64_t seed,
                           const bly_group *groups, size_t n,
                           const bly_mem *mem, bly_grouping *out);

/* The table of groups of f, which has one. */
static inline bly_groups bly_exact_groups(const bly_filter *f)
{
    const uint64_t spans = f->state[BLY_EXACT_SPANS];
    return (bly_groups){ .at = f->data,
                         .nrows = f->state[BLY_EXACT_ROWS],
                         .nspans = (unsigned)(spans & 255),
                         .rest = (unsigned)(spans >> 8 & 255) };
}

#endif
