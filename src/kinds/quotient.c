/*
 * quotient.c - sorted fingerprints, stored mostly by their position
 *
 * The hash is scaled to a fingerprint F of the range M = slots * 2^r. Its
 * quotient, F / 2^r, names a home slot, and only its remainder, r bits, is
 * stored: in the home slot or, where that is taken, behind it. All fingerprints
 * of one quotient form a run, and runs follow each other in the order of their
 * quotients. So the table is a sorted list with gaps.
 *
 *     slots       0    1    2    3    4    5       F = 1|a 1|c 1|c 2|b 5|a
 *     remainders  .    a    c    c    b    a
 *
 * 2.125 bits per slot record which quotient a remainder belongs to [2]
 * (engine/runs.h).
 *
 * Rate. An absent key is a false positive if its F is that of a stored key: 1 -
 * (1 - 1/M)^n, about load / 2^r. One million keys at 1 % take r = 7 and
 * 1,052,672 slots at a load of 0.95: 9.61 bits per key, and the rate is 0.74 %.
 * The number of slots need not be a power of two, since F is scaled and not cut
 * from the hash: no memory is wasted between powers.
 *
 * Counting. A fingerprint that was added once or twice is stored as often. One
 * that was added c > 2 times is stored twice, with the digits of c
 * (quotient_table.h). A count is exact unless keys share a fingerprint, so it
 * is never too low.
 *
 * Without the keys. F is stored in full, so a table with twice the slots and r
 * - 1 bits can hold the same fingerprints with the same M (resize), and tables
 * are merged, intersected and compared like sorted lists. A table of half the
 * slots with the same r holds them without their last bit (fold), if the first
 * was less than half full.
 *
 * Up to 192 slots behind the last quotient take what is pushed out at the end.
 * At a load of 0.95, runs of random keys reach past them once in 10^8 tables.
 * If they do, or if an offset would exceed 255, which is rarer still, the
 * filter is full before its time; no key is lost.
 *
 * It is slower than cuckoo, since every addition moves the remainders behind
 * it.
 *
 * state: the sums of the table. [0] slots in use, [1] different fingerprints,
 * [2] additions held.
 *
 * [1] Bender et al., Don't Thrash: How to Cache Your Hash on Flash, 2012
 * [2] Pandey, Bender, Johnson and Patro, A General-Purpose Counting Filter:
 *     Making Every Bit Count, 2017
 * [3] Pagh, Pagh and Rao, An Optimal Bloom Filter Replacement, 2005
 */
#include <math.h>
#include <string.h>

#include "core/status.h"
#include "kinds/bitset.h"
#include "kinds/fold.h"
#include "engine/quotient_table.h"

#define QUOTIENT_MAX_SLOTS (UINT64_C(1) << 40)
#define QUOTIENT_MAX_MEMORY (UINT64_C(1) << 48) /* bits: 32 TiB */
#define QUOTIENT_LOAD 0.95 /* bly_quotient_most() has it in whole numbers */

enum {
    QUOTIENT_SLOTS,
    QUOTIENT_R,
    QUOTIENT_FOLDS,
    QUOTIENT_COUNTS,
    QUOTIENT_MEAN
};

/* Values of QUOTIENT_COUNTS: how a count of 3 begins (quotient_table.h). Files
 * from before the choice existed have the first. */
enum { QUOTIENT_FOUR, QUOTIENT_THREE };

static const bly_param quotient_params[] = {
    [QUOTIENT_SLOTS] = BLY_PARAM("slots", BLY_UINT, .min = BLY_RUNS_BLOCK,
                                 .max = (double)QUOTIENT_MAX_SLOTS,
                                 .help = "home slots, a multiple of 64"),
    [QUOTIENT_R] =
        BLY_PARAM("remainder", BLY_UINT, .settable = true, .automatic = true,
                  .min = 1, .max = BLY_RUNS_MAX_R,
                  .help = "bits of a fingerprint that are stored (r)"),
    [QUOTIENT_FOLDS] = BLY_FOLDS_PARAM,
    [QUOTIENT_COUNTS] =
        BLY_PARAM("counts", BLY_CHOICE, .settable = true, .max = 1,
                  .def = QUOTIENT_THREE, .choices = BLY_WORDS("four", "three"),
                  .help = "slots of a key that came three times, or somewhat "
                          "oftener; four as it was first"),
    [QUOTIENT_MEAN] = BLY_PARAM(
        "mean", BLY_REAL, .settable = true, .automatic = true, .planning = true,
        .min = 1, .max = 1e9,
        .help = "how often a key is added on average; the capacity allows for "
                "it. A builder that is not told the capacity sees how often "
                "they came; otherwise 1"),
};

/* ----------------------------------------------------------------- shapes */

static uint64_t quotient_nbytes(uint64_t nslots, uint64_t r)
{
    return bly_runs_nbytes(bly_quotient_nblocks(nslots), r);
}

static uint64_t quotient_bits(const bly_shape *s)
{
    return 8 * bly_quotient_nblocks(s->p[QUOTIENT_SLOTS]) *
           bly_runs_stride(s->p[QUOTIENT_R]);
}

/* nslots 2^r <= 2^64: are there at least as many hashes as fingerprints? */
static bool quotient_hash_lasts(uint64_t nslots, uint64_t r)
{
    return nslots <= UINT64_MAX >> r;
}

static bool quotient_sane(const bly_shape *s)
{
    const uint64_t nslots = s->p[QUOTIENT_SLOTS], r = s->p[QUOTIENT_R];
    return nslots >= BLY_RUNS_BLOCK && nslots <= QUOTIENT_MAX_SLOTS &&
           nslots % BLY_RUNS_BLOCK == 0 && r >= 1 && r <= BLY_RUNS_MAX_R &&
           s->p[QUOTIENT_COUNTS] <= QUOTIENT_THREE &&
           quotient_hash_lasts(nslots, r) &&
           s->nbytes == quotient_nbytes(nslots, r);
}

static bly_shape quotient_shape(uint64_t nslots, uint64_t r, uint64_t counts)
{
    return (bly_shape){ .p = { [QUOTIENT_SLOTS] = nslots,
                               [QUOTIENT_R] = r,
                               [QUOTIENT_COUNTS] = counts },
                        .nbytes = quotient_nbytes(nslots, r) };
}

/* M, the number of fingerprints. */
static double quotient_range(const bly_shape *s)
{
    return ldexp((double)s->p[QUOTIENT_SLOTS], (int)s->p[QUOTIENT_R]);
}

static double quotient_rate(const bly_shape *s, double n)
{
    return -expm1(n * log1p(-1 / quotient_range(s)));
}

/* How often a key is added on average, as far as w knows. */
static double quotient_mean(const bly_want *w)
{
    return fmax(1, fmax(bly_want_real(w, QUOTIENT_MEAN), w->mean));
}

/* The slots of a key that was added three times. */
static double quotient_slots_of_three(uint64_t counts)
{
    return counts == QUOTIENT_THREE ? 3 : 4;
}

/* The most slots that a key can take on average, if it is added `mean` times on
 * average. Counts of 1, 2 and 3 take 1, 2 and s slots, and a digit holds r - 1
 * bits: from 3 + 2^(r-1) on, counts take one slot more. Whatever the
 * distribution of the counts, the mean lies on or below the lines from (1, 1)
 * to (3, s), from there to (3 + 2^(r-1), s + 1), and so on. */
static double quotient_slots_each(double mean, uint64_t r, uint64_t counts)
{
    double from = 3, slots = quotient_slots_of_three(counts);
    const double digit = ldexp(1, (int)r - 1);
    if (mean <= from)
        return 1 + (slots - 1) / 2 * (mean - 1);
    if (r == 1) /* one slot per addition: a digit would hold 0 bits */
        return mean + slots - from;
    for (double span = digit;; span *= digit, slots++) {
        if (mean <= from + span)
            return slots + (mean - from) / span;
        from += span;
    }
}

/* The load at which keys that are added this often still find room near their
 * home slots. How far remainders are pushed grows with the mean square of the
 * slots per key divided by their mean. That is 1 if each key takes one slot,
 * and more the more they differ; the worst case is keys of one slot among keys
 * of three, or four. */
static double quotient_load(double mean, uint64_t r, uint64_t counts)
{
    const double counted = fmin((mean - 1) / 2, 1); /* share of the latter */
    const double s = quotient_slots_of_three(counts);
    const double lumps =
        mean <= 3 ? (1 + (s * s - 1) * counted) / (1 + (s - 1) * counted)
                  : quotient_slots_each(mean, r, counts);
    return fmax(1 - (1 - QUOTIENT_LOAD) * lumps, 0.5);
}

/* Home slots for n keys that are added this often. A fingerprint that three
 * keys share may take four slots; there are n (load / 2^r)^2 / 6 of these,
 * which matters only for small r. */
static double quotient_slots_for(double n, double mean, uint64_t r,
                                 uint64_t counts)
{
    const double lambda = ldexp(QUOTIENT_LOAD, -(int)r);
    const double each =
        quotient_slots_each(mean, r, counts) + lambda * lambda / 4;
    return ceil((n * each + 1) / quotient_load(mean, r, counts) /
                BLY_RUNS_BLOCK) *
           BLY_RUNS_BLOCK;
}

/* The most home slots that fit into `bits`; 0: none. */
static uint64_t quotient_slots_in(uint64_t bits, uint64_t r)
{
    uint64_t nblocks = bits / 8 / bly_runs_stride(r);
    if (nblocks > QUOTIENT_MAX_SLOTS / BLY_RUNS_BLOCK)
        nblocks = QUOTIENT_MAX_SLOTS / BLY_RUNS_BLOCK;
    /* Up to three of the blocks are spare and have no home slots. */
    for (uint64_t n = nblocks; n + 4 > nblocks && n > 0; n--)
        if (bly_quotient_nblocks(n * BLY_RUNS_BLOCK) <= nblocks)
            return n * BLY_RUNS_BLOCK;
    return 0;
}

/* Home slots for w with remainders of r bits; 0: none will do. */
static uint64_t quotient_fit(const bly_want *w, uint64_t r)
{
    const double n = (double)w->items;
    const double least =
        quotient_slots_for(n, quotient_mean(w), r, w->opt[QUOTIENT_COUNTS]);
    double nslots = least;
    if (w->bits) {
        /* Slots beyond what the hash can tell apart are left unused. */
        const uint64_t last = (UINT64_MAX >> r) / BLY_RUNS_BLOCK;
        nslots = fmin((double)quotient_slots_in(w->bits, r),
                      (double)(last * BLY_RUNS_BLOCK));
    } else {
        /* 1 - (1 - 1/M)^n = p for M = n / -ln(1 - p), nearly. 1e-9: if rounding
         * has left the number of blocks a hair too low, there will be one
         * more. */
        const double range = n / -log1p(-w->fpr);
        const double want = ceil(ldexp(range, -(int)r) / BLY_RUNS_BLOCK + 1e-9);
        nslots = fmax(nslots, want * BLY_RUNS_BLOCK);
    }
    if (!(nslots <= (double)QUOTIENT_MAX_SLOTS))
        return 0;
    uint64_t fit = (uint64_t)nslots;
    if (bly_fold_plan(w->opt[QUOTIENT_FOLDS], BLY_RUNS_BLOCK, w->bits != 0,
                      &fit))
        return 0;
    return (double)fit >= least && quotient_hash_lasts(fit, r) ? fit : 0;
}

static bly_status quotient_plan(const bly_want *w, bly_shape *out)
{
    const uint64_t only = w->opt[QUOTIENT_R];
    double best = INFINITY; /* bits where the rate is given, else the rate */
    if (w->bits > QUOTIENT_MAX_MEMORY)
        return bly_fail(BLY_ERANGE, "a quotient filter has at most 2^48 bits");
    /* Try every r: a longer remainder needs fewer slots for the same rate, but
     * never fewer than the load allows. */
    for (uint64_t r = only ? only : 1; r <= (only ? only : BLY_RUNS_MAX_R);
         r++) {
        const uint64_t nslots = quotient_fit(w, r);
        if (!nslots)
            continue;
        const bly_shape s = quotient_shape(nslots, r, w->opt[QUOTIENT_COUNTS]);
        const double cost = w->bits ? quotient_rate(&s, (double)w->items)
                                    : (double)quotient_bits(&s);
        if (cost < best) {
            best = cost;
            *out = s;
        }
    }
    if (best < INFINITY)
        return BLY_OK;
    if (w->bits)
        return bly_fail(BLY_EINVAL, "%llu bits do not do for %llu items%s",
                        (unsigned long long)w->bits,
                        (unsigned long long)w->items,
                        only ? " with remainders of that size"
                             : " of at least one bit and 2.125 more");
    return bly_fail(only ? BLY_EINVAL : BLY_ERANGE,
                    "the slots' number and the remainder do not fit into 64 "
                    "bits: ask for fewer items, a higher rate or a shorter "
                    "remainder");
}

static void quotient_describe(const bly_shape *s, const bly_want *w,
                              const bly_filter *f, bly_facts *out)
{
    const double n = (double)(w ? w->items : f->items);
    bly_fact_real(out, "fingerprint_bits", log2(quotient_range(s)));
    bly_fact_real(out, "load_at_capacity", n / (double)s->p[QUOTIENT_SLOTS]);
    bly_fact_uint(out, "room", bly_quotient_most(s->p[QUOTIENT_SLOTS]));
    if (f) {
        bly_fact_uint(out, "fingerprints", f->state[BLY_QUOTIENT_DISTINCT]);
        bly_fact_uint(out, "additions_held", f->state[BLY_QUOTIENT_TOTAL]);
    }
}

/* Slots doubled `by` times, or halved where it is negative. */
static bool quotient_scaled(const bly_shape *s, int by, bly_shape *out)
{
    /* nslots 2^r does not change, and so neither does any fingerprint. */
    const uint64_t nslots = s->p[QUOTIENT_SLOTS];
    const int r = (int)s->p[QUOTIENT_R] - by;
    if (r < 1 || r > BLY_RUNS_MAX_R || by > 40 ||
        (by > 0 && nslots > QUOTIENT_MAX_SLOTS >> by) ||
        (by < 0 && nslots % (UINT64_C(1) << -by) != 0))
        return false;
    *out = quotient_shape(by < 0 ? nslots >> -by : nslots << by, (uint64_t)r,
                          s->p[QUOTIENT_COUNTS]);
    return quotient_sane(out);
}

/* Do both shapes have the same range of fingerprints, perhaps in more or fewer
 * slots? */
static bool quotient_akin(const bly_shape *a, const bly_shape *b)
{
    bly_shape s;
    const int by = (int)a->p[QUOTIENT_R] - (int)b->p[QUOTIENT_R];
    return quotient_scaled(a, by, &s) &&
           s.p[QUOTIENT_SLOTS] == b->p[QUOTIENT_SLOTS];
}

/* ------------------------------------------------------------------- keys */

static uint64_t quotient_marks(const bly_filter *f)
{
    return bly_quotient_marks(f->shape.p[QUOTIENT_R],
                              f->shape.p[QUOTIENT_COUNTS] == QUOTIENT_THREE);
}

static bly_quotient_table quotient_table_of(const bly_filter *f)
{
    return bly_quotient_table_with(f->data, f->shape.p[QUOTIENT_SLOTS],
                                   f->shape.p[QUOTIENT_R], quotient_marks(f));
}

static void quotient_has(const bly_filter *f, const uint64_t *h, size_t n,
                         uint64_t *maybe)
{
    const bly_quotient_table t = quotient_table_of(f);
    bly_quotient_best()->has(&t, h, n, maybe);
}

static bly_status quotient_add_by(bly_filter *f, const uint64_t *h,
                                  const uint64_t *by, size_t n, uint64_t *fresh,
                                  size_t *ndone)
{
    const bly_quotient_table t = quotient_table_of(f);
    const uint64_t before = f->state[BLY_QUOTIENT_TOTAL];
    const bly_status st =
        bly_quotient_best()->add(&t, f->state, h, by, n, fresh, ndone);
    bly_filter_added(f, f->state[BLY_QUOTIENT_TOTAL] - before);
    return st;
}

static bly_status quotient_add(bly_filter *f, const uint64_t *h, size_t n,
                               uint64_t *fresh, size_t *ndone)
{
    return quotient_add_by(f, h, NULL, n, fresh, ndone);
}

static bly_status quotient_increase(bly_filter *f, const uint64_t *h,
                                    const uint64_t *by, size_t n, size_t *ndone)
{
    return quotient_add_by(f, h, by, n, NULL, ndone);
}

/* One key. aid holds what would take long to compute for the table. */
BLY_ONE_BODY bool quotient_has_hash(const bly_filter *f, uint64_t h)
{
    return bly_quotient_best()->has_one(f->data, f->shape.p[QUOTIENT_SLOTS],
                                        f->shape.p[QUOTIENT_R], f->aid, h);
}

BLY_ONE_BODY bly_status quotient_add_hash(bly_filter *f, uint64_t h)
{
    const uint64_t before = f->state[BLY_QUOTIENT_TOTAL];
    const bly_status st = bly_quotient_best()->add_one(
        f->data, f->shape.p[QUOTIENT_SLOTS], f->shape.p[QUOTIENT_R], f->aid,
        f->state, h);
    f->nadded += f->state[BLY_QUOTIENT_TOTAL] - before;
    return st;
}

BLY_ONE_BODY bly_status quotient_remove_hash(bly_filter *f, uint64_t h)
{
    const bly_status st = bly_quotient_best()->remove_one(
        f->data, f->shape.p[QUOTIENT_SLOTS], f->shape.p[QUOTIENT_R], f->aid,
        f->state, h);
    if (!st)
        bly_filter_removed_one(f);
    return st;
}

BLY_ONE_HAS_FOR(, quotient_has_one, quotient_has_hash)
BLY_ONE_ADD_FOR(, quotient_add_one, quotient_add_hash)
BLY_ONE_REMOVE_FOR(, quotient_remove_one, quotient_remove_hash)

static void quotient_one(const bly_filter *f, bly_one *out)
{
    out->aid = quotient_marks(f);
    BLY_ONE_SET_HAS_FOR(out, quotient_has_one);
    BLY_ONE_SET_ADD_FOR(out, quotient_add_one);
    out->ways.remove = quotient_remove_one;
}

static void quotient_remove(bly_filter *f, const uint64_t *h, size_t n,
                            bly_status *each)
{
    const bly_quotient_table t = quotient_table_of(f);
    const uint64_t before = f->state[BLY_QUOTIENT_TOTAL];
    bly_quotient_best()->remove(&t, f->state, h, n, each);
    bly_filter_removed(f, before - f->state[BLY_QUOTIENT_TOTAL]);
}

static void quotient_count(const bly_filter *f, const uint64_t *h, size_t n,
                           uint64_t *counts)
{
    const bly_quotient_table t = quotient_table_of(f);
    bly_quotient_best()->count(&t, h, n, counts);
}

/* ------------------------------------------------------- without the keys */

/* Finish the new filter f: all entries have been written, or st says why
 * not. */
static bly_status quotient_finish(bly_quotient_writer *to, bly_filter *f,
                                  bly_status st, bly_filter **out)
{
    *out = NULL;
    if (!st)
        st = bly_quotient_write_end(to);
    if (st)
        bly_free(f);
    else
        *out = f;
    return st;
}

/* Make a new filter of this shape from all entries of a, and of b unless that
 * is NULL. */
static bly_status quotient_join(const bly_filter *a, const bly_filter *b,
                                const bly_shape *shape, const bly_setting *set,
                                bly_filter **out)
{
    bly_filter *f;
    bly_status st = bly_filter_make(a->kind, shape, set, &f);
    if (st)
        return st;
    f->nadded = a->nadded + (b ? b->nadded : 0);
    const bly_quotient_table tf = quotient_table_of(f);
    const bly_quotient_table ta = quotient_table_of(a);
    const bly_quotient_table tb = quotient_table_of(b ? b : a);
    bly_quotient_writer to = bly_quotient_writer_of(&tf, f->state);
    bly_quotient_walk wa = bly_quotient_walk_of(&ta);
    bly_quotient_walk wb = bly_quotient_walk_of(&tb);
    bool more_a = bly_quotient_walk_next(&wa);
    bool more_b = b && bly_quotient_walk_next(&wb);
    /* Merge two sorted lists; the counts of a fingerprint that is in both are
     * added. A count that would exceed the maximum stays there. */
    while (!st && (more_a || more_b)) {
        const bool take_a = more_a && (!more_b || wa.F <= wb.F);
        const bool take_b = more_b && (!more_a || wb.F <= wa.F);
        const uint64_t F = take_a ? wa.F : wb.F;
        uint64_t count = (take_a ? wa.count : 0) + (take_b ? wb.count : 0);
        if (count > BLY_QUOTIENT_MAX_COUNT)
            count = BLY_QUOTIENT_MAX_COUNT;
        st = bly_quotient_write(&to, F, count);
        if (take_a)
            more_a = bly_quotient_walk_next(&wa);
        if (take_b)
            more_b = bly_quotient_walk_next(&wb);
    }
    return quotient_finish(&to, f, st, out);
}

static bly_status quotient_merge(bly_filter *dst, const bly_filter *src)
{
    /* Merge into a new filter: if the keys do not fit, dst stays as it was. The
     * number of slots is doubled until they fit, which changes no fingerprint.
     * Each doubling takes one bit from the remainders, so there is an end to
     * it. */
    const bly_setting set = bly_setting_of(dst);
    bly_filter *both;
    bly_shape s;
    bly_status st = BLY_EFULL;
    for (int by = 0; st == BLY_EFULL && quotient_scaled(&dst->shape, by, &s);
         by++)
        st = quotient_join(dst, src, &s, &set, &both);
    return st ? st : bly_become(dst, both);
}

/* Walks two tables in order of their fingerprints. */
typedef struct quotient_pair {
    bly_quotient_walk a, b;
    bool more_a, more_b;
} quotient_pair;

static quotient_pair quotient_pair_of(const bly_filter *a, const bly_filter *b)
{
    const bly_quotient_table ta = quotient_table_of(a);
    const bly_quotient_table tb = quotient_table_of(b);
    quotient_pair p = { bly_quotient_walk_of(&ta), bly_quotient_walk_of(&tb),
                        true, true };
    p.more_a = bly_quotient_walk_next(&p.a);
    p.more_b = bly_quotient_walk_next(&p.b);
    return p;
}

/* Go to the next fingerprint that both have. */
static bool quotient_meet(quotient_pair *p)
{
    while (p->more_a && p->more_b && p->a.F != p->b.F)
        if (p->a.F < p->b.F)
            p->more_a = bly_quotient_walk_next(&p->a);
        else
            p->more_b = bly_quotient_walk_next(&p->b);
    return p->more_a && p->more_b;
}

static void quotient_part(quotient_pair *p)
{
    p->more_a = bly_quotient_walk_next(&p->a);
    p->more_b = bly_quotient_walk_next(&p->b);
}

/* Fingerprints that both have, each with the lower of its two counts: no key
 * of both is lost, and removing one takes away no more than it added. */
static bly_status quotient_intersect(bly_filter *dst, const bly_filter *src)
{
    const bly_setting set = bly_setting_of(dst);
    bly_filter *both;
    bly_status st = bly_filter_make(dst->kind, &dst->shape, &set, &both);
    if (st)
        return st;
    const bly_quotient_table t = quotient_table_of(both);
    bly_quotient_writer to = bly_quotient_writer_of(&t, both->state);
    quotient_pair p = quotient_pair_of(dst, src);
    for (; !st && quotient_meet(&p); quotient_part(&p))
        st = bly_quotient_write(&to, p.a.F,
                                p.a.count < p.b.count ? p.a.count : p.b.count);
    st = quotient_finish(&to, both, st, &both);
    if (st)
        return st;
    /* The additions to either filter say nothing about the intersection. */
    both->nadded = both->state[BLY_QUOTIENT_TOTAL];
    return bly_become(dst, both);
}

static bly_status quotient_compare(const bly_filter *a, const bly_filter *b,
                                   bly_likeness *out)
{
    quotient_pair p = quotient_pair_of(a, b);
    bly_ones used = { .a = (double)a->state[BLY_QUOTIENT_DISTINCT],
                      .b = (double)b->state[BLY_QUOTIENT_DISTINCT] };
    double both = 0;
    for (; quotient_meet(&p); quotient_part(&p))
        both++;
    used.either = used.a + used.b - both;
    bly_likeness_of_prints(&used, quotient_range(&a->shape), out);
    return BLY_OK;
}

/* Half the slots, with remainders as long as before: fingerprints lose their
 * last bit, which equals the hash scaled to half the range. */
static bly_status quotient_fold(const bly_filter *f, bly_filter **out)
{
    const uint64_t nslots = f->shape.p[QUOTIENT_SLOTS] / 2;
    const bly_shape half = quotient_shape(nslots, f->shape.p[QUOTIENT_R],
                                          f->shape.p[QUOTIENT_COUNTS]);
    bly_filter *to;
    bly_status st =
        bly_fold_begin(f, f->shape.p[QUOTIENT_SLOTS] / BLY_RUNS_BLOCK,
                       "blocks of 64 slots", &half, &to);
    if (st)
        return st;
    /* Half the slots may not hold as many keys as were planned for. */
    if (to->items > bly_quotient_most(nslots)) {
        to->items = bly_quotient_most(nslots);
        to->fpr = quotient_rate(&half, (double)to->items);
    }
    const bly_quotient_table tf = quotient_table_of(f);
    const bly_quotient_table tt = quotient_table_of(to);
    bly_quotient_walk from = bly_quotient_walk_of(&tf);
    bly_quotient_writer writer = bly_quotient_writer_of(&tt, to->state);
    bool more = bly_quotient_walk_next(&from);
    while (!st && more) {
        const uint64_t F = from.F / 2;
        uint64_t count = from.count;
        more = bly_quotient_walk_next(&from);
        /* 2F and 2F + 1 become one fingerprint; they are neighbours in the
         * list. */
        if (more && from.F / 2 == F) {
            count += from.count;
            more = bly_quotient_walk_next(&from);
        }
        if (count > BLY_QUOTIENT_MAX_COUNT)
            count = BLY_QUOTIENT_MAX_COUNT;
        st = bly_quotient_write(&writer, F, count);
    }
    st = quotient_finish(&writer, to, st, out);
    return st == BLY_EFULL
               ? bly_fail(BLY_EFULL,
                          "%llu fingerprints do not fit into half the slots: "
                          "a quotient filter can be folded while it is less "
                          "than half full",
                          (unsigned long long)f->state[BLY_QUOTIENT_DISTINCT])
               : st;
}

/* Does this shape meet w? If w asks for nothing, twice the slots do. */
static bool quotient_meets(const bly_shape *s, const bly_want *w, int by)
{
    if (w->given[QUOTIENT_R])
        return s->p[QUOTIENT_R] == w->opt[QUOTIENT_R];
    if (w->items)
        return quotient_slots_for((double)w->items, quotient_mean(w),
                                  s->p[QUOTIENT_R], s->p[QUOTIENT_COUNTS]) <=
               (double)s->p[QUOTIENT_SLOTS];
    return w->bits ? true : by >= 1;
}

static bly_status quotient_resize(const bly_filter *f, const bly_kind *to,
                                  const bly_want *w, bly_filter **out)
{
    (void)to;
    bly_shape s, chosen;
    bool found = false;
    int by = 0;
    /* The smallest that holds the items, or the largest that memory allows. */
    for (int i = -BLY_RUNS_MAX_R; i <= BLY_RUNS_MAX_R; i++) {
        if (!quotient_scaled(&f->shape, i, &s) || !quotient_meets(&s, w, i) ||
            (w->bits && quotient_bits(&s) > w->bits) ||
            f->state[BLY_QUOTIENT_DISTINCT] >
                bly_quotient_most(s.p[QUOTIENT_SLOTS]))
            continue;
        chosen = s;
        by = i;
        found = true;
        /* Sizes rise with i: first the smallest, last the largest. */
        if (!w->bits || w->items)
            break;
    }
    if (!found)
        return bly_fail(w->items || w->bits || w->given[QUOTIENT_R] ? BLY_EINVAL
                                                                    : BLY_EFULL,
                        "no table of this one's fingerprints is what was "
                        "asked for: slots are doubled for a bit of the "
                        "remainder each time, of which there are %llu",
                        (unsigned long long)f->shape.p[QUOTIENT_R]);
    /* A capacity that was not given grows or shrinks with the slots. */
    bly_setting set = bly_setting_of(f);
    if (w->items)
        set.items = w->items;
    else
        set.items = by < 0 ? f->items >> -by : f->items << by;
    set.items = set.items ? set.items : 1;
    set.fpr = quotient_rate(&chosen, (double)set.items);
    if (w->fpr > 0 && set.fpr > w->fpr)
        return bly_fail(BLY_EINVAL,
                        "with %llu items the rate will be %.3g: without the "
                        "keys it cannot be lowered to %.3g",
                        (unsigned long long)set.items, set.fpr, w->fpr);
    return quotient_join(f, NULL, &chosen, &set, out);
}

/* ---------------------------------------------------------------- knowing */

static bool quotient_sound(const bly_filter *f)
{
    const uint64_t *state = f->state;
    return f->nlayers == 0 &&
           state[BLY_QUOTIENT_USED] <=
               bly_quotient_most(f->shape.p[QUOTIENT_SLOTS]) &&
           state[BLY_QUOTIENT_DISTINCT] <= state[BLY_QUOTIENT_USED] &&
           state[BLY_QUOTIENT_DISTINCT] <= state[BLY_QUOTIENT_TOTAL];
}

static bool quotient_check(const bly_filter *f)
{
    /* The sums are stored, but can also be computed: the two must agree. */
    const bly_quotient_table t = quotient_table_of(f);
    uint64_t sums[BLY_QUOTIENT_SUMS] = { 0 };
    return bly_quotient_check(&t, sums) &&
           memcmp(sums, f->state, sizeof sums) == 0;
}

/* n keys have M (1 - (1 - 1/M)^n) different fingerprints. So if a share s of
 * all M fingerprints is present, there are about n = -M ln(1 - s) keys, with
 * variance M (s / (1 - s) + ln(1 - s)). For few keys, that is the number of
 * keys that share a fingerprint. */
static void quotient_stat(const bly_filter *f, bly_stats *out)
{
    const double range = quotient_range(&f->shape);
    const double different = (double)f->state[BLY_QUOTIENT_DISTINCT];
    const double share = different / range;
    out->items_estimate = out->items_sd = INFINITY;
    if (share < 1) {
        const double rest = log1p(-share);
        out->items_estimate = -range * rest;
        out->items_sd = sqrt(fmax(0, range * (share / (1 - share) + rest)));
    }
    out->fill = (double)f->state[BLY_QUOTIENT_USED] /
                (double)f->shape.p[QUOTIENT_SLOTS];
    out->fpr_now = different / range;
}

const bly_kind bly_kind_quotient = {
    .id = 9, /* on disk: never changed, never reused */
    .name = "quotient",
    .summary = "sorted fingerprints; can remove, count, merge and resize",
    .params = quotient_params,
    .nparams = sizeof quotient_params / sizeof quotient_params[0],
    .nstate = BLY_QUOTIENT_SUMS,
    .plan = quotient_plan,
    .sane = quotient_sane,
    .rate = quotient_rate,
    .bits = quotient_bits,
    .describe = quotient_describe,
    .sound = quotient_sound,
    .check = quotient_check,
    .stat = quotient_stat,
    .one = quotient_one,
    .add = quotient_add,
    .has = quotient_has,
    .remove = quotient_remove,
    .increase = quotient_increase,
    .count = quotient_count,
    .akin = quotient_akin,
    .merge = quotient_merge,
    .intersect = quotient_intersect,
    .compare = quotient_compare,
    .fold = quotient_fold,
    .resize = quotient_resize,
};
