/*
 * hash.h - bytes to 64 bits
 *
 * XXH3 (inlined from xxHash's header) where no adversary chooses the keys,
 * SipHash-1-3 with a secret where one may (Aumasson and Bernstein, SipHash: a
 * fast short-input PRF, 2012).
 */
#ifndef BLY_HASH_H
#define BLY_HASH_H

#include <bloomery/inline.h> /* bly_int_hash() */

/* SipHash with one round per word and three at the end; key as two
 * little-endian words. bly_siphash24 is the form of the published vectors. */
uint64_t bly_siphash13(const uint64_t key[2], const void *bytes, size_t len);
uint64_t bly_siphash24(const uint64_t key[2], const void *bytes, size_t len);

/* bly_siphash13() of the length as a word and the bytes after it: how Rust
 * hashes a slice. */
uint64_t bly_siphash13_sized(const uint64_t key[2], const void *bytes,
                             size_t len);

/* The order of a key, as a number, for the ids BLY_HASH_ORDERED_...; their hash
 * is bly_mix64() of it. */
uint64_t bly_order(uint32_t id, const void *key, size_t len);

static inline bool bly_hash_orders(uint32_t id)
{
    return id == BLY_HASH_ORDERED_BYTES || id == BLY_HASH_ORDERED_INTS ||
           id == BLY_HASH_ORDERED_TAILS;
}

/* What all keys of a hasher BLY_HASH_ORDERED_TAILS begin with, as one word: its
 * length, which is not 0, in the upper 16 bits, and in the others XXH3 of its
 * bytes. The hasher has it in secret[0], a file in place of the secret's check.
 * bly_begins(): does a key begin so? */
#define BLY_BEGINNING_MOST 65535
uint64_t bly_beginning(const void *text, size_t len);
bool bly_begins(uint64_t beginning, const void *key, size_t len);

static inline size_t bly_beginning_bytes(uint64_t beginning)
{
    return (size_t)(beginning >> 48);
}

/* That id, for keys of a type without a common beginning. */
static inline uint32_t bly_keys_order(bly_key_type type)
{
    return type == BLY_KEYS_TEXT || type == BLY_KEYS_BYTES
               ? BLY_HASH_ORDERED_BYTES
               : BLY_HASH_ORDERED_INTS;
}

/* The seed as bly_int_hash() takes it. */
uint64_t bly_int_flip(uint64_t seed);

/* The seed as the functions for integers of this hasher take it: of
 * bly_int_folded() for BLY_HASH_FOLDED, else of bly_int_hash_turned(). */
uint64_t bly_hash_turned(const bly_hasher *hs);

/* What identifies a secret in a file without giving it away. Never 0. */
uint64_t bly_secret_check(const uint64_t key[2]);

/* A secret of BLY_SECRET_BYTES as two words. */
void bly_secret_words(const unsigned char *secret, uint64_t key[2]);

/* XXH3 of a payload, for checksums; and the same of one that comes in pieces:
 * start, add any number of times, end. */
uint64_t bly_checksum(const void *bytes, size_t nbytes);

typedef struct bly_summing {
    _Alignas(64) unsigned char state[576];
} bly_summing;

void bly_summing_start(bly_summing *s);
void bly_summing_add(bly_summing *s, const void *bytes, size_t nbytes);
uint64_t bly_summing_end(const bly_summing *s);

#endif
