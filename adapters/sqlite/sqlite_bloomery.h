/*
 * sqlite_bloomery.h - the parts of the extension for SQLite
 */
#ifndef BLY_SQLITE_H
#define BLY_SQLITE_H

#ifdef SQLITE_CORE
#include <sqlite3.h>
#else
#include <sqlite3ext.h>
extern const sqlite3_api_routines *sqlite3_api;
#endif

#include "adapters/sql/sql.h"

/* A filter that is used, from a blob or mapped from a file. */
struct held {
    const bly_filter *f;
    bool plain; /* sql_is_plain() */
    unsigned refs;
    struct sql_file *file; /* NULL: from a blob */
    struct sql_value value;
    struct sql_same blob; /* by which a blob is known again */
};

/* A value by malloc() that stays as long as statements may use it. */
#define LASTING_USERS 4
struct lasting {
    void *bytes;
    unsigned nusers;
    struct lasting_user {
        sqlite3_stmt *statement;
        int run;
    } users[LASTING_USERS];
};

/* Keep it as long as one of the statements runs that run now; false, and the
 * value is the caller's, as long as the one before is used. */
bool lasting_keep(struct lasting *l, sqlite3 *db, void *bytes);
void lasting_end(struct lasting *l);

/* What a filter that is read may take: of SQLite's own memory, so that its
 * bound counts, where PRAGMA hard_heap_limit has set one. */
bly_access heap_limits(void);

/* Of a connection: the files that it has asked, the blobs that it asked last,
 * and the value that it made last. A blob that is not a constant, as that of a
 * subquery, has no other place from one row to the next. */
#define HELD_BLOBS 4
#define LIVE_FILES 4
struct live_file;
struct connection {
    unsigned refs;
    struct sql_file *files;
    struct held *blobs[HELD_BLOBS]; /* the latest first */
    struct lasting lasting;
    struct live_file *live[LIVE_FILES]; /* added to, the latest first */
};
void live_files_end(struct connection *c);
void connection_drop(void *connection);

/* The filter of an argument: a blob, or the path of a file. NULL if it is SQL's
 * NULL, or if the error is set. What comes back is kept for the statement if it
 * can be. */
struct held *held_of(sqlite3_context *ctx, sqlite3_value *value, int arg);
void held_drop(struct held *h);

/* A value as a key, of type BLY_KEYS_UNKNOWN if it is SQL's NULL. What has no
 * hash is an error. */
static inline const char *key_of(sqlite3_value *value, struct sql_key *key)
{
    switch (sqlite3_value_type(value)) {
    case SQLITE_INTEGER:
        key->type = BLY_KEYS_INT64;
        key->integer = sqlite3_value_int64(value);
        return NULL;
    case SQLITE_TEXT:
        key->type = BLY_KEYS_TEXT;
        key->bytes.ptr = sqlite3_value_text(value);
        break;
    case SQLITE_BLOB:
        key->type = BLY_KEYS_BYTES;
        key->bytes.ptr = sqlite3_value_blob(value);
        break;
    case SQLITE_FLOAT:
        return "a real number has no hash; CAST it to INTEGER or TEXT";
    default:
        key->type = BLY_KEYS_UNKNOWN;
        return NULL;
    }
    key->bytes.len = (size_t)sqlite3_value_bytes(value);
    return key->bytes.ptr || !key->bytes.len ? NULL : "out of memory";
}

/* Text as the path of a file. What stands behind a NUL would be another file's
 * name. NULL, and why. */
const char *path_of(sqlite3_value *value, const char **why);

void result_wrong(sqlite3_context *ctx, const char *why);

/* A filter in it is freed. */
void result_value(sqlite3_context *ctx, struct sql_value *v);

/* A function, or an aggregate, of a connection. */
struct function {
    const char *name;
    int nargs, flags;
    void (*call)(sqlite3_context *, int, sqlite3_value **);
    void (*step)(sqlite3_context *, int, sqlite3_value **);
    void (*final)(sqlite3_context *);
};
int function_register(sqlite3 *db, struct connection *c,
                      const struct function *rows, size_t n);

/* bly_add(path, key), bly_checkpoint(path). */
void fn_live_add(sqlite3_context *ctx, int n, sqlite3_value **argv);
void fn_live_checkpoint(sqlite3_context *ctx, int n, sqlite3_value **argv);

int functions_register(sqlite3 *db, struct connection *c);
int aggregates_register(sqlite3 *db, struct connection *c);
extern const sqlite3_module table_module, file_module, index_module;

#endif
