/*
 * plot_panels.c - more series than one picture can hold: several, one below
 * the other
 *
 * Series that name a panel stand in it, in the order in which the names first
 * come; those that name none are yardsticks and stand in all of them, first, so
 * that they look the same everywhere. A panel of more than PLOT_MAX_SERIES is
 * divided again, evenly: ten become twice five, "(1 of 2)" and "(2 of 2)".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workbench/plot_layout.h"

static bool is_in(const struct plot_series *s, const char *panel)
{
    return panel ? s->panel && !strcmp(s->panel, panel) : !s->panel;
}

/* Does a series before the ith name the same panel? */
static bool is_known(const struct plot *plot, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (is_in(&plot->series[j], plot->series[i].panel))
            return true;
    return false;
}

/* How many series name this panel; NULL: how many name none. */
static size_t count_in(const struct plot *plot, const char *panel)
{
    size_t n = 0;
    for (size_t i = 0; i < plot->nseries; i++)
        n += is_in(&plot->series[i], panel);
    return n;
}

/* The yardsticks and series from .. from + n - 1 of those that are in panel. */
static void add_panel(const struct plot *plot, struct panels *out,
                      const char *panel, size_t nshared, size_t from, size_t n,
                      struct plot_series **next)
{
    struct plot *p = &out->plots[out->n++];
    size_t nth = 0;

    *p = *plot;
    p->title = p->caption = NULL;
    p->series = *next;
    for (size_t i = 0; i < plot->nseries && nshared; i++)
        if (!plot->series[i].panel)
            *(*next)++ = plot->series[i];
    for (size_t i = 0; i < plot->nseries; i++)
        if (is_in(&plot->series[i], panel) && nth++ - from < n)
            *(*next)++ = plot->series[i];
    p->nseries = (size_t)(*next - p->series);
}

/* A panel, in as many parts as it needs. */
static void add_parts(const struct plot *plot, struct panels *out,
                      const char *panel, size_t nshared,
                      struct plot_series **next)
{
    const size_t n = count_in(plot, panel), room = PLOT_MAX_SERIES - nshared;
    const size_t parts = n ? (n + room - 1) / room : 1;

    for (size_t i = 0; i < parts; i++) {
        char *name = out->names[out->n];
        const size_t from = n * i / parts, to = n * (i + 1) / parts;
        const int size = sizeof out->names[0];
        if (parts == 1)
            snprintf(name, (size_t)size, "%s", panel ? panel : "");
        else
            snprintf(name, (size_t)size, "%.60s%s%zu of %zu%s",
                     panel ? panel : "", panel ? " (" : "", i + 1, parts,
                     panel ? ")" : "");
        add_panel(plot, out, panel, nshared, from, to - from, next);
        out->plots[out->n - 1].subtitle = name;
    }
}

bool plot_divide(const struct plot *plot, struct panels *out)
{
    const size_t n = plot->nseries, nshared = count_in(plot, NULL);
    const bool named = nshared < n;

    *out = (struct panels){ .n = 0 };
    /* At most a panel for each series, with all yardsticks. */
    out->plots = calloc(n + 1, sizeof *out->plots);
    out->series =
        calloc((n + 1) * (named ? nshared + 1 : 1), sizeof *out->series);
    out->names = calloc(n + 1, sizeof *out->names);
    if (!out->plots || !out->series || !out->names) {
        plot_divide_free(out);
        return false;
    }
    struct plot_series *next = out->series;
    /* Too many for yardsticks: they have panels of their own. */
    const size_t shared = nshared < PLOT_MAX_SERIES ? nshared : 0;
    if (!named || nshared > shared)
        add_parts(plot, out, NULL, 0, &next);
    for (size_t i = 0; i < n && named; i++)
        if (plot->series[i].panel && !is_known(plot, i))
            add_parts(plot, out, plot->series[i].panel, shared, &next);
    if (out->n == 1)
        out->plots[0] = *plot;
    return true;
}

void plot_divide_free(struct panels *p)
{
    free(p->plots);
    free(p->series);
    free(p->names);
}

const char *plot_kind_panel(const bly_kind_info *kind)
{
    static const struct {
        uint32_t can;
        const char *panel;
    } rows[] = {
        { BLY_CAN(COUNT), "Kinds that count" },
        { BLY_CAN(REMOVE), "Kinds that remove keys" },
        { BLY_CAN(ADD) | BLY_CAN(MERGE), "Kinds that add and merge" },
        { BLY_CAN(ADD), "Kinds that add and do not merge" },
        { 0, "Fixed sets" },
    };
    size_t i = 0;
    while ((kind->can & rows[i].can) != rows[i].can)
        i++;
    return strcmp(kind->name, "classic") ? rows[i].panel : NULL;
}
