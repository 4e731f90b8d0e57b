/*
 * cmd_unique.c - each line the first time it comes
 */
#include <math.h>

#include "apps/unique/unique.h"
#include "cli/rows.h"
#include "io/files.h"
#include "io/filters.h"
#include "io/sizing.h"
#include "report/show.h"

static struct {
    struct keys keys;
    struct sizing sizing;
    const char *filter;
    uint64_t threads, every;
    bool json;
} unique_args = { .every = 30 };

/* Where nobody says how many lines will come, the filter grows from here. */
#define UNIQUE_FIRST_ITEMS 1000000
#define UNIQUE_FPR 0.001

static void unique_tell(const struct unique_report *r)
{
    const double all = (double)r->printed + r->swallowed;
    if (quiet)
        return;
    /* The lines have standard output for themselves. */
    if (unique_args.json) {
        struct json j = { .to = stderr };
        report_object(&j, unique_fields, r);
        json_end(&j);
    } else {
        const bool some = r->swallowed >= 0.5 && isfinite(all);
        note("%llu lines read, %llu printed; new lines swallowed, by "
             "estimate: %s%s%s",
             (unsigned long long)r->lines, (unsigned long long)r->printed,
             isfinite(all) ? show_rounded(round(r->swallowed)) : "unknown",
             some ? ", " : "", some ? show_rate(r->swallowed / all) : "");
    }
    warn_past_capacity(r->file ? r->file : "the filter", &r->filter);
}

static bool unique_spec(bly_spec *spec)
{
    if (!sizing_spec(&unique_args.sizing, spec))
        return false;
    if (!spec->kind && !spec->items && !spec->bits)
        spec->kind = "scalable";
    bly_kind_info kind;
    if (spec->kind && bly_kind_named(spec->kind, &kind) &&
        !(kind.can & BLY_CAN(ADD))) {
        fail("--kind %s: such a filter is built from all its keys at once, and "
             "lines come one by one; use a kind that can add (bloomery kinds)",
             kind.name);
        return false;
    }
    if (!is_sized(spec))
        spec->items = UNIQUE_FIRST_ITEMS;
    if (spec->fpr <= 0 && !spec->bits)
        spec->fpr = UNIQUE_FPR;
    return true;
}

static int unique_run(struct list *operands)
{
    bool ok;
    struct unique_options opt = {
        .path = unique_args.filter,
        .nthreads = thread_count(unique_args.threads),
        .every = unique_args.every,
        .terminator = unique_args.keys.nul ? '\0' : '\n',
        .tell = unique_tell,
    };
    struct input in;
    if (!unique_spec(&opt.spec))
        return TROUBLE;
    opt.spec.keying = keys_keying(&unique_args.keys);
    opt.secret = opt.spec.secret = secret_read(unique_args.keys.key_file, &ok);
    if (!ok || !keys_files(&unique_args.keys, operands->at, operands->n, &in))
        return TROUBLE;
    const int status = unique(&opt, &in);
    input_close(&in);
    return status;
}

static const struct opt unique_options[] = {
    { "filter", 0, OPT_TEXT, &unique_args.filter, "FILE",
      "remember lines in FILE, from one run to the next; made if it is not "
      "there" },
    { "every", 0, OPT_POSITIVE, &unique_args.every, "SECONDS",
      "how often FILE is saved while lines come; 30 if not given" },
    SIZING_OPTIONS(unique_args.sizing),
    SELECT_OPTIONS(unique_args.keys),
    NORMAL_OPTIONS(unique_args.keys),
    FLAG("null", '0', unique_args.keys.nul,
         "lines end at NUL bytes, not at newlines; printed ones too"),
    OPTION("key-file", 'K', OPT_TEXT, &unique_args.keys.key_file, "FILE",
           "the secret of a keyed filter"),
    BINARY_OPTION,
    THREADS_OPTION(unique_args.threads),
    WAIT_OPTION,
    QUIET_OPTION("print only the lines: no report at the end, no warnings"),
    FLAG("json", 0, unique_args.json,
         "report at the end as JSON, on standard error"),
    { 0 },
};

static const struct example unique_examples[] = {
    { "bloomery unique access.log", "without the lines that repeat" },
    { "tail -F app.log | bloomery unique --skip-bad --regex 'ERROR (.*)'",
      "each error once, as it comes" },
    { "bloomery unique --filter seen.bly today.txt > new.txt",
      "what no earlier run has printed" },
    { "bloomery unique --csv email --items 20M *.csv.gz > people.csv",
      "one row per address, in 37 MiB" },
    { 0 },
};

const struct command cmd_unique = {
    .name = "unique",
    .usage = "[--filter FILE] [OPTION]... [INPUT]...",
    .summary = "print each line of a stream the first time it comes",
    .about =
        "Reads the lines of the input files, or of standard input, and prints "
        "each one the first time it comes, in their order and as soon as it "
        "has been read: what awk '!seen[$0]++' does, in a fortieth of the "
        "memory and without a sort.\n\n"
        "A repeated line is never printed. A line that comes for the first "
        "time is swallowed if the filter takes it for a known one; at the end "
        "an estimate on standard error says how many were.\n\n" SELECT_ABOUT
        " The whole line is printed, the first one of its key; of "
        "CSV also the header of the first file.\n\n"
        "With --items the filter is made for that many different lines, and "
        "takes 2 bytes for each at the default rate of 0.1 %. Without, it "
        "grows with them, in up to 5 bytes each, and the rate is kept all the "
        "same. Options that size it have no effect on a filter that is there "
        "already. With --kind aging lines are forgotten after some time.\n\n"
        "With --filter lines of earlier runs count as seen. The file is "
        "replaced at the end, every 30 seconds on the way, and when the "
        "command is interrupted (SIGINT, SIGTERM, SIGHUP). A line is "
        "remembered only after it was printed: if the command is killed, some "
        "lines may be printed again by the next run, but none is lost. "
        "Another command that changes the file meanwhile waits (--wait).\n\n"
        "The exit status is 0, and 2 after an error.",
    .options = unique_options,
    .examples = unique_examples,
    .reports = REPORTS({ "on standard error", unique_fields, ONE }),
    .run = unique_run,
};
