/*
 * fuzz_index.c - an index of documents from bytes that anyone may have written
 *
 * What loads is asked for anything, in every way there is. Then the same once
 * more with sums that fit: of the directory, of the header, and of the blocks
 * of all parts, so that what is behind the sums is reached.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery/index.h>

#include "core/hash.h"
#include "index/bit_sliced.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(const bly_index *x)
{
    const uint64_t n = bly_index_documents(x);
    const size_t nwords = bly_index_words(x);
    uint64_t *const maybe = malloc(2 * 8 * (nwords + 1)), *const each =
                                                              maybe + nwords;
    uint32_t *const counts = malloc((n + 1) * sizeof *counts);
    bly_index_class_stats class;
    if (!maybe || !counts)
        abort();
    for (size_t c = 0; bly_index_class_at(x, c, &class); c++)
        for (uint64_t i = 0; i < 3; i++) {
            const uint64_t hash = bly_mix64(i + 1);
            const bly_index_term term = { hash, c };
            assert(bly_index_ask(x, &term, 1, maybe) == BLY_OK);
            assert(bly_index_ask_each(x, (unsigned)c, &hash, 1, each) ==
                   BLY_OK);
            assert(memcmp(maybe, each, 8 * nwords) == 0);
            assert(bly_index_coverage(x, (unsigned)c, &hash, 1, counts) ==
                   BLY_OK);
            for (uint64_t d = 0; d < n; d++)
                assert(counts[d] == (maybe[d / 64] >> d % 64 & 1));
            assert(n % 64 == 0 || maybe[nwords - 1] >> n % 64 == 0);
            (void)bly_index_expected(x, &term, 1);
        }
    for (uint64_t d = 0; d < n && d < 1000; d++) {
        bly_bytes blob;
        uint64_t sum = 0;
        if (bly_index_document(x, d, &blob) == BLY_OK)
            for (size_t i = 0; i < blob.len; i++)
                sum += ((const unsigned char *)blob.ptr)[i];
        maybe[0] = sum;
    }
    bly_index_stats s;
    bly_index_stat(x, &s);
    (void)bly_index_get(x, "a");
    (void)bly_index_wants_compaction(x);
    (void)bly_index_damage(x);
    (void)bly_index_verify(x);
    free(maybe);
    free(counts);
}

static bool load(const uint8_t *data, size_t size)
{
    bly_index *x;
    if (bly_index_load(data, size, NULL, &x)) {
        assert(!x);
        return false;
    }
    ask(x);
    bly_index_free(x);
    return true;
}

/* The sums of header and directory, where there is one. */
static bool seal(uint8_t *bytes, size_t size)
{
    if (size < SLICED_HEADER)
        return false;
    const uint64_t at = bly_load64(bytes + 24), n = size - at;
    if (at < SLICED_HEADER || at > size)
        return false;
    bly_store64(bytes + 16, size);
    bly_store64(bytes + 32, n);
    bly_store64(bytes + 40, bly_checksum(bytes + at, (size_t)n));
    bly_store64(bytes + 120, bly_checksum(bytes, 120));
    return true;
}

/* The sums of the blocks of a part, which are in the directory. */
static void settle(uint8_t *bytes, const bly_sliced_part *part)
{
    uint8_t *const table = bytes + (part->table - bytes);
    for (uint64_t i = 0; i < bly_sums_count(part->nbytes, part->shift); i++)
        bly_store64(table + 8 * i, bly_sums_of(bytes + part->at, part->nbytes,
                                               part->shift, i));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bly_index *x;
    load(data, size);
    uint8_t *const bytes = malloc(size + 1);
    if (!bytes)
        return 0;
    if (size)
        memcpy(bytes, data, size);
    if (seal(bytes, size) && load(bytes, size) &&
        bly_index_load(bytes, size, NULL, &x) == BLY_OK) {
        for (uint32_t i = 0; i < x->nsegments; i++)
            settle(bytes, &x->segments[i].part);
        for (uint64_t i = 0; i < x->ngroups; i++)
            settle(bytes, &x->groups[i].part);
        bly_index_free(x);
        seal(bytes, size);
        load(bytes, size);
    }
    free(bytes);
    return 0;
}
