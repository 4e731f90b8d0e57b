/*
 * tun.c - packets that the kernel routes to us, and the way out
 */
#define _GNU_SOURCE
#include "apps/traffic/tun.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "report/say.h"

/* Bytes in an interface's queue that are ours. The kernel doubles it, and
 * counts about 2,300 for a packet of 1,500: fourteen packets. */
#define SEND_ROOM (16 << 10)

#define TUN_LARGEST 65535 /* bytes of a packet; loopback takes one more */

static bool tun_fail(const char *what, const char *capability)
{
    return errno == EPERM || errno == EACCES
               ? refuse("%s: this needs %s; run it as root", what, capability)
               : refuse("%s: %s", what, strerror(errno));
}

/* As large packets as the way out takes, and up. */
static bool device_set(const struct tun *t)
{
    struct ifreq of = { 0 }, to = { 0 };
    snprintf(of.ifr_name, sizeof of.ifr_name, "%s", t->out);
    snprintf(to.ifr_name, sizeof to.ifr_name, "%s", t->name);
    if (ioctl(t->out4, SIOCGIFMTU, &of) < 0)
        return tun_fail(t->out, "CAP_NET_ADMIN");
    to.ifr_mtu = of.ifr_mtu < TUN_LARGEST ? of.ifr_mtu : TUN_LARGEST;
    if (ioctl(t->out4, SIOCSIFMTU, &to) < 0 ||
        ioctl(t->out4, SIOCGIFFLAGS, &to) < 0)
        return tun_fail(t->name, "CAP_NET_ADMIN");
    to.ifr_flags |= IFF_UP;
    return ioctl(t->out4, SIOCSIFFLAGS, &to) == 0 ||
           tun_fail(t->name, "CAP_NET_ADMIN");
}

static bool device_open(struct tun *t)
{
    struct ifreq r = { .ifr_flags = IFF_TUN | IFF_NO_PI };
    snprintf(r.ifr_name, sizeof r.ifr_name, "%s", t->name);
    t->device = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (t->device < 0)
        return tun_fail("/dev/net/tun", "CAP_NET_ADMIN");
    if (ioctl(t->device, TUNSETIFF, &r) == 0)
        return true;
    if (errno != EPERM && if_nametoindex(t->name))
        return refuse("%s: there is an interface of this name; give another "
                      "name, which the queue gives to a device of its own",
                      t->name);
    return tun_fail(t->name, "CAP_NET_ADMIN");
}

/* A socket for whole packets, with their headers; -1 with errno. */
static int out_open(const struct tun *t, int family)
{
    const int room = SEND_ROOM;
    const int fd =
        socket(family, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_RAW);
    if (fd >= 0 &&
        setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, t->out,
                   (socklen_t)strlen(t->out)) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room) == 0)
        return fd;
    const int error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return -1;
}

static bool outs_open(struct tun *t)
{
    t->out4 = out_open(t, AF_INET);
    if (t->out4 >= 0)
        t->out6 = out_open(t, AF_INET6);
    /* A kernel without IPv6 has no packets of it. */
    const bool ok = t->out4 >= 0 && (t->out6 >= 0 || errno == EAFNOSUPPORT);
    return ok || tun_fail(t->out, "CAP_NET_RAW");
}

static bool name_fits(const char *name)
{
    return (*name && strlen(name) < IFNAMSIZ && !strpbrk(name, "/ %")) ||
           refuse("%s: not the name of an interface", name);
}

bool tun_open(const char *name, const char *out, struct tun *t)
{
    *t = (struct tun){ name, out, -1, -1, -1, if_nametoindex(out) };
    if (!name_fits(name) || !name_fits(out))
        return false;
    if (!t->index)
        return refuse("%s: there is no such interface", out);
    const bool ok = outs_open(t) && device_open(t) && device_set(t);
    if (!ok)
        tun_close(t);
    return ok;
}

void tun_close(struct tun *t)
{
    int *const all[] = { &t->device, &t->out4, &t->out6 };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (*all[i] >= 0)
            close(*all[i]);
        *all[i] = -1;
    }
}

/* ----------------------------------------------------------------- packets */

ptrdiff_t tun_next(const struct tun *t, unsigned char *at, size_t most)
{
    const ssize_t n = read(t->device, at, most);
    if (n >= 0)
        return n;
    if (errno == EAGAIN || errno == EINTR || errno == EIO)
        return 0; /* EIO: the device is down for now */
    fail("%s: %s", t->name,
         errno == EBADFD ? "the device has gone" : strerror(errno));
    return -1;
}

#define V4_HEADER 20
#define V6_HEADER 40

static unsigned version_of(const unsigned char *at, size_t n)
{
    const unsigned version = n ? at[0] >> 4 : 0;
    const bool whole =
        (version == 4 && n >= V4_HEADER) || (version == 6 && n >= V6_HEADER);
    return whole ? version : 0;
}

int tun_way(const struct tun *t, const unsigned char *at, size_t n)
{
    const unsigned version = version_of(at, n);
    return version == 4 ? t->out4 : version == 6 ? t->out6 : -1;
}

enum tun_sent tun_send(const struct tun *t, const unsigned char *at, size_t n)
{
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    } to = { .any = { 0 } };
    const int way = tun_way(t, at, n);
    const bool six = version_of(at, n) == 6;
    if (way < 0)
        return TUN_REFUSED;
    if (six) {
        to.six.sin6_family = AF_INET6;
        to.six.sin6_scope_id = t->index; /* for addresses of the link */
        memcpy(&to.six.sin6_addr, at + 24, 16);
    } else {
        to.four.sin_family = AF_INET;
        memcpy(&to.four.sin_addr, at + 16, 4);
    }
    if (sendto(way, at, n, 0, &to.any, six ? sizeof to.six : sizeof to.four) >=
        0)
        return TUN_SENT;
    return errno == EAGAIN || errno == EINTR ? TUN_WAIT : TUN_REFUSED;
}

bool tun_lives(const struct tun *t)
{
    struct ifreq r = { .ifr_ifindex = (int)t->index };
    return ioctl(t->out4, SIOCGIFNAME, &r) == 0 ||
           refuse("%s: the interface has gone", t->out);
}
