/*
 * maths.h - the numbers of Bloom filters
 *
 * n keys, m cells, k probes per key throughout, as in the papers. All functions
 * take any finite arguments in their stated range and cannot fail.
 * docs/maths.md derives what is not in a paper.
 */
#ifndef BLY_MATHS_H
#define BLY_MATHS_H

#include <stdint.h>

/* -------------------------------------------------- false positive rates */

/* (1 - e^(-kn/m))^k: the textbook's. */
double bly_fpr_approx(double n, double m, double k);

/* (1 - (1 - 1/m)^(kn))^k: Bloom's own, probed bits taken as independent. */
double bly_fpr_classic(double n, double m, double k);

/* The true value for k independent probes (Bose et al. 2008), as a sum over
 * the number of distinct probes:
 *
 *   sum_j S2(k,j) m(m-1)..(m-j+1)/m^k  sum_i (-1)^i C(j,i) (1 - i/m)^(kn)
 *
 * Above k = BLY_FPR_EXACT_MAX_K, and below 2^(k-53), too many digits cancel:
 * bly_fpr_classic(). */
double bly_fpr_exact(double n, double m, unsigned k);
#define BLY_FPR_EXACT_MAX_K 24

/* k slices of s bits, one probe in each: (1 - (1 - 1/s)^n)^k. */
double bly_fpr_partitioned(double n, double s, double k);

/* Blocks: a key goes to one block, whose load varies from block to block, and
 * there to k groups of `width` cells each, which every key of the block hits
 * `hits` times. For a load of i keys the rate is (1 - (1 - 1/width)^(hits
 * i))^k; this is its mean over the binomial law of n keys over nblocks blocks.
 *
 * k bits anywhere in a block of B bits: width B, hits k. Split blocks (as
 * Parquet's): width 32, hits 1, k 8. Lanes of blocked.c: width 512/k, hits 1.
 */
double bly_fpr_mixture(double n, double nblocks, double width, double hits,
                       double k);

/* --------------------------------------------------------------- entropy */

/* The bits to which an ideal coder reduces the filter of n keys, m
 * H(e^(-kn/m)): its size when it is sent (Mitzenmacher 2002). Rises with m. */
double bly_sent_bits(double n, double m, double k);

/* -------------------------------------------------------------- counters */

/* The chance that one counter is hit j times or more, lambda times on average:
 * at most C(kn, j) m^-j <= (e lambda / j)^j (Fan et al. 1998), and by Poisson's
 * law. */
double bly_overflow_bound(double lambda, double j);
double bly_poisson_tail(double lambda, double j);

/* ---------------------------------------------------------------- sizing */

typedef struct bly_size {
    double m;
    unsigned k;
} bly_size;

/* Rule A: m = ceil(-n ln p / (ln 2)^2), k = round(m/n ln 2), at least 1. The
 * rate comes out a little above p, since k must be an integer. */
bly_size bly_size_rule_a(double n, double p);

/* Rule B: the least m at which some k keeps bly_fpr_approx() at or below p. */
bly_size bly_size_rule_b(double n, double p);

/* The best whole k, 1 to 255, for n keys in m bits. */
unsigned bly_best_k(double n, double m);

/* ------------------------------------------------------------- estimating */

typedef struct bly_estimate {
    double value, sd;
} bly_estimate;

/* Distinct keys from `ones` set bits of m: -(m/k) ln(1 - ones/m). INFINITY
 * with sd INFINITY where all are set. */
bly_estimate bly_estimate_items(double ones, double m, double k);

/* The same for cells in blocks of k lanes of `width` cells, a key setting one
 * cell in each lane of one block: the value is the one above, the deviation
 * larger, since the lanes of a block share its load. INFINITY for width: cells
 * anywhere. */
bly_estimate bly_estimate_items_lanes(double ones, double m, double k,
                                      double width);

/* Keys common to two sets from the ones of their filters and of the OR, by
 * inclusion and exclusion, never below zero; and the deviation of that, from
 * the keys only in a, only in b, and in both (docs/maths.md, "Deviation of an
 * intersection"). */
bly_estimate bly_estimate_common_lanes(double ones_a, double ones_b,
                                       double ones_or, double m, double k,
                                       double width);
double bly_common_sd_lanes(double only_a, double only_b, double common,
                           double m, double k, double width);

/* Expected ones in the AND of the filters of two sets. */
double bly_expected_and(double n1, double n2, double common, double m,
                        double k);

#endif
