/*
 * fuzz_ask.c - questions about packets, and answers to them
 *
 * The first byte is the type of a frame, the rest its body. It is taken for a
 * question, for a tree and for a list of neighbours; what can be read is
 * written again as the same bytes, and a router answers it.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "apps/net/ask/ask_walk.h"

static void same(const struct blob *b, const uint8_t *data, size_t n)
{
    assert(b->n - FRAME_HEAD == n);
    assert(!n || memcmp(b->at + FRAME_HEAD, data, n) == 0);
}

static void answered(const struct ask_question *q)
{
    static struct ask_self self;
    static struct caller call;
    static struct ask_tree t;
    self.n = 2;
    memcpy(self.name, "me", 3);
    memcpy(self.links[0].link.name, "a", 2);
    memcpy(self.links[1].link.name, "b", 2);
    self.links[0].way = (struct mark){ .nbytes = 32, .set = { 1 } };
    ask_walk(&self, q, &call, &t);
    assert(t.n <= 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct ask_question q;
    static struct ask_tree t, joined;
    static struct ask_links l;
    struct blob b = { 0 };
    if (!size)
        return 0;
    /* Memory of its own, so that reading past the end is seen. */
    unsigned char *const body = malloc(size);
    assert(body);
    memcpy(body, data + 1, size - 1);
    const struct frame f = { .type = data[0] % 2 ? ASK_MARK : ASK_WALK,
                             .body = body,
                             .nbody = size - 1 };
    if (ask_take(&f, &q)) {
        ask_put(&b, f.type, &q);
        same(&b, body, size - 1);
        answered(&q);
    }
    if (ask_take_tree(&f, &t)) {
        ask_put_tree(&b, &t);
        same(&b, body, size - 1);
        joined.n = 0;
        for (unsigned i = 0; i < 3; i++)
            ask_join(&joined, i ? 0 : ASK_FIRST, &t);
        for (unsigned i = 1; i < joined.n; i++)
            assert(joined.at[i].before < i);
    }
    if (ask_take_links(&f, &l)) {
        ask_put_links(&b, &l);
        same(&b, body, size - 1);
    }
    blob_free(&b);
    free(body);
    return 0;
}
