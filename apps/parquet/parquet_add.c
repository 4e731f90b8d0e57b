/*
 * parquet_add.c - filters for a column, chunk by chunk
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "apps/parquet/column_chunk.h"

bool parquet_add(struct parquet_file *f, size_t column, double fpr,
                 bly_parquet_filter *out, struct parquet_error *e)
{
    struct column_chunk c = { .file = f->p, .number = column, .error = e };
    bly_parquet_shape shape;
    uint64_t nvalues = 0, done = 0, total = 0;
    bool ok = true;
    bly_parquet_stat(f->p, &shape);
    bly_parquet_column_at(f->p, column, &c.column);
    for (size_t g = 0; f->progress && g < shape.ngroups; g++) {
        bly_parquet_chunk_at(f->p, g, column, &c.is);
        total += c.is.nbytes;
    }
    madvise((void *)(uintptr_t)f->bytes, f->nbytes, MADV_SEQUENTIAL);
    for (c.group = 0; ok && c.group < shape.ngroups; c.group++) {
        bly_parquet_filter made;
        bly_parquet_chunk_at(f->p, c.group, column, &c.is);
        ok = chunk_filter(&c, fpr, out ? &out[c.group] : &made);
        nvalues += c.is.nvalues;
        done += c.is.nbytes;
        if (f->progress)
            f->progress(nvalues, done, total);
    }
    chunk_free(&c);
    return ok || parquet_blame(f, e);
}
