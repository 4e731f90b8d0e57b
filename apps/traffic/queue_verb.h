/*
 * queue_verb.h - bloomery traffic queue: a simulation, and with libpcap the
 * packets of a capture
 */
#ifndef BLY_TRAFFIC_QUEUE_VERB_H
#define BLY_TRAFFIC_QUEUE_VERB_H

#include "apps/traffic/traffic_args.h"
#include "apps/traffic/sfb.h"
#include "report/words.h"

/* The queue that the options describe, and the rate of its link in bits per
 * second. False, with the reason printed. */
bool queue_options(const struct traffic_args *args, struct sfb_spec *spec,
                   double *link);

/* What went through a queue, with what the queue itself has counted. */
void queue_summary_print(const struct traffic_args *args,
                         struct queue_summary *sum, const struct sfb_sum *of);

/* Between a TUN device and an interface, until a signal. */
int queue_live(const struct traffic_args *args);

/* Replays a capture; NULL without libpcap. */
typedef int queue_replay_fn(const struct traffic_args *args, const char *path);
queue_replay_fn queue_replay;
int queue_any(const struct traffic_args *args, const struct list *operands,
              queue_replay_fn *replay);

#endif
