/*
 * lines.h - keys in cache lines: the loops under kinds/blocked.c
 *
 * An array of lines of 512 bits, each cut into k lanes (1, 2, 4, 8 or 16); a
 * key sets one bit in each lane of one line. blocked.c says why, and where the
 * line and the bits come from:
 *
 *     line   = h * nlines / 2^64
 *     g      = h * BLY_LINES_C1, high half folded onto the low half
 *     lane i = w bits of g from bit w i, w = log2(512/k); for k = 16, lanes 8
 *              to 15 take theirs from a g of BLY_LINES_C2, from bit w (i - 8)
 *
 * The portable row defines the result; the others are tested against it.
 */
#ifndef BLY_LINES_H
#define BLY_LINES_H

#include <stdbool.h>

#include "core/bits.h"
#include "core/cpu.h"

#define BLY_LINE_WORDS 8
#define BLY_LINE_BITS 512

/* Two odd multipliers: the fraction of the golden ratio, and of sqrt(3). */
#define BLY_LINES_C1 UINT64_C(0x9e3779b97f4a7c15)
#define BLY_LINES_C2 UINT64_C(0xbb67ae8584caa73b)

typedef struct bly_lines {
    uint64_t *words; /* little-endian, 64-aligned */
    uint64_t nlines;
    unsigned k;
} bly_lines;

typedef struct bly_lines_row {
    const char *name;
    uint32_t needs; /* BLY_CPU_ bits */

    /* maybe[i/64] bit i%64: are all k bits of hash i set? Whole words. */
    void (*has)(const bly_lines *a, const uint64_t *h, size_t n,
                uint64_t *maybe);

    /* Set the bits of n hashes; the number of those that had one clear. fresh,
     * unless NULL, is the bitmap of them. One writer, no readers. */
    uint64_t (*add)(const bly_lines *a, const uint64_t *h, size_t n,
                    uint64_t *fresh);
} bly_lines_row;

/* Best first; the last needs nothing. */
extern const bly_lines_row bly_lines_rows[];

/* The best row for this processor. */
const bly_lines_row *bly_lines_best(void);

/* The portable row: its has may meet writers, its add is for one alone, and
 * there is one for many. */
uint64_t bly_lines_add_portable(const bly_lines *a, const uint64_t *h, size_t n,
                                uint64_t *fresh);
void bly_lines_has_shared(const bly_lines *a, const uint64_t *h, size_t n,
                          uint64_t *maybe);
uint64_t bly_lines_add_shared(const bly_lines *a, const uint64_t *h, size_t n,
                              uint64_t *fresh);

/* ------------------------------------------- what the rows have in common */

/* The line came from the top bits of h, which are therefore the same for all
 * its keys. The product spreads the low bits upwards, the shift brings them
 * back down. */
static inline uint64_t bly_lines_spread(uint64_t h, uint64_t c)
{
    const uint64_t g = h * c;
    return g ^ (g >> 32);
}

static inline uint64_t *bly_lines_at(const bly_lines *a, uint64_t h)
{
    return a->words + bly_scale(h, a->nlines) * BLY_LINE_WORDS;
}

/* Two stages of fetching ahead: into L2 early, for which a processor has many
 * slots, and into L1 shortly before use, for which it has few. */
#define BLY_LINES_FAR 96
#define BLY_LINES_NEAR 10
/* An array that fits the smallest L2 in use gains nothing from it. */
#define BLY_LINES_CACHED (256 << 10)

static inline bool bly_lines_first(const bly_lines *a, const uint64_t *h,
                                   size_t n)
{
    if (a->nlines * (BLY_LINE_BITS / 8) <= BLY_LINES_CACHED)
        return false;
    for (size_t i = 0; i < n && i < BLY_LINES_FAR; i++)
        __builtin_prefetch(bly_lines_at(a, h[i]), 0, 2);
    return true;
}

static inline __attribute__((always_inline)) void
bly_lines_ahead(const bly_lines *a, const uint64_t *h, size_t i, size_t n,
                bool write)
{
    if (i + BLY_LINES_FAR < n)
        __builtin_prefetch(bly_lines_at(a, h[i + BLY_LINES_FAR]), 0, 2);
    if (i + BLY_LINES_NEAR < n) {
        if (write)
            __builtin_prefetch(bly_lines_at(a, h[i + BLY_LINES_NEAR]), 1, 3);
        else
            __builtin_prefetch(bly_lines_at(a, h[i + BLY_LINES_NEAR]), 0, 3);
    }
}

/* Walk n hashes, 64 to a word of results. `one` is an expression in which
 * line and hash are the key's, worth 1 or 0; WORD is a statement on bits, the
 * results, and from, the number of the first key. Both are literal in their
 * row, so that the loop is compiled with the row's instructions. */
#define BLY_LINES_WALK(a, h, n, write, one, WORD)               \
    do {                                                        \
        const bool ahead_ = bly_lines_first(a, h, n);           \
        for (size_t from = 0; from < (n); from += 64) {         \
            const size_t to_ = (n)-from < 64 ? (n) : from + 64; \
            uint64_t bits = 0;                                  \
            for (size_t i_ = from; i_ < to_; i_++) {            \
                if (ahead_)                                     \
                    bly_lines_ahead(a, h, i_, n, write);        \
                const uint64_t hash = (h)[i_];                  \
                uint64_t *const line = bly_lines_at(a, hash);   \
                bits |= (uint64_t)(one) << (i_ - from);         \
            }                                                   \
            WORD;                                               \
        }                                                       \
    } while (0)

#if BLY_X86
/* x86_lines.c */
void bly_lines_has_avx2(const bly_lines *a, const uint64_t *h, size_t n,
                        uint64_t *maybe);
uint64_t bly_lines_add_avx2(const bly_lines *a, const uint64_t *h, size_t n,
                            uint64_t *fresh);
void bly_lines_has_avx512(const bly_lines *a, const uint64_t *h, size_t n,
                          uint64_t *maybe);
uint64_t bly_lines_add_avx512(const bly_lines *a, const uint64_t *h, size_t n,
                              uint64_t *fresh);
#endif

#endif
