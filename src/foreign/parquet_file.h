/*
 * parquet_file.h - what is known of a Parquet file, from its footer
 *
 *     "PAR1"  pages, filters, indexes  footer  its length, 4 bytes  "PAR1"
 *
 *     parquet_footer.c   reads the footer
 *     parquet_pages.c    reads the headers of pages
 *     parquet_types.c    names types, and turns text into values
 *     parquet_filters.c  makes filters, writes the footer again
 *     parquet.c          the filters of a file as a foreign format
 */
#ifndef BLY_FOREIGN_PARQUET_FILE_H
#define BLY_FOREIGN_PARQUET_FILE_H

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

typedef struct bly_parquet_entry {
    bly_parquet_chunk is;
    bly_parquet_slot slot;
    bly_block block; /* of a new filter; at NULL: it has none */
    uint64_t nblocks;
} bly_parquet_entry;

typedef struct bly_parquet_group {
    uint64_t nrows;
} bly_parquet_group;

struct bly_parquet {
    bly_mem mem;
    const unsigned char *bytes;
    size_t nbytes;
    uint64_t nrows;
    bool is_signed;

    unsigned char *footer; /* a copy: the file may change meanwhile */
    size_t footer_at, nfooter;

    bly_parquet_column *columns;
    size_t ncolumns, columns_room;
    char *names; /* of all columns and of the creator */
    size_t nnames, names_room;
    const char *created_by;

    bly_parquet_group *groups;
    bly_parquet_entry *chunks; /* ngroups times ncolumns */
    size_t ngroups;

    /* The filter that is being made: */
    bly_parquet_entry *making; /* NULL: none */
    bly_block block;
    uint64_t nblocks;
    double fpr;

    /* The size of the last one, since many are for as many: */
    uint64_t sized_for;
    double sized_fpr;
};

static inline bly_parquet_entry *
bly_parquet_entry_at(const bly_parquet *p, size_t group, size_t column)
{
    return &p->chunks[group * p->ncolumns + column];
}

/* The bytes of a value from its text; what the text must be like is in
 * docs/formats.md. */
bly_status bly_parquet_key(const bly_parquet_column *c, bly_bytes text,
                           bly_scratch *s, bly_foreign_key *out);

#endif
