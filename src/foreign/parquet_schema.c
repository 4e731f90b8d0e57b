/*
 * parquet_schema.c - the columns of a Parquet file
 *
 * The schema is a tree, written depth first: an element that has no type has
 * children, which follow; the others are columns. How deep a column lies among
 * optional and repeated elements gives its levels. What its values mean is told
 * in two ways, by LogicalType and by ConvertedType, which is older.
 */
#include <stdio.h>
#include <string.h>

#include "core/sized.h"
#include "foreign/parquet_file.h"

/* Nesting of schemas; Arrow's own limit is near it. */
#define PARQUET_DEPTH 64

/* Names of nested columns repeat those around them; for each byte of a footer
 * there may be so many of names. */
#define PARQUET_NAMES 16

/* Digits behind the point: more than 64 bytes can hold are not asked for. */
#define PARQUET_SCALE 154

/* One element of the tree. */
struct element {
    bool has_type, has_name;
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
        fits = c->scale <= PARQUET_SCALE && c->precision <= UINT16_MAX &&
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
        fits = t == BLY_PARQUET_FIXED && c->width == 16;
        break;
    case BLY_PARQUET_FLOAT16:
        fits = t == BLY_PARQUET_FIXED && c->width == 2;
        break;
    case BLY_PARQUET_INTERVAL:
        fits = t == BLY_PARQUET_FIXED && c->width == 12;
        break;
    default:
        break;
    }
    if (!fits)
        c->meaning = BLY_PARQUET_OTHER;
    if (c->meaning != BLY_PARQUET_INTEGER) {
        c->bits = t == BLY_PARQUET_INT32 ? 32 : t == BLY_PARQUET_INT64 ? 64 : 0;
        c->is_unsigned = false;
    }
    if (c->meaning != BLY_PARQUET_DECIMAL)
        c->scale = 0, c->precision = 0;
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
            e->has_name = true;
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
    e->column.width = e->column.type == BLY_PARQUET_FIXED
                          ? (uint32_t)length
                          : widths[e->column.type];
    if (!e->has_name ||
        (e->has_type && e->column.type == BLY_PARQUET_FIXED && length == 0))
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

/* Keep a name of n bytes, for which names_room was made; where it begins. */
static size_t name_keep(bly_parquet *p, const char *name, size_t n)
{
    const size_t at = p->nnames;
    for (size_t i = 0; i < n; i++)
        p->names[at + i] = name[i] ? name[i] : '?';
    p->names[at + n] = '\0';
    p->nnames += n + 1;
    return at;
}

/* Take one element; false where the tree cannot be such. Before there is room
 * for columns and names they are counted. */
static bool element_take(bly_parquet *p, struct walk *w,
                         const struct element *e)
{
    /* Elements come in depth-first order: a group ends when it has had its
     * children. */
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
    if (!e->has_type) {
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
        const bly_parquet_column *const c = &e->column;
        p->columns[p->ncolumns++] = (bly_parquet_leaf){
            .name = (uint32_t)name_keep(p, w->path, n),
            .width = c->width,
            .precision = (uint16_t)c->precision,
            .scale = (uint8_t)c->scale,
            .type = (uint8_t)c->type,
            .meaning = (uint8_t)c->meaning,
            .bits = (uint8_t)c->bits,
            .digits = (uint8_t)c->digits,
            .max_def = (uint8_t)max_def,
            .max_rep = (uint8_t)max_rep,
            .is_unsigned = c->is_unsigned,
        };
    } else {
        p->columns_room++;
        p->names_room += n + 1;
    }
    /* Each path repeats the names of its groups, so deep trees could make
     * much of a small footer. */
    return p->names_room / PARQUET_NAMES <= p->nfooter &&
           p->names_room <= INT32_MAX;
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
            return bly_parquet_footer_damaged();
    }
    while (w.depth && w.around[w.depth - 1].left == 0)
        w.depth--;
    return t.bad || w.depth ? bly_parquet_footer_damaged() : BLY_OK;
}

bly_status bly_parquet_schema_read(bly_parquet *p, bly_thrift t, size_t n,
                                   bly_bytes creator)
{
    const bly_status st =
        n ? schema_walk(p, t, n) : bly_parquet_footer_damaged();
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

void bly_parquet_column_at_sized(const bly_parquet *p, size_t column,
                                 bly_parquet_column *out, size_t size)
{
    const bly_parquet_leaf *const c = &p->columns[column];
    bly_parquet_column told = { 0 }; /* the padding too */
    told.name = bly_parquet_name(p, column);
    told.type = (bly_parquet_type)c->type;
    told.width = c->width;
    told.meaning = (bly_parquet_meaning)c->meaning;
    told.bits = c->bits;
    told.is_unsigned = c->is_unsigned;
    told.digits = c->digits;
    told.scale = c->scale;
    told.precision = c->precision;
    told.max_def = c->max_def;
    told.max_rep = c->max_rep;
    BLY_GIVE(&told, out, size);
}

bly_status bly_parquet_column_named(const bly_parquet *p, const char *name,
                                    size_t *out)
{
    if (!p || !name || !out)
        return bly_fail_null("p or name or out");
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < p->ncolumns; i++) {
        if (strcmp(bly_parquet_name(p, i), name) != 0)
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
                              bly_parquet_name(p, i));
    if (n >= sizeof all - 5)
        memcpy(all + sizeof all - 6, ", ...", 6);
    return bly_fail(BLY_EINVAL, "no column '%s'; there are: %s", name, all);
}
