/*
 * lru.h - the documents that one proxy keeps, the least recent one goes first
 */
#ifndef BLY_DIGEST_LRU_H
#define BLY_DIGEST_LRU_H

#include <stdbool.h>
#include <stdint.h>

/* A ring of `room` nodes and a table that finds them by document. */
struct lru {
    struct lru_node *nodes; /* node 0 is the ring's end: next is the newest */
    uint32_t *table;        /* open addressing; 0: free */
    uint32_t mask, n, room;
};

#define LRU_NONE UINT32_MAX /* no document */

/* An empty one for `room` documents, up to 2^30; false if there is no memory.
 */
bool lru_make(struct lru *c, uint32_t room);
void lru_free(struct lru *c);

/* Is the document there? If so it is now the most recent one. */
bool lru_touch(struct lru *c, uint32_t document);

/* Keep a document that is not there: the one that went for it, or LRU_NONE. */
uint32_t lru_keep(struct lru *c, uint32_t document);

#endif
