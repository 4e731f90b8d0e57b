/*
 * upload.h - a filter into a key, whole or not at all
 */
#ifndef BLY_REDIS_UPLOAD_H
#define BLY_REDIS_UPLOAD_H

#include <bloomery/foreign.h>

#include "apps/redis/redis_router.h"

#define UPLOAD_ATTEMPTS 4 /* each waits for a successor as router.c does */
#define UPLOAD_HEAD 288   /* up to the checksum of the payload */

/* A filter on its way to a key. */
struct upload {
    const char *key;
    char *at; /* the temporary key that it is in; NULL: none */
    unsigned char head[UPLOAD_HEAD]; /* of the file, with its checksum */
};

/* May the key be written? It must not be there, or with `replace` hold a
 * filter. False: r->why. */
bool upload_may(struct router *r, const char *key, bool replace);

/* Send f to a temporary key beside the key and compare what the server then
 * says of it with f. False: r->why, and nothing of it stays. u->key is set. */
bool upload_send(struct router *r, struct upload *u, const bly_filter *f);

/* Give it its name. False: r->why, and what was there before still is. */
bool upload_place(struct router *r, struct upload *u, bool replace);

/* Wait until n replicas of the server with a key have all that was written to
 * it through r; n 0: one of them, if there is any, for as long as a piece may
 * take. False: r->why. */
bool upload_settle(struct router *r, const char *key, uint64_t n);

/* How long that is, in ms; and what a reply to WAIT means. False: r->why. */
uint64_t upload_patience(const struct router *r);
bool upload_settled(struct router *r, const char *key, uint64_t n,
                    const redisReply *reply);

/* Is what was wrong no fault of ours or the server's, but a failover on the
 * way? Then it is worth another try. If what was sent is gone since the server
 * evicts keys, r->why says so. */
bool upload_may_retry(struct router *r, const char *at);

/* Take away what was not placed, if the server can still be reached. */
void upload_drop(struct router *r, struct upload *u);

/* How keys of BF.* and CF.* go in and out, by the format of their file; and by
 * what is in a key. NULL: some other way. */
const struct chunk_family *chunks_of_format(const char *format);
const struct chunk_family *chunks_in(struct router *r, const char *key);

/* The same as upload_send() for such a file, whose bytes have been checked; and
 * the other way: the filter in a key. b holds its bytes and is the caller's;
 * NULL: r->why. */
bool chunks_send(struct router *r, const struct chunk_family *c,
                 struct upload *u, const void *file, size_t nbytes);
bly_foreign *chunks_fetch(struct router *r, const struct chunk_family *c,
                          const char *key, struct block *b);

/* A temporary key is gone after this, whatever happens to who made it. */
#define UNPLACED_SECONDS 86400

/* The name of a key in the slot of another one, that nobody else uses. The
 * caller frees it; NULL: no memory. */
char *key_beside(const char *key, const char *what);

#endif
