/*
 * sort.h - sorting hashes in place
 */
#ifndef BLY_SORT_H
#define BLY_SORT_H

#include <bloomery.h>

/* Sort n hashes and drop the repeated ones; *n becomes the number of distinct
 * ones. values, unless NULL, goes along. BLY_EINVAL if one hash has two
 * different values; then the arrays are sorted, but complete. */
bly_status bly_hashes_unique(uint64_t *h, uint64_t *values, size_t *n);

/* Sort n words of any pattern; values, unless NULL, goes along. */
void bly_hashes_sort(uint64_t *h, uint64_t *values, size_t n);

/* Group n hashes by part. The part of h is h scaled to `total`, minus first: a
 * number below nparts. start gets where each part begins, and n at the end;
 * next is room for nparts numbers. values as above. */
void bly_hashes_part(uint64_t *h, uint64_t *values, size_t n, uint64_t total,
                     uint64_t first, size_t nparts, size_t *start,
                     size_t *next);

#endif
