/*
 * traffic.h - bloomery traffic: what filters do on a wire
 */
#ifndef BLY_TRAFFIC_H
#define BLY_TRAFFIC_H

#include "apps/traffic/traffic_args.h"
#include "report/words.h"

typedef int traffic_verb(const struct traffic_args *args,
                         const struct list *operands);
traffic_verb traffic_flows, traffic_gen;
traffic_verb traffic_count, traffic_block, traffic_guard;
traffic_verb traffic_scan;
traffic_verb traffic_digest, traffic_trace;
traffic_verb traffic_queue;

#endif
