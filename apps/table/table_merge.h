/*
 * table_merge.h - the records of many tables, the newest of each key
 */
#ifndef BLY_TABLE_MERGE_H
#define BLY_TABLE_MERGE_H

#include "apps/table/tables.h"

struct table_merge {
    struct tables *tables;
    size_t n; /* the newest n of them */
    struct table_reader *readers;
    enum table_found *at; /* what each reader stands at */
    size_t newest;        /* whose record was given; n: none was */
};

/* Begin with the first key that is not lower than this one. False, with the
 * reason printed. Pairs with merge_end(), in any case. */
bool merge_from(struct table_merge *m, struct tables *tables, size_t n,
                bly_bytes key);
void merge_end(struct table_merge *m);

/* The next key with its newest record: TABLE_VALUE or TABLE_DELETED.
 * TABLE_ABSENT: there are no more. TABLE_DAMAGED: the reason was printed. The
 * entry holds until the next call. */
enum table_found merge_next(struct table_merge *m, struct table_entry *e);

#endif
