/*
 * unpack.h - decompression, one row for each way to compress
 *
 * A row says how such a file begins and how it is unpacked, a piece at a time.
 * A file is one member after another; a member is what one run of gzip, zstd,
 * xz or bzip2 writes. Reading the file, and what may stand between members, is
 * the caller's (source.c).
 *
 * Bytes come from anywhere. What a decoder allocates is bounded, whatever the
 * file asks for.
 */
#ifndef BLY_IO_UNPACK_H
#define BLY_IO_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UNPACK_MAGIC 10 /* bytes that tell, at most */

/* Packed bytes in, plain bytes out; a call moves both along. */
struct unpack_io {
    const unsigned char *in;
    size_t nin;
    unsigned char *out;
    size_t nout;
};

enum unpacked {
    UNPACK_ON,     /* wants more of either */
    UNPACK_MEMBER, /* a member ended; the next call begins another */
    UNPACK_DAMAGED,
    UNPACK_MEMORY, /* there is none */
    UNPACK_LARGE   /* more is asked for than a file may ask for */
};

struct unpacker {
    const char *name;    /* "gzip" */
    const char *program; /* that does the same: "gzip -dc" */
    const char *library; /* that this program was built without; NULL: with */
    unsigned char magic[UNPACK_MAGIC];
    unsigned char loose[UNPACK_MAGIC]; /* bits of magic that may differ */
    unsigned char nmagic;
    unsigned char sure; /* a file that ends after as many bytes of magic, or
                           more, was cut: no list of keys is those bytes */
    bool padded;        /* zeros may follow a member */

    void *(*open)(void); /* NULL: no memory */
    enum unpacked (*run)(void *state, struct unpack_io *io);
    void (*close)(void *state);
};

/* The row by number; NULL past the last. */
const struct unpacker *unpacker_at(size_t i);

/* The row of a file that begins with these n bytes. NULL: of none; then *more
 * says whether further bytes could make it one. */
const struct unpacker *unpacker_of(const unsigned char *bytes, size_t n,
                                   bool *more);

#endif
