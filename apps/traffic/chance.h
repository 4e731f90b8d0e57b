/*
 * chance.h - numbers that look random, from a seed (splitmix64)
 */
#ifndef BLY_TRAFFIC_CHANCE_H
#define BLY_TRAFFIC_CHANCE_H

#include <stdint.h>

static inline uint64_t chance_next(uint64_t *at)
{
    uint64_t x = *at += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* From 0 to below 1. */
static inline double chance_share(uint64_t *at)
{
    return (double)(chance_next(at) >> 11) * 0x1p-53;
}

#endif
