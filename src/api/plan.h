/*
 * plan.h - from a caller's wishes to a shape
 */
#ifndef BLY_PLAN_H
#define BLY_PLAN_H

#include "kinds/filter.h"

typedef struct bly_planned {
    const bly_kind *kind;
    bly_want want; /* as the kind was asked */
    bly_shape shape;
    bly_setting set; /* items and fpr as planned, hasher, memory, ... */
    bly_keying keying;
    uint64_t told; /* the capacity to state, if want.items was raised to make
                      more room; 0: want.items */
} bly_planned;

/* Read spec: kind, options, hash, memory. Afterwards only what spec->mem points
 * to is still needed. Then choose the shape. Error messages say what would be
 * right. bly_plan_spec() does both. */
bly_status bly_plan_begin(const bly_spec *spec, bly_planned *out);
bly_status bly_plan_end(bly_planned *p);
bly_status bly_plan_spec(const bly_spec *spec, bly_planned *out);

/* Find the kind of spec and read its options into w; nothing is chosen. */
bly_status bly_read_options(const bly_spec *spec, const bly_kind **kind,
                            bly_want *w);

/* The facts of a shape: its params, then what the kind derives. */
size_t bly_collect_facts(const bly_kind *kind, const bly_shape *s,
                         const bly_want *w, const bly_filter *f,
                         bly_fact *facts);

/* BLY_ENOTSUP, with a message that lists the kinds that have the ability. */
bly_status bly_fail_ability(const bly_kind *kind, unsigned ability);

#endif
