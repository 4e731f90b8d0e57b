/*
 * deletable.c - a filter of bits from which most keys can be removed
 *
 * The m bits of a Bloom filter are cut into r regions. Each region has one more
 * bit, its mark: was a bit of the region ever set twice?
 *
 *     bits     | region 0 | region 1 | region 2 | ...  | region r-1 |
 *              | 0100010  | 0000010  | 1011010  |      | 0010000    |  m = r s
 *     collided |  0          0          1         ...     0         |  r
 *
 * Adding a key sets its k bits, and where one is set already marks its region.
 * In a region without a mark every bit belongs to one key. So a key can be
 * removed if one of its bits lies in such a region. All its bits in regions
 * without a mark are cleared; one is enough. Its bits in marked regions stay.
 * Marks are never cleared, so the more keys are added the fewer can be removed.
 *
 * The share of keys that can be removed, with q = 1 - 1/m after n keys:
 *
 *     pc  = 1 - q^(kn) - (kn/m) q^(kn-1)            a bit is hit twice or more
 *     p_d = 1 - (1 - q^(kn-1) (1-pc)^(s-1))^k       a key can be removed
 *
 * The bit of the key itself must not be hit by another key, and none of the
 * other s - 1 bits of its region may be hit twice. The formula of [1], (1 -
 * (1-pc)^s)^k, is the chance that an arbitrary set of regions is marked:
 * neither the right event nor the right condition. 1000 keys in 10,000 bits
 * with k = 7 and 2000 regions: p_d = 0.869.
 *
 * plan() takes the fewest regions that keep p_d at `deletability`, by default
 * 0.9. One million keys at 1 % take 12.0 bits each, 2.4 of them for marks;
 * counters of four bits, which remove every key, would take 38.
 *
 * A false positive cannot be told from a key that was added: removing it may
 * take a bit from another key.
 *
 * In data the m bits come first, then, from a word of their own on, the marks.
 *
 * [1] Rothenberg, Macapuna, Verdi and Magalhaes, The Deletable Bloom Filter,
 *     2010
 */
#include <math.h>

#include "core/bits.h"
#include "core/status.h"
#include "kinds/bitset.h"
#include "kinds/fold.h"
#include "kinds/probe.h"

#define DELETABLE_MAX_BITS 0x1p48
#define DELETABLE_MAX_K 64
#define DELETABLE_MAX_REGION (1 << 20) /* bits; some key is in every one */

enum {
    DELETABLE_REGIONS,
    DELETABLE_REGION,
    DELETABLE_K,
    DELETABLE_TARGET,
    DELETABLE_FOLDS
};

static const bly_param deletable_params[] = {
    [DELETABLE_REGIONS] =
        BLY_PARAM("regions", BLY_UINT, .min = 1, .max = DELETABLE_MAX_BITS,
                  .help = "regions, with a mark each (r)"),
    [DELETABLE_REGION] = BLY_PARAM(
        "region_bits", BLY_UINT, .settable = true, .automatic = true, .min = 1,
        .max = DELETABLE_MAX_REGION, .help = "bits of a region (s)"),
    [DELETABLE_K] =
        BLY_PARAM("k", BLY_UINT, .settable = true, .automatic = true, .min = 1,
                  .max = DELETABLE_MAX_K, .help = "bits a key sets"),
    [DELETABLE_TARGET] =
        BLY_PARAM("deletability", BLY_REAL, .settable = true, .planning = true,
                  .def = 0.9, .min = 0.01, .max = 0.999,
                  .help = "share of keys that can be removed"),
    [DELETABLE_FOLDS] = BLY_FOLDS_PARAM,
};

static uint64_t deletable_m(const bly_shape *s)
{
    return s->p[DELETABLE_REGIONS] * s->p[DELETABLE_REGION];
}

/* The number of words of the bits; the marks follow. */
static uint64_t deletable_words(const bly_shape *s)
{
    return (deletable_m(s) + 63) / 64;
}

static uint64_t deletable_nbytes(const bly_shape *s)
{
    return 8 * (deletable_words(s) + (s->p[DELETABLE_REGIONS] + 63) / 64);
}

static bool deletable_sane(const bly_shape *s)
{
    const uint64_t r = s->p[DELETABLE_REGIONS], bits = s->p[DELETABLE_REGION];
    const uint64_t k = s->p[DELETABLE_K];
    const uint64_t most = (uint64_t)DELETABLE_MAX_BITS;
    return r >= 1 && r <= most && bits >= 1 && bits <= DELETABLE_MAX_REGION &&
           r <= most / bits && k >= 1 && k <= DELETABLE_MAX_K &&
           s->p[DELETABLE_TARGET] == 0 && s->p[DELETABLE_FOLDS] == 0 &&
           s->nbytes == deletable_nbytes(s);
}

static double deletable_rate(const bly_shape *s, double n)
{
    return bly_fpr_exact(n, (double)deletable_m(s),
                         (unsigned)s->p[DELETABLE_K]);
}

static uint64_t deletable_bits(const bly_shape *s)
{
    return deletable_m(s) + s->p[DELETABLE_REGIONS];
}

/* p_d of the essay. */
static double deletable_share(const bly_shape *s, double n)
{
    const double m = (double)deletable_m(s), k = (double)s->p[DELETABLE_K];
    const double hits = k * n;
    if (m <= 1)
        return hits <= 1 ? 1 : 0;
    /* Computed by logarithms, since in a large filter q = 1 - 1/m is almost
     * 1. */
    const double lq = log1p(-1 / m); /* ln q */
    const double once = exp(hits * lq) + hits / m * exp((hits - 1) * lq);
    /* The key's own bit, not hit by another, and the rest of its region, each
     * bit at most once; rounding may take `once` past 1. */
    const double clean = exp((hits - 1) * lq) *
                         pow(fmin(1, once), (double)s->p[DELETABLE_REGION] - 1);
    return -expm1(k * log1p(-clean));
}

/* ---------------------------------------------------------------- planning */

/* A shape with regions of `region` bits that takes `total` bits, marks
 * included. */
static bly_shape deletable_shape(const bly_want *w, double total, double region)
{
    bly_shape s = { .p = { [DELETABLE_REGIONS] =
                               (uint64_t)(total / (region + 1)),
                           [DELETABLE_REGION] = (uint64_t)region,
                           [DELETABLE_K] = w->opt[DELETABLE_K] } };
    const double m = (double)deletable_m(&s);
    if (!s.p[DELETABLE_K])
        s.p[DELETABLE_K] = bly_best_k((double)w->items, fmax(1, m));
    if (s.p[DELETABLE_K] > DELETABLE_MAX_K)
        s.p[DELETABLE_K] = DELETABLE_MAX_K;
    s.nbytes = deletable_nbytes(&s);
    return s;
}

/* The largest regions, and so the fewest marks, that keep the target. In
 * smaller regions collisions are rarer, but then marks take so much of the
 * memory (half of it, for regions of one bit) that the bits fill up. So below
 * four bits per region the share need not rise any more: the first size that
 * keeps the target is taken, or else the best one. */
static bly_shape deletable_best(const bly_want *w, double total)
{
    const double n = (double)w->items;
    const double target = bly_want_real(w, DELETABLE_TARGET);
    if (w->opt[DELETABLE_REGION])
        return deletable_shape(w, total, (double)w->opt[DELETABLE_REGION]);
    double low = 4,
           high = fmin(DELETABLE_MAX_REGION, fmax(5, floor(total / 2)));
    bly_shape s = deletable_shape(w, total, low);
    if (deletable_share(&s, n) < target) {
        bly_shape best = s;
        for (double region = 3; region >= 1; region--) {
            s = deletable_shape(w, total, region);
            if (deletable_share(&s, n) >= target)
                return s;
            if (deletable_share(&s, n) > deletable_share(&best, n))
                best = s;
        }
        return best;
    }
    /* From four bits up the share falls with the size, so bisection works: low
     * keeps the target, high does not. */
    while (high - low > 1) {
        const double mid = floor((low + high) / 2);
        s = deletable_shape(w, total, mid);
        if (s.p[DELETABLE_REGIONS] && deletable_share(&s, n) >= target)
            low = mid;
        else
            high = mid;
    }
    return deletable_shape(w, total, low);
}

static bly_status deletable_plan(const bly_want *w, bly_shape *out)
{
    const double n = (double)w->items;
    if (w->bits) {
        *out = deletable_best(w, (double)w->bits);
        if (!out->p[DELETABLE_REGIONS])
            return bly_fail(BLY_EINVAL,
                            "%llu bits are too few for a region and its mark",
                            (unsigned long long)w->bits);
    } else {
        /* Marks are included. A shape that is too large is not sane, which is
         * tested below. */
        bly_plan_least(w, deletable_best, deletable_rate, 1, 64,
                       2 * DELETABLE_MAX_BITS, out);
    }
    const bly_status st = bly_fold_plan(
        w->opt[DELETABLE_FOLDS], 1, w->bits != 0, &out->p[DELETABLE_REGIONS]);
    if (st)
        return st;
    out->nbytes = deletable_nbytes(out);
    if (!deletable_sane(out))
        return bly_fail(BLY_ERANGE, "a deletable filter has at most 2^48 "
                                    "bits: ask for fewer items or a higher "
                                    "rate");
    /* A default target may be missed; a target that the caller gave is kept, or
     * the plan is refused. */
    if (w->given[DELETABLE_TARGET] &&
        deletable_share(out, n) < bly_want_real(w, DELETABLE_TARGET))
        return bly_fail(BLY_EINVAL,
                        "a deletability of %g is out of reach here, %.3g is "
                        "not: give more bits and fewer k",
                        bly_want_real(w, DELETABLE_TARGET),
                        deletable_share(out, n));
    return BLY_OK;
}

static void deletable_describe(const bly_shape *s, const bly_want *w,
                               const bly_filter *f, bly_facts *out)
{
    const double n = (double)(w ? w->items : f->items);
    bly_fact_uint(out, "m", deletable_m(s));
    bly_fact_real(out, "deletable_at_capacity", deletable_share(s, n));
}

/* ----------------------------------------------------- asking and changing */

typedef struct deletable_view {
    uint64_t *words, *marks;
    uint64_t m, region;
    unsigned k;
} deletable_view;

static inline deletable_view deletable_view_of(const bly_filter *f)
{
    uint64_t *const words = (uint64_t *)(void *)f->data;
    return (deletable_view){
        .words = words,
        .marks = words + deletable_words(&f->shape),
        .m = deletable_m(&f->shape),
        .region = f->shape.p[DELETABLE_REGION],
        .k = (unsigned)f->shape.p[DELETABLE_K],
    };
}

static inline bly_steps deletable_steps(const deletable_view *v)
{
    return (bly_steps){ .range = bly_modulus_of(v->m),
                        .k = v->k,
                        .rule = BLY_STEPS_MIXED };
}

static void deletable_has(const bly_filter *f, const uint64_t *h, size_t n,
                          uint64_t *maybe)
{
    const deletable_view v = deletable_view_of(f);
    const bly_probe_query q = {
        .cells = f->data,
        .width = 1,
        .range = bly_modulus_of(v.m),
        .k = v.k,
        .rule = BLY_STEPS_MIXED,
        .test = bly_probe_bit,
        .ctx = v.words,
    };
    bly_probe_ask(&q, h, n, maybe);
}

/* Marks are needed only for removing, so they are not reported. */
static void deletable_reach(const bly_filter *f, const uint64_t *h, size_t n,
                            uint64_t *bad)
{
    const deletable_view v = deletable_view_of(f);
    bly_probe_reach(f, 0, 1, deletable_steps(&v), h, n, bad);
}

/* One batch; what it does not need stays zero. */
typedef struct deletable_batch {
    deletable_view v;
    bly_modulus region; /* bits of one */
    uint64_t *fresh;
    bly_status *each;
    uint64_t changed; /* keys that changed something */
} deletable_batch;

/* Fetch the marks of a key's regions; its bits are being fetched already. */
static inline __attribute__((always_inline)) void
deletable_ahead(void *ctx, size_t i, bly_spots at)
{
    const deletable_batch *const b = ctx;
    (void)i;
    for (uint64_t j = 0; j < at.n; j++)
        __builtin_prefetch(
            &b->v.marks[bly_div(bly_spot(at, j), b->region) >> 6], 0, 2);
}

/* All bits are read before the first is set: a key that names a position twice
 * does not collide with itself. There is no branch, since in a half full filter
 * it would be a coin flip. */
static inline __attribute__((always_inline)) void
deletable_set(void *ctx, size_t i, bly_spots at)
{
    deletable_batch *const b = ctx;
    uint64_t *const words = b->v.words, *const marks = b->v.marks;
    const bly_modulus region = b->region;
    bool set[BLY_PROBE_MAX_K], all = true;
    for (uint64_t j = 0; j < at.n; j++) {
        set[j] = bly_bit_get(words, bly_spot(at, j));
        all &= set[j];
    }
    for (uint64_t j = 0; j < at.n; j++) {
        const uint64_t p = bly_spot(at, j), r = bly_div(p, region);
        bly_bit_set(words, p);
        /* A bit that was set before is set twice now: mark its region. */
        marks[r >> 6] |= bly_le64((uint64_t)set[j] << (r & 63));
    }
    b->changed += !all;
    if (b->fresh)
        b->fresh[i / 64] |= (uint64_t)!all << i % 64;
}

static bly_status deletable_add(bly_filter *f, const uint64_t *h, size_t n,
                                uint64_t *fresh, size_t *ndone)
{
    deletable_batch b = { .v = deletable_view_of(f), .fresh = fresh };
    b.region = bly_modulus_of(b.v.region);
    bly_probe_each(f->data, 1, deletable_steps(&b.v), false, h, n,
                   deletable_ahead, deletable_set, &b);
    bly_filter_added(f, b.changed);
    *ndone = n;
    return BLY_OK;
}

static inline __attribute__((always_inline)) void
deletable_clear(void *ctx, size_t i, bly_spots all)
{
    deletable_batch *const b = ctx;
    uint64_t at[BLY_PROBE_MAX_K];
    unsigned nfree = 0;
    for (uint64_t j = 0; j < all.n; j++) {
        const uint64_t p = bly_spot(all, j);
        if (!bly_bit_get(b->v.words, p)) {
            b->each[i] = BLY_EABSENT;
            return;
        }
        /* Kept only if its region has no mark. Nothing is cleared before all
         * bits have been seen: an absent key must change nothing. */
        at[nfree] = p;
        nfree += !bly_bit_get(b->v.marks, bly_div(p, b->region));
    }
    /* One clear bit would be enough for the key to be gone; clearing all that
     * may be cleared also lowers the rate. */
    for (unsigned j = 0; j < nfree; j++)
        bly_bit_clear(b->v.words, at[j]);
    b->each[i] = nfree ? BLY_OK : BLY_EREFUSED;
    b->changed += nfree != 0;
}

static void deletable_remove(bly_filter *f, const uint64_t *h, size_t n,
                             bly_status *each)
{
    deletable_batch b = { .v = deletable_view_of(f), .each = each };
    b.region = bly_modulus_of(b.v.region);
    bly_probe_each(f->data, 1, deletable_steps(&b.v), false, h, n,
                   deletable_ahead, deletable_clear, &b);
    bly_filter_removed(f, b.changed);
}

/* ---------------------------------------------------------------- the rest */

static bly_bitset deletable_bitset(const bly_filter *f)
{
    return (bly_bitset){
        .words = (const uint64_t *)(const void *)f->data,
        .nwords = (size_t)deletable_words(&f->shape),
        .m = (double)deletable_m(&f->shape),
        .k = (double)f->shape.p[DELETABLE_K],
        .width = INFINITY,
    };
}

static bool deletable_check(const bly_filter *f)
{
    const deletable_view v = deletable_view_of(f);
    const uint64_t r = f->shape.p[DELETABLE_REGIONS];
    return bly_bits_tail_clear(v.words, v.m,
                               (size_t)deletable_words(&f->shape)) &&
           bly_bits_tail_clear(v.marks, r, (size_t)((r + 63) / 64));
}

/* Mark the regions of bits that were set twice: the ones of `twice`, in word w.
 * Bits past the end, which only a damaged filter has, have no region. */
static void deletable_mark(const deletable_view *v, uint64_t w, uint64_t twice)
{
    for (twice = bly_le64(twice); twice; twice &= twice - 1) {
        const uint64_t bit = w * 64 + (uint64_t)__builtin_ctzll(twice);
        if (bit < v->m)
            bly_bit_set(v->marks, bit / v->region);
    }
}

/* A bit that is set in both filters was set twice. */
static bly_status deletable_merge_part(bly_filter *dst, const bly_part *p)
{
    const deletable_view v = deletable_view_of(dst);
    const uint64_t *const from = (const uint64_t *)(const void *)p->bytes;
    const uint64_t first = p->at / 8, nwords = deletable_words(&dst->shape);
    /* This comes before the OR, which destroys the information. For the marks,
     * which begin after nwords, the OR is all there is to do. */
    for (uint64_t i = 0; i < p->nbytes / 8 && first + i < nwords; i++)
        deletable_mark(&v, first + i, v.words[first + i] & from[i]);
    return bly_bitset_merge_part(dst, p);
}

/* Positions are scaled, so bits 2j and 2j + 1 become one, and so do regions 2i
 * and 2i + 1. If both bits were set, the new bit was set twice. */
static bly_status deletable_fold(const bly_filter *f, bly_filter **out)
{
    bly_shape half = bly_shape_of(f);
    half.p[DELETABLE_REGIONS] /= 2;
    half.nbytes = deletable_nbytes(&half);
    const bly_status st =
        bly_fold_begin(f, f->shape.p[DELETABLE_REGIONS], "regions", &half, out);
    if (st)
        return st;
    const deletable_view from = deletable_view_of(f);
    const deletable_view to = deletable_view_of(*out);
    bly_bits_fold_pairs(to.words, from.words, to.m);
    bly_bits_fold_pairs(to.marks, from.marks, half.p[DELETABLE_REGIONS]);
    for (uint64_t j = 0; j < to.m; j++)
        if (bly_bit_get(from.words, 2 * j) &&
            bly_bit_get(from.words, 2 * j + 1))
            bly_bit_set(to.marks, j / to.region);
    return BLY_OK;
}

static uint64_t deletable_raw(const bly_shape *s)
{
    return 64 * deletable_words(s) + s->p[DELETABLE_REGIONS];
}

const bly_kind bly_kind_deletable = {
    .id = 5, /* on disk: never changed, never reused */
    .name = "deletable",
    .summary = "most keys can be removed, for a quarter more bits than classic",
    .params = deletable_params,
    .nparams = sizeof deletable_params / sizeof deletable_params[0],
    .plan = deletable_plan,
    .sane = deletable_sane,
    .rate = deletable_rate,
    .bits = deletable_bits,
    .describe = deletable_describe,
    .check = deletable_check,
    .reach = BLY_SYSTEM(deletable_reach),
    .bitset = deletable_bitset,
    .stat = bly_bitset_stat,
    .add = deletable_add,
    .has = deletable_has,
    .remove = deletable_remove,
    .merge = bly_merge_as_part,
    .merge_part = deletable_merge_part,
    /* This holds for marks too: a bit that was set only once in one of the
     * filters belongs to at most one common key. */
    .intersect = bly_bitset_intersect,
    .intersect_part = bly_bitset_intersect_part,
    .compare = bly_bitset_compare,
    .fold = deletable_fold,
    .raw = deletable_raw,
};
