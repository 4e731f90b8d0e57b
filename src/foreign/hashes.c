/*
 * hashes.c - the hash functions that foreign formats are bound to
 *
 * Written from their definitions: words are little-endian wherever bytes are
 * read, so that every machine gets the same value.
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <string.h>

#include "foreign/format.h"
#include "foreign/hashes.h"

static uint64_t rotate64(uint64_t x, unsigned by)
{
    return x << by | x >> (64 - by);
}

static uint32_t rotate32(uint32_t x, unsigned by)
{
    return x << by | x >> (32 - by);
}

/* ------------------------------------------------------------- murmur 3 */

static uint64_t murmur3_finish(uint64_t x)
{
    x = (x ^ x >> 33) * UINT64_C(0xff51afd7ed558ccd);
    x = (x ^ x >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ x >> 33;
}

/* n bytes of a tail as a word, each shifted to its place and all of them
 * combined: a negative one flips everything above it. */
static uint64_t tail_word(const unsigned char *p, size_t n, bool is_signed)
{
    uint64_t word = 0;
    for (size_t i = 0; i < n; i++) {
        const uint64_t byte =
            is_signed ? (uint64_t)(int64_t)(int8_t)p[i] : (uint64_t)p[i];
        word ^= byte << 8 * i;
    }
    return word;
}

#define MURMUR3_C1 UINT64_C(0x87c37b91114253d5)
#define MURMUR3_C2 UINT64_C(0x4cf5ad432745937f)

/* All whole blocks of 16 bytes into h. */
static void murmur3_blocks(const unsigned char *p, size_t len, uint64_t h[2])
{
    uint64_t a = h[0], b = h[1];
    for (; len >= 16; len -= 16, p += 16) {
        a ^= rotate64(bly_load64(p) * MURMUR3_C1, 31) * MURMUR3_C2;
        a = (rotate64(a, 27) + b) * 5 + 0x52dce729;
        b ^= rotate64(bly_load64(p + 8) * MURMUR3_C2, 33) * MURMUR3_C1;
        b = (rotate64(b, 31) + a) * 5 + 0x38495ab5;
    }
    h[0] = a;
    h[1] = b;
}

/* The last n bytes, fewer than a block, of len in all. */
static void murmur3_end(const uint64_t h[2], const unsigned char *p, size_t n,
                        uint64_t len, bool is_signed, uint64_t out[2])
{
    uint64_t a = h[0], b = h[1];
    if (n > 8)
        b ^= rotate64(tail_word(p + 8, n - 8, is_signed) * MURMUR3_C2, 33) *
             MURMUR3_C1;
    if (n > 0)
        a ^= rotate64(tail_word(p, n < 8 ? n : 8, is_signed) * MURMUR3_C1, 31) *
             MURMUR3_C2;
    a ^= len;
    b ^= len;
    a += b;
    b += a;
    a = murmur3_finish(a);
    b = murmur3_finish(b);
    out[0] = a + b;
    out[1] = out[0] + b;
}

void bly_murmur3_128(const void *bytes, size_t len, uint32_t seed,
                     bool signed_tail, uint64_t out[2])
{
    const unsigned char *const p = bytes;
    uint64_t h[2] = { seed, seed };
    murmur3_blocks(p, len, h);
    murmur3_end(h, p + len / 16 * 16, len % 16, len, signed_tail, out);
}

void bly_murmur3_256(const void *bytes, size_t len, uint64_t out[4])
{
    const unsigned char *const p = bytes;
    const size_t n = len % 16;
    unsigned char tail[16];
    uint64_t h[2] = { 0, 0 };
    murmur3_blocks(p, len, h);
    if (n)
        memcpy(tail, p + (len - n), n);
    tail[n] = 1;
    murmur3_end(h, tail, n, len, false, out);
    murmur3_blocks(tail, n + 1, h);
    murmur3_end(h, tail, (n + 1) % 16, (uint64_t)len + 1, false, out + 2);
}

uint32_t bly_murmur3_32(const void *bytes, size_t len, uint32_t seed,
                        bool signed_bytes)
{
    const uint32_t c1 = 0xcc9e2d51, c2 = 0x1b873593;
    const unsigned char *p = bytes;
    uint32_t h = seed;
    size_t left = len;
    for (; left >= 4; left -= 4, p += 4) {
        /* Sign-extended bytes are or-ed together. */
        uint32_t word = bly_load32(p);
        if (signed_bytes)
            for (unsigned i = 0; i < 4; i++)
                word |= (uint32_t)(int32_t)(int8_t)p[i] << 8 * i;
        h = rotate32(h ^ rotate32(word * c1, 15) * c2, 13) * 5 + 0xe6546b64;
    }
    if (left > 0)
        h ^= rotate32((uint32_t)tail_word(p, left, signed_bytes) * c1, 15) * c2;
    h ^= (uint32_t)len;
    h = (h ^ h >> 16) * 0x85ebca6b;
    h = (h ^ h >> 13) * 0xc2b2ae35;
    return h ^ h >> 16;
}

/* ------------------------------------------------------------- murmur 2 */

uint64_t bly_murmur64a(const void *bytes, size_t len, uint64_t seed)
{
    const uint64_t m = UINT64_C(0xc6a4a7935bd1e995);
    const unsigned char *p = bytes;
    uint64_t h = seed ^ (len * m);
    size_t left = len;
    for (; left >= 8; left -= 8, p += 8) {
        uint64_t word = bly_load64(p) * m;
        word = (word ^ word >> 47) * m;
        h = (h ^ word) * m;
    }
    if (left > 0 && len >= 8) /* the last 8 bytes, of which these are the end */
        h = (h ^ bly_load64(p + left - 8) >> (64 - 8 * left)) * m;
    else if (left > 0)
        h = (h ^ tail_word(p, left, false)) * m;
    h = (h ^ h >> 47) * m;
    return h ^ h >> 47;
}

uint32_t bly_murmur2(const void *bytes, size_t len, uint32_t seed)
{
    const uint32_t m = 0x5bd1e995;
    const unsigned char *p = bytes;
    uint32_t h = seed ^ (uint32_t)len;
    size_t left = len;
    for (; left >= 4; left -= 4, p += 4) {
        uint32_t word = bly_load32(p) * m;
        word = (word ^ word >> 24) * m;
        h = h * m ^ word;
    }
    if (left > 0)
        h = (h ^ bly_tail32(p, left, len)) * m;
    h = (h ^ h >> 13) * m;
    return h ^ h >> 15;
}

/* ------------------------------------------------------ LevelDB, CRC-32C */

uint32_t bly_leveldb_hash(const void *bytes, size_t len, bool signed_tail)
{
    const uint32_t m = 0xc6a4a793;
    const unsigned char *p = bytes;
    uint32_t h = 0xbc9f1d34 ^ ((uint32_t)len * m);
    size_t left = len;
    for (; left >= 4; left -= 4, p += 4) {
        h = (h + bly_load32(p)) * m;
        h ^= h >> 16;
    }
    if (left > 0) {
        for (size_t i = 0; i < left; i++)
            h += (signed_tail ? (uint32_t)(int32_t)(int8_t)p[i] : p[i])
                 << 8 * i;
        h *= m;
        h ^= h >> 24;
    }
    return h;
}

uint32_t bly_crc32c(uint32_t sum, const void *bytes, size_t len)
{
    /* The remainders of four bits: x / 2 or x / 2 ^ 0x82f63b78, four times. */
    static const uint32_t fours[16] = {
        0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
        0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
        0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75
    };
    const unsigned char *const p = bytes;
    sum = ~sum;
    for (size_t i = 0; i < len; i++) {
        sum = fours[(sum ^ p[i]) & 15] ^ sum >> 4;
        sum = fours[(sum ^ p[i] >> 4) & 15] ^ sum >> 4;
    }
    return ~sum;
}

/* --------------------------------------------------------- FNV-1, XXH64 */

uint64_t bly_fnv1(const void *bytes, size_t len)
{
    const unsigned char *const p = bytes;
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < len; i++)
        h = h * UINT64_C(0x100000001b3) ^ p[i];
    return h;
}

uint64_t bly_xxh64(const void *bytes, size_t len, uint64_t seed)
{
    return XXH64(bytes, len, seed);
}

/* ------------------------------------------------------------------ MD5 */

/* RFC 1321: floor(2^32 |sin(i + 1)|), and the rotations, four a round. */
static const uint32_t md5_sines[64] = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a,
    0xa8304613, 0xfd469501, 0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be,
    0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821, 0xf61e2562, 0xc040b340,
    0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8,
    0x676f02d9, 0x8d2a4c8a, 0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c,
    0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70, 0x289b7ec6, 0xeaa127fa,
    0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92,
    0xffeff47d, 0x85845dd1, 0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1,
    0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391
};
static const unsigned char md5_turns[4][4] = {
    { 7, 12, 17, 22 }, { 5, 9, 14, 20 }, { 4, 11, 16, 23 }, { 6, 10, 15, 21 }
};

static void md5_block(uint32_t state[4], const unsigned char *block)
{
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    for (unsigned i = 0; i < 64; i++) {
        uint32_t f;
        unsigned word;
        switch (i / 16) {
        case 0:
            f = (b & c) | (~b & d);
            word = i;
            break;
        case 1:
            f = (d & b) | (~d & c);
            word = (5 * i + 1) % 16;
            break;
        case 2:
            f = b ^ c ^ d;
            word = (3 * i + 5) % 16;
            break;
        default:
            f = c ^ (b | ~d);
            word = 7 * i % 16;
        }
        f += a + md5_sines[i] + bly_load32(block + 4 * word);
        a = d;
        d = c;
        c = b;
        b += rotate32(f, md5_turns[i / 16][i % 4]);
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
}

void bly_md5_start(bly_md5 *m)
{
    *m = (bly_md5){ .state = { 0x67452301, 0xefcdab89, 0x98badcfe,
                               0x10325476 } };
}

void bly_md5_add(bly_md5 *m, const void *bytes, size_t len)
{
    const unsigned char *p = bytes;
    while (len > 0) {
        const size_t held = m->nbytes % 64;
        const size_t n = len < 64 - held ? len : 64 - held;
        memcpy(m->block + held, p, n);
        m->nbytes += n;
        p += n;
        len -= n;
        if (m->nbytes % 64 == 0)
            md5_block(m->state, m->block);
    }
}

void bly_md5_end(bly_md5 *m, unsigned char out[16])
{
    unsigned char end[72] = { 0x80 };
    const uint64_t nbits = m->nbytes * 8;
    const size_t pad = 1 + (119 - m->nbytes % 64) % 64;
    bly_store64(end + pad, nbits);
    bly_md5_add(m, end, pad + 8);
    for (int i = 0; i < 4; i++)
        bly_store32(out + 4 * i, m->state[i]);
}
