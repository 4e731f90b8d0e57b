/*
 * arrow.h - the C data interface of Apache Arrow
 *
 * Two structs that any library may hand to any other; their names, fields and
 * order are the specification's. An exporter gives them in capsules, by its
 * method __arrow_c_array__().
 */
#ifndef BLY_BINDINGS_PYTHON_ARROW_H
#define BLY_BINDINGS_PYTHON_ARROW_H

#include <stdint.h>

struct ArrowSchema {
    const char *format; /* "u": text with offsets of 32 bits, "l": int64 */
    const char *name;
    const char *metadata;
    int64_t flags;
    int64_t n_children;
    struct ArrowSchema **children;
    struct ArrowSchema *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length;
    int64_t null_count; /* -1: not known */
    int64_t offset;     /* of the first entry, in all buffers */
    int64_t n_buffers;
    int64_t n_children;
    const void **buffers; /* validity, then values or offsets, then bytes */
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

#endif
