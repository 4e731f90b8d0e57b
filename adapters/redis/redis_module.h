/*
 * redis_module.h - what the families of commands share
 *
 * A family is a kind of key with its commands: a row in FAMILIES. Its file
 * holds the table of its commands, from which come registration, ACL
 * categories, COMMAND DOCS and the documentation; redis_module.c walks the
 * rows. Adding a command is one row in its family's table.
 */
#ifndef BLY_REDIS_MODULE_H
#define BLY_REDIS_MODULE_H

#include <bloomery/foreign.h>

#include "host/foreign_host.h"

#include "adapters/redis/redis_server.h"

#define MODULE_NAME "bf"

/* An argument as COMMAND DOCS shows it: "key", "error_rate:double",
 * "[EXPANSION expansion:integer]", "[NONSCALING]", "item...". */
typedef struct command_row {
    const char *name;       /* "bf.add" */
    const char *flags;      /* "write deny-oom" */
    const char *categories; /* besides the family's: "write fast" */
    const char *since, *summary, *complexity, *arguments;
    server_function *run;

    /* Keys that are read besides argument 1: where a number of them stands that
     * they follow (CMS.MERGE: 2); -1: all arguments are keys; 0: none. */
    int numkeys;
} command_row;

typedef struct family {
    const char *category; /* "bloom": the ACL category of all its commands */
    const command_row *commands; /* ends with a name of NULL */

    /* Register types and configuration; SERVER_OK or SERVER_ERR. */
    int (*start)(server_ctx *ctx);

    /* Take a pair of loadmodule's arguments: 1 taken, 0 not its own, -1 bad
     * (and logged). NULL: it has none. */
    int (*argument)(server_ctx *ctx, const char *name, server_string *value);

    /* What INFO's section tells of its keys, and other fields of it. NULL:
     * none. */
    const struct tally *count;
    void (*info)(server_info *info);
} family;

#define FAMILIES(X) X(bf) X(cf) X(cms) X(topk) X(tdigest) X(bly)

#define FAMILY_DECLARE_(name) extern const family family_##name;
FAMILIES(FAMILY_DECLARE_)
#undef FAMILY_DECLARE_

/* ----------------------------------------------------------------- replies */

#define WRONGTYPE \
    "WRONGTYPE Operation against a key holding the wrong kind of value"

bool is_resp3(server_ctx *ctx);

/* Is this a primary's word, or a log's? What was allowed there is not asked
 * again. */
bool is_told(server_ctx *ctx);

/* May the client of a command be answered later? */
bool may_wait(server_ctx *ctx);

/* A boolean in RESP3, 1 or 0 in RESP2. */
void reply_bool(server_ctx *ctx, bool yes);

/* A map of n pairs in RESP3, an array of 2 n in RESP2. */
void reply_map(server_ctx *ctx, long n);

/* A pair of a map whose value is a number. */
void reply_number(server_ctx *ctx, const char *name, uint64_t value);

/* printf for errors: servers before 7.2 have none. Returns SERVER_OK, so that
 * a command can end with it. */
__attribute__((format(printf, 2, 3))) int reply_error(server_ctx *ctx,
                                                      const char *format, ...);

/* --------------------------------------------------------------- arguments */

/* Bytes of an argument. */
typedef struct redis_bytes {
    const char *at;
    size_t n;
} bytes;

bytes arg_bytes(const server_string *s);
bly_bytes arg_item(const server_string *s); /* the same for the library */

/* The items of up to n arguments that go to the library together, `most` of
 * them at most (ITEMS_BATCH there): how many they are. */
enum { ITEMS_BATCH = 128 };
size_t arg_items(server_string **argv, int n, size_t most, bly_bytes *items);

/* Whether it is that word, in any case of letters. */
bool arg_is(const server_string *s, const char *word);

/* Whether it begins with these letters: BF.INSERT and CF.INSERT look at no
 * more of their words. */
bool arg_starts(const server_string *s, const char *letters);

/* Whether it is a number from min to max, 0 or above; only then *out is it. */
bool arg_number(const server_string *s, long long min, long long max,
                uint64_t *out);

/* -------------------------------------------------------------------- keys */

/* What a key holds: its value, where it is of the type. */
typedef enum held { HELD_NONE, HELD_OTHER, HELD_OURS } held;

/* Open a key for reading or writing (SERVER_READ, SERVER_WRITE), tell what it
 * holds. It must be closed; NULL may be, and a missing key that is only read
 * may be NULL. */
held key_open(server_ctx *ctx, server_string *name, int mode,
              const server_type *type, server_key **key, void **value);
void key_close(server_key *key);

/* The same for what has to be there: its value; NULL, and an error was sent. */
void *key_value(server_ctx *ctx, server_string *name, int mode,
                const server_type *type, const char *missing, server_key **key);

/* The end of a command that replies OK, or what is wrong ("": that was sent):
 * tell replicas and listeners, unless event is NULL, which is that nothing
 * changed; close the key. Returns SERVER_OK. */
int key_written(server_ctx *ctx, server_key *key, server_string *name,
                const char *event, const char *wrong);

/* A key was changed: WATCH and caches of clients hear of it, and who listens
 * to events, class generic. */
void key_changed(server_ctx *ctx, const char *event, server_string *key);

/* Was this the key that was opened last to be written to, and then changed? */
bool key_has_changed(const server_key *key);

/* What a command did to its items, for replicas: the command as it came, if all
 * items were taken. One that was refused here might be taken there, where other
 * limits or more memory are; so those before and behind it go out in commands
 * of their own, each with a run of items. */
typedef struct effects {
    server_ctx *ctx;
    const char *command;
    server_string *name;
    server_string **run; /* the first that was not told yet */
    bool is_insert;      /* items stand behind ITEMS */
    bool refused;        /* any */
    bool changed;        /* the key, since then */
    bool told;           /* a run */
} effects;

/* The item (with what belongs to it) at [at, next) was refused. */
void effects_refuse(effects *e, server_string **at, server_string **next);

/* All is done; whether anything changed. */
bool effects_end(effects *e, server_string **end);

/* For aof_rewrite of a type whose commands cannot make a value anew: write
 * RESTORE with the key's dump. */
void rewrite_as_restore(server_io *io, server_string *key, void *value);

/* ------------------------------------------------------------------ memory */

/* Giving memory back takes the time of an allocation for each of these bytes:
 * what UNLINK leaves to another thread is 64 of them. */
#define FREE_STEP (UINT64_C(64) << 10)

/* Zeroed memory of the server's allocator, or NULL: never ends the server. A
 * size that the system cannot have is refused before it is asked for. */
void *memory_try(uint64_t nbytes);

/* The same with any bytes in it, for what is filled in order: room that is
 * never touched costs nothing. */
void *memory_try_raw(uint64_t nbytes);
void memory_free(void *at);

/* MEMORY USAGE tells what the allocator gave for the blocks of a small key, and
 * of a large one what was asked for: an allocator rounds large blocks up by as
 * much as a fifth, and pages that nobody touches take nothing. Is a key of so
 * many bytes small? Then memory_weigh(), where functions are called that move
 * blocks, adds them up in a size_t and moves nothing. */
bool memory_is_weighed(uint64_t nbytes);
void *memory_weigh(void *sum, void *at);

/* For defrag: let the server move what a pointer, given by its address, points
 * to. */
void memory_moved(server_defrag *ctx, void *pointer);

/* Bytes that there is memory for now. A thread cannot ask the server, so it is
 * told how many it may take, which become fewer; NULL: it takes no more. */
uint64_t memory_room(void);
void memory_aside(uint64_t *room);

/* What INFO tells of a family: how many keys it has, and how many bytes they
 * hold. A server may free keys in a thread of its own. */
typedef struct tally {
    _Atomic uint64_t keys, bytes;
} tally;

/* The same for the library: bly_mem whose ctx is a tally that counts bytes, or
 * NULL. */
void *server_alloc(void *ctx, size_t n);
void *server_zalloc(void *ctx, size_t n);
void server_release(void *ctx, void *at, size_t n);

#define SERVER_MEMORY(tally_)                             \
    {                                                     \
        .alloc = server_alloc, .release = server_release, \
        .zalloc = server_zalloc, .ctx = (tally_)          \
    }
extern const bly_mem server_memory;

#endif
