/*
 * block_live.c - the part of a list that changes while packets pass
 *
 * Each key has two lines. The first is used as long as it has room, so that the
 * kernel looks into one line for nearly all packets. If both are full, an entry
 * of one of them moves to its own other line: it is written there before it is
 * taken away here. A table of 16,384 lines takes 5.8 entries per line on
 * average before one finds no room; none of 13 million did at 4 per line, of
 * which 6 % are then known to have overflowed.
 */
#include "apps/traffic/block_live.h"

#include <string.h>

#include "base/byte_order.h"

#define MEAN 4 /* entries for each line */
#define MOST_LINES (UINT32_C(1) << 25)
#define LEAST_LINES 64 /* a page has as many, and mmap() gives pages */

uint32_t live_lines(uint64_t entries)
{
    uint32_t n = LEAST_LINES;
    while (n < MOST_LINES && (uint64_t)n * MEAN < entries)
        n *= 2;
    return (uint64_t)n * MEAN < entries ? 0 : n;
}

uint64_t live_room(uint32_t lines)
{
    return (uint64_t)lines * MEAN;
}

uint64_t live_hash(const struct xdp_hash *h, const struct prefix *p)
{
    return p->version == 4
               ? xdp_hash_four(h, (uint32_t)get_be(p->at, 4), p->bits)
               : xdp_hash_six(h, get_le(p->at, 8), get_le(p->at + 8, 8),
                              p->bits);
}

bool live_over(uint32_t end, uint32_t now)
{
    return end >= XDP_FIRST_TICK && (int32_t)(end - now) <= 0;
}

/* --------------------------------------------------------------- one place */

/* What the kernel reads at the same time: words that change at once. */
static uint32_t word_get(const uint32_t *at)
{
    return __atomic_load_n(at, __ATOMIC_RELAXED);
}

static void word_set(uint32_t *at, uint32_t value)
{
    __atomic_store_n(at, value, __ATOMIC_RELEASE);
}

uint32_t live_end(const struct live_table *t, uint32_t place)
{
    return word_get(&t->lines[place / 8].ends[place % 8]);
}

void live_clear(struct live_table *t, uint32_t place)
{
    word_set(&t->lines[place / 8].print[place % 8], 0);
}

/* The print is written last: from then on the entry is there. */
static void place_fill(struct live_table *t, uint32_t place, uint32_t print,
                       uint32_t end, struct xdp_hits hits)
{
    struct xdp_line *const line = &t->lines[place / 8];
    word_set(&line->print[place % 8], 0);
    word_set(&line->ends[place % 8], end);
    t->hits[place] = hits;
    word_set(&line->print[place % 8], print);
}

/* -------------------------------------------------------------------- lines */

static uint32_t line_of(const struct live_table *t, uint64_t hash)
{
    return (uint32_t)hash & (t->nlines - 1);
}

static uint32_t other_line(const struct live_table *t, uint32_t line,
                           uint32_t print)
{
    return (line ^ XDP_OTHER_LINE(print)) & (t->nlines - 1);
}

static uint32_t line_find(const struct live_table *t, uint32_t line,
                          uint32_t print)
{
    for (uint32_t i = 0; i < XDP_PLACES; i++)
        if (word_get(&t->lines[line].print[i]) == print)
            return 8 * line + i;
    return LIVE_NONE;
}

/* A place that nothing is in, or that is over. */
static uint32_t line_room(const struct live_table *t, uint32_t line,
                          uint32_t now)
{
    for (uint32_t i = 0; i < XDP_PLACES; i++)
        if (!word_get(&t->lines[line].print[i]) ||
            live_over(word_get(&t->lines[line].ends[i]), now))
            return 8 * line + i;
    return LIVE_NONE;
}

uint32_t live_find(const struct live_table *t, uint64_t hash)
{
    const uint32_t print = XDP_PRINT(hash);
    const uint32_t first = line_of(t, hash);
    const uint32_t at = line_find(t, first, print);
    return at != LIVE_NONE || !t->lines[first].more
               ? at
               : line_find(t, other_line(t, first, print), print);
}

/* Move one of a full line's entries to its other line; its place, or LIVE_NONE:
 * none can go. Each of the two lines of an entry may be its first. */
static uint32_t line_relieve(struct live_table *t, uint32_t line, uint32_t now)
{
    for (uint32_t i = 0; i < XDP_PLACES; i++) {
        struct xdp_line *const from = &t->lines[line];
        const uint32_t print = from->print[i];
        const uint32_t other = other_line(t, line, print);
        const uint32_t to = line_room(t, other, now);
        if (to == LIVE_NONE)
            continue;
        word_set(&from->more, 1);
        word_set(&t->lines[other].more, 1);
        place_fill(t, to, print, from->ends[i], t->hits[8 * line + i]);
        word_set(&from->print[i], 0);
        return 8 * line + i;
    }
    return LIVE_NONE;
}

bool live_put(struct live_table *t, uint64_t hash, uint32_t end, uint32_t now)
{
    const uint32_t print = XDP_PRINT(hash);
    const uint32_t first = line_of(t, hash);
    const uint32_t second = other_line(t, first, print);
    uint32_t at = live_find(t, hash);
    if (at != LIVE_NONE && !live_over(live_end(t, at), now)) {
        word_set(&t->lines[at / 8].ends[at % 8], end);
        return true;
    }
    if (at == LIVE_NONE)
        at = line_room(t, first, now);
    if (at == LIVE_NONE)
        at = line_room(t, second, now);
    if (at == LIVE_NONE)
        at = line_relieve(t, first, now);
    if (at == LIVE_NONE)
        at = line_relieve(t, second, now);
    if (at == LIVE_NONE)
        return false;
    if (at / 8 != first)
        word_set(&t->lines[first].more, 1);
    place_fill(t, at, print, end, (struct xdp_hits){ 0 });
    return true;
}

struct live_counts live_sweep(struct live_table *t, uint32_t now)
{
    struct live_counts c = { 0 };
    for (uint32_t line = 0; line < t->nlines; line++)
        for (uint32_t i = 0; i < XDP_PLACES; i++) {
            if (!t->lines[line].print[i])
                continue;
            const uint32_t end = t->lines[line].ends[i];
            if (live_over(end, now)) {
                live_clear(t, 8 * line + i);
                c.over++;
            } else if (end == XDP_RELEASED) {
                c.released++;
            } else {
                c.listed++;
                c.timed += end != XDP_NEVER;
            }
        }
    return c;
}
