/*
 * sliced_write.c - the parts of an index file, one after another, and its end
 *
 * Bytes are gathered in a buffer of whole blocks, so that a part's sums are
 * computed from it just before it is written. The header, at the beginning, is
 * written last: nothing depends on that, since nobody can open the file before
 * it is complete (format/replace.h).
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/status.h"
#include "format/replace.h"
#include "index/bit_sliced.h"

/* A multiple of all sizes of blocks up to it. */
#define WRITER_BUFFER ((size_t)1 << 20)

/* Blocks of parts that are larger have 64 KiB instead of 4: the sums of an
 * index stay at 0.2 % of it, and those of a huge one at 0.012 %. */
#define WRITER_LARGE (UINT64_C(1) << 30)

bly_status bly_sliced_grow(const bly_mem *mem, void **at, size_t *room,
                           size_t need, size_t size)
{
    if (need <= *room)
        return BLY_OK;
    size_t more = *room ? 2 * *room : 16;
    more = more < need ? need : more;
    void *const p =
        more <= SIZE_MAX / 2 / size ? mem->alloc(mem->ctx, more * size) : NULL;
    if (!p)
        return bly_fail(BLY_ENOMEM, "out of memory");
    if (*room) {
        memcpy(p, *at, *room * size);
        mem->release(mem->ctx, *at, *room * size);
    }
    memset((char *)p + *room * size, 0, (more - *room) * size);
    *at = p;
    *room = more;
    return BLY_OK;
}

bly_status bly_sliced_writer_begin(bly_sliced_writer *w, const bly_mem *mem,
                                   const char *name, int fd)
{
    w->mem = *mem;
    w->name = name;
    w->fd = fd;
    w->at = SLICED_HEADER;
    w->buf = mem->alloc(mem->ctx, WRITER_BUFFER);
    if (!w->buf)
        return bly_fail(BLY_ENOMEM, "out of memory");
    memset(w->buf, 0, SLICED_HEADER);
    w->fill = SLICED_HEADER;
    return BLY_OK;
}

void bly_sliced_writer_free(bly_sliced_writer *w)
{
    const bly_mem *const mem = &w->mem;
    if (!mem->alloc)
        return; /* never begun */
    for (size_t i = 0; i < w->nsegments; i++)
        bly_block_free(mem, &w->segments[i].part.owned);
    for (size_t i = 0; i < w->ngroups; i++)
        bly_block_free(mem, &w->groups[i].part.owned);
    bly_block_free(mem, &w->part.owned);
    bly_mem_release(mem, w->segments, w->segments_room * sizeof w->segments[0]);
    bly_mem_release(mem, w->groups, w->groups_room * sizeof w->groups[0]);
    bly_mem_release(mem, w->dropped, w->dropped_room * sizeof w->dropped[0]);
    bly_mem_release(mem, w->meta, w->meta_room);
    bly_mem_release(mem, w->buf, WRITER_BUFFER);
    *w = (bly_sliced_writer){ 0 };
}

/* ------------------------------------------------------------------- bytes */

/* The sums of the blocks of the part in the buffer: whole ones, or all at its
 * end. The buffer begins at a block of the part, or before the part. */
static void writer_sum(bly_sliced_writer *w, bool last)
{
    const size_t block = (size_t)1 << w->part.shift;
    const uint64_t begin = w->at - w->fill; /* of the buffer, in the file */
    for (;;) {
        const uint64_t from = w->part_at + w->nsummed * block;
        const uint64_t left = w->at - from;
        if (from >= w->at || (left < block && !last))
            return;
        bly_store64(w->part.owned.at + 8 * w->nsummed++,
                    bly_checksum(w->buf + (from - begin),
                                 left < block ? (size_t)left : block));
    }
}

/* Write what was gathered, except for a block that is not complete. */
static bly_status writer_flush(bly_sliced_writer *w, bool all)
{
    size_t n = w->fill;
    if (w->in_part) {
        writer_sum(w, false);
        const uint64_t open = w->part_at + (w->nsummed << w->part.shift);
        const uint64_t begin = w->at - w->fill;
        if (!all)
            n = open > begin ? (size_t)(open - begin) : 0;
    }
    const int err = bly_fd_write(w->fd, w->buf, n);
    if (err)
        return bly_io_fail(w->name, "written", err);
    memmove(w->buf, w->buf + n, w->fill - n);
    w->fill -= n;
    return BLY_OK;
}

bly_status bly_sliced_put(bly_sliced_writer *w, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    while (n) {
        if (w->fill == WRITER_BUFFER) {
            const bly_status st = writer_flush(w, false);
            if (st)
                return st;
        }
        const size_t room = WRITER_BUFFER - w->fill;
        const size_t now = n < room ? n : room;
        memcpy(w->buf + w->fill, p, now);
        w->fill += now;
        w->at += now;
        p += now;
        n -= now;
    }
    return BLY_OK;
}

static bly_status put_zeros(bly_sliced_writer *w, uint64_t n)
{
    static const unsigned char zeros[SLICED_PAGE];
    return bly_sliced_put(w, zeros, (size_t)n);
}

bly_status bly_sliced_part_begin(bly_sliced_writer *w, uint64_t nbytes)
{
    const uint64_t align = nbytes >= SLICED_PAGE ? SLICED_PAGE : 8;
    bly_status st = put_zeros(w, -w->at & (align - 1));
    w->part = (bly_sliced_part){
        .at = w->at,
        .nbytes = nbytes,
        .shift = nbytes > WRITER_LARGE ? 16 : SLICED_SHIFT_LEAST,
    };
    if (!st)
        st = bly_block_new(&w->mem, 8 * bly_sums_count(nbytes, w->part.shift),
                           &w->part.owned);
    w->part.table = w->part.owned.at;
    w->part_at = w->at;
    w->nsummed = 0;
    w->in_part = !st;
    return st;
}

bly_status bly_sliced_part_end(bly_sliced_writer *w, bly_sliced_part *out)
{
    writer_sum(w, true);
    w->in_part = false;
    *out = w->part;
    w->part = (bly_sliced_part){ 0 };
    return BLY_OK;
}

/* ----------------------------------------------------------------- records */

bly_status bly_sliced_segment_add(bly_sliced_writer *w, bly_sliced_segment *s)
{
    void *at = w->segments;
    const bly_status st = w->nsegments == UINT32_MAX
                              ? bly_fail(BLY_ERANGE, "too many segments")
                              : bly_sliced_grow(&w->mem, &at, &w->segments_room,
                                                w->nsegments + 1, sizeof *s);
    w->segments = at;
    if (st) {
        bly_block_free(&w->mem, &s->part.owned);
        return st;
    }
    w->segments[w->nsegments++] = *s;
    w->ndocs = s->first + s->ndocs;
    return BLY_OK;
}

bly_status bly_sliced_group_add(bly_sliced_writer *w, bly_sliced_group *g)
{
    void *at = w->groups;
    const bly_status st = bly_sliced_grow(&w->mem, &at, &w->groups_room,
                                          w->ngroups + 1, sizeof *g);
    w->groups = at;
    if (st) {
        bly_block_free(&w->mem, &g->part.owned);
        return st;
    }
    w->groups[w->ngroups++] = *g;
    return BLY_OK;
}

static bly_status part_copy(bly_sliced_writer *w, const bly_index *x,
                            const bly_sliced_part *from, bly_sliced_part *out)
{
    const uint64_t align = from->nbytes >= SLICED_PAGE ? SLICED_PAGE : 8;
    const uint64_t nsums = bly_sums_count(from->nbytes, from->shift);
    *out = (bly_sliced_part){ .nbytes = from->nbytes, .shift = from->shift };
    bly_status st = bly_block_new(&w->mem, 8 * nsums, &out->owned);
    if (st)
        return st;
    memcpy(out->owned.at, from->table, (size_t)(8 * nsums));
    out->table = out->owned.at;
    st = put_zeros(w, -w->at & (align - 1));
    out->at = w->at;
    if (!st)
        st = bly_sliced_put(w, x->bytes + from->at, (size_t)from->nbytes);
    if (st)
        bly_block_free(&w->mem, &out->owned);
    return st;
}

bly_status bly_sliced_copy(bly_sliced_writer *w, const bly_index *x)
{
    const uint64_t first = w->ndocs;
    bly_status st = BLY_OK;
    for (uint32_t i = 0; i < x->nsegments && !st; i++) {
        bly_sliced_segment s = x->segments[i];
        s.first += first;
        st = part_copy(w, x, &x->segments[i].part, &s.part);
        if (!st)
            st = bly_sliced_segment_add(w, &s);
    }
    for (uint64_t i = 0; i < x->ngroups && !st; i++) {
        bly_sliced_group g = x->groups[i];
        g.first += first;
        st = part_copy(w, x, &x->groups[i].part, &g.part);
        if (!st)
            st = bly_sliced_group_add(w, &g);
    }
    for (uint64_t i = 0; i < x->ndocs && x->dropped && !st; i++)
        if (bly_sliced_dropped(x, i))
            st = bly_sliced_drop(w, first + i);
    return st;
}

bly_status bly_sliced_drop(bly_sliced_writer *w, uint64_t number)
{
    void *at = w->dropped;
    const bly_status st =
        bly_sliced_grow(&w->mem, &at, &w->dropped_room,
                        (size_t)(number / 64) + 1, sizeof w->dropped[0]);
    w->dropped = at;
    if (st)
        return st;
    const uint64_t bit = UINT64_C(1) << (number % 64);
    w->ndropped += !(w->dropped[number / 64] & bit);
    w->dropped[number / 64] |= bit;
    return BLY_OK;
}

bly_status bly_sliced_set(bly_sliced_writer *w, const char *name, size_t nname,
                          const void *value, size_t len)
{
    const unsigned char *at = w->meta;
    uint64_t left = w->nmeta;
    size_t old = 0; /* bytes of a pair that goes */
    bly_sliced_pair pair;
    const unsigned char *from = at;
    for (; bly_sliced_pair_next(&at, &left, &pair); from = at)
        if (pair.nname == nname && memcmp(pair.name, name, nname) == 0) {
            old = (size_t)(at - from);
            break;
        }
    const size_t put = old ? (size_t)(from - w->meta) : w->nmeta;
    if (len > SLICED_META_MOST || nname > SLICED_META_MOST ||
        w->nmeta - old + (len ? 8 + nname + len : 0) > SLICED_META_MOST)
        return bly_fail(BLY_ERANGE,
                        "the settings of an index take at most %d "
                        "bytes",
                        SLICED_META_MOST);
    void *meta = w->meta;
    const bly_status st = bly_sliced_grow(&w->mem, &meta, &w->meta_room,
                                          w->nmeta + 8 + nname + len, 1);
    w->meta = meta;
    if (st)
        return st;
    memmove(w->meta + put, w->meta + put + old, w->nmeta - put - old);
    w->nmeta -= old;
    if (!len)
        return BLY_OK;
    unsigned char *const p = w->meta + w->nmeta;
    bly_store32(p, (uint32_t)nname);
    bly_store32(p + 4, (uint32_t)len);
    memcpy(p + 8, name, nname);
    memcpy(p + 8 + nname, value, len);
    w->nmeta += 8 + nname + len;
    return BLY_OK;
}

/* --------------------------------------------------------------- directory */

static int by_order(const void *a, const void *b)
{
    const bly_sliced_group *const g = a, *const h = b;
    const int order = bly_sliced_order(g, h);
    if (order)
        return order;
    return (g->first > h->first) - (g->first < h->first);
}

static void store_real(unsigned char *p, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bly_store64(p, bits);
}

static uint64_t sums_bytes(const bly_sliced_part *part)
{
    return 8 * bly_sums_count(part->nbytes, part->shift);
}

static uint64_t directory_bytes(const bly_sliced_writer *w)
{
    uint64_t n = SLICED_HEAD + (uint64_t)w->nclasses * SLICED_CLASS +
                 w->nsegments * (uint64_t)SLICED_SEGMENT +
                 w->ngroups * (uint64_t)SLICED_GROUP +
                 ((w->nmeta + 7) & ~UINT64_C(7));
    n += w->ndropped ? (w->ndocs + 63) / 64 * 8 : 0;
    for (size_t i = 0; i < w->nsegments; i++)
        n += sums_bytes(&w->segments[i].part);
    for (size_t i = 0; i < w->ngroups; i++)
        n += sums_bytes(&w->groups[i].part);
    return n;
}

static unsigned char *put_sums(unsigned char *p, const bly_sliced_part *part)
{
    const size_t n = (size_t)sums_bytes(part);
    memcpy(p, part->table, n);
    return p + n;
}

/* p has directory_bytes() zeros. */
static void directory_write(const bly_sliced_writer *w, unsigned char *p)
{
    bly_store64(p, w->hasher.seed);
    bly_store32(p + 8, w->nclasses);
    bly_store32(p + 12, (uint32_t)w->nsegments);
    bly_store64(p + 16, w->ngroups);
    bly_store64(p + 24, w->ndocs);
    bly_store64(p + 32, w->ndropped);
    bly_store64(p + 40, w->nmeta);
    p += SLICED_HEAD;
    for (uint32_t i = 0; i < w->nclasses; i++, p += SLICED_CLASS) {
        memcpy(p, w->classes[i].name, SLICED_NAME);
        store_real(p + 32, w->classes[i].fpr);
        bly_store32(p + 40, w->classes[i].k);
    }
    for (size_t i = 0; i < w->nsegments; i++, p += SLICED_SEGMENT) {
        const bly_sliced_segment *const s = &w->segments[i];
        bly_store64(p, s->first);
        bly_store64(p + 8, s->ndocs);
        bly_store64(p + 16, s->part.at);
        bly_store64(p + 24, s->part.nbytes);
        bly_store32(p + 32, s->part.shift);
    }
    for (size_t i = 0; i < w->ngroups; i++, p += SLICED_GROUP) {
        const bly_sliced_group *const g = &w->groups[i];
        bly_store32(p, g->class_number);
        bly_store32(p + 4, g->part.shift);
        bly_store64(p + 8, g->m);
        bly_store64(p + 16, g->ndocs);
        bly_store64(p + 24, g->first);
        bly_store64(p + 32, g->span);
        bly_store64(p + 40, g->terms);
        store_real(p + 48, g->expected);
        bly_store64(p + 56, g->part.at);
        bly_store64(p + 64, g->part.nbytes);
    }
    const size_t nwords = (size_t)(w->ndocs + 63) / 64;
    for (size_t i = 0; w->ndropped && i < nwords; i++, p += 8)
        bly_store64(p, i < w->dropped_room ? w->dropped[i] : 0);
    if (w->nmeta)
        memcpy(p, w->meta, w->nmeta);
    p += (w->nmeta + 7) & ~(size_t)7;
    for (size_t i = 0; i < w->nsegments; i++)
        p = put_sums(p, &w->segments[i].part);
    for (size_t i = 0; i < w->ngroups; i++)
        p = put_sums(p, &w->groups[i].part);
}

static bly_status header_write(const bly_sliced_writer *w, uint64_t at,
                               uint64_t length, uint64_t sum)
{
    unsigned char p[SLICED_HEADER] = { 0x89, 'B',  'L',  'X',
                                       '\r', '\n', 0x1a, '\n' };
    bly_store32(p + 8, 1);
    bly_store64(p + 16, at + length);
    bly_store64(p + 24, at);
    bly_store64(p + 32, length);
    bly_store64(p + 40, sum);
    bly_store64(p + 120, bly_checksum(p, 120));
    if (lseek(w->fd, 0, SEEK_SET) != 0)
        return bly_io_fail(w->name, "written", errno);
    const int err = bly_fd_write(w->fd, p, sizeof p);
    return err ? bly_io_fail(w->name, "written", err) : BLY_OK;
}

bly_status bly_sliced_finish(bly_sliced_writer *w)
{
    bly_block directory;
    bly_status st = put_zeros(w, -w->at & 7);
    if (w->ngroups)
        qsort(w->groups, w->ngroups, sizeof w->groups[0], by_order);
    const uint64_t at = w->at, length = directory_bytes(w);
    if (!st)
        st = bly_block_new(&w->mem, length, &directory);
    if (st)
        return st;
    directory_write(w, directory.at);
    const uint64_t sum = bly_checksum(directory.at, (size_t)length);
    st = bly_sliced_put(w, directory.at, (size_t)length);
    bly_block_free(&w->mem, &directory);
    if (!st)
        st = writer_flush(w, true);
    return st ? st : header_write(w, at, length, sum);
}
