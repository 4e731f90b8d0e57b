/*
 * wide.h - reals that are wider than a double, where the machine has them
 *
 * WebAssembly has none: long double would be several kilobytes of software
 * there, and its logarithms no better than those of a double.
 */
#ifndef BLY_WIDE_H
#define BLY_WIDE_H

#include <float.h>
#include <math.h>

#include "core/cpu.h"

#if BLY_WASM
typedef double bly_wide;
#define BLY_WIDE_EPSILON DBL_EPSILON
#define BLY_WIDE(function) function
#else
typedef long double bly_wide;
#define BLY_WIDE_EPSILON LDBL_EPSILON
#define BLY_WIDE(function) function##l /* BLY_WIDE(exp)(x) */
#endif

#endif
