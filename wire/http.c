/*
 * http.c - answers over HTTP, until told to end
 */
#define _GNU_SOURCE
#include "wire/http.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/signals.h"
#include "report/say.h"

/* A header that is longer is answered 431. */
#define REQUEST_BYTES (32 * 1024)

/* ----------------------------------------------------------------- answers */

int http_fd(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *const info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info ? info->connect_fd : -1;
}

enum MHD_Result http_send(struct MHD_Connection *to, unsigned status,
                          struct MHD_Response *r)
{
    MHD_add_response_header(r, "Connection", "close");
    const enum MHD_Result done = MHD_queue_response(to, status, r);
    MHD_destroy_response(r);
    return done;
}

enum MHD_Result http_say(struct MHD_Connection *to, unsigned status,
                         const char *text)
{
    struct MHD_Response *const r = MHD_create_response_from_buffer(
        strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT);
    return r ? http_send(to, status, r) : MHD_NO;
}

static enum MHD_Result answer(void *ctx, struct MHD_Connection *connection,
                              const char *url, const char *method,
                              const char *version, const char *upload,
                              size_t *nupload, void **state)
{
    struct http *const s = ctx;
    (void)version, (void)upload, (void)nupload, (void)state;
    s->nasked++;
    gate_asked(s->gate, http_fd(connection));
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return http_say(connection, 405, "This server answers GET and HEAD.\n");
    return s->answer(s->ctx, connection, url);
}

/* ------------------------------------------------------------- connections */

/* Called before the socket is closed. */
static void connected(void *ctx, struct MHD_Connection *connection,
                      void **state, enum MHD_ConnectionNotificationCode what)
{
    struct http *const s = ctx;
    (void)state;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED)
        gate_left(s->gate, http_fd(connection));
}

static bool enter(void *ctx, int fd, const struct sockaddr *from,
                  socklen_t nfrom)
{
    struct http *const s = ctx;
    return MHD_add_connection(s->daemon, fd, from, nfrom) == MHD_YES;
}

/* --------------------------------------------------------------- listening */

static void tell_start(const struct http *s)
{
    char text[ADDRESS_TEXT], url[ADDRESS_TEXT + 8];
    address_text(&s->at, text);
    snprintf(url, sizeof url, "http://%s", text);
    s->started(s->ctx, url, s->at.port);
    fflush(stdout);
}

/* The library's part: connections come from the gate, which bounds their number
 * and their time. The library's own limit only has to be out of the way. (Its
 * time-out would be a second one, and 0.9.75 spins through the last second of
 * it.) */
static struct MHD_Daemon *daemon_start(struct http *s)
{
    const unsigned most = (unsigned)(2 * s->limits.connections + 64);
    return MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION |
            MHD_USE_POLL | MHD_USE_ITC | MHD_USE_NO_LISTEN_SOCKET,
        0, NULL, NULL, answer, s, MHD_OPTION_CONNECTION_LIMIT, most,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_BYTES,
        MHD_OPTION_NOTIFY_CONNECTION, connected, s, MHD_OPTION_END);
}

bool http_open(struct http *s)
{
    s->fd = address_listen(s->listen, &s->at);
    if (s->fd < 0)
        return false;
    /* No thread takes these but sigwait(). */
    sigemptyset(&s->ends);
    sigaddset(&s->ends, SIGINT);
    sigaddset(&s->ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &s->ends, NULL);
    signals_no_pipe();
    return true;
}

int http_run(struct http *s)
{
    int signal_number;
    s->daemon = daemon_start(s);
    if (!s->daemon)
        return fail("libmicrohttpd cannot start");
    if (gate_open(&s->gate, s->fd, &s->limits, enter, s)) {
        tell_start(s);
        sigwait(&s->ends, &signal_number);
        gate_shut(s->gate);
    }
    if (s->ending)
        s->ending(s->ctx);
    MHD_stop_daemon(s->daemon);
    if (!s->gate)
        return fail("out of memory");
    gate_free(s->gate);
    return YES;
}

void http_close(struct http *s)
{
    if (s->fd >= 0)
        close(s->fd);
}
