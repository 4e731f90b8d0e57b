/*
 * wasm_lines.c - keys in cache lines, for WebAssembly
 *
 * WebAssembly has no instruction to prefetch memory, so the walk of
 * lines_walk.h would gain nothing by its ring. Keys are looked up one after
 * another, and the processor overlaps what it can. That also takes only a
 * fifteenth of the code, where every byte is sent to a browser.
 *
 * A shift takes its count modulo 64 there, as C does not promise: for k = 8,
 * bit g >> 6 j of word j is word j >> (g >> 6 j), and the compiler drops the
 * mask that is written here.
 */
#include "engine/lines.h"

#if BLY_WASM

#define WASM_INLINE static inline __attribute__((always_inline))

/* Are the eight bits of a key set? Then 1. */
WASM_INLINE uint64_t eight_set(const uint64_t *line, uint64_t g)
{
    uint64_t all = 1;
#pragma GCC unroll 8
    for (unsigned j = 0; j < BLY_LINE_WORDS; j++)
        all &= line[j] >> (g >> (6 * j) & 63);
    return all;
}

/* The bits of a key in word j, from the g that is the word's. */
static uint64_t word_mask(unsigned k, uint64_t g, unsigned j)
{
    const bly_lines_places *const place = bly_lines_places_of(k);
    const uint64_t x = g >> place->by[j];
    if (k == 16)
        return UINT64_C(1) << (x & 31) | UINT64_C(1) << (32 + (x >> 5 & 31));
    const uint64_t word = x & (BLY_LINE_BITS / k - 64); /* of the lane */
    return (uint64_t)(word == place->first[j]) << (x & 63);
}

static uint64_t probe(uint64_t *line, uint64_t h, unsigned k, bool add)
{
    uint64_t g = bly_lines_spread(h, BLY_LINES_C1), missing = 0;
    for (unsigned j = 0; j < BLY_LINE_WORDS; j++) {
        if (k == 16 && j == BLY_LINE_WORDS / 2)
            g = bly_lines_spread(h, BLY_LINES_C2);
        const uint64_t set = word_mask(k, g, j);
        missing |= set & ~line[j];
        if (add)
            line[j] |= set;
    }
    return missing == 0;
}

/* bly_scale() for a number below 2^32, as the number of lines is in 4 GiB. It
 * takes two multiplications; in general WebAssembly would need four, and a
 * call. */
WASM_INLINE uint64_t *line_of(uint64_t *words, uint64_t nlines, uint64_t h)
{
    const uint64_t low = (h & UINT32_MAX) * nlines >> 32;
    return words + (((h >> 32) * nlines + low) >> 32) * BLY_LINE_WORDS;
}

/* The answers for keys i to i + m - 1, m at most 64. First they are hashed, and
 * a word of each line is read. That takes so few instructions per key that many
 * lines are under way at once. */
WASM_INLINE uint64_t eights(const bly_lines *a, const bly_lines_keys *in,
                            size_t i, size_t m, bly_lines_of of)
{
    const bly_lines_keys keys = { in->at, in->n, of, in->flip };
    const uint64_t *line[64];
    uint64_t g[64], word = 0;
    for (size_t t = 0; t < m; t++) {
        const uint64_t h = bly_lines_hash(&keys, i + t);
        line[t] = line_of(a->words, a->nlines, h);
        g[t] = bly_lines_spread(h, BLY_LINES_C1);
        (void)*(const volatile uint64_t *)line[t];
    }
    for (size_t t = 0; t < m; t++)
        word |= eight_set(line[t], g[t]) << t;
    return word;
}

void bly_lines_has_wasm(const bly_lines *a, const bly_lines_keys *in,
                        uint64_t *maybe)
{
    const bly_lines lines = *a;
    for (size_t i = 0; i < in->n; i += 64) {
        const size_t m = in->n - i < 64 ? in->n - i : 64;
        uint64_t word = 0;
        if (lines.k == 8)
            word = in->of == BLY_LINES_FOLDED
                       ? eights(&lines, in, i, m, BLY_LINES_FOLDED)
                   : in->of == BLY_LINES_INTS
                       ? eights(&lines, in, i, m, BLY_LINES_INTS)
                       : eights(&lines, in, i, m, BLY_LINES_HASHES);
        else
            for (size_t t = 0; t < m; t++) {
                const uint64_t h = bly_lines_hash(in, i + t);
                word |= probe(line_of(lines.words, lines.nlines, h), h, lines.k,
                              false)
                        << t;
            }
        maybe[i / 64] = word;
    }
}

uint64_t bly_lines_add_wasm(const bly_lines *a, const bly_lines_keys *in,
                            uint64_t *fresh)
{
    uint64_t nclear = 0;
    for (size_t i = 0; i < in->n; i += 64) {
        const size_t m = in->n - i < 64 ? in->n - i : 64;
        uint64_t word = 0;
        for (size_t t = 0; t < m; t++) {
            const uint64_t h = bly_lines_hash(in, i + t);
            word |= (probe(line_of(a->words, a->nlines, h), h, a->k, true) ^ 1)
                    << t;
        }
        nclear += (uint64_t)__builtin_popcountll(word);
        if (fresh)
            fresh[i / 64] = word;
    }
    return nclear;
}

bool bly_lines_has_one_wasm(uint64_t *words, uint64_t nlines, unsigned k,
                            uint64_t h)
{
    uint64_t *const line = line_of(words, nlines, h);
    return k == 8 ? eight_set(line, bly_lines_spread(h, BLY_LINES_C1))
                  : probe(line, h, k, false);
}

bool bly_lines_add_one_wasm(uint64_t *words, uint64_t nlines, unsigned k,
                            uint64_t h)
{
    return !probe(line_of(words, nlines, h), h, k, true);
}

#endif
