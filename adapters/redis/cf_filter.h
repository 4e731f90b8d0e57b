/*
 * cf_filter.h - RedisBloom's cuckoo filter, byte for byte
 *
 * Sub-filters of buckets of one-byte fingerprints, 0 for an empty slot. h =
 * murmur64a(item, 0), fingerprint h mod 255 + 1, second hash h xor (f *
 * 0x5bd1e995), bucket = hash mod buckets. A new item goes into the newest
 * sub-filter that has an empty slot for it; where none has, others are moved
 * in the newest, and where that fails the filter grows.
 */
#ifndef BLY_REDIS_CF_FILTER_H
#define BLY_REDIS_CF_FILTER_H

#include "adapters/redis/module.h"

#define CF_MAX_CAPACITY (UINT64_C(1) << 30)
#define CF_MAX_BUCKETS ((UINT64_C(1) << 56) - 1)

typedef struct cf_table {
    uint64_t buckets;
    unsigned char *slots; /* buckets times the bucket size */
} cf_table;

typedef struct cf_shape {
    uint64_t items, buckets, deletes; /* buckets of the first */
    uint64_t ntables;
    uint16_t bucket_size, max_iterations, expansion;
} cf_shape;

typedef struct cf_filter {
    cf_shape s;
    cf_table *tables; /* the oldest first */
} cf_filter;

/* What became of an item. */
typedef enum cf_added { CF_ADDED, CF_THERE, CF_FULL, CF_NO_MEMORY } cf_added;

/* Of a capacity, empty; NULL without memory. The expansion is rounded up to a
 * power of two. */
cf_filter *cf_new(uint64_t capacity, uint16_t bucket_size,
                  uint16_t max_iterations, uint16_t expansion);

/* With the tables that a shape of any origin says, empty; NULL without memory
 * or where such a filter cannot be. */
cf_filter *cf_of_shape(const cf_shape *s);
bool cf_is_sane(const cf_shape *s);

/* Buckets of table i of a sane shape: the first's times expansion^i. */
uint64_t cf_table_buckets(const cf_shape *s, uint64_t i);
void cf_free(void *f);

uint64_t cf_table_bytes(const cf_filter *f, uint64_t i);
uint64_t cf_bytes(const cf_filter *f); /* of all tables */

uint64_t cf_hash(bytes item);
cf_added cf_add(cf_filter *f, uint64_t hash, bool unique);
bool cf_has(const cf_filter *f, uint64_t hash);
uint64_t cf_count(const cf_filter *f, uint64_t hash);
bool cf_remove(cf_filter *f, uint64_t hash);

/* Move fingerprints into older tables and free the newest that is empty. all:
 * go on past a table that cannot be emptied. */
void cf_compact(cf_filter *f, bool all);

/* The stream of SCANDUMP and LOADCHUNK is the tables one after another:
 * array_chunk() of it. */
size_t cf_chunk(const cf_filter *f, uint64_t offset, size_t most,
                unsigned char **at);

#endif
