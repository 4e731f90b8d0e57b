/*
 * bf.h - what the files of BF.* share
 */
#ifndef BLY_REDIS_BF_H
#define BLY_REDIS_BF_H

#include "adapters/redis/bf_filter.h"

/* Register both types; SERVER_OK or SERVER_ERR. */
int bf_types_start(server_ctx *ctx);

/* The type that a filter's scheme is stored as. */
server_type *bf_type_of(const bf_filter *f);

/* Open a key that may be of either type. */
held bf_open(server_ctx *ctx, server_string *name, int mode, server_key **key,
             bf_filter **f);

/* SCANDUMP and LOADCHUNK of both schemes, BF.LOAD. */
int bf_scandump(server_ctx *ctx, server_string **argv, int argc);
int bf_loadchunk(server_ctx *ctx, server_string **argv, int argc);
int bf_load_command(server_ctx *ctx, server_string **argv, int argc);

/* What INFO tells of all filters there are. A server may free a filter in a
 * thread of its own. */
typedef struct bf_totals {
    _Atomic uint64_t objects, filters, items, capacity, bytes;
    _Atomic uint64_t defrag_hits, defrag_misses;
} bf_totals;

extern bf_totals bf_total;

/* Count a filter in, or what it became: called with its numbers before (NULL:
 * it is new) and after (NULL: it goes). */
typedef struct bf_numbers {
    uint64_t filters, items, capacity, bytes;
} bf_numbers;

bf_numbers bf_numbers_of(const bf_filter *f);
void bf_account(const bf_numbers *before, const bf_numbers *after);

/* Size as RedisBloom counts it: 32 for the filter, 64 a sub-filter. */
uint64_t bf_shown_size(const bf_filter *f);

#endif
