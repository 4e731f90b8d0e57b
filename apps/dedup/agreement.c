/*
 * agreement.c - how many known bands make a document a copy
 *
 * Where texts are compared afterwards, one common band is reason enough to
 * look: a needless comparison only costs time. A filter has no texts to compare
 * with, so the bands themselves decide, and the step of their curve should be
 * steep and lie at the threshold. With p = s^r, the chance that a band of r
 * components agrees at likeness s, a document goes if `known` of its b bands
 * are in the filter:
 *
 *     P(s) = sum over i >= known of C(b, i) p^i (1 - p)^(b - i)
 *
 * The filter does not tell whose band it knows. Many short bands that must
 * agree make the steepest step for one pair, but pages of one template add up:
 * each of a hundred earlier ones contributes some of the bands. Long bands of
 * which one must agree do not add up, and make a flat step. In between: rows so
 * that FEW bands are common to a pair at the threshold.
 *
 *     512 components, threshold 0.8, recall 0.25: 7 of 51 bands of 10
 *     likeness  0.5       0.6       0.7       0.75    0.8    0.85   0.9
 *     P         9e-14     3e-08     0.0006    0.02    0.31   0.90   0.9998
 *
 * docs/dedup.md has what that does to 52,000 texts.
 */
#include <math.h>

#include "apps/dedup/agreement.h"

/* Bands that a pair at the threshold has in common, on average. Measured on the
 * texts of docs/dedup.md, of 512 components: with 1.6 (2 of 36 bands of 14) 4.2
 * % go by mistake and 89 % of the copies are found, with 5.5 (7 of 51 of
 * 10) 3.2 % and 90 %. With 11 (14 of 64 of 8) it is 3.0 % and 90 %, for a
 * quarter more keys. */
#define FEW 5.0

/* The bands of a document that the filter may report by mistake: fewer than
 * this on average, so that they do not move the step. */
#define INVENTED 0.1

/* At least m of n, each with probability p. */
static double tail_chance(unsigned n, unsigned m, double p)
{
    double sum = 0;
    if (m == 0 || p >= 1)
        return 1;
    if (p <= 0)
        return 0;
    for (unsigned i = m; i <= n; i++)
        sum += exp(lgamma(n + 1.0) - lgamma(i + 1.0) - lgamma(n - i + 1.0) +
                   i * log(p) + (n - i) * log1p(-p));
    return fmin(sum, 1);
}

double agreement_chance(const struct agreement *a, double likeness)
{
    return tail_chance(a->bands.bands, a->known, pow(likeness, a->bands.rows));
}

/* The most bands that may be asked for; 0: even one is too many. */
void agreement_known(struct agreement *a, double threshold, double recall)
{
    for (a->known = a->bands.bands; a->known > 0; a->known--)
        if (agreement_chance(a, threshold) >= recall)
            break;
}

bool agreement_choose(unsigned k, double threshold, double recall,
                      struct agreement *out)
{
    for (unsigned r = k; r >= 1; r--) {
        struct agreement a = { .bands = { k / r, r } };
        if (r > 1 && a.bands.bands * pow(threshold, r) < FEW)
            continue;
        agreement_known(&a, threshold, recall);
        if (a.known) {
            *out = a;
            return true;
        }
    }
    return false;
}

double agreement_key_rate(const struct agreement *a, double fpr)
{
    /* By halves, of the logarithm: 2^-200 is below any rate that counts. */
    double low = -200, high = 0;
    for (int i = 0; i < 60; i++) {
        const double middle = (low + high) / 2;
        if (tail_chance(a->bands.bands, a->known, exp2(middle)) > fpr)
            high = middle;
        else
            low = middle;
    }
    return fmin(exp2(low), INVENTED / a->bands.bands);
}
