/*
 * countmin.c - how often, never too low
 *
 * d rows of w counters. A key has one counter in each row: adding it v times
 * adds v to all d of them, and its count is the least of the d. Other keys may
 * share some of its counters, so the count is never below the truth.
 *
 *     hash h -> g_1 = h C, g_2 = h C^2, ...     (mod 2^64)
 *     row i:    counter g_i * w / 2^64
 *
 *                0                       w-1
 *     row 0    | 3 | 0 | 7 | 1 | ...       |     count = min(7, 4, 9) = 4
 *     row 1    | 0 | 4 | 0 | 2 | ...       |
 *     row 2    | 1 | 0 | 0 | 9 | ...       |
 *
 * The powers of C give each row its own hash function. Two keys share all
 * counters only if the difference of their hashes, times C^i, is small in every
 * row, and C is a multiplier whose multiples are spread as evenly as possible
 * (bits.h). Double hashing (h1 + i h2) would not do: two keys that agree in two
 * rows would agree in all.
 *
 * Size [1]: with w = ceil(e / error) and d = ceil(ln(1 / delta)), a count is
 * above the truth by more than error * N with probability at most delta, where
 * N is the sum of all that was added. error 0.001 and delta 0.01 take 2719 x 5
 * counters of 64 bits, 106 KiB, however many keys are added.
 *
 * Conservative update [2] raises only those counters that the new count needs:
 * counter = max(counter, count + v). Counts stay at or above the truth and the
 * overestimate falls to about half. The price: a counter's value no longer
 * tells which keys it came from. So writers must take turns, and the sum of two
 * such sketches is a bound, but not the sketch of both streams.
 *
 * "Is it in?" A count of 0 is certain, so `has` is count > 0. In a sketch with
 * far more keys than counters hardly any counter is 0, and `has` says maybe to
 * everything. The rate with n distinct keys is (1 - (1 - 1/w)^n)^d, and
 * planning for items and a rate finds the smallest w d that keeps it: 1 % takes
 * 9.6 counters per key. For plain sets, another kind is the better choice.
 *
 * N is kept in state[0], and no addition may bring it above 2^64 - 1. So no
 * 64-bit counter can overflow. Counters of 32 bits are checked one by one.
 *
 * Removing [1] lowers all d counters of a key by one, and N with them. As long
 * as nothing is removed that was not added, counts stay at or above the truth,
 * and the error bound still holds, with N the sum of what is left. A key with a
 * counter of 0 is absent. The sketch cannot tell whether any other key was
 * really added, and a wrong removal makes the counts of other keys too low.
 * With conservative update nothing can be removed: the counters that a key did
 * not raise count only other keys, and nobody knows which these are.
 *
 * There is no intersection: the smaller of two counters is never too low for
 * the smaller of two counts, but rows would no longer have the same sum N, and
 * without N there is no bound on how much too high a count may be.
 *
 * In memory and on disk: row after row, counters little-endian.
 *
 * [1] Cormode and Muthukrishnan, An improved data stream summary: the
 *     count-min sketch and its applications, 2005
 * [2] Estan and Varghese, New directions in traffic measurement and
 *     accounting, 2002
 */
#include <math.h>
#include <stdatomic.h>

#include <bloomery/views.h>

#include "core/maths.h"
#include "core/status.h"
#include "kinds/countmin.h"
#include "kinds/fold.h"

#define COUNTMIN_MAX_WIDTH (UINT64_C(1) << 40)
#define COUNTMIN_MAX_DEPTH 32 /* delta = 1.3e-14 */
#define COUNTMIN_E 2.71828182845904524

#define COUNTMIN_DEFAULT_ERROR 0.001
#define COUNTMIN_DEFAULT_DELTA 0.01
#define COUNTMIN_DEFAULT_FPR 0.01

static const bly_param countmin_params[] = {
    [COUNTMIN_WIDTH] = BLY_PARAM(
        "width", BLY_UINT, .settable = true, .automatic = true, .min = 1,
        .max = (double)COUNTMIN_MAX_WIDTH, .help = "counters in a row (w)"),
    [COUNTMIN_DEPTH] =
        BLY_PARAM("depth", BLY_UINT, .settable = true, .automatic = true,
                  .min = 1, .max = COUNTMIN_MAX_DEPTH, .help = "rows (d)"),
    [COUNTMIN_COUNTER] = BLY_PARAM(
        "counter", BLY_CHOICE, .settable = true, .def = COUNTMIN_64, .max = 1,
        .choices = BLY_WORDS("32", "64"), .help = "bits of a counter"),
    [COUNTMIN_UPDATE] = BLY_PARAM(
        "update", BLY_CHOICE, .settable = true, .max = 1,
        .choices = BLY_WORDS("plain", "conservative"),
        .help =
            "raise all counters of a key, or only those that its count needs"),
    [COUNTMIN_ERROR] =
        BLY_PARAM("error", BLY_REAL, .settable = true, .automatic = true,
                  .planning = true, .min = 1e-11, .max = 1,
                  .help = "largest overestimate, as a share of all that is "
                          "counted; 0.001 if nothing else says the width"),
    [COUNTMIN_DELTA] =
        BLY_PARAM("delta", BLY_REAL, .settable = true, .automatic = true,
                  .planning = true, .min = 1e-13, .max = 0.999,
                  .help = "probability that a count exceeds that; 0.01 if "
                          "nothing else says the depth"),
    [COUNTMIN_CONFIDENCE] = BLY_PARAM(
        "confidence", BLY_REAL, .settable = true, .automatic = true,
        .planning = true, .min = 0.001, .max = 1 - 1e-13, .help = "1 - delta"),
    [COUNTMIN_FOLDS] = BLY_FOLDS_PARAM,
};

/* ----------------------------------------------------------------- shapes */

static uint64_t countmin_counter_bytes(const bly_shape *s)
{
    return s->p[COUNTMIN_COUNTER] == COUNTMIN_64 ? 8 : 4;
}

static double countmin_rate(const bly_shape *s, double n)
{
    return bly_fpr_partitioned(n, (double)s->p[COUNTMIN_WIDTH],
                               (double)s->p[COUNTMIN_DEPTH]);
}

/* The smallest width that keeps the rate with n keys in d rows. */
static double countmin_width_for(double n, double fpr, double d)
{
    /* Solve (1 - (1 - 1/w)^n)^d = fpr for w. expm1 and log1p keep the digits
     * that 1 - 1/w would lose for large w. */
    return fmax(1, ceil(-1 / expm1(log1p(-pow(fpr, 1 / d)) / n)));
}

static bly_status countmin_depth(const bly_want *w, uint64_t *out)
{
    const bool *g = w->given;
    if (g[COUNTMIN_DEPTH] + g[COUNTMIN_DELTA] + g[COUNTMIN_CONFIDENCE] > 1)
        return bly_fail(BLY_EINVAL, "depth, delta and confidence say the same: "
                                    "give one of them");
    if (g[COUNTMIN_DEPTH]) {
        *out = w->opt[COUNTMIN_DEPTH];
        return BLY_OK;
    }
    double delta = COUNTMIN_DEFAULT_DELTA;
    if (g[COUNTMIN_DELTA])
        delta = bly_want_real(w, COUNTMIN_DELTA);
    if (g[COUNTMIN_CONFIDENCE])
        delta = 1 - bly_want_real(w, COUNTMIN_CONFIDENCE);
    /* A row fails with probability 1/e at most, and all d of them with e^-d. */
    *out = (uint64_t)fmin(fmax(1, ceil(-log(delta))), COUNTMIN_MAX_DEPTH);
    return BLY_OK;
}

/* Rows for n keys at a rate. w d is smallest near d = log2(1/fpr), where half
 * of the counters are in use. Rounding moves the minimum a little, so all
 * depths are tried. */
static void countmin_for_rate(double n, double fpr, bool depth_given,
                              uint64_t *depth, double *width)
{
    if (depth_given) {
        *width = countmin_width_for(n, fpr, (double)*depth);
        return;
    }
    double best = INFINITY;
    for (uint64_t d = 1; d <= COUNTMIN_MAX_DEPTH; d++) {
        const double trial = countmin_width_for(n, fpr, (double)d);
        if (trial * (double)d < best) {
            best = trial * (double)d;
            *depth = d;
            *width = trial;
        }
    }
}

static bly_status countmin_plan(const bly_want *w, bly_shape *out)
{
    static const unsigned sizing[] = { COUNTMIN_WIDTH, COUNTMIN_DEPTH,
                                       COUNTMIN_ERROR, COUNTMIN_DELTA,
                                       COUNTMIN_CONFIDENCE };
    const bool *g = w->given;
    bool sketchy = w->bits > 0;
    for (unsigned i = 0; i < sizeof sizing / sizeof sizing[0]; i++)
        sketchy |= g[sizing[i]];
    /* If only items are given, plan for 1 %, like any other filter. */
    const double fpr =
        w->fpr > 0 || !w->items || sketchy ? w->fpr : COUNTMIN_DEFAULT_FPR;
    const bool for_rate = fpr > 0;
    const uint64_t counter = w->opt[COUNTMIN_COUNTER];
    uint64_t depth = 0;
    double width = INFINITY;
    bly_status st = countmin_depth(w, &depth);
    if (st)
        return st;
    if (g[COUNTMIN_WIDTH] + g[COUNTMIN_ERROR] + (w->bits > 0) + for_rate > 1)
        return bly_fail(BLY_EINVAL, "a countmin sketch gets its width from one "
                                    "of width, error, memory, or items and "
                                    "rate: give one");
    if (for_rate && !w->items)
        return bly_fail(BLY_EINVAL, "a countmin sketch has a rate for a number "
                                    "of items: give items, or error and delta");
    if (for_rate)
        countmin_for_rate((double)w->items, fpr,
                          g[COUNTMIN_DEPTH] || g[COUNTMIN_DELTA] ||
                              g[COUNTMIN_CONFIDENCE],
                          &depth, &width);
    else if (g[COUNTMIN_WIDTH])
        width = (double)w->opt[COUNTMIN_WIDTH];
    else if (w->bits)
        width = floor((double)w->bits /
                      ((counter == COUNTMIN_64 ? 64.0 : 32.0) * (double)depth));
    else
        width = ceil(COUNTMIN_E / (g[COUNTMIN_ERROR]
                                       ? bly_want_real(w, COUNTMIN_ERROR)
                                       : COUNTMIN_DEFAULT_ERROR));
    if (width < 1)
        return bly_fail(BLY_EINVAL,
                        "%llu bits are not one counter in each of %llu rows",
                        (unsigned long long)w->bits, (unsigned long long)depth);
    if (!(width <= (double)COUNTMIN_MAX_WIDTH))
        return bly_fail(BLY_ERANGE,
                        "a row of a countmin sketch has at most 2^40 counters; "
                        "this one would need %.3g",
                        width);
    uint64_t cells = (uint64_t)width;
    st = bly_fold_plan(w->opt[COUNTMIN_FOLDS], 1, w->bits || g[COUNTMIN_WIDTH],
                       &cells);
    if (st)
        return st;
    if (g[COUNTMIN_WIDTH] && cells != w->opt[COUNTMIN_WIDTH])
        return bly_fail(BLY_EINVAL,
                        "a width of %llu cannot be folded in half %llu times: "
                        "%llu can",
                        (unsigned long long)w->opt[COUNTMIN_WIDTH],
                        (unsigned long long)w->opt[COUNTMIN_FOLDS],
                        (unsigned long long)cells);
    *out = (bly_shape){ .p = { [COUNTMIN_WIDTH] = cells,
                               [COUNTMIN_DEPTH] = depth,
                               [COUNTMIN_COUNTER] = counter,
                               [COUNTMIN_UPDATE] = w->opt[COUNTMIN_UPDATE] } };
    out->nbytes = out->p[COUNTMIN_WIDTH] * depth * countmin_counter_bytes(out);
    return BLY_OK;
}

static bool countmin_sane(const bly_shape *s)
{
    const uint64_t w = s->p[COUNTMIN_WIDTH], d = s->p[COUNTMIN_DEPTH];
    return w >= 1 && w <= COUNTMIN_MAX_WIDTH && d >= 1 &&
           d <= COUNTMIN_MAX_DEPTH && s->p[COUNTMIN_COUNTER] <= 1 &&
           s->p[COUNTMIN_UPDATE] <= 1 && !s->p[COUNTMIN_ERROR] &&
           !s->p[COUNTMIN_DELTA] && !s->p[COUNTMIN_CONFIDENCE] &&
           !s->p[COUNTMIN_FOLDS] &&
           s->nbytes == w * d * countmin_counter_bytes(s);
}

/* bound: by how much a count may exceed the truth, except for a share delta of
 * the keys; in a plan, if each item is added once. */
static void countmin_describe(const bly_shape *s, const bly_want *w,
                              const bly_filter *f, bly_facts *out)
{
    const double error = COUNTMIN_E / (double)s->p[COUNTMIN_WIDTH];
    const uint64_t total = f ? countmin_total(f) : w->items;
    bly_fact_real(out, "error", error);
    bly_fact_real(out, "delta", exp(-(double)s->p[COUNTMIN_DEPTH]));
    if (f)
        bly_fact_uint(out, "total", total);
    if (total)
        bly_fact_real(out, "bound", error * (double)total);
}

static bool countmin_sound(const bly_filter *f)
{
    return f->nlayers == 0;
}

/* With conservative update two writers of one key could both read its count
 * before either raises it, and one addition would be lost. */
static bool countmin_shares(const bly_shape *s)
{
    return s->p[COUNTMIN_UPDATE] == COUNTMIN_PLAIN;
}

/* --------------------------------------------------------------- counters */

/* Change counter i from old to v as one of many writers; false if it is no
 * longer old. */
static inline bool countmin_swap(void *data, uint64_t i, uint64_t old,
                                 uint64_t v, bool wide)
{
    if (wide) {
        uint64_t was = bly_le64(old);
        return atomic_compare_exchange_weak_explicit(
            (_Atomic uint64_t *)data + i, &was, bly_le64(v),
            memory_order_relaxed, memory_order_relaxed);
    }
    uint32_t was = bly_le32((uint32_t)old);
    return atomic_compare_exchange_weak_explicit(
        (_Atomic uint32_t *)data + i, &was, bly_le32((uint32_t)v),
        memory_order_relaxed, memory_order_relaxed);
}

typedef enum countmin_result {
    COUNTMIN_KNOWN, /* raised; its count was above 0 */
    COUNTMIN_FRESH, /* raised from 0 */
    COUNTMIN_OVERFLOW
} countmin_result;

/* Add v to the counters at[0..d), all of them or none. If one cannot hold the
 * sum, the others are lowered again. A query in between may get a count that is
 * too high by v, but none that is too low. */
static inline __attribute__((always_inline)) countmin_result
countmin_raise_shared(void *data, const uint64_t *at, unsigned d, uint64_t v,
                      bool wide)
{
    const uint64_t max = wide ? UINT64_MAX : UINT32_MAX;
    uint64_t least = UINT64_MAX, old;
    unsigned i;
    /* v <= max guards max - v. The exchange fails if another writer came in
     * between, or spuriously (it is the weak form); then read again. */
    for (i = 0; i < d; i++) {
        do {
            old = countmin_load(data, at[i], wide);
        } while (old <= max - v && v <= max &&
                 !countmin_swap(data, at[i], old, old + v, wide));
        if (v > max || old > max - v)
            break;
        least = old < least ? old : least;
    }
    if (i == d)
        return least ? COUNTMIN_KNOWN : COUNTMIN_FRESH;
    /* Each of these has our v in it, whatever others have added since, so the
     * subtraction cannot pass 0. */
    while (i-- > 0)
        do {
            old = countmin_load(data, at[i], wide);
        } while (!countmin_swap(data, at[i], old, old - v, wide));
    return COUNTMIN_OVERFLOW;
}

/* The same for a single writer. Rows do not overlap, so a key has d different
 * counters. */
static inline __attribute__((always_inline)) countmin_result
countmin_raise(void *data, const uint64_t *at, unsigned d, uint64_t v,
               bool wide, bool conservative)
{
    const uint64_t max = wide ? UINT64_MAX : UINT32_MAX;
    uint64_t least = UINT64_MAX, most = 0, was[COUNTMIN_MAX_DEPTH];
    for (unsigned i = 0; i < d; i++) {
        was[i] = countmin_load(data, at[i], wide);
        least = was[i] < least ? was[i] : least;
        most = was[i] > most ? was[i] : most;
    }
    /* Checked before the first store, so that a refused key changes nothing.
     * Conservative update raises no counter beyond least + v. */
    if (v > max || (conservative ? least : most) > max - v)
        return COUNTMIN_OVERFLOW;
    for (unsigned i = 0; i < d; i++) {
        /* Stored whether it changes or not, since a branch would be a coin
         * flip. */
        const uint64_t up = conservative ? least + v : was[i] + v;
        countmin_store(data, at[i], was[i] > up ? was[i] : up, wide);
    }
    return least ? COUNTMIN_KNOWN : COUNTMIN_FRESH;
}

/* Take 1 from each of the counters, or from none: false where one is 0. */
static inline __attribute__((always_inline)) bool
countmin_lower(void *data, const uint64_t *at, unsigned d, bool wide,
               bool shared)
{
    bool in = true;
    unsigned i;
    for (i = 0; i < d; i++)
        in &= countmin_load(data, at[i], wide) > 0;
    if (!in || !shared) {
        for (i = 0; in && i < d; i++)
            countmin_store(data, at[i], countmin_load(data, at[i], wide) - 1,
                           wide);
        return in;
    }
    /* Other threads remove at the same time: a counter that was above 0 may be
     * so no longer. */
    for (i = 0; i < d && in; i++) {
        uint64_t old;
        do {
            old = countmin_load(data, at[i], wide);
        } while (old && !countmin_swap(data, at[i], old, old - 1, wide));
        in = old > 0;
    }
    if (!in)
        (void)countmin_raise_shared(data, at, i - 1, 1, wide);
    return in;
}

/* ---------------------------------------------------------------- batches */

/* The places of the next keys, fetched in two stages: into L2 when a place is
 * computed, since a processor can have many such fetches under way, and into L1
 * shortly before use, since it can have few of these. */
#define COUNTMIN_RING 32 /* a power of two */
#define COUNTMIN_NEAR 4

typedef struct countmin_ring {
    const bly_filter *f;
    const uint64_t *h;
    size_t n;
    uint64_t at[COUNTMIN_RING * COUNTMIN_MAX_DEPTH];
} countmin_ring;

/* Where the counters of key i are, counted from the first of row 0. */
static inline __attribute__((always_inline)) uint64_t *
countmin_at(countmin_ring *ring, size_t i, unsigned d)
{
    return &ring->at[i % COUNTMIN_RING * d];
}

static inline __attribute__((always_inline)) void
countmin_far(countmin_ring *ring, size_t i, unsigned d, bool wide)
{
    if (i >= ring->n)
        return;
    const uint64_t w = ring->f->shape.p[COUNTMIN_WIDTH];
    uint64_t *const at = countmin_at(ring, i, d), g = ring->h[i];
    for (unsigned row = 0; row < d; row++) {
        at[row] = bly_countmin_place_(&g, row, w);
        __builtin_prefetch(ring->f->data + at[row] * (wide ? 8 : 4), 0, 2);
    }
}

static inline __attribute__((always_inline)) void
countmin_first(countmin_ring *ring, unsigned d, bool wide)
{
    /* One less than the ring holds: the last place is filled by the first call
     * of countmin_next(). */
    for (size_t i = 0; i < COUNTMIN_RING - 1; i++)
        countmin_far(ring, i, d, wide);
}

/* The places of key i; those of later keys are on their way. Must be called for
 * one key after another. */
static inline __attribute__((always_inline)) const uint64_t *
countmin_next(countmin_ring *ring, size_t i, unsigned d, bool wide, bool write)
{
    /* Into the place of key i - 1, which is done. */
    countmin_far(ring, i + COUNTMIN_RING - 1, d, wide);
    if (i + COUNTMIN_NEAR < ring->n) {
        const uint64_t *near = countmin_at(ring, i + COUNTMIN_NEAR, d);
        for (unsigned row = 0; row < d; row++) {
            if (write)
                __builtin_prefetch(ring->f->data + near[row] * (wide ? 8 : 4),
                                   1, 3);
            else
                __builtin_prefetch(ring->f->data + near[row] * (wide ? 8 : 4),
                                   0, 3);
        }
    }
    return countmin_at(ring, i, d);
}

/* Add as many of n keys to N as it has room for; returns their number, and
 * their total weight in *sum. by is NULL for a weight of 1 each. N is raised
 * before any counter. So it is never less than the sum of a row, and many
 * writers together cannot exceed 2^64 - 1. */
static size_t countmin_enter(bly_filter *f, const uint64_t *by, size_t n,
                             uint64_t *sum)
{
    _Atomic uint64_t *const total =
        (_Atomic uint64_t *)&f->state[COUNTMIN_TOTAL];
    uint64_t was = atomic_load_explicit(total, memory_order_relaxed);
    size_t taken;
    do {
        const uint64_t room = UINT64_MAX - was;
        *sum = 0;
        for (taken = 0; taken < n; taken++) {
            const uint64_t v = by ? by[taken] : 1;
            if (v > room - *sum)
                break;
            *sum += v;
        }
        /* A writer that is alone needs no atomic operation. */
        if (!f->shared) {
            f->state[COUNTMIN_TOTAL] = was + *sum;
            break;
        }
    } while (!atomic_compare_exchange_weak_explicit(
        total, &was, was + *sum, memory_order_relaxed, memory_order_relaxed));
    return taken;
}

/* Take n keys out of N again that were not added after all. */
static void countmin_leave(bly_filter *f, const uint64_t *by, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += by ? by[i] : 1;
    if (f->shared)
        atomic_fetch_sub_explicit((_Atomic uint64_t *)&f->state[COUNTMIN_TOTAL],
                                  sum, memory_order_relaxed);
    else
        f->state[COUNTMIN_TOTAL] -= sum;
}

static inline __attribute__((always_inline)) bly_status
countmin_add_body(bly_filter *f, const uint64_t *h, const uint64_t *by,
                  size_t n, uint64_t *fresh, size_t *ndone, unsigned d,
                  bool wide)
{
    const bool conservative =
        f->shape.p[COUNTMIN_UPDATE] == COUNTMIN_CONSERVATIVE;
    uint64_t sum;
    const size_t room = countmin_enter(f, by, n, &sum);
    countmin_ring ring;
    ring.f = f, ring.h = h, ring.n = room;
    size_t done;
    uint64_t changed = 0;
    countmin_first(&ring, d, wide);
    for (done = 0; done < room; done++) {
        const uint64_t *at = countmin_next(&ring, done, d, wide, true);
        const uint64_t v = by ? by[done] : 1;
        countmin_result r = COUNTMIN_KNOWN;
        /* A weight of 0 changes nothing, and must not make a key fresh. */
        if (v)
            r = f->shared
                    ? countmin_raise_shared(f->data, at, d, v, wide)
                    : countmin_raise(f->data, at, d, v, wide, conservative);
        if (r == COUNTMIN_OVERFLOW)
            break;
        changed += v > 0;
        if (fresh)
            fresh[done >> 6] |= (uint64_t)(r == COUNTMIN_FRESH) << (done & 63);
    }
    if (done < room)
        countmin_leave(f, by ? by + done : NULL, room - done);
    bly_filter_added(f, changed);
    *ndone = done;
    if (done == n)
        return BLY_OK;
    return done < room
               ? bly_fail(BLY_ERANGE, "a counter would pass 2^32 - 1: use "
                                      "counter=64")
               : bly_fail(BLY_ERANGE, "all counts together would pass "
                                      "2^64 - 1");
}

/* Depths whose loops are unrolled: those of delta 0.01 and 0.001. */
#define COUNTMIN_BY_DEPTH(f, CALL)                                 \
    const unsigned depth = (unsigned)(f)->shape.p[COUNTMIN_DEPTH]; \
    if ((f)->shape.p[COUNTMIN_COUNTER] == COUNTMIN_32)             \
        CALL(depth, false);                                        \
    else if (depth == 5)                                           \
        CALL(5, true);                                             \
    else if (depth == 7)                                           \
        CALL(7, true);                                             \
    else                                                           \
        CALL(depth, true);

static bly_status countmin_increase(bly_filter *f, const uint64_t *h,
                                    const uint64_t *by, size_t n, size_t *ndone)
{
#define COUNTMIN_ADD(d, wide) \
    return countmin_add_body(f, h, by, n, NULL, ndone, d, wide)
    COUNTMIN_BY_DEPTH(f, COUNTMIN_ADD)
#undef COUNTMIN_ADD
}

static bly_status countmin_add(bly_filter *f, const uint64_t *h, size_t n,
                               uint64_t *fresh, size_t *ndone)
{
#define COUNTMIN_ADD(d, wide) \
    return countmin_add_body(f, h, NULL, n, fresh, ndone, d, wide)
    COUNTMIN_BY_DEPTH(f, COUNTMIN_ADD)
#undef COUNTMIN_ADD
}

static const char *countmin_keeps(const bly_shape *s)
{
    return s->p[COUNTMIN_UPDATE] == COUNTMIN_CONSERVATIVE
               ? "conservative update raises only some counters of a key, and "
                 "nobody knows which: nothing can be removed (build with "
                 "update = plain)"
               : NULL;
}

static inline __attribute__((always_inline)) void
countmin_remove_body(bly_filter *f, const uint64_t *h, size_t n,
                     bly_status *each, unsigned d, bool wide)
{
    uint64_t removed = 0;
    countmin_ring ring;
    ring.f = f, ring.h = h, ring.n = n;
    countmin_first(&ring, d, wide);
    for (size_t j = 0; j < n; j++) {
        const uint64_t *at = countmin_next(&ring, j, d, wide, true);
        const bool in = countmin_lower(f->data, at, d, wide, f->shared);
        each[j] = in ? BLY_OK : BLY_EABSENT;
        removed += in;
    }
    /* After the counters, so that N is never less than the sum of a row. */
    if (f->shared)
        atomic_fetch_sub_explicit((_Atomic uint64_t *)&f->state[COUNTMIN_TOTAL],
                                  removed, memory_order_relaxed);
    else
        f->state[COUNTMIN_TOTAL] -= removed;
    bly_filter_removed(f, removed);
}

static void countmin_refuse(const bly_filter *f, const uint64_t *h, size_t n,
                            bly_status *each)
{
    for (size_t j = 0; j < n; j++) {
        uint64_t maybe = 0;
        f->kind->has(f, h + j, 1, &maybe);
        each[j] = maybe & 1 ? BLY_EREFUSED : BLY_EABSENT;
    }
}

static void countmin_remove(bly_filter *f, const uint64_t *h, size_t n,
                            bly_status *each)
{
    if (countmin_keeps(&f->shape)) {
        countmin_refuse(f, h, n, each);
        return;
    }
#define COUNTMIN_REMOVE(d, wide) countmin_remove_body(f, h, n, each, d, wide)
    COUNTMIN_BY_DEPTH(f, COUNTMIN_REMOVE)
#undef COUNTMIN_REMOVE
}

/* The counts, or a bitmap of those above 0; the other is NULL. */
static inline __attribute__((always_inline)) void
countmin_count_body(const bly_filter *f, const uint64_t *h, size_t n,
                    uint64_t *counts, uint64_t *maybe, unsigned d, bool wide)
{
    countmin_ring ring;
    ring.f = f, ring.h = h, ring.n = n;
    countmin_first(&ring, d, wide);
    for (size_t j = 0; j < n; j++) {
        const uint64_t *at = countmin_next(&ring, j, d, wide, false);
        uint64_t least = UINT64_MAX;
        for (unsigned i = 0; i < d; i++) {
            const uint64_t c = countmin_load(f->data, at[i], wide);
            least = c < least ? c : least;
        }
        if (counts)
            counts[j] = least;
        else
            maybe[j >> 6] |= (uint64_t)(least > 0) << (j & 63);
    }
}

static void countmin_count(const bly_filter *f, const uint64_t *h, size_t n,
                           uint64_t *counts)
{
#define COUNTMIN_COUNT(d, wide) \
    countmin_count_body(f, h, n, counts, NULL, d, wide)
    COUNTMIN_BY_DEPTH(f, COUNTMIN_COUNT)
#undef COUNTMIN_COUNT
}

static void countmin_has(const bly_filter *f, const uint64_t *h, size_t n,
                         uint64_t *maybe)
{
#define COUNTMIN_HAS(d, wide) countmin_count_body(f, h, n, NULL, maybe, d, wide)
    COUNTMIN_BY_DEPTH(f, COUNTMIN_HAS)
#undef COUNTMIN_HAS
}

static void countmin_reach(const bly_filter *f, const uint64_t *h, size_t n,
                           uint64_t *bad)
{
    const uint64_t w = f->shape.p[COUNTMIN_WIDTH];
    const uint64_t nbytes = f->shape.p[COUNTMIN_COUNTER] == COUNTMIN_64 ? 8 : 4;
    for (size_t i = 0; i < n; i++) {
        uint64_t g = h[i];
        for (uint64_t row = 0; row < f->shape.p[COUNTMIN_DEPTH]; row++) {
            g *= BLY_POWERS_C;
            bly_reach(f, (row * w + bly_scale(g, w)) * nbytes, nbytes, i, bad);
        }
    }
}

bool bly_view_of_countmin(const bly_filter *f, bly_view_countmin *out)
{
    if (!bly_filter_viewed(f, &bly_kind_countmin, out))
        return false;
    *out = (bly_view_countmin){
        .counters = f->data,
        .width = f->shape.p[COUNTMIN_WIDTH],
        .turned = f->extra->turned,
        .folded = bly_filter_folds(f),
        .depth = (uint32_t)f->shape.p[COUNTMIN_DEPTH],
        .wide = countmin_wide(f),
        .plain = countmin_shares(&f->shape),
    };
    return true;
}

const bly_kind bly_kind_countmin = {
    .id = 15, /* on disk: never changed, never reused */
    .name = "countmin",
    .summary = "counts in fixed memory how often a key came, never too low",
    .params = countmin_params,
    .nparams = sizeof countmin_params / sizeof countmin_params[0],
    .nstate = 1,
    .traits = BLY_SELF_SIZED,
    .plan = countmin_plan,
    .sane = countmin_sane,
    .rate = countmin_rate,
    .describe = countmin_describe,
    .sound = countmin_sound,
    .check = bly_countmin_check,
    .reach = BLY_SYSTEM(countmin_reach),
    .shares = countmin_shares,
    .stat = bly_countmin_stat,
    .keeps = countmin_keeps,
    .add = countmin_add,
    .add_shared = countmin_add, /* looks at f->shared */
    .has = countmin_has,
    .remove = countmin_remove,
    .increase = countmin_increase,
    .count = countmin_count,
    .merge = bly_countmin_merge,
    .merge_part = bly_countmin_merge_part,
    .compare = bly_countmin_compare, /* no .intersect: see above */
    .fold = bly_countmin_fold,
    .restate = bly_countmin_restate,
    .mend = BLY_SYSTEM(bly_countmin_mend),
};
