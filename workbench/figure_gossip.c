/*
 * figure_gossip.c - how news spread among peers, and whether searches find
 * what an index of all documents finds
 */
#include <math.h>

#include "workbench/sim/gossip_sim.h"
#include "workbench/figure.h"

static void net_gossip_run(struct figure_run *run)
{
    struct gossip_sim_result r;
    run->x = AXIS(.label = "intervals");
    run->y = AXIS(.label = "share of the peers, or of documents", .min = 0,
                  .max = 1.05);
    const uint32_t sizes[] = { 100, run->full ? 1000 : 300 };
    /* As published, 2 + N / 300 peers in vain end a search. */
    const struct gossip_sim_spec published = { .peers = 300,
                                               .documents = 3000,
                                               .seed = run->seed,
                                               .changes = 1,
                                               .queries = 50,
                                               .patience = 3 };
    for (unsigned i = 0; i < 2; i++) {
        const struct gossip_sim_spec spec = { .peers = sizes[i],
                                              .documents = 10 * sizes[i],
                                              .seed = run->seed,
                                              .changes = run->full ? 10 : 3,
                                              .queries = run->full ? 200 : 50 };
        struct figure_series *const s =
            figure_series(run, "%s peers have heard", i ? "many" : "100");
        if (!gossip_sim(&spec, &r)) {
            run->broken = true;
            return;
        }
        /* Who tells it doubles in each interval, at best; and all must have it
         * after 25. */
        const double least = log2(sizes[i]);
        for (unsigned k = 0; k <= 25; k++)
            figure_point(run, s, k, NAN, r.curve[k], k == 25 ? 1 : 0,
                         k == 0 ? 2.0 / sizes[i] : 1);
        run->broken |= r.missed || r.spread < least || r.spread_most >= 25;
        if (!i)
            continue;
        struct figure_series *const found =
            figure_series(run, "best 20 documents found");
        figure_point(run, found, 25, NAN, r.overlap, 0.9, 1);
        figure_note(
            run,
            "With %u peers a change reaches all in %.1f intervals, "
            "%.0f at most; a peer sends %.1f kB per minute when nothing "
            "changes and %.1f kB when one peer changes each second. A "
            "search asks %.0f peers and finds %.1f %% of the best 20 "
            "(%.1f %% if the exact ranking weighs words by documents).",
            sizes[i], r.spread, r.spread_most, r.idle / 1000, r.busy / 1000,
            r.asked, 100 * r.overlap, 100 * r.central);
    }
    if (!gossip_sim(&published, &r)) {
        run->broken = true;
        return;
    }
    figure_note(run,
                "The published rule for stopping finds %.0f %% with 300 peers "
                "and 3000 documents, and asks %.0f peers.",
                100 * r.overlap, r.asked);
}

const struct figure figure_net_gossip = {
    .name = "net-gossip",
    .title = "News among peers, and what searches find",
    .source = "Cuenca-Acuna, Peery, Martin and Nguyen 2003: PlanetP.",
    .about = "Each peer has documents, and tells others by rumours, and by "
             "comparing directories, which words they have. The same code runs "
             "over TCP (bloomery net peer). Messages take 20 to 200 ms, an "
             "interval is a second.",
    .run = net_gossip_run,
};
