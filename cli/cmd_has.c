/*
 * cmd_has.c - which keys may be in the filter?
 *
 * The filter is asked where it lies in its file; where it is large, only the
 * pages that keys fall on are read. Options and exit status are grep's.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/rows.h"
#include "io/foreign.h"
#include "report/show.h"

static struct {
    struct keys keys;
    struct checking check;
    uint64_t threads;
    struct foreign_args foreign;
    bool invert, count, json, parts;
} has_args;

static bly_status has_batch(struct job *job, struct batch *b)
{
    bly_has_hashes(job->ctx, b->hashes, b->n, b->picked);
    if (has_args.invert)
        batch_invert(b);
    return bly_damage(job->ctx);
}

/* ------------------------------------------------ of another system */

static bly_status has_foreign_batch(struct job *job, struct batch *b)
{
    const bly_status st = foreign_ask(job->ctx, b);
    if (!st && has_args.invert)
        batch_invert(b);
    return st;
}

/* What is said of a key that is in part i: its line, a tab, the part's name. */
static bool part_line(const bly_foreign *f, size_t i, const bly_bytes *line,
                      struct block *to)
{
    char name[BLY_PART_NAME];
    bly_foreign_part_name(f, i, name);
    text_clean(name, strlen(name), false); /* it is the file's, not the key's */
    const char end = has_args.keys.nul ? '\0' : '\n';
    return block_put(to, line->ptr, line->len) && block_put(to, "\t", 1) &&
           block_put(to, name, strlen(name)) && block_put(to, &end, 1);
}

/* The parts that each picked key may be in. */
static bly_status has_parts_batch(struct job *job, struct batch *b)
{
    const bly_foreign *const f = job->ctx;
    const size_t nparts = bly_foreign_nparts(f);
    uint64_t *const in = calloc(BLY_BITMAP_WORDS(nparts) + 1, sizeof *in);
    bly_status st = in ? foreign_ask(f, b) : BLY_ENOMEM;
    for (size_t i = 0; i < b->n && !st; i++) {
        if (!(b->picked[i / 64] >> i % 64 & 1))
            continue;
        st = bly_foreign_where(f, b->keys[i], in);
        for (size_t p = 0; p < nparts && !st; p++)
            if ((in[p / 64] >> p % 64 & 1) &&
                !part_line(f, p, &b->lines[i], b->text))
                st = BLY_ENOMEM;
    }
    free(in);
    return st;
}

/* --------------------------------------------------------------- running */

struct answered {
    uint64_t asked, maybe;
};

static const struct field answered_fields[] = {
    FIELD(struct answered, asked, NONE, "keys that were asked for"),
    FIELD(struct answered, maybe, NONE, "of them, those that may be in it"),
    { 0 },
};

static int has_report(const struct job *job)
{
    const struct answered r = { job->nkeys, has_args.invert
                                                ? job->nkeys - job->npicked
                                                : job->npicked };
    if (has_args.json && !quiet)
        report(stdout, true, answered_fields, &r, NULL);
    else if (has_args.count && !quiet)
        printf("%llu\n", (unsigned long long)job->npicked);
    return job->trouble ? TROUBLE : job->npicked ? YES : NO;
}

static int has_foreign(struct foreign_file *file, const struct list *operands,
                       struct job *job)
{
    struct input in;
    const bool parts = has_args.parts && job->prints;
    if (!keys_input(&has_args.keys, operands, &in))
        return TROUBLE;
    job->batch = parts ? has_parts_batch : has_foreign_batch;
    job->prints &= !parts;
    job->writes = parts;
    job->ctx = file->f;
    job->path = operands->at[0];
    const bly_status st = pipeline_run(job, &in);
    input_close(&in);
    return st ? fail("%s", job->error) : has_report(job);
}

static int has_run(struct list *operands)
{
    const bool counts = has_args.count || has_args.json;
    struct job job = {
        .batch = has_batch,
        .prints = !counts && !quiet,
        .first_only = quiet,
        .goes_on = true,
        .terminator = has_args.keys.nul ? '\0' : '\n',
        .nthreads = thread_count(has_args.threads),
    };
    struct foreign_file file = { 0 };
    if (operands->n &&
        foreign_open(operands->at[0], &has_args.foreign, &file) != YES)
        return TROUBLE;
    if (file.f) {
        const int status = has_args.parts && has_args.invert
                               ? fail("--parts and --invert exclude each other")
                               : has_foreign(&file, operands, &job);
        foreign_close(&file);
        return status;
    }
    if (has_args.parts)
        return fail("--parts is for files of other systems");
    struct input in;
    bly_filter *const f =
        ask_begin(operands, &has_args.keys, &has_args.check, BLY_CAN(HAS), &in);
    if (!f)
        return TROUBLE;
    job.ctx = f;
    return ask_end(f, operands, &in, &job) ? has_report(&job) : TROUBLE;
}

static const struct opt has_options[] = {
    FLAG("invert", 'v', has_args.invert,
         "print the keys that are certainly not in the filter"),
    FLAG("count", 'c', has_args.count,
         "print only how many keys would be printed"),
    QUIET_OPTION(
        "print nothing, not even with --json, and stop at the first key that "
        "would be printed"),
    KEYS_OPTIONS(has_args.keys),
    THREADS_OPTION(has_args.threads),
    CHECK_OPTIONS(has_args.check),
    FORMAT_READ_OPTIONS(has_args.foreign),
    FLAG("parts", 'P', has_args.parts,
         "for a file of another system with several filters: print one line "
         "for each filter that may have the key: the key, a tab and the name "
         "of the filter"),
    FLAG("json", 0, has_args.json,
         "print {\"asked\":N,\"maybe\":M} and no keys"),
    { 0 },
};

static const struct example has_examples[] = {
    { "bloomery has words.bly apple aple", "prints apple" },
    { "tr -cs A-Za-z '\\n' < letter.txt | sort -u | bloomery has -v words.bly",
      "the words of a letter that are not in the dictionary" },
    { "bloomery has -q leaked.bly \"$word\" && echo choose another",
      "the exit status tells" },
    { "bloomery has --parts .git/objects/info/commit-graph Makefile",
      "the commits that may have changed it" },
    { 0 },
};

const struct command cmd_has = {
    .name = "has",
    .usage = "FILTER [KEY]... [-f FILE]... [OPTION]...",
    .summary = "print the keys that may be in a filter",
    .about = "Queries the keys given as arguments, or the lines of the files "
             "given with -f, or those of standard input, and prints those that "
             "may be in the filter, in their order. A key that was added is "
             "always printed; one that was not is printed at the rate that the "
             "filter was made for. (bloomery kinds names the kinds whose "
             "\"no\" is only likely.)\n\n" CHECK_ABOUT "\n\n"
             "A filter of another system (bloomery formats) is queried in the "
             "same way, with the hash of that system.\n\n" SELECT_ABOUT
             " Whole lines are printed, as they were read.\n\n"
             "The exit status is 0 if a key was printed (or would have been), "
             "1 if none was, and 2 after an error.",
    .options = has_options,
    .examples = has_examples,
    .reports = REPORTS({ "", answered_fields, ONE }),
    .run = has_run,
};
