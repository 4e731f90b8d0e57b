/*
 * forward.h - what a router does with a packet: marks, and where it ends
 *
 * Packets are of IPv6 and carry their marks in a hop-by-hop option of the type
 * that is kept for experiments (RFC 4727) and that others skip:
 *
 *     u8 0x3e   u8 length of the rest   u8 flags   u8 bytes of loop marks
 *     loop marks, way marks                        see marks.h
 *
 * Bit 0 of the flags: the interface before was suspicious. The first router on
 * the way puts the option into a packet that has none, in a header of its own
 * or behind the options that are there.
 *
 * There are no sockets here: bytes in, bytes out, and what became of them, so
 * that tests, fuzzers and the program run the same code.
 */
#ifndef BLY_NET_FORWARD_H
#define BLY_NET_FORWARD_H

#include "apps/net/marks.h"

#define FORWARD_OPTION 0x3e
#define FORWARD_MORE (8 + 2 * MARK_BYTES) /* bytes that a packet may gain */
#define FORWARD_HEAD 40                   /* of IPv6 */

/* An interface. */
struct face {
    struct mark loop, way;
    unsigned mtu;
};

enum fate {
    FATE_SENT,
    FATE_LOOP,     /* it was here before, as its marks say */
    FATE_EXPIRED,  /* its hop limit is used up */
    FATE_TOO_BIG,  /* for the interface, with the option */
    FATE_BAD,      /* no packet of IPv6, or its options are damaged */
    FATE_NOT_OURS, /* of this link only */
    FATES
};
extern const char *const fate_names[FATES];

/* Forward n bytes by an interface: out has room for n + FORWARD_MORE, *nout is
 * how many it gets. strikes: suspicions in a row that end a packet, 1 or 2. */
enum fate forward(const struct face *by, unsigned strikes,
                  const unsigned char *in, size_t n, unsigned char *out,
                  size_t *nout);

/* The marks that a packet has; false: none, or no packet. */
bool forward_marks(const struct face *like, const unsigned char *in, size_t n,
                   struct marked *loop, struct marked *way);

/* The message of ICMPv6 for one that expired (type 3) or is too big (type 2,
 * with the MTU that would do), from this address to its sender; 0: none is
 * sent, since it is one itself or its sender is nobody. out has 1280 bytes. */
size_t forward_complain(enum fate fate, unsigned mtu,
                        const unsigned char from[16], const unsigned char *in,
                        size_t n, unsigned char *out);

#endif
