/*
 * grow.h - arrays that grow by doubling
 *
 *     if (!GROW(&list->at, &list->room, list->n + 1))
 *         return false;
 *     list->at[list->n++] = ...
 *
 * So n additions copy 2n elements at most. Without memory, or where the bytes
 * cannot be counted, the array is as it was.
 */
#ifndef BLY_BASE_GROW_H
#define BLY_BASE_GROW_H

#include <stdbool.h>
#include <stddef.h>

/* See to it that the array that *array points to, of *room elements (size_t),
 * has room for n. False: it has not. */
#define GROW(array, room, n) \
    ((n) <= *(room) || grow_to((array), (room), (n), sizeof **(array)))

/* Likewise, for elements of `each` bytes; `array` is the pointer's address. */
bool grow_to(void *array, size_t *room, size_t n, size_t each);

#endif
