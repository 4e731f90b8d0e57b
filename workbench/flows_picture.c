/*
 * flows_picture.c - what the largest flows have sent over time, drawn
 *
 * A flow has a level for each span in which it was large. Where it was not, its
 * line is broken: it has sent less than was asked for, and how much nobody has
 * counted.
 */
#define _GNU_SOURCE
#include "workbench/flows_picture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "report/say.h"
#include "workbench/plot.h"

#define DRAWN (PLOT_MAX_SERIES - 1) /* flows; and all packets */
#define SPAN_POINTS 3               /* both ends, and the break behind */
#define NS 1e9

struct curves {
    const struct flows_history *h;
    struct history_row top[DRAWN];
    char names[DRAWN][FLOW_TEXT];
    struct plot_point points[PLOT_MAX_SERIES][HISTORY_SPANS * SPAN_POINTS];
    struct plot_series series[PLOT_MAX_SERIES];
};

/* Of flow `row`, or with NULL of all. */
static size_t curve_make(const struct flows_history *h,
                         const struct history_row *row, struct plot_point *out)
{
    const double width = (double)h->width / NS;
    size_t n = 0;
    for (size_t i = 0; i < h->n; i++) {
        const struct history_span *const s = &h->spans[i];
        const uint64_t bytes = row ? history_bytes(s, &row->key) : s->all;
        const double from = (double)i * width, rate = (double)bytes * 8 / width;
        if (row && !bytes) {
            if (n && isfinite(out[n - 1].y))
                out[n++] = (struct plot_point){ .x = from, .y = NAN };
            continue;
        }
        out[n++] = (struct plot_point){ .x = from, .y = rate };
        out[n++] = (struct plot_point){ .x = from + width, .y = rate };
    }
    return n;
}

static bool curves_draw(struct curves *c, size_t ntop, const char *path)
{
    const struct flows_history *const h = c->h;
    char subtitle[160], when[64] = "";
    const time_t begin = (time_t)(h->begin / (int64_t)NS);
    struct tm tm;
    if (h->n && gmtime_r(&begin, &tm))
        strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S UTC", &tm);
    snprintf(subtitle, sizeof subtitle,
             "from %s on, in spans of %g s; a line is broken where the flow "
             "was small",
             when, (double)h->width / NS);
    for (size_t i = 0; i <= ntop; i++) {
        const struct history_row *const row = i < ntop ? &c->top[i] : NULL;
        c->series[i] = (struct plot_series){
            .name =
                row ? key_text(h->key, &row->key, c->names[i]) : "all packets",
            .points = c->points[i],
            .npoints = curve_make(h, row, c->points[i]),
            .dash = row ? PLOT_SOLID : PLOT_DOTTED,
        };
    }
    const struct plot p = {
        .title = "The largest flows over time",
        .subtitle = subtitle,
        .x = { .label = "time", .unit = "s" },
        .y = { .label = "sent", .unit = "b/s", .format = PLOT_SI },
        .series = c->series,
        .nseries = ntop + 1,
    };
    return plot_save(&p, path) || refuse("%s", plot_why());
}

bool flows_picture(const struct flows_history *h, const char *path)
{
    struct curves *const c = calloc(1, sizeof *c);
    if (!c)
        return refuse("out of memory");
    c->h = h;
    const bool ok = curves_draw(c, history_top(h, c->top, DRAWN), path);
    free(c);
    return ok;
}
