/*
 * seek.c - how a question goes from place to place
 */
#include "apps/net/seek.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

void seek_start(struct seek *s, uint32_t from, unsigned most)
{
    memset(s, 0, sizeof *s);
    s->way[s->nway++] = from;
    s->most = most < SEEK_MOST ? most : SEEK_MOST;
    s->backs = 1;
}

static bool seek_used(const struct seek *s, uint32_t from, uint32_t to)
{
    for (unsigned i = 0; i < s->nused; i++)
        if (s->used[i][0] == from && s->used[i][1] == to)
            return true;
    return false;
}

bool seek_next(struct seek *s, const uint32_t *links, size_t n, uint32_t *to)
{
    const uint32_t at = s->way[s->nway - 1];
    for (size_t i = 0; i < n && s->hops < s->most; i++) {
        if (seek_used(s, at, links[i]))
            continue;
        s->used[s->nused][0] = at;
        s->used[s->nused++][1] = links[i];
        s->way[s->nway++] = links[i];
        s->hops++;
        *to = links[i];
        return true;
    }
    if (!s->backs || s->nway < 2)
        return false;
    s->backs--;
    s->nway--;
    s->hops++;
    *to = s->way[s->nway - 1];
    return true;
}

static bool climb_add(struct climb *c, struct climb_step step)
{
    if (c->n >= c->most || !GROW(&c->steps, &c->room, c->n + 1)) {
        c->cut = true;
        return false;
    }
    c->steps[c->n++] = step;
    return true;
}

bool climb_start(struct climb *c, uint32_t from, size_t most)
{
    memset(c, 0, sizeof *c);
    c->most = most;
    return climb_add(c, (struct climb_step){ .at = from,
                                             .not = SEEK_NOBODY,
                                             .from = SEEK_NOBODY });
}

bool climb_next(struct climb *c, uint32_t *at)
{
    if (c->asked == c->n)
        return false;
    *at = c->steps[c->asked].at;
    return true;
}

/* A hierarchy that is not a tree would lead in circles. */
static bool climb_was_at(const struct climb *c, uint32_t at)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->steps[i].at == at)
            return true;
    return false;
}

void climb_heard(struct climb *c, const uint32_t *children, size_t n,
                 uint32_t parent, bool has)
{
    const uint32_t number = (uint32_t)c->asked;
    c->steps[number].found = has;
    const struct climb_step step = c->steps[c->asked++];
    for (size_t i = 0; i < n; i++)
        if (children[i] != step.not &&!climb_was_at(c, children[i]))
            climb_add(c, (struct climb_step){ .at = children[i],
                                              .not = SEEK_NOBODY,
                                              .from = number,
                                              .down = true });
    if (!step.down && parent != SEEK_NOBODY && !climb_was_at(c, parent))
        climb_add(c, (struct climb_step){
                         .at = parent, .not = step.at, .from = number });
}

uint64_t climb_wasted(struct climb *c)
{
    uint64_t wasted = 0;
    for (size_t i = c->n; i-- > 0;) {
        const struct climb_step *const s = &c->steps[i];
        if (s->down && s->found)
            c->steps[s->from].found = true;
        wasted += s->down && !s->found;
    }
    return wasted;
}

void climb_free(struct climb *c)
{
    free(c->steps);
    memset(c, 0, sizeof *c);
}
