/*
 * cms.c - CMS.*: count-min sketches
 *
 * The sketches themselves are the library's (src/foreign/rediscms.c); CMS.MERGE
 * is in cms_merge.c.
 */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "adapters/redis/cms.h"

#define CMS_FORMAT "rediscms"
#define CMS_ENCODING 0
#define CMS_CEILING UINT32_MAX

server_type *cms_type;
static tally cms_tally;
static const bly_mem cms_memory = SERVER_MEMORY(&cms_tally);

/* ------------------------------------------------------------------ making */

static int cms_create(server_ctx *ctx, server_string *name, uint64_t width,
                      uint64_t depth)
{
    server_key *key;
    void *value;
    value_words w = {
        .spec = { .format = CMS_FORMAT, .mem = &cms_memory },
    };
    bly_foreign *s;
    const char *wrong = NULL;
    value_word(&w, "width", "%llu", (unsigned long long)width);
    value_word(&w, "depth", "%llu", (unsigned long long)depth);
    if (key_open(ctx, name, SERVER_WRITE, cms_type, &key, &value) != HELD_NONE)
        wrong = "CMS: key already exists";
    else if (bly_foreign_new(&w.spec, &s))
        wrong = "CMS: Insufficient memory to create the key";
    else
        value_keep(key, cms_type, s);
    return key_written(ctx, key, name, "cms.create", wrong);
}

/* Refuse what no counter array can be; the key comes first, as ever. */
static bool key_is_free(server_ctx *ctx, server_string *name)
{
    server_key *key;
    void *value;
    const held what = key_open(ctx, name, SERVER_READ, cms_type, &key, &value);
    key_close(key);
    if (what != HELD_NONE)
        reply_error(ctx, "CMS: key already exists");
    return what == HELD_NONE;
}

static int cms_init_by_dim(server_ctx *ctx, server_string **argv, int argc)
{
    uint64_t width, depth;
    if (argc != 4)
        return srv.WrongArity(ctx);
    if (!key_is_free(ctx, argv[1]))
        return SERVER_OK;
    if (!arg_number(argv[2], 1, LLONG_MAX, &width))
        return reply_error(ctx, "CMS: invalid width");
    if (!arg_number(argv[3], 1, LLONG_MAX, &depth))
        return reply_error(ctx, "CMS: invalid depth");
    if (width > LLONG_MAX / depth)
        return reply_error(ctx, "CMS: invalid init arguments");
    return cms_create(ctx, argv[1], width, depth);
}

static bool is_share(const server_string *s, double *out)
{
    return srv.StringToDouble(s, out) == SERVER_OK && *out > 0 && *out < 1;
}

static int cms_init_by_prob(server_ctx *ctx, server_string **argv, int argc)
{
    double error, chance;
    if (argc != 4)
        return srv.WrongArity(ctx);
    if (!key_is_free(ctx, argv[1]))
        return SERVER_OK;
    if (!is_share(argv[2], &error))
        return reply_error(ctx, "CMS: invalid overestimation value");
    if (!is_share(argv[3], &chance))
        return reply_error(ctx, "CMS: invalid prob value");
    const double width = ceil(2 / error);
    const double depth = ceil(log(chance) / log(0.5));
    /* RedisBloom takes the probability as a float, and one that is 1 then gives
     * no rows. */
    if (width * depth >= 0x1p63 || (float)chance == 1.0f)
        return reply_error(ctx, "CMS: invalid init arguments");
    return cms_create(ctx, argv[1], (uint64_t)width, (uint64_t)depth);
}

/* ------------------------------------------------------------------- using */

/* The sketch in a key; NULL, and an error was sent, if there is none. */
static bly_foreign *cms_open(server_ctx *ctx, server_string *name, int mode,
                             server_key **key)
{
    return key_value(ctx, name, mode, cms_type, CMS_MISSING, key);
}

/* The increments of n pairs; false, and an error was sent, where one is none.
 */
static bool read_increments(server_ctx *ctx, server_string **argv, size_t n,
                            uint64_t *by)
{
    for (size_t i = 0; i < n; i++) {
        long long value;
        if (srv.StringToLongLong(argv[2 * i + 1], &value) != SERVER_OK) {
            reply_error(ctx, "CMS: Cannot parse number");
            return false;
        }
        if (value < 0) {
            reply_error(ctx, "CMS: Number cannot be negative");
            return false;
        }
        by[i] = (uint64_t)value;
    }
    return true;
}

static void cms_increase(server_ctx *ctx, bly_foreign *s, server_string **argv,
                         size_t n, const uint64_t *by)
{
    bly_bytes items[ITEMS_BATCH];
    uint64_t now[ITEMS_BATCH];
    srv.ReplyWithArray(ctx, (long)n);
    for (size_t at = 0, some; at < n; at += some) {
        some = n - at < ITEMS_BATCH ? n - at : ITEMS_BATCH;
        for (size_t i = 0; i < some; i++)
            items[i] = arg_item(argv[2 * (at + i)]);
        const uint64_t before = bly_foreign_changes(s);
        (void)!bly_foreign_increase(s, items, by + at, some, now);
        merges_raised(s, before, items, some);
        for (size_t i = 0; i < some; i++)
            /* A replica is not told of its own errors: they would look as if
             * it had fallen behind. */
            if (now[i] == CMS_CEILING && !is_told(ctx))
                reply_error(ctx, "CMS: INCRBY overflow");
            else
                srv.ReplyWithLongLong(ctx, (long long)now[i]);
    }
}

static int cms_incrby(server_ctx *ctx, server_string **argv, int argc)
{
    if (argc < 4 || argc % 2)
        return srv.WrongArity(ctx);
    const size_t n = (size_t)(argc - 2) / 2;
    uint64_t few[ITEMS_BATCH], *by = few;
    server_key *key;
    bly_foreign *s = cms_open(ctx, argv[1], SERVER_WRITE, &key);
    const uint64_t before = s ? bly_foreign_changes(s) : 0;
    if (s && n > ITEMS_BATCH && !(by = memory_try_raw(n * sizeof *by)))
        reply_error(ctx, "CMS: Insufficient memory");
    else if (s && read_increments(ctx, argv + 2, n, by))
        cms_increase(ctx, s, argv + 2, n, by);
    if (s && bly_foreign_changes(s) != before) {
        srv.ReplicateVerbatim(ctx);
        key_changed(ctx, "cms.incrby", argv[1]);
    }
    if (by != few)
        memory_free(by);
    key_close(key);
    return SERVER_OK;
}

static int cms_query_command(server_ctx *ctx, server_string **argv, int argc)
{
    return value_counts(ctx, argv, argc, cms_open);
}

static int cms_info(server_ctx *ctx, server_string **argv, int argc)
{
    if (argc != 2)
        return srv.WrongArity(ctx);
    server_key *key;
    bly_foreign *s = cms_open(ctx, argv[1], SERVER_READ, &key);
    if (s) {
        reply_map(ctx, 3);
        reply_number(ctx, "width", (uint64_t)value_fact(s, "width"));
        reply_number(ctx, "depth", (uint64_t)value_fact(s, "depth"));
        reply_number(ctx, "count", value_sizes(s).items);
    }
    key_close(key);
    return SERVER_OK;
}

/* -------------------------------------------------------------- the server */

static void *cms_load(server_io *io, int encoding)
{
    const bly_foreign_spec spec = { .format = CMS_FORMAT, .mem = &cms_memory };
    return value_load(io, encoding, &spec);
}

static size_t cms_mem_usage(const void *value)
{
    return value_mem_usage(value, 72 + (size_t)value_sizes(value).nbytes);
}

static int cms_start(server_ctx *ctx)
{
    server_methods methods = value_methods;
    methods.rdb_load = cms_load;
    methods.aof_rewrite = rewrite_as_restore;
    methods.mem_usage = cms_mem_usage;
    cms_type = srv.CreateDataType(ctx, "CMSk-TYPE", CMS_ENCODING, &methods);
    return cms_type ? SERVER_OK : SERVER_ERR;
}

#define CMS_ROWS "O(n * depth)"

static const command_row cms_commands[] = {
    { "cms.initbydim", "write deny-oom", "write fast", "2.0.0",
      "Makes a sketch of the given dimensions", "O(width * depth)",
      "key width:integer depth:integer", cms_init_by_dim, 0 },
    { "cms.initbyprob", "write deny-oom", "write fast", "2.0.0",
      "Makes a sketch for an error and a probability", "O(width * depth)",
      "key error:double probability:double", cms_init_by_prob, 0 },
    { "cms.incrby", "write deny-oom", "write", "2.0.0",
      "Raises the counts of items", CMS_ROWS, "key (item increment:integer)...",
      cms_incrby, 0 },
    { "cms.query", "readonly", "read", "2.0.0", "Counts of items", CMS_ROWS,
      "key item...", cms_query_command, 0 },
    { "cms.merge", "write deny-oom getkeys-api", "write", "2.0.0",
      "Makes a sketch the weighted sum of others", "O(numkeys * width * depth)",
      "destination numkeys:integer source... [WEIGHTS weight:integer...]",
      cms_merge, 2 },
    { "cms.info", "readonly", "read fast", "2.0.0",
      "Dimensions of a sketch, and its total", "O(1)", "key", cms_info, 0 },
    { 0 },
};

const family family_cms = {
    .category = "cms",
    .commands = cms_commands,
    .count = &cms_tally,
    .start = cms_start,
};
