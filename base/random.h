/*
 * random.h - numbers that look random, from a seed (SplitMix64)
 *
 * The state is one number that the caller keeps, and any number will do. The
 * same seed gives the same numbers everywhere. [1] Steele, Lea and Flood, Fast
 * Splittable Pseudorandom Number Generators, 2014
 */
#ifndef BLY_BASE_RANDOM_H
#define BLY_BASE_RANDOM_H

#include <stdint.h>

#include <bloomery/inline.h> /* bly_mix64() */

/* 2^64 by the golden ratio: its multiples lie far apart. */
#define RANDOM_STEP UINT64_C(0x9e3779b97f4a7c15)

static inline uint64_t random_next(uint64_t *state)
{
    return bly_mix64(*state += RANDOM_STEP);
}

/* From 0 to below 1. */
static inline double random_share(uint64_t *state)
{
    return (double)(random_next(state) >> 11) * 0x1p-53;
}

/* In fewer steps than bly_mix64(), and good enough for numbers that nobody
 * chooses. */
static inline uint64_t mix_fast(uint64_t x)
{
    x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
    x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return x ^ x >> 32;
}

#endif
