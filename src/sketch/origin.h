/*
 * origin.h - where the hashes of a sketch come from
 *
 * Two sketches can be merged only if equal keys had equal hashes in both: one
 * hash function, one seed or secret, and keys that were made in one way.
 */
#ifndef BLY_ORIGIN_H
#define BLY_ORIGIN_H

#include <bloomery.h>

typedef struct bly_origin {
    bly_hasher hasher;     /* zeros for the secret where blind */
    uint64_t secret_check; /* identifies the secret; 0 unless keyed */
    bool blind;            /* keyed, and opened without the secret */
    bly_keying keying;
} bly_origin;

/* By XXH3 with this seed, or by SipHash where there is a secret. */
bly_origin bly_origin_of(uint64_t seed, const unsigned char *secret);

/* BLY_EUNFIT, and what differs, if sketches of the two do not go together. Keys
 * of which one side says nothing fit only if there are none, or if the others
 * are bytes (core/keyings.h): none_in says that nothing was ever added. */
bly_status bly_origins_fit(const bly_origin *a, bool none_in_a,
                           const bly_origin *b, bool none_in_b);

/* What a sketch of both says about its keys. */
bly_keying bly_origins_keying(const bly_origin *a, const bly_origin *b);

/* Wipe the secret. */
void bly_origin_forget(bly_origin *o);

#endif
