/*
 * gossip_sim.c - a thousand peers with documents, in simulated time
 */
#define _GNU_SOURCE
#include "workbench/sim/gossip_sim.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/net/gossip/gossip_wire.h"
#include "workbench/sim/sim.h"
#include "base/random.h"
#include "report/say.h"

#define INTERVAL 1000 /* milliseconds */
#define SILENT_AFTER 1000
#define DATA_SILENT (UINT64_C(1) << 32)

static const struct gossip_rules sim_rules = { .interval = INTERVAL,
                                               .compare = 8 * INTERVAL,
                                               .enough = 4,
                                               .dead = 600 * INTERVAL,
                                               .most_peers = GOSSIP_PEERS,
                                               .most_bytes = UINT64_MAX };

/* A frame on its way: the simulator carries its address alone, since it takes
 * short messages only. */
struct packet {
    struct packet *before, *next;
    size_t n;
    unsigned char bytes[];
};

struct sim_world {
    const struct gossip_sim_spec *spec;
    uint32_t n; /* peers, and one that joins at the end */
    uint64_t random;
    struct sim *sim;
    struct gossip *peers;
    struct doc_index **indexes;
    struct doc_index *all;
    struct blob blob;
    struct packet *packets; /* all of them */
    bool failed;
};

static uint64_t below(struct sim_world *w, uint64_t n)
{
    return random_next(&w->random) % n;
}

static double chance(struct sim_world *w)
{
    return random_share(&w->random);
}

/* ----------------------------------------------------------------- the host */

static struct address sim_address(uint32_t node)
{
    return (struct address){ 4,
                             { 10, (uint8_t)(node >> 16), (uint8_t)(node >> 8),
                               (uint8_t)node },
                             7000 };
}

static uint32_t node_at(const struct address *a)
{
    return (uint32_t)a->at[1] << 16 | (uint32_t)a->at[2] << 8 | a->at[3];
}

static uint64_t sim_ms(const struct sim_world *w)
{
    return sim_now(w->sim) / 1000;
}

static void sim_put(struct sim_world *w, uint32_t from, uint32_t to,
                    const struct gossip_message *m)
{
    const struct frame f = { .type = m->type,
                             .flags = m->answer ? FRAME_ANSWER : 0,
                             .request = m->request };
    gossip_put(&w->blob, m);
    struct packet *const p =
        blob_frame(&w->blob, &f) ? malloc(sizeof *p + w->blob.n) : NULL;
    if (!p) {
        w->failed = true;
        return;
    }
    *p = (struct packet){ NULL, w->packets, w->blob.n };
    memcpy(p->bytes, w->blob.at, p->n);
    if (p->next)
        p->next->before = p;
    w->packets = p;
    sim_send(w->sim, from, to, &p, sizeof p, p->n);
}

static void packet_free(struct sim_world *w, struct packet *p)
{
    *(p->before ? &p->before->next : &w->packets) = p->next;
    if (p->next)
        p->next->before = p->before;
    free(p);
}

static void sim_ask(struct gossip *g, const struct address *to,
                    const struct gossip_message *m)
{
    struct sim_world *const w = g->ctx;
    const uint32_t node = node_at(to);
    if (node < w->n)
        sim_put(w, (uint32_t)(g - w->peers), node, m);
}

static void sim_timer(struct gossip *g, enum gossip_timer t, uint64_t delay)
{
    struct sim_world *const w = g->ctx;
    sim_after(w->sim, (uint32_t)(g - w->peers), delay * 1000, (uint64_t)t);
}

static const struct gossip_host sim_host = { sim_ask, sim_timer };

static void sim_message(struct sim_world *w, const struct sim_event *e,
                        const struct frame *f)
{
    struct gossip *const g = &w->peers[e->node];
    const bool answer = f->flags & FRAME_ANSWER;
    struct gossip_message m, back;
    if (!gossip_get(g, f->type, answer, f->body, f->nbody, &m)) {
        w->failed = true;
        return;
    }
    if (answer) {
        gossip_answer(g, f->request, &m, sim_ms(w));
    } else {
        w->failed |= !gossip_question(g, &m, &back, sim_ms(w));
        back.request = f->request;
        sim_put(w, e->node, e->from, &back);
        gossip_message_free(&back);
    }
    gossip_message_free(&m);
}

static void sim_handle(void *ctx, const struct sim_event *e)
{
    struct sim_world *const w = ctx;
    struct frame f;
    size_t used;
    if (e->what == SIM_TIMER) {
        if (e->data & DATA_SILENT)
            gossip_silent(&w->peers[e->node], (uint32_t)e->data, sim_ms(w));
        else
            gossip_tick(&w->peers[e->node], (enum gossip_timer)e->data,
                        sim_ms(w));
        return;
    }
    struct packet *p;
    memcpy(&p, e->bytes, sizeof p);
    if (frame_read(p->bytes, p->n, &f, &used) != FRAME_WHOLE)
        w->failed = true;
    else if (e->what == SIM_MESSAGE)
        sim_message(w, e, &f);
    else
        sim_after(w->sim, f.flags & FRAME_ANSWER ? e->node : e->from,
                  (uint64_t)SILENT_AFTER * 1000, DATA_SILENT | f.request);
    packet_free(w, p);
}

static const struct sim_protocol sim_gossip = { sim_handle, NULL };

/* --------------------------------------------------------------- the corpus */

#define VOCABULARY 20000
#define TOPICS 100
#define TOPIC_WORDS 400
#define PEER_TOPICS 3
#define DOC_TOKENS 400

static uint64_t word_number(uint64_t i)
{
    return word_hash((bly_bytes){ &i, sizeof i });
}

/* Ranks by Zipf's law, roughly: the chance of rank r is about 1 / r. */
static uint64_t zipf(struct sim_world *w, double n)
{
    return (uint64_t)exp(chance(w) * log(n)) - 1;
}

struct bag {
    uint64_t words[DOC_TOKENS];
    uint32_t counts[DOC_TOKENS];
    size_t n;
};

static void bag_put(struct bag *b, uint64_t word)
{
    for (size_t i = 0; i < b->n; i++)
        if (b->words[i] == word) {
            b->counts[i]++;
            return;
        }
    b->words[b->n] = word;
    b->counts[b->n++] = 1;
}

/* A peer has documents of three topics; seven words in ten are of no topic. */
static void make_document(struct sim_world *w, uint32_t peer, struct bag *b)
{
    const uint64_t topic =
        word_number((uint64_t)peer * PEER_TOPICS + below(w, PEER_TOPICS)) %
        TOPICS;
    const size_t tokens = DOC_TOKENS / 4 + below(w, DOC_TOKENS * 3 / 4);
    b->n = 0;
    for (size_t i = 0; i < tokens; i++)
        bag_put(b,
                word_number(chance(w) < 0.7 ? zipf(w, VOCABULARY)
                                            : VOCABULARY + topic * TOPIC_WORDS +
                                                  zipf(w, TOPIC_WORDS)));
}

static bool make_corpus(struct sim_world *w)
{
    const uint32_t docs = w->spec->documents ? w->spec->documents : 10000;
    w->all = doc_index_new("corpus");
    for (uint32_t d = 0; w->all && d < docs; d++) {
        char name[32];
        struct bag b;
        make_document(w, (uint32_t)((uint64_t)d * (w->n - 1) / docs), &b);
        snprintf(name, sizeof name, "%u", d);
        if (!doc_index_add(w->all, name, b.words, b.counts, b.n))
            return false;
    }
    if (w->all)
        doc_index_end(w->all);
    return w->all;
}

/* Each peer has documents that follow each other: those of a folder stay
 * together. */
static bool deal_out(struct sim_world *w)
{
    const struct doc_index *const all = w->all;
    size_t *const first = calloc(all->ndocs + 2, sizeof *first);
    uint64_t *const words = malloc((all->npostings + 1) * sizeof *words);
    uint32_t *const counts = malloc((all->npostings + 1) * sizeof *counts);
    bool ok = first && words && counts;
    for (size_t i = 0; ok && i < all->npostings; i++)
        first[all->postings[i].doc + 2]++;
    for (size_t d = 0; ok && d < all->ndocs; d++)
        first[d + 2] += first[d + 1];
    for (size_t i = 0; ok && i < all->npostings; i++) {
        const size_t at = first[all->postings[i].doc + 1]++;
        words[at] = all->postings[i].word;
        counts[at] = all->postings[i].count;
    }
    for (uint32_t p = 0; ok && p < w->n; p++)
        ok = (w->indexes[p] = doc_index_new("corpus")) != NULL;
    for (size_t d = 0; ok && d < all->ndocs; d++) {
        const size_t p = d * (w->n - 1) / all->ndocs;
        ok = doc_index_add(w->indexes[p], all->docs[d].path, words + first[d],
                           counts + first[d], first[d + 1] - first[d]);
    }
    for (uint32_t p = 0; ok && p < w->n; p++)
        doc_index_end(w->indexes[p]);
    free(first);
    free(words);
    free(counts);
    return ok;
}

/* ---------------------------------------------------------------- the peers */

static bool world_peers(struct sim_world *w)
{
    const struct sim_links links = { 20000, 200000, w->spec->loss };
    w->peers = calloc(w->n, sizeof *w->peers);
    w->indexes = calloc(w->n, sizeof *w->indexes);
    w->sim = sim_new(&links, w->n, w->spec->seed, &sim_gossip, w);
    if (!w->peers || !w->indexes || !w->sim || !deal_out(w))
        return false;
    for (uint32_t i = 0; i < w->n; i++) {
        const struct address self = sim_address(i), seed = sim_address(0);
        uint64_t *const words = doc_index_words(w->indexes[i]);
        struct summary *const s =
            words ? summary_new(words, w->indexes[i]->nwords, NULL, 0) : NULL;
        const bool ok =
            s && gossip_init(&w->peers[i], &sim_rules, &sim_host, w, &self,
                             &seed, i == w->n - 1, 0, random_next(&w->random));
        if (ok)
            gossip_publish(&w->peers[i], s, 0);
        summary_drop(s);
        free(words);
        if (!ok)
            return false;
    }
    /* All but the last know each other, and nobody tells rumours. */
    for (uint32_t i = 0; i + 1 < w->n; i++) {
        for (uint32_t k = 0; k + 1 < w->n; k++) {
            const struct gossip_entry *const e = &w->peers[k].entries[0];
            const struct gossip_news news = { .id = e->id,
                                              .version = e->version,
                                              .address = e->address,
                                              .summary = e->summary };
            if (i != k && !gossip_take(&w->peers[i], &news, false))
                return false;
        }
        w->peers[i].entries[0].hot = false;
    }
    for (uint32_t i = 0; i + 1 < w->n; i++) {
        sim_up(w->sim, i);
        gossip_start(&w->peers[i], 0);
    }
    return true;
}

static void world_free(struct sim_world *w)
{
    for (uint32_t i = 0; w->peers && w->indexes && i < w->n; i++) {
        gossip_free(&w->peers[i]);
        doc_index_free(w->indexes[i]);
    }
    sim_free(w->sim);
    while (w->packets)
        packet_free(w, w->packets);
    doc_index_free(w->all);
    blob_free(&w->blob);
    free(w->peers);
    free(w->indexes);
}

static void run_intervals(struct sim_world *w, double intervals)
{
    sim_run(w->sim, sim_now(w->sim) + (uint64_t)(intervals * INTERVAL * 1000));
}

/* -------------------------------------------------------------- experiments */

/* One more document at this peer: thirty words that it had not. The bytes of
 * the change. */
static size_t change_one(struct sim_world *w, uint32_t peer)
{
    struct gossip_entry *const self = &w->peers[peer].entries[0];
    const size_t n = w->indexes[peer]->nwords;
    uint64_t *const words = doc_index_words(w->indexes[peer]);
    uint64_t *const more = realloc(words, (n + 30) * sizeof *more);
    struct summary *s = NULL;
    for (size_t i = 0; more && i < 30; i++)
        more[n + i] = random_next(&w->random);
    if (more)
        s = summary_new(more, n + 30, self->summary, self->version);
    const size_t bytes = s ? (s->ndelta ? s->ndelta : s->nwhole) : 0;
    if (s)
        gossip_publish(&w->peers[peer], s, sim_ms(w));
    w->failed |= !s;
    summary_drop(s);
    free(more ? more : words);
    return bytes;
}

static double share_with(const struct sim_world *w, uint32_t peer,
                         uint64_t version)
{
    const uint64_t id = w->peers[peer].entries[0].id;
    uint32_t n = 0;
    for (uint32_t i = 0; i + 1 < w->n; i++) {
        const struct gossip_entry *const e = gossip_find(&w->peers[i], id);
        n += e && e->version >= version && e->summary;
    }
    return (double)n / (double)(w->n - 1);
}

static void changes(struct sim_world *w, struct gossip_sim_result *out)
{
    const unsigned n = w->spec->changes ? w->spec->changes : 10;
    for (unsigned c = 0; c < n && !w->failed; c++) {
        const uint32_t peer = (uint32_t)below(w, w->n - 1);
        out->delta += (double)change_one(w, peer) / n;
        const uint64_t version = w->peers[peer].entries[0].version;
        double all = 0;
        for (unsigned i = 1; i < GOSSIP_CURVE; i++) {
            run_intervals(w, 1);
            const double share = share_with(w, peer, version);
            out->curve[i] += share;
            if (share >= 1 && all == 0)
                all = i;
            /* The curve goes on without running, once nobody tells it. */
            if (share >= 1 && i + 1 < GOSSIP_CURVE) {
                for (unsigned k = i + 1; k < GOSSIP_CURVE; k++)
                    out->curve[k] += 1;
                break;
            }
        }
        out->curve[0] += 1.0 / (w->n - 1);
        out->missed += all == 0;
        out->spread += all / n;
        out->spread_most = all > out->spread_most ? all : out->spread_most;
    }
    for (unsigned i = 0; i < GOSSIP_CURVE; i++)
        out->curve[i] /= n;
}

static double bytes_per_minute(struct sim_world *w, bool changing)
{
    const uint64_t before = sim_counts(w->sim).bytes;
    for (unsigned i = 0; i < 60; i++) {
        if (changing)
            change_one(w, (uint32_t)below(w, w->n - 1));
        run_intervals(w, 1);
    }
    return (double)(sim_counts(w->sim).bytes - before) / (w->n - 1);
}

static double join_one(struct sim_world *w)
{
    struct gossip *const g = &w->peers[w->n - 1];
    sim_up(w->sim, w->n - 1);
    gossip_start(g, sim_ms(w));
    for (unsigned i = 1; i < 10 * GOSSIP_CURVE; i++) {
        size_t n = 0;
        run_intervals(w, 0.1);
        for (size_t k = 0; k < g->n; k++)
            n += g->entries[k].summary != NULL;
        if (n == w->n)
            return i / 10.0;
    }
    return NAN;
}

/* Words of a document that not every tenth has; as people ask. */
static bool make_query(struct sim_world *w, struct query *q)
{
    const struct doc_index *const all = w->all;
    const unsigned wanted = 1 + (unsigned)below(w, 3);
    const uint32_t doc = (uint32_t)below(w, all->ndocs);
    const struct doc_index *const own =
        w->indexes[(size_t)doc * (w->n - 1) / all->ndocs];
    size_t at = 0;
    while (at < own->ndocs &&
           strcmp(own->docs[at].path, all->docs[doc].path) != 0)
        at++;
    *q = (struct query){ .k = w->spec->k ? w->spec->k : 20 };
    for (unsigned tries = 0; tries < 100000 && q->n < wanted; tries++) {
        const struct doc_posting *const p =
            &own->postings[below(w, own->npostings)];
        const size_t with = p->doc == at ? doc_index_with(all, p->word) : 0;
        bool known = with < 2 || with > all->ndocs / 10;
        for (unsigned i = 0; i < q->n && !known; i++)
            known = q->words[i].hash == p->word;
        if (!known)
            q->words[q->n++].hash = p->word;
    }
    return q->n;
}

/* The share of the exact ranking's best that the search has; documents of
 * equal scores stand for each other. */
static double overlap_of(const struct sim_world *w,
                         const struct gossip_search *s,
                         const struct query *weighted)
{
    struct found best[QUERY_BEST];
    const size_t n = doc_index_find(w->all, weighted, best);
    size_t same = 0;
    for (size_t i = 0; n && i < s->nbest; i++)
        same += found_score(weighted, &s->best[i]) >=
                best[n - 1].score * (1 - 1e-12);
    return n ? (double)(same < n ? same : n) / (double)n : 1;
}

static void queries(struct sim_world *w, struct gossip_sim_result *out)
{
    unsigned asked = 0;
    struct gossip_search s;
    struct found found[QUERY_BEST];
    for (unsigned i = 0; i < w->spec->queries && !w->failed; i++) {
        struct query q;
        uint32_t which;
        const struct search_peer *p;
        if (!make_query(w, &q))
            continue;
        w->failed |= !search_new(&s, &w->peers[below(w, w->n - 1)], &q,
                                 w->spec->patience);
        while (!w->failed && !search_over(&s) && (p = search_next(&s, &which)))
            search_took(&s, which, found,
                        doc_index_find(w->indexes[node_at(&p->address)],
                                       &s.query, found));
        out->asked += (double)s.asked;
        out->with_words += (double)s.npeers;
        out->overlap += overlap_of(w, &s, &s.query);
        q = s.query;
        for (unsigned t = 0; t < q.n; t++)
            q.words[t].weight =
                log(1 + (double)w->all->ndocs /
                            (double)doc_index_with(w->all, q.words[t].hash));
        out->central += overlap_of(w, &s, &q);
        asked++;
        search_free(&s);
    }
    if (asked) {
        out->asked /= asked;
        out->with_words /= asked;
        out->overlap /= asked;
        out->central /= asked;
    }
}

bool gossip_sim(const struct gossip_sim_spec *spec,
                struct gossip_sim_result *out)
{
    struct sim_world w = { .spec = spec,
                           .n = (spec->peers ? spec->peers : 1000) + 1,
                           .random = spec->seed };
    bool same;
    *out = (struct gossip_sim_result){ .peers = w.n - 1 };
    if (spec->folder)
        w.all = doc_index_read(
            spec->folder, &(struct html_wish){ .tags = true }, NULL, &same);
    if (spec->folder && w.all && w.all->ndocs < w.n - 1)
        fail("%s: %zu documents; at least one is needed for each of %u peers",
             spec->folder, w.all->ndocs, w.n - 1);
    bool ok = spec->folder ? w.all && w.all->ndocs >= w.n - 1 : make_corpus(&w);
    if (ok && !world_peers(&w)) {
        fail("no memory for %u peers", w.n - 1);
        ok = false;
    }
    if (ok) {
        out->documents = (uint32_t)w.all->ndocs;
        for (uint32_t i = 0; i + 1 < w.n; i++) {
            out->words += (double)w.indexes[i]->nwords / (w.n - 1);
            out->summary +=
                (double)w.peers[i].entries[0].summary->nwhole / (w.n - 1);
        }
        queries(&w, out);
        run_intervals(&w, 10);
        out->idle = bytes_per_minute(&w, false);
        changes(&w, out);
        out->busy = bytes_per_minute(&w, true);
        run_intervals(&w, 20);
        out->join = join_one(&w);
        out->state = (double)w.peers[0].bytes +
                     (double)w.peers[0].room * sizeof(struct gossip_entry) +
                     (double)w.peers[0].nslots * sizeof(uint32_t);
        out->messages = sim_counts(w.sim).messages;
        out->bytes = sim_counts(w.sim).bytes;
        if (w.failed || sim_failed(w.sim)) {
            fail("no memory for the simulation");
            ok = false;
        }
    }
    world_free(&w);
    return ok;
}
