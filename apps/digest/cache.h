/*
 * cache.h - what a proxy has in its cache, from what it writes about it
 *
 * Of a swap.state, the counting filter is all that is kept, since each of its
 * records has the key of what came or went. A line of store.log may not, if the
 * object was replaced while it was read; so the key in each file of the cache
 * is kept besides, 16 bytes for each. In return, lines may come twice.
 */
#ifndef BLY_DIGEST_CACHE_H
#define BLY_DIGEST_CACHE_H

#include <pthread.h>

#include "apps/digest/digest_journal.h"

struct cache_counts {
    uint64_t came, went;   /* since the beginning */
    uint64_t records;      /* and lines that were read */
    uint64_t unknown, cut; /* that say nothing, and halves of them */
    uint64_t strays;       /* that went without having come */
    uint64_t rotations;    /* other files at the same path, and cut ones */
    uint64_t rebuilt;      /* times that all was read again */
};

struct cache {
    bly_foreign_spec spec;    /* of the digest, but for its capacity */
    uint64_t least;           /* capacity */
    struct journal *journals; /* the indexes, or the one log */
    size_t njournals;
    struct journal *begin; /* the indexes that a log begins with */
    size_t nbegin;
    struct digest_trouble trouble;

    pthread_mutex_t lock; /* all below; only the thread that reads changes it */
    struct cells cells;
    unsigned char (**files[JOURNAL_DIRS])[CELLS_KEY]; /* of a log: by number */
    struct cache_counts counts;
    uint64_t changes; /* grows with each */
    bool wrong;       /* not all was read: do it again */
};

/* Read files from their beginnings; begin: indexes, if the file is a log.
 * False, with the reason printed; cache_close() in both cases. */
bool cache_open(struct cache *c, const struct list *files,
                const struct list *begin);

/* Take what was written since. Trouble is told, and tried again next time. */
void cache_read(struct cache *c);

/* The digest now. False: no memory. */
bool cache_digest(struct cache *c, struct digest_copy *out);

struct cache_counts cache_count(struct cache *c);
void cache_close(struct cache *c);

#endif
