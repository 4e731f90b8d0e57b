/*
 * index_grep.c - grep, given a text of which it sees what matters
 *
 * Both of its pipes are served at once, since it may have more to print than a
 * pipe holds before it reads on. SIGPIPE is blocked in the thread that writes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/index/index_grep.h"

#define PIPE_BYTES (1 << 20)
#define READ_BYTES 65536

static void close_it(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

bool grep_start(struct grep_run *run, char *const *argv, struct bytes *to)
{
    int in[2] = { -1, -1 }, out[2] = { -1, -1 };
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none;
    *run = (struct grep_run){ .in = -1, .out = -1, .to = to };
    if (pipe2(in, O_CLOEXEC) != 0 ||
        (to ? pipe2(out, O_CLOEXEC) != 0
            : (out[1] = open("/dev/null", O_WRONLY | O_CLOEXEC)) < 0)) {
        run->error = strerror(errno);
        close_it(&in[0]);
        close_it(&in[1]);
        return false;
    }
    fcntl(in[1], F_SETPIPE_SZ, PIPE_BYTES);
    fcntl(in[1], F_SETFL, O_NONBLOCK);
    sigemptyset(&none);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&how);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawn_file_actions_adddup2(&files, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, out[1], STDOUT_FILENO);
    const int error =
        posix_spawnp(&run->child, argv[0], &files, &how, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&how);
    close(in[0]);
    close(out[1]);
    run->in = in[1];
    run->out = out[0];
    if (!error)
        return true;
    close_it(&run->in);
    close_it(&run->out);
    run->error = error == ENOENT
                     ? "there is no grep on the PATH, which this search needs"
                     : strerror(error);
    return false;
}

/* What it has printed. False at the end. */
static bool grep_drain(struct grep_run *run)
{
    unsigned char buf[READ_BYTES];
    ssize_t got;
    do
        got = read(run->out, buf, sizeof buf);
    while (got < 0 && errno == EINTR);
    if (got <= 0) {
        close_it(&run->out);
        return false;
    }
    if (!bytes_put(run->to, buf, (size_t)got))
        run->error = strerror(ENOMEM);
    return true;
}

bool grep_give(struct grep_run *run, const void *text, size_t n)
{
    const char *at = text;
    while (n && !run->full && !run->error) {
        struct pollfd fds[2] = { { .fd = run->in, .events = POLLOUT },
                                 { .fd = run->out, .events = POLLIN } };
        ssize_t put = write(run->in, at, n);
        if (put < 0 && errno == EPIPE) {
            run->full = true;
        } else if (put < 0 && errno == EAGAIN) {
            if (poll(fds, 2, -1) > 0 && fds[1].revents)
                grep_drain(run);
        } else if (put < 0 && errno != EINTR) {
            run->error = strerror(errno);
        } else if (put > 0) {
            at += put;
            n -= (size_t)put;
        }
    }
    return !run->full && !run->error;
}

bool grep_skip(struct grep_run *run, uint64_t nlines)
{
    char empty[16384];
    memset(empty, '\n', nlines < sizeof empty ? (size_t)nlines : sizeof empty);
    while (nlines && !run->full && !run->error) {
        const size_t n = nlines < sizeof empty ? (size_t)nlines : sizeof empty;
        grep_give(run, empty, n);
        nlines -= n;
    }
    return !run->full && !run->error;
}

int grep_end(struct grep_run *run)
{
    int status = 0;
    close_it(&run->in);
    while (run->out >= 0 && grep_drain(run))
        ;
    while (waitpid(run->child, &status, 0) < 0)
        if (errno != EINTR)
            return 2;
    return WIFEXITED(status) && !run->error ? WEXITSTATUS(status) : 2;
}
