/*
 * normal.c - the form that keys take before they are hashed
 */
#include <stdio.h>
#include <string.h>

#include "io/normal.h"

uint32_t normal_forms(const struct normal *how)
{
    return (how->fold ? BLY_KEYS_FOLDED : 0) |
           (how->trim ? BLY_KEYS_TRIMMED : 0) |
           (how->no_cr ? BLY_KEYS_NO_CR : 0);
}

bool normal_key(const struct normal *how, bly_bytes *key, struct block *scratch,
                char *why, size_t nwhy)
{
    static const bly_hasher any = { .id = BLY_HASH_XXH3 };
    uint64_t hash;
    *key =
        bly_key_normalise(normal_forms(how), *key, scratch->at + scratch->len);
    if (how->fold)
        scratch->len += key->len;
    if (how->grouped && !(key->len && memchr(key->ptr, '\t', key->len))) {
        snprintf(why, nwhy, "no group; expected the group, a tab and the key");
        return false;
    }
    if (!normal_integer(how) ||
        !bly_hash_as(&any, (bly_keying){ how->type, 0 }, BLY_KEYS_TEXT, key, 1,
                     &hash, NULL))
        return true;
    snprintf(why, nwhy, "%s", bly_error());
    return false;
}
