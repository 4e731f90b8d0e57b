/*
 * test_marks.c - marks in packets, groups of interfaces, and files of networks
 */
#include <stdlib.h>
#include <string.h>

#include "apps/net/graph.h"
#include "apps/net/marks.h"
#include "apps/net/sliced.h"
#include "base/random.h"
#include "support.h"

static const unsigned char secret[BLY_SECRET_BYTES] = "of the network!";

/* What is written into a packet and what is found in it are what the filter of
 * the library would have, for every name and after any other. */
static void marks_are_those_of_the_filter(void **state)
{
    (void)state;
    const bly_option options[] = { { "k0", "2" }, { "k1", "2" } };
    const bly_spec like = { .kind = "generalized",
                            .items = 1,
                            .bits = 256,
                            .secret = secret,
                            .options = options,
                            .noptions = 2 };
    const struct mark_spec spec = {
        .bits = 256, .k = 2, .k0 = 2, .secret = secret
    };
    struct mark_maker *maker;
    bly_filter *f;
    assert_ok(mark_maker_new(&spec, &maker));
    assert_ok(bly_new(&like, &f));
    unsigned char bits[MARK_BYTES];
    memset(bits, 0xff, sizeof bits);
    struct mark marks[50];
    struct marked p;
    for (unsigned i = 0; i < 50; i++) {
        const unsigned char key[] = { 0, (unsigned char)i };
        assert_ok(mark_make(maker, key + 1, 1, &marks[i]));
        if (!i) {
            assert_ok(bly_raw_set(f, bits, sizeof bits));
            marked_get(&marks[0], bits, &p);
        }
        assert_ok(bly_add(f, key, 2));
        mark_add(&marks[i], &p);
        unsigned char packet[MARK_BYTES];
        assert_ok(bly_raw_get(f, bits, sizeof bits));
        marked_put(&marks[i], &p, packet);
        assert_memory_equal(packet, bits, sizeof bits);
        for (unsigned j = 0; j <= i; j++) {
            const unsigned char other[] = { 0, (unsigned char)j };
            assert_int_equal(mark_in(&marks[j], &p), bly_has(f, other, 2));
        }
    }
    bly_free(f);
    mark_maker_free(maker);
}

/* Without the secret nobody has the marks. */
static void marks_are_secret(void **state)
{
    (void)state;
    unsigned char other[BLY_SECRET_BYTES];
    memcpy(other, secret, sizeof other);
    other[3] ^= 1;
    struct mark_spec spec = { .bits = 128, .k = 4, .secret = secret };
    struct mark a, b;
    struct mark_maker *maker;
    assert_ok(mark_maker_new(&spec, &maker));
    assert_ok(mark_make(maker, "eth0", 4, &a));
    mark_maker_free(maker);
    spec.secret = other;
    assert_ok(mark_maker_new(&spec, &maker));
    assert_ok(mark_make(maker, "eth0", 4, &b));
    assert_int_equal(a.nbytes, 16);
    assert_memory_not_equal(a.set, b.set, sizeof a.set);
    unsigned char longer[MARK_NAME + 1] = { 0 };
    assert_status(mark_make(maker, longer, sizeof longer, &b), BLY_EINVAL);
    mark_maker_free(maker);
}

static void marks_that_cannot_be(void **state)
{
    (void)state;
    struct mark_maker *maker;
    const struct mark_spec specs[] = { { .bits = 512, .k = 4 },
                                       { .bits = 0, .k = 4 },
                                       { .bits = 64, .k = 40, .k0 = 40 } };
    for (size_t i = 0; i < COUNT_OF(specs); i++) {
        assert_true(mark_maker_new(&specs[i], &maker) != BLY_OK);
        assert_null(maker);
    }
}

/* All filters side by side are each of them alone, through joins and leaves. */
static void sliced_is_filter_by_filter(void **state)
{
    (void)state;
    enum { GROUPS = 300 };
    static uint8_t joined[GROUPS][SLICED_FACES];
    struct sliced all, alone[4];
    uint64_t random = 5;
    memset(joined, 0, sizeof joined);
    assert_true(sliced_new(&all, 50, 8));
    for (unsigned i = 0; i < 4; i++)
        assert_true(sliced_new(&alone[i], 50, 8));
    for (unsigned turn = 0; turn < 4000; turn++) {
        const uint64_t group = test_random(&random) % GROUPS;
        const uint64_t hash = (group + 1) * RANDOM_STEP;
        const unsigned face = (unsigned)(test_random(&random) % SLICED_FACES);
        uint8_t *const times = &joined[group][face];
        if (*times && turn % 3) {
            assert_true(sliced_leave(&all, hash, face));
            if (face < 4)
                assert_true(sliced_leave(&alone[face], hash, 0));
            --*times;
        } else {
            sliced_join(&all, hash, face);
            if (face < 4)
                sliced_join(&alone[face], hash, 0);
            ++*times;
        }
        const uint64_t faces = sliced_faces(&all, hash);
        for (unsigned i = 0; i < SLICED_FACES; i++)
            assert_true(!joined[group][i] || (faces >> i & 1));
        for (unsigned i = 0; i < 4; i++)
            assert_int_equal(faces >> i & 1, sliced_faces(&alone[i], hash) & 1);
    }
    /* When everybody has left, nothing is there. */
    for (uint64_t group = 0; group < GROUPS; group++)
        for (unsigned face = 0; face < SLICED_FACES; face++)
            while (joined[group][face]) {
                assert_true(
                    sliced_leave(&all, (group + 1) * RANDOM_STEP, face));
                joined[group][face]--;
            }
    for (uint64_t i = 0; i < all.nbits; i++)
        assert_true(all.words[i] == 0);
    assert_false(sliced_leave(&all, 77, 3));
    sliced_free(&all);
    for (unsigned i = 0; i < 4; i++)
        sliced_free(&alone[i]);
    assert_false(sliced_new(&all, UINT64_MAX, 8));
}

static void networks_that_are_made(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        uint32_t nodes, links;
    } made[] = {
        { "ring:10", 10, 10 },
        { "ring:1", 1, 0 },
        { "ring:2", 2, 1 },
        { "line:5", 5, 4 },
        { "grid:3x4", 12, 17 },
        { "tree:4:4", 341, 340 },
        { "random:100:4", 100, 200 },
        { "preferential:50:2", 50, 96 },
        { "geometric:200:8", 200, 0 },
    };
    for (size_t i = 0; i < COUNT_OF(made); i++) {
        struct graph g, again;
        assert_true(graph_load(made[i].what, 7, &g));
        assert_int_equal(g.n, made[i].nodes);
        if (made[i].links)
            assert_int_equal(g.nedges, 2 * made[i].links);
        /* Every link is there in both directions. */
        for (uint32_t at = 0; at < g.n; at++)
            for (uint32_t e = g.first[at]; e < g.first[at + 1]; e++) {
                const uint32_t to = g.edges[e].to;
                uint32_t back = g.first[to];
                while (back < g.first[to + 1] && g.edges[back].to != at)
                    back++;
                assert_true(back < g.first[to + 1] && to != at);
            }
        if (i < 6)
            assert_true(graph_whole(&g));
        assert_true(graph_load(made[i].what, 7, &again));
        assert_int_equal(g.nedges, again.nedges);
        if (g.nedges)
            assert_memory_equal(g.edges, again.edges,
                                g.nedges * sizeof *g.edges);
        graph_free(&g);
        graph_free(&again);
    }
}

static void networks_of_text(void **state)
{
    (void)state;
    static const char text[] = "# three\nnode a 0 1\nedge a b 2.5\n\n"
                               "EDGE b c\nnode c 0.5 0.5";
    struct graph g;
    char why[160];
    uint32_t hops[3], before[3], queue[3];
    assert_true(graph_parse(text, sizeof text - 1, &g, why));
    assert_int_equal(g.n, 3);
    assert_string_equal(g.nodes[1].name, "b");
    assert_int_equal(g.edges[g.first[0]].delay, 2500);
    graph_hops(&g, 0, hops, before, queue);
    assert_int_equal(hops[2], 2);
    assert_int_equal(before[2], 1);
    graph_free(&g);
    static const struct {
        const char *text, *says;
    } wrong[] = {
        { "", "no node" },
        { "edge a", "expected edge" },
        { "edge a b c", "delay" },
        { "edge a b -1", "delay" },
        { "edge a b nan", "delay" },
        { "edge a b 1 2", "expected edge" },
        { "edge a a", "itself" },
        { "edge a b\nlink b c", "line 2: neither" },
        { "node a 2 0", "expected node" },
        { "edge a 12345678901234567890123456789012", "31 bytes" },
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_false(
            graph_parse(wrong[i].text, strlen(wrong[i].text), &g, why));
        assert_non_null(strstr(why, wrong[i].says));
        assert_null(g.nodes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marks_are_those_of_the_filter),
        cmocka_unit_test(marks_are_secret),
        cmocka_unit_test(marks_that_cannot_be),
        cmocka_unit_test(sliced_is_filter_by_filter),
        cmocka_unit_test(networks_that_are_made),
        cmocka_unit_test(networks_of_text),
    };
    return cmocka_run_group_tests_name("marks", tests, NULL, NULL);
}
