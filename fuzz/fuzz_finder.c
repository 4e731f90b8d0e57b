/*
 * fuzz_finder.c - frames to a server that finds services, and its answers
 *
 * The bytes are bodies of frames: a type, two bytes of length, the body. Each
 * is given to a server as a question and taken for an answer by one who looks.
 * Whatever comes: no crash, everything stays bounded, what the server answers
 * to a look can be read, and after a while of silence nothing is left.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "apps/net/find/finder.h"

static void fuzz_ask(void *ctx, const struct address *to, uint8_t type,
                     struct blob *body, uint64_t tag)
{
    struct finder *const f = ctx;
    (void)type;
    assert(to->family && body->at);
    /* Nobody answers, or with what came last. */
    finder_answer(f, tag, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct finder_found found;
    struct finder *const f = calloc(1, sizeof *f);
    const struct finder_args args = {
        .services = 4, .keys = 10, .depth = 2, .life = 1000
    };
    uint64_t now = 1;
    assert(f);
    f->self = (struct address){ 4, { 127, 0, 0, 1 }, 7000 };
    f->parent = (struct address){ 4, { 127, 0, 0, 1 }, 7001 };
    f->ask = fuzz_ask;
    f->ctx = f;
    assert(finder_new(f, &args, 5));
    while (size > 3) {
        size_t n = (size_t)data[1] + 256 * (size_t)(data[2] & 15);
        n = n < size - 3 ? n : size - 3;
        unsigned char *const body = malloc(n ? n : 1);
        assert(body);
        memcpy(body, data + 3, n);
        const struct frame q = { .type = data[0], .body = body, .nbody = n };
        const char *why = NULL;
        finder_take(&q, &found);
        const enum frame_error error = finder_question(f, &q, now, &why);
        assert(!error == !why || error || q.type);
        if (!error && q.type == SERVICE_LOOK) {
            const struct frame a = { .body = f->blob.at + FRAME_HEAD,
                                     .nbody = f->blob.n - FRAME_HEAD };
            assert(finder_take(&a, &found));
        }
        finder_answer(f, data[2], &q);
        finder_answer(f, UINT64_MAX, &q);
        free(body);
        now += data[2] >> 4;
        if (data[2] & 16)
            finder_tick(f, now);
        assert(f->services.n <= 4 && f->nlinks <= FINDER_LINKS &&
               f->nchildren <= FINDER_CHILDREN);
        data += 3 + n;
        size -= 3 + n;
    }
    finder_tick(f, now + 1000 * (uint64_t)SERVICE_TTL_MOST + 2000);
    assert(!f->services.n && !f->nlinks && !f->nchildren);
    bly_node_stats stats;
    bly_node_stat(f->node, &stats);
    assert(!stats.keys && !stats.links);
    finder_free(f);
    free(f);
    return 0;
}
