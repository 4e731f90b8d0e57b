/*
 * call.c - ask nodes and wait for the answer
 */
#define _GNU_SOURCE
#include "wire/call.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/grow.h"
#include "wire/runtime.h"
#include "base/byte_order.h"

static bool call_why(struct caller *c, const char *what, int error)
{
    snprintf(c->why, sizeof c->why, "%s%s%s", what, error ? ": " : "",
             error ? strerror(error) : "");
    return false;
}

static void line_drop(struct call_line *l)
{
    if (l->used)
        close(l->fd);
    *l = (struct call_line){ 0 };
}

/* Wait until the socket is ready; false: too late. */
static bool wait_for(struct caller *c, int fd, short events, uint64_t until)
{
    for (;;) {
        const uint64_t now = clock_ms();
        struct pollfd p = { .fd = fd, .events = events };
        const int n = now < until ? poll(&p, 1, (int)(until - now)) : 0;
        if (n > 0)
            return true;
        if (n == 0) {
            c->late = true;
            return call_why(c, "no answer in time", 0);
        }
        if (errno != EINTR)
            return call_why(c, "poll", errno);
    }
}

static bool send_all(struct caller *c, int fd, const unsigned char *at,
                     size_t n, uint64_t until)
{
    while (n) {
        const ssize_t put = send(fd, at, n, MSG_NOSIGNAL);
        if (put < 0 && errno == EAGAIN) {
            if (!wait_for(c, fd, POLLOUT, until))
                return false;
            continue;
        }
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return call_why(c, "connection lost", errno);
        at += put;
        n -= (size_t)put;
    }
    return true;
}

static bool receive_all(struct caller *c, int fd, unsigned char *at, size_t n,
                        uint64_t until)
{
    while (n) {
        const ssize_t got = recv(fd, at, n, 0);
        if (got == 0)
            return call_why(c, "the node closed the connection", 0);
        if (got < 0 && errno == EAGAIN) {
            if (!wait_for(c, fd, POLLIN, until))
                return false;
            continue;
        }
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return call_why(c, "connection lost", errno);
        at += got;
        n -= (size_t)got;
    }
    return true;
}

static bool greet(struct caller *c, struct call_line *l, uint64_t until)
{
    unsigned char hello[SECURE_HELLO], header[SECURE_HEADER];
    secure_hello(&l->secure, c->secret, hello);
    if (!send_all(c, l->fd, hello, sizeof hello, until) ||
        !receive_all(c, l->fd, hello, sizeof hello, until))
        return false;
    const char *const why =
        secure_greeted(&l->secure, c->secret, true, &l->to, hello, header);
    if (why)
        return call_why(c, why, 0);
    if (!l->secure.on)
        return true;
    return send_all(c, l->fd, header, sizeof header, until) &&
           receive_all(c, l->fd, header, sizeof header, until) &&
           (secure_begins(&l->secure, header) ||
            call_why(c, "the node's stream does not begin", 0));
}

static struct call_line *call_line(struct caller *c, const struct address *to,
                                   uint64_t until)
{
    struct call_line *l = &c->lines[0];
    for (size_t i = 0; i < CALL_LINES; i++) {
        struct call_line *const at = &c->lines[i];
        if (at->used && address_equal(&at->to, to))
            return at;
        if (l->used && (!at->used || at->since < l->since))
            l = at;
    }
    line_drop(l);
    struct sockaddr_storage s;
    const socklen_t n = address_socket(to, &s);
    const int fd =
        socket(s.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        call_why(c, "socket", errno);
        return NULL;
    }
    *l = (struct call_line){ .used = true, .fd = fd, .to = *to };
    int error = connect(fd, (struct sockaddr *)&s, n) ? errno : 0;
    if (error == EINPROGRESS) {
        socklen_t nerror = sizeof error;
        if (!wait_for(c, fd, POLLOUT, until)) {
            line_drop(l);
            return NULL;
        }
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &nerror);
    }
    const int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (error)
        call_why(c, "cannot connect", error);
    if (error || !greet(c, l, until)) {
        line_drop(l);
        return NULL;
    }
    return l;
}

static bool call_room(struct caller *c, unsigned char **at, size_t *room,
                      size_t n)
{
    return GROW(at, room, n) || call_why(c, "no memory for an answer", 0);
}

/* The next frame of the line. */
static bool receive_frame(struct caller *c, struct call_line *l,
                          struct frame *f, uint64_t until)
{
    unsigned char length[4];
    size_t used;
    if (!receive_all(c, l->fd, length, 4, until))
        return false;
    const size_t n = (size_t)get_le(length, 4);
    if (n > FRAME_MOST + 64 || !call_room(c, &c->in, &c->room_in, n + 4))
        return call_why(c, "no frame", 0);
    memcpy(c->in, length, 4);
    if (!receive_all(c, l->fd, c->in + 4, n, until))
        return false;
    const unsigned char *frame = c->in;
    size_t nframe = n + 4;
    if (l->secure.on) {
        if (!call_room(c, &c->sealed, &c->room_sealed, n))
            return false;
        frame = c->sealed;
        nframe = secure_open(&l->secure, c->in + 4, n, c->sealed);
        if (!nframe)
            return call_why(c, "an answer that is not genuine", 0);
    }
    return (frame_read(frame, nframe, f, &used) == FRAME_WHOLE &&
            used == nframe) ||
           call_why(c, "no frame", 0);
}

static bool line_send(struct caller *c, struct call_line *l,
                      const struct blob *body, uint64_t until)
{
    const unsigned char *bytes = body->at;
    size_t n = body->n;
    l->since = clock_ms();
    if (l->secure.on) {
        if (!call_room(c, &c->sealed, &c->room_sealed, n + SECURE_MORE))
            return false;
        n = secure_seal(&l->secure, body->at, body->n, c->sealed);
        bytes = c->sealed;
    }
    return send_all(c, l->fd, bytes, n, until);
}

static bool line_take_answer(struct caller *c, struct call_line *l,
                             uint32_t request, struct frame *answer,
                             uint64_t until)
{
    do
        if (!receive_frame(c, l, answer, until))
            return false;
    while (answer->request != request || !(answer->flags & FRAME_ANSWER));
    return true;
}

static bool call_once(struct caller *c, const struct address *to,
                      const struct blob *body, uint32_t request,
                      struct frame *answer, uint64_t until)
{
    struct call_line *const l = call_line(c, to, until);
    if (!l)
        return false;
    const bool ok = line_send(c, l, body, until) &&
                    line_take_answer(c, l, request, answer, until);
    if (!ok)
        line_drop(l);
    return ok;
}

static bool is_kept(const struct caller *c, const struct address *to)
{
    bool kept = false;
    for (size_t i = 0; i < CALL_LINES; i++)
        kept |= c->lines[i].used && address_equal(&c->lines[i].to, to);
    return kept;
}

bool call_send(struct caller *c, const struct address *to, uint8_t type,
               struct blob *body, uint32_t *request)
{
    const struct frame f = { .type = type,
                             .request = ++c->request,
                             .ring = c->ring };
    const uint64_t until = clock_ms() + c->timeout;
    c->late = false;
    if (!blob_frame(body, &f))
        return call_why(c, "no memory for a question", 0);
    struct call_line *const l = call_line(c, to, until);
    if (!l)
        return false;
    *request = f.request;
    if (line_send(c, l, body, until))
        return true;
    line_drop(l);
    return false;
}

bool call_take(struct caller *c, const struct address *to, uint32_t request,
               struct frame *answer)
{
    const uint64_t until = clock_ms() + c->timeout;
    c->late = false;
    if (!is_kept(c, to))
        return call_why(c, "connection lost", 0);
    struct call_line *const l = call_line(c, to, until);
    if (!l)
        return false;
    if (line_take_answer(c, l, request, answer, until))
        return true;
    line_drop(l);
    return false;
}

bool call_ask(struct caller *c, const struct address *to, uint8_t type,
              struct blob *body, struct frame *answer)
{
    const struct frame f = { .type = type,
                             .request = ++c->request,
                             .ring = c->ring };
    const uint64_t until = clock_ms() + c->timeout;
    if (!blob_frame(body, &f))
        return call_why(c, "no memory for a question", 0);
    const bool kept = is_kept(c, to);
    if (call_once(c, to, body, f.request, answer, until))
        return true;
    /* One that was kept open may have been closed since. */
    return kept && clock_ms() < until &&
           call_once(c, to, body, f.request, answer, until);
}

enum frame_error call_error(struct caller *c, const struct frame *answer)
{
    if (!(answer->flags & FRAME_ERROR))
        return (enum frame_error)0;
    snprintf(c->why, sizeof c->why, "%.*s",
             answer->nbody > 1 ? (int)answer->nbody - 1 : 0,
             answer->nbody > 1 ? (const char *)answer->body + 1 : "");
    return answer->nbody ? (enum frame_error)answer->body[0] : FRAME_REFUSED;
}

void call_close(struct caller *c)
{
    for (size_t i = 0; i < CALL_LINES; i++)
        line_drop(&c->lines[i]);
    free(c->in);
    free(c->sealed);
    c->in = c->sealed = NULL;
    c->room_in = c->room_sealed = 0;
}
