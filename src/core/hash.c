/*
 * hash.c - bytes to 64 bits
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <string.h>

#include "core/bits.h"
#include "core/groups.h"
#include "core/hash.h"

uint64_t bly_checksum(const void *bytes, size_t nbytes)
{
    return XXH3_64bits(bytes, nbytes);
}

/* The state in the header is a block of this size, whose layout is xxHash's. */
_Static_assert(sizeof(XXH3_state_t) <= sizeof(bly_summing) &&
                   _Alignof(XXH3_state_t) <= _Alignof(bly_summing),
               "XXH3 needs more room for its state");

void bly_summing_start(bly_summing *s)
{
    memset(s, 0, sizeof *s);
    XXH3_64bits_reset((XXH3_state_t *)(void *)s);
}

void bly_summing_add(bly_summing *s, const void *bytes, size_t nbytes)
{
    XXH3_64bits_update((XXH3_state_t *)(void *)s, bytes, nbytes);
}

uint64_t bly_summing_end(const bly_summing *s)
{
    return XXH3_64bits_digest((const XXH3_state_t *)(const void *)s);
}

/* For 4 to 8 bytes XXH3 uses words 1 and 2 of its secret, whose exclusive or is
 * the constant, and a seed whose low half is repeated, bytes reversed, in the
 * high half. */
uint64_t bly_int_flip(uint64_t seed)
{
    const uint64_t reversed = __builtin_bswap32((uint32_t)seed);
    return UINT64_C(0xc73ab174c5ecd5a2) - (seed ^ reversed << 32);
}

uint64_t bly_hash_turned(const bly_hasher *hs)
{
    return hs->id == BLY_HASH_FOLDED ? bly_int_word(hs->seed)
                                     : bly_int_turned(bly_int_flip(hs->seed));
}

uint64_t bly_order(uint32_t id, const void *key, size_t len)
{
    unsigned char eight[8] = { 0 };
    if (len)
        memcpy(eight, key, len < sizeof eight ? len : sizeof eight);
    return id == BLY_HASH_ORDERED_INTS && len == sizeof eight
               ? bly_load64(eight)
               : bly_load_be64(eight);
}

uint64_t bly_beginning(const void *text, size_t len)
{
    return (uint64_t)len << 48 | XXH3_64bits(text, len) >> 16;
}

bool bly_begins(uint64_t beginning, const void *key, size_t len)
{
    const size_t n = bly_beginning_bytes(beginning);
    return len >= n && bly_beginning(key, n) == beginning;
}

/* The order of what is behind the beginning. A key with another one is not in
 * the filter, and is anywhere. */
static uint64_t order_of_tail(const bly_hasher *hs, const void *key, size_t len)
{
    const size_t n = bly_beginning_bytes(hs->secret[0]);
    return bly_begins(hs->secret[0], key, len)
               ? bly_order(BLY_HASH_ORDERED_BYTES,
                           (const unsigned char *)key + n, len - n)
               : XXH3_64bits_withSeed(key, len, hs->seed);
}

static uint64_t hash_folded(const bly_hasher *hs, const void *key, size_t len)
{
    /* A constant for the seed that most have. */
    return len == sizeof(uint64_t)
               ? bly_int_folded(bly_load64(key), hs->seed
                                                     ? bly_int_word(hs->seed)
                                                     : bly_int_word(0))
               : XXH3_64bits_withSeed(key, len, hs->seed);
}

/* Every hash but XXH3. A small module (bindings/wasm/lean/) has one. */
static uint64_t hash_other(const bly_hasher *hs, const void *key, size_t len)
{
#ifdef BLY_LEAN
    return hash_folded(hs, key, len);
#endif
    if (hs->id == BLY_HASH_FOLDED)
        return hash_folded(hs, key, len);
    if (hs->id == BLY_HASH_SIPHASH13)
        return bly_siphash13(hs->secret, key, len);
    if (hs->id == BLY_HASH_GROUPED)
        return bly_groups_hash(hs, key, len);
    if (hs->id == BLY_HASH_ORDERED_TAILS)
        return bly_mix64(order_of_tail(hs, key, len));
    return bly_mix64(bly_order(hs->id, key, len));
}

static bool is_other(const bly_hasher *hs)
{
    return hs->id > BLY_HASH_XXH3;
}

uint64_t bly_hash(const bly_hasher *hs, const void *key, size_t len)
{
    if (is_other(hs))
        return hash_other(hs, key, len);
    return XXH3_64bits_withSeed(key, len, hs->seed);
}

/* wide is a literal wherever this is used. */
static inline __attribute__((always_inline)) bly_bytes
column_key(const bly_column *c, size_t i, bool wide)
{
    const uint64_t from = wide ? c->wide_offsets[i] : c->offsets[i];
    const uint64_t to = wide ? c->wide_offsets[i + 1] : c->offsets[i + 1];
    return (bly_bytes){ (const unsigned char *)c->bytes + (size_t)from,
                        (size_t)(to - from) };
}

void bly_hash_keys(const bly_hasher *hs, const bly_bytes *keys, size_t n,
                   uint64_t *hashes)
{
    if (is_other(hs)) {
        for (size_t i = 0; i < n; i++)
            hashes[i] = hash_other(hs, keys[i].ptr, keys[i].len);
        return;
    }
    const uint64_t seed = hs->seed;
    for (size_t i = 0; i < n; i++)
        hashes[i] = XXH3_64bits_withSeed(keys[i].ptr, keys[i].len, seed);
}

/* A loop for each width, in which the hash is inlined. */
#define HASH_COLUMN(wide)                                         \
    for (size_t i = 0; i < n; i++) {                              \
        const bly_bytes key = column_key(keys, i, wide);          \
        hashes[i] = XXH3_64bits_withSeed(key.ptr, key.len, seed); \
    }

void bly_hash_column(const bly_hasher *hs, const bly_column *keys, size_t n,
                     uint64_t *hashes)
{
    const uint64_t seed = hs->seed;
    const bool wide = keys->wide_offsets != NULL;
    if (is_other(hs)) {
        for (size_t i = 0; i < n; i++) {
            const bly_bytes key = column_key(keys, i, wide);
            hashes[i] = hash_other(hs, key.ptr, key.len);
        }
    } else if (wide) {
        HASH_COLUMN(true)
    } else {
        HASH_COLUMN(false)
    }
}
