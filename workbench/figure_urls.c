/*
 * figure_urls.c - lists of dangerous pages: sorted prefixes and a Bloom filter
 */
#include <math.h>
#include <stdlib.h>

#include <bloomery/sorted.h>

#include "base/random.h"
#include "workbench/figure.h"

#define URLS_WIDTH 32

/* Bits that a gap takes in Rice's code, if n integers lie anywhere below 2^32:
 * b + 1 and, with q = 1 - n/2^32, one more for each 2^b of it. */
static double rice_bits(double n)
{
    const double m = exp2(URLS_WIDTH), q = 1 - n / m;
    double least = INFINITY;
    for (int b = 0; b < URLS_WIDTH; b++) {
        const double more = pow(q, exp2(b));
        least = fmin(least, b + 1 + more / (1 - more));
    }
    return least;
}

/* A set of n prefixes, and how often it has one that nobody put in. */
static bly_sorted *urls_set(struct figure_run *run, uint64_t n, double queries,
                            double *rate)
{
    uint64_t *const values = malloc(n * sizeof *values);
    uint64_t at = run->seed, wrong = 0;
    bly_sorted *s = NULL;
    for (uint64_t i = 0; values && i < n; i++)
        values[i] = random_next(&at) >> (64 - URLS_WIDTH);
    if (!values || bly_sorted_new(values, n, URLS_WIDTH, NULL, NULL, &s))
        run->broken = true;
    free(values);
    for (double i = 0; s && i < queries; i += 64) {
        uint64_t asked[64], found;
        for (size_t k = 0; k < 64; k++)
            asked[k] = random_next(&at) >> (64 - URLS_WIDTH);
        bly_sorted_has(s, asked, 64, &found);
        wrong += (uint64_t)__builtin_popcountll(found);
    }
    *rate = (double)wrong / (64 * ceil(queries / 64));
    return s;
}

static void urls_run(struct figure_run *run)
{
    const double queries = run->full ? 4e6 : 2e6;
    run->x = AXIS(.label = "entries", .scale = PLOT_LOG, .format = PLOT_SI);
    run->y = FIGURE_RATES;
    struct figure_series *const set = figure_series(run, "sorted prefixes");
    struct figure_series *const bloom =
        figure_series(run, "Bloom filter of the same bits");
    struct figure_series *const bits = figure_series(run, "bits per entry");
    bits->unseen = true;
    static const double sizes[] = { 1e5, 316228, 1e6, 3162278 };
    for (size_t i = 0; i < (run->full ? 4 : 3); i++) {
        const double n = sizes[i];
        double rate;
        bly_sorted *const s = urls_set(run, (uint64_t)round(n), queries, &rate);
        if (!s)
            return;
        const double items = (double)bly_sorted_items(s);
        const double p = items / exp2(URLS_WIDTH);
        figure_judge(run, set, n, p, rate, sqrt(p / queries));
        const double each = (double)bly_sorted_bits(s) / items;
        figure_point(run, bits, n, rice_bits(items), each,
                     0.995 * rice_bits(items), 1.005 * rice_bits(items));
        const bly_spec spec =
            SPEC(.kind = "classic", .items = (uint64_t)items,
                 .bits = bly_sorted_bits(s), .seed = run->seed);
        bly_sorted_free(s);
        bly_filter *const f = figure_filter(run, &spec, NULL);
        bly_prediction plan;
        if (!f || bly_plan(&spec, &plan) ||
            !figure_add(run, f, 0, (uint64_t)items))
            return;
        figure_judge(run, bloom, n, plan.fpr,
                     figure_share(f, FIGURE_ABSENT, (uint64_t)queries),
                     figure_rate_sd(plan.fpr, items, (double)plan.bits,
                                    round(each * log(2)), queries, 1));
        bly_free(f);
    }
    figure_note(run, "With a million entries: 13.6 bits each, "
                     "log2(2^32 / 10^6) + 1.5, and 0.023 %% of wrong answers; "
                     "the filter has 0.15 %%.");
}

const struct figure figure_urls = {
    .name = "urls-prefixes",
    .title = "A list of pages: sorted prefixes err less than a Bloom filter",
    .source = "Lists of browsers: prefixes of SHA-256 with Rice-coded gaps.",
    .about = "The first 32 bits of the hash of each entry, sorted, as gaps in "
             "Rice's code, take 13.6 bits per entry for a million entries. A "
             "question is wrong if its prefix is taken, one time in 4295. A "
             "Bloom filter of the same size is wrong one time in 694: for "
             "prefixes this short the set wins.",
    .run = urls_run,
};
