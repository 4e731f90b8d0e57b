/*
 * kept.h - the hashes that a builder keeps until it has them all
 *
 * In chunks in memory, 8 bytes per key and 16 with a value. Where the system
 * lets them, chunks lie one behind the other, and are one array already. With a
 * bound and a folder, chunks that would pass the bound go to a temporary file
 * there, which has no name, so that nothing is left behind whatever happens.
 * What is kept is read again chunk by chunk, or gathered in one array: all of
 * it, or the keys of some shards.
 *
 * One thread at a time, but for reading chunks that are in memory and for
 * filling places in them.
 */
#ifndef BLY_KEPT_H
#define BLY_KEPT_H

#include "core/memory.h"

/* 2^17 keys, 1 MiB of hashes: little beside what many of them hold, and
 * enough to be work for a thread. */
#define BLY_CHUNK_KEYS ((size_t)1 << 17)

typedef struct bly_chunk {
    struct bly_chunk *next;
    size_t n;
    uint64_t *hashes; /* behind this, or in the row */
    uint64_t *values; /* behind hashes, or NULL */
    bool in_row;
} bly_chunk;

typedef struct bly_kept {
    bly_mem mem;
    bool valued;
    bly_chunk *first, *last;
    size_t nchunks;     /* in memory */
    bly_block row;      /* of the hashes of the first chunks, or NULL */
    size_t nrow;        /* chunks in it */
    uint64_t nkeys;     /* in all */
    uint64_t max_bytes; /* for chunks, one at least; 0: no bound */
    char *folder;       /* for what passes it, or NULL */
    uint64_t spilled;   /* keys in the file */
    int fd;             /* of the file; -1: none yet */
} bly_kept;

/* folder is copied; NULL: everything stays in memory. */
bly_status bly_kept_open(const bly_mem *mem, bool valued, uint64_t max_bytes,
                         const char *folder, bly_kept *out);
void bly_kept_close(bly_kept *k);

/* A place for some of n more keys, and what fills it, values exactly where
 * valued. Places of one chunk may be filled by several threads at once, but
 * where there is a folder it must be done before the next call. BLY_ERANGE past
 * the bound, where there is no folder. After a failure only close. */
typedef struct bly_kept_place {
    uint64_t *hashes, *values;
    size_t n; /* 0 after a failure */
} bly_kept_place;

bly_status bly_kept_reserve(bly_kept *k, size_t n, bly_kept_place *out);
void bly_kept_put(const bly_kept_place *at, const uint64_t *hashes,
                  const uint64_t *values);

/* No more will come: where there is a file, all is in it after this. With
 * `spare`, building needs memory too, several times that of the keys: more than
 * an eighth of the bound goes to a file, where there may be one. */
bly_status bly_kept_seal(bly_kept *k, bool spare);

/* Bytes of the keys in memory. */
uint64_t bly_kept_bytes(const bly_kept *k);

/* Go through what is kept, chunk by chunk. NULL at the end, or where st is
 * set. Start with zeros; bly_kept_end() in any case. */
typedef struct bly_kept_walk {
    const bly_chunk *next;
    bool begun;
    bly_chunk *buffer; /* for what comes from the file */
    uint64_t read;     /* keys */
    bly_status st;
} bly_kept_walk;

const bly_chunk *bly_kept_next(bly_kept *k, bly_kept_walk *w);
void bly_kept_end(bly_kept *k, bly_kept_walk *w);

/* Keys in one array. */
typedef struct bly_joined {
    uint64_t *h, *values; /* values behind h, or NULL */
    size_t n, nbytes;
    bly_block row; /* where that holds them */
} bly_joined;

/* All of them; chunks in memory are released on the way, or are the array. */
bly_status bly_kept_join(bly_kept *k, bly_joined *out);

/* The number of keys in each of `total` parts, where the part of h is h scaled
 * to total. */
bly_status bly_kept_count(bly_kept *k, uint64_t total, uint64_t *counts);

/* The keys of nparts parts from first on, n of them as counted before. */
bly_status bly_kept_gather(bly_kept *k, uint64_t total, uint64_t first,
                           uint64_t nparts, uint64_t n, bly_joined *out);

void bly_joined_free(const bly_kept *k, bly_joined *keys);

/* distinct.c. The number of distinct keys, exactly; all are in memory. */
bly_status bly_kept_distinct(bly_kept *k, uint64_t *out);

/* spilled.c. Fill f, which is empty, from all keys kept, in bounded memory;
 * `set`: each key once. */
bly_status bly_spilled_fill(bly_kept *k, bly_filter *f, bool set,
                            unsigned nthreads);

/* The number of distinct keys, exactly. */
bly_status bly_spilled_distinct(bly_kept *k, uint64_t *out);

#endif
