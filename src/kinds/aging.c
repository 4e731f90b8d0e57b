/*
 * aging.c - a filter that forgets: keys expire after a window
 *
 * k + l slices of s bits lie in a ring. Each slice keeps its own probe for
 * ever. A key sets its bit in the k youngest slices. After a generation (g
 * additions, or T seconds, or whichever comes first) the ring turns: the oldest
 * slice is cleared and becomes the youngest, and all others are one older.
 *
 *     age      0    1    2  ...  k-1 |  k   ...   k+l-1
 *     keys    g     2g   3g      kg  |  kg        kg        at the end of a
 *     fill   1-e^(-(i+1)g/s) -> 1/2  |  1/2       1/2       generation
 *             '--- take keys ------'    '-- only age --'
 *
 * A key is there if k slices of consecutive ages all have its bit. All its own
 * k slices stay in the ring for l turns, so the key is found during the next l
 * generations. After k + l it is forgotten, and can only be found as a false
 * positive. The rate of these follows by recursion, where a is the number of
 * consecutive slices just before slice i that have the bit [1]:
 *
 *     F(k, i) = 1,  F(a, k+l) = 0
 *     F(a, i) = r_i F(a+1, i+1) + (1-r_i) F(0, i+1)
 *
 * with r_i the fill of slice i; the rate is F(0, 0). With s = kg / ln 2, which
 * makes a slice half full when it stops taking keys, (k, l) = (4, 3) has
 * 10.740 %, (6, 6) 3.983 %, (7, 5) 1.283 %. A window of n keys, g = n/l, takes
 * (k+l) s bits: plan() looks for the k and l that need the fewest. One million
 * keys at 1 % take k = 10 and l = 30, 19.98 bits per key: twice as many as a
 * filter that never forgets.
 *
 * Only additions that change a bit count: a key that is added again and again
 * renews itself, and does not drive others out.
 *
 * `rotating` is the simple form: two plain filters of s bits and k probes. Keys
 * go into the young one, and queries look into both. After a generation, which
 * is the window, the old one is cleared and becomes the young one. It remembers
 * a key for at least one generation and at most two, in 22.06 bits per key at 1
 * %.
 *
 * The filter never reads a clock: bly_tick() tells it the time, so that files
 * and tests can be repeated. In data each slice starts at a word of its own.
 *
 * There is no removal, and no merge: the rings of two filters did not turn at
 * the same keys.
 *
 * [1] Shtul, Baquero and Almeida, Age-Partitioned Bloom Filters, 2020
 */
#include <math.h>
#include <string.h>

#include "core/position.h"
#include "core/status.h"
#include "engine/bit_count.h"
#include "kinds/fold.h"
#include "kinds/probe.h"

#define AGING_MAX_K 64
#define AGING_MAX_L 128
#define AGING_MAX_SLICE 0x1p46
#define AGING_MAX_SECONDS 0x1p40 /* 35,000 years */
#define AGING_DAY 86400

enum {
    AGING_FORM,
    AGING_K,
    AGING_L,
    AGING_SLICE,
    AGING_GENERATION,
    AGING_PERIOD,
    AGING_TURN,
    AGING_GRANULARITY,
    AGING_SECONDS,
    AGING_FOLDS
};
enum { AGING_PARTITIONED, AGING_ROTATING };
enum { AGING_ADDITIONS, AGING_TIME, AGING_EITHER };

/* state[] */
enum { AGING_YOUNG, AGING_COUNT, AGING_CLOCK, AGING_SINCE, AGING_NOW };

static const bly_param aging_params[] = {
    [AGING_FORM] = BLY_PARAM("form", BLY_CHOICE, .settable = true, .max = 1,
                             .choices = BLY_WORDS("partitioned", "rotating"),
                             .help = "a ring of slices, or two plain filters"),
    [AGING_K] =
        BLY_PARAM("k", BLY_UINT, .settable = true, .automatic = true, .min = 1,
                  .max = AGING_MAX_K, .help = "bits a key sets"),
    [AGING_L] = BLY_PARAM("generations", BLY_UINT, .settable = true,
                          .automatic = true, .min = 1, .max = AGING_MAX_L,
                          .help = "generations for which a key is found (l)"),
    [AGING_SLICE] =
        BLY_PARAM("slice", BLY_UINT, .min = 1, .max = AGING_MAX_SLICE,
                  .help = "bits of a slice (s)"),
    [AGING_GENERATION] =
        BLY_PARAM("generation", BLY_UINT, .min = 1, .max = 0x1p48,
                  .help = "additions of a generation (g)"),
    [AGING_PERIOD] =
        BLY_PARAM("period", BLY_UINT, .min = 0, .max = AGING_MAX_SECONDS,
                  .help = "seconds of a generation (T), or 0"),
    [AGING_TURN] =
        BLY_PARAM("turn", BLY_CHOICE, .settable = true, .max = 2,
                  .choices = BLY_WORDS("additions", "time", "either"),
                  .help = "what ends a generation"),
    [AGING_GRANULARITY] =
        BLY_PARAM("granularity", BLY_REAL, .settable = true, .planning = true,
                  .def = 1, .min = 1.0 / AGING_MAX_L, .max = 1,
                  .help = "a generation is at most this share of the window"),
    [AGING_SECONDS] = BLY_PARAM(
        "seconds", BLY_UINT, .settable = true, .automatic = true,
        .planning = true, .min = 1, .max = AGING_MAX_SECONDS,
        .help =
            "the window in seconds; a day if time turns and this is not given"),
    [AGING_FOLDS] = BLY_FOLDS_PARAM,
};

/* ------------------------------------------------------------------ shapes */

static uint64_t aging_nslices(const bly_shape *s)
{
    return s->p[AGING_FORM] == AGING_ROTATING ? 2
                                              : s->p[AGING_K] + s->p[AGING_L];
}

static uint64_t aging_slice_words(const bly_shape *s)
{
    return (s->p[AGING_SLICE] + 63) / 64;
}

static bool aging_timed(const bly_shape *s)
{
    return s->p[AGING_TURN] != AGING_ADDITIONS;
}

static bool aging_sane(const bly_shape *s)
{
    const uint64_t k = s->p[AGING_K], l = s->p[AGING_L];
    return s->p[AGING_FORM] <= 1 && k >= 1 && k <= AGING_MAX_K && l >= 1 &&
           l <= AGING_MAX_L && (s->p[AGING_FORM] == 0 || l == 1) &&
           s->p[AGING_SLICE] >= 1 &&
           s->p[AGING_SLICE] <= (uint64_t)AGING_MAX_SLICE &&
           s->p[AGING_GENERATION] >= 1 &&
           s->p[AGING_GENERATION] <= UINT64_C(1) << 48 &&
           s->p[AGING_TURN] <= 2 &&
           s->p[AGING_PERIOD] <= (uint64_t)AGING_MAX_SECONDS &&
           aging_timed(s) == (s->p[AGING_PERIOD] != 0) &&
           s->p[AGING_GRANULARITY] == 0 && s->p[AGING_SECONDS] == 0 &&
           s->p[AGING_FOLDS] == 0 &&
           s->nbytes == aging_nslices(s) * aging_slice_words(s) * 8;
}

static uint64_t aging_bits(const bly_shape *s)
{
    return aging_nslices(s) * s->p[AGING_SLICE];
}

/* ------------------------------------------------------------------- rates */

/* F(0, 0) for these fills, youngest first. run[a] is F(a, i), for i from the
 * last slice down. */
static double aging_run(const double *fill, unsigned nslices, unsigned k)
{
    double run[AGING_MAX_K + 1] = { 0 };
    run[k] = 1;
    for (unsigned i = nslices; i-- > 0;) {
        /* run[] is overwritten in place: a rises, so run[a + 1] still belongs
         * to slice i + 1, and so does run[0] here. */
        const double broken = (1 - fill[i]) * run[0];
        for (unsigned a = 0; a < k; a++)
            run[a] = fill[i] * run[a + 1] + broken;
    }
    return run[0];
}

/* The keys that a slice of this age has taken after n keys, in generations of
 * g. */
static double aging_load(double age, double k, double g, double n)
{
    const double t = fmax(0, ceil(n / g) - 1); /* turns so far */
    /* Generations are numbered from 0, and t is the one under way. The slice
     * became the youngest with generation t - age and took keys for k of them;
     * all but t are complete. */
    const double first = fmax(0, t - age), last = fmin(t, t - age + k - 1);
    if (last < first)
        return 0;
    const double all = (last - first + 1) * g;
    return last == t ? all - g + (n - t * g) : all;
}

/* The rate of a ring of slices of s bits after n keys. */
static double aging_ring_rate(unsigned k, unsigned l, double s, double g,
                              double n)
{
    double fill[AGING_MAX_K + AGING_MAX_L];
    const double clear = s > 1 ? log1p(-1 / s) : -INFINITY;
    for (unsigned i = 0; i < k + l; i++) {
        const double load = aging_load(i, k, g, n);
        /* Not by the formula for 0 keys: with s = 1 it would be 0 *
         * infinity. */
        fill[i] = load > 0 ? -expm1(load * clear) : 0;
    }
    return aging_run(fill, k + l, k);
}

static double aging_pair_rate(unsigned k, double s, double g, double n)
{
    const double t = fmax(0, ceil(n / g) - 1);
    /* Either filter may say yes: the young one holds the keys since the last
     * turn, the old one a whole generation. */
    const double young = bly_fpr_exact(n - t * g, s, k);
    const double old = t > 0 ? bly_fpr_exact(g, s, k) : 0;
    return young + old - young * old;
}

/* The rate after n keys were added to an empty filter, at the end of the
 * generation of the last key. If only time turns the ring, all keys come at one
 * moment. */
static double aging_rate(const bly_shape *s, double n)
{
    const double g = s->p[AGING_TURN] == AGING_TIME
                         ? INFINITY
                         : (double)s->p[AGING_GENERATION];
    const unsigned k = (unsigned)s->p[AGING_K];
    const double slice = (double)s->p[AGING_SLICE];
    if (!(n > 0))
        return 0;
    /* The rate is highest at the end of a generation. */
    if (!isinf(g))
        n = ceil(n / g) * g;
    else /* one generation that holds them all */
        return s->p[AGING_FORM] == AGING_ROTATING
                   ? bly_fpr_exact(n, slice, k)
                   : bly_fpr_partitioned(n, slice, k);
    return s->p[AGING_FORM] == AGING_ROTATING
               ? aging_pair_rate(k, slice, g, n)
               : aging_ring_rate(k, (unsigned)s->p[AGING_L], slice, g, n);
}

/* The rate in the long run: at the end of a generation, when all generations
 * are full. */
static double aging_steady(const bly_shape *s)
{
    /* After k + l turns every slice has been cleared and has taken its k
     * generations, so more turns change nothing. */
    bly_shape full = bly_shape_copy(&bly_kind_aging, s);
    full.p[AGING_TURN] = AGING_ADDITIONS;
    return aging_rate(&full, (double)s->p[AGING_GENERATION] *
                                 (double)(s->p[AGING_K] + s->p[AGING_L] + 1));
}

/* The rate that plan() keeps below the one asked for: the rate in the long run
 * and, where time alone turns the ring, the rate when all n keys come at one
 * moment. */
static double aging_worst(const bly_shape *s, double n)
{
    if (!s->p[AGING_SLICE])
        return 1;
    const double steady = aging_steady(s);
    return s->p[AGING_TURN] == AGING_TIME ? fmax(steady, aging_rate(s, n))
                                          : steady;
}

/* ---------------------------------------------------------------- planning */

static bly_shape aging_shape(const bly_want *w, uint64_t turn, unsigned k,
                             unsigned l, double bits)
{
    /* Generations are rounded up, so that l of them are never less than the
     * window asked for. */
    const bool pair = w->opt[AGING_FORM] == AGING_ROTATING;
    const uint64_t seconds =
        w->given[AGING_SECONDS] ? w->opt[AGING_SECONDS] : AGING_DAY;
    bly_shape s = { .p = {
                        [AGING_FORM] = w->opt[AGING_FORM],
                        [AGING_K] = k,
                        [AGING_L] = l,
                        [AGING_SLICE] = (uint64_t)(bits / (pair ? 2 : k + l)),
                        [AGING_GENERATION] = (w->items + l - 1) / l,
                        [AGING_PERIOD] =
                            turn == AGING_ADDITIONS ? 0 : (seconds + l - 1) / l,
                        [AGING_TURN] = turn } };
    s.nbytes = aging_nslices(&s) * aging_slice_words(&s) * 8;
    return s;
}

/* What the search ranges over; 0: choose. */
typedef struct aging_search {
    const bly_want *w;
    uint64_t turn;
    unsigned k, l, min_l;
} aging_search;

static aging_search aging_search_of(const bly_want *w)
{
    const bool pair = w->opt[AGING_FORM] == AGING_ROTATING;
    return (aging_search){
        .w = w,
        /* Seconds given without saying what turns the ring: time should count,
         * and additions still keep the rate. */
        .turn = w->given[AGING_TURN] || !w->given[AGING_SECONDS]
                    ? w->opt[AGING_TURN]
                    : AGING_EITHER,
        .k = (unsigned)w->opt[AGING_K],
        .l = pair ? 1 : (unsigned)w->opt[AGING_L],
        /* The small amount keeps a granularity of 1/3, whose inverse may come
         * out just above 3, from asking for 4 generations. */
        .min_l = (unsigned)ceil(1 / bly_want_real(w, AGING_GRANULARITY) - 1e-9),
    };
}

/* Generations in a window of n keys. More of them save bits, but each is one
 * more slice to look into. At 1 %, three times k costs some eight probes per
 * key, and 2 % more bits than the best number of generations. Where all keys
 * may come at one moment, k slices have to hold them, and more than about k
 * generations gain little. */
static unsigned aging_generations(const aging_search *a, unsigned k)
{
    unsigned l = a->turn == AGING_TIME ? k + (k + 2) / 3 : 3 * k;
    if (a->l)
        return a->l;
    if (l > AGING_MAX_L)
        l = AGING_MAX_L;
    if (a->turn != AGING_TIME && a->w->items < l)
        l = (unsigned)a->w->items;
    /* Generations are whole seconds. */
    const uint64_t seconds = a->w->opt[AGING_SECONDS];
    if (seconds && seconds < l)
        l = (unsigned)seconds;
    return l < a->min_l ? a->min_l : l;
}

/* The shape with the lowest rate in this many bits; it has no slices if the
 * bits are too few. */
static bly_shape aging_best(const bly_want *w, double bits)
{
    const aging_search search = aging_search_of(w), *const a = &search;
    bly_shape best = { .nbytes = 0 };
    double best_rate = 2;
    unsigned worse = 0; /* in a row */
    /* As k grows the rate falls and then rises, not quite smoothly, since l and
     * the slices are whole numbers. After four in a row that are worse than the
     * best, no better one will come. */
    for (unsigned k = a->k ? a->k : 1;
         k <= (a->k ? a->k : AGING_MAX_K) && worse < 4; k++) {
        const bly_shape s =
            aging_shape(a->w, a->turn, k, aging_generations(a, k), bits);
        const double rate =
            s.p[AGING_SLICE] ? aging_worst(&s, (double)a->w->items) : 2;
        worse++;
        if (rate < best_rate) {
            best_rate = rate;
            best = s;
            worse = 0;
        }
    }
    return best;
}

/* Round the slices so that they can be folded as often as asked for. */
static bly_status aging_foldable(const bly_want *w, bly_shape *out)
{
    const bly_status st = bly_fold_plan(w->opt[AGING_FOLDS], 1, w->bits != 0,
                                        &out->p[AGING_SLICE]);
    out->nbytes = aging_nslices(out) * aging_slice_words(out) * 8;
    return st;
}

static bly_status aging_plan(const bly_want *w, bly_shape *out)
{
    const aging_search a = aging_search_of(w);
    const bool pair = w->opt[AGING_FORM] == AGING_ROTATING;
    const uint64_t l = w->opt[AGING_L];
    if (w->given[AGING_SECONDS] && a.turn == AGING_ADDITIONS)
        return bly_fail(BLY_EINVAL,
                        "option seconds is given, but turn is additions: "
                        "time or either would heed it");
    if (pair && (l > 1 || a.min_l > 1))
        return bly_fail(BLY_EINVAL,
                        "a rotating filter has one generation to the window: "
                        "options generations and granularity are for "
                        "partitioned ones");
    if (l && l < a.min_l)
        return bly_fail(BLY_EINVAL,
                        "%llu generations are coarser than a granularity of "
                        "%g: it takes at least %u",
                        (unsigned long long)l,
                        bly_want_real(w, AGING_GRANULARITY), a.min_l);

    if (w->bits) {
        *out = aging_best(w, (double)w->bits);
        if (!out->p[AGING_SLICE])
            return bly_fail(BLY_EINVAL,
                            "%llu bits are too few for an aging filter of "
                            "%llu keys",
                            (unsigned long long)w->bits,
                            (unsigned long long)w->items);
        return aging_foldable(w, out);
    }
    if (!bly_plan_least(w, aging_best, aging_worst, 0, 64, AGING_MAX_SLICE,
                        out))
        return bly_fail(BLY_ERANGE, "an aging filter has slices of at most "
                                    "2^46 bits: ask for fewer items or a "
                                    "higher rate");
    return aging_foldable(w, out);
}

static void aging_describe(const bly_shape *s, const bly_want *w,
                           const bly_filter *f, bly_facts *out)
{
    (void)w;
    (void)f;
    const bool pair = s->p[AGING_FORM] == AGING_ROTATING;
    const uint64_t l = s->p[AGING_L], gone = pair ? 2 : s->p[AGING_K] + l;
    const uint64_t g = s->p[AGING_GENERATION], t = s->p[AGING_PERIOD];
    bly_fact_real(out, "fpr_steady", aging_steady(s));
    if (s->p[AGING_TURN] != AGING_TIME) {
        bly_fact_uint(out, "window_keys", l * g);
        bly_fact_uint(out, "forgotten_after_keys", gone * g);
    }
    if (aging_timed(s)) {
        bly_fact_uint(out, "window_seconds", l * t);
        bly_fact_uint(out, "forgotten_after_seconds", gone * t);
    }
}

/* ----------------------------------------------------------------- the ring */

/* A filter's shape, unpacked once for use in loops. */
typedef struct aging_ring {
    uint64_t *words; /* of slice 0 */
    uint64_t slice, slice_words;
    unsigned k, nslices, young;
    bool pair;
} aging_ring;

static inline aging_ring aging_ring_of(const bly_filter *f)
{
    return (aging_ring){
        .words = (uint64_t *)(void *)f->data,
        .slice = f->shape.p[AGING_SLICE],
        .slice_words = aging_slice_words(&f->shape),
        .k = (unsigned)f->shape.p[AGING_K],
        .nslices = (unsigned)aging_nslices(&f->shape),
        .young = (unsigned)f->state[AGING_YOUNG],
        .pair = f->shape.p[AGING_FORM] == AGING_ROTATING,
    };
}

/* A slice in the ring by its age. */
static inline unsigned aging_slice_at(const aging_ring *r, unsigned age)
{
    const unsigned at = r->young + age;
    return at >= r->nslices ? at - r->nslices : at;
}

/* The bit of a key in the slice of an age, counted from the first word. */
static inline uint64_t aging_bit(const aging_ring *r, uint64_t h, unsigned age)
{
    const unsigned j = aging_slice_at(r, age);
    return j * r->slice_words * 64 + bly_position(h, j, r->slice);
}

/* Probe i in the filter of an age, where there are two. */
static inline uint64_t aging_pair_bit(const aging_ring *r, uint64_t h,
                                      unsigned age, unsigned i)
{
    return aging_slice_at(r, age) * r->slice_words * 64 +
           bly_position(h, i, r->slice);
}

/* A run of k slices is searched from its old end to its young end. The slice of
 * age p - 1 is next; those from age p to low + k - 1 have the bit, and so have
 * those from age low to goal - 1: at p = goal the run is complete. A miss rules
 * out every run that contains that slice, so the next candidate begins just
 * above it, and slices already found there need not be read again. */
typedef struct aging_walk {
    unsigned p, low, goal;
} aging_walk;

typedef enum aging_answer { AGING_MORE, AGING_NO, AGING_YES } aging_answer;

static inline aging_walk aging_walk_start(const aging_ring *r)
{
    return (aging_walk){ .p = r->k };
}

/* Whether the slice has the bit is a coin flip, so this selects values and does
 * not branch. */
static inline __attribute__((always_inline)) aging_answer
aging_walk_on(const aging_ring *r, aging_walk *w, bool set)
{
    const unsigned p = w->p, low = w->low;
    /* After a miss at age p - 1 the candidate is p .. p + k - 1, of which ages
     * p to low + k - 1 are known to be set. */
    w->p = set ? p - 1 : p + r->k;
    w->low = set ? low : p;
    w->goal = set ? w->goal : low + r->k;
    return w->p == w->goal     ? AGING_YES
           : w->p > r->nslices ? AGING_NO
                               : AGING_MORE;
}

static bool aging_has_run(const aging_ring *r, uint64_t h)
{
    aging_walk w = aging_walk_start(r);
    aging_answer a = w.p > r->nslices ? AGING_NO : AGING_MORE;
    while (a == AGING_MORE)
        a = aging_walk_on(r, &w,
                          bly_bit_get(r->words, aging_bit(r, h, w.p - 1)));
    return a == AGING_YES;
}

static bool aging_has_pair(const aging_ring *r, uint64_t h)
{
    for (unsigned age = 0; age < 2; age++) {
        unsigned i = 0;
        while (i < r->k && bly_bit_get(r->words, aging_pair_bit(r, h, age, i)))
            i++;
        if (i == r->k)
            return true;
    }
    return false;
}

static inline bool aging_has_one(const aging_ring *r, uint64_t h)
{
    return r->pair ? aging_has_pair(r, h) : aging_has_run(r, h);
}

static void aging_turn(bly_filter *f, aging_ring *r)
{
    /* The oldest slice lies just before the youngest in the ring. Nothing
     * moves: the ring turns by renaming. */
    r->young = aging_slice_at(r, r->nslices - 1);
    memset(r->words + r->young * r->slice_words, 0,
           (size_t)r->slice_words * sizeof *r->words);
    f->state[AGING_YOUNG] = r->young;
    f->state[AGING_COUNT] = 0;
}

/* -------------------------------------------------------- asking and adding */

/* Walks under way at once. Each waits for a bit whose place depends on the bits
 * before it, so a single walk cannot be fetched ahead; but while one waits the
 * others go on. A walk that is done makes room for the next key. */
#define AGING_WALKS 48

static void aging_has_runs(const aging_ring *r, const uint64_t *h, size_t n,
                           uint64_t *maybe)
{
    struct {
        aging_walk w;
        uint64_t bit;
        size_t key;
    } way[AGING_WALKS];
    size_t nways = 0, next = 0;
    while (nways < AGING_WALKS && next < n) {
        const aging_walk w = aging_walk_start(r);
        way[nways].w = w;
        way[nways].bit = aging_bit(r, h[next], w.p - 1);
        way[nways].key = next++;
        __builtin_prefetch(&r->words[way[nways++].bit >> 6]);
    }
    while (nways)
        for (size_t i = 0; i < nways; i++) {
            const aging_answer a =
                aging_walk_on(r, &way[i].w, bly_bit_get(r->words, way[i].bit));
            size_t key = way[i].key;
            if (a != AGING_MORE) {
                maybe[key / 64] |= (uint64_t)(a == AGING_YES) << key % 64;
                if (next == n) {
                    /* No key is left: the last walk moves here and is looked at
                     * next. */
                    way[i--] = way[--nways];
                    continue;
                }
                way[i].key = key = next++;
                way[i].w = aging_walk_start(r);
            }
            way[i].bit = aging_bit(r, h[key], way[i].w.p - 1);
            __builtin_prefetch(&r->words[way[i].bit >> 6]);
        }
}

static void aging_has(const bly_filter *f, const uint64_t *h, size_t n,
                      uint64_t *maybe)
{
    const aging_ring r = aging_ring_of(f);
    if (!r.pair && n > 1) {
        aging_has_runs(&r, h, n, maybe);
    } else if (!r.pair) {
        *maybe |= aging_has_run(&r, *h);
    } else {
        bly_probe_query q = { .cells = f->data,
                              .width = 1,
                              .range = bly_modulus_of(r.slice),
                              .k = r.k,
                              .rule = BLY_STEPS_MIXED,
                              .test = bly_probe_bit,
                              .ctx = f->data };
        bly_probe_ask(&q, h, n, maybe);
        /* The other filter; the answers are ORed, so the order does not
         * matter. */
        q.cells = q.ctx = f->data + r.slice_words * 8;
        bly_probe_ask(&q, h, n, maybe);
    }
}

#define AGING_GROUP 32 /* keys whose bits are fetched together */

/* The bits of n keys in the young slices, by steps as in steps.h. Slices are
 * numbered by their place in memory: from the youngest to the last in memory,
 * and then from the first on. */
static void aging_places(const aging_ring *r, const uint64_t *h, size_t n,
                         uint64_t *at)
{
    const uint64_t apart = r->pair ? 0 : r->slice_words * 64;
    /* The k young slices may wrap round the end of the memory: `before` of them
     * lie before the end, the others at the beginning. */
    const unsigned room = r->nslices - r->young;
    const unsigned before = r->pair || r->k < room ? r->k : room;
    bly_steps steps = { .range = bly_modulus_of(r->slice),
                        .k = before,
                        .stride = AGING_GROUP,
                        .rule = BLY_STEPS_MIXED,
                        .apart = apart };
    uint64_t moved[AGING_GROUP];
    /* Slice j always has probe j, wherever it is in the ring. Positions are
     * counted from 0 on, so the hash is advanced to the probe of the youngest
     * slice. */
    for (size_t j = 0; j < n; j++)
        moved[j] = h[j] + (r->pair ? 0 : r->young * BLY_POSITION_STEP);
    bly_steps_best()->fill(&steps, moved, n, at);
    for (size_t i = 0; i < before * (size_t)AGING_GROUP; i++)
        at[i] += r->young * r->slice_words * 64;
    if (before < r->k) {
        steps.k = r->k - before;
        bly_steps_best()->fill(&steps, h, n, at + before * (size_t)AGING_GROUP);
    }
}

/* Set the bits of a key, which are at[0], at[AGING_GROUP], ...; true if one was
 * clear. */
static inline bool aging_set(const aging_ring *r, const uint64_t *at)
{
    bool changed = false;
    for (unsigned i = 0; i < r->k; i++)
        changed |= bly_bit_set(r->words, at[i * AGING_GROUP]);
    return changed;
}

static bly_status aging_add(bly_filter *f, const uint64_t *h, size_t n,
                            uint64_t *fresh, size_t *ndone)
{
    aging_ring r = aging_ring_of(f);
    const bool counts = f->shape.p[AGING_TURN] != AGING_TIME;
    const uint64_t g = f->shape.p[AGING_GENERATION];
    uint64_t at[AGING_GROUP * AGING_MAX_K] = { 0 }, nchanged = 0;

    for (size_t from = 0; from < n; from += AGING_GROUP) {
        const size_t ng = n - from < AGING_GROUP ? n - from : AGING_GROUP;
        aging_places(&r, h + from, ng, at);
        /* All bits of the group are prefetched before the first key is worked
         * on. */
        for (unsigned i = 0; i < r.k; i++)
            for (size_t j = 0; j < ng; j++)
                __builtin_prefetch(&r.words[at[i * AGING_GROUP + j] >> 6], 0,
                                   2);
        for (size_t j = 0; j < ng; j++) {
            const size_t key = from + j;
            const bool known = fresh && aging_has_one(&r, h[key]);
            /* A full generation ends only when the next key comes, so that its
             * last key, too, is found for l whole generations. The places of
             * this group were computed before the turn, and no longer hold. */
            if (counts && f->state[AGING_COUNT] >= g) {
                aging_turn(f, &r);
                f->state[AGING_SINCE] = f->state[AGING_NOW];
                aging_places(&r, h + from, ng, at);
            }
            const bool changed = aging_set(&r, at + j);
            nchanged += changed;
            if (counts)
                f->state[AGING_COUNT] += changed;
            if (fresh)
                fresh[key / 64] |= (uint64_t)!known << (key % 64);
        }
    }
    bly_filter_added(f, nchanged);
    *ndone = n;
    return BLY_OK;
}

static bly_status aging_tick(bly_filter *f, uint64_t now)
{
    uint64_t *const state = f->state;
    const uint64_t period = f->shape.p[AGING_PERIOD];
    if (!period)
        return BLY_OK; /* only additions turn it */
    if (!state[AGING_CLOCK]) {
        state[AGING_CLOCK] = 1;
        state[AGING_SINCE] = state[AGING_NOW] = now;
        return BLY_OK;
    }
    /* A clock that was set back does not make anything older or younger. */
    if (now <= state[AGING_NOW])
        return BLY_OK;
    aging_ring r = aging_ring_of(f);
    const uint64_t turns = (now - state[AGING_SINCE]) / period;
    /* After as many turns as there are slices all of them are clear. */
    for (uint64_t i = 0; i < turns && i < r.nslices; i++)
        aging_turn(f, &r);
    /* Whole periods, not `now`: so generations stay in step with the clock
     * however rarely bly_tick() is called. */
    state[AGING_SINCE] += turns * period;
    state[AGING_NOW] = now;
    return BLY_OK;
}

/* ------------------------------------------------------ loading and telling */

static bool aging_sound(const bly_filter *f)
{
    const uint64_t *const state = f->state;
    const uint64_t period = f->shape.p[AGING_PERIOD];
    if (f->nlayers || state[AGING_YOUNG] >= aging_nslices(&f->shape) ||
        state[AGING_CLOCK] > (period != 0) ||
        (!state[AGING_CLOCK] && (state[AGING_SINCE] || state[AGING_NOW])))
        return false;
    /* aging_tick() always leaves less than a period unspent. */
    if (state[AGING_CLOCK] && (state[AGING_SINCE] > state[AGING_NOW] ||
                               state[AGING_NOW] - state[AGING_SINCE] >= period))
        return false;
    return f->shape.p[AGING_TURN] == AGING_TIME
               ? state[AGING_COUNT] == 0
               : state[AGING_COUNT] <= f->shape.p[AGING_GENERATION];
}

static bool aging_check(const bly_filter *f)
{
    const aging_ring r = aging_ring_of(f);
    for (unsigned j = 0; j < r.nslices; j++)
        if (!bly_bits_tail_clear(r.words + j * r.slice_words, r.slice,
                                 (size_t)r.slice_words))
            return false;
    return true;
}

/* Keys that can still be found came in this generation or one of the l before
 * it. The slice of age i has the keys of k generations, the oldest of which is
 * i generations back. So the slices of ages l, l - k, l - 2k, ... together have
 * every one of these keys once. */
static void aging_stat(const bly_filter *f, bly_stats *out)
{
    const aging_ring r = aging_ring_of(f);
    const unsigned l = (unsigned)f->shape.p[AGING_L];
    const unsigned step = r.pair ? 1 : r.k;
    const double s = (double)r.slice, probes = r.pair ? r.k : 1;
    double fill[AGING_MAX_K + AGING_MAX_L], ones = 0, items = 0, variance = 0;
    for (unsigned age = 0; age < r.nslices; age++) {
        /* At most s: in a mapped file the bits behind a slice may be set. */
        const double set =
            fmin(s, (double)bly_bits_count(r.words + aging_slice_at(&r, age) *
                                                         r.slice_words,
                                           (size_t)r.slice_words));
        fill[age] = set / s;
        ones += set;
        if (age <= l && (l - age) % step == 0) {
            const bly_estimate n = bly_estimate_items(set, s, probes);
            items += n.value;
            variance += n.sd * n.sd;
        }
    }
    out->fill = ones / (s * r.nslices);
    out->items_estimate = items;
    out->items_sd = sqrt(variance);
    if (r.pair) {
        const double young = pow(fill[0], r.k), old = pow(fill[1], r.k);
        out->fpr_now = young + old - young * old;
    } else {
        out->fpr_now = aging_run(fill, r.nslices, r.k);
    }
}

/* Positions are scaled, so bits 2j and 2j + 1 of every slice become one. */
static bly_status aging_fold(const bly_filter *f, bly_filter **out)
{
    bly_shape half = bly_shape_of(f);
    half.p[AGING_SLICE] /= 2;
    half.nbytes = aging_nslices(&half) * aging_slice_words(&half) * 8;
    const bly_status st = bly_fold_begin(f, f->shape.p[AGING_SLICE],
                                         "bits of a slice", &half, out);
    if (st)
        return st;
    /* The same ring at the same moment: which slice is the young one, and the
     * clock, do not depend on the size. */
    memcpy((*out)->state, f->state, f->kind->nstate * sizeof f->state[0]);
    const aging_ring from = aging_ring_of(f), to = aging_ring_of(*out);
    for (unsigned j = 0; j < to.nslices; j++)
        bly_bits_fold_pairs(to.words + j * to.slice_words,
                            from.words + j * from.slice_words, to.slice);
    return BLY_OK;
}

const bly_kind bly_kind_aging = {
    .id = 19, /* on disk: never changed, never reused */
    .name = "aging",
    .summary = "forgets each key after a window of additions or of time",
    .params = aging_params,
    .nparams = sizeof aging_params / sizeof aging_params[0],
    .nstate = AGING_NOW + 1,
    .plan = aging_plan,
    .sane = aging_sane,
    .rate = aging_rate,
    .bits = aging_bits,
    .describe = aging_describe,
    .sound = aging_sound,
    .check = aging_check,
    .stat = aging_stat,
    .add = aging_add,
    .has = aging_has,
    .fold = aging_fold,
    .tick = aging_tick,
};
