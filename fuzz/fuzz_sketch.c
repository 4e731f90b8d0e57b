/*
 * fuzz_sketch.c - a sketch of likeness from bytes that anyone may have written
 *
 * What loads is written back byte for byte, is wholly like itself, takes more
 * shingles and merges where it is whole, and refuses both where it is compact.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery/sketch.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void load(const uint8_t *data, size_t size)
{
    static const uint64_t hashes[] = { 0, 1, UINT64_MAX, UINT64_C(1) << 40 };
    bly_sketch_spec spec;
    bly_sketch *s, *other;
    bly_resemblance r;
    if (bly_sketch_spec_read(data, size, &spec) == BLY_OK) {
        unsigned char head[BLY_SKETCH_HEAD];
        bly_sketch_spec_write(&spec, head);
        assert(memcmp(head, data, sizeof head) == 0);
        assert(bly_sketch_spec_check(&spec) == BLY_OK);
    }
    if (bly_sketch_load(data, size, NULL, &s)) {
        assert(!s);
        return;
    }
    assert(bly_sketch_written_bytes(s, 0) == size);
    unsigned char *const bytes = malloc(size);
    if (bytes) {
        assert(bly_sketch_write(s, 0, bytes) == BLY_OK);
        assert(memcmp(bytes, data, size) == 0);
        assert(bly_sketch_write(s, 1, bytes) == BLY_OK); /* never longer */
        assert(bly_sketch_load(bytes, bly_sketch_written_bytes(s, 1), NULL,
                               &other) != BLY_EFORMAT);
        if (other) {
            assert(bly_sketch_compare(s, other, &r) == BLY_OK && r.bits == 1);
            bly_sketch_free(other);
        }
        free(bytes);
    }
    const unsigned k = bly_sketch_spec_of(s)->k;
    assert(bly_sketch_compare(s, s, &r) == BLY_OK);
    assert(r.equal == k || (r.equal == 0 && r.jaccard == 0));
    uint32_t parts[BLY_MAX_COMPONENTS];
    const bool whole = bly_sketch_bits(s) == 0;
    assert(bly_sketch_components(s, parts) == (whole && r.equal));
    const bly_status want = whole ? BLY_OK : BLY_EREADONLY;
    if (bly_sketch_new(bly_sketch_spec_of(s), &other) == BLY_OK) {
        assert(bly_sketch_merge(other, s) == want);
        bly_sketch_free(other);
    }
    assert(bly_sketch_add(s, hashes, sizeof hashes / sizeof hashes[0]) == want);
    bly_sketch_free(s);
}

/* As it comes, and once more with a checksum that fits. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const bly_hasher by = { .id = BLY_HASH_XXH3 };
    load(data, size);
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
