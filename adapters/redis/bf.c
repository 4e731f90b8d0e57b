/*
 * bf.c - BF.*: Bloom filters, as clients of RedisBloom and of valkey-bloom
 * know them
 *
 * A filter is made by RedisBloom's rules, and by valkey-bloom's where an option
 * that only that has is given; it keeps to them. What differs from both: what
 * changes nothing is not replicated, and a filter that is made goes to replicas
 * with its exact parameters; COPY, digests and events work for both; items of a
 * command are hashed first, then fetched ahead, then touched. The filters
 * themselves are the library's (src/foreign/bloom_chain.c).
 */
#define _GNU_SOURCE
#include "adapters/redis/bf.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "adapters/redis/config.h"
#include "adapters/redis/pages.h"

#define MAX_RATE 0.25 /* what is above is taken as this */
#define MAX_CAPACITY (INT64_C(1) << 30)
#define MAX_EXPANSION 32768

/* ----------------------------------------------------------------- settings */

enum {
    RATE,
    CAPACITY,
    EXPANSION,
    VALKEY_CAPACITY,
    VALKEY_EXPANSION,
    VALKEY_RATE,
    TIGHTENING,
    MEMORY_LIMIT,
    RANDOM_SEED,
    DEFRAG,
    VALKEY_RULES,
    HUGE_PAGES,
    AHEAD,
    NSETTINGS
};

static setting bf_settings[NSETTINGS] = {
    [RATE] = { .name = "bf-error-rate",
               .old_name = "ERROR_RATE",
               .def = 0.01,
               .min = 0,
               .max = 1,
               .real = true },
    [CAPACITY] = { .name = "bf-initial-size",
                   .old_name = "INITIAL_SIZE",
                   .def = 100,
                   .min = 1,
                   .max = 0x1p30 },
    [EXPANSION] = { .name = "bf-expansion-factor",
                    .def = 2,
                    .min = 0,
                    .max = MAX_EXPANSION },
    /* valkey-bloom's: for filters that are made by its rules. */
    [VALKEY_CAPACITY] = { .name = "bloom-capacity",
                          .def = 100,
                          .min = 1,
                          .max = 0x1p53 },
    [VALKEY_EXPANSION] = { .name = "bloom-expansion",
                           .def = 2,
                           .min = 0,
                           .max = 4294967295.0 },
    [VALKEY_RATE] = { .name = "bloom-fp-rate",
                      .def = 0.01,
                      .min = 0,
                      .max = 1,
                      .real = true },
    [TIGHTENING] = { .name = "bloom-tightening-ratio",
                     .def = 0.5,
                     .min = 0,
                     .max = 1,
                     .real = true },
    /* Of all filters; 0 is none. valkey-bloom has 128 MiB. */
    [MEMORY_LIMIT] = { .name = "bloom-memory-usage-limit",
                       .def = 0,
                       .min = 0,
                       .max = 0x1p53 },
    [RANDOM_SEED] = { .name = "bloom-use-random-seed",
                      .def = 1,
                      .max = 1,
                      .flag = true },
    [DEFRAG] = { .name = "bloom-defrag-enabled",
                 .def = 1,
                 .max = 1,
                 .flag = true },
    /* For clients that come from valkey-bloom. */
    [VALKEY_RULES] = { .name = "bf-valkey-rules", .max = 1, .flag = true },
    [HUGE_PAGES] = { .name = "bf-huge-pages",
                     .def = 1,
                     .max = 1,
                     .flag = true },
    /* To measure what it is worth. */
    [AHEAD] = { .name = "bf-fetch-ahead", .def = 1, .max = 1, .flag = true },
};

static double bf_now(int which)
{
    return bf_settings[which].value;
}

bool bf_may_move(void)
{
    return bf_now(DEFRAG) != 0;
}

/* Bytes that a key may take: what a primary has allowed is not asked again. */
static uint64_t bf_limit(server_ctx *ctx)
{
    const uint64_t limit = (uint64_t)bf_now(MEMORY_LIMIT);
    return limit && is_told(ctx) ? 0 : limit;
}

/* ------------------------------------------------------------------- making */

/* What is to be made. */
typedef struct bf_wish {
    bool valkey;
    double rate;
    uint64_t capacity;
    uint32_t expansion; /* 0: non-scaling */
    double tightening;
    unsigned char seed[32];
    bool seeded; /* else it has the seed that all have */
} bf_wish;

static bf_wish wish_redis(void)
{
    return (bf_wish){ .rate = fmin(bf_now(RATE), MAX_RATE),
                      .capacity = (uint64_t)bf_now(CAPACITY),
                      .expansion = (uint32_t)bf_now(EXPANSION) };
}

static bf_wish wish_valkey(void)
{
    bf_wish w = { .valkey = true,
                  .rate = bf_now(VALKEY_RATE),
                  .capacity = (uint64_t)bf_now(VALKEY_CAPACITY),
                  .expansion = (uint32_t)bf_now(VALKEY_EXPANSION),
                  .tightening = bf_now(TIGHTENING) };
    w.seeded = bf_now(RANDOM_SEED) != 0 &&
               getrandom(w.seed, sizeof w.seed, 0) == (ssize_t)sizeof w.seed;
    return w;
}

/* Are filters made by valkey-bloom's rules unless the command says otherwise? A
 * primary and a log say what they mean, by the command that they use. */
static bool by_valkey_rules(server_ctx *ctx)
{
    return bf_now(VALKEY_RULES) != 0 && !is_told(ctx);
}

/* What BF.ADD and MADD make. */
static bf_wish wish_usual(server_ctx *ctx)
{
    return by_valkey_rules(ctx) ? wish_valkey() : wish_redis();
}

static const bly_foreign_spec *wish_words(const bf_wish *w, uint64_t limit,
                                          value_words *out)
{
    char seed[2 * sizeof w->seed + 1];
    out->spec = (bly_foreign_spec){ .format = w->valkey ? BF_VALKEY : BF_REDIS,
                                    .items = w->capacity,
                                    .fpr = w->rate,
                                    .max_bytes = limit,
                                    .mem = &server_memory };
    for (size_t i = 0; w->seeded && i < sizeof w->seed; i++)
        snprintf(seed + 2 * i, 3, "%02x", w->seed[i]);
    if (!w->expansion)
        value_word(out, "scaling", "no");
    else if (w->expansion != 2)
        value_word(out, "growth", "%u", w->expansion);
    if (w->valkey)
        value_word(out, "tightening", "%.17g", w->tightening);
    if (w->seeded)
        value_word(out, "seed", "%s", seed);
    return &out->spec;
}

/* How much larger each next sub-filter is; 0: it does not scale. */
static uint32_t bf_expansion(const bly_foreign *f)
{
    bly_fact scaling;
    bly_foreign_fact(f, "scaling", &scaling);
    return scaling.word[0] == 'n' ? 0 : (uint32_t)value_fact(f, "growth");
}

/* The seed that filters of valkey-bloom have which were given none. */
static const unsigned char fixed_seed[32] = {
    0x59, 0x0f, 0xf5, 0x22, 0xea, 0x78, 0x11, 0xda, 0xa7, 0x14, 0xd8,
    0x09, 0x3b, 0x3e, 0x7b, 0xd9, 0x1d, 0x89, 0x8a, 0x73, 0x3e, 0x98,
    0x88, 0x87, 0x30, 0x7f, 0x97, 0xcd, 0x28, 0x07, 0x33, 0x83
};

/* Tell replicas and the AOF how a filter was made. */
static void tell_creation(server_ctx *ctx, server_string *name,
                          const bf_wish *w)
{
    char rate[40], tightening[40];
    const unsigned char *seed = w->seeded ? w->seed : fixed_seed;
    const long long capacity = (long long)w->capacity;
    snprintf(rate, sizeof rate, "%.17g", w->rate);
    snprintf(tightening, sizeof tightening, "%.17g", w->tightening);
    if (!w->valkey && w->expansion)
        srv.Replicate(ctx, "BF.RESERVE", "sclcl", name, rate, capacity,
                      "EXPANSION", (long long)w->expansion);
    else if (!w->valkey)
        srv.Replicate(ctx, "BF.RESERVE", "sclc", name, rate, capacity,
                      "NONSCALING");
    else if (w->expansion)
        srv.Replicate(ctx, "BF.INSERT", "sclcccccbcl", name, "CAPACITY",
                      capacity, "ERROR", rate, "TIGHTENING", tightening, "SEED",
                      seed, sizeof w->seed, "EXPANSION",
                      (long long)w->expansion);
    else
        srv.Replicate(ctx, "BF.INSERT", "sclcccccbc", name, "CAPACITY",
                      capacity, "ERROR", rate, "TIGHTENING", tightening, "SEED",
                      seed, sizeof w->seed, "NONSCALING");
}

#define OVER_LIMIT "ERR operation exceeds bloom object memory limit"

/* Make a filter in an open, empty key; NULL, and an error was sent. */
static bly_foreign *bf_make(server_ctx *ctx, server_string *name,
                            server_key *key, const bf_wish *w)
{
    value_words words;
    bly_foreign *f;
    const uint64_t limit = bf_limit(ctx);
    const bly_status st = bly_foreign_new(wish_words(w, limit, &words), &f);
    if (st) {
        reply_error(ctx, st == BLY_ERANGE && limit
                             ? OVER_LIMIT
                             : "ERR Insufficient memory to create filter");
        return NULL;
    }
    bf_keep(key, f);
    tell_creation(ctx, name, w);
    key_changed(ctx, "bloom.reserve", name);
    return f;
}

/* What a number of an option may be; NULL, or what is wrong with it. */
static const char *read_rate(server_ctx *ctx, const server_string *s,
                             double *rate, const char *bad, const char *range)
{
    double value;
    if (srv.StringToDouble(s, &value) != SERVER_OK || isnan(value))
        return bad;
    if (!(value > 0 && value < 1))
        return range;
    if (value > MAX_RATE) {
        srv.Log(ctx, "warning", "an error rate of %g is taken as %g", value,
                MAX_RATE);
        value = MAX_RATE;
    }
    *rate = value;
    return NULL;
}

static const char *read_number(const server_string *s, int64_t min, int64_t max,
                               uint64_t *out, const char *bad,
                               const char *range)
{
    long long value;
    if (srv.StringToLongLong(s, &value) != SERVER_OK)
        return bad;
    if (value < min || value > max)
        return range;
    *out = (uint64_t)value;
    return NULL;
}

/* BF.RESERVE key error_rate capacity [EXPANSION expansion] [NONSCALING] */
static const char *reserve_wish(server_ctx *ctx, server_string **argv, int argc,
                                bf_wish *w)
{
    uint64_t expansion = 2;
    bool nonscaling = false, given = false;
    const char *wrong =
        read_rate(ctx, argv[2], &w->rate, "ERR bad error rate",
                  "ERR error rate must be in the range (0.000000, 1.000000)");
    if (!wrong)
        wrong = read_number(
            argv[3], 1, MAX_CAPACITY, &w->capacity, "ERR bad capacity",
            "ERR capacity must be in the range [1, 1073741824]");
    for (int i = 4; i < argc && !wrong; i++)
        nonscaling |= arg_is(argv[i], "NONSCALING");
    for (int i = 4; i < argc && !wrong; i++) {
        long long value;
        if (arg_is(argv[i], "NONSCALING"))
            continue;
        if (!arg_is(argv[i], "EXPANSION") || given)
            return "Unknown argument received";
        given = true;
        if (++i == argc)
            return "ERR no expansion";
        if (srv.StringToLongLong(argv[i], &value) != SERVER_OK)
            return "ERR bad expansion";
        if (value != 0 && nonscaling)
            return "Nonscaling filters cannot expand";
        if (value < 0 || value > MAX_EXPANSION)
            return "ERR expansion must be in the range [0, 32768]";
        expansion = (uint64_t)value;
    }
    w->expansion = nonscaling ? 0 : given ? (uint32_t)expansion : 2;
    return wrong;
}

/* The same as valkey-bloom reads it: at most one of the options. */
static const char *reserve_valkey(server_string **argv, int argc, bf_wish *w)
{
    uint64_t expansion = 2;
    if (srv.StringToDouble(argv[2], &w->rate) != SERVER_OK || isnan(w->rate))
        return "ERR bad error rate";
    if (!(w->rate > 0 && w->rate < 1))
        return "ERR (0 < error rate range < 1)";
    const char *wrong =
        read_number(argv[3], 1, INT64_MAX, &w->capacity, "ERR bad capacity",
                    "ERR (capacity should be larger than 0)");
    if (wrong)
        return wrong;
    if (argc == 5 && arg_is(argv[4], "NONSCALING"))
        expansion = 0;
    else if (argc == 6 && arg_is(argv[4], "EXPANSION"))
        wrong = read_number(argv[5], 1, UINT32_MAX, &expansion,
                            "ERR bad expansion", "ERR bad expansion");
    else if (argc == 4)
        expansion = (uint64_t)bf_now(VALKEY_EXPANSION);
    else
        wrong = "ERROR";
    w->expansion = (uint32_t)expansion;
    return wrong;
}

static int bf_reserve(server_ctx *ctx, server_string **argv, int argc)
{
    if (argc < 4 || argc > (by_valkey_rules(ctx) ? 6 : 7))
        return srv.WrongArity(ctx);
    bf_wish w = wish_usual(ctx);
    const char *wrong = w.valkey ? reserve_valkey(argv, argc, &w)
                                 : reserve_wish(ctx, argv, argc, &w);
    if (wrong)
        return reply_error(ctx, "%s", wrong);
    server_key *key;
    bly_foreign *f;
    const held what = bf_open(ctx, argv[1], SERVER_WRITE, &key, &f);
    if (what == HELD_OURS)
        reply_error(ctx, "ERR item exists");
    else if (what == HELD_OTHER)
        reply_error(ctx, WRONGTYPE);
    else if (bf_make(ctx, argv[1], key, &w))
        srv.ReplyWithSimpleString(ctx, "OK");
    key_close(key);
    return SERVER_OK;
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
    return bf_is_valkey(f) ? OVER_LIMIT : "ERR problem inserting into filter";
}

/* As many as go together. */
static size_t bf_batch(void)
{
    return bf_now(AHEAD) == 0 ? 1 : ITEMS_BATCH;
}

/* Notes of filters that were used lately, by the names of their keys. The item
 * of a command that has one alone is fetched while the server looks for the
 * key. What must be noted after the command; NULL: nothing. */
enum { NNOTES = 16 };

static bly_foreign_note *expect_item(server_string **argv, int argc)
{
    static bly_foreign_note notes[NNOTES];
    if (argc != 3 || bf_now(AHEAD) == 0)
        return NULL;
    const bytes name = arg_bytes(argv[1]);
    uint64_t tail = 0;
    memcpy(&tail, name.at + (name.n < 8 ? 0 : name.n - 8),
           name.n < 8 ? name.n : 8);
    bly_foreign_note *const note =
        &notes[(tail + name.n) * UINT64_C(0x9e3779b97f4a7c15) >> 60];
    bly_foreign_expect(note, arg_item(argv[2]));
    return note;
}

static void bf_asked(server_ctx *ctx, const bly_foreign *f, int nitems)
{
    if (bf_now(HUGE_PAGES) != 0)
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
        /* What was looked up for those behind one that fails is lost, and the
         * next will most likely fail, too. */
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

/* Add the items from argv[first] on, reply with an array or, for BF.ADD, with
 * one value. */
static void add_and_tell(server_ctx *ctx, server_string **argv, int argc,
                         int first, bly_foreign *f, bool array)
{
    const size_t before = bly_foreign_nparts(f);
    effects e = { .ctx = ctx, .command = "BF.MADD", .name = argv[1] };
    uint64_t nfresh = 0;
    /* A length that is said later costs a buffer of 16 KiB and a copy. */
    const bool later = array && may_end_early(f, argc - first);
    if (array)
        srv.ReplyWithArray(ctx, later ? SERVER_LATER : argc - first);
    const long n = add_items(&e, f, argv + first, argc - first, &nfresh);
    if (later)
        srv.ReplySetArrayLength(ctx, n);
    bf_asked(ctx, f, argc - first);
    if (nfresh) {
        bf_account_added(f, before, nfresh);
        key_changed(ctx, "bloom.add", argv[1]);
    }
}

/* The filter that is to be added to; NULL, and whether it is to be made: if
 * not, an error was sent. */
static bly_foreign *bf_for_adding(server_ctx *ctx, server_string *name,
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
    if (missing) {
        const bf_wish w = wish_usual(ctx);
        f = bf_make(ctx, argv[1], key, &w);
    }
    if (f)
        add_and_tell(ctx, argv, argc, 2, f, many);
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

/* ------------------------------------------------------------------- insert */

/* What BF.INSERT says before its items. */
typedef struct insertion {
    bf_wish wish;
    bool create, nonscaling;
    uint64_t validate; /* VALIDATESCALETO; 0: not given */
    int items;         /* where they begin; argc: there are none */
} insertion;

static bool starts(const server_string *s, const char *letters)
{
    return strncasecmp(arg_bytes(s).at, letters, strlen(letters)) == 0;
}

/* Does an option of valkey-bloom alone stand before ITEMS? */
static bool is_for_valkey(server_string **argv, int argc)
{
    for (int i = 2; i < argc && !starts(argv[i], "I"); i++)
        if (arg_is(argv[i], "TIGHTENING") || arg_is(argv[i], "SEED") ||
            arg_is(argv[i], "VALIDATESCALETO"))
            return true;
    return false;
}

/* One option of either peer with its value; NULL, or what is wrong. */
static const char *insert_option(server_ctx *ctx, server_string *name,
                                 server_string *value, insertion *in)
{
    const bool valkey = in->wish.valkey;
    uint64_t number;
    const char *wrong;
    if (starts(name, "C"))
        return valkey ? read_number(value, 1, INT64_MAX, &in->wish.capacity,
                                    "ERR bad capacity",
                                    "ERR (capacity should be larger than 0)")
                      : read_number(value, 1, MAX_CAPACITY, &in->wish.capacity,
                                    "Bad capacity", "Bad capacity");
    if (starts(name, "ER")) {
        if (!valkey)
            return read_rate(ctx, value, &in->wish.rate, "Bad error rate",
                             "Bad error rate");
        if (srv.StringToDouble(value, &in->wish.rate) != SERVER_OK)
            return "ERR bad error rate";
        return in->wish.rate > 0 && in->wish.rate < 1
                   ? NULL
                   : "ERR (0 < error rate range < 1)";
    }
    if (starts(name, "E")) {
        wrong = valkey ? read_number(value, 1, UINT32_MAX, &number,
                                     "ERR bad expansion", "ERR bad expansion")
                       : read_number(value, 0, MAX_EXPANSION, &number,
                                     "Bad expansion", "Bad expansion");
        if (!wrong)
            in->wish.expansion = (uint32_t)number;
        return wrong;
    }
    if (arg_is(name, "TIGHTENING")) {
        if (srv.StringToDouble(value, &in->wish.tightening) != SERVER_OK)
            return "ERR bad tightening ratio";
        return in->wish.tightening > 0 && in->wish.tightening < 1
                   ? NULL
                   : "ERR (0 < tightening ratio range < 1)";
    }
    if (arg_is(name, "SEED")) {
        const bytes seed = arg_bytes(value);
        if (seed.n != sizeof in->wish.seed)
            return "ERR invalid seed";
        memcpy(in->wish.seed, seed.at, seed.n);
        in->wish.seeded = memcmp(seed.at, fixed_seed, seed.n) != 0;
        return NULL;
    }
    if (arg_is(name, "VALIDATESCALETO"))
        return read_number(value, 1, INT64_MAX, &in->validate,
                           "ERR bad capacity",
                           "ERR (capacity should be larger than 0)");
    return valkey ? "ERR unknown argument received"
                  : "Unknown argument received";
}

/* False, after replying with the reason, if the words are wrong. */
static bool insert_words(server_ctx *ctx, server_string **argv, int argc,
                         insertion *in)
{
    const bool valkey = by_valkey_rules(ctx) || is_for_valkey(argv, argc);
    *in = (insertion){ .wish = valkey ? wish_valkey() : wish_redis(),
                       .create = true };
    int i = 2;
    for (; i < argc && !starts(argv[i], "I"); i++) {
        if (starts(argv[i], "NOC")) {
            in->create = false;
        } else if (starts(argv[i], "N")) {
            in->nonscaling = true;
        } else {
            const char *wrong =
                i + 1 < argc ? insert_option(ctx, argv[i], argv[i + 1], in)
                             : "";
            if (wrong && !wrong[0])
                srv.WrongArity(ctx);
            else if (wrong)
                reply_error(ctx, "%s", wrong);
            if (wrong)
                return false;
            i++;
        }
    }
    in->items = i < argc ? i + 1 : argc;
    if (in->nonscaling)
        in->wish.expansion = 0;
    /* valkey-bloom makes a filter without items, RedisBloom does not. */
    if (in->items == argc && (i < argc || !valkey)) {
        srv.WrongArity(ctx);
        return false;
    }
    return true;
}

static bool insert_scales(server_ctx *ctx, const insertion *in)
{
    uint64_t holds;
    if (!in->validate)
        return true;
    if (!in->wish.expansion) {
        reply_error(ctx, "ERR cannot use NONSCALING and VALIDATESCALETO "
                         "options together");
        return false;
    }
    value_words words;
    const bly_status st = bly_foreign_scales(
        wish_words(&in->wish, bf_limit(ctx), &words), in->validate, &holds);
    if (!st)
        return true;
    reply_error(ctx, st == BLY_EFULL
                         ? "ERR provided VALIDATESCALETO causes false "
                           "positive to degrade to 0"
                         : "ERR provided VALIDATESCALETO causes bloom object "
                           "to exceed memory limit");
    return false;
}

static int bf_insert(server_ctx *ctx, server_string **argv, int argc)
{
    insertion in;
    if (argc < 4)
        return srv.WrongArity(ctx);
    if (!insert_words(ctx, argv, argc, &in) || !insert_scales(ctx, &in))
        return SERVER_OK;
    server_key *key;
    bool missing;
    bly_foreign *f = bf_for_adding(ctx, argv[1], &key, &missing);
    if (missing && in.create)
        f = bf_make(ctx, argv[1], key, &in.wish);
    else if (missing)
        reply_error(ctx, "ERR not found");
    if (f)
        add_and_tell(ctx, argv, argc, in.items, f, true);
    key_close(key);
    return SERVER_OK;
}

/* ------------------------------------------------------------------- asking */

static int bf_exists_many(server_ctx *ctx, server_string **argv, int argc,
                          bool many)
{
    if (many ? argc < 3 : argc != 3)
        return srv.WrongArity(ctx);
    server_key *key;
    bly_foreign *f; /* NULL for a missing key and for another type: no */
    const bool valkey = by_valkey_rules(ctx);
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

static int bf_card(server_ctx *ctx, server_string **argv, int argc)
{
    if (argc != 2)
        return srv.WrongArity(ctx);
    server_key *key;
    bly_foreign *f;
    if (bf_open(ctx, argv[1], SERVER_READ, &key, &f) == HELD_OTHER)
        reply_error(ctx, WRONGTYPE);
    else
        srv.ReplyWithLongLong(ctx, f ? (long long)value_sizes(f).items : 0);
    key_close(key);
    return SERVER_OK;
}

/* A field of BF.INFO: how it is asked for, how it is called, and its value. */
typedef struct info_field {
    const char *word, *name;
    void (*reply)(server_ctx *ctx, const bly_foreign *f);
    bool valkey;  /* only of filters of valkey-bloom */
    bool scaling; /* only of those that grow */
} info_field;

static void reply_capacity(server_ctx *ctx, const bly_foreign *f)
{
    srv.ReplyWithLongLong(ctx, (long long)value_sizes(f).capacity);
}

static void reply_size(server_ctx *ctx, const bly_foreign *f)
{
    srv.ReplyWithLongLong(ctx, (long long)value_sizes(f).counted);
}

static void reply_filters(server_ctx *ctx, const bly_foreign *f)
{
    srv.ReplyWithLongLong(ctx, (long long)bly_foreign_nparts(f));
}

static void reply_items(server_ctx *ctx, const bly_foreign *f)
{
    srv.ReplyWithLongLong(ctx, (long long)value_sizes(f).items);
}

static void reply_rate(server_ctx *ctx, const bly_foreign *f)
{
    char text[40];
    bly_foreign_sizes first;
    bly_foreign_size(f, 0, &first);
    /* What was asked; of filters that grow by RedisBloom's rules, what they
     * really have now may be more, and that is what one wants to know. */
    const int n = snprintf(text, sizeof text, "%.6g",
                           bf_is_valkey(f) ? first.fpr_planned
                                           : value_fact(f, "fpr_of_chain"));
    srv.ReplyWithStringBuffer(ctx, text, (size_t)n);
}

static void reply_expansion(server_ctx *ctx, const bly_foreign *f)
{
    const uint32_t expansion = bf_expansion(f);
    if (expansion)
        srv.ReplyWithLongLong(ctx, (long long)expansion);
    else
        srv.ReplyWithNull(ctx);
}

static void reply_tightening(server_ctx *ctx, const bly_foreign *f)
{
    char text[40];
    const int n =
        snprintf(text, sizeof text, "%.6g", value_fact(f, "tightening"));
    srv.ReplyWithStringBuffer(ctx, text, (size_t)n);
}

static void reply_max_capacity(server_ctx *ctx, const bly_foreign *f)
{
    bly_foreign_sizes first;
    bly_foreign_size(f, 0, &first);
    const bf_wish w = { .valkey = true,
                        .rate = first.fpr_planned,
                        .capacity = first.capacity,
                        .expansion = bf_expansion(f),
                        .tightening = value_fact(f, "tightening") };
    /* As far as it would go: it ends at the limit, or where rates end. */
    uint64_t holds = 0;
    const uint64_t limit = (uint64_t)bf_now(MEMORY_LIMIT);
    value_words words;
    bly_foreign_scales(
        wish_words(&w, limit ? limit : UINT64_C(1) << 40, &words), UINT64_MAX,
        &holds);
    srv.ReplyWithLongLong(ctx, (long long)holds);
}

static const info_field info_fields[] = {
    { "CAPACITY", "Capacity", reply_capacity, false, false },
    { "SIZE", "Size", reply_size, false, false },
    { "FILTERS", "Number of filters", reply_filters, false, false },
    { "ITEMS", "Number of items inserted", reply_items, false, false },
    { "ERROR", "Error rate", reply_rate, true, false },
    { "EXPANSION", "Expansion rate", reply_expansion, false, false },
    { "TIGHTENING", "Tightening ratio", reply_tightening, true, true },
    { "MAXSCALEDCAPACITY", "Max scaled capacity", reply_max_capacity, true,
      true },
};
#define NFIELDS (sizeof info_fields / sizeof info_fields[0])

static bool has_field(const bly_foreign *f, const info_field *field)
{
    return (!field->valkey || bf_is_valkey(f)) &&
           (!field->scaling || bf_expansion(f));
}

static void info_one(server_ctx *ctx, const bly_foreign *f, server_string *word)
{
    for (size_t i = 0; i < NFIELDS; i++) {
        const info_field *field = &info_fields[i];
        /* The rate of any filter can be asked for. */
        if (!arg_is(word, field->word) ||
            (!has_field(f, field) && field->reply != reply_rate))
            continue;
        if (!bf_is_valkey(f) && is_resp3(ctx)) {
            reply_map(ctx, 1);
            srv.ReplyWithSimpleString(ctx, field->name);
        } else if (!bf_is_valkey(f)) {
            srv.ReplyWithArray(ctx, 1);
        }
        field->reply(ctx, f);
        return;
    }
    reply_error(ctx, bf_is_valkey(f) ? "ERR invalid information value"
                                     : "Invalid information value");
}

static int bf_info(server_ctx *ctx, server_string **argv, int argc)
{
    if (argc < 2 || argc > 3)
        return srv.WrongArity(ctx);
    server_key *key;
    const bly_foreign *f = bf_to_read(ctx, argv[1], &key);
    if (f && argc == 3) {
        info_one(ctx, f, argv[2]);
    } else if (f) {
        long n = 0;
        for (size_t i = 0; i < NFIELDS; i++)
            n += has_field(f, &info_fields[i]);
        if (!bf_is_valkey(f))
            reply_map(ctx, n);
        else
            srv.ReplyWithArray(ctx, 2 * n);
        for (size_t i = 0; i < NFIELDS; i++)
            if (has_field(f, &info_fields[i])) {
                srv.ReplyWithSimpleString(ctx, info_fields[i].name);
                info_fields[i].reply(ctx, f);
            }
    }
    key_close(key);
    return SERVER_OK;
}

static int bf_debug(server_ctx *ctx, server_string **argv, int argc)
{
    if (argc != 2)
        return srv.WrongArity(ctx);
    server_key *key;
    const bly_foreign *f = bf_to_read(ctx, argv[1], &key);
    if (f) {
        char text[300];
        int n = snprintf(text, sizeof text, "size:%llu",
                         (unsigned long long)value_sizes(f).items);
        srv.ReplyWithArray(ctx, 1 + (long)bly_foreign_nparts(f));
        srv.ReplyWithStringBuffer(ctx, text, (size_t)n);
        for (size_t i = 0; i < bly_foreign_nparts(f); i++) {
            bly_foreign_sizes l;
            bly_foreign_size(f, i, &l);
            n = snprintf(text, sizeof text,
                         "bytes:%llu bits:%llu hashes:%u hashwidth:64 "
                         "capacity:%llu size:%llu ratio:%g",
                         (unsigned long long)l.nbytes,
                         (unsigned long long)l.bits, l.k,
                         (unsigned long long)l.capacity,
                         (unsigned long long)l.items, l.fpr_planned);
            srv.ReplyWithStringBuffer(ctx, text, (size_t)n);
        }
    }
    key_close(key);
    return SERVER_OK;
}

/* --------------------------------------------------------------- the family */

static int bf_start(server_ctx *ctx)
{
    return bf_types_start(ctx) == SERVER_OK
               ? settings_register(ctx, bf_settings, NSETTINGS)
               : SERVER_ERR;
}

static int bf_argument(server_ctx *ctx, const char *name, server_string *value)
{
    return settings_argument(ctx, bf_settings, NSETTINGS, name, value);
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
