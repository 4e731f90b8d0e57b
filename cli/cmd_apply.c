/*
 * cmd_apply.c - a delta brings a filter to its next version
 *
 * The library locks the file, reads it, and puts the new version in its place;
 * or with -o leaves it and writes elsewhere. A delta that does not fit is
 * reported and changes nothing.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cli/rows.h"
#include "io/files.h"
#include "io/filters.h"
#include "io/paths.h"

static struct {
    const char *output;
    bool json;
} apply_args;

struct application {
    const char *filter, *delta; /* paths */
    int fd;
    int error; /* of a read that failed */
    bool said; /* why it failed */
    bly_delta info;
    bly_stats stats;
};

static int64_t get_delta(void *ctx, void *buf, size_t nbytes)
{
    struct application *const a = ctx;
    const int64_t got = read_all(a->fd, buf, nbytes);
    if (got < 0)
        a->error = errno;
    return got;
}

static bly_status apply_to(bly_filter *f, void *ctx)
{
    struct application *const a = ctx;
    const char *const name = is_dash(a->delta) ? "standard input" : a->delta;
    const bly_status st = bly_delta_read(f, get_delta, a, &a->info);
    a->said = st != BLY_OK;
    if (a->error)
        fail_path(name, a->error);
    else if (st == BLY_EUNFIT)
        fail("%s: %s does not fit: %s", a->filter, name, bly_error());
    else if (st)
        fail("%s: %s", name, bly_error());
    else
        bly_stat(f, &a->stats);
    return st;
}

static int apply_elsewhere(struct application *a)
{
    const bly_access blind = { .blind = true, .wait = wait_for_lock };
    bly_filter *const f = filter_open(a->filter, &blind);
    if (!f)
        return TROUBLE;
    int status = apply_to(f, a) ? TROUBLE : YES;
    if (status == YES)
        status = filter_save(f, apply_args.output);
    bly_free(f);
    return status;
}

static int apply_in_place(struct application *a)
{
    const bly_access blind = { .blind = true, .wait = wait_for_lock };
    if (bly_update(a->filter, &blind, apply_to, a))
        return a->said ? TROUBLE : fail_library();
    return YES;
}

struct applied {
    const char *file;
    bly_delta delta;
    struct made made;
};

static const struct field applied_fields[] = {
    FIELD(struct applied, file, NONE, "where the new version was written"),
    NAMED(struct applied, "form", delta.form, NONE, "\"gaps\" or \"whole\""),
    NAMED(struct applied, "delta_bytes", delta.bytes, BYTES, "of the delta"),
    NAMED(struct applied, "flipped", delta.flips, BITS, "bits that it flipped"),
    NAMED(struct applied, "items_estimate", made.s.items_estimate,
          ESTIMATE | MAYBE, "different keys it holds, by its contents"),
    MEMBERS(struct applied, made, NONE, made_fields),
    NAMED(struct applied, "bits", delta.bits, NONE, NULL),
    { 0 },
};

static void apply_report(FILE *to, const char *output,
                         const struct application *a)
{
    const struct applied r = { output, a->info, made_of(&a->stats) };
    report(
        to, apply_args.json, applied_fields, &r,
        "{file}: [{?bits}{flipped} bits flipped|replaced whole]; " MADE_TEXT);
    warn_past_capacity(output, &a->stats);
}

static int apply_run(struct list *operands)
{
    if (operands->n != 2)
        return fail("a filter and a delta are needed; usage: bloomery apply "
                    "FILTER DELTA");
    struct application a = {
        .filter = operands->at[0],
        .delta = operands->at[1],
        .fd = STDIN_FILENO,
    };
    const char *output = apply_args.output;
    /* Where the output is the filter itself, that is changed under its lock. */
    const bool in_place = !output || is_same_file(output, a.filter);
    if (in_place) {
        output = a.filter;
        if (!can_change(a.filter))
            return TROUBLE;
    } else if (!output_works(output, apply_args.json) ||
               !output_spares(output, &a.delta, 1)) {
        return TROUBLE;
    }
    if (is_stdin(a.filter) && is_stdin(a.delta))
        return fail("standard input cannot be both the filter and the delta");
    if (!is_dash(a.delta)) {
        a.fd = open(a.delta, O_RDONLY | O_CLOEXEC);
        if (a.fd < 0)
            return fail_path(a.delta, errno);
    }
    FILE *const to = report_to(output);
    const int status = in_place ? apply_in_place(&a) : apply_elsewhere(&a);
    if (!is_dash(a.delta))
        close(a.fd);
    if (status == YES && !quiet)
        apply_report(to, output, &a);
    return status;
}

static const struct opt apply_options[] = {
    { "output", 'o', OPT_TEXT, &apply_args.output, "FILE",
      "leave FILTER as it is and write the new version to FILE; - is standard "
      "output" },
    WAIT_OPTION,
    QUIET_OPTION(QUIET_HELP),
    JSON_OPTION(apply_args),
    { 0 },
};

static const struct example apply_examples[] = {
    { "bloomery apply list.bly tue.bld",
      "update Monday's version to Tuesday's" },
    { "curl -s https://example.org/tue.bld | bloomery apply list.bly -",
      "the same from a pipe" },
    { 0 },
};

const struct command cmd_apply = {
    .name = "apply",
    .usage = "FILTER DELTA [-o FILE] [OPTION]...",
    .summary = "update a filter with a delta",
    .about =
        "Updates FILTER, byte for byte, to the version that a delta (see "
        "bloomery delta) leads to. The delta must start from the version that "
        "FILTER is at: a delta for another version, or one that was already "
        "applied, is refused, and so is one that is damaged or truncated. "
        "FILTER is then unchanged, and the exit status is 2.\n\n"
        "The filter is replaced under its lock, as by bloomery add. A checksum "
        "detects accidents, not forgeries: a delta from someone you do not "
        "trust is safe to apply, but they decide what the filter then says.",
    .options = apply_options,
    .examples = apply_examples,
    .reports = REPORTS({ "", applied_fields, ONE }),
    .run = apply_run,
};
