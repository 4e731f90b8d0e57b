/*
 * digests.c - SHA-1 and SHA-256 (FIPS 180-4), MD4 (RFC 1320)
 *
 * One family: a state of a few words, blocks of 64 bytes that stir it, and an
 * end that is filled up with a bit, zeros and the length. They differ in the
 * stirring and in the order of bytes, and that is all `struct sum` holds. The
 * input is wiped from memory, since it may be a password.
 */
#define _DEFAULT_SOURCE /* explicit_bzero() */

#include "io/digests.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/byte_order.h"
#include "io/x86_digests.h"

#define BLOCK 64

struct sum {
    uint32_t start[8];
    unsigned nwords; /* of the state */
    bool big;        /* big-endian */
    void (*stir)(uint32_t *state, const uint32_t words[16]);
};

static inline uint32_t rotate_left(uint32_t x, unsigned n)
{
    return x << n | x >> (32 - n);
}

static inline uint32_t rotate_right(uint32_t x, unsigned n)
{
    return x >> n | x << (32 - n);
}

static inline uint32_t choose(uint32_t x, uint32_t y, uint32_t z)
{
    return (x & y) | (~x & z);
}

static inline uint32_t majority(uint32_t x, uint32_t y, uint32_t z)
{
    return (x & y) | (x & z) | (y & z);
}

static void stir_sha1(uint32_t *state, const uint32_t words[16])
{
    static const uint32_t constants[4] = { 0x5a827999, 0x6ed9eba1, 0x8f1bbcdc,
                                           0xca62c1d6 };
    uint32_t w[80];
    memcpy(w, words, 16 * sizeof *w);
    for (unsigned t = 16; t < 80; t++)
        w[t] = rotate_left(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);

    uint32_t a = state[0], b = state[1], c = state[2], d = state[3],
             e = state[4];
    for (unsigned t = 0; t < 80; t++) {
        const uint32_t mixed = t < 20   ? choose(b, c, d)
                               : t < 40 ? b ^ c ^ d
                               : t < 60 ? majority(b, c, d)
                                        : b ^ c ^ d;
        const uint32_t next =
            rotate_left(a, 5) + mixed + e + constants[t / 20] + w[t];
        e = d;
        d = c;
        c = rotate_left(b, 30);
        b = a;
        a = next;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
    explicit_bzero(w, sizeof w);
}

static void stir_md4(uint32_t *state, const uint32_t words[16])
{
    static const unsigned char order[3][16] = {
        { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 },
        { 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15 },
        { 0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15 }
    };
    static const unsigned char turns[3][4] = { { 3, 7, 11, 19 },
                                               { 3, 5, 9, 13 },
                                               { 3, 9, 11, 15 } };
    static const uint32_t constants[3] = { 0, 0x5a827999, 0x6ed9eba1 };

    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    for (unsigned t = 0; t < 48; t++) {
        const unsigned round = t / 16;
        const uint32_t mixed = round == 0   ? choose(b, c, d)
                               : round == 1 ? majority(b, c, d)
                                            : b ^ c ^ d;
        const uint32_t next = rotate_left(
            a + mixed + words[order[round][t % 16]] + constants[round],
            turns[round][t % 4]);
        a = d;
        d = c;
        c = b;
        b = next;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
}

/* One of 64 rounds, with the standard's letters: two words change. */
static inline void round_sha256(uint32_t a, uint32_t b, uint32_t c, uint32_t *d,
                                uint32_t e, uint32_t f, uint32_t g, uint32_t *h,
                                uint32_t x)
{
    const uint32_t first =
        *h + (rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25)) +
        choose(e, f, g) + x;
    *d += first;
    *h = first +
         (rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22)) +
         majority(a, b, c);
}

const uint32_t sha256_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2
};

void stir_sha256_portable(uint32_t *state, const uint32_t words[16])
{
    uint32_t w[64];
    memcpy(w, words, 16 * sizeof *w);
    for (unsigned t = 16; t < 64; t++) {
        const uint32_t x = w[t - 15], y = w[t - 2];
        w[t] = w[t - 16] + w[t - 7] +
               (rotate_right(x, 7) ^ rotate_right(x, 18) ^ x >> 3) +
               (rotate_right(y, 17) ^ rotate_right(y, 19) ^ y >> 10);
    }

    /* Eight rounds bring every word back to its place: nothing is moved. */
    uint32_t s[8];
    memcpy(s, state, sizeof s);
    for (unsigned t = 0; t < 64; t += 8) {
        uint32_t x[8];
        for (unsigned i = 0; i < 8; i++)
            x[i] = sha256_constants[t + i] + w[t + i];
        round_sha256(s[0], s[1], s[2], &s[3], s[4], s[5], s[6], &s[7], x[0]);
        round_sha256(s[7], s[0], s[1], &s[2], s[3], s[4], s[5], &s[6], x[1]);
        round_sha256(s[6], s[7], s[0], &s[1], s[2], s[3], s[4], &s[5], x[2]);
        round_sha256(s[5], s[6], s[7], &s[0], s[1], s[2], s[3], &s[4], x[3]);
        round_sha256(s[4], s[5], s[6], &s[7], s[0], s[1], s[2], &s[3], x[4]);
        round_sha256(s[3], s[4], s[5], &s[6], s[7], s[0], s[1], &s[2], x[5]);
        round_sha256(s[2], s[3], s[4], &s[5], s[6], s[7], s[0], &s[1], x[6]);
        round_sha256(s[1], s[2], s[3], &s[4], s[5], s[6], s[7], &s[0], x[7]);
    }
    for (unsigned i = 0; i < 8; i++)
        state[i] += s[i];
    explicit_bzero(w, sizeof w);
}

/* Asked once: two threads that ask at the same time get the same answer. */
static void stir_sha256(uint32_t *state, const uint32_t words[16])
{
    enum { UNKNOWN, NO, YES };
    static _Atomic int by_x86 = UNKNOWN;
    int by = atomic_load_explicit(&by_x86, memory_order_relaxed);
    if (by == UNKNOWN) {
        by = x86_has_sha() ? YES : NO;
        atomic_store_explicit(&by_x86, by, memory_order_relaxed);
    }
    if (by == YES)
        stir_sha256_x86(state, words);
    else
        stir_sha256_portable(state, words);
}

static const struct sum sha1 = { { 0x67452301, 0xefcdab89, 0x98badcfe,
                                   0x10325476, 0xc3d2e1f0 },
                                 5,
                                 true,
                                 stir_sha1 };
static const struct sum md4 = {
    { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476 }, 4, false, stir_md4
};
static const struct sum sha256 = { { 0x6a09e667, 0xbb67ae85, 0x3c6ef372,
                                     0xa54ff53a, 0x510e527f, 0x9b05688c,
                                     0x1f83d9ab, 0x5be0cd19 },
                                   8,
                                   true,
                                   stir_sha256 };

static void stir_block(const struct sum *s, uint32_t *state,
                       const unsigned char *block)
{
    uint32_t words[16];
    for (unsigned i = 0; i < 16; i++)
        words[i] = (uint32_t)(s->big ? get_be(block + 4 * i, 4)
                                     : get_le(block + 4 * i, 4));
    s->stir(state, words);
    explicit_bzero(words, sizeof words);
}

static void sum_of(const struct sum *s, const unsigned char *bytes, size_t len,
                   unsigned char *out)
{
    uint32_t state[8];
    memcpy(state, s->start, sizeof state);
    size_t at = 0;
    for (; len - at >= BLOCK; at += BLOCK)
        stir_block(s, state, bytes + at);

    /* The rest, a bit, zeros, and how many bits there were. */
    unsigned char end[2 * BLOCK] = { 0 };
    const size_t rest = len - at;
    if (rest > 0)
        memcpy(end, bytes + at, rest);
    end[rest] = 0x80;
    const size_t nend = rest < BLOCK - 8 ? BLOCK : 2 * BLOCK;
    const uint64_t nbits = (uint64_t)len * 8;
    put_le(end + nend - 8, s->big ? __builtin_bswap64(nbits) : nbits, 8);
    for (size_t i = 0; i < nend; i += BLOCK)
        stir_block(s, state, end + i);
    explicit_bzero(end, sizeof end);

    for (unsigned i = 0; i < s->nwords; i++)
        put_le(out + 4 * i, s->big ? __builtin_bswap32(state[i]) : state[i], 4);
}

void sum_sha1(const void *bytes, size_t len, unsigned char out[SHA1_BYTES])
{
    sum_of(&sha1, bytes, len, out);
}

void sum_md4(const void *bytes, size_t len, unsigned char out[MD4_BYTES])
{
    sum_of(&md4, bytes, len, out);
}

void sum_sha256(const void *bytes, size_t len, unsigned char out[SHA256_BYTES])
{
    sum_of(&sha256, bytes, len, out);
}
