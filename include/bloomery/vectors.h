/*
 * bloomery/vectors.h - which of many vectors are close to each other?
 * SPDX-License-Identifier: MIT
 *
 * What bloomery.h says about failure, ownership, threads and cost holds here
 * too. Among many vectors (embeddings of texts or images, say), these functions
 * find those whose angle has a cosine of at least a threshold, without
 * comparing each with each: vectors are sketched (bly_planes, in sketch.h), and
 * those that agree in a band of bits of their sketches are compared exactly.
 *
 *     bly_vectors v = { .at = embeddings, .n = 1000000, .dims = 384 };
 *     bly_near_spec spec = { .threshold = 0.9 };
 *     if (bly_near_pairs(&v, &spec, print_pairs, NULL, NULL))
 *         errx(2, "%s", bly_error());
 *
 * Whatever is found is right: cosines are computed from the vectors, in
 * doubles. What is at the threshold is found with a stated probability, what is
 * above it with a larger one; few vectors are all compared, so that nothing is
 * missed. The same vectors and the same spec give the same result, however many
 * threads there are.
 */
#ifndef BLOOMERY_VECTORS_H
#define BLOOMERY_VECTORS_H

#include <bloomery/sketch.h>

BLY_BEGIN_DECLS

/* Zero in any field means the default. */
typedef struct bly_near_spec {
    double threshold; /* least cosine, above 0 and at most 1; 0: 0.9 */
    double recall;    /* probability of finding a pair at the threshold, above 0
                         and below 1; 0: 0.995 */
    uint64_t seed;
    uint64_t most;     /* neighbours of each query, the closest; 0: all */
    uint32_t nthreads; /* 0: one per processor */
    uint32_t flags;    /* of BLY_NEAR_ */
} bly_near_spec;

/* Go on past vectors that have no direction (zeros alone, infinite, not a
 * number), which are then close to nothing. Otherwise the first one is an
 * error. */
#define BLY_NEAR_SKIP 1u

/* bly_near_pairs(): compare vectors that are equal, too. Otherwise only the
 * first of equal vectors is in pairs with others, and with each of its
 * copies. */
#define BLY_NEAR_ALL 2u

/* Two vectors by their numbers, from 0 on. */
typedef struct bly_near_pair { /* final */
    uint64_t a, b;
    double cosine;
} bly_near_pair;

/* Takes n pairs, called once or several times; whatever it returns but BLY_OK
 * ends the call that calls it, with the same status. */
typedef bly_status bly_near_put(const bly_near_pair *pairs, size_t n,
                                void *ctx);

/* What was done. */
typedef struct bly_near_stats { /* final */
    uint32_t nbits;             /* of a sketch; 0: all were compared */
    uint32_t bands, rows;       /* of rows bits each */
    uint32_t nthreads;
    double recall;        /* at the threshold, by these */
    uint64_t ncandidates; /* pairs that agreed in a band */
    uint64_t nchecked;    /* of these, compared exactly */
    uint64_t nfound;
    uint64_t nequal;      /* vectors that equal an earlier one */
    uint64_t nbad;        /* vectors without a direction */
    uint64_t reserved[4]; /* 0 */
} bly_near_stats;

/* All pairs of vectors with a cosine of at least the threshold, a < b, in
 * ascending order of a and then of b. *stats may be NULL. Memory: sketches and
 * bands, about 500 bytes per vector at a threshold of 0.9, and 24 bytes per
 * pair. At most 2^32 - 2 vectors. */
static inline bly_status bly_near_pairs(const bly_vectors *vectors,
                                        const bly_near_spec *spec,
                                        bly_near_put *put, void *ctx,
                                        bly_near_stats *stats);

/* Which vectors would have to go so that none of those that stay has a cosine
 * of the threshold or more with an earlier one that stays? witness[i] becomes
 * the number of a vector that stays and is that close to vector i, or i if
 * vector i stays; cosines[i], unless that is NULL, the cosine of both. Vectors
 * that have no direction stay. */
static inline bly_status bly_near_dedup(const bly_vectors *vectors,
                                        const bly_near_spec *spec,
                                        uint64_t *witness, double *cosines,
                                        bly_near_stats *stats);

/* The neighbours of each query: a is the number of the query, b that of the
 * vector. In ascending order of a, and the closest one first. */
static inline bly_status bly_near_of(const bly_vectors *vectors,
                                     const bly_vectors *queries,
                                     const bly_near_spec *spec,
                                     bly_near_put *put, void *ctx,
                                     bly_near_stats *stats);

/* The cosine of two vectors of n coordinates; NAN if one has no direction. */
double bly_cosine(const float *a, const float *b, size_t n);

/* ------------------------------------------------------------------- sizes */

BLY_SIZED(bly_status, bly_near_pairs, bly_near_spec,
          (const bly_vectors *vectors, const bly_near_spec *spec,
           bly_near_put *const put, void *ctx, bly_near_stats *stats),
          (vectors, spec, put, ctx, stats));
BLY_SIZED(bly_status, bly_near_dedup, bly_near_spec,
          (const bly_vectors *vectors, const bly_near_spec *spec,
           uint64_t *witness, double *cosines, bly_near_stats *stats),
          (vectors, spec, witness, cosines, stats));
BLY_SIZED(bly_status, bly_near_of, bly_near_spec,
          (const bly_vectors *vectors, const bly_vectors *queries,
           const bly_near_spec *spec, bly_near_put *const put, void *ctx,
           bly_near_stats *stats),
          (vectors, queries, spec, put, ctx, stats));

BLY_END_DECLS
#endif
