/*
 * plot.c - curves and bars as SVG
 *
 * A picture is 800 units wide and as a rule 500 high, and is divided so:
 *
 *     +--------------------------------------------------+
 *     | title, subtitle                                  |
 *     | y label      labels of vertical lines            |
 *     |  y  +----------------------------+               |
 *     |  t  |                            | names at line |
 *     |  i  |   the plot                 | ends, or the  |
 *     |  c  |   left..right, top..bottom | legend in     |
 *     |  k  |                            | columns       |
 *     |  s  +----------------------------+               |
 *     |        x ticks, x label                          |
 *     | the legend, if it is too wide for the right      |
 *     | caption                                          |
 *     +--------------------------------------------------+
 *
 * Nothing but data, grid and reference lines is drawn inside the plot, so no
 * word can cover a point. plot_layout.c finds the edges and places the names,
 * plot_axis.c the ticks; this file draws what they have decided.
 *
 * A point that cannot be placed (not finite, or not above zero on a log axis)
 * breaks a line. Series differ in colour and marker; plot_panels.c sees to it
 * that there are never more of them in one panel than of either.
 *
 * Not here: stacked bars, second y axes, dates. Lines are drawn in the order
 * of their points and not sorted.
 */
#include <math.h>
#include <stdlib.h>

#include "workbench/plot.h"
#include "workbench/plot_layout.h"

/* What the picture shows, for those who cannot see it. */
static void draw_description(struct svg *o, const struct plot *plot)
{
    char x[512], y[512];

    svg(o, "<desc>");
    if (plot_named(plot->subtitle))
        svg(o, "%s. ", plot->subtitle);
    axis_title(&plot->x, x, sizeof x);
    axis_title(&plot->y, y, sizeof y);
    svg(o, "%s against %s.", *y ? y : "y", *x ? x : "x");
    for (size_t i = 0, n = 0; i < plot->nseries; i++)
        if (plot_named(plot->series[i].name))
            svg(o, "%s%s", n++ ? ", " : " Series: ", plot->series[i].name);
    svg(o, "</desc>\n");
}

/* The outline of a marker, as path data. */
static void draw_marker(struct svg *o, enum plot_marker marker, double x,
                        double y, double r)
{
    const double q = r * 0.88, d = r * 1.25;

    switch (marker) {
    case PLOT_SQUARE:
        svg(o, "M%n %nh%nv%nh%nz", x - q, y - q, 2 * q, 2 * q, -2 * q);
        break;
    case PLOT_TRIANGLE:
        svg(o, "M%n %nl%n %nh%nz", x, y - d, d, d * 1.7, -2 * d);
        break;
    case PLOT_TRIANGLE_DOWN:
        svg(o, "M%n %nl%n %nh%nz", x, y + d, d, -d * 1.7, -2 * d);
        break;
    case PLOT_DIAMOND:
        svg(o, "M%n %nl%n %nl%n %nl%n %nz", x, y - d, d, d, -d, d, -d, -d);
        break;
    case PLOT_CROSS:
        svg(o, "M%n %nl%n %nm0 %nl%n %n", x - q, y - q, 2 * q, 2 * q, -2 * q,
            -2 * q, 2 * q);
        break;
    case PLOT_PLUS:
        svg(o, "M%n %nh%nM%n %nv%n", x - d, y, 2 * d, x, y - d, 2 * d);
        break;
    case PLOT_MARKER_AUTO:
    case PLOT_CIRCLE:
    case PLOT_RING:
        svg(o, "M%n %na%n %n 0 1 0 %n 0a%n %n 0 1 0 %n 0z", x - r, y, r, r,
            2 * r, r, r, -2 * r);
        break;
    }
}

/* "- - expected  o measured" at the right end, above the plot: beside the name
 * of the y axis, `beside` wide, or above it. */
static void draw_key(struct picture *p, double beside)
{
    struct svg *o = p->svg;
    const double right = SVG_WIDTH - SVG_MARGIN;
    const bool above = beside + p->key + 20 > right - SVG_MARGIN && beside > 0;
    const double y =
        p->top - 12 - p->nmark_rows * PLOT_ROW - (above ? PLOT_ROW : 0);
    double x = right - p->key;

    svg(o, "<path class=\"line d2\" d=\"M%n %nh24\"/>\n", x, y - 4);
    svg(o, "<text class=\"key\" x=\"%n\" y=\"%n\">" PLOT_EXPECTED "</text>\n",
        x + PLOT_SWATCH, y);
    if (!p->measured)
        return;
    x += PLOT_SWATCH + svg_text_width(PLOT_EXPECTED, NULL, 12) + 14;
    if (p->bars) {
        svg(o, "<path class=\"bar\" d=\"M%n %nh16v10h-16z\"/>\n", x + 8, y - 9);
    } else {
        svg(o, "<path class=\"dot\" d=\"");
        draw_marker(o, PLOT_CIRCLE, x + 19, y - 4, 3.6);
        svg(o, "\"/>\n");
    }
    svg(o, "<text class=\"key\" x=\"%n\" y=\"%n\">" PLOT_MEASURED "</text>\n",
        x + PLOT_SWATCH, y);
}

static void draw_frame(struct picture *p)
{
    struct svg *o = p->svg;
    char buf[512];

    svg_titles(o, p->plot->title, p->plot->subtitle);
    if (*axis_title(&p->plot->y, buf, sizeof buf)) {
        svg(o, "<text x=\"%n\" y=\"%n\">", SVG_MARGIN,
            p->top - 12 - p->nmark_rows * PLOT_ROW);
        svg_fitted(o, buf, 12, SVG_WIDTH - 2 * SVG_MARGIN);
        svg(o, "</text>\n");
    }
    if (p->key > 0)
        draw_key(p, svg_text_width(buf, NULL, 12));

    for (unsigned major = 0; major < 2; major++) {
        const size_t nx = major ? p->x.nmajor : p->x.nminor;
        const size_t ny = major ? p->y.nmajor : p->y.nminor;
        if (nx + ny == 0)
            continue;
        svg(o, "<path class=\"%s\" d=\"", major ? "grid" : "fine");
        for (size_t i = 0; i < nx && !p->x.want->ncategories; i++)
            svg(o, "M%n %nV%n",
                axis_place(&p->x, major ? p->x.major[i].at : p->x.minor[i]),
                p->top, p->bottom);
        for (size_t i = 0; i < ny; i++)
            svg(o, "M%n %nH%n", p->left,
                axis_place(&p->y, major ? p->y.major[i].at : p->y.minor[i]),
                p->right);
        svg(o, "\"/>\n");
    }

    for (size_t i = 0; i < p->x.nmajor; i++) {
        const struct tick *t = &p->x.major[i];
        const double at = axis_place(&p->x, t->at);
        if (p->x.slant) {
            const double down = p->bottom + (p->x.slant == 40 ? 14 : 8);
            const double right = at + (p->x.slant == 40 ? 3 : 4);
            svg(o,
                "<text class=\"e\" transform=\"translate(%n %n) "
                "rotate(-%u)\">",
                right, down, p->x.slant);
            axis_draw_tick(o, t, PLOT_MAX_SLANTED);
        } else {
            svg(o, "<text class=\"m\" x=\"%n\" y=\"%n\">", at, p->bottom + 18);
            axis_draw_tick(o, t, SVG_WIDTH);
        }
        svg(o, "</text>\n");
    }
    for (size_t i = 0; i < p->y.nmajor; i++) {
        svg(o, "<text class=\"e\" x=\"%n\" y=\"%n\">", p->left - 7,
            axis_place(&p->y, p->y.major[i].at) + 4);
        axis_draw_tick(o, &p->y.major[i], SVG_WIDTH);
        svg(o, "</text>\n");
    }
    if (*axis_title(&p->plot->x, buf, sizeof buf)) {
        const double w =
            fmin(svg_text_width(buf, NULL, 12), SVG_WIDTH - 2 * SVG_MARGIN);
        const double mid = (p->left + p->right) / 2;
        svg(o, "<text class=\"m\" x=\"%n\" y=\"%n\">",
            fmax(SVG_MARGIN + w / 2, fmin(SVG_WIDTH - SVG_MARGIN - w / 2, mid)),
            p->bottom + p->x_room + 16);
        svg_fitted(o, buf, 12, SVG_WIDTH - 2 * SVG_MARGIN);
        svg(o, "</text>\n");
    }
    const double h = svg_paragraph(NULL, SVG_CAPTION, p->plot->caption, 0);
    svg_paragraph(o, SVG_CAPTION, p->plot->caption, p->height - h - 10);
}

/* The axes themselves; over bars, under lines. */
static void draw_axes(struct picture *p)
{
    const double zero = axis_place(&p->y, axis_coordinate(p->y.want, 0));

    svg(p->svg, "<path class=\"axis\" d=\"M%n %nV%nH%n", p->left, p->top,
        p->bottom, p->right);
    if (zero > p->top + 1 && zero < p->bottom - 1)
        svg(p->svg, "M%n %nH%n", p->left, zero, p->right);
    for (size_t i = 0; i < p->x.nmajor && !p->x.want->ncategories; i++)
        svg(p->svg, "M%n %nv4", axis_place(&p->x, p->x.major[i].at), p->bottom);
    svg(p->svg, "\"/>\n");
}

/* The value of x or y in words, for a tooltip. */
static void draw_value(struct svg *o, const struct plot_axis *a, double v,
                       const char *otherwise)
{
    char text[AXIS_LABEL];

    svg(o, "\n%s: ", plot_named(a->label) ? a->label : otherwise);
    if (v >= 0 && v < (double)a->ncategories && v == floor(v)) {
        svg(o, "%s", a->categories[(size_t)v]);
        return;
    }
    axis_value_text(text, a->format, v, v, 5, AXIS_COMPUTER);
    svg(o, "%s", text);
    if (plot_named(a->unit))
        svg(o, " %s", a->unit);
}

/* End an element whose start tag is still open, with its tooltip. */
static void draw_tooltip(struct picture *p, const struct plot_series *s,
                         const struct plot_point *t)
{
    struct svg *o = p->svg;
    char low[AXIS_LABEL], high[AXIS_LABEL];

    if (!p->tooltips) {
        svg(o, "/>\n");
        return;
    }
    svg(o, "><title>%s", s->name);
    draw_value(o, p->x.want, t->x, "x");
    draw_value(o, p->y.want, t->y, "y");
    if (t->err_low > 0 || t->err_high > 0) {
        const double a = t->y - (t->err_low > 0 ? t->err_low : 0);
        const double b = t->y + (t->err_high > 0 ? t->err_high : 0);
        axis_value_text(low, p->y.want->format, a, a, 5, AXIS_COMPUTER);
        axis_value_text(high, p->y.want->format, b, b, 5, AXIS_COMPUTER);
        svg(o, " (%s to %s)", low, high);
    }
    svg(o, "</title></path>\n");
}

static bool inside(const struct picture *p, double x, double y)
{
    return x >= p->left - 0.5 && x <= p->right + 0.5 && y >= p->top - 0.5 &&
           y <= p->bottom + 0.5;
}

static bool is_open(enum plot_marker m)
{
    return m == PLOT_CROSS || m == PLOT_PLUS || m == PLOT_RING;
}

/* Start what is cut off at the edges of the plot, or a little outside, where
 * the width of a line on the edge and half the cap of an error bar reach. An
 * inner <svg> needs no id, which would clash where pictures share a page. */
static void draw_clip_start(struct picture *p)
{
    const double w = p->right - p->left + 8, h = p->bottom - p->top + 4;

    svg(p->svg,
        "<svg x=\"%n\" y=\"%n\" width=\"%n\" height=\"%n\" "
        "viewBox=\"%n %n %n %n\">\n",
        p->left - 4, p->top - 2, w, h, p->left - 4, p->top - 2, w, h);
}

static void draw_band(struct picture *p, const struct plot_series *s)
{
    struct svg *o = p->svg;
    double x, y;

    for (size_t i = 0; i < s->npoints;) {
        if (!plot_locate(p, &s->points[i], &x, &y)) {
            i++;
            continue;
        }
        size_t end = i;
        while (end < s->npoints && plot_locate(p, &s->points[end], &x, &y))
            end++;
        svg(o, "<path class=\"band\" d=\"");
        for (size_t k = 0; k < 2 * (end - i); k++) {
            const bool up = k < end - i;
            const struct plot_point *t =
                &s->points[up ? i + k : end - 1 - (k - (end - i))];
            const double e = up ? t->err_high : -t->err_low;
            const double v = t->y + (isnan(e) ? 0 : e);
            const double c = axis_coordinate(p->y.want, v);
            plot_locate(p, t, &x, &y);
            /* Below zero on a log axis is below everything. */
            svg(o, "%s%n %n", k ? "L" : "M", x,
                axis_place(&p->y,
                           isnan(c) ? p->y.lo - (p->y.hi - p->y.lo) : c));
        }
        svg(o, "z\"/>\n");
        i = end;
    }
}

static void draw_line(struct picture *p, const struct plot_point *points,
                      size_t npoints, enum plot_style style,
                      enum plot_dash dash)
{
    struct svg *o = p->svg;
    double x, y, px = NAN, py = NAN;
    bool pen = false;

    svg(o, "<path class=\"line d%u\" d=\"", (unsigned)dash);
    for (size_t i = 0; i < npoints; i++) {
        if (!plot_locate(p, &points[i], &x, &y)) {
            pen = false;
            continue;
        }
        if (!pen)
            svg(o, "M%n %n", x, y);
        else if (style == PLOT_STEPS)
            svg(o, "H%nV%n", x, y);
        else if (fabs(x - px) >= 0.01 || fabs(y - py) >= 0.01)
            svg(o, "L%n %n", x, y);
        else
            continue; /* the pen has not moved */
        pen = true;
        px = x;
        py = y;
    }
    svg(o, "\"/>\n");
}

static void draw_errors(struct picture *p, const struct plot_series *s,
                        const struct look *l)
{
    struct svg *o = p->svg;
    const double cap = l->width > 0 ? fmax(2, fmin(7, l->width - 2)) : 7;
    bool any = false;
    double x, y;

    for (size_t i = 0; i < s->npoints; i++) {
        const struct plot_point *t = &s->points[i];
        const double low = t->err_low > 0 ? t->err_low : 0;
        const double high = t->err_high > 0 ? t->err_high : 0;
        if ((low == 0 && high == 0) || !plot_locate(p, t, &x, &y))
            continue;
        x += l->shift;
        const double c = axis_coordinate(p->y.want, t->y - low);
        const double d = axis_coordinate(p->y.want, t->y + high);
        const double span = p->y.hi - p->y.lo; /* beyond the ends: unseen */
        const double from = axis_place(&p->y, isnan(c) ? p->y.lo - span : c);
        const double to = axis_place(&p->y, isnan(d) ? p->y.hi + span : d);
        if (!any)
            svg(o, "<path class=\"err\" d=\"");
        any = true;
        svg(o, "M%n %nV%n", x, from, to);
        if (low > 0)
            svg(o, "M%n %nh%n", x - cap / 2, from, cap);
        if (high > 0)
            svg(o, "M%n %nh%n", x - cap / 2, to, cap);
    }
    if (any)
        svg(o, "\"/>\n");
}

static void draw_bars(struct picture *p, const struct plot_series *s,
                      const struct look *l)
{
    struct svg *o = p->svg;
    const double zero = axis_place(&p->y, axis_coordinate(p->y.want, 0));
    const double base =
        fmax(p->top, fmin(p->bottom, isnan(zero) ? p->y.from : zero));
    const double gap = l->width > 4 ? 1 : 0;
    double x, y;

    for (size_t i = 0; i < s->npoints; i++) {
        if (!plot_locate(p, &s->points[i], &x, &y) || x < p->left ||
            x > p->right)
            continue;
        y = fmax(p->top, fmin(p->bottom, y));
        svg(o,
            "<path class=\"bar%s\" stroke-width=\"%n\" d=\"M%n %nV%nh%nV%nz\"",
            l->round % 3 == 0   ? ""
            : l->round % 3 == 1 ? "1"
                                : "2",
            l->round % 3 ? 1.0 : 0.0, x + l->shift - l->width / 2 + gap, base,
            y, l->width - 2 * gap, base);
        draw_tooltip(p, s, &s->points[i]);
    }
}

/* What is expected of bars: a dashed line across each, in the colour of ink. */
static void draw_levels(struct picture *p, const struct plot_series *s,
                        const struct look *l)
{
    double x, y;

    for (size_t i = 0; i < s->nexpected; i++)
        if (plot_locate(p, &s->expected[i], &x, &y))
            svg(p->svg, "<path class=\"line d2\" d=\"M%n %nh%n\"/>\n",
                x + l->shift - l->width * 0.7, y, l->width * 1.4);
}

/* What is expected at one point alone, where a line would have no length: as
 * long as in the legend, within the plot. */
static void draw_lone(struct picture *p, const struct plot_point *expected)
{
    double x, y;

    if (!plot_locate(p, expected, &x, &y))
        return;
    const double from = fmax(p->left, x - 12), to = fmin(p->right, x + 12);
    svg(p->svg, "<path class=\"line d2\" d=\"M%n %nH%n\"/>\n", from, y, to);
}

/* Markers, what only tooltips see, and the lone points of lines, which would
 * otherwise not be seen at all. Not clipped: a marker is drawn whole or, with
 * its middle outside, not at all. */
static void draw_points(struct picture *p, const struct plot_series *s,
                        const struct look *l)
{
    struct svg *o = p->svg;
    const double r = s->npoints > 300 ? 2 : 3.6;
    double x, y, u, v, lastx = INFINITY, lasty = INFINITY;

    for (size_t i = 0; i < s->npoints; i++) {
        if (!plot_locate(p, &s->points[i], &x, &y) || !inside(p, x, y))
            continue;
        const bool lone =
            l->line && (i == 0 || !plot_locate(p, &s->points[i - 1], &u, &v)) &&
            (i + 1 == s->npoints || !plot_locate(p, &s->points[i + 1], &u, &v));
        const bool apart =
            !l->line || lone || hypot(x - lastx, y - lasty) >= l->gap;
        if ((l->markers && apart) || lone) {
            svg(o, "<path class=\"%s\" d=\"",
                is_open(l->marker) ? "open" : "dot");
            draw_marker(o, l->marker, x, y, r);
            svg(o, "\"");
            lastx = x;
            lasty = y;
        } else if (p->tooltips && l->line) {
            svg(o, "<path class=\"hit\" d=\"");
            draw_marker(o, PLOT_CIRCLE, x, y, 5);
            svg(o, "\"");
        } else {
            continue;
        }
        draw_tooltip(p, s, &s->points[i]);
    }
}

/* What lies behind comes first. */
enum layer { BANDS, BARS, LINES };

static void draw_layer(struct picture *p, enum layer layer)
{
    struct svg *o = p->svg;

    for (size_t i = 0; i < p->plot->nseries; i++) {
        const struct plot_series *s = &p->plot->series[i];
        const struct look *l = &p->looks[i];
        const enum layer mine = s->style == PLOT_BAND   ? BANDS
                                : s->style == PLOT_BARS ? BARS
                                                        : LINES;
        if (mine != layer || s->npoints + s->nexpected == 0)
            continue;
        svg(o, "<g class=\"s c%u\">", l->color);
        if (plot_named(s->name))
            svg(o, "<title>%s</title>", s->name);
        svg(o, "\n");
        switch (layer) {
        case BANDS:
            draw_clip_start(p);
            draw_band(p, s);
            svg(o, "</svg>\n</g>\n");
            break;
        case BARS: /* and their errors in the colour of ink, to be seen */
            draw_bars(p, s, l);
            svg(o, "</g>\n");
            draw_clip_start(p);
            draw_errors(p, s, l);
            draw_levels(p, s, l);
            svg(o, "</svg>\n");
            break;
        case LINES:
            draw_clip_start(p);
            if (s->nexpected == 1)
                draw_lone(p, s->expected);
            else if (s->nexpected)
                draw_line(p, s->expected, s->nexpected, PLOT_LINE, PLOT_DASHED);
            if (l->line && s->npoints)
                draw_line(p, s->points, s->npoints, s->style, l->dash);
            draw_errors(p, s, l);
            svg(o, "</svg>\n");
            draw_points(p, s, l);
            svg(o, "</g>\n");
            break;
        }
    }
}

static void draw_references(struct picture *p)
{
    struct svg *o = p->svg;

    for (size_t i = 0; i < p->plot->nreferences; i++) {
        const struct plot_reference *r = &p->plot->references[i];
        const struct axis *a = r->vertical ? &p->x : &p->y;
        const double c = axis_coordinate(a->want, r->at);
        if (isnan(c) || !axis_within(a, c))
            continue;
        if (r->vertical)
            svg(o, "<path class=\"ref\" d=\"M%n %nV%n\"/>\n", axis_place(a, c),
                p->bottom, p->top);
        else
            svg(o, "<path class=\"ref\" d=\"M%n %nH%n\"/>\n", p->left,
                axis_place(a, c), p->right);
    }
    for (size_t i = 0; i < p->nmarks; i++) {
        const struct plot_mark *m = &p->marks[i];
        const double y = p->top - 6 - m->row * PLOT_ROW;
        const double x = m->at + 4 * p->mark_side;
        if (m->room < 20)
            continue; /* too many lines to name them all */
        svg(o, "<path class=\"ref\" d=\"M%n %nV%n\"/>\n", m->at, p->top, y - 9);
        svg(o, "<text class=\"%s\" x=\"%n\" y=\"%n\">",
            p->mark_side > 0 ? "b" : "e", x, y);
        svg_fitted(o, m->name, 12, m->room);
        svg(o, "</text>\n");
    }
}

/* A sample of a series, 24 wide, its middle at y. */
static void draw_swatch(struct picture *p, const struct label *l, double x,
                        double y)
{
    struct svg *o = p->svg;

    if (!l->series) {
        svg(o, "<path class=\"ref\" d=\"M%n %nh24\"/>\n", x, y);
        return;
    }
    svg(o, "<g class=\"c%u\">", l->look->color);
    if (l->series->style == PLOT_BARS || l->series->style == PLOT_BAND)
        svg(o, "<path class=\"%s%s\" d=\"M%n %nh16v10h-16z\"/>",
            l->series->style == PLOT_BAND ? "band" : "bar",
            l->series->style == PLOT_BAND || l->look->round % 3 == 0 ? ""
            : l->look->round % 3 == 1                                ? "1"
                                                                     : "2",
            x + 4, y - 5);
    if (l->look->line ||
        (l->series->nexpected && l->series->style != PLOT_BARS))
        svg(o, "<path class=\"line d%u\" d=\"M%n %nh24\"/>",
            l->look->line && l->series->npoints ? (unsigned)l->look->dash
                                                : (unsigned)PLOT_DASHED,
            x, y);
    if (l->look->markers && l->series->npoints) {
        svg(o, "<path class=\"%s\" d=\"",
            is_open(l->look->marker) ? "open" : "dot");
        draw_marker(o, l->look->marker, x + 12, y, 3.6);
        svg(o, "\"/>");
    }
    svg(o, "</g>\n");
}

static void draw_labels(struct picture *p)
{
    struct svg *o = p->svg;

    for (size_t i = 0; i < p->nlabels; i++) {
        const struct label *l = &p->labels[i];
        double x, y, room;
        if (p->naming == NAMES_DIRECT) {
            const double bend = p->right + 5;
            y = l->at;
            x = p->right + 21;
            room = SVG_WIDTH - 6 - x;
            if (l->series)
                svg(o, "<g class=\"c%u\">", l->look->color);
            svg(o, "<path class=\"%s\" d=\"M%n %nL%n %nL%n %nH%n\"/>",
                l->series ? "lead" : "lead ref", l->x, l->y, fmax(l->x, bend),
                l->y, p->right + 13, y, p->right + 18);
            svg(o, l->series ? "</g>\n" : "\n");
        } else {
            const double column = (double)(i / p->rows);
            const double row = (double)(i % p->rows);
            x = p->naming == NAMES_RIGHT ? p->right + 22 : SVG_MARGIN;
            y = p->naming == NAMES_RIGHT ? p->top + 6
                                         : p->bottom + p->x_room + 24;
            if (p->naming == NAMES_BELOW &&
                (plot_named(p->plot->x.label) || plot_named(p->plot->x.unit)))
                y += 16;
            x += column * p->column_width;
            y += row * p->row_height;
            draw_swatch(p, l, x, y);
            x += PLOT_SWATCH;
            room = p->column_width - PLOT_SWATCH - 13;
        }
        svg(o, "<text x=\"%n\" y=\"%n\">", x, y + 4);
        if (svg_text_width(l->name, NULL, 12) > room)
            svg(o, "<title>%s</title>", l->name);
        svg_fitted(o, l->name, 12, room);
        svg(o, "</text>\n");
    }
}

static void draw(struct picture *p)
{
    draw_frame(p);
    draw_layer(p, BANDS);
    draw_layer(p, BARS);
    draw_axes(p);
    draw_references(p);
    draw_layer(p, LINES);
    draw_labels(p);
}

/* All panels, laid out in p; where there are several, titles and caption are
 * drawn once, around them. */
static void draw_panels(struct svg *o, const struct plot *plot,
                        struct picture *p, size_t n)
{
    const double head =
        n > 1 ? svg_titles(NULL, plot->title, plot->subtitle) : 0;
    const double foot =
        n > 1 ? svg_paragraph(NULL, SVG_CAPTION, plot->caption, 0) + 10 : 0;
    double height = head + foot;

    for (size_t i = 0; i < n; i++)
        height += p[i].height;
    svg_head(o, plot->title, SVG_WIDTH, height);
    draw_description(o, plot);
    if (n > 1) {
        svg_titles(o, plot->title, plot->subtitle);
        svg_paragraph(o, SVG_CAPTION, plot->caption, height - foot);
    }
    double y = head;
    for (size_t i = 0; i < n; i++) {
        p[i].svg = o;
        if (n > 1)
            svg(o, "<g class=\"panel\" transform=\"translate(0 %n)\">\n", y);
        draw(&p[i]);
        if (n > 1)
            svg(o, "</g>\n");
        y += p[i].height;
    }
    svg(o, "</svg>\n");
    svg_flush(o);
}

bool plot_write(const struct plot *plot, plot_put *put, void *ctx)
{
    struct panels panels;
    if (!plot_divide(plot, &panels))
        return false;
    struct picture *all = malloc(sizeof *all);
    struct picture *p = calloc(panels.n, sizeof *p);
    struct svg *o = calloc(1, sizeof *o);
    bool ok = all && p && o && plot_survey(all, plot);
    for (size_t i = 0; i < panels.n && ok; i++)
        ok = plot_layout(&p[i], &panels.plots[i], panels.n > 1 ? all : NULL);
    if (ok) {
        o->put = put;
        o->ctx = ctx;
        o->ok = true;
        draw_panels(o, plot, p, panels.n);
        ok = o->ok;
    }
    for (size_t i = 0; i < panels.n && p; i++)
        plot_layout_free(&p[i]);
    free(o);
    free(p);
    free(all);
    plot_divide_free(&panels);
    return ok;
}
