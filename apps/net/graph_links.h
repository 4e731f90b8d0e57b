/*
 * graph_links.h - links while a network is made of them
 */
#ifndef BLY_NET_GRAPH_LINKS_H
#define BLY_NET_GRAPH_LINKS_H

#include "apps/net/graph.h"

struct links {
    struct link_of {
        uint32_t a, b, delay;
    } * at;
    size_t n, room;
    struct graph_node *nodes;
    size_t nnodes, nodes_room;
};

/* One more node, named by its number; one more link. False: too many, or no
 * memory. */
bool links_node(struct links *l, double x, double y);
bool links_add(struct links *l, uint32_t a, uint32_t b, uint32_t delay);

bool links_graph(struct links *l, struct graph *g);
void links_free(struct links *l);

/* The links of one of the words in graph.h. LINKS_WRONG: with the reason in
 * why; LINKS_NONE: it is not such a word. */
enum links_what { LINKS_MADE, LINKS_WRONG, LINKS_NONE };
enum links_what links_made(const char *what, uint64_t seed, struct links *l,
                           char why[160]);

#endif
