/*
 * index_turns.c - what several threads print, in the order of their tasks
 *
 * The task whose turn it is prints at once. Others keep what they have; one
 * that has ended leaves it parked, and one that has too much waits. Tasks are
 * begun in their order, so the one whose turn it is always goes on.
 */
#include <stdlib.h>

#include "apps/index/index_turns.h"
#include "report/out.h"

#define PARKED_MOST ((size_t)64 << 20)
#define KEPT_MOST ((size_t)4 << 20) /* by a task before its turn */
#define AHEAD_MOST 4096

bool turns_begin(struct turns *t, size_t ntasks)
{
    *t = (struct turns){ .ntasks = ntasks };
    t->parked = calloc(ntasks + 1, sizeof *t->parked);
    t->done = calloc(ntasks + 1, sizeof *t->done);
    pthread_mutex_init(&t->mutex, NULL);
    pthread_cond_init(&t->moved, NULL);
    return t->parked && t->done;
}

void turns_end(struct turns *t)
{
    for (size_t i = 0; t->parked && i < t->ntasks; i++)
        free(t->parked[i].at);
    free(t->parked);
    free(t->done);
    pthread_mutex_destroy(&t->mutex);
    pthread_cond_destroy(&t->moved);
}

void turns_stop(struct turns *t)
{
    pthread_mutex_lock(&t->mutex);
    t->stop = true;
    pthread_cond_broadcast(&t->moved);
    pthread_mutex_unlock(&t->mutex);
}

bool turns_take(struct turns *t, size_t *task)
{
    pthread_mutex_lock(&t->mutex);
    while (!t->stop && t->next < t->ntasks && t->next != t->turn &&
           (t->nparked > PARKED_MOST || t->next - t->turn > AHEAD_MOST))
        pthread_cond_wait(&t->moved, &t->mutex);
    const bool more = !t->stop && t->next < t->ntasks;
    if (more)
        *task = t->next++;
    pthread_mutex_unlock(&t->mutex);
    return more;
}

/* Under the mutex, which is free while it writes. */
static void turns_write(struct turns *t, struct bytes *out)
{
    if (out->n && !t->error) {
        pthread_mutex_unlock(&t->mutex);
        const int error = out_write(out->at, out->n);
        pthread_mutex_lock(&t->mutex);
        if (error) {
            t->error = error;
            t->stop = true;
        }
    }
    out->n = 0;
}

bool turns_put(struct turns *t, size_t task, struct bytes *out)
{
    pthread_mutex_lock(&t->mutex);
    while (!t->stop && t->turn != task && out->n > KEPT_MOST)
        pthread_cond_wait(&t->moved, &t->mutex);
    if (t->turn == task && !t->stop)
        turns_write(t, out);
    const bool on = !t->stop;
    pthread_mutex_unlock(&t->mutex);
    return on;
}

void turns_done(struct turns *t, size_t task, struct bytes *out)
{
    pthread_mutex_lock(&t->mutex);
    t->parked[task] = *out;
    t->nparked += out->n;
    t->done[task] = true;
    *out = (struct bytes){ 0 };
    /* One thread prints; whoever comes meanwhile has left all it needs. */
    while (!t->writing && t->turn < t->ntasks && t->done[t->turn]) {
        struct bytes *const b = &t->parked[t->turn];
        t->writing = true;
        t->nparked -= b->n;
        turns_write(t, b);
        free(b->at);
        *b = (struct bytes){ 0 };
        t->writing = false;
        t->turn++;
        pthread_cond_broadcast(&t->moved);
    }
    pthread_mutex_unlock(&t->mutex);
}
