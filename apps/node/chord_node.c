/*
 * chord_node.c - a process that is one or more members of a ring
 *
 * One thread runs the loop of runtime.c: it is the host of the state machines
 * of chord.h and answers questions about the ring at once. Questions about
 * records need the disk, or other nodes, so they go to workers: some that may
 * forward, and some that never do, so that two nodes whose workers wait for
 * each other still answer each other. A keeper compares copies (chord_keep.c).
 */
#define _GNU_SOURCE
#include "apps/node/chord_node.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "wire/serving.h"
#include "report/say.h"

/* Of a question: which member asked whom, and its number. */
#define TAG(v, at, request) \
    ((uint64_t)(v) << 56 | (uint64_t)(at) << 32 | (request))

static struct node *node_of(const struct chord *m)
{
    return m->ctx;
}

static unsigned vnode_of(const struct chord *m)
{
    return (unsigned)(m - node_of(m)->members);
}

/* -------------------------------------------------------------------- views */

static void know(struct node *n, struct chord_peer p)
{
    const struct descriptor *const d = book_get(&n->book, p.at);
    for (size_t i = 0; d && i < n->nknown; i++)
        if (n->known[i].id == p.id)
            return;
    if (d && n->nknown < sizeof n->known / sizeof n->known[0])
        n->known[n->nknown++] = *d;
}

/* What workers may know, after a change. */
static void show_views(struct node *n)
{
    pthread_mutex_lock(&n->lock);
    n->nknown = 0;
    for (unsigned v = 0; v < n->spec.vnodes; v++) {
        const struct chord *const m = &n->members[v];
        struct node_view *const w = &n->views[v];
        w->in = m->phase == CHORD_IN;
        w->uncertain = m->uncertain;
        w->self = m->self;
        w->pred = m->pred;
        memcpy(w->succ, m->succ, sizeof w->succ);
        know(n, m->self);
        for (unsigned i = 0; i < n->ring.r; i++)
            know(n, m->succ[i]);
    }
    pthread_mutex_unlock(&n->lock);
}

/* The same list with numbers of the client's book. */
bool node_view(struct node *n, unsigned v, struct chord_client *c,
               struct node_view *out)
{
    pthread_mutex_lock(&n->lock);
    *out = n->views[v];
    for (unsigned i = 0; i < n->ring.r; i++) {
        uint32_t at = 0;
        for (size_t k = 0; k < n->nknown && !at && out->succ[i].at; k++)
            if (n->known[k].id == out->succ[i].id)
                at = book_add(&c->book, &n->known[k]);
        out->succ[i].at = at;
    }
    pthread_mutex_unlock(&n->lock);
    return out->in;
}

void node_client(const struct node *n, struct chord_client *c)
{
    client_init(c, &n->spec.params, &n->spec.secret, 4 * n->spec.patience);
    c->entries[0] = n->address;
    c->nentries = 1;
}

static void poke_keeper(struct node *n)
{
    pthread_mutex_lock(&n->lock);
    n->poked = true;
    pthread_cond_broadcast(&n->kept);
    pthread_mutex_unlock(&n->lock);
}

/* ----------------------------------------------------------------- the host */

static void node_send(struct chord *m, struct chord_peer to,
                      const struct chord_message *msg)
{
    struct node *const n = node_of(m);
    if (msg->answer) {
        /* Answers are made while their question is looked at. */
        n->answered = true;
        if (msg->refused) {
            runtime_refuse(n->runtime, n->line, &n->head, FRAME_REFUSED,
                           "not a member of the ring now");
            return;
        }
        wire_put_answer(&n->blob, &n->book, msg);
        runtime_answer(n->runtime, n->line, &n->head, 0, &n->blob);
        return;
    }
    const struct descriptor *const d = book_get(&n->book, to.at);
    const struct descriptor self = { m->self.id, (uint16_t)vnode_of(m),
                                     n->address, n->incarnation };
    const struct address nowhere = { 0 };
    wire_put_question(&n->blob, &n->book, msg, to.id, &self);
    runtime_ask(n->runtime, d ? &d->address : &nowhere, msg->type, 0, &n->blob,
                TAG(vnode_of(m), to.at, msg->request));
}

static void node_timer(struct chord *m, enum chord_timer t, uint64_t delay)
{
    runtime_after(node_of(m)->runtime, delay,
                  (uint64_t)vnode_of(m) << 8 | (uint64_t)t);
}

static void node_found(struct chord *m, const struct chord_found *f)
{
    (void)m;
    (void)f; /* the loop looks nothing up itself */
}

/* The next address to join through, in turn. */
static struct chord_peer an_entry(struct node *n)
{
    const size_t i = n->next_entry++ % n->spec.nentries;
    const struct address *const a = &n->spec.entries[i];
    const struct descriptor d = { descriptor_id(a, 0), 0, *a, 0 };
    return (struct chord_peer){ d.id, book_add(&n->book, &d) };
}

static void node_news(struct chord *m, enum chord_news what)
{
    struct node *const n = node_of(m);
    if (what == CHORD_ALONE) {
        warn("nobody in the list of successors answers: joining again");
        if (!m->nseen && n->spec.nentries)
            chord_join(m, an_entry(n), clock_ms());
        else if (!m->nseen)
            chord_alone(m, clock_ms());
    }
    show_views(n);
    poke_keeper(n);
}

static const struct chord_host node_host = { node_send, node_timer, node_found,
                                             node_news };

/* ----------------------------------------------------------------- the book */

static void mark_used(void *used, struct chord_peer p)
{
    ((bool *)used)[p.at] = true;
}

/* Peers name other peers, and a liar may name any number: entries that no
 * member's state mentions are dropped before the book is full. */
static void tidy_book(struct node *n)
{
    struct book *const b = &n->book;
    if (b->n - b->nfree < BOOK_MOST / 2)
        return;
    bool *const used = calloc(b->n + 1, sizeof *used);
    if (!used)
        return;
    for (unsigned v = 0; v < n->spec.vnodes; v++)
        chord_named(&n->members[v], mark_used, used);
    book_keep(b, used);
    free(used);
}

/* ------------------------------------------------------------------- status */

static void put_peer(struct node *n, struct chord_peer p)
{
    const struct descriptor *const d = book_get(&n->book, p.at);
    const struct descriptor none = { .id = p.id };
    wire_put_descriptor(&n->blob, d ? d : &none);
}

static void answer_status(struct node *n, uint64_t line, const struct frame *f)
{
    const struct store_counts s = store_counts(n->store);
    const struct runtime_counts r = runtime_counts(n->runtime);
    const struct names_state names = names_state(&n->names);
    struct blob *const b = &n->blob;
    blob_start(b);
    pthread_mutex_lock(&n->lock);
    const uint64_t numbers[] = {
        s.records,   s.bytes,      s.files,    s.tombs,       n->exchanges,
        n->fetched,  n->sent,      n->dropped, r.connections, r.asked,
        r.silent,    r.refused,    r.bytes_in, r.bytes_out,   r.bad,
        names.epoch, names.n,      names.in,   names.ready,   s.damaged,
        n->scrubbed, n->reclaimed,
    };
    pthread_mutex_unlock(&n->lock);
    blob_number(b, sizeof numbers / sizeof numbers[0], 1);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        blob_number(b, numbers[i], 8);
    blob_number(b, n->spec.vnodes, 1);
    blob_number(b, n->ring.r, 1);
    for (unsigned v = 0; v < n->spec.vnodes; v++) {
        const struct chord *const m = &n->members[v];
        blob_number(b, m->phase, 1);
        blob_number(b, m->uncertain, 1);
        put_peer(n, m->self);
        put_peer(n, m->pred);
        for (unsigned i = 0; i < n->ring.r; i++)
            put_peer(n, m->succ[i]);
        for (unsigned k = 0; k < 64; k++)
            blob_number(b, m->fing[k].at ? m->fing[k].id : m->self.id, 8);
    }
    runtime_answer(n->runtime, line, f, 0, b);
}

/* ---------------------------------------------------------------- questions */

static void answer_ring(struct node *n, uint64_t line, const struct frame *f)
{
    static struct chord_message m;
    uint64_t to;
    struct chord_peer from;
    tidy_book(n);
    if (!wire_get_question(f, &n->book, &m, &to, &from)) {
        runtime_refuse(n->runtime, line, f, FRAME_WRONG,
                       "a malformed question");
        return;
    }
    struct chord *at = NULL;
    for (unsigned v = 0; v < n->spec.vnodes && !at; v++)
        if (!to || n->members[v].self.id == to)
            at = &n->members[v];
    if (!at) {
        runtime_refuse(n->runtime, line, f, FRAME_REFUSED,
                       "that member is not here");
        return;
    }
    /* A message that speaks for a node must come from that node. */
    if ((m.type == CHORD_NOTIFY || m.type == CHORD_LEAVING) &&
        (!m.npeers || m.npeers > 2 || !m.peers[0].at ||
         m.peers[0].id != from.id)) {
        runtime_refuse(n->runtime, line, f, FRAME_WRONG, "not its own name");
        return;
    }
    n->line = line;
    n->head = *f;
    n->answered = false;
    m.request = f->request ? f->request : 1;
    chord_receive(at, from, &m, clock_ms());
    if (!n->answered) {
        blob_start(&n->blob);
        runtime_answer(n->runtime, line, f, 0, &n->blob);
    }
}

/* Services whose tags this member owns, or keeps for a neighbour. */
static void answer_service(struct node *n, uint64_t line, const struct frame *f)
{
    const uint64_t now = clock_ms();
    const char *why;
    services_expire(&n->services, now);
    const enum frame_error error =
        services_answer(&n->services, f, now, &n->blob, &why);
    if (error)
        runtime_refuse(n->runtime, line, f, error, why);
    else
        runtime_answer(n->runtime, line, f, 0, &n->blob);
}

static bool enqueue(struct node *n, uint64_t line, const struct frame *f)
{
    const bool forwards =
        f->type == NAMES_READ || f->type == NAMES_WRITE ||
        (f->type == CHORD_PUT && f->nbody > 8 && !(f->body[8] & CHORD_REPLICA));
    struct work w = { line, *f, malloc(f->nbody + 1), f->nbody };
    if (!w.body)
        return false;
    memcpy(w.body, f->body, f->nbody);
    w.head.body = NULL;
    pthread_mutex_lock(&n->lock);
    struct work_queue *const q = forwards ? &n->front : &n->back;
    const bool room = q->n < NODE_QUEUE;
    if (room) {
        q->at[(q->first + q->n++) % NODE_QUEUE] = w;
        pthread_cond_signal(&q->some); /* one thread for one question */
    }
    pthread_mutex_unlock(&n->lock);
    if (!room)
        free(w.body);
    return room;
}

static void on_question(void *ctx, uint64_t line, const struct frame *f)
{
    struct node *const n = ctx;
    switch (f->type) {
    case CHORD_PING:
    case CHORD_STATE:
    case CHORD_NOTIFY:
    case CHORD_STEP:
    case CHORD_LEAVING:
        answer_ring(n, line, f);
        break;
    case CHORD_STATUS:
        answer_status(n, line, f);
        break;
    case SERVICE_ANNOUNCE:
    case SERVICE_WITHDRAW:
    case SERVICE_LOOK:
        answer_service(n, line, f);
        break;
    case CHORD_LEAVE:
        pthread_mutex_lock(&n->lock);
        n->leaves = true;
        pthread_cond_broadcast(&n->kept);
        pthread_mutex_unlock(&n->lock);
        blob_start(&n->blob);
        runtime_answer(n->runtime, line, f, 0, &n->blob);
        break;
    default:
        if (!enqueue(n, line, f))
            runtime_refuse(n->runtime, line, f, FRAME_BUSY, "busy");
    }
}

static void on_answer(void *ctx, uint64_t tag, const struct frame *f)
{
    struct node *const n = ctx;
    static struct chord_message m;
    struct chord *const at = &n->members[(tag >> 56) % NODE_VNODES];
    const uint32_t whom = tag >> 32 & 0xffffff;
    const struct descriptor *const d = book_get(&n->book, whom);
    const uint32_t request = (uint32_t)tag;
    if (!request)
        return; /* of a notification */
    tidy_book(n);
    if (!f || !wire_get_answer(f, &n->book, &m)) {
        chord_silent(at, request, clock_ms());
    } else {
        m.request = request;
        chord_receive(at, (struct chord_peer){ d ? d->id : 0, d ? whom : 0 },
                      &m, clock_ms());
    }
    show_views(n);
}

/* ------------------------------------------------------- timers and signals */

static void on_timer(void *ctx, uint64_t data)
{
    struct node *const n = ctx;
    const enum chord_timer t = (enum chord_timer)(data & 255);
    struct chord *const m = &n->members[(data >> 8) % NODE_VNODES];
    if (t == CHORD_NTIMERS) { /* goodbyes are out */
        runtime_stop(n->runtime);
        return;
    }
    if (t == CHORD_TIMER_JOIN && m->phase == CHORD_JOINING && n->spec.nentries)
        m->join_via = an_entry(n);
    chord_tick(m, t, clock_ms());
    show_views(n);
}

static void on_wake(void *ctx)
{
    struct node *const n = ctx;
    pthread_mutex_lock(&n->lock);
    struct done *d = n->done;
    n->done = NULL;
    const bool gone = n->gone;
    n->gone = false;
    if (serving_told() && !n->leaves) {
        n->leaves = true;
        pthread_cond_broadcast(&n->kept);
    }
    pthread_mutex_unlock(&n->lock);
    while (d) {
        struct done *const next = d->next;
        if (d->error)
            runtime_refuse(n->runtime, d->line, &d->head, d->error, d->text);
        else
            runtime_answer(n->runtime, d->line, &d->head, 0, &d->body);
        blob_free(&d->body);
        free(d);
        d = next;
    }
    if (gone) {
        for (unsigned v = 0; v < n->spec.vnodes; v++)
            chord_leave(&n->members[v], clock_ms());
        show_views(n);
        runtime_after(n->runtime, 300, CHORD_NTIMERS);
    }
    if (serving_told() > 1)
        runtime_stop(n->runtime);
}

/* ------------------------------------------------------------------ workers */

static void *worker(struct node *n, struct work_queue *q)
{
    struct chord_client *const c = malloc(sizeof *c);
    if (!c)
        return NULL;
    node_client(n, c);
    pthread_mutex_lock(&n->lock);
    while (!n->ends) {
        if (!q->n) {
            pthread_cond_wait(&q->some, &n->lock);
            continue;
        }
        struct work w = q->at[q->first];
        q->first = (q->first + 1) % NODE_QUEUE;
        q->n--;
        pthread_mutex_unlock(&n->lock);
        struct done *const d = calloc(1, sizeof *d);
        /* Nothing in it is needed from one question to the next. */
        if (c->book.n > BOOK_MOST / 2)
            book_free(&c->book);
        if (d) {
            d->line = w.line;
            d->head = w.head;
            node_serve(n, c, &w, d);
        }
        free(w.body);
        pthread_mutex_lock(&n->lock);
        if (d) {
            d->next = n->done;
            n->done = d;
        }
        /* Not with the lock, which the loop takes at once. */
        pthread_mutex_unlock(&n->lock);
        runtime_wake(n->runtime);
        pthread_mutex_lock(&n->lock);
    }
    pthread_mutex_unlock(&n->lock);
    client_free(c);
    free(c);
    return NULL;
}

static void *front_worker(void *node)
{
    return worker(node, &((struct node *)node)->front);
}

static void *back_worker(void *node)
{
    return worker(node, &((struct node *)node)->back);
}

/* ----------------------------------------------------------------- one life */

static void node_start_members(struct node *n)
{
    const uint64_t now = clock_ms();
    for (unsigned v = 0; v < n->spec.vnodes; v++) {
        const struct descriptor d = { descriptor_id(&n->address, v),
                                      (uint16_t)v, n->address, n->incarnation };
        const struct chord_peer self = { d.id, book_add(&n->book, &d) };
        chord_init(&n->members[v], &n->ring, &node_host, n, self,
                   n->walks + v * n->ring.walks, n->incarnation ^ d.id);
    }
    show_views(n);
    for (unsigned v = 0; v < n->spec.vnodes; v++)
        if (n->spec.nentries)
            chord_join(&n->members[v], an_entry(n), now);
        else if (!v)
            chord_alone(&n->members[v], now);
        else
            chord_join(&n->members[v], n->members[0].self, now);
    show_views(n);
}

static bool start_threads(struct node *n)
{
    for (size_t i = 0; i < 2 * NODE_WORKERS + 2; i++) {
        void *(*const run)(void *) = i == 2 * NODE_WORKERS       ? node_keeper
                                     : i == 2 * NODE_WORKERS + 1 ? node_ruler
                                     : i < NODE_WORKERS          ? front_worker
                                                                 : back_worker;
        const int error = pthread_create(&n->threads[i], NULL, run, n);
        if (error)
            return refuse("no thread: %s", strerror(error));
        n->nthreads++;
    }
    return true;
}

static void end_threads(struct node *n)
{
    pthread_mutex_lock(&n->lock);
    n->ends = true;
    pthread_cond_broadcast(&n->front.some);
    pthread_cond_broadcast(&n->back.some);
    pthread_cond_broadcast(&n->kept);
    pthread_mutex_unlock(&n->lock);
    for (size_t i = 0; i < n->nthreads; i++)
        pthread_join(n->threads[i], NULL);
    while (n->done) {
        struct done *const d = n->done;
        n->done = d->next;
        blob_free(&d->body);
        free(d);
    }
    struct work_queue *const queues[] = { &n->front, &n->back };
    for (unsigned i = 0; i < 2; i++)
        while (queues[i]->n) {
            free(queues[i]->at[queues[i]->first].body);
            queues[i]->first = (queues[i]->first + 1) % NODE_QUEUE;
            queues[i]->n--;
        }
}

static void node_free(struct node *n)
{
    runtime_free(n->runtime);
    free(n->unused);
    if (n->named)
        names_free(&n->names);
    store_close(n->store);
    book_free(&n->book);
    blob_free(&n->blob);
    services_free(&n->services);
    free(n->walks);
    free(n);
}

int node_run(const struct node_spec *spec)
{
    struct node *const n = calloc(1, sizeof *n);
    if (!n)
        return fail("no memory for a node");
    n->spec = *spec;
    n->services.most = NODE_SERVICES;
    n->ring = (struct chord_ring){ .bits = 64,
                                   .r = (unsigned)spec->params.r,
                                   .fingers = 4,
                                   .walks = 12,
                                   .stabilise = spec->period,
                                   .check = spec->period,
                                   .finger = spec->period,
                                   .merge = 60 * spec->period,
                                   .join = spec->period,
                                   .dead_for = 30 * spec->period,
                                   .dead_most = 600 * spec->period };
    n->walks = calloc(spec->vnodes * n->ring.walks, sizeof *n->walks);
    pthread_mutex_init(&n->lock, NULL);
    pthread_cond_init(&n->front.some, NULL);
    pthread_cond_init(&n->back.some, NULL);
    pthread_condattr_t steady;
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&n->kept, &steady);
    pthread_condattr_destroy(&steady);
    n->incarnation = serving_life();
    n->reclaimed_at = clock_ms();
    const int listener = address_listen(spec->listen, &n->address);
    n->store = listener >= 0 && n->walks ? store_open(spec->folder) : NULL;
    const struct runtime_spec how = {
        .listener = listener,
        .secret = &n->spec.secret,
        .ring = wire_ring(spec->params.name, 64, n->ring.r,
                          (unsigned)spec->params.copies),
        .least = spec->patience,
        .question = on_question,
        .answer = on_answer,
        .timer = on_timer,
        .woken = on_wake,
        .ctx = n,
    };
    n->runtime = n->store && node_names_open(n) ? runtime_new(&how) : NULL;
    int status = TROUBLE;
    if (n->runtime) {
        signal(SIGXFSZ, SIG_IGN); /* a limit is a full disk */
        serving_begin(n->runtime, &n->address);
        if (start_threads(n)) {
            node_start_members(n);
            status = runtime_run(n->runtime) ? YES : TROUBLE;
        }
        end_threads(n);
        serving_end();
    }
    if (listener >= 0)
        close(listener);
    node_free(n);
    return status;
}
