/*
 * spectral.c - counters that answer "how often"
 *
 * m counters of 8, 16 or 32 bits, k of them for a key, at the positions of a
 * classic filter (probe.h), each once. What adding a key does to them is the
 * option `update`:
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
 * Recurring, in full: add to the primary; if the key is marked add to the
 * secondary too; else if the least value now occurs once, mark the key and add
 * that value to its secondary counters. Estimate: the least of the primary if
 * it recurs, or if the key is not marked; else the lesser of both arrays.
 * The marker is a filter of bits that remembers who moved. Judging that by
 * non-zero secondary counters, which would save it, takes keys for moved that
 * are not, gives them a late start there, and estimates up to 7 % of the keys
 * too low. With the marker the same happens with its false positives, about
 * one key in 10^4: the only estimates of this kind that can be too low.
 *
 * Shares of wrong estimates for 1000 keys and 50,000 additions, k = 5, kn/m =
 * 0.7, by the exponent of Zipf's law, as test_spectral.c measures them:
 *
 *     exponent   selection   increase   recurring
 *        0         3.3 %       2.3 %      1.9 %
 *        0.5       3.2 %       1.7 %      1.6 %
 *        1         2.9 %       1.2 %      1.3 %
 *
 * The second array is memory, too: at equal memory `recurring` is worse than
 * `selection`. It is for those who must remove and have memory to spare.
 *
 * Asking whether a key is there uses the primary alone, and has the rate of a
 * classic filter of m bits. Counters at their top are stuck, as in counting.c;
 * state[0] is their number in both arrays.
 *
 * Cohen and Matias, Spectral Bloom Filters, 2003
 */
#include <string.h>

#include "core/status.h"
#include "kinds/classic.h"
#include "kinds/fold.h"
#include "kinds/probe.h"

enum {
    SPECTRAL_COUNTERS,
    SPECTRAL_K,
    SPECTRAL_UPDATE,
    SPECTRAL_WIDTH,
    SPECTRAL_SECONDARY,
    SPECTRAL_MARKER,
    SPECTRAL_RULE,
    SPECTRAL_FOLDS
};
enum { SPECTRAL_SELECTION, SPECTRAL_INCREASE, SPECTRAL_RECURRING };
enum { SPECTRAL_STUCK }; /* state */

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
        BLY_PARAM("width", BLY_UINT, .settable = true, .def = 32, .min = 8,
                  .max = 32, .help = "bits of a counter: 8, 16 or 32"),
    [SPECTRAL_SECONDARY] =
        BLY_PARAM("secondary", BLY_UINT, .max = (double)BLY_PROBE_MAX_CELLS,
                  .help = "counters in the secondary array"),
    [SPECTRAL_MARKER] =
        BLY_PARAM("marker", BLY_UINT, .max = (double)BLY_PROBE_MAX_CELLS,
                  .help = "bits that remember who moved there"),
    [SPECTRAL_RULE] = BLY_PROBE_RULE_PARAM,
    [SPECTRAL_FOLDS] = BLY_FOLDS_PARAM,
};

static bool spectral_width_ok(uint64_t width)
{
    return width == 8 || width == 16 || width == 32;
}

/* ---------------------------------------------------------------- planning */

/* The shape that follows from m, k, the update rule and the width. */
static bly_shape spectral_shape(uint64_t m, uint64_t k, uint64_t update,
                                uint64_t width)
{
    bly_shape s = { .p = { [SPECTRAL_COUNTERS] = m,
                           [SPECTRAL_K] = k,
                           [SPECTRAL_UPDATE] = update,
                           [SPECTRAL_WIDTH] = width } };
    s.nbytes = bly_cells_nbytes(m, (unsigned)width);
    if (update == SPECTRAL_RECURRING) {
        s.p[SPECTRAL_SECONDARY] = (m + 1) / 2;
        s.p[SPECTRAL_MARKER] = m;
        s.nbytes += bly_cells_nbytes(s.p[SPECTRAL_SECONDARY], (unsigned)width) +
                    (m + 63) / 64 * 8;
    }
    return s;
}

static uint64_t spectral_bits(const bly_shape *s)
{
    return (s->p[SPECTRAL_COUNTERS] + s->p[SPECTRAL_SECONDARY]) *
               s->p[SPECTRAL_WIDTH] +
           s->p[SPECTRAL_MARKER];
}

static bly_status spectral_plan(const bly_want *w, bly_shape *out)
{
    const uint64_t width = w->opt[SPECTRAL_WIDTH];
    const uint64_t update = w->opt[SPECTRAL_UPDATE];
    if (!spectral_width_ok(width))
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
    const bly_status st = bly_probe_plan(
        &bly_kind_spectral, w, cells, w->opt[SPECTRAL_K],
        w->opt[SPECTRAL_RULE] != 0, w->opt[SPECTRAL_FOLDS], &size);
    if (st)
        return st;
    *out = spectral_shape((uint64_t)size.m, size.k, update, width);
    return BLY_OK;
}

static bool spectral_sane(const bly_shape *s)
{
    const uint64_t m = s->p[SPECTRAL_COUNTERS], k = s->p[SPECTRAL_K];
    if (!bly_probe_sane(m, k) || s->p[SPECTRAL_UPDATE] > SPECTRAL_RECURRING ||
        !spectral_width_ok(s->p[SPECTRAL_WIDTH]))
        return false;
    const bly_shape want =
        spectral_shape(m, k, s->p[SPECTRAL_UPDATE], s->p[SPECTRAL_WIDTH]);
    return s->p[SPECTRAL_SECONDARY] == want.p[SPECTRAL_SECONDARY] &&
           s->p[SPECTRAL_MARKER] == want.p[SPECTRAL_MARKER] &&
           s->nbytes == want.nbytes;
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
    bly_fact_uint(out, "ceiling", bly_cell_top((unsigned)s->p[SPECTRAL_WIDTH]));
    if (f)
        bly_fact_uint(out, "stuck", f->state[SPECTRAL_STUCK]);
}

/* -------------------------------------------------------------- operations */

/* The three parts of the data of f. */
typedef struct spectral_parts {
    unsigned char *primary, *secondary;
    uint64_t *marker;
    unsigned width;
    uint64_t k;
    bly_modulus m, m2, marks; /* of primary, secondary, marker */
} spectral_parts;

static spectral_parts spectral_parts_of(const bly_filter *f)
{
    const uint64_t *const p = f->shape.p;
    const unsigned width = (unsigned)p[SPECTRAL_WIDTH];
    spectral_parts parts = {
        .primary = f->data,
        .width = width,
        .k = p[SPECTRAL_K],
        .m = bly_modulus_of(p[SPECTRAL_COUNTERS]),
    };
    if (p[SPECTRAL_UPDATE] == SPECTRAL_RECURRING) {
        parts.secondary =
            f->data + bly_cells_nbytes(p[SPECTRAL_COUNTERS], width);
        parts.marker = (uint64_t *)(void *)(parts.secondary +
                                            bly_cells_nbytes(
                                                p[SPECTRAL_SECONDARY], width));
        parts.m2 = bly_modulus_of(p[SPECTRAL_SECONDARY]);
        parts.marks = bly_modulus_of(p[SPECTRAL_MARKER]);
    }
    return parts;
}

/* One batch of any operation; what it does not need stays zero. */
typedef struct spectral_batch {
    spectral_parts parts;
    const uint64_t *h, *by;
    uint64_t *fresh, *counts;
    bly_status *each;
    uint64_t changed, stuck;
} spectral_batch;

/* The least of the counters at nat positions, and how many have it. */
typedef struct spectral_least {
    uint32_t value, times;
} spectral_least;

static inline __attribute__((always_inline)) spectral_least
spectral_least_of(const unsigned char *cells, unsigned width, bly_spots at)
{
    spectral_least least = { UINT32_MAX, 0 };
    for (uint64_t j = 0; j < at.n; j++) {
        const uint32_t c = bly_cell_get(cells, bly_spot(at, j), width);
        least.times = c < least.value ? 1 : least.times + (c == least.value);
        least.value = c < least.value ? c : least.value;
    }
    return least;
}

/* Add `by` to the counters; how many stuck by it. */
static inline __attribute__((always_inline)) uint64_t
spectral_raise(unsigned char *cells, unsigned width, bly_spots at, uint64_t by)
{
    const uint32_t top = bly_cell_top(width);
    uint64_t stuck = 0;
    for (uint64_t j = 0; j < at.n; j++) {
        const uint32_t c = bly_cell_get(cells, bly_spot(at, j), width);
        const uint32_t sum = bly_cell_sum(c, by, top);
        bly_cell_put(cells, bly_spot(at, j), width, sum);
        stuck += (c != top) & (sum == top);
    }
    return stuck;
}

/* Take one from the counters that are neither stuck nor zero. */
static inline __attribute__((always_inline)) void
spectral_lower(unsigned char *cells, unsigned width, bly_spots at)
{
    const uint32_t top = bly_cell_top(width);
    for (uint64_t j = 0; j < at.n; j++) {
        const uint32_t c = bly_cell_get(cells, bly_spot(at, j), width);
        bly_cell_put(cells, bly_spot(at, j), width,
                     c - ((c != top) & (c != 0)));
    }
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

static inline __attribute__((always_inline)) void
spectral_note(spectral_batch *b, size_t i, bool new_key, uint64_t by)
{
    b->changed += by != 0;
    if (b->fresh)
        b->fresh[i / 64] |= (uint64_t)new_key << i % 64;
}

static inline uint64_t spectral_by(const spectral_batch *b, size_t i)
{
    return b->by ? b->by[i] : 1;
}

static inline __attribute__((always_inline)) void
spectral_add_selection(void *ctx, size_t i, bly_spots at)
{
    spectral_batch *const b = ctx;
    unsigned char *const cells = b->parts.primary;
    const uint64_t by = spectral_by(b, i);
    /* Read the counters twice only for callers who ask what was new. */
    const bool new_key =
        b->fresh && !spectral_least_of(cells, b->parts.width, at).value;
    b->stuck += spectral_raise(cells, b->parts.width, at, by);
    spectral_note(b, i, new_key, by);
}

static inline __attribute__((always_inline)) void
spectral_add_increase(void *ctx, size_t i, bly_spots at)
{
    spectral_batch *const b = ctx;
    unsigned char *const cells = b->parts.primary;
    const unsigned width = b->parts.width;
    const uint32_t top = bly_cell_top(width);
    const uint64_t by = spectral_by(b, i);
    const uint32_t least = spectral_least_of(cells, width, at).value;
    /* The key had been added `least` times at most, so with this it has been
     * added `goal` times at most: counters above that are high enough. */
    const uint32_t goal = bly_cell_sum(least, by, top);
    for (uint64_t j = 0; j < at.n; j++) {
        const uint32_t c = bly_cell_get(cells, bly_spot(at, j), width);
        const uint32_t sum = c < goal ? goal : c;
        bly_cell_put(cells, bly_spot(at, j), width, sum);
        b->stuck += (c != top) & (sum == top);
    }
    spectral_note(b, i, !least, by);
}

static void spectral_add_recurring(void *ctx, size_t i, bly_spots at)
{
    spectral_batch *const b = ctx;
    const spectral_parts *const p = &b->parts;
    const uint64_t by = spectral_by(b, i);
    const uint64_t other = spectral_other_hash(b->h[i]);
    uint64_t room[BLY_PROBE_MAX_K];
    const bool new_key =
        b->fresh && !spectral_least_of(p->primary, p->width, at).value;
    if (by) {
        b->stuck += spectral_raise(p->primary, p->width, at, by);
        /* After raising: the secondary takes over the count as it is now. */
        const spectral_least now = spectral_least_of(p->primary, p->width, at);
        if (spectral_marked(p, other)) {
            const bly_spots at2 = spectral_moved(p, other, room);
            b->stuck += spectral_raise(p->secondary, p->width, at2, by);
        } else if (now.times == 1) {
            const bly_spots at2 = spectral_moved(p, other, room);
            spectral_mark(p, other);
            b->stuck += spectral_raise(p->secondary, p->width, at2, now.value);
        }
    }
    spectral_note(b, i, new_key, by);
}

static inline __attribute__((always_inline)) void
spectral_take(void *ctx, size_t i, bly_spots at)
{
    spectral_batch *const b = ctx;
    const spectral_parts *const p = &b->parts;
    /* A key that was never added must not take from others. */
    if (!spectral_least_of(p->primary, p->width, at).value) {
        b->each[i] = BLY_EABSENT;
        return;
    }
    spectral_lower(p->primary, p->width, at);
    if (p->marker) {
        const uint64_t other = spectral_other_hash(b->h[i]);
        uint64_t room[BLY_PROBE_MAX_K];
        if (spectral_marked(p, other))
            spectral_lower(p->secondary, p->width,
                           spectral_moved(p, other, room));
    }
    b->each[i] = BLY_OK;
    b->changed++;
}

/* How `increase` answers removals: the counters stay as they are. */
static void spectral_keep(void *ctx, size_t i, bly_spots at)
{
    spectral_batch *const b = ctx;
    const spectral_parts *const p = &b->parts;
    b->each[i] = spectral_least_of(p->primary, p->width, at).value
                     ? BLY_EREFUSED
                     : BLY_EABSENT;
}

static inline __attribute__((always_inline)) void
spectral_read(void *ctx, size_t i, bly_spots at)
{
    spectral_batch *const b = ctx;
    const spectral_parts *const p = &b->parts;
    const spectral_least first = spectral_least_of(p->primary, p->width, at);
    uint32_t value = first.value;
    /* A least value that recurs is trusted; only a single one is doubtful. */
    if (p->marker && value && first.times == 1) {
        const uint64_t other = spectral_other_hash(b->h[i]);
        uint64_t room[BLY_PROBE_MAX_K];
        if (spectral_marked(p, other)) {
            const bly_spots at2 = spectral_moved(p, other, room);
            const uint32_t second =
                spectral_least_of(p->secondary, p->width, at2).value;
            /* A key that moved has no zero there; with one, its mark is a false
             * positive. */
            if (second && second < value)
                value = second;
        }
    }
    b->counts[i] = value == bly_cell_top(p->width) ? UINT64_MAX : value;
}

/* Run a batch, with the default width as a literal. */
static inline __attribute__((always_inline)) void
spectral_run(const bly_filter *f, spectral_batch *b, const uint64_t *h,
             size_t n, bly_probe_visit *visit)
{
    b->parts = spectral_parts_of(f);
    b->h = h;
    if (b->parts.width == 32) {
        /* It is 32 already: this tells the compiler, which then makes loops of
         * plain 32-bit loads and stores. */
        b->parts.width = 32;
        bly_probe_each(f->data, 32,
                       (bly_steps){ .range = b->parts.m, .k = b->parts.k },
                       true, h, n, NULL, visit, b);
    } else {
        bly_probe_each(f->data, b->parts.width,
                       (bly_steps){ .range = b->parts.m, .k = b->parts.k },
                       true, h, n, NULL, visit, b);
    }
}

static inline __attribute__((always_inline)) void
spectral_add_all(bly_filter *f, spectral_batch *b, const uint64_t *h, size_t n)
{
    if (f->shape.p[SPECTRAL_UPDATE] == SPECTRAL_SELECTION)
        spectral_run(f, b, h, n, spectral_add_selection);
    else if (f->shape.p[SPECTRAL_UPDATE] == SPECTRAL_INCREASE)
        spectral_run(f, b, h, n, spectral_add_increase);
    else
        spectral_run(f, b, h, n, spectral_add_recurring);
    f->state[SPECTRAL_STUCK] += b->stuck;
    bly_filter_added(f, b->changed);
}

static bly_status spectral_add(bly_filter *f, const uint64_t *h, size_t n,
                               uint64_t *fresh, size_t *ndone)
{
    spectral_batch b = { .fresh = fresh };
    spectral_add_all(f, &b, h, n);
    *ndone = n;
    return BLY_OK;
}

static bly_status spectral_increase(bly_filter *f, const uint64_t *h,
                                    const uint64_t *by, size_t n, size_t *ndone)
{
    spectral_batch b = { .by = by };
    spectral_add_all(f, &b, h, n);
    *ndone = n;
    return BLY_OK;
}

static void spectral_remove(bly_filter *f, const uint64_t *h, size_t n,
                            bly_status *each)
{
    spectral_batch b = { .each = each };
    if (f->shape.p[SPECTRAL_UPDATE] == SPECTRAL_INCREASE)
        spectral_run(f, &b, h, n, spectral_keep);
    else
        spectral_run(f, &b, h, n, spectral_take);
    bly_filter_removed(f, b.changed);
}

static void spectral_count(const bly_filter *f, const uint64_t *h, size_t n,
                           uint64_t *counts)
{
    spectral_batch b = { .counts = counts };
    spectral_run(f, &b, h, n, spectral_read);
}

static inline __attribute__((always_inline)) bool
spectral_test32(const void *cells, uint64_t at, uint64_t tag)
{
    (void)tag;
    return bly_cell_get(cells, at, 32) != 0;
}

static inline __attribute__((always_inline)) bool
spectral_test(const void *ctx, uint64_t at, uint64_t tag)
{
    const bly_filter *f = ctx;
    (void)tag;
    return bly_cell_get(f->data, at, (unsigned)f->shape.p[SPECTRAL_WIDTH]) != 0;
}

static void spectral_has(const bly_filter *f, const uint64_t *h, size_t n,
                         uint64_t *maybe)
{
    bly_probe_query q = {
        .cells = f->data,
        .range = bly_modulus_of(f->shape.p[SPECTRAL_COUNTERS]),
        .k = f->shape.p[SPECTRAL_K],
    };
    /* As in spectral_run(): constants for the default width. */
    if (f->shape.p[SPECTRAL_WIDTH] == 32) {
        q.width = 32;
        q.test = spectral_test32;
        q.ctx = f->data;
        bly_probe_ask(&q, h, n, maybe);
    } else {
        q.width = (unsigned)f->shape.p[SPECTRAL_WIDTH];
        q.test = spectral_test;
        q.ctx = f;
        bly_probe_ask(&q, h, n, maybe);
    }
}

/* ------------------------------------------------------------ whole filters */

/* Stuck counters of both arrays; used ones of the primary. */
static bly_cells_tally spectral_tally(const bly_filter *f)
{
    const spectral_parts p = spectral_parts_of(f);
    bly_cells_tally t = bly_cells_count(p.primary, p.m.n, p.width);
    if (p.marker)
        t.stuck += bly_cells_count(p.secondary, p.m2.n, p.width).stuck;
    return t;
}

static bool spectral_sound(const bly_filter *f)
{
    return !f->nlayers &&
           f->state[SPECTRAL_STUCK] <=
               f->shape.p[SPECTRAL_COUNTERS] + f->shape.p[SPECTRAL_SECONDARY];
}

static bool spectral_check(const bly_filter *f)
{
    const spectral_parts p = spectral_parts_of(f);
    if (p.marker && (!bly_cells_tail_clear(p.secondary, p.m2.n, p.width) ||
                     !bly_bits_tail_clear(p.marker, p.marks.n,
                                          (size_t)((p.marks.n + 63) / 64))))
        return false;
    return bly_cells_tail_clear(p.primary, p.m.n, p.width) &&
           spectral_tally(f).stuck == f->state[SPECTRAL_STUCK];
}

static void spectral_stat(const bly_filter *f, bly_stats *out)
{
    bly_probe_stat(spectral_tally(f).used, f->shape.p[SPECTRAL_COUNTERS],
                   f->shape.p[SPECTRAL_K], out);
}

/* The primary array of f has become something else. The secondary does not go
 * with it: what one filter counts there the other may have in its primary
 * alone. So it starts empty, and f estimates as `selection` does until doubtful
 * keys move again. */
static void spectral_settle(bly_filter *f)
{
    const spectral_parts p = spectral_parts_of(f);
    if (p.marker)
        memset(p.secondary, 0,
               (size_t)(f->shape.nbytes - bly_cells_nbytes(p.m.n, p.width)));
    f->state[SPECTRAL_STUCK] = spectral_tally(f).stuck;
}

/* Sums of counters are never below the sum of the truths. */
static bly_status spectral_merge_part(bly_filter *dst, const bly_part *p)
{
    const spectral_parts s = spectral_parts_of(dst);
    bly_cells_add(dst->data + p->at, p->bytes,
                  bly_probe_cells_in(p, s.m.n, s.width), s.width);
    if (p->last) {
        spectral_settle(dst);
        bly_filter_added(dst, p->src->nadded);
    }
    return BLY_OK;
}

/* The lesser of two counters is never below the lesser of a key's two counts,
 * nor below the sum of these over all keys that share it. */
static bly_status spectral_intersect_part(bly_filter *dst, const bly_part *p)
{
    const spectral_parts s = spectral_parts_of(dst);
    bly_cells_least(dst->data + p->at, p->bytes,
                    bly_probe_cells_in(p, s.m.n, s.width), s.width);
    if (p->last) {
        spectral_settle(dst);
        bly_filter_at_most(dst, p->src->nadded);
    }
    return BLY_OK;
}

static bly_status spectral_compare(const bly_filter *a, const bly_filter *b,
                                   bly_likeness *out)
{
    bly_probe_compare(a, b, a->shape.p[SPECTRAL_COUNTERS],
                      a->shape.p[SPECTRAL_K],
                      (unsigned)a->shape.p[SPECTRAL_WIDTH], out);
    return BLY_OK;
}

/* With `increase`, which never removes, the greater of two counters is at least
 * the count of every key that uses either. Where removals subtract from
 * counters, these must be sums, and so must be the folded ones. */
static bly_status spectral_fold(const bly_filter *f, bly_filter **out)
{
    const uint64_t *const p = f->shape.p;
    const uint64_t m = p[SPECTRAL_COUNTERS];
    const unsigned width = (unsigned)p[SPECTRAL_WIDTH];
    const bly_shape half =
        spectral_shape(m / 2, p[SPECTRAL_K], p[SPECTRAL_UPDATE], width);
    const bly_status st = bly_fold_begin(f, m, "counters", &half, out);
    if (st)
        return st;
    (p[SPECTRAL_UPDATE] == SPECTRAL_INCREASE
         ? bly_cells_fold_most
         : bly_cells_fold_sum)((*out)->data, f->data, m / 2, width);
    spectral_settle(*out);
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
    .summary = "wide counters that estimate how often each key was added",
    .params = spectral_params,
    .nparams = sizeof spectral_params / sizeof spectral_params[0],
    .plan = spectral_plan,
    .sane = spectral_sane,
    .rate = spectral_rate,
    .bits = spectral_bits,
    .describe = spectral_describe,
    .sound = spectral_sound,
    .check = spectral_check,
    .stat = spectral_stat,
    .add = spectral_add,
    .has = spectral_has,
    .remove = spectral_remove,
    .increase = spectral_increase,
    .count = spectral_count,
    .merge = bly_merge_as_part,
    .merge_part = spectral_merge_part,
    .intersect = bly_intersect_as_part,
    .intersect_part = spectral_intersect_part,
    .compare = spectral_compare,
    .fold = spectral_fold,
    .convert = spectral_convert,
};
