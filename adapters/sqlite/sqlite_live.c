/*
 * sqlite_live.c - bly_add(path, key): functions with an effect
 *
 * A live filter is in a file that other processes change too, and so what is
 * added here is no part of a transaction: it is there at once, for everybody,
 * and a ROLLBACK does not take it back. A connection keeps the last few files
 * open, since joining one takes longer than adding a key.
 */
#include <stdlib.h>
#include <string.h>

#include <bloomery/live.h>

#include "adapters/sqlite/sqlite_bloomery.h"

struct live_file {
    bly_filter *f;
    char path[];
};

static void live_free(struct live_file *l)
{
    if (l)
        bly_free(l->f);
    free(l);
}

void live_files_end(struct connection *c)
{
    for (int i = 0; i < LIVE_FILES; i++)
        live_free(c->live[i]);
    memset(c->live, 0, sizeof c->live);
}

/* The file in path, now the first of its connection. NULL, and why. */
static struct live_file *live_of(struct connection *c, const char *path,
                                 const char **why)
{
    int i = 0;
    while (i < LIVE_FILES - 1 && c->live[i] &&
           strcmp(c->live[i]->path, path) != 0)
        i++;
    struct live_file *l = c->live[i];
    if (!l || strcmp(l->path, path) != 0) {
        const size_t n = strlen(path) + 1;
        struct live_file *const more = malloc(sizeof *more + n);
        if (!more) {
            *why = "out of memory";
            return NULL;
        }
        memcpy(more->path, path, n);
        if (bly_share(path, NULL, NULL, &more->f)) {
            free(more);
            *why = bly_error();
            return NULL;
        }
        live_free(l);
        l = more;
    }
    memmove(c->live + 1, c->live, (size_t)i * sizeof *c->live);
    return c->live[0] = l;
}

/* The file of an argument; NULL if that is SQL's NULL, or the error is set. */
static struct live_file *live_argument(sqlite3_context *ctx,
                                       sqlite3_value *value)
{
    const char *why = "a live filter is given by the path of its file";
    struct live_file *l = NULL;
    if (sqlite3_value_type(value) == SQLITE_NULL)
        return NULL;
    if (sqlite3_value_type(value) == SQLITE_TEXT) {
        const char *const path = path_of(value, &why);
        if (path)
            l = live_of(sqlite3_user_data(ctx), path, &why);
    }
    if (!l)
        result_wrong(ctx, why);
    return l;
}

/* 1 if the key was new, 0 if not: as far as the filter can tell. */
void fn_live_add(sqlite3_context *ctx, int n, sqlite3_value **argv)
{
    struct sql_key key;
    uint64_t fresh = 0;
    bly_status st;
    (void)n;
    const char *const bad = key_of(argv[1], &key);
    if (bad) {
        result_wrong(ctx, bad);
        return;
    }
    struct live_file *const l = live_argument(ctx, argv[0]);
    if (!l || key.type == BLY_KEYS_UNKNOWN)
        return;
    const bool bytes = key.type == BLY_KEYS_TEXT || key.type == BLY_KEYS_BYTES;
    const void *const at = bytes ? (const void *)&key.bytes : &key.integer;
    do { /* again, if it was just replaced */
        st = bly_live_follow(&l->f);
        if (!st)
            st = bly_add_as(l->f, key.type, at, 1, &fresh, NULL);
    } while (st == BLY_EBUSY && bly_live_replaced(l->f));
    if (st)
        result_wrong(ctx, bly_error());
    else
        sqlite3_result_int(ctx, (int)(fresh & 1));
}

/* How many additions are on disk now. */
void fn_live_checkpoint(sqlite3_context *ctx, int n, sqlite3_value **argv)
{
    bly_live told;
    (void)n;
    struct live_file *const l = live_argument(ctx, argv[0]);
    if (!l)
        return;
    if (bly_live_follow(&l->f) || bly_checkpoint(l->f) ||
        bly_live_of(l->f, &told))
        result_wrong(ctx, bly_error());
    else
        sqlite3_result_int64(ctx, (int64_t)told.checkpoint_items);
}
