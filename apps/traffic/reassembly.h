/*
 * reassembly.h - what TCP carries, in order, in bounded memory
 *
 * Each direction of a connection is a stream. Segments that come early wait;
 * those that were sent again are left out, so that of two versions of a byte
 * the first counts. Bytes that never come are a gap: the stream goes on behind
 * it, and nothing is found across it.
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
 * that are new; at[0] is byte `base` of the stream. STREAM_AHEAD bytes behind
 * them can be read, and are zeros. False ends it all. */
#define STREAM_AHEAD 128
typedef bool stream_take(void *ctx, const struct flow_key *key,
                         const unsigned char *at, size_t seen, size_t n,
                         uint64_t base);

struct reassembly_spec {
    size_t keeps;    /* bytes of each stream that are handed over again */
    uint64_t memory; /* for all streams */
    uint64_t seed;   /* of their hash */
    stream_take *take;
    void *ctx;
};

struct reassembly_sum {
    uint64_t streams;
    uint64_t gaps;    /* places where bytes are missing */
    uint64_t evicted; /* streams that were forgotten while they lasted */
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
