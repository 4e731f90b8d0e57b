/*
 * ask_serve.h - a router that answers questions about packets
 */
#ifndef BLY_NET_ASK_SERVE_H
#define BLY_NET_ASK_SERVE_H

#include "apps/net/router.h"

/* What a router calls, if it is to answer (router_args.listen). */
extern const struct router_ask ask_serve;

#endif
