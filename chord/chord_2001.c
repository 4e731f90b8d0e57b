/*
 * chord_2001.c - the rules of maintenance as they were published first
 *
 * Here to be seen failing, in the same harness as the others. What is wrong
 * with them: a joiner has one successor and no predecessor; a new successor is
 * taken without asking whether it lives; taking it and copying its list are two
 * steps; a predecessor found dead is forgotten, and then anybody is believed;
 * some attempts end without a notification.
 */
#include <string.h>

#include "chord/chord.h"

void chord_2001_joined(struct chord *n, struct chord_peer owner)
{
    n->pred_known = false;
    n->pred = n->self;
    for (unsigned i = 0; i < n->ring->r; i++)
        n->succ[i] = (struct chord_peer){ (owner.id + i) & chord_mask(n->ring),
                                          i ? 0 : owner.at };
    chord_enter(n);
    n->host->news(n, CHORD_JOINED);
}

/* Stages take turns: 1 asks for the successor's predecessor, 2 copies its
 * list. */
void chord_2001_stabilise(struct chord *n)
{
    struct chord_message m = { .type = CHORD_STATE };
    unsigned gone = 0;
    while (gone < n->ring->r && !n->succ[gone].at)
        gone++;
    if (gone == n->ring->r) {
        chord_lost(n);
        return;
    }
    n->stage = n->nstabilised & 1 ? 1 : 2;
    n->stage_peer = n->succ[gone];
    if (n->stage_peer.id == n->self.id) {
        n->stage = 0;
        if (n->pred_known && n->pred.id != n->self.id)
            n->succ[0] = n->pred;
        return;
    }
    n->stage_request = chord_ask(n, n->stage_peer, &m);
}

void chord_2001_answer(struct chord *n, const struct chord_message *m)
{
    const struct chord_peer x = m->peers[0];
    const uint8_t stage = n->stage;
    n->stage = 0;
    n->stage_request = 0;
    if (stage == 2) {
        for (unsigned i = 1; i < n->ring->r && i < m->npeers; i++)
            n->succ[i] = m->peers[i];
        return;
    }
    n->succ[0] = n->stage_peer;
    if (x.at && chord_between(n->self.id, x.id, n->succ[0].id))
        n->succ[0] = x;
    chord_notify(n, n->succ[0]);
}

void chord_2001_silent(struct chord *n)
{
    const unsigned r = n->ring->r;
    n->stage = 0;
    n->stage_request = 0;
    for (unsigned i = 0; i < r; i++)
        if (n->succ[i].at && n->succ[i].id == n->stage_peer.id) {
            memmove(n->succ + i, n->succ + i + 1,
                    (r - 1 - i) * sizeof n->succ[0]);
            n->succ[r - 1].at = 0;
            return;
        }
}

void chord_2001_notified(struct chord *n, struct chord_peer from)
{
    if (!n->pred_known || chord_between(n->pred.id, from.id, n->self.id)) {
        n->pred = from;
        n->pred_known = true;
    }
}
