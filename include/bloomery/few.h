/*
 * bloomery/few.h - filters of a few keys, in as few bytes as possible
 * SPDX-License-Identifier: MIT
 *
 * What bloomery.h says about failure, ownership, threads and cost holds here
 * too. Some systems keep a filter for each block of a file: LevelDB keeps one
 * for every 20 to 40 keys. There, a header costs more than the filter, and so
 * do the margins of kinds that are made for millions of keys. Here, a filter of
 * n keys with a false positive rate of 2^-r takes n r bits, which is the least
 * that any filter can have, and one byte:
 *
 *     unsigned char bytes[64];
 *     size_t nbytes;
 *     if (bly_few_build(hashes, 35, 7, bytes, sizeof bytes, &nbytes))
 *         errx(2, "%s", bly_error());
 *     if (bly_few_has(bytes, nbytes, bly_hash(&hasher, key, len)))
 *         read_the_block();
 *
 * The 32 bytes are the whole filter: there is no object to make or release. A
 * Bloom filter of this rate takes 45.
 */
#ifndef BLOOMERY_FEW_H
#define BLOOMERY_FEW_H

#include <bloomery.h>

BLY_BEGIN_DECLS

#define BLY_FEW_MOST_BITS 15 /* per key; at least 1 */
#define BLY_FEW_MOST_KEYS (1 << 24)

/* Build the filter of n hashes, in any order. A repeated hash costs as many
 * bits as another one. `bits` per key may be a fraction: that share of the
 * filters, chosen by their first hash, then has one bit per key more than the
 * rest. `bytes` has room for bly_few_room(n, bits); *nbytes becomes the number
 * used.
 *
 * From 128 keys on a filter takes up to 1 % more than n r bits, for 20,000 keys
 * 2 %, for 100,000 5 %. For larger sets, use a filter of one of the kinds.
 *
 * BLY_EINVAL if bits or n is out of range, or there is too little room.
 * BLY_ENOMEM is possible too: building a filter of more than 224 keys takes
 * some 20 bytes per key. */
bly_status bly_few_build(const uint64_t *hashes, size_t n, double bits,
                         void *bytes, size_t room, size_t *nbytes);
size_t bly_few_room(size_t n, double bits);

/* Bits per key for a rate of false positives from 2^-15 to 1/2, as the mean
 * over many filters. Outside this range, the nearest end counts. */
double bly_few_bits(double fpr);

/* May the key be in the filter? Cannot fail: bytes that are not such a filter
 * say true, and any bytes are safe. There is no checksum, so a damaged filter
 * can say no to a key that it had. */
bool bly_few_has(const void *bytes, size_t nbytes, uint64_t hash);

/* What a filter says about itself. */
typedef struct bly_few_facts { /* final */
    uint64_t keys;             /* that it has room for: as many as were built
                                  into it, or up to a few percent more */
    unsigned bits;             /* per key: the rate is 2^-bits */
} bly_few_facts;

/* False if the bytes are not such a filter, and so say maybe to all keys. */
bool bly_few_tell(const void *bytes, size_t nbytes, bly_few_facts *out);

BLY_END_DECLS
#endif
