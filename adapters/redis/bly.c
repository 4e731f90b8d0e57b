/*
 * bly.c - BLY.*: every kind of the library, through one small set of commands
 *
 * A key holds a filter of any kind. What a kind can do is asked of the library,
 * and what it cannot is an error that names the kinds that can: a new kind
 * appears here without a line of code.
 *
 * A kind that forgets with time is told the time by the server's clock; what
 * changes a filter is replicated with the time it happened, so that a replica
 * and a log that is read later forget the same.
 *
 * BLY.IMPORT takes a .bly file in pieces. Until the last has come the key holds
 * the pieces and no filter; the file's own checksums say whether it is whole.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <bloomery.h>

#include "adapters/redis/config.h"

#define BLY_TYPE "bloomery-"
#define BLY_ENCODING 0
#define PIECE ((size_t)1 << 20)

typedef struct held_filter {
    bly_filter *f; /* NULL while a file is coming */
    unsigned char *pieces;
    uint64_t nbytes, nhere; /* of the file, and those that are here */
} held_filter;

static server_type *bly_type;

enum { BLY_LIMIT, NSETTINGS };

static setting bly_settings[NSETTINGS] = {
    [BLY_LIMIT] = { .name = "bly-memory-limit", .def = 0, .max = 0x1p53 },
};

/* ------------------------------------------------------------------- values */

static void *bly_try(void *ctx, size_t n)
{
    (void)ctx;
    return memory_try(n);
}

static void bly_untry(void *ctx, void *at, size_t n)
{
    (void)ctx;
    (void)n;
    memory_free(at);
}

static const bly_mem server_memory = { .alloc = bly_try, .release = bly_untry };

static void held_free(void *value)
{
    held_filter *h = value;
    if (!h)
        return;
    bly_free(h->f);
    memory_free(h->pieces);
    memory_free(h);
}

/* A value around a filter, which it owns; NULL, and the filter is gone. */
static held_filter *held_new(bly_filter *f)
{
    held_filter *h = memory_try(sizeof *h);
    if (h)
        h->f = f;
    else
        bly_free(f);
    return h;
}

static int reply_library(server_ctx *ctx)
{
    return reply_error(ctx, "ERR %s", bly_error());
}

static bool can(const bly_filter *f, uint32_t ability)
{
    bly_kind_info kind;
    bly_kind_of(f, &kind);
    return kind.can & ability;
}

/* Is this a primary's word, or a log's? It comes with its own time, and what
 * was allowed there is not asked again. */
static bool is_told(server_ctx *ctx)
{
    return srv.GetContextFlags(ctx) &
           (SERVER_FLAG_REPLICATED | SERVER_FLAG_LOADING);
}

static uint64_t bly_limit(server_ctx *ctx)
{
    return is_told(ctx) ? 0 : (uint64_t)bly_settings[BLY_LIMIT].value;
}

/* The time that filters were told last: a command tells replicas the same. */
static uint64_t told_time;

static void tick_now(server_ctx *ctx, bly_filter *f)
{
    if (is_told(ctx) || !can(f, BLY_CAN(TICK)))
        return;
    told_time = (uint64_t)time(NULL);
    bly_tick(f, told_time);
}

/* Replicate the time a filter was told, if it cares. */
static void tell_time(server_ctx *ctx, const bly_filter *f, server_string *name)
{
    if (can(f, BLY_CAN(TICK)) && !is_told(ctx))
        srv.Replicate(ctx, "BLY.TICK", "sl", name, (long long)told_time);
}

/* The filter in a key; NULL, and an error was sent, if there is none. */
static bly_filter *bly_to_use(server_ctx *ctx, server_string *name, int mode,
                              server_key **key)
{
    void *value;
    const held what = key_open(ctx, name, mode, bly_type, key, &value);
    const held_filter *h = value;
    if (what == HELD_NONE)
        reply_error(ctx, "ERR not found");
    else if (what == HELD_OTHER)
        reply_error(ctx, WRONGTYPE);
    else if (!h->f)
        reply_error(ctx,
                    "ERR BLY.IMPORT is not finished: %llu of %llu bytes "
                    "are here",
                    (unsigned long long)h->nhere,
                    (unsigned long long)h->nbytes);
    if (!h || !h->f)
        return NULL;
    tick_now(ctx, h->f);
    return h->f;
}

/* Replicate a command that changed a filter, after the time if that matters. */
static void bly_changed(server_ctx *ctx, const bly_filter *f,
                        server_string *name, const char *event)
{
    tell_time(ctx, f, name);
    srv.ReplicateVerbatim(ctx);
    key_changed(ctx, event, name);
}

/* ------------------------------------------------------------------- making */

enum { MAX_OPTIONS = 32 };

/* The words after the kind: CAPACITY, FPR, BITS, SEED, and options of the
 * kind, each with a value. */
static bool create_words(server_ctx *ctx, server_string **argv, int argc,
                         bly_spec *spec, bly_option *options)
{
    for (int i = 3; i + 1 < argc; i += 2) {
        const char *value = arg_bytes(argv[i + 1]).at;
        bool ok = true;
        if (arg_is(argv[i], "CAPACITY"))
            ok = bly_parse_count(value, &spec->items) && spec->items;
        else if (arg_is(argv[i], "FPR"))
            ok = bly_parse_real(value, &spec->fpr) && spec->fpr > 0 &&
                 spec->fpr < 1;
        else if (arg_is(argv[i], "BITS"))
            ok = bly_parse_count(value, &spec->bits) && spec->bits;
        else if (arg_is(argv[i], "SEED"))
            ok = bly_parse_count(value, &spec->seed);
        else if (spec->noptions < MAX_OPTIONS)
            options[spec->noptions++] =
                (bly_option){ arg_bytes(argv[i]).at, value };
        if (!ok) {
            reply_error(ctx, "ERR bad value for %s: %s", arg_bytes(argv[i]).at,
                        value);
            return false;
        }
    }
    spec->options = options;
    return true;
}

/* A filter of which nothing is said begins as BF.ADD makes one. One that grows
 * has a long way to go from there: more and smaller steps, with rates for so
 * many, hold fewer bits a key than its defaults, which are for sizes that
 * somebody thought about (docs/redis.md has the figures). */
static void nothing_said(bly_spec *spec, bly_option *options)
{
    static const bly_option far[] = { { "growth", "1.5" },
                                      { "level", "25" },
                                      { "tightening", "0.3" },
                                      { "layer", "classic" } };
    spec->items = 100;
    if (strcmp(spec->kind, "scalable") == 0) {
        spec->noptions = sizeof far / sizeof far[0];
        memcpy(options, far, sizeof far);
    }
}

static int bly_create(server_ctx *ctx, server_string **argv, int argc)
{
    bly_option options[MAX_OPTIONS];
    if (argc < 3 || argc % 2 == 0)
        return srv.WrongArity(ctx);
    bly_spec spec = { .kind = arg_bytes(argv[2]).at,
                      .mem = &server_memory,
                      .max_bytes = bly_limit(ctx) };
    if (!create_words(ctx, argv, argc, &spec, options))
        return SERVER_OK;
    if (!spec.items && !spec.bits && !spec.noptions)
        nothing_said(&spec, options);
    server_key *key;
    void *value;
    const held what =
        key_open(ctx, argv[1], SERVER_WRITE, bly_type, &key, &value);
    bly_filter *f;
    held_filter *h;
    bly_status st;
    if (what == HELD_OURS) {
        reply_error(ctx, "ERR item exists");
    } else if (what == HELD_OTHER) {
        reply_error(ctx, WRONGTYPE);
    } else if ((st = bly_new(&spec, &f)) == BLY_ENOTSUP) {
        reply_error(ctx,
                    "ERR a %s filter is built at once from all its keys: make "
                    "a file with bloomery build, and BLY.IMPORT takes it",
                    spec.kind);
    } else if (st) {
        reply_library(ctx);
    } else if (!(h = held_new(f))) {
        reply_error(ctx, "ERR Insufficient memory to create filter");
    } else {
        srv.ModuleTypeSetValue(key, bly_type, h);
        tick_now(ctx, f);
        srv.ReplicateVerbatim(ctx); /* the time comes when there is a filter */
        tell_time(ctx, f, argv[1]);
        key_changed(ctx, "bly.create", argv[1]);
        srv.ReplyWithSimpleString(ctx, "OK");
    }
    key_close(key);
    return SERVER_OK;
}

/* -------------------------------------------------------------------- items */

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
    for (size_t i = 0; i < it->n; i++) {
        const bytes b = arg_bytes(argv[i]);
        it->keys[i] = (bly_bytes){ b.at, b.n };
    }
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
    if (f && items_take(ctx, argv + 2, argc - 2, &it))
        work(ctx, argv, f, &it);
    items_free(&it);
    key_close(key);
    return SERVER_OK;
}

static void add_items(server_ctx *ctx, server_string **argv, bly_filter *f,
                      items *it)
{
    size_t done = 0;
    const bly_status st = bly_add_keys(f, it->keys, it->n, it->bitmap, &done);
    if (done == it->n) {
        bly_changed(ctx, f, argv[1], "bly.add");
    } else if (done) { /* what followed is not in it, here or elsewhere */
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

static int bly_add_command(server_ctx *ctx, server_string **argv, int argc)
{
    return with_items(ctx, argv, argc, SERVER_WRITE, add_items);
}

static void has_items(server_ctx *ctx, server_string **argv, bly_filter *f,
                      items *it)
{
    (void)argv;
    if (!can(f, BLY_CAN(HAS))) {
        bly_stats stats;
        bly_peek(f, &stats);
        reply_error(ctx, "ERR %s filters cannot say whether a key is in them",
                    stats.kind);
        return;
    }
    bly_has_keys(f, it->keys, it->n, it->bitmap);
    srv.ReplyWithArray(ctx, (long)it->n);
    for (size_t i = 0; i < it->n; i++)
        reply_bool(ctx, bit_of(it->bitmap, i));
}

static int bly_has_command(server_ctx *ctx, server_string **argv, int argc)
{
    return with_items(ctx, argv, argc, SERVER_READ, has_items);
}

static void remove_items(server_ctx *ctx, server_string **argv, bly_filter *f,
                         items *it)
{
    bly_hash_keys(bly_hasher_of(f), it->keys, it->n, it->hashes);
    const bly_status st = bly_remove_hashes(f, it->hashes, it->n, it->statuses);
    if (st && st != BLY_EABSENT && st != BLY_EREFUSED) {
        reply_library(ctx);
    } else {
        bool changed = false;
        srv.ReplyWithArray(ctx, (long)it->n);
        for (size_t i = 0; i < it->n; i++) {
            changed |= it->statuses[i] == BLY_OK;
            if (it->statuses[i] == BLY_EREFUSED)
                reply_error(ctx, "ERR %s", bly_status_text(BLY_EREFUSED));
            else
                reply_bool(ctx, it->statuses[i] == BLY_OK);
        }
        if (changed)
            bly_changed(ctx, f, argv[1], "bly.remove");
    }
}

static int bly_remove_command(server_ctx *ctx, server_string **argv, int argc)
{
    return with_items(ctx, argv, argc, SERVER_WRITE, remove_items);
}

/* A count or a value, as an integer where that holds it. */
static void reply_unsigned(server_ctx *ctx, uint64_t value)
{
    char text[24];
    if (value <= INT64_MAX) {
        srv.ReplyWithLongLong(ctx, (long long)value);
        return;
    }
    const int n =
        snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    srv.ReplyWithStringBuffer(ctx, text, (size_t)n);
}

static void count_items(server_ctx *ctx, server_string **argv, bly_filter *f,
                        items *it)
{
    (void)argv;
    bly_hash_keys(bly_hasher_of(f), it->keys, it->n, it->hashes);
    if (bly_count_hashes(f, it->hashes, it->n, it->numbers)) {
        reply_library(ctx);
    } else {
        srv.ReplyWithArray(ctx, (long)it->n);
        for (size_t i = 0; i < it->n; i++)
            reply_unsigned(ctx, it->numbers[i]);
    }
}

static int bly_count_command(server_ctx *ctx, server_string **argv, int argc)
{
    return with_items(ctx, argv, argc, SERVER_READ, count_items);
}

static void get_items(server_ctx *ctx, server_string **argv, bly_filter *f,
                      items *it)
{
    (void)argv;
    bly_hash_keys(bly_hasher_of(f), it->keys, it->n, it->hashes);
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

static int bly_get_command(server_ctx *ctx, server_string **argv, int argc)
{
    return with_items(ctx, argv, argc, SERVER_READ, get_items);
}

static int bly_tick_command(server_ctx *ctx, server_string **argv, int argc)
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
        tell_time(ctx, f, argv[1]);
        srv.ReplicateVerbatim(ctx);
        key_changed(ctx, "bly.tick", argv[1]);
        srv.ReplyWithSimpleString(ctx, "OK");
    }
    key_close(key);
    return SERVER_OK;
}

/* ------------------------------------------------------------ whole filters */

/* BLY.MERGE dest src...: dest becomes the union with all of them, and is made
 * a copy of the first where it is missing. All or nothing. */
static int bly_merge_command(server_ctx *ctx, server_string **argv, int argc)
{
    if (argc < 3)
        return srv.WrongArity(ctx);
    server_key *key, *from_key;
    void *value;
    const held what =
        key_open(ctx, argv[1], SERVER_WRITE, bly_type, &key, &value);
    held_filter *into = value;
    bly_filter *merged = NULL;
    bool ok = true;
    if (what == HELD_OTHER) {
        reply_error(ctx, WRONGTYPE);
        ok = false;
    } else if (into && !into->f) {
        reply_error(ctx, "ERR BLY.IMPORT is not finished");
        ok = false;
    } else if (into) {
        tick_now(ctx, into->f);
        if (bly_clone(into->f, &merged)) {
            reply_library(ctx);
            ok = false;
        }
    }
    for (int i = 2; i < argc && ok; i++) {
        const bly_filter *from =
            bly_to_use(ctx, argv[i], SERVER_READ, &from_key);
        ok = from != NULL;
        if (ok)
            tell_time(ctx, from, argv[i]);
        if (ok &&
            (merged ? bly_merge(merged, from) : bly_clone(from, &merged))) {
            reply_library(ctx);
            ok = false;
        }
        key_close(from_key);
    }
    if (ok && into) {
        bly_free(into->f);
        into->f = merged;
    } else if (ok && (into = held_new(merged))) {
        srv.ModuleTypeSetValue(key, bly_type, into);
    } else if (ok) {
        reply_error(ctx, "ERR Insufficient memory");
        ok = false;
    } else {
        bly_free(merged);
    }
    if (ok) {
        srv.ReplicateVerbatim(ctx);
        key_changed(ctx, "bly.merge", argv[1]);
        srv.ReplyWithSimpleString(ctx, "OK");
    }
    key_close(key);
    return SERVER_OK;
}

/* BLY.RESIZE key capacity: the same keys with room for more or fewer, where the
 * kind can do that without them. */
static int bly_resize_command(server_ctx *ctx, server_string **argv, int argc)
{
    if (argc != 3)
        return srv.WrongArity(ctx);
    bly_spec spec = { .max_bytes = bly_limit(ctx) };
    if (!bly_parse_count(arg_bytes(argv[2]).at, &spec.items) || !spec.items)
        return reply_error(ctx, "ERR capacity must be a whole number");
    server_key *key;
    bly_filter *f = bly_to_use(ctx, argv[1], SERVER_WRITE, &key), *resized;
    if (f && bly_convert(f, &spec, &resized)) {
        reply_library(ctx);
    } else if (f) {
        held_filter *h = srv.ModuleTypeGetValue(key);
        h->f = resized;
        bly_free(f);
        bly_changed(ctx, resized, argv[1], "bly.resize");
        srv.ReplyWithSimpleString(ctx, "OK");
    }
    key_close(key);
    return SERVER_OK;
}

/* A name and a number of an answer; what is not a number is null. */
static void reply_fact(server_ctx *ctx, const char *name, double value)
{
    srv.ReplyWithSimpleString(ctx, name);
    if (isfinite(value))
        srv.ReplyWithDouble(ctx, value);
    else
        srv.ReplyWithNull(ctx);
}

static int bly_compare_command(server_ctx *ctx, server_string **argv, int argc)
{
    if (argc != 3)
        return srv.WrongArity(ctx);
    server_key *a_key, *b_key = NULL;
    bly_likeness like;
    const bly_filter *a = bly_to_use(ctx, argv[1], SERVER_READ, &a_key);
    const bly_filter *b =
        a ? bly_to_use(ctx, argv[2], SERVER_READ, &b_key) : NULL;
    if (b && bly_compare(a, b, &like)) {
        reply_library(ctx);
    } else if (b) {
        reply_map(ctx, 8);
        reply_fact(ctx, "a", like.a);
        reply_fact(ctx, "b", like.b);
        reply_fact(ctx, "union", like.both);
        reply_fact(ctx, "union_sd", like.both_sd);
        reply_fact(ctx, "intersection", like.common);
        reply_fact(ctx, "intersection_sd", like.common_sd);
        reply_fact(ctx, "jaccard", like.jaccard);
        reply_fact(ctx, "containment", like.containment);
    }
    key_close(a_key);
    key_close(b_key);
    return SERVER_OK;
}

static void reply_param(server_ctx *ctx, const bly_fact *fact)
{
    srv.ReplyWithSimpleString(ctx, fact->name);
    if (fact->type == BLY_CHOICE)
        srv.ReplyWithSimpleString(ctx, fact->word);
    else if (fact->type == BLY_UINT)
        reply_unsigned(ctx, fact->uint);
    else if (isfinite(fact->real))
        srv.ReplyWithDouble(ctx, fact->real);
    else
        srv.ReplyWithNull(ctx);
}

static int bly_info_command(server_ctx *ctx, server_string **argv, int argc)
{
    if (argc != 2)
        return srv.WrongArity(ctx);
    server_key *key;
    const bly_filter *f = bly_to_use(ctx, argv[1], SERVER_READ, &key);
    if (f) {
        bly_stats s;
        bly_stat(f, &s);
        reply_map(ctx, 10 + (long)s.nfacts);
        srv.ReplyWithSimpleString(ctx, "kind");
        srv.ReplyWithSimpleString(ctx, s.kind);
        srv.ReplyWithSimpleString(ctx, "capacity");
        reply_unsigned(ctx, s.capacity);
        srv.ReplyWithSimpleString(ctx, "items_added");
        reply_unsigned(ctx, s.items_added);
        reply_fact(ctx, "items_estimate", s.items_estimate);
        reply_fact(ctx, "fill", s.fill);
        reply_fact(ctx, "fpr_now", s.fpr_now);
        reply_fact(ctx, "fpr_at_capacity", s.fpr_at_capacity);
        srv.ReplyWithSimpleString(ctx, "bits");
        reply_unsigned(ctx, s.bits);
        srv.ReplyWithSimpleString(ctx, "bytes");
        reply_unsigned(ctx, s.bytes);
        srv.ReplyWithSimpleString(ctx, "layers");
        reply_unsigned(ctx, s.layers);
        for (size_t i = 0; i < s.nfacts; i++)
            reply_param(ctx, &s.facts[i]);
    }
    key_close(key);
    return SERVER_OK;
}

/* ------------------------------------------------------------ .bly in pieces
 */

/* BLY.EXPORT key offset [count]: [size of the file, bytes from offset on]. */
static int bly_export(server_ctx *ctx, server_string **argv, int argc)
{
    long long offset, count = (long long)PIECE;
    if (argc != 3 && argc != 4)
        return srv.WrongArity(ctx);
    if (srv.StringToLongLong(argv[2], &offset) != SERVER_OK || offset < 0 ||
        (argc == 4 && (srv.StringToLongLong(argv[3], &count) != SERVER_OK ||
                       count < 1 || count > (long long)(64 * PIECE))))
        return reply_error(ctx,
                           "ERR offset and count must be whole numbers, "
                           "count up to %zu",
                           64 * PIECE);
    server_key *key;
    const bly_filter *f = bly_to_use(ctx, argv[1], SERVER_READ, &key);
    unsigned char *piece = f ? memory_try((uint64_t)count) : NULL;
    if (f && !piece) {
        reply_error(ctx, "ERR Insufficient memory");
    } else if (f) {
        const size_t n =
            bly_write_part(f, (uint64_t)offset, piece, (size_t)count);
        srv.ReplyWithArray(ctx, 2);
        srv.ReplyWithLongLong(ctx, (long long)bly_written_bytes(f));
        srv.ReplyWithStringBuffer(ctx, (const char *)piece, n);
    }
    memory_free(piece);
    key_close(key);
    return SERVER_OK;
}

/* The first piece makes the key, with room for all. */
static held_filter *import_begin(server_ctx *ctx, uint64_t nbytes)
{
    const uint64_t limit = bly_limit(ctx);
    if (limit && nbytes > limit) {
        reply_error(ctx, "ERR the file is larger than bly-memory-limit allows");
        return NULL;
    }
    held_filter *h = memory_try(sizeof *h);
    if (h)
        h->pieces = memory_try_raw(nbytes);
    if (!h || !h->pieces) {
        held_free(h);
        reply_error(ctx, "ERR Insufficient memory");
        return NULL;
    }
    h->nbytes = nbytes;
    return h;
}

/* The last piece is here: the file becomes a filter. */
static bool import_end(server_ctx *ctx, held_filter *h)
{
    const bly_access how = { .mem = &server_memory };
    if (bly_load(h->pieces, (size_t)h->nbytes, &how, &h->f)) {
        reply_library(ctx);
        return false;
    }
    memory_free(h->pieces);
    h->pieces = NULL;
    return true;
}

/* BLY.IMPORT key offset size data, in order. */
static int bly_import(server_ctx *ctx, server_string **argv, int argc)
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
    bool ok = false;
    if (what == HELD_OTHER)
        reply_error(ctx, WRONGTYPE);
    else if (h && h->f)
        reply_error(ctx, "ERR item exists");
    else if (h ? (uint64_t)size != h->nbytes || (uint64_t)offset != h->nhere
               : offset != 0)
        reply_error(ctx,
                    "ERR pieces must come in order: %llu of %llu bytes "
                    "are here",
                    (unsigned long long)(h ? h->nhere : 0),
                    (unsigned long long)(h ? h->nbytes : (uint64_t)size));
    else if (h || (h = import_begin(ctx, (uint64_t)size)))
        ok = true;
    if (ok && !value)
        srv.ModuleTypeSetValue(key, bly_type, h);
    if (ok) {
        memcpy(h->pieces + offset, data.at, data.n);
        h->nhere += data.n;
        if (h->nhere < h->nbytes || import_end(ctx, h)) {
            key_changed(ctx, "bly.import", argv[1]);
            srv.ReplyWithSimpleString(ctx, "OK");
        } else {
            srv.DeleteKey(key); /* damaged: nothing of it stays */
        }
        srv.ReplicateVerbatim(ctx);
    }
    key_close(key);
    return SERVER_OK;
}

/* --------------------------------------------------------------- the server */

static bool save_piece(void *io, const void *data, size_t n)
{
    for (size_t at = 0; at < n; at += PIECE)
        srv.SaveStringBuffer(io, (const char *)data + at,
                             n - at < PIECE ? n - at : PIECE);
    return true;
}

/* u 1 and the file in pieces, a piece of no bytes at the end; or u 0 for an
 * import that is not finished: its sizes, then its bytes. */
static void held_save(server_io *io, void *value)
{
    const held_filter *h = value;
    srv.SaveUnsigned(io, h->f != NULL);
    if (h->f) {
        bly_write(h->f, save_piece, io);
    } else {
        srv.SaveUnsigned(io, h->nbytes);
        srv.SaveUnsigned(io, h->nhere);
        save_piece(io, h->pieces, (size_t)h->nhere);
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
        const bly_access how = { .mem = &server_memory };
        bly_filter *f;
        if (!bly_read(load_piece, &p, &how, &f))
            h = held_new(f);
    } else {
        const uint64_t nbytes = srv.LoadUnsigned(io);
        const uint64_t nhere = srv.LoadUnsigned(io);
        h = !srv.IsIOError(io) && nbytes && nhere < nbytes
                ? memory_try(sizeof *h)
                : NULL;
        if (h) {
            *h = (held_filter){ .nbytes = nbytes, .nhere = nhere };
            h->pieces = memory_try_raw(nbytes);
            if (!h->pieces ||
                load_piece(&p, h->pieces, (size_t)nhere) != (int64_t)nhere) {
                held_free(h);
                h = NULL;
            }
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
    if (!h->f)
        return sizeof *h + (size_t)h->nbytes;
    bly_peek(h->f, &stats);
    return sizeof *h + (size_t)stats.bytes;
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
        bly_write(h->f, digest_piece, md);
    else
        digest_piece(md, h->pieces, (size_t)h->nhere);
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
        some = n - done < PIECE ? n - done : PIECE;
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
    rewriting w = { .io = io, .key = key, .nbytes = h->nbytes };
    if (h->f) {
        w.nbytes = bly_written_bytes(h->f);
        bly_write(h->f, rewrite_piece, &w);
    } else {
        rewrite_piece(&w, h->pieces, (size_t)h->nhere);
    }
}

static int held_defrag(server_defrag *ctx, server_string *key, void **value)
{
    (void)key;
    memory_moved(ctx, value);
    memory_moved(ctx, &((held_filter *)*value)->pieces);
    return 0;
}

static int bly_start(server_ctx *ctx)
{
    server_methods methods = {
        .version = 4,
        .rdb_load = held_load,
        .rdb_save = held_save,
        .aof_rewrite = held_rewrite,
        .mem_usage = held_mem_usage,
        .free = held_free,
        .digest = held_digest,
        .copy = held_copy,
        .defrag = held_defrag,
    };
    bly_type = srv.CreateDataType(ctx, BLY_TYPE, BLY_ENCODING, &methods);
    return bly_type ? settings_register(ctx, bly_settings, NSETTINGS)
                    : SERVER_ERR;
}

static int bly_argument(server_ctx *ctx, const char *name, server_string *value)
{
    return settings_argument(ctx, bly_settings, NSETTINGS, name, value);
}

static const command_row bly_commands[] = {
    { "bly.create", "write deny-oom", "write", "1.0.0",
      "Makes an empty filter of any kind", "O(size)",
      "key kind [CAPACITY capacity:integer] [FPR fpr:double] [BITS "
      "bits:integer] [SEED seed:integer]",
      bly_create, 0 },
    { "bly.add", "write deny-oom", "write", "1.0.0", "Adds items", "O(n)",
      "key item...", bly_add_command, 0 },
    { "bly.has", "readonly", "read", "1.0.0", "Whether items may be there",
      "O(n)", "key item...", bly_has_command, 0 },
    { "bly.remove", "write", "write", "1.0.0", "Takes items out", "O(n)",
      "key item...", bly_remove_command, 0 },
    { "bly.count", "readonly", "read", "1.0.0", "How often items were added",
      "O(n)", "key item...", bly_count_command, 0 },
    { "bly.get", "readonly", "read", "1.0.0", "Values stored for items", "O(n)",
      "key item...", bly_get_command, 0 },
    { "bly.tick", "write", "write", "1.0.0",
      "Tells a filter that forgets what time it is", "O(1)",
      "key seconds:integer", bly_tick_command, 0 },
    { "bly.merge", "write deny-oom", "write", "1.0.0",
      "Makes a filter the union with others", "O(n * size)",
      "destination source...", bly_merge_command, -1 },
    { "bly.resize", "write deny-oom", "write", "1.0.0",
      "Gives a filter room for more items or fewer", "O(size)",
      "key capacity:integer", bly_resize_command, 0 },
    { "bly.compare", "readonly", "read", "1.0.0", "How much two filters share",
      "O(size)", "key other", bly_compare_command, -1 },
    { "bly.info", "readonly", "read", "1.0.0", "What a filter is, and holds",
      "O(size)", "key", bly_info_command, 0 },
    { "bly.export", "readonly", "read", "1.0.0",
      "Gives a filter out as a .bly file, in pieces", "O(n)",
      "key offset:integer [count:integer]", bly_export, 0 },
    { "bly.import", "write deny-oom", "write", "1.0.0",
      "Takes a .bly file in pieces", "O(n)",
      "key offset:integer size:integer data", bly_import, 0 },
    { 0 },
};

const family family_bly = {
    .category = "bly",
    .commands = bly_commands,
    .start = bly_start,
    .argument = bly_argument,
};
