/*
 * scan_front.c - windows of a text and the classes of a group
 *
 * A table of 256 bytes is four registers of AVX-512, so 64 bytes of a text are
 * looked up at once. With AVX2 the halves of a byte are looked up in 16 bytes
 * each, which lets more pass.
 */
#include "apps/traffic/scan.h"

static size_t front_portable(const struct scan_group *g,
                             const unsigned char *at, size_t n, uint16_t *out)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        out[found] = (uint16_t)i;
        found += scan_classes_have(g, at + i);
    }
    return found;
}

static bool always_here(void)
{
    return true;
}

#if defined(__x86_64__)
#include <immintrin.h>

static bool avx2_here(void)
{
    return __builtin_cpu_supports("avx2");
}

__attribute__((target("avx2"), always_inline)) static inline __m256i
classes_avx2(const struct scan_group *g, const unsigned char *at, unsigned j)
{
    const __m256i low = _mm256_set1_epi8(15);
    const __m256i x = _mm256_loadu_si256((const __m256i *)(at + j));
    const __m256i lower = _mm256_broadcastsi128_si256(
        _mm_loadu_si128((const __m128i *)g->halves[j][0]));
    const __m256i upper = _mm256_broadcastsi128_si256(
        _mm_loadu_si128((const __m128i *)g->halves[j][1]));
    return _mm256_and_si256(
        _mm256_shuffle_epi8(lower, _mm256_and_si256(x, low)),
        _mm256_shuffle_epi8(upper,
                            _mm256_and_si256(_mm256_srli_epi16(x, 4), low)));
}

__attribute__((target("avx2"))) static size_t
front_avx2(const struct scan_group *g, const unsigned char *at, size_t n,
           uint16_t *out)
{
    size_t found = 0;
    at += g->window - g->tested;
    for (size_t i = 0; i < n; i += 32) {
        __m256i both = classes_avx2(g, at + i, 0);
        for (unsigned j = 1; j < g->tested; j++)
            both = _mm256_and_si256(both, classes_avx2(g, at + i, j));
        uint32_t set = ~(uint32_t)_mm256_movemask_epi8(
            _mm256_cmpeq_epi8(both, _mm256_setzero_si256()));
        if (n - i < 32)
            set &= (UINT32_C(1) << (n - i)) - 1;
        for (; set; set &= set - 1)
            out[found++] = (uint16_t)(i + (unsigned)__builtin_ctz(set));
    }
    return found;
}

#define AVX512_TARGET "avx512f,avx512bw,avx512vbmi,avx512vbmi2,popcnt"

static bool avx512_here(void)
{
    return __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vbmi") &&
           __builtin_cpu_supports("avx512vbmi2") &&
           __builtin_cpu_supports("popcnt");
}

__attribute__((target(AVX512_TARGET), always_inline)) static inline __m512i
classes_avx512(const __m512i table[4], const unsigned char *at)
{
    const __m512i x = _mm512_loadu_si512(at);
    const __m512i low = _mm512_permutex2var_epi8(table[0], x, table[1]);
    const __m512i high = _mm512_permutex2var_epi8(table[2], x, table[3]);
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(x), low, high);
}

static const unsigned char numbers[64] = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
    16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
    32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47,
    48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63,
};

__attribute__((target(AVX512_TARGET), always_inline)) static inline size_t
front_some(const struct scan_group *g, const unsigned char *at, size_t n,
           uint16_t *out, unsigned tested)
{
    __m512i table[SCAN_TESTED][4];
    size_t found = 0;
    for (unsigned j = 0; j < tested; j++)
        for (unsigned k = 0; k < 4; k++)
            table[j][k] = _mm512_loadu_si512(g->classes[j] + 64 * k);
    const __m512i count = _mm512_loadu_si512(numbers);
    for (size_t i = 0; i < n; i += 64) {
        __m512i all = classes_avx512(table[0], at + i);
#pragma GCC unroll 8
        for (unsigned j = 1; j < tested; j++)
            all = _mm512_and_si512(all, classes_avx512(table[j], at + i + j));
        uint64_t set = _mm512_test_epi8_mask(all, all);
        if (n - i < 64)
            set &= (UINT64_C(1) << (n - i)) - 1;
        const __m512i places = _mm512_maskz_compress_epi8(set, count);
        const __m512i base = _mm512_set1_epi16((short)i);
        _mm512_storeu_si512(
            out + found,
            _mm512_add_epi16(
                base, _mm512_cvtepu8_epi16(_mm512_castsi512_si256(places))));
        _mm512_storeu_si512(
            out + found + 32,
            _mm512_add_epi16(base, _mm512_cvtepu8_epi16(
                                       _mm512_extracti64x4_epi64(places, 1))));
        found += (size_t)__builtin_popcountll(set);
    }
    return found;
}

__attribute__((target(AVX512_TARGET))) static size_t
front_avx512(const struct scan_group *g, const unsigned char *at, size_t n,
             uint16_t *out)
{
    at += g->window - g->tested;
    return g->tested > 4 ? front_some(g, at, n, out, 6)
                         : front_some(g, at, n, out, 4);
}
#endif

const struct scan_variant scan_variants[] = {
#if defined(__x86_64__)
    { "avx512", avx512_here, front_avx512 },
    { "avx2", avx2_here, front_avx2 },
#endif
    { "portable", always_here, front_portable },
};
const size_t scan_nvariants = sizeof scan_variants / sizeof scan_variants[0];

const struct scan_variant *scan_variant_from(size_t i)
{
    while (i + 1 < scan_nvariants && !scan_variants[i].here())
        i++;
    return &scan_variants[i < scan_nvariants ? i : scan_nvariants - 1];
}
