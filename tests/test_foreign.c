/*
 * test_foreign.c - filters of other systems: what formats share, and files
 * that the systems themselves wrote (read where they are; skipped without)
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/murmur2.h"
#include "foreign/format.h"
#include "foreign/hashes.h"
#include "support.h"

/* ------------------------------------------------------------ hash values */

/* Eight at once, in all rows that this processor runs, are eight one by one:
 * keys of all lengths, and widths around those where a quotient is off. */
static void test_murmur2_lanes(void **state)
{
    static const uint32_t seeds[8] = { 0, 1, 2, 3, 4, 1919, 7, UINT32_MAX };
    static const uint32_t widths[] = { 1,
                                       2,
                                       3,
                                       7,
                                       2000,
                                       4096,
                                       65537,
                                       4000000,
                                       1000000007,
                                       1 << 30,
                                       UINT32_C(1) << 31 };
    unsigned char key[64];
    uint32_t out[8];
    (void)state;
    for (unsigned i = 0; i < sizeof key; i++)
        key[i] = (unsigned char)(37 * i + 200);
    bly_row row;
    for (size_t r = 0; (row = bly_murmur2_row_at(r)).name; r++)
        for (size_t n = 0; n <= sizeof key && bly_row_runs(row.needs); n++) {
            bly_murmur2_lanes lanes;
            for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
                bly_murmur2_lanes_set(&lanes, 0, widths[w]);
                memcpy(lanes.seeds, seeds, sizeof seeds);
                lanes.divisors[w % 8] = lanes.inverses[w % 8] = 0;
                bly_murmur2_rows[r].eight(key + sizeof key - n, n, &lanes, out);
                for (size_t i = 0; i < 8; i++) {
                    const uint32_t h =
                        bly_murmur2(key + sizeof key - n, n, seeds[i]);
                    assert_int_equal(out[i], i == w % 8 ? h : h % widths[w]);
                }
            }
        }
}

static void test_murmur(void **state)
{
    (void)state;
    uint64_t h[2];
    bly_murmur3_128("", 0, 0, false, h);
    assert_int_equal(h[0], 0);
    /* The verification values of the reference: hashes of 0, 0 1, 0 1 2, ...
     * with seed 256 - n, hashed together. */
    unsigned char key[256], all[256 * 16];
    for (unsigned i = 0; i < 256; i++) {
        key[i] = (unsigned char)i;
        bly_murmur3_128(key, i, 256 - i, false, h);
        bly_store64(all + 16 * i, h[0]);
        bly_store64(all + 16 * i + 8, h[1]);
    }
    bly_murmur3_128(all, sizeof all, 0, false, h);
    assert_int_equal((uint32_t)h[0], 0x6384ba69);
    for (unsigned i = 0; i < 256; i++)
        bly_store32(all + 4 * i, bly_murmur3_32(key, i, 256 - i, false));
    assert_int_equal(bly_murmur3_32(all, 1024, 0, false), 0xb0f57ee3);
    for (unsigned i = 0; i < 256; i++)
        bly_store32(all + 4 * i, bly_murmur2(key, i, 256 - i));
    assert_int_equal(bly_murmur2(all, 1024, 0), 0x27864c1e);
    for (unsigned i = 0; i < 256; i++)
        bly_store64(all + 8 * i, bly_murmur64a(key, i, 256 - i));
    assert_int_equal((uint32_t)bly_murmur64a(all, 2048, 0), 0x1f0d3804);
}

static void assert_md5(const char *text, const char *want)
{
    bly_md5 m;
    unsigned char sum[16];
    char hex[33];
    const size_t n = strlen(text);
    bly_md5_start(&m);
    bly_md5_add(&m, text, n / 3);
    bly_md5_add(&m, text + n / 3, n - n / 3);
    bly_md5_end(&m, sum);
    for (int i = 0; i < 16; i++)
        snprintf(hex + 2 * i, 3, "%02x", sum[i]);
    assert_string_equal(hex, want);
}

/* RFC 1321, A.5. */
static void test_md5(void **state)
{
    (void)state;
    assert_md5("", "d41d8cd98f00b204e9800998ecf8427e");
    assert_md5("abc", "900150983cd24fb0d6963f7d28e17f72");
    assert_md5("message digest", "f96b697d7cb7938d525a2f31aaf161d0");
    assert_md5("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
               "d174ab98d277d9f5a5611c2c9f419d9f");
    assert_md5("1234567890123456789012345678901234567890123456789012345678901"
               "2345678901234567890",
               "57edf4a22be3c955ac49da2e2107b67a");
}

static void test_fnv_xxh(void **state)
{
    (void)state;
    assert_int_equal(bly_fnv1("", 0), UINT64_C(0xcbf29ce484222325));
    assert_int_equal(bly_fnv1("foobar", 6), UINT64_C(0x340d8765a4dda9c2));
    assert_int_equal(bly_xxh64("", 0, 0), UINT64_C(0xef46db3751d8e999));
}

/* ------------------------------------------------------------------ keys */

static void assert_encoded(bly_key_form form, const char *text,
                           const char *want, size_t n)
{
    bly_scratch s = { .mem = &bly_mem_system };
    bly_foreign_key key;
    assert_ok(
        bly_key_encode(form, (bly_bytes){ text, strlen(text) }, &s, &key));
    assert_int_equal(key.len, n);
    if (n)
        assert_memory_equal(key.bytes, want, n);
    bly_mem_release(s.mem, s.at, s.room);
}

static void assert_not_a_key(bly_key_form form, const char *text)
{
    bly_scratch s = { .mem = &bly_mem_system };
    bly_foreign_key key;
    assert_status(
        bly_key_encode(form, (bly_bytes){ text, strlen(text) }, &s, &key),
        BLY_EINVAL);
    bly_mem_release(s.mem, s.at, s.room);
}

static void test_key_forms(void **state)
{
    (void)state;
    assert_encoded(BLY_KEY_BYTES, "a b", "a b", 3);
    assert_encoded(BLY_KEY_HEX, "00fFa1", "\x00\xff\xa1", 3);
    assert_encoded(BLY_KEY_HEX, "", "", 0);
    assert_encoded(BLY_KEY_UTF16, "a\xc3\xa4\xf0\x9f\x98\x80",
                   "a\0\xe4\0\x3d\xd8\0\xde", 8);
    assert_encoded(BLY_KEY_INT32, "-3", "\xfd\xff\xff\xff", 4);
    assert_encoded(BLY_KEY_INT32, "4294967295", "\xff\xff\xff\xff", 4);
    assert_encoded(BLY_KEY_INT32, "-2147483648", "\0\0\0\x80", 4);
    assert_encoded(BLY_KEY_INT64, "-9223372036854775808", "\0\0\0\0\0\0\0\x80",
                   8);
    assert_encoded(BLY_KEY_INT64, "18446744073709551615",
                   "\xff\xff\xff\xff\xff\xff\xff\xff", 8);
    assert_encoded(BLY_KEY_DOUBLE, "1.5", "\0\0\0\0\0\0\xf8\x3f", 8);
    static const char *const bad[] = {
        "", " 1", "1x", "--1", "-", "1e3", "18446744073709551616"
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_not_a_key(BLY_KEY_INT32, bad[i]);
        assert_not_a_key(BLY_KEY_INT64, bad[i]);
    }
    assert_not_a_key(BLY_KEY_INT32, "4294967296");
    assert_not_a_key(BLY_KEY_INT32, "-2147483649");
    /* Not -1, though the low 32 bits are alike. */
    assert_not_a_key(BLY_KEY_INT32, "18446744073709551615");
    assert_not_a_key(BLY_KEY_INT32_BE, "18446744071562067968");
    assert_encoded(BLY_KEY_INT32, "-0", "\0\0\0\0", 4);
    assert_not_a_key(BLY_KEY_INT64, "-9223372036854775809");
    assert_not_a_key(BLY_KEY_INT64, "00000000000000000000000000000001");
    assert_not_a_key(BLY_KEY_HEX, "a/");
    assert_not_a_key(BLY_KEY_HEX, "@a");
    assert_not_a_key(BLY_KEY_UTF16, "\xff");
    assert_not_a_key(BLY_KEY_UTF16, "\xc3(");
    assert_not_a_key(BLY_KEY_UTF16, "\xf4\x90\x80\x80"); /* U+110000 */
    assert_not_a_key(BLY_KEY_DOUBLE, "");
    assert_not_a_key(BLY_KEY_DOUBLE, "1.5x");
    bly_scratch s = { .mem = &bly_mem_system };
    bly_foreign_key key;
    const bly_bytes nul = { "1\0002", 3 }, endless = { "1", SIZE_MAX };
    assert_status(bly_key_encode(BLY_KEY_INT32, nul, &s, &key), BLY_EINVAL);
    assert_status(bly_key_encode(BLY_KEY_DOUBLE, nul, &s, &key), BLY_EINVAL);
    assert_status(bly_key_encode(BLY_KEY_HEX, endless, &s, &key), BLY_ERANGE);
    bly_mem_release(s.mem, s.at, s.room);
    assert_not_a_key(BLY_KEY_HEX, "abc");
    assert_not_a_key(BLY_KEY_HEX, "zz");
    assert_not_a_key(BLY_KEY_UTF16, "\xc3");
    assert_not_a_key(BLY_KEY_UTF16, "\xed\xa0\x80");
    assert_not_a_key(BLY_KEY_UTF16, "\xc0\x80");
    assert_not_a_key(BLY_KEY_DOUBLE, "one");
}

/* ------------------------------------------------- what all formats can do */

static size_t key_text(char *buf, size_t room, uint64_t i)
{
    return (size_t)snprintf(buf, room, "http://item.test/%llu",
                            (unsigned long long)i);
}

static bool has_number(const bly_foreign *f, uint64_t i)
{
    char buf[64];
    uint64_t bit;
    const bly_bytes key = { buf, key_text(buf, sizeof buf, i) };
    assert_ok(bly_foreign_has(f, &key, 1, &bit, NULL));
    return bit;
}

static bly_foreign *made(const char *format, uint64_t items, uint64_t nkeys)
{
    bly_foreign *f;
    const bly_foreign_spec spec = { .format = format, .items = items };
    assert_ok(bly_foreign_new(&spec, &f));
    for (uint64_t i = 0; i < nkeys; i++) {
        char buf[64];
        const bly_bytes key = { buf, key_text(buf, sizeof buf, i) };
        assert_ok(bly_foreign_add(f, &key, 1, NULL, NULL));
    }
    return f;
}

/* Every format that can be made: written, recognised, opened; every key is
 * found and few others; the size follows the keys where it was not given. */
static void test_made_is_read(void **state)
{
    (void)state;
    bly_format_info t;
    for (size_t i = 0; bly_format_at(i, &t); i++) {
        if (!(t.can & BLY_FORMAT_NEW))
            continue;
        print_message("%s\n", t.name);
        byte_array known = { 0 }, counted = { 0 };
        bly_foreign *f = made(t.name, 1000, 1000);
        assert_ok(bly_foreign_write(f, put_bytes, &known));
        for (uint64_t j = 0; j < 1000; j++)
            assert_true(has_number(f, j));
        bly_foreign_free(f);
        f = made(t.name, 0, 1000);
        assert_ok(bly_foreign_write(f, put_bytes, &counted));
        bly_foreign_free(f);
        assert_int_equal(known.n, counted.n);
        assert_memory_equal(known.at, counted.at, known.n);

        assert_ok(bly_foreign_open(NULL, known.at, known.n, &f));
        bly_foreign_stats s;
        bly_foreign_stat(f, BLY_WHOLE, &s);
        assert_string_equal(s.format, t.name);
        assert_between(s.items_estimate, 900, 1100);
        unsigned wrong = 0;
        for (uint64_t j = 0; j < 1000; j++)
            assert_true(has_number(f, j));
        for (uint64_t j = 1000; j < 11000; j++)
            wrong += has_number(f, j);
        /* Squid's digests of 4 probes are planned by bits, not by rates. */
        assert_near(wrong / 10000.0, s.fpr_now, 0.5);
        bly_foreign_free(f);
        free(known.at);
        free(counted.at);
    }
}

/* Bytes behind or missing, and every byte changed: an error, or a filter that
 * can be asked. Run under a sanitizer this finds reads outside. */
static void test_hostile(void **state)
{
    (void)state;
    bly_format_info t;
    for (size_t i = 0; bly_format_at(i, &t); i++) {
        if (!(t.can & BLY_FORMAT_NEW))
            continue;
        byte_array good = { 0 };
        bly_foreign *f = made(t.name, 20, 20);
        assert_ok(bly_foreign_write(f, put_bytes, &good));
        bly_foreign_free(f);
        const bly_foreign_spec spec = { .format = t.name };
        for (size_t n = 0; n < good.n; n++) {
            char *const cut = malloc(n ? n : 1);
            memcpy(cut, good.at, n);
            if (!bly_foreign_open(&spec, cut, n, &f))
                has_number(f, 3);
            bly_foreign_free(f);
            free(cut);
        }
        for (size_t n = 0; n < good.n * 8; n++) {
            good.at[n / 8] ^= (unsigned char)(1u << n % 8);
            if (!bly_foreign_open(&spec, good.at, good.n, &f)) {
                bly_foreign_stats s;
                bly_foreign_stat(f, BLY_WHOLE, &s);
                has_number(f, 3);
            }
            bly_foreign_free(f);
            good.at[n / 8] ^= (unsigned char)(1u << n % 8);
        }
        free(good.at);
    }
}

/* Takes so many pieces, and then no more. */
typedef struct stopping {
    byte_array got;
    long left;
} stopping;

static bool put_until(void *ctx, const void *bytes, size_t nbytes)
{
    stopping *const s = ctx;
    return s->left-- > 0 && put_bytes(&s->got, bytes, nbytes);
}

/* Write f to one that stops after 0, 1, ... pieces: each time an error, and in
 * the end the same bytes. Their number. */
static long assert_stops(bly_foreign *f, const byte_array *want)
{
    for (long n = 0;; n++) {
        stopping s = { .left = n };
        const bly_status st = bly_foreign_write(f, put_until, &s);
        if (!st) {
            assert_int_equal(s.got.n, want->n);
            assert_memory_equal(s.got.at, want->at, want->n);
            free(s.got.at);
            return n;
        }
        assert_status(st, BLY_EIO);
        assert_non_null(strstr(bly_error(), "output failed"));
        free(s.got.at);
    }
}

static void test_a_receiver_may_stop(void **state)
{
    (void)state;
    bly_format_info t;
    for (size_t i = 0; bly_format_at(i, &t); i++) {
        if (!(t.can & BLY_FORMAT_NEW))
            continue;
        /* Large, so that those who write in pieces write several. */
        byte_array all = { 0 };
        bly_foreign *f = made(t.name, 20000, 10);
        assert_ok(bly_foreign_write(f, put_bytes, &all));
        assert_true(assert_stops(f, &all) >= 1);
        bly_foreign_free(f);
        assert_ok(bly_foreign_open(NULL, all.at, all.n, &f));
        assert_int_equal(assert_stops(f, &all), 1);
        bly_foreign_free(f);
        free(all.at);
    }
}

/* Made, filled, asked, written: with every allocation failing in turn. */
static bly_status life_of(const bly_foreign_spec *spec, byte_array *out)
{
    bly_foreign *f;
    bly_status st = bly_foreign_new(spec, &f);
    if (st)
        return st;
    for (uint64_t i = 0; i < 2000 && !st; i++) {
        char buf[64];
        uint64_t bit = 0;
        size_t n = 7;
        const bly_bytes key = { buf, key_text(buf, sizeof buf, i) };
        st = bly_foreign_add(f, &key, 1, NULL, &n);
        assert_int_equal(n, !st);
        if (!st && spec->items)
            st = bly_foreign_has(f, &key, 1, &bit, NULL);
        if (!st && spec->items)
            assert_true(bit);
    }
    if (!st)
        st = bly_foreign_write(f, put_bytes, out);
    bly_foreign_free(f);
    return st;
}

static void test_memory_may_end_anywhere(void **state)
{
    (void)state;
    bly_format_info t;
    for (size_t i = 0; bly_format_at(i, &t); i++) {
        if (!(t.can & BLY_FORMAT_NEW))
            continue;
        for (uint64_t items = 0; items <= 2000; items += 2000) {
            long turn = 0;
            for (bly_status st = BLY_ENOMEM; st; turn++) {
                ledger l;
                byte_array out = { 0 };
                ledger_open(&l);
                /* Past the first few they are one for every key. */
                l.fail_at = turn < 12 ? turn : turn * turn * turn;
                const bly_foreign_spec spec = { .format = t.name,
                                                .items = items,
                                                .mem = &l.mem };
                st = life_of(&spec, &out);
                assert_true(st == BLY_OK || st == BLY_ENOMEM);
                ledger_check(&l);
                free(out.at);
            }
            assert_true(turn > 2);
        }
    }
}

/* What cannot be asked of a foreign filter, and what it says. */
static void test_misuse(void **state)
{
    (void)state;
    bly_format_info t;
    bly_foreign *f;
    byte_array all = { 0 };
    uint64_t bit = 0;
    const bly_bytes key = { "http://a.test/", 14 };
    bly_foreign_spec spec = { 0 };
    assert_status(bly_foreign_new(&spec, &f), BLY_EINVAL); /* no format */
    for (size_t i = 0; bly_format_at(i, &t); i++) {
        spec = (bly_foreign_spec){ .format = t.name };
        if (!(t.can & BLY_FORMAT_NEW)) {
            assert_status(bly_foreign_new(&spec, &f), BLY_ENOTSUP);
            assert_null(f);
        }
    }
    /* Before its size is known it has no answers. */
    f = made("guava", 0, 3);
    assert_status(bly_foreign_has(f, &key, 1, &bit, NULL), BLY_EINVAL);
    assert_status(bly_foreign_where(f, key, &bit), BLY_EINVAL);
    assert_ok(bly_foreign_write(f, put_bytes, &all));
    bly_foreign_free(f);
    /* Opened it takes no keys. */
    size_t ndone = 7;
    assert_ok(bly_foreign_open(NULL, all.at, all.n, &f));
    assert_status(bly_foreign_add(f, &key, 1, NULL, &ndone), BLY_EREADONLY);
    assert_int_equal(ndone, 0);
    bly_foreign_free(f);
    free(all.at);
    /* Keys that are kept until their number is known are bounded too. */
    spec = (bly_foreign_spec){ .format = "guava", .max_bytes = 8000 };
    assert_ok(bly_foreign_new(&spec, &f));
    assert_status(bly_foreign_add(f, &key, 1, NULL, NULL), BLY_ERANGE);
    bly_foreign_free(f);
    /* An option is given once, even to say what holds anyway. */
    const bly_option twice[] = { { "keys", "bytes" }, { "keys", "int32" } };
    spec = (bly_foreign_spec){ .format = "guava",
                               .options = twice,
                               .noptions = 2 };
    assert_status(bly_foreign_new(&spec, &f), BLY_EINVAL);
    assert_non_null(strstr(bly_error(), "twice"));
    spec.noptions = 0;
    spec.fpr = -0.5;
    assert_status(bly_foreign_new(&spec, &f), BLY_EINVAL);
    spec.fpr = NAN;
    assert_status(bly_foreign_new(&spec, &f), BLY_EINVAL);
}

/* A filter of no keys is a filter, and says no. */
static void test_empty(void **state)
{
    (void)state;
    bly_format_info t;
    for (size_t i = 0; bly_format_at(i, &t); i++) {
        if (!(t.can & BLY_FORMAT_NEW))
            continue;
        byte_array all = { 0 };
        bly_foreign *f = made(t.name, 0, 0);
        assert_ok(bly_foreign_write(f, put_bytes, &all));
        bly_foreign_free(f);
        assert_ok(bly_foreign_open(NULL, all.at, all.n, &f));
        assert_false(has_number(f, 1));
        bly_foreign_free(f);
        free(all.at);
    }
}

static void test_options(void **state)
{
    (void)state;
    bly_foreign *f;
    const bly_option wrong = { "keys", "nonsense" }, none = { "nothing", "1" };
    bly_foreign_spec spec = { .format = "guava",
                              .options = &wrong,
                              .noptions = 1 };
    assert_status(bly_foreign_new(&spec, &f), BLY_EINVAL);
    assert_null(f);
    spec.options = &none;
    assert_status(bly_foreign_new(&spec, &f), BLY_EINVAL);
    spec.noptions = 0;
    spec.fpr = 1;
    assert_status(bly_foreign_new(&spec, &f), BLY_EINVAL);
    spec.fpr = 0.01;
    spec.format = "nothing";
    assert_status(bly_foreign_new(&spec, &f), BLY_EINVAL);
    assert_status(bly_foreign_open(&spec, "", 0, &f), BLY_EINVAL);
    assert_status(bly_foreign_open(NULL, "", 0, &f), BLY_EFORMAT);
    spec.format = "guava";
    spec.items = UINT64_MAX;
    assert_status(bly_foreign_new(&spec, &f), BLY_ERANGE);
    spec.items = 1000;
    spec.max_bytes = 100;
    assert_status(bly_foreign_new(&spec, &f), BLY_ERANGE);
}

static void test_table(void **state)
{
    (void)state;
    bly_format_info t, again;
    for (size_t i = 0; bly_format_at(i, &t); i++) {
        assert_true(bly_format_named(t.name, &again));
        assert_ptr_equal(t.name, again.name);
        assert_true(t.noptions <= BLY_FORMAT_MAX_OPTIONS);
        for (size_t j = 0; j < t.noptions; j++) {
            bly_key_form form;
            if (strcmp(bly_param_at(t.options, j)->name, "keys") == 0)
                for (size_t c = 0; bly_param_at(t.options, j)->choices[c]; c++)
                    assert_true(bly_key_form_named(
                        bly_param_at(t.options, j)->choices[c], &form));
        }
    }
    assert_false(bly_format_named("nothing", &t));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_murmur),
        cmocka_unit_test(test_murmur2_lanes),
        cmocka_unit_test(test_md5),
        cmocka_unit_test(test_fnv_xxh),
        cmocka_unit_test(test_key_forms),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_made_is_read),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_a_receiver_may_stop),
        cmocka_unit_test(test_memory_may_end_anywhere),
        cmocka_unit_test(test_misuse),
        cmocka_unit_test(test_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
