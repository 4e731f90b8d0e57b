/*
 * classic.h - for kinds that extend the classic filter, or can be converted to
 * one
 */
#ifndef BLY_CLASSIC_H
#define BLY_CLASSIC_H

#include "kinds/bitset.h"
#include "kinds/probe.h"

/* The first params of the shape, as the functions below expect them. More may
 * follow. */
enum { BLY_CLASSIC_BITS, BLY_CLASSIC_K, BLY_CLASSIC_LAYOUT /* 0: shared */ };

#define BLY_CLASSIC_BITS_PARAM                      \
    {                                               \
        .name = "bits", .type = BLY_UINT, .min = 1, \
        .max = (double)BLY_PROBE_MAX_CELLS,         \
        .help = BLY_AMPLE("bits in the array (m)")  \
    }
#define BLY_CLASSIC_K_PARAM                                                    \
    {                                                                          \
        .name = "k", .type = BLY_UINT, .settable = true, .automatic = true,    \
        .min = 1, .max = BLY_PROBE_MAX_K, .help = BLY_AMPLE("bits a key sets") \
    }

/* Bytes that m bits take: whole words. */
uint64_t bly_classic_nbytes(uint64_t m);

/* Functions of classic's descriptor, for use in that of another kind. */
bly_status bly_classic_add(bly_filter *f, const uint64_t *h, size_t n,
                           uint64_t *fresh, size_t *ndone);
bly_status bly_classic_add_shared(bly_filter *f, const uint64_t *h, size_t n,
                                  uint64_t *fresh, size_t *ndone);
void bly_classic_has(const bly_filter *f, const uint64_t *h, size_t n,
                     uint64_t *maybe);
void bly_classic_fetch(const bly_filter *f, const uint64_t *h, size_t n);
void bly_classic_reach(const bly_filter *f, const uint64_t *h, size_t n,
                       uint64_t *bad);
void bly_classic_one(const bly_filter *f, bly_one *out);
bly_bitset bly_classic_bitset(const bly_filter *f);
bool bly_classic_check(const bly_filter *f);

/* The classic filter whose bits are set where the m counters of f, `width`
 * bits each at the beginning of its data, are not zero: the convert() of kinds
 * that probe as classic does (probe.h). Its m and k are fixed, so w may ask for
 * a capacity, but not for a rate, memory, k or layout. */
bly_status bly_classic_from_cells(const bly_filter *f, uint64_t m, uint64_t k,
                                  unsigned width, const bly_kind *to,
                                  const bly_want *w, bly_filter **out);

#endif
