/*
 * scan_front.c - 64 windows of a text and the filter of a group
 *
 * A window of up to 8 bytes is one or two words of 32 bits, which may overlap;
 * their hash chooses a word of the filter and two bits in it. The vector form
 * makes the hashes of eight windows at once and gathers eight words; it takes
 * half of the time of the portable one where each position is looked at.
 */
#include "apps/traffic/scan.h"
#include "io/byte_order.h"

uint64_t scan_front_portable(const struct scan_group *g,
                             const unsigned char *at)
{
    uint64_t set = 0;
    for (unsigned i = 0; i < 64; i++)
        set |= (uint64_t)scan_filter_has(g, at + i * (size_t)g->step) << i;
    return set;
}

#if defined(__x86_64__)
#include <immintrin.h>

/* Words of eight windows that are at most 4 bytes apart: four of them are in
 * 16 bytes. */
__attribute__((target("avx2"), always_inline)) static inline __m256i
words_near(const unsigned char *at, size_t step, __m256i spread)
{
    const __m128i low = _mm_loadu_si128((const __m128i *)at);
    const __m128i high = _mm_loadu_si128((const __m128i *)(at + 4 * step));
    return _mm256_shuffle_epi8(
        _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1), spread);
}

__attribute__((target("avx2"))) static uint64_t
front_avx2(const struct scan_group *g, const unsigned char *at)
{
    const size_t step = g->step;
    if (step > 4)
        return scan_front_portable(g, at);
    const __m256i spread = _mm256_loadu_si256((const __m256i *)g->order);
    const __m256i mask = _mm256_set1_epi32((int)g->word_mask);
    const __m256i fold = _mm256_set1_epi32((int)g->fold);
    const __m256i k0 = _mm256_set1_epi32((int)g->k[0]);
    const __m256i k1 = _mm256_set1_epi32((int)g->k[1]);
    const __m256i k2 = _mm256_set1_epi32((int)g->k[2]);
    const __m128i shift = _mm_cvtsi32_si128((int)g->shift);
    const __m256i ones = _mm256_set1_epi32(1), low = _mm256_set1_epi32(31);
    uint64_t set = 0;
    for (unsigned i = 0; i < 64; i += 8, at += 8 * step) {
        __m256i w = _mm256_and_si256(words_near(at, step, spread), mask);
        __m256i h = _mm256_mullo_epi32(_mm256_or_si256(w, fold), k0);
        if (g->second) {
            w = words_near(at + g->second, step, spread);
            h = _mm256_add_epi32(
                h, _mm256_mullo_epi32(_mm256_or_si256(w, fold), k1));
        }
        h = _mm256_xor_si256(h, _mm256_srli_epi32(h, 16));
        h = _mm256_mullo_epi32(h, k2);
        const __m256i word = _mm256_i32gather_epi32(
            (const int *)g->bits, _mm256_srl_epi32(h, shift), 4);
        const __m256i a = _mm256_sllv_epi32(ones, _mm256_and_si256(h, low));
        const __m256i b = _mm256_sllv_epi32(
            ones, _mm256_and_si256(_mm256_srli_epi32(h, 5), low));
        const __m256i both = _mm256_or_si256(a, b);
        const __m256i has =
            _mm256_cmpeq_epi32(_mm256_and_si256(word, both), both);
        const unsigned eight =
            (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(has));
        set |= (uint64_t)eight << i;
    }
    return set;
}
#endif

scan_front *scan_front_best(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        return front_avx2;
#endif
    return scan_front_portable;
}
