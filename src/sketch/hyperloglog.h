/*
 * hyperloglog.h - how many distinct hashes there were: the registers alone
 *
 * The builder keeps some of a byte each; bly_hll of bloomery/sketch.h (hll.c)
 * packs them, and uses the same estimate.
 */
#ifndef BLY_HYPERLOGLOG_H
#define BLY_HYPERLOGLOG_H

#include <stddef.h>
#include <stdint.h>

/* Bits of a hash that choose a register, p below: 2^p registers of a byte. */
#define BLY_REGISTERS_MIN_BITS 4
#define BLY_REGISTERS_MAX_BITS 18

/* 2^18 registers: 256 KiB, which fits L2. Error 1.04 / sqrt(2^18) = 0.2 %, so
 * that 2 % are ten deviations. */
#define BLY_HLL_BITS 18
#define BLY_HLL_BYTES ((size_t)1 << BLY_HLL_BITS)

void bly_registers_add(uint8_t *registers, unsigned p, const uint64_t *hashes,
                       size_t n);

/* dst becomes the sketch of both. */
void bly_registers_merge(uint8_t *dst, const uint8_t *src, unsigned p);

double bly_registers_estimate(const uint8_t *registers, unsigned p);

/* The same, where count[v] registers have the value v, none more than 64 - p +
 * 1; and the deviation of an estimate of n. */
#define BLY_VALUES (64 - BLY_REGISTERS_MIN_BITS + 2)
double bly_values_estimate(const uint32_t *count, unsigned p);
double bly_values_deviation(double n, unsigned p);

#endif
