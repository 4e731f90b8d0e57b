/*
 * cmd_combine.c - several filters become one: merge and intersect
 *
 * The first is read into memory, the others are read one after another and
 * combined with it on the way: one pass over each file, one of them open at a
 * time, and one filter in memory. An error in a file may be found only at its
 * end, so nothing is written before.
 *
 * Where the output is one of the inputs, it is changed under its lock, so that
 * keys which someone adds meanwhile are not lost; union and intersection do not
 * mind which comes first, and kinds that do (BLY_DIRECTED) want it to be the
 * first. Sketches go the same way, and are merged only.
 */
#include <sys/stat.h>

#include "cli/rows.h"
#include "io/files.h"
#include "io/filters.h"
#include "io/paths.h"
#include "io/sketch_files.h"

static struct {
    const char *output;
    bool json;
} combine_args;

struct combination {
    const struct list *inputs;
    size_t base; /* the input that the others are combined into */
    bly_combination how;
    bool said; /* why it failed */
    bly_stats stats;
    struct sketch_told told; /* of sketches */
};

/* It failed with an input: either that input is bad, or the two do not fit
 * together. */
static void combine_failed(const char *base, const char *input, bly_status st)
{
    const bool alone = st == BLY_EFORMAT || st == BLY_EIO || st == BLY_ENOMEM;
    const char *const hint = strstr(bly_error(), "one capacity")
                                 ? "; give each bloomery build the same -n"
                                 : "";
    fail("%s%s%s%s%s", alone ? "" : base, alone ? "" : " and ",
         is_dash(input) ? "standard input: " : "", bly_error(), hint);
}

static bly_status combine_into(bly_filter *f, void *ctx)
{
    struct combination *const c = ctx;
    const char *const name = c->inputs->at[c->base];
    bly_kind_info kind;
    bly_kind_of(f, &kind);
    c->said = true;
    if (!filter_can(f, name,
                    c->how == BLY_UNION ? BLY_CAN(MERGE) : BLY_CAN(INTERSECT)))
        return BLY_ENOTSUP;
    if (c->base && (kind.traits & BLY_DIRECTED)) {
        fail("%s: the other filters of kind %s are merged into it as its "
             "neighbours; name it first",
             name, kind.name);
        return BLY_EINVAL;
    }
    for (size_t i = 0; i < c->inputs->n; i++) {
        if (i == c->base)
            continue;
        const bly_status st = filter_combine(f, c->how, c->inputs->at[i]);
        if (st) {
            combine_failed(name, c->inputs->at[i], st);
            return st;
        }
    }
    bly_stat(f, &c->stats);
    c->said = false;
    return BLY_OK;
}

/* The input that is the file output; n if none is. */
static size_t input_that_is(const char *output, const struct list *inputs)
{
    size_t i = 0;
    while (i < inputs->n && !is_same_file(output, inputs->at[i]))
        i++;
    return i;
}

struct combined {
    const char *file;
    size_t n;
    bly_stats s;
};

static const struct field combined_fields[] = {
    FIELD(struct combined, file, NONE, "where the result was written"),
    NAMED(struct combined, "kind", s.kind, NONE, "its kind"),
    NAMED(struct combined, "items_estimate", s.items_estimate, ESTIMATE | MAYBE,
          "different keys it holds, by its contents"),
    NAMED(struct combined, "capacity", s.capacity, ITEMS,
          "keys it was planned for"),
    NAMED(struct combined, "fpr_now", s.fpr_now, RATE | MAYBE,
          "false positives with the keys it holds"),
    NAMED(struct combined, "bytes", s.bytes, BYTES, "memory it takes"),
    FIELD(struct combined, n, NONE, NULL),
    { 0 },
};

/* ---------------------------------------------------------------- sketches */

static bly_status sketches_into(bly_stored *s, void *ctx)
{
    struct combination *const c = ctx;
    for (size_t i = 0; i < c->inputs->n; i++) {
        bly_stored other;
        if (i == c->base)
            continue;
        c->said = true;
        if (!sketch_open(c->inputs->at[i], BLY_STORED_NONE, NULL, &other))
            return BLY_EFORMAT;
        const bool ok =
            sketch_merge(s, c->inputs->at[c->base], &other, c->inputs->at[i]);
        bly_stored_free(&other);
        if (!ok)
            return BLY_EUNFIT;
        c->said = false;
    }
    sketch_tell(combine_args.output, s, &c->told);
    return BLY_OK;
}

static int combine_sketches(struct combination *c, FILE *to)
{
    const char *const output = combine_args.output;
    if (c->how != BLY_UNION)
        return fail(
            "%s: sketches have no intersection that is a sketch; bloomery "
            "distinct --and tells how many keys two have in common",
            c->inputs->at[0]);
    if (c->base < c->inputs->n) {
        const bly_access blind = { .blind = true, .wait = wait_for_lock };
        if (bly_stored_update(output, &blind, NULL, sketches_into, c))
            return c->said ? TROUBLE : fail_library();
    } else {
        bly_stored s;
        c->base = 0;
        if (!sketch_open(c->inputs->at[0], BLY_STORED_NONE, NULL, &s))
            return TROUBLE;
        int status = sketches_into(&s, c) ? TROUBLE : YES;
        if (status == YES)
            status = sketch_save(&s, output);
        bly_stored_free(&s);
        if (status != YES)
            return status;
    }
    struct stat st;
    if (stat(output, &st) == 0 && S_ISREG(st.st_mode))
        c->told.file_bytes = (uint64_t)st.st_size;
    c->told.ninputs = c->inputs->n;
    if (!quiet)
        report(to, combine_args.json, sketch_fields, &c->told,
               "{file}: {sketch} of {ninputs} sketches[{!is_keyless}, {keys}]"
               "[, {distinct} different]\n");
    return YES;
}

static bool any_sketch(const struct list *inputs)
{
    for (size_t i = 0; i < inputs->n; i++)
        if (sketch_type(inputs->at[i]))
            return true;
    return false;
}

static int combine(const struct list *inputs, bly_combination how)
{
    const char *const output = combine_args.output;
    const bool json = combine_args.json;
    if (!output)
        return fail("-o FILE is missing: where to write the result");
    if (inputs->n < 2)
        return fail("at least two filters are needed");
    if (!output_works(output, json) ||
        (is_dash(output) && !output_spares(output, inputs->at, inputs->n)))
        return TROUBLE;
    FILE *const to = report_to(output);
    if (any_sketch(inputs)) {
        struct combination c = { .inputs = inputs,
                                 .base = input_that_is(output, inputs),
                                 .how = how };
        return combine_sketches(&c, to);
    }
    struct combination c = { .inputs = inputs, .how = how };
    c.base = input_that_is(output, inputs);
    const bly_access blind = { .blind = true, .wait = wait_for_lock };
    if (c.base < inputs->n) {
        if (bly_update(output, &blind, combine_into, &c))
            return c.said ? TROUBLE : fail_library();
    } else {
        c.base = 0;
        bly_filter *const f = filter_open(inputs->at[0], &blind);
        if (!f)
            return TROUBLE;
        int status = combine_into(f, &c) ? TROUBLE : YES;
        if (status == YES)
            status = filter_save(f, output);
        bly_free(f);
        if (status != YES)
            return status;
    }
    if (!quiet) {
        const struct combined r = { output, inputs->n, c.stats };
        report(to, json, combined_fields, &r,
               "{file}: {kind} of {n} filters[, {items_estimate} keys]"
               "[, {fpr_now} false positives]\n");
        warn_past_capacity(output, &c.stats);
    }
    return YES;
}

static const struct opt combine_options[] = {
    { "output", 'o', OPT_TEXT, &combine_args.output, "FILE",
      "write the result to FILE, which may be one of the inputs; - is standard "
      "output" },
    WAIT_OPTION,
    QUIET_OPTION(QUIET_HELP),
    JSON_OPTION(combine_args),
    { 0 },
};

static int merge_run(struct list *operands)
{
    return combine(operands, BLY_UNION);
}

static const struct example merge_examples[] = {
    { "bloomery merge -o week.bly mon.bly tue.bly wed.bly",
      "the keys of three days" },
    { "bloomery merge -o all.bly all.bly new.bly",
      "merge into the first; keys added to it meanwhile are not lost" },
    { 0 },
};

const struct command cmd_merge = {
    .name = "merge",
    .usage = "-o FILE [OPTION]... FILTER FILTER...",
    .summary = "make one filter from the keys of several",
    .about = "Writes the union of two or more filters that agree in kind, "
             "shape and hash. For kinds made of bits, this is exactly the "
             "filter that all keys together would give.\n\n"
             "The capacity stays that of one filter: build filters that you "
             "want to merge with --items for all keys together.\n\n"
             "Each file is read once, so it may be a pipe, and - is standard "
             "input. For kinds that are merged cell by cell, only one filter "
             "is in memory, however many there are. Nothing is written unless "
             "all of them are sound.\n\n"
             "FILE may be one of the filters: it is then changed under its "
             "lock, and keeps what others add to it meanwhile.\n\n"
             "Sketches that bloomery distinct and top saved are merged "
             "likewise, if they agree in type, size and hash.",
    .options = combine_options,
    .examples = merge_examples,
    .reports = REPORTS({ "of filters", combined_fields, ONE },
                       { "of sketches", sketch_fields, ONE }),
    .run = merge_run,
};

static int intersect_run(struct list *operands)
{
    return combine(operands, BLY_INTERSECTION);
}

static const struct example intersect_examples[] = {
    { "bloomery intersect -o both.bly mon.bly tue.bly",
      "the keys of both days, and some more" },
    { 0 },
};

const struct command cmd_intersect = {
    .name = "intersect",
    .usage = "-o FILE [OPTION]... FILTER FILTER...",
    .summary = "make a filter of the keys that several filters have in common",
    .about =
        "Writes the intersection of two or more filters that agree in kind, "
        "shape and hash. It says maybe to every key that is in all of them, "
        "and to "
        "some more: its rate lies between that of the filters and that of a "
        "filter built from the common keys alone.\n\n"
        "Each file is read once, as by merge. FILE may be one of the filters: "
        "it is then changed under its lock.",
    .options = combine_options,
    .examples = intersect_examples,
    .reports = REPORTS({ "", combined_fields, ONE }),
    .run = intersect_run,
};
