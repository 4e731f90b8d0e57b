/*
 * fuse.c - the binary fuse filter: fingerprints of a fixed set, in a long row
 *
 * A key of the set has a slot in each of three (or four) neighbouring segments
 * of a long row; the XOR of the cells is its fingerprint (peel.h, prints.h).
 * One in 2^bits other keys agrees by chance.
 *
 *     segments  | 0 | 1 | 2 | 3 | 4 | 5 | ...          L slots each
 *     key x       *   *   *
 *     key y               *   *   *
 *
 *     h -> g = h seed;  slot 0 = scale(g, windows L)
 *     slot i = slot 0 + i L, its low bits changed by bits of g C
 *
 * Slots at the ends of the row have fewer keys, so peeling begins there and
 * works inwards. It succeeds with fewer slots than a layout in which all slots
 * are alike. With three slots per key, L = 2^floor(ln n / ln 3.33 + 2.25), at
 * most 2^18, and n max(1.125, 0.875 + 0.25 ln 10^6 / ln n) slots in all,
 * rounded up to whole segments; with four, L = 2^floor(ln n / ln 2.91 - 0.5)
 * and n max(1.075, 0.77 + 0.305 ln 600000 / ln n). One million keys take
 * 1,130,496 slots, 9.04 bits per key with fingerprints of 8.
 *
 * Nothing can be added, removed or merged: changing one cell would change the
 * fingerprints of all other keys that use it.
 *
 * Graf and Lemire, Binary Fuse Filters: Fast and Smaller Than Xor Filters, 2022
 */
#include "kinds/prints.h"

static const bly_param fuse_params[] = {
    BLY_PRINTS_PARAMS,
    [PRINTS_ARITY] = BLY_PARAM("arity", BLY_UINT, .settable = true, .def = 3,
                               .min = 3, .max = 4, .help = "slots of a key"),
    [FUSE_MIXING] = BLY_PRINTS_MIXING,
};

static bly_status fuse_plan(const bly_want *w, bly_shape *out)
{
    return bly_prints_plan("fuse", w, w->opt[PRINTS_ARITY], w->opt[FUSE_MIXING],
                           out);
}

static bool fuse_sane(const bly_shape *s)
{
    return (s->p[PRINTS_ARITY] == 3 || s->p[PRINTS_ARITY] == 4) &&
           s->p[FUSE_MIXING] <= PRINTS_LIGHT && bly_prints_sane(s);
}

const bly_kind bly_kind_fuse = {
    .id = 11, /* on disk: never changed, never reused */
    .name = "fuse",
    .summary =
        "fixed sets: fingerprints in 1.13 slots per key, three cache lines",
    .params = fuse_params,
    .nparams = sizeof fuse_params / sizeof fuse_params[0],
    .plan = fuse_plan,
    .sane = fuse_sane,
    BLY_PRINTS_MEMBERS, /* has and build; no add */
};

bool bly_view_of_fuse(const bly_filter *f, bly_view_fuse *out)
{
    return bly_prints_view(f, &bly_kind_fuse, out);
}
