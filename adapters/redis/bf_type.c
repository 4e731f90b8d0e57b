/*
 * bf_type.c - Bloom filters as values of the server: opening and keeping them,
 * counting them for INFO, and what the server does with them by itself
 *
 * Two types: MBbloom-- is RedisBloom's, versions 0 to 4, and bloomfltr is
 * valkey-bloom's. Whatever bytes come from an RDB file, the library takes only
 * what is safe to use, and asks for no memory beyond what the bytes themselves
 * are, or what the system has.
 */
#include <string.h>

#include "adapters/redis/bf.h"

#define REDIS_ENCODING 4
#define VALKEY_ENCODING 1

static server_type *redis_type, *valkey_type;

const bly_foreign_spec bf_redis_spec = { .format = BF_REDIS,
                                         .mem = &server_memory };
const bly_foreign_spec bf_valkey_spec = { .format = BF_VALKEY,
                                          .mem = &server_memory };

bool bf_is_valkey(const bly_foreign *f)
{
    return bly_foreign_format(f)[0] == BF_VALKEY[0];
}

held bf_open(server_ctx *ctx, server_string *name, int mode, server_key **key,
             bly_foreign **f)
{
    void *value;
    held what = key_open(ctx, name, mode, redis_type, key, &value);
    if (what == HELD_OTHER && srv.KeyType(*key) == SERVER_KEY_MODULE &&
        srv.ModuleTypeGetType(*key) == valkey_type) {
        value = srv.ModuleTypeGetValue(*key);
        what = HELD_OURS;
    }
    *f = value;
    return what;
}

bly_foreign *bf_to_read(server_ctx *ctx, server_string *name, server_key **key)
{
    bly_foreign *f;
    const held what = bf_open(ctx, name, SERVER_READ, key, &f);
    if (what != HELD_OURS)
        reply_error(ctx, what == HELD_NONE ? "ERR not found" : WRONGTYPE);
    return f;
}

/* ------------------------------------------------------------------ numbers */

bf_totals bf_total;

/* A filter comes (1) or goes (-1, which counts down as numbers wrap). */
static void bf_account(const bly_foreign *f, uint64_t times)
{
    const bly_foreign_sizes s = value_sizes(f);
    bf_total.objects += times;
    bf_total.filters += times * s.nparts;
    bf_total.items += times * s.items;
    bf_total.capacity += times * s.capacity;
    bf_total.bytes += times * s.counted;
}

void bf_account_added(const bly_foreign *f, size_t nparts, uint64_t items)
{
    const size_t now = bly_foreign_nparts(f);
    bf_total.items += items;
    for (; nparts < now; nparts++) {
        bly_foreign_sizes s;
        bly_foreign_size(f, nparts, &s);
        bf_total.filters++;
        bf_total.capacity += s.capacity;
        bf_total.bytes += s.counted;
    }
}

/* A filter is one of ours from now on. */
static void *welcome(void *f)
{
    if (f)
        bf_account(f, 1);
    return f;
}

static void bf_release(void *value)
{
    if (value)
        bf_account(value, UINT64_MAX);
    value_free(value);
}

void bf_keep(server_key *key, bly_foreign *f)
{
    srv.ModuleTypeSetValue(key, bf_is_valkey(f) ? valkey_type : redis_type,
                           welcome(f));
}

/* --------------------------------------------------------------- the server */

static void *redis_load(server_io *io, int encoding)
{
    return welcome(value_load(io, encoding, &bf_redis_spec));
}

static void *valkey_load(server_io *io, int encoding)
{
    return welcome(value_load(io, encoding, &bf_valkey_spec));
}

static void *bf_copy(server_string *from, server_string *to, const void *value)
{
    return welcome(value_copy(from, to, value));
}

static void redis_rewrite(server_io *io, server_string *key, void *value)
{
    rewrite_pieces(io, "BF.LOADCHUNK", key, value);
}

/* Bytes that are put one behind another. */
typedef struct gathered {
    char *at;
    size_t n;
} gathered;

static bool gather(void *ctx, const void *at, size_t n)
{
    gathered *g = ctx;
    if (g->at)
        memcpy(g->at + g->n, at, n);
    g->n += n;
    return true;
}

static void valkey_rewrite(server_io *io, server_string *key, void *value)
{
    gathered g = { 0 };
    (void)!bly_foreign_write(value, gather, &g);
    g = (gathered){ .at = srv.Alloc(g.n) };
    (void)!bly_foreign_write(value, gather, &g);
    srv.EmitAOF(io, "BF.LOAD", "sb", key, g.at, g.n);
    srv.Free(g.at);
}

static size_t bf_mem_usage(const void *value)
{
    const bly_foreign_sizes s = value_sizes(value);
    return value_mem_usage(value, 48 + 48 * s.nparts + (size_t)s.nbytes);
}

static int bf_defrag(server_defrag *ctx, server_string *key, void **value)
{
    return bf_may_move() ? value_methods.defrag(ctx, key, value) : 0;
}

int bf_types_start(server_ctx *ctx)
{
    server_methods methods = value_methods;
    methods.rdb_load = redis_load;
    methods.aof_rewrite = redis_rewrite;
    methods.mem_usage = bf_mem_usage;
    methods.free = bf_release;
    methods.copy = bf_copy;
    methods.defrag = bf_defrag;
    redis_type = srv.CreateDataType(ctx, "MBbloom--", REDIS_ENCODING, &methods);
    methods.rdb_load = valkey_load;
    methods.aof_rewrite = valkey_rewrite;
    valkey_type =
        srv.CreateDataType(ctx, "bloomfltr", VALKEY_ENCODING, &methods);
    return redis_type && valkey_type ? SERVER_OK : SERVER_ERR;
}
