/*
 * exp_multicast.c - groups on a network, forwarded by filters of interfaces
 *
 * A group has a source and members. A member's router joins it on the way to
 * the source, that one on the next, and so on until one has it already: the
 * state of a router is that of the real one (cast.h). Then a packet is sent: a
 * router takes it only from the neighbour on the shortest way to the source,
 * and copies it to all interfaces that may have members. Members must get it
 * exactly once; copies to interfaces that nobody joined are superfluous, and
 * mostly die at the next router.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/net/cast.h"
#include "workbench/sim/experiment.h"
#include "base/random.h"
#include "report/say.h"

struct group {
    unsigned char pair[CAST_PAIR];
    uint32_t source;
};

struct cast_run {
    const struct net_spec *spec;
    struct cast *routers;
    struct net_ways ways;
    uint8_t *got; /* of nodes: it arrived */
    uint32_t *queue;
    uint64_t copies, superfluous, needed, missing, twice;
    double expected; /* superfluous copies, by the formula */
};

/* Everybody's way to the source of a group. */
static void cast_ways(struct cast_run *run, const struct group *group)
{
    graph_hops(run->spec->g, group->source, run->ways.hops, run->ways.before,
               run->ways.queue);
}

/* The members of a group, one after another: each joins at its neighbour on the
 * way to the source, and who is the first there makes that one join further on.
 * False: no memory. */
static bool cast_members(struct cast_run *run, const struct group *group,
                         uint64_t random)
{
    const struct graph *const g = run->spec->g;
    const uint32_t n =
        1 + graph_below(&random, (uint32_t)(2 * run->spec->members));
    cast_ways(run, group);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = graph_below(&random, g->n);
        enum cast_change change = CAST_FIRST;
        while (change == CAST_FIRST && at != group->source &&
               run->ways.before[at] != GRAPH_FAR) {
            const uint32_t up = run->ways.before[at];
            uint32_t e = g->first[up];
            while (g->edges[e].to != at)
                e++;
            change = cast_join(&run->routers[up], group->pair, e - g->first[up],
                               UINT64_MAX);
            if (change == CAST_FULL)
                return false;
            at = up;
        }
    }
    return true;
}

/* A packet from the source; what arrives where. */
static void cast_send(struct cast_run *run, const struct group *group)
{
    const struct graph *const g = run->spec->g;
    uint32_t *const queue = run->queue;
    uint32_t head = 0, tail = 0;
    cast_ways(run, group);
    memset(run->got, 0, g->n);
    queue[tail++] = group->source;
    run->got[group->source] = 1;
    while (head < tail) {
        const uint32_t at = queue[head++];
        const struct cast *const router = &run->routers[at];
        unsigned up = CAST_FACE_NONE;
        for (uint32_t e = g->first[at]; e < g->first[at + 1]; e++)
            if (g->edges[e].to == run->ways.before[at])
                up = e - g->first[at];
        /* Only those are in the queue that got it from there. */
        const uint64_t faces = cast_copies(router, group->pair, up, up);
        const uint64_t wanted = cast_wanted(router, group->pair);
        for (uint32_t e = g->first[at]; e < g->first[at + 1]; e++) {
            const unsigned face = e - g->first[at];
            const uint32_t to = g->edges[e].to;
            const bool wants = wanted >> face & 1;
            if (face == up)
                continue;
            if (!wants)
                run->expected += cast_wrong(router, face);
            if (!(faces >> face & 1)) {
                run->missing += wants;
                continue;
            }
            run->copies++;
            run->needed += wants;
            run->superfluous += !wants;
            /* Only from where the way to the source begins. */
            if (run->ways.before[to] != at)
                continue;
            run->twice += run->got[to]++ != 0;
            queue[tail++] = to;
        }
    }
}

static bool cast_routers(struct cast_run *run, uint64_t groups)
{
    const struct graph *const g = run->spec->g;
    /* An interface has as many groups as lie behind it, on average. */
    double most = (double)groups * run->spec->members / 2;
    most = most < 16 ? 16 : most;
    for (uint32_t at = 0; at < g->n; at++) {
        const uint32_t faces = g->first[at + 1] - g->first[at];
        if (faces > SLICED_FACES)
            return refuse(
                "%s has %u links; a multicast router here has at most "
                "%d",
                g->nodes[at].name, faces, SLICED_FACES);
        const double share = most / (faces ? faces : 1);
        if (!cast_new(&run->routers[at], (uint64_t)ceil(share),
                      run->spec->cell_bits, groups, run->spec->seed))
            return refuse("no memory for the groups of %u routers", g->n);
    }
    return true;
}

bool net_multicast(const struct net_spec *given, struct net_result *out)
{
    struct net_spec spec = *given;
    spec.groups = spec.groups ? spec.groups : 200;
    spec.members = spec.members > 0 ? spec.members : 5;
    spec.cell_bits = spec.cell_bits > 0 ? spec.cell_bits : 16;
    const struct graph *const g = spec.g;
    struct cast_run run = { .spec = &spec };
    struct group *const groups = calloc(spec.groups, sizeof *groups);
    run.routers = calloc(g->n, sizeof *run.routers);
    run.got = malloc(g->n);
    run.queue = malloc((size_t)g->n * sizeof *run.queue);
    bool ok = net_ways_new(&run.ways, g);
    if (ok && !(groups && run.routers && run.got && run.queue))
        ok = refuse("no memory for %llu groups",
                    (unsigned long long)spec.groups);
    ok = ok && cast_routers(&run, spec.groups);
    uint64_t random = spec.seed;
    for (uint64_t i = 0; ok && i < spec.groups; i++) {
        const uint64_t number = random_next(&random);
        memcpy(groups[i].pair, &number, sizeof number);
        groups[i].source = graph_below(&random, g->n);
        if (!cast_members(&run, &groups[i], spec.seed + i))
            ok = refuse("no memory for %llu groups",
                        (unsigned long long)spec.groups);
    }
    for (uint64_t i = 0; ok && i < spec.tries; i++)
        cast_send(&run, &groups[random_next(&random) % spec.groups]);
    double state = 0, joins = 0;
    for (uint32_t at = 0; ok && at < g->n; at++) {
        state += (double)run.routers[at].groups.nbits * sizeof(uint64_t);
        for (unsigned face = 0; face < SLICED_FACES; face++)
            joins += (double)run.routers[at].n[face];
    }
    const double tries = (double)spec.tries;
    out->success = run.missing ? 0 : 1;
    out->hops = (double)run.copies / tries;
    out->stretch = (double)run.copies / (double)run.needed;
    out->messages = run.copies;
    out->state = state / g->n;
    net_value(out, "missing", "interfaces with members that got no copy",
              (double)run.missing, 0);
    net_value(out, "twice", "routers that took a packet twice",
              (double)run.twice, 0);
    net_value(out, "superfluous", "copies that nobody wanted, per packet",
              (double)run.superfluous / tries, run.expected / tries);
    net_value(out, "joined", "groups on an interface, on average",
              joins / g->nedges, NAN);
    for (uint32_t at = 0; run.routers && at < g->n; at++)
        cast_free(&run.routers[at]);
    free(run.routers);
    free(run.got);
    free(run.queue);
    free(groups);
    net_ways_free(&run.ways);
    return ok;
}
