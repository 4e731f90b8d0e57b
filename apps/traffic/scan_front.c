/*
 * scan_front.c - windows of a text and the classes of a group
 *
 * A table of 256 bytes is four registers of AVX-512, so 64 bytes of a text are
 * looked up at once. The portable form is one load per byte of text: a word
 * says for each place of a window which classes the text has been in so far.
 */
#include "apps/traffic/scan.h"

#define LANES 4 /* parts of a text at once: each waits for its last byte */

static size_t front_portable(const struct scan_group *g,
                             const unsigned char *at, size_t n, uint16_t *out)
{
    const size_t part = n / LANES;
    const unsigned last = 8 * (g->window - 1);
    uint64_t row[LANES] = { 0 };
    size_t found = 0;
    for (unsigned k = 0; k < LANES; k++)
        for (unsigned j = 0; j + 1 < g->window; j++)
            row[k] = row[k] << 8 | g->not_of[at[k * part + j]];
    at += g->window - 1;
    for (size_t i = 0; i < part; i++)
#pragma GCC unroll 4
        for (unsigned k = 0; k < LANES; k++) {
            const size_t place = k * part + i;
            row[k] = row[k] << 8 | g->not_of[at[place]];
            out[found] = (uint16_t)place;
            found += (unsigned char)(row[k] >> last) != 0xff;
        }
    for (size_t place = LANES * part; place < n; place++) {
        row[LANES - 1] = row[LANES - 1] << 8 | g->not_of[at[place]];
        out[found] = (uint16_t)place;
        found += (unsigned char)(row[LANES - 1] >> last) != 0xff;
    }
    return found;
}

static bool always_here(void)
{
    return true;
}

#if defined(__x86_64__)
#include <immintrin.h>

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
    __m512i table[SCAN_WIDEST][4];
    size_t found = 0;
    /* Unrolled, so that the tables are in registers. */
#pragma GCC unroll 8
    for (unsigned j = 0; j < tested; j++) {
        const unsigned char *const row = g->classes[j];
        table[j][0] = _mm512_loadu_si512(row);
        table[j][1] = _mm512_loadu_si512(row + 64);
        table[j][2] = _mm512_loadu_si512(row + 128);
        table[j][3] = _mm512_loadu_si512(row + 192);
    }
    const __m512i count = _mm512_loadu_si512(numbers);
    for (size_t i = 0; i < n; i += 64) {
        /* Text of ASCII needs half of a table. */
        const __m512i from = _mm512_loadu_si512(at + i);
        const __m512i to = _mm512_loadu_si512(at + i + tested - 1);
        __m512i all = _mm512_set1_epi8(-1);
        if (_mm512_movepi8_mask(_mm512_or_si512(from, to)) == 0) {
#pragma GCC unroll 8
            for (unsigned j = 0; j < tested; j++)
                all = _mm512_and_si512(all, _mm512_permutex2var_epi8(
                                                table[j][0],
                                                _mm512_loadu_si512(at + i + j),
                                                table[j][1]));
        } else {
#pragma GCC unroll 8
            for (unsigned j = 0; j < tested; j++)
                all =
                    _mm512_and_si512(all, classes_avx512(table[j], at + i + j));
        }
        uint64_t set = _mm512_test_epi8_mask(all, all);
        if (n - i < 64)
            set &= (UINT64_C(1) << (n - i)) - 1;
        const size_t some = (size_t)__builtin_popcountll(set);
        const __m512i places = _mm512_maskz_compress_epi8(set, count);
        const __m512i base = _mm512_set1_epi16((short)i);
        _mm512_storeu_si512(
            out + found,
            _mm512_add_epi16(
                base, _mm512_cvtepu8_epi16(_mm512_castsi512_si256(places))));
        if (some > 32)
            _mm512_storeu_si512(
                out + found + 32,
                _mm512_add_epi16(base,
                                 _mm512_cvtepu8_epi16(
                                     _mm512_extracti64x4_epi64(places, 1))));
        found += some;
    }
    return found;
}

__attribute__((target(AVX512_TARGET))) static size_t
front_avx512(const struct scan_group *g, const unsigned char *at, size_t n,
             uint16_t *out)
{
    return g->window > 6   ? front_some(g, at, n, out, 8)
           : g->window > 4 ? front_some(g, at, n, out, 6)
                           : front_some(g, at, n, out, 4);
}
#endif

const struct scan_variant scan_variants[] = {
#if defined(__x86_64__)
    { "avx512", avx512_here, front_avx512 },
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
