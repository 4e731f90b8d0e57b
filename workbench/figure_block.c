/*
 * figure_block.c - traffic: counts of all flows, and block lists
 */
#include <math.h>
#include <string.h>
#include <time.h>

#include "apps/traffic/block_file.h"
#include "apps/traffic/tally.h"
#include "base/random.h"
#include "workbench/figure.h"

/* ------------------------------------------------------------------- counts */

/* Many small flows and a few large ones. */
static const struct {
    uint32_t packets, flows;
} flow_groups[] = {
    { 10, 1000 }, { 100, 500 }, { 1000, 100 }, { 10000, 20 }, { 100000, 5 },
};
#define NGROUPS (sizeof flow_groups / sizeof flow_groups[0])
#define COUNT_ERROR 0.001
#define COUNT_BYTES 500

static uint64_t flow_hash(const struct tally *t, size_t group, uint32_t flow)
{
    const uint64_t key = (uint64_t)group << 32 | flow;
    return bly_hash(&t->hasher, &key, sizeof key);
}

static bly_status flows_count(struct tally *t)
{
    bly_status st = BLY_OK;
    for (size_t g = 0; g < NGROUPS; g++)
        for (uint32_t f = 0; f < flow_groups[g].flows; f++) {
            const uint64_t hash = flow_hash(t, g, f);
            for (uint32_t i = 0; i < flow_groups[g].packets && !st; i++)
                st = tally_packet(t, hash, COUNT_BYTES);
        }
    return st ? st : tally_flush(t);
}

/* What counts of a group are off by on average, as a share of them. */
static double group_error(const struct tally *t, size_t g)
{
    const double truth = flow_groups[g].packets;
    double sum = 0;
    for (uint32_t f = 0; f < flow_groups[g].flows; f++) {
        uint64_t packets = 0, bytes = 0;
        tally_get(t, flow_hash(t, g, f), &packets, &bytes);
        sum += fabs((double)packets - truth) / truth;
    }
    return sum / flow_groups[g].flows;
}

static void flow_counts_run(struct figure_run *run)
{
    uint64_t flows = 0, packets = 0;
    for (size_t g = 0; g < NGROUPS; g++) {
        flows += flow_groups[g].flows;
        packets += (uint64_t)flow_groups[g].flows * flow_groups[g].packets;
    }
    run->x = AXIS(.label = "packets of a flow", .scale = PLOT_LOG,
                  .format = PLOT_SI);
    run->y = AXIS(.label = "mean relative error", .format = PLOT_PERCENT);
    for (unsigned k = 0; k <= TALLY_SPACECODE; k++) {
        const enum tally_kind kind = (enum tally_kind)k;
        const struct tally_spec spec = {
            .kind = kind,
            .flows = flows,
            .packets = packets,
            .bytes = packets * COUNT_BYTES,
            .error = kind == TALLY_COUNTMIN ? COUNT_ERROR : 0.01,
            .seed = run->seed,
        };
        struct figure_series *const s =
            figure_series(run, "%s", tally_name(kind));
        struct tally t;
        if (tally_new(&spec, &t)) {
            run->broken = true;
            return;
        }
        run->broken |= flows_count(&t) != BLY_OK;
        for (size_t g = 0; g < NGROUPS; g++) {
            const double size = flow_groups[g].packets;
            /* Count-min errs by a share of all packets at most; spectral hardly
             * ever; the paper has 30 % for space-code. */
            const double most = kind == TALLY_COUNTMIN
                                    ? COUNT_ERROR * (double)packets / size
                                : kind == TALLY_SPECTRAL ? 0.05
                                                         : 0.3;
            figure_point(run, s, size, NAN, group_error(&t, g), 0, most);
        }
        bly_stats p;
        bly_peek(t.packets, &p);
        figure_note(run, "%s: %llu bytes for the packets of %llu flows.",
                    tally_name(kind), (unsigned long long)p.bytes,
                    (unsigned long long)flows);
        tally_free(&t);
    }
}

const struct figure figure_flow_counts = {
    .name = "flow-counts",
    .title = "Counts of all flows, by three sketches",
    .source = "Kumar and others: Space-Code Bloom Filter for Efficient "
              "Per-Flow Traffic Measurement, 2004.",
    .about = "1625 flows of 10 to 100,000 packets are counted by count-min "
             "(0.1 % of all packets), by a spectral filter (1 %) and by a "
             "space-code filter. The space-code filter is off by the same "
             "share for small flows and large ones; the others are exact here "
             "for nearly all of them.",
    .run = flow_counts_run,
};

/* -------------------------------------------------------------------- block */

#define BLOCK_OTHERS 1000000

/* Listed addresses are below 128.0.0.0, all others above. */
static struct prefix any_prefix(uint64_t *at, bool listed, unsigned bits)
{
    const uint64_t x = random_next(at);
    const unsigned char address[4] = {
        (unsigned char)(listed ? x >> 24 & 0x7f : (x >> 24 & 0x7f) | 0x80),
        (unsigned char)(x >> 16), (unsigned char)(x >> 8), (unsigned char)x
    };
    return prefix_of(4, address, bits);
}

static bool block_set_make(struct prefix_set *set, size_t n, bool three,
                           uint64_t seed)
{
    for (size_t i = 0; i < n; i++) {
        const unsigned bits = !three || i % 10 < 8 ? 32 : i % 10 < 9 ? 28 : 24;
        const struct prefix p = any_prefix(&seed, true, bits);
        if (!prefix_set_take(set, &p))
            return false;
    }
    prefix_set_sort(set);
    return true;
}

static double block_others(const struct block_file *b, uint64_t seed)
{
    unsigned hits = 0;
    for (unsigned i = 0; i < BLOCK_OTHERS; i++) {
        const struct prefix p = any_prefix(&seed, false, 32);
        hits += block_match(b, 4, p.at) >= 0;
    }
    return (double)hits / BLOCK_OTHERS;
}

static double block_listed(const struct block_file *b,
                           const struct prefix_set *set)
{
    size_t hits = 0;
    for (size_t i = 0; i < set->n; i++)
        hits += block_match(b, 4, set->at[i].at) >= 0;
    return set->n ? (double)hits / (double)set->n : 0;
}

/* A list at a rate: who is stopped, of others and of those who are listed. */
static bool block_rate(struct figure_run *run, const struct prefix_set *set,
                       double rate, double *others, double *listed)
{
    const struct block_plan plan = { .fpr = rate, .seed = run->seed + 1 };
    struct block_file b;
    if (block_make(set, &plan, &b))
        return false;
    *others = block_others(&b, run->seed + 77);
    *listed = block_listed(&b, set);
    block_close(&b);
    return true;
}

/* The share of a list that is still there two windows later: none of it. */
static double block_expired(struct figure_run *run,
                            const struct prefix_set *set)
{
    const struct block_plan plan = { .fpr = 0.01, .ttl = 60, .seed = 1 };
    struct block_file b;
    const uint64_t now = (uint64_t)time(NULL);
    if (block_make(set, &plan, &b)) {
        run->broken = true;
        return NAN;
    }
    double share = block_listed(&b, set);
    run->broken |= share < 1;
    if (bly_tick(b.filter, now + 65) || bly_tick(b.filter, now + 500))
        run->broken = true;
    share = block_listed(&b, set);
    block_close(&b);
    return share;
}

static void block_run(struct figure_run *run)
{
    static const double rates[] = { 0.1, 0.01, 0.001, 0.0001 };
    const size_t n = run->full ? 1000000 : 100000;
    run->x = AXIS(.label = "rate that was asked for", .scale = PLOT_LOG,
                  .format = PLOT_PERCENT);
    run->y = AXIS(.label = "of others, stopped by mistake", .scale = PLOT_LOG,
                  .format = PLOT_PERCENT);
    struct figure_series *const passed =
        figure_series(run, "listed, not stopped");
    passed->unseen = true;
    struct figure_series *const stayed = figure_series(run, "expired, stopped");
    stayed->unseen = true;
    for (unsigned three = 0; three < 2; three++) {
        struct prefix_set set = { 0 };
        struct figure_series *const s =
            figure_series(run, three ? "lengths 32, 28 and 24" : "addresses");
        if (!block_set_make(&set, n, three, run->seed)) {
            run->broken = true;
            prefix_set_free(&set);
            return;
        }
        for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
            double others = NAN, listed = NAN;
            const double sd = sqrt(rates[i] / BLOCK_OTHERS);
            run->broken |= !block_rate(run, &set, rates[i], &others, &listed);
            figure_point(run, s, rates[i], rates[i], others, rates[i] / 2,
                         rates[i] * 1.03 + 4 * sd);
            figure_point(run, passed, rates[i], 0, 1 - listed, 0, 0);
        }
        if (!three)
            figure_point(run, stayed, 0.01, 0, block_expired(run, &set), 0, 0);
        prefix_set_free(&set);
    }
    figure_note(run, "No listed address passes, and none is left when the list "
                     "has expired.");
}

const struct figure figure_block = {
    .name = "block",
    .title = "Block lists: whom they hit by mistake",
    .source = "docs/traffic.md.",
    .about = "A million addresses, or addresses and prefixes of three lengths, "
             "in one filter, and a million others that send a packet each. The "
             "rate holds per packet, however many lengths are asked for: the "
             "filter is planned for a third of it where there are three.",
    .run = block_run,
};
