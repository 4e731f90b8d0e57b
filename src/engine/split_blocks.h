/*
 * split_blocks.h - blocks of eight words with a bit of each key in every word
 *
 * A block has 256 bits; the high half of a hash chooses the block, its low half
 * times a salt the bit of each word. foreign/sbbf.c says where they come from.
 */
#ifndef BLY_SPLIT_BLOCKS_H
#define BLY_SPLIT_BLOCKS_H

#include "engine/rows.h"

#define BLY_BLOCKS_BYTES 32 /* of a block */
#define BLY_BLOCKS_K 8
extern const uint32_t bly_blocks_salts[BLY_BLOCKS_K];

static inline uint64_t bly_blocks_of(uint64_t h, uint64_t nblocks)
{
    return (h >> 32) * nblocks >> 32;
}

/* Set the bits of n hashes. */
typedef struct bly_blocks_row {
    BLY_ROW_HEAD;
    void (*add)(unsigned char *blocks, uint64_t nblocks, const uint64_t *hashes,
                size_t n);
} bly_blocks_row;
BLY_ROWS(blocks);

#endif
