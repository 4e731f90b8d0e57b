/*
 * bf_dump.c - Bloom filters leave and come by command: BF.SCANDUMP,
 * BF.LOADCHUNK, BF.LOAD
 */
#include "adapters/redis/bf.h"

static int reply_nothing(server_ctx *ctx)
{
    return srv.ReplyWithStringBuffer(ctx, "", 0);
}

int bf_scandump(server_ctx *ctx, server_string **argv, int argc)
{
    long long at;
    if (argc != 3)
        return srv.WrongArity(ctx);
    server_key *key;
    const bly_foreign *f = bf_to_read(ctx, argv[1], &key);
    if (f && srv.StringToLongLong(argv[2], &at) != SERVER_OK)
        reply_error(ctx, "Second argument must be numeric");
    else if (f && bf_is_valkey(f))
        reply_error(ctx, "ERR not supported for a filter of valkey-bloom: "
                         "use DUMP");
    else if (f)
        reply_piece(ctx, f, at, reply_nothing);
    key_close(key);
    return SERVER_OK;
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
    bly_foreign *f;
    bool changed = true;
    const held what = bf_open(ctx, argv[1], SERVER_WRITE, &key, &f);
    const char *wrong = NULL;
    if (what == HELD_OTHER || (f && bf_is_valkey(f))) {
        wrong = WRONGTYPE;
    } else if (f) {
        const size_t n = piece_take(f, at, data, &changed);
        if (n == 0)
            wrong = "ERR invalid offset - no link found";
        else if (n != data.n)
            wrong = "ERR invalid chunk - Too big for current filter";
    } else if (at != 1) {
        wrong = "ERR not found";
    } else if (bly_foreign_start(&bf_redis_spec, data.at, data.n, &f)) {
        wrong = "ERR received bad data";
    } else {
        bf_keep(key, f);
    }
    return key_written(ctx, key, argv[1], changed ? "bloom.loadchunk" : NULL,
                       wrong);
}

int bf_load_command(server_ctx *ctx, server_string **argv, int argc)
{
    if (argc != 3)
        return srv.WrongArity(ctx);
    server_key *key;
    bly_foreign *f;
    const held what = bf_open(ctx, argv[1], SERVER_WRITE, &key, &f);
    const bytes data = arg_bytes(argv[2]);
    const char *wrong = NULL;
    if (what != HELD_NONE)
        wrong = "BUSYKEY Target key name already exists.";
    else if (data.n && data.at[0] != 1)
        wrong = "ERR bloom object decoding failed. Unsupported version";
    else if (bly_foreign_edit(&bf_valkey_spec, data.at, data.n, &f))
        wrong = "ERR bloom object decoding failed";
    else
        bf_keep(key, f);
    return key_written(ctx, key, argv[1], "bloom.load", wrong);
}
