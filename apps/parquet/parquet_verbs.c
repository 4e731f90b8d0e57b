/*
 * parquet_verbs.c - filters in Parquet files: info, has and add
 *
 * Reading columns and writing files is parquet_add.c, asking filters the
 * library; here are the lines that people read.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery/foreign.h>

#include "apps/parquet/parquet_verbs.h"
#include "io/files.h"
#include "io/keys.h"
#include "io/paths.h"
#include "report/out.h"
#include "report/say.h"
#include "report/show.h"

/* Open the file in path. False, with the reason printed, if that fails. */
static bool file_open(struct parquet_file *f, const char *path)
{
    struct parquet_error error;
    if (is_dash(path)) {
        fail("a Parquet file is read from its end, which standard input cannot "
             "do; name a file");
        return false;
    }
    cut_watch(path, NULL);
    if (parquet_file_open(f, path, &error))
        return true;
    fail("%s", error.text);
    return false;
}

/* ------------------------------------------------------------------- info */

int parquet_verb_info(const struct parquet_args *args,
                      const struct list *operands)
{
    int status = YES;
    for (size_t i = 0; i < operands->n && status == YES; i++) {
        struct parquet_file f;
        if (!file_open(&f, operands->at[i]))
            return TROUBLE;
        if (i && !args->json)
            putchar('\n');
        status = parquet_info(&f, args->json);
        parquet_file_close(&f);
    }
    return status;
}

/* -------------------------------------------------------------------- has */

struct asking {
    const struct parquet_args *args;
    const bly_foreign *f;
    size_t ngroups;
    uint64_t *bitmap, *groups; /* of row groups, and their numbers */
    uint64_t nfound;
    bool failed;
};

struct found {
    bly_bytes value;
    const uint64_t *groups;
    size_t n;
};

const struct field parquet_found_fields[] = {
    FIELD(struct found, value, NONE, "the value that was asked for"),
    VALUES(struct found, "row_groups", groups, n, AT,
           "the row groups that may have it"),
    { 0 },
};

/* A line of a value that may be somewhere: the value, and its row groups. */
static void has_text(const struct asking *a, const struct found *found)
{
    print_key(found->value.ptr, found->value.len);
    for (size_t i = 0; i < found->n; i++)
        printf("%c%llu", i ? ',' : '\t', (unsigned long long)found->groups[i]);
    print_key_end(a->args->nul);
}

static bool has_value(void *ctx, bly_bytes value)
{
    struct asking *const a = ctx;
    if (bly_foreign_where(a->f, value, a->bitmap)) {
        fail("'%s': %s", show_text(value.ptr, value.len), bly_error());
        a->failed = true;
        return false;
    }
    struct found found = { value, a->groups, 0 };
    for (size_t i = 0; i < a->ngroups; i++)
        if (a->bitmap[i / 64] >> i % 64 & 1)
            a->groups[found.n++] = i;
    a->nfound += found.n > 0;
    if (quiet)
        return !found.n;
    if (a->args->json)
        report(stdout, true, parquet_found_fields, &found, NULL);
    else if (found.n)
        has_text(a, &found);
    return true;
}

static int has_file(const struct parquet_args *args,
                    const struct parquet_file *file, struct input *in)
{
    const bly_option column = { "column", args->columns.at[0] };
    const bly_foreign_spec spec = { .format = "parquet",
                                    .options = &column,
                                    .noptions = 1 };
    bly_foreign *f;
    if (bly_foreign_open(&spec, file->bytes, file->nbytes, &f))
        return fail("%s: %s", file->path, bly_error());
    bly_foreign_stats s;
    bly_foreign_stat(f, BLY_WHOLE, &s);
    struct asking a = { .args = args, .f = f, .ngroups = s.nparts };
    const size_t nwords = BLY_BITMAP_WORDS(s.nparts) + 1;
    a.bitmap = calloc(nwords + s.nparts, sizeof *a.bitmap);
    a.groups = a.bitmap ? a.bitmap + nwords : NULL;
    if (!a.bitmap)
        a.failed = fail("out of memory");
    else if (!input_each(in, has_value, &a) && in->error[0])
        a.failed = fail("%s", in->error);
    free(a.bitmap);
    bly_foreign_free(f);
    return a.failed ? TROUBLE : a.nfound ? YES : NO;
}

int parquet_verb_has(const struct parquet_args *args,
                     const struct list *operands)
{
    const struct keys keys = { .files = args->files, .nul = args->nul };
    struct parquet_file file;
    struct input in;
    if (args->columns.n != 1)
        return fail("has queries one column: --column C");
    if (!keys_input(&keys, operands, &in))
        return TROUBLE;
    int status = TROUBLE;
    if (file_open(&file, operands->at[0])) {
        status = has_file(args, &file, &in);
        parquet_file_close(&file);
    }
    input_close(&in);
    return status;
}

/* -------------------------------------------------------------------- add */

/* What a column's filters came to. */
struct added {
    const char *name;
    uint64_t nbytes;
    double values, worst;
    bool kept; /* it has filters, and they were left alone */
};

static const struct field added_fields[] = {
    NAMED(struct added, "column", name, NONE, "the column"),
    NAMED(struct added, "bytes", nbytes, BYTES, "size of its filters"),
    NAMED(struct added, "values_estimate", values, ESTIMATE | MAYBE,
          "different values in each row group, summed"),
    NAMED(struct added, "fpr", worst, RATE | MAYBE,
          "false positives, where there are most"),
    NAMED(struct added, "left_alone", kept, NONE,
          "it had filters, and kept them"),
    { 0 },
};

struct adding {
    const char *output;
    uint64_t groups;
    const struct added *columns;
    size_t n;
};

const struct field parquet_adding_fields[] = {
    FIELD(struct adding, output, NONE, "the file that was written"),
    NAMED(struct adding, "row_groups", groups, NONE, "its groups of rows"),
    LIST(struct adding, "columns", columns, n, AT, added_fields, "the columns"),
    { 0 },
};

static void add_report(FILE *to, const struct added *a, size_t n,
                       size_t ngroups)
{
    for (size_t i = 0; i < n; i++) {
        if (a[i].kept) {
            fprintf(to,
                    "%s: left alone, it has filters (--replace makes new "
                    "ones)\n",
                    show_name(a[i].name));
            continue;
        }
        fprintf(to, "%s: %zu filter%s, ", show_name(a[i].name), ngroups,
                ngroups == 1 ? "" : "s");
        report_text(
            to, added_fields, &a[i],
            ngroups == 1
                ? "{bytes} for {values_estimate} values, rate {fpr}\n"
                : "{bytes} for {values_estimate} values, rate {fpr} at most\n");
    }
}

/* Has the column filters, in any group? Then they are left alone. */
static bool has_filters(const struct parquet_file *file, size_t column,
                        size_t ngroups)
{
    for (size_t g = 0; g < ngroups; g++) {
        bly_parquet_chunk chunk;
        bly_parquet_chunk_at(file->p, g, column, &chunk);
        if (chunk.filter_at)
            return true;
    }
    return false;
}

static int add_column(const struct parquet_args *args,
                      struct parquet_file *file, const char *name,
                      size_t ngroups, struct added *a)
{
    struct parquet_error error;
    size_t column;
    if (bly_parquet_column_named(file->p, name, &column))
        return fail("%s: %s", file->path, bly_error());
    *a = (struct added){ .name = name };
    if (!args->replace && has_filters(file, column, ngroups)) {
        *a = (struct added){ name, 0, NAN, NAN, true };
        return YES;
    }
    bly_parquet_filter *const made = calloc(ngroups + 1, sizeof *made);
    if (!made)
        return fail("out of memory");
    int status = YES;
    const double fpr = args->fpr > 0 ? args->fpr : 0.01;
    progress_start(false);
    progress_unit("values");
    if (!parquet_add(file, column, fpr, made, &error))
        status = fail("%s: %s", file->path, error.text);
    progress_clear();
    for (size_t g = 0; g < ngroups; g++) {
        a->nbytes += made[g].nbytes;
        a->values += made[g].values;
        a->worst = made[g].fpr > a->worst ? made[g].fpr : a->worst;
    }
    free(made);
    return status;
}

static int add_write(const char *output, const struct parquet_file *file)
{
    struct parquet_error error;
    int err = 0;
    const bool ok = is_dash(output)
                        ? parquet_put(file, put_stdout, &err, &error)
                        : parquet_save(file, output, &error);
    if (ok)
        return YES;
    /* EFAULT: what was to be written is not there any more. */
    return err && err != EFAULT ? fail_path("standard output", err)
                                : fail("%s", error.text);
}

static int add_file(const struct parquet_args *args, struct parquet_file *file)
{
    const struct list *const names = &args->columns;
    bly_parquet_shape shape;
    bly_parquet_stat(file->p, &shape);
    struct added *const a = calloc(names->n, sizeof *a);
    int status = a ? YES : fail("out of memory");
    FILE *const to = report_to(args->output);
    for (size_t i = 0; i < names->n && status == YES; i++) {
        for (size_t k = 0; k < i && status == YES; k++)
            if (strcmp(names->at[i], names->at[k]) == 0)
                status = fail("--column %s is given twice", names->at[i]);
        if (status == YES)
            status = add_column(args, file, names->at[i], shape.ngroups, &a[i]);
    }
    size_t nkept = 0;
    for (size_t i = 0; i < names->n && status == YES; i++)
        nkept += a[i].kept;
    if (status == YES && nkept == names->n)
        status = nkept == 1
                     ? fail("%s: column %s has filters; --replace makes new "
                            "ones",
                            file->path, a[0].name)
                     : fail("%s: all these columns have filters; --replace "
                            "makes new ones",
                            file->path);
    if (status == YES)
        status = add_write(args->output, file);
    if (status == YES && args->json && !quiet)
        report(stdout, true, parquet_adding_fields,
               &(struct adding){ args->output, shape.ngroups, a, names->n },
               NULL);
    else if (status == YES && !quiet)
        add_report(to, a, names->n, shape.ngroups);
    free(a);
    return status;
}

int parquet_verb_add(const struct parquet_args *args,
                     const struct list *operands)
{
    const char *const path = operands->at[0];
    struct parquet_file file;
    if (operands->n > 1)
        return fail("add takes one file; columns are named with --column");
    if (!args->output)
        return fail("nothing says where to write; usage: bloomery parquet add "
                    "FILE -o OUT --column C");
    if (args->columns.n == 0)
        return fail("no column is given; usage: bloomery parquet add FILE -o "
                    "OUT --column C; bloomery parquet info FILE lists them");
    if (!output_works(args->output, args->json) ||
        !output_spares(args->output, &path, 1))
        return TROUBLE;
    if (!file_open(&file, path))
        return TROUBLE;
    file.progress = progress_at;
    file.wait = wait_for_lock;
    const int status = add_file(args, &file);
    parquet_file_close(&file);
    return status;
}
