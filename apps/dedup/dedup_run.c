/*
 * dedup_run.c - a run of dedup, from its options to its report
 *
 * Two ways: rows of all documents in memory and exact checks, stage by stage
 * (near_stages), or one pass and a filter (filter.c).
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <string.h>

#include "apps/dedup/journal.h"
#include "apps/dedup/out_file.h"
#include "apps/dedup/dedup_run.h"
#include "apps/dedup/split.h"
#include "base/clock.h"
#include "io/folders.h"
#include "io/paths.h"
#include "report/out.h"
#include "report/say.h"
#include "report/show.h"

/* --------------------------------------------------------------- the stages */

/* Seconds since the last call with this clock. */
static double lap(double *clock)
{
    const double before = *clock;
    *clock = clock_seconds();
    return *clock - before;
}

static bool near_stages(struct dedup_job *job, struct input *in,
                        struct dedup_made *m)
{
    const struct dedup_options *const o = job->opt;
    const struct dedup_docs *const docs = &m->docs;
    const struct dedup_verdicts *const verdicts = &m->verdicts;
    const struct dedup_case all = { docs, &m->order, &m->buckets, &m->check };
    double clock = clock_seconds(), *const seconds = m->seconds;
    if (!dedup_corpus_fits(job, in) ||
        (o->against && !dedup_load_index(job, &m->docs, &m->sets)))
        return false;
    if (!input_spool(in, o->folder))
        return dedup_fail(job, "%s", in->error);
    lap(&clock);
    bool ok = dedup_read(job, &m->docs);
    seconds[0] = lap(&clock);
    ok = ok && dedup_order(job, docs, &m->order) &&
         dedup_band(job, docs, &m->order, &m->buckets);
    seconds[1] = lap(&clock);
    ok = ok && dedup_decide(job, &all, &m->verdicts);
    seconds[3] = m->check.seconds;
    seconds[2] = lap(&clock) - seconds[3];
    ok = ok &&
         (!o->pairs ||
          dedup_write_pairs(job, docs, &m->order, &m->check.pairs)) &&
         (!o->clusters || dedup_write_clusters(job, docs, verdicts)) &&
         (!o->removed || dedup_write_removed(job, docs, verdicts));
    lap(&clock);
    ok = ok && (!o->output || dedup_write_corpus(job, docs, verdicts));
    seconds[4] = lap(&clock);
    return ok &&
           (!o->save_index || dedup_save_index(job, docs, verdicts, &m->sets));
}

int dedup_bad_input(const struct dedup_options *o, const struct input *in,
                    const struct dedup_seen *seen)
{
    int status = YES;
    for (size_t i = 0; i < seen->nbad && !o->strict; i++)
        warn("%s:%llu: %s; the %s is kept", seen->bad[i].file,
             (unsigned long long)seen->bad[i].line, seen->bad[i].why,
             dedup_noun(o));
    if (seen->malformed && seen->malformed == seen->documents && !o->strict &&
        o->format != DEDUP_WARC)
        warn("no line could be used; if each line is a document, use --lines; "
             "if the text has another name, use --text-field FIELD");
    if (seen->odd)
        warn("%llu %s not UTF-8, as JSON has to be; compared byte by byte",
             (unsigned long long)seen->odd,
             seen->odd == 1 ? "text is" : "texts are");
    /* Said even with --quiet, since nothing else would explain the status. */
    if (seen->malformed)
        status = o->strict
                     ? TROUBLE
                     : fail("%llu malformed %ss were kept; --strict "
                            "stops at the first",
                            (unsigned long long)seen->malformed, dedup_noun(o));
    for (size_t i = 0; i < in->nfiles; i++) {
        const struct input_file *const f = &in->files[i];
        if (f->error[0] && in->whole)
            status = fail("%s: %s; what came before that was used", f->name,
                          f->error);
        else if (f->error[0])
            status = fail("%s: %s; the %llu %s before that were used", f->name,
                          f->error, (unsigned long long)f->ndocs,
                          o->format == DEDUP_WARC ? "pages" : "lines");
    }
    return status;
}

static int dedup_near(struct dedup_job *job, struct input *in)
{
    struct dedup_made made = { .docs = { .in = in, .k = job->opt->sketch.k },
                               .sets = { .store = job->store },
                               .check = { .docs = &made.docs,
                                          .sets = &made.sets } };
    const bool ok = near_stages(job, in, &made);
    progress_clear();
    const int status = dedup_bad_input(job->opt, in, &made.docs.seen);
    if (ok)
        dedup_report(job->opt, &made);
    store_free(&made.sets.store);
    return ok ? status : fail("%s", job->error);
}

/* ------------------------------------------------------------------ the run */

static void clean_lines(void *bytes, size_t n)
{
    text_clean(bytes, n, true);
}

bool dedup_outputs_work(const struct dedup_options *o,
                        const struct list *operands)
{
    const char *const outs[] = DEDUP_OUTPUTS(o);
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
            (!is_stdout(outs[i]) &&
             !(outs[i] == o->output && dedup_is_folder(outs[i])) &&
             !output_works(outs[i], false)))
            return false;
    }
    if (to_stdout + (o->json && !quiet) > 1) {
        fail("two results would mix on standard output");
        return false;
    }
    return true;
}

int dedup_run(const struct dedup_options *o, const struct list *operands)
{
    struct input in;
    struct list files = { 0 };
#ifdef M_MMAP_THRESHOLD
    /* Long lines are given back to the system when they are done. If left to
     * itself, malloc() would begin to keep them after the first, once for each
     * thread. */
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
#endif
    if (!dedup_outputs_work(o, operands) ||
        !files_named(operands, o->format == DEDUP_FILES, NULL, &files))
        return TROUBLE;
    input_documents(&in, files.at, files.n);
    in.whole = o->format == DEDUP_FILES;
    in.records = o->format == DEDUP_WARC;
    in.nthreads = o->nthreads;
    in.max_line = o->max_line;
    progress_start(false);
    progress_unit("documents");
    struct dedup_job job;
    dedup_job_init(&job, o);
    const int status = !dedup_work_open(&job)       ? fail("%s", job.error)
                       : o->one_pass                ? dedup_filtered(&job, &in)
                       : split_is_better(o, &files) ? split_in_work(o, &files)
                                                    : dedup_near(&job, &in);
    dedup_job_free(&job);
    input_close(&in);
    files_free(&files);
    return status;
}
