/*
 * sketches.h - what the files of shingles and sketches share
 */
#ifndef BLY_SKETCHES_H
#define BLY_SKETCHES_H

#include <bloomery/sketch.h>

/* As bly_sketch_spec_check(), for its shingles. */
bly_status bly_shingling_check(bly_shingling *how);

/* A sketch. `bits` is 0 where all is known of it, else how many bits of each
 * component are. What `words` holds:
 *
 *     fss, oph     k values of bins; BINS_EMPTY in one that was never hit
 *     linear61     k minima, k times a, k times b
 *     linear       the same in halves of words, k rounded up to whole vectors
 *     compact      k components in halves of words
 */
struct bly_sketch {
    bly_mem mem;
    bly_sketch_spec spec;
    unsigned bits;
    bool any; /* has seen a shingle */
    size_t nbytes;
    uint64_t words[];
};

#define BLY_BINS_EMPTY UINT64_MAX
#define BLY_P61 ((UINT64_C(1) << 61) - 1)

/* As bly_sketch_new(), of so many bits. */
bly_status bly_sketch_make(const bly_sketch_spec *spec, unsigned bits,
                           bly_sketch **out);

/* Can these be vectors of so many coordinates? */
bly_status bly_vectors_check(const bly_vectors *v, size_t dims);

/* As bly_planes_sides() for vectors `from` to `to` - 1, which errors name by
 * these numbers, after the check above. *ndone counts from `from` on. */
bly_status bly_planes_part(const bly_planes *p, const bly_vectors *vectors,
                           size_t from, size_t to, uint64_t *sides,
                           size_t *ndone);

/* The components of a sketch that has any, as many bits of each as are known.
 */
void bly_sketch_known(const bly_sketch *s, uint32_t *out);

static inline uint32_t *bly_sketch_halves(const bly_sketch *s)
{
    return (uint32_t *)(void *)s->words;
}

#endif
