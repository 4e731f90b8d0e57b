/*
 * cms.c - CMS.*: count-min sketches
 *
 * A key holds depth rows of width counters of 32 bits that stick at their
 * ceiling. Row r of an item is cell bly_murmur2(item, r) mod width, so that a
 * dump is that of RedisBloom, byte for byte.
 *
 * What differs from it: CMS.MERGE declares its sources, so that ACLs, cluster
 * clients and the server see them.
 */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery/foreign.h>

#include "adapters/redis/module.h"

#define CMS_ENCODING 0
#define CMS_CEILING UINT32_MAX

typedef struct cms {
    uint64_t width, depth, count;
    uint32_t cells[]; /* row after row */
} cms;

static server_type *cms_type;

/* ---------------------------------------------------------------- sketches */

/* NULL where there is no memory, or such a thing cannot be. */
static cms *cms_new(uint64_t width, uint64_t depth)
{
    if (!width || !depth || width > UINT64_MAX / 8 / depth)
        return NULL;
    cms *s = memory_try(sizeof *s + width * depth * sizeof *s->cells);
    if (s) {
        s->width = width;
        s->depth = depth;
    }
    return s;
}

static uint64_t cms_bytes(const cms *s)
{
    return s->width * s->depth * sizeof *s->cells;
}

static uint32_t *cms_cell(cms *s, bytes item, uint64_t row)
{
    return &s->cells[row * s->width +
                     bly_murmur2(item.at, item.n, (uint32_t)row) % s->width];
}

static uint32_t cms_query(cms *s, bytes item)
{
    uint32_t least = UINT32_MAX;
    for (uint64_t row = 0; row < s->depth; row++) {
        const uint32_t cell = *cms_cell(s, item, row);
        least = cell < least ? cell : least;
    }
    return least;
}

static uint32_t cms_add(cms *s, bytes item, uint64_t by)
{
    for (uint64_t row = 0; row < s->depth; row++) {
        uint32_t *cell = cms_cell(s, item, row);
        *cell = by > CMS_CEILING - *cell ? CMS_CEILING : *cell + (uint32_t)by;
    }
    s->count = by > INT64_MAX - s->count ? INT64_MAX : s->count + by;
    return cms_query(s, item);
}

/* ------------------------------------------------------------------ making */

static int cms_create(server_ctx *ctx, server_string *name, uint64_t width,
                      uint64_t depth)
{
    server_key *key;
    void *value;
    if (key_open(ctx, name, SERVER_WRITE, cms_type, &key, &value) !=
        HELD_NONE) {
        key_close(key);
        return reply_error(ctx, "CMS: key already exists");
    }
    cms *s = cms_new(width, depth);
    if (s) {
        srv.ModuleTypeSetValue(key, cms_type, s);
        srv.ReplicateVerbatim(ctx);
        key_changed(ctx, "cms.create", name);
        srv.ReplyWithSimpleString(ctx, "OK");
    } else {
        reply_error(ctx, "CMS: Insufficient memory to create the key");
    }
    key_close(key);
    return SERVER_OK;
}

static bool is_positive(const server_string *s, uint64_t *out)
{
    long long value;
    if (srv.StringToLongLong(s, &value) != SERVER_OK || value < 1)
        return false;
    *out = (uint64_t)value;
    return true;
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
    if (!is_positive(argv[2], &width))
        return reply_error(ctx, "CMS: invalid width");
    if (!is_positive(argv[3], &depth))
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
    if (width * depth >= 0x1p63)
        return reply_error(ctx, "CMS: invalid init arguments");
    return cms_create(ctx, argv[1], (uint64_t)width, (uint64_t)depth);
}

/* ------------------------------------------------------------------- using */

/* The sketch in a key; NULL, and an error was sent, if there is none. */
static cms *cms_open(server_ctx *ctx, server_string *name, int mode,
                     server_key **key)
{
    void *value;
    const held what = key_open(ctx, name, mode, cms_type, key, &value);
    if (what == HELD_NONE)
        reply_error(ctx, "CMS: key does not exist");
    else if (what == HELD_OTHER)
        reply_error(ctx, WRONGTYPE);
    return value;
}

static int cms_incrby(server_ctx *ctx, server_string **argv, int argc)
{
    if (argc < 4 || argc % 2)
        return srv.WrongArity(ctx);
    server_key *key;
    cms *s = cms_open(ctx, argv[1], SERVER_WRITE, &key);
    bool ok = s != NULL;
    for (int i = 3; i < argc && ok; i += 2) {
        long long by;
        if (srv.StringToLongLong(argv[i], &by) != SERVER_OK) {
            reply_error(ctx, "CMS: Cannot parse number");
            ok = false;
        } else if (by < 0) {
            reply_error(ctx, "CMS: Number cannot be negative");
            ok = false;
        }
    }
    if (ok) {
        srv.ReplyWithArray(ctx, (argc - 2) / 2);
        for (int i = 2; i < argc; i += 2) {
            long long by = 0;
            srv.StringToLongLong(argv[i + 1], &by);
            const uint32_t now = cms_add(s, arg_bytes(argv[i]), (uint64_t)by);
            if (now == CMS_CEILING)
                reply_error(ctx, "CMS: INCRBY overflow");
            else
                srv.ReplyWithLongLong(ctx, now);
        }
        srv.ReplicateVerbatim(ctx);
        key_changed(ctx, "cms.incrby", argv[1]);
    }
    key_close(key);
    return SERVER_OK;
}

static int cms_query_command(server_ctx *ctx, server_string **argv, int argc)
{
    if (argc < 3)
        return srv.WrongArity(ctx);
    server_key *key;
    cms *s = cms_open(ctx, argv[1], SERVER_READ, &key);
    if (s) {
        srv.ReplyWithArray(ctx, argc - 2);
        for (int i = 2; i < argc; i++)
            srv.ReplyWithLongLong(ctx, cms_query(s, arg_bytes(argv[i])));
    }
    key_close(key);
    return SERVER_OK;
}

static int cms_info(server_ctx *ctx, server_string **argv, int argc)
{
    if (argc != 2)
        return srv.WrongArity(ctx);
    server_key *key;
    cms *s = cms_open(ctx, argv[1], SERVER_READ, &key);
    if (s) {
        reply_map(ctx, 3);
        srv.ReplyWithSimpleString(ctx, "width");
        srv.ReplyWithLongLong(ctx, (long long)s->width);
        srv.ReplyWithSimpleString(ctx, "depth");
        srv.ReplyWithLongLong(ctx, (long long)s->depth);
        srv.ReplyWithSimpleString(ctx, "count");
        srv.ReplyWithLongLong(ctx, (long long)s->count);
    }
    key_close(key);
    return SERVER_OK;
}

/* ----------------------------------------------------------------- merging */

/* What CMS.MERGE works on: the sources stay open until it is done. */
typedef struct merging {
    long long n;
    server_key **keys;
    cms **from;
    long long *weights;
} merging;

static void merging_end(merging *m)
{
    for (long long i = 0; m->keys && i < m->n; i++)
        key_close(m->keys[i]);
    free(m->keys);
    free(m->from);
    free(m->weights);
}

/* The numbers of the command; NULL, or what is wrong. */
static const char *merging_read(merging *m, server_string **argv, int argc)
{
    if (srv.StringToLongLong(argv[2], &m->n) != SERVER_OK)
        return "CMS: invalid numkeys";
    if (m->n < 1)
        return "CMS: Number of keys must be positive";
    const long long after = argc - 3; /* words behind the number */
    int weights = 3;
    while (weights < argc && !arg_is(argv[weights], "WEIGHTS"))
        weights++;
    if (weights == argc ? m->n != after : m->n != weights - 3)
        return "CMS: wrong number of keys";
    if (weights < argc && argc - weights - 1 != m->n)
        return "CMS: wrong number of keys/weights";
    m->keys = calloc((size_t)m->n, sizeof *m->keys);
    m->from = calloc((size_t)m->n, sizeof *m->from);
    m->weights = calloc((size_t)m->n, sizeof *m->weights);
    if (!m->keys || !m->from || !m->weights)
        return "CMS: Insufficient memory to create the key";
    for (int i = 0; i < (int)m->n; i++) {
        m->weights[i] = 1;
        if (weights < argc && srv.StringToLongLong(argv[weights + 1 + i],
                                                   &m->weights[i]) != SERVER_OK)
            return "CMS: invalid weight value";
    }
    return NULL;
}

/* high * 2^64 + low: products of counts and weights have up to 126 bits. */
typedef struct wide_sum {
    uint64_t low;
    int64_t high;
} wide_sum;

/* Add count * weight; false where even so many bits do not hold the sum. */
static bool wide_add(wide_sum *sum, uint64_t count, int64_t weight)
{
    const uint64_t w = weight < 0 ? -(uint64_t)weight : (uint64_t)weight;
    const uint64_t c0 = count & UINT32_MAX, c1 = count >> 32;
    const uint64_t w0 = w & UINT32_MAX, w1 = w >> 32;
    const uint64_t middle = c1 * w0 + (c0 * w0 >> 32);
    const uint64_t other = c0 * w1 + (middle & UINT32_MAX);
    uint64_t low = count * w;
    uint64_t high = c1 * w1 + (middle >> 32) + (other >> 32);
    if (weight < 0) {
        high = ~high + (low == 0);
        low = -low;
    }
    sum->low += low;
    return !__builtin_add_overflow(sum->high, (int64_t)high, &sum->high) &&
           !__builtin_add_overflow(sum->high, sum->low < low, &sum->high);
}

/* The weighted sum of what the sources have in one place; false where it is
 * not in [0, most]. */
static bool weighted_sum(const merging *m, const uint64_t *values,
                         uint64_t most, uint64_t *out)
{
    wide_sum sum = { 0, 0 };
    for (long long i = 0; i < m->n; i++)
        if (!wide_add(&sum, values[i], m->weights[i]))
            return false;
    *out = sum.low;
    return sum.high == 0 && sum.low <= most;
}

/* Two passes: whether every sum fits, then the sums. A cell is read before it
 * is written, so that the destination may be a source. */
static bool merge_cells(const merging *m, cms *into, uint64_t *values,
                        bool write)
{
    for (uint64_t c = 0; c < into->width * into->depth; c++) {
        uint64_t sum;
        for (long long i = 0; i < m->n; i++)
            values[i] = m->from[i]->cells[c];
        if (!weighted_sum(m, values, CMS_CEILING, &sum))
            return false;
        if (write)
            into->cells[c] = (uint32_t)sum;
    }
    return true;
}

static bool merging_do(const merging *m, cms *into)
{
    uint64_t *values = calloc((size_t)m->n, sizeof *values), count = 0;
    if (!values)
        return false;
    for (long long i = 0; i < m->n; i++)
        values[i] = m->from[i]->count;
    const bool ok = weighted_sum(m, values, INT64_MAX, &count) &&
                    merge_cells(m, into, values, false);
    if (ok) {
        merge_cells(m, into, values, true);
        into->count = count;
    }
    free(values);
    return ok;
}

/* The server asks for the keys: routing in a cluster of Redis 7.0 looks at
 * nothing else. */
static int merge_keys(server_ctx *ctx, server_string **argv, int argc)
{
    long long n;
    srv.KeyAtPosWithFlags(ctx, 1, SERVER_KEYSPEC_RW | SERVER_KEYSPEC_UPDATE);
    if (argc > 2 && srv.StringToLongLong(argv[2], &n) == SERVER_OK)
        for (int i = 3; i < argc && i - 3 < n; i++)
            srv.KeyAtPosWithFlags(ctx, i,
                                  SERVER_KEYSPEC_RO | SERVER_KEYSPEC_ACCESS);
    return SERVER_OK;
}

static int cms_merge(server_ctx *ctx, server_string **argv, int argc)
{
    if (srv.IsKeysPositionRequest && srv.KeyAtPosWithFlags &&
        srv.IsKeysPositionRequest(ctx))
        return merge_keys(ctx, argv, argc);
    if (argc < 4)
        return srv.WrongArity(ctx);
    server_key *key;
    cms *into = cms_open(ctx, argv[1], SERVER_WRITE, &key);
    merging m = { 0 };
    const char *wrong = into ? merging_read(&m, argv, argc) : "";
    for (int i = 0; !wrong && i < (int)m.n; i++) {
        m.from[i] = cms_open(ctx, argv[3 + i], SERVER_READ, &m.keys[i]);
        if (!m.from[i])
            wrong = "";
        else if (m.from[i]->width != into->width ||
                 m.from[i]->depth != into->depth)
            wrong = "CMS: width/depth is not equal";
    }
    if (!wrong && !merging_do(&m, into))
        wrong = "CMS: MERGE overflow";
    if (!wrong) {
        srv.ReplicateVerbatim(ctx);
        key_changed(ctx, "cms.merge", argv[1]);
        srv.ReplyWithSimpleString(ctx, "OK");
    } else if (wrong[0]) {
        reply_error(ctx, "%s", wrong);
    } /* else the error was sent where it was found */
    merging_end(&m);
    key_close(key);
    return SERVER_OK;
}

/* -------------------------------------------------------------- the server */

static void cms_save(server_io *io, void *value)
{
    const cms *s = value;
    srv.SaveUnsigned(io, s->width);
    srv.SaveUnsigned(io, s->depth);
    srv.SaveUnsigned(io, s->count);
    srv.SaveStringBuffer(io, (const char *)s->cells, (size_t)cms_bytes(s));
}

static void *cms_load(server_io *io, int encoding)
{
    if (encoding > CMS_ENCODING)
        return NULL;
    const uint64_t width = srv.LoadUnsigned(io);
    const uint64_t depth = srv.LoadUnsigned(io);
    const uint64_t count = srv.LoadUnsigned(io);
    size_t n = 0;
    char *cells = srv.IsIOError(io) ? NULL : srv.LoadStringBuffer(io, &n);
    cms *s = NULL;
    /* As much memory as there are bytes, whatever the numbers say. */
    if (cells && !srv.IsIOError(io) && width && depth &&
        width <= n / 4 / depth && width * depth * 4 == n &&
        count <= INT64_MAX) {
        s = cms_new(width, depth);
        if (s) {
            s->count = count;
            memcpy(s->cells, cells, n);
        }
    }
    memory_free(cells);
    return s;
}

static size_t cms_mem_usage(const void *value)
{
    return 32 + (size_t)cms_bytes(value);
}

static void *cms_copy(server_string *from, server_string *to, const void *value)
{
    (void)from;
    (void)to;
    const cms *s = value;
    cms *copy = cms_new(s->width, s->depth);
    if (copy) {
        copy->count = s->count;
        memcpy(copy->cells, s->cells, (size_t)cms_bytes(s));
    }
    return copy;
}

static void cms_digest(server_digest *md, void *value)
{
    const cms *s = value;
    srv.DigestAddLongLong(md, (long long)s->width);
    srv.DigestAddLongLong(md, (long long)s->depth);
    srv.DigestAddLongLong(md, (long long)s->count);
    srv.DigestAddStringBuffer(md, (const char *)s->cells, (size_t)cms_bytes(s));
    srv.DigestEndSequence(md);
}

static int cms_defrag(server_defrag *ctx, server_string *key, void **value)
{
    (void)key;
    void *moved = srv.DefragAlloc(ctx, *value);
    if (moved)
        *value = moved;
    return 0;
}

static void cms_rewrite(server_io *io, server_string *key, void *value)
{
    (void)value;
    rewrite_as_restore(io, key);
}

static int cms_start(server_ctx *ctx)
{
    server_methods methods = {
        .version = 4,
        .rdb_load = cms_load,
        .rdb_save = cms_save,
        .aof_rewrite = cms_rewrite,
        .mem_usage = cms_mem_usage,
        .free = memory_free,
        .digest = cms_digest,
        .copy = cms_copy,
        .defrag = cms_defrag,
    };
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
    .start = cms_start,
};
