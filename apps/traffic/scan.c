/*
 * scan.c - a text past the sieves of all groups
 *
 * Each group goes over a block that stays in the first cache: a list of the
 * places that have passed grows shorter from sieve to sieve, without a branch
 * for any place in the first two.
 */
#include "apps/traffic/scan.h"

#include <stdlib.h>
#include <string.h>

#include "apps/traffic/automaton.h"
#include "base/byte_order.h"
#include "base/grow.h"

#define FEW 32 /* matches that are put in order without a call for each two */

struct scanner {
    const struct scan_string *strings;
    size_t keeps;
    struct scan_group groups[SCAN_GROUPS];
    size_t ngroups;
    const struct scan_variant *variant;
    struct automaton *automaton; /* instead of groups */
    struct scan_match *matches;
    size_t nmatches, room;
    struct scan_load load;
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
    s->variant = scan_variant_from(spec->variant);
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
    if (!GROW(&s->matches, &s->room, s->nmatches + 1))
        return false;
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
    const struct scan_piece *piece;
};

/* The automaton says that a string ends in front of at[end]. */
static bool automaton_found(void *ctx, size_t string, size_t end)
{
    const struct finding *const f = ctx;
    const struct scan_string *const s = &f->s->strings[string];
    const struct scan_piece *const p = f->piece;
    if (end <= p->seen || end < s->n ||
        !scan_there(s, p->at, p->n, end - s->n, p->base))
        return true;
    return match_add(f->s, p->base + end - s->n, string);
}

/* ------------------------------------------------------------------ sieves */

/* Can the string be there, by its place and its first and last bytes? */
static bool entry_fits(const struct scan_group *g, const struct scan_entry *e,
                       size_t at, const struct scan_piece *p)
{
    const uint32_t before = e->before & ~SCAN_MORE;
    if (at < before || e->after > p->n - at || at + e->after <= p->seen)
        return false;
    if (before + e->after < 4)
        return true;
    return ((uint32_t)get_le(p->at + at - before, 4) | g->fold_all) ==
               e->first &&
           ((uint32_t)get_le(p->at + at + e->after - 4, 4) | g->fold_all) ==
               e->last;
}

/* The window at this place is the one of these entries: which strings are
 * there? */
static bool entries_there(struct scanner *s, const struct scan_group *g,
                          const struct scan_entry *e, size_t at,
                          const struct scan_piece *p)
{
    for (;; e++) {
        if (entry_fits(g, e, at, p)) {
            const size_t start = at - (e->before & ~SCAN_MORE);
            s->load.compared++;
            if (scan_there(&s->strings[e->string], p->at, p->n, start,
                           p->base) &&
                !match_add(s, p->base + start, e->string))
                return false;
        }
        if (!(e->before & SCAN_MORE))
            return true;
    }
}

/* The first entry of a window, from 1 on; 0 if there is none. */
static uint32_t entry_find(const struct scan_group *g, uint64_t hash)
{
    uint64_t i = hash >> g->slot_shift;
    while (g->slots[i].first && (g->slots[i].low != (uint32_t)hash ||
                                 g->slots[i].high != hash >> 32))
        i = (i + 1) & (g->nslots - 1);
    return g->slots[i].first;
}

/* Which of these places pass the filter? How many there are in `passed`, which
 * is not `places`: a load waits for a store to a place that it may be from. */
static size_t filter_places(const struct scan_group *g,
                            const unsigned char *text, const uint16_t *places,
                            size_t n, uint16_t *passed)
{
    size_t npassed = 0;
    for (size_t i = 0; i < n; i++) {
        const uint16_t place = places[i];
        passed[npassed] = place;
        npassed +=
            scan_filter_has(g, scan_hash(g, scan_window(g, text + place)));
    }
    return npassed;
}

#define FETCHED 32 /* slots at once */

/* What has passed is looked up. Slots and entries of some places are fetched
 * before they are needed. */
static bool places_passed(struct scanner *s, const struct scan_group *g,
                          const unsigned char *text, size_t at,
                          const uint16_t *places, size_t n,
                          const struct scan_piece *p)
{
    uint64_t hashes[FETCHED];
    s->load.passed += n;
    uint32_t firsts[FETCHED];
    for (size_t i = 0; i < n; i += FETCHED, places += FETCHED) {
        const size_t some = n - i < FETCHED ? n - i : FETCHED;
        for (size_t k = 0; k < some; k++) {
            hashes[k] = scan_hash(g, scan_window(g, text + places[k]));
            __builtin_prefetch(&g->slots[hashes[k] >> g->slot_shift]);
        }
        for (size_t k = 0; k < some; k++) {
            firsts[k] = entry_find(g, hashes[k]);
            __builtin_prefetch(&g->entries[firsts[k]] - 1);
        }
        for (size_t k = 0; k < some; k++)
            if (firsts[k] && !entries_there(s, g, &g->entries[firsts[k] - 1],
                                            at + places[k], p))
                return false;
    }
    return true;
}

/* Windows at[0 .. n) of a piece; text[0 .. n + SCAN_AHEAD) are its bytes from
 * there on, and can be read. */
static bool windows_scan(struct scanner *s, const struct scan_group *g,
                         const struct scan_piece *p, const unsigned char *text,
                         size_t at, size_t n)
{
    uint16_t places[SCAN_BLOCK + 64], passed[SCAN_BLOCK + 1];
    const size_t tested = s->variant->front(g, text, n, places);
    const size_t npassed = filter_places(g, text, places, tested, passed);
    s->load.sieved += tested;
    s->load.computed += (double)n * g->passes;
    return places_passed(s, g, text, at, passed, npassed, p);
}

/* Windows from `at` on, as far as `to`; where it went on to is in *end. */
static bool block_scan(struct scanner *s, const struct scan_group *g,
                       const struct scan_piece *p, size_t at, size_t to,
                       size_t *end)
{
    const size_t last = p->n - at >= g->window ? p->n - g->window + 1 : at;
    const size_t readable = p->n + p->ahead;
    const size_t safe = readable > SCAN_AHEAD ? readable - SCAN_AHEAD : 0;
    to = to < last ? to : last;
    *end = to;
    if (at < to && at < safe) {
        const size_t n = (to < safe ? to : safe) - at;
        if (!windows_scan(s, g, p, p->at + at, at, n))
            return false;
        at += n;
    }
    if (at < to) {
        /* The last bytes, with others behind them that can be read. */
        unsigned char rest[2 * SCAN_AHEAD] = { 0 };
        memcpy(rest, p->at + at, p->n - at);
        return windows_scan(s, g, p, rest, at, to - at);
    }
    return true;
}

static bool groups_scan(struct scanner *s, const struct scan_piece *p)
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
        to = p->n - to > SCAN_BLOCK ? to + SCAN_BLOCK : p->n;
        for (size_t i = 0; i < s->ngroups; i++)
            if (at[i] < to &&
                !block_scan(s, &s->groups[i], p, at[i], to, &at[i]))
                return false;
    }
    return true;
}

/* By start. Most come in order, or nearly so. */
static void matches_sort(struct scan_match *m, size_t n)
{
    if (n > FEW) {
        qsort(m, n, sizeof *m, match_order);
        return;
    }
    for (size_t i = 1; i < n; i++) {
        const struct scan_match own = m[i];
        size_t k = i;
        for (; k > 0 && match_order(&m[k - 1], &own) > 0; k--)
            m[k] = m[k - 1];
        m[k] = own;
    }
}

bool scanner_scan(struct scanner *s, const struct scan_piece *p,
                  const struct scan_match **matches, size_t *nmatches)
{
    s->nmatches = 0;
    const bool done =
        s->automaton ? automaton_run(s->automaton, p->at, p->n, automaton_found,
                                     &(struct finding){ s, p })
                     : groups_scan(s, p);
    if (!done)
        return false;
    matches_sort(s->matches, s->nmatches);
    s->load.bytes += p->n - p->seen;
    s->load.matches += s->nmatches;
    *matches = s->matches;
    *nmatches = s->nmatches;
    return true;
}
