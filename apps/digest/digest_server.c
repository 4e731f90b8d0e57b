/*
 * digest_server.c - a place where Squids fetch a digest
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
 * Connections are let in, bounded and cut off by wire/http.h; the digest
 * comes from keeper.c, which no answer has to wait for.
 *
 * There are no objects here. A sibling that is asked for one with
 * only-if-cached says 504, and the Squid goes to the origin.
 */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "apps/digest/jobs.h"
#include "wire/http.h"
#include "report/say.h"

#define PIECE (64 * 1024)

struct server {
    const struct digest_args *args;
    struct digest_source *source;
    struct keeper *keeper;
    atomic_ullong nserved;
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

static enum MHD_Result send_digest(struct server *s, struct MHD_Connection *to)
{
    struct digest_shared *const c = keeper_take(s->keeper);
    struct sending *const out = c ? malloc(sizeof *out) : NULL;
    const int fd = http_fd(to);
    if (!out || fd < 0) {
        keeper_drop(c);
        free(out);
        return http_say(to, 404, "There is no digest yet.\n");
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
    return http_send(to, 200, r);
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

static enum MHD_Result digest_reply(void *ctx, struct MHD_Connection *to,
                                    const char *url)
{
    struct server *const s = ctx;
    if (strcmp(path_of(url), DIGEST_PATH) == 0)
        return send_digest(s, to);
    if (url[0] != '/') /* asked as a proxy: only-if-cached, from siblings */
        return http_say(to, 504, "This server has no objects.\n");
    return http_say(to, 404,
                    "This server has a cache digest, at " DIGEST_PATH ".\n");
}

/* --------------------------------------------------------------- beginning */

static void digest_started(void *ctx, const char *base, uint64_t port)
{
    const struct server *const s = ctx;
    char url[256];
    snprintf(url, sizeof url, "%s" DIGEST_PATH, base);
    if (!quiet)
        digest_tell_serving(s->args, s->source->name, url, port);
}

static void digest_ending(void *ctx)
{
    keeper_stop(((struct server *)ctx)->keeper);
}

int digest_answer(const struct digest_args *args, struct digest_source *source,
                  struct digest_copy *first, bool *idle)
{
    struct server s = { .args = args, .source = source };
    struct http service = {
        .listen = args->listen,
        .limits = { .connections = args->connections,
                    .per_address = args->per_address,
                    .request_time = args->request_time,
                    .answer_time = args->answer_time },
        .answer = digest_reply,
        .started = digest_started,
        .ending = digest_ending,
        .ctx = &s,
    };
    *idle = true;
    if (!http_open(&service)) {
        free(first->bytes);
        return TROUBLE;
    }
    s.keeper = keeper_open(source, first);
    int status = TROUBLE;
    if (s.keeper) {
        status = http_run(&service);
        if (status == YES && !quiet)
            digest_tell_served(args, service.nasked, s.nserved);
        keeper_stop(s.keeper);
        *idle = keeper_close(s.keeper);
    } else {
        fail("out of memory");
    }
    http_close(&service);
    return status;
}
