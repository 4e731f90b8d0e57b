/*
 * fuzz_sorted.c - a sorted set from bytes that anyone may have written
 *
 * What loads is written back byte for byte and can be asked for anything. With
 * a first byte that is odd the rest is taken as integers, which must be found.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery/sorted.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void load(const uint8_t *data, size_t size)
{
    bly_sorted *s;
    if (bly_sorted_load(data, size, NULL, &s)) {
        assert(!s);
        return;
    }
    assert(bly_sorted_written_bytes(s) == size);
    unsigned char *const bytes = malloc(size);
    if (bytes) {
        bly_sorted_write(s, bytes);
        assert(memcmp(bytes, data, size) == 0);
        free(bytes);
    }
    uint64_t nfound = 0;
    for (unsigned bit = 0; bit < 64; bit++) {
        const uint64_t v[2] = { UINT64_C(1) << bit, (UINT64_C(1) << bit) - 1 };
        uint64_t found;
        bly_sorted_has(s, v, 2, &found);
        nfound += (uint64_t)__builtin_popcountll(found);
    }
    assert(nfound <= 2 * bly_sorted_items(s)); /* 1 is asked for twice */
    bly_sorted_free(s);
}

static void make(const uint8_t *data, size_t size)
{
    const unsigned width = data[1] % 64 + 1;
    const size_t n = (size - 2) / 8;
    uint64_t *const values = malloc((n + 1) * 8), *const copy =
                                                      malloc(n * 8 + 8);
    bly_sorted *s = NULL;
    if (values && copy) {
        memcpy(values, data + 2, 8 * n);
        for (size_t i = 0; i < n; i++)
            copy[i] = values[i] = values[i] >> (64 - width);
        assert(bly_sorted_new(values, n, width, NULL, NULL, &s) == BLY_OK);
        for (size_t i = 0; i < n; i++) {
            uint64_t found;
            bly_sorted_has(s, &copy[i], 1, &found);
            assert(found == 1);
        }
        assert(bly_sorted_items(s) <= n);
    }
    bly_sorted_free(s);
    free(values);
    free(copy);
}

/* As it comes, and once more with a checksum that fits. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const bly_hasher by = { .id = BLY_HASH_XXH3 };
    load(data, size);
    if (size >= 2 && data[0] & 1)
        make(data, size);
    uint8_t *const bytes = size >= 8 ? malloc(size) : NULL;
    if (!bytes)
        return 0;
    memcpy(bytes, data, size);
    uint64_t sum = bly_hash(&by, bytes, size - 8);
    for (size_t i = size - 8; i < size; i++, sum >>= 8)
        bytes[i] = (uint8_t)sum;
    load(bytes, size);
    free(bytes);
    return 0;
}
