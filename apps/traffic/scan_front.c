/*
 * scan_front.c - windows of a text and the classes of a group
 *
 * A table of 256 bytes is four registers of AVX-512, so 64 bytes of a text are
 * looked up at once. Elsewhere it is one load per byte of text, which says
 * something of 8 windows: a byte is the last of one, the last but one of the
 * next, and so on.
 *
 *     windows            0 1 2 3 4 5 6 7 | 8 9 ...
 *     byte 7 is not of   x x x x x x x x
 *     byte 8               x x x x x x x | x
 *
 * Where there are not all ones in the end, there is a class that all bytes of
 * the window are of. The same loops with instructions of AVX2 take as long.
 */
#include <string.h>

#include "apps/traffic/scan.h"
#include "base/byte_order.h"

/* ------------------------------------------------ one load per byte of text */

typedef uint64_t two_words __attribute__((vector_size(16)));
typedef uint16_t eight_places __attribute__((vector_size(16)));

/* Where the table begins. */
static size_t table_from(const struct scan_loads *l)
{
    return -(uintptr_t)l->not_of & (SCAN_ROW - 1);
}

void scan_front_prepare(struct scan_group *g)
{
    struct scan_loads *const l = &g->loads;
    unsigned char *const table = l->not_of + table_from(l);
    *l = (struct scan_loads){ 0 };
    for (unsigned b = 0; b < 256; b++) {
        for (unsigned j = 0; j < g->window; j++)
            table[b * SCAN_ROW + 2 * SCAN_WIDEST - 1 - j] =
                (unsigned char)~g->classes[j][b];
        for (unsigned bit = 0; bit < 8; bit++)
            if (b >> bit & 1)
                l->picks[b][l->counts[b]++] = (uint16_t)bit;
    }
}

/* What a byte says of 16 windows, if it is the last of number i, beside what is
 * known of them. */
static inline void byte_not_of(const unsigned char *table, unsigned char byte,
                               unsigned i, two_words *known)
{
    two_words v;
    memcpy(&v, table + (size_t)byte * SCAN_ROW + (SCAN_WIDEST - i), sizeof v);
    *known |= v;
}

/* Which of 8 bytes are not all ones? A bit for each. */
static inline unsigned bytes_passed(uint64_t w)
{
    const uint64_t low = UINT64_C(0x7f7f7f7f7f7f7f7f);
    w = BYTE_ORDER_LE(~w);
    w = ((w & low) + low) | w;
    return (unsigned)((w >> 7 & UINT64_C(0x0101010101010101)) *
                          UINT64_C(0x0102040810204080) >>
                      56);
}

static size_t front_portable(const struct scan_group *g,
                             const unsigned char *at, size_t n, uint16_t *out)
{
    const struct scan_loads *const l = &g->loads;
    const unsigned char *const table = l->not_of + table_from(l);
    size_t found = 0;
    two_words begun = { 0 }; /* windows that earlier bytes are of, too */
    for (unsigned i = 0; i < 7; i++)
        byte_not_of(table, at[i], i + 1, &begun);
    for (size_t i = 0; i < n; i += 8) {
        two_words all = { 0 }, others = { 0 };
#pragma GCC unroll 4
        for (unsigned k = 0; k < 8; k += 2) {
            byte_not_of(table, at[i + 7 + k], k, &all);
            byte_not_of(table, at[i + 8 + k], k + 1, &others);
        }
        all |= others;
        unsigned set = bytes_passed(all[0] | begun[1]);
        if (n - i < 8)
            set &= (1u << (n - i)) - 1;
        eight_places places;
        memcpy(&places, l->picks[set], sizeof places);
        places += (uint16_t)i;
        memcpy(out + found, &places, sizeof places);
        found += l->counts[set];
        begun = all;
    }
    return found;
}

static bool always_here(void)
{
    return true;
}

#if defined(__x86_64__)
#include <immintrin.h>

/* ------------------------------------------------ 64 bytes of text at once */

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
