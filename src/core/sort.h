/*
 * sort.h - sorting hashes in place
 */
#ifndef BLY_SORT_H
#define BLY_SORT_H

#include <bloomery.h>

/* Sort n hashes and drop the repeated ones; *n becomes the number of distinct
 * ones. values, unless NULL, goes along. BLY_EINVAL where one hash comes with
 * two values; the arrays are then sorted and whole. */
bly_status bly_hashes_unique(uint64_t *h, uint64_t *values, size_t *n);

#endif
