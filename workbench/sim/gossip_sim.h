/*
 * gossip_sim.h - a thousand peers with documents, in simulated time
 *
 * The host of gossip.h in the simulator, with messages as the bytes that they
 * have on the wire. Two questions are asked: after how many intervals has
 * everybody heard of a change, and do searches find what an index of all
 * documents finds?
 */
#ifndef BLY_GOSSIP_SIM_H
#define BLY_GOSSIP_SIM_H

#include "apps/net/gossip/doc_index.h"

struct gossip_sim_spec {
    uint32_t peers;     /* 0: 1000 */
    uint32_t documents; /* of the corpus that is made; 0: 10,000 */
    const char *folder; /* a corpus of files instead; NULL: made */
    uint64_t seed;
    double loss;       /* share of messages */
    unsigned changes;  /* whose spread is measured; 0: 10 */
    unsigned queries;  /* 0: none */
    unsigned k;        /* documents wanted; 0: 20 */
    unsigned patience; /* of searches; 0: as usual */
};

#define GOSSIP_CURVE 64

struct gossip_sim_result {
    uint32_t peers, documents;
    double words, summary;      /* of a peer: words, bytes of its filter */
    double delta;               /* bytes of a change */
    double spread, spread_most; /* intervals until all have a change */
    double curve[GOSSIP_CURVE]; /* share that have it, by intervals */
    unsigned missed;            /* changes that did not reach everybody */
    double join;                /* intervals until a new peer knows all */
    double idle, busy; /* bytes per peer and minute: nothing changes; a peer
                          changes each second */
    double overlap;    /* share of the best k that an index of all documents
                          has, with the same weights */
    double central;    /* the same with weights by documents, not peers */
    double asked, with_words; /* peers, of a search */
    double state;             /* bytes that a peer keeps */
    uint64_t messages, bytes;
};

bool gossip_sim(const struct gossip_sim_spec *spec,
                struct gossip_sim_result *out);

#endif
