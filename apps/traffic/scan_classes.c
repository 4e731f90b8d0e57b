/*
 * scan_classes.c - where in a string its window is, and classes of its bytes
 *
 * Each of 8 classes is a set of bytes for each byte of a window. A text passes
 * where its bytes are in all sets of one class, so a class lets pass the
 * product of the shares that its sets have of the text. Strings come one after
 * the other, those with the fewest places for a window first, and each takes
 * the place and the class that cost least: bytes that are in the class already,
 * or that texts seldom have, in windows that few other strings have. Then each
 * is taken out and chooses again, when all others are known.
 *
 * What texts have is guessed: letters, blanks and signs as in English and in
 * source code, some of everything, and what the strings themselves have.
 */
#include <stdlib.h>
#include <string.h>

#include "apps/traffic/scan.h"

#define LAST 64           /* windows lie in the last bytes of a string */
#define ROUNDS 2          /* that strings choose in */
#define SIEVED_CYCLES 3.f /* to ask the filter for a window */
#define PASSED_CYCLES 60. /* to look up one that has passed it */
#define OWN 0.3           /* share of the strings' bytes in the guess */

struct chooser {
    /* Of class c: its share of the text at place j, and the share that a byte
     * would add to it. */
    float share[SCAN_WIDEST][SCAN_CLASSES];
    float adds[SCAN_WIDEST][256][SCAN_CLASSES];
    uint32_t uses[SCAN_WIDEST][256][SCAN_CLASSES];
    float weight[256]; /* share of a byte in texts */
    uint16_t *counts;  /* windows of all strings, by hash */
    unsigned shift;
    float met; /* cycles per byte of text for a window that it has as often as
                  the strings have it once */
};

/* The guess, without the strings; the sum is 1. */
static void weights_guess(double w[256])
{
    static const char letters[] = "etaoinsrhldcumfpgwybvkxjqz";
    static const unsigned char often[] = { 12, 9, 8, 8, 7, 7, 6, 6, 6,
                                           4,  4, 3, 3, 3, 2, 2, 2, 2,
                                           2,  2, 1, 1, 1, 1, 1, 1 };
    double sum = 0;
    for (unsigned b = 0; b < 256; b++)
        w[b] = b >= '0' && b <= '9' ? 1 : b > ' ' && b < 127 ? .5 : .05;
    for (unsigned i = 0; letters[i]; i++) {
        w[(unsigned char)letters[i]] = often[i];
        w[(unsigned char)letters[i] - 32] = often[i] * .12;
    }
    w[' '] = 18;
    w['\n'] = 3;
    w['_'] = 2;
    w[0] = 3;
    for (unsigned b = 0; b < 256; b++)
        sum += w[b];
    for (unsigned b = 0; b < 256; b++)
        w[b] /= sum;
}

static size_t places_first(const struct scan_string *s)
{
    return s->n > LAST ? s->n - LAST : 0;
}

static uint64_t string_window(const struct scan_group *g,
                              const unsigned char *at)
{
    return (get_le(at, g->window) & g->mask) | g->fold;
}

static uint16_t *count_of(const struct chooser *c, const struct scan_group *g,
                          const unsigned char *at)
{
    return &c->counts[scan_hash(g, string_window(g, at)) >> c->shift];
}

static unsigned char other_case(const struct scan_group *g, unsigned char b)
{
    return g->fold && b >= 'a' && b <= 'z'   ? b - 32
           : g->fold && b >= 'A' && b <= 'Z' ? b + 32
                                             : b;
}

/* One byte more, or less, of a class. */
static void class_byte(struct chooser *c, unsigned j, unsigned char b,
                       unsigned k, int by)
{
    uint32_t *const uses = &c->uses[j][b][k];
    const bool was = *uses > 0;
    *uses = by > 0 ? *uses + 1 : *uses - 1;
    if (was == (*uses > 0))
        return;
    c->share[j][k] += was ? -c->weight[b] : c->weight[b];
    c->adds[j][b][k] = was ? c->weight[b] : 0;
}

static void class_window(struct chooser *c, const struct scan_group *g,
                         const unsigned char *at, unsigned k, int by)
{
    for (unsigned j = 0; j < g->window; j++) {
        const unsigned char other = other_case(g, at[j]);
        class_byte(c, j, at[j], k, by);
        if (other != at[j])
            class_byte(c, j, other, k, by);
    }
}

struct choice {
    uint32_t begin;
    unsigned char class;
    float cost;
};

/* What would the classes let pass more, if this window were in one of them?
 * The least is taken over into *best. */
static void window_try(const struct chooser *c, const struct scan_group *g,
                       const unsigned char *at, uint32_t begin,
                       struct choice *best)
{
    float before[SCAN_CLASSES], after[SCAN_CLASSES];
    const float met = c->met * (float)(*count_of(c, g, at) - 1);
    if (met >= best->cost)
        return;
    for (unsigned k = 0; k < SCAN_CLASSES; k++)
        before[k] = after[k] = 1;
    for (unsigned j = 0; j < g->window; j++) {
        const unsigned char other = other_case(g, at[j]);
        const float both = other != at[j] ? 1 : 0;
        for (unsigned k = 0; k < SCAN_CLASSES; k++) {
            before[k] *= c->share[j][k];
            after[k] *= c->share[j][k] + c->adds[j][at[j]][k] +
                        both * c->adds[j][other][k];
        }
    }
    for (unsigned k = 0; k < SCAN_CLASSES; k++) {
        const float cost = met + SIEVED_CYCLES * (after[k] - before[k]);
        if (cost < best->cost)
            *best = (struct choice){ begin, (unsigned char)k, cost };
    }
}

static struct choice string_choose(const struct chooser *c,
                                   const struct scan_group *g,
                                   const struct scan_string *s)
{
    struct choice best = { (uint32_t)(s->n - g->window), 0, 1e30f };
    for (size_t b = places_first(s); b + g->window <= s->n; b++)
        window_try(c, g, s->at + b, (uint32_t)b, &best);
    return best;
}

static void chooser_start(struct chooser *c, const struct scan_group *g,
                          const struct scan_string *strings,
                          const uint32_t *members, size_t n)
{
    double guess[256], own[256] = { 0 }, all = 0;
    weights_guess(guess);
    for (size_t i = 0; i < n; i++) {
        const struct scan_string *const s = &strings[members[i]];
        for (size_t b = places_first(s); b < s->n; b++) {
            own[s->at[b]]++;
            all++;
        }
        for (size_t b = places_first(s); b + g->window <= s->n; b++) {
            uint16_t *const at = count_of(c, g, s->at + b);
            *at = (uint16_t)(*at + (*at < UINT16_MAX));
        }
    }
    c->met = (float)(PASSED_CYCLES / all);
    for (unsigned b = 0; b < 256; b++) {
        c->weight[b] = (float)((1 - OWN) * guess[b] + OWN * own[b] / all);
        for (unsigned j = 0; j < SCAN_WIDEST; j++)
            for (unsigned k = 0; k < SCAN_CLASSES; k++)
                c->adds[j][b][k] = c->weight[b];
    }
}

/* Members by length, the shortest first: they have the fewest places. */
struct by_length {
    size_t n;
    uint32_t member;
};

static int by_length_order(const void *a, const void *b)
{
    const struct by_length *const x = a, *const y = b;
    if (x->n != y->n)
        return x->n < y->n ? -1 : 1;
    return x->member < y->member ? -1 : x->member > y->member;
}

void scan_classes_open(struct scan_group *g)
{
    memset(g->classes, 0xff, sizeof g->classes);
}

static void classes_write(struct scan_group *g, const struct chooser *c)
{
    scan_classes_open(g);
    for (unsigned j = 0; j < g->window; j++) {
        for (unsigned b = 0; b < 256; b++) {
            unsigned char set = 0;
            for (unsigned k = 0; k < SCAN_CLASSES; k++)
                if (c->uses[j][b][k])
                    set |= (unsigned char)(1 << k);
            g->classes[j][b] = set;
        }
    }
}

double scan_classes_share(const struct scan_group *g, const double weight[256])
{
    double now[256] = { [255] = 1 };
    for (unsigned j = 0; j < SCAN_WIDEST; j++) {
        double next[256] = { 0 }, sets[256] = { 0 };
        for (unsigned b = 0; b < 256; b++)
            sets[g->classes[j][b]] += weight[b];
        for (unsigned x = 0; x < 256; x++)
            for (unsigned y = 0; now[x] > 0 && y < 256; y++)
                next[x & y] += now[x] * sets[y];
        memcpy(now, next, sizeof now);
    }
    return 1 - now[0];
}

static void strings_choose(struct chooser *c, const struct scan_group *g,
                           const struct scan_string *strings,
                           const uint32_t *members,
                           const struct by_length *order, size_t n,
                           unsigned char *class, uint32_t *begins)
{
    for (unsigned round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < n; i++) {
            const uint32_t m = order[i].member;
            const struct scan_string *const s = &strings[members[m]];
            if (round)
                class_window(c, g, s->at + begins[m], class[m], -1);
            const struct choice best = string_choose(c, g, s);
            begins[m] = best.begin;
            class[m] = best.class;
            class_window(c, g, s->at + best.begin, best.class, 1);
        }
}

bool scan_classes_choose(struct scan_group *g,
                         const struct scan_string *strings,
                         const uint32_t *members, size_t n, uint32_t *begins)
{
    unsigned log = 10;
    while (log < 24 && ((size_t)1 << log) < n * 64)
        log++;
    struct chooser *const c = calloc(1, sizeof *c);
    struct by_length *const order = malloc(n * sizeof *order);
    unsigned char *const class = malloc(n);
    uint16_t *const counts = calloc((size_t)1 << log, sizeof *counts);
    const bool done = c && order && class && counts;
    if (done) {
        c->counts = counts;
        c->shift = 64 - log;
        chooser_start(c, g, strings, members, n);
        for (size_t i = 0; i < n; i++)
            order[i] = (struct by_length){ strings[members[i]].n, (uint32_t)i };
        qsort(order, n, sizeof *order, by_length_order);
        strings_choose(c, g, strings, members, order, n, class, begins);
        classes_write(g, c);
    }
    free(counts);
    free(class);
    free(order);
    free(c);
    return done;
}
