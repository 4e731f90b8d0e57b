/*
 * way_back.c - which routers marked this packet? From its receiver back to its
 * sender
 */
#include "apps/net/way_back.h"

#include "apps/net/faces.h"

uint32_t way_back(const struct graph *g, const struct mark *marks,
                  uint32_t receiver, const struct marked *p, uint32_t number,
                  uint32_t *found, uint32_t *queue, uint64_t *asked)
{
    uint32_t head = 0, tail = 0;
    queue[tail++] = receiver;
    found[receiver] = number;
    while (head < tail) {
        const uint32_t at = queue[head++];
        for (uint32_t e = g->first[at]; e < g->first[at + 1]; e++) {
            const uint32_t from = g->edges[e].to;
            if (found[from] == number)
                continue;
            ++*asked;
            if (mark_in(&marks[faces_between(g, from, at)], p)) {
                found[from] = number;
                queue[tail++] = from;
            }
        }
    }
    return tail - 1;
}
