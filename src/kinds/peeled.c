/*
 * peeled.c - what filters built by peeling have in common
 */
#include "kinds/peeled.h"

bly_status bly_peeled_build(bly_filter *f, const bly_peel *p, uint64_t first,
                            uint64_t nshards, uint64_t *h, uint64_t *values,
                            size_t n, unsigned nthreads,
                            bly_peel_assign *assign)
{
    const bly_peel_task task = { p, first,   nshards,           h,      values,
                                 n, f->data, bly_filter_mem(f), assign, f };
    uint64_t ndistinct;
    const bly_status st = bly_peel_build(&task, nthreads, &ndistinct);
    if (st)
        return st;
    /* Only now: a failed build leaves these numbers as they were. */
    f->state[BLY_PEELED_STATE] += ndistinct;
    f->nadded = f->state[BLY_PEELED_STATE];
    f->items = f->nadded ? f->nadded : 1;
    return BLY_OK;
}

bool bly_peeled_sound(const bly_filter *f)
{
    const uint64_t keys = f->state[BLY_PEELED_STATE];
    return f->items == (keys ? keys : 1) && !f->nlayers;
}

bool bly_peeled_check(const bly_filter *f, const bly_peel *p,
                      unsigned cell_bits)
{
    const uint64_t head = bly_peel_head(p->nshards);
    const uint64_t cells = (p->nshards * p->nslots * cell_bits + 7) / 8;
    unsigned char sum = 0;
    for (uint64_t i = p->nshards * 8; i < head; i++)
        sum |= f->data[i];
    for (uint64_t i = head + cells; i < f->shape.nbytes; i++)
        sum |= f->data[i];
    return !sum;
}

void bly_peeled_stat(const bly_filter *f, const bly_peel *p, double rate,
                     bly_stats *out)
{
    out->items_estimate = (double)f->state[BLY_PEELED_STATE];
    out->items_sd = 0;
    out->fpr_now = f->state[BLY_PEELED_STATE] ? rate : 0;
    out->fill = out->items_estimate / ((double)p->nshards * (double)p->nslots);
}

bool bly_peeled_reach(const bly_filter *f, const bly_peel *p,
                      unsigned cell_bits, uint64_t h, size_t i, uint64_t *bad,
                      bly_peel_key *key)
{
    const uint64_t cells = bly_peel_head(p->nshards);
    /* First the seed: a damaged one would lead to the wrong slots. */
    if (!bly_reach(f, bly_peel_shard(p, h) * 8, 8, i, bad))
        return false;
    bly_peel_find(p, p->arity, p->fuse, f->data, h, key);
    bool right = true;
    for (unsigned k = 0; k < p->arity; k++) {
        const uint64_t bit = key->slot[k] * cell_bits, byte = bit / 8;
        const uint64_t last = (bit + cell_bits - 1) / 8;
        right &= bly_reach(f, cells + byte, last - byte + 1, i, bad);
    }
    return right;
}
