/*
 * held.h - rows in memory, found by their keys
 */
#ifndef BLY_JOIN_HELD_H
#define BLY_JOIN_HELD_H

#include <bloomery.h>

/* A row: the key as it is compared, and behind it what is printed of it. */
struct held_row {
    struct held_row *next; /* the next one of the same key, in their order */
    struct held_row *last; /* of the first one of a key: the last one */
    uint64_t hash;
    uint32_t nkey, nrest;
    bool matched; /* of the first one of a key: somebody asked for it */
    char bytes[];
};

/* Zero is empty. */
struct held {
    uint64_t memory; /* that may be taken */
    uint64_t bytes;  /* taken, the table to come included */
    uint64_t n;      /* rows */
    struct held_segment *first, *segment;
    struct held_row **table; /* of first rows; made by held_index() */
    size_t mask;
};

/* Does another row with these lengths fit? The first one always does. */
bool held_fits(const struct held *h, size_t nkey, size_t nrest);

/* False if there is no memory. */
bool held_add(struct held *h, uint64_t hash, bly_bytes key, bly_bytes rest);

/* Once all rows are there. False if there is no memory. */
bool held_index(struct held *h);

/* The first row of a key; NULL: none. */
struct held_row *held_find(const struct held *h, uint64_t hash, bly_bytes key);

/* All rows in their order, until `each` returns false: false then. */
typedef bool held_fn(void *ctx, const struct held_row *row);
bool held_each(const struct held *h, held_fn *each, void *ctx);

/* Rows whose key nobody asked for; after held_index(). */
uint64_t held_unmatched(const struct held *h);

/* Empty again; the limit stays. */
void held_clear(struct held *h);

#endif
