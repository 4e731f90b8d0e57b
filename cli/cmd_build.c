/*
 * cmd_build.c - a filter from keys
 *
 * Workers hash blocks of lines and hand the hashes to a builder of the library,
 * which takes them from all threads at once. With --items the keys go straight
 * into the filter; without, the builder keeps the hashes, 8 bytes each, until
 * it knows how many different ones there are. Kinds that store values take
 * lines of a key and its value.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/beginning.h"
#include "cli/others.h"
#include "cli/rows.h"
#include "io/building.h"
#include "io/foreign_files.h"
#include "io/paths.h"
#include "io/files.h"
#include "io/keys.h"
#include "io/notes.h"
#include "io/sizing.h"
#include "io/values.h"

static struct {
    struct sizing sizing;
    const char *format;
    const char *output, *spill;
    struct keys keys;
    struct others others;
    struct meta_args meta;
    uint64_t seed, threads, max_memory;
    unsigned hash; /* 1: xxh3 */
    bool json, ints, uints;
} build_args;

static bly_status build_batch(struct job *job, struct batch *b)
{
    return bly_builder_add(job->ctx, b->hashes, b->values, b->n);
}

/* Read all keys into b and make the filter of them; NULL, with the reason
 * printed. */
static bly_filter *build_filter(bly_builder *b, const bly_spec *spec,
                                struct job *job, const struct list *inputs,
                                struct beginning *begins)
{
    struct input in;
    const bool sized = is_sized(spec), told = quiet;
    if (!keys_files(&build_args.keys, inputs->at, inputs->n, &in))
        return NULL;
    if (!beginning_find(&in, spec, job->nthreads, b, begins)) {
        input_close(&in);
        return NULL;
    }
    quiet |= begins->keys > 0; /* the first reading said it */
    const bly_status st = pipeline_run(job, &in);
    quiet = told;
    input_close(&in);
    if (st) {
        fail("%s", job->error);
        return NULL;
    }
    if (!job->nkeys && !sized) {
        fail(BUILT_NOTHING);
        return NULL;
    }
    if (others_given(&build_args.others) &&
        !others_deny(&build_args.others, &build_args.keys, b, job))
        return NULL;
    bly_filter *f;
    if (bly_builder_finish(b, job->nthreads, &f)) {
        fail_library();
        return NULL;
    }
    return f;
}

/* Does the kind of spec want values? Then lines are keys and values, and the
 * delimiter is between these. False, with the reason printed, if something else
 * was said of lines, or of a delimiter that separates nothing. */
static bool build_values(const bly_spec *spec, struct job *job)
{
    const uint32_t wanted = BLY_CAN(BUILD) | BLY_CAN(GET);
    struct selection *const s = &build_args.keys.select;
    bly_kind_info kind;
    job->valued = (spec->kind ? bly_kind_named(spec->kind, &kind)
                              : bly_kind_at(0, &kind)) &&
                  (kind.can & wanted) == wanted;
    if (job->valued && selects(s)) {
        fail("a %s filter is built from lines of a key and its value, without "
             "%s",
             kind.name, selection_option(s));
        return false;
    }
    if (job->valued) {
        const char *const between = s->delimiter;
        s->delimiter = NULL;
        return delimiter_read(between, '\t', &job->delimiter);
    }
    if (!s->delimiter || s->field || s->csv)
        return true;
    char *const able = kinds_that_can(wanted);
    fail("--delimiter separates fields (--field, --csv), or keys from values, "
         "and a %s filter has none; these have: %s",
         kind.name, able ? able : "");
    free(able);
    return false;
}

/* Changes of a list from day to day are exact filters of a few hundred bytes
 * that are sent to everybody: a page of header, which helps where a file is
 * mapped, would be most of each. */
#define BUILD_COMPACT_BYTES ((uint64_t)64 << 10)

static void build_compactly(bly_filter *f)
{
    bly_stats s;
    bly_peek(f, &s);
    if (strcmp(s.kind, "exact") == 0 && s.bytes <= BUILD_COMPACT_BYTES)
        bly_set_compact(f, true);
}

/* Note the field of the groups, unless something else is noted so: for the
 * message of who asks without it. False, with the reason printed; then f is
 * gone. */
static bool build_notes_group(bly_filter *f)
{
    const struct list *const pairs = &build_args.meta.pairs;
    const size_t n = strlen(KEYS_GROUP_NOTE);
    for (size_t i = 0; i < pairs->n; i++)
        if (strncmp(pairs->at[i], KEYS_GROUP_NOTE, n) == 0 &&
            pairs->at[i][n] == '=')
            return true;
    if (!bly_set_pair(f, KEYS_GROUP_NOTE, build_args.keys.select.group))
        return true;
    fail_library();
    bly_free(f);
    return false;
}

/* ------------------------------------------- for another system */

/* Options that mean nothing there; false, with the reason printed, if one was
 * given. */
static bool build_is_plain(void)
{
    const struct sizing *const s = &build_args.sizing;
    const char *const wrong = s->kind                         ? "--kind"
                              : s->bits                       ? "--bits"
                              : s->memory                     ? "--memory"
                              : s->miss > 0                   ? "--miss"
                              : build_args.seed               ? "--seed"
                              : build_args.keys.key_file      ? "--key-file"
                              : build_args.spill              ? "--spill"
                              : build_args.others.universe.n  ? "--universe"
                              : build_args.others.negatives.n ? "--negatives"
                              : build_args.keys.select.group  ? "--group"
                              : build_args.ints               ? "--int"
                              : build_args.uints              ? "--uint"
                              : build_args.meta.note          ? "--note"
                              : build_args.meta.pairs.n       ? "--meta"
                                                              : NULL;
    if (wrong)
        fail("%s has no meaning for a format of another system; use --items, "
             "--fpr and -O",
             wrong);
    return !wrong;
}

static int build_foreign(const struct list *operands)
{
    const struct foreign_args args = { build_args.format,
                                       build_args.sizing.options };
    bly_foreign_spec spec = { .items = build_args.sizing.items,
                              .fpr = build_args.sizing.fpr,
                              .max_bytes = build_args.max_memory };
    if (!build_is_plain() || !foreign_spec(&args, &spec))
        return TROUBLE;
    struct input in;
    struct job job = { 0 };
    if (!keys_files(&build_args.keys, operands->at, operands->n, &in))
        return TROUBLE;
    bly_foreign *const f =
        foreign_build(&spec, &in, NULL, NULL, spec.items != 0, &job);
    input_close(&in);
    if (!f)
        return TROUBLE;
    FILE *const to = report_to(build_args.output);
    const int status = foreign_save(f, build_args.output);
    if (status == YES && !quiet)
        foreign_report(to, build_args.json, build_args.output, &job, f);
    bly_foreign_free(f);
    return status;
}

/* --------------------------------------------------------------- running */

static int build_run(struct list *operands)
{
    if (!build_args.output)
        return fail("-o FILE is missing: where to write the filter");
    if (build_args.seed && build_args.keys.key_file)
        return fail("--seed and --key-file exclude each other: the key takes "
                    "the place of the seed");
    if (build_args.spill && !build_args.max_memory)
        return fail("--spill needs --max-memory: how much to keep in memory");
    if (build_args.ints && build_args.uints)
        return fail("--int and --uint exclude each other: integers with a sign "
                    "or without");
    if (build_args.keys.select.group && (build_args.ints || build_args.uints))
        return fail("--group and --int exclude each other: a key with its "
                    "group is text");
    if (build_args.keys.select.group && !others_given(&build_args.others))
        return fail("--group has a meaning only with --universe");
    if (!meta_check(&build_args.meta, false))
        return TROUBLE;
    build_args.keys.normal.type = build_args.ints    ? BLY_KEYS_INT64
                                  : build_args.uints ? BLY_KEYS_UINT64
                                                     : BLY_KEYS_UNKNOWN;
    bly_spec spec = { .seed = build_args.seed,
                      .hash = build_args.hash ? BLY_HASH_XXH3 : 0,
                      .keying = keys_keying(&build_args.keys),
                      .max_bytes = build_args.max_memory,
                      .spill = build_args.spill };
    struct job job = {
        .batch = build_batch,
        .nthreads = thread_count(build_args.threads),
    };
    bool ok;
    static const char *const standard_input[] = { "-" };
    if (!output_works(build_args.output, build_args.json) ||
        !output_spares(build_args.output, &build_args.keys.key_file, 1) ||
        !(operands->n
              ? output_spares(build_args.output, operands->at, operands->n)
              : output_spares(build_args.output, standard_input, 1)))
        return TROUBLE;
    if (build_args.format)
        return build_foreign(operands);
    if (others_given(&build_args.others) &&
        !others_plan(&build_args.others, &build_args.keys, operands,
                     &build_args.sizing))
        return TROUBLE;
    if (!sizing_spec(&build_args.sizing, &spec) || !build_values(&spec, &job))
        return TROUBLE;
    spec.secret = secret_read(build_args.keys.key_file, &ok);
    if (!ok)
        return TROUBLE;

    bly_builder *b;
    if (bly_builder_new(&spec, &b))
        return fail_library();
    if (build_args.keys.select.group &&
        !others_groups(&build_args.others, &build_args.keys, operands, b)) {
        bly_builder_free(b);
        return TROUBLE;
    }
    job.hasher = bly_builder_hasher(b);
    job.ctx = b;
    struct beginning begins;
    bly_filter *const f = build_filter(b, &spec, &job, operands, &begins);
    const bool estimated = bly_builder_estimated(b);
    bly_builder_free(b);
    if (!f)
        return TROUBLE;
    if (build_args.keys.select.group && !build_notes_group(f))
        return TROUBLE;
    build_compactly(f);
    const struct building how = { build_args.output, &build_args.meta,
                                  build_args.json };
    bly_stats s;
    const int status =
        built_save(f, &how, &job, build_args.others.nkeys, estimated, &s);
    if (status == YES && !quiet) {
        others_warn(&build_args.others, &s);
        beginning_warn(&begins, build_args.output, &s);
    }
    return status;
}

static const struct opt build_options[] = {
    { "output", 'o', OPT_TEXT, &build_args.output, "FILE",
      "write the filter to FILE; - is standard output" },
    SIZING_OPTIONS(build_args.sizing),
    MISS_OPTION(build_args.sizing),
    FORMAT_OPTION(build_args, "use this format of another system, with -O for "
                              "its options; see bloomery formats"),
    { "seed", 's', OPT_COUNT, &build_args.seed, "S",
      "seed of the hash; filters combine only if their seeds agree" },
    { "hash", 0, OPT_CHOICE, &build_args.hash, "auto|xxh3",
      "xxh3: also for integers, so that the filter combines with those of "
      "older "
      "versions" },
    { "key-file", 'K', OPT_TEXT, &build_args.keys.key_file, "FILE",
      "make a keyed filter with the secret in FILE: 16 raw bytes or 32 "
      "hexadecimal digits" },
    { "max-memory", 0, OPT_POSITIVE, &build_args.max_memory, "SIZE",
      "use no more memory than this: 500MB, 2GiB; the filter must fit, and "
      "without --spill the hashes too" },
    { "spill", 0, OPT_TEXT, &build_args.spill, "DIR",
      "folder for a temporary file with what does not fit into --max-memory" },
    FLAG("null", '0', build_args.keys.nul,
         "keys end at NUL bytes, not at newlines"),
    BINARY_OPTION,
    SELECT_OPTIONS(build_args.keys),
    NORMAL_OPTIONS(build_args.keys),
    OTHERS_OPTIONS(build_args.others),
    GROUP_OPTION(build_args.keys),
    FLAG("int", 0, build_args.ints,
         "keys are integers, from -2^63 to 2^63 - 1, not text: 7 and 007 are "
         "one key, and anything else is a bad line"),
    FLAG("uint", 0, build_args.uints, "the same from 0 to 2^64 - 1"),
    META_OPTIONS(build_args.meta),
    THREADS_OPTION(build_args.threads),
    WAIT_OPTION,
    QUIET_OPTION(QUIET_HELP),
    JSON_OPTION(build_args),
    { 0 },
};

static const struct example build_examples[] = {
    { "bloomery build -o words.bly /usr/share/dict/words",
      "as many keys as the list has, 1 % false positives" },
    { "zcat -f access.log* | cut -d' ' -f1 | bloomery build -o seen.bly "
      "--items 10M --fpr 0.1%",
      "addresses from a pipe, room for ten million" },
    { "bloomery build -o list.bly --kind KIND -O NAME=VALUE "
      "list.txt.zst",
      "another kind, with an option of its own; see bloomery kinds" },
    { "bloomery build -o leaked.bly --kind fuse --max-memory 4GiB --spill "
      "/var/tmp leaked.txt.zst",
      "a billion lines in 4 GiB" },
    { "bloomery build -o revoked.bly --universe issued.txt revoked.txt",
      "right for every number that was issued" },
    { "bloomery build -o revoked.bly --universe issued.csv --csv serial "
      "--group issuer revoked.csv",
      "the same for issuers of whose numbers different shares are revoked" },
    { "bloomery build -o ids.bly --int --note 'customers of May' ids.txt",
      "integers, and a note that bloomery info shows" },
    { "bloomery build -o known.bloom --format FORMAT --fpr 0.1% hashes.txt",
      "for another system; bloomery formats says which" },
    { 0 },
};

const struct command cmd_build = {
    .name = "build",
    .usage = "-o FILE [OPTION]... [INPUT]...",
    .summary = "make a filter from keys",
    .about =
        "Reads keys from the input files, or from standard input, and writes a "
        "filter of them to FILE.\n\n"
        "The capacity is the number of different keys that were read, unless "
        "--items says otherwise: the hashes are kept until all are read, 8 "
        "bytes each. With --items, keys go straight into the filter, which "
        "takes no more memory than the filter itself and up to 256 MiB for "
        "threads that add at once. The rate is 1 % unless --fpr or --memory "
        "says otherwise.\n\n"
        "A kind that stores values (bloomery kinds: build and get) reads lines "
        "that consist of a key, a tab (or --delimiter) and its "
        "value, " VALUE_RIGHT
        ". The value is what follows the last tab, so keys may contain tabs. A "
        "line without a tab, or a key that comes with two different values, is "
        "an error.\n\n"
        "For a list that is larger than memory, give --max-memory and --spill: "
        "hashes that do not fit go to a temporary file in DIR, 8 bytes each, "
        "which has no name and disappears however the command ends. The filter "
        "is the same as without. Kinds that are built at once take several "
        "passes over the file.\n\n"
        "Where it is known which keys will be asked, give them with "
        "--universe: the filter is then of the kind exact and right for all of "
        "them. It takes as few bits as it can, unless --fpr asks for a low "
        "rate for keys outside. If the share of members differs between groups "
        "of keys, --group names the field that tells the group, and the filter "
        "is smaller; has then needs --group too. Both lists are read twice "
        "for that.\n\n"
        "With --format the filter is in the format of another system, bit for "
        "bit as that system would make it for this many keys and this "
        "rate.\n\n" SELECT_ABOUT " If a line is bad, nothing is written.\n\n"
        "Nothing is written before everything has been read. An interrupted "
        "build leaves FILE as it was. FILE must not be an input.",
    .options = build_options,
    .examples = build_examples,
    .reports = REPORTS({ "", built_fields, ONE },
                       { "with --format", foreign_made_fields, ONE }),
    .run = build_run,
};
