/*
 * groups.h - hashes of keys that belong to groups
 *
 * Such a key is the name of its group, a tab, and its name within the group.
 * All of it is hashed, and the hash is then moved into a span of the 64-bit
 * numbers, which the group shares with similar groups. So the hash alone tells
 * the span. If the length of spans is proportional to the number of their keys,
 * two keys have the same hash no more often than otherwise:
 *
 *     0 | span 0           | span 1   | span 2                        |
 *       1            last 0     last 1                          last 2 = 2^64-1
 *
 * A key without a tab has no group; its hash is 0, and no other key has that.
 *
 * The table, in little-endian words: for each span its last hash, and a word
 * for the caller's use; then a row of 32 bits for each group that is assigned
 * to a span, sorted: 26 bits of the hash of its name and 6 bits for the number
 * of the span. All other groups are in the span `rest`. Two groups whose 26
 * bits agree are treated as one; that may cost bits, but nothing else.
 *
 * The bytes may come from a damaged file: whatever they are, nothing is read
 * out of bounds.
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

/* The table of a hasher with the id BLY_HASH_GROUPED, and the other way round.
 * The table belongs to the owner of the hasher. */
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

/* The bits of a group's name that a row keeps. */
uint32_t bly_groups_print(uint64_t seed, const void *name, size_t len);

/* The span of a hash. */
unsigned bly_groups_span(const bly_groups *g, uint64_t h);

/* The hash of a key. */
uint64_t bly_groups_hash(const bly_hasher *hs, const void *key, size_t len);

#endif
