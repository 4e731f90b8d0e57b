/*
 * chord_sim.c - a ring of simulated members
 *
 * The host of chord.h in simulated time. A node reaches others by their number
 * and one. Who is silent is noticed `timeout` after a message was lost, which
 * needs no timer for messages that arrive.
 */
#include "workbench/sim/chord_sim.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"

#define DATA_SILENT \
    (UINT64_C(1) << 32) /* a timer: this request is not answered */

static uint32_t node_of(const struct chord_sim *s, const struct chord *n)
{
    return (uint32_t)(n - s->nodes);
}

static uint64_t milliseconds(const struct chord_sim *s)
{
    return sim_now(s->sim) / 1000;
}

/* ----------------------------------------------------------------- the host */

/* What of a message is used: head, then the dead and the peers, if any. */
struct packed {
    unsigned char bytes[sizeof(struct chord_message)];
};
#define MESSAGE_HEAD offsetof(struct chord_message, dead)

static size_t pack(const struct chord_message *m, struct packed *to)
{
    const size_t dead = m->ndead * sizeof m->dead[0];
    const size_t peers = m->npeers * sizeof m->peers[0];
    memcpy(to->bytes, m, MESSAGE_HEAD);
    memcpy(to->bytes + MESSAGE_HEAD, m->dead, dead);
    memcpy(to->bytes + MESSAGE_HEAD + dead, m->peers, peers);
    return MESSAGE_HEAD + dead + peers;
}

static void unpack(const unsigned char *bytes, struct chord_message *m)
{
    memcpy(m, bytes, MESSAGE_HEAD);
    const size_t dead = m->ndead * sizeof m->dead[0];
    memcpy(m->dead, bytes + MESSAGE_HEAD, dead);
    memcpy(m->peers, bytes + MESSAGE_HEAD + dead,
           m->npeers * sizeof m->peers[0]);
}

/* On the wire (chord_wire.c): 24 of the frame, 29 for a descriptor. */
static size_t wire_bytes(const struct chord_message *m)
{
    return 24 + 8 + 8 + 8 * (size_t)m->ndead + 29 * (size_t)m->npeers;
}

static void host_send(struct chord *n, struct chord_peer to,
                      const struct chord_message *m)
{
    struct chord_sim *const s = n->ctx;
    struct packed p;
    const size_t nbytes = pack(m, &p);
    sim_send(s->sim, node_of(s, n), to.at - 1, p.bytes, nbytes, wire_bytes(m));
}

static void host_timer(struct chord *n, enum chord_timer t, uint64_t delay)
{
    struct chord_sim *const s = n->ctx;
    sim_after(s->sim, node_of(s, n), delay * 1000, (uint64_t)t);
}

static size_t place_of(const struct chord_sim *s, uint64_t id)
{
    size_t at;
    LOWER_BOUND(at, s->nmembers, s->members[at].id < id);
    return at;
}

struct chord_peer chord_sim_owner(const struct chord_sim *s, uint64_t id)
{
    const size_t at = place_of(s, id);
    return s->members[at < s->nmembers ? at : 0];
}

static void host_found(struct chord *n, const struct chord_found *f)
{
    struct chord_sim *const s = n->ctx;
    struct chord_tally *const t = &s->tally;
    t->ended++;
    t->timeouts += f->timeouts;
    t->hops += f->hops;
    t->most_hops = f->hops > t->most_hops ? f->hops : t->most_hops;
    t->failed += !f->ok;
    t->wrong += f->ok && f->owner.id != chord_sim_owner(s, f->target).id;
}

static void host_news(struct chord *n, enum chord_news what)
{
    struct chord_sim *const s = n->ctx;
    const size_t at = place_of(s, n->self.id);
    const bool there = at < s->nmembers && s->members[at].id == n->self.id;
    if (what == CHORD_JOINED && !there) {
        memmove(s->members + at + 1, s->members + at,
                (s->nmembers - at) * sizeof s->members[0]);
        s->members[at] = n->self;
        s->nmembers++;
    } else if (what == CHORD_ALONE && there) {
        memmove(s->members + at, s->members + at + 1,
                (--s->nmembers - at) * sizeof s->members[0]);
    }
}

static const struct chord_host sim_host = { host_send, host_timer, host_found,
                                            host_news };

static void on_event(void *ctx, const struct sim_event *e)
{
    struct chord_sim *const s = ctx;
    struct chord_message m;
    const uint64_t now = milliseconds(s);
    struct chord *const n = &s->nodes[e->node];
    if (e->what != SIM_TIMER)
        unpack(e->bytes, &m);
    switch (e->what) {
    case SIM_MESSAGE:
        chord_receive(n, s->nodes[e->from].self, &m, now);
        break;
    case SIM_LOST:
        if (m.request)
            sim_after(s->sim, m.answer ? e->node : e->from, s->spec.timeout,
                      DATA_SILENT | m.request);
        break;
    case SIM_TIMER:
        if (e->data & DATA_SILENT)
            chord_silent(n, (uint32_t)e->data, now);
        else
            chord_tick(n, (enum chord_timer)e->data, now);
    }
}

static void fetch_lines(const void *from, size_t n)
{
    for (size_t i = 0; i < n; i += 64)
        __builtin_prefetch((const char *)from + i, 1);
}

/* Without this a ring of 16,384 members waits for memory most of the time. */
static void on_soon(void *ctx, const struct sim_event *e, bool very)
{
    const struct chord_sim *const s = ctx;
    const struct chord *const n = &s->nodes[e->node];
    struct chord_message head;
    if (e->what != SIM_TIMER)
        memcpy(&head, e->bytes, MESSAGE_HEAD);
    const bool answer = e->what == SIM_MESSAGE && head.answer;
    if (!very) {
        fetch_lines(n, offsetof(struct chord, succ) +
                           s->spec.ring.r * sizeof n->succ[0]);
        if (e->what == SIM_TIMER)
            return;
        fetch_lines(n->seen, sizeof n->seen);
        __builtin_prefetch(&s->nodes[e->from].self);
        /* The highest fingers are those that differ. */
        const unsigned bits = s->spec.ring.bits, most = bits < 16 ? bits : 16;
        if (head.type == CHORD_STEP && !head.answer)
            fetch_lines(n->fing + bits - most, most * sizeof n->fing[0]);
    } else if (answer) {
        for (unsigned i = 0; i < s->spec.ring.walks; i++)
            if (n->walking[i] == head.request)
                fetch_lines(&n->walks[i], offsetof(struct chord_walk, dead));
    } else if (e->what == SIM_TIMER) {
        fetch_lines(n->walks, 128);
    }
}

static const struct sim_protocol sim_chord = { on_event, on_soon };

/* ----------------------------------------------------------------- the ring */

struct chord_sim_spec chord_sim_usual(uint32_t nodes, uint64_t seed)
{
    return (struct chord_sim_spec){
        .ring = { .bits = 64,
                  .r = 8,
                  .fingers = 4,
                  .walks = 8,
                  .stabilise = 1000,
                  .check = 1000,
                  .finger = 1000,
                  .join = 1000,
                  .dead_for = 30000,
                  .dead_most = 600000 },
        .nodes = nodes,
        .links = { 20000, 80000, 0 },
        .timeout = 500000,
        .seed = seed,
    };
}

static int by_id(const void *a, const void *b)
{
    const struct chord_peer *const x = a, *const y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

struct chord_sim *chord_sim_new(const struct chord_sim_spec *spec)
{
    struct chord_sim *const s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->spec = *spec;
    const size_t n = spec->nodes;
    s->sim = sim_new(&spec->links, spec->nodes, spec->seed, &sim_chord, s);
    s->nodes = calloc(n + 1, sizeof *s->nodes);
    s->walks = calloc(n * spec->ring.walks + 1, sizeof *s->walks);
    s->members = calloc(n + 1, sizeof *s->members);
    if (!s->sim || !s->nodes || !s->walks || !s->members) {
        chord_sim_free(s);
        return NULL;
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t id = sim_random(s->sim) & chord_mask(&spec->ring);
        chord_init(&s->nodes[i], &s->spec.ring, &sim_host, s,
                   (struct chord_peer){ id, i + 1 },
                   s->walks + (size_t)i * spec->ring.walks, sim_random(s->sim));
    }
    return s;
}

void chord_sim_free(struct chord_sim *s)
{
    if (!s)
        return;
    sim_free(s->sim);
    free(s->nodes);
    free(s->walks);
    free(s->members);
    free(s);
}

void chord_sim_ideal(struct chord_sim *s, uint32_t n)
{
    s->nmembers = n;
    for (uint32_t i = 0; i < n; i++)
        s->members[i] = s->nodes[i].self;
    qsort(s->members, n, sizeof s->members[0], by_id);
    for (uint32_t i = 0; i < n; i++) {
        sim_up(s->sim, i);
        chord_ideal(&s->nodes[i], s->members, n, milliseconds(s));
    }
}

uint32_t chord_sim_member(struct chord_sim *s)
{
    return s->members[sim_random(s->sim) % s->nmembers].at - 1;
}

void chord_sim_join(struct chord_sim *s, uint32_t node)
{
    struct chord *const n = &s->nodes[node];
    const struct chord_peer self = n->self;
    chord_init(n, &s->spec.ring, &sim_host, s, self, n->walks,
               sim_random(s->sim));
    sim_up(s->sim, node);
    if (!s->nmembers) {
        chord_alone(n, milliseconds(s));
        host_news(n, CHORD_JOINED);
    } else {
        chord_join(n, s->nodes[chord_sim_member(s)].self, milliseconds(s));
    }
}

void chord_sim_fail(struct chord_sim *s, uint32_t node)
{
    sim_down(s->sim, node);
    host_news(&s->nodes[node], CHORD_ALONE);
    s->nodes[node].phase = CHORD_OUT;
}

void chord_sim_leave(struct chord_sim *s, uint32_t node)
{
    chord_leave(&s->nodes[node], milliseconds(s));
    sim_down(s->sim, node);
    host_news(&s->nodes[node], CHORD_ALONE);
}

void chord_sim_lookup(struct chord_sim *s)
{
    struct chord *const n = &s->nodes[chord_sim_member(s)];
    const uint64_t id = sim_random(s->sim) & chord_mask(&s->spec.ring);
    s->tally.asked += chord_lookup(n, id, 0, milliseconds(s));
}

void chord_sim_run(struct chord_sim *s, uint64_t us)
{
    sim_run(s->sim, sim_now(s->sim) + us);
}

uint32_t chord_sim_ideal_members(const struct chord_sim *s, bool lists)
{
    uint32_t ideal = 0;
    const uint32_t n = s->nmembers;
    for (uint32_t i = 0; i < n; i++) {
        const struct chord *const c = &s->nodes[s->members[i].at - 1];
        bool ok = c->pred.id == s->members[(i + n - 1) % n].id;
        for (unsigned k = 0; k < (lists ? c->ring->r : 1); k++)
            ok &= c->succ[k].id == s->members[(i + 1 + k) % n].id;
        ideal += ok;
    }
    return ideal;
}
