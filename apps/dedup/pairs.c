/*
 * pairs.c - pairs that were asked for, and the estimate of their likeness
 *
 * A list with a hash table over it. The list keeps the order in which pairs
 * were asked for, so that those of one round are its end.
 */
#include <math.h>

#include "apps/dedup/dedup.h"
#include "base/lookup.h"

double dedup_estimate(const struct dedup_docs *docs, uint32_t a, uint32_t b)
{
    const size_t k = docs->k;
    return (double)bly_components_equal(docs->rows + a * k, docs->rows + b * k,
                                        (unsigned)k) /
           (double)k;
}

static size_t pair_slot(uint32_t a, uint32_t b, size_t nslots)
{
    const uint64_t both = (uint64_t)a << 32 | b;
    return (size_t)table_hash(&both, sizeof both) & (nslots - 1);
}

static bool pairs_grow(struct dedup_job *job, struct dedup_pairs *p)
{
    if (p->n == p->room) {
        const size_t room = p->room ? p->room * 2 : 1024;
        if (!STORE(&job->store, p->at, room))
            return dedup_no_room(job, "pairs");
        p->room = room;
    }
    if (p->nslots && p->n < p->nslots / 2)
        return true;
    const size_t nslots = p->nslots ? p->nslots * 2 : 4096;
    uint32_t *slots;
    if (p->n >= UINT32_MAX - 1)
        return dedup_fail(job, "more than 2^32 - 2 pairs");
    if (!STORE_ZEROS(&job->store, slots, nslots))
        return dedup_no_room(job, "pairs");
    for (size_t i = 0; i < p->n; i++) {
        size_t s = pair_slot(p->at[i].a, p->at[i].b, nslots);
        while (slots[s])
            s = (s + 1) & (nslots - 1);
        slots[s] = (uint32_t)i + 1;
        store_trim(&job->store);
    }
    store_release(&job->store, p->slots);
    p->slots = slots;
    p->nslots = nslots;
    return true;
}

struct dedup_pair *dedup_pair_of(struct dedup_job *job, struct dedup_pairs *p,
                                 uint32_t a, uint32_t b)
{
    if (a > b)
        return dedup_pair_of(job, p, b, a);
    if ((p->n == p->room || p->n >= p->nslots / 2) && !pairs_grow(job, p))
        return NULL;
    size_t s = pair_slot(a, b, p->nslots);
    store_trim(&job->store);
    for (; p->slots[s]; s = (s + 1) & (p->nslots - 1)) {
        struct dedup_pair *const q = &p->at[p->slots[s] - 1];
        if (q->a == a && q->b == b)
            return q;
    }
    p->slots[s] = (uint32_t)p->n + 1;
    p->at[p->n] = (struct dedup_pair){ .a = a, .b = b, .likeness = NAN };
    return &p->at[p->n++];
}
