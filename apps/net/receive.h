/*
 * receive.h - who sent this packet? From an interface, and a file of links
 */
#ifndef BLY_NET_RECEIVE_H
#define BLY_NET_RECEIVE_H

#include "apps/net/router.h"

struct receive_args {
    struct router_args marks; /* name: of the receiver, in the topology */
    const char *iface, *topology;
    const char *ask; /* the router to ask; NULL: by the topology */
    uint64_t packets, seconds, patience;
    bool json;
};

/* Packets that come by args->iface, until as many as args->packets were taken,
 * or the seconds are over. `take` is false for one without marks; `again` is
 * called after SIGHUP. NO if there were none. */
struct received_by {
    bool (*take)(void *ctx, const unsigned char *at, size_t n);
    void (*again)(void *ctx);
    void *ctx;
};
int receive_packets(const struct receive_args *args,
                    const struct received_by *by);

/* A packet with marks, and who may have sent it. */
struct received {
    const char *from, *to; /* addresses */
    const char **way;      /* names of routers found, nearest first */
    size_t nway;
    const char **left; /* all whose mark towards here is left */
    size_t nleft;
    const char *farthest; /* the last that was found */
    uint64_t hops;        /* to it */
};
extern const struct field received_fields[];

/* Print the ways of packets that come by an interface, until there were as many
 * as asked for, or the seconds are over. NO if there were none. */
int net_receive(const struct receive_args *args);

#endif
