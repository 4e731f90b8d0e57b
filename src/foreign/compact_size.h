/*
 * compact_size.h - the lengths of Bitcoin's messages
 *
 * One byte up to 252; 253, 254 and 255 announce two, four and eight bytes,
 * little-endian. A number has one form, the shortest.
 */
#ifndef BLY_FOREIGN_COMPACT_SIZE_H
#define BLY_FOREIGN_COMPACT_SIZE_H

#include "foreign/format.h"

/* How many of n bytes the number takes; 0 where they hold none. */
static inline size_t bly_compact_size(const unsigned char *p, size_t n,
                                      uint64_t *out)
{
    if (n == 0)
        return 0;
    const unsigned first = p[0];
    if (first < 253) {
        *out = first;
        return 1;
    }
    const size_t width = (size_t)1 << (first - 252);
    if (n <= width)
        return 0;
    const uint64_t x = width == 2   ? bly_load16(p + 1)
                       : width == 4 ? bly_load32(p + 1)
                                    : bly_load64(p + 1);
    const uint64_t least = width == 2 ? 253 : UINT64_C(1) << width * 4;
    if (x < least)
        return 0;
    *out = x;
    return 1 + width;
}

#endif
