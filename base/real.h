/*
 * real.h - decimal numbers, fast
 */
#ifndef BLY_BASE_REAL_H
#define BLY_BASE_REAL_H

#include <float.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Read n bytes that are digits, perhaps with a sign and a point, as the nearest
 * double. False for whatever is not plain and short: exponents, blanks, more
 * than 19 digits, and what is not a number; strtod() then has the last word.
 *
 * 19 digits fit into 64 bits, and so does every power of ten up to 10^19, so
 * that a long double of 64 bits has both exactly, and their quotient with one
 * rounding. A second one, to a double, errs only where the first came out next
 * to half-way between two doubles; that is left to strtod(), too. */
static inline bool real_plain(const char *at, size_t n, double *out)
{
#if LDBL_MANT_DIG == 64
    static const double exact[] = {
        1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,
        1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
    };
    static const long double tens[] = {
        1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,  1e7L,  1e8L,  1e9L,
        1e10L, 1e11L, 1e12L, 1e13L, 1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L,
    };
    const size_t sign = n && (at[0] == '-' || at[0] == '+');
    uint64_t digits = 0, mantissa;
    size_t ndigits = 0, behind = 0, dots = 0;
    for (size_t i = sign; i < n; i++) {
        const unsigned c = (unsigned)(unsigned char)at[i] - '0';
        if (c <= 9) {
            digits = digits * 10 + c;
            ndigits++;
            behind += dots;
        } else if (at[i] != '.' || dots++) {
            return false;
        }
    }
    if (!ndigits || ndigits > 19)
        return false;
    if (digits <= UINT64_C(1) << 53) { /* exact, and one rounding */
        const double x = (double)(int64_t)digits / exact[behind];
        *out = sign && at[0] == '-' ? -x : x;
        return true;
    }
    const long double value = (long double)digits / tens[behind];
    memcpy(&mantissa, &value, sizeof mantissa);
    if ((mantissa & 0x7ff) - 0x3ff <= 2)
        return false;
    *out = sign && at[0] == '-' ? -(double)value : (double)value;
    return true;
#else
    (void)at, (void)n, (void)out;
    return false;
#endif
}

#endif
