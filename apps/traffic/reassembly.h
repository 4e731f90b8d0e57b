/*
 * reassembly.h - what TCP carries, in order, in bounded memory
 *
 * Each direction of a connection is a stream. Segments that come early wait.
 * Bytes that never come are a gap: the stream goes on behind it, and nothing is
 * found across it.
 *
 * What a receiver takes and what is seen on the way can differ, and a stranger
 * may make them differ on purpose: by segments that never arrive (wrong sums,
 * few hops left), by beginnings and ends of connections that the receiver
 * refuses, by two versions of the same bytes. So nothing that was captured is
 * thrown away unseen. A byte is in its place in a stream, or it was there
 * before with the same value, or its segment is handed over by itself and the
 * byte is counted as late or as another version.
 */
#ifndef BLY_TRAFFIC_REASSEMBLY_H
#define BLY_TRAFFIC_REASSEMBLY_H

#include "apps/traffic/packet.h"

struct segment {
    struct flow_key key; /* of both ends, in this direction */
    uint32_t sequence;
    bool syn, fin, rst;
    const unsigned char *at;
    size_t n;    /* bytes that were captured */
    size_t wire; /* that it has */
};

/* The segment of a packet; false if its header was not captured. */
bool segment_of(const struct packet *p, struct segment *s);

/* at[0 .. seen) are bytes that were handed over before, at[seen .. n) those
 * that are new; at[0] is byte `base` of the stream. A segment by itself has
 * seen = 0, and base = 0 if it is from before the first byte that was captured.
 * STREAM_AHEAD bytes behind them can be read, and are zeros. False ends it
 * all. */
#define STREAM_AHEAD 128
typedef bool stream_take(void *ctx, const struct flow_key *key,
                         const unsigned char *at, size_t seen, size_t n,
                         uint64_t base);

struct reassembly_spec {
    size_t keeps;    /* bytes of each stream that are handed over again */
    uint64_t memory; /* for all streams */
    stream_take *take;
    void *ctx;
};

struct reassembly_sum {
    uint64_t streams;
    uint64_t gaps;    /* places where bytes are missing */
    uint64_t evicted; /* streams that were forgotten while they lasted */
    uint64_t late;    /* bytes that a stream no longer had a place for */
    uint64_t changed; /* bytes that were sent again with another value */
    uint64_t most;    /* memory that was in use at once */
};

struct reassembly;

/* NULL: no memory. */
struct reassembly *reassembly_new(const struct reassembly_spec *spec);
void reassembly_free(struct reassembly *r);

/* False: no memory, or take() said so. */
bool reassembly_add(struct reassembly *r, const struct segment *s);
/* No more comes: what waits is handed over. */
bool reassembly_end(struct reassembly *r);
const struct reassembly_sum *reassembly_sum(const struct reassembly *r);

#endif
