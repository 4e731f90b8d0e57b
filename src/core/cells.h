/*
 * cells.h - arrays of small counters, packed
 *
 * m counters of `width` bits lie one behind the other, least significant bit
 * first: counter j is bits j * width to (j + 1) * width - 1 of the array,
 * counted as in bits.h. So two counters of 4 bits share a byte, the even one
 * in the low half, and counters of 8, 16 and 32 bits are little-endian
 * integers. Widths are 2, 3, 4, 7, 8, 12, 16 and 32.
 *
 * Counters of 3, 7 and 12 bits may lie across two bytes, but never three (a
 * counter of 12 bits starts at the beginning or in the middle of a byte); they
 * are read two bytes at a time, and such arrays end in a spare byte.
 *
 * A counter at its top, 2^width - 1, is stuck: it has lost count, and stays
 * there for ever. Where `width` is a literal the compiler sees one of the
 * branches below; where it is not, the branch is the same every time.
 */
#ifndef BLY_CELLS_H
#define BLY_CELLS_H

#include <string.h>

#include "core/bits.h"

static inline bool bly_cell_width_ok(uint64_t width)
{
    return width == 2 || width == 3 || width == 4 || width == 7 || width == 8 ||
           width == 12 || width == 16 || width == 32;
}

/* So many bytes hold whole counters of every width, and whole words. */
#define BLY_CELLS_UNIT 168 /* 8 * 3 * 7 */

static inline uint32_t bly_cell_top(unsigned width)
{
    return (uint32_t)(UINT32_MAX >> (32 - width));
}

/* The byte in which counter j begins. */
static inline uint64_t bly_cell_byte(uint64_t j, unsigned width)
{
    return j * width >> 3;
}

static inline __attribute__((always_inline)) uint32_t
bly_cell_get(const unsigned char *cells, uint64_t j, unsigned width)
{
    const unsigned char *const at = cells + bly_cell_byte(j, width);
    const unsigned shift = (unsigned)(j * width & 7);
    if (width == 2 || width == 4)
        return (uint32_t)*at >> shift & bly_cell_top(width);
    if (width == 8)
        return *at;
    if (width == 32)
        return bly_load32(at);
    return (uint32_t)bly_load16(at) >> shift & bly_cell_top(width);
}

static inline __attribute__((always_inline)) void
bly_cell_put(unsigned char *cells, uint64_t j, unsigned width, uint32_t value)
{
    unsigned char *const at = cells + bly_cell_byte(j, width);
    const unsigned shift = (unsigned)(j * width & 7);
    const uint32_t mask = bly_cell_top(width) << shift;
    if (width == 2 || width == 4) {
        *at = (unsigned char)((*at & ~mask) | value << shift);
    } else if (width == 8) {
        *at = (unsigned char)value;
    } else if (width == 32) {
        bly_store32(at, value);
    } else {
        bly_store16(at, (uint16_t)((bly_load16(at) & ~mask) | value << shift));
    }
}

/* c + by, or the top if that is reached. */
static inline uint32_t bly_cell_sum(uint32_t c, uint64_t by, uint32_t top)
{
    return by >= top - c ? top : c + (uint32_t)by;
}

/* Bytes of m <= 2^48 counters: whole words. */
static inline uint64_t bly_cells_nbytes(uint64_t m, unsigned width)
{
    return (m * width + (64 % width ? 8 : 0) + 63) / 64 * 8;
}

/* How many of m counters are not zero, and how many are at their top. */
typedef struct bly_cells_tally {
    uint64_t used, stuck;
} bly_cells_tally;

bly_cells_tally bly_cells_count(const unsigned char *cells, uint64_t m,
                                unsigned width);

/* Whether the bits behind the last counter are clear. */
bool bly_cells_tail_clear(const unsigned char *cells, uint64_t m,
                          unsigned width);

/* dst += src, counter by counter; a sum that reaches the top stays there. */
void bly_cells_add(unsigned char *dst, const unsigned char *src, uint64_t m,
                   unsigned width);

/* dst becomes the lesser of dst and src, counter by counter. */
void bly_cells_least(unsigned char *dst, const unsigned char *src, uint64_t m,
                     unsigned width);

/* How many of m counters are not zero in a or in b. */
uint64_t bly_cells_used_either(const unsigned char *a, const unsigned char *b,
                               uint64_t m, unsigned width);

/* Counter j of dst becomes the sum of counters j and j + half of src, or the
 * greater of them. */
void bly_cells_fold_sum(unsigned char *dst, const unsigned char *src,
                        uint64_t half, unsigned width);
void bly_cells_fold_most(unsigned char *dst, const unsigned char *src,
                         uint64_t half, unsigned width);

/* Set bit j of words, which are clear, where counter j is not zero. */
void bly_cells_to_bits(const unsigned char *cells, uint64_t m, unsigned width,
                       uint64_t *words);

#endif
