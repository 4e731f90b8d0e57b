/*
 * rice.h - where two arrays of bits differ, in few bits
 *
 * The flipped positions in order, as gaps, in Rice's code: rice.c has the
 * code and what it costs. Knows arrays of bytes and nothing of filters.
 */
#ifndef BLY_RICE_H
#define BLY_RICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A stream of gaps. */
typedef struct bly_rice {
    uint64_t nflips; /* positions */
    unsigned b;      /* low bits of a gap that are stored as they are */
    uint64_t nbytes; /* that it takes */
} bly_rice;

#define BLY_RICE_MAX_B 63

/* The parameter for d > 0 positions below m, if they lie anywhere:
 * floor(log2(ln 2 m/d)), and 0 where that is negative. */
unsigned bly_rice_parameter(uint64_t m, uint64_t d);

/* The stream that tells where two arrays of nbytes differ. */
void bly_rice_measure(const unsigned char *a, const unsigned char *b,
                      size_t nbytes, bly_rice *out);

/* Write it: r is what bly_rice_measure() said of the same arrays, and stream
 * has room for r->nbytes. */
void bly_rice_write(const unsigned char *a, const unsigned char *b,
                    size_t nbytes, const bly_rice *r, unsigned char *stream);

/* Flip the bits of data that a stream names: r->nflips and r->b are given, and
 * r->nbytes becomes what the stream took of the n bytes there are. These may
 * be anyone's. False where they are no such stream: cut short, a position
 * outside the array, bits set behind the last gap. Some bits are flipped by
 * then, so let data be a copy. */
bool bly_rice_flip(const unsigned char *stream, size_t n, bly_rice *r,
                   unsigned char *data, size_t nbytes);

#endif
