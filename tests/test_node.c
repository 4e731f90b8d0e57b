/*
 * test_node.c - a node: keys, links, messages, files
 *
 * What a network of nodes knows is in test_node_network.c.
 */
#define _GNU_SOURCE
#include "tests/support.h"

#include <bloomery/node.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/bytes.h"
#include "tests/sized_laws.h"

static const bly_option depth3 = { "depth", "3" };
static const bly_spec spec = { .items = 100,
                               .fpr = 0.01,
                               .seed = LAW_SEED,
                               .options = &depth3,
                               .noptions = 1 };

static bly_node *node_of(const bly_spec *s, uint64_t life, uint64_t ttl,
                         const char *a, const char *b)
{
    bly_node *v;
    assert_ok(bly_node_new(s, life, ttl, &v));
    if (a)
        assert_ok(bly_node_link(v, a));
    if (b)
        assert_ok(bly_node_link(v, b));
    return v;
}

static void add(bly_node *v, const char *key)
{
    assert_ok(bly_node_add(v, key, strlen(key)));
}

/* Hops to the key, and in *link the way; -1: out of reach. */
static int hops_to(const bly_node *v, const char *key, const char **link)
{
    bly_way way;
    if (!bly_node_find(v, key, strlen(key), &way, 1))
        return -1;
    if (link)
        *link = way.link;
    return (int)way.hops;
}

static byte_array told(bly_node *v, const char *link, bly_news *news)
{
    byte_array to = { 0 };
    assert_ok(bly_node_tell(v, link, put_bytes, &to, news));
    return to;
}

/* What v tells over a link comes to u, whose link it is. */
static bly_news carry(bly_node *v, const char *link, bly_node *u,
                      const char *back, uint64_t now)
{
    bly_news sent, got;
    byte_array to = told(v, link, &sent);
    assert_ok(bly_node_hear(u, back, to.at, to.n, now, &got));
    assert_int_equal(sent.bytes, to.n);
    assert_int_equal(got.bytes, to.n);
    assert_int_equal(got.to, sent.to);
    assert_int_equal(got.from, sent.from);
    assert_int_equal(got.asks, sent.asks);
    free(to.at);
    return got;
}

static byte_array node_bytes(const bly_node *v)
{
    byte_array to = { 0 };
    assert_ok(bly_node_write(v, put_bytes, &to));
    return to;
}

static void assert_unchanged(const bly_node *v, const byte_array *want)
{
    byte_array is = node_bytes(v);
    assert_int_equal(is.n, want->n);
    assert_memory_equal(is.at, want->at, is.n);
    free(is.at);
}

static bly_link link_of(const bly_node *v, size_t i)
{
    bly_link e;
    assert_true(bly_node_link_at(v, i, &e));
    return e;
}

/* ---------------------------------------------------------- keys and links */

static void keys_of_its_own(void **unused)
{
    (void)unused;
    bly_node *v = node_of(&spec, 1, 0, NULL, NULL);
    assert_int_equal(hops_to(v, "key", NULL), -1);
    add(v, "key");
    add(v, "key");
    bly_node_stats stats;
    bly_node_stat(v, &stats);
    assert_int_equal(stats.keys, 2);
    assert_int_equal(hops_to(v, "key", NULL), 0);
    assert_ok(bly_node_remove(v, "key", 3));
    assert_int_equal(hops_to(v, "key", NULL), 0);
    assert_ok(bly_node_remove(v, "key", 3));
    assert_int_equal(hops_to(v, "key", NULL), -1);
    assert_status(bly_node_remove(v, "key", 3), BLY_EABSENT);
    const uint64_t h[] = { bly_hash(bly_node_hasher(v), "a", 1),
                           bly_hash(bly_node_hasher(v), "b", 1) };
    bly_status each[2];
    assert_ok(bly_node_add_hashes(v, h, 1));
    assert_status(bly_node_remove_hashes(v, h, 2, each), BLY_EABSENT);
    assert_int_equal(each[0], BLY_OK);
    assert_int_equal(each[1], BLY_EABSENT);
    bly_node_stat(v, &stats);
    assert_int_equal(stats.keys, 0);
    assert_int_equal(stats.depth, 3);
    assert_true(stats.fpr == 0);
    bly_node_free(v);
    bly_node_free(NULL);
}

static void links_by_name(void **unused)
{
    (void)unused;
    char longest[BLY_LINK_NAME_MOST + 2];
    memset(longest, 'x', sizeof longest);
    longest[BLY_LINK_NAME_MOST + 1] = '\0';
    static const char *const bad[] = { "", "two\nlines", "\xff", "a\tb" };
    bly_node *v = node_of(&spec, 1, 0, "west", "east");
    bly_link e;
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_status(bly_node_link(v, bad[i]), BLY_EINVAL);
    assert_status(bly_node_link(v, longest), BLY_EINVAL);
    longest[BLY_LINK_NAME_MOST] = '\0';
    assert_ok(bly_node_link(v, longest));
    assert_ok(bly_node_link(v, "n\xc3\xb6rdlich"));
    assert_ok(bly_node_link(v, "eas"));
    assert_status(bly_node_link(v, "east"), BLY_EINVAL);
    assert_non_null(strstr(bly_error(), "east"));
    static const char *const want[] = { "eas", "east", "n\xc3\xb6rdlich",
                                        "west" };
    for (size_t i = 0; i < COUNT_OF(want); i++)
        assert_string_equal(link_of(v, i).name, want[i]);
    assert_string_equal(link_of(v, 4).name, longest);
    assert_false(bly_node_link_at(v, 5, &e));
    assert_status(bly_node_unlink(v, "north"), BLY_EINVAL);
    assert_non_null(strstr(bly_error(), "north"));
    assert_ok(bly_node_unlink(v, "east"));
    assert_string_equal(link_of(v, 1).name, "n\xc3\xb6rdlich");
    assert_status(bly_node_tell(v, "east", put_bytes, NULL, NULL), BLY_EINVAL);
    assert_status(bly_node_hear(v, "east", "", 0, 0, NULL), BLY_EINVAL);
    bly_node_free(v);
}

static void many_links(void **unused)
{
    (void)unused;
    bly_node *v = node_of(&spec, 1, 0, NULL, NULL);
    char name[16];
    for (int i = 0; i < BLY_LINKS_MOST; i++) {
        snprintf(name, sizeof name, "%05d", (i * 7919) % BLY_LINKS_MOST);
        assert_ok(bly_node_link(v, name));
    }
    assert_status(bly_node_link(v, "one more"), BLY_EFULL);
    for (int i = 0; i < BLY_LINKS_MOST; i += 1000)
        assert_int_equal(atoi(link_of(v, (size_t)i).name), i);
    bly_node_free(v);
}

static void specs_that_cannot_be(void **unused)
{
    (void)unused;
    static const bly_option blocked = { "layer", "blocked" };
    bly_node *v;
    bly_spec s = spec;
    assert_status(bly_node_new(&spec, 0, 0, &v), BLY_EINVAL);
    s.kind = "classic";
    s.noptions = 0;
    assert_status(bly_node_new(&s, 1, 0, &v), BLY_EINVAL);
    assert_non_null(strstr(bly_error(), "attenuated"));
    s = spec;
    s.shared = true;
    assert_status(bly_node_new(&s, 1, 0, &v), BLY_EINVAL);
    s = spec;
    s.options = &blocked;
    assert_status(bly_node_new(&s, 1, 0, &v), BLY_EINVAL);
    assert_null(v);
    s = spec;
    s.kind = "attenuated";
    assert_ok(bly_node_new(&s, UINT64_MAX, UINT64_MAX, &v));
    bly_node_free(v);
}

/* ------------------------------------------------------------------ asking */

/* a - b - c - d, and a shortcut from a to c that is told of first. */
static void the_nearest_way(void **unused)
{
    (void)unused;
    bly_node *a = node_of(&spec, 1, 0, "b", "c"),
             *b = node_of(&spec, 1, 0, "a", "c"),
             *c = node_of(&spec, 1, 0, "b", "d"),
             *d = node_of(&spec, 1, 0, "c", NULL);
    const char *link;
    add(d, "of d");
    add(c, "of c");
    add(b, "of b");
    add(a, "of a");
    carry(d, "c", c, "d", 1);
    carry(c, "b", b, "c", 1);
    carry(b, "a", a, "b", 1);
    assert_int_equal(hops_to(a, "of a", &link), 0);
    assert_null(link);
    assert_int_equal(hops_to(a, "of b", NULL), 1);
    assert_int_equal(hops_to(a, "of c", NULL), 2);
    assert_int_equal(hops_to(a, "of d", &link), 3);
    assert_string_equal(link, "b");
    assert_int_equal(hops_to(a, "of nobody", NULL), -1);
    /* Now c also tells a: two ways, the shorter first. */
    assert_ok(bly_node_link(c, "a"));
    carry(c, "a", a, "c", 1);
    bly_way ways[4];
    assert_int_equal(bly_node_find(a, "of d", 4, ways, 4), 2);
    assert_string_equal(ways[0].link, "c");
    assert_int_equal(ways[0].hops, 2);
    assert_string_equal(ways[1].link, "b");
    assert_int_equal(ways[1].hops, 3);
    assert_true(ways[0].weight > ways[1].weight);
    assert_near(ways[0].weight, 0.5, 0.01);
    assert_near(ways[1].weight, 0.25, 0.01);
    /* Fewer places than ways: the best, and how many there are. */
    assert_int_equal(bly_node_find(a, "of d", 4, ways, 1), 2);
    assert_string_equal(ways[0].link, "c");
    assert_int_equal(bly_node_find(a, "of d", 4, NULL, 0), 2);
    /* The same for many. */
    const bly_bytes keys[] = { { "of a", 4 },
                               { "of b", 4 },
                               { "of c", 4 },
                               { "of d", 4 },
                               { "nobody", 6 } };
    static const uint32_t want_hops[] = { 0, 1, 1, 2, BLY_OUT_OF_REACH },
                          want_links[] = { UINT32_MAX, 0, 1, 1, UINT32_MAX };
    uint64_t h[5];
    uint32_t hops[5], links[5];
    bly_hash_keys(bly_node_hasher(a), keys, 5, h);
    assert_ok(bly_node_distances(a, h, 5, hops, links));
    assert_memory_equal(hops, want_hops, sizeof hops);
    assert_memory_equal(links, want_links, sizeof links);
    assert_ok(bly_node_distances(a, h, 5, hops, NULL));
    assert_memory_equal(hops, want_hops, sizeof hops);
    assert_ok(bly_node_distances(a, NULL, 0, NULL, NULL));
    /* What comes from b is not told to b. */
    assert_ok(bly_node_unlink(a, "c"));
    carry(a, "b", b, "a", 1);
    const bly_filter *f = link_of(b, 0).f;
    assert_true(bly_has(bly_layer(f, 0), "of a", 4));
    for (uint32_t j = 0; j < 3; j++)
        assert_false(bly_has(bly_layer(f, j), "of d", 4));
    bly_node_free(a);
    bly_node_free(b);
    bly_node_free(c);
    bly_node_free(d);
}

/* More keys than a group, every answer as bly_node_find_hash() gives it. */
static void batches_agree(void **unused)
{
    (void)unused;
    enum { N = 1300 };
    const bly_spec s = { .items = N, .seed = LAW_SEED };
    bly_node *v = node_of(&s, 1, 0, "x", "y"), *x = node_of(&s, 1, 0, "v", "z"),
             *y = node_of(&s, 1, 0, "v", NULL);
    uint64_t *h = hashes_for(&s, 0, N);
    uint32_t *hops = guarded_new(4 * N), *links = guarded_new(4 * N);
    assert_ok(bly_node_add_hashes(v, h, N / 4));
    assert_ok(bly_node_add_hashes(x, h + N / 5, N / 4));
    assert_ok(bly_node_add_hashes(y, h + N / 3, N / 4));
    carry(x, "v", v, "x", 1);
    carry(y, "v", v, "y", 1);
    assert_ok(bly_node_distances(v, h, N, hops, links));
    for (size_t i = 0; i < N; i++) {
        bly_way way = { .index = UINT32_MAX, .hops = BLY_OUT_OF_REACH };
        bly_node_find_hash(v, h[i], &way, 1);
        assert_int_equal(hops[i], way.hops);
        if (way.index == UINT32_MAX)
            assert_int_equal(links[i], UINT32_MAX);
    }
    guarded_free(hops, 4 * N);
    guarded_free(links, 4 * N);
    free(h);
    bly_node_free(v);
    bly_node_free(x);
    bly_node_free(y);
}

/* ---------------------------------------------------------------- messages */

static void only_changes_are_told(void **unused)
{
    (void)unused;
    bly_node *v = node_of(&spec, 1, 0, "u", NULL),
             *u = node_of(&spec, 1, 0, "v", NULL);
    for (int i = 0; i < 100; i++)
        add(v, (char[]){ (char)('0' + i / 10), (char)('0' + i % 10), 0 });
    bly_news news = carry(v, "u", u, "v", 1);
    assert_true(news.whole && news.changes && !news.from && news.to == 1);
    const uint64_t all = news.bytes;
    assert_true(all < bly_node_news_most(v));
    /* Still here. */
    news = carry(v, "u", u, "v", 2);
    assert_true(!news.whole && !news.changes && !news.flips && news.to == 1);
    assert_true(news.bytes < 64);
    assert_int_equal(link_of(u, 0).heard_at, 2);
    /* A key: no more bits than a key has, and far fewer bytes. */
    bly_node_stats stats;
    bly_node_stat(v, &stats);
    add(v, "one more");
    news = carry(v, "u", u, "v", 3);
    assert_true(!news.whole && news.changes && news.from == 1 && news.to == 2);
    assert_true(news.flips > 0 && news.flips <= stats.k);
    assert_true(news.bytes < all / 2 && news.bytes < 48 + 3 * stats.k);
    assert_int_equal(hops_to(u, "one more", NULL), 1);
    /* It goes the same way. */
    assert_ok(bly_node_remove(v, "one more", 8));
    assert_int_equal(carry(v, "u", u, "v", 4).flips, news.flips);
    assert_int_equal(hops_to(u, "one more", NULL), -1);
    /* Added and removed between two messages: nothing to tell. */
    add(v, "gone at once");
    assert_ok(bly_node_remove(v, "gone at once", 12));
    assert_false(carry(v, "u", u, "v", 5).changes);
    /* What u has told does not come back. */
    add(u, "of u");
    carry(u, "v", v, "u", 5);
    assert_false(carry(v, "u", u, "v", 6).changes);
    bly_node_free(v);
    bly_node_free(u);
}

static bool put_nothing(void *ctx, const void *bytes, size_t nbytes)
{
    (void)ctx;
    (void)bytes;
    (void)nbytes;
    return false;
}

/* A message that could not be sent is told again, whether it arrived or not. */
static void what_is_not_sent(void **unused)
{
    (void)unused;
    bly_node *v = node_of(&spec, 1, 0, "u", NULL),
             *u = node_of(&spec, 1, 0, "v", NULL);
    bly_news news;
    add(v, "first");
    assert_status(bly_node_tell(v, "u", put_nothing, NULL, NULL), BLY_EIO);
    assert_true(carry(v, "u", u, "v", 1).whole);
    assert_int_equal(hops_to(u, "first", NULL), 1);
    add(v, "second");
    assert_status(bly_node_tell(v, "u", put_nothing, NULL, NULL), BLY_EIO);
    add(v, "third");
    news = carry(v, "u", u, "v", 1);
    assert_true(!news.whole && news.fate == BLY_NEWS_TAKEN);
    assert_int_equal(hops_to(u, "second", NULL), 1);
    assert_int_equal(hops_to(u, "third", NULL), 1);
    bly_node_free(v);
    bly_node_free(u);
}

static bly_news hear(bly_node *v, const char *link, const byte_array *m)
{
    bly_news news;
    assert_ok(bly_node_hear(v, link, m->at, m->n, 1, &news));
    return news;
}

static void lost_late_and_repeated(void **unused)
{
    (void)unused;
    bly_node *v = node_of(&spec, 5, 0, "u", NULL),
             *u = node_of(&spec, 9, 0, "v", NULL);
    byte_array m[5];
    static const char *const keys[] = { "0", "1", "2", "3" };
    for (int i = 0; i < 4; i++) {
        add(v, keys[i]);
        m[i] = told(v, "u", NULL);
    }
    m[4] = told(v, "u", NULL); /* still here */
    /* A difference before anything: a gap, and what is known stays. */
    assert_int_equal(hear(u, "v", &m[1]).fate, BLY_NEWS_GAP);
    assert_true(link_of(u, 0).lost && !link_of(u, 0).heard);
    assert_int_equal(hear(u, "v", &m[0]).fate, BLY_NEWS_TAKEN);
    assert_false(link_of(u, 0).lost);
    assert_int_equal(hear(u, "v", &m[0]).fate, BLY_NEWS_OLD);
    assert_int_equal(hear(u, "v", &m[1]).fate, BLY_NEWS_TAKEN);
    /* The third is lost; the fourth and "still here" notice. */
    for (int i = 3; i < 5; i++) {
        byte_array before = node_bytes(u);
        bly_news news = hear(u, "v", &m[i]);
        assert_int_equal(news.fate, BLY_NEWS_GAP);
        assert_int_equal(news.flips, 0);
        assert_true(link_of(u, 0).lost);
        assert_int_equal(hops_to(u, "3", NULL), -1);
        if (i == 4)
            assert_unchanged(u, &before);
        free(before.at);
    }
    assert_int_equal(hear(u, "v", &m[1]).fate, BLY_NEWS_OLD);
    /* u asks, and v tells everything; asking again is harmless. */
    bly_news news = carry(u, "v", v, "u", 1);
    assert_true(news.asks && news.changes);
    news = carry(v, "u", u, "v", 1);
    assert_true(news.whole && news.fate == BLY_NEWS_TAKEN);
    assert_false(link_of(u, 0).lost);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(hops_to(u, keys[i], NULL), 1);
        assert_int_equal(hear(u, "v", &m[i]).fate, BLY_NEWS_OLD);
    }
    assert_false(carry(u, "v", v, "u", 1).asks);
    assert_false(carry(v, "u", u, "v", 1).whole);
    for (int i = 0; i < 5; i++)
        free(m[i].at);
    bly_node_free(v);
    bly_node_free(u);
}

/* A link that goes and comes back tells everything, under a new number. */
static void a_link_that_comes_back(void **unused)
{
    (void)unused;
    bly_node *v = node_of(&spec, 5, 0, "u", NULL),
             *u = node_of(&spec, 9, 0, "v", NULL);
    for (int i = 0; i < 3; i++) {
        add(v, (char[]){ (char)('a' + i), 0 });
        carry(v, "u", u, "v", 1);
    }
    assert_ok(bly_node_unlink(v, "u"));
    assert_ok(bly_node_link(v, "u"));
    add(v, "new");
    bly_news news = carry(v, "u", u, "v", 1);
    assert_true(news.whole && news.fate == BLY_NEWS_TAKEN && news.to == 4);
    assert_int_equal(hops_to(u, "new", NULL), 1);
    bly_node_free(v);
    bly_node_free(u);
}

/* Two neighbours that have both lost a message help each other. */
static void both_have_lost_one(void **unused)
{
    (void)unused;
    bly_node *v = node_of(&spec, 5, 0, "u", NULL),
             *u = node_of(&spec, 9, 0, "v", NULL);
    carry(v, "u", u, "v", 1);
    carry(u, "v", v, "u", 1);
    for (int i = 0; i < 2; i++) {
        add(v, i ? "v0" : "v1");
        add(u, i ? "u0" : "u1");
        if (i == 0) { /* both are lost */
            free(told(v, "u", NULL).at);
            free(told(u, "v", NULL).at);
        }
    }
    assert_int_equal(carry(v, "u", u, "v", 1).fate, BLY_NEWS_GAP);
    bly_news news = carry(u, "v", v, "u", 1);
    assert_int_equal(news.fate, BLY_NEWS_GAP);
    assert_true(news.asks);
    news = carry(v, "u", u, "v", 1);
    assert_true(news.whole && news.asks);
    news = carry(u, "v", v, "u", 1);
    assert_true(news.whole && !news.asks);
    assert_int_equal(hops_to(v, "u0", NULL), 1);
    assert_int_equal(hops_to(u, "v1", NULL), 1);
    bly_node_free(v);
    bly_node_free(u);
}

/* A node that starts again, with a larger number, is heard at once. */
static void a_new_life(void **unused)
{
    (void)unused;
    bly_node *v = node_of(&spec, 5, 10, "u", NULL),
             *u = node_of(&spec, 9, 10, "v", NULL);
    add(v, "before");
    carry(v, "u", u, "v", 1);
    add(v, "late");
    byte_array late = told(v, "u", NULL);
    bly_node_free(v);
    v = node_of(&spec, 6, 10, "u", NULL);
    add(v, "after");
    assert_int_equal(carry(v, "u", u, "v", 1).fate, BLY_NEWS_TAKEN);
    assert_int_equal(hops_to(u, "before", NULL), -1);
    assert_int_equal(hops_to(u, "after", NULL), 1);
    assert_int_equal(hear(u, "v", &late).fate, BLY_NEWS_OLD);
    free(late.at);
    /* One whose number is too small is ignored, but only until what u knows
     * has expired. */
    bly_node_free(v);
    v = node_of(&spec, 2, 10, "u", NULL);
    add(v, "smaller");
    assert_int_equal(carry(v, "u", u, "v", 2).fate, BLY_NEWS_OLD);
    assert_ok(bly_node_tick(u, 20, NULL));
    assert_int_equal(carry(v, "u", u, "v", 21).fate, BLY_NEWS_GAP);
    assert_true(carry(u, "v", v, "u", 21).asks);
    assert_true(carry(v, "u", u, "v", 22).whole);
    assert_int_equal(hops_to(u, "smaller", NULL), 1);
    bly_node_free(v);
    bly_node_free(u);
}

static void what_is_silent_expires(void **unused)
{
    (void)unused;
    bly_node *v = node_of(&spec, 1, 60, "u", "w"),
             *u = node_of(&spec, 1, 0, "v", NULL),
             *w = node_of(&spec, 1, 0, "v", NULL);
    size_t n;
    add(u, "of u");
    add(w, "of w");
    carry(u, "v", v, "u", 1000);
    carry(w, "v", v, "w", 1000);
    carry(v, "u", u, "v", 1000);
    assert_int_equal(hops_to(u, "of w", NULL), 2);
    carry(w, "v", v, "w", 1030); /* still here */
    assert_ok(bly_node_tick(v, 1059, &n));
    assert_int_equal(n, 0);
    /* A clock that runs backwards changes nothing. */
    assert_ok(bly_node_tick(v, 5, &n));
    assert_int_equal(n, 0);
    assert_int_equal(hops_to(v, "of u", NULL), 1);
    assert_ok(bly_node_tick(v, 1060, &n));
    assert_int_equal(n, 1);
    assert_int_equal(hops_to(v, "of u", NULL), -1);
    assert_int_equal(hops_to(v, "of w", NULL), 1);
    const bly_link e = link_of(v, 0);
    assert_true(!e.heard && !e.lost && !e.f && !e.version && e.fpr == 0);
    /* What has expired is no longer told; the link works on. */
    assert_ok(bly_node_tick(v, 1090, &n));
    assert_int_equal(n, 1);
    assert_true(carry(v, "u", u, "v", 1).changes);
    assert_int_equal(hops_to(u, "of w", NULL), -1);
    add(u, "more");
    assert_int_equal(carry(u, "v", v, "u", 1091).fate, BLY_NEWS_GAP);
    assert_true(carry(v, "u", u, "v", 1).asks);
    assert_true(carry(u, "v", v, "u", 1092).whole);
    assert_int_equal(hops_to(v, "of u", NULL), 1);
    /* A message with an early time counts from the latest one. */
    carry(w, "v", v, "w", 3);
    assert_ok(bly_node_tick(v, 1092 + 59, &n));
    assert_int_equal(n, 0);
    /* Without a ttl nothing expires. */
    assert_ok(bly_node_tick(u, UINT64_MAX, &n));
    assert_int_equal(n, 0);
    bly_node_free(v);
    bly_node_free(u);
    bly_node_free(w);
}

/* ----------------------------------------------------------------- hostile */

/* The sum at the end of m set right. */
static void sign(const bly_node *v, byte_array *m)
{
    bly_store64(m->at + m->n - 8,
                bly_hash(bly_node_hasher(v), m->at, m->n - 8));
}

static void damaged_messages(void **unused)
{
    (void)unused;
    bly_node *v = node_of(&spec, 1, 0, "u", NULL),
             *u = node_of(&spec, 1, 0, "v", NULL);
    add(v, "one");
    carry(v, "u", u, "v", 1);
    add(v, "two");
    byte_array m = told(v, "u", NULL), before = node_bytes(u);
    for (size_t n = 0; n < m.n; n++) {
        unsigned char *cut = guarded_new(n + 1);
        memcpy(cut + 1, m.at, n);
        assert_status(bly_node_hear(u, "v", cut + 1, n, 1, NULL), BLY_EFORMAT);
        guarded_free(cut, n + 1);
    }
    for (size_t i = 0; i < 8 * m.n; i++) {
        m.at[i / 8] ^= (unsigned char)(1u << i % 8);
        const bly_status st = bly_node_hear(u, "v", m.at, m.n, 99, NULL);
        assert_int_equal(st,
                         i / 8 >= 8 && i / 8 < 16 ? BLY_EUNFIT : BLY_EFORMAT);
        m.at[i / 8] ^= (unsigned char)(1u << i % 8);
    }
    assert_unchanged(u, &before);
    assert_ok(bly_node_hear(u, "v", m.at, m.n, 1, NULL));
    free(m.at);
    free(before.at);
    bly_node_free(v);
    bly_node_free(u);
}

/* A forger who knows the format but lies. Offsets as in docs/format.md. */
static void forged_messages(void **unused)
{
    (void)unused;
    bly_node *u = node_of(&spec, 1, 0, "v", NULL),
             *v = node_of(&spec, 1, 0, "u", NULL);
    bly_node_stats stats;
    bly_node_stat(u, &stats);
    add(v, "one");
    carry(v, "u", u, "v", 1);
    add(v, "two");
    byte_array m = told(v, "u", NULL), before = node_bytes(u);
    static const struct {
        size_t at;
        unsigned char byte;
    } lies[] = {
        { 4, 2 },     /* an unknown flag */
        { 5, 2 },     /* a depth that does not fit */
        { 6, 1 },     /* what is zero */
        { 16, 0 },    /* life 0 */
        { 31, 1 },    /* from behind to */
        { 40, 0xff }, /* flips: a number that is too long */
        { 40, 0x80 }, /* or goes on in a parameter */
        { 41, 64 },   /* a parameter past the last one */
        { 41, 63 },   /* gaps longer than the level */
    };
    for (size_t i = 0; i < COUNT_OF(lies); i++) {
        byte_array lie = { malloc(m.n), m.n, m.n };
        memcpy(lie.at, m.at, m.n);
        lie.at[lies[i].at] = lies[i].byte;
        sign(v, &lie);
        if (bly_node_hear(u, "v", lie.at, lie.n, 1, NULL) != BLY_EFORMAT)
            fail_msg("lie %zu is believed", i);
        free(lie.at);
    }
    /* Bits behind the last one of a level, which has whole words. */
    const uint64_t words = (stats.level_bits + 63) / 64 * 64;
    for (uint64_t bit = stats.level_bits - 1; bit < words + 2; bit++) {
        byte_array lie = { calloc(1, 128), 40, 128 };
        memcpy(lie.at, m.at, 40);
        lie.at[lie.n++] = 1;
        lie.at[lie.n++] = 8; /* bit >> 8 zeros, a one, eight bits */
        const uint64_t code = ((bit & 255) << 1 | 1) << (bit >> 8);
        bly_store64(lie.at + lie.n, code);
        lie.n += ((bit >> 8) + 9 + 7) / 8;
        lie.n += 2 + 8; /* two levels without flips; the sum */
        sign(v, &lie);
        const bly_status st = bly_node_hear(u, "v", lie.at, lie.n, 1, NULL);
        assert_int_equal(st, bit < stats.level_bits ? BLY_OK : BLY_EFORMAT);
        if (!st) { /* undo it, so that the version is as before */
            bly_node_free(u);
            assert_ok(bly_node_load(before.at, before.n, 2, NULL, &u));
        }
        free(lie.at);
    }
    /* "Still here" with flips, and something behind the last level. */
    byte_array still = told(v, "u", NULL);
    still.at[40] = 1;
    sign(v, &still);
    assert_status(bly_node_hear(v, "u", still.at, still.n, 1, NULL), BLY_OK);
    assert_true(link_of(v, 0).lost); /* a gap: not looked into */
    free(still.at);
    byte_array longer = { calloc(1, m.n + 1), m.n + 1, m.n + 1 };
    memcpy(longer.at, m.at, m.n - 8);
    sign(v, &longer);
    assert_status(bly_node_hear(u, "v", longer.at, longer.n, 1, NULL),
                  BLY_EFORMAT);
    free(longer.at);
    /* Longer than any message can be. */
    const size_t most = (size_t)bly_node_news_most(u) + 1;
    longer = (byte_array){ calloc(1, most), most, most };
    memcpy(longer.at, m.at, m.n);
    sign(v, &longer);
    assert_status(bly_node_hear(u, "v", longer.at, longer.n, 1, NULL),
                  BLY_EFORMAT);
    free(longer.at);
    assert_ok(bly_node_hear(u, "v", m.at, m.n, 1, NULL));
    free(m.at);
    free(before.at);
    bly_node_free(v);
    bly_node_free(u);
}

static void nodes_must_agree(void **unused)
{
    (void)unused;
    static const unsigned char secrets[2][BLY_SECRET_BYTES] = { "one", "two" };
    static const bly_option depth4 = { "depth", "4" };
    bly_spec others[] = { spec, spec, spec, spec, spec };
    others[0].items++;
    others[1].seed++;
    others[2].fpr = 0.02;
    others[3].options = &depth4;
    others[4].seed = 0;
    others[4].secret = secrets[0];
    bly_node *v = node_of(&spec, 1, 0, "u", NULL);
    byte_array before = node_bytes(v);
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        bly_node *u = node_of(&others[i], 1, 0, "v", NULL);
        byte_array m = told(u, "v", NULL);
        assert_status(bly_node_hear(v, "u", m.at, m.n, 1, NULL), BLY_EUNFIT);
        free(m.at);
        bly_node_free(u);
    }
    assert_unchanged(v, &before);
    free(before.at);
    bly_node_free(v);
    /* With a secret: between those who share it, and no others. */
    bly_spec keyed = others[4];
    v = node_of(&keyed, 1, 0, "u", NULL);
    bly_node *u = node_of(&keyed, 1, 0, "v", NULL);
    add(u, "key");
    carry(u, "v", v, "u", 1);
    assert_int_equal(hops_to(v, "key", NULL), 1);
    byte_array m = told(u, "v", NULL);
    bly_hasher open = { .id = BLY_HASH_XXH3 };
    bly_store64(m.at + m.n - 8, bly_hash(&open, m.at, m.n - 8));
    assert_status(bly_node_hear(v, "u", m.at, m.n, 1, NULL), BLY_EFORMAT);
    free(m.at);
    bly_node_free(u);
    keyed.secret = secrets[1];
    u = node_of(&keyed, 1, 0, "v", NULL);
    m = told(u, "v", NULL);
    assert_status(bly_node_hear(v, "u", m.at, m.n, 1, NULL), BLY_EUNFIT);
    free(m.at);
    bly_node_free(u);
    bly_node_free(v);
}

/* ------------------------------------------------------------------- files */

/* A node with something of everything: links heard, lost, and neither. */
static bly_node *full_node(const bly_spec *s)
{
    bly_node *v = node_of(s, 5, 60, "heard", "lost"),
             *u = node_of(s, 7, 0, "v", "w");
    assert_ok(bly_node_link(v, "silent"));
    add(v, "here");
    add(u, "there");
    carry(u, "v", v, "heard", 1000);
    byte_array m = told(u, "w", NULL);
    free(m.at);
    add(u, "more");
    m = told(u, "w", NULL);
    assert_int_equal(hear(v, "lost", &m).fate, BLY_NEWS_GAP);
    free(m.at);
    bly_node_free(u);
    return v;
}

static void saved_and_loaded(void **unused)
{
    (void)unused;
    char path[64];
    snprintf(path, sizeof path, "/tmp/bly-node-%ld", (long)getpid());
    bly_node *v = full_node(&spec), *again;
    assert_ok(bly_node_save(v, path));
    assert_status(bly_node_open(path, 5, NULL, &again), BLY_EINVAL);
    assert_non_null(strstr(bly_error(), "larger"));
    assert_ok(bly_node_open(path, 6, NULL, &again));
    assert_int_equal(hops_to(again, "here", NULL), 0);
    assert_int_equal(hops_to(again, "there", NULL), 1);
    bly_link e = link_of(again, 0);
    assert_string_equal(e.name, "heard");
    assert_true(e.heard && !e.lost && e.life == 7 && e.version == 1);
    assert_int_equal(e.heard_at, 1000);
    assert_true(bly_equal(e.f, link_of(v, 0).f));
    assert_near(e.fpr, link_of(v, 0).fpr, 1e-12);
    assert_true(!link_of(again, 1).heard && link_of(again, 1).lost);
    assert_true(!link_of(again, 2).heard && !link_of(again, 2).lost);
    bly_node_stats stats;
    bly_node_stat(again, &stats);
    assert_true(stats.life == 6 && stats.ttl == 60 && stats.now == 1000 &&
                stats.keys == 1 && stats.links == 3 && stats.heard == 1 &&
                stats.lost == 1);
    /* Everything is told anew; what was heard goes on and expires. */
    byte_array m = told(again, "heard", NULL);
    assert_int_equal(bly_load64(m.at + 24), 0);
    free(m.at);
    size_t n;
    assert_ok(bly_node_remove(again, "here", 4));
    assert_ok(bly_node_tick(again, 1060, &n));
    assert_int_equal(n, 1);
    /* A file that is none, and none at all. */
    bly_node_free(again);
    bly_filter *f;
    assert_status(bly_open(path, NULL, &f), BLY_EFORMAT);
    assert_non_null(strstr(bly_error(), "a node of a network"));
    f = filled_from(&(bly_spec){ .items = 9 }, 0, 9);
    assert_ok(bly_save(f, path));
    assert_status(bly_node_open(path, 6, NULL, &again), BLY_EFORMAT);
    assert_non_null(strstr(bly_error(), path));
    assert_null(again);
    /* One that does not end is not read to its end. */
    assert_status(bly_node_open("/dev/zero", 6, NULL, &again), BLY_EFORMAT);
    /* One of several hundred KB. */
    enum { MANY = 100000 };
    const bly_spec large = { .items = MANY };
    uint64_t *const h = hashes_for(&large, 0, MANY);
    bly_node *u = node_of(&large, 1, 0, NULL, NULL);
    assert_ok(bly_node_add_hashes(u, h, MANY));
    assert_ok(bly_node_save(u, path));
    assert_ok(bly_node_open(path, 2, NULL, &again));
    for (size_t i = 0; i < MANY; i += 100)
        assert_int_equal(bly_node_find_hash(again, h[i], NULL, 0), 1);
    bly_node_free(again);
    bly_node_free(u);
    free(h);
    unlink(path);
    assert_status(bly_node_open(path, 6, NULL, &again), BLY_EIO);
    bly_free(f);
    bly_node_free(v);
}

/* A file of tests/golden, which stays as it is for ever. */
static byte_array golden(const char *name)
{
    char path[256];
    byte_array all = { malloc(4096), 0, 4096 };
    const char *const folder = getenv("BLY_GOLDEN");
    snprintf(path, sizeof path, "%s/%s", folder ? folder : "tests/golden",
             name);
    FILE *const in = fopen(path, "rb");
    assert_non_null(in);
    all.n = fread(all.at, 1, all.room, in);
    assert_true(all.n > 0 && all.n < all.room);
    fclose(in);
    return all;
}

/* A node that an earlier version saved, and a message to it: v has "here", u
 * had "near" and now has "new", and "far" is behind u. */
static void what_earlier_versions_wrote(void **unused)
{
    (void)unused;
    byte_array file = golden("node.bln"), m = golden("node.news");
    bly_node *v;
    bly_news news;
    assert_ok(bly_node_load(file.at, file.n, 6, NULL, &v));
    assert_int_equal(hops_to(v, "here", NULL), 0);
    assert_int_equal(hops_to(v, "near", NULL), 1);
    assert_int_equal(hops_to(v, "far", NULL), 2);
    assert_int_equal(hops_to(v, "new", NULL), -1);
    assert_ok(bly_node_hear(v, "u", m.at, m.n, 1001, &news));
    assert_int_equal(news.fate, BLY_NEWS_TAKEN);
    assert_int_equal(hops_to(v, "near", NULL), -1);
    assert_int_equal(hops_to(v, "far", NULL), 2);
    assert_int_equal(hops_to(v, "new", NULL), 1);
    bly_node_free(v);
    /* The same message is made today. */
    bly_spec s = spec;
    s.seed = 7;
    bly_node *u = node_of(&s, 3, 60, "v", "w"), *w = node_of(&s, 4, 60, "u", 0);
    add(u, "near");
    add(w, "far");
    carry(w, "u", u, "w", 1000);
    free(told(u, "v", NULL).at);
    add(u, "new");
    assert_ok(bly_node_remove(u, "near", 4));
    byte_array now = told(u, "v", NULL);
    assert_int_equal(now.n, m.n);
    assert_memory_equal(now.at, m.at, m.n);
    free(now.at);
    free(file.at);
    free(m.at);
    bly_node_free(u);
    bly_node_free(w);
}

static void damaged_nodes(void **unused)
{
    (void)unused;
    bly_node *v = full_node(&spec), *again;
    byte_array all = node_bytes(v);
    for (size_t n = 0; n < all.n; n += n < 64 || n + 600 > all.n ? 1 : 97) {
        assert_status(bly_node_load(all.at, n, 6, NULL, &again), BLY_EFORMAT);
        assert_null(again);
        /* And with its sum right, as far as there is room for one. */
        if (n < 8)
            continue;
        byte_array cut = { malloc(n), n, n };
        memcpy(cut.at, all.at, n);
        bly_store64(
            cut.at + n - 8,
            bly_hash(&(bly_hasher){ .id = BLY_HASH_XXH3 }, cut.at, n - 8));
        assert_status(bly_node_load(cut.at, n, 6, NULL, &again), BLY_EFORMAT);
        free(cut.at);
    }
    for (size_t i = 0; i < all.n; i++) {
        all.at[i] ^= 0x10;
        assert_status(bly_node_load(all.at, all.n, 6, NULL, &again),
                      BLY_EFORMAT);
        all.at[i] ^= 0x10;
    }
    /* The same with the sum right: refused, or a node that writes itself. */
    for (size_t i = 8; i + 8 < all.n; i++) {
        all.at[i] ^= 0x10;
        bly_store64(
            all.at + all.n - 8,
            bly_hash(&(bly_hasher){ .id = BLY_HASH_XXH3 }, all.at, all.n - 8));
        if (!bly_node_load(all.at, all.n, UINT64_MAX, NULL, &again)) {
            byte_array is = node_bytes(again);
            bly_node *third;
            assert_status(bly_node_load(is.at, is.n, UINT64_MAX, NULL, &third),
                          BLY_EINVAL); /* there is no larger number */
            free(is.at);
            bly_node_free(again);
        }
        all.at[i] ^= 0x10;
    }
    free(all.at);
    bly_node_free(v);
}

static void secrets_are_not_written(void **unused)
{
    (void)unused;
    static const unsigned char secret[BLY_SECRET_BYTES] = "not in the file",
                               other[BLY_SECRET_BYTES] = "another";
    bly_spec keyed = spec;
    keyed.seed = 0;
    keyed.secret = secret;
    bly_node *v = full_node(&keyed), *again;
    byte_array all = node_bytes(v);
    assert_null(memmem(all.at, all.n, secret, sizeof secret));
    bly_access how = { .secret = other };
    assert_status(bly_node_load(all.at, all.n, 6, NULL, &again), BLY_ESECRET);
    assert_status(bly_node_load(all.at, all.n, 6, &how, &again), BLY_ESECRET);
    how.secret = NULL;
    how.blind = true;
    assert_status(bly_node_load(all.at, all.n, 6, &how, &again), BLY_EINVAL);
    how = (bly_access){ .secret = secret };
    assert_ok(bly_node_load(all.at, all.n, 6, &how, &again));
    assert_int_equal(hops_to(again, "there", NULL), 1);
    free(all.at);
    bly_node_free(again);
    bly_node_free(v);
}

/* ------------------------------------------------------------------ memory */

static void bounded_memory(void **unused)
{
    (void)unused;
    bly_node_stats stats;
    bly_node *v = full_node(&spec), *u = node_of(&spec, 8, 0, "v", NULL);
    bly_node_stat(v, &stats);
    byte_array all = node_bytes(v), m = told(u, "v", NULL);
    bly_node_free(v);
    bly_access how = { .max_bytes = stats.bytes };
    assert_ok(bly_node_load(all.at, all.n, 6, &how, &v));
    byte_array before = node_bytes(v);
    assert_status(bly_node_hear(v, "silent", m.at, m.n, 1, NULL), BLY_ERANGE);
    assert_status(bly_node_tell(v, "silent", put_bytes, NULL, NULL),
                  BLY_ERANGE);
    assert_unchanged(v, &before);
    bly_node_free(v);
    how.max_bytes = 100;
    assert_status(bly_node_load(all.at, all.n, 6, &how, &v), BLY_ERANGE);
    bly_spec little = spec;
    little.max_bytes = 100;
    assert_status(bly_node_new(&little, 1, 0, &v), BLY_ERANGE);
    free(all.at);
    free(before.at);
    free(m.at);
    bly_node_free(u);
}

/* All that a node does; the status of the first call that fails. */
static bly_status whole_life(const bly_mem *mem, const byte_array *whole,
                             const byte_array *delta, byte_array *left)
{
    bly_node *v, *again = NULL;
    bly_spec s = spec;
    byte_array to = { 0 };
    s.mem = mem;
    const bly_access how = { .mem = mem };
    bly_status st = bly_node_new(&s, 1, 0, &v);
    if (!st)
        st = bly_node_link(v, "v");
    if (!st)
        st = bly_node_add(v, "key", 3);
    if (!st)
        st = bly_node_hear(v, "v", whole->at, whole->n, 1, NULL);
    if (!st && (st = bly_node_hear(v, "v", delta->at, delta->n, 1, NULL)))
        assert_int_equal(link_of(v, 0).version, 1);
    if (!st && (st = bly_node_tell(v, "v", put_bytes, &to, NULL)))
        assert_int_equal(link_of(v, 0).told, 0);
    to.n = 0;
    if (!st)
        st = bly_node_write(v, put_bytes, &to);
    if (!st)
        st = bly_node_load(to.at, to.n, 2, &how, &again);
    if (!st) {
        *left = to;
        to.at = NULL;
    }
    free(to.at);
    bly_node_free(v);
    bly_node_free(again);
    return st;
}

/* Each allocation fails in turn, and nothing is left behind. */
static void without_memory(void **unused)
{
    (void)unused;
    bly_node *u = node_of(&spec, 1, 0, "v", NULL);
    byte_array whole = told(u, "v", NULL), delta, left = { 0 };
    add(u, "key");
    delta = told(u, "v", NULL);
    for (long i = 0;; i++) {
        ledger l;
        ledger_open(&l);
        l.fail_at = i;
        const bly_status st = whole_life(&l.mem, &whole, &delta, &left);
        ledger_check(&l);
        if (!st)
            break;
        assert_int_equal(st, BLY_ENOMEM);
        assert_true(i < 1000);
    }
    free(whole.at);
    free(delta.at);
    free(left.at);
    bly_node_free(u);
}

/* ----------------------------------------------------------------- structs */

static byte_array sized_bytes;
static char sized_path[64];
static bly_node *sized_node;
static const bly_access no_access;

static bly_status bly_node_new_call(void *object, size_t size)
{
    bly_node *v;
    const bly_status st = bly_node_new_sized(object, 1, 0, &v, size);
    assert_true((v == NULL) == (st != BLY_OK));
    bly_node_free(v);
    return st;
}

static bly_status bly_node_load_call(void *object, size_t size)
{
    bly_node *v;
    const bly_status st = bly_node_load_sized(sized_bytes.at, sized_bytes.n, 99,
                                              object, &v, size);
    bly_node_free(v);
    return st;
}

static bly_status bly_node_open_call(void *object, size_t size)
{
    bly_node *v;
    const bly_status st = bly_node_open_sized(sized_path, 99, object, &v, size);
    bly_node_free(v);
    return st;
}

static bly_status bly_node_tell_call(void *object, size_t size)
{
    byte_array to = { 0 };
    const bly_status st =
        bly_node_tell_sized(sized_node, "heard", put_bytes, &to, object, size);
    free(to.at);
    return st;
}

static bly_status bly_node_hear_call(void *object, size_t size)
{
    bly_node *u = node_of(&spec, 1, 0, "v", NULL);
    byte_array m = told(u, "v", NULL);
    const bly_status st =
        bly_node_hear_sized(u, "v", m.at, m.n, 1, object, size);
    free(m.at);
    bly_node_free(u);
    return st;
}

static bly_status bly_node_link_at_call(void *object, size_t size)
{
    return bly_node_link_at_sized(sized_node, 0, object, size) ? BLY_OK
                                                               : BLY_EINVAL;
}

static bly_status bly_node_stat_call(void *object, size_t size)
{
    bly_node_stat_sized(sized_node, object, size);
    return BLY_OK;
}

static void structs_may_grow(void **unused)
{
    (void)unused;
    static const sized_row rows[] = {
        { "bly_node_new", &spec, sizeof spec, bly_node_new_call },
        { "bly_node_load", &no_access, sizeof no_access, bly_node_load_call },
        { "bly_node_open", &no_access, sizeof no_access, bly_node_open_call },
        { "bly_node_tell", NULL, sizeof(bly_news), bly_node_tell_call },
        { "bly_node_hear", NULL, sizeof(bly_news), bly_node_hear_call },
        { "bly_node_link_at", NULL, sizeof(bly_link), bly_node_link_at_call },
        { "bly_node_stat", NULL, sizeof(bly_node_stats), bly_node_stat_call },
    };
    sized_node = full_node(&spec);
    snprintf(sized_path, sizeof sized_path, "/tmp/bly-node-%ld",
             (long)getpid());
    free(told(sized_node, "heard", NULL).at);
    sized_bytes = node_bytes(sized_node);
    assert_ok(bly_node_save(sized_node, sized_path));
    sized_laws(rows, COUNT_OF(rows));
    none_is_unsized("include/bloomery/node.h", rows, COUNT_OF(rows));
    unlink(sized_path);
    free(sized_bytes.at);
    bly_node_free(sized_node);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_of_its_own),
        cmocka_unit_test(links_by_name),
        cmocka_unit_test(many_links),
        cmocka_unit_test(specs_that_cannot_be),
        cmocka_unit_test(the_nearest_way),
        cmocka_unit_test(batches_agree),
        cmocka_unit_test(only_changes_are_told),
        cmocka_unit_test(what_is_not_sent),
        cmocka_unit_test(lost_late_and_repeated),
        cmocka_unit_test(a_link_that_comes_back),
        cmocka_unit_test(both_have_lost_one),
        cmocka_unit_test(a_new_life),
        cmocka_unit_test(what_is_silent_expires),
        cmocka_unit_test(damaged_messages),
        cmocka_unit_test(forged_messages),
        cmocka_unit_test(nodes_must_agree),
        cmocka_unit_test(saved_and_loaded),
        cmocka_unit_test(what_earlier_versions_wrote),
        cmocka_unit_test(damaged_nodes),
        cmocka_unit_test(secrets_are_not_written),
        cmocka_unit_test(bounded_memory),
        cmocka_unit_test(without_memory),
        cmocka_unit_test(structs_may_grow),
    };
    return cmocka_run_group_tests_name("node", tests, NULL, NULL);
}
