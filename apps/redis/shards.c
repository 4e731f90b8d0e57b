/*
 * shards.c - one filter in many keys
 *
 * A key lives on one server, and so does a filter in it. A filter that is to
 * use all servers of a cluster is divided: a key's hash chooses the shard, and
 * shard i of "words" is in the key "words:{i}", where the braces make the
 * number alone choose the slot. Each shard is a filter for its share of the
 * keys, so the rate stays what it was; size and traffic divide.
 *
 *     shard = floor(h / 2^32) * n / 2^32       h: XXH3 with ROUTE_SEED
 *
 * The seed is not that of the filters. With the same one all keys of a shard
 * would begin with the same bits, and a filter that uses these would be worse
 * than planned.
 *
 * What a reader must know is in the hash "words:{meta}":
 *
 *     format  1
 *     shards  12
 *     kind    blocked
 *     items   1000000     capacity of all, 0 where there is none
 *     fpr     0.01        as planned
 *     build   9c1f...     another number every time it is built
 *
 * A filter that is built anew loses its meta key before its shards are changed
 * and gets the new one after; a reader compares the number when it is done.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "apps/redis/shards.h"

#define ROUTE_SEED UINT64_C(0x79726d6f6f6c62) /* "bloomry" */
#define META_FORMAT "1"

const bly_hasher *shard_hasher(void)
{
    static const bly_hasher route = { .id = BLY_HASH_XXH3, .seed = ROUTE_SEED };
    return &route;
}

static size_t shard_of(uint64_t hash, size_t n)
{
    return (size_t)((hash >> 32) * (uint64_t)n >> 32);
}

static bool shard_name(struct shard *s, char *key)
{
    s->key = key;
    s->len = key ? strlen(key) : 0;
    s->slot = key ? key_slot(key, s->len) : 0;
    return key != NULL;
}

bool shards_one(struct shards *s, const char *key)
{
    *s = (struct shards){ .name = key, .n = 1 };
    s->at = calloc(1, sizeof *s->at);
    return s->at && shard_name(&s->at[0], strdup(key));
}

bool shards_many(struct shards *s, const char *name, size_t n)
{
    *s = (struct shards){ .name = name, .n = n, .is_sharded = true };
    s->at = calloc(n, sizeof *s->at);
    for (size_t i = 0; s->at && i < n; i++) {
        char *key = NULL;
        if (asprintf(&key, "%s:{%zu}", name, i) < 0 ||
            !shard_name(&s->at[i], key))
            return false;
    }
    return s->at != NULL;
}

void shards_free(struct shards *s)
{
    for (size_t i = 0; s->at && i < s->n; i++)
        free(s->at[i].key);
    free(s->at);
    s->at = NULL;
}

/* ------------------------------------------------------------------ meta */

static bool meta_fail(struct router *r, const char *name, const char *what)
{
    snprintf(r->why, sizeof r->why, "%s:{meta}: %s", name, what);
    return false;
}

static bool meta_name(struct router *r, const char *name, char *key,
                      size_t room)
{
    if (strpbrk(name, "{}"))
        return meta_fail(r, name,
                         "the name of a filter in shards has no braces: they "
                         "would put all shards in one slot");
    if ((size_t)snprintf(key, room, "%s:{meta}", name) >= room)
        return meta_fail(r, name, "the name is too long");
    return true;
}

/* A field of an answer to HMGET, as text. */
static void meta_text(const redisReply *reply, size_t i, char *to, size_t room)
{
    const char *const text = reply->element[i]->str;
    snprintf(to, room, "%s", text ? text : "");
}

bool shards_read(struct router *r, const char *name, struct shards *s)
{
    char key[512], format[8], number[24], kind[sizeof s->kind],
        build[sizeof s->build];
    uint64_t n;
    bly_kind_info info;
    if (!meta_name(r, name, key, sizeof key))
        return false;
    redisReply *const reply =
        router_call(r, key, true, "HMGET %s format shards kind build", key);
    if (!reply)
        return false;
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 4) {
        freeReplyObject(reply);
        return meta_fail(r, name,
                         "the server's HMGET returns something unexpected");
    }
    meta_text(reply, 0, format, sizeof format);
    meta_text(reply, 1, number, sizeof number);
    meta_text(reply, 2, kind, sizeof kind);
    meta_text(reply, 3, build, sizeof build);
    freeReplyObject(reply);
    if (!format[0])
        return meta_fail(r, name,
                         "not there: no filter of that name was built in "
                         "shards, or it is still being built");
    if (strcmp(format, META_FORMAT) != 0 || !bly_parse_count(number, &n) ||
        n < 1 || n > SHARDS_MAX)
        return meta_fail(r, name,
                         "in a format that this version does not know");
    if (!shards_many(s, name, (size_t)n)) {
        shards_free(s);
        return meta_fail(r, name, "out of memory");
    }
    memcpy(s->kind, kind, sizeof kind);
    memcpy(s->build, build, sizeof build);
    s->counts = !bly_kind_named(kind, &info) ||
                (info.can & (BLY_CAN(COUNT) | BLY_CAN(REMOVE)));
    return true;
}

bool shards_write(struct router *r, struct shards *s, uint64_t items,
                  double fpr)
{
    char key[512], real[40];
    uint64_t number = 0;
    if (!meta_name(r, s->name, key, sizeof key))
        return false;
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return meta_fail(r, s->name, "no random number could be obtained");
    snprintf(s->build, sizeof s->build, "%016llx", (unsigned long long)number);
    snprintf(real, sizeof real, "%.17g", fpr);
    redisReply *const reply = router_call(
        r, key, true,
        "HSET %s format %s shards %llu kind %s items %llu fpr %s build %s", key,
        META_FORMAT, (unsigned long long)s->n, s->kind,
        (unsigned long long)items, real, s->build);
    freeReplyObject(reply);
    return reply != NULL;
}

bool shards_hide(struct router *r, const char *name)
{
    char key[512];
    if (!meta_name(r, name, key, sizeof key))
        return false;
    redisReply *const reply = router_call(r, key, true, "DEL %s", key);
    freeReplyObject(reply);
    return reply != NULL;
}

int shards_there(struct router *r, const char *name)
{
    char key[512];
    if (!meta_name(r, name, key, sizeof key))
        return -1;
    redisReply *const reply = router_call(r, key, true, "EXISTS %s", key);
    const int there = reply ? reply->integer == 1 : -1;
    freeReplyObject(reply);
    return there;
}

void shards_hint(struct router *r, const char *name)
{
    char why[sizeof r->why];
    memcpy(why, r->why, sizeof why);
    const bool there = shards_there(r, name) == 1;
    memcpy(r->why, why, sizeof why);
    const size_t n = strlen(r->why);
    if (there)
        snprintf(r->why + n, sizeof r->why - n,
                 "; there is a filter in shards of that name; use --cluster");
}

bool shards_same(struct router *r, const struct shards *s)
{
    struct shards now = { 0 };
    if (!shards_read(r, s->name, &now))
        return false;
    const bool same = strcmp(now.build, s->build) == 0;
    shards_free(&now);
    return same || meta_fail(r, s->name,
                             "the filter was rebuilt meanwhile, and some "
                             "answers may be wrong; ask again");
}

/* ----------------------------------------------------------------- keys */

size_t shards_choose(const struct shards *s, const struct batch *b, size_t i)
{
    return s->is_sharded ? shard_of(b->hashes[i], s->n) : 0;
}

void shards_split(const struct shards *s, const struct batch *b,
                  struct shard_split *out)
{
    uint16_t *const start = out->start;
    /* Counting sort. start[i + 1] is at first the number of keys of shard i,
     * then where those of shard i begin, and in the end where they stop. */
    memset(start, 0, (s->n + 1) * sizeof *start);
    for (size_t i = 0; i < b->n; i++)
        start[shards_choose(s, b, i) + 1]++;
    uint16_t sum = 0;
    for (size_t i = 1; i <= s->n; i++) {
        const uint16_t here = start[i];
        start[i] = sum;
        sum = (uint16_t)(sum + here);
    }
    for (size_t i = 0; i < b->n; i++)
        out->order[start[shards_choose(s, b, i) + 1]++] = (uint16_t)i;
}
