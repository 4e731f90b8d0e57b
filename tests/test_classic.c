/*
 * test_classic.c - what is peculiar to the classic kind
 *
 * Its positions, bit by bit, against the closed forms; its three layouts; its
 * two sizing rules. What it shares with every kind is in test_laws.c.
 */
#include "tests/support.h"

#include <string.h>

#include "core/bits.h"
#include "engine/bit_count.h"
#include "kinds/kind.h"

static bly_filter *classic_new(uint64_t items, uint64_t bits, const char *k,
                               const char *layout)
{
    const bly_option options[] = { { "k", k }, { "layout", layout } };
    const bly_spec spec = { .kind = "classic",
                            .items = items,
                            .bits = bits,
                            .options = options,
                            .noptions = COUNT_OF(options) };
    bly_filter *f;
    assert_ok(bly_new(&spec, &f));
    return f;
}

static const uint64_t *words_of(const bly_filter *f)
{
    return (const uint64_t *)(const void *)f->data;
}

__extension__ typedef unsigned __int128 wide;

/* p[i] = a + i b + (i^3 - i)/6 mod m, in 128 bits, so that nothing can wrap. */
static uint64_t shared_form(uint64_t h, uint64_t i, uint64_t m)
{
    const wide a = h % m, b = bly_mix64(h) % m;
    return (uint64_t)((a + i * b + (wide)(i * i * i - i) / 6) % m);
}

/* p[i] = (h C^i mod 2^64) m / 2^64. */
static uint64_t spread_form(uint64_t h, uint64_t i, uint64_t m)
{
    while (i--)
        h *= UINT64_C(0xf1357aea2e62a9c5);
    return (uint64_t)((wide)h * m >> 64);
}

static void positions_are(const char *layout,
                          uint64_t (*closed_form)(uint64_t h, uint64_t i,
                                                  uint64_t m))
{
    static const struct {
        uint64_t m, k;
        const char *text;
    } shapes[] = {
        { 1000, 7, "7" },    { 10, 3, "3" },     { 1, 1, "1" },
        { 255, 255, "255" }, { 479253, 7, "7" }, { 64, 64, "64" },
    };
    uint64_t rng = 1;
    for (size_t s = 0; s < COUNT_OF(shapes); s++) {
        for (int round = 0; round < 20; round++) {
            bly_filter *f =
                classic_new(100, shapes[s].m, shapes[s].text, layout);
            const uint64_t h = test_random(&rng);
            uint64_t expected = 0;
            assert_ok(bly_add_hash(f, h));
            for (uint64_t i = 0; i < shapes[s].k; i++) {
                const uint64_t p = closed_form(h, i, shapes[s].m);
                bool seen = false;
                assert_true(bly_bit_get(words_of(f), p));
                for (uint64_t j = 0; j < i; j++)
                    seen |= closed_form(h, j, shapes[s].m) == p;
                expected += !seen;
            }
            assert_int_equal(bly_bits_count(words_of(f), f->shape.nbytes / 8),
                             expected);
            bly_free(f);
        }
    }
}

static void positions_are_the_closed_forms(void **state)
{
    (void)state;
    positions_are("shared", shared_form);
    positions_are("spread", spread_form);
}

static void a_slice_each_when_partitioned(void **state)
{
    (void)state;
    uint64_t rng = 2;
    for (int round = 0; round < 200; round++) {
        /* 70 bits in 7 slices; slices of 10 bits are about as short as k. */
        bly_filter *f = classic_new(5, 70, "7", "partitioned");
        assert_ok(bly_add_hash(f, test_random(&rng)));
        for (unsigned slice = 0; slice < 7; slice++) {
            unsigned ones = 0;
            for (unsigned j = 0; j < 10; j++)
                ones += bly_bit_get(words_of(f), slice * 10 + j);
            assert_int_equal(ones, 1);
        }
        bly_free(f);
    }
}

/* Slices of one bit each: k > slice length, every probe at 0 of its slice. */
static void slices_shorter_than_k(void **state)
{
    (void)state;
    bly_filter *f = classic_new(1, 9, "9", "partitioned");
    assert_ok(bly_add_hash(f, 12345));
    assert_int_equal(bly_bits_count(words_of(f), 1), 9);
    assert_true(bly_has_hash(f, 54321));
    bly_free(f);
}

/* What is left over behind the last whole slice is not kept. */
static void partitioned_is_whole_slices(void **state)
{
    (void)state;
    const bly_option o[] = { { "layout", "partitioned" } };
    const bly_spec spec = { .kind = "classic",
                            .items = 50000,
                            .fpr = 0.01,
                            .options = o,
                            .noptions = 1 };
    bly_prediction p;
    assert_ok(bly_plan(&spec, &p));
    assert_int_equal(p.bits, 479253 / 7 * 7);
    assert_near(p.fpr, 0.0100400558, 1e-8);
}

/* The table of sizing rules, through plan. */
static void rules_a_and_b(void **state)
{
    (void)state;
    static const struct {
        uint64_t n;
        double p;
        uint64_t a_bits, a_k, b_bits, b_k;
    } rows[] = {
        { 50000, 0.01, 479253, 7, 479648, 7 },
        { 50000, 0.05, 311762, 4, 312349, 4 },
        { 1000, 0.01, 9586, 7, 9593, 7 },
        { 1000000, 0.01, 9585059, 7, 9592955, 7 },
        { 1000000, 0.001, 14377588, 10, 14377640, 10 },
        { 1000000, 0.0001, 19170117, 13, 19172955, 13 },
    };
    const bly_option rule_b = { "rule", "b" };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        bly_spec spec = { .kind = "classic",
                          .items = rows[i].n,
                          .fpr = rows[i].p };
        bly_prediction p;
        assert_ok(bly_plan(&spec, &p));
        assert_int_equal(p.bits, rows[i].a_bits);
        assert_int_equal(fact_of(p.facts, p.nfacts, "k")->uint, rows[i].a_k);
        assert_int_equal(fact_of(p.facts, p.nfacts, "rule_b_bits")->uint,
                         rows[i].b_bits);
        assert_int_equal(fact_of(p.facts, p.nfacts, "rule_b_k")->uint,
                         rows[i].b_k);
        spec.options = &rule_b;
        spec.noptions = 1;
        assert_ok(bly_plan(&spec, &p));
        assert_int_equal(p.bits, rows[i].b_bits);
        assert_true(fact_of(p.facts, p.nfacts, "fpr_approx")->real <=
                    rows[i].p);
    }
}

/* 1000 keys in 8000 bits: k = 6 and 2.16 %. */
static void best_k_for_given_bits(void **state)
{
    (void)state;
    bly_spec spec = { .kind = "classic", .items = 1000, .bits = 8000 };
    bly_prediction p;
    assert_ok(bly_plan(&spec, &p));
    assert_int_equal(fact_of(p.facts, p.nfacts, "k")->uint, 6);
    assert_near(fact_of(p.facts, p.nfacts, "fpr_exact")->real, 0.0215944787,
                1e-8);
    assert_near(p.fpr, 0.0215944787, 1e-8);
    /* And 1000/8000^2 for keys that share x and y. */
    const bly_option shared = { "layout", "shared" };
    spec.options = &shared;
    spec.noptions = 1;
    assert_ok(bly_plan(&spec, &p));
    assert_near(p.fpr, 0.0215944787 + 1000.0 / (8000.0 * 8000.0), 1e-8);
}

/* In small filters plain double hashing would show: enhanced stays near the
 * value of independent probes, 0.00735 at (100, 1024, 7), where plain has
 * 0.00862. 1000 filters of 2000 questions each: deviation 0.00006 by the
 * questions, and as much by the filters. */
static void small_filters_keep_the_rate(void **state)
{
    (void)state;
    uint64_t hits_seen = 0;
    for (uint64_t seed = 1; seed <= 1000; seed++) {
        const bly_option o[] = { { "k", "7" } };
        const bly_spec spec = { .kind = "classic",
                                .items = 100,
                                .bits = 1024,
                                .seed = seed,
                                .options = o,
                                .noptions = 1 };
        bly_filter *f = filled_from(&spec, 0, 100);
        hits_seen += hits(f, 1000, 2000);
        bly_free(f);
    }
    assert_between((double)hits_seen / 2e6, 0.00744 - 0.0004, 0.00744 + 0.0004);
}

/* Where two values mod m would tell too few keys apart, the rate is that of
 * independent probes all the same: 15 keys in the 256 bits of a packet. With
 * the shared layout it is 1.4 times as much. 20 million questions: deviation 1
 * % by the questions, and as much by the filters. */
static void packets_keep_the_rate(void **state)
{
    (void)state;
    const bly_option k = { "k", "7" };
    bly_spec spec = { .kind = "classic",
                      .items = 15,
                      .bits = 256,
                      .options = &k,
                      .noptions = 1 };
    bly_prediction p;
    assert_ok(bly_plan(&spec, &p));
    uint64_t hits_seen = 0;
    for (spec.seed = 1; spec.seed <= 5000; spec.seed++) {
        bly_filter *f = filled_from(&spec, 0, 15);
        hits_seen += hits(f, 1000, 4000);
        bly_free(f);
    }
    assert_near((double)hits_seen / 2e7, p.fpr, 0.08);
}

/* And no bits are paid for keys that share x and y: 200 keys at 10^-7 take
 * 6710, where the shared layout takes six times as many. */
static void low_rates_take_what_the_rule_gives(void **state)
{
    (void)state;
    const bly_option shared = { "layout", "shared" };
    bly_spec spec = { .kind = "classic", .items = 200, .fpr = 1e-7 };
    bly_prediction p;
    assert_ok(bly_plan(&spec, &p));
    assert_near((double)p.bits, 6710, 0.02);
    spec.options = &shared;
    spec.noptions = 1;
    assert_ok(bly_plan(&spec, &p));
    assert_true(p.bits > 30000);
}

/* Bits behind the last are not part of the filter: a file that sets one is
 * damaged, checksum or not. */
static void tail_bits_are_checked(void **state)
{
    (void)state;
    bly_filter *f = classic_new(100, 1000, "7", "shared");
    assert_true(f->kind->check(f));
    bly_bit_set((uint64_t *)(void *)f->data, 1000);
    assert_false(f->kind->check(f));
    bly_free(f);
}

/* A batch is asked in one way where keys are there and in another where they
 * are not. With any k the answers are those to the keys one by one. */
static void a_batch_that_changes(void **state)
{
    (void)state;
    static const char *const ks[] = { "1", "3", "7", "20", "60", "255" };
    enum { N = 6000, SAME = 1500 };
    static uint64_t h[N], maybe[BLY_BITMAP_WORDS(N)];
    uint64_t rng = 7;
    for (size_t i = 0; i < N; i++)
        h[i] = test_random(&rng);
    for (size_t s = 0; s < 2 * COUNT_OF(ks); s++) {
        bly_filter *f = classic_new(N, UINT64_C(1) << 21, ks[s / 2],
                                    s % 2 ? "shared" : "partitioned");
        for (size_t i = 0; i < N; i++)
            if (i / SAME % 2 == 0)
                assert_ok(bly_add_hash(f, h[i]));
        bly_has_hashes(f, h, N, maybe);
        for (size_t i = 0; i < N; i++)
            assert_int_equal(maybe[i / 64] >> i % 64 & 1,
                             bly_has_hash(f, h[i]));
        bly_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(positions_are_the_closed_forms),
        cmocka_unit_test(a_slice_each_when_partitioned),
        cmocka_unit_test(slices_shorter_than_k),
        cmocka_unit_test(partitioned_is_whole_slices),
        cmocka_unit_test(rules_a_and_b),
        cmocka_unit_test(best_k_for_given_bits),
        cmocka_unit_test(a_batch_that_changes),
        cmocka_unit_test(small_filters_keep_the_rate),
        cmocka_unit_test(packets_keep_the_rate),
        cmocka_unit_test(low_rates_take_what_the_rule_gives),
        cmocka_unit_test(tail_bits_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
