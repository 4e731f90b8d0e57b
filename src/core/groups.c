/*
 * groups.c - hashes of keys that belong to groups
 */
#include "core/groups.h"

#include <string.h>

static uint64_t plain_hash(uint64_t seed, const void *bytes, size_t len)
{
    const bly_hasher plain = { .id = BLY_HASH_XXH3, .seed = seed };
    return bly_hash(&plain, bytes, len);
}

uint32_t bly_groups_print(uint64_t seed, const void *name, size_t len)
{
    return (uint32_t)(plain_hash(seed, name, len) >>
                      (64 - (32 - BLY_GROUPS_SPAN_BITS)));
}

unsigned bly_groups_span(const bly_groups *g, uint64_t h)
{
    unsigned span = 0;
    for (unsigned i = 0; i + 1 < g->nspans; i++)
        span += h > bly_groups_last(g, i);
    return span;
}

/* The span of a group. */
static unsigned span_of(const bly_groups *g, uint32_t print)
{
    const unsigned char *const rows = g->at + 16 * (size_t)g->nspans;
    uint64_t low = 0, high = g->nrows;
    while (low < high) {
        const uint64_t mid = low + (high - low) / 2;
        if (bly_load32(rows + 4 * mid) >> BLY_GROUPS_SPAN_BITS < print)
            low = mid + 1;
        else
            high = mid;
    }
    const uint32_t row = low < g->nrows ? bly_load32(rows + 4 * low) : 0;
    const unsigned span = row & ((1u << BLY_GROUPS_SPAN_BITS) - 1);
    return low < g->nrows && row >> BLY_GROUPS_SPAN_BITS == print &&
                   span < g->nspans
               ? span
               : g->rest;
}

uint64_t bly_groups_hash(const bly_hasher *hs, const void *key, size_t len)
{
    const bly_groups g = bly_groups_of(hs);
    const unsigned char *const tab = len ? memchr(key, '\t', len) : NULL;
    if (!tab || !g.at)
        return 0;
    const size_t name = (size_t)(tab - (const unsigned char *)key);
    const unsigned span = span_of(&g, bly_groups_print(hs->seed, key, name));
    const uint64_t first = span ? bly_groups_last(&g, span - 1) + 1 : 1;
    const uint64_t n = bly_groups_last(&g, span) - first + 1;
    return first + bly_mulhi(plain_hash(hs->seed, key, len), n);
}
