/*
 * normal.c - the form that keys take before they are hashed
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/real.h"
#include "io/normal.h"
#include "report/show.h"

uint32_t normal_forms(const struct normal *how)
{
    return (how->fold ? BLY_KEYS_FOLDED : 0) |
           (how->trim ? BLY_KEYS_TRIMMED : 0) |
           (how->no_cr ? BLY_KEYS_NO_CR : 0);
}

#define REAL_LETTERS 400 /* the longest double that is written out has 310 */

/* The number that n bytes are, blanks at both ends left out. */
static bool read_real(const char *at, size_t n, double *out)
{
    char text[REAL_LETTERS], *end;
    for (; n && (*at == ' ' || *at == '\t'); n--)
        at++;
    while (n && (at[n - 1] == ' ' || at[n - 1] == '\t' || at[n - 1] == '\r'))
        n--;
    if (real_plain(at, n, out))
        return true;
    if (!n || n >= sizeof text)
        return false;
    memcpy(text, at, n);
    text[n] = '\0';
    if (strspn(text, "0123456789+-.eE") != n)
        return false;
    *out = strtod(text, &end);
    return end == text + n && isfinite(*out);
}

/* The group and its tab stay in front of it. */
static bool make_real(bool grouped, bly_bytes *key, struct block *scratch,
                      char *why, size_t nwhy)
{
    const char *const at = key->ptr;
    const char *const tab = grouped ? memrchr(at, '\t', key->len) : NULL;
    const size_t ngroup = tab ? (size_t)(tab + 1 - at) : 0;
    double value;
    if (!read_real(at + ngroup, key->len - ngroup, &value)) {
        snprintf(why, nwhy, "'%s' is not a number",
                 show_text(at + ngroup, key->len - ngroup));
        return false;
    }
    char *const to = scratch->at + scratch->len;
    memcpy(to, at, ngroup);
    memcpy(to + ngroup, &value, sizeof value);
    *key = (bly_bytes){ to, ngroup + sizeof value };
    scratch->len += key->len;
    return true;
}

bool normal_key(const struct normal *how, bly_bytes *key, struct block *scratch,
                char *why, size_t nwhy)
{
    static const bly_hasher any = { .id = BLY_HASH_XXH3 };
    uint64_t hash;
    if (how->real && !how->grouped)
        return make_real(false, key, scratch, why, nwhy);
    *key =
        bly_key_normalise(normal_forms(how), *key, scratch->at + scratch->len);
    if (how->fold)
        scratch->len += key->len;
    if (how->grouped && !(key->len && memchr(key->ptr, '\t', key->len))) {
        snprintf(why, nwhy, "no group; expected the group, a tab and the key");
        return false;
    }
    if (how->real)
        return make_real(how->grouped, key, scratch, why, nwhy);
    if (!normal_integer(how) ||
        !bly_hash_as(&any, (bly_keying){ how->type, 0 }, BLY_KEYS_TEXT, key, 1,
                     &hash, NULL))
        return true;
    snprintf(why, nwhy, "%s", bly_error());
    return false;
}
