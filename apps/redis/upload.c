/*
 * upload.c - a filter into a key, whole or not at all
 *
 * The pieces go to a temporary key. When all are there and the server says of
 * them what the filter says of itself, the key is renamed: a reader sees either
 * what was there before or the new filter, never a part of it. The temporary
 * key has a day to live, so that what is left of a command that was killed goes
 * away by itself.
 *
 *     BLY.IMPORT words:loading:{8f3c} 0 1200000 ...
 *     EXPIRE     words:loading:{8f3c} 86400
 *     BLY.IMPORT words:loading:{8f3c} ...
 *     BLY.INFO   words:loading:{8f3c}
 *     PERSIST    words:loading:{8f3c}
 *     RENAME     words:loading:{8f3c} words
 *
 * Both names must be in one slot. The number is counted up until they are,
 * which takes 16384 steps on average where braces of the key do not decide.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "apps/redis/lane.h"
#include "apps/redis/upload.h"
#include "report/say.h"

/* What is sent at a time: large enough that waiting for the answer does not
 * count, small enough that the server's other users do not wait long. */
#define PIECE_BYTES ((size_t)4 << 20)
#define BESIDE_TRIES (1u << 20)

char *key_beside(const char *key, const char *what)
{
    const unsigned slot = key_slot(key, strlen(key));
    const size_t room = strlen(key) + strlen(what) + 24;
    char *const name = malloc(room);
    uint32_t number = 0;
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        number = (uint32_t)(uintptr_t)name;
    for (unsigned i = 0; name && i < BESIDE_TRIES; i++, number++) {
        const int n = snprintf(name, room, "%s:%s:{%x}", key, what, number);
        if (key_slot(name, (size_t)n) == slot)
            return name;
    }
    free(name);
    return NULL;
}

static bool upload_fail(struct router *r, const char *key, const char *what)
{
    snprintf(r->why, sizeof r->why, "%s: %s", key, what);
    return false;
}

bool upload_may(struct router *r, const char *key, bool replace)
{
    redisReply *const reply = router_call(r, key, true, "TYPE %s", key);
    if (!reply)
        return false;
    const char *const type = reply->str ? reply->str : "";
    const bool is_none = strcmp(type, "none") == 0;
    const bool is_filter = strcmp(type, "bloomery-") == 0 ||
                           strcmp(type, "bloomfltr") == 0 ||
                           starts_with(type, "MBbloom"); /* BF.* and CF.* */
    const bool may = is_none || (replace && is_filter);
    if (!may && is_filter)
        upload_fail(r, key, "is there already; --replace replaces it");
    else if (!may)
        snprintf(r->why, sizeof r->why,
                 "%s: holds a value of type %s, which is not a filter and is "
                 "left alone; use another key, or DEL it first",
                 key, type);
    freeReplyObject(reply);
    return may;
}

/* --------------------------------------------------------------- sending */

/* Pieces in the making. */
struct sending {
    struct router *r;
    const char *at;
    uint64_t total, sent;
    char *piece;
    size_t n;
};

static bool send_piece(struct sending *s)
{
    redisReply *reply =
        router_call(s->r, s->at, false, "BLY.IMPORT %s %llu %llu %b", s->at,
                    (unsigned long long)s->sent, (unsigned long long)s->total,
                    s->piece, s->n);
    if (!reply)
        return false;
    freeReplyObject(reply);
    const bool was_first = s->sent == 0;
    s->sent += s->n;
    s->n = 0;
    progress_at(s->sent, s->sent, s->total);
    if (!was_first)
        return true;
    reply =
        router_call(s->r, s->at, true, "EXPIRE %s %d", s->at, UNPLACED_SECONDS);
    freeReplyObject(reply);
    return reply != NULL;
}

static bool put_piece(void *ctx, const void *bytes, size_t nbytes)
{
    struct sending *const s = ctx;
    const char *from = bytes;
    while (nbytes) {
        const size_t room = PIECE_BYTES - s->n;
        const size_t some = nbytes < room ? nbytes : room;
        memcpy(s->piece + s->n, from, some);
        s->n += some;
        from += some;
        nbytes -= some;
        if (s->n == PIECE_BYTES && !send_piece(s))
            return false;
    }
    return true;
}

/* A number or word that BLY.INFO gives by name, as text; NULL: none. */
static const char *info_text(const redisReply *info, const char *name,
                             char *text, size_t ntext)
{
    for (size_t i = 0; i + 1 < info->elements; i += 2) {
        const redisReply *const e = info->element[i + 1];
        if (!info->element[i]->str || strcmp(info->element[i]->str, name) != 0)
            continue;
        if (e->type == REDIS_REPLY_INTEGER)
            snprintf(text, ntext, "%lld", e->integer);
        else
            snprintf(text, ntext, "%s", e->str ? e->str : "");
        return text;
    }
    return NULL;
}

/* Does the server say of a key what f says of itself? */
static bool verify_upload(struct router *r, const char *at, const bly_filter *f)
{
    bly_stats s;
    bly_peek(f, &s);
    const struct {
        const char *name;
        uint64_t value;
    } facts[] = { { "capacity", s.capacity },
                  { "items_added", s.items_added },
                  { "bits", s.bits },
                  { "layers", s.layers } };
    redisReply *const info = router_call(r, at, true, "BLY.INFO %s", at);
    if (!info)
        return false;
    char text[64], mine[64];
    const char *told = info_text(info, "kind", text, sizeof text);
    bool same = told && strcmp(told, s.kind) == 0;
    for (size_t i = 0; same && i < sizeof facts / sizeof facts[0]; i++) {
        told = info_text(info, facts[i].name, text, sizeof text);
        snprintf(mine, sizeof mine, "%llu", (unsigned long long)facts[i].value);
        same = told && strcmp(told, mine) == 0;
    }
    told = info_text(info, "keyed", text, sizeof text);
    const bool locked = told && strcmp(told, "locked") == 0;
    freeReplyObject(info);
    if (locked)
        return upload_fail(
            r, at,
            "a keyed filter, and the server does not have its secret; put it "
            "into a file that the server's setting bly-secret-file names");
    if (!same)
        upload_fail(r, at,
                    "the server's BLY.INFO does not match what was sent; the "
                    "key was deleted again");
    return same;
}

/* ---------------------------------------------------- failing over */

/* A field of INFO's section of the server that has a key, as text; "" where it
 * has none. */
static void server_tells(struct router *r, const char *key, const char *section,
                         const char *field, char *to, size_t room)
{
    redisReply *const info = router_call(r, key, true, "INFO %s", section);
    const char *at = info && info->str ? strstr(info->str, field) : NULL;
    to[0] = '\0';
    if (at)
        snprintf(to, room, "%.*s", (int)strcspn(at + strlen(field), "\r\n"),
                 at + strlen(field));
    freeReplyObject(info);
}

bool upload_settle(struct router *r, const char *key, uint64_t n)
{
    char there[24];
    const bool any = n == 0;
    if (any) {
        server_tells(r, key, "replication", "connected_slaves:", there,
                     sizeof there);
        if (atoi(there) < 1)
            return true;
        n = 1;
    }
    redisReply *const reply =
        router_call(r, key, true, "WAIT %llu %llu", (unsigned long long)n,
                    (unsigned long long)upload_patience(r));
    const bool ok = reply && (any || upload_settled(r, key, n, reply));
    freeReplyObject(reply);
    return ok;
}

uint64_t upload_patience(const struct router *r)
{
    return r->login->timeout * 900; /* ms: before the connection's own ends */
}

bool upload_settled(struct router *r, const char *key, uint64_t n,
                    const redisReply *reply)
{
    if (is_error(reply))
        return router_explain(r, key, reply->str);
    const long long have = reply->integer;
    if ((uint64_t)have >= n)
        return true;
    snprintf(r->why, sizeof r->why,
             "%s: written, but only %lld of %llu replicas have it after %llu "
             "seconds (see --timeout)",
             key, have, (unsigned long long)n,
             (unsigned long long)r->login->timeout);
    return false;
}

bool upload_may_retry(struct router *r, const char *at)
{
    char why[sizeof r->why], limit[40], policy[60], evicted[40];
    if (!at)
        return false;
    if (r->lost)
        return true;
    memcpy(why, r->why, sizeof why);
    redisReply *const reply = router_call(r, at, true, "EXISTS %s", at);
    const bool gone = reply && reply->integer == 0;
    freeReplyObject(reply);
    if (gone) {
        server_tells(r, at, "memory", "\nmaxmemory:", limit, sizeof limit);
        server_tells(r, at, "memory", "maxmemory_policy:", policy,
                     sizeof policy);
        server_tells(r, at, "stats", "evicted_keys:", evicted, sizeof evicted);
    }
    memcpy(r->why, why, sizeof why);
    if (!gone || !strcmp(limit, "0") || !strcmp(policy, "noeviction") ||
        !strcmp(evicted, "0"))
        return gone && r->clustered;
    snprintf(r->why, sizeof r->why,
             "%s: the server evicted what was loaded, since it has reached "
             "maxmemory (%s bytes) and its maxmemory-policy is %s; give it "
             "more memory, or the policy noeviction",
             at, limit, policy);
    return false;
}

/* Send it once. */
static bool send_once(struct router *r, struct upload *u, const bly_filter *f)
{
    struct sending s = { .r = r, .total = bly_written_bytes(f) };
    u->at = key_beside(u->key, "loading");
    s.at = u->at;
    s.piece = malloc(PIECE_BYTES);
    bool ok = s.at && s.piece;
    if (!ok) {
        upload_fail(r, u->key, "out of memory");
    } else {
        progress_start(false);
        progress_unit("bytes");
        ok = bly_write(f, put_piece, &s) == BLY_OK && (!s.n || send_piece(&s));
        progress_clear();
    }
    ok = ok && verify_upload(r, u->at, f) && upload_settle(r, u->at, 0);
    free(s.piece);
    return ok;
}

/* When a server dies, what its replica does not have yet is lost: then
 * everything is sent again, to its successor. */
bool upload_send(struct router *r, struct upload *u, const bly_filter *f)
{
    bly_write_part(f, 0, u->head, sizeof u->head);
    for (unsigned attempt = 1;; attempt++) {
        if (send_once(r, u, f))
            return true;
        const bool again =
            upload_may_retry(r, u->at) && attempt < UPLOAD_ATTEMPTS;
        upload_drop(r, u);
        if (!again)
            return false;
    }
}

/* Does the key hold what was sent? The answer to a RENAME may be lost. */
static bool is_placed(struct router *r, const struct upload *u)
{
    char why[sizeof r->why];
    memcpy(why, r->why, sizeof why);
    redisReply *const e =
        router_call(r, u->key, true, "BLY.EXPORT %s 0 %d", u->key, UPLOAD_HEAD);
    const bool same = e && e->type == REDIS_REPLY_ARRAY && e->elements == 2 &&
                      e->element[1]->len == UPLOAD_HEAD &&
                      memcmp(e->element[1]->str, u->head, UPLOAD_HEAD) == 0;
    freeReplyObject(e);
    memcpy(r->why, why, sizeof why);
    return same;
}

bool upload_place(struct router *r, struct upload *u, bool replace)
{
    redisReply *reply = router_call(r, u->at, true, "PERSIST %s", u->at);
    if (!reply)
        return false;
    freeReplyObject(reply);
    reply =
        router_call(r, u->at, true, replace ? "RENAME %s %s" : "RENAMENX %s %s",
                    u->at, u->key);
    const bool answered = reply != NULL;
    const bool done = answered && (replace || reply->integer == 1);
    freeReplyObject(reply);
    if (done || is_placed(r, u)) {
        free(u->at);
        u->at = NULL;
        return true;
    }
    if (answered)
        return upload_fail(
            r, u->key,
            "someone else made this key meanwhile; --replace replaces it");
    upload_may_retry(r, u->at); /* was it evicted? */
    return false;
}

void upload_drop(struct router *r, struct upload *u)
{
    char why[sizeof r->why];
    memcpy(why, r->why, sizeof why); /* the first reason is the one to tell */
    if (u->at)
        freeReplyObject(router_call(r, u->at, true, "UNLINK %s", u->at));
    memcpy(r->why, why, sizeof why);
    free(u->at);
    u->at = NULL;
}
