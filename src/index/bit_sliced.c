/*
 * bit_sliced.c - sizes and rates of the filters of an index, and its plan
 *
 * With k rows per term, a filter of m bits with n terms has a share of
 * 1 - (1 - 1/m)^(kn) of ones, and the rate p is the k-th power of that. For a
 * given p the fewest bits are near k = log2(1/p); one row less costs few bits,
 * and each row that is not read saves time, so the least k is taken that needs
 * at most 2 % more bits than the best: 2 rows and 2.52 bits for p = 0.3, 8 rows
 * and 14.6 bits instead of 10 rows and 14.4 for p = 0.001.
 *
 * What a class costs as long as it is kept, in seconds, for D documents of n
 * terms, q questions of t independent terms, an opening of s seconds, and v
 * seconds that a byte of index is worth:
 *
 *     D n bits(p) / 8 * v  +  q D p^t s
 *
 * The first falls with p and the second rises, both smoothly except where k
 * changes, so the minimum is searched on a grid of ratios of 2^(1/8).
 */
#include <math.h>
#include <string.h>

#include "core/sized.h"
#include "core/status.h"
#include "index/bit_sliced.h"

double bly_sliced_bits(double fpr, uint32_t k)
{
    return -(double)k / log1p(-pow(fpr, 1.0 / k));
}

uint32_t bly_sliced_k(double fpr)
{
    double best = bly_sliced_bits(fpr, 1);
    for (uint32_t k = 2; k <= SLICED_K_MOST; k++)
        best = fmin(best, bly_sliced_bits(fpr, k));
    uint32_t k = 1;
    while (bly_sliced_bits(fpr, k) > 1.02 * best)
        k++;
    return k;
}

uint64_t bly_sliced_rows(double bits)
{
    const uint64_t least = 32;
    if (!(bits > (double)least))
        return least;
    if (bits >= (double)SLICED_ROWS_MOST)
        return SLICED_ROWS_MOST;
    const uint64_t need = (uint64_t)ceil(bits);
    const unsigned low = 59 - (unsigned)__builtin_clzll(need); /* five stay */
    const uint64_t step = UINT64_C(1) << low;
    return (need + step - 1) & ~(step - 1);
}

double bly_sliced_rate(uint64_t m, uint32_t k, uint64_t n)
{
    return pow(-expm1((double)k * (double)n * log1p(-1.0 / (double)m)), k);
}

static bly_status plan_check(const bly_index_wish *wish)
{
    const double fields[] = { wish->terms, wish->asked, wish->questions,
                              wish->opening, wish->byte };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (!(fields[i] >= 0 && fields[i] <= 1e18))
            return bly_fail(BLY_EINVAL, "the numbers of a plan are from 0 to "
                                        "1e18");
    if (!(wish->fpr >= 0 && wish->fpr < 1))
        return bly_fail(BLY_EINVAL,
                        "a rate of %g: it must be above 0 and below 1",
                        wish->fpr);
    return BLY_OK;
}

static bly_index_plan plan_of(const bly_index_wish *wish, double p)
{
    const double ndocs = (double)wish->documents;
    bly_index_plan plan = { .fpr = p, .k = bly_sliced_k(p) };
    plan.bits = bly_sliced_bits(p, plan.k);
    /* The ladder of sizes adds a thirty-second. */
    const double nbytes = ndocs * wish->terms * plan.bits / 8 * (33.0 / 32);
    plan.nbytes = nbytes < 0x1p62 ? (uint64_t)nbytes : UINT64_C(1) << 62;
    plan.opened = ndocs * pow(p, wish->asked);
    plan.cost =
        nbytes * wish->byte + wish->questions * plan.opened * wish->opening;
    return plan;
}

bly_status bly_index_plan_for_sized(const bly_index_wish *wish,
                                    size_t wish_size, bly_index_plan *out,
                                    size_t size)
{
    bly_index_wish own;
    if (!out)
        return bly_fail_null("out");
    wish = BLY_TAKE(wish, wish_size, &own);
    const bly_status st = wish ? plan_check(wish) : BLY_EINVAL;
    if (st)
        return st;
    bly_index_wish l = *wish;
    l.documents = l.documents ? l.documents : 10000;
    l.terms = l.terms > 0 ? l.terms : 75000;
    l.asked = l.asked > 0 ? l.asked : 1;
    l.questions = l.questions > 0 ? l.questions : 1000;
    l.opening = l.opening > 0 ? l.opening : 0.001;
    l.byte = l.byte > 0 ? l.byte : 1e-6;
    bly_index_plan best = plan_of(&l, l.fpr > 0 ? l.fpr : 0.5);
    for (int i = 9; !(l.fpr > 0) && i <= 8 * 40; i++) {
        const bly_index_plan next = plan_of(&l, exp2(-i / 8.0));
        if (next.cost < best.cost)
            best = next;
    }
    BLY_GIVE(&best, out, size);
    return BLY_OK;
}
