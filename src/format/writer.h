/*
 * writer.h - a filter to the bytes of a .bly file, coded or not
 *
 * bly_write() and related functions write a filter as its own settings say
 * (bly_set_coded()); these functions, as the caller says.
 */
#ifndef BLY_WRITER_H
#define BLY_WRITER_H

#include "kinds/kind.h"

typedef enum bly_packing {
    BLY_CODED_OR_NOT, /* as the filter says */
    BLY_NOT_CODED,
    BLY_ALL_CODED
} bly_packing;

bly_status bly_file_write(const bly_filter *f, bly_packing coding, bly_put *put,
                          void *ctx);

/* The size of the file if it is less than `most`, else UINT64_MAX; coding stops
 * there. 0 if there are more records, or deeper ones, than a file may have. */
uint64_t bly_file_bytes(const bly_filter *f, bly_packing coding, uint64_t most);

#endif
