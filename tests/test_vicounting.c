/*
 * test_vicounting.c - what is peculiar to the variable-increment kind
 *
 * Its sets of increments and the query rule against brute force; its rates
 * against closed forms and published tables, predicted and measured; its
 * counters against an exact multiset; what it gains over counting.
 */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/cells.h"
#include "core/maths.h"
#include "kinds/filter.h"
#include "kinds/probe.h"

enum { COUNTERS, K, INCREMENTS, WIDTH }; /* where the shape has them */

/* Written out once more: the increments of every choice. */
static const struct {
    const char *name, *width;
    unsigned size;
    unsigned v[16];
    bool pairs;
} sets[] = {
    { "s", "8", 4, { 8, 12, 14, 15 }, false },
    { "l2", "8", 2, { 2, 3 }, false },
    { "l4", "8", 4, { 4, 5, 6, 7 }, false },
    { "l8", "8", 8, { 8, 9, 10, 11, 12, 13, 14, 15 }, false },
    { "l16",
      "8",
      16,
      { 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31 },
      false },
    { "b3", "12", 4, { 1, 4, 8, 13 }, true },
};

static bly_filter *vi_new(uint64_t items, uint64_t cells, const char *k,
                          const char *set, const char *width, uint64_t seed)
{
    const bly_option options[] = { { "k", k },
                                   { "increments", set },
                                   { "width", width } };
    const bly_spec spec = { .kind = "vicounting",
                            .items = items,
                            .bits = cells * strtoull(width, NULL, 10),
                            .seed = seed,
                            .options = options,
                            .noptions = COUNT_OF(options) };
    bly_filter *f;
    assert_ok(bly_new(&spec, &f));
    assert_int_equal(f->shape.p[COUNTERS], cells);
    return f;
}

/* ------------------------------------------------------------------- sets */

/* sums[n][s]: is s a sum of n increments? */
#define MOST_HITS 130
#define MOST_SUM 512
static bool sums[MOST_HITS][MOST_SUM];

static void find_sums(size_t set)
{
    memset(sums, 0, sizeof sums);
    sums[0][0] = true;
    for (unsigned n = 0; n + 1 < MOST_HITS; n++)
        for (unsigned s = 0; s < MOST_SUM; s++)
            for (unsigned i = 0; sums[n][s] && i < sets[set].size; i++)
                if (s + sets[set].v[i] < MOST_SUM)
                    sums[n + 1][s + sets[set].v[i]] = true;
}

static bool any_sum(unsigned s)
{
    bool any = false;
    for (unsigned n = 0; n < MOST_HITS; n++)
        any |= sums[n][s];
    return any;
}

/* Strictly increasing, without 0, at most 2^w - 2, and a power of two of them:
 * what a set must be for the cells to hold it. */
static void sets_are_sets(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(sets); i++) {
        assert_true(sets[i].v[0] > 0);
        for (unsigned j = 1; j < sets[i].size; j++)
            assert_true(sets[i].v[j] > sets[i].v[j - 1]);
        assert_true(sets[i].v[sets[i].size - 1] <= 127 - 1);
        assert_int_equal(sets[i].size & (sets[i].size - 1), 0);
    }
    /* s: sums of two differ, of three do not; the holes of R. */
    static const unsigned holes[] = { 1,  2,  3,  4,  5,  6,  7,  9, 10,
                                      11, 13, 17, 18, 19, 21, 25, 33 };
    find_sums(0);
    unsigned two = 0, next = 0;
    for (unsigned s = 0; s < MOST_SUM - 64; s++) {
        two += sums[2][s];
        if (!any_sum(s))
            assert_int_equal(s, holes[next++]);
    }
    assert_int_equal(two, 4 * 5 / 2);
    assert_int_equal(next, COUNT_OF(holes));
    assert_int_equal(8 + 8 + 8, 12 + 12);
    /* {1, 4, 8, 13}: B_3, not B_4. */
    find_sums(5);
    unsigned three = 0, four = 0;
    for (unsigned s = 0; s < MOST_SUM; s++) {
        three += sums[3][s];
        four += sums[4][s];
    }
    assert_int_equal(three, 4 * 5 * 6 / 6);
    assert_true(four < 4 * 5 * 6 * 7 / 24);
}

/* A hash whose only probe, of one cell, has this increment. */
static uint64_t hash_with(size_t set, unsigned v)
{
    for (uint64_t h = 1;; h++)
        if (sets[set].v[bly_probe_tag(h) & (sets[set].size - 1)] == v)
            return h;
}

/* One cell with any value, asked with any increment: the rule by brute force.
 * Also the example: 20 denies 14. */
static void the_query_rule(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(sets); i++) {
        find_sums(i);
        bly_filter *f = vi_new(1, 1, "1", sets[i].name, sets[i].width, 0);
        const unsigned width = (unsigned)f->shape.p[WIDTH];
        const uint32_t top = bly_cell_top(width);
        for (unsigned j = 0; j < sets[i].size; j++) {
            const unsigned v = sets[i].v[j];
            const uint64_t h = hash_with(i, v);
            for (uint32_t c = 0; c <= top; c++) {
                bly_cell_put(f->data, 0, width, c);
                bool want = c == top;
                if (!sets[i].pairs)
                    want |= c >= v && any_sum(c - v);
                else if ((c & 15) > 3)
                    want = true;
                else if (c & 15)
                    want |= c >> 4 >= v && sums[(c & 15) - 1][(c >> 4) - v];
                assert_int_equal(bly_has_hash(f, h), want);
            }
        }
        bly_free(f);
    }
    bly_filter *f = vi_new(1, 1, "1", "s", "8", 0);
    assert_ok(bly_add_hash(f, hash_with(0, 8)));
    assert_ok(bly_add_hash(f, hash_with(0, 12)));
    assert_int_equal(f->data[0], 20);
    assert_true(bly_has_hash(f, hash_with(0, 8)));
    assert_true(bly_has_hash(f, hash_with(0, 12)));
    assert_false(bly_has_hash(f, hash_with(0, 14)));
    assert_false(bly_has_hash(f, hash_with(0, 15)));
    bly_free(f);
}

/* Two probes, 8 and 12, on one cell of two: each could be in a 24, for 16 and
 * 12 are sums of increments, but not both, for 4 is none. */
static void probes_that_meet_are_asked_together(void **state)
{
    (void)state;
    bly_filter *f = vi_new(1, 2, "2", "s", "8", 0);
    for (uint64_t h = 1;; h++) {
        const bly_modulus range = bly_modulus_of(2);
        const uint64_t tag = bly_probe_tag(h);
        uint64_t at[2];
        bly_probe_list(h, range, 2, at);
        if (at[0] != at[1] || (tag & 3) != 0 || (tag >> 4 & 3) != 1)
            continue;
        assert_ok(bly_add_hash(f, h));
        assert_int_equal(f->data[at[0]], 20);
        assert_true(bly_has_hash(f, h));
        f->data[at[0]] = 24;
        assert_false(bly_has_hash(f, h));
        assert_status(bly_remove_hashes(f, &h, 1, NULL), BLY_EABSENT);
        assert_int_equal(f->data[at[0]], 24);
        break;
    }
    bly_free(f);
}

/* What a file may hold: sums of increments, or stuck cells, counted. */
static void cells_are_checked(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(sets); i++) {
        find_sums(i);
        bly_filter *f = vi_new(2, 2, "1", sets[i].name, sets[i].width, 0);
        const unsigned width = (unsigned)f->shape.p[WIDTH];
        const uint32_t top = bly_cell_top(width);
        for (uint32_t c = 0; c <= top; c++) {
            bly_cell_put(f->data, 1, width, c);
            f->state[0] = c == top;
            const bool want =
                c == top ||
                (sets[i].pairs ? (c & 15) < 15 && sums[c & 15][c >> 4]
                               : any_sum(c));
            assert_int_equal(f->kind->check(f), want);
            f->state[0] = c != top;
            assert_false(f->kind->check(f));
        }
        f->state[0] = 3;
        assert_false(f->kind->sound(f));
        bly_free(f);
    }
}

/* ------------------------------------------------------------------ rates */

static double rate_of(const char *set, const char *width, double c, uint64_t k,
                      uint64_t n)
{
    char text[8];
    snprintf(text, sizeof text, "%u", (unsigned)k);
    const bly_option options[] = { { "k", text },
                                   { "increments", set },
                                   { "width", width } };
    const bly_spec spec = { .kind = "vicounting",
                            .items = n,
                            .bits =
                                (uint64_t)(c * (double)n * strtod(width, NULL)),
                            .options = options,
                            .noptions = COUNT_OF(options) };
    bly_prediction p;
    assert_ok(bly_plan(&spec, &p));
    return p.fpr;
}

static double hits_law(double kn, double m, double j)
{
    return exp(lgamma(kn + 1) - lgamma(j + 1) - lgamma(kn - j + 1) -
               j * log(m) + (kn - j) * log1p(-1 / m));
}

/* The formulas for D_L and B_h, at sizes where the binomial is no Poisson. */
static void closed_forms(void **state)
{
    (void)state;
    static const double ls[] = { 2, 4, 8, 16 };
    static const char *const names[] = { "l2", "l4", "l8", "l16" };
    for (uint64_t n = 10; n <= 10000; n *= 10)
        for (uint64_t k = 1; k <= 8; k += 2) {
            const double m = 5 * (double)n, kn = (double)(k * n);
            for (size_t i = 0; i < 4; i++) {
                const double L = ls[i];
                const double base =
                    1 - hits_law(kn, m, 0) - (L - 1) / L * hits_law(kn, m, 1) -
                    (L * L - 1) / (6 * L * L) * hits_law(kn, m, 2);
                assert_near(rate_of(names[i], "8", 5, k, n),
                            pow(base, (double)k), 1e-8);
            }
            double denied = 0;
            for (int j = 0; j <= 3; j++)
                denied += hits_law(kn, m, j) * pow(0.75, j);
            assert_near(rate_of("b3", "12", 5, k, n),
                        pow(1 - denied, (double)k), 1e-8);
        }
}

/* Same number of cells, n large. The first column is a plain counter. */
static void table_of_equal_cells(void **state)
{
    (void)state;
    static const struct {
        double c;
        uint64_t k;
        double plain, l2, l4, l8, l16, s, b3;
    } rows[] = {
        { 4, 3, 0.14689, 0.03722, 0.01403, 0.007512, 0.005218, 0.006871,
          0.005194 },
        { 5, 3, 0.09185, 0.02062, 0.006729, 0.003167, 0.002004, 0.003510,
          0.002763 },
        { 8, 6, 0.02158, 0.001386, 1.968e-4, 5.643e-5, 2.722e-5, 4.722e-5,
          2.698e-5 },
        { 10, 7, 0.008194, 3.037e-4, 2.803e-5, 5.956e-6, 2.386e-6, 5.533e-6,
          0 },
    };
    const uint64_t n = 100000000;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const double c = rows[i].c;
        const uint64_t k = rows[i].k;
        assert_near(bly_fpr_approx((double)n, c * (double)n, (double)k),
                    rows[i].plain, 2e-4);
        assert_near(rate_of("l2", "8", c, k, n), rows[i].l2, 5e-4);
        assert_near(rate_of("l4", "8", c, k, n), rows[i].l4, 5e-4);
        assert_near(rate_of("l8", "8", c, k, n), rows[i].l8, 5e-4);
        assert_near(rate_of("l16", "8", c, k, n), rows[i].l16, 5e-4);
        assert_near(rate_of("s", "8", c, k, n), rows[i].s, 5e-4);
        if (rows[i].b3 > 0)
            assert_near(rate_of("b3", "12", c, k, n), rows[i].b3, 5e-4);
    }
}

static double best_of(const char *kind, const char *set, const char *width,
                      double bits)
{
    const bly_option options[] = { { "width", width }, { "increments", set } };
    const uint64_t n = 10000000;
    const bly_spec spec = { .kind = kind,
                            .items = n,
                            .bits = (uint64_t)(bits * (double)n),
                            .options = options,
                            .noptions = set ? 2 : 1 };
    bly_prediction p;
    assert_ok(bly_plan(&spec, &p));
    return p.fpr;
}

/* Equal memory, best k each. */
static void table_of_equal_memory(void **state)
{
    (void)state;
    static const struct {
        double bits, plain, l4_7, l4_8, l8_8, s_8;
    } rows[] = {
        { 30, 0.02728, 0.00824, 0.01500, 0.00838, 0.00398 },
        { 40, 0.00820, 0.00167, 0.00373, 0.00172, 0.00063 },
        { 50, 0.00247, 3.34e-4, 9.08e-4, 3.47e-4, 1.00e-4 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const double bits = rows[i].bits;
        assert_near(best_of("counting", NULL, "4", bits), rows[i].plain, 2e-3);
        assert_near(best_of("vicounting", "l4", "7", bits), rows[i].l4_7, 2e-3);
        assert_near(best_of("vicounting", "l4", "8", bits), rows[i].l4_8, 2e-3);
        assert_near(best_of("vicounting", "l8", "8", bits), rows[i].l8_8, 2e-3);
        assert_near(best_of("vicounting", "s", "8", bits), rows[i].s_8, 8e-3);
    }
}

/* Predicted rates are those of filters, small ones and many: rates of the
 * simulation with 1000 keys among them. */
static void measured_rates(void **state)
{
    (void)state;
    static const struct {
        const char *set, *width, *k;
        uint64_t cells;
        double simulated;
    } rows[] = {
        { "l4", "8", "3", 4000, 0.01403 },   { "l8", "8", "3", 4000, 0.00751 },
        { "s", "8", "3", 4000, 0.00687 },    { "l2", "7", "3", 4000, 0.03722 },
        { "l16", "16", "3", 4000, 0.00522 }, { "b3", "12", "3", 4000, 0.00519 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const double filters = 60, asked = 20000;
        double seen = 0;
        for (uint64_t seed = 1; seed <= (uint64_t)filters; seed++) {
            bly_filter *f = vi_new(1000, rows[i].cells, rows[i].k, rows[i].set,
                                   rows[i].width, seed);
            uint64_t keys[1000];
            for (uint64_t j = 0; j < 1000; j++)
                keys[j] = j;
            assert_ok(bly_add_ints(f, keys, 1000, NULL, NULL));
            assert_int_equal(hits(f, 0, 1000), 1000);
            seen += (double)hits(f, 1000, (size_t)asked);
            bly_free(f);
        }
        /* Questions, and about 5 % from filter to filter. */
        const double rate = seen / filters / asked, f = rows[i].simulated;
        const double sd =
            sqrt(f / filters / asked + 0.05 * f * 0.05 * f / filters);
        assert_between(rate, f * 0.995 - 4 * sd, f * 1.005 + 4 * sd);
    }
}

/* The published advantage, from real filters of 30 bits per key: 2.8 % against
 * 0.38 % in the paper's summary. */
static void advantage_at_equal_memory(void **state)
{
    (void)state;
    const uint64_t n = 100000;
    const bly_spec plain = { .kind = "counting", .items = n, .bits = 30 * n };
    const bly_spec vi = { .kind = "vicounting", .items = n, .bits = 30 * n };
    bly_filter *a = filled_from(&plain, 0, n), *b = filled_from(&vi, 0, n);
    const double rate_a = (double)hits(a, n, 500000) / 500000;
    const double rate_b = (double)hits(b, n, 500000) / 500000;
    assert_near(rate_a, 0.02728, 0.04);
    assert_near(rate_b, 0.00398, 0.12);
    assert_true(rate_a > 6 * rate_b);
    bly_stats stats;
    bly_stat(b, &stats);
    assert_near(stats.fpr_now, rate_b, 0.08);
    assert_near(fact_of(stats.facts, stats.nfacts, "counting_fpr")->real,
                0.02728, 2e-3);
    assert_near(stats.items_estimate, (double)n, 0.02);
    bly_free(a);
    bly_free(b);

    /* And in bits, at one rate. */
    static const double rates[] = { 0.03, 0.01, 0.001, 0.0001 };
    for (size_t i = 0; i < COUNT_OF(rates); i++) {
        bly_prediction p, q;
        const bly_spec s = { .kind = "counting", .items = n, .fpr = rates[i] };
        const bly_spec t = { .kind = "vicounting",
                             .items = n,
                             .fpr = rates[i] };
        assert_ok(bly_plan(&s, &p));
        assert_ok(bly_plan(&t, &q));
        assert_true(q.fpr <= rates[i]);
        assert_true(q.fpr > 0.999 * rates[i]);
        assert_true(q.bits_per_key < 0.7 * p.bits_per_key);
    }
}

static void hits_to_stuck(void **state)
{
    (void)state;
    static const struct {
        const char *set, *width;
        double hits;
    } rows[] = { { "l4", "8", 37 },
                 { "s", "8", 17 },
                 { "l4", "7", 19 },
                 { "s", "7", 9 },
                 { "b3", "12", 15 } };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        bly_filter *f = vi_new(10, 100, "3", rows[i].set, rows[i].width, 0);
        bly_stats stats;
        bly_peek(f, &stats);
        assert_near(fact_of(stats.facts, stats.nfacts, "hits_to_stuck")->real,
                    rows[i].hits, 0);
        bly_free(f);
    }
    /* For s with 8 bits: 17 of 15 do it, 16 do not. */
    bly_filter *f = vi_new(1, 1, "1", "s", "8", 0);
    const uint64_t h = hash_with(0, 15);
    for (int i = 0; i < 16; i++)
        assert_ok(bly_add_hash(f, h));
    assert_int_equal(f->data[0], 16 * 15);
    assert_int_equal(f->state[0], 0);
    assert_ok(bly_add_hash(f, h));
    assert_int_equal(f->state[0], 1);
    assert_int_equal(f->data[0], 255);
    for (int i = 0; i < 30; i++)
        assert_ok(bly_remove_hashes(f, &h, 1, NULL));
    assert_int_equal(f->data[0], 255);
    assert_true(bly_has_hash(f, hash_with(0, 8)));
    bly_free(f);
}

/* ------------------------------------------------------------- operations */

/* Add and remove against an exact multiset; tiny arrays, in which probes of one
 * key share cells, among them. */
static void random_operations(void **state)
{
    (void)state;
    enum { KEYS = 200, STEPS = 20000 };
    static const struct {
        uint64_t cells;
        const char *k;
        uint64_t keys;
    } shapes[] = { { 1500, "4", KEYS }, { 40, "9", 4 }, { 300, "20", 10 } };
    for (size_t i = 0; i < COUNT_OF(sets); i++)
        for (size_t s = 0; s < COUNT_OF(shapes); s++)
            for (int narrow = 0; narrow < (sets[i].pairs ? 1 : 3); narrow++) {
                const char *width = narrow == 0   ? sets[i].width
                                    : narrow == 1 ? "7"
                                                  : "16";
                bly_filter *f = vi_new(shapes[s].keys, shapes[s].cells,
                                       shapes[s].k, sets[i].name, width, 0);
                bly_filter *before = NULL;
                uint64_t rng = 11 + i, h[KEYS], truth[KEYS] = { 0 };
                for (int j = 0; j < KEYS; j++)
                    h[j] = test_random(&rng);
                for (int step = 0; step < STEPS; step++) {
                    const size_t j =
                        (size_t)(test_random(&rng) % shapes[s].keys);
                    const uint64_t r = test_random(&rng) % 8;
                    if (r < 3 && truth[j] < 3) {
                        assert_ok(bly_add_hash(f, h[j]));
                        truth[j]++;
                    } else if (r < 6 && truth[j]) {
                        assert_ok(bly_remove_hashes(f, &h[j], 1, NULL));
                        truth[j]--;
                    } else if (r >= 6 && step % 16 == 0) {
                        const uint64_t other = test_random(&rng);
                        const bool maybe = bly_has_hash(f, other);
                        /* Refused without a trace where the answer is no;
                         * and the answer is no where a removal is refused. */
                        assert_ok(bly_clone(f, &before));
                        const bly_status st =
                            bly_remove_hashes(before, &other, 1, NULL);
                        if (!maybe || sets[i].pairs)
                            assert_true(maybe || st == BLY_EABSENT);
                        else
                            assert_int_equal(st, BLY_OK);
                        if (st)
                            assert_true(bly_equal(f, before));
                        bly_free(before);
                    }
                    assert_true(bly_has_hash(f, h[j]) || !truth[j]);
                }
                assert_true(f->kind->check(f));
                for (uint64_t j = 0; j < shapes[s].keys; j++)
                    for (; truth[j]; truth[j]--)
                        assert_ok(bly_remove_hashes(f, &h[j], 1, NULL));
                const bly_cells_tally t = bly_cells_count(
                    f->data, shapes[s].cells, (unsigned)f->shape.p[WIDTH]);
                assert_int_equal(t.used, f->state[0]);
                assert_int_equal(t.stuck, f->state[0]);
                if (narrow == 2)
                    assert_int_equal(t.used, 0);
                bly_free(f);
            }
}

/* Removing what was never added, again and again: a false positive does harm
 * to others, but leaves cells that a file may hold. */
static void harm_stays_within_bounds(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(sets); i++) {
        bly_filter *f = vi_new(100, 150, "3", sets[i].name, sets[i].width, 0);
        uint64_t rng = 23;
        for (int step = 0; step < 5000; step++) {
            const uint64_t h = test_random(&rng);
            if (step % 3 == 0)
                assert_ok(bly_add_hash(f, h));
            else
                bly_remove_hashes(f, &h, 1, NULL);
        }
        assert_true(f->kind->check(f));
        bly_free(f);
    }
}

static void merging_adds_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(sets); i++) {
        bly_filter *a = vi_new(100, 400, "3", sets[i].name, sets[i].width, 0);
        bly_filter *b = vi_new(100, 400, "3", sets[i].name, sets[i].width, 0);
        bly_filter *both =
            vi_new(100, 400, "3", sets[i].name, sets[i].width, 0);
        assert_merge_adds_up(a, b, both, 12, 7);
    }
}

/* Cells in use are the bits of a classic filter. */
static void becomes_the_classic_filter(void **state)
{
    (void)state;
    bly_filter *f = vi_new(1000, 4000, "3", "s", "8", 0), *bits, *direct;
    const bly_option options[] = { { "k", "3" }, { "layout", "shared" } };
    const bly_spec to = { .kind = "classic" };
    const bly_spec plain = { .kind = "classic",
                             .items = 1000,
                             .bits = 4000,
                             .options = options,
                             .noptions = COUNT_OF(options) };
    uint64_t keys[1000];
    for (uint64_t j = 0; j < 1000; j++)
        keys[j] = j;
    assert_ok(bly_add_ints(f, keys, 1000, NULL, NULL));
    assert_ok(bly_convert(f, &to, &bits));
    direct = filled_from(&plain, 0, 1000);
    assert_true(bly_equal(bits, direct));
    bly_free(f);
    bly_free(bits);
    bly_free(direct);
}

static void bad_options(void **state)
{
    (void)state;
    static const bly_option bad[][2] = {
        { { "increments", "l3" }, { "k", "3" } },
        { { "increments", "" }, { "k", "3" } },
        { { "increments", "s" }, { "width", "9" } },
        { { "increments", "s" }, { "width", "12" } },
        { { "increments", "s" }, { "width", "6" } },
        { { "increments", "s" }, { "width", "32" } },
        { { "increments", "b3" }, { "width", "8" } },
        { { "increments", "b3" }, { "k", "0" } },
        { { "increments", "b3" }, { "k", "256" } },
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        const bly_spec spec = {
            .kind = "vicounting", .items = 100, .options = bad[i], .noptions = 2
        };
        bly_prediction p;
        assert_status(bly_plan(&spec, &p), BLY_EINVAL);
    }
    /* A file's shape that no plan makes. */
    bly_filter *f = vi_new(10, 100, "3", "s", "8", 0);
    bly_shape s = bly_shape_of(f);
    assert_true(f->kind->sane(&s));
    s.p[INCREMENTS] = COUNT_OF(sets);
    assert_false(f->kind->sane(&s));
    s.p[INCREMENTS] = 5;
    assert_false(f->kind->sane(&s));
    s = bly_shape_of(f);
    s.p[WIDTH] = 0;
    assert_false(f->kind->sane(&s));
    s = bly_shape_of(f);
    s.p[K] = 0;
    assert_false(f->kind->sane(&s));
    s = bly_shape_of(f);
    s.nbytes += 8;
    assert_false(f->kind->sane(&s));
    bly_free(f);
}

/* ------------------------------------------------------- sets of one's own */

static bly_filter *own_new(uint64_t items, double fpr, const char *set,
                           const char *width)
{
    const bly_option options[] = { { "set", set }, { "width", width } };
    const bly_spec spec = { .kind = "vicounting",
                            .items = items,
                            .fpr = fpr,
                            .options = options,
                            .noptions = width ? 2 : 1 };
    bly_filter *f;
    assert_ok(bly_new(&spec, &f));
    assert_true(f->kind->sane(&f->shape));
    return f;
}

/* Sets that have a name, given by their increments: the same cells. */
static void own_sets_are_those_of_a_name(void **state)
{
    (void)state;
    static const struct {
        const char *name, *own;
    } same[] = { { "s", "08121415" },
                 { "l2", "0203" },
                 { "l4", "4050607" },
                 { "l8", "0809101112131415" } };
    for (size_t i = 0; i < COUNT_OF(same); i++) {
        const bly_option name = { "increments", same[i].name };
        const bly_spec spec = { .kind = "vicounting",
                                .items = 2000,
                                .fpr = 0.01,
                                .options = &name,
                                .noptions = 1 };
        bly_filter *a, *b = own_new(2000, 0.01, same[i].own, NULL);
        assert_ok(bly_new(&spec, &a));
        assert_int_equal(a->shape.nbytes, b->shape.nbytes);
        assert_int_equal(a->shape.p[K], b->shape.p[K]);
        assert_near(a->fpr, b->fpr, 1e-9);
        uint64_t rng = 3;
        for (int j = 0; j < 2000; j++) {
            const uint64_t h = test_random(&rng);
            assert_ok(bly_add_hash(a, h));
            assert_ok(bly_add_hash(b, h));
        }
        assert_memory_equal(a->data, b->data, a->shape.nbytes);
        for (int j = 0; j < 20000; j++) {
            const uint64_t h = test_random(&rng);
            assert_int_equal(bly_has_hash(a, h), bly_has_hash(b, h));
        }
        assert_status(bly_merge(a, b), BLY_EUNFIT);
        bly_free(a);
        bly_free(b);
    }
}

/* Others: the rate is the predicted one, nothing is forgotten, and what is
 * removed leaves nothing behind. */
static void own_sets_keep_what_they_promise(void **state)
{
    (void)state;
    static const struct {
        const char *set, *width;
    } rows[] = { { "05071113", NULL },
                 { "0102", NULL }, /* nearly everything is a sum */
                 { "0204", NULL }, /* nothing odd ever is */
                 { "0163", "16" },
                 { "1724283031343541", NULL } };
    enum { N = 5000, Q = 200000 };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        bly_filter *f = own_new(N, 0.01, rows[i].set, rows[i].width);
        uint64_t rng = 7 + i, *h = malloc(N * sizeof *h), hits = 0;
        for (int j = 0; j < N; j++)
            h[j] = test_random(&rng);
        assert_ok(bly_add_hashes(f, h, N, NULL, NULL));
        for (int j = 0; j < N; j++)
            assert_true(bly_has_hash(f, h[j]));
        for (int j = 0; j < Q; j++)
            hits += bly_has_hash(f, test_random(&rng));
        const double p = f->fpr, sd = sqrt(p / Q + p * p / N);
        assert_true(p <= 0.01);
        assert_between((double)hits / Q, p - 6 * sd, p + 6 * sd);
        byte_array bytes = written(f);
        bly_filter *back;
        assert_ok(bly_load(bytes.at, bytes.n, NULL, &back));
        assert_true(bly_equal(f, back));
        free(bytes.at);
        bly_free(back);
        assert_ok(bly_remove_hashes(f, h, N / 2, NULL));
        for (int j = N / 2; j < N; j++)
            assert_true(bly_has_hash(f, h[j]));
        assert_ok(bly_remove_hashes(f, h + N / 2, N / 2, NULL));
        assert_int_equal(bly_cells_count(f->data, f->shape.p[COUNTERS],
                                         (unsigned)f->shape.p[WIDTH])
                             .used,
                         0);
        free(h);
        bly_free(f);
    }
}

static void own_sets_that_are_none(void **state)
{
    (void)state;
    static const struct {
        const char *set, *name, *value, *why;
    } bad[] = { { "8", "k", "3", "two digits" },
                { "050711", "k", "3", "2, 4" },
                { "0507110", "k", "3", "rising" },
                { "07050911", "k", "3", "rising" },
                { "05050911", "k", "3", "rising" },
                { "0564", "k", "3", "63" },
                { "0563", "width", "7", "larger width" },
                { "0563", "width", "12", "width = 12" },
                { "0507", "increments", "l4", "not both" } };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        const bly_option options[] = { { "set", bad[i].set },
                                       { bad[i].name, bad[i].value } };
        const bly_spec spec = { .kind = "vicounting",
                                .items = 100,
                                .fpr = 0.01,
                                .options = options,
                                .noptions = 2 };
        bly_prediction p;
        assert_status(bly_plan(&spec, &p), BLY_EINVAL);
        assert_non_null(strstr(bly_error(), bad[i].why));
    }
    bly_filter *f = own_new(100, 0.01, "05071113", NULL);
    static const uint64_t forged[] = { 5, 50711, 99999999, UINT64_MAX,
                                       7050911 };
    for (size_t i = 0; i < COUNT_OF(forged); i++) {
        bly_shape s = bly_shape_of(f);
        s.p[WIDTH + 2] = forged[i];
        assert_false(f->kind->sane(&s));
    }
    bly_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_are_sets),
        cmocka_unit_test(the_query_rule),
        cmocka_unit_test(probes_that_meet_are_asked_together),
        cmocka_unit_test(cells_are_checked),
        cmocka_unit_test(closed_forms),
        cmocka_unit_test(table_of_equal_cells),
        cmocka_unit_test(table_of_equal_memory),
        cmocka_unit_test(measured_rates),
        cmocka_unit_test(own_sets_are_those_of_a_name),
        cmocka_unit_test(own_sets_keep_what_they_promise),
        cmocka_unit_test(own_sets_that_are_none),
        cmocka_unit_test(advantage_at_equal_memory),
        cmocka_unit_test(hits_to_stuck),
        cmocka_unit_test(random_operations),
        cmocka_unit_test(harm_stays_within_bounds),
        cmocka_unit_test(merging_adds_up),
        cmocka_unit_test(becomes_the_classic_filter),
        cmocka_unit_test(bad_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
