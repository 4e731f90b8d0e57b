/*
 * exp_near.c - near copies of things, found by attenuated filters
 *
 * Every node is a bly_node of the library: it tells its neighbours what it has,
 * and what others told it, one hop further away. A question goes to the link
 * with the least level that may have the key, carries the links that it went
 * over and uses none of them twice. At a dead end it goes one step back, once;
 * then it gives up, and a method that always finds things (a Chord ring, see
 * docs/ring.md) takes over (after Rhea and Kubiatowicz, 2002).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery/node.h>

#include "workbench/sim/experiment.h"
#include "apps/net/seek.h"
#include "report/say.h"

#define NEAR_KEYS 20 /* of a node */
#define NEAR_COPIES 8
#define NEAR_LEVELS 5
#define NEAR_LINKS 64

struct near_run {
    const struct net_spec *spec;
    unsigned depth;
    struct net_ways ways;
    bly_node **nodes;
    uint32_t nthings;
    uint32_t (*copies)[NEAR_COPIES]; /* of each thing */
    uint64_t news, bytes;
    uint64_t tried, found, given_up;
    double hops, stretch;
    /* Links that were asked for what is nowhere, and said that it is that far,
     * of those that did not say nearer. */
    uint64_t asked[NEAR_LEVELS + 1], wrong[NEAR_LEVELS + 1];
};

static bool thing_at(const struct near_run *run, uint32_t thing, uint32_t node)
{
    for (unsigned i = 0; i < NEAR_COPIES; i++)
        if (run->copies[thing][i] == node)
            return true;
    return false;
}

/* ---------------------------------------------------------------- telling */

struct near_news {
    struct near_run *run;
    uint32_t from, to;
    bool failed;
};

static void link_name(uint32_t node, char out[16])
{
    snprintf(out, 16, "%07u", node);
}

static bool near_hear(void *ctx, const void *bytes, size_t nbytes)
{
    struct near_news *const n = ctx;
    char name[16];
    link_name(n->from, name);
    n->run->news++;
    n->run->bytes += nbytes;
    n->failed |= bly_node_hear(n->run->nodes[n->to], name, bytes, nbytes, 1,
                               NULL) != BLY_OK;
    return !n->failed;
}

/* Everybody tells everything, as many times as there are levels. */
static bly_status near_tell(struct near_run *run)
{
    const struct graph *const g = run->spec->g;
    bly_status st = BLY_OK;
    for (unsigned round = 0; round <= run->depth; round++)
        for (uint32_t at = 0; !st && at < g->n; at++)
            for (uint32_t e = g->first[at]; !st && e < g->first[at + 1]; e++) {
                struct near_news news = { run, at, g->edges[e].to, false };
                char name[16];
                link_name(g->edges[e].to, name);
                st =
                    bly_node_tell(run->nodes[at], name, near_hear, &news, NULL);
            }
    return st;
}

static bly_status near_make(struct near_run *run, uint64_t *random)
{
    const struct graph *const g = run->spec->g;
    char depth[16];
    snprintf(depth, sizeof depth, "%u", run->depth);
    const bly_option options[] = { { "depth", depth }, { "degree", "4" } };
    const bly_spec like = { .items = NEAR_KEYS,
                            .fpr = run->spec->rate > 0 ? run->spec->rate : 0.01,
                            .seed = run->spec->seed,
                            .options = options,
                            .noptions = 2 };
    bly_status st = BLY_OK;
    for (uint32_t at = 0; !st && at < g->n; at++) {
        st = bly_node_new(&like, 1, 0, &run->nodes[at]);
        for (uint32_t e = g->first[at]; !st && e < g->first[at + 1]; e++) {
            char name[16];
            link_name(g->edges[e].to, name);
            st = bly_node_link(run->nodes[at], name);
        }
    }
    for (uint32_t t = 0; !st && t < run->nthings; t++)
        for (unsigned i = 0; !st && i < NEAR_COPIES; i++) {
            run->copies[t][i] = graph_below(random, g->n);
            st = bly_node_add(run->nodes[run->copies[t][i]], &t, sizeof t);
        }
    return st ? st : near_tell(run);
}

/* ----------------------------------------------------------------- asking */

/* The links of a node that tell of a thing, the best first, by their ends. */
static size_t near_links(const struct near_run *run, uint32_t at,
                         uint32_t thing, uint32_t links[NEAR_LINKS])
{
    bly_way ways[NEAR_LINKS + 1];
    const size_t n = bly_node_find(run->nodes[at], &thing, sizeof thing, ways,
                                   NEAR_LINKS + 1);
    size_t k = 0;
    for (size_t i = 0; i < n && i < NEAR_LINKS + 1 && k < NEAR_LINKS; i++)
        if (ways[i].link)
            links[k++] = (uint32_t)strtoul(ways[i].link, NULL, 10);
    return k;
}

/* The hops of a question until it found its thing; 0: it gave up. */
static uint32_t near_ask(struct near_run *run, uint32_t from, uint32_t thing,
                         struct net_result *out)
{
    struct seek s;
    uint32_t links[NEAR_LINKS], at = from;
    seek_start(&s, from, 4 * run->depth);
    while (!thing_at(run, thing, at))
        if (!seek_next(&s, links, near_links(run, at, thing, links), &at))
            return 0;
    if (s.nway > out->nroute)
        for (out->nroute = 0; out->nroute < s.nway; out->nroute++)
            out->route[out->nroute] = s.way[out->nroute];
    return s.hops;
}

/* What the links of a node say of a thing that nobody has. */
static void near_mislead(struct near_run *run, uint32_t at, uint32_t thing)
{
    const struct graph *const g = run->spec->g;
    const unsigned nlinks = g->first[at + 1] - g->first[at];
    unsigned said[NEAR_LEVELS + 1] = { 0 }, left = nlinks;
    bly_way ways[65];
    const size_t n =
        bly_node_find(run->nodes[at], &thing, sizeof thing, ways, 65);
    for (size_t i = 0; i < n && i < 65; i++)
        if (ways[i].link && ways[i].hops <= NEAR_LEVELS)
            said[ways[i].hops]++;
    for (unsigned j = 1; j <= run->depth; j++) {
        run->asked[j] += left;
        run->wrong[j] += said[j];
        left -= said[j];
    }
}

bool net_near(const struct net_spec *spec, struct net_result *out)
{
    const struct graph *const g = spec->g;
    struct near_run run = { .spec = spec,
                            .depth = spec->depth ? spec->depth : 3 };
    uint64_t random = spec->seed, turns = 0;
    if (run.depth > NEAR_LEVELS)
        return refuse("--depth: 1 to %d", NEAR_LEVELS);
    if (g->n > 20000)
        return refuse("at most 20000 nodes: each keeps filters for its links");
    run.nthings = g->n * NEAR_KEYS / NEAR_COPIES;
    run.nodes = calloc(g->n, sizeof *run.nodes);
    run.copies = malloc((size_t)(run.nthings + 1) * sizeof *run.copies);
    bool ok = net_ways_new(&run.ways, g);
    if (ok && !(run.nodes && run.copies))
        ok = refuse("no memory for %u nodes", g->n);
    if (ok && near_make(&run, &random))
        ok = refuse_library();
    while (ok && run.tried < spec->tries) {
        const uint32_t from = graph_below(&random, g->n);
        const uint32_t thing = graph_below(&random, run.nthings);
        uint32_t nearest = GRAPH_FAR;
        if (++turns > 1000 * spec->tries + 1000)
            ok = refuse("hardly anything is within reach on this network");
        graph_hops(g, from, run.ways.hops, run.ways.before, run.ways.queue);
        for (unsigned i = 0; i < NEAR_COPIES; i++)
            if (run.ways.hops[run.copies[thing][i]] < nearest)
                nearest = run.ways.hops[run.copies[thing][i]];
        if (!nearest || nearest > run.depth)
            continue;
        run.tried++;
        near_mislead(&run, from, run.nthings + (uint32_t)run.tried);
        const uint32_t hops = near_ask(&run, from, thing, out);
        run.found += hops != 0;
        run.hops += hops;
        run.stretch += (double)hops / nearest;
    }
    bly_node_stats stats = { 0 };
    if (ok)
        bly_node_stat(run.nodes[0], &stats);
    const double found = (double)run.found;
    out->success = found / (double)spec->tries;
    out->hops = run.hops / found;
    out->stretch = run.stretch / found;
    out->messages = run.news;
    out->state = (double)stats.bytes;
    static const char *const names[] = { "",        "level_1", "level_2",
                                         "level_3", "level_4", "level_5" };
    for (unsigned j = 1; j <= run.depth; j++)
        net_value(out, names[j],
                  "links that tell of what is nowhere, so far away",
                  (double)run.wrong[j] / (double)run.asked[j], NAN);
    net_value(out, "told", "bytes of messages to tell all, per node",
              (double)run.bytes / g->n, NAN);
    for (uint32_t i = 0; run.nodes && i < g->n; i++)
        bly_node_free(run.nodes[i]);
    free(run.nodes);
    free(run.copies);
    net_ways_free(&run.ways);
    return ok;
}
