/*
 * queue_verb.c - bloomery traffic queue: who does not yield is held back
 */
#include "apps/traffic/queue_verb.h"

#include <stdio.h>

#include "apps/traffic/sfb_sim.h"
#include "report/out.h"
#include "report/say.h"

#define DEFAULT_LINK 45e6
#define DEFAULT_LIMIT 500
#define DEFAULT_LEVELS 8
#define DEFAULT_BINS 64
#define DEFAULT_TARGET 10
#define DEFAULT_FLOWS 100
#define SIMULATED_SECONDS 60
#define PACKET 1000
#define ROUND_TRIP 0.1

void queue_summary_print(const struct traffic_args *args,
                         struct queue_summary *sum, const struct sfb_sum *of)
{
    sum->taken = of->taken;
    sum->early = of->early;
    sum->penalty = of->penalty;
    sum->full = of->full + of->bin;
    sum->rehashes = of->rehashes;
    if (!quiet)
        report(args->json ? stdout : stderr, args->json, queue_fields, sum,
               "{packets packet/s}; {taken} sent, {early} dropped early, "
               "{penalty} of flows that do not yield, {full} for want of room"
               "[; {?rehashes}{rehashes time/s} other bins took over]"
               "[; {?refused}{refused} not taken by the interface]"
               "[; {?other}{other} no IP][; {?cut}{cut} cut too short]"
               "[; {?bad}{bad} bad][; {?backwards}{backwards} out of order]"
               "\n");
}

bool queue_options(const struct traffic_args *a, struct sfb_spec *spec,
                   double *link)
{
    *link = a->queue.rate > 0 ? a->queue.rate : DEFAULT_LINK;
    *spec =
        sfb_defaults(a->queue.limit ? (unsigned)a->queue.limit : DEFAULT_LIMIT);
    spec->levels = a->queue.levels ? (unsigned)a->queue.levels : DEFAULT_LEVELS;
    spec->bins = a->queue.bins ? (unsigned)a->queue.bins : DEFAULT_BINS;
    spec->target = a->queue.target ? (unsigned)a->queue.target : DEFAULT_TARGET;
    spec->most = spec->target + (spec->target + 3) / 4;
    spec->seed = a->seed;
    if (was_given(&a->queue.rehash)) {
        spec->rehash = a->queue.rehash;
        spec->warmup = spec->rehash / 10;
    }
    if (was_given(&a->queue.warmup))
        spec->warmup = a->queue.warmup;
    if (spec->warmup > spec->rehash)
        return refuse(
            "--warmup %g: bins cannot learn for longer than they wait "
            "for their turn; at most --rehash, which is %g",
            spec->warmup, spec->rehash);
    return true;
}

static void queue_row(const char *name, const struct link_result *from,
                      struct queue_row *to)
{
    *to = (struct queue_row){ .queue = name,
                              .use = from->use,
                              .fair = from->fair,
                              .constant = from->constant,
                              .times = from->constant / from->fair,
                              .yielding = from->yielding,
                              .constant_lost = from->constant_lost,
                              .yielding_lost = from->yielding_lost };
}

static int queue_simulate(const struct traffic_args *a)
{
    struct sfb_spec queue;
    double link;
    if (!queue_options(a, &queue, &link))
        return TROUBLE;
    struct link_spec spec = {
        .yielding = a->nflows ? (unsigned)a->nflows : DEFAULT_FLOWS,
        .constant = 1,
        .link = link,
        .packet = PACKET,
        .round_trip = ROUND_TRIP,
        .seconds = SIMULATED_SECONDS,
        .queue = queue.limit,
        .seed = a->seed + 1,
    };
    spec.constant_rate = 4 * link / (spec.yielding + 1);
    if (a->queue.sender > 0)
        spec.constant_rate = a->queue.sender;
    if (link * SIMULATED_SECONDS / (PACKET * 8) > 1e8)
        return fail("--rate: more than 10^8 packets in %d s; at most 13G",
                    SIMULATED_SECONDS);
    for (unsigned i = 0; i < 2; i++) {
        struct link_result result;
        struct queue_row row;
        spec.sfb = i ? &queue : NULL;
        if (!link_run(&spec, &result))
            return fail("out of memory");
        queue_row(i ? "sfb" : "drop-tail", &result, &row);
        report(stdout, a->json, queue_row_fields, &row,
               "{queue:-10} link {use}; the constant sender got {times:.2} of "
               "its fair share, lost {constant_lost}; the others lost "
               "{yielding_lost}\n");
    }
    return YES;
}

int queue_any(const struct traffic_args *args, const struct list *operands,
              queue_replay_fn *replay)
{
    const bool live = args->queue.tun || args->queue.out;
    if (operands->n > 1 || (live && operands->n))
        return fail("usage: bloomery traffic queue, which simulates, or with "
                    "one CAPTURE, or with --tun and --out");
    if (live && !(args->nflows || args->queue.sender > 0 || args->inner))
        return queue_live(args);
    if (args->queue.tail)
        return fail("--tail is for a device; use it with --tun and --out");
    if (operands->n == 0 && !live)
        return queue_simulate(args);
    if (args->nflows || args->queue.sender > 0 || live)
        return fail("--flows and --sender are for a simulation%s",
                    live ? ", and --inner for a capture; leave them out"
                         : "; leave out the capture");
    return replay ? replay(args, operands->at[0])
                  : fail("this bloomery was built without libpcap "
                         "(libpcap-dev) and cannot read captures");
}
