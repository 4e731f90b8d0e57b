/*
 * lookup.c - from keys to the numbers of rows
 */
#include "base/lookup.h"

#include <bloomery.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define MOST_ROWS ((size_t)1 << 31)

static bly_hasher table_hasher = { .id = BLY_HASH_SIPHASH13 };

static void secret_choose(void)
{
    /* Without randomness it is a table all the same. */
    if (getrandom(table_hasher.secret, sizeof table_hasher.secret,
                  GRND_NONBLOCK) < 0)
        table_hasher.secret[0] = 1;
}

uint64_t table_hash(const void *key, size_t n)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, secret_choose);
    return bly_hash(&table_hasher, key, n);
}

static void slot_put(struct lookup *t, struct lookup_slot s)
{
    size_t at = s.tag & (t->nslots - 1);
    while (t->slots[at].row)
        at = (at + 1) & (t->nslots - 1);
    t->slots[at] = s;
}

bool lookup_fit(struct lookup *t, size_t n)
{
    struct lookup larger = { .nslots = t->nslots ? t->nslots : 16, .n = t->n };
    if (n > MOST_ROWS)
        return false;
    while (larger.nslots / 2 < n)
        larger.nslots *= 2;
    if (larger.nslots == t->nslots)
        return true;
    larger.slots = calloc(larger.nslots, sizeof *larger.slots);
    if (!larger.slots)
        return false;
    for (size_t i = 0; i < t->nslots; i++)
        if (t->slots[i].row)
            slot_put(&larger, t->slots[i]);
    free(t->slots);
    *t = larger;
    return true;
}

bool lookup_add(struct lookup *t, uint64_t hash, size_t row)
{
    if (row >= MOST_ROWS || !lookup_fit(t, t->n + 1))
        return false;
    slot_put(t, (struct lookup_slot){ (uint32_t)hash, (uint32_t)row + 1 });
    t->n++;
    return true;
}

void lookup_empty(struct lookup *t)
{
    if (t->nslots)
        memset(t->slots, 0, t->nslots * sizeof *t->slots);
    t->n = 0;
}

void lookup_free(struct lookup *t)
{
    free(t->slots);
    *t = (struct lookup){ 0 };
}
