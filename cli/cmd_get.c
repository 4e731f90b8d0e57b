/*
 * cmd_get.c - the values that a filter stores for keys
 */
#include "cli/rows.h"
#include "io/keys.h"
#include "io/values.h"

static struct {
    struct keys keys;
    struct checking check;
    uint64_t threads;
    bool invert, count, json;
} get_args;

static bool get_text(const void *ctx, uint64_t value, struct block *to)
{
    (void)ctx;
    return get_args.invert || number_put(to, value);
}

static const struct field got_fields[] = {
    PAIR_KEY,
    NAMED(struct pair, "value", number, MAYBE, "its value; null with --invert"),
    { 0 },
};

static const struct field *get_pair(const void *ctx, struct pair *p)
{
    (void)ctx;
    if (get_args.invert)
        p->number = NULL;
    return got_fields;
}

static bly_status get_batch(struct job *job, struct batch *b)
{
    const struct pair_style style = {
        .json = get_args.json,
        .end = get_args.keys.nul ? '\0' : '\n',
        .text = get_text,
        .fields = get_pair,
    };
    uint64_t values[BATCH];
    const bly_status st =
        bly_get_hashes(job->ctx, b->hashes, b->n, values, b->picked);
    if (st)
        return st;
    if (get_args.invert)
        batch_invert(b);
    return job->writes ? pairs_print(&style, b, values) : BLY_OK;
}

static int get_run(struct list *operands)
{
    struct input in;
    bly_filter *const f =
        ask_begin(operands, &get_args.keys, &get_args.check, BLY_CAN(GET), &in);
    if (!f)
        return TROUBLE;

    struct job job = {
        .batch = get_batch,
        .writes = !get_args.count && !quiet,
        .first_only = quiet,
        .goes_on = true,
        .nthreads = thread_count(get_args.threads),
        .ctx = f,
    };
    if (!ask_end(f, operands, &in, &job))
        return TROUBLE;
    if (get_args.count && !quiet)
        printf("%llu\n", (unsigned long long)job.npicked);
    return job.trouble ? TROUBLE : job.npicked ? YES : NO;
}

static const struct opt get_options[] = {
    FLAG("invert", 'v', get_args.invert,
         "print instead the keys that have no value"),
    FLAG("count", 'c', get_args.count,
         "print only how many keys would be printed"),
    QUIET_OPTION("print nothing, not even with --json, and stop at the first "
                 "key that would be printed"),
    KEYS_OPTIONS(get_args.keys),
    THREADS_OPTION(get_args.threads),
    CHECK_OPTIONS(get_args.check),
    FLAG("json", 0, get_args.json,
         "print {\"key\":..,\"value\":N}, one line per key"),
    { 0 },
};

static const struct example get_examples[] = {
    { "bloomery get ages.bly ann bob", "ann and her value, bob and his" },
    { "cut -f1 today.tsv | bloomery get ages.bly > known.tsv",
      "the values of the keys that have one" },
    { "cut -f1 today.tsv | bloomery get -v ages.bly", "and the others" },
    { 0 },
};

const struct command cmd_get = {
    .name = "get",
    .usage = "FILTER [KEY]... [-f FILE]... [OPTION]...",
    .summary = "print the value stored for each key",
    .about =
        "Prints, for the keys given as arguments, or for the lines of the "
        "files given with -f, or for those of standard input, in their order: "
        "the key, a tab, and its value. A key that was stored always has its "
        "own value. One that was not stored is left out, except for false "
        "positives, at the rate of the filter: these get a value that means "
        "nothing.\n\n" CHECK_ABOUT "\n\n"
        "The exit status is 0 if a key was printed (or would have been), 1 if "
        "none was, and 2 after an error.",
    .options = get_options,
    .examples = get_examples,
    .reports = REPORTS({ "", got_fields, LINES }),
    .run = get_run,
};
