/*
 * cmd_has.c - which keys may be in the filter?
 *
 * The filter is asked where it lies in its file; where it is large, only the
 * pages that keys fall on are read. Options, output and exit status are grep's.
 * Keys that are printed as they came go through the pipeline's own fast path;
 * has_text.c makes everything else.
 */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cli/has_text.h"
#include "cli/range_text.h"
#include "cli/rows.h"
#include "io/filters.h"
#include "io/folders.h"
#include "io/foreign_files.h"
#include "io/live_files.h"
#include "report/out.h"
#include "report/show.h"

static struct {
    struct keys keys;
    struct checking check;
    uint64_t threads;
    struct foreign_args foreign;
    unsigned colour;
    bool invert, count, json, parts, are_ranges;
    bool names, no_names, numbers, list, recursive, live;
} has_args;

/* What all workers see. */
static struct {
    struct has_form form;
    struct input *in;
    _Atomic uint64_t *picked; /* of each file; NULL: nobody asks */
} has_state;

/* What comes of a batch whose keys were picked, or not. */
static bly_status has_answered(struct job *job, struct batch *b)
{
    uint64_t n = 0, before = 0;
    if (has_state.picked) {
        const size_t file = (size_t)(b->block->file - has_state.in->files);
        for (size_t i = 0; i < BLY_BITMAP_WORDS(b->n); i++)
            n += (uint64_t)__builtin_popcountll(b->picked[i]);
        before = atomic_fetch_add(&has_state.picked[file], n);
        if (!has_args.list || !n)
            return BLY_OK;
        /* The first one names the file, and the rest of it is left unread. */
        has_state.in->files[file].enough = true;
        return before || (has_put_name(&has_state.form, b->block->file,
                                       b->text) &&
                          block_put(b->text, "\n", 1))
                   ? BLY_OK
                   : BLY_ENOMEM;
    }
    return job->writes ? has_put_picked(&has_state.form, b) : BLY_OK;
}

static bly_status has_batch(struct job *job, struct batch *b)
{
    bly_has_hashes(job->ctx, b->hashes, b->n, b->picked);
    if (has_args.invert)
        batch_invert(b);
    const bly_status st = bly_damage(job->ctx);
    return st ? st : has_answered(job, b);
}

static bly_status has_live_batch(struct job *job, struct batch *b)
{
    const bly_status st = live_has(job->ctx, b->hashes, b->n, b->picked);
    if (!st && has_args.invert)
        batch_invert(b);
    return st ? st : has_answered(job, b);
}

/* ----------------------------------------------------------------- ranges */

static bly_status has_ranges_batch(struct job *job, struct batch *b)
{
    const bly_status st = ranges_ask(job->ctx, b);
    if (!st && has_args.invert)
        batch_invert(b);
    return st ? st : has_answered(job, b);
}

/* ------------------------------------------------ of another system */

static bly_status has_foreign_batch(struct job *job, struct batch *b)
{
    const bly_status st = foreign_ask(job->ctx, b);
    if (!st && has_args.invert)
        batch_invert(b);
    return st ? st : has_answered(job, b);
}

/* The line of key i, which is in part p: with a tab and the part's name. */
static bool part_line(const bly_foreign *f, size_t p, const struct batch *b,
                      size_t i)
{
    char name[BLY_PART_NAME];
    bly_foreign_part_name(f, p, name);
    text_clean(name, strlen(name), false); /* it is the file's, not the key's */
    return has_put(&has_state.form, b, i, name);
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
            if ((in[p / 64] >> p % 64 & 1) && !part_line(f, p, b, i))
                st = BLY_ENOMEM;
    }
    free(in);
    return st;
}

/* --------------------------------------------------------------- the form */

/* Do the options go together, and with where the keys come from? */
static bool has_options_fit(bool arguments)
{
    const char *const files = has_args.list    ? "-l"
                              : has_args.names ? "-H"
                                               : NULL;
    if (has_args.parts && has_args.invert)
        fail("--parts and --invert exclude each other");
    else if (has_args.names && has_args.no_names)
        fail("--with-filename and --no-filename exclude each other");
    else if (has_args.list && has_args.json)
        fail("-l and --json exclude each other; the objects of --json name "
             "their files");
    else if (has_args.keys.given.n &&
             (arguments || has_args.keys.files.n || has_args.recursive ||
              has_args.are_ranges))
        fail("--range asks for that range alone; for many, use --ranges "
             "with a range in each line of -f FILE or standard input");
    else if (files && arguments)
        fail("%s is for keys from files; use it with -f FILE or -r FOLDER",
             files);
    else
        return true;
    return false;
}

/* How keys are printed, now that it is known where they come from. */
static bool has_form_begin(struct job *job, struct input *in, bool parts)
{
    struct has_form *const form = &has_state.form;
    const bool totals = has_args.count && !has_args.list;
    form->terminator = job->terminator;
    if (out_is_terminal()) /* which shows no NUL */
        form->terminator = '\n';
    form->maybe = !has_args.invert;
    form->json = has_args.json;
    form->numbers = has_args.numbers;
    form->names = in->nfiles && !has_args.no_names &&
                  (has_args.names || has_args.recursive || in->nfiles > 1);
    form->colour = has_colour(has_args.colour) && !form->json;
    in->numbered = form->numbers || form->json;
    in->goes_on = true;
    in->skip_other = has_args.recursive;
    has_state.in = in;
    const bool by_file = has_args.list || (totals && has_args.names);
    if (by_file && !quiet) {
        has_state.picked = calloc(in->nfiles + 1, sizeof *has_state.picked);
        if (!has_state.picked) {
            fail("out of memory");
            return false;
        }
    }
    job->writes =
        !quiet && (has_args.list || (!totals && (parts || has_form_any(form))));
    job->prints = !quiet && !job->writes && !totals;
    job->clean = form->colour;
    return true;
}

/* ---------------------------------------------------------------- running */

struct answered {
    uint64_t asked, maybe;
    double by_mistake;
};

static const struct field answered_fields[] = {
    FIELD(struct answered, asked, NONE, "keys that were asked for"),
    FIELD(struct answered, maybe, NONE, "of them, those that may be in it"),
    FIELD(struct answered, by_mistake, MAYBE,
          "of those, about how many are not in it: from the filter's rate"),
    { 0 },
};

/* The rate of false positives among keys, and whether that is only a bound: all
 * of a large filter would have to be read. NAN: not known, as with a filter
 * that is never wrong within its universe, when nobody says how many of the
 * keys are from outside. */
#define HAS_STAT_BYTES ((uint64_t)64 << 20)

static double rate_of(const bly_filter *f, bool *bound)
{
    bly_stats s;
    bly_peek(f, &s);
    *bound = s.bytes > HAS_STAT_BYTES;
    if (strcmp(s.kind, "exact") == 0)
        return NAN;
    if (!*bound)
        bly_stat(f, &s);
    /* The rate of a filter of ranges is that of long ones. */
    const double point = fact_value(&s, "point_rate");
    return !isnan(point) ? point : *bound ? s.fpr_at_capacity : s.fpr_now;
}

/* Of n keys that were asked, `maybe` may be in it: about how many of these are
 * not? Those that are not are hit at the rate p: maybe = in + p (n - in), of
 * which the second part is wanted. */
static double mistakes_of(double n, double maybe, double p)
{
    return isnan(p) ? NAN : fmin(maybe, p * (n - maybe) / (1 - p));
}

/* If few of the lines are keys of the filter, many of those that are printed
 * are not. Whoever looks for a handful among millions of lines, or for
 * something that is never there, must be told. */
#define MISTAKES_SHARE 0.1 /* of what is printed: more is told */

static void tell_mistakes(const struct answered *r, double rate, bool bound)
{
    if (!(r->by_mistake >= 1 &&
          r->by_mistake >= MISTAKES_SHARE * (double)r->maybe))
        return;
    const double n = (double)r->asked;
    note("%llu of %llu keys may be in it; %s %.0f of them by mistake (%s). "
         "Build it with -p %g%% to make that rare",
         (unsigned long long)r->maybe, (unsigned long long)r->asked,
         bound ? "up to" : "about", r->by_mistake, show_rate(rate),
         100 * pow(10, floor(-log10(n))));
}

/* FILE:COUNT, for each file that could be read. */
static void report_by_file(const struct input *in)
{
    struct block line = { 0 };
    for (size_t i = 0; i < in->nfiles; i++) {
        line.len = 0;
        if (in->files[i].error[0] ||
            !has_put_name(&has_state.form, &in->files[i], &line))
            continue;
        print_key(line.at, line.len);
        printf(":%llu\n", (unsigned long long)has_state.picked[i]);
    }
    block_free(&line);
}

/* rate: of false positives; NAN if it is not known. */
static int has_report(const struct job *job, const struct input *in,
                      double rate, bool bound)
{
    struct answered r = { job->nkeys,
                          has_args.invert ? job->nkeys - job->npicked
                                          : job->npicked,
                          NAN };
    r.by_mistake = mistakes_of((double)r.asked, (double)r.maybe, rate);
    const bool counts = has_args.count && !has_args.list && !quiet;
    /* A total that leaves out unreadable files would be taken for the whole. */
    const bool whole = counts && !in->trouble;
    if (whole && has_args.json)
        report(stdout, true, answered_fields, &r, NULL);
    else if (counts && has_state.picked)
        report_by_file(in);
    else if (whole)
        printf("%llu\n", (unsigned long long)job->npicked);
    if (in->nfiles && !has_args.invert && !has_args.list &&
        !(whole && has_args.json))
        tell_mistakes(&r, rate, bound);
    return job->trouble && !(quiet && job->npicked) ? TROUBLE
           : job->npicked                           ? YES
                                                    : NO;
}

static int has_foreign(struct foreign_file *file, const struct list *operands,
                       const struct keys *keys, struct job *job)
{
    struct input in;
    if (!keys_input(keys, operands, &in))
        return TROUBLE;
    int status = TROUBLE;
    if (has_form_begin(job, &in, has_args.parts)) {
        job->batch =
            has_args.parts && job->writes ? has_parts_batch : has_foreign_batch;
        job->ctx = file->f;
        job->path = operands->at[0];
        /* Each of several filters errs at a rate of its own. */
        bly_foreign_stats s = { .fpr_now = NAN };
        if (bly_foreign_nparts(file->f) == 1)
            bly_foreign_stat(file->f, BLY_WHOLE, &s);
        const double rate = s.fpr_now;
        status = pipeline_run(job, &in) ? fail("%s", job->error)
                                        : has_report(job, &in, rate, false);
    }
    input_close(&in);
    return status;
}

/* The "no" of some kinds may be wrong. The user who got one is told how
 * often. */
static void warn_likely(const char *path, const bly_filter *f, uint64_t nos)
{
    bly_stats s;
    bly_peek(f, &s);
    const double miss = missed_share(s.facts, s.nfacts);
    if (isfinite(miss) && nos && !quiet)
        warn("%s: its no is only likely: a %s filter, which misses %s of its "
             "own keys",
             path, s.kind, show_rate(miss));
}

static int has_own(const struct list *operands, const struct keys *keys,
                   struct job *job)
{
    struct input in;
    const bool ranges = has_args.keys.given.n || has_args.are_ranges;
    if (has_args.parts)
        return fail("--parts is for files of other systems");
    bly_filter *const f =
        ask_begin(operands, keys, &has_args.check,
                  ranges ? BLY_CAN(RANGE) : BLY_CAN(HAS), &in);
    if (!f)
        return TROUBLE;
    job->ctx = f;
    if (ranges) {
        job->batch = has_ranges_batch;
        job->unhashed = true;
    }
    const bool ok =
        has_form_begin(job, &in, false) && ask_run(f, operands, &in, job);
    bool bound = false;
    /* It may take reading all of the filter. */
    const bool rated =
        ok && !ranges && (has_args.json || (in.nfiles && !has_args.list));
    const double rate = rated ? rate_of(f, &bound) : NAN;
    const int status = ok ? has_report(job, &in, rate, bound) : TROUBLE;
    if (ok)
        warn_likely(operands->at[0], f,
                    has_args.invert ? job->npicked : job->nkeys - job->npicked);
    input_close(&in);
    bly_free(f);
    return status;
}

/* Of a live filter, which is followed when it is replaced. */
static int has_live(const struct list *operands, const struct keys *keys,
                    struct job *job)
{
    struct input in;
    bool ok;
    const char *const path = operands->n ? operands->at[0] : NULL;
    if (!path)
        return fail("no filter is given; usage: bloomery has FILTER [KEY]...");
    if (has_args.parts || keys->given.n || has_args.are_ranges)
        return fail("--live is for keys, not for --parts or ranges");
    const bly_access how = { .secret = secret_read(keys->key_file, &ok),
                             .reading = true };
    if (!ok || !keys_input(keys, operands, &in))
        return TROUBLE;
    int status = TROUBLE;
    struct live_use *const use = live_use_begin(path, &how);
    if (use) {
        job->ctx = use;
        job->batch = has_live_batch;
        job->hasher = live_hasher(use);
        job->path = path;
        if (filter_can(live_filter(use), path, BLY_CAN(HAS)) &&
            keys_follow(bly_keying_of(live_filter(use)), path, &in) &&
            has_form_begin(job, &in, false))
            status = pipeline_run(job, &in) ? fail("%s", job->error)
                                            : has_report(job, &in, NAN, false);
        live_use_end(use);
    }
    input_close(&in);
    return status;
}

static int has_keys(const struct list *operands, const struct keys *keys,
                    struct job *job)
{
    struct foreign_file file = { 0 };
    if (has_args.live)
        return has_live(operands, keys, job);
    if (operands->n &&
        foreign_open(operands->at[0], &has_args.foreign, &file) != YES)
        return TROUBLE;
    if (!file.f)
        return has_own(operands, keys, job);
    if (has_args.keys.given.n || has_args.are_ranges) {
        foreign_close(&file);
        return fail("%s: filters of other systems cannot answer ranges; use a "
                    "filter of kind range",
                    operands->at[0]);
    }
    const int status = has_foreign(&file, operands, keys, job);
    foreign_close(&file);
    return status;
}

/* With -r, the operands behind the filter are files and folders. */
static int has_below(const struct list *operands, struct job *job)
{
    static const char *here[] = { "." };
    const struct list filter = { operands->at, 1, operands->literal };
    const struct list *const more = &has_args.keys.files;
    struct list paths = { operands->at + 1, operands->n - 1, 0 };
    struct keys keys = has_args.keys;
    keys.files = (struct list){ 0 };
    if (!paths.n && !more->n)
        paths = (struct list){ here, 1, 0 };
    if (!files_named(&paths, true, &job->trouble, &keys.files) ||
        !files_named(more, true, &job->trouble, &keys.files))
        return TROUBLE;
    const int status = keys.files.n   ? has_keys(&filter, &keys, job)
                       : job->trouble ? TROUBLE
                                      : NO;
    files_free(&keys.files);
    return status;
}

static int has_run(struct list *operands)
{
    struct job job = {
        .batch = has_batch,
        .first_only = quiet,
        .goes_on = true,
        .terminator = has_args.keys.nul ? '\0' : '\n',
        .nthreads = thread_count(has_args.threads),
    };
    const bool below = has_args.recursive && operands->n;
    const bool arguments = operands->n > 1 && !below;
    const int status = !has_options_fit(arguments) ? TROUBLE
                       : below                     ? has_below(operands, &job)
                               : has_keys(operands, &has_args.keys, &job);
    free(has_state.picked);
    return status;
}

static const struct opt has_options[] = {
    FLAG("live", 0, has_args.live,
         "the filter is live (bloomery live): move to its next generation when "
         "it is replaced meanwhile"),
    FLAG("invert", 'v', has_args.invert,
         "print the keys that are not in the filter, which is certain but for "
         "kinds whose no is only likely"),
    FLAG("count", 'c', has_args.count,
         "print only how many keys would be printed; with -H, for each file"),
    FLAG("line-number", 'n', has_args.numbers,
         "print the number of its line before each key"),
    FLAG("with-filename", 'H', has_args.names,
         "print the name of its file before each key, as is done anyway if "
         "there are several files"),
    FLAG("no-filename", 0, has_args.no_names,
         "print no names of files, even if there are several"),
    FLAG("files-with-matches", 'l', has_args.list,
         "print only the names of files that have such a key"),
    FLAG("recursive", 'r', has_args.recursive,
         "the words behind FILTER are files and folders (., if there are "
         "none), and all files below a folder are read"),
    { "range", 0, OPT_LIST, &has_args.keys.given, "A..B",
      "ask whether the filter, of kind range, may have a key from A to B; may "
      "be repeated, and ranges that may have one are printed" },
    FLAG("ranges", 0, has_args.are_ranges,
         "the keys, from wherever they come, are such ranges"),
    { "color", 0, OPT_CHOICE, &has_args.colour, "auto|always|never",
      "colour the key in its line, names and numbers; auto, if not given: on a "
      "terminal, unless NO_COLOR is set" },
    QUIET_OPTION(
        "print nothing, not even with --json, and stop at the first key that "
        "would be printed"),
    KEYS_OPTIONS(has_args.keys),
    GROUP_OPTION(has_args.keys),
    THREADS_OPTION(has_args.threads),
    CHECK_OPTIONS(has_args.check),
    FORMAT_READ_OPTIONS(has_args.foreign),
    FLAG("parts", 'P', has_args.parts,
         "for a file of another system with several filters: print one line "
         "for each filter that may have the key: the key, a tab and the name "
         "of the filter"),
    FLAG("json", 0, has_args.json,
         "print an object for each key, whether it may be in the filter or "
         "not; with -v for those that are not; with -c one of all, "
         "{\"asked\":N,\"maybe\":M,\"by_mistake\":F}"),
    { 0 },
};

static const struct example has_examples[] = {
    { "bloomery has words.bly apple aple", "prints apple" },
    { "tr -cs A-Za-z '\\n' < letter.txt | sort -u | bloomery has -v words.bly",
      "the words of a letter that are not in the dictionary" },
    { "bloomery has -q leaked.bly \"$word\" && echo choose another",
      "the exit status tells" },
    { "bloomery has -rn seen.bly logs/ --field 1 -d ' '",
      "where addresses that were seen begin a line of a folder of logs" },
    { "bloomery has leaked.bly -f users.csv.gz --csv email -v --json",
      "the rows that are not in it, for programs" },
    { "bloomery has seen.bly --range 1700000000..1700000059",
      "was there anything in that minute? (seen.bly is of kind range)" },
    { "bloomery has --parts .git/objects/info/commit-graph Makefile",
      "the commits that may have changed it" },
    { 0 },
};

const struct command cmd_has = {
    .name = "has",
    .usage = "FILTER [KEY]... [-f FILE]... [-r FOLDER...] [OPTION]...",
    .summary = "print the keys that may be in a filter",
    .about = "Queries the keys given as arguments, or the lines of the files "
             "given with -f, or those of standard input, and prints those that "
             "may be in the filter, in their order. A key that was added is "
             "always printed; one that was not is printed at the rate that the "
             "filter was made for. (A filter of a kind whose no is only likely "
             "misses some of its own keys; a warning says how many. bloomery "
             "kinds names those kinds.) Where many of the keys from files that "
             "were printed are probably not in the filter, because few are, a "
             "line on standard error says so at the end.\n\n" CHECK_ABOUT "\n\n"
             "A filter of another system (bloomery formats) is queried in the "
             "same way, with the hash of that system.\n\n"
             "A filter of kind range is also asked for ranges, A..B, of which "
             "both ends count; text from A to all that begins with B. Where "
             "its keys are integers, an end may be an address of IPv4 or a "
             "time of UTC (2024-05-31, 2024-05-31T12:00:00Z), which is in "
             "seconds since 1970, and a network (10.0.0.0/8), a month or a day "
             "is a range by itself.\n\n" SELECT_ABOUT
             " Whole lines are printed, as they were read.\n\n"
             "As with grep, names of files stand before the keys if there are "
             "several files; -n adds the numbers of lines, and on a terminal "
             "the keys are coloured. With -r whole folders are read, each file "
             "in the order of names; compressed ones are unpacked, links are "
             "not followed, and files that are not lists of lines (filters, "
             "archives, anything with a NUL byte) are passed over. A file that "
             "cannot be read is named on standard error, and the next one "
             "follows.\n\n"
             "The exit status is 0 if a key was printed (or would have been), "
             "1 if none was, and 2 after an error, even if keys were printed; "
             "with -q, a key that was found decides.",
    .options = has_options,
    .examples = has_examples,
    .reports = REPORTS({ "", has_key_fields, LINES },
                       { "with --count", answered_fields, ONE }),
    .run = has_run,
};
