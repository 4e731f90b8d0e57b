/*
 * names.c - the roster of a process: adopting, remembering, telling
 *
 * What is saved:
 *
 *     "blyrost1"  u64 who  u64 lineage  ballot promised  ballot accepted
 *     roster that was accepted, or u64 0
 *     u16 epochs, each u8 ready, u8 holes, their ends, roster
 *     u32 CRC-32C of all before it
 */
#define _GNU_SOURCE
#include "apps/node/names.h"

#include <stdlib.h>
#include <string.h>

#include "chord/chord.h"
#include "base/byte_order.h"

#define NAMES_MAGIC "blyrost1"

bool names_init(struct names *m, const struct names_host *host, void *ctx,
                const struct roster_entry *self, size_t copies, size_t least,
                uint64_t seed)
{
    pthread_rwlockattr_t fair;
    memset(m, 0, sizeof *m);
    m->host = host;
    m->ctx = ctx;
    m->self = *self;
    m->copies = copies < ROSTER_HOLDERS ? copies : ROSTER_HOLDERS;
    m->least = least;
    m->random = seed;
    if (!m->self.who)
        m->self.who = seed | 1;
    /* A new epoch must not wait for ever behind those who answer in the old. */
    pthread_rwlockattr_init(&fair);
    pthread_rwlockattr_setkind_np(&fair,
                                  PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    const bool ok = !pthread_rwlock_init(&m->lock, &fair);
    pthread_rwlockattr_destroy(&fair);
    pthread_mutex_init(&m->wants, NULL);
    for (unsigned i = 0; i < NAMES_SERIAL; i++)
        pthread_mutex_init(&m->serial[i], NULL);
    return ok;
}

static void epoch_free(struct names_epoch *e)
{
    if (e)
        roster_places_free(&e->ring);
    free(e);
}

void names_free(struct names *m)
{
    for (unsigned i = 0; i < m->npast; i++)
        epoch_free(m->past[i]);
    pthread_rwlock_destroy(&m->lock);
    pthread_mutex_destroy(&m->wants);
    for (unsigned i = 0; i < NAMES_SERIAL; i++)
        pthread_mutex_destroy(&m->serial[i]);
}

/* ------------------------------------------------------------------- epochs */

struct names_epoch *names_now(const struct names *m)
{
    return m->npast ? m->past[m->npast - 1] : NULL;
}

bool names_ready_at(const struct names_epoch *e, uint64_t id)
{
    bool ready = e->ready;
    for (unsigned i = 0; i < e->nholes; i++)
        ready &= !chord_within(e->holes[i].a, id, e->holes[i].b);
    return ready;
}

static struct names_epoch *epoch_new(const struct roster *r)
{
    struct names_epoch *const e = calloc(1, sizeof *e);
    if (!e || !roster_places(r, &e->ring)) {
        free(e);
        return NULL;
    }
    e->roster = *r;
    return e;
}

/* The oldest makes room. */
static void epoch_push(struct names *m, struct names_epoch *e)
{
    if (m->npast == NAMES_PAST) {
        epoch_free(m->past[0]);
        memmove(m->past, m->past + 1, --m->npast * sizeof m->past[0]);
    }
    m->past[m->npast++] = e;
}

/* Without saving. */
static bool adopt(struct names *m, const struct roster *r)
{
    const struct names_epoch *const now = names_now(m);
    if (now && r->epoch <= now->roster.epoch)
        return true;
    struct names_epoch *const e = epoch_new(r);
    if (!e)
        return false;
    /* It is too far behind to know what happened in between, so its past is of
     * no use. */
    while (now && r->epoch != now->roster.epoch + 1 && m->npast)
        epoch_free(m->past[--m->npast]);
    epoch_push(m, e);
    return true;
}

/* Save what was adopted, or be as before: an epoch that is not on disk may
 * answer nothing, since after a power cut this process would be in the old one
 * again. */
static bool adopted(struct names *m, uint64_t before)
{
    const struct names_ballot promised = m->promised, accepted = m->accepted;
    const uint64_t offered = m->offered.epoch;
    if (names_now(m) && names_now(m)->roster.epoch == before)
        return true;
    m->promised = m->accepted = (struct names_ballot){ 0, 0 };
    m->offered.epoch = 0;
    if (names_save(m))
        return true;
    while (names_now(m) && names_now(m)->roster.epoch > before)
        epoch_free(m->past[--m->npast]);
    m->promised = promised;
    m->accepted = accepted;
    m->offered.epoch = offered;
    return false;
}

bool names_adopt(struct names *m, const struct roster *r)
{
    const struct names_epoch *const now = names_now(m);
    const uint64_t before = now ? now->roster.epoch : 0;
    if (now && r->epoch > before + 1)
        return false;
    return adopt(m, r) && adopted(m, before);
}

bool names_found(struct names *m)
{
    struct roster r = { .epoch = 1 };
    roster_add(&r, &m->self);
    pthread_rwlock_wrlock(&m->lock);
    m->lineage = m->self.who;
    const bool ok = names_adopt(m, &r);
    if (ok)
        names_now(m)->ready = true;
    const bool saved = ok && names_save(m);
    pthread_rwlock_unlock(&m->lock);
    return saved;
}

struct names_state names_state(struct names *m)
{
    struct names_state s = { 0 };
    pthread_rwlock_rdlock(&m->lock);
    const struct names_epoch *const now = names_now(m);
    if (now) {
        s.epoch = now->roster.epoch;
        s.n = now->roster.n;
        s.in = roster_has(&now->roster, m->self.who);
        s.ready = s.in && now->ready && !now->nholes;
    }
    pthread_rwlock_unlock(&m->lock);
    s.least = m->least ? m->least : s.n > 1 ? 2 : 1;
    return s;
}

bool names_alone(struct names *m)
{
    pthread_mutex_lock(&m->wants);
    const bool alone = m->alone;
    pthread_mutex_unlock(&m->wants);
    return alone;
}

bool names_roster(struct names *m, struct roster *out)
{
    pthread_rwlock_rdlock(&m->lock);
    const struct names_epoch *const now = names_now(m);
    if (now)
        *out = now->roster;
    pthread_rwlock_unlock(&m->lock);
    return now != NULL;
}

/* ------------------------------------------------------------------- saving */

static void put_ballot(struct blob *b, struct names_ballot x)
{
    blob_number(b, x.round, 8);
    blob_number(b, x.who, 8);
}

bool names_save(struct names *m)
{
    struct blob b = { 0 };
    blob_bytes(&b, NAMES_MAGIC, 8);
    blob_number(&b, m->self.who, 8);
    blob_number(&b, m->lineage, 8);
    put_ballot(&b, m->promised);
    put_ballot(&b, m->accepted);
    if (m->offered.epoch)
        roster_put(&b, &m->offered);
    else
        blob_number(&b, 0, 8);
    blob_number(&b, m->npast, 2);
    for (unsigned i = 0; i < m->npast; i++) {
        const struct names_epoch *const e = m->past[i];
        blob_number(&b, e->ready, 1);
        blob_number(&b, e->nholes, 1);
        for (unsigned k = 0; k < e->nholes; k++) {
            blob_number(&b, e->holes[k].a, 8);
            blob_number(&b, e->holes[k].b, 8);
        }
        roster_put(&b, &e->roster);
    }
    blob_number(&b, b.failed ? 0 : frame_crc(0, b.at, b.n), 4);
    const bool ok = !b.failed && m->host->save(m->ctx, b.at, b.n);
    blob_free(&b);
    return ok;
}

static struct names_ballot take_ballot(struct body *b)
{
    const uint64_t round = body_number(b, 8), who = body_number(b, 8);
    return (struct names_ballot){ round, who };
}

static bool take_epoch(struct names *m, struct body *b)
{
    struct roster r;
    struct names_epoch head = { 0 };
    head.ready = body_number(b, 1) == 1;
    head.nholes = (unsigned)body_number(b, 1);
    if (head.nholes > NAMES_HOLES)
        return false;
    for (unsigned k = 0; k < head.nholes; k++) {
        head.holes[k].a = body_number(b, 8);
        head.holes[k].b = body_number(b, 8);
    }
    if (!roster_take(b, &r))
        return false;
    struct names_epoch *const e = epoch_new(&r);
    if (!e)
        return false;
    e->ready = head.ready;
    e->nholes = head.nholes;
    memcpy(e->holes, head.holes, sizeof e->holes);
    epoch_push(m, e);
    return true;
}

const char *names_load(struct names *m, const void *bytes, size_t n)
{
    struct body b = { bytes, n, false };
    static const char damaged[] = "damaged";
    if (n < 12 || get_le((const unsigned char *)bytes + n - 4, 4) !=
                      frame_crc(0, bytes, n - 4))
        return damaged;
    const unsigned char *const magic = body_bytes(&b, 8);
    if (!magic || memcmp(magic, NAMES_MAGIC, 8) != 0)
        return "of another version of this program";
    m->self.who = body_number(&b, 8);
    m->lineage = body_number(&b, 8);
    m->promised = take_ballot(&b);
    m->accepted = take_ballot(&b);
    struct body empty = b;
    m->offered.epoch = body_number(&empty, 8);
    if (!m->offered.epoch) {
        b = empty;
    } else if (!roster_take(&b, &m->offered)) {
        return damaged;
    }
    const unsigned count = (unsigned)body_number(&b, 2);
    if (!m->self.who || count > NAMES_PAST)
        return damaged;
    for (unsigned i = 0; i < count; i++)
        if (!take_epoch(m, &b) ||
            (i && m->past[i]->roster.epoch != m->past[i - 1]->roster.epoch + 1))
            return damaged;
    return b.bad || b.n != 4 ? damaged : NULL;
}

/* ------------------------------------------------------------ asking others */

void names_begin(struct names *m, struct blob *q)
{
    blob_start(q);
    pthread_rwlock_rdlock(&m->lock);
    const uint64_t lineage = m->lineage;
    pthread_rwlock_unlock(&m->lock);
    blob_number(q, lineage, 8);
}

enum frame_error names_ask(struct names *m, void *by, const struct address *to,
                           uint8_t type, struct blob *q, struct frame *f)
{
    const enum frame_error e =
        q->failed ? FRAME_FULL : m->host->ask(by, to, type, q, f);
    blob_free(q);
    return e;
}

/* A question is closed when it is sent. */
static bool blob_copy(const struct blob *from, struct blob *to)
{
    *to = (struct blob){ 0 };
    blob_bytes(to, from->at, from->n);
    return !from->failed && !to->failed;
}

void names_ask_all(struct names *m, void *by, const struct roster_entry *to,
                   size_t n, uint8_t type, struct blob *q, names_each *each,
                   void *ctx)
{
    const struct names_host *const h = m->host;
    uint32_t requests[ROSTER_HOLDERS] = { 0 };
    struct blob one;
    for (size_t i = 0; i < n && n > 1 && h->send; i++) {
        if (!blob_copy(q, &one) ||
            !h->send(by, &to[i].address, type, &one, &requests[i]))
            requests[i] = 0;
        blob_free(&one);
    }
    for (size_t i = 0; i < n; i++) {
        struct frame f = { 0 };
        enum frame_error e = FRAME_REFUSED;
        if (requests[i])
            e = h->take(by, &to[i].address, requests[i], &f);
        /* A connection that was kept may have been closed since. */
        if (e == FRAME_REFUSED && blob_copy(q, &one)) {
            e = h->ask(by, &to[i].address, type, &one, &f);
            blob_free(&one);
        }
        each(ctx, i, e, &f);
    }
    blob_free(q);
}

bool names_learn(struct names *m, void *by, const struct address *from)
{
    struct blob q = { 0 };
    struct frame f;
    names_begin(m, &q);
    blob_number(&q, names_state(m).epoch, 8);
    if (names_ask(m, by, from, NAMES_HISTORY, &q, &f))
        return false;
    struct body b = { f.body, f.nbody, false };
    const uint64_t lineage = body_number(&b, 8);
    const unsigned n = (unsigned)body_number(&b, 2);
    struct roster *const r = malloc(sizeof *r);
    bool ok = r && !b.bad && lineage && n;
    pthread_rwlock_wrlock(&m->lock);
    const bool first = !m->lineage;
    const uint64_t before = first ? 0 : names_now(m)->roster.epoch;
    ok = ok && (first || m->lineage == lineage);
    if (ok)
        m->lineage = lineage;
    for (unsigned i = 0; ok && i < n; i++)
        ok = roster_take(&b, r) && adopt(m, r);
    /* Whatever is whole is used. */
    if (!adopted(m, before) || !m->npast)
        m->lineage = first ? 0 : m->lineage;
    pthread_rwlock_unlock(&m->lock);
    free(r);
    return ok;
}

static void put_history(struct names *m, uint64_t from, struct blob *out)
{
    unsigned n = 0;
    for (unsigned i = 0; i < m->npast; i++)
        n += m->past[i]->roster.epoch > from;
    blob_number(out, n, 2);
    for (unsigned i = 0; i < m->npast; i++)
        if (m->past[i]->roster.epoch > from)
            roster_put(out, &m->past[i]->roster);
}

bool names_teach(struct names *m, void *by, const struct roster_entry *e,
                 uint64_t epoch)
{
    struct blob q = { 0 };
    struct frame f;
    names_begin(m, &q);
    pthread_rwlock_rdlock(&m->lock);
    put_history(m, epoch, &q);
    pthread_rwlock_unlock(&m->lock);
    return !names_ask(m, by, &e->address, NAMES_LEARN, &q, &f);
}

/* ---------------------------------------------------------------- answering */

static void serve_ping(struct names *m, struct body *b, struct blob *out)
{
    const uint64_t theirs = body_number(b, 8);
    const struct names_state s = names_state(m);
    if (theirs > s.epoch) {
        pthread_mutex_lock(&m->wants);
        m->behind = true;
        pthread_mutex_unlock(&m->wants);
    }
    blob_number(out, m->self.who, 8);
    blob_number(out, s.epoch, 8);
    blob_number(out, s.ready, 1);
}

static enum frame_error serve_learn(struct names *m, struct body *b,
                                    const char **text)
{
    const unsigned n = (unsigned)body_number(b, 2);
    struct roster *const r = malloc(sizeof *r);
    bool ok = r != NULL, right = true;
    pthread_rwlock_wrlock(&m->lock);
    for (unsigned i = 0; ok && right && i < n; i++) {
        right = roster_take(b, r);
        ok = right && names_adopt(m, r);
    }
    pthread_rwlock_unlock(&m->lock);
    free(r);
    *text = right ? "the roster could not be taken" : "a malformed roster";
    return !right || b->n ? FRAME_WRONG : ok ? (enum frame_error)0 : FRAME_BUSY;
}

/* In which epochs this process was ready, and for what: the asker's epoch must
 * be the present one here, so that nothing more can happen in those before. */
static enum frame_error serve_report(struct names *m, struct body *b,
                                     struct blob *out, const char **text)
{
    const uint64_t epoch = body_number(b, 8), from = body_number(b, 8);
    enum frame_error e = (enum frame_error)0;
    pthread_rwlock_rdlock(&m->lock);
    const struct names_epoch *const now = names_now(m);
    const uint64_t mine = now ? now->roster.epoch : 0;
    blob_number(out, m->self.who, 8);
    blob_number(out, mine, 8);
    if (mine >= epoch) {
        unsigned n = 0;
        for (unsigned i = 0; i < m->npast; i++)
            n += m->past[i]->roster.epoch >= from;
        blob_number(out, n, 2);
        for (unsigned i = 0; i < m->npast; i++) {
            const struct names_epoch *const p = m->past[i];
            if (p->roster.epoch < from)
                continue;
            blob_number(out, p->roster.epoch, 8);
            blob_number(out, p->ready, 1);
            blob_number(out, p->nholes, 1);
            for (unsigned k = 0; k < p->nholes; k++) {
                blob_number(out, p->holes[k].a, 8);
                blob_number(out, p->holes[k].b, 8);
            }
        }
    } else {
        blob_number(out, 0, 2);
    }
    pthread_rwlock_unlock(&m->lock);
    if (b->bad || b->n) {
        *text = "a malformed question";
        e = FRAME_WRONG;
    }
    return e;
}

static enum frame_error serve_admit(struct names *m, struct body *b,
                                    uint64_t lineage, struct blob *out,
                                    const char **text)
{
    struct roster_entry e;
    const bool comes = body_number(b, 1) == 1;
    if (!roster_take_entry(b, &e) || b->n) {
        *text = "a malformed process";
        return FRAME_WRONG;
    }
    if (!lineage && !comes) {
        *text = "not of this roster";
        return FRAME_REFUSED;
    }
    pthread_mutex_lock(&m->wants);
    bool known = false;
    for (unsigned i = 0; i < m->ncoming && comes; i++)
        if (m->coming[i].who == e.who) {
            m->coming[i] = e;
            known = true;
        }
    if (comes && !known && m->ncoming < NAMES_JOINING)
        m->coming[m->ncoming++] = e;
    if (!comes && m->ngoing < NAMES_JOINING)
        m->going[m->ngoing++] = e.who;
    pthread_mutex_unlock(&m->wants);
    pthread_rwlock_rdlock(&m->lock);
    blob_number(out, m->lineage, 8);
    pthread_rwlock_unlock(&m->lock);
    blob_number(out, names_state(m).epoch, 8);
    return (enum frame_error)0;
}

static enum frame_error serve_who(struct names *m, struct body *b,
                                  struct blob *out, const char **text)
{
    const unsigned char *const digest = body_bytes(b, STORE_DIGEST);
    unsigned holders[ROSTER_HOLDERS];
    if (!digest || b->n) {
        *text = "a malformed question";
        return FRAME_WRONG;
    }
    pthread_rwlock_rdlock(&m->lock);
    const struct names_epoch *const now = names_now(m);
    if (now) {
        const size_t n =
            roster_holders(&now->ring, store_id(digest), m->copies, holders);
        blob_number(out, m->lineage, 8);
        blob_number(out, now->roster.epoch, 8);
        blob_number(out, n, 1);
        for (size_t i = 0; i < n; i++)
            roster_put_entry(out, &now->roster.at[holders[i]]);
        blob_number(out, names_alone(m), 1);
    }
    pthread_rwlock_unlock(&m->lock);
    *text = "it knows of no roster yet";
    return now ? (enum frame_error)0 : FRAME_REFUSED;
}

enum frame_error names_serve(struct names *m, void *by, uint8_t type,
                             const void *body, size_t n, struct blob *out,
                             const char **text)
{
    struct body b = { body, n, false };
    const uint64_t lineage = body_number(&b, 8);
    const bool any = type == NAMES_WHO || type == NAMES_READ ||
                     type == NAMES_WRITE || type == NAMES_LIST ||
                     type == NAMES_GET;
    blob_start(out);
    pthread_rwlock_rdlock(&m->lock);
    const uint64_t mine = m->lineage;
    pthread_rwlock_unlock(&m->lock);
    *text = "it belongs to no roster yet";
    if (!mine)
        return FRAME_REFUSED;
    *text = "its names are those of another ring";
    /* Clients do not know about lineages, and a process that is joining has
     * none yet. */
    if (lineage != mine &&
        (lineage || (!any && type != NAMES_ADMIT && type != NAMES_HISTORY)))
        return FRAME_REFUSED;
    switch (type) {
    case NAMES_PING:
        serve_ping(m, &b, out);
        return (enum frame_error)0;
    case NAMES_HISTORY: {
        const uint64_t from = body_number(&b, 8);
        pthread_rwlock_rdlock(&m->lock);
        blob_number(out, m->lineage, 8);
        put_history(m, from, out);
        pthread_rwlock_unlock(&m->lock);
        return (enum frame_error)0;
    }
    case NAMES_LEARN:
        return serve_learn(m, &b, text);
    case NAMES_REPORT:
        return serve_report(m, &b, out, text);
    case NAMES_ADMIT:
        return serve_admit(m, &b, lineage, out, text);
    case NAMES_WHO:
        return serve_who(m, &b, out, text);
    case NAMES_VOTE:
        return names_serve_vote(m, &b, out, text);
    default:
        return names_serve_files(m, by, type, &b, out, text);
    }
}
