/*
 * exact.c - no wrong answer for any key of a known universe
 *
 * If all keys that will ever be queried are known, a filter need not guess.
 * Examples are the serial numbers of all certificates, some of which are
 * revoked, or all customers, some of whom are blocked. The filter has two
 * ribbons (kinds/ribbon.h):
 *
 *     first    the r members, at a rate q
 *     second   a bit for each member, and for each of those others that the
 *              first lets through, about q s of s: is it a member?
 *
 *     key -> first: no  -> no
 *            first: maybe -> second: yes or no, for all of the universe
 *
 * With f bits for each member in the first ribbon, q = 2^-f, this takes
 *
 *     r f + r + s 2^-f bits
 *
 * and planning takes the f that minimises this. Rates between 2^-f and 2^-(f+1)
 * mix both widths, so their cost lies on the line between the two, and the
 * minimum is always at an end. For eight million members among 900 million
 * keys, f = 6, and the filter takes 8.76 bits per member; no code for such a
 * choice takes less than 8.26. If there are fewer than twice as many others as
 * members, f is 0: there is no first ribbon, and the second has a bit for every
 * key of the universe.
 *
 * A key outside the universe passes the first ribbon at the rate q and gets a
 * random bit from the second, so its rate is q / 2. A caller who wants a lower
 * rate for such keys can ask for it, and the first ribbon is made for twice
 * that rate. The same works if the others are not all remaining keys, but some
 * that are queried often.
 *
 * Members have to be known first (build()), then the others (deny()), which are
 * tested and not kept. Without others this is a plain ribbon.
 *
 * If the share of members differs between groups of keys, each group has a
 * first ribbon of its own, or shares one with similar groups: exact_groups.c.
 *
 * Nothing can be added, removed or merged.
 *
 * [1] Larisch et al., CRLite, 2017: the problem, and a cascade of filters
 * [2] Schanck, Clubcards for the WebPKI, 2025: two ribbons instead
 */
#include <math.h>
#include <string.h>

#include "core/sort.h"
#include "core/status.h"
#include "kinds/exact.h"

static const bly_param exact_params[] = {
    [BLY_EXACT_OTHERS] = BLY_PARAM(
        "others", BLY_UINT, .settable = true, .max = BLY_EXACT_MAX_OTHERS,
        .help = "keys that are known not to be in it"),
    [BLY_EXACT_PASS] = BLY_PARAM("pass", BLY_REAL, .max = 1,
                                 .help = "share of the others that need a bit"),
    [BLY_EXACT_BITS] =
        BLY_PARAM("planned_bits", BLY_UINT, .max = BLY_EXACT_MAX_BITS,
                  .help = "of both ribbons, as planned"),
};

/* What the builder needs besides the filter until it is finished. */
typedef struct exact_making {
    bly_block members; /* their hashes, sorted */
    size_t n;
} exact_making;

/* ----------------------------------------------------------------- shapes */

/* The first ribbon, for r members at the rate q. */
static bly_status exact_first(uint64_t r, double q, bly_shape *out)
{
    bly_want w = { .items = r, .fpr = q };
    w.opt[BLY_RIBBON_TIGHT] = 1;
    return bly_kind_ribbon.plan(&w, out);
}

/* The bits of both ribbons, for s others. */
double bly_exact_cost(uint64_t r, double s, double q)
{
    bly_shape first = { .nbytes = 0 }, second = { .nbytes = 0 };
    if (q < 1 && exact_first(r, q, &first))
        return INFINITY;
    const double bits = (double)r + ceil(q * s);
    if (s > 0 && bits > BLY_EXACT_MAX_OTHERS)
        return INFINITY;
    if (s > 0)
        bly_ribbon_shape_valued((uint64_t)bits, &second);
    return 8 * ((double)first.nbytes + (double)second.nbytes);
}

/* The rate of the first ribbon at which both together take the fewest bits. */
static double exact_best(uint64_t r, double s)
{
    double best = 1;
    for (int f = 1; f <= (int)BLY_RIBBON_MAX_WIDTH; f++) {
        if (bly_exact_cost(r, s, ldexp(1, -f)) >= bly_exact_cost(r, s, best))
            break;
        best = ldexp(1, -f);
    }
    return best;
}

/* The lowest rate, not above `most`, for which the memory is enough. */
static bly_status exact_within(uint64_t r, double s, double most, uint64_t bits,
                               double *out)
{
    double low = -(double)BLY_RIBBON_MAX_WIDTH, high = log2(most);
    if (bly_exact_cost(r, s, most) > (double)bits)
        return bly_fail(BLY_EINVAL,
                        "%llu bits are too few for an exact filter of %llu "
                        "items and %.0f others, which begins at %.0f",
                        (unsigned long long)bits, (unsigned long long)r, s,
                        bly_exact_cost(r, s, most));
    while (high - low > 1e-9) {
        const double mid = (low + high) / 2;
        if (bly_exact_cost(r, s, exp2(mid)) <= (double)bits)
            high = mid;
        else
            low = mid;
    }
    *out = exp2(high);
    return BLY_OK;
}

/* Put the results into a shape. */
static bly_status exact_shape(const bly_want *w, uint64_t others, double q,
                              double bits, bly_shape *out)
{
    if (bits > BLY_EXACT_MAX_BITS)
        return bly_fail(BLY_ERANGE,
                        "%llu items and %llu others are too many for an exact "
                        "filter",
                        (unsigned long long)w->items,
                        (unsigned long long)others);
    *out = (bly_shape){ .nbytes = w->groups ? w->groups->nbytes : 0 };
    out->p[BLY_EXACT_OTHERS] = others;
    out->p[BLY_EXACT_BITS] = (uint64_t)bits;
    bly_shape_set_real(out, BLY_EXACT_PASS, q);
    return BLY_OK;
}

static bly_status exact_plan(const bly_want *w, bly_shape *out)
{
    if (w->groups)
        return exact_shape(w, w->groups->others, w->groups->pass,
                           w->groups->bits, out);
    const double s = (double)w->opt[BLY_EXACT_OTHERS];
    /* Without others nothing halves the rate. */
    const double half = s > 0 ? 2 : 1;
    double q = s > 0 ? exact_best(w->items, s) : 0.999;
    bly_status st = BLY_OK;
    if (w->bits)
        st = exact_within(w->items, s, q, w->bits, &q);
    else if (half * w->fpr < q)
        q = half * w->fpr;
    return st ? st
              : exact_shape(w, w->opt[BLY_EXACT_OTHERS], q,
                            bly_exact_cost(w->items, s, q), out);
}

static bool exact_sane(const bly_shape *s)
{
    const double q = bly_shape_real(s, BLY_EXACT_PASS);
    /* nbytes is the size of the table of groups, which sound() checks. */
    return s->nbytes % 8 == 0 &&
           s->nbytes <= bly_groups_bytes(BLY_GROUPS_SPANS, BLY_GROUPS_ROWS) &&
           q > 0 && q <= 1 &&
           (double)s->p[BLY_EXACT_OTHERS] <= BLY_EXACT_MAX_OTHERS &&
           (double)s->p[BLY_EXACT_BITS] <= BLY_EXACT_MAX_BITS;
}

/* The rate for keys that are neither members nor others. */
static double exact_rate(const bly_shape *s, double n)
{
    (void)n;
    return bly_shape_real(s, BLY_EXACT_PASS) / (s->p[BLY_EXACT_OTHERS] ? 2 : 1);
}

static uint64_t exact_bits(const bly_shape *s)
{
    return s->p[BLY_EXACT_BITS];
}

/* log2 of the ways to choose r of r + s. */
double bly_exact_entropy(double r, double s)
{
    return r * log2(1 + s / r) + s * log2(1 + r / s);
}

static bool exact_grouped(const bly_filter *f)
{
    return f->extra->hasher.id == BLY_HASH_GROUPED;
}

static bool exact_valued(const bly_filter *layer)
{
    return layer->shape.p[BLY_RIBBON_VALUED] != 0;
}

/* The rate for keys outside the universe, in the group where it is highest. */
static double exact_worst(const bly_filter *f)
{
    const bly_groups g = bly_exact_groups(f);
    double worst = 0;
    for (unsigned i = 0; i < g.nspans; i++) {
        if (bly_groups_word(&g, i) == BLY_EXACT_FULL)
            return 1;
        if (bly_groups_word(&g, i) == 0)
            worst = 0.5;
    }
    for (uint32_t i = 0; i < f->nlayers; i++)
        if (!exact_valued(f->layer[i]))
            worst =
                fmax(worst, bly_kind_ribbon.rate(&f->layer[i]->shape, 0) / 2);
    return worst;
}

static void exact_describe(const bly_shape *s, const bly_want *w,
                           const bly_filter *f, bly_facts *out)
{
    const double r = (double)(w ? w->items : f->items);
    const double others = (double)s->p[BLY_EXACT_OTHERS];
    uint64_t bits = s->p[BLY_EXACT_BITS];
    double least = bly_exact_entropy(r, others);
    if (f) {
        bits = 8 * s->nbytes;
        for (uint32_t i = 0; i < f->nlayers; i++)
            bits += 8 * f->layer[i]->shape.nbytes;
        bly_fact_uint(out, "others_in_table", f->state[BLY_EXACT_DENIED]);
        bly_fact_uint(out, "named_as_both", f->state[BLY_EXACT_BOTH]);
    }
    if (f && exact_grouped(f)) {
        bly_fact_uint(out, "groups", f->state[BLY_EXACT_GROUPS]);
        bly_fact_uint(out, "groups_in_table", f->state[BLY_EXACT_ROWS]);
        bly_fact_real(out, "worst_group", exact_worst(f));
        least = (double)f->state[BLY_EXACT_LEAST];
    }
    if (others > 0 && bits && least > 0)
        bly_fact_real(out, "over_entropy", (double)bits / least);
}

/* --------------------------------------------------------------- contents */

/* The two ribbons, each NULL where there is none. */
static const bly_filter *exact_first_of(const bly_filter *f)
{
    return f->nlayers && !exact_valued(f->layer[0]) ? f->layer[0] : NULL;
}

static const bly_filter *exact_second_of(const bly_filter *f)
{
    const bly_filter *const last = f->nlayers ? f->layer[f->nlayers - 1] : NULL;
    return last && exact_valued(last) ? last : NULL;
}

/* Is the table as long as it should be, and is only the last ribbon one of
 * values? */
static bool exact_grouped_sound(const bly_filter *f)
{
    const bly_groups g = bly_exact_groups(f);
    for (uint32_t i = 0; i + 1 < f->nlayers; i++)
        if (exact_valued(f->layer[i]))
            return false;
    return f->state[BLY_EXACT_SPANS] >> 16 == 0 && g.nspans > 0 &&
           g.nspans <= BLY_GROUPS_SPANS && g.rest < g.nspans &&
           g.nrows <= BLY_GROUPS_ROWS &&
           f->shape.nbytes == bly_groups_bytes(g.nspans, g.nrows) &&
           (exact_second_of(f) || !f->nlayers);
}

/* Is the table of groups in order? */
static bool exact_check(const bly_filter *f)
{
    if (!exact_grouped(f))
        return true;
    const bly_groups g = bly_exact_groups(f);
    const unsigned char *const rows = f->data + 16 * (size_t)g.nspans;
    uint64_t before = 0, ways = 0;
    for (unsigned i = 0; i < g.nspans; i++) {
        const uint64_t last = bly_groups_last(&g, i);
        const uint64_t way = bly_groups_word(&g, i);
        if (last <= before || (way && way < BLY_EXACT_FULL && way != ++ways))
            return false;
        before = last;
    }
    for (uint64_t i = 0; i < g.nrows; i++) {
        const uint32_t row = bly_load32(rows + 4 * i);
        if ((row & (BLY_GROUPS_SPANS - 1)) >= g.nspans ||
            (i && row >> BLY_GROUPS_SPAN_BITS <=
                      bly_load32(rows + 4 * (i - 1)) >> BLY_GROUPS_SPAN_BITS))
            return false;
    }
    return before == UINT64_MAX && ways + (f->nlayers > 0) == f->nlayers &&
           (g.nrows % 2 == 0 || bly_load32(rows + 4 * g.nrows) == 0);
}

/* kind.h */
static void exact_aim(bly_filter *f)
{
    const bly_groups g = bly_exact_groups(f);
    if (exact_grouped(f))
        bly_groups_aim(&f->extra->hasher, &g);
}

static void exact_reach(const bly_filter *f, const uint64_t *h, size_t n,
                        uint64_t *bad)
{
    for (size_t i = 0; i < n && f->shape.nbytes; i++)
        (void)bly_reach(f, 0, f->shape.nbytes, i, bad);
    bly_reach_layers(f, h, n, bad);
}

static bool exact_sound(const bly_filter *f)
{
    for (uint32_t i = 0; i < f->nlayers; i++)
        if (f->layer[i]->kind != &bly_kind_ribbon)
            return false;
    const bool first = exact_first_of(f) != NULL;
    const bool second = exact_second_of(f) != NULL;
    const bool any = f->state[BLY_EXACT_KEYS] > 0;
    if (exact_grouped(f))
        return f->state[BLY_EXACT_KEYS] <= f->items && second == any &&
               exact_grouped_sound(f);
    for (unsigned i = BLY_EXACT_SPANS; i < BLY_EXACT_STATES; i++)
        if (f->state[i])
            return false;
    if (f->shape.nbytes)
        return false;
    /* One ribbon may be enough: the second without a first, where q is 1. */
    return f->state[BLY_EXACT_KEYS] <= f->items &&
           f->nlayers == (uint32_t)first + second && (first || second) == any &&
           (!any || first == (bly_shape_real(&f->shape, BLY_EXACT_PASS) < 1));
}

/* Nearly all memory will be in the ribbons, which are made later. If it is too
 * much, refuse now rather than after all keys have been read. */
static bly_status exact_start(bly_filter *f)
{
    const uint64_t nbytes = f->shape.p[BLY_EXACT_BITS] / 8;
    if (!f->extra->max_bytes || nbytes <= f->extra->max_bytes)
        return BLY_OK;
    return bly_fail(
        BLY_ERANGE, "the filter needs %llu bytes, the limit is %llu",
        (unsigned long long)nbytes, (unsigned long long)f->extra->max_bytes);
}

static void exact_close(bly_filter *f)
{
    exact_making *const m = f->extra->aux;
    if (!m)
        return;
    bly_block_free(bly_filter_mem(f), &m->members);
    bly_filter_aux_free(f, sizeof *m);
}

static void exact_stat(const bly_filter *f, bly_stats *out)
{
    const double n = (double)f->state[BLY_EXACT_KEYS];
    const double q = bly_shape_real(&f->shape, BLY_EXACT_PASS);
    out->fill = 0;
    for (uint32_t i = 0; i < f->nlayers; i++) {
        bly_stats part = { 0 };
        f->layer[i]->kind->stat(f->layer[i], &part);
        out->fill += part.fill / f->nlayers;
    }
    out->items_estimate = n;
    out->items_sd = 0;
    out->fpr_now = n > 0 ? q / (exact_second_of(f) ? 2 : 1) : 0;
}

/* Append a ribbon to f, filled from n hashes, which are scratch. */
static bly_status exact_push(bly_filter *f, const bly_shape *shape, double rate,
                             uint64_t *h, size_t n, unsigned nthreads)
{
    bly_setting set = bly_setting_of(f);
    bly_filter *layer;
    set.items = n ? n : 1; /* no capacity is zero */
    set.fpr = rate;
    bly_status st = bly_filter_make(&bly_kind_ribbon, shape, &set, &layer);
    if (st)
        return st;
    st = bly_kind_ribbon.build(layer, h, NULL, n, nthreads);
    if (!st)
        return bly_filter_push(f, layer);
    bly_free(layer);
    return st;
}

static bly_status exact_no_group(void)
{
    return bly_fail(
        BLY_EINVAL,
        "a key has no group; expected its group, a tab and the key");
}

/* Make the first ribbons of the spans, from sorted hashes. The plan is not
 * binding: if a span was planned without members and has some, all its keys go
 * to the second ribbon. */
static bly_status exact_spans(bly_filter *f, uint64_t *h, size_t n,
                              unsigned nthreads)
{
    const bly_groups g = bly_exact_groups(f);
    bly_status st = BLY_OK;
    if (n && !h[0])
        return exact_no_group();
    for (unsigned i = 0; i < g.nspans && !st; i++) {
        const uint64_t last = bly_groups_last(&g, i);
        const uint64_t width = bly_groups_word(&g, i);
        uint64_t way = BLY_EXACT_EMPTY;
        bly_shape shape;
        size_t np = 0;
        while (np < n && h[np] <= last)
            np++;
        if (np && (width == 0 || width >= BLY_EXACT_FULL)) {
            way = width == BLY_EXACT_FULL ? width : 0;
        } else if (np) {
            const double q = ldexp(1, -(int)width);
            st = exact_first(np, q, &shape);
            if (!st)
                st = exact_push(f, &shape, q, h, np, nthreads);
            way = f->nlayers;
        }
        bly_store64(f->data + 16 * (size_t)i + 8, way);
        h += np;
        n -= np;
    }
    return st;
}

static bly_status exact_build(bly_filter *f, uint64_t *h, uint64_t *values,
                              size_t n, unsigned nthreads)
{
    const double q = bly_shape_real(&f->shape, BLY_EXACT_PASS);
    bly_shape shape;
    (void)values;
    bly_hashes_unique(h, NULL, &n);
    if (n > f->items)
        return bly_fail(BLY_EFULL,
                        "%zu different keys are more than the %llu that the "
                        "filter was planned for",
                        n, (unsigned long long)f->items);
    exact_making *const m = bly_filter_aux_new(f, sizeof *m);
    if (!m)
        return BLY_ENOMEM;
    bly_status st =
        bly_block_new(bly_filter_mem(f), (uint64_t)n * sizeof *h, &m->members);
    if (st)
        return st;
    m->n = n;
    memcpy(m->members.at, h, n * sizeof *h);
    if (exact_grouped(f)) {
        st = exact_spans(f, h, n, nthreads);
    } else if (n > 0 && q < 1) {
        st = exact_first(f->items, q, &shape);
        if (!st)
            st = exact_push(f, &shape, q, h, n, nthreads);
    }
    if (!st) {
        f->state[BLY_EXACT_KEYS] = n;
        f->nadded = n;
        f->items = n ? n : 1; /* no capacity is zero */
    }
    return st;
}

/* Sort the others, and drop those that are members. Fails if one differs from a
 * member only in the bit that marks others. */
static bly_status exact_sift(bly_filter *f, uint64_t *h, size_t *n)
{
    const exact_making *const m = f->extra->aux;
    const uint64_t *const members = (const uint64_t *)(void *)m->members.at;
    size_t kept = 0, at = 0;
    bly_hashes_unique(h, NULL, n);
    for (size_t i = 0; i < *n; i++) {
        /* Both lists are sorted, so a member and its twin are neighbours. */
        const uint64_t even = h[i] & ~BLY_RIBBON_OUT;
        while (at < m->n && members[at] < even)
            at++;
        const size_t left = m->n - at;
        const bool first = left > 0 && members[at] == h[i];
        const bool second = left > 1 && members[at + 1] == h[i];
        if (first || second) {
            f->state[BLY_EXACT_BOTH]++;
            continue;
        }
        if (left > 0 && (members[at] ^ h[i]) == BLY_RIBBON_OUT)
            return bly_fail(BLY_EINVAL,
                            "the hashes of a member and of another key agree "
                            "in 63 bits, so that they cannot be told apart: "
                            "take another seed");
        h[kept++] = h[i];
    }
    *n = kept;
    return BLY_OK;
}

/* A span that was planned for members only becomes an ordinary one if it has
 * another key. */
static void exact_unfill(bly_filter *f, const uint64_t *h, size_t n)
{
    const bly_groups g = bly_exact_groups(f);
    for (size_t i = 0; i < n; i++) {
        const unsigned span = bly_groups_span(&g, h[i]);
        if (bly_groups_word(&g, span) == BLY_EXACT_FULL)
            bly_store64(f->data + 16 * (size_t)span + 8, 0);
    }
}

/* Does a member have a bit in the second ribbon? */
static bool exact_in_second(const bly_filter *f, uint64_t h)
{
    if (!exact_grouped(f))
        return true;
    const bly_groups g = bly_exact_groups(f);
    return bly_groups_word(&g, bly_groups_span(&g, h)) != BLY_EXACT_FULL;
}

static bly_status exact_deny(bly_filter *f, uint64_t *h, size_t n,
                             unsigned nthreads)
{
    const exact_making *const m = f->extra->aux;
    const uint64_t *const members = (const uint64_t *)(void *)m->members.at;
    bly_block both;
    bly_shape shape;
    bly_status st = exact_sift(f, h, &n);
    if (!st && n && exact_grouped(f) && !h[0])
        st = exact_no_group();
    if (st)
        return st;
    if (m->n == 0 ||
        (n == 0 && !f->shape.p[BLY_EXACT_OTHERS] && !exact_grouped(f))) {
        exact_close(f);
        return BLY_OK;
    }
    if (exact_grouped(f))
        exact_unfill(f, h, n);
    size_t all = m->n + n;
    st = bly_block_new(bly_filter_mem(f), (uint64_t)all * sizeof *h, &both);
    if (st)
        return st;
    uint64_t *const u = (uint64_t *)(void *)both.at;
    all = 0;
    for (size_t i = 0; i < m->n; i++)
        if (exact_in_second(f, members[i]))
            u[all++] = members[i] & ~BLY_RIBBON_OUT;
    for (size_t i = 0; i < n; i++)
        u[all++] = h[i] | BLY_RIBBON_OUT;
    bly_ribbon_shape_valued(all, &shape);
    st = exact_push(f, &shape, 0.5, u, all, nthreads);
    bly_block_free(bly_filter_mem(f), &both);
    if (!st) {
        f->state[BLY_EXACT_DENIED] = n;
        exact_close(f);
    }
    return st;
}

static void exact_members(const bly_filter *f, const uint64_t *h, size_t n,
                          uint64_t *in)
{
    const exact_making *const m = f->extra->aux;
    const uint64_t *const members =
        m ? (const uint64_t *)(void *)m->members.at : NULL;
    /* The first ribbon rejects nearly all others. */
    f->kind->has(f, h, n, in);
    for (size_t i = 0; i < n; i++) {
        size_t low = 0, high = m ? m->n : 0;
        if (!(in[i / 64] >> i % 64 & 1))
            continue;
        while (low < high) {
            const size_t mid = low + (high - low) / 2;
            if (members[mid] < h[i])
                low = mid + 1;
            else
                high = mid;
        }
        if (!m || low == m->n || members[low] != h[i])
            in[i / 64] &= ~(UINT64_C(1) << i % 64);
    }
}

/* ----------------------------------------------------------------- asking */

#define EXACT_PIECE 1024

/* Find which of n <= EXACT_PIECE keys the first ribbon of their span lets
 * through, and for which the second need not be asked: either all keys of their
 * group are members, or they have no group and nothing is known of them. */
static void exact_through(const bly_filter *f, const uint64_t *h, size_t n,
                          uint64_t *to, uint64_t *sure)
{
    enum { FULL = 254, EMPTY };
    const bly_groups g = bly_exact_groups(f);
    const uint32_t nfirst =
        (uint32_t)(f->nlayers - (exact_second_of(f) != NULL));
    uint64_t left[EXACT_PIECE], in[EXACT_PIECE / 64];
    uint32_t at[EXACT_PIECE];
    uint8_t way[EXACT_PIECE];
    for (size_t i = 0; i < n; i++) {
        const uint64_t w = bly_groups_word(&g, bly_groups_span(&g, h[i]));
        way[i] = (uint8_t)(w <= nfirst            ? w
                           : w == BLY_EXACT_EMPTY ? EMPTY
                           : w == BLY_EXACT_FULL  ? FULL
                                                  : 0); /* damaged */
        if (!h[i])
            way[i] = FULL;
        to[i / 64] |= (uint64_t)(way[i] == 0) << i % 64;
        sure[i / 64] |= (uint64_t)(way[i] == FULL) << i % 64;
    }
    for (uint32_t l = 0; l < nfirst; l++) {
        const bly_filter *const first = f->layer[l];
        size_t nleft = 0;
        for (size_t i = 0; i < n; i++) {
            left[nleft] = h[i];
            at[nleft] = (uint32_t)i;
            nleft += way[i] == l + 1;
        }
        if (!nleft)
            continue;
        memset(in, 0, sizeof in);
        first->kind->has(first, left, nleft, in);
        for (size_t i = 0; i < nleft; i++)
            to[at[i] / 64] |= (in[i / 64] >> i % 64 & 1) << at[i] % 64;
    }
}

/* Let through the keys that the first ribbons let through; all keys, where
 * there is no first ribbon. */
static void exact_sieve(const bly_filter *f, const uint64_t *h, size_t n,
                        uint64_t *to, uint64_t *sure)
{
    const bly_filter *const first = exact_first_of(f);
    if (exact_grouped(f))
        exact_through(f, h, n, to, sure);
    else if (first)
        first->kind->has(first, h, n, to);
    else
        for (size_t i = 0; i < n; i++)
            to[i / 64] |= UINT64_C(1) << i % 64;
}

static void exact_has(const bly_filter *f, const uint64_t *h, size_t n,
                      uint64_t *maybe)
{
    const bly_filter *const second = exact_second_of(f);
    const exact_making *const m = f->extra->aux;
    /* The filter is empty, unless it is being built. */
    if (!f->nlayers && !(m && m->n))
        return;
    for (size_t from = 0; from < n; from += EXACT_PIECE) {
        const size_t np = n - from < EXACT_PIECE ? n - from : EXACT_PIECE;
        uint64_t *const to = maybe + from / 64;
        uint64_t left[EXACT_PIECE], in[EXACT_PIECE / 64] = { 0 };
        uint64_t sure[EXACT_PIECE / 64] = { 0 };
        uint32_t at[EXACT_PIECE];
        size_t nleft = 0;
        exact_sieve(f, h + from, np, to, sure);
        for (size_t i = 0; i < np && second; i++) {
            left[nleft] = h[from + i];
            at[nleft] = (uint32_t)i;
            nleft += to[i / 64] >> i % 64 & 1;
        }
        if (second) {
            second->kind->has(second, left, nleft, in);
            memset(to, 0, BLY_BITMAP_WORDS(np) * sizeof *to);
        }
        for (size_t i = 0; i < nleft; i++)
            to[at[i] / 64] |= (in[i / 64] >> i % 64 & 1) << at[i] % 64;
        for (size_t i = 0; i < BLY_BITMAP_WORDS(np); i++)
            to[i] |= sure[i];
    }
}

const bly_kind bly_kind_exact = {
    .id = 31, /* on disk: never changed, never reused */
    .name = "exact",
    .summary = "fixed sets: never wrong for keys of a known universe",
    .params = exact_params,
    .nparams = sizeof exact_params / sizeof exact_params[0],
    .nstate = BLY_EXACT_STATES,
    .plan = exact_plan,
    .sane = exact_sane,
    .rate = exact_rate,
    .bits = exact_bits,
    .describe = exact_describe,
    .start = exact_start,
    .sound = exact_sound,
    .close = exact_close,
    .check = exact_check,
    .aim = exact_aim,
    .reach = BLY_SYSTEM(exact_reach),
    .stat = exact_stat,
    .has = exact_has,
    .build = exact_build,
    .deny = exact_deny,
    .members = exact_members,
    .group = bly_exact_group,
};
