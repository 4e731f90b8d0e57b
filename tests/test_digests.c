/*
 * test_digests.c - the digests of lists, against the vectors of their standards
 *
 * FIPS 180-4's and RFC 1320's examples, one that ends at every place of a
 * block, and NTLM of "password" (MD4 of its UTF-16).
 */
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "io/digests.h"
#include "io/x86_digests.h"
#include "support.h"

static void hex(const unsigned char *bytes, size_t n, char *out)
{
    for (size_t i = 0; i < n; i++)
        sprintf(out + 2 * i, "%02x", bytes[i]);
}

static void assert_sums(const char *text, size_t len, const char *sha1,
                        const char *md4, const char *sha256)
{
    unsigned char sum[SHA256_BYTES];
    char got[2 * SHA256_BYTES + 1];
    sum_sha1(text, len, sum);
    hex(sum, SHA1_BYTES, got);
    assert_string_equal(got, sha1);
    sum_md4(text, len, sum);
    hex(sum, MD4_BYTES, got);
    assert_string_equal(got, md4);
    sum_sha256(text, len, sum);
    hex(sum, SHA256_BYTES, got);
    assert_string_equal(got, sha256);
}

static void the_standards_examples(void **state)
{
    (void)state;
    assert_sums("", 0, "da39a3ee5e6b4b0d3255bfef95601890afd80709",
                "31d6cfe0d16ae931b73c59d7e0c089c0",
                "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b"
                "7852b855");
    assert_sums("abc", 3, "a9993e364706816aba3e25717850c26c9cd0d89d",
                "a448017aaf21d8525fc10ae87aa6729d",
                "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61"
                "f20015ad");
    static const unsigned char utf16[] = "p\0a\0s\0s\0w\0o\0r\0d";
    unsigned char sum[MD4_BYTES];
    char got[2 * MD4_BYTES + 1];
    sum_md4(utf16, 16, sum);
    hex(sum, MD4_BYTES, got);
    assert_string_equal(got, "8846f7eaee8fb117ad06bdd830b7586c");
}

/* Sums of the sums of 0 to 200 letters: the fill-up at every length. What is
 * expected came from Python's hashlib. */
static void every_length(void **state)
{
    (void)state;
    char text[200];
    memset(text, 'a', sizeof text);
    char all1[201 * SHA1_BYTES], all4[201 * MD4_BYTES],
        all256[201 * SHA256_BYTES];
    for (size_t len = 0; len <= sizeof text; len++) {
        sum_sha1(text, len, (unsigned char *)all1 + len * SHA1_BYTES);
        sum_md4(text, len, (unsigned char *)all4 + len * MD4_BYTES);
        sum_sha256(text, len, (unsigned char *)all256 + len * SHA256_BYTES);
    }
    unsigned char sum[SHA256_BYTES];
    char got[2 * SHA256_BYTES + 1];
    sum_sha1(all1, sizeof all1, sum);
    hex(sum, SHA1_BYTES, got);
    assert_string_equal(got, "f6f332e8f89c35ee3df74d34ef8fda777d9647b9");
    sum_md4(all4, sizeof all4, sum);
    hex(sum, MD4_BYTES, got);
    assert_string_equal(got, "251201e367c3017d15c839e5585aba0b");
    sum_sha256(all256, sizeof all256, sum);
    hex(sum, SHA256_BYTES, got);
    assert_string_equal(
        got, "1be2d7d291484baf4c78d463a65b40a26c255b1946e5205eac8edad6"
             "06a76fdd");
}

/* A million random blocks, each after the one before. */
static void the_processor_agrees(void **state)
{
    (void)state;
    if (!x86_has_sha())
        skip_for("this processor has no instructions for SHA-256");
    uint32_t a[8] = { 0 }, b[8] = { 0 }, words[16];
    uint64_t seed = 1;
    for (unsigned n = 0; n < 1000000; n++) {
        for (unsigned i = 0; i < 16; i++)
            words[i] = (uint32_t)random_next(&seed);
        stir_sha256_portable(a, words);
        stir_sha256_x86(b, words);
        assert_memory_equal(a, b, sizeof a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_standards_examples),
        cmocka_unit_test(every_length),
        cmocka_unit_test(the_processor_agrees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
