/*
 * fuzz_warc.c - records of WARC files
 *
 * If the first byte is odd, records are members of gzip; if its next bit is
 * set, what follows is what one member of gzip holds. Records lie behind each
 * other in the block, documents within what they were cut out of, and a block
 * that comes in two pieces has the same ones.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "io/warc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MEMBERS 1
#define PACK 2
#define MOST 65536

static void pack(struct block *b, const uint8_t *data, size_t size)
{
    z_stream z = { .next_in = (unsigned char *)(uintptr_t)data,
                   .avail_in = (unsigned)size };
    if (deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) ||
        !block_fit(b, size * 2 + 1024))
        abort();
    z.next_out = (unsigned char *)b->at;
    z.avail_out = (unsigned)b->room;
    if (deflate(&z, Z_FINISH) != Z_STREAM_END)
        abort();
    b->len = b->room - z.avail_out;
    deflateEnd(&z);
}

static bool count(void *ctx, const void *bytes, size_t n)
{
    size_t *const sum = ctx;
    (void)bytes;
    *sum += n;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct block b;
    static struct warc_text t;
    size_t end, half, again, written = 0, from = 0;
    if (!size)
        return 0;
    const bool members = *data & MEMBERS;
    b.len = 0;
    if (*data & PACK)
        pack(&b, data + 1, size - 1);
    else if (!block_put(&b, data + 1, size - 1))
        return 0;
    const size_t len = b.len;
    if (!warc_begin(&b) || !warc_parse(&b, members, MOST, &end))
        abort();
    const struct warc_block *const w = b.warc;
    const size_t n = w->n;
    assert(end <= len);
    for (size_t i = 0; i < n; i++) {
        const struct warc_record *const r = &w->records[i];
        assert(r->from == from && r->from < r->to && r->to <= end);
        from = r->to;
        if (!r->document)
            continue;
        const struct block *const of = members ? w->plain : &b;
        assert(r->len <= MOST && r->at + r->len <= of->len);
        if (!warc_text(&t, of->at + r->at, r->len, MOST))
            assert(t.len <= 2 * MOST + 65536);
        warc_field(of->at + r->at, r->len, "WARC-Record-ID");
    }
    assert(from == end);
    if (!warc_put(&b, members, !members, 0, end, count, &written))
        abort();
    /* In two pieces. */
    b.len = len / 2;
    if (!warc_begin(&b) || !warc_parse(&b, members, MOST, &half))
        abort();
    const bool stopped = w->why;
    b.len = len;
    if (!warc_parse(&b, members, MOST, &again))
        abort();
    assert(stopped || (again == end && w->n == n));
    return 0;
}
