/*
 * redis_keys.c - bloomery redis has, add: keys by the million
 *
 * A block of lines (256 KiB) becomes one command for every 512 keys, or one a
 * shard where the filter has several. All of them go out before the first
 * answer is read: a block costs one round trip, and the servers work at the
 * same time. The commands are made a second time when the answers come, for
 * the few that have to be sent again; that is cheaper than keeping them.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "cli/redis_shards.h"

/* Asking or adding. */
struct asking {
    struct router r;
    struct shards shards;
    const char *verb; /* BLY.HAS */
    bool again;       /* whether a command may be carried out twice */
    bool invert;
    struct ticket *tickets; /* of the commands of a block, in their order */
    size_t nsent, nanswered, room;
    struct shard_split split;
    const char *words[BATCH + 2];
    size_t lens[BATCH + 2];
};

/* The command for the keys of one shard. False: no memory. */
static bool shard_command(struct asking *a, const struct batch *b, size_t shard,
                          struct wire *w)
{
    const size_t from = a->split.start[shard];
    const size_t n = a->split.start[shard + 1] - from;
    a->words[0] = a->verb;
    a->lens[0] = strlen(a->verb);
    a->words[1] = a->shards.at[shard].key;
    a->lens[1] = a->shards.at[shard].len;
    for (size_t i = 0; i < n; i++) {
        const bly_bytes *const key = &b->keys[a->split.order[from + i]];
        a->words[i + 2] = key->ptr;
        a->lens[i + 2] = key->len;
    }
    const int len =
        redisFormatCommandArgv(&w->bytes, (int)n + 2, a->words, a->lens);
    w->len = len < 0 ? 0 : (size_t)len;
    return len >= 0;
}

static bly_status no_memory(struct batch *b)
{
    b->why = "out of memory";
    return BLY_ENOMEM;
}

static bly_status ask_ahead(struct job *job, struct batch *b)
{
    struct asking *const a = job->ctx;
    if (a->nanswered == a->nsent)
        a->nanswered = a->nsent = 0;
    shards_split(&a->shards, b, &a->split);
    for (size_t i = 0; i < a->shards.n; i++) {
        struct wire w;
        if (a->split.start[i] == a->split.start[i + 1])
            continue;
        if (a->nsent == a->room) {
            const size_t room = a->room ? a->room * 2 : 256;
            struct ticket *const more =
                realloc(a->tickets, room * sizeof *more);
            if (!more)
                return no_memory(b);
            a->tickets = more;
            a->room = room;
        }
        if (!shard_command(a, b, i, &w))
            return no_memory(b);
        a->tickets[a->nsent++] = router_send(&a->r, a->shards.at[i].slot, &w);
        redisFreeCommand(w.bytes);
    }
    return BLY_OK;
}

/* Pick the keys of a shard that the server says 1 of. */
static bool take_answer(struct asking *a, struct batch *b, size_t shard,
                        const redisReply *reply)
{
    const size_t from = a->split.start[shard];
    const size_t n = a->split.start[shard + 1] - from;
    const char *const key = a->shards.at[shard].key;
    if (reply->type == REDIS_REPLY_ERROR)
        return router_explain(&a->r, key, reply->str);
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != n)
        return router_explain(&a->r, key, "an answer for other keys came back");
    for (size_t i = 0; i < n; i++) {
        const redisReply *const e = reply->element[i];
        if (e->type == REDIS_REPLY_ERROR)
            return router_explain(&a->r, key, e->str);
        if (e->type != REDIS_REPLY_INTEGER)
            return router_explain(&a->r, key, "an answer that is no number");
        const size_t at = a->split.order[from + i];
        b->picked[at / 64] |= (uint64_t)(e->integer == 1) << at % 64;
    }
    return true;
}

static bly_status ask_batch(struct job *job, struct batch *b)
{
    struct asking *const a = job->ctx;
    shards_split(&a->shards, b, &a->split);
    b->why = a->r.why;
    for (size_t i = 0; i < a->shards.n; i++) {
        struct wire w;
        if (a->split.start[i] == a->split.start[i + 1])
            continue;
        if (!shard_command(a, b, i, &w))
            return no_memory(b);
        redisReply *const reply =
            router_answer(&a->r, a->tickets[a->nanswered++],
                          a->shards.at[i].slot, &w, a->again);
        redisFreeCommand(w.bytes);
        const bool ok = reply && take_answer(a, b, i, reply);
        freeReplyObject(reply);
        if (!ok)
            return BLY_EIO;
    }
    if (a->invert)
        batch_invert(b);
    return BLY_OK;
}

/* Find the filter, so that what is wrong with it is said even if no key comes.
 * A kind that cannot answer may be one that takes keys. */
static bool asking_open(struct asking *a, const struct redis_args *args,
                        const char *name, bool adds)
{
    if (!router_open(&a->r, &args->login))
        return false;
    if (args->cluster) {
        if (!shards_read(&a->r, name, &a->shards))
            return false;
    } else if (!shards_one(&a->shards, name)) {
        return router_explain(&a->r, name, "out of memory");
    }
    a->again = !adds || (a->shards.is_sharded && !a->shards.counts);
    a->verb = adds ? "BLY.ADD" : "BLY.HAS";
    a->invert = args->invert;
    const char *const first = a->shards.at[0].key;
    redisReply *const reply =
        router_call(&a->r, first, true, "BLY.HAS %s %b", first, "", (size_t)0);
    freeReplyObject(reply);
    if (!reply && !(adds && strstr(a->r.why, "cannot say")))
        return false;
    a->r.why[0] = '\0';
    return true;
}

static void asking_close(struct asking *a)
{
    router_close(&a->r);
    shards_free(&a->shards);
    free(a->tickets);
    free(a);
}

/* All keys to the server. A status, and job's results; adds: 1 is a key that
 * was new. */
static int ask_all(const struct redis_args *args, const struct list *operands,
                   bool adds, struct job *job)
{
    struct input in;
    struct asking *const a = calloc(1, sizeof *a);
    if (!a)
        return fail("out of memory");
    if (!keys_input(&args->keys, operands, &in)) {
        asking_close(a);
        return TROUBLE;
    }
    int status = YES;
    if (!asking_open(a, args, operands->at[0], adds)) {
        status = fail("%s", a->r.why);
    } else {
        job->ctx = a;
        job->batch = ask_batch;
        job->ahead = ask_ahead;
        job->nthreads = 1;
        job->hasher = a->shards.is_sharded ? shard_hasher() : NULL;
        if (pipeline_run(job, &in))
            status = fail("%s", job->error);
        else if (a->shards.is_sharded && !shards_same(&a->r, &a->shards))
            status = fail("%s", a->r.why);
    }
    input_close(&in);
    asking_close(a);
    return status;
}

int redis_has(const struct redis_args *args, struct list *operands)
{
    const bool counts = args->count || args->json;
    struct job job = {
        .prints = !counts && !quiet,
        .first_only = quiet,
        .terminator = args->keys.nul ? '\0' : '\n',
    };
    if (ask_all(args, operands, false, &job) != YES)
        return TROUBLE;
    if (args->json && !quiet) {
        struct json j = { .to = stdout };
        json_open(&j, '{');
        json_key(&j, "asked");
        json_uint(&j, job.nkeys);
        json_key(&j, "maybe");
        json_uint(&j, args->invert ? job.nkeys - job.npicked : job.npicked);
        json_close(&j, '}');
        json_end(&j);
    } else if (counts && !quiet) {
        printf("%llu\n", (unsigned long long)job.npicked);
    }
    return job.npicked ? YES : NO;
}

int redis_add(const struct redis_args *args, struct list *operands)
{
    const char *const name = operands->at[0];
    struct job job = { 0 };
    if (ask_all(args, operands, true, &job) != YES)
        return TROUBLE;
    if (args->json && !quiet) {
        struct json j = { .to = stdout };
        json_open(&j, '{');
        json_key(&j, "key");
        json_text(&j, name);
        json_key(&j, "keys");
        json_uint(&j, job.nkeys);
        json_key(&j, "new");
        json_uint(&j, job.npicked);
        json_close(&j, '}');
        json_end(&j);
    } else if (!quiet) {
        printf("%s: %s added, %llu of them new\n", show_name(name),
               show_keys(job.nkeys), (unsigned long long)job.npicked);
    }
    return YES;
}
