/*
 * figure_net.c - what marks in packets find, and what they miss
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "workbench/sim/experiment.h"
#include "apps/net/marks.h"
#include "apps/net/sliced.h"
#include "base/random.h"
#include "workbench/figure.h"

/* ------------------------------------------------------------------- loops */

static void net_loop_run(struct figure_run *run)
{
    static const struct {
        unsigned m, k;
        double at[3]; /* published, for 8, 16 and 30 interfaces */
    } rows[] = {
        { 64, 2, { 0.1117, NAN, NAN } },
        { 64, 4, { 0.0345, NAN, NAN } },
        { 128, 4, { NAN, 0.0772, NAN } },
        { 256, 4, { NAN, 0.00720, NAN } },
        { 256, 8, { NAN, 0.000991, 0.0797 } },
    };
    static const unsigned interfaces[] = { 8, 16, 30 };
    const double tries = run->full ? 400000 : 20000;
    run->x = AXIS(.label = "interfaces on the way", .scale = PLOT_LOG);
    run->y = AXIS(.label = "packets dropped for nothing", .scale = PLOT_LOG,
                  .format = PLOT_PERCENT);
    double farthest = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct figure_series *const s =
            figure_series(run, "%u bits, %u per mark", rows[i].m, rows[i].k);
        for (unsigned d = 0; d < 3; d++) {
            const struct net_spec spec = { .bits = rows[i].m,
                                           .k = rows[i].k,
                                           .strikes = 1,
                                           .tries = (uint64_t)tries,
                                           .seed = run->seed + 100 * i + d };
            const double p =
                mark_false_loop(rows[i].m, rows[i].k, interfaces[d]);
            double measured = NAN;
            if (!net_false_drops(&spec, interfaces[d], &measured))
                run->broken = true;
            /* The formula is one for few bits that are set: see marks.h. */
            if (p < 0.15)
                figure_judge(run, s, interfaces[d], p, measured,
                             sqrt(p * (1 - p) / tries) + 0.01 * p);
            else
                figure_point(run, s, interfaces[d], p, measured, NAN, NAN);
            if (!isnan(rows[i].at[d]))
                farthest = fmax(farthest, fabs(measured / rows[i].at[d] - 1));
        }
    }
    figure_note(run, "The six published values are met within %.1f %%.",
                100 * farthest);
}

const struct figure figure_net_loop = {
    .name = "net-loop",
    .title = "Packets that are taken for going round in a circle",
    .source = "Whitaker and Wetherall 2002 (Icarus): marks of interfaces.",
    .about = "Every interface sets its bits in a packet, and drops one that "
             "has all of them already. On ways without a circle that is "
             "wrong, and depends on the bits. A real circle of length L is "
             "found after at most L more hops, where a hop limit lets a packet "
             "go round up to 64 times.",
    .run = net_loop_run,
};

/* ------------------------------------------------------------- the way back */

/* An experiment on a tree of depth 15; its values. */
static bool way_values(struct figure_run *run, struct net_spec spec,
                       const char *tree, struct net_result *out)
{
    struct graph g;
    memset(out, 0, sizeof *out);
    if (!graph_load(tree, run->seed, &g))
        run->broken = true;
    spec.g = &g;
    if (!run->broken && !net_way(&spec, out))
        run->broken = true;
    graph_free(&g);
    return !run->broken;
}

static double value_of(const struct net_result *r, const char *name)
{
    for (size_t i = 0; i < r->nvalues; i++)
        if (strcmp(r->values[i].name, name) == 0)
            return r->values[i].value;
    return NAN;
}

static void net_way_run(struct figure_run *run)
{
    static const double farthest[] = { 0.90, 0.66 };
    const uint64_t tries = run->full ? 20000 : 2000;
    const double sd = 0.5 / sqrt((double)tries);
    run->x = AXIS(.label = "bits that a mark sets, and as many that it clears");
    run->y = AXIS(.label = "share", .min = 0, .max = 1);
    struct figure_series *const zeros =
        figure_series(run, "sender recognised, began with zeros");
    struct figure_series *const ones = figure_series(run, "began with ones");
    struct figure_series *const others =
        figure_series(run, "wrong routers per trace, more than with zeros");
    struct net_result a, b;
    for (unsigned k = 1; k <= 2 && !run->broken; k++) {
        struct net_spec spec = {
            .tries = tries, .seed = run->seed, .bits = 256, .k = k, .k0 = k
        };
        if (!way_values(run, spec, "tree:2:14", &a))
            return;
        spec.start = NET_ONES;
        if (!way_values(run, spec, "tree:2:14", &b))
            return;
        const double found = farthest[k - 1];
        figure_point(run, zeros, k, found, value_of(&a, "farthest"),
                     found - 0.02 - 4 * sd, found + 0.02 + 4 * sd);
        figure_point(run, ones, k, found, value_of(&b, "farthest"),
                     found - 0.02 - 4 * sd, found + 0.02 + 4 * sd);
        figure_point(run, others, k, 0,
                     value_of(&b, "others") - value_of(&a, "others"), -0.6,
                     0.6);
    }
    struct net_spec plain = {
        .tries = 20, .seed = run->seed, .bits = 256, .k = 4, .start = NET_ONES
    };
    if (way_values(run, plain, "tree:2:14", &b))
        figure_note(run,
                    "In a plain Bloom filter of ones every router matches: "
                    "%.0f of %llu that are not on the way.",
                    value_of(&b, "others"), (1ull << 15) - 1 - 15);
}

const struct figure figure_net_way = {
    .name = "net-way",
    .title = "The sender of a packet, found by the marks in it",
    .source = "Laufer, Velloso and Duarte 2011: 256 bits, 14 routers behind "
              "the sender's.",
    .about = "Routers of a tree mark a packet with bits that they set and bits "
             "that they clear; the victim asks its neighbours, these ask "
             "theirs. The farthest mark is the one that was most often written "
             "over. A sender who begins with all bits set gains nothing.",
    .run = net_way_run,
};

/* ---------------------------------------------------------------- multicast */

#define CAST_FACES 64

/* Superfluous copies per packet of `groups` groups, each on `on` of the
 * interfaces; and whether all tables side by side answer as each alone does. */
static double cast_copies(struct figure_run *run, uint64_t groups, unsigned on,
                          double bits, double *expected, bool *same)
{
    const double each = (double)groups * on / CAST_FACES;
    struct sliced s, one;
    uint64_t random = run->seed, wrong = 0;
    uint64_t *const wanted = calloc(groups, sizeof *wanted);
    if (!wanted || !sliced_new(&s, (uint64_t)ceil(each), bits) ||
        !sliced_new(&one, (uint64_t)ceil(each), bits)) {
        run->broken = true;
        free(wanted);
        return NAN;
    }
    for (uint64_t i = 0; i < groups; i++) {
        const uint64_t hash = random_next(&random);
        for (unsigned left = on; left;) {
            const unsigned face = (unsigned)(random_next(&random) % CAST_FACES);
            if (wanted[i] >> face & 1)
                continue;
            wanted[i] |= UINT64_C(1) << face;
            sliced_join(&s, hash, face);
            if (face == 7)
                sliced_join(&one, hash, 0);
            left--;
        }
    }
    random = run->seed;
    *same = true;
    for (uint64_t i = 0; i < groups; i++) {
        const uint64_t hash = random_next(&random);
        for (uint64_t left = wanted[i]; left;) {
            const unsigned face = (unsigned)(random_next(&random) % CAST_FACES);
            left &= ~(UINT64_C(1) << face);
        }
        const uint64_t faces = sliced_faces(&s, hash);
        *same &= (faces >> 7 & 1) == (sliced_faces(&one, hash) & 1) &&
                 !(wanted[i] & ~faces);
        wrong += (uint64_t)__builtin_popcountll(faces & ~wanted[i]);
    }
    *expected = (CAST_FACES - on) * sliced_rate(&s, each);
    sliced_free(&s);
    sliced_free(&one);
    free(wanted);
    return (double)wrong / (double)groups;
}

static void net_multicast_run(struct figure_run *run)
{
    const uint64_t groups = run->full ? 100000 : 10000;
    run->x = AXIS(.label = "bits per group and interface");
    run->y = AXIS(.label = "superfluous copies per packet", .scale = PLOT_LOG);
    struct figure_series *const s = figure_series(run, "64 interfaces");
    bool same = true;
    for (unsigned bits = 4; bits <= 16; bits += 4) {
        double expected = NAN;
        bool now = false;
        const double copies =
            cast_copies(run, groups, 5, bits, &expected, &now);
        same &= now;
        /* Loads of interfaces differ a little, and copies come in numbers. */
        figure_judge(run, s, bits, expected, copies,
                     sqrt(expected / (double)groups) + 0.03 * expected);
    }
    run->broken |= !same;
    figure_note(run, "Each interface alone gives the same answer as all of "
                     "them side by side, and no member is missed.");
}

const struct figure figure_net_multicast = {
    .name = "net-multicast",
    .title = "Copies that nobody wanted, of packets to groups",
    .source = "Groenvall 2002: a filter of groups for each interface.",
    .about = "Groups on 5 of 64 interfaces each. The filters lie bit by bit "
             "side by side, so that a packet costs as many words as a key has "
             "bits, not as many as there are interfaces. With 16 bits one "
             "packet in 37 has a superfluous copy.",
    .run = net_multicast_run,
};

/* ---------------------------------------------------- finding things nearby */

/* An experiment on a network that is made, and how many nodes it has; false,
 * and run->broken, if not. */
static bool found_values(struct figure_run *run, const char *name,
                         const struct net_spec *like, struct net_result *out,
                         double *nodes)
{
    const struct experiment *const e = net_experiment(name);
    struct net_spec spec = *like;
    struct graph g;
    memset(out, 0, sizeof *out);
    spec.seed = run->seed;
    spec.tries = run->full ? 2000 : 200;
    if (!graph_load(e->topology, run->seed, &g))
        run->broken = true;
    spec.g = &g;
    if (!run->broken && !e->run(&spec, out))
        run->broken = true;
    *nodes = (double)g.n;
    graph_free(&g);
    return !run->broken;
}

static void net_near_run(struct figure_run *run)
{
    run->x = AXIS(.label = "hops that the filters tell of");
    struct figure_series *const found =
        figure_series(run, "share found nearby");
    struct figure_series *const stretch =
        figure_series(run, "hops over the least");
    struct net_result r;
    double nodes;
    for (unsigned depth = 3; depth <= 5; depth++) {
        const struct net_spec spec = { .depth = depth };
        if (!found_values(run, "near", &spec, &r, &nodes))
            return;
        figure_point(run, found, depth, NAN, r.success, 0.8, 1);
        figure_point(run, stretch, depth, NAN, r.stretch, 1, 1.5);
    }
    /* With filters that are too small, who is misled depends on the level. */
    const struct net_spec small = { .rate = 0.3 };
    if (!found_values(run, "near", &small, &r, &nodes))
        return;
    const double level[] = { value_of(&r, "level_1"), value_of(&r, "level_2"),
                             value_of(&r, "level_3") };
    run->broken |= !(level[0] < level[1] && level[1] < level[2]);
    figure_note(run,
                "With filters for a rate of 30 %%, links tell of what is "
                "nowhere as if it were 1, 2 and 3 hops away in %.2g, %.2g and "
                "%.2g of cases, and %.0f %% of things are still found.",
                level[0], level[1], level[2], 100 * r.success);
}

const struct figure figure_net_near = {
    .name = "net-near",
    .title = "Near copies, found by what neighbours tell",
    .source = "Rhea and Kubiatowicz 2002: attenuated filters.",
    .about = "1000 nodes with 4 links each, and things of which a copy is "
             "within reach of the filters. A question follows the least level "
             "that may have it, and gives up at its second dead end.",
    .tabled = true, /* a line from 1.0007 to 1 */
    .run = net_near_run,
};

static void net_finding_run(struct figure_run *run)
{
    run->x = AXIS(.label = "servers or nodes");
    struct figure_series *const services =
        figure_series(run, "services of a tree: share found");
    struct figure_series *const wasted = figure_series(
        run, "services of a tree: steps in vain, per server visited");
    struct figure_series *const names =
        figure_series(run, "names of squares: share found");
    struct figure_series *const stretch =
        figure_series(run, "names of squares: hops over the least");
    struct figure_series *const wrong =
        figure_series(run, "names of squares: share of filters that are wrong");
    const struct net_spec spec = { 0 };
    struct net_result r;
    double nodes;
    if (!found_values(run, "tree", &spec, &r, &nodes))
        return;
    figure_point(run, services, nodes, 1, r.success, 1, 1);
    figure_point(run, wasted, nodes, NAN, value_of(&r, "wasted"), 0, 0.1);
    if (!found_values(run, "squares", &spec, &r, &nodes))
        return;
    figure_point(run, names, nodes, 1, r.success, 1, 1);
    figure_point(run, stretch, nodes, NAN, r.stretch, 1, 1.5);
    figure_point(run, wrong, nodes, NAN, value_of(&r, "false_maybe"), 0, 0.012);
}

const struct figure figure_net_finding = {
    .name = "net-finding",
    .title = "Services in a hierarchy, and names in squares",
    .source = "Czerwinski and others 1999; Hsiao 2002.",
    .about = "341 servers with 50 services each know by filters what lies "
             "below them; 1024 nodes of a plane know by filters who is in the "
             "squares beside their own. Everything is found, and few steps "
             "are taken in vain.",
    .tabled = true, /* two cases, not a curve */
    .run = net_finding_run,
};
