/*
 * test_attenuated.c - what is how far away
 *
 * Networks are made of public calls alone: every node has its own keys, tells
 * each neighbour what it knows from the others, and sends deltas.
 */
#define _GNU_SOURCE
#include "support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bly_spec spec_of(uint64_t items, const bly_option *options, size_t n)
{
    return (bly_spec){ .kind = "attenuated",
                       .items = items,
                       .fpr = 0.01,
                       .seed = LAW_SEED,
                       .options = options,
                       .noptions = n };
}

static bly_filter *holding(const bly_spec *spec, uint64_t first, size_t n)
{
    return filled_from(spec, first, n);
}

/* The distance of a key in f; -1: not there. */
static int distance(const bly_filter *f, uint64_t key)
{
    uint64_t hash, value, present;
    bly_hash_ints(bly_hasher_of(f), &key, 1, &hash);
    assert_ok(bly_get_hashes(f, &hash, 1, &value, &present));
    return present ? (int)value : -1;
}

/* ----------------------------------------------------------------- networks */

#define NODES 50
#define KEYS_EACH 20
#define DEPTH 4

/* What v tells u is tells[v][u], where they are neighbours. */
typedef struct network {
    bool linked[NODES][NODES];
    bly_filter *own[NODES]; /* the keys of a node, at level 0 */
    bly_filter *tells[NODES][NODES];
    bly_spec spec;
} network;

/* A random tree: node i hangs on one before it. */
static void network_open(network *net, const bly_spec *spec, uint64_t seed)
{
    memset(net, 0, sizeof *net);
    net->spec = *spec;
    for (size_t i = 1; i < NODES; i++) {
        const size_t up = test_random(&seed) % i;
        net->linked[i][up] = net->linked[up][i] = true;
    }
    for (uint64_t v = 0; v < NODES; v++) {
        net->own[v] = holding(spec, v * KEYS_EACH, KEYS_EACH);
        for (size_t u = 0; u < NODES; u++)
            if (net->linked[v][u])
                assert_ok(bly_clone(net->own[v], &net->tells[v][u]));
    }
}

static void network_close(network *net)
{
    for (size_t v = 0; v < NODES; v++) {
        bly_free(net->own[v]);
        for (size_t u = 0; u < NODES; u++)
            bly_free(net->tells[v][u]);
    }
}

/* What v would tell u by what it was told. */
static bly_filter *summary(const network *net, size_t v, size_t u)
{
    bly_filter *f;
    assert_ok(bly_clone(net->own[v], &f));
    for (size_t w = 0; w < NODES; w++)
        if (net->linked[v][w] && w != u)
            assert_ok(bly_merge(f, net->tells[w][v]));
    return f;
}

/* Every node tells its neighbours once, all at the same time; how many had
 * something new to tell. What is sent is a delta, and sum counts its bits. */
static size_t round_of_news(network *net, uint64_t *sum)
{
    static bly_filter *next[NODES][NODES];
    size_t nnew = 0;
    for (size_t v = 0; v < NODES; v++)
        for (size_t u = 0; u < NODES; u++)
            next[v][u] = net->linked[v][u] ? summary(net, v, u) : NULL;
    for (size_t v = 0; v < NODES; v++)
        for (size_t u = 0; u < NODES; u++) {
            if (!next[v][u])
                continue;
            bly_filter *const kept = net->tells[v][u];
            if (!bly_equal(kept, next[v][u])) {
                byte_array d = { 0 };
                bly_delta info;
                assert_ok(
                    bly_delta_write(kept, next[v][u], put_bytes, &d, &info));
                assert_ok(bly_delta_apply(kept, d.at, d.n, NULL));
                assert_true(bly_equal(kept, next[v][u]));
                *sum += info.flips;
                nnew++;
                free(d.at);
            }
            bly_free(next[v][u]);
        }
    return nnew;
}

static size_t until_quiet(network *net)
{
    uint64_t bits = 0;
    size_t nrounds = 0;
    while (round_of_news(net, &bits))
        nrounds++;
    return nrounds;
}

/* Hops from v to all others over paths that do not start with u. */
static void hops_from(const network *net, size_t v, size_t u, int hops[NODES])
{
    for (size_t w = 0; w < NODES; w++)
        hops[w] = -1;
    hops[v] = 0;
    for (int d = 0; d < NODES; d++)
        for (size_t w = 0; w < NODES; w++)
            for (size_t x = 0; hops[w] == d && x < NODES; x++)
                if (net->linked[w][x] && hops[x] < 0 && !(w == v && x == u))
                    hops[x] = d + 1;
}

/* Level j of what v tells u is the filter of all keys j hops behind v. */
static void assert_true_levels(const network *net)
{
    for (size_t v = 0; v < NODES; v++)
        for (size_t u = 0; u < NODES; u++) {
            int hops[NODES];
            if (!net->linked[v][u])
                continue;
            hops_from(net, v, u, hops);
            for (uint32_t j = 0; j < DEPTH; j++) {
                bly_filter *want;
                assert_ok(bly_new(&net->spec, &want));
                for (uint64_t w = 0; w < NODES; w++)
                    for (uint64_t i = 0; hops[w] == (int)j && i < KEYS_EACH;
                         i++)
                        assert_ok(bly_add_ints(want,
                                               &(uint64_t){ w * KEYS_EACH + i },
                                               1, NULL, NULL));
                assert_true(bly_equal(bly_layer(net->tells[v][u], j),
                                      bly_layer(want, 0)));
                bly_free(want);
            }
        }
}

static const bly_option networks[][2] = {
    { { "degree", "2" }, { "layer", "classic" } },
    { { "degree", "2" }, { "layer", "blocked" } },
};

static void a_tree_of_nodes(void **unused)
{
    (void)unused;
    network *net = malloc(sizeof *net);
    assert_non_null(net);
    for (size_t i = 0; i < COUNT_OF(networks); i++) {
        const bly_spec spec = spec_of(KEYS_EACH, networks[i], 2);
        network_open(net, &spec, 7 + i);
        /* What is d - 1 hops away has arrived after as many rounds. */
        assert_int_equal(until_quiet(net), DEPTH - 1);
        assert_true_levels(net);
        network_close(net);
    }
    free(net);
}

/* A new key is told for as many hops as there are levels, a hop a round, and
 * each time flips no more bits than a key has. */
static void news_travel_so_far(void **unused)
{
    (void)unused;
    network *net = malloc(sizeof *net);
    assert_non_null(net);
    const bly_spec spec = spec_of(KEYS_EACH, networks[0], 2);
    network_open(net, &spec, 9);
    until_quiet(net);
    bly_stats stats;
    bly_peek(net->own[3], &stats);
    const double k = fact_of(stats.facts, stats.nfacts, "k")->real;
    const uint64_t key = ABSENT;
    assert_ok(bly_add_ints(net->own[3], &key, 1, NULL, NULL));
    for (int hop = 0; hop <= DEPTH; hop++) {
        size_t want = 0;
        uint64_t bits = 0;
        for (size_t v = 0; v < NODES; v++)
            for (size_t u = 0; u < NODES; u++) {
                int hops[NODES];
                if (!net->linked[v][u])
                    continue;
                hops_from(net, v, u, hops);
                want += hop < DEPTH && hops[3] == hop;
            }
        /* Fewer only where all bits of the key were set already. */
        const size_t told = round_of_news(net, &bits);
        assert_true(told <= want && (hop > 0 || told == want));
        assert_true((double)bits <= k * (double)told);
    }
    for (size_t v = 0; v < NODES; v++)
        for (size_t u = 0; u < NODES; u++) {
            int hops[NODES];
            if (!net->linked[v][u])
                continue;
            hops_from(net, v, u, hops);
            const int d = distance(net->tells[v][u], key);
            if (hops[3] >= 0 && hops[3] < DEPTH)
                assert_true(d >= 0 && d <= hops[3]);
        }
    network_close(net);
    free(net);
}

/* Where to go for a key: of what its neighbours tell, the least distance, which
 * is never more than the truth. */
static void the_way_to_a_key(void **unused)
{
    (void)unused;
    network *net = malloc(sizeof *net);
    assert_non_null(net);
    const bly_spec spec = spec_of(KEYS_EACH, networks[0], 2);
    size_t asked = 0, right = 0;
    network_open(net, &spec, 11);
    until_quiet(net);
    for (size_t u = 0; u < NODES; u++) {
        int hops[NODES];
        hops_from(net, u, u, hops);
        for (uint64_t w = 0; w < NODES; w++) {
            int best = DEPTH;
            if (w == u || hops[w] > DEPTH)
                continue;
            for (size_t v = 0; v < NODES; v++)
                if (net->linked[u][v]) {
                    const int d = distance(net->tells[v][u], w * KEYS_EACH);
                    if (d >= 0 && d < best)
                        best = d;
                }
            assert_true(best <= hops[w] - 1);
            asked++;
            right += best == hops[w] - 1;
        }
    }
    assert_true((double)right > 0.95 * (double)asked);
    network_close(net);
    free(net);
}

/* -------------------------------------------------------------- one filter */

static void merging_moves_one_level_away(void **unused)
{
    (void)unused;
    const bly_spec spec = spec_of(1000, NULL, 0);
    bly_filter *f = holding(&spec, 0, 100), *chain = holding(&spec, 300, 100);
    for (int i = 2; i >= 1; i--) { /* 300 -> 200 -> 100 -> here */
        bly_filter *near = holding(&spec, (uint64_t)i * 100, 100);
        assert_ok(bly_merge(near, chain));
        bly_free(chain);
        chain = near;
    }
    assert_ok(bly_merge(f, chain));
    for (int i = 0; i < 4; i++) {
        int right = 0;
        for (uint64_t key = 0; key < 100; key++) {
            const int d = distance(f, (uint64_t)i * 100 + key);
            assert_true(d >= 0 && d <= i);
            right += d == i;
        }
        assert_true(right > 95);
    }
    assert_int_equal(hits(f, 0, 400), 400);
    bly_stats stats;
    bly_stat(f, &stats);
    assert_near(stats.items_estimate, 400, 0.05);
    assert_near((double)stats.items_added, stats.items_estimate, 0.01);
    /* A fifth does not fit: what is furthest away falls off. */
    bly_filter *last = holding(&spec, 400, 100);
    assert_ok(bly_merge(last, f));
    assert_int_equal(hits(last, 0, 300), 300);
    assert_true(hits(last, 300, 100) < 20);
    /* Nearer is what counts; and what is known is not fresh. */
    assert_ok(bly_add_ints(f, &(uint64_t){ 200 }, 1, NULL, NULL));
    assert_int_equal(distance(f, 200), 0);
    uint64_t fresh = 9;
    assert_ok(bly_add_ints(f, &(uint64_t){ 250 }, 1, &fresh, NULL));
    assert_int_equal(fresh, 0);
    assert_int_equal(distance(f, ABSENT), -1);
    bly_free(f);
    bly_free(chain);
    bly_free(last);
}

static void batches_of_distances(void **unused)
{
    (void)unused;
    const bly_spec spec = spec_of(2000, NULL, 0);
    enum { N = 1500 };
    bly_filter *f = holding(&spec, 0, N / 3);
    bly_filter *near = holding(&spec, N / 3, N / 3);
    assert_ok(bly_merge(f, near));
    uint64_t *h = hashes_for(&spec, 0, N), *values = guarded_new(8 * N);
    uint64_t present[BLY_BITMAP_WORDS(N)];
    assert_ok(bly_get_hashes(f, h, N, values, present));
    for (uint64_t i = 0; i < N; i++) {
        const int d = distance(f, i);
        assert_int_equal(present[i / 64] >> i % 64 & 1, d >= 0);
        assert_int_equal(values[i], d >= 0 ? d : 0);
    }
    guarded_free(values, 8 * N);
    free(h);
    bly_free(f);
    bly_free(near);
}

/* What differs is refused, and nothing changes. */
static void neighbours_must_agree(void **unused)
{
    (void)unused;
    static const bly_option depth = { "depth", "5" },
                            layer = { "layer", "blocked" };
    const bly_spec spec = spec_of(1000, NULL, 0);
    bly_spec others[] = { spec_of(1000, &depth, 1), spec_of(1001, NULL, 0),
                          spec_of(1000, &layer, 1), spec, spec };
    others[3].seed++;
    others[4].fpr = 0.02;
    bly_filter *f = holding(&spec, 0, 100);
    byte_array before = written(f);
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        bly_filter *other = holding(&others[i], 0, 100);
        bly_likeness like;
        assert_status(bly_merge(f, other), BLY_EUNFIT);
        assert_status(bly_compare(f, other, &like), BLY_EUNFIT);
        assert_same_bytes(f, &before);
        bly_free(other);
    }
    /* But how it was planned does not matter where the outcome is the same. */
    bly_prediction plan;
    assert_ok(bly_plan(&spec, &plan));
    const bly_option degree = { "degree", "1.5" };
    bly_spec same = {
        .kind = "attenuated", .items = 1000, .bits = plan.bits, .seed = LAW_SEED
    };
    bly_filter *a = holding(&same, 0, 100);
    same.items = 296; /* 296 * 1.5^3 = 999 */
    same.options = &degree;
    same.noptions = 1;
    bly_filter *b = holding(&same, 100, 100);
    assert_ok(bly_merge(a, b));
    assert_int_equal(hits(a, 0, 200), 200);
    free(before.at);
    bly_free(f);
    bly_free(a);
    bly_free(b);
}

/* The rate of a network that is full: 1000 keys a node, three links onwards. */
static void keeps_the_rate_of_all_levels(void **unused)
{
    (void)unused;
    static const bly_option options[] = { { "degree", "3" }, { "depth", "3" } };
    const bly_spec spec = spec_of(1000, options, 2);
    bly_prediction plan;
    assert_ok(bly_plan(&spec, &plan));
    const double bound = fact_of(plan.facts, plan.nfacts, "fpr_bound")->real;
    assert_between(bound, 0.0095, 0.01);
    assert_near(fact_of(plan.facts, plan.nfacts, "deepest_items")->real, 9000,
                1e-9);
    const double rates[] = {
        fact_of(plan.facts, plan.nfacts, "fpr_level_0")->real,
        fact_of(plan.facts, plan.nfacts, "fpr_level_1")->real,
        fact_of(plan.facts, plan.nfacts, "fpr_level_2")->real,
    };
    assert_near(bound, 1 - (1 - rates[0]) * (1 - rates[1]) * (1 - rates[2]),
                1e-9);
    assert_near(plan.fpr, rates[0], 1e-6);

    bly_filter *f = holding(&spec, 0, 1000);
    for (uint64_t i = 0; i < 3; i++) {
        bly_filter *near = holding(&spec, (i + 1) * 10000, 1000);
        for (uint64_t j = 0; j < 3; j++) {
            bly_filter *far =
                holding(&spec, (i + 1) * 10000 + (j + 1) * 1000, 1000);
            assert_ok(bly_merge(near, far));
            bly_free(far);
        }
        assert_ok(bly_merge(f, near));
        bly_free(near);
    }
    const double q = (double)scaled(400000), p = bound;
    const double seen = (double)hits(f, ABSENT, (size_t)q) / q;
    const double sd = sqrt(p * (1 - p) / q + 4 * p * p / 9000);
    assert_between(seen, p - 6 * sd, p + 6 * sd);
    /* And each level says its own. */
    bly_stats stats;
    bly_stat(f, &stats);
    assert_near(stats.fpr_now, seen, 6 * sd / p);
    assert_near(fact_of(stats.facts, stats.nfacts, "fpr_level_2")->real,
                rates[2], 0.1);
    assert_near(stats.items_estimate, 13000, 0.02);
    bly_free(f);
}

static void shapes_that_cannot_be(void **unused)
{
    (void)unused;
    static const bly_option bad[] = {
        { "depth", "1" },     { "depth", "17" },       { "degree", "0.5" },
        { "degree", "1001" }, { "layer", "counting" },
    };
    bly_filter *f;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        const bly_spec spec = spec_of(1000, &bad[i], 1);
        assert_status(bly_new(&spec, &f), BLY_EINVAL);
        assert_null(f);
    }
    static const bly_option vast[] = { { "degree", "1000" },
                                       { "depth", "16" } };
    const bly_spec spec = spec_of(1000, vast, 2);
    assert_status(bly_new(&spec, &f), BLY_ERANGE);
    bly_spec limited = spec_of(100000, NULL, 0);
    limited.max_bytes = 500000;
    assert_status(bly_new(&limited, &f), BLY_ERANGE);
    limited.max_bytes = 1000000;
    assert_ok(bly_new(&limited, &f));
    bly_free(f);
    /* Where a level has some hundred bits, a rate is met by whole ones. */
    static const bly_option small[] = { { "degree", "2" }, { "depth", "3" } };
    const bly_spec twenty = spec_of(20, small, 2);
    assert_ok(bly_new(&twenty, &f));
    bly_free(f);
    const bly_spec few = { .kind = "attenuated", .items = 1, .bits = 3 };
    assert_status(bly_new(&few, &f), BLY_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tree_of_nodes),
        cmocka_unit_test(news_travel_so_far),
        cmocka_unit_test(the_way_to_a_key),
        cmocka_unit_test(merging_moves_one_level_away),
        cmocka_unit_test(batches_of_distances),
        cmocka_unit_test(neighbours_must_agree),
        cmocka_unit_test(keeps_the_rate_of_all_levels),
        cmocka_unit_test(shapes_that_cannot_be),
    };
    return cmocka_run_group_tests_name("attenuated", tests, NULL, NULL);
}
