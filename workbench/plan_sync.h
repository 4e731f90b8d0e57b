/*
 * plan_sync.h - how many symbols and bytes it takes to compare two sets
 */
#ifndef BLY_PLAN_SYNC_H
#define BLY_PLAN_SYNC_H

#include "report/fields.h"

/* What `plan --sync` prints: for so many differences, 0 being a table of them,
 * between sets of `items` elements, 0: a million. An exit status. */
int plan_sync(uint64_t differences, uint64_t items, bool json);
extern const struct field plan_sync_fields[];

#endif
