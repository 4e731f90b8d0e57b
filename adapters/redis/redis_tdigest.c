/*
 * redis_tdigest.c - TDIGEST.*: quantiles of a stream
 *
 * The digests are the library's, in RedisBloom's scale: they merge at the same
 * moments, which are when a digest is full and when it is asked, so that INFO
 * and all answers are the same. So a question changes how a digest is kept;
 * replicas, which are not told of questions, may keep other means of the same
 * values.
 *
 * A dump, as a server that runs was seen to write it: compression, least and
 * greatest value (reals), capacity, means that are merged, values that wait,
 * compressions (integers), weight of the ones, weight of the others (reals);
 * then all means, then all weights (reals).
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery/sketch.h>

#include "adapters/redis/redis_module.h"
#include "base/real.h"
#include "host/tdigest_host.h"

#define TDIGEST_ENCODING 0
#define TDIGEST_DEFAULT 100

/* Values that are on the stack at once. */
#define VALUES_AT_ONCE 1024

static server_type *tdigest_type;
static tally tdigest_tally;
static const bly_mem tdigest_memory = SERVER_MEMORY(&tdigest_tally);

#define NO_MEMORY "T-Digest: allocation failed"
#define MISSING "T-Digest: key does not exist"

/* ---------------------------------------------------------------- arguments */

/* A number, and not NaN, which no command takes. */
static bool arg_real(const server_string *s, double *out)
{
    const bytes b = arg_bytes(s);
    return real_plain(b.at, b.n, out) ||
           (srv.StringToDouble(s, out) == SERVER_OK && !isnan(*out));
}

/* Numbers of a command: on the stack, if they are few. */
typedef struct numbers {
    double few[VALUES_AT_ONCE];
    double *at;
} numbers;

static bool numbers_begin(numbers *v, int n)
{
    v->at = n <= VALUES_AT_ONCE ? v->few
                                : memory_try_raw((uint64_t)n * sizeof *v->at);
    return v->at;
}

static void numbers_end(numbers *v)
{
    if (v->at != v->few)
        memory_free(v->at);
}

/* --------------------------------------------------------------------- keys */

static bly_tdigest *tdigest_open(server_ctx *ctx, server_string *name, int mode,
                                 server_key **key)
{
    return key_value(ctx, name, mode, tdigest_type, MISSING, key);
}

static bly_tdigest *tdigest_make(uint64_t compression)
{
    const bly_tdigest_spec spec = { .compression = (double)compression,
                                    .scale = BLY_TDIGEST_REDISBLOOM,
                                    .mem = &tdigest_memory };
    bly_tdigest *t;
    return bly_tdigest_new(&spec, &t) ? NULL : t;
}

static void *tdigest_counted(bly_tdigest *t)
{
    if (t)
        tdigest_tally.keys++;
    return t;
}

static void tdigest_free(void *value)
{
    if (value)
        tdigest_tally.keys--;
    bly_tdigest_free(value);
}

/* Values and means that a digest holds before it merges, and one more. */
static uint64_t capacity_of(double compression)
{
    return 6 * (uint64_t)compression + 10;
}

static bly_tdigest_stats stats_of(const bly_tdigest *t)
{
    bly_tdigest_stats s;
    bly_tdigest_stat(t, &s);
    return s;
}

static double weight_of(const bly_tdigest *t)
{
    const bly_tdigest_stats s = stats_of(t);
    return s.merged_weight + s.waiting_weight;
}

/* What is wrong with it, or NULL. */
static const char *read_compression(const server_string *s, uint64_t *out)
{
    long long value;
    if (srv.StringToLongLong(s, &value) != SERVER_OK)
        return "T-Digest: error parsing compression parameter";
    if (value <= 0)
        return "T-Digest: compression parameter needs to be a positive integer";
    *out = (uint64_t)value;
    return NULL;
}

/* ------------------------------------------------------------------ writing */

static int tdigest_create(server_ctx *ctx, server_string **argv, int argc)
{
    uint64_t compression = TDIGEST_DEFAULT;
    server_key *key;
    void *value;
    if (argc != 2 && argc != 4)
        return srv.WrongArity(ctx);
    const held what =
        key_open(ctx, argv[1], SERVER_WRITE, tdigest_type, &key, &value);
    bly_tdigest *t = NULL;
    const char *wrong = what == HELD_OTHER  ? WRONGTYPE
                        : what == HELD_OURS ? "T-Digest: key already exists"
                                            : NULL;
    if (!wrong && argc == 4)
        wrong = arg_is(argv[2], "COMPRESSION")
                    ? read_compression(argv[3], &compression)
                    : "T-Digest: wrong keyword";
    if (!wrong && !(t = tdigest_make(compression)))
        wrong = NO_MEMORY;
    if (!wrong)
        srv.ModuleTypeSetValue(key, tdigest_type, tdigest_counted(t));
    return key_written(ctx, key, argv[1], "tdigest.create", wrong);
}

static int tdigest_reset(server_ctx *ctx, server_string **argv, int argc)
{
    server_key *key;
    if (argc != 2)
        return srv.WrongArity(ctx);
    bly_tdigest *t = tdigest_open(ctx, argv[1], SERVER_WRITE, &key);
    if (t)
        bly_tdigest_clear(t);
    return key_written(ctx, key, argv[1], "tdigest.reset", t ? NULL : "");
}

static int tdigest_add(server_ctx *ctx, server_string **argv, int argc)
{
    const int n = argc - 2;
    const char *wrong = NULL;
    server_key *key;
    numbers v;
    if (n < 1)
        return srv.WrongArity(ctx);
    bly_tdigest *t = tdigest_open(ctx, argv[1], SERVER_WRITE, &key);
    if (!t)
        return key_written(ctx, key, argv[1], NULL, "");
    if (!numbers_begin(&v, n))
        return key_written(ctx, key, argv[1], NULL, NO_MEMORY);
    for (int i = 0; i < n && !wrong; i++)
        if (!arg_real(argv[2 + i], &v.at[i]))
            wrong = "T-Digest: error parsing val parameter";
        else if (isinf(v.at[i]))
            wrong = "T-Digest: val parameter needs to be a finite number";
    const bly_status st =
        wrong ? BLY_OK : bly_tdigest_add(t, v.at, NULL, (size_t)n);
    if (st)
        wrong = st == BLY_ENOMEM ? NO_MEMORY : "T-Digest: overflow detected";
    numbers_end(&v);
    return key_written(ctx, key, argv[1], "tdigest.add", wrong);
}

/* ------------------------------------------------------------------ merging */

/* TDIGEST.MERGE destination numkeys source... [COMPRESSION c] [OVERRIDE] */
typedef struct merged {
    long long n;
    uint64_t compression; /* 0: was not given */
    bool replaces;
} merged;

static const char *merged_read(merged *m, server_string **argv, int argc)
{
    for (int i = 3 + (int)m->n; i < argc; i++) {
        if (arg_is(argv[i], "OVERRIDE")) {
            m->replaces = true;
        } else if (!arg_is(argv[i], "COMPRESSION")) {
            return "T-Digest: wrong keyword";
        } else {
            uint64_t c;
            const char *wrong = read_compression(argv[++i], &c);
            if (wrong)
                return wrong;
            m->compression = m->compression ? m->compression : c;
        }
    }
    return NULL;
}

/* One more digest into the sum of those before, at the same moments as in the
 * peer: what is there is merged first, and so is what comes. */
static const char *merge_one(bly_tdigest *into, bly_tdigest *from)
{
    bly_tdigest_settle(into);
    bly_tdigest_settle(from);
    const bly_status st = bly_tdigest_merge(into, from);
    return !st                ? NULL
           : st == BLY_ENOMEM ? NO_MEMORY
                              : "T-Digest: overflow detected";
}

/* The source, and what is wrong with it. */
static const char *source_open(server_ctx *ctx, server_string *name,
                               server_key **key, void **t)
{
    const held what = key_open(ctx, name, SERVER_READ, tdigest_type, key, t);
    return what == HELD_OURS ? NULL : what == HELD_NONE ? MISSING : WRONGTYPE;
}

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

/* All sources are there, and the largest compression. */
static const char *sources_check(server_ctx *ctx, server_string **names,
                                 long long n, double *largest)
{
    const char *wrong = NULL;
    *largest = 0;
    for (long long i = 0; i < n && !wrong; i++) {
        server_key *key;
        void *t;
        wrong = source_open(ctx, names[i], &key, &t);
        if (!wrong)
            *largest = fmax(*largest, stats_of(t).compression);
        key_close(key);
    }
    return wrong;
}

/* The sum is made aside and then takes the place of what was there. */
static int tdigest_merge(server_ctx *ctx, server_string **argv, int argc)
{
    merged m = { 0 };
    server_key *key = NULL;
    void *old = NULL;
    bly_tdigest *sum = NULL;
    double largest = 0;
    if (srv.IsKeysPositionRequest && srv.KeyAtPosWithFlags &&
        srv.IsKeysPositionRequest(ctx))
        return merge_keys(ctx, argv, argc);
    if (argc < 4)
        return srv.WrongArity(ctx);
    const held what =
        key_open(ctx, argv[1], SERVER_WRITE, tdigest_type, &key, &old);
    const char *wrong = NULL;
    if (what == HELD_OTHER)
        wrong = WRONGTYPE;
    else if (srv.StringToLongLong(argv[2], &m.n) != SERVER_OK)
        wrong = "T-Digest: error parsing numkeys";
    else if (m.n < 1)
        wrong = "T-Digest: numkeys needs to be a positive integer";
    else if (m.n > argc - 3 || arg_is(argv[argc - 1], "COMPRESSION")) {
        srv.WrongArity(ctx);
        wrong = "";
    } else if (!(wrong = merged_read(&m, argv, argc)))
        wrong = sources_check(ctx, argv + 3, m.n, &largest);
    const bool joins = old && !m.replaces;
    const double c = m.compression ? (double)m.compression
                     : joins       ? stats_of(old).compression
                                   : largest;
    if (!wrong && !(sum = tdigest_make((uint64_t)c)))
        wrong = NO_MEMORY;
    if (!wrong && joins)
        wrong = merge_one(sum, old);
    for (long long i = 0; i < m.n && !wrong; i++) {
        server_key *from = NULL;
        void *t;
        wrong = source_open(ctx, argv[3 + i], &from, &t);
        if (!wrong)
            wrong = merge_one(sum, t);
        key_close(from);
    }
    if (wrong)
        bly_tdigest_free(sum);
    else
        srv.ModuleTypeSetValue(key, tdigest_type, tdigest_counted(sum));
    return key_written(ctx, key, argv[1], "tdigest.merge", wrong);
}

/* ------------------------------------------------------------------- asking */

/* Until 7.0, a server writes reals of RESP3 with all their digits, too. */
static void reply_real(server_ctx *ctx, double x)
{
    srv.ReplyWithDouble(ctx, isnan(x) ? (double)NAN : x);
}

static int tdigest_end(server_ctx *ctx, server_string **argv, int argc,
                       bool greatest)
{
    server_key *key;
    if (argc != 2)
        return srv.WrongArity(ctx);
    bly_tdigest *t = tdigest_open(ctx, argv[1], SERVER_READ, &key);
    if (t)
        reply_real(ctx, greatest ? stats_of(t).max : stats_of(t).min);
    key_close(key);
    return SERVER_OK;
}

static int tdigest_min(server_ctx *ctx, server_string **argv, int argc)
{
    return tdigest_end(ctx, argv, argc, false);
}

static int tdigest_max(server_ctx *ctx, server_string **argv, int argc)
{
    return tdigest_end(ctx, argv, argc, true);
}

/* A question for each of several numbers: how they are read, and what is said
 * to each. */
typedef struct question {
    const char *(*read)(const server_string *s, double *out);
    void (*answer)(server_ctx *ctx, bly_tdigest *t, double x);
} question;

static int tdigest_ask(server_ctx *ctx, server_string **argv, int argc,
                       const question *q)
{
    const int n = argc - 2;
    const char *wrong = NULL;
    server_key *key;
    numbers v;
    if (n < 1)
        return srv.WrongArity(ctx);
    bly_tdigest *t = tdigest_open(ctx, argv[1], SERVER_READ, &key);
    if (t && numbers_begin(&v, n)) {
        for (int i = 0; i < n && !wrong; i++)
            wrong = q->read(argv[2 + i], &v.at[i]);
        if (wrong)
            reply_error(ctx, "%s", wrong);
        else
            srv.ReplyWithArray(ctx, n);
        for (int i = 0; i < n && !wrong; i++)
            q->answer(ctx, t, v.at[i]);
        numbers_end(&v);
    } else if (t) {
        reply_error(ctx, NO_MEMORY);
    }
    key_close(key);
    return SERVER_OK;
}

static const char *read_quantile(const server_string *s, double *out)
{
    if (!arg_real(s, out))
        return "T-Digest: error parsing quantile";
    return *out >= 0 && *out <= 1 ? NULL
                                  : "T-Digest: quantile should be in [0,1]";
}

static const char *read_cdf(const server_string *s, double *out)
{
    return arg_real(s, out) ? NULL : "T-Digest: error parsing cdf";
}

static const char *read_value(const server_string *s, double *out)
{
    return arg_real(s, out) ? NULL : "T-Digest: error parsing value";
}

static const char *read_rank(const server_string *s, double *out)
{
    long long rank;
    if (srv.StringToLongLong(s, &rank) != SERVER_OK)
        return "T-Digest: error parsing rank";
    *out = (double)rank;
    return rank >= 0 ? NULL : "T-Digest: rank needs to be non negative";
}

static void answer_quantile(server_ctx *ctx, bly_tdigest *t, double x)
{
    reply_real(ctx, bly_tdigest_quantile(t, x));
}

static void answer_cdf(server_ctx *ctx, bly_tdigest *t, double x)
{
    reply_real(ctx, bly_tdigest_cdf(t, x));
}

/* Weight on one side of a value, half of what equals it included, to the
 * nearest integer, and down from half-way: -2 in an empty digest, -1 where
 * nothing is and all lies on the other side. */
static void reply_rank(server_ctx *ctx, bly_tdigest *t, double x, bool above)
{
    const bly_tdigest_stats s = stats_of(t);
    const double total = weight_of(t);
    double rank;
    if (total == 0)
        rank = -2;
    else if (above ? x > s.max : x < s.min)
        rank = -1;
    else if (above ? x < s.min : x > s.max)
        rank = total;
    else
        rank = above ? total - round(bly_tdigest_rank(t, x))
                     : ceil(bly_tdigest_rank(t, x) - 0.5);
    srv.ReplyWithLongLong(ctx, (long long)rank);
}

static void answer_rank(server_ctx *ctx, bly_tdigest *t, double x)
{
    reply_rank(ctx, t, x, false);
}

static void answer_revrank(server_ctx *ctx, bly_tdigest *t, double x)
{
    reply_rank(ctx, t, x, true);
}

/* The ends are known without asking the means. */
static void answer_byrank(server_ctx *ctx, bly_tdigest *t, double rank)
{
    const double total = weight_of(t);
    reply_real(ctx, total == 0      ? (double)NAN
                    : rank >= total ? (double)INFINITY
                    : rank == 0     ? stats_of(t).min
                                    : bly_tdigest_quantile(t, rank / total));
}

static void answer_byrevrank(server_ctx *ctx, bly_tdigest *t, double rank)
{
    const double total = weight_of(t);
    reply_real(ctx, total == 0      ? (double)NAN
                    : rank >= total ? -(double)INFINITY
                    : rank == 0
                        ? stats_of(t).max
                        : bly_tdigest_quantile(t, (total - 1 - rank) / total));
}

#define QUESTION(name, reads)                                                  \
    static int tdigest_##name(server_ctx *ctx, server_string **argv, int argc) \
    {                                                                          \
        static const question q = { read_##reads, answer_##name };             \
        return tdigest_ask(ctx, argv, argc, &q);                               \
    }
QUESTION(quantile, quantile)
QUESTION(cdf, cdf)
QUESTION(rank, value)
QUESTION(revrank, value)
QUESTION(byrank, rank)
QUESTION(byrevrank, rank)

static int tdigest_trimmed_mean(server_ctx *ctx, server_string **argv, int argc)
{
    double low, high;
    server_key *key;
    if (argc != 4)
        return srv.WrongArity(ctx);
    bly_tdigest *t = tdigest_open(ctx, argv[1], SERVER_READ, &key);
    if (!t)
        ; /* said so */
    else if (!arg_real(argv[2], &low))
        reply_error(ctx, "T-Digest: error parsing low_cut_percentile");
    else if (!arg_real(argv[3], &high))
        reply_error(ctx, "T-Digest: error parsing high_cut_percentile");
    else if (!(low >= 0 && low <= 1 && high >= 0 && high <= 1))
        reply_error(ctx, "T-Digest: low_cut_percentile and high_cut_percentile "
                         "should be in [0,1]");
    else if (low >= high)
        reply_error(ctx, "T-Digest: low_cut_percentile should be lower than "
                         "high_cut_percentile");
    else
        reply_real(ctx, bly_tdigest_trimmed_mean(t, low, high));
    key_close(key);
    return SERVER_OK;
}

static int tdigest_info(server_ctx *ctx, server_string **argv, int argc)
{
    server_key *key;
    if (argc != 2)
        return srv.WrongArity(ctx);
    bly_tdigest *t = tdigest_open(ctx, argv[1], SERVER_READ, &key);
    if (t) {
        const bly_tdigest_stats s = stats_of(t);
        reply_map(ctx, 9);
        reply_number(ctx, "Compression", (uint64_t)s.compression);
        reply_number(ctx, "Capacity", capacity_of(s.compression));
        reply_number(ctx, "Merged nodes", s.nmerged);
        reply_number(ctx, "Unmerged nodes", s.nwaiting);
        reply_number(ctx, "Merged weight", (uint64_t)s.merged_weight);
        reply_number(ctx, "Unmerged weight", (uint64_t)s.waiting_weight);
        reply_number(ctx, "Observations",
                     (uint64_t)(s.merged_weight + s.waiting_weight));
        reply_number(ctx, "Total compressions", s.ncompressions);
        reply_number(ctx, "Memory usage", s.nbytes);
    }
    key_close(key);
    return SERVER_OK;
}

/* --------------------------------------------------------------- the server */

/* Also a log that is written anew, and a digest: what waits is merged, as in
 * the peer. */
static void tdigest_save(server_io *io, void *value)
{
    bly_tdigest_settle(value);
    const bly_tdigest_stats s = stats_of(value);
    const uint64_t n = s.nmerged + s.nwaiting;
    srv.SaveDouble(io, s.compression);
    srv.SaveDouble(io, n ? s.min : DBL_MAX);
    srv.SaveDouble(io, n ? s.max : -DBL_MAX);
    srv.SaveUnsigned(io, capacity_of(s.compression));
    srv.SaveUnsigned(io, s.nmerged);
    srv.SaveUnsigned(io, s.nwaiting);
    srv.SaveUnsigned(io, s.ncompressions);
    srv.SaveDouble(io, s.merged_weight);
    srv.SaveDouble(io, s.waiting_weight);
    for (uint64_t i = 0; i < n; i++)
        srv.SaveDouble(io, s.means[i]);
    for (uint64_t i = 0; i < n; i++) /* one value that waits has no weight */
        srv.SaveDouble(io, i < s.nmerged || s.weighted ? s.weights[i] : 1);
}

/* Numbers that arrive one by one: memory grows as they do, so that a dump that
 * promises more than it has asks for no more than that. */
static double *load_reals(server_io *io, uint64_t n)
{
    uint64_t room = n < VALUES_AT_ONCE ? n : VALUES_AT_ONCE;
    double *at = memory_try_raw(2 * room * sizeof *at);
    for (uint64_t i = 0; i < 2 * n && at && !srv.IsIOError(io); i++) {
        if (i == 2 * room) {
            double *more = memory_try_raw(4 * room * sizeof *at);
            if (more)
                memcpy(more, at, 2 * room * sizeof *at);
            memory_free(at);
            at = more;
            room *= 2;
        }
        if (at)
            at[i] = srv.LoadDouble(io);
    }
    return at;
}

static void *tdigest_load(server_io *io, int encoding)
{
    bly_tdigest *t = NULL;
    if (encoding != TDIGEST_ENCODING)
        return NULL;
    bly_tdigest_stats s = { .scale = BLY_TDIGEST_REDISBLOOM };
    s.compression = srv.LoadDouble(io);
    s.min = srv.LoadDouble(io);
    s.max = srv.LoadDouble(io);
    const uint64_t capacity = srv.LoadUnsigned(io);
    s.nmerged = srv.LoadUnsigned(io);
    s.nwaiting = srv.LoadUnsigned(io);
    s.ncompressions = srv.LoadUnsigned(io);
    s.merged_weight = srv.LoadDouble(io);
    s.waiting_weight = srv.LoadDouble(io);
    if (srv.IsIOError(io) || !(s.compression >= 1 && s.compression <= 5e8) ||
        s.compression != floor(s.compression) ||
        capacity != capacity_of(s.compression) || s.nmerged > capacity ||
        s.nwaiting > capacity - s.nmerged)
        return NULL;
    const uint64_t n = s.nmerged + s.nwaiting;
    double *const at = load_reals(io, n);
    s.means = at;
    s.weights = at ? at + n : NULL;
    if (at && !srv.IsIOError(io) &&
        bly_tdigest_restore(&s, &tdigest_memory, &t))
        t = NULL;
    memory_free(at);
    return tdigest_counted(t);
}

static void tdigest_digest(server_digest *md, void *value)
{
    bly_tdigest_settle(value);
    const bly_tdigest_stats s = stats_of(value);
    srv.DigestAddLongLong(md, (long long)s.compression);
    for (uint64_t i = 0; i < s.nmerged + s.nwaiting; i++)
        srv.DigestAddStringBuffer(md, (const char *)&s.means[i],
                                  sizeof s.means[i]);
    for (uint64_t i = 0; i < s.nmerged; i++)
        srv.DigestAddStringBuffer(md, (const char *)&s.weights[i],
                                  sizeof s.weights[i]);
    srv.DigestEndSequence(md);
}

static void *tdigest_copy(server_string *from, server_string *to,
                          const void *value)
{
    bly_tdigest *copy;
    (void)from, (void)to;
    return bly_tdigest_copy(value, &copy) ? NULL : tdigest_counted(copy);
}

static size_t tdigest_mem_usage(const void *value)
{
    bly_tdigest *t = (bly_tdigest *)(uintptr_t)value;
    const size_t asked = (size_t)stats_of(t).nbytes;
    size_t sum = 0;
    if (!memory_is_weighed(asked))
        return asked;
    bly_tdigest_move(&t, memory_weigh, &sum);
    return sum;
}

static size_t tdigest_free_effort(server_string *key, const void *value)
{
    (void)key;
    return 1 + (size_t)(stats_of(value).nbytes / FREE_STEP);
}

static void *move_one(void *ctx, void *at)
{
    return srv.DefragAlloc(ctx, at);
}

static int tdigest_defrag(server_defrag *ctx, server_string *key, void **value)
{
    bly_tdigest *t = *value;
    (void)key;
    bly_tdigest_move(&t, move_one, ctx);
    *value = t;
    return 0;
}

static int tdigest_start(server_ctx *ctx)
{
    server_methods methods = { .version = 4,
                               .rdb_load = tdigest_load,
                               .rdb_save = tdigest_save,
                               .aof_rewrite = rewrite_as_restore,
                               .mem_usage = tdigest_mem_usage,
                               .digest = tdigest_digest,
                               .free = tdigest_free,
                               .free_effort = tdigest_free_effort,
                               .copy = tdigest_copy,
                               .defrag = tdigest_defrag };
    tdigest_type =
        srv.CreateDataType(ctx, "TDIS-TYPE", TDIGEST_ENCODING, &methods);
    return tdigest_type ? SERVER_OK : SERVER_ERR;
}

static const command_row tdigest_commands[] = {
    { "tdigest.create", "write deny-oom", "write fast", "2.4.0",
      "Makes an empty t-digest", "O(1)",
      "key [COMPRESSION compression:integer]", tdigest_create, 0 },
    { "tdigest.add", "write deny-oom", "write", "2.4.0", "Adds values", "O(n)",
      "key value:double...", tdigest_add, 0 },
    { "tdigest.reset", "write deny-oom", "write fast", "2.4.0",
      "Forgets all values", "O(1)", "key", tdigest_reset, 0 },
    { "tdigest.merge", "write deny-oom", "write", "2.4.0",
      "Makes a key the digest of others, and of itself unless OVERRIDE is "
      "given",
      "O(n * compression)",
      "destination numkeys:integer source... "
      "[COMPRESSION compression:integer] [OVERRIDE]",
      tdigest_merge, 2 },
    { "tdigest.min", "readonly", "read fast", "2.4.0", "The least value",
      "O(1)", "key", tdigest_min, 0 },
    { "tdigest.max", "readonly", "read fast", "2.4.0", "The greatest value",
      "O(1)", "key", tdigest_max, 0 },
    { "tdigest.quantile", "readonly", "read", "2.4.0",
      "Values below which given shares of all lie", "O(n * compression)",
      "key quantile:double...", tdigest_quantile, 0 },
    { "tdigest.cdf", "readonly", "read", "2.4.0",
      "Shares of all that lie below given values", "O(n * compression)",
      "key value:double...", tdigest_cdf, 0 },
    { "tdigest.rank", "readonly", "read", "2.4.0",
      "How many values lie below given ones", "O(n * compression)",
      "key value:double...", tdigest_rank, 0 },
    { "tdigest.revrank", "readonly", "read", "2.4.0",
      "How many values lie above given ones", "O(n * compression)",
      "key value:double...", tdigest_revrank, 0 },
    { "tdigest.byrank", "readonly", "read", "2.4.0",
      "Values at given ranks, the least first", "O(n * compression)",
      "key rank:integer...", tdigest_byrank, 0 },
    { "tdigest.byrevrank", "readonly", "read", "2.4.0",
      "Values at given ranks, the greatest first", "O(n * compression)",
      "key rank:integer...", tdigest_byrevrank, 0 },
    { "tdigest.trimmed_mean", "readonly", "read", "2.4.0",
      "The mean of all values between two quantiles", "O(compression)",
      "key low_cut_quantile:double high_cut_quantile:double",
      tdigest_trimmed_mean, 0 },
    { "tdigest.info", "readonly", "read fast", "2.4.0",
      "What a digest consists of", "O(1)", "key", tdigest_info, 0 },
    { 0 },
};

const family family_tdigest = {
    .category = "tdigest",
    .commands = tdigest_commands,
    .count = &tdigest_tally,
    .start = tdigest_start,
};
