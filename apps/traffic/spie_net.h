/*
 * spie_net.h - digest tables that are asked over the network
 *
 * A router that digests answers questions about packets, and says who its
 * neighbours are; who traces asks one router, and then those that it names.
 *
 *     question   u64 from, u64 to, nanoseconds since 1970
 *                u8 length, what the packet is known by
 *     answer     u8 answer, u8 change, u8 length, what it came as
 *                u8 length, name; u8 neighbours, for each
 *                u8 length, name, u8 family, 16 bytes, u16 port
 *
 * In frames (wire/frame.h), sealed if there is a secret.
 */
#ifndef BLY_TRAFFIC_SPIE_NET_H
#define BLY_TRAFFIC_SPIE_NET_H

#include "apps/traffic/spie.h"
#include "apps/traffic/traffic_args.h"

/* Answer questions beside a capture: `asks` is called from another thread.
 * NULL, with the reason printed. */
struct spie_server;
struct spie_server *spie_serve(const char *name, const struct digest_args *args,
                               spie_answers *asks, void *ctx);
void spie_serve_end(struct spie_server *s);

/* Trace a packet by asking: the net is learned on the way. */
struct spie_asker;
struct spie_asker *spie_asker_new(const struct trace_args *args, int64_t from,
                                  int64_t to, struct spie_net *net);
spie_asks spie_asker_ask; /* ctx: the asker */
void spie_asker_free(struct spie_asker *a);
/* What a router has answered; false: it is malformed. The net has the
 * neighbours that it names. */
struct frame;
bool spie_asker_hear(struct spie_asker *a, size_t router, const struct frame *f,
                     enum spie_answer *said, struct spie_packet *was,
                     enum spie_change *change);

#define SPIE_ROUTERS 4096 /* that one trace asks, at most */

#endif
