/*
 * dedup_filter.c - dedup in one pass, with a filter of any kind that adds
 *
 * One filter holds the keys of all bands: the number of a band is part of its
 * keys, so that this is b filters in one, of the same size and rate. A document
 * goes if enough of its bands are known (apps/dedup/agreement.h). Nothing is
 * compared, so every run reports what that costs.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <unistd.h>

#include "apps/dedup/agreement.h"
#include "apps/dedup/dedup_run.h"
#include "io/filters.h"
#include "io/paths.h"
#include "io/sizing.h"
#include "report/say.h"

/* How many n-grams there are, and four deviations of that estimate more. */
static bool count_ngrams(struct dedup_job *job, struct input *in,
                         uint64_t *items)
{
    double distinct;
    if (!input_spool(in, job->opt->folder)) {
        fail("%s", in->error);
        return false;
    }
    if (!dedup_stream_count(job, in, &distinct)) {
        progress_clear();
        fail("%s", job->error);
        return false;
    }
    *items = (uint64_t)(distinct * 1.035) + 100;
    return true;
}

static bly_filter *filter_made(struct dedup_job *job, struct input *in)
{
    const struct stream_options *const o = &job->opt->stream;
    const bool bands = o->unit == STREAM_BANDS;
    const uint64_t each = bands ? job->opt->bands.bands : 1;
    bly_spec spec = { .kind = o->kind, .fpr = o->rate };
    spec.items = o->items * each;
    if (bands) {
        const struct agreement g = { job->opt->bands, job->opt->known };
        spec.fpr = agreement_key_rate(&g, o->rate);
        spec.seed = dedup_stream_seed(job->opt);
    }
    if (!o->items && o->unit == STREAM_NGRAMS &&
        !count_ngrams(job, in, &spec.items))
        return NULL;
    if (!o->kind && !spec.items)
        spec.kind = "scalable"; /* grows, since nobody said how many */
    if (!spec.items)
        spec.items = 1000000;
    bly_filter *f;
    if (o->kind && !kind_exists(o->kind))
        return NULL;
    if (bly_new(&spec, &f)) {
        fail_library();
        return NULL;
    }
    return f;
}

/* Can this run use the filter? False, with the reason printed, if not. */
static bool filter_fits(const struct dedup_options *o, const bly_filter *f,
                        const char *name)
{
    if (!filter_can(f, name, BLY_CAN(HAS)) ||
        (!o->stream.read_only && !filter_can(f, name, BLY_CAN(ADD))))
        return false;
    if (o->stream.unit != STREAM_BANDS)
        return true;
    bly_stats s;
    bly_stat(f, &s);
    if (s.seed == dedup_stream_seed(o))
        return true;
    fail("%s: not made for %u bands of %u of these sketches; give the --bands, "
         "--threshold, --recall, --profile, --unit, --size, --k, --family and "
         "--seed that it was made with, or a new file",
         name, o->bands.bands, o->bands.rows);
    return false;
}

/* A run with a filter. */
struct filtering {
    struct dedup_job *job;
    struct input *in;
    struct stream_report report;
    int status;
    bool ok, said; /* said: why not */
};

static bly_status filter_through(bly_filter *f, void *ctx)
{
    struct filtering *const r = ctx;
    const struct dedup_options *const o = r->job->opt;
    r->said = true;
    if (!filter_fits(o, f, o->stream.filter ? o->stream.filter : "the filter"))
        return BLY_EINVAL;
    r->ok = dedup_stream(r->job, r->in, f, &r->report);
    progress_clear();
    r->status = dedup_bad_input(o, r->in, &r->report.seen);
    if (!r->ok)
        r->status = fail("%s", r->job->error);
    r->said = !r->ok;
    return r->ok ? BLY_OK : BLY_EIO;
}

static int filter_run(struct filtering *r)
{
    const struct dedup_options *const o = r->job->opt;
    const char *const path = o->stream.filter;
    const bool read_only = o->stream.read_only;
    const bool there = path && access(path, F_OK) == 0;
    const bly_access how = { .wait = o->wait };
    r->status = TROUBLE;
    /* The file appeared meanwhile, and a new one would replace it. */
    if (path && !there && errno != ENOENT)
        return fail_path(path, errno);
    if (read_only && !there)
        return fail("--read-only needs a filter: --filter FILE that exists");
    if (there && is_same_file(o->output, path))
        return fail("%s: is both the filter and the output; name two files",
                    path);
    if (there && !read_only) {
        /* The file is locked, so that two runs at once lose nothing of each
         * other. */
        if (bly_update(path, &how, filter_through, r) && !r->said)
            r->status = fail_library();
        return r->status;
    }
    bly_filter *const f =
        there ? filter_open(path, NULL) : filter_made(r->job, r->in);
    if (f && filter_through(f, r) == BLY_OK && path && !read_only &&
        filter_save(f, path) != YES)
        r->status = TROUBLE;
    bly_free(f);
    return r->status;
}

int dedup_filtered(struct dedup_job *job, struct input *in)
{
    const struct dedup_options *const o = job->opt;
    if (!o->output)
        return fail("nothing says where to write; use -o OUT, or -o - for "
                    "standard output");
    if (o->pairs || o->clusters || o->removed || o->save_index || o->against)
        return fail("a filter does not know which documents are alike: "
                    "--pairs, --clusters, --removed, --save-index and "
                    "--against need --index memory");
    if (o->format == DEDUP_FILES)
        return fail("--files needs --index memory");
    struct filtering r = { .job = job, .in = in };
    const int status = filter_run(&r);
    if (r.ok)
        dedup_filter_report(o, &r.report);
    return status;
}
