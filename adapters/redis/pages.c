/*
 * pages.c - see pages.h
 */
#define _GNU_SOURCE
#include "adapters/redis/pages.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#ifdef __linux__

/* Of Linux 6.1; headers may be older. Other kernels refuse it. */
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

#define SMALL_PAGE ((uint64_t)4096)
#define HUGE_PAGE ((uintptr_t)2 << 20)

enum {
    ASKED_OFTEN = 4099, /* items between looks; a prime, so that of filters
                           that take turns each is looked at */
    MOST_PARTS = 64,    /* of a filter that is looked at */
    NREMEMBERED = 64,   /* arrays */
    TRIES = 4           /* for a huge page */
};

/* Arrays that are smaller are within reach of what a processor keeps. */
#define LARGE_BYTES ((uint64_t)4 << 20)

/* What a thread works on: one at a time. */
static struct {
    unsigned char *at, *end;
    unsigned forks;
    atomic_bool busy;
} gathering;

/* How many there were: what pages were before is then unknown. */
static atomic_uint forks;

static void count_fork(void)
{
    forks++;
}

/* Which arrays were seen to, after how many forks. */
static struct {
    const unsigned char *at;
    unsigned forks;
} remembered[NREMEMBERED];

/* What the array was may be freed meanwhile. That is no harm: no byte changes,
 * and where there is no memory any more the call fails. */
static void *gather(void *unused)
{
    (void)unused;
    for (unsigned char *at = gathering.at; at < gathering.end;
         at += HUGE_PAGE) {
        /* EAGAIN: something is under way with one of its pages. Pages that
         * cannot be had stay small; the others are of use all the same. */
        for (unsigned i = 0; i < TRIES && forks == gathering.forks; i++)
            if (madvise(at, HUGE_PAGE, MADV_COLLAPSE) == 0 || errno != EAGAIN)
                break;
    }
    gathering.busy = false;
    return NULL;
}

/* Are nearly all pages of a part in use? Of four places per page on average,
 * one page in 55 has none. */
static bool is_in_use(const bly_foreign_sizes *s)
{
    const uint64_t places = s->items * (s->k ? s->k : 1);
    return places / 4 >= s->nbytes / SMALL_PAGE;
}

static void see_to(unsigned char *array, size_t nbytes)
{
    const uintptr_t begin = (uintptr_t)array,
                    skip = (HUGE_PAGE - begin % HUGE_PAGE) % HUGE_PAGE;
    const size_t slot = begin / HUGE_PAGE % NREMEMBERED;
    const unsigned now = forks;
    if (gathering.busy ||
        (remembered[slot].at == array && remembered[slot].forks == now))
        return;
    gathering.at = array + skip;
    gathering.end = gathering.at + (nbytes - skip) / HUGE_PAGE * HUGE_PAGE;
    gathering.forks = now;
    gathering.busy = true;
    if (start_thread(gather, NULL)) {
        remembered[slot].at = array;
        remembered[slot].forks = now;
    } else {
        gathering.busy = false;
    }
}

static void look_at(server_ctx *ctx, const bly_foreign *f)
{
    static bool counts_forks;
    const size_t nparts = bly_foreign_nparts(f);
    if (value_sizes(f).nbytes < LARGE_BYTES || nparts > MOST_PARTS ||
        srv.GetContextFlags(ctx) & SERVER_FLAG_ACTIVE_CHILD)
        return;
    if (!counts_forks)
        counts_forks = pthread_atfork(NULL, count_fork, NULL) == 0;
    uint64_t offset = 0;
    for (size_t i = 0; i < nparts && counts_forks; i++) {
        bly_foreign_sizes s;
        unsigned char *array;
        bly_foreign_size(f, i, &s);
        if (s.nbytes >= LARGE_BYTES && is_in_use(&s) &&
            bly_foreign_chunk(f, offset, (size_t)s.nbytes, &array) == s.nbytes)
            see_to(array, (size_t)s.nbytes);
        offset += s.nbytes;
    }
}

void pages_asked(server_ctx *ctx, const bly_foreign *f, size_t nitems)
{
    static size_t asked;
    asked += nitems;
    if (asked < ASKED_OFTEN)
        return;
    asked = 0;
    look_at(ctx, f);
}

#else

void pages_asked(server_ctx *ctx, const bly_foreign *f, size_t nitems)
{
    (void)ctx;
    (void)f;
    (void)nitems;
}

#endif
