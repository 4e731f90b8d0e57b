/*
 * bly_import.c - BLY.IMPORT: a .bly file, in pieces, becomes a filter
 *
 * Until the last piece has come the key holds the pieces and no filter; the
 * file's own checksums say whether it is whole. A coded file may become a
 * thousand times as large, so it is read within bly-memory-limit, and a thread
 * of its own reads it while the client waits: a gigabyte takes seconds. Until
 * it is read the last piece does not count as here, neither for those who look
 * at the key nor in a dump, and replicas are not told of it.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "adapters/redis/bly.h"
#include "adapters/redis/redis_secret.h"

/* Bytes of a file that is read at once. Coded at its best that is 16 MB of
 * filter: some 10 ms. */
#define READ_AT_ONCE (UINT64_C(16) << 10)

/* Milliseconds between looks at the thread; and while the server wants nothing
 * said to replicas. */
#define LOOK_AGAIN 1
#define PAUSED_LOOK 10

/* ---------------------------------------------------------------- the file */

/* The first piece makes the key, with room for all. */
static held_filter *import_begin(server_ctx *ctx, uint64_t nbytes)
{
    const uint64_t limit = limit_of_keys(ctx);
    if (limit && nbytes > limit) {
        reply_error(ctx, "ERR the file is larger than bly-memory-limit allows");
        return NULL;
    }
    held_filter *h = held_expect(nbytes);
    if (!h)
        reply_error(ctx, "ERR Insufficient memory");
    return h;
}

/* The filter in a file of which all bytes are there. */
static bly_status import_read(const held_file *file, uint64_t limit,
                              bly_filter **out)
{
    const bly_access how = { .blind = true,
                             .max_bytes = limit,
                             .mem = &bly_memory };
    return bly_load(file->at, (size_t)file->nbytes, &how, out);
}

/* The file of a key has become a filter. */
static void import_arrived(held_filter *h, bly_filter *f)
{
    bly_limit(f, 0); /* as bly_close() */
    secret_opens(f); /* if it is keyed, and its secret is here */
    held_arrived(h, f);
}

/* The file of a key cannot become one. A replica may know another limit, so it
 * is told of the end and not of the piece. */
static void import_failed(server_ctx *ctx, server_key *key, server_string *name)
{
    srv.DeleteKey(key);
    srv.Replicate(ctx, "DEL", "s", name);
    key_changed(ctx, "del", name);
}

/* ------------------------------------------------------------------- aside */

/* A file that a thread reads. */
typedef struct importing {
    server_blocked *client;
    server_string *name; /* of the key */
    held_file *file;     /* the key's, and ours */
    uint64_t offset;     /* of the last piece */
    uint64_t limit, room;
    bly_filter *f; /* NULL: there is none, and why */
    char wrong[400];
    atomic_bool done;
} importing;

static void *importing_run(void *which)
{
    importing *i = which;
    memory_aside(&i->room);
    if (import_read(i->file, i->limit, &i->f))
        snprintf(i->wrong, sizeof i->wrong, "ERR %s", bly_error());
    memory_aside(NULL);
    atomic_store(&i->done, true);
    return NULL;
}

/* The client is answered, or gone. */
static void importing_free(server_ctx *ctx, void *which)
{
    (void)ctx;
    importing *i = which;
    bly_free(i->f);
    file_drop(i->file);
    srv.FreeString(NULL, i->name);
    memory_free(i);
}

static int importing_reply(server_ctx *ctx, server_string **argv, int argc)
{
    const importing *i = srv.GetBlockedClientPrivateData(ctx);
    (void)argv, (void)argc;
    return i->wrong[0] ? reply_error(ctx, "%s", i->wrong)
                       : srv.ReplyWithSimpleString(ctx, "OK");
}

/* The thread is done: the filter goes to the key, if that still waits for it.
 */
static void importing_end(server_ctx *ctx, importing *i)
{
    server_key *key;
    void *value;
    key_open(ctx, i->name, SERVER_WRITE, bly_type, &key, &value);
    held_filter *h = value;
    if (srv.GetContextFlags(ctx) & SERVER_FLAG_REPLICA) {
        snprintf(i->wrong, sizeof i->wrong,
                 "UNBLOCKED the server has become a replica meanwhile");
    } else if (!h || h->file != i->file) {
        snprintf(i->wrong, sizeof i->wrong,
                 "ERR the key has changed meanwhile");
    } else if (!i->f) {
        import_failed(ctx, key, i->name);
    } else {
        const uint64_t nbytes = i->file->nbytes;
        srv.Replicate(ctx, "BLY.IMPORT", "sllb", i->name, (long long)i->offset,
                      (long long)nbytes, i->file->at + i->offset,
                      (size_t)(nbytes - i->offset));
        import_arrived(h, i->f);
        i->f = NULL;
        key_changed(ctx, "bly.import", i->name);
    }
    key_close(key);
    srv.UnblockClient(i->client, i);
}

static void importing_look(server_ctx *ctx, void *which)
{
    importing *i = which;
    const bool paused = srv.AvoidReplicaTraffic && srv.AvoidReplicaTraffic();
    if (paused || !atomic_load(&i->done))
        srv.CreateTimer(ctx, paused ? PAUSED_LOOK : LOOK_AGAIN, importing_look,
                        i);
    else
        importing_end(ctx, i);
}

/* Let a thread read the file of h, of which all bytes are there; false: it
 * cannot be, here. */
static bool import_aside(server_ctx *ctx, server_string *name, held_filter *h,
                         uint64_t offset)
{
    if (h->file->nbytes <= READ_AT_ONCE || !srv.CreateTimer || !may_wait(ctx) ||
        is_told(ctx))
        return false;
    importing *i = memory_try(sizeof *i);
    if (!i)
        return false;
    const bytes word = arg_bytes(name);
    i->name = srv.CreateString(NULL, word.at, word.n);
    i->file = h->file;
    i->file->others++;
    i->offset = offset;
    i->limit = limit_of_keys(ctx);
    i->room = memory_room();
    i->client = srv.BlockClient(ctx, importing_reply, NULL, importing_free, 0);
    if (start_thread(importing_run, i)) {
        srv.CreateTimer(ctx, LOOK_AGAIN, importing_look, i);
        return true;
    }
    srv.AbortBlock(i->client);
    importing_free(ctx, i);
    return false;
}

/* ------------------------------------------------------------- the command */

/* May this piece be next? Unless, an error was sent. */
static bool is_next(server_ctx *ctx, const held_filter *h, uint64_t offset,
                    uint64_t size)
{
    const uint64_t nhere = h ? h->file->nhere : 0;
    const uint64_t nbytes = h ? h->file->nbytes : size;
    if (h && h->file->others) {
        reply_error(ctx, "ERR the file is being read");
        return false;
    }
    if (offset == nhere && size == nbytes)
        return true;
    reply_error(ctx,
                "ERR pieces must come in order: %llu of %llu bytes "
                "are here",
                (unsigned long long)nhere, (unsigned long long)nbytes);
    return false;
}

/* Take the last piece, at once. The key holds h already, or gets it. */
static void import_end(server_ctx *ctx, server_key *key, server_string *name,
                       held_filter *h, bool is_held)
{
    bly_filter *f;
    if (import_read(h->file, limit_of_keys(ctx), &f)) {
        reply_library(ctx);
        if (is_held)
            import_failed(ctx, key, name);
        else
            held_free(h);
        return;
    }
    import_arrived(h, f);
    if (!is_held)
        srv.ModuleTypeSetValue(key, bly_type, h);
    srv.ReplicateVerbatim(ctx);
    key_changed(ctx, "bly.import", name);
    srv.ReplyWithSimpleString(ctx, "OK");
}

static void import_piece(server_ctx *ctx, server_key *key, server_string *name,
                         held_filter *h, bytes data, bool is_held)
{
    const uint64_t offset = h->file->nhere;
    memcpy(h->file->at + offset, data.at, data.n);
    if (offset + data.n < h->file->nbytes) {
        h->file->nhere += data.n;
        if (!is_held)
            srv.ModuleTypeSetValue(key, bly_type, h);
        srv.ReplicateVerbatim(ctx);
        key_changed(ctx, "bly.import", name);
        srv.ReplyWithSimpleString(ctx, "OK");
    } else if (import_aside(ctx, name, h, offset)) {
        if (!is_held)
            srv.ModuleTypeSetValue(key, bly_type, h);
    } else {
        h->file->nhere += data.n;
        import_end(ctx, key, name, h, is_held);
    }
}

/* BLY.IMPORT key offset size data, in order. */
int bly_import(server_ctx *ctx, server_string **argv, int argc)
{
    long long offset, size;
    if (argc != 5)
        return srv.WrongArity(ctx);
    const bytes data = arg_bytes(argv[4]);
    if (srv.StringToLongLong(argv[2], &offset) != SERVER_OK || offset < 0 ||
        srv.StringToLongLong(argv[3], &size) != SERVER_OK || size < 1 ||
        data.n == 0 || offset > size || data.n > (uint64_t)(size - offset))
        return reply_error(ctx, "ERR offset and size must be whole numbers, "
                                "and the data within them");
    server_key *key;
    void *value;
    const held what =
        key_open(ctx, argv[1], SERVER_WRITE, bly_type, &key, &value);
    held_filter *h = value;
    if (what == HELD_OTHER)
        reply_error(ctx, WRONGTYPE);
    else if (h && h->f)
        reply_error(ctx, "ERR item exists");
    else if (is_next(ctx, h, (uint64_t)offset, (uint64_t)size) &&
             (h || (h = import_begin(ctx, (uint64_t)size))))
        import_piece(ctx, key, argv[1], h, data, value != NULL);
    key_close(key);
    return SERVER_OK;
}
