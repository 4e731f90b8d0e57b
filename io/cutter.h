/*
 * cutter.h - where do the keys in a block end?
 *
 * Sixty-four bytes at a time: compared with the separator they give 64 bits,
 * and the set ones are the ends of keys. That costs a line of 20 bytes 2 ns
 * where a memchr() for each costs 5.
 *
 *     window   a p p l e \n p e a r \n \n p l u m ...
 *     ends     . . . . .  1 . . . .  1  1 . . . .
 */
#ifndef BLY_IO_CUTTER_H
#define BLY_IO_CUTTER_H

#include <bloomery.h>

#include "base/byte_order.h"

#if defined(__SSE2__) && !defined(CUTTER_PORTABLE)
#include <emmintrin.h>
#endif

#define CUTTER_WINDOW 64

struct cutter {
    const char *from;   /* where the next key starts */
    const char *window; /* what ends is about */
    const char *end;    /* of the block */
    uint64_t ends;      /* separators in the window that are not used up */
    char separator;
};

#if defined(__SSE2__) && !defined(CUTTER_PORTABLE)
static inline uint64_t cutter_sixteen(const char *at, __m128i wanted)
{
    const __m128i text = _mm_loadu_si128((const __m128i *)(const void *)at);
    return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(text, wanted));
}
#endif

/* A bit for each of 64 bytes that is the separator. */
static inline uint64_t cutter_ends(const char *at, char separator)
{
#if defined(__SSE2__) && !defined(CUTTER_PORTABLE)
    /* Written out: compilers leave a loop of four as it is. */
    const __m128i wanted = _mm_set1_epi8(separator);
    return cutter_sixteen(at, wanted) | cutter_sixteen(at + 16, wanted) << 16 |
           cutter_sixteen(at + 32, wanted) << 32 |
           cutter_sixteen(at + 48, wanted) << 48;
#else
    uint64_t ends = 0;
    const uint64_t low = UINT64_C(0x7f7f7f7f7f7f7f7f);
    const uint64_t wanted =
        UINT64_C(0x0101010101010101) * (unsigned char)separator;
    for (int i = 0; i < 8; i++) {
        uint64_t x = get_le((const unsigned char *)at + 8 * i, 8) ^ wanted;
        /* 0x80 in each byte that is zero now, and nothing elsewhere. */
        x = ~(((x & low) + low) | x | low);
        /* Bit 8i + 7 to bit 56 + i: no two products meet on the way. */
        ends |= ((x >> 7) * UINT64_C(0x0102040810204080) >> 56) << 8 * i;
    }
    return ends;
#endif
}

/* Look at the window at c->window, which may reach past the end. */
static inline void cutter_look(struct cutter *c)
{
    const size_t left = (size_t)(c->end - c->window);
    c->ends = cutter_ends(c->window, c->separator);
    if (left < CUTTER_WINDOW)
        c->ends &= (UINT64_C(1) << left) - 1;
}

/* Cut n bytes, behind which CUTTER_WINDOW more may be read. The last byte is a
 * separator. */
static inline struct cutter cutter_start(const char *at, size_t n,
                                         char separator)
{
    struct cutter c = { at, at, at + n, 0, separator };
    cutter_look(&c);
    return c;
}

/* The next keys, max at most; 0 at the end. They stand in the block, each with
 * its separator behind it. */
static inline size_t cutter_next(struct cutter *cutter, bly_bytes *keys,
                                 size_t max)
{
    struct cutter c = *cutter; /* in registers */
    size_t n = 0;
    for (;;) {
        for (; c.ends && n < max; c.ends &= c.ends - 1) {
            const char *const stop = c.window + __builtin_ctzll(c.ends);
            keys[n++] = (bly_bytes){ c.from, (size_t)(stop - c.from) };
            c.from = stop + 1;
        }
        if (n == max || c.end - c.window <= CUTTER_WINDOW)
            break;
        c.window += CUTTER_WINDOW;
        cutter_look(&c);
    }
    *cutter = c;
    return n;
}

#endif
