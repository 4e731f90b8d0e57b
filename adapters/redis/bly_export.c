/*
 * bly_export.c - BLY.EXPORT: a filter as a .bly file, in pieces
 *
 * A file begins with its length and its sums. Where it is coded, they are known
 * when all of it was coded, 36 ms for each megabyte, and so long nobody else is
 * served. So a copy of the filter is coded in a thread of its own while the
 * client waits; the first piece is as fast as the memory for that copy. The
 * file is kept for the pieces that follow, until the filter changes, or its
 * last byte was given out.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "adapters/redis/bly.h"

/* Bytes of a filter that are coded at once: 5 ms. */
#define CODED_AT_ONCE (UINT64_C(128) << 10)

/* ----------------------------------------------------------------- the file */

/* One more piece of a file whose length only its coding tells. Threads come by:
 * no more is asked of the server than memory. */
static bool gather(void *ctx, const void *at, size_t n)
{
    held_filter *h = ctx;
    if (n > h->nbytes - h->nhere) {
        const uint64_t room = h->nhere + h->nhere / 2 + n + EXPORT_PIECE;
        unsigned char *more = room > SIZE_MAX / 2 ? NULL
                              : srv.TryAlloc      ? srv.TryAlloc((size_t)room)
                                                  : srv.Alloc((size_t)room);
        if (!more)
            return false;
        if (h->nhere)
            memcpy(more, h->pieces, (size_t)h->nhere);
        memory_free(h->pieces);
        h->pieces = more;
        h->nbytes = room;
    }
    memcpy(h->pieces + h->nhere, at, n);
    h->nhere += n;
    return true;
}

/* The file of f; *file has no pieces where there is no memory for it. */
static void gather_all(const bly_filter *f, held_filter *file)
{
    *file = (held_filter){ 0 };
    if (bly_write(f, gather, file)) {
        memory_free(file->pieces);
        *file = (held_filter){ 0 };
    }
}

/* What is asked for: bytes from offset on. */
typedef struct wanted {
    uint64_t offset;
    size_t count;
} wanted;

static bool read_wanted(server_string **argv, int argc, wanted *out)
{
    long long offset, count = (long long)EXPORT_PIECE;
    if (srv.StringToLongLong(argv[2], &offset) != SERVER_OK || offset < 0 ||
        (argc == 4 && (srv.StringToLongLong(argv[3], &count) != SERVER_OK ||
                       count < 1 || count > (long long)(64 * EXPORT_PIECE))))
        return false;
    *out = (wanted){ (uint64_t)offset, (size_t)count };
    return true;
}

static void reply_part(server_ctx *ctx, uint64_t size, const void *at, size_t n)
{
    srv.ReplyWithArray(ctx, 2);
    srv.ReplyWithLongLong(ctx, (long long)size);
    srv.ReplyWithStringBuffer(ctx, at, n);
}

/* From a file that is there; whether its last byte is among them. */
static bool reply_from_file(server_ctx *ctx, const held_filter *file, wanted w)
{
    const uint64_t left = w.offset < file->nhere ? file->nhere - w.offset : 0;
    const size_t n = left < w.count ? (size_t)left : w.count;
    reply_part(ctx, file->nhere, n ? file->pieces + w.offset : NULL, n);
    return n == left;
}

/* From the filter itself. */
static void reply_from_filter(server_ctx *ctx, const bly_filter *f, wanted w)
{
    unsigned char *piece = memory_try_raw(w.count);
    if (piece) {
        const size_t n = bly_write_part(f, w.offset, piece, w.count);
        reply_part(ctx, bly_written_bytes(f), piece, n);
    } else {
        reply_error(ctx, "ERR Insufficient memory");
    }
    memory_free(piece);
}

/* --------------------------------------------------------------- the thread */

/* A copy of a filter that is coded, and those who wait for its file. */
enum { MOST_WAIT = 32 };

typedef struct coding {
    server_blocked *client[MOST_WAIT];
    size_t nclients, nleft; /* of which so many are not answered */
    bly_filter *copy;
    held_filter file;
    const held_filter *_Atomic of; /* NULL: that is another one, now */
    bool done;                     /* nobody else may wait for it */
    struct coding *next;
} coding;

/* Those that are not answered. Keys may be freed by a thread of the server. */
static struct {
    pthread_mutex_t lock;
    coding *_Atomic first;
} codings = { .lock = PTHREAD_MUTEX_INITIALIZER };

void export_forget(const held_filter *h)
{
    if (!codings.first)
        return;
    pthread_mutex_lock(&codings.lock);
    for (coding *c = codings.first; c; c = c->next)
        if (c->of == h)
            c->of = NULL;
    pthread_mutex_unlock(&codings.lock);
}

/* A client is answered, or gone. */
static void coding_leave(server_ctx *ctx, void *made)
{
    (void)ctx;
    coding *c = made;
    if (--c->nleft)
        return;
    pthread_mutex_lock(&codings.lock);
    if (codings.first == c)
        codings.first = c->next;
    for (coding *at = codings.first; at; at = at->next)
        if (at->next == c)
            at->next = c->next;
    pthread_mutex_unlock(&codings.lock);
    bly_free(c->copy);
    memory_free(c->file.pieces);
    memory_free(c);
}

/* The file is there, and the client gets what it asked for: of the filter as it
 * was then, if it changed meanwhile. The last one leaves the file to the key.
 */
static int coding_reply(server_ctx *ctx, server_string **argv, int argc)
{
    coding *c = srv.GetBlockedClientPrivateData(ctx);
    wanted w;
    server_key *key;
    void *value;
    if (!c->file.pieces || !read_wanted(argv, argc, &w))
        return reply_error(ctx, "ERR Insufficient memory");
    const bool whole = reply_from_file(ctx, &c->file, w);
    key_open(ctx, argv[1], SERVER_READ, bly_type, &key, &value);
    held_filter *h = value;
    if (h && c->of == h && !h->pieces && c->nleft == 1 && !whole) {
        held_keep(h, c->file.pieces, c->file.nhere);
        c->file.pieces = NULL;
    }
    key_close(key);
    return SERVER_OK;
}

static void *coding_run(void *made)
{
    coding *c = made;
    gather_all(c->copy, &c->file);
    bly_free(c->copy);
    c->copy = NULL;
    pthread_mutex_lock(&codings.lock);
    c->done = true;
    const size_t n = c->nclients;
    pthread_mutex_unlock(&codings.lock);
    for (size_t i = 0; i < n; i++) /* with the last one c may be gone */
        srv.UnblockClient(c->client[i], c);
    return NULL;
}

/* Without signals, which are the server's. */
static bool coding_start(coding *c)
{
    sigset_t all, old;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    const bool ok = pthread_create(&thread, NULL, coding_run, c) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (ok)
        pthread_detach(thread);
    return ok;
}

static void coding_wait(server_ctx *ctx, coding *c)
{
    c->client[c->nclients++] =
        srv.BlockClient(ctx, coding_reply, NULL, coding_leave, 0);
    c->nleft++;
}

/* Wait for the thread that has a copy of h already, if there is one. */
static bool coding_join(server_ctx *ctx, const held_filter *h)
{
    bool joined = false;
    pthread_mutex_lock(&codings.lock);
    for (coding *c = codings.first; c && !joined; c = c->next)
        if (c->of == h && !c->done && c->nclients < MOST_WAIT) {
            coding_wait(ctx, c);
            joined = true;
        }
    pthread_mutex_unlock(&codings.lock);
    return joined;
}

/* Let a thread code the filter of h; false: it cannot be, here. */
static bool code_aside(server_ctx *ctx, const held_filter *h)
{
    if (!srv.BlockClient || !srv.UnblockClient || !srv.AbortBlock ||
        !srv.GetBlockedClientPrivateData ||
        (srv.GetContextFlags(ctx) &
         (SERVER_FLAG_SCRIPT | SERVER_FLAG_MULTI | SERVER_FLAG_DENY_BLOCKING)))
        return false;
    if (coding_join(ctx, h))
        return true;
    coding *c = memory_try(sizeof *c);
    if (!c || bly_clone(h->f, &c->copy)) {
        memory_free(c);
        return false;
    }
    c->of = h;
    pthread_mutex_lock(&codings.lock);
    coding_wait(ctx, c);
    c->next = codings.first;
    codings.first = c;
    pthread_mutex_unlock(&codings.lock);
    if (coding_start(c))
        return true;
    srv.AbortBlock(c->client[0]);
    coding_leave(ctx, c);
    return false;
}

/* ------------------------------------------------------------- the command */

/* Is the file of h still to be made, and that at once? */
static bool takes_coding(const held_filter *h, uint64_t *nbytes)
{
    bly_stats stats;
    bly_peek(h->f, &stats);
    *nbytes = stats.bytes;
    return stats.coded && !h->pieces;
}

/* BLY.EXPORT key offset [count]: [size of the file, bytes from offset on]. */
int bly_export(server_ctx *ctx, server_string **argv, int argc)
{
    wanted w;
    if (argc != 3 && argc != 4)
        return srv.WrongArity(ctx);
    if (!read_wanted(argv, argc, &w))
        return reply_error(ctx,
                           "ERR offset and count must be whole numbers, "
                           "count up to %zu",
                           64 * EXPORT_PIECE);
    server_key *key;
    if (bly_to_use(ctx, argv[1], SERVER_READ, &key)) {
        held_filter *h = srv.ModuleTypeGetValue(key), file;
        uint64_t nbytes;
        const bool coded = takes_coding(h, &nbytes);
        if (coded && nbytes > CODED_AT_ONCE && code_aside(ctx, h)) {
            key_close(key);
            return SERVER_OK; /* the reply comes later */
        }
        if (coded) {
            gather_all(h->f, &file);
            if (file.pieces)
                held_keep(h, file.pieces, file.nhere);
        }
        if (!h->pieces)
            reply_from_filter(ctx, h->f, w);
        else if (reply_from_file(ctx, h, w))
            held_stale(h);
    }
    key_close(key);
    return SERVER_OK;
}
