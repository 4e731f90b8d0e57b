/*
 * counting.c - counters instead of bits, so that keys can be taken out
 *
 * m counters of 2, 3, 4, 8 or 16 bits. A key names k of them, the same that it
 * names in a classic filter of m bits (probe.h); Adding raises each by one,
 * removing lowers each by one, and a key may be there if none is zero. If two
 * positions of a key are equal, only one is used, so that a counter counts
 * keys.
 *
 *     width 4:   byte 0           byte 1
 *                +-------+------+ +-------+------+
 *                | c1    | c0   | | c3    | c2   |      two to a byte
 *                +-------+------+ +-------+------+
 *                 7    4  3   0    7    4  3   0
 *
 * Stuck counters. A counter that reaches 2^width - 1 has lost count and never
 * changes again. This guarantees that every key is found: a counter that
 * wrapped round, or was lowered after it had been capped, could reach zero
 * under keys that are still there. The price is that stuck counters never
 * return to zero. state[0] is their number; check() counts them again.
 *
 * Removing reads all counters first. If one is zero the key is not there, and
 * nothing is changed. A key that was never added but whose counters are all in
 * use cannot be told from one that was: removing it takes from other keys, and
 * one of them may then be denied.
 *
 * Size and rate are those of a classic filter of m cells, times the width:
 * 50,000 keys at 1 % take 479,253 counters, k = 7, 239,627 bytes at 4 bits.
 *
 * Overflow [1]. The chance that a given counter is hit j times or more by kn
 * hits is at most C(kn, j) m^-j <= (e lambda / j)^j with lambda = kn/m. At
 * lambda = ln 2 that is 1.37e-15 for j = 16, where 4 bits lose information,
 * and 3.06e-14 for j = 15, where a counter sticks. The chance that any of m
 * counters does is at most m times that: one filter in 30 million, if each has
 * a million counters. Over a history of t different sets, it is t times that.
 * plan and info give the bound for the real lambda.
 *
 * Merging adds counters; an intersection takes the smaller of two. That is
 * never less than the keys in both filters need, so all of them are found and
 * can be removed. The counters that are not zero give a filter of bits, which
 * is bit for bit the classic filter of the keys in it while no counter is
 * stuck.
 *
 * [1] Fan, Cao, Almeida and Broder, Summary Cache: A Scalable Wide-Area Web
 *     Cache Sharing Protocol, 1998
 */
#include <math.h>

#include "core/status.h"
#include "kinds/classic.h"
#include "kinds/counters.h"
#include "kinds/fold.h"

enum {
    COUNTING_COUNTERS,
    COUNTING_K,
    COUNTING_WIDTH,
    COUNTING_RULE,
    COUNTING_FOLDS
};
enum { COUNTING_STUCK }; /* state */

static const bly_param counting_params[] = {
    [COUNTING_COUNTERS] = BLY_PARAM("counters", BLY_UINT, .min = 1,
                                    .max = (double)BLY_PROBE_MAX_CELLS,
                                    .help = "counters in the array (m)"),
    [COUNTING_K] =
        BLY_PARAM("k", BLY_UINT, .settable = true, .automatic = true, .min = 1,
                  .max = BLY_PROBE_MAX_K, .help = "counters a key raises"),
    [COUNTING_WIDTH] =
        BLY_PARAM("width", BLY_UINT, .settable = true, .def = 4, .min = 2,
                  .max = 16, .help = "bits of a counter: 2, 3, 4, 8 or 16"),
    [COUNTING_RULE] = BLY_PROBE_RULE_PARAM,
    [COUNTING_FOLDS] = BLY_FOLDS_PARAM,
};

static bool counting_width_ok(uint64_t width)
{
    return width == 2 || width == 3 || width == 4 || width == 8 || width == 16;
}

static bly_shape counting_shape(uint64_t m, uint64_t k, uint64_t width)
{
    return (bly_shape){ .p = { [COUNTING_COUNTERS] = m,
                               [COUNTING_K] = k,
                               [COUNTING_WIDTH] = width },
                        .nbytes = bly_cells_nbytes(m, (unsigned)width) };
}

static bly_status counting_plan(const bly_want *w, bly_shape *out)
{
    const uint64_t width = w->opt[COUNTING_WIDTH];
    bly_size size;
    if (!counting_width_ok(width))
        return bly_fail(BLY_EINVAL,
                        "width = %llu: a counter has 2, 3, 4, 8 or 16 bits",
                        (unsigned long long)width);
    if (w->bits && w->bits < width)
        return bly_fail(BLY_EINVAL, "%llu bits do not hold a counter of %llu",
                        (unsigned long long)w->bits, (unsigned long long)width);
    const bly_status st =
        bly_probe_plan(&bly_kind_counting, w, w->bits / width,
                       w->opt[COUNTING_K], w->opt[COUNTING_RULE] != 0,
                       w->opt[COUNTING_FOLDS], bly_probe_rate, &size);
    if (!st)
        *out = counting_shape((uint64_t)size.m, size.k, width);
    return st;
}

static bool counting_sane(const bly_shape *s)
{
    const uint64_t m = s->p[COUNTING_COUNTERS], width = s->p[COUNTING_WIDTH];
    return bly_probe_sane(m, s->p[COUNTING_K]) && counting_width_ok(width) &&
           s->nbytes == bly_cells_nbytes(m, (unsigned)width);
}

static double counting_rate(const bly_shape *s, double n)
{
    return bly_probe_rate(n, (double)s->p[COUNTING_COUNTERS],
                          (unsigned)s->p[COUNTING_K]);
}

static uint64_t counting_bits(const bly_shape *s)
{
    return s->p[COUNTING_COUNTERS] * s->p[COUNTING_WIDTH];
}

static void counting_describe(const bly_shape *s, const bly_want *w,
                              const bly_filter *f, bly_facts *out)
{
    const double n = (double)(w ? w->items : f->items);
    const double m = (double)s->p[COUNTING_COUNTERS];
    const double top = bly_cell_top((unsigned)s->p[COUNTING_WIDTH]);
    const double lambda = (double)s->p[COUNTING_K] * n / m;
    bly_fact_uint(out, "ceiling", (uint64_t)top);
    bly_fact_real(out, "hits_per_counter", lambda);
    /* The chance that some counter overflows, and that some counter sticks,
     * once all keys are in; and how many are expected to be stuck then. */
    bly_fact_real(out, "overflow_bound",
                  fmin(1, m * bly_overflow_bound(lambda, top + 1)));
    bly_fact_real(out, "stuck_bound",
                  fmin(1, m * bly_overflow_bound(lambda, top)));
    bly_fact_real(out, "stuck_expected", m * bly_poisson_tail(lambda, top));
    if (f)
        bly_fact_uint(out, "stuck", f->state[COUNTING_STUCK]);
}

/* ------------------------------------------------------------ operations */

/* One batch of any operation; what it does not need stays zero. */
typedef struct counting_batch {
    bly_filter *f;
    const unsigned char *cells; /* of f, which count() may only read */
    unsigned width;
    const uint64_t *by;
    uint64_t *fresh, *counts;
    bly_status *each;
    uint64_t changed; /* keys that changed something */
    uint64_t stuck;   /* counters that stuck in this batch */
} counting_batch;

/* Cells are bytes, and the compiler must assume that a store to a byte may
 * change anything, *b included. So sums are kept in locals until the key is
 * done. */
static inline __attribute__((always_inline)) void
counting_raise(void *ctx, size_t i, bly_spots at)
{
    counting_batch *const b = ctx;
    unsigned char *const cells = b->f->data;
    const unsigned width = b->width;
    const uint32_t top = bly_cell_top(width);
    const uint64_t by = b->by ? b->by[i] : 1;
    uint64_t stuck = 0;
    bool new_key = false, changed = false;
    BLY_UNROLL(8)
    for (uint64_t j = 0; j < at.n; j++) {
        const uint64_t spot = bly_spot(at, j);
        const uint32_t c = bly_cell_get(cells, spot, width);
        /* The sum stops at the top: from there on the counter is stuck. */
        const uint32_t sum = bly_cell_sum(c, by, top);
        bly_cell_put(cells, spot, width, sum);
        /* Without branches: which counters are 0 is up to chance. */
        new_key |= c == 0;
        changed |= c != sum;
        stuck += (c != top) & (sum == top);
    }
    b->changed += changed;
    b->stuck += stuck;
    if (b->fresh)
        b->fresh[i / 64] |= (uint64_t)new_key << i % 64;
}

/* The same for an increase of 1, in place for four bits: a counter that is not
 * at its top cannot carry into its neighbour. */
static inline __attribute__((always_inline)) void
counting_raise_one(void *ctx, size_t i, bly_spots at)
{
    counting_batch *const b = ctx;
    if (b->width != 4) {
        counting_raise(ctx, i, at);
        return;
    }
    unsigned char *const cells = b->f->data;
    unsigned most = 0, stuck = 0, clear = 0;
    BLY_UNROLL(8)
    for (uint64_t j = 0; j < at.n; j++) {
        const uint64_t spot = bly_spot(at, j);
        const unsigned shift = (unsigned)(spot & 1) * 4;
        const unsigned byte = cells[spot >> 1], c = byte >> shift & 15;
        const unsigned rises = c != 15;
        cells[spot >> 1] = (unsigned char)(byte + (rises << shift));
        clear |= c == 0;
        most |= rises;
        stuck += c == 14; /* 15 from now on */
    }
    b->changed += most;
    b->stuck += stuck;
    if (b->fresh)
        b->fresh[i / 64] |= (uint64_t)clear << i % 64;
}

static inline __attribute__((always_inline)) uint32_t
counting_least(const counting_batch *b, bly_spots at)
{
    uint32_t least = UINT32_MAX;
    BLY_UNROLL(8)
    for (uint64_t j = 0; j < at.n; j++) {
        const uint32_t c = bly_cell_get(b->cells, bly_spot(at, j), b->width);
        least = c < least ? c : least;
    }
    return least;
}

static inline __attribute__((always_inline)) void
counting_lower(void *ctx, size_t i, bly_spots at)
{
    counting_batch *const b = ctx;
    unsigned char *const cells = b->f->data;
    const uint32_t top = bly_cell_top(b->width);
    if (!counting_least(b, at)) {
        b->each[i] = BLY_EABSENT;
        return;
    }
    /* A stuck counter has lost count: lowered, it could reach 0 under keys that
     * are still there. */
    for (uint64_t j = 0; j < at.n; j++) {
        const uint32_t c = bly_cell_get(cells, bly_spot(at, j), b->width);
        bly_cell_put(cells, bly_spot(at, j), b->width, c - (c != top));
    }
    b->each[i] = BLY_OK;
    b->changed++;
}

static inline __attribute__((always_inline)) void
counting_read(void *ctx, size_t i, bly_spots at)
{
    counting_batch *const b = ctx;
    const uint32_t least = counting_least(b, at);
    /* If even the smallest of its counters is stuck, the count is unknown. */
    b->counts[i] = least == bly_cell_top(b->width) ? UINT64_MAX : least;
}

/* Run a batch, with the default width as a literal. `true`: equal positions of
 * a key count once, so that a counter counts keys. */
static inline __attribute__((always_inline)) void
counting_run(const bly_filter *f, counting_batch *b, const uint64_t *h,
             size_t n, bly_probe_visit *visit)
{
    const uint64_t k = f->shape.p[COUNTING_K];
    const bly_modulus range = bly_modulus_of(f->shape.p[COUNTING_COUNTERS]);
    b->cells = f->data;
    const bly_steps steps = { .range = range, .k = k };
    if (f->shape.p[COUNTING_WIDTH] == 4) {
        b->width = 4;
        bly_probe_each(f->data, 4, steps, true, h, n, NULL, visit, b);
    } else {
        b->width = (unsigned)f->shape.p[COUNTING_WIDTH];
        bly_probe_each(f->data, b->width, steps, true, h, n, NULL, visit, b);
    }
}

static bly_status counting_add(bly_filter *f, const uint64_t *h, size_t n,
                               uint64_t *fresh, size_t *ndone)
{
    counting_batch b = { .f = f, .fresh = fresh };
    counting_run(f, &b, h, n, counting_raise_one);
    f->state[COUNTING_STUCK] += b.stuck;
    bly_filter_added(f, b.changed);
    *ndone = n;
    return BLY_OK;
}

static bly_status counting_increase(bly_filter *f, const uint64_t *h,
                                    const uint64_t *by, size_t n, size_t *ndone)
{
    counting_batch b = { .f = f, .by = by };
    counting_run(f, &b, h, n, counting_raise);
    f->state[COUNTING_STUCK] += b.stuck;
    bly_filter_added(f, b.changed);
    *ndone = n;
    return BLY_OK;
}

static void counting_remove(bly_filter *f, const uint64_t *h, size_t n,
                            bly_status *each)
{
    counting_batch b = { .f = f, .each = each };
    counting_run(f, &b, h, n, counting_lower);
    bly_filter_removed(f, b.changed);
}

static void counting_count(const bly_filter *f, const uint64_t *h, size_t n,
                           uint64_t *counts)
{
    counting_batch b = { .counts = counts };
    counting_run(f, &b, h, n, counting_read);
}

static void counting_has(const bly_filter *f, const uint64_t *h, size_t n,
                         uint64_t *maybe)
{
    bly_counters_has(f->data, f->shape.p[COUNTING_COUNTERS],
                     (unsigned)f->shape.p[COUNTING_WIDTH],
                     f->shape.p[COUNTING_K], h, n, maybe);
}

static void counting_fetch(const bly_filter *f, const uint64_t *h, size_t n)
{
    const bly_steps steps = {
        .range = bly_modulus_of(f->shape.p[COUNTING_COUNTERS]),
        .k = f->shape.p[COUNTING_K],
    };
    bly_probe_announce(f->data, (unsigned)f->shape.p[COUNTING_WIDTH], steps, h,
                       n);
}

/* One key, with counters of four bits: aid is the inverse of the number of
 * counters. */
static inline __attribute__((always_inline)) bly_modulus
counting_one_range(const bly_filter *f)
{
    return (bly_modulus){ f->shape.p[COUNTING_COUNTERS], f->aid };
}

BLY_ONE_BODY bool counting_has_body(const bly_filter *f, uint64_t h, uint64_t k)
{
    const bly_probe_query q =
        bly_counters_query4(f->data, counting_one_range(f), k);
    return bly_probe_alone(&q, h);
}

BLY_ONE_BODY bly_status counting_add_body(bly_filter *f, uint64_t h, uint64_t k)
{
    uint64_t at[BLY_PROBE_MAX_K];
    counting_batch b = { .f = f, .width = 4 };
    const bly_spots spots =
        bly_probe_different(h, counting_one_range(f), k, at);
    /* There are seldom fewer than k; here their number is a literal where k is
     * one. */
    if (__builtin_expect(spots.n == k, 1))
        counting_raise_one(&b, 0, (bly_spots){ at, 1, k });
    else
        counting_raise_one(&b, 0, spots);
    f->state[COUNTING_STUCK] += b.stuck;
    f->nadded += b.changed;
    return BLY_OK;
}

/* counting_lower() for counters of four bits, in place: none of those that are
 * lowered is 0, so none borrows from its neighbour. */
BLY_ONE_BODY bool counting_lower_four(unsigned char *cells, bly_spots at)
{
    unsigned clear = 0;
    BLY_UNROLL(8)
    for (uint64_t j = 0; j < at.n; j++) {
        const uint64_t spot = bly_spot(at, j);
        clear |= (cells[spot >> 1] >> (spot & 1) * 4 & 15) == 0;
    }
    if (clear)
        return false;
    /* Two counters may share a byte, which is therefore read again. */
    BLY_UNROLL(8)
    for (uint64_t j = 0; j < at.n; j++) {
        const uint64_t spot = bly_spot(at, j);
        const unsigned shift = (unsigned)(spot & 1) * 4;
        const unsigned byte = cells[spot >> 1];
        const unsigned falls = (byte >> shift & 15) != 15;
        cells[spot >> 1] = (unsigned char)(byte - (falls << shift));
    }
    return true;
}

BLY_ONE_BODY bly_status counting_remove_body(bly_filter *f, uint64_t h,
                                             uint64_t k)
{
    uint64_t at[BLY_PROBE_MAX_K];
    const bly_spots spots =
        bly_probe_different(h, counting_one_range(f), k, at);
    const bool lowered =
        __builtin_expect(spots.n == k, 1)
            ? counting_lower_four(f->data, (bly_spots){ at, 1, k })
            : counting_lower_four(f->data, spots);
    if (!lowered)
        return BLY_EABSENT;
    bly_filter_removed_one(f);
    return BLY_OK;
}

#define COUNTING_HAS_K(f, h) counting_has_body(f, h, (f)->shape.p[COUNTING_K])
#define COUNTING_HAS_7(f, h) counting_has_body(f, h, 7)
#define COUNTING_ADD_K(f, h) counting_add_body(f, h, (f)->shape.p[COUNTING_K])
#define COUNTING_ADD_7(f, h) counting_add_body(f, h, 7)
#define COUNTING_REMOVE_K(f, h) \
    counting_remove_body(f, h, (f)->shape.p[COUNTING_K])
#define COUNTING_REMOVE_7(f, h) counting_remove_body(f, h, 7)
BLY_ONE_HAS(counting_has_one, COUNTING_HAS_K)
BLY_ONE_HAS(counting_has_7, COUNTING_HAS_7)
BLY_ONE_ADD(counting_add_one, COUNTING_ADD_K)
BLY_ONE_ADD(counting_add_7, COUNTING_ADD_7)
BLY_ONE_REMOVE(counting_remove_one, COUNTING_REMOVE_K)
BLY_ONE_REMOVE(counting_remove_7, COUNTING_REMOVE_7)

static void counting_one(const bly_filter *f, bly_one *out)
{
    if (f->shape.p[COUNTING_WIDTH] != 4)
        return;
    out->aid = bly_modulus_of(f->shape.p[COUNTING_COUNTERS]).inverse;
    if (f->shape.p[COUNTING_K] == 7) {
        BLY_ONE_SET_HAS(out, counting_has_7);
        BLY_ONE_SET_ADD(out, counting_add_7);
        BLY_ONE_SET_REMOVE(out, counting_remove_7);
    } else {
        BLY_ONE_SET_HAS(out, counting_has_one);
        BLY_ONE_SET_ADD(out, counting_add_one);
        BLY_ONE_SET_REMOVE(out, counting_remove_one);
    }
}

static void counting_reach(const bly_filter *f, const uint64_t *h, size_t n,
                           uint64_t *bad)
{
    const bly_steps steps = {
        .range = bly_modulus_of(f->shape.p[COUNTING_COUNTERS]),
        .k = f->shape.p[COUNTING_K],
    };
    bly_probe_reach(f, 0, (unsigned)f->shape.p[COUNTING_WIDTH], steps, h, n,
                    bad);
}

/* ----------------------------------------------------------- whole filters */

static bly_cells_tally counting_tally(const bly_filter *f)
{
    return bly_cells_count(f->data, f->shape.p[COUNTING_COUNTERS],
                           (unsigned)f->shape.p[COUNTING_WIDTH]);
}

static bool counting_sound(const bly_filter *f)
{
    return !f->nlayers &&
           f->state[COUNTING_STUCK] <= f->shape.p[COUNTING_COUNTERS];
}

static bool counting_check(const bly_filter *f)
{
    return bly_cells_tail_clear(f->data, f->shape.p[COUNTING_COUNTERS],
                                (unsigned)f->shape.p[COUNTING_WIDTH]) &&
           counting_tally(f).stuck == f->state[COUNTING_STUCK];
}

static void counting_stat(const bly_filter *f, bly_stats *out)
{
    bly_probe_stat(counting_tally(f).used, f->shape.p[COUNTING_COUNTERS],
                   f->shape.p[COUNTING_K], out);
}

static bly_status counting_merge_part(bly_filter *dst, const bly_part *p)
{
    const unsigned width = (unsigned)dst->shape.p[COUNTING_WIDTH];
    bly_cells_add(dst->data + p->at, p->bytes,
                  bly_probe_cells_in(p, dst->shape.p[COUNTING_COUNTERS], width),
                  width);
    /* Sums that exceed the maximum stick there, so stuck counters are counted
     * anew. */
    if (p->last) {
        dst->state[COUNTING_STUCK] = counting_tally(dst).stuck;
        bly_filter_added(dst, p->src->nadded);
    }
    return BLY_OK;
}

/* A key that is x times in one filter and y times in the other is min(x, y)
 * times in the intersection. The smaller counter is at least the sum of these
 * minima over all its keys, so no key is lost. */
static bly_status counting_intersect_part(bly_filter *dst, const bly_part *p)
{
    const unsigned width = (unsigned)dst->shape.p[COUNTING_WIDTH];
    bly_cells_least(
        dst->data + p->at, p->bytes,
        bly_probe_cells_in(p, dst->shape.p[COUNTING_COUNTERS], width), width);
    if (p->last) {
        dst->state[COUNTING_STUCK] = counting_tally(dst).stuck;
        bly_filter_at_most(dst, p->src->nadded);
    }
    return BLY_OK;
}

static bly_status counting_compare(const bly_filter *a, const bly_filter *b,
                                   bly_likeness *out)
{
    bly_probe_compare(a, b, a->shape.p[COUNTING_COUNTERS],
                      a->shape.p[COUNTING_K],
                      (unsigned)a->shape.p[COUNTING_WIDTH], out);
    return BLY_OK;
}

/* The sum of two counters counts the keys of both. A key that had a probe in
 * each is counted twice. When it is removed, one of the two counts stays. */
static bly_status counting_fold(const bly_filter *f, bly_filter **out)
{
    const uint64_t m = f->shape.p[COUNTING_COUNTERS];
    const unsigned width = (unsigned)f->shape.p[COUNTING_WIDTH];
    const bly_shape half = counting_shape(m / 2, f->shape.p[COUNTING_K], width);
    const bly_status st = bly_fold_begin(f, m, "counters", &half, out);
    if (st)
        return st;
    bly_cells_fold_sum((*out)->data, f->data, m / 2, width);
    (*out)->state[COUNTING_STUCK] = counting_tally(*out).stuck;
    return BLY_OK;
}

static bly_status counting_convert(const bly_filter *f, const bly_kind *to,
                                   const bly_want *w, bly_filter **out)
{
    return bly_classic_from_cells(
        f, f->shape.p[COUNTING_COUNTERS], f->shape.p[COUNTING_K],
        (unsigned)f->shape.p[COUNTING_WIDTH], to, w, out);
}

const bly_kind bly_kind_counting = {
    .id = 3, /* on disk: never changed, never reused */
    .name = "counting",
    .summary = "a classic filter of counters, so that keys can be removed",
    .params = counting_params,
    .nparams = sizeof counting_params / sizeof counting_params[0],
    .nstate = 1,
    .plan = counting_plan,
    .sane = counting_sane,
    .rate = counting_rate,
    .bits = counting_bits,
    .describe = counting_describe,
    .sound = counting_sound,
    .check = counting_check,
    .reach = BLY_SYSTEM(counting_reach),
    .stat = counting_stat,
    .one = counting_one,
    .add = counting_add,
    .has = counting_has,
    .fetch = BLY_SYSTEM(counting_fetch),
    .remove = counting_remove,
    .increase = counting_increase,
    .count = counting_count,
    .merge = bly_merge_as_part,
    .merge_part = counting_merge_part,
    .intersect = bly_intersect_as_part,
    .intersect_part = counting_intersect_part,
    .compare = counting_compare,
    .fold = counting_fold,
    .convert = counting_convert,
};
