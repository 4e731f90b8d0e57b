/*
 * experiment.c - the table of experiments, and what their results are
 */
#include "workbench/sim/experiment.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/say.h"

const struct experiment net_experiments[] = {
    { "loop", "packets that find out that they go round in a circle",
      "grid:16x16", 1000, net_loop },
    { "way", "who sent this packet? The way back from the marks in it",
      "tree:2:12", 1000, net_way },
    { "multicast", "groups that are forwarded by filters of interfaces",
      "preferential:500:2", 1000, net_multicast },
    { "tree", "services in a hierarchy of servers, by filters of subtrees",
      "tree:4:4", 1000, net_tree },
    { "near", "near copies of things, by attenuated filters", "random:1000:4",
      1000, net_near },
    { "squares", "names by where they are, by filters of squares",
      "geometric:1024:12", 1000, net_squares },
    { 0 },
};

const struct experiment *net_experiment(const char *name)
{
    for (const struct experiment *e = net_experiments; e->name; e++)
        if (strcmp(e->name, name) == 0)
            return e;
    return NULL;
}

static const struct field net_value_fields[] = {
    FIELD(struct net_value, name, NONE, "its name"),
    FIELD(struct net_value, what, NONE, "what it is"),
    FIELD(struct net_value, value, MAYBE, "as measured"),
    FIELD(struct net_value, expected, MAYBE, "by the formula, if there is one"),
    { 0 },
};

const struct field net_result_fields[] = {
    FIELD(struct net_result, experiment, NONE, "the experiment"),
    FIELD(struct net_result, nodes, NONE, "nodes of the network"),
    FIELD(struct net_result, links, NONE, "links between them"),
    FIELD(struct net_result, tries, NONE, "tries"),
    FIELD(struct net_result, success, SHARE, "share that ended well"),
    FIELD(struct net_result, hops, MAYBE, "of these, on average"),
    FIELD(struct net_result, stretch, MAYBE,
          "hops over those of the shortest way"),
    FIELD(struct net_result, messages, NONE, "packets or messages in all"),
    FIELD(struct net_result, state, NONE, "bytes that a node keeps"),
    LIST(struct net_result, "values", values, nvalues, NONE, net_value_fields,
         "what else was measured"),
    { 0 },
};

void net_value(struct net_result *r, const char *name, const char *what,
               double value, double expected)
{
    if (r->nvalues < NET_VALUES)
        r->values[r->nvalues++] =
            (struct net_value){ name, what, value, expected };
}

bool net_ways_new(struct net_ways *w, const struct graph *g)
{
    w->hops = malloc(3 * (size_t)g->n * sizeof *w->hops);
    w->before = w->hops ? w->hops + g->n : NULL;
    w->queue = w->hops ? w->hops + 2 * (size_t)g->n : NULL;
    return w->hops || refuse("no memory for the ways of %u nodes", g->n);
}

void net_ways_free(struct net_ways *w)
{
    free(w->hops);
}
