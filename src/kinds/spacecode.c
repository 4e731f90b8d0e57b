/*
 * spacecode.c - how often, from bits alone
 *
 * l groups of k hash functions over one array of m bits. Each time a key is
 * added, a generator chooses one of the l groups and that group's k bits are
 * set [1]. A key that was added once has the bits of one group set; a key that
 * was added often has those of many:
 *
 *     key, group j -> a = mix(h + (j+1) PHI);  bit i = (a C^(i+1)) * m / 2^64
 *
 *     groups of a key   . # . . # # . .     theta = 3 of l = 8 look used
 *
 * A query counts theta, the groups whose bits are all set, and turns it into a
 * number of additions x. After x additions a group is unused with probability
 * (1 - 1/l)^x, and an unused group looks used with probability f = fill^k. So
 * P(theta | x) is known (core/occupancy.h). The estimate is the x that
 * maximises it, or the x whose expected theta is nearest. With l = 32 and f = 1
 * %, theta = 16 means 21 additions and theta = 31 means 109. theta = l means
 * only "at least l ln l".
 *
 * Many resolutions. To tell large counts apart, there are g such arrays, and
 * array i records an addition only with probability p_i = p0 beta^i. The
 * estimate comes from the first array with theta at or below 0.9 l, divided by
 * its p_i: the relative error stays about the same over orders of magnitude.
 * With l = 32, beta = 1/4 and g = 8 that reaches to 32 ln 32 * 4^7 = 1.8
 * million, with a deviation of some 15 to 30 %.
 *
 * Size. Array i sees p_i x of x additions, which use l (1 - (1 - p_i/l)^x)
 * groups of a key on average. n keys that are added `mean` times each (if some
 * are added more often than others, they use fewer) fill array 0 like a Bloom
 * filter that holds all these pairs of a key and a group. A key that was never
 * added has theta > 0 with probability 1 - (1 - f)^l. Later arrays get fewer
 * pairs: each is `taper` / 65536 of the one before, but no smaller than 4 l k
 * bits, since one frequent key alone sets l k. A million keys, once each, at 1
 * %: 16.8 bits per key in array 0, 22.4 in all.
 *
 * What it does not do. Counts may be too low as well as too high. There is no
 * `has`: with p0 < 1 an addition may leave no trace, and with p0 = 1 a classic
 * filter takes half the bits. There is no removal: a bit does not know which
 * key set it. Its fill tells the number of pairs, but not of distinct keys.
 * There is no intersection: two filters that saw one key chose different groups
 * for it. It cannot be folded: the sizes of later arrays follow from that of
 * the first, rounded, and half of it does not give half of theirs.
 *
 * The generator is s = mix((s xor h) + PHI), kept in state[0]: every key that
 * is added stirs it. So the same additions in the same order give the same
 * bits, while filters of different streams draw different numbers, and can be
 * merged by OR as if one filter had seen both streams. In a shared filter each
 * writer has a generator of its own.
 *
 * In memory and on disk:
 *
 *     g words, the ones in each array, padded with 0 to 64 bytes
 *     array 0, array 1, ...  each in whole words, bits past its end 0
 *
 * [1] Kumar, Xu, Wang, Spatschek and Li, Space-code Bloom filter for efficient
 *     per-flow traffic measurement, 2004
 */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "core/bits.h"
#include "core/maths.h"
#include "core/occupancy.h"
#include "core/status.h"
#include "engine/bit_count.h"
#include "kinds/filter.h"

#define SPACECODE_MAX_BITS (UINT64_C(1) << 44) /* of one array */
#define SPACECODE_MAX_K 64
#define SPACECODE_MAX_FILTERS 16
#define SPACECODE_MAX_MEAN 1e9
#define SPACECODE_PHI UINT64_C(0x9e3779b97f4a7c15)

enum {
    SPACECODE_BITS,
    SPACECODE_GROUPS,
    SPACECODE_K,
    SPACECODE_FILTERS,
    SPACECODE_P0,
    SPACECODE_BETA,
    SPACECODE_MEAN,
    SPACECODE_TAPER,
    SPACECODE_ESTIMATE
};
enum { SPACECODE_MLE, SPACECODE_BY_MEAN };
enum { SPACECODE_GENERATOR }; /* in state */

static const bly_param spacecode_params[] = {
    [SPACECODE_BITS] =
        BLY_PARAM("bits", BLY_UINT, .min = 1, .max = (double)SPACECODE_MAX_BITS,
                  .help = "bits in the first array (m)"),
    [SPACECODE_GROUPS] =
        BLY_PARAM("groups", BLY_UINT, .settable = true, .def = 32, .min = 2,
                  .max = BLY_MAX_URNS, .help = "groups of hash functions (l)"),
    [SPACECODE_K] =
        BLY_PARAM("k", BLY_UINT, .settable = true, .automatic = true, .min = 1,
                  .max = SPACECODE_MAX_K, .help = "bits an addition sets"),
    [SPACECODE_FILTERS] = BLY_PARAM(
        "filters", BLY_UINT, .settable = true, .def = 8, .min = 1,
        .max = SPACECODE_MAX_FILTERS,
        .help = "arrays, each of lower resolution than the one before (g)"),
    [SPACECODE_P0] = BLY_PARAM(
        "p0", BLY_REAL, .settable = true, .def = 1, .min = 1e-6, .max = 1,
        .help = "probability that the first array records an addition"),
    [SPACECODE_BETA] = BLY_PARAM(
        "beta", BLY_REAL, .settable = true, .def = 0.25, .min = 0.01,
        .max = 0.99,
        .help = "that probability in each array, as a share of the one before"),
    [SPACECODE_MEAN] = BLY_PARAM(
        "mean", BLY_REAL, .settable = true, .automatic = true, .min = 1,
        .max = SPACECODE_MAX_MEAN,
        .help = "how often a key is added on average; the capacity allows for "
                "it. A builder that is not told the capacity sees how often "
                "they came; otherwise 1"),
    [SPACECODE_TAPER] =
        BLY_PARAM("taper", BLY_UINT, .min = 1, .max = 65536,
                  .help = "bits of each array in 65536ths of the one before"),
    [SPACECODE_ESTIMATE] = BLY_PARAM(
        "estimate", BLY_CHOICE, .settable = true, .max = 1,
        .choices = BLY_WORDS("mle", "mean"),
        .help = "the likeliest count, or the one whose expectation is nearest"),
};

/* ----------------------------------------------------------------- shapes */

/* The arrays, unpacked once from a shape. */
typedef struct spacecode_view {
    unsigned l, k, g;
    uint64_t m[SPACECODE_MAX_FILTERS];    /* bits */
    uint64_t from[SPACECODE_MAX_FILTERS]; /* first word in data */
    double p[SPACECODE_MAX_FILTERS];
    uint64_t nwords; /* of data */
} spacecode_view;

/* Sizes are computed in integers only, so that all machines agree. */
static spacecode_view spacecode_view_of(const bly_shape *s)
{
    spacecode_view v = { .l = (unsigned)s->p[SPACECODE_GROUPS],
                         .k = (unsigned)s->p[SPACECODE_K],
                         .g = (unsigned)s->p[SPACECODE_FILTERS] };
    const uint64_t least = (uint64_t)4 * v.l * v.k;
    double p = bly_shape_real(s, SPACECODE_P0);
    v.nwords = (v.g + 7) / 8 * 8;
    for (unsigned i = 0; i < v.g; i++) {
        uint64_t m = s->p[SPACECODE_BITS];
        if (i) {
            const uint64_t less =
                (v.m[i - 1] * s->p[SPACECODE_TAPER] + 65535) / 65536;
            /* Not below the least, unless the first array is. */
            m = less > least ? less : least < m ? least : m;
        }
        v.m[i] = m;
        v.from[i] = v.nwords;
        v.p[i] = p;
        v.nwords += (m + 63) / 64;
        p *= bly_shape_real(s, SPACECODE_BETA);
    }
    return v;
}

static bool spacecode_real_ok(const bly_shape *s, unsigned i)
{
    const double x = bly_shape_real(s, i);
    return x >= spacecode_params[i].min && x <= spacecode_params[i].max;
}

static bool spacecode_sane(const bly_shape *s)
{
    static const unsigned reals[] = { SPACECODE_P0, SPACECODE_BETA,
                                      SPACECODE_MEAN };
    for (size_t i = 0; i < sizeof reals / sizeof reals[0]; i++)
        if (!spacecode_real_ok(s, reals[i]))
            return false;
    return s->p[SPACECODE_BITS] >= 1 &&
           s->p[SPACECODE_BITS] <= SPACECODE_MAX_BITS &&
           s->p[SPACECODE_GROUPS] >= 2 &&
           s->p[SPACECODE_GROUPS] <= BLY_MAX_URNS && s->p[SPACECODE_K] >= 1 &&
           s->p[SPACECODE_K] <= SPACECODE_MAX_K &&
           s->p[SPACECODE_FILTERS] >= 1 &&
           s->p[SPACECODE_FILTERS] <= SPACECODE_MAX_FILTERS &&
           s->p[SPACECODE_TAPER] >= 1 && s->p[SPACECODE_TAPER] <= 65536 &&
           s->p[SPACECODE_ESTIMATE] <= 1 &&
           s->nbytes == 8 * spacecode_view_of(s).nwords;
}

static uint64_t spacecode_bits(const bly_shape *s)
{
    const spacecode_view v = spacecode_view_of(s);
    uint64_t sum = 0;
    for (unsigned i = 0; i < v.g; i++)
        sum += v.m[i];
    return sum;
}

/* How many groups of a key are expected to be used in array i. */
static double spacecode_pairs(const bly_shape *s, unsigned i)
{
    const double l = (double)s->p[SPACECODE_GROUPS];
    const double p = bly_shape_real(s, SPACECODE_P0) *
                     pow(bly_shape_real(s, SPACECODE_BETA), i);
    return -l * expm1(bly_shape_real(s, SPACECODE_MEAN) * log1p(-p / l));
}

/* The chance that a key that was never added has theta > 0. */
static double spacecode_any(double f, double l)
{
    return -expm1(l * log1p(-f));
}

static double spacecode_rate(const bly_shape *s, double n)
{
    const double f =
        bly_fpr_exact(n * spacecode_pairs(s, 0), (double)s->p[SPACECODE_BITS],
                      (unsigned)s->p[SPACECODE_K]);
    return spacecode_any(f, (double)s->p[SPACECODE_GROUPS]);
}

/* The largest first array with which all together have at most `bits`. */
static uint64_t spacecode_share(bly_shape s, uint64_t bits)
{
    /* The sum of all arrays rises with the first. low fits; high may. */
    uint64_t low = 0, high = bits;
    if (high > SPACECODE_MAX_BITS)
        high = SPACECODE_MAX_BITS;
    while (low < high) {
        const uint64_t mid = high - (high - low) / 2;
        s.p[SPACECODE_BITS] = mid;
        if (spacecode_bits(&s) <= bits)
            low = mid;
        else
            high = mid - 1;
    }
    return low;
}

static bly_status spacecode_plan(const bly_want *w, bly_shape *out)
{
    bly_shape s = { 0 };
    memcpy(s.p, w->opt, sizeof s.p);
    if (!s.p[SPACECODE_MEAN])
        bly_shape_set_real(&s, SPACECODE_MEAN,
                           fmin(fmax(w->mean, 1), SPACECODE_MAX_MEAN));
    const double n = (double)w->items * spacecode_pairs(&s, 0);
    const double l = (double)s.p[SPACECODE_GROUPS];

    /* One ratio for all arrays: the smallest with which array i, taper^i times
     * the size of the first, has room for its share of the pairs. The 1e-6
     * keeps a taper that is an integer except for rounding errors from being
     * rounded up. */
    double taper = 1 / 65536.0;
    for (unsigned i = 1; i < s.p[SPACECODE_FILTERS]; i++)
        taper = fmax(taper, pow(spacecode_pairs(&s, i) / spacecode_pairs(&s, 0),
                                1.0 / i));
    s.p[SPACECODE_TAPER] =
        s.p[SPACECODE_FILTERS] > 1
            ? (uint64_t)fmin(ceil(taper * 65536 - 1e-6), 65536)
            : 65536;

    bly_size size = { 0, (unsigned)s.p[SPACECODE_K] };
    if (w->bits) {
        /* The later arrays are no smaller than 4 l k, so that how much is left
         * for the first depends on k as well: try each. */
        const unsigned only = size.k;
        double best = INFINITY;
        for (unsigned k = only ? only : 1; k <= (only ? only : SPACECODE_MAX_K);
             k++) {
            s.p[SPACECODE_K] = k;
            const double m = (double)spacecode_share(s, w->bits);
            const double f = m >= 1 ? bly_fpr_approx(n, m, k) : 1;
            if (f < best) {
                best = f;
                size = (bly_size){ m, k };
            }
        }
    } else {
        /* 1 - (1 - f)^l = fpr, solved for f. */
        const double f = -expm1(log1p(-w->fpr) / l);
        if (size.k)
            size.m = ceil(-(double)size.k * n /
                          log1p(-pow(f, 1.0 / (double)size.k)));
        else
            size = bly_size_rule_b(n, f);
    }
    if (!(size.m <= (double)SPACECODE_MAX_BITS))
        return bly_fail(BLY_ERANGE,
                        "an array of a spacecode filter has at most 2^44 bits; "
                        "this one would need %.3g",
                        size.m);
    if (size.m < 1 || (w->bits && size.m < size.k))
        return bly_fail(BLY_EINVAL,
                        "%llu bits are too few for %llu arrays of a spacecode "
                        "filter",
                        (unsigned long long)w->bits,
                        (unsigned long long)s.p[SPACECODE_FILTERS]);
    s.p[SPACECODE_BITS] = (uint64_t)size.m;
    s.p[SPACECODE_K] = size.k;
    s.nbytes = 8 * spacecode_view_of(&s).nwords;
    *out = s;
    return BLY_OK;
}

/* ------------------------------------------------------------------ cells */

static uint64_t *spacecode_words(const bly_filter *f)
{
    return (uint64_t *)(void *)f->data;
}

/* The chance that an unused group of array i looks used. */
static double spacecode_f(const bly_filter *f, const spacecode_view *v,
                          unsigned i)
{
    const double ones = (double)bly_le64(bly_word_load(&spacecode_words(f)[i]));
    return pow(fmin(ones / (double)v->m[i], 1), v->k);
}

/* additions: how many the filter is planned for, of all keys together. ceiling:
 * theta cannot tell counts above this apart. */
static void spacecode_describe(const bly_shape *s, const bly_want *w,
                               const bly_filter *f, bly_facts *out)
{
    const spacecode_view v = spacecode_view_of(s);
    const double n = (double)(w ? w->items : f->items);
    bly_fact_real(
        out, "group_fpr",
        f ? spacecode_f(f, &v, 0)
          : bly_fpr_exact(n * spacecode_pairs(s, 0), (double)v.m[0], v.k));
    bly_fact_uint(
        out, "additions",
        (uint64_t)fmin(n * bly_shape_real(s, SPACECODE_MEAN) + 0.5, 0x1p63));
    bly_fact_real(out, "ceiling", v.l * log(v.l) / v.p[v.g - 1]);
}

static bly_status spacecode_start(bly_filter *f)
{
    f->state[SPACECODE_GENERATOR] =
        bly_mix64(f->extra->hasher.seed + SPACECODE_PHI);
    return BLY_OK;
}

static bool spacecode_sound(const bly_filter *f)
{
    return f->nlayers == 0;
}

/* Are there as many ones as the words in front say, and none past the ends? */
static bool spacecode_check(const bly_filter *f)
{
    const spacecode_view v = spacecode_view_of(&f->shape);
    const uint64_t *const words = spacecode_words(f);
    for (unsigned i = 0; i < v.g; i++) {
        const uint64_t *at = words + v.from[i];
        const size_t n = (size_t)((v.m[i] + 63) / 64);
        if (bly_bits_count(at, n) != bly_le64(words[i]) ||
            !bly_bits_tail_clear(at, v.m[i], n))
            return false;
    }
    for (unsigned i = v.g; i < v.from[0]; i++)
        if (words[i])
            return false;
    return true;
}

/* Where the bits of a group start. */
static inline uint64_t spacecode_group(uint64_t h, unsigned group)
{
    return bly_mix64(h + (group + 1) * SPACECODE_PHI);
}

static inline uint64_t spacecode_bit(uint64_t *a, uint64_t m)
{
    *a *= BLY_POWERS_C;
    return bly_scale(*a, m);
}

/* Set the bits of a group in array i; returns how many were clear. */
static inline uint64_t spacecode_set(bly_filter *f, const spacecode_view *v,
                                     unsigned i, uint64_t h, unsigned group)
{
    uint64_t *const words = spacecode_words(f) + v->from[i];
    uint64_t a = spacecode_group(h, group), clear = 0;
    for (unsigned t = 0; t < v->k; t++) {
        const uint64_t bit = spacecode_bit(&a, v->m[i]);
        if (f->shared)
            clear +=
                bly_word_or_shared(&words[bit >> 6],
                                   bly_le64(UINT64_C(1) << (bit & 63))) != 0;
        else
            clear += bly_bit_set(words, bit);
    }
    return clear;
}

/* Keys are queried together, as many as have this number of groups in total. */
#define SPACECODE_PAIRS 256
_Static_assert(BLY_MAX_URNS <= SPACECODE_PAIRS, "a key is asked as a whole");

/* A group of a key, all of whose bits so far were set. */
typedef struct spacecode_pair {
    uint64_t a, at;
    unsigned key;
} spacecode_pair;

/* The theta of n keys in array i. This goes bit by bit: for all remaining
 * groups the next bit is fetched, then tested, and groups that have it set
 * stay. In a well-planned array at most half do, so a group takes two tests on
 * average, and none waits for another. */
static void spacecode_thetas(const bly_filter *f, const spacecode_view *v,
                             unsigned i, const uint64_t *h, size_t n,
                             unsigned *theta)
{
    const uint64_t *const words = spacecode_words(f) + v->from[i];
    spacecode_pair pairs[SPACECODE_PAIRS];
    size_t left = 0;
    for (size_t key = 0; key < n; key++) {
        theta[key] = 0;
        for (unsigned j = 0; j < v->l; j++)
            pairs[left++] = (spacecode_pair){ .a = spacecode_group(h[key], j),
                                              .key = (unsigned)key };
    }
    for (unsigned t = 0; t < v->k; t++) {
        size_t kept = 0;
        for (size_t p = 0; p < left; p++) {
            pairs[p].at = spacecode_bit(&pairs[p].a, v->m[i]);
            __builtin_prefetch(&words[pairs[p].at >> 6], 0, 2);
        }
        /* Those that fail are overwritten: no branch. */
        for (size_t p = 0; p < left; p++) {
            const spacecode_pair pair = pairs[p];
            const uint64_t word = bly_le64(bly_word_load(&words[pair.at >> 6]));
            pairs[kept] = pair;
            kept += word >> (pair.at & 63) & 1;
        }
        left = kept;
    }
    for (size_t p = 0; p < left; p++)
        theta[pairs[p].key]++;
}

/* ----------------------------------------------------------------- adding */

/* What one call draws and sets; spacecode_end() transfers it to the filter. */
typedef struct spacecode_turn {
    bly_filter *f;
    spacecode_view v;
    uint64_t s;                           /* the generator */
    uint64_t ones[SPACECODE_MAX_FILTERS]; /* new ones in each array */
} spacecode_turn;

static void spacecode_begin(bly_filter *f, spacecode_turn *turn)
{
    uint64_t *const s = &f->state[SPACECODE_GENERATOR];
    *turn = (spacecode_turn){ .f = f, .v = spacecode_view_of(&f->shape) };
    /* Each call of a shared filter gets a generator of its own: PHI is odd, so
     * the word that is mixed does not repeat before 2^64 calls. */
    turn->s =
        f->shared
            ? bly_mix64(atomic_fetch_add_explicit(
                  (_Atomic uint64_t *)s, SPACECODE_PHI, memory_order_relaxed))
            : *s;
}

static void spacecode_end(spacecode_turn *turn)
{
    uint64_t *const words = spacecode_words(turn->f);
    if (!turn->f->shared)
        turn->f->state[SPACECODE_GENERATOR] = turn->s;
    for (unsigned i = 0; i < turn->v.g; i++) {
        if (!turn->f->shared) {
            words[i] = bly_le64(bly_le64(words[i]) + turn->ones[i]);
            continue;
        }
        /* The word is little-endian on every machine: fetch_add will not do. */
        _Atomic uint64_t *const at = (_Atomic uint64_t *)&words[i];
        uint64_t was = atomic_load_explicit(at, memory_order_relaxed);
        while (turn->ones[i] &&
               !atomic_compare_exchange_weak_explicit(
                   at, &was, bly_le64(bly_le64(was) + turn->ones[i]),
                   memory_order_relaxed, memory_order_relaxed))
            ;
    }
}

static inline uint64_t spacecode_draw(spacecode_turn *turn, uint64_t h)
{
    return turn->s = bly_mix64((turn->s ^ h) + SPACECODE_PHI);
}

/* A draw as a number in [0, 1), and as a group for array i: two things from
 * one draw, so the second goes through the mixer again. */
static inline double spacecode_unit(uint64_t draw)
{
    return (double)(draw >> 11) * 0x1p-53;
}

static inline unsigned spacecode_chosen(const spacecode_turn *turn,
                                        uint64_t draw, unsigned i)
{
    return (unsigned)bly_scale(bly_mix64(draw + i + 1), turn->v.l);
}

/* All arrays use the same u, and p falls from array to array. So an addition
 * that one array records was recorded by all before it, and the loop ends with
 * the first that does not record it. */
static inline void spacecode_record(spacecode_turn *turn, uint64_t h,
                                    uint64_t draw)
{
    const double u = spacecode_unit(draw);
    for (unsigned i = 0; i < turn->v.g && u < turn->v.p[i]; i++)
        turn->ones[i] += spacecode_set(turn->f, &turn->v, i, h,
                                       spacecode_chosen(turn, draw, i));
}

static inline void spacecode_fetch(const spacecode_turn *turn, uint64_t h,
                                   uint64_t draw)
{
    const double u = spacecode_unit(draw);
    for (unsigned i = 0; i < turn->v.g && u < turn->v.p[i]; i++) {
        const uint64_t *const words =
            spacecode_words(turn->f) + turn->v.from[i];
        uint64_t a = spacecode_group(h, spacecode_chosen(turn, draw, i));
        for (unsigned t = 0; t < turn->v.k; t++)
            __builtin_prefetch(&words[spacecode_bit(&a, turn->v.m[i]) >> 6], 1,
                               2);
    }
}

/* Does no group look used in the first array? */
static bool spacecode_absent(const bly_filter *f, const spacecode_view *v,
                             uint64_t h)
{
    unsigned theta;
    spacecode_thetas(f, v, 0, &h, 1, &theta);
    return theta == 0;
}

/* Keys whose bits are fetched ahead of being set. */
#define SPACECODE_GROUP 16

static bly_status spacecode_add(bly_filter *f, const uint64_t *h, size_t n,
                                uint64_t *fresh, size_t *ndone)
{
    spacecode_turn turn;
    uint64_t draws[SPACECODE_GROUP];
    spacecode_begin(f, &turn);
    for (size_t from = 0; from < n; from += SPACECODE_GROUP) {
        const size_t ng =
            n - from < SPACECODE_GROUP ? n - from : SPACECODE_GROUP;
        /* Drawn in the order of the keys, so the bits do not depend on how they
         * are grouped. */
        for (size_t j = 0; j < ng; j++) {
            draws[j] = spacecode_draw(&turn, h[from + j]);
            spacecode_fetch(&turn, h[from + j], draws[j]);
        }
        for (size_t j = 0; j < ng; j++) {
            if (fresh && spacecode_absent(f, &turn.v, h[from + j]))
                fresh[(from + j) >> 6] |= UINT64_C(1) << ((from + j) & 63);
            spacecode_record(&turn, h[from + j], draws[j]);
        }
    }
    spacecode_end(&turn);
    bly_filter_added(f, n);
    *ndone = n;
    return BLY_OK;
}

/* Up to SPACECODE_SINGLE additions are made one by one. Of more, only those are
 * made that an array records, and at most SPACECODE_COVER per group. By then
 * all groups are used, except with probability l e^-64, and further additions
 * would change nothing. */
#define SPACECODE_SINGLE 256
#define SPACECODE_COVER 64

/* The number of additions up to and including the next one that is recorded: a
 * geometric variable, by inversion. */
static double spacecode_gap(uint64_t draw, double p)
{
    return p < 1 ? floor(log(1 - spacecode_unit(draw)) / log1p(-p)) + 1 : 1;
}

static void spacecode_many(spacecode_turn *turn, uint64_t h, uint64_t by)
{
    /* Each array is treated by itself. So what one records is independent of
     * the others, but no single estimate is changed by that. */
    for (unsigned i = 0; i < turn->v.g; i++) {
        double at = 0;
        for (unsigned seen = 0; seen < SPACECODE_COVER * turn->v.l; seen++) {
            const uint64_t draw = spacecode_draw(turn, h);
            at += spacecode_gap(draw, turn->v.p[i]);
            if (at > (double)by)
                break;
            turn->ones[i] += spacecode_set(turn->f, &turn->v, i, h,
                                           spacecode_chosen(turn, draw, i));
        }
    }
}

static bly_status spacecode_increase(bly_filter *f, const uint64_t *h,
                                     const uint64_t *by, size_t n,
                                     size_t *ndone)
{
    spacecode_turn turn;
    uint64_t sum = 0;
    spacecode_begin(f, &turn);
    for (size_t i = 0; i < n; i++) {
        /* The cost of an addition must not grow with `by`. */
        if (by[i] > SPACECODE_SINGLE)
            spacecode_many(&turn, h[i], by[i]);
        else
            for (uint64_t t = 0; t < by[i]; t++)
                spacecode_record(&turn, h[i], spacecode_draw(&turn, h[i]));
        sum += by[i];
    }
    spacecode_end(&turn);
    bly_filter_added(f, sum);
    *ndone = n;
    return BLY_OK;
}

/* ----------------------------------------------------------------- asking */

/* What each theta means in one array, found when it is first seen. */
typedef struct spacecode_table {
    double f;
    bool known[BLY_MAX_URNS + 1];
    uint64_t x[BLY_MAX_URNS + 1];
} spacecode_table;

static uint64_t spacecode_means(const bly_filter *f, spacecode_table *t,
                                unsigned l, unsigned theta)
{
    if (!t->known[theta]) {
        t->known[theta] = true;
        t->x[theta] = f->shape.p[SPACECODE_ESTIMATE] == SPACECODE_MLE
                          ? bly_occupancy_mle(l, t->f, theta)
                          : bly_occupancy_mean(l, t->f, theta);
    }
    return t->x[theta];
}

static void spacecode_count(const bly_filter *f, const uint64_t *h, size_t n,
                            uint64_t *counts)
{
    const spacecode_view v = spacecode_view_of(&f->shape);
    const size_t per = SPACECODE_PAIRS / v.l;
    spacecode_table tables[SPACECODE_MAX_FILTERS];
    unsigned ntables = 0, theta[SPACECODE_PAIRS];
    for (size_t key = 0; key < n; key++) {
        unsigned *const seen = &theta[key % per], i = 0;
        if (key % per == 0)
            spacecode_thetas(f, &v, 0, h + key, n - key < per ? n - key : per,
                             theta);
        /* Too full to tell counts apart: the key goes on, alone, to a coarser
         * array. */
        while (10 * *seen > 9 * v.l && i + 1 < v.g)
            spacecode_thetas(f, &v, ++i, h + key, 1, seen);
        for (; ntables <= i; ntables++) {
            memset(&tables[ntables], 0, sizeof tables[ntables]);
            tables[ntables].f = spacecode_f(f, &v, ntables);
        }
        const uint64_t x = spacecode_means(f, &tables[i], v.l, *seen);
        const double scaled = (double)x / v.p[i];
        counts[key] = x == BLY_OCCUPANCY_ALL || scaled >= 0x1p63
                          ? UINT64_MAX
                          : (uint64_t)(scaled + 0.5);
    }
}

/* ------------------------------------------------------------- all of it */

static void spacecode_stat(const bly_filter *f, bly_stats *out)
{
    const spacecode_view v = spacecode_view_of(&f->shape);
    const uint64_t *const words = spacecode_words(f);
    double ones = 0, bits = 0;
    for (unsigned i = 0; i < v.g; i++) {
        ones += (double)bly_bits_count(words + v.from[i],
                                       (size_t)((v.m[i] + 63) / 64));
        bits += (double)v.m[i];
    }
    out->fill = ones / bits;
    out->items_estimate = out->items_sd = NAN; /* pairs are not keys */
    out->fpr_now = spacecode_any(spacecode_f(f, &v, 0), v.l);
}

/* Combines everything except the numbers of ones in front, which are computed
 * at the end. */
static bly_status spacecode_merge_part(bly_filter *dst, const bly_part *p)
{
    const spacecode_view v = spacecode_view_of(&dst->shape);
    uint64_t *const words = spacecode_words(dst);
    const uint64_t *const from = (const uint64_t *)(const void *)p->bytes;
    const uint64_t first = p->at / 8, end = first + p->nbytes / 8;
    /* Counts in front of the arrays are not bits to be combined. */
    const uint64_t begin = first > v.from[0] ? first : v.from[0];
    if (begin < end)
        bly_bits_or(words + begin, from + (begin - first),
                    (size_t)(end - begin));
    if (p->last) {
        for (unsigned i = 0; i < v.g; i++)
            words[i] = bly_le64(bly_bits_count(words + v.from[i],
                                               (size_t)((v.m[i] + 63) / 64)));
        bly_filter_added(dst, p->src->nadded);
    }
    return BLY_OK;
}

static bly_status spacecode_merge(bly_filter *dst, const bly_filter *src)
{
    const bly_part all = bly_part_of(src);
    /* Bits past the ends of src's arrays would be copied to dst. */
    if (!spacecode_check(src))
        return bly_fail(BLY_EFORMAT, "the spacecode filter to be merged is "
                                     "damaged: its bits are not as many as it "
                                     "says");
    return spacecode_merge_part(dst, &all);
}

const bly_kind bly_kind_spacecode = {
    .id = 16, /* on disk: never changed, never reused */
    .name = "spacecode",
    .summary = "rough counts for every key, over orders of magnitude",
    .params = spacecode_params,
    .nparams = sizeof spacecode_params / sizeof spacecode_params[0],
    .nstate = 1,
    .traits = BLY_ORDERED,
    .plan = spacecode_plan,
    .sane = spacecode_sane,
    .rate = spacecode_rate,
    .bits = spacecode_bits,
    .describe = spacecode_describe,
    .start = spacecode_start,
    .sound = spacecode_sound,
    .check = spacecode_check,
    .stat = spacecode_stat,
    .add = spacecode_add,
    .add_shared = spacecode_add, /* looks at f->shared */
    .increase = spacecode_increase,
    .count = spacecode_count,
    .merge = spacecode_merge,
    .merge_part = spacecode_merge_part, /* no .has, no .compare: see above */
};
