/*
 * tdigest_merge.h - sorting what waits, and making fewer means of it
 */
#ifndef BLY_TDIGEST_MERGE_H
#define BLY_TDIGEST_MERGE_H

#include "sketch/tdigest.h"

/* Is there more to sort than fits on a stack? Then all is sorted in place, and
 * every value has a weight. */
bool bly_tdigest_is_large(const bly_tdigest *t);

#endif
