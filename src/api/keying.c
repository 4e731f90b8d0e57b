/*
 * keying.c - converting keys of one type to another
 *
 * What a filter holds is decided when it is built: text, bytes or integers;
 * text may be folded and trimmed. A query has a key of some type. It is
 * converted to the key that would have been added, or there is an error: a hash
 * of anything else would give a wrong "no".
 *
 * For each batch it is decided once what has to be done with each of its keys.
 * Usually that is nothing, and the batch is hashed as it is.
 */
#include <stdlib.h>
#include <string.h>

#include "api/keying.h"
#include "core/case.h"
#include "core/status.h"
#include "format/meta.h"
#include "kinds/filter.h"

/* ------------------------------------------------------------------- text */

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bly_bytes trim(bly_bytes key)
{
    const char *p = key.ptr;
    size_t n = key.len;
    while (n && is_blank(p[n - 1]))
        n--;
    for (; n && is_blank(*p); n--)
        p++;
    return (bly_bytes){ p, n };
}

bly_bytes bly_key_normalise(uint32_t forms, bly_bytes key, char *room)
{
    if (forms & BLY_KEYS_NO_CR && key.len &&
        ((const char *)key.ptr)[key.len - 1] == '\r')
        key.len--;
    if (forms & BLY_KEYS_TRIMMED)
        key = trim(key);
    if (!(forms & BLY_KEYS_FOLDED))
        return key;
    return (bly_bytes){ room, bly_fold_text(key.ptr, key.len, room) };
}

/* Nearly all keys fit here. */
#define SHORT_BYTES 1024

static bly_status hash_texts(const bly_hasher *hs, uint32_t forms,
                             const bly_bytes *keys, size_t n, uint64_t *hashes,
                             size_t *ndone)
{
    char room[BLY_KEY_ROOM(SHORT_BYTES)];
    if (!forms) {
        bly_hash_keys(hs, keys, n, hashes);
        *ndone = n;
    }
    for (; *ndone < n; ++*ndone) {
        const bly_bytes *const key = &keys[*ndone];
        const bool long_key = forms & BLY_KEYS_FOLDED && key->len > SHORT_BYTES;
        char *const to = long_key ? malloc(BLY_KEY_ROOM(key->len)) : room;
        if (!to)
            return bly_fail(BLY_ENOMEM, "out of memory");
        const bly_bytes text = bly_key_normalise(forms, *key, to);
        hashes[*ndone] = bly_hash(hs, text.ptr, text.len);
        if (long_key)
            free(to);
    }
    return BLY_OK;
}

/* --------------------------------------------------------------- integers */

#define RIGHT_INT64 "a whole number from -2^63 to 2^63 - 1"
#define RIGHT_UINT64 "a whole number from 0 to 2^64 - 1"

/* What is shown of a key in a message. */
#define SHOWN_BYTES 40

static bly_status not_an_integer(bly_bytes key, bly_key_type to)
{
    char shown[SHOWN_BYTES + 1];
    const size_t n = key.len < SHOWN_BYTES ? key.len : SHOWN_BYTES;
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = ((const unsigned char *)key.ptr)[i];
        shown[i] = c < 0x20 || c >= 0x7f ? '?' : (char)c;
    }
    shown[n] = '\0';
    return bly_fail(BLY_EINVAL,
                    "'%s%s' is not a key of this filter, which holds %s "
                    "integers; expected %s",
                    shown, key.len > n ? "..." : "", bly_key_type_name(to),
                    to == BLY_KEYS_INT64 ? RIGHT_INT64 : RIGHT_UINT64);
}

/* Does an integer, given by its size and its sign, exist in type `to`? *out
 * becomes the 64 bits of it. */
static bool fits_type(uint64_t size, bool negative, bly_key_type to,
                      uint64_t *out)
{
    const uint64_t half = UINT64_C(1) << 63;
    *out = negative ? -size : size;
    if (to == BLY_KEYS_UINT64)
        return !negative || !size;
    return negative ? size <= half : size < half;
}

static bool parse_integer(bly_bytes text, bly_key_type to, uint64_t *out)
{
    const bly_bytes t = trim(text);
    const char *const p = t.ptr;
    const bool sign = t.len && (*p == '-' || *p == '+');
    uint64_t size = 0;
    if (t.len == sign)
        return false;
    for (size_t i = sign; i < t.len; i++) {
        const unsigned digit = (unsigned)(p[i] - '0');
        if (digit > 9 || size > (UINT64_MAX - digit) / 10)
            return false;
        size = 10 * size + digit;
    }
    return fits_type(size, sign && *p == '-', to, out);
}

static bly_status parse_integers(bly_key_type to, const bly_bytes *keys,
                                 size_t n, uint64_t *ints, size_t *ndone)
{
    for (; *ndone < n; ++*ndone)
        if (!parse_integer(keys[*ndone], to, &ints[*ndone]))
            return not_an_integer(keys[*ndone], to);
    return BLY_OK;
}

/* Write the decimal text of a key backwards from `end`; returns where it
 * begins. */
static char *print_integer(uint64_t key, bool is_signed, char *end)
{
    const bool negative = is_signed && key >> 63;
    uint64_t left = negative ? -key : key;
    do
        *--end = (char)('0' + left % 10);
    while (left /= 10);
    if (negative)
        *--end = '-';
    return end;
}

#define INT_DIGITS 20 /* with the sign */

static void hash_printed(const bly_hasher *hs, bool is_signed,
                         const uint64_t *keys, size_t n, uint64_t *hashes)
{
    char room[INT_DIGITS], *const end = room + sizeof room;
    for (size_t i = 0; i < n; i++) {
        const char *const text = print_integer(keys[i], is_signed, end);
        hashes[i] = bly_hash(hs, text, (size_t)(end - text));
    }
}

/* Convert between signed and unsigned integers: those with the highest bit set
 * have no counterpart. */
static bly_status change_sign(bly_key_type to, const uint64_t *keys, size_t n,
                              uint64_t *ints, size_t *ndone)
{
    char room[INT_DIGITS], *const end = room + sizeof room;
    for (; *ndone < n && !(keys[*ndone] >> 63); ++*ndone)
        ints[*ndone] = keys[*ndone];
    if (*ndone == n)
        return BLY_OK;
    const char *const text =
        print_integer(keys[*ndone], to == BLY_KEYS_UINT64, end);
    return not_an_integer((bly_bytes){ text, (size_t)(end - text) }, to);
}

/* --------------------------------------------------------------- any type */

static bool is_integer(bly_key_type type)
{
    return type == BLY_KEYS_INT64 || type == BLY_KEYS_UINT64;
}

bly_status bly_integers_as(bly_key_type to, bly_key_type from, const void *keys,
                           size_t n, uint64_t *ints, size_t *ndone)
{
    *ndone = 0;
    if (from == BLY_KEYS_BYTES && n)
        return bly_fail(BLY_EINVAL,
                        "the keys of this filter are %s integers, not bytes; "
                        "expected an integer, or its decimal text",
                        bly_key_type_name(to));
    if (!is_integer(from))
        return parse_integers(to, keys, n, ints, ndone);
    if (to != from)
        return change_sign(to, keys, n, ints, ndone);
    if (n)
        memcpy(ints, keys, n * sizeof *ints);
    *ndone = n;
    return BLY_OK;
}

static bly_status hash_integers(const bly_hasher *hs, bly_key_type to,
                                bly_key_type from, const uint64_t *keys,
                                size_t n, uint64_t *hashes, size_t *ndone)
{
    if (to == BLY_KEYS_BYTES)
        return bly_fail(BLY_EINVAL,
                        "the keys of this filter are bytes, not integers; "
                        "expected the bytes that were added");
    if (to == BLY_KEYS_TEXT)
        hash_printed(hs, from == BLY_KEYS_INT64, keys, n, hashes);
    else
        bly_hash_ints(hs, keys, n, hashes);
    *ndone = n;
    return BLY_OK;
}

bly_status bly_hash_as(const bly_hasher *hs, bly_keying to, bly_key_type from,
                       const void *keys, size_t n, uint64_t *hashes,
                       size_t *ndone)
{
    size_t own;
    if (!ndone)
        ndone = &own;
    *ndone = 0;
    if (!hs || (!keys && n) || (!hashes && n))
        return bly_fail_null("hs or keys or hashes");
    if (from != BLY_KEYS_TEXT && from != BLY_KEYS_BYTES && !is_integer(from))
        return bly_fail(BLY_EINVAL, "keys are given as text, bytes, int64 or "
                                    "uint64");
    if (is_integer(to.type) && to.type != from) {
        const bly_status st =
            bly_integers_as(to.type, from, keys, n, hashes, ndone);
        bly_hash_ints(hs, hashes, *ndone, hashes);
        return st;
    }
    if (is_integer(from))
        return hash_integers(hs, to.type, from, keys, n, hashes, ndone);
    return hash_texts(hs, to.type == BLY_KEYS_TEXT ? to.forms : 0, keys, n,
                      hashes, ndone);
}

/* ---------------------------------------------------------------- filters */

bly_status bly_keying_label(bly_filter *f, bly_key_type type)
{
    return bly_set_keying(f, (bly_keying){ type, 0 });
}

/* The first keys of f, whose type is not set yet, are of this type: hash them
 * as if its spec had said so. Not if there may be keys that were never counted.
 */
static bly_status hash_follows(bly_filter *f, bly_key_type type)
{
    bly_hasher hasher = f->extra->hasher;
    if (!is_integer(type) || hasher.id != BLY_HASH_XXH3 || f->written ||
        f->format)
        return BLY_OK;
    hasher.id = BLY_HASH_FOLDED;
    return bly_filter_rehash(f, &hasher, 0, false);
}

static void hash_returns(bly_filter *f, bly_hasher was)
{
    if (f->extra->hasher.id != was.id) /* there is room for it */
        (void)bly_filter_rehash(f, &was, 0, false);
}

bly_status bly_keying_given(bly_filter **f, bly_keying keying)
{
    const bly_status st = keying.type ? bly_set_keying(*f, keying) : BLY_OK;
    if (st) {
        bly_free(*f);
        *f = NULL;
    }
    return st;
}

/* As in filter_api.c: a multiple of 64. */
#define PIECE_KEYS 512

const void *bly_keys_from(bly_key_type type, const void *keys, size_t i)
{
    return type == BLY_KEYS_TEXT || type == BLY_KEYS_BYTES
               ? (const void *)((const bly_bytes *)keys + i)
               : (const void *)((const uint64_t *)keys + i);
}

/* The hashes of a piece of n keys. BLY_ESECRET where there can be none. */
static bly_status hash_piece_as(const bly_filter *f, bly_key_type type,
                                const void *keys, size_t from, size_t n,
                                uint64_t *hashes, size_t *ndone)
{
    const size_t np = n - from < PIECE_KEYS ? n - from : PIECE_KEYS;
    *ndone = 0;
    if (f->blind)
        return bly_fail(BLY_ESECRET, "the filter is keyed and was opened "
                                     "without its key");
    return bly_hash_as(&f->extra->hasher, bly_filter_keying(f), type,
                       bly_keys_from(type, keys, from), np, hashes, ndone);
}

#define NO_SIGN_KNOWN                                                       \
    "the keys of this filter are text, and an integer above 2^63 may have " \
    "a sign: use the function whose name ends in _as"

bly_status bly_hash_given(const bly_hasher *hs, bly_keying to,
                          const bly_given *given, size_t from, size_t n,
                          uint64_t *hashes, size_t *ndone)
{
    const void *const keys = bly_keys_from(
        given->type ? given->type : BLY_KEYS_BYTES, given->keys, from);
    const uint64_t *const ints = keys;
    size_t right = 0;
    if (!given->type) {
        bly_hash_keys(hs, keys, n, hashes);
        *ndone = n;
        return BLY_OK;
    }
    if (!given->unsigned_or_not)
        return bly_hash_as(hs, to, given->type, keys, n, hashes, ndone);
    if (to.type != BLY_KEYS_TEXT) {
        bly_hash_ints(hs, ints, n, hashes);
        *ndone = n;
        return BLY_OK;
    }
    while (right < n && !(ints[right] >> 63))
        right++;
    const bly_status st =
        bly_hash_as(hs, to, BLY_KEYS_UINT64, ints, right, hashes, ndone);
    return st || right == n ? st : bly_fail(BLY_ERANGE, NO_SIGN_KNOWN);
}

bly_status bly_add_as(bly_filter *f, bly_key_type type, const void *keys,
                      size_t n, uint64_t *fresh, size_t *ndone)
{
    uint64_t hashes[PIECE_KEYS];
    size_t done = 0;
    if (!f || (!keys && n))
        return bly_fail_null("f or keys");
    if (fresh && n)
        memset(fresh, 0, BLY_BITMAP_WORDS(n) * sizeof *fresh);
    const bool first = n && bly_keying_open(f);
    const bly_hasher was = f->extra->hasher;
    bly_status st = first ? hash_follows(f, type) : BLY_OK;
    if (!st && first)
        st = bly_keying_label(f, type);
    while (!st && done < n) {
        size_t right, added;
        const bly_status wrong =
            hash_piece_as(f, type, keys, done, n, hashes, &right);
        st = bly_add_hashes(f, hashes, right, fresh ? fresh + done / 64 : NULL,
                            &added);
        done += added;
        st = st ? st : wrong;
    }
    if (first && !done) {
        (void)bly_keying_label(f, BLY_KEYS_UNKNOWN);
        hash_returns(f, was);
    }
    if (ndone)
        *ndone = done;
    return st;
}

/* Integers in a filter of such integers need no conversion, and kinds that hash
 * them in their walk are faster. */
static bool asked_as_it_is(const bly_filter *f, bly_key_type type)
{
    return (type == BLY_KEYS_INT64 || type == BLY_KEYS_UINT64) &&
           bly_filter_keying(f).type == type && bly_hasher_of(f);
}

bly_status bly_has_as(const bly_filter *f, bly_key_type type, const void *keys,
                      size_t n, uint64_t *maybe)
{
    uint64_t hashes[PIECE_KEYS];
    bly_status st = BLY_OK;
    size_t from = 0;
    if (!f || (!keys && n) || (!maybe && n))
        return bly_fail_null("f or keys or maybe");
    if (asked_as_it_is(f, type)) {
        bly_has_ints(f, keys, n, maybe);
        from = n;
    }
    for (; from < n && !st; from += PIECE_KEYS) {
        size_t right;
        st = hash_piece_as(f, type, keys, from, n, hashes, &right);
        if (!st)
            bly_has_hashes(f, hashes, right, maybe + from / 64);
    }
    if (!st)
        st = bly_damage(f);
    if (st)
        bly_all_maybe(n, maybe);
    return st;
}

/* Integers of which nobody says whether they have a sign, as decimal text. */

bly_status bly_add_int_texts(bly_filter *f, const uint64_t *ints, size_t n,
                             uint64_t *fresh, size_t *ndone)
{
    size_t right = 0;
    while (right < n && !(ints[right] >> 63))
        right++;
    const bly_status st =
        bly_add_as(f, BLY_KEYS_UINT64, ints, right, fresh, ndone);
    for (size_t i = BLY_BITMAP_WORDS(right); fresh && i < BLY_BITMAP_WORDS(n);
         i++)
        fresh[i] = 0; /* those behind the first that is not added */
    if (st || right == n)
        return st;
    return bly_fail(BLY_ERANGE, NO_SIGN_KNOWN);
}

void bly_has_int_texts(const bly_filter *f, const uint64_t *ints, size_t n,
                       uint64_t *maybe)
{
    if (bly_has_as(f, BLY_KEYS_UINT64, ints, n, maybe))
        return; /* then all are maybe */
    for (size_t i = 0; i < n; i++)
        maybe[i / 64] |= (ints[i] >> 63) << i % 64;
}
