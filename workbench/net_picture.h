/*
 * net_picture.h - a network to look at, with the way of one try drawn in
 */
#ifndef BLY_NET_PICTURE_H
#define BLY_NET_PICTURE_H

#include "workbench/sim/experiment.h"

/* More nodes than that are not drawn. */
#define NET_PICTURE_NODES 5000

/* Write the picture; false: plot_why() says why not. */
bool net_draw(const struct graph *g, const struct net_result *r,
              const char *path);

#endif
