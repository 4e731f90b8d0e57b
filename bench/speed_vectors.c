/*
 * speed_vectors.c - sketches of vectors against what the processor can do
 *
 *     build/bench/speed_vectors [DIMS [BITS [ROUNDS]]]   default: 768 256 40
 *
 * A sketch of DIMS coordinates and BITS bits takes DIMS x BITS multiplications
 * with additions. What the processor can do at most is measured in the same
 * run: as many of them as registers hold, on numbers that stay there, which
 * wait for nothing and read nothing. Rounds of both alternate, and the best one
 * of each counts.
 */
#define _GNU_SOURCE
#include <stdio.h>

#include <bloomery/sketch.h>

#include "bench/measure.h"

#define VECTORS 1920
#define LOOPS 200000

#ifdef __x86_64__
#include <immintrin.h>

#define PEAK_LOOP(vec, set1, fmadd, n)                                        \
    do {                                                                      \
        vec sums[n];                                                          \
        const vec a = set1(0.999999f), b = set1(1e-6f);                       \
        _Pragma("GCC unroll 32") for (unsigned j = 0; j < (n); j++) sums[j] = \
            set1((float)j);                                                   \
        for (unsigned i = 0; i < LOOPS; i++) {                                \
            _Pragma("GCC unroll 32") for (unsigned j = 0; j < (n); j++)       \
                sums[j] = fmadd(sums[j], a, b);                               \
        }                                                                     \
        for (unsigned j = 0; j < (n); j++)                                    \
            sink += ((const float *)(const void *)&sums[j])[0];               \
    } while (0)

static volatile float sink;

static __attribute__((target("avx512f"))) double peak_avx512(void)
{
    PEAK_LOOP(__m512, _mm512_set1_ps, _mm512_fmadd_ps, 24);
    return 24.0 * 16 * LOOPS;
}

static __attribute__((target("avx2,fma"))) double peak_avx2(void)
{
    PEAK_LOOP(__m256, _mm256_set1_ps, _mm256_fmadd_ps, 12);
    return 12.0 * 8 * LOOPS;
}
#elif defined(__aarch64__)
#include <arm_neon.h>
static volatile float sink;
static double peak_neon(void)
{
    float32x4_t sums[24];
    const float32x4_t a = vdupq_n_f32(0.999999f), b = vdupq_n_f32(1e-6f);
    for (unsigned j = 0; j < 24; j++)
        sums[j] = vdupq_n_f32((float)j);
    for (unsigned i = 0; i < LOOPS; i++) {
        _Pragma("GCC unroll 32") for (unsigned j = 0; j < 24; j++) sums[j] =
            vfmaq_f32(b, sums[j], a);
    }
    for (unsigned j = 0; j < 24; j++)
        sink += vgetq_lane_f32(sums[j], 0);
    return 24.0 * 4 * LOOPS;
}
#endif

/* The variant of sketches of vectors on this processor. */
static const char *row_name(void)
{
    const char *job, *name;
    for (unsigned i = 0; (name = bly_cpu_row(i, &job)); i++)
        if (!strcmp(job, "vectors"))
            return name;
    return "portable";
}

/* How many there were, by the instructions that the sketches take. */
static double peak(void)
{
#ifdef __x86_64__
    if (!strcmp(row_name(), "avx512"))
        return peak_avx512();
    if (!strcmp(row_name(), "avx2"))
        return peak_avx2();
#elif defined(__aarch64__)
    return peak_neon();
#endif
    return 0;
}

int main(int argc, char **argv)
{
    const size_t dims = argc > 1 ? (size_t)atoi(argv[1]) : 768;
    const unsigned nbits = argc > 2 ? (unsigned)atoi(argv[2]) : 256;
    const int rounds = argc > 3 ? atoi(argv[3]) : 40;
    const bly_planes_spec spec = { .dims = dims, .nbits = nbits };
    bly_planes *p;
    if (bly_planes_new(&spec, &p)) {
        fprintf(stderr, "speed_vectors: %s\n", bly_error());
        return 2;
    }
    float *const x = room(VECTORS * dims * sizeof *x);
    uint64_t *const sides = room(VECTORS * (size_t)nbits / 8);
    for (size_t i = 0; i < VECTORS * dims; i++)
        x[i] = (float)(int32_t)mix(i) / 2147483648.0f;
    const bly_vectors v = { .at = x, .n = VECTORS, .dims = dims };
    double best_peak = 0, best = 0, best_one = 0;
    for (int i = 0; i < rounds; i++) {
        double from = now_ns();
        const double n = peak();
        double rate = n / (now_ns() - from);
        best_peak = rate > best_peak ? rate : best_peak;
        from = now_ns();
        if (bly_planes_sides(p, &v, sides, NULL))
            return 2;
        rate = (double)VECTORS * (double)dims * nbits / (now_ns() - from);
        best = rate > best ? rate : best;
        bly_vectors one = v;
        one.n = 1;
        from = now_ns();
        for (size_t j = 0; j < 64; j++) {
            one.at = x + j * dims;
            if (bly_planes_sides(p, &one, sides, NULL))
                return 2;
        }
        rate = 64.0 * (double)dims * nbits / (now_ns() - from);
        best_one = rate > best_one ? rate : best_one;
    }
    printf("vectors of %zu coordinates, %u bits, by %s\n", dims, nbits,
           row_name());
    const double products = (double)dims * nbits;
    printf("%-24s %8.1f G multiply-adds/s\n", "peak of one core", best_peak);
    printf("%-24s %8.1f  %5.1f %%  %8.0f ns per vector\n", "in batches", best,
           100 * best / best_peak, products / best);
    printf("%-24s %8.1f  %5.1f %%  %8.0f ns per vector\n", "one by one",
           best_one, 100 * best_one / best_peak, products / best_one);
    bly_planes_free(p);
    return 0;
}
