/*
 * writer.c - a filter to the bytes of a .bly file
 *
 * One walk over the records serves whole files and parts of them: it knows at
 * which byte of the file it is, and hands over what lies in the range that is
 * wanted. A header page is made only where some of it is wanted, since its
 * checksum costs a pass over the payload.
 */
#include <string.h>

#include "core/status.h"
#include "format/record.h"

/* A put gets no more at once: it may show progress, or stop. */
#define MOST_AT_ONCE ((size_t)1 << 20)

typedef struct walk {
    uint64_t at;       /* byte of the file that comes next */
    uint64_t from, to; /* bytes that are wanted */
    bly_put *put;
    void *ctx;
} walk;

/* The n bytes of the file from w->at on are these: hand over the part that is
 * wanted. False if put wants no more. */
static bool walk_bytes(walk *w, const unsigned char *bytes, uint64_t n)
{
    const uint64_t at = w->at, end = at + n;
    uint64_t first = at > w->from ? at : w->from;
    const uint64_t last = end < w->to ? end : w->to;
    w->at = end;
    while (first < last) {
        const uint64_t left = last - first;
        const size_t now = left < MOST_AT_ONCE ? (size_t)left : MOST_AT_ONCE;
        if (!w->put(w->ctx, bytes + (first - at), now))
            return false;
        first += now;
    }
    return true;
}

static uint64_t padding_at(uint64_t at)
{
    return -at & (BLY_PAGE - 1);
}

static bool walk_record(walk *w, const bly_filter *f)
{
    unsigned char page[BLY_PAGE] = { 0 };
    if (!walk_bytes(w, page, padding_at(w->at)))
        return false;
    if (w->at < w->to && w->at + BLY_PAGE > w->from) {
        bly_record r;
        bly_record_of(f, &r);
        bly_record_encode(&r, page);
    }
    if (!walk_bytes(w, page, BLY_PAGE) ||
        !walk_bytes(w, f->data, f->shape.nbytes))
        return false;
    for (uint32_t i = 0; i < f->nlayers && w->at < w->to; i++)
        if (!walk_record(w, f->layer[i]))
            return false;
    return true;
}

/* The size of a file that ends with f and its layers, if f starts at byte
 * `at` or the next page. Counts the records on the way down; 0 where there
 * are more of them, or deeper ones, than a file may have. */
static uint64_t file_end(const bly_filter *f, uint64_t at, unsigned depth,
                         uint32_t *nrecords)
{
    if (depth >= BLY_MAX_DEPTH || ++*nrecords > BLY_MAX_RECORDS)
        return 0;
    at += padding_at(at) + BLY_PAGE + f->shape.nbytes;
    for (uint32_t i = 0; i < f->nlayers; i++) {
        at = file_end(f->layer[i], at, depth + 1, nrecords);
        if (!at)
            return 0;
    }
    return at;
}

uint64_t bly_written_bytes(const bly_filter *f)
{
    uint32_t nrecords = 0;
    return file_end(f, 0, 0, &nrecords);
}

bly_status bly_write(const bly_filter *f, bly_put *put, void *ctx)
{
    walk w = { .to = bly_written_bytes(f), .put = put, .ctx = ctx };
    if (!w.to)
        return bly_fail(BLY_ERANGE, "a file holds at most %d filters, %d deep",
                        BLY_MAX_RECORDS, BLY_MAX_DEPTH);
    if (!walk_record(&w, f))
        return bly_fail(BLY_EIO, "writing stopped at the receiver's wish");
    return BLY_OK;
}

static bool put_memory(void *ctx, const void *bytes, size_t nbytes)
{
    unsigned char **p = ctx;
    memcpy(*p, bytes, nbytes);
    *p += nbytes;
    return true;
}

size_t bly_write_part(const bly_filter *f, uint64_t from, void *buf,
                      size_t nbytes)
{
    const uint64_t end = bly_written_bytes(f);
    if (from >= end)
        return 0;
    const size_t n = nbytes < end - from ? nbytes : (size_t)(end - from);
    unsigned char *p = buf;
    walk w = { .from = from, .to = from + n, .put = put_memory, .ctx = &p };
    walk_record(&w, f);
    return n;
}
