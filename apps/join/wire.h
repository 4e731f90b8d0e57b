/*
 * wire.h - what goes between the two ends of a remote join
 *
 * Two streams of bytes, each cut into frames (wire/frame.h), whose numbers
 * count up, and ended by an empty one:
 *
 *     request    a byte of flags, the filter as a .bly file
 *     answer     form, delimiter, separator (a byte each), columns, column of
 *                the key, length of the header, the header;
 *                rows: length of the key and one, length of the rest, both;
 *                0, rows in all, their bytes, rows that were sent
 *
 * Numbers are varints (base/varint.h), the last three words of 8 bytes,
 * little-endian.
 */
#ifndef BLY_JOIN_WIRE_H
#define BLY_JOIN_WIRE_H

#include "io/input.h"
#include "wire/session.h"

#define JOIN_PROTOCOL "blyjoin"
#define JOIN_FRAME 65536 /* bytes of a body */
#define JOIN_KEYS_ONLY 1 /* flag: nothing but the keys of rows is wanted */

/* One end; zero, with the session, is the beginning. */
struct wire {
    struct session session;
    uint32_t came, went; /* frames */
    const unsigned char *at;
    size_t left;
    bool ended;
    unsigned char out[JOIN_FRAME];
    size_t nout;
    const char *why; /* something is wrong; NULL: nothing is */
};

void wire_begin(struct wire *w, const struct secure_secret *secret);

/* False: wire_why(). A text is at most `most` long; room grows with what comes,
 * not with what is promised. */
bool wire_number(struct wire *w, uint64_t *out);
bool wire_word(struct wire *w, uint64_t *out); /* of 8 bytes */
bool wire_bytes(struct wire *w, void *to, size_t n);
bool wire_text(struct wire *w, uint64_t n, uint64_t most, struct block *to);
int64_t wire_get(void *wire, void *to, size_t n); /* a bly_get */

/* Is that all that it says? */
bool wire_ends(struct wire *w);

/* A bly_put; and send what was put, and the end. */
bool wire_put(void *wire, const void *bytes, size_t n);
bool wire_close(struct wire *w);

const char *wire_why(const struct wire *w);

#endif
