/*
 * bloomery/few.h - filters of a few keys, in as few bytes as there can be
 *
 * Beside the filters of bloomery.h, which says what holds here too about
 * failure, ownership, threads and cost. Some systems keep a filter for each
 * block of a file: LevelDB one for every 20 to 40 keys. There a header costs
 * more than the filter, and so do the margins of kinds that are made for
 * millions. Here a filter of n keys with a false positive rate of 2^-r takes
 * n r bits, which is the least that any filter can have, and one byte:
 *
 *     unsigned char bytes[64];
 *     size_t nbytes;
 *     bly_few_build(hashes, 35, 7, bytes, sizeof bytes, &nbytes);     32 bytes
 *     if (bly_few_has(bytes, nbytes, bly_hash(&hasher, key, len)))
 *         read_the_block();
 *
 * The bytes are all there is: nothing is made, and nothing is released. A Bloom
 * filter of this rate takes 45 bytes.
 */
#ifndef BLOOMERY_FEW_H
#define BLOOMERY_FEW_H

#include <bloomery.h>

BLY_BEGIN_DECLS

#define BLY_FEW_MOST_BITS 15 /* per key; at least 1 */
#define BLY_FEW_MOST_KEYS (1 << 24)

/* Build the filter of n hashes, in any order; those that come again cost bits
 * as if they were others. `bits` per key may be a fraction: then that share of
 * filters, by their first hash, has one bit more than the rest. `bytes` has
 * bly_few_room(n, bits); *nbytes becomes the number of those that are used.
 *
 * From 128 keys on it takes up to 1 % more than n r bits, for 20,000 of them
 * 2 %, for 100,000 5 %. Larger sets are better off as a filter of a kind.
 *
 * BLY_EINVAL for bits or keys out of range, or too little room, BLY_ENOMEM:
 * some 10 bytes per key are needed while a filter of more than 500 keys is
 * built. */
bly_status bly_few_build(const uint64_t *hashes, size_t n, double bits,
                         void *bytes, size_t room, size_t *nbytes);
size_t bly_few_room(size_t n, double bits);

/* Bits per key for a rate of false positives, from 2^-15 to 1/2, over many
 * filters; out of this range the nearest end. */
double bly_few_bits(double fpr);

/* May the key be in it? Cannot fail: bytes that are no such filter say true,
 * and any bytes are safe. There is no checksum, so that a damaged filter can
 * say no to a key that it had. */
bool bly_few_has(const void *bytes, size_t nbytes, uint64_t hash);

/* What a filter tells about itself. */
typedef struct bly_few_facts { /* final */
    uint64_t keys; /* as many, or one or two fewer, were built into it */
    unsigned bits; /* per key: the rate is 2^-bits */
} bly_few_facts;

/* False if the bytes are no such filter, and say maybe to all keys. */
bool bly_few_tell(const void *bytes, size_t nbytes, bly_few_facts *out);

BLY_END_DECLS
#endif
