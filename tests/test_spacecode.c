/*
 * test_spacecode.c - what is peculiar to the space-code filter
 *
 * The tables of what a number of used groups means; estimates within what
 * chance allows, from one array and from many; a generator that repeats.
 */
#include "tests/support.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/bits.h"
#include "core/occupancy.h"
#include "engine/bit_count.h"
#include "kinds/filter.h"

/* --------------------------------------------------------------- the tables */

static void the_table_of_likeliest_counts(void **state)
{
    (void)state;
    static const unsigned thetas[] = { 1, 2, 4, 8, 12, 16, 20, 24, 28, 30, 31 };
    static const struct {
        double f;
        uint64_t x[COUNT_OF(thetas)];
    } rows[] = {
        { 0, { 1, 2, 4, 9, 14, 22, 31, 44, 66, 88, 109 } },
        { 0.01, { 1, 2, 4, 8, 14, 21, 30, 43, 65, 87, 109 } },
        { 0.05, { 0, 1, 3, 8, 13, 20, 29, 42, 64, 86, 108 } },
    };
    for (size_t r = 0; r < COUNT_OF(rows); r++) {
        for (size_t i = 0; i < COUNT_OF(thetas); i++)
            assert_int_equal(bly_occupancy_mle(32, rows[r].f, thetas[i]),
                             rows[r].x[i]);
        assert_int_equal(bly_occupancy_mle(32, rows[r].f, 0), 0);
        assert_true(bly_occupancy_mle(32, rows[r].f, 32) == BLY_OCCUPANCY_ALL);
        assert_true(bly_occupancy_mean(32, rows[r].f, 32) == BLY_OCCUPANCY_ALL);
    }
}

/* P(theta | x) by the closed form with Stirling numbers, S2(x, j) j! by
 * inclusion and exclusion: another way than the library's. */
static long double likelihood(unsigned l, long double f, unsigned theta,
                              unsigned x)
{
    long double sum = 0;
    for (unsigned j = 0; j <= theta; j++) {
        long double onto = 0; /* S2(x,j) j! / l^x */
        for (unsigned i = 0; i <= j; i++) {
            const long double c = expl(lgammal(j + 1.0L) - lgammal(i + 1.0L) -
                                       lgammal(j - i + 1.0L));
            const long double term =
                c * (x ? powl((long double)(j - i) / l, x) : 1);
            onto += i % 2 ? -term : term;
        }
        const long double choose =
            expl(lgammal(l + 1.0L) - lgammal(j + 1.0L) - lgammal(l - j + 1.0L));
        const long double looks =
            expl(lgammal(l - j + 1.0L) - lgammal(theta - j + 1.0L) -
                 lgammal(l - theta + 1.0L)) *
            powl(f, theta - j) * powl(1 - f, l - theta);
        sum += choose * onto * looks;
    }
    return sum;
}

/* The library stops at the first top; there is no second. */
static void the_likeliest_of_all(void **state)
{
    (void)state;
    static const double fs[] = { 0, 0.003, 0.1, 0.4 };
    for (unsigned l = 2; l <= 12; l += 5)
        for (size_t i = 0; i < COUNT_OF(fs); i++)
            for (unsigned theta = 0; theta < l; theta++) {
                unsigned best = 0;
                for (unsigned x = 1; x < 80; x++)
                    if (likelihood(l, fs[i], theta, x) >
                        likelihood(l, fs[i], theta, best) * (1 + 1e-12L))
                        best = x;
                assert_int_equal(bly_occupancy_mle(l, fs[i], theta), best);
            }
}

static void the_nearest_expectation(void **state)
{
    (void)state;
    static const double fs[] = { 0, 0.003, 0.1, 0.4 };
    for (unsigned l = 2; l <= 128; l *= 2)
        for (size_t i = 0; i < COUNT_OF(fs); i++)
            for (unsigned theta = 0; theta < l; theta++) {
                double best = INFINITY, expected;
                uint64_t at = 0;
                for (uint64_t x = 0; x < 1000; x++) {
                    expected =
                        l * (1 - (1 - fs[i]) * pow(1 - 1.0 / l, (double)x));
                    if (fabs(expected - theta) < best - 1e-9) {
                        best = fabs(expected - theta);
                        at = x;
                    }
                }
                assert_int_equal(bly_occupancy_mean(l, fs[i], theta), at);
            }
}

/* Whatever the arguments, it ends and is finite. */
static void degenerate_urns(void **state)
{
    (void)state;
    for (unsigned l = 1; l <= BLY_MAX_URNS; l++)
        for (unsigned theta = 0; theta <= l; theta++) {
            const uint64_t full = bly_occupancy_mle(l, 1, theta);
            assert_true(theta == l ? full == BLY_OCCUPANCY_ALL : full == 0);
            assert_true(theta == l ||
                        bly_occupancy_mle(l, 0, theta) <= 16 * l * l);
            bly_occupancy_mean(l, 1, theta);
        }
}

/* ---------------------------------------------------------------- filters */

typedef struct options {
    bly_option at[8];
    size_t n;
} options;

static bly_spec spec_with(uint64_t items, double fpr, const options *o)
{
    return (bly_spec){ .kind = "spacecode",
                       .items = items,
                       .fpr = fpr,
                       .options = o->at,
                       .noptions = o->n };
}

static bly_filter *made(uint64_t items, double fpr, const options *o)
{
    const bly_spec spec = spec_with(items, fpr, o);
    bly_filter *f;
    assert_ok(bly_new(&spec, &f));
    return f;
}

static const options single = { { { "filters", "1" } }, 1 };

/* 16.8 bits per key in the first array, 22.4 in all; one array alone has k = 12
 * and takes what a classic filter of rate 1 - 0.99^(1/32) takes. */
static void planned_sizes(void **state)
{
    (void)state;
    bly_prediction p;
    bly_spec spec = spec_with(1000000, 0.01, &single);
    assert_ok(bly_plan(&spec, &p));
    assert_near(p.bits_per_key, 16.8, 0.01);
    assert_near(p.fpr, 0.01, 0.002);
    assert_int_equal(fact_of(p.facts, p.nfacts, "k")->uint, 12);
    assert_near(fact_of(p.facts, p.nfacts, "group_fpr")->real, 0.000314, 0.01);
    assert_near(fact_of(p.facts, p.nfacts, "ceiling")->real, 110.9, 0.001);
    spec.noptions = 0;
    assert_ok(bly_plan(&spec, &p));
    assert_near(p.bits_per_key, 22.4, 0.01);
    assert_int_equal(fact_of(p.facts, p.nfacts, "taper")->uint, 16384);
    assert_near(fact_of(p.facts, p.nfacts, "ceiling")->real, 110.9 * 16384,
                0.001);
    /* Keys that come often use more groups, but no more than there are. */
    const options often = { { { "filters", "1" }, { "mean", "10" } }, 2 };
    spec.options = often.at;
    spec.noptions = often.n;
    assert_ok(bly_plan(&spec, &p));
    assert_near(p.bits_per_key, 16.8 * 32 * (1 - pow(31 / 32.0, 10)), 0.01);
}

static void planned_for_memory(void **state)
{
    (void)state;
    static const uint64_t bits[] = { 100, 5000, 100000, 10000000 };
    for (size_t i = 0; i < COUNT_OF(bits); i++) {
        for (int many = 0; many < 2; many++) {
            bly_spec spec = { .kind = "spacecode",
                              .items = 10000,
                              .bits = bits[i] };
            if (!many) {
                spec.options = single.at;
                spec.noptions = single.n;
            }
            bly_prediction p;
            assert_ok(bly_plan(&spec, &p));
            assert_true(p.bits <= bits[i]);
            assert_true((double)p.bits >= (double)bits[i] * 0.99 - 16);
        }
    }
    const bly_spec least = { .kind = "spacecode", .items = 10, .bits = 7 };
    bly_prediction p;
    assert_status(bly_plan(&least, &p), BLY_EINVAL);
}

/* An absent key looks as if it had come at the planned rate: within 2 %, over
 * twenty filters of 20000 keys and 20000 questions each. One deviation is 0.5 %
 * by the questions and 0.3 % by the filters. */
static void keeps_its_rate(void **state)
{
    (void)state;
    enum { N = 20000, SEEDS = 20 };
    static uint64_t counts[N];
    double wrong = 0, planned = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        bly_spec spec = spec_with(N, 0.1, &single);
        spec.seed = seed;
        bly_filter *f = filled_from(&spec, 0, N);
        uint64_t *h = hashes_for(&spec, N, N);
        bly_stats s;
        bly_stat(f, &s);
        planned = s.fpr_at_capacity;
        assert_near(s.fpr_now, planned, 0.1);
        assert_ok(bly_count_hashes(f, h, N, counts));
        for (size_t i = 0; i < N; i++)
            wrong += counts[i] > 0;
        free(h);
        bly_free(f);
    }
    assert_near(wrong / (N * SEEDS), planned, 0.02);
}

/* What x additions are estimated as on average: below x for the small ones,
 * where a group chosen twice is one that is missing. 5 gives 4.697. */
static double expected_estimate(unsigned l, double f, unsigned x, bool by_mean)
{
    long double sum = 0;
    for (unsigned theta = 0; theta < l; theta++)
        sum += likelihood(l, f, theta, x) *
               (long double)(by_mean ? bly_occupancy_mean(l, f, theta)
                                     : bly_occupancy_mle(l, f, theta));
    return (double)sum;
}

/* 2000 keys that came x times each: the mean of the estimates is what theory
 * says, with both estimators; a deviation is 0.6 % at most. */
static void one_array_counts(void **state)
{
    (void)state;
    static const uint64_t xs[] = { 1, 2, 5, 10, 20, 40, 70 };
    assert_near(expected_estimate(32, 0, 5, false), 4.697, 0.0005);
    for (int e = 0; e < 2; e++) {
        const options o = { { { "filters", "1" },
                              { "mean", "22" },
                              { "estimate", e ? "mean" : "mle" } },
                            3 };
        enum { EACH = 2000 };
        const size_t nkeys = EACH * COUNT_OF(xs);
        bly_filter *f = made(nkeys, 0.01, &o);
        uint64_t *h = hashes_for(&(bly_spec){ .seed = 0 }, 0, nkeys);
        for (size_t i = 0; i < nkeys; i++)
            assert_ok(bly_increase_hashes(f, &h[i], &xs[i / EACH], 1, NULL));
        bly_stats s;
        bly_peek(f, &s);
        const double unused = fact_of(s.facts, s.nfacts, "group_fpr")->real;
        for (size_t x = 0; x < COUNT_OF(xs); x++) {
            double sum = 0, squares = 0;
            for (size_t i = x * EACH; i < (x + 1) * EACH; i++) {
                const uint64_t c = count_of(f, h[i]);
                assert_true(c >= 1);
                if (c == UINT64_MAX)
                    continue; /* all groups used: 3 in 1000 of 70 times */
                sum += (double)c;
                const double off = (double)c / (double)xs[x] - 1;
                squares += off * off;
            }
            assert_near(sum / EACH,
                        expected_estimate(32, unused, (unsigned)xs[x], e != 0),
                        0.02);
            assert_between(sqrt(squares / EACH), 0, 0.25);
        }
        assert_true(f->kind->check(f));
        free(h);
        bly_free(f);
    }
}

/* Over four orders of magnitude the relative error stays below 30 %. */
static void many_resolutions_count(void **state)
{
    (void)state;
    enum { EACH = 400 };
    static const uint64_t xs[] = { 10, 100, 1000, 10000, 100000 };
    const options o = { { { "mean", "22222" } }, 1 };
    const size_t nkeys = EACH * COUNT_OF(xs);
    bly_filter *f = made(nkeys, 0.01, &o);
    uint64_t *h = hashes_for(&(bly_spec){ .seed = 0 }, 0, nkeys);
    /* Those of 10000 and less one by one, in turns; then the rest. */
    for (uint64_t round = 0; round < 1000; round++)
        for (size_t x = 0; x < COUNT_OF(xs); x++)
            if (round < xs[x] && xs[x] <= 1000)
                assert_ok(bly_add_hashes(f, h + x * EACH, EACH, NULL, NULL));
    for (size_t i = 3 * EACH; i < nkeys; i++)
        assert_ok(bly_increase_hashes(f, &h[i], &xs[i / EACH], 1, NULL));
    for (size_t x = 0; x < COUNT_OF(xs); x++) {
        double sum = 0, squares = 0, absolute = 0;
        for (size_t i = x * EACH; i < (x + 1) * EACH; i++) {
            const double off = (double)count_of(f, h[i]) / (double)xs[x] - 1;
            sum += off;
            absolute += fabs(off);
            squares += off * off;
        }
        print_message(
            "%6llu times: mean %+.1f %%, error %.1f %%, rms %.1f %%\n",
            (unsigned long long)xs[x], 100 * sum / EACH, 100 * absolute / EACH,
            100 * sqrt(squares / EACH));
        assert_between(sum / EACH, -0.06, 0.06);
        assert_between(absolute / EACH, 0, 0.3);
        assert_between(sqrt(squares / EACH), 0, 0.35);
    }
    free(h);
    bly_free(f);
}

/* Past the last array's ceiling there is no number. */
static void past_the_ceiling(void **state)
{
    (void)state;
    bly_filter *f = made(100, 0.01, &single);
    const uint64_t h = 42, by[] = { UINT64_MAX, UINT64_MAX };
    size_t ndone;
    assert_ok(bly_increase_hashes(f, &h, by, 1, &ndone));
    assert_int_equal(ndone, 1);
    assert_true(count_of(f, h) == UINT64_MAX);
    bly_stats s;
    bly_peek(f, &s);
    assert_near(fact_of(s.facts, s.nfacts, "ceiling")->real, 32 * log(32),
                1e-12);
    bly_free(f);
    f = made(100, 0.01, &(options){ .n = 0 });
    const uint64_t twice[] = { h, h };
    assert_ok(bly_increase_hashes(f, twice, by, 2, &ndone));
    assert_true(count_of(f, h) == UINT64_MAX);
    bly_free(f);
}

/* With p0 below 1 the first array misses some. */
static void sampled_from_the_first(void **state)
{
    (void)state;
    enum { N = 4000 };
    const options o = {
        { { "p0", "0.25" }, { "filters", "3" }, { "mean", "40" } }, 3
    };
    bly_filter *f = made(N, 0.01, &o);
    uint64_t *h = hashes_for(&(bly_spec){ .seed = 0 }, 0, N);
    for (int i = 0; i < 40; i++)
        assert_ok(bly_add_hashes(f, h, N, NULL, NULL));
    double sum = 0;
    for (size_t i = 0; i < N; i++)
        sum += (double)count_of(f, h[i]);
    /* Ten of forty are recorded, and ten are taken for 9.6. */
    assert_near(sum / N, 38.4, 0.02);
    free(h);
    bly_free(f);
}

/* ------------------------------------------------------------ repeating */

static void the_generator_repeats(void **state)
{
    (void)state;
    enum { N = 3000 };
    const options o = { .n = 0 };
    bly_filter *a = made(N, 0.01, &o), *b = made(N, 0.01, &o), *c;
    uint64_t *h = hashes_for(&(bly_spec){ .seed = 0 }, 0, N);
    assert_ok(bly_add_hashes(a, h, N, NULL, NULL));
    /* Singly, in odd batches, and through a file in between. */
    for (size_t i = 0; i < 100; i++)
        assert_ok(bly_add_hash(b, h[i]));
    assert_ok(bly_add_hashes(b, h + 100, 37, NULL, NULL));
    byte_array bytes = written(b);
    assert_ok(bly_load(bytes.at, bytes.n, NULL, &c));
    for (size_t i = 137; i < N; i += 53)
        assert_ok(
            bly_add_hashes(c, h + i, N - i < 53 ? N - i : 53, NULL, NULL));
    assert_true(bly_equal(a, c));
    /* A few times at once is the same as one after another. */
    const uint64_t three = 3;
    assert_ok(bly_increase_hashes(a, h, &three, 1, NULL));
    for (int i = 0; i < 3; i++)
        assert_ok(bly_add_hash(c, h[0]));
    assert_true(bly_equal(a, c));
    /* Adding the same keys again draws again. */
    bly_filter *before;
    assert_ok(bly_clone(a, &before));
    assert_ok(bly_add_hashes(a, h, N, NULL, NULL));
    assert_false(bly_equal(a, before));
    free(bytes.at);
    free(h);
    bly_free(a);
    bly_free(b);
    bly_free(c);
    bly_free(before);
}

/* Two streams, one after the other in one filter or merged from two: the same
 * estimates but for chance. */
static void merging_adds_up(void **state)
{
    (void)state;
    enum { N = 2000, TIMES = 8 };
    const options o = { { { "mean", "16" } }, 1 };
    bly_filter *a = made(N, 0.01, &o), *b = made(N, 0.01, &o);
    uint64_t *h = hashes_for(&(bly_spec){ .seed = 0 }, 0, N);
    /* The same keys at the same places of both streams but the first. */
    assert_ok(bly_add(b, "another beginning", 17));
    for (int i = 0; i < TIMES; i++) {
        assert_ok(bly_add_hashes(a, h, N, NULL, NULL));
        assert_ok(bly_add_hashes(b, h, N, NULL, NULL));
    }
    assert_ok(bly_merge(a, b));
    assert_true(a->kind->check(a));
    double sum = 0;
    for (size_t i = 0; i < N; i++)
        sum += (double)count_of(a, h[i]);
    assert_near(sum / N, 2 * TIMES, 0.03);
    bly_free(a);
    bly_free(b);
    free(h);
}

static void fresh_are_those_without_a_trace(void **state)
{
    (void)state;
    enum { N = 2000 };
    bly_filter *f = made(N, 0.01, &single);
    uint64_t *h = hashes_for(&(bly_spec){ .seed = 0 }, 0, N);
    uint64_t fresh[BLY_BITMAP_WORDS(N)];
    uint64_t seen = 0;
    assert_ok(bly_add_hashes(f, h, N, fresh, NULL));
    seen = bly_bits_count(fresh, BLY_BITMAP_WORDS(N));
    assert_between((double)seen, N * 0.98, N);
    assert_ok(bly_add_hashes(f, h, N, fresh, NULL));
    assert_int_equal(bly_bits_count(fresh, BLY_BITMAP_WORDS(N)), 0);
    free(h);
    bly_free(f);
}

/* ---------------------------------------------------------------- threads */

typedef struct writer {
    bly_filter *f;
    const uint64_t *h;
    size_t n;
} writer;

static void *write_all(void *arg)
{
    const writer *w = arg;
    uint64_t count;
    for (int round = 0; round < 5; round++) {
        for (size_t i = 0; i < w->n; i += 50)
            (void)!bly_add_hashes(w->f, w->h + i, 50, NULL, NULL);
        bly_count_hashes(w->f, w->h, 1, &count);
    }
    return NULL;
}

static void shared_additions_are_counted(void **state)
{
    (void)state;
    enum { N = 2000, THREADS = 4 };
    const options o = { { { "mean", "20" } }, 1 };
    bly_spec spec = spec_with(N, 0.01, &o);
    spec.shared = true;
    bly_filter *f;
    assert_ok(bly_new(&spec, &f));
    uint64_t *h = hashes_for(&spec, 0, N);
    pthread_t threads[THREADS];
    writer w = { f, h, N };
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_all, &w), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    /* No bit was counted twice or not at all. */
    assert_true(f->kind->check(f));
    double sum = 0;
    for (size_t i = 0; i < N; i++)
        sum += (double)count_of(f, h[i]);
    assert_near(sum / N, 5 * THREADS, 0.03);
    free(h);
    bly_free(f);
}

/* --------------------------------------------------------------- bad input */

static void options_out_of_range(void **state)
{
    (void)state;
    static const bly_option bad[] = {
        { "groups", "1" },     { "groups", "129" }, { "k", "0" },
        { "k", "65" },         { "filters", "0" },  { "filters", "17" },
        { "p0", "0" },         { "p0", "1.1" },     { "beta", "1" },
        { "beta", "0" },       { "mean", "0.5" },   { "mean", "nan" },
        { "estimate", "max" }, { "taper", "1" },
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        const bly_spec spec = {
            .kind = "spacecode", .items = 100, .options = &bad[i], .noptions = 1
        };
        bly_prediction p;
        assert_status(bly_plan(&spec, &p), BLY_EINVAL);
    }
    const bly_spec spec = { .kind = "spacecode",
                            .items = UINT64_C(1) << 48,
                            .fpr = 0.01 };
    bly_prediction p;
    assert_status(bly_plan(&spec, &p), BLY_ERANGE);
}

static void insane_shapes_and_damaged_data(void **state)
{
    (void)state;
    bly_filter *f = made(1000, 0.01, &(options){ .n = 0 });
    const bly_kind *kind = f->kind;
    const bly_shape good = bly_shape_of(f);
    bly_shape s;
    assert_true(kind->sane(&good));
#define INSANE(change)                \
    do {                              \
        s = good;                     \
        change;                       \
        assert_false(kind->sane(&s)); \
    } while (0)
    INSANE(s.nbytes += 8);
    INSANE(s.nbytes = 0);
    INSANE(s.p[0] = 0);
    INSANE(s.p[0] = UINT64_MAX);
    INSANE(s.p[1] = 1);
    INSANE(s.p[1] = 129);
    INSANE(s.p[2] = 0);
    INSANE(s.p[2] = UINT64_MAX);
    INSANE(s.p[3] = 0);
    INSANE(s.p[3] = 17);
    INSANE(bly_shape_set_real(&s, 4, NAN));
    INSANE(bly_shape_set_real(&s, 4, 0));
    INSANE(bly_shape_set_real(&s, 5, 1));
    INSANE(bly_shape_set_real(&s, 6, INFINITY));
    INSANE(s.p[7] = 0);
    INSANE(s.p[7] = 65537);
    INSANE(s.p[8] = 2);
#undef INSANE
    assert_ok(bly_add_hash(f, 1));
    assert_true(kind->check(f));
    uint64_t *words = (uint64_t *)(void *)f->data;
    words[0] ^= bly_le64(1);
    assert_false(kind->check(f));
    words[0] ^= bly_le64(1);
    f->data[f->shape.nbytes - 1] ^= 0x80; /* a bit past the end, or one more */
    assert_false(kind->check(f));
    f->data[f->shape.nbytes - 1] ^= 0x80;
    assert_true(kind->check(f));
    /* Any bytes can be asked. */
    uint64_t random = 1;
    for (uint64_t i = 0; i < f->shape.nbytes; i++)
        f->data[i] = (unsigned char)test_random(&random);
    bly_stats stats;
    bly_stat(f, &stats);
    for (int i = 0; i < 1000; i++)
        count_of(f, test_random(&random));
    bly_filter *g = made(1000, 0.01, &(options){ .n = 0 });
    assert_status(bly_merge(g, f), BLY_EFORMAT);
    bly_free(f);
    bly_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_of_likeliest_counts),
        cmocka_unit_test(the_likeliest_of_all),
        cmocka_unit_test(the_nearest_expectation),
        cmocka_unit_test(degenerate_urns),
        cmocka_unit_test(planned_sizes),
        cmocka_unit_test(planned_for_memory),
        cmocka_unit_test(keeps_its_rate),
        cmocka_unit_test(one_array_counts),
        cmocka_unit_test(many_resolutions_count),
        cmocka_unit_test(past_the_ceiling),
        cmocka_unit_test(sampled_from_the_first),
        cmocka_unit_test(the_generator_repeats),
        cmocka_unit_test(merging_adds_up),
        cmocka_unit_test(fresh_are_those_without_a_trace),
        cmocka_unit_test(shared_additions_are_counted),
        cmocka_unit_test(options_out_of_range),
        cmocka_unit_test(insane_shapes_and_damaged_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
