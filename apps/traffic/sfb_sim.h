/*
 * sfb_sim.h - a link, sources that yield, and some that do not
 *
 * Sources that yield send a window of packets per round trip, one more after
 * each without loss, half as many after one with (additive increase,
 * multiplicative decrease). The others send at a constant rate. All share a
 * link behind a queue: drop-tail, or Stochastic Fair Blue.
 */
#ifndef BLY_TRAFFIC_SFB_SIM_H
#define BLY_TRAFFIC_SFB_SIM_H

#include "apps/traffic/sfb.h"

struct link_spec {
    unsigned yielding;    /* sources that yield */
    unsigned constant;    /* and that do not */
    double constant_rate; /* bits per second of each of these */
    double link;          /* bits per second */
    unsigned packet;      /* bytes */
    double round_trip;    /* seconds without a queue, half to twice of it */
    double seconds;       /* of which the first third is not counted */
    unsigned queue;       /* packets */
    const struct sfb_spec *sfb; /* NULL: drop-tail */
    uint64_t seed;
};

struct link_result {
    double use;      /* share of the link */
    double fair;     /* bits per second of each source, if all were equal */
    double constant; /* that a source which does not yield got */
    double yielding; /* and one that does, on average */
    double constant_lost, yielding_lost; /* shares of what they sent */
    struct sfb_sum sfb;
};

/* False: no memory, or a spec that cannot be. */
bool link_run(const struct link_spec *spec, struct link_result *out);

#endif
