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
 * Only the first two values need a modulus; after that a sum exceeds m at most
 * once, since k <= m. The second rule is that of position.h, whose positions
 * are as good as independent. With it, each position i may have a slice for
 * itself:
 *
 *     position i = i * apart + mix(h + (i + 1) C) m / 2^64
 *
 * The third rule multiplies the hash by powers of a constant (BLY_POWERS_C,
 * bloomery/inline.h) and scales the product; that takes one multiplication
 * instead of a mix:
 *
 *     position i = (h C^i mod 2^64) m / 2^64
 *
 * All keys take the same steps, so a vector unit takes the steps of four or
 * eight keys at a time. The results are ordered by step: position i of key j is
 * at[i * stride + j].
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
    uint64_t apart; /* between slices, with BLY_STEPS_MIXED; or 0 */
} bly_steps;

/* The positions of n keys. In each step, entries of `at` from the last key up
 * to the stride are undefined after the call. */
typedef void bly_steps_fill(const bly_steps *s, const uint64_t *h, size_t n,
                            uint64_t *at);

/* Like fill, by the first rule; in addition, bit j of near is set if two
 * positions of key j may be equal.
 *
 * Positions i < j are equal if d y + c = 0 (mod m), where d = j - i and c is
 * the difference of their cubic terms, at most (k^3 - k)/6. So it is enough to
 * test whether one of y, 2y, .. (k-1)y is a multiple of m, or lies below one by
 * no more than that: k tests in place of k^2/2. */
typedef void bly_steps_list(const bly_steps *s, const uint64_t *h, size_t n,
                            uint64_t *at, uint64_t *near);

typedef struct bly_steps_row {
    BLY_ROW_HEAD;
    bly_steps_fill *fill;
    bly_steps_list *list;
} bly_steps_row;

BLY_ROWS(steps);

/* dy is 0, or close enough to m from below, if dy - 1 is at least this. */
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
