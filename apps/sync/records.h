/*
 * records.h - lines and files as they are sent
 */
#ifndef BLY_SYNC_RECORDS_H
#define BLY_SYNC_RECORDS_H

#include "apps/sync/sync_chunks.h"
#include "apps/sync/messages.h"

/* A file that the other side has. */
struct record {
    struct sync_file file;
    char path[SYNC_PATH_MOST];
};

/* False: no memory. changed: records have that time, too. */
bool record_put(struct block *to, const struct sync_file *f, const char *path,
                bool changed);
bool record_get(const struct sync_set *set, struct reading *r, bool changed,
                struct record *out);

bool chunks_put(struct block *to, const struct chunks *c);
bool chunks_get(struct reading *r, struct chunks *out);

#endif
