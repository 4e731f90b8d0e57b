/*
 * test_node_network.c - networks of nodes against exact sets
 *
 * Beside every node runs a model that does the same with sets of keys: what a
 * link told is a set for each level, a message carries such sets. Keys come and
 * go, links too, messages are lost, repeated, late and damaged, nodes start
 * again and clocks go on, at random. After each step what the node has of a
 * link is bit for bit the filter of the model's sets; when all is quiet, they
 * are the keys at that distance, and no answer is further than the truth.
 */
#define _GNU_SOURCE
#include "tests/support.h"

#include <bloomery/node.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES 10
#define DEPTH 3
#define UNIVERSE 256 /* keys there are */
#define KEYS_EACH 20
#define QUEUE 64 /* messages on their way */
#define TTL 400

typedef struct set {
    uint64_t word[UNIVERSE / 64];
} set;

typedef struct levels {
    set of[DEPTH];
} levels;

typedef struct model_link {
    bool linked, heard, lost, asked, told;
    levels knows, last; /* what it told; what it was told */
    uint64_t life, version, at;
    uint64_t told_version;
} model_link;

typedef struct message {
    size_t from, to;
    byte_array bytes;
    levels all;
    bool asks;
    uint64_t life, start, end;
} message;

typedef struct world {
    bly_node *node[NODES];
    uint64_t life[NODES], numbers[NODES];
    set keys[NODES];
    model_link link[NODES][NODES]; /* [v][u]: at v, about u */
    message queue[QUEUE];
    size_t nqueue;
    uint64_t now, random, hashes[UNIVERSE];
    bly_spec spec;
    bly_filter *empty; /* attenuated */
    uint64_t taken, old, gap, damaged, expired, restarted;
} world;

static const bly_option options[] = { { "depth", "3" }, { "degree", "2" } };

static const char *name_of(size_t u)
{
    static const char names[NODES][2] = { "a", "b", "c", "d", "e",
                                          "f", "g", "h", "i", "j" };
    return names[u];
}

static uint64_t chance(world *w, uint64_t n)
{
    return test_random(&w->random) % n;
}

static void join(set *a, const set *b)
{
    for (size_t i = 0; i < COUNT_OF(a->word); i++)
        a->word[i] |= b->word[i];
}

static bool is_in(const set *s, size_t key)
{
    return s->word[key / 64] >> key % 64 & 1;
}

/* ------------------------------------------------------------------- model */

static levels summary(const world *w, size_t v, size_t u)
{
    levels all = { .of[0] = w->keys[v] };
    for (size_t x = 0; x < NODES; x++)
        for (size_t j = 0; x != u && w->link[v][x].heard && j + 1 < DEPTH; j++)
            join(&all.of[j + 1], &w->link[v][x].knows.of[j]);
    return all;
}

/* The bits of a set as a level has them. */
static void assert_level(const world *w, const bly_filter *level, const set *s)
{
    bly_filter *want;
    assert_ok(bly_clone(w->empty, &want));
    for (size_t key = 0; key < UNIVERSE; key++)
        if (is_in(s, key))
            assert_ok(bly_add_hash(want, w->hashes[key]));
    assert_true(bly_equal(level, bly_layer(want, 0)));
    bly_free(want);
}

static bly_link link_named(const world *w, size_t v, size_t u)
{
    bly_link e = { 0 };
    for (size_t i = 0; bly_node_link_at(w->node[v], i, &e); i++)
        if (!strcmp(e.name, name_of(u)))
            return e;
    fail_msg("%s has no link to %s", name_of(v), name_of(u));
    return e;
}

static void assert_as_model(const world *w, size_t v, size_t u)
{
    const model_link *const m = &w->link[v][u];
    if (!m->linked)
        return;
    const bly_link e = link_named(w, v, u);
    assert_int_equal(e.heard, m->heard);
    assert_int_equal(e.lost, m->lost);
    assert_int_equal(e.told, m->told_version);
    assert_int_equal(e.life, m->heard ? m->life : 0);
    assert_int_equal(e.version, m->heard ? m->version : 0);
    for (uint32_t j = 0; m->heard && j < DEPTH; j++)
        assert_level(w, bly_layer(e.f, j), &m->knows.of[j]);
}

/* ------------------------------------------------------------------- steps */

static void tell(world *w, size_t v, size_t u)
{
    model_link *const m = &w->link[v][u];
    if (!m->linked || w->nqueue == QUEUE)
        return;
    message *const q = &w->queue[w->nqueue++];
    *q = (message){ .from = v, .to = u, .all = summary(w, v, u) };
    bly_news news;
    assert_ok(
        bly_node_tell(w->node[v], name_of(u), put_bytes, &q->bytes, &news));
    const bool whole = !m->told || m->asked;
    q->asks = m->lost;
    q->life = w->life[v];
    assert_int_equal(news.whole, whole);
    assert_int_equal(news.asks, m->lost);
    assert_int_equal(news.life, w->life[v]);
    /* Different sets may have equal bits, then nothing is told. */
    if (!whole && !memcmp(&m->last, &q->all, sizeof q->all))
        assert_true(news.from == news.to && !news.flips);
    if (news.from != news.to) {
        m->told_version = ++w->numbers[v];
        m->asked = false;
    }
    assert_int_equal(news.to, m->told_version);
    q->start = news.from;
    q->end = news.to;
    m->told = true;
    m->last = q->all;
}

static void hear(world *w, const message *q)
{
    model_link *const m = &w->link[q->to][q->from];
    bly_news news;
    if (!m->linked)
        return;
    assert_ok(bly_node_hear(w->node[q->to], name_of(q->from), q->bytes.at,
                            q->bytes.n, w->now, &news));
    const bool still = q->start == q->end;
    if (m->heard && (q->life < m->life || (q->life == m->life &&
                                           (q->end < m->version ||
                                            (q->end == m->version && !still)))))
        assert_int_equal(news.fate, BLY_NEWS_OLD);
    else if (!q->start ||
             (m->heard && q->life == m->life && q->start == m->version))
        assert_int_equal(news.fate, BLY_NEWS_TAKEN);
    else
        assert_int_equal(news.fate, BLY_NEWS_GAP);
    switch (news.fate) {
    case BLY_NEWS_OLD:
        w->old++;
        return;
    case BLY_NEWS_TAKEN:
        m->heard = true;
        m->lost = m->lost && q->start;
        m->life = q->life;
        m->version = q->end;
        m->at = w->now;
        m->knows = q->all;
        w->taken++;
        break;
    case BLY_NEWS_GAP:
        m->lost = true;
        w->gap++;
        break;
    }
    m->asked = m->asked || q->asks;
}

static void drop(world *w, size_t i)
{
    free(w->queue[i].bytes.at);
    w->queue[i] = w->queue[--w->nqueue];
}

/* Any message that is on its way: late ones overtake. */
static void deliver(world *w)
{
    if (!w->nqueue)
        return;
    const size_t i = (size_t)chance(w, w->nqueue);
    const message *const q = &w->queue[i];
    const uint64_t luck = chance(w, 100);
    if (luck < 5 && w->link[q->to][q->from].linked) {
        const size_t bit = (size_t)chance(w, 8 * q->bytes.n);
        q->bytes.at[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_true(bly_node_hear(w->node[q->to], name_of(q->from), q->bytes.at,
                                  q->bytes.n, w->now, NULL) != BLY_OK);
        w->damaged++;
    } else if (luck >= 15) {
        hear(w, q);
        assert_as_model(w, q->to, q->from);
    }
    if (luck < 90) /* else it comes again */
        drop(w, i);
}

static void change_key(world *w, size_t v)
{
    const size_t key = (size_t)chance(w, UNIVERSE);
    int n = 0;
    for (size_t i = 0; i < COUNT_OF(w->keys[v].word); i++)
        n += __builtin_popcountll(w->keys[v].word[i]);
    if (n >= KEYS_EACH && !is_in(&w->keys[v], key))
        return; /* so that most are some hops away */
    if (is_in(&w->keys[v], key))
        assert_ok(bly_node_remove_hashes(w->node[v], &w->hashes[key], 1, NULL));
    else
        assert_ok(bly_node_add_hashes(w->node[v], &w->hashes[key], 1));
    w->keys[v].word[key / 64] ^= UINT64_C(1) << key % 64;
}

static void set_link(world *w, size_t v, size_t u, bool linked)
{
    if (linked == w->link[v][u].linked)
        return;
    assert_ok(
        (linked ? bly_node_link : bly_node_unlink)(w->node[v], name_of(u)));
    w->link[v][u] = (model_link){ .linked = linked };
}

static void tick(world *w, size_t v)
{
    size_t n, want = 0;
    w->now += chance(w, 20);
    for (size_t u = 0; u < NODES; u++) {
        model_link *const m = &w->link[v][u];
        if (!m->heard || w->now - m->at < TTL)
            continue;
        m->heard = m->lost = false;
        want++;
    }
    assert_ok(bly_node_tick(w->node[v], w->now, &n));
    assert_int_equal(n, want);
    w->expired += n;
}

/* Save and load, in a new life; or lose everything but the links. */
static void restart(world *w, size_t v)
{
    byte_array all = { 0 };
    w->life[v]++;
    w->numbers[v] = 0;
    w->restarted++;
    const bool saved = chance(w, 2);
    if (saved) {
        assert_ok(bly_node_write(w->node[v], put_bytes, &all));
        bly_node_free(w->node[v]);
        assert_ok(bly_node_load(all.at, all.n, w->life[v], NULL, &w->node[v]));
    } else {
        bly_node_free(w->node[v]);
        assert_ok(bly_node_new(&w->spec, w->life[v], TTL, &w->node[v]));
        w->keys[v] = (set){ 0 };
    }
    for (size_t u = 0; u < NODES; u++) {
        model_link *const m = &w->link[v][u];
        const model_link before = *m;
        *m = (model_link){ 0 };
        if (saved) {
            m->linked = before.linked;
            m->heard = before.heard;
            m->lost = before.lost;
            m->knows = before.knows;
            m->life = before.life;
            m->version = before.version;
            m->at = before.at;
        } else {
            set_link(w, v, u, before.linked);
        }
    }
    free(all.at);
    /* The clock of a new node stands at 0 until it is told. */
    assert_ok(bly_node_tick(w->node[v], 0, NULL));
}

static void step(world *w)
{
    const size_t v = (size_t)chance(w, NODES), u = (size_t)chance(w, NODES);
    const uint64_t what = chance(w, 1000);
    if (what < 200)
        change_key(w, v);
    else if (what < 600)
        tell(w, v, u);
    else if (what < 960)
        deliver(w);
    else if (what < 985)
        tick(w, v);
    else if (what < 995 && u != v)
        set_link(w, v, u, chance(w, 2) != 0);
    else if (what >= 995)
        restart(w, v);
    assert_as_model(w, v, u);
}

/* Every node tells all neighbours, and nothing is lost, until none has changed
 * anything; how many rounds that took. */
static size_t until_quiet(world *w)
{
    size_t rounds = 0;
    for (bool changes = true; changes; rounds++) {
        changes = false;
        for (size_t v = 0; v < NODES; v++)
            for (size_t u = 0; u < NODES; u++) {
                const model_link before = w->link[v][u];
                tell(w, v, u);
                if (!w->nqueue)
                    continue;
                changes = changes || w->queue[0].start != w->queue[0].end ||
                          before.lost;
                hear(w, &w->queue[0]);
                drop(w, 0);
            }
        assert_true(rounds < 20);
    }
    return rounds;
}

/* ------------------------------------------------------------------- truth */

/* Hops from v to every node. */
static void hops_from(const world *w, size_t v, uint32_t hops[NODES])
{
    for (size_t x = 0; x < NODES; x++)
        hops[x] = x == v ? 0 : BLY_OUT_OF_REACH;
    for (uint32_t d = 0; d < NODES; d++)
        for (size_t x = 0; x < NODES; x++)
            for (size_t y = 0; hops[x] == d && y < NODES; y++)
                if (w->link[x][y].linked && hops[y] > d + 1)
                    hops[y] = d + 1;
}

/* The way to each key is never longer than the truth, within the depth; how
 * often it is shorter, and how many were asked for. */
static void assert_near_enough(world *w, uint64_t *asked, uint64_t *shorter)
{
    for (size_t v = 0; v < NODES; v++) {
        uint32_t hops[NODES], got[UNIVERSE], links[UNIVERSE];
        hops_from(w, v, hops);
        assert_ok(
            bly_node_distances(w->node[v], w->hashes, UNIVERSE, got, links));
        for (size_t key = 0; key < UNIVERSE; key++) {
            uint32_t truth = BLY_OUT_OF_REACH;
            for (size_t x = 0; x < NODES; x++)
                if (is_in(&w->keys[x], key) && hops[x] < truth)
                    truth = hops[x];
            if (truth <= DEPTH)
                assert_true(got[key] <= truth);
            else
                truth = BLY_OUT_OF_REACH;
            bly_way way = { .hops = BLY_OUT_OF_REACH };
            bly_node_find_hash(w->node[v], w->hashes[key], &way, 1);
            assert_int_equal(way.hops, got[key]);
            ++*asked;
            *shorter += got[key] < truth;
        }
    }
}

static world *world_new(uint64_t seed, uint64_t items)
{
    world *const w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->random = seed;
    w->spec = (bly_spec){ .kind = "attenuated",
                          .items = items,
                          .fpr = 0.01,
                          .seed = LAW_SEED,
                          .options = options,
                          .noptions = 2 };
    uint64_t *const h = hashes_for(&w->spec, 0, UNIVERSE);
    assert_ok(bly_new(&w->spec, &w->empty));
    memcpy(w->hashes, h, sizeof w->hashes);
    free(h);
    for (size_t v = 0; v < NODES; v++) {
        w->life[v] = 1;
        assert_ok(bly_node_new(&w->spec, 1, TTL, &w->node[v]));
    }
    return w;
}

static void connect(world *w, size_t v, size_t u)
{
    set_link(w, v, u, true);
    set_link(w, u, v, true);
}

static void world_free(world *w)
{
    while (w->nqueue)
        drop(w, 0);
    for (size_t v = 0; v < NODES; v++)
        bly_node_free(w->node[v]);
    bly_free(w->empty);
    free(w);
}

static void a_random_world(void **unused)
{
    (void)unused;
    uint64_t asked = 0, shorter = 0, taken = 0, old = 0, gap = 0, damaged = 0,
             expired = 0, restarted = 0;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        world *const w = world_new(seed, KEYS_EACH);
        for (size_t v = 1; v < NODES; v++)
            connect(w, v, (size_t)chance(w, v));
        for (int i = 0; i < 4; i++) { /* loops */
            const size_t v = (size_t)chance(w, NODES);
            connect(w, v, (v + 1 + (size_t)chance(w, NODES - 1)) % NODES);
        }
        for (size_t i = 0, n = scaled(6000); i < n; i++)
            step(w);
        /* Links that only one side has are no links. */
        for (size_t v = 0; v < NODES; v++)
            for (size_t u = 0; u < NODES; u++)
                if (w->link[v][u].linked)
                    set_link(w, u, v, true);
        while (w->nqueue)
            drop(w, 0);
        until_quiet(w);
        for (size_t v = 0; v < NODES; v++)
            for (size_t u = 0; u < NODES; u++)
                assert_as_model(w, v, u);
        assert_near_enough(w, &asked, &shorter);
        taken += w->taken;
        old += w->old;
        gap += w->gap;
        damaged += w->damaged;
        expired += w->expired;
        restarted += w->restarted;
        world_free(w);
    }
    /* All of it did happen. */
    assert_true(taken > scaled(500) && old > scaled(50) && gap > scaled(50) &&
                damaged > scaled(20) && expired >= scaled(1) &&
                restarted > scaled(10));
    /* Ten nodes and a few links each: some keys are found by mistake, at no
     * more than the rate of as many links as a node has at most. */
    assert_true(shorter > 0 && (double)shorter < 0.09 * (double)asked);
}

/* A tree as it was planned: every node has `items` keys and degree + 1 links.
 * Keys that are nowhere are found at the planned rate of each link, or less. */
static void the_planned_rate(void **unused)
{
    (void)unused;
    enum { EACH = 300, LINKS = 3 };
    const bly_spec spec = { .items = EACH,
                            .fpr = 0.01,
                            .seed = LAW_SEED,
                            .options = options,
                            .noptions = 2 };
    bly_node *root, *near[LINKS], *far[LINKS][2], *last[LINKS][2][2];
    uint64_t next = 0, *const h = hashes_for(&spec, 0, 100 * EACH);
    byte_array m = { 0 };
#define MAKE(v)                                  \
    (assert_ok(bly_node_new(&spec, 1, 0, &(v))), \
     assert_ok(bly_node_link(v, "up")),          \
     assert_ok(bly_node_add_hashes(v, h + EACH * next++, EACH)))
#define CARRY(v, u, name)                                    \
    (m.n = 0, assert_ok(bly_node_link(u, name)),             \
     assert_ok(bly_node_tell(v, "up", put_bytes, &m, NULL)), \
     assert_ok(bly_node_hear(u, name, m.at, m.n, 1, NULL)))
    static const char *const names[] = { "0", "1", "2" };
    MAKE(root);
    for (size_t i = 0; i < LINKS; i++) {
        MAKE(near[i]);
        for (size_t j = 0; j < 2; j++) {
            MAKE(far[i][j]);
            for (size_t k = 0; k < 2; k++) {
                MAKE(last[i][j][k]);
                CARRY(last[i][j][k], far[i][j], names[k]);
                bly_node_free(last[i][j][k]);
            }
            CARRY(far[i][j], near[i], names[j]);
            bly_node_free(far[i][j]);
        }
        CARRY(near[i], root, names[i]);
        bly_node_free(near[i]);
    }
    uint32_t *const hops = malloc(100 * EACH * sizeof *hops);
    assert_non_null(hops);
    assert_ok(bly_node_distances(root, h, EACH * next, hops, NULL));
    uint64_t by_hops[DEPTH + 1] = { 0 };
    for (uint64_t i = 0; i < EACH * next; i++) {
        assert_true(hops[i] <= DEPTH);
        by_hops[hops[i]]++;
    }
    /* 1, 3, 6 and 12 nodes at 0 to 3 hops. */
    for (size_t d = 0, nodes = 1; d <= DEPTH;
         d++, nodes = d == 1 ? 3 : 2 * nodes)
        assert_near((double)by_hops[d], (double)(nodes * EACH), 0.02);
    bly_node_stats stats;
    bly_link e;
    bly_node_stat(root, &stats);
    /* Three links, each with levels of 1, 2 and 4 nodes as planned. */
    const double planned = 1 - pow(0.99, LINKS);
    assert_true(stats.fpr < planned * 1.1);
    for (size_t i = 0; bly_node_link_at(root, i, &e); i++)
        assert_true(e.fpr <= 0.0125);
    const size_t n = scaled(400000);
    uint64_t *const absent = hashes_for(&spec, ABSENT, n), found = 0;
    for (size_t i = 0; i < n; i++)
        found += bly_node_find_hash(root, absent[i], NULL, 0) > 0;
    const double p = stats.fpr, seen = (double)found / (double)n;
    assert_between(seen, p - 6 * sqrt(p / (double)n),
                   p + 6 * sqrt(p / (double)n));
    free(absent);
    free(hops);
    free(h);
    free(m.at);
    bly_node_free(root);
}

/* A key that goes is forgotten everywhere, in a ring as well: what is left of
 * it grows older with each hop, until it falls off the last level. */
static void nothing_counts_to_infinity(void **unused)
{
    (void)unused;
    world *const w = world_new(3, KEYS_EACH);
    for (size_t v = 0; v < NODES; v++)
        connect(w, v, (v + 1) % NODES);
    connect(w, 0, 2); /* a triangle: the shortest loop */
    w->keys[1].word[0] = 1;
    assert_ok(bly_node_add_hashes(w->node[1], w->hashes, 1));
    /* As many rounds as hops, and one to see that all is quiet; in a round
     * news may pass through several nodes. */
    assert_true(until_quiet(w) <= DEPTH + 1);
    uint64_t asked = 0, shorter = 0;
    assert_near_enough(w, &asked, &shorter);
    assert_ok(bly_node_remove_hashes(w->node[1], w->hashes, 1, NULL));
    w->keys[1].word[0] = 0;
    assert_true(until_quiet(w) <= DEPTH + 1);
    for (size_t v = 0; v < NODES; v++)
        assert_int_equal(bly_node_find_hash(w->node[v], w->hashes[0], NULL, 0),
                         0);
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_random_world),
        cmocka_unit_test(the_planned_rate),
        cmocka_unit_test(nothing_counts_to_infinity),
    };
    return cmocka_run_group_tests_name("networks of nodes", tests, NULL, NULL);
}
