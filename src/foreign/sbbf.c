/*
 * sbbf.c - the split-block Bloom filter of Parquet, alone in a file
 *
 * z blocks of 256 bits, each eight words of 32. A value sets one bit in every
 * word of one block:
 *
 *     h          XXH64 of its bytes, seed 0
 *     block      (h >> 32) z >> 32
 *     bit        of word j: (low half of h) salt[j] mod 2^32 >> 27
 *
 * Words are little-endian, so bit b of word j of block i is bit 256 i + 32 j +
 * b of the bytes, low bits first. A header in Thrift stands before them:
 *
 *     1 number of bytes, 2 algorithm, 3 hash, 4 compression
 *
 * the last three unions of which the first member alone is in use.
 *
 * Half as many blocks: since z enters by a floor of h z / 2^32, the block of
 * half the number is half the block's number, rounded down. So neighbours are
 * joined by OR, and the result is the filter of half the size to the last bit.
 * A filter can thus be made before the number of different values is known:
 * large enough for all, then folded as long as its rate allows. Some eight
 * thousand values at 1 % and eight times as many equal to them:
 *
 *     room for 73,728 in 4096 blocks -> 2048 -> 1024 -> 512, at 0.13 %
 *
 * Sizes are powers of two. Arrow, Velox and ClickHouse refuse others; DuckDB
 * and parquet-java would take them.
 *
 * [1] Putze, Sanders and Singler, Cache-, Hash- and Space-Efficient Bloom
 *     Filters, 2007
 * [2] Apple, Split Block Bloom Filters, 2021
 */
#include <math.h>
#include <string.h>

#include "core/maths.h"
#include "foreign/hashes.h"
#include "foreign/sbbf.h"
#include "foreign/thrift.h"

/* ----------------------------------------------------------------- header */

bly_status bly_sbbf_read(const unsigned char *bytes, size_t n, bly_sbbf *out)
{
    bly_thrift t = { bytes, bytes + n, false };
    bly_thrift_field f = { 0 };
    uint64_t nbytes = 0;
    int32_t algorithm = 0, hash = 0, compression = 0;
    while (bly_thrift_next(&t, &f))
        if (f.id == 1)
            nbytes = bly_thrift_uint(&t, &f, INT32_MAX);
        else if (f.id == 2)
            algorithm = bly_thrift_member(&t, &f);
        else if (f.id == 3)
            hash = bly_thrift_member(&t, &f);
        else if (f.id == 4)
            compression = bly_thrift_member(&t, &f);
        else
            bly_thrift_skip(&t, &f);
    if (t.bad || nbytes == 0 || algorithm == 0 || hash == 0 || compression == 0)
        return bly_damaged("not the header of a split-block filter");
    *out = (bly_sbbf){ .known = algorithm == 1 && hash == 1 && compression == 1,
                       .blocks = t.at,
                       .nheader = (size_t)(t.at - bytes),
                       .nblocks = nbytes / BLY_BLOCKS_BYTES };
    if (nbytes % BLY_BLOCKS_BYTES)
        return bly_damaged("a split-block filter of %llu bytes, which is not a "
                           "whole number of blocks of 32",
                           (unsigned long long)nbytes);
    if (nbytes > n - out->nheader)
        return bly_damaged("the header of a split-block filter says %llu "
                           "bytes, but %zu follow",
                           (unsigned long long)nbytes, n - out->nheader);
    return BLY_OK;
}

size_t bly_sbbf_header(unsigned char out[BLY_SBBF_HEADER], uint64_t nblocks)
{
    /* Three unions, each a struct in a struct, and the end. */
    static const unsigned char rest[] = { 0x1c, 0x1c, 0,    0, 0x1c, 0x1c, 0,
                                          0,    0x1c, 0x1c, 0, 0,    0 };
    size_t n = bly_thrift_put_field(out, 0, 1, BLY_THRIFT_I32);
    n += bly_thrift_put_int(out + n, (int64_t)(nblocks * BLY_BLOCKS_BYTES));
    memcpy(out + n, rest, sizeof rest);
    return n + sizeof rest;
}

/* ----------------------------------------------------------------- blocks */

void bly_sbbf_part(const bly_sbbf *s, bly_foreign_part *out)
{
    out->bytes = s->blocks;
    out->nbits = s->nblocks * BLY_BLOCKS_BYTES * 8;
    out->k = s->known ? BLY_BLOCKS_K : 0;
    out->order = BLY_LSB_FIRST;
}

void bly_sbbf_hash(const bly_foreign *f, bly_foreign_key *key)
{
    (void)f;
    key->h[0] = bly_xxh64(key->bytes, key->len, 0);
}

static void hash_places(uint64_t hash, uint64_t nblocks, uint64_t *out)
{
    const uint64_t block = bly_blocks_of(hash, nblocks);
    for (uint32_t j = 0; j < BLY_BLOCKS_K; j++)
        out[j] = block * 256 + j * 32 +
                 (uint32_t)((uint32_t)hash * bly_blocks_salts[j]) / (1u << 27);
}

void bly_sbbf_positions(const bly_foreign *f, const bly_foreign_part *p,
                        const bly_foreign_key *key, uint64_t *out)
{
    (void)f;
    hash_places(key->h[0], p->nbits / 256, out);
}

bool bly_sbbf_has(const unsigned char *blocks, uint64_t nblocks, uint64_t hash)
{
    uint64_t at[BLY_BLOCKS_K];
    bool all = true;
    hash_places(hash, nblocks, at);
    for (uint32_t j = 0; j < BLY_BLOCKS_K; j++)
        all &= blocks[at[j] / 8] >> at[j] % 8 & 1;
    return all;
}

/* ------------------------------------------------------------------ rates */

/* Ones in the two halves of a word, each in its half. */
static uint64_t halves_count(uint64_t x)
{
    x -= x >> 1 & UINT64_C(0x5555555555555555);
    x = (x & UINT64_C(0x3333333333333333)) +
        (x >> 2 & UINT64_C(0x3333333333333333));
    x = (x + (x >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    x += x >> 8;
    return (x + (x >> 16)) & UINT64_C(0x0000003f0000003f);
}

/* The chance, times 32^8, that a block (or two together) says maybe to a value
 * that comes to it: the product of the ones in its words. */
static uint64_t block_ones(const unsigned char *a, const unsigned char *b)
{
    uint64_t all = 1;
    for (unsigned j = 0; j < BLY_BLOCKS_BYTES; j += 8) {
        const uint64_t n = halves_count(bly_load64(a + j) | bly_load64(b + j));
        all *= (n & 63) * (n >> 32);
    }
    return all;
}

#define ONES_ALL 0x1p40 /* 32^8 */

double bly_sbbf_rate(const bly_foreign *f, const bly_foreign_part *p)
{
    (void)f;
    const uint64_t nblocks = p->nbits / 256;
    double sum = 0;
    for (uint64_t i = 0; i < nblocks; i++) {
        const unsigned char *const at = p->bytes + i * BLY_BLOCKS_BYTES;
        sum += (double)block_ones(at, at);
    }
    return sum / ONES_ALL / (double)nblocks;
}

/* Would half as many blocks keep a rate? Where they would not, few blocks tell.
 */
static bool can_fold(const unsigned char *blocks, uint64_t nblocks, double fpr)
{
    const double most = fpr * ONES_ALL * (double)(nblocks / 2);
    double sum = 0;
    if (nblocks % 2)
        return false;
    for (uint64_t i = 0; i < nblocks && sum <= most; i += 2) {
        const unsigned char *const at = blocks + i * BLY_BLOCKS_BYTES;
        sum += (double)block_ones(at, at + BLY_BLOCKS_BYTES);
    }
    return sum <= most;
}

uint64_t bly_sbbf_fold(unsigned char *blocks, uint64_t nblocks, double fpr)
{
    while (can_fold(blocks, nblocks, fpr)) {
        nblocks /= 2;
        for (uint64_t i = 0; i < nblocks; i++)
            for (unsigned j = 0; j < BLY_BLOCKS_BYTES; j++)
                blocks[i * BLY_BLOCKS_BYTES + j] =
                    blocks[2 * i * BLY_BLOCKS_BYTES + j] |
                    blocks[(2 * i + 1) * BLY_BLOCKS_BYTES + j];
    }
    return nblocks;
}

uint64_t bly_sbbf_blocks(double n, double fpr)
{
    uint64_t z = 1;
    while (z < BLY_SBBF_MAX_BLOCKS && (double)z * 256 < n)
        z *= 2; /* less than a bit a value is too little for any rate */
    while (z < BLY_SBBF_MAX_BLOCKS &&
           bly_fpr_mixture(n, (double)z, 32, 1, BLY_BLOCKS_K) > fpr)
        z *= 2;
    return z;
}

/* ------------------------------------------------------ alone in its file */

/* The form from before there was a header in Thrift: its length, and two
 * numbers 0 for algorithm and hash, which was Murmur3. */
static bool is_abandoned(const unsigned char *bytes, size_t n)
{
    static const unsigned char none[8];
    return n > 12 && bly_load32(bytes) == n - 12 &&
           (n - 12) % BLY_BLOCKS_BYTES == 0 && memcmp(bytes + 4, none, 8) == 0;
}

static bool sbbf_recognise(const unsigned char *bytes, size_t n)
{
    bly_sbbf s;
    if (n < BLY_BLOCKS_BYTES)
        return false;
    if (is_abandoned(bytes, n))
        return true;
    /* Its length is told at the second byte: nothing else is read far. */
    return bytes[0] == 0x15 && bly_sbbf_read(bytes, n, &s) == BLY_OK &&
           s.nheader + s.nblocks * BLY_BLOCKS_BYTES == n;
}

static bly_status sbbf_open(bly_foreign *f)
{
    bly_sbbf s;
    if (is_abandoned(f->more->bytes, f->more->nbytes))
        return bly_damaged(
            "a split-block filter of the abandoned form, with three numbers "
            "before it and hashed by Murmur3, which no Parquet file has; only "
            "those with a Thrift header and XXH64 can be queried");
    const bly_status st = bly_sbbf_read(f->more->bytes, f->more->nbytes, &s);
    if (st)
        return st;
    if (s.nheader + s.nblocks * BLY_BLOCKS_BYTES != f->more->nbytes)
        return bly_damaged("%llu bytes after the end of a split-block filter",
                           (unsigned long long)(f->more->nbytes - s.nheader -
                                                s.nblocks * BLY_BLOCKS_BYTES));
    bly_sbbf_part(&s, &f->more->one);
    return BLY_OK;
}

enum { SBBF_KEYS, SBBF_NOPTIONS };

static const char *const sbbf_forms[] = { "bytes", "hex",    "int32",
                                          "int64", "double", NULL };
static const bly_param sbbf_options[] = {
    [SBBF_KEYS] = BLY_OPTION_CHOICE(
        "keys", 0, sbbf_forms,
        "what the type of the column turns a key into: bytes "
        "(strings), int32, int64, double, hex (the bytes of any "
        "other)"),
};

static void sbbf_describe(const bly_foreign *f, bly_facts *out)
{
    bly_fact_uint(out, "blocks", f->more->one.nbits / 256);
    bly_fact_word(out, "keys", f->more->option[SBBF_KEYS]);
}

static bly_status sbbf_plan(bly_foreign *f, uint64_t items, double fpr)
{
    const uint64_t z = bly_sbbf_blocks((double)items, fpr);
    if (z == BLY_SBBF_MAX_BLOCKS &&
        bly_fpr_mixture((double)items, (double)z, 32, 1, BLY_BLOCKS_K) > fpr)
        return bly_fail(BLY_ERANGE, "a split-block filter has at most 128 MiB");
    f->more->one.nbits = z * 256;
    f->more->one.k = BLY_BLOCKS_K;
    f->more->one.order = BLY_LSB_FIRST;
    return BLY_OK;
}

static bly_status sbbf_write(const bly_foreign *f, bly_put *put, void *ctx)
{
    unsigned char head[BLY_SBBF_HEADER];
    const size_t n = bly_sbbf_header(head, f->more->one.nbits / 256);
    return bly_foreign_put(f, head, n, f->more->one.nbits / 8, put, ctx);
}

const bly_format bly_format_sbbf = {
    .name = "sbbf",
    .systems = "Parquet split-block Bloom filter, without the file",
    .summary = "the filter of a column, as it is in a Parquet file",
    .options = sbbf_options,
    .noptions = SBBF_NOPTIONS,
    .recognise = sbbf_recognise,
    .open = sbbf_open,
    .describe = sbbf_describe,
    .hash = bly_sbbf_hash,
    .positions = bly_sbbf_positions,
    .rate = bly_sbbf_rate,
    .plan = sbbf_plan,
    .nhash = 1,
    .write = sbbf_write,
};
