/*
 * wire.h - what goes through the pipe between the two ends of a remote join
 *
 *     request    "blyjoin1", a byte of flags, the filter's length (8 bytes),
 *                the filter as a .bly file
 *     answer     "blyrows1", form, delimiter, separator (a byte each), columns,
 *                column of the key, length of the header, the header;
 *                rows: length of the key and one, length of the rest, both;
 *                0, rows in all, their bytes, rows that were sent, and a
 * checksum of shape, rows and these numbers (8 bytes each)
 *
 * Numbers without a length are varints (io/varint.h); those of 8 bytes are
 * little-endian.
 */
#ifndef BLY_JOIN_WIRE_H
#define BLY_JOIN_WIRE_H

#include "io/input.h"

#define WIRE_ASKS "blyjoin1"
#define WIRE_ROWS "blyrows1"
#define WIRE_MAGIC 8
#define WIRE_REQUEST (WIRE_MAGIC + 1 + 8)
#define WIRE_KEYS_ONLY 1 /* flag: nothing but the keys of rows is wanted */

/* A sum over rows, in their order. */
uint64_t wire_sum(uint64_t before, bly_bytes key, bly_bytes rest);

/* Bytes that come through a pipe. Zero, with the descriptor, is the beginning.
 */
struct wire {
    int fd;
    char buf[65536];
    size_t at, len;
    uint64_t done;   /* bytes taken */
    const char *why; /* something is wrong; NULL: nothing is */
    int error;       /* errno, if it is the system's fault */
};

/* False: w->why. A text is at most `most` long; room grows with what comes, not
 * with what is promised. */
bool wire_number(struct wire *w, uint64_t *out);
bool wire_word(struct wire *w, uint64_t *out); /* of 8 bytes */
bool wire_bytes(struct wire *w, void *to, size_t n);
bool wire_text(struct wire *w, uint64_t n, uint64_t most, struct block *to);

/* Has the other end closed the pipe, with nothing left in it? */
bool wire_ends(struct wire *w);

#endif
