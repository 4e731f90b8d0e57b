/*
 * exp_squares.c - names found by where they are: filters of squares
 *
 * The plane is a square of four squares of four squares, and so on. A node has
 * a place, and knows at each level a filter of the names in each of the three
 * other squares beside its own, and who is in its smallest square: a few
 * filters instead of a place for each name. To find a name it takes the
 * smallest square that may have it and sends the packet towards its middle,
 * from neighbour to neighbour; the first node inside does the same with the
 * squares in there. If nothing matches inside, the filter was wrong: the packet
 * goes on with the next candidate of those who sent it (after Hsiao, 2002).
 *
 * Where no neighbour is nearer to the goal, the packet takes the nearest that
 * it has not seen, and goes back where there is none: it carries the nodes that
 * it met since it chose this goal, so that it gets there if there is a way.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery.h>

#include "workbench/sim/experiment.h"
#include "report/say.h"

#define LEVELS_MOST 6
#define SQUARES_RATE 0.01

struct squares_run {
    const struct net_spec *spec;
    unsigned levels;
    struct net_ways ways;
    bly_filter **filters[LEVELS_MOST + 1]; /* of the 4^level squares */
    uint32_t *seen, *path;
    uint32_t stamp;
    uint64_t asked, false_maybe, forwards, false_forwards;
};

/* The square of a node at a level, row by row. */
static uint32_t square_of(const struct graph *g, uint32_t node, unsigned level)
{
    const uint32_t side = 1u << level;
    uint32_t x = (uint32_t)(g->nodes[node].x * side);
    uint32_t y = (uint32_t)(g->nodes[node].y * side);
    x = x < side ? x : side - 1;
    y = y < side ? y : side - 1;
    return y * side + x;
}

/* Where a packet is sent: any node of a square, or one node. */
struct goal {
    unsigned level;
    uint32_t square;
    uint32_t node; /* GRAPH_FAR: any */
    double x, y;
};

static struct goal goal_square(unsigned level, uint32_t square)
{
    const uint32_t side = 1u << level;
    return (struct goal){ .level = level,
                          .square = square,
                          .node = GRAPH_FAR,
                          .x = (square % side + 0.5) / side,
                          .y = (square / side + 0.5) / side };
}

static bool goal_reached(const struct graph *g, const struct goal *to,
                         uint32_t at)
{
    return to->node == GRAPH_FAR ? square_of(g, at, to->level) == to->square
                                 : at == to->node;
}

static bly_status squares_fill(struct squares_run *run)
{
    const struct graph *const g = run->spec->g;
    bly_status st = BLY_OK;
    for (unsigned l = 1; !st && l <= run->levels; l++) {
        const bly_spec like = { .kind = "classic",
                                .items = 2 + g->n / (1u << 2 * l),
                                .fpr = SQUARES_RATE,
                                .seed = run->spec->seed + l };
        for (uint32_t i = 0; !st && i < 1u << 2 * l; i++)
            st = bly_new(&like, &run->filters[l][i]);
        for (uint32_t i = 0; !st && i < g->n; i++)
            st = bly_add(run->filters[l][square_of(g, i, l)], g->nodes[i].name,
                         strlen(g->nodes[i].name));
    }
    return st;
}

/* Towards the middle of a square, until a node inside it is reached; or to a
 * node. After `most` hops, or where there is no way, the packet is back where
 * it began. */
static bool squares_go(struct squares_run *run, uint32_t *at,
                       const struct goal goal, uint32_t most, uint32_t *hops,
                       struct net_result *out)
{
    const struct graph *const g = run->spec->g;
    uint32_t n = 0, made = 0;
    run->stamp++;
    run->path[n++] = *at;
    run->seen[*at] = run->stamp;
    while (!goal_reached(g, &goal, *at)) {
        uint32_t best = GRAPH_FAR;
        double least = INFINITY;
        for (uint32_t e = g->first[*at]; made < most && e < g->first[*at + 1];
             e++) {
            const uint32_t to = g->edges[e].to;
            const double d =
                hypot(g->nodes[to].x - goal.x, g->nodes[to].y - goal.y);
            if (run->seen[to] != run->stamp && d < least) {
                least = d;
                best = to;
            }
        }
        if (best != GRAPH_FAR) {
            run->seen[best] = run->stamp;
            run->path[n++] = best;
        } else if (n > 1) {
            n--;
        } else {
            return false;
        }
        *at = run->path[n - 1];
        made++;
        ++*hops;
        if (out->nroute < NET_ROUTE)
            out->route[out->nroute++] = *at;
    }
    return true;
}

/* Look for a name from here, in squares of `level` and smaller ones, with at
 * most so many hops to each of them. */
static bool squares_find(struct squares_run *run, uint32_t *at, uint32_t to,
                         unsigned level, uint32_t most, uint32_t *hops,
                         struct net_result *out)
{
    const struct graph *const g = run->spec->g;
    const char *const name = g->nodes[to].name;
    /* Who is in its own smallest square, a node knows itself. */
    if (square_of(g, *at, run->levels) == square_of(g, to, run->levels)) {
        const struct goal node = { .node = to,
                                   .x = g->nodes[to].x,
                                   .y = g->nodes[to].y };
        return squares_go(run, at, node, most, hops, out);
    }
    for (unsigned l = run->levels; l >= level && l >= 1; l--) {
        const uint32_t own = square_of(g, *at, l), side = 1u << l;
        for (uint32_t k = 0; k < 4; k++) {
            /* The four of the parent: both rows, both columns. */
            const uint32_t x = (own % side & ~1u) + k % 2;
            const uint32_t y = (own / side & ~1u) + k / 2;
            const uint32_t other = y * side + x;
            if (other == own)
                continue;
            const bool there = square_of(g, to, l) == other;
            run->asked += !there;
            if (!bly_has(run->filters[l][other], name, strlen(name)))
                continue;
            run->false_maybe += !there;
            run->forwards++;
            run->false_forwards += !there;
            if (!squares_go(run, at, goal_square(l, other), most, hops, out))
                continue;
            if (squares_find(run, at, to, l + 1, most, hops, out))
                return true;
            /* It was wrong. Those left are beside the square that it began
             * in, which the node that has it now does not know: back. */
            if (!squares_go(run, at, goal_square(l, own), UINT32_MAX, hops,
                            out))
                return false;
        }
    }
    return false;
}

static unsigned levels_for(uint32_t n)
{
    unsigned levels = 1;
    while (levels < LEVELS_MOST && n >> 2 * (levels + 1) >= 4)
        levels++;
    return levels;
}

bool net_squares(const struct net_spec *spec, struct net_result *out)
{
    const struct graph *const g = spec->g;
    struct squares_run run = { .spec = spec, .levels = levels_for(g->n) };
    uint64_t random = spec->seed, turns = 0, tried = 0, found = 0;
    double hops_sum = 0, stretch = 0, bytes = 0;
    bool ok = net_ways_new(&run.ways, g);
    run.seen = calloc(g->n, sizeof *run.seen);
    run.path = malloc((size_t)g->n * sizeof *run.path);
    ok = ok && ((run.seen && run.path) || refuse("no memory"));
    for (unsigned l = 1; ok && l <= run.levels; l++) {
        run.filters[l] = calloc((size_t)1 << 2 * l, sizeof(*run.filters[l]));
        ok = run.filters[l] || refuse("no memory");
    }
    if (ok && squares_fill(&run))
        ok = refuse_library();
    while (ok && tried < spec->tries) {
        const uint32_t from = graph_below(&random, g->n);
        const uint32_t to = graph_below(&random, g->n);
        if (++turns > 100 * spec->tries + 1000)
            ok = refuse("hardly any node of this network can reach another");
        graph_hops(g, from, run.ways.hops, run.ways.before, run.ways.queue);
        const uint32_t least = run.ways.hops[to];
        if (!ok || from == to || least == GRAPH_FAR)
            continue;
        tried++;
        uint32_t at = from, hops = 0;
        out->nroute = 0;
        out->route[out->nroute++] = from;
        /* A wrong square may be out of reach, and a packet would go
         * everywhere before it knows: all candidates in a few hops first. */
        bool there = false;
        for (uint32_t most = 64; !there && most <= 16 * 4096u; most *= 16)
            there = squares_find(&run, &at, to, 1, most, &hops, out);
        if (!there)
            continue;
        found++;
        hops_sum += hops;
        stretch += (double)hops / least;
    }
    for (unsigned l = 1; ok && l <= run.levels; l++) {
        bly_stats stats;
        bly_peek(run.filters[l][0], &stats);
        bytes += 3 * (double)stats.bytes;
    }
    out->success = (double)found / (double)spec->tries;
    out->hops = hops_sum / (double)found;
    out->stretch = stretch / (double)found;
    out->messages = (uint64_t)hops_sum;
    out->state = bytes;
    net_value(out, "levels", "of squares", run.levels, NAN);
    net_value(out, "false_maybe",
              "filters that said maybe, of those asked in "
              "vain",
              (double)run.false_maybe / (double)run.asked, SQUARES_RATE);
    net_value(out, "false_forwards", "of all towards a square, to a wrong one",
              (double)run.false_forwards / (double)run.forwards, NAN);
    for (unsigned l = 1; l <= run.levels; l++) {
        for (uint32_t i = 0; run.filters[l] && i < 1u << 2 * l; i++)
            bly_free(run.filters[l][i]);
        free(run.filters[l]);
    }
    free(run.seen);
    free(run.path);
    net_ways_free(&run.ways);
    return ok;
}
