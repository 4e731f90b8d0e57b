/*
 * test_aging.c - what is peculiar to the aging kind
 *
 * The rate by recursion, the window kept on both sides, additions and time and
 * both, clocks that jump. What it shares with every kind is in test_laws.c.
 */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/bits.h"
#include "kinds/filter.h"

static bly_spec aging_spec(uint64_t items, double fpr,
                           const bly_option *options)
{
    bly_spec spec = { .kind = "aging",
                      .items = items,
                      .fpr = fpr,
                      .seed = LAW_SEED,
                      .options = options };
    while (options && options[spec.noptions].name)
        spec.noptions++;
    return spec;
}

/* F(a, i) of the essay, as it stands there, for half-full slices. */
static double recursion(int k, int l, int a, int i)
{
    if (a == k)
        return 1;
    if (i == k + l)
        return 0;
    const double r = i < k ? 1 - exp(-(i + 1) * log(2) / k) : 0.5;
    return r * recursion(k, l, a + 1, i + 1) +
           (1 - r) * recursion(k, l, 0, i + 1);
}

/* Slices of kg / ln 2 bits: the reference rates, planned and measured. */
static void rates_by_recursion(void **state)
{
    (void)state;
    static const struct {
        const char *k, *l;
        double rate;
    } rows[] = { { "4", "3", 0.10740 },
                 { "6", "6", 0.03983 },
                 { "7", "5", 0.01283 } };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const int k = atoi(rows[i].k), l = atoi(rows[i].l), g = 5000;
        assert_near(recursion(k, l, 0, 0), rows[i].rate, 5e-4);
        const bly_option o[] = { { "k", rows[i].k },
                                 { "generations", rows[i].l },
                                 { 0 } };
        bly_spec spec = aging_spec((uint64_t)(g * l), 0, o);
        spec.bits = (uint64_t)((k + l) * ceil(k * g / log(2)));
        bly_prediction p;
        assert_ok(bly_plan(&spec, &p));
        assert_int_equal(fact_of(p.facts, p.nfacts, "generation")->uint, g);
        assert_near(fact_of(p.facts, p.nfacts, "fpr_steady")->real,
                    rows[i].rate, 1e-3);

        /* Long after the start, at the end of a generation. */
        bly_filter *f;
        assert_ok(bly_new(&spec, &f));
        uint64_t *h = hashes_for(&spec, 0, (size_t)(4 * (k + l) * g));
        size_t at = 0;
        while (at < (size_t)(2 * (k + l) * g) ||
               f->state[1] != (uint64_t)g) /* additions of this generation */
            assert_ok(bly_add_hash(f, h[at++]));
        const double q = 400000;
        const double seen = (double)hits(f, UINT64_C(1) << 40, (size_t)q) / q;
        assert_near(seen, rows[i].rate, 0.04);
        bly_stats stats;
        bly_stat(f, &stats);
        const double sd = sqrt(stats.fpr_now / q);
        assert_between(seen, stats.fpr_now - 5 * sd, stats.fpr_now + 5 * sd);
        /* Still to be found: the last l + 1 generations. */
        assert_between(fabs(stats.items_estimate - (l + 1) * g), 0,
                       5 * stats.items_sd);
        free(h);
        bly_free(f);
    }
}

/* Every key is found for the next l g additions, and after k + l generations
 * no more than the rate allows; key by key, at the very last one. */
static void window_of_additions(void **state)
{
    (void)state;
    static const char *const forms[] = { "partitioned", "rotating" };
    for (size_t form = 0; form < COUNT_OF(forms); form++) {
        const bly_option o[] = { { "form", forms[form] }, { 0 } };
        const bly_spec spec = aging_spec(600, 0.01, o);
        bly_filter *f;
        assert_ok(bly_new(&spec, &f));
        bly_stats stats;
        bly_peek(f, &stats);
        const uint64_t window =
            fact_of(stats.facts, stats.nfacts, "window_keys")->uint;
        const uint64_t gone =
            fact_of(stats.facts, stats.nfacts, "forgotten_after_keys")->uint;
        assert_true(window >= 600 && gone > window);
        enum { TOTAL = 6000 };
        uint64_t *h = hashes_for(&spec, 0, TOTAL), old = 0, found = 0;
        static uint64_t when[TOTAL]; /* additions that counted up to this key */
        for (uint64_t i = 0; i < TOTAL; i++) {
            assert_ok(bly_add_hash(f, h[i]));
            when[i] = f->nadded;
            for (uint64_t j = i + 1; j-- > 0 && when[i] - when[j] <= window;)
                assert_true(bly_has_hash(f, h[j]));
            if (i % 100)
                continue;
            for (uint64_t j = 0; j < i && when[i] - when[j] > gone; j++) {
                found += bly_has_hash(f, h[j]);
                old++;
            }
        }
        assert_between((double)found / (double)old, 0, 0.02);
        free(h);
        bly_free(f);
    }
}

/* The same by the clock, whatever the number of keys. */
static void window_of_time(void **state)
{
    (void)state;
    static const char *const forms[] = { "partitioned", "rotating" };
    for (size_t form = 0; form < COUNT_OF(forms); form++) {
        const bly_option o[] = { { "form", forms[form] },
                                 { "turn", "time" },
                                 { "seconds", "1000" },
                                 { 0 } };
        const bly_spec spec = aging_spec(2000, 0.01, o);
        bly_filter *f;
        assert_ok(bly_new(&spec, &f));
        bly_stats stats;
        bly_peek(f, &stats);
        const uint64_t window =
            fact_of(stats.facts, stats.nfacts, "window_seconds")->uint;
        const uint64_t gone =
            fact_of(stats.facts, stats.nfacts, "forgotten_after_seconds")->uint;
        assert_true(window >= 1000 && gone > window && gone < 2200);
        enum { SECONDS = 5000, ORIGIN = 1700000000 };
        uint64_t *h = hashes_for(&spec, 0, SECONDS), old = 0, found = 0;
        for (uint64_t t = 0; t < SECONDS; t++) {
            assert_ok(bly_tick(f, ORIGIN + t));
            assert_ok(bly_add_hash(f, h[t]));
            if (t % 7)
                continue;
            for (uint64_t j = t < window ? 0 : t - window; j <= t; j++)
                assert_true(bly_has_hash(f, h[j]));
            for (uint64_t j = 0; j + gone < t; j++) {
                found += bly_has_hash(f, h[j]);
                old++;
            }
        }
        assert_between((double)found / (double)old, 0, 0.02);

        /* Nothing more is added, and the clock goes on: all is forgotten. */
        assert_ok(bly_tick(f, ORIGIN + SECONDS + gone));
        assert_int_equal(hits(f, 0, SECONDS), 0);
        bly_stat(f, &stats);
        assert_near(stats.fpr_now, 0, 0);
        free(h);
        bly_free(f);
    }
}

/* Without a tick nothing is forgotten by time; the first tick is the origin;
 * backwards is nothing, and a leap of ages is no longer than the ring. */
static void clocks(void **state)
{
    (void)state;
    const bly_option o[] = { { "turn", "time" }, { "seconds", "100" }, { 0 } };
    const bly_spec spec = aging_spec(1000, 0.01, o);
    bly_filter *f = filled_from(&spec, 0, 1000), *g;
    assert_int_equal(hits(f, 0, 1000), 1000);
    assert_ok(bly_tick(f, UINT64_MAX - 500));
    assert_int_equal(hits(f, 0, 1000), 1000);
    assert_ok(bly_clone(f, &g));
    assert_ok(bly_tick(f, 0));
    assert_ok(bly_tick(f, UINT64_MAX - 501));
    assert_true(bly_equal(f, g));
    assert_ok(bly_tick(f, UINT64_MAX - 400));
    assert_int_equal(hits(f, 0, 1000), 1000);
    assert_ok(bly_tick(f, UINT64_MAX));
    assert_int_equal(hits(f, 0, 1000), 0);
    bly_free(f);

    f = filled_from(&spec, 0, 1000);
    assert_ok(bly_tick(f, 0));
    assert_ok(bly_tick(f, UINT64_MAX));
    assert_int_equal(hits(f, 0, 1000), 0);
    assert_true(f->kind->sound(f));
    /* Time goes with the file. */
    byte_array a = written(f);
    bly_filter *h;
    assert_ok(bly_load(a.at, a.n, NULL, &h));
    assert_true(bly_equal(f, h));
    free(a.at);
    bly_free(f);
    bly_free(g);
    bly_free(h);

    /* Where additions turn it, time does not. */
    const bly_spec plain = aging_spec(1000, 0.01, NULL);
    f = filled_from(&plain, 0, 1000);
    assert_ok(bly_clone(f, &g));
    assert_ok(bly_tick(f, 1));
    assert_ok(bly_tick(f, UINT64_MAX));
    assert_true(bly_equal(f, g));
    bly_free(f);
    bly_free(g);
}

/* Either: a additions and t seconds after it, a key is there while
 * a / g + t / T <= l. */
static void window_of_either(void **state)
{
    (void)state;
    const bly_option o[] = { { "seconds", "500" }, { 0 } };
    const bly_spec spec = aging_spec(500, 0.01, o);
    bly_filter *f;
    assert_ok(bly_new(&spec, &f));
    assert_int_equal(f->shape.p[6], 2); /* turn */
    const double l = (double)f->shape.p[2], g = (double)f->shape.p[4],
                 t = (double)f->shape.p[5];
    enum { TOTAL = 4000 };
    static uint64_t when[TOTAL], seconds[TOTAL];
    uint64_t *h = hashes_for(&spec, 0, TOTAL), rng = 3, now = 1000;
    for (size_t i = 0; i < TOTAL; i++) {
        /* Bursts and pauses. */
        if (test_random(&rng) % 4 == 0)
            now += test_random(&rng) % 5;
        assert_ok(bly_tick(f, now));
        assert_ok(bly_add_hash(f, h[i]));
        when[i] = f->nadded;
        seconds[i] = now;
        for (size_t j = i + 1; j-- > 0;) {
            const double age = (double)(when[i] - when[j]) / g +
                               (double)(now - seconds[j]) / t;
            if (age > l)
                break;
            assert_true(bly_has_hash(f, h[j]));
        }
    }
    assert_ok(bly_tick(f, now + 10000));
    assert_int_equal(hits(f, 0, TOTAL), 0);
    free(h);
    bly_free(f);
}

/* A key that is added again is as young as if it were new, and does not count
 * while it is among the youngest. */
static void touching_renews(void **state)
{
    (void)state;
    const bly_spec spec = aging_spec(1000, 0.01, NULL);
    bly_filter *f;
    assert_ok(bly_new(&spec, &f));
    uint64_t *h = hashes_for(&spec, 0, 20001);
    for (size_t i = 0; i < 20000; i++) {
        assert_ok(bly_add_hash(f, h[i]));
        assert_ok(bly_add_hash(f, h[20000]));
        assert_true(bly_has_hash(f, h[20000]));
        if (i >= 900)
            assert_true(bly_has_hash(f, h[i - 900]));
    }
    free(h);
    bly_free(f);
}

/* The plan needs less than the rotating form, and finer generations forget
 * sooner. What is promised is what holds for ever. */
static void plans(void **state)
{
    (void)state;
    bly_prediction ring, pair, fine, timed;
    bly_spec spec = aging_spec(1000000, 0.01, NULL);
    assert_ok(bly_plan(&spec, &ring));
    assert_near(fact_of(ring.facts, ring.nfacts, "fpr_steady")->real, 0.01,
                1e-3);
    assert_between(ring.fpr, 0.005, 0.01);
    assert_between(ring.bits_per_key, 19.5, 20.3);
    const bly_option rotating[] = { { "form", "rotating" }, { 0 } };
    spec = aging_spec(1000000, 0.01, rotating);
    assert_ok(bly_plan(&spec, &pair));
    assert_near(fact_of(pair.facts, pair.nfacts, "fpr_steady")->real, 0.01,
                1e-3);
    assert_between(pair.bits_per_key, 21.9, 22.2);
    const bly_option granular[] = { { "granularity", "2%" }, { 0 } };
    spec = aging_spec(1000000, 0.01, granular);
    assert_ok(bly_plan(&spec, &fine));
    assert_true(fact_of(fine.facts, fine.nfacts, "generations")->uint >= 50);
    assert_true(fact_of(fine.facts, fine.nfacts, "forgotten_after_keys")->uint <
                fact_of(ring.facts, ring.nfacts, "forgotten_after_keys")->uint);
    const bly_option time[] = { { "turn", "time" },
                                { "seconds", "3600" },
                                { 0 } };
    spec = aging_spec(1000000, 0.01, time);
    assert_ok(bly_plan(&spec, &timed));
    assert_true(fact_of(timed.facts, timed.nfacts, "window_seconds")->uint >=
                3600);
    assert_true(timed.fpr <= 0.01 &&
                fact_of(timed.facts, timed.nfacts, "fpr_steady")->real <= 0.01);
}

static void options_out_of_range(void **state)
{
    (void)state;
    static const bly_option bad[][3] = {
        { { "form", "square" } },
        { { "k", "0" } },
        { { "k", "65" } },
        { { "generations", "0" } },
        { { "generations", "129" } },
        { { "granularity", "0.001" } },
        { { "granularity", "2" } },
        { { "seconds", "0" } },
        { { "turn", "never" } },
        { { "turn", "additions" }, { "seconds", "5" } },
        { { "form", "rotating" }, { "generations", "2" } },
        { { "form", "rotating" }, { "granularity", "0.5" } },
        { { "generations", "3" }, { "granularity", "0.1" } },
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        const bly_spec spec = aging_spec(1000, 0.01, bad[i]);
        bly_prediction p;
        assert_status(bly_plan(&spec, &p), BLY_EINVAL);
    }
}

/* State that a file may claim and the kind never has. */
static void state_from_outside(void **state)
{
    (void)state;
    const bly_option o[] = { { "seconds", "100" }, { 0 } };
    const bly_spec spec = aging_spec(100, 0.01, o);
    bly_filter *f = filled_from(&spec, 0, 100);
    assert_ok(bly_tick(f, 50));
    assert_true(f->kind->sound(f) && f->kind->check(f));
    const uint64_t period = f->shape.p[5], g = f->shape.p[4];
    const struct {
        int word;
        uint64_t value;
    } bad[] = {
        { 0, f->shape.p[1] + f->shape.p[2] }, /* youngest past the ring */
        { 1, g + 1 },                         /* a generation overfull */
        { 2, 2 },                             /* a clock that is neither */
        { 2, 0 },                             /* none, but a time */
        { 3, 51 },                            /* begun in the future */
        { 4, 50 + period },                   /* should have turned */
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        const uint64_t was = f->state[bad[i].word];
        f->state[bad[i].word] = bad[i].value;
        assert_false(f->kind->sound(f));
        f->state[bad[i].word] = was;
    }
    assert_true(f->kind->sound(f));
    const uint64_t s = f->shape.p[3];
    if (s % 64) {
        bly_bit_set((uint64_t *)(void *)f->data, s); /* behind slice 0 */
        assert_false(f->kind->check(f));
    }
    for (unsigned i = 0; i < f->kind->nparams; i++) {
        bly_shape shape = bly_shape_of(f);
        shape.p[i] = UINT64_MAX;
        assert_false(f->kind->sane(&shape));
        shape.p[i] = bly_shape_of(f).p[i] + 1;
        if (i != 4 && i != 5 && i != 3)
            assert_false(f->kind->sane(&shape));
    }
    bly_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_by_recursion),
        cmocka_unit_test(window_of_additions),
        cmocka_unit_test(window_of_time),
        cmocka_unit_test(clocks),
        cmocka_unit_test(window_of_either),
        cmocka_unit_test(touching_renews),
        cmocka_unit_test(plans),
        cmocka_unit_test(options_out_of_range),
        cmocka_unit_test(state_from_outside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
