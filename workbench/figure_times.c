/*
 * figure_times.c - what an addition and a question cost against k: seminar
 * paper, figures 3 to 6
 *
 * For every k the array is as large as it must be to become half full, n k /
 * ln 2 bits, so that a key that is absent finds a zero after two probes on
 * average whatever k is. Keys are handed over one at a time, as the paper's
 * program does: the library's batches ask in rounds, which is another story.
 * What is judged is shape: a straight line, or none.
 */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/random.h"
#include "report/say.h"
#include "workbench/figure.h"

enum { K_KEYS = 20000, K_MAX = 30 };

/* The keys of an experiment, in the order they are asked for. */
struct k_keys {
    uint64_t at[K_KEYS];
};

/* Of so many keys that are in the filter, then one that is not; 0: all absent;
 * UINT_MAX: none is. */
static void keys_mixed(struct k_keys *keys, unsigned present)
{
    for (uint64_t i = 0; i < K_KEYS; i++)
        keys->at[i] = present && (i + 1) % ((uint64_t)present + 1)
                          ? i
                          : FIGURE_ABSENT + i;
}

/* The best time per key of a few rounds; hashes are made before. */
static double ask_ns(const bly_filter *f, const struct k_keys *keys)
{
    static uint64_t hashes[K_KEYS];
    double best = INFINITY;
    bly_hash_ints(bly_hasher_of(f), keys->at, K_KEYS, hashes);
    for (int round = 0; round < FIGURE_ROUNDS; round++) {
        const double start = clock_thread_ns();
        for (size_t i = 0; i < K_KEYS; i++)
            bly_has_hash(f, hashes[i]);
        best = fmin(best, (clock_thread_ns() - start) / K_KEYS);
    }
    return best;
}

static bly_filter *k_filter(struct figure_run *run, unsigned k)
{
    char options[20];
    const bly_spec spec =
        SPEC(.kind = "classic", .items = K_KEYS,
             .bits = (uint64_t)(k * K_KEYS / log(2)), .seed = run->seed);
    snprintf(options, sizeof options, "k=%u", k);
    return figure_filter(run, &spec, options);
}

static double add_ns(struct figure_run *run, unsigned k)
{
    double best = INFINITY;
    for (int round = 0; round < FIGURE_ROUNDS; round++) {
        bly_filter *f = k_filter(run, k);
        if (!f)
            return NAN;
        const double start = clock_thread_ns();
        for (uint64_t i = 0; i < K_KEYS; i++)
            run->broken |= bly_add_hash(f, (i + 1) * RANDOM_STEP) != BLY_OK;
        best = fmin(best, (clock_thread_ns() - start) / K_KEYS);
        bly_free(f);
    }
    return best;
}

/* How straight a series is: the correlation of y with x. */
static double straightness(const struct figure_series *s)
{
    double x = 0, y = 0, xx = 0, yy = 0, xy = 0;
    const double n = (double)s->npoints;
    for (size_t i = 0; i < s->npoints; i++) {
        const struct figure_point *p = &s->points[i];
        x += p->x;
        y += p->measured;
        xx += p->x * p->x;
        yy += p->measured * p->measured;
        xy += p->x * p->measured;
    }
    return (n * xy - x * y) / sqrt((n * xx - x * x) * (n * yy - y * y));
}

static double last_over_first(const struct figure_series *s)
{
    return s->points[s->npoints - 1].measured / s->points[0].measured;
}

static void k_axes(struct figure_run *run)
{
    run->x = AXIS(.label = "probes per key", .unit = "k");
    run->y = AXIS(.label = "time per key", .unit = "ns");
}

/* ------------------------------------------------------------- additions */

static void time_add_run(struct figure_run *run)
{
    k_axes(run);
    struct figure_series *s = figure_series(run, "add");
    for (unsigned k = 1; k <= K_MAX && !run->broken;
         k += run->full || k == 1 ? 1 : 2)
        figure_point(run, s, k, NAN, add_ns(run, k), NAN, NAN);
    struct figure_series *facts = figure_series(run, "correlation with k");
    facts->unseen = true;
    figure_point(run, facts, NAN, 1, straightness(s), 0.9, NAN);
}

const struct figure figure_time_add = {
    .name = "add-time-against-k",
    .title = "Time of an addition against the number of probes",
    .source = "Seminar paper, figure 3.",
    .about = "Each probe sets a bit, so that the time grows in a straight line "
             "with k. The paper's program also hashes once per probe; here one "
             "hash serves all, and the line is flatter.",
    .machine = true,
    .run = time_add_run,
};

/* ---------------------------------------------------------------- asking */

static void time_ask_run(struct figure_run *run)
{
    static const struct {
        const char *name;
        unsigned present; /* keys before one that is absent */
    } mixes[] = {
        { "contained (figure 4)", UINT32_MAX },
        { "absent (figure 5)", 0 },
        { "10 contained to 1 absent (figure 6)", 10 },
        { "100 to 1, as its program does", 100 },
    };
    enum { NMIXES = sizeof mixes / sizeof mixes[0] };
    k_axes(run);
    struct figure_series *s[NMIXES];
    struct k_keys *keys = malloc(sizeof *keys);
    if (!keys) {
        run->broken = true;
        fail("out of memory");
        return;
    }
    for (size_t i = 0; i < NMIXES; i++)
        s[i] = figure_series(run, "%s", mixes[i].name);
    for (unsigned k = 2; k <= K_MAX && !run->broken; k += run->full ? 1 : 4) {
        bly_filter *f = k_filter(run, k);
        if (f && figure_add(run, f, 0, K_KEYS))
            for (size_t i = 0; i < NMIXES; i++) {
                keys_mixed(keys, mixes[i].present);
                figure_point(run, s[i], k, NAN, ask_ns(f, keys), NAN, NAN);
            }
        bly_free(f);
    }
    free(keys);
    if (run->broken)
        return;
    struct figure_series *straight = figure_series(run, "correlation with k");
    struct figure_series *growth = figure_series(run, "last k over first");
    straight->unseen = growth->unseen = true;
    for (size_t i = 0; i < NMIXES; i++)
        if (mixes[i].present)
            figure_point(run, straight, (double)i + 1, 1, straightness(s[i]),
                         0.9, NAN);
    /* 2 - 2^(1-k) probes: 1.5 at k = 2 and 2 in the end. */
    figure_point(run, growth, 1, NAN, last_over_first(s[0]), 2, NAN);
    figure_point(run, growth, 2, 4.0 / 3, last_over_first(s[1]), NAN, 2.5);
}

const struct figure figure_time_ask = {
    .name = "ask-time-against-k",
    .title = "Time of a question against the number of probes",
    .source = "Seminar paper, figures 4 to 6.",
    .about =
        "A key that is contained needs all k probes: a straight line. One that "
        "is absent is known to be so after two on average, whatever k is: the "
        "flat line of figure 5 is right, and it is not linear in k, as the "
        "text says. The mix of figure 6 is printed as 10 to 1, while the "
        "program asks 100 to 1; both are mostly contained keys.",
    .machine = true,
    .run = time_ask_run,
};
