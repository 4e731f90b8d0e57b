/*
 * table_file.c - a sorted table is opened, asked, read through and checked
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

uint64_t table_sum(const void *bytes, size_t n)
{
    static const bly_hasher hasher = { .id = BLY_HASH_XXH3 };
    return bly_hash(&hasher, n ? bytes : "", n);
}

bool table_fail(char *why, const char *text)
{
    snprintf(why, TABLE_WHY, "%s", text);
    return false;
}

int table_order(bly_bytes a, bly_bytes b)
{
    const size_t n = a.len < b.len ? a.len : b.len;
    const int order = n ? memcmp(a.ptr, b.ptr, n) : 0;
    return order ? order : a.len < b.len ? -1 : a.len > b.len;
}

/* ------------------------------------------------------------------ reading */

static bool get_text(struct table_cursor *c, uint64_t n, bly_bytes *out)
{
    if (n > (uint64_t)(c->end - c->at))
        return false;
    *out = (bly_bytes){ c->at, (size_t)n };
    c->at += n;
    return true;
}

static bool open_index(struct table *t, struct table_cursor index, uint64_t end,
                       uint64_t nblocks)
{
    size_t at = 8;
    /* An entry takes two bytes at least, so nblocks is not a promise. */
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
            end - at - n < TABLE_SUM_BYTES)
            return false;
        if (i > 0 && table_order(b[-1].first, b->first) >= 0)
            return false;
        b->at = at;
        b->n = (size_t)n;
        at += b->n + TABLE_SUM_BYTES;
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
        return table_fail(why, "an unknown version of the format");
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
    if (w[TABLE_INDEX_SUM] != table_sum(index, (size_t)(filter - index)) ||
        !open_index(t, (struct table_cursor){ index, filter }, w[TABLE_INDEX],
                    w[TABLE_BLOCKS]))
        return table_fail(why, "its index is damaged");
    if (w[TABLE_LAST_SUM] != table_sum(last, t->last.len) ||
        (t->nblocks &&
         table_order(t->blocks[t->nblocks - 1].first, t->last) > 0))
        return table_fail(why, "its last key is damaged");
    if (!t->nblocks)
        return t->filter_bytes == 0 || table_fail(why, "its filter is damaged");
    /* A record has 3 bytes at least, whatever the footer says. */
    const bly_access how = {
        .max_bytes =
            table_filter_most(t->records < t->n / 3 ? t->records : t->n / 3)
    };
    const bly_status st = bly_load(filter, t->filter_bytes, &how, &t->filter);
    if (st == BLY_ERANGE)
        return table_fail(why, TABLE_FILTER_TOO_LARGE);
    if (st || w[TABLE_FILTER_SUM] != table_sum(filter, t->filter_bytes))
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
        words[TABLE_FOOTER_SUM] !=
            table_sum(footer, (size_t)8 * TABLE_FOOTER_SUM))
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
static bool get_record(struct table *t, struct table_cursor *c,
                       bly_bytes *value, bool *deleted)
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
        b->sound = get_le(t->at + b->at + b->n, TABLE_SUM_BYTES) ==
                   table_sum(t->at + b->at, b->n);
    return b->sound;
}

static struct table_cursor block_start(struct table *t,
                                       const struct table_block *b)
{
    t->key.len = 0;
    return (struct table_cursor){ t->at + b->at, t->at + b->at + b->n };
}

/* The block that has the key, if any does: the last one whose first key is not
 * above it. There is one. */
static struct table_block *block_of(const struct table *t, bly_bytes key)
{
    size_t behind;
    LOWER_BOUND(behind, t->nblocks,
                table_order(t->blocks[behind].first, key) <= 0);
    return &t->blocks[behind ? behind - 1 : 0];
}

enum table_found table_find(struct table *t, bly_bytes key, enum table_use use,
                            struct table_counts *counts, bly_bytes *value,
                            char why[TABLE_WHY])
{
    counts->tables++;
    if (!t->nblocks ||
        (use & TABLE_RANGES &&
         (table_order(key, t->first) < 0 || table_order(key, t->last) > 0))) {
        counts->by_range++;
        return TABLE_ABSENT;
    }
    if (use & TABLE_FILTERS && !bly_has(t->filter, key.ptr, key.len)) {
        counts->by_filter++;
        return TABLE_ABSENT;
    }
    struct table_block *const b = block_of(t, key);
    struct table_cursor c = block_start(t, b);
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
        const int order = table_order(key_at(t), key);
        if (order == 0)
            return deleted ? TABLE_DELETED : TABLE_VALUE;
        if (order > 0)
            break;
    }
    counts->falsely++;
    return TABLE_ABSENT;
}

/* ---------------------------------------------------------- reading through */

void table_from(struct table_reader *r, struct table *t, bly_bytes key)
{
    *r = (struct table_reader){ .t = t, .from = key };
    if (t->nblocks)
        r->block = (size_t)(block_of(t, key) - t->blocks);
}

enum table_found table_next(struct table_reader *r, char why[TABLE_WHY])
{
    struct table *const t = r->t;
    do {
        if (r->c.at == r->c.end) {
            if (r->block == t->nblocks)
                return TABLE_ABSENT;
            struct table_block *const b = &t->blocks[r->block++];
            r->c = block_start(t, b);
            if (!is_sound(t, b)) {
                snprintf(why, TABLE_WHY, "its block at byte %zu is damaged",
                         b->at);
                return TABLE_DAMAGED;
            }
        }
        if (!get_record(t, &r->c, &r->value, &r->deleted)) {
            table_fail(why, "a record in it cannot be read");
            return TABLE_DAMAGED;
        }
        r->key = key_at(t);
    } while (table_order(r->key, r->from) < 0);
    return r->deleted ? TABLE_DELETED : TABLE_VALUE;
}

/* ----------------------------------------------------------------- checking */

/* The records of a block: rising, the first one as the index says, all known to
 * the filter. `before` has the last key of the block before, and gets this
 * one's. */
static bool check_block(struct table *t, struct table_block *b,
                        struct block *before, uint64_t *nrecords,
                        uint64_t *ndeleted, const char **wrong)
{
    struct table_cursor c = block_start(t, b);
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
        if (first && table_order(key, b->first) != 0)
            return false;
        *wrong = "has keys that do not rise";
        if (*nrecords &&
            table_order((bly_bytes){ before->at, before->len }, key) >= 0)
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
        ok = table_fail(why,
                        "it does not have as many records as its footer says");
    if (ok && table_order((bly_bytes){ before.at, before.len }, t->last) != 0)
        ok = table_fail(why, "its last key is not the one that it says");
    block_free(&before);
    return ok;
}
