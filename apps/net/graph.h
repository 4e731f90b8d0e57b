/*
 * graph.h - networks to try things on: from a file, or made
 *
 *     # a comment
 *     node a 0.1 0.9          where a picture has it; optional
 *     edge a b                a link, in both directions
 *     edge b c 5              with a delay of 5 ms
 *
 * Or by one of these words, with `seed` for all that is random:
 *
 *     ring:N                  each with the next
 *     line:N                  the same, not closed
 *     grid:WxH                each with those beside, above and below it
 *     tree:DEGREE:DEPTH       all nodes of DEPTH levels below the root
 *     random:N:DEGREE         every node has that many links
 *     geometric:N:DEGREE      points of a square, linked up to the distance
 *                             that gives this degree on average
 *     preferential:N:M        each new node with M others, who are chosen in
 *                             proportion to the links that they have
 */
#ifndef BLY_NET_GRAPH_H
#define BLY_NET_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GRAPH_NODES 1000000
#define GRAPH_EDGES 8000000 /* each counted once for either direction */
#define GRAPH_NAME 32       /* with the NUL */

struct graph_edge {
    uint32_t to;
    uint32_t delay; /* microseconds */
};

struct graph_node {
    char name[GRAPH_NAME];
    double x, y; /* of the unit square */
};

/* The links of node i are edges[first[i]] up to edges[first[i + 1]]. */
struct graph {
    uint32_t n, nedges;
    uint32_t *first;
    struct graph_edge *edges;
    struct graph_node *nodes;
};

/* The graph of a text that anyone may have written. False, with what is wrong
 * in why. */
bool graph_parse(const char *text, size_t n, struct graph *out, char why[160]);

/* The graph of a word of the list above, or of a file of that name. False, with
 * the reason printed. */
bool graph_load(const char *what, uint64_t seed, struct graph *out);
void graph_free(struct graph *g);

/* The hops from a node to all others, and from whom each is reached; out of
 * reach: GRAPH_FAR. queue has room for n. */
#define GRAPH_FAR UINT32_MAX
void graph_hops(const struct graph *g, uint32_t from, uint32_t *hops,
                uint32_t *before, uint32_t *queue);

/* Whether every node can be reached from every other; false also if there is no
 * memory to find out. */
bool graph_whole(const struct graph *g);

/* A random number below n. */
uint32_t graph_below(uint64_t *state, uint32_t n);

#endif
