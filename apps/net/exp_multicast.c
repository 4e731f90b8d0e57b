/*
 * exp_multicast.c - groups on a network, forwarded by filters of interfaces
 *
 * A group has a source and members. The interfaces on the shortest ways from
 * the source to the members join it, at each router in one table (sliced.h).
 * Then a packet is sent: a router takes it only from the neighbour on the
 * shortest way to the source, and copies it to all interfaces that may have
 * members. Members must get it exactly once; copies to interfaces that nobody
 * joined are superfluous, and mostly die at the next router.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/net/experiment.h"
#include "apps/net/sliced.h"
#include "report/say.h"

struct group {
    uint64_t hash;
    uint32_t source;
};

struct cast_run {
    const struct net_spec *spec;
    struct sliced *routers;
    struct net_ways ways;
    uint8_t *wanted; /* of edges: the group goes there; of nodes: it arrived */
    uint8_t *got;
    uint64_t joins, copies, superfluous, needed, missing, twice;
    double faces_off; /* interfaces that no member is behind, summed */
    double expected;  /* superfluous copies, by the formula */
    double *load;     /* groups on an interface */
};

/* The edges from the source towards the members of a group, marked in wanted.
 */
static void cast_tree(struct cast_run *run, const struct group *group,
                      uint64_t *random)
{
    const struct graph *const g = run->spec->g;
    graph_hops(g, group->source, run->ways.hops, run->ways.before,
               run->ways.queue);
    memset(run->wanted, 0, g->nedges);
    const uint32_t n =
        1 + graph_below(random, (uint32_t)(2 * run->spec->members));
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = graph_below(random, g->n);
        while (at != group->source && run->ways.before[at] != GRAPH_FAR) {
            const uint32_t up = run->ways.before[at];
            for (uint32_t e = g->first[up]; e < g->first[up + 1]; e++)
                if (g->edges[e].to == at)
                    run->wanted[e] = 1;
            at = up;
        }
    }
}

static void cast_join(struct cast_run *run, const struct group *group)
{
    const struct graph *const g = run->spec->g;
    for (uint32_t at = 0; at < g->n; at++)
        for (uint32_t e = g->first[at]; e < g->first[at + 1]; e++)
            if (run->wanted[e]) {
                sliced_join(&run->routers[at], group->hash, e - g->first[at]);
                run->load[e]++;
                run->joins++;
            }
}

/* A packet from the source; what arrives where. */
static void cast_send(struct cast_run *run, const struct group *group)
{
    const struct graph *const g = run->spec->g;
    uint32_t *const queue = run->ways.queue;
    uint32_t head = 0, tail = 0;
    memset(run->got, 0, g->n);
    queue[tail++] = group->source;
    run->got[group->source] = 1;
    while (head < tail) {
        const uint32_t at = queue[head++];
        const uint64_t faces = sliced_faces(&run->routers[at], group->hash);
        for (uint32_t e = g->first[at]; e < g->first[at + 1]; e++) {
            const uint32_t to = g->edges[e].to;
            if (to == run->ways.before[at])
                continue;
            run->faces_off += !run->wanted[e];
            if (!run->wanted[e])
                run->expected += sliced_rate(&run->routers[at], run->load[e]);
            if (!(faces >> (e - g->first[at]) & 1)) {
                run->missing += run->wanted[e];
                continue;
            }
            run->copies++;
            run->needed += run->wanted[e];
            run->superfluous += !run->wanted[e];
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
            return !fail("%s has %u links; a multicast router here has at most "
                         "%d",
                         g->nodes[at].name, faces, SLICED_FACES);
        const double share = most / (faces ? faces : 1);
        if (!sliced_new(&run->routers[at], (uint64_t)ceil(share),
                        run->spec->cell_bits))
            return !fail("no memory for the groups of %u routers", g->n);
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
    run.wanted = malloc((size_t)g->nedges + 1);
    run.got = malloc(g->n);
    run.load = calloc((size_t)g->nedges + 1, sizeof *run.load);
    bool ok = net_ways_new(&run.ways, g);
    if (ok && !(groups && run.routers && run.wanted && run.got && run.load))
        ok =
            !fail("no memory for %llu groups", (unsigned long long)spec.groups);
    ok = ok && cast_routers(&run, spec.groups);
    uint64_t random = spec.seed;
    for (uint64_t i = 0; ok && i < spec.groups; i++) {
        uint64_t members = spec.seed + i;
        groups[i] =
            (struct group){ graph_random(&random), graph_below(&random, g->n) };
        cast_tree(&run, &groups[i], &members);
        cast_join(&run, &groups[i]);
    }
    for (uint64_t i = 0; ok && i < spec.tries; i++) {
        const uint64_t k = graph_random(&random) % spec.groups;
        uint64_t members = spec.seed + k;
        cast_tree(&run, &groups[k], &members);
        cast_send(&run, &groups[k]);
    }
    double state = 0;
    for (uint32_t at = 0; ok && at < g->n; at++)
        state += (double)run.routers[at].nbits * sizeof(uint64_t);
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
              (double)run.joins / g->nedges, NAN);
    for (uint32_t at = 0; run.routers && at < g->n; at++)
        sliced_free(&run.routers[at]);
    free(run.routers);
    free(run.wanted);
    free(run.got);
    free(run.load);
    free(groups);
    net_ways_free(&run.ways);
    return ok;
}
