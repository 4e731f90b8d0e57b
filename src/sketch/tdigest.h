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
 * One block holds both. Waiting values weigh 1 each unless `weighted`. Servers
 * have millions of these, so what follows from something else is not kept. */
struct bly_tdigest {
    double compression, min, max, merged_weight, waiting_weight;
    uint64_t ncompressions;
    double *means; /* NULL while room is 0 */
    uint32_t nmerged, nwaiting;
    uint32_t room;
    uint8_t memory; /* bly_mem_number(); BLY_MEM_OWN: *own */
    uint8_t scale;
    bool weighted;
    bool narrow;   /* wroom is what means take when all is merged, not room */
    bly_mem own[]; /* one, if it has no number */
};

#define BLY_TDIGEST_PI 3.141592653589793

/* A total weight is below 2^63, which is what an integer of a server holds;
 * those up to 2^53 are exact. */
#define BLY_TDIGEST_MOST_WEIGHT 0x1.fffffffffffffp62

/* Values and means that may be held, 32 bits of them; then they merge. */
uint64_t bly_tdigest_most(const bly_tdigest *t);

/* Means there can be when all is merged. */
uint64_t bly_tdigest_limit(const bly_tdigest *t);

/* Weights there is room for. */
static inline size_t bly_tdigest_wroom(const bly_tdigest *t)
{
    return t->narrow ? (size_t)bly_tdigest_limit(t) : t->room;
}

static inline double *bly_tdigest_weights(const bly_tdigest *t)
{
    return t->means + t->room;
}

/* G: a mean where q is may have the share q (1 - q) / G of a total weight n. */
double bly_tdigest_fineness(const bly_tdigest *t, double n);

/* Can this be a compression and a scale? */
bool bly_tdigest_sane(double compression, uint32_t scale);

#endif
