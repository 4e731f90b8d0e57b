/*
 * origin.c - where the hashes of a sketch come from
 */
#include "sketch/origin.h"

#include "core/hash.h"
#include "core/keyings.h"
#include "core/status.h"

bly_origin bly_origin_of(uint64_t seed, const unsigned char *secret)
{
    bly_origin o = { .hasher = { .id = BLY_HASH_XXH3, .seed = seed } };
    if (secret) {
        o.hasher = (bly_hasher){ .id = BLY_HASH_SIPHASH13 };
        bly_secret_words(secret, o.hasher.secret);
        o.secret_check = bly_secret_check(o.hasher.secret);
    }
    return o;
}

bly_status bly_origins_fit(const bly_origin *a, bool none_in_a,
                           const bly_origin *b, bool none_in_b)
{
    if (a->hasher.id != b->hasher.id)
        return bly_fail(BLY_EUNFIT,
                        "one sketch is keyed and the other is not: make both "
                        "with the same key");
    if (a->secret_check != b->secret_check)
        return bly_fail(BLY_EUNFIT, "sketches keyed with different keys do not "
                                    "go together: make both with the same");
    if (a->hasher.seed != b->hasher.seed)
        return bly_fail(BLY_EUNFIT,
                        "sketches with seeds %llu and %llu do not go together: "
                        "make both with the same",
                        (unsigned long long)a->hasher.seed,
                        (unsigned long long)b->hasher.seed);
    if ((none_in_a && !a->keying.type) || (none_in_b && !b->keying.type))
        return BLY_OK;
    return bly_key_types_fit(a->keying, b->keying, "sketch");
}

bly_keying bly_origins_keying(const bly_origin *a, const bly_origin *b)
{
    return a->keying.type ? a->keying : b->keying;
}

void bly_origin_forget(bly_origin *o)
{
    volatile uint64_t *const secret = o->hasher.secret;
    secret[0] = secret[1] = 0;
}
