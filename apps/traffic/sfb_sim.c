/*
 * sfb_sim.c - a link, sources that yield, and some that do not
 *
 * Events are in a heap by time: a source sends its next packet, or the link has
 * sent one. A source that yields paces its window over a round trip, and learns
 * at its end whether something was lost.
 */
#include "apps/traffic/sfb_sim.h"

#include <stdlib.h>

#include "base/random.h"

#define MOST_SOURCES 100000
#define LINK SIZE_MAX

struct source {
    double window, round, trip; /* packets; when the round trip ends; seconds */
    bool yields, lost;
    uint64_t sent, got; /* of what is counted */
};

struct event {
    double at;
    size_t who; /* a source, or LINK */
};

struct queued {
    size_t who;
    struct sfb_ticket ticket;
};

struct sim {
    const struct link_spec *spec;
    struct source *sources;
    size_t nsources;
    struct event *heap;
    size_t nheap;
    struct queued *queue; /* a ring */
    size_t first, nqueue;
    struct sfb *sfb;
    double each; /* seconds of a packet on the link */
    uint64_t chance, carried;
};

/* -------------------------------------------------------------------- heap */

static void event_add(struct sim *s, double at, size_t who)
{
    size_t i = s->nheap++;
    for (; i && s->heap[(i - 1) / 2].at > at; i = (i - 1) / 2)
        s->heap[i] = s->heap[(i - 1) / 2];
    s->heap[i] = (struct event){ at, who };
}

static struct event event_take(struct sim *s)
{
    const struct event out = s->heap[0], last = s->heap[--s->nheap];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= s->nheap)
            break;
        child +=
            child + 1 < s->nheap && s->heap[child + 1].at < s->heap[child].at;
        if (s->heap[child].at >= last.at)
            break;
        s->heap[i] = s->heap[child];
        i = child;
    }
    s->heap[i] = last;
    return out;
}

/* ----------------------------------------------------------------- packets */

static bool counted(const struct sim *s, double now)
{
    return now >= s->spec->seconds / 3;
}

static bool packet_queue(struct sim *s, size_t who, double now)
{
    struct queued q = { .who = who };
    if (s->nqueue >= s->spec->queue ||
        (s->sfb && sfb_arrive(s->sfb, who, now, &q.ticket) != SFB_TAKEN))
        return false;
    s->queue[(s->first + s->nqueue) % s->spec->queue] = q;
    if (s->nqueue++ == 0)
        event_add(s, now + s->each, LINK);
    return true;
}

static void packet_leave(struct sim *s, double now)
{
    const struct queued q = s->queue[s->first];
    s->first = (s->first + 1) % s->spec->queue;
    if (s->sfb)
        sfb_leave(s->sfb, &q.ticket);
    if (counted(s, now)) {
        s->sources[q.who].got++;
        s->carried++;
    }
    if (--s->nqueue)
        event_add(s, now + s->each, LINK);
}

static void source_send(struct sim *s, size_t who, double now)
{
    struct source *const from = &s->sources[who];
    const double trip =
        from->trip + (double)s->nqueue * s->each; /* as long as the queue is */
    if (from->yields && now >= from->round) {
        from->window = from->lost ? from->window / 2 : from->window + 1;
        from->window = from->window < 1 ? 1 : from->window;
        from->lost = false;
        from->round = now + trip;
    }
    from->sent += counted(s, now);
    from->lost |= !packet_queue(s, who, now);
    const double apart = from->yields
                             ? trip / from->window
                             : s->spec->packet * 8 / s->spec->constant_rate;
    /* A little chance keeps sources from marching in step. */
    event_add(s, now + apart * (0.9 + 0.2 * random_share(&s->chance)), who);
}

static void result_make(const struct sim *s, struct link_result *out)
{
    const struct link_spec *const spec = s->spec;
    const double bits = spec->packet * 8.,
                 seconds = spec->seconds - spec->seconds / 3;
    uint64_t sent[2] = { 0 }, got[2] = { 0 };
    for (size_t i = 0; i < s->nsources; i++) {
        sent[s->sources[i].yields] += s->sources[i].sent;
        got[s->sources[i].yields] += s->sources[i].got;
    }
    *out = (struct link_result){
        .use = (double)s->carried * bits / seconds / spec->link,
        .fair = spec->link / (double)s->nsources,
        .constant = spec->constant
                        ? (double)got[0] * bits / seconds / spec->constant
                        : 0,
        .yielding = spec->yielding
                        ? (double)got[1] * bits / seconds / spec->yielding
                        : 0,
        .constant_lost = sent[0] ? 1 - (double)got[0] / (double)sent[0] : 0,
        .yielding_lost = sent[1] ? 1 - (double)got[1] / (double)sent[1] : 0,
    };
    if (s->sfb)
        out->sfb = *sfb_sum(s->sfb);
}

bool link_run(const struct link_spec *spec, struct link_result *out)
{
    struct sim s = { .spec = spec,
                     .nsources = (size_t)spec->yielding + spec->constant,
                     .chance = spec->seed };
    if (!s.nsources || s.nsources > MOST_SOURCES || !(spec->link > 0) ||
        !spec->packet || !spec->queue || !(spec->seconds > 0) ||
        !(spec->round_trip > 0) ||
        (spec->constant && !(spec->constant_rate > 0)))
        return false;
    s.each = spec->packet * 8 / spec->link;
    s.sources = calloc(s.nsources, sizeof *s.sources);
    s.heap = malloc((s.nsources + 2) * sizeof *s.heap);
    s.queue = malloc(spec->queue * sizeof *s.queue);
    s.sfb = spec->sfb ? sfb_new(spec->sfb) : NULL;
    const bool ready = s.sources && s.heap && s.queue && (s.sfb || !spec->sfb);
    for (size_t i = 0; ready && i < s.nsources; i++) {
        s.sources[i] =
            (struct source){ .window = 1,
                             .trip = spec->round_trip *
                                     (0.5 + 1.5 * random_share(&s.chance)),
                             .yields = i >= spec->constant };
        event_add(&s, random_share(&s.chance), i);
    }
    while (ready) {
        const struct event e = event_take(&s);
        if (e.at >= spec->seconds)
            break;
        if (e.who == LINK)
            packet_leave(&s, e.at);
        else
            source_send(&s, e.who, e.at);
    }
    if (ready)
        result_make(&s, out);
    sfb_free(s.sfb);
    free(s.sources);
    free(s.heap);
    free(s.queue);
    return ready;
}
