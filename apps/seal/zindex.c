/*
 * zindex.c - a Bloom filter of words that only a trapdoor can ask
 *
 * One call of the PRF gives 64 bytes, so eight y_i; taking 64 bits modulo m,
 * which is below 2^40, is off by less than 2^-24 of a share.
 */
#include "apps/seal/zindex.h"

#include <math.h>
#include <string.h>

#include "base/byte_order.h"

#define AT_ONCE (ZINDEX_PRF_BYTES / 8)

uint64_t zindex_words(uint64_t nbytes)
{
    const uint64_t short_words = 36, two_bytes = 36 * 36 + 1920;
    uint64_t left = nbytes + 1; /* the last one needs nothing behind it */
    const uint64_t one = left / 2 < short_words ? left / 2 : short_words;
    left -= 2 * one;
    const uint64_t two = left / 3 < two_bytes ? left / 3 : two_bytes;
    left -= 3 * two;
    return one + two + left / 4;
}

unsigned zindex_probes(double fpr)
{
    const double r = ceil(log2(1 / fpr) - 1e-9);
    return r < 1 ? 1 : r > 60 ? 60 : (unsigned)r;
}

uint64_t zindex_bits(uint64_t nwords, unsigned r)
{
    return (uint64_t)ceil((double)(nwords ? nwords : 1) * r / log(2));
}

/* y_i to y_(i+7). */
static void codewords(zindex_prf *prf, const unsigned char *trapdoor,
                      const unsigned char *id, unsigned i, uint64_t y[AT_ONCE])
{
    unsigned char text[DOCUMENT_ID_BYTES + 4], out[ZINDEX_PRF_BYTES];
    memcpy(text, id, DOCUMENT_ID_BYTES);
    put_le(text + DOCUMENT_ID_BYTES, i, 4);
    prf(out, text, sizeof text, trapdoor);
    for (unsigned j = 0; j < AT_ONCE; j++)
        y[j] = get_le(out + 8 * j, 8);
}

static inline unsigned char bit_of(uint64_t at)
{
    return (unsigned char)(1u << (at & 7));
}

void zindex_add(unsigned char *bits, uint64_t m, unsigned r, zindex_prf *prf,
                const unsigned char *trapdoor, const unsigned char *id)
{
    uint64_t y[AT_ONCE];
    for (unsigned i = 0; i < r; i++) {
        if (i % AT_ONCE == 0)
            codewords(prf, trapdoor, id, i, y);
        const uint64_t at = y[i % AT_ONCE] % m;
        bits[at >> 3] |= bit_of(at);
    }
}

bool zindex_has(const unsigned char *bits, uint64_t m, unsigned r,
                zindex_prf *prf, const unsigned char *trapdoor,
                const unsigned char *id)
{
    uint64_t y[AT_ONCE];
    for (unsigned i = 0; i < r; i++) {
        if (i % AT_ONCE == 0)
            codewords(prf, trapdoor, id, i, y);
        const uint64_t at = y[i % AT_ONCE] % m;
        if (!(bits[at >> 3] & bit_of(at)))
            return false;
    }
    return true;
}
