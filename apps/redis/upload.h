/*
 * upload.h - a filter into a key, whole or not at all
 */
#ifndef BLY_REDIS_UPLOAD_H
#define BLY_REDIS_UPLOAD_H

#include <bloomery/foreign.h>

#include "apps/redis/router.h"

/* A filter on its way to a key. */
struct upload {
    const char *key;
    char *at; /* the temporary key that it is in; NULL: none */
};

/* May the key be written? It must not be there, or with `replace` hold a
 * filter. False: r->why. */
bool upload_may(struct router *r, const char *key, bool replace);

/* Send f to a temporary key beside the key and compare what the server then
 * says of it with f. False: r->why, and nothing of it stays. u->key is set. */
bool upload_send(struct router *r, struct upload *u, const bly_filter *f);

/* Give it its name. False: r->why, and what was there before still is. */
bool upload_place(struct router *r, struct upload *u, bool replace);

/* Take away what was not placed, if the server can still be reached. */
void upload_drop(struct router *r, struct upload *u);

/* The same as upload_send() for a file of RedisBloom, whose bytes have been
 * checked; and the other way: is there a filter of RedisBloom in a key, and
 * what is it? b holds its bytes and is the caller's; NULL: r->why. */
bool chunks_send(struct router *r, struct upload *u, const void *file,
                 size_t nbytes);
bool chunks_are_in(struct router *r, const char *key);
bly_foreign *chunks_fetch(struct router *r, const char *key, struct block *b);

/* A temporary key is gone after this, whatever happens to who made it. */
#define UNPLACED_SECONDS 86400

/* The name of a key in the slot of another one, that nobody else uses. The
 * caller frees it; NULL: no memory. */
char *key_beside(const char *key, const char *what);

#endif
