/*
 * test_spectral_compact.c - spectral filters whose counters grow
 *
 * They count what counters of 32 bits do, so these are the measure: whatever is
 * done to both, they answer alike.
 */
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

#include "kinds/filter.h"

enum { COUNTERS, K, UPDATE, WIDTH, SECONDARY, MARKER, RULE, FOLDS, COMPACT };
enum { LARGE = COMPACT + 1 };
enum { STUCK, NLARGE };

static const char *const rules[] = { "selection", "increase", "recurring" };
enum { SELECTION, INCREASE, RECURRING };

static bly_filter *spectral_new(uint64_t items, int rule, bool compact)
{
    const bly_option options[] = { { "update", rules[rule] },
                                   { "folds", "2" },
                                   { "width", "32" } };
    const bly_spec spec = { .kind = "spectral",
                            .items = items,
                            .fpr = 0.01,
                            .options = options,
                            .noptions = compact ? 2 : 3 };
    bly_filter *f;
    assert_ok(bly_new(&spec, &f));
    assert_int_equal(f->shape.p[COMPACT], compact);
    return f;
}

enum { NKEYS = 500 };

static void keys_make(uint64_t rng, uint64_t *h)
{
    for (int i = 0; i < NKEYS; i++)
        h[i] = test_random(&rng);
}

static void assert_alike(const bly_filter *f, const bly_filter *wide,
                         const uint64_t *h)
{
    uint64_t a[NKEYS], b[NKEYS];
    assert_true(f->kind->sane(&f->shape));
    assert_true(f->kind->sound(f));
    assert_true(f->kind->check(f));
    assert_ok(bly_count_hashes(f, h, NKEYS, a));
    assert_ok(bly_count_hashes(wide, h, NKEYS, b));
    assert_memory_equal(a, b, sizeof a);
    for (int i = 0; i < NKEYS; i++)
        assert_int_equal(bly_has_hash(f, h[i]), bly_has_hash(wide, h[i]));
    bly_stats x, y;
    bly_peek(f, &x);
    bly_peek(wide, &y);
    assert_int_equal(x.items_added, y.items_added);
}

/* Steps whose counts are the larger the longer it goes on. */
static void counts_as_wide_counters_do(void **state)
{
    (void)state;
    for (int rule = 0; rule < 3; rule++) {
        bly_filter *f = spectral_new(NKEYS, rule, true);
        bly_filter *wide = spectral_new(NKEYS, rule, false);
        uint64_t rng = 11, h[NKEYS], batch[64], by[64];
        unsigned seen = 0;
        keys_make(3, h);
        for (int step = 0; step < 2000; step++) {
            const size_t n = 1 + (size_t)(test_random(&rng) % 64);
            const unsigned most = step < 400    ? 2
                                  : step < 1200 ? 1000
                                  : step < 1980 ? 100000
                                                : UINT32_MAX;
            for (size_t i = 0; i < n; i++) {
                /* Some keys far more often than others. */
                const uint64_t r = test_random(&rng);
                batch[i] = h[r % 4 ? r / 4 % 20 : r / 4 % NKEYS];
                by[i] = test_random(&rng) % most;
            }
            if (step % 3) {
                assert_ok(bly_increase_hashes(f, batch, by, n, NULL));
                assert_ok(bly_increase_hashes(wide, batch, by, n, NULL));
            } else {
                uint64_t fresh[2] = { 0, 0 };
                assert_ok(bly_add_hashes(f, batch, n, &fresh[0], NULL));
                assert_ok(bly_add_hashes(wide, batch, n, &fresh[1], NULL));
                assert_int_equal(fresh[0], fresh[1]);
            }
            bly_status each[2][64] = { { 0 } };
            (void)bly_remove_hashes(f, batch, n, each[0]);
            (void)bly_remove_hashes(wide, batch, n, each[1]);
            assert_memory_equal(each[0], each[1], sizeof each[0]);
            if (step % 100 == 0 || step > 1980)
                assert_alike(f, wide, h);
            seen |= 1u << f->shape.p[WIDTH] / 8;
            seen |= f->shape.p[LARGE] ? 32u : 0;
        }
        assert_int_equal(f->state[STUCK], wide->state[STUCK]);
        assert_true(f->state[STUCK] > 0);
        assert_int_equal(seen & 32, 32);
        assert_true((seen & 31) == 0x17 || (seen & 31) == 0x07 ||
                    (seen & 31) == 0x03);
        bly_free(f);
        bly_free(wide);
    }
}

/* What is in it decides the bytes, and not how it came; a batch, single keys
 * and counts give one filter. */
static void the_same_counts_are_the_same_bytes(void **state)
{
    (void)state;
    uint64_t h[NKEYS], by[NKEYS];
    keys_make(4, h);
    for (uint64_t most = 2; most < 5000; most *= 7) {
        bly_filter *f = spectral_new(NKEYS, SELECTION, true);
        bly_filter *g = spectral_new(NKEYS, SELECTION, true);
        for (uint64_t i = 0; i < NKEYS; i++)
            by[i] = i % 10 ? i % 3 : i * most / NKEYS;
        assert_ok(bly_increase_hashes(f, h, by, NKEYS, NULL));
        for (size_t i = NKEYS; i--;)
            for (uint64_t j = 0; j < by[i]; j++)
                assert_ok(bly_add_hash(g, h[i]));
        g->nadded = f->nadded;
        assert_true(bly_equal(f, g));
        /* To the file and back. */
        byte_array bytes = written(f);
        bly_filter *back;
        assert_ok(bly_load(bytes.at, bytes.n, NULL, &back));
        assert_true(bly_equal(f, back));
        bly_free(back);
        free(bytes.at);
        bly_free(f);
        bly_free(g);
    }
}

static void fill_both(bly_filter *f, bly_filter *wide, const uint64_t *h,
                      uint64_t most)
{
    uint64_t by[NKEYS];
    for (uint64_t i = 0; i < NKEYS; i++)
        by[i] = i * i % most;
    assert_ok(bly_increase_hashes(f, h, by, NKEYS, NULL));
    assert_ok(bly_increase_hashes(wide, h, by, NKEYS, NULL));
}

/* Unions, intersections, halves and comparisons of filters that grew to
 * different widths, and of old ones with new ones. */
static void combines_with_any_width(void **state)
{
    (void)state;
    static const uint64_t most[] = { 3, 40, 1000, 200000 };
    uint64_t h[NKEYS], other[NKEYS];
    keys_make(5, h);
    keys_make(6, other);
    memcpy(other, h, sizeof h / 2);
    for (int rule = 0; rule < 3; rule++)
        for (size_t i = 0; i < COUNT_OF(most) * COUNT_OF(most); i++) {
            bly_filter *a = spectral_new(NKEYS, rule, true);
            bly_filter *b = spectral_new(NKEYS, rule, true);
            bly_filter *wide_a = spectral_new(NKEYS, rule, false);
            bly_filter *wide_b = spectral_new(NKEYS, rule, false);
            bly_filter *half, *wide_half, *mixed;
            bly_likeness like, wide_like;
            fill_both(a, wide_a, h, most[i / COUNT_OF(most)]);
            fill_both(b, wide_b, other, most[i % COUNT_OF(most)]);
            assert_ok(bly_compare(a, b, &like));
            assert_ok(bly_compare(wide_a, wide_b, &wide_like));
            assert_memory_equal(&like, &wide_like, sizeof like);
            assert_ok(bly_clone(wide_a, &mixed));
            assert_ok(bly_merge(mixed, b));
            assert_ok(bly_merge(a, b));
            assert_ok(bly_merge(wide_a, wide_b));
            assert_alike(a, wide_a, h);
            assert_true(bly_equal(mixed, wide_a));
            bly_free(mixed);
            assert_ok(bly_fold(a, &half));
            assert_ok(bly_fold(wide_a, &wide_half));
            assert_alike(half, wide_half, h);
            assert_ok(bly_fold(wide_a, &mixed));
            bly_free(mixed);
            assert_ok(bly_intersect(a, b));
            assert_ok(bly_intersect(wide_a, wide_b));
            assert_alike(a, wide_a, other);
            bly_free(half);
            bly_free(wide_half);
            bly_free(a);
            bly_free(b);
            bly_free(wide_a);
            bly_free(wide_b);
        }
}

/* A filter that may not grow refuses a key, with all before it in it. */
static void no_room_to_grow(void **state)
{
    (void)state;
    for (int rule = 0; rule < 3; rule++) {
        bly_filter *f = spectral_new(NKEYS, rule, true);
        uint64_t h[NKEYS], by[NKEYS];
        size_t done;
        keys_make(7, h);
        for (int i = 0; i < NKEYS; i++)
            by[i] = i < 100 ? 1 : 1000;
        bly_limit(f, f->shape.nbytes + 100);
        assert_status(bly_increase_hashes(f, h, by, NKEYS, &done), BLY_ERANGE);
        assert_int_equal(done, 100);
        assert_true(f->kind->check(f));
        assert_true(count_of(f, h[0]) >= 1 && count_of(f, h[0]) < 15);
        bly_limit(f, 0);
        assert_ok(
            bly_increase_hashes(f, h + done, by + done, NKEYS - done, NULL));
        assert_true(f->kind->check(f));
        for (int i = 0; i < NKEYS && rule != RECURRING; i++)
            assert_true(count_of(f, h[i]) >= by[i]);
        bly_free(f);
    }
}

/* What they take: 38.3 bits per key where keys come once, and no more than
 * counters of 32 bits whatever comes. */
static void bits_per_key(void **state)
{
    (void)state;
    enum { N = 20000 };
    static const struct {
        uint64_t each, rare; /* a key in a hundred comes so often */
        double most;
    } rows[] = { { 1, 1, 38.5 },   { 1, 5, 39 },     { 2, 2, 41 },
                 { 1, 100, 60 },   { 1, 10000, 60 }, { 20, 20, 100 },
                 { 200, 200, 160 } };
    for (size_t r = 0; r < COUNT_OF(rows); r++) {
        const bly_spec spec = { .kind = "spectral", .items = N, .fpr = 0.01 };
        bly_filter *f;
        uint64_t rng = 8;
        assert_ok(bly_new(&spec, &f));
        for (int i = 0; i < N; i++) {
            const uint64_t h = test_random(&rng);
            const uint64_t by = i % 100 ? rows[r].each : rows[r].rare;
            assert_ok(bly_increase_hashes(f, &h, &by, 1, NULL));
        }
        const double bits = 8 * (double)f->shape.nbytes / N;
        print_message("each %llu, one in 100 %llu: %.1f bits per key, width "
                      "%llu, %llu places\n",
                      (unsigned long long)rows[r].each,
                      (unsigned long long)rows[r].rare, bits,
                      (unsigned long long)f->shape.p[WIDTH],
                      (unsigned long long)f->shape.p[LARGE]);
        assert_true(bits < rows[r].most);
        bly_free(f);
    }
}

/* Shapes and tables that no filter has. */
static void forged(void **state)
{
    (void)state;
    bly_filter *f = spectral_new(NKEYS, SELECTION, true);
    uint64_t h[NKEYS], by[NKEYS];
    keys_make(9, h);
    for (int i = 0; i < NKEYS; i++)
        by[i] = i % 50 ? 1 : 20;
    assert_ok(bly_increase_hashes(f, h, by, NKEYS, NULL));
    assert_true(f->shape.p[LARGE] > 0 && f->state[NLARGE] > 0);
    static const struct {
        int at;
        uint64_t to;
    } bad[] = { { COMPACT, 0 },      { COMPACT, 2 },       { WIDTH, 8 },
                { WIDTH, 32 },       { LARGE, 0 },         { LARGE, 25 },
                { LARGE, 1u << 30 }, { LARGE, UINT64_MAX } };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        bly_shape s = bly_shape_of(f);
        s.p[bad[i].at] = bad[i].to;
        assert_false(f->kind->sane(&s));
    }
    f->state[NLARGE]++;
    assert_false(f->kind->check(f));
    f->state[NLARGE] = UINT64_MAX;
    assert_false(f->kind->sound(f));
    bly_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_as_wide_counters_do),
        cmocka_unit_test(the_same_counts_are_the_same_bytes),
        cmocka_unit_test(combines_with_any_width),
        cmocka_unit_test(no_room_to_grow),
        cmocka_unit_test(bits_per_key),
        cmocka_unit_test(forged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
