/*
 * cf.c - CF.*: cuckoo filters
 *
 * What differs from RedisBloom: CF.COMPACT is a write, what changes nothing is
 * not replicated, a filter that is made goes to replicas with its parameters,
 * and COPY, digests, events and defragmentation work.
 */
#include <stdio.h>
#include <string.h>

#include "adapters/redis/cf_filter.h"
#include "adapters/redis/config.h"

#define CF_ENCODING 4
#define CF_MAX_CHUNK ((size_t)16 << 20)

static server_type *cf_type;

enum {
    BUCKET_SIZE,
    INITIAL_SIZE,
    ITERATIONS,
    EXPANSION,
    EXPANSIONS,
    NSETTINGS
};

static const char *refuse_bucket_size(double value);
static const char *refuse_initial_size(double value);

static setting cf_settings[NSETTINGS] = {
    [BUCKET_SIZE] = { .name = "cf-bucket-size",
                      .def = 2,
                      .min = 1,
                      .max = 255,
                      .refuse = refuse_bucket_size },
    [INITIAL_SIZE] = { .name = "cf-initial-size",
                       .def = 1024,
                       .min = 2,
                       .max = 0x1p30,
                       .refuse = refuse_initial_size },
    [ITERATIONS] = { .name = "cf-max-iterations",
                     .def = 20,
                     .min = 1,
                     .max = 65535 },
    [EXPANSION] = { .name = "cf-expansion-factor",
                    .def = 1,
                    .min = 0,
                    .max = 32768 },
    [EXPANSIONS] = { .name = "cf-max-expansions",
                     .old_name = "CF_MAX_EXPANSIONS",
                     .def = 32,
                     .min = 1,
                     .max = 65536 },
};

static const char *refuse_bucket_size(double value)
{
    return value * 2 > cf_settings[INITIAL_SIZE].value
               ? "Value for `cf-bucket-size` must be at most half of "
                 "`cf-initial-size`"
               : NULL;
}

static const char *refuse_initial_size(double value)
{
    return value < 2 * cf_settings[BUCKET_SIZE].value
               ? "Value for `cf-initial-size` must be at least twice "
                 "`cf-bucket-size`"
               : NULL;
}

static uint64_t cf_now(int which)
{
    return (uint64_t)cf_settings[which].value;
}

/* ------------------------------------------------------------------- making */

#define CF_NO_ROOM "ERR Insufficient memory to create filter"

/* Tell replicas how a filter was made: their defaults may be others. */
static void tell_reserve(server_ctx *ctx, server_string *name,
                         uint64_t capacity, const cf_filter *f)
{
    srv.Replicate(ctx, "CF.RESERVE", "slclclcl", name, (long long)capacity,
                  "BUCKETSIZE", (long long)f->s.bucket_size, "MAXITERATIONS",
                  (long long)f->s.max_iterations, "EXPANSION",
                  (long long)f->s.expansion);
}

/* Make a filter in an open, empty key. */
static cf_filter *cf_make(server_ctx *ctx, server_string *name, server_key *key,
                          uint64_t capacity)
{
    cf_filter *f =
        cf_new(capacity, (uint16_t)cf_now(BUCKET_SIZE),
               (uint16_t)cf_now(ITERATIONS), (uint16_t)cf_now(EXPANSION));
    if (!f) {
        reply_error(ctx, CF_NO_ROOM);
        return NULL;
    }
    srv.ModuleTypeSetValue(key, cf_type, f);
    tell_reserve(ctx, name, capacity, f);
    key_changed(ctx, "cuckoo.reserve", name);
    return f;
}

/* The value of an option of CF.RESERVE, where it is given. */
static bool reserve_option(server_ctx *ctx, server_string **argv, int argc,
                           const char *name, long long min, long long max,
                           long long *value)
{
    for (int i = 3; i + 1 < argc; i += 2) {
        if (!arg_is(argv[i], name))
            continue;
        if (srv.StringToLongLong(argv[i + 1], value) != SERVER_OK) {
            reply_error(ctx, "Couldn't parse %s", name);
            return false;
        }
        if (*value < min || *value > max) {
            reply_error(ctx, "%s: value must be in the range [%lld, %lld]",
                        name, min, max);
            return false;
        }
    }
    return true;
}

static int cf_reserve(server_ctx *ctx, server_string **argv, int argc)
{
    long long capacity, size = (long long)cf_now(BUCKET_SIZE);
    long long iterations = (long long)cf_now(ITERATIONS);
    long long expansion = (long long)cf_now(EXPANSION);
    if (argc < 3 || argc % 2 == 0)
        return srv.WrongArity(ctx);
    if (srv.StringToLongLong(argv[2], &capacity) != SERVER_OK)
        return reply_error(ctx, "Bad capacity");
    if (!reserve_option(ctx, argv, argc, "MAXITERATIONS", 1, 65535,
                        &iterations) ||
        !reserve_option(ctx, argv, argc, "BUCKETSIZE", 1, 255, &size) ||
        !reserve_option(ctx, argv, argc, "EXPANSION", 0, 32768, &expansion))
        return SERVER_OK;
    if (capacity < 2 * size || capacity > (long long)CF_MAX_CAPACITY)
        return reply_error(
            ctx, "Capacity must be in the range [2 * BUCKETSIZE, 1073741824]");
    server_key *key;
    void *value;
    const held what =
        key_open(ctx, argv[1], SERVER_WRITE, cf_type, &key, &value);
    if (what == HELD_OURS) {
        reply_error(ctx, "ERR item exists");
    } else if (what == HELD_OTHER) {
        reply_error(ctx, WRONGTYPE);
    } else {
        cf_filter *f = cf_new((uint64_t)capacity, (uint16_t)size,
                              (uint16_t)iterations, (uint16_t)expansion);
        if (f) {
            srv.ModuleTypeSetValue(key, cf_type, f);
            tell_reserve(ctx, argv[1], (uint64_t)capacity, f);
            key_changed(ctx, "cuckoo.reserve", argv[1]);
            srv.ReplyWithSimpleString(ctx, "OK");
        } else {
            reply_error(ctx, CF_NO_ROOM);
        }
    }
    key_close(key);
    return SERVER_OK;
}

/* ------------------------------------------------------------------- adding */

/* The filter in a key that is to be added to, made where it is missing and
 * capacity is not 0. NULL, and an error was sent, if that cannot be. */
static cf_filter *cf_for_adding(server_ctx *ctx, server_string *name,
                                uint64_t capacity, server_key **key)
{
    void *value;
    const held what = key_open(ctx, name, SERVER_WRITE, cf_type, key, &value);
    cf_filter *f = value;
    if (what == HELD_OTHER)
        reply_error(ctx, WRONGTYPE);
    else if (what == HELD_NONE && capacity)
        return cf_make(ctx, name, *key, capacity);
    else if (what == HELD_NONE)
        reply_error(ctx, "ERR not found");
    else if (f->s.ntables >= cf_now(EXPANSIONS)) {
        reply_error(ctx, "Maximum expansions reached");
        f = NULL;
    }
    return f;
}

static int cf_add_one(server_ctx *ctx, server_string **argv, int argc,
                      bool unique)
{
    if (argc != 3)
        return srv.WrongArity(ctx);
    server_key *key;
    cf_filter *f = cf_for_adding(ctx, argv[1], cf_now(INITIAL_SIZE), &key);
    if (f) {
        switch (cf_add(f, cf_hash(arg_bytes(argv[2])), unique)) {
        case CF_ADDED:
            srv.ReplicateVerbatim(ctx);
            key_changed(ctx, "cuckoo.add", argv[1]);
            reply_bool(ctx, true);
            break;
        case CF_THERE:
            reply_bool(ctx, false);
            break;
        case CF_FULL:
            reply_error(ctx, "Filter is full");
            break;
        case CF_NO_MEMORY:
            reply_error(ctx, "ERR Insufficient memory");
            break;
        }
    }
    key_close(key);
    return SERVER_OK;
}

static int cf_add_command(server_ctx *ctx, server_string **argv, int argc)
{
    return cf_add_one(ctx, argv, argc, false);
}

static int cf_addnx(server_ctx *ctx, server_string **argv, int argc)
{
    return cf_add_one(ctx, argv, argc, true);
}

/* Words of CF.INSERT before its items; false, and said, if they are wrong. */
static bool insert_options(server_ctx *ctx, server_string **argv, int argc,
                           uint64_t *capacity, int *items)
{
    long long wanted = (long long)cf_now(INITIAL_SIZE);
    bool create = true;
    int i = 2;
    for (; i < argc && !arg_is(argv[i], "ITEMS"); i++) {
        if (arg_is(argv[i], "NOCREATE")) {
            create = false;
        } else if (arg_is(argv[i], "CAPACITY") && i + 1 < argc) {
            if (srv.StringToLongLong(argv[++i], &wanted) != SERVER_OK) {
                reply_error(ctx, "Bad capacity");
                return false;
            }
            if (wanted < 2 * (long long)cf_now(BUCKET_SIZE) ||
                wanted > (long long)CF_MAX_CAPACITY) {
                reply_error(ctx, "Capacity must be in the range "
                                 "[cf-bucket-size * 2, 1073741824]");
                return false;
            }
        } else if (arg_is(argv[i], "CAPACITY")) {
            srv.WrongArity(ctx);
            return false;
        } else {
            reply_error(ctx, "Unknown argument received");
            return false;
        }
    }
    if (i + 1 >= argc) {
        srv.WrongArity(ctx);
        return false;
    }
    *capacity = create ? (uint64_t)wanted : 0;
    *items = i + 1;
    return true;
}

static int cf_insert_many(server_ctx *ctx, server_string **argv, int argc,
                          bool unique)
{
    uint64_t capacity;
    int items;
    if (argc < 4)
        return srv.WrongArity(ctx);
    if (!insert_options(ctx, argv, argc, &capacity, &items))
        return SERVER_OK;
    server_key *key;
    cf_filter *f = cf_for_adding(ctx, argv[1], capacity, &key);
    if (f) {
        bool changed = false;
        srv.ReplyWithArray(ctx, argc - items);
        for (int i = items; i < argc; i++) {
            const cf_added what =
                cf_add(f, cf_hash(arg_bytes(argv[i])), unique);
            changed |= what == CF_ADDED;
            if (!unique && is_resp3(ctx))
                reply_bool(ctx, what == CF_ADDED);
            else
                srv.ReplyWithLongLong(ctx, what == CF_ADDED   ? 1
                                           : what == CF_THERE ? 0
                                                              : -1);
        }
        if (changed) {
            srv.ReplicateVerbatim(ctx);
            key_changed(ctx, "cuckoo.add", argv[1]);
        }
    }
    key_close(key);
    return SERVER_OK;
}

static int cf_insert(server_ctx *ctx, server_string **argv, int argc)
{
    return cf_insert_many(ctx, argv, argc, false);
}

static int cf_insertnx(server_ctx *ctx, server_string **argv, int argc)
{
    return cf_insert_many(ctx, argv, argc, true);
}

/* ------------------------------------------------------------------- asking */

static int cf_exists_many(server_ctx *ctx, server_string **argv, int argc,
                          bool many)
{
    if (many ? argc < 3 : argc != 3)
        return srv.WrongArity(ctx);
    server_key *key;
    void *value; /* NULL for a missing key and for another type: no */
    key_open(ctx, argv[1], SERVER_READ, cf_type, &key, &value);
    if (many)
        srv.ReplyWithArray(ctx, argc - 2);
    for (int i = 2; i < argc; i++)
        reply_bool(ctx, value && cf_has(value, cf_hash(arg_bytes(argv[i]))));
    key_close(key);
    return SERVER_OK;
}

static int cf_exists(server_ctx *ctx, server_string **argv, int argc)
{
    return cf_exists_many(ctx, argv, argc, false);
}

static int cf_mexists(server_ctx *ctx, server_string **argv, int argc)
{
    return cf_exists_many(ctx, argv, argc, true);
}

static int cf_count_command(server_ctx *ctx, server_string **argv, int argc)
{
    if (argc != 3)
        return srv.WrongArity(ctx);
    server_key *key;
    void *value;
    key_open(ctx, argv[1], SERVER_READ, cf_type, &key, &value);
    srv.ReplyWithLongLong(
        ctx,
        value ? (long long)cf_count(value, cf_hash(arg_bytes(argv[2]))) : 0);
    key_close(key);
    return SERVER_OK;
}

static int cf_del(server_ctx *ctx, server_string **argv, int argc)
{
    if (argc != 3)
        return srv.WrongArity(ctx);
    server_key *key;
    void *value;
    key_open(ctx, argv[1], SERVER_WRITE, cf_type, &key, &value);
    if (!value) {
        reply_error(ctx, "Not found");
    } else {
        const bool gone = cf_remove(value, cf_hash(arg_bytes(argv[2])));
        if (gone) {
            srv.ReplicateVerbatim(ctx);
            key_changed(ctx, "cuckoo.del", argv[1]);
        }
        reply_bool(ctx, gone);
    }
    key_close(key);
    return SERVER_OK;
}

static int cf_compact_command(server_ctx *ctx, server_string **argv, int argc)
{
    if (argc != 2)
        return srv.WrongArity(ctx);
    server_key *key;
    void *value;
    key_open(ctx, argv[1], SERVER_WRITE, cf_type, &key, &value);
    if (value) {
        cf_compact(value, true);
        srv.ReplicateVerbatim(ctx);
        key_changed(ctx, "cuckoo.compact", argv[1]);
        srv.ReplyWithSimpleString(ctx, "OK");
    } else {
        reply_error(ctx, "Cuckoo filter was not found");
    }
    key_close(key);
    return SERVER_OK;
}

/* The filter in a key that is looked at; NULL, and an error was sent. */
static cf_filter *cf_to_read(server_ctx *ctx, server_string *name,
                             server_key **key)
{
    void *value;
    const held what = key_open(ctx, name, SERVER_READ, cf_type, key, &value);
    if (what == HELD_NONE)
        reply_error(ctx, "ERR not found");
    else if (what == HELD_OTHER)
        reply_error(ctx, WRONGTYPE);
    return value;
}

/* As the peer counts: 40 for the filter, 16 a table, and the slots. */
static uint64_t cf_size(const cf_filter *f)
{
    return 40 + 16 * f->s.ntables + cf_bytes(f);
}

static int cf_info(server_ctx *ctx, server_string **argv, int argc)
{
    if (argc != 2)
        return srv.WrongArity(ctx);
    server_key *key;
    const cf_filter *f = cf_to_read(ctx, argv[1], &key);
    if (f) {
        const struct {
            const char *name;
            uint64_t value;
        } rows[] = {
            { "Size", cf_size(f) },
            { "Number of buckets", f->s.buckets },
            { "Number of filters", f->s.ntables },
            { "Number of items inserted", f->s.items },
            { "Number of items deleted", f->s.deletes },
            { "Bucket size", f->s.bucket_size },
            { "Expansion rate", f->s.expansion },
            { "Max iterations", f->s.max_iterations },
        };
        reply_map(ctx, 8);
        for (int i = 0; i < 8; i++) {
            srv.ReplyWithSimpleString(ctx, rows[i].name);
            srv.ReplyWithLongLong(ctx, (long long)rows[i].value);
        }
    }
    key_close(key);
    return SERVER_OK;
}

static int cf_debug(server_ctx *ctx, server_string **argv, int argc)
{
    if (argc != 2)
        return srv.WrongArity(ctx);
    server_key *key;
    const cf_filter *f = cf_to_read(ctx, argv[1], &key);
    if (f) {
        char text[200];
        const int n = snprintf(
            text, sizeof text,
            "bktsize:%u buckets:%llu items:%llu deletes:%llu filters:%llu "
            "max_iterations:%u expansion:%u",
            f->s.bucket_size, (unsigned long long)f->s.buckets,
            (unsigned long long)f->s.items, (unsigned long long)f->s.deletes,
            (unsigned long long)f->s.ntables, f->s.max_iterations,
            f->s.expansion);
        srv.ReplyWithStringBuffer(ctx, text, (size_t)n);
    }
    key_close(key);
    return SERVER_OK;
}

/* ------------------------------------------------------ SCANDUMP, LOADCHUNK */

#define CF_HEADER 38

static void header_write(const cf_shape *s, unsigned char *to)
{
    put_le(to, s->items, 8);
    put_le(to + 8, s->buckets, 8);
    put_le(to + 16, s->deletes, 8);
    put_le(to + 24, s->ntables, 8);
    put_le(to + 32, s->bucket_size, 2);
    put_le(to + 34, s->max_iterations, 2);
    put_le(to + 36, s->expansion, 2);
}

static cf_shape header_read(const char *header)
{
    const unsigned char *from = (const unsigned char *)header;
    return (cf_shape){ .items = get_le(from, 8),
                       .buckets = get_le(from + 8, 8),
                       .deletes = get_le(from + 16, 8),
                       .ntables = get_le(from + 24, 8),
                       .bucket_size = (uint16_t)get_le(from + 32, 2),
                       .max_iterations = (uint16_t)get_le(from + 34, 2),
                       .expansion = (uint16_t)get_le(from + 36, 2) };
}

static int cf_scandump(server_ctx *ctx, server_string **argv, int argc)
{
    long long at;
    if (argc != 3)
        return srv.WrongArity(ctx);
    if (srv.StringToLongLong(argv[2], &at) != SERVER_OK || at < 0)
        return reply_error(ctx, "Invalid position");
    server_key *key;
    const cf_filter *f = cf_to_read(ctx, argv[1], &key);
    if (f) {
        unsigned char header[CF_HEADER], *chunk = header;
        size_t n = CF_HEADER;
        if (at == 0)
            header_write(&f->s, header);
        else
            n = cf_chunk(f, (uint64_t)at - 1, CF_MAX_CHUNK, &chunk);
        if (f->s.items == 0)
            n = 0;
        srv.ReplyWithArray(ctx, 2);
        srv.ReplyWithLongLong(ctx, n == 0    ? 0
                                   : at == 0 ? 1
                                             : at + (long long)n);
        if (n)
            srv.ReplyWithStringBuffer(ctx, (const char *)chunk, n);
        else
            srv.ReplyWithNull(ctx);
    }
    key_close(key);
    return SERVER_OK;
}

static int cf_loadchunk(server_ctx *ctx, server_string **argv, int argc)
{
    long long at;
    if (argc != 4)
        return srv.WrongArity(ctx);
    if (srv.StringToLongLong(argv[2], &at) != SERVER_OK || at == 0)
        return reply_error(ctx, "Invalid position");
    const bytes data = arg_bytes(argv[3]);
    server_key *key;
    void *value;
    const held what =
        key_open(ctx, argv[1], SERVER_WRITE, cf_type, &key, &value);
    cf_filter *f = value;
    const char *wrong = NULL;
    if (what == HELD_OTHER) {
        wrong = WRONGTYPE;
    } else if (at == 1 && f) {
        wrong = "ERR item exists";
    } else if (at == 1 && data.n != CF_HEADER) {
        wrong = "Invalid header";
    } else if (at == 1) {
        const cf_shape s = header_read(data.at);
        f = cf_of_shape(&s);
        if (f)
            srv.ModuleTypeSetValue(key, cf_type, f);
        else
            wrong = "Couldn't create filter!";
    } else if (!f) {
        wrong = "ERR not found";
    } else {
        unsigned char *to;
        const uint64_t end = (uint64_t)at - 1;
        if (at < 0 || !data.n || end < data.n ||
            cf_chunk(f, end - data.n, data.n, &to) != data.n)
            wrong = "Couldn't load chunk!";
        else
            memcpy(to, data.at, data.n);
    }
    if (wrong) {
        reply_error(ctx, "%s", wrong);
    } else {
        srv.ReplicateVerbatim(ctx);
        key_changed(ctx, "cuckoo.loadchunk", argv[1]);
        srv.ReplyWithSimpleString(ctx, "OK");
    }
    key_close(key);
    return SERVER_OK;
}

/* --------------------------------------------------------------- the server */

static void cf_save(server_io *io, void *value)
{
    const cf_filter *f = value;
    srv.SaveUnsigned(io, f->s.ntables);
    srv.SaveUnsigned(io, f->s.buckets);
    srv.SaveUnsigned(io, f->s.items);
    srv.SaveUnsigned(io, f->s.deletes);
    srv.SaveUnsigned(io, f->s.bucket_size);
    srv.SaveUnsigned(io, f->s.max_iterations);
    srv.SaveUnsigned(io, f->s.expansion);
    for (uint64_t i = 0; i < f->s.ntables; i++) {
        srv.SaveUnsigned(io, f->tables[i].buckets);
        srv.SaveStringBuffer(io, (const char *)f->tables[i].slots,
                             (size_t)cf_table_bytes(f, i));
    }
}

/* Table i of a dump; its memory is the server's string. What the shape does
 * not say is not taken: chunks and copies are made from the shape. */
static bool load_table(server_io *io, int encoding, const cf_shape *s,
                       uint64_t i, cf_table *t)
{
    size_t n = 0;
    t->buckets = encoding < 4 ? s->buckets : srv.LoadUnsigned(io);
    if (srv.IsIOError(io))
        return false;
    t->slots = (unsigned char *)srv.LoadStringBuffer(io, &n);
    return !srv.IsIOError(io) && t->slots &&
           t->buckets == cf_table_buckets(s, i) &&
           n / s->bucket_size == t->buckets && n % s->bucket_size == 0;
}

static void *cf_load(server_io *io, int encoding)
{
    if (encoding > CF_ENCODING)
        return NULL;
    cf_shape s = { .bucket_size = (uint16_t)cf_now(BUCKET_SIZE),
                   .max_iterations = (uint16_t)cf_now(ITERATIONS),
                   .expansion = (uint16_t)cf_now(EXPANSION) };
    s.ntables = srv.LoadUnsigned(io);
    s.buckets = srv.LoadUnsigned(io);
    s.items = srv.LoadUnsigned(io);
    if (encoding >= 4) {
        s.deletes = srv.LoadUnsigned(io);
        const uint64_t size = srv.LoadUnsigned(io);
        const uint64_t iterations = srv.LoadUnsigned(io);
        const uint64_t expansion = srv.LoadUnsigned(io);
        if (srv.IsIOError(io) || size > UINT16_MAX || iterations > UINT16_MAX ||
            expansion > UINT16_MAX)
            return NULL;
        s.bucket_size = (uint16_t)size;
        s.max_iterations = (uint16_t)iterations;
        s.expansion = (uint16_t)expansion;
    }
    /* Before version 4 all tables were of one size, as many as there are. */
    if (encoding < 4 && s.ntables > 1)
        s.expansion = 1;
    /* Tables are taken as they come, none is made before its bytes are there;
     * what is asked for first is a few words a table. */
    if (srv.IsIOError(io) || !cf_is_sane(&s))
        return NULL;
    cf_filter *f = memory_try(sizeof *f);
    if (!f)
        return NULL;
    f->s = s;
    f->tables = memory_try(s.ntables * sizeof *f->tables);
    bool ok = f->tables;
    for (uint64_t i = 0; i < s.ntables && ok; i++)
        ok = load_table(io, encoding, &s, i, &f->tables[i]);
    if (!ok) {
        cf_free(f);
        return NULL;
    }
    return f;
}

/* As chunks, each a command. */
static void cf_rewrite(server_io *io, server_string *key, void *value)
{
    const cf_filter *f = value;
    unsigned char header[CF_HEADER], *chunk;
    header_write(&f->s, header);
    srv.EmitAOF(io, "CF.LOADCHUNK", "slb", key, 1LL, header, (size_t)CF_HEADER);
    uint64_t at = 0;
    for (size_t n; (n = cf_chunk(f, at, CF_MAX_CHUNK, &chunk)); at += n)
        srv.EmitAOF(io, "CF.LOADCHUNK", "slb", key, (long long)(at + n + 1),
                    chunk, n);
}

static size_t cf_mem_usage(const void *value)
{
    return (size_t)cf_size(value);
}

static size_t cf_free_effort(server_string *key, const void *value)
{
    (void)key;
    return (size_t)((const cf_filter *)value)->s.ntables;
}

static void *cf_copy(server_string *from, server_string *to, const void *value)
{
    (void)from;
    (void)to;
    const cf_filter *f = value;
    cf_filter *copy = cf_of_shape(&f->s);
    for (uint64_t i = 0; copy && i < f->s.ntables; i++)
        memcpy(copy->tables[i].slots, f->tables[i].slots,
               (size_t)cf_table_bytes(f, i));
    return copy;
}

static void cf_digest(server_digest *md, void *value)
{
    const cf_filter *f = value;
    unsigned char header[CF_HEADER];
    header_write(&f->s, header);
    srv.DigestAddStringBuffer(md, (const char *)header, CF_HEADER);
    for (uint64_t i = 0; i < f->s.ntables; i++)
        srv.DigestAddStringBuffer(md, (const char *)f->tables[i].slots,
                                  (size_t)cf_table_bytes(f, i));
    srv.DigestEndSequence(md);
}

static int cf_defrag(server_defrag *ctx, server_string *key, void **value)
{
    (void)key;
    memory_moved(ctx, value);
    cf_filter *f = *value;
    memory_moved(ctx, &f->tables);
    for (uint64_t i = 0; i < f->s.ntables; i++)
        memory_moved(ctx, &f->tables[i].slots);
    return 0;
}

static int cf_start(server_ctx *ctx)
{
    server_methods methods = {
        .version = 4,
        .rdb_load = cf_load,
        .rdb_save = cf_save,
        .aof_rewrite = cf_rewrite,
        .mem_usage = cf_mem_usage,
        .free = cf_free,
        .digest = cf_digest,
        .free_effort = cf_free_effort,
        .copy = cf_copy,
        .defrag = cf_defrag,
    };
    cf_type = srv.CreateDataType(ctx, "MBbloomCF", CF_ENCODING, &methods);
    return cf_type ? settings_register(ctx, cf_settings, NSETTINGS)
                   : SERVER_ERR;
}

static int cf_argument(server_ctx *ctx, const char *name, server_string *value)
{
    return settings_argument(ctx, cf_settings, NSETTINGS, name, value);
}

#define CF_EACH "O(n * filters)"

static const command_row cf_commands[] = {
    { "cf.reserve", "write deny-oom", "write fast", "1.0.0",
      "Makes an empty cuckoo filter", "O(capacity)",
      "key capacity:integer [BUCKETSIZE bucketsize:integer] [MAXITERATIONS "
      "maxiterations:integer] [EXPANSION expansion:integer]",
      cf_reserve, 0 },
    { "cf.add", "write deny-oom", "write", "1.0.0", "Adds an item",
      "O(filters + iterations)", "key item", cf_add_command, 0 },
    { "cf.addnx", "write deny-oom", "write", "1.0.0",
      "Adds an item unless it seems to be there", "O(filters + iterations)",
      "key item", cf_addnx, 0 },
    { "cf.insert", "write deny-oom", "write", "1.0.0",
      "Adds items, and makes the filter as told",
      "O(n * (filters + "
      "iterations))",
      "key [CAPACITY capacity:integer] [NOCREATE] ITEMS item...", cf_insert,
      0 },
    { "cf.insertnx", "write deny-oom", "write", "1.0.0",
      "Adds items that do not seem to be there",
      "O(n * (filters + "
      "iterations))",
      "key [CAPACITY capacity:integer] [NOCREATE] ITEMS item...", cf_insertnx,
      0 },
    { "cf.exists", "readonly fast", "read", "1.0.0",
      "Whether an item may be there", "O(filters)", "key item", cf_exists, 0 },
    { "cf.mexists", "readonly fast", "read", "1.0.0",
      "Whether items may be there", CF_EACH, "key item...", cf_mexists, 0 },
    { "cf.count", "readonly fast", "read", "1.0.0",
      "How often an item may be there", "O(filters)", "key item",
      cf_count_command, 0 },
    { "cf.del", "write fast", "write", "1.0.0", "Takes an item out once",
      "O(filters)", "key item", cf_del, 0 },
    { "cf.compact", "write", "write", "1.0.0",
      "Moves items into fewer sub-filters", "O(items)", "key",
      cf_compact_command, 0 },
    { "cf.scandump", "readonly fast", "read", "1.0.0",
      "Gives a filter out in pieces", "O(n)", "key iterator:integer",
      cf_scandump, 0 },
    { "cf.loadchunk", "write deny-oom", "write", "1.0.0",
      "Takes a piece of a filter", "O(n)", "key iterator:integer data",
      cf_loadchunk, 0 },
    { "cf.info", "readonly fast", "read fast", "1.0.0",
      "What a filter is made of", "O(1)", "key", cf_info, 0 },
    { "cf.debug", "readonly fast", "read", "1.0.0", "The same in one line",
      "O(1)", "key", cf_debug, 0 },
    { 0 },
};

const family family_cf = {
    .category = "cuckoo",
    .commands = cf_commands,
    .start = cf_start,
    .argument = cf_argument,
};
