/*
 * sync_store.h - a file of a folder that comes from the other side, piece by
 * piece
 *
 * Its chunks are looked for in the file that it replaces, and in what came of
 * it before the last sync was cut off; the rest has to come. When all is there,
 * it is put together in a draft, its hash is compared with what was said, and
 * the draft takes its place: nothing is seen of it before, and the old file
 * stays if anything fails.
 */
#ifndef BLY_SYNC_STORE_H
#define BLY_SYNC_STORE_H

#include "apps/sync/sync_chunks.h"

/* What comes at once, without chunks, is no longer than this. */
#define STORE_WHOLE ((uint64_t)64 << 10)

struct incoming;

/* Begin to take the file of a record. chunks are the callee's from then on;
 * none of them: it comes whole. NULL, and why says why not; *skip: there is no
 * need to, and nothing is wrong. */
struct incoming *incoming_new(const struct sync_set *set,
                              const struct sync_file *f, const char *path,
                              struct chunks *chunks, bool *skip,
                              char why[SYNC_WHY]);

/* The next range of it that has to come, from *at on: false if none is left. */
bool incoming_needs(const struct incoming *in, uint64_t *at, uint64_t *n);

/* The bytes of these ranges, in their order. */
bool incoming_put(struct incoming *in, const void *bytes, size_t n,
                  char why[SYNC_WHY]);

/* All is there: replace the file. in is released either way. */
bool incoming_end(struct incoming *in, char why[SYNC_WHY]);

/* Give up; what came of a large file is kept for the next time. */
void incoming_stop(struct incoming *in);

/* Does a file of ours (NULL: none) have the contents of a record? */
bool contents_same(const struct sync_set *set, const struct sync_file *ours,
                   const struct sync_file *f);

/* Is this the name of such a rest? */
bool part_is(const char *path);

/* Remove the file of a record, if it is still what it was, and folders that
 * are empty then. */
bool store_remove(const struct sync_set *set, const struct sync_file *f,
                  char why[SYNC_WHY]);

/* Open a file of the folder for reading; links are not followed. -1: errno. */
int folder_open(const struct sync_set *set, const char *path);

#endif
