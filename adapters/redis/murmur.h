/*
 * murmur.h - Austin Appleby's MurmurHash2, in the two forms that RedisBloom's
 * keys are hashed with
 */
#ifndef BLY_REDIS_MURMUR_H
#define BLY_REDIS_MURMUR_H

#include <stddef.h>
#include <stdint.h>

uint32_t murmur2(const void *key, size_t n, uint32_t seed);
uint64_t murmur64a(const void *key, size_t n, uint64_t seed);

#endif
