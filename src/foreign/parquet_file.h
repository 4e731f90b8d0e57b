/*
 * parquet_file.h - what is known of a Parquet file, from its footer
 *
 *     "PAR1"  pages, filters, indexes  footer  its length, 4 bytes  "PAR1"
 *
 *     parquet_footer.c   reads the footer, parquet_schema.c its columns
 *     parquet_pages.c    reads the headers of pages
 *     parquet_types.c    names types, and turns text into values
 *     parquet_filters.c  makes filters, writes the footer again
 *     parquet.c          the filters of a file as a foreign format
 */
#ifndef BLY_FOREIGN_PARQUET_FILE_H
#define BLY_FOREIGN_PARQUET_FILE_H

#include <bloomery/parquet.h>

#include "foreign/format.h"
#include "foreign/thrift.h"

#define BLY_PARQUET_MAGIC 4

/* Where the fields of a filter go in the metadata of a chunk: instead of what
 * is between from and to, which is nothing or those of another filter. Offsets
 * are into the footer. */
typedef struct bly_parquet_slot {
    uint32_t from, to;
    int32_t after;     /* id of the field before; */
    int32_t next;      /* of the one behind, 0 where there is none, */
    unsigned type;     /* its type, */
    uint32_t value;    /* and where its value begins */
    bool out_of_order; /* ids do not rise: no place can be told */
} bly_parquet_slot;

/* A chunk as its footer tells of it. Chunks are many, so they are read from
 * there whenever they are wanted. */
typedef struct bly_parquet_entry {
    bly_parquet_chunk is;
    bly_parquet_slot slot;
} bly_parquet_entry;

/* A column, in few bytes: wide files have many. */
typedef struct bly_parquet_leaf {
    uint32_t name; /* where it begins in names */
    uint32_t width;
    uint16_t precision;
    uint8_t scale;
    uint8_t type, meaning, bits, digits;
    uint8_t max_def, max_rep;
    bool is_unsigned;
} bly_parquet_leaf;

/* A filter that was made. */
typedef struct bly_parquet_made {
    bly_block block; /* at NULL: none */
    uint64_t nblocks;
} bly_parquet_made;

struct bly_parquet {
    bly_mem mem;
    const unsigned char *bytes;
    size_t nbytes;
    uint64_t nrows;
    bool is_signed;

    unsigned char *footer; /* a copy: the file may change meanwhile */
    size_t footer_at, nfooter;

    bly_parquet_leaf *columns;
    size_t ncolumns, columns_room;
    char *names; /* of all columns, and of the creator */
    size_t nnames, names_room;
    size_t created_by;

    uint64_t *group_rows;
    uint32_t *chunks; /* where each begins in the footer: ngroups times
                         ncolumns */
    size_t ngroups;

    /* Filters that were made, one per chunk; NULL before the first. */
    bly_parquet_made *made;

    /* The one that is being made: */
    bly_parquet_made *making; /* NULL: none */
    bly_block block;
    uint64_t nblocks;
    double fpr;
    uint32_t real_width;    /* of its values if they are reals, else 0 */
    bool has_zero, has_nan; /* among those that came */

    /* The size of the last one, since many are for as many: */
    uint64_t sized_for;
    double sized_fpr;
};

/* Read the schema, a list of n elements at t, into columns and names; the name
 * of the creator goes along. */
bly_status bly_parquet_schema_read(bly_parquet *p, bly_thrift t, size_t n,
                                   bly_bytes creator);

bly_status bly_parquet_footer_damaged(void);

static inline const char *bly_parquet_name(const bly_parquet *p, size_t column)
{
    return p->names + p->columns[column].name;
}

/* Reals of 2, 4 or 8 bytes, little-endian, by their bits. Two zeros compare
 * equal, and so does every NaN with every other in many systems, whatever its
 * sign and payload; their hashes differ. */
typedef enum bly_real_sort {
    BLY_REAL_OTHER,
    BLY_REAL_ZERO,
    BLY_REAL_NAN
} bly_real_sort;

/* The infinity of a width: above it, with the sign left out, are the NaNs. */
static inline uint64_t bly_real_infinity(uint32_t width)
{
    return width == 2   ? 0x7c00
           : width == 4 ? 0x7f800000
                        : UINT64_C(0x7ff0000000000000);
}

static inline bly_real_sort bly_real_sort_of(const unsigned char *value,
                                             uint32_t width)
{
    const uint64_t x = width == 2   ? bly_load16(value)
                       : width == 4 ? bly_load32(value)
                                    : bly_load64(value);
    const uint64_t size = x & UINT64_MAX >> (65 - 8 * width);
    return size == 0                         ? BLY_REAL_ZERO
           : size > bly_real_infinity(width) ? BLY_REAL_NAN
                                             : BLY_REAL_OTHER;
}

/* Bytes of a real of the column; 0: its values are none. */
uint32_t bly_parquet_real_width(const bly_parquet_column *c);

/* Both of a sort: zero or the quiet NaN, positive and negative. */
void bly_real_pair(bly_real_sort sort, uint32_t width,
                   unsigned char pair[2][8]);

void bly_parquet_entry_at(const bly_parquet *p, size_t group, size_t column,
                          bly_parquet_entry *out);

/* The bytes of a value from its text; what the text must be like is in
 * docs/formats.md. */
bly_status bly_parquet_key(const bly_parquet_column *c, bly_bytes text,
                           bly_scratch *s, bly_foreign_key *out);

#endif
