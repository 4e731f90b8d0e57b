/*
 * ask_trace.h - which way did this packet come? The routers are asked
 */
#ifndef BLY_NET_ASK_TRACE_H
#define BLY_NET_ASK_TRACE_H

#include "apps/net/receive.h"

/* A router that may be on the way. */
struct ask_row {
    const char *router, *before; /* who asked it; NULL: we did */
    const char *state;           /* found, silent, busy, cut */
    unsigned hops, bits, of;     /* bits of its mark that nobody wrote over */
    unsigned beside;             /* others that the same router may have had it
                                    from: how ambiguous this step is */
    bool last;                   /* nobody behind it may be on the way */
};

/* A packet. */
struct ask_result {
    const char *from, *to; /* addresses; NULL: of a file of marks */
    const struct ask_row *way;
    size_t nway;
    uint64_t found, silent, cut, busy;
    bool certain; /* one way, and all of it was asked */
};
extern const struct field ask_fields[];

/* Ask about the next packets of an interface, or about the packet in a file.
 * NO: nobody knows it. */
int net_ask(const struct receive_args *args);

#endif
