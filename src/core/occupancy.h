/*
 * occupancy.h - how many balls were thrown, from how many urns look hit
 *
 * x balls fall into l urns, each with the same chance. An urn that was missed
 * looks hit all the same with probability f. Seeing theta urns that look hit,
 * how many balls were there?
 */
#ifndef BLY_OCCUPANCY_H
#define BLY_OCCUPANCY_H

#include <stdint.h>

#define BLY_MAX_URNS 128

/* The result of both functions if all urns look hit: the number of balls is
 * unknown. A usual lower bound is l ln l. */
#define BLY_OCCUPANCY_ALL UINT64_MAX

/* The x for which theta is the most probable: argmax over x of
 *
 *     P(theta | x) = sum_j P(J = j | x) C(l-j, theta-j) f^(theta-j)
 *                    (1-f)^(l-theta)
 *
 * J the urns that were really hit. Takes time in proportion to x theta. */
uint64_t bly_occupancy_mle(unsigned l, double f, unsigned theta);

/* The x whose expected number of urns that look hit,
 * l (1 - (1-f) (1-1/l)^x), is nearest to theta. */
uint64_t bly_occupancy_mean(unsigned l, double f, unsigned theta);

#endif
