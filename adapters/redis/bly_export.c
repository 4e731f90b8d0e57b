/*
 * bly_export.c - BLY.EXPORT: a filter as a .bly file, in pieces
 *
 * A file begins with its length and its sums. For a coded file they are known
 * only after all of it was coded, which takes 36 ms per megabyte and would keep
 * the server from serving anybody else. So a copy of the filter is coded in a
 * thread of its own while the client waits. A large copy is made little by
 * little, as the sums below are, and is begun again if the filter changes
 * meanwhile. The file is kept for the pieces that follow, until the filter
 * changes, or its last byte was given out.
 *
 * Of a large file that is not coded, the sums are made little by little: by a
 * timer of the server, which serves others in between, while the client waits.
 * If the filter changes meanwhile, they are made at once when it is its turn.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>

#include "adapters/redis/bly.h"

/* Bytes of a filter that are coded at once: 5 ms. */
#define CODED_AT_ONCE (UINT64_C(128) << 10)

/* Bytes of a filter that are copied at once: 3 ms; and in one turn. So often a
 * copy is begun again when the filter has changed; then it is made at once. */
#define COPIED_AT_ONCE (UINT64_C(4) << 20)
#define COPIED_IN_TURN (UINT64_C(2) << 20)
#define COPIED_AGAIN 8

/* Bytes of a filter that are summed at once: 3 ms; and in one turn. */
#define SUMMED_AT_ONCE (UINT64_C(16) << 20)
#define SUMMED_IN_TURN (UINT64_C(8) << 20)

/* ----------------------------------------------------------------- the file */

/* One more piece of a file whose length only its coding tells. Threads come by:
 * no more is asked of the server than memory. */
static bool gather(void *ctx, const void *at, size_t n)
{
    held_file **const file = ctx, *was = *file;
    const uint64_t nhere = was ? was->nhere : 0;
    if (!was || n > was->nbytes - nhere) {
        const uint64_t room = nhere + nhere / 2 + n + EXPORT_PIECE;
        const size_t nbytes = sizeof *was + (size_t)room;
        held_file *more = room > SIZE_MAX / 2 ? NULL
                          : srv.TryAlloc      ? srv.TryAlloc(nbytes)
                                              : srv.Alloc(nbytes);
        if (!more)
            return false;
        *more = (held_file){ .nbytes = room, .nhere = nhere };
        if (nhere)
            memcpy(more->at, was->at, (size_t)nhere);
        memory_free(was);
        *file = more;
    }
    memcpy((*file)->at + nhere, at, n);
    (*file)->nhere += n;
    return true;
}

/* The file of f; NULL where there is no memory for it. */
static held_file *gather_all(const bly_filter *f)
{
    held_file *file = NULL;
    if (bly_write(f, gather, &file) == BLY_OK)
        return file;
    memory_free(file);
    return NULL;
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
static bool reply_from_file(server_ctx *ctx, const held_file *file, wanted w)
{
    const uint64_t left = w.offset < file->nhere ? file->nhere - w.offset : 0;
    const size_t n = left < w.count ? (size_t)left : w.count;
    reply_part(ctx, file->nhere, n ? file->at + w.offset : NULL, n);
    return n == left;
}

/* From the filter itself, with the sums that were made of it unless that is
 * NULL; whether its last byte is among them. */
static bool reply_from_filter(server_ctx *ctx, const bly_filter *f,
                              bly_parts *sums, wanted w)
{
    unsigned char *piece = memory_try_raw(w.count);
    if (!piece) {
        reply_error(ctx, "ERR Insufficient memory");
        return false;
    }
    const size_t n = sums ? bly_parts_take(sums, w.offset, piece, w.count)
                          : bly_write_part(f, w.offset, piece, w.count);
    const uint64_t size = bly_written_bytes(f);
    reply_part(ctx, size, piece, n);
    memory_free(piece);
    return w.offset + n >= size;
}

/* --------------------------------------------------------------- the thread */

/* A copy of a filter that is coded, and those who wait for its file. */
enum { MOST_WAIT = 32 };

typedef struct coding {
    server_blocked *client[MOST_WAIT];
    size_t nclients, nleft; /* of which so many are not answered */
    bly_cloning *cloning;   /* while the copy is made, and what it is of */
    server_string *name;
    unsigned ncopies; /* that were begun */
    bly_filter *copy;
    held_file *file;
    const char *wrong;             /* why there is none */
    const held_filter *_Atomic of; /* NULL: that is another one, now */
    bool done;                     /* nobody else may wait for it */
    struct coding *next;
} coding;

/* A filter whose sums are made, and those who wait for them; or that were made,
 * for the pieces that follow. Nothing but the lock keeps the filter there. */
typedef struct summing {
    server_blocked *client[MOST_WAIT];
    size_t nclients, nleft;
    const held_filter *of; /* NULL: it has changed */
    bly_parts *sums;
    bool done; /* nobody else may wait for it */
    struct summing *next;
} summing;

/* Those that are not answered. Keys may be freed by a thread of the server. */
static struct {
    pthread_mutex_t lock;
    coding *_Atomic first;
    summing *_Atomic sums;
} codings = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* It has no client, and no filter. Whoever calls has the lock. */
static void summing_free(summing *s)
{
    if (codings.sums == s)
        codings.sums = s->next;
    for (summing *at = codings.sums; at; at = at->next)
        if (at->next == s)
            at->next = s->next;
    bly_parts_free(s->sums);
    memory_free(s);
}

void export_forget(const held_filter *h)
{
    if (!codings.first && !codings.sums)
        return;
    pthread_mutex_lock(&codings.lock);
    for (coding *c = codings.first; c; c = c->next)
        if (c->of == h)
            c->of = NULL;
    for (summing *s = codings.sums, *next; s; s = next) {
        next = s->next;
        if (s->of == h)
            s->of = NULL;
        if (!s->of && !s->nleft)
            summing_free(s);
    }
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
    bly_cloning_free(c->cloning);
    bly_free(c->copy);
    memory_free(c->file);
    if (c->name)
        srv.FreeString(NULL, c->name);
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
    if (!c->file || !read_wanted(argv, argc, &w))
        return reply_error(ctx, "%s",
                           c->wrong ? c->wrong : "ERR Insufficient memory");
    const bool whole = reply_from_file(ctx, c->file, w);
    key_open(ctx, argv[1], SERVER_READ, bly_type, &key, &value);
    held_filter *h = value;
    if (h && c->of == h && !h->file && c->nleft == 1 && !whole) {
        held_keep(h, c->file);
        c->file = NULL;
    }
    key_close(key);
    return SERVER_OK;
}

/* There is a file, or will be none. */
static void coding_end(coding *c)
{
    pthread_mutex_lock(&codings.lock);
    c->done = true;
    const size_t n = c->nclients;
    pthread_mutex_unlock(&codings.lock);
    for (size_t i = 0; i < n; i++) /* with the last one c may be gone */
        srv.UnblockClient(c->client[i], c);
}

static void *coding_run(void *made)
{
    coding *c = made;
    c->file = gather_all(c->copy);
    bly_free(c->copy);
    c->copy = NULL;
    coding_end(c);
    return NULL;
}

/* The filter has changed, or is another one: its copy is begun again. */
static void coding_again(server_ctx *ctx, coding *c)
{
    server_key *key;
    void *value;
    bly_cloning_free(c->cloning);
    c->cloning = NULL;
    const held what =
        key_open(ctx, c->name, SERVER_READ, bly_type, &key, &value);
    held_filter *h = value;
    if (what == HELD_OTHER)
        c->wrong = WRONGTYPE;
    else if (!h || !h->f)
        c->wrong = "ERR not found";
    else if (++c->ncopies < COPIED_AGAIN)
        bly_cloning_new(h->f, &c->cloning);
    else
        bly_clone(h->f, &c->copy);
    if (c->cloning || c->copy)
        c->of = h;
    key_close(key);
}

/* The next bytes of the copy. UNLINK waits so long, in a thread of its own. */
static void coding_turn(server_ctx *ctx, void *made)
{
    coding *c = made;
    bool changed;
    pthread_mutex_lock(&codings.lock);
    changed = !c->of;
    if (!changed && bly_cloning_some(c->cloning, COPIED_IN_TURN, &c->copy))
        changed = true; /* or there is no memory */
    pthread_mutex_unlock(&codings.lock);
    if (changed)
        coding_again(ctx, c);
    if (c->copy && start_thread(coding_run, c))
        return;
    if (!c->copy && c->cloning)
        srv.CreateTimer(ctx, 0, coding_turn, c);
    else
        coding_end(c);
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

/* The copy of h, or its beginning. */
static bool coding_copy(coding *c, const held_filter *h, uint64_t nbytes,
                        server_string *name)
{
    if (nbytes <= COPIED_AT_ONCE || !srv.CreateTimer ||
        filter_can(h->f, BLY_CAN(TICK)))
        return bly_clone(h->f, &c->copy) == BLY_OK;
    const bytes word = arg_bytes(name);
    c->name = srv.CreateString(NULL, word.at, word.n);
    return bly_cloning_new(h->f, &c->cloning) == BLY_OK;
}

/* Let a thread code the filter of h; false: it cannot be, here. */
static bool code_aside(server_ctx *ctx, const held_filter *h, uint64_t nbytes,
                       server_string *name)
{
    if (!may_wait(ctx))
        return false;
    if (coding_join(ctx, h))
        return true;
    coding *c = memory_try(sizeof *c);
    if (!c || !coding_copy(c, h, nbytes, name)) {
        if (c && c->name)
            srv.FreeString(NULL, c->name);
        memory_free(c);
        return false;
    }
    c->of = h;
    pthread_mutex_lock(&codings.lock);
    coding_wait(ctx, c);
    c->next = codings.first;
    codings.first = c;
    pthread_mutex_unlock(&codings.lock);
    if (c->cloning)
        srv.CreateTimer(ctx, 0, coding_turn, c);
    if (c->cloning || start_thread(coding_run, c))
        return true;
    srv.AbortBlock(c->client[0]);
    coding_leave(ctx, c);
    return false;
}

/* ---------------------------------------------------------------- the sums */

/* A client is answered, or gone. */
static void summing_leave(server_ctx *ctx, void *made)
{
    (void)ctx;
    summing *s = made;
    pthread_mutex_lock(&codings.lock);
    s->nleft--;
    if (!s->nleft && !s->of)
        summing_free(s);
    pthread_mutex_unlock(&codings.lock);
}

/* The sums of h, if they are all there. */
static bly_parts *sums_of(const held_filter *h)
{
    bly_parts *sums = NULL;
    if (!codings.sums)
        return NULL;
    pthread_mutex_lock(&codings.lock);
    for (const summing *s = codings.sums; s && !sums; s = s->next)
        if (s->of == h && s->done)
            sums = s->sums;
    pthread_mutex_unlock(&codings.lock);
    return sums;
}

/* A piece of the filter of h; with the last one its sums go. */
static void reply_with_sums(server_ctx *ctx, const held_filter *h, wanted w)
{
    if (reply_from_filter(ctx, h->f, sums_of(h), w))
        export_forget(h);
}

static int summing_reply(server_ctx *ctx, server_string **argv, int argc)
{
    wanted w;
    server_key *key = NULL;
    if (!read_wanted(argv, argc, &w))
        return reply_error(ctx, "ERR Insufficient memory");
    if (bly_to_use(ctx, argv[1], SERVER_READ, &key))
        reply_with_sums(ctx, srv.ModuleTypeGetValue(key), w);
    key_close(key);
    return SERVER_OK;
}

/* The next bytes. UNLINK waits so long, in a thread of its own. */
static void summing_turn(server_ctx *ctx, void *made)
{
    summing *s = made;
    pthread_mutex_lock(&codings.lock);
    s->done = !s->of || bly_parts_sum(s->sums, SUMMED_IN_TURN);
    const size_t n = s->nclients;
    pthread_mutex_unlock(&codings.lock);
    if (!s->done)
        srv.CreateTimer(ctx, 0, summing_turn, s);
    else
        for (size_t i = 0; i < n; i++) /* they are answered after this */
            srv.UnblockClient(s->client[i], s);
}

static void summing_wait(server_ctx *ctx, summing *s)
{
    s->client[s->nclients++] =
        srv.BlockClient(ctx, summing_reply, NULL, summing_leave, 0);
    s->nleft++;
}

/* Let the sums of h be made in turns; false: they cannot be, here. */
static bool sum_aside(server_ctx *ctx, const held_filter *h)
{
    bool joined = false;
    if (!may_wait(ctx) || !srv.CreateTimer || filter_can(h->f, BLY_CAN(TICK)))
        return false;
    pthread_mutex_lock(&codings.lock);
    for (summing *s = codings.sums; s && !joined; s = s->next)
        if (s->of == h && !s->done && s->nclients < MOST_WAIT) {
            summing_wait(ctx, s);
            joined = true;
        }
    pthread_mutex_unlock(&codings.lock);
    if (joined)
        return true;
    summing *s = memory_try(sizeof *s);
    if (!s || bly_parts_new(h->f, &s->sums)) {
        memory_free(s);
        return false;
    }
    pthread_mutex_lock(&codings.lock);
    s->of = h;
    summing_wait(ctx, s);
    s->next = codings.sums;
    codings.sums = s;
    pthread_mutex_unlock(&codings.lock);
    srv.CreateTimer(ctx, 0, summing_turn, s);
    return true;
}

/* ------------------------------------------------------------- the command */

/* Is the file of h still to be made, and that at once? */
static bool takes_coding(const held_filter *h, uint64_t *nbytes)
{
    bly_stats stats;
    bly_peek(h->f, &stats);
    *nbytes = stats.bytes;
    return stats.coded && !h->file;
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
        held_filter *h = srv.ModuleTypeGetValue(key);
        uint64_t nbytes;
        /* Pieces of two filters would make a file that nobody can open. */
        if (w.offset && !h->exported) {
            key_close(key);
            return reply_error(ctx, "ERR the filter has changed since its "
                                    "first piece was sent, if it was: begin "
                                    "again at offset 0");
        }
        h->exported = true;
        const bool coded = takes_coding(h, &nbytes);
        if (coded && nbytes > CODED_AT_ONCE &&
            code_aside(ctx, h, nbytes, argv[1])) {
            key_close(key);
            return SERVER_OK; /* the reply comes later */
        }
        if (coded) {
            held_file *file = gather_all(h->f);
            if (file)
                held_keep(h, file);
        }
        /* The sums are at the beginning, or in later pieces: of layers. */
        if (!coded && !h->file && nbytes > SUMMED_AT_ONCE && !w.offset &&
            !sums_of(h) && sum_aside(ctx, h)) {
            key_close(key);
            return SERVER_OK;
        }
        if (!h->file)
            reply_with_sums(ctx, h, w);
        else if (reply_from_file(ctx, h->file, w))
            held_stale(h);
    }
    key_close(key);
    return SERVER_OK;
}
