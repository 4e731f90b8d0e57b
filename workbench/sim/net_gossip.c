/*
 * net_gossip.c - the experiment of gossiping peers, as a result of net sim
 */
#include "workbench/sim/net_gossip.h"

#include <math.h>
#include <stdio.h>

#include "report/say.h"
#include "workbench/plot.h"

static bool draw(const struct gossip_sim_result *g, const char *path)
{
    struct plot_point points[GOSSIP_CURVE];
    size_t n = 0;
    while (n < GOSSIP_CURVE && (n < 2 || g->curve[n - 1] < 1 - 1e-9)) {
        points[n] = (struct plot_point){ .x = (double)n, .y = g->curve[n] };
        n++;
    }
    char title[80];
    snprintf(title, sizeof title, "A change spreads among %u peers", g->peers);
    const struct plot_series s = { .name = "peers that have it",
                                   .points = points,
                                   .npoints = n };
    const struct plot p = {
        .title = title,
        .x = { .label = "intervals" },
        .y = { .label = "share of the peers", .format = PLOT_PERCENT },
        .series = &s,
        .nseries = 1,
    };
    return plot_save(&p, path) || refuse("%s", plot_why());
}

bool net_gossip(const struct gossip_sim_spec *spec, const char *plot,
                struct net_result *out)
{
    struct gossip_sim_result g;
    if (!gossip_sim(spec, &g))
        return false;
    *out = (struct net_result){ .experiment = "gossip",
                                .nodes = g.peers,
                                .tries = spec->queries,
                                .success = g.overlap,
                                .hops = NAN,
                                .stretch = NAN,
                                .messages = g.messages,
                                .state = g.state };
    net_value(out, "documents", "of all peers", g.documents, NAN);
    net_value(out, "filter", "bytes of a peer's words", g.summary, NAN);
    net_value(out, "change", "bytes of a document's words more", g.delta, NAN);
    net_value(out, "spread", "intervals until all peers have a change",
              g.spread, NAN);
    net_value(out, "spread_most", "of the slowest change", g.spread_most, NAN);
    net_value(out, "missed", "changes that did not reach all", g.missed, 0);
    net_value(out, "join", "intervals until a new peer knows all", g.join, NAN);
    net_value(out, "idle", "bytes per peer and minute, nothing new", g.idle,
              NAN);
    net_value(out, "busy", "the same, a change per second", g.busy, NAN);
    net_value(out, "overlap", "of the best with those of one index of all",
              g.overlap, NAN);
    net_value(out, "central", "the same, weights of words by documents",
              g.central, NAN);
    net_value(out, "asked", "peers that a search asks", g.asked, NAN);
    return !plot || draw(&g, plot);
}
