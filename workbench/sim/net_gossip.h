/*
 * net_gossip.h - the experiment of gossiping peers, as a result of net sim
 */
#ifndef BLY_NET_GOSSIP_H
#define BLY_NET_GOSSIP_H

#include "workbench/sim/experiment.h"
#include "workbench/sim/gossip_sim.h"

#define NET_GOSSIP_PEERS 4000 /* each of them keeps a directory of all */

/* Run it, and draw how a change spreads unless plot is NULL; false, with the
 * reason printed. */
bool net_gossip(const struct gossip_sim_spec *spec, const char *plot,
                struct net_result *out);

#endif
