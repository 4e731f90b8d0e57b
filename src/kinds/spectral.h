/*
 * spectral.h - the counters of spectral filters: their layout, and how they
 * grow
 *
 * spectral.c says what is done with them.
 */
#ifndef BLY_SPECTRAL_H
#define BLY_SPECTRAL_H

#include "core/overflow.h"
#include "kinds/probe.h"

enum {
    SPECTRAL_COUNTERS,
    SPECTRAL_K,
    SPECTRAL_UPDATE,
    SPECTRAL_WIDTH,
    SPECTRAL_SECONDARY,
    SPECTRAL_MARKER,
    SPECTRAL_RULE,
    SPECTRAL_FOLDS,
    SPECTRAL_COMPACT,
    SPECTRAL_LARGE
};
enum { SPECTRAL_SELECTION, SPECTRAL_INCREASE, SPECTRAL_RECURRING };
enum { SPECTRAL_STUCK, SPECTRAL_NLARGE }; /* state */

/* Counters of both arrays. */
static inline uint64_t spectral_counters(const bly_shape *s)
{
    return s->p[SPECTRAL_COUNTERS] + s->p[SPECTRAL_SECONDARY];
}

/* Can counts outgrow the counters, into the table of large counts? */
static inline bool spectral_outgrown(const bly_shape *s)
{
    return s->p[SPECTRAL_COMPACT] && s->p[SPECTRAL_WIDTH] < 32;
}

static inline uint32_t spectral_ceiling(const bly_shape *s)
{
    return s->p[SPECTRAL_COMPACT]
               ? UINT32_MAX
               : bly_cell_top((unsigned)s->p[SPECTRAL_WIDTH]);
}

static inline uint64_t spectral_large_bytes(const bly_shape *s)
{
    return bly_overflow_nbytes(s->p[SPECTRAL_LARGE], spectral_counters(s));
}

/* The shape that follows from m, k, the update rule, the width, and the room
 * for large counts. */
bly_shape bly_spectral_shape(uint64_t m, uint64_t k, uint64_t update,
                             uint64_t width, uint64_t compact, uint64_t large);

/* Does a table of this many places take no more memory than counters twice as
 * wide? */
static inline bool spectral_pays(const bly_shape *s, uint64_t places)
{
    const uint64_t n = spectral_counters(s);
    return bly_overflow_bits(places, n) <= n * s->p[SPECTRAL_WIDTH];
}

/* The shape that a compact one of less than 32 bits grows to. */
bly_shape bly_spectral_after(const bly_shape *s);

/* One of the two arrays: its counters, and what they are called in the table
 * of large counts. */
typedef struct spectral_array {
    unsigned char *cells;
    uint64_t first; /* position there of counter 0 */
} spectral_array;

/* The parts of the data of f. */
typedef struct spectral_parts {
    spectral_array primary, secondary;
    uint64_t *marker; /* NULL: there is neither secondary nor marker */
    bly_overflow large;
    bool outgrown; /* counters at their top are in the table of large counts */
    unsigned width;
    uint32_t ceiling; /* a count that reaches this is stuck */
    uint64_t k;
    bly_modulus m, m2, marks; /* of primary, secondary, marker */
} spectral_parts;

spectral_parts bly_spectral_parts(const bly_filter *f);

/* The count of a counter. If a damaged file has no large count for it, the
 * lowest possible one. */
uint32_t bly_spectral_value(const spectral_parts *p, const spectral_array *a,
                            uint64_t j);

/* Give a counter this value; *n large counts there are. False, and nothing is
 * changed: the table of these is full. */
bool bly_spectral_assign(spectral_parts *p, const spectral_array *a, uint64_t j,
                         uint32_t value, uint64_t *n);

/* Room for more large counts. */
bly_status bly_spectral_grow(bly_filter *f);

/* Of the kind's descriptor. */
bly_status bly_spectral_merge(bly_filter *dst, const bly_filter *src);
bly_status bly_spectral_intersect(bly_filter *dst, const bly_filter *src);
bly_status bly_spectral_fold(const bly_filter *f, bly_filter **out);

#endif
