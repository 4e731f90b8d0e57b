/*
 * bench_run.c - which cells of a bench are measured, how often, and in turns
 *
 * How long a cell takes is told by a trial with few keys. Unless their number
 * is given, there are as many rounds as the time allows, but at least three,
 * the fewest that have a median: the slowest cells are left out until three
 * rounds of the others fit, and so is every cell that does not fit into memory.
 */
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "report/say.h"
#include "report/show.h"
#include "workbench/bench.h"

#define LEAST_ROUNDS 3
/* The trial that tells how long all will take. */
#define TRIAL_ITEMS 20000

/* ------------------------------------------------------------------ plans */

/* The bytes of a Bloom filter of n keys, for the table of F. */
static uint64_t footprint(uint64_t n, double fpr)
{
    const double nbytes = -log(fpr) / 0.480453013918201 / 8 * (double)n;
    return nbytes < 0x1p62 ? (uint64_t)nbytes + 1 : (uint64_t)1 << 62;
}

/* How much slower an access is at a footprint than in the trial, roughly. */
static double slowness(uint64_t nbytes)
{
    return nbytes < 1 << 20 ? 1 : nbytes < 16 << 20 ? 1.5 : 3;
}

/* Seconds a round of cell takes, from one at few keys. */
static void estimate(struct bench_cell *cell, double fpr,
                     struct bench_cell *trial, struct bench_scratch *s)
{
    *trial = (struct bench_cell){ .who = cell->who, .items = TRIAL_ITEMS };
    const double start = clock_ns();
    if (!cell->who->plan(cell->who, fpr, trial))
        bench_round(trial, fpr, 1, &bench_trial, s);
    const double whole = clock_ns() - start;
    double adding = 0, asking = 0;
    if (!trial->nrounds) {
        cell->seconds = whole * 1e-9;
        return;
    }
    const double *const ns = trial->rounds[0].ns;
    adding =
        isnan(ns[OP_ADD]) ? fmax(ns[OP_BUILD], ns[OP_ONE_ADD]) : ns[OP_ADD];
    for (int op = OP_ASK_ABSENT; op < NOPS; op++)
        if (!isnan(ns[op]) && op != OP_ONE_ADD)
            asking +=
                fmax(ns[op] * (double)BENCH_ASK_CALL,
                     fmin(ns[op] * (double)bench_full.asked, BENCH_ASK_NS));
    /* Keys and places are made beside the clock, memory is touched once. */
    const double added =
        fmax((double)cell->items, (double)bench_full.least_added);
    cell->seconds =
        ((adding + 2) * added * slowness(cell->bytes) +
         asking * slowness(cell->bytes) + 6e7 + 0.5 * (double)cell->bytes) *
        1e-9;
}

/* Say why a cell is not measured, if it is not. */
static void admit(struct bench_cell *cell, double fpr)
{
    const char *const why = cell->who->plan(cell->who, fpr, cell);
    const uint64_t left = bench_memory_left();
    if (why)
        snprintf(cell->why, sizeof cell->why, "%s", why);
    else if (cell->needs > left)
        snprintf(cell->why, sizeof cell->why,
                 "skipped: measuring it takes %s, and only %s are free",
                 show_bytes(cell->needs), show_bytes(left));
}

/* Seconds that all rounds may take; infinite where only their number is
 * given. */
static double budget(const struct bench_results *r)
{
    return r->nrounds && !r->minutes ? INFINITY : 60 * (double)r->minutes;
}

/* Leave out what takes longest until the rest fits the time. What costs most is
 * the largest sizes, so curves lose their right ends and no points between. */
static void trim(struct bench_results *r)
{
    const unsigned least = r->nrounds ? r->nrounds : LEAST_ROUNDS;
    const double all = r->seconds;
    while (r->seconds * least > budget(r)) {
        struct bench_cell *longest = NULL;
        for (size_t i = 0; i < r->ncells; i++)
            if (!r->cells[i].why[0] &&
                (!longest || r->cells[i].seconds >= longest->seconds))
                longest = &r->cells[i];
        if (!longest)
            return;
        snprintf(longest->why, sizeof longest->why,
                 "skipped: a round of it takes about %.0f s; --minutes %.0f is "
                 "enough for %u of all, --rounds 1 for one",
                 ceil(longest->seconds), ceil(all * least / 60), least);
        r->seconds -= longest->seconds;
    }
}

/* ------------------------------------------------------------------- runs */

static void run_rounds(struct bench_results *r, struct bench_scratch *s)
{
    const double start = clock_ns();
    const uint64_t total = (uint64_t)(1e3 * r->seconds);
    uint64_t nkeys = 0;
    double last = 0;
    for (unsigned round = 0;; round++) {
        const double from = clock_ns();
        uint64_t done = 0;
        const double spent = (from - start) * 1e-9;
        /* An estimate may be short: then it is twice the time at most. */
        const double most = round < LEAST_ROUNDS ? 2 * budget(r) : budget(r);
        if (round >= (r->nrounds ? r->nrounds : BENCH_MAX_ROUNDS) ||
            (round && spent + last > most))
            break;
        for (size_t i = 0; i < r->ncells; i++) {
            struct bench_cell *const c = &r->cells[i];
            const double used = (clock_ns() - start) * 1e-9;
            if (c->why[0])
                continue;
            if (!round && used > 2 * budget(r))
                snprintf(c->why, sizeof c->why,
                         "skipped: the time was up; --rounds 1 measures it");
            else if (c->needs / 2 > bench_memory_left())
                snprintf(c->why, sizeof c->why, "skipped: memory ran short");
            else
                bench_round(c, r->fpr, r->nthreads, &bench_full, s);
            nkeys += c->items;
            done += (uint64_t)(1e3 * c->seconds);
            if (isinf(budget(r)))
                progress_at(nkeys, round * total + done, r->nrounds * total);
            else
                progress_at(nkeys, 0, 0);
        }
        last = (clock_ns() - from) * 1e-9;
    }
    progress_clear();
}

/* The lines for the commands: as many as the largest filter has keys, within
 * what DCSO's bloom does in some seconds. */
#define MOST_LINES 10000000

static void run_commands(struct bench_results *r, struct bench_lines *lines)
{
    const uint64_t largest = r->sizes[r->nsizes - 1];
    const unsigned nrounds = r->nrounds && r->nrounds < 3 ? r->nrounds : 3;
    bench_lines(largest < MOST_LINES ? largest : MOST_LINES, r->fpr, nrounds,
                lines);
    r->lines = lines;
}

int bench_all(struct bench_results *r, const struct bench_contender *contenders,
              size_t n, struct bench_scratch *s, struct bench_lines *lines)
{
    struct bench_cell *const trial = malloc(sizeof *trial);
    if (!trial)
        return fail("out of memory");
    bool any = false;
    const double start = clock_ns(), worked = (double)clock();
    for (size_t i = 0; i < r->ncells; i++) {
        struct bench_cell *const cell = &r->cells[i];
        cell->who = &contenders[i % n];
        cell->items = r->sizes[i / n];
        admit(cell, r->fpr);
        if (!cell->why[0]) {
            any = true;
            estimate(cell, r->fpr, trial, s);
        }
    }
    /* Others may have the processor for part of the time. */
    const double busy = ((double)clock() - worked) / CLOCKS_PER_SEC * 1e9;
    const double times = fmax(1, (clock_ns() - start) / fmax(busy, 1));
    for (size_t i = 0; i < r->ncells; i++) {
        r->cells[i].seconds *= times;
        r->seconds += r->cells[i].seconds;
    }
    free(trial);
    if (!any)
        return fail("nothing can be measured: %s: %s", r->cells[0].who->name,
                    r->cells[0].why);
    trim(r);
    if (!r->json)
        bench_report_head(r);
    /* First, since a process that is made counts the memory that this one has
     * held to its own peak. */
    if (lines)
        run_commands(r, lines);
    progress_start(true);
    for (size_t i = 0; i < r->nsizes; i++) {
        r->footprints[i] = footprint(r->sizes[i], r->fpr);
        if (r->footprints[i] < bench_memory_left())
            bench_floor(r->footprints[i], &r->floors[i]);
        else
            r->floors[i] = (struct bench_floor){ NAN, NAN, NAN, NAN, 0, 0 };
    }
    r->huge_share = bench_floor_huge();
    run_rounds(r, s);
    bench_floor_close();
    return YES;
}
