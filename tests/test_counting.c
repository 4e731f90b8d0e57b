/*
 * test_counting.c - what is peculiar to the counting kind
 *
 * Its counters against an exact multiset, in every width; the stuck rule;
 * removals that are refused without a trace; its twin, the classic filter.
 */
#include "tests/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/cells.h"
#include "core/maths.h"
#include "kinds/kind.h"

enum { COUNTERS, K, WIDTH }; /* where the shape has them */

static const char *const widths[] = { "2", "3", "4", "8", "16" };

static bly_filter *counting_new(uint64_t items, uint64_t counters,
                                const char *k, const char *width)
{
    const bly_option options[] = { { "k", k }, { "width", width } };
    const bly_spec spec = { .kind = "counting",
                            .items = items,
                            .bits = counters * strtoull(width, NULL, 10),
                            .options = options,
                            .noptions = COUNT_OF(options) };
    bly_filter *f;
    assert_ok(bly_new(&spec, &f));
    return f;
}

static uint32_t counter(const bly_filter *f, uint64_t j)
{
    return bly_cell_get(f->data, j, (unsigned)f->shape.p[WIDTH]);
}

static double info_of(const bly_filter *f, const char *name)
{
    bly_stats stats;
    bly_peek(f, &stats);
    return fact_of(stats.facts, stats.nfacts, name)->real;
}

/* Two to a byte, the even one in the low half. */
static void nibbles(void **state)
{
    (void)state;
    bly_filter *f = counting_new(10, 101, "1", "4");
    assert_int_equal(f->shape.nbytes, 56);
    for (uint64_t h = 0; h < 101; h++)
        for (uint64_t i = 0; i <= h % 3; i++)
            assert_ok(bly_add_hash(f, h)); /* position h mod 101 */
    for (unsigned j = 0; j < 101; j++)
        assert_int_equal(f->data[j / 2] >> (j % 2 * 4) & 15, j % 3 + 1);
    assert_int_equal(f->data[50] >> 4, 0);
    assert_true(f->kind->check(f));
    f->data[50] |= 0x10; /* the last high nibble, of a counter that is not */
    assert_false(f->kind->check(f));
    bly_free(f);
}

/* 50,000 keys at 1 % take 239,627 bytes, and the rate of a classic filter. */
static void sizes(void **state)
{
    (void)state;
    bly_spec spec = { .kind = "counting", .items = 50000, .fpr = 0.01 };
    bly_prediction p;
    assert_ok(bly_plan(&spec, &p));
    assert_int_equal(p.bits, 4 * 479253);
    assert_int_equal((p.bits + 7) / 8, 239627);
    assert_near(p.fpr, bly_fpr_exact(50000, 479253, 7), 1e-4);
    for (size_t i = 0; i < COUNT_OF(widths); i++) {
        const bly_option o = { "width", widths[i] };
        spec.options = &o;
        spec.noptions = 1;
        assert_ok(bly_plan(&spec, &p));
        assert_int_equal(p.bits, strtoull(widths[i], NULL, 10) * 479253);
    }
    static const char *const bad[] = { "0", "1", "5", "6", "7", "12", "17" };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        const bly_option o = { "width", bad[i] };
        spec.options = &o;
        assert_status(bly_plan(&spec, &p), BLY_EINVAL);
    }
    spec = (bly_spec){ .kind = "counting", .items = 1, .bits = 3 };
    assert_status(bly_plan(&spec, &p), BLY_EINVAL);
}

/* The published bound of overflow, per counter at lambda = ln 2, and the tail
 * that it bounds. */
static void overflow_bounds(void **state)
{
    (void)state;
    const double ln2 = log(2);
    assert_near(bly_overflow_bound(ln2, 16), 1.36773e-15, 1e-5);
    assert_near(bly_overflow_bound(ln2, 15), 3.05795e-14, 1e-5);
    assert_near(bly_poisson_tail(ln2, 16), 7.07e-17, 1e-3);
    assert_near(bly_poisson_tail(ln2, 15), 1.64e-15, 3e-3);
    assert_near(1e6 * bly_overflow_bound(ln2, 16), 1.37e-9, 2e-3);
    assert_near(1e6 * bly_overflow_bound(ln2, 15), 3.06e-8, 1e-3);
    assert_near(bly_poisson_tail(ln2, 0), 1, 1e-12);
    assert_near(bly_poisson_tail(ln2, 1), 0.5, 1e-12);
    assert_near(bly_poisson_tail(5, 3), 0.875347980516919, 1e-12);
    assert_near(bly_poisson_tail(0, 1), 0, 0);

    /* plan and info say it for the lambda that they have: k n / m. */
    bly_spec spec = { .kind = "counting", .items = 100000, .fpr = 0.01 };
    bly_prediction p;
    assert_ok(bly_plan(&spec, &p));
    const double m = (double)p.bits / 4, lambda = 7e5 / m;
    assert_near(fact_of(p.facts, p.nfacts, "overflow_bound")->real,
                m * bly_overflow_bound(lambda, 16), 1e-9);
    assert_near(fact_of(p.facts, p.nfacts, "stuck_bound")->real,
                m * bly_overflow_bound(lambda, 15), 1e-9);
    bly_filter *f;
    assert_ok(bly_new(&spec, &f));
    assert_near(info_of(f, "stuck_bound"), m * bly_overflow_bound(lambda, 15),
                1e-9);
    bly_free(f);
}

/* As many counters stick as the tail says, where they are short. */
static void stuck_counters_are_as_predicted(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) { /* 2 and 3 bits */
        const bly_option o = { "width", widths[i] };
        const bly_spec spec = { .kind = "counting",
                                .items = 100000,
                                .fpr = 0.01,
                                .seed = 1,
                                .options = &o,
                                .noptions = 1 };
        bly_filter *f = filled_from(&spec, 0, 100000);
        const double expected = info_of(f, "stuck_expected");
        assert_between(info_of(f, "stuck"), expected - 6 * sqrt(expected),
                       expected + 6 * sqrt(expected));
        assert_true(info_of(f, "stuck_bound") <= 1);
        bly_free(f);
    }
}

/* Positions that fall together count once, so that a key added once raises
 * every counter to one and is gone when removed. */
static void a_counter_counts_keys(void **state)
{
    (void)state;
    uint64_t rng = 7, folded = 0;
    for (int round = 0; round < 500; round++) {
        bly_filter *f = counting_new(5, 12, "8", "4");
        const uint64_t h = test_random(&rng);
        assert_ok(bly_add_hash(f, h));
        unsigned used = 0;
        for (uint64_t j = 0; j < 12; j++) {
            assert_true(counter(f, j) <= 1);
            used += counter(f, j);
        }
        folded += used < 8;
        assert_int_equal(count_of(f, h), 1);
        assert_ok(bly_remove_hashes(f, &h, 1, NULL));
        for (uint64_t j = 0; j < 12; j++)
            assert_int_equal(counter(f, j), 0);
        bly_free(f);
    }
    assert_true(folded > 100);
}

static void stuck_is_for_ever(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(widths); i++) {
        bly_filter *f = counting_new(100, 1000, "4", widths[i]);
        const uint64_t h = 12345,
                       top = bly_cell_top((unsigned)f->shape.p[WIDTH]);
        for (uint64_t n = 1; n < top; n++) {
            assert_ok(bly_add_hash(f, h));
            assert_int_equal(count_of(f, h), n);
        }
        assert_int_equal(f->state[0], 0);
        assert_ok(bly_add_hash(f, h));
        assert_int_equal(count_of(f, h), UINT64_MAX);
        assert_int_equal(info_of(f, "stuck"), 4);
        assert_true(f->kind->check(f));
        /* Neither up nor down from there. */
        bly_filter *before;
        assert_ok(bly_clone(f, &before));
        assert_ok(bly_add_hash(f, h));
        for (uint64_t n = 0; n < 2 * top && n < 100; n++)
            assert_ok(bly_remove_hashes(f, &h, 1, NULL));
        assert_true(bly_equal(f, before));
        assert_true(bly_has_hash(f, h));
        /* The header's number is checked. */
        f->state[0]++;
        assert_false(f->kind->check(f));
        f->state[0] = f->shape.p[COUNTERS] + 1;
        assert_false(f->kind->sound(f));
        bly_free(f);
        bly_free(before);
    }
}

static void refused_without_a_trace(void **state)
{
    (void)state;
    bly_filter *f = counting_new(1000, 9586, "7", "4"), *before;
    uint64_t h[1000], rng = 9;
    bly_status each[1000];
    /* From an empty filter nothing can be taken. */
    for (int i = 0; i < 1000; i++)
        h[i] = test_random(&rng);
    assert_status(bly_remove_hashes(f, h, 1000, each), BLY_EABSENT);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(each[i], BLY_EABSENT);
    assert_ok(bly_add_hashes(f, h, 1000, NULL, NULL));
    assert_ok(bly_clone(f, &before));
    unsigned refused = 0;
    for (int i = 0; i < 5000; i++) {
        const uint64_t other = test_random(&rng);
        if (bly_has_hash(f, other))
            continue;
        assert_status(bly_remove_hashes(f, &other, 1, NULL), BLY_EABSENT);
        refused++;
    }
    assert_true(refused > 4500);
    assert_true(bly_equal(f, before));
    bly_free(before);
    /* A batch in which every second key is unknown removes the rest. */
    uint64_t mixed[1000];
    for (int i = 0; i < 1000; i += 2) {
        mixed[i] = h[i];
        do
            mixed[i + 1] = test_random(&rng);
        while (bly_has_hash(f, mixed[i + 1]));
    }
    assert_status(bly_remove_hashes(f, mixed, 1000, each), BLY_EABSENT);
    for (int i = 0; i < 1000; i += 2) {
        assert_int_equal(each[i], BLY_OK);
        assert_int_equal(each[i + 1], BLY_EABSENT);
        assert_true(bly_has_hash(f, h[i + 1]));
    }
    bly_free(f);
}

/* Add, increase, remove and count against an exact multiset. */
static void random_operations(void **state)
{
    (void)state;
    enum { KEYS = 400, STEPS = 200000 };
    for (size_t i = 0; i < COUNT_OF(widths); i++) {
        bly_filter *f = counting_new(KEYS, 4000, "6", widths[i]);
        uint64_t rng = 11 + i, h[KEYS], truth[KEYS] = { 0 }, total = 0;
        for (int j = 0; j < KEYS; j++)
            h[j] = test_random(&rng);
        for (int step = 0; step < STEPS; step++) {
            const size_t j = (size_t)(test_random(&rng) % KEYS);
            const uint64_t r = test_random(&rng) % 8;
            if (r < 3 && truth[j] < 6) {
                assert_ok(bly_add_hash(f, h[j]));
                truth[j]++;
                total++;
            } else if (r == 3 && truth[j] < 4) {
                const uint64_t by = test_random(&rng) % 3;
                assert_ok(bly_increase_hashes(f, &h[j], &by, 1, NULL));
                truth[j] += by;
                total += by;
            } else if (r < 6 && truth[j]) {
                assert_ok(bly_remove_hashes(f, &h[j], 1, NULL));
                truth[j]--;
                total--;
            }
            assert_true(bly_has_hash(f, h[j]) || !truth[j]);
            assert_true(count_of(f, h[j]) >= truth[j]);
        }
        assert_true(f->kind->check(f));
        /* Where nothing stuck, nothing is left once all is taken out. */
        for (int j = 0; j < KEYS; j++)
            for (; truth[j]; truth[j]--)
                assert_ok(bly_remove_hashes(f, &h[j], 1, NULL));
        const bly_cells_tally t =
            bly_cells_count(f->data, 4000, (unsigned)f->shape.p[WIDTH]);
        assert_int_equal(t.used, f->state[0]);
        assert_int_equal(t.stuck, f->state[0]);
        if (f->shape.p[WIDTH] >= 8)
            assert_int_equal(t.used, 0);
        bly_free(f);
    }
}

/* After additions and removals, bit for bit the classic filter of what is
 * left. */
static void becomes_the_classic_filter(void **state)
{
    (void)state;
    for (size_t i = 1; i < COUNT_OF(widths); i++) {
        const bly_option o = { "width", widths[i] };
        const bly_spec spec = { .kind = "counting",
                                .items = 2000,
                                .fpr = 0.001,
                                .seed = 5,
                                .options = &o,
                                .noptions = 1 };
        bly_spec to = { .kind = "classic" };
        bly_filter *f = filled_from(&spec, 0, 3000), *bits;
        uint64_t *gone = hashes_for(&spec, 0, 1000);
        assert_ok(bly_remove_hashes(f, gone, 1000, NULL));
        free(gone);
        assert_ok(bly_convert(f, &to, &bits));
        const bly_option shared = { "layout", "shared" };
        const bly_spec plain = { .kind = "classic",
                                 .items = 2000,
                                 .fpr = 0.001,
                                 .seed = 5,
                                 .options = &shared,
                                 .noptions = 1 };
        bly_filter *direct = filled_from(&plain, 1000, 2000);
        if (f->shape.p[WIDTH] >= 4) {
            assert_int_equal(f->state[0], 0);
            assert_true(bly_equal(bits, direct));
        } else { /* stuck counters leave bits, never take one */
            assert_true(f->state[0] > 0);
            for (uint64_t b = 0; b < direct->shape.p[0]; b++)
                assert_true(
                    bly_bit_get((const uint64_t *)(const void *)bits->data,
                                b) >=
                    bly_bit_get((const uint64_t *)(const void *)direct->data,
                                b));
        }
        assert_int_equal(bits->items, 2000);
        assert_near(bits->fpr, direct->fpr, 1e-12);
        bly_free(bits);
        bly_free(direct);

        /* What contradicts the shape is refused. */
        to.fpr = 0.01;
        assert_status(bly_convert(f, &to, &bits), BLY_EINVAL);
        assert_null(bits);
        to = (bly_spec){ .kind = "classic", .bits = 100 };
        assert_status(bly_convert(f, &to, &bits), BLY_EINVAL);
        const bly_option k = { "k", "3" };
        to = (bly_spec){ .kind = "classic", .options = &k, .noptions = 1 };
        assert_status(bly_convert(f, &to, &bits), BLY_EINVAL);
        to = (bly_spec){ .kind = "blocked" };
        assert_status(bly_convert(f, &to, &bits), BLY_ENOTSUP);
        bly_free(f);
    }
}

static void merging_adds_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(widths); i++) {
        bly_filter *a = counting_new(100, 1000, "5", widths[i]);
        bly_filter *b = counting_new(100, 1000, "5", widths[i]);
        bly_filter *both = counting_new(100, 1000, "5", widths[i]);
        assert_merge_adds_up(a, b, both, 4, 3);
    }
}

/* fresh tells keys that were not there, also within one batch. */
static void fresh_keys(void **state)
{
    (void)state;
    bly_filter *f = counting_new(1000, 20000, "7", "4");
    uint64_t h[200], fresh[BLY_BITMAP_WORDS(200)], rng = 17;
    for (int i = 0; i < 100; i++)
        h[i] = h[100 + i] = test_random(&rng);
    assert_ok(bly_add_hashes(f, h, 200, fresh, NULL));
    for (int i = 0; i < 200; i++)
        assert_int_equal(fresh[i / 64] >> i % 64 & 1, i < 100);
    for (int i = 0; i < 100; i++)
        assert_int_equal(count_of(f, h[i]), 2);
    bly_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nibbles),
        cmocka_unit_test(sizes),
        cmocka_unit_test(overflow_bounds),
        cmocka_unit_test(stuck_counters_are_as_predicted),
        cmocka_unit_test(a_counter_counts_keys),
        cmocka_unit_test(stuck_is_for_ever),
        cmocka_unit_test(refused_without_a_trace),
        cmocka_unit_test(random_operations),
        cmocka_unit_test(becomes_the_classic_filter),
        cmocka_unit_test(merging_adds_up),
        cmocka_unit_test(fresh_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
