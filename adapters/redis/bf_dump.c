/*
 * bf_dump.c - Bloom filters leave and come: RDB, AOF, SCANDUMP, BF.LOAD
 *
 * Two types: MBbloom-- is RedisBloom's, versions 0 to 4, and bloomfltr is
 * valkey-bloom's. Whatever bytes come, a filter that is taken is safe to use,
 * and no memory is asked for beyond what the bytes themselves are, or what
 * the system has.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/redis/bf.h"

#define REDIS_ENCODING 4
#define VALKEY_ENCODING 1
#define MAX_CHUNK ((size_t)16 << 20)

static server_type *redis_type, *valkey_type;

server_type *bf_type_of(const bf_filter *f)
{
    return f->scheme == BF_REDIS ? redis_type : valkey_type;
}

held bf_open(server_ctx *ctx, server_string *name, int mode, server_key **key,
             bf_filter **f)
{
    void *value;
    held what = key_open(ctx, name, mode, redis_type, key, &value);
    if (what == HELD_OTHER && srv.KeyType(*key) == SERVER_KEY_MODULE &&
        srv.ModuleTypeGetType(*key) == valkey_type) {
        value = srv.ModuleTypeGetValue(*key);
        what = HELD_OURS;
    }
    *f = value;
    return what;
}

/* ------------------------------------------------------------------ numbers */

bf_totals bf_total;

bf_numbers bf_numbers_of(const bf_filter *f)
{
    return (bf_numbers){ .filters = f->nlinks,
                         .items = f->items,
                         .capacity = bf_capacity(f),
                         .bytes = bf_shown_size(f) };
}

void bf_account(const bf_numbers *before, const bf_numbers *after)
{
    const bf_numbers none = { 0 };
    bf_total.objects += (uint64_t)(before == NULL) - (after == NULL);
    before = before ? before : &none;
    after = after ? after : &none;
    bf_total.filters += after->filters - before->filters;
    bf_total.items += after->items - before->items;
    bf_total.capacity += after->capacity - before->capacity;
    bf_total.bytes += after->bytes - before->bytes;
}

uint64_t bf_shown_size(const bf_filter *f)
{
    return 32 + 64 * f->nlinks + bf_bytes(f);
}

/* A filter that has come from outside is one of ours now. */
static void *welcome(bf_filter *f)
{
    if (f) {
        const bf_numbers now = bf_numbers_of(f);
        bf_account(NULL, &now);
    }
    return f;
}

static void bf_release(void *value)
{
    if (value) {
        const bf_numbers was = bf_numbers_of(value);
        bf_account(&was, NULL);
    }
    bf_free(value);
}

static double get_double(const unsigned char *at)
{
    const uint64_t bits = get_le(at, 8);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void put_double(unsigned char *at, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_le(at, bits, 8);
}

/* ------------------------------------------------------------- RDB, RedisBloom
 */

static void redis_save(server_io *io, void *value)
{
    const bf_filter *f = value;
    srv.SaveUnsigned(io, f->items);
    srv.SaveUnsigned(io, f->nlinks);
    srv.SaveUnsigned(io, f->options);
    srv.SaveUnsigned(io, f->expansion);
    for (uint64_t i = 0; i < f->nlinks; i++) {
        const bf_link *l = &f->links[i];
        srv.SaveUnsigned(io, l->capacity);
        srv.SaveDouble(io, l->error);
        srv.SaveUnsigned(io, l->hashes);
        srv.SaveDouble(io, l->bits_per_entry);
        srv.SaveUnsigned(io, l->bits);
        srv.SaveUnsigned(io, l->n2);
        srv.SaveStringBuffer(io, (const char *)l->data, (size_t)l->nbytes);
        srv.SaveUnsigned(io, l->items);
    }
}

static bool redis_load_link(server_io *io, int encoding, const bf_filter *f,
                            bf_link *l)
{
    size_t n = 0;
    l->capacity = srv.LoadUnsigned(io);
    l->error = srv.LoadDouble(io);
    const uint64_t hashes = srv.LoadUnsigned(io);
    l->bits_per_entry = srv.LoadDouble(io);
    uint64_t n2 = 0;
    if (srv.IsIOError(io))
        return false;
    if (encoding >= 1) {
        l->bits = srv.LoadUnsigned(io);
        n2 = srv.LoadUnsigned(io);
    } else {
        const double bits = (double)l->capacity * l->bits_per_entry;
        l->bits = bits >= 1 && bits < 0x1p45 ? (uint64_t)bits : 0;
    }
    if (srv.IsIOError(io) || n2 > 63 || hashes > 10000)
        return false;
    l->hashes = (uint32_t)hashes;
    l->n2 = (uint8_t)n2;
    l->data = (unsigned char *)srv.LoadStringBuffer(io, &n);
    if (srv.IsIOError(io) || !l->data)
        return false;
    l->nbytes = n;
    l->items = srv.LoadUnsigned(io);
    return !srv.IsIOError(io) && bf_link_is_sane(f, l);
}

static void *redis_load(server_io *io, int encoding)
{
    if (encoding > REDIS_ENCODING)
        return NULL;
    const uint64_t items = srv.LoadUnsigned(io);
    const uint64_t nlinks = srv.LoadUnsigned(io);
    const uint64_t options = encoding >= 2 ? srv.LoadUnsigned(io) : 0;
    uint64_t expansion = encoding >= 4 ? srv.LoadUnsigned(io) : 2;
    if (srv.IsIOError(io) || options > BF_KNOWN_OPTIONS ||
        expansion > UINT32_MAX)
        return NULL;
    bf_filter *f = bf_blank(BF_REDIS, nlinks);
    if (!f)
        return NULL;
    f->items = items;
    f->options = (uint32_t)options;
    f->expansion = options & BF_NONSCALING ? 0 : (uint32_t)expansion;
    bool ok = true;
    for (uint64_t i = 0; i < nlinks && ok; i++)
        ok = redis_load_link(io, encoding, f, &f->links[i]);
    if (!ok) {
        bf_free(f);
        return NULL;
    }
    f->rate = f->links[0].error * (f->expansion ? 2 : 1);
    return welcome(f);
}

/* ----------------------------------------------------------- RDB, valkey-bloom
 */

#define BLOB_HEADER 45 /* u8 1, u64 bytes, u32 hashes, 32 of seed */

static void blob_header(const bf_filter *f, const bf_link *l, unsigned char *to)
{
    to[0] = 1;
    put_le(to + 1, l->nbytes, 8);
    put_le(to + 9, l->hashes, 4);
    memcpy(to + 13, f->seed, 32);
}

/* A link from its blob, of which it keeps a copy of the bits. The seed must
 * be that of the first. */
static bool blob_read(bf_filter *f, bf_link *l, const char *blob, size_t n)
{
    const unsigned char *at = (const unsigned char *)blob;
    if (n <= BLOB_HEADER || at[0] != 1 || get_le(at + 1, 8) != n - BLOB_HEADER)
        return false;
    if (l == f->links)
        memcpy(f->seed, at + 13, 32);
    else if (memcmp(f->seed, at + 13, 32) != 0)
        return false;
    l->nbytes = n - BLOB_HEADER;
    l->bits = 8 * l->nbytes;
    l->hashes = (uint32_t)get_le(at + 9, 4);
    if (l->hashes > 10000 || !bf_link_is_sane(f, l))
        return false;
    l->data = memory_try(l->nbytes);
    if (l->data)
        memcpy(l->data, at + BLOB_HEADER, (size_t)l->nbytes);
    return l->data != NULL;
}

/* The rate of link i: the asked one, tightened i times. */
static double valkey_rate(const bf_filter *f, uint64_t i)
{
    return f->rate * pow(f->tightening, (double)i);
}

static bool valkey_is_sane(const bf_filter *f)
{
    return f->rate > 0 && f->rate < 1 && f->tightening > 0 && f->tightening < 1;
}

static void valkey_save(server_io *io, void *value)
{
    const bf_filter *f = value;
    srv.SaveUnsigned(io, f->nlinks);
    srv.SaveUnsigned(io, f->expansion);
    srv.SaveDouble(io, f->rate);
    srv.SaveDouble(io, f->tightening);
    srv.SaveUnsigned(io, f->random_seed);
    for (uint64_t i = 0; i < f->nlinks; i++) {
        const bf_link *l = &f->links[i];
        char *blob = srv.Alloc(BLOB_HEADER + (size_t)l->nbytes);
        blob_header(f, l, (unsigned char *)blob);
        memcpy(blob + BLOB_HEADER, l->data, (size_t)l->nbytes);
        srv.SaveStringBuffer(io, blob, BLOB_HEADER + (size_t)l->nbytes);
        srv.Free(blob);
        srv.SaveUnsigned(io, l->capacity);
        if (i + 1 == f->nlinks)
            srv.SaveUnsigned(io, l->items);
    }
}

static bool valkey_load_link(server_io *io, bf_filter *f, uint64_t i)
{
    bf_link *l = &f->links[i];
    size_t n = 0;
    char *blob = srv.LoadStringBuffer(io, &n);
    bool ok = !srv.IsIOError(io) && blob;
    if (ok) {
        l->capacity = srv.LoadUnsigned(io);
        l->items = l->capacity;
        if (i + 1 == f->nlinks && !srv.IsIOError(io))
            l->items = srv.LoadUnsigned(io);
        l->error = valkey_rate(f, i);
        ok = !srv.IsIOError(io) && l->items <= l->capacity &&
             blob_read(f, l, blob, n);
    }
    memory_free(blob);
    f->items += l->items;
    return ok;
}

static void *valkey_load(server_io *io, int encoding)
{
    if (encoding > VALKEY_ENCODING)
        return NULL;
    const uint64_t nlinks = srv.LoadUnsigned(io);
    const uint64_t expansion = srv.LoadUnsigned(io);
    const double rate = srv.LoadDouble(io);
    const double tightening = srv.LoadDouble(io);
    const uint64_t random_seed = srv.LoadUnsigned(io);
    if (srv.IsIOError(io) || expansion > UINT32_MAX)
        return NULL;
    bf_filter *f = bf_blank(BF_VALKEY, nlinks);
    if (!f)
        return NULL;
    f->expansion = (uint32_t)expansion;
    f->rate = rate;
    f->tightening = tightening;
    f->random_seed = random_seed != 0;
    bool ok = valkey_is_sane(f);
    for (uint64_t i = 0; i < nlinks && ok; i++)
        ok = valkey_load_link(io, f, i);
    if (!ok) {
        bf_free(f);
        return NULL;
    }
    return welcome(f);
}

/* -------------------------------------------------------------------- headers
 */

#define HEADER 20
#define HEADER_LINK 53

static size_t header_bytes(const bf_filter *f)
{
    return HEADER + HEADER_LINK * (size_t)f->nlinks;
}

static void header_write(const bf_filter *f, unsigned char *to)
{
    put_le(to, f->items, 8);
    put_le(to + 8, f->nlinks, 4);
    put_le(to + 12, f->options, 4);
    put_le(to + 16, f->expansion ? f->expansion : 2, 4); /* as it does */
    for (uint64_t i = 0; i < f->nlinks; i++) {
        const bf_link *l = &f->links[i];
        unsigned char *at = to + HEADER + HEADER_LINK * i;
        put_le(at, l->nbytes, 8);
        put_le(at + 8, l->bits, 8);
        put_le(at + 16, l->items, 8);
        put_double(at + 24, l->error);
        put_double(at + 32, l->bits_per_entry);
        put_le(at + 40, l->hashes, 4);
        put_le(at + 44, l->capacity, 8);
        put_le(at + 52, l->n2, 1);
    }
}

static bool header_link(const bf_filter *f, const unsigned char *at, bf_link *l)
{
    *l = (bf_link){ .nbytes = get_le(at, 8),
                    .bits = get_le(at + 8, 8),
                    .items = get_le(at + 16, 8),
                    .error = get_double(at + 24),
                    .bits_per_entry = get_double(at + 32),
                    .hashes = (uint32_t)get_le(at + 40, 4),
                    .capacity = get_le(at + 44, 8),
                    .n2 = at[52] };
    if (l->nbytes > UINT64_MAX / 8 || l->bits != 8 * l->nbytes ||
        !bf_link_is_sane(f, l))
        return false;
    l->data = memory_try(l->nbytes);
    return l->data != NULL;
}

/* The filter that a header tells of, with empty bits; NULL if it is bad. */
static bf_filter *header_read(bytes data)
{
    const unsigned char *at = (const unsigned char *)data.at;
    if (data.n < HEADER + HEADER_LINK)
        return NULL;
    const uint64_t nlinks = get_le(at + 8, 4), options = get_le(at + 12, 4);
    if (data.n != HEADER + HEADER_LINK * nlinks || options > BF_KNOWN_OPTIONS)
        return NULL;
    bf_filter *f = bf_blank(BF_REDIS, nlinks);
    if (!f)
        return NULL;
    f->items = get_le(at, 8);
    f->options = (uint32_t)options;
    f->expansion = options & BF_NONSCALING ? 0 : (uint32_t)get_le(at + 16, 4);
    uint64_t sum = 0;
    bool ok = true;
    for (uint64_t i = 0; i < nlinks && ok; i++) {
        ok = header_link(f, at + HEADER + HEADER_LINK * i, &f->links[i]);
        sum += f->links[i].items;
    }
    if (!ok || sum != f->items) {
        bf_free(f);
        return NULL;
    }
    f->rate = f->links[0].error * (f->expansion ? 2 : 1);
    return f;
}

/* ------------------------------------------------------------------- commands
 */

int bf_scandump(server_ctx *ctx, server_string **argv, int argc)
{
    long long at;
    if (argc != 3)
        return srv.WrongArity(ctx);
    if (srv.StringToLongLong(argv[2], &at) != SERVER_OK)
        return reply_error(ctx, "Second argument must be numeric");
    server_key *key;
    bf_filter *f;
    const held what = bf_open(ctx, argv[1], SERVER_READ, &key, &f);
    unsigned char *header = NULL;
    if (what == HELD_NONE) {
        reply_error(ctx, "ERR not found");
    } else if (what == HELD_OTHER) {
        reply_error(ctx, WRONGTYPE);
    } else if (f->scheme != BF_REDIS) {
        reply_error(ctx, "ERR not supported for a filter of valkey-bloom: "
                         "use DUMP");
    } else if (at == 0 && !(header = memory_try(header_bytes(f)))) {
        reply_error(ctx, "ERR Insufficient memory");
    } else {
        unsigned char *chunk = header;
        size_t n = 0;
        if (at == 0) {
            header_write(f, header);
            n = header_bytes(f);
        } else if (at > 0) {
            n = bf_chunk(f, (uint64_t)at - 1, MAX_CHUNK, &chunk);
        }
        srv.ReplyWithArray(ctx, 2);
        srv.ReplyWithLongLong(ctx, !n ? 0 : at == 0 ? 1 : at + (long long)n);
        srv.ReplyWithStringBuffer(ctx, n ? (const char *)chunk : "", n);
    }
    memory_free(header);
    key_close(key);
    return SERVER_OK;
}

/* Put a chunk where it belongs; NULL, or what is wrong. */
static const char *take_chunk(bf_filter *f, long long at, bytes data)
{
    unsigned char *to;
    if (at < 1 || (uint64_t)at - 1 < data.n || !data.n)
        return "ERR invalid offset - no link found";
    const uint64_t from = (uint64_t)at - 1 - data.n;
    const size_t n = bf_chunk(f, from, data.n, &to);
    if (!n)
        return "ERR invalid offset - no link found";
    if (n != data.n)
        return "ERR invalid chunk - Too big for current filter";
    memcpy(to, data.at, n);
    return NULL;
}

int bf_loadchunk(server_ctx *ctx, server_string **argv, int argc)
{
    long long at;
    if (argc != 4)
        return srv.WrongArity(ctx);
    if (srv.StringToLongLong(argv[2], &at) != SERVER_OK)
        return reply_error(ctx, "ERR Second argument must be numeric");
    const bytes data = arg_bytes(argv[3]);
    server_key *key;
    bf_filter *f;
    const held what = bf_open(ctx, argv[1], SERVER_WRITE, &key, &f);
    const char *wrong = NULL;
    if (what == HELD_OTHER || (f && f->scheme != BF_REDIS)) {
        wrong = WRONGTYPE;
    } else if (f) {
        wrong = take_chunk(f, at, data);
    } else if (at != 1) {
        wrong = "ERR not found";
    } else if ((f = header_read(data))) {
        srv.ModuleTypeSetValue(key, redis_type, welcome(f));
    } else {
        wrong = "ERR received bad data";
    }
    if (wrong) {
        reply_error(ctx, "%s", wrong);
    } else {
        srv.ReplicateVerbatim(ctx);
        key_changed(ctx, "bloom.loadchunk", argv[1]);
        srv.ReplyWithSimpleString(ctx, "OK");
    }
    key_close(key);
    return SERVER_OK;
}

/* ------------------------------------------------------- BF.LOAD: valkey-bloom
 */

#define LOAD_HEADER 30 /* u8, u32, f64, f64, u8, u64 */

static bf_filter *valkey_read(bytes data)
{
    const unsigned char *at = (const unsigned char *)data.at;
    size_t left = data.n;
    if (left < LOAD_HEADER)
        return NULL;
    bf_filter *f = bf_blank(BF_VALKEY, get_le(at + 22, 8));
    if (!f)
        return NULL;
    f->expansion = (uint32_t)get_le(at + 1, 4);
    f->rate = get_double(at + 5);
    f->tightening = get_double(at + 13);
    f->random_seed = at[21] != 0;
    bool ok = valkey_is_sane(f);
    at += LOAD_HEADER;
    left -= LOAD_HEADER;
    for (uint64_t i = 0; i < f->nlinks && ok; i++) {
        bf_link *l = &f->links[i];
        const uint64_t n = left >= 8 ? get_le(at, 8) : 0;
        ok = left >= 24 && n <= left - 24;
        if (!ok)
            break;
        l->items = get_le(at + 8 + n, 8);
        l->capacity = get_le(at + 16 + n, 8);
        l->error = valkey_rate(f, i);
        ok = l->capacity <= INT64_MAX && l->items <= l->capacity &&
             blob_read(f, l, (const char *)at + 8, (size_t)n);
        f->items += l->items;
        at += 24 + n;
        left -= 24 + (size_t)n;
    }
    if (!ok || left) {
        bf_free(f);
        return NULL;
    }
    return f;
}

/* The same the other way; the caller frees it. NULL without memory. */
static unsigned char *valkey_write(const bf_filter *f, size_t *n)
{
    *n = LOAD_HEADER + (size_t)(bf_bytes(f) + f->nlinks * (24 + BLOB_HEADER));
    unsigned char *out = memory_try(*n), *at = out;
    if (!out)
        return NULL;
    at[0] = 1;
    put_le(at + 1, f->expansion, 4);
    put_double(at + 5, f->rate);
    put_double(at + 13, f->tightening);
    at[21] = f->random_seed;
    put_le(at + 22, f->nlinks, 8);
    at += LOAD_HEADER;
    for (uint64_t i = 0; i < f->nlinks; i++) {
        const bf_link *l = &f->links[i];
        put_le(at, BLOB_HEADER + l->nbytes, 8);
        blob_header(f, l, at + 8);
        memcpy(at + 8 + BLOB_HEADER, l->data, (size_t)l->nbytes);
        at += 8 + BLOB_HEADER + l->nbytes;
        put_le(at, l->items, 8);
        put_le(at + 8, l->capacity, 8);
        at += 16;
    }
    return out;
}

int bf_load_command(server_ctx *ctx, server_string **argv, int argc)
{
    if (argc != 3)
        return srv.WrongArity(ctx);
    server_key *key;
    bf_filter *f;
    const held what = bf_open(ctx, argv[1], SERVER_WRITE, &key, &f);
    const bytes data = arg_bytes(argv[2]);
    if (what != HELD_NONE) {
        reply_error(ctx, "BUSYKEY Target key name already exists.");
    } else if (data.n && data.at[0] != 1) {
        reply_error(ctx,
                    "ERR bloom object decoding failed. Unsupported version");
    } else if (!(f = valkey_read(data))) {
        reply_error(ctx, "ERR bloom object decoding failed");
    } else {
        srv.ModuleTypeSetValue(key, valkey_type, welcome(f));
        srv.ReplicateVerbatim(ctx);
        key_changed(ctx, "bloom.load", argv[1]);
        srv.ReplyWithSimpleString(ctx, "OK");
    }
    key_close(key);
    return SERVER_OK;
}

/* ----------------------------------------------------------------- the server
 */

static void redis_rewrite(server_io *io, server_string *key, void *value)
{
    const bf_filter *f = value;
    const size_t n = header_bytes(f);
    unsigned char *header = srv.Alloc(n), *chunk;
    header_write(f, header);
    srv.EmitAOF(io, "BF.LOADCHUNK", "slb", key, 1LL, header, n);
    srv.Free(header);
    uint64_t at = 0;
    for (size_t m; (m = bf_chunk(f, at, MAX_CHUNK, &chunk)); at += m)
        srv.EmitAOF(io, "BF.LOADCHUNK", "slb", key, (long long)(at + m + 1),
                    chunk, m);
}

static void valkey_rewrite(server_io *io, server_string *key, void *value)
{
    size_t n;
    unsigned char *dump = valkey_write(value, &n);
    if (dump)
        srv.EmitAOF(io, "BF.LOAD", "sb", key, dump, n);
    memory_free(dump);
}

static size_t bf_mem_usage(const void *value)
{
    return (size_t)bf_shown_size(value);
}

static size_t bf_free_effort(server_string *key, const void *value)
{
    (void)key;
    return (size_t)((const bf_filter *)value)->nlinks;
}

static void *bf_copy(server_string *from, server_string *to, const void *value)
{
    (void)from;
    (void)to;
    const bf_filter *f = value;
    bf_filter *copy = bf_blank(f->scheme, f->nlinks);
    if (!copy)
        return NULL;
    bf_link *links = copy->links;
    *copy = *f;
    copy->links = links;
    bool ok = true;
    for (uint64_t i = 0; i < f->nlinks && ok; i++) {
        links[i] = f->links[i];
        links[i].data = memory_try(links[i].nbytes);
        ok = links[i].data != NULL;
        if (ok)
            memcpy(links[i].data, f->links[i].data, (size_t)links[i].nbytes);
    }
    if (!ok) {
        bf_free(copy);
        return NULL;
    }
    return welcome(copy);
}

static void bf_digest(server_digest *md, void *value)
{
    const bf_filter *f = value;
    srv.DigestAddLongLong(md, f->scheme);
    srv.DigestAddLongLong(md, (long long)f->expansion);
    srv.DigestAddStringBuffer(md, (const char *)f->seed, sizeof f->seed);
    for (uint64_t i = 0; i < f->nlinks; i++) {
        const bf_link *l = &f->links[i];
        srv.DigestAddLongLong(md, (long long)l->capacity);
        srv.DigestAddLongLong(md, (long long)l->items);
        srv.DigestAddStringBuffer(md, (const char *)l->data, (size_t)l->nbytes);
    }
    srv.DigestEndSequence(md);
}

/* One sub-filter a call, so that a long chain can stop in the middle. */
static int bf_defrag(server_defrag *ctx, server_string *key, void **value)
{
    (void)key;
    unsigned long at = 0;
    if (!srv.DefragCursorGet || srv.DefragCursorGet(ctx, &at) != SERVER_OK)
        at = 0;
    if (at == 0) {
        memory_moved(ctx, value);
        memory_moved(ctx, &((bf_filter *)*value)->links);
    }
    bf_filter *f = *value;
    for (; at < f->nlinks; at++) {
        unsigned char *before = f->links[at].data;
        memory_moved(ctx, &f->links[at].data);
        if (before != f->links[at].data)
            bf_total.defrag_hits++;
        else
            bf_total.defrag_misses++;
        if (at + 1 < f->nlinks && srv.DefragShouldStop && srv.DefragCursorSet &&
            srv.DefragShouldStop(ctx)) {
            srv.DefragCursorSet(ctx, at + 1);
            return 1;
        }
    }
    return 0;
}

int bf_types_start(server_ctx *ctx)
{
    server_methods methods = {
        .version = 4,
        .rdb_load = redis_load,
        .rdb_save = redis_save,
        .aof_rewrite = redis_rewrite,
        .mem_usage = bf_mem_usage,
        .free = bf_release,
        .digest = bf_digest,
        .free_effort = bf_free_effort,
        .copy = bf_copy,
        .defrag = bf_defrag,
    };
    redis_type = srv.CreateDataType(ctx, "MBbloom--", REDIS_ENCODING, &methods);
    methods.rdb_load = valkey_load;
    methods.rdb_save = valkey_save;
    methods.aof_rewrite = valkey_rewrite;
    valkey_type =
        srv.CreateDataType(ctx, "bloomfltr", VALKEY_ENCODING, &methods);
    return redis_type && valkey_type ? SERVER_OK : SERVER_ERR;
}
