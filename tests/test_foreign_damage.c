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

#include "foreign/format.h"
#include "foreign/hashes.h"
#include "support.h"

/* ---------------------------------------------------------------- samples */

static void put_be32(byte_array *b, uint32_t x)
{
    unsigned char p[4];
    bly_put_be32(p, x);
    put_bytes(b, p, sizeof p);
}

static void put_le32(byte_array *b, uint32_t x)
{
    unsigned char p[4];
    bly_put_le32(p, x);
    put_bytes(b, p, sizeof p);
}

static void put_text(byte_array *b, const char *text)
{
    put_bytes(b, text, strlen(text));
}

static void put_byte(byte_array *b, unsigned x)
{
    const unsigned char byte = (unsigned char)x;
    put_bytes(b, &byte, 1);
}

static void put_varint(byte_array *b, size_t x)
{
    for (; x >= 0x80; x >>= 7)
        put_byte(b, (unsigned)(x & 0x7f) | 0x80);
    put_byte(b, (unsigned)x);
}

/* A commit-graph of four commits: without changes, with the filter `bits`,
 * not computed, too many. */
static byte_array git_sample(uint32_t version, uint32_t k, const char *bits)
{
    static const char *const ids[] = { "OIDF", "OIDL", "BIDX", "BDAT",
                                       "\0\0\0\0" };
    const uint32_t n = (uint32_t)strlen(bits);
    const uint32_t sizes[] = { 1024, 4 * 20, 4 * 4, 12 + 2 + n, 0 };
    byte_array b = { 0 };
    uint32_t at = 8 + 5 * 12;
    put_text(&b, "CGPH\1\1\4");
    put_byte(&b, 0);
    for (int i = 0; i < 5; i++) {
        put_bytes(&b, ids[i], 4);
        put_be32(&b, 0);
        put_be32(&b, at);
        at += sizes[i];
    }
    for (uint32_t i = 0; i < 256; i++)
        put_be32(&b, i / 16 < 4 ? i / 16 : 4);
    for (unsigned i = 0; i < 4; i++)
        for (unsigned j = 0; j < 20; j++)
            put_byte(&b, i << 4 | 0xf);
    put_be32(&b, 1);
    put_be32(&b, 1 + n);
    put_be32(&b, 1 + n);
    put_be32(&b, 2 + n);
    put_be32(&b, version);
    put_be32(&b, k);
    put_be32(&b, 10);
    put_byte(&b, 0);
    put_text(&b, bits);
    put_byte(&b, 0xff);
    for (int i = 0; i < 5; i++)
        put_be32(&b, 0x5eed); /* in place of the checksum */
    return b;
}

/* Numbers of an ELF file, of either class and byte order. */
static void put_elf(byte_array *b, bool big, unsigned size, uint64_t x)
{
    for (unsigned i = 0; i < size; i++)
        put_byte(b, (unsigned)(x >> 8 * (big ? size - 1 - i : i)) & 0xff);
}

/* A file with two segments, one of them dynamic, and a .gnu.hash with the
 * symbol "one" (and no names: nothing here reads them). */
static byte_array elf_sample(bool wide, bool big)
{
    const unsigned word = wide ? 8 : 4, header = wide ? 64 : 52,
                   segment = wide ? 56 : 32;
    const uint64_t dynamic = header + 2 * segment, hash = dynamic + 4 * word;
    const uint64_t end = hash + 16 + 2 * word + 4 + 8, base = 0x10000;
    const uint32_t h = 193501607, c = word * 8, shift = 5; /* of "one" */
    byte_array b = { 0 };
    put_text(&b, "\177ELF");
    put_byte(&b, wide ? 2 : 1);
    put_byte(&b, big ? 2 : 1);
    put_byte(&b, 1);
    while (b.n < 16)
        put_byte(&b, 0);
    put_elf(&b, big, 2, 3);
    put_elf(&b, big, 2, 42);
    put_elf(&b, big, 4, 1);
    put_elf(&b, big, word, 0);
    put_elf(&b, big, word, header);
    put_elf(&b, big, word, 0);
    put_elf(&b, big, 4, 0);
    const unsigned sizes[] = { header, segment, 2, 0, 0, 0 };
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        put_elf(&b, big, 2, sizes[i]);
    for (int i = 0; i < 2; i++) {
        const uint64_t at = i ? dynamic : 0;
        const uint64_t size = i ? 4 * word : end;
        put_elf(&b, big, 4, i ? 2 : 1);
        if (wide)
            put_elf(&b, big, 4, 4);
        put_elf(&b, big, word, at);
        put_elf(&b, big, word, base + at);
        put_elf(&b, big, word, base + at);
        put_elf(&b, big, word, size);
        put_elf(&b, big, word, size);
        if (!wide)
            put_elf(&b, big, 4, 4);
        put_elf(&b, big, word, 8);
    }
    put_elf(&b, big, word, 0x6ffffef5);
    put_elf(&b, big, word, base + hash);
    put_elf(&b, big, word, 0);
    put_elf(&b, big, word, 0);
    const uint32_t head[] = { 1, 1, 2, shift };
    for (int i = 0; i < 4; i++)
        put_elf(&b, big, 4, head[i]);
    for (unsigned i = 0; i < 2; i++)
        put_elf(&b, big, word,
                h / c % 2 == i
                    ? UINT64_C(1) << h % c | UINT64_C(1) << (h >> shift) % c
                    : 0);
    put_elf(&b, big, 4, 1);
    put_elf(&b, big, 4, h & ~1u);
    put_elf(&b, big, 4, h | 1);
    assert_int_equal(b.n, end);
    return b;
}

/* A block, its type, its checksum; where it begins. */
static size_t put_block(byte_array *b, const byte_array *block)
{
    const size_t at = b->n;
    put_bytes(b, block->at, block->n);
    put_byte(b, 0);
    const uint32_t sum = bly_crc32c(0, b->at + at, block->n + 1);
    put_le32(b, (sum >> 15 | sum << 17) + 0xa282ead8);
    return at;
}

/* A table with one block that its metaindex names, among names that share
 * their beginnings and one that is long. */
static byte_array table_sample(const byte_array *block, const char *name,
                               bool rocks, unsigned checksum)
{
    byte_array b = { 0 }, meta = { 0 }, place = { 0 }, footer = { 0 };
    put_text(&b, "data");
    put_varint(&place, put_block(&b, block));
    put_varint(&place, block->n);
    /* shared, fresh, value; key; value */
    put_bytes(&meta, "\0\1\1a1", 5);
    put_byte(&meta, 1);
    put_varint(&meta, 300);
    put_byte(&meta, 0);
    for (int i = 0; i < 300; i++)
        put_byte(&meta, 'b');
    put_varint(&meta, 299); /* that and one more letter: too long for a name */
    put_bytes(&meta, "\1\0c", 3);
    put_byte(&meta, 0);
    put_varint(&meta, 2);
    put_byte(&meta, 0);
    put_bytes(&meta, name, 2);
    put_byte(&meta, 2); /* the first two letters are those before */
    put_varint(&meta, strlen(name) - 2);
    put_varint(&meta, place.n);
    put_text(&meta, name + 2);
    put_bytes(&meta, place.at, place.n);
    put_le32(&meta, 0);
    put_le32(&meta, 1);
    if (rocks)
        put_byte(&footer, checksum);
    put_varint(&footer, put_block(&b, &meta));
    put_varint(&footer, meta.n);
    while (footer.n < (rocks ? 41 : 40))
        put_byte(&footer, 0);
    if (rocks) {
        put_le32(&footer, 4);
        put_le32(&footer, 0x85f4cff7);
        put_le32(&footer, 0x88e241b7);
    } else {
        put_le32(&footer, 0x8b80fb57);
        put_le32(&footer, 0xdb477524);
    }
    put_bytes(&b, footer.at, footer.n);
    free(meta.at);
    free(place.at);
    free(footer.at);
    return b;
}

/* Filters: of "one", none, one with more than 30 probes, a single byte. */
static byte_array leveldb_sample(void)
{
    byte_array b = { 0 };
    unsigned char bits[8] = { 0 };
    const uint32_t h = bly_leveldb_hash("one", 3, false);
    const uint32_t step = h >> 17 | h << 15;
    for (uint32_t i = 0; i < 6; i++)
        bits[(h + i * step) % 64 / 8] |=
            (unsigned char)(1u << (h + i * step) % 8);
    put_bytes(&b, bits, sizeof bits);
    put_byte(&b, 6);
    put_bytes(&b, "\0\0\0\0\0\0\0\0\x1f", 9);
    put_byte(&b, 6);
    const uint32_t offsets[] = { 0, 9, 9, 18, 19 };
    for (int i = 0; i < 5; i++)
        put_le32(&b, offsets[i]);
    put_byte(&b, 11);
    return b;
}

/* A line of bits with "one", by RocksDB's rule. */
static byte_array rocksdb_sample(void)
{
    byte_array b = { 0 };
    unsigned char bits[64] = { 0 };
    const uint32_t h = bly_leveldb_hash("one", 3, true);
    const uint32_t step = h >> 17 | h << 15;
    for (uint32_t i = 0; i < 6; i++)
        bits[(h + i * step) % 512 / 8] |=
            (unsigned char)(1u << (h + i * step) % 8);
    put_bytes(&b, bits, sizeof bits);
    put_byte(&b, 6);
    put_le32(&b, 1);
    return b;
}

static byte_array leveldb_table(void)
{
    byte_array block = leveldb_sample();
    const byte_array b =
        table_sample(&block, "filter.leveldb.BuiltinBloomFilter2", false, 1);
    free(block.at);
    return b;
}

static byte_array rocksdb_table(unsigned checksum)
{
    byte_array block = rocksdb_sample();
    const byte_array b = table_sample(
        &block, "fullfilter.rocksdb.BuiltinBloomFilter", true, checksum);
    free(block.at);
    return b;
}

/* One of each; all of them have the key "one" but for those in hexadecimal,
 * where a key is some other text. */
struct sample {
    const char *format;
    const char *key; /* NULL: nothing is known to be in it */
    byte_array bytes;
};

enum { NSAMPLES = 17 };

static void samples_make(struct sample *s)
{
    unsigned n = 0;
    byte_array b = { 0 };
    unsigned char bits[8] = { 0 };
    s[n++] = (struct sample){ "git", "any", git_sample(1, 7, "\1\2\3\4") };
    s[n++] = (struct sample){ "git", "any", git_sample(2, 1, "\377\377") };
    for (int i = 0; i < 4; i++)
        s[n++] = (struct sample){ "elf", "one", elf_sample(i / 2, i % 2) };
    s[n++] = (struct sample){ "leveldb", "one", leveldb_table() };
    s[n++] = (struct sample){ "leveldb-filter", "one", leveldb_sample() };
    s[n++] = (struct sample){ "rocksdb", "one", rocksdb_table(1) };
    s[n++] = (struct sample){ "rocksdb", "one", rocksdb_table(0) };
    s[n++] = (struct sample){ "rocksdb-filter", "one", rocksdb_sample() };
    for (int i = 0; i < 4; i++) /* a column of 2 blocks of 128 slots */
        put_bytes(&b, bits, 8);
    put_bytes(&b, "\376\52\2\0\0", 5);
    s[n++] = (struct sample){ "rocksdb-filter", NULL, b };

    b = (byte_array){ 0 };
    put_bytes(&b, "\4\1\25\0\3\0\0\0", 8);
    put_le32(&b, 7); /* seed */
    put_le32(&b, 0);
    put_le32(&b, 1);
    put_le32(&b, 0);
    put_le32(&b, UINT32_MAX);
    put_le32(&b, UINT32_MAX);
    const uint64_t a = bly_xxh64("one", 3, 7), c = bly_xxh64("one", 3, a);
    for (uint64_t i = 1; i <= 3; i++) {
        const uint64_t at = ((a + i * c) >> 1) % 64;
        bits[at / 8] |= (unsigned char)(1u << at % 8);
    }
    put_bytes(&b, bits, sizeof bits);
    s[n++] = (struct sample){ "datasketches", "one", b };

    b = (byte_array){ 0 };
    put_bytes(&b, "\0\0\0\1\0\0\0\1", 8);
    put_bytes(&b, "\377\377\377\377\377\377\377\377", 8);
    s[n++] = (struct sample){ "cassandra", "one", b };

    b = (byte_array){ 0 };
    put_bytes(&b, "\003\x61\x4e\x9b\005\0\0\0\0\0\0\0\1", 13);
    s[n++] = (struct sample){ "bip37",
                              "99108ad8ed9bb6274d3980bab5a85c048f0950c8", b };
    b = (byte_array){ 0 };
    put_bytes(&b, "\001\x9d\xfc\xa8", 4);
    s[n++] = (struct sample){ "bip158", NULL, b };
    b = (byte_array){ 0 };
    put_bytes(&b, "\0", 1);
    s[n++] = (struct sample){ "bip158", NULL, b };
    assert_int_equal(n, NSAMPLES);
}

static void samples_free(struct sample *s)
{
    for (unsigned i = 0; i < NSAMPLES; i++)
        free(s[i].bytes.at);
}

/* ----------------------------------------------------------------- asking */

/* A block's hash, without which BIP 158 cannot be asked. */
static const bly_option genesis = {
    "block", "000000000933ea01ad0ee984209779baaec3ced90fa3f408719526f8d77f4943"
};

static bly_status open_as(const char *format, const void *bytes, size_t n,
                          const bly_mem *mem, bly_foreign **out)
{
    const bly_foreign_spec spec = { .format = format,
                                    .options = &genesis,
                                    .noptions = strcmp(format, "bip158") == 0,
                                    .mem = mem };
    return bly_foreign_open(&spec, bytes, n, out);
}

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
        { (const unsigned char *)path, 2, { 0 } },
        { (const unsigned char *)path, 2, { 0 } },
    };
    for (int i = 0; i < 2; i++) {
        const byte_array *const a = i ? &two : &one;
        assert_ok(open_as("git", a->at, a->n, NULL, &f));
        f->format->hash(f, &key[i]);
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
        assert_int_equal(f->one.items, 2);
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
    assert_refused("bip158", &b, BLY_EFORMAT, "behind the last item");
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
        bly_foreign_key key = { text, 2, { 0 } };
        assert_ok(open_as(format, s[i].bytes.at, s[i].bytes.n, NULL, &f));
        f->format->hash(f, &key);
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
