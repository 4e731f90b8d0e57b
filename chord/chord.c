/*
 * chord.c - a member of a Chord ring: maintenance
 *
 * Every change of lists and predecessor is one assignment, made when an answer
 * arrives, and is one of these:
 *
 *     stabilise   ask f, the first of the list, for its predecessor and list
 *       answer    list = f and the first r - 1 of its list; if its predecessor
 *                 p lies between, ask p for its list
 *         answer  list = p and the first r - 1 of its list, if p still lies
 *                 between; notify p
 *         silence notify the first
 *       silence   list without f and with a placeholder behind it; notify the
 *                 new first; again at once
 *     notify      pred = the notifier if it lies between; otherwise, if it is
 *                 another than pred, ask pred whether it lives
 *       silence   pred = the notifier
 *
 * Every attempt ends in exactly one notify. The predecessor is replaced, never
 * erased. A node that answers that it is not a member counts as silent: it has
 * been restarted, and what others know of it is out of date.
 */
#include "chord/chord.h"

#include <string.h>

#include "base/random.h"
#include "base/search.h"

/* ------------------------------------------------------------- small things */

uint64_t chord_random(struct chord *n)
{
    return random_next(&n->random);
}

/* Periods vary by an eighth to both sides, lest all nodes speak at once. */
void chord_timer(struct chord *n, enum chord_timer t, uint64_t period)
{
    if (!period)
        return;
    const uint64_t spread = period / 4;
    n->host->timer(n, t,
                   period - spread / 2 +
                       (spread ? chord_random(n) % (spread + 1) : 0));
}

bool chord_is_dead(const struct chord *n, uint64_t id)
{
    for (size_t i = 0; i < CHORD_DEAD && n->buried; i++)
        if (n->dead[i].times && n->dead[i].id == id)
            return n->dead[i].until > n->now;
    return false;
}

bool chord_gone(const struct chord *n, const uint64_t *dead, unsigned ndead,
                struct chord_peer p)
{
    if (!p.at)
        return true;
    for (unsigned i = 0; i < ndead; i++)
        if (dead[i] == p.id)
            return true;
    return chord_is_dead(n, p.id);
}

/* It did not answer: it is not used as a hop for a while, which doubles each
 * time. A dead finger is dropped. */
void chord_bury(struct chord *n, uint64_t id)
{
    size_t at = 0;
    n->ntimeouts++;
    n->buried = true;
    for (size_t i = 0; i < CHORD_DEAD; i++) {
        if (n->dead[i].times && n->dead[i].id == id) {
            at = i;
            break;
        }
        if (n->dead[i].until < n->dead[at].until)
            at = i;
    }
    if (!n->dead[at].times || n->dead[at].id != id)
        n->dead[at].times = 0;
    n->dead[at].id = id;
    const unsigned times = n->dead[at].times++;
    const uint64_t most = n->ring->dead_most, once = n->ring->dead_for;
    const uint64_t wait =
        times < 20 && once << times < most ? once << times : most;
    n->dead[at].until = n->now + (wait ? wait : 1);
    for (unsigned k = 0; k < n->ring->bits; k++)
        if (n->fing[k].at && n->fing[k].id == id)
            n->fing[k].at = 0;
}

/* Somebody spoke: it lives, and is remembered for rings that fell apart. */
void chord_see(struct chord *n, struct chord_peer p)
{
    if (!p.at || p.id == n->self.id)
        return;
    for (size_t i = 0; i < CHORD_DEAD && n->buried; i++)
        if (n->dead[i].times && n->dead[i].id == p.id)
            n->dead[i].times = 0, n->dead[i].until = 0;
    for (unsigned i = 0; i < n->nseen; i++)
        if (n->seen[i].id == p.id) {
            n->seen[i] = p;
            return;
        }
    const unsigned at = n->nseen < CHORD_SEEN
                            ? n->nseen++
                            : (unsigned)(chord_random(n) % CHORD_SEEN);
    n->seen[at] = p;
}

/* One of those, by chance; there must be one. */
struct chord_peer chord_met(struct chord *n)
{
    return n->seen[chord_random(n) % n->nseen];
}

uint32_t chord_ask(struct chord *n, struct chord_peer to,
                   struct chord_message *m)
{
    m->request = ++n->last_request ? n->last_request : ++n->last_request;
    n->nsent++;
    n->host->send(n, to, m);
    return m->request;
}

static bool is_self(const struct chord *n, struct chord_peer p)
{
    return p.id == n->self.id;
}

static void set_pred(struct chord *n, struct chord_peer p)
{
    const bool other = n->pred.id != p.id;
    if (other)
        n->before = (struct chord_peer){ 0, 0 };
    n->pred = p;
    n->pred_known = true;
    n->uncertain = false;
    if (other)
        n->host->news(n, CHORD_NEW_PRED);
}

/* The list: first and the beginning of its own list. */
static void set_succ(struct chord *n, struct chord_peer first,
                     const struct chord_peer *list, unsigned count)
{
    const bool other = n->succ[0].id != first.id;
    const unsigned r = n->ring->r;
    n->succ[0] = first;
    for (unsigned i = 1; i < r; i++)
        n->succ[i] = i - 1 < count
                         ? list[i - 1]
                         : (struct chord_peer){
                               (n->succ[i - 1].id + 1) & chord_mask(n->ring), 0
                           };
    if (other)
        n->host->news(n, CHORD_NEW_SUCC);
}

void chord_named(const struct chord *n,
                 void (*each)(void *ctx, struct chord_peer p), void *ctx)
{
    const struct chord_peer some[] = {
        n->before,   n->self,      n->pred,     n->stage_peer, n->checked,
        n->notifier, n->join_peer, n->join_via, n->merge_peer
    };
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++)
        each(ctx, some[i]);
    for (unsigned i = 0; i < n->ring->r; i++)
        each(ctx, n->succ[i]);
    for (unsigned i = 0; i < n->ring->bits; i++)
        each(ctx, n->fing[i]);
    for (unsigned i = 0; i < n->nseen; i++)
        each(ctx, n->seen[i]);
    for (unsigned i = 0; i < n->ring->walks; i++) {
        const struct chord_walk *const w = &n->walks[i];
        if (!(n->walks_used >> i & 1))
            continue;
        each(ctx, w->asked);
        each(ctx, w->answered);
        for (unsigned k = 0; k < w->nnext; k++)
            each(ctx, w->next[k]);
        for (unsigned k = 0; k < w->npath; k++)
            each(ctx, w->path[k]);
    }
}

/* -------------------------------------------------------------- predecessor */

static void check_pred(struct chord *n)
{
    if (n->check_request || is_self(n, n->pred) || !n->pred_known)
        return;
    n->checked = n->pred;
    if (!n->pred.at) {
        n->uncertain = true;
        if (n->notified)
            set_pred(n, n->notifier);
        n->notified = false;
        return;
    }
    struct chord_message m = { .type = CHORD_PING };
    n->check_request = chord_ask(n, n->pred, &m);
}

static void pred_answered(struct chord *n, bool lives)
{
    n->check_request = 0;
    const bool same = n->pred_known && n->pred.id == n->checked.id;
    if (n->ring->rules_2001) {
        if (!lives && same)
            n->pred_known = false;
    } else if (lives) {
        n->uncertain &= !same;
    } else if (same && n->notified) {
        set_pred(n, n->notifier);
    } else if (same) {
        n->uncertain = true; /* the old value stays as a bound */
    }
    n->notified = false;
}

/* Somebody says that it comes right before this node. */
static void rectify(struct chord *n, struct chord_peer from)
{
    if (n->ring->rules_2001) {
        chord_2001_notified(n, from);
    } else if (chord_between(n->pred.id, from.id, n->self.id)) {
        set_pred(n, from);
    } else if (from.id != n->pred.id) {
        /* Of several, the one that comes last before this node. */
        if (!n->notified || chord_between(n->notifier.id, from.id, n->self.id))
            n->notifier = from;
        n->notified = true;
        check_pred(n);
    } else {
        n->pred = from; /* its address may be another */
        n->uncertain = false;
    }
}

void chord_notify(struct chord *n, struct chord_peer to)
{
    if (is_self(n, to)) {
        rectify(n, n->self);
    } else if (to.at) {
        /* With the predecessor, as a hint for lookups. */
        const struct chord_message m = { .type = CHORD_NOTIFY,
                                         .npeers = n->pred_known ? 2 : 1,
                                         .peers = { n->self, n->pred } };
        n->nsent++;
        n->host->send(n, to, &m);
    }
}

/* ------------------------------------------------------------ stabilisation */

static void first_silent(struct chord *n);
static void first_answered(struct chord *n, struct chord_peer pred,
                           const struct chord_peer *list, unsigned count);

void chord_stabilise(struct chord *n)
{
    if (n->phase != CHORD_IN || n->stage)
        return;
    n->nstabilised++;
    if (n->ring->rules_2001) {
        chord_2001_stabilise(n);
        return;
    }
    n->stage = 1;
    n->stage_peer = n->succ[0];
    if (is_self(n, n->succ[0])) {
        struct chord_peer list[CHORD_MOST_SUCC];
        memcpy(list, n->succ, sizeof list);
        first_answered(n, n->pred, list, n->ring->r);
    } else if (!n->succ[0].at) {
        first_silent(n);
    } else {
        struct chord_message m = { .type = CHORD_STATE };
        n->stage_request = chord_ask(n, n->succ[0], &m);
    }
}

/* The attempt is done. */
static void stage_end(struct chord *n, struct chord_peer notify)
{
    n->stage = 0;
    n->stage_request = 0;
    chord_notify(n, notify);
}

static void first_silent(struct chord *n)
{
    const unsigned r = n->ring->r;
    bool any = false;
    memmove(n->succ, n->succ + 1, (r - 1) * sizeof n->succ[0]);
    n->succ[r - 1] = (struct chord_peer){
        ((r > 1 ? n->succ[r - 2].id : n->stage_peer.id) + 1) &
            chord_mask(n->ring),
        0
    };
    for (unsigned i = 0; i < r; i++)
        any |= n->succ[i].at != 0;
    if (!any) {
        n->stage = 0;
        chord_lost(n);
        return;
    }
    n->host->news(n, CHORD_NEW_SUCC);
    stage_end(n, n->succ[0]);
    chord_stabilise(n);
}

/* Nobody in the list is alive. Others may be known from before. */
void chord_lost(struct chord *n)
{
    n->phase = CHORD_OUT;
    n->lost = 1;
    n->host->news(n, CHORD_ALONE);
    if (n->phase == CHORD_OUT && n->nseen)
        chord_join(n, chord_met(n), n->now);
}

static void first_answered(struct chord *n, struct chord_peer pred,
                           const struct chord_peer *list, unsigned count)
{
    const struct chord_peer f = n->stage_peer;
    set_succ(n, f, list, count);
    if (!chord_between(n->self.id, pred.id, f.id) || !pred.at) {
        stage_end(n, f);
        return;
    }
    n->stage = 2;
    n->stage_peer = pred;
    struct chord_message m = { .type = CHORD_STATE };
    n->stage_request = chord_ask(n, pred, &m);
}

static void stage_answered(struct chord *n, const struct chord_message *m)
{
    const struct chord_peer pred = m->peers[0];
    n->stage_request = 0;
    if (n->stage == 1) {
        first_answered(n, pred, m->peers + 1, m->npeers - 1);
    } else if (chord_between(n->self.id, n->stage_peer.id, n->succ[0].id)) {
        set_succ(n, n->stage_peer, m->peers + 1, m->npeers - 1);
        stage_end(n, n->stage_peer);
        /* Somebody came between: there may be more of them. */
        chord_stabilise(n);
    } else {
        stage_end(n, n->succ[0]);
    }
}

static void stage_silent(struct chord *n)
{
    n->stage_request = 0;
    chord_bury(n, n->stage_peer.id);
    if (n->stage == 1)
        first_silent(n);
    else
        stage_end(n, n->succ[0]);
}

/* ------------------------------------------------------------------- events */

void chord_init(struct chord *n, const struct chord_ring *ring,
                const struct chord_host *host, void *ctx,
                struct chord_peer self, struct chord_walk *walks, uint64_t seed)
{
    *n = (struct chord){ .ring = ring,
                         .host = host,
                         .ctx = ctx,
                         .self = self,
                         .walks = walks,
                         .random = seed };
    /* Numbers of an earlier life of this node must not fit. */
    n->last_request = (uint32_t)chord_random(n);
    memset(walks, 0, ring->walks * sizeof *walks);
}

/* A member from now on. */
void chord_enter(struct chord *n)
{
    const struct chord_ring *const g = n->ring;
    n->phase = CHORD_IN;
    n->lost = 0;
    chord_timer(n, CHORD_TIMER_STABILISE, g->stabilise);
    chord_timer(n, CHORD_TIMER_CHECK, g->check);
    chord_timer(n, CHORD_TIMER_FINGER, g->finger);
    chord_timer(n, CHORD_TIMER_MERGE, g->merge);
}

void chord_alone(struct chord *n, uint64_t now)
{
    n->now = now;
    n->pred = n->self;
    n->pred_known = true;
    for (unsigned i = 0; i < n->ring->r; i++)
        n->succ[i] = n->self;
    chord_enter(n);
}

/* The first of sorted members at or after id. */
static size_t owner_among(const struct chord_peer *members, size_t count,
                          uint64_t id)
{
    size_t at;
    LOWER_BOUND(at, count, members[at].id < id);
    return at < count ? at : 0;
}

void chord_ideal(struct chord *n, const struct chord_peer *members,
                 size_t count, uint64_t now)
{
    const size_t at = owner_among(members, count, n->self.id);
    n->now = now;
    n->pred = members[(at + count - 1) % count];
    n->before = members[(at + 2 * count - 2) % count];
    n->pred_known = true;
    for (unsigned i = 0; i < n->ring->r; i++)
        n->succ[i] = members[(at + 1 + i) % count];
    for (unsigned k = 0; k < n->ring->bits; k++)
        n->fing[k] = members[owner_among(members, count,
                                         (n->self.id + (UINT64_C(1) << k)) &
                                             chord_mask(n->ring))];
    chord_enter(n);
}

void chord_leave(struct chord *n, uint64_t now)
{
    const struct chord_message m = { .type = CHORD_LEAVING,
                                     .npeers = 1,
                                     .peers = { n->self } };
    n->now = now;
    if (n->phase == CHORD_IN) {
        if (!is_self(n, n->pred) && n->pred.at)
            n->host->send(n, n->pred, &m);
        for (unsigned i = 0; i < n->ring->r; i++)
            if (!is_self(n, n->succ[i]) && n->succ[i].at &&
                n->succ[i].id != n->pred.id) {
                n->host->send(n, n->succ[i], &m);
                break;
            }
    }
    n->phase = CHORD_LEFT;
}

void chord_tick(struct chord *n, enum chord_timer t, uint64_t now)
{
    const struct chord_ring *const g = n->ring;
    n->now = now;
    if (t == CHORD_TIMER_JOIN) {
        if (n->phase == CHORD_JOINING && !n->join_stage)
            chord_join_again(n);
        return;
    }
    if (n->phase != CHORD_IN)
        return;
    switch (t) {
    case CHORD_TIMER_STABILISE:
        chord_timer(n, t, g->stabilise);
        chord_stabilise(n);
        break;
    case CHORD_TIMER_CHECK:
        chord_timer(n, t, g->check);
        check_pred(n);
        break;
    case CHORD_TIMER_FINGER:
        chord_timer(n, t, g->finger);
        chord_fix_fingers(n);
        break;
    default:
        chord_timer(n, t, g->merge);
        chord_merge(n);
    }
}

/* What this node tells of its state. */
static void tell_state(const struct chord *n, unsigned flags,
                       struct chord_message *a)
{
    a->peers[0] =
        n->pred_known ? n->pred : (struct chord_peer){ n->self.id, 0 };
    memcpy(a->peers + 1, n->succ, n->ring->r * sizeof n->succ[0]);
    a->npeers = 1 + n->ring->r;
    if (flags & CHORD_FINGERS)
        for (unsigned k = 0; k < n->ring->bits; k++) {
            const struct chord_peer f = n->fing[k];
            if (f.at && f.id != a->peers[a->npeers - 1].id)
                a->peers[a->npeers++] = f;
        }
}

static void answer_question(struct chord *n, struct chord_peer from,
                            const struct chord_message *m)
{
    struct chord_message a;
    a.type = m->type;
    a.answer = true;
    a.refused = n->phase != CHORD_IN;
    a.kind = 0;
    a.flags = 0;
    a.request = m->request;
    a.target = m->target;
    a.npeers = a.ndead = 0;
    if (a.refused) {
        if (m->request)
            n->host->send(n, from, &a);
        return;
    }
    switch (m->type) {
    case CHORD_NOTIFY:
        if (m->npeers && m->peers[0].id != n->self.id) {
            rectify(n, m->peers[0]);
            if (m->npeers > 1 && n->pred.id == m->peers[0].id)
                n->before = m->peers[1];
        }
        break;
    case CHORD_LEAVING:
        if (m->npeers) {
            /* The list is mended now, not in the next period: keys of the
             * one who leaves are asked for already. */
            chord_bury(n, m->peers[0].id);
            chord_stabilise(n);
        }
        break;
    case CHORD_STATE:
        tell_state(n, m->flags, &a);
        break;
    case CHORD_STEP:
        chord_step(n, m, &a);
        break;
    default:
        a.peers[a.npeers++] = n->self;
    }
    if (m->request)
        n->host->send(n, from, &a);
}

void chord_receive(struct chord *n, struct chord_peer from,
                   const struct chord_message *m, uint64_t now)
{
    n->now = now;
    if (!m->answer) {
        chord_see(n, from);
        answer_question(n, from, m);
        return;
    }
    /* Not a member, or not an answer to this question: as good as none. */
    const bool short_state = m->type == CHORD_STATE && m->npeers < 2;
    if (m->refused || short_state) {
        chord_silent(n, m->request, now);
        return;
    }
    chord_see(n, from);
    if (!m->request)
        return;
    if (m->request == n->stage_request && n->stage && m->type == CHORD_STATE) {
        if (n->ring->rules_2001)
            chord_2001_answer(n, m);
        else
            stage_answered(n, m);
    } else if (m->request == n->check_request) {
        pred_answered(n, true);
    } else if (!chord_join_answer(n, m) && !chord_walk_answer(n, m)) {
        chord_silent(n, m->request, now); /* something else was asked */
    }
}

void chord_silent(struct chord *n, uint32_t request, uint64_t now)
{
    n->now = now;
    if (!request)
        return;
    if (request == n->stage_request && n->stage) {
        if (n->ring->rules_2001)
            chord_2001_silent(n);
        else
            stage_silent(n);
    } else if (request == n->check_request) {
        chord_bury(n, n->checked.id);
        pred_answered(n, false);
    } else if (!chord_join_silent(n, request)) {
        chord_walk_silent(n, request);
    }
}
