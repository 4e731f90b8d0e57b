/*
 * fano.h - sorted numbers in few bits, and whether one lies between two
 *
 * Distinct numbers up to `last`, in order, each cut in two. The low bits are
 * packed one after another; the high ones are the number of a bucket, and the
 * buckets are written in unary: a one for each number in it, then a zero (Elias
 * 1974, Fano 1971).
 *
 *     numbers, two low bits     1       6   7           14
 *     buckets                   0       1               2        3
 *     high                      1 0     1 1 0           0        1 0
 *     low                       01      10  11                   10
 *
 * So the numbers of bucket p begin right behind zero p - 1, and the number of
 * ones before it tells how many numbers come before them. With about as many
 * buckets as numbers this takes two bits for each besides the low ones, which
 * are log2((last + 1) / numbers).
 *
 * To find a zero quickly, the high bits are kept in lines of 64 bytes. A line
 * has a head, which says how many zeros are before the line and in its first
 * two, four and six words, and 448 bits. For every 128 zeros an index gives the
 * line of the first. If numbers lie close together, with perhaps a million ones
 * and no zero between, that is hardly slower: then lines are searched by
 * bisection.
 *
 *     | lines of 64 bytes | u32 per 128 zeros, to a whole word | low bits, 8 |
 *
 * That takes two thirds of a bit per number in all. All queries are safe for
 * any bytes.
 */
#ifndef BLY_FANO_H
#define BLY_FANO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/rows.h"

#define BLY_FANO_MOST (UINT64_C(1) << 36) /* heads count in 38 bits */

typedef struct bly_fano {
    unsigned char *data;
    uint64_t n;    /* numbers in it */
    uint64_t room; /* for so many */
    uint64_t last; /* the largest that there can be */
    uint64_t nbuckets, nlines, nsamples;
    uint64_t samples, lows; /* where they begin */
    uint64_t nbytes;        /* of all */
    unsigned low;           /* bits */
} bly_fano;

/* The layout for `room` numbers, from 1 to BLY_FANO_MOST, up to last. data and
 * n are not set. */
bly_fano bly_fano_of(uint64_t room, uint64_t last);

/* Fill data, which is zero, from t->n numbers that ascend. */
void bly_fano_fill(const bly_fano *t, const uint64_t *numbers);

/* Read all numbers, in order; out has room for t->n. Damaged data gives
 * nonsense, in no order. */
void bly_fano_read(const bly_fano *t, uint64_t *out);

/* Is the data, to the last bit, what bly_fano_fill() would make of some
 * numbers? */
bool bly_fano_check(const bly_fano *t);

/* Report to touch() all bytes on which the answer for from..to depends; false
 * as soon as touch() returns false. */
typedef bool bly_fano_touch(void *ctx, uint64_t at, uint64_t nbytes);
bool bly_fano_reach(const bly_fano *t, uint64_t from, uint64_t to,
                    bly_fano_touch *touch, void *ctx);

/* Is one of the numbers in from..to, both included, from <= to <= last? The
 * second function is for up to BLY_FANO_GROUP ranges: bit i for pair i. */
#define BLY_FANO_GROUP 64
typedef struct bly_fano_row {
    BLY_ROW_HEAD;
    bool (*any)(const bly_fano *t, uint64_t from, uint64_t to);
    uint64_t (*any_each)(const bly_fano *t, const uint64_t *from,
                         const uint64_t *to, size_t n);
} bly_fano_row;
BLY_ROWS(fano);

#endif
