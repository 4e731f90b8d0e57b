/*
 * x86_ribbon.c - parities of four planes at once, with AVX2
 *
 * The parity of a word: fold each byte's halves onto each other, look up the
 * parity of four bits, and let the sum of absolute differences from 0 add up
 * the eight bytes; its lowest bit is the parity.
 */
#include "core/ribbon_table.h"

#if BLY_X86
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,bmi2,popcnt")))

/* In each of four words, bit 0 is the parity of v's. */
static inline AVX2 __attribute__((always_inline)) __m256i parity_avx2(__m256i v)
{
    const __m256i parity = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0, 1, 1, 0));
    v = _mm256_xor_si256(v, _mm256_srli_epi64(v, 4));
    v = _mm256_and_si256(v, _mm256_set1_epi8(15));
    return _mm256_sad_epu8(_mm256_shuffle_epi8(parity, v),
                           _mm256_setzero_si256());
}

static inline AVX2 __attribute__((always_inline)) uint64_t
four_avx2(const uint64_t *x, const uint64_t *y, uint64_t here, uint64_t there)
{
    const __m256i a =
        _mm256_and_si256(_mm256_loadu_si256((const __m256i *)(const void *)x),
                         _mm256_set1_epi64x((long long)here));
    const __m256i b =
        _mm256_and_si256(_mm256_loadu_si256((const __m256i *)(const void *)y),
                         _mm256_set1_epi64x((long long)there));
    const __m256i bits =
        _mm256_slli_epi64(parity_avx2(_mm256_xor_si256(a, b)), 63);
    return (uint64_t)_mm256_movemask_pd(_mm256_castsi256_pd(bits));
}

AVX2 void bly_ribbon_ask_avx2(const bly_ribbon_layer *l,
                              const unsigned char *data, const uint64_t *h,
                              size_t n, bly_ribbon_keys *rest, uint64_t *maybe,
                              bool first, bool ahead)
{
    bly_ribbon_ask_with(l, data, h, n, rest, maybe, first, ahead, four_avx2);
}

/* As the portable one; a group of four planes is a vector. */
static inline AVX2 __attribute__((always_inline)) void
substitute_groups(const bly_ribbon_layer *l, const uint64_t *rows,
                  const uint64_t *prints, uint64_t *words, unsigned ngroups)
{
    const __m256i steps = _mm256_setr_epi64x(0, 1, 2, 3);
    const __m256i one = _mm256_set1_epi64x(1);
    __m256i planes[BLY_RIBBON_MAX_WIDTH / 4];
    for (unsigned g = 0; g < ngroups; g++)
        planes[g] = _mm256_setzero_si256();
    for (size_t block = l->nslots / 64; block-- > 0;) {
        for (size_t i = block * 64 + 64; i-- > block * 64;) {
            const __m256i row = _mm256_set1_epi64x((long long)(rows[i] >> 1));
            for (unsigned g = 0; g < ngroups; g++) {
                const __m256i print = _mm256_srlv_epi64(
                    _mm256_set1_epi64x((long long)(prints[i] >> 4 * g)), steps);
                const __m256i bits = _mm256_xor_si256(
                    parity_avx2(_mm256_and_si256(planes[g], row)), print);
                planes[g] =
                    _mm256_or_si256(_mm256_add_epi64(planes[g], planes[g]),
                                    _mm256_and_si256(bits, one));
            }
        }
        uint64_t all[BLY_RIBBON_MAX_WIDTH];
        uint64_t *const to = words + bly_ribbon_block(l, block);
        const unsigned n = l->width + (block >= l->wide);
        for (unsigned g = 0; g < ngroups; g++)
            _mm256_storeu_si256((__m256i *)(void *)&all[4 * g], planes[g]);
        for (unsigned i = 0; i < n; i++)
            to[i] = all[i];
    }
}

AVX2 void bly_ribbon_substitute_avx2(const bly_ribbon_layer *l,
                                     const uint64_t *rows,
                                     const uint64_t *prints, uint64_t *words)
{
    const unsigned ngroups = (l->nplanes + 3) / 4;
    if (ngroups == 2)
        substitute_groups(l, rows, prints, words, 2);
    else if (ngroups == 3)
        substitute_groups(l, rows, prints, words, 3);
    else
        substitute_groups(l, rows, prints, words, ngroups);
}

#else
typedef int bly_x86_ribbon_is_empty; /* C has no empty file */
#endif
