/*
 * figure_times.c - what an addition and a question cost against k: seminar
 * paper, figures 3 to 6
 *
 * There are two ways to vary k. With n k / ln 2 bits the array becomes half
 * full, and an absent key finds a zero after two probes on average, whatever
 * k is. The paper's program plans the array for 1 %, 9.585 bits per key, and
 * then overrides k alone: the array fills up, and an absent key takes
 * (1 - f^k) / (1 - f) probes, f = 1 - e^(-k/9.585): 2 at k = 7, 17 at k = 30.
 *
 * Keys are handed over one at a time, as that program does: the library's
 * batches ask in rounds, which is another story. What is judged is shape: a
 * straight line, or none.
 */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/random.h"
#include "report/say.h"
#include "workbench/figure.h"

/* Few keys, so that arrays stay in the first cache whatever k is: 21 KiB at
 * most. Many questions, so that no predictor learns their answers by heart. */
enum { K_KEYS = 4000, K_QUESTIONS = 20000, K_MAX = 30 };

/* The keys of an experiment, in the order they are asked for. */
struct k_keys {
    uint64_t at[K_QUESTIONS];
};

/* Of so many keys that are in the filter, then one that is not; 0: all absent;
 * UINT_MAX: none is. */
static void keys_mixed(struct k_keys *keys, unsigned present)
{
    for (uint64_t i = 0; i < K_QUESTIONS; i++)
        keys->at[i] = present && (i + 1) % ((uint64_t)present + 1)
                          ? i % K_KEYS
                          : FIGURE_ABSENT + i;
}

/* The best time per key of a few rounds; hashes are made before. */
static double ask_ns(const bly_filter *f, const struct k_keys *keys)
{
    static uint64_t hashes[K_QUESTIONS];
    double best = INFINITY;
    bly_hash_ints(bly_hasher_of(f), keys->at, K_QUESTIONS, hashes);
    for (int round = 0; round < FIGURE_ROUNDS; round++) {
        const double start = clock_thread_ns();
        for (size_t i = 0; i < K_QUESTIONS; i++)
            bly_has_hash(f, hashes[i]);
        best = fmin(best, (clock_thread_ns() - start) / K_QUESTIONS);
    }
    return best;
}

/* Bits per key of an array that k probes fill by half, and of one that is
 * planned for 1 %. */
static double half_full(unsigned k)
{
    return k / log(2);
}

static double as_its_program(unsigned k)
{
    (void)k;
    return -log(0.01) / (log(2) * log(2));
}

static bly_filter *k_filter(struct figure_run *run, unsigned k,
                            double (*bits_per_key)(unsigned))
{
    char options[20];
    const bly_spec spec =
        SPEC(.kind = "classic", .items = K_KEYS,
             .bits = (uint64_t)(bits_per_key(k) * K_KEYS), .seed = run->seed);
    snprintf(options, sizeof options, "k=%u", k);
    return figure_filter(run, &spec, options);
}

static double add_ns(struct figure_run *run, unsigned k)
{
    double best = INFINITY;
    for (int round = 0; round < FIGURE_ROUNDS; round++) {
        bly_filter *f = k_filter(run, k, half_full);
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

/* How much slower the last k is than the first from 4 on: with fewer, a branch
 * is missing that is as hard to predict as the others. */
static double last_over_first(const struct figure_series *s)
{
    size_t i = 0;
    while (i + 1 < s->npoints && s->points[i].x < 4)
        i++;
    return s->points[s->npoints - 1].measured / s->points[i].measured;
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
    enum { CONTAINED, ABSENT, ABSENT_FIXED, TEN, HUNDRED, NMIXES };
    static const struct {
        const char *name;
        unsigned present; /* keys before one that is absent */
        double (*bits_per_key)(unsigned);
    } mixes[NMIXES] = {
        [CONTAINED] = { "contained (figure 4)", UINT32_MAX, half_full },
        [ABSENT] = { "absent (figure 5), half full", 0, half_full },
        [ABSENT_FIXED] = { "absent (figure 5), 9.585 bits per key", 0,
                           as_its_program },
        [TEN] = { "10 contained to 1 absent (figure 6)", 10, half_full },
        [HUNDRED] = { "100 to 1, as its program does", 100, half_full },
    };
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
        for (size_t i = 0; i < NMIXES; i++) {
            bly_filter *f = k_filter(run, k, mixes[i].bits_per_key);
            if (f && figure_add(run, f, 0, K_KEYS)) {
                keys_mixed(keys, mixes[i].present);
                figure_point(run, s[i], k, NAN, ask_ns(f, keys), NAN, NAN);
            }
            bly_free(f);
        }
    }
    free(keys);
    if (run->broken)
        return;
    struct figure_series *straight = figure_series(run, "correlation with k");
    struct figure_series *growth =
        figure_series(run, "last k over the first from 4 on");
    straight->unseen = growth->unseen = true;
    for (size_t i = 0; i < NMIXES; i++)
        if (mixes[i].present)
            figure_point(run, straight, (double)i + 1, 1, straightness(s[i]),
                         0.9, NAN);
    figure_point(run, growth, CONTAINED + 1, NAN, last_over_first(s[CONTAINED]),
                 2, NAN);
    /* 2 - 2^(1-k) probes on average: 1.9 at k = 4, and 2 in the end. */
    figure_point(run, growth, ABSENT + 1, 1.07, last_over_first(s[ABSENT]), NAN,
                 2);
    /* From 1.5 probes to 17, which take less than eleven times as long. */
    figure_point(run, growth, ABSENT_FIXED + 1, NAN,
                 last_over_first(s[ABSENT_FIXED]), 2, NAN);
}

const struct figure figure_time_ask = {
    .name = "ask-time-against-k",
    .title = "Time of a question against the number of probes",
    .source = "Seminar paper, figures 4 to 6.",
    .about =
        "A key that is contained needs all k probes: a straight line. One that "
        "is absent is known to be so after two on average, whatever k is, if "
        "the array is half full. The paper's program keeps 9.585 bits per key "
        "and changes k alone: then the array fills up, and absent keys take "
        "almost all probes, too. So the flat line of figure 5 belongs to "
        "neither; it is the time of clock() alone, for the program ignores "
        "the answer and its compiler (gcc -O3) therefore leaves the question "
        "out. The mix of figure 6 is printed as 10 to 1, while the program "
        "asks 100 to 1; both are mostly contained keys.",
    .machine = true,
    .run = time_ask_run,
};
