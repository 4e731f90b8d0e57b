/*
 * test_tdigest.c - quantiles: against the values themselves
 */
#include "support.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery/sketch.h>

#include "base/real.h"
#include "host/tdigest_host.h"

static bly_tdigest *made(double compression, uint32_t scale)
{
    const bly_tdigest_spec spec = { .compression = compression,
                                    .scale = scale };
    bly_tdigest *t;
    assert_ok(bly_tdigest_new(&spec, &t));
    return t;
}

static bly_tdigest_stats stats_of(const bly_tdigest *t)
{
    bly_tdigest_stats s;
    bly_tdigest_stat(t, &s);
    return s;
}

static double weight_of(const bly_tdigest *t)
{
    const bly_tdigest_stats s = stats_of(t);
    return s.merged_weight + s.waiting_weight;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double uniform(uint64_t *state)
{
    return (double)(test_random(state) >> 11) * 0x1p-53;
}

static const uint32_t scales[] = { BLY_TDIGEST_FINE, BLY_TDIGEST_REDISBLOOM };

#define EACH_SCALE(scale)                            \
    for (size_t k_ = 0; k_ < COUNT_OF(scales); k_++) \
        for (uint32_t scale = scales[k_], once_ = 1; once_; once_ = 0)

/* --------------------------------------------------------------- few ones */

static void an_empty_one_has_no_answers(void **state)
{
    (void)state;
    bly_tdigest *t = made(0, 0);
    assert_true(isnan(bly_tdigest_quantile(t, 0.5)));
    assert_true(isnan(bly_tdigest_cdf(t, 1)));
    assert_true(isnan(bly_tdigest_rank(t, 1)));
    assert_true(isnan(bly_tdigest_trimmed_mean(t, 0, 1)));
    assert_true(isnan(bly_tdigest_deviation(t, 0.5)));
    assert_true(isnan(stats_of(t).min) && isnan(stats_of(t).max));
    assert_ok(bly_tdigest_add(t, NULL, NULL, 0));
    bly_tdigest_settle(t);
    bly_tdigest_free(t);
    bly_tdigest_free(NULL);
}

static void one_value_is_all_there_is(void **state)
{
    (void)state;
    const double five = 5;
    EACH_SCALE(scale)
    {
        bly_tdigest *t = made(0, scale);
        assert_ok(bly_tdigest_add(t, &five, NULL, 1));
        for (int i = 0; i <= 10; i++)
            assert_true(bly_tdigest_quantile(t, i / 10.0) == 5);
        assert_true(bly_tdigest_cdf(t, 4) == 0);
        assert_true(bly_tdigest_cdf(t, 5) == 0.5);
        assert_true(bly_tdigest_cdf(t, 6) == 1);
        assert_true(bly_tdigest_trimmed_mean(t, 0.1, 0.9) == 5);
        bly_tdigest_free(t);
    }
}

static void few_values_are_exact(void **state)
{
    (void)state;
    const double values[] = { 9, 5, 7, 5 };
    EACH_SCALE(scale)
    {
        bly_tdigest *t = made(0, scale);
        assert_ok(bly_tdigest_add(t, values, NULL, 4));
        assert_true(bly_tdigest_quantile(t, 0) == 5);
        assert_true(bly_tdigest_quantile(t, 0.25) == 5);
        assert_true(bly_tdigest_quantile(t, 0.5) == 7);
        assert_true(bly_tdigest_quantile(t, 1) == 9);
        assert_true(bly_tdigest_cdf(t, 5) == 0.25);
        assert_true(bly_tdigest_cdf(t, 6) == 0.5);
        assert_true(bly_tdigest_rank(t, 7) == 2.5);
        assert_true(bly_tdigest_trimmed_mean(t, 0, 1) == 6.5);
        assert_true(bly_tdigest_trimmed_mean(t, 0.25, 0.5) == 5);
        assert_true(isnan(bly_tdigest_quantile(t, -0.1)));
        assert_true(isnan(bly_tdigest_quantile(t, 1.1)));
        assert_true(isnan(bly_tdigest_quantile(t, NAN)));
        assert_true(isnan(bly_tdigest_cdf(t, NAN)));
        assert_true(isnan(bly_tdigest_trimmed_mean(t, 0.5, 0.5)));
        bly_tdigest_free(t);
    }
}

/* As a RedisBloom 2.8 that runs has them, too: values 0 to 29 in four means. */
static void the_peer_has_these_means(void **state)
{
    (void)state;
    bly_tdigest *t = made(1, BLY_TDIGEST_REDISBLOOM);
    for (int i = 0; i < 30; i++) {
        const double x = i;
        assert_ok(bly_tdigest_add(t, &x, NULL, 1));
    }
    assert_true(bly_tdigest_quantile(t, 0.1) == 2.1052631578947367);
    assert_true(bly_tdigest_quantile(t, 0.9) == 26.777777777777779);
    assert_true(bly_tdigest_cdf(t, 4) == 0.16);
    const bly_tdigest_stats s = stats_of(t);
    const double means[] = { 0, 10, 24, 29 }, weights[] = { 1, 19, 9, 1 };
    assert_int_equal(s.nmerged, 4);
    assert_int_equal(s.ncompressions, 3);
    assert_memory_equal(s.means, means, sizeof means);
    assert_memory_equal(s.weights, weights, sizeof weights);
    bly_tdigest_free(t);
}

/* -------------------------------------------------------------- many ones */

enum { NVALUES = 200000 };

static double shape(int which, size_t i, uint64_t *random)
{
    const double u = uniform(random), v = uniform(random);
    switch (which) {
    case 0:
        return u;
    case 1:
        return sqrt(-2 * log(1 - u)) * cos(6.283185307179586 * v);
    case 2:
        return exp(2 * sqrt(-2 * log(1 - u)) * cos(6.283185307179586 * v));
    case 3:
        return (double)i;
    case 4:
        return -(double)i;
    default: /* nearly all bits the same, so that sorting takes its long way */
        return 1 + floor(u * 1000) * 0x1p-50 + (i % 1000 ? 0 : -5);
    }
}

/* How far q is from the ranks that a value may have. */
static double rank_error(const double *sorted, size_t n, double q, double value)
{
    size_t below = 0, to = 0;
    while (below < n && sorted[below] < value)
        below++;
    for (to = below; to < n && sorted[to] <= value;)
        to++;
    const double low = (double)below / (double)n, high = (double)to / (double)n;
    return q < low ? low - q : q > high ? q - high : 0;
}

static void ranks_are_as_stated(void **state)
{
    (void)state;
    static const double qs[] = { 0, 0.0001, 0.01, 0.5, 0.9, 0.99, 0.9999, 1 };
    double *const x = malloc(NVALUES * sizeof *x);
    double *const sorted = malloc(NVALUES * sizeof *x);
    assert_non_null(x);
    assert_non_null(sorted);
    for (int which = 0; which < 5; which++) {
        uint64_t random = 7;
        for (size_t i = 0; i < NVALUES; i++)
            sorted[i] = x[i] = shape(which, i, &random);
        qsort(sorted, NVALUES, sizeof *x, by_value);
        bly_tdigest *t = made(0, BLY_TDIGEST_FINE);
        for (size_t i = 0, n = 1; i < NVALUES; i += n, n = n * 3 % 5003)
            assert_ok(bly_tdigest_add(t, x + i, NULL,
                                      n < NVALUES - i ? n : NVALUES - i));
        assert_true(bly_tdigest_quantile(t, 0) == sorted[0]);
        assert_true(bly_tdigest_quantile(t, 1) == sorted[NVALUES - 1]);
        for (size_t i = 0; i < COUNT_OF(qs); i++) {
            const double v = bly_tdigest_quantile(t, qs[i]);
            const double sd = bly_tdigest_deviation(t, qs[i]);
            assert_true(rank_error(sorted, NVALUES, qs[i], v) <= 4 * sd);
            assert_true(fabs(bly_tdigest_cdf(t, v) - qs[i]) <=
                        4 * sd + 1.0 / NVALUES);
        }
        double sum = 0;
        for (size_t i = 0; i < NVALUES; i++)
            sum += x[i];
        assert_true(fabs(bly_tdigest_trimmed_mean(t, 0, 1) - sum / NVALUES) <=
                    1e-9 * fabs(sum / NVALUES) + 1e-9);
        bly_tdigest_free(t);
    }
    free(x);
    free(sorted);
}

/* Means in order, with all the weight, whatever comes; and questions go up. */
static void means_stay_in_order(void **state)
{
    (void)state;
    static const double compressions[] = { 1, 10, 100, 600, 3000 };
    EACH_SCALE(scale)
    for (size_t c = 0; c < COUNT_OF(compressions); c++)
        for (int which = 0; which < 6; which++) {
            uint64_t random = 3;
            double total = 0, before = -INFINITY;
            bly_tdigest *t = made(compressions[c], scale);
            for (size_t i = 0; i < 20000; i++) {
                const double x = shape(which, i, &random);
                const uint64_t w = 1 + (i % 17 ? 0 : test_random(&random) % 99);
                assert_ok(bly_tdigest_add(t, &x, w > 1 ? &w : NULL, 1));
                total += (double)w;
            }
            bly_tdigest_settle(t);
            const bly_tdigest_stats s = stats_of(t);
            double sum = 0;
            for (uint64_t i = 0; i < s.nmerged; i++) {
                assert_true(s.means[i] >= before);
                before = s.means[i];
                sum += s.weights[i];
            }
            assert_true(s.min <= s.means[0] && before <= s.max);
            assert_true(sum == total && s.merged_weight == total);
            double last = s.min;
            for (int i = 0; i <= 1000; i++) {
                const double v = bly_tdigest_quantile(t, i / 1000.0);
                assert_true(v >= last - 1e-9 * fabs(last) && v <= s.max);
                last = v;
            }
            bly_tdigest_free(t);
        }
}

/* A weight is as many values. */
static void weights_are_values_many_times(void **state)
{
    (void)state;
    bly_tdigest *a = made(0, 0), *b = made(0, 0);
    for (uint64_t i = 0; i < 3000; i++) {
        const double x = (double)(i * 7919 % 3000);
        const uint64_t w = 1 + i % 4;
        assert_ok(bly_tdigest_add(a, &x, &w, 1));
        for (uint64_t j = 0; j < w; j++)
            assert_ok(bly_tdigest_add(b, &x, NULL, 1));
    }
    assert_true(weight_of(a) == weight_of(b));
    for (int i = 1; i < 100; i++)
        assert_true(fabs(bly_tdigest_quantile(a, i / 100.0) -
                         bly_tdigest_quantile(b, i / 100.0)) <= 10);
    bly_tdigest_free(a);
    bly_tdigest_free(b);
    /* between the mean of the last values and the greatest of them */
    const double x[] = { 1, 2, 3 };
    const uint64_t twice[] = { 2, 2, 2 };
    bly_tdigest *t = made(0, 0);
    assert_ok(bly_tdigest_add(t, x, twice, 3));
    assert_true(bly_tdigest_quantile(t, 5.0 / 6) == 3);
    bly_tdigest_free(t);
}

/* ---------------------------------------------------------------- merging */

static void parts_are_the_whole(void **state)
{
    (void)state;
    EACH_SCALE(scale)
    {
        bly_tdigest *parts[10], *all = made(0, scale);
        uint64_t random = 5;
        for (size_t p = 0; p < 10; p++) {
            parts[p] = made(p % 2 ? 50 : 200, scale);
            for (size_t i = 0; i < 5000; i++) {
                const double x = uniform(&random) + (double)p;
                assert_ok(bly_tdigest_add(parts[p], &x, NULL, 1));
            }
            assert_ok(bly_tdigest_merge(all, parts[p]));
        }
        assert_true(weight_of(all) == 50000);
        for (int i = 1; i < 10; i++)
            assert_true(fabs(bly_tdigest_quantile(all, i / 10.0) - i) < 0.4);
        assert_true(stats_of(all).min == stats_of(parts[0]).min);
        assert_true(stats_of(all).max == stats_of(parts[9]).max);
        for (size_t p = 0; p < 10; p++)
            bly_tdigest_free(parts[p]);
        /* With itself: twice the weight, the same answers, nearly. */
        const double median = bly_tdigest_quantile(all, 0.5);
        assert_ok(bly_tdigest_merge(all, all));
        assert_true(weight_of(all) == 100000);
        assert_true(fabs(bly_tdigest_quantile(all, 0.5) - median) < 0.4);
        /* An empty one changes nothing. */
        bly_tdigest *none = made(0, scale);
        assert_ok(bly_tdigest_merge(all, none));
        assert_ok(bly_tdigest_merge(none, all));
        assert_true(weight_of(none) == 100000);
        bly_tdigest_clear(none);
        assert_true(weight_of(none) == 0);
        bly_tdigest_free(none);
        bly_tdigest_free(all);
    }
}

/* -------------------------------------------------------------- bad input */

static void what_is_bad_changes_nothing(void **state)
{
    (void)state;
    const double bad[] = { NAN, INFINITY, -INFINITY };
    const uint64_t weights[] = { 1, 0, 1 };
    double values[9] = { 0 };
    bly_tdigest *t = made(0, 0);
    assert_ok(bly_tdigest_add(t, values, NULL, 2));
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        for (size_t at = 0; at < 9; at++) {
            values[at] = bad[i];
            assert_status(bly_tdigest_add(t, values, NULL, 9), BLY_EINVAL);
            values[at] = 0;
        }
    assert_status(bly_tdigest_add(t, values, weights, 3), BLY_EINVAL);
    assert_true(weight_of(t) == 2);
    const double bads[] = { 0.5, 1e10, -3, NAN };
    bly_tdigest *u;
    for (size_t i = 0; i < COUNT_OF(bads); i++) {
        const bly_tdigest_spec spec = { .compression = bads[i] };
        assert_status(bly_tdigest_new(&spec, &u), BLY_EINVAL);
        assert_null(u);
    }
    const bly_tdigest_spec spec = { .scale = 2 };
    assert_status(bly_tdigest_new(&spec, &u), BLY_EINVAL);
    bly_tdigest_free(t);
}

/* Values as far apart as they can be, and weights as large. */
static void far_and_heavy(void **state)
{
    (void)state;
    EACH_SCALE(scale)
    {
        bly_tdigest *t = made(20, scale);
        const double ends[] = { -DBL_MAX, DBL_MAX, 0, DBL_TRUE_MIN };
        for (int i = 0; i < 1000; i++)
            assert_ok(bly_tdigest_add(t, ends, NULL, 4));
        for (int i = 0; i <= 100; i++) {
            const double v = bly_tdigest_quantile(t, i / 100.0);
            assert_true(v >= -DBL_MAX && v <= DBL_MAX);
            const double q = bly_tdigest_cdf(t, v);
            assert_true(q >= 0 && q <= 1);
        }
        const double middle = DBL_MAX / 2, five = 5;
        const bly_tdigest_stats parts = { .compression = 20,
                                          .scale = scale,
                                          .min = -DBL_MAX,
                                          .max = DBL_MAX,
                                          .nmerged = 1,
                                          .means = &middle,
                                          .weights = &five };
        bly_tdigest *wide;
        assert_ok(bly_tdigest_restore(&parts, NULL, &wide));
        for (int i = -9; i <= 9; i++) {
            const double q = bly_tdigest_cdf(wide, i / 10.0 * DBL_MAX);
            assert_true(q > 0 && q < 1);
        }
        bly_tdigest_free(wide);
        bly_tdigest_settle(t);
        const bly_tdigest_stats s = stats_of(t);
        bly_tdigest *same; /* all means are finite, and in order */
        assert_ok(bly_tdigest_restore(&s, NULL, &same));
        bly_tdigest_free(same);
        bly_tdigest_clear(t);
        const uint64_t heavy = UINT64_C(1000000000000000000);
        for (int i = 0; i < 9; i++) {
            const double x = i;
            assert_ok(bly_tdigest_add(t, &x, &heavy, 1));
        }
        assert_status(bly_tdigest_add(t, ends, &heavy, 1), BLY_ERANGE);
        assert_status(bly_tdigest_merge(t, t), BLY_ERANGE);
        assert_true(weight_of(t) == 9e18);
        assert_true(fabs(bly_tdigest_quantile(t, 0.5) - 4) < 1);
        const double one = 1;
        for (int i = 0; i < 3000; i++) /* too light to be seen */
            assert_ok(bly_tdigest_add(t, &one, NULL, 1));
        assert_true(bly_tdigest_quantile(t, 1) == 8);
        bly_tdigest_free(t);
    }
}

static void parts_that_cannot_be(void **state)
{
    (void)state;
    const double means[] = { 1, 2, 3 }, weights[] = { 1, 5, 1 };
    const double low[] = { 0, 2, 3 }, mixed[] = { 1, 3, 2 };
    const double half[] = { 1, 0.5, 1 }, vast[] = { 1, 1e19, 1 };
    const double nans[] = { 1, NAN, 3 };
    const bly_tdigest_stats good = { .compression = 100,
                                     .min = 1,
                                     .max = 3,
                                     .nmerged = 3,
                                     .means = means,
                                     .weights = weights };
    bly_tdigest *t;
    assert_ok(bly_tdigest_restore(&good, NULL, &t));
    assert_true(weight_of(t) == 7);
    assert_true(bly_tdigest_quantile(t, 0.5) == 2);
    bly_tdigest_free(t);
    bly_tdigest_stats waits = good;
    waits.nmerged = 1;
    waits.nwaiting = 2;
    waits.means = mixed;
    assert_ok(bly_tdigest_restore(&waits, NULL, &t));
    assert_true(bly_tdigest_quantile(t, 0.8) == 3);
    bly_tdigest_free(t);
#define REFUSED(what)                                                  \
    do {                                                               \
        bly_tdigest_stats s = good;                                    \
        what;                                                          \
        assert_status(bly_tdigest_restore(&s, NULL, &t), BLY_EFORMAT); \
        assert_null(t);                                                \
    } while (0)
    REFUSED(s.means = low);
    REFUSED(s.means = mixed);
    REFUSED(s.means = nans);
    REFUSED(s.weights = half);
    REFUSED(s.weights = vast);
    REFUSED(s.weights = nans);
    REFUSED(s.max = 2.5);
    REFUSED(s.min = NAN);
    REFUSED(s.max = INFINITY);
    REFUSED(s.compression = 0);
    REFUSED(s.compression = NAN);
    REFUSED(s.scale = 2);
    REFUSED(s.nwaiting = UINT64_MAX);
    REFUSED(s.nmerged = 0; s.nwaiting = 1);
    REFUSED(s.compression = 1; s.scale = 1; s.nmerged = UINT64_C(1) << 40);
}

/* Parts that fill all places, or more than values of weight 1 would ever make:
 * there is room for what comes, nevertheless. */
static void full_parts_take_more(void **state)
{
    (void)state;
    static const double compressions[] = { 1, 10, 100 };
    EACH_SCALE(scale)
    for (size_t c = 0; c < COUNT_OF(compressions); c++) {
        bly_tdigest *t = made(compressions[c], scale);
        uint64_t most = 1; /* how many fit */
        for (bly_status st = BLY_OK; !st; most++) {
            double *const x = calloc(most, sizeof *x), *const w = x;
            assert_non_null(x);
            for (size_t i = 0; i < most; i++)
                x[i] = 1;
            const bly_tdigest_stats s = { .compression = compressions[c],
                                          .scale = scale,
                                          .min = 1,
                                          .max = 1,
                                          .nmerged = most,
                                          .means = x,
                                          .weights = w };
            bly_tdigest *full;
            st = bly_tdigest_restore(&s, NULL, &full);
            /* the last ones, and where memory is as large as what is there */
            if (!st &&
                (most < 20 || (most & (most - 1)) == 0 || most % 97 == 0 ||
                 (double)most >= 5 * compressions[c] + 9)) {
                for (int i = 0; i < 40; i++) {
                    const double more = i;
                    assert_ok(bly_tdigest_add(full, &more, NULL, 1));
                }
                assert_ok(bly_tdigest_merge(full, full));
                assert_true(weight_of(full) == 2 * (double)(most + 40));
                assert_true(bly_tdigest_quantile(full, 1) == 39);
            }
            bly_tdigest_free(full);
            free(x);
        }
        assert_true((double)most > 6 * compressions[c]);
        bly_tdigest_free(t);
    }
}

/* Values that come often are answers; there is nothing between them. */
static void what_comes_often_is_kept(void **state)
{
    (void)state;
    enum { N = 100000 };
    bly_tdigest *t = made(0, 0);
    uint64_t random = 5;
    for (size_t i = 0; i < N; i++) { /* 55 % are 1, 2 % are 7 */
        const double u = uniform(&random);
        const double x = u < 0.55 ? 1 : u < 0.57 ? 7 : 2 + 3 * uniform(&random);
        assert_ok(bly_tdigest_add(t, &x, NULL, 1));
    }
    for (int i = 1; i < 54; i++)
        assert_true(bly_tdigest_quantile(t, i / 100.0) == 1);
    assert_true(bly_tdigest_quantile(t, 0.985) == 7);
    assert_true(bly_tdigest_quantile(t, 0.6) > 1.9);
    assert_true(fabs(bly_tdigest_cdf(t, 1.5) - 0.55) < 0.02);
    assert_true(bly_tdigest_deviation(t, 0.3) < 0.01);
    bly_tdigest_clear(t);
    for (size_t i = 0; i < N; i++) { /* whole numbers below 100: all are */
        const double x = (double)(i * 7919 % 100);
        assert_ok(bly_tdigest_add(t, &x, NULL, 1));
    }
    for (int i = 0; i < 100; i++) {
        assert_true(bly_tdigest_quantile(t, (i + 0.5) / 100) == i);
        assert_true(fabs(bly_tdigest_rank(t, i) - (i + 0.5) * N / 100) < 1e-6);
        assert_true(bly_tdigest_deviation(t, (i + 0.5) / 100) == 0);
    }
    bly_tdigest_clear(t);
    assert_true(stats_of(t).nbytes <= 80); /* servers may hold millions */
    bly_tdigest_free(t);
}

static void memory_fails(void **state)
{
    (void)state;
    bool done = false;
    for (long fail = 0; !done; fail++) {
        ledger l;
        ledger_open(&l);
        l.fail_at = fail;
        const bly_tdigest_spec spec = { .mem = &l.mem };
        bly_tdigest *t = NULL, *copy = NULL;
        bly_status st = bly_tdigest_new(&spec, &t);
        for (int i = 0; i < 3000 && !st; i++) {
            const double x = i, was = weight_of(t);
            const uint64_t w = 3;
            st = bly_tdigest_add(t, &x, i % 100 == 99 ? &w : NULL, 1);
            assert_true(!st || weight_of(t) == was);
        }
        if (!st)
            st = bly_tdigest_copy(t, &copy);
        if (!st)
            st = bly_tdigest_merge(t, copy);
        if (!st)
            st = bly_tdigest_merge(t, t);
        assert_true(st == BLY_OK || st == BLY_ENOMEM);
        done = !st;
        bly_tdigest_free(t);
        bly_tdigest_free(copy);
        ledger_check(&l);
        assert_true(fail < 100);
    }
}

static void *move_once(void *ctx, void *at)
{
    (void)at;
    ++*(int *)ctx;
    return NULL;
}

static void two_blocks_move(void **state)
{
    (void)state;
    bly_tdigest *t = made(0, 0), *was = t;
    int n = 0;
    bly_tdigest_move(&t, move_once, &n);
    assert_int_equal(n, 1);
    const double x = 1;
    assert_ok(bly_tdigest_add(t, &x, NULL, 1));
    bly_tdigest_move(&t, move_once, &n);
    assert_int_equal(n, 3);
    assert_ptr_equal(t, was);
    bly_tdigest_free(t);
}

/* -------------------------------------------------------- decimal numbers */

static void decimals_are_as_strtod_reads_them(void **state)
{
    (void)state;
    static const char *const bad[] = { "",    ".",     "-",  "+.", "1e3", "nan",
                                       "--1", "1.2.3", " 1", "1 ", "0x1" };
    double got;
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_false(real_plain(bad[i], strlen(bad[i]), &got));
    uint64_t random = 11;
    size_t plain = 0;
    for (int i = 0; i < 300000; i++) {
        char text[40];
        const uint64_t r = test_random(&random);
        const uint64_t digits = test_random(&random) >> r % 63;
        const int behind = (int)(r >> 8 & 0xff) % 20;
        int n = snprintf(text, sizeof text, "%s%llu", r & 64 ? "-" : "",
                         (unsigned long long)digits);
        if (behind < n - 1 && behind) {
            memmove(text + n - behind + 1, text + n - behind,
                    (size_t)behind + 1);
            text[n++ - behind] = '.';
        }
        if (real_plain(text, (size_t)n, &got)) {
            plain++;
            if (got != strtod(text, NULL))
                fail_msg("%s: %.17g", text, got);
        }
    }
#if LDBL_MANT_DIG == 64
    assert_true(plain > 200000);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_one_has_no_answers),
        cmocka_unit_test(one_value_is_all_there_is),
        cmocka_unit_test(few_values_are_exact),
        cmocka_unit_test(the_peer_has_these_means),
        cmocka_unit_test(ranks_are_as_stated),
        cmocka_unit_test(means_stay_in_order),
        cmocka_unit_test(weights_are_values_many_times),
        cmocka_unit_test(parts_are_the_whole),
        cmocka_unit_test(what_is_bad_changes_nothing),
        cmocka_unit_test(far_and_heavy),
        cmocka_unit_test(parts_that_cannot_be),
        cmocka_unit_test(full_parts_take_more),
        cmocka_unit_test(what_comes_often_is_kept),
        cmocka_unit_test(memory_fails),
        cmocka_unit_test(two_blocks_move),
        cmocka_unit_test(decimals_are_as_strtod_reads_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
