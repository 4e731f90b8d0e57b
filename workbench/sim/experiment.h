/*
 * experiment.h - what becomes of packets and questions on a network
 *
 * An experiment runs the code of the routers and nodes on a graph, in one
 * process, and says how often it worked, over how many hops, for how many
 * messages and bytes. Everything random comes from the seed.
 */
#ifndef BLY_NET_EXPERIMENT_H
#define BLY_NET_EXPERIMENT_H

#include "apps/net/graph.h"
#include "report/fields.h"

struct net_spec {
    const struct graph *g;
    uint64_t tries, seed;
    unsigned bits, k, k0; /* of marks, see marks.h; 0: of the experiment */
    unsigned strikes;     /* loop: suspicions in a row that end a packet */
    unsigned start;       /* way: what senders begin with, enum net_start */
    uint64_t groups;      /* multicast */
    double members;       /* of a group, on average */
    double cell_bits;     /* per group and interface */
    unsigned depth;       /* near: levels of filters */
    double rate;          /* near: of what one link says; 0: 1 % */
};

enum net_start { NET_ZEROS, NET_ONES, NET_RANDOM };

/* A value that has a name, beside those that all experiments have. */
struct net_value {
    const char *name, *what;
    double value, expected; /* NAN: nothing is known beforehand */
};

#define NET_VALUES 12
#define NET_ROUTE 256

struct net_result {
    const char *experiment;
    uint64_t nodes, links, tries;
    double success; /* share of the tries that ended well */
    double hops;    /* of one that did, on average */
    double stretch; /* over the shortest way; NAN: none was asked for */
    uint64_t messages;
    double state; /* bytes that a node keeps */
    struct net_value values[NET_VALUES];
    size_t nvalues;

    /* One try, for a picture: nodes in their order. */
    uint32_t route[NET_ROUTE];
    size_t nroute;
    uint32_t astray[NET_ROUTE]; /* others who were asked, or got a copy */
    size_t nastray;
};

extern const struct field net_result_fields[];

void net_value(struct net_result *r, const char *name, const char *what,
               double value, double expected);

struct experiment {
    const char *name, *summary;
    const char *topology; /* if none is given */
    uint64_t tries;
    bool (*run)(const struct net_spec *spec, struct net_result *out);
};

extern const struct experiment net_experiments[];
const struct experiment *net_experiment(const char *name); /* NULL: none */

/* The experiments; false, with the reason printed. */
bool net_loop(const struct net_spec *spec, struct net_result *out);
bool net_way(const struct net_spec *spec, struct net_result *out);
bool net_multicast(const struct net_spec *spec, struct net_result *out);
bool net_tree(const struct net_spec *spec, struct net_result *out);
bool net_near(const struct net_spec *spec, struct net_result *out);
bool net_squares(const struct net_spec *spec, struct net_result *out);

/* The share of packets that are lost on ways through d interfaces, all of them
 * others for each packet. */
bool net_false_drops(const struct net_spec *spec, unsigned d, double *out);

/* What experiments share: ways from one node to all others, in memory that the
 * next call uses again. */
struct net_ways {
    uint32_t *hops, *before, *queue;
};
bool net_ways_new(struct net_ways *w, const struct graph *g);
void net_ways_free(struct net_ways *w);

#endif
