/*
 * bits.h - arrays of bits, ranges
 *
 * Bit j lives in byte j / 8 at bit j % 8, least significant first, and the
 * arrays are walked as 64-bit words. In memory a word is little-endian on
 * every machine, as in the file (bytes.h).
 */
#ifndef BLY_BITS_H
#define BLY_BITS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <bloomery/views.h> /* bly_mulhi(), bly_mix64(), ... */

#include "core/bytes.h"

/* Scale a 64-bit hash to [0, n) without division: h * n / 2^64. Uses the top
 * bits of h, so anything else derived from h must come through a
 * multiplication. */
static inline uint64_t bly_scale(uint64_t h, uint64_t n)
{
    return bly_mulhi(h, n);
}

/* h mod n for many h and one n < 2^63: bly_mod_(). */
typedef struct bly_modulus {
    uint64_t n, inverse;
} bly_modulus;

static inline bly_modulus bly_modulus_of(uint64_t n)
{
    return (bly_modulus){ n, UINT64_MAX / n };
}

static inline uint64_t bly_mod(uint64_t h, bly_modulus by)
{
    return bly_mod_(h, by.n, by.inverse);
}

/* The quotient that goes with it. */
static inline uint64_t bly_div(uint64_t h, bly_modulus by)
{
    const uint64_t q = bly_mulhi(h, by.inverse);
    return q + (h - q * by.n >= by.n);
}

/* The x of which h is bly_mix64(x). */
static inline uint64_t bly_unmix64(uint64_t h)
{
    h ^= h >> 31 ^ h >> 62;
    h *= UINT64_C(0x319642b2d24d8ec3);
    h ^= h >> 27 ^ h >> 54;
    h *= UINT64_C(0x96de1b173f119089);
    return h ^ h >> 30 ^ h >> 60;
}

/* Bits 0 to i % 64. */
static inline __attribute__((always_inline)) uint64_t bly_through(uint64_t i)
{
    return UINT64_MAX >> (63 - i % 64);
}

/* The place of the k-th one of x, from 0, which must exist. Sums of ones by
 * bytes, then the byte in which the k-th is, then bit by bit. */
static inline __attribute__((always_inline)) unsigned bly_select(uint64_t x,
                                                                 unsigned k)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), highs = ones << 7;
    uint64_t sums = x - (x >> 1 & UINT64_C(0x5555555555555555));
    sums = (sums & UINT64_C(0x3333333333333333)) +
           (sums >> 2 & UINT64_C(0x3333333333333333));
    sums = ((sums + (sums >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f)) * ones;
    const uint64_t before = ((k * ones | highs) - sums) & highs;
    const unsigned at = (unsigned)((before >> 7) * ones >> 56) * 8;
    unsigned left = k - (unsigned)((sums << 8) >> at & 0xff);
    uint64_t byte = x >> at;
    for (; left; left--)
        byte &= byte - 1;
    return at + (unsigned)__builtin_ctzll(byte);
}

/* The same by an instruction that deposits bits where x has ones. `pdep`, a
 * literal or as good as one, says that the processor has this instruction and
 * that it is fast. */
static inline __attribute__((always_inline)) unsigned
bly_select_by(uint64_t x, unsigned k, bool pdep)
{
#if defined(__x86_64__)
    if (pdep) {
        uint64_t at;
        __asm__("pdep %2, %1, %0" : "=r"(at) : "r"(UINT64_C(1) << k), "r"(x));
        return (unsigned)__builtin_ctzll(at);
    }
#endif
    (void)pdep;
    return bly_select(x, k);
}

/* That bit alone; 0 if there are not so many ones. k is taken modulo 64. */
static inline __attribute__((always_inline)) uint64_t
bly_nth_one(uint64_t x, unsigned k, bool pdep)
{
    k %= 64;
#if defined(__x86_64__)
    if (pdep) {
        uint64_t one;
        __asm__("pdep %2, %1, %0" : "=r"(one) : "r"(UINT64_C(1) << k), "r"(x));
        return one;
    }
#endif
    (void)pdep;
    return k < (unsigned)__builtin_popcountll(x)
               ? UINT64_C(1) << bly_select(x, k)
               : 0;
}

static inline bool bly_bit_get(const uint64_t *words, uint64_t j)
{
    return bly_le64(words[j >> 6]) >> (j & 63) & 1;
}

/* Set bit j; true if it was clear. */
static inline bool bly_bit_set(uint64_t *words, uint64_t j)
{
    const uint64_t bit = bly_le64(UINT64_C(1) << (j & 63));
    const uint64_t old = words[j >> 6];
    words[j >> 6] = old | bit;
    return !(old & bit);
}

static inline void bly_bit_clear(uint64_t *words, uint64_t j)
{
    words[j >> 6] &= ~bly_le64(UINT64_C(1) << (j & 63));
}

/* OR mask into *word as one of many writers. The old value is not returned:
 * that would take a loop instead of one instruction. */
static inline void bly_word_set_shared(uint64_t *word, uint64_t mask)
{
    (void)atomic_fetch_or_explicit((_Atomic uint64_t *)word, mask,
                                   memory_order_relaxed);
}

/* The same, and returns the bits that this writer set. Of two writers of one
 * bit exactly one gets it, so that kinds may count them. Reads first: most
 * words need no change once a filter is half full, and a plain load does not
 * take the line away from other processors. */
static inline uint64_t bly_word_or_shared(uint64_t *word, uint64_t mask)
{
    _Atomic uint64_t *const w = (_Atomic uint64_t *)word;
    const uint64_t old = atomic_load_explicit(w, memory_order_relaxed);
    if (!(mask & ~old))
        return 0;
    return mask & ~atomic_fetch_or_explicit(w, mask, memory_order_relaxed);
}

/* What such a writer has changed so far comes before what it reads from here
 * on. On x86 it does anyway, unless the compiler changes it. */
static inline void bly_fence(void)
{
#if defined(__x86_64__) || defined(__i386__)
    atomic_signal_fence(memory_order_seq_cst);
#else
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

/* A read that may meet such a writer. */
static inline uint64_t bly_word_load(const uint64_t *word)
{
    return atomic_load_explicit((const _Atomic uint64_t *)word,
                                memory_order_relaxed);
}

/* a |= b and a &= b. */
void bly_bits_or(uint64_t *a, const uint64_t *b, size_t nwords);
void bly_bits_and(uint64_t *a, const uint64_t *b, size_t nwords);

/* Fold 2 * half bits of src into half bits of dst, whose words are zero. Bit j
 * of dst is the OR of bits j and j + half of src; in the other function, of
 * bits 2j and 2j + 1. */
void bly_bits_fold_halves(uint64_t *dst, const uint64_t *src, uint64_t half);
void bly_bits_fold_pairs(uint64_t *dst, const uint64_t *src, uint64_t half);

/* Whether all bits from `from` to the end of nwords words are clear. */
bool bly_bits_tail_clear(const uint64_t *a, uint64_t from, size_t nwords);

#endif
