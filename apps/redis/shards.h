/*
 * shards.h - one filter in many keys
 */
#ifndef BLY_REDIS_SHARDS_H
#define BLY_REDIS_SHARDS_H

#include "apps/redis/redis_router.h"

#define SHARDS_MAX 4096

struct shard {
    char *key; /* "words:{7}" */
    size_t len;
    unsigned slot;
};

/* A filter on servers: one key, or a shard a key. */
struct shards {
    const char *name;
    size_t n;
    struct shard *at;
    bool is_sharded;
    bool counts;    /* its kind counts: adding a key twice is not once */
    char kind[40];  /* of a sharded one, as its meta key says */
    char build[24]; /* a number of its own for every time it is built */
};

/* The filter in one key; or in n shards of a name. False: no memory. */
bool shards_one(struct shards *s, const char *key);
bool shards_many(struct shards *s, const char *name, size_t n);
void shards_free(struct shards *s);

/* What the meta key of a name says, if there is one. False: r->why. */
bool shards_read(struct router *r, const char *name, struct shards *s);

/* Write the meta key, with a new number, or take it away. False: r->why. */
bool shards_write(struct router *r, struct shards *s, uint64_t items,
                  double fpr);
bool shards_hide(struct router *r, const char *name);

/* Is it still the filter that was read? False, and r->why, if it was built
 * anew since, or is gone. */
bool shards_same(struct router *r, const struct shards *s);

/* Add to r->why, which says what is wrong with a name, that it is one of a
 * filter in shards, if it is. */
void shards_hint(struct router *r, const char *name);

/* Whether there is a meta key of that name: 1, 0, or -1 and r->why. */
int shards_there(struct router *r, const char *name);

/* The hash that chooses shards, which is not that of the filters in them. */
const bly_hasher *shard_hasher(void);

/* The shard of key i of a batch, whose hashes are those of shard_hasher(). */
size_t shards_choose(const struct shards *s, const struct batch *b, size_t i);

/* Keys of a batch, those of a shard together and in their order:
 * order[start[i]] up to order[start[i + 1]] are those of shard i. */
struct shard_split {
    uint16_t order[BATCH];
    uint16_t start[SHARDS_MAX + 1];
};

void shards_split(const struct shards *s, const struct batch *b,
                  struct shard_split *out);

#endif
