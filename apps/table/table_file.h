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

/* Put a table of n entries, whose keys rise. False, and why. */
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

/* Read all of it: is everything as the footer says, and does the filter know
 * every key? False, and why. */
bool table_check(struct table *t, char why[TABLE_WHY]);

#endif
