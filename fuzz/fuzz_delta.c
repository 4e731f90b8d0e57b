/*
 * fuzz_delta.c - a delta from anyone, applied to filters of several kinds
 *
 * The first byte of the input is the number of a kind, the rest is the delta.
 * It is tried as it is, and as a forger would send it: starting from that
 * filter, with sizes and checksums right. What is refused leaves the filter
 * alone; what is taken leads to a filter that loads again from what it writes.
 *
 *     fuzz_delta -max_total_time=60 FOUND fuzz/corpus/delta
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery.h>

#define NKEYS 40
#define HEADER 48

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* One filter of every row, made once. */
static bly_filter *kept[64];
static size_t nkept;

static void keep_filters(void)
{
    bly_kind_info kind;
    for (size_t i = 0; bly_kind_at(i, &kind) && nkept < 64; i++) {
        const bly_spec spec = { .kind = kind.name, .items = NKEYS };
        bly_filter *f;
        uint64_t x = 1;
        if (bly_new(&spec, &f))
            continue;
        for (int j = 0; j < NKEYS; j++)
            (void)!bly_add_hash(f, x += UINT64_C(0x9e3779b97f4a7c15));
        kept[nkept++] = f;
    }
}

static const bly_filter *kept_of(uint8_t id)
{
    for (size_t i = 0; i < nkept; i++) {
        bly_kind_info kind;
        bly_kind_of(kept[i], &kind);
        if (kind.id == id)
            return kept[i];
    }
    return kept[id % nkept];
}

static void set64(uint8_t *p, uint64_t x)
{
    for (int i = 0; i < 8; i++)
        p[i] = (uint8_t)(x >> 8 * i);
}

/* Offsets as in docs/format.md. */
static void forge(uint8_t *delta, size_t n, const bly_filter *f)
{
    if (n < HEADER)
        return;
    memcpy(delta,
           "\x89"
           "BLD\r\n\x1a\n\1\0\0\0",
           12);
    delta[12] &= 1;
    delta[13] = delta[14] = delta[15] = 0;
    set64(delta + 16, bly_version_id(f));
    set64(delta + 32, n - HEADER);
    set64(delta + 40, XXH3_64bits(delta, 40));
    if (delta[12] == 0 && n >= HEADER + 8)
        set64(delta + n - 8, XXH3_64bits(delta + HEADER, n - HEADER - 8));
}

static void write_and_load(const bly_filter *f)
{
    const size_t n = (size_t)bly_written_bytes(f);
    uint8_t *bytes = malloc(n);
    bly_filter *again;
    assert(n && bytes && bly_write_part(f, 0, bytes, n) == n);
    assert(bly_load(bytes, n, NULL, &again) == BLY_OK);
    assert(bly_equal(f, again));
    bly_free(again);
    free(bytes);
}

static void try_delta(const bly_filter *from, const uint8_t *delta, size_t n)
{
    bly_filter *f;
    bly_delta info;
    assert(bly_clone(from, &f) == BLY_OK);
    if (bly_delta_apply(f, delta, n, &info)) {
        assert(bly_equal(f, from));
    } else {
        assert(info.bytes == n && bly_version_id(f) == info.to);
        write_and_load(f);
        (void)!bly_add_hash(f, 1);
    }
    bly_free(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!nkept)
        keep_filters();
    if (size < 1)
        return 0;
    const bly_filter *from = kept_of(data[0]);
    const size_t n = size - 1;
    uint8_t *delta = malloc(n + 1);
    assert(delta);
    memcpy(delta, data + 1, n);
    try_delta(from, delta, n);
    forge(delta, n, from);
    try_delta(from, delta, n);
    free(delta);
    return 0;
}
