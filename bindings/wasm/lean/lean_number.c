/*
 * lean_number.c - numbers as JavaScript writes them, without suffixes
 */
#include <math.h>

#include "bindings/wasm/wasm.h"

/* The number that a text is, by JavaScript's Number(); NAN if it is none. */
IMPORT(double, number, (const char *text))

/* Digits as they are, since a seed has more of them than a double. */
bool bly_parse_count(const char *text, uint64_t *out)
{
    uint64_t value = 0;
    const char *p = text;
    for (; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (unsigned)(*p - '0'), &value))
            return false;
    if (*p || p == text) {
        const double real = js_number(text);
        if (!(real >= 0 && real < 0x1p53 && real == floor(real)))
            return false;
        value = (uint64_t)real;
    }
    *out = value;
    return true;
}

bool bly_parse_real(const char *text, double *out)
{
    const double real = js_number(text);
    if (!isfinite(real))
        return false;
    *out = real;
    return true;
}
