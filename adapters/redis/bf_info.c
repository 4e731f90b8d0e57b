/*
 * bf_info.c - BF.CARD, INFO and DEBUG: what a Bloom filter is made of
 *
 * Fields and their names are RedisBloom's; filters of valkey-bloom have some
 * more, and the form of replies that its clients know.
 */
#include <stdio.h>

#include "adapters/redis/bf.h"

int bf_card(server_ctx *ctx, server_string **argv, int argc)
{
    if (argc != 2)
        return srv.WrongArity(ctx);
    server_key *key;
    bly_foreign *f;
    if (bf_open(ctx, argv[1], SERVER_READ, &key, &f) == HELD_OTHER)
        reply_error(ctx, WRONGTYPE);
    else
        srv.ReplyWithLongLong(ctx, f ? (long long)value_sizes(f).items : 0);
    key_close(key);
    return SERVER_OK;
}

/* A field of BF.INFO: how it is asked for, how it is called, and its value. */
typedef struct info_field {
    const char *word, *name;
    void (*reply)(server_ctx *ctx, const bly_foreign *f);
    bool valkey;  /* only of filters of valkey-bloom */
    bool scaling; /* only of those that grow */
} info_field;

static void reply_capacity(server_ctx *ctx, const bly_foreign *f)
{
    srv.ReplyWithLongLong(ctx, (long long)value_sizes(f).capacity);
}

static void reply_size(server_ctx *ctx, const bly_foreign *f)
{
    srv.ReplyWithLongLong(ctx, (long long)value_sizes(f).counted);
}

static void reply_filters(server_ctx *ctx, const bly_foreign *f)
{
    srv.ReplyWithLongLong(ctx, (long long)bly_foreign_nparts(f));
}

static void reply_items(server_ctx *ctx, const bly_foreign *f)
{
    srv.ReplyWithLongLong(ctx, (long long)value_sizes(f).items);
}

static void reply_rate(server_ctx *ctx, const bly_foreign *f)
{
    char text[40];
    bly_foreign_sizes first;
    bly_foreign_size(f, 0, &first);
    /* The capacity that was asked for. A filter that grows by RedisBloom's
     * rules may have more by now; then this is what it really has. */
    const int n = snprintf(text, sizeof text, "%.6g",
                           bf_is_valkey(f) ? first.fpr_planned
                                           : value_fact(f, "fpr_of_chain"));
    srv.ReplyWithStringBuffer(ctx, text, (size_t)n);
}

static void reply_expansion(server_ctx *ctx, const bly_foreign *f)
{
    const uint32_t expansion = bf_expansion(f);
    if (expansion)
        srv.ReplyWithLongLong(ctx, (long long)expansion);
    else
        srv.ReplyWithNull(ctx);
}

static void reply_tightening(server_ctx *ctx, const bly_foreign *f)
{
    char text[40];
    const int n =
        snprintf(text, sizeof text, "%.6g", value_fact(f, "tightening"));
    srv.ReplyWithStringBuffer(ctx, text, (size_t)n);
}

static void reply_max_capacity(server_ctx *ctx, const bly_foreign *f)
{
    srv.ReplyWithLongLong(ctx, (long long)bf_scales_to(f));
}

static const info_field info_fields[] = {
    { "CAPACITY", "Capacity", reply_capacity, false, false },
    { "SIZE", "Size", reply_size, false, false },
    { "FILTERS", "Number of filters", reply_filters, false, false },
    { "ITEMS", "Number of items inserted", reply_items, false, false },
    { "ERROR", "Error rate", reply_rate, true, false },
    { "EXPANSION", "Expansion rate", reply_expansion, false, false },
    { "TIGHTENING", "Tightening ratio", reply_tightening, true, true },
    { "MAXSCALEDCAPACITY", "Max scaled capacity", reply_max_capacity, true,
      true },
};
#define NFIELDS (sizeof info_fields / sizeof info_fields[0])

static bool has_field(const bly_foreign *f, const info_field *field)
{
    return (!field->valkey || bf_is_valkey(f)) &&
           (!field->scaling || bf_expansion(f));
}

static void info_one(server_ctx *ctx, const bly_foreign *f, server_string *word)
{
    for (size_t i = 0; i < NFIELDS; i++) {
        const info_field *field = &info_fields[i];
        /* The rate of any filter can be asked for. */
        if (!arg_is(word, field->word) ||
            (!has_field(f, field) && field->reply != reply_rate))
            continue;
        if (!bf_is_valkey(f) && is_resp3(ctx)) {
            reply_map(ctx, 1);
            srv.ReplyWithSimpleString(ctx, field->name);
        } else if (!bf_is_valkey(f)) {
            srv.ReplyWithArray(ctx, 1);
        }
        field->reply(ctx, f);
        return;
    }
    reply_error(ctx, bf_is_valkey(f) ? "ERR invalid information value"
                                     : "Invalid information value");
}

int bf_info(server_ctx *ctx, server_string **argv, int argc)
{
    if (argc < 2 || argc > 3)
        return srv.WrongArity(ctx);
    server_key *key;
    const bly_foreign *f = bf_to_read(ctx, argv[1], &key);
    if (f && argc == 3) {
        info_one(ctx, f, argv[2]);
    } else if (f) {
        long n = 0;
        for (size_t i = 0; i < NFIELDS; i++)
            n += has_field(f, &info_fields[i]);
        if (!bf_is_valkey(f))
            reply_map(ctx, n);
        else
            srv.ReplyWithArray(ctx, 2 * n);
        for (size_t i = 0; i < NFIELDS; i++)
            if (has_field(f, &info_fields[i])) {
                srv.ReplyWithSimpleString(ctx, info_fields[i].name);
                info_fields[i].reply(ctx, f);
            }
    }
    key_close(key);
    return SERVER_OK;
}

int bf_debug(server_ctx *ctx, server_string **argv, int argc)
{
    if (argc != 2)
        return srv.WrongArity(ctx);
    server_key *key;
    const bly_foreign *f = bf_to_read(ctx, argv[1], &key);
    if (f) {
        char text[300];
        int n = snprintf(text, sizeof text, "size:%llu",
                         (unsigned long long)value_sizes(f).items);
        srv.ReplyWithArray(ctx, 1 + (long)bly_foreign_nparts(f));
        srv.ReplyWithStringBuffer(ctx, text, (size_t)n);
        for (size_t i = 0; i < bly_foreign_nparts(f); i++) {
            bly_foreign_sizes l;
            bly_foreign_size(f, i, &l);
            n = snprintf(text, sizeof text,
                         "bytes:%llu bits:%llu hashes:%u hashwidth:64 "
                         "capacity:%llu size:%llu ratio:%g",
                         (unsigned long long)l.nbytes,
                         (unsigned long long)l.bits, l.k,
                         (unsigned long long)l.capacity,
                         (unsigned long long)l.items, l.fpr_planned);
            srv.ReplyWithStringBuffer(ctx, text, (size_t)n);
        }
    }
    key_close(key);
    return SERVER_OK;
}
