/*
 * figure.c - the points of a figure: noted, judged, printed, drawn
 *
 * A figure's files are NAME.csv, every point with its band, and NAME.svg,
 * unless the page has its values as a table.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "report/say.h"
#include "report/show.h"
#include "workbench/figure.h"
#include "workbench/plot_svg.h"

/* ----------------------------------------------------------------- noting */

static void figure_out_of_memory(struct figure_run *run)
{
    run->broken = true;
    fail("%s: out of memory", run->figure->name);
}

struct figure_series *figure_series(struct figure_run *run, const char *name,
                                    ...)
{
    /* One too many is written over: a mistake in the figure, seen at once. */
    if (run->nseries == FIGURE_MAX_SERIES) {
        run->broken = true;
        fail("%s: more than %d series", run->figure->name, FIGURE_MAX_SERIES);
        run->nseries--;
    }
    struct figure_series *s = &run->series[run->nseries++];
    va_list args;
    va_start(args, name);
    vsnprintf(s->name, sizeof s->name, name, args);
    va_end(args);
    return s;
}

static bool is_judged(const struct figure_point *p)
{
    return !isnan(p->measured) && (!isnan(p->low) || !isnan(p->high));
}

static bool is_accepted(const struct figure_point *p)
{
    return !(p->measured < p->low) && !(p->measured > p->high);
}

void figure_point(struct figure_run *run, struct figure_series *s, double x,
                  double expected, double measured, double low, double high)
{
    if (!GROW(&s->points, &s->room, s->npoints + 1)) {
        figure_out_of_memory(run);
        return;
    }
    const struct figure_point p = { x, expected, measured, low, high };
    s->points[s->npoints++] = p;
    run->njudged += is_judged(&p);
    run->nfailed += is_judged(&p) && !is_accepted(&p);
}

void figure_judge(struct figure_run *run, struct figure_series *s, double x,
                  double expected, double measured, double sd)
{
    const double low = expected - 4 * sd;
    figure_point(run, s, x, expected, measured,
                 expected >= 0 && low < 0 ? 0 : low, expected + 4 * sd);
}

void figure_note(struct figure_run *run, const char *format, ...)
{
    char *line, *both;
    va_list args;
    va_start(args, format);
    if (vasprintf(&line, format, args) < 0)
        line = NULL;
    va_end(args);
    if (!line ||
        asprintf(&both, "%s%s\n", run->notes ? run->notes : "", line) < 0) {
        figure_out_of_memory(run);
    } else {
        free(run->notes);
        run->notes = both;
    }
    free(line);
}

void figure_free(struct figure_run *run)
{
    for (size_t i = 0; i < run->nseries; i++)
        free(run->series[i].points);
    free(run->notes);
    run->nseries = 0;
    run->notes = NULL;
}

/* ------------------------------------------------------- what they share */

double figure_rate_sd(double rate, double n, double m, double k,
                      double nqueries, double nfilters)
{
    double variance = rate * (1 - rate) / (nqueries * nfilters);
    if (isfinite(m)) {
        const double load = k * n / m, zero = exp(-load);
        const double slope = k * rate / (1 - zero);
        variance +=
            slope * slope * zero * (1 - (1 + load) * zero) / m / nfilters;
    }
    return sqrt(variance);
}

/* "a=b c=d" into options of a spec; the words are in text, which is cut up. */
static size_t split_options(char *text, bly_option *at, size_t max)
{
    size_t n = 0;
    for (char *word = strtok(text, " "); word && n < max;
         word = strtok(NULL, " ")) {
        char *equals = strchr(word, '=');
        if (equals)
            *equals = '\0';
        at[n++] = (bly_option){ word, equals ? equals + 1 : "" };
    }
    return n;
}

static void figure_library_failed(struct figure_run *run)
{
    run->broken = true;
    fail("%s: %s", run->figure->name, bly_error());
}

/* A spec with options added, which point into it. */
struct full_spec {
    bly_spec spec;
    bly_option options[BLY_MAX_PARAMS];
    char text[200];
};

static const bly_spec *with_options(struct full_spec *to, const bly_spec *spec,
                                    const char *options)
{
    to->spec = *spec;
    snprintf(to->text, sizeof to->text, "%s", options ? options : "");
    to->spec.options = to->options;
    to->spec.noptions = split_options(to->text, to->options, BLY_MAX_PARAMS);
    return &to->spec;
}

bly_filter *figure_filter(struct figure_run *run, const bly_spec *spec,
                          const char *options)
{
    struct full_spec full;
    bly_filter *f;
    if (bly_new(with_options(&full, spec, options), &f))
        figure_library_failed(run);
    return f;
}

enum { FIGURE_PIECE = 4096 };

static size_t next_piece(uint64_t *ints, uint64_t *first, uint64_t *n)
{
    const size_t piece = *n < FIGURE_PIECE ? (size_t)*n : FIGURE_PIECE;
    for (size_t i = 0; i < piece; i++)
        ints[i] = *first + i;
    *first += piece;
    *n -= piece;
    return piece;
}

bly_filter *figure_built(struct figure_run *run, const bly_spec *spec,
                         const char *options, uint64_t first, uint64_t n)
{
    struct full_spec full;
    bly_builder *b = NULL;
    bly_filter *f = NULL;
    bly_kind_info kind = { 0 };
    uint64_t ints[FIGURE_PIECE], hashes[FIGURE_PIECE];
    bly_status st = bly_builder_new(with_options(&full, spec, options), &b);
    bly_kind_named(spec->kind, &kind);
    const bool valued =
        (kind.can & BLY_CAN(BUILD)) && (kind.can & BLY_CAN(GET));
    while (!st && n) {
        const size_t piece = next_piece(ints, &first, &n);
        bly_hash_ints(bly_builder_hasher(b), ints, piece, hashes);
        st = bly_builder_add(b, hashes, valued ? ints : NULL, piece);
    }
    if (!st)
        st = bly_builder_finish(b, 0, &f);
    if (st)
        figure_library_failed(run);
    bly_builder_free(b);
    return f;
}

bool figure_add(struct figure_run *run, bly_filter *f, uint64_t first,
                uint64_t n)
{
    uint64_t ints[FIGURE_PIECE];
    while (n) {
        const size_t piece = next_piece(ints, &first, &n);
        if (bly_add_ints(f, ints, piece, NULL, NULL)) {
            figure_library_failed(run);
            return false;
        }
    }
    return true;
}

double figure_share(const bly_filter *f, uint64_t first, uint64_t n)
{
    uint64_t ints[FIGURE_PIECE], maybe[BLY_BITMAP_WORDS(FIGURE_PIECE)];
    const double all = (double)n;
    uint64_t found = 0;
    while (n) {
        const size_t piece = next_piece(ints, &first, &n);
        bly_has_ints(f, ints, piece, maybe);
        for (size_t i = 0; i < BLY_BITMAP_WORDS(piece); i++)
            found += (uint64_t)__builtin_popcountll(maybe[i]);
    }
    return (double)found / all;
}

/* ------------------------------------------------------------------ table */

/* A value in a column of the table, in 10 characters; what is missing is a
 * dash. */
static const char *show_value(double value, char *text, size_t size)
{
    if (isnan(value))
        snprintf(text, size, "-");
    else if (value != 0 && (fabs(value) < 1e-3 || fabs(value) >= 1e7))
        snprintf(text, size, "%.4g", value);
    else
        snprintf(text, size, fabs(value) < 1 ? "%.5g" : "%.6g", value);
    return text;
}

/* No more than 60 columns, except for what went wrong. */
static void print_point(const struct figure_point *p)
{
    char x[24], expected[24], measured[24], low[24], high[24];
    printf("  %9s %10s %10s", show_value(p->x, x, sizeof x),
           show_value(p->expected, expected, sizeof expected),
           show_value(p->measured, measured, sizeof measured));
    if (is_judged(p))
        printf("  %s .. %s%s", show_value(p->low, low, sizeof low),
               show_value(p->high, high, sizeof high),
               is_accepted(p) ? "" : "  OUTSIDE");
    putchar('\n');
}

static void print_table(const struct figure_run *run)
{
    printf("%s: %s\n", run->figure->name, run->figure->title);
    for (size_t i = 0; i < run->nseries; i++) {
        printf("\n  %s\n  %9s %10s %10s  %s\n", run->series[i].name, "x",
               "expected", "measured", "accepted");
        for (size_t k = 0; k < run->series[i].npoints; k++)
            print_point(&run->series[i].points[k]);
    }
    putchar('\n');
    if (run->notes)
        print_wrapped(stdout, run->notes, 0, 2);
    printf("  %zu of %zu values in their bands\n\n",
           run->njudged - run->nfailed, run->njudged);
}

void figure_page_table(FILE *to, const struct figure_run *run)
{
    char text[24];
    fprintf(to, "| | %s | expected | measured | accepted |\n",
            run->x.label ? run->x.label : "");
    fputs("| --- | ---: | ---: | ---: | ---: |\n", to);
    for (size_t i = 0; i < run->nseries; i++)
        for (size_t k = 0; k < run->series[i].npoints; k++) {
            const struct figure_point *const p = &run->series[i].points[k];
            fprintf(to, "| %s", run->series[i].name);
            for (size_t v = 0; v < 3; v++)
                fprintf(to, " | %s",
                        show_value(v == 0   ? p->x
                                   : v == 1 ? p->expected
                                            : p->measured,
                                   text, sizeof text));
            fprintf(to, " | %s to ", show_value(p->low, text, sizeof text));
            fprintf(to, "%s |\n", show_value(p->high, text, sizeof text));
        }
}

const struct field figure_fields[] = {
    FIELD(struct figure, name, NONE, "its name"),
    FIELD(struct figure, title, NONE, "its title"),
    FIELD(struct figure, source, NONE,
          "what it redraws, or where the formula stands"),
    FIELD(struct figure, machine, NONE,
          "whether it measures the machine, so that no two runs agree"),
    FIELD(struct figure, tabled, NONE,
          "whether it is a table of the page instead of a picture"),
    { 0 },
};

struct noted {
    const char *series;
    struct figure_point at;
    const bool *ok; /* NULL: it is not judged */
};

static const struct field noted_fields[] = {
    FIELD(struct noted, series, NONE, "the curve"),
    NAMED(struct noted, "x", at.x, MAYBE, "where it is"),
    NAMED(struct noted, "expected", at.expected, MAYBE, "by the formula"),
    NAMED(struct noted, "measured", at.measured, MAYBE, "by the run"),
    NAMED(struct noted, "low", at.low, MAYBE, "what is accepted, from"),
    NAMED(struct noted, "high", at.high, MAYBE, "and to"),
    FIELD(struct noted, ok, MAYBE, "whether it is; null if nothing is asked"),
    { 0 },
};

static void make_noted(const void *from, size_t i, void *element)
{
    static const bool answers[] = { false, true };
    const struct figure_series *s = ((const struct figure_run *)from)->series;
    while (i >= s->npoints)
        i -= s++->npoints;
    const struct figure_point *const p = &s->points[i];
    *(struct noted *)element =
        (struct noted){ s->name, *p,
                        is_judged(p) ? &answers[is_accepted(p)] : NULL };
}

struct drawn {
    const struct figure *figure;
    uint64_t judged, outside;
    const char *notes;
    const struct figure_run *run;
    size_t npoints;
};

const struct field drawn_fields[] = {
    MEMBERS(struct drawn, figure, AT, figure_fields),
    FIELD(struct drawn, judged, NONE, "values that are held to a band"),
    FIELD(struct drawn, outside, NONE, "values outside of theirs"),
    FIELD(struct drawn, notes, MAYBE, "what else was found"),
    EACH(struct drawn, "points", run, npoints, NONE, make_noted, struct noted,
         noted_fields, "the values"),
    { 0 },
};

static void json_figure(struct json *j, const struct figure_run *run)
{
    struct drawn drawn = { run->figure, run->njudged, run->nfailed,
                           run->notes,  run,          0 };
    for (size_t i = 0; i < run->nseries; i++)
        drawn.npoints += run->series[i].npoints;
    report_object(j, drawn_fields, &drawn);
}

/* ------------------------------------------------------------------ files */

static bool put_text(plot_put *put, void *ctx, const char *text)
{
    return put(ctx, text, strlen(text));
}

/* A number in a file: empty where there is none. */
static bool put_number(plot_put *put, void *ctx, double value, char end)
{
    char text[40];
    int n = isnan(value) ? 0 : snprintf(text, sizeof text, "%.9g", value);
    text[n++] = end;
    return put(ctx, text, (size_t)n);
}

static bool write_csv(const void *what, plot_put *put, void *ctx)
{
    const struct figure_run *run = what;
    bool ok = put_text(put, ctx, "series,x,expected,measured,low,high\n");
    for (size_t i = 0; i < run->nseries && ok; i++)
        for (size_t k = 0; k < run->series[i].npoints && ok; k++) {
            const struct figure_point *p = &run->series[i].points[k];
            ok = put_text(put, ctx, "\"") &&
                 put_text(put, ctx, run->series[i].name) &&
                 put_text(put, ctx, "\",") && put_number(put, ctx, p->x, ',') &&
                 put_number(put, ctx, p->expected, ',') &&
                 put_number(put, ctx, p->measured, ',') &&
                 put_number(put, ctx, p->low, ',') &&
                 put_number(put, ctx, p->high, '\n');
        }
    return ok;
}

/* What is expected and what was measured, of one series. */
static struct plot_series series_of_plot(const struct figure_series *s,
                                         struct plot_point *room)
{
    struct plot_point *expected = room, *measured = room + s->npoints;
    size_t nexpected = 0, nmeasured = 0;
    for (size_t i = 0; i < s->npoints; i++) {
        const struct figure_point *p = &s->points[i];
        if (!isnan(p->expected))
            expected[nexpected++] =
                (struct plot_point){ .x = p->x, .y = p->expected };
        if (!isnan(p->measured))
            measured[nmeasured++] =
                (struct plot_point){ .x = p->x, .y = p->measured };
    }
    return (struct plot_series){
        .name = s->name,
        .points = measured,
        .npoints = nmeasured,
        .expected = expected,
        .nexpected = nexpected,
        .panel = s->panel,
        .style = s->style    ? s->style
                 : nexpected ? PLOT_POINTS
                             : PLOT_BOTH,
        .color = s->color,
    };
}

/* Is there a measured nothing, for which a log axis has no place? */
static bool has_unplaced(const struct figure_run *run)
{
    for (size_t i = 0; i < run->nseries && run->y.scale == PLOT_LOG; i++)
        for (size_t k = 0; k < run->series[i].npoints; k++)
            if (!run->series[i].unseen &&
                run->series[i].points[k].measured == 0)
                return true;
    return false;
}

static bool save_picture(const struct figure_run *run, const char *path)
{
    struct plot_series series[FIGURE_MAX_SERIES];
    struct plot_point *room[FIGURE_MAX_SERIES] = { 0 };
    size_t n = 0;
    bool ok = true;
    for (size_t i = 0; i < run->nseries && ok; i++) {
        const struct figure_series *s = &run->series[i];
        if (s->unseen || !s->npoints)
            continue;
        room[i] = calloc(2 * s->npoints, sizeof *room[i]);
        ok = room[i] != NULL;
        if (ok)
            series[n++] = series_of_plot(s, room[i]);
    }
    char caption[400];
    snprintf(caption, sizeof caption, "%s%s", run->figure->source,
             has_unplaced(run) ? " Where there is no marker, none was found."
                               : "");
    const struct plot p = {
        .title = run->figure->title,
        .subtitle = run->subtitle[0] ? run->subtitle : NULL,
        .caption = caption,
        .x = run->x,
        .y = run->y,
        .series = series,
        .nseries = n,
        .references = run->references,
        .nreferences = run->nreferences,
    };
    if (!ok)
        fail("out of memory");
    else if (!(ok = plot_save(&p, path)))
        fail("%s", plot_why());
    for (size_t i = 0; i < run->nseries; i++)
        free(room[i]);
    return ok;
}

static bool figure_save(const struct figure_run *run, const char *folder)
{
    char *csv = NULL, *svg = NULL;
    bool ok = asprintf(&csv, "%s/%s.csv", folder, run->figure->name) >= 0 &&
              asprintf(&svg, "%s/%s.svg", folder, run->figure->name) >= 0;
    if (!ok)
        fail("out of memory");
    if (ok && !plot_to_file(write_csv, run, csv)) {
        ok = false;
        fail("%s", plot_why());
    }
    bool (*const draw)(const struct figure_run *, const char *) =
        run->figure->draw ? run->figure->draw : save_picture;
    ok = ok && (run->figure->tabled || draw(run, svg));
    free(csv);
    free(svg);
    return ok;
}

bool figure_show(struct figure_run *run, const char *folder, struct json *j)
{
    run->figure->run(run);
    if (run->broken)
        return false;
    if (j)
        json_figure(j, run);
    else
        print_table(run);
    fflush(stdout);
    return !folder || figure_save(run, folder);
}
