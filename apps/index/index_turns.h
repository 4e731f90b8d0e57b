/*
 * index_turns.h - what several threads print, in the order of their tasks
 */
#ifndef BLY_INDEX_TURNS_H
#define BLY_INDEX_TURNS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"

struct turns {
    pthread_mutex_t mutex;
    pthread_cond_t moved;
    size_t ntasks, next, turn; /* next: the one that nobody has begun */
    struct bytes *parked;      /* of each task that is done before its turn */
    bool *done;
    size_t nparked; /* bytes */
    bool writing, stop;
    int error; /* of standard output */
};

/* False without memory. */
bool turns_begin(struct turns *t, size_t ntasks);
void turns_end(struct turns *t);

/* The next task; false when there are no more, or after turns_stop(). Waits
 * while what is parked is too much. */
bool turns_take(struct turns *t, size_t *task);

/* Print what a task has so far, if it is its turn; out is then empty. If it is
 * not and out has become large, wait. False: stop. */
bool turns_put(struct turns *t, size_t task, struct bytes *out);

/* The task is done; out is taken. */
void turns_done(struct turns *t, size_t task, struct bytes *out);

void turns_stop(struct turns *t);

#endif
