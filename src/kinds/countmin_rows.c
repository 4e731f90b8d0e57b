/*
 * countmin_rows.c - count-min sketches as a whole, row by row
 *
 * A key has one counter in each row (countmin.c). The functions here do not
 * look up keys. They go through all counters of a sketch, or of two sketches of
 * the same shape, row by row.
 *
 *     check    plain update: a row sums up to N; conservative: to N at most
 *     stat     counters above 0 are the set bits of a filter of d slices
 *     merge    the sum of two counters, for the sum of two streams
 *     fold     counters 2j and 2j + 1 of a row become one
 *     compare  the counters in use, and the products of two rows
 *
 * [1] Cormode and Muthukrishnan, An improved data stream summary: the
 *     count-min sketch and its applications, 2005
 */
#include "kinds/countmin.h"

#include <math.h>

#include "core/status.h"
#include "kinds/bitset.h"
#include "kinds/fold.h"

/* Every addition went into every row: with plain update a row sums up to N,
 * with conservative update to N at most. */
bool bly_countmin_check(const bly_filter *f)
{
    const bool wide = countmin_wide(f);
    const uint64_t w = f->shape.p[COUNTMIN_WIDTH], total = countmin_total(f);
    for (uint64_t row = 0; row < f->shape.p[COUNTMIN_DEPTH]; row++) {
        uint64_t sum = 0;
        for (uint64_t i = row * w; i < (row + 1) * w; i++) {
            const uint64_t c = countmin_load(f->data, i, wide);
            /* Subtracted, since the sum of damaged counters could wrap
             * round. */
            if (c > total - sum)
                return false;
            sum += c;
        }
        if (sum < total && f->shape.p[COUNTMIN_UPDATE] == COUNTMIN_PLAIN)
            return false;
    }
    return true;
}

/* With plain update a row sums up to N. */
bool bly_countmin_restate(bly_filter *f)
{
    const bool wide = countmin_wide(f);
    uint64_t sum = 0;
    if (f->shape.p[COUNTMIN_UPDATE] != COUNTMIN_PLAIN)
        return false;
    for (uint64_t i = 0; i < f->shape.p[COUNTMIN_WIDTH]; i++)
        sum += countmin_load(f->data, i, wide);
    f->state[COUNTMIN_TOTAL] = sum;
    return true;
}

/* The sum of a row, UINT64_MAX at most. */
static uint64_t countmin_row_sum(const bly_filter *f, uint64_t row)
{
    const bool wide = countmin_wide(f);
    const uint64_t w = f->shape.p[COUNTMIN_WIDTH];
    uint64_t sum = 0;
    for (uint64_t i = row * w; i < (row + 1) * w; i++) {
        const uint64_t c = countmin_load(f->data, i, wide);
        sum = c > UINT64_MAX - sum ? UINT64_MAX : sum + c;
    }
    return sum;
}

/* An addition that was not finished is in some rows only. The others get it in
 * whatever counters have room for it: no count is too low. */
void bly_countmin_mend(bly_filter *f)
{
    const bool wide = countmin_wide(f);
    const uint64_t w = f->shape.p[COUNTMIN_WIDTH],
                   d = f->shape.p[COUNTMIN_DEPTH];
    uint64_t most = 0;
    for (uint64_t row = 0; row < d; row++) {
        const uint64_t sum = countmin_row_sum(f, row);
        most = sum > most ? sum : most;
    }
    for (uint64_t row = 0; row < d; row++) {
        uint64_t lacks = most - countmin_row_sum(f, row);
        for (uint64_t i = row * w; lacks && i < (row + 1) * w; i++) {
            const uint64_t c = countmin_load(f->data, i, wide);
            const uint64_t room = (wide ? UINT64_MAX : UINT32_MAX) - c;
            const uint64_t more = lacks < room ? lacks : room;
            countmin_store(f->data, i, c + more, wide);
            lacks -= more;
        }
    }
    f->state[COUNTMIN_TOTAL] = most;
}

static double countmin_row_used(const bly_filter *f, uint64_t row)
{
    const bool wide = countmin_wide(f);
    const uint64_t w = f->shape.p[COUNTMIN_WIDTH];
    uint64_t used = 0;
    for (uint64_t i = row * w; i < (row + 1) * w; i++)
        used += countmin_load(f->data, i, wide) > 0;
    return (double)used;
}

/* A counter above 0 is a bit that is set, in a filter of d slices. */
void bly_countmin_stat(const bly_filter *f, bly_stats *out)
{
    const double w = (double)f->shape.p[COUNTMIN_WIDTH];
    const double d = (double)f->shape.p[COUNTMIN_DEPTH];
    double used = 0, rate = 1;
    for (uint64_t row = 0; row < f->shape.p[COUNTMIN_DEPTH]; row++) {
        const double in_row = countmin_row_used(f, row);
        used += in_row;
        rate *= in_row / w;
    }
    const bly_estimate n = bly_estimate_items(used, w * d, d);
    out->fill = used / (w * d);
    out->items_estimate = n.value;
    out->items_sd = n.sd;
    out->fpr_now = rate;
}

/* Can the counters of a part be added to those of dst? */
static bly_status countmin_holds(const bly_filter *dst, const bly_part *p)
{
    const bool wide = countmin_wide(dst);
    const uint64_t max = wide ? UINT64_MAX : UINT32_MAX;
    const unsigned char *const cells = dst->data + p->at;
    if (countmin_total(p->src) > UINT64_MAX - countmin_total(dst))
        return bly_fail(BLY_ERANGE, "all counts together would pass 2^64 - 1");
    /* All counters are looked at before the first is changed. */
    for (uint64_t i = 0; i < p->nbytes / (wide ? 8 : 4); i++)
        if (countmin_load(p->bytes, i, wide) >
            max - countmin_load(cells, i, wide))
            return bly_fail(BLY_ERANGE, "a counter of the sum would pass "
                                        "2^32 - 1: use counter=64");
    return BLY_OK;
}

bly_status bly_countmin_merge_part(bly_filter *dst, const bly_part *p)
{
    const bool wide = countmin_wide(dst);
    unsigned char *const cells = dst->data + p->at;
    const bly_status st = countmin_holds(dst, p);
    if (st)
        return st;
    for (uint64_t i = 0; i < p->nbytes / (wide ? 8 : 4); i++)
        countmin_store(cells, i,
                       countmin_load(cells, i, wide) +
                           countmin_load(p->bytes, i, wide),
                       wide);
    if (p->last) {
        dst->state[COUNTMIN_TOTAL] += countmin_total(p->src);
        bly_filter_added(dst, p->src->nadded);
    }
    return BLY_OK;
}

bly_status bly_countmin_merge(bly_filter *dst, const bly_filter *src)
{
    const bly_part all = bly_part_of(src);
    /* dst would inherit the damage: its rows must sum up to its N, too. */
    if (!bly_countmin_check(src))
        return bly_fail(BLY_EFORMAT, "the countmin sketch to be merged is "
                                     "damaged: its counters and its total "
                                     "do not agree");
    return bly_countmin_merge_part(dst, &all);
}

/* Places are scaled, so counters 2j and 2j + 1 of a row become one. Their sum
 * is what plain update would have counted there. With conservative update a
 * counter need only be no less than the count of any of its keys, so the
 * greater of the two will do. */
bly_status bly_countmin_fold(const bly_filter *f, bly_filter **out)
{
    const bool wide = countmin_wide(f);
    const bool sum = f->shape.p[COUNTMIN_UPDATE] == COUNTMIN_PLAIN;
    const uint64_t max = wide ? UINT64_MAX : UINT32_MAX;
    bly_shape half = bly_shape_of(f);
    half.p[COUNTMIN_WIDTH] /= 2;
    half.nbytes /= 2;
    bly_status st = bly_fold_begin(f, f->shape.p[COUNTMIN_WIDTH],
                                   "counters of a row", &half, out);
    for (uint64_t i = 0; !st && i < half.nbytes / (wide ? 8 : 4); i++) {
        const uint64_t a = countmin_load(f->data, 2 * i, wide);
        const uint64_t b = countmin_load(f->data, 2 * i + 1, wide);
        if (sum && a > max - b)
            st = bly_fail(BLY_ERANGE, "folded in half, a counter would pass "
                                      "2^32 - 1: use counter=64");
        countmin_store((*out)->data, i, sum ? a + b : a > b ? a : b, wide);
    }
    if (st) {
        bly_free(*out);
        *out = NULL;
        return st;
    }
    (*out)->state[COUNTMIN_TOTAL] = countmin_total(f);
    return BLY_OK;
}

/* The number of distinct keys follows from the counters in use. The inner
 * product, which is the sum over all keys of one count times the other, is at
 * most the smallest of the products of rows [1]. */
bly_status bly_countmin_compare(const bly_filter *a, const bly_filter *b,
                                bly_likeness *out)
{
    const bool wide = countmin_wide(a);
    const uint64_t w = a->shape.p[COUNTMIN_WIDTH];
    const uint64_t d = a->shape.p[COUNTMIN_DEPTH];
    bly_ones ones = { 0 };
    double inner = INFINITY;
    for (uint64_t row = 0; row < d; row++) {
        double product = 0;
        for (uint64_t i = row * w; i < (row + 1) * w; i++) {
            const uint64_t in_a = countmin_load(a->data, i, wide);
            const uint64_t in_b = countmin_load(b->data, i, wide);
            ones.a += in_a > 0;
            ones.b += in_b > 0;
            ones.either += in_a > 0 || in_b > 0;
            product += (double)in_a * (double)in_b;
        }
        inner = fmin(inner, product);
    }
    bly_likeness_of_ones(&ones, (double)w * (double)d, (double)d, INFINITY,
                         out);
    out->inner = inner;
    return BLY_OK;
}
