/*
 * sim.c - nodes, links and timers in simulated time
 *
 * Events wait in a wheel of slots, each 128 us wide, two seconds in all:
 *
 *     wheel   slot = time / 128 us mod 16384      chunks of 14 entries
 *     far     what lies beyond the wheel          a heap
 *     run     the slot whose time it is           sorted
 *
 * A heap of a hundred thousand events costs a cache miss for each of its
 * levels; here an event is appended to a chunk, and sorted among the few of its
 * slot when their time has come. Within a slot entries stand in the order in
 * which they were made: what lies far away moves into the wheel as soon as its
 * slot is part of it, before anything else can be put there. So a stable sort
 * by time is all that is needed to keep events of one time in their order.
 *
 * The run also says what comes next. The state of the nodes is too large for
 * caches, so that the protocol is told of events a little before they happen
 * (`soon`), and fetches what it will need.
 *
 * An entry is the time within its slot and a number for the event's memory:
 * 8 bytes. Events come from lists by size and go back to them.
 */
#include "workbench/sim/sim.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/random.h"

#define SIM_CLASSES 8 /* 64 bytes to 8 KiB */
#define SIM_UNIT 64
#define SIM_SLAB ((size_t)1 << 20)
#define SIM_UNITS (SIM_SLAB / SIM_UNIT)
#define SIM_WIDTH 7 /* a slot is 2^7 us */
#define SIM_SLOTS 16384
#define SIM_FETCH 12 /* events ahead: the event itself */
#define SIM_SOON 8   /* the state of its node */
#define SIM_NEAR 3   /* what that points to */
#define SIM_CHUNK 14 /* entries: with its head two cache lines */

struct sim_item {
    union {
        struct sim_item *next; /* in a list of free ones */
        uint64_t data;         /* of a timer */
    };
    uint32_t node, from; /* `from` of a timer: which life of its node */
    uint32_t name;       /* where it is: its number among units */
    uint16_t nbytes;
    uint8_t what, size_class;
    unsigned char bytes[];
};

struct sim_entry {
    uint32_t low, name; /* microseconds within the slot; of the item */
};

struct sim_chunk {
    struct sim_chunk *next;
    uint32_t n;
    struct sim_entry at[SIM_CHUNK];
};

struct sim_slot {
    struct sim_chunk *first, *last;
};

struct sim_far {
    uint64_t time, number;
    uint32_t name;
};

struct sim_node {
    uint32_t life; /* how often it came up */
    bool up;
    uint16_t part;
};

struct sim {
    struct sim_links links;
    struct sim_node *nodes;
    struct sim_protocol protocol;
    void *ctx;
    uint64_t now, random;

    uint64_t turn;                  /* time / width of the run */
    struct sim_entry *run, *sorted; /* and memory for sorting it */
    size_t nrun, at_run, room_run, room_sorted;
    struct sim_slot wheel[SIM_SLOTS];
    uint64_t taken[SIM_SLOTS / 64]; /* slots that are not empty */
    struct sim_chunk *chunks;       /* free ones */
    struct sim_far *far;
    size_t nfar, room_far;
    uint64_t number;

    struct sim_item *unused[SIM_CLASSES];
    void **slabs;
    size_t room_slabs, nslabs, at, left; /* of the last one */
    void **chunk_slabs;
    size_t nchunk_slabs, room_chunks;
    bool failed;
    struct sim_counts counts;
};

uint64_t sim_random(struct sim *s)
{
    return random_next(&s->random);
}

struct sim *sim_new(const struct sim_links *links, uint32_t nnodes,
                    uint64_t seed, const struct sim_protocol *protocol,
                    void *ctx)
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
    s->protocol = *protocol;
    s->ctx = ctx;
    return s;
}

void sim_free(struct sim *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->nslabs; i++)
        free(s->slabs[i]);
    for (size_t i = 0; i < s->nchunk_slabs; i++)
        free(s->chunk_slabs[i]);
    free(s->slabs);
    free(s->chunk_slabs);
    free(s->run);
    free(s->sorted);
    free(s->far);
    free(s->nodes);
    free(s);
}

/* ---------------------------------------------------------------- the items */

static size_t class_bytes(unsigned c)
{
    return (size_t)SIM_UNIT << c;
}

/* One more slab, in a list of them; NULL: no memory. */
static void *slab_new(void ***list, size_t *room, size_t *n)
{
    if (!GROW(list, room, *n + 1))
        return NULL;
    void *const slab = aligned_alloc(SIM_UNIT, SIM_SLAB);
    if (slab)
        (*list)[(*n)++] = slab;
    return slab;
}

static struct sim_item *item_at(const struct sim *s, uint32_t name)
{
    return (void *)((char *)s->slabs[name / SIM_UNITS] +
                    name % SIM_UNITS * SIM_UNIT);
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
            if (s->nslabs == UINT32_MAX / SIM_UNITS ||
                !slab_new(&s->slabs, &s->room_slabs, &s->nslabs))
                return NULL;
            s->at = 0;
            s->left = SIM_SLAB;
        }
        const size_t name = (s->nslabs - 1) * SIM_UNITS + s->at / SIM_UNIT;
        item = item_at(s, (uint32_t)name);
        item->name = (uint32_t)name;
        item->size_class = (uint8_t)c;
        s->at += class_bytes(c);
        s->left -= class_bytes(c);
    }
    item->nbytes = (uint16_t)nbytes;
    return item;
}

static void item_free(struct sim *s, struct sim_item *item)
{
    item->next = s->unused[item->size_class];
    s->unused[item->size_class] = item;
}

/* ------------------------------------------------------- what lies far away */

static bool is_sooner(const struct sim_far *a, const struct sim_far *b)
{
    return a->time != b->time ? a->time < b->time : a->number < b->number;
}

static bool far_put(struct sim *s, uint64_t time, uint32_t name)
{
    if (!GROW(&s->far, &s->room_far, s->nfar + 1))
        return false;
    const struct sim_far e = { time, s->number++, name };
    size_t i = s->nfar++;
    for (size_t up; i > 0 && is_sooner(&e, &s->far[up = (i - 1) / 4]); i = up)
        s->far[i] = s->far[up];
    s->far[i] = e;
    return true;
}

static struct sim_far far_take(struct sim *s)
{
    const struct sim_far first = s->far[0], e = s->far[--s->nfar];
    size_t i = 0;
    for (size_t c; (c = 4 * i + 1) < s->nfar; i = c) {
        const size_t end = c + 4 < s->nfar ? c + 4 : s->nfar;
        for (size_t k = c + 1; k < end; k++)
            if (is_sooner(&s->far[k], &s->far[c]))
                c = k;
        if (!is_sooner(&s->far[c], &e))
            break;
        s->far[i] = s->far[c];
    }
    s->far[i] = e;
    return first;
}

/* ---------------------------------------------------------------- the wheel */

static struct sim_chunk *chunk_new(struct sim *s)
{
    if (!s->chunks) {
        struct sim_chunk *const slab =
            slab_new(&s->chunk_slabs, &s->room_chunks, &s->nchunk_slabs);
        for (size_t i = 0; slab && i < SIM_SLAB / sizeof *slab; i++) {
            slab[i].next = s->chunks;
            s->chunks = &slab[i];
        }
        if (!slab)
            return NULL;
    }
    struct sim_chunk *const c = s->chunks;
    s->chunks = c->next;
    c->next = NULL;
    c->n = 0;
    return c;
}

static bool slot_put(struct sim *s, uint64_t turn, struct sim_entry e)
{
    const size_t at = turn % SIM_SLOTS;
    struct sim_slot *const slot = &s->wheel[at];
    if (!slot->last || slot->last->n == SIM_CHUNK) {
        struct sim_chunk *const c = chunk_new(s);
        if (!c)
            return false;
        if (slot->last)
            slot->last->next = c;
        else
            slot->first = c;
        slot->last = c;
        s->taken[at / 64] |= UINT64_C(1) << at % 64;
    }
    slot->last->at[slot->last->n++] = e;
    return true;
}

/* The next slot after this turn's that has anything; 0: none. */
static uint64_t slot_next(const struct sim *s)
{
    for (uint64_t turn = s->turn + 1; turn < s->turn + SIM_SLOTS;) {
        const size_t at = turn % SIM_SLOTS;
        const uint64_t word = s->taken[at / 64] >> at % 64;
        if (word) {
            turn += (unsigned)__builtin_ctzll(word);
            return turn < s->turn + SIM_SLOTS ? turn : 0;
        }
        turn += 64 - at % 64;
    }
    return 0;
}

static bool run_room(struct sim *s, size_t n)
{
    return GROW(&s->run, &s->room_run, n) &&
           GROW(&s->sorted, &s->room_sorted, n);
}

/* By time, those of one time as they stand: few by insertion, many by
 * counting. */
static void run_sort(struct sim *s)
{
    struct sim_entry *const a = s->run;
    const size_t n = s->nrun;
    if (n < 24) {
        for (size_t i = 1; i < n; i++) {
            const struct sim_entry e = a[i];
            size_t k = i;
            for (; k > 0 && a[k - 1].low > e.low; k--)
                a[k] = a[k - 1];
            a[k] = e;
        }
        return;
    }
    uint32_t starts[(1 << SIM_WIDTH) + 1] = { 0 };
    for (size_t i = 0; i < n; i++)
        starts[a[i].low + 1]++;
    for (size_t i = 1; i < 1 << SIM_WIDTH; i++)
        starts[i] += starts[i - 1];
    for (size_t i = 0; i < n; i++)
        s->sorted[starts[a[i].low]++] = a[i];
    s->run = s->sorted;
    s->sorted = a;
}

/* The events of a slot become the run, and what the wheel reaches now moves
 * into it. */
static bool turn_to(struct sim *s, uint64_t turn)
{
    struct sim_slot *const slot = &s->wheel[turn % SIM_SLOTS];
    s->turn = turn;
    while (s->nfar && (s->far[0].time >> SIM_WIDTH) - turn < SIM_SLOTS) {
        const struct sim_far f = far_take(s);
        const struct sim_entry e = { f.time & ((1 << SIM_WIDTH) - 1), f.name };
        if (!slot_put(s, f.time >> SIM_WIDTH, e))
            return false;
    }
    s->nrun = s->at_run = 0;
    for (struct sim_chunk *c = slot->first, *next; c; c = next) {
        next = c->next;
        if (!run_room(s, s->nrun + c->n))
            return false;
        memcpy(s->run + s->nrun, c->at, c->n * sizeof c->at[0]);
        s->nrun += c->n;
        c->next = s->chunks;
        s->chunks = c;
    }
    *slot = (struct sim_slot){ 0 };
    s->taken[turn % SIM_SLOTS / 64] &= ~(UINT64_C(1) << turn % 64);
    run_sort(s);
    return true;
}

/* Among those of the run that are to come, behind those of its own time. */
static bool run_insert(struct sim *s, struct sim_entry e)
{
    if (!run_room(s, s->nrun + 1))
        return false;
    size_t i = s->nrun++;
    for (; i > s->at_run && s->run[i - 1].low > e.low; i--)
        s->run[i] = s->run[i - 1];
    s->run[i] = e;
    return true;
}

static void event_put(struct sim *s, uint64_t time, struct sim_item *item)
{
    const uint64_t turn = time >> SIM_WIDTH;
    const struct sim_entry e = { time & ((1 << SIM_WIDTH) - 1), item->name };
    const bool ok = turn == s->turn              ? run_insert(s, e)
                    : turn - s->turn < SIM_SLOTS ? slot_put(s, turn, e)
                                                 : far_put(s, time, e.name);
    if (!ok) {
        s->failed = true;
        item_free(s, item);
    }
}

/* ---------------------------------------------------------------- the world */

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
    const bool lost =
        s->links.loss > 0 && random_share(&s->random) < s->links.loss;
    item->what = lost ? SIM_LOST : SIM_MESSAGE;
    item->node = to;
    item->from = from;
    memcpy(item->bytes, bytes, nbytes);
    s->counts.messages++;
    s->counts.bytes += wire;
    event_put(s, s->now + delay, item);
}

void sim_after(struct sim *s, uint32_t node, uint64_t delay, uint64_t data)
{
    struct sim_item *const item = item_new(s, 0);
    if (!item) {
        s->failed = true;
        return;
    }
    item->what = SIM_TIMER;
    item->node = node;
    item->from = s->nodes[node].life;
    item->data = data;
    event_put(s, s->now + delay, item);
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

static struct sim_event event_of(const struct sim_item *item)
{
    const bool timer = item->what == SIM_TIMER;
    return (struct sim_event){
        (enum sim_what)item->what, item->node,  timer ? item->node : item->from,
        timer ? item->data : 0,    item->bytes, item->nbytes
    };
}

/* Fetch the event that comes `far` places later, and tell of nearer ones. */
static void look_ahead(struct sim *s)
{
    const size_t at = s->at_run, n = s->nrun;
    if (at + SIM_FETCH < n) {
        const char *const item =
            (const char *)item_at(s, s->run[at + SIM_FETCH].name);
        __builtin_prefetch(item);
        __builtin_prefetch(item + SIM_UNIT);
    }
    for (unsigned i = 0; i < 2; i++) {
        const unsigned ahead = i ? SIM_NEAR : SIM_SOON;
        if (at + ahead < n) {
            const struct sim_event e =
                event_of(item_at(s, s->run[at + ahead].name));
            s->protocol.soon(s->ctx, &e, i == 1);
        }
    }
}

static void happen(struct sim *s, struct sim_item *item)
{
    struct sim_event e = event_of(item);
    const struct sim_node *const to = &s->nodes[e.node];
    s->counts.events++;
    if (e.what == SIM_MESSAGE && (!to->up || to->part != s->nodes[e.from].part))
        e.what = SIM_LOST;
    s->counts.lost += e.what == SIM_LOST;
    if (e.what != SIM_TIMER || (to->up && to->life == item->from))
        s->protocol.handle(s->ctx, &e);
    item_free(s, item);
}

void sim_run(struct sim *s, uint64_t until)
{
    while (!s->failed) {
        if (s->at_run == s->nrun) {
            const uint64_t near = slot_next(s);
            const uint64_t far = s->nfar ? s->far[0].time >> SIM_WIDTH : 0;
            const uint64_t turn = near && (!far || near < far) ? near : far;
            if (!turn || turn << SIM_WIDTH > until)
                break;
            s->failed = !turn_to(s, turn);
            continue;
        }
        const struct sim_entry e = s->run[s->at_run];
        const uint64_t time = (s->turn << SIM_WIDTH) + e.low;
        if (time > until)
            break;
        if (s->protocol.soon)
            look_ahead(s);
        s->at_run++;
        s->now = time;
        happen(s, item_at(s, e.name));
    }
    if (s->now < until)
        s->now = until;
}
