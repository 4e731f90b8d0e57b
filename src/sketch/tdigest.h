/*
 * tdigest.h - bly_tdigest from the inside: its files share this
 */
#ifndef BLY_TDIGEST_H
#define BLY_TDIGEST_H

#include <bloomery/sketch.h>

/* Means in order with their weights, and behind them values that wait to be
 * merged:
 *
 *     means    | nmerged, ascending | nwaiting, as they came |   | room
 *     weights  | nmerged            | only if `weighted`     |   | wroom
 *
 * One block holds both. Waiting values weigh 1 each unless `weighted`. */
struct bly_tdigest {
    bly_mem mem;
    double compression, min, max, merged_weight, waiting_weight;
    uint64_t ncompressions;
    uint64_t most;  /* values and means that may be held; then they merge */
    uint64_t limit; /* means there can be when all is merged */
    size_t nmerged, nwaiting;
    size_t room, wroom; /* of the block */
    double *means;      /* NULL while room is 0 */
    uint32_t scale;
    bool weighted;
};

#define BLY_TDIGEST_PI 3.141592653589793

/* A total weight is below 2^63, which is what an integer of a server holds;
 * those up to 2^53 are exact. */
#define BLY_TDIGEST_MOST_WEIGHT 0x1.fffffffffffffp62

static inline double *bly_tdigest_weights(const bly_tdigest *t)
{
    return t->means + t->room;
}

/* G: a mean where q is may have the share q (1 - q) / G of a total weight n. */
double bly_tdigest_fineness(const bly_tdigest *t, double n);

/* Can this be a compression and a scale? Then `most` is filled in. */
bool bly_tdigest_sane(double compression, uint32_t scale);

#endif
