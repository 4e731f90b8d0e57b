/*
 * x86_split_blocks.c - setting the eight bits of a value at once, with AVX2
 *
 * A block is one vector: eight products, eight shifts, one OR.
 */
#include "engine/split_blocks.h"

#if BLY_X86
#include <immintrin.h>

__attribute__((target("avx2"))) void bly_blocks_add_avx2(unsigned char *blocks,
                                                         uint64_t nblocks,
                                                         const uint64_t *hashes,
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
