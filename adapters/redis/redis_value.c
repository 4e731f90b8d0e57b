/*
 * redis_value.c - see value.h
 */
#include "adapters/redis/redis_value.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"

/* ------------------------------------------------------------------ records */

static void put_uint(void *io, uint64_t x)
{
    srv.SaveUnsigned(io, x);
}

static void put_real(void *io, double x)
{
    srv.SaveDouble(io, x);
}

static void put_bytes(void *io, const void *at, size_t n)
{
    srv.SaveStringBuffer(io, at, n);
}

/* A dump that is read for a family. */
typedef struct loading {
    server_io *io;
    tally *count; /* NULL: it keeps none */
} loading;

static uint64_t get_uint(void *ctx)
{
    const loading *l = ctx;
    return srv.LoadUnsigned(l->io);
}

static double get_real(void *ctx)
{
    const loading *l = ctx;
    return srv.LoadDouble(l->io);
}

/* The library keeps these bytes, or releases them. */
static void *get_bytes(void *ctx, size_t *n)
{
    const loading *l = ctx;
    void *at = srv.LoadStringBuffer(l->io, n);
    if (at && l->count)
        l->count->bytes += *n;
    return at;
}

static bool has_failed(void *ctx)
{
    const loading *l = ctx;
    return srv.IsIOError(l->io);
}

/* Where a dump cannot fail: a server without memory ends. */
static void *sure_alloc(void *ctx, size_t n)
{
    (void)ctx;
    return srv.Alloc(n);
}

static void sure_release(void *ctx, void *at, size_t n)
{
    (void)ctx, (void)n;
    srv.Free(at);
}

static const bly_mem sure_memory = { .alloc = sure_alloc,
                                     .release = sure_release };

static tally *tally_of(const bly_foreign *f)
{
    return bly_foreign_memory(f)->ctx;
}

/* One more key, unless f is NULL. */
static bly_foreign *value_counted(bly_foreign *f)
{
    if (f && tally_of(f))
        tally_of(f)->keys++;
    return f;
}

void value_keep(server_key *key, server_type *type, bly_foreign *f)
{
    srv.ModuleTypeSetValue(key, type, value_counted(f));
}

void *value_load(server_io *io, int version, const bly_foreign_spec *spec)
{
    loading l = { io, spec->mem->ctx };
    const bly_foreign_record from = { .get_uint = get_uint,
                                      .get_real = get_real,
                                      .get_bytes = get_bytes,
                                      .failed = has_failed,
                                      .ctx = &l };
    bly_foreign *f;
    return bly_foreign_restore(spec, (unsigned)version, &from, &f)
               ? NULL
               : value_counted(f);
}

static void value_save(server_io *io, void *value)
{
    const bly_foreign_record to = { .put_uint = put_uint,
                                    .put_real = put_real,
                                    .put_bytes = put_bytes,
                                    .mem = &sure_memory,
                                    .ctx = io };
    bly_foreign_store(value, &to);
}

static void digest_uint(void *md, uint64_t x)
{
    srv.DigestAddLongLong(md, (long long)x);
}

static void digest_bytes(void *md, const void *at, size_t n)
{
    srv.DigestAddStringBuffer(md, at, n);
}

static void digest_real(void *md, double x)
{
    digest_bytes(md, &x, sizeof x);
}

static void value_digest(server_digest *md, void *value)
{
    const bly_foreign_record to = { .put_uint = digest_uint,
                                    .put_real = digest_real,
                                    .put_bytes = digest_bytes,
                                    .mem = &sure_memory,
                                    .ctx = md };
    bly_foreign_store(value, &to);
    srv.DigestEndSequence(md);
}

/* --------------------------------------------------------------------- life */

void value_word(value_words *w, const char *name, const char *format, ...)
{
    char *text = w->text[w->spec.noptions];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof w->text[0], format, args);
    va_end(args);
    w->options[w->spec.noptions++] = (bly_option){ name, text };
    w->spec.options = w->options;
}

void *value_copy(server_string *from, server_string *to, const void *value)
{
    (void)from, (void)to;
    bly_foreign *copy;
    return bly_foreign_copy(value, &copy) ? NULL : value_counted(copy);
}

void value_free(void *value)
{
    if (value && tally_of(value))
        tally_of(value)->keys--;
    bly_foreign_free(value);
}

static size_t value_free_effort(server_string *key, const void *value)
{
    (void)key;
    return bly_foreign_nparts(value) +
           (size_t)(value_sizes(value).nbytes / FREE_STEP);
}

size_t value_mem_usage(const void *value, size_t asked)
{
    bly_foreign *f = (bly_foreign *)(uintptr_t)value;
    size_t sum = 0;
    if (!memory_is_weighed(asked))
        return asked;
    for (size_t i = 0; i < bly_foreign_nparts(f); i++)
        bly_foreign_move(&f, i, memory_weigh, &sum);
    return sum;
}

_Atomic uint64_t value_defrag_hits, value_defrag_misses;

typedef struct moving {
    server_defrag *ctx;
    bool moved; /* the last one, which is the array */
} moving;

static void *move_one(void *ctx, void *at)
{
    moving *m = ctx;
    void *fresh = srv.DefragAlloc(m->ctx, at);
    m->moved = fresh != NULL;
    return fresh;
}

/* One part a call, so that a long chain can stop in the middle. */
static int value_defrag(server_defrag *ctx, server_string *key, void **value)
{
    (void)key;
    unsigned long at = 0;
    if (!srv.DefragCursorGet || srv.DefragCursorGet(ctx, &at) != SERVER_OK)
        at = 0;
    bly_foreign *f = *value;
    for (; at < bly_foreign_nparts(f); at++) {
        moving m = { .ctx = ctx };
        bly_foreign_move(&f, at, move_one, &m);
        *value = f;
        value_defrag_hits += m.moved;
        value_defrag_misses += !m.moved;
        if (at + 1 < bly_foreign_nparts(f) && srv.DefragShouldStop &&
            srv.DefragCursorSet && srv.DefragShouldStop(ctx)) {
            srv.DefragCursorSet(ctx, at + 1);
            return 1;
        }
    }
    return 0;
}

const server_methods value_methods = { .version = 4,
                                       .rdb_save = value_save,
                                       .free = value_free,
                                       .digest = value_digest,
                                       .free_effort = value_free_effort,
                                       .copy = value_copy,
                                       .defrag = value_defrag };

/* ------------------------------------------------------------------- asking */

double value_fact(const bly_foreign *f, const char *name)
{
    bly_fact fact;
    return bly_foreign_fact(f, name, &fact) ? fact.real : 0;
}

bly_foreign_sizes value_sizes(const bly_foreign *f)
{
    bly_foreign_sizes s;
    bly_foreign_size(f, BLY_WHOLE, &s);
    return s;
}

bly_foreign_note *value_expect(const server_string *name,
                               const server_string *item)
{
    static bly_foreign_note notes[16];
    const bytes b = arg_bytes(name);
    uint64_t tail = 0;
    memcpy(&tail, b.at + (b.n < 8 ? 0 : b.n - 8), b.n < 8 ? b.n : 8);
    bly_foreign_note *const note = &notes[(tail + b.n) * RANDOM_STEP >> 60];
    bly_foreign_expect(note, arg_item(item));
    return note;
}

int value_counts(server_ctx *ctx, server_string **argv, int argc,
                 bly_foreign *(*open)(server_ctx *ctx, server_string *name,
                                      int mode, server_key **key))
{
    if (argc < 3)
        return srv.WrongArity(ctx);
    server_key *key;
    const bly_foreign *f = open(ctx, argv[1], SERVER_READ, &key);
    if (f)
        srv.ReplyWithArray(ctx, argc - 2);
    for (int at = 2; at < argc && f;) {
        bly_bytes items[ITEMS_BATCH];
        uint64_t counts[ITEMS_BATCH] = { 0 };
        const size_t n = arg_items(argv + at, argc - at, ITEMS_BATCH, items);
        bly_foreign_count(f, items, n, counts);
        for (size_t i = 0; i < n; i++)
            srv.ReplyWithLongLong(ctx, (long long)counts[i]);
        at += (int)n;
    }
    key_close(key);
    return SERVER_OK;
}

/* ------------------------------------------------------------------- pieces */

void reply_piece(server_ctx *ctx, const bly_foreign *f, long long at,
                 int (*empty)(server_ctx *ctx))
{
    const size_t nhead = bly_foreign_head(f, NULL, 0);
    unsigned char *head = at == 0 ? memory_try(nhead) : NULL, *piece = head;
    size_t n = 0;
    if (at == 0 && !head) {
        reply_error(ctx, "ERR Insufficient memory");
        return;
    }
    if (at == 0)
        n = bly_foreign_head(f, head, nhead);
    else if (at > 0)
        n = bly_foreign_chunk(f, (uint64_t)at - 1, PIECE_BYTES, &piece);
    srv.ReplyWithArray(ctx, 2);
    srv.ReplyWithLongLong(ctx, !n ? 0 : at == 0 ? 1 : at + (long long)n);
    if (n)
        srv.ReplyWithStringBuffer(ctx, (const char *)piece, n);
    else
        empty(ctx);
    memory_free(head);
}

size_t piece_take(const bly_foreign *f, long long at, bytes data, bool *changed)
{
    unsigned char *to;
    *changed = false;
    if (at < 1 || !data.n || (uint64_t)at - 1 < data.n)
        return 0;
    const size_t n =
        bly_foreign_chunk(f, (uint64_t)at - 1 - data.n, data.n, &to);
    if (n == data.n && memcmp(to, data.at, n) != 0) {
        memcpy(to, data.at, n);
        *changed = true;
    }
    return n;
}

void rewrite_pieces(server_io *io, const char *command, server_string *key,
                    const bly_foreign *f)
{
    const size_t nhead = bly_foreign_head(f, NULL, 0);
    unsigned char *head = srv.Alloc(nhead), *piece;
    bly_foreign_head(f, head, nhead);
    srv.EmitAOF(io, command, "slb", key, 1LL, head, nhead);
    srv.Free(head);
    uint64_t at = 0;
    for (size_t n; (n = bly_foreign_chunk(f, at, PIECE_BYTES, &piece)); at += n)
        srv.EmitAOF(io, command, "slb", key, (long long)(at + n + 1), piece, n);
}
