/*
 * way_back.h - which routers marked this packet? From its receiver back to its
 * sender
 */
#ifndef BLY_NET_WAY_BACK_H
#define BLY_NET_WAY_BACK_H

#include "apps/net/graph.h"
#include "apps/net/marks.h"

/* Walk back from a node: a neighbour is found if the packet has the mark of its
 * interface towards the node that asks. `found` of those gets `number`; queue,
 * of g->n, gets them in order, the receiver first. *asked counts the marks that
 * were compared. The result is how many were found besides the receiver. */
uint32_t way_back(const struct graph *g, const struct mark *marks,
                  uint32_t receiver, const struct marked *p, uint32_t number,
                  uint32_t *found, uint32_t *queue, uint64_t *asked);

#endif
