/*
 * cmd_dedup.c - a corpus without its near-copies: the options
 *
 * What is a number or a path goes straight to what dedup is asked for
 * (apps/dedup/options.h); words are read here.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "apps/dedup/agreement.h"
#include "apps/dedup/options.h"
#include "apps/dedup/split.h"
#include "cli/program.h"
#include "cli/rows.h"
#include "io/files.h"
#include "io/keys.h"
#include "io/texts.h"
#include "io/warc.h"

static struct dedup_options wanted = {
    .threshold = 0.8,
    .max_bucket = 1000,
    .memory = UINT64_C(1) << 30,
    .max_line = INPUT_LINE_MOST,
    .stream = { .rate = 1e-5, .ngram = 13, .min_words = 5, .share = 0.8 },
};

/* Options as they were given, where dedup has a type of its own for them. */
static struct {
    const char *text_field, *id_field;
    bool lines, files, warc, paragraphs;
    const char *priority, *bands, *family;
    unsigned profile, unit, index, level; /* numbers of words */
    uint64_t size, k, seed, threads, tasks;
    unsigned engine;
} given = {
    .text_field = "text",
    .priority = "first",
};

static const struct opt dedup_options[] = {
    { "output", 'o', OPT_TEXT, &wanted.output, "OUT",
      "write the corpus without near-copies to OUT: a file, - for standard "
      "output, or a folder (FOLDER/) with one file per input" },
    { "pairs", 0, OPT_TEXT, &wanted.pairs, "FILE",
      "write the pairs at the threshold or above: id, id, likeness" },
    FLAG("all", 0, wanted.all_pairs,
         "with --pairs: also all pairs among equal texts, and each of these "
         "with what one of them is like; else only the first of equal texts "
         "is in a pair, with each of the others and with what is like it"),
    { "clusters", 0, OPT_TEXT, &wanted.clusters, "FILE",
      "write the clusters: id, number" },
    { "removed", 0, OPT_TEXT, &wanted.removed, "FILE",
      "write what was removed: id, id of the document that stays in its place, "
      "likeness" },
    HTML_OPTIONS(wanted.pages),
    BINARY_OPTION,
    { "text-field", 0, OPT_TEXT, &given.text_field, "FIELD",
      "where a line of JSON has its text: the name of a field or a JSON "
      "pointer; text if not given" },
    { "field", 0, OPT_TEXT, &given.text_field, "FIELD", "the same, shorter" },
    { "id-field", 0, OPT_TEXT, &given.id_field, "FIELD",
      "where it has its id; FILE:LINE if not given; of WARC the field of a "
      "record's header, WARC-Record-ID if not given" },
    { "id", 0, OPT_TEXT, &given.id_field, "FIELD", "the same, shorter" },
    FLAG("lines", 0, given.lines,
         "the input is plain text, not JSON: each line is a document"),
    FLAG("warc", 0, given.warc,
         "the input is WARC files, which web crawlers write, and each page in "
         "them is a document; not needed for files that begin like one"),
    FLAG("files", 0, given.files,
         "each file is a document; folders are searched recursively; -o lists "
         "the files that stay, or copies them into a folder"),
    { "threshold", 'T', OPT_RATE, &wanted.threshold, "J",
      "likeness at or above which a document is a copy; 0.8 if not given" },
    { "verify", 0, OPT_CHOICE, &wanted.verify, "exact|estimate|none",
      "exact: compare the texts (default); estimate: trust the sketches; none: "
      "trust the bands" },
    { "policy", 0, OPT_CHOICE, &wanted.policy, "greedy|component",
      "greedy: each document removed is like one that stays (default); "
      "component: one of all that are linked stays" },
    { "max-cluster", 0, OPT_POSITIVE, &wanted.max_cluster, "N",
      "handle components with more documents by the greedy policy" },
    { "priority", 0, OPT_TEXT, &given.priority, "HOW",
      "which document stays: first (default), longest, or field:NAME, the one "
      "with the largest number, or with :asc the smallest" },
    FLAG("drop-empty", 0, wanted.drop_empty, "also remove texts without words"),
    FLAG("drop-all", 0, wanted.drop_all,
         "remove every document that has a copy, and the copied one too"),
    FLAG("strict", 0, wanted.strict, "stop at the first malformed line"),
    FLAG("exact", 0, wanted.whole_only,
         "remove only texts that are equal byte for byte"),
    { "profile", 0, OPT_CHOICE, &given.profile, "corpus|lecture",
      "corpus: 5 words, k 128 (default); lecture: 10 characters, k 100, "
      "linear" },
    { "unit", 0, OPT_CHOICE, &given.unit, "word|char",
      "shingles of words or of characters: word, char" },
    { "size", 0, OPT_POSITIVE, &given.size, "N", "units in a shingle" },
    { "k", 0, OPT_POSITIVE, &given.k, "K",
      "components of a sketch; 128 if not given, 512 with --index bloom" },
    { "family", 0, OPT_TEXT, &given.family, "fss|oph|linear|linear61",
      "of sketches: fss, oph, linear, linear61" },
    { "seed", 0, OPT_COUNT, &given.seed, "N", "seed of the hash of words" },
    { "recall", 0, OPT_RATE, &wanted.recall, "P",
      "probability of finding a pair at the threshold, for choosing bands; "
      "0.995 if not given, 0.25 with --index bloom" },
    { "bands", 0, OPT_TEXT, &given.bands, "B,R",
      "bands and rows; or area, which balances errors and misses many pairs; "
      "with --index bloom B,R,KNOWN, where KNOWN is how many bands must be "
      "known" },
    { "max-bucket", 0, OPT_POSITIVE, &wanted.max_bucket, "N",
      "with --pairs and components: compare every pair in buckets of up to "
      "this size; 1000 if not given" },
    { "save-index", 0, OPT_TEXT, &wanted.save_index, "FILE",
      "write the sketches of what was kept" },
    FLAG("with-shingles", 0, wanted.with_shingles,
         "with its shingles, 8 bytes per word, so that --against compares "
         "exactly"),
    { "against", 0, OPT_TEXT, &wanted.against, "FILE",
      "treat the documents of an index as kept, before all others" },
    { "work", 0, OPT_TEXT, &wanted.work, "DIR",
      "keep sketches, and what --resume needs, in files in this folder instead "
      "of in memory; it is made if it does not exist, and serves one run at a "
      "time" },
    FLAG("resume", 0, wanted.resume,
         "continue a run that ended too early, from its folder --work"),
    { "tasks", 0, OPT_BETWEEN(POSITIVE, 1, 100000), &given.tasks, "N",
      "for dedup split: tasks of each stage; 1 if not given" },
    { "engine", 0, OPT_CHOICE, &given.engine, "none|local|script|slurm",
      "for dedup split: what runs the tasks: none (default), it only plans; "
      "local, processes of this machine, --threads at a time; script, what "
      "reads their commands, each with its stage before it; slurm, job files "
      "in DIR/slurm" },
    { "index", 0, OPT_CHOICE, &given.index, "memory|bloom",
      "memory (default), or bloom: one pass with a filter and without a check, "
      "so that documents are removed at about the threshold, not exactly" },
    FLAG("paragraphs", 0, given.paragraphs,
         "remove lines of texts that occurred before, in one pass; lines are "
         "compared by their words, so case, punctuation and spacing do not "
         "matter"),
    { "filter", 0, OPT_TEXT, &wanted.stream.filter, "F.bly",
      "the filter for these: read if it exists, and written at the end" },
    FLAG("read-only", 0, wanted.stream.read_only, "add nothing to the filter"),
    { "kind", 0, OPT_TEXT, &wanted.stream.kind, "KIND",
      "kind of a new filter; see bloomery kinds" },
    { "items", 'n', OPT_POSITIVE, &wanted.stream.items, "N",
      "how many documents, paragraphs or n-grams it is for; it grows if not "
      "given" },
    { "ngrams", 0, OPT_POSITIVE, &wanted.stream.items, "N",
      "the same, for dedup ngrams; if not given, they are counted in a pass of "
      "their own" },
    { "fpr", 'p', OPT_RATE, &wanted.stream.rate, "P",
      "rate at which a filter removes what is new; 1e-5 if not given" },
    { "rate", 0, OPT_RATE, &wanted.stream.rate, "P", "the same" },
    { "level", 0, OPT_CHOICE, &given.level, "paragraphs|documents|both",
      "what dedup ngrams removes: paragraphs (default), documents, or both" },
    { "ngram", 0, OPT_POSITIVE, &wanted.stream.ngram, "N",
      "words per n-gram, for dedup ngrams; 13 if not given" },
    { "share", 0, OPT_RATE, &wanted.stream.share, "S",
      "share of known n-grams above which a paragraph is removed; 0.8 if not "
      "given" },
    { "min-words", 0, OPT_COUNT, &wanted.stream.min_words, "N",
      "paragraphs of fewer words always stay; 5 if not given" },
    { "memory", 'm', OPT_POSITIVE, &wanted.memory, "SIZE",
      "memory for sorting and comparing, besides the sketches; 1 GiB if not "
      "given" },
    { "max-line", 0, OPT_POSITIVE, &wanted.max_line, "SIZE",
      "longest line, or with --files longest file, that is accepted; a longer "
      "one ends the run; 128 MiB if not given" },
    THREADS_OPTION(given.threads),
    WAIT_OPTION,
    QUIET_OPTION(QUIET_HELP),
    FLAG("json", 0, wanted.json, "print the report as one object"),
    { 0 },
};

/* Is it --index bloom, where bands alone decide? */
static bool is_bloom(void)
{
    return given.index == 1;
}

static bool pick_sketch(struct dedup_options *o)
{
    if (given.profile == 1)
        o->sketch = (bly_sketch_spec){ .shingling = { .unit = BLY_CHARS },
                                       .family = BLY_LINEAR32,
                                       .k = 100 };
    if (was_given(&given.unit))
        o->sketch.shingling.unit = given.unit ? BLY_CHARS : BLY_WORDS;
    if (!family_named(given.family, &o->sketch.family))
        return false;
    if (given.size > UINT32_MAX || given.k > UINT32_MAX)
        return refuse("--size and --k are small numbers");
    if (given.size)
        o->sketch.shingling.size = (unsigned)given.size;
    if (given.k)
        o->sketch.k = (unsigned)given.k;
    else if (is_bloom() && o->sketch.family == BLY_FSS)
        o->sketch.k = BLY_MAX_COMPONENTS; /* nothing else decides */
    o->sketch.shingling.seed = given.seed;
    return !bly_sketch_spec_check(&o->sketch) || refuse_library();
}

/* --bands: area, or B,R; with --index bloom, where they decide without a check,
 * also how many of them do. */
static bool pick_bands(struct dedup_options *o)
{
    const bool bloom = is_bloom();
    const unsigned k = o->sketch.k;
    struct agreement g = { .known = 1 };
    unsigned b, r, m = 0;
    char more;
    const char *const text = given.bands ? given.bands : "";
    const bool two = sscanf(text, "%9u,%9u%c", &b, &r, &more) == 2;
    const bool three =
        bloom && sscanf(text, "%9u,%9u,%9u%c", &b, &r, &m, &more) == 3 && m;
    if (!given.bands && bloom) {
        if (!agreement_choose(k, o->threshold, o->recall, &g))
            return refuse(
                "%u components cannot find a pair of likeness %g with "
                "probability %g; use more of them (--k), or a lower --recall",
                k, o->threshold, o->recall);
    } else if (!given.bands) {
        if (bly_bands_choose(k, o->threshold, o->recall, &g.bands))
            return refuse_library();
    } else if (strcmp(given.bands, "area") == 0) {
        if (bly_bands_balance(k, o->threshold, &g.bands))
            return refuse_library();
    } else if ((two || three) && b && r && b <= BLY_MAX_COMPONENTS &&
               r <= BLY_MAX_COMPONENTS && m <= b && b * r <= k) {
        g.bands = (bly_bands){ b, r };
        agreement_known(&g, o->threshold, o->recall);
        g.known = three ? m : g.known ? g.known : 1;
    } else {
        return refuse(
            "--bands %s: expected area%s B,R%s with B times R at most %u%s",
            given.bands, bloom ? "," : ", or", bloom ? " or B,R,KNOWN" : "", k,
            bloom ? " and KNOWN at most B" : "");
    }
    o->bands = g.bands;
    o->known = g.known;
    return true;
}

static bool pick_field(const char *option, const char *name,
                       struct json_path *to)
{
    errno = 0;
    if (json_path_read(to, name))
        return true;
    if (errno == ENOMEM)
        return refuse("out of memory");
    return refuse("--%s %s: expected the name of a field, or a JSON pointer "
                  "such as /meta/id",
                  option, name);
}

static bool pick_priority(struct dedup_options *o)
{
    const char *const p = given.priority;
    o->priority_text = p;
    if (strcmp(p, "first") == 0)
        return true;
    if (strcmp(p, "longest") == 0) {
        o->priority = DEDUP_LONGEST;
        return true;
    }
    if (strncmp(p, "field:", 6) != 0 || !p[6])
        return refuse("--priority %s: expected first, longest, field:NAME, "
                      "field:NAME:asc or field:NAME:desc",
                      p);
    char *const name = strdup(p + 6);
    if (!name)
        return refuse("out of memory");
    char *const colon = strrchr(name, ':');
    if (colon && (strcmp(colon, ":asc") == 0 || strcmp(colon, ":desc") == 0)) {
        o->ascending = colon[1] == 'a';
        *colon = '\0';
    }
    o->priority = DEDUP_FIELD;
    o->has_field = pick_field("priority", name, &o->field);
    free(name);
    return o->has_field;
}

/* One pass with a filter: of what. */
static void pick_stream(struct dedup_options *o, bool ngrams)
{
    const unsigned level = o->one_pass ? given.level : 0;
    o->stream.unit = ngrams             ? STREAM_NGRAMS
                     : given.paragraphs ? STREAM_PARAGRAPHS
                                        : STREAM_BANDS;
    o->stream.documents = ngrams && level > 0;
    o->stream.paragraphs = !ngrams || level != 1;
}

/* False, with the reason printed, where the options cannot be meant. */
static bool pick(struct dedup_options *o, bool ngrams)
{
    const char *const tmp = getenv("TMPDIR");
    if (o->resume && !o->work)
        return refuse("--resume needs the folder of the run that ended: "
                      "--work DIR");
    if (o->whole_only && (o->save_index || o->against))
        return refuse("an index consists of sketches, which --exact does not "
                      "make");
    if (o->max_line < INPUT_LINE_LEAST)
        return refuse("--max-line: must be at least 256 KiB");
    if (given.lines + given.files + given.warc > 1)
        return refuse("--lines, --files and --warc exclude each other");
    o->format = given.lines   ? DEDUP_LINES
                : given.warc  ? DEDUP_WARC
                : given.files ? DEDUP_FILES
                              : DEDUP_JSON;
    if (!(o->recall > 0))
        o->recall = is_bloom() ? 0.25 : 0.995;
    o->wait = wait_for_lock;
    o->nthreads = thread_count(given.threads);
    o->folder = o->work ? o->work : tmp && *tmp ? tmp : "/tmp";
    o->has_id = given.id_field || given.warc;
    o->id_name = !given.warc      ? NULL
                 : given.id_field ? given.id_field
                                  : "WARC-Record-ID";
    o->want_ids = o->against || o->save_index ||
                  (o->has_id && (o->pairs || o->clusters || o->removed));
    pick_stream(o, ngrams);
    return pick_sketch(o) && pick_bands(o) && pick_priority(o) &&
           pick_field("text-field", given.text_field, &o->text) &&
           (!given.id_field || pick_field("id-field", given.id_field, &o->id));
}

/* Be the program that can read pages, where there may be some. False, with the
 * reason printed, where they cannot be read, or not in this way. */
static bool pick_pages(struct dedup_options *o)
{
    const bool parts =
        o->one_pass && o->stream.unit != STREAM_BANDS && o->stream.paragraphs;
    if (o->pages.html && parts)
        return refuse("of a web page no part can be removed, only all of it; "
                      "--html goes with whole documents");
    if (o->pages.html && o->pages.tags)
        return refuse("--html and --tags exclude each other");
    o->pages.tags |= parts;
    if (parts && o->format == DEDUP_WARC)
        return refuse("of a record no part can be removed, only all of it; "
                      "WARC files go with whole documents");
    if (!html_works() && !o->pages.tags &&
        (o->pages.html || o->format == DEDUP_WARC))
        return program_run("html") == YES;
    if (!html_works() && o->format == DEDUP_FILES && !o->pages.tags)
        program_try("html"); /* without it, files that are none will do */
    return true;
}

static void dedup_free(struct dedup_options *o)
{
    json_path_free(&o->text);
    json_path_free(&o->id);
    json_path_free(&o->field);
}

/* ------------------------------------------------------------- many machines
 */

/* The words for the value of an option; NULL: no memory. */
static char *option_word(const struct opt *o)
{
    char *word = NULL;
    int n = -1;
    switch (o->type.is) {
    case IS_FLAG:
        n = asprintf(&word, "--%s", o->name);
        break;
    case IS_COUNT:
    case IS_POSITIVE:
        n = asprintf(&word, "--%s=%llu", o->name,
                     (unsigned long long)*(const uint64_t *)o->to);
        break;
    case IS_RATE:
    case IS_REAL:
    case IS_SECONDS:
        n = asprintf(&word, "--%s=%.17g", o->name, *(const double *)o->to);
        break;
    case IS_CHOICE: {
        const char *at = o->arg;
        for (unsigned i = *(const unsigned *)o->to; i > 0; i--)
            at += strcspn(at, "|") + 1;
        n = asprintf(&word, "--%s=%.*s", o->name, (int)strcspn(at, "|"), at);
        break;
    }
    default:
        n = asprintf(&word, "--%s=%s", o->name, *(const char *const *)o->to);
    }
    return n < 0 ? NULL : word;
}

/* Those of split alone, and of the process that runs. */
static bool is_own(const struct opt *o)
{
    const void *const own[] = { &given.tasks,   &given.engine, &wanted.work,
                                &given.threads, &quiet,        &wanted.resume,
                                &wait_seconds };
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (o->to == own[i])
            return true;
    return false;
}

/* The options that were given, for tasks to read again. */
static bool options_given(struct list *words)
{
    words->at =
        calloc(sizeof dedup_options / sizeof *dedup_options, sizeof *words->at);
    for (const struct opt *o = dedup_options; words->at && o->name; o++) {
        if (!was_given(o->to) || is_own(o))
            continue;
        words->at[words->n] = option_word(o);
        if (!words->at[words->n++])
            return refuse("out of memory");
    }
    return words->at || refuse("out of memory");
}

static int run_split(const struct list *operands)
{
    struct dedup_options *const o = &wanted;
    const char *const folder = o->work;
    struct list words = { 0 };
    int status = TROUBLE;
    if (!folder)
        return fail("split needs a folder that all tasks can reach: --work "
                    "DIR");
    if (o->against || o->save_index)
        return fail("tasks have no index yet: run without --against and "
                    "--save-index, or on one machine");
    if (given.warc)
        return fail("tasks do not read WARC files yet; run without split");
    if (given.paragraphs || is_bloom())
        return fail("a filter is one pass, which needs no tasks; run without "
                    "split");
    if (o->resume)
        return fail("a run in tasks goes on by itself: run the same command "
                    "again, without --resume");
    o->work = NULL;
    if (pick(o, false) && pick_pages(o) && options_given(&words)) {
        const struct split_options how = {
            .ntasks = given.tasks ? given.tasks : 1,
            .folder = folder,
            .engine = (enum split_engine)given.engine,
            .at_once = o->nthreads,
            .words = words.at,
            .nwords = words.n,
        };
        o->nthreads = 1;
        status = split_run(o, &how, operands);
    }
    split_words_free(&words);
    dedup_free(o);
    return status;
}

/* A task has the options of its run, and --threads and --quiet of its own. */
static int run_task(const struct list *operands)
{
    const uint64_t nthreads = given.threads ? given.threads : 1;
    char first[] = "dedup";
    struct list words;
    struct line line = { .command = NULL };
    int status = TROUBLE;
    if (operands->n != 3)
        return fail("task needs a folder, a stage and a number");
    char *const folder = realpath(operands->at[0], NULL);
    if (!folder)
        return fail_path(operands->at[0], errno);
    if (split_words(folder, &words) == YES) {
        char **const argv = calloc(words.n + 2, sizeof *argv);
        if (argv) {
            argv[0] = first;
            memcpy(argv + 1, words.at, words.n * sizeof *argv);
        }
        if (!argv)
            fail("out of memory");
        else if (options_parse(&cmd_dedup, (int)words.n + 1, argv, &line,
                               &status)) {
            given.threads = nthreads;
            status = pick(&wanted, false) && pick_pages(&wanted)
                         ? split_task(&wanted, folder, operands->at[1],
                                      operands->at[2])
                         : TROUBLE;
            dedup_free(&wanted);
        }
        free(line.operands.at);
        free(argv);
    }
    split_words_free(&words);
    free(folder);
    return status;
}

static int run_status(const struct list *operands)
{
    if (operands->n != 1)
        return fail("status needs the folder of a run");
    return split_status(operands->at[0], wanted.json);
}

/* ---------------------------------------------------------------- the command
 */

static bool first_is(const struct list *operands, const char *word)
{
    return operands->n > operands->literal &&
           strcmp(operands->at[0], word) == 0;
}

static int run_dedup(struct list *operands)
{
    struct dedup_options *const o = &wanted;
    const struct list rest = { .at = operands->at + 1,
                               .n = operands->n ? operands->n - 1 : 0 };
    const bool split = first_is(operands, "split");
    if (first_is(operands, "task"))
        return run_task(&rest);
    if (first_is(operands, "status"))
        return run_status(&rest);
    if (!split && (given.tasks || was_given(&given.engine)))
        return fail("--tasks and --engine belong to dedup split");
    const bool ngrams = operands->n && strcmp(operands->at[0], "ngrams") == 0;
    const bool filtered = ngrams || given.paragraphs || was_given(&given.index);
    const bool memory = was_given(&given.index) && !is_bloom();
    const struct list inputs = { .at = operands->at + ngrams,
                                 .n = operands->n - ngrams };
    if (!o->output && !o->pairs && !o->clusters && !o->removed &&
        !o->save_index && !o->json && !quiet && !filtered)
        warn("only the report is written; -o OUT writes the corpus");
    if (o->all_pairs && !o->pairs)
        return fail("--all says which pairs --pairs FILE writes");
    const struct list *const read = split ? &rest : &inputs;
    for (size_t i = 0; i < read->n && !given.warc; i++)
        given.warc = !given.lines && !given.files && warc_file(read->at[i]);
    if (split)
        return run_split(&rest);
    o->one_pass = filtered && !memory;
    int status = TROUBLE;
    if (pick(o, ngrams) && pick_pages(o) &&
        (!o->work || options_given(&o->words)))
        status = dedup_run(o, &inputs);
    split_words_free(&o->words);
    dedup_free(o);
    return status;
}

static const struct example dedup_examples[] = {
    { "bloomery dedup corpus.jsonl.zst -o clean.jsonl",
      "remove near-copies, keep the order" },
    { "bloomery dedup a.jsonl b.jsonl -o clean/ --removed gone.tsv --id id",
      "file by file, and which copy was removed for which document" },
    { "bloomery dedup --files /usr/share/doc --clusters alike.tsv",
      "find files that are alike" },
    { "bloomery dedup crawl.warc.gz -o clean.warc.gz",
      "pages of a crawl, by what their readers see" },
    { "bloomery dedup new.jsonl --against old.idx --save-index old.idx -o "
      "add.jsonl",
      "add what is new since then" },
    { "bloomery dedup --paragraphs --filter seen.bly crawl.jsonl -o out.jsonl",
      "remove paragraphs seen before" },
    { "bloomery dedup split --tasks 200 --engine slurm --work DIR "
      "*.jsonl -o clean.jsonl",
      "the same result from 200 tasks of a cluster" },
    { 0 },
};

const struct command cmd_dedup = {
    .name = "dedup",
    .usage = "[ngrams|split|task|status] [OPTION]... [INPUT]... [-o OUT]",
    .summary = "remove near-copies from a corpus",
    .about =
        "Reads documents, one line of JSON each, and writes those that "
        "are not near-copies of others, byte for byte and in their order. "
        "Two documents are compared by their shingles, 5 words in a row: "
        "their likeness is the number of shingles in both divided by the "
        "number in either. Sketches find the candidates, and the texts "
        "themselves decide: no document is removed unless one that stays "
        "is at least that similar to it.\n\n"
        "Malformed lines are kept, counted and reported; texts without "
        "words resemble nothing and are kept. gzip, zstd, xz and bzip2 "
        "are recognised.\n\n"
        "With --html, and of files that are web pages, what readers see is "
        "compared, without menus, headers and footers; what is written "
        "are the pages as they came. In WARC files, pages are records: those "
        "of "
        "copies are removed, and all others are written as they stand in "
        "the file, each as a member of gzip if OUT is named *.gz.\n\n"
        "With --paragraphs, with ngrams as the first word, and with "
        "--index bloom, a filter of any kind that adds takes the place of "
        "sketches: one pass, and memory that does not grow with the text. "
        "A filter sees words, not bytes: case, punctuation and spacing do "
        "not matter. It cannot compare: with --index bloom, a document "
        "may be removed that is somewhat less similar to an earlier one "
        "than the threshold says; the report says how likely that is.\n\n"
        "With split as the first word, --work DIR and --tasks N, a run is "
        "planned as tasks for many machines that share a folder, and its "
        "results are those of one machine, byte for byte. task DIR STAGE "
        "I does one of them, status DIR shows how far they are: exit "
        "status 0 if the results are written, 1 if not yet, 2 if a task "
        "failed. To name a file that is called like one of these words, "
        "write ./split.",
    .options = dedup_options,
    .examples = dedup_examples,
    .reports = REPORTS({ "", dedup_fields, ONE },
                       { "with --index bloom", dedup_filter_fields, ONE },
                       { "of status", split_fields, ONE }),
    .run = run_dedup,
};
