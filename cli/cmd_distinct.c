/*
 * cmd_distinct.c - how many different keys does a stream have?
 *
 * HyperLogLog: at most 12 KiB for each input, whatever its size. An input is a
 * list of keys or a sketch that was saved; each has a sketch of its own, and
 * that of all is merged from them, so that a key in two inputs counts once.
 * Workers hash, and one at a time adds, which takes a tenth of the time.
 */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "cli/rows.h"
#include "io/files.h"
#include "io/paths.h"
#include "io/sketch_files.h"
#include "report/out.h"
#include "report/show.h"

static struct {
    struct keys keys;
    struct sketch_args sketch;
    uint64_t threads, precision;
    bool each, json, in_all, minus;
} distinct_args;

struct distinct {
    const char *file;
    uint64_t keys, distinct;
    double deviation; /* relative */
    bool saved;
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

/* What --and and --minus add: of the keys of all inputs, those that count. */
struct distinct_part {
    const char *operation;
    uint64_t result, most;
    double result_sd;
    bool is_clear, is_finest;
};

static const struct field part_fields[] = {
    FIELD(struct distinct_part, operation, NONE, "\"and\" or \"minus\""),
    FIELD(struct distinct_part, result, NONE,
          "how many keys are in all inputs (and), or in the first one only "
          "(minus): an estimate"),
    FIELD(struct distinct_part, result_sd, NONE,
          "standard deviation of that, in keys"),
    NAMED(struct distinct_part, "at_most", most, NONE,
          "two deviations above it: 19 of 20 times there are no more"),
    NAMED(struct distinct_part, "clear", is_clear, NONE,
          "whether it is more than two deviations, and so more than none, or "
          "is known to a key"),
    { 0 },
};

struct distinct_all {
    struct distinct all;
    const struct distinct *inputs;
    size_t n;
    struct distinct_part part;
};

#define EACH_INPUT                                                   \
    LIST(struct distinct_all, "inputs", inputs, n, AT, input_fields, \
         "each input")

static const struct field each_fields[] = {
    MEMBERS(struct distinct_all, all, NONE, distinct_fields),
    EACH_INPUT,
    { 0 },
};
static const struct field set_fields[] = {
    MEMBERS(struct distinct_all, all, NONE, distinct_fields),
    MEMBERS(struct distinct_all, part, NONE, part_fields),
    EACH_INPUT,
    { 0 },
};

/* ------------------------------------------------------------------ reading */

/* How sketches of this run are made: by the options, or like the first that was
 * saved, in `like`. */
struct distinct_model {
    unsigned precision;
    bly_hasher hasher;
    bly_keying keying;
    const char *like;
    bool blind; /* that one is keyed, and its secret is not known */
};

static bool model_of_options(struct distinct_model *m)
{
    const bly_spec spec = { .seed = distinct_args.sketch.seed,
                            .secret = distinct_args.sketch.secret };
    const uint64_t p = distinct_args.precision;
    bly_hll *probe;
    if (bly_hasher_for(&spec, &m->hasher)) {
        fail_library();
        return false;
    }
    m->precision = (unsigned)(p < 99 ? p : 99);
    m->keying = keys_keying(&distinct_args.keys);
    if (bly_hll_new(m->precision, NULL, &probe)) {
        fail("--precision: %s", bly_error());
        return false;
    }
    bly_hll_free(probe);
    return true;
}

/* What is saved is not what an option says: an error where both matter. */
static void model_like(const bly_hll *h, const char *path,
                       struct distinct_model *m)
{
    const bly_hasher *const hasher = bly_hll_hasher(h);
    if (!distinct_args.precision)
        m->precision = bly_hll_precision(h);
    m->blind = !hasher;
    if (hasher && !distinct_args.sketch.seed)
        m->hasher = *hasher;
    m->keying = bly_hll_keying(h);
    m->like = path;
}

static bool hll_made(const struct distinct_model *m, bly_stored *out)
{
    *out = (bly_stored){ .type = BLY_STORED_HLL };
    if (bly_hll_new(m->precision, NULL, &out->hll) ||
        bly_hll_set_hasher(out->hll, &m->hasher)) {
        fail_library();
        bly_stored_free(out);
        return false;
    }
    bly_hll_set_keying(out->hll, m->keying);
    return true;
}

struct distinct_run {
    bly_hll *sketch;
    pthread_mutex_t adding;
};

static bly_status distinct_batch(struct job *job, struct batch *b)
{
    struct distinct_run *const r = job->ctx;
    pthread_mutex_lock(&r->adding);
    const bly_status st = bly_hll_add(r->sketch, b->hashes, b->n);
    pthread_mutex_unlock(&r->adding);
    return st;
}

static struct distinct distinct_of(const bly_hll *sketch, const char *file)
{
    double sd;
    const double n = bly_hll_estimate(sketch, &sd);
    const uint64_t nkeys = bly_hll_total(sketch);
    struct distinct d = { .file = file,
                          .keys = nkeys,
                          .distinct = (uint64_t)llround(n),
                          .deviation = n > 0 ? sd / n : 0 };
    if (d.distinct > nkeys) /* there cannot be more */
        d.distinct = nkeys;
    return d;
}

/* Read a list of keys into a sketch of its own. False, with the reason printed.
 */
static bool read_keys(const char *name, const struct distinct_model *m,
                      bly_stored *out, bool *trouble)
{
    struct input in;
    if (m->blind && !sketch_can_hash(NULL, m->like))
        return false;
    if (!hll_made(m, out))
        return false;
    bool ok = keys_files(&distinct_args.keys, &name, 1, &in);
    if (ok && m->like && !keys_follow(m->keying, m->like, &in)) {
        input_close(&in);
        ok = false;
    }
    if (!ok) {
        bly_stored_free(out);
        return false;
    }
    struct distinct_run r = { out->hll, PTHREAD_MUTEX_INITIALIZER };
    struct job job = {
        .batch = distinct_batch,
        .hasher = &m->hasher,
        .goes_on = true,
        .nthreads = thread_count(distinct_args.threads),
        .ctx = &r,
    };
    ok = !pipeline_run(&job, &in);
    input_close(&in);
    if (!ok) {
        fail("%s", job.error);
        bly_stored_free(out);
    }
    *trouble |= job.trouble;
    return ok;
}

/* ------------------------------------------------------------------ results */

/* Several inputs: their names and sketches. */
struct distinct_inputs {
    const char *const *names;
    size_t n;
    bly_stored *sketches;
    struct distinct *told;
    bly_stored all;
};

/* What is in --into, with what was read. */
static bly_status distinct_into(bly_stored *s, void *ctx)
{
    struct distinct_inputs *const in = ctx;
    if (s->type != BLY_STORED_HLL)
        return bly_stored_merge(s, &in->all); /* says why not */
    const bly_status st = bly_stored_merge(s, &in->all);
    if (!st)
        in->told[in->n] = distinct_of(s->hll, NULL);
    return st;
}

static int distinct_saved(struct distinct_inputs *in,
                          const struct distinct_model *m)
{
    const struct sketch_args *const a = &distinct_args.sketch;
    if (a->output)
        return sketch_save(&in->all, a->output);
    if (!a->into)
        return YES;
    const bly_access how = { .secret = NULL,
                             .blind = true,
                             .wait = wait_for_lock };
    bly_stored none;
    if (!hll_made(m, &none))
        return TROUBLE;
    const bly_status st =
        bly_stored_update(a->into, &how, &none, distinct_into, in);
    bly_stored_free(&none);
    if (st == BLY_EUNFIT)
        return fail("%s and what was read: %s", a->into, bly_error());
    return st ? fail_library() : YES;
}

/* The part of the keys that --and or --minus asks for. */
static bool distinct_part(const struct distinct_inputs *in,
                          struct distinct_part *out)
{
    const bly_hll **const h = calloc(in->n, sizeof *h);
    double n = 0, sd = 0;
    if (!h) {
        fail("out of memory");
        return false;
    }
    for (size_t i = 0; i < in->n; i++)
        h[i] = in->sketches[i].hll;
    const bly_status st = distinct_args.minus
                              ? bly_hll_only(h[0], h + 1, in->n - 1, &n, &sd)
                              : bly_hll_common(h, in->n, &n, &sd);
    free((void *)(uintptr_t)h);
    if (st) {
        fail("%s: %s", distinct_args.minus ? "--minus" : "--and", bly_error());
        return false;
    }
    *out = (struct distinct_part){
        .operation = distinct_args.minus ? "minus" : "and",
        .result = (uint64_t)llround(n),
        .result_sd = sd,
        .most = (uint64_t)llround(n + 2 * sd),
        .is_clear = n > 2 * sd || sd < 0.5,
        .is_finest = bly_hll_precision(in->all.hll) == 18,
    };
    return true;
}

static void print_part(FILE *to, const struct distinct_all *d)
{
    const struct distinct_part *const p = &d->part;
    char where[512] = "in all inputs";
    if (distinct_args.minus)
        snprintf(where, sizeof where, "in %s and not in %s",
                 show_name(d->inputs[0].file),
                 d->n == 2 ? show_name(d->inputs[1].file) : "the others");
    fprintf(to, "%llu\n", (unsigned long long)p->result);
    if (p->result_sd < 0.5)
        note("%llu of %llu different keys are %s, nearly certainly",
             (unsigned long long)p->result, (unsigned long long)d->all.distinct,
             where);
    else if (p->is_clear)
        note(
            "%llu of %llu different keys are %s, standard error %.0f (%.2g %%)",
            (unsigned long long)p->result, (unsigned long long)d->all.distinct,
            where, p->result_sd, 100 * p->result_sd / (double)p->result);
    else
        note("hardly any of %llu different keys are %s: too few to be told "
             "from none, and at most some %llu%s",
             (unsigned long long)d->all.distinct, where,
             (unsigned long long)p->most,
             p->is_finest ? "" : "; a higher --precision sees more");
}

static void distinct_print(FILE *to, const struct distinct_all *d)
{
    const bool part = d->part.operation != NULL;
    if (distinct_args.json) {
        if (part)
            report(stdout, true, set_fields, d, NULL);
        else if (distinct_args.each)
            report(stdout, true, each_fields, d, NULL);
        else
            report(stdout, true, distinct_fields, &d->all, NULL);
        return;
    }
    for (size_t i = 0; distinct_args.each && i < d->n; i++) {
        fprintf(to, "%llu\t", (unsigned long long)d->inputs[i].distinct);
        if (to == stdout)
            print_key(d->inputs[i].file, strlen(d->inputs[i].file));
        else
            fputs(show_name(d->inputs[i].file), to);
        putc('\n', to);
    }
    if (part) {
        print_part(to, d);
        return;
    }
    fprintf(to, distinct_args.each ? "%llu\tall\n" : "%llu\n",
            (unsigned long long)d->all.distinct);
    note("%llu different keys of %llu, standard error %.2g %%",
         (unsigned long long)d->all.distinct, (unsigned long long)d->all.keys,
         100 * d->all.deviation);
}

/* ------------------------------------------------------------------ running */

/* Open the saved inputs, and learn from the first, or from --into, how sketches
 * are to be made. False, with the reason printed. */
static bool open_saved(struct distinct_inputs *in, struct distinct_model *m)
{
    const struct sketch_args *const a = &distinct_args.sketch;
    if (a->into && sketch_type(a->into)) {
        bly_stored s;
        if (!sketch_open(a->into, BLY_STORED_HLL, a->secret, &s))
            return false;
        model_like(s.hll, a->into, m);
        bly_stored_free(&s);
    }
    for (size_t i = 0; i < in->n; i++) {
        if (binary_input || !sketch_type(in->names[i]))
            continue;
        if (!sketch_open(in->names[i], BLY_STORED_HLL, a->secret,
                         &in->sketches[i]))
            return false;
        in->told[i].saved = true;
        if (!m->like)
            model_like(in->sketches[i].hll, in->names[i], m);
    }
    return true;
}

/* All inputs, each in its sketch, and the sketch of all. */
static bool read_inputs(struct distinct_inputs *in, bool *trouble,
                        struct distinct_model *m)
{
    const char *first = NULL;
    if (!open_saved(in, m))
        return false;
    for (size_t i = 0; i < in->n; i++) {
        const bool saved = in->told[i].saved;
        bly_stored *const s = &in->sketches[i];
        if (!saved && !read_keys(in->names[i], m, s, trouble))
            return false;
        in->told[i] = distinct_of(s->hll, in->names[i]);
        /* The sketch of all begins as one of them, which may be keyed. */
        if (!first) {
            in->all = (bly_stored){ .type = BLY_STORED_HLL };
            if (bly_hll_copy(s->hll, &in->all.hll)) {
                fail_library();
                return false;
            }
            first = in->names[i];
        } else if (!sketch_merge(&in->all, first, s, in->names[i])) {
            return false;
        }
    }
    return true;
}

static int distinct_inputs(struct distinct_inputs *in)
{
    struct distinct_model m = { 0 };
    struct distinct_all d = { .inputs = in->told, .n = in->n };
    const char *const output = distinct_args.sketch.output;
    bool trouble = false;
    if (!model_of_options(&m) || !read_inputs(in, &trouble, &m))
        return TROUBLE;
    in->told[in->n] = distinct_of(in->all.hll, NULL);
    if ((distinct_args.in_all || distinct_args.minus) &&
        !distinct_part(in, &d.part))
        return TROUBLE;
    FILE *const to = output ? report_to(output) : stdout;
    /* What was read in part is not kept: nobody could tell later. */
    if (!trouble && distinct_saved(in, &m) != YES)
        return TROUBLE;
    if (trouble && (output || distinct_args.sketch.into))
        warn("not saved, since not all keys could be read");
    d.all = in->told[in->n];
    distinct_print(to, &d);
    return trouble ? TROUBLE : YES;
}

static int distinct_run(struct list *operands)
{
    static const char *const standard_input[] = { "-" };
    const bool parts = distinct_args.in_all || distinct_args.minus;
    struct distinct_inputs in = {
        .names = operands->n ? operands->at : standard_input,
        .n = operands->n ? operands->n : 1,
    };
    if (distinct_args.in_all && distinct_args.minus)
        return fail("--and and --minus exclude each other");
    if (parts && in.n < 2)
        return fail("%s compares inputs, and needs two at least",
                    distinct_args.minus ? "--minus" : "--and");
    if (parts && (distinct_args.sketch.output || distinct_args.sketch.into))
        return fail("only the sketch of all keys can be saved; leave out %s",
                    distinct_args.minus ? "--minus" : "--and");
    if (!sketch_args_check(&distinct_args.sketch, &distinct_args.keys, operands,
                           distinct_args.json))
        return TROUBLE;
    in.sketches = calloc(in.n, sizeof *in.sketches);
    in.told = calloc(in.n + 1, sizeof *in.told); /* and all */
    const int status =
        in.sketches && in.told ? distinct_inputs(&in) : fail("out of memory");
    for (size_t i = 0; in.sketches && i < in.n; i++)
        bly_stored_free(&in.sketches[i]);
    bly_stored_free(&in.all);
    free(in.sketches);
    free(in.told);
    secret_wipe();
    return status;
}

static const struct opt distinct_options[] = {
    FLAG("each", 0, distinct_args.each,
         "also print the number for each input, before that for all"),
    FLAG("and", 0, distinct_args.in_all,
         "how many keys are in all inputs; at most 8"),
    FLAG("minus", 0, distinct_args.minus,
         "how many keys of the first input are in none of the others: --minus "
         "A B is A without B"),
    SKETCH_OPTIONS(distinct_args),
    { "precision", 0, OPT_POSITIVE, &distinct_args.precision, "P",
      "2^P registers for a sketch, from 4 to 18; 14 if not given. The "
      "deviation is 104 % divided by the root of that: 0.8 % at 14, 0.2 % at "
      "18" },
    FLAG("null", '0', distinct_args.keys.nul,
         "keys end at NUL bytes, not at newlines"),
    BINARY_OPTION,
    SELECT_OPTIONS(distinct_args.keys),
    NORMAL_OPTIONS(distinct_args.keys),
    THREADS_OPTION(distinct_args.threads),
    WAIT_OPTION,
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
    { "bloomery distinct monday.txt -o monday.bly",
      "save the sketch, of some KB, for later" },
    { "bloomery distinct monday.bly tuesday.bly",
      "how many there were on both days, from what was saved" },
    { "bloomery distinct --and monday.bly tuesday.bly",
      "how many came on both days" },
    { "bloomery distinct --minus tuesday.bly monday.bly",
      "how many came on Tuesday for the first time" },
    { "bloomery distinct --into week.bly today.txt",
      "count on: so many came this week" },
    { 0 },
};

const struct command cmd_distinct = {
    .name = "distinct",
    .usage = "[OPTION]... [INPUT]...",
    .summary = "estimate how many different keys a stream has",
    .about =
        "Reads keys from the input files, or from standard input, and prints "
        "how many different ones there are, as sort -u and wc -l would, but in "
        "12 KiB of memory and without a sort. A key that is in several inputs "
        "counts once. An input may also be a sketch that was saved with -o or "
        "--into: its keys count, and are not read again.\n\n"
        "The number is an estimate. Its standard deviation is 0.8 %, and less "
        "for fewer than 30,000 keys: two runs of three are closer than that, "
        "and 19 of 20 closer than twice that. Up to 1,500 different keys it is "
        "nearly always exact. The deviation is printed on standard error, "
        "and with --json.\n\n"
        "With --and or --minus, the number is computed from the sizes of "
        "unions, and has their errors: a few keys that two large inputs have "
        "in common cannot be seen. The deviation says so, and a result below "
        "two deviations is reported as such.\n\n"
        "Sketches go together only if they agree in precision, in --seed or "
        "--key-file, and in how keys were normalised; keys that are read "
        "beside a saved sketch follow it. docs/distinct.md says "
        "more.\n\n" SELECT_ABOUT,
    .options = distinct_options,
    .examples = distinct_examples,
    .reports = REPORTS({ "", distinct_fields, ONE },
                       { "with --each", each_fields, ONE },
                       { "with --and or --minus", set_fields, ONE }),
    .run = distinct_run,
};
