/*
 * classic.h - for kinds that can become a classic filter
 */
#ifndef BLY_CLASSIC_H
#define BLY_CLASSIC_H

#include "kinds/kind.h"

/* The shape of a classic filter of m bits and k probes, in the shared layout;
 * bly_probe_sane(m, k). */
bly_shape bly_classic_shape(uint64_t m, uint64_t k);

/* Whether w, which the caller wants of a classic filter, can be met by this
 * shape, whose m and k are given: a rate or memory of its own, another k or
 * the other layout cannot. */
bly_status bly_classic_fits(const bly_want *w, const bly_shape *s);

#endif
