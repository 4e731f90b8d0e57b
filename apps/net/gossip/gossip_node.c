/*
 * gossip_node.c - a peer over TCP
 *
 * The loop of runtime.h has the state machine and the searches. Two threads
 * work beside it, since both read files: one looks at the folder now and then
 * and makes a new index when it has changed, the other answers questions for
 * documents, of which only so many may wait. An index is shared by counting.
 */
#define _GNU_SOURCE
#include "apps/net/gossip/gossip_node.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/random.h>
#include <unistd.h>

#include "apps/net/gossip/doc_index.h"
#include "apps/net/gossip/gossip_wire.h"
#include "base/clock.h"
#include "wire/serving.h"
#include "report/say.h"

#define PEER_SEARCHES 16
#define PEER_QUEUE 64
#define PEER_SEEDS 8
#define TAG_SEARCH (UINT64_C(1) << 63)

uint64_t gossip_network(void)
{
    return word_hash((bly_bytes){ "bloomery gossip 1", 17 });
}

struct shared_index {
    unsigned refs; /* under the lock */
    struct doc_index *index;
};

/* A question for documents that waits, and the answer to one. */
struct peer_work {
    uint64_t line;
    struct frame head; /* without its body */
    struct query query;
    struct blob body; /* of the answer */
    struct peer_work *next;
};

struct peer_search {
    bool used;
    uint16_t life;
    uint64_t line;
    struct frame head;
    struct gossip_search search;
};

struct peer {
    struct gossip_rules rules;
    struct gossip gossip;
    struct runtime *runtime;
    struct address address;
    struct secure_secret secret;
    const char *folder;
    struct html_wish pages;
    uint64_t rescan, started;
    unsigned vain;
    struct blob blob;
    struct peer_search searches[PEER_SEARCHES];
    uint64_t documents, words, left_out;

    /* Shared with the threads. */
    pthread_mutex_t lock;
    pthread_cond_t asked, look;
    struct shared_index *index, *fresh; /* in use; just made */
    struct peer_work *waits, **last, *done;
    size_t nwaits;
    bool ends;
};

/* ---------------------------------------------------------------- the index */

/* With the lock. */
static void index_drop(struct shared_index *x)
{
    if (!x || --x->refs)
        return;
    doc_index_free(x->index);
    free(x);
}

static struct shared_index *index_share(struct doc_index *index)
{
    struct shared_index *const x = malloc(sizeof *x);
    if (!x) {
        doc_index_free(index);
        return NULL;
    }
    *x = (struct shared_index){ 1, index };
    return x;
}

/* The loop: a new index has been made. */
static void index_came(struct peer *p, struct shared_index *x)
{
    uint64_t *const words = doc_index_words(x->index);
    const struct gossip_entry *const self = &p->gossip.entries[0];
    struct summary *const s = words ? summary_new(words, x->index->nwords,
                                                  self->summary, self->version)
                                    : NULL;
    free(words);
    pthread_mutex_lock(&p->lock);
    index_drop(p->index);
    p->index = x;
    pthread_mutex_unlock(&p->lock);
    p->documents = x->index->ndocs;
    p->words = x->index->nwords;
    p->left_out = x->index->left_out;
    if (s)
        gossip_publish(&p->gossip, s, clock_ms());
    else
        warn("%s: too many words for one filter; others are not told",
             p->folder);
    summary_drop(s);
}

/* Wait, with the lock, for a while of a clock that nobody sets. */
static void wait_ms(struct peer *p, pthread_cond_t *c, uint64_t ms)
{
    const struct timespec t = clock_after((int64_t)ms);
    pthread_cond_timedwait(c, &p->lock, &t);
}

static void *scanner(void *ctx)
{
    struct peer *const p = ctx;
    uint64_t state = 0;
    bool any = false, gone = false;
    pthread_mutex_lock(&p->lock);
    while (!p->ends) {
        bool same;
        pthread_mutex_unlock(&p->lock);
        /* A folder that is away keeps its documents until it is back; those
         * that cannot be read are found nowhere. */
        const bool away = any && access(p->folder, R_OK | X_OK) != 0;
        if (away && !gone)
            warn("%s: %s; its documents wait for it", p->folder,
                 strerror(errno));
        gone = away;
        struct doc_index *const x =
            away ? NULL
                 : doc_index_read(p->folder, &p->pages, any ? &state : NULL,
                                  &same);
        struct shared_index *const shared = x ? index_share(x) : NULL;
        if (shared) {
            state = x->state;
            any = true;
        }
        pthread_mutex_lock(&p->lock);
        if (shared) {
            index_drop(p->fresh);
            p->fresh = shared;
            runtime_wake(p->runtime);
        }
        if (!p->ends)
            wait_ms(p, &p->look, p->rescan);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* ---------------------------------------------------------------- documents */

/* The best documents for a query, as the body of an answer; those that have
 * gone since are left out. */
static void answer_query(const struct doc_index *x, struct peer_work *w)
{
    struct found *const best = calloc(w->query.k, sizeof *best);
    char(*const contexts)[FOUND_CONTEXT] =
        malloc(w->query.k * sizeof *contexts);
    size_t n = 0, found = 0;
    if (best && contexts && x)
        found = doc_index_find(x, &w->query, best);
    for (size_t i = 0; i < found; i++) {
        size_t len = 0;
        if (!doc_context(x, &w->query, best[i].path.ptr, contexts[n], &len))
            continue;
        best[n] = best[i];
        best[n].context = (bly_bytes){ contexts[n], len };
        n++;
    }
    found_put(&w->body, &w->query, best, n);
    free(best);
    free(contexts);
}

static void *answerer(void *ctx)
{
    struct peer *const p = ctx;
    pthread_mutex_lock(&p->lock);
    while (!p->ends) {
        struct peer_work *const w = p->waits;
        if (!w) {
            pthread_cond_wait(&p->asked, &p->lock);
            continue;
        }
        p->waits = w->next;
        if (!p->waits)
            p->last = &p->waits;
        p->nwaits--;
        struct shared_index *const x = p->index;
        if (x)
            x->refs++;
        pthread_mutex_unlock(&p->lock);
        answer_query(x ? x->index : NULL, w);
        pthread_mutex_lock(&p->lock);
        index_drop(x);
        w->next = p->done;
        p->done = w;
        runtime_wake(p->runtime);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static void take_query(struct peer *p, uint64_t line, const struct frame *f)
{
    struct peer_work *const w = calloc(1, sizeof *w);
    bool room = w;
    if (w && !query_get(f, &w->query, true)) {
        free(w);
        runtime_refuse(p->runtime, line, f, FRAME_WRONG,
                       "a malformed question");
        return;
    }
    if (w) {
        w->line = line;
        w->head = *f;
        w->head.body = NULL;
        pthread_mutex_lock(&p->lock);
        room = p->nwaits < PEER_QUEUE;
        if (room) {
            *p->last = w;
            p->last = &w->next;
            p->nwaits++;
            pthread_cond_signal(&p->asked);
        }
        pthread_mutex_unlock(&p->lock);
    }
    if (!room) {
        free(w);
        runtime_refuse(p->runtime, line, f, FRAME_BUSY, "busy");
    }
}

/* ----------------------------------------------------------------- searches */

static void put_score(struct blob *b, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    blob_number(b, bits, 8);
}

static void search_end(struct peer *p, struct peer_search *s)
{
    const struct gossip_search *const r = &s->search;
    struct blob *const b = &p->blob;
    blob_start(b);
    blob_number(b, r->known, 4);
    blob_number(b, r->npeers, 4);
    blob_number(b, r->asked, 4);
    blob_number(b, r->silent, 4);
    blob_number(b, r->nbest, 2);
    for (size_t i = 0; i < r->nbest; i++) {
        gossip_put_address(b, &r->peers[r->best[i].peer].address);
        put_score(b, r->best[i].score);
        text_put(b, r->best[i].path);
        text_put(b, r->best[i].context);
    }
    runtime_answer(p->runtime, s->line, &s->head, 0, b);
    search_free(&s->search);
    s->used = false;
    s->life++;
}

static void search_on(struct peer *p, struct peer_search *s)
{
    const struct search_peer *to;
    uint32_t which;
    while ((to = search_next(&s->search, &which))) {
        query_put(&p->blob, &s->search.query, true);
        runtime_ask(p->runtime, &to->address, GOSSIP_QUERY, 0, &p->blob,
                    TAG_SEARCH | (uint64_t)(s - p->searches) << 48 |
                        (uint64_t)s->life << 32 | which);
    }
    if (search_over(&s->search))
        search_end(p, s);
}

static void take_search(struct peer *p, uint64_t line, const struct frame *f)
{
    struct query q;
    struct peer_search *s = NULL;
    if (!query_get(f, &q, false)) {
        runtime_refuse(p->runtime, line, f, FRAME_WRONG,
                       "a malformed question");
        return;
    }
    for (size_t i = 0; i < PEER_SEARCHES && !s; i++)
        if (!p->searches[i].used)
            s = &p->searches[i];
    if (!s) {
        runtime_refuse(p->runtime, line, f, FRAME_BUSY, "busy");
        return;
    }
    s->used = true;
    s->line = line;
    s->head = *f;
    s->head.body = NULL;
    if (search_new(&s->search, &p->gossip, &q, p->vain)) {
        search_on(p, s);
        return;
    }
    search_free(&s->search);
    s->used = false;
    runtime_refuse(p->runtime, line, f, FRAME_BUSY, "no memory");
}

static void search_heard(struct peer *p, uint64_t tag, const struct frame *f)
{
    struct peer_search *const s =
        &p->searches[(tag >> 48 & 0x7fff) % PEER_SEARCHES];
    struct found found[QUERY_BEST];
    if (!s->used || s->life != (uint16_t)(tag >> 32))
        return;
    const int n = f && !(f->flags & FRAME_ERROR)
                      ? found_get(f, &s->search.query, found)
                      : -1;
    search_took(&s->search, (uint32_t)tag, n < 0 ? NULL : found,
                n < 0 ? 0 : (size_t)n);
    search_on(p, s);
}

/* ------------------------------------------------------------ the directory */

static void answer_list(struct peer *p, uint64_t line, const struct frame *f)
{
    const struct gossip *const g = &p->gossip;
    const struct runtime_counts r = runtime_counts(p->runtime);
    const uint64_t numbers[PEER_NUMBERS] = {
        [PEER_DOCUMENTS] = p->documents,
        [PEER_WORDS] = p->words,
        [PEER_LEFT_OUT] = p->left_out,
        [PEER_RUMOURS] = g->counts.rumours,
        [PEER_COMPARED] = g->counts.compared,
        [PEER_FETCHED] = g->counts.fetched,
        [PEER_DELTAS] = g->counts.deltas,
        [PEER_SILENT] = g->counts.silent,
        [PEER_REFUSED] = g->counts.refused + r.refused,
        [PEER_HOT] = gossip_hot(g),
        [PEER_BYTES_IN] = r.bytes_in,
        [PEER_BYTES_OUT] = r.bytes_out,
        [PEER_BAD] = r.bad,
        [PEER_MILLISECONDS] = clock_ms() - p->started,
    };
    struct blob *const b = &p->blob;
    blob_start(b);
    for (size_t i = 0; i < PEER_NUMBERS; i++)
        blob_number(b, numbers[i], 8);
    blob_number(b, g->n, 4);
    for (size_t i = 0; i < g->n; i++) {
        const struct gossip_entry *const e = &g->entries[i];
        gossip_put_address(b, &e->address);
        blob_number(b, e->version, 8);
        blob_number(b, e->summary ? e->summary->nwhole : 0, 4);
        blob_number(b, e->silent, 1);
    }
    runtime_answer(p->runtime, line, f, 0, b);
}

static void peer_ask(struct gossip *g, const struct address *to,
                     const struct gossip_message *m)
{
    struct peer *const p = g->ctx;
    gossip_put(&p->blob, m);
    runtime_ask(p->runtime, to, m->type, 0, &p->blob, m->request);
}

static void peer_timer(struct gossip *g, enum gossip_timer t, uint64_t delay)
{
    const struct peer *const p = g->ctx;
    runtime_after(p->runtime, delay, (uint64_t)t);
}

static const struct gossip_host peer_host = { peer_ask, peer_timer };

static void take_gossip(struct peer *p, uint64_t line, const struct frame *f)
{
    struct gossip_message m, back = { 0 };
    if (!gossip_get(&p->gossip, f->type, false, f->body, f->nbody, &m)) {
        runtime_refuse(p->runtime, line, f, FRAME_WRONG,
                       "a malformed question");
        return;
    }
    if (gossip_question(&p->gossip, &m, &back, clock_ms())) {
        gossip_put(&p->blob, &back);
        runtime_answer(p->runtime, line, f, 0, &p->blob);
    } else {
        runtime_refuse(p->runtime, line, f, FRAME_BUSY, "no memory");
    }
    gossip_message_free(&back);
    gossip_message_free(&m);
}

/* -------------------------------------------------------- the loop's events */

static void peer_question(void *ctx, uint64_t line, const struct frame *f)
{
    struct peer *const p = ctx;
    if (f->type == GOSSIP_QUERY)
        take_query(p, line, f);
    else if (f->type == GOSSIP_SEARCH)
        take_search(p, line, f);
    else if (f->type == GOSSIP_LIST)
        answer_list(p, line, f);
    else
        take_gossip(p, line, f);
}

static void peer_answer(void *ctx, uint64_t tag, const struct frame *f)
{
    struct peer *const p = ctx;
    struct gossip_message m;
    if (tag & TAG_SEARCH) {
        search_heard(p, tag, f);
        return;
    }
    const struct gossip *const g = &p->gossip;
    uint8_t type = 0;
    for (size_t i = 0; i < GOSSIP_ASKED; i++)
        if (g->asked[i].request == (uint32_t)tag)
            type = g->asked[i].type;
    if (!f || f->flags & FRAME_ERROR ||
        !gossip_get(g, type, true, f->body, f->nbody, &m)) {
        gossip_silent(&p->gossip, (uint32_t)tag, clock_ms());
        return;
    }
    gossip_answer(&p->gossip, (uint32_t)tag, &m, clock_ms());
    gossip_message_free(&m);
}

static void peer_tick(void *ctx, uint64_t data)
{
    struct peer *const p = ctx;
    gossip_tick(&p->gossip, (enum gossip_timer)data, clock_ms());
}

static void peer_woken(void *ctx)
{
    struct peer *const p = ctx;
    if (serving_told()) {
        runtime_stop(p->runtime);
        return;
    }
    pthread_mutex_lock(&p->lock);
    struct shared_index *const fresh = p->fresh;
    struct peer_work *w = p->done;
    p->fresh = NULL;
    p->done = NULL;
    pthread_mutex_unlock(&p->lock);
    if (fresh)
        index_came(p, fresh);
    while (w) {
        struct peer_work *const next = w->next;
        runtime_answer(p->runtime, w->line, &w->head, 0, &w->body);
        blob_free(&w->body);
        free(w);
        w = next;
    }
}

/* ----------------------------------------------------------------- one life */

static void works_free(struct peer_work *w)
{
    while (w) {
        struct peer_work *const next = w->next;
        blob_free(&w->body);
        free(w);
        w = next;
    }
}

static int peer_run(struct peer *p)
{
    pthread_t threads[2];
    void *(*const jobs[])(void *) = { scanner, answerer };
    unsigned n = 0;
    int status = TROUBLE;
    for (; n < 2; n++) {
        const int error = pthread_create(&threads[n], NULL, jobs[n], p);
        if (error) {
            fail("no thread: %s", strerror(error));
            break;
        }
    }
    if (n == 2) {
        gossip_start(&p->gossip, clock_ms());
        status = runtime_run(p->runtime) ? YES : TROUBLE;
    }
    pthread_mutex_lock(&p->lock);
    p->ends = true;
    pthread_cond_broadcast(&p->asked);
    pthread_cond_broadcast(&p->look);
    pthread_mutex_unlock(&p->lock);
    while (n)
        pthread_join(threads[--n], NULL);
    return status;
}

static void peer_free(struct peer *p)
{
    for (size_t i = 0; i < PEER_SEARCHES; i++)
        if (p->searches[i].used)
            search_free(&p->searches[i].search);
    runtime_free(p->runtime);
    gossip_free(&p->gossip);
    index_drop(p->index);
    index_drop(p->fresh);
    works_free(p->waits);
    works_free(p->done);
    blob_free(&p->blob);
    free(p);
}

static bool peer_seeds(const struct peer_args *a, struct address *seeds)
{
    if (a->join.n > PEER_SEEDS)
        return refuse("--join may be given %d times", PEER_SEEDS);
    for (size_t i = 0; i < a->join.n; i++)
        if (!address_parse(a->join.at[i], &seeds[i]))
            return false;
    return true;
}

int gossip_peer(const struct peer_args *a, const char *folder)
{
    struct address seeds[PEER_SEEDS];
    struct peer *const p = calloc(1, sizeof *p);
    if (!p)
        return fail("no memory for a peer");
    const uint64_t interval = a->interval ? a->interval : PEER_INTERVAL;
    p->rules = (struct gossip_rules){ .interval = interval,
                                      .compare = 8 * interval,
                                      .enough = 4,
                                      .dead = 600 * interval,
                                      .most_peers = GOSSIP_PEERS,
                                      .most_bytes = (uint64_t)256 << 20 };
    p->folder = folder;
    p->pages = a->pages;
    p->rescan = a->rescan ? a->rescan : PEER_RESCAN;
    p->vain = (unsigned)a->vain;
    p->last = &p->waits;
    p->started = clock_ms();
    pthread_mutex_init(&p->lock, NULL);
    pthread_condattr_t steady;
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&p->asked, &steady);
    pthread_cond_init(&p->look, &steady);
    pthread_condattr_destroy(&steady);
    int listener = -1;
    if (access(folder, R_OK | X_OK))
        fail_path(folder, errno);
    else if (peer_seeds(a, seeds) && secure_read(a->key, &p->secret))
        listener = address_listen(a->listen, &p->address);
    const struct runtime_spec how = {
        .listener = listener,
        .secret = &p->secret,
        .ring = gossip_network(),
        .least = a->patience ? a->patience : PEER_PATIENCE,
        .question = peer_question,
        .answer = peer_answer,
        .timer = peer_tick,
        .woken = peer_woken,
        .ctx = p,
    };
    const uint64_t version = serving_life();
    uint64_t seed = version ^ gossip_id(&p->address), chance;
    if (getrandom(&chance, sizeof chance, 0) == (ssize_t)sizeof chance)
        seed ^= chance;
    int status = TROUBLE;
    if (listener >= 0)
        p->runtime = runtime_new(&how);
    if (p->runtime &&
        gossip_init(&p->gossip, &p->rules, &peer_host, p, &p->address, seeds,
                    a->join.n, version, seed)) {
        serving_begin(p->runtime, &p->address);
        status = peer_run(p);
        serving_end();
    }
    if (listener >= 0)
        close(listener);
    peer_free(p);
    return status;
}
