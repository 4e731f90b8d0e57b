/*
 * info.c - what a Parquet file has in columns and filters
 *
 * A column that has a filter in any row group has a part for each of them in
 * the library's view of the file, columns one after another.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery/foreign.h>

#include "apps/parquet/info.h"
#include "report/json.h"
#include "report/say.h"
#include "report/show.h"

/* A column, and its filters together. */
struct column_row {
    bly_parquet_column is;
    char type[80];
    size_t nfilters;
    uint64_t nbytes; /* of filters */
    double values;   /* different ones in each row group, summed */
    double rate;     /* mean over row groups with filters */
};

static void row_fill(const struct parquet_file *f, const bly_foreign *filters,
                     size_t column, size_t ngroups, size_t *part,
                     struct column_row *r)
{
    bly_parquet_column_at(f->p, column, &r->is);
    bly_parquet_type_name(&r->is, r->type, sizeof r->type);
    bool has_any = false;
    for (size_t g = 0; g < ngroups; g++) {
        bly_parquet_chunk c;
        bly_parquet_chunk_at(f->p, g, column, &c);
        has_any |= c.filter_at != 0;
    }
    for (size_t g = 0; has_any && g < ngroups; g++) {
        bly_foreign_stats s;
        bly_foreign_stat(filters, (*part)++, &s);
        if (s.bits == 0)
            continue;
        r->nfilters++;
        r->nbytes += s.bits / 8;
        r->values += isfinite(s.items_estimate) ? s.items_estimate : 0;
        r->rate += s.fpr_now;
    }
    r->rate = r->nfilters ? r->rate / (double)r->nfilters : NAN;
}

static void info_json(const struct parquet_file *f, const bly_parquet_shape *s,
                      const struct column_row *rows)
{
    struct json j = { .to = stdout };
    json_open(&j, '{');
    json_key(&j, "file");
    json_text(&j, f->path);
    json_key(&j, "rows");
    json_uint(&j, s->nrows);
    json_key(&j, "row_groups");
    json_uint(&j, s->ngroups);
    json_key(&j, "created_by");
    json_text(&j, s->created_by);
    json_key(&j, "columns");
    json_open(&j, '[');
    for (size_t i = 0; i < s->ncolumns; i++) {
        const struct column_row *const r = &rows[i];
        json_open(&j, '{');
        json_key(&j, "column");
        json_text(&j, r->is.name);
        json_key(&j, "type");
        json_text(&j, r->type);
        json_key(&j, "filters");
        json_uint(&j, r->nfilters);
        if (r->nfilters) {
            json_key(&j, "bytes");
            json_uint(&j, r->nbytes);
            json_key(&j, "values_estimate");
            json_real(&j, r->values);
            json_key(&j, "fpr_now");
            json_real(&j, r->rate);
        }
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_close(&j, '}');
    json_end(&j);
}

static void info_text(const struct parquet_file *f, const bly_parquet_shape *s,
                      const struct column_row *rows)
{
    int name_wide = 6, type_wide = 4;
    for (size_t i = 0; i < s->ncolumns; i++) {
        const int name = (int)strlen(rows[i].is.name);
        const int type = (int)strlen(rows[i].type);
        name_wide = name > name_wide && name <= 40 ? name : name_wide;
        type_wide = type > type_wide ? type : type_wide;
    }
    printf("%s\n  rows        %llu\n  row groups  %zu\n", show_name(f->path),
           (unsigned long long)s->nrows, s->ngroups);
    if (s->created_by[0])
        printf("  created by  %s\n", show_name(s->created_by));
    printf("\n  %-*s  %-*s  %8s  %10s  %18s  %8s\n", name_wide, "column",
           type_wide, "type", "filters", "size", "values", "rate");
    for (size_t i = 0; i < s->ncolumns; i++) {
        const struct column_row *const r = &rows[i];
        printf("  %-*s  ", name_wide, show_name(r->is.name));
        if (r->nfilters)
            printf("%-*s  %8zu  %10s  %18s  %8s\n", type_wide, r->type,
                   r->nfilters, show_bytes(r->nbytes), show_estimate(r->values),
                   show_rate(r->rate));
        else
            printf("%-*s  %8s\n", type_wide, r->type, "none");
    }
}

int parquet_info(const struct parquet_file *f, bool json)
{
    const bly_foreign_spec spec = { .format = "parquet" };
    bly_parquet_shape s;
    bly_foreign *filters;
    bly_parquet_stat(f->p, &s);
    if (bly_foreign_open(&spec, f->bytes, f->nbytes, &filters))
        return fail("%s: %s", f->path, bly_error());
    struct column_row *const rows = calloc(s.ncolumns + 1, sizeof *rows);
    size_t part = 0;
    for (size_t i = 0; rows && i < s.ncolumns; i++)
        row_fill(f, filters, i, s.ngroups, &part, &rows[i]);
    bly_foreign_free(filters);
    if (!rows)
        return fail("out of memory");
    if (json)
        info_json(f, &s, rows);
    else
        info_text(f, &s, rows);
    free(rows);
    return YES;
}
