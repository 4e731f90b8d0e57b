/*
 * test_quotient.c - what is peculiar to the quotient kind
 *
 * A table is a function of the multiset of fingerprints it holds, byte for
 * byte, whatever happened before: most tests lean on that. What it shares with
 * every kind is in test_laws.c.
 */
#define _GNU_SOURCE /* setenv */
#include "tests/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/bits.h"
#include "kinds/filter.h"

enum { P_SLOTS, P_R, P_FOLDS, P_COUNTS };
enum { USED, DISTINCT, TOTAL };

/* All tests run with counts of three slots, and with the four of old files. */
static uint64_t counts_form = 1;

static bly_filter *quotient_new(uint64_t items, double fpr)
{
    const bly_spec spec = { .kind = "quotient", .items = items, .fpr = fpr };
    bly_filter *f;
    assert_ok(bly_new(&spec, &f));
    return f;
}

/* A table of this very shape, which plan() need not choose. */
static bly_filter *table(uint64_t nslots, uint64_t r)
{
    const bly_kind *kind = bly_kind_by_name("quotient");
    bly_shape s = {
        .p = { [P_SLOTS] = nslots, [P_R] = r, [P_COUNTS] = counts_form }
    };
    bly_setting set = { .items = nslots * 19 / 20,
                        .fpr = NAN,
                        .hasher = { .id = BLY_HASH_XXH3 } };
    bly_filter *f;
    s.nbytes = (kind->bits(&s) / 8 + 14) / 8 * 8;
    assert_true(kind->sane(&s));
    assert_ok(bly_filter_make(kind, &s, &set, &f));
    return f;
}

static uint64_t fingerprint(const bly_filter *f, uint64_t h)
{
    return bly_scale(h, f->shape.p[P_SLOTS] << f->shape.p[P_R]);
}

static bly_status increase(bly_filter *f, uint64_t h, uint64_t by)
{
    return bly_increase_hashes(f, &h, &by, 1, NULL);
}

/* The table of section 10.2 of the specification. */
static void rates_and_bits_of_the_table(void **state)
{
    (void)state;
    static const struct {
        uint64_t r;
        double load, rate, bits;
    } rows[] = {
        { 8, 0.75, 0.0029254, 13.50 },
        { 8, 0.95, 0.0037041, 10.66 },
        { 13, 0.90, 0.00010986, 16.81 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        bly_filter *f = table(1 << 20, rows[i].r);
        const double n = rows[i].load * (1 << 20);
        assert_near(f->kind->rate(&f->shape, n), rows[i].rate, 1e-4);
        assert_near((double)f->kind->bits(&f->shape) / n, rows[i].bits, 1e-3);
        bly_free(f);
    }
}

static void bits_per_key(void **state)
{
    (void)state;
    static const double rates[] = { 0.01, 0.001 };
    for (size_t i = 0; i < COUNT_OF(rates); i++) {
        const double p = rates[i];
        const bly_spec spec = { .kind = "quotient",
                                .items = 1000000,
                                .fpr = p };
        bly_prediction out;
        assert_ok(bly_plan(&spec, &out));
        assert_between(out.bits_per_key, log2(1 / p), log2(1 / p) + 3.2);
        assert_between(out.fpr, p / 2, p);
    }
    const bly_spec spec = { .kind = "quotient", .items = 1000000 };
    bly_prediction out; /* the worked example of quotient.c */
    assert_ok(bly_plan(&spec, &out));
    assert_int_equal(out.facts[P_SLOTS].uint, 1052672);
    assert_int_equal(out.facts[P_R].uint, 7);
    assert_near(out.bits_per_key, 9.607, 1e-3);
    assert_near(out.fpr, 0.0074, 0.002);
}

/* Filled to capacity, the rate is the predicted one. */
static void the_rate_is_kept(void **state)
{
    (void)state;
    for (uint64_t r = 1; r <= 8; r += 7) {
        bly_filter *f = table(1 << 16, r);
        const uint64_t n = fill_random(f, 5, r == 1 ? 55000 : f->items);
        assert_int_equal(n, r == 1 ? 55000 : f->items);
        const double p = f->kind->rate(&f->shape, (double)n), q = 3e5;
        uint64_t rng = 1234;
        double seen = 0;
        for (int i = 0; i < (int)q; i++)
            seen += bly_has_hash(f, test_random(&rng));
        const double sd = sqrt(p / q + p * p / (double)n);
        assert_between(seen / q, p - 5 * sd, p + 5 * sd);
        bly_stats stats;
        bly_stat(f, &stats);
        assert_near(stats.fpr_now, p, 0.01);
        assert_between(stats.items_estimate, (double)n - 6 * stats.items_sd - 1,
                       (double)n + 6 * stats.items_sd + 1);
        bly_free(f);
    }
}

/* Estimates are off by as much as they say, also where many keys share a
 * fingerprint: 800 squares of normal deviates have a mean of 1 +- 0.05. */
static void the_deviation_is_that_of_estimates(void **state)
{
    (void)state;
    enum { RUNS = 800, KEYS = 1700 };
    double squares = 0;
    for (unsigned run = 0; run < RUNS; run++) {
        bly_filter *f = table(1 << 11, 1);
        bly_stats stats;
        assert_int_equal(fill_random(f, 100 + run, KEYS), KEYS);
        bly_stat(f, &stats);
        const double off = (stats.items_estimate - KEYS) / stats.items_sd;
        squares += off * off / RUNS;
        bly_free(f);
    }
    assert_between(squares, 0.75, 1.25);
}

/* Filters take all the keys they were planned for. */
static void capacity_is_kept(void **state)
{
    (void)state;
    static const double rates[] = { 0.3, 0.1, 0.01, 1e-6 };
    for (size_t p = 0; p < COUNT_OF(rates); p++) {
        for (uint64_t n = 1; n <= 3000; n += 1 + n / 8) {
            for (uint64_t seed = 1; seed <= 5; seed++) {
                bly_filter *f = quotient_new(n, rates[p]);
                assert_int_equal(fill_random(f, seed * 1000003 + n, n), n);
                bly_free(f);
            }
        }
    }
}

static void full_loses_nothing(void **state)
{
    (void)state;
    bly_filter *f = table(1024, 9);
    const uint64_t n = fill_random(f, 77, 20000);
    assert_between((double)f->state[USED], 970, 972); /* 0.95 x 1024 */
    assert_status(bly_add(f, "more", 4), BLY_EFULL);
    bly_filter *before;
    assert_ok(bly_clone(f, &before));
    uint64_t rng = 99;
    for (int i = 0; i < 50; i++) {
        const uint64_t h = test_random(&rng);
        if (!bly_has_hash(f, h)) {
            assert_status(bly_add_hash(f, h), BLY_EFULL);
            assert_true(bly_equal(f, before));
        }
    }
    rng = 77;
    for (uint64_t i = 0; i < n; i++)
        assert_true(bly_has_hash(f, test_random(&rng)));
    bly_free(before);
    bly_free(f);
}

/* Too many keys of one quotient: refused before an offset overflows. */
static void one_place_is_full(void **state)
{
    (void)state;
    bly_filter *f = table(4096, 20);
    bly_status st = BLY_OK;
    uint64_t n = 0;
    for (; !st && n < 1000; n++) /* all in quotient 2048 */
        st = bly_add_hash(f, (UINT64_C(1) << 63) + (n << 33));
    assert_int_equal(st, BLY_EFULL);
    assert_between((double)n, 250, 330);
    assert_true(f->kind->check(f));
    for (uint64_t i = 0; i + 1 < n; i++)
        assert_true(bly_has_hash(f, (UINT64_C(1) << 63) + (i << 33)));
    /* And at the very end of the table. */
    uint64_t last = 0;
    while (!bly_add_hash(f, UINT64_MAX - (last << 33)))
        last++;
    assert_between((double)last, 150, 260);
    assert_true(f->kind->check(f));
    for (uint64_t i = 0; i < last; i++) {
        const uint64_t h = UINT64_MAX - (i << 33);
        assert_ok(bly_remove_hashes(f, &h, 1, NULL));
    }
    for (uint64_t i = 0; i + 1 < n; i++) {
        const uint64_t h = (UINT64_C(1) << 63) + (i << 33);
        assert_ok(bly_remove_hashes(f, &h, 1, NULL));
    }
    for (uint64_t i = 0; i < f->shape.nbytes; i++)
        assert_int_equal(f->data[i], 0);
    bly_free(f);
}

/* Add, remove, count and ask against an exact multiset of fingerprints; then
 * the table must be the one that those counts make when added at once. */
static void follow_a_multiset(uint64_t nslots, uint64_t r, uint64_t rng,
                              int nops)
{
    enum { KEYS = 600 };
    bly_filter *f = table(nslots, r);
    uint64_t hash[KEYS], print[KEYS], count[KEYS] = { 0 };
    int twin[KEYS]; /* the first key of that fingerprint */
    for (int i = 0; i < KEYS; i++) {
        /* A third of them crowd into one eighth of the table. */
        hash[i] = test_random(&rng);
        if (i % 3 == 0)
            hash[i] >>= 3;
        print[i] = fingerprint(f, hash[i]);
        twin[i] = i;
        for (int j = i - 1; j >= 0; j--)
            if (print[j] == print[i])
                twin[i] = j;
    }
    for (int op = 0; op < nops; op++) {
        const uint64_t x = test_random(&rng);
        const int key = (int)(x % KEYS), at = twin[key];
        const unsigned what = x >> 32 & 15;
        if (what < 6) {
            const bly_status st = bly_add_hash(f, hash[key]);
            assert_true(st == BLY_OK || st == BLY_EFULL);
            count[at] += st == BLY_OK;
        } else if (what == 6) {
            const uint64_t by = x >> 40 & (UINT64_MAX >> (x >> 58));
            const bly_status st = increase(f, hash[key], by);
            assert_true(st == BLY_OK || st == BLY_EFULL);
            count[at] += st ? 0 : by;
        } else if (what < 14) {
            const bly_status st = bly_remove_hashes(f, &hash[key], 1, NULL);
            assert_int_equal(st, count[at] ? BLY_OK : BLY_EABSENT);
            count[at] -= st == BLY_OK;
        }
        assert_int_equal(count_of(f, hash[key]), count[at]);
        const int other = (int)(x >> 20 & 511);
        assert_int_equal(bly_has_hash(f, hash[other]), count[twin[other]] != 0);
        if (op % 500 == 0)
            assert_true(f->kind->check(f));
    }
    assert_true(f->kind->check(f) && f->kind->sound(f));
    bly_filter *again = table(nslots, r);
    for (int i = 0; i < KEYS; i++) {
        assert_int_equal(count_of(f, hash[i]), count[twin[i]]);
        if (count[i])
            assert_ok(increase(again, hash[i], count[i]));
    }
    assert_true(bly_equal(f, again));
    bly_free(again);
    bly_free(f);
}

static void random_operations(void **state)
{
    (void)state;
    static const uint64_t r[] = { 1, 2, 3, 4, 7, 8, 9, 13, 16, 31, 50, 54 };
    for (size_t i = 0; i < COUNT_OF(r); i++) {
        follow_a_multiset(128, r[i], i, 20000);
        follow_a_multiset(512, r[i], 100 + i, 20000);
        follow_a_multiset(960, r[i], 200 + i, 20000);
    }
}

/* Batches of a filter that is full, with a place where runs are pushed over
 * several blocks, against a sorted list: for fingerprints that are there, for
 * those beside them and for others. */
static int by_size(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void assert_holds(const bly_filter *f, const uint64_t *prints, size_t n)
{
    enum { N = 900 };
    const uint64_t range = f->shape.p[P_SLOTS] << f->shape.p[P_R];
    uint64_t h[N], want[N], maybe[BLY_BITMAP_WORDS(N)], rng = n;
    for (size_t i = 0; i < N; i++) {
        want[i] = i % 3 ? prints[test_random(&rng) % n] + i % 3 - 1
                        : test_random(&rng) % range;
        want[i] = want[i] < range ? want[i] : 0;
        h[i] = want[i] << __builtin_clzll(range) << 1; /* a power of two */
        assert_int_equal(fingerprint(f, h[i]), want[i]);
    }
    bly_has_hashes(f, h, N, maybe);
    for (size_t i = 0; i < N; i++)
        assert_int_equal(maybe[i / 64] >> i % 64 & 1,
                         bsearch(&want[i], prints, n, 8, by_size) != NULL);
}

static void batches_of_full_filters(void **state)
{
    (void)state;
    enum { SLOTS = 1024, N = SLOTS * 19 / 20 - 40, MORE = N + 40 };
    for (uint64_t r = 1; r <= 50; r++) {
        bly_filter *f = table(SLOTS, r);
        uint64_t h[MORE], prints[MORE], rng = r;
        bly_status each[MORE];
        for (size_t i = 0; i < MORE; i++) {
            h[i] = test_random(&rng);
            if (i % 8 == 0) /* an eighth in a sixteenth of the slots */
                h[i] = h[i] >> 4 | UINT64_C(7) << 60;
        }
        for (size_t i = 0; i < MORE; i++)
            prints[i] = fingerprint(f, h[i]);
        size_t n = r < 4 ? N / 2 : N; /* short ones are counted by more slots */
        assert_ok(bly_add_hashes(f, h, n, NULL, NULL));
        qsort(prints, n, 8, by_size);
        assert_true(f->kind->check(f));
        assert_holds(f, prints, n);

        bly_remove_hashes(f, h + n / 3, n - n / 3, each);
        for (size_t i = 0; i < n - n / 3; i++)
            assert_int_equal(each[i], BLY_OK);
        n /= 3;
        for (size_t i = 0; i < n; i++)
            prints[i] = fingerprint(f, h[i]);
        qsort(prints, n, 8, by_size);
        assert_true(f->kind->check(f));
        assert_holds(f, prints, n);
        bly_free(f);
    }
}

static void counts(void **state)
{
    (void)state;
    bly_filter *f = quotient_new(1000, 0.001);
    const uint64_t h = UINT64_C(0x123456789abcdef0);
    uint64_t all = 0;
    for (uint64_t by = 1; by < UINT64_C(1) << 60; by *= 3) {
        assert_ok(increase(f, h, by));
        assert_int_equal(count_of(f, h), all += by);
        assert_int_equal(f->state[TOTAL], all);
    }
    assert_int_equal(f->state[DISTINCT], 1);
    assert_true(f->state[USED] < 12);
    assert_status(increase(f, h, UINT64_MAX), BLY_ERANGE);
    assert_status(increase(f, h, UINT64_C(1) << 62), BLY_ERANGE);
    assert_int_equal(count_of(f, h), all);
    assert_ok(increase(f, h, 0));
    assert_int_equal(count_of(f, h), all);
    assert_ok(increase(f, ~h, 0));
    assert_int_equal(count_of(f, ~h), 0);
    assert_true(f->kind->check(f));
    bly_free(f);

    /* Down again, through every form. */
    f = quotient_new(1000, 0.1);
    assert_ok(increase(f, h, 3000));
    for (uint64_t i = 3000; i > 0; i--) {
        assert_int_equal(count_of(f, h), i);
        assert_ok(bly_remove_hashes(f, &h, 1, NULL));
    }
    assert_status(bly_remove_hashes(f, &h, 1, NULL), BLY_EABSENT);
    assert_int_equal(f->state[USED], 0);
    bly_free(f);

    /* One bit a remainder counts by ones, and not far. */
    f = table(128, 1);
    assert_status(increase(f, h, 100), BLY_EFULL);
    assert_ok(increase(f, h, 60));
    assert_int_equal(count_of(f, h), 60);
    bly_free(f);
}

/* A table that is planned for keys that come so often takes them, however they
 * are spread: all alike, or most of them once and some three times, which takes
 * the most room. */
static void plans_for_counts(void **state)
{
    (void)state;
    static const char *const means[] = { "1.5", "2", "3", "10", "100" };
    for (size_t i = 0; i < COUNT_OF(means); i++)
        for (int spread = 0; spread < 3; spread++) {
            enum { KEYS = 20000 };
            const double mean = atof(means[i]);
            const bly_option o = { "mean", means[i] };
            const bly_spec spec = { .kind = "quotient",
                                    .items = KEYS,
                                    .fpr = 0.01,
                                    .options = &o,
                                    .noptions = 1 };
            bly_filter *f;
            assert_ok(bly_new(&spec, &f));
            assert_int_equal(f->items, KEYS);
            uint64_t rng = i;
            double left = mean * KEYS;
            for (int k = 0; k < KEYS; k++) {
                const double each = left / (KEYS - k);
                const uint64_t most = spread == 0   ? (uint64_t)ceil(each)
                                      : spread == 1 ? 3
                                                    : 1000;
                /* As many as leave one for each of the others. */
                const double can = left - (KEYS - k - 1);
                const uint64_t by = can < (double)most ? (uint64_t)can : most;
                assert_ok(increase(f, test_random(&rng), by));
                left -= (double)by;
            }
            assert_true(f->kind->check(f));
            bly_free(f);
        }
}

static void merging_is_adding_both(void **state)
{
    (void)state;
    for (int form = 0; form < 3; form++) {
        static const uint64_t r[] = { 2, 7, 30 };
        bly_filter *a = table(2048, r[form]), *b = table(2048, r[form]);
        bly_filter *both = table(2048, r[form]);
        uint64_t rng = (uint64_t)form;
        for (int i = 0; i < 300; i++) {
            const uint64_t h = test_random(&rng), g = test_random(&rng);
            assert_ok(bly_add_hash(a, h));
            assert_ok(bly_add_hash(both, h));
            assert_ok(increase(b, i % 10 ? g : h, 1 + g % 5));
            assert_ok(increase(both, i % 10 ? g : h, 1 + g % 5));
        }
        assert_ok(bly_merge(a, b));
        assert_true(bly_equal(a, both));
        assert_true(a->kind->check(a));
        /* Both are now too full for a table of this size: it gets twice the
         * slots, while the remainder has bits for that, and still combines
         * with those that have fewer. */
        bly_filter *before;
        assert_ok(bly_clone(a, &before));
        fill_random(b, 1234, 2000);
        const uint64_t sum = a->state[TOTAL] + b->state[TOTAL];
        if (bly_merge(a, b)) {
            assert_int_equal(r[form], 2);
            assert_true(bly_equal(a, before));
        } else {
            assert_true(a->shape.p[0] > b->shape.p[0]);
            assert_int_equal(a->shape.p[0] << a->shape.p[1],
                             b->shape.p[0] << b->shape.p[1]);
            assert_true(a->kind->check(a));
            assert_int_equal(a->state[TOTAL], sum);
            if (r[form] > 2) { /* bits are left for yet more slots */
                assert_ok(bly_merge(before, a));
                assert_true(before->kind->check(before));
                assert_int_equal(before->state[TOTAL],
                                 sum + both->state[TOTAL]);
            }
            bly_likeness like;
            assert_ok(bly_compare(b, a, &like));
            assert_ok(bly_intersect(b, a));
            assert_true(b->kind->check(b));
        }
        bly_free(before);
        bly_free(a);
        bly_free(b);
        bly_free(both);
    }
}

static void resizing_keeps_all_answers(void **state)
{
    (void)state;
    const bly_spec twice = { 0 };
    const bly_spec back = { .items = 1700 };
    bly_filter *f = table(2048, 7), *large, *small;
    uint64_t rng = 3;
    for (int i = 0; i < 1500; i++)
        assert_ok(increase(f, test_random(&rng), 1 + (uint64_t)(i % 4 == 0)));
    assert_ok(bly_convert(f, &twice, &large));
    assert_int_equal(large->shape.p[P_SLOTS], 4096);
    assert_int_equal(large->shape.p[P_R], 6);
    assert_true(large->kind->check(large));
    assert_near(large->kind->rate(&large->shape, 1000),
                f->kind->rate(&f->shape, 1000), 1e-9);
    rng = 3;
    for (int i = 0; i < 20000; i++) {
        const uint64_t h = test_random(&rng);
        assert_int_equal(count_of(f, h), count_of(large, h));
    }
    /* There is room for as many again, and no way back until they go. */
    assert_int_equal(fill_random(large, 77, 1700), 1700);
    assert_ok(bly_convert(large, &back, &small));
    assert_true(bly_equal(small, large));
    bly_free(small);
    rng = 77;
    for (int i = 0; i < 1700; i++) {
        const uint64_t h = test_random(&rng);
        assert_ok(bly_remove_hashes(large, &h, 1, NULL));
    }
    assert_ok(bly_convert(large, &back, &small));
    assert_true(bly_equal(small, f));
    bly_free(small);

    /* For so many items, or so many bits; at last there is nothing to give. */
    const bly_spec items = { .items = 100000 }, bits = { .bits = 100000 };
    assert_ok(bly_convert(f, &items, &small));
    assert_int_equal(small->shape.p[P_SLOTS], 2048 << 6);
    assert_int_equal(small->shape.p[P_R], 1);
    assert_int_equal(small->items, 100000);
    bly_filter *none;
    assert_status(bly_convert(small, &twice, &none), BLY_EFULL);
    bly_free(small);
    assert_ok(bly_convert(f, &bits, &small));
    assert_between((double)small->kind->bits(&small->shape), 50000, 100000);
    bly_free(small);
    const bly_spec better = { .items = 10000, .fpr = 1e-9 };
    assert_status(bly_convert(f, &better, &none), BLY_EINVAL);
    const bly_spec many = { .items = 10000000 };
    assert_status(bly_convert(f, &many, &none), BLY_EINVAL);
    bly_free(large);
    bly_free(f);
}

/* Every size by doubling is the same list of fingerprints. */
static void resized_is_built_so(void **state)
{
    (void)state;
    bly_filter *f = table(128, 7);
    fill_random(f, 9, 100);
    for (int i = 1; i < 7; i++) {
        const bly_spec twice = { 0 };
        bly_filter *next;
        bly_filter *built = table((uint64_t)128 << i, (uint64_t)(7 - i));
        fill_random(built, 9, 100);
        assert_ok(bly_convert(f, &twice, &next));
        assert_true(bly_equal(next, built));
        bly_free(built);
        bly_free(f);
        f = next;
    }
    bly_free(f);
}

static void bad_options(void **state)
{
    (void)state;
    static const char *const bad[] = { "0", "57", "60", "56" };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        /* 56 bits and a million slots are more than 64. */
        const bly_option o = { "remainder", bad[i] };
        const bly_spec spec = { .kind = "quotient",
                                .items = 1000000,
                                .fpr = 0.5,
                                .options = &o,
                                .noptions = 1 };
        bly_filter *f;
        assert_status(bly_new(&spec, &f), BLY_EINVAL);
    }
    const bly_spec few = { .kind = "quotient", .items = 1000, .bits = 3000 };
    const bly_spec low = { .kind = "quotient", .items = 1000, .fpr = 1e-17 };
    bly_filter *f;
    assert_status(bly_new(&few, &f), BLY_EINVAL);
    assert_status(bly_new(&low, &f), BLY_EINVAL);
}

static void planning_by_memory(void **state)
{
    (void)state;
    for (uint64_t bits = 2000; bits < 3000000; bits = bits * 3 / 2) {
        const bly_spec spec = { .kind = "quotient",
                                .items = bits / 13,
                                .bits = bits };
        bly_prediction p;
        assert_ok(bly_plan(&spec, &p));
        assert_between((double)p.bits, 0.5 * (double)bits, (double)bits);
    }
}

/* Whatever the bytes are, reading stays inside and ends. */
static void any_bytes_can_be_read(void **state)
{
    (void)state;
    static const uint64_t r[] = { 1, 2, 7, 8, 13, 54 };
    uint64_t rng = 6;
    for (size_t i = 0; i < COUNT_OF(r); i++) {
        for (int form = 0; form < 8; form++) {
            bly_filter *f = table(512, r[i]), *out = NULL;
            bly_filter *dst = table(512, r[i]);
            for (uint64_t b = 0; b < f->shape.nbytes; b++) {
                const uint64_t x = test_random(&rng);
                /* All kinds of density, all zeros and all ones too. */
                f->data[b] = (unsigned char)(form == 0   ? 0xff
                                             : form == 1 ? x & x >> 8 & x >> 16
                                             : form == 2 ? x | x >> 8 | x >> 16
                                             : form == 3 ? (b % 3 ? 0 : 0xff)
                                                         : x);
            }
            for (int k = 0; k < 500; k++) {
                const uint64_t h = test_random(&rng);
                bly_has_hash(f, h);
                count_of(f, h);
            }
            assert_false(f->kind->check(f));
            bly_stats stats;
            bly_stat(f, &stats);
            fill_random(dst, 7, 100);
            if (bly_merge(dst, f) == BLY_OK)
                assert_true(dst->kind->check(dst));
            const bly_spec twice = { 0 };
            if (bly_convert(f, &twice, &out) == BLY_OK)
                bly_free(out);
            bly_free(dst);
            bly_free(f);
        }
    }
}

/* Any bit that tells quotients is found if it is wrong; a bit of a remainder
 * may make another filter that is as good. */
static void damage_is_found(void **state)
{
    (void)state;
    bly_filter *f = table(512, 7);
    const bly_kind *kind = f->kind;
    uint64_t rng = 1;
    fill_random(f, 4, 300);
    for (int i = 0; i < 20; i++)
        assert_ok(increase(f, test_random(&rng), 1 + test_random(&rng) % 1000));
    assert_true(kind->check(f) && kind->sound(f));
    const uint64_t stride = 17 + 7 * 8;
    for (uint64_t b = 0; b < f->shape.nbytes; b++) {
        for (int bit = 0; bit < 8; bit++) {
            f->data[b] ^= (unsigned char)(1 << bit);
            const bool good = kind->check(f);
            if (b % stride < 17 || b > f->shape.nbytes - 7)
                assert_false(good);
            for (int k = 0; k < 20; k++)
                bly_has_hash(f, test_random(&rng));
            f->data[b] ^= (unsigned char)(1 << bit);
        }
    }
    for (unsigned i = 0; i < kind->nstate; i++) {
        f->state[i]++;
        assert_false(kind->check(f) && kind->sound(f));
        f->state[i]--;
    }
    f->state[USED] = 500;
    assert_false(kind->sound(f));
    bly_free(f);

    f = table(512, 7);
    static const struct {
        unsigned param;
        uint64_t value;
    } bad[] = {
        { P_SLOTS, 0 },
        { P_SLOTS, 500 },
        { P_SLOTS, UINT64_C(1) << 63 },
        { P_SLOTS, 1024 },
        { P_R, 0 },
        { P_R, 57 },
        { P_R, 64 },
        { P_R, 8 },
        { P_R, UINT64_MAX },
        { P_COUNTS, 2 },
        { P_COUNTS, UINT64_MAX },
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        bly_shape s = bly_shape_of(f);
        s.p[bad[i].param] = bad[i].value;
        assert_false(kind->sane(&s));
    }
    bly_free(f);
}

/* Slots of a count: three up to 2 + 2^(r-1), and each further digit one. */
static uint64_t slots_of(uint64_t count, uint64_t r)
{
    uint64_t n = counts_form ? 3 : 4;
    if (count < 3)
        return count;
    for (uint64_t rest = (count - 3) >> (r - 1); rest;
         rest = (rest - 1) >> (r - 1))
        n++;
    return n;
}

/* Every remainder of one quotient, asked in all ways; F is its lowest. */
static void assert_run(const bly_filter *f, uint64_t F, const uint64_t *want)
{
    uint64_t h[16], maybe;
    for (uint64_t x = 0; x < 16; x++) {
        h[x] = (F + x) << 54;
        assert_int_equal(count_of(f, h[x]), want[x]);
        assert_int_equal(bly_has_hash(f, h[x]), want[x] > 0);
    }
    bly_has_hashes(f, h, 16, &maybe);
    for (uint64_t x = 0; x < 16; x++)
        assert_int_equal(maybe >> x & 1, want[x] > 0);
}

/* Digits may be any number, on either side of the remainder and of its
 * neighbours in the run: none is taken for one, and none for the other. */
static void digits_among_remainders(void **state)
{
    (void)state;
    static const uint64_t counts[] = { 1, 2, 3, 5, 10, 11, 18, 75, 1000 };
    enum { N = COUNT_OF(counts), Q = 5 << 4 };
    for (uint64_t pair = 0; pair < 256; pair++) {
        const uint64_t x = pair / 16, y = pair % 16;
        for (size_t i = 0; i < (size_t)N * N; i++) {
            bly_filter *f = table(64, 4);
            uint64_t want[16] = { 0 };
            assert_ok(increase(f, (Q + x) << 54, counts[i / N]));
            assert_int_equal(f->state[USED], slots_of(counts[i / N], 4));
            assert_ok(increase(f, (Q + y) << 54, counts[i % N]));
            want[x] += counts[i / N];
            want[y] += counts[i % N];
            assert_run(f, Q, want);
            assert_true(f->kind->check(f));
            /* Down again, one by one, from near a step of the digits. */
            for (int k = 0; k < 4 && want[x]; k++) {
                const uint64_t h = (Q + x) << 54;
                assert_ok(bly_remove_hashes(f, &h, 1, NULL));
                want[x]--;
                assert_run(f, Q, want);
            }
            assert_true(f->kind->check(f));
            bly_free(f);
        }
    }
}

/* Three slots where there were four. */
static void counts_take_fewer_slots(void **state)
{
    (void)state;
    static const char *const forms[] = { "four", "three" };
    double bits[2];
    for (int i = 0; i < 2; i++) {
        const bly_option options[] = { { "mean", "3" },
                                       { "counts", forms[i] } };
        const bly_spec spec = { .kind = "quotient",
                                .items = 10000,
                                .fpr = 0.01,
                                .options = options,
                                .noptions = 2 };
        bly_prediction out;
        bly_filter *f;
        assert_ok(bly_plan(&spec, &out));
        bits[i] = out.bits_per_key;
        assert_ok(bly_new(&spec, &f));
        for (uint64_t k = 0; k < 10000; k++)
            assert_ok(increase(f, bly_mix64(k), 3));
        for (uint64_t k = 0; k < 10000; k++)
            assert_true(count_of(f, bly_mix64(k)) >= 3);
        bly_free(f);
    }
    assert_near(bits[0], 35.8, 0.01);
    assert_between(bits[1], 20, 26.5);
    /* Both are the same fingerprints, and combine. */
    bly_filter *a = table(4096, 9), *b;
    counts_form = !counts_form;
    b = table(4096, 9);
    counts_form = !counts_form;
    for (uint64_t k = 0; k < 500; k++) {
        assert_ok(increase(a, bly_mix64(k), 1 + k % 9));
        assert_ok(increase(b, bly_mix64(k + 250), 1 + k % 7));
    }
    assert_ok(bly_merge(a, b));
    assert_true(a->kind->check(a));
    assert_int_equal(a->shape.p[P_COUNTS], counts_form);
    for (uint64_t k = 0; k < 750; k++)
        assert_true(count_of(a, bly_mix64(k)) >=
                    (k < 500 ? 1 + k % 9 : 0) +
                        (k >= 250 ? 1 + (k - 250) % 7 : 0));
    bly_free(a);
    bly_free(b);
}

/* With and without the instruction that counts ones. */
static void variants_agree(void **state)
{
    (void)state;
    bly_filter *a = table(4096, 5), *b = table(4096, 5);
    enum { N = 5000 };
    static uint64_t h[N], ma[BLY_BITMAP_WORDS(N)], mb[BLY_BITMAP_WORDS(N)];
    static bly_status ea[N], eb[N];
    uint64_t rng = 12;
    for (int i = 0; i < N; i++)
        h[i] = test_random(&rng);
    assert_ok(bly_add_hashes(a, h, N * 3 / 4, NULL, NULL));
    bly_has_hashes(a, h, N, ma);
    bly_remove_hashes(a, h + N / 2, N / 2, ea);
    setenv("BLY_CPU", "portable", 1);
    assert_ok(bly_add_hashes(b, h, N * 3 / 4, NULL, NULL));
    bly_has_hashes(b, h, N, mb);
    bly_remove_hashes(b, h + N / 2, N / 2, eb);
    unsetenv("BLY_CPU");
    assert_memory_equal(ma, mb, sizeof ma);
    assert_memory_equal(ea, eb, sizeof ea);
    assert_true(bly_equal(a, b));
    bly_free(a);
    bly_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_and_bits_of_the_table),
        cmocka_unit_test(bits_per_key),
        cmocka_unit_test(the_rate_is_kept),
        cmocka_unit_test(the_deviation_is_that_of_estimates),
        cmocka_unit_test(capacity_is_kept),
        cmocka_unit_test(full_loses_nothing),
        cmocka_unit_test(one_place_is_full),
        cmocka_unit_test(random_operations),
        cmocka_unit_test(batches_of_full_filters),
        cmocka_unit_test(counts),
        cmocka_unit_test(plans_for_counts),
        cmocka_unit_test(merging_is_adding_both),
        cmocka_unit_test(resizing_keeps_all_answers),
        cmocka_unit_test(resized_is_built_so),
        cmocka_unit_test(bad_options),
        cmocka_unit_test(planning_by_memory),
        cmocka_unit_test(any_bytes_can_be_read),
        cmocka_unit_test(damage_is_found),
        cmocka_unit_test(digits_among_remainders),
        cmocka_unit_test(counts_take_fewer_slots),
        cmocka_unit_test(variants_agree),
    };
    const int failed =
        cmocka_run_group_tests_name("three slots", tests, NULL, NULL);
    counts_form = 0;
    return failed +
           cmocka_run_group_tests_name("four slots", tests, NULL, NULL);
}
