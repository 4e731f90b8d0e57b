/*
 * test_foreign_damage.c - formats that are read, on files made here: corners
 * that no system writes on demand, and damage
 *
 * Every sample is cut at every length and has every bit flipped; memory fails
 * at every allocation. What opens must be safe to describe and to ask.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "foreign_samples.h"

/* ----------------------------------------------------------------- asking */

/* 1 maybe, 0 no, -1 cannot tell. */
static int ask(const bly_foreign *f, const char *text)
{
    const bly_bytes key = { text, strlen(text) };
    uint64_t bit;
    return bly_foreign_has(f, &key, 1, &bit, NULL) ? -1 : (int)bit;
}

/* Everything that can be done with a filter. */
static void use(bly_foreign *f)
{
    bly_foreign_stats s;
    const bly_bytes key = { "ab", 2 };
    bly_foreign_stat(f, BLY_WHOLE, &s);
    assert_true(s.nparts == f->nparts && s.nfacts <= BLY_MAX_FACTS);
    assert_true(isnan(s.fpr_now) || (s.fpr_now >= 0 && s.fpr_now <= 1));
    for (size_t i = 0; i < f->nparts; i++) {
        bly_foreign_stat(f, i, &s);
        assert_non_null(memchr(s.name, 0, sizeof s.name));
    }
    ask(f, "ab");
    ask(f, "");
    uint64_t *const bitmap = calloc(f->nparts / 64 + 1, sizeof *bitmap);
    bly_foreign_where(f, key, bitmap);
    free(bitmap);
}

static void test_samples(void **state)
{
    (void)state;
    struct sample s[NSAMPLES];
    samples_make(s);
    for (unsigned i = 0; i < NSAMPLES; i++) {
        bly_foreign *f;
        bly_format_info t;
        print_message("%s\n", s[i].format);
        assert_ok(open_as(s[i].format, s[i].bytes.at, s[i].bytes.n, NULL, &f));
        if (s[i].key)
            assert_int_equal(ask(f, s[i].key), 1);
        use(f);
        bly_foreign_free(f);
        assert_true(bly_format_named(s[i].format, &t));
        if (!(t.can & BLY_FORMAT_KNOWN))
            continue;
        assert_ok(bly_foreign_open(NULL, s[i].bytes.at, s[i].bytes.n, &f));
        assert_string_equal(bly_foreign_format(f), s[i].format);
        bly_foreign_free(f);
    }
    samples_free(s);
}

/* ----------------------------------------------------------------- damage */

/* Open a copy that ends where the bytes end. */
static void open_copy(const char *format, const unsigned char *bytes, size_t n)
{
    unsigned char *const copy = malloc(n ? n : 1);
    bly_foreign *f;
    assert_non_null(copy);
    if (n)
        memcpy(copy, bytes, n);
    if (!open_as(format, copy, n, NULL, &f))
        use(f);
    bly_foreign_free(f);
    free(copy);
}

static void test_cut_and_flipped(void **state)
{
    (void)state;
    struct sample s[NSAMPLES];
    samples_make(s);
    for (unsigned i = 0; i < NSAMPLES; i++) {
        unsigned char *const at = s[i].bytes.at;
        for (size_t n = 0; n < s[i].bytes.n; n++)
            open_copy(s[i].format, at, n);
        for (size_t n = 0; n < s[i].bytes.n * 8; n++) {
            at[n / 8] ^= (unsigned char)(1u << n % 8);
            open_copy(s[i].format, at, s[i].bytes.n);
            at[n / 8] ^= (unsigned char)(1u << n % 8);
        }
        /* Fields of four bytes that are as large, or as negative, as can be. */
        for (size_t n = 0; n + 4 <= s[i].bytes.n; n++) {
            unsigned char kept[4];
            memcpy(kept, at + n, 4);
            memset(at + n, 0xff, 4);
            open_copy(s[i].format, at, s[i].bytes.n);
            at[n] = at[n + 3] = 0x7f;
            open_copy(s[i].format, at, s[i].bytes.n);
            memcpy(at + n, kept, 4);
        }
    }
    samples_free(s);
}

static void test_memory(void **state)
{
    (void)state;
    struct sample s[NSAMPLES];
    samples_make(s);
    for (unsigned i = 0; i < NSAMPLES; i++) {
        bly_status st = BLY_ENOMEM;
        for (long at = 0; st; at++) {
            ledger l;
            bly_foreign *f;
            ledger_open(&l);
            l.fail_at = at;
            st = open_as(s[i].format, s[i].bytes.at, s[i].bytes.n, &l.mem, &f);
            assert_true(st == BLY_OK || st == BLY_ENOMEM);
            assert_true(!st == (f != NULL));
            /* A few times the file, and what is the same for all. */
            assert_true(l.peak <= (int64_t)s[i].bytes.n * 4 + 2048);
            bly_foreign_free(f);
            ledger_check(&l);
        }
    }
    samples_free(s);
}

/* ---------------------------------------------------------------- corners */

static void assert_refused(const char *format, const byte_array *b,
                           bly_status status, const char *says)
{
    bly_foreign *f;
    assert_status(open_as(format, b->at, b->n, NULL, &f), status);
    assert_null(f);
    if (!strstr(bly_error(), says))
        fail_msg("\"%s\" does not say \"%s\"", bly_error(), says);
}

static void test_git_corners(void **state)
{
    (void)state;
    byte_array b = git_sample(1, 7, "\1\2\3\4");
    bly_foreign *f;
    uint64_t bitmap;
    assert_ok(open_as("git", b.at, b.n, NULL, &f));
    assert_ok(bly_foreign_where(f, (bly_bytes){ "none", 4 }, &bitmap));
    assert_int_equal(bitmap, 4 | 8); /* not computed, too many */
    bly_foreign_free(f);
    b.at[8 + 2 * 12 + 11] ^= 0x80; /* BIDX begins before OIDL */
    assert_refused("git", &b, BLY_EFORMAT, "outside");
    b.at[8 + 2 * 12 + 11] ^= 0x80;
    b.at[8 + 3 * 12 + 11] += 4; /* BIDX is longer than the commits */
    assert_refused("git", &b, BLY_EFORMAT, "index of the filters");
    b.at[8 + 3 * 12 + 11] -= 4;
    b.at[8 + 2 * 12] = 'X'; /* BIDX has another name */
    assert_refused("git", &b, BLY_EFORMAT, "--changed-paths");
    free(b.at);
    b = git_sample(3, 7, "\1");
    assert_refused("git", &b, BLY_EFORMAT, "hash version 3");
    free(b.at);
    b = git_sample(1, 0, "\1");
    assert_refused("git", &b, BLY_EFORMAT, "0 hash functions");
    free(b.at);

    /* Version 1 takes bytes above 0x7f as negative, 2 does not. */
    byte_array one = git_sample(1, 7, "\1\2\3\4"),
               two = git_sample(2, 7, "\1\2\3\4");
    const char *const path = "\xc3\xbc";
    bly_foreign_key key[2] = {
        { .bytes = (const unsigned char *)path, .len = 2 },
        { .bytes = (const unsigned char *)path, .len = 2 },
    };
    for (int i = 0; i < 2; i++) {
        const byte_array *const a = i ? &two : &one;
        assert_ok(open_as("git", a->at, a->n, NULL, &f));
        bly_row_of(f)->hash(f, &key[i]);
        bly_foreign_free(f);
    }
    assert_int_equal(key[1].h[0], bly_murmur3_32(path, 2, 0x293ae76f, false));
    assert_int_not_equal(key[0].h[0], key[1].h[0]);
    free(one.at);
    free(two.at);
}

static void test_elf_corners(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        byte_array b = elf_sample(i / 2, i % 2);
        bly_foreign *f;
        assert_ok(open_as("elf", b.at, b.n, NULL, &f));
        assert_int_equal(f->more->one.items, 2);
        assert_int_equal(ask(f, "one"), 1);
        assert_int_equal(ask(f, "two"), 0);
        bly_foreign_free(f);
        const unsigned word = i / 2 ? 8 : 4;
        const size_t hash = b.n - (16 + 2 * word + 12);
        const size_t low = i % 2 ? 3 : 0; /* the low byte of a number */
        b.at[hash + 8 + low] = 3;
        assert_refused("elf", &b, BLY_EFORMAT, "power of two");
        b.at[hash + 8 + low] = 2;
        b.at[hash + 12 + low] = 32;
        assert_refused("elf", &b, BLY_EFORMAT, "at most 31");
        b.at[hash + 12 + low] = 5;
        b.at[b.n - 4 + low] &= 0xfe; /* the chain does not end */
        assert_refused("elf", &b, BLY_EFORMAT, "chain");
        b.at[b.n - 4 + low] |= 1;
        memset(b.at + hash - 4 * word, 0x11, word); /* no such entry */
        assert_refused("elf", &b, BLY_EFORMAT, "without .gnu.hash");
        free(b.at);
    }
}

static void test_table_corners(void **state)
{
    (void)state;
    byte_array block = leveldb_sample(), b = leveldb_table();
    bly_foreign *f;
    uint64_t bitmap;
    assert_ok(open_as("leveldb", b.at, b.n, NULL, &f));
    assert_int_equal(f->nparts, 3);
    assert_ok(bly_foreign_where(f, (bly_bytes){ "one", 3 }, &bitmap));
    assert_int_equal(bitmap, 1 | 2); /* 31 probes match all, one byte nothing */
    assert_ok(bly_foreign_where(f, (bly_bytes){ "another", 7 }, &bitmap));
    assert_int_equal(bitmap, 2);
    bly_foreign_free(f);
    b.at[10] ^= 1;
    assert_refused("leveldb", &b, BLY_EFORMAT, "checksum of its block");
    b.at[10] ^= 1;
    b.at[4 + block.n] = 1; /* the type of the block */
    assert_refused("leveldb", &b, BLY_EFORMAT, "checksum");
    free(b.at);
    b = table_sample(&block, "fitter.leveldb", false, 1);
    assert_refused("leveldb", &b, BLY_EFORMAT, "without filters");
    free(b.at);
    b = table_sample(&block, "filter.mine", false, 1);
    assert_refused("leveldb", &b, BLY_ENOTSUP, "another kind");
    free(b.at);
    b = table_sample(&block, "partitionedfilter.rocksdb.X", true, 1);
    assert_refused("rocksdb", &b, BLY_ENOTSUP, "partitioned");
    free(b.at);
    b = rocksdb_table(0);
    b.at[4 + 69] = 1; /* compressed, and no checksum is verified */
    assert_refused("rocksdb", &b, BLY_ENOTSUP, "compressed");
    b.at[4 + 69] = 0;
    b.at[4 + 69 + 5] = 1; /* shared with the key before the first */
    assert_refused("rocksdb", &b, BLY_EFORMAT, "entry of its metaindex");
    b.at[4 + 69 + 5] = 0;
    b.at[b.n - 12] = 6;
    assert_refused("rocksdb", &b, BLY_ENOTSUP, "version 6");
    free(b.at);
    free(block.at);
}

static void test_rocksdb_corners(void **state)
{
    (void)state;
    bly_foreign *f;
    /* No bits: no keys. No probes: all of them. */
    assert_ok(open_as("rocksdb-filter", "\6\0\0\0\0", 5, NULL, &f));
    assert_int_equal(ask(f, "one"), 0);
    bly_foreign_free(f);
    byte_array b = rocksdb_sample();
    b.at[64] = 0;
    assert_ok(open_as("rocksdb-filter", b.at, b.n, NULL, &f));
    assert_int_equal(ask(f, "two"), 1);
    bly_foreign_free(f);
    b.at[64] = 0x90;
    assert_refused("rocksdb-filter", &b, BLY_ENOTSUP, "0x90");
    b.at[64] = 0xff;
    assert_refused("rocksdb-filter", &b, BLY_ENOTSUP, "newer kind");
    b.at[64] = 6;
    b.at[65] = 2;
    assert_refused("rocksdb-filter", &b, BLY_EFORMAT, "2 lines");
    free(b.at);
}

static void test_bitcoin_corners(void **state)
{
    (void)state;
    /* The output script of the first block. */
    static const char script[] =
        "4104678afdb0fe5548271967f1a67130b7105cd6a828e03909a67962e0ea1f61deb649"
        "f6bc3f4cef38c4f35504e51ec112de5c384df7ba0b8d578a4c702b6bf11d5fac";
    bly_foreign *f;
    byte_array b = { 0 };
    put_bytes(&b, "\001\x9d\xfc\xa8", 4);
    assert_ok(open_as("bip158", b.at, b.n, NULL, &f));
    assert_int_equal(ask(f, script), 1);
    assert_int_equal(ask(f, "00"), 0);
    assert_int_equal(ask(f, "not hexadecimal"), -1);
    bly_foreign_free(f);
    /* Without the block it cannot tell; that is no "no". */
    bly_foreign_spec spec = { .format = "bip158" };
    const bly_option bad = { "block", "0012" };
    assert_ok(bly_foreign_open(&spec, b.at, b.n, &f));
    assert_int_equal(ask(f, script), -1);
    bly_foreign_free(f);
    spec.options = &bad;
    spec.noptions = 1;
    assert_status(bly_foreign_open(&spec, b.at, b.n, &f), BLY_EINVAL);
    b.at[3] |= 1;
    assert_refused("bip158", &b, BLY_EFORMAT, "after the last item");
    b.at[3] &= 0xfe;
    put_byte(&b, 0);
    assert_refused("bip158", &b, BLY_EFORMAT, "1 bytes follow");
    put_byte(&b, 0);
    b.at[1] = 0xff; /* 14 ones: past what one item can be */
    assert_refused("bip158", &b, BLY_EFORMAT, "larger than any");
    b.at[0] = 3;
    assert_refused("bip158", &b, BLY_EFORMAT, "do not fit");
    b.at[0] = 253; /* a length that has a shorter form */
    b.at[1] = 1;
    b.at[2] = 0;
    assert_refused("bip158", &b, BLY_EFORMAT, "number of items");
    free(b.at);
    /* A filterload message without bits matches everything. */
    assert_ok(open_as("bip37", "\0\5\0\0\0\0\0\0\0\0", 10, NULL, &f));
    assert_int_equal(ask(f, "00"), 1);
    bly_foreign_free(f);
}

static void test_numbers_of_cassandra(void **state)
{
    (void)state;
    bly_scratch s = { .mem = &bly_mem_system };
    bly_foreign_key key;
    assert_ok(
        bly_key_encode(BLY_KEY_INT32_BE, (bly_bytes){ "-2", 2 }, &s, &key));
    assert_int_equal(key.len, 4);
    assert_memory_equal(key.bytes, "\xff\xff\xff\xfe", 4);
    assert_ok(
        bly_key_encode(BLY_KEY_INT64_BE, (bly_bytes){ "258", 3 }, &s, &key));
    assert_int_equal(key.len, 8);
    assert_memory_equal(key.bytes, "\0\0\0\0\0\0\1\2", 8);
    bly_mem_release(s.mem, s.at, s.room);
}

/* The check value of CRC-32C; and RocksDB's rule differs from LevelDB's only
 * by the sign of the bytes at the end. */
static void test_hashes(void **state)
{
    (void)state;
    assert_int_equal(bly_crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(bly_crc32c(bly_crc32c(0, "1234", 4), "56789", 5),
                     0xe3069283);
    assert_int_equal(bly_leveldb_hash("abcd", 4, true),
                     bly_leveldb_hash("abcd", 4, false));
    assert_int_equal(bly_leveldb_hash("ab", 2, true),
                     bly_leveldb_hash("ab", 2, false));
    assert_int_not_equal(bly_leveldb_hash("\xc3", 1, true),
                         bly_leveldb_hash("\xc3", 1, false));
}

/* Which formats take bytes above 0x7f at the end of a key as negative. */
static void test_signed_tails(void **state)
{
    (void)state;
    const unsigned char *const text = (const unsigned char *)"\xc3\xbc";
    uint64_t want[2];
    struct sample s[NSAMPLES];
    samples_make(s);
    bly_murmur3_128(text, 2, 0, true, want);
    for (unsigned i = 0; i < NSAMPLES; i++) {
        const char *const format = s[i].format;
        bly_foreign *f;
        bly_foreign_key key = { .bytes = text, .len = 2 };
        assert_ok(open_as(format, s[i].bytes.at, s[i].bytes.n, NULL, &f));
        bly_row_of(f)->hash(f, &key);
        if (strcmp(format, "cassandra") == 0)
            assert_int_equal(key.h[0], want[0]);
        else if (strncmp(format, "rocksdb", 7) == 0)
            assert_int_equal(key.h[0], bly_leveldb_hash(text, 2, true));
        else if (strncmp(format, "leveldb", 7) == 0)
            assert_int_equal(key.h[0], bly_leveldb_hash(text, 2, false));
        bly_foreign_free(f);
    }
    samples_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hashes),
        cmocka_unit_test(test_numbers_of_cassandra),
        cmocka_unit_test(test_signed_tails),
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_cut_and_flipped),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_git_corners),
        cmocka_unit_test(test_elf_corners),
        cmocka_unit_test(test_table_corners),
        cmocka_unit_test(test_rocksdb_corners),
        cmocka_unit_test(test_bitcoin_corners),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
