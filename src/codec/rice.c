/*
 * rice.c - where two arrays of bits differ, in few bits
 *
 * d of m bits are flipped. Their positions p_0 < p_1 < ... are written as gaps,
 * g_i = p_i - p_(i-1) - 1 (the first is p_0), each in Rice's code [1] with one
 * parameter b for all of them:
 *
 *     g >> b zeros,  a one,  the b low bits of g, the lowest first
 *
 * in bits that fill bytes from the lowest on. So a gap costs b + 1 bits and one
 * more for each 2^b of it. Positions that lie anywhere have gaps that are
 * geometric with mean m/d, which Rice's code suits: with q = 1 - d/m
 *
 *     bits = d (b + 1 + q^(2^b) / (1 - q^(2^b)))
 *
 * is expected, and the least that any code can do is m H(d/m).
 *
 *           m       d    b      bits   m H(d/m)   as 32-bit words
 *       80000     600    6      5169       5098             19200
 *       80000    6000    3     30930      30745            192000
 *     8000000   60000    6    516930     509770           1920000
 *
 * b = floor(log2(ln 2 m/d)) halves, or nearly, the chance of another step with
 * each zero [2]; one more is better where m/d is just below the next power, so
 * both are priced. Then no more than 0.12 bits per position are lost.
 *
 * Reading believes nothing. A step of the loop takes a bit or more from the
 * stream, so the time is bounded by its length, whatever it says.
 *
 * [1] Rice, Some Practical Universal Noiseless Coding Techniques, 1979
 * [2] Gallager and van Voorhis, Optimal Source Codes for Geometrically
 *     Distributed Integer Alphabets, 1975
 */
#include <math.h>
#include <string.h>

#include "codec/rice.h"
#include "codec/rice_bits.h"

/* The word at byte `at` of two arrays of nbytes, as what differs. */
static inline uint64_t flips_at(const unsigned char *a, const unsigned char *b,
                                size_t nbytes, size_t at)
{
    return rice_load(a + at, nbytes - at) ^ rice_load(b + at, nbytes - at);
}

unsigned bly_rice_parameter(uint64_t m, uint64_t d)
{
    const double mean = 0.6931471805599453 * (double)m / (double)d;
    return mean < 2 ? 0 : (unsigned)ilogb(mean);
}

void bly_rice_measure(const unsigned char *a, const unsigned char *b,
                      size_t nbytes, bly_rice *out)
{
    uint64_t d = 0, low = 0, high = 0, next = 0;
    for (size_t at = 0; at < nbytes; at += 8)
        d += (uint64_t)__builtin_popcountll(flips_at(a, b, nbytes, at));
    *out = (bly_rice){ .nflips = d };
    if (!d)
        return;
    const unsigned least = bly_rice_parameter(8 * (uint64_t)nbytes, d);
    for (size_t at = 0; at < nbytes; at += 8)
        for (uint64_t x = flips_at(a, b, nbytes, at); x; x &= x - 1) {
            const uint64_t p = 8 * (uint64_t)at + (uint64_t)__builtin_ctzll(x);
            low += (p - next) >> least;
            high += (p - next) >> (least + 1);
            next = p + 1;
        }
    low += d * (least + 1);
    high += d * (least + 2);
    out->b = low <= high ? least : least + 1;
    out->nbytes = ((low <= high ? low : high) + 7) / 8;
}

void bly_rice_write(const unsigned char *a, const unsigned char *b,
                    size_t nbytes, const bly_rice *r, unsigned char *stream)
{
    bit_sink s = { .at = stream };
    uint64_t next = 0;
    for (size_t at = 0; at < nbytes; at += 8)
        for (uint64_t x = flips_at(a, b, nbytes, at); x; x &= x - 1) {
            const uint64_t p = 8 * (uint64_t)at + (uint64_t)__builtin_ctzll(x);
            sink_gap(&s, p - next, r->b);
            next = p + 1;
        }
    sink_end(&s);
}

bool bly_rice_flip(const unsigned char *stream, size_t n, bly_rice *r,
                   unsigned char *data, size_t nbytes)
{
    const uint64_t m = 8 * (uint64_t)nbytes;
    bit_source s = { .bytes = stream, .n = n, .end = 8 * (uint64_t)n };
    uint64_t next = 0;
    if (r->b > BLY_RICE_MAX_B)
        return false;
    for (uint64_t i = 0; i < r->nflips; i++) {
        uint64_t gap;
        if (!source_gap(&s, m - next, r->b, &gap) || gap == m - next)
            return false;
        next += gap;
        data[next / 8] ^= (unsigned char)(1u << next % 8);
        next++;
    }
    r->nbytes = (s.at + 7) / 8;
    return source_ends(&s);
}
