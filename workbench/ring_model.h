/*
 * ring_model.h - a small Chord ring: members, fingers, one lookup
 *
 * The states are those that members of bloomery node have when nothing changes:
 * chord_ideal() computes them. The command draws it (ring_picture.h), and so
 * does the playground.
 */
#ifndef BLY_RING_MODEL_H
#define BLY_RING_MODEL_H

#include "chord/chord.h"

#define RING_MOST 512 /* members that are drawn */

/* Members, sorted by their ids. */
struct ring_model {
    unsigned bits;
    uint64_t ids[RING_MOST]; /* sorted */
    size_t n;
};

/* Ids of any order; false, with the reason printed, if two are one, one is too
 * large for the bits, or there are none or too many. */
bool ring_model(struct ring_model *m, unsigned bits, const uint64_t *ids,
                size_t n);

/* The place of the member that owns an id. */
size_t ring_owner(const struct ring_model *m, uint64_t id);

/* The state of the member at a place: successors and fingers. */
void ring_state(const struct ring_model *m, size_t at, struct chord *n);

/* A lookup by fingers alone: the places of the members that are asked, the
 * first being the one that asks, and the owner at the end. */
#define RING_STEPS 130
size_t ring_lookup(const struct ring_model *m, size_t from, uint64_t id,
                   size_t path[RING_STEPS]);

#endif
