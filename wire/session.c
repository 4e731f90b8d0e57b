/*
 * session.c - talking to one other process, and waiting for it
 */
#define _GNU_SOURCE
#include "wire/session.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/byte_order.h"
#include "base/clock.h"
#include "base/grow.h"
#include "base/spawn.h"

#define STEP 65536     /* by which memory grows as bytes come */
#define PIPE_STEP 4096 /* that a pipe takes whole once it can be written */

int64_t session_within(int64_t ms)
{
    return (int64_t)clock_ms() + ms;
}

static bool flow_fail(struct session_flow *f, const char *what, int error)
{
    if (!f->why[0])
        snprintf(f->why, sizeof f->why, "%s%s%s", what, error ? ": " : "",
                 error ? strerror(error) : "");
    return false;
}

/* What is known better. */
static void flow_say(struct session_flow *f, const char *what)
{
    f->why[0] = '\0';
    flow_fail(f, what, 0);
}

const char *session_why(const struct session *s)
{
    return s->in.why[0] ? s->in.why : s->out.why;
}

/* ------------------------------------------------------------------ bytes */

static bool flow_wait(struct session_flow *f, short events, int64_t until)
{
    for (;;) {
        struct pollfd p = { .fd = f->fd, .events = events };
        const int64_t left = until - (int64_t)clock_ms();
        const int n = until == SESSION_NEVER ? poll(&p, 1, -1)
                      : left > INT32_MAX     ? poll(&p, 1, INT32_MAX)
                      : left > 0             ? poll(&p, 1, (int)left)
                                             : 0;
        if (n > 0)
            return true;
        if (n < 0 && errno != EINTR)
            return flow_fail(f, "poll", errno);
        if (n == 0 && left <= INT32_MAX) {
            f->late = true;
            return flow_fail(f, "no answer in time", 0);
        }
    }
}

static bool flow_write(struct session_flow *f, const unsigned char *at,
                       size_t n, int64_t until)
{
    while (n) {
        if (!flow_wait(f, POLLOUT, until))
            return false;
        /* Only sockets have MSG_NOSIGNAL, and calls that never wait. */
        ssize_t put = send(f->fd, at, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (put < 0 && errno == ENOTSOCK)
            put = write(f->fd, at, n < PIPE_STEP ? n : PIPE_STEP);
        if (put < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (put < 0 && (errno == EPIPE || errno == ECONNRESET))
            return flow_fail(f, "the other side closed the connection", 0);
        if (put < 0)
            return flow_fail(f, "connection lost", errno);
        at += put;
        n -= (size_t)put;
        f->moved += (uint64_t)put;
    }
    return true;
}

/* *ended: it was closed before the first of them. */
static bool flow_read(struct session_flow *f, unsigned char *to, size_t n,
                      int64_t until, bool *ended)
{
    for (size_t done = 0; done < n;) {
        if (!flow_wait(f, POLLIN, until))
            return false;
        const ssize_t got = read(f->fd, to + done, n - done);
        if (got < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (got < 0 && errno != ECONNRESET)
            return flow_fail(f, "connection lost", errno);
        if (got <= 0) {
            *ended = !done;
            return flow_fail(f, "the other side closed the connection", 0);
        }
        done += (size_t)got;
        f->moved += (uint64_t)got;
    }
    return true;
}

static bool flow_room(struct session_flow *f, unsigned char **at, size_t *room,
                      size_t n)
{
    return GROW(at, room, n) || flow_fail(f, "out of memory", 0);
}

/* ----------------------------------------------------------------- making */

void session_over(struct session *s, int in, int out)
{
    s->in.fd = in;
    s->out.fd = out;
}

bool session_connect(struct session *s, const struct address *to, int64_t until)
{
    struct sockaddr_storage at;
    const socklen_t n = address_socket(to, &at);
    const int one = 1;
    const int fd =
        socket(at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    session_over(s, fd, fd);
    if (fd < 0)
        return flow_fail(&s->out, "socket", errno);
    int error = connect(fd, (struct sockaddr *)&at, n) ? errno : 0;
    if (error == EINPROGRESS) {
        socklen_t nerror = sizeof error;
        if (!flow_wait(&s->out, POLLOUT, until))
            return false;
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &nerror);
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return !error || flow_fail(&s->out, "cannot connect", error);
}

bool session_spawn(struct session *s, const char *command)
{
    int ends[2];
    session_over(s, -1, -1);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return flow_fail(&s->out, "no pipe", errno);
    session_over(s, ends[0], ends[0]);
    const int error = spawn_shell(command, ends[1], ends[1], &s->child);
    close(ends[1]);
    return !error || flow_fail(&s->out, "cannot run it", error);
}

void session_done(struct session *s)
{
    if (s->in.fd == s->out.fd)
        shutdown(s->out.fd, SHUT_WR);
    else
        close(s->out.fd), s->out.fd = -1;
}

static void flow_free(struct session_flow *f)
{
    free(f->frame);
    free(f->sealed);
    f->frame = f->sealed = NULL;
    f->room = f->room_sealed = 0;
}

void session_trim(struct session *s)
{
    struct session_flow *const both[] = { &s->in, &s->out };
    for (int i = 0; i < 2; i++)
        if (both[i]->room > STEP || both[i]->room_sealed > STEP)
            flow_free(both[i]);
}

int session_close(struct session *s)
{
    int how = 0;
    /* Standard input and output are left to who has them. */
    if (s->out.fd > STDERR_FILENO && s->out.fd != s->in.fd)
        close(s->out.fd);
    if (s->in.fd > STDERR_FILENO)
        close(s->in.fd);
    session_over(s, -1, -1);
    if (s->child > 0)
        while (waitpid(s->child, &how, 0) < 0 && errno == EINTR)
            ;
    s->child = 0;
    flow_free(&s->in);
    flow_free(&s->out);
    return how;
}

/* ----------------------------------------------------------------- hellos */

/* The other's hello. Its beginning is looked at before the rest has come: a
 * stranger may have said all that it will. */
static bool hello_comes(struct session *s, bool asks,
                        unsigned char hello[SECURE_HELLO], int64_t until)
{
    bool ended = false;
    if (!flow_read(&s->in, hello, 8, until, &ended)) {
        s->ended = ended;
        if (ended && asks)
            flow_say(&s->in, "the other side closed the connection without a "
                             "hello; it may run an earlier version");
        return false;
    }
    const char *const why = secure_meets(&s->secure, hello);
    if (why) {
        memcpy(s->stranger, hello, 8);
        return flow_fail(&s->in, why, 0);
    }
    return flow_read(&s->in, hello + 8, SECURE_HELLO - 8, until, &ended);
}

bool session_greet(struct session *s, bool asks, const struct address *server,
                   int64_t until)
{
    static const struct address nowhere = { 0 };
    unsigned char mine[SECURE_HELLO], theirs[SECURE_HELLO],
        header[SECURE_HEADER];
    secure_hello(&s->secure, s->protocol, s->secret, mine);
    /* Who serves says nothing to strangers and to those of before, but lets one
     * with another secret know what is wrong. */
    if (asks && !flow_write(&s->out, mine, sizeof mine, until))
        return false;
    const bool met = hello_comes(s, asks, theirs, until);
    if (!asks &&
        (met ||
         (secure_same(&s->secure, s->stranger) && s->stranger[7] != '1')) &&
        !flow_write(&s->out, mine, sizeof mine, until))
        return false;
    if (!met)
        return false;
    secure_greeted(&s->secure, s->secret, asks, server ? server : &nowhere,
                   theirs, header);
    return !s->secure.on || flow_write(&s->out, header, sizeof header, until);
}

/* ----------------------------------------------------------------- frames */

bool session_put(struct session *s, const unsigned char *frame, size_t n,
                 int64_t until)
{
    struct session_flow *const f = &s->out;
    if (s->secure.on) {
        if (!flow_room(f, &f->sealed, &f->room_sealed, n + SECURE_MORE))
            return false;
        n = secure_seal(&s->secure, frame, n, f->sealed);
        frame = f->sealed;
    }
    return flow_write(f, frame, n, until);
}

bool session_send(struct session *s, const struct frame *f, int64_t until)
{
    struct session_flow *const out = &s->out;
    if (f->nbody > FRAME_BODY)
        return flow_fail(out, "a message is too long", 0);
    if (!flow_room(out, &out->frame, &out->room, f->nbody + FRAME_OVERHEAD))
        return false;
    if (f->nbody)
        memcpy(out->frame + FRAME_HEAD, f->body, f->nbody);
    return session_put(s, out->frame, frame_close(out->frame, f->nbody, f),
                       until);
}

/* Its end before the first frame that is opened: which may have a reason. */
static bool is_refused(struct session *s, bool ended)
{
    s->ended = ended;
    if (ended && s->secure.on && !s->trusted)
        flow_say(&s->in, "the other side closed the connection; it may have "
                         "another secret (--key-file)");
    return false;
}

static bool frame_wrong(struct session *s)
{
    return flow_fail(&s->in, "what comes is not what this program says", 0);
}

/* A length and as many bytes. */
static bool record_comes(struct session *s, size_t most, size_t *n,
                         int64_t until)
{
    struct session_flow *const f = &s->in;
    bool ended = false;
    if (!flow_room(f, &f->frame, &f->room, 4))
        return false;
    if (!flow_read(f, f->frame, 4, until, &ended))
        return is_refused(s, ended);
    const size_t all = 4 + (size_t)get_le(f->frame, 4);
    if (all > most)
        return frame_wrong(s);
    for (*n = 4; *n < all;) {
        const size_t some = all - *n < STEP ? all - *n : STEP;
        bool late;
        if (!flow_room(f, &f->frame, &f->room, *n + some) ||
            !flow_read(f, f->frame + *n, some, until, &late))
            return false;
        *n += some;
    }
    return true;
}

bool session_receive(struct session *s, struct frame *f, int64_t until)
{
    struct session_flow *const in = &s->in;
    const size_t most = (s->most ? s->most : FRAME_BODY) + FRAME_OVERHEAD;
    size_t n, used;
    in->late = false;
    if (s->secure.on && !s->secure.ready) {
        unsigned char header[SECURE_HEADER];
        bool ended = false;
        if (!flow_read(in, header, sizeof header, until, &ended))
            return is_refused(s, ended);
        if (!secure_begins(&s->secure, header))
            return frame_wrong(s);
    }
    if (!record_comes(s, most + (s->secure.on ? SECURE_MORE : 0), &n, until))
        return false;
    const unsigned char *frame = in->frame;
    if (s->secure.on) {
        if (!flow_room(in, &in->sealed, &in->room_sealed, n))
            return false;
        n = secure_open(&s->secure, in->frame + 4, n - 4, in->sealed);
        frame = in->sealed;
        if (!n)
            return flow_fail(in,
                             s->trusted
                                 ? "something on the way changes what is said"
                                 : "it has another secret (--key-file), or "
                                   "something on the way changes what is said",
                             0);
        s->trusted = true;
    }
    return (frame_read(frame, n, f, &used) == FRAME_WHOLE && used == n) ||
           frame_wrong(s);
}
