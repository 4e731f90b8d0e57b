/*
 * spread.h - a filter of gigabytes that one or several threads fill
 *
 * Each thread deals its hashes out by ranges of the filter (engine/apart.h) and
 * adds them where there are thousands of one range. Meanwhile no other thread
 * adds to that range, so bits are set without atomic operations, and there is
 * one filter, not a copy for each thread (copies.h). A billion keys take three
 * quarters of the time that they take in their own order.
 *
 * That needs 128 MiB for each thread, and filters whose memory can be divided
 * (sites() in kind.h).
 */
#ifndef BLY_SPREAD_H
#define BLY_SPREAD_H

#include "kinds/filter.h"

typedef struct bly_spread bly_spread;

#ifdef BLY_TESTING
/* How large a filter must be, and how much room a thread gets. */
extern uint64_t bly_spread_least;
extern size_t bly_spread_room;
#endif
#define BLY_SPREAD_LEAST ((uint64_t)512 << 20)
#define BLY_SPREAD_ROOM ((size_t)128 << 20)

/* Begin with f, which is empty, belongs to the caller and is not shared. NULL,
 * without a message, where this does not serve: f is of another kind or too
 * small, or there is no memory. */
bly_spread *bly_spread_open(bly_filter *f);

/* Many threads at once. */
bly_status bly_spread_add(bly_spread *s, const uint64_t *hashes, size_t n);

/* Add what is left, with up to nthreads threads, and release s; or only release
 * it. Additions are not counted. NULL is allowed. */
bly_status bly_spread_end(bly_spread *s, unsigned nthreads);
void bly_spread_close(bly_spread *s);

#endif
