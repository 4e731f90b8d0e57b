/*
 * sfb.h - Stochastic Fair Blue: a queue that holds back flows that do not yield
 *
 * A few levels of bins; a flow has one bin in each. A bin counts its packets in
 * the queue, and has a probability that rises while there are too many and
 * falls when there are none. A packet is dropped with the least probability of
 * its bins: a flow that shares one bin with a greedy one has others of its own.
 * Only who is in full bins at every level has a probability of 1, does not
 * yield, and gets the penalty rate.
 *
 * Two sets of bins with different hashes take turns; the second one is warmed
 * up before, so that whoever shared all bins with a greedy flow does not do so
 * for long.
 *
 * No clock and no socket: time is given with each call. After Feng, Kandlur,
 * Saha and Shin: Stochastic Fair Blue, 2001, and the queue discipline of Linux,
 * whose defaults are the defaults here.
 */
#ifndef BLY_TRAFFIC_SFB_H
#define BLY_TRAFFIC_SFB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SFB_MOST_LEVELS 16
#define SFB_MOST_BINS 65536

struct sfb_spec {
    unsigned levels, bins;       /* 8 of 16 */
    unsigned limit;              /* packets of the queue */
    unsigned most;               /* packets of a bin: 25 */
    unsigned target;             /* from which on its probability rises: 20 */
    double increment, decrement; /* of the probability: 0.0005, 0.00005 */
    double rehash, warmup;       /* seconds: 600 and 60; rehash 0: never */
    double penalty_rate;         /* packets per second of those who do not
                                    yield, 10 */
    unsigned penalty_burst;      /* 20 */
    uint64_t seed;
};

/* Those of Linux, for a queue of so many packets. */
struct sfb_spec sfb_defaults(unsigned limit);

enum sfb_verdict {
    SFB_TAKEN,
    SFB_EARLY,   /* dropped by chance, so that the flow slows down */
    SFB_PENALTY, /* dropped since the flow does not yield */
    SFB_BIN,     /* its bins are full */
    SFB_FULL     /* the queue is */
};

struct sfb_sum {
    uint64_t taken, early, penalty, bin, full, rehashes;
};

/* What a packet in the queue has to remember until it leaves. */
struct sfb_ticket {
    uint64_t hash[2]; /* of the flow, in both sets */
    uint64_t turns;   /* sets that were made before */
};

struct sfb;

/* NULL: no memory, or a spec that cannot be. */
struct sfb *sfb_new(const struct sfb_spec *spec);
void sfb_free(struct sfb *s);

/* A packet of a flow comes at `now` seconds; if it is taken, its ticket is
 * given back to sfb_leave() when it leaves the queue. */
enum sfb_verdict sfb_arrive(struct sfb *s, uint64_t flow, double now,
                            struct sfb_ticket *ticket);
void sfb_leave(struct sfb *s, const struct sfb_ticket *ticket);

size_t sfb_length(const struct sfb *s); /* packets in the queue */
double sfb_probability(const struct sfb *s, uint64_t flow);
const struct sfb_sum *sfb_sum(const struct sfb *s);

/* The chance that a flow shares all its bins with one of m greedy ones. */
double sfb_unlucky(unsigned levels, unsigned bins, unsigned m);

#endif
