/*
 * sqlite_faults.c - the functions for SQLite linked into a program, without
 * memory, for test_sqlite.py
 *
 * A script of statements runs again and again, and each time the next
 * allocation fails: SQLite's own, through its allocator, and those of the
 * functions, through malloc(). Every statement must then give the right answer
 * or an error; afterwards the database is whole, and gives the right answers.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

int sqlite3_bloomery_init(sqlite3 *db, char **error,
                          const sqlite3_api_routines *api);

/* ----------------------------------------------------------------- memory */

static long until_failure = -1; /* allocations; < 0: never */
static int failed;

static int fails(void)
{
    if (until_failure < 0 || until_failure-- > 0)
        return 0;
    failed = 1;
    return 1;
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n)
{
    return fails() ? NULL : __real_malloc(n);
}
void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}
void *__wrap_realloc(void *p, size_t n)
{
    return fails() ? NULL : __real_realloc(p, n);
}

static sqlite3_mem_methods usual;

static void *mem_malloc(int n)
{
    return fails() ? NULL : usual.xMalloc(n);
}
static void *mem_realloc(void *p, int n)
{
    return fails() ? NULL : usual.xRealloc(p, n);
}

/* ----------------------------------------------------------------- scripts */

/* Statements, and what each gives; NULL: nothing. */
struct line {
    const char *sql, *gives;
};

static const struct line script[] = {
    { "CREATE TABLE a(x TEXT, n INTEGER)", NULL },
    { "WITH RECURSIVE i(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM i WHERE i "
      "< 300) INSERT INTO a SELECT 'key-' || i, i FROM i",
      NULL },
    { "SELECT sum(bly_has((SELECT bly_agg(x) FROM a), x)) FROM a", "300" },
    { "SELECT sum(bly_has((SELECT bly_agg(n, 'fuse') FROM a), n)) FROM a",
      "300" },
    { "SELECT sum(bly_has((SELECT bly_merge_agg(f) FROM (SELECT bly_agg(x, "
      "'blocked', 'items=300') AS f FROM a GROUP BY n % 3)), x)) FROM a",
      "300" },
    { "SELECT sum(bly_count((SELECT bly_agg(x, 'counting') FROM a), x) > 0) "
      "FROM a",
      "300" },
    { "SELECT json_extract(bly_info(bly_agg(x)), '$.kind') FROM a", "blocked" },
    { "SELECT json_extract(bly_plan(1000, 0.01, 'cuckoo'), '$.kind')",
      "cuckoo" },
    { "SELECT json_extract(bly_info(bly_hll_agg(x)), '$.items') BETWEEN 290 "
      "AND 310 FROM a",
      "1" },
    { "SELECT json_array_length(bly_topk_agg(n % 3, 3)) FROM a", "3" },
    { "SELECT bly_likeness(bly_minhash_agg(x), bly_minhash_agg(x)) FROM a",
      "1.0" },
    { "SELECT bly_save(bly_agg(x), 'faults.bly') IS NULL FROM a", "*" },
    { "SELECT sum(bly_has('faults.bly', x)) FROM a", "300" },
    { "SELECT sum(bly_has(bly_load('faults.bly'), x)) FROM a WHERE n < 5",
      "4" },
    { "SELECT kind FROM bly_file('faults.bly')", "blocked" },
    { "CREATE VIRTUAL TABLE seen USING bloomery(items=1000, fpr=0.001)", NULL },
    { "INSERT INTO seen SELECT x FROM a", NULL },
    { "SELECT count(*) FROM a JOIN seen ON seen.key = a.x", "300" },
    { "DROP TABLE seen", NULL },
};
#define NLINES (sizeof script / sizeof script[0])

/* The answer of a statement; a failure gives a status. */
static int answer(sqlite3 *db, const char *sql, char *out, size_t room)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
    out[0] = '\0';
    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        rc = sqlite3_step(stmt);
        if (rc == SQLITE_ROW) {
            const char *const text = (const char *)sqlite3_column_text(stmt, 0);
            snprintf(out, room, "%s", text ? text : "");
            /* A NULL may be text that there was no memory for. */
            if (!text && sqlite3_errcode(db) == SQLITE_NOMEM)
                rc = SQLITE_NOMEM;
        }
    }
    sqlite3_finalize(stmt);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static void right(const struct line *l, const char *got)
{
    if (l->gives && strcmp(l->gives, "*") != 0 && strcmp(got, l->gives) != 0) {
        fprintf(stderr, "%s\ngave %s\n", l->sql, got);
        abort();
    }
}

static sqlite3 *opened(void)
{
    sqlite3 *db;
    assert(sqlite3_open(":memory:", &db) == SQLITE_OK);
    return db;
}

/* All lines without failures, up to one with them; that one with the failure
 * of allocation `nth`, and once more. Was there one? */
static int try(size_t line, long nth)
{
    char got[300];
    sqlite3 *const db = opened();
    assert(sqlite3_bloomery_init(db, NULL, NULL) == SQLITE_OK);
    for (size_t i = 0; i < line; i++)
        if (!script[i].gives || script[i].gives[0] == '*')
            assert(answer(db, script[i].sql, got, sizeof got) == SQLITE_OK);
    failed = 0;
    until_failure = nth;
    const int rc = answer(db, script[line].sql, got, sizeof got);
    until_failure = -1;
    if (rc == SQLITE_OK)
        right(&script[line], got);
    else
        assert(failed);
    /* What failed has changed nothing, and works now. */
    if (rc != SQLITE_OK) {
        const int again = answer(db, script[line].sql, got, sizeof got);
        if (again)
            fprintf(stderr, "%s\nthen: %s\n", script[line].sql,
                    sqlite3_errmsg(db));
        assert(again == SQLITE_OK);
        right(&script[line], got);
    }
    assert(answer(db, "PRAGMA integrity_check", got, sizeof got) == SQLITE_OK);
    assert(strcmp(got, "ok") == 0);
    assert(sqlite3_close(db) == SQLITE_OK);
    return failed;
}

/* And of making the functions known. */
static int try_init(long nth)
{
    sqlite3 *const db = opened();
    failed = 0;
    until_failure = nth;
    const int rc = sqlite3_bloomery_init(db, NULL, NULL);
    until_failure = -1;
    assert(rc == SQLITE_OK || failed);
    assert(sqlite3_close(db) == SQLITE_OK);
    return failed;
}

int main(void)
{
    long total = 0;
    assert(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &usual) == SQLITE_OK);
    sqlite3_mem_methods mine = usual;
    mine.xMalloc = mem_malloc;
    mine.xRealloc = mem_realloc;
    assert(sqlite3_config(SQLITE_CONFIG_MALLOC, &mine) == SQLITE_OK);
    /* Otherwise small ones come from slots that never fail. */
    assert(sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0) == SQLITE_OK);
    for (long nth = 0; try_init(nth); nth++)
        total++;
    for (size_t line = 0; line < NLINES; line++)
        /* The first ones all, then one in some: a loop is like another. */
        for (long nth = 0; try(line, nth); nth += nth / 60 + 1)
            total++;
    remove("faults.bly");
    printf("%ld failures\n", total);
    return total > 1000 ? 0 : 1;
}
