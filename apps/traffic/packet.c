/*
 * packet.c - from the bytes of a link to addresses and ports
 *
 * A window goes over the captured bytes: each layer takes its header from the
 * front, and cuts off at the end what is padding. Nothing is read that the
 * window does not have.
 */
#include "apps/traffic/packet.h"

#include <string.h>

#include "base/byte_order.h"

/* What libpcap calls the links, by number: its header is not needed here. */
enum {
    LINK_NULL = 0,
    LINK_ETHERNET = 1,
    LINK_RAW = 12,
    LINK_RAW_BSD = 14,
    LINK_RAW_FILE = 101,
    LINK_LOOP = 108,
    LINK_COOKED = 113,
    LINK_IP4 = 228,
    LINK_IP6 = 229,
    LINK_COOKED2 = 276
};

enum {
    ETHER_IP4 = 0x0800,
    ETHER_IP6 = 0x86dd,
    ETHER_BRIDGED = 0x6558,
    ETHER_VLAN = 0x8100,
    ETHER_QINQ = 0x88a8,
    ETHER_QINQ_OLD = 0x9100
};

#define VXLAN_PORT 4789
#define DEEPEST 4 /* tunnels inside each other */

struct window {
    const unsigned char *at;
    size_t n;
    bool inner;
    unsigned depth;
};

static unsigned be16(const unsigned char *at)
{
    return (unsigned)get_be(at, 2);
}

static void drop(struct window *w, size_t n)
{
    w->at += n;
    w->n -= n;
}

static enum packet_state ip_parse(struct window *w, struct packet *p);
static enum packet_state ethernet_parse(struct window *w, struct packet *p);

/* --------------------------------------------------------------- transport */

/* What a tunnel carries; PACKET_OTHER leaves the outer packet as it is. */
static enum packet_state gre_parse(struct window w, struct packet *p)
{
    if (w.n < 4)
        return PACKET_CUT;
    const unsigned flags = be16(w.at), type = be16(w.at + 2);
    const size_t header = 4 + (flags & 0x8000 ? 4u : 0) +
                          (flags & 0x2000 ? 4u : 0) + (flags & 0x1000 ? 4u : 0);
    if ((flags & 7) != 0 || (flags & 0x4000))
        return PACKET_OTHER; /* another version, or source routes */
    if (w.n < header)
        return PACKET_CUT;
    drop(&w, header);
    if (type == ETHER_BRIDGED)
        return ethernet_parse(&w, p);
    return type == ETHER_IP4 || type == ETHER_IP6 ? ip_parse(&w, p)
                                                  : PACKET_OTHER;
}

static enum packet_state vxlan_parse(struct window w, struct packet *p)
{
    if (w.n < 8)
        return PACKET_CUT;
    if (!(w.at[0] & 0x08))
        return PACKET_OTHER; /* no network is named: it is something else */
    drop(&w, 8);
    return ethernet_parse(&w, p);
}

static enum packet_state tunnel_parse(const struct window *w,
                                      const struct packet *p,
                                      struct packet *inside)
{
    struct window inner = *w;
    *inside = (struct packet){ 0 };
    switch (p->proto) {
    case IP_IP4:
    case IP_IP6:
        return ip_parse(&inner, inside);
    case IP_GRE:
        return gre_parse(inner, inside);
    case IP_UDP:
        if (p->ports == PORTS_HERE && p->target_port == VXLAN_PORT)
            return vxlan_parse(inner, inside);
        return PACKET_OTHER;
    default:
        return PACKET_OTHER;
    }
}

static size_t transport_header(const struct window *w, uint8_t proto)
{
    switch (proto) {
    case IP_TCP:
        return w->n > 12 ? (size_t)(w->at[12] >> 4) * 4 : 20;
    case IP_SCTP:
        return 12;
    default: /* UDP, and ICMP of both kinds */
        return 8;
    }
}

static void transport_parse(struct window *w, struct packet *p)
{
    const bool has_ports =
        p->proto == IP_TCP || p->proto == IP_UDP || p->proto == IP_SCTP;
    p->transport = w->at;
    p->ntransport = w->n;
    if (!p->fragment && has_ports) {
        p->ports = w->n < 4 ? PORTS_CUT : PORTS_HERE;
        if (w->n >= 4) {
            p->source_port = (uint16_t)be16(w->at);
            p->target_port = (uint16_t)be16(w->at + 2);
        }
    }
    if (!p->fragment &&
        (has_ports || p->proto == IP_ICMP || p->proto == IP_ICMP6)) {
        const size_t header = transport_header(w, p->proto);
        drop(w, header < w->n ? header : w->n);
    }
    p->payload = w->at;
    p->npayload = w->n;
    struct packet inside;
    if (w->inner && !p->fragment && w->depth < DEEPEST &&
        tunnel_parse(w, p, &inside) == PACKET_IP)
        *p = inside;
}

/* ---------------------------------------------------------------------- IP */

static enum packet_state ip4_parse(struct window *w, struct packet *p)
{
    if (w->n < 20)
        return PACKET_CUT;
    const size_t header = (size_t)(w->at[0] & 0xf) * 4;
    size_t all = be16(w->at + 2);
    if (all == 0) /* left to the network card, which cuts it */
        all = w->n;
    if (header < 20 || all < header)
        return PACKET_BAD;
    p->proto = w->at[9];
    p->fragment = (be16(w->at + 6) & 0x1fff) != 0;
    memcpy(p->source, w->at + 12, 4);
    memcpy(p->target, w->at + 16, 4);
    if (all < w->n)
        w->n = all;
    drop(w, header < w->n ? header : w->n);
    transport_parse(w, p);
    return PACKET_IP;
}

static bool is_extension(uint8_t next)
{
    return next == 0 || next == 43 || next == 44 || next == 51 || next == 60 ||
           next == 135 || next == 139 || next == 140;
}

static enum packet_state ip6_parse(struct window *w, struct packet *p)
{
    if (w->n < 40)
        return PACKET_CUT;
    const size_t all = be16(w->at + 4);
    uint8_t next = w->at[6];
    memcpy(p->source, w->at + 8, 16);
    memcpy(p->target, w->at + 24, 16);
    drop(w, 40);
    if (all && all < w->n) /* 0: a jumbogram, or left to the card */
        w->n = all;
    while (is_extension(next) && !p->fragment) {
        if (w->n < 8) { /* who knows what is behind it? */
            p->proto = next;
            p->ports = PORTS_CUT;
            p->payload = w->at;
            return PACKET_IP;
        }
        const size_t header = next == 44   ? 8
                              : next == 51 ? ((size_t)w->at[1] + 2) * 4
                                           : ((size_t)w->at[1] + 1) * 8;
        if (next == 44)
            p->fragment = (be16(w->at + 2) & 0xfff8) != 0;
        next = w->at[0];
        drop(w, header < w->n ? header : w->n);
    }
    p->proto = next;
    transport_parse(w, p);
    return PACKET_IP;
}

static enum packet_state ip_parse(struct window *w, struct packet *p)
{
    if (w->n < 1)
        return PACKET_CUT;
    p->version = w->at[0] >> 4;
    p->ip = w->at;
    p->nip = w->n;
    w->depth++;
    return p->version == 4   ? ip4_parse(w, p)
           : p->version == 6 ? ip6_parse(w, p)
                             : PACKET_BAD;
}

/* ------------------------------------------------------------------- links */

static enum packet_state typed_parse(unsigned type, struct window *w,
                                     struct packet *p)
{
    while (type == ETHER_VLAN || type == ETHER_QINQ || type == ETHER_QINQ_OLD) {
        if (w->n < 4)
            return PACKET_CUT;
        type = be16(w->at + 2);
        drop(w, 4);
    }
    return type == ETHER_IP4 || type == ETHER_IP6 ? ip_parse(w, p)
                                                  : PACKET_OTHER;
}

static enum packet_state ethernet_parse(struct window *w, struct packet *p)
{
    if (w->n < 14)
        return PACKET_CUT;
    const unsigned type = be16(w->at + 12);
    drop(w, 14);
    return typed_parse(type, w, p);
}

/* The family of addresses in front of the packet, in the order of bytes of
 * whoever captured it; systems count IPv6 differently. */
static enum packet_state loopback_parse(struct window *w, struct packet *p)
{
    if (w->n < 4)
        return PACKET_CUT;
    const uint32_t big = (uint32_t)get_be(w->at, 4);
    const uint32_t family = big > 0xffff ? __builtin_bswap32(big) : big;
    drop(w, 4);
    const bool ip = family == 2 || family == 10 || family == 24 ||
                    family == 28 || family == 30;
    return ip ? ip_parse(w, p) : PACKET_OTHER;
}

static enum packet_state cooked_parse(struct window *w, size_t type_at,
                                      size_t header, struct packet *p)
{
    if (w->n < header)
        return PACKET_CUT;
    const unsigned type = be16(w->at + type_at);
    drop(w, header);
    return typed_parse(type, w, p);
}

bool link_known(int link)
{
    switch (link) {
    case LINK_NULL:
    case LINK_ETHERNET:
    case LINK_RAW:
    case LINK_RAW_BSD:
    case LINK_RAW_FILE:
    case LINK_LOOP:
    case LINK_COOKED:
    case LINK_IP4:
    case LINK_IP6:
    case LINK_COOKED2:
        return true;
    default:
        return false;
    }
}

enum packet_state packet_parse(int link, const unsigned char *at, size_t n,
                               bool inner, struct packet *p)
{
    struct window w = { at, n, inner, 0 };
    *p = (struct packet){ 0 };
    switch (link) {
    case LINK_ETHERNET:
        return ethernet_parse(&w, p);
    case LINK_NULL:
    case LINK_LOOP:
        return loopback_parse(&w, p);
    case LINK_COOKED:
        return cooked_parse(&w, 14, 16, p);
    case LINK_COOKED2:
        return cooked_parse(&w, 0, 20, p);
    case LINK_RAW:
    case LINK_RAW_BSD:
    case LINK_RAW_FILE:
    case LINK_IP4:
    case LINK_IP6:
        return ip_parse(&w, p);
    default:
        return PACKET_OTHER;
    }
}
