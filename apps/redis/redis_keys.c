/*
 * redis_keys.c - bloomery redis has, add: keys by the million
 *
 * The keys of a block of lines (256 KiB) are divided by their shards, and each
 * shard's become commands of up to 512 keys. All of them go out before the
 * first answer is read: a block costs one round trip, and all servers work at
 * the same time. The answers of a shard are kept in the order of its keys, from
 * where every key takes its own.
 *
 *     block     k0 k1 k2 k3 k4 ...
 *     shard 0   k0 k3 ..       BLY.HAS words:{0} k0 k3 ..     1 0 ..
 *     shard 1   k1 k2 k4 ..    BLY.HAS words:{1} k1 k2 k4 ..  1 1 0 ..
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "apps/redis/shards.h"
#include "apps/redis/upload.h"
#include "base/grow.h"
#include "report/say.h"

#define COMMAND_KEYS 512

/* The keys of a block that are one shard's, and what was answered. */
struct shard_keys {
    bly_bytes *keys;
    unsigned char *answers;
    size_t n, room, room_answers;
    size_t next; /* the answer to be taken next */
};

/* A command under way. */
struct sent {
    struct wire_command wire;
    struct ticket ticket;
    size_t shard, from, n; /* its keys in the shard's */
};

/* Asking or adding. */
struct asking {
    struct router r;
    struct shards shards;
    const char *verb;           /* BLY.HAS */
    const char *const *between; /* words between key and items; ends in NULL */
    bool again;                 /* whether a command may be carried out twice */
    bool invert;
    bool answered; /* the block has its answers */
    struct shard_keys *of;
    struct sent *sent;
    size_t nsent, room, nanswered;
};

static bool asking_fail(struct asking *a)
{
    snprintf(a->r.why, sizeof a->r.why, "out of memory");
    return false;
}

static bool shard_keys_put(struct shard_keys *k, const bly_bytes *key)
{
    if (!GROW(&k->keys, &k->room, k->n + 1) ||
        !GROW(&k->answers, &k->room_answers, k->n + 1))
        return false;
    k->keys[k->n++] = *key;
    return true;
}

/* Send the command for some keys of a shard. */
static bool send_keys(struct asking *a, size_t shard, size_t from, size_t n)
{
    const char *words[COMMAND_KEYS + 4];
    size_t lens[COMMAND_KEYS + 4], nwords = 2;
    if (!GROW(&a->sent, &a->room, a->nsent + 1))
        return asking_fail(a);
    words[0] = a->verb;
    lens[0] = strlen(a->verb);
    words[1] = a->shards.at[shard].key;
    lens[1] = a->shards.at[shard].len;
    for (; a->between[nwords - 2]; nwords++) {
        words[nwords] = a->between[nwords - 2];
        lens[nwords] = strlen(words[nwords]);
    }
    for (size_t i = 0; i < n; i++, nwords++) {
        words[nwords] = a->of[shard].keys[from + i].ptr;
        lens[nwords] = a->of[shard].keys[from + i].len;
    }
    struct sent *const s = &a->sent[a->nsent];
    *s = (struct sent){ .shard = shard, .from = from, .n = n };
    const int len =
        redisFormatCommandArgv(&s->wire.bytes, (int)nwords, words, lens);
    if (len < 0)
        return asking_fail(a);
    s->wire.len = (size_t)len;
    s->ticket = router_send(&a->r, a->shards.at[shard].slot, &s->wire);
    a->nsent++;
    return true;
}

/* Take what a server says of some keys of a shard: 1 or 0 of each. */
static bool take_answer(struct asking *a, const struct sent *s,
                        const redisReply *reply)
{
    const char *const key = a->shards.at[s->shard].key;
    if (reply->type == REDIS_REPLY_ERROR)
        return router_explain(&a->r, key, reply->str);
    const bool is_array = reply->type == REDIS_REPLY_ARRAY;
    for (size_t i = 0; i < s->n && is_array && i < reply->elements; i++) {
        const redisReply *const e = reply->element[i];
        if (e->type == REDIS_REPLY_ERROR) /* BF.MADD ends with it */
            return router_explain(&a->r, key, e->str);
        if (e->type != REDIS_REPLY_INTEGER)
            return router_explain(&a->r, key, "an answer that is not a number");
        if (e->integer < 0) /* of CF.INSERT */
            return router_explain(&a->r, key, "the filter is full");
        a->of[s->shard].answers[s->from + i] = e->integer == 1;
    }
    if (!is_array || reply->elements != s->n)
        return router_explain(&a->r, key, "the server answered for other keys");
    return true;
}

/* Send all keys of the block and take all answers. False: r.why. */
static bool ask_block(struct asking *a)
{
    a->nsent = a->nanswered = 0;
    for (size_t i = 0; i < a->shards.n; i++) {
        const size_t all = a->of[i].n;
        for (size_t from = 0; from < all; from += COMMAND_KEYS) {
            const size_t left = all - from;
            if (!send_keys(a, i, from,
                           left < COMMAND_KEYS ? left : COMMAND_KEYS))
                return false;
        }
    }
    while (a->nanswered < a->nsent) {
        struct sent *const s = &a->sent[a->nanswered++];
        redisReply *const reply = router_answer(
            &a->r, s->ticket, a->shards.at[s->shard].slot, &s->wire, a->again);
        redisFreeCommand(s->wire.bytes);
        const bool ok = reply && take_answer(a, s, reply);
        freeReplyObject(reply);
        if (!ok)
            return false;
    }
    return true;
}

static bly_status ask_ahead(struct job *job, struct batch *b)
{
    struct asking *const a = job->ctx;
    if (a->answered)
        for (size_t i = 0; i < a->shards.n; i++)
            a->of[i].n = a->of[i].next = 0;
    a->answered = false;
    for (size_t i = 0; i < b->n; i++)
        if (!shard_keys_put(&a->of[shards_choose(&a->shards, b, i)],
                            &b->keys[i])) {
            b->why = "out of memory";
            return BLY_ENOMEM;
        }
    return BLY_OK;
}

static bly_status ask_batch(struct job *job, struct batch *b)
{
    struct asking *const a = job->ctx;
    b->why = a->r.why;
    if (!a->answered && !ask_block(a))
        return BLY_EIO;
    a->answered = true;
    for (size_t i = 0; i < b->n; i++) {
        struct shard_keys *const k = &a->of[shards_choose(&a->shards, b, i)];
        b->picked[i / 64] |= (uint64_t)k->answers[k->next++] << i % 64;
    }
    if (a->invert)
        batch_invert(b);
    return BLY_OK;
}

static const char *const nothing_between[] = { NULL };
static const char *const insert_between[] = { "NOCREATE", "ITEMS", NULL };

/* The commands of each type of filter, as TYPE names it. A cuckoo filter holds
 * an item as often as it was added. */
static const struct {
    const char *type, *has, *add;
    const char *const *before_added;
    bool counts;
} filter_types[] = {
    { "bloomery-", "BLY.HAS", "BLY.ADD", nothing_between, true },
    { "MBbloom--", "BF.MEXISTS", "BF.MADD", nothing_between, false },
    { "bloomfltr", "BF.MEXISTS", "BF.MADD", nothing_between, false },
    { "MBbloomCF", "CF.MEXISTS", "CF.INSERT", insert_between, true },
};

/* Choose by what is in a key; false: r->why. Of one that is missing, the
 * commands of BLY.* tell, and whether there are any. */
static bool choose_commands(struct asking *a, const char *key, bool adds)
{
    redisReply *const reply = router_call(&a->r, key, true, "TYPE %s", key);
    if (!reply)
        return false;
    const size_t n = sizeof filter_types / sizeof filter_types[0];
    const char *const type = reply->str ? reply->str : "";
    size_t i = 0;
    while (i < n && strcmp(type, filter_types[i].type) != 0)
        i++;
    if (strcmp(type, "none") == 0)
        i = 0;
    if (i < n) {
        a->verb = adds ? filter_types[i].add : filter_types[i].has;
        a->between = adds ? filter_types[i].before_added : nothing_between;
        a->again = !adds || !filter_types[i].counts ||
                   (a->shards.is_sharded && !a->shards.counts);
    } else {
        snprintf(a->r.why, sizeof a->r.why,
                 "%s: holds a value of type %s, which is not a filter that can "
                 "be asked for items",
                 key, type);
    }
    freeReplyObject(reply);
    return i < n;
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
        return asking_fail(a);
    }
    a->of = calloc(a->shards.n, sizeof *a->of);
    if (!a->of)
        return asking_fail(a);
    a->invert = args->invert;
    const char *const first = a->shards.at[0].key;
    if (!choose_commands(a, first, adds))
        return false;
    if (strcmp(a->verb, "BLY.HAS") != 0 && strcmp(a->verb, "BLY.ADD") != 0)
        return true;
    /* 0 is a key of every type. */
    redisReply *const reply =
        router_call(&a->r, first, true, "BLY.HAS %s 0", first);
    freeReplyObject(reply);
    if (!reply && !(adds && strstr(a->r.why, "cannot say"))) {
        if (!args->cluster)
            shards_hint(&a->r, name);
        return false;
    }
    a->r.why[0] = '\0';
    return true;
}

static void asking_close(struct asking *a)
{
    router_close(&a->r);
    for (size_t i = 0; a->of && i < a->shards.n; i++) {
        free(a->of[i].keys);
        free(a->of[i].answers);
    }
    while (a->nanswered < a->nsent)
        redisFreeCommand(a->sent[a->nanswered++].wire.bytes);
    shards_free(&a->shards);
    free(a->of);
    free(a->sent);
    free(a);
}

/* Wait for replicas to have what was added: WAIT counts what went through its
 * own connection, so it goes where the items went. */
static bool settle_all(struct asking *a, uint64_t replicas)
{
    for (size_t i = 0; i < a->shards.n && replicas; i++) {
        const struct shard *const at = &a->shards.at[i];
        struct wire_command w;
        const int len = redisFormatCommand(
            &w.bytes, "WAIT %llu %llu", (unsigned long long)replicas,
            (unsigned long long)upload_patience(&a->r));
        if (len < 0)
            return asking_fail(a);
        w.len = (size_t)len;
        const struct ticket t = router_send(&a->r, at->slot, &w);
        redisReply *const reply = router_answer(&a->r, t, at->slot, &w, true);
        redisFreeCommand(w.bytes);
        const bool ok =
            reply && upload_settled(&a->r, at->key, replicas, reply);
        freeReplyObject(reply);
        if (!ok)
            return false;
    }
    return true;
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
    struct keys keys = args->keys;
    keys.changes = adds;
    if (!keys_input(&keys, operands, &in)) {
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
        else if ((a->shards.is_sharded && !shards_same(&a->r, &a->shards)) ||
                 (adds && !settle_all(a, args->replicas)))
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
    const struct redis_asked asked = { job.nkeys,
                                       args->invert ? job.nkeys - job.npicked
                                                    : job.npicked,
                                       job.npicked };
    if (counts && !quiet)
        report(stdout, args->json, redis_asked_fields, &asked, "{picked}\n");
    return job.npicked ? YES : NO;
}

int redis_add(const struct redis_args *args, struct list *operands)
{
    struct job job = { 0 };
    if (ask_all(args, operands, true, &job) != YES)
        return TROUBLE;
    const struct redis_added added = { operands->at[0], job.nkeys,
                                       job.npicked };
    if (!quiet)
        report(stdout, args->json, redis_added_fields, &added,
               "{key}: {keys} added, {new} of them new\n");
    return YES;
}
