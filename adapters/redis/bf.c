/*
 * bf.c - BF.*: Bloom filters, as clients of RedisBloom and of valkey-bloom
 * know them
 *
 * A filter is made by RedisBloom's rules, and by valkey-bloom's where an option
 * that only valkey-bloom has is given; it keeps these rules for life. Three
 * things differ from both systems: commands that change nothing are not
 * replicated, and replicas get the exact parameters of a new filter; COPY,
 * digests and events work for filters of either kind; and the items of a
 * command are all hashed, then prefetched, then touched. The filters themselves
 * are the library's (src/foreign/bloom_chain.c).
 *
 * Here are the settings, adding and asking; bf_make.c makes filters, bf_info.c
 * tells of them, bf_type.c opens and keeps them, and bf_dump.c takes them in
 * and gives them out.
 */
#include "adapters/redis/bf.h"

#include "adapters/redis/pages.h"

/* ----------------------------------------------------------------- settings */

setting bf_settings[BF_NSETTINGS] = {
    [BF_RATE] = { .name = "bf-error-rate",
                  .old_name = "ERROR_RATE",
                  .def = 0.01,
                  .min = 0,
                  .max = 1,
                  .real = true },
    [BF_CAPACITY] = { .name = "bf-initial-size",
                      .old_name = "INITIAL_SIZE",
                      .def = 100,
                      .min = 1,
                      .max = 0x1p30 },
    [BF_EXPANSION] = { .name = "bf-expansion-factor",
                       .def = 2,
                       .min = 0,
                       .max = BF_MAX_EXPANSION },
    /* valkey-bloom's: for filters that are made by its rules. */
    [BF_VALKEY_CAPACITY] = { .name = "bloom-capacity",
                             .def = 100,
                             .min = 1,
                             .max = 0x1p53 },
    [BF_VALKEY_EXPANSION] = { .name = "bloom-expansion",
                              .def = 2,
                              .min = 0,
                              .max = 4294967295.0 },
    [BF_VALKEY_RATE] = { .name = "bloom-fp-rate",
                         .def = 0.01,
                         .min = 0,
                         .max = 1,
                         .real = true },
    [BF_TIGHTENING] = { .name = "bloom-tightening-ratio",
                        .def = 0.5,
                        .min = 0,
                        .max = 1,
                        .real = true },
    /* Of all filters; 0 is none. valkey-bloom has 128 MiB. */
    [BF_MEMORY_LIMIT] = { .name = "bloom-memory-usage-limit",
                          .def = 0,
                          .min = 0,
                          .max = 0x1p53 },
    [BF_RANDOM_SEED] = { .name = "bloom-use-random-seed",
                         .def = 1,
                         .max = 1,
                         .flag = true },
    [BF_DEFRAG] = { .name = "bloom-defrag-enabled",
                    .def = 1,
                    .max = 1,
                    .flag = true },
    /* For clients that come from valkey-bloom. */
    [BF_VALKEY_RULES] = { .name = "bf-valkey-rules", .max = 1, .flag = true },
    [BF_HUGE_PAGES] = { .name = "bf-huge-pages",
                        .def = 1,
                        .max = 1,
                        .flag = true },
    /* To measure what it is worth. */
    [BF_AHEAD] = { .name = "bf-fetch-ahead", .def = 1, .max = 1, .flag = true },
};

bool bf_may_move(void)
{
    return bf_now(BF_DEFRAG) != 0;
}

uint64_t bf_limit(server_ctx *ctx)
{
    const uint64_t limit = (uint64_t)bf_now(BF_MEMORY_LIMIT);
    return limit && is_told(ctx) ? 0 : limit;
}
/* ------------------------------------------------------------------- adding */

/* Why an item was not added; *stops: nor will be any that follows. */
static const char *add_error(const bly_foreign *f, bly_status why, bool *stops)
{
    /* One that has grown scales, and is not described for every item. */
    *stops = why == BLY_EFULL && bly_foreign_nparts(f) == 1 && !bf_expansion(f);
    if (*stops)
        return "ERR non scaling filter is full";
    if (why == BLY_EFULL)
        return bly_foreign_nparts(f) < 65536
                   ? "ERR false positive degrades to 0 on scale out"
                   : "ERR bloom object reached max number of filters";
    return bf_is_valkey(f) ? BF_OVER_LIMIT
                           : "ERR problem inserting into filter";
}

/* As many as go together. */
static size_t bf_batch(void)
{
    return bf_now(BF_AHEAD) == 0 ? 1 : ITEMS_BATCH;
}

/* What is noted after a command with one item; NULL: nothing. */
static bly_foreign_note *expect_item(server_string **argv, int argc)
{
    return argc == 3 && bf_now(BF_AHEAD) != 0 ? value_expect(argv[1], argv[2])
                                              : NULL;
}

static void bf_asked(server_ctx *ctx, const bly_foreign *f, int nitems)
{
    if (bf_now(BF_HUGE_PAGES) != 0)
        pages_asked(ctx, f, (size_t)nitems);
}

static void reply_found(server_ctx *ctx, bool valkey, const uint64_t *bitmap,
                        size_t i)
{
    const bool yes = bitmap[i / 64] >> i % 64 & 1;
    if (valkey)
        srv.ReplyWithLongLong(ctx, yes);
    else
        reply_bool(ctx, yes);
}

/* Add n items and reply for each; the number of replies. *nfresh: of items that
 * were new. */
static long add_items(effects *e, bly_foreign *f, server_string **argv, int n,
                      uint64_t *nfresh)
{
    const bool valkey = bf_is_valkey(f);
    long nreplies = 0;
    size_t most = bf_batch();
    e->run = argv;
    bly_foreign_limit(f, bf_limit(e->ctx));
    for (bool stops = false; n > 0 && !stops;) {
        bly_bytes items[ITEMS_BATCH];
        uint64_t fresh[BLY_BITMAP_WORDS(ITEMS_BATCH)], before = *nfresh;
        size_t done;
        const size_t batch = arg_items(argv, n, most, items);
        const bly_status st = bly_foreign_add(f, items, batch, fresh, &done);
        /* When an item fails, the look-ups made for the items behind it are
         * wasted, and the next one will most likely fail too. */
        most = st ? 1 : 2 * most < bf_batch() ? 2 * most : bf_batch();
        for (size_t i = 0; i < done; i++) {
            reply_found(e->ctx, valkey, fresh, i);
            *nfresh += fresh[i / 64] >> i % 64 & 1;
        }
        e->changed |= *nfresh != before;
        if (st) { /* the one that failed is done with */
            reply_error(e->ctx, "%s", add_error(f, st, &stops));
            effects_refuse(e, argv + done, argv + done + 1);
            done++;
        }
        nreplies += (long)done;
        argv += done;
        n -= (int)done;
    }
    effects_end(e, argv);
    return nreplies;
}

/* May the reply for n items end before the last of them, as add_error() says?
 */
static bool may_end_early(const bly_foreign *f, int n)
{
    if (bly_foreign_nparts(f) != 1)
        return false;
    const bly_foreign_sizes s = value_sizes(f);
    return s.capacity - s.items < (uint64_t)n || s.items > s.capacity;
}

void bf_add_and_tell(server_ctx *ctx, server_string **argv, int argc, int first,
                     bly_foreign *f, bool array)
{
    const size_t before = bly_foreign_nparts(f);
    effects e = { .ctx = ctx, .command = "BF.MADD", .name = argv[1] };
    uint64_t nfresh = 0;
    /* A length that is said later costs a buffer of 16 KiB and a copy. */
    const bool later = array && may_end_early(f, argc - first);
    if (array)
        srv.ReplyWithArray(ctx, later ? SERVER_LATER : argc - first);
    long n = add_items(&e, f, argv + first, argc - first, &nfresh);
    if (later)
        srv.ReplySetArrayLength(ctx, n);
    /* What was announced is sent: a client that still waits for a reply would
     * take the next one for it. */
    for (; array && !later && n < argc - first; n++)
        reply_error(ctx, "ERR problem inserting into filter");
    bf_asked(ctx, f, argc - first);
    if (nfresh) {
        bf_account_added(f, before, nfresh);
        key_changed(ctx, "bloom.add", argv[1]);
    }
}

bly_foreign *bf_for_adding(server_ctx *ctx, server_string *name,
                           server_key **key, bool *missing)
{
    bly_foreign *f;
    const held what = bf_open(ctx, name, SERVER_WRITE, key, &f);
    *missing = what == HELD_NONE;
    if (what == HELD_OTHER)
        reply_error(ctx, WRONGTYPE);
    return f;
}

static int bf_add_many(server_ctx *ctx, server_string **argv, int argc,
                       bool many)
{
    if (many ? argc < 3 : argc != 3)
        return srv.WrongArity(ctx);
    server_key *key;
    bool missing;
    bly_foreign_note *const note = expect_item(argv, argc);
    bly_foreign *f = bf_for_adding(ctx, argv[1], &key, &missing);
    if (missing)
        f = bf_make_usual(ctx, argv[1], key);
    if (f)
        bf_add_and_tell(ctx, argv, argc, 2, f, many);
    if (f && note)
        bly_foreign_note_take(f, note);
    key_close(key);
    return SERVER_OK;
}

static int bf_add_command(server_ctx *ctx, server_string **argv, int argc)
{
    return bf_add_many(ctx, argv, argc, false);
}

static int bf_madd(server_ctx *ctx, server_string **argv, int argc)
{
    return bf_add_many(ctx, argv, argc, true);
}
/* ------------------------------------------------------------------- asking */

static int bf_exists_many(server_ctx *ctx, server_string **argv, int argc,
                          bool many)
{
    if (many ? argc < 3 : argc != 3)
        return srv.WrongArity(ctx);
    server_key *key;
    bly_foreign *f; /* NULL for a missing key and for another type: no */
    const bool valkey = bf_by_valkey_rules(ctx);
    bly_foreign_note *const note = expect_item(argv, argc);
    if (bf_open(ctx, argv[1], SERVER_READ, &key, &f) == HELD_OTHER && valkey) {
        key_close(key);
        return reply_error(ctx, WRONGTYPE);
    }
    if (many)
        srv.ReplyWithArray(ctx, argc - 2);
    for (int at = 2; at < argc && !f; at++)
        if (valkey)
            srv.ReplyWithLongLong(ctx, 0);
        else
            reply_bool(ctx, false);
    const bool as_number = f && bf_is_valkey(f);
    for (int at = 2; at < argc && f;) {
        bly_bytes items[ITEMS_BATCH];
        uint64_t found[BLY_BITMAP_WORDS(ITEMS_BATCH)];
        const size_t n = arg_items(argv + at, argc - at, bf_batch(), items);
        bly_foreign_has(f, items, n, found, NULL); /* bytes: cannot fail */
        for (size_t i = 0; i < n; i++)
            reply_found(ctx, as_number, found, i);
        at += (int)n;
    }
    if (f)
        bf_asked(ctx, f, argc - 2);
    if (f && note)
        bly_foreign_note_take(f, note);
    key_close(key);
    return SERVER_OK;
}

static int bf_exists(server_ctx *ctx, server_string **argv, int argc)
{
    return bf_exists_many(ctx, argv, argc, false);
}

static int bf_mexists(server_ctx *ctx, server_string **argv, int argc)
{
    return bf_exists_many(ctx, argv, argc, true);
}

/* --------------------------------------------------------------- the family */

static int bf_start(server_ctx *ctx)
{
    return bf_types_start(ctx) == SERVER_OK
               ? settings_register(ctx, bf_settings, BF_NSETTINGS)
               : SERVER_ERR;
}

static int bf_argument(server_ctx *ctx, const char *name, server_string *value)
{
    return settings_argument(ctx, bf_settings, BF_NSETTINGS, name, value);
}

static void bf_tell(server_info *info)
{
    if (!srv.InfoAddFieldULongLong)
        return;
    const struct {
        const char *name;
        uint64_t value;
    } rows[] = {
        { "bloom_total_memory_bytes", bf_total.bytes },
        { "bloom_num_objects", bf_total.objects },
        { "bloom_num_filters_across_objects", bf_total.filters },
        { "bloom_num_items_across_objects", bf_total.items },
        { "bloom_capacity_across_objects", bf_total.capacity },
        { "bloom_defrag_hits", value_defrag_hits },
        { "bloom_defrag_misses", value_defrag_misses },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        srv.InfoAddFieldULongLong(info, rows[i].name, rows[i].value);
}

#define BF_PROBES "O(n * k)"

static const command_row bf_commands[] = {
    { "bf.reserve", "write deny-oom", "write fast", "1.0.0",
      "Makes an empty Bloom filter", "O(1)",
      "key error_rate:double capacity:integer [EXPANSION expansion:integer] "
      "[NONSCALING]",
      bf_reserve, 0 },
    { "bf.add", "write deny-oom", "write", "1.0.0", "Adds an item", "O(k)",
      "key item", bf_add_command, 0 },
    { "bf.madd", "write deny-oom", "write", "1.0.0", "Adds items", BF_PROBES,
      "key item...", bf_madd, 0 },
    { "bf.insert", "write deny-oom", "write", "1.0.0",
      "Adds items, and makes the filter as told", BF_PROBES,
      "key [CAPACITY capacity:integer] [ERROR error:double] [EXPANSION "
      "expansion:integer] [NOCREATE] [NONSCALING] [TIGHTENING "
      "tightening:double] [SEED seed] [VALIDATESCALETO "
      "validatescaleto:integer] [ITEMS item...]",
      bf_insert, 0 },
    { "bf.exists", "readonly fast", "read", "1.0.0",
      "Whether an item may be there", "O(k)", "key item", bf_exists, 0 },
    { "bf.mexists", "readonly fast", "read", "1.0.0",
      "Whether items may be there", BF_PROBES, "key item...", bf_mexists, 0 },
    { "bf.card", "readonly fast", "read fast", "2.4.4",
      "How many items were added", "O(1)", "key", bf_card, 0 },
    { "bf.info", "readonly fast", "read fast", "1.0.0",
      "What a filter is made of", "O(1)", "key [field]", bf_info, 0 },
    { "bf.debug", "readonly fast", "read", "1.0.0", "The sub-filters", "O(n)",
      "key", bf_debug, 0 },
    { "bf.scandump", "readonly fast", "read", "1.0.0",
      "Gives a filter out in pieces", "O(n)", "key iterator:integer",
      bf_scandump, 0 },
    { "bf.loadchunk", "write deny-oom", "write", "1.0.0",
      "Takes a piece of a filter", "O(n)", "key iterator:integer data",
      bf_loadchunk, 0 },
    { "bf.load", "write deny-oom", "write", "1.0.0",
      "Takes a whole filter of valkey-bloom", "O(n)", "key data",
      bf_load_command, 0 },
    { 0 },
};

const family family_bf = {
    .category = "bloom",
    .commands = bf_commands,
    .start = bf_start,
    .argument = bf_argument,
    .info = bf_tell,
};
