/*
 * fuzz_spie_net.c - what a router answers about a packet
 *
 * The bytes are the body of an answer, and of a second one by a neighbour that
 * the first has named. Whatever they say, the net stays whole and bounded.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "apps/traffic/spie_net.h"
#include "wire/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct trace_args args = { .ask = "127.0.0.1:1" };
    struct spie_net net = { 0 };
    struct spie_asker *const a = spie_asker_new(&args, 0, 1, &net);
    assert(a);
    for (size_t router = 0; router < 2 && router < net.nnames; router++) {
        unsigned char *const body = malloc(size ? size : 1);
        enum spie_answer said = SPIE_ABSENT;
        enum spie_change change = (enum spie_change)0;
        struct spie_packet was;
        assert(body);
        if (size)
            memcpy(body, data, size);
        const struct frame f = { .body = body, .nbody = size };
        if (spie_asker_hear(a, router, &f, &said, &was, &change)) {
            assert(said <= SPIE_FORGOTTEN && was.len <= SPIE_BYTES);
            assert(said != SPIE_CHANGED || (change && was.len));
        }
        free(body);
    }
    assert(net.nnames <= SPIE_ROUTERS);
    for (size_t i = 0; i < net.nlinks; i++)
        assert(net.links[i].a < net.nnames && net.links[i].b < net.nnames);
    spie_asker_free(a);
    spie_net_free(&net);
    return 0;
}
