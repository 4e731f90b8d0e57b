/*
 * varint.h - numbers of 7 bits per byte, in blocks
 */
#ifndef BLY_IO_VARINT_H
#define BLY_IO_VARINT_H

#include "base/varint.h"
#include "io/input.h"

/* Append n. False: no memory. */
static inline bool varint_put(struct block *to, uint64_t n)
{
    unsigned char at[VARINT_MOST];
    return block_put(to, at, varint_write(at, n));
}

#endif
