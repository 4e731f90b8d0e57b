/*
 * foreign_samples.h - small files of formats that are read and not written
 */
#ifndef TEST_FOREIGN_SAMPLES_H
#define TEST_FOREIGN_SAMPLES_H

#include <stdlib.h>
#include <string.h>

#include "foreign/format.h"
#include "foreign/hashes.h"
#include "support.h"

/* ---------------------------------------------------------------- samples */

static void put_be32(byte_array *b, uint32_t x)
{
    unsigned char p[4];
    bly_store_be32(p, x);
    put_bytes(b, p, sizeof p);
}

static void put_le32(byte_array *b, uint32_t x)
{
    unsigned char p[4];
    bly_store32(p, x);
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

#endif
