/*
 * text_set.h - a set of texts that is exact
 *
 * For what must not err: exceptions, public suffixes, the full list that
 * confirms. The texts lie one after another as lines, in the order they came,
 * and a table of places finds them.
 */
#ifndef BLY_IO_TEXT_SET_H
#define BLY_IO_TEXT_SET_H

#include "io/input.h"

/* Zero is empty. */
struct text_set {
    struct block lines;
    uint64_t *slots; /* place of a line and one; 0: free */
    size_t nslots;   /* a power of two, or 0 */
    size_t n;
};

/* Texts hold no newline. False if there is no memory. */
bool text_set_add(struct text_set *s, bly_bytes text);
bool text_set_has(const struct text_set *s, bly_bytes text);
void text_set_free(struct text_set *s);

#endif
