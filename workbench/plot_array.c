/*
 * plot_array.c - an array, step by step, as SVG
 *
 * One row a step. Above a cell stand the hash functions that named it:
 *
 *                  h1             h2 h3
 *     add 2       +----+----+----+----+----+
 *                 |  1 |  0 |  0 |  1 |  0 |     result
 *                 +----+----+----+----+----+
 *                   0    1    2    3    4
 *
 * A cell that the step has changed is filled. A cell that a question found
 * empty has a heavy border of the second colour: it proves absence. An array
 * that is too long for a row is broken into several.
 */
#include <math.h>
#include <stdio.h>

#include "workbench/plot_svg.h"

#define MIN_CELL 24.0
#define MAX_CELL 46.0
#define CELL_HEIGHT 26.0
#define LINE_PITCH 64.0 /* hash names, cells, indices, room */
#define MAX_LABEL 250.0 /* "remove 18446744073709551615" takes 211 */

struct array_picture {
    const struct plot_array *array;
    struct svg svg;
    double left, cell; /* where the cells start and how wide they are */
    size_t per_line, nlines;
};

static double width_of(const char *s)
{
    return s ? fmin(MAX_LABEL, svg_text_width(s, NULL, 12)) : 0;
}

static double array_layout(struct array_picture *p)
{
    const struct plot_array *a = p->array;
    double label = 0, result = 0;

    for (size_t i = 0; i < a->nsteps; i++) {
        label = fmax(label, width_of(a->steps[i].label));
        result = fmax(result, width_of(a->steps[i].result));
    }
    p->left = SVG_MARGIN + label + (label > 0 ? 16 : 0);
    const double right = SVG_WIDTH - SVG_MARGIN - result - 16;
    const double n = fmax(1, (double)a->ncells);
    const double fit = floor((right - p->left) / MIN_CELL);
    p->nlines = (size_t)ceil(n / fit);
    p->per_line = (size_t)ceil(n / (double)p->nlines);
    p->cell = fmin(MAX_CELL, floor((right - p->left) / (double)p->per_line));

    const double caption = svg_paragraph(NULL, SVG_CAPTION, a->caption, 0);
    return svg_titles(NULL, a->title, a->subtitle) + 14 +
           (double)(a->nsteps * p->nlines) * LINE_PITCH + caption + 12;
}

/* The names of the hash functions that name cell c: "h1", or "h1 h3" where
 * they fit, or "2x" for two of them. */
static unsigned hash_names(const struct plot_step *s, size_t c, double width,
                           char *out, size_t size)
{
    unsigned n = 0;
    size_t at = 0;

    out[0] = '\0';
    for (size_t i = 0; i < s->ntouched; i++)
        if (s->touched[i] == c && at < size)
            at += (size_t)snprintf(out + at, size - at, "%sh%zu",
                                   n++ ? " " : "", i + 1);
    if (n > 1 && (at >= size || svg_text_width(out, NULL, 11) > width))
        snprintf(out, size, "%u\xc3\x97", n);
    return n;
}

static void draw_cell(struct array_picture *p, size_t step, size_t c, double y)
{
    struct svg *o = &p->svg;
    const struct plot_step *s = &p->array->steps[step];
    const double x = p->left + (double)(c % p->per_line) * p->cell;
    const double middle = x + p->cell / 2;
    const unsigned before = step ? s[-1].cells[c] : 0;
    const bool changed = s->cells[c] != before;
    char names[64];
    const unsigned n = hash_names(s, c, p->cell + 6, names, sizeof names);

    if (changed || s->cells[c])
        svg(o, "<path class=\"%s\" d=\"M%n %nh%nv%nh%nz\"/>\n",
            changed ? "band c0" : "held", x, y, p->cell, CELL_HEIGHT, -p->cell);
    svg(o, "<path class=\"axis\" d=\"M%n %nh%nv%nh%nz\"/>\n", x, y, p->cell,
        CELL_HEIGHT, -p->cell);
    if (n && !changed)
        svg(o, "<path class=\"line c%u\" d=\"M%n %nh%nv%nh%nz\"/>\n",
            s->cells[c] ? 0u : 1u, x + 2, y + 2, p->cell - 4, CELL_HEIGHT - 4,
            4 - p->cell);
    svg(o, "<text class=\"m\" x=\"%n\" y=\"%n\">%u</text>\n", middle,
        y + CELL_HEIGHT / 2 + 4, s->cells[c]);
    svg(o, "<text class=\"f m\" x=\"%n\" y=\"%n\">%u</text>\n", middle,
        y + CELL_HEIGHT + 12, (unsigned)c);
    if (n)
        svg(o, "<text class=\"f m\" x=\"%n\" y=\"%n\">%s</text>\n", middle,
            y - 5, names);
}

static void draw_array(struct array_picture *p, double height)
{
    struct svg *o = &p->svg;
    const struct plot_array *a = p->array;

    svg_head(o, a->title, SVG_WIDTH, height);
    svg(o, "<desc>");
    for (size_t i = 0; i < a->nsteps; i++)
        svg(o, "%s%s%s%s", i ? "; " : "", a->steps[i].label,
            a->steps[i].result ? ": " : "", a->steps[i].result);
    svg(o, "</desc>\n");
    double y = svg_titles(o, a->title, a->subtitle) + 14;
    for (size_t i = 0; i < a->nsteps; i++) {
        const struct plot_step *s = &a->steps[i];
        const double text = y + 20 + CELL_HEIGHT / 2 + 4;
        if (s->label) {
            svg(o, "<text x=\"%n\" y=\"%n\">", SVG_MARGIN, text);
            svg_fitted(o, s->label, 12, MAX_LABEL);
            svg(o, "</text>\n");
        }
        if (s->result) {
            svg(o, "<text x=\"%n\" y=\"%n\">",
                p->left + (double)p->per_line * p->cell + 12, text);
            svg_fitted(o, s->result, 12, MAX_LABEL);
            svg(o, "</text>\n");
        }
        for (size_t c = 0; c < a->ncells; c++)
            draw_cell(p, i, c, y + 20 + (double)(c / p->per_line) * LINE_PITCH);
        y += (double)p->nlines * LINE_PITCH;
    }
    svg_paragraph(o, SVG_CAPTION, a->caption, y);
    svg(o, "</svg>\n");
    svg_flush(o);
}

bool plot_array_write(const struct plot_array *a, plot_put *put, void *ctx)
{
    struct array_picture p = { .array = a,
                               .svg = { .put = put, .ctx = ctx, .ok = true } };

    draw_array(&p, array_layout(&p));
    return p.svg.ok;
}

static bool write_array(const void *what, plot_put *put, void *ctx)
{
    return plot_array_write(what, put, ctx);
}

bool plot_array_save(const struct plot_array *a, const char *path)
{
    return plot_to_file(write_array, a, path);
}
