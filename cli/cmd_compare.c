/*
 * cmd_compare.c - how much do filters have in common, pair by pair?
 *
 * All are mapped and verified once, then every pair is compared. With --fold a
 * pair of different sizes is brought to one size: the larger is folded in half
 * until it is as small as the other.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery.h>

#include "cli/cli.h"
#include "io/files.h"
#include "io/filters.h"
#include "report/json.h"
#include "report/say.h"
#include "report/show.h"
#include "report/words.h"

static struct {
    bool fold, json;
} compare_args;

/* A pair of operands, by their numbers, and what came out. */
struct pair {
    size_t a, b;
    bly_likeness likeness;
};

/* -------------------------------------------------------------- comparing */

static uint64_t compare_bits(const bly_filter *f)
{
    bly_stats s;
    bly_peek(f, &s);
    return s.bits;
}

/* f folded until it has no more than so many bits; how often. NULL where that
 * does not go, or is not needed. */
static bly_filter *compare_folded(const bly_filter *f, uint64_t bits,
                                  unsigned *times)
{
    bly_filter *now = NULL, *half;
    *times = 0;
    while (compare_bits(now ? now : f) > bits) {
        const bly_status st = bly_fold(now ? now : f, &half);
        bly_free(now);
        if (st)
            return NULL;
        now = half;
        ++*times;
    }
    return now;
}

/* Compare two of different sizes; whether it goes, and which one was folded how
 * often for that. */
static bool compare_by_folding(const bly_filter *a, const bly_filter *b,
                               bly_likeness *out, bool *first, unsigned *times)
{
    *first = compare_bits(a) > compare_bits(b);
    const bly_filter *const small = *first ? b : a;
    bly_filter *const folded =
        compare_folded(*first ? a : b, compare_bits(small), times);
    const bool goes = folded && bly_compare(*first ? folded : a,
                                            *first ? b : folded, out) == BLY_OK;
    bly_free(folded);
    return goes;
}

static int compare_pair(bly_filter *const *f, const char *const *names,
                        struct pair *p)
{
    const char *const a = names[p->a], *const b = names[p->b];
    const bly_status st = bly_compare(f[p->a], f[p->b], &p->likeness);
    char why[512];
    bool first;
    unsigned times;
    if (!st)
        return YES;
    snprintf(why, sizeof why, "%s", bly_error());
    if (st != BLY_EUNFIT ||
        !compare_by_folding(f[p->a], f[p->b], &p->likeness, &first, &times))
        return fail("%s and %s: %s", a, b, why);
    if (compare_args.fold)
        return YES;
    return fail("%s and %s: %s; or compare them with --fold: %s has the size "
                "of the other when it is folded %u time%s",
                a, b, why, first ? a : b, times, times == 1 ? "" : "s");
}

/* ---------------------------------------------------------------- telling */

static void compare_json(struct json *j, const char *const *names,
                         const struct pair *p)
{
    const bly_likeness *const l = &p->likeness;
    const struct {
        const char *name;
        double value;
    } rows[] = {
        { "a", l->a },
        { "b", l->b },
        { "union", l->both },
        { "intersection", l->common },
        { "intersection_sd", l->common_sd },
        { "jaccard", l->jaccard },
        { "a_sd", l->a_sd },
        { "b_sd", l->b_sd },
        { "union_sd", l->both_sd },
        { "containment", l->containment },
        { "shared_cells", l->shared_cells },
        { "chance_cells", l->chance_cells },
        { "inner", l->inner },
    };
    json_open(j, '{');
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        json_key(j, rows[i].name);
        json_real(j, rows[i].value);
    }
    json_key(j, "file_a");
    json_text(j, names[p->a]);
    json_key(j, "file_b");
    json_text(j, names[p->b]);
    json_close(j, '}');
}

#define COMPARE_ROW "%-14s "

static void compare_keys(const char *name, double keys, double sd)
{
    if (isfinite(keys))
        printf(COMPARE_ROW "%s +- %s keys\n", name, show_estimate(keys),
               show_rounded(sd));
    else if (isinf(keys))
        printf(COMPARE_ROW "more keys than it can tell\n", name);
    else
        printf(COMPARE_ROW "unknown\n", name);
}

static void compare_share(const char *name, double share, const char *of_what)
{
    if (isfinite(share))
        printf(COMPARE_ROW "%.3f (%s)\n", name, share, of_what);
    else
        printf(COMPARE_ROW "unknown\n", name);
}

static void compare_text(const char *a, const char *b, const bly_likeness *l)
{
    printf(COMPARE_ROW "%s\n", "a", show_name(a));
    printf(COMPARE_ROW "%s\n", "b", show_name(b));
    compare_keys("in a", l->a, l->a_sd);
    compare_keys("in b", l->b, l->b_sd);
    compare_keys("union", l->both, l->both_sd);
    compare_keys("intersection", l->common, l->common_sd);
    compare_share("jaccard", l->jaccard, "intersection / union");
    compare_share("containment", l->containment, "intersection / the smaller");
    printf(COMPARE_ROW "%s of those of the emptier filter; by chance: %s\n",
           "shared cells", show_rate(l->shared_cells),
           show_rate(l->chance_cells));
    if (isfinite(l->inner))
        printf(COMPARE_ROW "%.0f (sum of the products of counts)\n",
               "inner product", l->inner);
}

static void compare_number(int wide, int digits, double value)
{
    if (isfinite(value))
        printf("  %*.*f", wide, digits, value);
    else
        printf("  %*s", wide, "?");
}

/* A line for each pair. */
static void compare_table(const char *const *names, const struct pair *pairs,
                          size_t npairs)
{
    int wide = 1;
    for (size_t i = 0; i < npairs; i++)
        for (int side = 0; side < 2; side++) {
            const char *const name =
                show_name(names[side ? pairs[i].b : pairs[i].a]);
            const int n = (int)strlen(name);
            wide = n > wide ? n : wide;
        }
    printf("%-*s  %-*s  %12s  %12s  %10s  %8s  %11s\n", wide, "a", wide, "b",
           "union", "intersection", "+-", "jaccard", "containment");
    for (size_t i = 0; i < npairs; i++) {
        const bly_likeness *const l = &pairs[i].likeness;
        printf("%-*s  ", wide, show_name(names[pairs[i].a]));
        printf("%-*s", wide, show_name(names[pairs[i].b]));
        compare_number(12, 0, l->both);
        compare_number(12, 0, l->common);
        compare_number(10, 0, l->common_sd);
        compare_number(8, 3, l->jaccard);
        compare_number(11, 3, l->containment);
        putchar('\n');
    }
}

static void compare_tell(const char *const *names, const struct pair *pairs,
                         size_t npairs)
{
    struct json j = { .to = stdout };
    if (!compare_args.json) {
        if (npairs == 1)
            compare_text(names[pairs->a], names[pairs->b], &pairs->likeness);
        else
            compare_table(names, pairs, npairs);
        return;
    }
    if (npairs > 1)
        json_open(&j, '[');
    for (size_t i = 0; i < npairs; i++)
        compare_json(&j, names, &pairs[i]);
    if (npairs > 1)
        json_close(&j, ']');
    json_end(&j);
}

/* Map all that are named, and see that they are whole. */
static int compare_open(const struct list *names, bly_filter **f)
{
    const bly_access blind = { .blind = true };
    for (size_t i = 0; i < names->n; i++) {
        f[i] = filter_map(names->at[i], &blind);
        if (!f[i])
            return TROUBLE;
        if (bly_verify(f[i]))
            return fail("%s: %s", names->at[i], bly_error());
    }
    if (names->n == 2)
        cut_watch(names->at[0], names->at[1]);
    else
        cut_watch("one of the filters", NULL);
    return YES;
}

static int compare_run(struct list *operands)
{
    const size_t n = operands->n;
    if (n < 2)
        return fail("at least two filters are needed, not %zu", n);
    const size_t npairs = n * (n - 1) / 2;
    bly_filter **const f = calloc(n, sizeof *f);
    struct pair *const pairs = calloc(npairs, sizeof *pairs);
    int status = f && pairs ? compare_open(operands, f) : fail("out of memory");
    struct pair *p = pairs;
    for (size_t a = 0; a < n && status == YES; a++)
        for (size_t b = a + 1; b < n && status == YES; b++, p++) {
            p->a = a;
            p->b = b;
            status = compare_pair(f, operands->at, p);
        }
    if (status == YES)
        compare_tell(operands->at, pairs, npairs);
    for (size_t i = 0; f && i < n; i++)
        bly_free(f[i]);
    free(f);
    free(pairs);
    return status;
}

static const struct opt compare_options[] = {
    { "fold", 0, OPT_FLAG, &compare_args.fold, NULL,
      "fold the larger filter in half until both have the same size" },
    { "json", 0, OPT_FLAG, &compare_args.json, NULL,
      "print the result as JSON: one object for two filters, an array of "
      "objects for more" },
    { 0 },
};

static const struct example compare_examples[] = {
    { "bloomery compare mon.bly tue.bly",
      "how many of Monday's keys came back" },
    { "bloomery compare mon.bly tue.bly wed.bly", "every pair" },
    { 0 },
};

const struct command cmd_compare = {
    .name = "compare",
    .usage = "[OPTION]... FILTER FILTER...",
    .summary = "estimate how much filters have in common",
    .about =
        "Estimates, from the contents of two filters that agree in kind, shape "
        "and hash, how many keys each has, how many they have together and how "
        "many in common, with standard deviations. An intersection of less "
        "than about three deviations is no evidence that they share a key. "
        "With more than two filters, every pair is compared.\n\n"
        "Filters of the same kind and hash that differ in size can be compared "
        "with --fold, if the larger one can be folded in half until it is as "
        "small as the other.",
    .options = compare_options,
    .examples = compare_examples,
    .run = compare_run,
};
