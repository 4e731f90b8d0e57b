/*
 * leveldb.c - filters in the tables of LevelDB
 *
 * A table (.ldb, .sst) ends in a footer of 48 bytes: the places of its
 * metaindex and of its index, padding, and a magic number. The metaindex names
 * the block of filters, filter.leveldb.BuiltinBloomFilter2:
 *
 *     filters, one after another
 *     their offsets, 4 bytes little-endian each
 *     the offset of those offsets, 4 bytes
 *     base, 1 byte (11)
 *
 *     filter: bits, then k in one byte
 *
 * Filter number i has the keys of the data blocks that begin at file offsets
 * from i 2^base to below (i + 1) 2^base; one without bytes has none. Which
 * block a key would be in depends on the order of the keys, which a table does
 * not tell, so every filter is asked. Each that is not empty is a part.
 *
 * Keys are hashed as their users know them. d is h rotated by 17 to the right;
 * position i is h + i d (32 bits) mod m. More than 30 probes are kept for
 * another meaning, and match everything.
 *
 * The format `leveldb` is a table, `leveldb-filter` the block alone.
 *
 * Tables that were written with the policy of adapters/leveldb name their block
 * filter.bloomery.Filter1. Its filters are those of bloomery/few.h, or .bly
 * files and a byte 1; these are counted, and say maybe here.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <bloomery/few.h>

#include "foreign/hashes.h"
#include "foreign/sorted_table.h"

#define LEVELDB_FOOTER 48
#define LEVELDB_MAGIC UINT64_C(0xdb4775248b80fb57)
#define LEVELDB_POLICY "filter.leveldb.BuiltinBloomFilter2"
#define LEVELDB_OURS "filter.bloomery.Filter1"
#define LEVELDB_TAIL 5 /* of the block of filters */
#define LEVELDB_MAX_K 30
#define LEVELDB_MAX_BASE 30 /* 2^32 filters of 1 GiB: names fit 64 bits */

enum { LEVELDB_KEYS, LEVELDB_NOPTIONS };

static const char *const leveldb_forms[] = { "bytes", "hex", NULL };
static const bly_param leveldb_options[] = {
    [LEVELDB_KEYS] = BLY_OPTION_CHOICE("keys", 0, leveldb_forms,
                                       "keys as they are, or in hexadecimal"),
};

struct leveldb_block {
    const unsigned char *filters, *offsets;
    unsigned base;
    uint32_t nbytes;   /* of all filters */
    uint32_t nfilters; /* empty ones too */
    uint32_t nfiles;   /* that are .bly files */
    bool ours;
    uint32_t number[]; /* of each part */
};

/* ---------------------------------------------------------------- opening */

static bool leveldb_recognise(const unsigned char *bytes, size_t n)
{
    return n >= LEVELDB_FOOTER && bly_load64(bytes + n - 8) == LEVELDB_MAGIC;
}

/* Where filter i begins, or the one before it ends. */
static uint32_t leveldb_begin(const struct leveldb_block *b, uint32_t i)
{
    return bly_load32(b->offsets + (size_t)i * 4);
}

/* Check a block of filters and find those that are not empty. */
static bly_status leveldb_read(bly_foreign *f, bly_bytes block, bool ours)
{
    const unsigned char *const bytes = block.ptr;
    if (block.len < LEVELDB_TAIL)
        return bly_damaged(
            "a block of filters of %zu bytes; its end alone has %d", block.len,
            LEVELDB_TAIL);
    const size_t end = block.len - LEVELDB_TAIL;
    const uint32_t offsets = bly_load32(bytes + end);
    const unsigned base = bytes[block.len - 1];
    if (offsets > end || (end - offsets) % 4 != 0 || base > LEVELDB_MAX_BASE)
        return bly_damaged("not a block of filters: its end does not say where "
                           "they are");
    const size_t n = (end - offsets) / 4;
    const bly_status st =
        bly_foreign_own(f, sizeof(struct leveldb_block) + n * sizeof(uint32_t));
    if (st)
        return st;
    struct leveldb_block *const b = f->own;
    b->filters = bytes;
    b->offsets = bytes + offsets;
    b->base = base;
    b->nbytes = offsets;
    b->nfilters = (uint32_t)n;
    b->ours = ours;
    f->nparts = 0;
    for (uint32_t i = 0; i < n; i++) {
        /* Behind the last offset stands where the offsets begin, so that none
         * is past it where they ascend. */
        const uint32_t begin = leveldb_begin(b, i);
        const uint32_t next = leveldb_begin(b, i + 1);
        if (begin > next || next > offsets)
            return bly_damaged("filter %u of %zu lies outside its block", i, n);
        if (begin < next) {
            b->number[f->nparts++] = i;
            b->nfiles += ours && bytes[next - 1] == 1;
        }
    }
    return BLY_OK;
}

static bly_status leveldb_open(bly_foreign *f)
{
    if (!leveldb_recognise(f->more->bytes, f->more->nbytes))
        return bly_damaged(
            "not a table of LevelDB: its last 8 bytes are different");
    char name[BLY_TABLE_NAME];
    bly_table_place place;
    bly_bytes block;
    if (!bly_table_place_read(f->more->bytes + f->more->nbytes - LEVELDB_FOOTER,
                              LEVELDB_FOOTER - 8, &place))
        return bly_damaged("its footer does not say where the metaindex is");
    bly_status st = bly_table_block(f, place, true, "metaindex", &block);
    if (!st)
        st = bly_table_find(block, "filter.", name, &place);
    if (st)
        return st;
    if (!name[0])
        return bly_damaged("a table without filters: its database was opened "
                           "without a filter policy");
    const bool ours = strcmp(name, LEVELDB_OURS) == 0;
    if (!ours && strcmp(name, LEVELDB_POLICY) != 0)
        return bly_fail(BLY_ENOTSUP,
                        "its filters are of another kind, neither %s nor %s",
                        LEVELDB_POLICY, LEVELDB_OURS);
    st = bly_table_block(f, place, true, "block of filters", &block);
    return st ? st : leveldb_read(f, block, ours);
}

static bly_status leveldb_filter_open(bly_foreign *f)
{
    return leveldb_read(f, (bly_bytes){ f->more->bytes, f->more->nbytes },
                        false);
}

/* ------------------------------------------------------------- describing */

/* A filter of our own policy: no array of bits. */
static void leveldb_part_ours(const unsigned char *bytes, size_t nbytes,
                              bly_foreign_part *out)
{
    bly_few_facts few;
    const bool is_few = bly_few_tell(bytes, nbytes, &few);
    out->nbits = (uint64_t)nbytes * 8;
    out->fpr_planned = is_few ? exp2(-(double)few.bits) : 1;
    if (is_few)
        out->items = few.keys;
}

static void leveldb_part(const bly_foreign *f, size_t i, bly_foreign_part *out)
{
    const struct leveldb_block *const b = f->own;
    const uint32_t begin = leveldb_begin(b, b->number[i]);
    const uint32_t end = leveldb_begin(b, b->number[i] + 1);
    /* The offsets were checked, but are not kept; where they have changed
     * since, nothing is known of the part, and it says maybe. */
    if (begin < end && end <= b->nbytes && b->ours) {
        leveldb_part_ours(b->filters + begin, end - begin, out);
    } else if (begin < end && end <= b->nbytes) {
        const uint32_t k = b->filters[end - 1];
        out->bytes = b->filters + begin;
        out->nbits = (uint64_t)(end - begin - 1) * 8;
        out->excludes_all = out->nbits == 0; /* as LevelDB: a single byte */
        out->k = k > LEVELDB_MAX_K ? 0 : k;
    } else {
        out->fpr_planned = 1;
    }
}

static void leveldb_part_name(const bly_foreign *f, size_t i,
                              char name[BLY_PART_NAME])
{
    const struct leveldb_block *const b = f->own;
    const uint64_t from = (uint64_t)b->number[i] << b->base;
    snprintf(name, BLY_PART_NAME, "blocks from %llu to %llu",
             (unsigned long long)from,
             (unsigned long long)(from + (UINT64_C(1) << b->base) - 1));
}

/* Bits per key of our filters of few keys; NAN if there are none. */
static double leveldb_bits_per_key(const bly_foreign *f)
{
    double keys = 0, bits = 0;
    for (size_t i = 0; i < f->nparts; i++) {
        bly_foreign_part p = { .items = UINT64_MAX };
        leveldb_part(f, i, &p);
        if (p.items != UINT64_MAX) {
            keys += (double)p.items;
            bits += (double)p.nbits;
        }
    }
    return bits / keys;
}

static void leveldb_describe(const bly_foreign *f, bly_facts *out)
{
    const struct leveldb_block *const b = f->own;
    bly_fact_word(out, "policy", (b->ours ? LEVELDB_OURS : LEVELDB_POLICY) + 7);
    bly_fact_uint(out, "filters", f->nparts);
    bly_fact_uint(out, "empty_filters", b->nfilters - f->nparts);
    bly_fact_uint(out, "filter_bytes", b->nbytes);
    if (b->ours && f->nparts > b->nfiles)
        bly_fact_real(out, "bits_per_key", leveldb_bits_per_key(f));
    if (b->nfiles)
        bly_fact_uint(out, "bly_files", b->nfiles);
    bly_fact_uint(out, "base", b->base);
    bly_fact_word(out, "keys", f->more->option[LEVELDB_KEYS]);
}

/* ----------------------------------------------------------------- asking */

static void leveldb_hash(const bly_foreign *f, bly_foreign_key *key)
{
    static const bly_hasher by = { .id = BLY_HASH_XXH3 };
    const struct leveldb_block *const b = f->own;
    key->h[0] = b->ours ? bly_hash(&by, key->bytes, key->len)
                        : bly_leveldb_hash(key->bytes, key->len, false);
}

static void leveldb_positions(const bly_foreign *f, const bly_foreign_part *p,
                              const bly_foreign_key *key, uint64_t *out)
{
    uint32_t h = (uint32_t)key->h[0];
    const uint32_t step = h >> 17 | h << 15;
    (void)f;
    for (uint32_t i = 0; i < p->k; i++, h += step)
        out[i] = h % p->nbits;
}

static bool leveldb_test(const bly_foreign *f, size_t i,
                         const bly_foreign_key *key)
{
    const struct leveldb_block *const b = f->own;
    if (!b->ours)
        return bly_foreign_bits_set(f, i, key);
    const uint32_t begin = leveldb_begin(b, b->number[i]);
    const uint32_t end = leveldb_begin(b, b->number[i] + 1);
    return begin >= end || end > b->nbytes ||
           bly_few_has(b->filters + begin, end - begin, key->h[0]);
}

const bly_format bly_format_leveldb = {
    .name = "leveldb",
    .systems = "LevelDB tables (.ldb, .sst)",
    .summary = "which keys the blocks of a table may have",
    .options = leveldb_options,
    .noptions = LEVELDB_NOPTIONS,
    .recognise = leveldb_recognise,
    .open = leveldb_open,
    .part = leveldb_part,
    .part_name = leveldb_part_name,
    .describe = leveldb_describe,
    .hash = leveldb_hash,
    .positions = leveldb_positions,
    .test = leveldb_test,
};

const bly_format bly_format_leveldb_filter = {
    .name = "leveldb-filter",
    .systems = "LevelDB, the block of filters of a table",
    .summary = "the same, cut out of its table",
    .options = leveldb_options,
    .noptions = LEVELDB_NOPTIONS,
    .open = leveldb_filter_open,
    .part = leveldb_part,
    .part_name = leveldb_part_name,
    .describe = leveldb_describe,
    .hash = leveldb_hash,
    .positions = leveldb_positions,
};
