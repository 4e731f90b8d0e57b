/*
 * groups.h - hashes of keys that stand in groups
 *
 * Such a key is its group, a tab, and what it is called in the group. All of it
 * is hashed, and the hash is then moved into a span of the 64-bit numbers that
 * its group has together with others like it. So whoever has the hash knows the
 * span, and two keys have the same hash as seldom as ever, where spans are as
 * long as the number of their keys:
 *
 *     0 | span 0           | span 1   | span 2                        |
 *       1            last 0     last 1                          last 2 = 2^64-1
 *
 * A key without a tab has no group; its hash is 0, and no other key has that.
 *
 * The table, in little-endian words: for each span its last hash, and a word
 * that belongs to whoever asks; then, of 32 bits each, a row for each group
 * that has a span of its own, sorted: 26 bits of the hash of its name and 6
 * bits of the number of the span. All other groups are in the span `rest`. Two
 * groups whose 26 bits agree are one; that costs bits at most.
 *
 * The bytes may be those of a damaged file: whatever they are, nothing outside
 * is read.
 */
#ifndef BLY_GROUPS_H
#define BLY_GROUPS_H

#include "core/bits.h"
#include "core/hash.h"

#define BLY_GROUPS_SPANS 64 /* at most */
#define BLY_GROUPS_SPAN_BITS 6
#define BLY_GROUPS_ROWS (UINT64_C(1) << 26) /* at most */

typedef struct bly_groups {
    const unsigned char *at;
    uint64_t nrows;
    unsigned nspans, rest;
} bly_groups;

static inline uint64_t bly_groups_bytes(uint64_t nspans, uint64_t nrows)
{
    return 16 * nspans + (4 * nrows + 7) / 8 * 8;
}

/* The table of a hasher, whose id is BLY_HASH_GROUPED, and the other way round.
 * The table belongs to whoever has the hasher. */
static inline bly_groups bly_groups_of(const bly_hasher *hs)
{
    return (bly_groups){ .at = (const unsigned char *)(uintptr_t)hs->secret[0],
                         .nrows = hs->secret[1] >> 16,
                         .nspans = (unsigned)(hs->secret[1] >> 8 & 255),
                         .rest = (unsigned)(hs->secret[1] & 255) };
}

static inline void bly_groups_aim(bly_hasher *hs, const bly_groups *g)
{
    hs->secret[0] = (uintptr_t)g->at;
    hs->secret[1] = g->nrows << 16 | (uint64_t)g->nspans << 8 | g->rest;
}

static inline uint64_t bly_groups_last(const bly_groups *g, unsigned span)
{
    return bly_load64(g->at + 16 * (size_t)span);
}

static inline uint64_t bly_groups_word(const bly_groups *g, unsigned span)
{
    return bly_load64(g->at + 16 * (size_t)span + 8);
}

/* What a row has of a group's name. */
uint32_t bly_groups_print(uint64_t seed, const void *name, size_t len);

/* The span of a hash. */
unsigned bly_groups_span(const bly_groups *g, uint64_t h);

/* The hash of a key. */
uint64_t bly_groups_hash(const bly_hasher *hs, const void *key, size_t len);

#endif
