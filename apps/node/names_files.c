/*
 * names_files.c - reading and writing names
 *
 * A version is a number that the primary counts up, and behind it, in `writer`,
 * the epoch in its upper half and a number of the writer's choice in the lower:
 * so a client that had no answer can find out whether its write is there, and a
 * write that never got to all holders loses against every later one.
 *
 * A client names the number that it saw before its write. A primary that has
 * another refuses, so that a write which is repeated takes effect once.
 */
#define _GNU_SOURCE
#include "apps/node/names.h"

#include <stdlib.h>
#include <string.h>

#include "chord/chord_record.h"

/* Who keeps a name in the present epoch. */
struct group {
    uint64_t epoch;
    size_t n;
    struct roster_entry at[ROSTER_HOLDERS];
    bool ready; /* this process is among them and ready */
};

static bool group_of(struct names *m, uint64_t id, struct group *g)
{
    unsigned which[ROSTER_HOLDERS];
    g->n = 0;
    g->ready = false;
    pthread_rwlock_rdlock(&m->lock);
    const struct names_epoch *const now = names_now(m);
    if (now) {
        g->epoch = now->roster.epoch;
        g->n = roster_holders(&now->ring, id, m->copies, which);
        for (size_t i = 0; i < g->n; i++) {
            g->at[i] = now->roster.at[which[i]];
            g->ready |= g->at[i].who == m->self.who;
        }
        g->ready = g->ready && names_ready_at(now, id);
    }
    pthread_rwlock_unlock(&m->lock);
    return g->n > 0;
}

/* With the lock held: is this process a holder, ready, in that epoch? */
static bool may_answer(const struct names *m, uint64_t epoch, uint64_t id)
{
    unsigned which[ROSTER_HOLDERS];
    const struct names_epoch *const now = names_now(m);
    if (!now || now->roster.epoch != epoch || !names_ready_at(now, id))
        return false;
    const size_t n = roster_holders(&now->ring, id, m->copies, which);
    for (size_t i = 0; i < n; i++)
        if (now->roster.at[which[i]].who == m->self.who)
            return true;
    return false;
}

static enum frame_error not_now(struct names *m, uint64_t epoch,
                                const char **text)
{
    if (names_state(m).epoch < epoch) {
        pthread_mutex_lock(&m->wants);
        m->behind = true;
        pthread_mutex_unlock(&m->wants);
    }
    *text = "not ready to answer for this name: those who keep it change, or "
            "this node has to exchange with them first";
    return FRAME_BUSY;
}

static void unsettle(struct names *m)
{
    pthread_mutex_lock(&m->wants);
    m->unsettled = true;
    pthread_mutex_unlock(&m->wants);
}

/* ----------------------------------------------------------------- a holder */

static enum frame_error put_error(enum store_result r, const char **text)
{
    switch (r) {
    case STORE_OK:
        return (enum frame_error)0;
    case STORE_STALE:
        *text = "there is a newer version";
        return FRAME_STALE;
    case STORE_NOT_NOW:
        *text = "it cannot be kept at the moment: too many open files, or no "
                "memory";
        return FRAME_BUSY;
    default:
        *text = "it could not be written to the disk";
        return FRAME_FULL;
    }
}

/* Take a record in an epoch, which lasts until it is on disk. */
static enum frame_error take_here(struct names *m, uint64_t epoch,
                                  const struct stored *r, const void *data,
                                  const char **text)
{
    pthread_rwlock_rdlock(&m->lock);
    const bool may = may_answer(m, epoch, store_id(r->digest));
    const enum store_result got =
        may ? m->host->put(m->ctx, r, data) : STORE_NOT_NOW;
    pthread_rwlock_unlock(&m->lock);
    return may ? put_error(got, text) : not_now(m, epoch, text);
}

/* A record and its data, as they stand at the end of a body. */
static bool take_record(struct body *b, struct stored *r,
                        const unsigned char **data)
{
    stored_take(b, r);
    r->nbytes = (uint32_t)b->n;
    *data = b->at;
    return !b->bad && b->n <= STORE_MOST && r->flags &&
           stored_genuine(r, b->at);
}

static enum frame_error serve_take(struct names *m, struct body *b,
                                   struct blob *out, const char **text)
{
    struct stored r;
    const unsigned char *data;
    const uint64_t epoch = body_number(b, 8);
    if (!take_record(b, &r, &data) || !r.counter || r.counter == UINT64_MAX) {
        *text = "a malformed record, or one that differs from its digest";
        return FRAME_WRONG;
    }
    blob_number(out, m->self.who, 8);
    return take_here(m, epoch, &r, data, text);
}

/* What a holder has of a name. */
enum has { HAS_NOTHING, HAS_IT, HAS_DAMAGE };

static enum frame_error look_here(struct names *m, uint64_t epoch,
                                  const unsigned char *digest, enum has *has,
                                  struct stored *r, const char **text)
{
    enum store_result got = STORE_NOT_NOW;
    unsigned char *data = NULL;
    pthread_rwlock_rdlock(&m->lock);
    const bool may = may_answer(m, epoch, store_id(digest));
    if (may) /* with its data: a name that cannot be read is none */
        got = m->host->get(m->ctx, digest, r, &data);
    pthread_rwlock_unlock(&m->lock);
    free(data);
    *has = got == STORE_OK     ? HAS_IT
           : got == STORE_NONE ? HAS_NOTHING
                               : HAS_DAMAGE;
    if (!may)
        return not_now(m, epoch, text);
    *text = "it cannot be read at the moment";
    return got == STORE_NOT_NOW ? FRAME_BUSY : (enum frame_error)0;
}

static enum frame_error serve_confirm(struct names *m, struct body *b,
                                      struct blob *out, const char **text)
{
    const uint64_t epoch = body_number(b, 8);
    const unsigned char *const digest = body_bytes(b, STORE_DIGEST);
    struct stored r = { 0 };
    enum has has;
    if (!digest || b->n) {
        *text = "a malformed question";
        return FRAME_WRONG;
    }
    const enum frame_error e = look_here(m, epoch, digest, &has, &r, text);
    blob_number(out, m->self.who, 8);
    blob_number(out, has, 1);
    if (has == HAS_IT)
        stored_put(out, &r);
    return e;
}

/* Whatever this process has, in any epoch: for those who take a range over. */
static enum frame_error serve_own(struct names *m, struct body *b,
                                  struct blob *out, const char **text)
{
    const unsigned char *const digest = body_bytes(b, STORE_DIGEST);
    unsigned char *data = NULL;
    struct stored r;
    if (!digest || b->n) {
        *text = "a malformed question";
        return FRAME_WRONG;
    }
    const enum store_result got = m->host->get(m->ctx, digest, &r, &data);
    if (got == STORE_OK) {
        stored_put(out, &r);
        blob_bytes(out, data, r.nbytes);
    }
    free(data);
    *text = got == STORE_NONE      ? "not here"
            : got == STORE_DAMAGED ? "damaged here"
                                   : "it cannot be read at the moment";
    return got == STORE_OK        ? (enum frame_error)0
           : got == STORE_NONE    ? FRAME_NOT_FOUND
           : got == STORE_DAMAGED ? FRAME_DAMAGED
                                  : FRAME_BUSY;
}

static enum frame_error serve_names(struct names *m, struct body *b,
                                    struct blob *out, const char **text)
{
    const bool primary = body_number(b, 1) == 1;
    const uint64_t from = body_number(b, 8), to = body_number(b, 8);
    const unsigned char *const after =
        body_number(b, 1) ? body_bytes(b, STORE_DIGEST) : NULL;
    struct stored *const list = malloc(NAMES_PAGE * sizeof *list);
    const struct names_state state = names_state(m);
    if (b->bad || b->n || !list) {
        free(list);
        *text = "a malformed LIST";
        return FRAME_WRONG;
    }
    if (primary && !state.ready) {
        free(list);
        return not_now(m, 0, text);
    }
    const size_t n = m->host->list(m->ctx, from, to, after, list, NAMES_PAGE);
    blob_number(out, n, 2);
    for (size_t i = 0; i < n; i++) {
        struct group g;
        /* Of a primary: whose names others list are marked. */
        const bool own =
            !primary || (group_of(m, store_id(list[i].digest), &g) &&
                         g.at[0].who == m->self.who);
        blob_number(out, own, 1);
        stored_put(out, &list[i]);
    }
    free(list);
    return (enum frame_error)0;
}

/* ---------------------------------------------------------------- a primary */

/* What became of copies. They are counted by identities, not by connections. */
struct giving {
    const struct roster_entry *to;
    enum frame_error error;
};

static void gave(void *ctx, size_t i, enum frame_error e, const struct frame *f)
{
    struct giving *const g = ctx;
    struct body b = { f->body, f->nbody, false };
    if (!e && (body_number(&b, 8) != g->to[i].who || b.bad))
        e = FRAME_REFUSED;
    if (e && g->error != FRAME_FULL)
        g->error = e;
}

static enum frame_error give(struct names *m, void *by, uint64_t epoch,
                             const struct roster_entry *to, size_t n,
                             const struct stored *r, const void *data)
{
    struct blob q = { 0 };
    struct giving g = { to, (enum frame_error)0 };
    names_begin(m, &q);
    blob_number(&q, epoch, 8);
    stored_put(&q, r);
    blob_bytes(&q, data, r->nbytes);
    names_ask_all(m, by, to, n, NAMES_TAKE, &q, gave, &g);
    return g.error;
}

struct looking {
    const struct roster_entry *at;
    const unsigned char *digest;
    enum has *has;
    struct stored *r;
    enum frame_error error;
};

static void looked(void *ctx, size_t i, enum frame_error e,
                   const struct frame *f)
{
    struct looking *const l = ctx;
    struct body b = { f->body, f->nbody, false };
    if (!e) {
        const bool itself = body_number(&b, 8) == l->at[i].who;
        l->has[i] = (enum has)body_number(&b, 1);
        if (l->has[i] == HAS_IT)
            stored_take(&b, &l->r[i]);
        if (b.bad || !itself || l->has[i] > HAS_DAMAGE ||
            (l->has[i] == HAS_IT &&
             memcmp(l->r[i].digest, l->digest, STORE_DIGEST) != 0))
            e = FRAME_REFUSED;
    }
    if (e)
        l->error = e;
}

/* What others have of a name, all being ready in the epoch. */
static enum frame_error look_there(struct names *m, void *by, uint64_t epoch,
                                   const struct roster_entry *at, size_t n,
                                   const unsigned char *digest, enum has *has,
                                   struct stored *r)
{
    struct blob q = { 0 };
    struct looking l = { at, digest, has, r, (enum frame_error)0 };
    names_begin(m, &q);
    blob_number(&q, epoch, 8);
    blob_bytes(&q, digest, STORE_DIGEST);
    names_ask_all(m, by, at, n, NAMES_CONFIRM, &q, looked, &l);
    return l.error;
}

static enum frame_error fetch(struct names *m, void *by,
                              const struct roster_entry *from,
                              const unsigned char *digest, struct stored *r,
                              unsigned char **data)
{
    struct blob q = { 0 };
    struct frame f;
    const unsigned char *bytes;
    names_begin(m, &q);
    blob_bytes(&q, digest, STORE_DIGEST);
    const enum frame_error e =
        names_ask(m, by, &from->address, NAMES_GET, &q, &f);
    if (e)
        return e;
    struct body b = { f.body, f.nbody, false };
    if (!take_record(&b, r, &bytes) ||
        memcmp(r->digest, digest, STORE_DIGEST) != 0)
        return FRAME_WRONG;
    *data = malloc(r->nbytes + 1u);
    if (!*data)
        return FRAME_FULL;
    memcpy(*data, bytes, r->nbytes);
    return (enum frame_error)0;
}

/* What the group has of a name, the same at all of them when this returns 0.
 * With the name's serial lock held. FRAME_DAMAGED: all copies are damaged. */
static enum frame_error settle(struct names *m, void *by, const struct group *g,
                               const unsigned char *digest, enum has *has,
                               struct stored *best, const char **text)
{
    struct stored at[ROSTER_HOLDERS];
    enum has what[ROSTER_HOLDERS];
    size_t from = g->n;
    bool equal = true, damage = false;
    *has = HAS_NOTHING;
    /* This process is the primary, the first of the group. */
    enum frame_error e = look_here(m, g->epoch, digest, &what[0], &at[0], text);
    if (!e) {
        e = look_there(m, by, g->epoch, g->at + 1, g->n - 1, digest, what + 1,
                       at + 1);
        if (e)
            *text = "one of those who keep this name does not answer for it "
                    "now";
    }
    if (e)
        return FRAME_BUSY;
    for (size_t i = 0; i < g->n; i++) {
        if (what[i] == HAS_IT &&
            (from == g->n || store_newer(&at[i], &at[from])))
            from = i;
        equal &= what[i] == what[0] && what[i] != HAS_DAMAGE;
        damage |= what[i] == HAS_DAMAGE;
    }
    if (from == g->n) {
        *has = damage ? HAS_DAMAGE : HAS_NOTHING;
        *text = "damaged at all who keep it; put it again";
        return damage ? FRAME_DAMAGED : (enum frame_error)0;
    }
    *has = HAS_IT;
    *best = at[from];
    for (size_t i = 0; i < g->n && equal; i++)
        equal = !store_newer(best, &at[i]);
    if (equal)
        return (enum frame_error)0;
    unsigned char *data = NULL;
    if (from)
        e = fetch(m, by, &g->at[from], digest, best, &data);
    else if (m->host->get(m->ctx, digest, best, &data) != STORE_OK)
        e = FRAME_BUSY;
    for (size_t i = 0; i < g->n && !e; i++) {
        if (what[i] == HAS_IT && !store_newer(best, &at[i]))
            continue;
        e = !i ? take_here(m, g->epoch, best, data, text)
               : give(m, by, g->epoch, &g->at[i], 1, best, data);
    }
    free(data);
    if (e)
        *text = "one of those who keep this name could not be given it";
    return e == FRAME_FULL ? e : e ? FRAME_BUSY : e;
}

/* Is this process the primary of a name, with enough others? */
static enum frame_error lead(struct names *m, const unsigned char *digest,
                             struct group *g, const char **text)
{
    if (!group_of(m, store_id(digest), g) || g->at[0].who != m->self.who) {
        *text = "another node is the first of those who keep this name";
        return FRAME_NOT_MINE;
    }
    return g->ready ? (enum frame_error)0 : not_now(m, 0, text);
}

static pthread_mutex_t *serial_of(struct names *m, const unsigned char *digest)
{
    return &m->serial[digest[STORE_DIGEST - 1] % NAMES_SERIAL];
}

static enum frame_error serve_read(struct names *m, void *by, struct body *b,
                                   struct blob *out, const char **text)
{
    const unsigned char *const digest = body_bytes(b, STORE_DIGEST);
    const bool wants = body_number(b, 1) == 1;
    unsigned char *data = NULL;
    struct group g;
    struct stored r;
    enum has has = HAS_NOTHING;
    if (!digest || b->bad || b->n) {
        *text = "a malformed question";
        return FRAME_WRONG;
    }
    enum frame_error e = lead(m, digest, &g, text);
    if (e)
        return e;
    pthread_mutex_lock(serial_of(m, digest));
    e = settle(m, by, &g, digest, &has, &r, text);
    if (e == FRAME_BUSY && names_alone(m)) {
        *text = "one of those who keep this name does not answer, and half of "
                "the ring or more is silent: too few to go on without it";
        e = FRAME_NOT_SOON;
    }
    if (!e && has == HAS_IT && m->host->get(m->ctx, digest, &r, &data)) {
        *text = "it cannot be read at the moment";
        e = FRAME_BUSY;
    }
    pthread_mutex_unlock(serial_of(m, digest));
    if (!e && has == HAS_NOTHING) {
        *text = "there is no such name";
        e = FRAME_NOT_FOUND;
    }
    if (!e) {
        stored_put(out, &r);
        if (wants)
            blob_bytes(out, data, r.nbytes);
    }
    free(data);
    return e;
}

/* The next version of a name, which all holders are to have. With the serial
 * lock held. */
static enum frame_error write_all(struct names *m, void *by,
                                  const struct group *g, struct stored *r,
                                  const void *data, const char **text)
{
    /* The primary first, so that the next number is known from its disk. */
    enum frame_error e = take_here(m, g->epoch, r, data, text);
    if (e)
        return e;
    e = give(m, by, g->epoch, g->at + 1, g->n - 1, r, data);
    if (e)
        *text = e == FRAME_FULL
                    ? "the disk of one of those who keep this name did not "
                      "take it; it may still come there"
                    : "not all who keep this name have taken it; it may still "
                      "come there";
    return e;
}

static enum frame_error serve_write(struct names *m, void *by, struct body *b,
                                    struct blob *out, const char **text)
{
    uint64_t before = body_number(b, 8);
    const unsigned char *data;
    struct group g;
    struct stored r, old = { 0 };
    enum has has;
    if (!take_record(b, &r, &data)) {
        *text = "a malformed record, or one that differs from its digest";
        return FRAME_WRONG;
    }
    const bool over_damage = before == UINT64_MAX;
    if (!over_damage && before >= UINT64_MAX - 1) {
        *text = "this name has been written as often as it can be";
        return FRAME_WRONG;
    }
    enum frame_error e = lead(m, r.digest, &g, text);
    if (e)
        return e;
    const size_t least = names_state(m).least;
    if (g.n < least) {
        *text = "there are fewer nodes than --least-copies; start more of them";
        return FRAME_NOT_SOON;
    }
    r.writer = g.epoch << 32 | (r.writer & UINT32_MAX);
    pthread_mutex_lock(serial_of(m, r.digest));
    e = look_here(m, g.epoch, r.digest, &has, &old, text);
    const uint64_t damaged = old.counter;
    if (!e && has == HAS_DAMAGE)
        e = settle(m, by, &g, r.digest, &has, &old, text);
    if (has != HAS_IT)
        old.counter = old.writer = 0;
    if (e == FRAME_DAMAGED && over_damage && damaged < UINT64_MAX - 1) {
        /* Nobody can read it, so it is overwritten. */
        e = (enum frame_error)0;
        before = old.counter = damaged;
    }
    r.counter = before + 1;
    const bool again = old.counter == r.counter &&
                       (old.writer & UINT32_MAX) == (r.writer & UINT32_MAX);
    if (!e && again) {
        e = settle(m, by, &g, r.digest, &has, &old, text);
    } else if (!e && old.counter != before) {
        *text = "somebody else has written this name meanwhile";
        e = FRAME_STALE;
    } else if (!e) {
        e = write_all(m, by, &g, &r, data, text);
        if (e)
            unsettle(m);
    }
    pthread_mutex_unlock(serial_of(m, r.digest));
    blob_number(out, g.n, 1);
    return e;
}

enum frame_error names_serve_files(struct names *m, void *by, uint8_t type,
                                   struct body *b, struct blob *out,
                                   const char **text)
{
    switch (type) {
    case NAMES_READ:
        return serve_read(m, by, b, out, text);
    case NAMES_WRITE:
        return serve_write(m, by, b, out, text);
    case NAMES_TAKE:
        return serve_take(m, b, out, text);
    case NAMES_CONFIRM:
        return serve_confirm(m, b, out, text);
    case NAMES_LIST:
        return serve_names(m, b, out, text);
    case NAMES_GET:
        return serve_own(m, b, out, text);
    default:
        *text = "a question of an unknown type";
        return FRAME_WRONG;
    }
}

/* ------------------------------------------------------------- now and then */

/* Have the primary of a name settle it: what it has then. */
static enum frame_error read_there(struct names *m, void *by,
                                   const struct group *g,
                                   const unsigned char *digest,
                                   struct stored *r)
{
    struct blob q = { 0 };
    struct frame f;
    names_begin(m, &q);
    blob_bytes(&q, digest, STORE_DIGEST);
    blob_number(&q, 0, 1);
    const enum frame_error e =
        names_ask(m, by, &g->at[0].address, NAMES_READ, &q, &f);
    if (e)
        return e;
    struct body b = { f.body, f.nbody, false };
    stored_take(&b, r);
    return b.bad ? FRAME_WRONG : (enum frame_error)0;
}

/* A name from before this process had a roster. If those who keep it have less,
 * it is written as anybody would. */
static bool offer_name(struct names *m, void *by, const struct group *g,
                       const struct stored *r)
{
    struct stored there = { 0 }, mine;
    const enum frame_error e = read_there(m, by, g, r->digest, &there);
    if (e && e != FRAME_NOT_FOUND)
        return false;
    if (e)
        there.counter = 0;
    if (there.counter >= r->counter ||
        (e == FRAME_NOT_FOUND && r->flags & STORE_IS_TOMB))
        return true;
    unsigned char *data = NULL;
    if (m->host->get(m->ctx, r->digest, &mine, &data))
        return true; /* damaged: there is nothing to give */
    struct blob q = { 0 };
    struct frame f;
    names_begin(m, &q);
    blob_number(&q, there.counter, 8);
    stored_put(&q, &mine);
    blob_bytes(&q, data, mine.nbytes);
    free(data);
    return !names_ask(m, by, &g->at[0].address, NAMES_WRITE, &q, &f);
}

/* False: it has to be tried again. */
static bool settle_one(struct names *m, void *by, const struct stored *r,
                       bool offers)
{
    struct group g;
    struct stored there;
    if (!group_of(m, store_id(r->digest), &g))
        return true;
    if (offers)
        return offer_name(m, by, &g, r);
    if (g.at[0].who != m->self.who &&
        m->host->get(m->ctx, r->digest, &there, NULL) != STORE_DAMAGED)
        return true;
    const enum frame_error e = read_there(m, by, &g, r->digest, &there);
    return !e || e == FRAME_NOT_FOUND || e == FRAME_DAMAGED;
}

bool names_settle(struct names *m, void *by)
{
    struct stored *const list = malloc(NAMES_SETTLE * sizeof *list);
    pthread_mutex_lock(&m->wants);
    const bool again = m->unsettled, offers = m->offers;
    m->unsettled = false;
    pthread_mutex_unlock(&m->wants);
    /* What came meanwhile may lie behind: once more from the beginning. */
    const bool first = again || !m->settling;
    m->settling |= again || offers;
    if (!m->settling || !list) {
        free(list);
        return !m->settling;
    }
    const size_t n =
        m->host->list(m->ctx, UINT64_MAX, UINT64_MAX, first ? NULL : m->settled,
                      list, NAMES_SETTLE);
    bool ok = true;
    for (size_t i = 0; i < n && ok; i++) {
        ok = settle_one(m, by, &list[i], offers);
        if (ok)
            memcpy(m->settled, list[i].digest, STORE_DIGEST);
    }
    free(list);
    const bool done = ok && n < NAMES_SETTLE;
    m->settling = !done;
    pthread_mutex_lock(&m->wants);
    m->unsettled |= !ok && first; /* not even the first page */
    m->offers &= !done;
    m->merges &= !(offers && done);
    pthread_mutex_unlock(&m->wants);
    return done;
}

/* All who have to keep it do, and are ready: others are asked for nothing of
 * this epoch or earlier any more. */
static bool kept_elsewhere(struct names *m, void *by, const struct group *g,
                           const struct stored *r, bool *answered)
{
    struct stored there[ROSTER_HOLDERS];
    enum has has[ROSTER_HOLDERS];
    for (size_t i = 0; i < g->n; i++)
        if (g->at[i].who == m->self.who)
            return false;
    /* What they do not have they have been told to drop, or it is a write that
     * nobody was told of. */
    bool kept = *answered =
        !look_there(m, by, g->epoch, g->at, g->n, r->digest, has, there);
    for (size_t i = 0; i < g->n && kept; i++)
        kept = has[i] != HAS_DAMAGE;
    return kept;
}

size_t names_strays(struct names *m, void *by)
{
    struct stored *const list = malloc(NAMES_PAGE * sizeof *list);
    unsigned char after[STORE_DIGEST];
    bool first = true;
    size_t n, dropped = 0;
    const struct names_state state = names_state(m);
    pthread_mutex_lock(&m->wants);
    const bool merges = m->merges;
    pthread_mutex_unlock(&m->wants);
    if (!list || !state.ready || merges) {
        free(list);
        return 0;
    }
    do {
        n = m->host->list(m->ctx, UINT64_MAX, UINT64_MAX, first ? NULL : after,
                          list, NAMES_PAGE);
        for (size_t i = 0; i < n; i++) {
            struct group g;
            bool answered = true;
            if (group_of(m, store_id(list[i].digest), &g) &&
                g.epoch == state.epoch &&
                kept_elsewhere(m, by, &g, &list[i], &answered)) {
                m->host->drop(m->ctx, list[i].digest);
                dropped++;
            }
            if (!answered) { /* another time */
                free(list);
                return dropped;
            }
        }
        if (n)
            memcpy(after, list[n - 1].digest, STORE_DIGEST);
        first = false;
    } while (n == NAMES_PAGE);
    free(list);
    return dropped;
}
