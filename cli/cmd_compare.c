/*
 * cmd_compare.c - how much do filters have in common, pair by pair?
 *
 * All are mapped and verified once, then every pair is compared. With --fold a
 * pair of different sizes is brought to one size: the larger is folded in half
 * until it is as small as the other.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "io/files.h"
#include "io/filters.h"
#include "report/say.h"
#include "report/show.h"

static struct {
    bool fold, json;
} compare_args;

/* A pair of operands, by their numbers, and what came out. */
struct pair {
    size_t a, b;
    const char *file_a, *file_b;
    bly_likeness l;
};

static const struct field pair_fields[] = {
    NAMED(struct pair, "a", l.a, ESTIMATE | MAYBE, "keys in the first filter"),
    NAMED(struct pair, "b", l.b, ESTIMATE | MAYBE, "keys in the second"),
    NAMED(struct pair, "union", l.in_either, ESTIMATE | MAYBE,
          "keys in either"),
    NAMED(struct pair, "intersection", l.in_both, ESTIMATE | MAYBE,
          "keys in both"),
    NAMED(struct pair, "intersection_sd", l.in_both_sd, ROUNDED | MAYBE,
          "standard deviation of that"),
    NAMED(struct pair, "jaccard", l.jaccard, MAYBE, "intersection / union"),
    NAMED(struct pair, "a_sd", l.a_sd, ROUNDED | MAYBE,
          "standard deviation of a"),
    NAMED(struct pair, "b_sd", l.b_sd, ROUNDED | MAYBE,
          "standard deviation of b"),
    NAMED(struct pair, "union_sd", l.in_either_sd, ROUNDED | MAYBE,
          "standard deviation of the union"),
    NAMED(struct pair, "containment", l.containment, MAYBE,
          "intersection / the smaller of a and b"),
    NAMED(struct pair, "shared_cells", l.shared_cells, RATE | MAYBE,
          "of the emptier filter's cells, those set in both"),
    NAMED(struct pair, "chance_cells", l.chance_cells, RATE | MAYBE,
          "the same for sets that share nothing"),
    NAMED(struct pair, "inner", l.inner, MAYBE,
          "sum over keys of the products of their counts, if the kind counts"),
    FIELD(struct pair, file_a, NONE, "the first filter"),
    FIELD(struct pair, file_b, NONE, "the second filter"),
    { 0 },
};

/* -------------------------------------------------------------- comparing */

static uint64_t compare_bits(const bly_filter *f)
{
    bly_stats s;
    bly_peek(f, &s);
    return s.bits;
}

/* f folded until it has at most so many bits, and how often that took. NULL if
 * that is impossible or not needed. */
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

/* Compare two of different sizes: whether that is possible, which one was
 * folded for it, and how often. */
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

static int compare_pair(bly_filter *const *f, struct pair *p)
{
    const char *const a = p->file_a, *const b = p->file_b;
    const bly_status st = bly_compare(f[p->a], f[p->b], &p->l);
    char why[512];
    bool first;
    unsigned times;
    if (!st)
        return YES;
    snprintf(why, sizeof why, "%s", bly_error());
    if (st != BLY_EUNFIT ||
        !compare_by_folding(f[p->a], f[p->b], &p->l, &first, &times))
        return fail("%s and %s: %s", a, b, why);
    if (compare_args.fold)
        return YES;
    return fail("%s and %s: %s; or compare them with --fold: %s has the size "
                "of the other when it is folded %u time%s",
                a, b, why, first ? a : b, times, times == 1 ? "" : "s");
}

/* ---------------------------------------------------------------- telling */

static const char compare_text[] =
    "a~{file_a}\n"
    "b~{file_b}\n"
    "in a~[{a} +- {a_sd} keys|{>a}more keys than it can tell|unknown]\n"
    "in b~[{b} +- {b_sd} keys|{>b}more keys than it can tell|unknown]\n"
    "union~[{union} +- {union_sd} keys"
    "|{>union}more keys than it can tell|unknown]\n"
    "intersection~[{intersection} +- {intersection_sd} keys"
    "|{>intersection}more keys than it can tell|unknown]\n"
    "jaccard~[{jaccard:.3} (intersection / union)|unknown]\n"
    "containment~[{containment:.3} (intersection / the smaller)|unknown]\n"
    "shared cells~{shared_cells} of those of the emptier filter; by chance: "
    "{chance_cells}\n"
    "[inner product~{inner:.0} (sum of the products of counts)\n]";

/* A line for each pair. */
static void compare_table(const struct pair *pairs, size_t npairs)
{
    size_t wide = 1;
    for (size_t i = 0; i < npairs; i++) {
        const size_t a = strlen(show_name(pairs[i].file_a));
        const size_t b = strlen(show_name(pairs[i].file_b));
        wide = a > wide ? a : wide;
        wide = b > wide ? b : wide;
    }
    printf("%-*s  %-*s  %12s  %12s  %10s  %8s  %11s\n", (int)wide, "a",
           (int)wide, "b", "union", "intersection", "+-", "jaccard",
           "containment");
    for (size_t i = 0; i < npairs; i++) {
        printf("%-*s  ", (int)wide, show_name(pairs[i].file_a));
        printf("%-*s", (int)wide, show_name(pairs[i].file_b));
        report_text(stdout, pair_fields, &pairs[i],
                    "  [{union:12.0}|           ?]"
                    "  [{intersection:12.0}|           ?]"
                    "  [{intersection_sd:10.0}|         ?]"
                    "  [{jaccard:8.3}|       ?]"
                    "  [{containment:11.3}|          ?]\n");
    }
}

static void compare_tell(const struct pair *pairs, size_t npairs)
{
    struct json j = { .to = stdout };
    if (npairs == 1) {
        report(stdout, compare_args.json, pair_fields, pairs, compare_text);
    } else if (!compare_args.json) {
        compare_table(pairs, npairs);
    } else {
        json_open(&j, '[');
        for (size_t i = 0; i < npairs; i++)
            report_object(&j, pair_fields, &pairs[i]);
        json_close(&j, ']');
        json_end(&j);
    }
}

/* Map all that are named, and see that they are whole. */
static int compare_open(const struct list *names, bly_filter **f)
{
    const bly_access how = { .blind = true, .checking = BLY_CHECK_ALL };
    for (size_t i = 0; i < names->n; i++) {
        f[i] = filter_map(names->at[i], &how);
        if (!f[i])
            return TROUBLE;
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
            p->file_a = operands->at[a];
            p->file_b = operands->at[b];
            status = compare_pair(f, p);
        }
    if (status == YES)
        compare_tell(pairs, npairs);
    for (size_t i = 0; f && i < n; i++)
        bly_free(f[i]);
    free(f);
    free(pairs);
    return status;
}

static const struct opt compare_options[] = {
    FLAG("fold", 0, compare_args.fold,
         "fold the larger filter in half until both have the same size"),
    FLAG("json", 0, compare_args.json,
         "print the result as JSON: one object for two filters, an array of "
         "objects for more"),
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
        "than about three deviations does not show that they share a key. "
        "With more than two filters, every pair is compared.\n\n"
        "Filters of the same kind and hash that differ in size can be compared "
        "with --fold, if the larger one can be folded in half until it is as "
        "small as the other.",
    .options = compare_options,
    .examples = compare_examples,
    .reports = REPORTS({ "for two filters", pair_fields, ONE },
                       { "for more, every pair", pair_fields, ARRAY }),
    .run = compare_run,
};
