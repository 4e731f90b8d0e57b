/*
 * exp_way.c - the way of a packet, from the marks in it
 *
 * The victim is node 0. Packets come the shortest way from nodes that are
 * farthest away, and every router marks them with the interface by which they
 * leave. The victim asks which neighbours have marked the packet, these ask
 * theirs, and so on: what is found is a tree, in which the true way lies unless
 * a later mark has turned a bit of an earlier one over.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "workbench/sim/experiment.h"
#include "apps/net/faces.h"
#include "apps/net/way_back.h"
#include "base/random.h"
#include "report/say.h"

struct way_run {
    const struct net_spec *spec;
    const struct mark *marks;
    struct net_ways ways;
    uint32_t *found; /* the number of the try in which a node was found */
    uint32_t *queue;
    double depth, on_way, others;
    uint64_t asked, whole, farthest;
};

static struct marked way_start(const struct net_spec *spec, uint64_t *random)
{
    struct marked p = { 0 };
    for (unsigned i = 0; i < spec->bits / 64; i++)
        p.words[i] = spec->start == NET_ONES     ? UINT64_MAX
                     : spec->start == NET_RANDOM ? random_next(random)
                                                 : 0;
    return p;
}

static void one_packet(struct way_run *run, uint32_t sender, uint32_t number,
                       uint64_t *random)
{
    const struct graph *const g = run->spec->g;
    struct marked p = way_start(run->spec, random);
    for (uint32_t at = sender; at != 0; at = run->ways.before[at])
        mark_add(&run->marks[faces_between(g, at, run->ways.before[at])], &p);
    const uint32_t nfound = way_back(g, run->marks, 0, &p, number, run->found,
                                     run->queue, &run->asked);
    uint32_t hits = 0;
    for (uint32_t at = sender; at != 0; at = run->ways.before[at])
        hits += run->found[at] == number;
    run->farthest += mark_in(
        &run->marks[faces_between(g, sender, run->ways.before[sender])], &p);
    run->whole += hits == run->ways.hops[sender];
    run->depth += run->ways.hops[sender];
    run->on_way += hits;
    run->others += nfound - hits;
}

static void draw_way(struct way_run *run, uint32_t sender, uint32_t number,
                     struct net_result *out)
{
    for (uint32_t at = sender; out->nroute < NET_ROUTE;
         at = run->ways.before[at]) {
        out->route[out->nroute++] = at;
        run->found[at] = UINT32_MAX;
        if (at == 0)
            break;
    }
    for (uint32_t i = 0; i < run->spec->g->n && out->nastray < NET_ROUTE; i++)
        if (run->found[i] == number)
            out->astray[out->nastray++] = i;
}

bool net_way(const struct net_spec *given, struct net_result *out)
{
    struct net_spec spec = *given;
    spec.bits = spec.bits ? spec.bits : 256;
    spec.k = spec.k ? spec.k : 1;
    const struct graph *const g = spec.g;
    const struct mark_spec like = {
        .bits = spec.bits, .k = spec.k, .k0 = spec.k0, .seed = spec.seed
    };
    struct mark *const marks = faces_mark(g, &like);
    struct way_run run = { .spec = &spec, .marks = marks };
    uint32_t *const senders = malloc((size_t)g->n * sizeof *senders);
    uint32_t most = 0, nsenders = 0;
    uint64_t random = spec.seed ^ 1;
    run.found = malloc((size_t)g->n * sizeof *run.found);
    run.queue = malloc(((size_t)g->n + 1) * sizeof *run.queue);
    bool ok = marks && net_ways_new(&run.ways, g);
    if (ok && !(senders && run.found && run.queue))
        ok = refuse("no memory for %u nodes", g->n);
    if (ok) {
        graph_hops(g, 0, run.ways.hops, run.ways.before, run.ways.queue);
        memset(run.found, 0xff, (size_t)g->n * sizeof *run.found);
        for (uint32_t i = 0; i < g->n; i++)
            if (run.ways.hops[i] != GRAPH_FAR && run.ways.hops[i] > most)
                most = run.ways.hops[i];
        for (uint32_t i = 0; i < g->n; i++)
            if (run.ways.hops[i] == most)
                senders[nsenders++] = i;
        if (!most)
            ok = refuse("the first node of this network reaches no other");
    }
    for (uint32_t i = 0; ok && i < spec.tries; i++) {
        const uint32_t sender = senders[graph_below(&random, nsenders)];
        one_packet(&run, sender, i, &random);
        if (i + 1 == spec.tries)
            draw_way(&run, sender, i, out);
    }
    const double tries = (double)spec.tries;
    out->success = (double)run.whole / tries;
    out->hops = run.depth / tries;
    out->stretch = NAN;
    out->messages = run.asked;
    out->state = (double)g->nedges / g->n * 2 * spec.bits / 8;
    net_value(out, "farthest", "share of senders whose own mark is left",
              (double)run.farthest / tries, NAN);
    net_value(out, "on_way", "share of routers on the way that are found",
              run.on_way / run.depth, NAN);
    net_value(out, "others", "routers found that are not on the way, each time",
              run.others / tries, NAN);
    net_value(out, "asked", "routers that are asked, each time",
              (double)run.asked / tries, NAN);
    free(senders);
    free(run.found);
    free(run.queue);
    free(marks);
    net_ways_free(&run.ways);
    return ok;
}
