/*
 * spectral_grow.c - counters that grow
 *
 * Growing, union, intersection and folding all work the same way: a new filter
 * is filled with counters computed from those of others, in the first shape
 * that has room for them, and replaces the old one.
 */
#include "kinds/spectral.h"

#include <string.h>

#include "kinds/fold.h"

bly_shape bly_spectral_shape(uint64_t m, uint64_t k, uint64_t update,
                             uint64_t width, uint64_t compact, uint64_t large)
{
    bly_shape s = { .p = { [SPECTRAL_COUNTERS] = m,
                           [SPECTRAL_K] = k,
                           [SPECTRAL_UPDATE] = update,
                           [SPECTRAL_WIDTH] = width,
                           [SPECTRAL_COMPACT] = compact,
                           [SPECTRAL_LARGE] = large } };
    s.nbytes = bly_cells_nbytes(m, (unsigned)width);
    if (update == SPECTRAL_RECURRING) {
        s.p[SPECTRAL_SECONDARY] = (m + 1) / 2;
        s.p[SPECTRAL_MARKER] = m;
        s.nbytes += bly_cells_nbytes(s.p[SPECTRAL_SECONDARY], (unsigned)width) +
                    (m + 63) / 64 * 8;
    }
    s.nbytes += spectral_large_bytes(&s);
    return s;
}

bly_shape bly_spectral_after(const bly_shape *s)
{
    const uint64_t *const p = s->p;
    const uint64_t large = bly_overflow_next(p[SPECTRAL_LARGE]);
    const bool pays = spectral_pays(s, large);
    return bly_spectral_shape(p[SPECTRAL_COUNTERS], p[SPECTRAL_K],
                              p[SPECTRAL_UPDATE],
                              pays ? p[SPECTRAL_WIDTH] : 2 * p[SPECTRAL_WIDTH],
                              p[SPECTRAL_COMPACT], pays ? large : 0);
}

/* ------------------------------------------------------------------- cells */

spectral_parts bly_spectral_parts(const bly_filter *f)
{
    const uint64_t *const p = f->shape.p;
    const unsigned width = (unsigned)p[SPECTRAL_WIDTH];
    const uint64_t large = spectral_large_bytes(&f->shape);
    spectral_parts parts = {
        .primary.cells = f->data,
        .outgrown = spectral_outgrown(&f->shape),
        .width = width,
        .ceiling = spectral_ceiling(&f->shape),
        .k = p[SPECTRAL_K],
        .m = bly_modulus_of(p[SPECTRAL_COUNTERS]),
    };
    if (p[SPECTRAL_UPDATE] == SPECTRAL_RECURRING) {
        const uint64_t n2 = bly_cells_nbytes(p[SPECTRAL_SECONDARY], width);
        parts.secondary =
            (spectral_array){ f->data +
                                  bly_cells_nbytes(p[SPECTRAL_COUNTERS], width),
                              p[SPECTRAL_COUNTERS] };
        parts.marker = (uint64_t *)(void *)(parts.secondary.cells + n2);
        parts.m2 = bly_modulus_of(p[SPECTRAL_SECONDARY]);
        parts.marks = bly_modulus_of(p[SPECTRAL_MARKER]);
    }
    if (large)
        parts.large =
            bly_overflow_of(f->data + (f->shape.nbytes - large),
                            p[SPECTRAL_LARGE], spectral_counters(&f->shape));
    return parts;
}

uint32_t bly_spectral_value(const spectral_parts *p, const spectral_array *a,
                            uint64_t j)
{
    const uint32_t c = bly_cell_get(a->cells, j, p->width);
    if (!p->outgrown || c != bly_cell_top(p->width))
        return c;
    const uint32_t count = bly_overflow_get(&p->large, a->first + j);
    return count > c ? count : c;
}

bool bly_spectral_assign(spectral_parts *p, const spectral_array *a, uint64_t j,
                         uint32_t value, uint64_t *n)
{
    const uint32_t top = bly_cell_top(p->width);
    const bool large = p->outgrown && value >= top;
    if (large && !bly_overflow_put(&p->large, a->first + j, value, n))
        return false;
    if (p->outgrown && !large && bly_cell_get(a->cells, j, p->width) == top)
        bly_overflow_drop(&p->large, a->first + j, n);
    bly_cell_put(a->cells, j, p->width, large ? top : value);
    return true;
}

/* ------------------------------------------------------------------ growing */

/* Which counters those of a new filter are computed from, and how. */
typedef struct spectral_origin {
    enum {
        SPECTRAL_SAME,  /* a, with its secondary array and marks */
        SPECTRAL_SUM,   /* a and b, counter by counter */
        SPECTRAL_LEAST, /* the lesser of both */
        SPECTRAL_FOLD,  /* the halves of a: their sum, or the greater of two */
        SPECTRAL_FOLD_MOST
    } how;
    spectral_parts a, b;
} spectral_origin;

/* Counter j of the primary array of p, for a counter that sticks at `ceiling`:
 * a count that is stuck in one width is unknown in the other, too. */
static uint32_t spectral_worth(const spectral_parts *p, uint64_t j,
                               uint32_t ceiling)
{
    const uint32_t c = bly_spectral_value(p, &p->primary, j);
    return c == p->ceiling || c > ceiling ? ceiling : c;
}

/* Counter j of the primary array, computed from o. */
static uint32_t spectral_made(const spectral_origin *o, uint64_t j,
                              uint32_t ceiling)
{
    const uint32_t x = spectral_worth(&o->a, j, ceiling);
    if (o->how == SPECTRAL_SAME)
        return x;
    const bool folded = o->how == SPECTRAL_FOLD || o->how == SPECTRAL_FOLD_MOST;
    const uint32_t y = folded ? spectral_worth(&o->a, j + o->a.m.n / 2, ceiling)
                              : spectral_worth(&o->b, j, ceiling);
    if (o->how == SPECTRAL_LEAST)
        return x < y ? x : y;
    if (o->how == SPECTRAL_FOLD_MOST)
        return x > y ? x : y;
    return bly_cell_sum(x, y, ceiling);
}

/* Fill g, which is empty. False: there is no room for the large counts. */
static bool spectral_fill(bly_filter *g, const spectral_origin *o)
{
    spectral_parts p = bly_spectral_parts(g);
    uint64_t stuck = 0, nlarge = 0, i = 0, position;
    uint32_t count;
    bool room = true;
    if (o->how == SPECTRAL_SAME && o->a.width == p.width) {
        /* Only the table differs. */
        memcpy(g->data, o->a.primary.cells,
               (size_t)(g->shape.nbytes - spectral_large_bytes(&g->shape)));
        while (room && bly_overflow_walk(&o->a.large, &i, &position, &count)) {
            room = bly_overflow_put(&p.large, position, count, &nlarge);
            stuck += count == p.ceiling;
        }
    } else {
        for (uint64_t j = 0; j < p.m.n && room; j++) {
            const uint32_t v = spectral_made(o, j, p.ceiling);
            stuck += v == p.ceiling;
            room = !v || bly_spectral_assign(&p, &p.primary, j, v, &nlarge);
        }
        /* Only a filter that grows keeps its secondary array. When two are
         * combined, a key that one counts there may be only in the primary of
         * the other. So the secondary starts empty, and estimates are those of
         * `selection` until doubtful keys move again. */
        const bool moves = p.marker && o->how == SPECTRAL_SAME;
        for (uint64_t j = 0; moves && j < p.m2.n && room; j++) {
            const uint32_t v = bly_spectral_value(&o->a, &o->a.secondary, j);
            stuck += v == p.ceiling;
            room = !v || bly_spectral_assign(&p, &p.secondary, j, v, &nlarge);
        }
        if (moves)
            memcpy(p.marker, o->a.marker, (size_t)((p.marks.n + 63) / 64 * 8));
    }
    g->state[SPECTRAL_STUCK] = stuck;
    g->state[SPECTRAL_NLARGE] = nlarge;
    return room;
}

/* The first shape from this one on that has room for the counts of o, judging
 * by their number. */
static bly_shape spectral_roomy(bly_shape s, const spectral_origin *o)
{
    while (spectral_outgrown(&s)) {
        const uint32_t top = bly_cell_top((unsigned)s.p[SPECTRAL_WIDTH]);
        const uint64_t m = s.p[SPECTRAL_COUNTERS];
        const uint64_t width = s.p[SPECTRAL_WIDTH];
        uint64_t n = 0;
        for (uint64_t j = 0; j < m; j++)
            n += spectral_made(o, j, UINT32_MAX) >= top;
        for (uint64_t j = 0; o->how == SPECTRAL_SAME && j < o->a.m2.n; j++)
            n += bly_spectral_value(&o->a, &o->a.secondary, j) >= top;
        while (s.p[SPECTRAL_WIDTH] == width &&
               bly_overflow_most(s.p[SPECTRAL_LARGE]) < n)
            s = bly_spectral_after(&s);
        if (s.p[SPECTRAL_WIDTH] == width)
            break;
    }
    return s;
}

/* A filter with the setting of f and the counters that o makes, of this shape
 * or one that follows. */
static bly_status spectral_make(const bly_filter *f, bly_shape s,
                                const spectral_origin *o, bly_filter **out)
{
    const bly_setting set = bly_setting_of(f);
    *out = NULL;
    for (;; s = bly_spectral_after(&s)) {
        bly_filter *g;
        const bly_status st = bly_filter_make(f->kind, &s, &set, &g);
        if (st)
            return st;
        if (spectral_fill(g, o)) {
            g->nadded = f->nadded;
            *out = g;
            return BLY_OK;
        }
        bly_free(g);
    }
}

/* f becomes what o makes of it. */
static bly_status spectral_turn(bly_filter *f, bly_shape s,
                                const spectral_origin *o)
{
    bly_filter *g;
    const bly_status st = spectral_make(f, s, o, &g);
    return st ? st : bly_become(f, g);
}

bly_status bly_spectral_grow(bly_filter *f)
{
    const spectral_origin same = { SPECTRAL_SAME, .a = bly_spectral_parts(f) };
    bly_shape next = bly_spectral_after(&f->shape);
    /* With wider counters fewer counts are large, so these have to be counted
     * again. */
    if (next.p[SPECTRAL_WIDTH] != f->shape.p[SPECTRAL_WIDTH])
        next = spectral_roomy(next, &same);
    return spectral_turn(f, next, &same);
}

/* ---------------------------------------------------------------- combining */

/* Sums of counters are never below the sum of the truths. */
bly_status bly_spectral_merge(bly_filter *dst, const bly_filter *src)
{
    const spectral_origin sum = { SPECTRAL_SUM, .a = bly_spectral_parts(dst),
                                  .b = bly_spectral_parts(src) };
    const bly_status st =
        spectral_turn(dst, spectral_roomy(bly_shape_of(dst), &sum), &sum);
    if (!st)
        bly_filter_added(dst, src->nadded);
    return st;
}

/* The lesser of two counters is never below the lesser of a key's two counts,
 * nor below the sum of these lesser counts over all keys that share the
 * counter. */
bly_status bly_spectral_intersect(bly_filter *dst, const bly_filter *src)
{
    const spectral_origin least = { SPECTRAL_LEAST,
                                    .a = bly_spectral_parts(dst),
                                    .b = bly_spectral_parts(src) };
    const bly_status st = spectral_turn(dst, bly_shape_of(dst), &least);
    if (!st)
        bly_filter_at_most(dst, src->nadded);
    return st;
}

/* With `increase`, which never removes, the greater of two counters is at least
 * the count of every key that uses either. Where removals subtract from
 * counters, these must be sums, and so must be the folded ones. */
bly_status bly_spectral_fold(const bly_filter *f, bly_filter **out)
{
    const uint64_t *const p = f->shape.p;
    const spectral_origin halves = { p[SPECTRAL_UPDATE] == SPECTRAL_INCREASE
                                         ? SPECTRAL_FOLD_MOST
                                         : SPECTRAL_FOLD,
                                     .a = bly_spectral_parts(f) };
    const bly_shape half = bly_spectral_shape(
        p[SPECTRAL_COUNTERS] / 2, p[SPECTRAL_K], p[SPECTRAL_UPDATE],
        p[SPECTRAL_WIDTH], p[SPECTRAL_COMPACT], 0);
    bly_status st =
        bly_fold_begin(f, p[SPECTRAL_COUNTERS], "counters", &half, out);
    if (!st &&
        (st = spectral_turn(*out, spectral_roomy(half, &halves), &halves))) {
        bly_free(*out);
        *out = NULL;
    }
    return st;
}
