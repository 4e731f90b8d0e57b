/*
 * test_exact.c - what is peculiar to the kind exact
 *
 * Right for every key of the universe, at any share of members; the size
 * against the entropy; repeats, members that the others name too, orders and
 * threads; keys outside, at the stated rate; and calls in the wrong order. What
 * it shares with every kind is in test_laws.c, and its ribbons in
 * test_ribbon.c.
 */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/bits.h"

#define BATCH 4096

typedef struct universe {
    uint64_t members, others;
    uint64_t salt;
    double fpr;        /* for keys outside; 0.5: whatever takes least */
    unsigned nthreads; /* that finish it */
    bool backwards;    /* members and others in another order */
} universe;

static uint64_t key_of(const universe *u, uint64_t i)
{
    return bly_mix64(u->salt << 40 ^ i);
}

/* Hashes of n <= BATCH keys from the i-th on. */
static void keys_of(const universe *u, uint64_t i, size_t n, uint64_t *out)
{
    for (size_t j = 0; j < n; j++)
        out[j] = key_of(u, i + j);
}

static bly_builder *begun(const universe *u)
{
    char text[32];
    const bly_option option = { "others", text };
    const bly_spec spec = { .kind = "exact",
                            .fpr = u->fpr,
                            .seed = LAW_SEED,
                            .options = &option,
                            .noptions = 1 };
    bly_builder *b;
    snprintf(text, sizeof text, "%llu", (unsigned long long)u->others);
    assert_ok(bly_builder_new(&spec, &b));
    return b;
}

/* Add or deny the keys from `from` to `to`. */
static void feed(bly_builder *b, const universe *u, uint64_t from, uint64_t to,
                 bool deny)
{
    uint64_t h[BATCH];
    for (uint64_t i = from; i < to; i += BATCH) {
        const size_t n = to - i < BATCH ? (size_t)(to - i) : BATCH;
        const uint64_t at = u->backwards ? from + to - i - n : i;
        keys_of(u, at, n, h);
        assert_ok(deny ? bly_builder_deny(b, h, n)
                       : bly_builder_add(b, h, NULL, n));
    }
}

/* Of a universe whose first keys are the members, all of which is denied: the
 * members stay. */
static bly_filter *exact_of(const universe *u)
{
    bly_builder *const b = begun(u);
    bly_filter *f;
    feed(b, u, 0, u->members, false);
    feed(b, u, 0, u->members + u->others, true);
    assert_ok(bly_builder_finish(b, u->nthreads ? u->nthreads : 1, &f));
    bly_builder_free(b);
    return f;
}

/* How many of the keys from `from` to `to` are answered with "maybe". */
static uint64_t maybes(const bly_filter *f, const universe *u, uint64_t from,
                       uint64_t to)
{
    uint64_t h[BATCH], maybe[BLY_BITMAP_WORDS(BATCH)], sum = 0;
    for (uint64_t i = from; i < to; i += BATCH) {
        const size_t n = to - i < BATCH ? (size_t)(to - i) : BATCH;
        keys_of(u, i, n, h);
        bly_has_hashes(f, h, n, maybe);
        for (size_t j = 0; j < n; j++) {
            const bool in = maybe[j / 64] >> j % 64 & 1;
            sum += in;
            if (j < 3) /* one by one it is the same */
                assert_int_equal(bly_has_hash(f, h[j]), in);
        }
    }
    return sum;
}

static double entropy(double r, double s)
{
    return r * log2(1 + s / r) + s * log2(1 + r / s);
}

static void never_wrong_in_the_universe(void **state)
{
    (void)state;
    static const uint64_t sizes[][2] = {
        { 1, 1 },          { 1, 1000 },         { 3, 100000 },
        { 64, 1 },         { 100, 100 },        { 1000, 10 },
        { 1000, 100000 },  { 25000, 30000 },    { 30000, 10000 },
        { 70000, 700000 }, { 200000, 1000000 },
    };
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        const universe u = {
            .members = sizes[i][0], .others = sizes[i][1], .salt = i, .fpr = 0.5
        };
        bly_filter *f = exact_of(&u);
        assert_int_equal(maybes(f, &u, 0, u.members), u.members);
        assert_int_equal(maybes(f, &u, u.members, u.members + u.others), 0);
        bly_free(f);
    }
}

/* 1.07 from a million members on; the ribbons' last blocks show in small ones.
 * The plan is what becomes of it. */
static void size_is_near_the_entropy(void **state)
{
    (void)state;
    static const struct {
        double members, others, most;
    } rows[] = {
        { 1e5, 1.125e7, 1.075 }, { 1e6, 1.125e8, 1.071 }, { 8e6, 9e8, 1.07 },
        { 1e6, 1e6, 1.03 },      { 1e6, 1e9, 1.07 },      { 1e9, 1e11, 1.07 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char text[32];
        const bly_option option = { "others", text };
        const bly_spec spec = { .kind = "exact",
                                .items = (uint64_t)rows[i].members,
                                .fpr = 0.5,
                                .options = &option,
                                .noptions = 1 };
        bly_prediction p;
        snprintf(text, sizeof text, "%.0f", rows[i].others);
        assert_ok(bly_plan(&spec, &p));
        assert_between((double)p.bits, entropy(rows[i].members, rows[i].others),
                       rows[i].most * entropy(rows[i].members, rows[i].others));
    }
    const universe u = { .members = 50000, .others = 5000000, .fpr = 0.5 };
    bly_filter *f = exact_of(&u);
    bly_stats stats;
    bly_stat(f, &stats);
    assert_between((double)stats.bits, 1, 1.08 * entropy(5e4, 5e6));
    assert_int_equal(stats.items_estimate, 50000);
    bly_free(f);
}

/* Keys outside: at the stated rate, and at a lower one that was asked for. */
static void outsiders_have_the_stated_rate(void **state)
{
    (void)state;
    static const double rates[] = { 0.5, 0.01, 0.001 };
    for (size_t i = 0; i < COUNT_OF(rates); i++) {
        const universe u = { 20000, 200000, 7 + i, rates[i], 1, false };
        bly_filter *f = exact_of(&u);
        bly_stats stats;
        enum { ASKED = 1000000 };
        bly_stat(f, &stats);
        assert_true(stats.fpr_now <= rates[i]);
        assert_near(stats.fpr_now, stats.fpr_at_capacity, 1e-9);
        const double expected = stats.fpr_now * ASKED;
        const double got = (double)maybes(f, &u, UINT64_C(1) << 32,
                                          (UINT64_C(1) << 32) + ASKED);
        assert_between(got, expected - 5 * sqrt(expected),
                       expected + 5 * sqrt(expected));
        bly_free(f);
    }
}

/* The same bytes in any order, with any number of threads, with repeats. */
static void order_and_threads_do_not_matter(void **state)
{
    (void)state;
    universe u = { .members = 40000, .others = 300000, .fpr = 0.5 };
    bly_filter *f = exact_of(&u);
    u.backwards = true;
    u.nthreads = 4;
    bly_filter *g = exact_of(&u);
    bly_builder *const b = begun(&u);
    bly_filter *twice;
    feed(b, &u, 0, u.members, false);
    feed(b, &u, 0, u.members / 2, false);
    feed(b, &u, u.members, u.members + u.others, true);
    feed(b, &u, u.members + 10, u.members + u.others, true);
    assert_ok(bly_builder_finish(b, 2, &twice));
    bly_builder_free(b);
    assert_true(bly_equal(bly_layer(f, 0), bly_layer(g, 0)));
    assert_true(bly_equal(bly_layer(f, 1), bly_layer(g, 1)));
    assert_true(bly_equal(bly_layer(f, 0), bly_layer(twice, 0)));
    assert_true(bly_equal(bly_layer(f, 1), bly_layer(twice, 1)));
    bly_free(f);
    bly_free(g);
    bly_free(twice);
}

/* Without others it is a ribbon; without members it says no to everything;
 * others that nobody announced are told apart all the same. */
static void few_of_either(void **state)
{
    (void)state;
    universe u = { .members = 5000, .others = 0, .fpr = 0.01 };
    bly_filter *f = exact_of(&u);
    assert_null(bly_layer(f, 1));
    assert_int_equal(maybes(f, &u, 0, 5000), 5000);
    bly_free(f);

    u = (universe){ .members = 0, .others = 1000, .fpr = 0.5 };
    f = exact_of(&u);
    assert_int_equal(maybes(f, &u, 0, 100000), 0);
    bly_free(f);

    u = (universe){ .members = 5000, .others = 0, .fpr = 0.01 };
    bly_builder *const b = begun(&u);
    feed(b, &u, 0, 5000, false);
    feed(b, &u, 5000, 100000, true);
    assert_ok(bly_builder_finish(b, 1, &f));
    bly_builder_free(b);
    assert_int_equal(maybes(f, &u, 0, 100000), 5000);
    bly_free(f);
}

/* Through a file, mapped too, nothing changes. */
static void survives_its_file(void **state)
{
    (void)state;
    const universe u = { .members = 30000, .others = 300000, .fpr = 0.5 };
    bly_filter *f = exact_of(&u), *g;
    byte_array a = written(f);
    assert_ok(bly_load(a.at, a.n, NULL, &g));
    assert_true(bly_equal(f, g));
    assert_int_equal(maybes(g, &u, 0, 330000), 30000);
    free(a.at);
    bly_free(f);
    bly_free(g);
}

static void wrong_calls(void **state)
{
    (void)state;
    const universe u = { .members = 100, .others = 100, .fpr = 0.5 };
    const bly_spec plain = { .kind = "fuse", .fpr = 0.01 };
    const uint64_t h = 1;
    bly_filter *f;
    bly_builder *b = begun(&u);
    assert_status(bly_builder_deny(NULL, &h, 1), BLY_EINVAL);
    assert_status(bly_builder_deny(b, NULL, 1), BLY_EINVAL);
    feed(b, &u, 0, 100, false);
    assert_ok(bly_builder_deny(b, NULL, 0));
    assert_status(bly_builder_add(b, &h, NULL, 1), BLY_EINVAL);
    assert_ok(bly_builder_finish(b, 1, &f));
    assert_status(bly_builder_deny(b, &h, 1), BLY_EINVAL);
    bly_free(f);
    bly_builder_free(b);

    assert_ok(bly_builder_new(&plain, &b));
    assert_status(bly_builder_deny(b, &h, 1), BLY_ENOTSUP);
    assert_non_null(strstr(bly_error(), "exact"));
    bly_builder_free(b);

    /* A member and another key that 63 bits do not tell apart. */
    const uint64_t twins[2] = { UINT64_C(0x123456789abcdef0),
                                UINT64_C(0x123456789abcdef1) };
    const universe half = { .members = 1, .others = 1, .fpr = 0.5 };
    b = begun(&half);
    assert_ok(bly_builder_add(b, &twins[0], NULL, 1));
    assert_ok(bly_builder_deny(b, &twins[1], 1));
    assert_status(bly_builder_finish(b, 1, &f), BLY_EINVAL);
    assert_null(f);
    bly_builder_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(never_wrong_in_the_universe),
        cmocka_unit_test(size_is_near_the_entropy),
        cmocka_unit_test(outsiders_have_the_stated_rate),
        cmocka_unit_test(order_and_threads_do_not_matter),
        cmocka_unit_test(few_of_either),
        cmocka_unit_test(survives_its_file),
        cmocka_unit_test(wrong_calls),
    };
    return cmocka_run_group_tests_name("exact", tests, NULL, NULL);
}
