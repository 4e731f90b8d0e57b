/*
 * parquet_info.c - the columns and filters of a Parquet file
 *
 * A column that has a filter in any row group has a part for each of them in
 * the library's view of the file, columns one after another.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery/foreign.h>

#include "apps/parquet/parquet_verbs.h"
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
    const struct column_row *filtered; /* itself; NULL: it has no filter */
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
    r->filtered = r->nfilters ? r : NULL;
}

static const struct field filters_fields[] = {
    NAMED(struct column_row, "bytes", nbytes, BYTES, "size of its filters"),
    NAMED(struct column_row, "values_estimate", values, ESTIMATE | MAYBE,
          "different values in each row group, summed"),
    NAMED(struct column_row, "fpr_now", rate, RATE | MAYBE,
          "false positives, on average"),
    { 0 },
};

static const struct field column_fields[] = {
    NAMED(struct column_row, "column", is.name, NONE, "its name"),
    FIELD(struct column_row, type, NONE, "its type"),
    NAMED(struct column_row, "filters", nfilters, NONE,
          "row groups that have a filter for it"),
    MEMBERS(struct column_row, filtered, AT | OPTIONAL, filters_fields),
    { 0 },
};

struct file_info {
    const char *file, *created_by;
    uint64_t rows, groups;
    const struct column_row *columns;
    size_t ncolumns;
};

const struct field parquet_info_fields[] = {
    FIELD(struct file_info, file, NONE, "the file"),
    FIELD(struct file_info, rows, NONE, "its rows"),
    NAMED(struct file_info, "row_groups", groups, NONE, "groups of rows"),
    FIELD(struct file_info, created_by, NONE, "the program that wrote it"),
    LIST(struct file_info, "columns", columns, ncolumns, AT, column_fields,
         "its columns"),
    { 0 },
};

static void info_text(const struct file_info *info)
{
    int name_wide = 6, type_wide = 4;
    for (size_t i = 0; i < info->ncolumns; i++) {
        const int name = (int)strlen(info->columns[i].is.name);
        const int type = (int)strlen(info->columns[i].type);
        name_wide = name > name_wide && name <= 40 ? name : name_wide;
        type_wide = type > type_wide ? type : type_wide;
    }
    report_text(stdout, parquet_info_fields, info,
                "{file}\n  rows        {rows}\n  row groups  {row_groups}\n"
                "[{?created_by}  created by  {created_by}\n]");
    printf("\n  %-*s  %-*s  %8s  %10s  %18s  %8s\n", name_wide, "column",
           type_wide, "type", "filters", "size", "values", "rate");
    for (size_t i = 0; i < info->ncolumns; i++) {
        const struct column_row *const r = &info->columns[i];
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
    const struct file_info info = { f->path,   s.created_by, s.nrows,
                                    s.ngroups, rows,         s.ncolumns };
    if (json)
        report(stdout, true, parquet_info_fields, &info, NULL);
    else
        info_text(&info);
    free(rows);
    return YES;
}
