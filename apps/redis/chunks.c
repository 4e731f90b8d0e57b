/*
 * chunks.c - a file of RedisBloom into a BF.* key, and back
 *
 * The file is what bloomery formats calls redisbloom: the header of
 * BF.SCANDUMP and all chunks behind it. Any server with these commands will do,
 * RedisBloom's own as well. Chunks are numbered by the bytes up to their end,
 * and none reaches from one filter of the chain into the next.
 */
#define _GNU_SOURCE
#include "apps/redis/upload.h"
#include "io/byte_order.h"
#include "report/say.h"

#define CHUNK_BYTES ((size_t)4 << 20)
#define CHUNKS_HEADER 20
#define CHUNKS_LINK 53 /* for each filter of the chain */

static uint64_t chain_length(const unsigned char *header)
{
    return get_le(header + 8, 4);
}

/* The bytes of filter i of the chain. */
static uint64_t link_bytes(const unsigned char *header, uint64_t i)
{
    return get_le(header + CHUNKS_HEADER + CHUNKS_LINK * i, 8);
}

/* ------------------------------------------------------------------- load */

/* One chunk; the first, which is the header, makes the key. */
static bool chunk_send(struct router *r, const char *at, uint64_t number,
                       const unsigned char *bytes, size_t n)
{
    redisReply *reply =
        router_call(r, at, number > 1, "BF.LOADCHUNK %s %llu %b", at,
                    (unsigned long long)number, bytes, n);
    if (reply && number == 1) {
        freeReplyObject(reply);
        reply = router_call(r, at, true, "EXPIRE %s %d", at, UNPLACED_SECONDS);
    }
    if (!reply)
        return false;
    freeReplyObject(reply);
    return true;
}

static bool chunks_send_once(struct router *r, struct upload *u,
                             const void *file, size_t nbytes)
{
    const unsigned char *const bytes = file;
    const uint64_t nlinks = chain_length(bytes);
    size_t at = CHUNKS_HEADER + CHUNKS_LINK * (size_t)nlinks;
    const size_t start = at;
    u->at = key_beside(u->key, "loading");
    if (!u->at) {
        snprintf(r->why, sizeof r->why, "%s: out of memory", u->key);
        return false;
    }
    progress_start(false);
    progress_unit("bytes");
    bool ok = chunk_send(r, u->at, 1, bytes, start);
    for (uint64_t i = 0; i < nlinks && ok; i++) {
        const size_t end = at + (size_t)link_bytes(bytes, i);
        while (at < end && ok) {
            const size_t n = end - at < CHUNK_BYTES ? end - at : CHUNK_BYTES;
            at += n;
            ok = chunk_send(r, u->at, 1 + at - start, bytes + at - n, n);
            progress_at(at, at, nbytes);
        }
    }
    progress_clear();
    return ok && upload_settle(r, u->at, 0);
}

bool chunks_send(struct router *r, struct upload *u, const void *file,
                 size_t nbytes)
{
    for (unsigned attempt = 1;; attempt++) {
        if (chunks_send_once(r, u, file, nbytes))
            return true;
        if (!upload_may_retry(r, u->at) || attempt == UPLOAD_ATTEMPTS)
            return false;
        upload_drop(r, u);
    }
}

/* ------------------------------------------------------------------- dump */

bool chunks_are_in(struct router *r, const char *key)
{
    redisReply *const reply = router_call(r, key, true, "TYPE %s", key);
    const bool are =
        reply && reply->str && strcmp(reply->str, "MBbloom--") == 0;
    freeReplyObject(reply);
    return are;
}

/* The chunk behind an iterator, appended; *at is then the next. */
static bool chunk_fetch(struct router *r, const char *key, uint64_t *at,
                        struct block *b)
{
    redisReply *const e = router_call(r, key, true, "BF.SCANDUMP %s %llu", key,
                                      (unsigned long long)*at);
    if (!e)
        return false;
    bool ok = e->type == REDIS_REPLY_ARRAY && e->elements == 2 &&
              e->element[0]->type == REDIS_REPLY_INTEGER &&
              e->element[0]->integer > 0 &&
              e->element[1]->type == REDIS_REPLY_STRING && e->element[1]->len;
    if (!ok)
        snprintf(r->why, sizeof r->why,
                 "%s: the server's BF.SCANDUMP ends too early, or returns "
                 "something other than bytes",
                 key);
    else if (!(ok = block_put(b, e->element[1]->str, e->element[1]->len)))
        snprintf(r->why, sizeof r->why, "%s: out of memory", key);
    else
        *at = (uint64_t)e->element[0]->integer;
    freeReplyObject(e);
    return ok;
}

/* How long the file will be, by its header. */
static uint64_t chunks_total(const struct block *b)
{
    const unsigned char *const header = (const unsigned char *)b->at;
    uint64_t total = b->len;
    if (b->len < CHUNKS_HEADER ||
        (b->len - CHUNKS_HEADER) / CHUNKS_LINK < chain_length(header))
        return total;
    for (uint64_t i = 0; i < chain_length(header); i++)
        total += link_bytes(header, i);
    return total;
}

/* A chain that grows meanwhile has filters that the header does not tell of:
 * what it tells of has all keys that were in it before. */
bly_foreign *chunks_fetch(struct router *r, const char *key, struct block *b)
{
    uint64_t at = 0;
    bly_foreign *f = NULL;
    if (!chunk_fetch(r, key, &at, b))
        return NULL;
    const uint64_t total = chunks_total(b);
    bool ok = true;
    progress_start(false);
    progress_unit("bytes");
    while (b->len < total && ok) {
        ok = chunk_fetch(r, key, &at, b);
        progress_at(b->len, b->len, total);
    }
    progress_clear();
    const bly_foreign_spec spec = { .format = "redisbloom" };
    if (ok && bly_foreign_open(&spec, b->at, b->len, &f))
        snprintf(r->why, sizeof r->why, "%s: %s", key, bly_error());
    return f;
}
