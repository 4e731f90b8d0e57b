/*
 * parquet_job.h - filters for the columns of a Parquet file that has none
 *
 *     page_unpack     a page, decompressed
 *     column_levels   how many of its values are not nulls
 *     column_values   the values themselves, into the filter of their chunk
 *     column_chunk    page by page, the filter of a chunk
 *     parquet_add     chunk by chunk, the filters of a column
 *     parquet_mapped  the file, read, and written again with the filters
 *
 * What lies where in a file, and what a filter is, is the library's.
 */
#ifndef BLY_PARQUET_APP_H
#define BLY_PARQUET_APP_H

#include <bloomery/parquet.h>

/* What went wrong, in one line. */
struct parquet_error {
    char text[512];
};

/* Say it; false, so that a function can end in `return parquet_fail(...)`. */
__attribute__((format(printf, 2, 3))) bool
parquet_fail(struct parquet_error *e, const char *format, ...);

/* The same from bly_error(). */
bool parquet_fail_library(struct parquet_error *e);

/* What looks damaged, or cannot be copied, may be a file that was changed
 * meanwhile; then that is what is reported. */
struct parquet_file;
bool parquet_blame(const struct parquet_file *f, struct parquet_error *e);

/* Memory that is used again and again, and grows. */
struct buffer {
    unsigned char *at;
    size_t room;
};

/* Room for n bytes, old contents gone; NULL: no memory. */
unsigned char *buffer_need(struct buffer *b, size_t n);

/* ---------------------------------------------------------------- unpack */

/* Can it be decompressed here? If not, *why says so. */
bool unpack_knows(uint32_t codec, const char **why);

/* nplain bytes of what n bytes hold, into `to`. False if they do not. */
bool unpack(uint32_t codec, const unsigned char *bytes, size_t n,
            unsigned char *to, size_t nplain);

/* The most bytes that n may become: more is a lie, and no memory is given for
 * it. */
uint64_t unpack_most(uint32_t codec, uint64_t n);

/* ---------------------------------------------------------------- levels */

/* Of the first n levels, each of which is max at most, in Parquet's hybrid of
 * runs and packed bits: how many are max? False if bytes do not hold n. */
bool levels_count(const unsigned char *bytes, size_t nbytes, uint64_t n,
                  uint32_t max, uint64_t *out);

/* ---------------------------------------------------------------- values */

/* Values of a page, on their way into the filter that is being made. */
struct values {
    bly_parquet *file;
    const bly_parquet_column *column;
    struct buffer text; /* for encodings that are no plain bytes */
};

/* Can values of the column be read from an encoding? */
bool values_known(const bly_parquet_column *c, uint32_t encoding);

/* The most values that nbytes of an encoding may hold, if the page says n. */
uint64_t values_most(const bly_parquet_column *c, uint32_t encoding,
                     uint64_t nbytes, uint64_t n);

/* Add the n values that bytes hold. False if they do not, or where there is no
 * memory. */
bool values_add(struct values *v, uint32_t encoding, const unsigned char *bytes,
                size_t nbytes, uint64_t n);

/* ------------------------------------------------------------------- add */

/* A file, mapped to be read. */
struct parquet_file {
    const char *path;
    int fd;
    const unsigned char *bytes;
    size_t nbytes;
    bly_parquet *p;
    struct parquet_mark *mark; /* what it was when it was opened */

    /* Told by parquet_add() now and then, unless NULL: values that were read,
     * bytes, and bytes in all. */
    void (*progress)(uint64_t nvalues, uint64_t done, uint64_t total);

    bly_wait *wait; /* parquet_save(): for others that write the same file */
};

bool parquet_file_open(struct parquet_file *f, const char *path,
                       struct parquet_error *e);
void parquet_file_close(struct parquet_file *f);

/* Make the filters of a column, one per row group; `out`, unless NULL, has room
 * for what each became. Groups without rows get none. */
bool parquet_add(struct parquet_file *f, size_t column, double fpr,
                 bly_parquet_filter *out, struct parquet_error *e);

/* Write the file with its new filters: atomically to a path, or piece by
 * piece. False, and nothing is at the path that was not there before, where
 * the file was changed meanwhile. */
bool parquet_save(const struct parquet_file *f, const char *path,
                  struct parquet_error *e);
bool parquet_put(const struct parquet_file *f, bly_put *put, void *ctx,
                 struct parquet_error *e);

#endif
