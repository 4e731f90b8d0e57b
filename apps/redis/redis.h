/*
 * redis.h - what the verbs of `bloomery redis` share
 *
 * Nothing here needs hiredis, so that the command's row and its help are the
 * same whether it was built with it or not.
 */
#ifndef BLY_REDIS_H
#define BLY_REDIS_H

#include "io/keys.h"
#include "io/sizing.h"
#include "report/fields.h"

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
    uint64_t shards, replicas;
    bool cluster, replace, invert, count, json;
};

/* The password in a file: its first line. NULL, with the reason printed, if
 * there is none. To be wiped by password_wipe(). */
const char *password_read(const char *path);
void password_wipe(void);

/* A verb: `bloomery redis VERB OPERANDS`. Operands are those behind the verb,
 * as many as it wants at least. */
typedef int redis_verb(const struct redis_args *args, struct list *operands);

redis_verb redis_load, redis_dump, redis_has, redis_add, redis_build,
    redis_bench, redis_info;

/* -------------------------------------------------------------- reporting */

struct redis_moved {
    const char *file, *key, *kind, *format; /* one of the last two */
    uint64_t bytes;
};

struct redis_built {
    const char *key, *kind;
    uint64_t keys, shards, capacity, bytes;
    double fpr;
    bool several;
};

struct redis_asked {
    uint64_t asked, maybe, picked;
};

struct redis_added {
    const char *key;
    uint64_t keys, fresh;
};

struct redis_fact {
    const char *name, *value; /* value NULL: the server does not know */
};

struct redis_info {
    const char *key, *type;
    const uint64_t *shards; /* NULL: it is one key */
    const struct redis_fact *facts;
    size_t nfacts;
};

struct redis_bench_row {
    const char *command;
    unsigned batch;
    double command_ns, cpu_ns;
};

struct redis_benched {
    const char *server;
    uint64_t items, rounds;
    const struct redis_bench_row *rows;
    size_t nrows;
};

/* What load and dump tell; and load of shards, which build.c does as it builds
 * them. */
void moved_report(const struct redis_args *args, FILE *to,
                  struct redis_moved moved);
int redis_load_shards(const struct redis_args *args, const char *folder,
                      const char *name);

extern const struct field redis_moved_fields[], redis_built_fields[],
    redis_asked_fields[], redis_added_fields[], redis_row_fields[],
    redis_benched_fields[], redis_info_fields[];

#endif
