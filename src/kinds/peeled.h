/*
 * peeled.h - what filters over peeling have in common: xor, fuse, bloomier
 *
 * engine/peel.h finds the cells; here they are those of a filter.
 */
#ifndef BLY_PEELED_H
#define BLY_PEELED_H

#include "engine/peel.h"
#include "kinds/filter.h"

/* Where a filter keeps the number of its keys. */
#define BLY_PEELED_STATE 0

/* build_part() of a kind: bly_peel_build() with f as the context of assign().
 * Counts the keys in f->state, items and nadded. */
bly_status bly_peeled_build(bly_filter *f, const bly_peel *p, uint64_t first,
                            uint64_t nshards, uint64_t *h, uint64_t *values,
                            size_t n, unsigned nthreads,
                            bly_peel_assign *assign);

/* State as bly_peeled_build() leaves it, and no layers; zeros behind the seeds
 * and the cells; the number of keys, which is exact. */
bool bly_peeled_sound(const bly_filter *f);
bool bly_peeled_check(const bly_filter *f, const bly_peel *p,
                      unsigned cell_bits);
void bly_peeled_stat(const bly_filter *f, const bly_peel *p, double rate,
                     bly_stats *out);

/* For reach() of a kind: the seed of the shard of h, which is key i, and its
 * cells of cell_bits. False, and its bit in bad, if some are damaged; else its
 * slots are in *key. */
bool bly_peeled_reach(const bly_filter *f, const bly_peel *p,
                      unsigned cell_bits, uint64_t h, size_t i, uint64_t *bad,
                      bly_peel_key *key);

#endif
