/*
 * npy.h - what an array of NumPy's says of itself: the header of .npy
 */
#ifndef BLY_APPS_VECTORS_NPY_H
#define BLY_APPS_VECTORS_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NPY_MAGIC "\x93NUMPY"
#define NPY_WHY 256

/* An array of vectors: two dimensions, in C's order, of a type that is read. */
struct npy {
    enum npy_type { NPY_HALF, NPY_FLOAT, NPY_DOUBLE } type;
    unsigned width; /* bytes of a number */
    uint64_t n, dims;
    size_t data; /* where numbers begin, and the file has n * dims of them */
};

/* Read the header of a whole file. False, with the reason and what would be
 * right in why, if it is something else; whatever comes back with true can be
 * read. */
bool npy_read(const void *bytes, size_t nbytes, struct npy *out,
              char why[NPY_WHY]);

/* A header for n vectors like those of `like`. Its length. */
#define NPY_HEADER 128
size_t npy_header(const struct npy *like, uint64_t n, char out[NPY_HEADER]);

/* A number of 16 bits. */
float npy_half(uint16_t bits);

#endif
