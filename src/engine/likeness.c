/*
 * likeness.c - the loops under shingles and sketches: portable, and the choice
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdatomic.h>

#include "engine/likeness.h"

static inline unsigned char fold_byte(unsigned char c)
{
    if (c >= 'A' && c <= 'Z')
        return (unsigned char)(c + 32);
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c >= 0x80 ? c
                                                                         : 0;
}

static void words_portable(const unsigned char *text, size_t nblocks,
                           unsigned char *folded, uint64_t *masks)
{
    for (size_t i = 0; i < nblocks; i++) {
        uint64_t mask = 0;
        for (unsigned j = 0; j < BLY_TEXT_BLOCK; j++) {
            const unsigned char c = fold_byte(text[i * BLY_TEXT_BLOCK + j]);
            folded[i * BLY_TEXT_BLOCK + j] = c;
            mask |= (uint64_t)(c != 0) << j;
        }
        masks[i] = mask;
    }
}

uint64_t bly_word_hash(const unsigned char *word, size_t n, uint64_t seed)
{
    return XXH3_64bits_withSeed(word, n, seed);
}

static void hashes_portable(const unsigned char *folded, const uint16_t *edges,
                            size_t n, uint64_t seed, uint64_t *hashes)
{
    for (size_t i = 0; i < n; i++)
        hashes[i] = XXH3_64bits_withSeed(
            folded + edges[2 * i], (size_t)(edges[2 * i + 1] - edges[2 * i]),
            seed);
}

static void bins_portable(uint64_t *bins, unsigned t, const uint64_t *x,
                          size_t n, unsigned round)
{
    for (size_t i = 0; i < n; i++) {
        const uint64_t g = bly_bins_hash(x[i], round);
        const uint64_t value = bly_bins_value(g, round);
        uint64_t *const at = &bins[(g >> 32) * t >> 32];
        *at = value < *at ? value : *at;
    }
}

static void minima_portable(uint32_t *minima, const uint32_t *a,
                            const uint32_t *b, size_t nlanes, const uint64_t *x,
                            size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t high = (uint32_t)(x[i] >> 32);
        for (size_t lane = 0; lane < nlanes; lane++) {
            const uint32_t image = a[lane] * high + b[lane];
            minima[lane] = image < minima[lane] ? image : minima[lane];
        }
    }
}

const bly_likeness_row bly_likeness_rows[] = {
#if BLY_X86
    { "avx512", BLY_CPU_AVX512, bly_words_avx512, bly_hashes_avx512,
      bly_bins_avx512, bly_minima_avx512 },
    { "avx2", BLY_CPU_AVX2, bly_words_avx2, hashes_portable, bins_portable,
      bly_minima_avx2 },
#endif
    { "portable", 0, words_portable, hashes_portable, bins_portable,
      minima_portable },
};

BLY_CHOOSE(likeness)
