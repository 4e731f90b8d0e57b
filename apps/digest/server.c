/*
 * server.c - a place where Squids fetch a digest
 *
 * A Squid with bug 5510 (all before October 2025) reads control block and mask
 * into one buffer and then moves only 128 bytes of what followed. So they must
 * not arrive together:
 *
 *     header | pause | 128 bytes of control block | pause | mask
 *
 * libmicrohttpd asks for the body piece by piece, in a thread of the
 * connection's own, and sends each piece before it asks for the next. Version
 * 0.9.75 holds nothing back; should another do so, TCP_NODELAY, set before each
 * pause, makes the kernel send what it has. A Squid without the bug sees
 * nothing of all this but a quarter of a second.
 *
 * Connections are let in, bounded and cut off by digest_gate.c; the digest
 * comes from digest_keeper.c, which no answer has to wait for.
 *
 * There are no objects here. A sibling that is asked for one with
 * only-if-cached says 504, and the Squid goes to the origin.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "apps/digest/gate.h"
#include "apps/digest/jobs.h"
#include "apps/digest/late_microhttpd.h"
#include "report/say.h"

#define REQUEST_BYTES                                      \
    (32 * 1024) /* a header that is longer is answered 431 \
                 */
#define PIECE (64 * 1024)

struct server {
    const struct digest_args *args;
    struct digest_source *source;
    struct keeper *keeper;
    struct gate *gate;
    struct MHD_Daemon *daemon;
    atomic_ullong nserved, nasked;
};

/* ----------------------------------------------------------------- sending */

struct sending {
    struct server *server;
    struct digest_shared *c;
    int fd;
};

static void push_and_wait(const struct sending *out)
{
    const int on = 1;
    setsockopt(out->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    keeper_pause(out->server->keeper, out->server->args->pause);
}

static ssize_t send_piece(void *ctx, uint64_t at, char *buf, size_t most)
{
    struct sending *const out = ctx;
    const struct digest_copy *const copy = &out->c->copy;
    if (at == 0 || at == DIGEST_HEADER)
        push_and_wait(out);
    const uint64_t end = at < DIGEST_HEADER ? DIGEST_HEADER : copy->nbytes;
    const size_t n = end - at < most ? (size_t)(end - at) : most;
    memcpy(buf, copy->bytes + at, n);
    return (ssize_t)n;
}

static void sending_end(void *ctx)
{
    struct sending *const out = ctx;
    keeper_drop(out->c);
    free(out);
}

static void add_time(struct MHD_Response *r, const char *name, int64_t seconds)
{
    char text[64];
    struct tm tm;
    const time_t t = (time_t)seconds;
    if (seconds > 0 && gmtime_r(&t, &tm) &&
        strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &tm))
        MHD_add_response_header(r, name, text);
}

/* The socket of a connection; negative: none. */
static int fd_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *const info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info ? info->connect_fd : -1;
}

/* Send r, which is released, and close: a connection has one request, so that
 * its time is bounded. */
static enum MHD_Result send_last(struct MHD_Connection *to, unsigned status,
                                 struct MHD_Response *r)
{
    MHD_add_response_header(r, "Connection", "close");
    const enum MHD_Result done = MHD_queue_response(to, status, r);
    MHD_destroy_response(r);
    return done;
}

static enum MHD_Result send_status(struct MHD_Connection *to, unsigned status,
                                   char *text)
{
    struct MHD_Response *const r = MHD_create_response_from_buffer(
        strlen(text), text, MHD_RESPMEM_PERSISTENT);
    return r ? send_last(to, status, r) : MHD_NO;
}

static enum MHD_Result send_digest(struct server *s, struct MHD_Connection *to)
{
    struct digest_shared *const c = keeper_take(s->keeper);
    struct sending *const out = c ? malloc(sizeof *out) : NULL;
    const int fd = fd_of(to);
    if (!out || fd < 0) {
        static char text[] = "There is no digest yet.\n";
        keeper_drop(c);
        free(out);
        return send_status(to, 404, text);
    }
    *out = (struct sending){ s, c, fd };
    struct MHD_Response *const r = MHD_create_response_from_callback(
        c->copy.nbytes, PIECE, send_piece, out, sending_end);
    if (!r) {
        sending_end(out);
        return MHD_NO;
    }
    MHD_add_response_header(r, "Content-Type", "application/cache-digest");
    const int64_t lifetime = s->source->lifetime;
    add_time(r, "Expires",
             lifetime ? (int64_t)time(NULL) + lifetime : c->copy.expires);
    add_time(r, "Last-Modified", c->copy.modified);
    s->nserved++;
    return send_last(to, 200, r);
}

/* The path of a URL that may be whole, as proxies send it. */
static const char *path_of(const char *url)
{
    const char *const scheme = strstr(url, "://");
    if (url[0] == '/' || !scheme)
        return url;
    const char *const path = strchr(scheme + 3, '/');
    return path ? path : "/";
}

static enum MHD_Result answer(void *ctx, struct MHD_Connection *connection,
                              const char *url, const char *method,
                              const char *version, const char *upload,
                              size_t *nupload, void **state)
{
    static char only_get[] = "This server answers GET and HEAD.\n";
    static char not_cached[] = "This server has no objects.\n";
    static char nothing[] =
        "This server has a cache digest, at " DIGEST_PATH ".\n";
    struct server *const s = ctx;
    (void)version, (void)upload, (void)nupload, (void)state;
    s->nasked++;
    gate_asked(s->gate, fd_of(connection));
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return send_status(connection, 405, only_get);
    if (strcmp(path_of(url), DIGEST_PATH) == 0)
        return send_digest(s, connection);
    if (url[0] != '/') /* asked as a proxy: only-if-cached, from siblings */
        return send_status(connection, 504, not_cached);
    return send_status(connection, 404, nothing);
}

/* Called before the socket is closed. */
static void connected(void *ctx, struct MHD_Connection *connection,
                      void **state, enum MHD_ConnectionNotificationCode what)
{
    struct server *const s = ctx;
    (void)state;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED)
        gate_left(s->gate, fd_of(connection));
}

static bool enter(void *ctx, int fd, const struct sockaddr *from,
                  socklen_t nfrom)
{
    struct server *const s = ctx;
    return MHD_add_connection(s->daemon, fd, from, nfrom) == MHD_YES;
}

/* --------------------------------------------------------------- listening */

/* A socket on ADDRESS:PORT, [ADDRESS]:PORT or PORT; negative, with the reason
 * printed. */
static int listen_on(const char *where)
{
    char host[256] = "127.0.0.1";
    const char *const colon = strrchr(where, ':');
    const char *const port = colon ? colon + 1 : where;
    size_t n = colon ? (size_t)(colon - where) : 0;
    const bool bracketed = n > 1 && where[0] == '[' && where[n - 1] == ']';
    if (n >= sizeof host || !port[0] ||
        strspn(port, "0123456789") != strlen(port) || strlen(port) > 5 ||
        atoi(port) > 65535) {
        fail("--listen '%s': not ADDRESS:PORT (right: 127.0.0.1:3129, "
             "[::1]:3129)",
             where);
        return -1;
    }
    if (bracketed)
        n -= 2;
    if (n) {
        memcpy(host, where + bracketed, n);
        host[n] = '\0';
    }
    struct addrinfo *found = NULL;
    const struct addrinfo wanted = { .ai_socktype = SOCK_STREAM,
                                     .ai_flags = AI_PASSIVE | AI_NUMERICSERV };
    const int wrong = getaddrinfo(host, port, &wanted, &found);
    if (wrong) {
        fail("--listen '%s': %s", where, gai_strerror(wrong));
        return -1;
    }
    const int on = 1;
    const int fd =
        socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int error = 0;
    if (fd < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(fd, found->ai_addr, found->ai_addrlen) != 0 ||
        listen(fd, 128) != 0)
        error = errno;
    freeaddrinfo(found);
    if (!error)
        return fd;
    if (fd >= 0)
        close(fd);
    fail("--listen '%s': %s", where, strerror(error));
    return -1;
}

static void tell_start(const struct server *s, int fd)
{
    struct sockaddr_storage at;
    socklen_t n = sizeof at;
    char host[64] = "", port[8] = "", url[160];
    if (getsockname(fd, (struct sockaddr *)&at, &n) == 0)
        getnameinfo((struct sockaddr *)&at, n, host, sizeof host, port,
                    sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
    const bool six = strchr(host, ':') != NULL;
    snprintf(url, sizeof url, "http://%s%s%s:%s" DIGEST_PATH, six ? "[" : "",
             host, six ? "]" : "", port);
    if (quiet)
        return;
    digest_tell_serving(s->args, s->source->name, url,
                        strtoull(port, NULL, 10));
    fflush(stdout);
}

static void tell_end(const struct server *s)
{
    if (quiet)
        return;
    digest_tell_served(s->args, s->nasked, s->nserved);
}

/* The library's part: connections come from the gate, which bounds their number
 * and their time. The library's own limit only has to be out of the way. (Its
 * time-out would be a second one, and 0.9.75 spins through the last second of
 * it.) */
static struct MHD_Daemon *daemon_start(struct server *s)
{
    const unsigned most = (unsigned)(2 * s->args->connections + 64);
    return MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION |
            MHD_USE_POLL | MHD_USE_ITC | MHD_USE_NO_LISTEN_SOCKET,
        0, NULL, NULL, answer, s, MHD_OPTION_CONNECTION_LIMIT, most,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_BYTES,
        MHD_OPTION_NOTIFY_CONNECTION, connected, s, MHD_OPTION_END);
}

static int serve_until_told(struct server *s, int fd, const sigset_t *ends)
{
    const struct digest_args *const args = s->args;
    const struct gate_limits limits = {
        .connections = args->connections,
        .per_address = args->per_address,
        .request_time = args->request_time,
        .answer_time = args->answer_time,
    };
    int signal_number;
    s->daemon = daemon_start(s);
    if (!s->daemon)
        return fail("libmicrohttpd cannot start");
    s->gate = gate_open(fd, &limits, enter, s);
    if (s->gate) {
        tell_start(s, fd);
        sigwait(ends, &signal_number);
        gate_shut(s->gate);
    }
    keeper_stop(s->keeper);
    MHD_stop_daemon(s->daemon);
    if (!s->gate)
        return fail("out of memory");
    gate_free(s->gate);
    tell_end(s);
    return YES;
}

int digest_answer(const struct digest_args *args, struct digest_source *source,
                  struct digest_copy *first, bool *idle)
{
    struct server s = { .args = args, .source = source };
    sigset_t ends;
    *idle = true;
    const int fd = mhd_begin() ? listen_on(args->listen) : -1;
    if (fd < 0) {
        free(first->bytes);
        return TROUBLE;
    }
    /* No thread takes these but sigwait(). */
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, NULL);
    signal(SIGPIPE, SIG_IGN);
    s.keeper = keeper_open(source, first);
    int status = TROUBLE;
    if (s.keeper) {
        status = serve_until_told(&s, fd, &ends);
        keeper_stop(s.keeper);
        *idle = keeper_close(s.keeper);
    } else {
        fail("out of memory");
    }
    close(fd);
    return status;
}
