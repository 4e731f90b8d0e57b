/*
 * bly_whole.c - BLY.* commands on whole filters: merge, resize, compare, info
 */
#include <math.h>
#include <stdio.h>

#include "adapters/redis/bly.h"

/* May a new key hold as much as f does? Unless, an error was sent. What a
 * filter works on counts, as where one is made. */
static bool is_allowed(server_ctx *ctx, const bly_filter *f)
{
    const uint64_t limit = limit_of_keys(ctx);
    bly_stats stats;
    bly_peek(f, &stats);
    const uint64_t nbytes = stats.bits / 8;
    if (!limit || nbytes <= limit)
        return true;
    reply_error(ctx, "ERR the filter needs %llu bytes, the limit is %llu",
                (unsigned long long)nbytes, (unsigned long long)limit);
    return false;
}

/* BLY.MERGE dest src...: dest becomes the union with all of them, and is made
 * a copy of the first where it is missing. All or nothing. */
int bly_merge_command(server_ctx *ctx, server_string **argv, int argc)
{
    if (argc < 3)
        return srv.WrongArity(ctx);
    server_key *key, *from_key;
    void *value;
    const held what =
        key_open(ctx, argv[1], SERVER_WRITE, bly_type, &key, &value);
    held_filter *into = value;
    bly_filter *merged = NULL;
    bool ok = true, changes = true;
    if (what == HELD_OTHER) {
        reply_error(ctx, WRONGTYPE);
        ok = false;
    } else if (into && !into->f) {
        reply_error(ctx, "ERR BLY.IMPORT is not finished");
        ok = false;
    } else if (into) {
        held_stale(into);
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
        if (ok && merged)
            bly_limit(merged, limit_of_keys(ctx));
        if (ok &&
            (merged ? bly_merge(merged, from) : bly_clone(from, &merged))) {
            reply_library(ctx);
            ok = false;
        }
        key_close(from_key);
    }
    if (ok && !into && !is_allowed(ctx, merged))
        ok = false;
    if (ok)
        bly_limit(merged, 0); /* as bly_close() */
    if (ok && into) {
        changes = !bly_equal(into->f, merged);
        bly_free(changes ? into->f : merged);
        into->f = changes ? merged : into->f;
        into->exported &= !changes;
    } else if (ok && (into = held_new(merged))) {
        srv.ModuleTypeSetValue(key, bly_type, into);
    } else if (ok) {
        reply_error(ctx, "ERR Insufficient memory");
        ok = false;
    } else {
        bly_free(merged);
    }
    return key_written(ctx, key, argv[1], changes ? "bly.merge" : NULL,
                       ok ? NULL : "");
}

/* BLY.RESIZE key capacity: the same keys with room for more or fewer, where the
 * kind can do that without them. */
int bly_resize_command(server_ctx *ctx, server_string **argv, int argc)
{
    if (argc != 3)
        return srv.WrongArity(ctx);
    bly_spec spec = { .max_bytes = limit_of_keys(ctx) };
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
    bly_close(key);
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

int bly_compare_command(server_ctx *ctx, server_string **argv, int argc)
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
        reply_fact(ctx, "union", like.in_either);
        reply_fact(ctx, "union_sd", like.in_either_sd);
        reply_fact(ctx, "intersection", like.in_both);
        reply_fact(ctx, "intersection_sd", like.in_both_sd);
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

/* What its keys are, where it says so. */
static void reply_keying(server_ctx *ctx, const bly_filter *f)
{
    const bly_keying k = bly_keying_of(f);
    const struct {
        uint32_t form;
        const char *name;
    } forms[] = { { BLY_KEYS_FOLDED, "folded" },
                  { BLY_KEYS_TRIMMED, "trimmed" },
                  { BLY_KEYS_NO_CR, "no-cr" } };
    char text[64];
    int n = snprintf(text, sizeof text, "%s", bly_key_type_name(k.type));
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        if (k.forms & forms[i].form)
            n += snprintf(text + n, sizeof text - (size_t)n, " %s",
                          forms[i].name);
    srv.ReplyWithSimpleString(ctx, "keys");
    srv.ReplyWithSimpleString(ctx, text);
}

/* Bytes of a filter that may be read whole without keeping others waiting. */
#define INFO_BYTES (UINT64_C(2) << 20)

/* BLY.INFO key [FULL]: what only the contents tell is null where there is much
 * of them, unless it is asked for. */
int bly_info_command(server_ctx *ctx, server_string **argv, int argc)
{
    if (argc != 2 && argc != 3)
        return srv.WrongArity(ctx);
    if (argc == 3 && !arg_is(argv[2], "FULL"))
        return reply_error(ctx, "ERR the only option is FULL");
    server_key *key;
    const bly_filter *f = bly_to_use(ctx, argv[1], SERVER_READ, &key);
    if (f) {
        bly_stats s;
        bly_peek(f, &s);
        if (argc == 3 || s.bytes <= INFO_BYTES)
            bly_stat(f, &s);
        const bly_bytes note = bly_note_of(f);
        const bool typed = bly_keying_of(f).type != BLY_KEYS_UNKNOWN;
        reply_map(ctx, 10 + s.keyed + typed + (note.len > 0) + (long)s.nfacts);
        srv.ReplyWithSimpleString(ctx, "kind");
        srv.ReplyWithSimpleString(ctx, s.kind);
        if (s.keyed) { /* "locked": its secret is not here */
            srv.ReplyWithSimpleString(ctx, "keyed");
            srv.ReplyWithSimpleString(ctx, bly_hasher_of(f) ? "yes" : "locked");
        }
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
        if (typed)
            reply_keying(ctx, f);
        if (note.len) {
            srv.ReplyWithSimpleString(ctx, "note");
            srv.ReplyWithStringBuffer(ctx, note.ptr, note.len);
        }
        for (size_t i = 0; i < s.nfacts; i++)
            reply_param(ctx, &s.facts[i]);
    }
    key_close(key);
    return SERVER_OK;
}
