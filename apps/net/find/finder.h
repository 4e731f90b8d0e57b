/*
 * finder.h - a server that knows what is offered near it, and below it
 *
 * Services are announced to a server (chord/service.h). It tells its
 * neighbours by attenuated filters what is how many hops away (bly_node), and
 * its parent in a hierarchy by one filter what it and all below it have. Who
 * looks for something is told what the server has, which links tell of it, the
 * best first, which children may have it, and the parent; and asks these
 * (seek.h).
 *
 * What is not repeated is forgotten: services, what neighbours told, filters of
 * children. No sockets, no clocks: frames in, frames out.
 *
 *     news       address of the teller, message of bly_node_tell()
 *     summary    address of the child, u64 hash of its filter, filter or none
 *                answer: u8, 1 if the filter is wanted
 *     look       the answer of services_answer(), then
 *                u8 number of links, for each an address and u8 hops
 *                u8 number of children, addresses     u8 0 or 1, the parent
 *     status     answer: u8 number, u64 numbers
 *     address    u8 family, 16 bytes, u16 port
 */
#ifndef BLY_NET_FINDER_H
#define BLY_NET_FINDER_H

#include <bloomery/node.h>

#include "chord/service.h"
#include "wire/address.h"

#define FINDER_LINKS 64    /* neighbours, at most */
#define FINDER_CHILDREN 64 /* likewise */
#define FINDER_SLOWEST 32  /* periods between tries to reach who is silent */

enum { FINDER_NEWS = 64, FINDER_SUMMARY, FINDER_STATUS };

struct finder_args {
    uint64_t services, keys, depth, life; /* milliseconds of soft state */
};

struct finder_link {
    struct address at;
    char name[ADDRESS_TEXT];
    bool given; /* on the command line: never forgotten */
    unsigned silent, wait;
};

struct finder_child {
    struct address at;
    uint64_t sum, until;
    bly_filter *below;
};

struct finder {
    struct finder_args args;
    struct address self, parent; /* family 0: none */
    struct services services;
    bly_node *node;
    bly_filter *below; /* own keys and those of the children; NULL: to make */
    uint64_t below_sum;
    bool parent_wants; /* the filter, not only its hash */
    unsigned parent_silent, parent_wait;
    struct finder_link links[FINDER_LINKS];
    size_t nlinks;
    struct finder_child children[FINDER_CHILDREN];
    size_t nchildren;
    uint64_t now, looks, news, refused, expired;
    struct blob blob;
    /* Send a question; `tag` comes back with what became of it. */
    void (*ask)(void *ctx, const struct address *to, uint8_t type,
                struct blob *body, uint64_t tag);
    void *ctx;
};

/* The network that servers of one size belong to, by its name. */
uint64_t finder_network(const char *name, const struct finder_args *args);

/* args are of the network, zero: the usual. `ask` and `self` are set by the
 * caller; all zero before. False, with the reason printed. */
bool finder_new(struct finder *f, const struct finder_args *args,
                uint64_t life);
void finder_free(struct finder *f);
void finder_usual(struct finder_args *args);

/* A neighbour; false, with the reason printed, if there are too many. */
bool finder_link(struct finder *f, const struct address *at);

/* Some time has passed: call it every period, and after announcements. */
void finder_tick(struct finder *f, uint64_t now);

/* A question: its answer is in f->blob. 0, or why not. */
enum frame_error finder_question(struct finder *f, const struct frame *q,
                                 uint64_t now, const char **why);

/* What became of a question; NULL: silence. */
void finder_answer(struct finder *f, uint64_t tag, const struct frame *a);

/* ---------------------------------------------------------------- who looks */

struct found_way {
    struct address at;
    unsigned hops;
};

struct finder_found {
    struct service services[SERVICE_ANSWERS];
    size_t nservices;
    struct found_way links[FINDER_LINKS];
    struct address children[FINDER_CHILDREN];
    size_t nlinks, nchildren;
    struct address parent;
};

/* An answer to SERVICE_LOOK; that of a member of a ring ends behind its
 * services. False: it is not one. */
bool finder_take(const struct frame *a, struct finder_found *out);

void finder_put_address(struct blob *b, const struct address *a);
bool finder_take_address(struct body *b, struct address *a);

#endif
