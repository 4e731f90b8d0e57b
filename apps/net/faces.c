/*
 * faces.c - the marks of all interfaces of a network
 */
#include "apps/net/faces.h"

#include <stdlib.h>
#include <string.h>

#include "report/say.h"

uint32_t faces_between(const struct graph *g, uint32_t from, uint32_t to)
{
    uint32_t e = g->first[from];
    while (e < g->first[from + 1] - 1 && g->edges[e].to != to)
        e++;
    return e;
}

struct mark *faces_mark(const struct graph *g, const struct mark_spec *spec)
{
    struct mark *const marks = malloc(((size_t)g->nedges + 1) * sizeof *marks);
    struct mark_maker *maker;
    if (!marks) {
        fail("no memory for the marks of %u interfaces", g->nedges);
        return NULL;
    }
    bly_status st = mark_maker_new(spec, &maker);
    for (uint32_t at = 0; !st && at < g->n; at++)
        for (uint32_t e = g->first[at]; !st && e < g->first[at + 1]; e++)
            st = mark_make_link(maker, g->nodes[at].name,
                                g->nodes[g->edges[e].to].name, &marks[e]);
    mark_maker_free(maker);
    if (!st)
        return marks;
    free(marks);
    if (st == BLY_ENOMEM)
        fail("no memory for a mark");
    else
        fail_library();
    return NULL;
}
