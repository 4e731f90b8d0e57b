/*
 * functions.c - bly_has() and the others that ask
 *
 * A filter is a blob, or the path of a file. A blob that is the same for all
 * rows is loaded once per statement; a file is mapped once per connection and
 * looked at again when a statement begins, so that a new file is seen by the
 * next one.
 *
 * What opens files must not be called by a schema that somebody else wrote:
 * bly_load() and bly_save() work at the top level only, and a path in
 * bly_has() too, unless the schema is trusted (PRAGMA trusted_schema).
 */
#include <stdlib.h>
#include <string.h>

#include "adapters/sqlite/sqlite_bloomery.h"

void result_wrong(sqlite3_context *ctx, const char *why)
{
    char text[400];
    if (strcmp(why, "out of memory") == 0) {
        sqlite3_result_error_nomem(ctx);
        return;
    }
    sqlite3_snprintf(sizeof text, text, "bloomery: %s", why);
    sqlite3_result_error(ctx, text, -1);
}

void result_value(sqlite3_context *ctx, struct sql_value *v)
{
    void *bytes;
    size_t n;
    const char *const bad = sql_value_turn(v, &bytes, &n);
    struct connection *const c = sqlite3_user_data(ctx);
    if (bad)
        result_wrong(ctx, bad);
    else if (lasting_keep(&c->lasting, sqlite3_context_db_handle(ctx), bytes))
        sqlite3_result_blob64(ctx, bytes, n, SQLITE_STATIC);
    else
        sqlite3_result_blob64(ctx, bytes, n, free);
}

const char *path_of(sqlite3_value *value, const char **why)
{
    const char *const path = (const char *)sqlite3_value_text(value);
    const bool whole =
        path && strlen(path) == (size_t)sqlite3_value_bytes(value);
    *why = whole ? NULL : path ? "a path with a NUL in it" : "out of memory";
    return whole ? path : NULL;
}

/* ------------------------------------------------------------------ holding */

void held_drop(struct held *h)
{
    if (--h->refs)
        return;
    if (h->file)
        sql_file_close(h->file);
    sql_value_free(&h->value);
    sql_same_end(&h->blob);
    free(h);
}

static void held_drop_any(void *h)
{
    held_drop(h);
}

/* The filter in a file, mapped once and kept as long as the file is the same.
 * NULL, and why. */
static struct held *held_file(struct connection *c, const char *path,
                              const char **why)
{
    struct held *const h = calloc(1, sizeof *h);
    if (!h) {
        *why = "out of memory";
        return NULL;
    }
    h->refs = 1;
    const bly_access limits = heap_limits();
    *why = sql_file_open(&c->files, path, &limits, &h->file);
    if (*why) {
        held_drop(h);
        return NULL;
    }
    h->f = h->file->f;
    h->plain = sql_is_plain(h->f);
    return h;
}

/* Blob i of a connection becomes its first. */
static struct held *blob_first(struct connection *c, int i)
{
    struct held *const h = c->blobs[i];
    memmove(c->blobs + 1, c->blobs, (size_t)i * sizeof *c->blobs);
    return c->blobs[0] = h;
}

/* A filter that was asked lately, or NULL. */
static struct held *blob_again(struct connection *c, bly_bytes bytes)
{
    for (int i = 0; i < HELD_BLOBS && c->blobs[i]; i++)
        if (sql_same_is(&c->blobs[i]->blob, bytes)) {
            struct held *const h = i ? blob_first(c, i) : c->blobs[0];
            h->refs++;
            return h;
        }
    return NULL;
}

static struct held *held_blob(struct connection *c, bly_bytes bytes,
                              const char **why)
{
    struct held *const h = calloc(1, sizeof *h);
    if (!h || !sql_same_begin(&h->blob, bytes, NULL)) {
        free(h);
        *why = "out of memory";
        return NULL;
    }
    h->refs = 1;
    const bly_access limits = heap_limits();
    *why = sql_value_load(bytes.ptr, bytes.len, &limits, &h->value);
    if (!*why && !h->value.filter)
        *why = SQL_SKETCH_ASKED;
    if (*why) {
        held_drop(h);
        return NULL;
    }
    h->f = h->value.filter;
    h->plain = sql_is_plain(h->f);
    h->refs++; /* the connection's */
    if (c->blobs[HELD_BLOBS - 1])
        held_drop(c->blobs[HELD_BLOBS - 1]);
    memmove(c->blobs + 1, c->blobs, (HELD_BLOBS - 1) * sizeof *c->blobs);
    return c->blobs[0] = h;
}

static bool is_null(sqlite3_value *value)
{
    return sqlite3_value_type(value) == SQLITE_NULL;
}

struct held *held_of(sqlite3_context *ctx, sqlite3_value *value, int arg)
{
    struct held *h = sqlite3_get_auxdata(ctx, arg);
    const char *why = "a filter is a blob, or text that is the path of a file";
    if (h) {
        h->refs++;
        return h;
    }
    if (is_null(value))
        return NULL;
    if (sqlite3_value_type(value) == SQLITE_BLOB) {
        struct connection *const c = sqlite3_user_data(ctx);
        const void *const ptr = sqlite3_value_blob(value);
        const bly_bytes bytes = { ptr, (size_t)sqlite3_value_bytes(value) };
        h = blob_again(c, bytes);
        if (h)
            return h; /* keeping it for this argument takes longer */
        h = held_blob(c, bytes, &why);
    } else if (sqlite3_value_type(value) == SQLITE_TEXT) {
        const char *const path = path_of(value, &why);
        if (path)
            h = held_file(sqlite3_user_data(ctx), path, &why);
    }
    if (!h) {
        result_wrong(ctx, why);
        return NULL;
    }
    h->refs++;
    sqlite3_set_auxdata(ctx, arg, h, held_drop_any);
    return h;
}

/* ------------------------------------------------------------------- asking */

/* What is asked of a filter about a key. The answer goes to SQLite; NULL is one
 * as well. */
typedef const char *question(sqlite3_context *ctx, const struct held *h,
                             const struct sql_key *key);

/* The first row of a statement, or any if its filter is not a constant. */
static __attribute__((noinline)) const char *
ask_first(sqlite3_context *ctx, sqlite3_value **argv, const struct sql_key *key,
          const char *bad, question *about)
{
    struct held *const h = held_of(ctx, argv[0], 0);
    if (!h)
        return NULL;
    if (!bad)
        bad = about(ctx, h, key);
    held_drop(h);
    return bad;
}

/* Each of the functions has its own copy, since some ask for every row of a
 * table. */
static inline __attribute__((always_inline)) void
ask(sqlite3_context *ctx, sqlite3_value **argv, question *about)
{
    struct sql_key key;
    const char *bad = key_of(argv[1], &key);
    if (!bad && !key.type)
        return;
    const struct held *const h = sqlite3_get_auxdata(ctx, 0);
    if (!h)
        bad = ask_first(ctx, argv, &key, bad, about);
    else if (!bad)
        bad = about(ctx, h, &key);
    if (bad)
        result_wrong(ctx, bad);
}

/* A key that has to become one of the filter's first. */
static __attribute__((noinline)) const char *
ask_has_as(sqlite3_context *ctx, const struct held *h,
           const struct sql_key *key)
{
    bool maybe = false;
    const char *const bad = sql_has(h->f, key, &maybe);
    sqlite3_result_int(ctx, maybe);
    return bad;
}

static inline __attribute__((always_inline)) const char *
ask_has(sqlite3_context *ctx, const struct held *h, const struct sql_key *key)
{
    if (!h->plain || key->type == BLY_KEYS_INT64)
        return ask_has_as(ctx, h, key);
    const bool maybe = bly_has(h->f, key->bytes.ptr, key->bytes.len);
    sqlite3_result_int(ctx, maybe);
    return maybe ? sql_told(bly_damage(h->f)) : NULL;
}

static void result_number(sqlite3_context *ctx, uint64_t x)
{
    sqlite3_result_int64(ctx, x > INT64_MAX ? INT64_MAX : (int64_t)x);
}

static const char *ask_count(sqlite3_context *ctx, const struct held *h,
                             const struct sql_key *key)
{
    uint64_t count = 0;
    const char *const bad = sql_count(h->f, key, &count);
    result_number(ctx, count);
    return bad;
}

static const char *ask_get(sqlite3_context *ctx, const struct held *h,
                           const struct sql_key *key)
{
    uint64_t value;
    bool present = false;
    const char *const bad = sql_get(h->f, key, &value, &present);
    if (!bad && present)
        result_number(ctx, value);
    return bad;
}

static void fn_has(sqlite3_context *ctx, int n, sqlite3_value **argv)
{
    (void)n;
    ask(ctx, argv, ask_has);
}

static void fn_count(sqlite3_context *ctx, int n, sqlite3_value **argv)
{
    (void)n;
    ask(ctx, argv, ask_count);
}

static void fn_get(sqlite3_context *ctx, int n, sqlite3_value **argv)
{
    (void)n;
    ask(ctx, argv, ask_get);
}

/* ------------------------------------------------------------------ telling */

static void result_json(sqlite3_context *ctx, const char *bad, char *json)
{
    if (bad)
        result_wrong(ctx, bad);
    else
        sqlite3_result_text(ctx, json, -1, free);
}

static void fn_info(sqlite3_context *ctx, int n, sqlite3_value **argv)
{
    char *json = NULL;
    const char *bad = "bly_info() takes a blob, or the path of a file";
    const bly_access limits = heap_limits();
    (void)n;
    if (is_null(argv[0]))
        return;
    if (sqlite3_value_type(argv[0]) == SQLITE_BLOB) {
        const void *const bytes = sqlite3_value_blob(argv[0]);
        bad = sql_info(bytes, (size_t)sqlite3_value_bytes(argv[0]), &limits,
                       &json);
    } else if (sqlite3_value_type(argv[0]) == SQLITE_TEXT) {
        const char *const path = path_of(argv[0], &bad);
        if (path)
            bad = sql_info_file(path, &limits, &json);
    }
    result_json(ctx, bad, json);
}

static bool is_number(sqlite3_value *value)
{
    const int type = sqlite3_value_numeric_type(value);
    return type == SQLITE_INTEGER || type == SQLITE_FLOAT;
}

static void fn_plan(sqlite3_context *ctx, int n, sqlite3_value **argv)
{
    char *json = NULL;
    const bool rated = n > 1 && !is_null(argv[1]);
    const double fpr = rated ? sqlite3_value_double(argv[1]) : 0;
    const char *bad = NULL;
    if (is_null(argv[0]))
        return;
    if (!is_number(argv[0]) || (rated && !is_number(argv[1])))
        bad = "expected bly_plan(number of keys, rate, 'kind')";
    else if (sqlite3_value_double(argv[0]) < 0)
        bad = "a plan for fewer than no keys";
    else
        bad = sql_plan(
            (uint64_t)sqlite3_value_int64(argv[0]), rated ? &fpr : NULL,
            n > 2 ? (const char *)sqlite3_value_text(argv[2]) : NULL, &json);
    result_json(ctx, bad, json);
}

static void fn_likeness(sqlite3_context *ctx, int n, sqlite3_value **argv)
{
    double like;
    (void)n;
    if (is_null(argv[0]) || is_null(argv[1]))
        return;
    if (sqlite3_value_type(argv[0]) != SQLITE_BLOB ||
        sqlite3_value_type(argv[1]) != SQLITE_BLOB) {
        result_wrong(ctx, "bly_likeness() compares two blobs: sketches, or "
                          "filters");
        return;
    }
    const bly_bytes a = { sqlite3_value_blob(argv[0]),
                          (size_t)sqlite3_value_bytes(argv[0]) };
    const bly_bytes b = { sqlite3_value_blob(argv[1]),
                          (size_t)sqlite3_value_bytes(argv[1]) };
    const bly_access limits = heap_limits();
    const char *const bad = sql_likeness(a, b, &limits, &like);
    if (bad)
        result_wrong(ctx, bad);
    else
        sqlite3_result_double(ctx, like);
}

/* -------------------------------------------------------------------- files */

static void fn_load(sqlite3_context *ctx, int n, sqlite3_value **argv)
{
    struct sql_value v = { 0 };
    (void)n;
    if (is_null(argv[0]))
        return;
    const bly_access limits = heap_limits();
    const char *bad = "bly_load() takes the path of a file";
    const char *const path = sqlite3_value_type(argv[0]) == SQLITE_TEXT
                                 ? path_of(argv[0], &bad)
                                 : NULL;
    if (path)
        bad = sql_value_open(path, &limits, &v);
    if (bad)
        result_wrong(ctx, bad);
    else
        result_value(ctx, &v);
    sql_value_free(&v);
}

static void fn_save(sqlite3_context *ctx, int n, sqlite3_value **argv)
{
    struct sql_value v = { 0 };
    (void)n;
    if (is_null(argv[0]) || is_null(argv[1]))
        return;
    if (sqlite3_value_type(argv[0]) != SQLITE_BLOB ||
        sqlite3_value_type(argv[1]) != SQLITE_TEXT) {
        result_wrong(ctx, "expected bly_save(filter, path)");
        return;
    }
    const void *const bytes = sqlite3_value_blob(argv[0]);
    const size_t size = (size_t)sqlite3_value_bytes(argv[0]);
    const bly_access limits = heap_limits();
    const char *bad;
    const char *const path = path_of(argv[1], &bad);
    if (path)
        bad = sql_value_load(bytes, size, &limits, &v);
    if (!bad)
        bad = sql_value_save(&v, path, NULL);
    if (bad)
        result_wrong(ctx, bad);
    else
        sqlite3_result_int64(ctx, (int64_t)size);
    sql_value_free(&v);
}

int functions_register(sqlite3 *db, struct connection *c)
{
    static const struct function rows[] = {
        { "bly_has", 2, 0, .call = fn_has },
        { "bly_count", 2, 0, .call = fn_count },
        { "bly_get", 2, 0, .call = fn_get },
        { "bly_info", 1, 0, .call = fn_info },
        { "bly_plan", 1, SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS,
          .call = fn_plan },
        { "bly_plan", 2, SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS,
          .call = fn_plan },
        { "bly_plan", 3, SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS,
          .call = fn_plan },
        { "bly_likeness", 2, SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS,
          .call = fn_likeness },
        { "bly_load", 1, SQLITE_DIRECTONLY, .call = fn_load },
        { "bly_save", 2, SQLITE_DIRECTONLY, .call = fn_save },
        { "bly_add", 2, SQLITE_DIRECTONLY, .call = fn_live_add },
        { "bly_checkpoint", 1, SQLITE_DIRECTONLY, .call = fn_live_checkpoint },
    };
    return function_register(db, c, rows, sizeof rows / sizeof *rows);
}
