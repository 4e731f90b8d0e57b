/*
 * ring_model.c - see ring_model.h
 */
#include "workbench/ring_model.h"

#include <stdlib.h>
#include <string.h>

#include "report/say.h"

static int id_order(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

bool ring_model(struct ring_model *m, unsigned bits, const uint64_t *ids,
                size_t n)
{
    if (!n || n > RING_MOST)
        return refuse("a ring that is shown has 1 to %d members", RING_MOST);
    m->bits = bits;
    m->n = n;
    memcpy(m->ids, ids, n * sizeof ids[0]);
    qsort(m->ids, n, sizeof m->ids[0], id_order);
    for (size_t i = 0; i < n; i++) {
        if (bits < 64 && m->ids[i] >> bits)
            return refuse("%llu has more than %u bits; raise --bits",
                          (unsigned long long)m->ids[i], bits);
        if (i && m->ids[i] == m->ids[i - 1])
            return refuse("%llu is there twice", (unsigned long long)m->ids[i]);
    }
    return true;
}

size_t ring_owner(const struct ring_model *m, uint64_t id)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->ids[i] >= id)
            return i;
    return 0;
}

static void no_timer(struct chord *n, enum chord_timer t, uint64_t delay)
{
    (void)n;
    (void)t;
    (void)delay;
}

void ring_state(const struct ring_model *m, size_t at, struct chord *n)
{
    static const struct chord_host host = { .timer = no_timer };
    static _Thread_local struct chord_ring ring;
    static _Thread_local struct chord_walk walk;
    struct chord_peer members[RING_MOST];
    ring = (struct chord_ring){ .bits = m->bits, .r = 1, .walks = 1 };
    for (size_t i = 0; i < m->n; i++)
        members[i] = (struct chord_peer){ m->ids[i], (uint32_t)i + 1 };
    chord_init(n, &ring, &host, NULL, members[at], &walk, 0);
    chord_ideal(n, members, m->n, 0);
}

size_t ring_lookup(const struct ring_model *m, size_t from, uint64_t id,
                   size_t path[RING_STEPS])
{
    struct chord n;
    size_t steps = 0, at = from;
    for (;;) {
        path[steps++] = at;
        ring_state(m, at, &n);
        if (chord_within(n.self.id, id, n.succ[0].id) ||
            steps == RING_STEPS - 1) {
            path[steps++] = n.succ[0].at - 1;
            return steps;
        }
        /* The farthest finger that does not pass the id. */
        size_t next = n.succ[0].at - 1;
        for (unsigned k = m->bits; k-- > 0;)
            if (chord_between(n.self.id, n.fing[k].id, id)) {
                next = n.fing[k].at - 1;
                break;
            }
        at = next;
    }
}
