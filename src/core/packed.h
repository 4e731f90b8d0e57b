/*
 * packed.h - numbers of any width, packed without gaps
 *
 * A field is `width` bits, up to 64, from bit `bit` of an array on, counted as
 * in bits.h: least significant bit first. With 7 bits before it in its first
 * byte a field of 64 bits lies in nine bytes.
 *
 *     byte      0                1                2
 *     bits      0 1 2 3 4 5 6 7  8 9 ...
 *     field     . . . a b c d e  f g . .          bit = 3, width = 7
 *
 * There are two ways to read. Queries load whole words: they read up to
 * BLY_FIELD_SLACK bytes past the field, which must exist. If other threads
 * write neighbouring fields at the same time, only the bytes of the field
 * itself may be read and written; then fields of different writers must not
 * share a byte.
 */
#ifndef BLY_PACKED_H
#define BLY_PACKED_H

#include "core/bits.h"

#define BLY_FIELD_SLACK 8
#define BLY_FIELD_SHORT 57 /* in one word wherever it begins */

/* The lowest `width` bits. */
static inline uint64_t bly_field_mask(unsigned width)
{
    return width ? UINT64_MAX >> (64 - width) : 0;
}

/* Bits that value takes, 1 at least. */
static inline unsigned bly_field_width(uint64_t value)
{
    return 64 - (unsigned)__builtin_clzll(value | 1);
}

/* Up to BLY_FIELD_SHORT bits, given by their mask. */
static inline __attribute__((always_inline)) uint64_t
bly_field_get_short(const unsigned char *array, uint64_t bit, uint64_t mask)
{
    return bly_load64(array + (bit >> 3)) >> (bit & 7) & mask;
}

static inline __attribute__((always_inline)) uint64_t
bly_field_get(const unsigned char *array, uint64_t bit, unsigned width)
{
    const unsigned char *const at = array + (bit >> 3);
    const unsigned shift = (unsigned)(bit & 7);
    uint64_t field = bly_load64(at) >> shift;
    if (shift + width > 64) /* so shift is not 0 */
        field |= (uint64_t)at[8] << (64 - shift);
    return field & bly_field_mask(width);
}

/* The same from the bytes of the field alone. */
static inline uint64_t bly_field_get_exact(const unsigned char *array,
                                           uint64_t bit, unsigned width)
{
    const unsigned char *const at = array + (bit >> 3);
    const unsigned shift = (unsigned)(bit & 7);
    uint64_t field = 0;
    for (unsigned i = 0; 8 * i < shift + width; i++)
        field |=
            i ? (uint64_t)at[i] << (8 * i - shift) : (uint64_t)at[0] >> shift;
    return field & bly_field_mask(width);
}

/* Write value, which must not be wider, to the bytes of the field alone. */
static inline void bly_field_put_exact(unsigned char *array, uint64_t bit,
                                       unsigned width, uint64_t value)
{
    unsigned char *const at = array + (bit >> 3);
    const unsigned shift = (unsigned)(bit & 7);
    const uint64_t mask = bly_field_mask(width);
    for (unsigned i = 0; 8 * i < shift + width; i++) {
        const uint64_t m = i ? mask >> (8 * i - shift) : mask << shift;
        const uint64_t v = i ? value >> (8 * i - shift) : value << shift;
        at[i] = (unsigned char)((at[i] & ~m) | (v & m));
    }
}

#endif
