/*
 * bench_plot.c - curves of a bench: one picture an operation
 *
 * Nanoseconds a key against the number of keys, a curve for each contender,
 * quartiles as bars, and dotted the F of a filter of that many keys.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "report/say.h"
#include "workbench/bench.h"
#include "workbench/plot.h"

/* The curves of op; how many have a point. */
static size_t plot_curves(const struct bench_results *r, int op, size_t width,
                          struct plot_series *series, struct plot_point *points)
{
    size_t n = 0;
    for (size_t k = 0; k < width; k++) {
        struct plot_point *const at = points + n * r->nsizes;
        bool any = false;
        for (size_t i = 0; i < r->nsizes; i++) {
            const struct bench_figure f =
                bench_ns(&r->cells[i * width + k], op);
            at[i] = (struct plot_point){ .x = (double)r->sizes[i],
                                         .y = f.median,
                                         .err_low = f.median - f.q1,
                                         .err_high = f.q3 - f.median };
            any |= isfinite(f.median);
        }
        if (any)
            series[n++] = (struct plot_series){ .name = r->cells[k].who->name,
                                                .points = at,
                                                .npoints = r->nsizes,
                                                .style = PLOT_BOTH };
    }
    return n;
}

static bool plot_op(const struct bench_results *r, int op, size_t width,
                    struct plot_series *series, struct plot_point *points,
                    const char *path)
{
    size_t n = plot_curves(r, op, width, series, points);
    if (!n)
        return true;
    struct plot_point *const at = points + n * r->nsizes;
    for (size_t i = 0; i < r->nsizes; i++)
        at[i] = (struct plot_point){ .x = (double)r->sizes[i],
                                     .y = r->floors[i].read };
    series[n++] = (struct plot_series){ .name = "F",
                                        .points = at,
                                        .npoints = r->nsizes,
                                        .style = PLOT_BOTH,
                                        .dash = PLOT_DOTTED };
    char title[96];
    snprintf(title, sizeof title, "%c%s", bench_op_texts[op][0] - 'a' + 'A',
             bench_op_texts[op] + 1);
    const struct plot plot = {
        .title = title,
        .subtitle = r->machine.cpu,
        .caption = "F: a random read of a cache line in as many bytes as a "
                   "Bloom filter of that many keys has",
        .x = { .label = "keys", .scale = PLOT_LOG, .format = PLOT_SI },
        .y = { .label = "time", .unit = "ns per key", .scale = PLOT_LOG },
        .series = series,
        .nseries = n,
    };
    return plot_save(&plot, path);
}

int bench_plot(const struct bench_results *r, const char *folder)
{
    const size_t width = r->ncells / r->nsizes;
    struct plot_series *const series = calloc(width + 1, sizeof *series);
    struct plot_point *const points =
        calloc((width + 1) * r->nsizes, sizeof *points);
    int status = series && points ? YES : fail("out of memory");
    for (int op = 0; op < NOPS && status == YES; op++) {
        char path[4096];
        if (snprintf(path, sizeof path, "%s/%s.svg", folder,
                     bench_op_names[op]) >= (int)sizeof path)
            status = fail_path(folder, ENAMETOOLONG);
        else if (!plot_op(r, op, width, series, points, path))
            status = fail("%s", plot_why());
    }
    free(series);
    free(points);
    return status;
}
