/*
 * attenuated.h - attenuated filters, for nodes that keep one for each link
 */
#ifndef BLY_ATTENUATED_H
#define BLY_ATTENUATED_H

#include "kinds/kind.h"

#define BLY_ATTENUATED_MAX_DEPTH 16

/* The shape of `depth` classic levels of m bits, of which a key sets k. The
 * numbers may come from outside: BLY_EINVAL if plan() could not have made the
 * shape. */
bly_status bly_attenuated_shape(uint64_t depth, uint64_t m, uint64_t k,
                                bly_shape *out);

/* Whatever a neighbour has is one hop further away from here: level j + 1 |=
 * its level j. Hints are left unchanged; merge() brings them up to date. */
void bly_attenuated_hear(bly_filter *dst, const bly_filter *src);

#endif
