/*
 * names_sync.c - following the roster: becoming ready, coming in, leaving
 *
 * The circle is cut at every place of every roster that is remembered, so that
 * each piece has one set of holders in each epoch. For each piece that this
 * process has to keep in the present epoch, it goes back through the epochs:
 *
 *     a holder of that epoch was ready in it    take the piece from there
 *     one was not                               nothing was acknowledged then:
 *                                               one epoch further back
 *     none of them answers                      a hole, until one does
 *
 * Whoever reports has adopted the present epoch, so that nothing can happen any
 * more in those that it reports of. A holder that was ready has all that was
 * acknowledged, since writes go to all holders. What it does not have is
 * dropped here, and what differs is replaced: a name that was removed long ago
 * does not come back with a node that was away.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "chord/chord.h"
#include "apps/node/names.h"
#include "chord/chord_record.h"
#include "base/grow.h"
#include "base/random.h"

/* ------------------------------------------------------------------ reports */

struct report {
    uint64_t who;
    bool answered;
    bool gone; /* another process is at its address, without what it had */
    unsigned n;
    struct names_epoch *at; /* their numbers, ready and holes */
};

struct syncing {
    struct names *m;
    void *by;
    uint64_t epoch;
    unsigned npast;
    struct names_epoch **past; /* copies */
    struct report *reports;
    size_t nreports, room;
    struct stored *page, *own;
};

static bool take_report(struct body *b, struct report *r)
{
    const unsigned n = (unsigned)body_number(b, 2);
    if (b->bad || n > NAMES_PAST)
        return false;
    r->at = calloc(n + 1, sizeof *r->at);
    for (unsigned i = 0; r->at && i < n; i++) {
        struct names_epoch *const e = &r->at[i];
        e->roster.epoch = body_number(b, 8);
        e->ready = body_number(b, 1) == 1;
        e->nholes = (unsigned)body_number(b, 1);
        if (b->bad || e->nholes > NAMES_HOLES)
            return false;
        for (unsigned k = 0; k < e->nholes; k++) {
            e->holes[k].a = body_number(b, 8);
            e->holes[k].b = body_number(b, 8);
        }
        r->n++;
    }
    return r->at && !b->bad;
}

/* Ask, after it has been told of the present epoch. */
static void ask_report(struct syncing *s, const struct roster_entry *e,
                       struct report *r)
{
    for (unsigned tries = 0; tries < 2 && !r->answered; tries++) {
        struct blob q = { 0 };
        struct frame f;
        names_begin(s->m, &q);
        blob_number(&q, s->epoch, 8);
        blob_number(&q, s->past[0]->roster.epoch, 8);
        if (names_ask(s->m, s->by, &e->address, NAMES_REPORT, &q, &f))
            return;
        struct body b = { f.body, f.nbody, false };
        const uint64_t who = body_number(&b, 8), epoch = body_number(&b, 8);
        r->gone = who != e->who;
        if (r->gone)
            return;
        if (epoch < s->epoch) {
            if (!names_teach(s->m, s->by, e, epoch))
                return;
            continue;
        }
        if (!take_report(&b, r)) {
            free(r->at);
            r->at = NULL;
            r->n = 0;
            return;
        }
        r->answered = true;
    }
}

static const struct report *report_of(struct syncing *s,
                                      const struct roster_entry *e)
{
    for (size_t i = 0; i < s->nreports; i++)
        if (s->reports[i].who == e->who)
            return &s->reports[i];
    if (!GROW(&s->reports, &s->room, s->nreports + 1))
        return NULL;
    struct report *const r = &s->reports[s->nreports++];
    *r = (struct report){ .who = e->who };
    ask_report(s, e, r);
    return r;
}

static bool was_ready(const struct report *r, uint64_t epoch, uint64_t id)
{
    for (unsigned i = 0; i < r->n; i++)
        if (r->at[i].roster.epoch == epoch)
            return names_ready_at(&r->at[i], id);
    return false;
}

/* ------------------------------------------------------------------ a piece */

enum source { SOURCE_SELF, SOURCE_OTHER, SOURCE_NONE };

/* From whom to take the piece that ends at id, `skip` of them left out. */
static enum source find_source(struct syncing *s, uint64_t id, unsigned skip,
                               const struct roster_entry **from)
{
    unsigned which[ROSTER_HOLDERS];
    for (unsigned i = s->npast - 1; i-- > 0;) {
        const struct names_epoch *const e = s->past[i];
        const size_t n = roster_holders(&e->ring, id, s->m->copies, which);
        bool unready = false, ready = false;
        size_t gone = 0;
        for (size_t k = 0; k < n; k++)
            if (e->roster.at[which[k]].who == s->m->self.who) {
                if (names_ready_at(e, id))
                    return SOURCE_SELF;
                unready = true;
            }
        for (size_t k = 0; k < n; k++) {
            const struct roster_entry *const p = &e->roster.at[which[k]];
            if (p->who == s->m->self.who)
                continue;
            const struct report *const r = report_of(s, p);
            gone += r && r->gone;
            if (!r || !r->answered)
                continue;
            if (!was_ready(r, e->roster.epoch, id)) {
                unready = true;
                continue;
            }
            ready = true;
            *from = p;
            if (!skip--)
                return SOURCE_OTHER;
        }
        /* Where all who kept it are gone with what they had, the best that is
         * left is older. */
        if (ready || (!unready && gone < n))
            return SOURCE_NONE;
    }
    return SOURCE_NONE;
}

/* A page of the names that somebody has in (a, b]. Negative: none came. */
static int list_there(struct syncing *s, const struct roster_entry *from,
                      uint64_t a, uint64_t b, const unsigned char *after)
{
    struct blob q = { 0 };
    struct frame f;
    names_begin(s->m, &q);
    blob_number(&q, 0, 1);
    blob_number(&q, a, 8);
    blob_number(&q, b, 8);
    blob_number(&q, after != NULL, 1);
    if (after)
        blob_bytes(&q, after, STORE_DIGEST);
    if (names_ask(s->m, s->by, &from->address, NAMES_LIST, &q, &f))
        return -1;
    struct body body = { f.body, f.nbody, false };
    const unsigned n = (unsigned)body_number(&body, 2);
    if (n > NAMES_PAGE)
        return -1;
    for (unsigned i = 0; i < n && !body.bad; i++) {
        body_number(&body, 1);
        stored_take(&body, &s->page[i]);
    }
    return body.bad ? -1 : (int)n;
}

/* The same version of a name here as there. */
static bool take_over(struct syncing *s, const struct roster_entry *from,
                      const struct stored *r, bool lenient)
{
    struct names *const m = s->m;
    struct stored mine, whole;
    const unsigned char *bytes;
    unsigned char *data = NULL;
    const enum store_result here =
        m->host->get(m->ctx, r->digest, &mine, &data);
    free(data);
    if (here == STORE_NOT_NOW)
        return false;
    if (here == STORE_OK) {
        if (mine.counter == r->counter && mine.writer == r->writer)
            return true;
        if (m->merges && store_newer(&mine, r))
            return true;
    }
    struct blob q = { 0 };
    struct frame f;
    names_begin(m, &q);
    blob_bytes(&q, r->digest, STORE_DIGEST);
    const enum frame_error e =
        names_ask(m, s->by, &from->address, NAMES_GET, &q, &f);
    if (e == FRAME_NOT_FOUND || (e == FRAME_DAMAGED && lenient))
        return true; /* its time had come meanwhile, or nobody can read it */
    if (e)
        return false;
    struct body b = { f.body, f.nbody, false };
    stored_take(&b, &whole);
    whole.nbytes = (uint32_t)b.n;
    bytes = b.at;
    if (b.bad || b.n > STORE_MOST || !whole.flags ||
        !stored_genuine(&whole, bytes) ||
        memcmp(whole.digest, r->digest, STORE_DIGEST) != 0)
        return false;
    if (here == STORE_OK && store_newer(&mine, &whole))
        m->host->drop(m->ctx, r->digest);
    return m->host->put(m->ctx, &whole, bytes) == STORE_OK;
}

static int by_digest(const void *x, const void *y)
{
    return memcmp(x, y, STORE_DIGEST); /* what a record begins with */
}

/* Drop what is here behind `low` and up to `high` (NULL: the end of the piece)
 * and not in the page. */
static void drop_others(struct syncing *s, uint64_t a, uint64_t b,
                        const unsigned char *low, const unsigned char *high,
                        size_t npage)
{
    struct names *const m = s->m;
    unsigned char after[STORE_DIGEST];
    const unsigned char *from = low;
    for (;;) {
        const size_t n = m->host->list(m->ctx, a, b, from, s->own, NAMES_PAGE);
        for (size_t i = 0; i < n; i++) {
            const uint64_t x = store_id(s->own[i].digest) - a - 1;
            const uint64_t y = high ? store_id(high) - a - 1 : UINT64_MAX;
            if (high && (x > y || (x == y && memcmp(s->own[i].digest, high,
                                                    STORE_DIGEST) > 0)))
                return;
            if (!bsearch(s->own[i].digest, s->page, npage, sizeof *s->page,
                         by_digest))
                m->host->drop(m->ctx, s->own[i].digest);
        }
        if (n < NAMES_PAGE)
            return;
        memcpy(after, s->own[n - 1].digest, STORE_DIGEST);
        from = after;
    }
}

/* All names in (a, b] as somebody has them. */
static bool take_from(struct syncing *s, const struct roster_entry *from,
                      uint64_t a, uint64_t b, bool lenient)
{
    unsigned char after[STORE_DIGEST];
    const unsigned char *low = NULL;
    for (;;) {
        const int n = list_there(s, from, a, b, low);
        if (n < 0)
            return false;
        for (int i = 0; i < n; i++)
            if (!take_over(s, from, &s->page[i], lenient))
                return false;
        const bool last = n < NAMES_PAGE;
        unsigned char high[STORE_DIGEST];
        if (n)
            memcpy(high, s->page[n - 1].digest, STORE_DIGEST);
        qsort(s->page, (size_t)n, sizeof *s->page, by_digest);
        if (!s->m->merges)
            drop_others(s, a, b, low, last ? NULL : high, (size_t)n);
        if (last)
            return true;
        memcpy(after, high, STORE_DIGEST);
        low = after;
    }
}

/* From the first that can give all of it; a name that is damaged at all of them
 * does not keep the others away. */
static bool take_piece(struct syncing *s, uint64_t a, uint64_t b)
{
    const struct roster_entry *from = NULL;
    for (unsigned lenient = 0; lenient < 2; lenient++)
        for (unsigned skip = 0; skip < ROSTER_HOLDERS; skip++) {
            const enum source source = find_source(s, b, skip, &from);
            if (source == SOURCE_SELF)
                return true;
            if (source == SOURCE_NONE)
                break;
            if (take_from(s, from, a, b, lenient))
                return true;
        }
    return false;
}

/* --------------------------------------------------------------- the circle */

static int by_number(const void *x, const void *y)
{
    const uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return a < b ? -1 : a > b;
}

/* Where the circle is cut; the caller frees it. */
static uint64_t *cuts(const struct syncing *s, size_t *n)
{
    size_t room = 0, kept = 0;
    for (unsigned i = 0; i < s->npast; i++)
        room += s->past[i]->ring.n;
    uint64_t *const at = malloc((room + 1) * sizeof *at);
    if (!at)
        return NULL;
    *n = 0;
    for (unsigned i = 0; i < s->npast; i++)
        for (size_t k = 0; k < s->past[i]->ring.n; k++)
            at[(*n)++] = s->past[i]->ring.at[k].id;
    qsort(at, *n, sizeof *at, by_number);
    for (size_t i = 0; i < *n; i++)
        if (!kept || at[i] != at[kept - 1])
            at[kept++] = at[i];
    *n = kept;
    return at;
}

static void syncing_free(struct syncing *s)
{
    for (unsigned i = 0; i < s->npast && s->past; i++)
        if (s->past[i]) {
            roster_places_free(&s->past[i]->ring);
            free(s->past[i]);
        }
    for (size_t i = 0; i < s->nreports; i++)
        free(s->reports[i].at);
    free(s->past);
    free(s->reports);
    free(s->page);
    free(s->own);
}

/* The epochs as they are now: others may adopt one meanwhile. */
static bool syncing_start(struct syncing *s)
{
    struct names *const m = s->m;
    pthread_rwlock_rdlock(&m->lock);
    const struct names_epoch *const now = names_now(m);
    bool ok = now && roster_has(&now->roster, m->self.who) &&
              (!now->ready || now->nholes);
    s->past = ok ? calloc(m->npast, sizeof *s->past) : NULL;
    ok = s->past != NULL;
    if (ok) {
        s->epoch = now->roster.epoch;
        s->npast = m->npast;
    }
    for (unsigned i = 0; ok && i < s->npast; i++) {
        s->past[i] = malloc(sizeof **s->past);
        ok = s->past[i] != NULL;
        if (ok) {
            *s->past[i] = *m->past[i];
            ok = roster_places(&s->past[i]->roster, &s->past[i]->ring);
        }
    }
    pthread_rwlock_unlock(&m->lock);
    s->page = malloc(NAMES_PAGE * sizeof *s->page);
    s->own = malloc(NAMES_PAGE * sizeof *s->own);
    return ok && s->page && s->own;
}

void names_sync(struct names *m, void *by)
{
    struct syncing s = { .m = m, .by = by };
    struct names_epoch *done = calloc(1, sizeof *done);
    size_t ncuts = 0;
    uint64_t *const at = done && syncing_start(&s) ? cuts(&s, &ncuts) : NULL;
    bool whole = at != NULL;
    if (at) {
        const struct names_epoch *const now = s.past[s.npast - 1];
        for (size_t i = 0; i < ncuts; i++) {
            unsigned which[ROSTER_HOLDERS];
            const uint64_t a = at[(i + ncuts - 1) % ncuts], b = at[i];
            const size_t n = roster_holders(&now->ring, b, m->copies, which);
            bool mine = false;
            for (size_t k = 0; k < n; k++)
                mine |= now->roster.at[which[k]].who == m->self.who;
            if (!mine || names_ready_at(now, b))
                continue;
            /* A piece that cannot be had now is a hole: the rest can be
             * served meanwhile. */
            if (take_piece(&s, a, b))
                continue;
            if (done->nholes == NAMES_HOLES) {
                whole = false;
                break;
            }
            done->holes[done->nholes].a = a;
            done->holes[done->nholes++].b = b;
        }
    }
    pthread_rwlock_wrlock(&m->lock);
    struct names_epoch *const now = names_now(m);
    /* Fetching took place without the lock: if another epoch began
     * meanwhile, all of this is about the past. */
    if (whole && now && now->roster.epoch == s.epoch) {
        const struct names_epoch before = *now;
        now->ready = true;
        now->nholes = done->nholes;
        memcpy(now->holes, done->holes, sizeof now->holes);
        /* Ready is a promise to others, so it counts only once it is on
         * disk. */
        if (!names_save(m)) {
            now->ready = before.ready;
            now->nholes = before.nholes;
            memcpy(now->holes, before.holes, sizeof now->holes);
        }
    }
    const bool ready = now && now->ready && !now->nholes;
    pthread_rwlock_unlock(&m->lock);
    pthread_mutex_lock(&m->wants);
    m->offers |= whole && ready && m->merges;
    m->unsettled |= whole && ready;
    pthread_mutex_unlock(&m->wants);
    free(at);
    free(done);
    syncing_free(&s);
}

/* -------------------------------------------------------------------- ticks */

/* Ask a process whether it lives. Its epoch, 0: silence. */
static uint64_t ping(struct names *m, void *by, const struct roster_entry *e,
                     uint64_t epoch, bool *ready, bool *other)
{
    struct blob q = { 0 };
    struct frame f;
    names_begin(m, &q);
    blob_number(&q, epoch, 8);
    if (names_ask(m, by, &e->address, NAMES_PING, &q, &f))
        return 0;
    struct body b = { f.body, f.nbody, false };
    const uint64_t who = body_number(&b, 8), theirs = body_number(&b, 8);
    *ready = body_number(&b, 1) == 1 && theirs == epoch;
    *other = !b.bad && who != e->who;
    return b.bad || *other ? 0 : theirs;
}

bool names_is_silent(const struct names *m, uint64_t who)
{
    for (unsigned i = 0; i < m->nheard; i++)
        if (m->heard[i].who == who)
            return m->heard[i].silent;
    return false;
}

/* Those that were silent in the last roster start out silent in the next. */
static void carry_over(struct names *m, const struct roster *r)
{
    struct names_heard heard[ROSTER_MOST];
    if (m->heard_epoch == r->epoch)
        return;
    for (unsigned i = 0; i < r->n; i++) {
        heard[i] = (struct names_heard){ .who = r->at[i].who };
        for (unsigned k = 0; k < m->nheard; k++)
            if (m->heard[k].who == heard[i].who)
                heard[i] = m->heard[k];
    }
    memcpy(m->heard, heard, r->n * sizeof heard[0]);
    m->nheard = r->n;
    m->heard_epoch = r->epoch;
}

/* All of a small roster; of a large one some, and all that were silent. */
static void ping_some(struct names *m, void *by, const struct roster *r,
                      uint64_t now, uint64_t evict)
{
    carry_over(m, r);
    for (unsigned i = 0; i < r->n; i++) {
        struct names_heard *const h = &m->heard[i];
        bool ready = false, other = false;
        h->silent = false;
        if (r->at[i].who == m->self.who ||
            (r->n > NAMES_PINGS && !h->since &&
             random_next(&m->random) % r->n >= NAMES_PINGS))
            continue;
        const uint64_t epoch = ping(m, by, &r->at[i], r->epoch, &ready, &other);
        if (epoch)
            h->since = 0;
        else if (other) /* its place is taken: it is gone */
            h->since = now > evict ? now - evict : 1;
        else if (!h->since)
            h->since = now ? now : 1;
        h->silent = !epoch;
        if (epoch > r->epoch)
            names_learn(m, by, &r->at[i].address);
        else if (epoch && epoch < r->epoch)
            names_teach(m, by, &r->at[i], epoch);
    }
}

/* The roster that should be next: without the silent, with those who come. */
static bool wanted_next(struct names *m, const struct roster *r, uint64_t now,
                        uint64_t evict, struct roster *next,
                        uint64_t leaving[NAMES_JOINING], unsigned *nleaving)
{
    *next = *r;
    next->epoch = r->epoch + 1;
    *nleaving = 0;
    unsigned silent = 0, first = r->n;
    for (unsigned i = 0; i < r->n; i++) {
        const struct names_heard *const h = &m->heard[i];
        const bool gone = h->silent && now - h->since >= evict;
        if (!gone && first == r->n)
            first = i;
        if (gone) {
            roster_drop(next, r->at[i].who);
            silent++;
        }
    }
    /* Fewer than a majority cannot decide that anyway; if they are no longer
     * cut off by the time they ask, they must not try. */
    const bool alone = next->n < roster_majority(r);
    if (alone) {
        *next = *r;
        next->epoch = r->epoch + 1;
        silent = 0;
    }
    /* Usually one of them proposes; the others do if that one fails. */
    const bool turn = first < r->n && r->at[first].who == m->self.who;
    const bool now_anyway = random_next(&m->random) % (2 * r->n) == 0;
    pthread_mutex_lock(&m->wants);
    m->alone = alone;
    bool asked = m->ncoming || m->ngoing;
    for (unsigned i = 0; i < m->ncoming; i++) {
        const unsigned at = roster_find(r, m->coming[i].who);
        if (at < r->n &&
            address_equal(&r->at[at].address, &m->coming[i].address) &&
            r->at[at].vnodes == m->coming[i].vnodes &&
            roster_has(next, m->coming[i].who))
            continue;
        roster_add(next, &m->coming[i]);
    }
    for (unsigned i = 0; i < m->ngoing; i++) {
        roster_drop(next, m->going[i]);
        leaving[(*nleaving)++] = m->going[i];
    }
    m->ncoming = m->ngoing = 0;
    pthread_mutex_unlock(&m->wants);
    return next->n && !roster_same(next, r) &&
           (asked || (silent && (turn || now_anyway)));
}

/* Ask to be taken in. */
static void ask_in(struct names *m, void *by, const struct address *at)
{
    struct blob q = { 0 };
    struct frame f;
    names_begin(m, &q);
    blob_number(&q, 1, 1);
    roster_put_entry(&q, &m->self);
    const enum frame_error e = names_ask(m, by, at, NAMES_ADMIT, &q, &f);
    if (e)
        return;
    struct body b = { f.body, f.nbody, false };
    const uint64_t lineage = body_number(&b, 8);
    pthread_rwlock_rdlock(&m->lock);
    const bool stranger = m->lineage && lineage != m->lineage;
    pthread_rwlock_unlock(&m->lock);
    pthread_mutex_lock(&m->wants);
    m->stranger |= stranger;
    pthread_mutex_unlock(&m->wants);
}

static void come_in(struct names *m, void *by, const struct roster *r,
                    const struct address *entries, size_t nentries)
{
    /* Through those of the roster that it knows, and those it was told. */
    const size_t n = nentries + r->n;
    for (unsigned tries = 0; n && tries < 3; tries++) {
        const size_t i = (size_t)(random_next(&m->random) % n);
        const struct address *const at =
            i < nentries ? &entries[i] : &r->at[i - nentries].address;
        if (address_equal(at, &m->self.address))
            continue;
        ask_in(m, by, at);
        names_learn(m, by, at);
        if (names_state(m).in)
            return;
    }
}

void names_tick(struct names *m, void *by, const struct address *entries,
                size_t nentries, uint64_t now, uint64_t evict)
{
    struct roster *const r = calloc(2, sizeof *r), *const next = r + 1;
    if (!r)
        return;
    pthread_mutex_lock(&m->wants);
    m->behind = false;
    pthread_mutex_unlock(&m->wants);
    names_roster(m, r);
    if (r->n)
        ping_some(m, by, r, now, evict);
    names_roster(m, r);
    uint64_t leaving[NAMES_JOINING];
    unsigned nleaving = 0;
    const unsigned self = roster_find(r, m->self.who);
    const bool in = self < r->n;
    if (!in) {
        pthread_mutex_lock(&m->wants);
        m->alone = false; /* nobody asks for its vote */
        pthread_mutex_unlock(&m->wants);
        come_in(m, by, r, entries, nentries);
    } else if (!address_equal(&r->at[self].address, &m->self.address) ||
               r->at[self].vnodes != m->self.vnodes) {
        /* At another address than before. */
        pthread_mutex_lock(&m->wants);
        if (m->ncoming < NAMES_JOINING)
            m->coming[m->ncoming++] = m->self;
        pthread_mutex_unlock(&m->wants);
    }
    if (in && m->heard_epoch == r->epoch &&
        wanted_next(m, r, now, evict, next, leaving, &nleaving))
        names_propose(m, by, next, leaving, nleaving);
    names_sync(m, by);
    free(r);
}

bool names_leave(struct names *m, void *by)
{
    struct roster *const r = calloc(1, sizeof *r);
    if (!r)
        return true;
    bool done = !names_roster(m, r);
    if (!done && roster_has(r, m->self.who)) {
        roster_drop(r, m->self.who);
        r->epoch++;
        if (r->n)
            names_propose(m, by, r, &m->self.who, 1);
        done = !r->n;
    } else if (!done) {
        /* The others need this process until they have what it has. */
        done = true;
        for (unsigned i = 0; i < r->n && done; i++) {
            bool ready = false, other = false;
            ping(m, by, &r->at[i], r->epoch, &ready, &other);
            done = ready;
        }
    }
    free(r);
    return done;
}
