/*
 * redis_chunks.c - a file of RedisBloom into a key of BF.* or CF.*, and back
 *
 * The file is what bloomery formats calls redisbloom or rediscuckoo: the header
 * of SCANDUMP and all chunks behind it. Any server with these commands will do,
 * RedisBloom's own as well. Chunks are numbered by the bytes up to their end,
 * and none reaches from one filter of the chain into the next.
 */
#define _GNU_SOURCE
#include <string.h>

#include "apps/redis/lane.h"
#include "apps/redis/upload.h"
#include "base/byte_order.h"
#include "report/say.h"

#define CHUNK_BYTES ((size_t)4 << 20)
#define BLOOM_HEADER 20
#define BLOOM_LINK 53 /* for each filter of the chain */
#define CUCKOO_HEADER 38

static size_t bloom_start(const unsigned char *header, size_t n)
{
    if (n < BLOOM_HEADER)
        return 0;
    const uint64_t nlinks = get_le(header + 8, 4);
    return (n - BLOOM_HEADER) / BLOOM_LINK < nlinks
               ? 0
               : BLOOM_HEADER + BLOOM_LINK * (size_t)nlinks;
}

static uint64_t bloom_bytes(const unsigned char *header, uint64_t i)
{
    return i < get_le(header + 8, 4)
               ? get_le(header + BLOOM_HEADER + BLOOM_LINK * i, 8)
               : 0;
}

static size_t cuckoo_start(const unsigned char *header, size_t n)
{
    (void)header;
    return n < CUCKOO_HEADER ? 0 : CUCKOO_HEADER;
}

/* Each table has a multiple of the buckets of the one before. */
static uint64_t cuckoo_bytes(const unsigned char *header, uint64_t i)
{
    uint64_t bytes = get_le(header + 8, 8) * get_le(header + 32, 2);
    if (i >= get_le(header + 24, 8) || i > 65536)
        return 0;
    for (uint64_t k = 0; k < i && bytes < UINT64_C(1) << 48; k++)
        bytes *= get_le(header + 36, 2);
    return bytes;
}

/* The families whose keys go in and out so. */
static const struct chunk_family {
    const char *type, *format, *scandump, *loadchunk;
    /* How long a header of n bytes is, 0 where that is too short; and the
     * length of array i that it tells of, 0 past the last. */
    size_t (*start)(const unsigned char *header, size_t n);
    uint64_t (*bytes)(const unsigned char *header, uint64_t i);
} chunk_families[] = {
    { "MBbloom--", "redisbloom", "BF.SCANDUMP", "BF.LOADCHUNK", bloom_start,
      bloom_bytes },
    { "MBbloomCF", "rediscuckoo", "CF.SCANDUMP", "CF.LOADCHUNK", cuckoo_start,
      cuckoo_bytes },
};
#define NCHUNK_FAMILIES (sizeof chunk_families / sizeof chunk_families[0])

const struct chunk_family *chunks_of_format(const char *format)
{
    for (size_t i = 0; i < NCHUNK_FAMILIES; i++)
        if (strcmp(chunk_families[i].format, format) == 0)
            return &chunk_families[i];
    return NULL;
}

/* ------------------------------------------------------------------- load */

/* One chunk; the first, which is the header, makes the key. */
static bool chunk_send(struct router *r, const struct chunk_family *c,
                       const char *at, uint64_t number,
                       const unsigned char *bytes, size_t n)
{
    redisReply *reply =
        router_call(r, at, number > 1, "%s %s %llu %b", c->loadchunk, at,
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

static bool chunks_send_once(struct router *r, const struct chunk_family *c,
                             struct upload *u, const void *file, size_t nbytes)
{
    const unsigned char *const bytes = file;
    const size_t start = c->start(bytes, nbytes);
    size_t at = start;
    u->at = key_beside(u->key, "loading");
    if (!u->at) {
        snprintf(r->why, sizeof r->why, "%s: out of memory", u->key);
        return false;
    }
    progress_start(false);
    progress_unit("bytes");
    bool ok = chunk_send(r, c, u->at, 1, bytes, start);
    for (uint64_t i = 0, length; ok && (length = c->bytes(bytes, i)); i++) {
        const size_t end = at + (size_t)length;
        while (at < end && ok) {
            const size_t n = end - at < CHUNK_BYTES ? end - at : CHUNK_BYTES;
            at += n;
            ok = chunk_send(r, c, u->at, 1 + at - start, bytes + at - n, n);
            progress_at(at, at, nbytes);
        }
    }
    progress_clear();
    return ok && upload_settle(r, u->at, 0);
}

bool chunks_send(struct router *r, const struct chunk_family *c,
                 struct upload *u, const void *file, size_t nbytes)
{
    for (unsigned attempt = 1;; attempt++) {
        if (chunks_send_once(r, c, u, file, nbytes))
            return true;
        if (!upload_may_retry(r, u->at) || attempt == UPLOAD_ATTEMPTS)
            return false;
        upload_drop(r, u);
    }
}

/* ------------------------------------------------------------------- dump */

const struct chunk_family *chunks_in(struct router *r, const char *key)
{
    redisReply *const reply = router_call(r, key, true, "TYPE %s", key);
    const struct chunk_family *c = NULL;
    for (size_t i = 0; reply && reply->str && i < NCHUNK_FAMILIES; i++)
        if (strcmp(reply->str, chunk_families[i].type) == 0)
            c = &chunk_families[i];
    freeReplyObject(reply);
    return c;
}

/* The chunk behind an iterator, appended; *at is then the next. */
static bool chunk_fetch(struct router *r, const struct chunk_family *c,
                        const char *key, uint64_t *at, struct block *b)
{
    redisReply *const e = router_call(r, key, true, "%s %s %llu", c->scandump,
                                      key, (unsigned long long)*at);
    if (!e)
        return false;
    bool ok = e->type == REDIS_REPLY_ARRAY && e->elements == 2 &&
              e->element[0]->type == REDIS_REPLY_INTEGER &&
              e->element[0]->integer > 0 &&
              e->element[1]->type == REDIS_REPLY_STRING && e->element[1]->len;
    if (!ok)
        snprintf(r->why, sizeof r->why,
                 "%s: the server's %s ends too early (a cuckoo filter without "
                 "items has no dump), or returns something other than bytes",
                 key, c->scandump);
    else if (!(ok = block_put(b, e->element[1]->str, e->element[1]->len)))
        snprintf(r->why, sizeof r->why, "%s: out of memory", key);
    else
        *at = (uint64_t)e->element[0]->integer;
    freeReplyObject(e);
    return ok;
}

/* How long the file will be, by its header. */
static uint64_t chunks_total(const struct chunk_family *c,
                             const struct block *b)
{
    const unsigned char *const header = (const unsigned char *)b->at;
    uint64_t total = b->len;
    if (!c->start(header, b->len))
        return total;
    for (uint64_t i = 0, length; (length = c->bytes(header, i)); i++)
        total += length;
    return total;
}

/* A chain that grows meanwhile has filters that the header does not tell of:
 * what it tells of has all keys that were in it before. */
bly_foreign *chunks_fetch(struct router *r, const struct chunk_family *c,
                          const char *key, struct block *b)
{
    uint64_t at = 0;
    bly_foreign *f = NULL;
    if (!chunk_fetch(r, c, key, &at, b))
        return NULL;
    const uint64_t total = chunks_total(c, b);
    bool ok = true;
    progress_start(false);
    progress_unit("bytes");
    while (b->len < total && ok) {
        ok = chunk_fetch(r, c, key, &at, b);
        progress_at(b->len, b->len, total);
    }
    progress_clear();
    const bly_foreign_spec spec = { .format = c->format };
    if (ok && bly_foreign_open(&spec, b->at, b->len, &f))
        snprintf(r->why, sizeof r->why, "%s: %s", key, bly_error());
    return f;
}
