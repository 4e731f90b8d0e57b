/*
 * topk.c - TOPK.*: the heaviest items of a stream, by HeavyKeeper
 *
 * depth rows of width buckets hold a fingerprint and a count each; an item
 * that meets another's bucket takes one from its count with a chance that
 * falls as the count grows, and takes the bucket when that is empty. A heap of
 * k entries keeps the items with the largest counts.
 *
 * The dump is RedisBloom's. Chance is not left to the process: the state of
 * the generator belongs to the key, so that a primary and its replicas, and a
 * server before and after a restart, come to the same lists. It travels in 8
 * bytes of the dump that were a pointer in the peer and mean nothing there.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery/foreign.h>

#include "adapters/redis/module.h"

#define TOPK_ENCODING 0
#define TOPK_FINGERPRINT_SEED 1919
#define TOPK_MAX_INCREMENT 100000
#define TOPK_DECAYS 256 /* powers of the decay that are kept */

typedef struct topk_bucket {
    uint32_t fingerprint, count;
} topk_bucket;

typedef struct topk_entry {
    uint32_t fingerprint, count;
    size_t n;
    char *item; /* NULL: an empty place */
} topk_entry;

typedef struct topk {
    uint64_t k, width, depth;
    double decay;
    uint64_t state; /* of the generator */
    topk_bucket *buckets;
    topk_entry *heap; /* the least count first */
    double chances[TOPK_DECAYS];
} topk;

static server_type *topk_type;

/* ------------------------------------------------------------------- making */

static void topk_free(void *value)
{
    topk *t = value;
    if (!t)
        return;
    for (uint64_t i = 0; t->heap && i < t->k; i++)
        memory_free(t->heap[i].item);
    memory_free(t->heap);
    memory_free(t->buckets);
    memory_free(t);
}

static topk *topk_new(uint64_t k, uint64_t width, uint64_t depth, double decay)
{
    if (!k || !width || !depth || k > UINT32_MAX || width > UINT32_MAX ||
        depth > UINT32_MAX || !(decay > 0 && decay <= 1))
        return NULL;
    topk *t = memory_try(sizeof *t);
    if (!t)
        return NULL;
    t->k = k;
    t->width = width;
    t->depth = depth;
    t->decay = decay;
    /* 2^64 bucket bytes at most: refused by the limit of memory. */
    t->buckets = width > UINT64_MAX / depth / sizeof *t->buckets
                     ? NULL
                     : memory_try(width * depth * sizeof *t->buckets);
    t->heap = memory_try(k * sizeof *t->heap);
    if (!t->buckets || !t->heap) {
        topk_free(t);
        return NULL;
    }
    for (int i = 0; i < TOPK_DECAYS; i++)
        t->chances[i] = pow(decay, i);
    return t;
}

/* ------------------------------------------------------------------- adding */

/* A number in [0, 1) that depends on what the key has seen. */
static double topk_random(topk *t)
{
    uint64_t x = t->state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (double)((x ^ x >> 31) >> 11) * 0x1p-53;
}

static double decay_chance(const topk *t, uint32_t count)
{
    return count < TOPK_DECAYS ? t->chances[count] : pow(t->decay, count);
}

static void heap_down(topk *t, uint64_t i)
{
    for (;;) {
        uint64_t least = i;
        for (uint64_t child = 2 * i + 1; child <= 2 * i + 2; child++)
            if (child < t->k && t->heap[child].count < t->heap[least].count)
                least = child;
        if (least == i)
            return;
        const topk_entry other = t->heap[i];
        t->heap[i] = t->heap[least];
        t->heap[least] = other;
        i = least;
    }
}

static topk_entry *heap_find(const topk *t, bytes item, uint32_t fingerprint)
{
    for (uint64_t i = 0; i < t->k; i++) {
        topk_entry *e = &t->heap[i];
        if (e->item && e->fingerprint == fingerprint && e->n == item.n &&
            memcmp(e->item, item.at, item.n) == 0)
            return e;
    }
    return NULL;
}

/* Add n to the bucket of one row; what the item counts there. */
static uint32_t bucket_add(topk *t, topk_bucket *b, uint32_t fingerprint,
                           uint32_t n)
{
    if (b->count == 0) {
        *b = (topk_bucket){ fingerprint, n };
        return n;
    }
    if (b->fingerprint == fingerprint) {
        b->count = n > UINT32_MAX - b->count ? UINT32_MAX : b->count + n;
        return b->count;
    }
    for (; n; n--)
        if (topk_random(t) < decay_chance(t, b->count) && --b->count == 0) {
            *b = (topk_bucket){ fingerprint, n };
            return n;
        }
    return 0;
}

static uint32_t fingerprint_of(bytes item)
{
    return bly_murmur2(item.at, item.n, TOPK_FINGERPRINT_SEED);
}

static topk_bucket *topk_at(const topk *t, bytes item, uint64_t row)
{
    return &t->buckets[row * t->width +
                       bly_murmur2(item.at, item.n, (uint32_t)row) % t->width];
}

/* Add n times an item. What left the list is in *out (its item is the
 * caller's), or nothing. False without memory: then the list is unchanged. */
static bool topk_add(topk *t, bytes item, uint32_t n, topk_entry *out)
{
    const uint32_t fingerprint = fingerprint_of(item);
    uint32_t most = 0;
    *out = (topk_entry){ 0 };
    char *copy = memory_try(item.n + 1);
    if (!copy)
        return false;
    for (uint64_t row = 0; row < t->depth; row++) {
        const uint32_t own =
            bucket_add(t, topk_at(t, item, row), fingerprint, n);
        most = own > most ? own : most;
    }
    topk_entry *listed = heap_find(t, item, fingerprint);
    if (n && most >= t->heap[0].count && listed) {
        listed->count = most;
        heap_down(t, (uint64_t)(listed - t->heap));
    } else if (n && most && most >= t->heap[0].count) {
        *out = t->heap[0];
        memcpy(copy, item.at, item.n);
        t->heap[0] = (topk_entry){ fingerprint, most, item.n, copy };
        copy = NULL;
        heap_down(t, 0);
    }
    memory_free(copy);
    return true;
}

/* ----------------------------------------------------------------- commands */

static topk *topk_open(server_ctx *ctx, server_string *name, int mode,
                       server_key **key)
{
    void *value;
    const held what = key_open(ctx, name, mode, topk_type, key, &value);
    if (what == HELD_NONE)
        reply_error(ctx, "TopK: key does not exist");
    else if (what == HELD_OTHER)
        reply_error(ctx, WRONGTYPE);
    return value;
}

static bool is_size(const server_string *s, uint64_t *out)
{
    long long value;
    if (srv.StringToLongLong(s, &value) != SERVER_OK || value < 1 ||
        value > UINT32_MAX)
        return false;
    *out = (uint64_t)value;
    return true;
}

static int topk_reserve(server_ctx *ctx, server_string **argv, int argc)
{
    uint64_t k = 0, width = 8, depth = 7;
    double decay = 0.9;
    if (argc != 3 && argc != 6)
        return srv.WrongArity(ctx);
    server_key *key;
    void *value;
    const char *wrong = NULL;
    topk *t = NULL;
    if (key_open(ctx, argv[1], SERVER_WRITE, topk_type, &key, &value) !=
        HELD_NONE)
        wrong = "TopK: key already exists";
    else if (!is_size(argv[2], &k))
        wrong = "TopK: invalid k";
    else if (argc == 6 && !is_size(argv[3], &width))
        wrong = "TopK: invalid width";
    else if (argc == 6 && !is_size(argv[4], &depth))
        wrong = "TopK: invalid depth";
    else if (argc == 6 && (srv.StringToDouble(argv[5], &decay) != SERVER_OK ||
                           !(decay > 0 && decay <= 1)))
        wrong = "TopK: invalid decay value. must be '<= 1' & '> 0'";
    else if (!(t = topk_new(k, width, depth, decay)))
        wrong = "ERR Insufficient memory to create topk data structure";
    if (wrong) {
        reply_error(ctx, "%s", wrong);
    } else {
        srv.ModuleTypeSetValue(key, topk_type, t);
        srv.ReplicateVerbatim(ctx);
        key_changed(ctx, "topk.reserve", argv[1]);
        srv.ReplyWithSimpleString(ctx, "OK");
    }
    key_close(key);
    return SERVER_OK;
}

/* Add and reply with what was pushed out. */
static void add_and_reply(server_ctx *ctx, topk *t, bytes item, uint32_t n)
{
    topk_entry left;
    if (!topk_add(t, item, n, &left))
        reply_error(ctx, "ERR Insufficient memory");
    else if (left.item)
        srv.ReplyWithStringBuffer(ctx, left.item, left.n);
    else
        srv.ReplyWithNull(ctx);
    memory_free(left.item);
}

static int topk_add_command(server_ctx *ctx, server_string **argv, int argc)
{
    if (argc < 3)
        return srv.WrongArity(ctx);
    server_key *key;
    topk *t = topk_open(ctx, argv[1], SERVER_WRITE, &key);
    if (t) {
        srv.ReplyWithArray(ctx, argc - 2);
        for (int i = 2; i < argc; i++)
            add_and_reply(ctx, t, arg_bytes(argv[i]), 1);
        srv.ReplicateVerbatim(ctx);
        key_changed(ctx, "topk.add", argv[1]);
    }
    key_close(key);
    return SERVER_OK;
}

#define TOPK_BAD_INCREMENT                                     \
    "TopK: increment must be an integer greater or equal to 0" \
    "                            and smaller or equal to 100,000"

/* A bad increment is an error in its place. What stands behind it is not
 * added, as in the peer, and gets the same error, so that the array has the
 * length that was announced. */
static int topk_incrby(server_ctx *ctx, server_string **argv, int argc)
{
    if (argc < 4 || argc % 2)
        return srv.WrongArity(ctx);
    server_key *key;
    topk *t = topk_open(ctx, argv[1], SERVER_WRITE, &key);
    if (t) {
        bool bad = false;
        srv.ReplyWithArray(ctx, (argc - 2) / 2);
        for (int i = 2; i < argc; i += 2) {
            long long by;
            bad = bad || srv.StringToLongLong(argv[i + 1], &by) != SERVER_OK ||
                  by < 0 || by > TOPK_MAX_INCREMENT;
            if (bad)
                reply_error(ctx, TOPK_BAD_INCREMENT);
            else
                add_and_reply(ctx, t, arg_bytes(argv[i]), (uint32_t)by);
        }
        srv.ReplicateVerbatim(ctx);
        key_changed(ctx, "topk.incrby", argv[1]);
    }
    key_close(key);
    return SERVER_OK;
}

static int topk_query(server_ctx *ctx, server_string **argv, int argc)
{
    if (argc < 3)
        return srv.WrongArity(ctx);
    server_key *key;
    topk *t = topk_open(ctx, argv[1], SERVER_READ, &key);
    if (t) {
        srv.ReplyWithArray(ctx, argc - 2);
        for (int i = 2; i < argc; i++) {
            const bytes item = arg_bytes(argv[i]);
            reply_bool(ctx, heap_find(t, item, fingerprint_of(item)) != NULL);
        }
    }
    key_close(key);
    return SERVER_OK;
}

static int topk_count(server_ctx *ctx, server_string **argv, int argc)
{
    if (argc < 3)
        return srv.WrongArity(ctx);
    server_key *key;
    topk *t = topk_open(ctx, argv[1], SERVER_READ, &key);
    if (t) {
        srv.ReplyWithArray(ctx, argc - 2);
        for (int i = 2; i < argc; i++) {
            const bytes item = arg_bytes(argv[i]);
            const uint32_t fingerprint = fingerprint_of(item);
            uint32_t most = 0;
            for (uint64_t row = 0; row < t->depth; row++) {
                const topk_bucket *b = topk_at(t, item, row);
                if (b->fingerprint == fingerprint && b->count > most)
                    most = b->count;
            }
            srv.ReplyWithLongLong(ctx, most);
        }
    }
    key_close(key);
    return SERVER_OK;
}

/* The larger count first, equal ones by their bytes. */
static int heavier_first(const void *a, const void *b)
{
    const topk_entry *x = a, *y = b;
    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    const size_t n = x->n < y->n ? x->n : y->n;
    const int order = n ? memcmp(x->item, y->item, n) : 0;
    return order ? order : (x->n > y->n) - (x->n < y->n);
}

static int topk_list(server_ctx *ctx, server_string **argv, int argc)
{
    if (argc < 2 || argc > 3)
        return srv.WrongArity(ctx);
    server_key *key;
    topk *t = topk_open(ctx, argv[1], SERVER_READ, &key);
    topk_entry *sorted = NULL;
    if (t && argc == 3 && !arg_is(argv[2], "WITHCOUNT"))
        reply_error(ctx, "WITHCOUNT keyword expected");
    else if (t && !(sorted = memory_try(t->k * sizeof *sorted)))
        reply_error(ctx, "ERR Insufficient memory");
    if (sorted) {
        size_t n = 0;
        for (uint64_t i = 0; i < t->k; i++)
            if (t->heap[i].item)
                sorted[n++] = t->heap[i];
        qsort(sorted, n, sizeof *sorted, heavier_first);
        srv.ReplyWithArray(ctx, (long)n * (argc == 3 ? 2 : 1));
        for (size_t i = 0; i < n; i++) {
            srv.ReplyWithStringBuffer(ctx, sorted[i].item, sorted[i].n);
            if (argc == 3)
                srv.ReplyWithLongLong(ctx, sorted[i].count);
        }
    }
    memory_free(sorted);
    key_close(key);
    return SERVER_OK;
}

static int topk_info(server_ctx *ctx, server_string **argv, int argc)
{
    if (argc != 2)
        return srv.WrongArity(ctx);
    server_key *key;
    topk *t = topk_open(ctx, argv[1], SERVER_READ, &key);
    if (t) {
        reply_map(ctx, 4);
        srv.ReplyWithSimpleString(ctx, "k");
        srv.ReplyWithLongLong(ctx, (long long)t->k);
        srv.ReplyWithSimpleString(ctx, "width");
        srv.ReplyWithLongLong(ctx, (long long)t->width);
        srv.ReplyWithSimpleString(ctx, "depth");
        srv.ReplyWithLongLong(ctx, (long long)t->depth);
        srv.ReplyWithSimpleString(ctx, "decay");
        srv.ReplyWithDouble(ctx, t->decay);
    }
    key_close(key);
    return SERVER_OK;
}

/* --------------------------------------------------------------- the server */

/* An entry of the heap in a dump: u32 fingerprint, u32 length, 8 bytes that
 * were a pointer, u32 count, 4 of padding. */
#define ENTRY_BYTES 24

static void topk_save(server_io *io, void *value)
{
    const topk *t = value;
    const size_t nbuckets = (size_t)(t->width * t->depth);
    unsigned char *heap = srv.Alloc((size_t)t->k * ENTRY_BYTES);
    srv.SaveUnsigned(io, t->k);
    srv.SaveUnsigned(io, t->width);
    srv.SaveUnsigned(io, t->depth);
    srv.SaveDouble(io, t->decay);
    srv.SaveStringBuffer(io, (const char *)t->buckets,
                         nbuckets * sizeof *t->buckets);
    memset(heap, 0, (size_t)t->k * ENTRY_BYTES);
    put_le(heap + 8, t->state, 8);
    for (uint64_t i = 0; i < t->k; i++) {
        put_le(heap + i * ENTRY_BYTES, t->heap[i].fingerprint, 4);
        put_le(heap + i * ENTRY_BYTES + 4, t->heap[i].n, 4);
        put_le(heap + i * ENTRY_BYTES + 16, t->heap[i].count, 4);
    }
    srv.SaveStringBuffer(io, (const char *)heap, (size_t)t->k * ENTRY_BYTES);
    srv.Free(heap);
    for (uint64_t i = 0; i < t->k; i++)
        if (t->heap[i].item) /* there is a NUL behind every item */
            srv.SaveStringBuffer(io, t->heap[i].item, t->heap[i].n + 1);
        else
            srv.SaveStringBuffer(io, "", 1);
}

/* The k items; an entry that counts nothing is empty. */
static bool load_items(server_io *io, topk *t, const unsigned char *heap)
{
    for (uint64_t i = 0; i < t->k; i++) {
        topk_entry *e = &t->heap[i];
        size_t n = 0;
        char *item = srv.LoadStringBuffer(io, &n);
        if (srv.IsIOError(io) || !item || n < 1 || item[n - 1]) {
            memory_free(item);
            return false;
        }
        e->fingerprint = (uint32_t)get_le(heap + i * ENTRY_BYTES, 4);
        e->count = (uint32_t)get_le(heap + i * ENTRY_BYTES + 16, 4);
        if (e->count) {
            e->item = item;
            e->n = n - 1;
        } else {
            memory_free(item);
        }
    }
    return true;
}

static void *topk_load(server_io *io, int encoding)
{
    if (encoding > TOPK_ENCODING)
        return NULL;
    const uint64_t k = srv.LoadUnsigned(io);
    const uint64_t width = srv.LoadUnsigned(io);
    const uint64_t depth = srv.LoadUnsigned(io);
    const double decay = srv.LoadDouble(io);
    size_t nbuckets = 0, nheap = 0;
    char *buckets = NULL, *heap = NULL;
    topk *t = NULL;
    if (!srv.IsIOError(io))
        buckets = srv.LoadStringBuffer(io, &nbuckets);
    if (!srv.IsIOError(io) && buckets)
        heap = srv.LoadStringBuffer(io, &nheap);
    bool ok = !srv.IsIOError(io) && buckets && heap && k && width && depth &&
              width <= nbuckets / sizeof(topk_bucket) / depth &&
              width * depth * sizeof(topk_bucket) == nbuckets &&
              k <= nheap / ENTRY_BYTES && k * ENTRY_BYTES == nheap;
    if (ok)
        t = topk_new(k, width, depth, decay);
    ok = ok && t;
    if (ok) {
        memcpy(t->buckets, buckets, nbuckets);
        const unsigned char *entries = (const unsigned char *)heap;
        t->state = get_le(entries + 8, 8);
        ok = load_items(io, t, entries);
        for (uint64_t i = t->k / 2; ok && i-- > 0;)
            heap_down(t, i); /* whoever wrote it may have been mistaken */
    }
    memory_free(buckets);
    memory_free(heap);
    if (!ok)
        topk_free(t);
    return ok ? t : NULL;
}

static size_t topk_mem_usage(const void *value)
{
    const topk *t = value;
    size_t n = sizeof *t + (size_t)(t->width * t->depth) * sizeof *t->buckets +
               (size_t)t->k * sizeof *t->heap;
    for (uint64_t i = 0; i < t->k; i++)
        n += t->heap[i].item ? t->heap[i].n + 1 : 0;
    return n;
}

static void *topk_copy(server_string *from, server_string *to,
                       const void *value)
{
    (void)from;
    (void)to;
    const topk *t = value;
    topk *copy = topk_new(t->k, t->width, t->depth, t->decay);
    if (!copy)
        return NULL;
    copy->state = t->state;
    memcpy(copy->buckets, t->buckets,
           (size_t)(t->width * t->depth) * sizeof *t->buckets);
    for (uint64_t i = 0; i < t->k; i++) {
        copy->heap[i] = t->heap[i];
        copy->heap[i].item = NULL;
        if (!t->heap[i].item)
            continue;
        copy->heap[i].item = memory_try(t->heap[i].n + 1);
        if (!copy->heap[i].item) {
            topk_free(copy);
            return NULL;
        }
        memcpy(copy->heap[i].item, t->heap[i].item, t->heap[i].n);
    }
    return copy;
}

static void topk_digest(server_digest *md, void *value)
{
    const topk *t = value;
    srv.DigestAddLongLong(md, (long long)t->k);
    srv.DigestAddLongLong(md, (long long)t->width);
    srv.DigestAddLongLong(md, (long long)t->depth);
    srv.DigestAddLongLong(md, (long long)t->state);
    srv.DigestAddStringBuffer(md, (const char *)t->buckets,
                              (size_t)(t->width * t->depth) *
                                  sizeof *t->buckets);
    srv.DigestEndSequence(md);
    for (uint64_t i = 0; i < t->k; i++) {
        srv.DigestAddStringBuffer(md, t->heap[i].item ? t->heap[i].item : "",
                                  t->heap[i].n);
        srv.DigestAddLongLong(md, t->heap[i].count);
    }
    srv.DigestEndSequence(md);
}

static int topk_defrag(server_defrag *ctx, server_string *key, void **value)
{
    (void)key;
    memory_moved(ctx, value);
    topk *t = *value;
    memory_moved(ctx, &t->buckets);
    memory_moved(ctx, &t->heap);
    for (uint64_t i = 0; i < t->k; i++)
        memory_moved(ctx, &t->heap[i].item);
    return 0;
}

static void topk_rewrite(server_io *io, server_string *key, void *value)
{
    (void)value;
    rewrite_as_restore(io, key);
}

static int topk_start(server_ctx *ctx)
{
    server_methods methods = {
        .version = 4,
        .rdb_load = topk_load,
        .rdb_save = topk_save,
        .aof_rewrite = topk_rewrite,
        .mem_usage = topk_mem_usage,
        .free = topk_free,
        .digest = topk_digest,
        .copy = topk_copy,
        .defrag = topk_defrag,
    };
    topk_type = srv.CreateDataType(ctx, "TopK-TYPE", TOPK_ENCODING, &methods);
    return topk_type ? SERVER_OK : SERVER_ERR;
}

static const command_row topk_commands[] = {
    { "topk.reserve", "write deny-oom", "write fast", "2.0.0",
      "Makes an empty list", "O(width * depth)",
      "key topk:integer [width:integer depth:integer decay:double]",
      topk_reserve, 0 },
    { "topk.add", "write deny-oom", "write", "2.0.0", "Adds items",
      "O(n * depth + k)", "key item...", topk_add_command, 0 },
    { "topk.incrby", "write deny-oom", "write", "2.0.0",
      "Adds items several times", "O(n * depth * increment + k)",
      "key (item increment:integer)...", topk_incrby, 0 },
    { "topk.query", "readonly", "read", "2.0.0",
      "Whether items are on the list", "O(n * k)", "key item...", topk_query,
      0 },
    { "topk.count", "readonly", "read", "2.0.0", "Estimated counts of items",
      "O(n * depth)", "key item...", topk_count, 0 },
    { "topk.list", "readonly", "read", "2.0.0", "The list, heaviest first",
      "O(k * log(k))", "key [WITHCOUNT]", topk_list, 0 },
    { "topk.info", "readonly", "read fast", "2.0.0", "What a list is made for",
      "O(1)", "key", topk_info, 0 },
    { 0 },
};

const family family_topk = {
    .category = "topk",
    .commands = topk_commands,
    .start = topk_start,
};
