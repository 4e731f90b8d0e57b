/*
 * bench_threads.c - asking and building with several threads, against one
 *
 * Asking: each thread asks the same filter for keys of its own, as many as the
 * one thread does alone; the ratio is that of keys per second. Building: the
 * hashes of all keys lie ready; the threads give them to a builder in pieces,
 * and it finishes with as many threads. It is not told how many there are; and,
 * where a kind then takes keys as they come, it is. This is the clock on the
 * wall, so it wants a machine that does nothing else.
 */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/random.h"
#include "workbench/bench.h"

/* Enough that starting threads does not count, and that the lines which a pass
 * touches are not all cached when the next one comes. */
#define ASKED_KEYS ((size_t)1 << 18)
#define ASKED_EACH (4 * ASKED_KEYS)
#define ASKED_CALL 32768

struct asking {
    const bly_filter *filter;
    uint64_t *keys; /* of all threads */
    _Atomic unsigned next;
    _Atomic bool go;
};

static void *ask_thread(void *arg)
{
    struct asking *const a = arg;
    const uint64_t *const keys =
        a->keys + ASKED_KEYS * atomic_fetch_add(&a->next, 1);
    uint64_t maybe[ASKED_CALL / 64];
    while (!a->go)
        sched_yield();
    for (size_t done = 0; done < ASKED_EACH; done += ASKED_CALL)
        bly_has_ints(a->filter, keys + done % ASKED_KEYS, ASKED_CALL, maybe);
    return NULL;
}

/* Keys a nanosecond when n threads ask; NAN where they cannot be made. */
static double ask_speed(struct asking *a, unsigned n)
{
    pthread_t *const threads = calloc(n, sizeof *threads);
    unsigned made = 0;
    a->next = 0;
    a->go = false;
    while (threads && made + 1 < n &&
           pthread_create(&threads[made], NULL, ask_thread, a) == 0)
        made++;
    const double start = clock_ns();
    a->go = true;
    ask_thread(a);
    for (unsigned i = 0; i < made; i++)
        pthread_join(threads[i], NULL);
    const double ns = clock_ns() - start;
    free(threads);
    return made + 1 == n ? (double)ASKED_EACH * n / ns : NAN;
}

/* Nanoseconds of building with nthreads; NAN where that fails. */
static double build_time(const struct bench_cell *cell, double fpr,
                         const uint64_t *hashes, bool sized, unsigned nthreads)
{
    bly_filter *f;
    const double start = clock_ns();
    const char *const why =
        bench_build(cell->who, sized ? cell->items : 0, fpr, hashes,
                    (size_t)cell->items, nthreads, &f);
    const double ns = clock_ns() - start;
    bly_free(f);
    return why ? NAN : ns;
}

void bench_threads(const struct bench_cell *cell, double fpr,
                   const void *filter, unsigned nthreads,
                   struct bench_sample *out)
{
    const struct bench_contender *const c = cell->who;
    if (!c->kind)
        return;
    const size_t nasked = ASKED_KEYS * nthreads;
    const size_t nbuilt = (size_t)cell->items;
    struct asking a = { .filter = filter,
                        .keys = malloc(nasked * sizeof *a.keys) };
    if (a.keys && c->can & BLY_CAN(HAS)) {
        bench_fill_keys(KEYS_HALF, cell->items, 0, cell->nrounds, a.keys,
                        nasked);
        const double one = ask_speed(&a, 1);
        out->times[TIMES_ASK] = ask_speed(&a, nthreads) / one;
    }
    free(a.keys);

    uint64_t *const hashes = malloc(nbuilt * sizeof *hashes);
    if (!hashes)
        return;
    bly_hasher hasher;
    bly_hasher_for(
        &(bly_spec){ .kind = c->kind, .keying = { BLY_KEYS_UINT64, 0 } },
        &hasher);
    for (size_t at = 0; at < nbuilt; at++) {
        const uint64_t key = bly_mix64(at);
        bly_hash_ints(&hasher, &key, 1, hashes + at);
    }
    for (int sized = 0; sized < 2; sized++)
        if (!sized || c->can & BLY_CAN(ADD)) {
            const double one = build_time(cell, fpr, hashes, sized, 1);
            out->times[sized ? TIMES_SIZED : TIMES_BUILD] =
                one / build_time(cell, fpr, hashes, sized, nthreads);
        }
    free(hashes);
}
