/*
 * simhash.c - hashing that keeps angles, and Hamming distances
 *
 * Two vectors lie on one side of a random plane with probability
 * 1 - theta/pi, where theta is the angle between them [1]. Take the 64 bits of
 * a shingle's hash as signs: bit i of all shingles together is a random
 * direction, and bit i of a set's hash says on which side of its plane the set
 * lies.
 *
 * Two arrays of f bits that differ in d agree in a random one with probability
 * 1 - d/f [2].
 *
 * [1] Charikar, Similarity estimation techniques from rounding algorithms, 2002
 * [2] Indyk and Motwani, Approximate nearest neighbors, 1998
 */
#include "core/bits.h"
#include "sketch/sketches.h"

uint64_t bly_simhash(const uint64_t *hashes, const double *weights, size_t n)
{
    double sums[64] = { 0 };
    for (size_t i = 0; i < n; i++) {
        const double w = weights ? weights[i] : 1;
        for (unsigned bit = 0; bit < 64; bit++)
            sums[bit] += hashes[i] >> bit & 1 ? w : -w;
    }
    uint64_t out = 0;
    for (unsigned bit = 0; bit < 64; bit++)
        out |= (uint64_t)(sums[bit] >= 0) << bit;
    return out;
}

unsigned bly_hamming(uint64_t a, uint64_t b)
{
    return (unsigned)__builtin_popcountll(a ^ b);
}

double bly_simhash_angle(uint64_t a, uint64_t b)
{
    return 3.14159265358979323846 * bly_hamming(a, b) / 64;
}

uint64_t bly_sample_bits(const void *bits, uint64_t nbits, uint64_t seed,
                         unsigned r)
{
    const unsigned char *const at = bits;
    uint64_t out = 0;
    for (unsigned i = 0; i < r && i < 64; i++) {
        const uint64_t h = bly_mix64(bly_mix64(seed) + i);
        const uint64_t j = bly_scale(h, nbits);
        out |= (uint64_t)(at[j / 8] >> (j % 8) & 1) << i;
    }
    return out;
}
