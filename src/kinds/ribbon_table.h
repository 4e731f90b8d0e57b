/*
 * ribbon_table.h - rows of 64 coefficients, solved and asked
 *
 * A shard is a linear system over GF(2). Its unknowns are slots, from 64 to
 * 65536 of them, each a few bits wide. A key has a start, a row of 64
 * coefficients for the slots from there on, the first of which is 1, and a
 * print: the sum of the slots that its row selects shall be its print.
 *
 *     slots     0 . . . start . . . . . . . . . . . . . . . .
 *     key             | 1 0 1 1 0 1 . . . 64 coefficients |  = print
 *
 * Such a band is solved in one pass and little memory: the row of a key goes to
 * the slot of its first 1; where there is one already, the two are added, which
 * moves the first 1 to the right, until there is room, or nothing is left (and
 * then the print must be nothing too). Afterwards each slot follows from those
 * to its right.
 *
 * Solutions lie in blocks of 64 slots, a word for each bit of width, so that
 * the sums of a key are parities of words:
 *
 *     block     | bit 0 of 64 slots | bit 1 of 64 slots | ... |
 *
 * Blocks from `wide` on have one bit more than those before. A key is wide,
 * too, where its share of the shard says so, and its print is then one bit
 * longer. The slots of a wide key all lie in wide blocks; a narrow one that
 * reaches into them does not look at their last bit. So any width between two
 * whole ones can be had, and the rate is exact for every number of slots.
 */
#ifndef BLY_RIBBON_TABLE_H
#define BLY_RIBBON_TABLE_H

#include "core/bits.h"

#define BLY_RIBBON_ROW 64           /* coefficients of a key */
#define BLY_RIBBON_SHARD (1u << 16) /* slots of the largest shard */
#define BLY_RIBBON_BUCKET 256u      /* slots that share a bound */
#define BLY_RIBBON_STEP 2u          /* slots to which a bound is exact */
#define BLY_RIBBON_MAX_WIDTH 64u    /* bits of the widest print */

/* A layer: shards of one size, and where they are. */
typedef struct bly_ribbon_layer {
    uint64_t nshards;
    uint32_t nslots;   /* of a shard, a multiple of 64 */
    uint32_t nbounds;  /* of a shard, a byte for each bucket; 0: none */
    uint64_t wide;     /* first block of a shard that has a bit more */
    uint64_t stride;   /* words of a shard */
    uint64_t words;    /* before the layer's first one */
    uint64_t bounds;   /* bytes before its first bound */
    unsigned width;    /* bits of a narrow slot */
    unsigned nplanes;  /* of the widest */
    uint64_t narrow;   /* shares of 2^-32 that have no further bit */
    uint64_t needs[2]; /* bits of a print that count, narrow and wide */
} bly_ribbon_layer;

/* A key in its layer. */
typedef struct bly_ribbon_key {
    uint64_t shard;
    uint32_t start;
    bool wide;
} bly_ribbon_key;

/* Its place follows from the top of the hash, so that sorted keys come in the
 * order of their starts; the share of the shard that lies before it says
 * whether it is wide. */
static inline __attribute__((always_inline)) bly_ribbon_key
bly_ribbon_place(const bly_ribbon_layer *l, uint64_t u)
{
    const uint64_t within = u * l->nshards;
    return (bly_ribbon_key){
        .shard = bly_mulhi(u, l->nshards),
        .start = (uint32_t)bly_mulhi(within, l->nslots - (BLY_RIBBON_ROW - 1)),
        .wide = within >> 32 >= l->narrow,
    };
}

/* Row and print come from products, folded since low bits of a product know
 * little of the factor. The multipliers are odd: the fractions of the square
 * roots of 2 and of 5. */
static inline uint64_t bly_ribbon_row(uint64_t u)
{
    const uint64_t g = u * UINT64_C(0x6a09e667f3bcc909);
    return (g ^ g >> 32) | 1;
}

static inline uint64_t bly_ribbon_print(uint64_t u)
{
    const uint64_t g = u * UINT64_C(0x3c6ef372fe94f82b);
    return g ^ g >> 32;
}

/* The first word of a block, counted from that of the shard. */
static inline uint64_t bly_ribbon_block(const bly_ribbon_layer *l, uint64_t b)
{
    return b * l->width + (b > l->wide ? b - l->wide : 0);
}

/* Fewer words than these, and a group of four planes would end behind the
 * last block. */
static inline uint64_t bly_ribbon_spare(unsigned nplanes)
{
    return (0u - nplanes) & 3;
}

/* The parities of four words as bits 0 to 3. Halves of words are added until
 * four of 16 bits make one word, then these within themselves; the product
 * brings the bits 0, 16, 32 and 48 together at 48. */
static inline __attribute__((always_inline)) uint64_t
bly_ribbon_parities(uint64_t x0, uint64_t x1, uint64_t x2, uint64_t x3)
{
    const uint64_t low = UINT64_C(0x00000000ffffffff);
    const uint64_t even = UINT64_C(0x0000ffff0000ffff);
    const uint64_t a = ((x0 & low) | x2 << 32) ^ (x0 >> 32 | (x2 & ~low));
    const uint64_t b = ((x1 & low) | x3 << 32) ^ (x1 >> 32 | (x3 & ~low));
    uint64_t x = ((a ^ a >> 16) & even) | ((b ^ b << 16) & ~even);
    x ^= x >> 8;
    x ^= x >> 4;
    x ^= x >> 2;
    x ^= x >> 1;
    x &= UINT64_C(0x0001000100010001);
    return x * UINT64_C(0x0001000200040008) >> 48 & 15;
}

/* Room for one shard while it is made: BLY_RIBBON_ROOM words for each of its
 * slots, all the rows first and then all the prints. A slot is free where its
 * row is 0. */
#define BLY_RIBBON_ROOM 2

/* Solve a shard: n sorted hashes, all different, that fall into it. Keys that
 * find no room are moved to the front of u, in no order, and counted; where
 * the layer has bounds, all keys of a bucket that start below its bound are
 * among them, and no others. A layer without bounds takes all or none. */
size_t bly_ribbon_solve(const bly_ribbon_layer *l, uint64_t shard,
                        uint64_t *room, uint64_t *u, size_t n,
                        unsigned char *data);

#endif
