/*
 * xor.c - the xor filter: fingerprints of a fixed set, in three parts
 *
 * A key of the set has a slot in each of three equal parts of an array; the XOR
 * of the three cells is its fingerprint (peel.h, prints.h). One in 2^bits other
 * keys agrees by chance. floor(1.23 n + 32) slots are enough for peeling to
 * succeed nearly always: one million keys take 1,230,030, which is 9.84 bits
 * per key with fingerprints of 8.
 *
 *     h -> g = h seed;  slot i = i L + scale(g C^i, L)    i = 0, 1, 2
 *
 * Nothing can be added, removed or merged: changing one cell would change the
 * fingerprints of all other keys that use it. fuse.c does the same in fewer
 * slots; this one is here because the literature compares with it.
 *
 * Graf and Lemire, Xor Filters: Faster and Smaller Than Bloom and Cuckoo
 *   Filters, 2020
 */
#include "kinds/prints.h"

static const bly_param xor_params[] = {
    BLY_PRINTS_PARAMS,
    [XOR_MIXING] = BLY_PRINTS_MIXING,
};

static bly_status xor_plan(const bly_want *w, bly_shape *out)
{
    return bly_prints_plan("xor", w, 0, w->opt[XOR_MIXING], out);
}

static bool xor_sane(const bly_shape *s)
{
    return s->p[XOR_MIXING] <= PRINTS_LIGHT && bly_prints_sane(s);
}

const bly_kind bly_kind_xor = {
    .id = 10, /* on disk: never changed, never reused */
    .name = "xor",
    .summary = "fixed sets: fingerprints in 1.23 slots per key; see fuse",
    .params = xor_params,
    .nparams = sizeof xor_params / sizeof xor_params[0],
    .plan = xor_plan,
    .sane = xor_sane,
    BLY_PRINTS_MEMBERS, /* has and build; no add */
};

bool bly_view_of_xor(const bly_filter *f, bly_view_xor *out)
{
    return bly_prints_view(f, &bly_kind_xor, out);
}
