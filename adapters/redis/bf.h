/*
 * bf.h - what the files of BF.* share
 */
#ifndef BLY_REDIS_BF_H
#define BLY_REDIS_BF_H

#include "adapters/redis/value.h"

/* The formats of the two types: of RedisBloom, and of valkey-bloom. */
#define BF_REDIS "redisbloom"
#define BF_VALKEY "valkeybloom"

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

/* SCANDUMP and LOADCHUNK of both formats, BF.LOAD. */
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
