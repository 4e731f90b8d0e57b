/*
 * cmd_delta.c - what makes one version of a filter of another
 */
#include <math.h>

#include "cli/rows.h"
#include "io/files.h"
#include "io/filters.h"
#include "io/paths.h"
#include "report/out.h"

static struct {
    const char *output;
    bool json;
} delta_args;

static double delta_ratio(double part, double whole)
{
    return whole > 0 ? part / whole : NAN;
}

struct delta {
    const char *file;
    bly_delta d;
    double ratio, over_entropy;
    uint64_t least; /* bytes that the entropy needs */
    char from[20], to[20];
};

static const struct field delta_fields[] = {
    FIELD(struct delta, file, NONE, "where the delta was written"),
    NAMED(struct delta, "form", d.form, NONE, "\"gaps\" or \"whole\""),
    NAMED(struct delta, "bytes", d.bytes, BYTES, "size of the delta"),
    NAMED(struct delta, "whole_bytes", d.whole_bytes, BYTES,
          "size of the new version, not coded"),
    FIELD(struct delta, ratio, RATE | MAYBE, "bytes / whole_bytes"),
    NAMED(struct delta, "bits", d.bits, BITS,
          "of both versions; 0 if their shapes differ"),
    NAMED(struct delta, "flipped", d.flips, BITS, "bits that differ"),
    NAMED(struct delta, "entropy_bits", d.entropy, BITS | MAYBE,
          "bits that any code needs for these; null if shapes differ"),
    FIELD(struct delta, over_entropy, MAYBE, "size of the delta / entropy"),
    FIELD(struct delta, from, NONE, "version that it starts from, in hex"),
    FIELD(struct delta, to, NONE, "version that it makes"),
    FIELD(struct delta, least, BYTES, NULL),
    { 0 },
};

static void delta_report(FILE *to, const bly_delta *d)
{
    struct delta r = {
        .file = delta_args.output,
        .d = *d,
        .ratio = delta_ratio((double)d->bytes, (double)d->whole_bytes),
        .over_entropy = delta_ratio(8 * (double)d->bytes, d->entropy),
        .least = d->entropy > 0 ? (uint64_t)ceil(d->entropy / 8) : 0,
    };
    snprintf(r.from, sizeof r.from, "%016llx", (unsigned long long)d->from);
    snprintf(r.to, sizeof r.to, "%016llx", (unsigned long long)d->to);
    report(
        to, delta_args.json, delta_fields, &r,
        "{file}: [{?bits}{flipped} of {bits} bits flipped|another shape], "
        "{bytes} as {form}, {ratio} of the filter[{?least}; entropy {least}, "
        "ratio {over_entropy:.3}]\n");
}

struct two_versions {
    const bly_filter *old, *new;
    bly_delta *info;
};

static bly_status delta_write(const void *what, bly_put *put, void *ctx)
{
    const struct two_versions *const v = what;
    return bly_delta_write(v->old, v->new, put, ctx, v->info);
}

static int delta_put(const char *const paths[2], const bly_filter *old,
                     const bly_filter *new, bly_delta *info)
{
    int error = 0;
    const struct two_versions v = { old, new, info };
    const bly_status st = is_dash(delta_args.output)
                              ? delta_write(&v, put_stdout, &error)
                              : bly_file_save(delta_args.output, wait_for_lock,
                                              NULL, delta_write, &v);
    if (error)
        return fail_path("standard output", error);
    if (st == BLY_EUNFIT)
        return fail("%s and %s: %s", paths[0], paths[1], bly_error());
    return st ? fail_library() : YES;
}

static int delta_run(struct list *operands)
{
    if (!delta_args.output)
        return fail("-o FILE is missing: where to write the delta");
    if (operands->n != 2)
        return fail("two filters are needed, the old one and the new one, not "
                    "%zu",
                    operands->n);
    const char *const old_path = operands->at[0], *const new_path =
                                                      operands->at[1];
    if (!output_works(delta_args.output, delta_args.json) ||
        !output_spares(delta_args.output, operands->at, 2))
        return TROUBLE;
    if (is_stdin(old_path) && is_stdin(new_path))
        return fail("standard input cannot be both filters");
    FILE *const to = report_to(delta_args.output);
    const bly_access how = { .blind = true, .checking = BLY_CHECK_ALL };
    bly_filter *const old = filter_map(old_path, &how);
    bly_filter *const new = old ? filter_map(new_path, &how) : NULL;
    int status = TROUBLE;
    bly_delta info;
    if (old && new) {
        cut_watch(old_path, new_path);
        status = delta_put(operands->at, old, new, &info);
    }
    bly_free(old);
    bly_free(new);
    if (status == YES && !quiet)
        delta_report(to, &info);
    return status;
}

static const struct opt delta_options[] = {
    { "output", 'o', OPT_TEXT, &delta_args.output, "FILE",
      "write the delta to FILE; - is standard output" },
    WAIT_OPTION,
    QUIET_OPTION(QUIET_HELP),
    JSON_OPTION(delta_args),
    { 0 },
};

static const struct example delta_examples[] = {
    { "bloomery delta mon.bly tue.bly -o tue.bld",
      "updates Monday's filter to Tuesday's" },
    { "bloomery delta mon.bly tue.bly -o - | ssh mirror bloomery apply f.bly -",
      "update a filter elsewhere" },
    { 0 },
};

const struct command cmd_delta = {
    .name = "delta",
    .usage = "-o FILE [OPTION]... OLD NEW",
    .summary = "write the difference between two versions of a filter",
    .about =
        "Compares two versions of a filter and writes what bloomery apply "
        "needs to turn the first into the second: the bits that flipped, coded "
        "to within a few percent of the entropy of the difference, or the "
        "whole new version if that is shorter or the shapes differ. Both must "
        "have the same hash, seed and key; the key itself is not needed.\n\n"
        "Filters that are built again for every list have the same shape only "
        "with the same --items. If keys leave the list as well as join it, a "
        "kind that can remove saves building it again.",
    .options = delta_options,
    .examples = delta_examples,
    .reports = REPORTS({ "", delta_fields, ONE }),
    .run = delta_run,
};
