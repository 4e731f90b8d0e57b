/*
 * parquet_add_verb.c - bloomery parquet add
 *
 * Reading columns and writing files is parquet_add.c.
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

static void add_report(FILE *to, const struct parquet_added *a, size_t n,
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
            to, parquet_added_fields, &a[i],
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
                      size_t ngroups, struct parquet_added *a)
{
    struct parquet_error error;
    size_t column;
    if (bly_parquet_column_named(file->p, name, &column))
        return fail("%s: %s", file->path, bly_error());
    *a = (struct parquet_added){ .name = name };
    if (!args->replace && has_filters(file, column, ngroups)) {
        *a = (struct parquet_added){
            .name = name, .values = NAN, .worst = NAN, .kept = true
        };
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
    struct parquet_added *const a = calloc(names->n, sizeof *a);
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
               &(struct parquet_adding){ args->output, shape.ngroups, a,
                                         names->n },
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
    if (!parquet_open(&file, path))
        return TROUBLE;
    file.progress = progress_at;
    file.wait = wait_for_lock;
    const int status = add_file(args, &file);
    parquet_file_close(&file);
    return status;
}
