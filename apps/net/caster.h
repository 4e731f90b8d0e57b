/*
 * caster.h - a router of groups: what hosts and neighbours ask for, and copies
 *
 * Hosts and routers ask for groups of a source with MLD (mld.h), on the link
 * where they are. What is asked for the first time is asked for on the link
 * towards the source, by the router itself; what nobody wants any more is given
 * back there. So a tree grows from members to the source, router by router.
 *
 * When somebody leaves a group, the link is asked whether others still want it,
 * and they answer within a second. Everything is repeated every `period`, and
 * forgotten after three periods of silence.
 *
 * No sockets, no clocks: packets and times in, packets out by `send`. `up` says
 * by which interface an address is reached, CAST_FACE_NONE if by none.
 */
#ifndef BLY_NET_CASTER_H
#define BLY_NET_CASTER_H

#include "apps/net/cast.h"
#include "apps/net/mld.h"

struct caster {
    struct cast cast;
    unsigned nfaces;
    unsigned char address[SLICED_FACES][16]; /* of the link; zeros: none, and
                                                nothing is sent there */
    uint64_t period, next; /* milliseconds; when all is repeated */
    unsigned (*up)(void *ctx, const unsigned char address[16]);
    void (*send)(void *ctx, unsigned face, const unsigned char *packet,
                 size_t n);
    void *ctx;

    uint64_t joins, leaves, refused; /* wishes that came, went, had no room */
    uint64_t off_path;               /* packets from a wrong interface */
    uint64_t copies, superfluous;    /* that were made; that nobody wanted */
    double expected; /* superfluous ones, by the filters' rates: */
    double wrong[SLICED_FACES];
    uint64_t rated[SLICED_FACES]; /* with so many groups */
};

/* A packet to a group of one link came by an interface. Not all are for us. */
void caster_hear(struct caster *c, unsigned face, const unsigned char *in,
                 size_t n, uint64_t now);

/* Some time has passed: call it at least every second. */
void caster_tick(struct caster *c, uint64_t now);

/* An interface is gone, and who was behind it. */
void caster_gone(struct caster *c, unsigned face);

/* The interfaces to which an IPv6 packet for a group, which arrived on `face`,
 * is copied; the counters are updated. */
uint64_t caster_copies(struct caster *c, unsigned face,
                       const unsigned char *in);

#endif
