/*
 * elastic.c - a filter that grows, and never takes much more memory than it
 * needs
 *
 * A scalable filter makes its next layer for keys that may come, and pays for
 * those that never do. Here memory follows the keys. They are kept as
 * fingerprints in tables like those of quotient.c, and a table is rewritten, a
 * twentieth larger, whenever it is full (elastic_grow.c). That takes no keys,
 * since a fingerprint of m bits does not change with the number of slots,
 *
 *     F = the first m bits of the hash
 *     F scaled to slots * 2^r  ->  a home slot, and r bits that are stored
 *     r = the least with slots * 2^r >= 2^m, so that no two F become one
 *
 * and the table of any number of slots is the sorted list of the same F.
 *
 * The rate of a table with n keys is n / 2^m. So it may take no more than 0.95
 * * 2^(m-r) keys, where r is fixed for it from the start. Then it is left as it
 * is, and a new table with longer fingerprints begins, small again:
 *
 *     table    0          1               2                     i
 *     slots    S          g S             g^2 S         up to   g^i S
 *     m        s + r      s + r + log g   s + r + 2 log g       (S = 2^s)
 *     rate     q          q               q             up to   q = 0.95 / 2^r
 *
 * The first `level` tables have this r, and each later table has one bit more
 * than the one before, so that rates never add up to more than (level + 1) q.
 * With 1 %, r = 10 and level = 9: a filter that began with a hundred keys and
 * has grown to a million has five tables, and has taken on the way
 *
 *     (r + 2.125) / 0.95 = 12.8  bits per key where the newest table is full,
 *                          14.8  at most, from 100,000 keys on
 *
 * A filter that does not know how many keys will come needs at least
 * log2(1/p) + log2(log2 n) bits per key [1], here 11. Most keys are in the
 * newest table, which is queried first; a key that is not there has to be
 * looked up in all.
 *
 * A key that is known already is not added again. So a fingerprint may stand
 * for several keys, and nothing can be removed. With removal = yes, every
 * addition adds a fingerprint to the newest table, or raises its count if it is
 * there already. If a key matches in one table only, all its additions are
 * there, and one of them can be removed without harm to others. If it matches
 * in several tables, some of the matches may belong to other keys only, and the
 * removal is refused. That happens about as often as false positives, and to
 * keys that were added several times, far apart.
 *
 * If two filters have one table each and one table can hold the keys of both,
 * their union is one table. Otherwise the other filter's tables become layers:
 * keys can be found there and removed, but new keys go to this filter's own
 * tables. Rates add up, so both together may have at most `level` tables, for
 * which the bound has room.
 *
 * data: the tables, each from a multiple of 64 bytes on. The shape gives their
 * number and the size of the newest; growing changes it. state: [0..2] the sums
 * of the newest table, which are all equal if nothing is in it twice; [3] the
 * number of fingerprints in all tables before it.
 *
 * [1] Pagh, Segev and Wieder, How to Approximate a Set Without Knowing Its Size
 *     in Advance, 2013
 * [2] Pandey, Bender, Johnson and Patro, A General-Purpose Counting Filter:
 *     Making Every Bit Count, 2017
 */
#include <math.h>
#include <string.h>

#include "core/status.h"
#include "kinds/elastic.h"

#define ELASTIC_MAX_PRINT 62 /* slots * 2^r is below twice that: one word */
#define ELASTIC_MAX_GROWTH 256
#define ELASTIC_LOAD 0.95 /* bly_quotient_most() has it in whole numbers */

/* Slots of the first table, if a rate is asked for. Starting smaller, a filter
 * would have many tables before its size matters to anyone. */
#define ELASTIC_MIN_FIRST 4096

static const bly_param elastic_params[] = {
    [ELASTIC_FIRST] =
        BLY_PARAM("first_slots", BLY_UINT, .min = BLY_RUNS_BLOCK,
                  .max = (double)ELASTIC_MAX_SLOTS,
                  .help = "home slots that the first table may reach"),
    [ELASTIC_PRINT] =
        BLY_PARAM("fingerprint", BLY_UINT, .min = 7, .max = ELASTIC_MAX_PRINT,
                  .help = "bits of a fingerprint in the first table"),
    [ELASTIC_LEVEL] =
        BLY_PARAM("level", BLY_UINT, .settable = true, .automatic = true,
                  .min = 1, .max = ELASTIC_MAX_TABLES,
                  .help = "tables of equal rate, before rates fall; chosen, 7 "
                          "or more, if not given"),
    [ELASTIC_GROWTH] = BLY_PARAM(
        "growth", BLY_UINT, .settable = true, .def = 4, .min = 2,
        .max = ELASTIC_MAX_GROWTH,
        .help =
            "slots of a table over those of the one before, a power of two"),
    [ELASTIC_TABLES] =
        BLY_PARAM("tables", BLY_UINT, .min = 1, .max = ELASTIC_MAX_TABLES,
                  .help = "tables there are"),
    [ELASTIC_SLOTS] = BLY_PARAM("slots", BLY_UINT, .min = BLY_RUNS_BLOCK,
                                .max = (double)ELASTIC_MAX_SLOTS,
                                .help = "home slots of the newest table"),
    [ELASTIC_REMOVAL] =
        BLY_PARAM("removal", BLY_CHOICE, .settable = true, .max = 1,
                  .choices = BLY_WORDS("no", "yes"),
                  .help = "whether keys can be removed; then each addition "
                          "takes room, that of a known key too"),
    [ELASTIC_JOINED] =
        BLY_PARAM("joined", BLY_UINT, .max = ELASTIC_MAX_TABLES,
                  .help = "tables that came from other filters, as layers"),
};

/* ------------------------------------------------------------------ tables */

static unsigned elastic_log2(uint64_t x)
{
    return 63 - (unsigned)__builtin_clzll(x);
}

bool bly_elastic_sized(const bly_shape *s, uint64_t i, uint64_t slots,
                       elastic_size *out)
{
    const uint64_t first = s->p[ELASTIC_FIRST], level = s->p[ELASTIC_LEVEL];
    const uint64_t up = i * elastic_log2(s->p[ELASTIC_GROWTH]);
    /* m rises with the slots that a table may reach, which keeps its rate at q,
     * and from `level` on by one bit more per table, which halves it. */
    const uint64_t all =
        i + s->p[ELASTIC_JOINED]; /* before it, of others too */
    const uint64_t print =
        s->p[ELASTIC_PRINT] + up + (all < level ? 0 : all - level + 1);
    /* Compared this way round, no bits are shifted out: the shape may come from
     * a file. */
    if (up > 40 || first > ELASTIC_MAX_SLOTS >> up || print > ELASTIC_MAX_PRINT)
        return false;
    *out = (elastic_size){ .most = first << up, .print = (unsigned)print };
    out->slots = slots ? slots : out->most;
    const unsigned q = elastic_log2(out->slots);
    if (out->slots > out->most || out->slots % BLY_RUNS_BLOCK || print <= q ||
        print - q > BLY_RUNS_MAX_R)
        return false;
    out->r = out->print - q;
    const uint64_t nblocks = bly_quotient_nblocks(out->slots);
    out->nbytes = (bly_runs_nbytes(nblocks, out->r) + 63) / 64 * 64;
    return true;
}

uint64_t bly_elastic_nbytes(const bly_shape *s)
{
    const uint64_t last = s->p[ELASTIC_TABLES] - 1;
    elastic_size size;
    uint64_t sum = 0;
    for (uint64_t i = 0; i <= last; i++) {
        if (!bly_elastic_sized(s, i, i < last ? 0 : s->p[ELASTIC_SLOTS], &size))
            return 0;
        sum += size.nbytes;
    }
    return sum;
}

bool bly_elastic_next(elastic_walk *w)
{
    /* Only the newest table may still have fewer slots than it can reach.
     * Tables lie one behind the other, so walking back from the end needs sizes
     * only, no directory. */
    const bool newest = w->i == w->f->shape.p[ELASTIC_TABLES];
    if (w->i == 0 ||
        !bly_elastic_sized(&w->f->shape, w->i - 1,
                           newest ? w->f->shape.p[ELASTIC_SLOTS] : 0, &w->size))
        return false;
    w->i--;
    w->at -= w->size.nbytes;
    w->t = bly_quotient_table_of(w->f->data + w->at, w->size.slots, w->size.r);
    return true;
}

/* The part of a hash that a table sees. */
static uint64_t elastic_cut(const elastic_size *size, uint64_t h)
{
    return h & UINT64_MAX << (64 - size->print);
}

/* ------------------------------------------------------------------ shapes */

static bool elastic_sane(const bly_shape *s)
{
    const uint64_t first = s->p[ELASTIC_FIRST], growth = s->p[ELASTIC_GROWTH];
    const uint64_t slots = s->p[ELASTIC_SLOTS];
    return first >= BLY_RUNS_BLOCK && first <= ELASTIC_MAX_SLOTS &&
           (first & (first - 1)) == 0 && growth >= 2 &&
           growth <= ELASTIC_MAX_GROWTH && (growth & (growth - 1)) == 0 &&
           s->p[ELASTIC_PRINT] <= ELASTIC_MAX_PRINT &&
           s->p[ELASTIC_PRINT] > elastic_log2(first) &&
           s->p[ELASTIC_LEVEL] >= 1 &&
           s->p[ELASTIC_LEVEL] <= ELASTIC_MAX_TABLES &&
           s->p[ELASTIC_TABLES] >= 1 &&
           s->p[ELASTIC_TABLES] <= ELASTIC_MAX_TABLES &&
           slots >= BLY_RUNS_BLOCK && slots <= ELASTIC_MAX_SLOTS &&
           s->p[ELASTIC_REMOVAL] <= 1 &&
           s->p[ELASTIC_JOINED] <= ELASTIC_MAX_TABLES && s->nbytes != 0 &&
           s->nbytes == bly_elastic_nbytes(s);
}

/* The least power of two that is not below x. */
static uint64_t elastic_power(uint64_t x)
{
    return x < 2 ? 1 : UINT64_C(1) << (elastic_log2(x - 1) + 1);
}

/* r of the first tables, so that the rates of all stay below this. */
static double elastic_remainder(double fpr, double level)
{
    return fmax(1, ceil(log2(ELASTIC_LOAD * (level + 1) / fpr)));
}

/* The bound on the sum of all rates. */
static double elastic_bound(const bly_shape *s)
{
    const int r =
        (int)s->p[ELASTIC_PRINT] - (int)elastic_log2(s->p[ELASTIC_FIRST]);
    return fmin(1, ldexp(ELASTIC_LOAD * ((double)s->p[ELASTIC_LEVEL] + 1), -r));
}

/* For a rate: the level is as high as r, a whole number, allows. */
static bly_status elastic_for_rate(const bly_want *w, bly_shape *s)
{
    const double least =
        w->given[ELASTIC_LEVEL] ? (double)w->opt[ELASTIC_LEVEL] : 7;
    const double r = elastic_remainder(w->fpr, least);
    /* Rounding r up leaves some of the rate unused: more tables of equal rate
     * spend it, as long as (level + 1) 0.95 / 2^r stays below it. 100 keeps
     * ldexp finite; so large an r is refused below. */
    const double level = floor(ldexp(w->fpr, (int)fmin(r, 100)) / ELASTIC_LOAD);
    if (s->p[ELASTIC_FIRST] < ELASTIC_MIN_FIRST)
        s->p[ELASTIC_FIRST] = ELASTIC_MIN_FIRST;
    const double print = elastic_log2(s->p[ELASTIC_FIRST]) + r;
    if (print > ELASTIC_MAX_PRINT)
        return bly_fail(BLY_ERANGE,
                        "fingerprints would have %.0f bits, and there are "
                        "%d: ask for fewer items or a higher rate",
                        print, ELASTIC_MAX_PRINT);
    s->p[ELASTIC_PRINT] = (uint64_t)print;
    s->p[ELASTIC_LEVEL] =
        (uint64_t)(w->given[ELASTIC_LEVEL]
                       ? least
                       : fmax(least, fmin(level - 1, ELASTIC_MAX_TABLES)));
    s->nbytes = bly_elastic_nbytes(s);
    if (!s->nbytes)
        return bly_fail(BLY_ERANGE,
                        "fingerprints would be too long for so few slots: ask "
                        "for more items or a higher rate");
    return BLY_OK;
}

/* For memory: the longest fingerprints that fit. */
static bly_status elastic_for_bits(const bly_want *w, bly_shape *s)
{
    s->p[ELASTIC_LEVEL] = w->given[ELASTIC_LEVEL] ? w->opt[ELASTIC_LEVEL] : 7;
    for (uint64_t m = ELASTIC_MAX_PRINT; m > elastic_log2(s->p[ELASTIC_FIRST]);
         m--) {
        s->p[ELASTIC_PRINT] = m;
        s->nbytes = bly_elastic_nbytes(s);
        if (s->nbytes && s->nbytes <= w->bits / 8)
            return BLY_OK;
    }
    return bly_fail(BLY_EINVAL,
                    "%llu bits do not do for %llu items of at least one bit "
                    "and 2.125 more",
                    (unsigned long long)w->bits, (unsigned long long)w->items);
}

static bly_status elastic_plan(const bly_want *w, bly_shape *out)
{
    const uint64_t growth = w->opt[ELASTIC_GROWTH];
    if (growth & (growth - 1))
        return bly_fail(BLY_EINVAL,
                        "growth is a power of two from 2 to %d, not %llu",
                        ELASTIC_MAX_GROWTH, (unsigned long long)growth);
    /* items / 0.95, which is items + items / 19, in whole blocks; rounding may
     * call for another one. */
    uint64_t slots = (w->items + w->items / 19 + BLY_RUNS_BLOCK) /
                     BLY_RUNS_BLOCK * BLY_RUNS_BLOCK;
    while (bly_quotient_most(slots) < w->items)
        slots += BLY_RUNS_BLOCK;
    if (slots > ELASTIC_MAX_SLOTS)
        return bly_fail(BLY_ERANGE,
                        "an elastic filter begins with at most %.3g "
                        "items",
                        ELASTIC_LOAD * (double)ELASTIC_MAX_SLOTS);
    *out = (bly_shape){ .p = { [ELASTIC_FIRST] = elastic_power(slots),
                               [ELASTIC_GROWTH] = growth,
                               [ELASTIC_TABLES] = 1,
                               [ELASTIC_SLOTS] = slots,
                               [ELASTIC_REMOVAL] = w->opt[ELASTIC_REMOVAL] } };
    return w->bits ? elastic_for_bits(w, out) : elastic_for_rate(w, out);
}

/* Tables fill up one after another. */
static double elastic_rate(const bly_shape *s, double n)
{
    elastic_size size;
    double pass = 0;
    for (uint64_t i = 0; n > 0 && bly_elastic_sized(s, i, 0, &size); i++) {
        const double most = (double)bly_quotient_most(size.most);
        pass += fmin(n, most) * log1p(-ldexp(1, -(int)size.print));
        n -= most;
    }
    return -expm1(pass);
}

static void elastic_describe(const bly_shape *s, const bly_want *w,
                             const bly_filter *f, bly_facts *out)
{
    (void)w;
    elastic_size size;
    double room = 0;
    bly_fact_real(out, "fpr_bound", elastic_bound(s));
    for (uint64_t i = 0; i < s->p[ELASTIC_LEVEL]; i++)
        if (bly_elastic_sized(s, i, 0, &size))
            room += (double)bly_quotient_most(size.most);
    bly_fact_real(out, "items_of_level", room);
    if (f)
        bly_fact_uint(out, "fingerprints",
                      f->state[ELASTIC_BEFORE] +
                          f->state[BLY_QUOTIENT_DISTINCT]);
}

/* -------------------------------------------------------- asking and adding */

/* Keys that go through the tables together: their hashes stay in L1. */
#define ELASTIC_GROUP 512

/* Find which of n <= ELASTIC_GROUP keys are known to some table of f itself,
 * without its layers. */
static void elastic_ask_own(const bly_filter *f, const uint64_t *h, size_t n,
                            uint64_t *maybe)
{
    uint64_t left[ELASTIC_GROUP], cut[ELASTIC_GROUP];
    uint64_t hit[BLY_BITMAP_WORDS(ELASTIC_GROUP)];
    uint16_t at[ELASTIC_GROUP];
    for (size_t i = 0; i < n; i++) {
        left[i] = h[i];
        at[i] = (uint16_t)i;
    }
    /* The newest table comes first, since it has most keys. Keys that it does
     * not have move up in left[], without a branch, and go on to older
     * tables. */
    for (elastic_walk w = elastic_walk_of(f); n > 0 && bly_elastic_next(&w);) {
        size_t kept = 0;
        for (size_t i = 0; i < n; i++)
            cut[i] = elastic_cut(&w.size, left[i]);
        bly_quotient_best()->has(&w.t, cut, n, hit);
        for (size_t i = 0; i < n; i++) {
            const uint64_t is = hit[i / 64] >> (i % 64) & 1;
            maybe[at[i] / 64] |= is << (at[i] % 64);
            left[kept] = left[i];
            at[kept] = at[i];
            kept += !is;
        }
        n = kept;
    }
}

static void elastic_ask(const bly_filter *f, const uint64_t *h, size_t n,
                        uint64_t *maybe)
{
    elastic_ask_own(f, h, n, maybe);
    for (uint32_t i = 0; i < f->nlayers; i++)
        elastic_ask_own(f->layer[i], h, n, maybe);
}

static void elastic_has(const bly_filter *f, const uint64_t *h, size_t n,
                        uint64_t *maybe)
{
    for (size_t from = 0; from < n; from += ELASTIC_GROUP)
        elastic_ask(f, h + from,
                    n - from < ELASTIC_GROUP ? n - from : ELASTIC_GROUP,
                    maybe + from / 64);
}

/* Add at most ELASTIC_GROUP keys, as far as the newest table has room for those
 * that no table knows. Returns how many keys are done. */
static size_t elastic_add_group(bly_filter *f, const uint64_t *h, size_t n,
                                uint64_t *fresh, size_t first)
{
    uint64_t known[BLY_BITMAP_WORDS(ELASTIC_GROUP)] = { 0 };
    elastic_walk w = elastic_walk_of(f);
    uint64_t nfresh = 0;
    size_t i = 0, one;
    elastic_ask(f, h, n, known);
    if (!bly_elastic_next(&w))
        return 0;
    for (; i < n; i++) {
        const uint64_t cut = elastic_cut(&w.size, h[i]);
        uint64_t there = known[i / 64] >> (i % 64) & 1;
        if (!there) /* an earlier key of this group may be the same */
            bly_quotient_best()->has(&w.t, &cut, 1, &there);
        if (there)
            continue;
        if (bly_quotient_best()->add(&w.t, f->state, &cut, NULL, 1, NULL, &one))
            break;
        nfresh++;
        if (fresh)
            fresh[(first + i) / 64] |= UINT64_C(1) << ((first + i) % 64);
    }
    bly_filter_added(f, nfresh);
    return i;
}

/* The same with removal = yes: all keys are added, known or not. */
static size_t elastic_count_group(bly_filter *f, const uint64_t *h, size_t n,
                                  uint64_t *fresh, size_t first)
{
    uint64_t known[BLY_BITMAP_WORDS(ELASTIC_GROUP)] = { 0 };
    uint64_t added[BLY_BITMAP_WORDS(ELASTIC_GROUP)] = { 0 };
    uint64_t cut[ELASTIC_GROUP];
    elastic_walk w = elastic_walk_of(f);
    size_t done = 0;
    if (fresh)
        elastic_ask(f, h, n, known);
    if (!bly_elastic_next(&w))
        return 0;
    for (size_t i = 0; i < n; i++)
        cut[i] = elastic_cut(&w.size, h[i]);
    (void)bly_quotient_best()->add(&w.t, f->state, cut, NULL, n,
                                   fresh ? added : NULL, &done);
    for (size_t i = 0; fresh && i < done; i++)
        fresh[(first + i) / 64] |=
            (added[i / 64] & ~known[i / 64]) >> i % 64 & 1
                ? UINT64_C(1) << (first + i) % 64
                : 0;
    bly_filter_added(f, done);
    return done;
}

static bly_status elastic_add(bly_filter *f, const uint64_t *h, size_t n,
                              uint64_t *fresh, size_t *ndone)
{
    size_t from = 0;
    bly_status st = BLY_OK;
    while (from < n && !st) {
        const size_t ng = n - from < ELASTIC_GROUP ? n - from : ELASTIC_GROUP;
        const size_t done = (f->shape.p[ELASTIC_REMOVAL] ? elastic_count_group
                                                         : elastic_add_group)(
            f, h + from, ng, fresh, from);
        from += done;
        /* The key that found no room is tried again in the larger table. */
        if (done < ng)
            st = bly_elastic_grow(f);
    }
    *ndone = from;
    return st;
}

/* ---------------------------------------------------------------- removing */

static const char *elastic_keeps(const bly_shape *s)
{
    return s->p[ELASTIC_REMOVAL]
               ? NULL
               : "the filter does not know how many keys share a fingerprint, "
                 "so nothing can be removed (build it with removal = yes)";
}

/* Count the tables of a part, f or a layer of it, that know h; `only` becomes
 * the last of them. */
static unsigned elastic_matches(bly_filter *part, uint64_t h,
                                elastic_walk *only)
{
    unsigned n = 0;
    for (elastic_walk w = elastic_walk_of(part); bly_elastic_next(&w);) {
        const uint64_t cut = elastic_cut(&w.size, h);
        uint64_t hit = 0;
        bly_quotient_best()->has(&w.t, &cut, 1, &hit);
        n += hit & 1;
        if (hit & 1)
            *only = w;
    }
    return n;
}

/* Take one addition of a fingerprint out of this table of a part. */
static bly_status elastic_take(bly_filter *part, const elastic_walk *w,
                               uint64_t h)
{
    const uint64_t cut = elastic_cut(&w->size, h), many = UINT64_C(1) << 62;
    /* For tables before the newest no sums are kept, only the number of their
     * fingerprints. So the change is measured from arbitrary sums. */
    uint64_t other[BLY_QUOTIENT_SUMS] = { many, many, many };
    const bool newest = w->i + 1 == part->shape.p[ELASTIC_TABLES];
    bly_status st;
    bly_quotient_best()->remove(&w->t, newest ? part->state : other, &cut, 1,
                                &st);
    if (!newest)
        part->state[ELASTIC_BEFORE] -= many - other[BLY_QUOTIENT_DISTINCT];
    return st;
}

static void elastic_remove(bly_filter *f, const uint64_t *h, size_t n,
                           bly_status *each)
{
    uint64_t removed = 0;
    for (size_t i = 0; i < n; i++) {
        elastic_walk w;
        bly_filter *holder = f;
        unsigned matches = elastic_matches(f, h[i], &w);
        for (uint32_t j = 0; j < f->nlayers; j++) {
            const unsigned more = elastic_matches(f->layer[j], h[i], &w);
            holder = more ? f->layer[j] : holder;
            matches += more;
        }
        if (!matches)
            each[i] = BLY_EABSENT;
        else if (matches > 1 || !f->shape.p[ELASTIC_REMOVAL])
            each[i] = BLY_EREFUSED;
        else
            each[i] = elastic_take(holder, &w, h[i]);
        removed += !each[i];
    }
    bly_filter_removed(f, removed);
}

/* ----------------------------------------------------------------- knowing */

/* The number of fingerprints for which the tables before the newest have room.
 * A table is finished once it has all the slots that it may reach. It holds as
 * many fingerprints as fit or, where keys are crowded, fewer. */
static uint64_t elastic_room_before(const bly_shape *s)
{
    elastic_size size;
    uint64_t room = 0;
    for (uint64_t i = 0; i + 1 < s->p[ELASTIC_TABLES]; i++)
        if (bly_elastic_sized(s, i, 0, &size))
            room += bly_quotient_most(size.most);
    return room;
}

/* Could these be the sums of a table? If known keys are not added again, all
 * are equal. */
static bool elastic_sums_good(const bly_shape *s, const uint64_t *sums)
{
    const uint64_t used = sums[BLY_QUOTIENT_USED];
    const uint64_t distinct = sums[BLY_QUOTIENT_DISTINCT];
    const uint64_t total = sums[BLY_QUOTIENT_TOTAL];
    return s->p[ELASTIC_REMOVAL] ? distinct <= used && distinct <= total
                                 : distinct == used && total == used;
}

/* Are the shapes the same, apart from how far each filter has grown? */
static bool elastic_akin(const bly_shape *a, const bly_shape *b)
{
    return a->p[ELASTIC_FIRST] == b->p[ELASTIC_FIRST] &&
           a->p[ELASTIC_PRINT] == b->p[ELASTIC_PRINT] &&
           a->p[ELASTIC_LEVEL] == b->p[ELASTIC_LEVEL] &&
           a->p[ELASTIC_GROWTH] == b->p[ELASTIC_GROWTH] &&
           a->p[ELASTIC_REMOVAL] == b->p[ELASTIC_REMOVAL];
}

static bool elastic_layers_sound(const bly_filter *f)
{
    uint64_t joined = 0;
    for (uint32_t i = 0; i < f->nlayers; i++) {
        const bly_filter *const part = f->layer[i];
        /* Their own state was found sound when they were loaded. */
        if (part->kind != f->kind || part->nlayers || !bly_same_hash(part, f) ||
            part->shape.p[ELASTIC_JOINED] ||
            !elastic_akin(&part->shape, &f->shape))
            return false;
        joined += part->shape.p[ELASTIC_TABLES];
    }
    return joined == f->shape.p[ELASTIC_JOINED];
}

static bool elastic_sound(const bly_filter *f)
{
    const uint64_t *state = f->state;
    const uint64_t most = bly_quotient_most(f->shape.p[ELASTIC_SLOTS]);
    return elastic_layers_sound(f) && state[BLY_QUOTIENT_USED] <= most &&
           elastic_sums_good(&f->shape, state) &&
           state[ELASTIC_BEFORE] <= elastic_room_before(&f->shape);
}

/* Is the table in order, and is every entry a possible fingerprint and there
 * only once? */
static bool elastic_table_good(const elastic_walk *w, uint64_t *sums)
{
    bly_quotient_walk entries = bly_quotient_walk_of(&w->t);
    const uint64_t used =
        bly_runs_nbytes(bly_quotient_nblocks(w->size.slots), w->size.r);
    uint64_t h;
    if (!bly_quotient_check(&w->t, sums) ||
        !elastic_sums_good(&w->f->shape, sums))
        return false;
    /* What fills a table up to a multiple of 64 bytes is zero. */
    for (uint64_t i = w->at + used; i < w->at + w->size.nbytes; i++)
        if (w->f->data[i])
            return false;
    while (bly_quotient_walk_next(&entries))
        if (!bly_elastic_uncut(&w->size, &w->t, entries.F, &h))
            return false;
    return true;
}

static bool elastic_check(const bly_filter *f)
{
    uint64_t before = 0;
    for (elastic_walk w = elastic_walk_of(f); bly_elastic_next(&w);) {
        uint64_t sums[BLY_QUOTIENT_SUMS] = { 0 };
        if (!elastic_table_good(&w, sums))
            return false;
        if (w.i + 1 < f->shape.p[ELASTIC_TABLES])
            before += sums[BLY_QUOTIENT_DISTINCT];
        else if (memcmp(sums, f->state, sizeof sums) != 0)
            return false;
    }
    return before == f->state[ELASTIC_BEFORE];
}

/*
 * Estimate the keys from the fingerprints. All fingerprints are prefixes of one
 * hash, and none is added if an earlier table has a prefix of the same hash. So
 * each covers a part of all hashes, 1/M in a table of range M, and no two cover
 * the same part. When a share C is covered, a key is new with probability 1 -
 * C, so the next new key is the 1 / (1 - C)-th on average, with variance C / (1
 * - C)^2. Summed while a table's fingerprints bring C from a to b, this gives
 *
 *     keys      M ln((1 - a) / (1 - b))
 *     variance  M (1/(1 - b) - 1/(1 - a) - ln((1 - a) / (1 - b)))
 *
 * and C is the rate. All tables but the newest are full. With removal every key
 * is added, so a is 0 for each table, and the fingerprints left in it are
 * counted. A key that is in several parts, or with removal in several tables,
 * counts once for each.
 */
typedef struct elastic_sum {
    double slots, held, items, variance, covered;
} elastic_sum;

/* Fingerprints in a table. */
static double elastic_prints(const elastic_walk *w)
{
    const bly_filter *const f = w->f;
    uint64_t n = 0;
    if (w->i + 1 == f->shape.p[ELASTIC_TABLES])
        return (double)f->state[BLY_QUOTIENT_DISTINCT];
    if (!f->shape.p[ELASTIC_REMOVAL])
        return (double)bly_quotient_most(w->size.slots);
    for (bly_quotient_walk e = bly_quotient_walk_of(&w->t);
         bly_quotient_walk_next(&e);)
        n++;
    return (double)n;
}

static void elastic_sum_up(const bly_filter *f, elastic_sum *sum)
{
    elastic_walk table[ELASTIC_MAX_TABLES], w = elastic_walk_of(f);
    size_t n = 0;
    double covered = 0;
    while (n < ELASTIC_MAX_TABLES && bly_elastic_next(&w))
        table[n++] = w;
    while (n--) { /* from the oldest on */
        const double prints = elastic_prints(&table[n]);
        const double range = ldexp(1, (int)table[n].size.print);
        /* A share of what is left; a damaged file may have more than all. */
        const double pass =
            f->shape.p[ELASTIC_REMOVAL] ? 1 : fmax(1 - covered, 1e-9);
        const double share = fmin(prints / range / pass, 1 - 1e-9);
        sum->slots += (double)table[n].size.slots;
        sum->items -= range * log1p(-share);
        sum->variance += range * (share / (1 - share) / pass + log1p(-share));
        covered += prints / range;
    }
    sum->covered += covered;
    sum->held +=
        (double)f->state[ELASTIC_BEFORE] + (double)f->state[BLY_QUOTIENT_USED];
}

static void elastic_stat(const bly_filter *f, bly_stats *out)
{
    elastic_sum sum = { 0 };
    elastic_sum_up(f, &sum);
    for (uint32_t i = 0; i < f->nlayers; i++)
        elastic_sum_up(f->layer[i], &sum);
    out->fill = sum.held / sum.slots;
    out->items_estimate = sum.items;
    out->items_sd = sqrt(fmax(0, sum.variance));
    out->fpr_now = fmin(sum.covered, 1);
}

const bly_kind bly_kind_elastic = {
    .id = 30, /* on disk: never changed, never reused */
    .name = "elastic",
    .summary =
        "grows with its keys, and holds little more memory than they need",
    .params = elastic_params,
    .nparams = sizeof elastic_params / sizeof elastic_params[0],
    .nstate = ELASTIC_BEFORE + 1,
    .traits = BLY_ORDERED,
    .plan = elastic_plan,
    .sane = elastic_sane,
    .rate = elastic_rate,
    .describe = elastic_describe,
    .sound = elastic_sound,
    .check = elastic_check,
    .stat = elastic_stat,
    .keeps = elastic_keeps,
    .add = elastic_add,
    .has = elastic_has,
    .remove = elastic_remove,
    .akin = elastic_akin,
    .merge = bly_elastic_merge,
};
