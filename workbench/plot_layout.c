/*
 * plot_layout.c - where everything in a picture goes
 *
 * The parts depend on each other (the left edge on the width of the y ticks,
 * those on the height, that on the x ticks, which may have to be slanted), so
 * the layout is computed a few times over, each time from the last one's
 * edges, until it stands still.
 *
 * Names. Where every series is a line that reaches the right edge, its name
 * stands at its end: no reader has to match colours. Names keep the order of
 * the ends and are moved apart as little as possible. Where that would be too
 * far there is a legend in that order; where a line ends early, or where
 * points or bars have no end, there is a legend in the caller's order.
 */
#include <math.h>
#include <stdlib.h>

#include "workbench/plot_layout.h"

#define MIN_PLOT_HEIGHT 230.0 /* below this the picture grows instead */
#define TIGHT_HEIGHT 13.5     /* of a legend that has many rows */
#define MAX_TOOLTIPS 600      /* more points than this get none */
#define MAX_DIRECT 14         /* names at line ends */
#define MAX_SHIFT 34.0        /* how far a name may be moved from its end */
#define MAX_ROWS 6            /* of labels of vertical lines */
#define MAX_RIGHT 260.0       /* width of names right of the plot */
#define MARKER_GAP 9.0        /* between markers on a line */
#define SPARSE_GAP 70.0       /* the same where they only tell lines apart */

/* ----------------------------------------------------- what is to be drawn */

bool plot_named(const char *name)
{
    return name && *name;
}

static void choose_looks(struct picture *p)
{
    static const enum plot_marker markers[] = {
        PLOT_CIRCLE, PLOT_SQUARE, PLOT_TRIANGLE,      PLOT_DIAMOND,
        PLOT_CROSS,  PLOT_PLUS,   PLOT_TRIANGLE_DOWN, PLOT_RING,
    };
    unsigned next = 0, bars[PLOT_NCOLORS] = { 0 };
    size_t nlines = 0;

    for (size_t i = 0; i < p->plot->nseries; i++)
        nlines += p->plot->series[i].style == PLOT_LINE;
    for (size_t i = 0; i < p->plot->nseries; i++) {
        const struct plot_series *s = &p->plot->series[i];
        struct look *l = &p->looks[i];
        const unsigned turn = s->color ? s->color - 1 : next++;

        l->color = turn % PLOT_NCOLORS;
        l->dash = s->dash ? s->dash : PLOT_SOLID;
        l->marker = s->marker ? s->marker : markers[i % 8];
        l->line = s->style == PLOT_LINE || s->style == PLOT_BOTH ||
                  s->style == PLOT_STEPS;
        l->markers = s->style == PLOT_POINTS || s->style == PLOT_BOTH;
        l->gap = MARKER_GAP;
        if (s->style == PLOT_LINE && nlines > 1) { /* not by colour alone */
            l->markers = true;
            l->gap = SPARSE_GAP;
        }
        if (s->style == PLOT_BARS)
            l->round = bars[l->color]++;
    }
}

static void include(struct range *r, double c)
{
    if (!isnan(c)) {
        r->lo = fmin(r->lo, c);
        r->hi = fmax(r->hi, c);
    }
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The smallest distance between two groups of bars, or 1. False: no memory. */
static bool find_bar_gap(struct picture *p)
{
    const struct plot *plot = p->plot;
    size_t n = 0, max = 0;

    p->bar_gap = 0;
    for (size_t i = 0; i < plot->nseries; i++)
        if (plot->series[i].style == PLOT_BARS)
            max += plot->series[i].npoints;
    if (max == 0)
        return true;
    double *xs = calloc(max, sizeof *xs);
    if (!xs)
        return false;
    for (size_t i = 0; i < plot->nseries; i++) {
        const struct plot_series *s = &plot->series[i];
        for (size_t j = 0; s->style == PLOT_BARS && j < s->npoints; j++) {
            const double c = axis_coordinate(&plot->x, s->points[j].x);
            if (!isnan(c))
                xs[n++] = c;
        }
    }
    qsort(xs, n, sizeof *xs, compare_doubles);
    p->bar_gap = INFINITY;
    for (size_t i = 1; i < n; i++)
        if (xs[i] - xs[i - 1] > 1e-9 * (fabs(xs[i]) + fabs(xs[i - 1])))
            p->bar_gap = fmin(p->bar_gap, xs[i] - xs[i - 1]);
    if (isinf(p->bar_gap) || plot->x.ncategories)
        p->bar_gap = 1;
    free(xs);
    return true;
}

/* What the axes must show: points that can be placed, with their errors. An
 * x axis with fixed ends also narrows what the y axis looks at. */
static void find_ends(struct picture *p)
{
    const struct plot *plot = p->plot;
    struct range rx = { INFINITY, -INFINITY }, ry = rx;

    p->x.whole = !axis_is_log(&plot->x) && plot->x.format == PLOT_PLAIN;
    for (unsigned is_y = 0; is_y < 2; is_y++) {
        for (size_t i = 0; i < plot->nseries; i++) {
            const struct plot_series *s = &plot->series[i];
            const bool bars = s->style == PLOT_BARS;
            for (size_t j = 0; j < s->npoints + s->nexpected; j++) {
                const struct plot_point *t = j < s->npoints
                                                 ? &s->points[j]
                                                 : &s->expected[j - s->npoints];
                const double x = axis_coordinate(&plot->x, t->x);
                const double y = axis_coordinate(&plot->y, t->y);
                if (isnan(x) || isnan(y))
                    continue;
                if (!is_y) {
                    p->x.whole &= t->x == floor(t->x);
                    include(&rx, bars ? x - 0.6 * p->bar_gap : x);
                    include(&rx, bars ? x + 0.6 * p->bar_gap : x);
                } else if (axis_within(&p->x, x)) {
                    include(&ry, y);
                    include(&ry, axis_coordinate(&plot->y, t->y - t->err_low));
                    include(&ry, axis_coordinate(&plot->y, t->y + t->err_high));
                    if (bars && !axis_is_log(&plot->y))
                        include(&ry, 0);
                }
            }
        }
        for (size_t i = 0; i < plot->nreferences; i++) {
            const struct plot_reference *r = &plot->references[i];
            if (!is_y && r->vertical)
                include(&rx, axis_coordinate(&plot->x, r->at));
            if (is_y && !r->vertical)
                include(&ry, axis_coordinate(&plot->y, r->at));
        }
        if (!is_y)
            axis_set_ends(&p->x, rx, true);
        else
            axis_set_ends(&p->y, ry, false);
    }
}

bool plot_locate(const struct picture *p, const struct plot_point *t, double *x,
                 double *y)
{
    *x = axis_place(&p->x, axis_coordinate(p->x.want, t->x));
    *y = axis_place(&p->y, axis_coordinate(p->y.want, t->y));
    return !isnan(*x) && !isnan(*y);
}

/* ------------------------------------------------------------------- names */

/* The names there are to show. */
static void collect_labels(struct picture *p)
{
    const struct plot *plot = p->plot;

    for (size_t i = 0; i < plot->nseries; i++)
        if (plot_named(plot->series[i].name))
            p->labels[p->nlabels++] = (struct label){
                .name = plot->series[i].name,
                .series = &plot->series[i],
                .look = &p->looks[i],
            };
    for (size_t i = 0; i < plot->nreferences; i++) {
        const struct plot_reference *r = &plot->references[i];
        const double c = axis_coordinate(&plot->y, r->at);
        if (!r->vertical && plot_named(r->label) && axis_within(&p->y, c))
            p->labels[p->nlabels++] =
                (struct label){ .name = r->label, .x = NAN, .y = c };
    }
}

/* From the top down, and as the caller had them where they agree. */
static int compare_ends(const void *a, const void *b)
{
    const struct label *l = a, *m = b;

    if (l->y != m->y)
        return l->y > m->y ? -1 : 1;
    if (!l->series || !m->series)
        return !l->series - !m->series;
    return (l->series > m->series) - (l->series < m->series);
}

static int compare_ends_up(const void *a, const void *b)
{
    return -compare_ends(a, b);
}

/* Find the right end of every named line and sort the names by it, which also
 * suits a legend; false if a line has no end near the right edge. Ends are
 * coordinates until name_lines(). */
static bool find_line_ends(struct picture *p)
{
    const struct axis *x = &p->x;

    for (size_t i = 0; i < p->nlabels; i++) {
        struct label *l = &p->labels[i];
        if (!l->series)
            continue;
        const struct plot_series *s = l->series;
        const bool own = s->npoints && (l->look->line || s->style == PLOT_BAND);
        if (!own && (!s->nexpected || s->style == PLOT_BARS))
            return false;
        double best = -1;
        for (size_t j = 0; j < (own ? s->npoints : s->nexpected); j++) {
            const struct plot_point *t = &(own ? s->points : s->expected)[j];
            const double cx = axis_coordinate(x->want, t->x);
            const double cy = axis_coordinate(p->y.want, t->y);
            if (isnan(cx) || isnan(cy) || !axis_within(x, cx) ||
                !axis_within(&p->y, cy))
                continue;
            const double part = (cx - x->lo) / (x->hi - x->lo);
            const double far = x->want->reversed ? 1 - part : part;
            if (far >= best) {
                best = far;
                l->x = cx;
                l->y = cy;
            }
        }
        if (best < 0.96)
            return false;
    }
    qsort(p->labels, p->nlabels, sizeof *p->labels,
          p->y.want->reversed ? compare_ends_up : compare_ends);
    return true;
}

/*
 * Set names beside the ends of their lines, PLOT_ROW apart, in order, and
 * with the least sum of squared moves: with the i-th end at t[i], the numbers
 * t[i] - i * PLOT_ROW must become non-decreasing, which is isotonic
 * regression: merge neighbours that are out of order into their mean. False:
 * a name would stand too far from its line.
 */
static bool name_lines(struct picture *p)
{
    struct {
        double sum;
        size_t n;
    } block[MAX_DIRECT];
    size_t nblocks = 0;
    const size_t n = p->nlabels;

    if (n > MAX_DIRECT)
        return false;
    for (size_t i = 0; i < n; i++)
        p->labels[i].at = axis_place(&p->y, p->labels[i].y);
    for (size_t i = 0; i < n; i++) {
        block[nblocks].sum = p->labels[i].at - (double)i * PLOT_ROW;
        block[nblocks++].n = 1;
        while (nblocks > 1 &&
               block[nblocks - 2].sum / (double)block[nblocks - 2].n >
                   block[nblocks - 1].sum / (double)block[nblocks - 1].n) {
            block[nblocks - 2].sum += block[nblocks - 1].sum;
            block[nblocks - 2].n += block[nblocks - 1].n;
            nblocks--;
        }
    }
    const double first = p->top + (p->nmark_rows ? 5 : 0);
    const double last = p->bottom - (double)n * PLOT_ROW + PLOT_ROW;
    size_t i = 0;
    for (size_t b = 0; b < nblocks; b++) {
        const double mean = block[b].sum / (double)block[b].n;
        const double base = fmax(first, fmin(last, mean));
        for (size_t j = 0; j < block[b].n; j++, i++) {
            struct label *l = &p->labels[i];
            const double end = l->at;
            l->at = base + (double)i * PLOT_ROW;
            if (fabs(l->at - end) > MAX_SHIFT)
                return false;
            l->x = isnan(l->x) ? p->right : axis_place(&p->x, l->x);
            l->y = end;
        }
    }
    return true;
}

/* How many columns and rows the legend takes, and the width that it or the
 * names at line ends need on the right. */
static double measure_labels(struct picture *p)
{
    const double all = SVG_WIDTH - 2 * SVG_MARGIN - PLOT_SWATCH - 14;
    double w = 0;

    p->columns = p->rows = 0;
    if (p->nlabels == 0)
        return 0;
    for (size_t i = 0; i < p->nlabels; i++)
        w = fmax(w, fmin(all, svg_text_width(p->labels[i].name, NULL, 12)));
    if (p->naming != NAMES_BELOW && w > MAX_RIGHT)
        p->naming = NAMES_BELOW;
    if (p->naming == NAMES_DIRECT)
        return w + 30;

    p->column_width = PLOT_SWATCH + w + 14;
    p->row_height = PLOT_ROW;
    if (p->naming == NAMES_RIGHT) { /* one column, if a tight one will do */
        const double pitch = (p->bottom - p->top) / (double)p->nlabels;
        if (pitch < PLOT_ROW && pitch >= TIGHT_HEIGHT)
            p->row_height = pitch;
        p->rows = (size_t)fmax(1, (p->bottom - p->top) / p->row_height + 1e-9);
        p->columns = (p->nlabels + p->rows - 1) / p->rows;
        p->rows = (p->nlabels + p->columns - 1) / p->columns;
        const double need = (double)p->columns * p->column_width;
        if (need <= 300)
            return need + 8;
        p->naming = NAMES_BELOW;
        return measure_labels(p);
    }
    const double fit = floor((SVG_WIDTH - 2 * SVG_MARGIN) / p->column_width);
    p->columns = (size_t)fmax(1, fmin(fit, (double)p->nlabels));
    p->rows = (p->nlabels + p->columns - 1) / p->columns;
    return 0;
}

static int compare_marks(const void *a, const void *b)
{
    const struct plot_mark *l = a, *m = b;
    return (l->at > m->at) - (l->at < m->at);
}

/*
 * Labels of vertical lines stand in rows above the plot, beside their lines,
 * which reach up to them. Going from the last line to the first, each takes
 * the lowest row where it ends before the labels already there begin; a line
 * then passes only rows whose labels lie on its other side. The same mirrored
 * (side -1), should the last label not fit into the picture.
 */
static bool place_marks(struct picture *p, int side)
{
    double start[MAX_ROWS];
    bool fits = true;

    for (unsigned r = 0; r < MAX_ROWS; r++)
        start[r] = side > 0 ? SVG_WIDTH - 6 : p->left;
    p->mark_side = side;
    p->nmark_rows = 0;
    for (size_t k = 0; k < p->nmarks; k++) {
        struct plot_mark *m = &p->marks[side > 0 ? p->nmarks - 1 - k : k];
        const double w = 8 + svg_text_width(m->name, NULL, 12);
        const double end = m->at + side * w;
        unsigned r = 0;
        while (r < MAX_ROWS - 1 && side * (start[r] - end) < 0)
            r++;
        if (side * (start[r] - end) < 0)
            fits = false;
        m->row = r;
        m->room = side * (start[r] - m->at) - 4;
        for (unsigned q = 0; q <= r; q++)
            start[q] = m->at - side * 4;
        if (r + 1 > p->nmark_rows)
            p->nmark_rows = r + 1;
    }
    return fits;
}

static void collect_marks(struct picture *p)
{
    p->nmarks = 0;
    for (size_t i = 0; i < p->plot->nreferences; i++) {
        const struct plot_reference *r = &p->plot->references[i];
        const double c = axis_coordinate(p->x.want, r->at);
        if (r->vertical && plot_named(r->label) && axis_within(&p->x, c))
            p->marks[p->nmarks++] =
                (struct plot_mark){ .name = r->label,
                                    .at = axis_place(&p->x, c) };
    }
    qsort(p->marks, p->nmarks, sizeof *p->marks, compare_marks);
    if (!place_marks(p, 1) && !place_marks(p, -1))
        place_marks(p, 1);
}

/* ------------------------------------------------------------------- edges */

/* How far the slanted label w wide reaches down and to the left. */
static double slant_down(const struct axis *a, double w)
{
    return a->slant == 0 ? 14 : a->slant == 40 ? 12 + w * 0.643 : 6 + w;
}

static double slant_left(const struct axis *a, double w)
{
    return a->slant == 0 ? w / 2 : a->slant == 40 ? 6 + w * 0.766 : 6;
}

/* One round of layout with the left and right edges as they are. Returns the
 * edges that the round has found to be right. */
static struct range layout_round(struct picture *p)
{
    char buf[512];
    const struct plot *plot = p->plot;
    const bool flip_x = plot->x.reversed, flip_y = plot->y.reversed;

    p->x.from = flip_x ? p->right : p->left;
    p->x.to = flip_x ? p->left : p->right;
    axis_set_ticks(&p->x, true);
    collect_marks(p);

    p->top = svg_titles(NULL, plot->title, plot->subtitle) + 12;
    if (*axis_title(&plot->y, buf, sizeof buf) || p->key > 0)
        p->top += 20;
    if (svg_text_width(buf, NULL, 12) + p->key + 20 >
            SVG_WIDTH - 2 * SVG_MARGIN &&
        *buf && p->key > 0)
        p->top += PLOT_ROW;
    p->top += p->nmark_rows * PLOT_ROW;

    double widest = 0;
    for (size_t i = 0; i < p->x.nmajor; i++)
        widest = fmax(widest,
                      svg_text_width(axis_tick_name(&p->x.major[i]), NULL, 12));
    p->x_room = 6 + slant_down(&p->x, fmin(PLOT_MAX_SLANTED, widest));
    double foot = p->x_room + 12;
    if (*axis_title(&plot->x, buf, sizeof buf))
        foot += 18;
    const double captions = svg_paragraph(NULL, SVG_CAPTION, plot->caption, 0);
    foot += captions > 0 ? captions + 4 : 0;
    if (p->naming == NAMES_BELOW)
        foot += (double)p->rows * PLOT_ROW + 10;
    p->height = fmax(p->least, p->top + MIN_PLOT_HEIGHT + foot);
    p->bottom = p->height - foot;

    p->y.from = flip_y ? p->top : p->bottom;
    p->y.to = flip_y ? p->bottom : p->top;
    axis_set_ticks(&p->y, false);

    struct range edges = { SVG_MARGIN + 22, SVG_WIDTH - SVG_MARGIN };
    for (size_t i = 0; i < p->y.nmajor; i++) {
        const double w =
            svg_text_width(axis_tick_name(&p->y.major[i]), NULL, 12);
        edges.lo = fmax(edges.lo, SVG_MARGIN + w + 8);
    }
    edges.hi -= measure_labels(p);
    for (size_t i = 0; i < p->x.nmajor; i++) {
        const struct tick *t = &p->x.major[i];
        const double w =
            fmin(PLOT_MAX_SLANTED, svg_text_width(axis_tick_name(t), NULL, 12));
        const double at = axis_place(&p->x, t->at);
        edges.lo = fmax(edges.lo, slant_left(&p->x, w) + 4 - (at - p->left));
        if (!p->x.slant)
            edges.hi = fmin(edges.hi, SVG_WIDTH - 6 - w / 2 + (p->right - at));
    }
    edges.lo = ceil(fmin(edges.lo, SVG_WIDTH / 3));
    edges.hi = floor(fmax(edges.hi, SVG_WIDTH / 2));
    return edges;
}

static void lay_out(struct picture *p)
{
    p->naming = find_line_ends(p) ? NAMES_DIRECT : NAMES_RIGHT;
    for (;;) {
        p->x.slant = 0;
        p->left = 64;
        p->right = SVG_WIDTH - 120;
        p->top = 60;
        p->bottom = p->least - 60;
        for (int i = 0; i < 6; i++) {
            const struct range edges = layout_round(p);
            if (edges.lo == p->left && edges.hi == p->right)
                break;
            /* From the third round on only inwards: no going to and fro. */
            p->left = i < 2 ? edges.lo : fmax(p->left, edges.lo);
            p->right = i < 2 ? edges.hi : fmin(p->right, edges.hi);
        }
        layout_round(p);
        if (p->naming != NAMES_DIRECT || name_lines(p))
            break;
        p->naming = NAMES_RIGHT;
    }

    unsigned nbars = 0, bar = 0;
    for (size_t i = 0; i < p->plot->nseries; i++)
        nbars += p->plot->series[i].style == PLOT_BARS;
    const double gap = p->bar_gap / (p->x.hi - p->x.lo) * (p->right - p->left);
    const double width = fmax(1, fmin(56, 0.8 * gap / fmax(1, nbars)));
    for (size_t i = 0; i < p->plot->nseries; i++)
        if (p->plot->series[i].style == PLOT_BARS) {
            p->looks[i].width = width;
            p->looks[i].shift = (bar++ - (nbars - 1) / 2.0) * width;
        }
}

/* What is dashed, and what is not. */
static void find_key(struct picture *p)
{
    bool expected = false;

    for (size_t i = 0; i < p->plot->nseries; i++) {
        const struct plot_series *s = &p->plot->series[i];
        expected |= s->nexpected > 0;
        p->measured |= s->npoints > 0;
        p->bars |= s->npoints > 0 && s->style == PLOT_BARS;
    }
    if (expected)
        p->key = PLOT_SWATCH + svg_text_width(PLOT_EXPECTED, NULL, 12) +
                 (p->measured ? 14 + PLOT_SWATCH +
                                    svg_text_width(PLOT_MEASURED, NULL, 12)
                              : 0);
}

bool plot_survey(struct picture *p, const struct plot *plot)
{
    *p = (struct picture){ .plot = plot, .least = PLOT_HEIGHT };
    p->x.want = &plot->x;
    p->y.want = &plot->y;
    if (!find_bar_gap(p))
        return false;
    find_ends(p);
    return true;
}

bool plot_layout(struct picture *p, const struct plot *plot,
                 const struct picture *all)
{
    const size_t ns = plot->nseries, nr = plot->nreferences;
    size_t npoints = 0;

    if (!plot_survey(p, plot))
        return false;
    if (all) {
        p->least = PLOT_PANEL;
        p->x.lo = all->x.lo;
        p->x.hi = all->x.hi;
        p->x.whole = all->x.whole;
        p->y.lo = all->y.lo;
        p->y.hi = all->y.hi;
    }
    p->looks = calloc(ns + 1, sizeof *p->looks);
    p->labels = calloc(ns + nr + 1, sizeof *p->labels);
    p->marks = calloc(nr + 1, sizeof *p->marks);
    for (size_t i = 0; i < ns; i++)
        npoints += plot->series[i].npoints;
    p->tooltips = npoints <= MAX_TOOLTIPS;
    if (!p->looks || !p->labels || !p->marks)
        return false;
    choose_looks(p);
    find_key(p);
    collect_labels(p);
    lay_out(p);
    return true;
}

void plot_layout_free(struct picture *p)
{
    free(p->looks);
    free(p->labels);
    free(p->marks);
}
