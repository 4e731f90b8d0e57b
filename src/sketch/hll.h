/*
 * hll.h - bly_hll from the inside, for files and set operations
 */
#ifndef BLY_HLL_H
#define BLY_HLL_H

#include <bloomery/sketch.h>

#include "sketch/hyperloglog.h"
#include "sketch/origin.h"

/* An entry of a sparse sketch: the first 26 bits of a hash, and the run of
 * zeros behind them, plus one, in the lowest 6 bits. It is never 0. */
#define BLY_SPARSE_BITS 26
#define BLY_SPARSE_VALUE_BITS 6

struct bly_hll {
    bly_mem mem;
    bly_origin origin;
    uint64_t total; /* hashes that were added; sticks at its ceiling */
    unsigned p;
    uint32_t count, nslots;   /* sparse: entries, and places for them */
    uint32_t *slots;          /* sparse: open addressing, 0 where free */
    unsigned char *registers; /* dense: 2^p fields of 6 bits; else NULL */
    unsigned floor;           /* no register is below it */
    uint64_t since;           /* hashes since that was found */
};

/* As many entries as a sparse sketch may have; 0: the first hash makes it
 * dense.
 */
static inline uint32_t bly_sparse_limit(unsigned p)
{
    return p < 8 ? 0 : UINT32_C(3) << (p - 5);
}

/* Bytes of the registers of a dense one. */
static inline size_t bly_hll_dense_bytes(unsigned p)
{
    return ((size_t)3 << p) / 4;
}

/* What a file holds of it: the entries of a sparse one, ascending, as
 * little-endian words of 4 bytes; or the registers as they are. */
size_t bly_hll_body_bytes(const bly_hll *s);
void bly_hll_body_write(const bly_hll *s, unsigned char *to);
bly_status bly_hll_body_load(unsigned p, bool sparse, const unsigned char *from,
                             size_t nbytes, const bly_mem *mem, bly_hll **out);

/* Can the two be merged? BLY_EUNFIT says what differs. */
bly_status bly_hll_fits(const bly_hll *a, const bly_hll *b);

#endif
