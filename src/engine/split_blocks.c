/*
 * split_blocks.c - blocks with a bit of each key in every word
 */
#include "engine/split_blocks.h"

const uint32_t bly_blocks_salts[BLY_BLOCKS_K] = {
    0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d,
    0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31,
};

static void blocks_add_portable(unsigned char *blocks, uint64_t nblocks,
                                const uint64_t *hashes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char *const block =
            blocks + bly_blocks_of(hashes[i], nblocks) * BLY_BLOCKS_BYTES;
        const uint32_t x = (uint32_t)hashes[i];
        for (unsigned j = 0; j < BLY_BLOCKS_K; j++) {
            const uint32_t bit = (uint32_t)(x * bly_blocks_salts[j]) >> 27;
            block[4 * j + bit / 8] |= (unsigned char)(1u << bit % 8);
        }
    }
}

#if BLY_X86
#include <immintrin.h>

/* A block is one vector: eight products, eight shifts, one OR. */
__attribute__((target("avx2"))) static void
blocks_add_avx2(unsigned char *blocks, uint64_t nblocks, const uint64_t *hashes,
                size_t n)
{
    const __m256i salts = _mm256_loadu_si256((const __m256i *)bly_blocks_salts);
    const __m256i one = _mm256_set1_epi32(1);
    for (size_t i = 0; i < n; i++) {
        const uint64_t h = hashes[i];
        __m256i *const block =
            (__m256i *)(void *)(blocks +
                                bly_blocks_of(h, nblocks) * BLY_BLOCKS_BYTES);
        const __m256i x = _mm256_set1_epi32((int)(uint32_t)h);
        const __m256i bits =
            _mm256_srli_epi32(_mm256_mullo_epi32(x, salts), 27);
        const __m256i mask = _mm256_sllv_epi32(one, bits);
        _mm256_storeu_si256(block,
                            _mm256_or_si256(_mm256_loadu_si256(block), mask));
    }
}
#endif

const bly_blocks_row bly_blocks_rows[] = {
#if BLY_X86
    { "avx2", BLY_CPU_AVX2, blocks_add_avx2 },
#endif
    { "portable", 0, blocks_add_portable },
};

BLY_CHOOSE(blocks)
