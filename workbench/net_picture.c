/*
 * net_picture.c - a network to look at, with the way of one try drawn in
 */
#include "workbench/net_picture.h"

#include <stdio.h>

#include "workbench/plot_svg.h"

#define NET_HIGH 640.0
#define NET_TOP 90.0

struct net_drawing {
    const struct graph *g;
    const struct net_result *r;
};

static void net_place(const struct graph *g, uint32_t node, double *x,
                      double *y)
{
    *x = SVG_MARGIN + 14 +
         g->nodes[node].x * (SVG_WIDTH - 2 * (SVG_MARGIN + 14));
    *y = NET_TOP + g->nodes[node].y * (NET_HIGH - NET_TOP - SVG_MARGIN - 14);
}

static void net_line(struct svg *o, const struct graph *g, uint32_t a,
                     uint32_t b, const char *colour, double width)
{
    double x1, y1, x2, y2;
    net_place(g, a, &x1, &y1);
    net_place(g, b, &x2, &y2);
    svg(o,
        "<path d=\"M%n %nL%n %n\" stroke=\"%s\" stroke-width=\"%n\" "
        "stroke-linecap=\"round\"/>\n",
        x1, y1, x2, y2, colour, width);
}

static void net_dot(struct svg *o, const struct graph *g, uint32_t node,
                    const char *colour, double radius)
{
    double x, y;
    net_place(g, node, &x, &y);
    svg(o, "<circle cx=\"%n\" cy=\"%n\" r=\"%n\" fill=\"%s\"/>\n", x, y, radius,
        colour);
}

static void net_name(struct svg *o, const struct graph *g, uint32_t node)
{
    double x, y;
    net_place(g, node, &x, &y);
    svg(o, "<text x=\"%n\" y=\"%n\" font-size=\"13\">%s</text>\n", x + 8, y - 6,
        g->nodes[node].name);
}

static bool net_write(const void *what, plot_put *put, void *ctx)
{
    const struct net_drawing *const d = what;
    const struct graph *const g = d->g;
    const struct net_result *const r = d->r;
    struct svg o = { .put = put, .ctx = ctx, .ok = true };
    const double radius = g->n > 1000 ? 1.5 : g->n > 200 ? 2.5 : 4.5;
    char subtitle[160];
    snprintf(
        subtitle, sizeof subtitle,
        "%u nodes. Red: the way of one try, from the large dot on. Orange: "
        "others that were taken for being on it.",
        g->n);
    svg_head(&o, r->experiment, SVG_WIDTH, NET_HIGH);
    svg_titles(&o, r->experiment, subtitle);
    for (uint32_t at = 0; at < g->n; at++)
        for (uint32_t e = g->first[at]; e < g->first[at + 1]; e++)
            if (g->edges[e].to > at)
                net_line(&o, g, at, g->edges[e].to, "#cccccc", 1);
    for (uint32_t at = 0; at < g->n; at++)
        net_dot(&o, g, at, "#4c78a8", radius);
    for (size_t i = 0; i < r->nastray; i++)
        net_dot(&o, g, r->astray[i], "#f58518", radius + 2);
    for (size_t i = 0; i + 1 < r->nroute; i++)
        net_line(&o, g, r->route[i], r->route[i + 1], "#d62728", 2.5);
    for (size_t i = 0; i < r->nroute; i++) {
        net_dot(&o, g, r->route[i], "#d62728", i ? radius + 1 : radius + 4);
        if (r->nroute <= 40)
            net_name(&o, g, r->route[i]);
    }
    svg(&o, "</svg>\n");
    svg_flush(&o);
    return o.ok;
}

bool net_draw(const struct graph *g, const struct net_result *r,
              const char *path)
{
    const struct net_drawing d = { g, r };
    return plot_to_file(net_write, &d, path);
}
