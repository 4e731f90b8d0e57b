/*
 * crowd.c - near-copies among pages that all share a template
 *
 * Pages of one template meet in the bands that the template fills, and there
 * are too many of them to be compared. Near-copies among them also share single
 * components that few other pages have. So each page that stays is listed under
 * the values of its first CROWD_OWN components that are not common, that is,
 * whose list has room; a page is compared with those on the lists of all its
 * values.
 *
 * If a share f of what the template does not give agrees, the chance to miss
 * is (1 - f)^CROWD_OWN: pages of which the template is half and that are 0.8
 * alike have f = 0.6, and 0.3 where it is three quarters.
 *
 * One table with open addresses holds the lists: entries of one tag follow one
 * another, with others in between.
 */
#include "apps/dedup/crowd.h"

#include "base/lookup.h"
#include "base/random.h"

static uint32_t tag_of(uint32_t position, uint32_t value)
{
    uint64_t x = ((uint64_t)position << 32 | value) + 1;
    x *= RANDOM_STEP;
    x ^= x >> 32;
    x *= UINT64_C(0xD6E8FEB86659FD93);
    return (uint32_t)(x >> 32);
}

/* The tag decides which list a value belongs to, so it is the same in every
 * run. The slot of the list depends on the process's secret, so that nobody can
 * write pages that collide. */
static uint64_t slot_of(uint32_t tag, uint64_t nslots)
{
    return table_hash(&tag, sizeof tag) & (nslots - 1);
}

static bool crowd_grow(struct crowd *c)
{
    const uint64_t had = c->nslots, nslots = had ? had * 2 : 1024;
    uint64_t *slots;
    if (!STORE_ZEROS(c->store, slots, nslots))
        return false;
    for (uint64_t i = 0; i < had; i++) {
        if (!c->slots[i])
            continue;
        uint64_t s = slot_of((uint32_t)(c->slots[i] >> 32), nslots);
        while (slots[s])
            s = (s + 1) & (nslots - 1);
        slots[s] = c->slots[i];
        store_trim(c->store);
    }
    store_release(c->store, c->slots);
    c->slots = slots;
    c->nslots = nslots;
    return true;
}

/* The documents under a tag; CROWD_LIST at most. */
static unsigned listed(const struct crowd *c, uint32_t tag, uint32_t *docs)
{
    unsigned n = 0;
    if (c->nslots == 0)
        return 0;
    for (uint64_t s = slot_of(tag, c->nslots); c->slots[s] && n < CROWD_LIST;
         s = (s + 1) & (c->nslots - 1))
        if (c->slots[s] >> 32 == tag)
            docs[n++] = (uint32_t)c->slots[s] - 1;
    return n;
}

bool crowd_look(struct crowd *c, const uint32_t *row, crowd_fn *found,
                void *ctx)
{
    c->nown = 0;
    for (uint32_t i = 0; i < c->k; i++) {
        const uint32_t tag = tag_of(i, row[i]);
        uint32_t docs[CROWD_LIST];
        const unsigned n = listed(c, tag, docs);
        if (n == CROWD_LIST)
            continue;
        for (unsigned j = 0; found && j < n; j++)
            if (!found(ctx, docs[j]))
                return false;
        if (c->nown < CROWD_OWN)
            c->own[c->nown++] = tag;
        store_trim(c->store);
    }
    return true;
}

bool crowd_put(struct crowd *c, uint32_t doc)
{
    if (c->n + c->nown > c->nslots / 2 && !crowd_grow(c))
        return false;
    for (unsigned i = 0; i < c->nown; i++) {
        uint64_t s = slot_of(c->own[i], c->nslots);
        while (c->slots[s])
            s = (s + 1) & (c->nslots - 1);
        c->slots[s] = (uint64_t)c->own[i] << 32 | (doc + 1);
        c->n++;
    }
    store_trim(c->store);
    return true;
}

#define SMALL_CROWD 4096

/* Most crowds are small, and there may be many: none pays for an earlier one
 * that was large. */
void crowd_clear(struct crowd *c)
{
    if (c->n == 0)
        return;
    if (c->nslots > SMALL_CROWD) {
        crowd_free(c);
        return;
    }
    for (uint64_t i = 0; i < c->nslots; i++)
        c->slots[i] = 0;
    store_trim(c->store);
    c->n = 0;
}

void crowd_free(struct crowd *c)
{
    store_release(c->store, c->slots);
    c->slots = NULL;
    c->n = c->nslots = 0;
}
