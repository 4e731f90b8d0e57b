/*
 * cmd_delta.c - what makes one version of a filter of another
 */
#include <math.h>
#include <stdio.h>

#include <bloomery.h>

#include "cli/rows.h"
#include "io/files.h"
#include "io/filters.h"
#include "io/paths.h"
#include "report/json.h"
#include "report/out.h"
#include "report/say.h"
#include "report/show.h"
#include "report/words.h"

static struct {
    const char *output;
    bool json;
} delta_args;

static double delta_ratio(double part, double whole)
{
    return whole > 0 ? part / whole : NAN;
}

static void delta_json(const char *output, const bly_delta *d)
{
    char from[20], to[20];
    snprintf(from, sizeof from, "%016llx", (unsigned long long)d->from);
    snprintf(to, sizeof to, "%016llx", (unsigned long long)d->to);
    struct json j = { .to = stdout };
    json_open(&j, '{');
    json_key(&j, "file");
    json_text(&j, output);
    json_key(&j, "form");
    json_text(&j, d->form);
    json_key(&j, "bytes");
    json_uint(&j, d->bytes);
    json_key(&j, "whole_bytes");
    json_uint(&j, d->whole_bytes);
    json_key(&j, "ratio");
    json_real(&j, delta_ratio((double)d->bytes, (double)d->whole_bytes));
    json_key(&j, "bits");
    json_uint(&j, d->bits);
    json_key(&j, "flipped");
    json_uint(&j, d->flips);
    json_key(&j, "entropy_bits");
    json_real(&j, d->entropy);
    json_key(&j, "over_entropy");
    json_real(&j, delta_ratio(8 * (double)d->bytes, d->entropy));
    json_key(&j, "from");
    json_text(&j, from);
    json_key(&j, "to");
    json_text(&j, to);
    json_close(&j, '}');
    json_end(&j);
}

static void delta_text(FILE *to, const char *output, const bly_delta *d)
{
    fprintf(to, "%s: ", show_name(output));
    if (d->bits)
        fprintf(to, "%llu of %llu bits flipped, ", (unsigned long long)d->flips,
                (unsigned long long)d->bits);
    else
        fputs("another shape, ", to);
    fprintf(to, "%s as %s, %s of the filter", show_bytes(d->bytes), d->form,
            show_rate(delta_ratio((double)d->bytes, (double)d->whole_bytes)));
    if (d->entropy > 0)
        fprintf(to, "; entropy %s, ratio %.3f",
                show_bytes((uint64_t)ceil(d->entropy / 8)),
                delta_ratio(8 * (double)d->bytes, d->entropy));
    fputc('\n', to);
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
    const bly_access blind = { .blind = true };
    bly_filter *const old = filter_map(old_path, &blind);
    bly_filter *const new = old ? filter_map(new_path, &blind) : NULL;
    int status = TROUBLE;
    bly_delta info;
    if (old && new) {
        cut_watch(old_path, new_path);
        if (bly_verify(old))
            fail("%s: %s", old_path, bly_error());
        else if (bly_verify(new))
            fail("%s: %s", new_path, bly_error());
        else
            status = delta_put(operands->at, old, new, &info);
    }
    bly_free(old);
    bly_free(new);
    if (status == YES && !quiet) {
        if (delta_args.json)
            delta_json(delta_args.output, &info);
        else
            delta_text(to, delta_args.output, &info);
    }
    return status;
}

static const struct opt delta_options[] = {
    { "output", 'o', OPT_TEXT, &delta_args.output, "FILE",
      "write the delta to FILE; - is standard output" },
    WAIT_OPTION,
    QUIET_OPTION(QUIET_HELP),
    { "json", 0, OPT_FLAG, &delta_args.json, NULL, "print the result as JSON" },
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
    .run = delta_run,
};
