/*
 * table_write.c - a sorted table is written, entry by entry
 *
 * Blocks go out as they become full. What stands behind them stays in memory
 * until the end: the index, and the hashes of the keys in a builder, which
 * keeps them in a file when they are many.
 */
#include <string.h>

#include "apps/table/table_file.h"
#include "base/byte_order.h"
#include "io/varint.h"

#define BLOCK_BYTES ((size_t)4096)

static bool put_bytes(struct table_writer *w, const void *bytes, size_t n)
{
    w->done += n;
    w->failed = w->failed || !w->put(w->ctx, bytes, n);
    return !w->failed;
}

static bool end_block(struct table_writer *w)
{
    unsigned char sum[TABLE_SUM_BYTES];
    put_le(sum, table_sum(w->block.at, w->block.len), TABLE_SUM_BYTES);
    const bool ok = varint_put(&w->index, w->block.len) &&
                    put_bytes(w, w->block.at, w->block.len) &&
                    put_bytes(w, sum, TABLE_SUM_BYTES);
    w->block.len = 0;
    w->nblocks++;
    return ok;
}

/* A record behind the one of w->last, unless a block begins with it. */
static bool put_record(struct table_writer *w, const struct table_entry *e)
{
    const char *const key = e->key.ptr;
    size_t shared = 0;
    while (w->block.len && shared < e->key.len && shared < w->last.len &&
           key[shared] == w->last.at[shared])
        shared++;
    if (!w->block.len && !(varint_put(&w->index, e->key.len) &&
                           block_put(&w->index, key, e->key.len)))
        return false;
    return varint_put(&w->block, shared) &&
           varint_put(&w->block, e->key.len - shared) &&
           varint_put(&w->block, e->deleted ? 0 : (uint64_t)e->value.len + 1) &&
           block_put(&w->block, key + shared, e->key.len - shared) &&
           (e->deleted || block_put(&w->block, e->value.ptr, e->value.len));
}

/* Unless something else was said: it was the memory, or the file. */
static bool writer_failed(struct table_writer *w, char *why)
{
    return table_fail(why, w->failed ? "cannot be written" : "out of memory");
}

bool table_writer_new(struct table_writer *w, const bly_spec *filter,
                      bly_put *put, void *ctx, char why[TABLE_WHY])
{
    *w = (struct table_writer){ .put = put, .ctx = ctx };
    if (bly_builder_new(filter, &w->filter))
        return table_fail(why, bly_error());
    return put_bytes(w, TABLE_MAGIC, 8) || writer_failed(w, why);
}

bool table_writer_add(struct table_writer *w, const struct table_entry *e,
                      char why[TABLE_WHY])
{
    const uint64_t hash =
        bly_hash(bly_builder_hasher(w->filter), e->key.ptr, e->key.len);
    if (bly_builder_add(w->filter, &hash, NULL, 1))
        return table_fail(why, bly_error());
    bool ok = put_record(w, e);
    w->last.len = 0;
    ok = ok && block_put(&w->last, e->key.ptr, e->key.len) &&
         (w->block.len < BLOCK_BYTES || end_block(w));
    w->records++;
    w->deleted += e->deleted;
    return ok || writer_failed(w, why);
}

static bool put_block_bytes(void *ctx, const void *bytes, size_t n)
{
    return block_put(ctx, bytes, n);
}

/* The .bly file of the filter. */
static bool make_filter(struct table_writer *w, struct block *out, char *why)
{
    bly_stats stats;
    bly_filter *f;
    if (bly_builder_finish(w->filter, 0, &f))
        return table_fail(why, bly_error());
    bly_peek(f, &stats);
    const bool ok = stats.bytes > table_filter_most(w->records)
                        ? table_fail(why, TABLE_FILTER_TOO_LARGE)
                        : !bly_write(f, put_block_bytes, out) ||
                              table_fail(why, bly_error());
    bly_free(f);
    return ok;
}

static bool put_footer(struct table_writer *w,
                       const uint64_t words[TABLE_WORDS])
{
    unsigned char footer[TABLE_FOOTER];
    for (size_t i = 0; i < TABLE_WORDS; i++)
        put_le(footer + 8 * i, words[i], 8);
    put_le(footer + (size_t)8 * TABLE_FOOTER_SUM,
           table_sum(footer, (size_t)8 * TABLE_FOOTER_SUM), 8);
    memcpy(footer + (size_t)8 * TABLE_WORDS, TABLE_MAGIC, 8);
    return put_bytes(w, footer, sizeof footer);
}

bool table_writer_end(struct table_writer *w, char why[TABLE_WHY])
{
    struct block filter = { 0 };
    bool ok = (!w->block.len || end_block(w)) || writer_failed(w, why);
    ok = ok && (!w->records || make_filter(w, &filter, why));
    const uint64_t words[TABLE_WORDS] = {
        [TABLE_VERSION] = 1,
        [TABLE_RECORDS] = w->records,
        [TABLE_DELETED_RECORDS] = w->deleted,
        [TABLE_BLOCKS] = w->nblocks,
        [TABLE_INDEX] = w->done,
        [TABLE_FILTER] = w->done + w->index.len,
        [TABLE_LAST] = w->done + w->index.len + filter.len,
        [TABLE_INDEX_SUM] = table_sum(w->index.at, w->index.len),
        [TABLE_FILTER_SUM] = table_sum(filter.at, filter.len),
        [TABLE_LAST_SUM] = table_sum(w->last.at, w->last.len),
    };
    ok = ok &&
         ((put_bytes(w, w->index.at, w->index.len) &&
           put_bytes(w, filter.at, filter.len) &&
           put_bytes(w, w->last.at, w->last.len) && put_footer(w, words)) ||
          writer_failed(w, why));
    block_free(&filter);
    return ok;
}

void table_writer_free(struct table_writer *w)
{
    bly_builder_free(w->filter);
    block_free(&w->block);
    block_free(&w->index);
    block_free(&w->last);
}

bool table_write(const struct table_entry *entries, size_t n,
                 const bly_spec *filter, bly_put *put, void *ctx,
                 char why[TABLE_WHY])
{
    struct table_writer w;
    bool ok = table_writer_new(&w, filter, put, ctx, why);
    for (size_t i = 0; i < n && ok; i++)
        ok = table_writer_add(&w, &entries[i], why);
    ok = ok && table_writer_end(&w, why);
    table_writer_free(&w);
    return ok;
}
