/*
 * cmd_has.c - which keys may be in the filter?
 *
 * The filter is asked where it lies in its file; only the pages that keys fall
 * on are read. Options and exit status are grep's.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/pipeline.h"

static struct {
    struct list inputs;
    const char *key_file;
    uint64_t threads;
    bool invert, count, quiet, nul, json;
} has_args;

static bly_status has_batch(struct job *job, const uint64_t *hashes, size_t n,
                            uint64_t *picked)
{
    bly_has_hashes(job->ctx, hashes, n, picked);
    if (has_args.invert) {
        for (size_t i = 0; i < BLY_BITMAP_WORDS(n); i++)
            picked[i] = ~picked[i];
        if (n % 64)
            picked[n / 64] &= (UINT64_C(1) << n % 64) - 1;
    }
    return BLY_OK;
}

/* The filter, if it can be asked; NULL, and said why, if not. */
static bly_filter *has_filter(const char *path)
{
    bool ok;
    const bly_access how = { .secret = secret_read(has_args.key_file, &ok) };
    bly_filter *const f = ok ? filter_map(path, &how) : NULL;
    if (!f)
        return NULL;
    bly_kind_info kind;
    bly_kind_of(f, &kind);
    if (kind.can & BLY_CAN(HAS))
        return f;
    char *const able = kinds_that_can(BLY_CAN(HAS));
    fail("%s: a filter of kind %s cannot say whether it has a key; these can: "
         "%s",
         path, kind.name, able ? able : "");
    free(able);
    bly_free(f);
    return NULL;
}

static int has_run(struct list *operands)
{
    if (operands->n == 0)
        return fail("which filter? right: bloomery has FILTER [KEY]...");
    if (operands->n > 1 && has_args.inputs.n)
        return fail("keys come from the command line or from --file, not both");
    if (strcmp(operands->at[0], "-") == 0 && operands->n == 1) {
        bool used = has_args.inputs.n == 0;
        for (size_t i = 0; i < has_args.inputs.n; i++)
            used |= strcmp(has_args.inputs.at[i], "-") == 0;
        if (used)
            return fail("standard input cannot be both the filter and the "
                        "keys; give the keys with -f");
    }
    bly_filter *const f = has_filter(operands->at[0]);
    if (!f)
        return TROUBLE;

    const bool counts = has_args.count || has_args.json;
    struct job job = {
        .hasher = bly_hasher_of(f),
        .batch = has_batch,
        .prints = !counts && !has_args.quiet,
        .first_only = has_args.quiet,
        .terminator = has_args.nul ? '\0' : '\n',
        .nthreads = thread_count(has_args.threads),
        .ctx = f,
    };
    struct input in;
    if (operands->n > 1)
        input_keys(&in, operands->at + 1, operands->n - 1);
    else
        input_files(&in, has_args.inputs.at, has_args.inputs.n, has_args.nul);
    const bly_status st = pipeline_run(&job, &in);
    input_close(&in);
    bly_free(f);
    if (st)
        return fail("%s", job.error);

    if (has_args.json && !has_args.quiet) {
        struct json j = { .to = stdout };
        json_open(&j, '{');
        json_key(&j, "asked");
        json_uint(&j, job.nkeys);
        json_key(&j, "maybe");
        json_uint(&j, has_args.invert ? job.nkeys - job.npicked : job.npicked);
        json_close(&j, '}');
        json_end(&j);
    } else if (counts && !has_args.quiet) {
        printf("%llu\n", (unsigned long long)job.npicked);
    }
    return job.npicked ? YES : NO;
}

static const struct opt has_options[] = {
    { "invert", 'v', OPT_FLAG, &has_args.invert, NULL,
      "print the keys that are certainly not in it" },
    { "count", 'c', OPT_FLAG, &has_args.count, NULL,
      "print only how many keys would be printed" },
    { "quiet", 'q', OPT_FLAG, &has_args.quiet, NULL,
      "print nothing, and stop at the first key that would be printed" },
    { "file", 'f', OPT_LIST, &has_args.inputs, "FILE",
      "read keys from FILE; may be repeated; - is standard input" },
    { "null", '0', OPT_FLAG, &has_args.nul, NULL,
      "keys end at NUL bytes, not at newlines, when read and when printed" },
    { "key-file", 'K', OPT_TEXT, &has_args.key_file, "FILE",
      "the secret of a keyed filter" },
    { "threads", 't', OPT_POSITIVE, &has_args.threads, "N",
      "threads to use; all processors if not given" },
    { "json", 0, OPT_FLAG, &has_args.json, NULL,
      "print {\"asked\":N,\"maybe\":M} and no keys" },
    { 0 },
};

static const struct example has_examples[] = {
    { "bloomery has words.bly apple aple", "prints apple" },
    { "tr -cs A-Za-z '\\n' < letter.txt | sort -u | bloomery has -v words.bly",
      "the words of a letter that are in no dictionary" },
    { "bloomery has -q leaked.bly \"$word\" && echo choose another",
      "the exit status tells" },
    { 0 },
};

const struct command cmd_has = {
    .name = "has",
    .usage = "FILTER [KEY]... [-f FILE]... [OPTION]...",
    .summary = "print the keys that may be in a filter",
    .about =
        "Asks for the keys given as arguments, or for the lines of the files "
        "given with -f, or for those of standard input, and prints those that "
        "may be in the filter, in their order. A key that was added is always "
        "printed; one that was not is printed at the rate that the filter was "
        "made for.\n\n"
        "The exit status is 0 if a key was printed (or would have been), 1 if "
        "none was, and 2 after an error.",
    .options = has_options,
    .examples = has_examples,
    .run = has_run,
};
