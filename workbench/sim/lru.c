/*
 * lru.c - a cache that forgets what was not asked for longest
 *
 * The table is probed from a document's slot on; a document that goes leaves
 * no gap, since those behind it move up.
 */
#include <stdlib.h>

#include "workbench/sim/lru.h"

struct lru_node {
    uint32_t document, prev, next;
};

bool lru_make(struct lru *c, uint32_t room)
{
    uint32_t slots = 4;
    while (slots < room * 2)
        slots *= 2;
    *c = (struct lru){ .mask = slots - 1, .room = room };
    c->nodes = calloc((size_t)room + 1, sizeof *c->nodes);
    c->table = calloc(slots, sizeof *c->table);
    if (c->nodes && c->table)
        return true;
    lru_free(c);
    return false;
}

void lru_free(struct lru *c)
{
    free(c->nodes);
    free(c->table);
    *c = (struct lru){ 0 };
}

/* Neighbours in number would crowd: 2^32 / the golden ratio spreads them. */
static uint32_t slot_of(const struct lru *c, uint32_t document)
{
    return (document * UINT32_C(2654435769) >> 7) & c->mask;
}

/* Where the document is, or the free slot where it would be. */
static uint32_t slot_find(const struct lru *c, uint32_t document)
{
    uint32_t i = slot_of(c, document);
    while (c->table[i] && c->nodes[c->table[i]].document != document)
        i = (i + 1) & c->mask;
    return i;
}

static void ring_leave(struct lru *c, uint32_t node)
{
    struct lru_node *const x = &c->nodes[node];
    c->nodes[x->prev].next = x->next;
    c->nodes[x->next].prev = x->prev;
}

static void ring_first(struct lru *c, uint32_t node)
{
    struct lru_node *const x = &c->nodes[node];
    x->prev = 0;
    x->next = c->nodes[0].next;
    c->nodes[x->next].prev = node;
    c->nodes[0].next = node;
}

bool lru_touch(struct lru *c, uint32_t document)
{
    const uint32_t node = c->table[slot_find(c, document)];
    if (!node)
        return false;
    ring_leave(c, node);
    ring_first(c, node);
    return true;
}

/* Free a slot, and move up what was probed past it. */
static void slot_free(struct lru *c, uint32_t gap)
{
    c->table[gap] = 0;
    for (uint32_t i = (gap + 1) & c->mask; c->table[i]; i = (i + 1) & c->mask) {
        const uint32_t home = slot_of(c, c->nodes[c->table[i]].document);
        if (((i - home) & c->mask) < ((i - gap) & c->mask))
            continue;
        c->table[gap] = c->table[i];
        c->table[i] = 0;
        gap = i;
    }
}

uint32_t lru_keep(struct lru *c, uint32_t document)
{
    uint32_t gone = LRU_NONE, node;
    if (c->n < c->room) {
        node = ++c->n;
    } else {
        node = c->nodes[0].prev;
        gone = c->nodes[node].document;
        slot_free(c, slot_find(c, gone));
        ring_leave(c, node);
    }
    c->nodes[node].document = document;
    c->table[slot_find(c, document)] = node;
    ring_first(c, node);
    return gone;
}
