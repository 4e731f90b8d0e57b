/*
 * lines.h - keys in cache lines: the loops under kinds/blocked.c
 *
 * An array of lines of 512 bits, each cut into k lanes (1, 2, 4, 8 or 16); a
 * key sets one bit in each lane of one line. blocked.c gives the reasons. The
 * line and the bits come from the hash h of the key:
 *
 *     line   = h * nlines / 2^64
 *     g      = h * BLY_LINES_C1, high half folded onto the low half
 *     lane i = w bits of g from bit w i, w = log2(512/k); for k = 16, lanes 8
 *              to 15 take theirs from a g of BLY_LINES_C2, from bit w (i - 8)
 *
 * A walk over n keys works at three places of the stream, in groups of eight:
 *
 *     keys   | done ... | probe | fetch into L1 | ... | hash, fetch into L2 |
 *                         g       g + 1                 g + FAR
 *
 * or at only two if L2 holds the array, the second at g + NEAR.
 *
 * The line of a key and its g are computed once, at the far place, and wait in
 * a ring for the other two. lines_walk.h is the walk; a row gives it the
 * instructions of one processor. The portable row defines the result;
 * the others are tested against it.
 */
#ifndef BLY_LINES_H
#define BLY_LINES_H

#include <stdbool.h>

#include "core/bits.h"
#include "core/hash.h"
#include "core/unroll.h"
#include "engine/rows.h"

#define BLY_LINE_WORDS 8
#define BLY_LINE_BITS 512

typedef struct bly_lines {
    uint64_t *words; /* little-endian, 64-aligned */
    uint64_t nlines;
    unsigned k;
} bly_lines;

/* A stream of hashes; or of integers, which bly_int_hash() or bly_int_folded()
 * hashes with flip. */
typedef enum bly_lines_of {
    BLY_LINES_HASHES,
    BLY_LINES_INTS,
    BLY_LINES_FOLDED
} bly_lines_of;

typedef struct bly_lines_keys {
    const uint64_t *at;
    size_t n;
    bly_lines_of of;
    uint64_t flip;
} bly_lines_keys;

static inline __attribute__((always_inline)) uint64_t
bly_lines_hash(const bly_lines_keys *in, size_t i)
{
    return in->of == BLY_LINES_HASHES ? in->at[i]
           : in->of == BLY_LINES_INTS ? bly_int_hash(in->at[i], in->flip)
                                      : bly_int_folded(in->at[i], in->flip);
}

/* Bit i%64 of maybe[i/64]: are all k bits of key i set? Whole words are
 * written. */
typedef void bly_lines_has_fn(const bly_lines *a, const bly_lines_keys *in,
                              uint64_t *maybe);

/* Set the bits of all keys, and return how many keys had a bit clear. fresh,
 * unless NULL, is the bitmap of those. */
typedef uint64_t bly_lines_add_fn(const bly_lines *a, const bly_lines_keys *in,
                                  uint64_t *fresh);

/* The same for one hash: are its bits set? Or: set them; was one clear? */
typedef bool bly_lines_one_fn(uint64_t *words, uint64_t nlines, unsigned k,
                              uint64_t h);

typedef struct bly_lines_row {
    BLY_ROW_HEAD;
    bly_lines_has_fn *has;
    bly_lines_add_fn *add; /* one writer, no readers */
    bly_lines_one_fn *has_one, *add_one;
    const struct bly_lines_row *shared; /* the same for many writers and
                                           readers at once: bits are set word by
                                           word, atomically */
} bly_lines_row;

BLY_ROWS(lines);

/* ------------------------------------------- what the rows have in common */

#define BLY_LINES_GROUP 8
#define BLY_LINES_FAR 16 /* groups ahead, into L2: it has many slots */
#define BLY_LINES_NEAR 7 /* groups ahead, into L1, where L2 has the array */
#define BLY_LINES_RING (2 * BLY_LINES_FAR * BLY_LINES_GROUP)

/* Keys that wait for their turn: key i of the stream is at i % BLY_LINES_RING.
 * Twice as long as the far distance, so that one half can be filled while the
 * other is probed. line is an address, in 64 bits on every machine. */
typedef struct bly_lines_ring {
    _Alignas(64) uint64_t line[BLY_LINES_RING];
    uint64_t g[BLY_LINES_RING];
    uint64_t g2[BLY_LINES_RING]; /* k = 16 */
} bly_lines_ring;

/* Put m <= BLY_LINES_GROUP keys, from number i on, into the ring. The line
 * comes from the top bits of h, so these are the same for all keys of a line.
 * The multiplication in bly_lines_spread() carries the low bits upwards, and
 * its shift brings them back down. */
static inline __attribute__((always_inline)) void
bly_lines_aim(const bly_lines *a, const bly_lines_keys *in, size_t i, size_t m,
              bly_lines_ring *r)
{
    const size_t slot = i % BLY_LINES_RING;
    /* Local copies: otherwise the compiler must assume that every store to the
     * ring may change *a and *in. */
    const bly_lines lines = *a;
    const bly_lines_keys keys = *in;
#pragma GCC unroll 1
    for (size_t t = 0; t < m; t++) {
        const uint64_t h = bly_lines_hash(&keys, i + t);
        r->line[slot + t] =
            (uintptr_t)(lines.words +
                        bly_scale(h, lines.nlines) * BLY_LINE_WORDS);
        r->g[slot + t] = bly_lines_spread(h, BLY_LINES_C1);
        if (lines.k == 16)
            r->g2[slot + t] = bly_lines_spread(h, BLY_LINES_C2);
    }
    for (size_t t = m; t < BLY_LINES_GROUP; t++)
        r->line[slot + t] = r->line[slot]; /* groups are fetched whole */
}

/* For vectors, indexed by log2(k): word j of a line belongs to a lane. by: how
 * far g is shifted right to bring that lane's bits to the bottom; first: the
 * number of the word's first bit within the lane. For k = 16, where a word has
 * two lanes, by is that of the lower one. */
typedef struct bly_lines_places {
    _Alignas(64) uint64_t by[BLY_LINE_WORDS], first[BLY_LINE_WORDS];
} bly_lines_places;

static const bly_lines_places bly_lines_place[] = {
    { { 0 }, { 0, 64, 128, 192, 256, 320, 384, 448 } },
    { { 0, 0, 0, 0, 8, 8, 8, 8 }, { 0, 64, 128, 192, 0, 64, 128, 192 } },
    { { 0, 0, 7, 7, 14, 14, 21, 21 }, { 0, 64, 0, 64, 0, 64, 0, 64 } },
    { { 0, 6, 12, 18, 24, 30, 36, 42 }, { 0 } },
    { { 0, 10, 20, 30, 0, 10, 20, 30 }, { 0 } },
};

static inline __attribute__((always_inline)) const bly_lines_places *
bly_lines_places_of(unsigned k)
{
    return &bly_lines_place[k == 16  ? 4
                            : k == 8 ? 3
                            : k == 4 ? 2
                            : k == 2 ? 1
                                     : 0];
}

/* Answers, 64 to a word. */
typedef struct bly_lines_answers {
    uint64_t *to; /* NULL: they are only counted */
    uint64_t word, nclear;
} bly_lines_answers;

static inline __attribute__((always_inline)) void
bly_lines_answer(bly_lines_answers *a, bool add)
{
    if (add)
        a->nclear += (uint64_t)__builtin_popcountll(a->word);
    if (a->to)
        *a->to++ = a->word;
    a->word = 0;
}

/* Should a walk fetch in two stages? One stage is enough if at least half of
 * the array fits into L2, but it must be early enough for the lines that are in
 * L3 after all. One is also enough for a call with so few keys that the far
 * place is never reached. */
#define BLY_LINES_CACHED (2 << 20)
#define BLY_LINES_FEW 32
#define BLY_LINES_HANDFUL 16 /* up to so many keys, nothing is prefetched */

static inline bool bly_lines_far(const bly_lines *a, size_t n)
{
    return n >= BLY_LINES_FEW &&
           a->nlines > BLY_LINES_CACHED / (BLY_LINE_BITS / 8);
}

/* Are these keys too few to fetch anything ahead? In L2 that is so for up to a
 * word of answers; elsewhere for about as many as the processor overlaps by
 * itself. (Some rows cannot handle more than 2^32 lines.) */
static inline bool bly_lines_few(const bly_lines *a, size_t n)
{
    return a->k == 8 && n &&
           (n <= BLY_LINES_HANDFUL || (n <= 64 && !bly_lines_far(a, 64))) &&
           a->nlines <= UINT32_MAX;
}

/* Is the array larger than the share of L3 that one processor can count on? */
#define BLY_LINES_BEYOND (32 << 20)

static inline bool bly_lines_beyond(const bly_lines *a)
{
    return a->nlines > BLY_LINES_BEYOND / (BLY_LINE_BITS / 8);
}

bly_lines_has_fn bly_lines_has_portable, bly_lines_has_shared;
bly_lines_add_fn bly_lines_add_portable, bly_lines_add_shared;
bly_lines_one_fn bly_lines_has_one_portable, bly_lines_has_one_shared;
bly_lines_one_fn bly_lines_add_one_portable, bly_lines_add_one_shared;
#if BLY_X86
/* x86_lines.c */
bly_lines_has_fn bly_lines_has_avx2, bly_lines_has_avx512;
bly_lines_add_fn bly_lines_add_avx2, bly_lines_add_avx512;
bly_lines_one_fn bly_lines_has_one_avx2, bly_lines_has_one_avx512;
bly_lines_one_fn bly_lines_add_one_avx2, bly_lines_add_one_avx512;
bly_lines_has_fn bly_lines_has_shared_avx512;
bly_lines_add_fn bly_lines_add_shared_avx512;
bly_lines_one_fn bly_lines_has_one_shared_avx512;
bly_lines_one_fn bly_lines_add_one_shared_avx512;
#elif BLY_ARM64
/* arm_lines.c */
bly_lines_has_fn bly_lines_has_neon;
bly_lines_add_fn bly_lines_add_neon;
bly_lines_one_fn bly_lines_has_one_neon, bly_lines_add_one_neon;
#elif BLY_WASM
/* wasm_lines.c */
bly_lines_has_fn bly_lines_has_wasm;
bly_lines_add_fn bly_lines_add_wasm;
bly_lines_one_fn bly_lines_has_one_wasm, bly_lines_add_one_wasm;
#endif

#endif
