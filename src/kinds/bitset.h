/*
 * bitset.h - what kinds whose data is one array of bits share
 *
 * Union is OR, intersection is AND, and the ones tell how many keys there
 * are. A kind describes its array once, in its function bitset(), and uses the
 * functions below in its descriptor as they are. What two filters have in
 * common is computed here for all kinds, from the number of cells in use.
 */
#ifndef BLY_BITSET_H
#define BLY_BITSET_H

#include "core/maths.h"
#include "kinds/filter.h"

typedef struct bly_bitset {
    const uint64_t *words;
    size_t nwords;
    double m;     /* bits in use */
    double k;     /* bits a key sets */
    double width; /* cells of a lane, or INFINITY: maths.h */
} bly_bitset;

/* Cells in use of two filters, and those in use in at least one of them. */
typedef struct bly_ones {
    double a, b, either;
} bly_ones;

/* The likeness that follows from them for m cells of which a key uses k, in
 * lanes of `width` cells or INFINITY; .inner is NAN. For kinds whose cells are
 * more than bits. */
void bly_likeness_of_ones(const bly_ones *ones, double m, double k,
                          double width, bly_likeness *out);

/* The same for fingerprints: `used` counts the different ones in each set, of
 * `range` that are possible. */
void bly_likeness_of_prints(const bly_ones *used, double range,
                            bly_likeness *out);

/* fill, items_estimate, items_sd and fpr_now = fill^k. */
void bly_bitset_stat(const bly_filter *f, bly_stats *out);

bly_status bly_bitset_compare(const bly_filter *a, const bly_filter *b,
                              bly_likeness *out);

/* dst->data |= or &= src->data, all of it or part by part; recounted. */
bly_status bly_bitset_merge(bly_filter *dst, const bly_filter *src);
bly_status bly_bitset_merge_part(bly_filter *dst, const bly_part *p);
bly_status bly_bitset_intersect(bly_filter *dst, const bly_filter *src);
bly_status bly_bitset_intersect_part(bly_filter *dst, const bly_part *p);

/* raw() of a kind whose first param is its number of bits. */
uint64_t bly_bitset_raw(const bly_shape *s);

/* Set nadded to the estimate from the contents, for a filter that was not
 * filled key by key. */
void bly_bitset_recount(bly_filter *f);

#endif
