/*
 * test_gossip.c - gossiping peers under random schedules, and searches
 *
 * A schedule delivers messages in any order, loses and repeats some, lets peers
 * die, come back with clocks that have gone back, and change their words. When
 * it ends, and messages arrive for a while, all directories must be alike.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workbench/sim/gossip_sim.h"
#include "apps/net/gossip/gossip_wire.h"
#include "base/random.h"
#include "support.h"

#define PEERS 8
#define IN_FLIGHT 256

static const struct gossip_rules rules = { .interval = 10,
                                           .compare = 40,
                                           .enough = 2,
                                           .dead = 100000,
                                           .most_peers = 64,
                                           .most_bytes = UINT64_MAX };

struct flight {
    bool used;
    unsigned from, to;
    unsigned char *bytes;
    size_t n;
};

struct ticking {
    bool used;
    unsigned node;
    enum gossip_timer t;
    uint64_t at;
};

struct world {
    uint64_t random, now;
    struct gossip peers[PEERS];
    bool up[PEERS];
    uint64_t clock[PEERS]; /* of day, by which versions begin */
    struct flight flights[IN_FLIGHT];
    struct ticking ticks[4 * PEERS];
    struct blob blob;
    unsigned delivered, lost, repeated;
};

static uint64_t chance_of(struct world *w, uint64_t n)
{
    return random_next(&w->random) % n;
}

static struct address place(unsigned i)
{
    return (struct address){ 4, { 127, 0, 0, 1 }, (uint16_t)(7000 + i) };
}

static void fly(struct world *w, unsigned from, unsigned to,
                const struct gossip_message *m)
{
    const struct frame f = { .type = m->type,
                             .flags = m->answer ? FRAME_ANSWER : 0,
                             .request = m->request };
    gossip_put(&w->blob, m);
    assert_true(blob_frame(&w->blob, &f));
    for (size_t i = 0; i < IN_FLIGHT; i++) {
        struct flight *const at = &w->flights[i];
        if (at->used)
            continue;
        *at = (struct flight){ true, from, to, malloc(w->blob.n), w->blob.n };
        assert_non_null(at->bytes);
        memcpy(at->bytes, w->blob.at, w->blob.n);
        return;
    }
    fail_msg("too many messages");
}

static void world_ask(struct gossip *g, const struct address *to,
                      const struct gossip_message *m)
{
    struct world *const w = g->ctx;
    fly(w, (unsigned)(g - w->peers), (unsigned)to->port - 7000, m);
}

static void world_timer(struct gossip *g, enum gossip_timer t, uint64_t delay)
{
    struct world *const w = g->ctx;
    for (size_t i = 0; i < 4 * PEERS; i++)
        if (!w->ticks[i].used) {
            w->ticks[i] = (struct ticking){ true, (unsigned)(g - w->peers), t,
                                            w->now + delay };
            return;
        }
    fail_msg("too many timers");
}

static const struct gossip_host host = { world_ask, world_timer };

static struct summary *some_words(struct world *w, const struct summary *before,
                                  uint64_t base)
{
    uint64_t words[300];
    for (size_t i = 0; i < 300; i++)
        words[i] = (i < 290 ? i + 1 : chance_of(w, UINT64_MAX)) * RANDOM_STEP;
    struct summary *const s = summary_new(words, 300, before, base);
    assert_non_null(s);
    return s;
}

static void starts(struct world *w, unsigned i)
{
    const struct address self = place(i), seed = place(i ? 0 : 1);
    assert_true(gossip_init(&w->peers[i], &rules, &host, w, &self, &seed, 1,
                            w->clock[i], w->random));
    struct summary *const s = some_words(w, NULL, 0);
    gossip_publish(&w->peers[i], s, w->now);
    summary_drop(s);
    w->up[i] = true;
    gossip_start(&w->peers[i], w->now);
}

static void dies(struct world *w, unsigned i)
{
    gossip_free(&w->peers[i]);
    w->up[i] = false;
    for (size_t k = 0; k < 4 * PEERS; k++)
        if (w->ticks[k].node == i)
            w->ticks[k].used = false;
}

static void changes(struct world *w, unsigned i)
{
    const struct gossip_entry *const self = &w->peers[i].entries[0];
    struct summary *const s = some_words(w, self->summary, self->version);
    gossip_publish(&w->peers[i], s, w->now);
    summary_drop(s);
}

/* One message, which may be lost, or arrive and stay to arrive again. */
static void arrives(struct world *w, struct flight *at, bool kind)
{
    struct frame f;
    struct gossip_message m, back;
    size_t used;
    assert_int_equal(frame_read(at->bytes, at->n, &f, &used), FRAME_WHOLE);
    const bool answer = f.flags & FRAME_ANSWER;
    const uint64_t what = kind ? 0 : chance_of(w, 10);
    struct gossip *const g = &w->peers[at->to];
    const unsigned asker = answer ? at->to : at->from;
    if (what == 1 || !w->up[at->to]) {
        w->lost++;
        if (w->up[asker])
            gossip_silent(&w->peers[asker], f.request, w->now);
    } else {
        w->delivered++;
        assert_true(gossip_get(g, f.type, answer, f.body, f.nbody, &m));
        if (answer) {
            gossip_answer(g, f.request, &m, w->now);
        } else {
            assert_true(gossip_question(g, &m, &back, w->now));
            back.request = f.request;
            if (w->up[at->from])
                fly(w, at->to, at->from, &back);
            gossip_message_free(&back);
        }
        gossip_message_free(&m);
    }
    if (what == 2 && !answer) {
        w->repeated++;
        return; /* it stays */
    }
    free(at->bytes);
    at->used = false;
}

static void one_step(struct world *w, bool kind)
{
    struct flight *some[IN_FLIGHT];
    size_t n = 0;
    for (size_t i = 0; i < IN_FLIGHT; i++)
        if (w->flights[i].used)
            some[n++] = &w->flights[i];
    if (n && (n > IN_FLIGHT / 2 || chance_of(w, 4))) {
        arrives(w, some[chance_of(w, n)], kind);
        return;
    }
    struct ticking *next = NULL;
    for (size_t i = 0; i < 4 * PEERS; i++)
        if (w->ticks[i].used && (!next || w->ticks[i].at < next->at))
            next = &w->ticks[i];
    if (!next)
        return;
    w->now = next->at > w->now ? next->at : w->now;
    next->used = false;
    gossip_tick(&w->peers[next->node], next->t, w->now);
}

static bool all_alike(const struct world *w)
{
    const struct gossip *first = NULL;
    for (unsigned i = 0; i < PEERS; i++) {
        if (!w->up[i])
            continue;
        for (unsigned k = 0; k < PEERS; k++) {
            if (!w->up[k])
                continue;
            const struct gossip_entry *const self = &w->peers[k].entries[0];
            const struct gossip_entry *const e =
                gossip_find(&w->peers[i], self->id);
            if (!e || e->version != self->version || !e->summary ||
                bly_version_id(e->summary->filter) !=
                    bly_version_id(self->summary->filter))
                return false;
        }
        if (first && memcmp(first->sums, w->peers[i].sums, sizeof first->sums))
            return false;
        first = &w->peers[i];
    }
    return true;
}

static void world_end(struct world *w)
{
    for (unsigned i = 0; i < PEERS; i++)
        if (w->up[i])
            gossip_free(&w->peers[i]);
    for (size_t i = 0; i < IN_FLIGHT; i++)
        if (w->flights[i].used)
            free(w->flights[i].bytes);
    blob_free(&w->blob);
    free(w);
}

/* Everybody comes to know the same, whatever was lost or came twice. */
static void agree_after_every_schedule(void **state)
{
    const unsigned schedules = getenv("BLY_FULL") ? 2000 : 60;
    unsigned lost = 0, repeated = 0;
    (void)state;
    for (unsigned seed = 1; seed <= schedules; seed++) {
        struct world *const w = calloc(1, sizeof *w);
        assert_non_null(w);
        w->random = seed;
        for (unsigned i = 0; i < PEERS; i++) {
            w->clock[i] = 1000000;
            starts(w, i);
        }
        for (unsigned step = 0; step < 3000; step++) {
            const unsigned i = (unsigned)chance_of(w, PEERS);
            const uint64_t what = chance_of(w, 300);
            if (what == 0 && w->up[i] && i > 1)
                dies(w, i);
            else if (what == 1 && !w->up[i]) {
                /* Its clock jumps, back or ahead. */
                w->clock[i] = 500000 + chance_of(w, 1000000);
                starts(w, i);
            } else if (what < 5 && w->up[i])
                changes(w, i);
            else
                one_step(w, false);
        }
        unsigned steps = 0;
        while (steps < 60000 && !all_alike(w)) {
            one_step(w, true);
            steps++;
        }
        if (!all_alike(w))
            fail_msg("schedule %u: directories differ", seed);
        lost += w->lost;
        repeated += w->repeated;
        world_end(w);
    }
    assert_true(lost > schedules && repeated > schedules);
}

/* ---------------------------------------------------------- what is hostile */

/* Lies of one peer: it is believed about nobody but in what it was asked for,
 * and never about this peer itself. */
static void liars_change_little(void **state)
{
    struct world *const w = calloc(1, sizeof *w);
    (void)state;
    assert_non_null(w);
    w->random = 1;
    starts(w, 0);
    struct gossip *const g = &w->peers[0];
    const uint64_t version = g->entries[0].version;
    const struct address self = place(0), liar = place(5);
    struct summary *const s = some_words(w, NULL, 0);

    /* Entries that were not asked for, and answers to nothing. */
    struct gossip_news news[] = {
        { .id = gossip_id(&self),
          .version = 99,
          .address = self,
          .summary = s },
        { .id = 12345, .version = 7, .address = liar, .summary = s },
    };
    struct gossip_message m = {
        .type = GOSSIP_FETCH_THESE, .answer = true, .news = news, .nnews = 2
    };
    for (uint32_t request = 0; request < 10; request++)
        gossip_answer(g, request, &m, 1);
    assert_int_equal(g->entries[0].version, version);
    assert_null(gossip_find(g, 12345));

    /* A newer version of its own makes it go on behind that; one without end
     * is ignored. */
    struct gossip_pair pairs[] = { { gossip_id(&self), version + 100 },
                                   { gossip_id(&self), UINT64_MAX } };
    struct gossip_message back, told = {
        .type = GOSSIP_RUMOUR, .from = liar, .pairs = pairs, .npairs = 2
    };
    assert_true(gossip_question(g, &told, &back, 2));
    gossip_message_free(&back);
    assert_true(g->entries[0].version > version + 100 &&
                g->entries[0].version <= version + 100 + 2 * GOSSIP_LIVES);

    /* A crowd that is nowhere fills no more than the directory has room for,
     * and whoever answers stays. */
    for (unsigned i = 10; i < 500; i++) {
        told.from = place(i);
        told.npairs = 0;
        assert_true(gossip_question(g, &told, &back, 3));
        gossip_message_free(&back);
    }
    assert_int_equal(g->n, rules.most_peers);
    assert_non_null(gossip_find(g, gossip_id(&liar)));
    summary_drop(s);
    world_end(w);
}

/* A delta that does not fit is dropped, and all of it asked for. */
static void wrong_deltas_are_fetched_whole(void **state)
{
    struct world *const w = calloc(1, sizeof *w);
    (void)state;
    assert_non_null(w);
    struct summary *const a = some_words(w, NULL, 0);
    struct summary *const b = some_words(w, a, 5);
    struct summary *const other = some_words(w, NULL, 0);
    assert_true(b->ndelta > 0 && b->ndelta < b->nwhole);
    struct summary *const good = summary_delta(b->delta, b->ndelta, a, 5);
    assert_non_null(good);
    assert_true(bly_version_id(good->filter) == bly_version_id(b->filter));
    assert_null(summary_delta(b->delta, b->ndelta, other, 5));
    assert_null(summary_delta(b->delta, b->ndelta - 1, a, 5));
    assert_null(summary_whole(b->whole, b->nwhole - 1));
    struct summary *const whole = summary_whole(b->whole, b->nwhole);
    assert_true(bly_version_id(whole->filter) == bly_version_id(b->filter));
    struct summary *const all[] = { a, b, other, good, whole };
    for (size_t i = 0; i < 5; i++)
        summary_drop(all[i]);
    world_end(w);
}

/* ----------------------------------------------------------------- searches */

static void ranks_as_by_hand(void **state)
{
    /* Four peers; "rare" at one, "often" at all. */
    struct world *const w = calloc(1, sizeof *w);
    struct doc_index *index[4];
    (void)state;
    assert_non_null(w);
    const uint64_t rare = word_hash((bly_bytes){ "rare", 4 });
    const uint64_t often = word_hash((bly_bytes){ "often", 5 });
    const struct address self = place(0);
    assert_true(
        gossip_init(&w->peers[0], &rules, &host, w, &self, NULL, 0, 1, 1));
    for (unsigned i = 0; i < 4; i++) {
        const uint64_t words[] = { often, rare };
        const uint32_t counts[] = { i + 1, 2 };
        index[i] = doc_index_new("x");
        assert_true(doc_index_add(index[i], i ? "other" : "first", words,
                                  counts, i == 2 ? 2 : 1));
        doc_index_end(index[i]);
        struct summary *const s = summary_new(words, i == 2 ? 2 : 1, NULL, 0);
        const struct address at = place(i);
        const struct gossip_news news = { gossip_id(&at), 1, at, s, false, 0 };
        if (i)
            assert_true(gossip_take(&w->peers[0], &news, false));
        else
            gossip_publish(&w->peers[0], s, 0);
        summary_drop(s);
    }
    struct query q = { .k = 2 };
    const char *const texts[] = { "Often,", "RARE often" };
    assert_true(query_words(&q, texts, 2));
    assert_int_equal(q.n, 2);
    struct gossip_search s;
    assert_true(search_new(&s, &w->peers[0], &q, 0));
    assert_int_equal(s.npeers, 4);
    assert_true(fabs(s.query.words[0].weight - log(2)) < 1e-12);
    assert_true(fabs(s.query.words[1].weight - log(5)) < 1e-12);
    assert_int_equal(s.peers[0].address.port, 7002);
    uint32_t which, group[SEARCH_GROUP];
    struct found found[2];
    unsigned n = 0;
    while (search_next(&s, &which))
        group[n++] = which;
    assert_int_equal(n, SEARCH_GROUP);
    /* Answers in any order; one peer is silent. */
    for (unsigned i = n; i-- > 0;) {
        const unsigned at = s.peers[group[i]].address.port - 7000u;
        if (at == 3)
            search_took(&s, group[i], NULL, 0);
        else
            search_took(&s, group[i], found,
                        doc_index_find(index[at], &s.query, found));
    }
    assert_true(search_over(&s));
    assert_int_equal(s.nbest, 2);
    assert_int_equal(s.silent, 1);
    /* Peer 2: 3 often and 2 rare among 5; peer 0: one word that is often. */
    assert_true(
        fabs(s.best[0].score - (log(2) * (1 + log(3)) + log(5) * (1 + log(2))) /
                                   sqrt(5)) < 1e-12);
    assert_true(fabs(s.best[1].score - log(2)) < 0.2);
    search_free(&s);
    for (unsigned i = 0; i < 4; i++)
        doc_index_free(index[i]);
    gossip_free(&w->peers[0]);
    free(w);
}

/* With patience without end a search is the exact ranking. */
static void patient_searches_are_exact(void **state)
{
    struct gossip_sim_spec spec = { .peers = 30,
                                    .documents = 300,
                                    .seed = 3,
                                    .loss = 0.05,
                                    .changes = 3,
                                    .queries = 40,
                                    .patience = 1000 };
    struct gossip_sim_result r, again;
    (void)state;
    assert_true(gossip_sim(&spec, &r));
    assert_true(r.overlap == 1);
    assert_int_equal(r.missed, 0);
    assert_true(r.spread_most < 25);
    assert_true(r.join < 25);
    assert_true(gossip_sim(&spec, &again));
    assert_memory_equal(&r, &again, sizeof r);
    spec.patience = 1;
    assert_true(gossip_sim(&spec, &r));
    assert_true(r.overlap < 1 && r.asked < again.asked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agree_after_every_schedule),
        cmocka_unit_test(liars_change_little),
        cmocka_unit_test(wrong_deltas_are_fetched_whole),
        cmocka_unit_test(ranks_as_by_hand),
        cmocka_unit_test(patient_searches_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
