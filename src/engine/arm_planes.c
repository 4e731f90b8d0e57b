/*
 * arm_planes.c - sides of planes, with NEON
 *
 * 6 vectors by 16 directions are 24 of the 32 registers.
 */
#include "engine/planes.h"

#if BLY_ARM64
#include <arm_neon.h>

#define UNROLL _Pragma("GCC unroll 16")

static inline uint32_t signs_neon(float32x4_t sums)
{
    static const uint32_t weights[4] = { 1, 2, 4, 8 };
    return vaddvq_u32(
        vandq_u32(vcgeq_f32(sums, vdupq_n_f32(0)), vld1q_u32(weights)));
}

static inline __attribute__((always_inline)) void
half_neon(const float *x, size_t stride, const float *panel, size_t n,
          unsigned tall, unsigned from, uint32_t *signs)
{
    float32x4_t sums[6][4];
    UNROLL
    for (unsigned v = 0; v < tall; v++) {
        UNROLL
        for (unsigned j = 0; j < 4; j++)
            sums[v][j] = vdupq_n_f32(0);
    }
    for (size_t k = 0; k < n; k++) {
        const float *const at = panel + k * BLY_PLANES_WIDE + from;
        float32x4_t r[4];
        UNROLL
        for (unsigned j = 0; j < 4; j++)
            r[j] = vld1q_f32(at + 4 * (size_t)j);
        UNROLL
        for (unsigned v = 0; v < tall; v++) {
            const float32x4_t c = vdupq_n_f32(x[v * stride + k]);
            UNROLL
            for (unsigned j = 0; j < 4; j++)
                sums[v][j] = vfmaq_f32(sums[v][j], c, r[j]);
        }
    }
    for (unsigned v = 0; v < tall; v++)
        for (unsigned j = 0; j < 4; j++)
            signs[v] |= signs_neon(sums[v][j]) << (from + 4 * j);
}

void bly_planes_tile_neon(const float *x, size_t stride, const float *panel,
                          size_t n, uint32_t *signs)
{
    for (unsigned v = 0; v < 6; v++)
        signs[v] = 0;
    half_neon(x, stride, panel, n, 6, 0, signs);
    half_neon(x, stride, panel, n, 6, 16, signs);
}

uint32_t bly_planes_one_neon(const float *x, const float *panel, size_t n)
{
    uint32_t signs = 0;
    half_neon(x, 0, panel, n, 1, 0, &signs);
    half_neon(x, 0, panel, n, 1, 16, &signs);
    return signs;
}

void bly_planes_add_neon(float x, const float *r, float *sums)
{
    const float32x4_t c = vdupq_n_f32(x);
    for (unsigned j = 0; j < BLY_PLANES_WIDE; j += 4)
        vst1q_f32(sums + j,
                  vfmaq_f32(vld1q_f32(sums + j), c, vld1q_f32(r + j)));
}

uint32_t bly_planes_peak_neon(const float *x, size_t n)
{
    uint32x4_t most = vdupq_n_u32(0);
    uint32_t peak;
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        most =
            vmaxq_u32(most, vandq_u32(vdupq_n_u32(0x7fffffff),
                                      vreinterpretq_u32_f32(vld1q_f32(x + i))));
    peak = vmaxvq_u32(most);
    for (; i < n; i++) {
        const uint32_t bits =
            vgetq_lane_u32(vreinterpretq_u32_f32(vdupq_n_f32(x[i])), 0) &
            0x7fffffff;
        peak = bits > peak ? bits : peak;
    }
    return peak;
}

double bly_dot_neon(const float *a, const float *b, size_t n)
{
    float64x2_t sums[8];
    double lanes[BLY_DOT_LANES];
    size_t i = 0;
    UNROLL
    for (unsigned j = 0; j < 8; j++)
        sums[j] = vdupq_n_f64(0);
    for (; i + BLY_DOT_LANES <= n; i += BLY_DOT_LANES) {
        UNROLL
        for (unsigned j = 0; j < 8; j++)
            sums[j] = vfmaq_f64(sums[j],
                                vcvt_f64_f32(vld1_f32(a + i + 2 * (size_t)j)),
                                vcvt_f64_f32(vld1_f32(b + i + 2 * (size_t)j)));
    }
    for (unsigned j = 0; j < 8; j++)
        vst1q_f64(lanes + 2 * (size_t)j, sums[j]);
    return bly_dot_rest(a, b, i, n, lanes);
}

#endif
