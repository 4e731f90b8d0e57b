/*
 * x86_planes.c - sides of planes, with AVX2 and AVX-512
 *
 * A tile keeps all its sums in registers: 12 vectors by 32 directions are 24 of
 * the 32 registers of AVX-512, 6 by 16 are 12 of the 16 of AVX2. For each
 * coordinate, two loads of directions and a load that spreads the coordinate of
 * each vector feed 24 or 12 multiplications with additions, of which a
 * processor does two per cycle at most.
 */
#include "engine/planes.h"

#if BLY_X86
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,fma,popcnt")))
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma")))
#define UNROLL _Pragma("GCC unroll 16")

/* Vector v of a tile, from pointers to every third of them. */
#define AT(v) third[(v) / 3][(v) % 3 * stride + k]

/* -------------------------------------------------------------------- AVX2 */

static inline AVX2 uint32_t signs_avx2(__m256 sums)
{
    return (uint32_t)_mm256_movemask_ps(
        _mm256_cmp_ps(sums, _mm256_setzero_ps(), _CMP_GE_OQ));
}

/* `tall` vectors past half a panel; a literal at the call sites. */
static inline __attribute__((always_inline)) AVX2 void
half_avx2(const float *x, size_t stride, const float *panel, size_t n,
          unsigned tall, unsigned from, uint32_t *signs)
{
    const float *const third[2] = { x, x + (tall > 3 ? 3 * stride : 0) };
    __m256 sums[6][2];
    UNROLL
    for (unsigned v = 0; v < tall; v++)
        sums[v][0] = sums[v][1] = _mm256_setzero_ps();
    for (size_t k = 0; k < n; k++) {
        const float *const r = panel + k * BLY_PLANES_WIDE + from;
        const __m256 r0 = _mm256_loadu_ps(r), r1 = _mm256_loadu_ps(r + 8);
        UNROLL
        for (unsigned v = 0; v < tall; v++) {
            const __m256 c = _mm256_set1_ps(AT(v));
            sums[v][0] = _mm256_fmadd_ps(c, r0, sums[v][0]);
            sums[v][1] = _mm256_fmadd_ps(c, r1, sums[v][1]);
        }
    }
    UNROLL
    for (unsigned v = 0; v < tall; v++)
        signs[v] |= signs_avx2(sums[v][0]) << from | signs_avx2(sums[v][1])
                                                         << (from + 8);
}

AVX2 void bly_planes_tile_avx2(const float *x, size_t stride,
                               const float *panel, size_t n, uint32_t *signs)
{
    for (unsigned v = 0; v < 6; v++)
        signs[v] = 0;
    half_avx2(x, stride, panel, n, 6, 0, signs);
    half_avx2(x, stride, panel, n, 6, 16, signs);
}

AVX2 uint32_t bly_planes_one_avx2(const float *x, const float *panel, size_t n)
{
    uint32_t signs = 0;
    half_avx2(x, 0, panel, n, 1, 0, &signs);
    half_avx2(x, 0, panel, n, 1, 16, &signs);
    return signs;
}

AVX2 void bly_planes_add_avx2(float x, const float *r, float *sums)
{
    const __m256 c = _mm256_set1_ps(x);
    UNROLL
    for (unsigned j = 0; j < BLY_PLANES_WIDE; j += 8)
        _mm256_storeu_ps(sums + j, _mm256_fmadd_ps(c, _mm256_loadu_ps(r + j),
                                                   _mm256_loadu_ps(sums + j)));
}

AVX2 uint32_t bly_planes_peak_avx2(const float *x, size_t n)
{
    const __m256i without = _mm256_set1_epi32(0x7fffffff);
    __m256i most = _mm256_setzero_si256();
    uint32_t lanes[8], peak = 0;
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        most = _mm256_max_epu32(
            most, _mm256_and_si256(
                      without, _mm256_castps_si256(_mm256_loadu_ps(x + i))));
    _mm256_storeu_si256((__m256i *)(void *)lanes, most);
    for (unsigned j = 0; j < 8; j++)
        peak = lanes[j] > peak ? lanes[j] : peak;
    for (; i < n; i++) {
        const uint32_t bits =
            (uint32_t)_mm_cvtsi128_si32(_mm_castps_si128(_mm_load_ss(x + i))) &
            0x7fffffff;
        peak = bits > peak ? bits : peak;
    }
    return peak;
}

AVX2 double bly_dot_avx2(const float *a, const float *b, size_t n)
{
    __m256d sums[4];
    double lanes[BLY_DOT_LANES];
    size_t i = 0;
    UNROLL
    for (unsigned j = 0; j < 4; j++)
        sums[j] = _mm256_setzero_pd();
    for (; i + BLY_DOT_LANES <= n; i += BLY_DOT_LANES) {
        UNROLL
        for (unsigned j = 0; j < 4; j++)
            sums[j] = _mm256_fmadd_pd(/* the product is exact in any case */
                                      _mm256_cvtps_pd(
                                          _mm_loadu_ps(a + i + 4 * (size_t)j)),
                                      _mm256_cvtps_pd(
                                          _mm_loadu_ps(b + i + 4 * (size_t)j)),
                                      sums[j]);
    }
    for (unsigned j = 0; j < 4; j++)
        _mm256_storeu_pd(lanes + 4 * (size_t)j, sums[j]);
    return bly_dot_rest(a, b, i, n, lanes);
}

AVX2 double bly_dot_wide_avx2(const double *a, const double *b, size_t n)
{
    __m256d sums[4];
    double lanes[BLY_DOT_LANES];
    size_t i = 0;
    UNROLL
    for (unsigned j = 0; j < 4; j++)
        sums[j] = _mm256_setzero_pd();
    for (; i + BLY_DOT_LANES <= n; i += BLY_DOT_LANES) {
        UNROLL
        for (unsigned j = 0; j < 4; j++) {
            const __m256d product =
                _mm256_mul_pd(_mm256_loadu_pd(a + i + 4 * (size_t)j),
                              _mm256_loadu_pd(b + i + 4 * (size_t)j));
            sums[j] = _mm256_add_pd(sums[j], product);
        }
    }
    for (unsigned j = 0; j < 4; j++)
        _mm256_storeu_pd(lanes + 4 * (size_t)j, sums[j]);
    return bly_dot_rest_wide(a, b, i, n, lanes);
}

AVX2 unsigned bly_differ_avx2(const uint64_t *a, const uint64_t *b,
                              size_t nwords)
{
    uint64_t n = 0;
    for (size_t i = 0; i < nwords; i++)
        n += (uint64_t)__builtin_popcountll(a[i] ^ b[i]);
    return (unsigned)n;
}

/* ----------------------------------------------------------------- AVX-512 */

static inline AVX512 uint32_t signs_avx512(__m512 sums)
{
    return _mm512_cmp_ps_mask(sums, _mm512_setzero_ps(), _CMP_GE_OQ);
}

static inline __attribute__((always_inline)) AVX512 void
panel_avx512(const float *x, size_t stride, const float *panel, size_t n,
             unsigned tall, uint32_t *signs)
{
    const float *const third[4] = { x, x + (tall > 3 ? 3 * stride : 0),
                                    x + (tall > 6 ? 6 * stride : 0),
                                    x + (tall > 9 ? 9 * stride : 0) };
    __m512 sums[12][2];
    UNROLL
    for (unsigned v = 0; v < tall; v++)
        sums[v][0] = sums[v][1] = _mm512_setzero_ps();
    for (size_t k = 0; k < n; k++) {
        const float *const r = panel + k * BLY_PLANES_WIDE;
        const __m512 r0 = _mm512_loadu_ps(r), r1 = _mm512_loadu_ps(r + 16);
        UNROLL
        for (unsigned v = 0; v < tall; v++) {
            const __m512 c = _mm512_set1_ps(AT(v));
            sums[v][0] = _mm512_fmadd_ps(c, r0, sums[v][0]);
            sums[v][1] = _mm512_fmadd_ps(c, r1, sums[v][1]);
        }
    }
    UNROLL
    for (unsigned v = 0; v < tall; v++)
        signs[v] = signs_avx512(sums[v][0]) | signs_avx512(sums[v][1]) << 16;
}

AVX512 void bly_planes_tile_avx512(const float *x, size_t stride,
                                   const float *panel, size_t n,
                                   uint32_t *signs)
{
    panel_avx512(x, stride, panel, n, 12, signs);
}

AVX512 uint32_t bly_planes_one_avx512(const float *x, const float *panel,
                                      size_t n)
{
    uint32_t signs;
    panel_avx512(x, 0, panel, n, 1, &signs);
    return signs;
}

AVX512 void bly_planes_add_avx512(float x, const float *r, float *sums)
{
    const __m512 c = _mm512_set1_ps(x);
    UNROLL
    for (unsigned j = 0; j < BLY_PLANES_WIDE; j += 16)
        _mm512_storeu_ps(sums + j, _mm512_fmadd_ps(c, _mm512_loadu_ps(r + j),
                                                   _mm512_loadu_ps(sums + j)));
}

AVX512 double bly_dot_avx512(const float *a, const float *b, size_t n)
{
    __m512d low = _mm512_setzero_pd(), high = low;
    double lanes[BLY_DOT_LANES];
    size_t i = 0;
    for (; i + BLY_DOT_LANES <= n; i += BLY_DOT_LANES) {
        low = _mm512_fmadd_pd(_mm512_cvtps_pd(_mm256_loadu_ps(a + i)),
                              _mm512_cvtps_pd(_mm256_loadu_ps(b + i)), low);
        high =
            _mm512_fmadd_pd(_mm512_cvtps_pd(_mm256_loadu_ps(a + i + 8)),
                            _mm512_cvtps_pd(_mm256_loadu_ps(b + i + 8)), high);
    }
    _mm512_storeu_pd(lanes, low);
    _mm512_storeu_pd(lanes + 8, high);
    return bly_dot_rest(a, b, i, n, lanes);
}

AVX512 double bly_dot_wide_avx512(const double *a, const double *b, size_t n)
{
    __m512d low = _mm512_setzero_pd(), high = low;
    double lanes[BLY_DOT_LANES];
    size_t i = 0;
    for (; i + BLY_DOT_LANES <= n; i += BLY_DOT_LANES) {
        const __m512d first =
            _mm512_mul_pd(_mm512_loadu_pd(a + i), _mm512_loadu_pd(b + i));
        const __m512d second = _mm512_mul_pd(_mm512_loadu_pd(a + i + 8),
                                             _mm512_loadu_pd(b + i + 8));
        low = _mm512_add_pd(low, first);
        high = _mm512_add_pd(high, second);
    }
    _mm512_storeu_pd(lanes, low);
    _mm512_storeu_pd(lanes + 8, high);
    return bly_dot_rest_wide(a, b, i, n, lanes);
}

#else
typedef int bly_x86_planes_is_empty; /* C has no empty file */
#endif
