/*
 * figure_kinds.c - what is peculiar to a kind, as its paper shows it
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/filters.h"
#include "workbench/figure.h"

/* The value of a fact of a filter; NAN if it has none of that name. */
static double filter_fact(const bly_filter *f, const char *name)
{
    bly_stats stats;
    bly_stat(f, &stats);
    return fact_value(&stats, name);
}

/* ------------------------------------------------------------ the 2^-k rule */

static void halves_run(struct figure_run *run)
{
    const uint64_t n = 20000;
    const unsigned nfilters = run->full ? 20 : 4;
    run->x = AXIS(.label = "probes per key", .unit = "k");
    run->y = FIGURE_RATES;
    struct figure_series *s = figure_series(run, "n k / ln 2 bits");
    for (unsigned k = 1; k <= 12; k++) {
        const double m = ceil((double)n * k / log(2));
        const double queries = fmin(100000 * exp2(k / 2.0), 4e6);
        double sum = 0;
        char options[20];
        snprintf(options, sizeof options, "k=%u", k);
        for (unsigned i = 0; i < nfilters; i++) {
            const bly_spec spec =
                SPEC(.kind = "classic", .items = n, .bits = (uint64_t)m,
                     .seed = run->seed * 100 + i);
            bly_filter *f = figure_filter(run, &spec, options);
            if (!f || !figure_add(run, f, 0, n))
                return;
            sum += figure_share(f, FIGURE_ABSENT, (uint64_t)queries);
            bly_free(f);
        }
        figure_judge(run, s, k, exp2(-(double)k), sum / nfilters,
                     figure_rate_sd(exp2(-(double)k), (double)n, m, k, queries,
                                    nfilters));
    }
}

const struct figure figure_halves = {
    .name = "halves",
    .title = "Half full, each probe halves the rate",
    .source = "Lecture slides: the error is at most 2^-k.",
    .about = "An array of n k / ln 2 bits becomes half full, and k probes then "
             "err with 2^-k. That is what it tends to; the exact rate lies a "
             "little above (n = 1000, k = 7: 0.0078189 and not 0.0078125).",
    .run = halves_run,
};

/* ---------------------------------------------------------- stuck counters */

/* The chance that a counter is hit `least` times or more, its tail summed. */
static double poisson_tail(double mean, unsigned least)
{
    double term = exp(-mean), tail = 0;
    for (unsigned i = 0; i < least; i++)
        term *= mean / (i + 1);
    for (unsigned i = least; i < least + 60; i++) {
        tail += term;
        term *= mean / (i + 1);
    }
    return tail;
}

static void overflow_run(struct figure_run *run)
{
    const uint64_t counters = run->full ? 4000000 : 500000;
    run->x = AXIS(.label = "hits per counter", .unit = "kn/m");
    run->y =
        AXIS(.label = "share of counters at the ceiling", .scale = PLOT_LOG);
    run->references[run->nreferences++] = (struct plot_reference){
        .vertical = true, .at = log(2), .label = "as planned"
    };
    for (unsigned width = 2; width <= 4; width++) {
        struct figure_series *s = figure_series(run, "%u bits", width);
        const unsigned ceiling = (1u << width) - 1;
        char options[40];
        snprintf(options, sizeof options, "k=4 width=%u", width);
        const bly_spec spec = SPEC(.kind = "counting", .items = counters / 4,
                                   .bits = counters * width, .seed = run->seed);
        bly_filter *f = figure_filter(run, &spec, options);
        uint64_t added = 0;
        for (double load = 0.25; f && load <= 8 && !run->broken; load *= 2) {
            const uint64_t n = (uint64_t)(load * (double)counters / 4);
            figure_add(run, f, added, n - added);
            added = n;
            const double m = filter_fact(f, "counters");
            const double share = poisson_tail(4 * (double)n / m, ceiling);
            if (share * m >= 0.01)
                figure_judge(run, s, load, share, filter_fact(f, "stuck") / m,
                             sqrt(share / m) + 0.5 / m);
            else if (share >= 1e-18) /* none to be seen in so few counters */
                figure_point(run, s, load, share, NAN, NAN, NAN);
        }
        bly_free(f);
    }
    figure_note(
        run,
        "At %.2f hits per counter, a counter of 4 bits is hit 16 times, once "
        "more than it can count, with probability %.3g; the paper's bound is "
        "%.3g. It reaches its ceiling, 15, with probability %.3g.",
        log(2), poisson_tail(log(2), 16), pow(exp(1) * log(2) / 16, 16),
        poisson_tail(log(2), 15));
}

const struct figure figure_overflow = {
    .name = "counter-overflow",
    .title = "Counters that reach their ceiling",
    .source = "Survey notes and seminar paper, counting filter.",
    .about =
        "A counter at its ceiling stays there, since it no longer knows how "
        "often it was hit: that costs rate, never a key. Four bits are enough "
        "by many orders of magnitude as long as the filter is not overfilled.",
    .run = overflow_run,
};

/* ------------------------------------------------------------ deletability */

static double deletable_expected(double n, double m, double k, double r)
{
    const double q = log1p(-1 / m);
    const double p0 = exp(k * n * q);
    const double p1 = k * n / m * exp((k * n - 1) * q);
    const double clean = exp((k * n - 1) * q) * pow(p0 + p1, m / r - 1);
    return 1 - pow(1 - clean, k);
}

static double source_formula(double n, double m, double k, double r)
{
    const double q = log1p(-1 / m);
    const double clean = exp(k * n * q) + k * n / m * exp((k * n - 1) * q);
    return pow(1 - pow(clean, m / r), k);
}

/* The share of n keys that could be removed again, and its deviation between
 * filters. */
static double deletable_share(struct figure_run *run, uint64_t n, uint64_t m,
                              unsigned region, unsigned nfilters, double *sd)
{
    double sum = 0, squares = 0;
    uint64_t *hashes = malloc(n * sizeof *hashes);
    bly_status *each = malloc(n * sizeof *each);
    char options[40];
    snprintf(options, sizeof options, "k=7 region_bits=%u", region);
    for (unsigned i = 0; i < nfilters && hashes && each; i++) {
        const bly_spec spec =
            SPEC(.kind = "deletable", .items = n, .bits = m + m / region,
                 .seed = run->seed * 1000 + i);
        bly_filter *f = figure_filter(run, &spec, options);
        if (!f || !figure_add(run, f, 0, n))
            break;
        for (uint64_t j = 0; j < n; j++)
            hashes[j] = j;
        bly_hash_ints(bly_hasher_of(f), hashes, n, hashes);
        bly_remove_hashes(f, hashes, n, each);
        double removed = 0;
        for (uint64_t j = 0; j < n; j++)
            removed += each[j] == BLY_OK;
        sum += removed / (double)n;
        squares += removed / (double)n * removed / (double)n;
        bly_free(f);
    }
    free(hashes);
    free(each);
    const double mean = sum / nfilters;
    *sd = sqrt(fmax(squares / nfilters - mean * mean, 1e-8) / nfilters);
    return mean;
}

static void deletable_run(struct figure_run *run)
{
    static const unsigned regions[] = { 1, 2, 4, 5, 8, 10, 16, 20, 40 };
    const uint64_t n = 1000, m = 10000;
    run->x = AXIS(.label = "regions", .unit = "r", .scale = PLOT_LOG);
    run->y = AXIS(.label = "share of keys", .format = PLOT_PERCENT);
    struct figure_series *s = figure_series(run, "can be removed");
    struct figure_series *printed =
        figure_series(run, "formula (6) as printed");
    for (size_t i = sizeof regions / sizeof regions[0]; i-- > 0;) {
        const double r = (double)m / regions[i];
        double sd;
        const double measured =
            deletable_share(run, n, m, regions[i], run->full ? 200 : 30, &sd);
        const double expected = deletable_expected((double)n, (double)m, 7, r);
        /* The formula takes a key's regions for independent: 1 % at most. */
        figure_judge(run, s, r, expected, measured, sd + 0.0025);
        figure_point(run, printed, r,
                     source_formula((double)n, (double)m, 7, r), NAN, NAN, NAN);
    }
}

const struct figure figure_deletable = {
    .name = "deletability",
    .title = "Keys that can be removed, against regions",
    .source = "Seminar paper, deletable filter, formula (6). 1000 keys in "
              "10000 bits, k = 7.",
    .about =
        "A key can be removed if one of its bits lies in a region without "
        "collisions, which is likelier the smaller regions are. The formula "
        "as printed falls where it must rise: it gives the keys that can not "
        "be removed, and takes an arbitrary region for one of the key's own.",
    .run = deletable_run,
};

/* ---------------------------------------------------------- scalable growth */

static void growth_run(struct figure_run *run)
{
    const uint64_t first = 1000, last = run->full ? 4000000 : 300000;
    run->x = AXIS(.label = "keys added", .scale = PLOT_LOG, .format = PLOT_SI);
    run->y = FIGURE_RATES;
    struct figure_series *grown = figure_series(run, "scalable");
    struct figure_series *fixed = figure_series(run, "classic for 1000 keys");
    struct figure_series *bits = figure_series(run, "bits per key, scalable");
    bits->unseen = true;
    const bly_spec spec = SPEC(.kind = "scalable", .items = first, .fpr = 0.01,
                               .seed = run->seed);
    bly_spec plain = spec;
    plain.kind = "classic";
    bly_filter *f = figure_filter(run, &spec, NULL);
    bly_filter *c = figure_filter(run, &plain, NULL);
    uint64_t added = 0;
    for (uint64_t n = first; f && c && n <= last && !run->broken; n *= 2) {
        figure_add(run, f, added, n - added);
        if (n <= 64 * first)
            figure_add(run, c, added, n - added);
        added = n;
        const double queries = 1e6;
        figure_point(run, grown, (double)n, NAN,
                     figure_share(f, FIGURE_ABSENT, (uint64_t)queries), NAN,
                     0.01 + 4 * sqrt(0.01 / queries));
        if (n <= 64 * first)
            figure_point(run, fixed, (double)n, NAN,
                         figure_share(c, FIGURE_ABSENT, 100000), NAN, NAN);
        bly_stats stats;
        bly_stat(f, &stats);
        figure_point(run, bits, (double)n, NAN, (double)stats.bits / (double)n,
                     NAN, NAN);
    }
    bly_free(f);
    bly_free(c);
    run->references[run->nreferences++] =
        (struct plot_reference){ .at = 0.01, .label = "promised" };
}

const struct figure figure_growth = {
    .name = "growth",
    .title = "A filter that grows keeps its rate",
    .source = "Seminar paper, scalable filter; the compound rate it leaves "
              "out.",
    .about = "Both were made for 1000 keys at 1 %. A plain filter fills up; a "
             "scalable one adds layers whose rates add up to no more than "
             "what was promised.",
    .run = growth_run,
};

/* ----------------------------------------------- vicounting and counting */

static void increments_run(struct figure_run *run)
{
    static const struct {
        const char *name, *kind, *options;
        double width;
    } rows[] = {
        { "counting, 4 bits", "counting", "width=4", 4 },
        { "increments 4 to 7, 7 bits", "vicounting", "increments=l4 width=7",
          7 },
        { "increments 8 to 15, 8 bits", "vicounting", "increments=l8 width=8",
          8 },
        { "increments 8, 12, 14, 15, 8 bits", "vicounting",
          "increments=s width=8", 8 },
    };
    const uint64_t n = run->full ? 100000 : 20000;
    run->x = AXIS(.label = "memory", .unit = "bits per key");
    run->y = FIGURE_RATES;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct figure_series *s = figure_series(run, "%s", rows[i].name);
        for (unsigned c = 20; c <= 50 && !run->broken; c += 10) {
            const bly_spec spec = SPEC(.kind = rows[i].kind, .items = n,
                                       .bits = n * c, .seed = run->seed);
            bly_filter *f = figure_filter(run, &spec, rows[i].options);
            if (!f || !figure_add(run, f, 0, n))
                break;
            bly_stats stats;
            bly_peek(f, &stats);
            const double queries = run->full ? 5e6 : 1e6;
            const double k = fact_value(&stats, "k");
            const double m = fact_value(&stats, "counters");
            figure_judge(run, s, c, stats.fpr_at_capacity,
                         figure_share(f, FIGURE_ABSENT, (uint64_t)queries),
                         figure_rate_sd(stats.fpr_at_capacity, (double)n, m, k,
                                        queries, 1) +
                             0.5 / queries);
            bly_free(f);
        }
    }
}

const struct figure figure_increments = {
    .name = "increments",
    .title = "Counting by increments, at equal memory",
    .source = "Seminar paper, variable-increment counting filter.",
    .about =
        "Each probe adds a number of its own instead of one, and a counter "
        "that could not be such a sum proves absence. Counters are wider, but "
        "so many fewer are needed that the filter is smaller: the paper's "
        "statement that it merely costs more memory is wrong.",
    .run = increments_run,
};

/* ------------------------------------------------------------ cuckoo load */

static void cuckoo_run(struct figure_run *run)
{
    static const struct {
        unsigned bucket, fingerprint;
        double load; /* at the first failure, of 2^18 buckets */
    } rows[] = {
        { 1, 16, 0.50 }, { 2, 12, 0.86 }, { 4, 12, 0.96 }, { 8, 12, 0.988 }
    };
    static const char *const names[] = { "1", "2", "4", "8" };
    const double buckets = run->full ? 0x1p18 : 0x1p15;
    run->x = AXIS(.label = "slots of a bucket");
    run->x.categories = names;
    run->x.ncategories = 4;
    run->y = AXIS(.label = "load when the first key is refused",
                  .format = PLOT_PERCENT, .max = 1);
    struct figure_series *s = figure_series(run, "slots filled");
    s->style = PLOT_BARS;
    for (size_t i = 0; i < 4; i++) {
        const double slots = buckets * rows[i].bucket;
        double sum = 0;
        const unsigned nfilters = run->full ? 5 : 3;
        for (unsigned j = 0; j < nfilters; j++) {
            char options[40];
            snprintf(options, sizeof options, "bucket=%u fingerprint=%u",
                     rows[i].bucket, rows[i].fingerprint);
            const bly_spec spec =
                SPEC(.kind = "cuckoo", .items = (uint64_t)(slots * 0.3),
                     .bits = (uint64_t)(slots * rows[i].fingerprint),
                     .seed = run->seed * 10 + j);
            bly_filter *f = figure_filter(run, &spec, options);
            if (!f)
                return;
            uint64_t n = 0;
            while (bly_add(f, &n, sizeof n) == BLY_OK)
                n++;
            const double held = filter_fact(f, "buckets") * rows[i].bucket;
            sum += (double)n / held;
            bly_free(f);
        }
        figure_point(run, s, (double)i, rows[i].load, sum / nfilters,
                     rows[i].load - 0.03, rows[i].load + 0.03);
    }
}

const struct figure figure_cuckoo = {
    .name = "cuckoo-load",
    .title = "How full a cuckoo filter becomes",
    .source =
        "Cuckoo filter of 2^18 buckets; expected is when the first key of "
        "so many fails, somewhat above the known 50, 84, 95 and 98 %.",
    .about = "A key has two buckets. With one slot each the table is full at "
             "half, with four at 95 %: that is why four is usual, although "
             "doubling the slots doubles the chance of a false match.",
    .run = cuckoo_run,
};
