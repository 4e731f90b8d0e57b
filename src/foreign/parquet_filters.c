/*
 * parquet_filters.c - new filters for chunks, and a footer that knows of them
 *
 *     before   data                       footer   length  PAR1
 *     after    data  filter  filter  ...  footer'  length  PAR1
 *
 * Nothing before the old footer moves, so every offset in it stays right. The
 * new footer is the old one, copied, but for fields 14 and 15 (offset and
 * length of a filter) of the metadata of each chunk that got one. A field's
 * header holds the distance from the id before it, so the header of the field
 * behind them is written anew; all other bytes are those of the old footer,
 * whatever they mean.
 */
#include <string.h>

#include "core/bits.h"
#include "core/maths.h"
#include "core/sized.h"
#include "engine/bit_count.h"
#include "engine/hash_many.h"
#include "foreign/hashes.h"
#include "foreign/parquet_file.h"
#include "foreign/sbbf.h"

#define ADD_BATCH 256 /* hashes at a time */

/* Three headers and two numbers at most. */
#define FIELDS_ROOM ((size_t)5 * BLY_THRIFT_ROOM)

/* Data are written in such pieces. In one piece of some hundred megabytes, from
 * a mapped file, Linux needs six times as long. */
#define PUT_BYTES ((size_t)1 << 20)

/* Room for filters, once one is wanted. */
static bly_parquet_made *made_at(bly_parquet *p, size_t group, size_t column)
{
    if (!p->made)
        p->made = bly_mem_zalloc(&p->mem, (p->ngroups * p->ncolumns + 1) *
                                              sizeof *p->made);
    return p->made ? &p->made[group * p->ncolumns + column] : NULL;
}

/* Why a chunk can have no filter; NULL: it can. */
static const char *no_filter(const bly_parquet *p, size_t group, size_t column)
{
    bly_parquet_entry e;
    bly_parquet_entry_at(p, group, column, &e);
    return p->columns[column].type == BLY_PARQUET_BOOLEAN
               ? "BOOLEAN, for which the format has no filters"
           : e.is.encrypted      ? "encrypted"
           : e.is.elsewhere      ? "in another file"
           : e.slot.out_of_order ? "its metadata are out of order"
                                 : NULL;
}

bly_status bly_parquet_filter_begin(bly_parquet *p, size_t group, size_t column,
                                    uint64_t nvalues, double fpr)
{
    if (!p)
        return bly_fail_null("p");
    const char *const why = no_filter(p, group, column);
    bly_parquet_made *const made = made_at(p, group, column);
    if (!made)
        return bly_fail(BLY_ENOMEM, "out of memory");
    if (!(fpr > 0 && fpr < 1))
        return bly_fail(BLY_EINVAL, "a rate must be between 0 and 1");
    if (p->making || made->block.at)
        return bly_fail(BLY_EINVAL,
                        "another filter is being made, or this one has been");
    if (p->is_signed)
        return bly_fail(BLY_ENOTSUP, "its footer is signed and must not be "
                                     "changed");
    if (why)
        return bly_fail(BLY_ENOTSUP, "row group %zu, column %s: %s", group,
                        bly_parquet_name(p, column), why);
    if (p->sized_for != nvalues || !(p->sized_fpr == fpr) || p->nblocks == 0)
        p->nblocks = bly_sbbf_blocks((double)nvalues, fpr);
    p->sized_for = nvalues;
    p->sized_fpr = fpr;
    const bly_status st =
        bly_block_new(&p->mem, p->nblocks * BLY_BLOCKS_BYTES, &p->block);
    if (st)
        return st;
    bly_parquet_column is;
    bly_parquet_column_at(p, column, &is);
    p->real_width = bly_parquet_real_width(&is);
    p->has_zero = p->has_nan = false;
    p->fpr = fpr;
    p->making = made;
    return BLY_OK;
}

/* Readers ask for one zero and mean both, and for one NaN and mean all. So
 * where a chunk has one of them its filter gets both zeros, or both quiet
 * NaNs. */
static inline __attribute__((always_inline)) void
look_at(bly_parquet *p, const unsigned char *at, uint32_t width, size_t n)
{
    bool zero = false, nan = false;
    for (size_t i = 0; i < n; i++, at += width) {
        const bly_real_sort sort = bly_real_sort_of(at, width);
        zero |= sort == BLY_REAL_ZERO;
        nan |= sort == BLY_REAL_NAN;
    }
    p->has_zero |= zero;
    p->has_nan |= nan;
}

/* The compiler sees each width. */
static void look_at_reals(bly_parquet *p, const unsigned char *at, size_t n)
{
    if (p->real_width == 8)
        look_at(p, at, 8, n);
    else if (p->real_width == 4)
        look_at(p, at, 4, n);
    else
        look_at(p, at, 2, n);
}

static void add_alike(bly_parquet *p)
{
    const bly_real_sort sorts[] = { BLY_REAL_ZERO, BLY_REAL_NAN };
    for (size_t i = 0; i < 2; i++) {
        unsigned char pair[2][8];
        uint64_t hashes[2];
        if (!(sorts[i] == BLY_REAL_ZERO ? p->has_zero : p->has_nan))
            continue;
        bly_real_pair(sorts[i], p->real_width, pair);
        for (size_t j = 0; j < 2; j++)
            hashes[j] = bly_xxh64(pair[j], p->real_width, 0);
        bly_blocks_best()->add(p->block.at, p->nblocks, hashes, 2);
    }
}

void bly_parquet_filter_add(bly_parquet *p, const bly_bytes *values, size_t n)
{
    uint64_t hashes[ADD_BATCH];
    while (n) {
        const size_t some = n < ADD_BATCH ? n : ADD_BATCH;
        for (size_t i = 0; i < some; i++) {
            hashes[i] = bly_xxh64(values[i].ptr, values[i].len, 0);
            if (p->real_width && values[i].len == p->real_width)
                look_at_reals(p, values[i].ptr, 1);
        }
        bly_blocks_best()->add(p->block.at, p->nblocks, hashes, some);
        values += some;
        n -= some;
    }
}

void bly_parquet_filter_add_fixed(bly_parquet *p, const void *values,
                                  size_t width, size_t n)
{
    const unsigned char *at = values;
    uint64_t hashes[ADD_BATCH];
    if (p->real_width == width && width)
        look_at_reals(p, values, n);
    while (n) {
        const size_t some = n < ADD_BATCH ? n : ADD_BATCH;
        bly_xxh64_best()->hash(at, width, some, hashes);
        bly_blocks_best()->add(p->block.at, p->nblocks, hashes, some);
        at += some * width;
        n -= some;
    }
}

bly_status bly_parquet_filter_end_sized(bly_parquet *p, bly_parquet_filter *out,
                                        size_t size)
{
    if (!p)
        return bly_fail_null("p");
    bly_parquet_made *const e = p->making;
    if (!e)
        return bly_fail(BLY_EINVAL, "no filter was begun: call "
                                    "bly_parquet_filter_begin() first");
    add_alike(p);
    const uint64_t n = bly_sbbf_fold(p->block.at, p->nblocks, p->fpr);
    const size_t nbytes = (size_t)n * BLY_BLOCKS_BYTES;
    bly_status st = BLY_OK;
    if (n == p->nblocks) {
        e->block = p->block;
    } else {
        st = bly_block_new(&p->mem, nbytes, &e->block);
        if (!st)
            memcpy(e->block.at, p->block.at, nbytes);
        bly_block_free(&p->mem, &p->block);
    }
    e->nblocks = n;
    p->making = NULL;
    p->block = (bly_block){ 0 };
    if (!st && out) {
        const bly_sbbf s = { e->block.at, n, 0, true };
        bly_foreign_part part = { 0 };
        bly_sbbf_part(&s, &part);
        const uint64_t ones =
            bly_bits_count((const uint64_t *)(void *)e->block.at, nbytes / 8);
        const bly_parquet_filter told = {
            .nbytes = nbytes,
            .fpr = bly_sbbf_rate(NULL, &part),
            .values = bly_estimate_items((double)ones, (double)part.nbits,
                                         BLY_BLOCKS_K)
                          .value,
        };
        BLY_GIVE(&told, out, size);
    }
    return st;
}

/* The fields of a filter that begins at a byte of the file: what stands in the
 * slot from now on. The number of bytes is returned. */
static size_t fields_put(const bly_parquet_slot *s, uint64_t nblocks,
                         uint64_t at, unsigned char *out)
{
    unsigned char header[BLY_SBBF_HEADER];
    const uint64_t nbytes =
        bly_sbbf_header(header, nblocks) + nblocks * BLY_BLOCKS_BYTES;
    size_t n = bly_thrift_put_field(out, s->after, 14, BLY_THRIFT_I64);
    n += bly_thrift_put_int(out + n, (int64_t)at);
    n += bly_thrift_put_field(out + n, 14, 15, BLY_THRIFT_I32);
    n += bly_thrift_put_int(out + n, (int64_t)nbytes);
    if (s->next)
        n += bly_thrift_put_field(out + n, 15, s->next, s->type);
    return n;
}

/* The bytes of a filter in the file. */
static uint64_t filter_bytes(const bly_parquet_made *m)
{
    unsigned char header[BLY_SBBF_HEADER];
    return bly_sbbf_header(header, m->nblocks) + m->nblocks * BLY_BLOCKS_BYTES;
}

/* The chunks that may have got one. */
static size_t made_count(const bly_parquet *p)
{
    return p->made ? p->ngroups * p->ncolumns : 0;
}

/* The new footer, made in memory: *n bytes, the last 8 of the file included.
 */
static bly_status footer_make(const bly_parquet *p, unsigned char **out,
                              size_t *room, size_t *n)
{
    uint64_t filter_at = p->footer_at;
    size_t from = 0, to = 0;
    *room = p->nfooter + 8;
    for (size_t i = 0; i < made_count(p); i++)
        *room += p->made[i].block.at ? FIELDS_ROOM : 0;
    unsigned char *const made = bly_mem_zalloc(&p->mem, *room);
    if (!made)
        return bly_fail(BLY_ENOMEM, "out of memory");
    for (size_t i = 0; i < made_count(p); i++) {
        bly_parquet_entry e;
        if (!p->made[i].block.at)
            continue;
        bly_parquet_entry_at(p, i / p->ncolumns, i % p->ncolumns, &e);
        memcpy(made + to, p->footer + from, e.slot.from - from);
        to += e.slot.from - from;
        to += fields_put(&e.slot, p->made[i].nblocks, filter_at, made + to);
        from = e.slot.next ? e.slot.value : e.slot.to;
        filter_at += filter_bytes(&p->made[i]);
    }
    memcpy(made + to, p->footer + from, p->nfooter - from);
    to += p->nfooter - from;
    bly_store32(made + to, (uint32_t)to);
    memcpy(made + to + 4, "PAR1", 4);
    *out = made;
    *n = to + 8;
    if (to <= INT32_MAX)
        return BLY_OK;
    bly_mem_release(&p->mem, made, *room);
    return bly_fail(BLY_ERANGE, "its footer would be larger than 2 GiB");
}

static bool filters_put(const bly_parquet *p, bly_put *put, void *ctx)
{
    for (size_t i = 0; i < made_count(p); i++) {
        const bly_parquet_made *const e = &p->made[i];
        unsigned char header[BLY_SBBF_HEADER];
        if (!e->block.at)
            continue;
        const size_t n = bly_sbbf_header(header, e->nblocks);
        if (!put(ctx, header, n) ||
            !put(ctx, e->block.at, (size_t)e->nblocks * BLY_BLOCKS_BYTES))
            return false;
    }
    return true;
}

static bool data_put(const bly_parquet *p, bly_put *put, void *ctx)
{
    for (size_t at = 0; at < p->footer_at; at += PUT_BYTES) {
        const size_t left = p->footer_at - at;
        if (!put(ctx, p->bytes + at, left < PUT_BYTES ? left : PUT_BYTES))
            return false;
    }
    return true;
}

bly_status bly_parquet_write(const bly_parquet *p, bly_put *put, void *ctx)
{
    if (!p || !put)
        return bly_fail_null("p or put");
    unsigned char *footer = NULL;
    size_t room = 0, n = 0;
    const bly_status st = footer_make(p, &footer, &room, &n);
    if (st)
        return st;
    const bool ok = data_put(p, put, ctx) && filters_put(p, put, ctx) &&
                    put(ctx, footer, n);
    bly_mem_release(&p->mem, footer, room);
    return ok ? BLY_OK : bly_fail(BLY_EIO, "output failed");
}
