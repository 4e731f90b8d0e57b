/*
 * bf_make.c - which Bloom filters BF.* makes
 *
 * A command says by its words what it wants, and the settings say the rest; the
 * rules, the ranges and the texts of errors are those of the peer whose words
 * they are. Replicas and the AOF are told the outcome, not the words, so that
 * their settings do not matter.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "adapters/redis/bf.h"

#define MAX_RATE 0.25 /* what is above is taken as this */
#define MAX_CAPACITY (INT64_C(1) << 30)

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
    return (bf_wish){ .rate = fmin(bf_now(BF_RATE), MAX_RATE),
                      .capacity = (uint64_t)bf_now(BF_CAPACITY),
                      .expansion = (uint32_t)bf_now(BF_EXPANSION) };
}

static bf_wish wish_valkey(void)
{
    bf_wish w = { .valkey = true,
                  .rate = bf_now(BF_VALKEY_RATE),
                  .capacity = (uint64_t)bf_now(BF_VALKEY_CAPACITY),
                  .expansion = (uint32_t)bf_now(BF_VALKEY_EXPANSION),
                  .tightening = bf_now(BF_TIGHTENING) };
    w.seeded = bf_now(BF_RANDOM_SEED) != 0 &&
               getrandom(w.seed, sizeof w.seed, 0) == (ssize_t)sizeof w.seed;
    return w;
}

/* A primary and a log say what they mean, by the command that they use. */
bool bf_by_valkey_rules(server_ctx *ctx)
{
    return bf_now(BF_VALKEY_RULES) != 0 && !is_told(ctx);
}

/* What is made where nothing else is said. */
static bf_wish wish_usual(server_ctx *ctx)
{
    return bf_by_valkey_rules(ctx) ? wish_valkey() : wish_redis();
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

uint32_t bf_expansion(const bly_foreign *f)
{
    bly_fact scaling;
    bly_foreign_fact(f, "scaling", &scaling);
    return scaling.word[0] == 'n' ? 0 : (uint32_t)value_fact(f, "growth");
}

uint64_t bf_scales_to(const bly_foreign *f)
{
    bly_foreign_sizes first;
    bly_foreign_size(f, 0, &first);
    const bf_wish w = { .valkey = true,
                        .rate = first.fpr_planned,
                        .capacity = first.capacity,
                        .expansion = bf_expansion(f),
                        .tightening = value_fact(f, "tightening") };
    uint64_t holds = 0;
    const uint64_t limit = (uint64_t)bf_now(BF_MEMORY_LIMIT);
    value_words words;
    bly_foreign_scales(
        wish_words(&w, limit ? limit : UINT64_C(1) << 40, &words), UINT64_MAX,
        &holds);
    return holds;
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
                             ? BF_OVER_LIMIT
                             : "ERR Insufficient memory to create filter");
        return NULL;
    }
    bf_keep(key, f);
    tell_creation(ctx, name, w);
    key_changed(ctx, "bloom.reserve", name);
    return f;
}

bly_foreign *bf_make_usual(server_ctx *ctx, server_string *name,
                           server_key *key)
{
    const bf_wish w = wish_usual(ctx);
    return bf_make(ctx, name, key, &w);
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
        if (value < 0 || value > BF_MAX_EXPANSION)
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
        expansion = (uint64_t)bf_now(BF_VALKEY_EXPANSION);
    else
        wrong = "ERROR";
    w->expansion = (uint32_t)expansion;
    return wrong;
}

int bf_reserve(server_ctx *ctx, server_string **argv, int argc)
{
    if (argc < 4 || argc > (bf_by_valkey_rules(ctx) ? 6 : 7))
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
/* ------------------------------------------------------------------- insert */

/* What BF.INSERT says before its items. */
typedef struct insertion {
    bf_wish wish;
    bool create, nonscaling;
    uint64_t validate; /* VALIDATESCALETO; 0: not given */
    int items;         /* where they begin; argc: there are none */
} insertion;

/* Does an option of valkey-bloom alone stand before ITEMS? */
static bool is_for_valkey(server_string **argv, int argc)
{
    for (int i = 2; i < argc && !arg_starts(argv[i], "I"); i++)
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
    if (arg_starts(name, "C"))
        return valkey ? read_number(value, 1, INT64_MAX, &in->wish.capacity,
                                    "ERR bad capacity",
                                    "ERR (capacity should be larger than 0)")
                      : read_number(value, 1, MAX_CAPACITY, &in->wish.capacity,
                                    "Bad capacity", "Bad capacity");
    if (arg_starts(name, "ER")) {
        if (!valkey)
            return read_rate(ctx, value, &in->wish.rate, "Bad error rate",
                             "Bad error rate");
        if (srv.StringToDouble(value, &in->wish.rate) != SERVER_OK)
            return "ERR bad error rate";
        return in->wish.rate > 0 && in->wish.rate < 1
                   ? NULL
                   : "ERR (0 < error rate range < 1)";
    }
    if (arg_starts(name, "E")) {
        wrong = valkey ? read_number(value, 1, UINT32_MAX, &number,
                                     "ERR bad expansion", "ERR bad expansion")
                       : read_number(value, 0, BF_MAX_EXPANSION, &number,
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
        /* Its own fixed seed is what valkey-bloom writes for filters without
         * one. */
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
    const bool valkey = bf_by_valkey_rules(ctx) || is_for_valkey(argv, argc);
    *in = (insertion){ .wish = valkey ? wish_valkey() : wish_redis(),
                       .create = true };
    int i = 2;
    for (; i < argc && !arg_starts(argv[i], "I"); i++) {
        if (arg_starts(argv[i], "NOC")) {
            in->create = false;
        } else if (arg_starts(argv[i], "N")) {
            in->nonscaling = true;
        } else {
            const bool last = i + 1 == argc;
            const char *wrong =
                last && (valkey || arg_starts(argv[i], "C") ||
                         arg_starts(argv[i], "E"))
                    ? "" /* its value is missing */
                    : insert_option(ctx, argv[i], argv[last ? i : i + 1], in);
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

int bf_insert(server_ctx *ctx, server_string **argv, int argc)
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
        bf_add_and_tell(ctx, argv, argc, in.items, f, true);
    key_close(key);
    return SERVER_OK;
}
