/*
 * counters.h - queries to filters of counters: what counting and spectral share
 *
 * A key may be there while none of its k counters is zero, whatever they count.
 */
#ifndef BLY_COUNTERS_H
#define BLY_COUNTERS_H

#include "kinds/probe.h"

static inline __attribute__((always_inline)) bool
bly_counter_in_use4(const void *cells, uint64_t at, uint64_t tag)
{
    (void)tag;
    return bly_cell_get(cells, at, 4) != 0;
}

/* A query for m counters of 4 bits, the usual width. As a literal, the width
 * turns the address of a counter into a shift and a mask. */
static inline __attribute__((always_inline)) bly_probe_query
bly_counters_query4(const unsigned char *cells, bly_modulus m, uint64_t k)
{
    return (bly_probe_query){ .cells = cells,
                              .width = 4,
                              .range = m,
                              .k = k,
                              .test = bly_counter_in_use4,
                              .ctx = cells };
}

/* has() of m counters of any width. */
void bly_counters_has(const unsigned char *cells, uint64_t m, unsigned width,
                      uint64_t k, const uint64_t *h, size_t n, uint64_t *maybe);

#endif
