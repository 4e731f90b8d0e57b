/*
 * hash_many.h - the hashes of many values of one width
 *
 * Integers by either hash, for kinds that get hashes; blocked filters hash in
 * their own walk (lines.h). The values of a Parquet column by XXH64.
 */
#ifndef BLY_HASH_MANY_H
#define BLY_HASH_MANY_H

#include "core/hash.h"
#include "engine/rows.h"

/* bly_int_hash() of n integers, and bly_int_folded(); in place where hashes is
 * ints. */
typedef void bly_ints_fn(const uint64_t *ints, size_t n, uint64_t seed,
                         uint64_t *hashes);
typedef struct bly_ints_row {
    BLY_ROW_HEAD;
    bly_ints_fn *hash;
    bly_ints_fn *fold;
} bly_ints_row;
BLY_ROWS(ints);

/* XXH64 with seed 0 of n values of `width` bytes, one after another. */
typedef void bly_xxh64_fn(const unsigned char *at, size_t width, size_t n,
                          uint64_t *hashes);
typedef struct bly_xxh64_row {
    BLY_ROW_HEAD;
    bly_xxh64_fn *hash;
} bly_xxh64_row;
BLY_ROWS(xxh64);

bly_xxh64_fn bly_xxh64_portable;
#if BLY_X86
/* x86_hash.c */
bly_ints_fn bly_ints_avx512, bly_ints_folded_avx512;
bly_xxh64_fn bly_xxh64_avx512;
#endif

#endif
