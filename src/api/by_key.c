/*
 * by_key.c - what only some kinds can do, for keys that are not hashed yet
 *
 * Keys are hashed in pieces, and the hashes handed to the function for hashes.
 * A key that cannot be hashed is met twice: it ends the piece before it, and
 * then begins the next one, where its error is the answer.
 */
#include <stdio.h>
#include <string.h>

#include "api/keying.h"
#include "api/plan.h"
#include "core/status.h"
#include "format/meta.h"
#include "kinds/filter.h"

/* As in filter_api.c, and a multiple of 64. */
#define PIECE_KEYS 512

static bly_status hash_given(const bly_filter *f, const bly_given *given,
                             size_t from, size_t n, uint64_t *hashes,
                             size_t *ndone)
{
    const size_t np = n - from < PIECE_KEYS ? n - from : PIECE_KEYS;
    *ndone = 0;
    if (f->blind)
        return bly_fail(BLY_ESECRET, "the filter is keyed and was opened "
                                     "without its key");
    return bly_hash_given(&f->extra->hasher, bly_filter_keying(f), given, from,
                          np, hashes, ndone);
}

/* ---------------------------------------------------------------- removing */

static bly_status remove_given(bly_filter *f, bly_given given, size_t n,
                               bly_status *each)
{
    uint64_t hashes[PIECE_KEYS];
    char error[1024];
    bly_status first = BLY_OK;
    if (!f || (!given.keys && n))
        return bly_fail_null("f or keys");
    const bly_status able = bly_remove_hashes(f, NULL, 0, NULL);
    if (able)
        return able;
    for (size_t from = 0; from < n;) {
        size_t right;
        bly_status st = hash_given(f, &given, from, n, hashes, &right);
        if (f->blind)
            return st;
        if (right)
            st = bly_remove_hashes(f, hashes, right, each ? each + from : NULL);
        else if (each)
            each[from] = st;
        if (st && !first) {
            first = st;
            snprintf(error, sizeof error, "%s", bly_error());
        }
        from += right ? right : 1;
    }
    return first ? bly_fail(first, "%s", error) : BLY_OK;
}

bly_status bly_remove_keys(bly_filter *f, const bly_bytes *keys, size_t n,
                           bly_status *each)
{
    return remove_given(f, bly_given_keys(keys), n, each);
}

bly_status bly_remove_ints(bly_filter *f, const uint64_t *ints, size_t n,
                           bly_status *each)
{
    return remove_given(f, bly_given_ints(ints), n, each);
}

bly_status bly_remove_as(bly_filter *f, bly_key_type type, const void *keys,
                         size_t n, bly_status *each)
{
    return remove_given(f, bly_given_as(type, keys), n, each);
}

/* -------------------------------------------------------------- increasing */

/* The first keys may decide the type of all keys, as for bly_add_as(). */
static bly_status increase_given(bly_filter *f, bly_given given,
                                 const uint64_t *by, size_t n, size_t *ndone)
{
    uint64_t hashes[PIECE_KEYS];
    size_t done = 0;
    if (ndone)
        *ndone = 0;
    if (!f || (!given.keys && n) || (!by && n))
        return bly_fail_null("f or keys or by");
    bly_status st = bly_increase_hashes(f, NULL, NULL, 0, NULL);
    const bool first = !st && n && given.type && bly_keying_open(f);
    if (first)
        st = bly_keying_label(f, given.type);
    while (!st && done < n) {
        size_t right, added = 0;
        st = hash_given(f, &given, done, n, hashes, &right);
        if (right)
            st = bly_increase_hashes(f, hashes, by + done, right, &added);
        done += added;
    }
    if (first && !done)
        (void)bly_keying_label(f, BLY_KEYS_UNKNOWN);
    if (ndone)
        *ndone = done;
    return st;
}

bly_status bly_increase(bly_filter *f, const void *key, size_t len, uint64_t by)
{
    const bly_bytes one = { key, len };
    if (!f || (!key && len))
        return bly_fail_null("f or key");
    return increase_given(f, bly_given_keys(&one), &by, 1, NULL);
}

bly_status bly_increase_keys(bly_filter *f, const bly_bytes *keys,
                             const uint64_t *by, size_t n, size_t *ndone)
{
    return increase_given(f, bly_given_keys(keys), by, n, ndone);
}

bly_status bly_increase_ints(bly_filter *f, const uint64_t *ints,
                             const uint64_t *by, size_t n, size_t *ndone)
{
    return increase_given(f, bly_given_ints(ints), by, n, ndone);
}

bly_status bly_increase_as(bly_filter *f, bly_key_type type, const void *keys,
                           const uint64_t *by, size_t n, size_t *ndone)
{
    return increase_given(f, bly_given_as(type, keys), by, n, ndone);
}

/* ---------------------------------------------------------------- counting */

static bly_status count_given(const bly_filter *f, bly_given given, size_t n,
                              uint64_t *counts)
{
    uint64_t hashes[PIECE_KEYS];
    if (!f || (!given.keys && n) || (!counts && n))
        return bly_fail_null("f or keys or counts");
    bly_status st = bly_count_hashes(f, NULL, 0, NULL);
    for (size_t from = 0; from < n && !st; from += PIECE_KEYS) {
        size_t right;
        st = hash_given(f, &given, from, n, hashes, &right);
        if (!st)
            st = bly_count_hashes(f, hashes, right, counts + from);
    }
    return st;
}

bly_status bly_count(const bly_filter *f, const void *key, size_t len,
                     uint64_t *count)
{
    const bly_bytes one = { key, len };
    if (!f || (!key && len) || !count)
        return bly_fail_null("f or key or count");
    return count_given(f, bly_given_keys(&one), 1, count);
}

bly_status bly_count_keys(const bly_filter *f, const bly_bytes *keys, size_t n,
                          uint64_t *counts)
{
    return count_given(f, bly_given_keys(keys), n, counts);
}

bly_status bly_count_ints(const bly_filter *f, const uint64_t *ints, size_t n,
                          uint64_t *counts)
{
    return count_given(f, bly_given_ints(ints), n, counts);
}

bly_status bly_count_as(const bly_filter *f, bly_key_type type,
                        const void *keys, size_t n, uint64_t *counts)
{
    return count_given(f, bly_given_as(type, keys), n, counts);
}

/* ------------------------------------------------------------------ values */

static bly_status get_given(const bly_filter *f, bly_given given, size_t n,
                            uint64_t *values, uint64_t *present)
{
    uint64_t hashes[PIECE_KEYS];
    if (!f || (!given.keys && n) || (!values && n) || (!present && n))
        return bly_fail_null("f or keys or values or present");
    bly_status st = bly_get_hashes(f, NULL, 0, NULL, NULL);
    for (size_t from = 0; from < n && !st; from += PIECE_KEYS) {
        size_t right;
        st = hash_given(f, &given, from, n, hashes, &right);
        if (!st)
            st = bly_get_hashes(f, hashes, right, values + from,
                                present + from / 64);
    }
    return st;
}

bly_status bly_get_value(const bly_filter *f, const void *key, size_t len,
                         uint64_t *value)
{
    const bly_bytes one = { key, len };
    uint64_t found, present;
    if (!f || (!key && len) || !value)
        return bly_fail_null("f or key or value");
    const bly_status st =
        get_given(f, bly_given_keys(&one), 1, &found, &present);
    if (st)
        return st;
    if (!present)
        return bly_fail(BLY_EABSENT, "%s", bly_status_text(BLY_EABSENT));
    *value = found;
    return BLY_OK;
}

bly_status bly_get_keys(const bly_filter *f, const bly_bytes *keys, size_t n,
                        uint64_t *values, uint64_t *present)
{
    return get_given(f, bly_given_keys(keys), n, values, present);
}

bly_status bly_get_ints(const bly_filter *f, const uint64_t *ints, size_t n,
                        uint64_t *values, uint64_t *present)
{
    return get_given(f, bly_given_ints(ints), n, values, present);
}

bly_status bly_get_as(const bly_filter *f, bly_key_type type, const void *keys,
                      size_t n, uint64_t *values, uint64_t *present)
{
    return get_given(f, bly_given_as(type, keys), n, values, present);
}

bly_status bly_set_value(bly_filter *f, const void *key, size_t len,
                         uint64_t value)
{
    const bly_bytes one = { key, len };
    const bly_given given = bly_given_keys(&one);
    uint64_t hash;
    size_t right;
    if (!f || (!key && len))
        return bly_fail_null("f or key");
    if (!f->kind->set)
        return bly_fail_ability(f->kind, BLY_ABILITY_SET);
    const bly_status st = hash_given(f, &given, 0, 1, &hash, &right);
    return st ? st : bly_set_hash(f, hash, value);
}
