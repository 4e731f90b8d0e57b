/*
 * exp_tree.c - services in a hierarchy of servers, found by filters of subtrees
 *
 * Servers form a tree, of which node 0 is the root. Each has services, and a
 * service is a set of tags ("type=printer", "floor=3"): all sets of up to three
 * of its tags are keys, so that a question for some tags is one look. A server
 * has a filter of its own keys and one for each child: all that lies below it.
 *
 * A question goes to the own filter and to every child that says maybe; then
 * up, where the same happens but for the child that it came from, until the
 * root has been asked. So nothing that is there is missed, and a step down that
 * finds nothing was wasted (after Czerwinski and others, 1999).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery.h>

#include "workbench/sim/experiment.h"
#include "apps/net/seek.h"
#include "report/say.h"

#define SERVICES 50 /* of a server */
#define TAGS 5      /* of a service; the first is its own */
#define TAG_VALUES 40
#define SUBSETS 25 /* of one, two or three of five tags */

struct tree_run {
    const struct net_spec *spec;
    struct net_ways ways;
    bly_filter **own, **below; /* of each server; below: with its own keys */
    uint64_t (*tags)[TAGS];    /* SERVICES for each server */
    uint64_t visited, wasted, answers;
    uint32_t *children; /* that may have what is asked for */
};

/* The key of a set of tags, in ascending order. */
static uint64_t tags_key(const uint64_t *tags, unsigned set)
{
    const bly_hasher h = { .id = BLY_HASH_XXH3 };
    uint64_t chosen[TAGS];
    unsigned n = 0;
    for (unsigned i = 0; i < TAGS; i++)
        if (set >> i & 1)
            chosen[n++] = tags[i];
    return bly_hash(&h, chosen, n * sizeof *chosen);
}

static unsigned tags_in(unsigned set)
{
    return (unsigned)__builtin_popcount(set);
}

/* Whether a service has all tags of a set of another. */
static bool tags_match(const uint64_t *has, const uint64_t *wanted,
                       unsigned set)
{
    for (unsigned i = 0; i < TAGS; i++)
        if ((set >> i & 1) && has[i] != wanted[i])
            return false;
    return true;
}

static bool server_has(const struct tree_run *run, uint32_t server,
                       const uint64_t *wanted, unsigned set)
{
    for (unsigned i = 0; i < SERVICES; i++)
        if (tags_match(run->tags[(size_t)server * SERVICES + i], wanted, set))
            return true;
    return false;
}

static uint64_t tree_keys(const struct tree_run *run, uint32_t server,
                          uint64_t *hashes)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < SERVICES; i++)
        for (unsigned set = 1; set < 1u << TAGS; set++)
            if (tags_in(set) <= 3)
                hashes[n++] =
                    tags_key(run->tags[(size_t)server * SERVICES + i], set);
    return n;
}

/* Filters of all servers. Those of subtrees have one size, that of the root's
 * load, so that they can be merged upwards. */
static bly_status tree_fill(struct tree_run *run)
{
    const struct graph *const g = run->spec->g;
    uint64_t hashes[SERVICES * SUBSETS];
    const bly_spec small = { .kind = "classic",
                             .items = SERVICES * SUBSETS,
                             .fpr = 0.01 };
    const bly_spec large = { .kind = "classic",
                             .items = (uint64_t)g->n * SERVICES * SUBSETS,
                             .fpr = 0.01 };
    bly_status st = BLY_OK;
    for (uint32_t i = 0; !st && i < g->n; i++) {
        const uint64_t n = tree_keys(run, i, hashes);
        st = bly_new(&small, &run->own[i]);
        if (!st)
            st = bly_add_hashes(run->own[i], hashes, (size_t)n, NULL, NULL);
        if (!st)
            st = bly_new(&large, &run->below[i]);
        if (!st)
            st = bly_add_hashes(run->below[i], hashes, (size_t)n, NULL, NULL);
    }
    /* From the farthest servers up: the queue has them in that order. */
    for (uint32_t i = g->n; !st && i-- > 1;) {
        const uint32_t at = run->ways.queue[i];
        st = bly_merge(run->below[run->ways.before[at]], run->below[at]);
    }
    return st;
}

/* The children of a server that may have a key. */
static size_t tree_children(const struct tree_run *run, uint32_t at,
                            uint64_t key, uint32_t *out)
{
    const struct graph *const g = run->spec->g;
    size_t n = 0;
    for (uint32_t e = g->first[at]; e < g->first[at + 1]; e++) {
        const uint32_t child = g->edges[e].to;
        if (run->ways.before[child] == at &&
            bly_has_hash(run->below[child], key))
            out[n++] = child;
    }
    return n;
}

static bool tree_ask(struct tree_run *run, uint32_t from,
                     const uint64_t *wanted, unsigned set)
{
    const uint64_t key = tags_key(wanted, set);
    struct climb climb;
    uint32_t at;
    bool ok = climb_start(&climb, from, run->spec->g->n);
    while (ok && climb_next(&climb, &at)) {
        const bool has =
            bly_has_hash(run->own[at], key) && server_has(run, at, wanted, set);
        run->visited++;
        run->answers += has;
        climb_heard(&climb, run->children,
                    tree_children(run, at, key, run->children),
                    run->ways.before[at], has);
    }
    run->wasted += climb_wasted(&climb);
    ok = ok && !climb.cut;
    climb_free(&climb);
    return ok || refuse("no memory for a question");
}

static bool tree_new(struct tree_run *run, uint64_t *random)
{
    const struct graph *const g = run->spec->g;
    if (g->nedges != 2 * (g->n - 1) || !graph_whole(g))
        return refuse(
            "a hierarchy is a tree; use --topology tree:DEGREE:DEPTH");
    if (g->n > 20000)
        return refuse("at most 20000 servers: each has a filter of the root's "
                      "size");
    run->own = calloc(g->n, sizeof *run->own);
    run->below = calloc(g->n, sizeof *run->below);
    run->tags = malloc((size_t)g->n * SERVICES * sizeof *run->tags);
    run->children = malloc((size_t)g->n * sizeof *run->children);
    if (!run->own || !run->below || !run->tags || !run->children)
        return refuse("no memory for the services of %u servers", g->n);
    for (uint64_t i = 0; i < (uint64_t)g->n * SERVICES; i++) {
        run->tags[i][0] = i;
        for (unsigned k = 1; k < TAGS; k++)
            run->tags[i][k] =
                ((uint64_t)k << 56) + graph_below(random, TAG_VALUES);
    }
    graph_hops(g, 0, run->ways.hops, run->ways.before, run->ways.queue);
    return !tree_fill(run) || refuse_library();
}

static void tree_free(struct tree_run *run)
{
    for (uint32_t i = 0; run->own && run->below && i < run->spec->g->n; i++) {
        bly_free(run->own[i]);
        bly_free(run->below[i]);
    }
    free(run->own);
    free(run->below);
    free(run->tags);
    free(run->children);
    net_ways_free(&run->ways);
}

bool net_tree(const struct net_spec *spec, struct net_result *out)
{
    struct tree_run run = { .spec = spec };
    const struct graph *const g = spec->g;
    uint64_t random = spec->seed, found = 0;
    bool ok = net_ways_new(&run.ways, g) && tree_new(&run, &random);
    for (uint64_t i = 0; ok && i < spec->tries; i++) {
        const uint32_t from = graph_below(&random, g->n);
        const uint32_t where = graph_below(&random, g->n);
        const uint64_t *const wanted =
            run.tags[(size_t)where * SERVICES + graph_below(&random, SERVICES)];
        unsigned set;
        do
            set = 1 + graph_below(&random, (1u << TAGS) - 1);
        while (tags_in(set) > 3);
        const uint64_t before = run.answers;
        ok = tree_ask(&run, from, wanted, set);
        /* All who have it, by looking at every one. */
        uint64_t have = 0;
        for (uint32_t k = 0; k < g->n; k++)
            have += server_has(&run, k, wanted, set);
        found += have == run.answers - before;
    }
    const double tries = (double)spec->tries;
    bly_stats stats = { 0 };
    if (ok)
        bly_peek(run.below[0], &stats);
    out->success = (double)found / tries;
    out->hops = (double)run.visited / tries;
    out->stretch = NAN;
    out->messages = run.visited;
    out->state = (double)stats.bytes * (double)(g->n - 1) / g->n;
    net_value(out, "visited", "servers that a question visits", out->hops, NAN);
    net_value(out, "wasted", "steps down in vain, for each that is visited",
              (double)run.wasted / (double)run.visited, NAN);
    net_value(out, "answers", "servers that have what is asked for",
              (double)run.answers / tries, NAN);
    tree_free(&run);
    return ok;
}
