/*
 * overflow.h - the large counts of an array of small counters, by position
 *
 * Counters of 4 bits hold nearly all counts; the few that are larger have a
 * place here. A count at position p has its home in place p scaled to `homes`,
 * so the places are in the order of the positions; one whose home is taken
 * stands behind it.
 *
 *     place   0    1    2    3    4    5    6    7    8
 *             +----+----+----+----+----+----+----+----+----+
 *     keys    | 13 |    | 44 | 45 | 51 |    |    | 90 | 92 |   position + 1
 *             +----+----+----+----+----+----+----+----+----+   0: free
 *     counts  | 17 |    | 99 | 16 | 20 |    |    | 15 | 31 |   32 bits each
 *             +----+----+----+----+----+----+----+----+----+
 *                         home of 43, 44 and 50
 *
 * The place of a count depends on which positions there are, and not on which
 * came first: the same counts give the same bytes. The places behind the last
 * home are for those that were pushed along. A count that finds none even
 * there, or finds the table three quarters full, is refused, and the owner
 * makes a larger table.
 *
 * Keys are packed, as many bits as the largest needs. A lookup is safe for any
 * bytes.
 */
#ifndef BLY_OVERFLOW_H
#define BLY_OVERFLOW_H

#include "core/packed.h"

typedef struct bly_overflow {
    unsigned char *counts, *keys;
    uint64_t places, homes;
    uint64_t range; /* positions are below this */
    uint64_t step;  /* 2^64 homes / range, or less: never past the last */
    unsigned width; /* bits of a key */
} bly_overflow;

/* Sizes are 0, 24, and from there on each half as large again as the one
 * before. */
static inline uint64_t bly_overflow_next(uint64_t places)
{
    return places ? places + places / 2 : 24;
}

/* Is this one of the sizes, and at most 2^48 places? */
bool bly_overflow_places_ok(uint64_t places);

/* How many counts a table takes, unless they crowd at its end. */
static inline uint64_t bly_overflow_homes(uint64_t places)
{
    return places ? places - places / 16 - 8 : 0;
}

static inline uint64_t bly_overflow_most(uint64_t places)
{
    const uint64_t homes = bly_overflow_homes(places);
    return homes - homes / 4;
}

/* Memory, in whole words; and how many bits of it are used. */
uint64_t bly_overflow_nbytes(uint64_t places, uint64_t range);
uint64_t bly_overflow_bits(uint64_t places, uint64_t range);

/* The table that begins there, 8-aligned; of fewer places than positions. */
bly_overflow bly_overflow_of(unsigned char *at, uint64_t places,
                             uint64_t range);

/* The count at a position; 0: it has none here. */
uint32_t bly_overflow_get(const bly_overflow *t, uint64_t position);

/* Give a position a count, which is not 0; *n is how many have one. False, with
 * nothing changed: the table is full. */
bool bly_overflow_put(bly_overflow *t, uint64_t position, uint32_t count,
                      uint64_t *n);

/* Remove the count of a position. */
void bly_overflow_drop(bly_overflow *t, uint64_t position, uint64_t *n);

/* The first count in place *i or behind it, and its position; *i becomes the
 * next place. False: there is none. */
bool bly_overflow_walk(const bly_overflow *t, uint64_t *i, uint64_t *position,
                       uint32_t *count);

/* Are these the bytes that n counts make? */
bool bly_overflow_check(const bly_overflow *t, uint64_t n);

#endif
