/*
 * sifted.c - a filter from those keys of an input that a sieve lets through
 */
#include "io/keys.h"
#include "io/sizing.h"
#include "report/say.h"

struct sifting {
    sift_fn *sift;
    const void *ctx;
    bly_builder *builder;
};

static bly_status sifted_batch(struct job *job, struct batch *b)
{
    const struct sifting *const s = job->ctx;
    uint64_t kept[BATCH];
    size_t n = 0;
    const bly_status st = s->sift(s->ctx, b);
    for (size_t i = 0; i < b->n && !st; i++)
        if (b->picked[i / 64] >> i % 64 & 1)
            kept[n++] = b->hashes[i];
    return st ? st : bly_builder_add(s->builder, kept, NULL, n);
}

bly_filter *sifted_filter(const bly_spec *spec, const struct keys *keys,
                          const char *path, uint64_t threads, sift_fn *sift,
                          const void *ctx, struct job *job)
{
    struct sifting s = { .sift = sift, .ctx = ctx };
    bly_filter *f = NULL;
    if (bly_builder_new(spec, &s.builder)) {
        fail_library();
        return NULL;
    }
    struct input in;
    if (!keys_files(keys, keys->files.at, keys->files.n, &in)) {
        bly_builder_free(s.builder);
        return NULL;
    }
    if (!keys_follow(spec->keying, path, &in)) {
        input_close(&in);
        bly_builder_free(s.builder);
        return NULL;
    }
    *job = (struct job){
        .hasher = bly_builder_hasher(s.builder),
        .batch = sifted_batch,
        .nthreads = thread_count(threads),
        .ctx = &s,
    };
    if (pipeline_run(job, &in))
        fail("%s", job->error);
    else if (!job->npicked && !is_sized(spec))
        fail("none of the keys is in the filter; to make an empty one, give "
             "its capacity with --items");
    else if (bly_builder_finish(s.builder, job->nthreads, &f))
        fail_library();
    input_close(&in);
    bly_builder_free(s.builder);
    return f;
}
