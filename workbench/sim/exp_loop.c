/*
 * exp_loop.c - packets that go round in a circle, and some that only seem to
 *
 * A packet goes the shortest way from one node to another. Somewhere on it, one
 * router is wrong about the next: it sends the packet back to where it came
 * from, so that it goes round. With a hop limit of 64 it does so until that is
 * used up. With marks, every interface of the circle finds its own mark in the
 * second round.
 *
 * Packets on good paths may be dropped by mistake, when their marks happen to
 * add up to that of an interface.
 */
#include <math.h>
#include <stdlib.h>

#include "workbench/sim/experiment.h"
#include "apps/net/faces.h"
#include "base/random.h"
#include "report/say.h"

#define HOP_LIMIT 64

struct loop_run {
    const struct net_spec *spec;
    const struct mark *marks;
    struct net_ways ways;
    double hops, expected, wasted, by_limit;
    uint64_t delivered, circles, found, late;
};

/* A packet leaves by edge e; whether it is dropped there. */
static bool loop_step(const struct loop_run *run, uint32_t e, struct marked *p,
                      unsigned *suspicions)
{
    const struct mark *const m = &run->marks[e];
    *suspicions = mark_in(m, p) ? *suspicions + 1 : 0;
    mark_add(m, p);
    return *suspicions >= run->spec->strikes;
}

/* From the source of the ways to `to`: the nodes, in their order. */
static uint32_t loop_way(const struct loop_run *run, uint32_t to,
                         uint32_t *nodes)
{
    const uint32_t n = run->ways.hops[to];
    for (uint32_t i = n + 1; i-- > 0; to = run->ways.before[to])
        nodes[i] = to;
    return n;
}

static void good_way(struct loop_run *run, const uint32_t *nodes, uint32_t n)
{
    struct marked p = { 0 };
    unsigned suspicions = 0;
    for (uint32_t i = 0; i < n; i++)
        if (loop_step(run, faces_between(run->spec->g, nodes[i], nodes[i + 1]),
                      &p, &suspicions))
            return;
    run->delivered++;
    run->hops += n;
}

/* The router at nodes[bad] sends back: the two of them play ball. */
static void bad_way(struct loop_run *run, const uint32_t *nodes, uint32_t bad)
{
    const struct graph *const g = run->spec->g;
    struct marked p = { 0 };
    unsigned suspicions = 0;
    uint32_t made = 0;
    bool dropped = false;
    for (; made < bad && !dropped; made++)
        dropped = loop_step(run, faces_between(g, nodes[made], nodes[made + 1]),
                            &p, &suspicions);
    if (dropped)
        return; /* for nothing: that is counted with the good ways */
    const uint32_t there = nodes[bad], back = nodes[bad - 1];
    const uint32_t circle[2] = { faces_between(g, there, back),
                                 faces_between(g, back, there) };
    uint32_t around = 0;
    while (!dropped && made + around < HOP_LIMIT) {
        dropped = loop_step(run, circle[around % 2], &p, &suspicions);
        around++;
    }
    run->circles++;
    run->found += dropped;
    /* The last step was not made. */
    run->wasted += around - dropped;
    run->late += around - dropped > run->spec->strikes;
    run->by_limit += HOP_LIMIT - made;
}

bool net_false_drops(const struct net_spec *spec, unsigned d, double *out)
{
    const struct mark_spec like = { .bits = spec->bits,
                                    .k = spec->k,
                                    .seed = spec->seed };
    struct mark_maker *maker;
    uint64_t random = spec->seed, dropped = 0;
    bly_status st = mark_maker_new(&like, &maker);
    for (uint64_t i = 0; !st && i < spec->tries; i++) {
        struct marked p = { 0 };
        unsigned suspicions = 0;
        for (unsigned at = 0; !st && at < d && suspicions < spec->strikes;
             at++) {
            const uint64_t name = random_next(&random);
            struct mark m;
            st = mark_make(maker, &name, sizeof name, &m);
            suspicions = mark_in(&m, &p) ? suspicions + 1 : 0;
            mark_add(&m, &p);
        }
        dropped += suspicions >= spec->strikes;
    }
    mark_maker_free(maker);
    *out = (double)dropped / (double)spec->tries;
    if (st == BLY_ENOMEM)
        return refuse("no memory for a mark");
    return !st || refuse_library();
}

bool net_loop(const struct net_spec *given, struct net_result *out)
{
    struct net_spec spec = *given;
    spec.bits = spec.bits ? spec.bits : 256;
    spec.k = spec.k ? spec.k : 8;
    spec.strikes = spec.strikes ? spec.strikes : 1;
    const struct graph *const g = spec.g;
    const struct mark_spec like = { .bits = spec.bits,
                                    .k = spec.k,
                                    .seed = spec.seed };
    struct mark *const marks = faces_mark(g, &like);
    struct loop_run run = { .spec = &spec, .marks = marks };
    uint64_t random = spec.seed, turns = 0;
    uint32_t *const nodes = malloc((size_t)g->n * sizeof *nodes);
    bool ok = marks && net_ways_new(&run.ways, g);
    if (!nodes)
        ok = refuse("no memory for a way");
    for (uint64_t i = 0; ok && i < spec.tries; turns++) {
        const uint32_t from = graph_below(&random, g->n);
        const uint32_t to = graph_below(&random, g->n);
        if (turns > 100 * spec.tries + 1000)
            ok = refuse("hardly any node of this network can reach another");
        graph_hops(g, from, run.ways.hops, run.ways.before, run.ways.queue);
        const uint32_t far = run.ways.hops[to];
        if (from == to || far == GRAPH_FAR)
            continue;
        const uint32_t n = loop_way(&run, to, nodes);
        good_way(&run, nodes, n);
        run.expected += mark_false_loop(spec.bits, spec.k, n);
        bad_way(&run, nodes, 1 + graph_below(&random, n));
        if (n < NET_ROUTE && n + 1 > out->nroute) {
            out->nroute = n + 1;
            for (uint32_t k = 0; k <= n; k++)
                out->route[k] = nodes[k];
        }
        i++;
    }
    const double tries = (double)spec.tries, loops = (double)run.found;
    out->success = (double)run.delivered / tries;
    out->hops = run.hops / (double)run.delivered;
    out->stretch = 1;
    out->messages = (uint64_t)(run.hops + run.wasted);
    out->state = (double)g->nedges / g->n * spec.bits / 8;
    net_value(out, "false_drops", "share of packets on good ways that are lost",
              1 - out->success, spec.strikes == 1 ? run.expected / tries : NAN);
    net_value(out, "loops_found", "share of circles that end before the limit",
              loops / (double)run.circles, 1);
    net_value(out, "wasted", "hops round a circle of two, with marks",
              run.wasted / loops, spec.strikes);
    net_value(out, "wasted_by_limit", "the same with a hop limit of 64",
              run.by_limit / loops, NAN);
    net_value(out, "late", "circles that went round more than once",
              (double)run.late, 0);
    free(nodes);
    free(marks);
    net_ways_free(&run.ways);
    return ok;
}
