/*
 * steps.h - the k positions of many keys at once: the loops under
 * kinds/probe.h
 *
 * There are three rules. The first is enhanced double hashing, as probe.h says:
 * with h the hash of a key,
 *
 *     x = h mod m,  y = mix(h) mod m
 *     position i = x, then x += y, y += i + 1 (mod m)        i = 0 .. k-1
 *
 * Only the first two values need a modulus; after them a sum passes m once at
 * most, since k <= m. The second is that of position.h, by which positions are
 * as good as independent; there position i may have a slice for itself:
 *
 *     position i = i * apart + mix(h + (i + 1) C) m / 2^64
 *
 * The third scales powers of a constant (BLY_POWERS_C, bloomery/inline.h) times
 * the hash, and takes one product instead of a mix:
 *
 *     position i = (h C^i mod 2^64) m / 2^64
 *
 * All keys take the same steps, so a vector takes those of four or eight keys
 * at a time. The positions come out by steps: position i of
 * key j is at[i * stride + j].
 *
 * The portable row defines the result; the others are tested against it.
 */
#ifndef BLY_STEPS_H
#define BLY_STEPS_H

#include "core/bits.h"
#include "engine/rows.h"

#define BLY_STEPS_LANES 8 /* a stride is a multiple of it */

typedef enum bly_steps_rule {
    BLY_STEPS_DOUBLE,
    BLY_STEPS_MIXED,
    BLY_STEPS_POWERS
} bly_steps_rule;

typedef struct bly_steps {
    bly_modulus range; /* below 2^62 */
    uint64_t k;        /* 1 <= k <= range.n */
    size_t stride;     /* at least the number of keys */
    bly_steps_rule rule;
    uint64_t apart; /* of the slices, with BLY_STEPS_MIXED; or 0 */
} bly_steps;

/* The positions of n keys. What is in `at` behind the last of them, up to the
 * stride, is undefined after the call. */
typedef void bly_steps_fill(const bly_steps *s, const uint64_t *h, size_t n,
                            uint64_t *at);

/* As fill, by the first rule; and bit j of near is set where two positions of
 * key j may be one.
 *
 * Positions i < j are one if d y + c = 0 (mod m) for d = j - i and for c the
 * difference of their cubic terms, which is at most (k^3 - k)/6. So it is
 * enough to look whether one of y, 2y, .. (k-1)y comes so near to a multiple
 * of m from below, or is one: k looks in place of k^2/2. */
typedef void bly_steps_list(const bly_steps *s, const uint64_t *h, size_t n,
                            uint64_t *at, uint64_t *near);

typedef struct bly_steps_row {
    BLY_ROW_HEAD;
    bly_steps_fill *fill;
    bly_steps_list *list;
} bly_steps_row;

BLY_ROWS(steps);

/* dy comes near to m from below, or is 0, if dy - 1 is at least this. */
static inline uint64_t bly_steps_far(uint64_t m, uint64_t k)
{
    const uint64_t cubic = (k * k * k - k) / 6;
    return m > cubic ? m - cubic - 1 : 0;
}

#if BLY_X86
/* x86_steps.c */
bly_steps_fill bly_steps_fill_avx2, bly_steps_fill_avx512;
bly_steps_list bly_steps_list_avx2, bly_steps_list_avx512;
#endif

#endif
