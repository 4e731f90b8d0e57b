/*
 * cells.c - arrays of small counters, packed
 *
 * Widths that divide a word are counted a word at a time: the bits of every
 * counter are folded onto its lowest one, by OR to see what is not zero and by
 * AND to see what is all ones. Folding moves bits down only, and the lowest
 * bit of a counter receives its own bits alone.
 */
#include "core/cells.h"

static bly_cells_tally count_words(const uint64_t *words, size_t nwords,
                                   unsigned width)
{
    const uint64_t ones = UINT64_MAX / bly_cell_top(width);
    bly_cells_tally t = { 0, 0 };
    for (size_t i = 0; i < nwords; i++) {
        uint64_t any = bly_le64(words[i]), all = any;
        for (unsigned s = width / 2; s; s /= 2) {
            any |= any >> s;
            all &= all >> s;
        }
        t.used += (uint64_t)__builtin_popcountll(any & ones);
        t.stuck += (uint64_t)__builtin_popcountll(all & ones);
    }
    return t;
}

bly_cells_tally bly_cells_count(const unsigned char *cells, uint64_t m,
                                unsigned width)
{
    const uint32_t top = bly_cell_top(width);
    bly_cells_tally t = { 0, 0 };
    uint64_t j = 0;
    if (64 % width == 0) {
        const uint64_t nwords = m / (64 / width);
        t = count_words((const uint64_t *)(const void *)cells, (size_t)nwords,
                        width);
        j = nwords * (64 / width);
    }
    for (; j < m; j++) {
        const uint32_t c = bly_cell_get(cells, j, width);
        t.used += c != 0;
        t.stuck += c == top;
    }
    return t;
}

bool bly_cells_tail_clear(const unsigned char *cells, uint64_t m,
                          unsigned width)
{
    return bly_bits_tail_clear((const uint64_t *)(const void *)cells, m * width,
                               (size_t)(bly_cells_nbytes(m, width) / 8));
}

static inline __attribute__((always_inline)) void
add_cells(unsigned char *dst, const unsigned char *src, uint64_t m,
          unsigned width)
{
    const uint32_t top = bly_cell_top(width);
    for (uint64_t j = 0; j < m; j++)
        bly_cell_put(dst, j, width,
                     bly_cell_sum(bly_cell_get(dst, j, width),
                                  bly_cell_get(src, j, width), top));
}

void bly_cells_add(unsigned char *dst, const unsigned char *src, uint64_t m,
                   unsigned width)
{
    if (width == 4)
        add_cells(dst, src, m, 4);
    else if (width == 8)
        add_cells(dst, src, m, 8);
    else
        add_cells(dst, src, m, width);
}

void bly_cells_least(unsigned char *dst, const unsigned char *src, uint64_t m,
                     unsigned width)
{
    for (uint64_t j = 0; j < m; j++) {
        const uint32_t a = bly_cell_get(dst, j, width);
        const uint32_t b = bly_cell_get(src, j, width);
        bly_cell_put(dst, j, width, a < b ? a : b);
    }
}

/* Bytes that are combined at a time: whole counters of every width, and one
 * more, which is read with the last of them. */
#define CELLS_PIECE (24 * BLY_CELLS_UNIT)

uint64_t bly_cells_used_either(const unsigned char *a, const unsigned char *b,
                               uint64_t m, unsigned width)
{
    _Alignas(8) unsigned char piece[CELLS_PIECE + 1] = { 0 };
    const uint64_t step = CELLS_PIECE * 8 / width;
    uint64_t used = 0;
    for (uint64_t from = 0; from < m; from += step) {
        const uint64_t n = m - from < step ? m - from : step;
        const uint64_t at = from * width / 8;
        for (uint64_t i = 0; i < (n * width + 7) / 8; i++)
            piece[i] = a[at + i] | b[at + i];
        used += bly_cells_count(piece, n, width).used;
    }
    return used;
}

void bly_cells_fold_sum(unsigned char *dst, const unsigned char *src,
                        uint64_t half, unsigned width)
{
    const uint32_t top = bly_cell_top(width);
    for (uint64_t j = 0; j < half; j++)
        bly_cell_put(dst, j, width,
                     bly_cell_sum(bly_cell_get(src, j, width),
                                  bly_cell_get(src, j + half, width), top));
}

void bly_cells_fold_most(unsigned char *dst, const unsigned char *src,
                         uint64_t half, unsigned width)
{
    for (uint64_t j = 0; j < half; j++) {
        const uint32_t a = bly_cell_get(src, j, width);
        const uint32_t b = bly_cell_get(src, j + half, width);
        bly_cell_put(dst, j, width, a > b ? a : b);
    }
}

void bly_cells_to_bits(const unsigned char *cells, uint64_t m, unsigned width,
                       uint64_t *words)
{
    for (uint64_t from = 0; from < m; from += 64) {
        const uint64_t to = m - from < 64 ? m : from + 64;
        uint64_t bits = 0;
        for (uint64_t j = from; j < to; j++)
            bits |= (uint64_t)(bly_cell_get(cells, j, width) != 0)
                    << (j - from);
        words[from / 64] = bly_le64(bits);
    }
}
