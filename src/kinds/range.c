/*
 * range.c - is any key from a to b?
 *
 * A hash says nothing about the order of keys. So this kind takes the order
 * itself, a number x of 64 bits (bly_order() in core/hash.h), and hashes it so
 * that neighbours stay neighbours [1]. The numbers are cut into blocks, and
 * each block is moved as a whole, to a random place among m values:
 *
 *     x = 2^b block + offset         2^b <= m < 2^(b+1)
 *     h(x) = (q(block) + offset) mod m
 *
 *     numbers   ..|..k.......|............|......k.....|..
 *                  block 6      block 7      block 8
 *     values    |......k..................k..............|
 *               0                                        m
 *
 * where q(block) is XXH3 of the number of the block, with the filter's seed,
 * scaled to m. The values of the n keys are kept sorted (engine/fano.h). A
 * range of numbers becomes an interval of values, or more than one if it passes
 * the end of a block or of m. The answer is whether a stored value lies there.
 *
 * Inside a block different numbers have different values. So a range without a
 * key can only meet values of keys from other blocks. Since q is random, such a
 * key falls on one of l given values of m with probability l / m:
 *
 *     rate of a range of l numbers  <=  n l / m
 *
 * whatever the keys and the queries are, as long as they do not depend on the
 * seed: a range right behind a key is no worse than any other. If ranges up to
 * length L are to have the rate p, then
 *
 *     m = n L / p,   log2(m / n) + 2 = log2(L / p) + 2 bits per key
 *
 * and 0.6 bits for the index. L = 256 and p = 1 % take 16.6 bits, with the
 * index 17.2 for a million keys; single keys then have the rate 1 / 25600.
 *
 * Signed integers are taken as unsigned numbers with the same bits; the
 * interface cuts a range that passes zero in two. If m would be more than 2^63,
 * numbers are used as values, and no answer is wrong.
 *
 * Text is taken by eight of its bytes: the first, or those behind what all keys
 * begin with (BLY_HASH_ORDERED_TAILS).
 *
 * It is built from all keys at once. Filters with the same seed and the same m
 * map keys to the same values, so they can be merged and intersected.
 *
 * [1] Costa, Ferragina and Vinciguerra, Grafite: Taming Adversarial Queries
 *     with Optimal Range Filters, 2024
 */
#include <math.h>
#include <string.h>

#include "core/bits.h"
#include "core/sort.h"
#include "core/status.h"
#include "engine/fano.h"
#include "kinds/filter.h"

enum {
    RANGE_LONGEST,  /* L */
    RANGE_ROOM,     /* values that there is room for */
    RANGE_UNIVERSE, /* m; 0: 2^64 */
};

/* Words of the state. */
enum { RANGE_VALUES, RANGE_STATES };

/* Beyond this, values are the numbers themselves. */
#define RANGE_MAX_UNIVERSE 0x1p63
#define RANGE_MAX_LONGEST 0x1p48

static const bly_param range_params[] = {
    /* Enough for an IPv4 network of size /24, for all texts with the same first
     * seven bytes, or for four minutes in seconds. */
    [RANGE_LONGEST] =
        BLY_PARAM("longest", BLY_UINT, .settable = true, .def = 256, .min = 1,
                  .max = RANGE_MAX_LONGEST,
                  .help = "numbers in the longest range that keeps the rate"),
    [RANGE_ROOM] =
        BLY_PARAM("room", BLY_UINT, .min = 1, .max = (double)BLY_FANO_MOST,
                  .help = "values that there is room for"),
    [RANGE_UNIVERSE] =
        BLY_PARAM("universe", BLY_UINT, .max = RANGE_MAX_UNIVERSE,
                  .help = "values that there can be; 0: 2^64"),
};

/* ----------------------------------------------------------------- shapes */

static double range_universe(const bly_shape *s)
{
    return s->p[RANGE_UNIVERSE] ? (double)s->p[RANGE_UNIVERSE] : 0x1p64;
}

/* Without data and numbers. */
static bly_fano range_layout(const bly_shape *s)
{
    return bly_fano_of(s->p[RANGE_ROOM], s->p[RANGE_UNIVERSE] - 1);
}

/* The shape for `room` values in a universe of m. */
static bly_shape range_shape(uint64_t longest, uint64_t room, double m)
{
    bly_shape s = { .nbytes = 0 };
    s.p[RANGE_LONGEST] = longest;
    s.p[RANGE_ROOM] = room;
    s.p[RANGE_UNIVERSE] =
        m <= RANGE_MAX_UNIVERSE ? (uint64_t)fmax(ceil(m), (double)room) : 0;
    s.nbytes = range_layout(&s).nbytes;
    return s;
}

/* The largest universe for which the memory is enough. */
static bly_status range_within(const bly_want *w, double least, bly_shape *out)
{
    const uint64_t longest = w->opt[RANGE_LONGEST];
    double low = log2(least);
    const bly_shape s = range_shape(longest, w->items, least);
    if (8 * s.nbytes > w->bits)
        return bly_fail(
            BLY_EINVAL,
            "%llu bits are too few for a range filter of %llu "
            "items and ranges of %llu, which begins at %llu",
            (unsigned long long)w->bits, (unsigned long long)w->items,
            (unsigned long long)longest, (unsigned long long)(8 * s.nbytes));
    /* A larger universe does not always take more memory: with one more low
     * bit, rounding up to lines happens elsewhere. So go down in small steps,
     * from a universe that is certainly too large. */
    const double n = (double)w->items, step = 1.0 / 256;
    double high = fmin(64, log2(n) + (double)w->bits / n - 2);
    while (high > low &&
           8 * range_shape(longest, w->items, exp2(high)).nbytes > w->bits)
        high -= step;
    low = fmax(low, high);
    high = low + step;
    while (high - low > 1e-9) {
        const double mid = (low + high) / 2;
        if (8 * range_shape(longest, w->items, exp2(mid)).nbytes <= w->bits)
            low = mid;
        else
            high = mid;
    }
    *out =
        range_shape(longest, w->items, low > log2(least) ? exp2(low) : least);
    return BLY_OK;
}

static bly_status range_plan(const bly_want *w, bly_shape *out)
{
    const double n = (double)w->items, longest = (double)w->opt[RANGE_LONGEST];
    if (w->items > BLY_FANO_MOST)
        return bly_fail(BLY_ERANGE,
                        "%llu items are too many for a range filter, which "
                        "holds up to 2^36",
                        (unsigned long long)w->items);
    if (w->bits) /* a rate of 1 would be useless */
        return range_within(w, fmin(1.01 * n * longest, 0x1p64), out);
    *out = range_shape(w->opt[RANGE_LONGEST], w->items, n * longest / w->fpr);
    return BLY_OK;
}

static bool range_sane(const bly_shape *s)
{
    const uint64_t *const p = s->p;
    return p[RANGE_LONGEST] >= 1 &&
           (double)p[RANGE_LONGEST] <= RANGE_MAX_LONGEST &&
           p[RANGE_ROOM] >= 1 && p[RANGE_ROOM] <= BLY_FANO_MOST &&
           (double)p[RANGE_UNIVERSE] <= RANGE_MAX_UNIVERSE &&
           (!p[RANGE_UNIVERSE] || p[RANGE_UNIVERSE] >= p[RANGE_ROOM]) &&
           s->nbytes == range_layout(s).nbytes;
}

/* The rate for a range of l numbers, with n values outside it. */
static double range_rate_of(const bly_shape *s, double n, double l)
{
    return s->p[RANGE_UNIVERSE] ? fmin(1, n * l / range_universe(s)) : 0;
}

/* The rate for the longest ranges. */
static double range_rate(const bly_shape *s, double n)
{
    return range_rate_of(s, n, (double)s->p[RANGE_LONGEST]);
}

static void range_describe(const bly_shape *s, const bly_want *w,
                           const bly_filter *f, bly_facts *out)
{
    const double n = (double)(w ? w->items : f->state[RANGE_VALUES]);
    bly_fact_real(out, "point_rate", range_rate_of(s, n, 1));
    if (n > 0)
        bly_fact_real(out, "formula_bits_per_key",
                      log2(range_universe(s) / n) + 2);
}

/* --------------------------------------------------------------- contents */

static bly_fano range_fano(const bly_filter *f)
{
    bly_fano t = range_layout(&f->shape);
    t.data = f->data;
    t.n = f->state[RANGE_VALUES];
    return t;
}

static bool range_sound(const bly_filter *f)
{
    return f->nlayers == 0 &&
           f->state[RANGE_VALUES] <= f->shape.p[RANGE_ROOM] &&
           f->state[RANGE_VALUES] <= f->nadded && f->nadded <= f->items;
}

static bool range_check(const bly_filter *f)
{
    const bly_fano t = range_fano(f);
    return bly_fano_check(&t);
}

/* Some keys have the same value as another, but the number of keys is known: it
 * was counted. */
static void range_stat(const bly_filter *f, bly_stats *out)
{
    const double n = (double)f->state[RANGE_VALUES];
    out->items_estimate = (double)f->nadded;
    out->items_sd = 0;
    out->fill = n / (double)f->shape.p[RANGE_ROOM];
    out->fpr_now = range_rate(&f->shape, n);
}

/* How numbers are mapped to values. */
typedef struct range_hash {
    uint64_t m, flip, mask; /* m is 0: they are */
    unsigned b;
} range_hash;

static inline range_hash range_hash_of(const bly_filter *f)
{
    const uint64_t m = f->shape.p[RANGE_UNIVERSE];
    const unsigned b = m ? 63 - (unsigned)__builtin_clzll(m) : 0;
    return (range_hash){ m, f->extra->turned, (UINT64_C(1) << b) - 1, b };
}

/* Where a block begins. */
static inline uint64_t range_block(const range_hash *h, uint64_t block)
{
    return bly_scale(bly_int_hash_turned(block, h->flip), h->m);
}

static inline uint64_t range_move(const range_hash *h, uint64_t begin,
                                  uint64_t x)
{
    const uint64_t v = begin + (x & h->mask);
    return v < h->m ? v : v - h->m;
}

static inline uint64_t range_value(const range_hash *h, uint64_t x)
{
    return h->m ? range_move(h, range_block(h, x >> h->b), x) : x;
}

static bly_status range_build(bly_filter *f, uint64_t *h, uint64_t *values,
                              size_t n, unsigned nthreads)
{
    const range_hash by = range_hash_of(f);
    (void)values;
    (void)nthreads;
    bly_hashes_unique(h, NULL, &n);
    if (n > f->items)
        return bly_fail(BLY_EFULL,
                        "%zu different keys are more than the %llu that the "
                        "filter was planned for",
                        n, (unsigned long long)f->items);
    f->nadded = n;
    f->items = n ? n : 1; /* no capacity is zero */
    for (size_t i = 0; i < n; i++)
        h[i] = range_value(&by, bly_unmix64(h[i]));
    bly_hashes_unique(h, NULL, &n);
    f->state[RANGE_VALUES] = n;
    const bly_fano t = range_fano(f);
    bly_fano_fill(&t, h);
    return BLY_OK;
}

/* -------------------------------------------------------------- combining */

static bool range_akin(const bly_shape *a, const bly_shape *b)
{
    return a->p[RANGE_LONGEST] == b->p[RANGE_LONGEST] &&
           a->p[RANGE_UNIVERSE] == b->p[RANGE_UNIVERSE];
}

/* Write to out the values that are in both a and b, in order; or, unless `both`
 * is set, in either. Returns how many there are. */
static size_t range_join(const uint64_t *a, size_t na, const uint64_t *b,
                         size_t nb, bool both, uint64_t *out)
{
    size_t n = 0, i = 0, j = 0;
    while (i < na && j < nb) {
        const uint64_t least = a[i] < b[j] ? a[i] : b[j];
        const bool in_a = a[i] == least, in_b = b[j] == least;
        if (!both || (in_a && in_b))
            out[n++] = least;
        i += in_a;
        j += in_b;
    }
    for (; !both && i < na; i++)
        out[n++] = a[i];
    for (; !both && j < nb; j++)
        out[n++] = b[j];
    return n;
}

/* Replace the contents of dst by these values, of about `keys` keys. */
static bly_status range_become(bly_filter *dst, const uint64_t *values,
                               size_t n, uint64_t keys)
{
    bly_shape shape = bly_shape_of(dst);
    bly_setting set = bly_setting_of(dst);
    bly_filter *f;
    if (n > shape.p[RANGE_ROOM]) {
        shape.p[RANGE_ROOM] = n;
        if (shape.p[RANGE_ROOM] > BLY_FANO_MOST)
            return bly_fail(BLY_ERANGE, "a range filter holds up to 2^36 keys");
        shape.nbytes = range_layout(&shape).nbytes;
    }
    if (keys > set.items)
        set.items = keys;
    set.fpr = fmax(set.fpr, range_rate(&shape, (double)n));
    const bly_status st = bly_filter_make(dst->kind, &shape, &set, &f);
    if (st)
        return st;
    f->nadded = keys;
    f->state[RANGE_VALUES] = n;
    const bly_fano t = range_fano(f);
    bly_fano_fill(&t, values);
    return bly_become(dst, f);
}

/* Estimate the number of keys behind n values, in the proportion known for a
 * and b together. */
static uint64_t range_keys(const bly_filter *a, const bly_filter *b, size_t n)
{
    const double values =
        (double)a->state[RANGE_VALUES] + (double)b->state[RANGE_VALUES];
    const double keys = (double)a->nadded + (double)b->nadded;
    return values > 0 ? (uint64_t)fmax((double)n, (double)n * keys / values)
                      : 0;
}

static bly_status range_combine(bly_filter *dst, const bly_filter *src,
                                bool both)
{
    const bly_fano a = range_fano(dst), b = range_fano(src);
    bly_block block;
    bly_status st = bly_block_new(bly_filter_mem(dst),
                                  2 * (a.n + b.n) * sizeof(uint64_t), &block);
    if (st)
        return st;
    uint64_t *const of_a = (uint64_t *)(void *)block.at,
                    *const of_b = of_a + a.n, *const out = of_b + b.n;
    bly_fano_read(&a, of_a);
    bly_fano_read(&b, of_b);
    const size_t n =
        range_join(of_a, (size_t)a.n, of_b, (size_t)b.n, both, out);
    st = range_become(dst, out, n, range_keys(dst, src, n));
    bly_block_free(bly_filter_mem(dst), &block);
    return st;
}

static bly_status range_merge(bly_filter *dst, const bly_filter *src)
{
    return range_combine(dst, src, false);
}

static bly_status range_intersect(bly_filter *dst, const bly_filter *src)
{
    return range_combine(dst, src, true);
}

/* ----------------------------------------------------------------- asking */

static bool range_has_order(const bly_filter *f, uint64_t x)
{
    const range_hash by = range_hash_of(f);
    const bly_fano t = range_fano(f);
    const uint64_t v = range_value(&by, x);
    return bly_fano_best()->any(&t, v, v);
}

static bool range_has_one(const bly_filter *f, uint64_t h)
{
    return range_has_order(f, bly_unmix64(h));
}

static bool range_has_bytes(const bly_filter *f, uint64_t key)
{
    return range_has_order(f, __builtin_bswap64(key));
}

static bool range_has_tail(const bly_filter *f, uint64_t key)
{
    const uint64_t le = bly_le64(key);
    return range_has_one(f, bly_hash(&f->extra->hasher, &le, sizeof le));
}

static void range_one(const bly_filter *f, bly_one *out)
{
    const uint32_t id = f->extra->hasher.id;
    out->ways.has = range_has_one;
    out->ways.has_int = id == BLY_HASH_ORDERED_INTS    ? range_has_order
                        : id == BLY_HASH_ORDERED_TAILS ? range_has_tail
                                                       : range_has_bytes;
}

static void range_has(const bly_filter *f, const uint64_t *h, size_t n,
                      uint64_t *maybe)
{
    const range_hash by = range_hash_of(f);
    const bly_fano t = range_fano(f);
    const bly_fano_row *const row = bly_fano_best();
    uint64_t v[BLY_FANO_GROUP];
    for (size_t from = 0; from < n; from += BLY_FANO_GROUP) {
        const size_t np = n - from < BLY_FANO_GROUP ? n - from : BLY_FANO_GROUP;
        for (size_t i = 0; i < np; i++)
            v[i] = range_value(&by, bly_unmix64(h[from + i]));
        maybe[from / BLY_FANO_GROUP] = row->any_each(&t, v, v, np);
    }
}

/* Intervals of values to be looked up together, and the queries they belong
 * to. */
typedef struct range_spans {
    uint64_t from[BLY_FANO_GROUP], to[BLY_FANO_GROUP];
    size_t of[BLY_FANO_GROUP];
    size_t n;
} range_spans;

/* A range shorter than m lies in at most three blocks, since a block is longer
 * than half of m. The part in each block may pass the end of m. */
#define RANGE_MOST_SPANS 6

static void range_put(range_spans *s, uint64_t from, uint64_t to, size_t of)
{
    s->from[s->n] = from;
    s->to[s->n] = to;
    s->of[s->n++] = of;
}

/* Cut a..b into intervals of values; false if these would be all values. */
static bool range_cut(const range_hash *by, uint64_t a, uint64_t b, size_t of,
                      range_spans *s)
{
    if (!by->m) {
        range_put(s, a, b, of);
        return true;
    }
    if (b - a >= by->m - 1)
        return false;
    for (;;) {
        const uint64_t begin = range_block(by, a >> by->b);
        const uint64_t end = a | by->mask, last = end < b ? end : b;
        const uint64_t from = range_move(by, begin, a);
        const uint64_t to = range_move(by, begin, last);
        if (from <= to) {
            range_put(s, from, to, of);
        } else {
            range_put(s, from, by->m - 1, of);
            range_put(s, 0, to, of);
        }
        if (last == b)
            return true;
        a = last + 1;
    }
}

/* For bly_fano_reach(): reports bytes on which key i of f depends. */
typedef struct range_asked {
    const bly_filter *f;
    size_t i;
    uint64_t *bad;
} range_asked;

static bool range_touch(void *ctx, uint64_t at, uint64_t nbytes)
{
    const range_asked *const a = ctx;
    return bly_reach(a->f, at, nbytes, a->i, a->bad);
}

static void range_reach(const bly_filter *f, const uint64_t *h, size_t n,
                        uint64_t *bad)
{
    const range_hash by = range_hash_of(f);
    const bly_fano t = range_fano(f);
    for (size_t i = 0; i < n; i++) {
        const uint64_t v = range_value(&by, bly_unmix64(h[i]));
        bly_fano_reach(&t, v, v, range_touch, &(range_asked){ f, i, bad });
    }
}

/* Look up all intervals gathered so far. */
static void range_settle(const bly_filter *f, const bly_fano *t, range_spans *s,
                         uint64_t *maybe)
{
    if (bly_filter_unread(f))
        for (size_t i = 0; i < s->n; i++)
            bly_fano_reach(t, s->from[i], s->to[i], range_touch,
                           &(range_asked){ f, s->of[i], maybe });
    const bly_fano_row *const row = bly_fano_best();
    const uint64_t any = s->n == 1 ? row->any(t, s->from[0], s->to[0])
                                   : row->any_each(t, s->from, s->to, s->n);
    for (size_t i = 0; i < s->n; i++)
        maybe[s->of[i] / 64] |= (any >> i & 1) << s->of[i] % 64;
    s->n = 0;
}

static void range_has_range(const bly_filter *f, const uint64_t *a,
                            const uint64_t *b, size_t n, uint64_t *maybe)
{
    const range_hash by = range_hash_of(f);
    const bly_fano t = range_fano(f);
    range_spans s;
    s.n = 0; /* only this: clearing the rest would take longer than one query */
    for (size_t i = 0; i < n && t.n; i++) {
        if (!range_cut(&by, a[i], b[i], i, &s))
            maybe[i / 64] |= UINT64_C(1) << i % 64;
        if (s.n + RANGE_MOST_SPANS > BLY_FANO_GROUP)
            range_settle(f, &t, &s, maybe);
    }
    range_settle(f, &t, &s, maybe);
}

const bly_kind bly_kind_range = {
    .id = 32, /* on disk: never changed, never reused */
    .name = "range",
    .summary = "fixed sets of numbers or text: is any key from a to b?",
    .params = range_params,
    .nparams = sizeof range_params / sizeof range_params[0],
    .nstate = RANGE_STATES,
    .plan = range_plan,
    .sane = range_sane,
    .rate = range_rate,
    .describe = range_describe,
    .sound = range_sound,
    .check = range_check,
    .reach = BLY_SYSTEM(range_reach),
    .stat = range_stat,
    .one = range_one,
    .has = range_has,
    .build = range_build,
    .akin = range_akin,
    .merge = range_merge,
    .intersect = range_intersect,
    .has_range = range_has_range,
};
