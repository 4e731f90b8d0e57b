/*
 * cmd_plan.c - capacity, rate, memory: give two, see the rest
 *
 * Every kind is planned by the library and shown beside the others; a kind that
 * cannot be planned so is shown with its reason. The lower bound for n keys at
 * rate p is n log2(1/p) bits: whatever is below it must be wrong more often.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery/sketch.h>

#include "cli/rows.h"
#include "io/filters.h"
#include "io/sizing.h"
#include "report/show.h"
#include "workbench/plan_index.h"
#include "workbench/plan_near.h"
#include "workbench/plan_sync.h"
#include "workbench/plot.h"

static struct {
    struct sizing sizing;
    const char *plot;
    bool near, sync, index, verbose, json;
    uint64_t differences, terms, asked, questions;
    double opening;
    double threshold, recall;
    uint64_t components;
} plan_args;

/* What the library says of a kind. */
struct plan_row {
    bly_prediction plan;
    char reason[256];      /* why there is none; empty if there is */
    uint64_t bytes;        /* the filter's own */
    const uint64_t *items; /* NULL: they were given, the same for all kinds */
    double bound;          /* bits per key that no filter goes below */
    double miss;           /* missed_share() */
};

static const struct field plan_row_fields[] = {
    NAMED(struct plan_row, "kind", plan.kind, NONE, "the kind"),
    NAMED(struct plan_row, "bits_per_key", plan.bits_per_key, BITS | MAYBE,
          "bits per key at capacity"),
    FIELD(struct plan_row, bytes, BYTES | MAYBE | ZERO, "size of its cells"),
    NAMED(struct plan_row, "fpr", plan.fpr, RATE | MAYBE,
          "false positives at capacity, by the exact formula of the kind"),
    FIELD(struct plan_row, miss, RATE | OPTIONAL, MISS_HELP),
    FACTS(struct plan_row, plan.facts, plan.nfacts),
    NAMED(struct plan_row, "error", reason, OPTIONAL | ZERO,
          "why it cannot be planned so; all else is null then"),
    FIELD(struct plan_row, items, OPTIONAL,
          "keys that it is for, if that follows from rate and memory"),
    NAMED(struct plan_row, "capacity", plan.items, KEYS, NULL),
    NAMED(struct plan_row, "bits", plan.bits, NONE, NULL),
    FIELD(struct plan_row, bound, NONE, NULL),
    { 0 },
};

struct plan {
    bly_spec spec; /* zero for what was not given */
    double bound;
    struct plan_row *rows;
    size_t n;
};

static const struct field plan_fields[] = {
    NAMED(struct plan, "items", spec.items, KEYS | MAYBE | ZERO,
          "keys that were asked for"),
    NAMED(struct plan, "fpr", spec.fpr, RATE | MAYBE | ZERO,
          "rate of false positives that was asked for"),
    LIST(struct plan, "kinds", rows, n, AT, plan_row_fields,
         "a plan for each kind"),
    NAMED(struct plan, "bits", spec.bits, ZERO, NULL),
    FIELD(struct plan, bound, NONE, NULL),
    { 0 },
};

static double lower_bound(double rate)
{
    return rate > 0 && rate < 1 ? log2(1 / rate) : NAN;
}

static void plan_kind(const bly_spec *spec, const char *kind,
                      struct plan_row *row)
{
    bly_spec s = *spec;
    s.kind = kind;
    sizing_misses(&plan_args.sizing, &s);
    *row = (struct plan_row){ .miss = NAN };
    if (bly_plan(&s, &row->plan)) {
        snprintf(row->reason, sizeof row->reason, "%s", bly_error());
        row->plan = (bly_prediction){ .fpr = NAN, .bits_per_key = NAN };
    } else {
        row->bytes =
            own_bytes(row->plan.bits, row->plan.facts, row->plan.nfacts);
        row->items = spec->items ? NULL : &row->plan.items;
        row->bound = lower_bound(row->plan.fpr);
        row->miss = missed_share(row->plan.facts, row->plan.nfacts);
    }
    row->plan.kind = kind;
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

/* What tells kinds apart when one is chosen: "add, remove, count". */
static const char *uses_text(const struct plan_row *row, bool is_default,
                             char out[64])
{
    static const struct {
        uint32_t can;
        const char *word;
    } uses[] = {
        { BLY_CAN(ADD), "add" },     { BLY_CAN(REMOVE), "remove" },
        { BLY_CAN(COUNT), "count" }, { BLY_CAN(GET), "get" },
        { BLY_CAN(TICK), "forget" },
    };
    bly_kind_info info = { 0 };
    bly_kind_named(row->plan.kind, &info);
    size_t n = 0;
    out[0] = '\0';
    for (size_t i = 0; i < sizeof uses / sizeof uses[0]; i++)
        if (info.can & uses[i].can)
            n += (size_t)snprintf(out + n, 64 - n, "%s%s", n ? ", " : "",
                                  uses[i].word);
    if (!(info.can & BLY_CAN(ADD)))
        n += (size_t)snprintf(out + n, 64 - n, "%sno additions", n ? ", " : "");
    if (isfinite(row->miss))
        n += (size_t)snprintf(out + n, 64 - n, "; misses %s",
                              show_rate(row->miss));
    if (is_default)
        snprintf(out + n, 64 - n, " (the default)");
    return out;
}

#define NAME_WIDE 12 /* "generalized " */

/* A line for each kind that there is a plan for, and what is not planned named
 * below; in full, settings and reasons stand in the table. */
static void plan_table(const struct plan *plan, bool full)
{
    report_text(stdout, plan_fields, plan,
                "[{items}][[{?items}, ]{fpr} false positives][, {bits} bits]"
                "[{?fpr}; no filter needs less than {bound:.2} "
                "bits per key]\n\n");
    const struct plan_row *const rows = plan->rows;
    const bool keys = !plan->spec.items; /* they differ from kind to kind */
    int wide = 9;
    size_t unplanned = 0;
    for (size_t i = 0; i < plan->n; i++) {
        unplanned += rows[i].reason[0] != '\0';
        if (isfinite(rows[i].plan.fpr))
            rate_column(rows[i].plan.fpr, &wide);
    }
    const int column =
        printf("%-*s%s%8s %10s %*s  ", NAME_WIDE, "kind",
               keys ? "        keys " : "", "bits/key", "memory", wide, "rate");
    puts(full ? "settings" : "can");
    for (size_t i = 0; i < plan->n; i++) {
        const bly_prediction *const p = &rows[i].plan;
        if (rows[i].reason[0]) {
            if (!full)
                continue;
            printf("%-*s", NAME_WIDE, p->kind);
            print_wrapped(stdout, rows[i].reason, NAME_WIDE, NAME_WIDE);
            putchar('\n');
            continue;
        }
        printf("%-*s", NAME_WIDE, p->kind);
        if (keys)
            printf("%12llu ", (unsigned long long)p->items);
        if (isfinite(p->bits_per_key))
            printf("%8.2f ", p->bits_per_key);
        else
            printf("%8s ", "");
        printf("%10s %*s  ", show_bytes(rows[i].bytes), wide,
               isfinite(p->fpr) ? show_rate(p->fpr) : "");
        char uses[64];
        char *const settings = full ? settings_text(p) : NULL;
        print_wrapped(stdout,
                      settings ? settings : uses_text(&rows[i], i == 0, uses),
                      column, column);
        putchar('\n');
        free(settings);
    }
    if (full)
        return;
    if (unplanned) {
        struct text text;
        FILE *const to = text_begin(&text);
        const char *before = "Not possible so: ";
        for (size_t i = 0; i < plan->n; i++) {
            if (!rows[i].reason[0])
                continue;
            fprintf(to, "%s%s", before, rows[i].plan.kind);
            before = ", ";
        }
        fputs("; -v says why.", to);
        char *const told = text_end(&text);
        putchar('\n');
        print_wrapped(stdout, told, 0, 0);
        putchar('\n');
        free(told);
    }
    puts("\nMore about one kind: --kind KIND. Settings of all: -v. See also: "
         "bloomery kinds.");
}

static const char plan_page[] =
    "kind     ~{kind}\n" /* as wide as "fpr_exact" */
    "[capacity~{?capacity}{capacity}\n]"
    "[rate~{fpr} false positives at capacity\n]"
    "[misses~{miss} of its own keys at capacity\n]"
    "size~{bits} bits[, {bits_per_key:.3} per key]"
    "[ (lower bound for that rate: {bound:.3})]\n"
    "memory~{bytes} ({bytes:#} bytes)\n"
    "{params}";

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
        bly_kind_info kind;
        if (n > 1 && i < n && bly_kind_named(rows[i].plan.kind, &kind))
            series[i].panel = plot_kind_panel(&kind);
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

/* Sketches of texts, not filters. */
static int plan_sketches(void)
{
    const struct sizing *const s = &plan_args.sizing;
    uint64_t k = plan_args.components ? plan_args.components : 128;
    if (s->kind)
        return fail("--near is about texts, which have no kind '%s'; for the "
                    "number of components, use --components",
                    s->kind);
    if (s->items || s->fpr > 0 || s->bits || s->memory || s->miss > 0 ||
        s->options.n)
        return fail("--near goes with --threshold, --recall and --components "
                    "alone");
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

/* An index of documents: filters side by side. */
static int plan_documents(void)
{
    const struct sizing *const s = &plan_args.sizing;
    if (s->kind || s->bits || s->memory || s->miss > 0 || s->options.n ||
        plan_args.plot)
        return fail("--index goes with --items, --fpr, --terms, --asked, "
                    "--questions and --opening alone");
    return plan_index(
        &(bly_index_wish){ .documents = s->items,
                           .terms = (double)plan_args.terms,
                           .asked = (double)plan_args.asked,
                           .questions = (double)plan_args.questions,
                           .opening = plan_args.opening,
                           .fpr = s->fpr > 0 ? s->fpr : 0 },
        plan_args.json);
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
    if (plan_args.sync) {
        const struct sizing *const s = &plan_args.sizing;
        if (s->kind || s->fpr > 0 || s->bits || s->memory || s->options.n ||
            plan_args.plot)
            return fail("--sync goes with --items and --differences alone");
        return plan_sync(plan_args.differences, s->items, plan_args.json);
    }
    if (plan_args.differences)
        return fail("--differences goes with --sync");
    if (plan_args.index)
        return plan_documents();
    if (plan_args.terms || plan_args.asked || plan_args.questions ||
        plan_args.opening > 0)
        return fail("--terms, --asked, --questions and --opening go with "
                    "--index");
    if (plan_args.threshold > 0 || plan_args.recall > 0 || plan_args.components)
        return fail("--threshold, --recall and --components go with --near");
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
    struct plan_row *const rows = calloc(n + 1, sizeof *rows);
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

    const struct plan plan = { spec, lower_bound(spec.fpr), rows, n };

    /* The picture first: if it cannot be written, nothing is printed. */
    int status = YES;
    if (!nplanned)
        status = fail("%s", rows[0].reason);
    else if (plan_args.plot)
        status = plan_plot(&spec, rows, n);
    if (status != YES)
        ;
    else if (!plan_args.json && plan_args.plot &&
             strcmp(plan_args.plot, "-") == 0)
        ; /* the picture alone */
    else if (!plan_args.json && spec.kind)
        report_text(stdout, plan_row_fields, rows, plan_page);
    else if (!plan_args.json)
        plan_table(&plan, plan_args.verbose);
    else
        report(stdout, true, plan_fields, &plan, NULL);
    free(rows);
    return status;
}

static const struct opt plan_options[] = {
    SIZING_OPTIONS(plan_args.sizing),
    MISS_OPTION(plan_args.sizing),
    FLAG("near", 0, plan_args.near, "plan the search for near copies of texts"),
    { "threshold", 'T', OPT_RATE, &plan_args.threshold, "J",
      "with --near: find pairs of at least this likeness; 0.8 if not given" },
    { "recall", 0, OPT_RATE, &plan_args.recall, "P",
      "with --near: the probability with which such a pair must be found; "
      "0.995 if not given" },
    { "components", 0, OPT_POSITIVE, &plan_args.components, "K",
      "with --near: components of a sketch; 128 if not given" },
    FLAG("sync", 0, plan_args.sync,
         "plan the comparison of two sets by bloomery sync"),
    { "differences", 0, OPT_POSITIVE, &plan_args.differences, "N",
      "with --sync: elements that only one of them has; a table if not "
      "given" },
    FLAG("index", 0, plan_args.index,
         "plan an index of documents; -n is how many there are"),
    { "terms", 0, OPT_POSITIVE, &plan_args.terms, "N",
      "with --index: different terms of a document; 75000 if not given, the "
      "4-grams of 1 MiB of text" },
    { "asked", 0, OPT_POSITIVE, &plan_args.asked, "N",
      "with --index: independent terms of a question; 1 if not given" },
    { "questions", 0, OPT_POSITIVE, &plan_args.questions, "N",
      "with --index: questions as long as the index is kept; 1000 if not "
      "given" },
    { "opening", 0, OPT_SECONDS, &plan_args.opening, "SECONDS",
      "with --index: what it takes to open a document; 0.001 if not given" },
    { "plot", 0, OPT_TEXT, &plan_args.plot, "FILE.svg",
      "draw bits per key against the rate, for every kind, or the curve of "
      "--near; - is standard output" },
    FLAG("verbose", 'v', plan_args.verbose,
         "show the settings of every kind, and why one cannot be planned so"),
    JSON_OPTION(plan_args),
    { 0 },
};

static const struct example plan_examples[] = {
    { "bloomery plan --items 10M --fpr 0.1%", "what would it take?" },
    { "bloomery plan --items 10M --memory 16MiB", "how good would it be?" },
    { "bloomery plan --memory 1GiB --fpr 1%", "how many keys would fit?" },
    { "bloomery plan -n 10M --kind cuckoo", "everything about one kind" },
    { "bloomery plan --near -T 0.8 --components 128",
      "which pairs of texts would be found?" },
    { "bloomery plan --sync --differences 1000 --items 10M",
      "what would it take to find 1,000 differences?" },
    { "bloomery plan --index -n 4000 --asked 5",
      "which rate suits an index of 4,000 blocks?" },
    { 0 },
};

const struct command cmd_plan = {
    .name = "plan",
    .usage = "[OPTION]...",
    .summary = "see which capacity, rate and memory go together",
    .about =
        "Give two of --items, --fpr and --memory (or --bits), or --items alone "
        "for a rate of 1 %: every kind of filter is sized for them and shown "
        "with the bits per key that it takes, the rate that it keeps, and what "
        "it can do besides answering. With -v, the table has the settings of "
        "every kind; with --kind, everything about one kind is shown. No "
        "filter "
        "is made.\n\n"
        "With --near, the plan is for finding texts that are nearly alike: how "
        "the components of their sketches are cut into bands, and how likely a "
        "pair of each likeness is to be found.\n\n"
        "With --sync, it is for comparing two sets: the symbols that so many "
        "differences take on average, in half of all runs, in 95 and in 99 of "
        "100, and the bytes that bloomery sync then sends.\n\n"
        "With --index, it is for filters side by side, as bloomery index "
        "makes them: for each rate the size of the index, and the documents "
        "that a question opens in vain. The cost counts those openings in "
        "seconds, and a megabyte of index as one second.",
    .options = plan_options,
    .examples = plan_examples,
    .reports =
        REPORTS({ "", plan_fields, ONE }, { "with --near", near_fields, ONE },
                { "with --sync", plan_sync_fields, ONE },
                { "with --index", plan_index_fields, ONE }),
    .run = plan_run,
};
