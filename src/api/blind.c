/*
 * blind.c - keyed filters whose secret comes later, or never
 *
 * A file does not contain the secret of its filter, only a check that tells it
 * from other secrets. A program that keeps filters for others (a replica, a
 * store) can open them blind, pass on changes as hashes, and unlock them when
 * it gets the secret.
 */
#include "core/status.h"
#include "kinds/filter.h"

uint64_t bly_secret_check_of(const bly_filter *f)
{
    return bly_filter_keyed(f) ? f->extra->secret_check : 0;
}

bly_status bly_unlock(bly_filter *f, const unsigned char *secret)
{
    if (!f || !secret)
        return bly_fail_null("f or secret");
    if (!bly_filter_keyed(f))
        return bly_fail(BLY_ESECRET, "not a keyed filter: it has no secret");
    bly_hasher hasher = { .id = BLY_HASH_SIPHASH13 };
    bly_secret_words(secret, hasher.secret);
    if (bly_secret_check(hasher.secret) != f->extra->secret_check)
        return bly_fail(BLY_ESECRET,
                        "keyed with another key, not the one given");
    return bly_filter_rehash(f, &hasher, f->extra->secret_check, false);
}

bly_status bly_set_blind(bly_filter *f, uint64_t secret_check)
{
    const bly_hasher unknown = { .id = BLY_HASH_SIPHASH13 };
    if (!f)
        return bly_fail_null("f");
    if (!secret_check || f->readonly || f->nadded || f->extra->hasher.seed ||
        (f->extra->secret_check && f->extra->secret_check != secret_check))
        return bly_fail(BLY_EINVAL, "only an empty filter without a seed can "
                                    "become one that is keyed");
    return bly_filter_rehash(f, &unknown, secret_check, true);
}
