/*
 * column_chunk.h - the filter of a chunk, from its own values
 */
#ifndef BLY_COLUMN_CHUNK_H
#define BLY_COLUMN_CHUNK_H

#include "apps/parquet/parquet_job.h"

struct column_chunk {
    bly_parquet *file;
    size_t group, number; /* of the column */
    bly_parquet_column column;
    bly_parquet_chunk is;
    struct parquet_error *error;

    /* By its headers: */
    uint64_t most; /* values that it may hold */
    bool uses_dictionary;

    struct values values;
    struct buffer plain;
};

/* Read it and make its filter; false with c->error. The buffers of c serve the
 * next one too. */
bool chunk_filter(struct column_chunk *c, double fpr, bly_parquet_filter *out);
void chunk_free(struct column_chunk *c);

#endif
