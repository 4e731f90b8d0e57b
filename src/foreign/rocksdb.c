/*
 * rocksdb.c - full filters in the tables of RocksDB
 *
 * A table ends in a footer of 53 bytes: the type of its checksums, the places
 * of its metaindex and index, padding, its version, and a magic number. The
 * metaindex names the filter, fullfilter.rocksdb.BuiltinBloomFilter: bits for
 * all keys of the table, and 5 bytes that tell what they are:
 *
 *     k, number of lines (4 bytes little-endian)      legacy, up to version 4
 *     0xff, 0, k (5 bits), 0, 0                       fast local Bloom filter
 *     0xfe, seed, number of blocks (3 bytes)          Ribbon
 *
 * Legacy: h is LevelDB's hash with its last bytes as signed numbers; the line
 * of 512 bits is h mod lines, and the bits in it are h + i d (32 bits) mod
 * 512, where d is h rotated by 17 to the right.
 *
 * The other two hash with a preview of XXH3 that was never released as such, so
 * they are described and not asked. Checksums of blocks are verified where
 * they are CRC-32C.
 *
 * The format `rocksdb` is a table, `rocksdb-filter` the filter alone.
 */
#include <math.h>
#include <string.h>

#include "foreign/hashes.h"
#include "foreign/sorted_table.h"

#define ROCKSDB_FOOTER 53
#define ROCKSDB_MAGIC UINT64_C(0x88e241b785f4cff7)
#define ROCKSDB_POLICY "fullfilter.rocksdb.BuiltinBloomFilter"
#define ROCKSDB_MAX_VERSION 5
#define ROCKSDB_CRC 1 /* the type of checksum that is verified */
#define ROCKSDB_TAIL 5
#define ROCKSDB_LINE 64
#define ROCKSDB_RIBBON_SLOTS 128 /* of a block */

enum { ROCKSDB_KEYS, ROCKSDB_NOPTIONS };

static const char *const rocksdb_forms[] = { "bytes", "hex", NULL };
static const bly_param rocksdb_options[] = {
    [ROCKSDB_KEYS] = BLY_OPTION_CHOICE("keys", 0, rocksdb_forms,
                                       "keys as they are, or in hexadecimal"),
};

struct rocksdb_filter {
    const char *layout;
    bool asked;         /* can be */
    unsigned checksums; /* of a table: their type */
    uint32_t version;   /* of a table, 0: no table */
    uint32_t seed;      /* Ribbon */
    uint32_t nblocks;   /* Ribbon */
};

/* ---------------------------------------------------------------- opening */

static bly_status rocksdb_legacy(bly_foreign *f, const unsigned char *tail,
                                 size_t n)
{
    const uint64_t lines = bly_load32(tail + 1);
    if (lines == 0 || lines * ROCKSDB_LINE != n)
        return bly_damaged(
            "its end implies %llu lines of %d bytes, but %zu bytes are there",
            (unsigned long long)lines, ROCKSDB_LINE, n);
    f->more->one.k = tail[0];
    return BLY_OK;
}

static bly_status rocksdb_fast_local(bly_foreign *f, const unsigned char *tail,
                                     size_t n)
{
    if (tail[1] != 0 || tail[3] != 0 || tail[4] != 0 || tail[2] >> 5 != 0)
        return bly_fail(BLY_ENOTSUP, "a Bloom filter of a newer kind than "
                                     "fast local");
    if (n % ROCKSDB_LINE != 0)
        return bly_damaged("%zu bytes of bits, not lines of %d", n,
                           ROCKSDB_LINE);
    f->more->one.k = tail[2];
    return BLY_OK;
}

/* r columns of a bit for each slot; some blocks have one more than others. */
static bly_status rocksdb_ribbon(bly_foreign *f, const unsigned char *tail,
                                 size_t n)
{
    struct rocksdb_filter *const r = f->own;
    r->seed = tail[1];
    r->nblocks = (uint32_t)tail[4] << 16 | (uint32_t)tail[3] << 8 | tail[2];
    const double slots = (double)r->nblocks * ROCKSDB_RIBBON_SLOTS;
    if (r->nblocks < 2 || (double)n * 8 < slots)
        return bly_damaged("%u blocks of %d slots do not fit into %zu bytes",
                           r->nblocks, ROCKSDB_RIBBON_SLOTS, n);
    f->more->one.bytes = NULL;
    f->more->one.fpr_planned = exp2(-(double)n * 8 / slots);
    return BLY_OK;
}

static bly_status rocksdb_read(bly_foreign *f, bly_bytes block)
{
    struct rocksdb_filter *const r = f->own;
    if (block.len < ROCKSDB_TAIL)
        return bly_damaged("a filter of %zu bytes; its end alone has %d",
                           block.len, ROCKSDB_TAIL);
    const size_t n = block.len - ROCKSDB_TAIL;
    unsigned char tail[ROCKSDB_TAIL]; /* read once */
    memcpy(tail, (const unsigned char *)block.ptr + n, sizeof tail);
    f->more->one.bytes = block.ptr;
    f->more->one.nbits = (uint64_t)n * 8;
    f->more->one.excludes_all = n == 0;
    r->layout = n == 0            ? "empty"
                : tail[0] == 0xff ? "fast local"
                : tail[0] == 0xfe ? "ribbon"
                                  : "legacy";
    r->asked = n == 0 || tail[0] < 0x80;
    if (n == 0)
        return BLY_OK;
    if (tail[0] == 0xff)
        return rocksdb_fast_local(f, tail, n);
    if (tail[0] == 0xfe)
        return rocksdb_ribbon(f, tail, n);
    if (tail[0] >= 0x80)
        return bly_fail(BLY_ENOTSUP, "a filter of an unknown kind (0x%02x)",
                        tail[0]);
    return rocksdb_legacy(f, tail, n);
}

static bool rocksdb_recognise(const unsigned char *bytes, size_t n)
{
    return n >= ROCKSDB_FOOTER && bly_load64(bytes + n - 8) == ROCKSDB_MAGIC;
}

/* The block of the filter that a metaindex names. */
static bly_status rocksdb_find(const bly_foreign *f, bool crc,
                               bly_table_place metaindex, bly_bytes *out)
{
    char name[BLY_TABLE_NAME];
    bly_table_place place;
    bly_bytes block;
    bly_status st = bly_table_block(f, metaindex, crc, "metaindex", &block);
    if (!st)
        st = bly_table_find(block, "fullfilter.", name, &place);
    if (st)
        return st;
    if (!name[0]) {
        st = bly_table_find(block, "partitionedfilter.", name, &place);
        return st ? st
               : name[0]
                   ? bly_fail(
                         BLY_ENOTSUP,
                         "its filter is partitioned, which is not supported")
                   : bly_damaged("a table without a filter");
    }
    if (strcmp(name, ROCKSDB_POLICY) != 0)
        return bly_fail(BLY_ENOTSUP, "its filter is of another kind, not %s",
                        ROCKSDB_POLICY);
    return bly_table_block(f, place, crc, "filter", out);
}

static bly_status rocksdb_open(bly_foreign *f)
{
    if (!rocksdb_recognise(f->more->bytes, f->more->nbytes))
        return bly_damaged(
            "not a table of RocksDB: its last 8 bytes are different");
    const unsigned char *const footer =
        f->more->bytes + f->more->nbytes - ROCKSDB_FOOTER;
    const unsigned checksums = footer[0];
    const uint32_t version = bly_load32(footer + ROCKSDB_FOOTER - 12);
    bly_table_place metaindex;
    bly_bytes block;
    if (version > ROCKSDB_MAX_VERSION)
        return bly_fail(
            BLY_ENOTSUP,
            "a table of version %u; versions up to %d are supported", version,
            ROCKSDB_MAX_VERSION);
    if (!bly_table_place_read(footer + 1, ROCKSDB_FOOTER - 13, &metaindex))
        return bly_damaged("its footer does not say where the metaindex is");
    bly_status st =
        rocksdb_find(f, checksums == ROCKSDB_CRC, metaindex, &block);
    if (!st)
        st = bly_foreign_own(f, sizeof(struct rocksdb_filter));
    if (st)
        return st;
    struct rocksdb_filter *const r = f->own;
    r->version = version;
    r->checksums = checksums;
    return rocksdb_read(f, block);
}

static bly_status rocksdb_filter_open(bly_foreign *f)
{
    const bly_status st = bly_foreign_own(f, sizeof(struct rocksdb_filter));
    return st ? st
              : rocksdb_read(f, (bly_bytes){ f->more->bytes, f->more->nbytes });
}

static void rocksdb_describe(const bly_foreign *f, bly_facts *out)
{
    const struct rocksdb_filter *const r = f->own;
    bly_fact_word(out, "layout", r->layout);
    bly_fact_word(out, "can_be_asked", r->asked ? "yes" : "no");
    if (r->nblocks) {
        bly_fact_uint(out, "seed", r->seed);
        bly_fact_uint(out, "ribbon_blocks", r->nblocks);
    }
    if (r->version) {
        bly_fact_uint(out, "table_version", r->version);
        bly_fact_word(out, "checksum",
                      r->checksums == ROCKSDB_CRC ? "crc32c, right"
                                                  : "not verified");
    }
    bly_fact_word(out, "keys", f->more->option[ROCKSDB_KEYS]);
}

/* ----------------------------------------------------------------- asking */

static bly_status rocksdb_encode(const bly_foreign *f, bly_bytes text,
                                 bly_scratch *s, bly_foreign_key *out)
{
    const struct rocksdb_filter *const r = f->own;
    if (!r->asked)
        return bly_fail(BLY_ENOTSUP,
                        "a %s filter of RocksDB hashes with a preview of XXH3 "
                        "and can be described, but not queried; tables of "
                        "format version 4 and below can",
                        r->layout);
    return bly_key_encode(f->form, text, s, out);
}

static void rocksdb_hash(const bly_foreign *f, bly_foreign_key *key)
{
    (void)f;
    key->h[0] = bly_leveldb_hash(key->bytes, key->len, true);
}

static void rocksdb_positions(const bly_foreign *f, const bly_foreign_part *p,
                              const bly_foreign_key *key, uint64_t *out)
{
    const uint64_t line_bits = ROCKSDB_LINE * 8;
    uint32_t h = (uint32_t)key->h[0];
    const uint32_t step = h >> 17 | h << 15;
    const uint64_t line = h % (p->nbits / line_bits) * line_bits;
    (void)f;
    for (uint32_t i = 0; i < p->k; i++, h += step)
        out[i] = line + h % line_bits;
}

const bly_format bly_format_rocksdb = {
    .name = "rocksdb",
    .systems = "RocksDB tables (.sst)",
    .summary = "which keys a table may have; newer ones are only described",
    .options = rocksdb_options,
    .noptions = ROCKSDB_NOPTIONS,
    .recognise = rocksdb_recognise,
    .open = rocksdb_open,
    .describe = rocksdb_describe,
    .encode = rocksdb_encode,
    .hash = rocksdb_hash,
    .positions = rocksdb_positions,
};

const bly_format bly_format_rocksdb_filter = {
    .name = "rocksdb-filter",
    .systems = "RocksDB, the full filter of a table",
    .summary = "the same, cut out of its table",
    .options = rocksdb_options,
    .noptions = ROCKSDB_NOPTIONS,
    .open = rocksdb_filter_open,
    .describe = rocksdb_describe,
    .encode = rocksdb_encode,
    .hash = rocksdb_hash,
    .positions = rocksdb_positions,
};
