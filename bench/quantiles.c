/*
 * quantiles.c - how exact and how fast are digests of numbers?
 *
 *     build/bench/quantiles [VALUES]                 default: 10,000,000
 *
 * Streams of several kinds, two of each, at compression 100, in the library's
 * scale and in that of RedisBloom. The error of a quantile is how far the share
 * of the values that really lie below it is from the share that was asked for,
 * in millionths: the larger one of the two streams. Where several values equal
 * it, the nearest of their shares counts. After it stands the deviation that
 * bly_tdigest_deviation() states for the library's scale, and in the end the
 * largest ratio of the two.
 *
 * Then how many values per second one core adds, in calls of 100 and of 4096,
 * the best of five passes in time of this thread, and the bytes of a digest.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <bloomery/sketch.h>

#include "base/search.h"
#include "bench/measure.h"

#define STREAMS 2
#define PASSES 5

static const double asked[] = { 0.5, 0.9, 0.99, 0.999, 0.9999 };
#define NASKED (sizeof asked / sizeof *asked)

static size_t nvalues = 10000000;

static double uniform(uint64_t i)
{
    return ((double)(mix(i) >> 11) + 0.5) * 0x1p-53;
}

static double draw_uniform(uint64_t i)
{
    return uniform(i);
}

static double draw_normal(uint64_t i)
{
    return sqrt(-2 * log(uniform(2 * i))) *
           cos(6.283185307179586 * uniform(2 * i + 1));
}

static double draw_lognormal(uint64_t i)
{
    return exp(draw_normal(i));
}

/* Exponent 1.8, by rejection: Devroye, Non-Uniform Random Variate Generation,
 * 1986, X.6.1. */
static double draw_zipf(uint64_t i)
{
    const double a = 1.8, b = pow(2, a - 1);
    for (uint64_t j = 0;; j += 2) {
        const double u = uniform(i << 8 | j), v = uniform(i << 8 | (j + 1));
        const double x = floor(pow(u, -1 / (a - 1)));
        const double t = pow(1 + 1 / x, a - 1);
        if (x < 1e15 && v * x * (t - 1) / (b - 1) <= t / b)
            return x;
    }
}

static double draw_sorted(uint64_t i)
{
    return (double)(uint32_t)i;
}

static const struct {
    const char *name;
    double (*draw)(uint64_t);
} kinds[] = {
    { "uniform", draw_uniform },
    { "normal", draw_normal },
    { "log-normal", draw_lognormal },
    { "Zipf, exponent 1.8", draw_zipf },
    { "sorted, evenly spaced", draw_sorted },
};
#define NKINDS (sizeof kinds / sizeof *kinds)

static void must(bly_status st)
{
    if (st) {
        fprintf(stderr, "quantiles: %s\n", bly_error());
        exit(2);
    }
}

static bly_tdigest *digest_of(const double *values, uint32_t scale, size_t step)
{
    const bly_tdigest_spec spec = { .scale = scale };
    bly_tdigest *t;
    must(bly_tdigest_new(&spec, &t));
    for (size_t i = 0; i < nvalues; i += step)
        must(bly_tdigest_add(t, values + i, NULL,
                             nvalues - i < step ? nvalues - i : step));
    bly_tdigest_settle(t);
    return t;
}

/* How many of the sorted values are below x, or not above it. */
static size_t below(const double *sorted, double x, bool equal)
{
    size_t at;
    LOWER_BOUND(at, nvalues, sorted[at] < x || (equal && sorted[at] == x));
    return at;
}

static double error_of(const double *sorted, double x, double q)
{
    const double n = (double)nvalues;
    const double from = (double)below(sorted, x, false) / n;
    const double to = (double)below(sorted, x, true) / n;
    return q < from ? from - q : q > to ? q - to : 0;
}

int main(int argc, char **argv)
{
    double within = 0;
    if (argc > 1)
        nvalues = strtoull(argv[1], NULL, 10);
    if (nvalues < 1000 || nvalues > (size_t)1 << 31)
        return 2;
    double *const values = room(8 * nvalues), *const sorted = room(8 * nvalues);
    printf("%zu values, errors of ranks in millionths: this scale / "
           "RedisBloom's (stated)\n\n| |",
           nvalues);
    for (size_t i = 0; i < NASKED; i++)
        printf(" %g %% |", asked[i] * 100);
    printf("\n| --- | --- | --- | --- | --- | --- |\n");
    for (size_t k = 0; k < NKINDS; k++) {
        double worst[2][NASKED] = { { 0 } }, stated[NASKED] = { 0 };
        for (uint64_t s = 0; s < STREAMS; s++) {
            for (size_t i = 0; i < nvalues; i++)
                values[i] = kinds[k].draw((k * STREAMS + s + 1) << 40 | i);
            memcpy(sorted, values, 8 * nvalues);
            qsort(sorted, nvalues, sizeof *sorted, ascending_);
            for (uint32_t scale = 0; scale < 2; scale++) {
                bly_tdigest *const t = digest_of(values, scale, 4096);
                for (size_t i = 0; i < NASKED; i++) {
                    const double x = bly_tdigest_quantile(t, asked[i]);
                    const double e = error_of(sorted, x, asked[i]);
                    worst[scale][i] = fmax(worst[scale][i], e);
                    if (scale)
                        continue;
                    stated[i] = bly_tdigest_deviation(t, asked[i]);
                    if (stated[i] > 0)
                        within = fmax(within, e / stated[i]);
                }
                bly_tdigest_free(t);
            }
        }
        printf("| %s |", kinds[k].name);
        for (size_t i = 0; i < NASKED; i++)
            printf(" %.3g / %.3g (%.3g) |", worst[0][i] * 1e6,
                   worst[1][i] * 1e6, stated[i] * 1e6);
        putchar('\n');
        fflush(stdout);
    }
    printf("\nlargest error: %.2f times what is stated\n\n", within);

    printf("| million values per second, in calls of | 100 | 4096 | bytes |\n"
           "| --- | --- | --- | --- |\n");
    for (size_t k = 0; k < NKINDS; k++) {
        static const size_t steps[] = { 100, 4096 };
        bly_tdigest_stats stats;
        printf("| %s |", kinds[k].name);
        for (size_t i = 0; i < nvalues; i++)
            values[i] = kinds[k].draw((k + 100) << 40 | i);
        for (size_t j = 0; j < 2; j++) {
            double best = INFINITY;
            for (int pass = 0; pass < PASSES; pass++) {
                const double start = now_ns();
                bly_tdigest *const t =
                    digest_of(values, BLY_TDIGEST_FINE, steps[j]);
                best = fmin(best, now_ns() - start);
                bly_tdigest_stat(t, &stats);
                bly_tdigest_free(t);
            }
            printf(" %.1f |", (double)nvalues / best * 1e3);
        }
        printf(" %llu |\n", (unsigned long long)stats.nbytes);
    }
    return 0;
}
