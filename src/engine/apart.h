/*
 * apart.h - hashes dealt out by the memory that they lead to
 *
 * A line that is far from the last one costs a miss in the caches and, in
 * gigabytes, one in the tables of pages too. Hashes are not in a hurry, though:
 * dealt out by the range of memory that they lead to, and handed on when there
 * are many of one range, they find its pages known and, with luck, its lines
 * in L2.
 *
 *     h  ->  site = h * nsites / 2^64  ->  part = site >> shift
 *
 * Of each part, eight hashes are collected in L1 and then written past the
 * caches, as one line, to where the part has its room:
 *
 *     near  | 8 hashes | 8 hashes | ...       a line per part
 *     far   | part 0: room hashes | part 1 ...
 *
 * A part whose room is full is handed on at once, so keys that come in order,
 * or all of which are one, are only handed on more often.
 */
#ifndef BLY_APART_H
#define BLY_APART_H

#include "core/memory.h"

/* Parts, at most. Half as many at least, unless there are fewer sites. With
 * more, their lines do not stay in L1; with fewer, the range of a part is
 * larger than the tables of pages of a processor. */
#define BLY_APART_PARTS 512

typedef struct bly_apart {
    bly_block block;
    uint64_t *near, *far;
    uint64_t nsites;
    size_t room; /* hashes of a part, a multiple of 8 */
    unsigned shift, nparts;
    uint32_t fill[BLY_APART_PARTS];
} bly_apart;

/* Take n hashes of a part. h may be read, and is valid during the call. */
typedef void bly_apart_take(void *ctx, unsigned part, const uint64_t *h,
                            size_t n);

/* Room of about nbytes for hashes of that many sites. BLY_ENOMEM, and then *a
 * is not to be used. */
bly_status bly_apart_open(bly_apart *a, const bly_mem *mem, uint64_t nsites,
                          size_t nbytes);
void bly_apart_close(bly_apart *a, const bly_mem *mem);

/* Deal out n hashes; parts that become full are handed on. */
void bly_apart_add(bly_apart *a, const uint64_t *h, size_t n,
                   bly_apart_take *take, void *ctx);

/* Hand on what is left. */
void bly_apart_end(bly_apart *a, bly_apart_take *take, void *ctx);

#endif
