/*
 * faces.h - the marks of all interfaces of a network
 *
 * An interface is a direction of a link. It is called by the names of the nodes
 * at its two ends, with a NUL between them.
 */
#ifndef BLY_NET_FACES_H
#define BLY_NET_FACES_H

#include "apps/net/graph.h"
#include "apps/net/marks.h"

/* A mark for each of g->edges, that of the node which it leaves; from malloc.
 * NULL, with the reason printed. */
struct mark *faces_mark(const struct graph *g, const struct mark_spec *spec);

/* The edge from one node to another, which are neighbours. */
uint32_t faces_between(const struct graph *g, uint32_t from, uint32_t to);

#endif
