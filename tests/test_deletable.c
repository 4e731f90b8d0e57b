/*
 * test_deletable.c - what is peculiar to the deletable kind
 *
 * The share of keys that can be removed, predicted and counted; the three
 * answers of remove; sequences against an exact set.
 */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/bits.h"
#include "kinds/filter.h"

static double fact_real(const bly_prediction *p, const char *name)
{
    for (size_t i = 0; i < p->nfacts; i++)
        if (strcmp(p->facts[i].name, name) == 0)
            return p->facts[i].real;
    fail_msg("no fact %s", name);
    return NAN;
}

typedef struct shape_row {
    uint64_t n, m, k, r;
    double printed, complement, share;
} shape_row;

static const shape_row shapes[] = {
    { 1000, 10000, 7, 500, 0.78609, 0.21391, 0.13115 },
    { 1000, 10000, 7, 1000, 0.24121, 0.75879, 0.55121 },
    { 1000, 10000, 7, 2000, 0.01985, 0.98015, 0.86927 },
    { 1000, 16000, 11, 2000, 0.03197, 0.96803, 0.85166 },
    { 1000, 16000, 11, 4000, 0.00032, 0.99968, 0.98236 },
    { 1000, 8000, 6, 2000, 0.02294, 0.97706, 0.84471 },
    { 500, 16000, 7, 1000, 0.00015, 0.99985, 0.99796 },
    { 100, 1024, 7, 128, 0.10805, 0.89195, 0.70940 },
};

/* A filter of exactly that shape. */
static bly_filter *deletable_new(const shape_row *row, uint64_t seed,
                                 bly_prediction *plan)
{
    char k[24], region[24];
    snprintf(k, sizeof k, "%llu", (unsigned long long)row->k);
    snprintf(region, sizeof region, "%llu",
             (unsigned long long)(row->m / row->r));
    const bly_option o[] = { { "k", k }, { "region_bits", region } };
    const bly_spec spec = { .kind = "deletable",
                            .items = row->n,
                            .bits = row->m + row->r,
                            .seed = seed,
                            .options = o,
                            .noptions = 2 };
    bly_filter *f;
    if (plan)
        assert_ok(bly_plan(&spec, plan));
    assert_ok(bly_new(&spec, &f));
    assert_int_equal(f->shape.p[0], row->r);
    assert_int_equal(f->shape.p[1] * f->shape.p[0], row->m);
    return f;
}

/* Three formulas, of which the last is the one that counting confirms. */
static void share_of_removable_keys(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        const shape_row *row = &shapes[i];
        const double m = (double)row->m, kn = (double)(row->k * row->n);
        const double q = 1 - 1 / m;
        const double pc = 1 - pow(q, kn) - kn / m * pow(q, kn - 1);
        const double printed =
            pow(1 - pow(1 - pc, m / (double)row->r), (double)row->k);
        assert_between(fabs(printed - row->printed), 0, 6e-6);
        assert_between(fabs(1 - printed - row->complement), 0, 6e-6);

        bly_prediction plan;
        bly_free(deletable_new(row, 0, &plan));
        const double share = fact_real(&plan, "deletable_at_capacity");
        assert_between(fabs(share - row->share), 0, 6e-6);

        /* Of each filter, every key's own chance: asked on a copy. */
        enum { FILTERS = 30 };
        double removable = 0, all = 0;
        for (uint64_t seed = 1; seed <= FILTERS; seed++) {
            bly_filter *f = deletable_new(row, seed, NULL), *copy;
            for (uint64_t key = 0; key < row->n; key++)
                assert_ok(bly_add(f, &key, sizeof key));
            for (uint64_t key = 0; key < row->n; key += 10) {
                assert_ok(bly_clone(f, &copy));
                const bly_status st = bly_remove(copy, &key, sizeof key);
                assert_true(st == BLY_OK || st == BLY_EREFUSED);
                assert_true(bly_has(copy, &key, sizeof key) == (st != BLY_OK));
                removable += !st;
                all++;
                bly_free(copy);
            }
            bly_free(f);
        }
        const double p = removable / all;
        /* Keys of a filter share its marks, and the mean is not the mean of
         * an average filter: a percent besides the binomial. */
        const double sd = sqrt(share * (1 - share) / all);
        assert_between(p, share - 4 * sd - 0.015, share + 4 * sd + 0.015);
    }
}

/* More regions, more keys that can be removed; the formula in print falls. */
static void share_rises_with_regions(void **state)
{
    (void)state;
    double before = 0;
    for (uint64_t r = 100; r <= 10000; r *= 10) {
        const shape_row row = { .n = 1000, .m = 10000, .k = 7, .r = r };
        bly_prediction plan;
        bly_free(deletable_new(&row, 0, &plan));
        assert_true(fact_real(&plan, "deletable_at_capacity") > before);
        before = fact_real(&plan, "deletable_at_capacity");
    }
}

/* The plan reaches the share it is asked for, and no more than it must. */
static void plans(void **state)
{
    (void)state;
    static const char *const targets[] = { "0.5", "0.8", "0.9", "0.95" };
    double before = 0;
    for (size_t i = 0; i < COUNT_OF(targets); i++) {
        const bly_option o = { "deletability", targets[i] };
        const bly_spec spec = { .kind = "deletable",
                                .items = 100000,
                                .fpr = 0.001,
                                .options = &o,
                                .noptions = 1 };
        bly_prediction p;
        assert_ok(bly_plan(&spec, &p));
        assert_true(fact_real(&p, "deletable_at_capacity") >= atof(targets[i]));
        assert_between(p.fpr, 0.0009, 0.001);
        assert_true(p.bits_per_key > before);
        before = p.bits_per_key;
    }
    assert_between(before, 14.4, 2 * 14.4);
    const bly_option o = { "deletability", "0.999" };
    const bly_spec spec = { .kind = "deletable",
                            .items = 1000,
                            .fpr = 0.01,
                            .options = &o,
                            .noptions = 1 };
    bly_prediction p;
    assert_status(bly_plan(&spec, &p), BLY_EINVAL);
    assert_non_null(strstr(bly_error(), "deletability"));
}

/* The three answers, and that two of them change nothing. */
static void three_answers(void **state)
{
    (void)state;
    const shape_row row = { .n = 1000, .m = 10000, .k = 7, .r = 1000 };
    bly_filter *f = deletable_new(&row, 1, NULL);
    size_t removed = 0, refused = 0, absent = 0;
    for (uint64_t key = 0; key < 1000; key++)
        assert_ok(bly_add(f, &key, sizeof key));
    for (uint64_t key = 1000; key < 3000; key++) {
        byte_array before = written(f);
        if (!bly_has(f, &key, sizeof key)) {
            assert_status(bly_remove(f, &key, sizeof key), BLY_EABSENT);
            absent++;
        }
        byte_array after = written(f);
        assert_memory_equal(before.at, after.at, after.n);
        free(before.at);
        free(after.at);
    }
    for (uint64_t key = 0; key < 1000; key++) {
        bly_filter *before;
        assert_ok(bly_clone(f, &before));
        const bly_status st = bly_remove(f, &key, sizeof key);
        if (st) {
            assert_int_equal(st, BLY_EREFUSED);
            assert_true(bly_has(f, &key, sizeof key));
            assert_true(bly_equal(f, before));
            refused++;
        } else {
            assert_false(bly_has(f, &key, sizeof key));
            /* Once only. */
            assert_status(bly_remove(f, &key, sizeof key), BLY_EABSENT);
            removed++;
        }
        bly_free(before);
        for (uint64_t other = key + 1; other < 1000; other += 7)
            assert_true(bly_has(f, &other, sizeof other));
    }
    assert_true(absent > 1900 && removed > 300 && refused > 300);
    bly_free(f);
}

/* Adding twice marks: such a key can no longer be removed. */
static void a_key_added_twice_stays(void **state)
{
    (void)state;
    const shape_row row = { .n = 100, .m = 10000, .k = 7, .r = 2000 };
    bly_filter *f = deletable_new(&row, 1, NULL);
    assert_ok(bly_add(f, "a", 1));
    assert_ok(bly_add(f, "b", 1));
    assert_ok(bly_add(f, "a", 1));
    assert_status(bly_remove(f, "a", 1), BLY_EREFUSED);
    assert_ok(bly_remove(f, "b", 1));
    assert_true(bly_has(f, "a", 1));
    assert_false(bly_has(f, "b", 1));
    bly_free(f);
}

/* What two filters both have set cannot be taken from their union. */
static void merged_keys_are_safe(void **state)
{
    (void)state;
    const shape_row row = { .n = 400, .m = 8000, .k = 6, .r = 2000 };
    bly_filter *a = deletable_new(&row, 1, NULL);
    bly_filter *b = deletable_new(&row, 1, NULL);
    for (uint64_t key = 0; key < 300; key++)
        assert_ok(bly_add(key < 200 ? a : b, &key, sizeof key));
    for (uint64_t key = 150; key < 200; key++) /* in both */
        assert_ok(bly_add(b, &key, sizeof key));
    assert_ok(bly_merge(a, b));
    for (uint64_t key = 0; key < 150; key++)
        (void)bly_remove(a, &key, sizeof key);
    for (uint64_t key = 150; key < 200; key++)
        assert_status(bly_remove(a, &key, sizeof key), BLY_EREFUSED);
    for (uint64_t key = 150; key < 300; key++)
        assert_true(bly_has(a, &key, sizeof key));
    bly_free(a);
    bly_free(b);
}

/* Adding and removing what is there, against an exact set: nothing that is in
 * it is ever missed. */
static void never_a_false_negative(void **state)
{
    (void)state;
    enum { UNIVERSE = 2000, STEPS = 300000 };
    const bly_spec spec = {
        .kind = "deletable", .items = 2000, .fpr = 0.01, .seed = LAW_SEED
    };
    uint64_t *h = hashes_for(&spec, 0, UNIVERSE), rng = 1;
    static bool in[UNIVERSE];
    size_t removed = 0;
    bly_filter *f;
    assert_ok(bly_new(&spec, &f));
    for (int step = 0; step < STEPS; step++) {
        const size_t key = test_random(&rng) % UNIVERSE;
        switch (test_random(&rng) % 3) {
        case 0:
            if (!in[key])
                assert_ok(bly_add_hash(f, h[key]));
            in[key] = true;
            break;
        case 1:
            if (in[key]) {
                const bly_status st = bly_remove_hashes(f, &h[key], 1, NULL);
                assert_true(st == BLY_OK || st == BLY_EREFUSED);
                in[key] = st != BLY_OK;
                removed += !st;
            }
            break;
        default:
            if (in[key])
                assert_true(bly_has_hash(f, h[key]));
        }
    }
    assert_true(removed > 1000);
    for (size_t key = 0; key < UNIVERSE; key++)
        if (in[key])
            assert_true(bly_has_hash(f, h[key]));
    free(h);
    bly_free(f);
}

/* Bits behind the last, of either part; shapes that do not fit. */
static void tails_and_shapes_are_checked(void **state)
{
    (void)state;
    const shape_row row = { .n = 100, .m = 1000, .k = 7, .r = 100 };
    bly_filter *f = deletable_new(&row, 1, NULL);
    uint64_t *words = (uint64_t *)(void *)f->data;
    assert_true(f->kind->check(f));
    bly_bit_set(words, 1000);
    assert_false(f->kind->check(f));
    bly_bit_clear(words, 1000);
    bly_bit_set(words + 16, 100);
    assert_false(f->kind->check(f));
    for (unsigned i = 0; i < f->kind->nparams; i++) {
        bly_shape s = bly_shape_of(f);
        s.p[i] = UINT64_MAX;
        assert_false(f->kind->sane(&s));
        s.p[i] = i >= 3; /* 0 but for those that are not kept */
        assert_false(f->kind->sane(&s));
    }
    bly_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(share_of_removable_keys),
        cmocka_unit_test(share_rises_with_regions),
        cmocka_unit_test(plans),
        cmocka_unit_test(three_answers),
        cmocka_unit_test(a_key_added_twice_stays),
        cmocka_unit_test(merged_keys_are_safe),
        cmocka_unit_test(never_a_false_negative),
        cmocka_unit_test(tails_and_shapes_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
