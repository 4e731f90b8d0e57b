/*
 * ring_picture.h - a Chord ring to look at: members, fingers, one lookup
 */
#ifndef BLY_RING_PICTURE_H
#define BLY_RING_PICTURE_H

#include "report/fields.h"
#include "workbench/ring_model.h"

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
