/*
 * http.h - answers over HTTP, until told to end
 *
 * libmicrohttpd speaks HTTP, gate.h decides who comes in and for how long, and
 * an app answers. A connection has one request, so that its time is bounded.
 */
#ifndef BLY_WIRE_HTTP_H
#define BLY_WIRE_HTTP_H

#include <microhttpd.h>
#include <signal.h>
#include <stdatomic.h>

#include "wire/address.h"
#include "wire/gate.h"

struct http {
    const char *listen; /* ADDRESS:PORT, [ADDRESS]:PORT or PORT */
    struct gate_limits limits;

    /* Answer a GET or HEAD, by http_send() or its like. Called by several
     * threads at once. */
    enum MHD_Result (*answer)(void *ctx, struct MHD_Connection *to,
                              const char *url);
    /* Called once clients may come: the URL of the service, without a path. */
    void (*started)(void *ctx, const char *url, uint64_t port);
    /* Unless NULL: called when it ends, before answers are waited for. */
    void (*ending)(void *ctx);
    void *ctx;

    atomic_ullong nasked;

    /* The service's own. */
    int fd;
    struct address at;
    sigset_t ends;
    struct gate *gate;
    struct MHD_Daemon *daemon;
};

/* Take the address, and keep SIGINT and SIGTERM for http_run(): to be called
 * before the app has threads. False, with the reason printed. */
bool http_open(struct http *s);

/* Answer until SIGINT or SIGTERM: YES, or TROUBLE with the reason printed. */
int http_run(struct http *s);
void http_close(struct http *s);

/* ----------------------------------------------------------------- answers */

/* Send r, which is released, and close. */
enum MHD_Result http_send(struct MHD_Connection *to, unsigned status,
                          struct MHD_Response *r);

/* Send a text that stays where it is. */
enum MHD_Result http_say(struct MHD_Connection *to, unsigned status,
                         const char *text);

/* The socket of a connection; negative: none. */
int http_fd(struct MHD_Connection *connection);

#endif
