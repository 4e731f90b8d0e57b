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

static bool rate_read(const char *name, const char *text, double *out)
{
    return (bly_parse_real(text, out) && *out >= 1000 && *out <= 1e12) ||
           !fail("%s '%s': not a rate from 1k to 1T bits per second", name,
                 text);
}

static bool seconds_read(const char *name, const char *text, double *out)
{
    return !text || (bly_parse_real(text, out) && *out >= 0 && *out <= 1e9) ||
           !fail("%s '%s': not a number of seconds", name, text);
}

bool queue_options(const struct traffic_args *a, struct sfb_spec *spec,
                   double *link)
{
    *link = DEFAULT_LINK;
    if (a->queue.levels > SFB_MOST_LEVELS || a->queue.bins == 1 ||
        a->queue.bins > SFB_MOST_BINS || a->queue.limit > 1000000 ||
        a->queue.target > 1000000)
        return !fail("--levels at most %d, --bins from 2 to %d, --limit and "
                     "--target at most 1000000",
                     SFB_MOST_LEVELS, SFB_MOST_BINS);
    *spec =
        sfb_defaults(a->queue.limit ? (unsigned)a->queue.limit : DEFAULT_LIMIT);
    spec->levels = a->queue.levels ? (unsigned)a->queue.levels : DEFAULT_LEVELS;
    spec->bins = a->queue.bins ? (unsigned)a->queue.bins : DEFAULT_BINS;
    spec->target = a->queue.target ? (unsigned)a->queue.target : DEFAULT_TARGET;
    spec->most = spec->target + (spec->target + 3) / 4;
    spec->seed = a->seed;
    if (!seconds_read("--rehash", a->queue.rehash, &spec->rehash) ||
        !seconds_read("--warmup", a->queue.warmup, &spec->warmup))
        return false;
    if (a->queue.rehash && !a->queue.warmup)
        spec->warmup = spec->rehash / 10;
    if (spec->warmup > spec->rehash)
        return !fail("--warmup %g: bins cannot learn for longer than they wait "
                     "for their turn; at most --rehash, which is %g",
                     spec->warmup, spec->rehash);
    return !a->queue.rate || rate_read("--rate", a->queue.rate, link);
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
        .yielding = a->nflows ? (unsigned)(a->nflows % 100000) : DEFAULT_FLOWS,
        .constant = 1,
        .link = link,
        .packet = PACKET,
        .round_trip = ROUND_TRIP,
        .seconds = SIMULATED_SECONDS,
        .queue = queue.limit,
        .seed = a->seed + 1,
    };
    spec.constant_rate = 4 * link / (spec.yielding + 1);
    if (a->nflows >= 100000)
        return fail("--flows %llu: at most 99999 in a simulation",
                    (unsigned long long)a->nflows);
    if (a->queue.sender &&
        !rate_read("--sender", a->queue.sender, &spec.constant_rate))
        return TROUBLE;
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
    if (live && !(args->nflows || args->queue.sender || args->inner))
        return queue_live(args);
    if (args->queue.tail)
        return fail("--tail is for a device; use it with --tun and --out");
    if (operands->n == 0 && !live)
        return queue_simulate(args);
    if (args->nflows || args->queue.sender || live)
        return fail("--flows and --sender are for a simulation%s",
                    live ? ", and --inner for a capture; leave them out"
                         : "; leave out the capture");
    return replay ? replay(args, operands->at[0])
                  : fail("this bloomery was built without libpcap "
                         "(libpcap-dev) and cannot read captures");
}
