/*
 * build.c - keys that are not hashed yet, for a builder; and a filter of keys
 * that are all there, in one call
 *
 * Keys are hashed a piece at a time, on the stack. In one call, many keys are
 * cut into parts, and as many threads as there are processors take one part
 * after another. A kind to which the order of its keys matters gets them in one
 * thread, in their order.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "api/builder.h"
#include "api/keying.h"
#include "core/sized.h"
#include "core/status.h"

/* As in filter_api.c: the hashes stay in L1. */
#define PIECE_KEYS 2048

static bly_status add_given(bly_builder *b, const bly_given *given,
                            const uint64_t *values, size_t from, size_t to)
{
    uint64_t hashes[PIECE_KEYS];
    bly_status st = BLY_OK;
    for (size_t right; from < to && !st; from += right) {
        const size_t n = to - from < PIECE_KEYS ? to - from : PIECE_KEYS;
        const bly_status wrong =
            bly_hash_given(bly_builder_hasher(b), bly_builder_keying(b), given,
                           from, n, hashes, &right);
        st = wrong ? bly_builder_fails(b, wrong)
                   : bly_builder_add(b, hashes, values ? values + from : NULL,
                                     right);
    }
    return st;
}

static bly_status builder_add_given(bly_builder *b, bly_given given,
                                    const uint64_t *values, size_t n)
{
    if (!b || (!given.keys && n))
        return bly_fail_null("b or keys");
    const bly_status able =
        bly_builder_add(b, NULL, values, 0); /* wanted at all? */
    return able ? able : add_given(b, &given, values, 0, n);
}

bly_status bly_builder_add_keys(bly_builder *b, const bly_bytes *keys,
                                const uint64_t *values, size_t n)
{
    return builder_add_given(b, bly_given_keys(keys), values, n);
}

bly_status bly_builder_add_ints(bly_builder *b, const uint64_t *ints,
                                const uint64_t *values, size_t n)
{
    return builder_add_given(b, bly_given_ints(ints), values, n);
}

bly_status bly_builder_add_as(bly_builder *b, bly_key_type type,
                              const void *keys, const uint64_t *values,
                              size_t n)
{
    return builder_add_given(b, bly_given_as(type, keys), values, n);
}

/* ------------------------------------------------------------- in one call */

/* A thread takes this many keys at a time: a few milliseconds of hashing. */
#define PART_KEYS ((size_t)1 << 17)
#define MAX_THREADS 256

typedef struct build_job {
    bly_builder *builder;
    const bly_given *given;
    const uint64_t *values;
    size_t n;
    atomic_size_t next; /* part to be taken */
    pthread_mutex_t lock;
    bly_status status; /* the first failure; under the lock */
    char error[1024];  /* its message, which its thread takes along */
} build_job;

static void *build_worker(void *arg)
{
    build_job *const job = arg;
    for (;;) {
        const size_t part =
            atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed);
        const size_t from = part * PART_KEYS;
        if (part >= (job->n + PART_KEYS - 1) / PART_KEYS)
            return NULL;
        const size_t to = job->n - from < PART_KEYS ? job->n : from + PART_KEYS;
        const bly_status st =
            add_given(job->builder, job->given, job->values, from, to);
        if (!st)
            continue;
        pthread_mutex_lock(&job->lock);
        if (!job->status) {
            job->status = st;
            snprintf(job->error, sizeof job->error, "%s", bly_error());
        }
        pthread_mutex_unlock(&job->lock);
        atomic_store_explicit(&job->next, job->n, memory_order_relaxed);
        return NULL;
    }
}

static bly_status build_add(bly_builder *b, const bly_given *given,
                            const uint64_t *values, size_t n)
{
    const bool ordered = bly_builder_kind(b)->traits & BLY_ORDERED;
    const long nprocessors = ordered ? 1 : sysconf(_SC_NPROCESSORS_ONLN);
    build_job job = { .builder = b, .given = given, .values = values, .n = n };
    pthread_t threads[MAX_THREADS];
    size_t most = nprocessors > 1 ? (size_t)nprocessors : 1, started = 0;
    if (most > n / PART_KEYS)
        most = n / PART_KEYS;
    if (most > MAX_THREADS)
        most = MAX_THREADS;
    pthread_mutex_init(&job.lock, NULL);
    while (started + 1 < most &&
           pthread_create(&threads[started], NULL, build_worker, &job) == 0)
        started++;
    build_worker(&job);
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&job.lock);
    return job.status ? bly_fail(job.status, "%s", job.error) : BLY_OK;
}

static bly_status build(const bly_spec *spec, size_t size, bly_given given,
                        const uint64_t *values, size_t n, bly_filter **out)
{
    bly_spec own, typed;
    bly_builder *b;
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    if (!(spec = BLY_TAKE(spec, size, &own)))
        return BLY_EINVAL;
    if (!given.keys && n)
        return bly_fail_null("keys");
    typed = *spec;
    if (!typed.keying.type && given.type != BLY_NO_TYPE)
        typed.keying.type = given.type;
    bly_status st = bly_builder_new(&typed, &b);
    if (st)
        return st;
    st = bly_builder_add(b, NULL, values, 0); /* values, or none? */
    if (!st)
        st = build_add(b, &given, values, n);
    if (!st)
        st = bly_builder_finish(b, 0, out);
    bly_builder_free(b);
    return st;
}

bly_status bly_build_keys_sized(const bly_spec *spec, const bly_bytes *keys,
                                size_t n, bly_filter **out, size_t size)
{
    return build(spec, size, bly_given_keys(keys), NULL, n, out);
}

bly_status bly_build_ints_sized(const bly_spec *spec, const uint64_t *ints,
                                size_t n, bly_filter **out, size_t size)
{
    return build(spec, size, bly_given_ints(ints), NULL, n, out);
}

bly_status bly_build_as_sized(const bly_spec *spec, bly_key_type type,
                              const void *keys, const uint64_t *values,
                              size_t n, bly_filter **out, size_t size)
{
    return build(spec, size, bly_given_as(type, keys), values, n, out);
}
