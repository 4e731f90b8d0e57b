/*
 * spectral.c - counters that answer "how often"
 *
 * m counters, k of them for a key, at the positions of a classic filter
 * (probe.h), each once. What adding a key does to them is the option `update`:
 *
 *     selection  add one to all k; the estimate is the least. Never below the
 *                truth, and above it only where every counter is shared: with
 *                the probability of a false positive, (1 - e^(-kn/m))^k for n
 *                distinct keys. Removing subtracts one from all.
 *
 *     increase   add one only to the counters that equal the least. Never
 *                below the truth, never above `selection`, and about half as
 *                often wrong. There is no removal: nobody knows which counters
 *                a key did not raise.
 *
 *     recurring  a counter that nobody shares is seen again among the k, so a
 *                least value that occurs twice is very likely right. A key
 *                whose least value occurs once moves to a second, smaller
 *                array, which is less crowded.
 *
 *     primary                    secondary            marker
 *     +----+----+----+-- --+    +----+----+-- --+    +-+-+-+-- --+
 *     | c0 | c1 | c2 | ... |    | s0 | s1 | ... |    |0|1|0| ... |
 *     +----+----+----+-- --+    +----+----+-- --+    +-+-+-+-- --+
 *        m counters               m/2 counters         m bits
 *
 * Recurring, in full: add to the primary. If the key is marked, add to the
 * secondary too; else, if the least value now occurs once, mark the key and add
 * that value to its secondary counters. The estimate is the least value of the
 * primary if it recurs or the key is not marked; else the lesser of both
 * arrays. The marker is a filter of bits that remembers which keys moved. It
 * could be saved by taking keys with non-zero secondary counters for moved. But
 * then some keys that never moved would be taken for moved, their counts in the
 * secondary would start late, and up to 7 % of the keys would be estimated too
 * low. With the marker this happens only to its false positives, about one key
 * in 10^4. These are the only estimates of this kind that can be too low.
 *
 * Shares of wrong estimates for 1000 keys and 50,000 additions, k = 5, kn/m =
 * 0.7, by the exponent of Zipf's law, as test_spectral.c measures them:
 *
 *     exponent   selection   increase   recurring
 *        0         3.3 %       2.3 %      1.9 %
 *        0.5       3.2 %       1.7 %      1.6 %
 *        1         2.9 %       1.2 %      1.3 %
 *
 * The second array takes memory, too: at equal memory `recurring` is worse than
 * `selection`. It is for callers who must remove keys and have memory to spare.
 *
 * Compact counters. Nearly all counts are small, so a counter has 4 bits. When
 * it reaches 15, its count is kept in a table of large counts, by its position
 * (core/overflow.h; positions of the secondary follow those of the primary).
 * The table grows by half. If it would take more memory than wider counters,
 * these double their width instead, up to 32 bits, where there is no table:
 *
 *     width    4  4  4 ...  8  8 ...  16 ...  32
 *     places   0 24 36 ...  0 24 ...   0 ...   0       the shape changes
 *
 * The contents of the filter, and not the order of additions, decide how far
 * this goes: to the first of these shapes that has room. With m = 9.59 counters
 * per key, as for 1 %, keys that were added once take 38.3 bits each. The
 * paper's index of counters of variable length takes as many and has to move
 * them.
 *
 * If `width` is given, or the file is from before 0.2.0, counters have 8, 16 or
 * 32 bits, and there is no table.
 *
 * has() uses the primary alone, and has the rate of a classic filter of m bits.
 * Counts at their ceiling, 2^32 - 1 or the top of a counter of given width, are
 * stuck, as in counting.c; state[0] is their number in both arrays, state[1]
 * that of the large counts.
 *
 * Cohen and Matias, Spectral Bloom Filters, 2003
 */
#include <math.h>

#include "core/status.h"
#include "kinds/bitset.h"
#include "kinds/classic.h"
#include "kinds/counters.h"
#include "kinds/fold.h"
#include "kinds/spectral.h"

static const bly_param spectral_params[] = {
    [SPECTRAL_COUNTERS] = BLY_PARAM(
        "counters", BLY_UINT, .min = 1, .max = (double)BLY_PROBE_MAX_CELLS,
        .help = "counters in the primary array (m)"),
    [SPECTRAL_K] =
        BLY_PARAM("k", BLY_UINT, .settable = true, .automatic = true, .min = 1,
                  .max = BLY_PROBE_MAX_K, .help = "counters of a key"),
    [SPECTRAL_UPDATE] =
        BLY_PARAM("update", BLY_CHOICE, .settable = true, .max = 2,
                  .choices = BLY_WORDS("selection", "increase", "recurring"),
                  .help = "raise all counters, only the smallest, or all with "
                          "a second array for doubtful keys"),
    [SPECTRAL_WIDTH] =
        BLY_PARAM("width", BLY_UINT, .settable = true, .automatic = true,
                  .min = 4, .max = 32,
                  .help = "bits of a counter, 8, 16 or 32; if not given, 4, "
                          "and more where many counts are large"),
    [SPECTRAL_SECONDARY] =
        BLY_PARAM("secondary", BLY_UINT, .max = (double)BLY_PROBE_MAX_CELLS,
                  .help = "counters in the secondary array"),
    [SPECTRAL_MARKER] =
        BLY_PARAM("marker", BLY_UINT, .max = (double)BLY_PROBE_MAX_CELLS,
                  .help = "bits that remember who moved there"),
    [SPECTRAL_RULE] = BLY_PROBE_RULE_PARAM,
    [SPECTRAL_FOLDS] = BLY_FOLDS_PARAM,
    [SPECTRAL_COMPACT] =
        BLY_PARAM("compact", BLY_UINT, .max = 1,
                  .help = "1: large counts are in a table; 0: they stick"),
    [SPECTRAL_LARGE] =
        BLY_PARAM("large", BLY_UINT, .max = (double)BLY_PROBE_MAX_CELLS,
                  .help = "places in that table"),
};

static bool spectral_width_ok(uint64_t width)
{
    return width == 8 || width == 16 || width == 32;
}

/* ---------------------------------------------------------------- planning */

static uint64_t spectral_bits(const bly_shape *s)
{
    return spectral_counters(s) * s->p[SPECTRAL_WIDTH] + s->p[SPECTRAL_MARKER] +
           bly_overflow_bits(s->p[SPECTRAL_LARGE], spectral_counters(s));
}

static bly_status spectral_plan(const bly_want *w, bly_shape *out)
{
    const bool compact = !w->given[SPECTRAL_WIDTH];
    const uint64_t width = compact ? 4 : w->opt[SPECTRAL_WIDTH];
    const uint64_t update = w->opt[SPECTRAL_UPDATE];
    if (!compact && !spectral_width_ok(width))
        return bly_fail(BLY_EINVAL,
                        "width = %llu: a counter has 8, 16 or 32 bits",
                        (unsigned long long)width);
    uint64_t cells = 0;
    if (w->bits) {
        /* Two counters of the primary come with one of the secondary and two
         * bits of the marker. */
        cells = update == SPECTRAL_RECURRING ? w->bits / (3 * width + 2) * 2
                                             : w->bits / width;
        if (!cells)
            return bly_fail(BLY_EINVAL,
                            "%llu bits are too few for a spectral filter with "
                            "counters of %llu",
                            (unsigned long long)w->bits,
                            (unsigned long long)width);
    }
    bly_size size;
    const bly_status st =
        bly_probe_plan(&bly_kind_spectral, w, cells, w->opt[SPECTRAL_K],
                       w->opt[SPECTRAL_RULE] != 0, w->opt[SPECTRAL_FOLDS],
                       bly_probe_rate, &size);
    if (st)
        return st;
    *out =
        bly_spectral_shape((uint64_t)size.m, size.k, update, width, compact, 0);
    return BLY_OK;
}

static bool spectral_sane(const bly_shape *s)
{
    const uint64_t m = s->p[SPECTRAL_COUNTERS], k = s->p[SPECTRAL_K];
    const uint64_t width = s->p[SPECTRAL_WIDTH], large = s->p[SPECTRAL_LARGE];
    const uint64_t compact = s->p[SPECTRAL_COMPACT];
    if (!bly_probe_sane(m, k) || s->p[SPECTRAL_UPDATE] > SPECTRAL_RECURRING ||
        compact > 1 || !(spectral_width_ok(width) || (compact && width == 4)))
        return false;
    const bly_shape bare =
        bly_spectral_shape(m, k, s->p[SPECTRAL_UPDATE], width, compact, 0);
    if (large && (!spectral_outgrown(&bare) || !bly_overflow_places_ok(large) ||
                  !spectral_pays(&bare, large)))
        return false;
    return s->p[SPECTRAL_SECONDARY] == bare.p[SPECTRAL_SECONDARY] &&
           s->p[SPECTRAL_MARKER] == bare.p[SPECTRAL_MARKER] &&
           s->nbytes == bare.nbytes + bly_overflow_nbytes(
                                          large, spectral_counters(&bare));
}

static double spectral_rate(const bly_shape *s, double n)
{
    return bly_probe_rate(n, (double)s->p[SPECTRAL_COUNTERS],
                          (unsigned)s->p[SPECTRAL_K]);
}

static void spectral_describe(const bly_shape *s, const bly_want *w,
                              const bly_filter *f, bly_facts *out)
{
    const double n = (double)(w ? w->items : f->items);
    bly_fact_real(out, "hits_per_counter",
                  (double)s->p[SPECTRAL_K] * n /
                      (double)s->p[SPECTRAL_COUNTERS]);
    bly_fact_uint(out, "ceiling", spectral_ceiling(s));
    if (f) {
        bly_fact_uint(out, "stuck", f->state[SPECTRAL_STUCK]);
        bly_fact_uint(out, "large_counts", f->state[SPECTRAL_NLARGE]);
    }
}

/* -------------------------------------------------------------- operations */

/* One batch of any operation; what it does not need stays zero. */
typedef struct spectral_batch {
    spectral_parts parts;
    const uint64_t *h, *by;
    size_t from; /* number of the key h[0] in by and fresh */
    uint64_t *fresh, *counts;
    bly_status *each;
    uint64_t changed, stuck, nlarge; /* the latter two as in the state */
    size_t done;                     /* keys before the first without room */
} spectral_batch;

#define SPECTRAL_ALL SIZE_MAX /* of done: there was room for all */

/* The least of some counters, how many have it, and the greatest. */
typedef struct spectral_span {
    uint32_t least, times, most;
} spectral_span;

static inline __attribute__((always_inline)) spectral_span
spectral_widen(spectral_span s, uint32_t c)
{
    return (spectral_span){
        .least = c < s.least ? c : s.least,
        .times = c < s.least ? 1 : s.times + (c == s.least),
        .most = c > s.most ? c : s.most,
    };
}

/* As stored in the cells, where all large counts look alike, at the top.
 * `width` is that of p, and a literal if it is the usual one. */
static inline __attribute__((always_inline)) spectral_span
spectral_cells_span(const unsigned char *cells, unsigned width, bly_spots at)
{
    spectral_span s = { UINT32_MAX, 0, 0 };
    BLY_UNROLL(8)
    for (uint64_t j = 0; j < at.n; j++)
        s = spectral_widen(s, bly_cell_get(cells, bly_spot(at, j), width));
    return s;
}

/* The same, with large counts looked up. */
static __attribute__((noinline)) spectral_span
spectral_large_span(const spectral_parts *p, const spectral_array *a,
                    bly_spots at)
{
    spectral_span s = { UINT32_MAX, 0, 0 };
    for (uint64_t j = 0; j < at.n; j++)
        s = spectral_widen(s, bly_spectral_value(p, a, bly_spot(at, j)));
    return s;
}

/* In this span the least is right: a counter that is not at its top holds its
 * count, which is less than those that are at their top. */
static inline __attribute__((always_inline)) spectral_span
spectral_span_of(const spectral_parts *p, const spectral_array *a,
                 unsigned width, bly_spots at)
{
    const spectral_span s = spectral_cells_span(a->cells, width, at);
    return __builtin_expect(s.least == bly_cell_top(width), 0) && p->outgrown
               ? spectral_large_span(p, a, at)
               : s;
}

/* Add to counters that stay below their top, or subtract from counters that are
 * not zero: nothing carries into a neighbour. As far as the compiler knows, a
 * store to a byte may change anything, so what the loop needs is passed by
 * value. */
static inline __attribute__((always_inline)) void
spectral_shift(unsigned char *cells, unsigned width, bly_spots at, uint32_t by)
{
    BLY_UNROLL(8)
    for (uint64_t j = 0; j < at.n; j++) {
        const uint64_t spot = bly_spot(at, j);
        if (width == 4)
            cells[spot >> 1] =
                (unsigned char)(cells[spot >> 1] + (by << (spot & 1) * 4));
        else
            bly_cell_put(cells, spot, width,
                         bly_cell_get(cells, spot, width) + by);
    }
}

static void spectral_values(const spectral_parts *p, const spectral_array *a,
                            bly_spots at, uint32_t *out)
{
    for (uint64_t j = 0; j < at.n; j++)
        out[j] = bly_spectral_value(p, a, bly_spot(at, j));
}

/* Change counters from `old` to `new`. False, with nothing changed: there is no
 * room for another large count. */
static bool spectral_become(spectral_batch *b, const spectral_array *a,
                            bly_spots at, const uint32_t *old,
                            const uint32_t *new)
{
    uint64_t j = 0, stuck = b->stuck;
    for (; j < at.n; j++) {
        if (!bly_spectral_assign(&b->parts, a, bly_spot(at, j), new[j],
                                 &b->nlarge))
            break;
        stuck += new[j] == b->parts.ceiling;
        stuck -= old[j] == b->parts.ceiling;
    }
    if (j == at.n) {
        b->stuck = stuck;
        return true;
    }
    while (j--)
        bly_spectral_assign(&b->parts, a, bly_spot(at, j), old[j], &b->nlarge);
    return false;
}

/* spectral_raise() of counters of which some are at their top, or will be. */
static __attribute__((noinline)) bool
spectral_raise_large(spectral_batch *b, const spectral_array *a, bly_spots at,
                     uint64_t by, uint64_t goal)
{
    const uint32_t ceiling = b->parts.ceiling;
    uint32_t old[BLY_PROBE_MAX_K], new[BLY_PROBE_MAX_K];
    spectral_values(&b->parts, a, at, old);
    for (uint64_t j = 0; j < at.n; j++) {
        new[j] = bly_cell_sum(old[j], by, ceiling);
        if (new[j] < goal)
            new[j] = (uint32_t)goal;
    }
    return spectral_become(b, a, at, old, new);
}

/* Add `by` to the counters, the greatest of which is `most`. False, with
 * nothing changed: no room. */
static inline __attribute__((always_inline)) bool
spectral_raise(spectral_batch *b, const spectral_array *a, unsigned width,
               bly_spots at, uint32_t most, uint64_t by)
{
    if (__builtin_expect(by >= bly_cell_top(width) - most, 0))
        return spectral_raise_large(b, a, at, by, 0);
    spectral_shift(a->cells, width, at, (uint32_t)by);
    return true;
}

/* spectral_lower() of counters of which some are at their top. */
static __attribute__((noinline)) void
spectral_lower_large(spectral_batch *b, const spectral_array *a, bly_spots at)
{
    uint32_t old[BLY_PROBE_MAX_K], new[BLY_PROBE_MAX_K];
    spectral_values(&b->parts, a, at, old);
    for (uint64_t j = 0; j < at.n; j++)
        new[j] = old[j] - ((old[j] != b->parts.ceiling) & (old[j] != 0));
    /* Cannot fail: lower counts need no room. */
    (void)spectral_become(b, a, at, old, new);
}

/* Take one from the counters that are neither stuck nor zero. */
static inline __attribute__((always_inline)) void
spectral_lower(spectral_batch *b, const spectral_array *a, unsigned width,
               bly_spots at, spectral_span s)
{
    if (__builtin_expect(s.least == 0 || s.most >= bly_cell_top(width), 0))
        spectral_lower_large(b, a, at);
    else
        spectral_shift(a->cells, width, at, UINT32_MAX);
}

/* The secondary array and the marker have positions of their own: keys that
 * share counters in one array should not share them in the others. */
static inline uint64_t spectral_other_hash(uint64_t h)
{
    return bly_mix64(h ^ UINT64_C(0xbb67ae8584caa73b));
}

/* The counters of a key in the secondary array: fewer than k in a tiny one. */
static bly_spots spectral_moved(const spectral_parts *p, uint64_t other,
                                uint64_t *room)
{
    const uint64_t k2 = p->k < p->m2.n ? p->k : p->m2.n;
    return bly_probe_dedupe(bly_probe_list(other, p->m2, k2, room), room);
}

static bool spectral_marked(const spectral_parts *p, uint64_t other)
{
    bly_probe probe = bly_probe_start(other, p->marks);
    bool in = true;
    for (uint64_t i = 0; i < p->k && in; i++)
        in = bly_bit_get(p->marker, bly_probe_next(&probe, p->marks.n, i));
    return in;
}

static void spectral_mark(const spectral_parts *p, uint64_t other)
{
    bly_probe probe = bly_probe_start(other, p->marks);
    for (uint64_t i = 0; i < p->k; i++)
        bly_bit_set(p->marker, bly_probe_next(&probe, p->marks.n, i));
}

/* Note that a key was added, or that there was no room for it. */
static inline __attribute__((always_inline)) void
spectral_note(spectral_batch *b, size_t i, bool room, bool new_key, uint64_t by)
{
    if (!room) {
        b->done = i;
        return;
    }
    i += b->from;
    b->changed += by != 0;
    if (b->fresh)
        b->fresh[i / 64] |= (uint64_t)new_key << i % 64;
}

static inline uint64_t spectral_by(const spectral_batch *b, size_t i)
{
    return b->by ? b->by[b->from + i] : 1;
}

/* The operations on each key, for counters of a width that may be a literal. */

static inline __attribute__((always_inline)) void
spectral_add_selection(spectral_batch *b, unsigned width, size_t i,
                       bly_spots at)
{
    const spectral_array *const a = &b->parts.primary;
    if (__builtin_expect(b->done != SPECTRAL_ALL, 0))
        return;
    const uint64_t by = spectral_by(b, i);
    const spectral_span s = spectral_cells_span(a->cells, width, at);
    const bool room = spectral_raise(b, a, width, at, s.most, by);
    spectral_note(b, i, room, !s.least, by);
}

static inline __attribute__((always_inline)) void
spectral_add_increase(spectral_batch *b, unsigned width, size_t i, bly_spots at)
{
    const spectral_array *const a = &b->parts.primary;
    unsigned char *const cells = a->cells;
    if (b->done != SPECTRAL_ALL)
        return;
    const uint64_t by = spectral_by(b, i);
    const uint32_t least = spectral_span_of(&b->parts, a, width, at).least;
    /* The key had been added `least` times at most, so with this it has been
     * added `goal` times at most: counters above that are high enough. */
    const uint32_t goal = bly_cell_sum(least, by, b->parts.ceiling);
    bool room = true;
    if (goal >= bly_cell_top(width))
        room = spectral_raise_large(b, a, at, 0, goal);
    else
        for (uint64_t j = 0; j < at.n; j++) {
            const uint32_t c = bly_cell_get(cells, bly_spot(at, j), width);
            bly_cell_put(cells, bly_spot(at, j), width, c < goal ? goal : c);
        }
    spectral_note(b, i, room, !least, by);
}

/* Add `by` to the secondary counters of a key. */
static bool spectral_raise_moved(spectral_batch *b, uint64_t other, uint64_t by)
{
    const spectral_parts *const p = &b->parts;
    uint64_t spots[BLY_PROBE_MAX_K];
    const bly_spots at = spectral_moved(p, other, spots);
    return spectral_raise(
        b, &p->secondary, p->width, at,
        spectral_cells_span(p->secondary.cells, p->width, at).most, by);
}

static void spectral_add_recurring(spectral_batch *b, unsigned width, size_t i,
                                   bly_spots at)
{
    const spectral_parts *const p = &b->parts;
    const spectral_array *const a = &p->primary;
    if (b->done != SPECTRAL_ALL)
        return;
    const uint64_t by = spectral_by(b, i);
    const uint64_t other = spectral_other_hash(b->h[i]);
    const spectral_span was = spectral_cells_span(a->cells, width, at);
    uint32_t old[BLY_PROBE_MAX_K], new[BLY_PROBE_MAX_K];
    bool room = true;
    spectral_values(p, a, at, old);
    if (by && (room = spectral_raise(b, a, width, at, was.most, by))) {
        /* After raising: the secondary takes over the count as it is now. */
        const spectral_span now = spectral_span_of(p, a, width, at);
        const bool marked = spectral_marked(p, other);
        if (marked || now.times == 1)
            room = spectral_raise_moved(b, other, marked ? by : now.least);
        if (!room) {
            spectral_values(p, a, at, new);
            (void)spectral_become(b, a, at, new, old);
        } else if (!marked && now.times == 1) {
            spectral_mark(p, other);
        }
    }
    spectral_note(b, i, room, !was.least, by);
}

static inline __attribute__((always_inline)) void
spectral_take(spectral_batch *b, unsigned width, size_t i, bly_spots at)
{
    const spectral_parts *const p = &b->parts;
    const spectral_span s = spectral_cells_span(p->primary.cells, width, at);
    /* A key that was never added must not take from others. */
    if (!s.least) {
        b->each[i] = BLY_EABSENT;
        return;
    }
    spectral_lower(b, &p->primary, width, at, s);
    if (p->marker) {
        const uint64_t other = spectral_other_hash(b->h[i]);
        uint64_t room[BLY_PROBE_MAX_K];
        if (spectral_marked(p, other)) {
            const bly_spots at2 = spectral_moved(p, other, room);
            spectral_lower(b, &p->secondary, width, at2,
                           spectral_cells_span(p->secondary.cells, width, at2));
        }
    }
    b->each[i] = BLY_OK;
    b->changed++;
}

/* Removal with `increase`: the counters stay as they are. */
static void spectral_keep(spectral_batch *b, unsigned width, size_t i,
                          bly_spots at)
{
    const unsigned char *const cells = b->parts.primary.cells;
    b->each[i] = spectral_cells_span(cells, width, at).least ? BLY_EREFUSED
                                                             : BLY_EABSENT;
}

static inline __attribute__((always_inline)) void
spectral_read(spectral_batch *b, unsigned width, size_t i, bly_spots at)
{
    const spectral_parts *const p = &b->parts;
    const spectral_span first = spectral_span_of(p, &p->primary, width, at);
    uint32_t value = first.least;
    /* A least value that recurs is trusted; only a single one is doubtful. */
    if (p->marker && value && first.times == 1) {
        const uint64_t other = spectral_other_hash(b->h[i]);
        uint64_t room[BLY_PROBE_MAX_K];
        if (spectral_marked(p, other)) {
            const bly_spots at2 = spectral_moved(p, other, room);
            const uint32_t second =
                spectral_span_of(p, &p->secondary, width, at2).least;
            /* A key that moved has no zero there; with one, its mark is a false
             * positive. */
            if (second && second < value)
                value = second;
        }
    }
    b->counts[i] = value == p->ceiling ? UINT64_MAX : value;
}

/* Compiled for two widths: the usual one, as a literal, and any other. */
#define SPECTRAL_VISITS(name)                                         \
    static inline __attribute__((always_inline)) void name##_4(       \
        void *ctx, size_t i, bly_spots at)                            \
    {                                                                 \
        name(ctx, 4, i, at);                                          \
    }                                                                 \
    static inline __attribute__((always_inline)) void name##_any(     \
        void *ctx, size_t i, bly_spots at)                            \
    {                                                                 \
        name(ctx, ((const spectral_batch *)ctx)->parts.width, i, at); \
    }

SPECTRAL_VISITS(spectral_add_selection)
SPECTRAL_VISITS(spectral_add_increase)
SPECTRAL_VISITS(spectral_add_recurring)
SPECTRAL_VISITS(spectral_take)
SPECTRAL_VISITS(spectral_keep)
SPECTRAL_VISITS(spectral_read)

static inline __attribute__((always_inline)) void
spectral_run(const bly_filter *f, spectral_batch *b, const uint64_t *h,
             size_t n, bly_probe_visit *four, bly_probe_visit *any)
{
    b->parts = bly_spectral_parts(f);
    b->h = h;
    b->stuck = f->state[SPECTRAL_STUCK];
    b->nlarge = f->state[SPECTRAL_NLARGE];
    b->changed = 0;
    b->done = SPECTRAL_ALL;
    const bly_steps steps = { .range = b->parts.m, .k = b->parts.k };
    if (b->parts.width == 4)
        bly_probe_each(f->data, 4, steps, true, h, n, NULL, four, b);
    else
        bly_probe_each(f->data, b->parts.width, steps, true, h, n, NULL, any,
                       b);
}

#define SPECTRAL_RUN(f, b, h, n, name) \
    spectral_run(f, b, h, n, name##_4, name##_any)

/* Keys that are added at once. All keys behind one that finds no room are
 * processed in vain. */
#define SPECTRAL_PIECE 4096

static bly_status spectral_add_all(bly_filter *f, spectral_batch *b,
                                   const uint64_t *h, size_t n, size_t *ndone)
{
    const uint64_t update = f->shape.p[SPECTRAL_UPDATE];
    bly_status st = BLY_OK;
    b->from = 0;
    while (b->from < n && !st) {
        const size_t left = n - b->from;
        const size_t now = left < SPECTRAL_PIECE ? left : SPECTRAL_PIECE;
        if (update == SPECTRAL_SELECTION)
            SPECTRAL_RUN(f, b, h + b->from, now, spectral_add_selection);
        else if (update == SPECTRAL_INCREASE)
            SPECTRAL_RUN(f, b, h + b->from, now, spectral_add_increase);
        else
            SPECTRAL_RUN(f, b, h + b->from, now, spectral_add_recurring);
        f->state[SPECTRAL_STUCK] = b->stuck;
        f->state[SPECTRAL_NLARGE] = b->nlarge;
        bly_filter_added(f, b->changed);
        b->from += b->done == SPECTRAL_ALL ? now : b->done;
        if (b->done != SPECTRAL_ALL)
            st = bly_spectral_grow(f);
    }
    *ndone = b->from;
    return st;
}

static const char *spectral_keeps(const bly_shape *s)
{
    return s->p[SPECTRAL_UPDATE] == SPECTRAL_INCREASE
               ? "update = increase raises only some counters of a key, and "
                 "nobody knows which: nothing can be removed (build with "
                 "update = selection)"
               : NULL;
}

static bly_status spectral_add(bly_filter *f, const uint64_t *h, size_t n,
                               uint64_t *fresh, size_t *ndone)
{
    spectral_batch b = { .fresh = fresh };
    return spectral_add_all(f, &b, h, n, ndone);
}

static bly_status spectral_increase(bly_filter *f, const uint64_t *h,
                                    const uint64_t *by, size_t n, size_t *ndone)
{
    spectral_batch b = { .by = by };
    return spectral_add_all(f, &b, h, n, ndone);
}

static void spectral_remove(bly_filter *f, const uint64_t *h, size_t n,
                            bly_status *each)
{
    spectral_batch b = { .each = each };
    if (f->shape.p[SPECTRAL_UPDATE] == SPECTRAL_INCREASE)
        SPECTRAL_RUN(f, &b, h, n, spectral_keep);
    else
        SPECTRAL_RUN(f, &b, h, n, spectral_take);
    f->state[SPECTRAL_STUCK] = b.stuck;
    f->state[SPECTRAL_NLARGE] = b.nlarge;
    bly_filter_removed(f, b.changed);
}

static void spectral_count(const bly_filter *f, const uint64_t *h, size_t n,
                           uint64_t *counts)
{
    spectral_batch b = { .counts = counts };
    SPECTRAL_RUN(f, &b, h, n, spectral_read);
}

static void spectral_has(const bly_filter *f, const uint64_t *h, size_t n,
                         uint64_t *maybe)
{
    bly_counters_has(f->data, f->shape.p[SPECTRAL_COUNTERS],
                     (unsigned)f->shape.p[SPECTRAL_WIDTH],
                     f->shape.p[SPECTRAL_K], h, n, maybe);
}

/* ------------------------------------------------------------ whole filters */

/* Used counters of the primary, and counters of both arrays at their top. */
static bly_cells_tally spectral_tally(const bly_filter *f)
{
    const spectral_parts p = bly_spectral_parts(f);
    bly_cells_tally t = bly_cells_count(p.primary.cells, p.m.n, p.width);
    if (p.marker)
        t.stuck += bly_cells_count(p.secondary.cells, p.m2.n, p.width).stuck;
    return t;
}

static bool spectral_sound(const bly_filter *f)
{
    return !f->nlayers &&
           f->state[SPECTRAL_STUCK] <= spectral_counters(&f->shape) &&
           f->state[SPECTRAL_NLARGE] <=
               bly_overflow_most(f->shape.p[SPECTRAL_LARGE]);
}

/* Is the table that of the counters at their top? */
static bool spectral_large_good(const bly_filter *f, const spectral_parts *p)
{
    uint64_t i = 0, position, stuck = 0;
    uint32_t count;
    if (!bly_overflow_check(&p->large, f->state[SPECTRAL_NLARGE]) ||
        spectral_tally(f).stuck != f->state[SPECTRAL_NLARGE])
        return false;
    while (bly_overflow_walk(&p->large, &i, &position, &count)) {
        const uint32_t top = bly_cell_top(p->width);
        const spectral_array *const a =
            position < p->m.n ? &p->primary : &p->secondary;
        if (count < top ||
            bly_cell_get(a->cells, position - a->first, p->width) != top)
            return false;
        stuck += count == p->ceiling;
    }
    return stuck == f->state[SPECTRAL_STUCK];
}

static bool spectral_check(const bly_filter *f)
{
    const spectral_parts p = bly_spectral_parts(f);
    if (p.marker &&
        (!bly_cells_tail_clear(p.secondary.cells, p.m2.n, p.width) ||
         !bly_bits_tail_clear(p.marker, p.marks.n,
                              (size_t)((p.marks.n + 63) / 64))))
        return false;
    return bly_cells_tail_clear(p.primary.cells, p.m.n, p.width) &&
           (p.outgrown ? spectral_large_good(f, &p)
                       : spectral_tally(f).stuck == f->state[SPECTRAL_STUCK] &&
                             !f->state[SPECTRAL_NLARGE]);
}

static void spectral_stat(const bly_filter *f, bly_stats *out)
{
    bly_probe_stat(spectral_tally(f).used, f->shape.p[SPECTRAL_COUNTERS],
                   f->shape.p[SPECTRAL_K], out);
}

/* Does a key have the same counters in both, however wide they are? Then an old
 * file can be combined with a new one. */
static bool spectral_akin(const bly_shape *a, const bly_shape *b)
{
    return a->p[SPECTRAL_COUNTERS] == b->p[SPECTRAL_COUNTERS] &&
           a->p[SPECTRAL_K] == b->p[SPECTRAL_K] &&
           a->p[SPECTRAL_UPDATE] == b->p[SPECTRAL_UPDATE];
}

static bly_status spectral_compare(const bly_filter *a, const bly_filter *b,
                                   bly_likeness *out)
{
    const spectral_parts x = bly_spectral_parts(a), y = bly_spectral_parts(b);
    bly_ones ones = { 0 };
    for (uint64_t j = 0; j < x.m.n; j++) {
        const bool in_a = bly_cell_get(x.primary.cells, j, x.width) != 0;
        const bool in_b = bly_cell_get(y.primary.cells, j, y.width) != 0;
        ones.a += in_a;
        ones.b += in_b;
        ones.either += in_a | in_b;
    }
    bly_likeness_of_ones(&ones, (double)x.m.n, (double)x.k, INFINITY, out);
    return BLY_OK;
}

static bly_status spectral_convert(const bly_filter *f, const bly_kind *to,
                                   const bly_want *w, bly_filter **out)
{
    return bly_classic_from_cells(
        f, f->shape.p[SPECTRAL_COUNTERS], f->shape.p[SPECTRAL_K],
        (unsigned)f->shape.p[SPECTRAL_WIDTH], to, w, out);
}

const bly_kind bly_kind_spectral = {
    .id = 14, /* on disk: never changed, never reused */
    .name = "spectral",
    .summary = "counters that estimate how often each key was added",
    .params = spectral_params,
    .nparams = sizeof spectral_params / sizeof spectral_params[0],
    .nstate = SPECTRAL_NLARGE + 1,
    .plan = spectral_plan,
    .sane = spectral_sane,
    .rate = spectral_rate,
    .bits = spectral_bits,
    .describe = spectral_describe,
    .sound = spectral_sound,
    .check = spectral_check,
    .stat = spectral_stat,
    .keeps = spectral_keeps,
    .add = spectral_add,
    .has = spectral_has,
    .remove = spectral_remove,
    .increase = spectral_increase,
    .count = spectral_count,
    .akin = spectral_akin,
    .merge = bly_spectral_merge,
    .intersect = bly_spectral_intersect,
    .compare = spectral_compare,
    .fold = bly_spectral_fold,
    .convert = spectral_convert,
};
