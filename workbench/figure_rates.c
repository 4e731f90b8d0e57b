/*
 * figure_rates.c - how often a plain filter errs
 *
 * Rate against k and against bits per key, with the textbook formula beside a
 * measured filter, and how little the number of zeros strays from its mean.
 */
#include <math.h>

#include "workbench/figure.h"

/* What the library plans for n keys in m bits with k probes: the exact rate.
 * The papers' (1 - (1 - 1/m)^(kn))^k is a little less. NAN if it cannot. */
static double exact_rate(struct figure_run *run, uint64_t n, uint64_t m,
                         unsigned k)
{
    char options[40];
    snprintf(options, sizeof options, "k=%u", k);
    const bly_spec spec =
        SPEC(.kind = "classic", .items = n, .bits = m, .seed = run->seed);
    bly_filter *f = figure_filter(run, &spec, options);
    bly_stats stats = { .fpr_at_capacity = NAN };
    if (f)
        bly_peek(f, &stats);
    bly_free(f);
    return stats.fpr_at_capacity;
}

/* The mean rate of nfilters classic filters of m bits and k probes with n keys
 * in each, by nqueries keys that are in none; their seeds differ. */
static double mean_rate(struct figure_run *run, uint64_t n, uint64_t m,
                        unsigned k, uint64_t nqueries, unsigned nfilters)
{
    double sum = 0;
    char options[40];
    snprintf(options, sizeof options, "k=%u", k);
    for (unsigned i = 0; i < nfilters; i++) {
        const bly_spec spec = SPEC(.kind = "classic", .items = n, .bits = m,
                                   .seed = run->seed * 1000 + i);
        bly_filter *f = figure_filter(run, &spec, options);
        if (!f || !figure_add(run, f, 0, n))
            return NAN;
        sum += figure_share(f, FIGURE_ABSENT, nqueries);
        bly_free(f);
    }
    return sum / nfilters;
}

/* ------------------------------------------------------- rate against k */

static void rate_k_run(struct figure_run *run)
{
    const uint64_t n = 1000, m = 8000;
    const uint64_t nqueries = run->full ? 200000 : 50000;
    const unsigned nfilters = run->full ? 200 : 40;
    run->x = AXIS(.label = "probes per key", .unit = "k");
    run->y = FIGURE_RATES;
    run->references[run->nreferences++] = (struct plot_reference){
        .vertical = true, .at = 8 * log(2), .label = "8 ln 2 = 5.55"
    };
    struct figure_series *s = figure_series(run, "1000 keys in 8000 bits");
    for (unsigned k = 1; k <= 16; k++) {
        const double expected = exact_rate(run, n, m, k);
        figure_judge(run, s, k, expected,
                     mean_rate(run, n, m, k, nqueries, nfilters),
                     figure_rate_sd(expected, (double)n, (double)m, k,
                                    (double)nqueries, nfilters));
    }
    figure_note(run,
                "The least rate is at k = 6, %.4f %%; k = 5 gives %.4f %%. The "
                "papers' formula, (1 - (1 - 1/m)^(kn))^k, gives %.4f %% for k "
                "= 6.",
                100 * exact_rate(run, n, m, 6), 100 * exact_rate(run, n, m, 5),
                100 * pow(-expm1(6 * (double)n * log1p(-1 / (double)m)), 6));
}

const struct figure figure_rate_k = {
    .name = "rate-against-k",
    .title = "Rate of a plain filter against the number of probes",
    .source = "Slides; survey notes; seminar paper, formula (3).",
    .about = "With few probes, a key is confused with others because it leaves "
             "few marks, with many because the array fills up. The best number "
             "is m/n ln 2; a whole number beside it costs next to nothing.",
    .run = rate_k_run,
};

/* -------------------------------------------- rate against bits per key */

static void rate_bits_run(struct figure_run *run)
{
    const uint64_t n = run->full ? 100000 : 20000;
    const unsigned nfilters = run->full ? 10 : 3;
    run->x = AXIS(.label = "memory", .unit = "bits per key");
    run->y = FIGURE_RATES;
    struct figure_series *s = figure_series(run, "plain filter, best k");
    struct figure_series *bound = figure_series(run, "lower bound, 2^-bits");
    for (unsigned c = 2; c <= 20; c += 2) {
        unsigned k = (unsigned)lround(c * log(2));
        if (k < 1)
            k = 1;
        const double m = (double)n * c;
        const double expected = exact_rate(run, n, (uint64_t)m, k);
        double nqueries = 400 / expected;
        if (nqueries < 100000)
            nqueries = 100000;
        if (nqueries > 5e6)
            nqueries = 5e6;
        figure_judge(
            run, s, c, expected,
            mean_rate(run, n, (uint64_t)m, k, (uint64_t)nqueries, nfilters),
            figure_rate_sd(expected, (double)n, m, k, nqueries, nfilters));
        figure_point(run, bound, c, exp2(-(double)c), NAN, NAN, NAN);
    }
    figure_note(run, "A plain filter needs 1.44 times the bits of the bound.");
}

const struct figure figure_rate_bits = {
    .name = "rate-against-bits",
    .title = "Rate of a plain filter against its memory",
    .source = "Survey notes; seminar paper, formula (4).",
    .about = "Every 4.8 bits per key divide the rate by ten. No filter needs "
             "less than log2(1/rate) bits per key; the plain one is 44 % above "
             "that, which other kinds save.",
    .run = rate_bits_run,
};

/* -------------------------------------------- how the number of zeros lies */

static void zeros_run(struct figure_run *run)
{
    const uint64_t n = 1000, m = 8000;
    const double k = 6, kn = 6000;
    const unsigned nfilters = run->full ? 20000 : 3000;
    const double mean = (double)m * exp(kn * log1p(-1 / (double)m));
    const double load = kn / (double)m, zero = exp(-load);
    const double sd = sqrt((double)m * zero * (1 - (1 + load) * zero));
    enum { NBINS = 41, WIDTH = 5 };
    double bins[NBINS] = { 0 }, sum = 0, squares = 0;
    for (unsigned i = 0; i < nfilters; i++) {
        const bly_spec spec = SPEC(.kind = "classic", .items = n, .bits = m,
                                   .seed = run->seed * nfilters + i);
        bly_filter *f = figure_filter(run, &spec, "k=6");
        if (!f || !figure_add(run, f, 0, n))
            return;
        bly_stats stats;
        bly_stat(f, &stats);
        bly_free(f);
        const double z = (1 - stats.fill) * (double)m;
        const double bin = floor((z - mean) / WIDTH + 0.5) + NBINS / 2;
        if (bin >= 0 && bin < NBINS)
            bins[(int)bin]++;
        sum += z;
        squares += (z - mean) * (z - mean);
    }
    run->x = AXIS(.label = "zeros in the array");
    run->y = AXIS(.label = "share of filters", .format = PLOT_PERCENT);
    run->references[run->nreferences++] = (struct plot_reference){
        .vertical = true, .at = mean, .label = "mean"
    };
    struct figure_series *s =
        figure_series(run, "m = %d, k = %d, n = %d", (int)m, (int)k, (int)n);
    for (int i = 0; i < NBINS; i++) {
        const double from = (i - NBINS / 2 - 0.5) * WIDTH / sd;
        const double share =
            0.5 * (erf((from + WIDTH / sd) / sqrt(2)) - erf(from / sqrt(2)));
        /* A bin holds whole numbers: it may lie half of one beside. */
        const double beside = 0.5 / sd * fabs(from) * share;
        figure_judge(
            run, s, mean + (i - NBINS / 2) * WIDTH, share, bins[i] / nfilters,
            sqrt(share * (1 - share) / nfilters) + beside / 4 + 0.5 / nfilters);
    }
    struct figure_series *facts = figure_series(run, "mean, then deviation");
    facts->unseen = true;
    figure_judge(run, facts, 0, mean, sum / nfilters, sd / sqrt(nfilters));
    figure_judge(run, facts, 1, sd, sqrt(squares / nfilters),
                 sd / sqrt(2.0 * nfilters));
}

const struct figure figure_zeros = {
    .name = "zeros",
    .title = "How far the number of zeros strays",
    .source = "Survey notes: concentration of the zero bits.",
    .about = "The same filter with other hash functions has almost the same "
             "number of zeros: 3779, give or take 26, of 8000. That is why "
             "the rate of one filter can be read from a formula, and the "
             "number of its keys from its ones.",
    .run = zeros_run,
};
