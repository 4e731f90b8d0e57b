/*
 * topk.h - bly_topk from the inside, for files
 */
#ifndef BLY_TOPK_H
#define BLY_TOPK_H

#include <bloomery/sketch.h>

#include "core/memory.h"
#include "sketch/origin.h"

#define TOPK_MAX_K (1u << 24)
#define TOPK_LINE 8 /* cells of a cache line */
#define TOPK_COUNT_BITS 48
#define TOPK_COUNT_MAX ((UINT64_C(1) << TOPK_COUNT_BITS) - 1)
#define TOPK_CHANCES 1024

typedef struct topk_entry {
    uint64_t hash, count;
    unsigned char *key; /* len bytes, one at least; NULL where len is 0 */
    size_t len;
    uint32_t at; /* in the heap */
} topk_entry;

typedef struct topk_slot {
    uint64_t hash;
    uint32_t entry; /* number + 1; 0: free */
} topk_slot;

struct bly_topk {
    bly_mem mem;
    bly_origin origin;
    double decay;
    uint64_t random, total;
    bly_block block; /* nlines lines of TOPK_LINE cells */
    uint64_t nlines;
    uint32_t k, n;       /* the longest that the list may be, and keys there */
    uint32_t room;       /* places for entries, k in the end */
    topk_entry *entries; /* room of them */
    uint32_t *heap;      /* numbers of entries, the lightest first */
    topk_slot *slots;    /* hash to entry: open addressing, at most half full */
    uint32_t nslots;     /* a power of two */
    uint64_t salt[2];    /* of the places of hashes in slots */
    topk_entry left;     /* who was pushed out by the last addition */
    bool has_left;
    uint64_t chance[TOPK_CHANCES]; /* decay^count as a share of 2^64 */
};

/* An empty one of given sizes. */
bly_status bly_topk_make(const bly_mem *mem, uint32_t k, uint64_t nlines,
                         double decay, bly_topk **out);

/* Add a key as the last of the heap, which was saved in its order. BLY_EFORMAT
 * if no list could have it there. */
bly_status bly_topk_restore(bly_topk *t, uint64_t hash, uint64_t count,
                            const void *key, size_t len);

/* What a file holds of it: the cells, and for each key on the list, in the
 * order of the heap, 8 bytes each for its hash, its count and its length; then
 * the bytes of all keys. */
uint64_t bly_topk_body_bytes(const bly_topk *t);
bool bly_topk_body_put(const bly_topk *t, bly_put *put, void *ctx);

/* An empty list t, made for these sizes, becomes that of a body. */
bly_status bly_topk_body_load(bly_topk *t, uint64_t nlisted,
                              const unsigned char *from, uint64_t nbytes);

#endif
