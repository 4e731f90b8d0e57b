/*
 * wasm_maths.c - logarithms and powers, which every JavaScript engine has
 *
 * Those of a C library bring 15 KB of tables. JavaScript's are as exact: the
 * engines compute them as fdlibm does, to less than one unit of the last place.
 */
#include <math.h>

#define FROM_JS1(name)                                                         \
    __attribute__((import_module("js"), import_name(#name))) double js_##name( \
        double);                                                               \
    double name(double x)                                                      \
    {                                                                          \
        return js_##name(x);                                                   \
    }
FROM_JS1(exp)
FROM_JS1(expm1)
FROM_JS1(log)
FROM_JS1(log1p)
FROM_JS1(log2)

__attribute__((import_module("js"), import_name("pow"))) double js_pow(double,
                                                                       double);

double pow(double x, double y)
{
    return js_pow(x, y);
}

double round(double x)
{
    const double whole = trunc(x);
    return fabs(x - whole) < 0.5 ? whole : whole + copysign(1, x);
}

double exp2(double x)
{
    return js_pow(2, x);
}

/* log((x - 1)!) for x > 0, by Stirling's series where it has converged to the
 * last place, and from there down by x (x + 1) ...; its only use is for numbers
 * of keys. */
double lgamma(double x)
{
    double below = 1;
    for (; x < 16; x++)
        below *= x;
    const double z = 1 / (x * x);
    const double series =
        1.0 / 12 + z * (-1.0 / 360 + z * (1.0 / 1260 + z * (-1.0 / 1680 +
                                                            z * (1.0 / 1188))));
    return (x - 0.5) * js_log(x) - x + 0.91893853320467274178 + series / x -
           js_log(below);
}
