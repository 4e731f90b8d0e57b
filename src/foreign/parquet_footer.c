/*
 * parquet_footer.c - the footer of a Parquet file
 *
 * FileMetaData is the schema (parquet_schema.c) and the groups of rows, each a
 * chunk a column in the order of the schema. Of the rest only what is needed is
 * read; see the Parquet format's parquet.thrift for all of it, and for the ids
 * below.
 *
 * Memory is bounded by the footer: it is copied, and for each of its bytes at
 * most four more are taken.
 */
#include <string.h>

#include "core/sized.h"
#include "foreign/parquet_file.h"

/* What a chunk takes in a footer at the very least. */
#define PARQUET_CHUNK_BYTES 8

bly_status bly_parquet_footer_damaged(void)
{
    return bly_damaged("a Parquet file with a damaged footer");
}

/* ------------------------------------------------------------- the groups */

/* Type, codec, number of values, length, offset. */
#define METADATA_NEEDS (1u << 1 | 1u << 4 | 1u << 5 | 1u << 7 | 1u << 9)

/* The metadata of a chunk, and the place of a filter's fields in them. */
static void metadata_read(const bly_parquet *p, bly_thrift *t, unsigned type,
                          bly_parquet_entry *e)
{
    bly_thrift_field f = { 0 };
    bly_parquet_slot *const s = &e->slot;
    uint64_t data_at = 0, dictionary_at = 0;
    int32_t last = 0;
    uint32_t has = 0; /* fields, by their ids */
    *s = (bly_parquet_slot){ .from = (uint32_t)(t->at - p->footer) };
    while (bly_thrift_next(t, &f)) {
        const unsigned char *const value = t->at;
        s->out_of_order |= f.id <= last;
        last = f.id;
        has |= f.id > 0 && f.id < 16 ? (uint32_t)1 << f.id : 0;
        if (f.id > 15 && s->next == 0) {
            s->to = (uint32_t)(f.start - p->footer);
            s->next = f.id;
            s->type = f.type;
            s->value = (uint32_t)(value - p->footer);
        }
        switch (f.id) {
        case 1:
            if (bly_thrift_uint(t, &f, BLY_PARQUET_FIXED) != type)
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
    if ((has & METADATA_NEEDS) != METADATA_NEEDS)
        t->bad = true;
    /* Some write an offset of 0 where there is no dictionary. */
    e->is.at =
        dictionary_at && dictionary_at < data_at ? dictionary_at : data_at;
}

static void chunk_read(const bly_parquet *p, bly_thrift *t, unsigned type,
                       bly_parquet_entry *e)
{
    bly_thrift_field f = { 0 };
    bool has_metadata = false;
    while (bly_thrift_next(t, &f))
        if (f.id == 1) {
            e->is.elsewhere = bly_thrift_text(t, &f).len > 0;
        } else if (f.id == 3 && bly_thrift_struct(t, &f)) {
            metadata_read(p, t, type, e);
            t->bad |= has_metadata;
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
            for (size_t i = 0; i < n && !t->bad; i++) {
                bly_parquet_entry e = { 0 };
                p->chunks[group * p->ncolumns + i] =
                    (uint32_t)(t->at - p->footer);
                chunk_read(p, t, p->columns[i].type, &e);
            }
            has_columns = true;
        } else if (f.id == 3) {
            p->group_rows[group] = bly_thrift_uint(t, &f, INT64_MAX);
        } else {
            bly_thrift_skip(t, &f);
        }
    if (!has_columns)
        t->bad = true;
}

/* What was read when the file was opened is read again: it cannot be bad. */
void bly_parquet_entry_at(const bly_parquet *p, size_t group, size_t column,
                          bly_parquet_entry *out)
{
    bly_thrift t = { p->footer + p->chunks[group * p->ncolumns + column],
                     p->footer + p->nfooter, false };
    *out = (bly_parquet_entry){ 0 };
    chunk_read(p, &t, p->columns[column].type, out);
}

static bly_status groups_read(bly_parquet *p, bly_thrift t, size_t n)
{
    if (p->ncolumns &&
        n > (size_t)(t.end - t.at) / PARQUET_CHUNK_BYTES / p->ncolumns)
        return bly_parquet_footer_damaged();
    p->ngroups = n;
    p->group_rows = bly_mem_zalloc(&p->mem, (n + 1) * sizeof *p->group_rows);
    p->chunks =
        bly_mem_zalloc(&p->mem, (n * p->ncolumns + 1) * sizeof *p->chunks);
    if (!p->group_rows || !p->chunks)
        return bly_fail(BLY_ENOMEM, "out of memory");
    for (size_t i = 0; i < n && !t.bad; i++)
        group_read(p, &t, i);
    return t.bad ? bly_parquet_footer_damaged() : BLY_OK;
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
        return bly_parquet_footer_damaged();
    const bly_status st =
        bly_parquet_schema_read(p, schema, nelements, creator);
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
        return bly_damaged(
            "a truncated Parquet file: it does not end with PAR1");
    p->nfooter = bly_load32(end - 8);
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
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    if (!bytes && nbytes)
        return bly_fail_null("bytes");
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
    for (size_t i = 0; p->made && i < nchunks; i++)
        bly_block_free(&mem, &p->made[i].block);
    bly_mem_release(&mem, p->made, (nchunks + 1) * sizeof *p->made);
    bly_mem_release(&mem, p->chunks, (nchunks + 1) * sizeof *p->chunks);
    bly_mem_release(&mem, p->group_rows,
                    (p->ngroups + 1) * sizeof *p->group_rows);
    bly_mem_release(&mem, p->columns,
                    (p->columns_room + 1) * sizeof *p->columns);
    bly_mem_release(&mem, p->names, p->names_room);
    bly_mem_release(&mem, p->footer, p->nfooter);
    bly_block_free(&mem, &p->block);
    bly_mem_release(&mem, p, sizeof *p);
}

void bly_parquet_stat_sized(const bly_parquet *p, bly_parquet_shape *out,
                            size_t size)
{
    bly_parquet_shape told = { 0 }; /* the padding too */
    told.nrows = p->nrows;
    told.ngroups = p->ngroups;
    told.ncolumns = p->ncolumns;
    told.footer_at = p->footer_at;
    told.footer_bytes = p->nfooter;
    told.created_by = p->names + p->created_by;
    told.is_signed = p->is_signed;
    BLY_GIVE(&told, out, size);
}

void bly_parquet_chunk_at_sized(const bly_parquet *p, size_t group,
                                size_t column, bly_parquet_chunk *out,
                                size_t size)
{
    bly_parquet_entry e;
    bly_parquet_entry_at(p, group, column, &e);
    BLY_GIVE(&e.is, out, size);
}

uint64_t bly_parquet_group_rows(const bly_parquet *p, size_t group)
{
    return p->group_rows[group];
}
