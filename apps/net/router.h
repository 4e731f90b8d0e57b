/*
 * router.h - a router of IPv6 as a process: its interfaces, and what it counts
 */
#ifndef BLY_NET_ROUTER_H
#define BLY_NET_ROUTER_H

#include "apps/net/forward.h"
#include "report/fields.h"
#include "report/words.h"

#define ROUTER_FACES 64

struct router_args {
    const char *name;     /* of this router, as neighbours call it */
    struct list links;    /* "IFACE=NEIGHBOUR" */
    const char *key_file; /* the secret of the marks; NULL: none */
    uint64_t loop_bits, loop_set, way_bits, way_set, strikes, seconds;
    uint64_t groups, cell_bits, refresh; /* of multicast; 0: none, or usual */
    /* Questions about packets (apps/net/ask). */
    const char *listen, *ask_key; /* NULL: none are answered; not sealed */
    struct list neighbours;       /* "NAME=ADDRESS:PORT": where they listen */
    const struct router_ask *ask; /* who answers */
    bool json;
};

/* Who answers questions beside a router; start() gets the marks of the links,
 * and marks() those that they have from now on. NULL, with the reason printed.
 */
struct ask_server;
struct router_ask {
    struct ask_server *(*start)(const struct router_args *args,
                                const struct mark *const *ways);
    void (*marks)(struct ask_server *s, const struct mark *const *ways);
    void (*stop)(struct ask_server *s, uint64_t *asked, uint64_t *refused);
};

struct router_result {
    const char *name;
    uint64_t received, fates[FATES], complaints, unsent, faces;
    uint64_t grouped, copies, superfluous, off_path, joins, leaves, refused;
    uint64_t questions, declined; /* about packets */
    double expected;              /* superfluous copies */
    double seconds;
};
extern const struct field router_fields[];

/* Note SIGHUP from now on; whether one came since it was asked last. */
void router_on_hup(void);
bool router_hup(void);

/* Forward until SIGTERM, SIGINT, or the seconds are over. SIGHUP reads the
 * secret again. */
int net_router(const struct router_args *args);

/* The faces of a network's marks, sizes by default: 256 bits, 8 of them set
 * against loops; 256 bits, one set and one cleared, for the way. */
void router_defaults(struct router_args *args);
bly_status router_face(const struct router_args *args,
                       const unsigned char *secret, const char *from,
                       const char *to, struct face *out);

#endif
