/*
 * seal_prf.c - trapdoors and codewords of sealed archives: BLAKE2b with a key
 */
#include "apps/seal/seal.h"

void seal_prf(unsigned char out[ZINDEX_PRF_BYTES], const unsigned char *bytes,
              size_t n, const unsigned char *trapdoor)
{
    crypto_generichash(out, ZINDEX_PRF_BYTES, bytes, n, trapdoor,
                       TRAPDOOR_BYTES);
}

void seal_trapdoor_of(const unsigned char *secret, const void *word, size_t len,
                      unsigned char out[TRAPDOOR_BYTES])
{
    crypto_generichash(out, TRAPDOOR_BYTES, word, len, secret, TRAPDOOR_BYTES);
}

void seal_blind(unsigned char *bits, uint64_t m, unsigned r, uint64_t n)
{
    uint64_t y[512];
    const size_t most = sizeof y / sizeof y[0];
    for (uint64_t left = n * r; left > 0;) {
        const size_t some = left < most ? (size_t)left : most;
        randombytes_buf(y, some * sizeof y[0]);
        for (size_t i = 0; i < some; i++) {
            const uint64_t at = y[i] % m;
            bits[at >> 3] |= (unsigned char)(1u << (at & 7));
        }
        left -= some;
    }
}
