/*
 * xdp_layout.h - what the command and its program in the kernel share
 *
 * The program asks seven maps. In its code a map is a number, XDP_MAP + i,
 * which is replaced by the map's descriptor before the kernel sees it.
 *
 * A list has two parts, which are asked for each length that occurs in them:
 *
 *   base    what is listed as long as the program is there: the blocks of a
 *           filter, which nobody writes to
 *   live    what commands add and release while packets pass, and what has a
 *           time: lines of fingerprints, each with the tick at which it ends
 *
 * A line is 64 bytes, so that a question is one cache line here too:
 *
 *     print 0 ... print 6, flags, end 0 ... end 6, nothing
 *
 * A key belongs into line `hash & (nlines - 1)`, or if that is full, which its
 * flag says, into the one whose number differs by XDP_OTHER_LINE(print). A
 * print has 31 bits of the hash and is odd; 0 is free. Two keys of one line
 * have the same print once in 2^31 cases, so with 14 places another's packet is
 * stopped once in 150 million. All of it are words of 32 bits, which change at
 * once: the command writes them through mmap() while the program reads.
 *
 * A tick is 2^shift of the kernel's jiffies, 0.1 to 0.2 s, since reading those
 * is one load, while asking for the time takes longer than all else that the
 * program does (measured: 16 to 30 ns). Ticks wrap after some ten years.
 */
#ifndef BLY_TRAFFIC_XDP_LAYOUT_H
#define BLY_TRAFFIC_XDP_LAYOUT_H

#include <bloomery/inline.h>

#define XDP_MAP 0x626c796d61700000 /* "blymap" */
enum {
    XDP_LIST,     /* array of one, and the program has its address: struct
                     xdp_list. It is frozen, so that the kernel knows how often
                     a loop runs */
    XDP_BLOCKS,   /* array: the blocks of the filter, 64 bytes each */
    XDP_ALLOW4,   /* tries of allowed prefixes: struct xdp_allowed, of which */
    XDP_ALLOW6,   /* IPv4 has 8 bytes and IPv6 20; the value is nothing */
    XDP_LIVE,     /* array: struct xdp_line */
    XDP_HITS,     /* array: struct xdp_hits of place 8 * line + i */
    XDP_COUNTERS, /* array per processor: struct xdp_counter */
    XDP_NMAPS
};

/* Which parts have entries of a length. */
enum { XDP_IN_BASE = 1, XDP_IN_LIVE = 2 };

/* What it takes to hash a prefix. */
struct xdp_hash {
    uint64_t turned;   /* IPv4: bly_int_turned() */
    uint64_t mixed[4]; /* IPv6: XXH3's secret and the seed */
};

struct xdp_list {
    uint64_t nblocks;
    struct xdp_hash base, live;
    uint32_t nlines;    /* a power of two */
    uint32_t shift;     /* of ticks */
    uint32_t base_ends; /* the tick after which the base counts no more; 0: it
                           stays */
    uint32_t only;      /* drop what is not listed */
    uint32_t nfour, nsix;
    uint32_t allowed[2]; /* prefixes of IPv4 and of IPv6: none is not asked */
    uint8_t four[40], six[136]; /* lengths, longest first */
    uint8_t four_in[40], six_in[136];
};

struct xdp_allowed {
    uint32_t bits;
    uint8_t at[16];
};

struct xdp_counter {
    uint64_t packets, bytes;
};

#define XDP_PLACES 7
struct xdp_line {
    uint32_t print[XDP_PLACES], more; /* more: some key is in its other line */
    uint32_t ends[XDP_PLACES], unused;
};

/* Ends that are not ticks. */
enum {
    XDP_NEVER = 0,    /* listed until it is released */
    XDP_RELEASED = 1, /* not listed, whatever the base says */
    XDP_FIRST_TICK = 2
};

#define XDP_PRINT(hash) ((uint32_t)((hash) >> 32) | 1)
/* Odd, so that it is another one; from the print alone, so that both lines know
 * the other. */
#define XDP_OTHER_LINE(print) ((print) >> 7 | 1)

/* What one place has stopped, or let pass with --only; both wrap. */
struct xdp_hits {
    uint32_t packets, bytes;
};

/* Counters by number. */
enum {
    XDP_PASSED,
    XDP_ALLOWED,
    XDP_OTHER,     /* no IP */
    XDP_UNLISTED,  /* dropped, with `only` */
    XDP_NO_ROOM,   /* additions that found none, counted by the command */
    XDP_FOUR = 16, /* and the length */
    XDP_SIX = 64,  /* likewise */
    XDP_NCOUNTERS = 64 + 129
};

/* ------------------------------------------------------------------ hashing */

static inline __attribute__((always_inline)) uint64_t
xdp_hash_four(const struct xdp_hash *h, uint32_t address, unsigned bits)
{
    return bly_int_hash_turned((uint64_t)bits << 32 | address, h->turned);
}

static inline __attribute__((always_inline)) uint64_t xdp_folded(uint64_t a,
                                                                 uint64_t b)
{
    return a * b ^ bly_mulhi(a, b);
}

/* XXH3 of seventeen bytes: the address and the number of bits. first and last
 * are the halves of the address, least significant byte first. */
static inline __attribute__((always_inline)) uint64_t
xdp_hash_six(const struct xdp_hash *h, uint64_t first, uint64_t last,
             unsigned bits)
{
    const uint64_t later = first >> 8 | last << 56;
    const uint64_t end = last >> 8 | (uint64_t)bits << 56;
    uint64_t x = UINT64_C(17) * UINT64_C(0x9e3779b185ebca87);
    x += xdp_folded(first ^ h->mixed[0], last ^ h->mixed[1]);
    x += xdp_folded(later ^ h->mixed[2], end ^ h->mixed[3]);
    x ^= x >> 37;
    x *= UINT64_C(0x165667919e3779f9);
    return x ^ x >> 32;
}

#endif
