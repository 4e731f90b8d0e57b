/*
 * redis_topk.c - TOPK.*: the heaviest items of a stream
 *
 * The lists themselves are the library's, RedisBloom's HeavyKeeper with chance
 * that belongs to the key (src/foreign/redistopk.c).
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "adapters/redis/redis_value.h"

#define TOPK_FORMAT "redistopk"
#define TOPK_ENCODING 0
#define TOPK_MAX_INCREMENT 100000

static server_type *topk_type;
static tally topk_tally;
static const bly_mem topk_memory = SERVER_MEMORY(&topk_tally);

/* ----------------------------------------------------------------- commands */

static bly_foreign *topk_open(server_ctx *ctx, server_string *name, int mode,
                              server_key **key)
{
    return key_value(ctx, name, mode, topk_type, "TopK: key does not exist",
                     key);
}

/* NULL without memory. */
static bly_foreign *topk_new(uint64_t k, uint64_t width, uint64_t depth,
                             double decay)
{
    value_words w = {
        .spec = { .format = TOPK_FORMAT, .mem = &topk_memory },
    };
    bly_foreign *t;
    value_word(&w, "k", "%llu", (unsigned long long)k);
    value_word(&w, "width", "%llu", (unsigned long long)width);
    value_word(&w, "depth", "%llu", (unsigned long long)depth);
    value_word(&w, "decay", "%.17g", decay);
    return bly_foreign_new(&w.spec, &t) ? NULL : t;
}

static int topk_reserve(server_ctx *ctx, server_string **argv, int argc)
{
    uint64_t k = 0, width = 8, depth = 7;
    double decay = 0.9;
    if (argc != 3 && argc != 6)
        return srv.WrongArity(ctx);
    server_key *key;
    void *value;
    const char *wrong = NULL;
    bly_foreign *t = NULL;
    if (key_open(ctx, argv[1], SERVER_WRITE, topk_type, &key, &value) !=
        HELD_NONE)
        wrong = "TopK: key already exists";
    else if (!arg_number(argv[2], 1, UINT32_MAX, &k))
        wrong = "TopK: invalid k";
    else if (argc == 6 && !arg_number(argv[3], 1, UINT32_MAX, &width))
        wrong = "TopK: invalid width";
    else if (argc == 6 && !arg_number(argv[4], 1, UINT32_MAX, &depth))
        wrong = "TopK: invalid depth";
    else if (argc == 6 && (srv.StringToDouble(argv[5], &decay) != SERVER_OK ||
                           !(decay > 0 && decay <= 1)))
        wrong = "TopK: invalid decay value. must be '<= 1' & '> 0'";
    else if (!(t = topk_new(k, width, depth, decay)))
        wrong = "ERR Insufficient memory to create topk data structure";
    else
        value_keep(key, topk_type, t);
    return key_written(ctx, key, argv[1], "topk.reserve", wrong);
}

#define TOPK_BAD_INCREMENT                                     \
    "TopK: increment must be an integer greater or equal to 0" \
    "                            and smaller or equal to 100,000"

/* Whether the list has changed since *seen: asked before effects are told, and
 * not for every item. */
static void note_changes(effects *e, const bly_foreign *t, uint64_t *seen)
{
    const uint64_t now = bly_foreign_changes(t);
    e->changed |= now != *seen;
    *seen = now;
}

/* Items that go together, and how many of them are done. */
typedef struct raising {
    effects e;
    uint64_t seen; /* note_changes() */
    bly_bytes items[ITEMS_BATCH];
    uint64_t by[ITEMS_BATCH];
    size_t n, done;
} raising;

/* Items and their increments from argv on; false where one of these is bad,
 * which ends them. */
static bool raising_read(raising *r, server_string **argv, int argc, int step)
{
    for (r->n = r->done = 0; r->n < ITEMS_BATCH && argc > 0; r->n++) {
        r->items[r->n] = arg_item(argv[0]);
        r->by[r->n] = 1;
        if (step == 2 &&
            !arg_number(argv[1], 0, TOPK_MAX_INCREMENT, &r->by[r->n]))
            return false;
        argv += step;
        argc -= step;
    }
    return true;
}

/* Reply with what an item has pushed out. */
static void reply_left(void *ctx, size_t i, uint64_t now, bly_bytes left)
{
    raising *r = ctx;
    (void)i, (void)now;
    if (left.ptr)
        srv.ReplyWithStringBuffer(r->e.ctx, left.ptr, left.len);
    else
        srv.ReplyWithNull(r->e.ctx);
    r->done++;
}

/* Where there is no memory for one, the next is tried. */
static void raising_run(raising *r, bly_foreign *t, server_string **argv,
                        int step)
{
    while (r->done < r->n) {
        if (!bly_foreign_increase_each(t, r->items + r->done, r->by + r->done,
                                       r->n - r->done, reply_left, r))
            return;
        reply_error(r->e.ctx, "ERR Insufficient memory");
        note_changes(&r->e, t, &r->seen);
        server_string **at = argv + (size_t)step * r->done++;
        effects_refuse(&r->e, at, at + step);
    }
}

/* Items, each with its increment where step is 2. A bad increment is an error
 * in its place. What stands behind it is not added, as in the peer, and gets
 * the same error, so that the array has the length that was announced. */
static int topk_increase(server_ctx *ctx, server_string **argv, int argc,
                         int step, const char *event)
{
    server_key *key;
    bly_foreign *t = topk_open(ctx, argv[1], SERVER_WRITE, &key);
    raising r;
    r.e = (effects){ .ctx = ctx,
                     .command = step == 2 ? "TOPK.INCRBY" : "TOPK.ADD",
                     .name = argv[1],
                     .run = argv + 2 };
    r.seen = t ? bly_foreign_changes(t) : 0;
    if (t)
        srv.ReplyWithArray(ctx, (argc - 2) / step);
    bool good = true;
    for (int i = 2; t && i < argc && good;) {
        good = raising_read(&r, argv + i, argc - i, step);
        raising_run(&r, t, argv + i, step);
        i += (int)r.n * step;
        if (!good) {
            note_changes(&r.e, t, &r.seen);
            effects_refuse(&r.e, argv + i, argv + argc);
        }
        for (; i < argc && !good; i += step)
            reply_error(ctx, TOPK_BAD_INCREMENT);
    }
    if (t)
        note_changes(&r.e, t, &r.seen);
    if (effects_end(&r.e, argv + argc))
        key_changed(ctx, event, argv[1]);
    key_close(key);
    return SERVER_OK;
}

static int topk_add_command(server_ctx *ctx, server_string **argv, int argc)
{
    return argc < 3 ? srv.WrongArity(ctx)
                    : topk_increase(ctx, argv, argc, 1, "topk.add");
}

static int topk_incrby(server_ctx *ctx, server_string **argv, int argc)
{
    return argc < 4 || argc % 2
               ? srv.WrongArity(ctx)
               : topk_increase(ctx, argv, argc, 2, "topk.incrby");
}

static int topk_query(server_ctx *ctx, server_string **argv, int argc)
{
    if (argc < 3)
        return srv.WrongArity(ctx);
    server_key *key;
    bly_foreign *t = topk_open(ctx, argv[1], SERVER_READ, &key);
    if (t)
        srv.ReplyWithArray(ctx, argc - 2);
    for (int at = 2; at < argc && t;) {
        bly_bytes items[ITEMS_BATCH];
        uint64_t listed[BLY_BITMAP_WORDS(ITEMS_BATCH)];
        const size_t n = arg_items(argv + at, argc - at, ITEMS_BATCH, items);
        bly_foreign_has(t, items, n, listed, NULL); /* bytes: cannot fail */
        for (size_t i = 0; i < n; i++)
            reply_bool(ctx, listed[i / 64] >> i % 64 & 1);
        at += (int)n;
    }
    key_close(key);
    return SERVER_OK;
}

static int topk_count(server_ctx *ctx, server_string **argv, int argc)
{
    return value_counts(ctx, argv, argc, topk_open);
}

/* TOPK.LIST key [WITHCOUNT], which the peer takes abbreviated, too. */
static int topk_list(server_ctx *ctx, server_string **argv, int argc)
{
    if (argc < 2 || argc > 3)
        return srv.WrongArity(ctx);
    const bytes word = argc == 3 ? arg_bytes(argv[2]) : (bytes){ 0 };
    if (word.n > strlen("WITHCOUNT") ||
        (word.n && strncasecmp(word.at, "WITHCOUNT", word.n) != 0))
        return reply_error(ctx, "WITHCOUNT keyword expected");
    server_key *key;
    bly_foreign *t = topk_open(ctx, argv[1], SERVER_READ, &key);
    size_t n = t ? bly_foreign_list(t, NULL, 0) : 0;
    bly_foreign_item *sorted = NULL;
    if (t && !(sorted = memory_try(n * sizeof *sorted)))
        reply_error(ctx, "ERR Insufficient memory");
    if (sorted) {
        bly_foreign_list(t, sorted, n);
        while (n && !sorted[n - 1].count) /* on the list, but not shown */
            n--;
        srv.ReplyWithArray(ctx, (long)n * (argc == 3 ? 2 : 1));
        for (size_t i = 0; i < n; i++) {
            srv.ReplyWithStringBuffer(ctx, sorted[i].key.ptr,
                                      sorted[i].key.len);
            if (argc == 3)
                srv.ReplyWithLongLong(ctx, (long long)sorted[i].count);
        }
    }
    memory_free(sorted);
    key_close(key);
    return SERVER_OK;
}

static int topk_info(server_ctx *ctx, server_string **argv, int argc)
{
    if (argc != 2)
        return srv.WrongArity(ctx);
    server_key *key;
    bly_foreign *t = topk_open(ctx, argv[1], SERVER_READ, &key);
    if (t) {
        reply_map(ctx, 4);
        reply_number(ctx, "k", (uint64_t)value_fact(t, "k"));
        reply_number(ctx, "width", (uint64_t)value_fact(t, "width"));
        reply_number(ctx, "depth", (uint64_t)value_fact(t, "depth"));
        srv.ReplyWithSimpleString(ctx, "decay");
        srv.ReplyWithDouble(ctx, value_fact(t, "decay"));
    }
    key_close(key);
    return SERVER_OK;
}

/* --------------------------------------------------------------- the server */

static void *topk_load(server_io *io, int encoding)
{
    const bly_foreign_spec spec = { .format = TOPK_FORMAT,
                                    .mem = &topk_memory };
    return value_load(io, encoding, &spec);
}

static size_t topk_mem_usage(const void *value)
{
    return value_mem_usage(value, 48 + (size_t)value_sizes(value).nbytes +
                                      (size_t)value_fact(value, "list_bytes"));
}

/* An allocation for each item, and for what each of them takes. */
static size_t topk_free_effort(server_string *key, const void *value)
{
    (void)key;
    return 1 + bly_foreign_list(value, NULL, 0) + /* 0 would be very much */
           (size_t)(topk_mem_usage(value) / FREE_STEP);
}

static int topk_start(server_ctx *ctx)
{
    server_methods methods = value_methods;
    methods.rdb_load = topk_load;
    methods.aof_rewrite = rewrite_as_restore;
    methods.mem_usage = topk_mem_usage;
    methods.free_effort = topk_free_effort;
    topk_type = srv.CreateDataType(ctx, "TopK-TYPE", TOPK_ENCODING, &methods);
    return topk_type ? SERVER_OK : SERVER_ERR;
}

static const command_row topk_commands[] = {
    { "topk.reserve", "write deny-oom", "write fast", "2.0.0",
      "Makes an empty list", "O(width * depth)",
      "key topk:integer [width:integer depth:integer decay:double]",
      topk_reserve, 0 },
    { "topk.add", "write deny-oom", "write", "2.0.0", "Adds items",
      "O(n * depth + k)", "key item...", topk_add_command, 0 },
    { "topk.incrby", "write deny-oom", "write", "2.0.0",
      "Adds items several times", "O(n * depth * increment + k)",
      "key (item increment:integer)...", topk_incrby, 0 },
    { "topk.query", "readonly", "read", "2.0.0",
      "Whether items are on the list", "O(n * k)", "key item...", topk_query,
      0 },
    { "topk.count", "readonly", "read", "2.0.0", "Estimated counts of items",
      "O(n * depth)", "key item...", topk_count, 0 },
    { "topk.list", "readonly", "read", "2.0.0", "The list, heaviest first",
      "O(k * log(k))", "key [WITHCOUNT]", topk_list, 0 },
    { "topk.info", "readonly", "read fast", "2.0.0", "What a list is made for",
      "O(1)", "key", topk_info, 0 },
    { 0 },
};

const family family_topk = {
    .category = "topk",
    .commands = topk_commands,
    .count = &topk_tally,
    .start = topk_start,
};
