/*
 * spilled.h - a filter from keys in a file, in bounded memory
 */
#ifndef BLY_SPILLED_H
#define BLY_SPILLED_H

#include "api/kept.h"
#include "kinds/filter.h"

/* Fill f, which is empty, from all keys kept; `set`: each key once. */
bly_status bly_spilled_fill(bly_kept *k, bly_filter *f, bool set,
                            unsigned nthreads);

/* The number of distinct keys, exactly. */
bly_status bly_spilled_distinct(bly_kept *k, uint64_t *out);

#endif
