/*
 * cmd_count.c - how often was each key added?
 */
#include <math.h>
#include <string.h>

#include "cli/rows.h"
#include "io/filters.h"
#include "io/foreign_files.h"
#include "io/keys.h"
#include "io/values.h"

static struct {
    struct keys keys;
    struct foreign_args foreign;
    struct checking check;
    uint64_t threads, min;
    bool json;
} count_args;

/* What the filter is asked with. */
struct counting {
    const bly_filter *f;
    const bly_foreign *foreign; /* or this one, of another system */
    double ceiling; /* counts at or above are not told; NAN: not known */
    char past[32];  /* how people are told of them: ">=15" */
    struct pair_style style;
};

static bool count_text(const void *ctx, uint64_t count, struct block *to)
{
    const struct counting *const c = ctx;
    return count == UINT64_MAX ? block_put(to, c->past, strlen(c->past))
                               : number_put(to, count);
}

static const struct field count_fields[] = {
    PAIR_KEY,
    NAMED(struct pair, "count", number, NONE, "how often it was added"),
    { 0 },
};

static const struct field many_fields[] = {
    PAIR_KEY,
    NAMED(struct pair, "count", number, MAYBE, "null"),
    NAMED(struct pair, "at_least", least, MAYBE,
          "the count that the filter cannot go beyond"),
    { 0 },
};

static const struct field *count_pair(const void *ctx, struct pair *p)
{
    const struct counting *const c = ctx;
    if (*p->number != UINT64_MAX)
        return count_fields;
    p->number = NULL;
    p->least = c->ceiling;
    return many_fields;
}

static bly_status count_batch(struct job *job, struct batch *b)
{
    const struct counting *const c = job->ctx;
    uint64_t counts[BATCH];
    const bly_status st =
        c->foreign ? bly_foreign_count(c->foreign, b->keys, b->n, counts)
                   : bly_count_hashes(c->f, b->hashes, b->n, counts);
    if (st)
        return st;
    for (size_t i = 0; i < b->n; i++)
        if (counts[i] >= count_args.min)
            b->picked[i / 64] |= UINT64_C(1) << i % 64;
    return pairs_print(&c->style, b, counts);
}

static struct pair_style count_style(const struct counting *c)
{
    return (struct pair_style){
        .json = count_args.json,
        .end = count_args.keys.nul ? '\0' : '\n',
        .text = count_text,
        .fields = count_pair,
        .ctx = c,
    };
}

/* A file of another system that counts, in file->f. */
static int count_foreign(const struct list *operands, const bly_foreign *f)
{
    struct input in;
    struct counting c = { .foreign = f, .ceiling = NAN };
    struct job job = { .batch = count_batch,
                       .writes = true,
                       .goes_on = true,
                       .nthreads = thread_count(count_args.threads),
                       .ctx = &c };
    snprintf(c.past, sizeof c.past, "\tmany");
    c.style = count_style(&c);
    if (!keys_input(&count_args.keys, operands, &in))
        return TROUBLE;
    const bly_status st = pipeline_run(&job, &in);
    input_close(&in);
    if (st)
        return fail("%s", job.error);
    return job.trouble ? TROUBLE : job.npicked ? YES : NO;
}

static int count_run(struct list *operands)
{
    struct input in;
    struct foreign_file file = { 0 };
    bly_format_info info = { 0 };
    if (operands->n && strcmp(operands->at[0], "-") != 0) {
        if (foreign_open(operands->at[0], &count_args.foreign, &file) != YES)
            return TROUBLE;
        if (file.f)
            bly_format_named(bly_foreign_format(file.f), &info);
        const int status = info.can & BLY_FORMAT_COUNT
                               ? count_foreign(operands, file.f)
                               : TROUBLE;
        foreign_close(&file);
        if (info.can & BLY_FORMAT_COUNT)
            return status;
    }
    bly_filter *const f = ask_begin(operands, &count_args.keys,
                                    &count_args.check, BLY_CAN(COUNT), &in);
    if (!f)
        return TROUBLE;

    bly_stats s;
    bly_peek(f, &s);
    struct counting c = { .f = f, .ceiling = fact_value(&s, "ceiling") };
    if (isnan(c.ceiling))
        snprintf(c.past, sizeof c.past, "\tmany");
    else
        snprintf(c.past, sizeof c.past, "\t>=%.0f", c.ceiling);
    c.style = count_style(&c);
    struct job job = {
        .batch = count_batch,
        .writes = true,
        .goes_on = true,
        .nthreads = thread_count(count_args.threads),
        .ctx = &c,
    };
    if (!ask_end(f, operands, &in, &job))
        return TROUBLE;
    return job.trouble ? TROUBLE : job.npicked ? YES : NO;
}

static const struct opt count_options[] = {
    { "min", 0, OPT_COUNT, &count_args.min, "T",
      "print only keys that were added at least T times, as far as the filter "
      "can tell" },
    KEYS_OPTIONS(count_args.keys),
    THREADS_OPTION(count_args.threads),
    FORMAT_READ_OPTIONS(count_args.foreign),
    CHECK_OPTIONS(count_args.check),
    FLAG("json", 0, count_args.json,
         "print {\"key\":..,\"count\":N}, one line per key"),
    { 0 },
};

static const struct example count_examples[] = {
    { "bloomery count visits.bly 192.0.2.7", "how often did it come?" },
    { "sort -u today.txt | bloomery count --min 100 visits.bly",
      "those that came a hundred times" },
    { 0 },
};

const struct command cmd_count = {
    .name = "count",
    .usage = "FILTER [KEY]... [-f FILE]... [OPTION]...",
    .summary = "estimate how often each key was added",
    .about =
        "Prints, for the keys given as arguments, or for the lines of the "
        "files given with -f, or for those of standard input, in their order: "
        "the key, a tab, and how often it was added as far as the filter can "
        "tell. Most kinds that count never report too few; bloomery kinds "
        "lists them. Dumps of CF.* in Redis can be asked too.\n\n"
        "A count that is too large for the filter is printed as >=15, say, or "
        "as \"many\" if the kind has no such limit; with --json as "
        "\"count\":null,\"at_least\":15 (or null). It passes every "
        "--min.\n\n" SELECT_ABOUT "\n\n" CHECK_ABOUT "\n\n"
        "The exit status is 0 if a key was printed, 1 if none was, and 2 after "
        "an error.",
    .options = count_options,
    .examples = count_examples,
    .reports =
        REPORTS({ "", count_fields, LINES },
                { "for a count too large for the filter", many_fields, LINES }),
    .run = count_run,
};
