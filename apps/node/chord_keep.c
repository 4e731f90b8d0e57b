/*
 * chord_keep.c - records of a node: answering for them, and keeping copies
 *
 * The owner of a key and the next R - 1 members of other processes hold it. A
 * put goes to the owner, which writes it durably, hands it to the others, and
 * says how many copies there are. Everything else is one comparison, repeated
 * every period and after every change of neighbours:
 *
 *     exchange   the owner compares its range with each holder, by sums of 256
 *                buckets, and where they differ by lists; what one lacks, or
 *                has in an older version, the other gives. So joiners fetch
 *                their range, and lost copies are made again.
 *     strays     records of other owners: if this node is not among their
 *                holders, and all of these have them, they are dropped here.
 *                Those who lack them get them first.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "apps/node/chord_node.h"
#include "base/clock.h"

/* ---------------------------------------------------------------- answering */

static void say_error(struct done *d, enum frame_error e, const char *text)
{
    d->error = e;
    d->text = text;
}

static void serve_get(struct node *n, struct body *b, struct done *d)
{
    const unsigned char *const digest = body_bytes(b, STORE_DIGEST);
    const bool wants = body_number(b, 1) == 1;
    unsigned char *data = NULL;
    struct stored r;
    if (b->bad || b->n) {
        say_error(d, FRAME_WRONG, "a malformed GET");
        return;
    }
    switch (store_get(n->store, digest, &r, wants ? &data : NULL)) {
    case STORE_OK:
        break;
    case STORE_NONE:
        say_error(d, FRAME_NOT_FOUND, "not here");
        return;
    case STORE_DAMAGED:
        say_error(d, FRAME_DAMAGED, "damaged here");
        return;
    default:
        say_error(d, FRAME_BUSY, "it cannot be read at the moment");
        return;
    }
    stored_put(&d->body, &r);
    if (wants)
        blob_bytes(&d->body, data, r.nbytes);
    free(data);
}

bool node_owns(struct node *n, uint64_t to, uint64_t id, unsigned *v)
{
    bool mine = false;
    pthread_mutex_lock(&n->lock);
    for (unsigned i = 0; i < n->spec.vnodes && !mine; i++) {
        const struct node_view *const w = &n->views[i];
        mine = w->in && (!to || to == w->self.id) &&
               chord_within(w->pred.id, id, w->self.id);
        *v = i;
    }
    pthread_mutex_unlock(&n->lock);
    return mine;
}

static void serve_put(struct node *n, struct chord_client *c, uint64_t to,
                      struct body *b, struct done *d)
{
    struct stored r;
    unsigned v = 0, copies = 1;
    const bool replica = (body_number(b, 1) & CHORD_REPLICA) != 0;
    stored_take(b, &r);
    r.nbytes = (uint32_t)b->n;
    /* Names have versions and are kept elsewhere (chord_names.c). */
    if (b->bad || b->n > STORE_MOST || r.flags || !stored_genuine(&r, b->at)) {
        say_error(d, FRAME_WRONG,
                  "a malformed block, or one that differs from its digest");
        return;
    }
    r.counter = 1;
    r.writer = r.when = 0;
    if (!replica && !node_owns(n, to, store_id(r.digest), &v)) {
        say_error(d, FRAME_NOT_MINE, "not the owner");
        return;
    }
    struct chord_peer holders[CHORD_MOST_SUCC];
    uint32_t requests[CHORD_MOST_SUCC];
    size_t got = 0;
    if (!replica) {
        struct node_view w;
        const size_t most = CALL_LINES - 1, want = n->spec.params.copies - 1;
        if (node_view(n, v, c, &w))
            got = chord_holders(&c->book, &n->address, w.succ, n->ring.r,
                                want < most ? want : most, holders);
        /* All write at the same time. */
        for (size_t i = 0; i < got; i++)
            client_send_copy(c, holders[i], &r, b->at, &requests[i]);
    }
    const enum store_result here = store_put(n->store, &r, b->at);
    for (size_t i = 0; i < got; i++)
        copies += client_copied(c, holders[i], &r, b->at, requests[i]);
    switch (here) {
    case STORE_OK:
        break;
    case STORE_NOT_NOW:
        say_error(d, FRAME_BUSY,
                  "it cannot be kept at the moment: too many open files, or no "
                  "memory");
        return;
    default:
        say_error(d, FRAME_FULL, "it could not be written to the disk");
        return;
    }
    if (!replica && copies < names_state(&n->names).least) {
        say_error(d, names_alone(&n->names) ? FRAME_NOT_SOON : FRAME_BUSY,
                  "fewer copies than wanted were made");
        return;
    }
    blob_number(&d->body, copies, 1);
    blob_number(&d->body, n->spec.reclaim, 8); /* so long it is safe */
}

static void serve_list(struct node *n, struct body *b, struct done *d)
{
    const uint64_t from = body_number(b, 8), to = body_number(b, 8);
    const unsigned char *const after =
        body_number(b, 1) ? body_bytes(b, STORE_DIGEST) : NULL;
    struct stored *const list = malloc(CLIENT_LIST * sizeof *list);
    if (b->bad || !list) {
        say_error(d, FRAME_WRONG, "a malformed LIST");
    } else {
        const size_t found = store_list(n->store, STORE_BLOCKS, from, to, after,
                                        list, CLIENT_LIST);
        blob_number(&d->body, found, 2);
        for (size_t i = 0; i < found; i++)
            stored_put(&d->body, &list[i]);
    }
    free(list);
}

static void serve_range(struct node *n, struct body *b, struct done *d)
{
    uint64_t buckets[256];
    const uint64_t from = body_number(b, 8), to = body_number(b, 8);
    if (b->bad) {
        say_error(d, FRAME_WRONG, "a malformed RANGE");
        return;
    }
    store_summary(n->store, STORE_BLOCKS, from, to, buckets);
    for (unsigned i = 0; i < 256; i++)
        blob_number(&d->body, buckets[i], 8);
}

void node_serve(struct node *n, struct chord_client *c, struct work *w,
                struct done *d)
{
    struct body b = { w->body, w->nbody, false };
    const uint64_t to = body_number(&b, 8);
    blob_start(&d->body);
    switch (w->head.type) {
    case CHORD_GET:
        serve_get(n, &b, d);
        break;
    case CHORD_PUT:
        serve_put(n, c, to, &b, d);
        break;
    case CHORD_LIST:
        serve_list(n, &b, d);
        break;
    case CHORD_RANGE:
        serve_range(n, &b, d);
        break;
    case CHORD_USES:
        node_serve_uses(n, &b, d);
        break;
    case CHORD_UNUSED:
        node_serve_unused(n, &b, d);
        break;
    default:
        if (w->head.type < NAMES_WHO || w->head.type >= NAMES_END) {
            say_error(d, FRAME_WRONG, "a question of an unknown type");
            break;
        }
        d->error = names_serve(&n->names, c, w->head.type, w->body, w->nbody,
                               &d->body, &d->text);
    }
}

/* ----------------------------------------------------------------- exchange */

struct keeping {
    struct node *n;
    struct chord_client c;
    struct stored here[CLIENT_LIST], there[CLIENT_LIST];
};

static void count(struct node *n, uint64_t *what)
{
    pthread_mutex_lock(&n->lock);
    ++*what;
    pthread_mutex_unlock(&n->lock);
}

static bool keeper_ends(struct node *n)
{
    pthread_mutex_lock(&n->lock);
    const bool ends = n->ends;
    pthread_mutex_unlock(&n->lock);
    return ends;
}

static bool give_record(struct keeping *k, struct chord_peer to,
                        const struct stored *r)
{
    unsigned char *data = NULL;
    struct stored whole;
    if (store_get(k->n->store, r->digest, &whole, &data) != STORE_OK)
        return false;
    const enum frame_error e =
        client_put_to(&k->c, to, &whole, data, true, NULL);
    free(data);
    if (!e)
        count(k->n, &k->n->sent);
    return !e || e == FRAME_STALE;
}

static bool fetch_record(struct keeping *k, struct chord_peer from,
                         const struct stored *r)
{
    unsigned char *data = NULL;
    struct stored whole;
    if (client_get_from(&k->c, from, r->digest, true, &whole, &data))
        return false;
    const enum store_result kept = store_put(k->n->store, &whole, data);
    const bool ok = kept == STORE_OK || kept == STORE_STALE;
    free(data);
    if (ok)
        count(k->n, &k->n->fetched);
    return ok;
}

/* Bring (a, b] here and at a holder to the same state. False: not all of it
 * could be done. */
static bool exchange_with(struct keeping *k, struct chord_peer p, uint64_t a,
                          uint64_t b)
{
    uint64_t mine[256], its[256];
    bool ok = true;
    store_summary(k->n->store, STORE_BLOCKS, a, b, mine);
    if (!client_summary(&k->c, p, a, b, its))
        return false;
    if (memcmp(mine, its, sizeof mine) == 0)
        return true;
    /* Both lists go up from a: they are merged page by page, up to where the
     * shorter one of two full pages ends. */
    unsigned char after[STORE_DIGEST];
    bool first = true;
    for (;;) {
        const size_t nh =
            store_list(k->n->store, STORE_BLOCKS, a, b, first ? NULL : after,
                       k->here, CLIENT_LIST);
        const int nt =
            client_list(&k->c, p, a, b, first ? NULL : after, k->there);
        if (nt < 0 || keeper_ends(k->n))
            return false;
        size_t h = 0, t = 0;
        const bool more_here = nh == CLIENT_LIST;
        const bool more_there = nt == CLIENT_LIST;
        while (h < nh || t < (size_t)nt) {
            int order = h == nh ? 1 : t == (size_t)nt ? -1 : 0;
            /* Nothing is known yet about ids past the end of a full page. */
            if ((order > 0 && more_here) || (order < 0 && more_there))
                break;
            if (!order) {
                const uint64_t x = store_id(k->here[h].digest) - a - 1;
                const uint64_t y = store_id(k->there[t].digest) - a - 1;
                order = x != y ? (x < y ? -1 : 1)
                               : memcmp(k->here[h].digest, k->there[t].digest,
                                        STORE_DIGEST);
            }
            const struct stored *const r =
                order > 0 ? &k->there[t] : &k->here[h];
            if (order < 0) {
                ok &= give_record(k, p, r);
            } else if (order > 0) {
                ok &= fetch_record(k, p, r);
            } else if (store_newer(&k->here[h], &k->there[t])) {
                ok &= give_record(k, p, r);
            } else if (store_newer(&k->there[t], &k->here[h])) {
                ok &= fetch_record(k, p, &k->there[t]);
            }
            memcpy(after, r->digest, STORE_DIGEST);
            h += order <= 0;
            t += order >= 0;
        }
        if ((!more_here && !more_there) || (h == 0 && t == 0))
            return ok;
        first = false;
    }
}

static bool exchange(struct keeping *k, unsigned v, size_t holders_wanted)
{
    struct node_view w;
    struct chord_peer holders[CHORD_MOST_SUCC];
    bool ok = true;
    if (!node_view(k->n, v, &k->c, &w) || !w.in)
        return false;
    const size_t n = chord_holders(&k->c.book, &k->n->address, w.succ,
                                   k->n->ring.r, holders_wanted, holders);
    for (size_t i = 0; i < n && !keeper_ends(k->n); i++)
        ok &= exchange_with(k, holders[i], w.pred.id, w.self.id);
    return ok;
}

/* ------------------------------------------------------------------- strays */

/* A record of which another process is the owner: drop it if it is not this
 * node's to keep, and all who have to hold it do. */
static void settle_stray(struct keeping *k, const struct chord_found *f,
                         const struct stored *r)
{
    struct chord_peer holders[CHORD_MOST_SUCC + 1];
    const struct address *const owner = client_address(&k->c, f->owner);
    if (!owner)
        return;
    holders[0] = f->owner;
    const size_t n =
        1 + chord_holders(&k->c.book, owner, f->peers + 1, f->npeers - 1,
                          k->n->spec.params.copies - 1, holders + 1);
    for (size_t i = 0; i < n; i++) {
        const struct address *const at = client_address(&k->c, holders[i]);
        if (at && address_equal(at, &k->n->address))
            return; /* it is this node's to keep */
    }
    bool all = n == k->n->spec.params.copies;
    for (size_t i = 0; i < n; i++) {
        struct stored there;
        const enum frame_error e =
            client_get_from(&k->c, holders[i], r->digest, false, &there, NULL);
        if (e || store_newer(r, &there)) {
            all = false;
            if (!e || e == FRAME_NOT_FOUND)
                give_record(k, holders[i], r);
        }
    }
    if (all) {
        store_drop(k->n->store, r->digest);
        count(k->n, &k->n->dropped);
    }
}

static bool is_mine(struct node *n, uint64_t id)
{
    unsigned v;
    return node_owns(n, 0, id, &v);
}

static void settle_strays(struct keeping *k)
{
    unsigned char after[STORE_DIGEST];
    bool first = true, known = false;
    struct chord_found f;
    size_t n;
    do {
        n = store_list(k->n->store, STORE_BLOCKS, UINT64_MAX, UINT64_MAX,
                       first ? NULL : after, k->here, CLIENT_LIST);
        for (size_t i = 0; i < n && !keeper_ends(k->n); i++) {
            const struct stored *const r = &k->here[i];
            const uint64_t id = store_id(r->digest);
            if (is_mine(k->n, id))
                continue;
            /* Ids go up, so that one answer serves a whole range. */
            known = known && f.npeers &&
                    chord_within(f.peers[0].id, id, f.owner.id);
            if (!known)
                known = client_owner(&k->c, id, &f);
            if (known)
                settle_stray(k, &f, r);
        }
        if (n)
            memcpy(after, k->here[n - 1].digest, STORE_DIGEST);
        first = false;
    } while (n == CLIENT_LIST && !keeper_ends(k->n));
}

/* --------------------------------------------------------------- the thread */

/* Sleep until the next period, or until somebody reports a change. */
static void keeper_waits(struct node *n)
{
    /* As of `kept`: nobody sets it. */
    const struct timespec t = clock_after((int64_t)n->spec.exchange);
    pthread_mutex_lock(&n->lock);
    while (!n->ends && !n->leaves && !n->poked &&
           pthread_cond_timedwait(&n->kept, &n->lock, &t) == 0)
        ;
    n->poked = false;
    pthread_mutex_unlock(&n->lock);
}

void node_left(struct node *n)
{
    pthread_mutex_lock(&n->lock);
    n->gone = ++n->handed == 2 && n->leaves;
    pthread_mutex_unlock(&n->lock);
    runtime_wake(n->runtime);
}

void *node_keeper(void *arg)
{
    struct node *const n = arg;
    struct keeping *const k = malloc(sizeof *k);
    while (k && !keeper_ends(n)) {
        keeper_waits(n);
        pthread_mutex_lock(&n->lock);
        const bool leaves = n->leaves;
        pthread_mutex_unlock(&n->lock);
        k->n = n;
        node_client(n, &k->c);
        /* Who leaves hands over to one holder more, which takes its place. */
        for (unsigned v = 0; v < n->spec.vnodes && !keeper_ends(n); v++)
            exchange(k, v, n->spec.params.copies - (leaves ? 0 : 1));
        if (!leaves) {
            node_scrub(n);
            settle_strays(k);
        }
        if (!leaves && clock_ms() - n->reclaimed_at >= n->spec.reclaim / 2) {
            node_reclaim(n, &k->c);
            n->reclaimed_at = clock_ms();
        }
        client_free(&k->c);
        count(n, &n->exchanges);
        if (leaves) {
            node_left(n);
            break;
        }
    }
    free(k);
    return NULL;
}
