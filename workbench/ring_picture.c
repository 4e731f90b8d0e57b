/*
 * ring_picture.c - a Chord ring to look at: members, fingers, one lookup
 *
 * Ids go round clockwise from the top. What is drawn is the ring
 * of ring_model.h.
 */
#include "workbench/ring_picture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/say.h"
#include "workbench/plot_svg.h"

#define TURN 6.283185307179586

/* --------------------------------------------------------------------- text */

static const char *id_text(const struct ring_model *m, uint64_t id,
                           char out[20])
{
    snprintf(out, 20, m->bits > 16 ? "%016llx" : "%llu",
             (unsigned long long)id);
    if (m->bits > 16)
        out[6] = '\0'; /* its beginning tells it from others */
    return out;
}

static double angle_of(const struct ring_model *m, uint64_t id)
{
    return TURN * ldexp((double)id, -(int)m->bits);
}

#define WIDE 74
#define HIGH 27

void ring_print(const struct ring_model *m, const struct ring_view *v)
{
    char grid[HIGH][WIDE + 1], text[20];
    size_t path[RING_STEPS], steps = 0;
    if (v->find)
        steps = ring_lookup(m, v->from, v->id, path);
    for (size_t y = 0; y < HIGH; y++) {
        memset(grid[y], ' ', WIDE);
        grid[y][WIDE] = '\0';
    }
    const double cx = WIDE / 2.0, cy = (HIGH - 1) / 2.0;
    const double rx = WIDE / 2.0 - 10, ry = cy - 1;
    for (unsigned i = 0; i < 360; i++) {
        const double a = TURN * i / 360;
        grid[(int)lround(cy - ry * cos(a))][(int)lround(cx + rx * sin(a))] =
            '.';
    }
    for (size_t i = 0; i < m->n; i++) {
        const double a = angle_of(m, m->ids[i]);
        const int y = (int)lround(cy - ry * cos(a));
        const int x = (int)lround(cx + rx * sin(a));
        char mark = 'o';
        for (size_t k = 0; k < steps; k++)
            if (path[k] == i)
                mark = k + 1 == steps ? '*' : (char)('1' + (k < 8 ? k : 8));
        const int n = (int)strlen(id_text(m, m->ids[i], text));
        const int at = sin(a) < -0.05 ? x - n - 1 : x + 2;
        grid[y][x] = mark;
        for (int k = 0; k < n && m->n <= 40; k++)
            if (at + k >= 0 && at + k < WIDE)
                grid[y][at + k] = text[k];
    }
    for (size_t y = 0; y < HIGH; y++) {
        size_t n = WIDE;
        while (n && grid[y][n - 1] == ' ')
            n--;
        printf("%.*s\n", (int)n, grid[y]);
    }
    if (v->find)
        printf("1, 2, ... are asked for %s; * owns it\n",
               id_text(m, v->id, text));
}

static void explain_members(const struct ring_model *m)
{
    char a[20], b[20];
    const bool small = m->bits <= 16 && m->n <= 40;
    printf("%s%s\n", "member  before it  owns", small ? "" : " ...");
    for (size_t i = 0; i < m->n; i++) {
        const uint64_t pred = m->ids[(i + m->n - 1) % m->n];
        printf("%6s%11s  (%s, %s]", id_text(m, m->ids[i], a),
               id_text(m, pred, b), b, a);
        if (small) {
            struct chord n;
            ring_state(m, i, &n);
            printf("%*sfingers", (int)(14 - strlen(a) - strlen(b)), "");
            for (unsigned k = 0; k < m->bits; k++)
                printf(" %llu", (unsigned long long)n.fing[k].id);
        }
        printf("\n");
    }
}

void ring_explain(const struct ring_model *m, const struct ring_view *v)
{
    char a[20], b[20], c[20];
    printf("Ids have %u bits and go round. Each id belongs to the first member "
           "at or\nafter it. Finger k of a member is the owner of its id + "
           "2^k.\n\n",
           m->bits);
    explain_members(m);
    if (!v->find)
        return;
    size_t path[RING_STEPS];
    const size_t steps = ring_lookup(m, v->from, v->id, path);
    printf("\nWho owns %s? %s asks.\n\n", id_text(m, v->id, a),
           id_text(m, m->ids[v->from], b));
    for (size_t i = 0; i + 2 < steps; i++) {
        struct chord n;
        ring_state(m, path[i], &n);
        printf("  %s: %s is not in (%s, %s]", id_text(m, n.self.id, a),
               id_text(m, v->id, b), a, id_text(m, n.succ[0].id, c));
        printf("; the farthest finger that does not pass it is %s\n",
               id_text(m, m->ids[path[i + 1]], c));
    }
    if (steps >= 2) {
        const uint64_t last = m->ids[path[steps - 2]];
        const uint64_t owner = m->ids[path[steps - 1]];
        printf("  %s: %s is in (%s, %s]: %s owns it\n", id_text(m, last, a),
               id_text(m, v->id, b), a, id_text(m, owner, c), c);
    }
    printf("\n%s asked %zu other%s and was told the owner; each step at least "
           "halves the way that is left.\n",
           id_text(m, m->ids[v->from], b), steps - 2, steps == 3 ? "" : "s");
}

/* ---------------------------------------------------------------------- SVG */

#define RING_HIGH 640.0
#define RADIUS 220.0

struct drawing {
    const struct ring_model *m;
    const struct ring_view *v;
};

static void place_on(const struct ring_model *m, uint64_t id, double radius,
                     double *x, double *y)
{
    const double a = angle_of(m, id);
    *x = SVG_WIDTH / 2 + radius * sin(a);
    *y = RING_HIGH / 2 + 50 - radius * cos(a);
}

/* A small text inside the circle, or outside with a negative depth. */
static void draw_note(struct svg *o, const struct ring_model *m, uint64_t id,
                      double depth, const char *colour, const char *text)
{
    double x, y;
    place_on(m, id, RADIUS - depth, &x, &y);
    svg(o,
        "<text x=\"%n\" y=\"%n\" style=\"fill:%s;font-size:13px\" "
        "text-anchor=\"%s\">%s</text>\n",
        x, y + 5, colour, (x > SVG_WIDTH / 2) == (depth > 0) ? "end" : "start",
        text);
}

/* An arrow inside the circle, bent towards its middle, with a number on it
 * unless that is 0. Colours are in `style`: those of the picture's own sheet
 * would win over attributes. */
static void draw_arrow(struct svg *o, const struct ring_model *m, uint64_t from,
                       uint64_t to, const char *colour, double width,
                       size_t number)
{
    double x1, y1, x2, y2;
    place_on(m, from, RADIUS - 8, &x1, &y1);
    place_on(m, to, RADIUS - 8, &x2, &y2);
    const double cx = 0.6 * SVG_WIDTH / 2 + 0.2 * (x1 + x2);
    const double cy = 0.6 * (RING_HIGH / 2 + 50) + 0.2 * (y1 + y2);
    svg(o,
        "<path d=\"M%n %nQ%n %n %n %n\" style=\"fill:none;stroke:%s;"
        "stroke-width:%n\"/>\n",
        x1, y1, cx, cy, x2, y2, colour, width);
    /* The head, along the end of the curve. */
    const double a = atan2(y2 - cy, x2 - cx);
    svg(o, "<path d=\"M%n %nL%n %nL%n %nz\" style=\"fill:%s;stroke:none\"/>\n",
        x2, y2, x2 - 12 * cos(a - 0.35), y2 - 12 * sin(a - 0.35),
        x2 - 12 * cos(a + 0.35), y2 - 12 * sin(a + 0.35), colour);
    if (!number)
        return;
    const double x = 0.25 * (x1 + x2) + 0.5 * cx;
    const double y = 0.25 * (y1 + y2) + 0.5 * cy;
    char text[24];
    snprintf(text, sizeof text, "%zu", number);
    svg(o,
        "<circle cx=\"%n\" cy=\"%n\" r=\"10\" style=\"fill:%s;"
        "stroke:none\"/>\n<text x=\"%n\" y=\"%n\" text-anchor=\"middle\" "
        "style=\"fill:#ffffff;font-weight:bold\">%s</text>\n",
        x, y, colour, x, y + 4.5, text);
}

/* What a member owns, as a band along the circle. */
static void draw_arc(struct svg *o, const struct ring_model *m, uint64_t from,
                     uint64_t to)
{
    double x1, y1, x2, y2;
    place_on(m, from, RADIUS, &x1, &y1);
    place_on(m, to, RADIUS, &x2, &y2);
    const double turn = angle_of(m, to) - angle_of(m, from);
    const bool large = (turn < 0 ? turn + TURN : turn) > TURN / 2;
    svg(o,
        "<path d=\"M%n %nA%n %n 0 %s 1 %n %n\" style=\"fill:none;"
        "stroke:#2ca02c;stroke-width:9;stroke-opacity:0.35\"/>\n",
        x1, y1, RADIUS, RADIUS, large ? "1" : "0", x2, y2);
}

/* The fingers of a member: an arrow to each that differs, and at its end the
 * distances that lead there. */
static void draw_fingers(struct svg *o, const struct ring_model *m, size_t of,
                         const char *colour)
{
    struct chord n;
    ring_state(m, of, &n);
    for (unsigned k = 0; k < m->bits;) {
        char text[40];
        const uint64_t to = n.fing[k].id;
        const unsigned first = k;
        while (k < m->bits && n.fing[k].id == to)
            k++;
        if (to == n.self.id)
            continue;
        draw_arrow(o, m, n.self.id, to, colour, 1.5, 0);
        if (m->bits > 16)
            continue;
        const unsigned last = k - 1;
        snprintf(text, sizeof text,
                 last > first + 1 ? "+%u to +%u"
                 : last > first   ? "+%u, +%u"
                                  : "+%u",
                 1u << first, 1u << last);
        draw_note(o, m, to, 30, "#777777", text);
    }
}

static void draw_members(struct svg *o, const struct ring_model *m,
                         const size_t *path, size_t steps)
{
    char text[20];
    for (size_t i = 0; i < m->n; i++) {
        double x, y;
        const char *fill = "#4c78a8";
        for (size_t k = 0; k < steps; k++)
            if (path[k] == i)
                fill = k + 1 == steps ? "#2ca02c" : "#d62728";
        place_on(m, m->ids[i], RADIUS, &x, &y);
        svg(o, "<circle cx=\"%n\" cy=\"%n\" r=\"%n\" fill=\"%s\"/>\n", x, y,
            m->n > 60 ? 3.0 : 7.0, fill);
        if (m->n > 60)
            continue;
        place_on(m, m->ids[i], RADIUS + 24, &x, &y);
        svg(o,
            "<text x=\"%n\" y=\"%n\" font-size=\"15\" "
            "text-anchor=\"middle\">%s</text>\n",
            x, y + 5, id_text(m, m->ids[i], text));
    }
}

static bool ring_write(const void *what, plot_put *put, void *ctx)
{
    const struct drawing *const d = what;
    const struct ring_model *const m = d->m;
    struct svg o = { .put = put, .ctx = ctx, .ok = true };
    char a[20], b[20], title[80] = "A Chord ring", subtitle[200] = "";
    size_t path[RING_STEPS], steps = 0;
    const uint64_t from = m->ids[d->v->from];
    if (d->v->find) {
        steps = ring_lookup(m, d->v->from, d->v->id, path);
        snprintf(title, sizeof title, "%s asks: who owns key %s?",
                 id_text(m, from, a), id_text(m, d->v->id, b));
        snprintf(subtitle, sizeof subtitle,
                 "Red: the longest finger that does not pass the key. Green: "
                 "the owner, and what it owns. Grey: fingers of %s.",
                 a);
    } else if (d->v->one) {
        snprintf(subtitle, sizeof subtitle,
                 "Arrows are the fingers of %s: the owners of its id + 1, 2, "
                 "4, 8, ...",
                 id_text(m, from, a));
    }
    svg_head(&o, title, SVG_WIDTH, RING_HIGH + 60);
    svg_titles(&o, title, subtitle);
    svg(&o,
        "<circle cx=\"%n\" cy=\"%n\" r=\"%n\" fill=\"none\" "
        "stroke=\"#999999\" stroke-width=\"2\"/>\n",
        SVG_WIDTH / 2, RING_HIGH / 2 + 50, RADIUS);
    if (steps) {
        const size_t owner = path[steps - 1];
        draw_arc(&o, m, m->ids[(owner + m->n - 1) % m->n], m->ids[owner]);
    }
    if (d->v->one || d->v->find)
        draw_fingers(&o, m, d->v->from, d->v->find ? "#aaaaaa" : "#4c78a8");
    for (size_t i = 0; i + 1 < steps; i++)
        if (path[i] != path[i + 1])
            draw_arrow(&o, m, m->ids[path[i]], m->ids[path[i + 1]], "#d62728",
                       2.5, i + 1);
    draw_members(&o, m, path, steps);
    if (d->v->find) {
        double x, y;
        place_on(m, d->v->id, RADIUS, &x, &y);
        svg(&o,
            "<circle cx=\"%n\" cy=\"%n\" r=\"5\" style=\"fill:#ffffff;"
            "stroke:#d62728;stroke-width:2\"/>\n",
            x, y);
        char text[40];
        snprintf(text, sizeof text, "key %s", id_text(m, d->v->id, b));
        draw_note(&o, m, d->v->id, -44, "#d62728", text);
    }
    svg(&o, "</svg>\n");
    svg_flush(&o);
    return o.ok;
}

bool ring_draw(const struct ring_model *m, const struct ring_view *v,
               const char *path)
{
    const struct drawing d = { m, v };
    return plot_to_file(ring_write, &d, path);
}

/* --------------------------------------------------------------------- JSON */

struct model_member {
    uint64_t id, pred, fingers[CHORD_MOST_BITS];
    size_t nfingers;
};

struct model_report {
    const struct ring_model *m;
    size_t n;
    unsigned bits;
    uint64_t path[RING_STEPS];
    size_t npath;
};

static const struct field model_member_fields[] = {
    FIELD(struct model_member, id, NONE, "its id"),
    NAMED(struct model_member, "predecessor", pred, NONE,
          "the member before it: it owns what lies between"),
    VALUES(struct model_member, "fingers", fingers, nfingers, NONE,
           "owners of its id + 1, 2, 4, ..."),
    { 0 },
};

static void make_member(const void *from, size_t i, void *element)
{
    const struct ring_model *const m = from;
    struct model_member *const to = element;
    struct chord n;
    ring_state(m, i, &n);
    *to = (struct model_member){ .id = n.self.id,
                                 .pred = n.pred.id,
                                 .nfingers = m->bits };
    for (unsigned k = 0; k < m->bits; k++)
        to->fingers[k] = n.fing[k].id;
}

const struct field ring_model_fields[] = {
    FIELD(struct model_report, bits, NONE, "bits of ids"),
    EACH(struct model_report, "members", m, n, NONE, make_member,
         struct model_member, model_member_fields, "in the order of their ids"),
    VALUES(struct model_report, "path", path, npath, NONE,
           "of a lookup: who asks, who is asked, and the owner; empty without "
           "one"),
    { 0 },
};

void ring_report(const struct ring_model *m, const struct ring_view *v)
{
    struct model_report r = { .m = m, .n = m->n, .bits = m->bits };
    size_t path[RING_STEPS];
    if (v->find)
        r.npath = ring_lookup(m, v->from, v->id, path);
    for (size_t i = 0; i < r.npath; i++)
        r.path[i] = m->ids[path[i]];
    report(stdout, true, ring_model_fields, &r, NULL);
}
