/*
 * fuzz_hll.c - a sketch of distinct keys from bytes that anyone may have
 * written
 *
 * What loads is written back byte for byte, gives an estimate that is a
 * number, takes more keys, and merges.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery/sketch.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint64_t hashes[] = { 0, 1, UINT64_MAX, UINT64_C(1) << 40 };
    bly_hll *s, *other;
    double sd;
    if (bly_hll_load(data, size, NULL, &s)) {
        assert(!s);
        return 0;
    }
    assert(bly_hll_written_bytes(s) == size);
    void *bytes = malloc(size);
    if (bytes) {
        bly_hll_write(s, bytes);
        assert(memcmp(bytes, data, size) == 0);
        free(bytes);
    }
    assert(!isnan(bly_hll_estimate(s, &sd)) && sd >= 0);
    (void)!bly_hll_add(s, hashes, sizeof hashes / sizeof hashes[0]);
    if (bly_hll_new(bly_hll_precision(s), NULL, &other) == BLY_OK) {
        assert(bly_hll_merge(other, s) == BLY_OK);
        bly_hll_free(other);
    }
    bly_hll_free(s);
    return 0;
}
