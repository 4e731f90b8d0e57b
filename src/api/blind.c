/*
 * blind.c - keyed filters whose secret comes later, or never
 *
 * A file does not have the secret of its filter, only what tells it from other
 * secrets. Whoever keeps filters for others (a replica, a store) can open them
 * blind, hand on what changes as hashes, and unlock them when a secret is
 * there.
 */
#include "core/status.h"
#include "kinds/filter.h"

uint64_t bly_secret_check_of(const bly_filter *f)
{
    return f->secret_check;
}

/* Layers have the hash of their filter. */
static void set_hasher(bly_filter *f, const bly_hasher *hasher, uint64_t check,
                       bool blind)
{
    f->hasher = *hasher;
    f->secret_check = check;
    f->blind = blind;
    for (uint32_t i = 0; i < f->nlayers; i++)
        set_hasher(f->layer[i], hasher, check, blind);
    bly_filter_ready(f);
}

bly_status bly_unlock(bly_filter *f, const unsigned char *secret)
{
    if (!f || !secret)
        return bly_fail_null("f or secret");
    if (!f->secret_check)
        return bly_fail(BLY_ESECRET, "not a keyed filter: it has no secret");
    bly_hasher hasher = { .id = BLY_HASH_SIPHASH13 };
    bly_secret_words(secret, hasher.secret);
    if (bly_secret_check(hasher.secret) != f->secret_check)
        return bly_fail(BLY_ESECRET,
                        "keyed with another key, not the one given");
    set_hasher(f, &hasher, f->secret_check, false);
    return BLY_OK;
}

bly_status bly_set_blind(bly_filter *f, uint64_t secret_check)
{
    const bly_hasher unknown = { .id = BLY_HASH_SIPHASH13 };
    if (!f)
        return bly_fail_null("f");
    if (!secret_check || f->readonly || f->nadded || f->hasher.seed ||
        (f->secret_check && f->secret_check != secret_check))
        return bly_fail(BLY_EINVAL, "only an empty filter without a seed can "
                                    "become one that is keyed");
    set_hasher(f, &unknown, secret_check, true);
    return BLY_OK;
}
