/*
 * pipeline.c - keys from input to output, by several threads, in order
 *
 * Every worker does everything: it takes the input's lock, reads the next
 * block, lets the lock go, cuts the block into keys, hashes them, hands them to
 * the command in batches, and waits for its block's turn to write. There are no
 * queues, so memory is a block a worker; and a block stays with one core.
 *
 *     worker 0   read 0 | work ......... | write 0 | read 2 | work ...
 *     worker 1          | read 1 | work ......... | write 1 | read 3 | ...
 *
 * Keys that are to be printed are moved together inside the block itself: the
 * output is never longer than the input, and neighbours move as one. A block
 * whose keys are all printed is written where it was read.
 *
 *     | kept | dropped | kept kept kept | dropped | ... not worked on yet
 *     | kept | kept kept kept | free          |
 *
 * A command that prints more than keys appends its lines to a text of the
 * worker's, which is written in the block's turn instead.
 *
 * Where keys have values, blocks take turns though nothing is written: so the
 * number of lines before a block is known when its turn comes, and of several
 * wrong lines the first one is told.
 *
 * A further worker is made only when a block came full: a few keys need no
 * threads.
 */
#define _GNU_SOURCE /* sched_getaffinity, pipe2 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bloomery.h>

#include "io/cutter.h"
#include "io/paths.h"
#include "io/pipeline.h"
#include "io/values.h"
#include "report/out.h"
#include "report/progress.h"
#include "report/show.h"

/* A block this large came from a file or a full pipe: there is more. */
#define FULL_BYTES ((size_t)64 * 1024)

struct run {
    struct job *job;
    struct input *in;
    pthread_mutex_t reading; /* in, workers, nworkers, nkeys_read */
    pthread_mutex_t writing; /* turn, job's results, status */
    pthread_cond_t turned;
    uint64_t turn; /* the block to be written next */
    const char
        *file;       /* that the last block in turn is from; whose turn it is */
    uint64_t nlines; /* in it before the block whose turn it is; has these */
    bly_status status;
    atomic_bool stop; /* an error, or the answer is known */
    _Atomic uint64_t nkeys;
    struct worker **workers;
    unsigned nworkers;
    int wake[2]; /* a pipe that tells the reader to stop; -1: none */
};

struct worker {
    struct run *run;
    pthread_t thread;
    struct block block;
    struct block text; /* what is written instead, where the job writes */
    uint64_t number;   /* of the block */
    const char *file;  /* that it is from */
    uint64_t nlines;   /* in it */
    uint64_t nkeys, npicked;
    bly_bytes keys[BATCH];
    uint64_t hashes[BATCH];
    uint64_t values[BATCH];
    uint64_t picked[BLY_BITMAP_WORDS(BATCH)];
};

#define MAX_WORKERS 1024

unsigned thread_count(uint64_t asked)
{
    cpu_set_t set;
    long n = 0;
    if (asked)
        return asked < MAX_WORKERS ? (unsigned)asked : MAX_WORKERS;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        n = CPU_COUNT(&set);
    else /* more processors than a set has places */
        n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n < MAX_WORKERS ? (unsigned)n : MAX_WORKERS;
}

void batch_invert(struct batch *b)
{
    for (size_t i = 0; i < BLY_BITMAP_WORDS(b->n); i++)
        b->picked[i] = ~b->picked[i];
    if (b->n % 64)
        b->picked[b->n / 64] &= (UINT64_C(1) << b->n % 64) - 1;
}

/* Stop every worker; the first reason given is the one that is told. */
static void stop_run(struct run *r, bly_status status, const char *why)
{
    pthread_mutex_lock(&r->writing);
    if (!r->status && status) {
        r->status = status;
        snprintf(r->job->error, sizeof r->job->error, "%s", why);
    }
    atomic_store(&r->stop, true);
    pthread_cond_broadcast(&r->turned);
    pthread_mutex_unlock(&r->writing);
    /* Another worker may wait for input that never comes. */
    while (r->wake[1] >= 0 && write(r->wake[1], "", 1) < 0 && errno == EINTR)
        ;
}

/* The same for a batch that failed, by what it was to change. */
static void stop_batch(struct run *r, bly_status status, const char *why)
{
    char named[sizeof r->job->error];
    const char *const path = r->job->path;
    snprintf(named, sizeof named, "%s%s%s", path ? path : "", path ? ": " : "",
             why);
    stop_run(r, status, named);
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

/* Wait until all blocks before the worker's had their turn; false where that
 * will not be. */
static bool await_turn(struct worker *w)
{
    struct run *const r = w->run;
    pthread_mutex_lock(&r->writing);
    while (r->turn != w->number && !atomic_load(&r->stop))
        pthread_cond_wait(&r->turned, &r->writing);
    const bool go = !atomic_load(&r->stop);
    pthread_mutex_unlock(&r->writing);
    if (go && r->file != w->file) {
        r->file = w->file;
        r->nlines = 0;
    }
    return go;
}

/* Stop because of the line behind the first n of the worker's block. */
static void stop_at_line(struct worker *w, uint64_t n, const char *why)
{
    struct run *const r = w->run;
    char text[512];
    if (!await_turn(w))
        return;
    snprintf(text, sizeof text, "%s: %s %llu: %s",
             is_dash(w->file) ? "standard input" : w->file,
             r->in->separator ? "line" : "key",
             (unsigned long long)(r->nlines + n + 1), why);
    stop_run(r, BLY_EINVAL, text);
}

/* Show all keys of the worker's block to the command before it works on any. */
static bool work_ahead(struct worker *w)
{
    struct job *const job = w->run->job;
    struct cutter cutter =
        cutter_start(w->block.at, w->block.len, w->run->in->separator);
    size_t n;
    while ((n = cutter_next(&cutter, w->keys, BATCH))) {
        struct batch batch = {
            .keys = w->keys,
            .hashes = job->hasher ? w->hashes : NULL,
            .n = n,
            .picked = w->picked,
            .text = &w->text,
        };
        if (job->hasher)
            bly_hash_keys(job->hasher, w->keys, n, w->hashes);
        const bly_status st = job->ahead(job, &batch);
        if (st) {
            stop_run(w->run, st, batch.why ? batch.why : bly_error());
            return false;
        }
    }
    return true;
}

/* Work on all keys of the worker's block, which becomes its output. */
static bool work(struct worker *w)
{
    struct job *const job = w->run->job;
    const char separator = w->run->in->separator;
    struct cutter cutter = cutter_start(w->block.at, w->block.len, separator);
    char *to = w->block.at;
    uint64_t nkeys = 0, npicked = 0;
    size_t n;

    w->text.len = 0;
    if (job->ahead && !work_ahead(w))
        return false;
    while ((n = cutter_next(&cutter, w->keys, BATCH))) {
        if (job->valued) {
            char why[VALUE_WHY];
            const size_t right =
                values_cut(w->keys, n, job->delimiter, w->values, why);
            if (right < n) {
                stop_at_line(w, nkeys + right, why);
                return false;
            }
        }
        struct batch batch = {
            .keys = w->keys,
            .hashes = job->hasher ? w->hashes : NULL,
            .values = job->valued ? w->values : NULL,
            .n = n,
            .picked = w->picked,
            .text = &w->text,
        };
        if (job->hasher)
            bly_hash_keys(job->hasher, w->keys, n, w->hashes);
        memset(w->picked, 0, sizeof w->picked);
        const bly_status st = job->batch(job, &batch);
        if (st) {
            stop_batch(w->run, st, batch.why ? batch.why : bly_error());
            return false;
        }
        uint64_t here = 0;
        for (size_t i = 0; i < BLY_BITMAP_WORDS(n); i++)
            here += (uint64_t)__builtin_popcountll(w->picked[i]);
        nkeys += n;
        npicked += here;
        if (here && job->first_only)
            break;
        if (here && job->prints) {
            if (separator != job->terminator)
                for (size_t i = 0; i < n; i++)
                    ((char *)(uintptr_t)w->keys[i].ptr)[w->keys[i].len] =
                        job->terminator;
            keep_picked(w->keys, n, w->picked, &to);
        }
    }
    w->block.len = (size_t)(to - w->block.at);
    w->nlines = nkeys;
    w->nkeys += nkeys;
    w->npicked += npicked;
    atomic_fetch_add_explicit(&w->run->nkeys, nkeys, memory_order_relaxed);
    if (npicked && job->first_only) {
        stop_run(w->run, BLY_OK, "");
        return false;
    }
    return true;
}

/* Write the worker's block when all before it are written. */
static bool write_in_turn(struct worker *w)
{
    struct run *const r = w->run;
    if (!await_turn(w))
        return false;
    /* Nobody else writes before the turn is passed on: no lock is needed. */
    const struct block *const out = r->job->writes ? &w->text : &w->block;
    if (out_is_terminal())
        text_clean(out->at, out->len, true);
    const int error = out_write(out->at, out->len);
    if (error) {
        char why[256];
        snprintf(why, sizeof why, "standard output: %s", strerror(error));
        stop_run(r, BLY_EIO, why);
        return false;
    }
    r->nlines += w->nlines;
    pthread_mutex_lock(&r->writing);
    r->turn++;
    pthread_cond_broadcast(&r->turned);
    pthread_mutex_unlock(&r->writing);
    return true;
}

static void *worker_main(void *arg);

/* One worker more, if that is possible; if not, those there are must do. */
static void add_worker(struct run *r)
{
    struct worker *const w = calloc(1, sizeof *w);
    if (!w)
        return;
    w->run = r;
    r->workers[r->nworkers] = w;
    if (pthread_create(&w->thread, NULL, worker_main, w) != 0)
        free(w);
    else
        r->nworkers++;
}

static void *worker_main(void *arg)
{
    struct worker *const w = arg;
    struct run *const r = w->run;
    const bool turns = r->job->prints || r->job->writes || r->job->valued;
    for (;;) {
        pthread_mutex_lock(&r->reading);
        const bool got = !atomic_load(&r->stop) && input_next(r->in, &w->block);
        if (got) {
            w->number = r->in->nblocks - 1;
            w->file = r->in->names[r->in->next - 1];
            if (w->block.len >= FULL_BYTES && r->nworkers < r->job->nthreads)
                add_worker(r);
            progress_at(atomic_load_explicit(&r->nkeys, memory_order_relaxed),
                        r->in->bytes_done, r->in->bytes_all);
        }
        pthread_mutex_unlock(&r->reading);
        if (!got || !work(w) || (turns && !write_in_turn(w)))
            return NULL;
    }
}

bly_status pipeline_run(struct job *job, struct input *in)
{
    struct run r = { .job = job, .in = in, .wake = { -1, -1 } };
    struct worker *const own = calloc(1, sizeof *own);
    r.workers = calloc(job->nthreads, sizeof(struct worker *));
    if (!own || !r.workers) {
        free(own);
        free(r.workers);
        snprintf(job->error, sizeof job->error, "out of memory");
        return BLY_ENOMEM;
    }
    pthread_mutex_init(&r.reading, NULL);
    pthread_mutex_init(&r.writing, NULL);
    pthread_cond_init(&r.turned, NULL);
    own->run = &r;
    r.workers[0] = own;
    r.nworkers = 1;
    if (job->nthreads > 1 && pipe2(r.wake, O_CLOEXEC | O_NONBLOCK) == 0)
        in->stop_fd = r.wake[0];
    progress_start(job->prints || job->writes);
    worker_main(own);

    /* Workers may still make workers; one that is made is counted before its
     * maker ends. */
    for (unsigned i = 0;; i++) {
        pthread_mutex_lock(&r.reading);
        struct worker *const w = i < r.nworkers ? r.workers[i] : NULL;
        pthread_mutex_unlock(&r.reading);
        if (!w)
            break;
        if (i)
            pthread_join(w->thread, NULL);
        job->nkeys += w->nkeys;
        job->npicked += w->npicked;
        block_free(&w->block);
        block_free(&w->text);
        free(w);
    }
    progress_clear();
    free(r.workers);
    for (int i = 0; i < 2; i++)
        if (r.wake[i] >= 0)
            close(r.wake[i]);
    pthread_cond_destroy(&r.turned);
    pthread_mutex_destroy(&r.writing);
    pthread_mutex_destroy(&r.reading);
    if (!r.status && in->error[0] && !(job->first_only && job->npicked)) {
        snprintf(job->error, sizeof job->error, "%s", in->error);
        return BLY_EIO;
    }
    return r.status;
}
