/*
 * cf.c - CF.*: cuckoo filters
 *
 * What differs from RedisBloom: CF.COMPACT is a write, what changes nothing is
 * not replicated, a filter that is made goes to replicas with its parameters,
 * and COPY, digests, events and defragmentation work. The filters themselves
 * are the library's (src/foreign/rediscuckoo.c).
 */
#include <stdio.h>
#include <string.h>

#include "adapters/redis/config.h"
#include "adapters/redis/redis_value.h"

#define CF_FORMAT "rediscuckoo"
#define CF_ENCODING 4
#define CF_MAX_CAPACITY (1LL << 30)

static server_type *cf_type;
static tally cf_tally;
static const bly_mem cf_memory = SERVER_MEMORY(&cf_tally);

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

/* What is to be made. */
typedef struct cf_wish {
    long long capacity, size, iterations, expansion;
} cf_wish;

static cf_wish cf_usual(long long capacity)
{
    return (cf_wish){ .capacity = capacity,
                      .size = (long long)cf_now(BUCKET_SIZE),
                      .iterations = (long long)cf_now(ITERATIONS),
                      .expansion = (long long)cf_now(EXPANSION) };
}

static const bly_foreign_spec *wish_words(const cf_wish *w, value_words *out)
{
    out->spec = (bly_foreign_spec){ .format = CF_FORMAT,
                                    .items = (uint64_t)w->capacity,
                                    .mem = &cf_memory };
    value_word(out, "bucket-size", "%lld", w->size);
    value_word(out, "max-iterations", "%lld", w->iterations);
    value_word(out, "growth", "%lld", w->expansion);
    return &out->spec;
}

/* Make a filter in an open, empty key, and tell replicas how: their defaults
 * may be others. NULL, and an error was sent. */
static bly_foreign *cf_make(server_ctx *ctx, server_string *name,
                            server_key *key, const cf_wish *w)
{
    value_words words;
    bly_foreign *f;
    if (bly_foreign_new(wish_words(w, &words), &f)) {
        reply_error(ctx, "ERR Insufficient memory to create filter");
        return NULL;
    }
    value_keep(key, cf_type, f);
    srv.Replicate(ctx, "CF.RESERVE", "slclclcl", name, w->capacity,
                  "BUCKETSIZE", w->size, "MAXITERATIONS", w->iterations,
                  "EXPANSION", (long long)value_fact(f, "growth"));
    key_changed(ctx, "cuckoo.reserve", name);
    return f;
}

/* The value of an option of CF.RESERVE, where it is given: the first counts. */
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
        break;
    }
    return true;
}

static int cf_reserve(server_ctx *ctx, server_string **argv, int argc)
{
    cf_wish w = cf_usual(0);
    if (argc < 3 || argc % 2 == 0)
        return srv.WrongArity(ctx);
    for (int i = 3; i < argc; i += 2)
        if (!arg_is(argv[i], "MAXITERATIONS") &&
            !arg_is(argv[i], "BUCKETSIZE") && !arg_is(argv[i], "EXPANSION"))
            return reply_error(ctx, "Unknown argument received");
    if (srv.StringToLongLong(argv[2], &w.capacity) != SERVER_OK)
        return reply_error(ctx, "Bad capacity");
    if (!reserve_option(ctx, argv, argc, "MAXITERATIONS", 1, 65535,
                        &w.iterations) ||
        !reserve_option(ctx, argv, argc, "BUCKETSIZE", 1, 255, &w.size) ||
        !reserve_option(ctx, argv, argc, "EXPANSION", 0, 32768, &w.expansion))
        return SERVER_OK;
    if (w.capacity < 2 * w.size || w.capacity > CF_MAX_CAPACITY)
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
    } else if (cf_make(ctx, argv[1], key, &w)) {
        srv.ReplyWithSimpleString(ctx, "OK");
    }
    key_close(key);
    return SERVER_OK;
}

/* ------------------------------------------------------------------- adding */

/* The filter in a key that is to be added to, made where it is missing and
 * capacity is not 0. NULL, and an error was sent, if that cannot be. */
static bly_foreign *cf_for_adding(server_ctx *ctx, server_string *name,
                                  uint64_t capacity, server_key **key)
{
    void *value;
    const held what = key_open(ctx, name, SERVER_WRITE, cf_type, key, &value);
    bly_foreign *f = value;
    if (what == HELD_OTHER) {
        reply_error(ctx, WRONGTYPE);
    } else if (what == HELD_NONE && capacity) {
        const cf_wish w = cf_usual((long long)capacity);
        return cf_make(ctx, name, *key, &w);
    } else if (what == HELD_NONE) {
        reply_error(ctx, "ERR not found");
    } else if (bly_foreign_nparts(f) >= cf_now(EXPANSIONS) && !is_told(ctx)) {
        reply_error(ctx, "Maximum expansions reached");
        f = NULL;
    }
    return f;
}

/* Add n items and reply for each. The reply of CF.ADD, one item, has an error
 * where the others have -1. */
static void cf_add_items(effects *e, bly_foreign *f, server_string **argv,
                         int n, bool unique)
{
    const bool one = !e->is_insert,
               bools = one || (!unique && is_resp3(e->ctx));
    e->run = argv;
    for (size_t most = ITEMS_BATCH; n > 0;) {
        bly_bytes items[ITEMS_BATCH];
        uint64_t fresh[BLY_BITMAP_WORDS(ITEMS_BATCH)];
        size_t done;
        const size_t batch = arg_items(argv, n, most, items);
        const bly_status st =
            unique ? bly_foreign_add_new(f, items, batch, fresh, &done)
                   : bly_foreign_add(f, items, batch, NULL, &done);
        for (size_t i = 0; i < done; i++) {
            const bool added = !unique || fresh[i / 64] >> i % 64 & 1;
            e->changed |= added;
            if (bools)
                reply_bool(e->ctx, added);
            else
                srv.ReplyWithLongLong(e->ctx, added);
        }
        /* One that fails is done with, and most likely the next will fail. */
        most = st ? 1 : most < ITEMS_BATCH ? 2 * most : ITEMS_BATCH;
        if (st) {
            if (one)
                reply_error(e->ctx, st == BLY_EFULL
                                        ? "Filter is full"
                                        : "ERR Insufficient memory");
            else if (bools)
                reply_bool(e->ctx, false);
            else
                srv.ReplyWithLongLong(e->ctx, -1);
            effects_refuse(e, argv + done, argv + done + 1);
            done++;
        }
        argv += done;
        n -= (int)done;
    }
    if (effects_end(e, argv))
        key_changed(e->ctx, "cuckoo.add", e->name);
}

static int cf_add_one(server_ctx *ctx, server_string **argv, int argc,
                      bool unique)
{
    if (argc != 3)
        return srv.WrongArity(ctx);
    server_key *key;
    bly_foreign_note *const note = value_expect(argv[1], argv[2]);
    bly_foreign *f = cf_for_adding(ctx, argv[1], cf_now(INITIAL_SIZE), &key);
    effects e = { .ctx = ctx, .command = "CF.ADD", .name = argv[1] };
    if (f) {
        cf_add_items(&e, f, argv + 2, 1, unique);
        bly_foreign_note_take(f, note);
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

/* Words of CF.INSERT before its items; false, after replying why, if they are
 * wrong. */
static bool insert_options(server_ctx *ctx, server_string **argv, int argc,
                           uint64_t *capacity, int *items)
{
    long long wanted = (long long)cf_now(INITIAL_SIZE);
    bool create = true;
    int i = 2;
    for (; i < argc && !arg_starts(argv[i], "I"); i++) {
        if (arg_starts(argv[i], "N")) { /* NOCREATE */
            create = false;
        } else if (arg_starts(argv[i], "C") && i + 1 < argc) {
            if (srv.StringToLongLong(argv[++i], &wanted) != SERVER_OK) {
                reply_error(ctx, "Bad capacity");
                return false;
            }
            if (wanted < 2 * (long long)cf_now(BUCKET_SIZE) ||
                wanted > CF_MAX_CAPACITY) {
                reply_error(ctx, "Capacity must be in the range "
                                 "[cf-bucket-size * 2, 1073741824]");
                return false;
            }
        } else if (arg_starts(argv[i], "C")) {
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
    bly_foreign *f = cf_for_adding(ctx, argv[1], capacity, &key);
    effects e = { .ctx = ctx,
                  .command = unique ? "CF.INSERTNX" : "CF.INSERT",
                  .name = argv[1],
                  .is_insert = true };
    if (f) {
        srv.ReplyWithArray(ctx, argc - items);
        cf_add_items(&e, f, argv + items, argc - items, unique);
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
    bly_foreign_note *const note =
        argc == 3 ? value_expect(argv[1], argv[2]) : NULL;
    key_open(ctx, argv[1], SERVER_READ, cf_type, &key, &value);
    if (many)
        srv.ReplyWithArray(ctx, argc - 2);
    for (int at = 2; at < argc;) {
        bly_bytes items[ITEMS_BATCH];
        uint64_t found[BLY_BITMAP_WORDS(ITEMS_BATCH)] = { 0 };
        const size_t n = arg_items(argv + at, argc - at, ITEMS_BATCH, items);
        if (value)
            bly_foreign_has(value, items, n, found, NULL);
        for (size_t i = 0; i < n; i++)
            reply_bool(ctx, found[i / 64] >> i % 64 & 1);
        at += (int)n;
    }
    if (value && note)
        bly_foreign_note_take(value, note);
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
    const bly_bytes item = arg_item(argv[2]);
    uint64_t count = 0;
    if (value)
        bly_foreign_count(value, &item, 1, &count);
    srv.ReplyWithLongLong(ctx, (long long)count);
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
        const bool gone = !bly_foreign_remove(value, arg_item(argv[2]));
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
    const uint64_t before = value ? bly_foreign_changes(value) : 0;
    if (value)
        bly_foreign_compact(value);
    return key_written(
        ctx, key, argv[1],
        value && bly_foreign_changes(value) != before ? "cuckoo.compact" : NULL,
        value ? NULL : "Cuckoo filter was not found");
}

/* The filter in a key that is looked at; NULL, and an error was sent. */
static bly_foreign *cf_to_read(server_ctx *ctx, server_string *name,
                               server_key **key)
{
    return key_value(ctx, name, SERVER_READ, cf_type, "ERR not found", key);
}

/* The numbers that CF.INFO and CF.DEBUG tell. */
typedef struct cf_numbers {
    uint64_t size; /* as the peer counts: 40, 16 a table, and the slots */
    uint64_t buckets, tables, items, deletes, bucket_size, expansion;
    uint64_t iterations;
} cf_numbers;

static cf_numbers cf_numbers_of(const bly_foreign *f)
{
    const bly_foreign_sizes s = value_sizes(f);
    return (cf_numbers){
        .size = 40 + 16 * s.nparts + s.nbytes,
        .buckets = (uint64_t)value_fact(f, "buckets"),
        .tables = s.nparts,
        .items = s.items,
        .deletes = (uint64_t)value_fact(f, "deletes"),
        .bucket_size = (uint64_t)value_fact(f, "bucket_size"),
        .expansion = (uint64_t)value_fact(f, "growth"),
        .iterations = (uint64_t)value_fact(f, "max_iterations"),
    };
}

static int cf_info(server_ctx *ctx, server_string **argv, int argc)
{
    if (argc != 2)
        return srv.WrongArity(ctx);
    server_key *key;
    const bly_foreign *f = cf_to_read(ctx, argv[1], &key);
    if (f) {
        const cf_numbers c = cf_numbers_of(f);
        reply_map(ctx, 8);
        reply_number(ctx, "Size", c.size);
        reply_number(ctx, "Number of buckets", c.buckets);
        reply_number(ctx, "Number of filters", c.tables);
        reply_number(ctx, "Number of items inserted", c.items);
        reply_number(ctx, "Number of items deleted", c.deletes);
        reply_number(ctx, "Bucket size", c.bucket_size);
        reply_number(ctx, "Expansion rate", c.expansion);
        reply_number(ctx, "Max iterations", c.iterations);
    }
    key_close(key);
    return SERVER_OK;
}

static int cf_debug(server_ctx *ctx, server_string **argv, int argc)
{
    if (argc != 2)
        return srv.WrongArity(ctx);
    server_key *key;
    const bly_foreign *f = cf_to_read(ctx, argv[1], &key);
    if (f) {
        const cf_numbers c = cf_numbers_of(f);
        char text[200];
        const int n = snprintf(
            text, sizeof text,
            "bktsize:%llu buckets:%llu items:%llu deletes:%llu filters:%llu "
            "max_iterations:%llu expansion:%llu",
            (unsigned long long)c.bucket_size, (unsigned long long)c.buckets,
            (unsigned long long)c.items, (unsigned long long)c.deletes,
            (unsigned long long)c.tables, (unsigned long long)c.iterations,
            (unsigned long long)c.expansion);
        srv.ReplyWithStringBuffer(ctx, text, (size_t)n);
    }
    key_close(key);
    return SERVER_OK;
}

/* ------------------------------------------------------ SCANDUMP, LOADCHUNK */

#define CF_HEADER 38

static int cf_scandump(server_ctx *ctx, server_string **argv, int argc)
{
    long long at;
    if (argc != 3)
        return srv.WrongArity(ctx);
    if (srv.StringToLongLong(argv[2], &at) != SERVER_OK || at < 0)
        return reply_error(ctx, "Invalid position");
    server_key *key;
    const bly_foreign *f = cf_to_read(ctx, argv[1], &key);
    /* One without items cannot be moved this way, as in the peer. */
    if (f)
        reply_piece(ctx, f, cf_numbers_of(f).items ? at : -1,
                    srv.ReplyWithNull);
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
    const bly_foreign_spec spec = { .format = CF_FORMAT, .mem = &cf_memory };
    bly_foreign *f = value;
    bool changed = true;
    const char *wrong = NULL;
    if (what == HELD_OTHER) {
        wrong = WRONGTYPE;
    } else if (at == 1 && f) {
        wrong = "ERR item exists";
    } else if (at == 1 && data.n != CF_HEADER) {
        wrong = "Invalid header";
    } else if (at == 1 && bly_foreign_start(&spec, data.at, data.n, &f)) {
        wrong = "Couldn't create filter!";
    } else if (at == 1) {
        value_keep(key, cf_type, f);
    } else if (!f) {
        wrong = "ERR not found";
    } else if (piece_take(f, at, data, &changed) != data.n || !data.n) {
        wrong = "Couldn't load chunk!";
    }
    return key_written(ctx, key, argv[1], changed ? "cuckoo.loadchunk" : NULL,
                       wrong);
}

/* --------------------------------------------------------------- the server */

/* Dumps of old have no shape, and take it from the settings. */
static void *cf_load(server_io *io, int encoding)
{
    const cf_wish w = cf_usual(0);
    value_words words;
    return value_load(io, encoding, wish_words(&w, &words));
}

static void cf_rewrite(server_io *io, server_string *key, void *value)
{
    rewrite_pieces(io, "CF.LOADCHUNK", key, value);
}

static size_t cf_mem_usage(const void *value)
{
    return value_mem_usage(value, 56 + (size_t)cf_numbers_of(value).size);
}

static int cf_start(server_ctx *ctx)
{
    server_methods methods = value_methods;
    methods.rdb_load = cf_load;
    methods.aof_rewrite = cf_rewrite;
    methods.mem_usage = cf_mem_usage;
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
    .count = &cf_tally,
    .start = cf_start,
    .argument = cf_argument,
};
