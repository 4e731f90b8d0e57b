/*
 * rice_bits.h - gaps in Rice's code, one at a time
 *
 * Written into bytes and read from bytes that may be anyone's; rice.c has the
 * code and what it costs. In a header, since a gap is a few bits.
 */
#ifndef BLY_RICE_BITS_H
#define BLY_RICE_BITS_H

#include <string.h>

#include "core/bits.h"

/* At most eight bytes at p as a word, and zeros behind them. */
static inline uint64_t rice_load(const unsigned char *p, size_t n)
{
    unsigned char word[8] = { 0 };
    if (n >= sizeof word)
        return bly_load64(p);
    memcpy(word, p, n);
    return bly_load64(word);
}

/* Bits on their way into bytes: fewer than eight wait in word. */
typedef struct bit_sink {
    unsigned char *at;
    uint64_t word;
    unsigned n;
} bit_sink;

/* The n <= 32 low bits of value, which has no others. */
static inline void sink_bits(bit_sink *s, uint64_t value, unsigned n)
{
    s->word |= value << s->n;
    for (s->n += n; s->n >= 8; s->n -= 8) {
        *s->at++ = (unsigned char)s->word;
        s->word >>= 8;
    }
}

static inline void sink_gap(bit_sink *s, uint64_t gap, unsigned b)
{
    uint64_t zeros = gap >> b;
    for (; zeros >= 32; zeros -= 32)
        sink_bits(s, 0, 32);
    sink_bits(s, UINT64_C(1) << zeros, (unsigned)zeros + 1);
    const unsigned below = b < 32 ? b : 32;
    sink_bits(s, gap & ((UINT64_C(1) << below) - 1), below);
    if (b > 32)
        sink_bits(s, gap >> 32 & ((UINT64_C(1) << (b - 32)) - 1), b - 32);
}

/* Zeros up to a whole byte. */
static inline void sink_end(bit_sink *s)
{
    sink_bits(s, 0, -s->n & 7);
}

/* A stream that is being read. */
typedef struct bit_source {
    const unsigned char *bytes;
    size_t n;
    uint64_t at, end; /* in bits */
} bit_source;

/* At least 57 bits from here on; zeros behind the end. */
static inline uint64_t source_peek(const bit_source *s)
{
    const size_t byte = (size_t)(s->at / 8);
    return byte < s->n ? rice_load(s->bytes + byte, s->n - byte) >> s->at % 8
                       : 0;
}

/* Zeros up to a one, both of which it takes. False past `most` of them, or
 * where the stream ends. */
static inline bool source_zeros(bit_source *s, uint64_t most, uint64_t *out)
{
    *out = 0;
    while (s->at < s->end && *out <= most) {
        const uint64_t bits = source_peek(s);
        const unsigned zeros = bits ? (unsigned)__builtin_ctzll(bits) : 64;
        if (zeros < 57) {
            *out += zeros;
            s->at += zeros + 1;
            return *out <= most;
        }
        *out += 57;
        s->at += 57;
    }
    return false;
}

/* The next b bits. */
static inline bool source_bits(bit_source *s, unsigned b, uint64_t *out)
{
    const unsigned below = b < 32 ? b : 32;
    if (s->end - s->at < b)
        return false;
    *out = source_peek(s) & ((UINT64_C(1) << below) - 1);
    s->at += below;
    if (b > 32) {
        *out |= (source_peek(s) & ((UINT64_C(1) << (b - 32)) - 1)) << 32;
        s->at += b - 32;
    }
    return true;
}

/* The next gap, `most` at most. False if the stream has none such. */
static inline bool source_gap(bit_source *s, uint64_t most, unsigned b,
                              uint64_t *gap)
{
    uint64_t zeros, low;
    /* The first keeps zeros << b at or below `most`, the second adds what is
     * less than 2^b: nothing overflows. */
    if (!source_zeros(s, most >> b, &zeros) || !source_bits(s, b, &low))
        return false;
    *gap = zeros << b | low;
    return *gap <= most;
}

/* Are all bits up to a whole byte zeros? */
static inline bool source_ends(const bit_source *s)
{
    return (source_peek(s) & ((UINT64_C(1) << (-s->at & 7)) - 1)) == 0;
}

#endif
