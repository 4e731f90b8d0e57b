/*
 * cmd_compare.c - how much do two filters have in common?
 */
#include <math.h>

#include "cli/cli.h"

static struct {
    bool json;
} compare_args;

static void compare_json(const bly_likeness *l)
{
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
    struct json j = { .to = stdout };
    json_open(&j, '{');
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        json_key(&j, rows[i].name);
        json_real(&j, rows[i].value);
    }
    json_close(&j, '}');
    json_end(&j);
}

#define COMPARE_ROW "%-14s "

static void compare_keys(const char *name, double keys, double sd)
{
    if (isfinite(keys))
        printf(COMPARE_ROW "%.0f +- %.0f keys\n", name, keys, sd);
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
    compare_share("containment", l->containment,
                  "intersection / the smaller one");
    printf(COMPARE_ROW "%s of the emptier one's; by chance: %s\n",
           "shared cells", show_rate(l->shared_cells),
           show_rate(l->chance_cells));
    if (isfinite(l->inner))
        printf(COMPARE_ROW "%.0f (sum of the products of counts)\n",
               "inner product", l->inner);
}

static int compare_run(struct list *operands)
{
    if (operands->n != 2)
        return fail("two filters are needed, not %zu", operands->n);
    const char *const a_path = operands->at[0], *const b_path = operands->at[1];
    const bly_access blind = { .blind = true };
    bly_filter *const a = filter_map(a_path, &blind);
    bly_filter *const b = a ? filter_map(b_path, &blind) : NULL;
    int status = TROUBLE;
    bly_likeness l;
    if (a && b) {
        cut_watch(a_path, b_path);
        if (bly_verify(a))
            fail("%s: %s", a_path, bly_error());
        else if (bly_verify(b))
            fail("%s: %s", b_path, bly_error());
        else if (bly_compare(a, b, &l))
            fail("%s and %s: %s", a_path, b_path, bly_error());
        else
            status = YES;
    }
    bly_free(a);
    bly_free(b);
    if (status != YES)
        return status;
    if (compare_args.json)
        compare_json(&l);
    else
        compare_text(a_path, b_path, &l);
    return YES;
}

static const struct opt compare_options[] = {
    { "json", 0, OPT_FLAG, &compare_args.json, NULL,
      "print the result as JSON" },
    { 0 },
};

static const struct example compare_examples[] = {
    { "bloomery compare mon.bly tue.bly", "how many keys of monday came back" },
    { 0 },
};

const struct command cmd_compare = {
    .name = "compare",
    .usage = "[--json] FILTER FILTER",
    .summary = "estimate how much two filters have in common",
    .about =
        "Estimates, from the contents of two filters that agree in kind, shape "
        "and hash, how many keys each has, how many both have together and how "
        "many in common, with standard deviations. An intersection of less "
        "than about three deviations is no evidence that they share a key.",
    .options = compare_options,
    .examples = compare_examples,
    .run = compare_run,
};
