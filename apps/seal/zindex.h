/*
 * zindex.h - a Bloom filter of words that only a trapdoor can ask
 *
 * Goh's Z-IDX ("Secure Indexes", 2003). Each document has a filter of its own,
 * and the bits of a word depend on a secret and on the document:
 *
 *     x     = PRF(secret, word)              the trapdoor of the word
 *     y_i   = PRF(x, id of the document, i)  i = 0 .. r-1
 *     bit i = y_i mod m
 *
 * Whoever has the filters and no trapdoor sees random bits: the same word sets
 * other bits in every document. How many words a document has would still show
 * in how full its filter is, so every filter is filled as if it held as many as
 * its length allows (zindex_words()).
 */
#ifndef BLY_SEAL_ZINDEX_H
#define BLY_SEAL_ZINDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRAPDOOR_BYTES 32
#define DOCUMENT_ID_BYTES 16

/* The most different words that n bytes of text can have: 36 of one letter or
 * digit, 3216 of two bytes, others of three at least, a separator behind
 * each. */
uint64_t zindex_words(uint64_t nbytes);

/* Bits per word for a rate of false positives, and bits of a filter for that
 * many words: r = log2(1/p), m = u r / ln 2, both rounded up. */
unsigned zindex_probes(double fpr);
uint64_t zindex_bits(uint64_t nwords, unsigned r);

/* Bytes that look random to those who have no trapdoor, out of n others. */
#define ZINDEX_PRF_BYTES 64
typedef void zindex_prf(unsigned char out[ZINDEX_PRF_BYTES],
                        const unsigned char *bytes, size_t n,
                        const unsigned char *trapdoor);

/* Add a word, by its trapdoor, to the filter of a document: m bits, of which
 * bit j is bit j % 8 of byte j / 8; and ask for it. */
void zindex_add(unsigned char *bits, uint64_t m, unsigned r, zindex_prf *prf,
                const unsigned char *trapdoor, const unsigned char *id);
bool zindex_has(const unsigned char *bits, uint64_t m, unsigned r,
                zindex_prf *prf, const unsigned char *trapdoor,
                const unsigned char *id);

#endif
