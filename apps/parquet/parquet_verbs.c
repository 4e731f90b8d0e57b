/*
 * parquet_verbs.c - filters in Parquet files: info and has
 *
 * Asking filters is the library's work; here are the lines that people read.
 */
#include <errno.h>
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

bool parquet_open(struct parquet_file *f, const char *path)
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
        if (!parquet_open(&f, operands->at[i]))
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
        return fail("has queries one column; name it with --column C");
    if (!keys_input(&keys, operands, &in))
        return TROUBLE;
    int status = TROUBLE;
    if (parquet_open(&file, operands->at[0])) {
        status = has_file(args, &file, &in);
        parquet_file_close(&file);
    }
    input_close(&in);
    return status;
}
