/*
 * vector_file.h - a file of vectors, of any of five formats
 */
#ifndef BLY_APPS_VECTORS_VECTOR_FILE_H
#define BLY_APPS_VECTORS_VECTOR_FILE_H

#include <bloomery/vectors.h>

#include "apps/vectors/npy.h"
#include "io/input.h"

/* What the options say of a file; zero: it is seen. */
struct vector_options {
    uint64_t dims;     /* raw numbers, so many in a vector; 0: not raw */
    bool doubles;      /* raw numbers are, and those of text become double */
    const char *field; /* of JSON lines: where the array is */
    const char *id;    /* of JSON lines and CSV: where the id is */
    const char *delimiter; /* of CSV; NULL: a comma */
};

struct vector_file {
    const char *name;
    enum { VECTORS_NPY, VECTORS_RAW, VECTORS_CSV, VECTORS_JSON } format;
    bly_vectors v;
    struct block bytes; /* of the file */
    void *coordinates;  /* of text, and where bytes are not aligned */
    size_t room;        /* of that, in bytes */
    struct npy npy;
    size_t data;  /* bytes in front of the first vector */
    size_t *rows; /* of text: where the lines of vectors begin and end */
    size_t rows_room;
    bly_bytes *ids; /* of text; NULL: there are none */
    size_t ids_room;
    char *unescaped; /* what ids point to that have escapes */
};

/* Read all of a file. False, with the reason printed. To be closed in any
 * case. */
bool vector_file_open(struct vector_file *f, const char *name,
                      const struct vector_options *o);
void vector_file_close(struct vector_file *f);

/* Vector i as it stands in the file. */
bly_bytes vector_file_row(const struct vector_file *f, size_t i);

/* What stands in front of them, in a file of n of its vectors, which may be
 * written to room. */
bly_bytes vector_file_head(const struct vector_file *f, size_t n,
                           char room[NPY_HEADER]);

#endif
