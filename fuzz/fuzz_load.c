/*
 * fuzz_load.c - bytes that anyone may have written, loaded and used
 *
 * Every input is tried as it is; with its checksums made right, since no
 * fuzzer guesses one: that is what a forger would send; and as a file whose
 * header page was left without its zeros, so that most changes meet a byte
 * that matters. Whatever loads must then be safe to use in every way that its
 * kind allows, and must load again from what it writes. Mapped, it is used
 * without its payload ever having been checked.
 *
 * Format version 2 is for files of more than 64 MiB, which no fuzzer gets far
 * with. So where an input is of version 2, files of any size are, in blocks of
 * 64 bytes: hooks of a library that was made for testing.
 *
 *     fuzz_load -max_total_time=60 FOUND fuzz/corpus/load
 */
#define _GNU_SOURCE
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bloomery.h>

#define PAGE 4096
#define FIELDS 288 /* of a header; zeros and the checksum follow */
#define NHASHES 67 /* more than a word of a bitmap */

#define BLOCK_SHIFT 6

extern uint64_t bly_summed_from; /* src/format/record.h */
extern unsigned bly_sums_shift;  /* src/core/block_sums.h */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t at64(const uint8_t *p)
{
    uint64_t x = 0;
    for (int i = 7; i >= 0; i--)
        x = x << 8 | p[i];
    return x;
}

static void set64(uint8_t *p, uint64_t x)
{
    for (int i = 0; i < 8; i++)
        p[i] = (uint8_t)(x >> 8 * i);
}

/* The size of the header that these FIELDS bytes begin: short where the
 * encoding is not 0. */
static size_t header_bytes(const uint8_t *page)
{
    static const uint8_t none[4];
    return memcmp(page + 68, none, 4) ? FIELDS + 8 : PAGE;
}

#define MOST_META 3696 /* bytes of the entries of metadata */

/* The bytes of metadata, with their length, at `block`, of which n can be read;
 * 0 if the header says that there are none, or they cannot be that long. */
static size_t meta_bytes(const uint8_t *page, const uint8_t *block, size_t n)
{
    if (!(page[20] & 1) || n < 8)
        return 0;
    const size_t len = (size_t)(at64(block) & UINT32_MAX);
    return len <= MOST_META && len + 12 <= n ? 4 + len : 0;
}

/* Of a coded record they follow the header, with a sum: how many bytes. */
static size_t repair_meta(const uint8_t *page, uint8_t *block, size_t n)
{
    const size_t used = meta_bytes(page, block, n), span = (used + 7) / 8 * 8;
    if (!used || span + 8 > n)
        return 0;
    memset(block + used, 0, span - used);
    set64(block + span, XXH3_64bits(block, span));
    return span + 8;
}

static bool is_summed(const uint8_t *page)
{
    static const uint8_t two[4] = { 2 };
    return memcmp(page + 8, two, 4) == 0 && header_bytes(page) == PAGE;
}

/* The bytes of the table of sums of a payload, and with the zeros behind it. */
static uint64_t table_bytes(uint64_t stored)
{
    return ((stored >> BLOCK_SHIFT) + (stored % (1u << BLOCK_SHIFT) != 0)) * 8;
}

static uint64_t table_span(uint64_t stored)
{
    return (table_bytes(stored) + PAGE - 1) / PAGE * PAGE;
}

/* The table of sums before the payload, and its own sum. False if `left` bytes
 * behind the header are too few. */
static bool repair_table(uint8_t *page, uint64_t stored, size_t left)
{
    uint8_t *const table = page + PAGE;
    if (stored > left || table_span(stored) > left - stored)
        return false;
    const size_t n = (size_t)table_bytes(stored);
    const uint8_t *const payload = table + table_span(stored);
    memset(table, 0, (size_t)table_span(stored));
    for (size_t i = 0; i < n / 8; i++) {
        const size_t from = i << BLOCK_SHIFT, rest = (size_t)stored - from;
        set64(table + 8 * i,
              XXH3_64bits(payload + from, rest < 1u << BLOCK_SHIFT
                                              ? rest
                                              : (size_t)1 << BLOCK_SHIFT));
    }
    set64(page + 280, XXH3_64bits(table, n));
    return true;
}

/* Checksums, and the zeros that a header must have, right in every record:
 * offsets as in docs/format.md. */
static void repair(uint8_t *bytes, size_t n)
{
    const size_t align = header_bytes(bytes) == PAGE ? PAGE : 8;
    size_t at = 0;
    while (n - at >= FIELDS) {
        uint8_t *page = bytes + at;
        const size_t nheader = header_bytes(page);
        if (nheader > n - at)
            return;
        uint64_t stored = at64(page + 80);
        size_t left = n - at - nheader;
        size_t span = 0, nmeta = 0;
        if (nheader == PAGE) {
            nmeta = meta_bytes(page, page + FIELDS, PAGE - FIELDS - 8);
            memset(page + FIELDS + nmeta, 0, nheader - 8 - FIELDS - nmeta);
            nmeta = 0; /* they are inside */
        } else {
            nmeta = repair_meta(page, page + nheader, left);
        }
        left -= nmeta;
        if (is_summed(page) && repair_table(page, stored, left))
            span = (size_t)table_span(stored);
        else if (stored > left)
            stored = left;
        if (!span)
            set64(page + 280,
                  XXH3_64bits(page + nheader + nmeta, (size_t)stored));
        set64(page + nheader - 8, XXH3_64bits(page, nheader - 8));
        at += nheader + nmeta + span + (size_t)stored;
        const size_t padding = -at & (align - 1);
        if (padding > n - at)
            return;
        memset(bytes + at, 0, padding);
        at += padding;
    }
}

typedef struct pool {
    const uint8_t *at;
    size_t left;
} pool;

/* A source that says nothing of its size. */
static int64_t drain(void *ctx, void *buf, size_t nbytes)
{
    pool *p = ctx;
    const size_t n = nbytes < p->left ? nbytes : p->left;
    memcpy(buf, p->at, n);
    p->at += n;
    p->left -= n;
    return (int64_t)n;
}

static void make_hashes(uint64_t hashes[NHASHES])
{
    uint64_t x = 42;
    for (int i = 0; i < NHASHES; i++) {
        x += UINT64_C(0x9e3779b97f4a7c15);
        hashes[i] = (x ^ x >> 31) * UINT64_C(0xbf58476d1ce4e5b9);
    }
    hashes[0] = 0;
    hashes[1] = UINT64_MAX;
}

/* Is any key in there? At the ends of the integers, short and long, about keys
 * that a seed has, and the wrong way round. */
static void ask_ranges(const bly_filter *f)
{
    static const uint64_t low[] = { 0, 0, 7, UINT64_MAX, 1u << 20, 5, 9 };
    static const uint64_t high[] = { 0,          UINT64_MAX, UINT64_MAX,
                                     UINT64_MAX, 1u << 21,   6,
                                     8 };
    static const bly_bytes from[] = { { "", 0 }, { "key-1", 5 }, { "z", 1 } };
    static const bly_bytes to[] = { { "", 0 }, { "key-5\xff", 6 }, { "a", 1 } };
    uint64_t a[NHASHES], b[NHASHES], maybe[BLY_BITMAP_WORDS(NHASHES)];
    bool any;
    for (size_t i = 0; i < sizeof low / sizeof low[0]; i++) {
        (void)bly_has_range(f, low[i], high[i], &any);
        (void)bly_has_ranges_as(f, BLY_KEYS_INT64, &low[i], &high[i], 1, maybe);
    }
    for (size_t i = 0; i < sizeof to / sizeof to[0]; i++)
        (void)bly_has_ranges_as(f, BLY_KEYS_TEXT, &from[i], &to[i], 1, maybe);
    make_hashes(a);
    for (int i = 0; i < NHASHES; i++) {
        const uint64_t span = UINT64_MAX >> i % 64;
        b[i] = a[i] > UINT64_MAX - span ? UINT64_MAX : a[i] + span;
    }
    if (bly_has_ranges(f, a, b, NHASHES, maybe) == BLY_OK)
        assert(maybe[BLY_BITMAP_WORDS(NHASHES) - 1] >> NHASHES % 64 == 0);
}

/* What needs no writing. */
static void ask(const bly_filter *f)
{
    uint64_t hashes[NHASHES], words[NHASHES], maybe[BLY_BITMAP_WORDS(NHASHES)];
    bly_stats stats;
    bly_likeness like;
    make_hashes(hashes);
    bly_has(f, "key-0", 5);
    bly_has_hashes(f, hashes, NHASHES, maybe);
    ask_ranges(f);
    bly_count_hashes(f, hashes, NHASHES, words);
    bly_get_hashes(f, hashes, NHASHES, words, maybe);
    bly_peek(f, &stats);
    bly_stat(f, &stats);
    bly_compare(f, f, &like);
    assert(bly_equal(f, f));
}

/* Does what f writes load to f? */
static void write_and_load(const bly_filter *f, const bly_access *how)
{
    const size_t n = (size_t)bly_written_bytes(f);
    uint8_t *bytes = malloc(n);
    bly_filter *again;
    assert(n && bytes && bly_write_part(f, 0, bytes, n) == n);
    if (bly_load(bytes, n, how, &again)) {
        fprintf(stderr, "%s\n", bly_error());
        abort();
    }
    assert(bly_equal(f, again));
    bly_free(again);
    free(bytes);
}

static void change(bly_filter *f, const bly_access *how)
{
    uint64_t hashes[NHASHES], by[NHASHES], fresh[BLY_BITMAP_WORDS(NHASHES)];
    uint64_t maybe[BLY_BITMAP_WORDS(NHASHES)];
    bly_status each[NHASHES];
    bly_kind_info kind;
    size_t ndone = 0;
    bly_filter *copy, *half;
    bly_kind_of(f, &kind);
    make_hashes(hashes);
    if (bly_clone(f, &copy) == BLY_OK) {
        assert(bly_equal(f, copy));
        (void)!bly_merge(copy, f);
        write_and_load(copy, how);
        bly_intersect(copy, f);
        write_and_load(copy, how);
        bly_free(copy);
    }
    if (bly_fold(f, &half) == BLY_OK) {
        ask(half);
        write_and_load(half, how);
        bly_free(half);
    }
    (void)!bly_add_hashes(f, hashes, NHASHES, fresh, &ndone);
    bly_has_hashes(f, hashes, NHASHES, maybe);
    /* What forgets may have a window of ten. */
    if ((kind.can & BLY_CAN(HAS)) && !(kind.can & BLY_CAN(TICK)) &&
        !(kind.traits & BLY_LIKELY_NO))
        for (size_t i = 0; i < ndone; i++)
            assert(maybe[i / 64] >> i % 64 & 1);
    for (int i = 0; i < NHASHES; i++)
        by[i] = (uint64_t)i;
    (void)!bly_increase_hashes(f, hashes, by, NHASHES, NULL);
    bly_tick(f, 1);
    bly_remove_hashes(f, hashes, NHASHES, each);
    (void)!bly_set_hash(f, hashes[5], 1);
    write_and_load(f, how);
}

/* Bits alone, taken and given: those of f, and others. */
static void raw(const bly_filter *f, const bly_access *how)
{
    const size_t n = (size_t)bly_raw_bytes(f);
    uint8_t *const bits = n ? malloc(n) : NULL;
    bly_filter *copy;
    if (!bits || bly_clone(f, &copy) != BLY_OK) {
        free(bits);
        return;
    }
    assert(bly_raw_get(f, bits, n) == BLY_OK);
    memset(bits, 0, n - 1);
    bits[n - 1] ^= 1;
    assert(bly_raw_set(copy, bits, n) == BLY_OK);
    ask(copy);
    write_and_load(copy, how);
    assert(bly_raw_get(f, bits, n) == BLY_OK);
    assert(bly_raw_set(copy, bits, n) == BLY_OK && bly_equal(f, copy));
    memset(bits, 0xff, n); /* refused where the last byte is not whole */
    (void)bly_raw_set(copy, bits, n);
    write_and_load(copy, how);
    bly_free(copy);
    free(bits);
}

static void use(bly_filter *f, const bly_access *how)
{
    bly_stats stats;
    ask(f);
    write_and_load(f, how);
    bly_peek(f, &stats);
    bly_set_coded(f, !stats.coded);
    write_and_load(f, how);
    bly_set_compact(f, !stats.compact);
    write_and_load(f, how);
    raw(f, how);
    change(f, how);
    bly_free(f);
}

/* Mapped from a file that has no name but can be opened, and believed. */
static void map(const uint8_t *bytes, size_t n, const bly_access *as)
{
    char path[64];
    bly_access how = *as;
    how.checking = BLY_CHECK_NOTHING;
    bly_filter *f, *copy;
    const int fd = memfd_create("fuzz", 0);
    assert(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (bly_map(path, &how, &f) == BLY_OK) {
        ask(f);
        const bly_status st = bly_verify(f);
        if (bly_clone(f, &copy) == BLY_OK) {
            assert(st == BLY_OK);
            bly_free(copy);
        }
        assert(bly_add_hash(f, 1) != BLY_OK);
        bly_free(f);
    }
    close(fd);
}

/* Combined with itself while it is read. */
static void combine(const bly_filter *f, const uint8_t *bytes, size_t n,
                    const bly_access *how)
{
    for (int i = BLY_UNION; i <= BLY_INTERSECTION; i++) {
        pool p = { bytes, n };
        bly_filter *copy;
        if (bly_clone(f, &copy) != BLY_OK)
            return;
        if (bly_combine_read(copy, (bly_combination)i, drain, &p) == BLY_OK)
            write_and_load(copy, how);
        bly_free(copy);
    }
}

static void try_bytes(const uint8_t *bytes, size_t n)
{
    static const unsigned char secret[BLY_SECRET_BYTES + 1] =
        "golden secret 16";
    /* Without a key, and blindly; then with the key of the golden file. */
    const bly_access ways[] = { { .blind = true }, { .secret = secret } };
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        bly_filter *f;
        if (bly_load(bytes, n, &ways[i], &f) == BLY_OK) {
            pool p = { bytes, n };
            bly_filter *streamed;
            assert(bly_read(drain, &p, &ways[i], &streamed) == BLY_OK);
            assert(bly_equal(f, streamed));
            combine(streamed, bytes, n, &ways[i]);
            bly_free(streamed);
            use(f, &ways[i]);
        }
    }
    map(bytes, n, &ways[0]);
}

/* The input, with `more` bytes behind the fields of its first header. */
static void try_repaired(const uint8_t *data, size_t size, size_t more)
{
    uint8_t *copy = calloc(size + more + 1, 1);
    assert(copy);
    memcpy(copy, data, FIELDS);
    memcpy(copy + FIELDS + more, data + FIELDS, size - FIELDS);
    repair(copy, size + more);
    try_bytes(copy, size + more);
    free(copy);
}

/* What a file has between its fields and its payload. */
static size_t middle_bytes(const uint8_t *page, size_t size)
{
    const uint64_t stored = at64(page + 80);
    return header_bytes(page) - FIELDS +
           (is_summed(page) && stored <= size ? (size_t)table_span(stored) : 0);
}

/* A filter has one compact file, but for how a coder may be fed. */
static void expect_same(const uint8_t *bytes, size_t n)
{
    const bly_access blind = { .blind = true, .max_bytes = 1 << 20 };
    bly_stats stats;
    bly_filter *f;
    if (bly_load(bytes, n, &blind, &f) != BLY_OK)
        return;
    bly_peek(f, &stats);
    uint8_t *const again = malloc(n);
    assert(again && (stats.coded || bly_written_bytes(f) == n));
    if (!stats.coded)
        assert(bly_write_part(f, 0, again, n) == n &&
               memcmp(again, bytes, n) == 0);
    free(again);
    bly_free(f);
}

/* A compact file has one sum, at its end. */
static bool try_compact(const uint8_t *data, size_t size)
{
    static const uint8_t three[4] = { 3 };
    if (size < 8 + sizeof three + 8 || memcmp(data + 8, three, sizeof three))
        return false;
    uint8_t *copy = malloc(size);
    assert(copy);
    memcpy(copy, data, size);
    set64(copy + size - 8, XXH3_64bits(copy, size - 8));
    try_bytes(copy, size);
    expect_same(copy, size);
    free(copy);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const bool summed = size >= FIELDS && is_summed(data);
    bly_summed_from = summed ? 0 : (uint64_t)4 << 20;
    bly_sums_shift = summed ? BLOCK_SHIFT : 16;
    try_bytes(data, size);
    if (try_compact(data, size) || size < FIELDS)
        return 0;
    try_repaired(data, size, 0);
    try_repaired(data, size, middle_bytes(data, size));
    return 0;
}
