/*
 * parquet.c - the filters in a Parquet file
 *
 * A part is the filter of one column in one group of rows. Columns that have a
 * filter in any group have a part for each group, so that the parts of a column
 * are its groups in their order; a group without a filter, or with one of a
 * make that is not known, says maybe.
 *
 * A key is text that stands for a value of the column's type (parquet_types.c),
 * so a column has to be named where several have filters.
 */
#include <stdio.h>
#include <string.h>

#include "foreign/hashes.h"
#include "foreign/parquet_file.h"
#include "foreign/sbbf.h"

enum { PARQUET_COLUMN, PARQUET_NOPTIONS };

static const bly_param parquet_options[] = {
    [PARQUET_COLUMN] =
        BLY_OPTION_TEXT("column", NULL,
                        "the column to query, if several have filters; the "
                        "parts of its path are separated by dots"),
};

struct parquet_part {
    uint64_t at;      /* where its blocks begin in the file */
    uint32_t nblocks; /* 0: it has no filter */
    bool known;       /* of a make that can be asked */
    bool is_empty;    /* there are no values */
};

struct parquet_own {
    bly_parquet *file;
    struct parquet_part *parts; /* of a column after another, by groups */
    uint32_t *columns;          /* with filters */
    size_t ncolumns, room;
    size_t ngroups;
};

/* By its first bytes: one that was cut is one all the same. */
static bool parquet_recognise(const unsigned char *bytes, size_t n)
{
    return n >= 12 && memcmp(bytes, "PAR", 3) == 0 &&
           (bytes[3] == '1' || bytes[3] == 'E');
}

static void parquet_close(bly_foreign *f)
{
    struct parquet_own *const own = f->own;
    if (!own)
        return;
    bly_parquet_free(own->file);
    bly_mem_release(f->mem, own->parts,
                    (own->room * own->ngroups + 1) * sizeof *own->parts);
    bly_mem_release(f->mem, own->columns,
                    (own->room + 1) * sizeof *own->columns);
    bly_mem_release(f->mem, own, sizeof *own);
}

static bool has_filter(const bly_parquet *p, size_t column)
{
    for (size_t g = 0; g < p->ngroups; g++) {
        bly_parquet_entry e;
        bly_parquet_entry_at(p, g, column, &e);
        if (e.is.filter_at)
            return true;
    }
    return false;
}

/* The filter of one chunk. */
static bly_status part_find(const bly_parquet *p, size_t group, size_t column,
                            struct parquet_part *part)
{
    const char *const name = bly_parquet_name(p, column);
    bly_parquet_entry e;
    bly_sbbf s;
    bly_parquet_entry_at(p, group, column, &e);
    const bly_parquet_chunk *const c = &e.is;
    /* What is encrypted is there, and cannot be read; nor can another file. */
    if (c->encrypted || c->elsewhere)
        return BLY_OK;
    part->is_empty = c->nvalues == 0;
    if (c->filter_at == 0)
        return BLY_OK;
    if (c->filter_at < BLY_PARQUET_MAGIC || c->filter_at >= p->footer_at ||
        c->filter_bytes > p->footer_at - c->filter_at)
        return bly_damaged("row group %zu, column %s: its filter would be "
                           "outside the file's data",
                           group, name);
    const bly_status st = bly_sbbf_read(
        p->bytes + c->filter_at, p->footer_at - (size_t)c->filter_at, &s);
    if (st)
        return bly_damaged("row group %zu, column %s: a damaged filter", group,
                           name);
    if (c->filter_bytes &&
        c->filter_bytes != s.nheader + s.nblocks * BLY_BLOCKS_BYTES)
        return bly_damaged("row group %zu, column %s: the filter does not have "
                           "the length that the footer says",
                           group, name);
    part->at = c->filter_at + s.nheader;
    part->nblocks = (uint32_t)s.nblocks;
    part->known = s.known;
    return BLY_OK;
}

/* The parts of the columns from one to before another. */
static bly_status parts_find(bly_foreign *f, size_t from, size_t to)
{
    struct parquet_own *const own = f->own;
    const bly_parquet *const p = own->file;
    for (size_t c = from; c < to; c++)
        own->room += has_filter(p, c);
    own->ngroups = p->ngroups;
    if (own->room && own->ngroups > UINT32_MAX / own->room)
        return bly_damaged("more than 2^32 filters");
    own->parts = bly_mem_zalloc(f->mem, (own->room * own->ngroups + 1) *
                                            sizeof *own->parts);
    own->columns =
        bly_mem_zalloc(f->mem, (own->room + 1) * sizeof *own->columns);
    if (!own->parts || !own->columns)
        return bly_fail(BLY_ENOMEM, "out of memory");
    for (size_t c = from; c < to; c++) {
        if (!has_filter(p, c))
            continue;
        for (size_t g = 0; g < p->ngroups; g++) {
            const bly_status st = part_find(
                p, g, c, &own->parts[own->ncolumns * own->ngroups + g]);
            if (st)
                return st;
        }
        own->columns[own->ncolumns++] = (uint32_t)c;
    }
    f->nparts = (uint32_t)(own->ncolumns * own->ngroups);
    return BLY_OK;
}

static bly_status parquet_open(bly_foreign *f)
{
    struct parquet_own *const own = bly_mem_zalloc(f->mem, sizeof *own);
    if (!own)
        return bly_fail(BLY_ENOMEM, "out of memory");
    f->own = own;
    bly_status st =
        bly_parquet_open(f->more->bytes, f->more->nbytes, f->mem, &own->file);
    if (st)
        return st;
    const char *const name = f->more->option[PARQUET_COLUMN];
    if (!name)
        return parts_find(f, 0, own->file->ncolumns);
    size_t column;
    st = bly_parquet_column_named(own->file, name, &column);
    if (!st)
        st = parts_find(f, column, column + 1);
    if (!st && own->ncolumns == 0)
        st = bly_fail(BLY_EINVAL, "column %s has no filters", name);
    return st;
}

static void parquet_part(const bly_foreign *f, size_t i, bly_foreign_part *out)
{
    const struct parquet_own *const own = f->own;
    const struct parquet_part *const part = &own->parts[i];
    const bly_sbbf s = { .blocks = f->more->bytes + part->at,
                         .nblocks = part->nblocks,
                         .known = part->known };
    if (part->nblocks) {
        bly_sbbf_part(&s, out);
    } else {
        out->excludes_all = part->is_empty;
        out->fpr_planned = 1;
    }
}

static void parquet_part_name(const bly_foreign *f, size_t i,
                              char name[BLY_PART_NAME])
{
    const struct parquet_own *const own = f->own;
    snprintf(name, BLY_PART_NAME, "row group %zu, column %s", i % own->ngroups,
             bly_parquet_name(own->file, own->columns[i / own->ngroups]));
}

static void parquet_describe(const bly_foreign *f, bly_facts *out)
{
    const struct parquet_own *const own = f->own;
    bly_fact_uint(out, "rows", own->file->nrows);
    bly_fact_uint(out, "row_groups", own->file->ngroups);
    bly_fact_uint(out, "columns", own->file->ncolumns);
    bly_fact_uint(out, "columns_with_filters", own->ncolumns);
}

static bly_status parquet_encode(const bly_foreign *f, bly_bytes text,
                                 bly_scratch *s, bly_foreign_key *out)
{
    const struct parquet_own *const own = f->own;
    if (own->ncolumns == 0)
        return bly_fail(BLY_EINVAL, "no column of this file has a filter");
    if (own->ncolumns > 1)
        return bly_fail(BLY_EINVAL,
                        "%zu columns of this file have filters; name one with "
                        "the option column=%s",
                        own->ncolumns,
                        bly_parquet_name(own->file, own->columns[0]));
    bly_parquet_column c;
    bly_parquet_column_at(own->file, own->columns[0], &c);
    return bly_parquet_key(&c, text, s, out);
}

/* h[0] is the hash of the value. A zero has that of the other zero in h[1], for
 * filters that hold only one of the two; for any other value it is the same
 * one again. */
static void parquet_hash(const bly_foreign *f, bly_foreign_key *key)
{
    const struct parquet_own *const own = f->own;
    bly_parquet_column c;
    bly_sbbf_hash(f, key);
    key->h[1] = key->h[0];
    key->h[2] = BLY_REAL_OTHER;
    bly_parquet_column_at(own->file, own->columns[0], &c);
    const uint32_t width = bly_parquet_real_width(&c);
    if (!width || key->len != width)
        return;
    key->h[2] = bly_real_sort_of(key->bytes, width);
    if (key->h[2] == BLY_REAL_ZERO) {
        unsigned char pair[2][8];
        bly_real_pair(BLY_REAL_ZERO, width, pair);
        const bool negative = key->bytes[width - 1] != 0;
        key->h[1] = bly_xxh64(pair[!negative], width, 0);
    }
}

/* A NaN may be anywhere: others' filters hold its bits as they came, and it has
 * as many as there are fractions (R's NA is one of its own). */
static bool parquet_test(const bly_foreign *f, size_t i,
                         const bly_foreign_key *key)
{
    const struct parquet_own *const own = f->own;
    const struct parquet_part *const part = &own->parts[i];
    if (part->nblocks == 0)
        return !part->is_empty;
    if (!part->known || key->h[2] == BLY_REAL_NAN)
        return true;
    const unsigned char *const blocks = f->more->bytes + part->at;
    return bly_sbbf_has(blocks, part->nblocks, key->h[0]) ||
           (key->h[1] != key->h[0] &&
            bly_sbbf_has(blocks, part->nblocks, key->h[1]));
}

const bly_format bly_format_parquet = {
    .name = "parquet",
    .systems = "Parquet files: DuckDB, Spark, Arrow, ...",
    .summary = "split-block filters of columns, one per row group",
    .options = parquet_options,
    .noptions = PARQUET_NOPTIONS,
    .recognise = parquet_recognise,
    .open = parquet_open,
    .close = parquet_close,
    .part = parquet_part,
    .part_name = parquet_part_name,
    .describe = parquet_describe,
    .encode = parquet_encode,
    .hash = parquet_hash,
    .test = parquet_test,
    .rate = bly_sbbf_rate,
};
