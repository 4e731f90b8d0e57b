/*
 * figure_traffic.c - traffic: who sends much
 */
#include <math.h>
#include <stdlib.h>

#include "apps/traffic/multistage.h"
#include "base/random.h"
#include "workbench/figure.h"

#define FLOWS_N 100000
#define FLOWS_BYTES 1e8
#define FLOWS_COUNTERS 1000
#define FLOWS_THRESHOLD 1000000
#define FLOWS_PACKET 1000

struct sent {
    uint32_t flow;
    uint32_t bytes;
};

/* What flow i of 1/i sends, in packets of a thousand bytes and a rest, in any
 * order. NULL: no memory. */
static struct sent *flows_make(uint64_t seed, size_t *n)
{
    double all = 0;
    for (unsigned i = 1; i <= FLOWS_N; i++)
        all += 1.0 / i;
    const size_t room =
        FLOWS_N + (size_t)(FLOWS_BYTES / FLOWS_PACKET) + FLOWS_N;
    struct sent *const out = malloc(room * sizeof *out);
    *n = 0;
    for (unsigned i = 1; out && i <= FLOWS_N; i++) {
        uint32_t left = (uint32_t)(FLOWS_BYTES / all / i);
        for (; left; (*n)++) {
            const uint32_t bytes = left < FLOWS_PACKET ? left : FLOWS_PACKET;
            out[*n] = (struct sent){ i, bytes };
            left -= bytes;
        }
    }
    for (size_t i = *n; out && i > 1; i--) {
        const size_t j = random_next(&seed) % i;
        const struct sent was = out[i - 1];
        out[i - 1] = out[j];
        out[j] = was;
    }
    return out;
}

struct passing {
    double flows, missed;
};

static struct passing flows_pass(struct figure_run *run,
                                 const struct multistage_spec *spec,
                                 const struct sent *sent, size_t n,
                                 unsigned heavy)
{
    struct multistage *const m = multistage_new(spec);
    const struct flow *flows;
    struct passing p = { 0, heavy };
    if (!m) {
        run->broken = true;
        return p;
    }
    for (size_t i = 0; i < n; i++) {
        const uint32_t f = sent[i].flow;
        const struct flow_key key = {
            4,
            { (unsigned char)(f >> 24), (unsigned char)(f >> 16),
              (unsigned char)(f >> 8), (unsigned char)f }
        };
        multistage_packet(m, &key, sent[i].bytes);
    }
    p.flows = (double)multistage_flows(m, &flows);
    for (size_t i = 0; i < (size_t)p.flows; i++) {
        const unsigned char *const at = flows[i].key.at;
        const unsigned f = (unsigned)at[0] << 24 | (unsigned)at[1] << 16 |
                           (unsigned)at[2] << 8 | at[3];
        p.missed -= f <= heavy;
    }
    multistage_free(m);
    return p;
}

static void flows_run(struct figure_run *run)
{
    static const struct {
        const char *name;
        bool plain, unshielded;
    } rows[] = {
        { "plain", true, true },
        { "conservative", false, true },
        { "conservative, shielded", false, false },
    };
    size_t n;
    struct sent *const sent = flows_make(run->seed, &n);
    double all = 0, lost[4] = { 0 };
    for (unsigned i = 1; i <= FLOWS_N; i++)
        all += 1.0 / i;
    const unsigned heavy = (unsigned)floor(FLOWS_BYTES / all / FLOWS_THRESHOLD);
    run->x = AXIS(.label = "stages");
    run->y =
        AXIS(.label = "flows that pass", .scale = PLOT_LOG, .format = PLOT_SI);
    struct figure_series *const bound = figure_series(run, "bound");
    struct figure_series *const missed = figure_series(run, "large, missed");
    missed->unseen = true;
    run->broken |= !sent;
    for (size_t r = 0; sent && r < sizeof rows / sizeof rows[0]; r++) {
        struct figure_series *const s = figure_series(run, "%s", rows[r].name);
        for (unsigned d = 1; d <= 4; d++) {
            const struct multistage_spec spec = {
                .stages = d,
                .counters = FLOWS_COUNTERS,
                .threshold = FLOWS_THRESHOLD,
                .entries = FLOWS_N,
                .seed = run->seed,
                .plain = rows[r].plain,
                .unshielded = rows[r].unshielded,
            };
            const double most = multistage_bound(&spec, FLOWS_BYTES, FLOWS_N);
            if (r == 0)
                figure_point(run, bound, d, most, NAN, NAN, NAN);
            const struct passing p = flows_pass(run, &spec, sent, n, heavy);
            figure_point(run, s, d, NAN, p.flows, heavy, most);
            lost[d - 1] += p.missed;
        }
    }
    for (unsigned d = 1; d <= 4; d++)
        figure_point(run, missed, d, 0, lost[d - 1], 0, 0);
    free(sent);
    figure_note(run, "%u flows are as large as the threshold.", heavy);
}

const struct figure figure_flows = {
    .name = "flows",
    .title = "Large flows: all of them pass, and few others",
    .source = "Estan, Varghese: New Directions in Traffic Measurement and "
              "Accounting, 2002.",
    .about = "100,000 flows send 100 MB, flow i as much as 1/i; a multistage "
             "filter with 1000 counters per stage lets through those that may "
             "have sent 1 %. The bound holds for any sizes; these do far "
             "better, and conservative update and shielding each help.",
    .run = flows_run,
};
