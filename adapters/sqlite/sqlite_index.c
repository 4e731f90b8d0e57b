/*
 * sqlite_index.c - SELECT document FROM bly_index_search('logs.blx', 'error'):
 * the documents that may have a term
 *
 * Of an index that `bloomery index build` made, the term is cut into the words
 * that the index has, all of which a document must have, and documents are
 * named by their files; those that could not be read when the index was made
 * are always named. Of any other index the term is one key of its first class,
 * or of that called words, and a document is its blob.
 */
#include <string.h>

#include <bloomery/index.h>

#include "adapters/sqlite/sqlite_bloomery.h"
#include "base/varint.h"

#define INDEX_COLUMNS                                                       \
    "CREATE TABLE x(document TEXT, number INTEGER, file TEXT HIDDEN, term " \
    "TEXT HIDDEN)"
enum { COLUMN_DOCUMENT, COLUMN_NUMBER, COLUMN_FILE, COLUMN_TERM };

/* What the command writes: docs/format-index.md leaves it to whoever makes an
 * index. Numbers are varints. */
#define FILES_NAME "bloomery.files"
#define FILES_VERSION 1
#define FILES_CLASSES 3
#define BLOCK_UNREAD 64

struct index_cursor {
    sqlite3_vtab_cursor base;
    bly_index *x; /* NULL: at the end */
    uint64_t *maybe;
    uint64_t at;
    bool files, fold;
    char *path, *term;
};

static int index_connect(sqlite3 *db, void *aux, int argc,
                         const char *const *argv, sqlite3_vtab **out,
                         char **error)
{
    (void)aux, (void)argc, (void)argv, (void)error;
    const int rc = sqlite3_declare_vtab(db, INDEX_COLUMNS);
    if (rc != SQLITE_OK)
        return rc;
    sqlite3_vtab_config(db, SQLITE_VTAB_DIRECTONLY); /* it opens files */
    *out = sqlite3_malloc(sizeof **out);
    if (!*out)
        return SQLITE_NOMEM;
    memset(*out, 0, sizeof **out);
    return SQLITE_OK;
}

static int index_disconnect(sqlite3_vtab *vtab)
{
    sqlite3_free(vtab);
    return SQLITE_OK;
}

/* Both arguments must be there. */
static int index_best(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
    bool given[2] = { false, false };
    (void)vtab;
    for (int i = 0; i < info->nConstraint; i++) {
        const int column = info->aConstraint[i].iColumn - COLUMN_FILE;
        if (column < 0 || column > 1 || given[column] ||
            info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ)
            continue;
        if (!info->aConstraint[i].usable)
            return SQLITE_CONSTRAINT;
        given[column] = true;
        info->aConstraintUsage[i].argvIndex = column + 1;
        info->aConstraintUsage[i].omit = 1;
    }
    info->estimatedCost = 100;
    info->estimatedRows = 100;
    return given[0] && given[1] ? SQLITE_OK : SQLITE_CONSTRAINT;
}

static int index_open(sqlite3_vtab *vtab, sqlite3_vtab_cursor **out)
{
    (void)vtab;
    struct index_cursor *const c = sqlite3_malloc(sizeof *c);
    if (!c)
        return SQLITE_NOMEM;
    memset(c, 0, sizeof *c);
    *out = &c->base;
    return SQLITE_OK;
}

static void index_end(struct index_cursor *c)
{
    bly_index_free(c->x);
    sqlite3_free(c->maybe);
    sqlite3_free(c->path);
    sqlite3_free(c->term);
    c->x = NULL;
    c->maybe = NULL;
    c->path = c->term = NULL;
}

static int index_close(sqlite3_vtab_cursor *cursor)
{
    index_end((struct index_cursor *)cursor);
    sqlite3_free(cursor);
    return SQLITE_OK;
}

static bool word_byte(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '_';
}

/* The settings of the command, if it made the index. */
static const char *settings_take(struct index_cursor *c)
{
    const bly_bytes had = bly_index_get(c->x, FILES_NAME);
    const unsigned char *at = had.ptr;
    uint64_t numbers[2 + FILES_CLASSES] = { 0 };
    c->files = had.ptr != NULL;
    c->fold = false;
    for (unsigned i = 0; c->files && i < 2 + FILES_CLASSES; i++)
        if (!varint_get(&at, (const unsigned char *)had.ptr + had.len,
                        &numbers[i]))
            return "an index of files whose settings are damaged";
    if (c->files && numbers[0] != FILES_VERSION)
        return "an index of files of another version";
    c->fold = numbers[1 + FILES_CLASSES] == 1;
    return NULL;
}

/* The name of a file in the blob of one of its blocks, and its flags. */
static bool file_of(bly_bytes blob, bly_bytes *name, uint64_t *flags)
{
    const unsigned char *at = blob.ptr, *const end = at + blob.len;
    uint64_t version, n;
    if (!blob.len || !varint_get(&at, end, &version) ||
        version != FILES_VERSION || !varint_get(&at, end, flags) ||
        !varint_get(&at, end, &n) || n > (uint64_t)(end - at))
        return false;
    *name = (bly_bytes){ at, (size_t)n };
    return true;
}

/* The hashes of a term, at most one per byte and one. word has room for its
 * bytes. */
static size_t terms_of(const struct index_cursor *c, unsigned class_number,
                       const unsigned char *text, size_t len, char *word,
                       bly_index_term *terms)
{
    const bly_hasher *const hs = bly_index_hasher(c->x);
    size_t n = 0;
    for (size_t i = 0; i < len; i++)
        word[i] = (char)(c->fold && text[i] >= 'A' && text[i] <= 'Z'
                             ? text[i] + 'a' - 'A'
                             : text[i]);
    if (!c->files)
        terms[n++] = (bly_index_term){ bly_hash(hs, word, len), class_number };
    for (size_t i = 0, start; c->files && i < len; i++) {
        if (!word_byte(text[i]))
            continue;
        for (start = i; i < len && word_byte(text[i]); i++)
            ;
        terms[n++] = (bly_index_term){ bly_hash(hs, word + start, i - start),
                                       class_number };
    }
    return n;
}

/* Documents that the index knows nothing of may have anything. */
static void unread_add(struct index_cursor *c)
{
    const uint64_t n = bly_index_documents(c->x);
    bly_bytes blob, name;
    uint64_t flags;
    for (uint64_t i = 0; i < n; i++)
        if (bly_index_document(c->x, i, &blob) ||
            !file_of(blob, &name, &flags) || flags & BLOCK_UNREAD)
            c->maybe[i / 64] |= UINT64_C(1) << (i % 64);
}

static const char *index_ask(struct index_cursor *c, sqlite3_value *term)
{
    const unsigned char *const text = sqlite3_value_blob(term);
    const size_t len = (size_t)sqlite3_value_bytes(term);
    const int words = bly_index_class_named(c->x, "words");
    if (c->files && words < 0)
        return "this index has no words (bloomery index build --words)";
    const size_t nwords = bly_index_words(c->x);
    uint64_t *const live = sqlite3_malloc64(8 * (nwords + 1));
    bly_index_term *const terms =
        sqlite3_malloc64((len + 1) * (sizeof *terms + 1));
    c->maybe = sqlite3_malloc64(8 * (nwords + 1));
    const char *bad = live && terms && c->maybe ? NULL : "out of memory";
    const size_t n = bad ? 0
                         : terms_of(c, words < 0 ? 0 : (unsigned)words,
                                    text ? text : (const unsigned char *)"",
                                    len, (char *)(terms + len + 1), terms);
    if (!bad && !n)
        bad = "the term has no word of A-Z, a-z, 0-9 or _";
    if (!bad)
        bad = sql_told(bly_index_ask(c->x, terms, n, c->maybe));
    if (!bad) {
        bly_index_live(c->x, live);
        if (c->files)
            unread_add(c);
        for (size_t i = 0; i < nwords; i++)
            c->maybe[i] &= live[i];
    }
    sqlite3_free(live);
    sqlite3_free(terms);
    return bad;
}

/* Move to the next document from c->at on. */
static void index_seek(struct index_cursor *c)
{
    const uint64_t n = bly_index_documents(c->x);
    while (c->at < n && !(c->maybe[c->at / 64] >> (c->at % 64) & 1))
        c->at++;
    if (c->at >= n)
        index_end(c);
}

static int index_filter(sqlite3_vtab_cursor *cursor, int number,
                        const char *text, int argc, sqlite3_value **argv)
{
    struct index_cursor *const c = (struct index_cursor *)cursor;
    const char *bad;
    (void)number, (void)text, (void)argc;
    index_end(c);
    c->at = 0;
    if (sqlite3_value_type(argv[0]) == SQLITE_NULL ||
        sqlite3_value_type(argv[1]) == SQLITE_NULL)
        return SQLITE_OK;
    const char *const path = path_of(argv[0], &bad);
    const bly_access how = heap_limits();
    if (path)
        bad = sql_no_pipe(path);
    if (!bad)
        bad = sql_told(bly_index_map(path, &how, &c->x));
    if (!bad)
        bad = settings_take(c);
    if (!bad)
        bad = index_ask(c, argv[1]);
    if (bad) {
        c->base.pVtab->zErrMsg = sqlite3_mprintf("bloomery: %s", bad);
        index_end(c);
        return SQLITE_ERROR;
    }
    c->path = sqlite3_mprintf("%s", path);
    c->term = sqlite3_mprintf("%s", sqlite3_value_text(argv[1]));
    if (!c->path || !c->term) {
        index_end(c);
        return SQLITE_NOMEM;
    }
    index_seek(c);
    return SQLITE_OK;
}

static int index_next(sqlite3_vtab_cursor *cursor)
{
    struct index_cursor *const c = (struct index_cursor *)cursor;
    c->at++;
    index_seek(c);
    return SQLITE_OK;
}

static int index_eof(sqlite3_vtab_cursor *cursor)
{
    return !((struct index_cursor *)cursor)->x;
}

static int index_column(sqlite3_vtab_cursor *cursor, sqlite3_context *ctx,
                        int column)
{
    const struct index_cursor *const c = (struct index_cursor *)cursor;
    bly_bytes blob, name;
    uint64_t flags;
    switch (column) {
    case COLUMN_DOCUMENT:
        if (bly_index_document(c->x, c->at, &blob)) {
            sqlite3_result_error(ctx, bly_error(), -1);
            return SQLITE_ERROR;
        }
        name = blob;
        if (c->files && !file_of(blob, &name, &flags))
            break; /* not known: NULL */
        sqlite3_result_text64(ctx, name.ptr, name.len, SQLITE_TRANSIENT,
                              SQLITE_UTF8);
        break;
    case COLUMN_NUMBER:
        sqlite3_result_int64(ctx, (sqlite3_int64)c->at);
        break;
    case COLUMN_FILE:
        sqlite3_result_text(ctx, c->path, -1, SQLITE_TRANSIENT);
        break;
    default:
        sqlite3_result_text(ctx, c->term, -1, SQLITE_TRANSIENT);
    }
    return SQLITE_OK;
}

static int index_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *out)
{
    *out = (sqlite3_int64)((struct index_cursor *)cursor)->at;
    return SQLITE_OK;
}

const sqlite3_module index_module = {
    .xConnect = index_connect, /* no xCreate: it is there by its name alone */
    .xBestIndex = index_best,
    .xDisconnect = index_disconnect,
    .xOpen = index_open,
    .xClose = index_close,
    .xFilter = index_filter,
    .xNext = index_next,
    .xEof = index_eof,
    .xColumn = index_column,
    .xRowid = index_rowid,
};
