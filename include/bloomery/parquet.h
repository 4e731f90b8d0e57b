/*
 * bloomery/parquet.h - the columns, pages and filters of Parquet files
 * SPDX-License-Identifier: MIT
 *
 * What bloomery.h says about failure, ownership, threads and cost holds here
 * too.
 */
#ifndef BLOOMERY_PARQUET_H
#define BLOOMERY_PARQUET_H

#include <bloomery.h>

BLY_BEGIN_DECLS

/* A Parquet file consists of row groups. A row group has one chunk per column,
 * and a chunk consists of pages of values. The footer says where everything is,
 * including the filter of a chunk, if it has one. To ask these filters, use the
 * format "parquet" of bloomery/foreign.h. Here are the columns, the pages as
 * they are in the file, and the means to make filters for chunks that have
 * none. The data stay as they are, followed by the filters and a footer that
 * points to them.
 *
 *     bly_parquet *p;
 *     if (bly_parquet_open(bytes, nbytes, NULL, &p) ||
 *         bly_parquet_filter_begin(p, group, column, nvalues, 0.01))
 *         errx(2, "%s", bly_error());
 *     bly_parquet_filter_add(p, values, n);
 *     if (bly_parquet_filter_end(p, NULL) || bly_parquet_write(p, put, ctx))
 *         errx(2, "%s", bly_error());
 *     bly_parquet_free(p);
 *
 * Threads. Any number of threads may read pages and descriptions at once. A
 * file for which filters are being made has one user. */
typedef struct bly_parquet bly_parquet;

typedef enum bly_parquet_type {
    BLY_PARQUET_BOOLEAN,
    BLY_PARQUET_INT32,
    BLY_PARQUET_INT64,
    BLY_PARQUET_INT96,
    BLY_PARQUET_FLOAT,
    BLY_PARQUET_DOUBLE,
    BLY_PARQUET_BYTE_ARRAY,
    BLY_PARQUET_FIXED
} bly_parquet_type;

/* What the values of a column stand for. */
typedef enum bly_parquet_meaning {
    BLY_PARQUET_PLAIN, /* for themselves */
    BLY_PARQUET_STRING,
    BLY_PARQUET_ENUM,
    BLY_PARQUET_JSON,
    BLY_PARQUET_BSON,
    BLY_PARQUET_INTEGER,   /* of `bits` bits */
    BLY_PARQUET_DECIMAL,   /* with `scale` digits after the point */
    BLY_PARQUET_DATE,      /* days since 1970 */
    BLY_PARQUET_TIME,      /* 10^-digits seconds since midnight */
    BLY_PARQUET_TIMESTAMP, /* 10^-digits seconds since 1970 */
    BLY_PARQUET_UUID,
    BLY_PARQUET_FLOAT16,
    BLY_PARQUET_INTERVAL,
    BLY_PARQUET_OTHER /* something this library does not know */
} bly_parquet_meaning;

typedef struct bly_parquet_column {
    const char *name; /* with dots between the parts of its path */
    bly_parquet_type type;
    uint32_t width; /* bytes per value; 0 if they differ */
    bly_parquet_meaning meaning;
    uint32_t bits;      /* of an integer */
    bool is_unsigned;   /* of an integer */
    uint32_t digits;    /* of a time: 3, 6 or 9 digits of a second */
    int32_t scale;      /* of a decimal */
    uint32_t precision; /* of a decimal */
    uint32_t max_def;   /* its highest definition level */
    uint32_t max_rep;   /* its highest repetition level */
} bly_parquet_column;

/* Write the type in words, such as "INT64 timestamp in microseconds", to out,
 * at most room bytes. */
static inline void bly_parquet_type_name(const bly_parquet_column *c, char *out,
                                         size_t room);

typedef struct bly_parquet_chunk {
    uint64_t nvalues;      /* including nulls */
    uint32_t codec;        /* see bly_parquet_codec_name() */
    bool encrypted;        /* neither pages nor filter can be read */
    bool elsewhere;        /* its pages are in another file */
    uint64_t at, nbytes;   /* of its pages in the file */
    uint64_t filter_at;    /* 0: it has no filter */
    uint64_t filter_bytes; /* with its header; 0: not in the footer */
} bly_parquet_chunk;

typedef struct bly_parquet_shape {
    uint64_t nrows;
    size_t ngroups, ncolumns;
    uint64_t footer_at; /* where the data end */
    uint64_t footer_bytes;
    bool is_signed;         /* the footer is signed: it must not be changed */
    const char *created_by; /* "" if it does not say */
} bly_parquet_shape;

/* Read the footer. bytes are the whole file; they are borrowed until
 * bly_parquet_free(), which also frees the names handed out. The result belongs
 * to the caller; mem as in bly_spec. BLY_EFORMAT if the bytes are not a Parquet
 * file, or are damaged or encrypted. */
bly_status bly_parquet_open(const void *bytes, size_t nbytes,
                            const bly_mem *mem, bly_parquet **out);
void bly_parquet_free(bly_parquet *p); /* NULL is allowed */
static inline void bly_parquet_stat(const bly_parquet *p,
                                    bly_parquet_shape *out);

/* Describe a column or a chunk; and the number of rows of a group. The indices
 * must be within the shape. */
static inline void bly_parquet_column_at(const bly_parquet *p, size_t column,
                                         bly_parquet_column *out);
static inline void bly_parquet_chunk_at(const bly_parquet *p, size_t group,
                                        size_t column, bly_parquet_chunk *out);
uint64_t bly_parquet_group_rows(const bly_parquet *p, size_t group);

/* The index of the column with this name. BLY_EINVAL if there is none, or more
 * than one. */
bly_status bly_parquet_column_named(const bly_parquet *p, const char *name,
                                    size_t *out);

/* Pages, codecs and encodings are numbered as in the format; the name of any
 * other number is "unknown". */
enum {
    BLY_PARQUET_DATA_PAGE = 0,
    BLY_PARQUET_INDEX_PAGE = 1,
    BLY_PARQUET_DICTIONARY_PAGE = 2,
    BLY_PARQUET_DATA_PAGE_V2 = 3
};
enum {
    BLY_PARQUET_UNCOMPRESSED = 0,
    BLY_PARQUET_SNAPPY = 1,
    BLY_PARQUET_GZIP = 2,
    BLY_PARQUET_ZSTD = 6
};
enum {
    BLY_PARQUET_PLAIN_VALUES = 0,
    BLY_PARQUET_PLAIN_DICTIONARY = 2,
    BLY_PARQUET_RLE = 3,
    BLY_PARQUET_DELTA_BINARY_PACKED = 5,
    BLY_PARQUET_DELTA_LENGTH_BYTE_ARRAY = 6,
    BLY_PARQUET_DELTA_BYTE_ARRAY = 7,
    BLY_PARQUET_RLE_DICTIONARY = 8,
    BLY_PARQUET_BYTE_STREAM_SPLIT = 9
};
const char *bly_parquet_codec_name(uint32_t codec);
const char *bly_parquet_encoding_name(uint32_t encoding);

typedef struct bly_parquet_page {
    uint32_t kind; /* BLY_PARQUET_..._PAGE */
    uint32_t nvalues;
    uint32_t encoding;
    uint32_t def_encoding, rep_encoding; /* DATA_PAGE */
    uint32_t def_bytes, rep_bytes; /* DATA_PAGE_V2: levels, never compressed */
    bool compressed;               /* is what follows the levels compressed? */
    uint32_t nplain;               /* bytes when decompressed */
    bool has_crc;
    uint32_t crc; /* CRC-32 of bytes */
    const unsigned char *bytes;
    size_t nbytes;
} bly_parquet_page;

/* Get the page at byte *at of a chunk, 0 for the first. *at becomes the start
 * of the next page or, after the last, the nbytes of the chunk. out->bytes
 * points into the file. BLY_ENOTSUP for a chunk that is encrypted or in another
 * file, BLY_EFORMAT if it is damaged. If the call fails, *at is unchanged and
 * *out means nothing. */
static inline bly_status bly_parquet_page_next(const bly_parquet *p,
                                               size_t group, size_t column,
                                               uint64_t *at,
                                               bly_parquet_page *out);

/* A filter that was made. */
typedef struct bly_parquet_filter {
    uint64_t nbytes; /* of its blocks */
    double fpr;      /* from its bits */
    double values;   /* distinct values, from its bits */
} bly_parquet_filter;

/* Make the filter of a chunk in three steps. Begin it, for at most nvalues
 * distinct values and the rate fpr. Add all values of the chunk, in any number
 * of calls, each value in its PLAIN encoding (for byte arrays, without the
 * length): as bytes, or n values of `width` bytes one after another. End it:
 * the filter is folded to the smallest power of two of bytes that keeps the
 * rate, and *out, unless NULL, describes it.
 *
 * One filter is made at a time, and each chunk has one turn. A filter that the
 * chunk had before is replaced. Beginning fails with BLY_EINVAL out of turn,
 * and with BLY_ENOTSUP if the chunk cannot have a filter or the footer is
 * signed. Add and end only after a begin that returned BLY_OK. */
bly_status bly_parquet_filter_begin(bly_parquet *p, size_t group, size_t column,
                                    uint64_t nvalues, double fpr);
void bly_parquet_filter_add(bly_parquet *p, const bly_bytes *values, size_t n);
void bly_parquet_filter_add_fixed(bly_parquet *p, const void *values,
                                  size_t width, size_t n);
static inline bly_status bly_parquet_filter_end(bly_parquet *p,
                                                bly_parquet_filter *out);

/* Write the file with the filters that were made: the data as they were, the
 * filters, the footer. Anything in the footer that this library does not know
 * is kept. BLY_EIO if put() returns false. */
bly_status bly_parquet_write(const bly_parquet *p, bly_put *put,
                             void *ctx) BLY_MUST_CHECK;

/* ------------------------------------------------- sizes of structs */

/* What is declared `static inline` above: each function passes the size of a
 * struct, as "Versions" says, to the function of the library whose name ends in
 * _sized. */
BLY_SIZED(void, bly_parquet_type_name, bly_parquet_column,
          (const bly_parquet_column *c, char *out, size_t room),
          (c, out, room));
BLY_SIZED(void, bly_parquet_stat, bly_parquet_shape,
          (const bly_parquet *p, bly_parquet_shape *out), (p, out));
BLY_SIZED(void, bly_parquet_column_at, bly_parquet_column,
          (const bly_parquet *p, size_t column, bly_parquet_column *out),
          (p, column, out));
BLY_SIZED(void, bly_parquet_chunk_at, bly_parquet_chunk,
          (const bly_parquet *p, size_t group, size_t column,
           bly_parquet_chunk *out),
          (p, group, column, out));
BLY_SIZED(bly_status, bly_parquet_page_next, bly_parquet_page,
          (const bly_parquet *p, size_t group, size_t column, uint64_t *at,
           bly_parquet_page *out),
          (p, group, column, at, out));
BLY_SIZED(bly_status, bly_parquet_filter_end, bly_parquet_filter,
          (bly_parquet *const p, bly_parquet_filter *out), (p, out));

BLY_END_DECLS
#endif
