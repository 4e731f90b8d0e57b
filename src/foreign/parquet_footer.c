/*
 * parquet_footer.c - the footer of a Parquet file
 *
 * FileMetaData is the schema, a tree written depth first whose leaves are the
 * columns, and the groups of rows, each a chunk a column in that order. Of the
 * rest only what is needed is read; see the Parquet format's parquet.thrift for
 * all of it, and for the ids below.
 *
 * Memory is bounded by the footer: at most some twenty bytes for each of its
 * bytes, and a few in files that anyone has.
 */
#include <stdio.h>
#include <string.h>

#include "foreign/parquet_file.h"

/* Nesting of schemas; Arrow's own limit is near it. */
#define PARQUET_DEPTH 64

/* Names of nested columns repeat those around them; for each byte of a footer
 * there may be so many of names. */
#define PARQUET_NAMES 16

/* Digits behind the point: more than 64 bytes can hold are not asked for. */
#define PARQUET_SCALE 154

/* What a chunk takes in a footer at the very least. */
#define PARQUET_CHUNK_BYTES 8

static bly_status footer_damaged(void)
{
    return bly_damaged("a Parquet file with a damaged footer");
}

/* ------------------------------------------------------------- the schema */

/* One element of the tree. */
struct element {
    bool has_type, is_group;
    uint64_t nchildren;
    unsigned repetition; /* 0 required, 1 optional, 2 repeated */
    bly_bytes name;
    bly_parquet_column column;
    int64_t converted; /* -1: none */
    bool is_logical;
};

/* 1 milliseconds, 2 microseconds, 3 nanoseconds */
static void time_read(bly_thrift *t, const bly_thrift_field *f,
                      bly_parquet_column *c)
{
    bly_thrift_field g = { 0 };
    if (!bly_thrift_struct(t, f))
        return;
    while (bly_thrift_next(t, &g))
        if (g.id == 2)
            c->digits = 3 * (uint32_t)bly_thrift_member(t, &g);
        else
            bly_thrift_skip(t, &g);
    if (c->digits < 3 || c->digits > 9)
        c->meaning = BLY_PARQUET_OTHER;
}

static void decimal_read(bly_thrift *t, const bly_thrift_field *f,
                         bly_parquet_column *c)
{
    bly_thrift_field g = { 0 };
    if (!bly_thrift_struct(t, f))
        return;
    while (bly_thrift_next(t, &g))
        if (g.id == 1)
            c->scale = (int32_t)bly_thrift_uint(t, &g, INT32_MAX);
        else if (g.id == 2)
            c->precision = (uint32_t)bly_thrift_uint(t, &g, INT32_MAX);
        else
            bly_thrift_skip(t, &g);
}

static void integer_read(bly_thrift *t, const bly_thrift_field *f,
                         bly_parquet_column *c)
{
    bly_thrift_field g = { 0 };
    if (!bly_thrift_struct(t, f))
        return;
    while (bly_thrift_next(t, &g))
        if (g.id == 1)
            c->bits = (uint32_t)bly_thrift_uint(t, &g, 64);
        else if (g.id == 2)
            c->is_unsigned = !bly_thrift_bool(t, &g);
        else
            bly_thrift_skip(t, &g);
}

/* The union LogicalType. */
static void logical_read(bly_thrift *t, const bly_thrift_field *f,
                         struct element *e)
{
    static const bly_parquet_meaning meanings[] = {
        [1] = BLY_PARQUET_STRING,   [2] = BLY_PARQUET_OTHER,
        [3] = BLY_PARQUET_OTHER,    [4] = BLY_PARQUET_ENUM,
        [5] = BLY_PARQUET_DECIMAL,  [6] = BLY_PARQUET_DATE,
        [7] = BLY_PARQUET_TIME,     [8] = BLY_PARQUET_TIMESTAMP,
        [9] = BLY_PARQUET_OTHER,    [10] = BLY_PARQUET_INTEGER,
        [11] = BLY_PARQUET_OTHER,   [12] = BLY_PARQUET_JSON,
        [13] = BLY_PARQUET_BSON,    [14] = BLY_PARQUET_UUID,
        [15] = BLY_PARQUET_FLOAT16,
    };
    const int32_t known = sizeof meanings / sizeof *meanings;
    bly_thrift_field g = { 0 };
    if (!bly_thrift_struct(t, f))
        return;
    while (bly_thrift_next(t, &g)) {
        e->is_logical = true;
        e->column.meaning =
            g.id > 0 && g.id < known ? meanings[g.id] : BLY_PARQUET_OTHER;
        if (g.id == 5)
            decimal_read(t, &g, &e->column);
        else if (g.id == 7 || g.id == 8)
            time_read(t, &g, &e->column);
        else if (g.id == 10)
            integer_read(t, &g, &e->column);
        else
            bly_thrift_skip(t, &g);
    }
}

/* What ConvertedType, the older form, says. */
static void converted_use(struct element *e)
{
    static const struct {
        bly_parquet_meaning meaning;
        uint32_t number; /* digits or bits */
        bool is_unsigned;
    } rows[] = {
        [0] = { BLY_PARQUET_STRING, 0, false },
        [4] = { BLY_PARQUET_ENUM, 0, false },
        [5] = { BLY_PARQUET_DECIMAL, 0, false },
        [6] = { BLY_PARQUET_DATE, 0, false },
        [7] = { BLY_PARQUET_TIME, 3, false },
        [8] = { BLY_PARQUET_TIME, 6, false },
        [9] = { BLY_PARQUET_TIMESTAMP, 3, false },
        [10] = { BLY_PARQUET_TIMESTAMP, 6, false },
        [11] = { BLY_PARQUET_INTEGER, 8, true },
        [12] = { BLY_PARQUET_INTEGER, 16, true },
        [13] = { BLY_PARQUET_INTEGER, 32, true },
        [14] = { BLY_PARQUET_INTEGER, 64, true },
        [15] = { BLY_PARQUET_INTEGER, 8, false },
        [16] = { BLY_PARQUET_INTEGER, 16, false },
        [17] = { BLY_PARQUET_INTEGER, 32, false },
        [18] = { BLY_PARQUET_INTEGER, 64, false },
        [19] = { BLY_PARQUET_JSON, 0, false },
        [20] = { BLY_PARQUET_BSON, 0, false },
        [21] = { BLY_PARQUET_INTERVAL, 0, false },
    };
    if (e->converted < 0 || e->is_logical)
        return;
    if (e->converted >= (int64_t)(sizeof rows / sizeof *rows)) {
        e->column.meaning = BLY_PARQUET_OTHER;
        return;
    }
    e->column.meaning = rows[e->converted].meaning;
    e->column.digits = e->column.bits = rows[e->converted].number;
    e->column.is_unsigned = rows[e->converted].is_unsigned;
}

/* Does the type carry what it is said to mean? If not it means nothing that
 * could be asked for by text. */
static void meaning_check(bly_parquet_column *c)
{
    const bly_parquet_type t = c->type;
    bool fits = true;
    switch (c->meaning) {
    case BLY_PARQUET_STRING:
    case BLY_PARQUET_ENUM:
    case BLY_PARQUET_JSON:
    case BLY_PARQUET_BSON:
        fits = t == BLY_PARQUET_BYTE_ARRAY;
        break;
    case BLY_PARQUET_INTEGER:
        fits = (t == BLY_PARQUET_INT32 &&
                (c->bits == 8 || c->bits == 16 || c->bits == 32)) ||
               (t == BLY_PARQUET_INT64 && c->bits == 64);
        break;
    case BLY_PARQUET_DECIMAL:
        fits = c->scale <= PARQUET_SCALE &&
               (t == BLY_PARQUET_INT32 || t == BLY_PARQUET_INT64 ||
                t == BLY_PARQUET_BYTE_ARRAY || t == BLY_PARQUET_FIXED);
        break;
    case BLY_PARQUET_DATE:
        fits = t == BLY_PARQUET_INT32;
        break;
    case BLY_PARQUET_TIME:
        fits = t == (c->digits == 3 ? BLY_PARQUET_INT32 : BLY_PARQUET_INT64);
        break;
    case BLY_PARQUET_TIMESTAMP:
        fits = t == BLY_PARQUET_INT64;
        break;
    case BLY_PARQUET_UUID:
        fits = c->width == 16 && t == BLY_PARQUET_FIXED;
        break;
    case BLY_PARQUET_FLOAT16:
        fits = c->width == 2 && t == BLY_PARQUET_FIXED;
        break;
    case BLY_PARQUET_INTERVAL:
        fits = c->width == 12 && t == BLY_PARQUET_FIXED;
        break;
    default:
        break;
    }
    if (!fits)
        c->meaning = BLY_PARQUET_OTHER;
    if (c->meaning != BLY_PARQUET_INTEGER) {
        c->bits = c->width * 8;
        c->is_unsigned = false;
    }
}

static void element_read(bly_thrift *t, struct element *e)
{
    static const uint32_t widths[] = { 1, 4, 8, 12, 4, 8, 0, 0 };
    bly_thrift_field f = { 0 };
    uint64_t length = 0;
    *e = (struct element){ .converted = -1 };
    while (bly_thrift_next(t, &f))
        if (f.id == 1) {
            e->column.type =
                (bly_parquet_type)bly_thrift_uint(t, &f, BLY_PARQUET_FIXED);
            e->has_type = true;
        } else if (f.id == 2) {
            length = bly_thrift_uint(t, &f, INT32_MAX);
        } else if (f.id == 3) {
            e->repetition = (unsigned)bly_thrift_uint(t, &f, 2);
        } else if (f.id == 4) {
            e->name = bly_thrift_text(t, &f);
        } else if (f.id == 5) {
            e->nchildren = bly_thrift_uint(t, &f, INT32_MAX);
        } else if (f.id == 6) {
            e->converted = (int64_t)bly_thrift_uint(t, &f, INT32_MAX);
        } else if (f.id == 7) {
            e->column.scale = (int32_t)bly_thrift_uint(t, &f, INT32_MAX);
        } else if (f.id == 8) {
            e->column.precision = (uint32_t)bly_thrift_uint(t, &f, INT32_MAX);
        } else if (f.id == 10) {
            logical_read(t, &f, e);
        } else {
            bly_thrift_skip(t, &f);
        }
    e->is_group = !e->has_type;
    e->column.width = e->column.type == BLY_PARQUET_FIXED
                          ? (uint32_t)length
                          : widths[e->column.type];
    if (e->has_type && e->column.type == BLY_PARQUET_FIXED && length == 0)
        t->bad = true;
    converted_use(e);
    if (e->has_type)
        meaning_check(&e->column);
}

/* Where a walk through the tree stands: the groups around an element. */
struct walk {
    struct {
        uint64_t left; /* children to come */
        size_t nname;  /* of the path up to and with it */
        uint32_t max_def, max_rep;
    } around[PARQUET_DEPTH];
    size_t depth;
    char path[4096];
};

/* Keep a name of n bytes, for which names_room was made. */
static char *name_keep(bly_parquet *p, const char *name, size_t n)
{
    char *const at = p->names + p->nnames;
    for (size_t i = 0; i < n; i++)
        at[i] = name[i] ? name[i] : '?';
    at[n] = '\0';
    p->nnames += n + 1;
    return at;
}

/* Take one element; false where the tree cannot be such. Before there is room
 * for columns and names they are counted. */
static bool element_take(bly_parquet *p, struct walk *w,
                         const struct element *e)
{
    while (w->depth && w->around[w->depth - 1].left == 0)
        w->depth--;
    if (w->depth == 0)
        return false;
    w->around[w->depth - 1].left--;
    size_t n = w->around[w->depth - 1].nname;
    if (n + 1 + e->name.len >= sizeof w->path)
        return false;
    if (w->depth > 1)
        w->path[n++] = '.';
    memcpy(w->path + n, e->name.ptr, e->name.len);
    n += e->name.len;
    const uint32_t max_def =
        w->around[w->depth - 1].max_def + (e->repetition != 0);
    const uint32_t max_rep =
        w->around[w->depth - 1].max_rep + (e->repetition == 2);
    if (e->is_group) {
        if (w->depth == PARQUET_DEPTH)
            return false;
        w->around[w->depth].left = e->nchildren;
        w->around[w->depth].nname = n;
        w->around[w->depth].max_def = max_def;
        w->around[w->depth].max_rep = max_rep;
        w->depth++;
        return true;
    }
    if (p->columns) {
        bly_parquet_column *const c = &p->columns[p->ncolumns++];
        *c = e->column;
        c->max_def = max_def;
        c->max_rep = max_rep;
        c->name = name_keep(p, w->path, n);
    } else {
        p->columns_room++;
        p->names_room += n + 1;
    }
    return p->names_room / PARQUET_NAMES <= p->nfooter;
}

static bly_status schema_walk(bly_parquet *p, bly_thrift t, size_t n)
{
    struct element e;
    struct walk w = { .depth = 1 };
    element_read(&t, &e);
    w.around[0].left = e.nchildren;
    for (size_t i = 1; i < n && !t.bad; i++) {
        element_read(&t, &e);
        if (t.bad || !element_take(p, &w, &e))
            return footer_damaged();
    }
    while (w.depth && w.around[w.depth - 1].left == 0)
        w.depth--;
    return t.bad || w.depth ? footer_damaged() : BLY_OK;
}

static bly_status schema_read(bly_parquet *p, bly_thrift t, size_t n,
                              bly_bytes creator)
{
    const bly_status st = n ? schema_walk(p, t, n) : footer_damaged();
    if (st)
        return st;
    p->names_room += creator.len + 1;
    p->columns =
        bly_mem_zalloc(&p->mem, (p->columns_room + 1) * sizeof *p->columns);
    p->names = bly_mem_zalloc(&p->mem, p->names_room);
    if (!p->columns || !p->names)
        return bly_fail(BLY_ENOMEM, "out of memory");
    p->created_by = name_keep(p, creator.ptr, creator.len);
    return schema_walk(p, t, n);
}

/* ------------------------------------------------------------- the groups */

/* The metadata of a chunk, and the place of a filter's fields in them. */
static void metadata_read(const bly_parquet *p, bly_thrift *t,
                          const bly_parquet_column *c, bly_parquet_entry *e)
{
    bly_thrift_field f = { 0 };
    bly_parquet_slot *const s = &e->slot;
    uint64_t data_at = 0, dictionary_at = 0;
    int32_t last = 0;
    s->from = (uint32_t)(t->at - p->footer);
    while (bly_thrift_next(t, &f)) {
        const unsigned char *const value = t->at;
        s->out_of_order |= f.id <= last;
        last = f.id;
        if (f.id > 15 && s->next == 0) {
            s->to = (uint32_t)(f.start - p->footer);
            s->next = f.id;
            s->type = f.type;
            s->value = (uint32_t)(value - p->footer);
        }
        switch (f.id) {
        case 1:
            if (bly_thrift_uint(t, &f, BLY_PARQUET_FIXED) != c->type)
                t->bad = true;
            break;
        case 4:
            e->is.codec = (uint32_t)bly_thrift_uint(t, &f, INT32_MAX);
            break;
        case 5:
            e->is.nvalues = bly_thrift_uint(t, &f, INT64_MAX);
            break;
        case 7:
            e->is.nbytes = bly_thrift_uint(t, &f, INT64_MAX);
            break;
        case 9:
            data_at = bly_thrift_uint(t, &f, INT64_MAX);
            break;
        case 11:
            dictionary_at = bly_thrift_uint(t, &f, INT64_MAX);
            break;
        case 14:
            e->is.filter_at = bly_thrift_uint(t, &f, INT64_MAX);
            break;
        case 15:
            e->is.filter_bytes = bly_thrift_uint(t, &f, INT32_MAX);
            break;
        default:
            bly_thrift_skip(t, &f);
        }
        if (f.id < 14) {
            s->from = (uint32_t)(t->at - p->footer);
            s->after = f.id;
        }
    }
    if (s->next == 0)
        s->to = (uint32_t)(f.start - p->footer);
    /* Some write an offset of 0 where there is no dictionary. */
    e->is.at =
        dictionary_at && dictionary_at < data_at ? dictionary_at : data_at;
}

static void chunk_read(const bly_parquet *p, bly_thrift *t,
                       const bly_parquet_column *c, bly_parquet_entry *e)
{
    bly_thrift_field f = { 0 };
    bool has_metadata = false;
    while (bly_thrift_next(t, &f))
        if (f.id == 1) {
            e->is.elsewhere = bly_thrift_text(t, &f).len > 0;
        } else if (f.id == 3 && bly_thrift_struct(t, &f)) {
            metadata_read(p, t, c, e);
            has_metadata = true;
        } else if (f.id == 8 || f.id == 9) {
            e->is.encrypted = true;
            bly_thrift_skip(t, &f);
        } else {
            bly_thrift_skip(t, &f);
        }
    if (!has_metadata && !e->is.encrypted)
        t->bad = true;
}

static void group_read(const bly_parquet *p, bly_thrift *t, size_t group)
{
    bly_thrift_field f = { 0 };
    bool has_columns = false;
    while (bly_thrift_next(t, &f))
        if (f.id == 1) {
            const size_t n = bly_thrift_list(t, &f, BLY_THRIFT_STRUCT);
            if (n != p->ncolumns || has_columns)
                t->bad = true;
            for (size_t i = 0; i < n && !t->bad; i++)
                chunk_read(p, t, &p->columns[i],
                           bly_parquet_entry_at(p, group, i));
            has_columns = true;
        } else if (f.id == 3) {
            p->groups[group].nrows = bly_thrift_uint(t, &f, INT64_MAX);
        } else {
            bly_thrift_skip(t, &f);
        }
    if (!has_columns)
        t->bad = true;
}

static bly_status groups_read(bly_parquet *p, bly_thrift t, size_t n)
{
    if (p->ncolumns &&
        n > (size_t)(t.end - t.at) / PARQUET_CHUNK_BYTES / p->ncolumns)
        return footer_damaged();
    p->ngroups = n;
    p->groups = bly_mem_zalloc(&p->mem, (n + 1) * sizeof *p->groups);
    p->chunks =
        bly_mem_zalloc(&p->mem, (n * p->ncolumns + 1) * sizeof *p->chunks);
    if (!p->groups || !p->chunks)
        return bly_fail(BLY_ENOMEM, "out of memory");
    for (size_t i = 0; i < n && !t.bad; i++)
        group_read(p, &t, i);
    return t.bad ? footer_damaged() : BLY_OK;
}

/* ------------------------------------------------------------- the footer */

static bly_status footer_read(bly_parquet *p)
{
    bly_thrift t = { p->footer, p->footer + p->nfooter, false };
    bly_thrift_field f = { 0 };
    bly_thrift schema = t, groups = t;
    size_t nelements = 0, ngroups = 0;
    bly_bytes creator = { "", 0 };
    while (bly_thrift_next(&t, &f))
        if (f.id == 2) {
            schema = t;
            nelements = bly_thrift_list(&schema, &f, BLY_THRIFT_STRUCT);
            t.bad |= schema.bad;
            bly_thrift_skip(&t, &f);
        } else if (f.id == 4) {
            groups = t;
            ngroups = bly_thrift_list(&groups, &f, BLY_THRIFT_STRUCT);
            t.bad |= groups.bad;
            bly_thrift_skip(&t, &f);
        } else if (f.id == 3) {
            p->nrows = bly_thrift_uint(&t, &f, INT64_MAX);
        } else if (f.id == 6) {
            creator = bly_thrift_text(&t, &f);
        } else {
            p->is_signed |= f.id == 8 || f.id == 9;
            bly_thrift_skip(&t, &f);
        }
    if (t.bad)
        return footer_damaged();
    const bly_status st = schema_read(p, schema, nelements, creator);
    return st ? st : groups_read(p, groups, ngroups);
}

/* Where the footer is. */
static bly_status footer_find(bly_parquet *p)
{
    static const size_t around = 2 * BLY_PARQUET_MAGIC + 4;
    const unsigned char *const end = p->bytes + p->nbytes;
    if (p->nbytes < around || memcmp(p->bytes, "PAR", 3) != 0)
        return bly_damaged("not a Parquet file: it does not begin with PAR1");
    if (memcmp(end - 4, "PARE", 4) == 0)
        return bly_damaged("a Parquet file with an encrypted footer, which "
                           "cannot be read");
    if (memcmp(end - 4, "PAR1", 4) != 0)
        return bly_damaged("a Parquet file that was cut: it does not end with "
                           "PAR1");
    p->nfooter = bly_get_le32(end - 8);
    if (p->nfooter > p->nbytes - around || p->nfooter == 0)
        return bly_damaged("a Parquet file of %zu bytes whose footer should "
                           "have %zu",
                           p->nbytes, p->nfooter);
    p->footer_at = p->nbytes - 8 - p->nfooter;
    return BLY_OK;
}

bly_status bly_parquet_open(const void *bytes, size_t nbytes,
                            const bly_mem *mem, bly_parquet **out)
{
    *out = NULL;
    if (!mem)
        mem = &bly_mem_system;
    bly_parquet *const p = bly_mem_zalloc(mem, sizeof *p);
    if (!p)
        return bly_fail(BLY_ENOMEM, "out of memory");
    p->mem = *mem;
    p->bytes = bytes;
    p->nbytes = nbytes;
    bly_status st = footer_find(p);
    if (!st) {
        p->footer = bly_mem_zalloc(mem, p->nfooter);
        if (!p->footer)
            st = bly_fail(BLY_ENOMEM, "out of memory");
    }
    if (!st) {
        memcpy(p->footer, p->bytes + p->footer_at, p->nfooter);
        st = footer_read(p);
    }
    if (st)
        bly_parquet_free(p);
    else
        *out = p;
    return st;
}

void bly_parquet_free(bly_parquet *p)
{
    if (!p)
        return;
    const bly_mem mem = p->mem;
    const size_t nchunks = p->ngroups * p->ncolumns;
    for (size_t i = 0; p->chunks && i < nchunks; i++)
        bly_block_free(&mem, &p->chunks[i].block);
    bly_mem_release(&mem, p->chunks, (nchunks + 1) * sizeof *p->chunks);
    bly_mem_release(&mem, p->groups, (p->ngroups + 1) * sizeof *p->groups);
    bly_mem_release(&mem, p->columns,
                    (p->columns_room + 1) * sizeof *p->columns);
    bly_mem_release(&mem, p->names, p->names_room);
    bly_mem_release(&mem, p->footer, p->nfooter);
    bly_block_free(&mem, &p->block);
    bly_mem_release(&mem, p, sizeof *p);
}

void bly_parquet_stat(const bly_parquet *p, bly_parquet_shape *out)
{
    *out = (bly_parquet_shape){
        .nrows = p->nrows,
        .ngroups = p->ngroups,
        .ncolumns = p->ncolumns,
        .footer_at = p->footer_at,
        .footer_bytes = p->nfooter,
        .created_by = p->created_by,
        .is_signed = p->is_signed,
    };
}

void bly_parquet_column_at(const bly_parquet *p, size_t column,
                           bly_parquet_column *out)
{
    *out = p->columns[column];
}

void bly_parquet_chunk_at(const bly_parquet *p, size_t group, size_t column,
                          bly_parquet_chunk *out)
{
    *out = bly_parquet_entry_at(p, group, column)->is;
}

uint64_t bly_parquet_group_rows(const bly_parquet *p, size_t group)
{
    return p->groups[group].nrows;
}

bly_status bly_parquet_column_named(const bly_parquet *p, const char *name,
                                    size_t *out)
{
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < p->ncolumns; i++) {
        if (strcmp(p->columns[i].name, name) != 0)
            continue;
        if (found != SIZE_MAX)
            return bly_fail(BLY_EINVAL, "two columns are called '%s'", name);
        found = i;
    }
    if (found != SIZE_MAX) {
        *out = found;
        return BLY_OK;
    }
    char all[400] = "";
    size_t n = 0;
    for (size_t i = 0; i < p->ncolumns && n < sizeof all - 5; i++)
        n += (size_t)snprintf(all + n, sizeof all - n, "%s%s", i ? ", " : "",
                              p->columns[i].name);
    if (n >= sizeof all - 5)
        memcpy(all + sizeof all - 6, ", ...", 6);
    return bly_fail(BLY_EINVAL, "no column '%s'; there are: %s", name, all);
}
