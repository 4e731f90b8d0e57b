/*
 * maths.c - the numbers of Bloom filters
 *
 * Where a formula subtracts numbers that are nearly equal it is written with
 * expm1 and log1p, or summed in wide reals with compensation; test_maths.c
 * holds the values to ten digits.
 *
 * Bose et al., On the false-positive rate of Bloom filters, 2008
 * Putze, Sanders and Singler, Cache-, hash- and space-efficient Bloom
 *   filters, 2007 (the mixture over block loads)
 * Swamidass and Baldi, Mathematical correction for fingerprint similarity
 *   measures, 2007 (the estimate of n)
 * Broder and Mitzenmacher, Network applications of Bloom filters: a survey,
 *   2004 (the size of an intersection from three counts of zeros)
 */
#include <math.h>

#include "core/maths.h"
#include "core/wide.h"

static const double LN2 = 0.693147180559945309417;

/* (1 - e^x)^k for x <= 0, exact for small |x|. */
static double filled_pow(double x, double k)
{
    return pow(-expm1(x), k);
}

double bly_fpr_approx(double n, double m, double k)
{
    return filled_pow(-k * n / m, k);
}

double bly_fpr_classic(double n, double m, double k)
{
    if (m <= 1)
        return n > 0 ? 1 : 0;
    return filled_pow(k * n * log1p(-1 / m), k);
}

double bly_fpr_partitioned(double n, double s, double k)
{
    if (s <= 1)
        return n > 0 ? 1 : 0;
    return filled_pow(n * log1p(-1 / s), k);
}

double bly_fpr_exact(double n, double m, unsigned k)
{
    if (k > BLY_FPR_EXACT_MAX_K || n <= 0)
        return bly_fpr_classic(n, m, k);

    /* p[j]: the probability that k probes name j distinct cells, built one
     * probe at a time: S2(k,j) m(m-1)..(m-j+1) / m^k without big numbers. */
    bly_wide p[BLY_FPR_EXACT_MAX_K + 1] = { 1 };
    for (unsigned probe = 0; probe < k; probe++) {
        for (unsigned j = probe + 1; j > 0; j--)
            p[j] = p[j] * j / m +
                   p[j - 1] * BLY_WIDE(fmax)(0, (bly_wide)m - (j - 1)) / m;
        p[0] = 0;
    }

    bly_wide sum = 0, lost = 0;
    for (unsigned j = 1; j <= k && j <= m; j++) {
        /* P(j given bits are all set), by inclusion and exclusion. */
        bly_wide all = 0, all_lost = 0, choose = 1;
        for (unsigned i = 0; i <= j; i++) {
            const bly_wide clear =
                i < m ? BLY_WIDE(exp)((bly_wide)k * n *
                                      BLY_WIDE(log1p)(-(bly_wide)i / m))
                      : 0;
            const bly_wide term = (i % 2 ? -choose : choose) * clear;
            const bly_wide y = term - all_lost, t = all + y;
            all_lost = (t - all) - y;
            all = t;
            choose = choose * (j - i) / (i + 1);
        }
        const bly_wide y = p[j] * all - lost, t = sum + y;
        lost = (t - sum) - y;
        sum = t;
    }
    /* The terms reach 2^k, so 2^k BLY_WIDE_EPSILON of the sum is noise. If that
     * may be more than a thousandth of it, the classic value is nearer. */
    if (sum < BLY_WIDE(ldexp)(BLY_WIDE_EPSILON, (int)k + 10))
        return bly_fpr_classic(n, m, k);
    return (double)BLY_WIDE(fmin)(1, sum);
}

/* Past this mean a block's load varies by less than 0.1 %: taken as fixed. */
#define FIXED_LOAD 1e6

double bly_fpr_mixture(double n, double nblocks, double width, double hits,
                       double k)
{
    const double mean = nblocks > 1 ? n / nblocks : n;
    if (n <= 0)
        return 0;
    if (nblocks <= 1 || mean > FIXED_LOAD)
        return width > 1 ? filled_pow(mean * hits * log1p(-1 / width), k) : 1;
    /* 12 deviations and 40 more hold all but 1e-30. */
    const double spread = 12 * sqrt(mean) + 40;
    const double first = fmax(0, floor(mean - spread));
    const double last = fmin(ceil(mean + spread), n);
    const double miss = width > 1 ? hits * log1p(-1 / width) : -INFINITY;

    /* Start at the mode, where the weight is largest, and walk both ways by
     * the ratio of neighbours: one lgamma instead of hundreds, whose error
     * would grow with n. */
    const double mode = fmin(last, fmax(first, floor(mean)));
    const double top =
        exp(lgamma(n + 1) - lgamma(mode + 1) - lgamma(n - mode + 1) -
            mode * log(nblocks) + (n - mode) * log1p(-1 / nblocks));
    double sum = 0, total = 0, w = top;
    for (double i = mode; i <= last; i++) {
        sum += w * (i > 0 ? filled_pow(i * miss, k) : 0);
        total += w;
        w *= (n - i) / (i + 1) / (nblocks - 1);
    }
    w = top;
    for (double i = mode; i > first; i--) {
        w *= i / (n - i + 1) * (nblocks - 1);
        sum += w * (i > 1 ? filled_pow((i - 1) * miss, k) : 0);
        total += w;
    }
    /* Dividing by the sum of the weights cancels the rounding error of the
     * first. */
    return fmin(1, sum / total);
}

double bly_sent_bits(double n, double m, double k)
{
    /* Of e^-x, and for any x: the ones are q = 1 - e^-x, and the logarithm of
     * the zeros is -x. */
    const double x = k * n / m, q = -expm1(-x);
    return q > 0 ? m * (x * exp(-x) - q * log(q)) / LN2 : 0;
}

double bly_overflow_bound(double lambda, double j)
{
    return pow(exp(1) * lambda / j, j);
}

/* Summed from its first term on, which lies above the mean in all uses here, so
 * that terms fall. Below the mean, the sum of all terms before is subtracted
 * from one. */
double bly_poisson_tail(double lambda, double j)
{
    const double first = ceil(j);
    if (!(lambda > 0))
        return first <= 0 ? 1 : 0;
    if (first <= lambda) {
        double below = 0, term = exp(-lambda);
        for (double i = 0; i < first; i++) {
            below += term;
            term *= lambda / (i + 1);
        }
        return fmax(0, 1 - below);
    }
    double term = exp(first * log(lambda) - lambda - lgamma(first + 1));
    double sum = 0;
    for (double i = first; term > sum * 1e-17; i++) {
        sum += term;
        term *= lambda / (i + 1);
    }
    return sum;
}

bly_size bly_size_rule_a(double n, double p)
{
    const double m = ceil(-n * log(p) / (LN2 * LN2));
    return (bly_size){ m, (unsigned)fmin(255, fmax(1, round(m / n * LN2))) };
}

bly_size bly_size_rule_b(double n, double p)
{
    bly_size best = { INFINITY, 0 };
    for (unsigned k = 1; k <= 63; k++) {
        const double m = ceil(-(double)k * n / log1p(-pow(p, 1.0 / k)));
        if (m < best.m)
            best = (bly_size){ m, k };
    }
    return best;
}

unsigned bly_best_k(double n, double m)
{
    const double k = fmax(1, floor(m / n * LN2));
    if (k >= 255)
        return 255;
    return bly_fpr_approx(n, m, k + 1) < bly_fpr_approx(n, m, k)
               ? (unsigned)k + 1
               : (unsigned)k;
}

/* What two counts of zeros lose and gain in covariance, divided by m Px Py,
 * through the hits that both see (h per cell on average). The number of keys is
 * fixed, which costs k h; and a key that misses a block misses all its lanes at
 * once, which gives (k-1) width (e^(h/width) - 1). For cells anywhere: -h. */
static double joint_hits(double h, double k, double width)
{
    const double lanes = isinf(width) ? h : width * expm1(h / width);
    return (k - 1) * lanes - k * h;
}

bly_estimate bly_estimate_items_lanes(double ones, double m, double k,
                                      double width)
{
    if (ones >= m)
        return (bly_estimate){ INFINITY, INFINITY };
    const double hits = -log1p(-ones / m); /* kn/m */
    /* n moves by (m/k) / zeros for each zero: sd = (m/k) sd(zeros) / zeros. */
    const double var = expm1(hits) + joint_hits(hits, k, width);
    return (bly_estimate){ m / k * hits, sqrt(fmax(0, var) * m) / k };
}

double bly_common_sd_lanes(double only_a, double only_b, double common,
                           double m, double k, double width)
{
    const double a = k * only_a / m, b = k * only_b / m, c = k * common / m;
    /* Covariances of the zero counts of A, B and their OR, over m and over
     * the product of their means: P(a cell is clear in both) / (Px Py) - 1,
     * and the joint hits. */
    const double vaa = expm1(a + c) + joint_hits(a + c, k, width);
    const double vbb = expm1(b + c) + joint_hits(b + c, k, width);
    const double vuu = expm1(a + b + c) + joint_hits(a + b + c, k, width);
    const double vab = expm1(c) + joint_hits(c, k, width);
    /* A cell clear in the OR is clear in A: Cov(A, OR) is as Var(A). So of
     * vaa + vbb + vuu + 2 vab - 2 vau - 2 vbu this is left: */
    const double var = vuu - vaa - vbb + 2 * vab;
    return sqrt(fmax(0, var) * m) / k;
}

bly_estimate bly_estimate_common_lanes(double ones_a, double ones_b,
                                       double ones_or, double m, double k,
                                       double width)
{
    const double a = bly_estimate_items(ones_a, m, k).value;
    const double b = bly_estimate_items(ones_b, m, k).value;
    const double u = bly_estimate_items(ones_or, m, k).value;
    if (!isfinite(u))
        return (bly_estimate){ NAN, INFINITY };
    const double common = fmin(fmin(a, b), fmax(0, a + b - u));
    return (bly_estimate){ common, bly_common_sd_lanes(fmax(0, a - common),
                                                       fmax(0, b - common),
                                                       common, m, k, width) };
}

bly_estimate bly_estimate_items(double ones, double m, double k)
{
    return bly_estimate_items_lanes(ones, m, k, INFINITY);
}

/* With a = q^(k n1), b = q^(k n2): 1 - a - b + ab q^(-k common), written so
 * that nothing cancels where m is far larger than n, as for fingerprints. */
double bly_expected_and(double n1, double n2, double common, double m, double k)
{
    const double lq = log1p(-1 / m);
    return m * (expm1(k * n1 * lq) * expm1(k * n2 * lq) +
                exp(k * (n1 + n2) * lq) * expm1(-k * common * lq));
}
