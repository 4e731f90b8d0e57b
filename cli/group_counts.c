/*
 * group_counts.c - how many keys of lists there are in each group
 *
 * A table of names, which all threads that read share: a batch is counted under
 * one lock. Names are kept, each in a block of its own.
 */
#include "cli/group_counts.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "io/pipeline.h"
#include "report/say.h"

struct group_counting {
    struct group_counts *counts;
    bool members;
    pthread_mutex_t lock;
};

/* The group of that name, which is made if there is none; NULL: no memory. */
static bly_group *group_named(struct group_counts *c, const void *name,
                              size_t len)
{
    const uint64_t hash = table_hash(name, len);
    LOOKUP_EACH (&c->by_name, hash, row) {
        bly_group *const g = &c->groups[row];
        if (g->name.len == len && !memcmp(g->name.ptr, name, len))
            return g;
    }
    char *const own = malloc(len + 1);
    if (!own || !GROW(&c->groups, &c->room, c->n + 1) ||
        !lookup_add(&c->by_name, hash, c->n)) {
        free(own);
        return NULL;
    }
    memcpy(own, name, len);
    c->groups[c->n] = (bly_group){ .name = { own, len } };
    return &c->groups[c->n++];
}

static bly_status count_batch(struct job *job, struct batch *b)
{
    struct group_counting *const how = job->ctx;
    bool ok = true;
    pthread_mutex_lock(&how->lock);
    for (size_t i = 0; i < b->n && ok; i++) {
        const char *const key = b->keys[i].ptr;
        const char *const tab = memchr(key, '\t', b->keys[i].len);
        bly_group *const g =
            tab ? group_named(how->counts, key, (size_t)(tab - key)) : NULL;
        ok = g || !tab;
        if (g && how->members)
            g->members++;
        else if (g)
            g->others++;
    }
    pthread_mutex_unlock(&how->lock);
    if (!ok)
        b->why = "out of memory";
    return ok ? BLY_OK : BLY_ENOMEM;
}

bool group_counts_read(struct group_counts *c, const struct keys *keys,
                       const struct list *files, bool members)
{
    struct group_counting how = { .counts = c, .members = members };
    struct job job = { .batch = count_batch,
                       .nthreads = thread_count(0),
                       .ctx = &how };
    struct input in;
    if (!keys_files(keys, files->at, files->n, &in))
        return false;
    pthread_mutex_init(&how.lock, NULL);
    const bly_status st = pipeline_run(&job, &in);
    pthread_mutex_destroy(&how.lock);
    input_close(&in);
    if (st)
        fail("%s", job.error);
    for (size_t i = 0; i < c->n && !members; i++) {
        bly_group *const g = &c->groups[i];
        g->others -= g->others < g->members ? g->others : g->members;
    }
    return !st;
}

void group_counts_free(struct group_counts *c)
{
    for (size_t i = 0; i < c->n; i++)
        free((void *)(uintptr_t)c->groups[i].name.ptr);
    free(c->groups);
    lookup_free(&c->by_name);
    *c = (struct group_counts){ 0 };
}
