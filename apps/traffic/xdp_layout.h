/*
 * xdp_layout.h - what the command and its program in the kernel share
 *
 * The program asks five maps. In its code a map is a number, XDP_MAP + i, which
 * is replaced by the map's descriptor before the kernel sees it.
 */
#ifndef BLY_TRAFFIC_XDP_LAYOUT_H
#define BLY_TRAFFIC_XDP_LAYOUT_H

#include <stdint.h>

#define XDP_MAP 0x626c796d61700000 /* "blymap" */
enum {
    XDP_LIST,     /* array of one, and the program has its address: struct
                     xdp_list. It is frozen, so that the kernel knows how often
                     a loop runs */
    XDP_BLOCKS,   /* array: the blocks of the filter, 64 bytes each */
    XDP_ALLOW4,   /* tries of allowed prefixes: struct xdp_allowed, of which */
    XDP_ALLOW6,   /* IPv4 has 8 bytes and IPv6 20; the value is nothing */
    XDP_COUNTERS, /* array per processor: struct xdp_counter */
    XDP_NMAPS
};

struct xdp_list {
    uint64_t nblocks;
    uint64_t turned;   /* of the hash of IPv4: bly_int_turned() */
    uint64_t mixed[4]; /* of the hash of IPv6: XXH3's secret and the seed */
    uint32_t nfour, nsix;
    uint32_t allowed[2]; /* prefixes of IPv4 and of IPv6: none is not asked */
    uint8_t four[40], six[136]; /* lengths, longest first */
};

struct xdp_allowed {
    uint32_t bits;
    uint8_t at[16];
};

struct xdp_counter {
    uint64_t packets, bytes;
};

/* Counters by number. */
enum {
    XDP_PASSED,
    XDP_ALLOWED,
    XDP_OTHER,     /* no IP */
    XDP_FOUR = 16, /* and the length */
    XDP_SIX = 64,  /* likewise */
    XDP_NCOUNTERS = 64 + 129
};

#endif
