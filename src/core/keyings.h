/*
 * keyings.h - which keys may be in one filter, or in one sketch
 */
#ifndef BLY_CORE_KEYINGS_H
#define BLY_CORE_KEYINGS_H

#include <bloomery.h>

/* The name of a type of keys; never NULL. bly_key_type_name() of bloomery.h is
 * here too. */
const char *bly_key_type_word(bly_key_type type);

/* BLY_EUNFIT if something with keys described by a and by b would miss some of
 * them, whichever of the two it says. `what` is a "filter" or a "sketch". */
bly_status bly_key_types_fit(bly_keying a, bly_keying b, const char *what);

#endif
