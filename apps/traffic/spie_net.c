/*
 * spie_net.c - digest tables that are asked over the network
 *
 * A question is answered at once, from memory, so that a loop of one thread
 * (wire/runtime.h) with its bounds is all that a router needs. The walk is that
 * of trace with files (spie_walk()): no router is asked twice.
 */
#define _GNU_SOURCE
#include "apps/traffic/spie_net.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "report/say.h"
#include "wire/call.h"
#include "wire/runtime.h"

#define SPIE_QUESTION 112
#define SPIE_RING 0x626c79737069 /* of its frames: "blyspi" */
#define LEAST 250                /* of the loop's timeouts: it asks nobody */
#define PATIENCE 2000
#define ALL_MS 60000 /* of a trace: routers may name any number of others */
#define NEIGHBOURS 64

struct neighbour {
    char name[SPIE_NAME];
    struct address at;
};

/* -------------------------------------------------------------------- bodies
 */

static void put_bytes(struct blob *b, const void *at, size_t n)
{
    blob_number(b, n, 1);
    blob_bytes(b, at, n);
}

static bool take_known(struct body *b, struct spie_packet *out)
{
    const size_t n = (size_t)body_number(b, 1);
    const unsigned char *const at = body_bytes(b, n);
    if (!at || n > SPIE_BYTES)
        return false;
    memset(out, 0, sizeof *out);
    out->len = (uint8_t)n;
    memcpy(out->at, at, n);
    return true;
}

/* Names are printed: no bytes that a terminal obeys. */
static bool take_name(struct body *b, char out[SPIE_NAME])
{
    const size_t n = (size_t)body_number(b, 1);
    const unsigned char *const at = body_bytes(b, n);
    if (!at || !n || n >= SPIE_NAME)
        return false;
    for (size_t i = 0; i < n; i++)
        if (at[i] <= ' ' || at[i] == 0x7f)
            return false;
    memcpy(out, at, n);
    out[n] = '\0';
    return true;
}

/* ------------------------------------------------------------------- a router
 */

struct spie_server {
    char name[SPIE_NAME];
    struct neighbour neighbours[NEIGHBOURS];
    size_t n;
    struct secure_secret secret;
    struct runtime *runtime;
    struct blob blob;
    pthread_t thread;
    pthread_mutex_t lock;
    bool ends; /* under the lock */
    int listener;
    spie_answers *asks;
    void *ctx;
};

static void server_question(void *ctx, uint64_t line, const struct frame *f)
{
    struct spie_server *const s = ctx;
    struct body b = { .at = f->body, .n = f->nbody };
    struct spie_packet p, was = { 0 };
    enum spie_change change = (enum spie_change)0;
    const int64_t from = (int64_t)body_number(&b, 8);
    const int64_t to = (int64_t)body_number(&b, 8);
    if (f->type != SPIE_QUESTION || !take_known(&b, &p) || b.bad || b.n) {
        runtime_refuse(s->runtime, line, f, FRAME_WRONG,
                       "no question about a packet");
        return;
    }
    const enum spie_answer said = s->asks(s->ctx, from, to, &p, &was, &change);
    blob_start(&s->blob);
    blob_number(&s->blob, said, 1);
    blob_number(&s->blob, said == SPIE_CHANGED ? change : 0, 1);
    put_bytes(&s->blob, was.at, said == SPIE_CHANGED ? was.len : 0);
    put_bytes(&s->blob, s->name, strlen(s->name));
    blob_number(&s->blob, s->n, 1);
    for (size_t i = 0; i < s->n; i++) {
        const struct neighbour *const n = &s->neighbours[i];
        put_bytes(&s->blob, n->name, strlen(n->name));
        blob_number(&s->blob, n->at.family, 1);
        blob_bytes(&s->blob, n->at.at, 16);
        blob_number(&s->blob, n->at.port, 2);
    }
    runtime_answer(s->runtime, line, f, 0, &s->blob);
}

static void server_answer(void *ctx, uint64_t tag, const struct frame *f)
{
    (void)ctx; /* it asks nothing */
    (void)tag;
    (void)f;
}

static void server_timer(void *ctx, uint64_t data)
{
    (void)ctx;
    (void)data;
}

static void server_woken(void *ctx)
{
    struct spie_server *const s = ctx;
    pthread_mutex_lock(&s->lock);
    const bool ends = s->ends;
    pthread_mutex_unlock(&s->lock);
    if (ends)
        runtime_stop(s->runtime);
}

static void *server_run(void *ctx)
{
    struct spie_server *const s = ctx;
    runtime_run(s->runtime);
    return NULL;
}

static bool neighbours_set(struct spie_server *s, const struct list *texts)
{
    for (size_t i = 0; i < texts->n; i++) {
        const char *const text = texts->at[i], *const equals =
                                                   strchr(text, '=');
        const size_t n = equals ? (size_t)(equals - text) : 0;
        if (s->n == NEIGHBOURS)
            return refuse("--neighbour: at most %d", NEIGHBOURS);
        struct neighbour *const to = &s->neighbours[s->n++];
        if (!n || n >= SPIE_NAME)
            return refuse("--neighbour: %s; expected NAME=ADDRESS:PORT", text);
        memcpy(to->name, text, n);
        if (!address_parse(equals + 1, &to->at))
            return false;
    }
    return true;
}

static void server_free(struct spie_server *s)
{
    runtime_free(s->runtime);
    if (s->listener >= 0)
        close(s->listener);
    blob_free(&s->blob);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

struct spie_server *spie_serve(const char *name, const struct digest_args *args,
                               spie_answers *asks, void *ctx)
{
    struct spie_server *const s = calloc(1, sizeof *s);
    struct address at;
    char text[ADDRESS_TEXT];
    if (!s) {
        fail("out of memory");
        return NULL;
    }
    pthread_mutex_init(&s->lock, NULL);
    s->listener = -1;
    s->asks = asks;
    s->ctx = ctx;
    snprintf(s->name, sizeof s->name, "%s", name);
    const bool ok = secure_read(args->ask_key, &s->secret) &&
                    neighbours_set(s, &args->neighbours) &&
                    (s->listener = address_listen(args->listen, &at)) >= 0;
    const struct runtime_spec how = { .listener = s->listener,
                                      .secret = &s->secret,
                                      .ring = SPIE_RING,
                                      .least = LEAST,
                                      .question = server_question,
                                      .answer = server_answer,
                                      .timer = server_timer,
                                      .woken = server_woken,
                                      .ctx = s };
    s->runtime = ok ? runtime_new(&how) : NULL;
    if (s->runtime) {
        if (pthread_create(&s->thread, NULL, server_run, s) == 0) {
            address_text(&at, text);
            note("%s answers questions on %s", s->name, text);
            return s;
        }
        fail("no thread for questions");
    }
    server_free(s);
    return NULL;
}

void spie_serve_end(struct spie_server *s)
{
    pthread_mutex_lock(&s->lock);
    s->ends = true;
    pthread_mutex_unlock(&s->lock);
    runtime_wake(s->runtime);
    pthread_join(s->thread, NULL);
    server_free(s);
}

/* ----------------------------------------------------------------- who traces
 */

struct spie_asker {
    struct spie_net *net;
    struct address *at; /* by the number of the router */
    int64_t from, to;
    struct secure_secret secret;
    struct caller call;
    struct blob blob;
    uint64_t until;
};

void spie_asker_free(struct spie_asker *a)
{
    call_close(&a->call);
    blob_free(&a->blob);
    free(a->at);
    free(a);
}

struct spie_asker *spie_asker_new(const struct trace_args *args, int64_t from,
                                  int64_t to, struct spie_net *net)
{
    struct spie_asker *const a = calloc(1, sizeof *a);
    bool ok = a && (a->at = calloc(SPIE_ROUTERS, sizeof *a->at));
    if (!ok)
        fail("out of memory");
    ok = ok && address_parse(args->ask, &a->at[0]) &&
         secure_read(args->ask_key, &a->secret);
    if (ok) {
        a->net = net;
        a->from = from;
        a->to = to;
        a->call.secret = &a->secret;
        a->call.ring = SPIE_RING;
        a->until = clock_ms() + ALL_MS;
        a->call.timeout = args->patience ? args->patience : PATIENCE;
        /* Until it says what it is called. */
        ok = spie_net_router(net, args->ask, true) == 0 ||
             refuse("--ask: %s: too long", args->ask);
    }
    if (ok)
        return a;
    if (a)
        spie_asker_free(a);
    return NULL;
}

/* A neighbour that a router has named. The first to name it says where it is.
 */
static bool neighbour_take(struct spie_asker *a, size_t router, struct body *b)
{
    char name[SPIE_NAME];
    struct address at = { 0 };
    if (!take_name(b, name))
        return false;
    at.family = (uint8_t)body_number(b, 1);
    const unsigned char *const bytes = body_bytes(b, 16);
    at.port = (uint16_t)body_number(b, 2);
    if (!bytes || (at.family != 4 && at.family != 6))
        return false;
    memcpy(at.at, bytes, 16);
    size_t other = spie_net_router(a->net, name, false);
    if (other == SPIE_NOBODY && a->net->nnames < SPIE_ROUTERS) {
        other = spie_net_router(a->net, name, true);
        if (other != SPIE_NOBODY)
            a->at[other] = at;
    }
    return other == SPIE_NOBODY || other == router ||
           spie_net_link(a->net, router, other);
}

bool spie_asker_hear(struct spie_asker *a, size_t router, const struct frame *f,
                     enum spie_answer *said, struct spie_packet *was,
                     enum spie_change *change)
{
    struct body b = { .at = f->body, .n = f->nbody };
    char name[SPIE_NAME];
    const unsigned answer = (unsigned)body_number(&b, 1);
    const unsigned how = (unsigned)body_number(&b, 1);
    if (answer > SPIE_FORGOTTEN || how > SPIE_FRAGMENT ||
        !take_known(&b, was) ||
        (answer == SPIE_CHANGED && (!how || !was->len)) || !take_name(&b, name))
        return false;
    /* The first one is known by its address until now. */
    if (router == 0 && spie_net_router(a->net, name, false) == SPIE_NOBODY)
        memcpy(a->net->names[0], name, SPIE_NAME);
    for (unsigned n = (unsigned)body_number(&b, 1); n > 0; n--)
        if (!neighbour_take(a, router, &b))
            return false;
    *said = (enum spie_answer)answer;
    *change = (enum spie_change)how;
    return !b.bad && !b.n;
}

enum spie_answer spie_asker_ask(void *ctx, size_t router,
                                const struct spie_packet *p,
                                struct spie_packet *was,
                                enum spie_change *change)
{
    struct spie_asker *const a = ctx;
    enum spie_answer said = SPIE_ABSENT;
    struct frame answer;
    if (clock_ms() > a->until)
        return SPIE_ABSENT;
    blob_start(&a->blob);
    blob_number(&a->blob, (uint64_t)a->from, 8);
    blob_number(&a->blob, (uint64_t)a->to, 8);
    put_bytes(&a->blob, p->at, p->len);
    if (!call_ask(&a->call, &a->at[router], SPIE_QUESTION, &a->blob, &answer) ||
        call_error(&a->call, &answer))
        warn("%s: %s", a->net->names[router], a->call.why);
    else if (!spie_asker_hear(a, router, &answer, &said, was, change)) {
        warn("%s: what it answers makes no sense", a->net->names[router]);
        said = SPIE_ABSENT;
    }
    return said;
}
