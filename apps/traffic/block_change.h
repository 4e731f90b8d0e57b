/*
 * block_change.h - entries of a list that is attached: added, released
 */
#ifndef BLY_TRAFFIC_BLOCK_CHANGE_H
#define BLY_TRAFFIC_BLOCK_CHANGE_H

#include "apps/traffic/block_attached.h"
#include "apps/traffic/traffic_args.h"
#include "report/words.h"

/* Put the entries of a set into the live part, and its lengths into m->list.
 * Those that say no time stay `ttl` seconds; 0: until they are released. False,
 * with the reason printed. What finds no room is counted, here and for
 * --status. */
bool entries_put(struct xdp_maps *m, const struct prefix_set *set, uint32_t ttl,
                 struct block_changed *did);

/* --add, --release. */
int block_change(const struct traffic_args *args, const struct list *operands);

#endif
