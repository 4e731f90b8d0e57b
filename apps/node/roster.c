/*
 * roster.c - who keeps the names of a ring
 */
#include "apps/node/roster.h"

#include <stdlib.h>
#include <string.h>

#include "chord/chord_wire.h"
#include "base/search.h"

unsigned roster_find(const struct roster *r, uint64_t who)
{
    unsigned i = 0;
    while (i < r->n && r->at[i].who != who)
        i++;
    return i;
}

static void entry_remove(struct roster *r, unsigned i)
{
    memmove(r->at + i, r->at + i + 1, (--r->n - i) * sizeof r->at[0]);
}

void roster_drop(struct roster *r, uint64_t who)
{
    const unsigned i = roster_find(r, who);
    if (i < r->n)
        entry_remove(r, i);
}

bool roster_add(struct roster *r, const struct roster_entry *e)
{
    for (unsigned i = r->n; i-- > 0;)
        if (r->at[i].who == e->who ||
            address_equal(&r->at[i].address, &e->address))
            entry_remove(r, i);
    if (r->n == ROSTER_MOST)
        return false;
    unsigned at = r->n++;
    for (; at > 0 && r->at[at - 1].who > e->who; at--)
        r->at[at] = r->at[at - 1];
    r->at[at] = *e;
    return true;
}

bool roster_same(const struct roster *a, const struct roster *b)
{
    bool same = a->n == b->n;
    for (unsigned i = 0; same && i < a->n; i++)
        same = a->at[i].who == b->at[i].who &&
               a->at[i].vnodes == b->at[i].vnodes &&
               address_equal(&a->at[i].address, &b->at[i].address);
    return same;
}

/* --------------------------------------------------------------- the circle */

static int by_place(const void *x, const void *y)
{
    const struct roster_place *const a = x, *const b = y;
    if (a->id != b->id)
        return a->id < b->id ? -1 : 1;
    return a->process < b->process ? -1 : a->process > b->process;
}

bool roster_places(const struct roster *r, struct roster_ring *out)
{
    size_t n = 0;
    *out = (struct roster_ring){ 0 };
    for (unsigned i = 0; i < r->n; i++)
        n += r->at[i].vnodes;
    out->at = malloc((n + 1) * sizeof *out->at);
    if (!out->at)
        return false;
    for (unsigned i = 0; i < r->n; i++)
        for (unsigned v = 0; v < r->at[i].vnodes; v++)
            out->at[out->n++] =
                (struct roster_place){ descriptor_id(&r->at[i].address, v), i };
    qsort(out->at, out->n, sizeof *out->at, by_place);
    return true;
}

void roster_places_free(struct roster_ring *ring)
{
    free(ring->at);
    *ring = (struct roster_ring){ 0 };
}

size_t roster_holders(const struct roster_ring *ring, uint64_t id,
                      size_t copies, unsigned *out)
{
    size_t low, found = 0;
    LOWER_BOUND(low, ring->n, ring->at[low].id < id);
    for (size_t i = 0; i < ring->n && found < copies; i++) {
        const unsigned p = ring->at[(low + i) % ring->n].process;
        bool known = false;
        for (size_t k = 0; k < found && !known; k++)
            known = out[k] == p;
        if (!known)
            out[found++] = p;
    }
    return found;
}

/* ----------------------------------------------------------------- as bytes */

void roster_put_entry(struct blob *b, const struct roster_entry *e)
{
    blob_number(b, e->who, 8);
    blob_number(b, e->address.family, 1);
    blob_bytes(b, e->address.at, sizeof e->address.at);
    blob_number(b, e->address.port, 2);
    blob_number(b, e->vnodes, 2);
}

bool roster_take_entry(struct body *b, struct roster_entry *e)
{
    *e = (struct roster_entry){ .who = body_number(b, 8) };
    e->address.family = (uint8_t)body_number(b, 1);
    const unsigned char *const at = body_bytes(b, sizeof e->address.at);
    if (at)
        memcpy(e->address.at, at, sizeof e->address.at);
    e->address.port = (uint16_t)body_number(b, 2);
    e->vnodes = (uint16_t)body_number(b, 2);
    return !b->bad && e->who && e->address.port &&
           (e->address.family == 4 || e->address.family == 6) && e->vnodes &&
           e->vnodes <= WIRE_MOST_V;
}

void roster_put(struct blob *b, const struct roster *r)
{
    blob_number(b, r->epoch, 8);
    blob_number(b, r->n, 2);
    for (unsigned i = 0; i < r->n; i++)
        roster_put_entry(b, &r->at[i]);
}

bool roster_take(struct body *b, struct roster *r)
{
    *r = (struct roster){ .epoch = body_number(b, 8) };
    const unsigned n = (unsigned)body_number(b, 2);
    if (b->bad || !r->epoch || r->epoch > UINT32_MAX || !n || n > ROSTER_MOST ||
        (size_t)n * ROSTER_ENTRY > b->n)
        return false;
    for (unsigned i = 0; i < n; i++) {
        struct roster_entry e;
        if (!roster_take_entry(b, &e) || !roster_add(r, &e) || r->n != i + 1)
            return false; /* somebody took another's place */
    }
    return true;
}
