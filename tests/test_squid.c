/*
 * test_squid.c - cache digests: URLs as Squid keys them, digests that it would
 * refuse, and the sizes of new ones
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "foreign/format.h"
#include "foreign/squid.h"
#include "support.h"

static void assert_url(const char *sent, const char *want)
{
    const size_t n = strlen(sent), room = n + BLY_SQUID_URL_MORE;
    char *const out = malloc(room), *const in = malloc(n ? n : 1);
    memcpy(in, sent, n);
    const size_t len = bly_squid_url(in, n, out);
    assert_int_equal(len, strlen(want));
    assert_memory_equal(out, want, len);
    free(out);
    free(in);
}

/* Left what a client sends, right what Squid 5.7 keys and logs. */
static void test_urls(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        { "HTTP://Origin.TEST/Abc", "http://origin.test/Abc" },
        { "http://origin.test:80/a", "http://origin.test/a" },
        { "http://origin.test:08000/zz", "http://origin.test:8000/zz" },
        { "http://origin.test", "http://origin.test/" },
        { "http://origin.test?q=1", "http://origin.test/?q=1" },
        { "http://origin.test#f", "http://origin.test/#f" },
        { "http://origin.test./dot", "http://origin.test/dot" },
        { "http://origin.test..:81/dot", "http://origin.test:81/dot" },
        { "http://origin.test/a#frag", "http://origin.test/a#frag" },
        { "http://o.test/%7euser/%c3%a4", "http://o.test/%7euser/%c3%a4" },
        { "http://o.test/a/../b/./c", "http://o.test/a/../b/./c" },
        { "http://o.test/\xc3\xa4|{}^", "http://o.test/\xc3\xa4|{}^" },
        { "http://o.test/a b\tc", "http://o.test/abc" },
        { "http://o.test/x@Y:80", "http://o.test/x@Y:80" },
        { "http://[::1]:8000/v6", "http://[::1]:8000/v6" },
        { "http://[0:0:0::A]:80/v6", "http://[::a]/v6" },
        { "http://[::ffff:127.0.0.1]/m", "http://127.0.0.1/m" },
        { "http://127.1/short", "http://127.0.0.1/short" },
        { "http://0x7f.0.0.1:8080/", "http://127.0.0.1:8080/" },
        { "http://010.0.0.1/oct", "http://8.0.0.1/oct" },
        { "http://user:pw@origin.test/l", "http://origin.test/l" },
        { "https://origin.test:443/s", "https://origin.test/s" },
        { "https://origin.test:80/s", "https://origin.test:80/s" },
        { "ftp://Me@origin.test:21/f", "ftp://Me@origin.test/f" },
        { "http://origin.test:81x/junk", "http://origin.test:81/junk" },
        { "http://origin.test:+81/plus", "http://origin.test:81/plus" },
        { "http://origin.test:81-2/junk", "http://origin.test:81/junk" },
        { "wais://Origin.test:210/w", "wais://origin.test/w" },
        { "svn://Me@Origin.test:80/s", "svn://Me@origin.test:80/s" },
        { "Verylongscheme://Origin.test/s", "verylongscheme://origin.test/s" },
        /* All zeros are not an address, and what is not an address is a name.
         */
        { "http://0.0.0.0/z", "http://0.0.0.0/z" },
        { "http://0/z", "http://0/z" },
        { "http://[::]:81/z", "http://[::]:81/z" },
        { "http://[Zone]/z", "http://[zone]/z" },
        { "http://A234567890.b234567890.c234567890.d234567890.e234567890/",
          "http://a234567890.b234567890.c234567890.d234567890.e234567890/" },
        /* What Squid refuses is left as it is. */
        { "http://[::1]X/x", "http://[::1]X/x" },
        { "http://A:1:2/x", "http://A:1:2/x" },
        { "http://.../X", "http://.../X" },
        { "http:///X", "http:///X" },
        { "A/b", "A/b" },
        { "http://Origin.test:/empty", "http://Origin.test:/empty" },
        { "http://Origin.test:70000/", "http://Origin.test:70000/" },
        { "http://[::1/x", "http://[::1/x" },
        { "http://", "http://" },
        { "http:/Origin.test/one", "http:/Origin.test/one" },
        { "urn:Foo:bar", "urn:Foo:bar" },
        { "", "" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_url(rows[i][0], rows[i][1]);
        assert_url(rows[i][1], rows[i][1]); /* and stays */
    }
    /* A host with a NUL in it is not an address. */
    char out[64 + BLY_SQUID_URL_MORE];
    assert_int_equal(bly_squid_url("http://1\0A/", 11, out), 11);
    assert_memory_equal(out, "http://1\0a/", 11);
}

struct digest {
    unsigned char at[4096];
    size_t n;
};

static bool put_digest(void *ctx, const void *bytes, size_t n)
{
    struct digest *const d = ctx;
    assert_true(d->n + n <= sizeof d->at);
    memcpy(d->at + d->n, bytes, n);
    d->n += n;
    return true;
}

static const bly_foreign_spec squid = { .format = "squid" };

static struct digest made_of(const char *const *keys, size_t n, uint64_t items)
{
    bly_foreign_spec spec = squid;
    bly_foreign *f;
    struct digest d = { .n = 0 };
    spec.items = items;
    assert_ok(bly_foreign_new(&spec, &f));
    for (size_t i = 0; i < n; i++) {
        const bly_bytes key = { keys[i], strlen(keys[i]) };
        assert_ok(bly_foreign_add(f, &key, 1, NULL, NULL));
    }
    assert_ok(bly_foreign_write(f, put_digest, &d));
    bly_foreign_free(f);
    return d;
}

/* A URL, its method and its MD5 name one key; one that comes twice counts
 * once, whether the number of keys was known before or not. */
static void test_keys(void **state)
{
    (void)state;
    static const char *const keys[] = { "GET http://a.test/", "http://A.test",
                                        "HEAD http://a.test/",
                                        /* printf '\001http://a.test/' | md5 */
                                        "9AD2822C00A730CF74E13A88E30CF04E" };
    struct digest d = made_of(keys, 3, 0), e = made_of(keys, 3, 2);
    assert_int_equal(d.n, e.n);
    assert_memory_equal(d.at, e.at, d.n);
    assert_int_equal(bly_load_be32(d.at + 4), 2);
    assert_int_equal(bly_load_be32(d.at + 8), 2);
    d = made_of(keys, 1, 9);
    e = made_of(keys + 3, 1, 9);
    assert_int_equal(d.n, e.n);
    assert_memory_equal(d.at, e.at, d.n);

    bly_foreign *f;
    uint64_t bit;
    assert_ok(bly_foreign_open(NULL, d.at, d.n, &f));
    const bly_bytes other = { "PATCH http://a.test/", 20 };
    assert_status(bly_foreign_has(f, &other, 1, &bit, NULL), BLY_EINVAL);
    const bly_bytes endless = { "http://a.test/", SIZE_MAX };
    assert_status(bly_foreign_has(f, &endless, 1, &bit, NULL), BLY_ERANGE);
    /* Words alone are URLs of a kind. */
    const bly_bytes word = { "word", 4 }, path = { "a/b", 3 };
    assert_ok(bly_foreign_has(f, &word, 1, &bit, NULL));
    assert_ok(bly_foreign_has(f, &path, 1, &bit, NULL));
    bly_foreign_free(f);
}

static void assert_refused(const struct digest *d, size_t at, unsigned value,
                           const char *says)
{
    struct digest bad = *d;
    bly_foreign *f;
    bad.at[at] = (unsigned char)value;
    assert_status(bly_foreign_open(&squid, bad.at, bad.n, &f), BLY_EFORMAT);
    assert_non_null(strstr(bly_error(), says));
    assert_null(f);
}

/* All that Squid refuses or dies of, and no more than that. */
static void test_refused(void **state)
{
    (void)state;
    static const char *const keys[] = { "http://a.test/" };
    struct digest d = made_of(keys, 1, 9);
    bly_foreign *f;
    assert_refused(&d, 1, 2, "version");
    assert_refused(&d, 3, 6, "version");
    assert_refused(&d, 21, 3, "hash functions");
    assert_refused(&d, 20, 0, "bits per entry");
    assert_refused(&d, 20, 128, "would crash a Squid");
    assert_refused(&d, 20, 255, "would crash a Squid");
    assert_refused(&d, 20, 12, "take 14");
    assert_refused(&d, 4, 0x7f, "2^31");
    assert_refused(&d, 7, 0, "entries");
    assert_refused(&d, 19, 99, "take 13");
    for (size_t n = 0; n < d.n; n++)
        assert_status(bly_foreign_open(&squid, d.at, n, &f), BLY_EFORMAT);
    assert_status(bly_foreign_open(&squid, d.at, d.n + 1, &f), BLY_EFORMAT);
    d.at[1] = 6;   /* later, but for readers of version 3 */
    d.at[40] = 99; /* reserved */
    d.at[11] = 0;  /* no entries, it says */
    assert_ok(bly_foreign_open(NULL, d.at, d.n, &f));
    bly_foreign_free(f);
}

static unsigned planned_bits(double fpr, const char *bits)
{
    const bly_option o = { "bits", bits };
    bly_foreign_spec spec = squid;
    bly_foreign *f;
    struct digest d = { .n = 0 };
    spec.items = 10;
    spec.fpr = fpr;
    spec.options = bits ? &o : NULL;
    spec.noptions = bits != NULL;
    if (bly_foreign_new(&spec, &f))
        return 0;
    assert_ok(bly_foreign_write(f, put_digest, &d));
    bly_foreign_free(f);
    return d.at[20];
}

static void test_bits(void **state)
{
    (void)state;
    assert_int_equal(planned_bits(0, NULL), 11);
    assert_int_equal(planned_bits(0.5, NULL), 5);
    assert_int_equal(planned_bits(0.1, NULL), 5);
    assert_int_equal(planned_bits(0.002394, NULL), 17); /* 16 are not enough */
    assert_int_equal(planned_bits(0.0024, NULL), 16);
    assert_int_equal(planned_bits(1e-6, NULL), 125);
    assert_int_equal(planned_bits(1e-7, NULL), 0);
    assert_int_equal(planned_bits(0, "127"), 127);
    assert_int_equal(planned_bits(0, "1"), 1);
    assert_int_equal(planned_bits(0, "128"), 0);
    assert_int_equal(planned_bits(0, "0"), 0);
    assert_int_equal(planned_bits(0, "five"), 0);
    bly_foreign_spec spec = squid;
    bly_foreign *f;
    spec.items = INT32_MAX / 11 + 1;
    assert_status(bly_foreign_new(&spec, &f), BLY_ERANGE);
    spec.items = UINT64_MAX;
    assert_status(bly_foreign_new(&spec, &f), BLY_ERANGE);
}

/* One that Squid would call useless is not written. */
static void test_too_full(void **state)
{
    (void)state;
    bly_foreign_spec spec = squid;
    bly_foreign *f;
    struct digest d = { .n = 0 };
    spec.items = 10;
    assert_ok(bly_foreign_new(&spec, &f));
    for (unsigned i = 0; i < 200; i++) {
        char url[40];
        const bly_bytes key = { url, (size_t)snprintf(url, sizeof url,
                                                      "http://a.test/%u", i) };
        assert_ok(bly_foreign_add(f, &key, 1, NULL, NULL));
    }
    assert_status(bly_foreign_write(f, put_digest, &d), BLY_ERANGE);
    assert_int_equal(d.n, 0);
    bly_foreign_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_urls),     cmocka_unit_test(test_keys),
        cmocka_unit_test(test_refused),  cmocka_unit_test(test_bits),
        cmocka_unit_test(test_too_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
