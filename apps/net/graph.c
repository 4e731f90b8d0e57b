/*
 * graph.c - the links of a network, and the way from here to there
 */
#include "apps/net/graph.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/net/graph_links.h"
#include "base/grow.h"
#include "base/random.h"
#include "io/files.h"
#include "io/line_words.h"
#include "io/source.h"
#include "base/lookup.h"
#include "report/say.h"

#define TEXT_MOST ((size_t)64 << 20)
#define READ_LEAST ((size_t)4096)

uint32_t graph_below(uint64_t *state, uint32_t n)
{
    return (uint32_t)((random_next(state) >> 32) * n >> 32);
}

void graph_free(struct graph *g)
{
    free(g->first);
    free(g->edges);
    free(g->nodes);
    memset(g, 0, sizeof *g);
}

/* ------------------------------------------------------------------- links */

void links_free(struct links *l)
{
    free(l->at);
    free(l->nodes);
    memset(l, 0, sizeof *l);
}

bool links_node(struct links *l, double x, double y)
{
    if (l->nnodes == GRAPH_NODES ||
        !GROW(&l->nodes, &l->nodes_room, l->nnodes + 1))
        return false;
    struct graph_node *const node = &l->nodes[l->nnodes++];
    memset(node, 0, sizeof *node);
    snprintf(node->name, sizeof node->name, "%zu", l->nnodes - 1);
    node->x = x;
    node->y = y;
    return true;
}

bool links_add(struct links *l, uint32_t a, uint32_t b, uint32_t delay)
{
    if (2 * (l->n + 1) > GRAPH_EDGES || !GROW(&l->at, &l->room, l->n + 1))
        return false;
    l->at[l->n++] = (struct link_of){ a, b, delay };
    return true;
}

/* The graph of these links, each counted in both directions. Nodes go over to
 * it. */
bool links_graph(struct links *l, struct graph *g)
{
    memset(g, 0, sizeof *g);
    g->first = calloc(l->nnodes + 2, sizeof *g->first);
    g->edges = malloc((2 * l->n + 1) * sizeof *g->edges);
    if (!g->first || !g->edges || !l->nodes) {
        graph_free(g);
        return false;
    }
    g->n = (uint32_t)l->nnodes;
    g->nedges = (uint32_t)(2 * l->n);
    g->nodes = l->nodes;
    l->nodes = NULL;
    /* Count, sum up to where the links of each end, and fill from there. */
    for (size_t i = 0; i < l->n; i++) {
        g->first[l->at[i].a]++;
        g->first[l->at[i].b]++;
    }
    for (uint32_t i = 1; i <= g->n; i++)
        g->first[i] += g->first[i - 1];
    for (size_t i = l->n; i-- > 0;) {
        const struct link_of e = l->at[i];
        g->edges[--g->first[e.a]] = (struct graph_edge){ e.b, e.delay };
        g->edges[--g->first[e.b]] = (struct graph_edge){ e.a, e.delay };
    }
    return true;
}

/* ------------------------------------------------------------------- ways */

void graph_hops(const struct graph *g, uint32_t from, uint32_t *hops,
                uint32_t *before, uint32_t *queue)
{
    uint32_t head = 0, tail = 0;
    for (uint32_t i = 0; i < g->n; i++)
        hops[i] = before[i] = GRAPH_FAR;
    hops[from] = 0;
    queue[tail++] = from;
    while (head < tail) {
        const uint32_t at = queue[head++];
        for (uint32_t e = g->first[at]; e < g->first[at + 1]; e++) {
            const uint32_t to = g->edges[e].to;
            if (hops[to] == GRAPH_FAR) {
                hops[to] = hops[at] + 1;
                before[to] = at;
                queue[tail++] = to;
            }
        }
    }
}

bool graph_whole(const struct graph *g)
{
    uint32_t *const room = malloc(3 * (size_t)g->n * sizeof *room);
    bool whole = room != NULL;
    if (whole)
        graph_hops(g, 0, room, room + g->n, room + 2 * (size_t)g->n);
    for (uint32_t i = 0; whole && i < g->n; i++)
        whole = room[i] != GRAPH_FAR;
    free(room);
    return whole;
}

/* ------------------------------------------------------------------- text */

struct names {
    struct links *links;
    struct lookup nodes; /* by name */
};

/* The number of a node, which may be new; or what is wrong. */
static const char *named(struct names *t, struct words name, uint32_t *out)
{
    if (name.n >= GRAPH_NAME)
        return "a name has more than 31 bytes";
    if (memchr(name.at, 0, name.n))
        return "a name with a NUL byte";
    const uint64_t hash = table_hash(name.at, name.n);
    LOOKUP_EACH (&t->nodes, hash, row) {
        const char *const other = t->links->nodes[row].name;
        if (strlen(other) == name.n && memcmp(other, name.at, name.n) == 0) {
            *out = (uint32_t)row;
            return NULL;
        }
    }
    if (!lookup_add(&t->nodes, hash, t->links->nnodes))
        return "no memory";
    /* Placed on a circle, until a line says where it is. */
    if (!links_node(t->links, NAN, NAN))
        return "too many nodes";
    struct graph_node *const node = &t->links->nodes[t->links->nnodes - 1];
    memset(node->name, 0, sizeof node->name);
    memcpy(node->name, name.at, name.n);
    *out = (uint32_t)t->links->nnodes - 1;
    return NULL;
}

/* A number from least to most; false: it is not one. */
static bool number_of(struct words w, double least, double most, double *out)
{
    char text[40], *end;
    if (!w.n || w.n >= sizeof text)
        return false;
    memcpy(text, w.at, w.n);
    text[w.n] = '\0';
    *out = strtod(text, &end);
    return end == text + w.n && *out >= least && *out <= most;
}

static const char *edge_line(struct names *t, struct words line)
{
    struct words a, b, ms, more;
    uint32_t from, to;
    double delay = 0;
    if (!words_next(&line, &a) || !words_next(&line, &b))
        return "expected edge A B [MILLISECONDS]";
    if (words_next(&line, &ms) && !number_of(ms, 0, 1e6, &delay))
        return "a delay is 0 to 1000000 milliseconds";
    if (words_next(&line, &more))
        return "expected edge A B [MILLISECONDS]";
    const char *why = named(t, a, &from);
    if (!why)
        why = named(t, b, &to);
    if (why)
        return why;
    if (from == to)
        return "a link from a node to itself";
    return links_add(t->links, from, to, (uint32_t)(1000 * delay))
               ? NULL
               : "too many links";
}

static const char *node_line(struct names *t, struct words line)
{
    struct words name, x, y, more;
    uint32_t at;
    double to[2];
    if (!words_next(&line, &name) || !words_next(&line, &x) ||
        !words_next(&line, &y) || words_next(&line, &more) ||
        !number_of(x, 0, 1, &to[0]) || !number_of(y, 0, 1, &to[1]))
        return "expected node NAME X Y, with X and Y from 0 to 1";
    const char *const why = named(t, name, &at);
    if (!why) {
        t->links->nodes[at].x = to[0];
        t->links->nodes[at].y = to[1];
    }
    return why;
}

bool graph_parse(const char *text, size_t n, struct graph *out, char why[160])
{
    struct links links = { 0 };
    struct names names = { .links = &links };
    const char *wrong = NULL;
    size_t number = 0;
    memset(out, 0, sizeof *out);
    for (const char *at = text, *const end = text + n; at < end && !wrong;) {
        const char *const newline = memchr(at, '\n', (size_t)(end - at));
        const char *const stop = newline ? newline : end;
        struct words line =
            words_trim((struct words){ at, (size_t)(stop - at) });
        struct words verb;
        number++;
        at = newline ? newline + 1 : end;
        if (!words_next(&line, &verb) || verb.at[0] == '#')
            continue;
        wrong = words_are(verb, "edge")   ? edge_line(&names, line)
                : words_are(verb, "node") ? node_line(&names, line)
                                          : "neither \"edge\" nor \"node\"";
    }
    if (!wrong && !links.nnodes)
        wrong = "no node";
    for (size_t i = 0; i < links.nnodes; i++)
        if (isnan(links.nodes[i].x)) {
            const double turn = 6.283185307179586 * (double)i;
            links.nodes[i].x = 0.5 + 0.5 * sin(turn / (double)links.nnodes);
            links.nodes[i].y = 0.5 - 0.5 * cos(turn / (double)links.nnodes);
        }
    if (wrong)
        snprintf(why, 160, "line %zu: %s", number, wrong);
    else if (!links_graph(&links, out))
        wrong = strcpy(why, "no memory");
    lookup_free(&names.nodes);
    links_free(&links);
    return !wrong;
}

/* ------------------------------------------------------------------- load */

static char *text_of(const char *path, size_t *n)
{
    struct source *const s = source_open(path, -1, SOURCE_LINES);
    char *text = NULL;
    size_t room = 0;
    ptrdiff_t got = 1;
    *n = 0;
    if (!s) {
        fail("%s: neither a file nor a network that can be made; expected "
             "ring:N, line:N, grid:WxH, tree:DEGREE:DEPTH, random:N:DEGREE, "
             "geometric:N:DEGREE, preferential:N:M",
             path);
        return NULL;
    }
    while (got > 0) {
        if (!GROW(&text, &room, *n + READ_LEAST) || *n > TEXT_MOST) {
            fail("%s: too large", path);
            got = -2;
            break;
        }
        got = source_read(s, text + *n, room - *n);
        *n += got > 0 ? (size_t)got : 0;
    }
    if (got == -1)
        fail("%s: %s", path, source_error(s));
    source_close(s);
    if (got < 0) {
        free(text);
        return NULL;
    }
    return text;
}

bool graph_load(const char *what, uint64_t seed, struct graph *out)
{
    struct links links = { 0 };
    char why[160];
    bool ok;
    memset(out, 0, sizeof *out);
    switch (links_made(what, seed, &links, why)) {
    case LINKS_MADE:
        ok = links_graph(&links, out);
        links_free(&links);
        return ok || refuse("%s: no memory", what);
    case LINKS_WRONG:
        links_free(&links);
        return refuse("%s: %s", what, why);
    case LINKS_NONE:
        break;
    }
    size_t n;
    char *const text = text_of(what, &n);
    if (!text)
        return false;
    ok = graph_parse(text, n, out, why);
    free(text);
    return ok || refuse("%s: %s", what, why);
}
