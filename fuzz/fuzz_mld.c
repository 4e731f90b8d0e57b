/*
 * fuzz_mld.c - wishes for groups that anyone on a link may have sent
 *
 * A byte says by which of three interfaces a packet comes, two how long it is;
 * packets follow each other. Whatever they say: no crash, no interface keeps
 * more than it has room for, and what is sent is a message that can be read.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "apps/net/caster.h"
#include "apps/net/ipv6.h"

#define FACES 3
#define MOST 5

static unsigned fuzz_up(void *ctx, const unsigned char address[16])
{
    (void)ctx;
    return address[15] % (FACES + 1) < FACES ? address[15] % (FACES + 1)
                                             : CAST_FACE_NONE;
}

static void fuzz_send(void *ctx, unsigned face, const unsigned char *packet,
                      size_t n)
{
    struct mld m;
    (void)ctx;
    assert(face < FACES && n <= MLD_MOST && mld_read(packet, n, &m));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct caster c = {
        .nfaces = FACES, .period = 1000, .up = fuzz_up, .send = fuzz_send
    };
    uint64_t now = 0;
    assert(cast_new(&c.cast, MOST, 8, MOST, 7));
    for (unsigned i = 0; i < FACES; i++) {
        c.address[i][0] = 0xfe;
        c.address[i][1] = 0x80;
        c.address[i][15] = (unsigned char)(i + 1);
    }
    while (size > 3) {
        const unsigned face = data[0] % FACES;
        size_t n = (size_t)data[1] + 256 * (size_t)(data[2] & 3);
        n = n < size - 3 ? n : size - 3;
        /* Bytes of their own, so that a look past their end is seen. */
        unsigned char *const in = malloc(n ? n : 1);
        assert(in);
        memcpy(in, data + 3, n);
        /* A sum that is right, mostly, so that more is looked at. */
        size_t options;
        const size_t all = ipv6_bytes(in, n);
        if (all && !(data[2] & 128) && ipv6_options(in, all, &options))
            ipv6_finish(in, all);
        caster_hear(&c, face, in, n, now);
        if (n >= IPV6_HEAD)
            caster_copies(&c, face, in);
        if (data[2] & 64)
            caster_gone(&c, face);
        free(in);
        now += 100 * (data[0] / FACES);
        caster_tick(&c, now);
        for (unsigned i = 0; i < FACES; i++)
            assert(c.cast.n[i] <= MOST);
        data += 3 + n;
        size -= 3 + n;
    }
    /* Silence: all is forgotten, and the filters are empty again. */
    caster_tick(&c, now + 4 * c.period);
    for (unsigned i = 0; i < FACES; i++)
        assert(!c.cast.n[i]);
    for (uint64_t i = 0; i < c.cast.groups.nbits; i++)
        assert(!c.cast.groups.words[i]);
    cast_free(&c.cast);
    return 0;
}
