/*
 * floom.c - a Bloom filter with a memory of patterns, kept as a warning
 *
 * The m bits are cut into b regions. The set of regions that a key's k probes
 * fall into is its pattern, a number of b bits. A second memory of 2^b bits has
 * one bit for each pattern: adding sets it, and a query requires it to be set.
 *
 *     probes      .....x.|.......|...x...|..x....|x......     b = 5
 *     pattern        1       0       1       1       1
 *                 read from the right, region 0 first: 11101b = 29 of 32
 *
 * A probe at p is in region floor(p b / m). (The original program tested p > j
 * m / b, which puts a probe on a border into the region below: source_regions =
 * yes does the same.)
 *
 * Rate. A pattern of j regions has the chance pi_j = surj(k, j) / b^k, with
 * surj(k, j) = sum_i (-1)^i C(j, i) (j - i)^k, and is set by one of n keys with
 * 1 - (1 - pi_j)^n. So
 *
 *     f = f_bloom(n, m, k) sum_j C(b, j) pi_j (1 - (1 - pi_j)^n),  j = 1 .. k
 *
 * The second factor is what the pattern memory gains. It is never worth its
 * bits: a plain filter of m + 2^b bits had a lower rate for every n, m and b
 * that was tried, and the test tries 1792 combinations. With b = 16 and k = 7 a
 * pattern has at most seven ones, and 26,332 of the 65,536 bits can be reached
 * at all. For 1000 keys at 1 % with b = 16, the rate is 1.0005 % without
 * patterns, 0.0471 % with patterns, and 0.0000 % for a plain filter as large as
 * both.
 *
 * This kind does nothing better than classic.c. It is here so that the result
 * can be repeated. No removal: bits do not count.
 *
 * In data the m bits come first, then, from a word of their own on, 2^b more.
 */
#include <math.h>

#include "core/bits.h"
#include "core/position.h"
#include "core/status.h"
#include "kinds/bitset.h"
#include "kinds/probe.h"

#define FLOOM_MAX_BITS 0x1p48
#define FLOOM_MAX_K 64
#define FLOOM_MAX_B 28

enum { FLOOM_BITS, FLOOM_K, FLOOM_B, FLOOM_SOURCE };

static const bly_param floom_params[] = {
    [FLOOM_BITS] =
        BLY_PARAM("bits", BLY_UINT, .min = 1, .max = FLOOM_MAX_BITS,
                  .help = "bits in the array (m), patterns not included"),
    [FLOOM_K] =
        BLY_PARAM("k", BLY_UINT, .settable = true, .automatic = true, .min = 1,
                  .max = FLOOM_MAX_K, .help = "bits a key sets"),
    [FLOOM_B] = BLY_PARAM("b", BLY_UINT, .settable = true, .def = 8, .min = 1,
                          .max = FLOOM_MAX_B,
                          .help = "regions; patterns take 2^b bits"),
    [FLOOM_SOURCE] = BLY_PARAM(
        "source_regions", BLY_CHOICE, .settable = true, .max = 1,
        .choices = BLY_WORDS("no", "yes"),
        .help = "borders of regions as in the program that it comes from"),
};

static uint64_t floom_words(const bly_shape *s)
{
    return (s->p[FLOOM_BITS] + 63) / 64;
}

static uint64_t floom_pattern_words(const bly_shape *s)
{
    return ((UINT64_C(1) << s->p[FLOOM_B]) + 63) / 64;
}

static bly_shape floom_shape(uint64_t m, uint64_t k, const bly_want *w)
{
    bly_shape s = { .p = { [FLOOM_BITS] = m,
                           [FLOOM_K] = k,
                           [FLOOM_B] = w->opt[FLOOM_B],
                           [FLOOM_SOURCE] = w->opt[FLOOM_SOURCE] } };
    s.nbytes = 8 * (floom_words(&s) + floom_pattern_words(&s));
    return s;
}

static bool floom_sane(const bly_shape *s)
{
    const uint64_t m = s->p[FLOOM_BITS], k = s->p[FLOOM_K];
    const uint64_t b = s->p[FLOOM_B];
    return m >= 1 && m <= (uint64_t)FLOOM_MAX_BITS && k >= 1 &&
           k <= FLOOM_MAX_K && b >= 1 && b <= FLOOM_MAX_B && b <= m &&
           s->p[FLOOM_SOURCE] <= 1 &&
           s->nbytes == 8 * (floom_words(s) + floom_pattern_words(s));
}

static uint64_t floom_bits(const bly_shape *s)
{
    return s->p[FLOOM_BITS] + (UINT64_C(1) << s->p[FLOOM_B]);
}

/* ------------------------------------------------------------------- rates */

/* chance[j]: the probability that a pattern has j ones, C(b, j) pi_j. Each
 * probe falls into a region that was hit before, or into a new one. */
static void floom_ones(unsigned b, unsigned k, double chance[FLOOM_MAX_B + 1])
{
    for (unsigned j = 0; j <= b; j++)
        chance[j] = j == 0;
    for (unsigned probe = 0; probe < k; probe++)
        /* Downwards: chance[j - 1] must still be that of the probe before. */
        for (unsigned j = b + 1; j-- > 0;)
            chance[j] =
                chance[j] * j / b + (j ? chance[j - 1] * (b - j + 1) / b : 0);
}

static double floom_choose(unsigned n, unsigned j)
{
    double c = 1;
    for (unsigned i = 0; i < j; i++)
        c = c * (n - i) / (i + 1);
    return c;
}

/* The share of absent keys whose pattern is set after n keys. */
static double floom_pattern_share(unsigned b, unsigned k, double n)
{
    double chance[FLOOM_MAX_B + 1], sum = 0;
    floom_ones(b, k, chance);
    /* chance[j] / C(b, j) is pi_j, and -expm1(n log1p(-x)) is 1 - (1 - x)^n
     * without cancellation. */
    for (unsigned j = 1; j <= b && j <= k; j++)
        sum += chance[j] * -expm1(n * log1p(-chance[j] / floom_choose(b, j)));
    return sum;
}

static double floom_rate(const bly_shape *s, double n)
{
    const unsigned k = (unsigned)s->p[FLOOM_K], b = (unsigned)s->p[FLOOM_B];
    if (!(n > 0))
        return 0;
    return bly_fpr_exact(n, (double)s->p[FLOOM_BITS], k) *
           floom_pattern_share(b, k, n);
}

/* ---------------------------------------------------------------- planning */

/* The best k for m bits, patterns not included; nbytes is 0 if m is too small.
 * With patterns the best k differs a little from that of a plain filter, so
 * three on either side are tried. */
static bly_shape floom_best(const bly_want *w, double m)
{
    bly_shape best = { .nbytes = 0 };
    if (!(m >= (double)w->opt[FLOOM_B]))
        return best;
    const double n = (double)w->items;
    unsigned first = (unsigned)w->opt[FLOOM_K], last = first;
    if (!first) {
        const unsigned near = bly_best_k(n, m);
        first = near > 4 ? near - 3 : 1;
        last = near + 3;
    }
    double lowest = 2;
    for (unsigned k = first; k <= last && k <= FLOOM_MAX_K; k++) {
        const bly_shape s = floom_shape((uint64_t)m, k, w);
        const double rate = floom_rate(&s, n);
        if (rate < lowest) {
            lowest = rate;
            best = s;
        }
    }
    if (!best.nbytes) /* past k = 64 */
        best = floom_shape((uint64_t)m, FLOOM_MAX_K, w);
    return best;
}

static bly_status floom_plan(const bly_want *w, bly_shape *out)
{
    const double extra = ldexp(1, (int)w->opt[FLOOM_B]);
    if (w->bits) {
        *out = floom_best(w, (double)w->bits - extra);
        if (!out->nbytes)
            return bly_fail(BLY_EINVAL,
                            "%llu bits are too few: patterns of b = %llu "
                            "regions take %.0f, and each region needs one",
                            (unsigned long long)w->bits,
                            (unsigned long long)w->opt[FLOOM_B], extra);
        return BLY_OK;
    }
    if (!bly_plan_least(w, floom_best, floom_rate, 0, 64, FLOOM_MAX_BITS, out))
        return bly_fail(BLY_ERANGE, "a floom filter has at most 2^48 bits: ask "
                                    "for fewer items or a higher rate");
    return BLY_OK;
}

/* The rate of the bits alone, and that of a plain filter of the same memory
 * with its own best k, which is what should be used instead. */
static void floom_describe(const bly_shape *s, const bly_want *w,
                           const bly_filter *f, bly_facts *out)
{
    const double n = (double)(w ? w->items : f->items);
    const double m = (double)s->p[FLOOM_BITS], all = (double)floom_bits(s);
    const unsigned k = (unsigned)s->p[FLOOM_K], b = (unsigned)s->p[FLOOM_B];
    double reachable = 0;
    for (unsigned j = 1; j <= b && j <= k; j++)
        reachable += floom_choose(b, j);
    bly_fact_uint(out, "patterns_reachable", (uint64_t)(reachable + 0.5));
    bly_fact_real(out, "fpr_without_patterns", bly_fpr_approx(n, m, k));
    bly_fact_real(out, "fpr_floom",
                  bly_fpr_approx(n, m, k) * floom_pattern_share(b, k, n));
    bly_fact_real(out, "fpr_plain_of_all_bits",
                  bly_fpr_approx(n, all, bly_best_k(n, all)));
}

/* -------------------------------------------------------- asking and adding */

typedef struct floom_view {
    uint64_t *words, *patterns;
    uint64_t m, b;
    bly_modulus range; /* m */
    unsigned k;
    bool source;
} floom_view;

static inline floom_view floom_view_of(const bly_filter *f)
{
    uint64_t *const words = (uint64_t *)(void *)f->data;
    return (floom_view){
        .words = words,
        .patterns = words + floom_words(&f->shape),
        .m = f->shape.p[FLOOM_BITS],
        .range = bly_modulus_of(f->shape.p[FLOOM_BITS]),
        .b = f->shape.p[FLOOM_B],
        .k = (unsigned)f->shape.p[FLOOM_K],
        .source = f->shape.p[FLOOM_SOURCE],
    };
}

/* p b / m, below 2^53; in the source a probe on a border, p b = j m for some
 * j > 0, is in region j - 1. */
static inline uint64_t floom_region(const floom_view *v, uint64_t p)
{
    /* One less on every border, and anywhere else the same quotient. */
    const uint64_t pb = p * v->b;
    return bly_div(pb - (v->source && pb), v->range);
}

static inline uint64_t floom_pattern(const floom_view *v, uint64_t h)
{
    uint64_t pattern = 0;
    for (unsigned i = 0; i < v->k; i++)
        pattern |= UINT64_C(1) << floom_region(v, bly_position(h, i, v->m));
    return pattern;
}

static inline bool floom_get(const uint64_t *words, uint64_t j)
{
    return bly_le64(bly_word_load(&words[j >> 6])) >> (j & 63) & 1;
}

static void floom_has(const bly_filter *f, const uint64_t *h, size_t n,
                      uint64_t *maybe)
{
    const floom_view v = floom_view_of(f);
    const bly_probe_query q = {
        .cells = f->data,
        .width = 1,
        .range = v.range,
        .k = v.k,
        .rule = BLY_STEPS_MIXED,
        .test = bly_probe_bit,
        .ctx = v.words,
    };
    bly_probe_ask(&q, h, n, maybe);
    /* Few absent keys come this far, and patterns are computed only for
     * these. */
    for (size_t from = 0; from < n; from += 64)
        for (uint64_t bits = maybe[from / 64]; bits; bits &= bits - 1) {
            const uint64_t key = h[from + (size_t)__builtin_ctzll(bits)];
            if (!floom_get(v.patterns, floom_pattern(&v, key)))
                maybe[from / 64] &= ~(bits & -bits);
        }
}

static void floom_reach(const bly_filter *f, const uint64_t *h, size_t n,
                        uint64_t *bad)
{
    const floom_view v = floom_view_of(f);
    const bly_steps steps = { .range = v.range,
                              .k = v.k,
                              .rule = BLY_STEPS_MIXED };
    const uint64_t patterns = floom_words(&f->shape) * 8;
    bly_probe_reach(f, 0, 1, steps, h, n, bad);
    for (size_t i = 0; i < n; i++)
        bly_reach(f, patterns + floom_pattern(&v, h[i]) / 8, 1, i, bad);
}

static inline __attribute__((always_inline)) bool
floom_set(uint64_t *words, uint64_t j, bool shared)
{
    return shared ? bly_word_or_shared(&words[j >> 6],
                                       bly_le64(UINT64_C(1) << (j & 63))) != 0
                  : bly_bit_set(words, j);
}

/* A batch that is being added. */
typedef struct floom_batch {
    floom_view v;
    uint64_t *fresh; /* or NULL */
    uint64_t nfresh;
} floom_batch;

/* The bits first and the pattern last: a reader that sees the pattern can rely
 * on the bits. shared is a literal wherever this is used. */
static inline __attribute__((always_inline)) void
floom_mark(floom_batch *b, size_t i, bly_spots at, bool shared)
{
    uint64_t pattern = 0;
    bool changed = false;
    for (uint64_t j = 0; j < at.n; j++) {
        const uint64_t p = bly_spot(at, j);
        changed |= floom_set(b->v.words, p, shared);
        pattern |= UINT64_C(1) << floom_region(&b->v, p);
    }
    changed |= floom_set(b->v.patterns, pattern, shared);
    b->nfresh += changed;
    if (b->fresh)
        b->fresh[i / 64] |= (uint64_t)changed << i % 64;
}

static inline __attribute__((always_inline)) void
floom_mark_alone(void *ctx, size_t i, bly_spots at)
{
    floom_mark(ctx, i, at, false);
}

static inline __attribute__((always_inline)) void
floom_mark_shared(void *ctx, size_t i, bly_spots at)
{
    floom_mark(ctx, i, at, true);
}

static inline __attribute__((always_inline)) void
floom_add_body(bly_filter *f, const uint64_t *h, size_t n, uint64_t *fresh,
               bool shared)
{
    floom_batch b = { .v = floom_view_of(f), .fresh = fresh };
    const bly_steps steps = { .range = b.v.range,
                              .k = b.v.k,
                              .rule = BLY_STEPS_MIXED };
    bly_probe_each(f->data, 1, steps, false, h, n, NULL,
                   shared ? floom_mark_shared : floom_mark_alone, &b);
    bly_filter_added(f, b.nfresh);
}

static bly_status floom_add(bly_filter *f, const uint64_t *h, size_t n,
                            uint64_t *fresh, size_t *ndone)
{
    floom_add_body(f, h, n, fresh, false);
    *ndone = n;
    return BLY_OK;
}

static bly_status floom_add_shared(bly_filter *f, const uint64_t *h, size_t n,
                                   uint64_t *fresh, size_t *ndone)
{
    floom_add_body(f, h, n, fresh, true);
    *ndone = n;
    return BLY_OK;
}

/* ---------------------------------------------------------------- the rest */

/* The m bits; patterns say little about the number of keys. */
static bly_bitset floom_bitset(const bly_filter *f)
{
    return (bly_bitset){
        .words = (const uint64_t *)(const void *)f->data,
        .nwords = (size_t)floom_words(&f->shape),
        .m = (double)f->shape.p[FLOOM_BITS],
        .k = (double)f->shape.p[FLOOM_K],
        .width = INFINITY,
    };
}

static bool floom_check(const bly_filter *f)
{
    const floom_view v = floom_view_of(f);
    return bly_bits_tail_clear(v.words, v.m, (size_t)floom_words(&f->shape)) &&
           bly_bits_tail_clear(v.patterns, UINT64_C(1) << v.b,
                               (size_t)floom_pattern_words(&f->shape)) &&
           !bly_bit_get(v.patterns, 0); /* a key has a region */
}

/* An absent key passes where it meets k set bits and a set pattern. The chance
 * of meeting a given pattern follows from the number of its ones. */
static void floom_stat(const bly_filter *f, bly_stats *out)
{
    const floom_view v = floom_view_of(f);
    const uint64_t nwords = floom_pattern_words(&f->shape);
    double chance[FLOOM_MAX_B + 1], set[64] = { 0 }, share = 0;
    bly_bitset_stat(f, out);
    for (uint64_t w = 0; w < nwords; w++)
        for (uint64_t b = bly_le64(v.patterns[w]); b; b &= b - 1)
            set[__builtin_popcountll(w * 64 + (uint64_t)__builtin_ctzll(b))]++;
    floom_ones((unsigned)v.b, v.k, chance);
    for (unsigned j = 1; j <= v.b; j++)
        share += set[j] * chance[j] / floom_choose((unsigned)v.b, j);
    out->fpr_now *= share;
}

static uint64_t floom_raw(const bly_shape *s)
{
    return 64 * floom_words(s) + (UINT64_C(1) << s->p[FLOOM_B]);
}

const bly_kind bly_kind_floom = {
    .id = 7, /* on disk: never changed, never reused */
    .name = "floom",
    .summary = "bits plus patterns of regions; never better than classic",
    .params = floom_params,
    .nparams = sizeof floom_params / sizeof floom_params[0],
    .plan = floom_plan,
    .sane = floom_sane,
    .rate = floom_rate,
    .bits = floom_bits,
    .describe = floom_describe,
    .check = floom_check,
    .reach = BLY_SYSTEM(floom_reach),
    .bitset = floom_bitset,
    .stat = floom_stat,
    .add = floom_add,
    .add_shared = floom_add_shared,
    .has = floom_has,
    .merge = bly_bitset_merge,
    .merge_part = bly_bitset_merge_part,
    .intersect = bly_bitset_intersect,
    .intersect_part = bly_bitset_intersect_part,
    .compare = bly_bitset_compare, /* no .fold: regions have borders of their
                                      own, which lie between the bits */
    .raw = floom_raw,
};
