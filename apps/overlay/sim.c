/*
 * sim.c - nodes, links and timers in simulated time
 *
 * Events wait in a heap with four children a node, which has half the depth of
 * the usual one and looks at neighbours in one or two cache lines. An entry is
 * its time, its number and where the event is: 24 bytes, so that sifting does
 * not touch the events. These come from lists by size and go back to them.
 */
#include "apps/overlay/sim.h"

#include <stdlib.h>
#include <string.h>

#define SIM_CLASSES 8 /* 64 bytes to 8 KiB */
#define SIM_SLAB ((size_t)1 << 20)

struct sim_item {
    struct sim_item *next; /* in a list of free ones */
    uint32_t node, from, life;
    uint8_t what, size_class;
    uint32_t nbytes;
    uint64_t data;
    unsigned char bytes[];
};

struct sim_entry {
    uint64_t time, number;
    struct sim_item *item;
};

struct sim_node {
    uint32_t life; /* how often it came up */
    bool up;
    uint16_t part;
};

struct sim {
    struct sim_links links;
    struct sim_node *nodes;
    sim_handler *handle;
    void *ctx;
    uint64_t now, number, random;
    struct sim_entry *heap;
    size_t n, room;
    struct sim_item *unused[SIM_CLASSES];
    void **slabs;
    size_t nslabs, at, left; /* of the last one */
    bool failed;
    struct sim_counts counts;
};

uint64_t sim_random(struct sim *s)
{
    uint64_t x = s->random += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

struct sim *sim_new(const struct sim_links *links, uint32_t nnodes,
                    uint64_t seed, sim_handler *handle, void *ctx)
{
    struct sim *const s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->nodes = calloc(nnodes ? nnodes : 1, sizeof *s->nodes);
    if (!s->nodes) {
        free(s);
        return NULL;
    }
    s->links = *links;
    s->random = seed;
    s->handle = handle;
    s->ctx = ctx;
    return s;
}

void sim_free(struct sim *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->nslabs; i++)
        free(s->slabs[i]);
    free(s->slabs);
    free(s->heap);
    free(s->nodes);
    free(s);
}

/* ------------------------------------------------------------------ the items
 */

static size_t class_bytes(unsigned c)
{
    return (size_t)64 << c;
}

static struct sim_item *item_new(struct sim *s, size_t nbytes)
{
    unsigned c = 0;
    while (c < SIM_CLASSES && class_bytes(c) < sizeof(struct sim_item) + nbytes)
        c++;
    if (c == SIM_CLASSES)
        return NULL;
    struct sim_item *item = s->unused[c];
    if (item) {
        s->unused[c] = item->next;
    } else {
        if (s->left < class_bytes(c)) {
            void **const more =
                realloc(s->slabs, (s->nslabs + 1) * sizeof *more);
            if (more)
                s->slabs = more;
            void *const slab = more ? malloc(SIM_SLAB) : NULL;
            if (!slab)
                return NULL;
            s->slabs[s->nslabs++] = slab;
            s->at = 0;
            s->left = SIM_SLAB;
        }
        item = (void *)((char *)s->slabs[s->nslabs - 1] + s->at);
        s->at += class_bytes(c);
        s->left -= class_bytes(c);
    }
    item->size_class = (uint8_t)c;
    item->nbytes = (uint32_t)nbytes;
    return item;
}

static void item_free(struct sim *s, struct sim_item *item)
{
    item->next = s->unused[item->size_class];
    s->unused[item->size_class] = item;
}

/* ------------------------------------------------------------------- the heap
 */

static bool is_sooner(const struct sim_entry *a, const struct sim_entry *b)
{
    return a->time != b->time ? a->time < b->time : a->number < b->number;
}

static void heap_put(struct sim *s, uint64_t time, struct sim_item *item)
{
    if (s->n == s->room) {
        const size_t room = s->room ? 2 * s->room : 1024;
        struct sim_entry *const more = realloc(s->heap, room * sizeof *more);
        if (!more) {
            s->failed = true;
            item_free(s, item);
            return;
        }
        s->heap = more;
        s->room = room;
    }
    const struct sim_entry e = { time, s->number++, item };
    size_t i = s->n++;
    for (size_t up; i > 0 && is_sooner(&e, &s->heap[up = (i - 1) / 4]); i = up)
        s->heap[i] = s->heap[up];
    s->heap[i] = e;
}

static struct sim_entry heap_take(struct sim *s)
{
    const struct sim_entry first = s->heap[0], e = s->heap[--s->n];
    size_t i = 0;
    for (size_t c; (c = 4 * i + 1) < s->n; i = c) {
        const size_t end = c + 4 < s->n ? c + 4 : s->n;
        for (size_t k = c + 1; k < end; k++)
            if (is_sooner(&s->heap[k], &s->heap[c]))
                c = k;
        if (!is_sooner(&s->heap[c], &e))
            break;
        s->heap[i] = s->heap[c];
    }
    s->heap[i] = e;
    return first;
}

/* ------------------------------------------------------------------- the world
 */

void sim_send(struct sim *s, uint32_t from, uint32_t to, const void *bytes,
              size_t nbytes, size_t wire)
{
    struct sim_item *const item = item_new(s, nbytes);
    if (!item) {
        s->failed = true;
        return;
    }
    const uint64_t spread = s->links.delay_most - s->links.delay_least;
    const uint64_t delay =
        s->links.delay_least + (spread ? sim_random(s) % (spread + 1) : 0);
    const bool lost = s->links.loss > 0 &&
                      (double)(sim_random(s) >> 11) * 0x1p-53 < s->links.loss;
    item->what = lost ? SIM_LOST : SIM_MESSAGE;
    item->node = to;
    item->from = from;
    memcpy(item->bytes, bytes, nbytes);
    s->counts.messages++;
    s->counts.bytes += wire;
    heap_put(s, s->now + delay, item);
}

void sim_after(struct sim *s, uint32_t node, uint64_t delay, uint64_t data)
{
    struct sim_item *const item = item_new(s, 0);
    if (!item) {
        s->failed = true;
        return;
    }
    item->what = SIM_TIMER;
    item->node = item->from = node;
    item->life = s->nodes[node].life;
    item->data = data;
    heap_put(s, s->now + delay, item);
}

bool sim_failed(const struct sim *s)
{
    return s->failed;
}

void sim_up(struct sim *s, uint32_t node)
{
    s->nodes[node].up = true;
    s->nodes[node].life++;
}

void sim_down(struct sim *s, uint32_t node)
{
    s->nodes[node].up = false;
    s->nodes[node].life++;
}

bool sim_is_up(const struct sim *s, uint32_t node)
{
    return s->nodes[node].up;
}

void sim_part(struct sim *s, uint32_t node, unsigned part)
{
    s->nodes[node].part = (uint16_t)part;
}

uint64_t sim_now(const struct sim *s)
{
    return s->now;
}

struct sim_counts sim_counts(const struct sim *s)
{
    return s->counts;
}

void sim_run(struct sim *s, uint64_t until)
{
    while (s->n && s->heap[0].time <= until && !s->failed) {
        const struct sim_entry next = heap_take(s);
        struct sim_item *const item = next.item;
        const struct sim_node *const to = &s->nodes[item->node];
        const struct sim_node *const from = &s->nodes[item->from];
        struct sim_event e = { (enum sim_what)item->what,
                               item->node,
                               item->from,
                               item->data,
                               item->bytes,
                               item->nbytes };
        s->now = next.time;
        s->counts.events++;
        if (e.what == SIM_MESSAGE && (!to->up || to->part != from->part))
            e.what = SIM_LOST;
        s->counts.lost += e.what == SIM_LOST;
        if (e.what != SIM_TIMER || (to->up && to->life == item->life))
            s->handle(s->ctx, &e);
        item_free(s, item);
    }
    if (s->now < until)
        s->now = until;
}
