/*
 * banding.c - which pairs of many are worth comparing
 *
 * k components in b bands of r. Texts that agree in all of a band are a
 * candidate pair, so sorting by the keys of bands finds them without looking at
 * all pairs. Components agree with probability s, the likeness, so a pair is
 * found with probability
 *
 *     P(s) = 1 - (1 - s^r)^b
 *
 * a step that is steeper the larger r and b are [1]. Candidates are compared
 * afterwards: one too many costs time, one too few is lost. So r is the largest
 * for which the pairs at the threshold are still found. k = 128, threshold 0.8,
 * recall 0.995: 21 bands of 6, P(0.8) = 0.9983 and P(0.5) = 0.28.
 *
 * [1] Indyk and Motwani, Approximate nearest neighbors, 1998
 */
#include <math.h>

#include "core/bits.h"
#include "core/status.h"
#include "sketch/sketches.h"

#define DEFAULT_RECALL 0.995
#define AREA_STEPS 512 /* on either side of the threshold */

double bly_bands_chance(bly_bands b, double likeness)
{
    const double s = fmin(fmax(likeness, 0), 1);
    return -expm1(b.bands * log1p(-pow(s, b.rows)));
}

static bly_status bands_check(unsigned k, double threshold)
{
    if (k < 1 || k > BLY_MAX_COMPONENTS)
        return bly_fail(BLY_EINVAL, "a sketch has 1 to %d components, not %u",
                        BLY_MAX_COMPONENTS, k);
    if (!(threshold > 0 && threshold <= 1))
        return bly_fail(BLY_EINVAL,
                        "a threshold is above 0 and at most 1, not %g",
                        threshold);
    return BLY_OK;
}

bly_status bly_bands_choose(unsigned k, double threshold, double recall,
                            bly_bands *out)
{
    if (!out)
        return bly_fail_null("out");
    const double want = recall == 0 ? DEFAULT_RECALL : recall;
    const bly_status st = bands_check(k, threshold);
    if (st)
        return st;
    if (!(want > 0 && want < 1))
        return bly_fail(BLY_EINVAL, "recall is above 0 and below 1, not %g",
                        want);
    for (unsigned r = k; r >= 1; r--) {
        const bly_bands b = { k / r, r };
        if (bly_bands_chance(b, threshold) >= want) {
            *out = b;
            return BLY_OK;
        }
    }
    return bly_fail(BLY_EINVAL,
                    "%u components find a pair of likeness %g with a "
                    "probability of at most %.4g, not %g; use more of them",
                    k, threshold,
                    bly_bands_chance((bly_bands){ k, 1 }, threshold), want);
}

/* Candidates below the threshold and pairs missed above, as areas. */
static double wrong_area(bly_bands b, double threshold)
{
    double area = 0;
    for (unsigned i = 0; i < AREA_STEPS; i++) {
        const double at = (i + 0.5) / AREA_STEPS;
        area += threshold * bly_bands_chance(b, threshold * at);
        area += (1 - threshold) *
                (1 - bly_bands_chance(b, threshold + (1 - threshold) * at));
    }
    return area / AREA_STEPS;
}

bly_status bly_bands_balance(unsigned k, double threshold, bly_bands *out)
{
    if (!out)
        return bly_fail_null("out");
    const bly_status st = bands_check(k, threshold);
    if (st)
        return st;
    bly_bands best = { 1, 1 };
    double least = INFINITY;
    for (unsigned r = 1; r <= k; r++) {
        for (unsigned n = 1; n * r <= k; n++) {
            const bly_bands b = { n, r };
            const double area = wrong_area(b, threshold);
            if (area < least) {
                least = area;
                best = b;
            }
        }
    }
    *out = best;
    return BLY_OK;
}

/* Not the sum of components: minima are small numbers, and sums of them meet
 * where texts do not. */
void bly_bands_keys(bly_bands b, const uint32_t *components, uint64_t *keys)
{
    uint32_t le[BLY_MAX_COMPONENTS];
    bly_hasher by = { .id = BLY_HASH_XXH3 };
    for (unsigned i = 0; i < b.bands; i++) {
        const uint32_t *const at = components + (size_t)i * b.rows;
        for (unsigned j = 0; j < b.rows && j < BLY_MAX_COMPONENTS; j++)
            le[j] = bly_le32(at[j]);
        by.seed = i;
        keys[i] = bly_hash(&by, le, b.rows * sizeof *le);
    }
}
