/*
 * teller.c - telling others what changed in a digest
 *
 * Each version is packed once, as a delta from the one before. The last deltas
 * are kept, as long as they are smaller than the whole digest all together: a
 * listener that was away for longer is better served by that.
 *
 * A thread for each listener, and a gate before them. It looks for a newer
 * version whenever one is published, and sends with a deadline, so that one
 * that does not read is cut off and costs nobody else anything.
 */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/digest/teller.h"
#include "base/clock.h"
#include "report/say.h"
#include "wire/serving.h"
#include "wire/session.h"

#define KEPT 256 /* deltas at most */

/* Packed bytes that several threads may be sending. */
struct packed {
    unsigned char *at;
    size_t n;
    unsigned users;
};

struct listener {
    struct teller *teller;
    int fd;
    struct listener *next;
};

struct teller {
    const struct secure_secret *secret;
    int fd;
    struct gate *gate;
    pthread_mutex_t lock; /* all below */
    pthread_cond_t news;  /* a version, the end, or one that left */
    bool ended;
    struct digest_state now;
    struct packed *whole;       /* of now; NULL: not packed yet */
    struct packed *delta[KEPT]; /* to now.version, to the one before, ... */
    size_t ndeltas, delta_bytes;
    struct listener *listeners;
    struct teller_counts counts;
};

/* ---------------------------------------------------------------- versions */

static struct packed *packed_new(const struct digest_state *from,
                                 const struct digest_state *to)
{
    struct bytes b = { 0 };
    struct packed *const p = malloc(sizeof *p);
    if (p && update_pack(from, to, &b)) {
        *p = (struct packed){ b.at, b.n, 1 };
        return p;
    }
    free(b.at);
    free(p);
    return NULL;
}

/* Under the lock, as the two below. NULL is allowed. */
static void packed_drop(struct packed *p)
{
    if (p && --p->users == 0) {
        free(p->at);
        free(p);
    }
}

static void deltas_drop(struct teller *t, size_t from)
{
    for (size_t i = from; i < t->ndeltas; i++) {
        t->delta_bytes -= t->delta[i]->n;
        packed_drop(t->delta[i]);
    }
    t->ndeltas = from < t->ndeltas ? from : t->ndeltas;
}

/* `p` leads to the newest version; those that together are larger than the
 * digest go, beginning with the oldest. */
static void deltas_add(struct teller *t, struct packed *p)
{
    if (!p || update_is_whole(p->at, p->n)) {
        packed_drop(p);
        deltas_drop(t, 0);
        return;
    }
    deltas_drop(t, KEPT - 1);
    memmove(t->delta + 1, t->delta, t->ndeltas * sizeof *t->delta);
    t->delta[0] = p;
    t->ndeltas++;
    t->delta_bytes += p->n;
    while (t->ndeltas > 1 && t->delta_bytes > t->now.nbytes)
        deltas_drop(t, t->ndeltas - 1);
}

void teller_publish(struct teller *t, unsigned char *bytes, size_t nbytes)
{
    pthread_mutex_lock(&t->lock);
    const struct digest_state next = {
        { t->now.is.life, t->now.is.version + 1 }, bytes, nbytes
    };
    deltas_add(t, t->now.bytes ? packed_new(&t->now, &next) : NULL);
    packed_drop(t->whole);
    t->whole = NULL;
    free(t->now.bytes);
    t->now = next;
    t->counts.versions++;
    pthread_cond_broadcast(&t->news);
    pthread_mutex_unlock(&t->lock);
}

/* What somebody with this version needs next; NULL: nothing, or no memory. */
static struct packed *packed_next(struct teller *t,
                                  const struct digest_version *has)
{
    static const struct digest_state none;
    struct packed *p = NULL;
    const uint64_t behind = t->now.is.version - has->version;
    if (has->life == t->now.is.life && behind == 0)
        return NULL;
    if (has->life == t->now.is.life && has->version && behind <= t->ndeltas)
        p = t->delta[behind - 1];
    if (!p && t->now.bytes) {
        if (!t->whole)
            t->whole = packed_new(&none, &t->now);
        p = t->whole;
    }
    if (p)
        p->users++;
    return p;
}

/* --------------------------------------------------------------- listeners */

static bool send_frame(struct session *s, uint8_t type, const unsigned char *at,
                       size_t n)
{
    const struct frame f = { .type = type, .body = at, .nbody = n };
    return session_send(s, &f, session_within(TELL_STEP_MS));
}

static bool send_update(struct session *s, const struct packed *p)
{
    size_t at = 0;
    while (p->n - at > TELL_PIECE) {
        if (!send_frame(s, TELL_PART, p->at + at, TELL_PIECE))
            return false;
        at += TELL_PIECE;
    }
    return send_frame(s, TELL_UPDATE, p->at + at, p->n - at);
}

/* Where an update leads to is in its head. */
static struct digest_version leads_to(const struct packed *p)
{
    return (struct digest_version){ get_le(p->at + 1, 8),
                                    get_le(p->at + 17, 8) };
}

/* Under the lock, which it leaves meanwhile: send what is new; false: the end.
 */
static bool tell_next(struct teller *t, struct session *s,
                      struct digest_version *has)
{
    struct packed *const p = packed_next(t, has);
    if (!p) {
        const struct timespec until = clock_after(TELL_ALIVE_MS);
        if (pthread_cond_timedwait(&t->news, &t->lock, &until) == 0 || t->ended)
            return !t->ended;
        pthread_mutex_unlock(&t->lock);
        const bool alive = send_frame(s, TELL_ALIVE, NULL, 0);
        pthread_mutex_lock(&t->lock);
        return alive && !t->ended;
    }
    pthread_mutex_unlock(&t->lock);
    const uint64_t before = s->out.moved;
    const bool sent = send_update(s, p);
    pthread_mutex_lock(&t->lock);
    if (sent) {
        *has = leads_to(p);
        const bool whole = update_is_whole(p->at, p->n);
        t->counts.wholes += whole;
        t->counts.deltas += !whole;
        *(whole ? &t->counts.whole_bytes : &t->counts.delta_bytes) +=
            s->out.moved - before;
        t->counts.would_be += t->now.nbytes;
    }
    packed_drop(p);
    return sent && !t->ended;
}

static bool listener_asks(struct session *s, struct digest_version *has)
{
    struct frame f;
    if (!session_greet(s, false, NULL, session_within(TELL_STEP_MS)) ||
        !session_receive(s, &f, session_within(TELL_STEP_MS)) ||
        f.type != TELL_ASK || f.nbody != 16)
        return false;
    *has = (struct digest_version){ get_le(f.body, 8), get_le(f.body + 8, 8) };
    return true;
}

static void *listener_run(void *arg)
{
    struct listener *const l = arg;
    struct teller *const t = l->teller;
    struct digest_version has;
    struct session s = { .protocol = TELL_PROTOCOL,
                         .secret = t->secret,
                         .most = 64 };
    session_over(&s, l->fd, l->fd);
    const bool asks = listener_asks(&s, &has);
    if (asks)
        gate_asked(t->gate, l->fd);
    else if (!s.ended)
        note("a listener was sent away: %s",
             session_why(&s)[0] ? session_why(&s) : "it asks for nothing");
    pthread_mutex_lock(&t->lock);
    t->counts.listeners += asks;
    for (bool more = asks && !t->ended; more;)
        more = tell_next(t, &s, &has);
    for (struct listener **at = &t->listeners; *at; at = &(*at)->next)
        if (*at == l) {
            *at = l->next;
            break;
        }
    gate_left(t->gate, l->fd);
    session_close(&s);
    free(l);
    pthread_cond_broadcast(&t->news);
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

static bool listener_enter(void *ctx, int fd, const struct sockaddr *from,
                           socklen_t nfrom)
{
    struct teller *const t = ctx;
    const int on = 1;
    pthread_t thread;
    (void)from, (void)nfrom;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct listener *const l = calloc(1, sizeof *l);
    pthread_mutex_lock(&t->lock);
    bool ok = l && !t->ended;
    if (ok) {
        *l = (struct listener){ t, fd, t->listeners };
        ok = pthread_create(&thread, NULL, listener_run, l) == 0;
    }
    if (ok) {
        t->listeners = l;
        pthread_detach(thread);
    }
    pthread_mutex_unlock(&t->lock);
    if (!ok) {
        gate_left(t->gate, fd);
        free(l);
        close(fd);
    }
    return ok;
}

/* ------------------------------------------------------ beginning and end */

struct teller *teller_open(const char *listen, const struct gate_limits *limits,
                           const struct secure_secret *secret,
                           struct address *at)
{
    struct teller *const t = calloc(1, sizeof *t);
    if (!t) {
        fail("out of memory");
        return NULL;
    }
    t->secret = secret;
    t->now.is.life = serving_life();
    pthread_mutex_init(&t->lock, NULL);
    clock_condition(&t->news);
    t->fd = address_listen(listen, at);
    if (t->fd >= 0 && gate_open(&t->gate, t->fd, limits, listener_enter, t))
        return t;
    if (t->fd >= 0)
        fail("no memory, or no thread, for listeners");
    teller_close(t);
    return NULL;
}

struct teller_counts teller_count(struct teller *t)
{
    pthread_mutex_lock(&t->lock);
    const struct teller_counts n = t->counts;
    pthread_mutex_unlock(&t->lock);
    return n;
}

void teller_close(struct teller *t)
{
    if (!t)
        return;
    if (t->gate)
        gate_shut(t->gate);
    pthread_mutex_lock(&t->lock);
    t->ended = true;
    for (struct listener *l = t->listeners; l; l = l->next)
        shutdown(l->fd, SHUT_RDWR);
    pthread_cond_broadcast(&t->news);
    while (t->listeners)
        pthread_cond_wait(&t->news, &t->lock);
    pthread_mutex_unlock(&t->lock);
    gate_free(t->gate);
    if (t->fd >= 0)
        close(t->fd);
    deltas_drop(t, 0);
    packed_drop(t->whole);
    free(t->now.bytes);
    pthread_cond_destroy(&t->news);
    pthread_mutex_destroy(&t->lock);
    free(t);
}
