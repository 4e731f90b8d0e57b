/*
 * test_ribbon.c - what is peculiar to the ribbon kind
 *
 * Its size against the lower bound, any rate and exactly that, sets of every
 * small size, keys that repeat, that come in another order, in several threads,
 * from an enemy; and every variant against the portable one. What it shares
 * with every kind is in test_laws.c.
 */
#include "kinds/filter.h"
#include "tests/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash.h"
#include "kinds/ribbon.h"

static bly_spec ribbon_spec(uint64_t items, double fpr)
{
    return (bly_spec){
        .kind = "ribbon", .items = items, .fpr = fpr, .seed = LAW_SEED
    };
}

/* A filter of hashes, made with so many threads. */
static bly_filter *built(const bly_spec *spec, const uint64_t *h, size_t n,
                         unsigned nthreads)
{
    bly_builder *b;
    bly_filter *f;
    assert_ok(bly_builder_new(spec, &b));
    assert_ok(bly_builder_add(b, h, NULL, n));
    assert_ok(bly_builder_finish(b, nthreads, &f));
    bly_builder_free(b);
    return f;
}

static void assert_holds(const bly_filter *f, const uint64_t *h, size_t n)
{
    uint64_t *maybe = malloc((BLY_BITMAP_WORDS(n) + 1) * sizeof *maybe);
    size_t found = 0;
    bly_has_hashes(f, h, n, maybe);
    for (size_t i = 0; i < n; i++)
        found += maybe[i / 64] >> i % 64 & 1;
    assert_int_equal(found, n);
    free(maybe);
}

/* ------------------------------------------------------------------- size */

/* Everything counted, from 1000 keys to as many as hashes can tell apart. */
static void size_is_near_the_bound(void **state)
{
    (void)state;
    static const struct {
        double fpr, most;
    } rows[] = { { 0.01, 1.05 }, { 0.001, 1.041 }, { 0x1p-8, 1.041 } };
    for (size_t r = 0; r < COUNT_OF(rows); r++) {
        const double bits = -log2(rows[r].fpr);
        for (double n = 10000; n < 0x1p48; n *= 1.013) {
            const bly_spec spec = ribbon_spec((uint64_t)n, rows[r].fpr);
            bly_prediction p;
            assert_ok(bly_plan(&spec, &p));
            assert_between((double)p.bits / (double)spec.items, bits,
                           bits * rows[r].most);
            assert_int_equal(p.bytes * 8, p.bits);
            if (n > 1e6)
                assert_true((double)p.bits / (double)spec.items < 1.03 * bits);
        }
    }
}

/* Less than 1 % above it where that is asked for, with all keys in it. */
static void tight_is_nearer(void **state)
{
    (void)state;
    static const bly_option tight = { "tight", "1" };
    enum { N = 200000 };
    uint64_t *h = malloc(N * sizeof *h);
    bly_spec spec = ribbon_spec(N, 0x1p-7);
    bly_prediction p;
    spec.options = &tight;
    spec.noptions = 1;
    for (double n = 1e6; n < 0x1p48; n *= 1.7) {
        spec.items = (uint64_t)n;
        assert_ok(bly_plan(&spec, &p));
        assert_between((double)p.bits, 7 * n, 7 * 1.01 * n);
    }
    spec.items = N;
    for (size_t i = 0; i < N; i++)
        h[i] = bly_mix64(i);
    bly_filter *f = built(&spec, h, N, 2);
    assert_holds(f, h, N);
    bly_free(f);
    free(h);
}

/* The rate that was asked for, never above it, whatever the number of keys. */
static void plans_any_rate(void **state)
{
    (void)state;
    static const double rates[] = { 0.999999, 0.9,  0.5,    0.3,    0.03,
                                    0.01,     1e-3, 0x1p-8, 1.1e-5, 1e-9 };
    static const uint64_t items[] = { 1, 2, 1000, 1000000, 4294967301 };
    for (size_t i = 0; i < COUNT_OF(items); i++)
        for (size_t r = 0; r < COUNT_OF(rates); r++) {
            /* What keys of one hash add is not the kind's. */
            const double same = (double)items[i] * 0x1p-64;
            const bly_spec spec = ribbon_spec(items[i], rates[r]);
            bly_prediction p;
            assert_ok(bly_plan(&spec, &p));
            assert_between(p.fpr - same, rates[r] * (1 - 1e-9) - same,
                           rates[r]);
        }
}

/* 2^32 + 5 keys: 28 GiB that nobody has to have. */
static void plans_past_32_bits(void **state)
{
    (void)state;
    const bly_spec spec = ribbon_spec((UINT64_C(1) << 32) + 5, 0.01);
    bly_prediction p;
    assert_ok(bly_plan(&spec, &p));
    assert_between(p.bits_per_key, 6.64, 6.64 * 1.03);
}

/* The most that fits the memory, and a message where nothing does. */
static void plans_for_memory(void **state)
{
    (void)state;
    for (uint64_t n = 1; n < 1000000; n = 3 * n + 1)
        for (uint64_t per = 1; per < 100; per += 7) {
            bly_spec spec = { .kind = "ribbon", .items = n, .bits = n * per };
            bly_prediction p, q;
            if (n * per < 320 || per == 1) {
                if (bly_plan(&spec, &p))
                    assert_non_null(strstr(bly_error(), "too few"));
                continue;
            }
            assert_ok(bly_plan(&spec, &p));
            assert_true(p.bits <= spec.bits);
            /* 64-bit prints are the widest. */
            if (n > 20000 && per < 60)
                assert_true(p.bits + 100000 > spec.bits || per < 3);
            spec = ribbon_spec(n, p.fpr > 0x1p-40 ? p.fpr : 0x1p-40);
            assert_ok(bly_plan(&spec, &q));
            assert_true(q.bits <= p.bits);
        }
}

static void refuses_shapes(void **state)
{
    (void)state;
    bly_filter *f =
        filled_from(&(bly_spec){ .kind = "ribbon", .items = 30000 }, 0, 30000);
    const bly_shape good = bly_shape_of(f);
    const bly_kind *kind = f->kind;
    bly_shape s;
    assert_true(kind->sane(&good));
    static const struct {
        unsigned param;
        uint64_t value;
    } bad[] = {
        { BLY_RIBBON_WIDTH, 65 },
        { BLY_RIBBON_WIDTH, UINT64_MAX },
        { BLY_RIBBON_WIDER, UINT64_C(1) << 32 },
        { BLY_RIBBON_SLOTS, 0 },
        { BLY_RIBBON_SLOTS, 63 },
        { BLY_RIBBON_SLOTS, 100 },
        { BLY_RIBBON_SLOTS, UINT64_MAX },
        { BLY_RIBBON_SLOTS, UINT64_MAX - 63 },
        { BLY_RIBBON_SLOTS, 65536 + 64 },
        { BLY_RIBBON_SLOTS + 1, 65536 * 2 },
        { BLY_RIBBON_SLOTS + 2, 65536 * 2 },
        { BLY_RIBBON_SLOTS + 3, 64 },
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        s = good;
        s.p[bad[i].param] = bad[i].value;
        assert_false(kind->sane(&s));
    }
    s = good;
    s.nbytes += 8;
    assert_false(kind->sane(&s));
    /* A rate of 1 is not a filter. */
    s = (bly_shape){ .p = { [BLY_RIBBON_SLOTS] = 64 }, .nbytes = 0 };
    assert_false(kind->sane(&s));
    bly_free(f);
}

/* Zeros that are none, and bounds past their bucket, are damage. */
static void checks_what_has_no_meaning(void **state)
{
    (void)state;
    const bly_spec spec = ribbon_spec(30000, 0.01);
    bly_filter *f = filled_from(&spec, 0, 30000);
    bly_ribbon_map map;
    bly_ribbon_map_of(&f->shape, &map);
    assert_true(map.bounds > 8 * map.nwords && map.nbytes > map.end);
    const struct {
        uint64_t at;
        unsigned char value;
    } bad[] = { { 8 * map.nwords, 1 }, { map.bounds - 1, 128 },
                { map.end, 1 },        { map.nbytes - 1, 1 },
                { map.bounds, 129 },   { map.end - 1, 255 } };
    assert_true(f->kind->check(f));
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        const unsigned char was = f->data[bad[i].at];
        f->data[bad[i].at] = bad[i].value;
        assert_false(f->kind->check(f));
        f->data[bad[i].at] = was;
    }
    bly_free(f);
}

/* ------------------------------------------------------------------- rate */

/* Each absent key is a coin of its own, so the hits are binomial: six sigma on
 * either side. */
static void keeps_any_rate_exactly(void **state)
{
    (void)state;
    static const double rates[] = { 0.9, 0.5, 0.3, 0.03, 0.01, 0x1p-8, 0.001 };
    static const size_t sizes[] = { 1, 60, 5000, 150000 };
    const size_t q = scaled(2000000);
    for (size_t s = 0; s < COUNT_OF(sizes); s++)
        for (size_t r = 0; r < COUNT_OF(rates); r++) {
            const bly_spec spec = ribbon_spec(sizes[s], rates[r]);
            bly_filter *f = filled_from(&spec, 0, sizes[s]);
            const double p = rates[r];
            const double sd = sqrt(p * (1 - p) / (double)q);
            bly_stats stats;
            bly_stat(f, &stats);
            assert_near(stats.fpr_now, p, 1e-9);
            assert_near(stats.items_estimate, (double)sizes[s], 0);
            assert_between((double)hits(f, ABSENT, q) / (double)q, p - 6 * sd,
                           p + 6 * sd);
            bly_free(f);
        }
}

/* ------------------------------------------------------------------- sets */

static void holds_sets_of_every_size(void **state)
{
    (void)state;
    static const double rates[] = { 0.9, 0.5, 0.01, 0.001, 1e-6, 1e-12 };
    static const size_t more[] = { 1000,  4999,  19999,  20000,
                                   20001, 65536, 140000, 400000 };
    for (size_t i = 0; i < 150 + COUNT_OF(more); i++)
        for (size_t r = 0; r < COUNT_OF(rates); r++) {
            const size_t n = i < 150 ? i : scaled(more[i - 150]);
            const bly_spec spec = ribbon_spec(n, rates[r]);
            uint64_t *h = hashes_for(&spec, 0, n);
            bly_filter *f = built(&spec, h, n, 1);
            assert_holds(f, h, n);
            bly_free(f);
            free(h);
        }
}

/* Three layers begin at two million keys. */
static void holds_three_layers(void **state)
{
    (void)state;
    const size_t n = 2600000;
    const bly_spec spec = ribbon_spec(n, 0.02);
    uint64_t *h = hashes_for(&spec, 0, n);
    bly_filter *f = built(&spec, h, n, 2);
    assert_true(f->shape.p[BLY_RIBBON_SLOTS + 2] > 0);
    assert_holds(f, h, n);
    bly_free(f);
    free(h);
}

static void nothing_is_in_an_empty_one(void **state)
{
    (void)state;
    const bly_spec spec = ribbon_spec(0, 0.5);
    bly_filter *f = built(&spec, NULL, 0, 1);
    bly_stats stats;
    assert_int_equal(hits(f, 0, 10000), 0);
    bly_stat(f, &stats);
    assert_near(stats.fpr_now, 0, 0);
    assert_near(stats.items_estimate, 0, 0);
    bly_free(f);
}

/* Two filters of one shape and one content. */
static void assert_same(const bly_filter *f, const bly_filter *g)
{
    byte_array bytes = written(f);
    assert_same_bytes(g, &bytes);
    free(bytes.at);
}

/* Each key up to five times, in an order of chance: the filter of the set. */
static void repeated_keys_are_one(void **state)
{
    (void)state;
    static const size_t sizes[] = { 1, 100, 3000, 100000 };
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        const size_t n = sizes[s], most = 5 * n;
        const bly_spec spec = ribbon_spec(n, 0.01);
        uint64_t *h = hashes_for(&spec, 0, n), random = s;
        uint64_t *many = malloc(most * sizeof *many);
        size_t nmany = n;
        memcpy(many, h, n * sizeof *h);
        while (nmany < most)
            many[nmany++] = h[test_random(&random) % n];
        for (size_t i = nmany; i > 1; i--) {
            const size_t j = test_random(&random) % i;
            const uint64_t t = many[i - 1];
            many[i - 1] = many[j];
            many[j] = t;
        }
        bly_filter *f = built(&spec, h, n, 1), *g = built(&spec, many, most, 1);
        bly_stats stats;
        bly_stat(g, &stats);
        assert_int_equal(stats.items_added, n);
        assert_same(f, g);
        bly_free(f);
        bly_free(g);
        free(many);
        free(h);
    }
}

/* One key a million times is no sorting of a million by insertion. */
static void one_key_very_often(void **state)
{
    (void)state;
    const size_t n = 1000000;
    const bly_spec spec = ribbon_spec(100000, 0.01);
    uint64_t *h = hashes_for(&spec, 0, n);
    for (size_t i = 10; i < n; i++)
        h[i] = h[i % 10];
    bly_filter *f = built(&spec, h, n, 2);
    bly_stats stats;
    bly_stat(f, &stats);
    assert_int_equal(stats.items_added, 10);
    assert_holds(f, h, 1000);
    bly_free(f);
    free(h);
}

static void threads_make_the_same(void **state)
{
    (void)state;
    static const unsigned nthreads[] = { 2, 3, 7, 100 };
    const size_t n = 350000; /* six shards */
    const bly_spec spec = ribbon_spec(n, 0.01);
    uint64_t *h = hashes_for(&spec, 0, n);
    bly_filter *f = built(&spec, h, n, 1);
    for (size_t i = 0; i < COUNT_OF(nthreads); i++) {
        bly_filter *g = built(&spec, h, n, nthreads[i]);
        assert_same(f, g);
        bly_free(g);
    }
    bly_free(f);
    free(h);
}

/* ------------------------------------------------------------------ failing */

/* Keys that all fall into the first bucket under the first seed, which anyone
 * can look up: the next seed serves. */
static void an_enemy_costs_a_seed(void **state)
{
    (void)state;
    const size_t n = 30000;
    const bly_spec spec = ribbon_spec(n, 0.01);
    uint64_t *h = malloc(n * sizeof *h);
    for (size_t i = 0; i < n; i++)
        h[i] = bly_ribbon_unhash(i << 30, 0);
    bly_filter *f = built(&spec, h, n, 1);
    assert_int_equal(f->state[BLY_RIBBON_SEED], 1);
    assert_holds(f, h, n);
    bly_free(f);
    free(h);
}

/* Hashes that are not hashes. */
static void takes_integers_for_hashes(void **state)
{
    (void)state;
    const size_t n = 50000;
    const bly_spec spec = ribbon_spec(n, 0.01);
    for (unsigned shift = 0; shift < 48; shift += 12) {
        uint64_t *h = malloc(n * sizeof *h);
        for (size_t i = 0; i < n; i++)
            h[i] = (uint64_t)i << shift;
        bly_filter *f = built(&spec, h, n, 1);
        const double q = (double)scaled(400000);
        assert_holds(f, h, n);
        assert_between((double)hits(f, ABSENT, (size_t)q) / q, 0,
                       0.01 + 6 * sqrt(0.01 / q));
        bly_free(f);
        free(h);
    }
}

static void more_keys_than_planned(void **state)
{
    (void)state;
    const bly_spec spec = ribbon_spec(1000, 0.01);
    bly_filter *f = filled_from(&spec, 0, 1000);
    const byte_array before = written(f);
    uint64_t *h = hashes_for(&spec, 0, 1001);
    assert_status(f->kind->build(f, h, NULL, 1001, 1), BLY_EFULL);
    assert_non_null(strstr(bly_error(), "1001"));
    assert_int_equal(f->items, 1000);
    free(h);
    free(before.at);
    bly_free(f);
}

static void hashing_has_an_inverse(void **state)
{
    for (uint64_t i = 0; i < 1000; i++) {
        const uint64_t h = bly_mix64(i), seed = bly_mix64(i + 5000);
        const uint64_t u = bly_ribbon_hash_valued(h, seed);
        assert_true(bly_ribbon_unhash_valued(u, seed) == h);
        /* Bit 0 goes along and changes nothing else. */
        assert_true((bly_ribbon_hash_valued(h ^ 1, seed) ^ u) == 1);
    }
    (void)state;
    uint64_t random = 3;
    for (int i = 0; i < 10000; i++) {
        const uint64_t h = test_random(&random), seed = test_random(&random);
        assert_true(bly_ribbon_unhash(bly_ribbon_hash(h, seed), seed) == h);
    }
}

/* ---------------------------------------------------------------- variants */

/* Any bytes, bounds included, are asked without harm, and every variant gives
 * the same answers and leaves the same keys to the next layer. The words end
 * at a wall. */
static void variants_ask_alike(void **state)
{
    (void)state;
    enum { N = 700 };
    static const uint64_t slots[][2] = {
        { 64, 0 }, { 128, 0 }, { 960, 64 }, { 131072, 1024 }
    };
    const bly_ribbon_row *const last = LAST_ROW(ribbon);
    uint64_t random = 4, h[N];
    for (uint64_t width = 0; width <= 64; width++)
        for (size_t s = 0; s < COUNT_OF(slots); s++) {
            const uint64_t wider =
                width == 64 || (width && s == 1) ? 0 : 1 + random % UINT32_MAX;
            const bly_shape shape = { .p = { width, wider, slots[s][0],
                                             slots[s][1] } };
            bly_ribbon_map map;
            bly_ribbon_map_of(&shape, &map);
            unsigned char *data = guarded_new((size_t)map.nbytes);
            for (size_t i = 0; i < map.nbytes; i++)
                data[i] = (unsigned char)test_random(&random);
            for (size_t i = 0; i < N; i++)
                h[i] = i == 0   ? bly_ribbon_unhash(UINT64_MAX, 0)
                       : i == 1 ? bly_ribbon_unhash(0, 0)
                                : test_random(&random);
            EACH_ROW(ribbon, v)
            {
                static bly_ribbon_keys a, b;
                uint64_t x[BLY_BITMAP_WORDS(N)], y[BLY_BITMAP_WORDS(N)];
                v->ask(&map.layer[0], data, h, N, &a, x, true, true);
                last->ask(&map.layer[0], data, h, N, &b, y, true, false);
                for (unsigned i = 0;; i++) {
                    assert_int_equal(a.n, b.n);
                    assert_memory_equal(x, y, sizeof x);
                    assert_memory_equal(a.u, b.u, a.n * sizeof *a.u);
                    assert_memory_equal(a.at, b.at, a.n * sizeof *a.at);
                    if (i + 1 == map.nlayers)
                        break;
                    v->ask(&map.layer[i + 1], data, a.u, a.n, &a, x, false,
                           false);
                    last->ask(&map.layer[i + 1], data, b.u, b.n, &b, y, false,
                              true);
                }
                assert_int_equal(a.n, 0);
            }
            guarded_free(data, (size_t)map.nbytes);
        }
}

static void variants_substitute_alike(void **state)
{
    (void)state;
    enum { SLOTS = 320 };
    const bly_ribbon_row *const last = LAST_ROW(ribbon);
    uint64_t random = 5, rows[SLOTS], prints[SLOTS];
    for (uint64_t width = 0; width < 64; width++) {
        const bly_shape shape = { .p = { width, UINT64_C(1) << 31, SLOTS, 0 } };
        bly_ribbon_map map;
        bly_ribbon_map_of(&shape, &map);
        for (size_t i = 0; i < SLOTS; i++) {
            const uint64_t r = test_random(&random);
            rows[i] = r % 16 ? (r | 1) : 0;
            prints[i] = rows[i] ? test_random(&random) : 0;
            if (i > SLOTS - 64)
                rows[i] &= UINT64_MAX >> (i - (SLOTS - 64));
        }
        uint64_t *want = calloc(1, (size_t)map.nbytes);
        last->substitute(&map.layer[0], rows, prints, want);
        EACH_ROW(ribbon, v)
        {
            uint64_t *got = calloc(1, (size_t)map.nbytes);
            v->substitute(&map.layer[0], rows, prints, got);
            assert_memory_equal(got, want, (size_t)map.nbytes);
            free(got);
        }
        free(want);
    }
}

/* The same keys make the same bytes in every version, with keys bumped, rates
 * for which some keys are wider, and a crowd of keys that start in one slot:
 * most rows are inserted in no order, and nobody may see that. */
static void bytes_are_as_ever(void **state)
{
    (void)state;
    static const struct {
        size_t planned, n, crowd;
        double fpr;
        uint64_t sum;
    } rows[] = {
        { 70000, 70000, 0, 0.01, UINT64_C(0xb2dd8a52132a313f) },
        { 70000, 70000, 0, 0.001, UINT64_C(0x0abfce639f130950) },
        { 400000, 400000, 0, 0.03, UINT64_C(0x28bf896ad4a61054) },
        { 60000, 60000, 32, 0.01, UINT64_C(0x64c2ddeb812df47d) },
        { 60000, 60000, 80, 0.01, UINT64_C(0x58b8d938bc941183) },
        /* Half empty: all of the crowd would find room. */
        { 60000, 30000, 50, 0.01, UINT64_C(0xfc8b0721f3a5e81c) },
    };
    for (size_t r = 0; r < COUNT_OF(rows); r++) {
        const bly_spec spec = ribbon_spec(rows[r].planned, rows[r].fpr);
        uint64_t *h = malloc(rows[r].n * sizeof *h);
        for (size_t i = 0; i < rows[r].n; i++)
            h[i] = i < rows[r].crowd
                       ? bly_ribbon_unhash((UINT64_C(1) << 62) + i, 0)
                       : bly_mix64(i);
        bly_filter *f = built(&spec, h, rows[r].n, 2);
        assert_true(bly_checksum(f->data, (size_t)f->shape.nbytes) ==
                    rows[r].sum);
        bly_free(f);
        free(h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(size_is_near_the_bound),
        cmocka_unit_test(tight_is_nearer),
        cmocka_unit_test(plans_any_rate),
        cmocka_unit_test(plans_past_32_bits),
        cmocka_unit_test(plans_for_memory),
        cmocka_unit_test(refuses_shapes),
        cmocka_unit_test(checks_what_has_no_meaning),
        cmocka_unit_test(keeps_any_rate_exactly),
        cmocka_unit_test(holds_sets_of_every_size),
        cmocka_unit_test(holds_three_layers),
        cmocka_unit_test(nothing_is_in_an_empty_one),
        cmocka_unit_test(repeated_keys_are_one),
        cmocka_unit_test(one_key_very_often),
        cmocka_unit_test(threads_make_the_same),
        cmocka_unit_test(an_enemy_costs_a_seed),
        cmocka_unit_test(takes_integers_for_hashes),
        cmocka_unit_test(more_keys_than_planned),
        cmocka_unit_test(hashing_has_an_inverse),
        cmocka_unit_test(variants_ask_alike),
        cmocka_unit_test(variants_substitute_alike),
        cmocka_unit_test(bytes_are_as_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
