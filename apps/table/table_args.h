/*
 * table_args.h - sorted tables with filters: bloomery table VERB ...
 */
#ifndef BLY_TABLE_H
#define BLY_TABLE_H

#include "io/keys.h"
#include "io/sizing.h"
#include "report/fields.h"

struct table_args {
    const char *output;
    struct keys keys;
    struct sizing sizing;
    const char *delimiter;
    const char *from, *to, *prefix; /* scan: NULL: all keys */
    uint64_t limit;                 /* scan: 0: no limit */
    uint64_t newest;                /* compact: 0: all tables */
    bool hex;  /* values are hexadecimal digits outside of the table */
    bool stat; /* say what lookups cost */
    bool json;
};

/* What the verbs report. */
struct table_row {
    const char *table;
    uint64_t records, deleted, blocks;
    uint64_t bytes, filter_bytes;
    bly_bytes first, last;
};
extern const struct field table_row_fields[];

struct table_answer {
    bly_bytes key;
    const char *found; /* value, deleted or absent */
    const char *value; /* NULL: none */
    uint64_t tables, by_range, by_filter, blocks, falsely;
};
extern const struct field table_answer_fields[];

struct table_pair {
    bly_bytes key, value;
};
extern const struct field table_pair_fields[];

struct table_compacted {
    const char *table;
    uint64_t merged, records, deleted, hidden, dropped;
};
extern const struct field table_compacted_fields[];

/* What a filter of keys has to be: of a kind that misses none, 1 % if nothing
 * was said. False, with the reason printed. */
bool table_spec_fits(const struct table_args *args, bly_spec *spec);

int table_build(const struct table_args *args, const struct list *operands);
int table_get(const struct table_args *args, const struct list *operands);
int table_stat(const struct table_args *args, const struct list *operands);
int table_verify(const struct table_args *args, const struct list *operands);
int table_scan(const struct table_args *args, const struct list *operands);
int table_compact(const struct table_args *args, const struct list *operands);

#endif
