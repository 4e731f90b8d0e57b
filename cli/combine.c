/*
 * combine.c - several filters become one
 *
 * The first is read into memory, the others are read one after another and
 * combined with it on the way: one pass over each file, one of them open at a
 * time, and one filter in memory. What is wrong with a file may be known only
 * at its end; nothing is written then.
 *
 * Where the output is one of the inputs, it is changed under its lock, so that
 * keys which someone adds meanwhile are not lost; union and intersection do not
 * mind which comes first, and kinds that do (BLY_DIRECTED) want it to be the
 * first.
 */

#include "cli/combine.h"
#include "io/files.h"
#include "io/filters.h"
#include "io/paths.h"
#include "report/say.h"

struct combination {
    const struct list *inputs;
    size_t base; /* the input that the others are combined into */
    bly_combination how;
    bool said; /* why it failed */
    bly_stats stats;
};

/* It failed with an input: that is to blame, or that the two go together. */
static void combine_failed(const char *base, const char *input, bly_status st)
{
    const bool alone = st == BLY_EFORMAT || st == BLY_EIO || st == BLY_ENOMEM;
    fail("%s%s%s%s", alone ? "" : base, alone ? "" : " and ",
         is_dash(input) ? "standard input: " : "", bly_error());
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

const struct field combined_fields[] = {
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

int combine(const char *output, const struct list *inputs, bool json,
            bly_combination how)
{
    if (!output)
        return fail("-o FILE is missing: where to write the result");
    if (inputs->n < 2)
        return fail("at least two filters are needed");
    if (!output_works(output, json) ||
        (is_dash(output) && !output_spares(output, inputs->at, inputs->n)))
        return TROUBLE;
    FILE *const to = report_to(output);
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
