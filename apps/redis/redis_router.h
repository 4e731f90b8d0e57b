/*
 * redis_router.h - which server has a key, and talking to it
 *
 * One server, or a cluster of them: the caller names a key and need not know. A
 * command is either answered at once (router_call), or sent ahead
 * with many others and answered later, in the order they were sent
 * (router_send, router_answer).
 */
#ifndef BLY_REDIS_ROUTER_H
#define BLY_REDIS_ROUTER_H

#include <hiredis/hiredis.h>

#include "apps/redis/redis.h"

#define SLOTS 16384u
#define NO_NODE UINT16_MAX

/* A server. It keeps its place in the router's array. */
struct redis_node {
    char host[256];
    int port;
    redisContext *ahead; /* for what is sent ahead; NULL: not connected */
    redisContext *aside; /* for what is answered at once */
    bool is_down;        /* the last try to connect failed */
    unsigned nlost;      /* how often `ahead` was lost */
    size_t nunsent;      /* bytes that `ahead` still holds */
};

struct router {
    const struct redis_login *login;
    struct redis_node *nodes;
    size_t nnodes, room;
    bool clustered;
    unsigned nlearned;     /* how often the map was asked for */
    uint16_t owner[SLOTS]; /* the place of the node that has a slot; NO_NODE:
                              nobody has it */
    bool lost;             /* what went wrong was a connection, and a server
                              may have done what it was told */
    char why[512];         /* what went wrong, once something has */
};

/* Connect to the server that login names and learn whether it is one of a
 * cluster, and of which. False: r->why. To be closed in any case. */
bool router_open(struct router *r, const struct redis_login *login);
void router_close(struct router *r);

/* The slot of a key: CRC-16 of what is in its first braces, or of all of it. */
unsigned key_slot(const void *key, size_t len);

/* A command as it goes over the wire. */
struct wire_command {
    char *bytes;
    size_t len;
};

/* The same for a command in hiredis' format. An error is not an answer here:
 * NULL, and r->why says in words for people what it means for this key. */
redisReply *router_call(struct router *r, const char *key, bool again,
                        const char *format, ...);

/* Where a command was sent, for the caller that wants its answer. */
struct ticket {
    uint16_t node;  /* NO_NODE: nowhere, since nobody has the slot */
    unsigned nlost; /* of the node when it was sent */
};

/* Send ahead. It cannot fail: what does not go out is sent once more when the
 * answer is asked for. */
struct ticket router_send(struct router *r, unsigned slot,
                          const struct wire_command *w);

/* The answer to the oldest command of that node that has none yet, w being that
 * command; as router_call(). w NULL: it is not sent elsewhere. */
redisReply *router_answer(struct router *r, struct ticket t, unsigned slot,
                          const struct wire_command *w, bool again);

/* Say in r->why what an error that the server gave for a key means; false. */
bool router_explain(struct router *r, const char *key, const char *text);

#endif
