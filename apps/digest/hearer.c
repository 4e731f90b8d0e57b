/*
 * hearer.c - the digests of peers, kept up to date by what they tell
 *
 * A thread for each peer connects, says which version is here, and applies
 * updates. Whatever is wrong with one of them ends the connection, and the next
 * greeting asks for the whole digest; the last good one stays until then. A
 * peer that goes on being wrong is asked ever more rarely, up to five minutes.
 *
 * What a peer may cost: the memory of two digests of --max-size, and one update
 * in UPDATE_MS, or in the time that RATE bytes per second take. Meanwhile
 * nothing is read from it, and TCP holds it back. A digest that is more than
 * 65 % full is refused, so that a peer cannot claim to have everything.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "apps/digest/hearer.h"
#include "base/clock.h"
#include "report/say.h"
#include "wire/session.h"

#define CONNECT_MS 10000
#define RETRY_MOST_MS 300000
#define UPDATE_MS 20           /* between two updates */
#define RATE ((size_t)8 << 20) /* bytes per second */

struct hearer {
    struct hearers *all;
    const struct peer *peer;
    struct address at;
    pthread_t thread;
    bool runs;
    bool whole; /* ask for the whole digest: a delta was wrong */
    unsigned nfailed;
    struct digest_trouble trouble;
    int fd; /* of the connection, under the lock; -1: none */

    struct digest_state state; /* under the lock, as all below */
    bly_foreign *f;            /* of its bytes */
    struct peer_counts counts;
};

struct hearers {
    const struct secure_secret *secret;
    uint64_t max_size;
    pthread_mutex_t lock;
    pthread_cond_t news;
    bool ended;
    size_t n;
    struct hearer each[];
};

/* ----------------------------------------------------------------- updates */

/* Wait, but not past the end. False: it is the end. */
static bool hearer_sleep(struct hearers *h, uint64_t ms)
{
    const struct timespec until = clock_after((int64_t)ms);
    pthread_mutex_lock(&h->lock);
    while (!h->ended && !pthread_cond_timedwait(&h->news, &h->lock, &until))
        ;
    const bool goes_on = !h->ended;
    pthread_mutex_unlock(&h->lock);
    return goes_on;
}

/* Whoever asks meets the old digest or the new one, whole. */
static bool hearer_take(struct hearer *l, const struct bytes *update, char *why,
                        size_t room)
{
    const bly_foreign_spec spec = { .format = "squid" };
    struct hearers *const h = l->all;
    struct digest_state next = { 0 };
    bly_foreign *f = NULL;
    enum update_was was = update_take(&l->state, update->at, update->n,
                                      h->max_size, &next, why, room);
    if (was == UPDATE_TAKEN &&
        bly_foreign_open(&spec, next.bytes, next.nbytes, &f)) {
        snprintf(why, room, "%s", bly_error());
        was = UPDATE_WRONG;
    }
    pthread_mutex_lock(&h->lock);
    if (was == UPDATE_TAKEN) {
        bly_foreign_free(l->f);
        free(l->state.bytes);
        l->state = next;
        l->f = f;
        next.bytes = NULL;
        const bool whole = update_is_whole(update->at, update->n);
        l->counts.heard = true;
        l->counts.entries = get_be(l->state.bytes + 8, 4);
        l->counts.wholes += whole;
        l->counts.deltas += !whole;
        pthread_cond_broadcast(&h->news);
    } else {
        l->counts.refused++;
    }
    pthread_mutex_unlock(&h->lock);
    free(next.bytes);
    l->whole = was != UPDATE_TAKEN;
    return was == UPDATE_TAKEN;
}

/* ------------------------------------------------------------- a connection */

static bool hearer_greet(struct hearer *l, struct session *s)
{
    unsigned char asks[16] = { 0 };
    if (!session_connect(s, &l->at, session_within(CONNECT_MS)))
        return false;
    pthread_mutex_lock(&l->all->lock);
    const bool ended = l->all->ended;
    l->fd = s->in.fd;
    l->counts.greetings++;
    pthread_mutex_unlock(&l->all->lock);
    if (ended)
        return false;
    if (!l->whole) {
        put_le(asks, l->state.is.life, 8);
        put_le(asks + 8, l->state.is.version, 8);
    }
    const struct frame ask = { .type = TELL_ASK,
                               .body = asks,
                               .nbody = sizeof asks };
    return session_greet(s, true, NULL, session_within(CONNECT_MS)) &&
           session_send(s, &ask, session_within(CONNECT_MS));
}

/* What it tells, until something is wrong. */
static void hearer_listen(struct hearer *l, struct session *s, char *why,
                          size_t room)
{
    struct bytes update = { 0 };
    struct frame f;
    bool goes_on = hearer_greet(l, s);
    while (goes_on) {
        const uint64_t before = s->in.moved;
        if (!session_receive(s, &f, session_within(TELL_SILENT_MS)))
            break;
        pthread_mutex_lock(&l->all->lock);
        l->counts.bytes += s->in.moved - before;
        pthread_mutex_unlock(&l->all->lock);
        if (f.type == TELL_ALIVE && !update.n) {
            goes_on = hearer_sleep(l->all, UPDATE_MS);
            continue;
        }
        if ((f.type != TELL_PART && f.type != TELL_UPDATE) ||
            update.n + f.nbody > l->all->max_size ||
            !bytes_put(&update, f.body, f.nbody)) {
            snprintf(why, room,
                     "it sends something other than updates, or too much");
            break;
        }
        if (f.type == TELL_PART)
            continue;
        if (!hearer_take(l, &update, why, room))
            break;
        trouble_over(&l->trouble, l->peer->text);
        l->nfailed = 0;
        const uint64_t costs = update.n * 1000 / RATE;
        update.n = 0;
        session_trim(s);
        goes_on = hearer_sleep(l->all, costs > UPDATE_MS ? costs : UPDATE_MS);
    }
    if (!why[0])
        snprintf(why, room, "%s", session_why(s));
    free(update.at);
}

static void *hearer_run(void *arg)
{
    struct hearer *const l = arg;
    struct hearers *const h = l->all;
    do {
        char why[512] = "";
        struct session s = { .protocol = TELL_PROTOCOL,
                             .secret = h->secret,
                             .most = TELL_PIECE + 64 };
        hearer_listen(l, &s, why, sizeof why);
        pthread_mutex_lock(&h->lock);
        l->fd = -1;
        const bool ended = h->ended;
        pthread_mutex_unlock(&h->lock);
        session_close(&s);
        if (ended)
            break;
        trouble_tell(&l->trouble, l->peer->text, why, l->state.bytes);
    } while (
        hearer_sleep(h, (uint64_t)retry_wait(++l->nfailed, RETRY_MOST_MS)));
    return NULL;
}

/* ------------------------------------------------------------------ asking */

bool hearers_ask(struct hearers *h, size_t i, bly_bytes key)
{
    uint64_t bit = 0;
    pthread_mutex_lock(&h->lock);
    const bly_foreign *const f = h->each[i].f;
    const bool may = f && !bly_foreign_has(f, &key, 1, &bit, NULL) && bit & 1;
    pthread_mutex_unlock(&h->lock);
    return may;
}

struct peer_counts hearers_count(struct hearers *h, size_t i)
{
    pthread_mutex_lock(&h->lock);
    const struct peer_counts n = h->each[i].counts;
    pthread_mutex_unlock(&h->lock);
    return n;
}

bool hearers_wait(struct hearers *h, uint64_t ms)
{
    const struct timespec until = clock_after((int64_t)ms);
    bool all = false, late = false;
    pthread_mutex_lock(&h->lock);
    while (!all && !late) {
        all = true;
        for (size_t i = 0; i < h->n; i++)
            all &= h->each[i].counts.heard;
        late = !all && pthread_cond_timedwait(&h->news, &h->lock, &until);
    }
    pthread_mutex_unlock(&h->lock);
    return all;
}

/* ------------------------------------------------------ beginning and end */

struct hearers *hearers_open(const struct peer *peers, size_t n,
                             uint64_t max_size,
                             const struct secure_secret *secret)
{
    struct hearers *const h = calloc(1, sizeof *h + n * sizeof *h->each);
    bool ok = h || refuse("out of memory");
    if (!ok)
        return NULL;
    h->secret = secret;
    h->max_size = max_size;
    h->n = n;
    pthread_mutex_init(&h->lock, NULL);
    clock_condition(&h->news);
    for (size_t i = 0; i < n && ok; i++) {
        struct hearer *const l = &h->each[i];
        *l = (struct hearer){ .all = h, .peer = &peers[i], .fd = -1 };
        ok = address_parse(peers[i].text + peers[i].nname + 1, &l->at);
    }
    for (size_t i = 0; i < n && ok; i++) {
        struct hearer *const l = &h->each[i];
        l->runs = pthread_create(&l->thread, NULL, hearer_run, l) == 0;
        ok = l->runs || refuse("no thread for a peer");
    }
    if (ok)
        return h;
    hearers_close(h);
    return NULL;
}

void hearers_close(struct hearers *h)
{
    if (!h)
        return;
    pthread_mutex_lock(&h->lock);
    h->ended = true;
    for (size_t i = 0; i < h->n; i++)
        if (h->each[i].fd >= 0)
            shutdown(h->each[i].fd, SHUT_RDWR);
    pthread_cond_broadcast(&h->news);
    pthread_mutex_unlock(&h->lock);
    for (size_t i = 0; i < h->n; i++) {
        if (h->each[i].runs)
            pthread_join(h->each[i].thread, NULL);
        bly_foreign_free(h->each[i].f);
        free(h->each[i].state.bytes);
    }
    pthread_cond_destroy(&h->news);
    pthread_mutex_destroy(&h->lock);
    free(h);
}
