/*
 * node_levels.h - the struct behind bly_node, and the code of its levels
 */
#ifndef BLY_NODE_H
#define BLY_NODE_H

#include <bloomery/node.h>

#include "kinds/attenuated.h"
#include "kinds/filter.h"

/* Bits of a counter of v->local. One that reaches 15 keys stays there; at half
 * fill that is one counter in 3e13 (counting.c). */
#define BLY_NODE_WIDTH 4

/* A link. What it told and was told are attenuated filters of v->shape. */
typedef struct bly_edge {
    bly_filter *heard;     /* NULL: nothing, or it has expired */
    uint64_t life;         /* of the neighbour, when it said that */
    uint64_t version;      /* and the number of that state in this life */
    uint64_t heard_at;     /* time of the last message that was up to date */
    bool lost;             /* a message is missing: ask for everything */
    bool asked;            /* the neighbour asks for everything */
    bly_filter *told;      /* as of the last message; NULL: none so far */
    uint64_t told_version; /* its number */
    uint64_t told_change;  /* v->change when it was last told */
    double rate[BLY_ATTENUATED_MAX_DEPTH]; /* of the levels of heard */
    size_t nname;
    char name[]; /* with a NUL at its end */
} bly_edge;

struct bly_node {
    bly_mem mem;
    bly_filter *local; /* counting, its cells those of the bits of a level */
    bly_shape shape;   /* of what is told and heard */
    bly_setting set;   /* likewise; mem is that of the node */
    uint64_t depth, m, k;
    uint64_t fit; /* equal for nodes that understand each other */
    uint64_t life, ttl, now, max_bytes;
    uint64_t last_version; /* the last number of a state that was told, over
                              any link: a message that could not be sent may
                              have arrived, a link may go and come back, and
                              yet no number means two states */
    uint64_t change;       /* grows with each change of what may be told */
    bly_edge **edge;       /* ascending by name */
    size_t nedges, room;
};

/* A node of `depth` levels around local, which it owns from then on, also if
 * the call fails. */
bly_status bly_node_around(bly_filter *local, uint64_t depth,
                           uint64_t max_bytes, bly_node **out);

/* The link of that name; NULL, after bly_fail(), if there is none. */
bly_edge *bly_node_edge(const bly_node *v, const char *name);

/* Add a link whose name is not terminated; *out belongs to v. */
bly_status bly_node_link_named(bly_node *v, bly_bytes name, bly_edge **out);

/* An empty attenuated filter for v; BLY_ERANGE past its limit. */
bly_status bly_node_levels(const bly_node *v, bly_filter **out);

/* Memory of all filters of v. */
uint64_t bly_node_held(const bly_node *v);

/* What e told becomes f, which belongs to e from then on; NULL: nothing. */
void bly_edge_set_heard(bly_node *v, bly_edge *e, bly_filter *f);

/* ------------------------------------------------------------------ levels */

/* The bits in which two filters of one shape differ, for each level:
 *
 *     number of flips    LEB128, in as few bytes as possible
 *     parameter          a byte, unless there are no flips
 *     gaps               rice.h
 *
 * The number of bytes; *flips, unless NULL, becomes that of bits. */
uint64_t bly_levels_bytes(const bly_filter *from, const bly_filter *to,
                          uint64_t *flips);
unsigned char *bly_levels_write(const bly_filter *from, const bly_filter *to,
                                unsigned char *at);

/* Flip in f what *at, of *n bytes from outside, says, and step over it. False
 * if it says no such thing: f can then only be freed. *flips grows by their
 * number. f NULL: there must be none, in so many levels. */
bool bly_levels_read(const unsigned char **at, size_t *n, bly_filter *f,
                     uint64_t depth, uint64_t *flips);

/* The most bytes that this can take. */
uint64_t bly_levels_most(const bly_node *v);

#endif
