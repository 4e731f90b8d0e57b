/*
 * pipeline.c - keys from input to output, by several threads, in order
 *
 * A worker (ordered.c) cuts its block into keys, hashes them and hands them to
 * the command in batches. Keys that are to be printed are moved together inside
 * the block itself: the output is never longer than the input, and neighbours
 * move as one. A block whose keys are all printed is written where it was read.
 *
 *     | kept | dropped | kept kept kept | dropped | ... not worked on yet
 *     | kept | kept kept kept | free          |
 *
 * A command that prints more than keys appends its lines to a text of the
 * worker's, which is written in the block's turn instead.
 *
 * Where the answer for a key depends on those before it, a worker only cuts and
 * hashes its block; the command sees the keys when it is the block's turn. A
 * block of very short keys has more than were hashed ahead: the rest is worked
 * on piece by piece, then and there.
 *
 * Where keys have values, blocks take turns though nothing is written: so the
 * number of lines before a block is known when its turn comes, and of several
 * wrong lines the first one is told.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "io/cutter.h"
#include "io/pipeline.h"
#include "io/values.h"
#include "report/out.h"
#include "report/say.h"
#include "report/show.h"

/* Keys that wait for the turn of their block. */
struct pending {
    bly_bytes keys[BATCH_IN_ORDER];
    uint64_t hashes[BATCH_IN_ORDER];
    uint64_t picked[BLY_BITMAP_WORDS(BATCH_IN_ORDER)];
};

struct keys_worker {
    struct pending *pending; /* NULL unless the job is in order */
    size_t npending;
    struct cutter cutter; /* where the rest of the block begins */
    struct block text;    /* written instead of the block, if the job writes */
    uint64_t nlines;      /* of its block that are right */
    char why[VALUE_WHY];  /* the next one is not; empty: all are right */
    uint64_t nkeys, npicked; /* of all its blocks */
};

struct keys_run {
    struct job *job;
    struct input *in;
    struct keys_worker *workers;
    pthread_mutex_t failing; /* status, job->error */
    bly_status status;
    const struct input_file *file; /* of the block whose turn it is */
    uint64_t nlines;               /* in it before that block */
};

void batch_invert(struct batch *b)
{
    for (size_t i = 0; i < BLY_BITMAP_WORDS(b->n); i++)
        b->picked[i] = ~b->picked[i];
    if (b->n % 64)
        b->picked[b->n / 64] &= (UINT64_C(1) << b->n % 64) - 1;
}

/* The first reason given is the one that is told. Returns false. */
__attribute__((format(printf, 3, 4))) static bool
fail_run(struct keys_run *r, bly_status status, const char *format, ...)
{
    va_list ap;
    pthread_mutex_lock(&r->failing);
    va_start(ap, format);
    if (!r->status)
        vsnprintf(r->job->error, sizeof r->job->error, format, ap);
    va_end(ap);
    r->status = r->status ? r->status : status;
    pthread_mutex_unlock(&r->failing);
    return false;
}

/* Move the picked keys of a batch to *to, separators included. */
static void keep_picked(const bly_bytes *keys, size_t n, const uint64_t *picked,
                        char **to)
{
    for (size_t w = 0; w < BLY_BITMAP_WORDS(n); w++) {
        uint64_t bits = picked[w];
        while (bits) {
            const unsigned first = (unsigned)__builtin_ctzll(bits);
            const uint64_t behind = ~(bits >> first); /* has a bit but for -1 */
            const unsigned len =
                behind ? (unsigned)__builtin_ctzll(behind) : 64;
            const bly_bytes *const last = &keys[w * 64 + first + len - 1];
            const char *const from = keys[w * 64 + first].ptr;
            const size_t size =
                (size_t)((const char *)last->ptr - from) + last->len + 1;
            if (*to != from)
                memmove(*to, from, size);
            *to += size;
            bits =
                first + len < 64 ? bits >> (first + len) << (first + len) : 0;
        }
    }
}

static void hash_batch(const struct job *job, struct batch *b, uint64_t *hashes)
{
    if (!job->hasher)
        return;
    bly_hash_keys(job->hasher, b->keys, b->n, hashes);
    b->hashes = hashes;
}

/* Hand some keys to the command. */
static bool give_batch(struct keys_run *r, struct batch *b, bool ahead)
{
    struct job *const job = r->job;
    const bly_status st = (ahead ? job->ahead : job->batch)(job, b);
    const char *const path = ahead || !job->path ? "" : job->path;
    return !st || fail_run(r, st, "%s%s%s", path, *path ? ": " : "",
                           b->why ? b->why : bly_error());
}

/* Show all keys of a block to the command before it works on any. */
static bool work_ahead(struct keys_run *r, struct block *text,
                       const struct block *b)
{
    struct cutter cutter = cutter_start(b->at, b->len, r->in->separator);
    bly_bytes keys[BATCH];
    uint64_t hashes[BATCH], picked[BLY_BITMAP_WORDS(BATCH)] = { 0 };
    struct batch batch = { .keys = keys, .picked = picked, .text = text };
    bool ok = true;
    while (ok && (batch.n = cutter_next(&cutter, keys, BATCH))) {
        hash_batch(r->job, &batch, hashes);
        ok = give_batch(r, &batch, true);
    }
    return ok;
}

static uint64_t count_picked(const struct batch *b)
{
    uint64_t n = 0;
    for (size_t i = 0; i < BLY_BITMAP_WORDS(b->n); i++)
        n += (uint64_t)__builtin_popcountll(b->picked[i]);
    return n;
}

/* Move what is to be printed of a batch to *to. */
static void keep_batch(const struct keys_run *r, const struct batch *b,
                       char **to)
{
    const char terminator = r->job->terminator;
    if (r->in->separator != terminator)
        for (size_t i = 0; i < b->n; i++)
            ((char *)(uintptr_t)b->keys[i].ptr)[b->keys[i].len] = terminator;
    keep_picked(b->keys, b->n, b->picked, to);
}

static void count_keys(struct keys_run *r, struct keys_worker *w,
                       uint64_t npicked)
{
    w->nkeys += w->nlines;
    w->npicked += npicked;
    atomic_fetch_add_explicit(&r->in->nkeys, w->nlines, memory_order_relaxed);
}

/* Work on all keys of a block, which becomes its output. */
static bool work_keys(void *ctx, unsigned worker, struct block *b)
{
    struct keys_run *const r = ctx;
    struct job *const job = r->job;
    struct keys_worker *const w = &r->workers[worker];
    struct cutter cutter = cutter_start(b->at, b->len, r->in->separator);
    bly_bytes keys[BATCH];
    uint64_t hashes[BATCH], values[BATCH], picked[BLY_BITMAP_WORDS(BATCH)];
    char *to = b->at;
    uint64_t npicked = 0;
    size_t n;

    w->text.len = 0;
    w->nlines = 0;
    if (job->ahead && !work_ahead(r, &w->text, b))
        return false;
    while ((n = cutter_next(&cutter, keys, BATCH))) {
        struct batch batch = {
            .keys = keys, .n = n, .picked = picked, .text = &w->text
        };
        if (job->valued) {
            const size_t right =
                values_cut(keys, n, job->delimiter, values, w->why);
            if (right < n) {
                w->nlines += right;
                return true; /* told when it is the block's turn */
            }
            batch.values = values;
        }
        memset(picked, 0, sizeof picked);
        hash_batch(job, &batch, hashes);
        if (!give_batch(r, &batch, false))
            return false;
        const uint64_t here = count_picked(&batch);
        w->nlines += n;
        npicked += here;
        if (here && job->first_only)
            break;
        if (here && job->prints)
            keep_batch(r, &batch, &to);
    }
    b->len = (size_t)(to - b->at);
    count_keys(r, w, npicked);
    return !(npicked && job->first_only);
}

/* The next keys of a worker's block, hashed. */
static void next_pending(struct keys_run *r, struct keys_worker *w)
{
    struct pending *const p = w->pending;
    w->npending = cutter_next(&w->cutter, p->keys, BATCH_IN_ORDER);
    struct batch b = { .keys = p->keys, .n = w->npending };
    hash_batch(r->job, &b, p->hashes);
}

/* Cut and hash a block, as far as there is room. */
static bool work_pending(void *ctx, unsigned worker, struct block *b)
{
    struct keys_run *const r = ctx;
    struct keys_worker *const w = &r->workers[worker];
    if (!w->pending && !(w->pending = malloc(sizeof *w->pending)))
        return fail_run(r, BLY_ENOMEM, "out of memory");
    w->cutter = cutter_start(b->at, b->len, r->in->separator);
    next_pending(r, w);
    return true;
}

/* Work on all keys of such a block, which becomes its output. False if the
 * command failed: what it had picked by then is printed all the same. */
static bool decide_pending(struct keys_run *r, struct keys_worker *w,
                           struct block *b)
{
    struct pending *const p = w->pending;
    char *to = b->at;
    uint64_t npicked = 0;
    bool ok = true;
    w->nlines = 0;
    w->text.len = 0;
    for (; ok && w->npending; next_pending(r, w)) {
        struct batch batch = { .keys = p->keys,
                               .hashes = r->job->hasher ? p->hashes : NULL,
                               .n = w->npending,
                               .picked = p->picked,
                               .text = &w->text };
        memset(p->picked, 0, BLY_BITMAP_WORDS(batch.n) * sizeof *p->picked);
        ok = give_batch(r, &batch, false);
        npicked += count_picked(&batch);
        w->nlines += batch.n;
        if (r->job->prints)
            keep_batch(r, &batch, &to);
    }
    b->len = (size_t)(to - b->at);
    count_keys(r, w, npicked);
    return ok;
}

static bool put_block(struct keys_run *r, const struct block *b)
{
    if (out_is_terminal())
        text_clean(b->at, b->len, true);
    const int error = out_write(b->at, b->len);
    return !error ||
           fail_run(r, BLY_EIO, "standard output: %s", strerror(error));
}

/* Write what was made of a block, or tell the line that is wrong. */
static bool write_keys(void *ctx, unsigned worker, struct block *b)
{
    struct keys_run *const r = ctx;
    struct keys_worker *const w = &r->workers[worker];
    if (r->file != b->file)
        r->nlines = 0;
    r->file = b->file;
    r->nlines += w->nlines;
    if (w->why[0])
        return fail_run(r, BLY_EINVAL, "%s: %s %llu: %s",
                        input_name(r->in, b->file),
                        r->in->separator ? "line" : "key",
                        (unsigned long long)(r->nlines + 1), w->why);
    return put_block(r, r->job->writes ? &w->text : b);
}

static bool write_pending(void *ctx, unsigned worker, struct block *b)
{
    struct keys_run *const r = ctx;
    struct keys_worker *const w = &r->workers[worker];
    const bool decided = decide_pending(r, w, b);
    const bool put = put_block(r, r->job->writes ? &w->text : b);
    if (r->job->written)
        r->job->written(r->job, put);
    return decided && put;
}

bly_status pipeline_run(struct job *job, struct input *in)
{
    const bool turns = job->prints || job->writes || job->valued;
    struct keys_run r = { .job = job,
                          .in = in,
                          .failing = PTHREAD_MUTEX_INITIALIZER };
    in->nthreads = job->nthreads;
    r.workers = calloc(ordered_workers(in), sizeof *r.workers);
    if (!r.workers) {
        fail_run(&r, BLY_ENOMEM, "out of memory");
        return r.status;
    }
    progress_start(job->prints || job->writes);
    if (job->in_order)
        ordered_run(in, work_pending, write_pending, &r);
    else
        ordered_run(in, work_keys, turns ? write_keys : NULL, &r);
    progress_clear();
    for (unsigned i = 0; i < ordered_workers(in); i++) {
        job->nkeys += r.workers[i].nkeys;
        job->npicked += r.workers[i].npicked;
        block_free(&r.workers[i].text);
        free(r.workers[i].pending);
    }
    free(r.workers);
    if (in->error[0] && !(job->first_only && job->npicked))
        fail_run(&r, BLY_EIO, "%s", in->error);
    return r.status;
}
