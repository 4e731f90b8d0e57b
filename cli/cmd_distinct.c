/*
 * cmd_distinct.c - how many different keys does a stream have?
 *
 * HyperLogLog: 16 KiB for each input, whatever its size. Each input has a
 * sketch of its own, and that of all is merged from them, so that a key in two
 * inputs counts once. Workers hash, and one at a time adds, which takes a tenth
 * of the time.
 */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include <bloomery/sketch.h>

#include "cli/rows.h"
#include "io/keys.h"
#include "report/out.h"

static struct {
    struct keys keys;
    uint64_t threads, precision;
    bool each, json;
} distinct_args = { .precision = 14 };

struct distinct {
    const char *file;
    uint64_t keys, distinct;
    double deviation; /* relative */
};

#define DISTINCT_FIELDS                                                     \
    FIELD(struct distinct, keys, NONE, "keys that were read"),              \
        FIELD(struct distinct, distinct, NONE,                              \
              "how many of them are different: an estimate"),               \
        FIELD(struct distinct, deviation, NONE,                             \
              "standard deviation of the estimate, as a share of it: 0.01 " \
              "is 1 %")

static const struct field distinct_fields[] = { DISTINCT_FIELDS, { 0 } };
static const struct field input_fields[] = {
    FIELD(struct distinct, file, NONE, "the input"),
    DISTINCT_FIELDS,
    { 0 },
};

struct distinct_all {
    struct distinct all;
    const struct distinct *inputs;
    size_t n;
};

static const struct field each_fields[] = {
    MEMBERS(struct distinct_all, all, NONE, distinct_fields),
    LIST(struct distinct_all, "inputs", inputs, n, AT, input_fields,
         "each input"),
    { 0 },
};

struct distinct_run {
    bly_hll *sketch;
    pthread_mutex_t adding;
};

static bly_status distinct_batch(struct job *job, struct batch *b)
{
    struct distinct_run *const r = job->ctx;
    pthread_mutex_lock(&r->adding);
    bly_hll_add(r->sketch, b->hashes, b->n);
    pthread_mutex_unlock(&r->adding);
    return BLY_OK;
}

static struct distinct distinct_of(const bly_hll *sketch, const char *file,
                                   uint64_t nkeys)
{
    double sd;
    const double n = bly_hll_estimate(sketch, &sd);
    struct distinct d = { file, nkeys, (uint64_t)llround(n),
                          n > 0 ? sd / n : 0 };
    if (d.distinct > nkeys) /* there cannot be more */
        d.distinct = nkeys;
    return d;
}

/* Read one input into a sketch of its own, and that into `all`. False, with the
 * reason printed. */
static bool distinct_input(const char *name, bly_hll *all, struct distinct *out,
                           bool *trouble)
{
    struct distinct_run r = { .adding = PTHREAD_MUTEX_INITIALIZER };
    bly_hasher hasher;
    struct input in;
    const bly_spec spec = { 0 };
    if (bly_hasher_for(&spec, &hasher) ||
        bly_hll_new((unsigned)distinct_args.precision, NULL, &r.sketch)) {
        fail_library();
        return false;
    }
    bool ok = keys_files(&distinct_args.keys, &name, 1, &in);
    if (ok) {
        struct job job = {
            .batch = distinct_batch,
            .hasher = &hasher,
            .goes_on = true,
            .nthreads = thread_count(distinct_args.threads),
            .ctx = &r,
        };
        ok = !pipeline_run(&job, &in);
        input_close(&in);
        if (!ok)
            fail("%s", job.error);
        *trouble |= job.trouble;
        *out = distinct_of(r.sketch, name, job.nkeys);
    }
    if (ok && bly_hll_merge(all, r.sketch)) {
        fail_library();
        ok = false;
    }
    bly_hll_free(r.sketch);
    return ok;
}

static void distinct_print(const struct distinct_all *d)
{
    if (distinct_args.json) {
        if (distinct_args.each)
            report(stdout, true, each_fields, d, NULL);
        else
            report(stdout, true, distinct_fields, &d->all, NULL);
        return;
    }
    for (size_t i = 0; distinct_args.each && i < d->n; i++) {
        printf("%llu\t", (unsigned long long)d->inputs[i].distinct);
        print_key(d->inputs[i].file, strlen(d->inputs[i].file));
        putchar('\n');
    }
    if (distinct_args.each)
        printf("%llu\tall\n", (unsigned long long)d->all.distinct);
    else
        printf("%llu\n", (unsigned long long)d->all.distinct);
    note("%llu different keys of %llu, give or take %.2g %%",
         (unsigned long long)d->all.distinct, (unsigned long long)d->all.keys,
         100 * d->all.deviation);
}

static int distinct_run(struct list *operands)
{
    static const char *const standard_input[] = { "-" };
    const char *const *const names =
        operands->n ? operands->at : standard_input;
    const size_t n = operands->n ? operands->n : 1;
    struct distinct *const inputs = calloc(n, sizeof *inputs);
    struct distinct_all d = { .inputs = inputs, .n = n };
    bly_hll *all;
    bool trouble = false, ok = true;
    if (!inputs)
        return fail("out of memory");
    if (bly_hll_new((unsigned)(distinct_args.precision < 99
                                   ? distinct_args.precision
                                   : 99),
                    NULL, &all)) {
        free(inputs);
        return fail("--precision: %s", bly_error());
    }
    uint64_t nkeys = 0;
    for (size_t i = 0; ok && i < n; i++) {
        ok = distinct_input(names[i], all, &inputs[i], &trouble);
        nkeys += inputs[i].keys;
    }
    if (ok) {
        d.all = distinct_of(all, NULL, nkeys);
        distinct_print(&d);
    }
    bly_hll_free(all);
    free(inputs);
    return !ok || trouble ? TROUBLE : YES;
}

static const struct opt distinct_options[] = {
    FLAG("each", 0, distinct_args.each,
         "also print the number for each input, before that for all"),
    { "precision", 0, OPT_POSITIVE, &distinct_args.precision, "P",
      "2^P bytes for a sketch, from 4 to 18; 14 if not given. The deviation is "
      "104 % divided by the root of that: 0.8 % at 14, 0.2 % at 18" },
    FLAG("null", '0', distinct_args.keys.nul,
         "keys end at NUL bytes, not at newlines"),
    BINARY_OPTION,
    SELECT_OPTIONS(distinct_args.keys),
    NORMAL_OPTIONS(distinct_args.keys),
    THREADS_OPTION(distinct_args.threads),
    QUIET_OPTION("print only the numbers, and not how exact they are"),
    FLAG("json", 0, distinct_args.json,
         "print {\"keys\":N,\"distinct\":N,\"deviation\":R}, and with --each "
         "also \"inputs\":[..]"),
    { 0 },
};

static const struct example distinct_examples[] = {
    { "bloomery distinct access.log.gz --field 1 -d ' '",
      "how many addresses came" },
    { "bloomery distinct --each monday.txt tuesday.txt",
      "on each day, and on both together" },
    { 0 },
};

const struct command cmd_distinct = {
    .name = "distinct",
    .usage = "[OPTION]... [INPUT]...",
    .summary = "estimate how many different keys a stream has",
    .about =
        "Reads keys from the input files, or from standard input, and prints "
        "how many different ones there are, as sort -u and wc -l would, but in "
        "16 KiB of memory and without a sort. A key that is in several inputs "
        "counts once.\n\n"
        "The number is an estimate. Its standard deviation is 0.8 %, and less "
        "for fewer than 30,000 keys: two runs of three are closer than that, "
        "and 19 of 20 closer than twice that. It is printed on standard error, "
        "and with --json.\n\n" SELECT_ABOUT,
    .options = distinct_options,
    .examples = distinct_examples,
    .reports = REPORTS({ "", distinct_fields, ONE },
                       { "with --each", each_fields, ONE }),
    .run = distinct_run,
};
