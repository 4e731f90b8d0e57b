/*
 * hyperloglog.h - how many distinct hashes there were, in fixed memory
 */
#ifndef BLY_HYPERLOGLOG_H
#define BLY_HYPERLOGLOG_H

#include <stddef.h>
#include <stdint.h>

/* 2^18 registers of a byte: 256 KiB, which fits L2. Error 1.04 / sqrt(2^18) =
 * 0.2 %, so that 2 % are ten deviations. */
#define BLY_HLL_BITS 18
#define BLY_HLL_BYTES ((size_t)1 << BLY_HLL_BITS)

void bly_hll_add(uint8_t *registers, const uint64_t *hashes, size_t n);

/* dst becomes the sketch of both. */
void bly_hll_merge(uint8_t *dst, const uint8_t *src);

double bly_hll_estimate(const uint8_t *registers);

#endif
