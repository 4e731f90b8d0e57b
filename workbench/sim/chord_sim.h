/*
 * chord_sim.h - a ring of simulated members, and experiments with it
 */
#ifndef BLY_CHORD_SIM_H
#define BLY_CHORD_SIM_H

#include "chord/chord.h"
#include "workbench/sim/sim.h"

struct chord_sim_spec {
    struct chord_ring ring;
    uint32_t nodes; /* that there can be, up or down */
    struct sim_links links;
    uint64_t timeout; /* microseconds until silence is noticed */
    uint64_t seed;
};

struct chord_tally {
    uint64_t asked, ended, failed, wrong, hops, timeouts;
    unsigned most_hops;
};

struct chord_sim {
    struct chord_sim_spec spec;
    struct sim *sim;
    struct chord *nodes;
    struct chord_walk *walks;
    struct chord_peer *members; /* sorted: those that are up and in */
    uint32_t nmembers;
    struct chord_tally tally;
};

/* NULL: no memory. Ids are random, those of equal seeds equal. */
struct chord_sim *chord_sim_new(const struct chord_sim_spec *spec);
void chord_sim_free(struct chord_sim *s);

/* The first n nodes are members in the ideal state, without timers unless the
 * ring has periods. */
void chord_sim_ideal(struct chord_sim *s, uint32_t n);

/* Start a node through a member; let one fail; let one leave. */
void chord_sim_join(struct chord_sim *s, uint32_t node);
void chord_sim_fail(struct chord_sim *s, uint32_t node);
void chord_sim_leave(struct chord_sim *s, uint32_t node);

/* Begin a lookup of a random id at a random member; what comes of it is
 * counted. */
void chord_sim_lookup(struct chord_sim *s);
uint32_t chord_sim_member(struct chord_sim *s); /* a random one */

void chord_sim_run(struct chord_sim *s, uint64_t seconds_in_us);

/* Is everybody's state ideal? The number of members for which it is. */
uint32_t chord_sim_ideal_members(const struct chord_sim *s, bool lists);
struct chord_peer chord_sim_owner(const struct chord_sim *s, uint64_t id);

/* Defaults: 64 bits, r = 8, times in seconds as in use. */
struct chord_sim_spec chord_sim_usual(uint32_t nodes, uint64_t seed);

#endif
