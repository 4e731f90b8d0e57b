/*
 * cmd_compress.c - a filter in a file of fewer bytes, or as it is again
 *
 * A coded filter is the same filter: only how it is written differs. Where the
 * output is the input, that is changed under its lock, as by every command
 * that changes a filter.
 */
#include "cli/rows.h"
#include "io/files.h"
#include "io/filters.h"
#include "io/paths.h"

static struct {
    const char *output;
    bool decompress, compact, json;
} compress_args;

struct compression {
    const char *file, *kind;
    bool coded, compact;
    uint64_t before, after; /* bytes of the file */
    double entropy, ratio;
};

static const struct field compression_fields[] = {
    FIELD(struct compression, file, NONE, "where the filter was written"),
    FIELD(struct compression, kind, NONE, "its kind"),
    FIELD(struct compression, coded, NONE, "whether the file is now coded"),
    FIELD(struct compression, compact, NONE,
          "whether it has the compact header"),
    NAMED(struct compression, "bytes_before", before, BYTES,
          "size of the file before"),
    NAMED(struct compression, "bytes_after", after, BYTES, "and after"),
    NAMED(struct compression, "entropy_bytes", entropy, BYTES | MAYBE,
          "what its contents need at least, in any code"),
    FIELD(struct compression, ratio, SHARE | MAYBE, "size after / before"),
    { 0 },
};

static bly_status recode(bly_filter *f, void *ctx)
{
    struct compression *const c = ctx;
    bly_stats s;
    bly_peek(f, &s);
    c->kind = s.kind;
    c->before = bly_written_bytes(f);
    bly_set_compact(f, c->compact);
    bly_set_coded(f, c->coded);
    c->after = bly_written_bytes(f);
    if (c->compact) {
        /* Of a small filter at capacity, coding saves nothing. */
        bly_set_coded(f, false);
        const uint64_t as_it_is = bly_written_bytes(f);
        c->coded = c->after < as_it_is;
        bly_set_coded(f, c->coded);
        c->after = c->coded ? c->after : as_it_is;
    }
    c->entropy = bly_entropy(f) / 8;
    c->ratio = (double)c->after / (double)c->before;
    return BLY_OK;
}

static int compress_run(struct list *operands)
{
    const char *const output = compress_args.output;
    if (!output)
        return fail("-o FILE is missing: where to write the filter, which may "
                    "be the filter itself");
    if (operands->n != 1)
        return fail("one filter is written at a time, not %zu", operands->n);
    const char *const path = operands->at[0];
    if (!output_works(output, compress_args.json) ||
        (is_dash(output) && !output_spares(output, &path, 1)))
        return TROUBLE;
    FILE *const to = report_to(output);
    struct compression c = { .file = output,
                             .compact = compress_args.compact,
                             .coded = !compress_args.decompress };
    if (compress_args.compact && compress_args.decompress)
        return fail("--compact and --decompress: a filter is written in one "
                    "form; give one of them");
    const bly_access blind = { .blind = true, .wait = wait_for_lock };
    if (is_same_file(output, path)) {
        if (bly_update(output, &blind, recode, &c))
            return fail_library();
    } else {
        bly_filter *const f = filter_open(path, &blind);
        if (!f)
            return TROUBLE;
        recode(f, &c);
        const int status = filter_save(f, output);
        bly_free(f);
        if (status != YES)
            return status;
    }
    if (!quiet)
        report(to, compress_args.json, compression_fields, &c,
               "{file}: {kind}, {bytes_before} before, {bytes_after} after, "
               "{ratio}; the entropy of its contents is {entropy_bytes}\n");
    return YES;
}

static const struct opt compress_options[] = {
    { "output", 'o', OPT_TEXT, &compress_args.output, "FILE",
      "write the filter to FILE, which may be FILTER itself; - is standard "
      "output" },
    FLAG("decompress", 'd', compress_args.decompress,
         "decode it again, byte for byte as it was before"),
    FLAG("compact", 0, compress_args.compact,
         "for small filters: a header of some 40 bytes instead of a page, and "
         "contents coded where that is shorter"),
    WAIT_OPTION,
    QUIET_OPTION(QUIET_HELP),
    JSON_OPTION(compress_args),
    { 0 },
};

static const struct example compress_examples[] = {
    { "bloomery compress -o words.blyc words.bly", "for sending" },
    { "bloomery compress --decompress -o words.bly words.blyc",
      "and back again" },
    { "bloomery compress -o words.bly words.bly", "in place" },
    { "bloomery compress --compact -o flags.blyc flags.bly",
      "a small filter, for a row of a table" },
    { 0 },
};

const struct command cmd_compress = {
    .name = "compress",
    .usage = "-o FILE [OPTION]... FILTER",
    .summary = "write a filter in fewer bytes, or decode it again",
    .about = "Writes the filter entropy coded: in about as many bytes as there "
             "is information in its contents. A filter at capacity has half of "
             "its bits set and cannot be shortened; with half of its keys it "
             "takes 11 % less, and counters take less than half.\n\n"
             "Every command uses a coded file like any other, and one that "
             "changes it leaves it coded. But it is decoded into memory each "
             "time, whereas other files are queried in place.\n\n"
             "With --compact, the header shrinks too, from 4 KB to some 40 "
             "bytes: for small filters, which are kept in rows or sent in "
             "packets. --decompress brings back the usual file.\n\n"
             "Filters of the kind compressed are made for this: they are sized "
             "by their length when sent.",
    .options = compress_options,
    .examples = compress_examples,
    .reports = REPORTS({ "", compression_fields, ONE }),
    .run = compress_run,
};
