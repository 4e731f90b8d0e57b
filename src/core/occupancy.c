/*
 * occupancy.c - how many balls were thrown, from how many urns look hit
 *
 * The number J of urns hit grows with each ball by one, or stays:
 *
 *     P(j | x+1) = P(j | x) j/l + P(j-1 | x) (l-j+1)/l
 *
 * from P(0 | 0) = 1, which gives all of them without Stirling numbers.
 */
#include <math.h>

#include "core/occupancy.h"

uint64_t bly_occupancy_mle(unsigned l, double f, unsigned theta)
{
    double hit[BLY_MAX_URNS + 1] = { 1 };   /* P(J = j | x) for j <= theta */
    double looks[BLY_MAX_URNS + 1] = { 0 }; /* C(l-j, theta-j) f^(theta-j) */
    if (theta >= l)
        return BLY_OCCUPANCY_ALL;
    /* From j = theta downwards, C(l-j+1, i+1) = C(l-j, i) (l-j+1) / (i+1). The
     * factor (1-f)^(l-theta) is the same for all x. */
    looks[theta] = 1;
    for (unsigned j = theta; j > 0; j--)
        looks[j - 1] =
            looks[j] * f * (double)(l - j + 1) / (double)(theta - j + 1);

    /* The likelihood rises to one top and falls; all but the last urn are hit
     * after l ln l balls or so, and no top is much beyond. */
    const uint64_t end = (uint64_t)(16 * l * (1 + log(l)));
    double best = 0;
    for (uint64_t x = 0; x < end; x++) {
        double likely = 0;
        for (unsigned j = 0; j <= theta; j++)
            likely += hit[j] * looks[j];
        if (likely < best)
            return x - 1;
        best = likely;
        for (unsigned j = theta; j > 0; j--)
            hit[j] = hit[j] * j / l + hit[j - 1] * (l - j + 1) / l;
        hit[0] = 0;
    }
    return end;
}

uint64_t bly_occupancy_mean(unsigned l, double f, unsigned theta)
{
    if (theta >= l)
        return BLY_OCCUPANCY_ALL;
    if (theta <= l * f)
        return 0;
    if (l == 1)
        return 0; /* theta is 0 */
    const double stay = 1 - 1.0 / l;
    const double x = log((double)(l - theta) / (l * (1 - f))) / log(stay);
    /* Of the two whole numbers around x, the one whose expectation is nearer,
     * which is not quite the nearer number. */
    const double low = floor(x);
    const double below = theta - l * (1 - (1 - f) * pow(stay, low));
    const double above = l * (1 - (1 - f) * pow(stay, low + 1)) - theta;
    return (uint64_t)(below <= above ? low : low + 1);
}
