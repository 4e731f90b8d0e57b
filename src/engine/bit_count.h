/*
 * bit_count.h - the ones in arrays of bits
 */
#ifndef BLY_BIT_COUNT_H
#define BLY_BIT_COUNT_H

#include <stdbool.h>

#include "engine/rows.h"

/* Ones in nwords words: of a; of a | b. */
uint64_t bly_bits_count(const uint64_t *a, size_t nwords);
uint64_t bly_bits_count_or(const uint64_t *a, const uint64_t *b, size_t nwords);

typedef struct bly_count_row {
    BLY_ROW_HEAD;
    uint64_t (*count)(const uint64_t *a, size_t nwords);
} bly_count_row;
BLY_ROWS(count);

#endif
