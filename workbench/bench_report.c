/*
 * bench_report.c - what a bench found, for people
 *
 * The machine first; then for each number of keys what the filters are, what
 * batches cost, and what calls with few keys cost; then threads, commands, and
 * what the targets say. One contender alone gets a line an operation instead,
 * with quartiles.
 *
 *     2.41 1.27F+     nanoseconds a key, multiple of F, target met (- missed)
 */
#include <math.h>

#include "report/say.h"
#include "report/show.h"
#include "workbench/bench.h"

static void head_row(const char *name)
{
    printf("%-10s", name);
}

void bench_report_head(const struct bench_results *r)
{
    const struct bench_machine *const m = &r->machine;
    head_row("machine");
    printf("%s, %u processor%s", m->cpu, m->nprocessors,
           m->nprocessors == 1 ? "" : "s");
    if (m->l1)
        printf(", L1 %s", show_bytes(m->l1));
    if (m->l2)
        printf(", L2 %s", show_bytes(m->l2));
    if (m->l3)
        printf(", L3 %s", show_bytes(m->l3));
    if (m->memory)
        printf(", memory %s", show_bytes(m->memory));
    putchar('\n');
    head_row("pages");
    printf("%s (the system's setting for huge pages: %s)\n",
           r->small_pages ? "small pages only" : "2 MiB if available",
           m->pages);
    head_row("code");
    printf("%s\n", m->rows);
    head_row("time");
    if (r->nrounds)
        printf("about %.0f s: %u round%s\n", ceil(r->seconds * r->nrounds),
               r->nrounds, r->nrounds == 1 ? "" : "s");
    else
        printf("about %.0f s per round; as many rounds as %llu minute%s "
               "allow%s, at least three\n",
               ceil(r->seconds), (unsigned long long)r->minutes,
               r->minutes == 1 ? "" : "s", r->minutes == 1 ? "s" : "");
    fflush(stdout);
}

static void report_floor(const struct bench_results *r)
{
    printf("\n"
           "F, nanoseconds per random access to 64 bytes:\n"
           "%12s %10s %7s %11s %15s %9s %12s\n",
           "keys", "footprint", "F", "distances", "read and write", "farther",
           "not fetched");
    for (size_t i = 0; i < r->nsizes; i++) {
        const struct bench_floor *const f = &r->floors[i];
        printf("%12llu %10s ", (unsigned long long)r->sizes[i],
               show_bytes(r->footprints[i]));
        if (isnan(f->read))
            puts("   not measured: no memory");
        else
            printf("%7.2f %7u, %2u %15.2f %9.2f %12.2f\n", f->read, f->far,
                   f->near, f->update, f->deep, f->bare);
    }
    if (!r->small_pages && isfinite(r->huge_share))
        printf("%.0f %% of the memory was in huge pages.\n",
               100 * r->huge_share);
}

/* ---------------------------------------------------------------- tables */

/* An entry of a table: 15 columns. */
static void entry(const struct bench_cell *cell, int op, double fpr)
{
    const struct bench_figure ns = bench_ns(cell, op);
    const struct bench_figure f = bench_multiple(cell, op);
    const double target = bench_target(cell, op, fpr);
    if (isnan(ns.median))
        printf("%7s %7s", "", "-");
    else
        printf("%7.*f %5.*fF%c", ns.median < 100 ? 2 : 0, ns.median,
               f.median < 100 ? 2 : 0, f.median,
               isnan(target)        ? ' '
               : f.median <= target ? '+'
                                    : '-');
}

static const int batch_ops[] = { OP_ADD,         OP_ASK_ABSENT, OP_ASK_HALF,
                                 OP_ASK_PRESENT, OP_REMOVE,     OP_COUNT };
static const int call_ops[] = { OP_ONE_ADD,     OP_ONE_ABSENT, OP_ONE_HALF,
                                OP_ONE_PRESENT, OP_CALLS_64,   OP_CALLS_256,
                                OP_ACT };
#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* How far apart the quartiles are, as a share, in the middle of the figures. */
static double spread_of(const struct bench_cell *cell)
{
    double v[NOPS];
    size_t n = 0;
    for (int op = 0; op < NOPS; op++) {
        const struct bench_figure f = bench_multiple(cell, op);
        if (isfinite(f.median) && f.median > 0)
            v[n++] = (f.q3 - f.q1) / f.median;
    }
    return bench_figure_of(v, n).median;
}

static const char *show_spread(const struct bench_cell *cell)
{
    static char text[32];
    snprintf(text, sizeof text, "%.0f %%", 100 * spread_of(cell));
    return cell->nrounds > 1 ? text : "";
}

static void table_sizes(const struct bench_results *r,
                        const struct bench_cell *at, size_t n)
{
    int planned = 9, measured = 9;
    for (size_t i = 0; i < n; i++) {
        if (!isnan(at[i].planned))
            rate_column(at[i].planned, &planned);
        if (!isnan(bench_rate(&at[i])))
            rate_column(bench_rate(&at[i]), &measured);
    }
    printf("%-14s %8s %10s %*s %*s %7s %7s\n", "", "bits/key", "memory",
           planned, "planned", measured, "measured", "F", "spread");
    for (size_t i = 0; i < n; i++) {
        const struct bench_cell *const c = &at[i];
        printf("%-14s ", c->who->name);
        if (c->why[0]) {
            print_wrapped(stdout, c->why, 15, 15);
            putchar('\n');
            continue;
        }
        const double target = bench_target_bits(c, r->fpr);
        printf("%7.2f%c %10s %*s %*s %7.2f %7s\n", c->bits_per_key,
               isnan(target)               ? ' '
               : c->bits_per_key <= target ? '+'
                                           : '-',
               show_bytes(c->bytes), planned,
               isnan(c->planned) ? "" : show_rate(c->planned), measured,
               isnan(bench_rate(c)) ? "" : show_rate(bench_rate(c)),
               bench_floor_figure(c).median, show_spread(c));
    }
}

static void table_ops(const struct bench_results *r,
                      const struct bench_cell *at, size_t n, const char *title,
                      const int *ops, size_t nops)
{
    printf("\n%s\n%-14s", title, "");
    for (size_t k = 0; k < nops; k++)
        printf("%15s",
               ops[k] == OP_ADD ? "add or build " : bench_op_heads[ops[k]]);
    putchar('\n');
    for (size_t i = 0; i < n; i++) {
        if (at[i].why[0])
            continue;
        bool any = false;
        for (size_t k = 0; k < nops; k++)
            any |= isfinite(bench_ns(&at[i], ops[k]).median) ||
                   (ops[k] == OP_ADD &&
                    isfinite(bench_ns(&at[i], OP_BUILD).median));
        if (!any)
            continue;
        printf("%-14s", at[i].who->name);
        for (size_t k = 0; k < nops; k++) {
            const bool built =
                ops[k] == OP_ADD && isnan(bench_ns(&at[i], OP_ADD).median);
            entry(&at[i], built ? OP_BUILD : ops[k], r->fpr);
        }
        putchar('\n');
    }
}

static void table_threads(const struct bench_results *r,
                          const struct bench_cell *at, size_t n)
{
    printf("\n%u threads, as multiples of one\n%-14s%10s%10s%15s\n",
           r->nthreads, "", "ask", "build", "build --items");
    for (size_t i = 0; i < n; i++) {
        if (at[i].why[0] || !at[i].who->kind)
            continue;
        printf("%-14s", at[i].who->name);
        for (int which = 0; which < NTIMES; which++) {
            const double x = bench_times(&at[i], which).median;
            const double target = bench_target_times(which, r->nthreads);
            const int width = which == TIMES_SIZED ? 14 : 9;
            if (isnan(x))
                printf("%*s", width + 1, "- ");
            else
                printf("%*.2f%c", width, x,
                       isnan(target) ? ' '
                       : x >= target ? '+'
                                     : '-');
        }
        putchar('\n');
    }
}

/* One contender at one size: a line an operation. */
static void page_of(const struct bench_results *r, const struct bench_cell *c)
{
    printf("\n%-42s %10s %15s %7s %13s %7s\n", "", "ns per key", "quartiles",
           "F", "quartiles", "target");
    for (int op = 0; op < NOPS; op++) {
        const struct bench_figure ns = bench_ns(c, op);
        const struct bench_figure f = bench_multiple(c, op);
        const double target = bench_target(c, op, r->fpr);
        if (isnan(ns.median))
            continue;
        /* The two keep a column each, whatever their digits. */
        printf("%-*s %8.2f %7.2f-%-7.2f %7.2f %6.2f-%-6.2f", 44,
               bench_op_texts[op], ns.median, ns.q1, ns.q3, f.median, f.q1,
               f.q3);
        if (!isnan(target))
            printf(" %7.2f %s", target, f.median <= target ? "met" : "missed");
        putchar('\n');
    }
}

/* --------------------------------------------------------------- commands */

static void report_lines(const struct bench_lines *lines)
{
    puts("\nThe command and others: processor time, one thread");
    if (lines->why[0])
        printf("not run: %s\n", lines->why);
    for (size_t i = 0; i < lines->n; i++) {
        const struct bench_command *const c = &lines->at[i];
        printf("%-22s %-12s ", c->job, c->who);
        if (c->why[0]) {
            printf("not run: %s\n", c->why);
            continue;
        }
        const double target =
            c->who == lines->at[0].who
                ? bench_target_line(c->job[0] == 'b', c->nlines)
                : NAN;
        printf("%9.1f%c ns per line of %llu, peak %s\n", c->ns.median,
               isnan(target)            ? ' '
               : c->ns.median <= target ? '+'
                                        : '-',
               (unsigned long long)c->nlines, show_bytes(c->peak));
    }
}

/* ---------------------------------------------------------------- targets */

/* The targets that were met, or those that were missed, in lines if print. */
static unsigned count_targets(const struct bench_results *r, bool met,
                              bool print)
{
    unsigned n = 0;
    for (size_t i = 0; i < r->ncells; i++)
        for (int op = 0; op < NOPS; op++) {
            const struct bench_cell *const c = &r->cells[i];
            const double target = bench_target(c, op, r->fpr);
            const double f = bench_multiple(c, op).median;
            if (isnan(target) || isnan(f) || (f <= target) != met)
                continue;
            n++;
            if (print)
                printf("  %-14s %-15s %llu keys: %.2f F, not %.2f F\n",
                       c->who->name, bench_op_names[op],
                       (unsigned long long)c->items, f, target);
        }
    return n;
}

static void report_targets(const struct bench_results *r)
{
    const unsigned nmet = count_targets(r, true, false);
    const unsigned nmissed = count_targets(r, false, false);
    if (nmet + nmissed == 0)
        return;
    printf("\ntargets: %u met (+), %u missed (-)\n", nmet, nmissed);
    count_targets(r, false, true);
}

void bench_report(const struct bench_results *r)
{
    report_floor(r);
    const size_t width = r->nsizes ? r->ncells / r->nsizes : 0;
    for (size_t i = 0; i < r->nsizes; i++) {
        const struct bench_cell *const at = r->cells + i * width;
        unsigned nrounds = 0;
        for (size_t k = 0; k < width; k++)
            if (at[k].nrounds > nrounds)
                nrounds = at[k].nrounds;
        printf("\n== %s at %s, medians of %u round%s\n\n",
               show_keys(r->sizes[i]), show_rate(r->fpr), nrounds,
               nrounds == 1 ? "" : "s");
        table_sizes(r, at, width);
        if (width == 1) {
            if (!at->why[0])
                page_of(r, at);
        } else {
            table_ops(r, at, width, "in batches: ns per key, multiple of F",
                      batch_ops, COUNT_OF(batch_ops));
            table_ops(r, at, width,
                      "one by one; in calls of 64 and 256; acting on the hits",
                      call_ops, COUNT_OF(call_ops));
        }
        if (r->nthreads > 1)
            table_threads(r, at, width);
        for (size_t k = 0; k < width; k++)
            if (at[k].nmissed && !at[k].who->likely_no)
                warn("%s at %s: %llu present keys were reported absent",
                     at[k].who->name, show_keys(at[k].items),
                     (unsigned long long)at[k].nmissed);
    }
    if (r->lines)
        report_lines(r->lines);
    if (r->missing[0])
        printf("\n%s\n", r->missing);
    report_targets(r);
}
