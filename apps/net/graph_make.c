/*
 * graph_make.c - networks that are made: ring:100, grid:8x8, random:1000:4
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/net/graph_links.h"
#include "base/random.h"

#define TURN 6.283185307179586
#define LINK_DELAY 1000 /* microseconds, of links that are made */

struct make {
    struct links *links;
    uint64_t a, b; /* the two numbers of the word; b 0: there is one */
    uint64_t random;
};

static bool link_two(struct make *m, uint64_t a, uint64_t b)
{
    return links_add(m->links, (uint32_t)a, (uint32_t)b, LINK_DELAY);
}

static bool linked_two(const struct make *m, uint64_t a, uint64_t b)
{
    for (size_t i = 0; i < m->links->n; i++)
        if ((m->links->at[i].a == a && m->links->at[i].b == b) ||
            (m->links->at[i].a == b && m->links->at[i].b == a))
            return true;
    return false;
}

/* Nodes on a circle, each with the next. */
static bool circle_nodes(struct make *m, double share)
{
    bool ok = true;
    for (uint64_t i = 0; i < m->a && ok; i++) {
        const double angle = TURN * share * (double)i / (double)m->a;
        ok = links_node(m->links, 0.5 + 0.5 * sin(angle),
                        0.5 - 0.5 * cos(angle)) &&
             (!i || link_two(m, i - 1, i));
    }
    return ok;
}

static bool make_ring(struct make *m)
{
    return circle_nodes(m, 1) && (m->a < 3 || link_two(m, m->a - 1, 0));
}

static bool make_line(struct make *m)
{
    bool ok = true;
    for (uint64_t i = 0; i < m->a && ok; i++)
        ok = links_node(m->links, (double)i / (double)m->a, 0.5) &&
             (!i || link_two(m, i - 1, i));
    return ok;
}

static bool make_grid(struct make *m)
{
    bool ok = true;
    for (uint64_t y = 0; y < m->b && ok; y++)
        for (uint64_t x = 0; x < m->a && ok; x++) {
            const uint64_t at = y * m->a + x;
            ok = links_node(m->links, ((double)x + 0.5) / (double)m->a,
                            ((double)y + 0.5) / (double)m->b) &&
                 (!x || link_two(m, at - 1, at)) &&
                 (!y || link_two(m, at - m->a, at));
        }
    return ok;
}

/* Level by level: the children of node i are DEGREE * i + 1 and on. */
static bool make_tree(struct make *m)
{
    uint64_t width = 1, at = 0;
    bool ok = true;
    for (uint64_t level = 0; level <= m->b && ok; level++, width *= m->a) {
        if (at + width > GRAPH_NODES)
            return false;
        for (uint64_t i = 0; i < width && ok; i++, at++)
            ok = links_node(m->links, ((double)i + 0.5) / (double)width,
                            (double)level / (double)(m->b ? m->b : 1)) &&
                 (!at || link_two(m, (at - 1) / m->a, at));
    }
    return ok;
}

/* Every node has m->b stubs, which are joined at random; what would be a loop
 * or a second link is exchanged with another pair. */
static bool make_random(struct make *m)
{
    const uint32_t nstubs = (uint32_t)(m->a * m->b);
    uint32_t *const stubs = malloc((nstubs + 1) * sizeof *stubs);
    bool ok = stubs && circle_nodes(m, 1);
    m->links->n = 0;
    for (uint32_t i = 0; ok && i < nstubs; i++)
        stubs[i] = i / (uint32_t)m->b;
    for (uint32_t i = nstubs; ok && i > 1; i--) {
        const uint32_t j = graph_below(&m->random, i), kept = stubs[i - 1];
        stubs[i - 1] = stubs[j];
        stubs[j] = kept;
    }
    for (uint32_t i = 0; ok && i + 1 < nstubs; i += 2) {
        /* A few pairs of many do not fit: one of the pair is drawn anew. */
        for (unsigned turn = 0;
             turn < 100 &&
             (stubs[i] == stubs[i + 1] ||
              (turn < 20 && i < 8192 && linked_two(m, stubs[i], stubs[i + 1])));
             turn++) {
            const uint32_t j = i + 1 + graph_below(&m->random, nstubs - i - 1);
            const uint32_t kept = stubs[i + 1];
            stubs[i + 1] = stubs[j];
            stubs[j] = kept;
        }
        if (stubs[i] != stubs[i + 1])
            ok = link_two(m, stubs[i], stubs[i + 1]);
    }
    free(stubs);
    return ok;
}

/* Cells as wide as the radius, so that only nine of them are looked at. */
static bool make_geometric(struct make *m)
{
    const uint32_t n = (uint32_t)m->a;
    const double radius = sqrt((double)m->b * 2 / TURN / (double)n);
    const uint32_t side = radius < 1 ? (uint32_t)(1 / radius) : 1;
    uint32_t *const head = malloc((size_t)side * side * sizeof *head);
    uint32_t *const next = malloc(((size_t)n + 1) * sizeof *next);
    bool ok = head && next;
    for (uint32_t i = 0; ok && i < side * side; i++)
        head[i] = GRAPH_FAR;
    for (uint32_t i = 0; ok && i < n; i++) {
        const double x = (double)(random_next(&m->random) >> 11) * 0x1p-53;
        const double y = (double)(random_next(&m->random) >> 11) * 0x1p-53;
        const uint32_t cx = (uint32_t)(x * side), cy = (uint32_t)(y * side);
        ok = links_node(m->links, x, y);
        for (uint32_t k = 0; k < 9 && ok; k++) {
            const uint32_t px = cx + k % 3 - 1, py = cy + k / 3 - 1;
            if (px >= side || py >= side)
                continue;
            for (uint32_t j = head[py * side + px]; ok && j != GRAPH_FAR;
                 j = next[j])
                if (hypot(m->links->nodes[j].x - x, m->links->nodes[j].y - y) <=
                    radius)
                    ok = link_two(m, j, i);
        }
        next[i] = head[cy * side + cx];
        head[cy * side + cx] = i;
    }
    free(head);
    free(next);
    return ok;
}

/* A link's end is a node in proportion to its links. */
static bool make_preferential(struct make *m)
{
    const uint64_t n = m->a, each = m->b;
    bool ok = circle_nodes(m, 1);
    m->links->n = 0;
    for (uint64_t i = 1; i <= each && ok && i < n; i++)
        ok = link_two(m, i - 1, i);
    for (uint64_t i = each + 1; i < n && ok; i++) {
        const size_t before = m->links->n;
        for (uint64_t k = 0; k < each && ok;) {
            const uint32_t end =
                graph_below(&m->random, (uint32_t)(2 * before));
            const struct link_of e = m->links->at[end / 2];
            const uint32_t to = end % 2 ? e.a : e.b;
            bool again = false;
            for (size_t j = before; j < m->links->n; j++)
                again |= m->links->at[j].b == to;
            if (again)
                continue;
            ok = links_add(m->links, (uint32_t)i, to, LINK_DELAY);
            k++;
        }
    }
    return ok;
}

static const struct made_as {
    const char *name, *form;
    char between; /* the two numbers; 0: there is one */
    bool (*make)(struct make *m);
} made_as[] = {
    { "ring", "ring:N", 0, make_ring },
    { "line", "line:N", 0, make_line },
    { "grid", "grid:WxH", 'x', make_grid },
    { "tree", "tree:DEGREE:DEPTH", ':', make_tree },
    { "random", "random:N:DEGREE", ':', make_random },
    { "geometric", "geometric:N:DEGREE", ':', make_geometric },
    { "preferential", "preferential:N:M", ':', make_preferential },
};

/* A number of digits, up to `end` or another character. */
static bool digits(const char **at, uint64_t *out)
{
    *out = 0;
    const char *const begin = *at;
    for (; **at >= '0' && **at <= '9' && *out <= GRAPH_NODES; ++*at)
        *out = 10 * *out + (uint64_t)(**at - '0');
    return *at > begin && *out > 0 && *out <= GRAPH_NODES;
}

/* What cannot be made of these numbers. */
static const char *unmakable(const struct made_as *as, const struct make *m)
{
    if (as->make == make_grid)
        return m->a * m->b > GRAPH_NODES ? "more than a million nodes" : NULL;
    if (as->make == make_tree)
        return m->a > 64 || m->b > 20 ? "at most 64 children and 20 levels"
                                      : NULL;
    if (as->between && m->b > 64)
        return "at most 64 links of a node";
    if (as->between && m->b >= m->a)
        return "more links of a node than there are others";
    if (as->make == make_random && m->a * m->b % 2)
        return "an odd number of ends of links";
    return NULL;
}

enum links_what links_made(const char *what, uint64_t seed, struct links *l,
                           char why[160])
{
    struct make m = { .links = l, .random = seed };
    const char *const colon = strchr(what, ':');
    for (size_t i = 0; colon && i < sizeof made_as / sizeof made_as[0]; i++) {
        const struct made_as *const as = &made_as[i];
        const char *at = colon + 1;
        if (strlen(as->name) != (size_t)(colon - what) ||
            memcmp(as->name, what, strlen(as->name)) != 0)
            continue;
        bool ok = digits(&at, &m.a);
        if (ok && as->between)
            ok = *at++ == as->between && digits(&at, &m.b);
        const char *wrong = NULL;
        if (!ok || *at)
            snprintf(why, 160, "expected %s, up to a million nodes", as->form);
        else if ((wrong = unmakable(as, &m)) != NULL)
            snprintf(why, 160, "%s", wrong);
        else if (as->make(&m))
            return LINKS_MADE;
        else
            snprintf(why, 160, "too many nodes or links, or no memory");
        return LINKS_WRONG;
    }
    return LINKS_NONE;
}
