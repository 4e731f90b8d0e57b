/*
 * aggregates.c - filters and sketches of all rows
 *
 * NULLs are passed over, and of no rows comes NULL, as of max(). A row that
 * cannot be taken ends the statement.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapters/sqlite/sqlite_bloomery.h"

/* What a group needs; `begun` tells the first row. */
struct group {
    bool begun, failed;
    struct sql_agg agg;
    struct sql_hll hll;
    struct sql_minhash minhash;
    bly_topk *topk;
    struct sql_value merged;
};

static void group_end(struct group *g)
{
    sql_agg_free(&g->agg);
    bly_hll_free(g->hll.hll);
    bly_sketch_free(g->minhash.sketch);
    bly_topk_free(g->topk);
    sql_value_free(&g->merged);
    free(g);
}

/* The group of a row; NULL without memory, or after a failure. */
static struct group *group_of(sqlite3_context *ctx)
{
    struct group **const at = sqlite3_aggregate_context(ctx, sizeof *at);
    if (at && !*at)
        *at = calloc(1, sizeof **at);
    if (!at || !*at) {
        sqlite3_result_error_nomem(ctx);
        return NULL;
    }
    return (*at)->failed ? NULL : *at;
}

static void group_fail(sqlite3_context *ctx, struct group *g, const char *bad)
{
    g->failed = true;
    result_wrong(ctx, bad);
}

/* Of what came: NULL if no row did, or if one failed; group_end() is for the
 * caller. */
static struct group *group_taken(sqlite3_context *ctx)
{
    struct group **const at = sqlite3_aggregate_context(ctx, 0);
    struct group *const g = at ? *at : NULL;
    if (g && (g->failed || !g->begun)) {
        group_end(g);
        *at = NULL;
        return NULL;
    }
    return g;
}

static const char *text_of(sqlite3_value **argv, int n, int i)
{
    return i < n ? (const char *)sqlite3_value_text(argv[i]) : NULL;
}

/* The key of a row that counts. */
static bool row_key(sqlite3_context *ctx, struct group *g, sqlite3_value *value,
                    struct sql_key *key)
{
    const char *const bad = g ? key_of(value, key) : NULL;
    if (bad)
        group_fail(ctx, g, bad);
    return g && !bad && key->type;
}

/* --------------------------------------------------------------------- agg */

/* Where SQLite has its own temporary files. */
static const char *spill_folder(void)
{
    const char *const folders[] = { getenv("SQLITE_TMPDIR"), getenv("TMPDIR"),
                                    "/var/tmp" };
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        if (folders[i] && access(folders[i], W_OK | X_OK) == 0)
            return folders[i];
    return "/tmp";
}

static void agg_step(sqlite3_context *ctx, int n, sqlite3_value **argv)
{
    struct group *const g = group_of(ctx);
    struct sql_key key;
    if (!row_key(ctx, g, argv[0], &key))
        return;
    const char *bad = NULL;
    if (!g->begun) {
        bad = sql_spec_read(&g->agg.spec, text_of(argv, n, 1),
                            text_of(argv, n, 2), NULL);
        g->agg.spill = spill_folder();
    }
    g->begun = true;
    if (!bad)
        bad = sql_agg_add(&g->agg, &key);
    if (bad)
        group_fail(ctx, g, bad);
}

static void agg_final(sqlite3_context *ctx)
{
    struct group *const g = group_taken(ctx);
    struct sql_value v = { 0 };
    if (!g)
        return;
    const char *const bad = sql_agg_end(&g->agg, &v.filter);
    sql_agg_free(&g->agg); /* before the bytes of the filter are made */
    if (bad)
        result_wrong(ctx, bad);
    else if (v.filter)
        result_value(ctx, &v);
    sql_value_free(&v);
    group_end(g);
}

/* ------------------------------------------------------------------- merge */

static void merge_step(sqlite3_context *ctx, int n, sqlite3_value **argv)
{
    struct group *const g = group_of(ctx);
    (void)n;
    if (!g || sqlite3_value_type(argv[0]) == SQLITE_NULL)
        return;
    g->begun = true;
    if (sqlite3_value_type(argv[0]) != SQLITE_BLOB) {
        group_fail(ctx, g, "bly_merge_agg() takes filters, which are blobs");
        return;
    }
    const void *const bytes = sqlite3_value_blob(argv[0]);
    const bly_bytes value = { bytes, (size_t)sqlite3_value_bytes(argv[0]) };
    const bly_access limits = heap_limits();
    const char *const bad = sql_value_unite(&g->merged, value, &limits);
    if (bad)
        group_fail(ctx, g, bad);
}

static void merge_final(sqlite3_context *ctx)
{
    struct group *const g = group_taken(ctx);
    if (!g)
        return;
    result_value(ctx, &g->merged);
    group_end(g);
}

/* ---------------------------------------------------------------- sketches */

/* How a group takes the key of a row. */
typedef const char *group_add(struct group *g, const struct sql_key *key);

static void key_step(sqlite3_context *ctx, sqlite3_value **argv, group_add *add)
{
    struct group *const g = group_of(ctx);
    struct sql_key key;
    if (!row_key(ctx, g, argv[0], &key))
        return;
    g->begun = true;
    const char *const bad = add(g, &key);
    if (bad)
        group_fail(ctx, g, bad);
}

/* What the last keys did, and the sketch, which stays the group's. */
static void sketch_final(sqlite3_context *ctx, struct group *g, const char *bad,
                         bly_stored sketch)
{
    if (bad)
        result_wrong(ctx, bad);
    else
        result_value(ctx, &(struct sql_value){ .sketch = sketch });
    group_end(g);
}

static const char *hll_add(struct group *g, const struct sql_key *key)
{
    return sql_hll_add(&g->hll, key);
}

static void hll_step(sqlite3_context *ctx, int n, sqlite3_value **argv)
{
    (void)n;
    key_step(ctx, argv, hll_add);
}

static void hll_final(sqlite3_context *ctx)
{
    struct group *const g = group_taken(ctx);
    if (g)
        sketch_final(ctx, g, sql_hll_end(&g->hll),
                     (bly_stored){ .type = BLY_STORED_HLL, .hll = g->hll.hll });
}

static const char *minhash_add(struct group *g, const struct sql_key *key)
{
    return sql_minhash_add(&g->minhash, key);
}

static void minhash_step(sqlite3_context *ctx, int n, sqlite3_value **argv)
{
    (void)n;
    key_step(ctx, argv, minhash_add);
}

static void minhash_final(sqlite3_context *ctx)
{
    struct group *const g = group_taken(ctx);
    if (g)
        sketch_final(ctx, g, sql_minhash_end(&g->minhash),
                     (bly_stored){ .type = BLY_STORED_LIKENESS,
                                   .likeness = g->minhash.sketch });
}

static void topk_step(sqlite3_context *ctx, int n, sqlite3_value **argv)
{
    struct group *const g = group_of(ctx);
    struct sql_key key;
    (void)n;
    if (!row_key(ctx, g, argv[0], &key))
        return;
    g->begun = true;
    const char *const bad =
        sql_topk_add(&g->topk, sqlite3_value_int64(argv[1]), NULL, &key);
    if (bad)
        group_fail(ctx, g, bad);
}

static void topk_final(sqlite3_context *ctx)
{
    struct group *const g = group_taken(ctx);
    char *json = NULL;
    if (!g)
        return;
    const char *const bad = sql_topk(g->topk, &json);
    if (bad)
        result_wrong(ctx, bad);
    else
        sqlite3_result_text(ctx, json, -1, free);
    group_end(g);
}

int aggregates_register(sqlite3 *db, struct connection *c)
{
#define AGGREGATE(name, nargs, of)                            \
    {                                                         \
        name, nargs, SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, \
            .step = of##_step, .final = of##_final            \
    }
    static const struct function rows[] = {
        AGGREGATE("bly_agg", 1, agg),
        AGGREGATE("bly_agg", 2, agg),
        AGGREGATE("bly_agg", 3, agg),
        AGGREGATE("bly_merge_agg", 1, merge),
        AGGREGATE("bly_hll_agg", 1, hll),
        AGGREGATE("bly_minhash_agg", 1, minhash),
        AGGREGATE("bly_topk_agg", 2, topk),
    };
#undef AGGREGATE
    return function_register(db, c, rows, sizeof rows / sizeof *rows);
}
