/*
 * chord_client.c - a ring's members asked from outside, one answer at a time
 */
#define _GNU_SOURCE
#include "chord/chord_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "wire/runtime.h"
#include "report/say.h"

/* --------------------------------------------------------------- the lookup */

static struct chord_client *client_of(struct chord *n)
{
    return n->ctx;
}

static void client_send(struct chord *n, struct chord_peer to,
                        const struct chord_message *m)
{
    struct chord_client *const c = client_of(n);
    c->waits = true;
    c->to = to;
    memcpy(&c->question, m, sizeof *m - sizeof m->peers);
    c->question.npeers = 0;
}

static void client_timer(struct chord *n, enum chord_timer t, uint64_t delay)
{
    (void)n;
    (void)t;
    (void)delay;
}

static void client_found(struct chord *n, const struct chord_found *f)
{
    struct chord_client *const c = client_of(n);
    c->found = *f;
    c->ended = true;
}

static void client_news(struct chord *n, enum chord_news what)
{
    (void)n;
    (void)what;
}

static const struct chord_host client_host = { client_send, client_timer,
                                               client_found, client_news };

void client_init(struct chord_client *c, const struct chord_params *p,
                 const struct secure_secret *secret, uint64_t timeout)
{
    const unsigned r = (unsigned)(p->r ? p->r : CHORD_USUAL_R);
    const unsigned copies =
        (unsigned)(p->copies ? p->copies : CHORD_USUAL_COPIES);
    memset(c, 0, sizeof *c);
    c->ring = (struct chord_ring){
        .bits = 64, .r = r, .walks = 1, .dead_for = 2000, .dead_most = 10000
    };
    c->call.secret = secret;
    c->call.timeout = c->timeout = timeout;
    c->call.ring = wire_ring(p->name ? p->name : "ring", 64, r, copies);
    chord_init(&c->n, &c->ring, &client_host, c, (struct chord_peer){ 0, 0 },
               &c->walk, clock_ms());
}

void client_free(struct chord_client *c)
{
    call_close(&c->call);
    book_free(&c->book);
    blob_free(&c->blob);
}

struct chord_client *client_new(const struct chord_params *p,
                                const struct secure_secret *secret,
                                uint64_t timeout)
{
    struct chord_client *const c = malloc(sizeof *c);
    if (c)
        client_init(c, p, secret, timeout);
    else
        fail("no memory for a client of the ring");
    return c;
}

void client_close(struct chord_client *c)
{
    if (c)
        client_free(c);
    free(c);
}

/* ----------------------------------------------------------------- attempts */

void attempts_begin(struct chord_client *c)
{
    c->until = c->wait ? clock_ms() + c->wait : 0;
}

bool attempts_go_on(struct chord_client *c, unsigned tries, unsigned most)
{
    const unsigned ms = 50u << (tries < 6 ? tries : 6);
    const struct timespec t = { ms / 1000, ms % 1000 * 1000000L };
    if (!tries)
        return true;
    if (c->until ? clock_ms() + ms >= c->until : tries >= most)
        return false;
    nanosleep(&t, NULL);
    return true;
}

void attempts_hurry(struct chord_client *c, uint64_t most)
{
    const uint64_t now = c->until ? clock_ms() : 0;
    const uint64_t left = c->until > now ? c->until - now : 1;
    c->call.timeout = c->until && left < most ? left : most;
}

const struct address *client_address(const struct chord_client *c,
                                     struct chord_peer p)
{
    const struct descriptor *const d = book_get(&c->book, p.at);
    return d ? &d->address : NULL;
}

/* Ask for a message of the ring; false: silence. */
static bool ask_ring(struct chord_client *c, struct chord_peer to,
                     const struct chord_message *q, struct chord_message *a)
{
    struct frame f;
    const struct address *const at = client_address(c, to);
    attempts_hurry(c, c->timeout);
    wire_put_question(&c->blob, &c->book, q, to.id, NULL);
    if (!at || !call_ask(&c->call, at, q->type, &c->blob, &f) ||
        call_error(&c->call, &f))
        return false;
    if (!wire_get_answer(&f, &c->book, a)) {
        snprintf(c->call.why, sizeof c->call.why,
                 "the answer cannot be understood");
        return false;
    }
    a->request = q->request;
    return true;
}

static bool lookup_from(struct chord_client *c, const struct address *entry,
                        uint64_t id)
{
    const struct descriptor d = { descriptor_id(entry, 0), 0, *entry, 0 };
    const struct chord_peer via = { d.id, book_add(&c->book, &d) };
    c->n.walks_used = 0;
    c->n.now = clock_ms();
    c->waits = c->ended = false;
    struct chord_walk *const w = chord_walk_new(&c->n, CHORD_APP, id);
    if (!w)
        return false;
    chord_walk_start(&c->n, w, &via);
    while (!c->ended && c->waits) {
        static _Thread_local struct chord_message a;
        const struct chord_peer to = c->to;
        c->waits = false;
        if (ask_ring(c, to, &c->question, &a))
            chord_receive(&c->n, to, &a, clock_ms());
        else
            chord_silent(&c->n, c->question.request, clock_ms());
    }
    return c->ended && c->found.ok && c->found.npeers;
}

bool client_owner(struct chord_client *c, uint64_t id, struct chord_found *f)
{
    for (size_t i = 0; i < c->nentries; i++)
        if (lookup_from(c, &c->entries[i], id)) {
            *f = c->found;
            return true;
        }
    if (!c->call.why[0])
        snprintf(c->call.why, sizeof c->call.why, "nobody answers");
    return false;
}

size_t chord_holders(const struct book *book, const struct address *owner,
                     const struct chord_peer *list, size_t n, size_t most,
                     struct chord_peer *out)
{
    size_t found = 0;
    for (size_t i = 0; i < n && found < most; i++) {
        const struct descriptor *const d = book_get(book, list[i].at);
        bool known = !d || address_equal(&d->address, owner);
        for (size_t k = 0; k < found && !known; k++)
            known =
                address_equal(&book_get(book, out[k].at)->address, &d->address);
        if (!known)
            out[found++] = list[i];
    }
    return found;
}

/* --------------------------------------------------------------- one record */

static enum frame_error ask_files(struct chord_client *c, struct chord_peer p,
                                  uint8_t type, struct frame *f)
{
    const struct address *const at = client_address(c, p);
    if (!at) {
        snprintf(c->call.why, sizeof c->call.why, "a node without an address");
        return FRAME_REFUSED;
    }
    attempts_hurry(c, c->timeout);
    if (!call_ask(&c->call, at, type, &c->blob, f))
        return FRAME_REFUSED;
    return call_error(&c->call, f);
}

enum frame_error client_get_from(struct chord_client *c, struct chord_peer p,
                                 const unsigned char *digest, bool data,
                                 struct stored *r, unsigned char **bytes)
{
    struct frame f;
    blob_start(&c->blob);
    blob_number(&c->blob, p.id, 8);
    blob_bytes(&c->blob, digest, STORE_DIGEST);
    blob_number(&c->blob, data, 1);
    const enum frame_error e = ask_files(c, p, CHORD_GET, &f);
    if (e)
        return e;
    struct body b = { f.body, f.nbody, false };
    stored_take(&b, r);
    r->nbytes = (uint32_t)b.n;
    if (b.bad || b.n > STORE_MOST ||
        memcmp(r->digest, digest, STORE_DIGEST) != 0)
        return FRAME_WRONG;
    if (!data)
        return (enum frame_error)0;
    if (!stored_genuine(r, b.at)) {
        snprintf(c->call.why, sizeof c->call.why,
                 "the data differ from their digest");
        return FRAME_WRONG;
    }
    *bytes = malloc(b.n + 1);
    if (!*bytes)
        return FRAME_FULL;
    memcpy(*bytes, b.at, b.n);
    return (enum frame_error)0;
}

static void put_question(struct chord_client *c, struct chord_peer p,
                         const struct stored *r, const void *data, bool replica)
{
    blob_start(&c->blob);
    blob_number(&c->blob, p.id, 8);
    blob_number(&c->blob, replica ? CHORD_REPLICA : 0, 1);
    stored_put(&c->blob, r);
    blob_bytes(&c->blob, data, r->nbytes);
}

static unsigned put_answer(struct chord_client *c, const struct frame *f)
{
    struct body b = { f->body, f->nbody, false };
    const unsigned made = (unsigned)body_number(&b, 1);
    const uint64_t reclaim = body_number(&b, 8);
    if (!b.bad && (!c->reclaim || reclaim < c->reclaim))
        c->reclaim = reclaim;
    return made;
}

enum frame_error client_put_to(struct chord_client *c, struct chord_peer p,
                               const struct stored *r, const void *data,
                               bool replica, unsigned *copies)
{
    struct frame f;
    put_question(c, p, r, data, replica);
    const enum frame_error e = ask_files(c, p, CHORD_PUT, &f);
    if (!e) {
        const unsigned made = put_answer(c, &f);
        if (copies)
            *copies = made;
    }
    return e;
}

void client_send_copy(struct chord_client *c, struct chord_peer p,
                      const struct stored *r, const void *data,
                      uint32_t *request)
{
    const struct address *const at = client_address(c, p);
    put_question(c, p, r, data, true);
    *request = 0;
    if (!at || !call_send(&c->call, at, CHORD_PUT, &c->blob, request))
        *request = 0;
}

bool client_copied(struct chord_client *c, struct chord_peer p,
                   const struct stored *r, const void *data, uint32_t request)
{
    struct frame f;
    const struct address *const at = client_address(c, p);
    if (at && request && call_take(&c->call, at, request, &f))
        return !call_error(&c->call, &f);
    if (c->call.late)
        return false;
    /* Its connection may have been closed since it was last used. */
    return !client_put_to(c, p, r, data, true, NULL);
}

enum store_result client_get(struct chord_client *c,
                             const unsigned char *digest, struct stored *r,
                             unsigned char **bytes)
{
    struct chord_found f;
    bool silent = true;
    attempts_begin(c);
    for (unsigned tries = 0; attempts_go_on(c, tries, 6); tries++) {
        if (!client_owner(c, store_id(digest), &f))
            continue;
        silent = false;
        for (unsigned i = 0; i < f.npeers; i++) {
            /* The owner, then its list. */
            const struct chord_peer p = i ? f.peers[i] : f.owner;
            const enum frame_error e =
                p.at ? client_get_from(c, p, digest, true, r, bytes)
                     : FRAME_REFUSED;
            if (!e) {
                if (i) /* who should have it, and had not, gets it */
                    client_put_to(c, f.owner, r, *bytes, true, NULL);
                return STORE_OK;
            }
            silent |= e != FRAME_NOT_FOUND && e != FRAME_DAMAGED && p.at;
            if (p.id == f.owner.id && i)
                break; /* round the ring */
        }
        if (!silent)
            return STORE_NONE;
    }
    return STORE_BROKEN;
}

bool client_put(struct chord_client *c, const struct stored *r,
                const void *data, unsigned *copies)
{
    struct chord_found f;
    attempts_begin(c);
    for (unsigned tries = 0; attempts_go_on(c, tries, 8); tries++) {
        if (!client_owner(c, store_id(r->digest), &f))
            continue;
        const enum frame_error e =
            client_put_to(c, f.owner, r, data, false, copies);
        if (!e)
            return true;
        if (e == FRAME_FULL || e == FRAME_NOT_SOON)
            return false;
    }
    return false;
}

/* ------------------------------------------------------------------- ranges */

int client_list(struct chord_client *c, struct chord_peer p, uint64_t a,
                uint64_t b, const unsigned char *after, struct stored *out)
{
    struct frame f;
    blob_start(&c->blob);
    blob_number(&c->blob, p.id, 8);
    blob_number(&c->blob, a, 8);
    blob_number(&c->blob, b, 8);
    blob_number(&c->blob, after != NULL, 1);
    if (after)
        blob_bytes(&c->blob, after, STORE_DIGEST);
    if (ask_files(c, p, CHORD_LIST, &f))
        return -1;
    struct body body = { f.body, f.nbody, false };
    const unsigned n = (unsigned)body_number(&body, 2);
    if (n > CLIENT_LIST)
        return -1;
    for (unsigned i = 0; i < n && !body.bad; i++)
        stored_take(&body, &out[i]);
    return body.bad ? -1 : (int)n;
}

bool client_summary(struct chord_client *c, struct chord_peer p, uint64_t a,
                    uint64_t b, uint64_t buckets[256])
{
    struct frame f;
    blob_start(&c->blob);
    blob_number(&c->blob, p.id, 8);
    blob_number(&c->blob, a, 8);
    blob_number(&c->blob, b, 8);
    if (ask_files(c, p, CHORD_RANGE, &f))
        return false;
    struct body body = { f.body, f.nbody, false };
    for (unsigned i = 0; i < 256; i++)
        buckets[i] = body_number(&body, 8);
    return !body.bad;
}

bool client_state(struct chord_client *c, struct chord_peer p,
                  struct chord_message *answer)
{
    const struct chord_message q = { .type = CHORD_STATE, .request = 1 };
    return ask_ring(c, p, &q, answer) && answer->npeers > 1;
}
