/*
 * ribbon.h - the layers of a ribbon filter, and how they are filled
 */
#ifndef BLY_RIBBON_H
#define BLY_RIBBON_H

#include "engine/ribbon_table.h"
#include "kinds/filter.h"

#define BLY_RIBBON_LAYERS 4

/* Params of the shape. */
enum {
    BLY_RIBBON_WIDTH, /* bits of a narrow key */
    BLY_RIBBON_WIDER, /* how many keys in 2^32 have one more */
    BLY_RIBBON_SLOTS, /* of the first layer, and three more of these */
    BLY_RIBBON_TIGHT = BLY_RIBBON_SLOTS + BLY_RIBBON_LAYERS, /* for plan() */
    BLY_RIBBON_VALUED /* 1: holds a bit per key, as below */
};

/* A ribbon of values is built from keys that are in the set and keys that are
 * not, and answers correctly for all of them. One bit per key is enough: a
 * print is one bit, which is flipped for keys that are not in the set. When the
 * ribbon is built, bit 0 of a hash is set for these keys, and clear for keys in
 * the set. So bit 0 is never part of the key, not even in queries. Part of the
 * kind exact. */
#define BLY_RIBBON_OUT UINT64_C(1)

/* Words of the state. */
enum {
    BLY_RIBBON_SEED,                     /* one for each layer */
    BLY_RIBBON_KEYS = BLY_RIBBON_LAYERS, /* different keys in the filter */
    BLY_RIBBON_STATES
};

typedef struct bly_ribbon_map {
    bly_ribbon_layer layer[BLY_RIBBON_LAYERS];
    unsigned nlayers;
    uint64_t nwords; /* of all blocks */
    uint64_t bounds; /* bytes before the first bound, */
    uint64_t end;    /* behind the last, */
    uint64_t nbytes; /* and filled up */
} bly_ribbon_map;

/* The layout of a filter of this shape, which must be sane except for its
 * nbytes. */
void bly_ribbon_map_of(const bly_shape *s, bly_ribbon_map *out);

/* The shape of a ribbon of values for nkeys keys. */
void bly_ribbon_shape_valued(uint64_t nkeys, bly_shape *out);

/* kind.h */
bly_status bly_ribbon_build(bly_filter *f, uint64_t *h, uint64_t *values,
                            size_t n, unsigned nthreads);

#endif
