/*
 * figure_reconcile.c - what it costs to find out how two sets differ
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <bloomery/reconcile.h>

#include "base/random.h"
#include "workbench/figure.h"
#include "workbench/plan_sync.h"

/* How many symbols it takes until d differences are known, half of them on each
 * side; pieces of a symbol, and of a hundredth where there are many, so that
 * little is sent in vain. */
static double symbols_for(struct figure_run *run, uint64_t d, uint64_t *random)
{
    const bly_coding how = { 0 };
    const uint64_t most = 6 * d + 200;
    uint64_t *const all = malloc(d * sizeof *all);
    bly_coded *mine = NULL, *theirs = NULL;
    bly_differ *found = NULL;
    unsigned char *bytes = NULL;
    double symbols = NAN;
    for (uint64_t i = 0; all && i < d; i++)
        all[i] = random_next(random);
    if (all && !bly_coded_new(&how, 0, most, &mine) &&
        !bly_coded_new(&how, 0, most, &theirs) &&
        !bly_differ_new(&how, &found) && !bly_coded_add(mine, all, d / 2) &&
        !bly_coded_add(theirs, all + d / 2, d - d / 2) &&
        (bytes = malloc(bly_coded_room(theirs, most))) != NULL) {
        bly_status st = BLY_OK;
        for (uint64_t at = 0; !st && at < most && !bly_differ_done(found);
             at = bly_differ_symbols(found)) {
            const uint64_t to = at + 1 + (d < 200 ? 0 : at / 100);
            st = bly_differ_take(
                found, mine, bytes,
                bly_coded_write(theirs, at, to < most ? to : most, bytes));
        }
        if (bly_differ_done(found))
            symbols = (double)bly_differ_symbols(found);
    }
    run->broken |= isnan(symbols);
    free(bytes);
    free(all);
    bly_differ_free(found);
    bly_coded_free(mine);
    bly_coded_free(theirs);
    return symbols;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* For how many runs the symbols that plan --sync states were enough: 95 and 99
 * of 100, or more, since it rounds up to whole symbols. */
static void judge_plan(struct figure_run *run, struct figure_series *kept[2],
                       unsigned d, const double *took, unsigned runs)
{
    static const double shares[] = { 0.95, 0.99 };
    uint64_t most[2];
    plan_symbols(d, &most[0], &most[1]);
    for (unsigned p = 0; p < 2; p++) {
        const double sd = sqrt(shares[p] * (1 - shares[p]) / runs);
        unsigned content = 0;
        while (content < runs && took[content] * d <= (double)most[p] + 0.5)
            content++;
        figure_point(run, kept[p], d, shares[p], (double)content / runs,
                     shares[p] - 4 * sd, 1);
    }
}

static void reconcile_run(struct figure_run *run)
{
    static const unsigned sizes[] = { 1,  2,   3,   5,    10,    20,
                                      50, 100, 300, 1000, 10000, 100000 };
    enum { MOST_RUNS = 1000 };
    double took[MOST_RUNS];
    uint64_t random = run->seed;
    run->x =
        AXIS(.label = "elements in which the sets differ", .scale = PLOT_LOG);
    run->y = AXIS(.label = "symbols per difference");
    snprintf(run->subtitle, sizeof run->subtitle,
             "elements of 8 bytes; a symbol takes 17");
    struct figure_series *const mean = figure_series(run, "mean");
    struct figure_series *const rare = figure_series(run, "95 of 100 runs");
    struct figure_series *kept[2] = {
        figure_series(run, "runs within the plan's 95 percent"),
        figure_series(run, "runs within the plan's 99 percent"),
    };
    kept[0]->unseen = kept[1]->unseen = true;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const unsigned d = sizes[i], total = run->full ? 400000 : 40000;
        const unsigned runs = d > total / 4           ? 4
                              : total / d > MOST_RUNS ? MOST_RUNS
                                                      : total / d;
        double sum = 0;
        if (d > 10000 && !run->full)
            break;
        for (unsigned r = 0; r < runs; r++)
            sum += took[r] = symbols_for(run, d, &random) / d;
        qsort(took, runs, sizeof *took, by_size);
        /* At most 1.62 on average for few, and 1.40 from 10,000 on; four
         * deviations of the mean more where runs scatter. */
        const double slack = d < 100 ? 4 * 0.7 / sqrt(runs * sqrt(d)) : 0;
        figure_point(run, mean, d, NAN, sum / runs, 1,
                     (d < 10000 ? 1.64 : 1.40) + slack);
        if (runs >= 20)
            figure_point(run, rare, d, NAN, took[runs * 95 / 100], NAN, NAN);
        if (runs >= 100 && d < 200) /* pieces are a symbol */
            judge_plan(run, kept, d, took, runs);
    }
}

const struct figure figure_reconcile = {
    .name = "symbols-per-difference",
    .title = "Symbols that tell in what two sets differ",
    .source = "Yang, Gilad and Alizadeh, Practical Rateless Set "
              "Reconciliation, 2024 (bloomery/reconcile.h).",
    .about = "A single difference takes one symbol, a few take 1.6 each on "
             "average, many take 1.36. The sets may be of any size: what they "
             "share costs nothing.",
    .run = reconcile_run,
};
