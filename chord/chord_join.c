/*
 * chord_join.c - coming into a ring, and bringing two rings together
 *
 * A node j finds a member m with j between m and m's first successor, asks it
 * for its state, and takes pred = m and m's whole list in one step. A joiner
 * that knew one successor alone would be lost with it.
 *
 * A member whose whole list has died joins again, through those it has met as
 * well as through the one it was told at first, which may be dead. If the
 * network was away, all members are in that state, and none can take another
 * in: after a few attempts each is a ring of its own, and rings merge.
 *
 * After a partition there may be two rings. Now and then a node asks somebody
 * it has met before, and who is not in its state, for the owner of its own id.
 * If that is another node, which lies between this one and its neighbours, it
 * is taken for what a successor would have named: rings zip together. That is
 * outside of what was proved.
 */
#include <string.h>

#include "chord/chord.h"

/* A member that was lost gives up after so many attempts, by chance one in so
 * many of those: whoever does so first can take the others in. */
#define CHORD_LOST_TRIES 8

static void join_again(struct chord *n)
{
    n->join_stage = 0;
    n->join_request = 0;
    if (n->lost && n->lost++ > CHORD_LOST_TRIES &&
        chord_random(n) % CHORD_LOST_TRIES == 0) {
        chord_alone(n, n->now);
        n->host->news(n, CHORD_JOINED);
        return;
    }
    chord_timer(n, CHORD_TIMER_JOIN, n->ring->join);
}

/* Through the one that was told; who was a member before, and so may know more
 * of those who are, now and then through somebody it has met. */
void chord_join_again(struct chord *n)
{
    const struct chord_peer told = n->join_via;
    const bool met = n->lost && n->nseen && chord_random(n) % 2;
    chord_join(n, met ? chord_met(n) : told, n->now);
    n->join_via = told;
}

void chord_join(struct chord *n, struct chord_peer via, uint64_t now)
{
    n->now = now;
    n->phase = CHORD_JOINING;
    n->join_via = via;
    n->join_steps = 0;
    n->stage = 0;
    n->stage_request = n->check_request = 0;
    struct chord_walk *const w = chord_walk_new(n, CHORD_JOIN, n->self.id);
    if (!w) {
        join_again(n);
        return;
    }
    n->join_stage = 1;
    /* Whoever knows this node from an earlier life is to leave it out. */
    w->dead[w->ndead++] = n->self.id;
    chord_walk_start(n, w, &via);
}

static void ask_state(struct chord *n, struct chord_peer m)
{
    struct chord_message q = { .type = CHORD_STATE, .flags = CHORD_FINGERS };
    if (++n->join_steps > 4 * n->ring->bits) {
        join_again(n);
        return;
    }
    n->join_stage = 2;
    n->join_peer = m;
    n->join_request = 0;
    n->join_request = chord_ask(n, m, &q);
}

/* The owner of this node's id is known, and so is its predecessor; `last` is
 * the node that named the owner. */
void chord_join_found(struct chord *n, const struct chord_found *f,
                      struct chord_peer last)
{
    if (n->phase != CHORD_JOINING || !f->ok || !f->npeers) {
        join_again(n);
        return;
    }
    if (n->ring->rules_2001) {
        n->join_stage = 0;
        chord_2001_joined(n, f->owner);
        return;
    }
    const struct chord_peer pred = f->peers[0];
    if (pred.at && pred.id != n->self.id && !chord_is_dead(n, pred.id))
        ask_state(n, pred);
    else if (last.at && last.id != n->self.id)
        ask_state(n, last);
    else
        join_again(n);
}

static void join_state(struct chord *n, const struct chord_message *m)
{
    const struct chord_peer at = n->join_peer, *const list = m->peers + 1;
    const unsigned r = n->ring->r;
    if (m->npeers < 1 + r) {
        join_again(n);
        return;
    }
    if (chord_between(at.id, n->self.id, list[0].id)) {
        n->pred = at;
        n->pred_known = true;
        n->uncertain = false;
        memcpy(n->succ, list, r * sizeof list[0]);
        memset(n->fing, 0, sizeof n->fing);
        chord_guess_fingers(n, m->peers, m->npeers);
        n->join_stage = 0;
        n->join_request = 0;
        chord_enter(n);
        n->host->news(n, CHORD_JOINED);
        chord_stabilise(n);
        chord_fix_fingers(n);
        return;
    }
    /* Others came between: on to the first of them that lives. */
    for (unsigned i = 0; i < r; i++)
        if (chord_between(at.id, list[i].id, n->self.id) &&
            !chord_gone(n, NULL, 0, list[i])) {
            ask_state(n, list[i]);
            return;
        }
    join_again(n); /* until `at` has found out that its first one is dead */
}

bool chord_join_answer(struct chord *n, const struct chord_message *m)
{
    if (m->request == n->join_request && n->join_stage == 2 &&
        m->type == CHORD_STATE) {
        n->join_request = 0;
        if (n->phase == CHORD_JOINING)
            join_state(n, m);
        return true;
    }
    if (m->request == n->merge_request && m->type == CHORD_STATE) {
        n->merge_request = 0;
        if (n->phase == CHORD_IN && m->npeers == 1 + n->ring->r &&
            chord_between(n->self.id, n->merge_peer.id, n->succ[0].id)) {
            n->succ[0] = n->merge_peer;
            memcpy(n->succ + 1, m->peers + 1,
                   (n->ring->r - 1) * sizeof n->succ[0]);
            chord_notify(n, n->succ[0]);
            chord_stabilise(n);
        }
        return true;
    }
    return false;
}

bool chord_join_silent(struct chord *n, uint32_t request)
{
    if (request == n->join_request && n->join_stage == 2) {
        chord_bury(n, n->join_peer.id);
        join_again(n);
        return true;
    }
    if (request == n->merge_request) {
        n->merge_request = 0;
        chord_bury(n, n->merge_peer.id);
        return true;
    }
    return false;
}

/* ------------------------------------------------------------------ merging */

static bool is_known(const struct chord *n, uint64_t id)
{
    bool known = id == n->pred.id;
    for (unsigned i = 0; i < n->ring->r; i++)
        known |= n->succ[i].id == id && n->succ[i].at;
    return known;
}

void chord_merge(struct chord *n)
{
    for (unsigned i = 0; i < n->nseen; i++) {
        const struct chord_peer p = chord_met(n);
        if (is_known(n, p.id))
            continue;
        struct chord_walk *const w = chord_walk_new(n, CHORD_MERGE, n->self.id);
        if (w)
            chord_walk_start(n, w, &p);
        return;
    }
}

void chord_merge_found(struct chord *n, const struct chord_found *f)
{
    const struct chord_peer z = f->owner;
    if (z.id == n->self.id || n->phase != CHORD_IN || n->merge_request)
        return;
    if (chord_between(n->self.id, z.id, n->succ[0].id)) {
        struct chord_message m = { .type = CHORD_STATE };
        n->merge_peer = z;
        n->merge_request = chord_ask(n, z, &m);
    } else if (chord_between(n->pred.id, z.id, n->self.id)) {
        n->pred = z;
        n->host->news(n, CHORD_NEW_PRED);
    }
}
