/*
 * generalized.c - bits that are set, and bits that are reset
 *
 * A key names k1 bits that it sets and k0 bits that it resets. It is there if
 * the former are all one and the latter all zero. An array full of ones, which
 * an attacker might send to match every key, matches none. The filter was
 * invented for marks that packets collect on their way [1].
 *
 *     add:    h_1 .. h_k1  <- 1,   then   g_1 .. g_k0  <- 0
 *     ask:    all h 1, all g 0; a bit that is both must be 0
 *
 * Both answers can be wrong. A later key may flip a bit of an earlier one, so
 * "no" is only likely (BLY_LIKELY_NO). With q = 1 - 1/m, a key resets a given
 * bit with probability r0 = 1 - q^k0, sets it with r1 = q^k0 (1 - q^k1), and
 * leaves it alone with L = 1 - r0 - r1. With s1 = r1 / (r0 + r1) and s0 = 1 -
 * s1,
 *
 *     ones after n keys in an empty array        phi = s1 (1 - L^n)
 *     false positives                            phi^k1 (1 - phi)^k0
 *     false negatives, j keys later
 *                            1 - (s1 + s0 L^j)^k1 (s0 + s1 L^j)^k0
 *
 * (For up to 256 keys both are computed exactly, below.) However many keys are
 * added, the first is never above (k0/(k0+k1))^k0 (k1/(k0+k1))^k1: 1/4 for
 * (1,1), 1/16 for (2,2), 1/64 for (3,3); in an array of 32 bits, a quarter
 * more. The second tends to one minus that: this array forgets. In 256 bits
 * with (2,2), a key that was followed by 14 others is missed with probability
 * 0.339.
 *
 * plan(). The rate is that with n keys, and k0 + k1 is the largest number at
 * which it is at most 0.3 of its limit: nearer to the limit, an array has
 * forgotten most of its keys. One million keys at 1 % take k0 = 2, k1 = 3 and
 * 8.6 bits each; 43 % of all keys are then missed, and 70 % of the first ones.
 * To miss few keys, give more bits, and small k0 and k1: (1,1) in 98 bits per
 * key also has 1 %, and misses 1 %. Or say with `miss` how many may be missed:
 * then k0 + k1 is chosen to keep both rates in the fewest bits or, if the bits
 * are given, to miss no more than that at the lowest rate. One million keys at
 * 1 % and 5 % missed take 38.2 bits each.
 *
 * There is no removal, union or estimate: what a bit means depends on the order
 * in which keys were added.
 *
 * [1] Laufer, Velloso and Duarte, A Generalized Bloom Filter to Secure
 *     Distributed Network Applications, 2011
 */
#include <math.h>
#include <string.h>

#include "core/status.h"
#include "engine/bit_count.h"
#include "kinds/bitset.h"
#include "kinds/probe.h"

#define GENERALIZED_MAX_BITS 0x1p48
#define GENERALIZED_MAX_K 32
/* The fewest bits per probe: with fewer, probes of one key meet too often. */
#define GENERALIZED_ROOM 8

enum { GENERALIZED_BITS, GENERALIZED_K0, GENERALIZED_K1, GENERALIZED_MISS };

static const bly_param generalized_params[] = {
    [GENERALIZED_BITS] =
        BLY_PARAM("bits", BLY_UINT, .min = 1, .max = GENERALIZED_MAX_BITS,
                  .help = "bits in the array (m)"),
    [GENERALIZED_K0] =
        BLY_PARAM("k0", BLY_UINT, .settable = true, .automatic = true, .min = 1,
                  .max = GENERALIZED_MAX_K, .help = "bits a key resets"),
    [GENERALIZED_K1] =
        BLY_PARAM("k1", BLY_UINT, .settable = true, .automatic = true, .min = 1,
                  .max = GENERALIZED_MAX_K, .help = "bits a key sets"),
    [GENERALIZED_MISS] =
        BLY_PARAM("miss", BLY_REAL, .settable = true, .automatic = true,
                  .planning = true, .min = 1e-6, .max = 0.99,
                  .help = "the most keys that it may miss at capacity, as a "
                          "rate; by default any number"),
};

static uint64_t generalized_nbytes(uint64_t m)
{
    return (m + 63) / 64 * 8;
}

static bly_shape generalized_shape(double m, uint64_t k0, uint64_t k1)
{
    return (bly_shape){ .p = { [GENERALIZED_BITS] = (uint64_t)m,
                               [GENERALIZED_K0] = k0,
                               [GENERALIZED_K1] = k1 },
                        .nbytes = generalized_nbytes((uint64_t)m) };
}

static bool generalized_sane(const bly_shape *s)
{
    const uint64_t m = s->p[GENERALIZED_BITS];
    const uint64_t k0 = s->p[GENERALIZED_K0], k1 = s->p[GENERALIZED_K1];
    return k0 >= 1 && k0 <= GENERALIZED_MAX_K && k1 >= 1 &&
           k1 <= GENERALIZED_MAX_K && m >= GENERALIZED_ROOM * (k0 + k1) &&
           m <= (uint64_t)GENERALIZED_MAX_BITS &&
           s->nbytes == generalized_nbytes(m);
}

static uint64_t generalized_bits(const bly_shape *s)
{
    return s->p[GENERALIZED_BITS];
}

/* ------------------------------------------------------------------- rates */

/* What a key does to a given bit. */
typedef struct generalized_law {
    double k0, k1;
    double s0, s1;   /* shares of the keys that touch it: reset it, set it */
    double log_left; /* ln L, the chance that it is left alone */
} generalized_law;

static generalized_law generalized_law_of(const bly_shape *s)
{
    const double m = (double)s->p[GENERALIZED_BITS];
    const double k0 = (double)s->p[GENERALIZED_K0];
    const double k1 = (double)s->p[GENERALIZED_K1];
    /* expm1 and log1p, since 1 - 1/m would lose most digits of 1/m. */
    const double lq = log1p(-1 / m); /* ln q */
    const double r0 = -expm1(k0 * lq), r1 = exp(k0 * lq) * -expm1(k1 * lq);
    /* L = q^k0 q^k1: neither resets nor sets it. */
    return (generalized_law){ k0, k1, r0 / (r0 + r1), r1 / (r0 + r1),
                              (k0 + k1) * lq };
}

static double generalized_limit(double k0, double k1)
{
    return pow(k0 / (k0 + k1), k0) * pow(k1 / (k0 + k1), k1);
}

/* The rate for many keys, when the number of ones hardly varies. */
static double generalized_rate_many(const bly_shape *s, double n)
{
    const generalized_law l = generalized_law_of(s);
    if (!(n > 0))
        return 0;
    const double ones = l.s1 * -expm1(n * l.log_left);
    return pow(ones, l.k1) * pow(1 - ones, l.k0);
}

static double generalized_missed_many(const bly_shape *s, double j)
{
    const generalized_law l = generalized_law_of(s);
    const double left = exp(j * l.log_left);
    return 1 - pow(l.s1 + l.s0 * left, l.k1) * pow(l.s0 + l.s1 * left, l.k0);
}

/* The mean over n keys, of which the last was followed by none and the first by
 * n - 1 others: by Simpson's rule, exact enough for so smooth a curve. */
static double generalized_mean_many(const bly_shape *s, double n)
{
    enum { STEPS = 64 };
    double sum = 0;
    for (int i = 0; i <= STEPS; i++)
        sum += (i == 0 || i == STEPS ? 1
                : i % 2              ? 4
                                     : 2) *
               generalized_missed_many(s, (n - 1) * i / STEPS);
    return sum / (3 * STEPS);
}

/* In the header of a packet the number of ones does vary, and bits of a key may
 * coincide. For few keys everything is computed from Q(a, b), the chance that a
 * given bits are one and b other given bits are zero. A bit that is set, or
 * reset, is any of the m:
 *
 *     set      Q(a, b) (1 - (a + b)/m) + Q(a - 1, b) a/m
 *     reset    Q(a, b) (1 - (a + b)/m) + Q(a, b - 1) b/m
 *
 * Initially Q is 1 for a = 0 in an empty array, and 1 for all bits of a key
 * that has just been added. A key has a ones and b zeros with the chance W(a,
 * b), since its bits may coincide, and is found with the sum of W Q. */
#define GENERALIZED_FEW 256       /* keys */
#define GENERALIZED_EFFORT 0x1p20 /* steps at most */

typedef double generalized_table[GENERALIZED_MAX_K + 1][GENERALIZED_MAX_K + 1];

static bool generalized_few(const bly_shape *s, double n)
{
    const double k0 = (double)s->p[GENERALIZED_K0];
    const double k1 = (double)s->p[GENERALIZED_K1];
    return n >= 1 && n <= GENERALIZED_FEW &&
           n * (k0 + k1) * (k0 + 1) * (k1 + 1) <= GENERALIZED_EFFORT;
}

static void generalized_weights(const bly_shape *s, generalized_table w)
{
    const unsigned k0 = (unsigned)s->p[GENERALIZED_K0];
    const unsigned k1 = (unsigned)s->p[GENERALIZED_K1];
    const double m = (double)s->p[GENERALIZED_BITS];
    memset(w, 0, sizeof(generalized_table));
    w[0][0] = 1;
    for (unsigned i = 0; i < k0 + k1; i++)
        for (unsigned a = k1 + 1; a-- > 0;)
            for (unsigned b = k0 + 1; b-- > 0;) {
                const double new = 1 - (a + b - 1.0) / m; /* as the last one */
                const double from =
                    i < k0 ? (b ? w[a][b - 1] : 0) : (a ? w[a - 1][b] : 0);
                w[a][b] = w[a][b] * (a + b) / m + from * new;
            }
}

/* What one key does to Q: ones first. */
static void generalized_step(const bly_shape *s, generalized_table q)
{
    const unsigned k0 = (unsigned)s->p[GENERALIZED_K0];
    const unsigned k1 = (unsigned)s->p[GENERALIZED_K1];
    const double m = (double)s->p[GENERALIZED_BITS];
    for (unsigned i = 0; i < k0 + k1; i++)
        for (unsigned a = k1 + 1; a-- > 0;)
            for (unsigned b = k0 + 1; b-- > 0;) {
                const double from = i < k1 ? (a ? a * q[a - 1][b] : 0)
                                           : (b ? b * q[a][b - 1] : 0);
                q[a][b] = q[a][b] * (1 - (a + b) / m) + from / m;
            }
}

/* The chance that a key that was never added is found, if this many bits are
 * one. */
static double generalized_given(const bly_shape *s, double ones)
{
    const double m = (double)s->p[GENERALIZED_BITS];
    generalized_table w;
    double sum = 0, set = 1;
    generalized_weights(s, w);
    for (unsigned a = 0; a <= s->p[GENERALIZED_K1]; a++) {
        double both = set;
        for (unsigned b = 0; b <= s->p[GENERALIZED_K0]; b++) {
            sum += w[a][b] * both;
            both *= fmax(0, m - ones - b) / (m - a - b);
        }
        set *= fmax(0, ones - a) / (m - a);
    }
    return sum;
}

/* The highest such chance for any array. In a large array it is
 * generalized_limit(), at the corresponding share of ones; in a small one it is
 * a little more, since a bit that the key both sets and resets may be zero. */
static double generalized_worst(const bly_shape *s)
{
    const double k0 = (double)s->p[GENERALIZED_K0];
    const double k1 = (double)s->p[GENERALIZED_K1];
    const double m = (double)s->p[GENERALIZED_BITS];
    double at = floor(m * k1 / (k0 + k1)), worst = generalized_given(s, at);
    for (double step = -1; step <= 1; step += 2)
        for (double next = at + step; next >= 0 && next <= m; next += step) {
            const double rate = generalized_given(s, next);
            if (rate <= worst)
                break;
            worst = rate;
            at = next;
        }
    return worst;
}

/* The chance that a key is found after n others: one that was added before
 * them, or one that was never added. *mean: the mean of this over 0 to n - 1
 * others. */
static double generalized_found(const bly_shape *s, unsigned n, bool came,
                                double *mean)
{
    generalized_table w, q;
    double found = 0, sum = 0;
    generalized_weights(s, w);
    for (unsigned a = 0; a <= GENERALIZED_MAX_K; a++)
        for (unsigned b = 0; b <= GENERALIZED_MAX_K; b++)
            q[a][b] = came || a == 0;
    for (unsigned i = 0; i <= n; i++) {
        sum += found;
        if (i)
            generalized_step(s, q);
        found = 0;
        for (unsigned a = 0; a <= s->p[GENERALIZED_K1]; a++)
            for (unsigned b = 0; b <= s->p[GENERALIZED_K0]; b++)
                found += w[a][b] * q[a][b];
    }
    *mean = n ? sum / n : found;
    return found;
}

static double generalized_rate(const bly_shape *s, double n)
{
    double mean;
    return generalized_few(s, n)
               ? generalized_found(s, (unsigned)n, false, &mean)
               : generalized_rate_many(s, n);
}

/* The chance that a key is missed if j others have followed it. */
static double generalized_missed(const bly_shape *s, double j)
{
    double mean;
    return generalized_few(s, j)
               ? 1 - generalized_found(s, (unsigned)j, true, &mean)
               : generalized_missed_many(s, j);
}

/* The share of n keys that are missed. */
static double generalized_missed_mean(const bly_shape *s, double n)
{
    double mean;
    if (!generalized_few(s, n))
        return generalized_mean_many(s, n);
    generalized_found(s, (unsigned)n, true, &mean);
    return 1 - mean;
}

/* ---------------------------------------------------------------- planning */

/* A rate nearer to its limit than this means that old keys are forgotten. */
#define GENERALIZED_SHARE 0.3
/* The highest rate planned for (1, 1), whose limit is 1/4. */
#define GENERALIZED_MOST 0.2

/* k0 and k1 with this sum, as w wants them; false: there are none. A sum of two
 * stands for the k0 and k1 that were given. */
static bool generalized_split(const bly_want *w, uint64_t sum, uint64_t *k0,
                              uint64_t *k1)
{
    const uint64_t a = w->opt[GENERALIZED_K0], b = w->opt[GENERALIZED_K1];
    if (sum == 2) {
        *k0 = a ? a : 1;
        *k1 = b ? b : 1;
        return true;
    }
    *k0 = a ? a : b ? sum - b : sum / 2;
    *k1 = b ? b : sum - *k0;
    /* k0 > sum: sum - k1 was negative and has wrapped around. */
    return !(a && b) && *k0 >= 1 && *k1 >= 1 && *k0 <= sum &&
           *k0 <= GENERALIZED_MAX_K && *k1 <= GENERALIZED_MAX_K;
}

/* The shape with the lowest rate within its share of the limit, over all sums
 * k0 + k1; if no sum is within it, the one with the smallest sum. */
static bly_shape generalized_best(const bly_want *w, double m)
{
    const double n = (double)w->items;
    uint64_t a, b;
    generalized_split(w, 2, &a, &b);
    bly_shape best = generalized_shape(m, a, b);
    double lowest = generalized_rate_many(&best, n);
    for (uint64_t sum = 3; sum <= 2 * GENERALIZED_MAX_K; sum++) {
        if (!generalized_split(w, sum, &a, &b) ||
            m < GENERALIZED_ROOM * (double)(a + b))
            continue;
        const bly_shape s = generalized_shape(m, a, b);
        const double rate = generalized_rate_many(&s, n);
        if (rate < lowest &&
            rate <=
                GENERALIZED_SHARE * generalized_limit((double)a, (double)b)) {
            lowest = rate;
            best = s;
        }
    }
    return best;
}

/* Whether an array of m bits keeps both rates, by the formulas for many keys.
 * Both fall as m grows. */
static bool generalized_keeps(const bly_want *w, double m, uint64_t k0,
                              uint64_t k1)
{
    const double n = (double)w->items;
    const bly_shape s = generalized_shape(m, k0, k1);
    return generalized_rate_many(&s, n) <= w->fpr &&
           generalized_mean_many(&s, n) <= bly_want_real(w, GENERALIZED_MISS);
}

/* Correct the shape for few keys, which take a few bits more than these
 * formulas say. */
static bly_status generalized_settle(const bly_want *w, bly_shape *out)
{
    const double n = (double)w->items;
    const double miss =
        w->opt[GENERALIZED_MISS] ? bly_want_real(w, GENERALIZED_MISS) : 1;
    double m = (double)out->p[GENERALIZED_BITS];
    while (generalized_few(out, n) && m < GENERALIZED_MAX_BITS / 2 &&
           (generalized_rate(out, n) > w->fpr ||
            generalized_missed_mean(out, n) > miss)) {
        m = floor(m * 1.01) + 1;
        *out = generalized_shape(m, out->p[GENERALIZED_K0],
                                 out->p[GENERALIZED_K1]);
    }
    return BLY_OK;
}

/* The fewest bits with which both rates are kept, over all k0 + k1. */
static bly_status generalized_plan_both(const bly_want *w, bly_shape *out)
{
    double best = GENERALIZED_MAX_BITS + 1;
    for (uint64_t sum = 2; sum <= 2 * GENERALIZED_MAX_K; sum++) {
        uint64_t a, b;
        if (!generalized_split(w, sum, &a, &b))
            continue;
        double low = GENERALIZED_ROOM * (double)(a + b) - 1, high = best - 1;
        /* These are not worth a search unless they beat the best so far. */
        if (low >= high || !generalized_keeps(w, high, a, b))
            continue;
        while (high - low > 1) {
            const double mid = floor(low + (high - low) / 2);
            if (generalized_keeps(w, mid, a, b))
                high = mid;
            else
                low = mid;
        }
        best = high;
        *out = generalized_shape(best, a, b);
    }
    if (best <= GENERALIZED_MAX_BITS)
        return generalized_settle(w, out);
    return bly_fail(BLY_ERANGE,
                    "a generalized filter has at most 2^48 bits: ask for fewer "
                    "items, a higher rate or a higher miss");
}

/* The shape with the lowest rate among all that miss no more than allowed. */
static bly_status generalized_plan_within(const bly_want *w, bly_shape *out)
{
    const double n = (double)w->items, m = (double)w->bits;
    double lowest = INFINITY, least = 1;
    for (uint64_t sum = 2; sum <= 2 * GENERALIZED_MAX_K; sum++) {
        uint64_t a, b;
        if (!generalized_split(w, sum, &a, &b) ||
            m < GENERALIZED_ROOM * (double)(a + b))
            continue;
        const bly_shape s = generalized_shape(m, a, b);
        const double missed = generalized_missed_mean(&s, n);
        const double rate = generalized_rate(&s, n);
        least = fmin(least, missed);
        if (missed <= bly_want_real(w, GENERALIZED_MISS) && rate < lowest) {
            lowest = rate;
            *out = s;
        }
    }
    if (lowest < INFINITY)
        return BLY_OK;
    return bly_fail(BLY_EINVAL,
                    "a generalized filter of %llu bits misses at least %.3g of "
                    "%llu items, not %.3g: give more bits or a higher miss",
                    (unsigned long long)w->bits, least,
                    (unsigned long long)w->items,
                    bly_want_real(w, GENERALIZED_MISS));
}

static bly_status generalized_plan(const bly_want *w, bly_shape *out)
{
    const uint64_t k0 = w->opt[GENERALIZED_K0], k1 = w->opt[GENERALIZED_K1];
    const uint64_t room = GENERALIZED_ROOM * ((k0 ? k0 : 1) + (k1 ? k1 : 1));
    if (w->bits) {
        if ((double)w->bits > GENERALIZED_MAX_BITS)
            return bly_fail(BLY_ERANGE,
                            "a generalized filter has at most 2^48 bits");
        if (w->bits < room)
            return bly_fail(BLY_EINVAL,
                            "a generalized filter of so many k0 and k1 needs "
                            "at least %llu bits, not %llu",
                            (unsigned long long)room,
                            (unsigned long long)w->bits);
        if (w->opt[GENERALIZED_MISS])
            return generalized_plan_within(w, out);
        *out = generalized_best(w, (double)w->bits);
        return BLY_OK;
    }
    if (w->opt[GENERALIZED_MISS])
        return generalized_plan_both(w, out);
    /* A rate above the limit is kept by any array, however small: plan for one
     * that is worth asking for. With one bit, `least` has the k0 and k1 that
     * were given, or 1. */
    const bly_shape least = generalized_best(w, 1);
    const double limit = generalized_limit((double)least.p[GENERALIZED_K0],
                                           (double)least.p[GENERALIZED_K1]);
    bly_want worth = *w;
    worth.fpr = fmin(w->fpr, GENERALIZED_MOST * 4 * limit);
    if (!bly_plan_least(&worth, generalized_best, generalized_rate_many,
                        (double)room - 1, (double)room, GENERALIZED_MAX_BITS,
                        out))
        return bly_fail(BLY_ERANGE,
                        "a generalized filter has at most 2^48 bits: ask for "
                        "fewer items or a higher rate");
    return generalized_settle(&worth, out);
}

/* The capacity or, if more keys were added, their number. */
static uint64_t generalized_held(const bly_filter *f)
{
    return f->items > f->nadded ? f->items : f->nadded;
}

static void generalized_describe(const bly_shape *s, const bly_want *w,
                                 const bly_filter *f, bly_facts *out)
{
    /* A filter that holds more keys than planned also misses more. */
    const double n = w ? (double)w->items : (double)generalized_held(f);
    bly_fact_real(out, "fpr_limit", generalized_worst(s));
    bly_fact_real(out, "missed_of_first", generalized_missed(s, n - 1));
    bly_fact_real(out, "missed_mean", generalized_missed_mean(s, n));
}

/* -------------------------------------------------------- asking and adding */

/* Probes 0 .. k0-1 are reset, the k1 behind them set. */
typedef struct generalized_view {
    uint64_t *words;
    uint64_t m;
    unsigned k0, k;
} generalized_view;

static inline generalized_view generalized_view_of(const bly_filter *f)
{
    return (generalized_view){
        .words = (uint64_t *)(void *)f->data,
        .m = f->shape.p[GENERALIZED_BITS],
        .k0 = (unsigned)f->shape.p[GENERALIZED_K0],
        .k =
            (unsigned)(f->shape.p[GENERALIZED_K0] + f->shape.p[GENERALIZED_K1]),
    };
}

/* Must a bit of the key at p be zero? */
static bool generalized_resets(const generalized_view *v, bly_spots at,
                               uint64_t p)
{
    for (unsigned i = 0; i < v->k0; i++)
        if (bly_spot(at, i) == p)
            return true;
    return false;
}

/* Does the key have zeros where zeros must be, and ones where ones must be,
 * except for bits that it also resets? All bits are read without a branch; only
 * a key that has all its zeros, but not all its ones, needs a closer look. */
static inline __attribute__((always_inline)) bool
generalized_holds(const generalized_view *v, bly_spots at)
{
    bool zeros = true, ones = true;
    for (unsigned i = 0; i < v->k0; i++)
        zeros &= !bly_bit_get(v->words, bly_spot(at, i));
    for (unsigned i = v->k0; i < v->k; i++)
        ones &= bly_bit_get(v->words, bly_spot(at, i));
    if (ones || !zeros)
        return zeros;
    for (unsigned i = v->k0; i < v->k; i++)
        if (!bly_bit_get(v->words, bly_spot(at, i)) &&
            !generalized_resets(v, at, bly_spot(at, i)))
            return false;
    return true;
}

/* One batch. The bitmap tells which keys are there, or which were new. */
typedef struct generalized_batch {
    generalized_view v;
    uint64_t *bitmap, nfresh;
} generalized_batch;

static inline __attribute__((always_inline)) void
generalized_ask(void *ctx, size_t i, bly_spots at)
{
    generalized_batch *const b = ctx;
    b->bitmap[i / 64] |= (uint64_t)generalized_holds(&b->v, at) << i % 64;
}

static inline __attribute__((always_inline)) void
generalized_enter(void *ctx, size_t i, bly_spots at)
{
    generalized_batch *const b = ctx;
    const generalized_view v = b->v;
    const bool absent = !generalized_holds(&v, at);
    /* Ones first: a bit that is both must end up as zero. */
    for (unsigned j = v.k0; j < v.k; j++)
        bly_bit_set(v.words, bly_spot(at, j));
    for (unsigned j = 0; j < v.k0; j++)
        bly_bit_clear(v.words, bly_spot(at, j));
    b->nfresh += absent;
    if (b->bitmap)
        b->bitmap[i / 64] |= (uint64_t)absent << i % 64;
}

static bly_steps generalized_steps(const generalized_view *v)
{
    return (bly_steps){ .range = bly_modulus_of(v->m),
                        .k = v->k,
                        .rule = BLY_STEPS_MIXED };
}

static void generalized_has(const bly_filter *f, const uint64_t *h, size_t n,
                            uint64_t *maybe)
{
    generalized_batch b = { .v = generalized_view_of(f), .bitmap = maybe };
    bly_probe_each(f->data, 1, generalized_steps(&b.v), false, h, n, NULL,
                   generalized_ask, &b);
}

static void generalized_reach(const bly_filter *f, const uint64_t *h, size_t n,
                              uint64_t *bad)
{
    const generalized_view v = generalized_view_of(f);
    bly_probe_reach(f, 0, 1, generalized_steps(&v), h, n, bad);
}

static bly_status generalized_add(bly_filter *f, const uint64_t *h, size_t n,
                                  uint64_t *fresh, size_t *ndone)
{
    generalized_batch b = { .v = generalized_view_of(f), .bitmap = fresh };
    bly_probe_each(f->data, 1, generalized_steps(&b.v), false, h, n, NULL,
                   generalized_enter, &b);
    bly_filter_added(f, b.nfresh);
    *ndone = n;
    return BLY_OK;
}

static bool generalized_check(const bly_filter *f)
{
    return bly_bits_tail_clear((const uint64_t *)(const void *)f->data,
                               f->shape.p[GENERALIZED_BITS],
                               (size_t)f->shape.nbytes / 8);
}

/* The ones tell the rate. They do not tell the number of keys, since keys may
 * have undone what others did. */
static void generalized_stat(const bly_filter *f, bly_stats *out)
{
    const double ones = (double)bly_bits_count(
        (const uint64_t *)(const void *)f->data, (size_t)f->shape.nbytes / 8);
    out->fill = ones / (double)f->shape.p[GENERALIZED_BITS];
    out->items_estimate = out->items_sd = NAN;
    out->fpr_now = generalized_given(&f->shape, ones);
}

const bly_kind bly_kind_generalized = {
    .id = 20, /* on disk: never changed, never reused */
    .name = "generalized",
    .summary =
        "sets and clears bits, so it resists forgery; \"no\" is only likely",
    .params = generalized_params,
    .nparams = sizeof generalized_params / sizeof generalized_params[0],
    .traits = BLY_LIKELY_NO,
    .plan = generalized_plan,
    .sane = generalized_sane,
    .rate = generalized_rate,
    .bits = generalized_bits,
    .describe = generalized_describe,
    .check = generalized_check,
    .reach = BLY_SYSTEM(generalized_reach),
    .stat = generalized_stat,
    .add = generalized_add,
    .has = generalized_has,
    .raw = bly_bitset_raw,
};
