/*
 * redis_info.c - bloomery redis info: what a server says about a key
 *
 * The type of the key chooses the command that is asked, since every family has
 * its own. Of a filter in shards the meta key is read, and what can be added up
 * is added up over all shards.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "apps/redis/lane.h"
#include "apps/redis/shards.h"
#include "report/say.h"
#include "report/show.h"

static const struct {
    const char *type, *command;
} families[] = {
    { "bloomery-", "BLY.INFO" }, { "MBbloom--", "BF.INFO" },
    { "bloomfltr", "BF.INFO" },  { "MBbloomCF", "CF.INFO" },
    { "CMSk-TYPE", "CMS.INFO" }, { "TopK-TYPE", "TOPK.INFO" },
};

#define FACTS_MAX 64

/* What a reply says, in words that live as long as it does; numbers are put
 * into `room`. */
static const char *fact_text(const redisReply *e, char room[32])
{
    if (e->type == REDIS_REPLY_INTEGER)
        snprintf(room, 32, "%lld", e->integer);
    else if (e->type == REDIS_REPLY_NIL || !e->str || !e->str[0])
        return NULL; /* not known there either */
    else
        return e->str;
    return room;
}

static void info_print(const struct redis_args *args,
                       const struct redis_info *i, bool follows)
{
    if (args->json) {
        report(stdout, true, redis_info_fields, i, NULL);
        return;
    }
    printf("%s%s\n  %-20s %s\n", follows ? "\n" : "", show_name(i->key), "type",
           show_name(i->type));
    if (i->shards)
        printf("  %-20s %llu\n", "shards", (unsigned long long)*i->shards);
    for (size_t k = 0; k < i->nfacts; k++)
        if (i->facts[k].value)
            printf("  %-20s %s\n", show_name(i->facts[k].name),
                   show_name(i->facts[k].value));
}

/* One key, whatever family it is of. */
static bool info_key(struct router *r, const struct redis_args *args,
                     const char *key, bool follows)
{
    redisReply *const type = router_call(r, key, true, "TYPE %s", key);
    if (!type)
        return false;
    char name[32];
    snprintf(name, sizeof name, "%s", type->str ? type->str : "");
    freeReplyObject(type);
    const char *command = NULL;
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        if (strcmp(families[i].type, name) == 0)
            command = families[i].command;
    if (strcmp(name, "none") == 0) {
        router_explain(r, key, "there is no such key");
        shards_hint(r, key);
        return false;
    }
    if (!command) {
        snprintf(r->why, sizeof r->why, "%s: not a filter, but a %s", key,
                 name);
        return false;
    }
    redisReply *const reply = router_call(r, key, true, "%s %s", command, key);
    if (!reply)
        return false;
    struct redis_fact facts[FACTS_MAX];
    char rooms[FACTS_MAX][32];
    struct redis_info info = { .key = key, .type = command, .facts = facts };
    for (size_t i = 0; i + 1 < reply->elements && info.nfacts < FACTS_MAX;
         i += 2) {
        const redisReply *const label = reply->element[i];
        if (label->str)
            facts[info.nfacts] = (struct redis_fact){
                label->str, fact_text(reply->element[i + 1], rooms[info.nfacts])
            };
        info.nfacts += label->str != NULL;
    }
    info_print(args, &info, follows);
    freeReplyObject(reply);
    return true;
}

/* A filter in shards: the numbers that can be added up. */
static bool info_shards(struct router *r, const struct redis_args *args,
                        const char *name, bool follows)
{
    static const char *const sums[] = { "capacity", "items_added", "bits",
                                        "bytes" };
    enum { NSUMS = sizeof sums / sizeof sums[0] };
    struct shards s = { 0 };
    if (!shards_read(r, name, &s))
        return false;
    uint64_t total[NSUMS] = { 0 };
    bool ok = true;
    for (size_t i = 0; i < s.n && ok; i++) {
        redisReply *const reply =
            router_call(r, s.at[i].key, true, "BLY.INFO %s", s.at[i].key);
        ok = reply != NULL;
        for (size_t k = 0; ok && k + 1 < reply->elements; k += 2)
            for (size_t n = 0; n < NSUMS; n++)
                if (reply->element[k]->str &&
                    strcmp(reply->element[k]->str, sums[n]) == 0)
                    total[n] += (uint64_t)reply->element[k + 1]->integer;
        freeReplyObject(reply);
    }
    ok = ok && shards_same(r, &s);
    struct redis_fact facts[NSUMS + 1] = { { "kind", s.kind } };
    char rooms[NSUMS][32];
    for (size_t n = 0; n < NSUMS; n++) {
        snprintf(rooms[n], sizeof rooms[n], "%llu",
                 (unsigned long long)total[n]);
        facts[n + 1] = (struct redis_fact){ sums[n], rooms[n] };
    }
    const uint64_t n = s.n;
    const struct redis_info info = { name, "BLY.INFO of all shards", &n, facts,
                                     NSUMS + 1 };
    if (ok)
        info_print(args, &info, follows);
    shards_free(&s);
    return ok;
}

int redis_info(const struct redis_args *args, struct list *operands)
{
    struct router r = { 0 };
    int status = YES;
    if (!router_open(&r, &args->login)) {
        status = fail("%s", r.why);
        router_close(&r);
        return status;
    }
    for (size_t i = 0; i < operands->n; i++) {
        r.why[0] = '\0';
        if (!(args->cluster ? info_shards(&r, args, operands->at[i], i > 0)
                            : info_key(&r, args, operands->at[i], i > 0)))
            status = fail("%s", r.why);
    }
    router_close(&r);
    return status;
}
