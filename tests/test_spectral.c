/*
 * test_spectral.c - what is peculiar to the spectral kind
 *
 * Its three update rules against exact counts, and against each other: the
 * table of errors for Zipf's law is measured again.
 */
#include "tests/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/cells.h"
#include "core/maths.h"
#include "kinds/filter.h"

enum { COUNTERS, K, UPDATE, WIDTH, SECONDARY, MARKER };

static const char *const rules[] = { "selection", "increase", "recurring" };
enum { SELECTION, INCREASE, RECURRING };

/* With this many counters in the primary, or this many bits in all; width NULL:
 * not given. */
static bly_filter *spectral_new(uint64_t items, uint64_t counters,
                                uint64_t bits, const char *k, int rule,
                                const char *width)
{
    const bly_option options[] = { { "k", k },
                                   { "update", rules[rule] },
                                   { "width", width } };
    const uint64_t w = width ? strtoull(width, NULL, 10) : 4;
    if (counters)
        bits =
            rule == RECURRING ? (counters + 1) / 2 * (3 * w + 2) : counters * w;
    const bly_spec spec = { .kind = "spectral",
                            .items = items,
                            .bits = bits,
                            .options = options,
                            .noptions = COUNT_OF(options) - !width };
    bly_filter *f;
    assert_ok(bly_new(&spec, &f));
    if (counters)
        assert_int_equal(f->shape.p[COUNTERS], counters);
    bly_stats stats;
    bly_peek(f, &stats);
    assert_true(stats.bits <= bits);
    return f;
}

/* ------------------------------------------------------ the table of errors */

enum { KEYS = 1000, EVENTS = 50000 };

typedef struct errors {
    double wrong, square, low;
} errors;

/* Feed the events to f, which it frees, and add up its errors. */
static void measure(bly_filter *f, const uint64_t *events, const uint64_t *h,
                    uint64_t *estimates, errors *sum)
{
    static uint64_t stream[EVENTS];
    uint64_t truth[KEYS] = { 0 };
    for (int e = 0; e < EVENTS; e++) {
        stream[e] = h[events[e]];
        truth[events[e]]++;
    }
    assert_ok(bly_add_hashes(f, stream, EVENTS, NULL, NULL));
    assert_ok(bly_count_hashes(f, h, KEYS, estimates));
    for (int i = 0; i < KEYS; i++) {
        const double off = (double)estimates[i] - (double)truth[i];
        sum->wrong += off != 0;
        sum->low += off < 0;
        sum->square += off * off;
        assert_true(bly_has_hash(f, h[i]) || !truth[i]);
    }
    assert_true(f->kind->check(f));
    bly_free(f);
}

static void table_of_errors(void **state)
{
    (void)state;
    static const struct {
        double exponent;
        uint64_t m; /* gamma = 5 * 1000 / m */
        double bloom, wrong[3], rmse[3];
    } rows[] = {
        { 0, 7142, 0.0323, { 0.0377, 0.0238, 0.0222 }, { 8.47, 0.75, 2.66 } },
        { 0.5, 7142, 0.0323, { 0.0377, 0.0198, 0.0182 }, { 5.66, 0.73, 0.60 } },
        { 1, 7142, 0.0323, { 0.0377, 0.0170, 0.0180 }, { 1.80, 0.54, 0.69 } },
        { 1, 5000, 0.1009, { 0.1013, 0.0467, 0.0510 }, { 3.44, 1.02, 1.12 } },
    };
    enum { ROUNDS = 12 };
    static uint64_t events[EVENTS];
    for (size_t r = 0; r < COUNT_OF(rows); r++) {
        errors sum[3] = { { 0, 0, 0 } }, equal = { 0, 0, 0 };
        uint64_t rng = 100 + r;
        assert_near(bly_fpr_approx(KEYS, (double)rows[r].m, 5), rows[r].bloom,
                    2e-3);
        for (int round = 0; round < ROUNDS; round++) {
            uint64_t h[KEYS], estimates[3][KEYS];
            for (int i = 0; i < KEYS; i++)
                h[i] = test_random(&rng);
            uint64_t times[KEYS] = { 0 };
            zipf_draw(rows[r].exponent, KEYS, EVENTS, &rng, events, times);
            for (int rule = 0; rule < 3; rule++)
                measure(spectral_new(KEYS, rows[r].m, 0, "5", rule, "32"),
                        events, h, estimates[rule], &sum[rule]);
            for (int i = 0; i < KEYS; i++)
                assert_true(estimates[INCREASE][i] <= estimates[SELECTION][i]);
            measure(spectral_new(KEYS, 0, rows[r].m * 32, "5", RECURRING, "32"),
                    events, h, estimates[0], &equal);
        }
        const double n = (double)KEYS * ROUNDS;
        for (int rule = 0; rule < 3; rule++) {
            /* Six deviations of a share, and a fifth for how the filters of
             * the table happened to fill. */
            const double p = rows[r].wrong[rule];
            const double room = 6 * sqrt(p / n) + 0.2 * p;
            assert_between(sum[rule].wrong / n, p - room, p + room);
            /* Single large errors rule this one: its size is all there is. */
            assert_between(sqrt(sum[rule].square / n), 0.4 * rows[r].rmse[rule],
                           2.5 * rows[r].rmse[rule]);
        }
        /* Never too low, but for false marks. */
        assert_true(sum[SELECTION].low == 0);
        assert_true(sum[INCREASE].low == 0);
        assert_true(sum[RECURRING].low / n < 2e-3);
        /* The order of the rules. */
        assert_true(sum[INCREASE].wrong < 0.8 * sum[SELECTION].wrong);
        assert_true(sum[RECURRING].wrong < 0.8 * sum[SELECTION].wrong);
        assert_true(sum[INCREASE].square < 0.5 * sum[SELECTION].square);
        assert_true(sum[RECURRING].square < 0.5 * sum[SELECTION].square);
        /* At equal memory the second array does not pay. */
        assert_true(equal.wrong > 1.5 * sum[SELECTION].wrong);
    }
}

/* -------------------------------------------------------------- operations */

/* Add, increase, remove and count against exact counts, in every rule and
 * width; tiny arrays among them. */
static void random_operations(void **state)
{
    (void)state;
    enum { NKEYS = 200, STEPS = 20000 };
    static const char *const widths[] = { "8", "16", "32", NULL };
    static const struct {
        uint64_t counters;
        const char *k;
        uint64_t keys;
    } shapes[] = { { 2000, "5", NKEYS }, { 12, "6", 3 }, { 2, "1", 2 } };
    for (int rule = 0; rule < 3; rule++)
        for (size_t w = 0; w < COUNT_OF(widths); w++)
            for (size_t s = 0; s < COUNT_OF(shapes); s++) {
                bly_filter *f = spectral_new(shapes[s].keys, shapes[s].counters,
                                             0, shapes[s].k, rule, widths[w]);
                uint64_t rng = 7, h[NKEYS], truth[NKEYS] = { 0 };
                for (int j = 0; j < NKEYS; j++)
                    h[j] = test_random(&rng);
                for (int step = 0; step < STEPS; step++) {
                    const size_t j =
                        (size_t)(test_random(&rng) % shapes[s].keys);
                    const uint64_t r = test_random(&rng) % 8;
                    if (r < 3) {
                        assert_ok(bly_add_hash(f, h[j]));
                        truth[j]++;
                    } else if (r == 3) {
                        const uint64_t by = test_random(&rng) % 5;
                        assert_ok(bly_increase_hashes(f, &h[j], &by, 1, NULL));
                        truth[j] += by;
                    } else if (truth[j]) {
                        assert_status(bly_remove_hashes(f, &h[j], 1, NULL),
                                      rule == INCREASE ? BLY_EREFUSED : BLY_OK);
                        truth[j] -= rule != INCREASE;
                    }
                    assert_true(bly_has_hash(f, h[j]) || !truth[j]);
                    if (rule != RECURRING)
                        assert_true(count_of(f, h[j]) >= truth[j]);
                }
                assert_true(f->kind->check(f));
                if (rule != INCREASE && w > 0) {
                    for (uint64_t j = 0; j < shapes[s].keys; j++)
                        for (; truth[j]; truth[j]--)
                            assert_ok(bly_remove_hashes(f, &h[j], 1, NULL));
                    assert_int_equal(
                        bly_cells_count(f->data, shapes[s].counters,
                                        (unsigned)f->shape.p[WIDTH])
                            .used,
                        0);
                }
                bly_free(f);
            }
}

/* Of minimal increase: only the least counters rise. */
static void only_the_least_rise(void **state)
{
    (void)state;
    bly_filter *f = spectral_new(2, 2, 0, "2", INCREASE, "8");
    /* Both keys name both counters, or one of them. */
    uint64_t rng = 3, both = 0, one = 0;
    while (!both || !one) {
        const uint64_t h = test_random(&rng);
        bly_filter *g = spectral_new(2, 2, 0, "2", SELECTION, "8");
        assert_ok(bly_add_hash(g, h));
        if (g->data[0] && g->data[1])
            both = h;
        else
            one = h;
        bly_free(g);
    }
    const uint64_t by = 5;
    assert_ok(bly_increase_hashes(f, &one, &by, 1, NULL));
    const size_t at = f->data[1] != 0;
    assert_int_equal(f->data[at], 5);
    for (unsigned i = 1; i <= 8; i++) {
        assert_ok(bly_add_hash(f, both));
        assert_int_equal(f->data[1 - at], i);
        assert_int_equal(f->data[at], i < 5 ? 5 : i);
        assert_int_equal(count_of(f, both), i);
    }
    bly_free(f);
}

/* Who is alone among the primary's least values goes to the secondary, with a
 * mark, and its estimate comes from there. */
static void doubtful_keys_move(void **state)
{
    (void)state;
    uint64_t rng = 5, better = 0, moved = 0;
    for (int round = 0; round < 200; round++) {
        bly_filter *f = spectral_new(20, 60, 0, "3", RECURRING, "16");
        bly_filter *g = spectral_new(20, 60, 0, "3", SELECTION, "16");
        uint64_t h[20];
        for (int i = 0; i < 20; i++) {
            const uint64_t by = 1 + (uint64_t)i;
            h[i] = test_random(&rng);
            assert_ok(bly_increase_hashes(f, &h[i], &by, 1, NULL));
            assert_ok(bly_increase_hashes(g, &h[i], &by, 1, NULL));
        }
        assert_memory_equal(f->data, g->data, 60 * 2);
        for (size_t i = 128; i < f->shape.nbytes; i++)
            moved += f->data[i] != 0;
        for (int i = 0; i < 20; i++) {
            assert_true(count_of(f, h[i]) <= count_of(g, h[i]));
            better += count_of(f, h[i]) < count_of(g, h[i]);
        }
        bly_free(f);
        bly_free(g);
    }
    assert_true(moved > 0);
    assert_true(better > 20);
}

static void stuck_counters(void **state)
{
    (void)state;
    for (int rule = 0; rule < 3; rule++) {
        bly_filter *f = spectral_new(10, 100, 0, "4", rule, "8");
        const uint64_t h = 4242, most = UINT64_MAX, some = 254;
        assert_ok(bly_increase_hashes(f, &h, &some, 1, NULL));
        assert_int_equal(count_of(f, h), 254);
        assert_int_equal(f->state[0], 0);
        assert_ok(bly_increase_hashes(f, &h, &most, 1, NULL));
        assert_int_equal(count_of(f, h), UINT64_MAX);
        assert_int_equal(f->state[0], 4);
        assert_true(f->kind->check(f));
        for (int i = 0; i < 300; i++)
            bly_remove_hashes(f, &h, 1, NULL);
        assert_int_equal(count_of(f, h), UINT64_MAX);
        f->state[0] = 3;
        assert_false(f->kind->check(f));
        f->state[0] = 1000;
        assert_false(f->kind->sound(f));
        bly_free(f);
    }
}

static void merging(void **state)
{
    (void)state;
    for (int rule = 0; rule < 3; rule++) {
        bly_filter *a = spectral_new(100, 800, 0, "4", rule, "32");
        bly_filter *b = spectral_new(100, 800, 0, "4", rule, "32");
        bly_filter *both = spectral_new(100, 800, 0, "4", rule, "32");
        uint64_t rng = 13, h[100];
        for (uint64_t j = 0; j < 100; j++) {
            h[j] = test_random(&rng);
            const uint64_t na = j % 12, nb = j % 7, nab = na + nb;
            assert_ok(bly_increase_hashes(a, &h[j], &na, 1, NULL));
            assert_ok(bly_increase_hashes(b, &h[j], &nb, 1, NULL));
            assert_ok(bly_increase_hashes(both, &h[j], &nab, 1, NULL));
        }
        assert_ok(bly_merge(a, b));
        assert_true(a->kind->check(a));
        if (rule == SELECTION)
            assert_true(bly_equal(a, both));
        for (uint64_t j = 0; j < 100; j++)
            assert_true(count_of(a, h[j]) >= j % 12 + j % 7);
        bly_free(a);
        bly_free(b);
        bly_free(both);
    }
}

/* Absent keys: refused, and the filter is as it was. */
static void refused_without_a_trace(void **state)
{
    (void)state;
    for (int rule = 0; rule < 3; rule++) {
        bly_filter *f = spectral_new(100, 1000, 0, "5", rule, "32"), *before;
        uint64_t rng = 17;
        for (int i = 0; i < 100; i++)
            assert_ok(bly_add_hash(f, test_random(&rng)));
        assert_ok(bly_clone(f, &before));
        for (int i = 0; i < 1000; i++) {
            const uint64_t h = test_random(&rng);
            if (!bly_has_hash(f, h))
                assert_status(bly_remove_hashes(f, &h, 1, NULL), BLY_EABSENT);
        }
        assert_true(bly_equal(f, before));
        bly_free(before);
        bly_free(f);
    }
}

/* Rate and size: those of a classic filter, 4 bits for every one, or as given.
 */
static void sizes_and_bad_options(void **state)
{
    (void)state;
    bly_spec spec = { .kind = "spectral", .items = 100000, .fpr = 0.01 };
    bly_prediction p;
    assert_ok(bly_plan(&spec, &p));
    assert_int_equal(p.bits, 4 * UINT64_C(958506));
    assert_near(p.fpr, bly_fpr_exact(100000, 958506, 7), 1e-4);
    static const bly_option wide = { "width", "32" };
    spec.options = &wide;
    spec.noptions = 1;
    assert_ok(bly_plan(&spec, &p));
    assert_int_equal(p.bits, 32 * UINT64_C(958506));
    static const bly_option bad[] = {
        { "width", "7" },  { "width", "4" },     { "width", "33" },
        { "width", "12" }, { "update", "none" }, { "secondary", "5" }
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        spec.options = &bad[i];
        spec.noptions = 1;
        assert_status(bly_plan(&spec, &p), BLY_EINVAL);
    }
    spec = (bly_spec){ .kind = "spectral", .items = 1, .bits = 3 };
    assert_status(bly_plan(&spec, &p), BLY_EINVAL);
    spec.bits = 31;
    spec.options = &wide;
    spec.noptions = 1;
    assert_status(bly_plan(&spec, &p), BLY_EINVAL);

    bly_filter *f = spectral_new(100, 1000, 0, "5", RECURRING, "16");
    assert_int_equal(f->shape.p[SECONDARY], 500);
    assert_int_equal(f->shape.p[MARKER], 1000);
    bly_shape s = bly_shape_of(f);
    assert_true(f->kind->sane(&s));
    s.p[SECONDARY]++;
    assert_false(f->kind->sane(&s));
    s = bly_shape_of(f);
    s.p[MARKER]--;
    assert_false(f->kind->sane(&s));
    s = bly_shape_of(f);
    s.p[UPDATE] = 3;
    assert_false(f->kind->sane(&s));
    s = bly_shape_of(f);
    s.p[COUNTERS] = UINT64_MAX;
    assert_false(f->kind->sane(&s));
    /* Tails of all three parts. */
    assert_true(f->kind->check(f));
    f->data[f->shape.nbytes - 1] = 0x80;
    assert_false(f->kind->check(f));
    bly_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_of_errors),
        cmocka_unit_test(random_operations),
        cmocka_unit_test(only_the_least_rise),
        cmocka_unit_test(doubtful_keys_move),
        cmocka_unit_test(stuck_counters),
        cmocka_unit_test(merging),
        cmocka_unit_test(refused_without_a_trace),
        cmocka_unit_test(sizes_and_bad_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
