/*
 * cms_merge.c - CMS.MERGE: a sketch becomes the weighted sum of others
 *
 * What differs from RedisBloom: the sources are declared, so that ACLs, cluster
 * clients and the server see them; and nobody waits for the sum of large ones.
 * It is made aside and little by little, by a timer of the server, while the
 * client waits. Merges that come meanwhile stand in line. When all is there the
 * destination becomes the sum: of the sources as they are at that moment, at
 * which replicas and the log are told of the command, too. The keys are opened
 * anew in every turn, since anybody may change, delete or move them.
 *
 * Where a client cannot wait (in MULTI and scripts), and where a primary or a
 * log says what is to be done, it is done at once.
 */
#include <stdlib.h>
#include <string.h>

#include "adapters/redis/cms.h"

/* Cells that are read or written at once: 3 ms; and in one turn. */
#define MERGED_AT_ONCE (UINT64_C(2) << 20)
#define MERGED_IN_TURN (UINT64_C(1) << 20)

/* Milliseconds until the next look while clients may not write: CLIENT PAUSE.
 */
#define PAUSED_AGAIN 10

/* --------------------------------------------------------------- its words */

/* What it works on: the keys are open until a turn is done. */
typedef struct merging {
    long long n;
    server_key *key, **keys;
    bly_foreign *into;
    const bly_foreign **from;
    int64_t *weights;
    bool weighted; /* the words behind the sources say them */
} merging;

static void merging_close(merging *m)
{
    for (long long i = 0; m->keys && i < m->n; i++) {
        key_close(m->keys[i]);
        m->keys[i] = NULL;
    }
    key_close(m->key);
    m->key = NULL;
}

static void merging_end(merging *m)
{
    merging_close(m);
    free(m->keys);
    free(m->from);
    free(m->weights);
}

/* How many sources there are; NULL, or what is wrong. */
static const char *merging_read(merging *m, server_string **argv, int argc)
{
    if (srv.StringToLongLong(argv[2], &m->n) != SERVER_OK)
        return "CMS: invalid numkeys";
    if (m->n < 1)
        return "CMS: Number of keys must be positive";
    int weights = 3;
    while (weights < argc && !arg_is(argv[weights], "WEIGHTS"))
        weights++;
    m->weighted = weights < argc;
    if (m->weighted && (m->n != weights - 3 || m->n != argc - weights - 1))
        return "CMS: wrong number of keys/weights";
    if (m->n != weights - 3)
        return "CMS: wrong number of keys";
    m->keys = calloc((size_t)m->n, sizeof *m->keys);
    m->from = calloc((size_t)m->n, sizeof *m->from);
    m->weights = calloc((size_t)m->n, sizeof *m->weights);
    if (!m->keys || !m->from || !m->weights)
        return "CMS: Insufficient memory to create the key";
    return NULL;
}

static const char *merging_open_one(server_ctx *ctx, server_string *name,
                                    int mode, server_key **key, bly_foreign **f)
{
    void *value;
    const held what = key_open(ctx, name, mode, cms_type, key, &value);
    *f = value;
    return what == HELD_OURS   ? NULL
           : what == HELD_NONE ? CMS_MISSING
                               : WRONGTYPE;
}

static const char *merging_open_into(server_ctx *ctx, merging *m,
                                     server_string **argv)
{
    return merging_open_one(ctx, argv[1], SERVER_WRITE, &m->key, &m->into);
}

/* Source by source, its weight first: so the peer finds what is wrong. */
static const char *merging_open_sources(server_ctx *ctx, merging *m,
                                        server_string **argv)
{
    for (int i = 0; i < (int)m->n; i++) {
        bly_foreign *f;
        long long weight = 1;
        if (m->weighted &&
            srv.StringToLongLong(argv[4 + m->n + i], &weight) != SERVER_OK)
            return "CMS: invalid weight value";
        m->weights[i] = weight;
        const char *wrong =
            merging_open_one(ctx, argv[3 + i], SERVER_READ, &m->keys[i], &f);
        if (wrong)
            return wrong;
        if (value_fact(f, "width") != value_fact(m->into, "width") ||
            value_fact(f, "depth") != value_fact(m->into, "depth"))
            return "CMS: width/depth is not equal";
        m->from[i] = f;
    }
    return NULL;
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

/* ------------------------------------------------------------------- aside */

/* One that is made little by little: m belongs to it. */
typedef struct merge {
    merging m;
    server_blocked *client;
    server_string **argv; /* its own */
    int argc;
    bly_foreign_sums *sums; /* NULL: it was not its turn yet */
    const char *wrong;      /* what the client is told; NULL: OK */
    struct merge *next;
} merge;

/* In the order in which they came; the first is under way. */
static merge *merges;

void merges_raised(const bly_foreign *f, uint64_t before,
                   const bly_bytes *items, size_t n)
{
    if (merges && merges->sums)
        bly_foreign_sums_raised(merges->sums, f, before, items, n);
}

/* What the destination had before takes long to give back, too. */
static void *release_sums(void *sums)
{
    bly_foreign_sums_free(sums);
    return NULL;
}

static void merge_free(server_ctx *ctx, void *which)
{
    (void)ctx;
    merge *a = which;
    if (a->sums && !start_thread(release_sums, a->sums))
        release_sums(a->sums);
    for (int i = 0; i < a->argc; i++)
        srv.FreeString(NULL, a->argv[i]);
    free(a->argv);
    merging_end(&a->m);
    free(a);
}

static int merge_reply(server_ctx *ctx, server_string **argv, int argc)
{
    const merge *a = srv.GetBlockedClientPrivateData(ctx);
    (void)argv, (void)argc;
    return a->wrong ? reply_error(ctx, "%s", a->wrong)
                    : srv.ReplyWithSimpleString(ctx, "OK");
}

/* Cells of the destination in one turn. */
static uint64_t cells_in_turn(const merging *m)
{
    const uint64_t n = MERGED_IN_TURN / ((uint64_t)m->n + 1);
    return n ? n : 1;
}

/* Go on; whether it is done, or cannot be. */
static bool merge_some(server_ctx *ctx, merge *a)
{
    merging *m = &a->m;
    uint64_t nleft;
    bool changed = false;
    if (srv.GetContextFlags(ctx) & SERVER_FLAG_REPLICA) {
        a->wrong = "UNBLOCKED the server has become a replica meanwhile";
        return true;
    }
    a->wrong = merging_open_into(ctx, m, a->argv);
    if (!a->wrong)
        a->wrong = merging_open_sources(ctx, m, a->argv);
    bly_status st = BLY_OK;
    if (!a->wrong && !a->sums)
        st = bly_foreign_sums_new(m->into, m->from, m->weights, (size_t)m->n,
                                  &a->sums);
    if (!a->wrong && !st)
        st = bly_foreign_sums_some(a->sums, m->into, m->from, cells_in_turn(m),
                                   &nleft);
    if (!a->wrong && !st && nleft)
        return false;
    if (!a->wrong && !st) {
        if (srv.AvoidReplicaTraffic && srv.AvoidReplicaTraffic())
            return false;
        st = bly_foreign_sums_end(a->sums, m->into, m->from, &changed);
    }
    if (st)
        a->wrong = st == BLY_ENOMEM
                       ? "CMS: Insufficient memory to create the key"
                       : "CMS: MERGE overflow";
    if (changed) {
        srv.Replicate(ctx, "CMS.MERGE", "v", a->argv + 1, (size_t)a->argc - 1);
        key_changed(ctx, "cms.merge", a->argv[1]);
    }
    return true;
}

static void merge_turn(server_ctx *ctx, void *which)
{
    merge *a = which;
    const bool done = merge_some(ctx, a);
    const bool paused = srv.AvoidReplicaTraffic && srv.AvoidReplicaTraffic();
    merging_close(&a->m);
    if (!done) {
        srv.CreateTimer(ctx, paused ? PAUSED_AGAIN : 0, merge_turn, a);
        return;
    }
    merges = a->next;
    srv.UnblockClient(a->client, a);
    if (merges)
        srv.CreateTimer(ctx, 0, merge_turn, merges);
}

/* Let it be done in turns; false: it cannot be, here. m is not the caller's any
 * more if it can. */
static bool merge_aside(server_ctx *ctx, const merging *m, server_string **argv,
                        int argc)
{
    merge *a = calloc(1, sizeof *a);
    server_string **own = calloc((size_t)argc, sizeof *own);
    if (!a || !own) {
        free(a);
        free(own);
        return false;
    }
    for (int i = 0; i < argc; i++) {
        const bytes word = arg_bytes(argv[i]);
        own[i] = srv.CreateString(NULL, word.at, word.n);
    }
    *a = (merge){ .m = *m, .argv = own, .argc = argc };
    a->client = srv.BlockClient(ctx, merge_reply, NULL, merge_free, 0);
    merge **last = &merges;
    while (*last)
        last = &(*last)->next;
    *last = a;
    if (merges == a)
        srv.CreateTimer(ctx, 0, merge_turn, a);
    return true;
}

/* ------------------------------------------------------------- the command */

int cms_merge(server_ctx *ctx, server_string **argv, int argc)
{
    if (srv.IsKeysPositionRequest && srv.KeyAtPosWithFlags &&
        srv.IsKeysPositionRequest(ctx))
        return merge_keys(ctx, argv, argc);
    if (argc < 4)
        return srv.WrongArity(ctx);
    merging m = { 0 };
    const char *wrong = merging_open_into(ctx, &m, argv);
    if (!wrong)
        wrong = merging_read(&m, argv, argc);
    if (!wrong)
        wrong = merging_open_sources(ctx, &m, argv);
    const uint64_t ncells = wrong ? 0 : value_sizes(m.into).nbytes / 4;
    if (!wrong && ncells * ((uint64_t)m.n + 1) > MERGED_AT_ONCE &&
        srv.CreateTimer && may_wait(ctx) && !is_told(ctx)) {
        merging_close(&m);
        if (merge_aside(ctx, &m, argv, argc))
            return SERVER_OK; /* the reply comes later */
        merging_open_into(ctx, &m, argv);
        merging_open_sources(ctx, &m, argv);
    }
    const uint64_t before = wrong ? 0 : bly_foreign_changes(m.into);
    if (!wrong && bly_foreign_sum(m.into, m.from, m.weights, (size_t)m.n))
        wrong = "CMS: MERGE overflow";
    const char *event =
        !wrong && bly_foreign_changes(m.into) != before ? "cms.merge" : NULL;
    server_key *key = m.key;
    m.key = NULL;
    merging_end(&m);
    return key_written(ctx, key, argv[1], event, wrong);
}
