/*
 * murmur2.h - MurmurHash2 of a key with eight seeds at once
 *
 * The rows of RedisBloom's sketches are chosen by one hash function with a seed
 * for each row: the words of the key are mixed once, and the eight hashes are
 * the lanes of a vector.
 */
#ifndef BLY_MURMUR2_H
#define BLY_MURMUR2_H

#include "engine/rows.h"

/* eight: the hashes. remainders: of these by n, which is 2^31 at most; inverse:
 * UINT32_MAX / n. */
typedef struct bly_murmur2_row {
    BLY_ROW_HEAD;
    void (*eight)(const void *bytes, size_t len, const uint32_t seeds[8],
                  uint32_t out[8]);
    void (*remainders)(uint32_t h[8], uint32_t n, uint32_t inverse);
} bly_murmur2_row;
BLY_ROWS(murmur2);

#endif
