/*
 * run.c - a run of dedup, from its options
 *
 * Options and messages; the work is in apps/dedup/. Two ways: rows of all
 * documents in memory and exact checks (dedup_near), or one pass and a filter
 * (dedup_filtered in dedup_filter.c).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bloomery.h>

#include "apps/dedup/args.h"
#include "apps/dedup/journal.h"
#include "apps/dedup/out_file.h"
#include "io/files.h"
#include "io/paths.h"
#include "report/out.h"
#include "report/progress.h"
#include "report/say.h"
#include "report/show.h"
#include "report/words.h"

struct dedup_args dedup_args = {
    .text_field = "text",
    .threshold = 0.8,
    .verify = "exact",
    .policy = "greedy",
    .priority = "first",
    .profile = "corpus",
    .max_bucket = 1000,
    .memory = UINT64_C(1) << 30,
    .max_line = LINES_MAX_DEFAULT,
    .documents_rate = 1e-5,
    .ngram_size = 13,
    .min_words = 5,
    .share = 0.8,
    .level = "paragraphs",
};

/* ----------------------------------------------------------------- options */

int dedup_choice(const char *option, const char *given,
                 const char *const *words)
{
    for (int i = 0; words[i]; i++)
        if (strcmp(given, words[i]) == 0)
            return i;
    fail("--%s %s: right: %s, %s%s%s", option, given, words[0], words[1],
         words[2] ? ", " : "", words[2] ? words[2] : "");
    return -1;
}

/* Is it --index bloom, where bands alone decide? */
static bool is_bloom(void)
{
    return dedup_args.index && strcmp(dedup_args.index, "bloom") == 0;
}

static bool pick_sketch(struct dedup_options *o)
{
    static const char *const profiles[] = { "corpus", "lecture", NULL };
    const struct dedup_args *const a = &dedup_args;
    const int profile = dedup_choice("profile", a->profile, profiles);
    if (profile < 0)
        return false;
    if (profile == 1)
        o->sketch = (bly_sketch_spec){ .shingling = { .unit = BLY_CHARS },
                                       .family = BLY_LINEAR32,
                                       .k = 100 };
    if (a->unit) {
        static const char *const units[] = { "word", "char", NULL };
        const int unit = dedup_choice("unit", a->unit, units);
        if (unit < 0)
            return false;
        o->sketch.shingling.unit = unit ? BLY_CHARS : BLY_WORDS;
    }
    if (a->family) {
        unsigned f = 0;
        while (bly_family_name(f) && strcmp(bly_family_name(f), a->family) != 0)
            f++;
        if (!bly_family_name(f)) {
            fail("--family %s: right: fss, oph, linear, linear61", a->family);
            return false;
        }
        o->sketch.family = (bly_family)f;
    }
    if (a->size > UINT32_MAX || a->k > UINT32_MAX) {
        fail("--size and --k are small numbers");
        return false;
    }
    if (a->size)
        o->sketch.shingling.size = (unsigned)a->size;
    if (a->k)
        o->sketch.k = (unsigned)a->k;
    else if (is_bloom() && o->sketch.family == BLY_FSS)
        o->sketch.k = BLY_MAX_COMPONENTS; /* nothing else decides */
    o->sketch.shingling.seed = a->seed;
    if (bly_sketch_spec_check(&o->sketch)) {
        fail_library();
        return false;
    }
    return true;
}

/* Bands that decide without a check, --index bloom, and how many of them. */
static bool pick_agreement(struct dedup_options *o)
{
    const struct dedup_args *const a = &dedup_args;
    struct agreement g = { .known = 1 };
    unsigned b, r, m = 0;
    char more;
    const int given =
        a->bands ? sscanf(a->bands, "%u,%u,%u%c", &b, &r, &m, &more) : 0;
    if (!a->bands) {
        if (!agreement_choose(o->sketch.k, o->threshold, o->recall, &g)) {
            fail("%u components cannot find a pair of likeness %g with "
                 "probability %g; right: more of them (--k), or a lower "
                 "--recall",
                 o->sketch.k, o->threshold, o->recall);
            return false;
        }
    } else if (strcmp(a->bands, "area") == 0) {
        if (bly_bands_balance(o->sketch.k, o->threshold, &g.bands)) {
            fail_library();
            return false;
        }
    } else if ((given == 2 || given == 3) && b && r && (m || given == 2) &&
               b <= BLY_MAX_COMPONENTS && r <= BLY_MAX_COMPONENTS && m <= b &&
               b * r <= o->sketch.k) {
        g.bands = (bly_bands){ b, r };
        agreement_known(&g, o->threshold, o->recall);
        g.known = given == 3 ? m : g.known ? g.known : 1;
    } else {
        fail("--bands %s: right: area, B,R or B,R,KNOWN with B times R at most "
             "%u and KNOWN at most B",
             a->bands, o->sketch.k);
        return false;
    }
    o->bands = g.bands;
    o->known = g.known;
    return true;
}

/* --bands: area, or B,R. */
static bool pick_bands(struct dedup_options *o)
{
    const struct dedup_args *const a = &dedup_args;
    unsigned b, r;
    char more;
    if (is_bloom())
        return pick_agreement(o);
    if (!a->bands) {
        if (bly_bands_choose(o->sketch.k, o->threshold, o->recall, &o->bands))
            goto failed;
        return true;
    }
    if (strcmp(a->bands, "area") == 0) {
        if (bly_bands_balance(o->sketch.k, o->threshold, &o->bands))
            goto failed;
        return true;
    }
    if (sscanf(a->bands, "%u,%u%c", &b, &r, &more) == 2 && b && r &&
        b <= BLY_MAX_COMPONENTS && r <= BLY_MAX_COMPONENTS &&
        b * r <= o->sketch.k) {
        o->bands = (bly_bands){ b, r };
        return true;
    }
    fail("--bands %s: right: area, or B,R with B times R at most %u", a->bands,
         o->sketch.k);
    return false;
failed:
    fail_library();
    return false;
}

static bool pick_field(const char *option, const char *given,
                       struct json_path *to)
{
    errno = 0;
    if (json_path_read(to, given))
        return true;
    if (errno == ENOMEM) {
        fail("out of memory");
        return false;
    }
    fail("--%s %s: right: the name of a field, or a JSON pointer such as "
         "/meta/id",
         option, given);
    return false;
}

static bool pick_priority(struct dedup_options *o)
{
    const char *const p = dedup_args.priority;
    if (strcmp(p, "first") == 0)
        return true;
    if (strcmp(p, "longest") == 0) {
        o->priority = DEDUP_LONGEST;
        return true;
    }
    if (strncmp(p, "field:", 6) != 0 || !p[6]) {
        fail("--priority %s: right: first, longest, field:NAME, "
             "field:NAME:asc or field:NAME:desc",
             p);
        return false;
    }
    char *const name = strdup(p + 6);
    if (!name) {
        fail("out of memory");
        return false;
    }
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

bool dedup_pick(struct dedup_options *o)
{
    static const char *const verifies[] = { "exact", "estimate", "none", NULL };
    static const char *const policies[] = { "greedy", "component", NULL };
    const struct dedup_args *const a = &dedup_args;
    const int verify = dedup_choice("verify", a->verify, verifies);
    const int policy = dedup_choice("policy", a->policy, policies);
    if (verify < 0 || policy < 0)
        return false;
    const char *const tmp = getenv("TMPDIR");
    *o = (struct dedup_options){
        .format = a->lines   ? DEDUP_LINES
                  : a->files ? DEDUP_FILES
                             : DEDUP_JSON,
        .threshold = a->threshold,
        .recall = a->recall > 0 ? a->recall
                  : is_bloom()  ? 0.25
                                : 0.995,
        .whole_only = a->exact,
        .all_pairs = a->pairs != NULL,
        .verify = (enum dedup_verify)verify,
        .policy = (enum dedup_policy)policy,
        .drop_empty = a->drop_empty,
        .drop_all = a->drop_all,
        .strict = a->strict,
        .max_cluster = a->max_cluster,
        .max_bucket = a->max_bucket,
        .memory = a->memory,
        .wait = wait_for_lock,
        .nthreads = thread_count(a->threads),
        .has_id = a->id_field != NULL,
        .folder = a->work       ? a->work
                  : tmp && *tmp ? tmp
                                : "/tmp",
        .work = a->work,
        .resume = a->resume,
    };
    if (a->resume && !a->work) {
        fail("--resume needs the folder of the run that ended: --work DIR");
        return false;
    }
    if (a->exact && (a->save_index || a->against)) {
        fail("an index consists of sketches, which --exact does not make");
        return false;
    }
    if (a->max_line < LINES_MAX_LEAST) {
        fail("--max-line: right: 256 KiB or more");
        return false;
    }
    if (a->lines && a->files) {
        fail("--lines and --files exclude each other");
        return false;
    }
    o->want_ids = a->against || a->save_index ||
                  (o->has_id && (a->pairs || a->clusters || a->removed));
    return pick_sketch(o) && pick_bands(o) && pick_priority(o) &&
           pick_field("text-field", a->text_field, &o->text) &&
           (!o->has_id || pick_field("id-field", a->id_field, &o->id));
}

/* --------------------------------------------------------------- near-copies
 */

static bool dedup_steps(struct dedup *d)
{
    const struct dedup_args *const a = &dedup_args;
    dedup_init(d);
    if (a->output && !dedup_corpus_fits(d, a->output))
        return false;
    if (a->against && !dedup_load_index(d, a->against))
        return false;
    if (!lines_spool(d->in, d->opt->folder))
        return dedup_fail(d, "%s", d->in->error);
    return dedup_read(d) && dedup_rank(d) && dedup_collapse(d) &&
           dedup_band(d) && dedup_decide(d) &&
           (!a->pairs || dedup_write_pairs(d, a->pairs)) &&
           (!a->clusters || dedup_write_clusters(d, a->clusters)) &&
           (!a->removed || dedup_write_removed(d, a->removed)) &&
           (!a->output || dedup_write_corpus(d, a->output)) &&
           (!a->save_index ||
            dedup_save_index(d, a->save_index,
                             a->with_shingles || d->index_has_sets));
}

int dedup_bad_input(const struct dedup *d)
{
    int status = YES;
    for (size_t i = 0; i < d->report.nbad && !d->opt->strict; i++)
        warn("%s:%llu: %s; the line is kept", d->report.bad[i].file,
             (unsigned long long)d->report.bad[i].line, d->report.bad[i].why);
    if (d->report.malformed > d->report.nbad && !d->opt->strict)
        warn("%llu such lines in all", (unsigned long long)d->report.malformed);
    if (d->report.malformed && d->report.malformed == d->report.documents &&
        !d->opt->strict)
        warn("no line was of use; right, if a line is a document: --lines; "
             "if the text has another name: --text-field FIELD");
    if (d->report.malformed)
        status = TROUBLE;
    for (size_t i = 0; i < d->in->nfiles; i++) {
        const struct lines_file *const f = &d->in->files[i];
        if (f->error[0] && d->in->whole)
            status = fail("%s: %s; what came before that was used", f->name,
                          f->error);
        else if (f->error[0])
            status = fail("%s: %s; the %llu lines before that were used",
                          f->name, f->error, (unsigned long long)f->ndocs);
    }
    return status;
}

static int dedup_near(struct dedup *d)
{
    const bool ok = dedup_steps(d);
    progress_clear();
    const int status = dedup_bad_input(d);
    if (!ok)
        return fail("%s", d->error);
    dedup_report(d);
    return status;
}

static void clean_lines(void *bytes, size_t n)
{
    text_clean(bytes, n, true);
}

/* Outputs must be possible, and no input may be one of them. */
static bool outputs_work(const struct list *operands)
{
    const struct dedup_args *const a = &dedup_args;
    const char *const outs[] = { a->output, a->pairs, a->clusters, a->removed,
                                 a->save_index };
    size_t to_stdout = 0;
    for (size_t i = 0; i < sizeof outs / sizeof outs[0]; i++) {
        if (!outs[i])
            continue;
        to_stdout += is_stdout(outs[i]);
        if (out_is_terminal())
            out_clean = clean_lines;
        for (size_t j = 0; j < i; j++)
            if (outs[j] && strcmp(outs[i], outs[j]) == 0) {
                fail("%s: two results would go there", outs[i]);
                return false;
            }
        if (!output_spares(outs[i], operands->at, operands->n) ||
            (!is_stdout(outs[i]) && !dedup_is_folder(outs[i]) &&
             !output_works(outs[i], false)))
            return false;
    }
    if (to_stdout + (a->json && !quiet) > 1) {
        fail("two results would mix on standard output");
        return false;
    }
    return true;
}

int dedup_run(struct list *operands)
{
    const struct dedup_args *const a = &dedup_args;
    const bool ngrams = operands->n && strcmp(operands->at[0], "ngrams") == 0;
#ifdef M_MMAP_THRESHOLD
    /* Long lines are given back to the system when they are done. If left to
     * itself, malloc() would begin to keep them after the first, once for each
     * thread. */
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
#endif
    struct dedup_options o = { 0 };
    struct input in = { 0 };
    struct list files;
    if (ngrams) {
        operands->at++;
        operands->n--;
    }
    const bool filtered = ngrams || a->paragraphs || a->index;
    if (a->index && strcmp(a->index, "bloom") != 0 &&
        strcmp(a->index, "memory") != 0)
        return fail("--index %s: right: memory or bloom", a->index);
    if (!a->output && !a->pairs && !a->clusters && !a->removed &&
        !a->save_index && !a->json && !quiet && !filtered)
        warn("only the report is written; -o OUT writes the corpus");
    int status = TROUBLE;
    if (dedup_pick(&o) && outputs_work(operands) &&
        dedup_files(operands, &files)) {
        input_documents(&in, files.at, files.n);
        in.whole = o.format == DEDUP_FILES;
        in.nthreads = o.nthreads;
        in.max_line = a->max_line;
        progress_start(false);
        progress_unit("documents");
        struct dedup d = { .opt = &o, .in = &in };
        if (!dedup_work_open(&d))
            status = fail("%s", d.error);
        else if (filtered && !(a->index && a->index[0] == 'm'))
            status = dedup_filtered(&d, ngrams);
        else
            status = dedup_near(&d);
        dedup_free(&d);
        lines_free(&in);
        dedup_files_free(&files);
    }
    json_path_free(&o.text);
    json_path_free(&o.id);
    json_path_free(&o.field);
    if (ngrams) {
        operands->at--;
        operands->n++;
    }
    return status;
}
