/*
 * test_compressed.c - what is peculiar to the compressed kind
 *
 * The examples of the paper, digit by digit, by the formulas and by plan; its
 * choices; the rates and the sizes that come out. What it shares with every
 * kind is in test_laws.c, what it shares with classic in test_classic.c.
 */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/maths.h"
#include "kinds/filter.h"

#define HEADER 296 /* of a coded file */

static double fact(const bly_prediction *p, const char *name)
{
    for (size_t i = 0; i < p->nfacts; i++)
        if (strcmp(p->facts[i].name, name) == 0)
            return p->facts[i].real;
    fail_msg("no fact %s", name);
    return NAN;
}

/* The table of Mitzenmacher's paper; the numbers as printed, and the last
 * digit of each. For a limit the limit is given, else a rate. */
static const struct {
    double limit, rate, c, k, sent, sent_digit, fpr, fpr_digit;
    const char *memory;
} rows[] = {
    { 8, 0, 8, 6, 7.982, 0.001, 0.021577, 1e-6, "8" },
    { 8, 0, 14, 2, 7.923, 0.001, 0.017721, 1e-6, "14" },
    { 8, 0, 92, 1, 7.923, 0.001, 0.010811, 1e-6, "92" },
    { 16, 0, 16, 11, 16.000, 0.001, 0.000458711, 1e-9, "16" },
    { 16, 0, 28, 4, 15.846, 0.001, 0.000314051, 1e-9, "28" },
    { 16, 0, 48, 3, 15.829, 0.001, 0.000222401, 1e-9, "48" },
    { 0, 0.0216, 12.6, 2, 7.582, 0.001, 0.021542, 1e-6, "12.6" },
    { 0, 0.0216, 46, 1, 6.891, 0.001, 0.021505, 1e-6, "46" },
    { 0, 0.00046, 37.5, 3, 14.666, 0.001, 0.000454, 1e-6, "37.5" },
    { 0, 0.00046, 93, 2, 13.815, 0.001, 0.000453, 1e-6, "93" },
};

static void the_formulas_give_the_table(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const double z = bly_sent_bits(1, rows[i].c, rows[i].k);
        const double f = bly_fpr_approx(1, rows[i].c, rows[i].k);
        assert_between(z, rows[i].sent - 0.5001 * rows[i].sent_digit,
                       rows[i].sent + 0.5001 * rows[i].sent_digit);
        assert_between(f, rows[i].fpr - 0.5001 * rows[i].fpr_digit,
                       rows[i].fpr + 0.5001 * rows[i].fpr_digit);
    }
}

/* With so much memory and no more, plan finds the row; for a rate, a row at
 * least as good, since those of the paper are rounded. */
static void plan_gives_the_table(void **unused)
{
    (void)unused;
    const double n = 1e6;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const bly_option option = { "memory", rows[i].memory };
        const bly_spec spec = { .kind = "compressed",
                                .items = (uint64_t)n,
                                .fpr = rows[i].rate,
                                .bits = (uint64_t)(rows[i].limit * n),
                                .options = &option,
                                .noptions = 1 };
        bly_prediction p;
        assert_ok(bly_plan(&spec, &p));
        assert_true(fact(&p, "k") == rows[i].k);
        assert_true(fact(&p, "memory_bits_per_key") <= rows[i].c);
        if (rows[i].limit > 0) {
            /* Row 4: the coder gains nothing at all there. */
            assert_true(fact(&p, "bits") >= (rows[i].c - 0.001) * n);
            assert_between(p.bits_per_key,
                           rows[i].sent - 0.51 * rows[i].sent_digit,
                           rows[i].sent + 0.51 * rows[i].sent_digit);
            assert_near(p.fpr, rows[i].fpr, 1e-3);
        } else {
            assert_between(p.bits_per_key, rows[i].sent * 0.99, rows[i].sent);
            assert_near(p.fpr, rows[i].rate, 1e-3);
        }
        assert_true(fact(&p, "sent_bits") == (double)p.bits);
        assert_near(fact(&p, "sent_bits_per_key"), p.bits_per_key, 1e-12);
        assert_true(8 * p.bytes >= (uint64_t)fact(&p, "bits"));
    }
}

/* Against every k by hand: none within the memory is better. */
static void no_other_k_is_better(void **unused)
{
    (void)unused;
    const uint64_t n = 100000;
    for (double z = 1; z < 40; z *= 1.3) {
        bly_spec spec = { .kind = "compressed",
                          .items = n,
                          .bits = (uint64_t)(z * (double)n) };
        bly_prediction best, p;
        assert_ok(bly_plan(&spec, &best));
        assert_true(best.bits <= spec.bits);
        assert_true(fact(&best, "bits") <= 4 * (double)spec.bits);
        for (unsigned k = 1; k <= 40; k++) {
            char text[8];
            snprintf(text, sizeof text, "%u", k);
            const bly_option option = { "k", text };
            bly_spec other = spec;
            other.options = &option;
            other.noptions = 1;
            assert_ok(bly_plan(&other, &p));
            assert_true(fact(&p, "k") == k);
            assert_true(p.bits <= spec.bits);
            if (fact(&p, "fill_at_capacity") < 0.5)
                assert_true(best.fpr <= p.fpr * (1 + 1e-6));
        }
        /* And the rate that comes out takes no more to ask for; unless it was
         * the memory that ended first, which is four times what may be sent
         * here, and what is sent there. */
        if ((double)best.bits < 0.999 * (double)spec.bits)
            continue;
        spec.bits = 0;
        spec.fpr = best.fpr;
        assert_ok(bly_plan(&spec, &p));
        assert_between((double)p.bits, 0, (double)best.bits * 1.001 + 10);
    }
}

/* It takes less on the way than the filters that are best in memory, and more
 * than nothing. */
static void less_is_sent_than_by_classic(void **unused)
{
    (void)unused;
    for (double rate = 0.1; rate > 1e-6; rate /= 3) {
        bly_spec spec = { .kind = "compressed", .items = 50000, .fpr = rate };
        bly_prediction mine, classic;
        assert_ok(bly_plan(&spec, &mine));
        spec.kind = "classic";
        assert_ok(bly_plan(&spec, &classic));
        assert_true(mine.bits < classic.bits);
        assert_true(mine.bytes <= 4 * mine.bits / 8 + 8);
        assert_true(mine.bits_per_key > log2(1 / rate));
    }
}

static void what_cannot_be_planned(void **unused)
{
    (void)unused;
    const bly_option little = { "memory", "9" }, negative = { "memory", "-1" };
    bly_prediction p;
    bly_spec spec = { .kind = "compressed",
                      .items = 1000,
                      .fpr = 0.01,
                      .options = &little,
                      .noptions = 1 };
    assert_status(bly_plan(&spec, &p), BLY_EINVAL);
    assert_non_null(strstr(bly_error(), "9.59 bits per key"));
    spec.options = &negative;
    assert_status(bly_plan(&spec, &p), BLY_EINVAL);
    const bly_option tight[] = { { "memory", "0.1" }, { "k", "200" } };
    spec = (bly_spec){ .kind = "compressed",
                       .items = 1000,
                       .bits = 8000,
                       .options = tight,
                       .noptions = 2 };
    assert_status(bly_plan(&spec, &p), BLY_EINVAL);
    assert_non_null(strstr(bly_error(), "k = 200"));
}

/* Filled to capacity: the rate of the table, by so many questions that two
 * deviations are 3 % of it; and a file of the planned size. */
static void rates_and_sizes_are_kept(void **unused)
{
    (void)unused;
    static const struct {
        uint64_t bits;
        const char *memory;
        double rate;
        size_t nasked;
    } cases[] = {
        { 8, "8", 0.021577, 1000000 },
        { 8, "14", 0.017721, 1000000 },
        { 8, "92", 0.010811, 2000000 },
        { 16, "16", 0.000458711, 30000000 },
        { 16, "28", 0.000314051, 40000000 },
        { 16, "48", 0.000222401, 60000000 },
    };
    const size_t n = 100000;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const bly_option option = { "memory", cases[i].memory };
        const bly_spec spec = { .kind = "compressed",
                                .items = n,
                                .bits = cases[i].bits * n,
                                .seed = LAW_SEED,
                                .options = &option,
                                .noptions = 1 };
        bly_prediction p;
        assert_ok(bly_plan(&spec, &p));
        bly_filter *f = filled_from(&spec, 0, n);
        const double sent = (double)(bly_written_bytes(f) - HEADER) * 8;
        assert_near(sent, (double)p.bits, 0.01);
        assert_near(bly_entropy(f), (double)p.bits, 0.01);
        assert_between(sent, bly_entropy(f), 1.01 * bly_entropy(f) + 128);
        const size_t nasked = scaled(cases[i].nasked);
        const double slack = nasked == cases[i].nasked ? 0.03 : 0.1;
        assert_near((double)hits(f, ABSENT, nasked) / (double)nasked,
                    cases[i].rate, slack);
        bly_free(f);
    }
}

/* It is the classic filter of the same m and k in the shared layout, bit by
 * bit. */
static void it_is_a_classic_filter(void **unused)
{
    (void)unused;
    const bly_option options[] = { { "k", "3" }, { "layout", "shared" } };
    bly_spec spec = { .kind = "compressed",
                      .items = 5000,
                      .bits = 50000,
                      .seed = LAW_SEED,
                      .options = options,
                      .noptions = 1 };
    bly_filter *f = filled_from(&spec, 0, 5000);
    spec.kind = "classic";
    spec.noptions = COUNT_OF(options);
    spec.bits = f->shape.p[0];
    bly_filter *g = filled_from(&spec, 0, 5000);
    assert_int_equal(f->shape.nbytes, g->shape.nbytes);
    assert_memory_equal(f->data, g->data, f->shape.nbytes);
    assert_true(f->coded && !g->coded);
    bly_free(f);
    bly_free(g);
}

/* What would be sent is kept with the shape, and checked. */
static void shapes_from_outside(void **unused)
{
    (void)unused;
    const bly_spec spec = { .kind = "compressed", .items = 1000, .fpr = 0.01 };
    bly_filter *f;
    assert_ok(bly_new(&spec, &f));
    bly_shape s = bly_shape_of(f);
    assert_true(f->kind->sane(&s));
    s.p[3] = 0;
    assert_false(f->kind->sane(&s));
    s.p[3] = s.p[0] + 1;
    assert_false(f->kind->sane(&s));
    s.p[3] = s.p[0];
    assert_true(f->kind->sane(&s));
    s.p[1] = 256;
    assert_false(f->kind->sane(&s));
    s.p[1] = 1;
    s.nbytes += 8;
    assert_false(f->kind->sane(&s));
    bly_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_formulas_give_the_table),
        cmocka_unit_test(plan_gives_the_table),
        cmocka_unit_test(no_other_k_is_better),
        cmocka_unit_test(less_is_sent_than_by_classic),
        cmocka_unit_test(what_cannot_be_planned),
        cmocka_unit_test(rates_and_sizes_are_kept),
        cmocka_unit_test(it_is_a_classic_filter),
        cmocka_unit_test(shapes_from_outside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
