/*
 * sqlite_bloomery.h - the parts of the extension for SQLite
 */
#ifndef BLY_SQLITE_H
#define BLY_SQLITE_H

#ifdef SQLITE_CORE
#include <sqlite3.h>
#else
#include <sqlite3ext.h>
#ifndef BLY_SQLITE_MAIN
extern const sqlite3_api_routines *sqlite3_api;
#endif
#endif

#include "adapters/sql/sql.h"

/* A filter that is used, from a blob or mapped from a file. */
struct held {
    const bly_filter *f;
    unsigned refs;
    struct sql_file *file; /* NULL: from a blob */
    struct sql_value value;
    struct sql_same blob; /* by which a blob is known again */
};

/* Of a connection: the files that it has asked, and the blobs that it asked
 * last. A blob that is no constant, as that of a subquery, has no other place
 * from one row to the next. */
#define HELD_BLOBS 4
struct connection {
    unsigned refs;
    struct sql_file *files;
    struct held *blobs[HELD_BLOBS]; /* the latest first */
};
void connection_drop(void *connection);

/* The filter of an argument: a blob, or the path of a file. NULL, and the
 * error is set. What comes back is kept for the statement if it can be. */
struct held *held_of(sqlite3_context *ctx, sqlite3_value *value, int arg);
void held_drop(struct held *h);

/* A value as a key. False: it has no hash, and the error is set; or NULL. */
bool key_of(sqlite3_context *ctx, sqlite3_value *value, struct sql_key *key);

void result_wrong(sqlite3_context *ctx, const char *why);
void result_value(sqlite3_context *ctx, const struct sql_value *v);

int functions_register(sqlite3 *db, struct connection *c);
int aggregates_register(sqlite3 *db);
extern const sqlite3_module table_module, file_module;

#endif
