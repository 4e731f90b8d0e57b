/*
 * stored.h - types of sketches, as rows of a table
 *
 * A type is to a sketch what a kind is to a filter: a number on disk, a name,
 * parameters, and functions. A new type is a line in BLY_STORED_TYPES
 * (bloomery/sketch.h) and a row in stored_types.c; files, merging, the command
 * and the fuzzer find it through the table.
 */
#ifndef BLY_STORED_H
#define BLY_STORED_H

#include <bloomery/sketch.h>

#include "format/record.h"
#include "sketch/origin.h"

/* Numbers of types on disk start here, far from those of kinds. */
#define BLY_STORED_IDS UINT32_C(65536)

typedef struct bly_stored_row {
    /* Only the number, parameters and sane() of this kind are used. */
    bly_kind kind;

    /* Fill in parameters, size and count of a record; where its hashes come
     * from, if it knows. */
    const bly_origin *(*tell)(const bly_stored *s, bly_record *out);

    /* The payload, all of record.nstored bytes: BLY_EIO if put() stops it. */
    bly_status (*put)(const bly_stored *s, bly_put *put, void *ctx);

    /* A sketch from a payload that matches its checksum, and may be forged. */
    bly_status (*load)(const bly_record *r, const bly_origin *origin,
                       const unsigned char *payload, const bly_mem *mem,
                       bly_stored *out);

    bly_status (*merge)(bly_stored *dst, const bly_stored *src);
    void (*free)(bly_stored *s);
} bly_stored_row;

/* The row of a type; NULL for BLY_STORED_NONE and for what is none. */
const bly_stored_row *bly_stored_row_of(bly_stored_type type);

#endif
