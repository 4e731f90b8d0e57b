/*
 * exact.c - no wrong answer for any key of a known universe
 *
 * Where everything that will ever be asked is known, a filter need not guess:
 * the serial numbers of all certificates, of which some are revoked; all
 * customers, of whom some are blocked. Two ribbons (kinds/ribbon.h):
 *
 *     first    the r members, at a rate q
 *     second   a bit for each member, and for each of those others that the
 *              first lets through, about q s of s: is it a member?
 *
 *     key -> first: no  -> no
 *            first: maybe -> second: yes or no, for all of the universe
 *
 * With f bits for each member in the first, q = 2^-f, this takes
 *
 *     r f + r + s 2^-f bits
 *
 * and planning takes the f for which that is least. Rates between 2^-f and
 * 2^-(f+1) mix both widths, so their cost is on the line between the two, and
 * the least is always at an end. Eight million of 900 million: f = 6, 8.76 bits
 * per member; no code for such a choice takes less than 8.26. Where others are
 * fewer than twice as many as members, f is 0: there is no first, and the
 * second has a bit for all of the universe.
 *
 * A key outside the universe passes the first at the rate q and gets any bit
 * from the second: q / 2. Whoever wants a lower rate for these asks for it, and
 * the first is made for twice that; this is the case too where the others are
 * not everybody else, but some keys that are asked often.
 *
 * Members have to be known first, then the others, which are asked and not
 * kept: deny(), after build(). Without others it is a ribbon.
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
#include "kinds/ribbon.h"

enum {
    EXACT_OTHERS, /* s, as planned */
    EXACT_PASS,   /* q; 1: no first ribbon */
    EXACT_BITS    /* of both, as planned */
};

/* Words of the state. */
enum {
    EXACT_KEYS,   /* members */
    EXACT_DENIED, /* others that the first ribbon let through, in the second */
    EXACT_BOTH,   /* keys that were named as others too, and are members */
    EXACT_STATES
};

#define EXACT_MAX_OTHERS 0x1p48
#define EXACT_MAX_BITS 0x1p56

static const bly_param exact_params[] = {
    [EXACT_OTHERS] =
        BLY_PARAM("others", BLY_UINT, .settable = true, .max = EXACT_MAX_OTHERS,
                  .help = "keys that are known not to be in it"),
    [EXACT_PASS] = BLY_PARAM("pass", BLY_REAL, .max = 1,
                             .help = "share of the others that need a bit"),
    [EXACT_BITS] = BLY_PARAM("planned_bits", BLY_UINT, .max = EXACT_MAX_BITS,
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

/* Bits of both, for s others. */
static double exact_cost(uint64_t r, double s, double q)
{
    bly_shape first = { .nbytes = 0 }, second = { .nbytes = 0 };
    if (q < 1 && exact_first(r, q, &first))
        return INFINITY;
    const double bits = (double)r + ceil(q * s);
    if (s > 0 && bits > EXACT_MAX_OTHERS)
        return INFINITY;
    if (s > 0)
        bly_ribbon_shape_valued((uint64_t)bits, &second);
    return 8 * ((double)first.nbytes + (double)second.nbytes);
}

/* The rate of the first for which both take least. */
static double exact_best(uint64_t r, double s)
{
    double best = 1;
    for (int f = 1; f <= (int)BLY_RIBBON_MAX_WIDTH; f++) {
        if (exact_cost(r, s, ldexp(1, -f)) >= exact_cost(r, s, best))
            break;
        best = ldexp(1, -f);
    }
    return best;
}

/* The lowest rate, not above `most`, that the memory is enough for. */
static bly_status exact_within(uint64_t r, double s, double most, uint64_t bits,
                               double *out)
{
    double low = -(double)BLY_RIBBON_MAX_WIDTH, high = log2(most);
    if (exact_cost(r, s, most) > (double)bits)
        return bly_fail(BLY_EINVAL,
                        "%llu bits are too few for an exact filter of %llu "
                        "items and %.0f others, which begins at %.0f",
                        (unsigned long long)bits, (unsigned long long)r, s,
                        exact_cost(r, s, most));
    while (high - low > 1e-9) {
        const double mid = (low + high) / 2;
        if (exact_cost(r, s, exp2(mid)) <= (double)bits)
            high = mid;
        else
            low = mid;
    }
    *out = exp2(high);
    return BLY_OK;
}

static bly_status exact_plan(const bly_want *w, bly_shape *out)
{
    const double s = (double)w->opt[EXACT_OTHERS];
    /* Without others nothing halves the rate. */
    const double half = s > 0 ? 2 : 1;
    double q = s > 0 ? exact_best(w->items, s) : 0.999;
    bly_status st = BLY_OK;
    if (w->bits)
        st = exact_within(w->items, s, q, w->bits, &q);
    else if (half * w->fpr < q)
        q = half * w->fpr;
    const double cost = exact_cost(w->items, s, q);
    if (st)
        return st;
    if (cost > EXACT_MAX_BITS)
        return bly_fail(BLY_ERANGE,
                        "%llu items and %.0f others are too many for an exact "
                        "filter",
                        (unsigned long long)w->items, s);
    *out = (bly_shape){ .nbytes = 0 };
    out->p[EXACT_OTHERS] = w->opt[EXACT_OTHERS];
    out->p[EXACT_BITS] = (uint64_t)cost;
    bly_shape_set_real(out, EXACT_PASS, q);
    return BLY_OK;
}

static bool exact_sane(const bly_shape *s)
{
    const double q = bly_shape_real(s, EXACT_PASS);
    return s->nbytes == 0 && q > 0 && q <= 1 &&
           (double)s->p[EXACT_OTHERS] <= EXACT_MAX_OTHERS &&
           (double)s->p[EXACT_BITS] <= EXACT_MAX_BITS;
}

/* Of keys that are neither members nor others. */
static double exact_rate(const bly_shape *s, double n)
{
    (void)n;
    return bly_shape_real(s, EXACT_PASS) / (s->p[EXACT_OTHERS] ? 2 : 1);
}

static uint64_t exact_bits(const bly_shape *s)
{
    return s->p[EXACT_BITS];
}

/* log2 of the ways to choose r of r + s. */
static double exact_entropy(double r, double s)
{
    return r * log2(1 + s / r) + s * log2(1 + r / s);
}

static void exact_describe(const bly_shape *s, const bly_want *w,
                           const bly_filter *f, bly_facts *out)
{
    const double r = (double)(w ? w->items : f->items);
    const double others = (double)s->p[EXACT_OTHERS];
    uint64_t bits = s->p[EXACT_BITS];
    if (f) {
        bits = 0;
        for (uint32_t i = 0; i < f->nlayers; i++)
            bits += 8 * f->layer[i]->shape.nbytes;
        bly_fact_uint(out, "others_in_table", f->state[EXACT_DENIED]);
        bly_fact_uint(out, "named_as_both", f->state[EXACT_BOTH]);
    }
    if (others > 0 && bits)
        bly_fact_real(out, "over_entropy",
                      (double)bits / exact_entropy(r, others));
}

/* --------------------------------------------------------------- contents */

static bool exact_valued(const bly_filter *layer)
{
    return layer->shape.p[BLY_RIBBON_VALUED] != 0;
}

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

static bool exact_sound(const bly_filter *f)
{
    for (unsigned i = EXACT_STATES; i < BLY_STATE_WORDS; i++)
        if (f->state[i])
            return false;
    for (uint32_t i = 0; i < f->nlayers; i++)
        if (f->layer[i]->kind != &bly_kind_ribbon)
            return false;
    const bool first = exact_first_of(f) != NULL;
    const bool second = exact_second_of(f) != NULL;
    const bool any = f->state[EXACT_KEYS] > 0;
    /* One of them is enough, the second without a first where q is 1. */
    return f->state[EXACT_KEYS] <= f->items &&
           f->nlayers == (uint32_t)first + second && (first || second) == any &&
           (!any || first == (bly_shape_real(&f->shape, EXACT_PASS) < 1));
}

/* The memory is in the ribbons, which are made later: refused now rather than
 * after all keys were read. */
static bly_status exact_start(bly_filter *f)
{
    const uint64_t nbytes = f->shape.p[EXACT_BITS] / 8;
    if (!f->max_bytes || nbytes <= f->max_bytes)
        return BLY_OK;
    return bly_fail(
        BLY_ERANGE, "the filter needs %llu bytes, the limit is %llu",
        (unsigned long long)nbytes, (unsigned long long)f->max_bytes);
}

static void exact_close(bly_filter *f)
{
    exact_making *const m = f->aux;
    if (!m)
        return;
    bly_block_free(&f->mem, &m->members);
    bly_mem_release(&f->mem, m, sizeof *m);
    f->aux = NULL;
}

static void exact_stat(const bly_filter *f, bly_stats *out)
{
    const double n = (double)f->state[EXACT_KEYS];
    const double q = bly_shape_real(&f->shape, EXACT_PASS);
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

/* A ribbon of f, filled from n hashes, which are scratch. */
static bly_status exact_push(bly_filter *f, const bly_shape *shape, double rate,
                             uint64_t *h, size_t n, unsigned nthreads)
{
    bly_setting set = bly_setting_of(f);
    bly_filter *layer;
    set.items = n;
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

static bly_status exact_build(bly_filter *f, uint64_t *h, uint64_t *values,
                              size_t n, unsigned nthreads)
{
    const double q = bly_shape_real(&f->shape, EXACT_PASS);
    bly_shape shape;
    (void)values;
    bly_hashes_unique(h, NULL, &n);
    if (n > f->items)
        return bly_fail(BLY_EFULL,
                        "%zu different keys are more than the %llu that the "
                        "filter was planned for",
                        n, (unsigned long long)f->items);
    exact_making *const m = bly_mem_zalloc(&f->mem, sizeof *m);
    f->aux = m;
    if (!m)
        return bly_fail(BLY_ENOMEM, "out of memory");
    bly_status st =
        bly_block_new(&f->mem, (uint64_t)n * sizeof *h, &m->members);
    if (st)
        return st;
    m->n = n;
    memcpy(m->members.at, h, n * sizeof *h);
    if (n > 0 && q < 1) {
        st = exact_first(f->items, q, &shape);
        if (!st)
            st = exact_push(f, &shape, q, h, n, nthreads);
    }
    if (!st) {
        f->state[EXACT_KEYS] = n;
        f->nadded = n;
        f->items = n ? n : 1; /* no capacity is zero */
    }
    return st;
}

/* Sort the others, and drop those that are members. Fails where one is equal to
 * a member but for the bit that is to tell them apart. */
static bly_status exact_sift(bly_filter *f, uint64_t *h, size_t *n)
{
    const exact_making *const m = f->aux;
    const uint64_t *const members = (const uint64_t *)(void *)m->members.at;
    size_t kept = 0, at = 0;
    bly_hashes_unique(h, NULL, n);
    for (size_t i = 0; i < *n; i++) {
        /* Both are sorted: a member and its twin are neighbours. */
        const uint64_t even = h[i] & ~BLY_RIBBON_OUT;
        while (at < m->n && members[at] < even)
            at++;
        const size_t left = m->n - at;
        const bool first = left > 0 && members[at] == h[i];
        const bool second = left > 1 && members[at + 1] == h[i];
        if (first || second) {
            f->state[EXACT_BOTH]++;
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

static bly_status exact_deny(bly_filter *f, uint64_t *h, size_t n,
                             unsigned nthreads)
{
    const exact_making *const m = f->aux;
    const uint64_t *const members = (const uint64_t *)(void *)m->members.at;
    bly_block both;
    bly_shape shape;
    bly_status st = exact_sift(f, h, &n);
    if (st)
        return st;
    if (m->n == 0 || (n == 0 && !f->shape.p[EXACT_OTHERS])) {
        exact_close(f);
        return BLY_OK;
    }
    const size_t all = m->n + n;
    st = bly_block_new(&f->mem, (uint64_t)all * sizeof *h, &both);
    if (st)
        return st;
    uint64_t *const u = (uint64_t *)(void *)both.at;
    for (size_t i = 0; i < m->n; i++)
        u[i] = members[i] & ~BLY_RIBBON_OUT;
    for (size_t i = 0; i < n; i++)
        u[m->n + i] = h[i] | BLY_RIBBON_OUT;
    bly_ribbon_shape_valued(all, &shape);
    st = exact_push(f, &shape, 0.5, u, all, nthreads);
    bly_block_free(&f->mem, &both);
    if (!st) {
        f->state[EXACT_DENIED] = n;
        exact_close(f);
    }
    return st;
}

/* ----------------------------------------------------------------- asking */

#define EXACT_PIECE 1024

static void exact_has(const bly_filter *f, const uint64_t *h, size_t n,
                      uint64_t *maybe)
{
    const bly_filter *const first = exact_first_of(f);
    const bly_filter *const second = exact_second_of(f);
    if (!f->nlayers) {
        /* While it is made, without a first ribbon, nothing is ruled out. */
        const exact_making *const m = f->aux;
        for (size_t i = 0; m && m->n && i < n; i++)
            maybe[i / 64] |= UINT64_C(1) << i % 64;
        return;
    }
    if (!second) {
        first->kind->has(first, h, n, maybe);
        return;
    }
    for (size_t from = 0; from < n; from += EXACT_PIECE) {
        const size_t np = n - from < EXACT_PIECE ? n - from : EXACT_PIECE;
        uint64_t *const to = maybe + from / 64;
        uint64_t left[EXACT_PIECE], in[EXACT_PIECE / 64] = { 0 };
        uint32_t at[EXACT_PIECE];
        size_t nleft = 0;
        if (first)
            first->kind->has(first, h + from, np, to);
        for (size_t i = 0; i < np; i++) {
            left[nleft] = h[from + i];
            at[nleft] = (uint32_t)i;
            nleft += !first || (to[i / 64] >> i % 64 & 1);
        }
        second->kind->has(second, left, nleft, in);
        memset(to, 0, BLY_BITMAP_WORDS(np) * sizeof *to);
        for (size_t i = 0; i < nleft; i++)
            to[at[i] / 64] |= (in[i / 64] >> i % 64 & 1) << at[i] % 64;
    }
}

const bly_kind bly_kind_exact = {
    .id = 31, /* on disk: never changed, never reused */
    .name = "exact",
    .summary = "fixed sets: never wrong for keys of a known universe",
    .params = exact_params,
    .nparams = sizeof exact_params / sizeof exact_params[0],
    .plan = exact_plan,
    .sane = exact_sane,
    .rate = exact_rate,
    .bits = exact_bits,
    .describe = exact_describe,
    .start = exact_start,
    .sound = exact_sound,
    .close = exact_close,
    .reach = bly_reach_layers,
    .stat = exact_stat,
    .has = exact_has,
    .build = exact_build,
    .deny = exact_deny,
};
