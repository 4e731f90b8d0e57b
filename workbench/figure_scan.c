/*
 * figure_scan.c - strings in a text: what passes the filters, and what is found
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/traffic/scan.h"
#include "base/random.h"
#include "workbench/figure.h"

#define IDS_TEXT ((size_t)1 << 21)
#define IDS_SHORTEST 3
#define IDS_LONGEST 26 /* as published: 24 lengths */
#define IDS_PLANTED 1000

/* n strings of the published lengths, and room for their bytes. */
static struct scan_string *ids_strings(uint64_t *seed, size_t n,
                                       unsigned char *room)
{
    struct scan_string *const out = calloc(n, sizeof *out);
    for (size_t i = 0; out && i < n; i++) {
        out[i].at = room + i * IDS_LONGEST;
        out[i].n = IDS_SHORTEST + i % (IDS_LONGEST - IDS_SHORTEST + 1);
        for (size_t k = 0; k < out[i].n; k++)
            out[i].at[k] = (unsigned char)random_next(seed);
    }
    return out;
}

struct ids_result {
    double computed, passed, sd; /* per byte */
    size_t n;                    /* matches */
    struct scan_match *matches;
};

static struct ids_result ids_scan(struct figure_run *run,
                                  const struct scan_string *strings, size_t n,
                                  const struct scan_spec *spec,
                                  const unsigned char *text)
{
    struct ids_result out = { 0 };
    struct scanner *const s = scanner_new(strings, n, spec);
    const struct scan_piece all = { .at = text, .n = IDS_TEXT };
    const struct scan_match *m;
    if (s && scanner_scan(s, &all, &m, &out.n)) {
        const struct scan_load *const load = scanner_load(s);
        out.computed = load->computed / (double)IDS_TEXT;
        out.passed = (double)load->passed / (double)IDS_TEXT;
        out.sd = sqrt(load->computed + 1) / (double)IDS_TEXT;
        out.matches = malloc((out.n ? out.n : 1) * sizeof *m);
        if (out.matches && out.n)
            memcpy(out.matches, m, out.n * sizeof *m);
    }
    run->broken |= !out.matches;
    scanner_free(s);
    return out;
}

static double ids_differ(const struct ids_result *a, const struct ids_result *b)
{
    double differ = fabs((double)a->n - (double)b->n);
    for (size_t i = 0; i < a->n && i < b->n; i++)
        differ += a->matches[i].start != b->matches[i].start ||
                  a->matches[i].string != b->matches[i].string;
    return differ;
}

static void ids_size(struct figure_run *run, size_t n, unsigned char *text,
                     struct figure_series *const series[3])
{
    uint64_t seed = run->seed + n;
    unsigned char *const room = malloc(n * IDS_LONGEST);
    struct scan_string *const strings =
        room ? ids_strings(&seed, n, room) : NULL;
    if (!strings) {
        run->broken = true;
        free(room);
        return;
    }
    for (size_t i = 0; i < IDS_TEXT; i++)
        text[i] = (unsigned char)random_next(&seed);
    static const struct scan_spec specs[] = { { .per_length = true }, { 0 } };
    for (unsigned i = 0; i < 2; i++) {
        const struct ids_result r = ids_scan(run, strings, n, &specs[i], text);
        figure_judge(run, series[i], (double)n, r.computed, r.passed, r.sd);
        free(r.matches);
    }
    /* Now some of the strings are there. */
    for (size_t i = 0; i < IDS_PLANTED; i++) {
        const struct scan_string *const s = &strings[random_next(&seed) % n];
        memcpy(text + random_next(&seed) % (IDS_TEXT - s->n), s->at, s->n);
    }
    const struct ids_result right =
        ids_scan(run, strings, n, &(struct scan_spec){ .exact = true }, text);
    double wrong = 0;
    for (unsigned i = 0; i < 2 && right.matches; i++) {
        const struct ids_result r = ids_scan(run, strings, n, &specs[i], text);
        if (r.matches)
            wrong += ids_differ(&r, &right);
        free(r.matches);
    }
    figure_point(run, series[2], (double)n, 0, wrong, 0, 0);
    free(right.matches);
    free(strings);
    free(room);
}

static void ids_run(struct figure_run *run)
{
    unsigned char *const text = malloc(IDS_TEXT);
    run->x = AXIS(.label = "strings", .scale = PLOT_LOG, .format = PLOT_SI);
    run->y = AXIS(.label = "windows per byte that pass", .scale = PLOT_LOG);
    struct figure_series *const series[] = {
        figure_series(run, "a filter for each length"),
        figure_series(run, "groups, with classes"),
        figure_series(run, "matches, missed or wrong"),
    };
    series[2]->unseen = true;
    run->broken |= !text;
    for (size_t n = 100; text && n <= 10000; n *= 10)
        ids_size(run, n, text, series);
    free(text);
    figure_note(run, "24 lengths with a filter each that lets 1 of 1024 pass "
                     "would give 0.023 per byte.");
}

const struct figure figure_ids = {
    .name = "ids",
    .title = "Strings in a text: what has to be looked up",
    .source = "Dharmapurikar, Krishnamurthy, Sproull, Lockwood: Deep Packet "
              "Inspection Using Parallel Bloom Filters, 2004.",
    .about = "Strings of 3 to 26 bytes are looked for in random bytes. Dashed "
             "is what the bits of the filters let expect, markers are what "
             "passed and was looked up. The matches are those of an "
             "Aho-Corasick automaton, all of them and no other.",
    .run = ids_run,
};
