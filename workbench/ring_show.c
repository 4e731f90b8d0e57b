/*
 * ring_show.c - a ring to look at, from a line: ring show and explain --ring
 */
#include "workbench/ring_show.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/say.h"
#include "workbench/plot.h"
#include "workbench/ring_picture.h"

/* Only a program that can speak to a ring has it; others are not asked. */
extern __typeof__(ring_live) ring_live __attribute__((weak));

static const uint64_t worked_ring[] = { 3, 9, 20, 27, 41, 46, 58 };

/* "45", or 16 hexadecimal digits or fewer where ids are long. */
static bool take_id(const char *text, unsigned bits, uint64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoull(text, &end, bits > 16 ? 16 : 10);
    if (errno || *end || end == text || *text == '-' ||
        (bits < 64 && *out >> bits))
        return refuse("'%s' is not an id of %u bits%s", text, bits,
                      bits > 16 ? ", in hexadecimal digits" : "");
    return true;
}

/* Ids from the line, from a live ring, or the usual ones. */
static bool take_members(const struct ring_show *s, const struct list *ids,
                         struct ring_model *m)
{
    uint64_t at[RING_MOST];
    if (s->node.at.n) {
        struct ring_members live;
        if (ids->n)
            return refuse("members come from --at or from the line, not both");
        const bool ok =
            ring_live(&s->node, &live) && ring_model(m, 64, live.ids, live.n);
        free(live.ids);
        return ok;
    }
    const unsigned bits = s->bits ? (unsigned)s->bits : 6;
    if (s->bits && (s->bits < 3 || s->bits > 64))
        return refuse("--bits must be from 3 to 64");
    if (!ids->n && s->bits && s->bits != 6)
        return refuse("--bits needs the ids of members");
    if (!ids->n)
        return ring_model(m, 6, worked_ring,
                          sizeof worked_ring / sizeof worked_ring[0]);
    if (ids->n > RING_MOST)
        return refuse("a ring that is shown has 1 to %d members", RING_MOST);
    for (size_t i = 0; i < ids->n; i++)
        if (!take_id(ids->at[i], bits, &at[i]))
            return false;
    return ring_model(m, bits, at, ids->n);
}

int ring_show(const struct ring_show *s, const struct list *ids)
{
    static struct ring_model m;
    struct ring_view v = { 0 };
    uint64_t from;
    if (!take_members(s, ids, &m))
        return TROUBLE;
    if (s->from) {
        if (!take_id(s->from, m.bits, &from))
            return TROUBLE;
        v.one = true;
        v.from = ring_owner(&m, from);
        if (m.bits <= 16 && m.ids[v.from] != from)
            return fail("--from: %s is not a member", s->from);
    }
    if (s->find) {
        if (!take_id(s->find, m.bits, &v.id))
            return TROUBLE;
        v.find = true;
    }
    if (s->json) {
        ring_report(&m, &v);
    } else {
        if (!s->words)
            ring_print(&m, &v);
        else
            ring_explain(&m, &v);
    }
    if (s->plot && !ring_draw(&m, &v, s->plot))
        return fail("%s", plot_why());
    return YES;
}
