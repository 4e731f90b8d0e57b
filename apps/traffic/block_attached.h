/*
 * block_attached.h - the program of an interface, as commands find it and put
 * another in its place
 */
#ifndef BLY_TRAFFIC_BLOCK_ATTACHED_H
#define BLY_TRAFFIC_BLOCK_ATTACHED_H

#include "apps/traffic/block_pins.h"
#include "apps/traffic/block_xdp.h"

struct attached {
    const char *name; /* of the interface */
    struct pins pins;
    struct xdp_maps maps; /* of the program that is there, as far as pinned */
    int link;
};

/* Look at an interface. False, with the reason printed; that nothing is
 * attached is none (pins.state). */
bool attached_find(const char *base, const char *name, struct attached *a);
void attached_close(struct attached *a);

/* Are all maps of the program here, so that entries can be added? False, with
 * the reason printed. */
bool attached_changes(const struct attached *a);

/* Load a program for a->maps, and let it run in the place of the one that is
 * there, or as the first. False, with the reason printed, and nothing new. */
bool attached_replace(struct attached *a);

/* Nothing is dropped any more: YES, or TROUBLE with the reason printed. */
int attached_end(struct attached *a);

#endif
