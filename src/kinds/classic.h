/*
 * classic.h - for kinds that can become a classic filter
 */
#ifndef BLY_CLASSIC_H
#define BLY_CLASSIC_H

#include "kinds/kind.h"

/* The classic filter whose bits are set where the m counters of f, `width`
 * bits each at the beginning of its data, are not zero: the convert() of kinds
 * that probe as classic does (probe.h). Its m and k are given, so w may ask
 * for a capacity, but not for a rate, memory, k or layout of its own. */
bly_status bly_classic_from_cells(const bly_filter *f, uint64_t m, uint64_t k,
                                  unsigned width, const bly_kind *to,
                                  const bly_want *w, bly_filter **out);

#endif
