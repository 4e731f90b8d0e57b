/*
 * bly_file.c - BLY.* filters as .bly files: in dumps and logs
 *
 * A dump has the file in it, and a log that is written anew has it as
 * BLY.IMPORT.
 */
#include <string.h>

#include "adapters/redis/bly.h"
#include "adapters/redis/redis_secret.h"

#define BLY_TYPE "bloomery-"
#define BLY_ENCODING 0

server_type *bly_type;

/* --------------------------------------------------------------- the server */

static bool save_piece(void *io, const void *data, size_t n)
{
    for (size_t at = 0; at < n; at += EXPORT_PIECE)
        srv.SaveStringBuffer(io, (const char *)data + at,
                             n - at < EXPORT_PIECE ? n - at : EXPORT_PIECE);
    return true;
}

/* u 1 and the file in pieces, a piece of no bytes at the end; or u 0 for an
 * import that is not finished: its sizes, then its bytes. */
static void held_save(server_io *io, void *value)
{
    const held_filter *h = value;
    srv.SaveUnsigned(io, h->f != NULL);
    if (h->f) {
        (void)!bly_write(h->f, save_piece, io);
    } else {
        srv.SaveUnsigned(io, h->file->nbytes);
        srv.SaveUnsigned(io, h->file->nhere);
        save_piece(io, h->file->at, (size_t)h->file->nhere);
    }
    srv.SaveStringBuffer(io, "", 0);
}

/* What bly_read() asks for, from the pieces. */
typedef struct piecewise {
    server_io *io;
    char *piece;
    size_t n, at;
    bool ended;
} piecewise;

static int64_t load_piece(void *ctx, void *to, size_t n)
{
    piecewise *p = ctx;
    size_t got = 0;
    while (got < n && !p->ended) {
        if (p->at == p->n) {
            memory_free(p->piece);
            p->at = p->n = 0;
            p->piece = srv.LoadStringBuffer(p->io, &p->n);
            if (srv.IsIOError(p->io))
                return -1;
            p->ended = p->n == 0;
            continue;
        }
        const size_t some = n - got < p->n - p->at ? n - got : p->n - p->at;
        memcpy((char *)to + got, p->piece + p->at, some);
        p->at += some;
        got += some;
    }
    return (int64_t)got;
}

static void *held_load(server_io *io, int encoding)
{
    if (encoding > BLY_ENCODING)
        return NULL;
    const uint64_t whole = srv.LoadUnsigned(io);
    if (srv.IsIOError(io))
        return NULL;
    piecewise p = { .io = io };
    held_filter *h = NULL;
    char end;
    if (whole) {
        const bly_access how = { .blind = true, .mem = &bly_memory };
        bly_filter *f;
        if (!bly_read(load_piece, &p, &how, &f)) {
            secret_opens(f);
            h = held_new(f);
        }
    } else {
        const uint64_t nbytes = srv.LoadUnsigned(io);
        const uint64_t nhere = srv.LoadUnsigned(io);
        h = !srv.IsIOError(io) && nbytes && nhere < nbytes ? held_expect(nbytes)
                                                           : NULL;
        if (h)
            h->file->nhere = nhere;
        if (h && load_piece(&p, h->file->at, (size_t)nhere) != (int64_t)nhere) {
            held_free(h);
            h = NULL;
        }
    }
    if (h && (load_piece(&p, &end, 1) != 0 || !p.ended)) {
        held_free(h); /* bytes behind the end */
        h = NULL;
    }
    memory_free(p.piece);
    return h;
}

static size_t held_mem_usage(const void *value)
{
    const held_filter *h = value;
    bly_stats stats;
    const size_t nfile =
        h->file ? sizeof *h->file + (size_t)h->file->nbytes : 0;
    if (!h->f)
        return sizeof *h + nfile;
    bly_peek(h->f, &stats);
    size_t sum = sizeof *h + (size_t)stats.bytes;
    if (memory_is_weighed(sum)) {
        sum = srv.MallocSize((void *)(uintptr_t)h);
        bly_move(h->f, memory_weigh, &sum);
    }
    return sum + nfile;
}

static size_t held_free_effort(server_string *key, const void *value)
{
    (void)key;
    return 1 + (size_t)(held_mem_usage(value) / FREE_STEP);
}

static void *held_copy(server_string *from, server_string *to,
                       const void *value)
{
    (void)from;
    (void)to;
    const held_filter *h = value;
    bly_filter *copy;
    return h->f && !bly_clone(h->f, &copy) ? held_new(copy) : NULL;
}

static bool digest_piece(void *md, const void *data, size_t n)
{
    srv.DigestAddStringBuffer(md, data, n);
    return true;
}

static void held_digest(server_digest *md, void *value)
{
    const held_filter *h = value;
    if (h->f)
        (void)!bly_write(h->f, digest_piece, md);
    else
        digest_piece(md, h->file->at, (size_t)h->file->nhere);
    srv.DigestEndSequence(md);
}

/* Where a file that is written as commands has come to. */
typedef struct rewriting {
    server_io *io;
    server_string *key;
    uint64_t at, nbytes;
} rewriting;

static bool rewrite_piece(void *ctx, const void *data, size_t n)
{
    rewriting *w = ctx;
    for (size_t done = 0, some; done < n; done += some) {
        some = n - done < EXPORT_PIECE ? n - done : EXPORT_PIECE;
        srv.EmitAOF(w->io, "BLY.IMPORT", "sllb", w->key, (long long)w->at,
                    (long long)w->nbytes, (const char *)data + done, some);
        w->at += some;
    }
    return true;
}

/* As a file in pieces, be it a filter or one that is still on its way. */
static void held_rewrite(server_io *io, server_string *key, void *value)
{
    const held_filter *h = value;
    rewriting w = { .io = io, .key = key };
    if (h->f) {
        w.nbytes = bly_written_bytes(h->f);
        (void)!bly_write(h->f, rewrite_piece, &w);
    } else {
        w.nbytes = h->file->nbytes;
        rewrite_piece(&w, h->file->at, (size_t)h->file->nhere);
    }
}

static void *defrag_move(void *ctx, void *at)
{
    return srv.DefragAlloc(ctx, at);
}

static int held_defrag(server_defrag *ctx, server_string *key, void **value)
{
    (void)key;
    export_forget(*value);
    memory_moved(ctx, value);
    held_filter *h = *value;
    if (h->file && !h->file->others)
        memory_moved(ctx, &h->file);
    if (h->f)
        h->f = bly_move(h->f, defrag_move, ctx);
    return 0;
}

int bly_type_start(server_ctx *ctx)
{
    server_methods methods = {
        .version = 4,
        .rdb_load = held_load,
        .rdb_save = held_save,
        .aof_rewrite = held_rewrite,
        .mem_usage = held_mem_usage,
        .free = held_free,
        .free_effort = held_free_effort,
        .digest = held_digest,
        .copy = held_copy,
        .defrag = held_defrag,
    };
    bly_type = srv.CreateDataType(ctx, BLY_TYPE, BLY_ENCODING, &methods);
    return bly_type ? SERVER_OK : SERVER_ERR;
}
