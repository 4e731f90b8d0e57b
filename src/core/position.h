/*
 * position.h - many positions from one hash, as good as independent
 *
 * Double hashing steps through an array by x += y. That ties all positions of a
 * key to two numbers, and n keys in a range of s cells add n / s^2 to the rate,
 * whatever k is: half as much again for slices of 1000 keys at 0.1 %. The
 * positions here are the outputs of SplitMix64 started at the hash, and have
 * nothing in common but the hash.
 */
#ifndef BLY_POSITION_H
#define BLY_POSITION_H

#include "core/bits.h"

#define BLY_POSITION_STEP UINT64_C(0x9e3779b97f4a7c15) /* golden ratio */

/* Position number i, in [0, range). */
static inline uint64_t bly_position(uint64_t h, uint64_t i, uint64_t range)
{
    return bly_scale(bly_mix64(h + (i + 1) * BLY_POSITION_STEP), range);
}

#endif
