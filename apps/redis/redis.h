/*
 * redis.h - what the verbs of `bloomery redis` share
 *
 * Nothing here needs hiredis, so that the command's row and its help are the
 * same whether it was built with it or not.
 */
#ifndef BLY_REDIS_H
#define BLY_REDIS_H

#include <stdbool.h>
#include <stdint.h>

#include "io/keys.h"
#include "io/sizing.h"
#include "report/words.h"

/* The server to talk to. */
struct redis_login {
    const char *host, *user, *password_file;
    const char *password;   /* NULL: none */
    uint64_t port, timeout; /* in seconds */
};

/* What the options say. Each verb takes some of them. */
struct redis_args {
    struct redis_login login;
    struct keys keys;
    struct sizing sizing;
    uint64_t shards;
    bool cluster, replace, invert, count, json;
};

/* A verb: `bloomery redis VERB OPERANDS`. Operands are those behind the verb,
 * as many as it wants at least. */
typedef int redis_verb(const struct redis_args *args, struct list *operands);

redis_verb redis_load, redis_dump, redis_has, redis_add, redis_build,
    redis_bench;

#endif
