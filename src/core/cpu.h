/*
 * cpu.h - what this processor has, asked at run time
 *
 * Portable code defines every result; variants that need more are rows of a
 * table (engine/rows.h).
 */
#ifndef BLY_CPU_H
#define BLY_CPU_H

#include <stdint.h>

#if defined(__x86_64__) || defined(__i386__)
#define BLY_X86 1
#else
#define BLY_X86 0
#endif
#if defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define BLY_ARM64 1
#else
#define BLY_ARM64 0
#endif
#ifdef __wasm__
#define BLY_WASM 1 /* one thread, no instruction to fetch ahead, few bytes */
#else
#define BLY_WASM 0
#endif

#define BLY_CPU_POPCNT 0x1u
#define BLY_CPU_AVX2 0x2u
#define BLY_CPU_AVX512 0x4u /* F, BW, DQ and VL together */
#define BLY_CPU_NEON 0x8u
#define BLY_CPU_FMA 0x10u /* a multiplication and an addition, rounded once */

/* The features of this processor. In the environment of a library built with
 * BLY_TESTING, BLY_CPU=portable turns all off and BLY_CPU=avx2,popcnt leaves
 * only those on. */
uint32_t bly_cpu_features(void);

#endif
