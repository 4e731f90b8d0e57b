/*
 * figure_counts.c - how well kinds that count do it
 *
 * Streams of keys whose frequencies follow Zipf's law: key i comes with a
 * share of 1 / (i + 1)^s. The true counts are kept beside the filter.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/search.h"
#include "report/say.h"
#include "workbench/figure.h"

/* A stream of nevents keys below nkeys, and how often each came. */
struct stream {
    uint64_t nkeys, nevents;
    uint64_t *keys, *counts;
};

static void stream_free(struct stream *s)
{
    free(s->keys);
    free(s->counts);
}

/* The first key whose cumulated share passes u. */
static uint64_t zipf_key(const double *cumulated, uint64_t nkeys, double u)
{
    size_t at;
    LOWER_BOUND(at, nkeys - 1, cumulated[at] < u);
    return at;
}

static bool stream_make(struct figure_run *run, struct stream *s,
                        uint64_t nkeys, uint64_t nevents, double exponent,
                        uint64_t seed)
{
    double *cumulated = malloc(nkeys * sizeof *cumulated), sum = 0;
    *s = (struct stream){ .nkeys = nkeys, .nevents = nevents };
    s->keys = malloc(nevents * sizeof *s->keys);
    s->counts = calloc(nkeys, sizeof *s->counts);
    const bool ok = cumulated && s->keys && s->counts;
    if (ok) {
        for (uint64_t i = 0; i < nkeys; i++)
            cumulated[i] = sum += pow((double)i + 1, -exponent);
        uint64_t state = seed * UINT64_C(0x2545f4914f6cdd1d) + 1;
        for (uint64_t i = 0; i < nevents; i++) {
            const double u = (double)(random_next(&state) >> 11) * 0x1p-53;
            s->keys[i] = zipf_key(cumulated, nkeys, u * sum);
            s->counts[s->keys[i]]++;
        }
    } else {
        run->broken = true;
        fail("%s: out of memory", run->figure->name);
        free(s->keys);
        free(s->counts);
    }
    free(cumulated);
    return ok;
}

/* What a filter says of the keys that came, or of all there are. */
struct accuracy {
    double wrong;       /* share of keys whose count is not the true one */
    double rmse;        /* root of the mean square error */
    double mean, worst; /* overestimate */
    double below;       /* share of keys whose count is too low */
    double nkeys;
};

static struct accuracy accuracy_of(const bly_filter *f, const struct stream *s,
                                   bool all)
{
    struct accuracy a = { 0 };
    for (uint64_t i = 0; i < s->nkeys; i++) {
        if (!s->counts[i] && !all)
            continue;
        uint64_t hash, count = 0;
        bly_hash_ints(bly_hasher_of(f), &i, 1, &hash);
        bly_count_hashes(f, &hash, 1, &count);
        const double error = (double)count - (double)s->counts[i];
        a.nkeys++;
        a.wrong += error != 0;
        a.below += error < 0;
        a.rmse += error * error;
        a.mean += error;
        a.worst = fmax(a.worst, error);
    }
    a.wrong /= a.nkeys;
    a.below /= a.nkeys;
    a.mean /= a.nkeys;
    a.rmse = sqrt(a.rmse / a.nkeys);
    return a;
}

static bool stream_add(struct figure_run *run, bly_filter *f,
                       const struct stream *s)
{
    if (bly_add_ints(f, s->keys, s->nevents, NULL, NULL)) {
        run->broken = true;
        fail("%s: %s", run->figure->name, bly_error());
    }
    return !run->broken;
}

/* ---------------------------------------------------------------- spectral */

enum { SELECTION, INCREASE, RECURRING, NRULES };

static void spectral_run(struct figure_run *run)
{
    static const char *const rules[NRULES] = { "selection", "increase",
                                               "recurring" };
    static const double exponents[] = { 0, 0.5, 1, 1.5 };
    const unsigned nfilters = run->full ? 100 : 15;
    const double n = 1000, k = 5, m = floor(k * n / 0.7);
    struct figure_series *s[NRULES], *order;
    run->x = AXIS(.label = "exponent of Zipf's law");
    run->y = AXIS(.label = "keys with a wrong count", .format = PLOT_PERCENT);
    for (int rule = 0; rule < NRULES; rule++)
        s[rule] = figure_series(run, "minimum %s", rules[rule]);
    order = figure_series(run, "over minimum selection");
    order->unseen = true;
    for (size_t e = 0; e < sizeof exponents / sizeof *exponents; e++) {
        double wrong[NRULES] = { 0 }, came = n;
        for (unsigned i = 0; i < nfilters && !run->broken; i++) {
            struct stream stream;
            if (!stream_make(run, &stream, (uint64_t)n, 50000, exponents[e],
                             run->seed * 1000 + i))
                return;
            for (int rule = 0; rule < NRULES; rule++) {
                char options[60];
                snprintf(options, sizeof options, "k=5 width=32 update=%s",
                         rules[rule]);
                /* Recurring has a second array of half the size. */
                const bly_spec spec =
                    SPEC(.kind = "spectral", .items = (uint64_t)n,
                         .bits =
                             (uint64_t)(m * 32 * (rule == RECURRING ? 1.6 : 1)),
                         .seed = run->seed * 1000 + i);
                bly_filter *f = figure_filter(run, &spec, options);
                if (f && stream_add(run, f, &stream)) {
                    const struct accuracy a = accuracy_of(f, &stream, false);
                    wrong[rule] += a.wrong / nfilters;
                    came = a.nkeys; /* the rare ones may not have */
                }
                bly_free(f);
            }
            stream_free(&stream);
        }
        const double bloom = pow(-expm1(-k * came / m), k);
        for (int rule = 0; rule < NRULES; rule++)
            if (rule == SELECTION)
                figure_judge(run, s[rule], exponents[e], bloom, wrong[rule],
                             figure_rate_sd(bloom, came, m, k, came, nfilters));
            else
                figure_point(run, s[rule], exponents[e], NAN, wrong[rule], NAN,
                             NAN);
        for (int rule = 1; rule < NRULES; rule++)
            figure_point(run, order, exponents[e], NAN,
                         wrong[rule] / wrong[SELECTION], NAN, 1);
    }
}

const struct figure figure_spectral = {
    .name = "spectral",
    .title = "Three ways to count with a spectral filter",
    .source = "Spectral filter: 1000 keys, 50000 events, k = 5, kn/m = 0.7.",
    .about =
        "By minimum selection a count is wrong as often as a plain filter "
        "errs. Raising only the smallest counters halves that, but cannot be "
        "undone. The recurring minimum is as good and can be undone, at the "
        "cost of half as many counters again; at equal memory it loses.",
    .run = spectral_run,
};

/* --------------------------------------------------------------- count-min */

static void countmin_run(struct figure_run *run)
{
    static const struct {
        double exponent, plain, conservative; /* mean overestimates */
    } rows[] = { { 0.8, 30.6, 16.2 }, { 1.0, 15.8, 8.7 }, { 1.2, 5.3, 3.2 } };
    const uint64_t nevents = 200000, nkeys = 50000;
    const unsigned nfilters = run->full ? 20 : 2;
    run->x = AXIS(.label = "exponent of Zipf's law");
    run->y = AXIS(.label = "mean overestimate");
    struct figure_series *plain = figure_series(run, "plain");
    struct figure_series *conservative = figure_series(run, "conservative");
    struct figure_series *below = figure_series(run, "counts too low");
    struct figure_series *beyond = figure_series(run, "largest, plain");
    below->unseen = beyond->unseen = true;
    for (size_t i = 0; i < sizeof rows / sizeof *rows && !run->broken; i++) {
        double mean[2] = { 0 }, low = 0, worst = 0;
        for (unsigned j = 0; j < nfilters; j++) {
            struct stream stream;
            if (!stream_make(run, &stream, nkeys, nevents, rows[i].exponent,
                             run->seed * 100 + j))
                return;
            for (int update = 0; update < 2; update++) {
                const bly_spec spec = { .kind = "countmin",
                                        .seed = run->seed * 100 + j };
                bly_filter *f = figure_filter(
                    run, &spec,
                    update ? "error=0.001 delta=0.01 update=conservative"
                           : "error=0.001 delta=0.01");
                if (f && stream_add(run, f, &stream)) {
                    const struct accuracy a = accuracy_of(f, &stream, true);
                    mean[update] += a.mean / nfilters;
                    low += a.below;
                    if (!update)
                        worst = fmax(worst, a.worst);
                }
                bly_free(f);
            }
            stream_free(&stream);
        }
        /* The table's values come from single runs: 5 % either way. */
        figure_point(run, plain, rows[i].exponent, rows[i].plain, mean[0],
                     0.95 * rows[i].plain, 1.05 * rows[i].plain);
        figure_point(run, conservative, rows[i].exponent, rows[i].conservative,
                     mean[1], 0.9 * rows[i].conservative,
                     1.1 * rows[i].conservative);
        figure_point(run, below, rows[i].exponent, 0, low, 0, 0);
        figure_point(run, beyond, rows[i].exponent, NAN, worst, NAN,
                     0.001 * (double)nevents);
    }
}

const struct figure figure_countmin = {
    .name = "count-min",
    .title = "Count-min, plain and conservative",
    .source = "Count-min sketch, error 0.001, delta 0.01; 200000 events, 50000 "
              "keys.",
    .about =
        "Counts are never too low. Raising only the counters that must be "
        "raised halves the error; the price is that nothing can be removed. "
        "Both stay well below the guaranteed bound, which is 200 here.",
    .run = countmin_run,
};

/* -------------------------------------------------------------- space-code */

static void spacecode_run(struct figure_run *run)
{
    const unsigned nkeys = run->full ? 300 : 100;
    const double most = run->full ? 1e5 : 1e4;
    run->x = AXIS(.label = "times the key came", .scale = PLOT_LOG,
                  .format = PLOT_SI);
    run->y = AXIS(.label = "multiples of the true count");
    struct figure_series *mean = figure_series(run, "mean of the estimates");
    struct figure_series *spread = figure_series(run, "root mean square error");
    const bly_spec spec = SPEC(.kind = "spacecode", .items = nkeys * 12,
                               .fpr = 0.001, .seed = run->seed);
    bly_filter *f = figure_filter(run, &spec, "mean=1000");
    uint64_t first = 0;
    for (double times = 1; f && times <= most; times *= 3.1622776601683795) {
        const uint64_t n = (uint64_t)lround(times);
        double sum = 0, squares = 0;
        for (uint64_t i = first; i < first + nkeys; i++) {
            uint64_t hash, count;
            bly_hash_ints(bly_hasher_of(f), &i, 1, &hash);
            if (bly_increase_hashes(f, &hash, &n, 1, NULL) ||
                bly_count_hashes(f, &hash, 1, &count))
                count = 0;
            const double ratio = (double)count / (double)n;
            sum += ratio / nkeys;
            squares += (ratio - 1) * (ratio - 1) / nkeys;
        }
        first += nkeys;
        const double error = sqrt(squares);
        figure_point(run, mean, (double)n, 1, sum,
                     1 - 4 * error / sqrt(nkeys) - 0.1,
                     1 + 4 * error / sqrt(nkeys) + 0.1);
        figure_point(run, spread, (double)n, NAN, error, NAN, 0.6);
    }
    bly_free(f);
}

const struct figure figure_spacecode = {
    .name = "space-code",
    .title = "Counts over orders of magnitude, from bits alone",
    .source = "Space-code filter with several resolutions.",
    .about = "Each addition sets the bits of one of 32 groups, in arrays that "
             "record ever fewer of them. The relative error stays about the "
             "same from ten to a hundred thousand.",
    .run = spacecode_run,
};
