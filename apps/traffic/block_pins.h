/*
 * block_pins.h - where the kernel's program of an interface is kept
 *
 * What outlives the command is pinned in a folder of the bpf file system, named
 * by the network namespace, and in it by number and name of the interface:
 *
 *     /sys/fs/bpf/bloomery/4026531840-2-eth0/link       its place there
 *     /sys/fs/bpf/bloomery/4026531840-2-eth0/counters   across lists
 *     .../live, hits                   the part that changes, likewise
 *     .../list, blocks, allow4, allow6 the other maps of the program, by which
 *                                      one that differs in lengths is made
 *
 * The last four are there only while they are those of the program.
 *
 * Names of interfaces are unique in a namespace only, and change. So a folder
 * is found by the program that the interface has now.
 */
#ifndef BLY_TRAFFIC_BLOCK_PINS_H
#define BLY_TRAFFIC_BLOCK_PINS_H

#include <stdbool.h>

#include "apps/traffic/xdp_attached.h"
#include "apps/traffic/xdp_layout.h"

#define PINS_BASE 512
#define PINS_PATH (PINS_BASE + 300)

struct pins {
    char base[PINS_BASE], above[PINS_BASE + 4];
    char folder[PINS_PATH], link[PINS_PATH + 16];
    char map[XDP_NMAPS][PINS_PATH + 16]; /* by number */
    unsigned interface;      /* its number; 0: there is none of that name */
    struct xdp_attached has; /* at the interface */
    enum {
        PINS_NONE, /* nothing of ours is there */
        PINS_HERE, /* the folder is that of the program at the interface */
        PINS_GONE  /* it was that of an interface of this name that has gone */
    } state;
};

/* Look at an interface of this namespace. base is NULL or where to look instead
 * of /sys/fs/bpf/bloomery. False, with the reason printed. */
bool pins_find(const char *base, const char *interface, struct pins *p);

/* Make the folder, or remove it with all that is in it. */
bool pins_make(const struct pins *p);
void pins_remove(const struct pins *p);

/* The maps of the program that is there, -1 where there is none of that name,
 * or pins of these; the last four go before another program comes. False, with
 * errno. */
void pins_maps(const struct pins *p, int at[XDP_NMAPS]);
bool pins_maps_set(const struct pins *p, const int at[XDP_NMAPS]);
void pins_maps_hide(const struct pins *p);

/* Alone with all pins until it is closed; -1 if nobody can be, since there is
 * no such place. To be had before pins_find(). */
int pins_lock(const char *base);

/* Will what is pinned there be gone with the last process of this mount
 * namespace? */
bool pins_fleeting(const struct pins *p);

#endif
