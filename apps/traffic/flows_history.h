/*
 * flows_history.h - what the largest flows have sent over time, in memory that
 * does not grow with time
 *
 * Time is cut into at most HISTORY_SPANS spans of equal length. Each keeps its
 * HISTORY_ROWS largest flows. When there would be one span too many, every two
 * become one, and spans are twice as long from then on.
 */
#ifndef BLY_TRAFFIC_FLOWS_HISTORY_H
#define BLY_TRAFFIC_FLOWS_HISTORY_H

#include "apps/traffic/multistage.h"

#define HISTORY_SPANS 256
#define HISTORY_ROWS 16

struct history_row {
    struct flow_key key;
    uint64_t bytes; /* that were counted: at least these */
};

struct history_span {
    size_t n;
    uint64_t all; /* bytes of all packets, large flows or not */
    struct history_row rows[HISTORY_ROWS]; /* the largest first */
};

struct flows_history {
    struct key_choice key;
    int64_t begin, width; /* nanoseconds */
    size_t n;             /* spans, the empty ones in between included */
    struct history_span spans[HISTORY_SPANS];
};

/* An interval of `width` from `begin` on; flows come largest first. `width` is
 * the same in all calls, and `begin` never falls. */
void history_add(struct flows_history *h, int64_t begin, int64_t width,
                 const struct flow *flows, size_t n, uint64_t all);

/* The largest flows of all spans, at most `most`: how many; none if there is no
 * memory. */
size_t history_top(const struct flows_history *h, struct history_row *top,
                   size_t most);

/* What a flow has sent in a span; 0: too little to be known. */
uint64_t history_bytes(const struct history_span *s,
                       const struct flow_key *key);

/* Draw it into a file; false, with the reason printed. */
typedef bool history_draw(const struct flows_history *h, const char *path);

#endif
