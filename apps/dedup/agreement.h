/*
 * agreement.h - how many known bands make a document a copy
 */
#ifndef BLY_AGREEMENT_H
#define BLY_AGREEMENT_H

#include <bloomery/sketch.h>

/* A document goes if at least `known` of its bands are in a filter. */
struct agreement {
    bly_bands bands;
    unsigned known;
};

/* The probability that one earlier document of that likeness removes a later
 * one. */
double agreement_chance(const struct agreement *a, double likeness);

/* For given bands: the most that may be asked for, so that a pair at the
 * threshold is found with probability `recall` or more; 0 if none can. */
void agreement_known(struct agreement *a, double threshold, double recall);

/* Bands of k components, and how many of them must be known. False where a pair
 * at the threshold cannot be found with that probability. */
bool agreement_choose(unsigned k, double threshold, double recall,
                      struct agreement *out);

/* The rate of false positives of a key, so that a document like no other goes
 * with probability fpr at most. */
double agreement_key_rate(const struct agreement *a, double fpr);

#endif
