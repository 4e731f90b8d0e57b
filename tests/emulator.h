/*
 * emulator.h - run the kernels of adapters/cuda as C
 *
 * Every thread of a block is a coroutine. It runs until it needs others: a vote
 * or a value of another lane waits for the 32 lanes of its warp, and
 * block_meet() for the whole block. So what kernels compute is tested, and that
 * all lanes of a warp meet where one does; what only a race would show is not.
 */
#ifndef TEST_EMULATOR_H
#define TEST_EMULATOR_H

#include <stdlib.h>
#include <ucontext.h>

#include "adapters/cuda/machine.h"

#define EMULATED_MOST 512
#define EMULATED_STACK 65536

uint64_t *emulated_shared;

typedef struct emulated_thread {
    ucontext_t context;
    uint64_t says; /* what it brought to the meeting it waits for */
    bool done;
    char stack[EMULATED_STACK];
} emulated_thread;

static struct {
    emulated_thread *threads;
    ucontext_t home;
    unsigned at, nthreads;
    uint64_t block, nblocks;
    void (*body)(void *ctx);
    void *ctx;
} emulated;

unsigned thread_at(void)
{
    return emulated.at;
}

uint64_t block_at(void)
{
    return emulated.block;
}

unsigned nthreads_of(void)
{
    return emulated.nthreads;
}

uint64_t nblocks_of(void)
{
    return emulated.nblocks;
}

static void emulated_pause(void)
{
    emulated_thread *const self = &emulated.threads[emulated.at];
    swapcontext(&self->context, &emulated.home);
}

/* A meeting of n threads: the last to come lets the others go on. */
typedef struct emulated_meeting {
    unsigned nwaiting;
    uint64_t nheld;
} emulated_meeting;

static emulated_meeting emulated_warps[EMULATED_MOST / LANES], emulated_block;

static void emulated_meet(emulated_meeting *m, unsigned n)
{
    const unsigned first = emulated.at / LANES * LANES;
    const uint64_t held = m->nheld;
    if (++m->nwaiting == n) {
        m->nwaiting = 0;
        m->nheld++;
        return;
    }
    while (m->nheld == held) {
        for (unsigned i = first; i < first + LANES; i++)
            assert_false(emulated.threads[i].done); /* it would never come */
        emulated_pause();
    }
}

/* All lanes of this warp: when each has brought something, and again when each
 * has looked at what the others brought. */
static void emulated_warp(void)
{
    emulated_meet(&emulated_warps[emulated.at / LANES], LANES);
}

uint32_t warp_votes(bool yes)
{
    emulated_thread *const first =
        &emulated.threads[emulated.at / LANES * LANES];
    uint32_t votes = 0;
    emulated.threads[emulated.at].says = yes;
    emulated_warp();
    for (unsigned i = 0; i < LANES; i++)
        votes |= (uint32_t)first[i].says << i;
    emulated_warp();
    return votes;
}

uint64_t warp_take(uint64_t x, unsigned lane)
{
    emulated.threads[emulated.at].says = x;
    emulated_warp();
    x = emulated.threads[emulated.at / LANES * LANES + lane].says;
    emulated_warp();
    return x;
}

void block_meet(void)
{
    emulated_meet(&emulated_block, emulated.nthreads);
}

static void emulated_start(void)
{
    emulated.body(emulated.ctx);
    emulated.threads[emulated.at].done = true;
    emulated_pause();
}

/* Run body(ctx) in each of nthreads threads of each of nblocks blocks, which
 * have nshared bytes for themselves. */
static void emulate(uint64_t nblocks, unsigned nthreads, size_t nshared,
                    void (*body)(void *ctx), void *ctx)
{
    assert_true(nthreads % LANES == 0 && nthreads <= EMULATED_MOST);
    emulated.threads = calloc(nthreads, sizeof *emulated.threads);
    emulated_shared = malloc(nshared + 1);
    assert_true(emulated.threads && emulated_shared);
    emulated.nthreads = nthreads;
    emulated.nblocks = nblocks;
    emulated.body = body;
    emulated.ctx = ctx;
    for (emulated.block = 0; emulated.block < nblocks; emulated.block++) {
        unsigned nleft = nthreads;
        for (unsigned i = 0; i < nthreads; i++) {
            emulated_thread *const t = &emulated.threads[i];
            t->done = false;
            getcontext(&t->context);
            t->context.uc_stack.ss_sp = t->stack;
            t->context.uc_stack.ss_size = sizeof t->stack;
            makecontext(&t->context, emulated_start, 0);
        }
        while (nleft)
            for (emulated.at = 0; emulated.at < nthreads; emulated.at++) {
                emulated_thread *const t = &emulated.threads[emulated.at];
                if (t->done)
                    continue;
                swapcontext(&emulated.home, &t->context);
                nleft -= t->done;
            }
    }
    free(emulated.threads);
    free(emulated_shared);
}

#endif
