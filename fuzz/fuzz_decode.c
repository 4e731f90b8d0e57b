/*
 * fuzz_decode.c - coded arrays that anyone may have written
 *
 * The first byte says which code, the next three how many bytes it is to
 * become. The rest is decoded, and whatever comes of it is coded as these very
 * bytes; in pieces the same comes of it. Then the rest is taken as data, coded,
 * and decoded again.
 *
 *     fuzz_decode -max_total_time=60 FOUND fuzz/corpus/decode
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "codec/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct pile {
    uint8_t *at;
    size_t n;
} pile;

static bool heap(void *ctx, const void *bytes, size_t nbytes)
{
    pile *p = ctx;
    p->at = realloc(p->at, p->n + nbytes);
    assert(p->at);
    memcpy(p->at + p->n, bytes, nbytes);
    p->n += nbytes;
    return true;
}

static pile encode(bly_code code, const uint8_t *data, size_t n)
{
    pile p = { 0 };
    const uint64_t ncoded = bly_encode(code, data, n, heap, &p);
    assert(ncoded == p.n && bly_encode(code, data, n, NULL, NULL) == p.n);
    assert(p.n >= bly_coded_least(n) && p.n <= bly_coded_most(n));
    return p;
}

static int64_t unheap(void *ctx, void *buf, size_t n)
{
    pile *p = ctx;
    const size_t got = n < p->n ? n : p->n;
    if (got)
        memcpy(buf, p->at, got);
    p->at += got;
    p->n -= got;
    return (int64_t)got;
}

/* Decode a few words at a time, and compare with want: the bytes that came of
 * it as a whole, or NULL where nothing did. */
static void in_pieces(bly_code code, const uint8_t *coded, size_t ncoded,
                      size_t n, const uint8_t *want)
{
    pile from = { (uint8_t *)(uintptr_t)coded, ncoded };
    bly_decoding d;
    uint8_t some[64];
    bool ok = bly_decoding_start(&d, code, ncoded, n, unheap, &from);
    for (size_t at = 0; at < n && ok; at += sizeof some) {
        const size_t few = n - at < sizeof some ? n - at : sizeof some;
        ok = bly_decoding_some(&d, some, few);
        assert(!ok || !want || memcmp(some, want + at, few) == 0);
    }
    ok = ok && bly_decoding_end(&d);
    assert(ok == (want != NULL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 4)
        return 0;
    const bly_code code = data[0] & 1 ? BLY_CODE_BITS : BLY_CODE_BYTES;
    const size_t n =
        (size_t)data[1] << 12 | (size_t)data[2] << 4 | data[3] % 16;
    const uint8_t *const rest = data + 4;
    const size_t nrest = size - 4;
    uint8_t *out = malloc((n > nrest ? n : nrest) + 1);
    assert(out);
    if (bly_decode(code, rest, nrest, out, n)) {
        pile p = encode(code, out, n);
        assert(p.n == nrest && (!nrest || memcmp(p.at, rest, nrest) == 0));
        free(p.at);
        in_pieces(code, rest, nrest, n, out);
    } else {
        in_pieces(code, rest, nrest, n, NULL);
    }
    pile p = encode(code, rest, nrest);
    assert(bly_decode(code, p.at, p.n, out, nrest));
    assert(memcmp(out, rest, nrest) == 0);
    free(p.at);
    free(out);
    return 0;
}
