/*
 * figure_queue.c - one sender that does not yield, among those that do
 */
#include <math.h>

#include "apps/traffic/sfb_sim.h"
#include "workbench/figure.h"

#define SFB_LINK 45e6

static void sfb_pair(struct figure_run *run, unsigned yielding, double rate,
                     struct link_result *tail, struct link_result *sfb)
{
    struct sfb_spec queue = sfb_defaults(500);
    struct link_spec spec = { .yielding = yielding,
                              .constant = 1,
                              .constant_rate = rate,
                              .link = SFB_LINK,
                              .packet = 1000,
                              .round_trip = 0.1,
                              .seconds = 60,
                              .queue = 500,
                              .seed = run->seed };
    queue.bins = 64;
    queue.target = 10;
    queue.most = 13;
    queue.seed = run->seed;
    run->broken |= !link_run(&spec, tail);
    spec.sfb = &queue;
    run->broken |= !link_run(&spec, sfb);
}

static void sfb_run(struct figure_run *run)
{
    run->x = AXIS(.label = "what it sends, in fair shares", .scale = PLOT_LOG);
    run->y = AXIS(.label = "what it gets, in fair shares", .scale = PLOT_LOG);
    struct figure_series *const tail = figure_series(run, "drop-tail");
    struct figure_series *const sfb = figure_series(run, "sfb");
    struct figure_series *const use = figure_series(run, "link use, sfb");
    use->unseen = true;
    for (unsigned times = 1; times <= 16; times *= 2) {
        struct link_result a = { 0 }, b = { 0 };
        sfb_pair(run, 100, times * SFB_LINK / 101, &a, &b);
        figure_point(run, tail, times, times, a.constant / a.fair, 0.9 * times,
                     1.1 * times);
        figure_point(run, sfb, times, NAN, b.constant / b.fair, 0, 2);
        figure_point(run, use, times, NAN, b.use, 0.95, 1.01);
    }
    struct link_result a = { 0 }, b = { 0 };
    sfb_pair(run, 400, 2e6, &a, &b);
    const double times = 2e6 / a.fair;
    figure_point(run, tail, times, times, a.constant / a.fair, 0.85 * times,
                 1.1 * times);
    figure_point(run, sfb, times, NAN, b.constant / b.fair, 0, 2);
    figure_point(run, use, times, NAN, b.use, 0.95, 1.01);
    figure_note(run,
                "At 17.8: 400 sources that yield and one of 2 Mb/s, which "
                "loses %.0f %% of its packets and the others %.0f %%.",
                100 * b.constant_lost, 100 * b.yielding_lost);
}

const struct figure figure_sfb = {
    .name = "sfb",
    .title = "A sender that does not yield, among those that do",
    .source = "Feng, Kandlur, Saha, Shin: Stochastic Fair Blue, 2001.",
    .about = "100 sources halve their window when they lose a packet, and one "
             "sends at a constant rate; they share a link of 45 Mb/s behind a "
             "queue of 500 packets. Behind drop-tail it gets what it sends "
             "(dashed). Stochastic Fair Blue with 8 levels of 64 bins holds it "
             "below twice its fair share, and the link stays in use.",
    .run = sfb_run,
};
