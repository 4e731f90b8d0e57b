/*
 * args.h - what bloomery traffic is told, and what it tells: all that is there
 * without libpcap too
 */
#ifndef BLY_TRAFFIC_ARGS_H
#define BLY_TRAFFIC_ARGS_H

#include "report/fields.h"

struct traffic_args {
    const char *key, *interval, *threshold, *interface, *form, *output;
    const char *skew; /* gen */
    uint64_t stages, counters, entries, seed, top, count, flows;
    bool serial, shared, plain, unshielded, inner, json;

    /* scan */
    const char *rules, *strings;
    uint64_t memory;
    bool nocase, raw, exact, per_length, summary;

    /* digest, trace */
    const char *router, *nat, *topology, *packet, *from, *within, *time;
    uint64_t bits, mtu;

    /* queue */
    const char *rate, *sender;
    uint64_t levels, bins, target, limit;
};

/* What was read, whatever was looked for in it. */
struct traffic_totals {
    uint64_t packets, bytes; /* as they were on the wire */
    uint64_t other, cut, bad, backwards;
    double seconds; /* from the first packet to the last */
};

struct flows_summary {
    struct traffic_totals totals;
    uint64_t intervals, flows, dropped;
    uint64_t threshold, stages, counters, entries, memory;
};

/* A flow of an interval. */
struct flow_row {
    double interval; /* when it began, in seconds since 1970 */
    char key[128];
    uint64_t bytes, bytes_max, packets;
};

/* scan: a match, and what there was in all. */
struct scan_row {
    const char *file, *flow;
    uint64_t packet, offset, rule, line;
    bly_bytes string;
};

struct scan_summary {
    uint64_t strings, groups, memory, bytes, matches;
    double passed, computed, compared; /* per byte */
    uint64_t packets, other, cut, fragments, streams, gaps, evicted;
    uint64_t without, absent;
};

extern const struct field scan_row_fields[], scan_fields[];

struct digest_summary {
    struct traffic_totals totals;
    uint64_t tables, sides, file;
    double share, rate;
};

/* trace: a router that was asked, and what there was in all. */
struct trace_row {
    const char *router, *from, *answer, *change;
    unsigned hops;
    bool last;
};

struct trace_summary {
    uint64_t asked, passed, last, silent;
};

/* queue: a simulated one, and a capture that went through. */
struct queue_row {
    const char *queue;
    double use, fair, constant, times, yielding, constant_lost, yielding_lost;
};

struct queue_summary {
    struct traffic_totals totals;
    uint64_t taken, early, penalty, full, sent;
};

extern const struct field queue_row_fields[], queue_fields[];
extern const struct field digest_fields[], trace_row_fields[], trace_fields[];
extern const struct field flow_fields[], flows_fields[];
extern const struct report traffic_reports[];

#endif
