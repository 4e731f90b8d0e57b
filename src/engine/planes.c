/*
 * planes.c - the loops under sketches of vectors: portable, and the choice
 */
#include <math.h>
#include <string.h>

#include "engine/planes.h"

static uint32_t signs_of(const float *sums)
{
    uint32_t signs = 0;
    for (unsigned j = 0; j < BLY_PLANES_WIDE; j++)
        signs |= (uint32_t)(sums[j] >= 0) << j;
    return signs;
}

static void add_portable(float x, const float *r, float *sums)
{
    for (unsigned j = 0; j < BLY_PLANES_WIDE; j++)
        sums[j] = fmaf(x, r[j], sums[j]);
}

static uint32_t one_portable(const float *x, const float *panel, size_t n)
{
    float sums[BLY_PLANES_WIDE] = { 0 };
    for (size_t k = 0; k < n; k++)
        add_portable(x[k], panel + k * BLY_PLANES_WIDE, sums);
    return signs_of(sums);
}

static void tile_portable(const float *x, size_t stride, const float *panel,
                          size_t n, uint32_t *signs)
{
    (void)stride; /* of one vector */
    signs[0] = one_portable(x, panel, n);
}

static uint32_t peak_portable(const float *x, size_t n)
{
    uint32_t most = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        bits &= 0x7fffffff;
        most = bits > most ? bits : most;
    }
    return most;
}

static double dot_portable(const float *a, const float *b, size_t n)
{
    double lanes[BLY_DOT_LANES] = { 0 };
    return bly_dot_rest(a, b, 0, n, lanes);
}

static double dot_wide_portable(const double *a, const double *b, size_t n)
{
    double lanes[BLY_DOT_LANES] = { 0 };
    return bly_dot_rest_wide(a, b, 0, n, lanes);
}

static unsigned differ_portable(const uint64_t *a, const uint64_t *b,
                                size_t nwords)
{
    unsigned n = 0;
    for (size_t i = 0; i < nwords; i++)
        n += (unsigned)__builtin_popcountll(a[i] ^ b[i]);
    return n;
}

const bly_planes_row bly_planes_rows[] = {
#if BLY_X86
    { "avx512", BLY_CPU_AVX512 | BLY_CPU_FMA, 12, bly_planes_tile_avx512,
      bly_planes_one_avx512, bly_planes_add_avx512, bly_planes_peak_avx2,
      bly_dot_avx512, bly_dot_wide_avx512, bly_differ_avx2 },
    { "avx2", BLY_CPU_AVX2 | BLY_CPU_FMA, 6, bly_planes_tile_avx2,
      bly_planes_one_avx2, bly_planes_add_avx2, bly_planes_peak_avx2,
      bly_dot_avx2, bly_dot_wide_avx2, bly_differ_avx2 },
#endif
#if BLY_ARM64
    { "neon", BLY_CPU_NEON, 6, bly_planes_tile_neon, bly_planes_one_neon,
      bly_planes_add_neon, bly_planes_peak_neon, bly_dot_neon,
      dot_wide_portable, differ_portable },
#endif
    { "portable", 0, 1, tile_portable, one_portable, add_portable,
      peak_portable, dot_portable, dot_wide_portable, differ_portable },
};

BLY_CHOOSE(planes)
