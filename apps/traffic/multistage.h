/*
 * multistage.h - who sends much? (Estan and Varghese, 2002)
 *
 * Every packet adds its bytes to one counter in each of a few stages. A flow
 * that sends as much as the threshold fills all its counters, so that it is
 * never missed; a small one must share all of them with large ones to be taken
 * for one. Whoever passes gets an entry in the flow memory and is counted
 * exactly from then on.
 */
#ifndef BLY_TRAFFIC_MULTISTAGE_H
#define BLY_TRAFFIC_MULTISTAGE_H

#include "apps/traffic/packet.h"

struct multistage_spec {
    unsigned stages;    /* 1 to MULTISTAGE_MOST */
    uint64_t counters;  /* per stage */
    uint64_t threshold; /* bytes per interval */
    uint64_t entries;   /* of the flow memory */
    uint64_t seed;
    bool serial;     /* stages one behind the other, each with its share */
    bool shared;     /* one array for all stages */
    bool plain;      /* no conservative update */
    bool unshielded; /* flows with an entry go on filling counters */
};
#define MULTISTAGE_MOST 16

struct flow {
    struct flow_key key;
    bool fresh; /* entered in this interval */
    bool large; /* as of multistage_flows() */
    uint64_t hash;
    uint64_t bytes, packets; /* since it was entered, or the interval began */
    uint64_t before;         /* bytes it may have sent before, at most */
};

struct multistage;

/* NULL: no memory. */
struct multistage *multistage_new(const struct multistage_spec *spec);
void multistage_free(struct multistage *m);
uint64_t multistage_bytes(const struct multistage *m);

/* The flow, if it has an entry now; its counts may be set to zero. */
struct flow *multistage_packet(struct multistage *m, const struct flow_key *key,
                               uint64_t bytes);

/* The flows of this interval that have, or may have, reached the threshold, the
 * largest first; valid until the next call. */
size_t multistage_flows(struct multistage *m, const struct flow **flows);

/* A new interval: counters are zero; flows that were large, or that were
 * entered in this one, stay. */
void multistage_turn(struct multistage *m);

/* Flows, or packets of them, that the memory had no room for. */
uint64_t multistage_dropped(const struct multistage *m);

/* How many of n flows pass at most, on average, whatever their sizes are, when
 * all of them send `bytes` in an interval (theorem 3 of the paper). */
double multistage_bound(const struct multistage_spec *spec, double bytes,
                        double n);

#endif
