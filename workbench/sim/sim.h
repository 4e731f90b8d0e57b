/*
 * sim.h - nodes, links and timers in simulated time
 *
 * For any protocol: it knows messages as bytes. A link takes a random time and
 * may lose what it carries; nodes go down and come up; the network may be cut
 * in parts. Everything random comes from one seed and events at the same time
 * keep their order, so that equal seeds give equal runs, byte for byte.
 */
#ifndef BLY_SIM_H
#define BLY_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim;

/* Microseconds, like all times here. */
struct sim_links {
    uint64_t delay_least, delay_most;
    double loss; /* share of messages */
};

enum sim_what {
    SIM_MESSAGE, /* it has arrived at `node` from `from` */
    SIM_LOST,    /* it was sent to `node`, and never will arrive */
    SIM_TIMER    /* of `node`; `data` says which */
};

struct sim_event {
    enum sim_what what;
    uint32_t node, from;
    uint64_t data;
    const void *bytes; /* borrowed for the call */
    size_t nbytes;
};

struct sim_protocol {
    void (*handle)(void *ctx, const struct sim_event *e);
    /* NULL, or: this will happen soon, or very soon; nothing may change but
     * what is in the caches. */
    void (*soon)(void *ctx, const struct sim_event *e, bool very);
};

/* NULL: no memory. All nodes begin down. */
struct sim *sim_new(const struct sim_links *links, uint32_t nnodes,
                    uint64_t seed, const struct sim_protocol *protocol,
                    void *ctx);
void sim_free(struct sim *s);

/* Take a message of nbytes, which counts as `wire` bytes on the link, or let a
 * node be told after a delay. What does not fit into memory is lost, and
 * sim_failed() says so. */
void sim_send(struct sim *s, uint32_t from, uint32_t to, const void *bytes,
              size_t nbytes, size_t wire);
void sim_after(struct sim *s, uint32_t node, uint64_t delay, uint64_t data);
bool sim_failed(const struct sim *s);

/* A node that goes down gets no more messages, and its timers are gone. Nodes
 * hear only those of the same part. */
void sim_up(struct sim *s, uint32_t node);
void sim_down(struct sim *s, uint32_t node);
bool sim_is_up(const struct sim *s, uint32_t node);
void sim_part(struct sim *s, uint32_t node, unsigned part);

/* Run until this time, or until nothing is left to do. */
void sim_run(struct sim *s, uint64_t until);
uint64_t sim_now(const struct sim *s);

struct sim_counts {
    uint64_t events, messages, bytes, lost;
};
struct sim_counts sim_counts(const struct sim *s);

uint64_t sim_random(struct sim *s);

#endif
