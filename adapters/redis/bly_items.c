/*
 * bly_items.c - BLY.* commands on items: add, ask, remove, count; and the time
 *
 * Items of a command go to the library together, which hashes them first and
 * fetches ahead what they touch.
 */
#include <stdlib.h>

#include "adapters/redis/bly.h"

/* Items of a command, with room for what is said of them. */
typedef struct items {
    size_t n;
    bly_bytes *keys;
    uint64_t *hashes, *numbers, *bitmap;
    bly_status *statuses;
} items;

static void items_free(items *it)
{
    free(it->keys);
    free(it->hashes);
    free(it->numbers);
    free(it->bitmap);
    free(it->statuses);
}

static bool items_take(server_ctx *ctx, server_string **argv, int argc,
                       items *it)
{
    *it = (items){ .n = (size_t)argc };
    it->keys = malloc(it->n * sizeof *it->keys);
    it->hashes = malloc(it->n * sizeof *it->hashes);
    it->numbers = calloc(it->n, sizeof *it->numbers);
    it->bitmap = calloc(BLY_BITMAP_WORDS(it->n), sizeof *it->bitmap);
    it->statuses = calloc(it->n, sizeof *it->statuses);
    if (!it->keys || !it->hashes || !it->numbers || !it->bitmap ||
        !it->statuses) {
        reply_error(ctx, "ERR Insufficient memory");
        return false;
    }
    for (size_t i = 0; i < it->n; i++)
        it->keys[i] = arg_item(argv[i]);
    return true;
}

static bool bit_of(const uint64_t *bitmap, size_t i)
{
    return bitmap[i / 64] >> i % 64 & 1;
}

/* What a command does with the filter in a key and the items behind it: it
 * sends the reply. */
typedef void items_work(server_ctx *ctx, server_string **argv, bly_filter *f,
                        items *it);

static int with_items(server_ctx *ctx, server_string **argv, int argc, int mode,
                      items_work *work)
{
    if (argc < 3)
        return srv.WrongArity(ctx);
    server_key *key;
    bly_filter *f = bly_to_use(ctx, argv[1], mode, &key);
    items it = { 0 };
    if (f && !bly_is_locked(ctx, f) &&
        items_take(ctx, argv + 2, argc - 2, &it)) {
        /* As the filter says what its keys are: an item that is not of that
         * type is an error, not a 0. */
        if (bly_hash_as(bly_hasher_of(f), bly_keying_of(f), BLY_KEYS_TEXT,
                        it.keys, it.n, it.hashes, NULL))
            reply_library(ctx);
        else
            work(ctx, argv, f, &it);
    }
    items_free(&it);
    bly_close(key);
    return SERVER_OK;
}

/* Did adding those of a bitmap change a filter? One that counts its keys, can
 * give them back or forgets them remembers that one came again; and one that
 * has values for its keys may have had another for it (attenuated: it was a
 * neighbour's). */
static bool adding_changes(const bly_filter *f, const uint64_t *fresh,
                           size_t done)
{
    bool any = false;
    for (size_t i = 0; i < BLY_BITMAP_WORDS(done); i++)
        any |= fresh[i] != 0;
    return any || (done && filter_can(f, BLY_CAN(REMOVE) | BLY_CAN(COUNT) |
                                             BLY_CAN(TICK) | BLY_CAN(GET)));
}

/* Tell replicas and the log that the first n items of a keyed filter were added
 * or removed, after the time: hashes, which are also taken where the secret is
 * not known, so that no replica falls behind. */
static void tell_hashes(server_ctx *ctx, server_string *name,
                        const bly_filter *f, const items *it, size_t n,
                        const char *operation)
{
    unsigned char *to = (unsigned char *)it->numbers;
    for (size_t i = 0; i < 8 * n; i++)
        to[i] = (unsigned char)(it->hashes[i / 8] >> 8 * (i % 8));
    tell_time(ctx, f, name);
    srv.Replicate(ctx, "BLY.HASHED", "scb", name, operation, to, 8 * n);
}

static void add_items(server_ctx *ctx, server_string **argv, bly_filter *f,
                      items *it)
{
    size_t done = 0;
    const bly_status st =
        bly_add_hashes(f, it->hashes, it->n, it->bitmap, &done);
    if (!adding_changes(f, it->bitmap, done)) {
        ; /* nothing to tell */
    } else if (bly_secret_check_of(f)) {
        tell_hashes(ctx, argv[1], f, it, done, "ADD");
        key_changed(ctx, "bly.add", argv[1]);
    } else if (done == it->n) {
        bly_changed(ctx, f, argv[1], "bly.add");
    } else { /* what followed is not in it, here or elsewhere */
        tell_time(ctx, f, argv[1]);
        srv.Replicate(ctx, "BLY.ADD", "sv", argv[1], argv + 2, done);
        key_changed(ctx, "bly.add", argv[1]);
    }
    if (st && !done) {
        reply_library(ctx);
    } else {
        srv.ReplyWithArray(ctx, (long)it->n);
        for (size_t i = 0; i < done; i++)
            reply_bool(ctx, bit_of(it->bitmap, i));
        for (size_t i = done; i < it->n; i++)
            reply_library(ctx);
    }
}

int bly_add_command(server_ctx *ctx, server_string **argv, int argc)
{
    return with_items(ctx, argv, argc, SERVER_WRITE, add_items);
}

static void has_items(server_ctx *ctx, server_string **argv, bly_filter *f,
                      items *it)
{
    (void)argv;
    if (!filter_can(f, BLY_CAN(HAS))) {
        bly_stats stats;
        bly_peek(f, &stats);
        reply_error(ctx, "ERR %s filters cannot say whether a key is in them",
                    stats.kind);
        return;
    }
    bly_has_hashes(f, it->hashes, it->n, it->bitmap);
    srv.ReplyWithArray(ctx, (long)it->n);
    for (size_t i = 0; i < it->n; i++)
        reply_bool(ctx, bit_of(it->bitmap, i));
}

/* BLY.HASHED key ADD|REMOVE hashes, 8 bytes each, low ones first. Whoever could
 * choose hashes could undo what a secret is for: no client may. */
int bly_hashed_command(server_ctx *ctx, server_string **argv, int argc)
{
    if (argc != 4)
        return srv.WrongArity(ctx);
    const bool adds = arg_is(argv[2], "ADD");
    const bytes data = arg_bytes(argv[3]);
    if (!is_told(ctx))
        return reply_error(ctx, "ERR only a primary or a log may give hashes");
    if ((!adds && !arg_is(argv[2], "REMOVE")) || data.n % 8 || !data.n)
        return reply_error(ctx, "ERR ADD or REMOVE, and hashes of 8 bytes");
    server_key *key;
    bly_filter *f = bly_to_use(ctx, argv[1], SERVER_WRITE, &key);
    uint64_t *hashes = f ? memory_try(data.n) : NULL;
    for (size_t i = 0; i < data.n && hashes; i++)
        hashes[i / 8] |= (uint64_t)(unsigned char)data.at[i] << 8 * (i % 8);
    if (f && !hashes) {
        reply_error(ctx, "ERR Insufficient memory");
    } else if (f) {
        /* What fails here failed there as well. */
        const bly_status st =
            adds ? bly_add_hashes(f, hashes, data.n / 8, NULL, NULL)
                 : bly_remove_hashes(f, hashes, data.n / 8, NULL);
        if (st && adds)
            reply_library(ctx);
        else
            srv.ReplyWithSimpleString(ctx, "OK");
        srv.ReplicateVerbatim(ctx); /* to replicas of this one */
        key_changed(ctx, adds ? "bly.add" : "bly.remove", argv[1]);
    }
    memory_free(hashes);
    bly_close(key);
    return SERVER_OK;
}

int bly_has_command(server_ctx *ctx, server_string **argv, int argc)
{
    return with_items(ctx, argv, argc, SERVER_READ, has_items);
}

/* BLY.HASRANGE key from to ...: pairs, each with both ends. The filter says
 * what its keys are, and ends are such keys. */
int bly_hasrange_command(server_ctx *ctx, server_string **argv, int argc)
{
    if (argc < 4 || argc % 2)
        return srv.WrongArity(ctx);
    const size_t n = (size_t)(argc - 2) / 2;
    server_key *key;
    const bly_filter *f = bly_to_use(ctx, argv[1], SERVER_READ, &key);
    items it = { 0 };
    if (f && items_take(ctx, argv + 2, argc - 2, &it)) {
        bly_bytes *const from = it.keys, *const to = it.keys + n;
        for (size_t i = 0; i < n; i++) {
            from[i] = arg_item(argv[2 + 2 * i]);
            to[i] = arg_item(argv[3 + 2 * i]);
        }
        if (bly_has_ranges_as(f, BLY_KEYS_TEXT, from, to, n, it.bitmap)) {
            reply_library(ctx);
        } else {
            srv.ReplyWithArray(ctx, (long)n);
            for (size_t i = 0; i < n; i++)
                reply_bool(ctx, bit_of(it.bitmap, i));
        }
    }
    items_free(&it);
    key_close(key);
    return SERVER_OK;
}

static void remove_items(server_ctx *ctx, server_string **argv, bly_filter *f,
                         items *it)
{
    const bly_status st = bly_remove_hashes(f, it->hashes, it->n, it->statuses);
    if (st && st != BLY_EABSENT && st != BLY_EREFUSED) {
        reply_library(ctx);
    } else {
        bool changed = false;
        srv.ReplyWithArray(ctx, (long)it->n);
        for (size_t i = 0; i < it->n; i++) {
            changed |= it->statuses[i] == BLY_OK;
            if (it->statuses[i] == BLY_EREFUSED && !is_told(ctx))
                reply_error(ctx, "ERR %s",
                            st == BLY_EREFUSED ? bly_error()
                                               : bly_status_text(BLY_EREFUSED));
            else
                reply_bool(ctx, it->statuses[i] == BLY_OK);
        }
        if (changed && bly_secret_check_of(f)) {
            tell_hashes(ctx, argv[1], f, it, it->n, "REMOVE");
            key_changed(ctx, "bly.remove", argv[1]);
        } else if (changed) {
            bly_changed(ctx, f, argv[1], "bly.remove");
        }
    }
}

int bly_remove_command(server_ctx *ctx, server_string **argv, int argc)
{
    return with_items(ctx, argv, argc, SERVER_WRITE, remove_items);
}

static void count_items(server_ctx *ctx, server_string **argv, bly_filter *f,
                        items *it)
{
    (void)argv;
    if (bly_count_hashes(f, it->hashes, it->n, it->numbers)) {
        reply_library(ctx);
    } else {
        srv.ReplyWithArray(ctx, (long)it->n);
        for (size_t i = 0; i < it->n; i++)
            reply_unsigned(ctx, it->numbers[i]);
    }
}

int bly_count_command(server_ctx *ctx, server_string **argv, int argc)
{
    return with_items(ctx, argv, argc, SERVER_READ, count_items);
}

static void get_items(server_ctx *ctx, server_string **argv, bly_filter *f,
                      items *it)
{
    (void)argv;
    if (bly_get_hashes(f, it->hashes, it->n, it->numbers, it->bitmap)) {
        reply_library(ctx);
    } else {
        srv.ReplyWithArray(ctx, (long)it->n);
        for (size_t i = 0; i < it->n; i++)
            if (bit_of(it->bitmap, i))
                reply_unsigned(ctx, it->numbers[i]);
            else
                srv.ReplyWithNull(ctx);
    }
}

int bly_get_command(server_ctx *ctx, server_string **argv, int argc)
{
    return with_items(ctx, argv, argc, SERVER_READ, get_items);
}

int bly_tick_command(server_ctx *ctx, server_string **argv, int argc)
{
    long long now;
    if (argc != 3)
        return srv.WrongArity(ctx);
    if (srv.StringToLongLong(argv[2], &now) != SERVER_OK || now < 0)
        return reply_error(ctx, "ERR seconds must be a whole number");
    server_key *key;
    bly_filter *f = bly_to_use(ctx, argv[1], SERVER_WRITE, &key);
    if (f && bly_tick(f, (uint64_t)now)) {
        reply_library(ctx);
    } else if (f) {
        bly_changed(ctx, f, argv[1], "bly.tick");
        srv.ReplyWithSimpleString(ctx, "OK");
    }
    bly_close(key);
    return SERVER_OK;
}
