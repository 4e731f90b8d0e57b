/*
 * packet.h - what a captured packet is: addresses, ports, payload
 *
 * Packets are hostile: no length in them is believed that the captured bytes do
 * not have.
 */
#ifndef BLY_TRAFFIC_PACKET_H
#define BLY_TRAFFIC_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers of protocols that are looked into. */
enum {
    IP_ICMP = 1,
    IP_IP4 = 4,
    IP_TCP = 6,
    IP_UDP = 17,
    IP_IP6 = 41,
    IP_GRE = 47,
    IP_ICMP6 = 58,
    IP_SCTP = 132
};

enum packet_state {
    PACKET_IP,    /* all that is asked for was captured */
    PACKET_OTHER, /* no IP */
    PACKET_CUT,   /* the capture ends before the addresses do */
    PACKET_BAD    /* lengths that contradict each other */
};

enum packet_ports {
    PORTS_NONE, /* its protocol has none, or it is a later fragment */
    PORTS_HERE,
    PORTS_CUT /* the capture ends before them */
};

struct packet {
    uint8_t version, proto; /* 4 or 6; the protocol that IP carries */
    bool fragment;          /* not the first */
    enum packet_ports ports;
    uint16_t source_port, target_port;
    unsigned char source[16], target[16]; /* 4 bytes of IPv4 */
    const unsigned char *payload;         /* behind the transport's header */
    size_t npayload;                      /* as far as it was captured */
    const unsigned char *ip, *transport;  /* their headers */
    size_t nip, ntransport;               /* and all behind, as captured */
};

/* Is it a link type (DLT_...) that packets can be found in? */
bool link_known(int link);

/* Parse n captured bytes of a link type. With inner, what GRE, VXLAN and IP in
 * IP carry is the packet. */
enum packet_state packet_parse(int link, const unsigned char *at, size_t n,
                               bool inner, struct packet *p);

/* -------------------------------------------------------------------- keys */

enum key_form { KEY_5TUPLE, KEY_SOURCE, KEY_TARGET, KEY_BOTH, KEY_PREFIX };

struct key_choice {
    enum key_form form;
    unsigned prefix; /* bits of the source, with KEY_PREFIX */
};

/* "5tuple", "src", "dst", "srcdst", "prefix/24"; false for anything else. */
bool key_choose(const char *text, struct key_choice *out);

/* A flow: what packets of the same bytes belong to. */
#define FLOW_KEY_BYTES 38
struct flow_key {
    uint8_t len;
    unsigned char at[FLOW_KEY_BYTES];
};

/* False if the capture ends before what the key is made of. */
bool key_of(struct key_choice choice, const struct packet *p,
            struct flow_key *key);

/* "tcp 10.0.0.1:80 > 10.0.0.2:4711", "10.0.0.1", "10.0.0.0/24". */
#define FLOW_TEXT 128
const char *key_text(struct key_choice choice, const struct flow_key *key,
                     char out[FLOW_TEXT]);

/* The flow that such a text is of; false: of none with keys of this form. */
bool key_parse(struct key_choice choice, const char *text, size_t n,
               struct flow_key *key);

/* "tcp", "ip-99": the number of a protocol. */
bool proto_parse(const char *text, unsigned *proto);

/* Bits of a prefix, of an address of this version at most all; and the bits of
 * an address of n bytes behind them cleared. */
unsigned prefix_bits(struct key_choice choice, uint8_t version);
void address_cut(unsigned char *address, size_t n, unsigned bits);

#endif
