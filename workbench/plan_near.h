/*
 * plan_near.h - the curve of banding: which pairs of texts will be found
 */
#ifndef BLY_PLAN_NEAR_H
#define BLY_PLAN_NEAR_H

#include "report/fields.h"

struct near_plan {
    double threshold, recall; /* recall 0: the default */
    unsigned components;
    const char *plot; /* a file to draw to, or NULL */
    bool json;
};

/* What `plan --near` prints and draws; an exit status. */
int plan_near(const struct near_plan *p);
extern const struct field near_fields[];

#endif
