/*
 * normal.h - the form that keys take before they are hashed
 *
 * Adding and asking must agree on it, or a key that is there is not found. So
 * it is written once, here, and everything that takes keys gets it through
 * input.h.
 */
#ifndef BLY_IO_NORMAL_H
#define BLY_IO_NORMAL_H

#include "io/input.h"

/* Are keys to be integers? */
static inline bool normal_integer(const struct normal *how)
{
    return how->type == BLY_KEYS_INT64 || how->type == BLY_KEYS_UINT64;
}

/* Is anything to be done to a key? */
static inline bool normal_any(const struct normal *how)
{
    return how->fold || how->trim || how->no_cr || how->grouped || how->real ||
           normal_integer(how);
}

/* What is done to its text: BLY_KEYS_FOLDED and so on. */
uint32_t normal_forms(const struct normal *how);

/* How much of `scratch` n bytes of keys may take. */
static inline size_t normal_most(const struct normal *how, size_t n)
{
    return (how->fold ? BLY_KEY_ROOM(n) : 0) +
           (how->real ? (sizeof(double) + 1) * n : 0);
}

/* Bring a key into its form. Where that is not a part of the key, it is
 * appended to scratch, which has room for normal_most(). False, and why, for
 * what cannot be a key. */
bool normal_key(const struct normal *how, bly_bytes *key, struct block *scratch,
                char *why, size_t nwhy);

#endif
