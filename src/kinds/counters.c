/*
 * counters.c - queries to filters of counters
 */
#include "kinds/counters.h"

typedef struct counters_width {
    const unsigned char *cells;
    unsigned width;
} counters_width;

static inline __attribute__((always_inline)) bool
counter_in_use(const void *ctx, uint64_t at, uint64_t tag)
{
    const counters_width *const c = ctx;
    (void)tag;
    return bly_cell_get(c->cells, at, c->width) != 0;
}

static inline __attribute__((always_inline)) bool
counter_in_use32(const void *cells, uint64_t at, uint64_t tag)
{
    (void)tag;
    return bly_cell_get(cells, at, 32) != 0;
}

void bly_counters_has(const unsigned char *cells, uint64_t m, unsigned width,
                      uint64_t k, const uint64_t *h, size_t n, uint64_t *maybe)
{
    const bly_modulus range = bly_modulus_of(m);
    if (width == 4) {
        const bly_probe_query q = bly_counters_query4(cells, range, k);
        bly_probe_ask(&q, h, n, maybe);
    } else if (width == 32) {
        const bly_probe_query q = { .cells = cells,
                                    .width = 32,
                                    .range = range,
                                    .k = k,
                                    .test = counter_in_use32,
                                    .ctx = cells };
        bly_probe_ask(&q, h, n, maybe);
    } else {
        const counters_width of = { cells, width };
        const bly_probe_query q = { .cells = cells,
                                    .width = width,
                                    .range = range,
                                    .k = k,
                                    .test = counter_in_use,
                                    .ctx = &of };
        bly_probe_ask(&q, h, n, maybe);
    }
}
