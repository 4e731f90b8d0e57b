/*
 * levels.c - the bits in which two attenuated filters differ
 *
 * Messages between nodes have the difference to what the neighbour was told
 * before, files and first messages the difference to an empty filter: one code
 * for all of them. Rice's code of gaps (codec/rice.c) costs close to what the
 * positions are worth when they are few and, with b = 0, one bit for each bit
 * of the level when there are as many ones as zeros. So there is no second form
 * for full filters.
 */
#include "codec/rice.h"
#include "core/varint.h"
#include "kinds/classic.h"
#include "node/node_levels.h"

static size_t varint_bytes(uint64_t x)
{
    size_t n = 1;
    while (x >>= 7)
        n++;
    return n;
}

/* False if it is cut short, too long, or longer than it has to be. */
static bool varint_read(const unsigned char **at, size_t *n, uint64_t *out)
{
    const unsigned char *p = *at;
    if (!bly_varint_read(&p, *at + *n, out))
        return false;
    const size_t len = (size_t)(p - *at);
    *n -= len;
    *at = p;
    return len == varint_bytes(*out);
}

uint64_t bly_levels_bytes(const bly_filter *from, const bly_filter *to,
                          uint64_t *flips)
{
    uint64_t n = 0, sum = 0;
    for (uint32_t j = 0; j < to->nlayers; j++) {
        bly_rice r;
        bly_rice_measure(from->layer[j]->data, to->layer[j]->data,
                         to->layer[j]->shape.nbytes, &r);
        n += varint_bytes(r.nflips) + (r.nflips ? 1 + r.nbytes : 0);
        sum += r.nflips;
    }
    if (flips)
        *flips = sum;
    return n;
}

unsigned char *bly_levels_write(const bly_filter *from, const bly_filter *to,
                                unsigned char *at)
{
    for (uint32_t j = 0; j < to->nlayers; j++) {
        const unsigned char *const a = from->layer[j]->data;
        const unsigned char *const b = to->layer[j]->data;
        const size_t nbytes = to->layer[j]->shape.nbytes;
        bly_rice r;
        bly_rice_measure(a, b, nbytes, &r);
        at = bly_varint_write(at, r.nflips);
        if (!r.nflips)
            continue;
        *at++ = (unsigned char)r.b;
        bly_rice_write(a, b, nbytes, &r, at);
        at += r.nbytes;
    }
    return at;
}

bool bly_levels_read(const unsigned char **at, size_t *n, bly_filter *f,
                     uint64_t depth, uint64_t *flips)
{
    for (uint64_t j = 0; j < depth; j++) {
        bly_rice r = { 0 };
        if (!varint_read(at, n, &r.nflips))
            return false;
        if (!r.nflips)
            continue;
        if (!f || !*n)
            return false;
        bly_filter *const level = f->layer[j];
        r.b = *(*at)++;
        --*n;
        /* The last check: no flip behind the m bits of the level, where its
         * words go on. */
        if (!bly_rice_flip(*at, *n, &r, level->data, level->shape.nbytes) ||
            !level->kind->check(level))
            return false;
        *at += r.nbytes;
        *n -= r.nbytes;
        *flips += r.nflips;
    }
    return true;
}

uint64_t bly_levels_most(const bly_node *v)
{
    /* d flips among m bits take at most d (b + 1) + (m - d) / 2^b bits. b is 0
     * from d = 0.35 m on, which makes m; just below that it is 1, and 1.02 m
     * the most of all. 1.5 m is safe from rounding. */
    const uint64_t nbytes = bly_classic_nbytes(v->m);
    return v->depth * (BLY_VARINT_MOST + 1 + nbytes + nbytes / 2);
}
