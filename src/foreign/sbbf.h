/*
 * sbbf.h - the split-block Bloom filter of Parquet
 *
 * What sbbf.c and Parquet files share: a header and blocks of 32 bytes.
 */
#ifndef BLY_FOREIGN_SBBF_H
#define BLY_FOREIGN_SBBF_H

#include "engine/split_blocks.h"
#include "foreign/format.h"

/* 128 MiB: no larger filter is read by Arrow or by parquet-java. */
#define BLY_SBBF_MAX_BLOCKS ((uint64_t)1 << 22)

/* The largest header that is written, or expected. */
#define BLY_SBBF_HEADER 20

typedef struct bly_sbbf {
    const unsigned char *blocks;
    uint64_t nblocks;
    size_t nheader;
    bool known; /* by algorithm, hash and compression; if not, it tells
                   nothing */
} bly_sbbf;

/* Read the header that bytes begin with and find its blocks among them. */
bly_status bly_sbbf_read(const unsigned char *bytes, size_t n, bly_sbbf *out);

/* The header of nblocks; its length is returned. */
size_t bly_sbbf_header(unsigned char out[BLY_SBBF_HEADER], uint64_t nblocks);

/* A power of two of blocks, the least for n values at a rate, or the most that
 * may be. Readers of the Arrow family take no other number. */
uint64_t bly_sbbf_blocks(double n, double fpr);

void bly_sbbf_part(const bly_sbbf *s, bly_foreign_part *out);
void bly_sbbf_hash(const bly_foreign *f, bly_foreign_key *key);
void bly_sbbf_positions(const bly_foreign *f, const bly_foreign_part *p,
                        const bly_foreign_key *key, uint64_t *out);

/* Are all bits of a hash set? */
bool bly_sbbf_has(const unsigned char *blocks, uint64_t nblocks, uint64_t hash);

/* The mean over blocks of what each says by mistake. */
double bly_sbbf_rate(const bly_foreign *f, const bly_foreign_part *p);

/* Halve an even number of blocks as long as the rate stays within fpr; the
 * number that is left is returned. What is left is what adding the same hashes
 * to so many blocks gives. */
uint64_t bly_sbbf_fold(unsigned char *blocks, uint64_t nblocks, double fpr);

#endif
