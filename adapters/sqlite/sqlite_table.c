/*
 * sqlite_table.c - CREATE VIRTUAL TABLE seen USING bloomery(items=1000000,
 * fpr=0.001)
 *
 *     INSERT INTO seen(key) VALUES ('alice'), ('bob');
 *     SELECT count(*) FROM seen WHERE key = 'alice';     -- 1: maybe; 0: no
 *     SELECT * FROM visits JOIN seen ON seen.key = visits.email;
 *
 * The filter is a blob in a shadow table, NAME_filter, and changes with the
 * transaction: additions are made in memory and written when it commits, or
 * when a savepoint begins, so that whatever SQLite rolls back there is what is
 * read again afterwards. A number counts the versions, so that one connection
 * notices what another has committed.
 *
 * A filter cannot be listed: a query must say which keys it wants.
 */
#include <stdlib.h>
#include <string.h>

#include "adapters/sqlite/sqlite_bloomery.h"

struct table {
    sqlite3_vtab base;
    sqlite3 *db;
    char *schema, *name;
    bly_filter *f; /* NULL: to be read */
    int64_t version;
    bool dirty;
};

struct cursor {
    sqlite3_vtab_cursor base;
    sqlite3_value *key; /* NULL: at the end */
    uint64_t hash;
};

static int table_fail(struct table *t, const char *why)
{
    sqlite3_free(t->base.zErrMsg);
    t->base.zErrMsg = sqlite3_mprintf("bloomery: %s", why);
    return strcmp(why, "out of memory") == 0 ? SQLITE_NOMEM : SQLITE_ERROR;
}

/* ------------------------------------------------------------------ storage */

/* Run a statement about the shadow table; %w are schema and name. */
static int table_exec(struct table *t, const char *format)
{
    char *const sql = sqlite3_mprintf(format, t->schema, t->name);
    if (!sql)
        return SQLITE_NOMEM;
    const int rc = sqlite3_exec(t->db, sql, NULL, NULL, NULL);
    sqlite3_free(sql);
    return rc == SQLITE_OK ? rc : table_fail(t, sqlite3_errmsg(t->db));
}

static int table_prepare(struct table *t, const char *format,
                         sqlite3_stmt **out)
{
    char *const sql = sqlite3_mprintf(format, t->schema, t->name);
    if (!sql)
        return SQLITE_NOMEM;
    const int rc = sqlite3_prepare_v2(t->db, sql, -1, out, NULL);
    sqlite3_free(sql);
    return rc == SQLITE_OK ? rc : table_fail(t, sqlite3_errmsg(t->db));
}

static void table_forget(struct table *t)
{
    bly_free(t->f);
    t->f = NULL;
    t->dirty = false;
}

static int table_load(struct table *t)
{
    sqlite3_stmt *s;
    table_forget(t);
    int rc = table_prepare(
        t, "SELECT version, filter FROM \"%w\".\"%w_filter\" WHERE id = 1", &s);
    if (rc != SQLITE_OK)
        return rc;
    if (sqlite3_step(s) != SQLITE_ROW) {
        rc = table_fail(t, "its shadow table has lost the filter");
    } else {
        t->version = sqlite3_column_int64(s, 0);
        const void *const bytes = sqlite3_column_blob(s, 1);
        const size_t n = (size_t)sqlite3_column_bytes(s, 1);
        const bly_access limits = heap_limits();
        if (bly_load(bytes, n, &limits, &t->f))
            rc = table_fail(t, bly_error());
    }
    sqlite3_finalize(s);
    return rc;
}

/* Let t->f be what the database has. */
static int table_fresh(struct table *t)
{
    sqlite3_stmt *s;
    if (!t->f)
        return table_load(t);
    if (t->dirty)
        return SQLITE_OK;
    int rc = table_prepare(
        t, "SELECT version FROM \"%w\".\"%w_filter\" WHERE id = 1", &s);
    if (rc != SQLITE_OK)
        return rc;
    const bool same = sqlite3_step(s) == SQLITE_ROW &&
                      sqlite3_column_int64(s, 0) == t->version;
    sqlite3_finalize(s);
    return same ? SQLITE_OK : table_load(t);
}

static int table_store(struct table *t, const char *format)
{
    sqlite3_stmt *s;
    void *bytes;
    size_t n;
    const char *const bad =
        sql_value_copy(&(struct sql_value){ .filter = t->f }, &bytes, &n);
    if (bad)
        return table_fail(t, bad);
    int rc = table_prepare(t, format, &s);
    if (rc != SQLITE_OK) {
        free(bytes);
        return rc;
    }
    sqlite3_bind_int64(s, 1, t->version + 1);
    rc = sqlite3_bind_blob64(s, 2, bytes, n, free);
    if (rc == SQLITE_OK)
        sqlite3_step(s);
    rc = sqlite3_finalize(s);
    if (rc != SQLITE_OK)
        return table_fail(t, sqlite3_errmsg(t->db));
    t->version++;
    t->dirty = false;
    return SQLITE_OK;
}

static int table_flush(sqlite3_vtab *vtab)
{
    struct table *const t = (struct table *)vtab;
    return t->dirty
               ? table_store(t, "UPDATE \"%w\".\"%w_filter\" SET version = "
                                "?1, filter = ?2 WHERE id = 1")
               : SQLITE_OK;
}

/* ------------------------------------------------------ making and dropping */

static void table_free(struct table *t)
{
    bly_free(t->f);
    sqlite3_free(t->schema);
    sqlite3_free(t->name);
    sqlite3_free(t);
}

static int table_connect(sqlite3 *db, void *aux, int argc,
                         const char *const *argv, sqlite3_vtab **out,
                         char **error)
{
    (void)aux, (void)argc, (void)error;
    int rc = sqlite3_declare_vtab(db, "CREATE TABLE x(key)");
    if (rc != SQLITE_OK)
        return rc;
    struct table *const t = sqlite3_malloc(sizeof *t);
    if (!t)
        return SQLITE_NOMEM;
    memset(t, 0, sizeof *t);
    t->db = db;
    t->schema = sqlite3_mprintf("%s", argv[1]);
    t->name = sqlite3_mprintf("%s", argv[2]);
    if (!t->schema || !t->name) {
        table_free(t);
        return SQLITE_NOMEM;
    }
    *out = &t->base;
    return SQLITE_OK;
}

/* A filter as the words in parentheses say. NULL, and why. */
static bly_filter *table_filter(int argc, const char *const *argv,
                                const char **why)
{
    struct sql_spec spec;
    bly_kind_info kind;
    bly_filter *f = NULL;
    char words[500] = "";
    for (int i = 3; i < argc; i++) {
        if (strlen(words) + strlen(argv[i]) + 2 > sizeof words) {
            *why = "too many options";
            return NULL;
        }
        strcat(strcat(words, argv[i]), " ");
    }
    *why = sql_spec_read(&spec, NULL, words, NULL);
    if (*why)
        return NULL;
    /* Nobody says how many keys will come: then it grows. */
    if (!spec.spec.items && !spec.spec.bits) {
        spec.spec.items = 1000;
        spec.spec.kind = spec.spec.kind ? spec.spec.kind : "scalable";
    }
    bly_kind_named(spec.spec.kind, &kind);
    if (!(kind.can & BLY_CAN(ADD)))
        *why = "this kind is built from all its keys at once, and rows come "
               "one by one; use a kind that can add, or bly_agg()";
    else if (bly_new(&spec.spec, &f))
        *why = bly_error();
    return f;
}

static int table_create(sqlite3 *db, void *aux, int argc,
                        const char *const *argv, sqlite3_vtab **out,
                        char **error)
{
    const char *why;
    bly_filter *const f = table_filter(argc, argv, &why);
    if (!f) {
        *error = sqlite3_mprintf("bloomery: %s", why);
        return SQLITE_ERROR;
    }
    int rc = table_connect(db, aux, argc, argv, out, error);
    if (rc != SQLITE_OK) {
        bly_free(f);
        return rc;
    }
    struct table *const t = (struct table *)*out;
    t->f = f;
    rc = table_exec(t, "CREATE TABLE \"%w\".\"%w_filter\"(id INTEGER PRIMARY "
                       "KEY, version INTEGER NOT NULL, filter BLOB NOT NULL)");
    if (rc == SQLITE_OK)
        rc = table_store(t,
                         "INSERT INTO \"%w\".\"%w_filter\" VALUES (1, ?1, ?2)");
    if (rc != SQLITE_OK) {
        *error = t->base.zErrMsg;
        t->base.zErrMsg = NULL;
        table_free(t);
        *out = NULL;
    }
    return rc;
}

static int table_disconnect(sqlite3_vtab *vtab)
{
    table_free((struct table *)vtab);
    return SQLITE_OK;
}

static int table_destroy(sqlite3_vtab *vtab)
{
    struct table *const t = (struct table *)vtab;
    const int rc = table_exec(t, "DROP TABLE IF EXISTS \"%w\".\"%w_filter\"");
    if (rc == SQLITE_OK)
        table_free(t);
    return rc;
}

static int table_rename(sqlite3_vtab *vtab, const char *name)
{
    struct table *const t = (struct table *)vtab;
    char *const sql = sqlite3_mprintf(
        "ALTER TABLE \"%w\".\"%w_filter\" RENAME TO \"%w_filter\"", t->schema,
        t->name, name);
    if (!sql)
        return SQLITE_NOMEM;
    int rc = table_flush(vtab);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(t->db, sql, NULL, NULL, NULL);
    sqlite3_free(sql);
    return rc;
}

static int table_is_shadow(const char *name)
{
    return strcmp(name, "filter") == 0;
}

/* ------------------------------------------------------------------- asking */

/* A filter knows its keys by their bytes. Other collations take more than one
 * text for a key, most of which it would deny. */
static bool compares_bytes(sqlite3_index_info *info, int i)
{
    return sqlite3_stricmp(sqlite3_vtab_collation(info, i), "BINARY") == 0;
}

static int table_best(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
    int other = -1; /* a key by another collation, and none by its bytes */
    bool named = false;
    for (int i = 0; i < info->nConstraint; i++) {
        if (info->aConstraint[i].iColumn != 0 ||
            info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ)
            continue;
        if (!compares_bytes(info, i)) {
            other = i;
            continue;
        }
        named = true;
        if (!info->aConstraint[i].usable)
            continue;
        info->aConstraintUsage[i].argvIndex = 1;
        info->aConstraintUsage[i].omit = 1;
        info->estimatedCost = 1;
        info->estimatedRows = 1;
        info->idxFlags = SQLITE_INDEX_SCAN_UNIQUE;
        return SQLITE_OK;
    }
    if (named || other < 0)
        return SQLITE_CONSTRAINT; /* it cannot be listed */
    vtab->zErrMsg =
        sqlite3_mprintf("bloomery: keys are compared by their bytes, not by "
                        "%s; write key = x COLLATE BINARY",
                        sqlite3_vtab_collation(info, other));
    return SQLITE_ERROR;
}

static int cursor_open(sqlite3_vtab *vtab, sqlite3_vtab_cursor **out)
{
    (void)vtab;
    struct cursor *const c = sqlite3_malloc(sizeof *c);
    if (!c)
        return SQLITE_NOMEM;
    memset(c, 0, sizeof *c);
    *out = &c->base;
    return SQLITE_OK;
}

static int cursor_close(sqlite3_vtab_cursor *cursor)
{
    struct cursor *const c = (struct cursor *)cursor;
    sqlite3_value_free(c->key);
    sqlite3_free(c);
    return SQLITE_OK;
}

static const char *table_hash(const struct table *t, const struct sql_key *key,
                              uint64_t *hash)
{
    const void *const at = key->type == BLY_KEYS_INT64
                               ? (const void *)&key->integer
                               : (const void *)&key->bytes;
    return bly_hash_as(bly_hasher_of(t->f), bly_keying_of(t->f), key->type, at,
                       1, hash, NULL)
               ? bly_error()
               : NULL;
}

static int cursor_filter(sqlite3_vtab_cursor *cursor, int number,
                         const char *text, int argc, sqlite3_value **argv)
{
    struct cursor *const c = (struct cursor *)cursor;
    struct table *const t = (struct table *)c->base.pVtab;
    struct sql_key key = { 0 };
    (void)number, (void)text, (void)argc;
    sqlite3_value_free(c->key);
    c->key = NULL;
    if (sqlite3_value_type(argv[0]) == SQLITE_NULL)
        return SQLITE_OK;
    const int rc = table_fresh(t);
    if (rc != SQLITE_OK)
        return rc;
    const char *bad = key_of(argv[0], &key);
    if (!bad)
        bad = table_hash(t, &key, &c->hash);
    if (bad)
        return table_fail(t, bad);
    if (bly_has_hash(t->f, c->hash)) {
        c->key = sqlite3_value_dup(argv[0]);
        return c->key ? SQLITE_OK : SQLITE_NOMEM;
    }
    return SQLITE_OK;
}

static int cursor_next(sqlite3_vtab_cursor *cursor)
{
    struct cursor *const c = (struct cursor *)cursor;
    sqlite3_value_free(c->key);
    c->key = NULL;
    return SQLITE_OK;
}

static int cursor_eof(sqlite3_vtab_cursor *cursor)
{
    return !((struct cursor *)cursor)->key;
}

static int cursor_column(sqlite3_vtab_cursor *cursor, sqlite3_context *ctx,
                         int column)
{
    (void)column;
    sqlite3_result_value(ctx, ((struct cursor *)cursor)->key);
    return SQLITE_OK;
}

static int cursor_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *out)
{
    *out = (sqlite3_int64)((struct cursor *)cursor)->hash;
    return SQLITE_OK;
}

/* ----------------------------------------------------------------- changing */

static int table_update(sqlite3_vtab *vtab, int argc, sqlite3_value **argv,
                        sqlite3_int64 *rowid)
{
    struct table *const t = (struct table *)vtab;
    struct sql_key key = { 0 };
    int rc = table_fresh(t);
    if (rc != SQLITE_OK)
        return rc;
    if (argc == 1) { /* a row is its hash */
        const uint64_t hash = (uint64_t)sqlite3_value_int64(argv[0]);
        if (bly_remove_hashes(t->f, &hash, 1, NULL))
            return table_fail(t, bly_error());
        t->dirty = true;
        return SQLITE_OK;
    }
    if (sqlite3_value_type(argv[0]) != SQLITE_NULL)
        return table_fail(t,
                          "a key cannot become another; use DELETE and INSERT");
    if (sqlite3_value_type(argv[2]) == SQLITE_NULL) {
        *rowid = 0; /* skipped, as by the aggregates */
        return SQLITE_OK;
    }
    const char *bad = key_of(argv[2], &key);
    if (!bad)
        bad = sql_add(t->f, &key);
    uint64_t hash = 0;
    if (!bad)
        bad = table_hash(t, &key, &hash);
    if (bad)
        return table_fail(t, bad);
    *rowid = (sqlite3_int64)hash;
    t->dirty = true;
    return SQLITE_OK;
}

static int table_begin(sqlite3_vtab *vtab)
{
    (void)vtab;
    return SQLITE_OK;
}

static int table_commit(sqlite3_vtab *vtab)
{
    (void)vtab;
    return SQLITE_OK;
}

static int table_rollback(sqlite3_vtab *vtab)
{
    table_forget((struct table *)vtab);
    return SQLITE_OK;
}

static int table_savepoint(sqlite3_vtab *vtab, int n)
{
    (void)n;
    return table_flush(vtab);
}

static int table_release(sqlite3_vtab *vtab, int n)
{
    (void)vtab, (void)n;
    return SQLITE_OK;
}

static int table_back_to(sqlite3_vtab *vtab, int n)
{
    (void)n;
    table_forget((struct table *)vtab);
    return SQLITE_OK;
}

const sqlite3_module table_module = {
    .iVersion = 3,
    .xCreate = table_create,
    .xConnect = table_connect,
    .xBestIndex = table_best,
    .xDisconnect = table_disconnect,
    .xDestroy = table_destroy,
    .xOpen = cursor_open,
    .xClose = cursor_close,
    .xFilter = cursor_filter,
    .xNext = cursor_next,
    .xEof = cursor_eof,
    .xColumn = cursor_column,
    .xRowid = cursor_rowid,
    .xUpdate = table_update,
    .xBegin = table_begin,
    .xSync = table_flush,
    .xCommit = table_commit,
    .xRollback = table_rollback,
    .xRename = table_rename,
    .xSavepoint = table_savepoint,
    .xRelease = table_release,
    .xRollbackTo = table_back_to,
    .xShadowName = table_is_shadow,
};
