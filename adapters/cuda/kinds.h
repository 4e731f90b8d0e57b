/*
 * kinds.h - the other kinds on a device: one thread per key
 *
 * Their cells lie all over the filter, so that lanes cannot help each other. A
 * thread asks for its key through the view of its kind, exactly as a program
 * does on a processor (bloomery/views.h), and the warp votes.
 */
#ifndef BLY_CUDA_KINDS_H
#define BLY_CUDA_KINDS_H

#include "cuda_keys.h"

/* A kernel that asks: VIEW and HAS are the view and its function. */
#define ASKING(name, VIEW, HAS)                                         \
    KERNEL(name)(VIEW v, key_source keys, uint64_t n, uint32_t * maybe) \
    {                                                                   \
        const uint64_t rounded = (n + 63) / 64 * 64;                    \
        for (uint64_t i = key_first(); i < rounded; i += key_step()) {  \
            const uint32_t answers =                                    \
                warp_votes(i < n && HAS(&v, key_hash(&keys, i)));       \
            if (lane_at() == 0)                                         \
                maybe[i / LANES] = answers;                             \
        }                                                               \
    }

ASKING(classic_ask, bly_view_classic, bly_view_classic_has)
ASKING(cuckoo_ask, bly_view_cuckoo, bly_view_cuckoo_has)
ASKING(fuse_ask, bly_view_fuse, bly_view_fuse_has)
ASKING(xor_ask, bly_view_xor, bly_view_xor_has)
ASKING(ribbon_ask, bly_view_ribbon, bly_view_ribbon_has)
ASKING(countmin_ask, bly_view_countmin, bly_view_countmin_count)

/* ----------------------------------------------------------------- classic */

ANYWHERE void classic_set(uint64_t *words, uint64_t bit)
{
    cell_or(words + bit / 64, UINT64_C(1) << bit % 64);
}

ANYWHERE void classic_enter(const bly_view_classic *v, uint64_t *words,
                            uint64_t hash)
{
    if (!v->inverse) { /* layout `spread` */
        for (uint64_t i = 0; i < v->k; i++) {
            classic_set(words, bly_mulhi(hash, v->nbits));
            hash *= BLY_POWERS_C;
        }
        return;
    }
    uint64_t x = bly_mod_(hash, v->nbits, v->inverse);
    uint64_t y = bly_mod_(bly_mix64(hash), v->nbits, v->inverse);
    for (uint64_t i = 0; i < v->k; i++) {
        classic_set(words, x);
        x = bly_wrap_(x + y, v->nbits);
        y = bly_wrap_(y + i + 1, v->nbits);
    }
}

KERNEL(classic_add)
(bly_view_classic v, uint64_t *words, key_source keys, uint64_t n)
{
    for (uint64_t i = key_first(); i < n; i += key_step())
        classic_enter(&v, words, key_hash(&keys, i));
}

/* --------------------------------------------------------------- count-min */

KERNEL(countmin_add)
(bly_view_countmin v, uint64_t *counters, key_source keys, uint64_t n)
{
    for (uint64_t i = key_first(); i < n; i += key_step()) {
        uint64_t hash = key_hash(&keys, i);
        for (uint64_t row = 0; row < v.depth; row++) {
            const uint64_t at = bly_countmin_place_(&hash, row, v.width);
            if (v.wide)
                (void)cell_add(counters + at, 1);
            else
                (void)half_add((uint32_t *)counters + at, 1);
        }
    }
}

KERNEL(countmin_count)
(bly_view_countmin v, key_source keys, uint64_t n, uint64_t *counts)
{
    for (uint64_t i = key_first(); i < n; i += key_step())
        counts[i] = bly_view_countmin_count(&v, key_hash(&keys, i));
}

/* ---------------------------------------------------------- whole filters */

/* dst |= src, word by word; and dst += src for counters, which the caller has
 * made sure cannot overflow. */
KERNEL(cells_unite)(uint64_t *dst, const uint64_t *src, uint64_t nwords)
{
    for (uint64_t i = key_first(); i < nwords; i += key_step())
        dst[i] |= src[i];
}

KERNEL(cells_sum)
(uint64_t *dst, const uint64_t *src, uint64_t nwords, bool wide)
{
    for (uint64_t i = key_first(); i < nwords; i += key_step())
        if (wide)
            dst[i] += src[i];
        else /* two counters, neither of which carries */
            dst[i] = (dst[i] + (src[i] & UINT32_MAX)) +
                     (src[i] & ~(uint64_t)UINT32_MAX);
}

KERNEL(cells_ones)(const uint64_t *cells, uint64_t nwords, uint64_t *total)
{
    uint64_t sum = 0;
    for (uint64_t i = key_first(); i < nwords; i += key_step())
        sum +=
            ones_of((uint32_t)cells[i]) + ones_of((uint32_t)(cells[i] >> 32));
    if (sum)
        (void)cell_add(total, sum);
}

#endif
