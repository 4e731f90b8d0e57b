/*
 * no_network.c - a machine whose ports are taken and where nobody answers
 *
 * Preloaded, so that lines which are made up (tests/test_error_paths.py) start
 * no server that would run for ever, speak to nobody, and need not wait between
 * two tries.
 */
#define _DEFAULT_SOURCE
#include <errno.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

int listen(int fd, int backlog)
{
    (void)fd;
    (void)backlog;
    errno = EADDRINUSE;
    return -1;
}

/* Unix sockets, too: a database of names might be asked. */
int connect(int fd, const struct sockaddr *to, socklen_t n)
{
    (void)fd;
    (void)to;
    (void)n;
    errno = ECONNREFUSED;
    return -1;
}

int nanosleep(const struct timespec *wanted, struct timespec *left)
{
    (void)wanted;
    (void)left;
    return 0;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *wanted,
                    struct timespec *left)
{
    (void)clock;
    (void)flags;
    (void)wanted;
    (void)left;
    return 0;
}

int usleep(useconds_t wanted)
{
    (void)wanted;
    return 0;
}
