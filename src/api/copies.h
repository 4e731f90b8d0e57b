/*
 * copies.h - a filter that several threads fill at once
 *
 * With an atomic operation for each bit, two threads are slower than one (10
 * million keys of a blocked filter: 53 ns per key of processor time instead of
 * 2.5). So every thread that comes while others are at work gets a filter of
 * its own, of the same shape, and in the end the bits of all go into the first
 * one. That is possible if adding does nothing but set bits, and is done as
 * long as copies take little memory. Otherwise there is one filter, and threads
 * wait for each other.
 */
#ifndef BLY_COPIES_H
#define BLY_COPIES_H

#include <pthread.h>

#include "kinds/filter.h"

#define BLY_MAX_COPIES 256

typedef struct bly_copies {
    bly_filter *at[BLY_MAX_COPIES]; /* the first is what they become */
    bly_filter *unused[BLY_MAX_COPIES];
    unsigned n, nunused;
    unsigned most; /* as many as there may be */
    pthread_mutex_t lock;
    pthread_cond_t returned;
} bly_copies;

/* Begin with f, which still belongs to the caller and is not shared. alone:
 * make no copies. */
void bly_copies_open(bly_copies *c, bly_filter *f, bool alone);

/* A filter that no other thread has, and giving it back. */
bly_filter *bly_copies_take(bly_copies *c);
void bly_copies_give(bly_copies *c, bly_filter *f);

/* Set the bits of all in the first, with nthreads threads, and release the
 * others. Additions are not counted. */
void bly_copies_merge(bly_copies *c, unsigned nthreads);

/* Release all but the first. */
void bly_copies_close(bly_copies *c);

#endif
