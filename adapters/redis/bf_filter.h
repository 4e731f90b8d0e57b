/*
 * bf_filter.h - the Bloom filters of RedisBloom and of valkey-bloom, bit for
 * bit
 *
 * A filter is a chain of sub-filters, the oldest first; a full one is followed
 * by a larger one with a lower rate. The two peers differ in sizes, rates and
 * hashing, and a filter keeps to the rules of its scheme for life:
 *
 *     RedisBloom     bits = c |ln e| / ln^2 2, rounded up to 64; the first rate
 *                    is half of what was asked, each next half of the last;
 *                    Murmur64A, probe i at (a + i b) mod bits
 *     valkey-bloom   whole bytes; the first rate is what was asked, each next
 *                    the last times a tightening; SipHash-1-3 twice, with a
 *                    seed of 32 bytes
 *
 * An item is hashed once into two words, and every sub-filter derives its
 * probes from these; so a batch is hashed first, fetched ahead, then touched.
 */
#ifndef BLY_REDIS_BF_FILTER_H
#define BLY_REDIS_BF_FILTER_H

#include "adapters/redis/module.h"

typedef enum bf_scheme { BF_REDIS, BF_VALKEY } bf_scheme;

/* Options of RedisBloom's header. */
#define BF_EXACT 1u  /* bits as computed, not a power of two */
#define BF_HASH64 4u /* Murmur64A; else Murmur2 */
#define BF_NONSCALING 8u
#define BF_KNOWN_OPTIONS 15u

typedef struct bf_link {
    uint64_t capacity, items;
    double error;          /* rate of this sub-filter */
    double bits_per_entry; /* RedisBloom's */
    uint64_t bits, nbytes;
    uint32_t hashes;
    uint8_t n2; /* RedisBloom's old filters: bits = 2^n2; else 0 */
    unsigned char *data;
} bf_link;

typedef struct bf_filter {
    bf_scheme scheme;
    uint64_t items;
    uint32_t options;   /* RedisBloom */
    uint32_t expansion; /* 0: non-scaling */
    double rate;        /* asked for */
    double tightening;  /* valkey-bloom */
    bool random_seed;   /* valkey-bloom */
    unsigned char seed[32];
    uint64_t nlinks;
    bf_link *links;
} bf_filter;

typedef enum bf_added {
    BF_ADDED,
    BF_THERE,
    BF_FULL,      /* does not scale, and holds its capacity */
    BF_NO_MEMORY, /* or past the limit */
    BF_NO_RATE,   /* the next rate would be zero */
    BF_NO_LINK    /* too many sub-filters */
} bf_added;

/* Two words an item is hashed to. */
typedef struct bf_hash {
    uint64_t a, b;
} bf_hash;

/* What is to be made. */
typedef struct bf_wish {
    bf_scheme scheme;
    double rate;
    uint64_t capacity;
    uint32_t expansion; /* 0: non-scaling */
    double tightening;
    bool random_seed;
    unsigned char seed[32];
} bf_wish;

bf_filter *bf_new(const bf_wish *w);
void bf_free(void *f);

/* For loaders: an empty filter for n sub-filters, to be filled in. A link must
 * pass bf_link_is_sane() before it is used; its data is then of nbytes. */
bf_filter *bf_blank(bf_scheme scheme, uint64_t nlinks);
bool bf_link_is_sane(const bf_filter *f, const bf_link *l);

uint64_t bf_bytes(const bf_filter *f);    /* of all bit arrays */
uint64_t bf_capacity(const bf_filter *f); /* of all sub-filters */

/* The rate that the filter has, by formula, with the items it holds. */
double bf_rate_now(const bf_filter *f);

/* Sizes of a sub-filter for capacity and rate; false where it cannot be. */
bool bf_size(bf_scheme scheme, double error, uint64_t capacity, bf_link *out);

/* valkey-bloom: whether a filter may grow to hold `to` items, and how many it
 * then holds; BF_ADDED, or why not. limit: bytes of a key. */
bf_added bf_scales_to(const bf_wish *w, uint64_t to, uint64_t limit,
                      uint64_t *holds);

void bf_hash_items(const bf_filter *f, const bytes *items, size_t n,
                   bf_hash *out);

bool bf_has(const bf_filter *f, bf_hash h);

/* limit: bytes that all bit arrays may take, 0 for none. */
bf_added bf_add(bf_filter *f, bf_hash h, uint64_t limit);

/* The same for up to BF_BATCH hashes, and what they touch is fetched ahead.
 * Adding gives the number that are done, at least one: a filter that grows is
 * looked at anew. */
enum { BF_BATCH = 128 };
void bf_has_batch(const bf_filter *f, const bf_hash *h, size_t n, bool *found);
size_t bf_add_batch(bf_filter *f, const bf_hash *h, size_t n, uint64_t limit,
                    bf_added *what);

/* array_chunk() of the sub-filters one after another. */
size_t bf_chunk(const bf_filter *f, uint64_t offset, size_t most,
                unsigned char **at);

#endif
