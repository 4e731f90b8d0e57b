/*
 * test_xor.c - the xor filter: sizes, rates, small sets, shapes
 *
 * What it shares with the fuse filter is tested in test_fuse.c.
 */
#include "support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kinds/filter.h"

/* floor(1.23 n + 32) slots, cut to three equal parts. */
static void sizes(void **state)
{
    (void)state;
    static const struct {
        uint64_t n, slots;
    } rows[] = { { 1, 33 }, { 10, 42 }, { 1000, 1260 }, { 1000000, 1230030 } };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const bly_spec spec = { .kind = "xor", .items = rows[i].n };
        bly_prediction p;
        assert_ok(bly_plan(&spec, &p));
        assert_int_equal(p.bits, 8 * rows[i].slots);
        assert_near(p.fpr, 0x1p-8, 1e-9);
    }
}

/* Every width and number of shards: all keys, and one in 2^bits of others. */
static void every_form(void **state)
{
    (void)state;
    static const char *const widths[] = { "8", "16", "32" };
    static const char *const shards[] = { "1", "5" };
    const size_t n = 40000, q = scaled(2000000);
    for (size_t i = 0; i < 6; i++) {
        const bly_option options[] = { { "bits", widths[i % 3] },
                                       { "shards", shards[i / 3] } };
        const bly_spec spec = {
            .kind = "xor", .items = n, .options = options, .noptions = 2
        };
        bly_filter *f = filled_from(&spec, 0, n);
        bly_stats stats;
        bly_stat(f, &stats);
        const double p = exp2(-atof(widths[i % 3])), sd = sqrt((double)q * p);
        assert_near(stats.fpr_now, p, 0);
        assert_near(stats.items_estimate, (double)n, 0);
        assert_int_equal(hits(f, 0, n), n);
        assert_between((double)hits(f, ABSENT, q), (double)q * p - 5 * sd,
                       (double)q * p + 5 * sd + 1);
        bly_free(f);
    }
}

static void small_sets(void **state)
{
    (void)state;
    for (size_t n = 0; n <= 200; n += n < 20 ? 1 : 30) {
        const bly_spec spec = { .kind = "xor" };
        bly_filter *f = filled_from(&spec, 0, n);
        assert_int_equal(hits(f, 0, n), n);
        if (n == 0)
            assert_int_equal(hits(f, ABSENT, 10000), 0);
        bly_free(f);
    }
}

/* A xor filter has one window, and parts of any length. */
static void shapes_from_outside(void **state)
{
    (void)state;
    const bly_kind *kind = bly_kind_by_name("xor");
    const bly_spec spec = { .kind = "xor", .items = 10000 };
    bly_filter *f = filled_from(&spec, 0, 10000);
    static const uint64_t wrong[] = {
        0, 2, 3, 9, UINT64_C(1) << 33, UINT64_MAX
    };
    assert_true(kind->sane(&f->shape));
    for (unsigned i = 0; i < 5; i++)
        for (size_t j = 0; j < COUNT_OF(wrong); j++) {
            bly_shape s = bly_shape_of(f);
            s.p[i] = wrong[j];
            /* The last is the mixing, of which there are two. */
            assert_true(kind->sane(&s) ==
                        (s.p[i] == f->shape.p[i] || (i == 4 && s.p[i] == 0)));
        }
    bly_free(f);
}

/* Beyond the size from which cells are fetched ahead: with instructions of the
 * processor and without, to the last bit. */
static void rows_agree(void **state)
{
    (void)state;
    static const bly_option options[] = { { "bits", "8" },
                                          { "bits", "16" },
                                          { "bits", "32" },
                                          { "shards", "8" },
                                          { "shards", "9" } };
    for (size_t i = 0; i < COUNT_OF(options); i++) {
        const size_t n = scaled(400000);
        const bly_spec spec = { .kind = "xor",
                                .items = n,
                                .seed = LAW_SEED,
                                .options = &options[i],
                                .noptions = 1 };
        assert_rows_agree(&spec, n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),      cmocka_unit_test(every_form),
        cmocka_unit_test(small_sets), cmocka_unit_test(shapes_from_outside),
        cmocka_unit_test(rows_agree),
    };
    return cmocka_run_group_tests_name("xor", tests, NULL, NULL);
}
