/*
 * ribbon_table.h - rows of 64 coefficients: solving and querying
 *
 * A shard is a linear system over GF(2). Its unknowns are slots, from 64 to
 * 65536 of them, each a few bits wide. A key has a start, a row of 64
 * coefficients for the slots from there on, the first of which is 1, and a
 * print: the sum of the slots that its row selects must be its print.
 *
 *     slots     0 . . . start . . . . . . . . . . . . . . . .
 *     key             | 1 0 1 1 0 1 . . . 64 coefficients |  = print
 *
 * Such a band is solved in one pass and little memory. The row of a key goes to
 * the slot of its first 1. If there is a row already, the two are added, which
 * moves the first 1 to the right, until there is room or the row is 0 (and then
 * the print must be 0 too). Afterwards each slot follows from those to its
 * right.
 *
 * Solutions lie in blocks of 64 slots, a word for each bit of width, so that
 * the sums of a key are parities of words:
 *
 *     block     | bit 0 of 64 slots | bit 1 of 64 slots | ... |
 *
 * Blocks from `wide` on have one bit more than those before. A key is wide if
 * its share of the shard says so, and then its print is one bit longer. The
 * slots of a wide key all lie in wide blocks; a narrow key that reaches into
 * them ignores their last bit. So any width between two integers is possible,
 * and the rate is exact for every number of slots.
 */
#ifndef BLY_RIBBON_TABLE_H
#define BLY_RIBBON_TABLE_H

#include <bloomery/views.h>

#include "core/bits.h"
#include "engine/rows.h"

/* bloomery/views.h has what programs compile in to ask one key: the size of a
 * row, of a bucket and of a step, and what row and print are. */
#define BLY_RIBBON_SHARD (1u << 16) /* slots of the largest shard */
#define BLY_RIBBON_MAX_WIDTH 64u    /* bits of the widest print */

/* A layer: shards of one size, and where they are. */
typedef struct bly_ribbon_layer {
    uint64_t nshards;
    uint32_t nslots;   /* of a shard, a multiple of 64 */
    uint32_t nbuckets; /* of a shard, that have a bound; 0: none */
    uint32_t nbounds;  /* bytes of these: one each, or two bits */
    uint64_t wide;     /* first block of a shard that has a bit more */
    uint64_t stride;   /* words of a shard */
    uint64_t words;    /* before the layer's first one */
    uint64_t bounds;   /* bytes before its first bound */
    unsigned width;    /* bits of a narrow slot */
    unsigned nplanes;  /* of the widest */
    uint64_t narrow;   /* shares in units of 2^-32 below this are narrow */
    uint64_t seed;
    uint64_t needs[2]; /* bits of a print that count, narrow and wide */
    uint64_t out;      /* the bit of a hash that flips the print; 0: none */
} bly_ribbon_layer;

/* A key in its layer. */
typedef struct bly_ribbon_key {
    uint64_t shard;
    uint32_t start;
    bool wide;
} bly_ribbon_key;

/* The hash of a key in a layer, from that in the layer before, or from the
 * key's own in the first; and back. */
static inline uint64_t bly_ribbon_hash(uint64_t h, uint64_t seed)
{
    return bly_mix64(h ^ seed);
}

uint64_t bly_ribbon_unhash(uint64_t u, uint64_t seed);

/* The same where bit 0 is not part of the key, and stays: the other 63 are
 * hashed to 63. */
static inline uint64_t bly_ribbon_hash_valued(uint64_t h, uint64_t seed)
{
    const uint64_t low = UINT64_MAX >> 1;
    uint64_t x = (h >> 1 ^ seed) & low;
    x = ((x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9)) & low;
    x = ((x ^ x >> 27) * UINT64_C(0x94d049bb133111eb)) & low;
    return (x ^ x >> 31) << 1 | (h & 1);
}

uint64_t bly_ribbon_unhash_valued(uint64_t u, uint64_t seed);

/* The place of a key. It follows from the top bits of the hash, so that sorted
 * keys are in the order of their starts. The share of the shard that lies
 * before the key says whether it is wide. */
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

/* With one bit per key, bounds of a byte would add 3 %. So here a bound has two
 * bits. 0: no key is bumped; 1: the keys of the first 16 slots of the bucket;
 * 2: of the first 48; 3: all. That leaves 0.4 % of the slots empty where bytes
 * leave 0.1 %, and takes 0.8 % of the table. */
#define BLY_RIBBON_REGIONS 3
static inline unsigned bly_ribbon_region(uint32_t start)
{
    const uint32_t at = start % BLY_RIBBON_BUCKET;
    return (unsigned)(at >= 16) + (at >= 48);
}

/* In a ribbon of values: was a key with this start bumped? */
static inline bool bly_ribbon_bumped(const unsigned char *bounds,
                                     uint32_t start)
{
    const uint32_t b = start / BLY_RIBBON_BUCKET;
    return bly_ribbon_region(start) < (bounds[b / 4] >> b % 4 * 2 & 3u);
}

/* The first word of a block, counted from that of the shard. */
static inline uint64_t bly_ribbon_block(const bly_ribbon_layer *l, uint64_t b)
{
    return b * l->width + (b > l->wide ? b - l->wide : 0);
}

/* Spare words behind the last block: with fewer, a group of four planes would
 * reach past the end. */
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

/* A shard that is being built: n sorted hashes, all different, that fall into
 * it, and BLY_RIBBON_ROOM words for each of its slots, first for all the rows
 * and then for all the prints. */
typedef struct bly_ribbon_part {
    uint64_t shard;
    uint64_t *u;
    size_t n;
    uint64_t *room;
    size_t nbumped;
} bly_ribbon_part;

#define BLY_RIBBON_ROOM 2

/* Solve a shard. Keys that find no room are moved to the front of u, in no
 * particular order, and counted. If the layer has bounds, these are exactly the
 * keys that start below the bound of their bucket. A layer without bounds takes
 * all or none. nbumped must come as 0. */
void bly_ribbon_solve(const bly_ribbon_layer *l, bly_ribbon_part *part,
                      unsigned char *data);

/* Keys that go through the layers together. */
#define BLY_RIBBON_PIECE 1024

/* Keys on their way through the layers: their hashes, and the bits of the
 * answer that are theirs. */
typedef struct bly_ribbon_keys {
    uint64_t u[BLY_RIBBON_PIECE];
    uint32_t at[BLY_RIBBON_PIECE];
    size_t n;
} bly_ribbon_keys;

/* The functions that do the work, by the instructions of a processor. The
 * portable row defines the result; the others are tested against it. */
typedef struct bly_ribbon_row {
    BLY_ROW_HEAD;

    /* Ask a layer for the n <= BLY_RIBBON_PIECE keys h, which are hashes of the
     * layer before. Keys that it bumped are left in rest. first: h is not
     * rest->u, answer i is that of key i, and whole words of maybe are written;
     * else h is rest->u, and the bits of rest->at are set. ahead: prefetch,
     * since the table does not fit into the cache. */
    void (*ask)(const bly_ribbon_layer *l, const unsigned char *data,
                const uint64_t *h, size_t n, bly_ribbon_keys *rest,
                uint64_t *maybe, bool first, bool ahead);

    /* The slots of a shard from its rows and prints. */
    void (*substitute)(const bly_ribbon_layer *l, const uint64_t *rows,
                       const uint64_t *prints, uint64_t *words);
} bly_ribbon_row;

BLY_ROWS(ribbon);

/* -------------------------------------- what the variants have in common */

/* Keys ahead of the present one whose words are fetched into L2, and into L1
 * (engine/lines.h). */
#define BLY_RIBBON_FAR 64
#define BLY_RIBBON_NEAR 8

/* A key whose words are on their way. */
typedef struct bly_ribbon_asked {
    uint64_t u;
    const uint64_t *block;      /* in which it starts */
    const unsigned char *bound; /* of its bucket */
    bly_ribbon_key key;
} bly_ribbon_asked;

/* Two blocks, to the last of their lines. near is a literal. */
static inline __attribute__((always_inline)) void
bly_ribbon_fetch(const void *block, unsigned ngroups, bool near)
{
    const char *const at = block;
    for (unsigned to = 0; to < ngroups; to++)
        if (near)
            __builtin_prefetch(at + 64 * to, 0, 3);
        else
            __builtin_prefetch(at + 64 * to, 0, 2);
    if (near)
        __builtin_prefetch(at + 64 * ngroups - 8, 0, 3);
    else
        __builtin_prefetch(at + 64 * ngroups - 8, 0, 2);
}

/* Where the key h is to be looked for. */
static inline __attribute__((always_inline)) bly_ribbon_asked
bly_ribbon_find(const bly_ribbon_layer *l, const unsigned char *data,
                uint64_t h)
{
    static const unsigned char none = 0;
    const uint64_t u = bly_ribbon_hash(h, l->seed);
    const bly_ribbon_key key = bly_ribbon_place(l, u);
    return (bly_ribbon_asked){
        .u = u,
        .block = (const uint64_t *)(const void *)data + l->words +
                 key.shard * l->stride + bly_ribbon_block(l, key.start / 64),
        .bound = l->nbounds ? data + l->bounds + key.shard * l->nbounds +
                                  key.start / BLY_RIBBON_BUCKET
                            : &none,
        .key = key,
    };
}

/* Parities of (x[i] & here) ^ (y[i] & there), i = 0 to 3, as bits 0 to 3. */
typedef uint64_t bly_ribbon_four(const uint64_t *x, const uint64_t *y,
                                 uint64_t here, uint64_t there);

/* Do the slots of a key add up to its print? A row covers two blocks; or one,
 * if it starts where the block starts. Then that block is read in place of the
 * second, which may lie past the end. */
static inline __attribute__((always_inline)) bool
bly_ribbon_test(const bly_ribbon_layer *l, const bly_ribbon_asked *a,
                unsigned ngroups, bly_ribbon_four *four)
{
    const uint64_t row = bly_ribbon_coefficients(a->u);
    const unsigned s = a->key.start % 64;
    const uint64_t here = row << s, there = row >> 1 >> (63 - s);
    const uint64_t *const x = a->block;
    const uint64_t *const y =
        x + (s ? l->width + (a->key.start / 64 >= l->wide) : 0);
    const uint64_t print = bly_ribbon_print(a->u);
    const uint64_t needs = l->needs[a->key.wide];
    uint64_t sums = 0;
    for (unsigned g = 0; g < ngroups; g++) {
        sums |= four(x + 4 * g, y + 4 * g, here, there) << 4 * g;
        /* Eight planes rule out all but one in 256 absent keys. If only a few
         * more follow, it is faster to go on than to branch. */
        if (g == 1 && ngroups > 3 && (sums ^ print) & needs & 0xff)
            return false;
    }
    return !((sums ^ print) & needs);
}

/* The body of ask(); first and ngroups are literals where they matter, four
 * always is one. */
static inline __attribute__((always_inline)) void
bly_ribbon_ask_body(const bly_ribbon_layer *layer, const unsigned char *data,
                    const uint64_t *h, size_t n, bly_ribbon_keys *rest,
                    uint64_t *maybe, bool first, bool ahead, unsigned ngroups,
                    bly_ribbon_four *four)
{
    const bly_ribbon_layer local = *layer, *const l = &local;
    bly_ribbon_asked ring[BLY_RIBBON_FAR];
    size_t nbumped = 0;
    uint64_t bits = 0;
    for (size_t i = 0; i < n && i < BLY_RIBBON_FAR; i++) {
        ring[i] = bly_ribbon_find(l, data, h[i]);
        if (ahead)
            bly_ribbon_fetch(ring[i].block, ngroups, false);
    }
    for (size_t i = 0; i < n; i++) {
        bly_ribbon_asked *const a = &ring[i % BLY_RIBBON_FAR];
        const uint64_t u = a->u;
        const bool bumped =
            a->key.start % BLY_RIBBON_BUCKET / BLY_RIBBON_STEP < *a->bound;
        const uint64_t in = bly_ribbon_test(l, a, ngroups, four) & !bumped;
        if (i + BLY_RIBBON_FAR < n) {
            *a = bly_ribbon_find(l, data, h[i + BLY_RIBBON_FAR]);
            if (ahead)
                bly_ribbon_fetch(a->block, ngroups, false);
        }
        if (ahead && i + BLY_RIBBON_NEAR < n)
            bly_ribbon_fetch(ring[(i + BLY_RIBBON_NEAR) % BLY_RIBBON_FAR].block,
                             ngroups, true);
        const uint32_t at = first ? (uint32_t)i : rest->at[i];
        rest->u[nbumped] = u;
        rest->at[nbumped] = at;
        nbumped += bumped;
        if (first) {
            bits |= in << (i % 64);
            if (i % 64 == 63 || i + 1 == n) {
                maybe[i / 64] = bits;
                bits = 0;
            }
        } else {
            maybe[at / 64] |= in << (at % 64);
        }
    }
    rest->n = nbumped;
}

/* ask(), with literals where they matter: for the first layer, and for the most
 * common widths. */
static inline __attribute__((always_inline)) void
bly_ribbon_ask_with(const bly_ribbon_layer *l, const unsigned char *data,
                    const uint64_t *h, size_t n, bly_ribbon_keys *rest,
                    uint64_t *maybe, bool first, bool ahead,
                    bly_ribbon_four *four)
{
    const unsigned ngroups = (l->nplanes + 3) / 4;
    if (!first)
        bly_ribbon_ask_body(l, data, h, n, rest, maybe, false, ahead, ngroups,
                            four);
    else if (ngroups == 2)
        bly_ribbon_ask_body(l, data, h, n, rest, maybe, true, ahead, 2, four);
    else if (ngroups == 3)
        bly_ribbon_ask_body(l, data, h, n, rest, maybe, true, ahead, 3, four);
    else
        bly_ribbon_ask_body(l, data, h, n, rest, maybe, true, ahead, ngroups,
                            four);
}

#if BLY_X86
/* x86_ribbon.c */
void bly_ribbon_ask_avx2(const bly_ribbon_layer *l, const unsigned char *data,
                         const uint64_t *h, size_t n, bly_ribbon_keys *rest,
                         uint64_t *maybe, bool first, bool ahead);
void bly_ribbon_ask_avx512(const bly_ribbon_layer *l, const unsigned char *data,
                           const uint64_t *h, size_t n, bly_ribbon_keys *rest,
                           uint64_t *maybe, bool first, bool ahead);
void bly_ribbon_substitute_avx2(const bly_ribbon_layer *l, const uint64_t *rows,
                                const uint64_t *prints, uint64_t *words);
#endif

#endif
