/*
 * likeness.h - the loops under shingles and sketches
 *
 * Finding words in text and taking minima of many hashes, with a row for each
 * processor. sketch/shingles.c and sketch/minhash.c say what they are for. The
 * portable row defines the result; the others are tested against it.
 */
#ifndef BLY_LIKENESS_H
#define BLY_LIKENESS_H

#include "core/bits.h"
#include "engine/rows.h"

#define BLY_TEXT_BLOCK 64 /* bytes of text at a time: a mask of 64 bits */
#define BLY_WORD_SLACK 8
#define BLY_MINIMA_LANES 16

/* The finaliser of MurmurHash3, a bijection: what shingles and components are
 * made with, here and in files. */
#define BLY_SHINGLE_M1 UINT64_C(0xff51afd7ed558ccd)
#define BLY_SHINGLE_M2 UINT64_C(0xc4ceb9fe1a85ec53)
static inline uint64_t bly_shingle_mix(uint64_t x)
{
    x ^= x >> 33;
    x *= BLY_SHINGLE_M1;
    x ^= x >> 33;
    x *= BLY_SHINGLE_M2;
    return x ^ (x >> 33);
}

/* The fraction of the golden ratio: the step from round to round, and the
 * multiplier that turns a hash, whose top bits chose the bin, into a value. */
#define BLY_BINS_STEP UINT64_C(0x9e3779b97f4a7c15)
#define BLY_BINS_ROUND 54 /* the round stands above this bit of a value */

static inline uint64_t bly_bins_hash(uint64_t x, unsigned round)
{
    return bly_shingle_mix(x + (round + UINT64_C(1)) * BLY_BINS_STEP);
}

static inline uint64_t bly_bins_value(uint64_t g, unsigned round)
{
    return ((uint64_t)round << BLY_BINS_ROUND) +
           (g * BLY_BINS_STEP >> (64 - BLY_BINS_ROUND));
}

typedef struct bly_likeness_row {
    BLY_ROW_HEAD;

    /* nblocks blocks of text with upper case folded and separators as zeros;
     * bit j of masks[i] says whether byte j of block i belongs to a word. */
    void (*words)(const unsigned char *text, size_t nblocks,
                  unsigned char *folded, uint64_t *masks);

    /* XXH3 of n words of folded text: word i is the bytes from edges[2 i] to
     * edges[2 i + 1] - 1, one at least. BLY_WORD_SLACK bytes behind a word may
     * be read. */
    void (*hashes)(const unsigned char *folded, const uint16_t *edges, size_t n,
                   uint64_t seed, uint64_t *hashes);

    /* A round of bins: with g the hash of x for this round, bin t g / 2^64
     * (of the high half of g) keeps the least value. t < 2^31. */
    void (*bins)(uint64_t *bins, unsigned t, const uint64_t *x, size_t n,
                 unsigned round);

    /* minima[i] becomes the least of itself and a[i] (x >> 32) + b[i] over all
     * x, mod 2^32; nlanes is a multiple of BLY_MINIMA_LANES. */
    void (*minima)(uint32_t *minima, const uint32_t *a, const uint32_t *b,
                   size_t nlanes, const uint64_t *x, size_t n);
} bly_likeness_row;

BLY_ROWS(likeness);

#if BLY_X86
void bly_words_avx2(const unsigned char *text, size_t nblocks,
                    unsigned char *folded, uint64_t *masks);
void bly_words_avx512(const unsigned char *text, size_t nblocks,
                      unsigned char *folded, uint64_t *masks);
void bly_hashes_avx512(const unsigned char *folded, const uint16_t *edges,
                       size_t n, uint64_t seed, uint64_t *hashes);
void bly_bins_avx512(uint64_t *bins, unsigned t, const uint64_t *x, size_t n,
                     unsigned round);
void bly_minima_avx2(uint32_t *minima, const uint32_t *a, const uint32_t *b,
                     size_t nlanes, const uint64_t *x, size_t n);
void bly_minima_avx512(uint32_t *minima, const uint32_t *a, const uint32_t *b,
                       size_t nlanes, const uint64_t *x, size_t n);
#endif

/* XXH3 of one word. */
uint64_t bly_word_hash(const unsigned char *word, size_t n, uint64_t seed);

#endif
