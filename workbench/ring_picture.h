/*
 * ring_picture.h - a Chord ring to look at: members, fingers, one lookup
 */
#ifndef BLY_RING_PICTURE_H
#define BLY_RING_PICTURE_H

#include "report/fields.h"

#define RING_MOST 512 /* members that are drawn */

/* Members in the ideal state (apps/overlay/chord.h). */
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

/* A lookup by fingers alone: the places of the members that are asked, the
 * first being the one that asks, and the owner at the end. */
#define RING_STEPS 130
size_t ring_lookup(const struct ring_model *m, size_t from, uint64_t id,
                   size_t path[RING_STEPS]);

/* What is shown beside the members: fingers of one of them, or a lookup from
 * it. */
struct ring_view {
    bool one, find;
    size_t from; /* its place */
    uint64_t id;
};

/* The circle as text; every table and step in words; the picture as SVG (false:
 * plot_why()); all of it as JSON. */
void ring_print(const struct ring_model *m, const struct ring_view *v);
void ring_explain(const struct ring_model *m, const struct ring_view *v);
bool ring_draw(const struct ring_model *m, const struct ring_view *v,
               const char *path);
void ring_report(const struct ring_model *m, const struct ring_view *v);
extern const struct field ring_model_fields[];

#endif
