/*
 * ordered.h - blocks by several threads, in order
 */
#ifndef BLY_IO_ORDERED_H
#define BLY_IO_ORDERED_H

#include "io/input.h"

/* What a worker does with a block. work is called by several threads at once,
 * turn in the order of the blocks; either may be NULL. False stops the run. */
typedef bool ordered_fn(void *ctx, unsigned worker, struct block *b);

/* A worker's number is below this: there is one for each thread, and one for
 * long lines, which are worked on one at a time. */
static inline unsigned ordered_workers(const struct input *in)
{
    return in->nthreads + 1;
}

/* Read all of in, documents from the beginning. False if a worker stopped it or
 * in->error says what is wrong; an input of documents that has none, but has a
 * damaged file, is wrong. One thread means: no other is made. */
bool ordered_run(struct input *in, ordered_fn *work, ordered_fn *turn,
                 void *ctx);

/* The same without the documents that are not wanted, after a run that read
 * all. */
bool ordered_run_some(struct input *in, input_want *want, ordered_fn *work,
                      ordered_fn *turn, void *ctx);

/* As many threads as were asked for, within reason; 0 asks for as many as this
 * process has processors. */
unsigned thread_count(uint64_t asked);

#endif
