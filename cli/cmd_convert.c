/*
 * cmd_convert.c - a filter as one of another kind, or of another size
 *
 * Some kinds contain another, or can be sized anew, and the library does that
 * without the keys. All others need them again: then a filter is built, with
 * the hash of the old one, and with its capacity and rate where nothing else
 * was asked for. Keys that the old filter certainly does not have, because they
 * were removed, say, do not come into the new one.
 */
#include <math.h>

#include "cli/convert_foreign.h"
#include "cli/rows.h"
#include "io/filters.h"
#include "io/paths.h"
#include "io/files.h"

static struct {
    struct sizing sizing;
    struct keys keys;
    struct foreign_args from;
    const char *output, *to;
    uint64_t threads;
    bool json;
} convert_args;

struct conversion {
    const char *path;
    const bly_filter *from;
    bly_stats old;
    bool sifts; /* from can say which keys it does not have */
    struct job job;
};

/* ------------------------------------------------------- from its keys */

static bly_status convert_sift(const void *ctx, struct batch *b)
{
    const struct conversion *const c = ctx;
    if (c->sifts)
        bly_has_hashes(c->from, b->hashes, b->n, b->picked);
    else
        batch_invert(b);
    return BLY_OK;
}

/* The rate that it was made for. What grows may state a bound on all that it
 * will become. */
static double convert_rate(const bly_stats *old)
{
    const double bound = fact_value(old, "fpr_bound");
    const double rate = isnan(bound) ? old->fpr_at_capacity : bound;
    return rate > 0 && rate < 1 ? rate : 0;
}

/* What spec leaves open is as in the old filter, unless that holds more than it
 * was made for, or the new one is sized by options of its own: then the keys
 * tell. */
static void convert_complete(const bly_stats *old, bly_spec *spec)
{
    spec->seed = old->seed;
    if (!spec->kind)
        spec->kind = old->kind;
    if (is_sized(spec) && !spec->items)
        return;
    if (!spec->items && !has_grown(old) && !is_past_capacity(old))
        spec->items = old->capacity;
    if (!spec->bits && !(spec->fpr > 0))
        spec->fpr = convert_rate(old);
}

static bly_filter *convert_keys(struct conversion *c, bly_spec *spec)
{
    bly_kind_info kind;
    bly_kind_of(c->from, &kind);
    c->sifts = (kind.can & BLY_CAN(HAS)) && !(kind.traits & BLY_LIKELY_NO);
    convert_complete(&c->old, spec);
    spec->keying = bly_keying_of(c->from);
    bly_filter *const f =
        sifted_filter(spec, &convert_args.keys, c->path, convert_args.threads,
                      convert_sift, c, &c->job);
    if (!f || bly_copy_meta(f, c->from) == BLY_OK)
        return f;
    fail_library();
    bly_free(f);
    return NULL;
}

/* ---------------------------------------------------- without its keys */

/* Could a filter be as spec says, if it were built from keys? */
static bool convert_plannable(const bly_stats *old, bly_spec spec)
{
    bly_prediction p;
    spec.secret = NULL;
    convert_complete(old, &spec);
    if (!is_sized(&spec))
        spec.items = 1;
    return bly_plan(&spec, &p) == BLY_OK;
}

static bly_filter *convert_alone(const struct conversion *c, const char *path,
                                 const bly_spec *spec)
{
    bly_filter *f;
    char why[512];
    const bly_status st = bly_convert(c->from, spec, &f);
    if (!st)
        return f;
    snprintf(why, sizeof why, "%s", bly_error());
    const bool keys_help = (st == BLY_ENOTSUP || st == BLY_EINVAL) &&
                           convert_plannable(&c->old, *spec);
    fail("%s: %s%s", path, why,
         keys_help ? "; or give the keys again with -f INPUT" : "");
    return NULL;
}

/* Where another system is on one side, or on both. */
static int convert_other(const char *path, const struct foreign_file *file)
{
    bool ok;
    const struct foreign_conversion c = {
        .path = path,
        .output = convert_args.output,
        .to = convert_args.to,
        .sizing = &convert_args.sizing,
        .keys = &convert_args.keys,
        .threads = convert_args.threads,
        .json = convert_args.json,
    };
    const bly_access how = { .secret =
                                 secret_read(convert_args.keys.key_file, &ok) };
    return ok ? convert_foreign(&c, file, &how) : TROUBLE;
}

static int convert_run(struct list *operands)
{
    const struct list *const files = &convert_args.keys.files;
    bly_spec spec = { 0 };
    if (!convert_args.output)
        return fail("-o FILE is missing: where to write the filter");
    if (operands->n != 1)
        return fail("only one filter can be converted at a time, not %zu",
                    operands->n);
    const char *const path = operands->at[0];
    if (!output_works(convert_args.output, convert_args.json) ||
        !output_spares(convert_args.output, &path, 1) ||
        !output_spares(convert_args.output, &convert_args.keys.key_file, 1) ||
        !output_spares(convert_args.output, files->at, files->n))
        return TROUBLE;
    for (size_t i = 0; i < files->n; i++)
        if (is_stdin(files->at[i]) && is_stdin(path))
            return fail("standard input cannot be both the filter and the "
                        "keys");
    struct foreign_file file;
    if (foreign_open(path, &convert_args.from, &file) != YES)
        return TROUBLE;
    if (file.f || convert_args.to) {
        const int status = convert_other(path, &file);
        foreign_close(&file);
        return status;
    }
    if (!sizing_spec(&convert_args.sizing, &spec))
        return TROUBLE;
    if (!spec.kind && !spec.items && !spec.bits && !(spec.fpr > 0) &&
        !spec.noptions && !files->n)
        return fail("nothing says what to convert to: give --kind KIND, "
                    "--items N for another size, or --to FORMAT");
    bool ok;
    spec.secret = secret_read(convert_args.keys.key_file, &ok);
    if (!ok)
        return TROUBLE;
    /* The hash goes over as it is: only who reads keys needs the secret. */
    const bly_access how = { .secret = spec.secret,
                             .blind = !spec.secret && !files->n,
                             .checking = BLY_CHECK_ALL };
    bly_filter *const from = filter_map(path, &how);
    if (!from)
        return TROUBLE;

    struct conversion c = { .path = path, .from = from };
    bly_stat(from, &c.old);
    bly_filter *const f =
        files->n ? convert_keys(&c, &spec) : convert_alone(&c, path, &spec);
    FILE *const to = report_to(convert_args.output);
    int status = !f ? TROUBLE : filter_tick(f) ? fail_library() : YES;
    if (status == YES)
        status = filter_save(f, convert_args.output);
    if (status == YES && !quiet)
        convert_report(to, convert_args.json, convert_args.output, c.old.kind,
                       files->n ? &c.job : NULL, f);
    bly_free(f);
    bly_free(from);
    return status;
}

static const struct opt convert_options[] = {
    { "output", 'o', OPT_TEXT, &convert_args.output, "FILE",
      "write the new filter to FILE; - is standard output" },
    SIZING_OPTIONS(convert_args.sizing),
    { "to", 0, OPT_TEXT, &convert_args.to, "FORMAT",
      "convert into this format of another system, with -O for its options; "
      "see bloomery formats" },
    FORMAT_OPTION(convert_args.from,
                  "FILTER has this format of another system; most formats are "
                  "recognised by themselves"),
    { "from-option", 0, OPT_LIST, &convert_args.from.options, "NAME=VALUE",
      "an option of that format; may be repeated" },
    KEYS_OPTIONS(convert_args.keys),
    THREADS_OPTION(convert_args.threads),
    WAIT_OPTION,
    QUIET_OPTION(QUIET_HELP),
    JSON_OPTION(convert_args),
    { 0 },
};

static const struct example convert_examples[] = {
    { "bloomery convert --kind classic -o small.bly counted.bly",
      "the keys of a counting filter, without their counts" },
    { "bloomery convert --items 20M -o larger.bly quotient.bly",
      "room for more keys" },
    { "bloomery convert --kind blocked -o one.bly -f all.txt.gz grown.bly",
      "one filter instead of many layers; this needs the keys" },
    { "bloomery convert --to guava -o words.guava -f words.txt words.bly",
      "for a service in Java" },
    { 0 },
};

const struct command cmd_convert = {
    .name = "convert",
    .usage = "-o FILE [OPTION]... [-f INPUT]... FILTER",
    .summary = "make a filter of another kind or size",
    .about = "Writes a filter of the kind that --kind names, or of the same "
             "kind and another size, with the keys and the hash of FILTER. "
             "Kinds that contain another kind (bloomery kinds says which can "
             "convert) and those that can be resized need nothing else.\n\n"
             "All others need the keys again: with -f INPUT the new filter is "
             "built from those lines. Capacity and rate are those of FILTER, "
             "unless options say otherwise or it holds more than it was made "
             "for; then the capacity is the number of different keys read. "
             "Lines that are certainly not in FILTER are left out: what was "
             "removed does not come back.\n\n"
             "With --to the new filter is in a format of another system "
             "(bloomery formats); FILTER may be in one in any case. Systems "
             "place keys by rules of their own, so this needs the keys too, "
             "unless two formats differ only in their encoding.\n\n"
             "FILE must not be one of the inputs.",
    .options = convert_options,
    .examples = convert_examples,
    .reports = REPORTS({ "", converted_fields, ONE },
                       { "with --to", foreign_made_fields, ONE }),
    .run = convert_run,
};
