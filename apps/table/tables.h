/*
 * tables.h - the tables of a folder, the newest first
 */
#ifndef BLY_TABLE_TABLES_H
#define BLY_TABLE_TABLES_H

#include "apps/table/table_file.h"

#define TABLE_END ".blt"

struct tables {
    struct table_file {
        char *path;
        void *map;
        size_t n;
        struct table table;
    } * at;
    size_t n, room;
};

/* Map the table in path, or those in a folder: files whose names end in .blt,
 * the newest being the one whose name comes last. False, with the reason
 * printed. Pairs with tables_close(), in any case. */
bool tables_open(struct tables *t, const char *path);
void tables_close(struct tables *t);

/* A name for a new table in a folder, newer than all others there: NULL, with
 * the reason printed. *lock is held until it is closed, and keeps others from
 * taking the same name. */
char *tables_next(const char *folder, int *lock);

#endif
