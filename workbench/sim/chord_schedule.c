/*
 * chord_schedule.c - random schedules: does the ring survive them?
 *
 * r + 1 nodes in the ideal state never fail; others join, fail, and come back
 * under their old ids, mixed with single steps of the protocol in any order:
 * messages wait in a bag, and any of them may be next, however late. A question
 * and its answer are one step, since an answer that has become old could tell
 * of nobody who lives any more; between the steps of one stabilisation, and
 * before a notification arrives, anything can happen. A node may fail if that
 * leaves everybody with somebody alive in its list. Nobody is taken for dead
 * who is not.
 *
 * Asserted after every step: every member has a live successor in its list, and
 * at least r + 1 members are principal, which means that no member's list, read
 * as the member itself and then its entries, steps over them. When changes
 * stop, stabilisation has to bring about the ideal state.
 */
#include "workbench/sim/chord_schedule.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"

#define MOST_NODES 48
#define MOST_WAITING 4096
#define IDS 16 /* bits */

struct waiting {
    uint32_t from, to; /* numbers of nodes */
    struct chord_message m;
};

struct schedule {
    const struct chord_schedule *how;
    struct chord_ring ring;
    FILE *trace;
    uint64_t random, now;
    unsigned n;
    struct chord nodes[MOST_NODES];
    struct chord_walk walks[MOST_NODES][4];
    struct waiting bag[MOST_WAITING];
    unsigned nbag;
    bool full;
};

static uint64_t draw(struct schedule *s)
{
    return random_next(&s->random);
}

/* ----------------------------------------------------------------- the host */

static void bag_send(struct chord *n, struct chord_peer to,
                     const struct chord_message *m)
{
    struct schedule *const s = n->ctx;
    if (s->nbag == MOST_WAITING) {
        s->full = true;
        return;
    }
    struct waiting *const w = &s->bag[s->nbag++];
    w->from = (uint32_t)(n - s->nodes);
    w->to = to.at - 1;
    memcpy(&w->m, m,
           offsetof(struct chord_message, peers) +
               m->npeers * sizeof m->peers[0]);
}

static void bag_timer(struct chord *n, enum chord_timer t, uint64_t delay)
{
    (void)n;
    (void)t;
    (void)delay; /* timers are drawn */
}

static void bag_found(struct chord *n, const struct chord_found *f)
{
    (void)n;
    (void)f;
}

static void bag_news(struct chord *n, enum chord_news what)
{
    struct schedule *const s = n->ctx;
    if (s->trace && what == CHORD_JOINED)
        fprintf(s->trace, "  %llu is a member\n",
                (unsigned long long)n->self.id);
    if (what == CHORD_ALONE)
        n->nseen = 0; /* it would join again; here it is lost */
}

static const struct chord_host bag_host = { bag_send, bag_timer, bag_found,
                                            bag_news };

/* Take one out of the bag and deliver it; the answer to a question at once. */
static void deliver(struct schedule *s, unsigned i)
{
    const struct waiting w = s->bag[i];
    s->bag[i] = s->bag[--s->nbag];
    struct chord *const to = &s->nodes[w.to];
    struct chord *const from = &s->nodes[w.from];
    if (from->phase == CHORD_OUT)
        return; /* it died with what it had to say */
    if (to->phase == CHORD_OUT) {
        chord_silent(from, w.m.request, s->now);
        return;
    }
    const unsigned before = s->nbag;
    chord_receive(to, from->self, &w.m, s->now);
    for (unsigned k = before; k < s->nbag; k++)
        if (s->bag[k].m.answer) {
            const struct waiting a = s->bag[k];
            s->bag[k] = s->bag[--s->nbag];
            chord_receive(from, to->self, &a.m, s->now);
            return;
        }
}

/* ----------------------------------------------------------- what must hold */

static bool is_in(const struct schedule *s, struct chord_peer p)
{
    return p.at && s->nodes[p.at - 1].phase == CHORD_IN;
}

/* Has everybody somebody alive, if `gone` is not? */
static bool all_served(const struct schedule *s, const struct chord *gone)
{
    for (unsigned i = 0; i < s->n; i++) {
        const struct chord *const n = &s->nodes[i];
        bool any = n->phase != CHORD_IN || n == gone;
        for (unsigned k = 0; k < s->ring.r && !any; k++)
            any = is_in(s, n->succ[k]) &&
                  (!gone || n->succ[k].id != gone->self.id);
        if (!any)
            return false;
    }
    return true;
}

static unsigned principals(const struct schedule *s)
{
    unsigned count = 0;
    for (unsigned i = 0; i < s->n; i++) {
        const uint64_t id = s->nodes[i].self.id;
        bool skipped = s->nodes[i].phase != CHORD_IN;
        for (unsigned k = 0; k < s->n && !skipped; k++) {
            const struct chord *const n = &s->nodes[k];
            if (n->phase != CHORD_IN)
                continue;
            uint64_t at = n->self.id;
            for (unsigned e = 0; e < s->ring.r && !skipped; e++) {
                skipped =
                    chord_between(at, id, n->succ[e].id) && at != n->succ[e].id;
                at = n->succ[e].id;
            }
        }
        count += !skipped;
    }
    return count;
}

static bool is_ideal(const struct schedule *s)
{
    for (unsigned i = 0; i < s->ring.r + 1; i++)
        if (s->nodes[i].phase != CHORD_IN)
            return false; /* one that never failed has lost the others */
    for (unsigned i = 0; i < s->n; i++) {
        const struct chord *const n = &s->nodes[i];
        if (n->phase != CHORD_IN)
            continue;
        uint64_t at = n->self.id;
        for (unsigned k = 0; k < s->ring.r; k++) {
            const struct chord *next = NULL;
            for (unsigned m = 0; m < s->n; m++)
                if (s->nodes[m].phase == CHORD_IN &&
                    s->nodes[m].self.id != at &&
                    (!next ||
                     chord_between(at, s->nodes[m].self.id, next->self.id)))
                    next = &s->nodes[m];
            if (!next || n->succ[k].id != next->self.id ||
                (k == 0 && (!next->pred_known || next->pred.id != n->self.id)))
                return false;
            at = next->self.id;
        }
    }
    return true;
}

static const char *wrong_now(const struct schedule *s)
{
    if (s->full)
        return "more messages than the bag holds";
    if (s->how->rules_2001)
        return NULL;
    if (!all_served(s, NULL))
        return "a member has no live successor";
    if (principals(s) < s->ring.r + 1)
        return "fewer than r + 1 principal members";
    return NULL;
}

/* ---------------------------------------------------------------- the steps */

static void print_states(const struct schedule *s)
{
    for (unsigned i = 0; i < s->n; i++) {
        const struct chord *const n = &s->nodes[i];
        if (n->phase != CHORD_IN)
            continue;
        fprintf(s->trace, "  %5llu: before it ",
                (unsigned long long)n->self.id);
        if (n->pred_known)
            fprintf(s->trace, "%5llu", (unsigned long long)n->pred.id);
        else
            fprintf(s->trace, "    ?");
        fprintf(s->trace, ", after it");
        for (unsigned k = 0; k < s->ring.r; k++)
            fprintf(s->trace, " %llu%s", (unsigned long long)n->succ[k].id,
                    is_in(s, n->succ[k]) ? "" : "(dead)");
        fprintf(s->trace, "\n");
    }
}

/* A random member; any node where there is none, which answers nothing. */
static struct chord *any_in(struct schedule *s)
{
    struct chord *n = &s->nodes[0];
    for (unsigned i = 0; i < 100; i++) {
        n = &s->nodes[draw(s) % s->n];
        if (n->phase == CHORD_IN)
            break;
    }
    return n;
}

static void step(struct schedule *s)
{
    static const char *const names[] = { "PING", "STATE", "NOTIFY", "STEP" };
    const unsigned what = (unsigned)(draw(s) % 100);
    struct chord *const n = &s->nodes[draw(s) % s->n];
    const unsigned long long id = n->self.id;
    s->now++;
    if (what < 60 && s->nbag) {
        const unsigned i = (unsigned)(draw(s) % s->nbag);
        const struct waiting *const w = &s->bag[i];
        if (s->trace && w->m.type <= CHORD_STEP)
            fprintf(s->trace, "%s from %llu to %llu\n", names[w->m.type - 1],
                    (unsigned long long)s->nodes[w->from].self.id,
                    (unsigned long long)s->nodes[w->to].self.id);
        deliver(s, i);
    } else if (what < 78) {
        if (s->trace && n->phase == CHORD_IN)
            fprintf(s->trace, "%llu stabilises\n", id);
        chord_tick(n, CHORD_TIMER_STABILISE, s->now);
    } else if (what < 84) {
        chord_tick(n, CHORD_TIMER_CHECK, s->now);
    } else if (what < 93) {
        if (n->phase == CHORD_JOINING) {
            if (!n->join_stage)
                chord_tick(n, CHORD_TIMER_JOIN, s->now);
        } else if (n->phase == CHORD_OUT) {
            struct chord *const via = any_in(s);
            if (s->trace)
                fprintf(s->trace, "%llu joins through %llu\n", id,
                        (unsigned long long)via->self.id);
            chord_init(n, &s->ring, &bag_host, s, n->self, n->walks, draw(s));
            chord_join(n, via->self, s->now);
        }
    } else if (n->phase == CHORD_IN && n - s->nodes > (ptrdiff_t)s->ring.r &&
               all_served(s, n)) {
        if (s->trace)
            fprintf(s->trace, "%llu fails\n", id);
        n->phase = CHORD_OUT;
    }
}

/* No more joins and failures: everybody stabilises, again and again. */
static bool settles(struct schedule *s)
{
    for (unsigned i = 0; i < s->n; i++)
        if (s->nodes[i].phase == CHORD_JOINING)
            s->nodes[i].phase = CHORD_OUT;
    for (unsigned round = 0; round < 6 * s->ring.r + 30; round++) {
        for (unsigned i = 0; i < s->n; i++) {
            chord_tick(&s->nodes[i], CHORD_TIMER_STABILISE, s->now);
            chord_tick(&s->nodes[i], CHORD_TIMER_CHECK, s->now);
        }
        for (unsigned i = 0; s->nbag && i < 100 * MOST_WAITING; i++)
            deliver(s, (unsigned)(draw(s) % s->nbag));
        s->now++;
        if (is_ideal(s))
            return all_served(s, NULL);
    }
    return false;
}

static void place_nodes(struct schedule *s)
{
    struct chord_peer base[MOST_NODES];
    for (unsigned i = 0; i < s->n; i++) {
        uint64_t id;
        bool taken;
        do {
            id = draw(s) & chord_mask(&s->ring);
            taken = false;
            for (unsigned k = 0; k < i; k++)
                taken |= s->nodes[k].self.id == id;
        } while (taken);
        chord_init(&s->nodes[i], &s->ring, &bag_host, s,
                   (struct chord_peer){ id, i + 1 }, s->walks[i], draw(s));
    }
    const unsigned n = s->ring.r + 1;
    for (unsigned i = 0; i < n; i++) {
        unsigned at = i;
        for (; at > 0 && base[at - 1].id > s->nodes[i].self.id; at--)
            base[at] = base[at - 1];
        base[at] = s->nodes[i].self;
    }
    for (unsigned i = 0; i < n; i++)
        chord_ideal(&s->nodes[i], base, n, 0);
}

/* The run itself, of a schedule that is all zeros. */
static const char *schedule_play(struct schedule *s)
{
    const struct chord_schedule *const how = s->how;
    const char *wrong = NULL;
    s->random = how->seed;
    s->ring = (struct chord_ring){ .bits = IDS,
                                   .r = how->r,
                                   .rules_2001 = how->rules_2001,
                                   .walks = 4,
                                   .dead_for = 1,
                                   .dead_most = 1 };
    s->n = how->r + 1 + how->more;
    if (s->n > MOST_NODES || !how->r)
        return "a schedule has 2 to 48 nodes";
    place_nodes(s);
    for (unsigned i = 0; i < how->steps && !wrong; i++) {
        step(s);
        wrong = wrong_now(s);
    }
    if (!wrong && !settles(s))
        wrong = "changes have stopped, and no ideal ring comes about";
    if (s->trace) {
        fprintf(s->trace, "%s\n", wrong ? wrong : "one ordered ring");
        print_states(s);
    }
    return wrong;
}

const char *chord_schedule_run(const struct chord_schedule *how, FILE *trace)
{
    struct schedule *const s = calloc(1, sizeof *s);
    if (!s)
        return "out of memory";
    s->how = how;
    s->trace = trace;
    const char *const wrong = schedule_play(s);
    free(s);
    return wrong;
}
