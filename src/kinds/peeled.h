/*
 * peeled.h - what filters built by peeling have in common: xor, fuse, bloomier
 *
 * engine/peel.h finds the cells; this file applies it to a filter.
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

/* sound(): is the state as bly_peeled_build() leaves it, without layers?
 * check(): are there zeros behind the seeds and the cells? stat(): the number
 * of keys, which is exact. */
bool bly_peeled_sound(const bly_filter *f);
bool bly_peeled_check(const bly_filter *f, const bly_peel *p,
                      unsigned cell_bits);
void bly_peeled_stat(const bly_filter *f, const bly_peel *p, double rate,
                     bly_stats *out);

/* For reach() of a kind: report the seed of the shard of h, which is key i, and
 * its cells of cell_bits bits. Returns false, and sets the key's bit in bad, if
 * some are damaged; else its slots are in *key. */
bool bly_peeled_reach(const bly_filter *f, const bly_peel *p,
                      unsigned cell_bits, uint64_t h, size_t i, uint64_t *bad,
                      bly_peel_key *key);

#endif
