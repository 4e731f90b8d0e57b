/*
 * sync_line.c - messages of a sync over sockets and pipes
 *
 * A length, then as many bytes: memory for them grows as they come. A message
 * has to come, or to go, within the time that it may take, waiting for its
 * first byte included: a peer that sends a byte now and then is given up just
 * like one that sends nothing.
 */
#define _GNU_SOURCE
#include "apps/sync/sync_line.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/spawn.h"
#include "wire/address.h"
#include "wire/gate.h"
#include "report/say.h"

extern char **environ;

static bool line_fail(char why[SYNC_WHY], const char *text)
{
    snprintf(why, SYNC_WHY, "%s", text);
    return false;
}

/* When a message that begins now has to be done; negative: at no time. */
static int64_t deadline(const struct wire_line *w)
{
    return w->timeout < 0 ? -1 : gate_clock() + w->timeout;
}

/* Wait until something can be done with fd. */
static bool ready(int fd, short what, int64_t until, char why[SYNC_WHY])
{
    struct pollfd p = { .fd = fd, .events = what };
    for (;;) {
        int64_t left = until < 0 ? -1 : until - gate_clock();
        if (until >= 0 && left < 0)
            left = 0;
        const int n = poll(&p, 1, (int)left);
        if (n > 0 && (left || until < 0))
            return true;
        if (n >= 0)
            return line_fail(why, "the other side is silent, or takes too long "
                                  "for a message (--timeout)");
        if (errno != EINTR)
            return line_fail(why, strerror(errno));
    }
}

static bool write_all(struct wire_line *w, const void *bytes, size_t n,
                      int64_t until, char why[SYNC_WHY])
{
    const char *at = bytes;
    while (n) {
        if (!ready(w->out, POLLOUT, until, why))
            return false;
        /* A pipe has no MSG_NOSIGNAL; SIGPIPE is ignored where pipes are. Nor
         * may it take longer than it may wait: a peer may read nothing. */
        ssize_t put = send(w->out, at, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (put < 0 && errno == ENOTSOCK)
            put = write(w->out, at, n < 4096 ? n : 4096);
        if (put < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (put < 0)
            return line_fail(why, errno == EPIPE || errno == ECONNRESET
                                      ? "the other side is gone"
                                      : strerror(errno));
        at += put;
        n -= (size_t)put;
    }
    return true;
}

/* n bytes; fewer is a failure, but none at all where `first`. */
static bool wire_read(struct wire_line *w, char *to, size_t n, bool first,
                      int64_t until, char why[SYNC_WHY])
{
    size_t done = 0;
    while (done < n) {
        if (!ready(w->in, POLLIN, until, why))
            return false;
        const ssize_t got = read(w->in, to + done, n - done);
        if (got < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (got < 0)
            return line_fail(why, strerror(errno));
        if (!got) {
            w->ended = first && !done;
            return line_fail(why, "the other side has ended it");
        }
        done += (size_t)got;
    }
    return true;
}

bool wire_send(struct wire_line *w, const struct block *message,
               char why[SYNC_WHY])
{
    unsigned char length[4];
    const int64_t until = deadline(w);
    if (message->len > SYNC_MESSAGE)
        return line_fail(why, "a message is too long");
    put_le(length, message->len, 4);
    return write_all(w, length, 4, until, why) &&
           write_all(w, message->at, message->len, until, why);
}

bool wire_receive(struct wire_line *w, struct block *message,
                  char why[SYNC_WHY])
{
    unsigned char length[4];
    const int64_t until = deadline(w);
    message->len = 0;
    if (!wire_read(w, (char *)length, 4, true, until, why))
        return false;
    size_t left = (size_t)get_le(length, 4);
    if (!left || left > (w->most ? w->most : SYNC_MESSAGE))
        return line_fail(why, "the other side is not bloomery sync: a message "
                              "has no such length");
    while (left) {
        const size_t some = left < 65536 ? left : 65536;
        if (!block_fit(message, message->len + some))
            return line_fail(why, "out of memory");
        if (!wire_read(w, message->at + message->len, some, false, until, why))
            return false;
        message->len += some;
        left -= some;
    }
    return true;
}

bool wire_exchange(void *ctx, const struct block *question,
                   struct block *answer, char why[SYNC_WHY])
{
    struct wire_line *const w = ctx;
    return wire_send(w, question, why) && wire_receive(w, answer, why);
}

/* ------------------------------------------------------------------- making */

bool wire_connect(struct wire_line *w, const char *where)
{
    struct address a;
    struct sockaddr_storage to;
    const int on = 1;
    if (!address_parse(where, &a))
        return false;
    const socklen_t n = address_socket(&a, &to);
    const int fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, n)) {
        fail("%s: %s", where, strerror(errno));
        if (fd >= 0)
            close(fd);
        return false;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    w->in = w->out = fd;
    return true;
}

bool wire_spawn(struct wire_line *w, const char *command)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return !fail("no pipe: %s", strerror(errno));
    const int error = spawn_shell(command, ends[1], ends[1], &w->child);
    close(ends[1]);
    w->in = w->out = ends[0];
    if (error)
        close(ends[0]);
    return !error || !fail("%s: %s", command, strerror(error));
}

int wire_close(struct wire_line *w)
{
    int how = 0;
    if (w->out != w->in)
        close(w->out);
    close(w->in);
    if (w->child > 0)
        while (waitpid(w->child, &how, 0) < 0 && errno == EINTR)
            ;
    return how;
}
