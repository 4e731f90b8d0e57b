/*
 * building.c - a filter from the keys of an input, saved and told
 */
#include "io/building.h"

#include "io/files.h"
#include "io/paths.h"
#include "io/sizing.h"
#include "report/say.h"

const struct field built_fields[] = {
    FIELD(struct built, file, NONE, "where the filter was written"),
    FIELD(struct built, keys, KEYS, "keys that were read"),
    FIELD(struct built, others, NONE,
          "keys that were read with --universe or --negatives"),
    MEMBERS(struct built, made, NONE, made_fields),
    NAMED(struct built, "items_estimated", estimated, NONE,
          "whether the number of different keys is an estimate"),
    { 0 },
};

static bly_status built_batch(struct job *job, struct batch *b)
{
    return bly_builder_add(job->ctx, b->hashes, b->values, b->n);
}

bly_filter *built_filter(const bly_spec *spec, struct input *in,
                         struct job *job, bool *estimated)
{
    bly_builder *b;
    bly_filter *f = NULL;
    if (bly_builder_new(spec, &b)) {
        fail_library();
        return NULL;
    }
    job->hasher = bly_builder_hasher(b);
    job->batch = built_batch;
    job->ctx = b;
    if (pipeline_run(job, in))
        fail("%s", job->error);
    else if (!job->nkeys && !is_sized(spec))
        fail(BUILT_NOTHING);
    else if (bly_builder_finish(b, job->nthreads, &f))
        fail_library();
    *estimated = bly_builder_estimated(b);
    bly_builder_free(b);
    return f;
}

int built_save(bly_filter *f, const struct building *how, const struct job *job,
               uint64_t nothers, bool estimated, bly_stats *s)
{
    FILE *const to = report_to(how->output);
    int status = filter_tick(f) || (how->meta && meta_set(how->meta, f))
                     ? fail_library()
                     : YES;
    if (status == YES)
        status = filter_save(f, how->output);
    if (status == YES && !quiet) {
        bly_stat(f, s);
        const struct built built = { how->output, job->nkeys, nothers,
                                     made_of(s), estimated };
        report(to, how->json, built_fields, &built,
               "{file}: {keys} read; " MADE_TEXT);
        warn_past_capacity(how->output, s);
    }
    bly_free(f);
    return status;
}
