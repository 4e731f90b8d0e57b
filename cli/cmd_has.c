/*
 * cmd_has.c - which keys may be in the filter?
 *
 * The filter is asked where it lies in its file; where it is large, only the
 * pages that keys fall on are read. Options and exit status are grep's.
 */
#include "cli/keys.h"

static struct {
    struct keys keys;
    struct checking check;
    uint64_t threads;
    bool invert, count, json;
} has_args;

static bly_status has_batch(struct job *job, struct batch *b)
{
    bly_has_hashes(job->ctx, b->hashes, b->n, b->picked);
    if (has_args.invert)
        batch_invert(b);
    return BLY_OK;
}

static int has_run(struct list *operands)
{
    struct input in;
    bly_filter *const f =
        ask_begin(operands, &has_args.keys, &has_args.check, BLY_CAN(HAS), &in);
    if (!f)
        return TROUBLE;

    const bool counts = has_args.count || has_args.json;
    struct job job = {
        .batch = has_batch,
        .prints = !counts && !quiet,
        .first_only = quiet,
        .terminator = has_args.keys.nul ? '\0' : '\n',
        .nthreads = thread_count(has_args.threads),
        .ctx = f,
    };
    if (!ask_end(f, &in, &job))
        return TROUBLE;

    if (has_args.json && !quiet) {
        struct json j = { .to = stdout };
        json_open(&j, '{');
        json_key(&j, "asked");
        json_uint(&j, job.nkeys);
        json_key(&j, "maybe");
        json_uint(&j, has_args.invert ? job.nkeys - job.npicked : job.npicked);
        json_close(&j, '}');
        json_end(&j);
    } else if (counts && !quiet) {
        printf("%llu\n", (unsigned long long)job.npicked);
    }
    return job.npicked ? YES : NO;
}

static const struct opt has_options[] = {
    { "invert", 'v', OPT_FLAG, &has_args.invert, NULL,
      "print the keys that are certainly not in it" },
    { "count", 'c', OPT_FLAG, &has_args.count, NULL,
      "print only how many keys would be printed" },
    QUIET_OPTION(
        "print nothing, not even with --json, and stop at the first key that "
        "would be printed"),
    KEYS_OPTIONS(has_args.keys),
    THREADS_OPTION(has_args.threads),
    CHECK_OPTIONS(has_args.check),
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
        "made for. (bloomery kinds names the kinds whose \"no\" is only "
        "likely.)\n\n" CHECK_ABOUT "\n\n"
        "The exit status is 0 if a key was printed (or would have been), 1 if "
        "none was, and 2 after an error.",
    .options = has_options,
    .examples = has_examples,
    .run = has_run,
};
