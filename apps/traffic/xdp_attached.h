/*
 * xdp_attached.h - which program an interface has
 */
#ifndef BLY_TRAFFIC_XDP_ATTACHED_H
#define BLY_TRAFFIC_XDP_ATTACHED_H

#include <stdbool.h>
#include <stdint.h>

struct xdp_attached {
    uint32_t program; /* its number, which no other has; 0: none */
    const char *mode; /* "native", "generic", "offloaded"; NULL: none */
};

/* What runs at an interface of this namespace. False, with errno, if the kernel
 * does not say. */
bool xdp_attached(unsigned interface, struct xdp_attached *out);

#endif
