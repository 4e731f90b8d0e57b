/*
 * table_file.h - an immutable sorted table in a file, with a filter
 *
 *     "blytable"                        8 bytes
 *     blocks   records, and a checksum  about 4 KiB each
 *     index    the first key of each block, and its length
 *     filter   a .bly file of all keys
 *     last     the last key
 *     footer   where these are, their checksums, counts; TABLE_FOOTER bytes
 *
 *     record   bytes shared with the key before it, bytes that follow, length
 *              of the value and one (0: the key was deleted); the bytes, the
 *              value
 *
 * Numbers in records and index are varints (io/varint.h). Those of the footer
 * have 8 bytes, little-endian. Sums are XXH3. docs/table.md says more.
 */
#ifndef BLY_TABLE_SORTED_TABLE_H
#define BLY_TABLE_SORTED_TABLE_H

#include "io/input.h"

#define TABLE_MAGIC "blytable"
#define TABLE_WHY 200

/* The footer, in words of 8 bytes; the magic stands behind it again. */
enum {
    TABLE_VERSION,
    TABLE_RECORDS,
    TABLE_DELETED_RECORDS,
    TABLE_BLOCKS,
    TABLE_INDEX,  /* where it begins: all blocks lie before it */
    TABLE_FILTER, /* likewise; the index ends there */
    TABLE_LAST,
    TABLE_INDEX_SUM, /* of index, filter and last key */
    TABLE_FILTER_SUM,
    TABLE_LAST_SUM,
    TABLE_FOOTER_SUM, /* of the words before it */
    TABLE_WORDS
};
#define TABLE_FOOTER (8 * TABLE_WORDS + 8)

struct table_entry {
    bly_bytes key, value;
    bool deleted;
};

/* table_write.c: a table is written entry by entry, with rising keys. Memory
 * is that of the index and of the filter's builder, however many there are. */
struct table_writer {
    bly_put *put;
    void *ctx;
    bly_builder *filter;
    uint64_t done; /* bytes put */
    struct block block, index, last;
    uint64_t nblocks, records, deleted;
    bool failed;
};

/* Begin a table, which goes through put. Each of these is false, and says why.
 * Pairs with table_writer_free(), in any case. */
bool table_writer_new(struct table_writer *w, const bly_spec *filter,
                      bly_put *put, void *ctx, char why[TABLE_WHY]);
bool table_writer_add(struct table_writer *w, const struct table_entry *e,
                      char why[TABLE_WHY]);
bool table_writer_end(struct table_writer *w, char why[TABLE_WHY]);
void table_writer_free(struct table_writer *w);

/* All of that for n entries. */
bool table_write(const struct table_entry *entries, size_t n,
                 const bly_spec *filter, bly_put *put, void *ctx,
                 char why[TABLE_WHY]);

struct table {
    const unsigned char *at;
    size_t n;
    uint64_t records, deleted;
    bly_bytes first, last; /* keys */
    struct table_block {
        bly_bytes first; /* key, in the index */
        size_t at, n;    /* its records, without the sum */
        bool sound;      /* the sum was compared */
    } * blocks;
    size_t nblocks;
    size_t filter_bytes;
    bly_filter *filter; /* NULL: the table has no entry */
    struct block key;   /* of the record that is looked at */
};

/* Open the table in n bytes, which stay where they are until it is closed and
 * may be anything. Index and filter are compared with their sums, blocks when
 * they are read. False, and why. */
bool table_open(struct table *t, const void *bytes, size_t n,
                char why[TABLE_WHY]);
void table_close(struct table *t);

/* What lookups cost. */
struct table_counts {
    uint64_t tables;    /* that were considered */
    uint64_t by_range;  /* spared: the key lies outside of theirs */
    uint64_t by_filter; /* spared: the filter says no */
    uint64_t blocks;    /* read */
    uint64_t falsely;   /* of them, those that did not have the key */
};

enum table_found { TABLE_ABSENT, TABLE_VALUE, TABLE_DELETED, TABLE_DAMAGED };

/* How much of a table is asked before a block is read; the figures show what
 * each is worth. */
enum table_use {
    TABLE_NOTHING = 0,
    TABLE_RANGES = 1,
    TABLE_FILTERS = 2,
    TABLE_ALL = 3
};

/* Look a key up. *value is in the table. TABLE_DAMAGED, and why: the answer is
 * not known. */
enum table_found table_find(struct table *t, bly_bytes key, enum table_use use,
                            struct table_counts *counts, bly_bytes *value,
                            char why[TABLE_WHY]);

/* Bytes that are read from one end to the other. */
struct table_cursor {
    const unsigned char *at, *end;
};

/* The records of a table, in the order of their keys. */
struct table_reader {
    struct table *t;
    size_t block; /* the next one */
    struct table_cursor c;
    bly_bytes from;       /* what is lower is left out */
    bly_bytes key, value; /* of the record; until the next one */
    bool deleted;
};

/* Begin with the first record whose key is not lower than this one. The table
 * may not be asked in between. */
void table_from(struct table_reader *r, struct table *t, bly_bytes key);

/* The next record: TABLE_VALUE or TABLE_DELETED. TABLE_ABSENT: there are no
 * more. TABLE_DAMAGED, and why. */
enum table_found table_next(struct table_reader *r, char why[TABLE_WHY]);

/* Read all of it: is everything as the footer says, and does the filter know
 * every key? False, and why. */
bool table_check(struct table *t, char why[TABLE_WHY]);

/* Keys, as strings of bytes: below 0, 0 or above. */
int table_order(bly_bytes a, bly_bytes b);

/* Between table_file.c and table_write.c. */

#define TABLE_SUM_BYTES 8
uint64_t table_sum(const void *bytes, size_t n);

/* False, with this as the reason. */
bool table_fail(char *why, const char *text);

/* Bytes of memory that the filter of n keys may take: 1024 bits per key, where
 * a rate of 2^-64 takes 93. A coded filter may take a thousand times its bytes,
 * and this says which of them are no table's. */
#define TABLE_FILTER_TOO_LARGE "its filter takes more than 1024 bits per key"
static inline uint64_t table_filter_most(uint64_t n)
{
    return (UINT64_C(1) << 20) + 128 * n;
}

#endif
