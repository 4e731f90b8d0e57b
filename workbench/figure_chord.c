/*
 * figure_chord.c - the Chord ring, simulated: hops, loads, failures, churn
 *
 * The protocol is that of bloomery node (chord/chord.h), in simulated
 * time; expected values are those of the papers and of an independent
 * simulation.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "workbench/sim/chord_schedule.h"
#include "workbench/sim/chord_sim.h"
#include "apps/ring/placing.h"
#include "base/random.h"
#include "base/search.h"
#include "report/say.h"
#include "workbench/figure.h"

#define SECOND UINT64_C(1000000)

static struct chord_sim *ring_new(struct figure_run *run,
                                  const struct chord_sim_spec *spec)
{
    struct chord_sim *const s = chord_sim_new(spec);
    if (!s) {
        fail("no memory for %u simulated nodes", (unsigned)spec->nodes);
        run->broken = true;
    }
    return s;
}

/* No maintenance: what is asked of a ring as it stands. */
static struct chord_sim_spec still_ring(uint32_t nodes, unsigned r,
                                        uint64_t seed)
{
    struct chord_sim_spec spec = chord_sim_usual(nodes, seed);
    spec.ring.r = r;
    spec.ring.stabilise = spec.ring.check = spec.ring.finger = 0;
    return spec;
}

/* --------------------------------------------------------------------- hops */

/* Half log2 n and the owner is the mean of evenly spaced ids: 4, 5, 6, 7, 8.
 * Random ids, which leave fingers more choice, take an eighth less, and an id
 * that the asker owns itself takes nothing, which shows where members are few.
 * These values are those of another program, which simulates a lookup and
 * nothing else (docs/errata.md). */
static void hops_run(struct figure_run *run)
{
    static const double expected[] = { 3.77, 4.85, 5.87, 6.87, 7.87 };
    const unsigned lookups = run->full ? 50000 : 3000;
    run->x = AXIS(.label = "members", .scale = PLOT_LOG);
    run->y = AXIS(.label = "nodes asked per lookup, the owner included",
                  .min = 0, .max = 12);
    struct figure_series *const fingers = figure_series(run, "fingers alone");
    struct figure_series *const lists =
        figure_series(run, "with lists of 20 successors");
    for (unsigned i = 0; i < 5 && !run->broken; i++) {
        const uint32_t n = UINT32_C(64) << 2 * i;
        for (unsigned with = 0; with < 2 && !run->broken; with++) {
            /* Small rings differ from each other by 0.06. */
            const unsigned rings = n < 4096 ? 4096 / n : 1;
            struct chord_tally sum = { 0 };
            for (unsigned t = 0; t < rings && !run->broken; t++) {
                struct chord_sim_spec spec =
                    still_ring(n, 20, run->seed + i + 5 * t);
                spec.ring.no_lists = !with;
                struct chord_sim *const s = ring_new(run, &spec);
                if (!s)
                    return;
                chord_sim_ideal(s, n);
                for (unsigned k = 0; k < lookups / rings; k++) {
                    chord_sim_lookup(s);
                    chord_sim_run(s, 4 * SECOND);
                }
                sum.hops += s->tally.hops;
                sum.ended += s->tally.ended;
                run->broken |= s->tally.wrong || s->tally.failed;
                chord_sim_free(s);
            }
            const double hops = (double)sum.hops / (double)sum.ended;
            if (with)
                figure_point(run, lists, n, i == 2 ? 3.84 : NAN, hops,
                             i == 2 ? 3.7 : NAN, i == 2 ? 3.98 : NAN);
            else
                figure_point(run, fingers, n, expected[i], hops,
                             expected[i] - 0.15, expected[i] + 0.15);
        }
    }
    figure_note(run, "Half the logarithm of the number of members to base 2, "
                     "and the owner, less an eighth.");
}

const struct figure figure_chord_hops = {
    .name = "chord-hops",
    .title = "A lookup asks a few nodes, however many there are",
    .source = "Stoica et al. 2003, figure 10: half log2 n, and the owner.",
    .about = "Random ids from random members of a ring in the ideal state. "
             "Every doubling of the ring costs half a question.",
    .run = hops_run,
};

/* -------------------------------------------------------------------- loads */

static int by_id(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static int by_load(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void loads_run(struct figure_run *run)
{
    static const uint32_t vs[] = { 1, 2, 5, 10, 20 };
    static const double high[] = { 4.6, 3.3, 2.4, 1.9, 1.65 };
    static const double low[] = { 0, 0.07, 0.24, 0.39, 0.51 };
    enum { N = 10000 };
    const uint64_t nkeys = 1000000; /* as published */
    run->x = AXIS(.label = "virtual nodes per member", .scale = PLOT_LOG);
    run->y = AXIS(.label = "load over the mean", .min = 0);
    struct figure_series *const top = figure_series(run, "99th percentile");
    struct figure_series *const least = figure_series(run, "1st percentile");
    bly_bytes *const names = placing_names(N);
    uint32_t *const loads = malloc(N * sizeof *loads);
    for (unsigned i = 0; i < 5 && names && loads && !run->broken; i++) {
        bly_place *p;
        uint64_t at = run->seed + i;
        const bly_place_spec spec = {
            .names = names, .n = N, .points = vs[i], .seed = run->seed
        };
        if (bly_place_new(&spec, &p)) {
            run->broken = true;
            break;
        }
        memset(loads, 0, N * sizeof *loads);
        for (uint64_t k = 0; k < nkeys; k++)
            loads[bly_place_of(p, random_next(&at))]++;
        bly_place_free(p);
        qsort(loads, N, sizeof *loads, by_load);
        const double mean = (double)nkeys / N;
        figure_point(run, top, vs[i], high[i], loads[N - N / 100] / mean,
                     0.92 * high[i], 1.08 * high[i]);
        figure_point(run, least, vs[i], low[i], loads[N / 100] / mean,
                     low[i] - 0.04, low[i] + 0.04);
    }
    run->broken |= !names || !loads;
    free(names);
    free(loads);
}

const struct figure figure_chord_loads = {
    .name = "chord-loads",
    .title = "Virtual nodes even the loads out",
    .source = "Stoica et al. 2003, figures 8 and 9: 10,000 nodes.",
    .about = "Keys on 10,000 members: arcs of a circle differ much in length, "
             "and several points for each member make up for it.",
    .run = loads_run,
};

/* ------------------------------------------------ alpha and beta, exercises */

/* n random ids cut the circle into intervals whose mean is 1/n and whose
 * largest is H_n/n on average, the harmonic number; it deviates by
 * pi/sqrt(6)/n, as the largest of n exponential variables does. */
static double largest_interval(uint64_t *ids, uint32_t n, uint64_t *random,
                               uint64_t *start, uint64_t *length)
{
    for (uint32_t i = 0; i < n; i++)
        ids[i] = random_next(random);
    qsort(ids, n, sizeof *ids, by_id);
    *length = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t before = ids[i ? i - 1 : n - 1];
        if (ids[i] - before > *length) {
            *length = ids[i] - before;
            *start = before;
        }
    }
    return (double)*length * 0x1p-64;
}

/* The most keys that one of the members has. */
static double fullest_member(const uint64_t *ids, uint32_t n, uint32_t *loads,
                             uint64_t nkeys, uint64_t *random)
{
    uint32_t most = 0;
    memset(loads, 0, n * sizeof *loads);
    for (uint64_t k = 0; k < nkeys; k++) {
        const uint64_t id = random_next(random);
        size_t low;
        LOWER_BOUND(low, n, ids[low] < id);
        const size_t owner = low < n ? low : 0;
        most = ++loads[owner] > most ? loads[owner] : most;
    }
    return most;
}

static void fullest_run(struct figure_run *run)
{
    enum { MOST = 16384, PER_MEMBER = 200 };
    const double sd = 1.2825498; /* pi / sqrt(6) */
    run->x = AXIS(.label = "members", .scale = PLOT_LOG);
    run->y = AXIS(.label = "factor", .min = 0.8, .max = 1.6);
    struct figure_series *const beta =
        figure_series(run, "beta: largest interval over ln n / n");
    struct figure_series *const alpha =
        figure_series(run, "alpha: fullest member over (m / n) ln n");
    uint64_t *const ids = malloc(MOST * sizeof *ids), at = run->seed;
    uint32_t *const loads = malloc(MOST * sizeof *loads);
    run->broken |= !ids || !loads;
    for (uint32_t n = 16; n <= MOST && !run->broken; n *= 4) {
        const unsigned trials = (run->full ? 4u : 1u) * (n < 1024 ? 200u : 40u);
        const unsigned filled = (run->full ? 4u : 1u) * (n < 1024 ? 100u : 4u);
        double intervals = 0, fullest = 0, harmonic = 0;
        for (uint32_t i = 1; i <= n; i++)
            harmonic += 1.0 / i;
        for (unsigned t = 0; t < trials; t++) {
            uint64_t start, length;
            intervals += n * largest_interval(ids, n, &at, &start, &length);
            if (t < filled)
                fullest += fullest_member(ids, n, loads,
                                          (uint64_t)n * PER_MEMBER, &at) /
                           PER_MEMBER;
        }
        const double ln = log(n);
        figure_judge(run, beta, n, harmonic / ln, intervals / trials / ln,
                     sd / sqrt(trials) / ln);
        /* Keys that fall by chance make the fullest a little fuller: the
         * deviation of a load is the root of the keys. */
        const double more = harmonic / PER_MEMBER / 2;
        figure_judge(run, alpha, n, (harmonic + more) / ln,
                     fullest / filled / ln, sd / sqrt(filled) / ln);
    }
    free(ids);
    free(loads);
    figure_note(run, "Both tend to 1 as the ring grows: the harmonic number "
                     "of n over ln n. So the fullest member has some 1.2 (m/n) "
                     "ln n keys among 16, and fewer among more.");
}

const struct figure figure_chord_fullest = {
    .name = "chord-fullest",
    .title = "The largest interval and the fullest member",
    .source = "Exercises: with high probability no interval is longer than "
              "beta ln n / n, and no member has more than alpha (m/n) log n "
              "of m keys.",
    .about = "Random ids, one for each member, and 200 keys for each. The "
             "largest of n intervals has ln n times the mean length, so that "
             "one point for each member cannot spread loads evenly.",
    .run = fullest_run,
};

/* --------------------------------------------- joins that neighbours notice */

static double hops_of(struct figure_run *run, struct chord_sim *s,
                      unsigned lookups)
{
    s->tally = (struct chord_tally){ 0 };
    /* A few at a time: members have places for twelve. */
    for (unsigned k = 0; k < lookups; k++) {
        chord_sim_lookup(s);
        if (k % 64 == 63)
            chord_sim_run(s, SECOND);
    }
    chord_sim_run(s, 5 * SECOND);
    run->broken |= s->tally.wrong || s->tally.failed || !s->tally.ended;
    return (double)s->tally.hops / (double)s->tally.ended;
}

/* Between a key and the old member before it lies 1/n of the circle on average,
 * and so one of n new members: one question more than before. Twice as many
 * members with right fingers cost half a question. */
static void joins_run(struct figure_run *run)
{
    const unsigned lookups = run->full ? 5000 : 1500;
    run->x = AXIS(.label = "members at first", .scale = PLOT_LOG);
    run->y = AXIS(.label = "nodes asked per lookup", .min = 0, .max = 12);
    struct figure_series *const before = figure_series(run, "before");
    struct figure_series *const after =
        figure_series(run, "after as many joined, fingers as before");
    struct figure_series *const ideal =
        figure_series(run, "with right fingers");
    for (unsigned i = 0; i < 3 && !run->broken; i++) {
        const uint32_t n = UINT32_C(64) << 2 * i;
        struct chord_sim_spec spec = chord_sim_usual(2 * n, run->seed + i);
        spec.ring.no_lists = true;
        spec.ring.finger = 0;
        spec.ring.fingers = 0;
        struct chord_sim *const s = ring_new(run, &spec);
        if (!s)
            return;
        chord_sim_ideal(s, n);
        const double at_first = hops_of(run, s, lookups);
        for (uint32_t k = n; k < 2 * n; k++) {
            chord_sim_join(s, k);
            chord_sim_run(s, SECOND / 4);
        }
        chord_sim_run(s, 60 * SECOND);
        run->broken |= s->nmembers != 2 * n;
        const double joined = hops_of(run, s, lookups);
        chord_sim_ideal(s, 2 * n);
        const double right = hops_of(run, s, lookups);
        chord_sim_free(s);
        figure_point(run, before, n, NAN, at_first, NAN, NAN);
        figure_point(run, after, n, at_first + 1, joined, at_first + 0.5,
                     at_first + 1.5);
        figure_point(run, ideal, n, at_first + 0.5, right, at_first + 0.3,
                     at_first + 0.7);
    }
}

const struct figure figure_chord_joins = {
    .name = "chord-joins",
    .title = "n members join, and only neighbours know",
    .source = "Exercise, and Stoica et al. 2003, theorem 7: lookups still ask "
              "O(log n) nodes.",
    .about = "Rings of n members in the ideal state, to which n more come: "
             "successors and predecessors are put right, and fingers of old "
             "members stay as they were. A lookup reaches the last old member "
             "before the key as fast as before, and then passes the new ones "
             "between them, one on average.",
    .run = joins_run,
};

/* ------------------------------------------------------- half the ring dies */

static void deaths_run(struct figure_run *run)
{
    static const double hops[] = { 3.84, 4.0, 4.2, 4.5, 4.8, 5.3 };
    static const double waits[] = { 0, 0.5, 1.0, 2.1, 3.1, 5.6 };
    const unsigned trials = run->full ? 50 : 3;
    run->x = AXIS(.label = "members that died at once", .format = PLOT_PERCENT);
    run->y = AXIS(.label = "per lookup", .min = 0);
    struct figure_series *const asked = figure_series(run, "nodes asked");
    struct figure_series *const silent = figure_series(run, "timeouts");
    struct figure_series *const wrong =
        figure_series(run, "lookups that fail or end at the wrong node");
    for (unsigned q = 0; q <= 5 && !run->broken; q++) {
        struct chord_tally sum = { 0 };
        for (unsigned t = 0; t < trials && !run->broken; t++) {
            const struct chord_sim_spec spec =
                still_ring(1000, 20, run->seed * 1000 + t);
            struct chord_sim *const s = ring_new(run, &spec);
            if (!s)
                return;
            chord_sim_ideal(s, 1000);
            for (unsigned i = 0; i < 100 * q; i++)
                chord_sim_fail(s, chord_sim_member(s));
            for (unsigned i = s->nmembers; i > 0; i--)
                chord_sim_lookup(s);
            chord_sim_run(s, 300 * SECOND);
            sum.hops += s->tally.hops;
            sum.ended += s->tally.ended;
            sum.timeouts += s->tally.timeouts;
            sum.wrong += s->tally.wrong + s->tally.failed +
                         (s->tally.asked - s->tally.ended);
            chord_sim_free(s);
        }
        const double n = (double)sum.ended, x = q / 10.0;
        figure_point(run, asked, x, hops[q], (double)sum.hops / n,
                     hops[q] - 0.15, hops[q] + 0.15);
        /* Published are 5.10 and found here 4.8 where half are dead: an asker
         * remembers who was silent from one lookup to the next. */
        figure_point(run, silent, x, waits[q], (double)sum.timeouts / n,
                     0.8 * waits[q] - 0.05, 1.1 * waits[q] + 0.05);
        figure_point(run, wrong, x, 0, (double)sum.wrong / n, 0, 0);
    }
}

const struct figure figure_chord_deaths = {
    .name = "chord-deaths",
    .title = "Half of the ring dies, and every lookup still arrives",
    .source = "Stoica et al. 2003, table II: 1000 nodes, lists of 20.",
    .about = "So many of 1000 members fail at once, and before anything is "
             "repaired the others look ids up. All lookups end at the right "
             "member.",
    .run = deaths_run,
};

/* -------------------------------------------------------------------- churn */

/* Joins and failures at a rate per second each, in exponential intervals. */
static void churn(struct figure_run *run, double rate, unsigned trust,
                  struct chord_tally *out)
{
    enum { MEMBERS = 1000, STEP = 100 }; /* milliseconds */
    /* Fingers start fresh; what is counted begins when they are as old as they
     * get. */
    const unsigned seconds = run->full ? 5000 : 700;
    const unsigned warm = run->full ? 1500 : 300;
    const unsigned per_second = run->full ? 6 : 10;
    struct chord_sim_spec spec = chord_sim_usual(2 * MEMBERS, run->seed);
    spec.ring.r = 20;
    spec.ring.trust = trust;
    spec.ring.stabilise = spec.ring.check = spec.ring.finger = 30000;
    spec.ring.walks = 16;
    struct chord_sim *const s = ring_new(run, &spec);
    if (!s)
        return;
    uint64_t at = run->seed + (uint64_t)(1000 * rate);
    double next[2] = { 0, 0 };
    chord_sim_ideal(s, MEMBERS);
    chord_sim_run(s, 60 * SECOND);
    for (unsigned ms = 0; ms < seconds * 1000; ms += STEP) {
        if (ms == warm * 1000)
            s->tally = (struct chord_tally){ 0 };
        for (unsigned what = 0; what < 2; what++)
            while (next[what] <= ms) {
                const double u =
                    ((double)(random_next(&at) >> 11) + 0.5) * 0x1p-53;
                next[what] += -log(u) * 1000 / rate;
                if (what) {
                    chord_sim_fail(s, chord_sim_member(s));
                    continue;
                }
                uint32_t i;
                do
                    i = (uint32_t)(random_next(&at) % spec.nodes);
                while (sim_is_up(s->sim, i));
                chord_sim_join(s, i);
            }
        for (unsigned i = per_second * ms / 1000;
             i < per_second * (ms + STEP) / 1000; i++)
            chord_sim_lookup(s);
        chord_sim_run(s, STEP * 1000);
    }
    chord_sim_run(s, 30 * SECOND);
    *out = s->tally;
    chord_sim_free(s);
}

static void churn_run(struct figure_run *run)
{
    static const double rates[] = { 0.05, 0.1, 0.2, 0.4 };
    static const double waits[] = { 0.02, 0.04, 0.10, 0.18 };
    run->x =
        AXIS(.label = "joins and failures per second, each", .scale = PLOT_LOG);
    run->y = AXIS(.label = "per lookup", .min = 0);
    struct figure_series *const asked = figure_series(run, "nodes asked");
    struct figure_series *const silent = figure_series(run, "timeouts");
    struct figure_series *const wrong =
        figure_series(run, "ends at the wrong member, of 10,000");
    wrong->unseen = true;
    for (unsigned i = 0; i < 4 && !run->broken; i++) {
        struct chord_tally t = { 0 };
        churn(run, rates[i], 0, &t);
        if (run->broken)
            return;
        const double n = (double)t.ended, bad = (double)(t.wrong + t.failed);
        /* Bands are the reference's, and four deviations of what is counted.
         * For timeouts it is a limit: here a finger is refreshed once for all
         * the places that it covers, so that four a round keep them half as
         * old. */
        const double limit = 3e-4 * n;
        figure_point(run, asked, rates[i], 3.86 + 0.14 * i / 3,
                     (double)t.hops / n, 3.86 - 4 * 1.3 / sqrt(n),
                     4.00 + 4 * 1.3 / sqrt(n));
        figure_point(run, silent, rates[i], waits[i], (double)t.timeouts / n, 0,
                     waits[i] + 4 * sqrt(waits[i] / n));
        figure_point(run, wrong, rates[i], 0, 10000 * bad / n, 0,
                     10000 * (limit + 4 * sqrt(limit)) / n);
    }
    figure_note(run,
                "1000 members, a round of maintenance every 30 seconds, lists "
                "of 20, four fingers per round.");
}

const struct figure figure_chord_churn = {
    .name = "chord-churn",
    .title = "Members come and go while others look up",
    .source = "Stoica et al. 2003, section VI-E, with the candidate's last "
              "word.",
    .about = "At 0.4 joins and failures per second a member of 1000 lives 40 "
             "minutes on average; a lookup then waits for a dead node once in "
             "ten times, and ends at the right one.",
    .run = churn_run,
};

/* ---------------------------------------------------------------- schedules */

static void schedules_run(struct figure_run *run)
{
    static const unsigned rs[] = { 2, 4, 8 };
    const unsigned runs = run->full ? 10000 : 200;
    run->x = AXIS(.label = "length of lists", .min = 0, .max = 10);
    run->y = AXIS(.label = "runs in which the ring was lost",
                  .format = PLOT_PERCENT, .min = 0);
    struct figure_series *const now = figure_series(run, "these rules");
    struct figure_series *const old = figure_series(run, "the rules of 2001");
    for (unsigned i = 0; i < 3; i++) {
        unsigned bad[2] = { 0, 0 };
        for (unsigned k = 0; k < runs; k++)
            for (unsigned rules = 0; rules < 2; rules++) {
                const struct chord_schedule how = { .r = rs[i],
                                                    .more = 6,
                                                    .steps = 400,
                                                    .rules_2001 = rules,
                                                    .seed = run->seed + k };
                bad[rules] += chord_schedule_run(&how, NULL) != NULL;
            }
        figure_point(run, now, rs[i], 0, bad[0] / (double)runs, 0, 0);
        figure_point(run, old, rs[i], i ? NAN : 0.4, bad[1] / (double)runs,
                     i ? NAN : 0.25, i ? NAN : 0.52);
    }
    figure_note(run,
                "%u random schedules for each length; r + 1 members never "
                "fail, six others come and go.",
                runs);
}

const struct figure figure_chord_schedules = {
    .name = "chord-schedules",
    .title = "The first published rules lose the ring",
    .source = "Zave 2012 and 2017: how to make Chord correct.",
    .about = "Joins, failures and single steps of the protocol in random "
             "order. Under the rules of 2001 four of ten runs with lists of "
             "two do not return to one ring; under the rules used here none "
             "does not.",
    .run = schedules_run,
};

/* ----------------------------------------------------------- join and leave */

static void moved_run(struct figure_run *run)
{
    static const size_t ns[] = { 5, 10, 20, 50, 100 };
    static const char *const rules[] = { "ring", "rendezvous", "jump", "table",
                                         "bounded" };
    const size_t nkeys = run->full ? 1000000 : 200000;
    run->x = AXIS(.label = "members", .scale = PLOT_LOG);
    run->y = AXIS(.label = "keys that move when a member comes",
                  .scale = PLOT_LOG, .format = PLOT_PERCENT);
    uint64_t *const hashes = malloc(nkeys * sizeof *hashes), at = run->seed;
    bly_bytes *const names = placing_names(101);
    for (size_t i = 0; hashes && i < nkeys; i++) {
        uint64_t state = at + i;
        hashes[i] = random_next(&state);
    }
    for (unsigned r = 0; r < 5 && hashes && names; r++) {
        struct figure_series *const s = figure_series(run, "%s", rules[r]);
        for (unsigned i = 0; i < 5; i++) {
            const struct placing how = { .names = names,
                                         .n = ns[i],
                                         .hashes = hashes,
                                         .nkeys = nkeys,
                                         .seed = run->seed,
                                         .untimed = true };
            struct placed p;
            if (!placing_measure(&how, rules[r], 0, &p)) {
                run->broken = true;
                break;
            }
            const double ideal = 1 / (double)(ns[i] + 1);
            /* Keys are few against points for a ring: its arcs deviate by
             * 1/sqrt(128), the others as draws do. */
            const double sd = r == 0
                                  ? ideal / sqrt(128)
                                  : sqrt(ideal * (1 - ideal) / (double)nkeys);
            if (r == 3) /* turns change, and a few slots with them */
                figure_point(run, s, (double)ns[i], ideal, p.joined,
                             0.8 * ideal, 3.5 * ideal);
            else if (r < 3)
                figure_judge(run, s, (double)ns[i], ideal, p.joined, sd);
            else
                figure_point(run, s, (double)ns[i], ideal, p.joined, ideal * .8,
                             NAN);
        }
    }
    run->broken |= !hashes || !names;
    free(hashes);
    free(names);
}

const struct figure figure_place_moved = {
    .name = "placement-moved",
    .title = "What moves when a member comes",
    .source = "Karger et al. 1997: 1/(n + 1) of all keys has to.",
    .about = "The rules of bloomery/place.h on the same keys. Ring, rendezvous "
             "and jump move what has to move; table moves a little more, and "
             "bounded loads pay for their evenness.",
    .run = moved_run,
};

/* What the fullest of n members has, over the mean, and its deviation. The
 * arcs of a member with v points sum to a gamma variable of shape v, so that
 * its keys are negative binomial: n independent ones, whose sum is as good as
 * fixed. Of many keys and one point this is 1 + 1/2 + ... + 1/n. */
static double fullest_over_mean(size_t n, double v, double mean, double *sd)
{
    const double share = mean / (v + mean);
    double p = pow(v / (v + mean), v), below = p, first = 0, second = 0;
    for (double k = 0; below < 1 - 1e-13 && k < 40 * mean; k++) {
        const double above = 1 - pow(fmin(1, below), (double)n);
        first += above;
        second += (2 * k + 1) * above;
        p *= (k + v) / (k + 1) * share;
        below += p;
    }
    *sd = sqrt(second - first * first) / mean;
    return first / mean;
}

static void points_run(struct figure_run *run)
{
    static const uint32_t points[] = { 1, 8, 16, 64, 128, 256 };
    static const size_t ns[] = { 10, 100, 1000 };
    const unsigned least = run->full ? 20 : 3; /* of the largest ring */
    const size_t per_member = 1000;
    run->x = AXIS(.label = "points per member", .scale = PLOT_LOG);
    run->y = AXIS(.label = "largest load over the mean", .min = 1);
    bly_bytes *const names = placing_names(1000);
    uint32_t *const loads = malloc(1000 * sizeof *loads);
    for (unsigned i = 0; i < 3 && names && loads; i++) {
        struct figure_series *const s =
            figure_series(run, "%zu members", ns[i]);
        /* Loads of few members vary more. */
        const unsigned trials = least * (i == 0 ? 20 : i == 1 ? 4 : 1);
        for (unsigned v = 0; v < 6 && !run->broken; v++) {
            double sum = 0;
            for (unsigned t = 0; t < trials; t++) {
                const bly_place_spec spec = { .names = names,
                                              .n = ns[i],
                                              .points = points[v],
                                              .seed = run->seed + t };
                bly_place *p;
                uint64_t at = run->seed * 7 + t;
                uint32_t most = 0;
                if (bly_place_new(&spec, &p)) {
                    run->broken = true;
                    break;
                }
                memset(loads, 0, ns[i] * sizeof *loads);
                for (size_t k = 0; k < ns[i] * per_member; k++) {
                    const uint32_t m = bly_place_of(p, random_next(&at));
                    most = ++loads[m] > most ? loads[m] : most;
                }
                bly_place_free(p);
                sum += most / (double)per_member;
            }
            double sd;
            const double e =
                fullest_over_mean(ns[i], points[v], (double)per_member, &sd);
            figure_judge(run, s, points[v], e, sum / trials, sd / sqrt(trials));
        }
    }
    run->broken |= !names || !loads;
    free(names);
    free(loads);
}

const struct figure figure_place_points = {
    .name = "placement-points",
    .title = "How many points a member needs on the ring",
    .source = "Consistent hashing: deviation of loads 1/sqrt(points).",
    .about = "With one point for each member the fullest of n has 1 + 1/2 + "
             "... + 1/n times the mean, 7.5 times among 1000; with 256 points "
             "it has a quarter more.",
    .run = points_run,
};
