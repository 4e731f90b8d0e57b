/*
 * chord_schedule.h - random schedules: does the ring survive them?
 */
#ifndef BLY_CHORD_SCHEDULE_H
#define BLY_CHORD_SCHEDULE_H

#include <stdio.h>

#include "chord/chord.h"

struct chord_schedule {
    unsigned r;
    unsigned more;   /* nodes beside the r + 1 that never fail */
    unsigned steps;  /* before changes stop */
    bool rules_2001; /* and the invariant is not asked for */
    uint64_t seed;
};

/* One run: NULL if the ring came through, otherwise what was wrong, a text that
 * stays. With a trace, every step and the states at the end are printed. */
const char *chord_schedule_run(const struct chord_schedule *how, FILE *trace);

#endif
