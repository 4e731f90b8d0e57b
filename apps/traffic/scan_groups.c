/*
 * scan_groups.c - strings by length, and a filter of their windows
 *
 * A long window is rarely met by chance; a long step means that few windows of
 * the text are looked at; a group more means that the text is gone through once
 * more. plan_groups() tries all ways to cut the lengths into groups and takes
 * the one with the least expected cycles per byte.
 *
 * Example: 10,000 strings, the shortest of 8 bytes. With q = 6 and s = 3 there
 * are 30,000 windows in 2^20 bits, and 1 % of the bytes of a random text
 * give one that passes.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/traffic/scan.h"
#include "io/byte_order.h"

#define CAP 24              /* longer strings are in the group of this length */
#define WIDEST 8            /* bytes of a window: a word */
#define LONGEST_STEP 8u     /* each of them is a window more for every string */
#define LAST 64             /* windows lie in the last bytes of a string */
#define SAMPLE_CYCLES 2.    /* to look at a window */
#define PASSED_CYCLES 30.   /* to look up what passed */
#define COMPARED_CYCLES 10. /* to compare one of the strings found there */
#define TEXT_BITS 4.        /* that a byte of text says, if no more is known */
#define LOOKED_AT 512       /* strings that tell how rare windows are */
#define MOST_BITS 21        /* 256 KiB: the filter stays in the second cache */
#define PER_WINDOW 32       /* bits of the filter */
#define PAPER_BITS                                              \
    128 /* per string, with a filter for each length: about one \
           window in 1024 passes */

struct plan {
    double cycles;
    unsigned window, step;
};

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

/* Cycles per byte for n strings, if a window of text meets `met` of theirs on
 * average. */
static double plan_cycles(double step, double n, double met)
{
    const double windows = n * step;
    const unsigned bits = filter_log2(&(struct scan_spec){ 0 }, windows);
    const double filled = fmin(1, 2 * windows / ldexp(1, (int)bits));
    const double passed = fmin(1, filled * filled + met);
    return (SAMPLE_CYCLES + passed * PASSED_CYCLES + met * COMPARED_CYCLES) /
           step;
}

/* The best for strings of m bytes and more, if each byte says TEXT_BITS. */
static double plan_group(unsigned m, double n)
{
    double best = INFINITY;
    for (unsigned q = 1; q <= WIDEST && q <= m; q++) {
        const double step = fmin(m - q + 1, LONGEST_STEP);
        best =
            fmin(best, plan_cycles(step, n, n * step * exp2(-TEXT_BITS * q)));
    }
    return best;
}

/* Where the groups begin: lengths, in ascending order. count[i] strings have i
 * bytes, those of CAP and more being counted there. */
static size_t plan_groups(const double count[CAP + 1], unsigned begins[CAP + 1])
{
    /* best[i]: cycles for all strings of i bytes and more; next[i]: where the
     * second group of these begins. */
    double best[CAP + 2] = { 0 };
    unsigned next[CAP + 2] = { 0 };
    for (unsigned i = CAP; i >= 1; i--) {
        best[i] = best[i + 1];
        next[i] = 0;
        if (count[i] == 0)
            continue;
        best[i] = INFINITY;
        double n = 0;
        for (unsigned end = i + 1; end <= CAP + 1; end++) {
            n += count[end - 1];
            const double cycles = plan_group(i, n) + best[end];
            if (cycles < best[i]) {
                best[i] = cycles;
                next[i] = end;
            }
        }
    }
    size_t groups = 0;
    for (unsigned i = 1; i <= CAP;)
        if (next[i]) {
            begins[groups++] = i;
            i = next[i];
        } else {
            i++;
        }
    return groups;
}

/* -------------------------------------------------------------- the tables */

/* Bytes that are frequent everywhere say little: letters and zeros, and what
 * was there just before. */
static unsigned rarity(const unsigned char *at, unsigned n)
{
    unsigned bits = 0;
    for (unsigned i = 0; i < n; i++)
        bits += i && at[i] == at[i - 1]                          ? 0
                : (at[i] | 0x20) >= 'a' && (at[i] | 0x20) <= 'z' ? 2
                : at[i] == 0 || at[i] == ' '                     ? 1
                                                                 : 3;
    return bits;
}

struct counts {
    uint16_t *at;
    unsigned shift;
};

static uint16_t *count_of(const struct counts *c, const struct scan_group *g,
                          const unsigned char *at)
{
    return &c->at[(scan_window(g, at) * SCAN_MULTIPLIER) >> c->shift];
}

/* Where do the windows of a string begin? Where few others have the same, and
 * texts seldom do, but not far from its end: whoever waits for a match has to
 * look again at no more than that. *met: how many of them a window of text is,
 * on average (times their counts, where these are given). */
static unsigned windows_begin(const struct scan_group *g,
                              const struct scan_string *s,
                              const struct counts *c, double *met)
{
    const size_t last = s->n - (g->window + g->step - 1);
    const size_t first = s->n > LAST && s->n - LAST < last ? s->n - LAST : 0;
    double least = INFINITY;
    unsigned begin = (unsigned)last;
    for (size_t b = first; b <= last; b++) {
        double cost = 0;
        for (unsigned i = 0; i < g->step; i++)
            cost += (1 + (c ? *count_of(c, g, s->at + b + i) : 0)) *
                    ldexp(1, -(int)rarity(s->at + b + i, g->window));
        if (cost < least) {
            least = cost;
            begin = (unsigned)b;
        }
    }
    *met = least;
    return begin;
}

/* The best window and step for a group, by how rare the windows of its strings
 * are: lines of blanks or dashes are met everywhere, and few windows avoid them
 * better than many. */
static struct plan plan_choose(const struct scan_string *strings, size_t n,
                               unsigned m, size_t longest, double members)
{
    struct plan best = { INFINITY, 1, 1 };
    const size_t every = (size_t)ceil(members / LOOKED_AT);
    for (unsigned q = 1; q <= WIDEST && q <= m; q++)
        for (unsigned step = 1; step <= LONGEST_STEP && q + step - 1 <= m;
             step++) {
            const struct scan_group g = { .shortest = m,
                                          .window = q,
                                          .step = step };
            double met = 0;
            size_t in = 0, looked = 0;
            for (size_t i = 0; i < n; i++) {
                const struct scan_string *const s = &strings[i];
                if (s->n < m || s->n > longest || in++ % every)
                    continue;
                double cost;
                windows_begin(&g, s, NULL, &cost);
                met += cost;
                looked++;
            }
            const double cycles =
                plan_cycles(step, members, met * members / (double)looked);
            if (cycles < best.cycles)
                best = (struct plan){ cycles, q, step };
        }
    return best;
}

struct made {
    uint64_t window;
    struct scan_entry entry;
};

static int made_order(const void *a, const void *b)
{
    const struct made *const x = a, *const y = b;
    if (x->window != y->window)
        return x->window < y->window ? -1 : 1;
    if (x->entry.string != y->entry.string)
        return x->entry.string < y->entry.string ? -1 : 1;
    return x->entry.before < y->entry.before ? -1 : 1;
}

static void slot_put(struct scan_group *g, const struct scan_slot *slot)
{
    uint64_t i = slot->window * SCAN_MULTIPLIER >> g->slot_shift;
    while (g->slots[i].n)
        i = (i + 1) & (g->nslots - 1);
    g->slots[i] = *slot;
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

static struct scan_entry entry_make(const struct scan_group *g,
                                    const struct scan_string *s, size_t number,
                                    unsigned before)
{
    struct scan_entry e = { .string = (uint32_t)number,
                            .before = before,
                            .after = (uint32_t)(s->n - before) };
    if (s->n >= 4) {
        e.first = (uint32_t)get_le(s->at, 4) | g->fold_all;
        e.last = (uint32_t)get_le(s->at + s->n - 4, 4) | g->fold_all;
    }
    return e;
}

static void window_add(struct scan_group *g, const unsigned char *at)
{
    const uint32_t h = scan_hash(g, at);
    g->bits[h >> g->shift] |= UINT32_C(1) << (h & 31) | UINT32_C(1)
                                                            << (h >> 5 & 31);
}

static bool tables_make(struct scan_group *g, struct made *made, size_t n,
                        const struct scan_string *strings,
                        const struct scan_spec *spec)
{
    const unsigned bits = filter_log2(spec, (double)n);
    const unsigned slots = log2_up((double)n * 2 + 2);
    qsort(made, n, sizeof *made, made_order);
    g->nwords = UINT64_C(1) << (bits - 5);
    g->shift = 32 - (bits - 5);
    g->nslots = UINT64_C(1) << slots;
    g->slot_shift = 64 - slots;
    g->nentries = n;
    g->bits = calloc(g->nwords, sizeof *g->bits);
    g->slots = calloc(g->nslots, sizeof *g->slots);
    g->entries = malloc(n * sizeof *g->entries);
    if (!g->bits || !g->slots || !g->entries)
        return false;
    struct scan_slot slot = { 0 };
    for (size_t i = 0; i < n; i++) {
        if (slot.n && slot.window != made[i].window) {
            slot_put(g, &slot);
            slot.n = 0;
        }
        if (!slot.n)
            slot = (struct scan_slot){ made[i].window, (uint32_t)i, 0 };
        slot.n++;
        g->entries[i] = made[i].entry;
        window_add(g, strings[made[i].entry.string].at + made[i].entry.before);
    }
    slot_put(g, &slot);
    g->passes = filter_passes(g);
    return true;
}

/* Strings of shortest to longest bytes become a group. */
static bool group_fill(struct scan_group *g, const struct scan_string *strings,
                       size_t n, size_t longest, const struct scan_spec *spec)
{
    size_t members = 0, windows = 0;
    bool done = false;
    for (size_t i = 0; i < n; i++)
        if (strings[i].n >= g->shortest && strings[i].n <= longest) {
            const size_t all = strings[i].n - g->window + 1;
            members++;
            windows += all < LAST ? all : LAST;
            if (strings[i].nocase) {
                g->fold_all = UINT32_C(0x20202020);
                g->fold = g->fold_all & g->word_mask;
            }
        }
    const unsigned log = log2_up((double)windows * 4);
    struct counts c = { calloc((size_t)1 << (log < 24 ? log : 24), 2),
                        64 - (log < 24 ? log : 24) };
    struct made *const made = malloc(members * g->step * sizeof *made);
    if (c.at && made) {
        for (size_t i = 0; i < n; i++) {
            const struct scan_string *const s = &strings[i];
            if (s->n < g->shortest || s->n > longest)
                continue;
            for (size_t b = s->n > LAST ? s->n - LAST : 0;
                 b + g->window <= s->n; b++) {
                uint16_t *const at = count_of(&c, g, s->at + b);
                *at = (uint16_t)(*at + (*at < UINT16_MAX));
            }
        }
        size_t nmade = 0;
        for (size_t i = 0; i < n; i++) {
            const struct scan_string *const s = &strings[i];
            if (s->n < g->shortest || s->n > longest)
                continue;
            double met;
            const unsigned begin = windows_begin(g, s, &c, &met);
            const unsigned back = (unsigned)(s->n - begin);
            g->back = back > g->back ? back : g->back;
            for (unsigned k = 0; k < g->step; k++)
                made[nmade++] =
                    (struct made){ scan_window(g, s->at + begin + k),
                                   entry_make(g, s, i, begin + k) };
        }
        done = tables_make(g, made, nmade, strings, spec);
    }
    free(c.at);
    free(made);
    return done;
}

size_t scan_groups(const struct scan_string *strings, size_t n,
                   const struct scan_spec *spec,
                   struct scan_group groups[SCAN_GROUPS])
{
    double count[CAP + 1] = { 0 };
    unsigned begins[CAP + 1];
    size_t ngroups = 0;
    for (size_t i = 0; i < n; i++)
        count[strings[i].n < CAP ? strings[i].n : CAP]++;
    if (spec->per_length) {
        for (unsigned i = 1; i <= CAP; i++)
            if (count[i] > 0)
                begins[ngroups++] = i;
    } else {
        ngroups = plan_groups(count, begins);
    }
    for (size_t i = 0; i < ngroups; i++) {
        const unsigned end = i + 1 < ngroups ? begins[i + 1] : CAP + 1;
        double members = 0;
        for (unsigned k = begins[i]; k < end; k++)
            members += count[k];
        const unsigned m = begins[i];
        const size_t longest = i + 1 < ngroups ? end - 1 : SCAN_LONGEST;
        const struct plan plan =
            spec->per_length ? (struct plan){ 0, m < WIDEST ? m : WIDEST, 1 }
                             : plan_choose(strings, n, m, longest, members);
        const unsigned window = plan.window;
        groups[i] = (struct scan_group){
            .shortest = m,
            .window = window,
            .step = plan.step,
            .second = window > 4 ? window - 4 : 0,
            .word_mask =
                window >= 4 ? UINT32_MAX : (UINT32_C(1) << 8 * window) - 1,
            /* Odd numbers with bits everywhere. */
            .k = { UINT32_C(0x9e3779b1) ^ (uint32_t)spec->seed << 1,
                   UINT32_C(0x85ebca77) ^ (uint32_t)(spec->seed >> 31 << 1),
                   UINT32_C(0xc2b2ae3d) },
        };
        for (unsigned k = 0; k < 32; k++)
            groups[i].order[k] =
                (unsigned char)(k % 16 / 4 * plan.step + k % 4);
        if (!group_fill(&groups[i], strings, n, longest, spec)) {
            scan_groups_free(groups, i + 1);
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
