/*
 * test_floom.c - what is peculiar to the floom kind
 *
 * Its patterns; its predicted rates against those that were published; and
 * its result: no better than a plain filter of the same memory.
 */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/bits.h"
#include "core/maths.h"
#include "core/position.h"
#include "engine/bit_count.h"
#include "kinds/filter.h"

static double fact_real(const bly_prediction *p, const char *name)
{
    for (size_t i = 0; i < p->nfacts; i++)
        if (strcmp(p->facts[i].name, name) == 0)
            return p->facts[i].real;
    fail_msg("no fact %s", name);
    return NAN;
}

/* A filter of m bits and 2^b more. */
static bly_spec floom_spec(uint64_t n, uint64_t m, unsigned k, unsigned b,
                           bool source, bly_option *o)
{
    static char text[2][24];
    snprintf(text[0], sizeof text[0], "%u", k);
    snprintf(text[1], sizeof text[1], "%u", b);
    o[0] = (bly_option){ "b", text[1] };
    o[1] = (bly_option){ "source_regions", source ? "yes" : "no" };
    o[2] = (bly_option){ "k", text[0] };
    return (bly_spec){ .kind = "floom",
                       .items = n,
                       .bits = m + (UINT64_C(1) << b),
                       .seed = LAW_SEED,
                       .options = o,
                       .noptions = 3 };
}

/* Every bit and the one pattern, against the definition; both borders. */
static void bits_and_patterns(void **state)
{
    (void)state;
    static const struct {
        uint64_t m;
        unsigned k, b;
    } shapes[] = { { 1000, 7, 5 }, { 10, 3, 5 },  { 64, 2, 1 },
                   { 37, 5, 3 },   { 28, 9, 28 }, { 100000, 4, 16 } };
    uint64_t rng = 5;
    for (size_t s = 0; s < COUNT_OF(shapes); s++) {
        for (int round = 0; round < 100; round++) {
            const uint64_t m = shapes[s].m, b = shapes[s].b;
            const bool source = round % 2;
            if (b == 28 && round > 3)
                break; /* 32 MiB each */
            bly_option o[3];
            const bly_spec spec =
                floom_spec(10, m, shapes[s].k, shapes[s].b, source, o);
            bly_filter *f;
            assert_ok(bly_new(&spec, &f));
            const uint64_t h = test_random(&rng);
            assert_ok(bly_add_hash(f, h));
            const uint64_t *words = (const uint64_t *)(const void *)f->data;
            const uint64_t *patterns = words + (m + 63) / 64;
            uint64_t pattern = 0;
            for (unsigned i = 0; i < shapes[s].k; i++) {
                const uint64_t p = bly_position(h, i, m);
                unsigned j = 0;
                assert_true(bly_bit_get(words, p));
                if (source)
                    while (j + 1 < b && p * b > (j + 1) * m)
                        j++;
                else
                    while (p * b >= (j + 1) * m)
                        j++;
                pattern |= UINT64_C(1) << j;
            }
            assert_true(pattern != 0);
            assert_true(bly_bit_get(patterns, pattern));
            assert_int_equal(
                bly_bits_count(patterns, f->shape.nbytes / 8 - (m + 63) / 64),
                1);
            assert_true(bly_has_hash(f, h));
            bly_bit_clear((uint64_t *)(void *)(f->data) + (m + 63) / 64,
                          pattern);
            assert_false(bly_has_hash(f, h));
            bly_free(f);
        }
    }
}

/* Probes in the second and the fifth of five regions: pattern 18 of 32. */
static void worked_example(void **state)
{
    (void)state;
    bly_option o[3];
    const bly_spec spec = floom_spec(10, 1000, 2, 5, false, o);
    bly_filter *f;
    uint64_t h = 0;
    while (!(bly_position(h, 0, 1000) / 200 == 1 &&
             bly_position(h, 1, 1000) / 200 == 4))
        h++;
    assert_ok(bly_new(&spec, &f));
    assert_ok(bly_add_hash(f, h));
    assert_true(bly_bit_get((const uint64_t *)(const void *)f->data + 16, 18));
    bly_free(f);
}

/* Patterns have at most k ones: most of the extra memory is out of reach. */
static void reachable_patterns(void **state)
{
    (void)state;
    static const struct {
        unsigned b, k;
        double reachable;
    } rows[] = {
        { 16, 7, 26332 }, { 16, 4, 2516 }, { 12, 7, 3301 }, { 8, 4, 162 }
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        bly_option o[3];
        const bly_spec spec =
            floom_spec(1000, 10000, rows[i].k, rows[i].b, false, o);
        bly_prediction p;
        assert_ok(bly_plan(&spec, &p));
        assert_near(fact_real(&p, "patterns_reachable"), rows[i].reachable, 0);
    }
}

/* Bits alone, with patterns, plain filter of all bits: predicted by formula,
 * p = 0.01, b = 16. */
static void predicted_rates(void **state)
{
    (void)state;
    static const struct {
        uint64_t n;
        double bloom, floom, big;
    } rows[] = {
        { 1000, 0.010005, 0.000471, 0.000000 },
        { 5000, 0.010037, 0.002126, 0.000018 },
        { 10000, 0.010037, 0.003751, 0.000429 },
        { 20000, 0.010039, 0.005965, 0.002072 },
        { 50000, 0.010039, 0.008657, 0.005356 },
        { 100000, 0.010039, 0.009643, 0.007301 },
        { 200000, 0.010039, 0.009977, 0.008548 },
        { 400000, 0.010039, 0.010035, 0.009260 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const bly_size size = bly_size_rule_a((double)rows[i].n, 0.01);
        bly_option o[3];
        const bly_spec spec =
            floom_spec(rows[i].n, (uint64_t)size.m, size.k, 16, false, o);
        bly_prediction p;
        assert_ok(bly_plan(&spec, &p));
        const double bloom = fact_real(&p, "fpr_without_patterns");
        const double floom = fact_real(&p, "fpr_floom");
        const double big = fact_real(&p, "fpr_plain_of_all_bits");
        if (fabs(bloom - rows[i].bloom) > 4e-5 ||
            fabs(floom - rows[i].floom) > 4e-5 ||
            fabs(big - rows[i].big) > 4e-5)
            fail_msg("n = %llu: %.6f %.6f %.6f", (unsigned long long)rows[i].n,
                     bloom, floom, big);
        assert_near(p.fpr, floom, 0.01);
    }
}

/* What was published of one run each, 1000 keys: bits alone, with patterns and
 * plain. Here over 20 filters, in the order that the formula gives, and near
 * to it. */
static void measured_rates(void **state)
{
    (void)state;
    static const struct {
        double p;
        unsigned b;
        double bloom, floom, big;
    } rows[] = { { 0.01, 16, 0.009706, 0.000452, 0.000000 },
                 { 0.05, 16, 0.051397, 0.017187, 0.000000 },
                 { 0.01, 12, 0.009706, 0.003055, 0.001412 },
                 { 0.05, 12, 0.051397, 0.037818, 0.007392 },
                 { 0.01, 8, 0.009706, 0.009479, 0.008013 } };
    enum { N = 1000, FILTERS = 20, ASKED = 20000 };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const bly_size size = bly_size_rule_a(N, rows[i].p);
        bly_option o[3];
        bly_spec spec =
            floom_spec(N, (uint64_t)size.m, size.k, rows[i].b, false, o);
        bly_prediction p;
        assert_ok(bly_plan(&spec, &p));
        double seen = 0, now = 0;
        for (uint64_t seed = 0; seed < FILTERS; seed++) {
            bly_stats stats;
            spec.seed = seed;
            bly_filter *f = filled_from(&spec, 0, N);
            bly_stat(f, &stats);
            seen += (double)hits(f, N, ASKED) / ASKED / FILTERS;
            now += stats.fpr_now / FILTERS;
            bly_free(f);
        }
        const double sd = sqrt(p.fpr / ASKED / FILTERS);
        assert_between(seen, p.fpr * 0.95 - 4 * sd, p.fpr * 1.05 + 4 * sd);
        assert_between(seen, now * 0.98 - 4 * sd, now * 1.02 + 4 * sd);
        /* The published single runs lie within a tenth of the formula. */
        assert_near(rows[i].floom, fact_real(&p, "fpr_floom"), 0.1);
        assert_between(rows[i].big,
                       fact_real(&p, "fpr_plain_of_all_bits") * 0.8 - 1e-5,
                       fact_real(&p, "fpr_plain_of_all_bits") * 1.2 + 1e-5);
        assert_true(rows[i].bloom >= rows[i].floom &&
                    rows[i].floom > rows[i].big);
    }
}

/* The result: of 16 x 16 x 7 combinations none in which patterns are worth
 * their bits, by the formulas. */
static void never_better_than_plain(void **state)
{
    (void)state;
    static const double rates[] = { 0.001, 0.002, 0.003, 0.005, 0.01,  0.015,
                                    0.02,  0.03,  0.04,  0.05,  0.075, 0.1,
                                    0.125, 0.15,  0.175, 0.2 };
    static const uint64_t ns[] = {
        50, 200, 1000, 5000, 20000, 100000, 1000000
    };
    size_t tried = 0;
    for (size_t i = 0; i < COUNT_OF(rates); i++)
        for (unsigned b = 3; b <= 18; b++)
            for (size_t j = 0; j < COUNT_OF(ns); j++) {
                const bly_size size = bly_size_rule_a((double)ns[j], rates[i]);
                bly_option o[3];
                const bly_spec spec =
                    floom_spec(ns[j], (uint64_t)size.m, size.k, b, false, o);
                bly_prediction p;
                assert_ok(bly_plan(&spec, &p));
                const double floom = fact_real(&p, "fpr_floom");
                const double big = fact_real(&p, "fpr_plain_of_all_bits");
                if (!(floom >= big))
                    fail_msg("n %llu, p %g, b %u: %.9g against %.9g",
                             (unsigned long long)ns[j], rates[i], b, floom,
                             big);
                assert_true(floom <= fact_real(&p, "fpr_without_patterns") *
                                         (1 + 1e-12));
                tried++;
            }
    assert_int_equal(tried, 1792);
}

static void options_out_of_range(void **state)
{
    (void)state;
    static const bly_option bad[] = {
        { "b", "0" }, { "b", "29" }, { "k", "0" }, { "source_regions", "2" }
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        const bly_spec spec = { .kind = "floom",
                                .items = 100,
                                .fpr = 0.01,
                                .options = &bad[i],
                                .noptions = 1 };
        bly_prediction p;
        assert_status(bly_plan(&spec, &p), BLY_EINVAL);
    }
    /* Patterns alone take more than there is. */
    const bly_option b = { "b", "16" };
    const bly_spec spec = { .kind = "floom",
                            .items = 100,
                            .bits = 65536,
                            .options = &b,
                            .noptions = 1 };
    bly_prediction p;
    assert_status(bly_plan(&spec, &p), BLY_EINVAL);
}

/* Bits that no key sets: behind the last, and the pattern of no region. */
static void damage_is_seen(void **state)
{
    (void)state;
    bly_option o[3];
    const bly_spec spec = floom_spec(100, 1000, 7, 5, false, o);
    bly_filter *f = filled_from(&spec, 0, 100);
    uint64_t *words = (uint64_t *)(void *)f->data;
    static const uint64_t bad[] = { 1000, 1024, 1024 + 32 };
    assert_true(f->kind->check(f));
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        bly_bit_set(words, bad[i]);
        assert_false(f->kind->check(f));
        bly_bit_clear(words, bad[i]);
    }
    for (unsigned i = 0; i < f->kind->nparams; i++) {
        bly_shape s = bly_shape_of(f);
        s.p[i] = UINT64_MAX;
        assert_false(f->kind->sane(&s));
    }
    bly_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_and_patterns),
        cmocka_unit_test(worked_example),
        cmocka_unit_test(reachable_patterns),
        cmocka_unit_test(predicted_rates),
        cmocka_unit_test(measured_rates),
        cmocka_unit_test(never_better_than_plain),
        cmocka_unit_test(options_out_of_range),
        cmocka_unit_test(damage_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
