/*
 * classic.h - for kinds that can become a classic filter
 */
#ifndef BLY_CLASSIC_H
#define BLY_CLASSIC_H

#include "kinds/kind.h"

/* The shape of a classic filter of m bits and k probes, in the shared layout;
 * bly_probe_sane(m, k). */
bly_shape bly_classic_shape(uint64_t m, uint64_t k);

#endif
