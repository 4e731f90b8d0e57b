/*
 * fuzz_forward.c - a packet that anyone may have sent, through two routers
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "apps/net/forward.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct face fuzz_face(const char *name)
{
    const struct mark_spec spec = { .bits = 64, .k = 2, .k0 = 2 };
    struct face f = { .mtu = 2000 };
    struct mark_maker *maker;
    assert(mark_maker_new(&spec, &maker) == BLY_OK);
    assert(mark_make(maker, name, 1, &f.loop) == BLY_OK);
    assert(mark_make(maker, name, 1, &f.way) == BLY_OK);
    mark_maker_free(maker);
    return f;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct face a, b;
    static const unsigned char me[16] = { 0xfd, 9 };
    if (!a.mtu) {
        a = fuzz_face("a");
        b = fuzz_face("b");
    }
    /* Bytes of their own, so that a look past their end is seen. */
    unsigned char *const in = malloc(size ? size : 1);
    unsigned char *const out = malloc(size + FORWARD_MORE);
    unsigned char *const next = malloc(size + 2 * FORWARD_MORE);
    unsigned char complaint[1280];
    struct marked loop, way;
    size_t n, m;
    assert(in && out && next);
    memcpy(in, data, size);
    const enum fate fate = forward(&a, 2, in, size, out, &n);
    if (fate == FATE_SENT) {
        assert(n <= size + FORWARD_MORE && out[7] == in[7] - 1);
        assert(forward_marks(&a, out, n, &loop, &way));
        assert(mark_in(&a.loop, &loop) && mark_in(&a.way, &way));
        if (forward(&b, 2, out, n, next, &m) == FATE_SENT)
            assert(m == n && memcmp(out + 8, next + 8, 32) == 0);
    }
    assert(forward_complain(fate, 1400, me, in, size, complaint) <= 1280);
    free(in);
    free(out);
    free(next);
    return 0;
}
