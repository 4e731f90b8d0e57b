/*
 * tally.h - packets and bytes of every flow, in sketches that do not know them
 *
 *     countmin   never too low; too high by more than a share of all packets
 *                (or bytes) only rarely. Sized by that share alone.
 *     spectral   exact, but for the share of flows that is its rate; these are
 *                too high. Sized by the number of flows.
 *     spacecode  too low or too high, by a fifth or so, for flows of any size.
 *                Sized by the number of flows and the mean of their packets.
 *
 * A space-code filter takes time and room for every count, so bytes are counted
 * there in steps as large as the mean packet: a packet of 100 bytes is a step
 * of 700 once in seven times, by chance.
 */
#ifndef BLY_TRAFFIC_TALLY_H
#define BLY_TRAFFIC_TALLY_H

#include <bloomery.h>

#include "apps/traffic/packet.h"

enum tally_kind { TALLY_COUNTMIN, TALLY_SPECTRAL, TALLY_SPACECODE };

struct tally_spec {
    enum tally_kind kind;
    uint64_t flows, packets, bytes; /* expected; not of TALLY_COUNTMIN */
    double error; /* of TALLY_COUNTMIN a share of all that is counted, of
                     TALLY_SPECTRAL one of the flows; not of the other */
    uint64_t seed;
};

#define TALLY_BATCH 256

struct tally {
    bly_filter *packets, *bytes;
    bly_hasher hasher;
    uint64_t step; /* of bytes */
    uint64_t chance;
    uint64_t hashes[TALLY_BATCH], sizes[TALLY_BATCH];
    size_t n; /* packets that wait */
};

const char *tally_name(enum tally_kind kind);

bly_status tally_new(const struct tally_spec *spec, struct tally *t);
void tally_free(struct tally *t);

static inline uint64_t tally_hash(const struct tally *t,
                                  const struct flow_key *key)
{
    return bly_hash(&t->hasher, key->at, key->len);
}

/* Count a packet; and all that still wait, before anything is asked. */
bly_status tally_packet(struct tally *t, uint64_t hash, uint64_t bytes);
bly_status tally_flush(struct tally *t);

/* What a flow has sent. UINT64_MAX: more than can be counted. */
bly_status tally_get(const struct tally *t, uint64_t hash, uint64_t *packets,
                     uint64_t *bytes);

#endif
