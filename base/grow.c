/*
 * grow.c - arrays that grow by doubling
 */
#include "base/grow.h"

#include <stdlib.h>
#include <string.h>

#define LEAST 16 /* elements */

bool grow_to(void *array, size_t *room, size_t n, size_t each)
{
    size_t more = *room < LEAST / 2 ? LEAST : *room, nbytes;
    if (n <= *room)
        return true;
    if (__builtin_mul_overflow(more, *room ? 2 : 1, &more) || more < n)
        more = n;
    if (__builtin_mul_overflow(more, each, &nbytes))
        return false;
    /* The pointer may be of any type: its bytes are taken. */
    void *at;
    memcpy(&at, array, sizeof at);
    at = realloc(at, nbytes);
    if (!at)
        return false;
    memcpy(array, &at, sizeof at);
    *room = more;
    return true;
}
