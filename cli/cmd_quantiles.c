/*
 * cmd_quantiles.c - where do the numbers of a stream lie?
 *
 * A t-digest, of all inputs or of each group. Workers cut lines and read
 * numbers; they are added in the order of the input, which takes a fraction of
 * that time, so that the same input always gives the same answers.
 */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/lookup.h"
#include "cli/rows.h"
#include "io/files.h"
#include "io/paths.h"
#include "io/sketch_files.h"
#include "report/out.h"
#include "report/show.h"
#include "workbench/plot.h"

#define MAX_QUANTILES 64
#define DEFAULT_QUANTILES "50,90,99,99.9"

static struct {
    struct keys keys;
    const char *quantiles, *output, *plot;
    double compression;
    uint64_t threads;
    bool json;
} quantiles_args;

/* ------------------------------------------------------------------ results */

struct quantile {
    double percent, value;
    double deviation; /* of its rank, as a share of all */
};

struct quantiled {
    bly_bytes group;
    uint64_t values;
    double min, max;
    const struct quantile *quantiles;
    size_t n;
};

static const struct field quantile_fields[] = {
    FIELD(struct quantile, percent, NONE,
          "so many percent of all values are below it"),
    FIELD(struct quantile, value, NONE | MAYBE,
          "the value, an estimate; null if there are no values"),
    FIELD(struct quantile, deviation, NONE | MAYBE,
          "standard deviation of its rank, as a share of all: 0.001 is 0.1 % "
          "of the values"),
    { 0 },
};

#define QUANTILED_FIELDS                                                       \
    FIELD(struct quantiled, values, NONE, "numbers that were read"),           \
        FIELD(struct quantiled, min, NONE | MAYBE, "the least of them"),       \
        FIELD(struct quantiled, max, NONE | MAYBE, "the greatest"),            \
        LIST(struct quantiled, "quantiles", quantiles, n, AT, quantile_fields, \
             "what -q asked for, in its order")

static const struct field quantiled_fields[] = { QUANTILED_FIELDS, { 0 } };
static const struct field group_fields[] = {
    FIELD(struct quantiled, group, NONE, "the group"),
    QUANTILED_FIELDS,
    { 0 },
};

struct quantiled_all {
    uint64_t values;
    const struct quantiled *groups;
    size_t n;
};

static const struct field groups_fields[] = {
    FIELD(struct quantiled_all, values, NONE, "numbers that were read"),
    LIST(struct quantiled_all, "groups", groups, n, AT, group_fields,
         "each group, in the order of their names"),
    { 0 },
};

/* ------------------------------------------------------------------ reading */

/* A digest, of a group or of all. */
struct stream {
    bly_bytes name; /* its own */
    bly_tdigest *digest;
};

struct quantiles_run {
    double percents[MAX_QUANTILES];
    size_t npercents;
    struct stream *streams;
    size_t n, room;
    struct lookup table;
    bool grouped, trouble;
};

static struct stream *stream_new(struct quantiles_run *r, bly_bytes name)
{
    const bly_tdigest_spec spec = { .compression = quantiles_args.compression };
    if (!GROW(&r->streams, &r->room, r->n + 1))
        return NULL;
    struct stream *const s = &r->streams[r->n];
    char *const own = malloc(name.len + 1);
    *s = (struct stream){ .name = { own, name.len } };
    if (!own || bly_tdigest_new(&spec, &s->digest)) {
        free(own);
        return NULL;
    }
    memcpy(own, name.ptr, name.len);
    r->n++;
    return s;
}

static struct stream *stream_named(struct quantiles_run *r, bly_bytes name)
{
    const uint64_t hash = table_hash(name.ptr, name.len);
    LOOKUP_EACH (&r->table, hash, row) {
        struct stream *const s = &r->streams[row];
        if (s->name.len == name.len &&
            memcmp(s->name.ptr, name.ptr, name.len) == 0)
            return s;
    }
    if (!lookup_fit(&r->table, r->n + 1))
        return NULL;
    struct stream *const s = stream_new(r, name);
    if (s)
        lookup_add(&r->table, hash, r->n - 1);
    return s;
}

/* Numbers of one group that come one after another are added together. */
static bly_status quantiles_grouped(struct quantiles_run *r, struct batch *b)
{
    double values[BATCH];
    bly_bytes name = { NULL, 0 };
    struct stream *s = NULL;
    size_t n = 0;
    for (size_t i = 0; i < b->n; i++) {
        const char *const at = b->keys[i].ptr;
        const size_t ngroup = b->keys[i].len - sizeof *values - 1;
        const bool same =
            s && ngroup == name.len && memcmp(at, name.ptr, ngroup) == 0;
        if (n == BATCH || (n && !same)) {
            const bly_status st = bly_tdigest_add(s->digest, values, NULL, n);
            if (st)
                return st;
            n = 0;
        }
        if (!same) {
            name = (bly_bytes){ at, ngroup };
            s = stream_named(r, name);
            if (!s) {
                b->why = "out of memory";
                return BLY_ENOMEM;
            }
        }
        memcpy(&values[n++], at + ngroup + 1, sizeof *values);
    }
    return n ? bly_tdigest_add(s->digest, values, NULL, n) : BLY_OK;
}

static bly_status quantiles_batch(struct job *job, struct batch *b)
{
    struct quantiles_run *const r = job->ctx;
    double values[BATCH];
    if (r->grouped)
        return quantiles_grouped(r, b);
    for (size_t i = 0; i < b->n;) {
        size_t n = 0;
        for (; n < BATCH && i < b->n; n++, i++)
            memcpy(&values[n], b->keys[i].ptr, sizeof *values);
        const bly_status st =
            bly_tdigest_add(r->streams[0].digest, values, NULL, n);
        if (st)
            return st;
    }
    return BLY_OK;
}

static bool read_numbers(struct quantiles_run *r, const char *const *names,
                         size_t n)
{
    struct job job = {
        .batch = quantiles_batch,
        .in_order = true,
        .goes_on = true,
        .nthreads = thread_count(quantiles_args.threads),
        .ctx = r,
    };
    struct input in;
    quantiles_args.keys.normal.real = true;
    quantiles_args.keys.select.group_option = "--by";
    if (!keys_files(&quantiles_args.keys, names, n, &in))
        return false;
    const bool ok = !pipeline_run(&job, &in);
    input_close(&in);
    if (!ok)
        fail("%s", job.error);
    r->trouble |= job.trouble;
    return ok;
}

/* Sketches that were saved, and lists of numbers together. */
static bool read_operands(struct quantiles_run *r, const struct list *operands)
{
    const char **const names = calloc(operands->n + 1, sizeof *names);
    size_t n = 0;
    bool ok = names != NULL;
    if (!names)
        fail("out of memory");
    for (size_t i = 0; i < operands->n && ok; i++) {
        const char *const name = operands->at[i];
        bly_stored other;
        if (binary_input || !sketch_type(name)) {
            names[n++] = name;
            continue;
        }
        if (r->grouped) {
            fail("%s: a saved sketch has no groups; leave out --by", name);
            ok = false;
            break;
        }
        ok = sketch_open(name, BLY_STORED_TDIGEST, NULL, &other);
        if (ok && bly_tdigest_merge(r->streams[0].digest, other.tdigest)) {
            fail("%s: %s", name, bly_error());
            ok = false;
        }
        if (ok)
            bly_stored_free(&other);
    }
    if (ok && (n || !operands->n))
        ok = read_numbers(r, names, n);
    free((void *)(uintptr_t)names);
    return ok;
}

/* ----------------------------------------------------------------- printing */

static struct quantiled quantiled_of(const struct quantiles_run *r,
                                     const struct stream *s,
                                     struct quantile *to)
{
    bly_tdigest_stats t;
    bly_tdigest_stat(s->digest, &t);
    for (size_t i = 0; i < r->npercents; i++) {
        const double q = r->percents[i] / 100;
        to[i] = (struct quantile){
            .percent = r->percents[i],
            .value = bly_tdigest_quantile(s->digest, q),
            .deviation = bly_tdigest_deviation(s->digest, q),
        };
    }
    return (struct quantiled){
        .group = s->name,
        .values = (uint64_t)(t.merged_weight + t.waiting_weight),
        .min = t.min,
        .max = t.max,
        .quantiles = to,
        .n = r->npercents,
    };
}

static void print_quantiles(FILE *to, const struct quantiled *q, bool grouped)
{
    if (grouped) {
        if (to == stdout)
            print_key(q->group.ptr, q->group.len);
        else
            fputs(show_text(q->group.ptr, q->group.len), to);
        fprintf(to, "\t%llu", (unsigned long long)q->values);
    }
    for (size_t i = 0; i < q->n; i++) {
        if (grouped)
            fprintf(to, "\t%.10g", q->quantiles[i].value);
        else
            fprintf(to, "%.10g\t%.10g\n", q->quantiles[i].percent,
                    q->quantiles[i].value);
    }
    if (grouped)
        putc('\n', to);
}

static void tell_quantiles(const struct quantiles_run *r, FILE *to,
                           const struct quantiled *told)
{
    struct quantiled_all all = { .groups = told, .n = r->n };
    for (size_t i = 0; i < r->n; i++)
        all.values += told[i].values;
    if (quantiles_args.json) {
        report(stdout, true, r->grouped ? groups_fields : quantiled_fields,
               r->grouped ? (const void *)&all : told, NULL);
        return;
    }
    for (size_t i = 0; i < r->n; i++)
        print_quantiles(to, &told[i], r->grouped);
    if (r->grouped)
        note("%zu group%s of %llu value%s; columns: the group, how many values "
             "it has, and a column for each quantile",
             r->n, r->n == 1 ? "" : "s", (unsigned long long)all.values,
             all.values == 1 ? "" : "s");
    else if (!all.values)
        note("no values");
    else
        note("%llu value%s from %.10g to %.10g", (unsigned long long)all.values,
             all.values == 1 ? "" : "s", told->min, told->max);
}

/* -------------------------------------------------------------------- plots */

#define CURVE_POINTS 200

/* Which value lies above how many percent: more points where the ends are. */
static size_t curve_points(bly_tdigest *t, struct plot_point *to)
{
    for (size_t i = 0; i < CURVE_POINTS; i++) {
        const double x = (double)i / (CURVE_POINTS - 1);
        const double q = (1 - cos(x * 3.141592653589793)) / 2;
        to[i] = (struct plot_point){ .x = bly_tdigest_quantile(t, q), .y = q };
    }
    return CURVE_POINTS;
}

static int heavier_first(const void *a, const void *b)
{
    const struct quantiled *const x = a, *const y = b;
    return x->values < y->values ? 1 : x->values > y->values ? -1 : 0;
}

static bool save_plot(const struct quantiles_run *r,
                      const struct quantiled *told)
{
    struct plot_point curves[PLOT_MAX_SERIES][CURVE_POINTS];
    struct plot_point marks[MAX_QUANTILES];
    struct plot_series series[PLOT_MAX_SERIES + 1] = { { 0 } };
    char names[PLOT_MAX_SERIES][80], subtitle[120];
    struct quantiled *const order = calloc(r->n + 1, sizeof *order);
    size_t n = 0;
    uint64_t nvalues = 0;
    double least = INFINITY, greatest = -INFINITY;
    if (!order) {
        fail("out of memory");
        return false;
    }
    memcpy(order, told, r->n * sizeof *order);
    if (r->n > 1)
        qsort(order, r->n, sizeof *order, heavier_first);
    for (size_t i = 0; i < r->n; i++)
        nvalues += told[i].values;
    for (; n < r->n && n < PLOT_MAX_SERIES; n++) {
        size_t at = 0;
        while (r->streams[at].name.ptr != order[n].group.ptr)
            at++;
        snprintf(names[n], sizeof names[n], "%s",
                 show_text(order[n].group.ptr, order[n].group.len));
        series[n] = (struct plot_series){
            .name = r->grouped ? names[n] : NULL,
            .points = curves[n],
            .npoints = order[n].values
                           ? curve_points(r->streams[at].digest, curves[n])
                           : 0,
        };
        least = fmin(least, order[n].min);
        greatest = fmax(greatest, order[n].max);
    }
    size_t nseries = n;
    if (!r->grouped && told->values) {
        for (size_t i = 0; i < told->n; i++)
            marks[i] =
                (struct plot_point){ .x = told->quantiles[i].value,
                                     .y = told->quantiles[i].percent / 100 };
        series[nseries++] = (struct plot_series){ .points = marks,
                                                  .npoints = told->n,
                                                  .style = PLOT_POINTS,
                                                  .color = 1 };
    }
    snprintf(subtitle, sizeof subtitle,
             n < r->n ? "%llu values; the %zu largest of %zu groups"
                      : "%llu values",
             (unsigned long long)nvalues, n, r->n);
    free(order);
    const struct plot plot = {
        .title = "How many values lie below",
        .subtitle = subtitle,
        .x = { .label = "value",
               .format = PLOT_SI,
               .scale = least > 0 && greatest > 1000 * least ? PLOT_LOG
                                                             : PLOT_LINEAR },
        .y = { .label = "values below", .format = PLOT_PERCENT, .max = 1 },
        .series = series,
        .nseries = nseries,
    };
    if (plot_save(&plot, quantiles_args.plot))
        return true;
    fail("%s", plot_why());
    return false;
}

/* ------------------------------------------------------------------ running */

/* "50,90,99.9". False, with the reason printed. */
static bool read_percents(struct quantiles_run *r)
{
    const char *at =
        quantiles_args.quantiles ? quantiles_args.quantiles : DEFAULT_QUANTILES;
    for (;;) {
        char *end;
        const double percent = strtod(at, &end);
        if (end == at || (*end && *end != ',') ||
            !(percent >= 0 && percent <= 100)) {
            fail("-q %s: not percentages; use numbers from 0 to 100 with "
                 "commas between them, such as 50,99,99.9",
                 quantiles_args.quantiles);
            return false;
        }
        if (r->npercents == MAX_QUANTILES) {
            fail("-q: more than %d percentages", MAX_QUANTILES);
            return false;
        }
        r->percents[r->npercents++] = percent;
        if (!*end)
            return true;
        at = end + 1;
    }
}

static int by_name(const void *a, const void *b)
{
    const bly_bytes x = ((const struct stream *)a)->name;
    const bly_bytes y = ((const struct stream *)b)->name;
    const int first = memcmp(x.ptr, y.ptr, x.len < y.len ? x.len : y.len);
    return first ? first : (x.len > y.len) - (x.len < y.len);
}

static bool check_outputs(const struct list *operands)
{
    const char *const output = quantiles_args.output;
    if (output && quantiles_args.keys.select.group) {
        fail("a file holds one sketch: give -o or --by");
        return false;
    }
    if (output && !output_works(output, quantiles_args.json))
        return false;
    if (quantiles_args.plot &&
        !output_works(quantiles_args.plot, quantiles_args.json))
        return false;
    for (size_t i = 0; i < operands->n; i++) {
        const char *const name = operands->at[i];
        if ((output && !sketch_type(name) &&
             !output_spares(output, &name, 1)) ||
            (quantiles_args.plot &&
             !output_spares(quantiles_args.plot, &name, 1)))
            return false;
    }
    return true;
}

static int quantiles_all(struct quantiles_run *r, const struct list *operands)
{
    const char *const output = quantiles_args.output;
    if (!r->grouped && !stream_new(r, (bly_bytes){ "", 0 }))
        return fail("out of memory"); /* the option has its bounds */
    if (!read_operands(r, operands))
        return TROUBLE;
    if (r->grouped && r->n > 1)
        qsort(r->streams, r->n, sizeof *r->streams, by_name);
    if (output && r->trouble) {
        warn("not saved, since not all numbers could be read");
    } else if (output) {
        const bly_stored s = { .type = BLY_STORED_TDIGEST,
                               .tdigest = r->streams[0].digest };
        if (sketch_save(&s, output) != YES)
            return TROUBLE;
    }
    struct quantiled *const told = calloc(r->n + 1, sizeof *told);
    struct quantile *const all = calloc((r->n + 1) * r->npercents, sizeof *all);
    int status = told && all ? YES : fail("out of memory");
    for (size_t i = 0; i < r->n && status == YES; i++)
        told[i] = quantiled_of(r, &r->streams[i], all + i * r->npercents);
    if (status == YES && quantiles_args.plot && !save_plot(r, told))
        status = TROUBLE;
    if (status == YES)
        tell_quantiles(r, output ? report_to(output) : stdout, told);
    free(told);
    free(all);
    return r->trouble ? TROUBLE : status;
}

static int quantiles_run(struct list *operands)
{
    struct quantiles_run r = { .grouped =
                                   quantiles_args.keys.select.group != NULL };
    if (!read_percents(&r) || !check_outputs(operands))
        return TROUBLE;
    const int status = quantiles_all(&r, operands);
    for (size_t i = 0; i < r.n; i++) {
        free((void *)(uintptr_t)r.streams[i].name.ptr);
        bly_tdigest_free(r.streams[i].digest);
    }
    free(r.streams);
    lookup_free(&r.table);
    return status;
}

static const struct opt quantiles_options[] = {
    { "quantiles", 'q', OPT_TEXT, &quantiles_args.quantiles, "PERCENTS",
      "which ones, in percent, with commas between them; " DEFAULT_QUANTILES
      " if not given; 0 is the least value, 50 the median, 100 the greatest" },
    OPTION("by", 0, OPT_TEXT, &quantiles_args.keys.select.group, "FIELD",
           "the quantiles of each group; groups are named by this second "
           "field, as --field, --csv or --jsonl names the first"),
    OPTION("output", 'o', OPT_TEXT, &quantiles_args.output, "FILE",
           "save the sketch to FILE; - is standard output"),
    OPTION("plot", 0, OPT_TEXT, &quantiles_args.plot, "FILE.svg",
           "draw how many values lie below each"),
    { "compression", 0, OPT_BETWEEN(REAL, 1, 100000),
      &quantiles_args.compression, "C",
      "how fine the sketch is; 100 if not given, which is about 300 means of "
      "16 bytes" },
    BINARY_OPTION,
    SELECT_OPTIONS(quantiles_args.keys),
    THREADS_OPTION(quantiles_args.threads),
    FLAG("quiet", 0, quiet,
         "print only the quantiles, and not of how many values"),
    FLAG("json", 0, quantiles_args.json,
         "print {\"values\":N,\"min\":R,\"max\":R,\"quantiles\":[..]}, and "
         "with --by {\"values\":N,\"groups\":[..]}"),
    { 0 },
};

static const struct example quantiles_examples[] = {
    { "bloomery quantiles --field 2 times.tsv",
      "the median, and what 90, 99 and 99.9 % stay below" },
    { "bloomery quantiles -q 99 --csv ms --by route requests.csv",
      "of each route" },
    { "bloomery quantiles monday.txt -o monday.bly",
      "save the sketch, of some KB, for later" },
    { "bloomery quantiles monday.bly tuesday.bly",
      "of both days together, from what was saved" },
    { "bloomery quantiles --plot times.svg times.txt",
      "draw the distribution" },
    { 0 },
};

const struct command cmd_quantiles = {
    .name = "quantiles",
    .usage = "[OPTION]... [INPUT]...",
    .summary = "estimate the median and other percentiles of numbers",
    .about =
        "Reads numbers, one per line or in a field of each, from the input "
        "files or from standard input, and prints what so many percent of "
        "them stay below: the percentage, a tab, and the value. It takes a "
        "few kilobytes of memory, and no sort. An input may also be a sketch "
        "that was saved with -o; merge makes one sketch of several.\n\n"
        "The least and the greatest value are exact. Between them the "
        "sketch, a t-digest, errs in ranks: what it prints for 50 % may lie "
        "above 49.8 % of the values, and what it prints for 99.9 % above "
        "99.899 %. --json has the deviation of each.\n\n"
        "With --by, a line has the group, how many values it has, and a "
        "column for each quantile. A line whose field is not a number is bad. "
        "docs/quantiles.md says more.\n\n" SELECT_ABOUT,
    .options = quantiles_options,
    .examples = quantiles_examples,
    .reports = REPORTS({ "", quantiled_fields, ONE },
                       { "with --by", groups_fields, ONE }),
    .run = quantiles_run,
};
