/*
 * live_files.c - live filters, as commands use and describe them
 */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "io/files.h"
#include "io/live_files.h"
#include "report/say.h"

const struct field live_fields[] = {
    NAMED(struct live_told, "generation", is.generation, NONE,
          "of a live filter: how often it was replaced, plus 1"),
    NAMED(struct live_told, "users", is.users, NONE,
          "of a live filter: processes that have it open for adding"),
    NAMED(struct live_told, "checkpoint", is.checkpoint, NONE,
          "of a live filter: number of the last checkpoint; 0: none"),
    FIELD(struct live_told, checkpoint_age, SECONDS | MAYBE,
          "of a live filter: seconds since then"),
    NAMED(struct live_told, "checkpoint_items", is.checkpoint_items, NONE,
          "of a live filter: additions that are certain to be on disk"),
    NAMED(struct live_told, "unclean", is.unclean, NONE,
          "of a live filter: whether the machine stopped since, so that later "
          "keys may be missing"),
    FIELD(struct live_told, several, NONE, NULL),
    { 0 },
};

bool live_tell(const bly_filter *f, struct live_told *out)
{
    *out = (struct live_told){ .checkpoint_age = NAN };
    if (bly_live_of(f, &out->is))
        return false;
    out->several = out->is.users != 1;
    if (out->is.checkpoint)
        out->checkpoint_age = fmax(0, (double)clock_day_ns() / 1e9 -
                                          (double)out->is.checkpoint_time);
    return true;
}

bly_filter *live_open(const char *path, const bly_access *how)
{
    bly_filter *f;
    cut_watch(path, NULL);
    const bly_status st = bly_share(path, NULL, how, &f);
    if (st == BLY_ESECRET && !how->secret)
        fail("%s, with --key-file", bly_error());
    else if (st)
        fail_library();
    return f;
}

struct live_use {
    pthread_rwlock_t lock; /* for writing: f is exchanged */
    bly_filter *f;
    bly_hasher hasher; /* a copy, which stays where it is */
};

struct live_use *live_use_begin(const char *path, const bly_access *how)
{
    bly_filter *const f = live_open(path, how);
    struct live_use *const u = f ? malloc(sizeof *u) : NULL;
    if (f && !u)
        fail("out of memory");
    if (!u) {
        bly_free(f);
        return NULL;
    }
    u->f = f;
    u->hasher = *bly_hasher_of(f);
    pthread_rwlock_init(&u->lock, NULL);
    return u;
}

void live_use_end(struct live_use *u)
{
    bly_free(u->f);
    pthread_rwlock_destroy(&u->lock);
    free(u);
}

bly_filter *live_filter(struct live_use *u)
{
    return u->f;
}

const bly_hasher *live_hasher(const struct live_use *u)
{
    return &u->hasher;
}

/* To the newest generation, whose keys must have the same hashes: the next
 * ones are made already. */
static bly_status live_move(struct live_use *u)
{
    pthread_rwlock_wrlock(&u->lock);
    bly_status st = bly_live_follow(&u->f);
    if (!st && (bly_hasher_of(u->f)->id != u->hasher.id ||
                bly_hasher_of(u->f)->seed != u->hasher.seed)) {
        fail("the filter was replaced by one that hashes its keys otherwise: "
             "start again");
        st = BLY_EUNFIT;
    }
    pthread_rwlock_unlock(&u->lock);
    return st;
}

bly_status live_add(struct live_use *u, const uint64_t *hashes, size_t n,
                    uint64_t *fresh)
{
    for (;;) {
        pthread_rwlock_rdlock(&u->lock);
        bly_status st = bly_add_hashes(u->f, hashes, n, fresh, NULL);
        const bool moved = st == BLY_EBUSY && bly_live_replaced(u->f);
        pthread_rwlock_unlock(&u->lock);
        if (!moved)
            return st;
        st = live_move(u);
        if (st)
            return st;
    }
}

bly_status live_has(struct live_use *u, const uint64_t *hashes, size_t n,
                    uint64_t *maybe)
{
    pthread_rwlock_rdlock(&u->lock);
    const bool moved = bly_live_replaced(u->f);
    if (!moved)
        bly_has_hashes(u->f, hashes, n, maybe);
    pthread_rwlock_unlock(&u->lock);
    if (!moved)
        return BLY_OK;
    const bly_status st = live_move(u);
    return st ? st : live_has(u, hashes, n, maybe);
}
