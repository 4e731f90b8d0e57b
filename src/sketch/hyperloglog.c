/*
 * hyperloglog.c - how many distinct hashes there were, in fixed memory
 *
 * The top p bits of a hash choose a register; the register keeps the longest
 * run of zeros, plus one, seen at the head of the other 64 - p bits. A run of
 * r - 1 zeros takes about 2^r hashes to come up, so the registers together
 * tell how many there were, and a hash that comes again changes nothing.
 *
 *     h = | p bits: register | 0 0 0 1 ...  -> value 4 |
 *
 * The estimate is Ertl's, which needs no tables of corrections and is
 * unbiased from the first hash to the last [2]: with C[v] registers of value
 * v, m = 2^p and q = 64 - p,
 *
 *     z = m tau(1 - C[q+1]/m) ; for v = q .. 1: z = (z + C[v]) / 2
 *     z = z + m sigma(C[0]/m) ; estimate = m^2 / (2 ln 2 z)
 *
 * Its deviation is 1.04/sqrt(m) of it; below m hashes less, since registers
 * that were never hit tell more: sqrt(m (e^t - 1 - t)), t = n/m, as if they
 * were bits [3]. Precision 14 errs by 0.8 %.
 *
 * Registers of a byte each, which are the fastest to add to, are the builder's;
 * those of bly_hll (hll.c) are packed and come here as counts of values.
 *
 * [1] Flajolet, Fusy, Gandouet and Meunier, HyperLogLog, 2007
 * [2] Ertl, New cardinality estimation algorithms for HyperLogLog sketches,
 *     2017
 * [3] Whang, Vander-Zanden and Taylor, A linear-time probabilistic counting
 *     algorithm for database applications, 1990
 */
#include <math.h>

#include "sketch/hyperloglog.h"

void bly_registers_add(uint8_t *registers, unsigned p, const uint64_t *hashes,
                       size_t n)
{
    /* The guard bit ends a run of zeros at q. */
    const uint64_t guard = UINT64_C(1) << (p - 1);
    for (size_t i = 0; i < n; i++) {
        const uint64_t rest = hashes[i] << p | guard;
        const uint8_t value = (uint8_t)(__builtin_clzll(rest) + 1);
        uint8_t *at = &registers[hashes[i] >> (64 - p)];
        if (*at < value)
            *at = value;
    }
}

void bly_registers_merge(uint8_t *dst, const uint8_t *src, unsigned p)
{
    for (size_t i = 0; i < (size_t)1 << p; i++)
        dst[i] = dst[i] < src[i] ? src[i] : dst[i];
}

/* x + sum over i of x^(2^i) 2^(i-1), for the registers that were never hit. */
static double hll_sigma(double x)
{
    double y = 1, z = x, last;
    if (x >= 1)
        return INFINITY;
    do {
        last = z;
        x *= x;
        z += x * y;
        y += y;
    } while (z != last);
    return z;
}

/* (1 - x - sum over i of (1 - x^(2^-i))^2 2^-i) / 3, for those at the top. */
static double hll_tau(double x)
{
    double y = 1, z = 1 - x, last;
    if (x <= 0 || x >= 1)
        return 0;
    do {
        last = z;
        x = sqrt(x);
        y /= 2;
        z -= (1 - x) * (1 - x) * y;
    } while (z != last);
    return z / 3;
}

double bly_values_estimate(const uint32_t *count, unsigned p)
{
    const double m = ldexp(1, (int)p);
    const unsigned q = 64 - p;
    double z = m * hll_tau(1 - count[q + 1] / m);
    for (unsigned v = q; v >= 1; v--)
        z = (z + count[v]) / 2;
    z += m * hll_sigma(count[0] / m);
    return m * m / (2 * log(2) * z);
}

double bly_registers_estimate(const uint8_t *registers, unsigned p)
{
    const unsigned ceiling = 64 - p + 1;
    uint32_t count[BLY_VALUES] = { 0 };
    for (size_t i = 0; i < (size_t)1 << p; i++)
        count[registers[i] <= ceiling ? registers[i] : ceiling]++;
    return bly_values_estimate(count, p);
}

double bly_values_deviation(double n, unsigned p)
{
    const double m = ldexp(1, (int)p), t = n / m;
    return fmin(1.04 / sqrt(m) * n, sqrt(m * (expm1(t) - t)));
}
