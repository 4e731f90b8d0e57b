/*
 * tun.h - packets that the kernel routes to us, and the way out
 *
 * A TUN device hands over what is routed into it, packet by packet, cut to its
 * MTU and with its checksums. Whatever goes on leaves by raw sockets that are
 * bound to an interface. These take no more than a few packets, so that a slow
 * interface is felt here: sending waits, and packets wait where we see them.
 */
#ifndef BLY_TRAFFIC_TUN_H
#define BLY_TRAFFIC_TUN_H

#include <stdbool.h>
#include <stddef.h>

struct tun {
    const char *name, *out;
    int device, out4, out6; /* nothing of this waits; -1: not open */
    unsigned index;         /* of the interface that packets leave by */
};

/* The device is there, up, until tun_close(). False, with the reason printed
 * and nothing left behind. */
bool tun_open(const char *name, const char *out, struct tun *t);
void tun_close(struct tun *t);

/* The next packet into room for `most` bytes: its length, 0 if there is none
 * now, -1 if the device has gone, with the reason printed. */
ptrdiff_t tun_next(const struct tun *t, unsigned char *at, size_t most);

enum tun_sent {
    TUN_SENT,
    TUN_WAIT,   /* the interface has enough for now; poll tun_way() */
    TUN_REFUSED /* nobody takes this one: no route, too long, no IP */
};
enum tun_sent tun_send(const struct tun *t, const unsigned char *at, size_t n);

/* Is the interface still there? False, with the reason printed. */
bool tun_lives(const struct tun *t);

/* The socket that a packet leaves by; -1: none. */
int tun_way(const struct tun *t, const unsigned char *at, size_t n);

#endif
