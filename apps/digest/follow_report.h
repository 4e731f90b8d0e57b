/*
 * follow_report.h - what digest follow and digest peers report
 */
#ifndef BLY_DIGEST_FOLLOW_REPORT_H
#define BLY_DIGEST_FOLLOW_REPORT_H

#include "apps/digest/cache.h"
#include "apps/digest/hearer.h"

/* At its start. */
struct following {
    const char *source, *form, *updates;
    uint64_t entries, capacity, memory;
};

/* At its end. */
struct followed {
    struct cache_counts cache;
    struct teller_counts told;
    uint64_t entries, stuck;
};

/* A peer that digest peers listens to. */
struct asked_peer {
    const char *peer, *icp;
    uint64_t questions, hits, wrong;
    struct peer_counts told;
};

/* A URL that somebody asked for. */
struct asked_url {
    const char *key, *peers;
};

#endif
