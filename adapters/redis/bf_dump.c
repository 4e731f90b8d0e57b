/*
 * bf_dump.c - Bloom filters leave and come: RDB, AOF, SCANDUMP, BF.LOAD
 *
 * Two types: MBbloom-- is RedisBloom's, versions 0 to 4, and bloomfltr is
 * valkey-bloom's. Whatever bytes come, the library takes only what is safe to
 * use, and asks for no memory beyond what the bytes themselves are, or what the
 * system has.
 */
#include <string.h>

#include "adapters/redis/bf.h"

#define REDIS_ENCODING 4
#define VALKEY_ENCODING 1

static server_type *redis_type, *valkey_type;

static const bly_foreign_spec redis_spec = { .format = BF_REDIS,
                                             .mem = &server_memory };
static const bly_foreign_spec valkey_spec = { .format = BF_VALKEY,
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

/* Bytes that are counted besides the arrays of so many sub-filters, as the
 * library counts them: it is asked for what there is, and here is how that came
 * about. */
static uint64_t bytes_besides(bool valkey, size_t nparts)
{
    size_t room = nparts > 1 ? 4 : 1;
    while (room < nparts)
        room *= 2;
    return valkey ? 208 * nparts + 8 * room : 64 * nparts;
}

void bf_account_added(const bly_foreign *f, size_t nparts, uint64_t items)
{
    const size_t now = bly_foreign_nparts(f);
    bf_total.items += items;
    if (nparts == now)
        return;
    bf_total.bytes += bytes_besides(bf_is_valkey(f), now) -
                      bytes_besides(bf_is_valkey(f), nparts);
    for (; nparts < now; nparts++) {
        bly_foreign_sizes s;
        bly_foreign_size(f, nparts, &s);
        bf_total.filters++;
        bf_total.capacity += s.capacity;
        bf_total.bytes += s.nbytes;
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

/* ----------------------------------------------------------------- commands */

static int reply_nothing(server_ctx *ctx)
{
    return srv.ReplyWithStringBuffer(ctx, "", 0);
}

int bf_scandump(server_ctx *ctx, server_string **argv, int argc)
{
    long long at;
    if (argc != 3)
        return srv.WrongArity(ctx);
    server_key *key;
    const bly_foreign *f = bf_to_read(ctx, argv[1], &key);
    if (f && srv.StringToLongLong(argv[2], &at) != SERVER_OK)
        reply_error(ctx, "Second argument must be numeric");
    else if (f && bf_is_valkey(f))
        reply_error(ctx, "ERR not supported for a filter of valkey-bloom: "
                         "use DUMP");
    else if (f)
        reply_piece(ctx, f, at, reply_nothing);
    key_close(key);
    return SERVER_OK;
}

int bf_loadchunk(server_ctx *ctx, server_string **argv, int argc)
{
    long long at;
    if (argc != 4)
        return srv.WrongArity(ctx);
    if (srv.StringToLongLong(argv[2], &at) != SERVER_OK)
        return reply_error(ctx, "ERR Second argument must be numeric");
    const bytes data = arg_bytes(argv[3]);
    server_key *key;
    bly_foreign *f;
    bool changed = true;
    const held what = bf_open(ctx, argv[1], SERVER_WRITE, &key, &f);
    const char *wrong = NULL;
    if (what == HELD_OTHER || (f && bf_is_valkey(f))) {
        wrong = WRONGTYPE;
    } else if (f) {
        const size_t n = piece_take(f, at, data, &changed);
        if (n == 0)
            wrong = "ERR invalid offset - no link found";
        else if (n != data.n)
            wrong = "ERR invalid chunk - Too big for current filter";
    } else if (at != 1) {
        wrong = "ERR not found";
    } else if (bly_foreign_start(&redis_spec, data.at, data.n, &f)) {
        wrong = "ERR received bad data";
    } else {
        bf_keep(key, f);
    }
    return key_written(ctx, key, argv[1], changed ? "bloom.loadchunk" : NULL,
                       wrong);
}

int bf_load_command(server_ctx *ctx, server_string **argv, int argc)
{
    if (argc != 3)
        return srv.WrongArity(ctx);
    server_key *key;
    bly_foreign *f;
    const held what = bf_open(ctx, argv[1], SERVER_WRITE, &key, &f);
    const bytes data = arg_bytes(argv[2]);
    const char *wrong = NULL;
    if (what != HELD_NONE)
        wrong = "BUSYKEY Target key name already exists.";
    else if (data.n && data.at[0] != 1)
        wrong = "ERR bloom object decoding failed. Unsupported version";
    else if (bly_foreign_edit(&valkey_spec, data.at, data.n, &f))
        wrong = "ERR bloom object decoding failed";
    else
        bf_keep(key, f);
    return key_written(ctx, key, argv[1], "bloom.load", wrong);
}

/* --------------------------------------------------------------- the server */

static void *redis_load(server_io *io, int encoding)
{
    return welcome(value_load(io, encoding, &redis_spec));
}

static void *valkey_load(server_io *io, int encoding)
{
    return welcome(value_load(io, encoding, &valkey_spec));
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
