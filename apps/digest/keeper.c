/*
 * keeper.c - the digest that is handed out, and a thread that renews it
 *
 * Answers never wait for a peer or a disk: they take the digest there is, and
 * one thread asks the source for a newer one meanwhile. So there is at most one
 * fetch at a time, whatever clients do.
 *
 * A source that `looks` (a file: has it changed?) is asked before each answer,
 * by the same thread, so that whoever replaces the file and then asks gets the
 * new one. That wait ends after LOOK_MS, for a disk that hangs. Requests that
 * come during a look share the next one.
 *
 * Before there is any digest, an answer waits FIRST_MS for the first fetch.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "wire/gate.h"
#include "apps/digest/jobs.h"
#include "report/say.h"

#define LOOK_MS 5000
#define FIRST_MS 5000
#define TELL_MS 10000 /* between two reasons, where they keep changing */
#define CLOSE_MS 3000 /* libcurl looks once a second whether to stop */

struct keeper {
    struct digest_source *source;
    pthread_t thread;
    pthread_mutex_t lock;      /* all below */
    pthread_cond_t due;        /* for the thread: somebody asked, or the end */
    pthread_cond_t news;       /* for who asked: it has looked, or the end */
    pthread_cond_t end;        /* for who pauses */
    struct digest_shared *now; /* NULL: none yet */
    uint64_t nasked, nlooked;  /* answers that asked, and that were told */
    bool tried;                /* refresh() has come back once */
    bool ended;                /* the thread is done */
};

void keeper_drop(struct digest_shared *c)
{
    if (c && atomic_fetch_sub(&c->users, 1) == 1) {
        free(c->copy.bytes);
        free(c);
    }
}

/* Under the lock: hand it out. */
static void keeper_put(struct keeper *k, const struct digest_copy *copy)
{
    struct digest_shared *const c = malloc(sizeof *c);
    if (!c) {
        free(copy->bytes);
        return;
    }
    c->copy = *copy;
    atomic_init(&c->users, 1);
    keeper_drop(k->now);
    k->now = c;
}

static void *keeper_run(void *ctx)
{
    struct keeper *const k = ctx;
    struct digest_source *const source = k->source;
    struct timespec next = clock_after(0);
    int timed_out = 0;
    pthread_mutex_lock(&k->lock);
    while (!source->stop) {
        if (k->tried && k->nasked == k->nlooked && timed_out != ETIMEDOUT) {
            timed_out = pthread_cond_timedwait(&k->due, &k->lock, &next);
            continue;
        }
        const uint64_t told = k->nasked;
        struct digest_copy newer = { 0 };
        int64_t wait = 0;
        pthread_mutex_unlock(&k->lock);
        const bool is_newer = source->refresh(source->ctx, &newer, &wait);
        pthread_mutex_lock(&k->lock);
        if (is_newer)
            keeper_put(k, &newer);
        k->nlooked = told;
        k->tried = true;
        timed_out = 0;
        next = clock_after(wait);
        pthread_cond_broadcast(&k->news);
    }
    k->ended = true;
    pthread_cond_broadcast(&k->news);
    pthread_mutex_unlock(&k->lock);
    return NULL;
}

struct keeper *keeper_open(struct digest_source *source,
                           struct digest_copy *first)
{
    struct keeper *const k = calloc(1, sizeof *k);
    if (!k) {
        free(first->bytes);
        return NULL;
    }
    pthread_mutex_init(&k->lock, NULL);
    clock_condition(&k->due);
    clock_condition(&k->news);
    clock_condition(&k->end);
    k->source = source;
    if (first->bytes)
        keeper_put(k, first);
    if (pthread_create(&k->thread, NULL, keeper_run, k) == 0)
        return k;
    keeper_drop(k->now);
    free(k);
    return NULL;
}

struct digest_shared *keeper_take(struct keeper *k)
{
    pthread_mutex_lock(&k->lock);
    if (k->source->looks) {
        const struct timespec end = clock_after(LOOK_MS);
        const uint64_t mine = ++k->nasked;
        pthread_cond_signal(&k->due);
        while (k->nlooked < mine && !k->source->stop &&
               !pthread_cond_timedwait(&k->news, &k->lock, &end))
            ;
    }
    const struct timespec end = clock_after(FIRST_MS);
    while (!k->now && !k->tried && !k->source->stop &&
           !pthread_cond_timedwait(&k->news, &k->lock, &end))
        ;
    struct digest_shared *const c = k->now;
    if (c)
        atomic_fetch_add(&c->users, 1);
    pthread_mutex_unlock(&k->lock);
    return c;
}

void keeper_pause(struct keeper *k, uint64_t ms)
{
    const struct timespec end = clock_after((int64_t)ms);
    pthread_mutex_lock(&k->lock);
    while (!k->source->stop && !pthread_cond_timedwait(&k->end, &k->lock, &end))
        ;
    pthread_mutex_unlock(&k->lock);
}

void keeper_stop(struct keeper *k)
{
    pthread_mutex_lock(&k->lock);
    k->source->stop = true;
    pthread_cond_broadcast(&k->due);
    pthread_cond_broadcast(&k->news);
    pthread_cond_broadcast(&k->end);
    pthread_mutex_unlock(&k->lock);
}

bool keeper_close(struct keeper *k)
{
    const struct timespec end = clock_after(CLOSE_MS);
    pthread_mutex_lock(&k->lock);
    while (!k->ended && !pthread_cond_timedwait(&k->news, &k->lock, &end))
        ;
    const bool ended = k->ended;
    pthread_mutex_unlock(&k->lock);
    if (!ended)
        return false;
    pthread_join(k->thread, NULL);
    keeper_drop(k->now);
    pthread_cond_destroy(&k->due);
    pthread_cond_destroy(&k->news);
    pthread_cond_destroy(&k->end);
    pthread_mutex_destroy(&k->lock);
    free(k);
    return true;
}

/* ----------------------------------------------------------------- trouble */

void trouble_tell(struct digest_trouble *t, const char *name, const char *why,
                  bool has_last)
{
    const int64_t now = gate_clock();
    if (t->told[0] && (now - t->at < TELL_MS ||
                       strncmp(t->told, why, sizeof t->told - 1) == 0))
        return;
    t->at = now;
    snprintf(t->told, sizeof t->told, "%s", why);
    warn("%s: %s; it will be tried again, and %s", name, why,
         has_last ? "the last digest is still handed out"
                  : "until then there is no digest here");
}

void trouble_over(struct digest_trouble *t, const char *name)
{
    if (t->told[0])
        warn("%s: it is there again, and handed out", name);
    t->told[0] = '\0';
}

int64_t retry_wait(unsigned n, int64_t most)
{
    const int64_t ms = n < 20 ? INT64_C(500) << n : most;
    return ms < most ? ms : most;
}
