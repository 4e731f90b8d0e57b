/*
 * fuzz_topology.c - a network from a text that anyone may have written
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "apps/net/graph.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct graph g;
    char why[160];
    /* Memory of its own, so that a look past its end is seen. */
    char *const text = malloc(size ? size : 1);
    assert(text);
    memcpy(text, data, size);
    if (graph_parse(text, size, &g, why)) {
        uint32_t *const room = malloc(3 * (size_t)g.n * sizeof *room);
        assert(room && g.n && g.first[g.n] == g.nedges);
        graph_hops(&g, g.n - 1, room, room + g.n, room + 2 * (size_t)g.n);
        for (uint32_t i = 0; i < g.n; i++)
            assert(room[i] == GRAPH_FAR || room[i] < g.n);
        free(room);
        graph_free(&g);
    } else {
        assert(strlen(why) > 0);
    }
    free(text);
    return 0;
}
