/*
 * gate.h - who may come in, and for how long
 */
#ifndef BLY_WIRE_GATE_H
#define BLY_WIRE_GATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/clock.h"

/* Zero in no field. */
struct gate_limits {
    uint64_t connections;  /* at once */
    uint64_t per_address;  /* of these, from one address */
    uint64_t request_time; /* seconds until a request has come in whole */
    uint64_t answer_time;  /* seconds from then until it ends */
};

struct gate;

/* Take a connection that was let in: fd is the callee's, whatever it returns.
 * False: it could not. */
typedef bool gate_enter(void *ctx, int fd, const struct sockaddr *from,
                        socklen_t nfrom);

/* Accept from a listening socket in a thread of its own and hand on to enter()
 * what is let in. The caller still owns the socket. *g is there before the
 * first comes in. False, and *g NULL: no memory, or no thread. */
bool gate_open(struct gate **g, int listener, const struct gate_limits *limits,
               gate_enter *enter, void *ctx);

/* Let nobody in any more. Whoever is inside stays. */
void gate_shut(struct gate *g);

/* Release g, once nobody is inside. NULL is allowed. */
void gate_free(struct gate *g);

/* Called by whoever serves the connection fd, from any thread: its one request
 * has come; it ends, before fd is closed. */
void gate_asked(struct gate *g, int fd);
void gate_left(struct gate *g, int fd);

/* Milliseconds of a clock that nobody sets. */
static inline int64_t gate_clock(void)
{
    return (int64_t)clock_ms();
}

#endif
