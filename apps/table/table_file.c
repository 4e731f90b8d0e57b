/*
 * table_file.c - an immutable sorted table in a file, with a filter
 *
 * A lookup compares the key with the first and the last one, asks the filter,
 * and only then searches the index for the one block that can have it and reads
 * that. Bytes may be anything: every number is checked before it is used, and
 * what does not agree with its checksum is an error, never "absent".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/table/table_file.h"
#include "base/search.h"
#include "io/filters.h"
#include "base/byte_order.h"
#include "io/varint.h"

#define BLOCK_BYTES ((size_t)4096)
#define SUM_BYTES 8

static const bly_hasher table_hasher = { .id = BLY_HASH_XXH3 };

static uint64_t sum_of(const void *bytes, size_t n)
{
    return bly_hash(&table_hasher, n ? bytes : "", n);
}

static bool table_fail(char *why, const char *text)
{
    snprintf(why, TABLE_WHY, "%s", text);
    return false;
}

static int order_of(bly_bytes a, bly_bytes b)
{
    const size_t n = a.len < b.len ? a.len : b.len;
    const int order = n ? memcmp(a.ptr, b.ptr, n) : 0;
    return order ? order : a.len < b.len ? -1 : a.len > b.len;
}

/* ------------------------------------------------------------------ writing */

struct writing {
    bly_put *put;
    void *ctx;
    uint64_t done; /* bytes put */
    struct block block, index;
    uint64_t nblocks;
    bool failed;
};

static bool put_bytes(void *ctx, const void *bytes, size_t n)
{
    struct writing *const w = ctx;
    w->done += n;
    w->failed = w->failed || !w->put(w->ctx, bytes, n);
    return !w->failed;
}

static bool end_block(struct writing *w)
{
    unsigned char sum[SUM_BYTES];
    put_le(sum, sum_of(w->block.at, w->block.len), SUM_BYTES);
    const bool ok = varint_put(&w->index, w->block.len) &&
                    put_bytes(w, w->block.at, w->block.len) &&
                    put_bytes(w, sum, SUM_BYTES);
    w->block.len = 0;
    w->nblocks++;
    return ok;
}

/* A record behind the one of `before`, which is NULL in front of a block. */
static bool put_record(struct writing *w, const struct table_entry *before,
                       const struct table_entry *e)
{
    const char *const key = e->key.ptr;
    size_t shared = 0;
    while (before && shared < e->key.len && shared < before->key.len &&
           key[shared] == ((const char *)before->key.ptr)[shared])
        shared++;
    if (!before && !(varint_put(&w->index, e->key.len) &&
                     block_put(&w->index, key, e->key.len)))
        return false;
    return varint_put(&w->block, shared) &&
           varint_put(&w->block, e->key.len - shared) &&
           varint_put(&w->block, e->deleted ? 0 : (uint64_t)e->value.len + 1) &&
           block_put(&w->block, key + shared, e->key.len - shared) &&
           (e->deleted || block_put(&w->block, e->value.ptr, e->value.len));
}

static bool put_blocks(struct writing *w, const struct table_entry *e, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!put_record(w, w->block.len ? &e[i - 1] : NULL, &e[i]))
            return false;
        if ((w->block.len >= BLOCK_BYTES || i + 1 == n) && !end_block(w))
            return false;
    }
    return true;
}

static bool put_block_bytes(void *ctx, const void *bytes, size_t n)
{
    return block_put(ctx, bytes, n);
}

/* Bytes of memory that the filter of n keys may take: 1024 bits per key, where
 * a rate of 2^-64 takes 93. A coded filter may take a thousand times its bytes,
 * and this says which of them are no table's. */
static uint64_t filter_most(uint64_t n)
{
    return (UINT64_C(1) << 20) + 128 * n;
}

#define FILTER_TOO_LARGE "its filter takes more than 1024 bits per key"

/* The .bly file of a filter of all keys. */
static bool make_filter(const struct table_entry *e, size_t n,
                        const bly_spec *spec, struct block *out,
                        char why[TABLE_WHY])
{
    bly_stats stats;
    bly_builder *b = NULL;
    bly_filter *f = NULL;
    bly_status st = n ? bly_builder_new(spec, &b) : BLY_OK;
    for (size_t i = 0; i < n && !st; i++) {
        const uint64_t hash =
            bly_hash(bly_builder_hasher(b), e[i].key.ptr, e[i].key.len);
        st = bly_builder_add(b, &hash, NULL, 1);
    }
    if (!st && n)
        st = bly_builder_finish(b, 0, &f);
    bool ok = !st || table_fail(why, bly_error());
    if (ok && n) {
        bly_peek(f, &stats);
        ok = stats.bytes <= filter_most(n) || table_fail(why, FILTER_TOO_LARGE);
    }
    if (ok && n && bly_write(f, put_block_bytes, out))
        ok = table_fail(why, bly_error());
    bly_builder_free(b);
    bly_free(f);
    return ok;
}

static bool put_footer(struct writing *w, const uint64_t words[TABLE_WORDS])
{
    unsigned char footer[TABLE_FOOTER];
    for (size_t i = 0; i < TABLE_WORDS; i++)
        put_le(footer + 8 * i, words[i], 8);
    put_le(footer + (size_t)8 * TABLE_FOOTER_SUM,
           sum_of(footer, (size_t)8 * TABLE_FOOTER_SUM), 8);
    memcpy(footer + (size_t)8 * TABLE_WORDS, TABLE_MAGIC, 8);
    return put_bytes(w, footer, sizeof footer);
}

bool table_write(const struct table_entry *entries, size_t n,
                 const bly_spec *filter, bly_put *put, void *ctx,
                 char why[TABLE_WHY])
{
    struct writing w = { .put = put, .ctx = ctx };
    struct block of_keys = { 0 };
    const bly_bytes last = n ? entries[n - 1].key : (bly_bytes){ NULL, 0 };
    uint64_t words[TABLE_WORDS] = { [TABLE_VERSION] = 1, [TABLE_RECORDS] = n };
    bool ok = make_filter(entries, n, filter, &of_keys, why);
    if (ok)
        table_fail(why, "out of memory"); /* unless all goes well */
    ok = ok && put_bytes(&w, TABLE_MAGIC, 8) && put_blocks(&w, entries, n);
    for (size_t i = 0; i < n; i++)
        words[TABLE_DELETED_RECORDS] += entries[i].deleted;
    words[TABLE_BLOCKS] = w.nblocks;
    words[TABLE_INDEX] = w.done;
    words[TABLE_FILTER] = w.done + w.index.len;
    words[TABLE_LAST] = w.done + w.index.len + of_keys.len;
    words[TABLE_INDEX_SUM] = sum_of(w.index.at, w.index.len);
    words[TABLE_FILTER_SUM] = sum_of(of_keys.at, of_keys.len);
    words[TABLE_LAST_SUM] = sum_of(last.ptr, last.len);
    ok = ok && put_bytes(&w, w.index.at, w.index.len) &&
         put_bytes(&w, of_keys.at, of_keys.len) &&
         put_bytes(&w, last.ptr, last.len) && put_footer(&w, words);
    if (w.failed)
        table_fail(why, "cannot be written");
    block_free(&w.block);
    block_free(&w.index);
    block_free(&of_keys);
    return ok;
}

/* ------------------------------------------------------------------ reading */

/* Bytes that are read from one end to the other. */
struct cursor {
    const unsigned char *at, *end;
};

static bool get_text(struct cursor *c, uint64_t n, bly_bytes *out)
{
    if (n > (uint64_t)(c->end - c->at))
        return false;
    *out = (bly_bytes){ c->at, (size_t)n };
    c->at += n;
    return true;
}

static bool open_index(struct table *t, struct cursor index, uint64_t end,
                       uint64_t nblocks)
{
    size_t at = 8;
    /* An entry takes two bytes at least, so nblocks is no promise. */
    if (nblocks > (uint64_t)(index.end - index.at))
        return false;
    t->blocks = calloc((size_t)nblocks + 1, sizeof *t->blocks);
    if (!t->blocks)
        return false;
    for (size_t i = 0; i < nblocks; i++) {
        struct table_block *const b = &t->blocks[i];
        uint64_t nkey, n;
        if (!varint_get(&index.at, index.end, &nkey) ||
            !get_text(&index, nkey, &b->first) ||
            !varint_get(&index.at, index.end, &n) || n == 0 || n > end - at ||
            end - at - n < SUM_BYTES)
            return false;
        if (i > 0 && order_of(b[-1].first, b->first) >= 0)
            return false;
        b->at = at;
        b->n = (size_t)n;
        at += b->n + SUM_BYTES;
    }
    t->nblocks = (size_t)nblocks;
    t->first = nblocks ? t->blocks[0].first : (bly_bytes){ NULL, 0 };
    return index.at == index.end && at == end;
}

/* Where the parts are, once the footer was found to be sound. */
static bool open_parts(struct table *t, const uint64_t w[TABLE_WORDS],
                       char *why)
{
    const uint64_t end = t->n - TABLE_FOOTER;
    if (w[TABLE_VERSION] != 1)
        return table_fail(why, "a version of the format that is not known");
    if (w[TABLE_INDEX] < 8 || w[TABLE_INDEX] > w[TABLE_FILTER] ||
        w[TABLE_FILTER] > w[TABLE_LAST] || w[TABLE_LAST] > end ||
        w[TABLE_DELETED_RECORDS] > w[TABLE_RECORDS] ||
        !w[TABLE_RECORDS] != !w[TABLE_BLOCKS])
        return table_fail(why, "the footer cannot be right");
    const unsigned char *const index = t->at + w[TABLE_INDEX];
    const unsigned char *const filter = t->at + w[TABLE_FILTER];
    const unsigned char *const last = t->at + w[TABLE_LAST];
    t->filter_bytes = (size_t)(last - filter);
    t->last = (bly_bytes){ last, (size_t)(end - w[TABLE_LAST]) };
    t->records = w[TABLE_RECORDS];
    t->deleted = w[TABLE_DELETED_RECORDS];
    if (w[TABLE_INDEX_SUM] != sum_of(index, (size_t)(filter - index)) ||
        !open_index(t, (struct cursor){ index, filter }, w[TABLE_INDEX],
                    w[TABLE_BLOCKS]))
        return table_fail(why, "its index is damaged");
    if (w[TABLE_LAST_SUM] != sum_of(last, t->last.len) ||
        (t->nblocks && order_of(t->blocks[t->nblocks - 1].first, t->last) > 0))
        return table_fail(why, "its last key is damaged");
    if (!t->nblocks)
        return t->filter_bytes == 0 || table_fail(why, "its filter is damaged");
    /* A record has 3 bytes at least, whatever the footer says. */
    const bly_access how = {
        .max_bytes = filter_most(t->records < t->n / 3 ? t->records : t->n / 3)
    };
    const bly_status st = bly_load(filter, t->filter_bytes, &how, &t->filter);
    if (st == BLY_ERANGE)
        return table_fail(why, FILTER_TOO_LARGE);
    if (st || w[TABLE_FILTER_SUM] != sum_of(filter, t->filter_bytes))
        return table_fail(why, "its filter is damaged");
    bly_kind_info kind;
    bly_kind_of(t->filter, &kind);
    return !kind_unreliable(&kind) ||
           table_fail(why, "its filter has no certain answers");
}

bool table_open(struct table *t, const void *bytes, size_t n,
                char why[TABLE_WHY])
{
    *t = (struct table){ .at = bytes, .n = n };
    if (n < 8 + TABLE_FOOTER || memcmp(t->at, TABLE_MAGIC, 8) != 0)
        return table_fail(why, "not a table");
    const unsigned char *const footer = t->at + n - TABLE_FOOTER;
    uint64_t words[TABLE_WORDS];
    for (size_t i = 0; i < TABLE_WORDS; i++)
        words[i] = get_le(footer + 8 * i, 8);
    if (memcmp(footer + (size_t)8 * TABLE_WORDS, TABLE_MAGIC, 8) != 0 ||
        words[TABLE_FOOTER_SUM] != sum_of(footer, (size_t)8 * TABLE_FOOTER_SUM))
        return table_fail(why, "its end is damaged, or is missing");
    if (open_parts(t, words, why))
        return true;
    table_close(t);
    return false;
}

void table_close(struct table *t)
{
    free(t->blocks);
    bly_free(t->filter);
    block_free(&t->key);
    *t = (struct table){ 0 };
}

/* ------------------------------------------------------------------- asking */

/* The record at c: its key into t->key. False: the block is damaged, or there
 * is no memory. */
static bool get_record(struct table *t, struct cursor *c, bly_bytes *value,
                       bool *deleted)
{
    uint64_t shared, more, nvalue;
    bly_bytes suffix;
    if (!varint_get(&c->at, c->end, &shared) || shared > t->key.len ||
        !varint_get(&c->at, c->end, &more) ||
        !varint_get(&c->at, c->end, &nvalue) || !get_text(c, more, &suffix))
        return false;
    *deleted = nvalue == 0;
    *value = (bly_bytes){ NULL, 0 };
    t->key.len = (size_t)shared;
    return block_put(&t->key, suffix.ptr, suffix.len) &&
           (*deleted || get_text(c, nvalue - 1, value));
}

static bly_bytes key_at(const struct table *t)
{
    return (bly_bytes){ t->key.at, t->key.len };
}

/* Compare a block with its sum, once. */
static bool is_sound(struct table *t, struct table_block *b)
{
    if (!b->sound)
        b->sound = get_le(t->at + b->at + b->n, SUM_BYTES) ==
                   sum_of(t->at + b->at, b->n);
    return b->sound;
}

static struct cursor block_start(struct table *t, const struct table_block *b)
{
    t->key.len = 0;
    return (struct cursor){ t->at + b->at, t->at + b->at + b->n };
}

/* The block that has the key, if any does: the last one whose first key is not
 * above it. There is one. */
static struct table_block *block_of(const struct table *t, bly_bytes key)
{
    size_t behind;
    LOWER_BOUND(behind, t->nblocks,
                order_of(t->blocks[behind].first, key) <= 0);
    return &t->blocks[behind ? behind - 1 : 0];
}

enum table_found table_find(struct table *t, bly_bytes key, enum table_use use,
                            struct table_counts *counts, bly_bytes *value,
                            char why[TABLE_WHY])
{
    counts->tables++;
    if (!t->nblocks || (use & TABLE_RANGES && (order_of(key, t->first) < 0 ||
                                               order_of(key, t->last) > 0))) {
        counts->by_range++;
        return TABLE_ABSENT;
    }
    if (use & TABLE_FILTERS && !bly_has(t->filter, key.ptr, key.len)) {
        counts->by_filter++;
        return TABLE_ABSENT;
    }
    struct table_block *const b = block_of(t, key);
    struct cursor c = block_start(t, b);
    counts->blocks++;
    if (!is_sound(t, b)) {
        snprintf(why, TABLE_WHY, "its block at byte %zu is damaged", b->at);
        return TABLE_DAMAGED;
    }
    while (c.at < c.end) {
        bool deleted;
        if (!get_record(t, &c, value, &deleted)) {
            snprintf(why, TABLE_WHY,
                     "a record in its block at byte %zu cannot "
                     "be read",
                     b->at);
            return TABLE_DAMAGED;
        }
        const int order = order_of(key_at(t), key);
        if (order == 0)
            return deleted ? TABLE_DELETED : TABLE_VALUE;
        if (order > 0)
            break;
    }
    counts->falsely++;
    return TABLE_ABSENT;
}

/* ----------------------------------------------------------------- checking */

/* The records of a block: rising, the first one as the index says, all known to
 * the filter. `before` has the last key of the block before, and gets this
 * one's. */
static bool check_block(struct table *t, struct table_block *b,
                        struct block *before, uint64_t *nrecords,
                        uint64_t *ndeleted, const char **wrong)
{
    struct cursor c = block_start(t, b);
    bool first = true;
    *wrong = "does not agree with its checksum";
    if (!is_sound(t, b))
        return false;
    while (c.at < c.end) {
        bly_bytes value;
        bool deleted;
        *wrong = "has a record that cannot be read";
        if (!get_record(t, &c, &value, &deleted))
            return false;
        const bly_bytes key = key_at(t);
        *wrong = "does not begin with the key that the index has";
        if (first && order_of(key, b->first) != 0)
            return false;
        *wrong = "has keys that do not rise";
        if (*nrecords &&
            order_of((bly_bytes){ before->at, before->len }, key) >= 0)
            return false;
        *wrong = "has a key that the filter says no to";
        if (!bly_has(t->filter, key.ptr, key.len))
            return false;
        before->len = 0;
        *wrong = "is too much for the memory";
        if (!block_put(before, key.ptr, key.len))
            return false;
        first = false;
        ++*nrecords;
        *ndeleted += deleted;
    }
    return true;
}

bool table_check(struct table *t, char why[TABLE_WHY])
{
    struct block before = { 0 };
    uint64_t nrecords = 0, ndeleted = 0;
    const char *wrong = NULL;
    bool ok = true;
    for (size_t i = 0; i < t->nblocks && ok; i++) {
        ok = check_block(t, &t->blocks[i], &before, &nrecords, &ndeleted,
                         &wrong);
        if (!ok)
            snprintf(why, TABLE_WHY, "its block at byte %zu %s",
                     t->blocks[i].at, wrong);
    }
    if (ok && (nrecords != t->records || ndeleted != t->deleted))
        ok = table_fail(why, "it has not as many records as its footer says");
    if (ok && order_of((bly_bytes){ before.at, before.len }, t->last) != 0)
        ok = table_fail(why, "its last key is not the one that it says");
    block_free(&before);
    return ok;
}
