/*
 * attenuated.c - how far away a key is
 *
 * A node of a network has keys, and tells its neighbours what can be reached
 * through it: not only its own keys, but those of its neighbours, and theirs.
 * The filter is an array of d plain filters of one shape, level j for the keys
 * that are j hops away [1]:
 *
 *     level 0   keys that were added here
 *     level 1   level 0 of the neighbours
 *     ...                                   merge: level j + 1 |= their level j
 *     level d-1                             what was there falls off the end
 *
 * A query returns the lowest level that says "maybe": the distance. A node that
 * has such an array for each of its links knows through which link a key is
 * nearest. Let A(v,u) be what v tells u, and L(v) the keys of v itself:
 *
 *     A(v,u) = L(v) at level 0, merged with A(w,v) for all neighbours w but u
 *
 * Then level j of A(v,u) is the filter of all keys that are exactly j hops
 * behind v, over paths that do not turn back at once. In a tree this holds bit
 * for bit; in a graph with loops the same bits repeat. After a change of L(v)
 * only the arrays of nodes fewer than d hops away change, and each at one
 * level.
 *
 * Size. There are more keys further away: with n keys per node and `degree`
 * links onwards, level j holds n degree^j of them. All levels have the same
 * shape, since they are merged into each other, so they are planned for the
 * deepest one. The rate that is asked for is that of the array as a whole when
 * all levels are full,
 *
 *     1 - (1 - f_0) (1 - f_1) ... (1 - f_(d-1))      f_j = rate of level j
 *
 * The deepest level has the largest share of it if degree is above 1. A new
 * filter, with nothing but its own keys, has the lower rate f_0. 1000 keys per
 * node, degree 3 and 4 levels at 1 % take four filters for 27,000 keys, 126.5
 * KiB.
 *
 * An answer j is wrong with probability f_j, so a match near by is worth more
 * than one far away: its weight is 1 - f_j. `info` gives the rate of each level
 * from its contents.
 *
 * There is no removal: levels are bits. A node (src/node) counts its own keys,
 * and announces what remains. There is no intersection.
 *
 * [1] Rhea and Kubiatowicz, Probabilistic Location and Routing, 2002
 */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "core/bits.h"
#include "core/maths.h"
#include "core/status.h"
#include "engine/bit_count.h"
#include "kinds/attenuated.h"
#include "kinds/bitset.h"

#define ATTENUATED_MIN_DEPTH 2 /* with one level nothing comes from others */
#define ATTENUATED_MAX_DEPTH BLY_ATTENUATED_MAX_DEPTH
#define ATTENUATED_MAX_DEGREE 1000
#define ATTENUATED_MAX_ITEMS 0x1p48 /* of a level: as plan.c has it for all */

enum {
    ATTENUATED_DEPTH,
    ATTENUATED_DEGREE,
    ATTENUATED_LAYER,
    ATTENUATED_BITS,
    ATTENUATED_K
};

static const bly_kind *const attenuated_kinds[] = { &bly_kind_classic,
                                                    &bly_kind_blocked };

static const bly_param attenuated_params[] = {
    [ATTENUATED_DEPTH] =
        BLY_PARAM("depth", BLY_UINT, .settable = true, .def = 4,
                  .min = ATTENUATED_MIN_DEPTH, .max = ATTENUATED_MAX_DEPTH,
                  .help = "levels: distances from 0 to depth - 1"),
    [ATTENUATED_DEGREE] = BLY_PARAM(
        "degree", BLY_REAL, .settable = true, .planning = true, .def = 1,
        .min = 1, .max = ATTENUATED_MAX_DEGREE,
        .help = "keys of a level over those of the one before, for the size"),
    [ATTENUATED_LAYER] =
        BLY_PARAM("layer", BLY_CHOICE, .settable = true, .max = 1,
                  .choices = BLY_WORDS("classic", "blocked"),
                  .help = "kind of the levels"),
    [ATTENUATED_BITS] = BLY_PARAM("level_bits", BLY_UINT, .min = 1,
                                  .max = 0x1p48, .help = "bits of a level (m)"),
    [ATTENUATED_K] = BLY_PARAM("k", BLY_UINT, .min = 1, .max = 255,
                               .help = "bits that a key sets in a level"),
};

/* ------------------------------------------------------------------ shapes */

static const bly_kind *attenuated_layer_kind(const bly_shape *s)
{
    return attenuated_kinds[s->p[ATTENUATED_LAYER]];
}

/* The shape of every level. */
static bly_status attenuated_level(const bly_shape *s, bly_shape *out)
{
    const bly_kind *const kind = attenuated_layer_kind(s);
    /* The shape keeps bits and k only; from these the kind plans the same level
     * again, whatever the number of items. */
    bly_want w = { .items = 1, .bits = s->p[ATTENUATED_BITS] };
    const bly_status st = bly_want_set(kind, &w, "k", s->p[ATTENUATED_K]);
    return st ? st : kind->plan(&w, out);
}

static bool attenuated_sane(const bly_shape *s)
{
    bly_shape level;
    /* All bytes are in the levels. A shape is sane if planning a level from it
     * gives that very level. */
    return s->nbytes == 0 && s->p[ATTENUATED_DEPTH] >= ATTENUATED_MIN_DEPTH &&
           s->p[ATTENUATED_DEPTH] <= ATTENUATED_MAX_DEPTH &&
           s->p[ATTENUATED_LAYER] <= 1 && s->p[ATTENUATED_BITS] >= 1 &&
           s->p[ATTENUATED_BITS] <= UINT64_C(1) << 48 &&
           s->p[ATTENUATED_K] >= 1 && s->p[ATTENUATED_K] <= 255 &&
           !attenuated_level(s, &level) &&
           bly_shape_bits(attenuated_layer_kind(s), &level) ==
               s->p[ATTENUATED_BITS];
}

bly_status bly_attenuated_shape(uint64_t depth, uint64_t m, uint64_t k,
                                bly_shape *out)
{
    const bly_shape s = { .p = { [ATTENUATED_DEPTH] = depth,
                                 [ATTENUATED_BITS] = m,
                                 [ATTENUATED_K] = k } };
    if (!attenuated_sane(&s))
        return bly_fail(BLY_EINVAL,
                        "%llu levels of %llu bits with k = %llu cannot be",
                        (unsigned long long)depth, (unsigned long long)m,
                        (unsigned long long)k);
    *out = s;
    return BLY_OK;
}

/* Keys of level j of a network with n at each node. */
static double attenuated_items(const bly_want *w, uint64_t j)
{
    return (double)w->items *
           pow(bly_want_real(w, ATTENUATED_DEGREE), (double)j);
}

/* The rate of all levels together when they are full. */
static double attenuated_bound(const bly_kind *kind, const bly_shape *level,
                               const bly_want *w)
{
    double pass = 0; /* log of the chance that no level is wrong */
    for (uint64_t j = 0; j < w->opt[ATTENUATED_DEPTH]; j++)
        pass += log1p(-kind->rate(level, attenuated_items(w, j)));
    return -expm1(pass);
}

/* A level that keeps the whole filter at w->fpr. It is planned for the deepest
 * level, whose rate must be lower than that by the share of the others, and by
 * what rounding costs. Each step lowers it in proportion, and a little more,
 * since steps in proportion alone could stop just short. In a level of some
 * hundred bits, so little may not even be worth one more bit: then the steps
 * grow. */
static bly_status attenuated_fit(const bly_kind *kind, const bly_want *w,
                                 bly_want *one, bly_shape *out)
{
    double more = 0.0001;
    one->fpr = w->fpr;
    for (int i = 0; i < 48; i++) {
        const bly_status st = kind->plan(one, out);
        if (st)
            return st;
        const double bound = attenuated_bound(kind, out, w);
        if (bound <= w->fpr)
            return BLY_OK;
        if (i >= 32)
            more = fmin(2 * more, 0.5);
        one->fpr *= w->fpr / bound * (1 - more);
    }
    return bly_fail(BLY_ERANGE, "no level is good enough for a rate of %g",
                    w->fpr);
}

static bly_status attenuated_plan(const bly_want *w, bly_shape *out)
{
    const bly_kind *const kind = attenuated_kinds[w->opt[ATTENUATED_LAYER]];
    const uint64_t depth = w->opt[ATTENUATED_DEPTH];
    const double deepest = attenuated_items(w, depth - 1);
    bly_shape level;
    if (!(deepest <= ATTENUATED_MAX_ITEMS))
        return bly_fail(BLY_ERANGE,
                        "the deepest level would hold %.3g keys; the limit is "
                        "2^48: ask for fewer items, or a smaller depth or "
                        "degree",
                        deepest);
    if (w->bits && w->bits < depth)
        return bly_fail(BLY_EINVAL, "%llu levels need more than %llu bits",
                        (unsigned long long)depth, (unsigned long long)w->bits);
    bly_want one = { .items = (uint64_t)ceil(deepest),
                     .bits = w->bits / depth };
    uint64_t k;
    bly_status st = w->bits ? kind->plan(&one, &level)
                            : attenuated_fit(kind, w, &one, &level);
    if (!st)
        st = bly_shape_get(kind, &level, "k", &k);
    if (st)
        return st;
    *out = (bly_shape){
        .p = { [ATTENUATED_DEPTH] = depth,
               [ATTENUATED_LAYER] = w->opt[ATTENUATED_LAYER],
               [ATTENUATED_BITS] = bly_shape_bits(kind, &level),
               [ATTENUATED_K] = k },
    };
    return BLY_OK;
}

/* The rate with n keys of its own, and nothing merged yet. */
static double attenuated_rate(const bly_shape *s, double n)
{
    bly_shape level;
    return attenuated_level(s, &level)
               ? 1
               : attenuated_layer_kind(s)->rate(&level, n);
}

static uint64_t attenuated_bits(const bly_shape *s)
{
    return s->p[ATTENUATED_DEPTH] * s->p[ATTENUATED_BITS];
}

static const char *const attenuated_rate_names[ATTENUATED_MAX_DEPTH] = {
    "fpr_level_0",  "fpr_level_1",  "fpr_level_2",  "fpr_level_3",
    "fpr_level_4",  "fpr_level_5",  "fpr_level_6",  "fpr_level_7",
    "fpr_level_8",  "fpr_level_9",  "fpr_level_10", "fpr_level_11",
    "fpr_level_12", "fpr_level_13", "fpr_level_14", "fpr_level_15",
};

/* Facts about the plan. What a filter contains by now is left to stat(), which
 * reads it. */
static void attenuated_describe(const bly_shape *s, const bly_want *w,
                                const bly_filter *f, bly_facts *out)
{
    const bly_kind *const kind = attenuated_layer_kind(s);
    const uint64_t depth = s->p[ATTENUATED_DEPTH];
    bly_shape level;
    (void)f;
    if (!w || attenuated_level(s, &level))
        return;
    bly_fact_real(out, "deepest_items", attenuated_items(w, depth - 1));
    bly_fact_real(out, "fpr_bound", attenuated_bound(kind, &level, w));
    for (uint64_t j = 0; j < depth; j++)
        bly_fact_real(out, attenuated_rate_names[j],
                      kind->rate(&level, attenuated_items(w, j)));
}

/* ------------------------------------------------------------ life */

static bly_status attenuated_start(bly_filter *f)
{
    const bly_kind *const kind = attenuated_layer_kind(&f->shape);
    const uint64_t depth = f->shape.p[ATTENUATED_DEPTH];
    bly_setting set = bly_setting_of(f);
    bly_shape level;
    bly_status st = attenuated_level(&f->shape, &level);
    if (!st && f->extra->max_bytes &&
        level.nbytes > f->extra->max_bytes / depth)
        st = bly_fail(BLY_ERANGE,
                      "the filter needs %llu bytes, the limit is %llu",
                      (unsigned long long)(depth * level.nbytes),
                      (unsigned long long)f->extra->max_bytes);
    set.fpr = NAN; /* how full a level becomes depends on the network */
    /* The limit was checked for all levels together. */
    set.max_bytes = 0;
    for (uint64_t j = 0; j < depth && !st; j++) {
        bly_filter *layer;
        st = bly_filter_make(kind, &level, &set, &layer);
        if (!st)
            st = bly_filter_push(f, layer);
    }
    return st;
}

/* Are there as many levels as the shape says, each with the shape that follows
 * from it? */
static bool attenuated_sound(const bly_filter *f)
{
    const bly_kind *const kind = attenuated_layer_kind(&f->shape);
    bly_shape level;
    if (f->nlayers != f->shape.p[ATTENUATED_DEPTH] ||
        attenuated_level(&f->shape, &level))
        return false;
    for (uint32_t j = 0; j < f->nlayers; j++)
        if (f->layer[j]->kind != kind ||
            f->layer[j]->shape.nbytes != level.nbytes ||
            memcmp(f->layer[j]->shape.p, level.p,
                   bly_kind_room(kind) * sizeof level.p[0]) != 0)
            return false;
    return true;
}

/* -------------------------------------------------------- asking and adding */

/* Keys that go through the levels together: their hashes stay in L1. */
#define ATTENUATED_GROUP 512

/* Find which of n <= ATTENUATED_GROUP keys are at level `from` or deeper, and
 * put the lowest such level into levels, unless that is NULL. */
static void attenuated_ask(const bly_filter *f, uint32_t from,
                           const uint64_t *h, size_t n, uint64_t *maybe,
                           uint64_t *levels)
{
    for (uint32_t j = from; j < f->nlayers; j++) {
        const bly_filter *const layer = f->layer[j];
        uint64_t hit[BLY_BITMAP_WORDS(ATTENUATED_GROUP)] = { 0 };
        layer->kind->has(layer, h, n, hit);
        for (size_t w = 0; w < BLY_BITMAP_WORDS(n); w++) {
            /* Levels are queried from near to far, so a key that is already in
             * maybe has been found at a shorter distance. */
            for (uint64_t b = levels ? hit[w] & ~maybe[w] : 0; b; b &= b - 1)
                levels[w * 64 + (size_t)__builtin_ctzll(b)] = j;
            maybe[w] |= hit[w];
        }
    }
}

static void attenuated_has(const bly_filter *f, const uint64_t *h, size_t n,
                           uint64_t *maybe)
{
    for (size_t at = 0; at < n; at += ATTENUATED_GROUP)
        attenuated_ask(f, 0, h + at,
                       n - at < ATTENUATED_GROUP ? n - at : ATTENUATED_GROUP,
                       maybe + at / 64, NULL);
}

/* The value of a key is its distance. */
static void attenuated_get(const bly_filter *f, const uint64_t *h, size_t n,
                           uint64_t *values, uint64_t *present)
{
    memset(values, 0, n * sizeof *values);
    for (size_t at = 0; at < n; at += ATTENUATED_GROUP)
        attenuated_ask(f, 0, h + at,
                       n - at < ATTENUATED_GROUP ? n - at : ATTENUATED_GROUP,
                       present + at / 64, values + at);
}

/* Keys are added at level 0. Those that no level knew are fresh. The filter
 * itself counts the additions that changed level 0. The level's own count is
 * set back to 0, since with many threads it would depend on which came first,
 * and files of equal filters would differ. */
static bly_status attenuated_add(bly_filter *f, const uint64_t *h, size_t n,
                                 uint64_t *fresh, size_t *ndone)
{
    bly_filter *const here = f->layer[0];
    uint64_t nfresh = 0;
    for (size_t at = 0; at < n; at += ATTENUATED_GROUP) {
        const size_t ng = n - at < ATTENUATED_GROUP ? n - at : ATTENUATED_GROUP;
        uint64_t known[BLY_BITMAP_WORDS(ATTENUATED_GROUP)] = { 0 };
        uint64_t taken[BLY_BITMAP_WORDS(ATTENUATED_GROUP)] = { 0 };
        size_t done;
        if (fresh)
            /* Level 0 answers while it adds; only the deeper levels have to be
             * queried. */
            attenuated_ask(f, 1, h + at, ng, known, NULL);
        /* Kinds of levels are plain bits, and adding to them cannot fail. */
        (f->shared ? here->kind->add_shared : here->kind->add)(here, h + at, ng,
                                                               taken, &done);
        for (size_t w = 0; w < BLY_BITMAP_WORDS(ng); w++) {
            nfresh += (uint64_t)__builtin_popcountll(taken[w]);
            if (fresh)
                fresh[at / 64 + w] |= taken[w] & ~known[w];
        }
    }
    atomic_store_explicit((_Atomic uint64_t *)&here->nadded, 0,
                          memory_order_relaxed);
    bly_filter_added(f, nfresh);
    *ndone = n;
    return BLY_OK;
}

/* ------------------------------------------------------------ contents */

/* Words that are combined at a time: 2 KiB, which stay in L1 while all levels
 * are ORed into them. */
#define ATTENUATED_WORDS 256

static void attenuated_gather(const bly_filter *f, size_t at, size_t n,
                              uint64_t *any)
{
    for (uint32_t j = 0; j < f->nlayers; j++)
        bly_bits_or(any, f->layer[j]->kind->bitset(f->layer[j]).words + at, n);
}

/* Ones in the OR of all levels of a, and of b unless that is NULL: the filter
 * of all their keys at any distance. */
static double attenuated_ones(const bly_filter *a, const bly_filter *b)
{
    const size_t nwords = a->layer[0]->kind->bitset(a->layer[0]).nwords;
    uint64_t ones = 0;
    for (size_t at = 0; at < nwords; at += ATTENUATED_WORDS) {
        const size_t n =
            nwords - at < ATTENUATED_WORDS ? nwords - at : ATTENUATED_WORDS;
        uint64_t any[ATTENUATED_WORDS] = { 0 };
        attenuated_gather(a, at, n, any);
        if (b)
            attenuated_gather(b, at, n, any);
        ones += bly_bits_count(any, n);
    }
    return (double)ones;
}

static void attenuated_stat(const bly_filter *f, bly_stats *out)
{
    const bly_bitset b = f->layer[0]->kind->bitset(f->layer[0]);
    /* A key may be at several levels. Counted in the OR of them, it counts
     * once. */
    const bly_estimate n =
        bly_estimate_items_lanes(attenuated_ones(f, NULL), b.m, b.k, b.width);
    bly_facts facts = { out->facts, out->nfacts };
    double fill = 0, pass = 0;
    for (uint32_t j = 0; j < f->nlayers; j++) {
        bly_stats part = { 0 };
        f->layer[j]->kind->stat(f->layer[j], &part);
        fill += part.fill;
        pass += log1p(-part.fpr_now);
        bly_fact_real(&facts, attenuated_rate_names[j], part.fpr_now);
    }
    out->nfacts = facts.n;
    out->fill = fill / f->nlayers;
    out->items_estimate = n.value;
    out->items_sd = n.sd;
    out->fpr_now = 0 - expm1(pass); /* not -0 */
}

void bly_attenuated_hear(bly_filter *dst, const bly_filter *src)
{
    for (uint32_t j = 0; j + 1 < dst->nlayers; j++) {
        const bly_bitset b = src->layer[j]->kind->bitset(src->layer[j]);
        bly_bits_or((uint64_t *)(void *)dst->layer[j + 1]->data, b.words,
                    b.nwords);
    }
}

/* The other filter is a neighbour's: whatever it has is one hop further away
 * from here, and its deepest level falls off the end. */
static bly_status attenuated_merge(bly_filter *dst, const bly_filter *src)
{
    bly_stats stats = { 0 };
    bly_attenuated_hear(dst, src);
    for (uint32_t j = 1; j < dst->nlayers; j++)
        bly_bitset_recount(dst->layer[j]);
    attenuated_stat(dst, &stats);
    if (isfinite(stats.items_estimate))
        dst->nadded = (uint64_t)(stats.items_estimate + 0.5);
    return BLY_OK;
}

/* Compare the sets of all keys within reach, at whatever distance. */
static bly_status attenuated_compare(const bly_filter *a, const bly_filter *b,
                                     bly_likeness *out)
{
    const bly_bitset s = a->layer[0]->kind->bitset(a->layer[0]);
    const bly_ones ones = {
        .a = attenuated_ones(a, NULL),
        .b = attenuated_ones(b, NULL),
        .either = attenuated_ones(a, b),
    };
    bly_likeness_of_ones(&ones, s.m, s.k, s.width, out);
    return BLY_OK;
}

const bly_kind bly_kind_attenuated = {
    .id = 18, /* on disk: never changed, never reused */
    .name = "attenuated",
    .summary = "tells how many hops away a key is; levels of plain filters",
    .params = attenuated_params,
    .nparams = sizeof attenuated_params / sizeof attenuated_params[0],
    .traits = BLY_DIRECTED,
    .plan = attenuated_plan,
    .sane = attenuated_sane,
    .rate = attenuated_rate,
    .bits = attenuated_bits,
    .describe = attenuated_describe,
    .start = attenuated_start,
    .sound = attenuated_sound,
    .reach = BLY_SYSTEM(bly_reach_layers),
    .stat = attenuated_stat,
    .add = attenuated_add,
    .add_shared = attenuated_add,
    .has = attenuated_has,
    .get = attenuated_get,
    .merge = attenuated_merge,
    .compare = attenuated_compare,
};
