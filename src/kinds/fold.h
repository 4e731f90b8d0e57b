/*
 * fold.h - half the memory for the same keys: what the kinds that fold share
 *
 * Two cells become one. Which two depends on how a kind takes a position from
 * a hash, since the new cell must be where the smaller filter looks for it:
 *
 *     h mod m             j and j + m/2:  (h mod m) mod m/2 = h mod m/2
 *     h * m / 2^64        2j and 2j + 1:  half of it, rounded down, is
 *                                         h * (m/2) / 2^64
 *
 * Either way m must be even. To make a filter that can be folded, plan it with
 * the option `folds`, which makes m a multiple of 2^folds.
 */
#ifndef BLY_FOLD_H
#define BLY_FOLD_H

#include "kinds/filter.h"

#define BLY_FOLDS_PARAM                                                        \
    BLY_PARAM(                                                                 \
        "folds", BLY_UINT, .settable = true, .planning = true, .max = 20,      \
        .help = BLY_AMPLE("how many times it can be folded in half: its size " \
                          "becomes a multiple of 2^folds"))

/* Round *n cells to a multiple of `unit` 2^folds: down if memory was given, up
 * if it follows from the rate. BLY_EINVAL if there are too few. */
bly_status bly_fold_plan(uint64_t folds, uint64_t unit, bool memory_given,
                         uint64_t *n);

/* An empty filter of shape half, with the setting of f, into which a kind can
 * fold f's n cells; `cells` is the kind's word for them. BLY_EINVAL if n is
 * odd, or half is no shape of its kind. */
bly_status bly_fold_begin(const bly_filter *f, uint64_t n, const char *cells,
                          const bly_shape *half, bly_filter **out);

#endif
