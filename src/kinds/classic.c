/*
 * classic.c - the Bloom filter of 1970
 *
 * n keys share m bits. A key names k of them: adding sets them, a query tests
 * them. One clear bit proves absence; k set bits prove nothing.
 *
 *     hash h -> bit i = (h C^i mod 2^64) m / 2^64           i = 0 .. k-1
 *
 * C is a constant whose powers are spread as evenly as possible in up to eight
 * dimensions (BLY_POWERS_C). So the bits of a key are as good as independent,
 * and each costs one multiplication.
 *
 * Layouts. `spread` is the one above. `shared` is older; it is still used for
 * filters made from counters. It steps through the bits:
 *
 *     x = h mod m,  y = mix(h) mod m
 *     bit i  =  x,  then x += y, y += i + 1 (mod m)      i = 0 .. k-1
 *
 * Two values do the work of k hash functions at no asymptotic cost in accuracy
 * [2]; letting y grow keeps the probes of small filters from falling into an
 * arithmetic progression, which would cost up to 18 % of the rate [3]. But two
 * values tell only m^2 keys apart: 15 keys in 256 bits have 1.4 times the rate
 * of independent probes, and 200 keys at 10^-7 have fifty times that rate
 * (probe.h). In `partitioned`, probe i has a slice of floor(m/k) bits for
 * itself, so that a key always sets k different bits; the rate is slightly
 * higher. Bit i is in slice i, at mix(h + (i+1) G) scaled to the length of the
 * slice, with G as in position.h.
 *
 * Size [1]. Rule a: m = -n ln p / (ln 2)^2 and k = (m/n) ln 2, both rounded;
 * one million keys at 1% take 9,585,059 bits (1.14 MiB) and k = 7, and since k
 * had to be rounded the rate is 1.0039 %. Rule b: the smallest m at which some
 * k keeps the rate at or below p; in the example, 9,592,955 bits.
 *
 * There is no removal: a bit does not know how many keys set it.
 *
 * In memory and on disk, bit j is bit j%64 of little-endian word j/64. Bits
 * from m on are zero.
 *
 * [1] Bloom, Space/Time Trade-offs in Hash Coding with Allowable Errors, 1970
 * [2] Kirsch and Mitzenmacher, Less Hashing, Same Performance, 2006
 * [3] Dillinger and Manolios, Bloom Filters in Probabilistic Verification, 2004
 */
#include <math.h>

#include "core/bits.h"
#include "core/status.h"
#include "kinds/bitset.h"
#include "kinds/classic.h"
#include "kinds/fold.h"
#include "kinds/probe.h"

enum {
    CLASSIC_BITS = BLY_CLASSIC_BITS,
    CLASSIC_K = BLY_CLASSIC_K,
    CLASSIC_LAYOUT = BLY_CLASSIC_LAYOUT,
    CLASSIC_RULE,
    CLASSIC_FOLDS
};
enum { CLASSIC_SHARED, CLASSIC_PARTITIONED, CLASSIC_SPREAD };

static const bly_param classic_params[] = {
    [CLASSIC_BITS] = BLY_CLASSIC_BITS_PARAM,
    [CLASSIC_K] = BLY_CLASSIC_K_PARAM,
    [CLASSIC_LAYOUT] = BLY_PARAM(
        "layout", BLY_CHOICE, .settable = true, .max = CLASSIC_SPREAD,
        .def = CLASSIC_SPREAD,
        .choices = BLY_WORDS("shared", "partitioned", "spread"),
        .help = BLY_AMPLE("probes spread over all bits, or each in a slice, or "
                          "shared, as counters have them")),
    [CLASSIC_RULE] = BLY_PROBE_RULE_PARAM,
    [CLASSIC_FOLDS] = BLY_FOLDS_PARAM,
};

uint64_t bly_classic_nbytes(uint64_t m)
{
    return (m + 63) / 64 * 8;
}

/* Bits of a slice, or of the whole. */
static uint64_t classic_range(const bly_shape *s)
{
    return s->p[CLASSIC_LAYOUT] == CLASSIC_PARTITIONED
               ? s->p[CLASSIC_BITS] / s->p[CLASSIC_K]
               : s->p[CLASSIC_BITS];
}

static bly_status classic_plan(const bly_want *w, bly_shape *out)
{
    const uint64_t folds = w->opt[CLASSIC_FOLDS];
    bly_size size;
    bly_status st = bly_probe_plan(
        &bly_kind_classic, w, w->bits, w->opt[CLASSIC_K],
        w->opt[CLASSIC_RULE] != 0, folds,
        w->opt[CLASSIC_LAYOUT] == CLASSIC_SPREAD ? bly_fpr_exact
                                                 : bly_probe_rate,
        &size);
    if (st)
        return st;
    *out = (bly_shape){ .p = { [CLASSIC_BITS] = (uint64_t)size.m,
                               [CLASSIC_K] = size.k,
                               [CLASSIC_LAYOUT] = w->opt[CLASSIC_LAYOUT] } };
    if (out->p[CLASSIC_LAYOUT] == CLASSIC_PARTITIONED) {
        /* All slices have the same length, so the remainder of the division by
         * k is dropped. */
        uint64_t range = classic_range(out);
        st = bly_fold_plan(folds, 1, w->bits != 0, &range);
        out->p[CLASSIC_BITS] = range * size.k;
    }
    out->nbytes = bly_classic_nbytes(out->p[CLASSIC_BITS]);
    return st;
}

static bool classic_sane(const bly_shape *s)
{
    const uint64_t m = s->p[CLASSIC_BITS], k = s->p[CLASSIC_K];
    return bly_probe_sane(m, k) && s->p[CLASSIC_LAYOUT] <= CLASSIC_SPREAD &&
           (s->p[CLASSIC_LAYOUT] != CLASSIC_PARTITIONED || m % k == 0) &&
           s->nbytes == bly_classic_nbytes(m);
}

static double classic_rate(const bly_shape *s, double n)
{
    const unsigned k = (unsigned)s->p[CLASSIC_K];
    const double range = (double)classic_range(s);
    return s->p[CLASSIC_LAYOUT] == CLASSIC_PARTITIONED
               ? bly_fpr_partitioned(n, range, k)
           : s->p[CLASSIC_LAYOUT] == CLASSIC_SPREAD
               ? bly_fpr_exact(n, range, k)
               : bly_probe_rate(n, range, k);
}

static uint64_t classic_bits(const bly_shape *s)
{
    return s->p[CLASSIC_BITS];
}

static void classic_describe(const bly_shape *s, const bly_want *w,
                             const bly_filter *f, bly_facts *out)
{
    const double n = (double)(w ? w->items : f->items);
    const double m = (double)s->p[CLASSIC_BITS];
    const unsigned k = (unsigned)s->p[CLASSIC_K];
    if (s->p[CLASSIC_LAYOUT] != CLASSIC_PARTITIONED) {
        bly_fact_real(out, "fpr_approx", bly_fpr_approx(n, m, k));
        bly_fact_real(out, "fpr_classic", bly_fpr_classic(n, m, k));
        bly_fact_real(out, "fpr_exact", bly_fpr_exact(n, m, k));
    }
    if (w && w->fpr > 0) {
        /* The result of the other rule, for comparison. */
        const bly_size b = bly_size_rule_b(n, w->fpr);
        bly_fact_uint(out, "rule_b_bits", (uint64_t)b.m);
        bly_fact_uint(out, "rule_b_k", b.k);
        bly_fact_real(out, "rule_b_fpr", bly_fpr_approx(n, b.m, b.k));
    }
}

/* Where the probes of a key go. Slices are short, and two values mod s tell
 * only s^2 keys apart: n keys would add n/s^2 to the rate, which is half as
 * much again at 1000 keys and 0.1 %. So in slices each probe has a hash of its
 * own. */
static bly_steps classic_steps(const bly_shape *s)
{
    static const bly_steps_rule rules[] = {
        [CLASSIC_SHARED] = BLY_STEPS_DOUBLE,
        [CLASSIC_PARTITIONED] = BLY_STEPS_MIXED,
        [CLASSIC_SPREAD] = BLY_STEPS_POWERS,
    };
    const uint64_t layout = s->p[CLASSIC_LAYOUT];
    return (bly_steps){
        .range = bly_modulus_of(classic_range(s)),
        .k = s->p[CLASSIC_K],
        .rule = rules[layout],
        .apart = layout == CLASSIC_PARTITIONED ? classic_range(s) : 0,
    };
}

static inline __attribute__((always_inline)) bly_probe_query
classic_query(const bly_filter *f, bly_steps steps)
{
    return (bly_probe_query){
        .cells = f->data,
        .width = 1,
        .range = steps.range,
        .k = steps.k,
        .rule = steps.rule,
        .apart = steps.apart,
        .test = bly_probe_bit,
        .ctx = f->data,
    };
}

void bly_classic_has(const bly_filter *f, const uint64_t *h, size_t n,
                     uint64_t *maybe)
{
    const bly_probe_query q = classic_query(f, classic_steps(&f->shape));
    bly_probe_ask(&q, h, n, maybe);
}

void bly_classic_reach(const bly_filter *f, const uint64_t *h, size_t n,
                       uint64_t *bad)
{
    bly_probe_reach(f, 0, 1, classic_steps(&f->shape), h, n, bad);
}

void bly_classic_fetch(const bly_filter *f, const uint64_t *h, size_t n)
{
    bly_probe_announce(f->data, 1, classic_steps(&f->shape), h, n);
}

/* A batch that is being added. */
typedef struct classic_batch {
    uint64_t *words;
    uint64_t *fresh; /* or NULL */
    uint64_t nfresh;
} classic_batch;

static inline void classic_note(classic_batch *b, size_t i, bool changed)
{
    b->nfresh += changed;
    if (b->fresh)
        b->fresh[i / 64] |= (uint64_t)changed << i % 64;
}

/* Set the bits of a key, as one of many writers. All bits are read first, and
 * then those that were clear are set, because an atomic operation waits for
 * everything before it and delays everything after it. If two writers add the
 * same new key, both may find it new, but at least one does. */
static inline __attribute__((always_inline)) bool classic_share(uint64_t *words,
                                                                bly_spots at)
{
    bool changed = false;
    for (uint64_t from = 0; from < at.n; from += 64) {
        const uint64_t some = at.n - from < 64 ? at.n - from : 64;
        uint64_t clear = 0;
        BLY_UNROLL(8)
        for (uint64_t j = 0; j < some; j++)
            clear |= (uint64_t)!bly_probe_bit(words, bly_spot(at, from + j), 0)
                     << j;
        changed |= clear != 0;
        for (; clear; clear &= clear - 1) {
            const uint64_t bit =
                bly_spot(at, from + (unsigned)__builtin_ctzll(clear));
            bly_word_set_shared(&words[bit >> 6],
                                bly_le64(UINT64_C(1) << (bit & 63)));
        }
    }
    return changed;
}

/* Set bits `from` to `to` - 1 of a key. The result is not 0 if one of them was
 * clear; its bits mean nothing else. */
static inline __attribute__((always_inline)) uint64_t
classic_set(uint64_t *words, bly_spots at, uint64_t from, uint64_t to)
{
    uint64_t missing = 0;
    BLY_UNROLL(8)
    for (uint64_t j = from; j < to; j++) {
        const uint64_t spot = bly_spot(at, j);
        const uint64_t bit = bly_le64(UINT64_C(1) << (spot & 63));
        const uint64_t old = words[spot >> 6];
        words[spot >> 6] = old | bit;
        missing |= bit & ~old;
        /* Kept in a register; otherwise gcc would vectorise the loop. */
        __asm__("" : "+r"(missing));
    }
    return missing;
}

/* The same for keys in a row, whose positions come from memory: a word that is
 * shifted down takes fewer instructions than a mask. One key by itself has its
 * masks in registers, and then this takes more. */
static inline __attribute__((always_inline)) uint64_t
classic_set_in_row(uint64_t *words, bly_spots at, uint64_t to)
{
    uint64_t all = UINT64_MAX;
    BLY_UNROLL(4)
    for (uint64_t j = 0; j < to; j++) {
        const uint64_t spot = bly_spot(at, j);
        const uint64_t old = bly_le64(words[spot >> 6]);
        words[spot >> 6] = bly_le64(old | UINT64_C(1) << (spot & 63));
        all &= old >> (spot & 63);
        __asm__("" : "+r"(all)); /* as above */
    }
    return !(all & 1);
}

/* Set all bits of a key; true if that changed one. Most keys are new, and most
 * new keys have one of their first three bits clear. That settles it, so the
 * other bits are set without looking at their old values, in half the
 * instructions. This takes one branch, which at capacity goes the other way for
 * one new key in eight. in_row is a literal. */
#define CLASSIC_TELLING 3

static inline __attribute__((always_inline)) bool
classic_put(uint64_t *words, bly_spots at, bool in_row)
{
    const uint64_t telling = at.n < CLASSIC_TELLING ? at.n : CLASSIC_TELLING;
    if (!(in_row ? classic_set_in_row(words, at, telling)
                 : classic_set(words, at, 0, telling)))
        return classic_set(words, at, telling, at.n) != 0;
    BLY_UNROLL(8)
    for (uint64_t j = telling; j < at.n; j++)
        bly_bit_set(words, bly_spot(at, j));
    return true;
}

static inline __attribute__((always_inline)) void
classic_mark_alone(void *ctx, size_t i, bly_spots at)
{
    classic_batch *const b = ctx;
    classic_note(b, i, classic_put(b->words, at, true));
}

static inline __attribute__((always_inline)) void
classic_mark_shared(void *ctx, size_t i, bly_spots at)
{
    classic_batch *const b = ctx;
    classic_note(b, i, classic_share(b->words, at));
}

/* A bit may be set twice, so equal positions need not be found, as they must be
 * for counters. shared is a literal wherever this body is used. */
static inline __attribute__((always_inline)) bly_status
classic_add_body(bly_filter *f, const uint64_t *h, size_t n, uint64_t *fresh,
                 size_t *ndone, bool shared)
{
    bly_probe_visit *const visit =
        shared ? classic_mark_shared : classic_mark_alone;
    classic_batch b = { (uint64_t *)(void *)f->data, fresh, 0 };
    bly_probe_each(f->data, 1, classic_steps(&f->shape), false, h, n, NULL,
                   visit, &b);
    bly_filter_added(f, b.nfresh);
    *ndone = n;
    return BLY_OK;
}

static bool classic_sliced(const bly_filter *f)
{
    return f->shape.p[CLASSIC_LAYOUT] == CLASSIC_PARTITIONED;
}

bly_status bly_classic_add(bly_filter *f, const uint64_t *h, size_t n,
                           uint64_t *fresh, size_t *ndone)
{
    return classic_add_body(f, h, n, fresh, ndone, false);
}

bly_status bly_classic_add_shared(bly_filter *f, const uint64_t *h, size_t n,
                                  uint64_t *fresh, size_t *ndone)
{
    return classic_add_body(f, h, n, fresh, ndone, true);
}

/* One key, without slices. k is a literal where it is 7. */
BLY_ONE_BODY bool spread_has_k(const bly_filter *f, uint64_t h)
{
    return bly_spread_has_(f->data, f->shape.p[CLASSIC_BITS],
                           f->shape.p[CLASSIC_K], h);
}

BLY_ONE_BODY bool spread_has_seven(const bly_filter *f, uint64_t h)
{
    return bly_spread_has_(f->data, f->shape.p[CLASSIC_BITS], 7, h);
}

BLY_ONE_BODY bly_status spread_add(bly_filter *f, uint64_t h, uint64_t k)
{
    uint64_t at[BLY_PROBE_MAX_K];
    BLY_UNROLL(8)
    for (uint64_t i = 0; i < k; i++)
        at[i] = bly_probe_power(&h, f->shape.p[CLASSIC_BITS]);
    f->nadded += classic_put((uint64_t *)(void *)f->data,
                             (bly_spots){ at, 1, k }, false);
    return BLY_OK;
}

BLY_ONE_BODY bly_status spread_add_k(bly_filter *f, uint64_t h)
{
    return spread_add(f, h, f->shape.p[CLASSIC_K]);
}

BLY_ONE_BODY bly_status spread_add_seven(bly_filter *f, uint64_t h)
{
    return spread_add(f, h, 7);
}

BLY_ONE_HAS(spread_has_one, spread_has_k)
BLY_ONE_HAS(spread_has_7, spread_has_seven)
BLY_ONE_ADD(spread_add_one, spread_add_k)
BLY_ONE_ADD(spread_add_7, spread_add_seven)

/* The shared layout: aid is the inverse of the number of bits. */
BLY_ONE_BODY bool classic_has_k(const bly_filter *f, uint64_t h)
{
    const bly_modulus range = { f->shape.p[CLASSIC_BITS], f->aid };
    const bly_probe_query q = classic_query(
        f, (bly_steps){ .range = range, .k = f->shape.p[CLASSIC_K] });
    return bly_probe_alone(&q, h);
}

static __attribute__((noinline)) bool classic_has_any(const bly_filter *f,
                                                      uint64_t h)
{
    return classic_has_k(f, h);
}

/* k = 7, the same as through a view. */
BLY_ONE_BODY bool classic_has_seven(const bly_filter *f, uint64_t h)
{
    const bly_modulus range = { f->shape.p[CLASSIC_BITS], f->aid };
    const bly_view_classic v = { .bits = f->data, .nbits = range.n };
    bly_probe p = bly_probe_start(h, range);
    return bly_classic_even_(p.y, range.n) ? bly_classic_seven_(&v, p.x, p.y)
                                           : classic_has_any(f, h);
}

/* k is a literal where it is 7. `even` is a literal too: it says that no step
 * needs a reduction mod m (bly_classic_even_()). */
BLY_ONE_BODY bly_status classic_add_at(bly_filter *f, bly_probe p, uint64_t k,
                                       bool even)
{
    const uint64_t nbits = f->shape.p[CLASSIC_BITS];
    uint64_t at[BLY_PROBE_MAX_K];
    BLY_UNROLL(8)
    for (uint64_t i = 0; i < k; i++) {
        at[i] = p.x;
        if (even) {
            p.x = bly_wrap_(p.x + p.y, nbits);
            p.y += i + 1;
        } else {
            (void)bly_probe_next(&p, nbits, i);
        }
    }
    f->nadded += classic_put((uint64_t *)(void *)f->data,
                             (bly_spots){ at, 1, k }, false);
    return BLY_OK;
}

static __attribute__((noinline)) bly_status classic_add_any(bly_filter *f,
                                                            bly_probe p)
{
    return classic_add_at(f, p, f->shape.p[CLASSIC_K], false);
}

BLY_ONE_BODY bly_status classic_add_k(bly_filter *f, uint64_t h)
{
    const bly_modulus range = { f->shape.p[CLASSIC_BITS], f->aid };
    return classic_add_any(f, bly_probe_start(h, range));
}

BLY_ONE_BODY bly_status classic_add_seven(bly_filter *f, uint64_t h)
{
    const bly_modulus range = { f->shape.p[CLASSIC_BITS], f->aid };
    const bly_probe p = bly_probe_start(h, range);
    return bly_classic_even_(p.y, range.n) ? classic_add_at(f, p, 7, true)
                                           : classic_add_any(f, p);
}

BLY_ONE_HAS(classic_has_one, classic_has_k)
BLY_ONE_HAS(classic_has_7, classic_has_seven)
BLY_ONE_ADD(classic_add_one, classic_add_k)
BLY_ONE_ADD(classic_add_7, classic_add_seven)

void bly_classic_one(const bly_filter *f, bly_one *out)
{
    const bool seven = f->shape.p[CLASSIC_K] == 7;
    /* One writer sets bits without atomic operations; readers do not care. */
    if (classic_sliced(f) || (f->shared && !bly_filter_live(f)))
        return;
#define CHOOSE(layout, k)                    \
    (BLY_ONE_SET_HAS(out, layout##_has_##k), \
     f->shared ? (void)0 : BLY_ONE_SET_ADD(out, layout##_add_##k))
    if (f->shape.p[CLASSIC_LAYOUT] == CLASSIC_SPREAD) {
        seven ? CHOOSE(spread, 7) : CHOOSE(spread, one);
    } else {
        out->aid = bly_modulus_of(f->shape.p[CLASSIC_BITS]).inverse;
        seven ? CHOOSE(classic, 7) : CHOOSE(classic, one);
    }
#undef CHOOSE
}

bool bly_view_of_classic(const bly_filter *f, bly_view_classic *out)
{
    if (!bly_filter_viewed(f, &bly_kind_classic, out) || classic_sliced(f))
        return false;
    const bly_modulus range = bly_modulus_of(f->shape.p[CLASSIC_BITS]);
    const bool spread = f->shape.p[CLASSIC_LAYOUT] == CLASSIC_SPREAD;
    *out = (bly_view_classic){
        .bits = f->data,
        .nbits = range.n,
        .inverse = spread ? 0 : range.inverse,
        .k = f->shape.p[CLASSIC_K],
        .turned = f->extra->turned,
        .folded = bly_filter_folds(f),
    };
    return true;
}

bly_bitset bly_classic_bitset(const bly_filter *f)
{
    return (bly_bitset){
        .words = (const uint64_t *)(const void *)f->data,
        .nwords = f->shape.nbytes / 8,
        .m = (double)f->shape.p[CLASSIC_BITS],
        .k = (double)f->shape.p[CLASSIC_K],
        .width = INFINITY,
    };
}

bly_status bly_classic_from_cells(const bly_filter *f, uint64_t m, uint64_t k,
                                  unsigned width, const bly_kind *to,
                                  const bly_want *w, bly_filter **out)
{
    const bly_shape shape = { .p = { [CLASSIC_BITS] = m, [CLASSIC_K] = k },
                              .nbytes = bly_classic_nbytes(m) };
    if (to != &bly_kind_classic)
        return bly_fail(BLY_ENOTSUP,
                        "a %s filter becomes a classic one, not a %s one",
                        f->kind->name, to->name);
    /* Each cell becomes one bit, so size, k and positions cannot be chosen. */
    if (w->fpr > 0 || (w->bits && w->bits != m) ||
        (w->given[CLASSIC_K] && w->opt[CLASSIC_K] != k) ||
        (w->given[CLASSIC_LAYOUT] && w->opt[CLASSIC_LAYOUT] != CLASSIC_SHARED))
        return bly_fail(BLY_EINVAL,
                        "the filter becomes a classic one of %llu bits and "
                        "k = %llu in the shared layout: leave rate, memory, k "
                        "and layout out",
                        (unsigned long long)m, (unsigned long long)k);
    bly_setting set = bly_setting_of(f);
    set.items = w->items ? w->items : f->items;
    set.fpr = classic_rate(&shape, (double)set.items);
    const bly_status st = bly_filter_make(to, &shape, &set, out);
    if (st)
        return st;
    /* A cell in use is a bit that is set. */
    bly_cells_to_bits(f->data, m, width, (uint64_t *)(void *)(*out)->data);
    bly_bitset_recount(*out);
    return BLY_OK;
}

/* In the shared layout positions are taken mod m, so bits j and j + m/2 become
 * one. In the other layouts they are scaled, so neighbours become one. Either
 * way the result equals a filter of half the size built from the same keys, bit
 * for bit. */
static bly_status classic_fold(const bly_filter *f, bly_filter **out)
{
    const bool shared = f->shape.p[CLASSIC_LAYOUT] == CLASSIC_SHARED;
    bly_shape half = bly_shape_of(f);
    half.p[CLASSIC_BITS] /= 2;
    half.nbytes = bly_classic_nbytes(half.p[CLASSIC_BITS]);
    const bly_status st = bly_fold_begin(
        f, classic_range(&f->shape),
        classic_sliced(f) ? "bits of a slice" : "bits", &half, out);
    if (st)
        return st;
    (shared ? bly_bits_fold_halves : bly_bits_fold_pairs)(
        (uint64_t *)(void *)(*out)->data,
        (const uint64_t *)(const void *)f->data, half.p[CLASSIC_BITS]);
    return BLY_OK;
}

bool bly_classic_check(const bly_filter *f)
{
    return bly_bits_tail_clear((const uint64_t *)(const void *)f->data,
                               f->shape.p[CLASSIC_BITS], f->shape.nbytes / 8);
}

const bly_kind bly_kind_classic = {
    .id = 1, /* on disk: never changed, never reused */
    .name = "classic",
    .summary =
        BLY_AMPLE("m bits and k probes per key; the yardstick for all others"),
    .params = classic_params,
    .nparams = sizeof classic_params / sizeof classic_params[0],
    .plan = classic_plan,
    .sane = classic_sane,
    .rate = classic_rate,
    .bits = classic_bits,
    .describe = BLY_AMPLE(classic_describe),
    .check = bly_classic_check,
    .reach = BLY_SYSTEM(bly_classic_reach),
    .bitset = bly_classic_bitset,
    .stat = bly_bitset_stat,
    .one = BLY_AMPLE(bly_classic_one),
    .add = bly_classic_add,
    .add_shared = BLY_AMPLE(bly_classic_add_shared),
    .has = bly_classic_has,
    .fetch = BLY_SYSTEM(bly_classic_fetch),
    .merge = BLY_AMPLE(bly_bitset_merge),
    .merge_part = BLY_AMPLE(bly_bitset_merge_part),
    .intersect = BLY_AMPLE(bly_bitset_intersect),
    .intersect_part = BLY_AMPLE(bly_bitset_intersect_part),
    .compare =
        BLY_AMPLE(bly_bitset_compare), /* no .remove: bits do not count */
    .fold = BLY_AMPLE(classic_fold),
    .raw = bly_bitset_raw,
};
