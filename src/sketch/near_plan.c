/*
 * near_plan.c - how many bands of how many bits find vectors that are close
 *
 * Two vectors at an angle theta agree in a bit with probability
 * p = 1 - theta / pi, and in one of b bands of r bits with 1 - (1 - p^r)^b. For
 * each r there is a least b that finds a pair at the threshold with the wanted
 * probability; what is closer is found more often still. A vector then costs
 *
 *     b (r dims F + B + N c(r) C / 2)
 *
 * where F is the time of a multiplication with an addition, B that of looking
 * into a bucket, and C that of comparing two sketches. c(r) is how likely any
 * two vectors are to share a bucket. In high dimensions nearly all vectors are
 * at right angles and c(r) = 2^-r; embeddings often lie in a cone, and then it
 * is larger, so it is taken from a sample. r is the number that costs least.
 * With T = 0.9, p = 0.8564; for 10^6 vectors of 384 coordinates at right angles
 * that gives 17 bits in 73 bands.
 *
 * Where comparing everything costs less, everything is compared.
 */
#include <math.h>

#include "core/status.h"
#include "sketch/near.h"

/* Nanoseconds, measured with AVX-512; only ratios matter. */
#define COST_PRODUCT 0.01
#define COST_BUCKET 25
#define COST_SKETCHES 12
#define COST_EXACT 0.1 /* per coordinate, of comparing two vectors */

#define MOST_ROWS 24
#define DEFAULT_RECALL 0.995

/* Sketches that differ in more bits than a pair at the threshold does, by four
 * deviations, are not compared further: of those at the threshold, one in
 * 30,000 is lost that way. */
#define DEVIATIONS 4
#define LOST 3.2e-5

static double shared(const near_sample *s, unsigned rows)
{
    double sum = 0;
    for (unsigned d = 0; d <= NEAR_SAMPLE_BITS; d++)
        if (s->differ[d])
            sum += (double)s->differ[d] *
                   pow(1 - (double)d / NEAR_SAMPLE_BITS, rows);
    return s->pairs ? sum / (double)s->pairs : pow(0.5, rows);
}

bly_status bly_near_choose(const bly_near_spec *spec, const near_sample *sample,
                           size_t n, size_t dims, near_plan *out)
{
    const double pi = 3.14159265358979323846;
    const double q = fmax(acos(spec->threshold) / pi, 1e-4), p = 1 - q;
    const double all = (double)n / 2 * (double)dims * COST_EXACT;
    double least = all;
    near_plan best = { .recall = 1 };
    bool any = false;
    for (unsigned r = 1; r <= MOST_ROWS && (r == 1 || n >> (r - 1)); r++) {
        const double each = pow(p, r);
        const double b = ceil(log((1 - spec->recall) - LOST) / log1p(-each));
        if (!(b >= 1 && b * r <= BLY_PLANES_MOST_BITS))
            continue;
        any = true;
        const double cost =
            b * (r * (double)dims * COST_PRODUCT + COST_BUCKET +
                 (double)n * shared(sample, r) * COST_SKETCHES / 2);
        if (cost >= least)
            continue;
        least = cost;
        best.bands = (unsigned)b;
        best.rows = r;
        best.nbits = ((unsigned)b * r + 63) / 64 * 64;
        best.recall = -expm1(b * log1p(-each)) - LOST;
    }
    if (!any)
        return bly_fail(BLY_EINVAL,
                        "sketches of %d bits cannot find pairs at a cosine of "
                        "%g with a probability of %g",
                        BLY_PLANES_MOST_BITS, spec->threshold, spec->recall);
    const double m = best.nbits;
    best.limit = (unsigned)(m * q + DEVIATIONS * sqrt(m * q * p)) + 2;
    *out = best;
    return BLY_OK;
}
