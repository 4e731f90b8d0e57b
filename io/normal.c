/*
 * normal.c - the form that keys take before they are hashed
 */
#include "io/normal.h"

static uint32_t forms_of(const struct normal *how)
{
    return (how->fold ? BLY_KEYS_FOLDED : 0) |
           (how->trim ? BLY_KEYS_TRIMMED : 0);
}

bool normal_key(const struct normal *how, bly_bytes *key, struct block *scratch,
                char *why, size_t nwhy)
{
    (void)why;
    (void)nwhy;
    *key = bly_key_normalise(forms_of(how), *key, scratch->at + scratch->len);
    if (how->fold)
        scratch->len += key->len;
    return true;
}
