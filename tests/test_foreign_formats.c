/*
 * test_foreign_formats.c - what is peculiar to the formats that can be written:
 * two forms of one filter, the owner's bytes behind it, dumps of old versions,
 * chains
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "foreign/format.h"
#include "foreign/hashes.h"
#include "support.h"

static bly_bytes text_of(const char *text)
{
    return (bly_bytes){ text, strlen(text) };
}

/* A filter of a format with the keys "0" to "n - 1", written. */
static byte_array made(const char *format, const char *option,
                       const char *value, unsigned n)
{
    const bly_option o = { option, value };
    const bly_foreign_spec spec = {
        .format = format, .options = &o, .noptions = option ? 1 : 0, .items = n
    };
    bly_foreign *f;
    byte_array out = { 0 };
    assert_ok(bly_foreign_new(&spec, &f));
    for (unsigned i = 0; i < n; i++) {
        char buf[16];
        snprintf(buf, sizeof buf, "%u", i);
        const bly_bytes key = text_of(buf);
        assert_ok(bly_foreign_add(f, &key, 1, NULL, NULL));
    }
    assert_ok(bly_foreign_write(f, put_bytes, &out));
    bly_foreign_free(f);
    return out;
}

static void assert_has_numbers(const bly_foreign *f, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        char buf[16];
        uint64_t bit;
        snprintf(buf, sizeof buf, "%u", i);
        const bly_bytes key = text_of(buf);
        assert_ok(bly_foreign_has(f, &key, 1, &bit, NULL));
        assert_true(bit);
    }
}

/* Each form becomes the other, to the byte, at sizes with all remainders of
 * words and of groups of three bytes. */
static void test_json_and_binary(void **state)
{
    (void)state;
    for (unsigned n = 1; n < 60; n++) {
        byte_array form[2] = { made("bits-and-blooms", "form", "binary", n),
                               made("bits-and-blooms", "form", "json", n) };
        for (unsigned to = 0; to < 2; to++) {
            const bly_option o = { "form", to ? "json" : "binary" };
            const bly_foreign_spec spec = { .format = "bits-and-blooms",
                                            .options = &o,
                                            .noptions = 1 };
            bly_foreign *from, *f;
            byte_array got = { 0 };
            assert_ok(bly_foreign_open(NULL, form[!to].at, form[!to].n, &from));
            assert_has_numbers(from, n);
            assert_ok(bly_foreign_repack(&spec, from, &f));
            bly_foreign_free(from);
            assert_has_numbers(f, n);
            assert_ok(bly_foreign_write(f, put_bytes, &got));
            assert_int_equal(got.n, form[to].n);
            assert_memory_equal(got.at, form[to].at, got.n);
            bly_foreign_free(f);
            free(got.at);
        }
        free(form[0].at);
        free(form[1].at);
    }
}

static void assert_json(const char *text, bool right)
{
    const bly_foreign_spec spec = { .format = "bits-and-blooms" };
    bly_foreign *f;
    assert_status(bly_foreign_open(&spec, text, strlen(text), &f),
                  right ? BLY_OK : BLY_EFORMAT);
    bly_foreign_free(f);
}

/* One word, all of its bits set: any key is in it. */
#define B64_SET "AAAAAAAAAED__________w=="

static void test_json_is_strict(void **state)
{
    (void)state;
    assert_json("{\"m\":64,\"k\":3,\"b\":\"" B64_SET "\"}", true);
    assert_json(" {\n\t\"b\" : \"" B64_SET "\" ,\r\n\"k\":3, \"m\" :64 } \n",
                true);
    /* A length that is m rounded up. */
    assert_json("{\"m\":61,\"k\":3,\"b\":\"" B64_SET "\"}", true);
    static const char *const bad[] = {
        "",
        "{",
        "{}",
        "{\"m\":64}",
        "{\"m\":64,\"k\":3}",
        "{\"m\":64,\"k\":3,\"b\":\"" B64_SET "\"",
        "{\"m\":64,\"k\":3,\"b\":\"" B64_SET,
        "{\"m\":64,\"k\":3,\"b\":\"" B64_SET "\"}x",
        "{\"m\":64,\"k\":3,\"b\":\"" B64_SET "\",}",
        "{\"m\":64,\"k\":3,\"k\":3,\"b\":\"" B64_SET "\"}",
        "{\"m\":64,\"k\":3,\"x\":3,\"b\":\"" B64_SET "\"}",
        "{\"m\":64,\"k\":0,\"b\":\"" B64_SET "\"}",
        "{\"m\":64,\"k\":256,\"b\":\"" B64_SET "\"}",
        "{\"m\":64,\"k\":-3,\"b\":\"" B64_SET "\"}",
        "{\"m\":64,\"k\":3.0,\"b\":\"" B64_SET "\"}",
        "{\"m\":064,\"k\":3,\"b\":\"" B64_SET "\"}",
        "{\"m\":18446744073709551680,\"k\":3,\"b\":\"" B64_SET "\"}",
        "{\"m\":0,\"k\":3,\"b\":\"" B64_SET "\"}",
        "{\"m\":65,\"k\":3,\"b\":\"" B64_SET "\"}",
        "{\"m\":64,\"k\":3,\"b\":\"\"}",
        "{\"m\":64,\"k\":3,\"b\":3}",
        "{\"m\":64,\"k\":3,\"b\":\"AAAAAAAAAED/////////_w==\"}",
        "{\"m\":64,\"k\":3,\"b\":\"AAAAAAAAAED__________w\"}",
        "{\"m\":64,\"k\":3,\"b\":\"AAAAAAAAAED______=___w==\"}",
        "{\"m\":64,\"k\":3,\"b\":\"====\"}",
        "{'m':64,\"k\":3,\"b\":\"" B64_SET "\"}",
        "[64,3,\"" B64_SET "\"]",
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_json(bad[i], false);
}

/* The owner's bytes behind the bits are told of and stay. */
static void test_dcso_data(void **state)
{
    (void)state;
    byte_array plain = made("dcso", NULL, NULL, 10);
    byte_array more = made("dcso", "data", "a note", 10);
    assert_int_equal(more.n, plain.n + 6);
    assert_memory_equal(more.at, plain.at, plain.n);
    assert_memory_equal(more.at + plain.n, "a note", 6);
    bly_foreign *f, *other;
    bly_foreign_stats s;
    assert_ok(bly_foreign_open(NULL, more.at, more.n, &f));
    bly_foreign_stat(f, BLY_WHOLE, &s);
    assert_int_equal(s.nfacts, 1);
    assert_string_equal(s.facts[0].name, "data_bytes");
    assert_int_equal(s.facts[0].uint, 6);
    byte_array again = { 0 };
    assert_ok(bly_foreign_write(f, put_bytes, &again));
    assert_int_equal(again.n, more.n);
    assert_memory_equal(again.at, more.at, more.n);
    /* Nothing that it could be turned into has its positions. */
    const bly_foreign_spec spec = { .format = "redisbloom" };
    assert_status(bly_foreign_repack(&spec, f, &other), BLY_EUNFIT);
    assert_null(other);
    bly_foreign_free(f);
    free(again.at);
    free(plain.at);
    free(more.at);
}

/* A dump as old versions made them: n2 bits, hashes of 32 bits. The places are
 * computed here. */
static void assert_old_dump(uint32_t options, unsigned n2, uint64_t nbytes)
{
    const uint64_t mod = n2 ? UINT64_C(1) << n2 : nbytes * 8;
    const size_t total = 73 + (size_t)nbytes;
    unsigned char *const at = calloc(1, total);
    assert_non_null(at);
    bly_store64(at, 1);
    bly_store32(at + 8, 1);
    bly_store32(at + 12, options);
    bly_store64(at + 20, nbytes);
    bly_store64(at + 28, nbytes * 8);
    bly_store64(at + 36, 1);
    bly_store64(at + 44, bly_real_bits(0.01));
    bly_store64(at + 52, bly_real_bits(9.585));
    bly_store32(at + 60, 7);
    bly_store64(at + 64, 100);
    at[72] = (unsigned char)n2;
    uint64_t a = bly_murmur2("key", 3, 0x9747b28c);
    uint64_t b = bly_murmur2("key", 3, (uint32_t)a);
    if (options & 4) {
        a = bly_murmur64a("key", 3, UINT64_C(0xc6a4a7935bd1e995));
        b = bly_murmur64a("key", 3, a);
    }
    for (unsigned i = 0; i < 7; i++) {
        const uint64_t bit = (a + i * b) % mod;
        at[73 + bit / 8] |= (unsigned char)(1u << bit % 8);
    }
    bly_foreign *f;
    bly_foreign_stats s;
    uint64_t bits;
    const bly_bytes keys[] = { { "key", 3 }, { "other", 5 } };
    assert_ok(bly_foreign_open(NULL, at, total, &f));
    assert_ok(bly_foreign_has(f, keys, 2, &bits, NULL));
    assert_int_equal(bits, 1);
    bly_foreign_stat(f, BLY_WHOLE, &s);
    assert_int_equal(s.bits, mod);
    assert_int_equal(s.items, 1);
    assert_between((double)s.ones, 5, 7);
    bly_foreign_free(f);
    /* A power of two that its bytes do not hold. */
    at[72] = 63;
    assert_status(bly_foreign_open(NULL, at, total, &f), BLY_EFORMAT);
    at[72] = (unsigned char)n2;
    bly_store64(at, 2); /* items that do not add up */
    assert_status(bly_foreign_open(NULL, at, total, &f), BLY_EFORMAT);
    free(at);
}

static void test_redis_versions(void **state)
{
    (void)state;
    assert_old_dump(0, 10, 128);
    assert_old_dump(0, 10, 136);
    assert_old_dump(1, 0, 120);
    assert_old_dump(4, 10, 128);
    assert_old_dump(5, 0, 120);
}

/* Two dumps of one filter each as one of two, as a chain that grew. */
static byte_array chain(void)
{
    byte_array one = made("redisbloom", NULL, NULL, 10);
    byte_array out = { 0 };
    put_bytes(&out, one.at, 73);
    put_bytes(&out, one.at + 20, 53);
    put_bytes(&out, one.at + 73, one.n - 73);
    put_bytes(&out, one.at + 73, one.n - 73);
    bly_store64(out.at, 2 * bly_load64(one.at));
    bly_store32(out.at + 8, 2);
    free(one.at);
    return out;
}

static void test_redis_chain(void **state)
{
    (void)state;
    byte_array two = chain();
    bly_foreign *f, *other;
    bly_foreign_stats s;
    uint64_t where;
    assert_ok(bly_foreign_open(NULL, two.at, two.n, &f));
    assert_has_numbers(f, 10);
    bly_foreign_stat(f, BLY_WHOLE, &s);
    assert_int_equal(s.nparts, 2);
    assert_int_equal(s.items, 20);
    bly_foreign_stat(f, 1, &s);
    assert_string_equal(s.name, "filter 2");
    assert_ok(bly_foreign_where(f, text_of("3"), &where));
    assert_int_equal(where, 3);
    memset(two.at + 126, 0, (two.n - 126) / 2);
    assert_ok(bly_foreign_where(f, text_of("3"), &where));
    assert_int_equal(where, 2);
    const bly_foreign_spec spec = { .format = "redisbloom" };
    assert_status(bly_foreign_repack(&spec, f, &other), BLY_EUNFIT);
    bly_foreign_free(f);
    free(two.at);
}

/* ------------------------------------------------------------- bad weather */

/* n bytes of a file, one of its bits flipped: refused, or safe to use. */
static void assert_safe(const byte_array *good, size_t n, size_t flip)
{
    unsigned char *const bytes = malloc(n ? n : 1);
    bly_foreign *f;
    assert_non_null(bytes);
    memcpy(bytes, good->at, n);
    if (flip < n * 8)
        bytes[flip / 8] ^= (unsigned char)(1u << flip % 8);
    if (!bly_foreign_open(NULL, bytes, n, &f)) {
        bly_foreign_stats s;
        uint64_t bit;
        const bly_bytes key = text_of("33"); /* in every form of keys */
        bly_foreign_stat(f, BLY_WHOLE, &s);
        const size_t nparts = s.nparts;
        for (size_t i = 0; i < nparts; i++)
            bly_foreign_stat(f, i, &s);
        assert_ok(bly_foreign_has(f, &key, 1, &bit, NULL));
    }
    bly_foreign_free(f);
    free(bytes);
}

static void assert_survives(byte_array good)
{
    for (size_t n = 0; n < good.n; n++)
        assert_safe(&good, n, SIZE_MAX);
    for (size_t i = 0; i < good.n * 8; i++)
        assert_safe(&good, good.n, i);
    free(good.at);
}

static void test_hostile(void **state)
{
    (void)state;
    assert_survives(made("bits-and-blooms", "form", "json", 10));
    assert_survives(made("bits-and-blooms", "form", "json", 11));
    assert_survives(made("dcso", "data", "note", 10));
    assert_survives(chain());
}

/* Each allocation fails in turn: a status, and nothing stays behind. */
static void test_no_memory(void **state)
{
    (void)state;
    byte_array good[] = { made("bits-and-blooms", "form", "json", 10),
                          chain() };
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        bly_status st = BLY_ENOMEM;
        for (long at = 0; st; at++) {
            ledger l;
            ledger_open(&l);
            l.fail_at = at;
            const bly_foreign_spec spec = { .mem = &l.mem };
            bly_foreign *f;
            st = bly_foreign_open(&spec, good[i].at, good[i].n, &f);
            assert_true(st == BLY_OK || st == BLY_ENOMEM);
            /* What an opened one holds is in proportion to its file. */
            assert_true(l.peak < (int64_t)good[i].n + 4096);
            bly_foreign_free(f);
            ledger_check(&l);
        }
        free(good[i].at);
    }
}

static void test_limits(void **state)
{
    (void)state;
    static const char *const names[] = { "dcso", "bits-and-blooms",
                                         "redisbloom" };
    /* k = 333; RedisBloom makes even that, down to the last number there is. */
    static const double too_low[] = { 1e-100, 1e-100, 5e-324 };
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        bly_foreign *f;
        bly_foreign_spec spec = { .format = names[i], .items = UINT64_MAX };
        assert_status(bly_foreign_new(&spec, &f), BLY_ERANGE);
        spec.items = 10;
        spec.fpr = too_low[i];
        assert_status(bly_foreign_new(&spec, &f), BLY_ERANGE);
        /* One key that needs less than a bit. */
        spec.items = 1;
        spec.fpr = 0.99;
        assert_ok(bly_foreign_new(&spec, &f));
        const bly_bytes key = text_of("key");
        byte_array out = { 0 };
        uint64_t bit;
        assert_ok(bly_foreign_add(f, &key, 1, NULL, NULL));
        assert_ok(bly_foreign_write(f, put_bytes, &out));
        bly_foreign_free(f);
        assert_ok(bly_foreign_open(NULL, out.at, out.n, &f));
        assert_ok(bly_foreign_has(f, &key, 1, &bit, NULL));
        assert_true(bit);
        bly_foreign_free(f);
        free(out.at);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_and_binary),
        cmocka_unit_test(test_json_is_strict),
        cmocka_unit_test(test_dcso_data),
        cmocka_unit_test(test_redis_versions),
        cmocka_unit_test(test_redis_chain),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
