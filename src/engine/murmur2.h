/*
 * murmur2.h - MurmurHash2 of a key with eight seeds at once
 *
 * RedisBloom's sketches use one hash function with a different seed for each
 * row. Here the words of the key are mixed once, and eight hashes are the lanes
 * of a vector.
 */
#ifndef BLY_MURMUR2_H
#define BLY_MURMUR2_H

#include "engine/rows.h"

/* The seeds of the hashes, and the numbers by which they are divided: mostly
 * the remainders are wanted. */
#define BLY_MURMUR2_MAX_DIVISOR (UINT32_C(1) << 31)
typedef struct bly_murmur2_lanes {
    uint32_t seeds[8];
    uint32_t divisors[8]; /* 0: the hash stays as it is */
    uint32_t inverses[8]; /* UINT32_MAX / divisor, or 0 */
} bly_murmur2_lanes;

/* Seeds from `first` on, and one divisor for all. */
static inline void bly_murmur2_lanes_set(bly_murmur2_lanes *lanes,
                                         uint32_t first, uint32_t divisor)
{
    const uint32_t inverse = divisor ? UINT32_MAX / divisor : 0;
    for (uint32_t i = 0; i < 8; i++) {
        lanes->seeds[i] = first + i;
        lanes->divisors[i] = divisor;
        lanes->inverses[i] = inverse;
    }
}

typedef struct bly_murmur2_row {
    BLY_ROW_HEAD;
    void (*eight)(const void *bytes, size_t len, const bly_murmur2_lanes *lanes,
                  uint32_t out[8]);
} bly_murmur2_row;
BLY_ROWS(murmur2);

#endif
