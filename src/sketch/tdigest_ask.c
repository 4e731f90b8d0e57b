/*
 * tdigest_ask.c - which value has a rank, and which rank has a value
 *
 * Half of the weight of a mean lies on either side of it, so between two means
 * x and y with weights a and b the rank rises by (a + b) / 2, along a line. A
 * mean of weight 1 is a value that came: there the rank makes a step, half of
 * which is on either side, and the line connects what is left.
 *
 *     rank    .      .            .---- b > 1: at y, b / 2 to go
 *             .      .      . ' '
 *             .      |. ' '  <- line
 *             .      | 1/2
 *     -------------- x ---------- y ------
 */
#include <math.h>

#include "sketch/tdigest_merge.h"

/* The deviation of a rank as a share of the mean's weight there, as measured
 * (docs/quantiles.md), besides the half that any rank may be off. */
#define TDIGEST_ERROR 0.1

/* Between x and y, as many shares away from x as v, and from y as u. Two values
 * may be further apart than a double goes, and shares that follow from weights
 * past 2^53 may be below 0. */
static double tdigest_between(double x, double u, double y, double v)
{
    u = fmax(u, 0);
    v = fmax(v, 0);
    const double sum = u + v;
    if (sum == 0)
        return y;
    double mean = (x * u + y * v) / sum;
    if (!isfinite(mean))
        mean = x * (u / sum) + y * (v / sum);
    return mean < x ? x : mean > y ? y : mean;
}

/* The share of the way from a to b that v has gone. */
static double tdigest_part(double a, double v, double b)
{
    return isfinite(b - a) ? (v - a) / (b - a)
                           : (v / 2 - a / 2) / (b / 2 - a / 2);
}

static bool tdigest_is_empty(const bly_tdigest *t)
{
    return !(t->nmerged + t->nwaiting);
}

/* Is there one value alone, however often it came? It may still wait. */
static bool tdigest_is_one(const bly_tdigest *t)
{
    return t->min == t->max;
}

double bly_tdigest_quantile(bly_tdigest *t, double q)
{
    if (tdigest_is_empty(t) || !(q >= 0 && q <= 1))
        return NAN;
    bly_tdigest_settle(t);
    if (tdigest_is_one(t))
        return t->min;
    const double *const x = t->means, *const w = bly_tdigest_weights(t);
    const double total = t->merged_weight, index = q * total;
    const size_t last = t->nmerged - 1;
    if (index < 1)
        return t->min;
    if (index > total - 1)
        return t->max;
    if (w[0] > 1 && index < w[0] / 2)
        return tdigest_between(t->min, w[0] / 2 - index, x[0], index - 1);
    if (w[last] > 1 && total - index <= w[last] / 2)
        return tdigest_between(x[last], total - index - 1, t->max,
                               w[last] / 2 - (total - index));
    double below = w[0] / 2;
    for (size_t i = 0; i < last; i++) {
        const double step = (w[i] + w[i + 1]) / 2;
        if (below + step > index) {
            const double past = index - below, left = below + step - index;
            const bool is_left = w[i] == 1, is_right = w[i + 1] == 1;
            if (is_left && past < 0.5)
                return x[i];
            if (is_right && left <= 0.5)
                return x[i + 1];
            return tdigest_between(x[i], left - (is_right ? 0.5 : 0), x[i + 1],
                                   past - (is_left ? 0.5 : 0));
        }
        below += step;
    }
    return tdigest_between(x[last], total - index - 1, t->max,
                           w[last] / 2 - (total - index));
}

double bly_tdigest_cdf(bly_tdigest *t, double value)
{
    if (tdigest_is_empty(t) || isnan(value))
        return NAN;
    bly_tdigest_settle(t);
    if (value < t->min)
        return 0;
    if (value > t->max)
        return 1;
    if (tdigest_is_one(t))
        return 0.5;
    const double *const x = t->means, *const w = bly_tdigest_weights(t);
    const double total = t->merged_weight;
    const size_t last = t->nmerged - 1;
    if (value < x[0])
        return value == t->min
                   ? 0.5 / total
                   : (1 + tdigest_part(t->min, value, x[0]) * (w[0] / 2 - 1)) /
                         total;
    if (value > x[last])
        return value == t->max ? 1 - 0.5 / total
                               : 1 - (1 + tdigest_part(t->max, value, x[last]) *
                                              (w[last] / 2 - 1)) /
                                         total;
    double below = 0;
    for (size_t i = 0; i <= last; i++) {
        if (x[i] == value) {
            if (i == last && t->scale == BLY_TDIGEST_REDISBLOOM)
                break; /* as if it were one value */
            double same = 0;
            for (; i <= last && x[i] == value; i++)
                same += w[i];
            return (below + same / 2) / total;
        }
        if (i < last && x[i] < value && value < x[i + 1]) {
            const bool is_left = w[i] == 1, is_right = w[i + 1] == 1;
            if (is_left && is_right)
                return (below + 1) / total;
            const double step = (w[i] + w[i + 1]) / 2 - (is_left ? 0.5 : 0) -
                                (is_right ? 0.5 : 0);
            const double part = step * (value - x[i]) / (x[i + 1] - x[i]);
            return (below + w[i] / 2 + (is_left ? 0.5 : 0) +
                    (isfinite(part)
                         ? part
                         : step * tdigest_part(x[i], value, x[i + 1]))) /
                   total;
        }
        below += w[i];
    }
    return 1 - 0.5 / total;
}

double bly_tdigest_rank(bly_tdigest *t, double value)
{
    return bly_tdigest_cdf(t, value) * (t->merged_weight + t->waiting_weight);
}

double bly_tdigest_trimmed_mean(bly_tdigest *t, double low, double high)
{
    if (tdigest_is_empty(t) || !(low >= 0 && low < high && high <= 1))
        return NAN;
    bly_tdigest_settle(t);
    if (tdigest_is_one(t))
        return t->min;
    const double *const x = t->means, *const w = bly_tdigest_weights(t);
    const double from = floor(low * t->merged_weight);
    const double to = ceil(high * t->merged_weight);
    double below = 0, sum = 0, count = 0;
    for (size_t i = 0; i < t->nmerged && below < to; i++) {
        const double begin = fmax(below, from);
        const double part = fmin(below + w[i], to) - begin;
        if (part > 0) {
            sum += x[i] * part;
            count += part;
        }
        below += w[i];
    }
    return sum / count;
}

double bly_tdigest_deviation(bly_tdigest *t, double q)
{
    if (tdigest_is_empty(t) || !(q >= 0 && q <= 1))
        return NAN;
    bly_tdigest_settle(t);
    const double *const x = t->means, *const w = bly_tdigest_weights(t);
    const double index = q * t->merged_weight;
    const size_t last = t->nmerged - 1;
    size_t i = 0, from, to;
    if (tdigest_is_one(t))
        return 0;
    for (double below = w[0]; i < last && below < index; below += w[i])
        i++;
    for (from = i; from && x[from - 1] == x[i];)
        from--;
    for (to = i; to < last && x[to + 1] == x[i];)
        to++;
    /* Of a value with several means it is uncertain where it ends. */
    const double heavy =
        from == to ? w[i]
                   : fmax(from ? w[from - 1] : 1, to < last ? w[to + 1] : 1);
    return heavy > 1 ? (heavy * TDIGEST_ERROR + 0.5) / t->merged_weight : 0;
}
