/*
 * scan.c - a text past the filters of all groups
 *
 * Each group goes over a block that stays in the first cache. 64 windows give
 * 64 bits of a word, without a branch for any of them (scan_front.c); the few
 * that are set are then looked up one by one.
 */
#include "apps/traffic/scan.h"

#include <stdlib.h>
#include <string.h>

#include "apps/traffic/automaton.h"
#include "io/byte_order.h"

#define BLOCK 16384

struct scanner {
    const struct scan_string *strings;
    size_t keeps;
    struct scan_group groups[SCAN_GROUPS];
    size_t ngroups;
    scan_front *front;
    struct automaton *automaton; /* instead of groups */
    struct scan_match *matches;
    size_t nmatches, room;
    struct scan_load load;
};

struct piece {
    const unsigned char *at;
    size_t seen, n;
    uint64_t base;
};

struct scanner *scanner_new(const struct scan_string *strings, size_t n,
                            const struct scan_spec *spec)
{
    size_t longest = 0;
    for (size_t i = 0; i < n; i++) {
        if (strings[i].n == 0 || strings[i].n > SCAN_LONGEST)
            return NULL;
        longest = strings[i].n > longest ? strings[i].n : longest;
    }
    struct scanner *const s = n && n <= SCAN_MOST ? calloc(1, sizeof *s) : NULL;
    if (!s)
        return NULL;
    s->strings = strings;
    s->keeps = longest - 1;
    s->front = spec->portable ? scan_front_portable : scan_front_best();
    if (spec->exact)
        s->automaton = automaton_new(strings, n);
    else
        s->ngroups = scan_groups(strings, n, spec, s->groups);
    if (!s->automaton && !s->ngroups) {
        free(s);
        return NULL;
    }
    return s;
}

void scanner_free(struct scanner *s)
{
    if (!s)
        return;
    scan_groups_free(s->groups, s->ngroups);
    automaton_free(s->automaton);
    free(s->matches);
    free(s);
}

size_t scanner_keeps(const struct scanner *s)
{
    return s->keeps;
}

size_t scanner_groups(const struct scanner *s)
{
    return s->ngroups;
}

uint64_t scanner_bytes(const struct scanner *s)
{
    uint64_t bytes = automaton_bytes(s->automaton);
    for (size_t i = 0; i < s->ngroups; i++)
        bytes += s->groups[i].nwords * 4 +
                 s->groups[i].nslots * sizeof(struct scan_slot) +
                 s->groups[i].nentries * sizeof(struct scan_entry);
    return bytes;
}

const struct scan_load *scanner_load(const struct scanner *s)
{
    return &s->load;
}

bool scan_there(const struct scan_string *string, const unsigned char *at,
                size_t n, size_t start, uint64_t base)
{
    if (start > n || n - start < string->n)
        return false;
    const uint64_t place = base + start;
    if (place < string->offset ||
        (string->depth && place - string->offset + string->n > string->depth))
        return false;
    if (!string->nocase)
        return memcmp(at + start, string->at, string->n) == 0;
    for (size_t i = 0; i < string->n; i++)
        if (scan_lower(at[start + i]) != string->at[i])
            return false;
    return true;
}

/* ---------------------------------------------------------------- matches */

static bool match_add(struct scanner *s, uint64_t start, size_t string)
{
    if (s->nmatches == s->room) {
        const size_t room = s->room ? 2 * s->room : 1024;
        struct scan_match *const grown =
            room > s->room ? realloc(s->matches, room * sizeof *grown) : NULL;
        if (!grown)
            return false;
        s->matches = grown;
        s->room = room;
    }
    s->matches[s->nmatches++] = (struct scan_match){ start, string };
    return true;
}

static int match_order(const void *a, const void *b)
{
    const struct scan_match *const x = a, *const y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->string < y->string ? -1 : x->string > y->string;
}

struct finding {
    struct scanner *s;
    const struct piece *piece;
};

/* The automaton says that a string ends in front of at[end]. */
static bool automaton_found(void *ctx, size_t string, size_t end)
{
    const struct finding *const f = ctx;
    const struct scan_string *const s = &f->s->strings[string];
    const struct piece *const p = f->piece;
    if (end <= p->seen || end < s->n ||
        !scan_there(s, p->at, p->n, end - s->n, p->base))
        return true;
    return match_add(f->s, p->base + end - s->n, string);
}

/* ----------------------------------------------------------------- filters */

static inline uint64_t slot_of(const struct scan_group *g, uint64_t window)
{
    return window * SCAN_MULTIPLIER >> g->slot_shift;
}

/* Can the string be there, by its place and its first and last bytes? */
static bool entry_fits(const struct scan_group *g, const struct scan_entry *e,
                       size_t at, const struct piece *p)
{
    if (at < e->before || e->after > p->n - at || at + e->after <= p->seen)
        return false;
    if (e->before + e->after < 4)
        return true;
    return ((uint32_t)get_le(p->at + at - e->before, 4) | g->fold_all) ==
               e->first &&
           ((uint32_t)get_le(p->at + at + e->after - 4, 4) | g->fold_all) ==
               e->last;
}

/* The window at this place has passed: whose is it? */
static bool window_passed(struct scanner *s, const struct scan_group *g,
                          size_t at, const struct piece *p)
{
    const uint64_t window = scan_window(g, p->at + at);
    s->load.passed++;
    uint64_t i = slot_of(g, window);
    while (g->slots[i].n && g->slots[i].window != window)
        i = (i + 1) & (g->nslots - 1);
    const struct scan_entry *e = g->entries + g->slots[i].first;
    for (uint32_t k = g->slots[i].n; k > 0; k--, e++) {
        if (!entry_fits(g, e, at, p))
            continue;
        s->load.compared++;
        const size_t start = at - e->before;
        if (scan_there(&s->strings[e->string], p->at, p->n, start, p->base) &&
            !match_add(s, p->base + start, e->string))
            return false;
    }
    return true;
}

/* Places whose windows have passed, and whose slots are being fetched. */
struct waiting {
    size_t n, at[128];
};

static bool waiting_done(struct scanner *s, const struct scan_group *g,
                         const struct piece *p, struct waiting *w)
{
    for (size_t i = 0; i < w->n; i++)
        if (!window_passed(s, g, w->at[i], p))
            return false;
    w->n = 0;
    return true;
}

static inline void waiting_add(const struct scan_group *g,
                               const struct piece *p, struct waiting *w,
                               size_t at)
{
    __builtin_prefetch(&g->slots[slot_of(g, scan_window(g, p->at + at))]);
    w->at[w->n++] = at;
}

/* Windows from `at` on, as far as `to`; where it went on to is in *end. */
static bool block_scan(struct scanner *s, const struct scan_group *g,
                       const struct piece *p, size_t at, size_t to, size_t *end)
{
    const size_t step = g->step, begin = at;
    struct waiting w;
    w.n = 0;
    for (; at < to && at + SCAN_AHEAD(g) <= p->n; at += 64 * step) {
        for (uint64_t set = s->front(g, p->at + at); set; set &= set - 1)
            waiting_add(g, p, &w, at + (size_t)__builtin_ctzll(set) * step);
        if (w.n >= 64 && !waiting_done(s, g, p, &w))
            return false;
    }
    for (; at < to && at + g->window <= p->n; at += step) {
        if (scan_filter_has(g, p->at + at))
            waiting_add(g, p, &w, at);
        if (w.n >= 64 && !waiting_done(s, g, p, &w))
            return false;
    }
    s->load.computed += (double)((at - begin) / step) * g->passes;
    *end = at;
    return waiting_done(s, g, p, &w);
}

static bool groups_scan(struct scanner *s, const struct piece *p)
{
    size_t at[SCAN_GROUPS], least = p->n;
    /* A string that ends in the piece has its windows at most `back` bytes in
     * front of its end. */
    for (size_t i = 0; i < s->ngroups; i++) {
        const size_t back = s->groups[i].back - 1;
        at[i] = p->seen > back ? p->seen - back : 0;
        least = at[i] < least ? at[i] : least;
    }
    for (size_t to = least; to < p->n;) {
        to = p->n - to > BLOCK ? to + BLOCK : p->n;
        for (size_t i = 0; i < s->ngroups; i++)
            if (at[i] < to &&
                !block_scan(s, &s->groups[i], p, at[i], to, &at[i]))
                return false;
    }
    return true;
}

bool scanner_scan(struct scanner *s, const unsigned char *at, size_t seen,
                  size_t n, uint64_t base, const struct scan_match **matches,
                  size_t *nmatches)
{
    const struct piece p = { at, seen, n, base };
    s->nmatches = 0;
    const bool done = s->automaton
                          ? automaton_run(s->automaton, at, n, automaton_found,
                                          &(struct finding){ s, &p })
                          : groups_scan(s, &p);
    if (!done)
        return false;
    if (s->nmatches > 1)
        qsort(s->matches, s->nmatches, sizeof *s->matches, match_order);
    s->load.bytes += n - seen;
    s->load.matches += s->nmatches;
    *matches = s->matches;
    *nmatches = s->nmatches;
    return true;
}
