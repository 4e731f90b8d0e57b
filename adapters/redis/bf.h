/*
 * bf.h - what the files of BF.* share
 */
#ifndef BLY_REDIS_BF_H
#define BLY_REDIS_BF_H

#include "adapters/redis/config.h"
#include "adapters/redis/redis_value.h"

/* The formats of the two types: of RedisBloom, and of valkey-bloom. */
#define BF_REDIS "redisbloom"
#define BF_VALKEY "valkeybloom"

extern const bly_foreign_spec bf_redis_spec, bf_valkey_spec;

bool bf_is_valkey(const bly_foreign *f);

/* Register both types; SERVER_OK or SERVER_ERR. */
int bf_types_start(server_ctx *ctx);

/* Open a key that may be of either type. */
held bf_open(server_ctx *ctx, server_string *name, int mode, server_key **key,
             bly_foreign **f);

/* The filter that is looked at; NULL, and an error was sent. */
bly_foreign *bf_to_read(server_ctx *ctx, server_string *name, server_key **key);

/* Put a filter that is new here into an open, empty key. */
void bf_keep(server_key *key, bly_foreign *f);

/* The settings. VALKEY, TIGHTENING and RANDOM_SEED are of filters that are made
 * by valkey-bloom's rules. */
enum {
    BF_RATE,
    BF_CAPACITY,
    BF_EXPANSION,
    BF_VALKEY_CAPACITY,
    BF_VALKEY_EXPANSION,
    BF_VALKEY_RATE,
    BF_TIGHTENING,
    BF_MEMORY_LIMIT,
    BF_RANDOM_SEED,
    BF_DEFRAG,
    BF_VALKEY_RULES,
    BF_HUGE_PAGES,
    BF_AHEAD,
    BF_NSETTINGS
};

#define BF_MAX_EXPANSION 32768

extern setting bf_settings[BF_NSETTINGS];

static inline double bf_now(int which)
{
    return bf_settings[which].value;
}

/* Bytes that a key may take, 0 for any: what a primary has allowed is not asked
 * again. */
uint64_t bf_limit(server_ctx *ctx);
#define BF_OVER_LIMIT "ERR operation exceeds bloom object memory limit"

/* Are filters made by valkey-bloom's rules unless the command says otherwise?
 */
bool bf_by_valkey_rules(server_ctx *ctx);

/* What BF.ADD and MADD make in an open, empty key; NULL, and an error was
 * sent. */
bly_foreign *bf_make_usual(server_ctx *ctx, server_string *name,
                           server_key *key);

/* How much larger each next sub-filter is; 0: it does not scale. */
uint32_t bf_expansion(const bly_foreign *f);

/* Items that a filter of valkey-bloom takes at most: it ends at the limit, or
 * where rates end. */
uint64_t bf_scales_to(const bly_foreign *f);

/* The filter that is to be added to; NULL, and whether it is to be made: if
 * not, an error was sent. */
bly_foreign *bf_for_adding(server_ctx *ctx, server_string *name,
                           server_key **key, bool *missing);

/* Add the items from argv[first] on, reply with an array or, for BF.ADD, with
 * one value. */
void bf_add_and_tell(server_ctx *ctx, server_string **argv, int argc, int first,
                     bly_foreign *f, bool array);

/* Commands: of bf_make.c, of bf_info.c, and of bf_dump.c. */
int bf_reserve(server_ctx *ctx, server_string **argv, int argc);
int bf_insert(server_ctx *ctx, server_string **argv, int argc);
int bf_card(server_ctx *ctx, server_string **argv, int argc);
int bf_info(server_ctx *ctx, server_string **argv, int argc);
int bf_debug(server_ctx *ctx, server_string **argv, int argc);
int bf_scandump(server_ctx *ctx, server_string **argv, int argc);
int bf_loadchunk(server_ctx *ctx, server_string **argv, int argc);
int bf_load_command(server_ctx *ctx, server_string **argv, int argc);

/* What INFO reports about all filters. A server may free a filter in a
 * thread of its own. */
typedef struct bf_totals {
    _Atomic uint64_t objects, filters, items, capacity, bytes;
} bf_totals;

extern bf_totals bf_total;

/* Count what was added to a filter that had so many sub-filters before. */
void bf_account_added(const bly_foreign *f, size_t nparts, uint64_t items);

/* May the server move filters when it defragments its memory? */
bool bf_may_move(void);

#endif
