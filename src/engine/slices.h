/*
 * slices.h - the AND of rows of bits
 *
 * For an index of documents (index/bit_sliced.h): a row is a few hundred to a
 * few thousand bytes, anywhere in memory. All rows of a piece of 256 bytes are
 * read before the next piece, so that the misses of the rows overlap, and the
 * result is written once.
 */
#ifndef BLY_SLICES_H
#define BLY_SLICES_H

#include "engine/rows.h"

/* out = rows[0] & rows[1] & ... for n >= 1 rows of nbytes. `out` may be one of
 * the rows; nothing else may overlap it. No alignment is needed. */
typedef struct bly_slices_row {
    BLY_ROW_HEAD;
    void (*meet)(unsigned char *out, const unsigned char *const *rows, size_t n,
                 size_t nbytes);
} bly_slices_row;
BLY_ROWS(slices);

void bly_slices_portable(unsigned char *out, const unsigned char *const *rows,
                         size_t n, size_t nbytes);
#if BLY_X86
void bly_slices_avx2(unsigned char *out, const unsigned char *const *rows,
                     size_t n, size_t nbytes);
#endif
#if BLY_ARM64
void bly_slices_neon(unsigned char *out, const unsigned char *const *rows,
                     size_t n, size_t nbytes);
#endif

#endif
