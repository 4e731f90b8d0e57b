/*
 * ordered.c - blocks by several threads, in order
 *
 * Every worker does everything: it takes the input's lock, reads the next
 * block, lets the lock go, works on the block, and waits for the block's turn
 * to hand over what it made. There are no queues, so memory is a block per
 * worker; and a block stays with one core.
 *
 *     worker 0   read 0 | work ......... | turn 0 | read 2 | work ...
 *     worker 1          | read 1 | work ......... | turn 1 | read 3 | ...
 *
 * Another worker is started only after a full block: a few keys need no
 * threads.
 *
 * What a worker needs for a block grows with the block, to several times its
 * size. So long lines are worked on one at a time, with a worker's number of
 * their own, and memory is bounded by one of them whatever the threads are.
 */
#define _GNU_SOURCE /* sched_getaffinity, pipe2 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "io/ordered.h"
#include "report/say.h"

/* A block this large came from a file or a full pipe: there is more. */
#define FULL_BYTES ((size_t)64 * 1024)
#define LARGE_BYTES ((size_t)8 << 20)
#define MAX_WORKERS 1024

struct ordered {
    struct input *in;
    input_want *want; /* NULL: all blocks */
    ordered_fn *work, *turn;
    void *ctx;
    pthread_mutex_t reading; /* in, nworkers */
    pthread_mutex_t turning; /* next_turn */
    pthread_mutex_t large; /* taken while reading, so in the order of blocks */
    pthread_cond_t turned;
    uint64_t next_turn;
    atomic_bool stop;
    struct worker {
        struct ordered *run;
        pthread_t thread;
    } * workers;
    unsigned nworkers;
    int wake[2]; /* a pipe that tells the reader to stop; -1: none */
};

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

static void stop_all(struct ordered *r)
{
    pthread_mutex_lock(&r->turning);
    atomic_store(&r->stop, true);
    pthread_cond_broadcast(&r->turned);
    pthread_mutex_unlock(&r->turning);
    /* Another worker may wait for input that never comes. */
    while (r->wake[1] >= 0 && write(r->wake[1], "", 1) < 0 && errno == EINTR)
        ;
}

/* Wait until all blocks before this one have had their turn, then take it.
 * False if that will never happen, or if waiting failed. */
static bool take_turn(struct ordered *r, unsigned number, struct block *b)
{
    pthread_mutex_lock(&r->turning);
    while (r->next_turn != b->number && !atomic_load(&r->stop))
        pthread_cond_wait(&r->turned, &r->turning);
    pthread_mutex_unlock(&r->turning);
    /* Nobody else gets here before the turn is passed on: no lock is needed. */
    if (atomic_load(&r->stop) || !r->turn(r->ctx, number, b))
        return false;
    pthread_mutex_lock(&r->turning);
    r->next_turn++;
    pthread_cond_broadcast(&r->turned);
    pthread_mutex_unlock(&r->turning);
    return true;
}

static void *worker_main(void *arg);

/* One worker more, if that is possible; if not, those there are must do. */
static void add_worker(struct ordered *r)
{
    struct worker *const w = &r->workers[r->nworkers];
    w->run = r;
    if (pthread_create(&w->thread, NULL, worker_main, w) == 0)
        r->nworkers++;
}

/* The next block, and what comes with reading one. Holds the reader's lock. */
static bool read_block(struct ordered *r, struct block *b)
{
    struct input *const in = r->in;
    if (atomic_load(&r->stop) ||
        !(r->want ? input_next_wanted(in, b, r->want, r->ctx)
                  : input_next(in, b)))
        return false;
    if ((b->len >= FULL_BYTES || in->whole) && r->nworkers < in->nthreads)
        add_worker(r);
    progress_at(in->documents ? b->first + b->nlines : in->nkeys,
                in->bytes_done, r->want ? 0 : in->bytes_all);
    return true;
}

static void *worker_main(void *arg)
{
    const struct worker *const w = arg;
    struct ordered *const r = w->run;
    struct block b = { 0 };
    bool going = true;
    while (going) {
        pthread_mutex_lock(&r->reading);
        going = read_block(r, &b);
        const bool large = going && b.room > LARGE_BYTES;
        if (large)
            pthread_mutex_lock(&r->large);
        pthread_mutex_unlock(&r->reading);
        if (!going)
            break;
        const unsigned number =
            large ? r->in->nthreads : (unsigned)(w - r->workers);
        going = (!r->work || r->work(r->ctx, number, &b)) &&
                (!r->turn || take_turn(r, number, &b));
        if (!going)
            stop_all(r);
        if (large) {
            block_free(&b);
            pthread_mutex_unlock(&r->large);
        }
    }
    block_free(&b);
    return NULL;
}

/* No document was read. If that was because of an error, the run fails, so that
 * an empty output does not replace an earlier one. */
static bool only_errors(struct input *in)
{
    for (size_t i = 0; i < in->nfiles; i++) {
        struct input_file *const f = &in->files[i];
        if (!f->error[0])
            continue;
        input_fail(in, "%s: %s", input_name(in, f), f->error);
        f->error[0] = '\0';
        return true;
    }
    return false;
}

bool ordered_run_some(struct input *in, input_want *want, ordered_fn *work,
                      ordered_fn *turn, void *ctx)
{
    struct ordered r = { .in = in,
                         .want = want,
                         .work = work,
                         .turn = turn,
                         .ctx = ctx,
                         .reading = PTHREAD_MUTEX_INITIALIZER,
                         .turning = PTHREAD_MUTEX_INITIALIZER,
                         .large = PTHREAD_MUTEX_INITIALIZER,
                         .turned = PTHREAD_COND_INITIALIZER,
                         .workers = calloc(in->nthreads, sizeof *r.workers),
                         .nworkers = 1,
                         .wake = { -1, -1 } };
    if (!r.workers)
        return input_fail(in, "out of memory");
    if (in->documents)
        input_rewind(in);
    if (in->nthreads > 1 && pipe2(r.wake, O_CLOEXEC | O_NONBLOCK) == 0)
        in->stop_fd = r.wake[0];
    r.workers[0].run = &r;
    worker_main(&r.workers[0]);

    /* Workers may still make workers; one that is made is counted before its
     * maker ends. */
    for (unsigned i = 1;; i++) {
        pthread_mutex_lock(&r.reading);
        const bool made = i < r.nworkers;
        pthread_mutex_unlock(&r.reading);
        if (!made)
            break;
        pthread_join(r.workers[i].thread, NULL);
    }
    free(r.workers);
    in->stop_fd = -1;
    for (int i = 0; i < 2; i++)
        if (r.wake[i] >= 0)
            close(r.wake[i]);
    if (atomic_load(&r.stop) || in->error[0])
        return false;
    in->marked |= in->documents;
    return !in->documents || in->ndocs || !only_errors(in);
}

bool ordered_run(struct input *in, ordered_fn *work, ordered_fn *turn,
                 void *ctx)
{
    in->ndocs = in->nbytes = 0;
    return ordered_run_some(in, NULL, work, turn, ctx);
}
