/*
 * sqlite_file.c - SELECT * FROM bly_file('seen.bly'): the facts of a file, in a
 * row
 */
#include <math.h>
#include <string.h>

#include "adapters/sqlite/sqlite_bloomery.h"

#define FILE_COLUMNS                                                      \
    "CREATE TABLE x(kind TEXT, keys TEXT, capacity INTEGER, items REAL, " \
    "items_sd REAL, fill REAL, fpr_now REAL, fpr_at_capacity REAL, bits " \
    "INTEGER, seed INTEGER, keyed INTEGER, layers INTEGER, note TEXT, "   \
    "path TEXT HIDDEN)"
enum { COLUMN_PATH = 13 };

struct file_cursor {
    sqlite3_vtab_cursor base;
    bly_filter *f; /* NULL: at the end */
    bly_stats stats;
    char *path;
};

static int file_connect(sqlite3 *db, void *aux, int argc,
                        const char *const *argv, sqlite3_vtab **out,
                        char **error)
{
    (void)aux, (void)argc, (void)argv, (void)error;
    const int rc = sqlite3_declare_vtab(db, FILE_COLUMNS);
    if (rc != SQLITE_OK)
        return rc;
    sqlite3_vtab_config(db, SQLITE_VTAB_DIRECTONLY); /* it opens files */
    *out = sqlite3_malloc(sizeof **out);
    if (!*out)
        return SQLITE_NOMEM;
    memset(*out, 0, sizeof **out);
    return SQLITE_OK;
}

static int file_disconnect(sqlite3_vtab *vtab)
{
    sqlite3_free(vtab);
    return SQLITE_OK;
}

static int file_best(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
    (void)vtab;
    for (int i = 0; i < info->nConstraint; i++) {
        if (info->aConstraint[i].iColumn != COLUMN_PATH ||
            info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ)
            continue;
        if (!info->aConstraint[i].usable)
            return SQLITE_CONSTRAINT;
        info->aConstraintUsage[i].argvIndex = 1;
        info->aConstraintUsage[i].omit = 1;
        info->estimatedCost = 10;
        info->estimatedRows = 1;
        return SQLITE_OK;
    }
    return SQLITE_CONSTRAINT;
}

static int file_open(sqlite3_vtab *vtab, sqlite3_vtab_cursor **out)
{
    (void)vtab;
    struct file_cursor *const c = sqlite3_malloc(sizeof *c);
    if (!c)
        return SQLITE_NOMEM;
    memset(c, 0, sizeof *c);
    *out = &c->base;
    return SQLITE_OK;
}

static void file_end(struct file_cursor *c)
{
    bly_free(c->f);
    sqlite3_free(c->path);
    c->f = NULL;
    c->path = NULL;
}

static int file_close(sqlite3_vtab_cursor *cursor)
{
    file_end((struct file_cursor *)cursor);
    sqlite3_free(cursor);
    return SQLITE_OK;
}

static int file_filter(sqlite3_vtab_cursor *cursor, int number,
                       const char *text, int argc, sqlite3_value **argv)
{
    struct file_cursor *const c = (struct file_cursor *)cursor;
    (void)number, (void)text, (void)argc;
    file_end(c);
    const char *bad;
    if (sqlite3_value_type(argv[0]) == SQLITE_NULL)
        return SQLITE_OK;
    const char *const path = path_of(argv[0], &bad);
    bly_access how = heap_limits();
    how.blind = true;
    how.checking = BLY_CHECK_ALL;
    if (path)
        bad = sql_no_pipe(path);
    if (!bad)
        bad = sql_told(bly_map(path, &how, &c->f));
    if (bad) {
        c->base.pVtab->zErrMsg = sqlite3_mprintf("bloomery: %s", bad);
        return SQLITE_ERROR;
    }
    c->path = sqlite3_mprintf("%s", path);
    bly_stat(c->f, &c->stats);
    return c->path ? SQLITE_OK : SQLITE_NOMEM;
}

static int file_next(sqlite3_vtab_cursor *cursor)
{
    file_end((struct file_cursor *)cursor);
    return SQLITE_OK;
}

static int file_eof(sqlite3_vtab_cursor *cursor)
{
    return !((struct file_cursor *)cursor)->f;
}

static void result_real(sqlite3_context *ctx, double x)
{
    if (isfinite(x))
        sqlite3_result_double(ctx, x);
}

static int file_column(sqlite3_vtab_cursor *cursor, sqlite3_context *ctx,
                       int column)
{
    const struct file_cursor *const c = (struct file_cursor *)cursor;
    const bly_stats *const s = &c->stats;
    const char *const type = bly_key_type_name(bly_keying_of(c->f).type);
    const bly_bytes note = bly_note_of(c->f);
    switch (column) {
    case 0:
        sqlite3_result_text(ctx, s->kind, -1, SQLITE_STATIC);
        break;
    case 1:
        if (type)
            sqlite3_result_text(ctx, type, -1, SQLITE_STATIC);
        break;
    case 2:
        sqlite3_result_int64(ctx, (sqlite3_int64)s->capacity);
        break;
    case 3:
        result_real(ctx, s->items_estimate);
        break;
    case 4:
        result_real(ctx, s->items_sd);
        break;
    case 5:
        result_real(ctx, s->fill);
        break;
    case 6:
        result_real(ctx, s->fpr_now);
        break;
    case 7:
        result_real(ctx, s->fpr_at_capacity);
        break;
    case 8:
        sqlite3_result_int64(ctx, (sqlite3_int64)s->bits);
        break;
    case 9:
        sqlite3_result_int64(ctx, (sqlite3_int64)s->seed);
        break;
    case 10:
        sqlite3_result_int(ctx, s->keyed);
        break;
    case 11:
        sqlite3_result_int(ctx, (int)s->layers);
        break;
    case 12:
        if (note.len)
            sqlite3_result_text(ctx, note.ptr, (int)note.len, SQLITE_TRANSIENT);
        break;
    default:
        sqlite3_result_text(ctx, c->path, -1, SQLITE_TRANSIENT);
    }
    return SQLITE_OK;
}

static int file_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *out)
{
    (void)cursor;
    *out = 1;
    return SQLITE_OK;
}

const sqlite3_module file_module = {
    .xConnect = file_connect, /* no xCreate: it is there by its name alone */
    .xBestIndex = file_best,
    .xDisconnect = file_disconnect,
    .xOpen = file_open,
    .xClose = file_close,
    .xFilter = file_filter,
    .xNext = file_next,
    .xEof = file_eof,
    .xColumn = file_column,
    .xRowid = file_rowid,
};
