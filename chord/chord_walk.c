/*
 * chord_walk.c - lookups, and the fingers that make them short
 *
 * The asker drives. It asks a node for the next step; the answer names a
 * candidate for the owner, or up to three nodes that are nearer. A silent node
 * is left out and the next one is tried; when none is left, the previous node
 * is asked again and told which ones are dead.
 *
 *     x in (n, e] for the first live e in the list     candidate: e
 *     otherwise            the closest before x among fingers and list
 *
 * The candidate has the last word: it owns x only if x is in (pred, self].
 * Lists and fingers are old, and a node that joined since stands between key
 * and candidate. Then the candidate names its predecessor, and the asker goes
 * back, one node at a time.
 */
#include <string.h>

#include "chord/chord.h"

/* ------------------------------------------------------------------- a step */

/* The distance from this node, going up. */
static uint64_t ahead_of(const struct chord *n, uint64_t id)
{
    return (id - n->self.id) & chord_mask(n->ring);
}

/* Put p among the best, which are sorted, the farthest first. */
static void add_nearer(const struct chord *n, struct chord_message *a,
                       struct chord_peer p)
{
    unsigned at = a->npeers;
    for (unsigned i = 0; i < a->npeers; i++)
        if (a->peers[i].id == p.id)
            return;
    while (at > 0 && ahead_of(n, a->peers[at - 1].id) < ahead_of(n, p.id))
        at--;
    if (at >= CHORD_HOPS)
        return;
    a->npeers += a->npeers < CHORD_HOPS;
    for (unsigned i = a->npeers - 1; i > at; i--)
        a->peers[i] = a->peers[i - 1];
    a->peers[at] = p;
}

static void find_nearer(const struct chord *n, const struct chord_message *q,
                        struct chord_message *a)
{
    unsigned found = 0;
    uint64_t before = n->self.id;
    a->kind = CHORD_NEARER;
    /* Fingers go up, so that from above the first three are the best. */
    for (unsigned k = n->ring->bits; k-- > 0 && found < CHORD_HOPS;) {
        const struct chord_peer f = n->fing[k];
        if (f.id == before || !chord_between(n->self.id, f.id, q->target) ||
            chord_gone(n, q->dead, q->ndead, f))
            continue;
        before = f.id;
        add_nearer(n, a, f);
        found++;
    }
    found = 0;
    const unsigned r = n->ring->no_lists ? 1 : n->ring->r;
    for (unsigned i = r; i-- > 0 && found < CHORD_HOPS;) {
        const struct chord_peer s = n->succ[i];
        if (!chord_between(n->self.id, s.id, q->target) ||
            chord_gone(n, q->dead, q->ndead, s))
            continue;
        add_nearer(n, a, s);
        found++;
    }
}

static void is_owner(const struct chord *n, struct chord_message *a)
{
    a->kind = CHORD_OWNER;
    a->peers[0] = n->pred;
    memcpy(a->peers + 1, n->succ, n->ring->r * sizeof n->succ[0]);
    a->npeers = 1 + n->ring->r;
}

void chord_step(const struct chord *n, const struct chord_message *q,
                struct chord_message *a)
{
    a->npeers = 0;
    if (n->pred_known && chord_within(n->pred.id, q->target, n->self.id)) {
        is_owner(n, a);
        return;
    }
    if (q->flags & CHORD_NAMED) {
        bool named = !n->pred_known || !n->pred.at;
        for (unsigned i = 0; i < q->ndead; i++)
            named |= q->dead[i] == n->pred.id;
        /* Who stood between is dead: its keys are this node's. But somebody may
         * have joined before it whom the asker's list does not have yet. */
        const bool alone = chord_gone(n, q->dead, q->ndead, n->before) ||
                           chord_within(n->before.id, q->target, n->self.id);
        if (named && alone) {
            is_owner(n, a);
            return;
        }
        a->kind = CHORD_BACK;
        a->peers[a->npeers++] = named ? n->before : n->pred;
        return;
    }
    const unsigned r = n->ring->r;
    unsigned first = r;
    for (unsigned i = 0; i < r; i++) {
        if (chord_gone(n, q->dead, q->ndead, n->succ[i]))
            continue;
        if (chord_within(n->self.id, q->target, n->succ[i].id)) {
            first = i;
            break;
        }
        if (n->ring->no_lists || n->ring->trust == 1)
            break;
    }
    if (first == r) {
        find_nearer(n, q, a);
        return;
    }
    a->kind = CHORD_CANDIDATE;
    for (unsigned i = first; i < r && a->npeers < CHORD_NEXT; i++)
        if (!chord_gone(n, q->dead, q->ndead, n->succ[i]))
            a->peers[a->npeers++] = n->succ[i];
}

/* ------------------------------------------------------------------- a walk */

struct chord_walk *chord_walk_new(struct chord *n, enum chord_purpose purpose,
                                  uint64_t target)
{
    for (unsigned i = 0; i < n->ring->walks; i++) {
        struct chord_walk *const w = &n->walks[i];
        if (n->walks_used >> i & 1)
            continue;
        /* Its arrays are empty by their counts. */
        memset(w, 0, offsetof(struct chord_walk, next));
        n->walks_used |= (uint16_t)(1u << i);
        n->walking[i] = 0;
        w->purpose = (uint8_t)purpose;
        w->target = target & chord_mask(n->ring);
        return w;
    }
    return NULL;
}

static unsigned walk_number(const struct chord *n, const struct chord_walk *w)
{
    return (unsigned)(w - n->walks);
}

static void walk_end(struct chord *n, struct chord_walk *w,
                     const struct chord_message *owner, struct chord_peer who)
{
    struct chord_found f = { .tag = w->tag,
                             .target = w->target,
                             .ok = owner != NULL,
                             .owner = who,
                             .hops = w->hops,
                             .timeouts = w->timeouts };
    const enum chord_purpose purpose = (enum chord_purpose)w->purpose;
    const unsigned k = w->k;
    const struct chord_peer last =
        w->npath ? w->path[w->npath - 1] : (struct chord_peer){ 0, 0 };
    const unsigned most = sizeof f.peers / sizeof f.peers[0];
    if (owner) {
        f.npeers = owner->npeers < most ? owner->npeers : most;
        memcpy(f.peers, owner->peers, f.npeers * sizeof f.peers[0]);
    }
    n->walks_used &= (uint16_t) ~(1u << walk_number(n, w));
    switch (purpose) {
    case CHORD_APP:
        n->host->found(n, &f);
        break;
    case CHORD_FINGER:
        if (f.ok)
            chord_finger_found(n, k, who);
        break;
    case CHORD_JOIN:
        chord_join_found(n, &f, last);
        break;
    case CHORD_MERGE:
        if (f.ok)
            chord_merge_found(n, &f);
    }
}

static void walk_result(struct chord *n, struct chord_walk *w,
                        const struct chord_message *m, struct chord_peer who);

static void walk_bury(struct chord_walk *w, uint64_t id)
{
    for (unsigned i = 0; i < w->ndead; i++)
        if (w->dead[i] == id)
            return;
    if (w->ndead == CHORD_NAMED_DEAD)
        memmove(w->dead, w->dead + 1, --w->ndead * sizeof w->dead[0]);
    w->dead[w->ndead++] = id;
}

static void walk_ask(struct chord *n, struct chord_walk *w, struct chord_peer p,
                     bool named)
{
    struct chord_message m;
    m.type = CHORD_STEP;
    m.answer = m.refused = false;
    m.kind = 0;
    m.flags = named ? CHORD_NAMED : 0;
    m.target = w->target;
    m.npeers = 0;
    m.ndead = w->ndead;
    memcpy(m.dead, w->dead, w->ndead * sizeof m.dead[0]);
    if (++w->contacts > 4 * n->ring->bits) {
        walk_end(n, w, NULL, p); /* a loop */
        return;
    }
    w->asked = p;
    w->named = named;
    if (p.id == n->self.id && n->phase == CHORD_IN) {
        struct chord_message a;
        chord_step(n, &m, &a);
        walk_result(n, w, &a, n->self);
    } else {
        /* None until it is asked: answers may come at once. */
        n->walking[walk_number(n, w)] = 0;
        n->walking[walk_number(n, w)] = chord_ask(n, p, &m);
    }
}

/* Try the next of those that were named; when none is left, ask the node before
 * again. */
static void walk_on(struct chord *n, struct chord_walk *w)
{
    while (w->inext < w->nnext) {
        const struct chord_peer p = w->next[w->inext++];
        if (!chord_gone(n, w->dead, w->ndead, p)) {
            w->again = p.id == w->answered.id;
            walk_ask(n, w, p, w->candidates);
            return;
        }
        /* Known from another lookup: whoever named it is to be told. */
        if (p.at && chord_is_dead(n, p.id))
            walk_bury(w, p.id);
    }
    if (w->npath) {
        const struct chord_peer before = w->path[--w->npath];
        w->again = true;
        walk_ask(n, w, before, false);
    } else if (n->phase == CHORD_IN && w->contacts < 2 * n->ring->bits) {
        walk_ask(n, w, n->self, false);
    } else {
        walk_end(n, w, NULL, n->self);
    }
}

static void walk_result(struct chord *n, struct chord_walk *w,
                        const struct chord_message *m, struct chord_peer who)
{
    if (m->kind == CHORD_OWNER) {
        walk_end(n, w, m, who);
        return;
    }
    if (m->kind == CHORD_CANDIDATE && n->ring->trust && m->npeers) {
        w->hops++;
        walk_end(n, w, m, m->peers[0]);
        return;
    }
    w->answered = who;
    w->nnext = w->inext = 0;
    w->candidates = m->kind != CHORD_NEARER;
    for (unsigned i = 0; i < m->npeers && w->nnext < CHORD_NEXT; i++)
        w->next[w->nnext++] = m->peers[i];
    if (m->kind == CHORD_BACK) {
        /* If that one is dead, this candidate is asked again and told so. */
        if (w->nnext < CHORD_NEXT)
            w->next[w->nnext++] = who;
        if (w->next[0].at && chord_is_dead(n, w->next[0].id))
            walk_bury(w, w->next[0].id);
    } else if (m->npeers) {
        if (w->npath == CHORD_PATH)
            memmove(w->path, w->path + 1, --w->npath * sizeof w->path[0]);
        w->path[w->npath++] = who;
    }
    walk_on(n, w);
}

void chord_walk_start(struct chord *n, struct chord_walk *w,
                      const struct chord_peer *via)
{
    if (via)
        walk_ask(n, w, *via, false);
    else
        walk_ask(n, w, n->self, false);
}

/* The walk that waits for this request, which is done with. */
static struct chord_walk *walk_of(struct chord *n, uint32_t request)
{
    for (unsigned i = 0; i < n->ring->walks; i++)
        if (n->walking[i] == request && n->walks_used >> i & 1) {
            n->walking[i] = 0;
            return &n->walks[i];
        }
    return NULL;
}

bool chord_walk_answer(struct chord *n, const struct chord_message *m)
{
    if (m->type != CHORD_STEP || m->kind < CHORD_OWNER || m->kind > CHORD_BACK)
        return false;
    struct chord_walk *const w = walk_of(n, m->request);
    if (!w)
        return false;
    w->hops += !w->again;
    walk_result(n, w, m, w->asked);
    return true;
}

bool chord_walk_silent(struct chord *n, uint32_t request)
{
    struct chord_walk *const w = walk_of(n, request);
    if (!w)
        return false;
    w->timeouts++;
    chord_bury(n, w->asked.id);
    walk_bury(w, w->asked.id);
    walk_on(n, w);
    return true;
}

bool chord_lookup(struct chord *n, uint64_t id, uint64_t tag, uint64_t now)
{
    n->now = now;
    struct chord_walk *const w = chord_walk_new(n, CHORD_APP, id);
    if (!w)
        return false;
    w->tag = tag;
    chord_walk_start(n, w, NULL);
    return true;
}

/* ------------------------------------------------------------------ fingers */

static uint64_t finger_start(const struct chord *n, unsigned k)
{
    return (n->self.id + (UINT64_C(1) << k)) & chord_mask(n->ring);
}

/* The finger k, and all that follow whose start lies before it too. */
void chord_finger_found(struct chord *n, unsigned k, struct chord_peer p)
{
    if (p.id == n->self.id)
        return;
    for (; k < n->ring->bits &&
           chord_within(n->self.id, finger_start(n, k), p.id);
         k++)
        n->fing[k] = p;
}

/* Refresh some, in turn. Those up to the first successor need no question. */
void chord_fix_fingers(struct chord *n)
{
    const unsigned bits = n->ring->bits;
    for (unsigned i = 0; i < n->ring->fingers; i++) {
        if (n->next_finger >= bits)
            n->next_finger = 0;
        while (n->next_finger < bits && n->succ[0].at &&
               chord_within(n->self.id, finger_start(n, n->next_finger),
                            n->succ[0].id))
            n->fing[n->next_finger++] = n->succ[0];
        if (n->next_finger >= bits)
            continue;
        struct chord_walk *const w =
            chord_walk_new(n, CHORD_FINGER, finger_start(n, n->next_finger));
        if (!w)
            return;
        w->k = (uint8_t)n->next_finger;
        n->next_finger++;
        /* Those that the old value covers as well come with it. */
        while (n->next_finger < bits && n->fing[w->k].at &&
               n->fing[n->next_finger].id == n->fing[w->k].id)
            n->next_finger++;
        chord_walk_start(n, w, NULL);
    }
}

/* First guesses from members that are known, in any order. */
void chord_guess_fingers(struct chord *n, const struct chord_peer *known,
                         size_t count)
{
    for (unsigned k = 0; k < n->ring->bits; k++)
        for (size_t i = 0; i < count; i++)
            if (known[i].at && known[i].id != n->self.id &&
                ahead_of(n, known[i].id) >= UINT64_C(1) << k &&
                (!n->fing[k].at ||
                 ahead_of(n, known[i].id) < ahead_of(n, n->fing[k].id)))
                n->fing[k] = known[i];
}
