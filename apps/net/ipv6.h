/*
 * ipv6.h - the parts of a packet of IPv6, from bytes that anyone may have sent
 */
#ifndef BLY_NET_IPV6_H
#define BLY_NET_IPV6_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IPV6_HEAD 40 /* bytes of the header */
#define IPV6_NEXT 6  /* where it has what: the next header, */
#define IPV6_HOPS 7  /* the hop limit, */
#define IPV6_FROM 8  /* and the addresses */
#define IPV6_TO 24
#define IPV6_HOP_BY_HOP 0 /* numbers of headers */
#define IPV6_ICMP 58
#define IPV6_OPTIONS 2048 /* the most bytes of a hop-by-hop header */

/* Bytes of the packet as its header says; 0: it is not one, or cut. */
size_t ipv6_bytes(const unsigned char *in, size_t n);

/* Bytes of the hop-by-hop header, 0 if there is none. False: it is cut. */
bool ipv6_options(const unsigned char *in, size_t n, size_t *out);

/* The checksum of a body of this protocol, nbody bytes which end the packet
 * `in`; over a body whose own sum is right it is 0. */
uint16_t ipv6_sum(const unsigned char *in, uint8_t protocol,
                  const unsigned char *body, size_t nbody);

/* Write the checksum of UDP, TCP or ICMPv6 that a sender has left to its
 * network card. `all` is that of ipv6_bytes(). False: it is not one of these.
 */
bool ipv6_finish(unsigned char *in, size_t all);

void ipv6_put16(unsigned char *at, size_t x);

/* An address of one link, or of nobody: not to be forwarded. */
bool ipv6_of_link(const unsigned char address[16]);

#endif
