/*
 * cuda_keys.h - keys in device memory, and their hashes
 *
 * Keys are hashes, integers, or bytes in a column with offsets. Integers are
 * hashed where they are used. Bytes are hashed by a kernel of their own, whose
 * many registers would keep other kernels from filling the device. Both are
 * hashed as the library hashes them, by XXH3 with 64 bits and a seed
 * (https://github.com/Cyan4973/xxHash, doc/xxhash_spec.md) or, integers in a
 * filter of integers, by bly_int_folded(), so that a key has
 * one hash wherever it is asked for. One thread hashes one key: keys are short.
 */
#ifndef BLY_CUDA_KEYS_H
#define BLY_CUDA_KEYS_H

#include "machine.h"

/* Keys that are words. */
typedef struct key_source {
    const uint64_t *words;
    bool ints;       /* integers; otherwise hashes */
    bool folded;     /* by bly_int_folded() */
    uint64_t turned; /* the seed, as bly_int_hash_of() takes it */
} key_source;

/* ------------------------------------------------------------------- XXH3 */

#define XXH_PRIME32_1 UINT64_C(0x9e3779b1)
#define XXH_PRIME32_2 UINT64_C(0x85ebca77)
#define XXH_PRIME32_3 UINT64_C(0xc2b2ae3d)
#define XXH_PRIME64_1 UINT64_C(0x9e3779b185ebca87)
#define XXH_PRIME64_2 UINT64_C(0xc2b2ae3d27d4eb4f)
#define XXH_PRIME64_3 UINT64_C(0x165667b19e3779f9)
#define XXH_PRIME64_4 UINT64_C(0x85ebca77c2b2ae63)
#define XXH_PRIME64_5 UINT64_C(0x27d4eb2f165667c5)
#define XXH_AVALANCHE UINT64_C(0x165667919e3779f9)
#define XXH_SECRET_BYTES 192u
#define XXH_SECRET_LEAST 136u /* what keys of up to 240 bytes use of it */

/* The default secret, as little-endian words. */
CONSTANT uint64_t xxh_secret[XXH_SECRET_BYTES / 8] = {
    UINT64_C(0xbe4ba423396cfeb8), UINT64_C(0x1cad21f72c81017c),
    UINT64_C(0xdb979083e96dd4de), UINT64_C(0x1f67b3b7a4a44072),
    UINT64_C(0x78e5c0cc4ee679cb), UINT64_C(0x2172ffcc7dd05a82),
    UINT64_C(0x8e2443f7744608b8), UINT64_C(0x4c263a81e69035e0),
    UINT64_C(0xcb00c391bb52283c), UINT64_C(0xa32e531b8b65d088),
    UINT64_C(0x4ef90da297486471), UINT64_C(0xd8acdea946ef1938),
    UINT64_C(0x3f349ce33f76faa8), UINT64_C(0x1d4f0bc7c7bbdcf9),
    UINT64_C(0x3159b4cd4be0518a), UINT64_C(0x647378d9c97e9fc8),
    UINT64_C(0xc3ebd33483acc5ea), UINT64_C(0xeb6313faffa081c5),
    UINT64_C(0x49daf0b751dd0d17), UINT64_C(0x9e68d429265516d3),
    UINT64_C(0xfca1477d58be162b), UINT64_C(0xce31d07ad1b8f88f),
    UINT64_C(0x280416958f3acb45), UINT64_C(0x7e404bbbcafbd7af)
};

/* Word i of the secret that a seed gives for keys of more than 240 bytes. */
ANYWHERE uint64_t xxh_secret_word(unsigned i, uint64_t seed)
{
    return i % 2 ? xxh_secret[i] - seed : xxh_secret[i] + seed;
}

/* The eight bytes of that secret from `at` on; seed 0: of the default one. */
ANYWHERE uint64_t xxh_secret_at(unsigned at, uint64_t seed)
{
    const unsigned shift = at % 8 * 8;
    const uint64_t low = xxh_secret_word(at / 8, seed);
    return shift ? low >> shift | xxh_secret_word(at / 8 + 1, seed)
                                      << (64 - shift)
                 : low;
}

ANYWHERE uint64_t xxh_read32(const unsigned char *at)
{
    return at[0] | (uint64_t)at[1] << 8 | (uint64_t)at[2] << 16 |
           (uint64_t)at[3] << 24;
}

/* Byte by byte: keys begin anywhere, and an aligned word around the last bytes
 * might reach past the end of the column. */
ANYWHERE uint64_t xxh_read64(const unsigned char *at)
{
    return xxh_read32(at) | xxh_read32(at + 4) << 32;
}

ANYWHERE uint64_t xxh_folded(uint64_t a, uint64_t b)
{
    return a * b ^ bly_mulhi(a, b);
}

ANYWHERE uint64_t xxh_swapped(uint64_t x)
{
    x = (x & UINT64_C(0x00ff00ff00ff00ff)) << 8 |
        (x >> 8 & UINT64_C(0x00ff00ff00ff00ff));
    x = (x & UINT64_C(0x0000ffff0000ffff)) << 16 |
        (x >> 16 & UINT64_C(0x0000ffff0000ffff));
    return x << 32 | x >> 32;
}

ANYWHERE uint64_t xxh_avalanche(uint64_t h)
{
    h ^= h >> 37;
    h *= XXH_AVALANCHE;
    return h ^ h >> 32;
}

/* The last steps of XXH64, for the shortest keys. */
ANYWHERE uint64_t xxh_avalanche_64(uint64_t h)
{
    h ^= h >> 33;
    h *= XXH_PRIME64_2;
    h ^= h >> 29;
    h *= XXH_PRIME64_3;
    return h ^ h >> 32;
}

ANYWHERE uint64_t xxh_mix16(const unsigned char *at, unsigned secret,
                            uint64_t seed)
{
    return xxh_folded(xxh_read64(at) ^ (xxh_secret_at(secret, 0) + seed),
                      xxh_read64(at + 8) ^
                          (xxh_secret_at(secret + 8, 0) - seed));
}

ANYWHERE uint64_t xxh_up_to_16(const unsigned char *at, uint64_t n,
                               uint64_t seed)
{
    if (n > 8) {
        const uint64_t low =
            xxh_read64(at) ^ ((xxh_secret[3] ^ xxh_secret[4]) + seed);
        const uint64_t high =
            xxh_read64(at + n - 8) ^ ((xxh_secret[5] ^ xxh_secret[6]) - seed);
        return xxh_avalanche(n + xxh_swapped(low) + high +
                             xxh_folded(low, high));
    }
    if (n >= 4) {
        const uint64_t x = xxh_read32(at) << 32;
        const uint64_t reversed = xxh_swapped(seed & UINT32_MAX);
        uint64_t h = (x + xxh_read32(at + n - 4)) ^
                     ((xxh_secret[1] ^ xxh_secret[2]) - (seed ^ reversed));
        h ^= (h << 49 | h >> 15) ^ (h << 24 | h >> 40);
        h *= BLY_INT_HASH_C;
        h ^= (h >> 35) + n;
        h *= BLY_INT_HASH_C;
        return h ^ h >> 28;
    }
    if (n) {
        const uint64_t x = (uint64_t)at[0] << 16 | (uint64_t)at[n / 2] << 24 |
                           at[n - 1] | n << 8;
        const uint64_t flip =
            ((xxh_secret[0] ^ xxh_secret[0] >> 32) & UINT32_MAX) + seed;
        return xxh_avalanche_64(x ^ flip);
    }
    return xxh_avalanche_64(seed ^ (xxh_secret[7] ^ xxh_secret[8]));
}

/* From both ends to the middle. */
ANYWHERE uint64_t xxh_up_to_128(const unsigned char *at, uint64_t n,
                                uint64_t seed)
{
    uint64_t sum = n * XXH_PRIME64_1;
    for (int i = (int)((n - 1) / 32); i >= 0; i--) {
        sum += xxh_mix16(at + 16 * i, 32 * (unsigned)i, seed);
        sum += xxh_mix16(at + n - 16 * (i + 1), 32 * (unsigned)i + 16, seed);
    }
    return xxh_avalanche(sum);
}

ANYWHERE uint64_t xxh_up_to_240(const unsigned char *at, uint64_t n,
                                uint64_t seed)
{
    uint64_t sum = n * XXH_PRIME64_1;
    const unsigned nrounds = (unsigned)n / 16;
    for (unsigned i = 0; i < nrounds; i++) {
        sum += xxh_mix16(at + 16 * i, i < 8 ? 16 * i : 16 * (i - 8) + 3, seed);
        if (i == 7)
            sum = xxh_avalanche(sum);
    }
    sum += xxh_mix16(at + n - 16, XXH_SECRET_LEAST - 17, seed);
    return xxh_avalanche(sum);
}

ANYWHERE void xxh_accumulate(uint64_t *acc, const unsigned char *at,
                             unsigned secret, uint64_t seed)
{
    for (unsigned i = 0; i < 8; i++) {
        const uint64_t x = xxh_read64(at + 8 * i);
        const uint64_t key = x ^ xxh_secret_at(secret + 8 * i, seed);
        acc[i ^ 1] += x;
        acc[i] += (key & UINT32_MAX) * (key >> 32);
    }
}

#define XXH_STRIPE 64u
#define XXH_STRIPES ((XXH_SECRET_BYTES - XXH_STRIPE) / 8) /* of a block */

ANYWHERE uint64_t xxh_long(const unsigned char *at, uint64_t n, uint64_t seed)
{
    uint64_t acc[8] = { XXH_PRIME32_3, XXH_PRIME64_1, XXH_PRIME64_2,
                        XXH_PRIME64_3, XXH_PRIME64_4, XXH_PRIME32_2,
                        XXH_PRIME64_5, XXH_PRIME32_1 };
    const uint64_t nstripes = (n - 1) / XXH_STRIPE;
    for (uint64_t s = 0; s < nstripes; s++) {
        xxh_accumulate(acc, at + s * XXH_STRIPE,
                       8 * (unsigned)(s % XXH_STRIPES), seed);
        if (s % XXH_STRIPES == XXH_STRIPES - 1)
            for (unsigned i = 0; i < 8; i++) {
                acc[i] ^= acc[i] >> 47;
                acc[i] ^=
                    xxh_secret_at(XXH_SECRET_BYTES - XXH_STRIPE + 8 * i, seed);
                acc[i] *= XXH_PRIME32_1;
            }
    }
    xxh_accumulate(acc, at + n - XXH_STRIPE, XXH_SECRET_BYTES - XXH_STRIPE - 7,
                   seed);
    uint64_t sum = n * XXH_PRIME64_1;
    for (unsigned i = 0; i < 4; i++)
        sum +=
            xxh_folded(acc[2 * i] ^ xxh_secret_at(11 + 16 * i, seed),
                       acc[2 * i + 1] ^ xxh_secret_at(11 + 16 * i + 8, seed));
    return xxh_avalanche(sum);
}

ANYWHERE uint64_t xxh3(const unsigned char *at, uint64_t n, uint64_t seed)
{
    return n <= 16    ? xxh_up_to_16(at, n, seed)
           : n <= 128 ? xxh_up_to_128(at, n, seed)
           : n <= 240 ? xxh_up_to_240(at, n, seed)
                      : xxh_long(at, n, seed);
}

/* -------------------------------------------------------------------- keys */

ANYWHERE uint64_t word_hash(const key_source *s, uint64_t word)
{
    return s->ints ? bly_int_hash_of(word, s->turned, s->folded) : word;
}

ANYWHERE uint64_t key_hash(const key_source *s, uint64_t i)
{
    return word_hash(s, stream_load(s->words + i));
}

KERNEL(ints_hash)(key_source keys, uint64_t n, uint64_t *hashes)
{
    for (uint64_t i = key_first(); i < n; i += key_step())
        hashes[i] = key_hash(&keys, i);
}

/* The hash of bytes in a filter of integers, if folded. */
ANYWHERE uint64_t bytes_hash(const unsigned char *at, uint64_t n, uint64_t seed,
                             bool folded)
{
    return folded && n == 8 ? bly_int_folded(xxh_read64(at), bly_int_word(seed))
                            : xxh3(at, n, seed);
}

/* Keys first to first + n - 1 of a column. */
KERNEL(column_hash)
(bly_column c, uint64_t first, uint64_t n, uint64_t seed, bool folded,
 uint64_t *hashes)
{
    for (uint64_t k = key_first(); k < n; k += key_step()) {
        const uint64_t i = first + k;
        const uint64_t from = c.offsets ? c.offsets[i] : c.wide_offsets[i];
        const uint64_t to =
            c.offsets ? c.offsets[i + 1] : c.wide_offsets[i + 1];
        hashes[k] = bytes_hash((const unsigned char *)c.bytes + from, to - from,
                               seed, folded);
    }
}

#endif
