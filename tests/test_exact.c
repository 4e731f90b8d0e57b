/*
 * test_exact.c - what is peculiar to the kind exact
 *
 * Right for every key of the universe, at any share of members; the size
 * against the entropy; repeats, members that the others name too, orders and
 * threads; keys outside, at the stated rate; and calls in the wrong order. What
 * it shares with every kind is in test_laws.c, and its ribbons in
 * test_ribbon.c.
 */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/bits.h"
#include "host/host.h"

#define BATCH 4096

typedef struct universe {
    uint64_t members, others;
    uint64_t salt;
    double fpr;        /* for keys outside; 0.5: whatever takes least */
    unsigned nthreads; /* that finish it */
    bool backwards;    /* members and others in another order */
} universe;

static uint64_t key_of(const universe *u, uint64_t i)
{
    return bly_mix64(u->salt << 40 ^ i);
}

/* Hashes of n <= BATCH keys from the i-th on. */
static void keys_of(const universe *u, uint64_t i, size_t n, uint64_t *out)
{
    for (size_t j = 0; j < n; j++)
        out[j] = key_of(u, i + j);
}

static bly_builder *begun(const universe *u)
{
    char text[32];
    const bly_option option = { "others", text };
    const bly_spec spec = { .kind = "exact",
                            .fpr = u->fpr,
                            .seed = LAW_SEED,
                            .options = &option,
                            .noptions = 1 };
    bly_builder *b;
    snprintf(text, sizeof text, "%llu", (unsigned long long)u->others);
    assert_ok(bly_builder_new(&spec, &b));
    return b;
}

/* Add or deny the keys from `from` to `to`. */
static void feed(bly_builder *b, const universe *u, uint64_t from, uint64_t to,
                 bool deny)
{
    uint64_t h[BATCH];
    for (uint64_t i = from; i < to; i += BATCH) {
        const size_t n = to - i < BATCH ? (size_t)(to - i) : BATCH;
        const uint64_t at = u->backwards ? from + to - i - n : i;
        keys_of(u, at, n, h);
        assert_ok(deny ? bly_builder_deny(b, h, n)
                       : bly_builder_add(b, h, NULL, n));
    }
}

/* Of a universe whose first keys are the members, all of which is denied: the
 * members stay. */
static bly_filter *exact_of(const universe *u)
{
    bly_builder *const b = begun(u);
    bly_filter *f;
    feed(b, u, 0, u->members, false);
    feed(b, u, 0, u->members + u->others, true);
    assert_ok(bly_builder_finish(b, u->nthreads ? u->nthreads : 1, &f));
    bly_builder_free(b);
    return f;
}

/* How many of the keys from `from` to `to` are answered with "maybe". */
static uint64_t maybes(const bly_filter *f, const universe *u, uint64_t from,
                       uint64_t to)
{
    uint64_t h[BATCH], maybe[BLY_BITMAP_WORDS(BATCH)], sum = 0;
    for (uint64_t i = from; i < to; i += BATCH) {
        const size_t n = to - i < BATCH ? (size_t)(to - i) : BATCH;
        keys_of(u, i, n, h);
        bly_has_hashes(f, h, n, maybe);
        for (size_t j = 0; j < n; j++) {
            const bool in = maybe[j / 64] >> j % 64 & 1;
            sum += in;
            if (j < 3) /* one by one it is the same */
                assert_int_equal(bly_has_hash(f, h[j]), in);
        }
    }
    return sum;
}

static double entropy(double r, double s)
{
    return r * log2(1 + s / r) + s * log2(1 + r / s);
}

static void never_wrong_in_the_universe(void **state)
{
    (void)state;
    static const uint64_t sizes[][2] = {
        { 1, 1 },          { 1, 1000 },         { 3, 100000 },
        { 64, 1 },         { 100, 100 },        { 1000, 10 },
        { 1000, 100000 },  { 25000, 30000 },    { 30000, 10000 },
        { 70000, 700000 }, { 200000, 1000000 },
    };
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        const universe u = {
            .members = sizes[i][0], .others = sizes[i][1], .salt = i, .fpr = 0.5
        };
        bly_filter *f = exact_of(&u);
        assert_int_equal(maybes(f, &u, 0, u.members), u.members);
        assert_int_equal(maybes(f, &u, u.members, u.members + u.others), 0);
        bly_free(f);
    }
}

/* 1.07 from a million members on; the ribbons' last blocks show in small ones.
 * The plan is what becomes of it. */
static void size_is_near_the_entropy(void **state)
{
    (void)state;
    static const struct {
        double members, others, most;
    } rows[] = {
        { 1e5, 1.125e7, 1.075 }, { 1e6, 1.125e8, 1.071 }, { 8e6, 9e8, 1.07 },
        { 1e6, 1e6, 1.03 },      { 1e6, 1e9, 1.07 },      { 1e9, 1e11, 1.07 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char text[32];
        const bly_option option = { "others", text };
        const bly_spec spec = { .kind = "exact",
                                .items = (uint64_t)rows[i].members,
                                .fpr = 0.5,
                                .options = &option,
                                .noptions = 1 };
        bly_prediction p;
        snprintf(text, sizeof text, "%.0f", rows[i].others);
        assert_ok(bly_plan(&spec, &p));
        assert_between((double)p.bits, entropy(rows[i].members, rows[i].others),
                       rows[i].most * entropy(rows[i].members, rows[i].others));
    }
    const universe u = { .members = 50000, .others = 5000000, .fpr = 0.5 };
    bly_filter *f = exact_of(&u);
    bly_stats stats;
    bly_stat(f, &stats);
    assert_between((double)stats.bits, 1, 1.08 * entropy(5e4, 5e6));
    assert_int_equal(stats.items_estimate, 50000);
    bly_free(f);
}

/* Keys outside: at the stated rate, and at a lower one that was asked for. */
static void outsiders_have_the_stated_rate(void **state)
{
    (void)state;
    static const double rates[] = { 0.5, 0.01, 0.001 };
    for (size_t i = 0; i < COUNT_OF(rates); i++) {
        const universe u = { 20000, 200000, 7 + i, rates[i], 1, false };
        bly_filter *f = exact_of(&u);
        bly_stats stats;
        enum { ASKED = 1000000 };
        bly_stat(f, &stats);
        assert_true(stats.fpr_now <= rates[i]);
        assert_near(stats.fpr_now, stats.fpr_at_capacity, 1e-9);
        const double expected = stats.fpr_now * ASKED;
        const double got = (double)maybes(f, &u, UINT64_C(1) << 32,
                                          (UINT64_C(1) << 32) + ASKED);
        assert_between(got, expected - 5 * sqrt(expected),
                       expected + 5 * sqrt(expected));
        bly_free(f);
    }
}

/* The same bytes in any order, with any number of threads, with repeats. */
static void order_and_threads_do_not_matter(void **state)
{
    (void)state;
    universe u = { .members = 40000, .others = 300000, .fpr = 0.5 };
    bly_filter *f = exact_of(&u);
    u.backwards = true;
    u.nthreads = 4;
    bly_filter *g = exact_of(&u);
    bly_builder *const b = begun(&u);
    bly_filter *twice;
    feed(b, &u, 0, u.members, false);
    feed(b, &u, 0, u.members / 2, false);
    feed(b, &u, u.members, u.members + u.others, true);
    feed(b, &u, u.members + 10, u.members + u.others, true);
    assert_ok(bly_builder_finish(b, 2, &twice));
    bly_builder_free(b);
    assert_true(bly_equal(bly_layer(f, 0), bly_layer(g, 0)));
    assert_true(bly_equal(bly_layer(f, 1), bly_layer(g, 1)));
    assert_true(bly_equal(bly_layer(f, 0), bly_layer(twice, 0)));
    assert_true(bly_equal(bly_layer(f, 1), bly_layer(twice, 1)));
    bly_free(f);
    bly_free(g);
    bly_free(twice);
}

/* Without others it is a ribbon; without members it says no to everything;
 * others that nobody announced are told apart all the same. */
static void few_of_either(void **state)
{
    (void)state;
    universe u = { .members = 5000, .others = 0, .fpr = 0.01 };
    bly_filter *f = exact_of(&u);
    assert_null(bly_layer(f, 1));
    assert_int_equal(maybes(f, &u, 0, 5000), 5000);
    bly_free(f);

    u = (universe){ .members = 0, .others = 1000, .fpr = 0.5 };
    f = exact_of(&u);
    assert_int_equal(maybes(f, &u, 0, 100000), 0);
    bly_free(f);

    u = (universe){ .members = 5000, .others = 0, .fpr = 0.01 };
    bly_builder *const b = begun(&u);
    feed(b, &u, 0, 5000, false);
    feed(b, &u, 5000, 100000, true);
    assert_ok(bly_builder_finish(b, 1, &f));
    bly_builder_free(b);
    assert_int_equal(maybes(f, &u, 0, 100000), 5000);
    bly_free(f);
}

/* Through a file, mapped too, nothing changes. */
static void survives_its_file(void **state)
{
    (void)state;
    const universe u = { .members = 30000, .others = 300000, .fpr = 0.5 };
    bly_filter *f = exact_of(&u), *g;
    byte_array a = written(f);
    assert_ok(bly_load(a.at, a.n, NULL, &g));
    assert_true(bly_equal(f, g));
    assert_int_equal(maybes(g, &u, 0, 330000), 30000);
    free(a.at);
    bly_free(f);
    bly_free(g);
}

static void wrong_calls(void **state)
{
    (void)state;
    const universe u = { .members = 100, .others = 100, .fpr = 0.5 };
    const bly_spec plain = { .kind = "fuse", .fpr = 0.01 };
    const uint64_t h = 1;
    bly_filter *f;
    bly_builder *b = begun(&u);
    assert_status(bly_builder_deny(NULL, &h, 1), BLY_EINVAL);
    assert_status(bly_builder_deny(b, NULL, 1), BLY_EINVAL);
    feed(b, &u, 0, 100, false);
    assert_ok(bly_builder_deny(b, NULL, 0));
    assert_status(bly_builder_add(b, &h, NULL, 1), BLY_EINVAL);
    assert_ok(bly_builder_finish(b, 1, &f));
    assert_status(bly_builder_deny(b, &h, 1), BLY_EINVAL);
    bly_free(f);
    bly_builder_free(b);

    assert_ok(bly_builder_new(&plain, &b));
    assert_status(bly_builder_deny(b, &h, 1), BLY_ENOTSUP);
    assert_non_null(strstr(bly_error(), "exact"));
    bly_builder_free(b);

    /* A member and another key that 63 bits do not tell apart. */
    const uint64_t twins[2] = { UINT64_C(0x123456789abcdef0),
                                UINT64_C(0x123456789abcdef1) };
    const universe half = { .members = 1, .others = 1, .fpr = 0.5 };
    b = begun(&half);
    assert_ok(bly_builder_add(b, &twins[0], NULL, 1));
    assert_ok(bly_builder_deny(b, &twins[1], 1));
    assert_status(bly_builder_finish(b, 1, &f), BLY_EINVAL);
    assert_null(f);
    bly_builder_free(b);
}

/* Of all that is asked, the members and no others, before and after some are
 * denied; with a first table and without. */
static void members_are_told(void **state)
{
    (void)state;
    static const universe rows[] = {
        { .members = 1000, .others = 30000, .fpr = 0.5 },
        { .members = 1000, .others = 1000, .fpr = 0.5 },
    };
    for (size_t r = 0; r < COUNT_OF(rows); r++) {
        const universe *const u = &rows[r];
        bly_builder *const b = begun(u);
        uint64_t h[2000], in[BLY_BITMAP_WORDS(2000)];
        bly_filter *f;
        feed(b, u, 0, u->members, false);
        for (int round = 0; round < 2; round++) {
            keys_of(u, 0, 2000, h);
            memset(in, 0xff, sizeof in);
            assert_ok(bly_builder_members(b, h, 2000, in));
            for (size_t i = 0; i < 2000; i++)
                assert_int_equal(in[i / 64] >> i % 64 & 1, i < u->members);
            feed(b, u, u->members, u->members + u->others, true);
        }
        assert_ok(bly_builder_members(b, NULL, 0, NULL));
        assert_ok(bly_builder_finish(b, 1, &f));
        assert_status(bly_builder_members(b, h, 1, in), BLY_EINVAL);
        bly_free(f);
        bly_builder_free(b);
    }
}

/* ------------------------------------------------------------------ groups */

/* Groups of different sizes, of whose keys different shares are members: key i
 * of group g is one if i < members. */
static const struct {
    uint64_t members, others;
} shares[] = {
    { 0, 60000 },   { 30000, 30000 }, { 50, 80000 }, { 9000, 0 },
    { 600, 60000 }, { 3, 7 },         { 1, 0 },      { 0, 1 },
};

#define NSHARES COUNT_OF(shares)

static size_t grouped_key(unsigned group, uint64_t i, char *out)
{
    return (size_t)sprintf(out, "group %u\t%llx", group, (unsigned long long)i);
}

/* Add or deny keys of a group. */
static void feed_group(bly_builder *b, unsigned group, uint64_t from,
                       uint64_t to, bool deny)
{
    uint64_t h[512];
    size_t n = 0;
    for (uint64_t i = from; i < to; i++) {
        char key[64];
        h[n++] =
            bly_hash(bly_builder_hasher(b), key, grouped_key(group, i, key));
        if (n == COUNT_OF(h) || i + 1 == to) {
            assert_ok(deny ? bly_builder_deny(b, h, n)
                           : bly_builder_add(b, h, NULL, n));
            n = 0;
        }
    }
}

/* The filter; told: how many of the groups the builder is told of, and with
 * `wrong` the numbers are those of another. */
static bly_filter *grouped_of(size_t told, bool wrong, double fpr)
{
    bly_group groups[NSHARES];
    char names[NSHARES][16];
    const bly_spec spec = { .kind = "exact", .fpr = fpr };
    bly_builder *b;
    bly_filter *f;
    for (size_t i = 0; i < NSHARES; i++) {
        const size_t of = wrong ? NSHARES - 1 - i : i;
        const size_t len = (size_t)sprintf(names[i], "group %zu", i);
        groups[i] = (bly_group){ { names[i], len },
                                 shares[of].members,
                                 shares[of].others };
    }
    assert_ok(bly_builder_new(&spec, &b));
    assert_ok(bly_builder_groups(b, groups, told));
    for (unsigned g = 0; g < NSHARES; g++)
        feed_group(b, g, 0, shares[g].members, false);
    for (unsigned g = 0; g < NSHARES; g++) /* members are of the universe */
        feed_group(b, g, 0, shares[g].members + shares[g].others, true);
    assert_ok(bly_builder_finish(b, 1, &f));
    bly_builder_free(b);
    return f;
}

static void assert_grouped_right(const bly_filter *f)
{
    for (unsigned g = 0; g < NSHARES; g++)
        for (uint64_t i = 0; i < shares[g].members + shares[g].others; i++) {
            char key[64];
            const size_t len = grouped_key(g, i, key);
            assert_int_equal(bly_has(f, key, len), i < shares[g].members);
        }
}

static void *moved_elsewhere(void *ctx, void *at)
{
    (void)ctx;
    (void)at;
    return NULL;
}

/* Whatever the builder was told; copied, through a file, moved. */
static void groups_are_never_wrong(void **state)
{
    (void)state;
    bly_filter *f = grouped_of(NSHARES, false, 0.5), *g;
    assert_grouped_right(f);
    assert_ok(bly_clone(f, &g));
    bly_free(f);
    g = bly_move(g, moved_elsewhere, NULL);
    assert_grouped_right(g);
    byte_array a = written(g);
    assert_ok(bly_load(a.at, a.n, NULL, &f));
    assert_true(bly_equal(f, g));
    assert_grouped_right(f);
    free(a.at);
    bly_free(f);
    bly_free(g);
    for (size_t told = 1; told <= NSHARES; told += 3) {
        f = grouped_of(told, told > 1, 0.5);
        assert_grouped_right(f);
        bly_free(f);
    }
    f = grouped_of(NSHARES, false, 0.001);
    assert_grouped_right(f);
    bly_free(f);
}

/* The sum of the groups' entropies is what it comes near, not that of all. */
static void groups_take_fewer_bits(void **state)
{
    (void)state;
    bly_filter *const f = grouped_of(NSHARES, false, 0.5);
    double least = 0, r = 0, s = 0;
    bly_stats stats;
    for (size_t i = 0; i < NSHARES; i++) {
        r += (double)shares[i].members;
        s += (double)shares[i].others;
        if (shares[i].members && shares[i].others)
            least +=
                entropy((double)shares[i].members, (double)shares[i].others);
    }
    bly_stat(f, &stats);
    assert_between((double)stats.bits, least, 1.08 * least);
    assert_true((double)stats.bits < 0.6 * entropy(r, s));
    bly_free(f);
}

/* A key from outside passes at the rate of its group, or of the rest, at most;
 * one without a group cannot be answered. */
static void outsiders_of_groups(void **state)
{
    (void)state;
    bly_filter *const f = grouped_of(NSHARES, false, 0.001);
    uint64_t wrong = 0;
    char key[64];
    for (uint64_t i = 0; i < 100000; i++)
        wrong += bly_has(f, key,
                         grouped_key(i % NSHARES, UINT64_C(1) << 40 | i, key));
    assert_true((double)wrong < 100 + 6 * 10);
    wrong = 0;
    for (uint64_t i = 0; i < 100000; i++)
        wrong += bly_has(f, key, grouped_key(99 + (unsigned)i, i, key));
    assert_true((double)wrong < 100 + 6 * 10);
    assert_true(bly_has(f, "no group", 8));
    assert_true(bly_has(f, "", 0));
    assert_true(bly_has(f, "8 bytes!", 8));
    bly_free(f);
}

static void wrong_groups(void **state)
{
    (void)state;
    static const unsigned char secret[16] = { 1 };
    static const bly_spec specs[] = {
        { .kind = "exact", .fpr = 0.5 },
        { .kind = "fuse", .fpr = 0.5 },
        { .kind = "exact", .fpr = 0.5, .secret = secret },
        { .kind = "exact", .bits = 100000 },
    };
    static const bly_status expected[] = { BLY_OK, BLY_ENOTSUP, BLY_EINVAL,
                                           BLY_EINVAL };
    const bly_group one = { { "a", 1 }, 1, 1 }, tab = { { "a\tb", 3 }, 1, 1 };
    const bly_group huge = { { "a", 1 }, UINT64_MAX, 1 };
    bly_builder *b;
    bly_filter *f;
    for (size_t i = 0; i < COUNT_OF(specs); i++) {
        assert_ok(bly_builder_new(&specs[i], &b));
        assert_status(bly_builder_groups(b, &one, 1), expected[i]);
        bly_builder_free(b);
    }
    assert_ok(bly_builder_new(&specs[0], &b));
    assert_status(bly_builder_groups(b, NULL, 1), BLY_EINVAL);
    assert_status(bly_builder_groups(b, &one, 0), BLY_EINVAL);
    assert_status(bly_builder_groups(b, &tab, 1), BLY_EINVAL);
    assert_status(bly_builder_groups(b, &huge, 1), BLY_ERANGE);
    assert_ok(bly_builder_groups(b, &one, 1));
    assert_status(bly_builder_groups(b, &one, 1), BLY_EINVAL); /* once */
    /* A key without a group. */
    const uint64_t none = bly_hash(bly_builder_hasher(b), "none", 4);
    assert_int_equal(none, 0);
    assert_ok(bly_builder_add(b, &none, NULL, 1));
    assert_status(bly_builder_finish(b, 1, &f), BLY_EINVAL);
    assert_non_null(strstr(bly_error(), "group"));
    bly_builder_free(b);
}

/* A table of groups with any bytes: refused, or harmless; never read past. */
static void hostile_groups(void **state)
{
    (void)state;
    bly_filter *f = grouped_of(NSHARES, false, 0.5), *g;
    byte_array a = written(f);
    uint64_t chance = 1;
    const size_t nbytes = 4096; /* the header */
    for (size_t round = 0; round < 4000; round++) {
        const size_t at = round % 4 ? nbytes + test_random(&chance) % 512
                                    : test_random(&chance) % nbytes;
        const unsigned char was = a.at[at];
        a.at[at] ^= (unsigned char)(1u << test_random(&chance) % 8);
        if (!bly_load(a.at, a.n, NULL, &g)) {
            char key[64];
            for (unsigned i = 0; i < 50; i++)
                (void)bly_has(g, key, grouped_key(i % NSHARES, i, key));
            bly_free(g);
        }
        a.at[at] = was;
    }
    /* As in a mapped file, which is asked before it is compared. */
    for (size_t round = 0; round < 4000; round++) {
        char key[64];
        unsigned char *const data =
            (unsigned char *)(uintptr_t)bly_hasher_of(f)->secret[0];
        data[test_random(&chance) % 64] = (unsigned char)test_random(&chance);
        for (unsigned i = 0; i < 8; i++)
            (void)bly_has(f, key, grouped_key(i, round, key));
    }
    free(a.at);
    bly_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_are_never_wrong),
        cmocka_unit_test(groups_take_fewer_bits),
        cmocka_unit_test(outsiders_of_groups),
        cmocka_unit_test(wrong_groups),
        cmocka_unit_test(hostile_groups),
        cmocka_unit_test(never_wrong_in_the_universe),
        cmocka_unit_test(size_is_near_the_entropy),
        cmocka_unit_test(outsiders_have_the_stated_rate),
        cmocka_unit_test(order_and_threads_do_not_matter),
        cmocka_unit_test(few_of_either),
        cmocka_unit_test(survives_its_file),
        cmocka_unit_test(wrong_calls),
        cmocka_unit_test(members_are_told),
    };
    return cmocka_run_group_tests_name("exact", tests, NULL, NULL);
}
