/*
 * scan_groups.c - strings by length, and a filter of their windows
 *
 * A group more means that the text is gone through once more, but what a long
 * window says is lost in a group with shorter strings.
 *
 * Example: 10,000 windows in 2^19 bits, two of them each: 0.3 % of other
 * windows pass.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/traffic/scan.h"
#include "base/byte_order.h"
#include "base/random.h"

#define CAP SCAN_GROUPS /* longer strings are in the group of this length */
#define MOST_BITS 21    /* 256 KiB: the filter stays in the second cache */
#define PER_WINDOW 32   /* bits of the filter */
#define PAPER_BITS                                              \
    128 /* per string, with a filter for each length: about one \
           window in 1024 passes */

/* Lengths that a group may begin with. A cut at 8 is not worth its passes. */
static const unsigned cuts[] = { 1, 2, 3, 4, 6 };
#define NCUTS (sizeof cuts / sizeof cuts[0])

static unsigned log2_up(double x)
{
    unsigned n = 0;
    while (ldexp(1, (int)n) < x)
        n++;
    return n;
}

static unsigned filter_log2(const struct scan_spec *spec, double nwindows)
{
    const unsigned per = spec->per_length ? PAPER_BITS : PER_WINDOW;
    const unsigned most = spec->per_length ? 32 : MOST_BITS;
    const unsigned n = log2_up(nwindows * per);
    return n < 13 ? 13 : n > most ? most : n;
}

/* -------------------------------------------------------------- the tables */

struct made {
    uint64_t hash;
    struct scan_entry entry;
};

static int made_order(const void *a, const void *b)
{
    const struct made *const x = a, *const y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return x->entry.string < y->entry.string ? -1 : 1;
}

/* Bits a and b of a word are any two, or the same one: with j of 32 set a
 * random window passes it with (j/32)^2. */
static double filter_passes(const struct scan_group *g)
{
    double sum = 0;
    for (uint64_t i = 0; i < g->nwords; i++) {
        const double set = __builtin_popcount(g->bits[i]) / 32.;
        sum += set * set;
    }
    return sum / (double)g->nwords;
}

static struct made window_make(const struct scan_group *g,
                               const struct scan_string *s, uint32_t number,
                               uint32_t before)
{
    unsigned char bytes[8] = { 0 };
    memcpy(bytes, s->at + before, g->window);
    struct made made = { .hash = scan_hash(g, scan_window(g, bytes)),
                         .entry = { .string = number,
                                    .before = before,
                                    .after = (uint32_t)s->n - before } };
    if (s->n >= 4) {
        made.entry.first = (uint32_t)get_le(s->at, 4) | g->fold_all;
        made.entry.last = (uint32_t)get_le(s->at + s->n - 4, 4) | g->fold_all;
    }
    return made;
}

static void slot_put(struct scan_group *g, uint64_t hash, uint32_t first)
{
    uint64_t i = hash >> g->slot_shift;
    while (g->slots[i].first)
        i = (i + 1) & (g->nslots - 1);
    g->slots[i] =
        (struct scan_slot){ (uint32_t)hash, (uint32_t)(hash >> 32), first };
}

static bool tables_make(struct scan_group *g, struct made *made, size_t n,
                        const struct scan_spec *spec)
{
    const unsigned bits = filter_log2(spec, (double)n);
    const unsigned slots = log2_up((double)n * 2 + 2);
    qsort(made, n, sizeof *made, made_order);
    g->nwords = UINT64_C(1) << (bits - 5);
    g->shift = 64 - (bits - 5);
    g->nslots = UINT64_C(1) << slots;
    g->slot_shift = 64 - slots;
    g->nentries = n;
    g->bits = calloc(g->nwords, sizeof *g->bits);
    g->slots = calloc(g->nslots, sizeof *g->slots);
    g->entries = malloc(n * sizeof *g->entries);
    if (!g->bits || !g->slots || !g->entries)
        return false;
    for (size_t i = 0; i < n; i++) {
        const uint64_t h = made[i].hash;
        g->entries[i] = made[i].entry;
        if (i + 1 < n && made[i + 1].hash == h)
            g->entries[i].before |= SCAN_MORE;
        if (i > 0 && made[i - 1].hash == h)
            continue;
        slot_put(g, h, (uint32_t)i + 1);
        g->bits[h >> g->shift] |=
            UINT32_C(1) << (h >> 37 & 31) | UINT32_C(1) << (h >> 42 & 31);
    }
    return true;
}

/* The classes and tables of a group, of which the strings are known. */
static bool group_fill(struct scan_group *g, const struct scan_string *strings,
                       const uint32_t *members, size_t n,
                       const struct scan_spec *spec)
{
    double each[256];
    uint32_t *const begins = malloc(n * sizeof *begins);
    struct made *const made = malloc(n * sizeof *made);
    bool done =
        begins && made && scan_classes_choose(g, strings, members, n, begins);
    for (size_t i = 0; done && i < n; i++) {
        const struct scan_string *const s = &strings[members[i]];
        const unsigned back = (unsigned)s->n - begins[i];
        g->back = back > g->back ? back : g->back;
        made[i] = window_make(g, s, members[i], begins[i]);
    }
    done = done && tables_make(g, made, n, spec);
    free(begins);
    free(made);
    if (spec->per_length)
        scan_classes_open(g);
    scan_front_prepare(g);
    for (unsigned b = 0; b < 256; b++)
        each[b] = 1 / 256.;
    if (done)
        g->passes = filter_passes(g) * scan_classes_share(g, each);
    return done;
}

/* Strings of shortest to longest bytes become a group; true if there are none,
 * too. */
static bool group_make(struct scan_group *groups, size_t *ngroups,
                       const struct scan_string *strings, size_t n,
                       unsigned shortest, size_t longest,
                       const struct scan_spec *spec)
{
    struct scan_group *const g = &groups[*ngroups];
    uint32_t *const members = malloc(n * sizeof *members);
    size_t count = 0, least = longest;
    if (!members)
        return false;
    for (size_t i = 0; i < n; i++)
        if (strings[i].n >= shortest && strings[i].n < least)
            least = strings[i].n;
    const unsigned window = least < SCAN_WIDEST ? (unsigned)least : SCAN_WIDEST;
    *g = (struct scan_group){
        .shortest = shortest,
        .window = window,
        .mask = UINT64_MAX >> (64 - 8 * window),
        /* Odd, with bits everywhere. */
        .k = RANDOM_STEP ^ spec->seed << 1,
    };
    for (size_t i = 0; i < n; i++)
        if (strings[i].n >= shortest && strings[i].n <= longest) {
            members[count++] = (uint32_t)i;
            if (strings[i].nocase) {
                g->fold_all = UINT32_C(0x20202020);
                g->fold = UINT64_C(0x2020202020202020) & g->mask;
            }
        }
    *ngroups += count > 0;
    const bool done =
        count == 0 || group_fill(g, strings, members, count, spec);
    free(members);
    return done;
}

size_t scan_groups(const struct scan_string *strings, size_t n,
                   const struct scan_spec *spec,
                   struct scan_group groups[SCAN_GROUPS])
{
    const unsigned most = spec->per_length ? CAP : NCUTS;
    size_t ngroups = 0;
    for (unsigned i = 0; i < most; i++) {
        const unsigned begin = spec->per_length ? i + 1 : cuts[i];
        const size_t end = i + 1 == most      ? SCAN_LONGEST
                           : spec->per_length ? begin
                                              : cuts[i + 1] - 1;
        if (!group_make(groups, &ngroups, strings, n, begin, end, spec)) {
            scan_groups_free(groups, ngroups);
            return 0;
        }
    }
    return ngroups;
}

void scan_groups_free(struct scan_group *groups, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(groups[i].bits);
        free(groups[i].slots);
        free(groups[i].entries);
    }
}
