/*
 * figure_spie.c - back along a packet's way, by the tables of routers
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "apps/traffic/spie.h"
#include "base/random.h"
#include "workbench/figure.h"

#define SPIE_HOPS 32
#define SPIE_DEGREE 4 /* neighbours of a router off the way */
#define SPIE_DEPTH 3  /* how far trees go off the way: P^4 is left out */
#define SPIE_PACKETS 256
#define SPIE_TRACES 100

struct spie_world {
    struct spie_net net;
    bly_filter **filters;
    size_t nfilters;
};

static size_t world_router(struct spie_world *w)
{
    char name[32];
    snprintf(name, sizeof name, "r%zu", w->net.nnames);
    /* Names are new each time, so none has to be looked up. */
    return spie_net_router(&w->net, name, true);
}

static void world_grow(struct spie_world *w, size_t from, unsigned depth)
{
    for (unsigned i = 0; depth && i < SPIE_DEGREE; i++) {
        const size_t next = world_router(w);
        spie_net_link(&w->net, from, next);
        world_grow(w, next, depth - 1);
    }
}

static struct spie_packet spie_numbered(uint64_t number)
{
    struct spie_packet p = { .len = 28 };
    for (unsigned i = 0; i < 8; i++)
        p.at[20 + i] = (unsigned char)(number >> 8 * i);
    return p;
}

/* Every router has seen other packets; those on the way all that are traced. */
static bool world_fill(struct spie_world *w, uint64_t *seed, double rate)
{
    uint64_t hashes[SPIE_PACKETS];
    const double bits = SPIE_PACKETS * -log(rate) / (log(2) * log(2));
    w->filters = calloc(w->net.nnames, sizeof *w->filters);
    for (size_t r = 0; w->filters && r < w->net.nnames; r++) {
        const bly_hasher h = { .id = BLY_HASH_XXH3, .seed = r };
        for (unsigned i = 0; i < SPIE_PACKETS; i++) {
            const struct spie_packet p =
                spie_numbered(r < SPIE_HOPS && i < SPIE_TRACES
                                  ? i
                                  : random_next(seed) | 1ull << 63);
            hashes[i] = bly_hash(&h, p.at, p.len);
        }
        if (spie_table_make(r, hashes, SPIE_PACKETS, (uint64_t)ceil(bits),
                            &w->filters[r]))
            return false;
        w->nfilters++;
    }
    return w->filters != NULL;
}

static enum spie_answer world_ask(void *ctx, size_t router,
                                  const struct spie_packet *p,
                                  struct spie_packet *was,
                                  enum spie_change *change)
{
    const struct spie_world *const w = ctx;
    (void)was, (void)change;
    return bly_has(w->filters[router], p->at, p->len) ? SPIE_MAYBE : SPIE_NO;
}

struct spie_traced {
    double missed, extra; /* routers: of the way in all, and others per trace */
};

static struct spie_traced world_trace(struct spie_world *w)
{
    struct spie_traced t = { 0 };
    struct spie_step *const steps = malloc(w->net.nnames * sizeof *steps);
    for (uint64_t i = 0; steps && i < SPIE_TRACES; i++) {
        const struct spie_packet p = spie_numbered(i);
        const size_t n = spie_walk(&w->net, 0, &p, world_ask, w, steps);
        t.missed += SPIE_HOPS;
        for (size_t k = 0; k < n; k++)
            if (steps[k].answer == SPIE_MAYBE)
                *(steps[k].router < SPIE_HOPS ? &t.missed : &t.extra) +=
                    steps[k].router < SPIE_HOPS ? -1 : 1. / SPIE_TRACES;
    }
    if (!steps)
        t.missed = t.extra = NAN;
    free(steps);
    return t;
}

static void world_free(struct spie_world *w)
{
    for (size_t i = 0; i < w->nfilters; i++)
        bly_free(w->filters[i]);
    free(w->filters);
    spie_net_free(&w->net);
}

static void spie_way(struct spie_world *w)
{
    for (unsigned i = 0; i < SPIE_HOPS; i++) {
        const size_t r = world_router(w);
        if (r)
            spie_net_link(&w->net, r - 1, r);
    }
}

/* 70 routers: those on the way, and 38 that are neighbours of any four. */
static void world_small(struct spie_world *w, uint64_t *seed)
{
    spie_way(w);
    while (w->net.nnames < 70)
        world_router(w);
    for (size_t i = 0; i < 70 * SPIE_DEGREE / 2 - SPIE_HOPS; i++)
        spie_net_link(&w->net, random_next(seed) % 70,
                      SPIE_HOPS + random_next(seed) % (70 - SPIE_HOPS));
}

static void spie_run(struct figure_run *run)
{
    run->x = AXIS(.label = "P = neighbours x rate of a table");
    run->y = AXIS(.label = "routers that are not on the way");
    struct figure_series *const tree =
        figure_series(run, "neighbours in trees");
    struct figure_series *const small = figure_series(run, "70 routers");
    struct figure_series *const missed =
        figure_series(run, "routers of the way, missed");
    missed->unseen = true;
    uint64_t seed = run->seed;
    for (unsigned inverse = 32; inverse >= 8; inverse /= 2) {
        const double P = 1. / inverse * 2, rate = P / SPIE_DEGREE;
        const double expected = SPIE_HOPS * P / (1 - P);
        struct spie_world trees = { 0 }, few = { 0 };
        spie_way(&trees);
        for (unsigned i = 0; i < SPIE_HOPS; i++)
            world_grow(&trees, i, SPIE_DEPTH);
        world_small(&few, &seed);
        if (world_fill(&trees, &seed, rate) && world_fill(&few, &seed, rate)) {
            const struct spie_traced a = world_trace(&trees);
            const struct spie_traced b = world_trace(&few);
            figure_point(run, tree, P, expected, a.extra, expected - 1.5,
                         expected + 1.5);
            /* Each of 38 others is asked once, at most. */
            figure_point(run, small, P, NAN, b.extra, 0, 38 * rate * 1.5 + 0.2);
            figure_point(run, missed, P, 0, a.missed + b.missed, 0, 0);
        } else {
            run->broken = true;
        }
        world_free(&trees);
        world_free(&few);
    }
    figure_note(run,
                "A way of %d routers, %d traces. In a net of 70 routers "
                "fewer are asked than the formula supposes.",
                SPIE_HOPS, SPIE_TRACES);
}

const struct figure figure_spie = {
    .name = "spie",
    .title = "A packet traced back: routers that only seem to be on the way",
    .source = "Snoeren, Partridge, Sanchez, Jones, Tchakountio, Kent, Strayer: "
              "Hash-Based IP Traceback, 2001.",
    .about = "Every router on the way says yes, and so do others by mistake. "
             "If a table's rate is P divided by the number of neighbours, n "
             "routers on the way bring n P/(1-P) others (dashed): 4.6 for 32 "
             "routers and P = 1/8. The way itself is always found.",
    .run = spie_run,
};
