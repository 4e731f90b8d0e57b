/*
 * sized.h - structs of callers that were compiled for another version
 *
 * A struct of the public headers is passed with the size that it has for the
 * caller. The shorter of two versions is a prefix of the longer one, and zero
 * in a new field means what the older version did without it.
 */
#ifndef BLY_SIZED_H
#define BLY_SIZED_H

#include <bloomery.h>

/* The struct `given`, of `size` bytes, as this version knows it: itself, or
 * *own, filled from it. NULL, after bly_fail(BLY_EINVAL), if it is NULL or has
 * a field that this version does not know and that is not zero. */
#define BLY_TAKE(given, size, own) \
    bly_take(given, size, own, sizeof *(own), #given)
const void *bly_take(const void *given, size_t size, void *own, size_t nown,
                     const char *argument);

/* Fill out, which has `size` bytes for the caller, from *own. A large struct is
 * filled in place if it can be: own is then BLY_ROOM(). */
#define BLY_ROOM(own, out, size) ((size) == sizeof *(own) ? (out) : (own))
#define BLY_GIVE(own, out, size) bly_give(own, sizeof *(own), out, size)
void bly_give(const void *own, size_t nown, void *out, size_t size);

#endif
