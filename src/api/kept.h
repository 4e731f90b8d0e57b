/*
 * kept.h - the hashes that a builder keeps until it has them all
 *
 * In chunks in memory, 8 bytes per key and 16 with a value. If the system
 * allows it, chunks lie one behind the other, and form one array already. With
 * a bound and a folder, chunks that would exceed the bound go to a temporary
 * file in the folder. The file has no name, so nothing is left behind whatever
 * happens. What is kept is read again chunk by chunk, or gathered in one array:
 * all of it, or the keys of some shards.
 *
 * Only one thread may call at a time, except to read chunks that are in memory
 * and to fill places in them.
 */
#ifndef BLY_KEPT_H
#define BLY_KEPT_H

#include "core/memory.h"

/* 2^17 keys, 1 MiB of hashes: little compared with many chunks, and enough to
 * be work for a thread. */
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
    char *folder;       /* for what exceeds it, or NULL */
    uint64_t spilled;   /* keys in the file */
    int fd;             /* of the file; -1: none yet */
} bly_kept;

/* folder is copied; NULL: everything stays in memory. */
bly_status bly_kept_open(const bly_mem *mem, bool valued, uint64_t max_bytes,
                         const char *folder, bly_kept *out);
void bly_kept_close(bly_kept *k);

/* Take a place for some of n more keys; and fill it, with values exactly if
 * valued. Places of one chunk may be filled by several threads at once, but if
 * there is a folder, a place must be filled before the next call. BLY_ERANGE
 * past the bound, where there is no folder. After a failure only close. */
typedef struct bly_kept_place {
    uint64_t *hashes, *values;
    size_t n; /* 0 after a failure */
} bly_kept_place;

bly_status bly_kept_reserve(bly_kept *k, size_t n, bly_kept_place *out);
void bly_kept_put(const bly_kept_place *at, const uint64_t *hashes,
                  const uint64_t *values);

/* No more keys will come. If there is a file, all keys are in it after this.
 * With `spare`, building will need memory too, several times that of the keys:
 * so if the keys take more than an eighth of the bound, they go to a file, if
 * one is allowed. */
bly_status bly_kept_seal(bly_kept *k, bool spare);

/* Bytes of the keys in memory. */
uint64_t bly_kept_bytes(const bly_kept *k);

/* Go through the keys, chunk by chunk. NULL at the end, or if st is set. Start
 * with zeros; call bly_kept_end() in any case. */
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

/* All keys; chunks in memory are released on the way, or become the array. */
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
