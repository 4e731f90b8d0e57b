/*
 * block_xdp.h - a block list as a program in the kernel
 */
#ifndef BLY_TRAFFIC_BLOCK_XDP_H
#define BLY_TRAFFIC_BLOCK_XDP_H

#include "apps/traffic/block_file.h"

/* Load the program with maps of its own for the list and the allowed ones; the
 * counters are the map `counters`. The program's descriptor, which keeps the
 * maps; -1, with the reason printed. */
int xdp_load(const struct block_file *list, const struct prefix_set *allow,
             int counters);

/* An empty map of counters; -1, with the reason printed. */
int xdp_counters_new(void);

/* Does this bloomery carry the program? False, with the reason printed. */
bool xdp_here(void);

/* What the kernel refused, in clear words: TROUBLE. */
int xdp_fail(const char *what, int error);

/* Packets through the program without an interface, to compare its verdicts
 * with ours. All zero: not loaded. */
struct xdp_trial {
    int program, counters;
    bool begun;
    uint64_t ns[2]; /* of packets that pass, and that are stopped */
    unsigned timed[2];
};
bool xdp_trial_begin(struct xdp_trial *t, const struct block_file *list,
                     const struct prefix_set *allow);
bool xdp_trial_packet(struct xdp_trial *t, const unsigned char *at, size_t n,
                      bool stopped, uint64_t *disagree);
/* Per packet, as the kernel measures it; NAN: none. */
double xdp_trial_ns(const struct xdp_trial *t, bool stopped);
/* Of a program that does nothing: what measuring itself takes. */
double xdp_empty_ns(void);
void xdp_trial_end(struct xdp_trial *t);

#endif
