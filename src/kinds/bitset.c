/*
 * bitset.c - what kinds whose data is one array of bits share
 */
#include <math.h>

#include "core/bits.h"
#include "engine/bit_count.h"
#include "kinds/bitset.h"

void bly_bitset_stat(const bly_filter *f, bly_stats *out)
{
    const bly_bitset b = f->kind->bitset(f);
    const double ones = (double)bly_bits_count(b.words, b.nwords);
    const bly_estimate n = bly_estimate_items_lanes(ones, b.m, b.k, b.width);
    out->fill = ones / b.m;
    out->items_estimate = n.value;
    out->items_sd = n.sd;
    out->fpr_now = pow(out->fill, b.k);
}

void bly_likeness_of_ones(const bly_ones *ones, double m, double k,
                          double width, bly_likeness *out)
{
    const double least = fmin(ones->a, ones->b);
    const bly_estimate na = bly_estimate_items_lanes(ones->a, m, k, width);
    const bly_estimate nb = bly_estimate_items_lanes(ones->b, m, k, width);
    const bly_estimate nu = bly_estimate_items_lanes(ones->either, m, k, width);
    const bly_estimate common =
        bly_estimate_common_lanes(ones->a, ones->b, ones->either, m, k, width);

    *out = (bly_likeness){
        .a = na.value,
        .a_sd = na.sd,
        .b = nb.value,
        .b_sd = nb.sd,
        .in_either = nu.value,
        .in_either_sd = nu.sd,
        .in_both = common.value,
        .in_both_sd = common.sd,
        .jaccard = nu.value > 0 ? common.value / nu.value : 0,
        /* The share of the smaller set that is in the other one, too. */
        .containment = fmin(na.value, nb.value) > 0
                           ? common.value / fmin(na.value, nb.value)
                           : 0,
        /* The number of ones in the AND is that of a plus that of b, minus that
         * of the OR. So the AND need not be computed. */
        .shared_cells =
            least > 0 ? (ones->a + ones->b - ones->either) / least : 0,
        /* What two sets of these sizes would share with no key in common. */
        .chance_cells =
            least > 0 ? bly_expected_and(na.value, nb.value, 0, m, k) / least
                      : 0,
        .inner = NAN,
    };
}

/* Two sets of n fingerprints share some by chance. Their number is a small
 * integer, so its distribution is skewed, and plain standard deviations are too
 * narrow. With this much added to the variance, three deviations cover 99 cases
 * in 100 however few are expected (docs/maths.md, "Fingerprints"). */
#define CHANCE_VARIANCE 0.3

static void widen(double *sd)
{
    *sd = sqrt(*sd * *sd + CHANCE_VARIANCE);
}

void bly_likeness_of_prints(const bly_ones *used, double range,
                            bly_likeness *out)
{
    /* A fingerprint is a cell of a filter with k = 1. */
    bly_likeness_of_ones(used, range, 1, INFINITY, out);
    widen(&out->a_sd);
    widen(&out->b_sd);
    widen(&out->in_either_sd);
    widen(&out->in_both_sd);
}

bly_status bly_bitset_compare(const bly_filter *a, const bly_filter *b,
                              bly_likeness *out)
{
    const bly_bitset sa = a->kind->bitset(a), sb = b->kind->bitset(b);
    const bly_ones ones = {
        .a = (double)bly_bits_count(sa.words, sa.nwords),
        .b = (double)bly_bits_count(sb.words, sb.nwords),
        .either = (double)bly_bits_count_or(sa.words, sb.words, sa.nwords),
    };
    bly_likeness_of_ones(&ones, sa.m, sa.k, sa.width, out);
    return BLY_OK;
}

void bly_bitset_recount(bly_filter *f)
{
    bly_stats stats;
    bly_bitset_stat(f, &stats);
    /* With all bits set the estimate is infinite; then the old count stays. */
    if (isfinite(stats.items_estimate))
        f->nadded = (uint64_t)(stats.items_estimate + 0.5);
}

bly_status bly_bitset_merge_part(bly_filter *dst, const bly_part *p)
{
    bly_bits_or((uint64_t *)(void *)(dst->data + p->at),
                (const uint64_t *)(const void *)p->bytes,
                (size_t)(p->nbytes / sizeof(uint64_t)));
    /* Counting reads the whole array: once, when all parts are in. */
    if (p->last)
        bly_bitset_recount(dst);
    return BLY_OK;
}

bly_status bly_bitset_intersect_part(bly_filter *dst, const bly_part *p)
{
    bly_bits_and((uint64_t *)(void *)(dst->data + p->at),
                 (const uint64_t *)(const void *)p->bytes,
                 (size_t)(p->nbytes / sizeof(uint64_t)));
    if (p->last)
        bly_bitset_recount(dst);
    return BLY_OK;
}

bly_status bly_bitset_merge(bly_filter *dst, const bly_filter *src)
{
    const bly_part all = bly_part_of(src);
    return bly_bitset_merge_part(dst, &all);
}

bly_status bly_bitset_intersect(bly_filter *dst, const bly_filter *src)
{
    const bly_part all = bly_part_of(src);
    return bly_bitset_intersect_part(dst, &all);
}

uint64_t bly_bitset_raw(const bly_shape *s)
{
    return s->p[0];
}
