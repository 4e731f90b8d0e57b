/*
 * coded_golden.h - the symbols of a set, on every machine the same
 *
 * Which cells an element has is defined in whole numbers and found in floating
 * point (sketch/coded.h). Two peers on different machines must agree to the
 * last one, so what was written once is kept as a sum.
 */
#ifndef BLY_TESTS_CODED_GOLDEN_H
#define BLY_TESTS_CODED_GOLDEN_H

#include <stdlib.h>

#include <bloomery/reconcile.h>

/* The XXH3 of 100,000 symbols of 20,000 elements of 12 bytes; 0: no memory. */
#define CODED_GOLDEN UINT64_C(0x12cc11967721e22a)

static inline uint64_t coded_golden(void)
{
    enum { ITEMS = 20000, SYMBOLS = 100000, WIDTH = 12 };
    const bly_coding how = { .width = WIDTH };
    const bly_hasher by = { .id = BLY_HASH_XXH3 };
    bly_coded *c;
    uint64_t sum = 0;
    if (bly_coded_new(&how, 0, SYMBOLS, &c))
        return 0;
    for (uint32_t i = 0; i < ITEMS; i++) {
        unsigned char element[WIDTH] = { (unsigned char)i,
                                         (unsigned char)(i >> 8),
                                         (unsigned char)(i >> 16) };
        (void)!bly_coded_add(c, element, 1);
    }
    unsigned char *const bytes = malloc(bly_coded_room(c, SYMBOLS));
    if (bytes)
        sum = bly_hash(&by, bytes, bly_coded_write(c, 0, SYMBOLS, bytes));
    free(bytes);
    bly_coded_free(c);
    return sum;
}

#endif
