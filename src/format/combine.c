/*
 * combine.c - a filter that is being read, combined with one in memory
 *
 * Where a kind combines cell by cell, the payload is taken in pieces as it
 * comes: each is added to the checksum, combined, and forgotten. So a file is
 * read once, it may be a pipe, and only the result is in memory. Other kinds,
 * filters with layers, and coded ones are read whole and combined then.
 *
 *     get() -> | header | piece | piece | ... | piece |  end
 *              fits dst?  sum, merge_part()        sum right?
 *
 * A wrong sum is found only at the end, when dst has changed already. So if
 * this fails dst is useless, and its owner must free it.
 */
#include <string.h>

#include "codec/codec.h"
#include "core/hash.h"
#include "core/status.h"
#include "format/combine.h"
#include "format/compact.h"
#include "format/record.h"
#include "kinds/filter.h"

/* Whole cells of any kind (kind.h), few enough that L2 holds them and those of
 * dst. */
#define PIECE_BYTES (390 * BLY_PART_UNIT)

typedef bly_status combine_part(bly_filter *dst, const bly_part *p);

static combine_part *part_of_kind(const bly_kind *kind, bly_combination how)
{
    return how == BLY_UNION ? kind->merge_part : kind->intersect_part;
}

static bly_status get_some(const bly_source *src, void *buf, size_t n,
                           size_t *ngot)
{
    const int64_t got = src->get(src->ctx, buf, n);
    if (got < 0 || (uint64_t)got > n)
        return bly_fail(BLY_EIO, "the source cannot be read");
    *ngot = (size_t)got;
    return BLY_OK;
}

/* ----------------------------------------------------------------- whole */

/* A source of which the first bytes were read already. */
typedef struct begun_source {
    const bly_source *src;
    const unsigned char *bytes;
    size_t at, nbytes;
} begun_source;

static int64_t get_begun(void *ctx, void *buf, size_t n)
{
    begun_source *b = ctx;
    const size_t left = b->nbytes - b->at, old = left < n ? left : n;
    if (old)
        memcpy(buf, b->bytes + b->at, old);
    b->at += old;
    if (old == n)
        return (int64_t)n;
    const int64_t got =
        b->src->get(b->src->ctx, (unsigned char *)buf + old, n - old);
    return got < 0 ? got : (int64_t)old + got;
}

static bly_status combine_whole(begun_source *begun, bly_combination how,
                                bly_filter *dst)
{
    const bly_source src = { .get = get_begun,
                             .ctx = begun,
                             .nbytes = begun->src->nbytes };
    const bly_access blind = { .blind = true, .mem = bly_filter_mem(dst) };
    bly_filter *f;
    bly_status st = bly_source_read(&src, &blind, &f);
    if (st)
        return st;
    st = bly_filter_fits(dst, f);
    if (!st)
        st = bly_meta_combine(
            dst, f, how == BLY_UNION ? dst->kind->merge : dst->kind->intersect);
    bly_free(f);
    return st;
}

/* ------------------------------------------------------------- in pieces */

/* The stored payload as it comes, and its sum. */
typedef struct payload {
    const bly_source *src;
    uint64_t header, end; /* bytes before it, and to its end */
    bly_summing sum;      /* of all; if there is a table, of this block */
    uint64_t at;
    bly_block table;
    bly_status status; /* why a piece could not be read */
} payload;

/* Sum up the n bytes that follow, and compare each block that ends in them. */
static bly_status payload_sum_up(payload *p, const unsigned char *bytes,
                                 size_t n)
{
    const uint64_t whole = UINT64_C(1) << BLY_SUMS_SHIFT;
    const uint64_t nbytes = p->end - p->header;
    while (p->table.at && n) {
        const uint64_t next = (p->at / whole + 1) * whole;
        const uint64_t end = next < nbytes ? next : nbytes, i = p->at / whole;
        const size_t now = n < end - p->at ? n : (size_t)(end - p->at);
        bly_summing_add(&p->sum, bytes, now);
        p->at += now;
        bytes += now;
        n -= now;
        if (p->at < end)
            continue;
        if (bly_summing_end(&p->sum) != bly_sums_at(&p->table, i))
            return bly_sums_fail(p->header, nbytes, BLY_SUMS_SHIFT, i);
        bly_summing_start(&p->sum);
    }
    bly_summing_add(&p->sum, bytes, n);
    p->at += n;
    return BLY_OK;
}

/* A bly_get: all of n bytes, or a failure that is in status. */
static int64_t payload_get(void *ctx, void *buf, size_t n)
{
    payload *const p = ctx;
    size_t got = 0;
    p->status = get_some(p->src, buf, n, &got);
    if (!p->status && got < n)
        p->status = bly_cut_short(p->header + p->at + got, p->end, false);
    if (!p->status)
        p->status = payload_sum_up(p, buf, n);
    return p->status ? -1 : (int64_t)n;
}

/* The table of sums, which comes before the payload. It is as long as that of
 * dst, whose shape is the same. */
static bly_status get_table(payload *p, const bly_record *rec,
                            const bly_mem *mem)
{
    const size_t n = (size_t)bly_table_bytes(rec->nstored);
    const size_t span = (size_t)bly_table_span(rec->nstored);
    size_t got = 0;
    bly_status st = bly_summed_fits(BLY_PAGE + rec->nstored);
    if (!st)
        st = bly_block_new(mem, span, &p->table);
    if (!st)
        st = get_some(p->src, p->table.at, span, &got);
    if (!st && got < span)
        st = bly_cut_short(p->header - span + got, p->end, false);
    if (!st && bly_checksum(p->table.at, n) != rec->payload_sum)
        st = bly_damaged("the table of sums does not match its checksum");
    for (size_t i = n; i < span && !st; i++)
        if (p->table.at[i])
            st = bly_damaged("bytes before a payload are not zero");
    return st;
}

/* The failure of a coded payload: the reading error, if there was one. */
static bly_status coded_wrong(const payload *p)
{
    return p->status ? p->status
                     : bly_damaged("the coded payload cannot be decoded");
}

/* Combine the payload of `from`, a filter without data, into dst. */
static bly_status combine_pieces(const bly_source *src, combine_part *combine,
                                 const bly_record *rec, const bly_filter *from,
                                 bly_filter *dst)
{
    const uint64_t nbytes = rec->shape.nbytes;
    const uint64_t header = bly_header_bytes(rec->encoding != 0, rec->nmeta) +
                            (rec->summed ? bly_table_span(rec->nstored) : 0);
    payload in = { .src = src, .header = header, .end = header + rec->nstored };
    bly_decoding decoding;
    bly_block room;
    bly_status st = bly_block_new(bly_filter_mem(dst), PIECE_BYTES + 1, &room);
    if (st)
        return st;
    bly_summing_start(&in.sum);
    if (rec->summed)
        st = get_table(&in, rec, bly_filter_mem(dst));
    if (rec->encoding &&
        !bly_decoding_start(&decoding, (bly_code)rec->encoding, rec->nstored,
                            nbytes, payload_get, &in))
        st = coded_wrong(&in);
    for (uint64_t at = 0; at < nbytes && !st;) {
        const uint64_t left = nbytes - at;
        const size_t n = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
        if (!rec->encoding)
            st = payload_get(&in, room.at, n) < 0 ? in.status : BLY_OK;
        else if (!bly_decoding_some(&decoding, room.at, n))
            st = coded_wrong(&in);
        if (st)
            break;
        st = combine(dst, &(bly_part){ .bytes = room.at,
                                       .at = at,
                                       .nbytes = n,
                                       .last = n == left,
                                       .src = from });
        at += n;
    }
    if (!st && rec->encoding && !bly_decoding_end(&decoding))
        st = coded_wrong(&in);
    if (!st && !rec->summed && bly_summing_end(&in.sum) != rec->payload_sum)
        st = bly_damaged("the payload does not match its checksum");
    bly_block_free(bly_filter_mem(dst), &in.table);
    bly_block_free(bly_filter_mem(dst), &room);
    return st;
}

static bly_status combine_end(const bly_source *src, const bly_filter *dst)
{
    unsigned char more;
    size_t got = 0;
    const bly_status st = get_some(src, &more, 1, &got);
    if (st)
        return st;
    if (got)
        return bly_damaged("bytes follow the end of the filter");
    /* If the source is invalid in a way that matters, so is the result. */
    if (dst->kind->check && !dst->kind->check(dst))
        return bly_damaged("its contents cannot come from its kind");
    return BLY_OK;
}

/* The filter of a record, without its data. */
static bly_status shell_of_record(const bly_record *rec, const bly_mem *mem,
                                  bly_filter **out)
{
    const bly_setting set = {
        .items = rec->items,
        .fpr = rec->fpr,
        .hasher = bly_record_hasher(rec),
        .secret_check = rec->secret_check,
        .blind = true,
        .mem = mem,
    };
    bly_status st = bly_filter_shell(rec->kind, &rec->shape, &set, out);
    if (st)
        return st;
    (*out)->nadded = rec->nadded;
    st = bly_filter_body_for(*out, NULL);
    if (!st)
        bly_record_state(rec, *out);
    if (!st)
        st = bly_filter_set_meta(*out, rec->keying, rec->meta, rec->nmeta);
    if (st)
        bly_free(*out);
    return st;
}

/* Read the bytes of the header; its beginning tells how many there are. */
static bly_status get_header(const bly_source *src, unsigned char *page,
                             size_t *ngot, bool *whole)
{
    size_t all = BLY_SHORT_HEADER;
    for (*ngot = 0; *ngot < all; all = bly_record_span(page, all)) {
        size_t more = 0;
        const bly_status st = get_some(src, page + *ngot, all - *ngot, &more);
        *ngot += more;
        *whole = !st && *ngot == all;
        if (!*whole)
            return st;
    }
    return BLY_OK;
}

bly_status bly_source_combine(const bly_source *src, bly_combination how,
                              bly_filter *dst)
{
    unsigned char page[BLY_PAGE];
    begun_source begun = { .src = src, .bytes = page };
    bly_record rec;
    bly_filter *from;
    bool whole; /* the header */
    bly_status st = get_header(src, page, &begun.nbytes, &whole);
    if (st)
        return st;
    /* Leave these to the reader: it says what is wrong, and a compact file is
     * small. */
    if (!whole || bly_compact_begins(page, begun.nbytes))
        return combine_whole(&begun, how, dst);
    st = bly_record_decode(page, &rec);
    if (!st)
        st = shell_of_record(&rec, bly_filter_mem(dst), &from);
    if (st)
        return st;
    combine_part *const combine = part_of_kind(dst->kind, how);
    st = bly_filter_fits(dst, from);
    if (!st && (!combine || rec.nlayers || !rec.shape.nbytes)) {
        st = combine_whole(&begun, how, dst);
    } else if (!st) {
        if (from->kind->sound && !from->kind->sound(from))
            st = bly_damaged("its state is impossible for its kind");
        if (!st)
            st = bly_hash_adopt(dst, from);
        if (!st)
            st = bly_meta_adopt(dst, from);
        if (!st)
            st = combine_pieces(src, combine, &rec, from, dst);
        if (!st)
            st = combine_end(src, dst);
    }
    bly_free(from);
    return st;
}
