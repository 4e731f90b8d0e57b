/*
 * plan_index.h - what an index of documents costs, rate by rate
 */
#ifndef BLY_PLAN_INDEX_H
#define BLY_PLAN_INDEX_H

#include <bloomery/index.h>

#include "report/fields.h"

/* What `plan --index` prints for one class of terms. Zero in any field of
 * *wish means the default. An exit status. */
int plan_index(const bly_index_wish *wish, bool json);
extern const struct field plan_index_fields[];

#endif
