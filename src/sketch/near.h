/*
 * near.h - what the files of neighbours share: sketched vectors, and bands
 */
#ifndef BLY_SKETCH_NEAR_H
#define BLY_SKETCH_NEAR_H

#include <stdatomic.h>

#include <bloomery/vectors.h>

#include "engine/planes.h"

/* --------------------------------------------------------------- threads */

/* Work on parts 0 to nparts - 1, by several threads, each with a place of its
 * own (from 0 on) for what it keeps. A part that fails ends the work; the
 * failure of the lowest part is that of all. */
typedef bly_status near_part(void *job, size_t part, unsigned place);
#define NEAR_MOST_THREADS 64
unsigned bly_near_threads(uint32_t wanted, size_t nparts);
bly_status bly_near_crew(near_part *run, void *job, size_t nparts,
                         unsigned nthreads);

/* ------------------------------------------------------------------ plan */

typedef struct near_plan {
    unsigned bands, rows; /* 0 bands: compare all */
    unsigned nbits;       /* of a sketch */
    unsigned limit;       /* bits in which a pair at the threshold may differ */
    double recall;
} near_plan;

/* How likely two vectors are to agree in r bits, from a sample: the number of
 * pairs that differ in d of NEAR_SAMPLE_BITS bits. */
#define NEAR_SAMPLE_BITS 1024
typedef struct near_sample {
    uint64_t pairs;
    uint64_t differ[NEAR_SAMPLE_BITS + 1];
} near_sample;

/* The plan that costs least for n vectors. BLY_EINVAL if no sketch finds enough
 * at this threshold. */
bly_status bly_near_choose(const bly_near_spec *spec, const near_sample *sample,
                           size_t n, size_t dims, near_plan *out);

/* --------------------------------------------------------------- vectors */

/* Vectors and what is known of them. */
typedef struct near_set {
    bly_vectors v; /* with a stride */
    uint64_t *sides;
    double *norms; /* 0: no direction */
    uint64_t nbad;
} near_set;

/* Vector i. */
static inline const void *near_vector(const near_set *s, size_t i)
{
    return (const unsigned char *)s->v.at + i * s->v.stride;
}

#endif
