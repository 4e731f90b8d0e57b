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
 * Here are what a key holds, how it is made, and the table of commands.
 */
#define _GNU_SOURCE
#include "adapters/redis/bly.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "adapters/redis/config.h"
#include "adapters/redis/redis_secret.h"

enum { BLY_LIMIT, NSETTINGS };

static setting bly_settings[NSETTINGS] = {
    [BLY_LIMIT] = { .name = "bly-memory-limit", .def = 0, .max = 0x1p53 },
};

/* ------------------------------------------------------------------- values */

static tally bly_tally;
const bly_mem bly_memory = SERVER_MEMORY(&bly_tally);

/* Bytes of memory that a file takes; 0: none. */
static size_t file_memory(const held_file *file)
{
    return file ? sizeof *file + (size_t)file->nbytes : 0;
}

void file_drop(held_file *file)
{
    if (file && !file->others--)
        server_release(bly_memory.ctx, file, file_memory(file));
}

static void file_free(held_filter *h)
{
    file_drop(h->file);
    h->file = NULL;
}

void held_free(void *value)
{
    held_filter *h = value;
    if (!h)
        return;
    export_forget(h);
    bly_tally.keys--;
    bly_free(h->f);
    file_free(h);
    server_release(bly_memory.ctx, h, sizeof *h);
}

void held_stale(held_filter *h)
{
    export_forget(h);
    if (h->f && h->file)
        file_free(h);
}

void held_keep(held_filter *h, held_file *file)
{
    file->nbytes = file->nhere; /* the room that it was gathered in is more */
    bly_tally.bytes += file_memory(file);
    h->file = file;
}

held_filter *held_new(bly_filter *f)
{
    held_filter *h = server_zalloc(bly_memory.ctx, sizeof *h);
    bly_tally.keys += h != NULL;
    if (h)
        h->f = f;
    else
        bly_free(f);
    return h;
}

held_filter *held_expect(uint64_t nbytes)
{
    held_filter *h = held_new(NULL);
    if (h && nbytes < SIZE_MAX - sizeof *h->file)
        h->file =
            server_alloc(bly_memory.ctx, sizeof *h->file + (size_t)nbytes);
    if (h && h->file) {
        *h->file = (held_file){ .nbytes = nbytes };
        return h;
    }
    held_free(h);
    return NULL;
}

void held_arrived(held_filter *h, bly_filter *f)
{
    file_free(h);
    h->f = f;
}

int reply_library(server_ctx *ctx)
{
    return reply_error(ctx, "ERR %s", bly_error());
}

bool filter_can(const bly_filter *f, uint32_t ability)
{
    bly_kind_info kind;
    bly_kind_of(f, &kind);
    return kind.can & ability;
}

uint64_t limit_of_keys(server_ctx *ctx)
{
    return is_told(ctx) ? 0 : (uint64_t)bly_settings[BLY_LIMIT].value;
}

/* The time that filters were told last: a command tells replicas the same. */
static uint64_t told_time;

/* What a primary or a log tells comes with its own time. */
void tick_now(server_ctx *ctx, bly_filter *f)
{
    if (is_told(ctx) || !filter_can(f, BLY_CAN(TICK)))
        return;
    told_time = (uint64_t)time(NULL);
    bly_tick(f, told_time);
}

void tell_time(server_ctx *ctx, const bly_filter *f, server_string *name)
{
    if (filter_can(f, BLY_CAN(TICK)) && !is_told(ctx))
        srv.Replicate(ctx, "BLY.TICK", "sl", name, (long long)told_time);
}

bool bly_is_locked(server_ctx *ctx, bly_filter *f)
{
    if (secret_opens(f))
        return false;
    reply_error(ctx, "ERR the secret of this keyed filter is not here: the "
                     "setting bly-secret-file must name a file with it");
    return true;
}

bly_filter *bly_to_use(server_ctx *ctx, server_string *name, int mode,
                       server_key **key)
{
    held_filter *h = key_value(ctx, name, mode, bly_type, "ERR not found", key);
    if (h && !h->f)
        reply_error(ctx,
                    "ERR BLY.IMPORT is not finished: %llu of %llu bytes "
                    "are here",
                    (unsigned long long)h->file->nhere,
                    (unsigned long long)h->file->nbytes);
    if (!h || !h->f)
        return NULL;
    if (mode == SERVER_WRITE || filter_can(h->f, BLY_CAN(TICK)))
        held_stale(h);
    tick_now(ctx, h->f);
    if (mode == SERVER_WRITE)
        bly_limit(h->f, limit_of_keys(ctx));
    return h->f;
}

/* The place for a limit is memory: a replica has none, nor what was loaded. */
void bly_close(server_key *key)
{
    const bool ours = key && srv.ModuleTypeGetType(key) == bly_type;
    held_filter *h = ours ? srv.ModuleTypeGetValue(key) : NULL;
    if (h && h->f)
        bly_limit(h->f, 0);
    if (h && key_has_changed(key))
        h->exported = false;
    key_close(key);
}

void bly_changed(server_ctx *ctx, const bly_filter *f, server_string *name,
                 const char *event)
{
    tell_time(ctx, f, name);
    srv.ReplicateVerbatim(ctx);
    key_changed(ctx, event, name);
}

void reply_unsigned(server_ctx *ctx, uint64_t value)
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

/* ------------------------------------------------------------------- making */

enum { MAX_OPTIONS = 32 };

/* How a new filter is to be keyed. */
typedef struct keyed_wish {
    bool keyed;
    uint64_t check; /* with the secret of this check; 0: with the first */
} keyed_wish;

/* The type of keys that a word names. */
static bool read_key_type(const server_string *word, bly_key_type *out)
{
    for (int i = BLY_KEYS_TEXT; bly_key_type_name((bly_key_type)i); i++)
        if (arg_is(word, bly_key_type_name((bly_key_type)i))) {
            *out = (bly_key_type)i;
            return true;
        }
    return false;
}

/* The words after the kind: CAPACITY, FPR, BITS, SEED, KEYS, and options of the
 * kind, each with a value; and KEYED. */
static bool create_words(server_ctx *ctx, server_string **argv, int argc,
                         bly_spec *spec, bly_option *options, keyed_wish *k)
{
    for (int i = 3; i < argc; i += 2) {
        if (arg_is(argv[i], "KEYED")) {
            k->keyed = true;
            i--;
            continue;
        }
        if (i + 1 == argc) {
            srv.WrongArity(ctx);
            return false;
        }
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
        else if (arg_is(argv[i], "KEYS"))
            ok = read_key_type(argv[i + 1], &spec->keying.type);
        else if (arg_is(argv[i], "CHECK"))
            ok = sscanf(value, "%" SCNx64, &k->check) == 1 && k->check;
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
 * many, hold fewer bits per key than its defaults, which are for sizes that
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

/* Make what is wished for; as bly_new(). */
static bly_status create_filter(bly_spec *spec, const keyed_wish *k,
                                bly_filter **out)
{
    if (k->check)
        return secret_new(spec, k->check, out);
    if (k->keyed)
        spec->secret = secret_for_new();
    return bly_new(spec, out);
}

/* Replicas may have other secrets, or none: they are told which one it is. */
static void tell_creation(server_ctx *ctx, server_string **argv, int argc,
                          const bly_filter *f, const keyed_wish *k)
{
    char check[24];
    if (!k->keyed || k->check) {
        srv.ReplicateVerbatim(ctx);
        return;
    }
    snprintf(check, sizeof check, "%016" PRIx64, bly_secret_check_of(f));
    srv.Replicate(ctx, "BLY.CREATE", "vcc", argv + 1, (size_t)argc - 1, "CHECK",
                  check);
}

static int bly_create(server_ctx *ctx, server_string **argv, int argc)
{
    bly_option options[MAX_OPTIONS];
    keyed_wish keyed = { 0 };
    if (argc < 3)
        return srv.WrongArity(ctx);
    bly_spec spec = { .kind = arg_bytes(argv[2]).at,
                      .mem = &bly_memory,
                      .max_bytes = limit_of_keys(ctx) };
    if (!create_words(ctx, argv, argc, &spec, options, &keyed))
        return SERVER_OK;
    if (keyed.keyed && !keyed.check && !secret_for_new())
        return reply_error(ctx, "ERR no secret to key it with: the setting "
                                "bly-secret-file must name a file with one");
    if (keyed.check && !keyed.keyed)
        return reply_error(ctx, "ERR CHECK names the secret of a filter that "
                                "is KEYED");
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
    } else if ((st = create_filter(&spec, &keyed, &f)) == BLY_ENOTSUP) {
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
        tell_creation(ctx, argv, argc, f, &keyed);
        /* The time comes when there is a filter. */
        tell_time(ctx, f, argv[1]);
        key_changed(ctx, "bly.create", argv[1]);
        srv.ReplyWithSimpleString(ctx, "OK");
    }
    bly_close(key);
    return SERVER_OK;
}

/* --------------------------------------------------------------- the family */

static int bly_start(server_ctx *ctx)
{
    return bly_type_start(ctx) == SERVER_OK && secret_register(ctx) == SERVER_OK
               ? settings_register(ctx, bly_settings, NSETTINGS)
               : SERVER_ERR;
}

static int bly_argument(server_ctx *ctx, const char *name, server_string *value)
{
    const int taken = secret_argument(ctx, name, value);
    return taken ? taken
                 : settings_argument(ctx, bly_settings, NSETTINGS, name, value);
}

static const command_row bly_commands[] = {
    { "bly.create", "write deny-oom", "write", "1.0.0",
      "Makes an empty filter of any kind", "O(size)",
      "key kind [CAPACITY capacity:integer] [FPR fpr:double] [BITS "
      "bits:integer] [SEED seed:integer] [KEYS type] [KEYED]",
      bly_create, 0 },
    { "bly.add", "write deny-oom", "write", "1.0.0", "Adds items", "O(n)",
      "key item...", bly_add_command, 0 },
    { "bly.hashed", "write", "write", "1.0.0",
      "Adds or removes items of a keyed filter by their hashes: for replicas "
      "and "
      "logs alone",
      "O(n)", "key operation hashes", bly_hashed_command, 0 },
    { "bly.has", "readonly", "read", "1.0.0", "Whether items may be there",
      "O(n)", "key item...", bly_has_command, 0 },
    { "bly.hasrange", "readonly", "read", "1.0.0",
      "Whether any item may lie in ranges, which have both ends", "O(n)",
      "key (from to)...", bly_hasrange_command, 0 },
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
      "O(1), O(size) with FULL", "key [FULL]", bly_info_command, 0 },
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
    .count = &bly_tally,
    .start = bly_start,
    .argument = bly_argument,
};
