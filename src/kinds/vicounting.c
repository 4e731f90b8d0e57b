/*
 * vicounting.c - counters raised by increments that depend on the key
 *
 * A counting filter only tests whether a counter is zero. Here each probe of a
 * key adds an increment v, drawn from a set D by the hash, and a query looks at
 * the value: could the counter c be v plus a sum of other increments?
 *
 *     D = {8, 12, 14, 15}     a counter that was hit twice, by 8 and by 12
 *
 *     +----+     v =  8:  20 -  8 = 12, an increment      pass
 *     | 20 |     v = 12:  20 - 12 =  8, an increment      pass
 *     +----+     v = 14:  20 - 14 =  6, no sum of any     "no"
 *                v = 15:  20 - 15 =  5, no sum of any     "no"
 *
 * With R the set of all sums of increments (0 included), a probe passes if
 * c >= v and c - v is in R. A key that is there always passes: the rest of the
 * counter is the sum of what others added. Only counters with few hits can rule
 * out anything, but most have few.
 *
 * The sets:
 *
 *     s     {8, 12, 14, 15}: sums of two are all different. Not in R: 1-7,
 *           9-11, 13, 17-19, 21, 25, 33.
 *     lN    {N, .. 2N-1} for N = 2, 4, 8, 16: R is 0 and everything from N on.
 *     b3    {1, 4, 8, 13}: sums of three are all different (of four not). The
 *           cell has two counters: hits, and the sum. Up to three hits tell
 *           exactly which increments were added; more pass.
 *
 *     own   two, four or eight increments that the caller gives, as the option
 *           `set`. R is computed up to 63; what is left above that passes, so
 *           that a set with holes beyond loses a little and is never wrong.
 *
 * A cell is a counter of `width` bits, 8 if not given, 7 in the tightest
 * setting; for b3 it has 12: the hits in the low 4, the sum above. If several
 * probes of a key fall on one cell, they count as one probe with the sum of
 * their increments, so that removing can check it.
 *
 * Rate. A counter gets j hits with the binomial probability p_j for kn and 1/m.
 * Let q_j be the probability that j hits let a random increment pass, found by
 * convolution; then the rate is (sum p_j q_j)^k. For the sets lN that is [1]
 *
 *     (1 - p0 - (L-1)/L p1 - (L^2-1)/(6 L^2) p2)^k,
 *
 * for b3 it is (1 - sum_{j<=3} p_j (3/4)^j)^k. Equal memory, best k, against
 * counters of 4 bits that count by one:
 *
 *     bits per key   counting     l4, 7 bits      s
 *        30           2.73 %        0.82 %      0.40 %
 *        50           0.25 %        0.033 %     0.010 %
 *
 * since counters are twice as wide, but a third as many are needed. One million
 * keys at 1 % with `s` take 3,125,089 counters, 25.00 bits per key, and k = 5:
 * the mean counter has 1.6 hits, where one that counts by one would have 0.7.
 *
 * A counter that reaches 2^width - 1 is stuck as in counting.c: it passes
 * every probe and is never lowered; 17 hits of 15 are needed for that, or 37
 * of 7. state[0] is the number of stuck cells.
 *
 * It is for sets. A key may be added several times, but takes as much room as a
 * new key each time, so the rate follows the number of additions. For the same
 * reason there is no count: counting.c and spectral.c do that.
 *
 * [1] Rottenstreich, Kanizo and Keslassy, The Variable-Increment Counting
 *     Bloom Filter, 2012
 */
#include <math.h>

#include "core/status.h"
#include "kinds/classic.h"
#include "kinds/fold.h"
#include "kinds/probe.h"

enum { VI_COUNTERS, VI_K, VI_INCREMENTS, VI_WIDTH, VI_FOLDS, VI_OWN };
enum { VI_STUCK }; /* state */
enum { VI_S, VI_L2, VI_L4, VI_L8, VI_L16, VI_B3, VI_SETS };

static const bly_param vicounting_params[] = {
    [VI_COUNTERS] = BLY_PARAM("counters", BLY_UINT, .min = 1,
                              .max = (double)BLY_PROBE_MAX_CELLS,
                              .help = "cells in the array (m)"),
    [VI_K] =
        BLY_PARAM("k", BLY_UINT, .settable = true, .automatic = true, .min = 1,
                  .max = BLY_PROBE_MAX_K, .help = "cells a key raises"),
    [VI_INCREMENTS] = BLY_PARAM(
        "increments", BLY_CHOICE, .settable = true, .max = VI_SETS - 1,
        .choices = BLY_WORDS("s", "l2", "l4", "l8", "l16", "b3"),
        .help = "the set that increments are drawn from"),
    [VI_WIDTH] = BLY_PARAM("width", BLY_UINT, .settable = true,
                           .automatic = true, .min = 7, .max = 16,
                           .help = "bits of a cell: 7, 8 or 16, and 12 for b3"),
    [VI_FOLDS] = BLY_FOLDS_PARAM,
    [VI_OWN] = BLY_PARAM(
        "set", BLY_UINT, .settable = true, .automatic = true,
        .max = 9999999999999999.0,
        .help = "increments of your own instead, two digits each: 2, 4 or 8 "
                "of them, as in 08121415 for {8, 12, 14, 15}"),
};

/* ---------------------------------------------------------- increment sets */

typedef struct vi_set {
    unsigned size; /* a power of two, at most 16: 4 bits choose */
    unsigned char at[16];
    uint64_t reach; /* R below 64; all from 64 on are in it */
    bool pairs;     /* hits and sum in a cell */
} vi_set;

#define VI_BIT(n) (UINT64_C(1) << (n))

static const vi_set vi_sets[VI_SETS] = {
    [VI_S] = { 4,
               { 8, 12, 14, 15 },
               ~(UINT64_C(0xfe) | VI_BIT(9) | VI_BIT(10) | VI_BIT(11) |
                 VI_BIT(13) | VI_BIT(17) | VI_BIT(18) | VI_BIT(19) |
                 VI_BIT(21) | VI_BIT(25) | VI_BIT(33)),
               false },
    [VI_L2] = { 2, { 2, 3 }, ~UINT64_C(2), false },
    [VI_L4] = { 4, { 4, 5, 6, 7 }, ~UINT64_C(0xe), false },
    [VI_L8] = { 8, { 8, 9, 10, 11, 12, 13, 14, 15 }, ~UINT64_C(0xfe), false },
    [VI_L16] = { 16,
                 { 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30,
                   31 },
                 ~UINT64_C(0xfffe),
                 false },
    [VI_B3] = { 4, { 1, 4, 8, 13 }, 0, true },
};

#define VI_OWN_MOST 8 /* increments */
#define VI_OWN_TOP 63 /* and the largest one */
#define VI_OWN_ROOM 4 /* a cell holds that many of the largest */

/* The set that a number stands for, with two digits per increment. False: it
 * stands for none. */
static bool vi_own_set(uint64_t digits, vi_set *out)
{
    *out = (vi_set){ .size = 0 };
    for (; digits; digits /= 100) {
        const unsigned v = (unsigned)(digits % 100);
        /* From the last one on, so they fall. */
        if (out->size == VI_OWN_MOST || v < 1 || v > VI_OWN_TOP ||
            (out->size && v >= out->at[out->size - 1]))
            return false;
        out->at[out->size++] = (unsigned char)v;
    }
    for (unsigned i = 0; i < out->size / 2; i++) {
        const unsigned char v = out->at[i];
        out->at[i] = out->at[out->size - 1 - i];
        out->at[out->size - 1 - i] = v;
    }
    out->reach = 1;
    for (unsigned n = 1; n < 64; n++)
        for (unsigned i = 0; i < out->size && out->at[i] <= n; i++)
            out->reach |= (out->reach >> (n - out->at[i]) & 1) << n;
    return out->size == 2 || out->size == 4 || out->size == 8;
}

/* The set of a sane shape. */
static vi_set vi_set_of(const bly_shape *s)
{
    vi_set own;
    return s->p[VI_OWN] && vi_own_set(s->p[VI_OWN], &own)
               ? own
               : vi_sets[s->p[VI_INCREMENTS]];
}

/* What a key adds to a cell: increments and how many of them. */
typedef struct vi_part {
    uint32_t sum, hits;
} vi_part;

#define VI_B3_H 3         /* hits whose sum decomposes in only one way */
#define VI_B3_WIDTH 12    /* 4 bits of hits, 8 of their sum */
#define VI_B3_TOP_HITS 15 /* 14 hits of 13 are 182, which 8 bits hold */

/* Is r the sum of n elements of {1, 4, 8, 13}? That is, is r - n a sum of at
 * most n elements of {3, 7, 12}? */
static bool vi_b3_sum(uint32_t r, uint32_t n)
{
    /* By far most cells have one or two hits besides the key's own. */
    static const uint64_t few[VI_B3_H] = {
        1,
        VI_BIT(1) | VI_BIT(4) | VI_BIT(8) | VI_BIT(13),
        VI_BIT(2) | VI_BIT(5) | VI_BIT(9) | VI_BIT(14) | VI_BIT(8) |
            VI_BIT(12) | VI_BIT(17) | VI_BIT(16) | VI_BIT(21) | VI_BIT(26),
    };
    if (n < VI_B3_H)
        return r < 64 && (few[n] >> r & 1);
    if (r < n)
        return false;
    /* With 1 taken off each of n elements, a twelves, b sevens and the rest in
     * threes remain: n of them at most. */
    for (uint32_t left = r - n, a = 0; 12 * a <= left; a++)
        for (uint32_t b = 0; 12 * a + 7 * b <= left; b++) {
            const uint32_t rest = left - 12 * a - 7 * b;
            if (rest % 3 == 0 && a + b + rest / 3 <= n)
                return true;
        }
    return false;
}

/* Does a cell let a key pass that would have put `part` into it? A query
 * decides only up to three hits, as the formula for b3 assumes; with `sure`,
 * more are decided as well. The two differ only for b3. */
static inline __attribute__((always_inline)) bool
vi_pass(const vi_set *set, uint32_t top, uint32_t cell, vi_part part, bool sure)
{
    if (!set->pairs) {
        /* Without branches: if rest wraps around below zero, whatever `in` then
         * says is masked by the comparison. */
        const uint32_t rest = cell - part.sum;
        const bool in = (rest >= 64) | (set->reach >> (rest & 63) & 1);
        return (cell == top) | ((cell >= part.sum) & in);
    }
    const uint32_t hits = cell & 15, sum = cell >> 4;
    if (cell == top)
        return true;
    if (hits < part.hits)
        return false;
    if (!sure && hits > VI_B3_H)
        return true;
    return sum >= part.sum && vi_b3_sum(sum - part.sum, hits - part.hits);
}

/* The cell after adding `part`; at the top it sticks. */
static inline __attribute__((always_inline)) uint32_t
vi_raised(const vi_set *set, uint32_t top, uint32_t cell, vi_part part)
{
    if (!set->pairs)
        return bly_cell_sum(cell, part.sum, top);
    /* Stuck by hits, not by sum: 14 hits cannot overflow the sum. */
    const uint32_t hits = (cell & 15) + part.hits;
    return hits >= VI_B3_TOP_HITS ? top : ((cell >> 4) + part.sum) << 4 | hits;
}

static inline __attribute__((always_inline)) uint32_t
vi_lowered(const vi_set *set, uint32_t top, uint32_t cell, vi_part part)
{
    if (cell == top)
        return top;
    return cell - (set->pairs ? part.sum << 4 | part.hits : part.sum);
}

/* ----------------------------------------------------------------- planning */

/* From this many hits on, every probe passes, or nearly so: this many times the
 * smallest increment, minus the largest one, is past the last hole of R that is
 * considered. */
#define VI_HITS 24
static unsigned vi_hits(const vi_set *set)
{
    const unsigned n = 2 + (64U + set->at[set->size - 1]) / set->at[0];
    return n < VI_HITS ? n : VI_HITS;
}

/* no[j]: the probability that a cell with j hits denies a random increment. */
typedef struct vi_law {
    double no[VI_HITS];
    unsigned hits;
} vi_law;

static void vi_convolve(const vi_set *set, vi_law *law)
{
    enum { REACH = VI_HITS * VI_OWN_TOP + 1 };
    double chance[REACH] = { 1 }, next[REACH];
    const double each = 1.0 / set->size;
    law->hits = vi_hits(set);
    /* chance[c]: that j hits have the sum c. */
    for (unsigned j = 0; j < law->hits; j++) {
        law->no[j] = 0;
        for (uint32_t c = 0; c < REACH; c++)
            for (unsigned v = 0; v < set->size; v++)
                if (!vi_pass(set, UINT32_MAX, c, (vi_part){ set->at[v], 1 },
                             false))
                    law->no[j] += chance[c] * each;
        for (unsigned c = 0; c < REACH; c++)
            next[c] = 0;
        for (unsigned v = 0; v < set->size; v++)
            for (unsigned c = 0; c + set->at[v] < REACH; c++)
                next[c + set->at[v]] += chance[c] * each;
        for (unsigned c = 0; c < REACH; c++)
            chance[c] = next[c];
    }
}

static vi_law vi_law_of(const vi_set *set)
{
    vi_law law = { { 0 }, VI_B3_H + 1 };
    if (set->pairs)
        /* Up to three hits tell all their increments: denied if none of them
         * is the key's. */
        for (unsigned j = 0; j <= VI_B3_H; j++)
            law.no[j] = pow((set->size - 1.0) / set->size, j);
    else
        vi_convolve(set, &law);
    return law;
}

static double vi_rate(const vi_law *law, double n, double m, double k)
{
    const double hits = k * n;
    if (n <= 0)
        return 0;
    if (m <= 1)
        return 1;
    double p = exp(hits * log1p(-1 / m)), denied = 0;
    for (unsigned j = 0; j < law->hits; j++) {
        denied += p * law->no[j];
        /* From p_j to p_(j+1) of the binomial distribution. */
        p *= fmax(0, hits - j) / (j + 1) / (m - 1);
    }
    return pow(fmax(0, 1 - denied), k);
}

/* The smallest number of cells that keeps the rate; above the limit if none
 * does. */
static double vi_least(const vi_law *law, double n, double fpr, double k)
{
    double low = k - 1, high = fmax(k, n); /* low is too few, high enough */
    while (vi_rate(law, n, high, k) > fpr) {
        low = high;
        high *= 2;
        if (high > 2 * (double)BLY_PROBE_MAX_CELLS)
            return high;
    }
    while (high - low > 1) {
        const double mid = floor((low + high) / 2);
        if (vi_rate(law, n, mid, k) > fpr)
            low = mid;
        else
            high = mid;
    }
    return high;
}

static bool vi_width_ok(const vi_set *set, uint64_t width)
{
    return set->pairs ? width == VI_B3_WIDTH
                      : width == 7 || width == 8 || width == 16;
}

static bool vi_own_fits(const vi_set *set, uint64_t width)
{
    return VI_OWN_ROOM * set->at[set->size - 1] < bly_cell_top((unsigned)width);
}

static bly_shape vi_shape(uint64_t m, uint64_t k, uint64_t increments,
                          uint64_t width, uint64_t own)
{
    return (bly_shape){ .p = { [VI_COUNTERS] = m,
                               [VI_K] = k,
                               [VI_INCREMENTS] = increments,
                               [VI_WIDTH] = width,
                               [VI_OWN] = own },
                        .nbytes = bly_cells_nbytes(m, (unsigned)width) };
}

static bly_status vicounting_plan(const bly_want *w, bly_shape *out)
{
    const uint64_t increments = w->opt[VI_INCREMENTS], only = w->opt[VI_K];
    const uint64_t own = w->opt[VI_OWN];
    vi_set set = vi_sets[increments];
    if (own && w->given[VI_INCREMENTS])
        return bly_fail(BLY_EINVAL, "increments are chosen by name or given "
                                    "as set, not both");
    if (own && !vi_own_set(own, &set))
        return bly_fail(BLY_EINVAL,
                        "set = %llu is not a set of increments: expected 2, 4 "
                        "or 8 rising numbers from 1 to %d, two digits each, as "
                        "in 08121415 for {8, 12, 14, 15}",
                        (unsigned long long)own, VI_OWN_TOP);
    const uint64_t width = w->given[VI_WIDTH] ? w->opt[VI_WIDTH]
                           : set.pairs        ? VI_B3_WIDTH
                                              : 8;
    const double n = (double)w->items;
    if (own && vi_width_ok(&set, width) && !vi_own_fits(&set, width))
        return bly_fail(BLY_EINVAL,
                        "a cell of %llu bits does not hold %d increments of "
                        "%u: give a larger width or smaller increments",
                        (unsigned long long)width, VI_OWN_ROOM,
                        set.at[set.size - 1]);
    if (!vi_width_ok(&set, width))
        return bly_fail(BLY_EINVAL,
                        "width = %llu: cells have 12 bits for increments b3, "
                        "else 7, 8 or 16",
                        (unsigned long long)width);
    /* 0 if bits are not given, which is divisible by any 2^folds. */
    uint64_t cells = w->bits / width;
    const bly_status st = bly_fold_plan(w->opt[VI_FOLDS], 1, true, &cells);
    if (st)
        return st;
    const double given = (double)cells;
    if (w->bits && (given < 1 || given < (double)only))
        return bly_fail(BLY_EINVAL,
                        "%llu bits are fewer than the cells of a key need",
                        (unsigned long long)w->bits);

    const vi_law law = vi_law_of(&set);
    double best_m = INFINITY, best_rate = 2;
    uint64_t best_k = 0;
    for (uint64_t k = only ? only : 1; k <= (only ? only : BLY_PROBE_MAX_K) &&
                                       !(w->bits && (double)k > given);
         k++) {
        const double m = w->bits ? given : vi_least(&law, n, w->fpr, (double)k);
        const double rate = vi_rate(&law, n, m, (double)k);
        if (m < best_m || (m == best_m && rate < best_rate)) {
            best_m = m;
            best_rate = rate;
            best_k = k;
        } else if (m > 2 * best_m) {
            break; /* from the best k on the size only rises */
        }
    }
    if (best_m > (double)BLY_PROBE_MAX_CELLS)
        return bly_fail(BLY_ERANGE,
                        "a vicounting filter has at most 2^48 cells; "
                        "ask for fewer items or a higher rate");
    cells = (uint64_t)best_m;
    bly_fold_plan(w->opt[VI_FOLDS], 1, false, &cells);
    *out = vi_shape(cells, best_k, increments, width, own);
    return BLY_OK;
}

static bool vicounting_sane(const bly_shape *s)
{
    vi_set set;
    if (s->p[VI_INCREMENTS] >= VI_SETS ||
        (s->p[VI_OWN] &&
         (s->p[VI_INCREMENTS] || !vi_own_set(s->p[VI_OWN], &set))))
        return false;
    set = vi_set_of(s);
    return bly_probe_sane(s->p[VI_COUNTERS], s->p[VI_K]) &&
           vi_width_ok(&set, s->p[VI_WIDTH]) &&
           (!s->p[VI_OWN] || vi_own_fits(&set, s->p[VI_WIDTH])) &&
           s->nbytes ==
               bly_cells_nbytes(s->p[VI_COUNTERS], (unsigned)s->p[VI_WIDTH]);
}

static double vicounting_rate(const bly_shape *s, double n)
{
    const vi_set set = vi_set_of(s);
    const vi_law law = vi_law_of(&set);
    return vi_rate(&law, n, (double)s->p[VI_COUNTERS], (double)s->p[VI_K]);
}

static uint64_t vicounting_bits(const bly_shape *s)
{
    return s->p[VI_COUNTERS] * s->p[VI_WIDTH];
}

static void vicounting_describe(const bly_shape *s, const bly_want *w,
                                const bly_filter *f, bly_facts *out)
{
    const vi_set set = vi_set_of(s);
    const double n = (double)(w ? w->items : f->items);
    const double m = (double)s->p[VI_COUNTERS];
    const double lambda = (double)s->p[VI_K] * n / m;
    const double top = bly_cell_top((unsigned)s->p[VI_WIDTH]);
    const double hits =
        set.pairs ? VI_B3_TOP_HITS : ceil(top / set.at[set.size - 1]);
    /* What the same memory gives with 4-bit counters that count by one. */
    const double plain = floor((double)vicounting_bits(s) / 4);
    bly_fact_real(out, "hits_per_counter", lambda);
    bly_fact_uint(out, "hits_to_stuck", (uint64_t)hits);
    bly_fact_real(out, "stuck_bound",
                  fmin(1, m * bly_overflow_bound(lambda, hits)));
    bly_fact_real(out, "counting_fpr",
                  bly_fpr_approx(n, plain, bly_best_k(n, plain)));
    if (f)
        bly_fact_uint(out, "stuck", f->state[VI_STUCK]);
}

/* -------------------------------------------------------------- operations */

/* One batch of any operation; what it does not need stays zero. */
typedef struct vi_batch {
    unsigned char *cells;
    const vi_set *set;
    vi_set own; /* what it points to, unless that is the default */
    unsigned width;
    uint64_t k;
    bly_modulus range;
    const uint64_t *h;
    uint64_t *fresh;
    bly_status *each;
    uint64_t changed, stuck;
} vi_batch;

/* For the rare key that has several probes on one cell. at gets the cells in
 * the order of their first probes, as from bly_probe_dedupe(). */
static uint64_t vi_merge_parts(const vi_batch *b, uint64_t h, uint64_t *at,
                               vi_part *parts)
{
    uint64_t tag = bly_probe_tag(h), n = 0;
    bly_probe p = bly_probe_start(h, b->range);
    for (uint64_t i = 0; i < b->k; i++) {
        const uint64_t cell = bly_probe_next(&p, b->range.n, i);
        uint64_t j = 0;
        while (j < n && at[j] != cell)
            j++;
        if (j == n) {
            at[n] = cell;
            parts[n++] = (vi_part){ 0, 0 };
        }
        /* The tag moves on with every probe, as in vi_parts() and in queries,
         * whether its cell is new or not. */
        parts[j].sum += b->set->at[tag & (b->set->size - 1)];
        parts[j].hits++;
        tag = bly_probe_tag_next(tag, i);
    }
    return n;
}

/* What key i puts into each of its nat cells, in the order of at, which is
 * that of their first probes in both branches. */
static inline __attribute__((always_inline)) void
vi_parts(const vi_batch *b, size_t i, uint64_t nat, vi_part *parts)
{
    if (nat < b->k) {
        uint64_t at[BLY_PROBE_MAX_K];
        vi_merge_parts(b, b->h[i], at, parts);
        return;
    }
    uint64_t tag = bly_probe_tag(b->h[i]);
    for (uint64_t j = 0; j < nat; j++) {
        parts[j] = (vi_part){ b->set->at[tag & (b->set->size - 1)], 1 };
        tag = bly_probe_tag_next(tag, j);
    }
}

static inline __attribute__((always_inline)) void vi_raise(void *ctx, size_t i,
                                                           bly_spots at)
{
    vi_batch *const b = ctx;
    const uint32_t top = bly_cell_top(b->width);
    vi_part parts[BLY_PROBE_MAX_K];
    bool new_key = false, changed = false;
    vi_parts(b, i, at.n, parts);
    for (uint64_t j = 0; j < at.n; j++) {
        const uint32_t c = bly_cell_get(b->cells, bly_spot(at, j), b->width);
        const uint32_t sum = vi_raised(b->set, top, c, parts[j]);
        /* One cell that cannot contain the key proves that it is new. */
        new_key |= !vi_pass(b->set, top, c, parts[j], false);
        bly_cell_put(b->cells, bly_spot(at, j), b->width, sum);
        changed |= c != sum;
        b->stuck += (c != top) & (sum == top);
    }
    b->changed += changed;
    if (b->fresh)
        b->fresh[i / 64] |= (uint64_t)new_key << i % 64;
}

static inline __attribute__((always_inline)) void vi_lower(void *ctx, size_t i,
                                                           bly_spots at)
{
    vi_batch *const b = ctx;
    const uint32_t top = bly_cell_top(b->width);
    vi_part parts[BLY_PROBE_MAX_K];
    bool in = true;
    vi_parts(b, i, at.n, parts);
    /* All cells are checked before the first is lowered. `sure`, since
     * subtracting from a cell that cannot contain the key would leave a value
     * that is no sum of increments. */
    for (uint64_t j = 0; j < at.n; j++)
        in &= vi_pass(b->set, top,
                      bly_cell_get(b->cells, bly_spot(at, j), b->width),
                      parts[j], true);
    b->each[i] = in ? BLY_OK : BLY_EABSENT;
    if (!in)
        return;
    for (uint64_t j = 0; j < at.n; j++) {
        const uint32_t c = bly_cell_get(b->cells, bly_spot(at, j), b->width);
        bly_cell_put(b->cells, bly_spot(at, j), b->width,
                     vi_lowered(b->set, top, c, parts[j]));
    }
    b->changed++;
}

static bool vi_usual(const bly_shape *s)
{
    return s->p[VI_INCREMENTS] == VI_S && s->p[VI_WIDTH] == 8 && !s->p[VI_OWN];
}

/* Run a batch, with the default set and width as literals. */
static inline __attribute__((always_inline)) void
vi_run(const bly_filter *f, vi_batch *b, const uint64_t *h, size_t n,
       bly_probe_visit *visit)
{
    b->cells = f->data;
    b->k = f->shape.p[VI_K];
    b->range = bly_modulus_of(f->shape.p[VI_COUNTERS]);
    b->h = h;
    /* The same twice, but the compiler sees constants in the first. */
    if (vi_usual(&f->shape)) {
        b->set = &vi_sets[VI_S];
        b->width = 8;
        bly_probe_each(f->data, 8, (bly_steps){ .range = b->range, .k = b->k },
                       true, h, n, NULL, visit, b);
    } else {
        b->own = vi_set_of(&f->shape);
        b->set = &b->own;
        b->width = (unsigned)f->shape.p[VI_WIDTH];
        bly_probe_each(f->data, b->width,
                       (bly_steps){ .range = b->range, .k = b->k }, true, h, n,
                       NULL, visit, b);
    }
}

static bly_status vicounting_add(bly_filter *f, const uint64_t *h, size_t n,
                                 uint64_t *fresh, size_t *ndone)
{
    vi_batch b = { .fresh = fresh };
    vi_run(f, &b, h, n, vi_raise);
    f->state[VI_STUCK] += b.stuck;
    bly_filter_added(f, b.changed);
    *ndone = n;
    return BLY_OK;
}

static void vicounting_remove(bly_filter *f, const uint64_t *h, size_t n,
                              bly_status *each)
{
    vi_batch b = { .each = each };
    vi_run(f, &b, h, n, vi_lower);
    bly_filter_removed(f, b.changed);
}

static inline __attribute__((always_inline)) bool
vi_test_s8(const void *cells, uint64_t at, uint64_t tag)
{
    /* The set as the bytes of a word. */
    const uint32_t v = UINT32_C(0x0f0e0c08) >> (tag & 3) * 8 & 15;
    return vi_pass(&vi_sets[VI_S], 255, bly_cell_get(cells, at, 8),
                   (vi_part){ v, 1 }, false);
}

static inline __attribute__((always_inline)) bool
vi_test(const void *ctx, uint64_t at, uint64_t tag)
{
    const vi_batch *const b = ctx;
    const uint32_t v = b->set->at[tag & (b->set->size - 1)];
    return vi_pass(b->set, bly_cell_top(b->width),
                   bly_cell_get(b->cells, at, b->width), (vi_part){ v, 1 },
                   false);
}

/* Keys that pass probe by probe, but have several probes on one cell, must pass
 * with the sum of their increments as well. */
static void vi_recheck(const vi_batch *b, const uint64_t *h, size_t n,
                       uint64_t *maybe)
{
    const uint32_t top = bly_cell_top(b->width);
    for (size_t from = 0; from < n; from += 64) {
        uint64_t bits = maybe[from / 64];
        /* Only keys that have passed, and of these only the few whose probes
         * may meet. */
        if (bits)
            bits &= bly_probe_repeats(h + from, n - from < 64 ? n - from : 64,
                                      b->range, b->k);
        for (; bits; bits &= bits - 1) {
            const uint64_t key = h[from + (size_t)__builtin_ctzll(bits)];
            uint64_t at[BLY_PROBE_MAX_K];
            vi_part parts[BLY_PROBE_MAX_K];
            const uint64_t nat = vi_merge_parts(b, key, at, parts);
            bool in = true;
            for (uint64_t j = 0; j < nat; j++)
                in &= vi_pass(b->set, top,
                              bly_cell_get(b->cells, at[j], b->width), parts[j],
                              false);
            if (!in)
                maybe[from / 64] &= ~(bits & -bits);
        }
    }
}

static void vicounting_has(const bly_filter *f, const uint64_t *h, size_t n,
                           uint64_t *maybe)
{
    const vi_set set = vi_set_of(&f->shape);
    const vi_batch b = {
        .cells = f->data,
        .set = &set,
        .width = (unsigned)f->shape.p[VI_WIDTH],
        .k = f->shape.p[VI_K],
        .range = bly_modulus_of(f->shape.p[VI_COUNTERS]),
    };
    bly_probe_query q = {
        .cells = f->data, .range = b.range, .k = b.k, .tagged = true
    };
    /* As in vi_run(): constants for the default. */
    if (vi_usual(&f->shape)) {
        q.width = 8;
        q.test = vi_test_s8;
        q.ctx = f->data;
        bly_probe_ask(&q, h, n, maybe);
    } else {
        q.width = b.width;
        q.test = vi_test;
        q.ctx = &b;
        bly_probe_ask(&q, h, n, maybe);
    }
    vi_recheck(&b, h, n, maybe);
}

static void vicounting_reach(const bly_filter *f, const uint64_t *h, size_t n,
                             uint64_t *bad)
{
    const bly_steps steps = {
        .range = bly_modulus_of(f->shape.p[VI_COUNTERS]),
        .k = f->shape.p[VI_K],
    };
    bly_probe_reach(f, 0, (unsigned)f->shape.p[VI_WIDTH], steps, h, n, bad);
}

/* ------------------------------------------------------------ whole filters */

static bly_cells_tally vi_tally(const bly_filter *f)
{
    return bly_cells_count(f->data, f->shape.p[VI_COUNTERS],
                           (unsigned)f->shape.p[VI_WIDTH]);
}

static bool vicounting_sound(const bly_filter *f)
{
    return !f->nlayers && f->state[VI_STUCK] <= f->shape.p[VI_COUNTERS];
}

/* Is every cell stuck, or a sum of increments? */
static bool vicounting_check(const bly_filter *f)
{
    const vi_set own = vi_set_of(&f->shape), *const set = &own;
    const uint64_t m = f->shape.p[VI_COUNTERS];
    const unsigned width = (unsigned)f->shape.p[VI_WIDTH];
    const uint32_t top = bly_cell_top(width);
    for (uint64_t j = 0; j < m; j++) {
        const uint32_t c = bly_cell_get(f->data, j, width);
        /* 15 hits are stuck, and have but one form. */
        if (set->pairs && c != top && (c & 15) == VI_B3_TOP_HITS)
            return false;
        if (!vi_pass(set, top, c, (vi_part){ 0, 0 }, true))
            return false;
    }
    return bly_cells_tail_clear(f->data, m, width) &&
           vi_tally(f).stuck == f->state[VI_STUCK];
}

/* The share of (cell, increment) pairs that pass, to the k-th power. */
static double vi_rate_now(const bly_filter *f)
{
    const vi_set own = vi_set_of(&f->shape), *const set = &own;
    const uint64_t m = f->shape.p[VI_COUNTERS];
    const unsigned width = (unsigned)f->shape.p[VI_WIDTH];
    const uint32_t top = bly_cell_top(width);
    uint64_t pass = 0;
    for (uint64_t j = 0; j < m; j++) {
        const uint32_t c = bly_cell_get(f->data, j, width);
        if (!c)
            continue; /* an empty cell denies every increment */
        for (unsigned v = 0; v < set->size; v++)
            pass += vi_pass(set, top, c, (vi_part){ set->at[v], 1 }, false);
    }
    return pow((double)pass / ((double)m * set->size),
               (double)f->shape.p[VI_K]);
}

static void vicounting_stat(const bly_filter *f, bly_stats *out)
{
    bly_probe_stat(vi_tally(f).used, f->shape.p[VI_COUNTERS], f->shape.p[VI_K],
                   out);
    out->fpr_now = vi_rate_now(f);
}

/* The contents of a cell, as if one key had put them there. */
static vi_part vi_part_in(const vi_set *set, uint32_t cell)
{
    return set->pairs ? (vi_part){ cell >> 4, cell & 15 }
                      : (vi_part){ cell, 1 };
}

/* Two cells as one. */
static uint32_t vi_sum(const vi_set *set, uint32_t top, uint32_t a, uint32_t b)
{
    return vi_raised(set, top, a, vi_part_in(set, b));
}

/* The one with fewer hits, or with the lesser sum. */
static uint32_t vi_lesser(const vi_set *set, uint32_t top, uint32_t a,
                          uint32_t b)
{
    /* A stuck cell denies nothing, so take the other one, whatever is in it. */
    if (a == top || b == top)
        return a == top ? b : a;
    const vi_part in_a = vi_part_in(set, a), in_b = vi_part_in(set, b);
    return in_a.hits != in_b.hits ? (in_a.hits < in_b.hits ? a : b)
                                  : (a < b ? a : b);
}

/* Combine each cell of a part with that of dst. */
static void vi_combine(bly_filter *dst, const bly_part *p,
                       uint32_t (*combine)(const vi_set *, uint32_t, uint32_t,
                                           uint32_t))
{
    const vi_set own = vi_set_of(&dst->shape), *const set = &own;
    const unsigned width = (unsigned)dst->shape.p[VI_WIDTH];
    const uint32_t top = bly_cell_top(width);
    const uint64_t n = bly_probe_cells_in(p, dst->shape.p[VI_COUNTERS], width);
    unsigned char *const cells = dst->data + p->at;
    for (uint64_t j = 0; j < n; j++)
        bly_cell_put(cells, j, width,
                     combine(set, top, bly_cell_get(cells, j, width),
                             bly_cell_get(p->bytes, j, width)));
    if (p->last)
        dst->state[VI_STUCK] = vi_tally(dst).stuck;
}

static bly_status vicounting_merge_part(bly_filter *dst, const bly_part *p)
{
    vi_combine(dst, p, vi_sum);
    if (p->last)
        bly_filter_added(dst, p->src->nadded);
    return BLY_OK;
}

/* Each of two cells holds the increments of all keys that both filters have,
 * and perhaps more. So either will do, and the one with less in it denies
 * more. */
static bly_status vicounting_intersect_part(bly_filter *dst, const bly_part *p)
{
    vi_combine(dst, p, vi_lesser);
    if (p->last)
        bly_filter_at_most(dst, p->src->nadded);
    return BLY_OK;
}

static bly_status vicounting_compare(const bly_filter *a, const bly_filter *b,
                                     bly_likeness *out)
{
    bly_probe_compare(a, b, a->shape.p[VI_COUNTERS], a->shape.p[VI_K],
                      (unsigned)a->shape.p[VI_WIDTH], out);
    return BLY_OK;
}

/* Probes of a key that fall on one cell count with the sum of their increments.
 * So the result equals the filter of half the size, bit for bit. */
static bly_status vicounting_fold(const bly_filter *f, bly_filter **out)
{
    const uint64_t *const p = f->shape.p;
    const vi_set own = vi_set_of(&f->shape), *const set = &own;
    const uint64_t m = p[VI_COUNTERS];
    const unsigned width = (unsigned)p[VI_WIDTH];
    const bly_shape half =
        vi_shape(m / 2, p[VI_K], p[VI_INCREMENTS], width, p[VI_OWN]);
    const bly_status st = bly_fold_begin(f, m, "cells", &half, out);
    if (st)
        return st;
    /* A position of the smaller filter is that of the larger, mod m/2. */
    for (uint64_t j = 0; j < m / 2; j++)
        bly_cell_put((*out)->data, j, width,
                     vi_sum(set, bly_cell_top(width),
                            bly_cell_get(f->data, j, width),
                            bly_cell_get(f->data, j + m / 2, width)));
    (*out)->state[VI_STUCK] = vi_tally(*out).stuck;
    return BLY_OK;
}

static bly_status vicounting_convert(const bly_filter *f, const bly_kind *to,
                                     const bly_want *w, bly_filter **out)
{
    return bly_classic_from_cells(f, f->shape.p[VI_COUNTERS], f->shape.p[VI_K],
                                  (unsigned)f->shape.p[VI_WIDTH], to, w, out);
}

const bly_kind bly_kind_vicounting = {
    .id = 4, /* on disk: never changed, never reused */
    .name = "vicounting",
    .summary = "counting with increments chosen by the key, for fewer bits",
    .params = vicounting_params,
    .nparams = sizeof vicounting_params / sizeof vicounting_params[0],
    .nstate = 1,
    .plan = vicounting_plan,
    .sane = vicounting_sane,
    .rate = vicounting_rate,
    .bits = vicounting_bits,
    .describe = vicounting_describe,
    .sound = vicounting_sound,
    .check = vicounting_check,
    .reach = BLY_SYSTEM(vicounting_reach),
    .stat = vicounting_stat,
    .add = vicounting_add,
    .has = vicounting_has,
    .remove = vicounting_remove,
    .merge = bly_merge_as_part,
    .merge_part = vicounting_merge_part,
    .intersect = bly_intersect_as_part,
    .intersect_part = vicounting_intersect_part,
    .compare = vicounting_compare,
    .fold = vicounting_fold,
    .convert = vicounting_convert,
};
