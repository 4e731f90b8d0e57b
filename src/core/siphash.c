/*
 * siphash.c - SipHash: bytes to 64 bits that nobody can predict without the key
 */
#include <string.h>

#include "core/bits.h"
#include "core/hash.h"

#define ROTL(x, b) (((x) << (b)) | ((x) >> (64 - (b))))

/* One SipRound over four words: the whole of the design. */
#define SIP_ROUND(v)                  \
    do {                              \
        v[0] += v[1];                 \
        v[2] += v[3];                 \
        v[1] = ROTL(v[1], 13) ^ v[0]; \
        v[3] = ROTL(v[3], 16) ^ v[2]; \
        v[0] = ROTL(v[0], 32) + v[3]; \
        v[2] += v[1];                 \
        v[3] = ROTL(v[3], 21) ^ v[0]; \
        v[1] = ROTL(v[1], 17) ^ v[2]; \
        v[2] = ROTL(v[2], 32);        \
    } while (0)

/* c rounds per word, d at the end; sized: the length goes in front, as a word.
 * All three are literals where it is called. */
static inline __attribute__((always_inline)) uint64_t
siphash(const uint64_t key[2], const void *bytes, size_t len, int c, int d,
        bool sized)
{
    const unsigned char *p = bytes;
    uint64_t v[4] = {
        key[0] ^ UINT64_C(0x736f6d6570736575),
        key[1] ^ UINT64_C(0x646f72616e646f6d),
        key[0] ^ UINT64_C(0x6c7967656e657261),
        key[1] ^ UINT64_C(0x7465646279746573),
    };
    size_t left = len;
    if (sized) {
        v[3] ^= len;
        for (int i = 0; i < c; i++)
            SIP_ROUND(v);
        v[0] ^= len;
    }
    for (; left >= 8; left -= 8, p += 8) {
        const uint64_t word = bly_load64(p);
        v[3] ^= word;
        for (int i = 0; i < c; i++)
            SIP_ROUND(v);
        v[0] ^= word;
    }
    unsigned char tail[8] = { 0 };
    if (left)
        memcpy(tail, p, left);
    const uint64_t total = (uint64_t)len + (sized ? 8 : 0);
    const uint64_t last = bly_load64(tail) | total << 56;
    v[3] ^= last;
    for (int i = 0; i < c; i++)
        SIP_ROUND(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    for (int i = 0; i < d; i++)
        SIP_ROUND(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint64_t bly_siphash13(const uint64_t key[2], const void *bytes, size_t len)
{
    return siphash(key, bytes, len, 1, 3, false);
}

uint64_t bly_siphash24(const uint64_t key[2], const void *bytes, size_t len)
{
    return siphash(key, bytes, len, 2, 4, false);
}

uint64_t bly_siphash13_sized(const uint64_t key[2], const void *bytes,
                             size_t len)
{
    return siphash(key, bytes, len, 1, 3, true);
}

uint64_t bly_secret_check(const uint64_t key[2])
{
    static const char text[] = "bloomery secret check";
    const uint64_t check = bly_siphash24(key, text, sizeof text - 1);
    return check ? check : 1;
}

void bly_secret_words(const unsigned char *secret, uint64_t key[2])
{
    key[0] = bly_load64(secret);
    key[1] = bly_load64(secret + 8);
}
