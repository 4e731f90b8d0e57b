/*
 * cmd_plan.c - capacity, rate, memory: give two, see the rest
 *
 * Every kind is planned by the library and shown beside the others; a kind that
 * cannot be planned so is shown with its reason. The lower bound for n keys at
 * rate p is n log2(1/p) bits: whatever is below it must be wrong more often.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery/sketch.h>

#include "cli/rows.h"
#include "io/filters.h"
#include "io/sizing.h"
#include "report/json.h"
#include "report/say.h"
#include "report/show.h"
#include "report/words.h"
#include "workbench/plan_near.h"
#include "workbench/plot.h"

static struct {
    struct sizing sizing;
    const char *plot;
    bool near, json;
    double threshold, recall;
} plan_args;

/* What the library says of a kind. */
struct plan_row {
    bly_prediction plan;
    char reason[256]; /* why there is none; empty if there is */
};

static void plan_kind(const bly_spec *spec, const char *kind,
                      struct plan_row *row)
{
    bly_spec s = *spec;
    s.kind = kind;
    *row = (struct plan_row){ 0 };
    if (bly_plan(&s, &row->plan))
        snprintf(row->reason, sizeof row->reason, "%s", bly_error());
    row->plan.kind = kind;
}

static double lower_bound(double rate)
{
    return rate > 0 && rate < 1 ? log2(1 / rate) : NAN;
}

/* ---------------------------------------------------------------- people */

/* Settings: "k = 7, layout = shared, ..." and what else is a whole number; the
 * rest is for the page of one kind. The caller frees it. */
static char *settings_text(const bly_prediction *p)
{
    struct text text;
    FILE *const to = text_begin(&text);
    const char *between = "";
    for (size_t i = 0; i < p->nfacts; i++) {
        const bly_fact *fact = &p->facts[i];
        if (!fact->param && fact->type != BLY_UINT)
            continue;
        fprintf(to, "%s%s%c=%c%s", between, fact->name, HARD_BLANK, HARD_BLANK,
                show_fact(fact));
        between = ", ";
    }
    return text_end(&text);
}

static void plan_head(const bly_spec *spec)
{
    if (spec->items)
        fputs(show_keys(spec->items), stdout);
    if (spec->fpr > 0)
        printf("%s%s false positives", spec->items ? ", " : "",
               show_rate(spec->fpr));
    if (spec->bits)
        printf(", %llu bits", (unsigned long long)spec->bits);
    if (spec->fpr > 0)
        printf("; no filter needs less than %.2f bits per key",
               lower_bound(spec->fpr));
    puts("\n");
}

static uint64_t plan_bytes(const bly_prediction *p)
{
    return own_bytes(p->bits, p->facts, p->nfacts);
}

static void plan_table(const bly_spec *spec, const struct plan_row *rows,
                       size_t n)
{
    plan_head(spec);
    const bool keys = !spec->items; /* then they differ from kind to kind */
    int wide = 9;
    for (size_t i = 0; i < n; i++)
        if (!rows[i].reason[0] && isfinite(rows[i].plan.fpr))
            rate_column(rows[i].plan.fpr, &wide);
    int column =
        printf("%-11s%s%8s %10s %*s  ", "kind", keys ? "        keys " : "",
               "bits/key", "memory", wide, "rate");
    puts("settings");
    for (size_t i = 0; i < n; i++) {
        const bly_prediction *const p = &rows[i].plan;
        printf("%-10s ", p->kind);
        if (rows[i].reason[0]) {
            print_wrapped(stdout, rows[i].reason, 11, 11);
            putchar('\n');
            continue;
        }
        if (keys)
            printf("%12llu ", (unsigned long long)p->items);
        if (isfinite(p->bits_per_key))
            printf("%8.2f ", p->bits_per_key);
        else
            printf("%8s ", "");
        printf("%10s %*s  ", show_bytes(plan_bytes(p)), wide,
               isfinite(p->fpr) ? show_rate(p->fpr) : "");
        char *const settings = settings_text(p);
        print_wrapped(stdout, settings ? settings : "", column, column);
        putchar('\n');
        free(settings);
    }
}

#define PLAN_ROW "%-*s "

static void plan_page(const bly_prediction *p)
{
    const int w = fact_column(p->facts, p->nfacts, "fpr_exact");
    printf(PLAN_ROW "%s\n", w, "kind", p->kind);
    if (p->items)
        printf(PLAN_ROW "%s\n", w, "capacity", show_keys(p->items));
    if (isfinite(p->fpr))
        printf(PLAN_ROW "%s false positives at capacity\n", w, "rate",
               show_rate(p->fpr));
    printf(PLAN_ROW "%llu bits", w, "size", (unsigned long long)p->bits);
    if (isfinite(p->bits_per_key))
        printf(", %.3f per key", p->bits_per_key);
    if (isfinite(lower_bound(p->fpr)))
        printf(" (lower bound for that rate: %.3f)", lower_bound(p->fpr));
    const uint64_t nbytes = plan_bytes(p);
    printf("\n" PLAN_ROW "%s (%llu bytes)\n", w, "memory", show_bytes(nbytes),
           (unsigned long long)nbytes);
    for (size_t i = 0; i < p->nfacts; i++)
        printf(PLAN_ROW "%s\n", w, p->facts[i].name, show_fact(&p->facts[i]));
}

/* -------------------------------------------------------------- programs */

static void plan_json(const bly_spec *spec, const struct plan_row *rows,
                      size_t n)
{
    struct json j = { .to = stdout };
    json_open(&j, '{');
    json_key(&j, "items");
    if (spec->items)
        json_uint(&j, spec->items);
    else
        json_null(&j);
    json_key(&j, "fpr");
    json_real(&j, spec->fpr > 0 ? spec->fpr : NAN);
    json_key(&j, "kinds");
    json_open(&j, '[');
    for (size_t i = 0; i < n; i++) {
        const bly_prediction *const p = &rows[i].plan;
        const bool made = !rows[i].reason[0];
        json_open(&j, '{');
        json_key(&j, "kind");
        json_text(&j, p->kind);
        json_key(&j, "bits_per_key");
        json_real(&j, made ? p->bits_per_key : NAN);
        json_key(&j, "bytes");
        if (made)
            json_uint(&j, plan_bytes(p));
        else
            json_null(&j);
        json_key(&j, "fpr");
        json_real(&j, made ? p->fpr : NAN);
        json_facts(&j, p->facts, made ? p->nfacts : 0);
        if (!made) {
            json_key(&j, "error");
            json_text(&j, rows[i].reason);
        } else if (!spec->items) { /* it differs from kind to kind */
            json_key(&j, "items");
            json_uint(&j, p->items);
        }
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_close(&j, '}');
    json_end(&j);
}

/* --------------------------------------------------------------- picture */

/* Rates from 10 % to 1e-6, twelve to a power of ten. */
#define PLOT_STEPS_A_DECADE 12
#define PLOT_DECADES 5
#define PLOT_STEPS_ALL (PLOT_DECADES * PLOT_STEPS_A_DECADE + 1)

static double plot_rate(size_t step)
{
    return pow(10, -1 - (double)step / PLOT_STEPS_A_DECADE);
}

/* Bits a key against the rate, for the kinds of rows and the lower bound. */
static int plan_plot(const bly_spec *spec, const struct plan_row *rows,
                     size_t n)
{
    struct plot_series *const series = calloc(n + 1, sizeof *series);
    struct plot_point *const points =
        calloc((n + 1) * PLOT_STEPS_ALL, sizeof *points);
    if (!series || !points) {
        free(series);
        free(points);
        return fail("out of memory");
    }
    bly_spec s = *spec;
    s.items = spec->items ? spec->items : 1000000;
    s.bits = 0;
    for (size_t i = 0; i <= n; i++) {
        struct plot_point *const at = points + i * PLOT_STEPS_ALL;
        for (size_t step = 0; step < PLOT_STEPS_ALL; step++) {
            struct plan_row row;
            s.fpr = at[step].x = plot_rate(step);
            at[step].y = lower_bound(s.fpr);
            if (i < n) {
                plan_kind(&s, rows[i].plan.kind, &row);
                at[step].y = row.reason[0] ? NAN : row.plan.bits_per_key;
            }
        }
        series[i] = (struct plot_series){
            .name = i < n ? rows[i].plan.kind : "lower bound",
            .points = at,
            .npoints = PLOT_STEPS_ALL,
            .dash = i < n ? PLOT_DASH_AUTO : PLOT_DOTTED,
        };
    }
    char subtitle[80];
    snprintf(subtitle, sizeof subtitle, "%llu keys",
             (unsigned long long)s.items);
    const struct plot plot = {
        .title = "Memory against the rate of false positives",
        .subtitle = subtitle,
        .x = { .label = "rate of false positives",
               .scale = PLOT_LOG,
               .reversed = true },
        .y = { .label = "memory", .unit = "bits per key", .scale = PLOT_LOG },
        .series = series,
        .nseries = n + 1,
    };
    const bool saved = plot_save(&plot, plan_args.plot);
    free(series);
    free(points);
    return saved ? YES : fail("%s", plot_why());
}

/* Sketches of texts, not filters: -k is the number of components. */
static int plan_sketches(void)
{
    const struct sizing *const s = &plan_args.sizing;
    uint64_t k = 128;
    if (s->items || s->fpr > 0 || s->bits || s->memory || s->options.n)
        return fail("--near goes with --threshold, --recall and -k alone");
    if (s->kind && !bly_parse_count(s->kind, &k))
        return fail("with --near, -k is a number of components, not '%s'",
                    s->kind);
    if (k > BLY_MAX_COMPONENTS)
        k = BLY_MAX_COMPONENTS + 1; /* which is refused */
    return plan_near(&(struct near_plan){
        .threshold = plan_args.threshold > 0 ? plan_args.threshold : 0.8,
        .recall = plan_args.recall,
        .components = (unsigned)k,
        .plot = plan_args.plot,
        .json = plan_args.json,
    });
}

static int plan_run(struct list *operands)
{
    if (operands->n)
        return fail("'%s' is not understood; sizes are options, as in --items "
                    "%s",
                    operands->at[0], operands->at[0]);
    if (plan_args.json && plan_args.plot && strcmp(plan_args.plot, "-") == 0)
        return fail("--json and --plot - would mix on standard output");
    if (plan_args.near)
        return plan_sketches();
    if (plan_args.threshold > 0 || plan_args.recall > 0)
        return fail("--threshold and --recall go with --near");
    bly_spec spec = { 0 };
    if (!sizing_spec(&plan_args.sizing, &spec))
        return TROUBLE;
    if (!spec.items && !spec.bits && !(spec.fpr > 0) && plan_args.plot)
        spec.items = 1000000;
    if (!spec.kind && !spec.items && !(spec.bits && spec.fpr > 0))
        return fail("give --items, or two of --items, --fpr and --memory");

    size_t n = 0;
    bly_kind_info kind;
    while (bly_kind_at(n, &kind))
        n++;
    struct plan_row *const rows = calloc(n, sizeof *rows);
    if (!rows)
        return fail("out of memory");
    size_t nplanned = 0;
    if (spec.kind) {
        n = 1;
        plan_kind(&spec, spec.kind, &rows[0]);
        nplanned += !rows[0].reason[0];
    } else {
        for (size_t i = 0; i < n; i++) {
            bly_kind_at(i, &kind);
            plan_kind(&spec, kind.name, &rows[i]);
            nplanned += !rows[i].reason[0];
        }
    }
    /* Items alone mean a rate of 1 %: say so from here on. */
    if (spec.items && !spec.bits && !(spec.fpr > 0))
        spec.fpr = 0.01;

    /* The picture first: if it cannot be written, nothing is printed. */
    int status = YES;
    if (!nplanned)
        status = fail("%s", rows[0].reason);
    else if (plan_args.plot)
        status = plan_plot(&spec, rows, n);
    if (status != YES)
        ;
    else if (plan_args.json)
        plan_json(&spec, rows, n);
    else if (plan_args.plot && strcmp(plan_args.plot, "-") == 0)
        ; /* the picture alone */
    else if (spec.kind)
        plan_page(&rows[0].plan);
    else
        plan_table(&spec, rows, n);
    free(rows);
    return status;
}

static const struct opt plan_options[] = {
    SIZING_OPTIONS(plan_args.sizing),
    { "near", 0, OPT_FLAG, &plan_args.near, NULL,
      "plan the search for near copies of texts: -k is then the number of "
      "components of a sketch, 128 if not given" },
    { "threshold", 't', OPT_RATE, &plan_args.threshold, "J",
      "with --near: find pairs of at least this likeness; 0.8 if not given" },
    { "recall", 0, OPT_RATE, &plan_args.recall, "P",
      "with --near: the probability with which such a pair must be found; "
      "0.995 if not given" },
    { "plot", 0, OPT_TEXT, &plan_args.plot, "FILE.svg",
      "draw bits per key against the rate, for every kind, or the curve of "
      "--near; - is standard output" },
    { "json", 0, OPT_FLAG, &plan_args.json, NULL, "print the result as JSON" },
    { 0 },
};

static const struct example plan_examples[] = {
    { "bloomery plan --items 10M --fpr 0.1%", "what would it take?" },
    { "bloomery plan --items 10M --memory 16MiB", "how good would it be?" },
    { "bloomery plan --memory 1GiB --fpr 1%", "how many keys would fit?" },
    { "bloomery plan --near -t 0.8 -k 128",
      "which pairs of texts would be found?" },
    { 0 },
};

const struct command cmd_plan = {
    .name = "plan",
    .usage = "[OPTION]...",
    .summary = "see which capacity, rate and memory go together",
    .about =
        "Give two of --items, --fpr and --memory (or --bits), or --items alone "
        "for a rate of 1 %: every kind of filter is sized for them and shown "
        "with the bits per key that it takes and the rate that it keeps. With "
        "--kind, everything about that kind is shown. No filter is made.\n\n"
        "With --near, the plan is for finding texts that are nearly alike: how "
        "the components of their sketches are cut into bands, and how likely a "
        "pair of each likeness is to be found.",
    .options = plan_options,
    .examples = plan_examples,
    .run = plan_run,
};
