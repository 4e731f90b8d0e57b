/*
 * probe.c - k positions among m cells: sizing, and functions that are rarely
 * called
 */
#include <math.h>

#include "core/status.h"
#include "kinds/bitset.h"
#include "kinds/fold.h"
#include "kinds/probe.h"

double bly_probe_rate(double n, double m, unsigned k)
{
    return fmin(1, bly_fpr_exact(n, m, k) + n / m / m);
}

/* How much rounding may add to a rate p, as a share of the lesser of p and
 * 1 - p: rule A adds half a percent by itself. */
#define RATE_SLACK 0.02

/* The smallest m from size.m on at which k probes really keep the rate. The
 * rules are approximations, which shows in a filter of a few bits: for one key
 * at 0.9 they give one bit, which answers maybe to every key. */
static double keep_rate(double n, bly_size size, double fpr,
                        bly_probe_rater *rate)
{
    const double most = fpr + RATE_SLACK * fmin(fpr, 1 - fpr);
    double low = size.m - 1, high = fmax(size.m, size.k);
    if (rate(n, high, size.k) <= most)
        return high;
    /* Double until it is enough, then bisect between low and high. */
    while (high < (double)BLY_PROBE_MAX_CELLS && rate(n, high, size.k) > most) {
        low = high;
        high *= 2;
    }
    while (high - low > 1) {
        const double mid = floor((low + high) / 2);
        if (rate(n, mid, size.k) > most)
            low = mid;
        else
            high = mid;
    }
    return high;
}

bool bly_plan_least(const bly_want *w,
                    bly_shape (*best)(const bly_want *w, double bits),
                    double (*rate)(const bly_shape *s, double n), double low,
                    double high, double most, bly_shape *out)
{
    const double n = (double)w->items;
    while (*out = best(w, high), !out->nbytes || rate(out, n) > w->fpr) {
        low = high;
        high *= 2;
        if (high > most)
            return false;
    }
    while (high - low > 1) {
        const double mid = floor(low + (high - low) / 2);
        const bly_shape s = best(w, mid);
        /* k changes on the way, so the rate need not fall with every bit. But a
         * shape is kept only if it was seen to keep the rate. */
        if (!s.nbytes || rate(&s, n) > w->fpr) {
            low = mid;
        } else {
            high = mid;
            *out = s;
        }
    }
    return true;
}

bly_status bly_probe_plan(const bly_kind *kind, const bly_want *w,
                          uint64_t cells, uint64_t k, bool rule_b,
                          uint64_t folds, bly_probe_rater *rate, bly_size *out)
{
    const double n = (double)w->items;
    const bly_status st = bly_fold_plan(folds, 1, true, &cells);
    if (st)
        return st;
    bly_size size = { (double)cells, (unsigned)k };
    if (cells) {
        if (!size.k)
            size.k = bly_best_k(n, size.m);
    } else if (size.k) {
        /* (1 - e^(-kn/m))^k = p, solved for m. */
        size.m = ceil(-(double)size.k * n /
                      log1p(-pow(w->fpr, 1.0 / (double)size.k)));
    } else {
        size = rule_b ? bly_size_rule_b(n, w->fpr) : bly_size_rule_a(n, w->fpr);
    }
    if (!cells)
        size.m = keep_rate(n, size, w->fpr, rate);
    if (!(size.m <= (double)BLY_PROBE_MAX_CELLS))
        return bly_fail(BLY_ERANGE,
                        "a %s filter has at most 2^48 cells; "
                        "this one would need %.3g",
                        kind->name, size.m);
    if (size.k > size.m)
        return bly_fail(BLY_EINVAL,
                        "k = %u probes need at least as many cells, "
                        "and there are %.0f",
                        size.k, size.m);
    if (!cells) {
        cells = (uint64_t)size.m;
        bly_fold_plan(folds, 1, false, &cells);
        size.m = (double)cells;
    }
    *out = size;
    return BLY_OK;
}

void bly_probe_compare(const bly_filter *a, const bly_filter *b, uint64_t m,
                       uint64_t k, unsigned width, bly_likeness *out)
{
    const bly_ones ones = {
        .a = (double)bly_cells_count(a->data, m, width).used,
        .b = (double)bly_cells_count(b->data, m, width).used,
        .either = (double)bly_cells_used_either(a->data, b->data, m, width),
    };
    bly_likeness_of_ones(&ones, (double)m, (double)k, INFINITY, out);
}

_Static_assert(BLY_PART_UNIT % BLY_CELLS_UNIT == 0, "parts are whole cells");

uint64_t bly_probe_cells_in(const bly_part *p, uint64_t m, unsigned width)
{
    /* A part begins with a whole cell, whatever the width. */
    const uint64_t first = p->at * 8 / width;
    const uint64_t n = p->nbytes * 8 / width;
    return first >= m ? 0 : m - first < n ? m - first : n;
}

bool bly_probe_sane(uint64_t m, uint64_t k)
{
    return m <= BLY_PROBE_MAX_CELLS && k >= 1 && k <= BLY_PROBE_MAX_K && k <= m;
}

void bly_probe_stat(uint64_t used, uint64_t m, uint64_t k, bly_stats *out)
{
    const bly_estimate n =
        bly_estimate_items((double)used, (double)m, (double)k);
    out->fill = (double)used / (double)m;
    out->items_estimate = n.value;
    out->items_sd = n.sd;
    out->fpr_now = pow(out->fill, (double)k);
}

bly_spots bly_probe_list(uint64_t h, bly_modulus range, uint64_t k,
                         uint64_t *at)
{
    bly_probe p = bly_probe_start(h, range);
    for (uint64_t i = 0; i < k; i++)
        at[i] = bly_probe_next(&p, range.n, i);
    return (bly_spots){ at, 1, k };
}

bly_spots bly_probe_dedupe(bly_spots s, uint64_t *at)
{
    uint64_t n = 0;
    /* n <= i, so `at` may be the list itself. k is small as a rule: comparing
     * all pairs will do. */
    for (uint64_t i = 0; i < s.n; i++) {
        const uint64_t spot = bly_spot(s, i);
        bool seen = false;
        for (uint64_t j = 0; j < n; j++)
            seen |= at[j] == spot;
        at[n] = spot;
        n += !seen;
    }
    return (bly_spots){ at, 1, n };
}

uint64_t bly_probe_repeats(const uint64_t *h, size_t n, bly_modulus range,
                           uint64_t k)
{
    const size_t per = bly_probe_keys(k, 64);
    const bly_steps steps = { .range = range, .k = k, .stride = per };
    uint64_t at[BLY_PROBE_ROOM], near, all = 0;
    for (size_t from = 0; from < n; from += per) {
        bly_steps_best()->list(&steps, h + from,
                               n - from < per ? n - from : per, at, &near);
        all |= near << from;
    }
    return all;
}

void bly_probe_announce(const unsigned char *cells, unsigned width,
                        bly_steps how, const uint64_t *h, size_t n)
{
    how.k = how.k < BLY_PROBE_SURE ? how.k : BLY_PROBE_SURE;
    const size_t per = bly_probe_keys(how.k, BLY_PROBE_PIECE);
    uint64_t at[BLY_PROBE_ROOM];
    how.stride = per;
    for (size_t from = 0; from < n; from += per) {
        const size_t np = n - from < per ? n - from : per;
        bly_steps_best()->fill(&how, h + from, np, at);
        for (size_t j = 0; j < np; j++)
            bly_probe_fetch_all(cells, width, how.k, at + j, per);
    }
}

void bly_probe_reach(const bly_filter *f, uint64_t first, unsigned width,
                     bly_steps how, const uint64_t *h, size_t n, uint64_t *bad)
{
    const size_t per = bly_probe_keys(how.k, BLY_PROBE_GROUP);
    const bly_steps_row *const row = bly_steps_best();
    uint64_t at[BLY_PROBE_ROOM];
    how.stride = per;
    for (size_t from = 0; from < n; from += per) {
        const size_t np = n - from < per ? n - from : per;
        row->fill(&how, h + from, np, at);
        for (uint64_t step = 0; step < how.k; step++)
            for (size_t j = 0; j < np; j++) {
                const uint64_t bit = at[step * per + j] * width;
                /* A cell may lie across bytes. */
                const uint64_t byte = bit / 8, last = (bit + width - 1) / 8;
                bly_reach(f, first + byte, last - byte + 1, from + j, bad);
            }
    }
}
