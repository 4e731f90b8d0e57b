/*
 * sqlite_bloomery.c - filters in SQLite: the extension
 *
 *     .load build/bloomery_sqlite
 *     SELECT bly_has('seen.bly', email) FROM people;
 *
 * functions.c has those that ask, aggregates.c those that make, lasting.c what
 * they made, table.c the virtual table, file.c the facts of a file, index.c
 * which documents have a term. Compiled
 * with SQLITE_CORE it is linked into a program: call sqlite3_bloomery_init(db,
 * NULL, NULL).
 */
#include "adapters/sqlite/sqlite_bloomery.h"

#include <stdlib.h>
#include <string.h>

#ifndef SQLITE_CORE
SQLITE_EXTENSION_INIT1
#endif

void connection_drop(void *connection)
{
    struct connection *const c = connection;
    if (--c->refs)
        return;
    sql_files_end(&c->files);
    for (int i = 0; i < HELD_BLOBS && c->blobs[i]; i++)
        held_drop(c->blobs[i]);
    lasting_end(&c->lasting);
    live_files_end(c);
    free(c);
}

static void *heap_alloc(void *ctx, size_t n)
{
    (void)ctx;
    return sqlite3_malloc64(n);
}

static void heap_release(void *ctx, void *at, size_t n)
{
    (void)ctx, (void)n;
    sqlite3_free(at);
}

/* SQLite gives 2 GiB at most at once, and takes a lock each time, so its memory
 * is used only if it has a bound. The function came with 3.31. */
bly_access heap_limits(void)
{
    static const bly_mem memory = { .alloc = heap_alloc,
                                    .release = heap_release };
    const bool bounded = sqlite3_libversion_number() >= 3031000 &&
                         sqlite3_hard_heap_limit64(-1) > 0;
    return (bly_access){ .mem = bounded ? &memory : NULL };
}

int function_register(sqlite3 *db, struct connection *c,
                      const struct function *rows, size_t n)
{
    int rc = SQLITE_OK;
    for (size_t i = 0; i < n && rc == SQLITE_OK; i++) {
        c->refs++; /* given back when the function goes, or if it fails */
        rc = sqlite3_create_function_v2(
            db, rows[i].name, rows[i].nargs, SQLITE_UTF8 | rows[i].flags, c,
            rows[i].call, rows[i].step, rows[i].final, connection_drop);
    }
    return rc;
}

/* Called without a name, SQLite looks for one made of the letters of the
 * file's. */
__attribute__((visibility("default"))) int
sqlite3_bloomerysqlite_init(sqlite3 *db, char **error,
                            const sqlite3_api_routines *api);
__attribute__((visibility("default"))) int
sqlite3_bloomery_init(sqlite3 *db, char **error,
                      const sqlite3_api_routines *api);

int sqlite3_bloomery_init(sqlite3 *db, char **error,
                          const sqlite3_api_routines *api)
{
    (void)error;
#ifndef SQLITE_CORE
    SQLITE_EXTENSION_INIT2(api)
#else
    (void)api;
#endif
    struct connection *const c = calloc(1, sizeof *c);
    if (!c)
        return SQLITE_NOMEM;
    c->refs = 1;
    int rc = functions_register(db, c);
    if (rc == SQLITE_OK)
        rc = aggregates_register(db, c);
    connection_drop(c);
    if (rc == SQLITE_OK)
        rc = sqlite3_create_module(db, "bloomery", &table_module, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_create_module(db, "bly_file", &file_module, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_create_module(db, "bly_index_search", &index_module, NULL);
    return rc;
}

int sqlite3_bloomerysqlite_init(sqlite3 *db, char **error,
                                const sqlite3_api_routines *api)
{
    return sqlite3_bloomery_init(db, error, api);
}
