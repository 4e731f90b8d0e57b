/*
 * planes.h - the loops under sketches of vectors
 *
 * On which side of many planes through the origin does a vector lie? That is
 * the sign of its product with a direction for each plane. Directions stand in
 * panels of BLY_PLANES_WIDE: one coordinate of all of them, then the next one.
 * A tile takes several vectors past a panel at once, so that a coordinate of
 * a direction is read once for all of them:
 *
 *     sum(v, j) = fma(x(v, k), r(k, j), sum(v, j))     k = 0, 1, 2, ...
 *
 * Each sum is made in the order of the coordinates, with one rounding per step,
 * so that every row gives the same signs to the last bit.
 */
#ifndef BLY_ENGINE_PLANES_H
#define BLY_ENGINE_PLANES_H

#include "engine/rows.h"

#define BLY_PLANES_WIDE 32 /* directions in a panel */
#define BLY_PLANES_TALL 12 /* vectors of the tallest tile */
#define BLY_DOT_LANES 16

typedef struct bly_planes_row {
    BLY_ROW_HEAD;

    unsigned tall; /* vectors of a tile */

    /* Bit j of signs[v] is set where vector v, at x + v * stride, lies on
     * the positive side of plane j of the panel, or in it. */
    void (*tile)(const float *x, size_t stride, const float *panel, size_t n,
                 uint32_t *signs);

    /* The same for one vector. */
    uint32_t (*one)(const float *x, const float *panel, size_t n);

    /* sums[j] = fma(x, r[j], sums[j]) for BLY_PLANES_WIDE directions. */
    void (*add)(float x, const float *r, float *sums);

    /* The largest of the n values without signs, as bits: a value from
     * 0x7f800000 on is infinite or not a number. */
    uint32_t (*peak)(const float *x, size_t n);

    /* Products in doubles: BLY_DOT_LANES sums, which are added at the end. */
    double (*dot)(const float *a, const float *b, size_t n);
    double (*dot_wide)(const double *a, const double *b, size_t n);

    /* Bits that differ. */
    unsigned (*differ)(const uint64_t *a, const uint64_t *b, size_t nwords);
} bly_planes_row;

BLY_ROWS(planes);

/* The rest of a product, from coordinate `from` on, and the sum of all lanes;
 * which the rows share. */
static inline double bly_dot_end(double *lanes)
{
    for (unsigned half = BLY_DOT_LANES / 2; half; half /= 2)
        for (unsigned j = 0; j < half; j++)
            lanes[j] += lanes[j + half];
    return lanes[0];
}

static inline double bly_dot_rest(const float *a, const float *b, size_t from,
                                  size_t n, double *lanes)
{
    for (size_t i = from; i < n; i++) {
        const double product = (double)a[i] * (double)b[i];
        lanes[i % BLY_DOT_LANES] += product;
    }
    return bly_dot_end(lanes);
}

static inline double bly_dot_rest_wide(const double *a, const double *b,
                                       size_t from, size_t n, double *lanes)
{
    for (size_t i = from; i < n; i++) {
        const double product = a[i] * b[i];
        lanes[i % BLY_DOT_LANES] += product;
    }
    return bly_dot_end(lanes);
}

#if BLY_X86
void bly_planes_tile_avx2(const float *x, size_t stride, const float *panel,
                          size_t n, uint32_t *signs);
uint32_t bly_planes_one_avx2(const float *x, const float *panel, size_t n);
void bly_planes_add_avx2(float x, const float *r, float *sums);
uint32_t bly_planes_peak_avx2(const float *x, size_t n);
double bly_dot_avx2(const float *a, const float *b, size_t n);
double bly_dot_wide_avx2(const double *a, const double *b, size_t n);
unsigned bly_differ_avx2(const uint64_t *a, const uint64_t *b, size_t nwords);
void bly_planes_tile_avx512(const float *x, size_t stride, const float *panel,
                            size_t n, uint32_t *signs);
uint32_t bly_planes_one_avx512(const float *x, const float *panel, size_t n);
void bly_planes_add_avx512(float x, const float *r, float *sums);
double bly_dot_avx512(const float *a, const float *b, size_t n);
double bly_dot_wide_avx512(const double *a, const double *b, size_t n);
#endif
#if BLY_ARM64
void bly_planes_tile_neon(const float *x, size_t stride, const float *panel,
                          size_t n, uint32_t *signs);
uint32_t bly_planes_one_neon(const float *x, const float *panel, size_t n);
void bly_planes_add_neon(float x, const float *r, float *sums);
uint32_t bly_planes_peak_neon(const float *x, size_t n);
double bly_dot_neon(const float *a, const float *b, size_t n);
#endif

#endif
