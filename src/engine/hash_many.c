/*
 * hash_many.c - the hashes of many values of one width: the portable rows
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/bits.h"
#include "engine/hash_many.h"

static void ints_portable(const uint64_t *ints, size_t n, uint64_t flip,
                          uint64_t *hashes)
{
    for (size_t i = 0; i < n; i++)
        hashes[i] = bly_int_hash(ints[i], flip);
}

static void folded_portable(const uint64_t *ints, size_t n, uint64_t word,
                            uint64_t *hashes)
{
    for (size_t i = 0; i < n; i++)
        hashes[i] = bly_int_folded(ints[i], word);
}

const bly_ints_row bly_ints_rows[] = {
#if BLY_X86
    { "avx512", BLY_CPU_AVX512, bly_ints_avx512, bly_ints_folded_avx512 },
#endif
    { "portable", 0, ints_portable, folded_portable },
};

BLY_CHOOSE(ints)

void bly_hash_ints(const bly_hasher *hs, const uint64_t *ints, size_t n,
                   uint64_t *hashes)
{
    if (hs->id == BLY_HASH_SIPHASH13 || hs->id == BLY_HASH_GROUPED ||
        hs->id == BLY_HASH_ORDERED_TAILS) {
        for (size_t i = 0; i < n; i++) {
            const uint64_t le = bly_le64(ints[i]);
            hashes[i] = bly_hash(hs, &le, sizeof le);
        }
        return;
    }
    if (bly_hash_orders(hs->id)) {
        const bool big = hs->id == BLY_HASH_ORDERED_BYTES;
        for (size_t i = 0; i < n; i++)
            hashes[i] = bly_mix64(big ? __builtin_bswap64(ints[i]) : ints[i]);
        return;
    }
    if (hs->id == BLY_HASH_FOLDED)
        bly_ints_best()->fold(ints, n, bly_int_word(hs->seed), hashes);
    else
        bly_ints_best()->hash(ints, n, bly_int_flip(hs->seed), hashes);
}

/* With a width known at compile time, XXH64 shrinks to a few
 * multiplications. */
static inline __attribute__((always_inline)) void
xxh64_each(const unsigned char *at, size_t width, size_t n, uint64_t *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = XXH64(at + i * width, width, 0);
}

void bly_xxh64_portable(const unsigned char *at, size_t width, size_t n,
                        uint64_t *hashes)
{
    if (width == 4)
        xxh64_each(at, 4, n, hashes);
    else if (width == 8)
        xxh64_each(at, 8, n, hashes);
    else if (width == 16)
        xxh64_each(at, 16, n, hashes);
    else
        xxh64_each(at, width, n, hashes);
}

const bly_xxh64_row bly_xxh64_rows[] = {
#if BLY_X86
    { "avx512", BLY_CPU_AVX512, bly_xxh64_avx512 },
#endif
    { "portable", 0, bly_xxh64_portable },
};

BLY_CHOOSE(xxh64)
