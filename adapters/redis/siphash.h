/*
 * siphash.h - SipHash-1-3 over the length of an item and its bytes, as
 * valkey-bloom hashes
 */
#ifndef BLY_REDIS_SIPHASH_H
#define BLY_REDIS_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

/* key: 16 bytes. What is hashed is the u64 length, then the item. */
uint64_t siphash13(const unsigned char *key, const void *item, size_t n);

#endif
