/*
 * codec.h - arrays to fewer bytes, and back
 *
 * Two models over one range coder (codec.c): one for arrays of bits, one for
 * arrays of bytes. What is coded has exactly one coded form, and decoding
 * refuses every other: cut, extended or altered input is an error.
 */
#ifndef BLY_CODEC_H
#define BLY_CODEC_H

#include <bloomery.h>

/* Their numbers are those of `encoding` in a file: docs/format.md. */
typedef enum bly_code { BLY_CODE_BITS = 1, BLY_CODE_BYTES = 2 } bly_code;

/* However little an array says, its coded form has a byte for each so many of
 * it: what a decoder gives out is bounded by what it was given. */
#define BLY_CODE_RATIO 1024

/* The range of sizes that n bytes may have when coded. */
uint64_t bly_coded_least(uint64_t n);
uint64_t bly_coded_most(uint64_t n);

/* Code n bytes and hand the result to put, a piece at a time. The number of
 * bytes; or 0 where put returned false, or n is 0. put NULL: only count. */
uint64_t bly_encode(bly_code code, const unsigned char *data, size_t n,
                    bly_put *put, void *ctx);

/* What n bytes are worth in bits, if nothing is known but how many of their
 * bits are ones, or how often each byte comes. */
double bly_code_entropy(bly_code code, const unsigned char *data, size_t n);

/* The n bytes of data that `coded` is the coded form of. False if there are no
 * such bytes: data then holds anything. */
bool bly_decode(bly_code code, const unsigned char *coded, size_t ncoded,
                unsigned char *data, size_t n);

/* The same in pieces: the coded bytes, ncoded of them, are got as they are
 * needed, and the n bytes of data given out so many at a time, a multiple of 4
 * but for the last. All of start, some and end must say true; where one did
 * not, the input is none, or get ended too early. */
typedef struct bly_decoding {
    uint64_t room[1600]; /* codec.c knows what is in it */
} bly_decoding;

bool bly_decoding_start(bly_decoding *d, bly_code code, uint64_t ncoded,
                        uint64_t n, bly_get *get, void *ctx);
bool bly_decoding_some(bly_decoding *d, unsigned char *data, size_t n);
bool bly_decoding_end(bly_decoding *d);

#endif
