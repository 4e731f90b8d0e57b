/*
 * spie.h - did this packet pass here? Digest tables of routers
 *
 * A router keeps a filter of the packets of each slice of time, with a seed of
 * its own. What a packet is known by are the parts that no router changes: of
 * IPv4 the header without type of service, time to live, checksum and options,
 * and 8 bytes behind it, of UDP 16; of IPv6, whose header says less, the header
 * without traffic class, flow label and hop limit, and 20 bytes behind it.
 * Checksums of TCP and UDP are not part of it: a network card may fill them in
 * on the way, and virtual ones leave that to the next.
 *
 * A packet that is changed on its way (NAT, the end of a tunnel, fragments) is
 * another packet behind that router. There a side table says what it was.
 *
 * After Snoeren and others: Hash-Based IP Traceback, 2001.
 */
#ifndef BLY_TRAFFIC_SPIE_H
#define BLY_TRAFFIC_SPIE_H

#include <bloomery.h>

#include "apps/traffic/packet.h"

#define SPIE_BYTES 60
struct spie_packet {
    uint8_t len;
    unsigned char at[SPIE_BYTES];
};

/* What an IP packet is known by; false if the capture ends before. */
bool spie_known_by(const struct packet *p, struct spie_packet *out);

/* ------------------------------------------------------- changed packets */

enum spie_change { SPIE_NAT = 1, SPIE_TUNNEL, SPIE_FRAGMENT };
const char *spie_change_name(enum spie_change change);

struct spie_nat {
    unsigned char inside[4], outside[4];
    uint16_t inside_port, outside_port; /* 0: any, and left as it is */
};

/* "10.0.0.5 192.0.2.1" or "10.0.0.5:80 192.0.2.1:8080"; false: neither. */
bool spie_nat_line(const char *line, struct spie_nat *out);

/* What this NAT makes of a packet of IPv4; false: it leaves it alone. */
bool spie_nat_apply(const struct spie_nat *nat, const struct spie_packet *in,
                    struct spie_packet *out);

/* Fragment i that a link with this MTU makes of a packet; false: there is none,
 * or its bytes were not captured. */
bool spie_fragment(const struct packet *p, unsigned mtu, unsigned i,
                   struct spie_packet *out);

/* ------------------------------------------------------------------ tables */

struct spie_side {
    uint64_t hash; /* of the packet as it left */
    enum spie_change change;
    struct spie_packet before;
};

struct spie_table {
    int64_t start, end; /* nanoseconds since 1970: the first packet, the last */
    uint64_t packets, bytes;
    bly_filter *filter;
    struct spie_side *sides; /* sorted by hash */
    size_t nsides;
};

#define SPIE_NAME 64
struct spie_file {
    char router[SPIE_NAME];
    struct spie_table *tables; /* by time */
    size_t ntables, room;
};

/* A filter of these hashes, made with its seed: nbits of memory, in all. */
bly_status spie_table_make(uint64_t seed, const uint64_t *hashes, size_t n,
                           uint64_t nbits, bly_filter **out);

/* Take over a table. False: no memory. */
bool spie_file_add(struct spie_file *f, const struct spie_table *t);
void spie_file_drop(struct spie_file *f); /* the oldest */
void spie_file_free(struct spie_file *f);

/* The bytes of a file, from malloc; NULL: no memory. And back: NULL, or what is
 * wrong. */
unsigned char *spie_file_bytes(const struct spie_file *f, size_t *n);
const char *spie_file_parse(const unsigned char *at, size_t n,
                            struct spie_file *out);

enum spie_answer {
    SPIE_NO,
    SPIE_MAYBE,
    SPIE_CHANGED,   /* *was is what it came as */
    SPIE_SILENT,    /* no table of that time: who knows? */
    SPIE_FORGOTTEN, /* there was one, which has aged out */
    SPIE_ABSENT     /* the router does not answer */
};

/* Did the packet pass from `from` to `to`? */
enum spie_answer spie_ask(const struct spie_file *f, int64_t from, int64_t to,
                          const struct spie_packet *p, struct spie_packet *was,
                          enum spie_change *change);

/* What a router says that is asked over the network (spie_net.h). */
typedef enum spie_answer spie_answers(void *ctx, int64_t from, int64_t to,
                                      const struct spie_packet *p,
                                      struct spie_packet *was,
                                      enum spie_change *change);

/* -------------------------------------------------------------------- walk */

struct spie_net {
    char (*names)[SPIE_NAME];
    size_t nnames, names_room;
    struct spie_link {
        size_t a, b;
    } * links;
    size_t nlinks, links_room;
};

#define SPIE_NOBODY SIZE_MAX
/* The number of a router; with add it becomes one. SPIE_NOBODY: unknown, or no
 * memory. */
size_t spie_net_router(struct spie_net *net, const char *name, bool add);
bool spie_net_link(struct spie_net *net, size_t a, size_t b);
void spie_net_free(struct spie_net *net);

struct spie_step {
    size_t router, from; /* SPIE_NOBODY: where it began */
    unsigned hops;
    enum spie_answer answer;
    enum spie_change change; /* with SPIE_CHANGED */
    bool last;               /* no neighbour behind it says maybe */
    struct spie_packet packet;
};

typedef enum spie_answer spie_asks(void *ctx, size_t router,
                                   const struct spie_packet *p,
                                   struct spie_packet *was,
                                   enum spie_change *change);

/* Walk from a router back to wherever the packet may have come from: each
 * router that is asked becomes a step, in the order of hops. steps has room
 * for all routers. The result is their number. */
size_t spie_walk(const struct spie_net *net, size_t begin,
                 const struct spie_packet *p, spie_asks *ask, void *ctx,
                 struct spie_step *steps);

#endif
