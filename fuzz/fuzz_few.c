/*
 * fuzz_few.c - filters of few keys, from bytes that anyone may have written
 *
 * The bytes are asked as they are. With a first byte that is odd the rest is
 * taken as hashes, which a filter built of them must have.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery/few.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void build(const uint8_t *data, size_t size)
{
    const size_t n = (size - 2) / 8;
    const double bits = 1 + data[1] / 18.3;
    const size_t room = bly_few_room(n, bits);
    uint64_t *const h = malloc(8 * n + 8);
    unsigned char *const f = malloc(room);
    size_t nbytes;
    if (h && f) {
        memcpy(h, data + 2, 8 * n);
        assert(bly_few_build(h, n, bits, f, room, &nbytes) == BLY_OK);
        assert(nbytes <= room);
        for (size_t i = 0; i < n; i++)
            assert(bly_few_has(f, nbytes, h[i]));
    }
    free(h);
    free(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bly_few_facts facts;
    const bool is_one = bly_few_tell(data, size, &facts);
    for (unsigned bit = 0; bit < 64; bit++)
        assert(bly_few_has(data, size, UINT64_C(1) << bit) || is_one);
    if (size >= 2 && data[0] & 1)
        build(data, size);
    return 0;
}
