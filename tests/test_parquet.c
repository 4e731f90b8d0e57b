/*
 * test_parquet.c - split-block filters, Thrift, and Parquet files made by hand
 *
 * Files of other systems are in test_parquet_command.py.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/maths.h"
#include "engine/hash_many.h"
#include "foreign/hashes.h"
#include "foreign/parquet_file.h"
#include "foreign/sbbf.h"
#include "tests/sized_laws.h"

/* ---------------------------------------------------------- split blocks */

static uint64_t *random_hashes(size_t n)
{
    uint64_t *const h = malloc(n * sizeof *h), state = 7;
    assert_non_null(h);
    for (size_t i = 0; i < n; i++)
        h[i] = test_random(&state);
    return h;
}

/* "hello": block 4 of 32, bits 20, 9, 10, 7, 9, 31, 28, 27 of its words. */
static void test_positions(void **state)
{
    (void)state;
    static const unsigned bits[] = { 20, 9, 10, 7, 9, 31, 28, 27 };
    const bly_foreign_part p = { .nbits = 32 * 256, .k = 8 };
    bly_foreign_key key = { .bytes = (const unsigned char *)"hello", .len = 5 };
    uint64_t at[8];
    bly_sbbf_hash(NULL, &key);
    assert_int_equal(key.h[0], UINT64_C(0x26c7827d889f6da3));
    bly_sbbf_positions(NULL, &p, &key, at);
    for (unsigned j = 0; j < 8; j++)
        assert_int_equal(at[j], 4 * 256 + j * 32 + bits[j]);
}

/* Every variant that this processor has sets what positions() says. */
static void test_rows(void **state)
{
    (void)state;
    enum { BLOCKS = 61, KEYS = 500 };
    uint64_t *const h = random_hashes(KEYS);
    unsigned char want[BLOCKS * 32] = { 0 };
    const bly_foreign_part p = { .nbits = BLOCKS * 256, .k = 8 };
    for (size_t i = 0; i < KEYS; i++) {
        const bly_foreign_key key = { .h = { h[i] } };
        uint64_t at[8];
        bly_sbbf_positions(NULL, &p, &key, at);
        for (unsigned j = 0; j < 8; j++)
            want[at[j] / 8] |= (unsigned char)(1 << at[j] % 8);
    }
    EACH_ROW(blocks, r)
    {
        unsigned char *const got = guarded_new(sizeof want);
        memset(got, 0, sizeof want);
        r->add(got, BLOCKS, h, KEYS);
        assert_memory_equal(got, want, sizeof want);
        guarded_free(got, sizeof want);
    }
    free(h);
}

/* Values of any width, one by one and many at once. */
static void test_fixed_hashes(void **state)
{
    (void)state;
    static const size_t widths[] = { 4, 8, 12, 16, 40 };
    enum { VALUES = 61 };
    for (size_t w = 0; w < COUNT_OF(widths); w++) {
        const size_t nbytes = widths[w] * VALUES;
        unsigned char *const values = guarded_new(nbytes);
        uint64_t got[VALUES], seed = w;
        for (size_t i = 0; i < nbytes; i++)
            values[i] = (unsigned char)test_random(&seed);
        EACH_ROW(xxh64, r)
        {
            r->hash(values, widths[w], VALUES, got);
            for (size_t i = 0; i < VALUES; i++)
                assert_int_equal(
                    got[i], bly_xxh64(values + i * widths[w], widths[w], 0));
        }
        guarded_free(values, nbytes);
    }
}

/* Folding gives what fewer blocks would have been given; it stops at the rate,
 * and the rate is what absent hashes meet. */
static void test_fold(void **state)
{
    (void)state;
    enum { KEYS = 8192, ABSENT_KEYS = 200000 };
    const uint64_t nblocks = bly_sbbf_blocks(9 * KEYS, 0.01);
    assert_int_equal(nblocks, 4096);
    uint64_t *const h = random_hashes(KEYS + ABSENT_KEYS);
    unsigned char *const large = calloc(nblocks, 32);
    for (int i = 0; i < 9; i++)
        bly_blocks_best()->add(large, nblocks, h, KEYS);
    const uint64_t left = bly_sbbf_fold(large, nblocks, 0.01);
    assert_int_equal(left, 512);
    unsigned char *const small = calloc(left, 32);
    bly_blocks_best()->add(small, left, h, KEYS);
    assert_memory_equal(large, small, left * 32);
    const bly_foreign_part p = { .bytes = small, .nbits = left * 256, .k = 8 };
    const double rate = bly_sbbf_rate(NULL, &p);
    assert_near(rate, bly_fpr_mixture(KEYS, 512, 32, 1, 8), 0.2);
    unsigned wrong = 0;
    for (size_t i = KEYS; i < KEYS + ABSENT_KEYS; i++) {
        const bly_foreign_key key = { .h = { h[i] } };
        uint64_t at[8];
        bool maybe = true;
        bly_sbbf_positions(NULL, &p, &key, at);
        for (unsigned j = 0; j < 8; j++)
            maybe &= bly_part_bit(&p, at[j]);
        wrong += maybe;
    }
    const double mean = rate * ABSENT_KEYS;
    assert_between(wrong, mean - 6 * sqrt(mean), mean + 6 * sqrt(mean));
    free(small);
    free(large);
    free(h);
}

/* What it takes, in bits a value: the table of the format's specification. */
static void test_sizes(void **state)
{
    (void)state;
    static const double rows[][2] = {
        { 6.0, 0.1 }, { 10.5, 0.01 }, { 16.9, 0.001 }, { 26.4, 0.0001 }
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_near(bly_fpr_mixture(1e6, 1e6 * rows[i][0] / 256, 32, 1, 8),
                    rows[i][1], 0.05);
    assert_int_equal(bly_sbbf_blocks(0, 0.01), 1);
    assert_int_equal(bly_sbbf_blocks(1, 0.01), 1);
    assert_int_equal(bly_sbbf_blocks(1e12, 0.01), BLY_SBBF_MAX_BLOCKS);
}

static void test_headers(void **state)
{
    (void)state;
    unsigned char bytes[BLY_SBBF_HEADER + 1024] = { 0 };
    bly_sbbf s;
    const size_t n = bly_sbbf_header(bytes, 32);
    assert_int_equal(n, 16);
    assert_memory_equal(
        bytes, "\x15\x80\x10\x1c\x1c\0\0\x1c\x1c\0\0\x1c\x1c\0\0\0", n);
    assert_ok(bly_sbbf_read(bytes, n + 1024, &s));
    assert_int_equal(s.nblocks, 32);
    assert_int_equal(s.nheader, 16);
    assert_true(s.known);
    assert_status(bly_sbbf_read(bytes, n + 1023, &s), BLY_EFORMAT);
    for (size_t cut = 0; cut < n; cut++)
        assert_status(bly_sbbf_read(bytes, cut, &s), BLY_EFORMAT);
    bytes[2] = 0x11; /* 1088 + ... : not whole blocks */
    bytes[1] = 0x82;
    assert_status(bly_sbbf_read(bytes, n + 1024, &s), BLY_EFORMAT);
}

/* ----------------------------------------------------------------- Thrift */

static void test_thrift_hostile(void **state)
{
    (void)state;
    /* Structs in structs, a list longer than what follows, a number that does
     * not end, a map of many, types that there are not. */
    static const struct {
        const char *bytes;
        size_t n;
    } bad[] = {
        { "\x1c\x1c\x1c\x1c\x1c\x1c\x1c\x1c\x1c\x1c\x1c\x1c\x1c\x1c\x1c\x1c\x1c"
          "\x1c\x1c\x1c\x1c\x1c\x1c\x1c\x1c\x1c\x1c\x1c\x1c\x1c\x1c\x1c\x1c"
          "\x1c",
          34 },
        { "\x19\xfc\xff\xff\xff\xff\x0f\0", 8 },
        { "\x16\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\0", 13 },
        { "\x1b\xff\xff\xff\xff\x0f\x88\0\0", 9 },
        { "\x1b\x01\x08\0\0", 5 },
        { "\x1e\0", 2 },
        { "\x18\x05"
          "abcd",
          6 },
        { "\x17"
          "1234567",
          8 },
        { "\x10", 1 },
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        unsigned char *const at = guarded_new(bad[i].n);
        memcpy(at, bad[i].bytes, bad[i].n);
        bly_thrift t = { at, at + bad[i].n, false };
        bly_thrift_field f = { 0 };
        while (bly_thrift_next(&t, &f))
            bly_thrift_skip(&t, &f);
        assert_true(t.bad);
        guarded_free(at, bad[i].n);
    }
}

static void test_thrift_numbers(void **state)
{
    (void)state;
    static const int64_t numbers[] = { 0,  1,   -1,        63,       64,
                                       -5, 300, INT64_MIN, INT64_MAX };
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        unsigned char bytes[BLY_THRIFT_ROOM];
        const size_t n = bly_thrift_put_int(bytes, numbers[i]);
        bly_thrift t = { bytes, bytes + n, false };
        assert_true(bly_thrift_element_int(&t) == numbers[i]);
        assert_false(t.bad);
        assert_ptr_equal(t.at, t.end);
    }
    /* A step of 15 fits beside the type, one of 16 does not. */
    unsigned char bytes[BLY_THRIFT_ROOM];
    assert_int_equal(bly_thrift_put_field(bytes, 14, 29, 5), 1);
    assert_int_equal(bytes[0], 0xf5);
    assert_int_equal(bly_thrift_put_field(bytes, 14, 30, 5), 2);
    assert_int_equal(bytes[1], 60);
}

/* --------------------------------------------------------- a file by hand */

/* Two columns, INT64 `id` and an optional string `s`, two row groups of three
 * rows, pages in PLAIN. */
static void put_text(byte_array *to, const char *bytes, size_t n)
{
    put_bytes(to, bytes, n);
}
#define PUT(to, bytes) put_text(to, bytes, sizeof(bytes) - 1)

static void put_number(byte_array *to, int64_t x)
{
    unsigned char bytes[BLY_THRIFT_ROOM];
    put_bytes(to, bytes, bly_thrift_put_int(bytes, x));
}

/* A page of three values; returns where it begins. */
static size_t put_page(byte_array *to, const char *values, size_t n)
{
    const size_t at = to->n;
    PUT(to, "\x15\0\x15");
    put_number(to, (int64_t)n);
    PUT(to, "\x15");
    put_number(to, (int64_t)n);
    PUT(to, "\x2c\x15\x06\x15\0\x15\x06\x15\x06\0\0");
    put_bytes(to, values, n);
    return at;
}

static void put_chunk(byte_array *to, const char *type, const char *name,
                      size_t at, size_t n)
{
    PUT(to, "\x26\0\x1c\x15"); /* file_offset; meta_data: type */
    put_bytes(to, type, 1);
    PUT(to, "\x19\x15\0\x19\x18"); /* encodings, path */
    put_bytes(to, &(char){ (char)strlen(name) }, 1);
    put_bytes(to, name, strlen(name));
    PUT(to, "\x15\0\x16\x06\x16"); /* codec, num_values, sizes */
    put_number(to, (int64_t)n);
    PUT(to, "\x16");
    put_number(to, (int64_t)n);
    PUT(to, "\x26"); /* data_page_offset, after field 7 */
    put_number(to, (int64_t)at);
    PUT(to, "\0\0");
}

static byte_array file_by_hand(void)
{
    byte_array f = { 0 };
    size_t at[4], n[4];
    PUT(&f, "PAR1");
    for (int g = 0; g < 2; g++) {
        unsigned char ids[24];
        for (unsigned i = 0; i < 3; i++)
            bly_store64(ids + 8 * i, 100 * (unsigned)g + i);
        at[2 * g] = put_page(&f, (const char *)ids, sizeof ids);
        n[2 * g] = f.n - at[2 * g];
        /* Levels 1, 0, 1 as one packed group, and two strings. */
        at[2 * g + 1] =
            g ? put_page(&f, "\2\0\0\0\x03\x05\1\0\0\0c\2\0\0\0dd", 17)
              : put_page(&f, "\2\0\0\0\x03\x05\1\0\0\0a\2\0\0\0bb", 17);
        n[2 * g + 1] = f.n - at[2 * g + 1];
    }
    const size_t footer = f.n;
    PUT(&f, "\x15\x02\x19\x3c"); /* version; schema of three */
    PUT(&f, "\x48\x06schema\x15\x04\0");
    PUT(&f, "\x15\x04\x25\0\x18\x02id\0");
    PUT(&f, "\x15\x0c\x25\x02\x18\x01s\x25\0\0");
    PUT(&f, "\x16\x0c\x19\x2c"); /* num_rows; two row groups */
    for (int g = 0; g < 2; g++) {
        PUT(&f, "\x19\x2c");
        put_chunk(&f, "\x04", "id", at[2 * g], n[2 * g]);
        put_chunk(&f, "\x0c", "s", at[2 * g + 1], n[2 * g + 1]);
        PUT(&f, "\x16\x64\x16\x06\0"); /* total_byte_size, num_rows */
    }
    PUT(&f, "\x28\x04hand\0"); /* created_by */
    unsigned char end[8] = { 0, 0, 0, 0, 'P', 'A', 'R', '1' };
    bly_store32(end, (uint32_t)(f.n - footer));
    put_bytes(&f, end, sizeof end);
    return f;
}

static void test_footer(void **state)
{
    (void)state;
    byte_array f = file_by_hand();
    bly_parquet *p;
    bly_parquet_shape shape;
    bly_parquet_column c;
    bly_parquet_chunk chunk;
    char type[80];
    assert_ok(bly_parquet_open(f.at, f.n, NULL, &p));
    bly_parquet_stat(p, &shape);
    assert_int_equal(shape.nrows, 6);
    assert_int_equal(shape.ngroups, 2);
    assert_int_equal(shape.ncolumns, 2);
    assert_string_equal(shape.created_by, "hand");
    assert_int_equal(bly_parquet_group_rows(p, 1), 3);
    bly_parquet_column_at(p, 1, &c);
    assert_string_equal(c.name, "s");
    assert_int_equal(c.max_def, 1);
    assert_int_equal(c.max_rep, 0);
    bly_parquet_type_name(&c, type, sizeof type);
    assert_string_equal(type, "BYTE_ARRAY string");
    bly_parquet_chunk_at(p, 1, 0, &chunk);
    assert_int_equal(chunk.nvalues, 3);
    assert_int_equal(chunk.filter_at, 0);
    uint64_t at = 0;
    bly_parquet_page page;
    assert_ok(bly_parquet_page_next(p, 1, 0, &at, &page));
    assert_int_equal(at, chunk.nbytes);
    assert_int_equal(page.nvalues, 3);
    assert_int_equal(page.nbytes, 24);
    assert_int_equal(bly_load64(page.bytes + 8), 101);
    size_t number;
    assert_ok(bly_parquet_column_named(p, "s", &number));
    assert_int_equal(number, 1);
    assert_status(bly_parquet_column_named(p, "t", &number), BLY_EINVAL);
    bly_parquet_free(p);
    free(f.at);
}

/* Give column `id` filters, group by group, and write. */
static bly_status with_filters(const byte_array *f, const bly_mem *mem,
                               byte_array *out)
{
    bly_parquet *p;
    bly_status st = bly_parquet_open(f->at, f->n, mem, &p);
    if (st)
        return st;
    for (size_t g = 0; g < 2 && !st; g++) {
        uint64_t at = 0;
        bly_parquet_page page;
        bly_parquet_filter made;
        st = bly_parquet_page_next(p, g, 0, &at, &page);
        if (!st)
            st = bly_parquet_filter_begin(p, g, 0, page.nvalues, 0.01);
        if (!st) {
            bly_parquet_filter_add_fixed(p, page.bytes, 8, page.nvalues);
            st = bly_parquet_filter_end(p, &made);
        }
        if (!st) {
            assert_int_equal(made.nbytes, 32);
            assert_between(made.values, 2.5, 3.5);
        }
    }
    if (!st)
        st = bly_parquet_write(p, put_bytes, out);
    bly_parquet_free(p);
    return st;
}

static void assert_where(const bly_foreign *f, const char *key, uint64_t want)
{
    uint64_t got;
    assert_ok(bly_foreign_where(f, (bly_bytes){ key, strlen(key) }, &got));
    assert_int_equal(got, want);
}

static void test_filters(void **state)
{
    (void)state;
    byte_array f = file_by_hand(), out = { 0 }, again = { 0 };
    bly_foreign *filters;
    bly_foreign_stats s;
    assert_ok(with_filters(&f, NULL, &out));
    assert_ok(bly_foreign_open(NULL, out.at, out.n, &filters));
    bly_foreign_stat(filters, BLY_WHOLE, &s);
    assert_string_equal(s.format, "parquet");
    assert_int_equal(s.nparts, 2);
    bly_foreign_stat(filters, 1, &s);
    assert_string_equal(s.name, "row group 1, column id");
    assert_int_equal(s.bits, 256);
    for (unsigned i = 0; i < 3; i++) {
        char text[16];
        snprintf(text, sizeof text, "%u", i);
        assert_where(filters, text, 1);
        snprintf(text, sizeof text, "%u", 100 + i);
        assert_where(filters, text, 2);
    }
    assert_where(filters, "77", 0);
    const bly_bytes wrong = { "x", 1 };
    uint64_t bit;
    assert_status(bly_foreign_where(filters, wrong, &bit), BLY_EINVAL);
    bly_foreign_free(filters);
    /* What has filters gets the same again, in their place. */
    assert_ok(with_filters(&out, NULL, &again));
    const size_t nfilters = 2 * (32 + 15); /* with their headers */
    assert_int_equal(again.n, out.n + nfilters);
    free(f.at);
    free(out.at);
    free(again.at);
}

/* Without filters, and of two columns that have some, nothing can be asked. */
static void test_nothing_to_ask(void **state)
{
    (void)state;
    byte_array f = file_by_hand();
    bly_foreign *filters;
    const bly_bytes key = { "1", 1 };
    uint64_t bit;
    assert_ok(bly_foreign_open(NULL, f.at, f.n, &filters));
    assert_status(bly_foreign_has(filters, &key, 1, &bit, NULL), BLY_EINVAL);
    bly_foreign_free(filters);
    const bly_option column = { "column", "id" };
    const bly_foreign_spec spec = { .options = &column, .noptions = 1 };
    assert_status(bly_foreign_open(&spec, f.at, f.n, &filters), BLY_EINVAL);
    free(f.at);
}

static void test_misuse(void **state)
{
    (void)state;
    byte_array f = file_by_hand();
    bly_parquet *p;
    assert_ok(bly_parquet_open(f.at, f.n, NULL, &p));
    assert_status(bly_parquet_filter_begin(p, 0, 0, 3, 0), BLY_EINVAL);
    assert_ok(bly_parquet_filter_begin(p, 0, 0, 3, 0.01));
    assert_status(bly_parquet_filter_begin(p, 0, 1, 3, 0.01), BLY_EINVAL);
    assert_ok(bly_parquet_filter_end(p, NULL));
    assert_status(bly_parquet_filter_end(p, NULL), BLY_EINVAL); /* not begun */
    assert_status(bly_parquet_filter_begin(p, 0, 0, 3, 0.01), BLY_EINVAL);
    bly_parquet_free(p);
    free(f.at);
}

static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    byte_array f = file_by_hand();
    for (long turn = 0;; turn++) {
        ledger l;
        byte_array out = { 0 };
        ledger_open(&l);
        l.fail_at = turn;
        const bly_status st = with_filters(&f, &l.mem, &out);
        const bool reached = l.calls > turn;
        ledger_check(&l);
        free(out.at);
        if (!reached) {
            assert_ok(st);
            assert_true(turn >= 8);
            break;
        }
        assert_int_equal(st, BLY_ENOMEM);
    }
    free(f.at);
}

/* Read all that a file lets be read; the memory it takes is bounded by it. */
static void read_all_of(const unsigned char *bytes, size_t n)
{
    ledger l;
    ledger_open(&l);
    bly_parquet *p;
    bly_foreign *filters;
    const bly_foreign_spec spec = { .format = "parquet", .mem = &l.mem };
    if (!bly_parquet_open(bytes, n, &l.mem, &p)) {
        bly_parquet_shape shape;
        bly_parquet_stat(p, &shape);
        for (size_t g = 0; g < shape.ngroups; g++)
            for (size_t c = 0; c < shape.ncolumns; c++) {
                bly_parquet_page page;
                bly_parquet_chunk chunk;
                uint64_t at = 0, sum = 0;
                bly_parquet_chunk_at(p, g, c, &chunk);
                while (at < chunk.nbytes &&
                       !bly_parquet_page_next(p, g, c, &at, &page))
                    for (size_t i = 0; i < page.nbytes; i++)
                        sum += page.bytes[i];
                assert_true(sum < UINT64_MAX);
            }
        bly_parquet_free(p);
    }
    if (!bly_foreign_open(&spec, bytes, n, &filters)) {
        const bly_bytes key = { "1", 1 };
        uint64_t bit;
        bly_foreign_stats s;
        bly_foreign_has(filters, &key, 1, &bit, NULL);
        bly_foreign_stat(filters, BLY_WHOLE, &s);
        bly_foreign_free(filters);
    }
    assert_true(l.peak < 8 * (int64_t)n + 4096);
    ledger_check(&l);
}

static void test_damaged(void **state)
{
    (void)state;
    byte_array f = file_by_hand(), out = { 0 };
    assert_ok(with_filters(&f, NULL, &out));
    for (size_t n = 0; n < out.n; n++) {
        unsigned char *const cut = guarded_new(n ? n : 1);
        memcpy(cut, out.at, n);
        read_all_of(cut, n);
        guarded_free(cut, n ? n : 1);
    }
    unsigned char *const copy = guarded_new(out.n);
    memcpy(copy, out.at, out.n);
    for (size_t i = 0; i < out.n; i++)
        for (unsigned x = 1; x < 256; x += x < 8 || x > 250 ? 1 : 17) {
            copy[i] = (unsigned char)(out.at[i] ^ x);
            read_all_of(copy, out.n);
            copy[i] = out.at[i];
        }
    guarded_free(copy, out.n);
    free(f.at);
    free(out.at);
}

/* ----------------------------------------------------------------- schemas */

/* A file of no rows whose schema has these n elements behind its root, which
 * has nchildren. */
static byte_array file_of(const byte_array *elements, size_t n,
                          unsigned nchildren)
{
    byte_array f = { 0 };
    PUT(&f, "PAR1");
    const size_t footer = f.n;
    PUT(&f, "\x15\x02\x19\xfc"); /* version; schema */
    unsigned char count[2] = { (unsigned char)((n + 1) | 0x80),
                               (unsigned char)((n + 1) >> 7) };
    put_bytes(&f, count, 2);
    PUT(&f, "\x48\x01r\x15"); /* name, num_children */
    put_number(&f, nchildren);
    PUT(&f, "\0");
    put_bytes(&f, elements->at, elements->n);
    PUT(&f, "\x16\0\x19\x0c\0"); /* num_rows; row groups */
    unsigned char end[8] = { 0, 0, 0, 0, 'P', 'A', 'R', '1' };
    bly_store32(end, (uint32_t)(f.n - footer));
    put_bytes(&f, end, sizeof end);
    return f;
}

/* A required column, with what follows its name. */
static void put_column(byte_array *to, int type, int length, const char *name,
                       const char *tail, size_t ntail)
{
    PUT(to, "\x15");
    put_number(to, type);
    if (length) {
        PUT(to, "\x15");
        put_number(to, length);
        PUT(to, "\x15\0\x18");
    } else {
        PUT(to, "\x25\0\x18");
    }
    put_bytes(to, &(char){ (char)strlen(name) }, 1);
    put_bytes(to, name, strlen(name));
    put_bytes(to, tail, ntail);
    PUT(to, "\0");
}

/* A group of one child, or more. */
static void put_group(byte_array *to, const char *name, size_t nname,
                      unsigned nchildren)
{
    unsigned char length[2] = { (unsigned char)(nname | 0x80),
                                (unsigned char)(nname >> 7) };
    PUT(to, "\x35\0\x18");
    put_bytes(to, length, 2);
    put_bytes(to, name, nname);
    PUT(to, "\x15");
    put_number(to, nchildren);
    PUT(to, "\0");
}

/* What a column means, by either way to say so, and what it does not where its
 * type cannot carry it. NULL: the file is damaged. */
static void test_meanings(void **state)
{
    (void)state;
#define OTHER "of unknown meaning"
    enum { BOOLEAN, INT32, INT64, INT96, FLOAT, DOUBLE, BYTES, FIXED };
    static const struct {
        int type, length;
        const char *tail;
        size_t ntail;
        const char *want;
    } rows[] = {
#define TAIL(bytes) bytes, sizeof(bytes) - 1
        /* ConvertedType */
        { BYTES, 0, TAIL("\x25\x26"), "BYTE_ARRAY JSON" },
        { BYTES, 0, TAIL("\x25\x28"), "BYTE_ARRAY BSON" },
        { INT64, 0, TAIL("\x25\x28"), "INT64 " OTHER },
        { BYTES, 0, TAIL("\x25\x02"), "BYTE_ARRAY" }, /* MAP, for groups */
        { INT32, 0, TAIL("\x25\x0e"), "INT32 time in milliseconds" },
        { INT64, 0, TAIL("\x25\x0e"), "INT64 " OTHER },
        { INT64, 0, TAIL("\x25\x10"), "INT64 time in microseconds" },
        { INT32, 0, TAIL("\x25\x16"), "INT32 uint8" },
        { INT32, 0, TAIL("\x25\x24"), "INT32 " OTHER }, /* INT_64 */
        { FIXED, 12, TAIL("\x25\x2a"), "FIXED_LEN_BYTE_ARRAY(12) interval" },
        { FIXED, 11, TAIL("\x25\x2a"), "FIXED_LEN_BYTE_ARRAY(11) " OTHER },
        { INT96, 0, TAIL("\x25\x2a"), "INT96 " OTHER },
        { INT32, 0, TAIL("\x25\x2c"), "INT32 " OTHER }, /* 22: none such */
        { INT32, 0, TAIL("\x25\x0a\x15\x04\x15\x12"), "INT32 decimal(9, 2)" },
        /* LogicalType: decimals (scale, precision) */
        { INT64, 0, TAIL("\x6c\x5c\x15\x04\x15\x12\0\0"),
          "INT64 decimal(9, 2)" },
        { BYTES, 0, TAIL("\x6c\x5c\x15\x04\x15\x12\x15\0\0\0"),
          "BYTE_ARRAY decimal(9, 2)" },
        { FIXED, 5, TAIL("\x6c\x5c\x15\x04\x15\x12\0\0"),
          "FIXED_LEN_BYTE_ARRAY(5) decimal(9, 2)" },
        { DOUBLE, 0, TAIL("\x6c\x5c\x15\x04\x15\x12\0\0"), "DOUBLE " OTHER },
        { INT64, 0, TAIL("\x6c\x5c\x15\xb6\x02\x15\x12\0\0"), /* 155 */
          "INT64 " OTHER },
        { INT64, 0, TAIL("\x6c\x5c\x15\x04\x15\x80\x80\x08\0\0"), /* 65536 */
          "INT64 " OTHER },
        { INT64, 0, TAIL("\x6c\x55\x04\0"), NULL },
        /* times: adjusted or not, and the unit */
        { INT32, 0, TAIL("\x6c\x7c\x11\x1c\x1c\0\0\0\0"),
          "INT32 time in milliseconds" },
        { INT32, 0, TAIL("\x6c\x7c\x11\x1c\x2c\0\0\0\0"), "INT32 " OTHER },
        { INT64, 0, TAIL("\x6c\x8c\x11\x1c\x3c\0\0\0\0"),
          "INT64 timestamp in nanoseconds" },
        { INT32, 0, TAIL("\x6c\x8c\x11\x1c\x3c\0\0\0\0"), "INT32 " OTHER },
        { INT64, 0, TAIL("\x6c\x8c\x11\x1c\x4c\0\0\0\0"), "INT64 " OTHER },
        { INT64, 0, TAIL("\x6c\x8c\x11\0\0"), "INT64 " OTHER },
        { INT64, 0, TAIL("\x6c\x85\x02\0"), NULL },
        /* integers: bits, whether signed */
        { INT32, 0, TAIL("\x6c\xac\x13\x08\x11\0\0"), "INT32 int8" },
        { INT32, 0, TAIL("\x6c\xac\x13\x10\x12\0\0"), "INT32 uint16" },
        { INT32, 0, TAIL("\x6c\xac\x13\x20\x12\x15\0\0\0"), "INT32 uint32" },
        { INT64, 0, TAIL("\x6c\xac\x13\x40\x12\0\0"), "INT64 uint64" },
        { INT32, 0, TAIL("\x6c\xac\x13\x0c\x11\0\0"), "INT32 " OTHER },
        { INT64, 0, TAIL("\x6c\xac\x13\x20\x11\0\0"), "INT64 " OTHER },
        { DOUBLE, 0, TAIL("\x6c\xac\x13\x40\x11\0\0"), "DOUBLE " OTHER },
        { INT64, 0, TAIL("\x6c\xac\x13\x41\x11\0\0"), NULL },
        { INT64, 0, TAIL("\x6c\xa5\x04\0"), NULL },
        /* the rest */
        { FIXED, 16, TAIL("\x6c\xec\0\0"), "FIXED_LEN_BYTE_ARRAY(16) UUID" },
        { FIXED, 15, TAIL("\x6c\xec\0\0"), "FIXED_LEN_BYTE_ARRAY(15) " OTHER },
        { BYTES, 0, TAIL("\x6c\xec\0\0"), "BYTE_ARRAY " OTHER },
        { FIXED, 2, TAIL("\x6c\xfc\0\0"), "FIXED_LEN_BYTE_ARRAY(2) float16" },
        { FIXED, 4, TAIL("\x6c\xfc\0\0"), "FIXED_LEN_BYTE_ARRAY(4) " OTHER },
        { INT32, 0, TAIL("\x6c\xfc\0\0"), "INT32 " OTHER },
        { BYTES, 0, TAIL("\x6c\x0c\x20\0\0"), "BYTE_ARRAY " OTHER }, /* 16 */
        { BYTES, 0, TAIL("\x6c\x0c\x01\0\0"), "BYTE_ARRAY " OTHER }, /* -1 */
        { BYTES, 0, TAIL("\x65\x02"), NULL },
#undef TAIL
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        byte_array element = { 0 };
        put_column(&element, rows[i].type, rows[i].length, "c", rows[i].tail,
                   rows[i].ntail);
        byte_array f = file_of(&element, 1, 1);
        bly_parquet *p;
        if (!rows[i].want) {
            assert_status(bly_parquet_open(f.at, f.n, NULL, &p), BLY_EFORMAT);
        } else {
            bly_parquet_column c;
            char name[80];
            assert_ok(bly_parquet_open(f.at, f.n, NULL, &p));
            bly_parquet_column_at(p, 0, &c);
            bly_parquet_type_name(&c, name, sizeof name);
            assert_string_equal(name, rows[i].want);
            bly_parquet_free(p);
        }
        free(f.at);
        free(element.at);
    }
#undef OTHER
}

static void assert_schema_refused(byte_array *elements, size_t n,
                                  unsigned nchildren)
{
    byte_array f = file_of(elements, n, nchildren);
    bly_parquet *p;
    assert_status(bly_parquet_open(f.at, f.n, NULL, &p), BLY_EFORMAT);
    free(f.at);
    free(elements->at);
    *elements = (byte_array){ 0 };
}

/* Trees that cost more than they are worth. */
static void test_hostile_schemas(void **state)
{
    (void)state;
    byte_array e = { 0 };
    char name[1000];
    memset(name, 'n', sizeof name);
    for (int i = 0; i < 64; i++) /* deeper than any */
        put_group(&e, "g", 1, 1);
    put_column(&e, 1, 0, "c", "", 0);
    assert_schema_refused(&e, 65, 1);
    for (int i = 0; i < 5; i++) /* a path of 5000 bytes */
        put_group(&e, name, sizeof name, 1);
    put_column(&e, 1, 0, "c", "", 0);
    assert_schema_refused(&e, 6, 1);
    put_group(&e, name, sizeof name, 100); /* a hundred of a thousand bytes */
    for (int i = 0; i < 100; i++)
        put_column(&e, 1, 0, "c", "", 0);
    assert_schema_refused(&e, 101, 1);
    put_group(&e, name, sizeof name, 10); /* of ten they are a file */
    for (int i = 0; i < 10; i++)
        put_column(&e, 1, 0, "c", "", 0);
    byte_array f = file_of(&e, 11, 1);
    bly_parquet *p;
    assert_ok(bly_parquet_open(f.at, f.n, NULL, &p));
    bly_parquet_column c;
    bly_parquet_column_at(p, 9, &c);
    assert_int_equal(strlen(c.name), 1002);
    bly_parquet_free(p);
    free(f.at);
    free(e.at);
}

/* Names that are not there or are there twice; a long list of them is cut. */
static void test_column_names(void **state)
{
    (void)state;
    byte_array e = { 0 };
    char name[16];
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "name-%d", i / 99 ? 0 : i);
        put_column(&e, 1, 0, name, "", 0);
    }
    byte_array f = file_of(&e, 100, 100);
    bly_parquet *p;
    size_t found = 77;
    assert_ok(bly_parquet_open(f.at, f.n, NULL, &p));
    assert_ok(bly_parquet_column_named(p, "name-98", &found));
    assert_int_equal(found, 98);
    assert_status(bly_parquet_column_named(p, "name-0", &found), BLY_EINVAL);
    assert_non_null(strstr(bly_error(), "two columns"));
    assert_status(bly_parquet_column_named(p, "no", &found), BLY_EINVAL);
    assert_non_null(strstr(bly_error(), "name-0, name-1, "));
    assert_string_equal(bly_error() + strlen(bly_error()) - 5, ", ...");
    assert_int_equal(found, 98);
    bly_parquet_free(p);
    free(f.at);
    free(e.at);
}

/* ----------------------------------------------------------------- values */

static void assert_key(bly_parquet_column c, const char *text, const char *want,
                       size_t n)
{
    bly_scratch s = { .mem = &bly_mem_system };
    bly_foreign_key key;
    c.name = "c";
    assert_ok(bly_parquet_key(&c, (bly_bytes){ text, strlen(text) }, &s, &key));
    assert_int_equal(key.len, n);
    assert_memory_equal(key.bytes, want, n);
    bly_mem_release(s.mem, s.at, s.room);
}

static void test_values(void **state)
{
    (void)state;
    const bly_parquet_column date = { .type = BLY_PARQUET_INT32,
                                      .width = 4,
                                      .meaning = BLY_PARQUET_DATE };
    assert_key(date, "1970-01-01", "\0\0\0\0", 4);
    assert_key(date, "1969-12-31", "\xff\xff\xff\xff", 4);
    assert_key(date, "2000-02-29", "\x08\x2b\0\0", 4);     /* 11016 */
    assert_key(date, "0001-01-01", "\xc6\x06\xf5\xff", 4); /* -719162 */
    const bly_parquet_column nanos = { .type = BLY_PARQUET_INT64,
                                       .width = 8,
                                       .meaning = BLY_PARQUET_TIMESTAMP,
                                       .digits = 9 };
    assert_key(nanos, "1970-01-01 00:00:00.000000001", "\1\0\0\0\0\0\0\0", 8);
    assert_key(nanos, "1969-12-31T23:59:59.999999999Z",
               "\xff\xff\xff\xff\xff\xff\xff\xff", 8);
    const bly_parquet_column millis = { .type = BLY_PARQUET_INT32,
                                        .width = 4,
                                        .meaning = BLY_PARQUET_TIME,
                                        .digits = 3 };
    assert_key(millis, "00:00:01.5", "\xdc\x05\0\0", 4);
    assert_key(millis, "23:59:59.999000", "\xff\x5b\x26\x05", 4);
    const bly_parquet_column wide = { .type = BLY_PARQUET_FIXED,
                                      .width = 6,
                                      .meaning = BLY_PARQUET_DECIMAL,
                                      .scale = 2 };
    assert_key(wide, "1.5", "\0\0\0\0\0\x96", 6);
    assert_key(wide, "-1.50", "\xff\xff\xff\xff\xff\x6a", 6);
    assert_key(wide, "-1407374883553.28", "\x80\0\0\0\0\0", 6);
    assert_key(wide, "1407374883553.27", "\x7f\xff\xff\xff\xff\xff", 6);
    bly_parquet_column free_width = wide;
    free_width.type = BLY_PARQUET_BYTE_ARRAY;
    free_width.width = 0;
    assert_key(free_width, "0", "\0", 1);
    assert_key(free_width, "1.28", "\0\x80", 2);
    assert_key(free_width, "-1.28", "\x80", 1);
    bly_parquet_column whole = wide;
    whole.scale = 0;
    assert_key(whole, "5", "\0\0\0\0\0\5", 6);
    const bly_parquet_column fixed = { .type = BLY_PARQUET_FIXED, .width = 3 };
    assert_key(fixed, "abc", "abc", 3);
    assert_key(fixed, "0001ff", "\0\1\xff", 3);
    const bly_parquet_column half = { .type = BLY_PARQUET_FIXED,
                                      .width = 2,
                                      .meaning = BLY_PARQUET_FLOAT16 };
    assert_key(half, "003c", "\0\x3c", 2);
    bly_scratch s = { .mem = &bly_mem_system };
    bly_foreign_key key;
    bly_parquet_column c = half;
    c.name = "c"; /* two digits are not bytes of it */
    assert_status(bly_parquet_key(&c, (bly_bytes){ "15", 2 }, &s, &key),
                  BLY_EINVAL);
    c = wide;
    c.name = "c";
    assert_status(
        bly_parquet_key(&c, (bly_bytes){ "1407374883553.28", 16 }, &s, &key),
        BLY_EINVAL);
    c = nanos;
    c.name = "c"; /* past 2^63 nanoseconds */
    assert_status(
        bly_parquet_key(&c, (bly_bytes){ "2300-01-01", 10 }, &s, &key),
        BLY_EINVAL);
    bly_mem_release(s.mem, s.at, s.room);
}

/* A value in a wrong form would be "surely not there": it is refused. */
static void test_no_values(void **state)
{
    (void)state;
    const bly_parquet_column
        date = { .name = "c",
                 .type = BLY_PARQUET_INT32,
                 .width = 4,
                 .meaning = BLY_PARQUET_DATE },
        time = { .name = "c",
                 .type = BLY_PARQUET_INT64,
                 .width = 8,
                 .meaning = BLY_PARQUET_TIME,
                 .digits = 6 },
        stamp = { .name = "c",
                  .type = BLY_PARQUET_INT64,
                  .width = 8,
                  .meaning = BLY_PARQUET_TIMESTAMP,
                  .digits = 9 },
        byte = { .name = "c",
                 .type = BLY_PARQUET_INT32,
                 .width = 4,
                 .meaning = BLY_PARQUET_INTEGER,
                 .bits = 8,
                 .is_unsigned = true },
        number = { .name = "c", .type = BLY_PARQUET_INT64, .width = 8 },
        real = { .name = "c", .type = BLY_PARQUET_DOUBLE, .width = 8 },
        uuid = { .name = "c",
                 .type = BLY_PARQUET_FIXED,
                 .width = 16,
                 .meaning = BLY_PARQUET_UUID },
        wide = { .name = "c",
                 .type = BLY_PARQUET_FIXED,
                 .width = 65,
                 .meaning = BLY_PARQUET_DECIMAL },
        truth = { .name = "c", .type = BLY_PARQUET_BOOLEAN, .width = 1 };
    static char many[600];
    memset(many, '1', sizeof many - 1);
    const struct {
        const bly_parquet_column *column;
        const char *text, *says;
    } rows[] = {
        { &date, "", "2020-01-31" },
        { &date, "202-01-01", "2020-01-31" },
        { &date, "2020x01-01", "2020-01-31" },
        { &date, "2020-1-01", "2020-01-31" },
        { &date, "2020-01x01", "2020-01-31" },
        { &date, "2020-01-1", "2020-01-31" },
        { &date, "2020-01-011", "2020-01-31" },
        { &date, "1234567-01-01", "2020-01-31" },
        { &date, "0000-01-01", "2020-01-31" },
        { &date, "2020-00-01", "2020-01-31" },
        { &date, "2020-13-01", "2020-01-31" },
        { &date, "2020-01-00", "2020-01-31" },
        { &date, "2020-04-31", "2020-01-31" },
        { &date, "1900-02-29", "2020-01-31" },
        { &date, "2020-01-01 ", "2020-01-31" },
        { &time, "1:00:00", "12:34:56, with up to 6 digits" },
        { &time, "01-00", "12:34:56" },
        { &time, "01:0", "12:34:56" },
        { &time, "24:00:00", "12:34:56" },
        { &time, "01:60:00", "12:34:56" },
        { &time, "01:00:0", "12:34:56" },
        { &time, "01:00:60", "12:34:56" },
        { &time, "01:00:00.", "12:34:56" },
        { &time, "01:00:00.1234567", "12:34:56" },
        { &stamp, "noon", "2020-01-31 12:34:56.5" },
        { &stamp, "2020-01-31 25:00", "2020-01-31 12:34:56.5" },
        { &stamp, "2262-04-11 23:47:16.854775808", "2020-01-31 12:34:56.5" },
        { &byte, "256", "a whole number of 8 bits, not negative" },
        { &byte, "-1", "not negative" },
        { &byte, "-", "not negative" },
        { &byte, "12x", "not negative" },
        { &number, "9223372036854775808", "whole number" },
        { &number, "18446744073709551616", "whole number" },
        { &number, "99999999999999999999", "whole number" },
        { &real, "", "a number" },
        { &real, " 1", "a number" },
        { &real, "1.5x", "a number" },
        { &real, "one", "a number" },
        { &real, many, "a number" },
        { &uuid, "00112233-4455-6677-8899-aabbccddeef", "32 hexadecimal" },
        { &uuid, "00112233-4455-6677-8899+aabbccddeeff", "32 hexadecimal" },
        { &uuid, "00112233-4455-6677-8899-aabbccddeefg", "32 hexadecimal" },
        { &wide, "1", "decimals of 65 bytes" },
        { &truth, "true", "no filters" },
    };
    bly_scratch s = { .mem = &bly_mem_system };
    bly_foreign_key key;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const bly_bytes text = { rows[i].text, strlen(rows[i].text) };
        const bly_status st = bly_parquet_key(rows[i].column, text, &s, &key);
        assert_true(st == BLY_EINVAL || st == BLY_ENOTSUP);
        if (!strstr(bly_error(), rows[i].says))
            fail_msg("%s: %s", rows[i].text, bly_error());
    }
    assert_status(bly_parquet_key(&real, (bly_bytes){ "1\0002", 3 }, &s, &key),
                  BLY_EINVAL);
    /* At the ends of the ranges they are taken. */
    assert_key(byte, "255", "\xff\0\0\0", 4);
    assert_key(byte, "-0", "\0\0\0\0", 4);
    assert_key(number, "-9223372036854775808", "\0\0\0\0\0\0\0\x80", 8);
    assert_key(stamp, "2262-04-11 23:47:16.854775807",
               "\xff\xff\xff\xff\xff\xff\xff\x7f", 8);
    assert_key(time, "01:00", "\0\xa4\x93\xd6\0\0\0\0", 8);
    assert_key(uuid, "00112233-4455-6677-8899-aabbccddeeff",
               "\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee"
               "\xff",
               16);
    bly_mem_release(s.mem, s.at, s.room);
    /* Without memory it says so. */
    ledger l;
    ledger_open(&l);
    l.fail_at = 0;
    bly_scratch none = { .mem = &l.mem };
    assert_status(bly_parquet_key(&number, (bly_bytes){ "1", 1 }, &none, &key),
                  BLY_ENOMEM);
    ledger_check(&l);
}

/* Zeros and NaNs by their bits, of every width; R's NA is a NaN too. */
static void test_reals_that_are_alike(void **state)
{
    (void)state;
    static const struct {
        uint64_t bits;
        uint32_t width;
        bly_real_sort sort;
    } rows[] = {
        { 0, 8, BLY_REAL_ZERO },
        { 1, 8, BLY_REAL_OTHER },
        { UINT64_C(1) << 63, 8, BLY_REAL_ZERO },
        { UINT64_C(0x7ff0000000000000), 8, BLY_REAL_OTHER },
        { UINT64_C(0xfff0000000000000), 8, BLY_REAL_OTHER },
        { UINT64_C(0x7ff00000000007a2), 8, BLY_REAL_NAN },
        { UINT64_MAX, 8, BLY_REAL_NAN },
        { 0x80000000, 4, BLY_REAL_ZERO },
        { 0x7f800000, 4, BLY_REAL_OTHER },
        { 0xff800001, 4, BLY_REAL_NAN },
        { 0x8000, 2, BLY_REAL_ZERO },
        { 0x7c00, 2, BLY_REAL_OTHER },
        { 0x7c01, 2, BLY_REAL_NAN },
    };
    unsigned char value[8], pair[2][8];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bly_store64(value, rows[i].bits);
        assert_int_equal(bly_real_sort_of(value, rows[i].width), rows[i].sort);
    }
    bly_real_pair(BLY_REAL_NAN, 8, pair);
    assert_memory_equal(pair[0], "\0\0\0\0\0\0\xf8\x7f", 8);
    assert_memory_equal(pair[1], "\0\0\0\0\0\0\xf8\xff", 8);
    bly_real_pair(BLY_REAL_NAN, 4, pair);
    assert_memory_equal(pair[1], "\0\0\xc0\xff", 4);
    bly_real_pair(BLY_REAL_NAN, 2, pair);
    assert_memory_equal(pair[0], "\0\x7e", 2);
    bly_real_pair(BLY_REAL_ZERO, 2, pair);
    assert_memory_equal(pair[1], "\0\x80", 2);
}

/* ------------------------------------------------------------------ sizes */

static bly_parquet *sized_file;

#define CALLS(name, call)                                    \
    static bly_status name##_call(void *object, size_t size) \
    {                                                        \
        return call;                                         \
    }
CALLS(bly_parquet_stat,
      (bly_parquet_stat_sized(sized_file, object, size), BLY_OK))
CALLS(bly_parquet_column_at,
      (bly_parquet_column_at_sized(sized_file, 1, object, size), BLY_OK))
CALLS(bly_parquet_chunk_at,
      (bly_parquet_chunk_at_sized(sized_file, 1, 0, object, size), BLY_OK))
CALLS(bly_parquet_page_next,
      bly_parquet_page_next_sized(sized_file, 1, 0, &(uint64_t){ 0 }, object,
                                  size))

/* The filter of a chunk is made once. */
static bly_status bly_parquet_filter_end_call(void *object, size_t size)
{
    byte_array f = file_by_hand();
    bly_parquet *p;
    assert_ok(bly_parquet_open(f.at, f.n, NULL, &p));
    assert_ok(bly_parquet_filter_begin(p, 0, 0, 10, 0.01));
    const bly_status st = bly_parquet_filter_end_sized(p, object, size);
    bly_parquet_free(p);
    free(f.at);
    return st;
}

/* What a column does not say is zero, and the type follows from the rest. */
static bly_status bly_parquet_type_name_call(void *object, size_t size)
{
    char type[80];
    const bly_parquet_column c = { .type = BLY_PARQUET_INT64 };
    bly_parquet_type_name_sized(&c, type, sizeof type,
                                offsetof(bly_parquet_column, meaning));
    assert_string_equal(type, "INT64");
    memset(object, 0, size);
    return BLY_OK;
}

static void test_sizes_of_structs(void **state)
{
#define ROW(name, size)                \
    {                                  \
#name, NULL, size, name##_call \
    }
    static const sized_row rows[] = {
        ROW(bly_parquet_stat, sizeof(bly_parquet_shape)),
        ROW(bly_parquet_column_at, sizeof(bly_parquet_column)),
        ROW(bly_parquet_chunk_at, sizeof(bly_parquet_chunk)),
        ROW(bly_parquet_page_next, sizeof(bly_parquet_page)),
        ROW(bly_parquet_filter_end, sizeof(bly_parquet_filter)),
        ROW(bly_parquet_type_name, 0),
    };
    byte_array f = file_by_hand();
    (void)state;
    assert_ok(bly_parquet_open(f.at, f.n, NULL, &sized_file));
    sized_laws(rows, COUNT_OF(rows));
    bly_parquet_free(sized_file);
    free(f.at);
    none_is_unsized("include/bloomery/parquet.h", rows, COUNT_OF(rows));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_positions),
        cmocka_unit_test(test_reals_that_are_alike),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_fixed_hashes),
        cmocka_unit_test(test_fold),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_thrift_hostile),
        cmocka_unit_test(test_thrift_numbers),
        cmocka_unit_test(test_footer),
        cmocka_unit_test(test_filters),
        cmocka_unit_test(test_nothing_to_ask),
        cmocka_unit_test(test_misuse),
        cmocka_unit_test(test_every_allocation_may_fail),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_meanings),
        cmocka_unit_test(test_hostile_schemas),
        cmocka_unit_test(test_column_names),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_no_values),
        cmocka_unit_test(test_sizes_of_structs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
