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

#include "io/pipeline.h"
#include "base/table.h"
#include "report/say.h"

struct group_counting {
    struct group_counts *counts;
    bool members;
    pthread_mutex_t lock;
};

static bool widen(struct group_counts *c)
{
    const size_t ntable = c->ntable ? 2 * c->ntable : 1024;
    uint32_t *const table = calloc(ntable, sizeof *table);
    bly_group *const groups =
        realloc(c->groups, ntable / 2 * sizeof *c->groups);
    if (groups)
        c->groups = groups;
    if (!table || !groups) {
        free(table);
        return false;
    }
    for (size_t i = 0; i < c->n; i++) {
        const bly_bytes *const name = &groups[i].name;
        uint64_t at = table_hash(name->ptr, name->len);
        while (table[at & (ntable - 1)])
            at++;
        table[at & (ntable - 1)] = (uint32_t)i + 1;
    }
    free(c->table);
    c->table = table;
    c->ntable = ntable;
    c->room = ntable / 2;
    return true;
}

/* The group of that name, which is made if there is none; NULL: no memory. */
static bly_group *group_named(struct group_counts *c, const void *name,
                              size_t len)
{
    if (c->n == c->room && (c->n >= UINT32_MAX / 2 || !widen(c)))
        return NULL;
    uint64_t at = table_hash(name, len);
    for (;; at++) {
        uint32_t *const number = &c->table[at & (c->ntable - 1)];
        bly_group *const g = *number ? &c->groups[*number - 1] : NULL;
        if (g && g->name.len == len && !memcmp(g->name.ptr, name, len))
            return g;
        if (g)
            continue;
        char *const own = malloc(len + 1);
        if (!own)
            return NULL;
        memcpy(own, name, len);
        c->groups[c->n] = (bly_group){ .name = { own, len } };
        *number = (uint32_t)++c->n;
        return &c->groups[c->n - 1];
    }
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
    free(c->table);
    *c = (struct group_counts){ 0 };
}
